/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * See machine.h.  The configuration window and all BARs lie in the PCI hole or above 4 GiB; each
 * function has 16 MiB of its own.  Register numbers of PCI itself come from <linux/pci_regs.h>, not
 * from QEMU.
 */
#include "machine.h"

#include <fcntl.h>
#include <glib.h>
#include <linux/pci_regs.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "staghorn/regs.h"
#include "tap.h"

enum {
    CONFIG_ADDRESS = 0xcf8,
    CONFIG_DATA = 0xcfc,
    MCH_PCIEXBAR = 0x60,
    WINDOW = 16 << 20,
    VECTOR_MAGIC = 0x51670000,
};
static const uint64_t config_window = 0xb0000000;
static const uint64_t memory_window = 0xc0000000;
static const uint64_t prefetch_window = 0x800000000;
static const uint64_t alloc_first = 1 << 20;

static struct machine machines[MACHINES];

enum { SETTLE_ROUNDS = 24 };

/* ---- configuration space ---- */

static uint64_t config_at(unsigned bus, unsigned devfn, unsigned offset)
{
    return config_window + (bus << 20) + (devfn << 12) + offset;
}

static uint64_t function_config_at(const struct function *f, unsigned offset)
{
    return config_at(f->bus, 0, offset);
}

/* The root port in front of a function. */
static uint64_t port_config_at(const struct function *f, unsigned offset)
{
    return config_at(0, (2 + f->number) << 3, offset);
}

uint8_t function_config_readb(struct function *f, unsigned offset)
{
    return qtest_readb(f->m->q, function_config_at(f, offset));
}

uint16_t function_config_readw(struct function *f, unsigned offset)
{
    return qtest_readw(f->m->q, function_config_at(f, offset));
}

uint32_t function_config_readl(struct function *f, unsigned offset)
{
    return qtest_readl(f->m->q, function_config_at(f, offset));
}

void function_config_writew(struct function *f, unsigned offset, uint16_t value)
{
    qtest_writew(f->m->q, function_config_at(f, offset), value);
}

void function_config_writel(struct function *f, unsigned offset, uint32_t value)
{
    qtest_writel(f->m->q, function_config_at(f, offset), value);
}

uint16_t port_config_readw(struct function *f, unsigned offset)
{
    return qtest_readw(f->m->q, port_config_at(f, offset));
}

void port_config_writew(struct function *f, unsigned offset, uint16_t value)
{
    qtest_writew(f->m->q, port_config_at(f, offset), value);
}

static unsigned find_cap(struct qtest *q, uint64_t config, uint8_t id)
{
    unsigned at = qtest_readb(q, config + PCI_CAPABILITY_LIST), n;

    for (n = 0; at && n < 48; n++) {
        if (qtest_readb(q, config + at + PCI_CAP_LIST_ID) == id) {
            return at;
        }
        at = qtest_readb(q, config + at + PCI_CAP_LIST_NEXT);
    }
    return 0;
}

unsigned function_find_cap(struct function *f, uint8_t id)
{
    return find_cap(f->m->q, function_config_at(f, 0), id);
}

unsigned port_find_cap(struct function *f, uint8_t id)
{
    return find_cap(f->m->q, port_config_at(f, 0), id);
}

unsigned function_find_ext_cap(struct function *f, uint16_t id)
{
    unsigned at = PCI_CFG_SPACE_SIZE, n;

    for (n = 0; at && n < 64; n++) {
        uint32_t header = function_config_readl(f, at);

        if (PCI_EXT_CAP_ID(header) == id) {
            return at;
        }
        at = PCI_EXT_CAP_NEXT(header);
    }
    return 0;
}

uint64_t function_bar_size(struct function *f, unsigned bar, uint32_t *flags)
{
    unsigned at = PCI_BASE_ADDRESS_0 + 4 * bar;
    uint32_t low = function_config_readl(f, at), high = 0, mask_low, mask_high = UINT32_MAX;
    bool wide = (low & PCI_BASE_ADDRESS_MEM_TYPE_MASK) == PCI_BASE_ADDRESS_MEM_TYPE_64;
    uint64_t mask;

    *flags = low & ~PCI_BASE_ADDRESS_MEM_MASK;
    function_config_writel(f, at, UINT32_MAX);
    mask_low = function_config_readl(f, at);
    function_config_writel(f, at, low);
    if (wide) {
        high = function_config_readl(f, at + 4);
        function_config_writel(f, at + 4, UINT32_MAX);
        mask_high = function_config_readl(f, at + 4);
        function_config_writel(f, at + 4, high);
    }
    mask = (uint64_t)mask_high << 32 | (mask_low & PCI_BASE_ADDRESS_MEM_MASK);
    return ~mask + 1;
}

/* ---- firmware ---- */

static void open_config_window(struct machine *m)
{
    qtest_outl(m->q, CONFIG_ADDRESS, 0x80000000u | MCH_PCIEXBAR);
    qtest_outl(m->q, CONFIG_DATA, (uint32_t)config_window | 1);
}

void machine_setup_ports(struct machine *m)
{
    unsigned i;

    open_config_window(m);
    for (i = 0; i < m->n; i++) {
        struct function *f = &m->f[i];
        uint64_t low = memory_window + i * WINDOW, high = prefetch_window + i * WINDOW;

        qtest_writel(m->q, port_config_at(f, PCI_PRIMARY_BUS), f->bus << 8 | f->bus << 16);
        port_config_writew(f, PCI_MEMORY_BASE, low >> 16);
        port_config_writew(f, PCI_MEMORY_LIMIT, (low + WINDOW - 1) >> 16);
        port_config_writew(f, PCI_PREF_MEMORY_BASE, high >> 16);
        port_config_writew(f, PCI_PREF_MEMORY_LIMIT, (high + WINDOW - 1) >> 16);
        qtest_writel(m->q, port_config_at(f, PCI_PREF_BASE_UPPER32), high >> 32);
        qtest_writel(m->q, port_config_at(f, PCI_PREF_LIMIT_UPPER32), high >> 32);
        port_config_writew(f, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    }
}

static void setup_msix(struct function *f)
{
    struct qtest *q = f->m->q;
    uint16_t control = function_config_readw(f, f->cap_msix + PCI_MSIX_FLAGS);
    uint32_t table = function_config_readl(f, f->cap_msix + PCI_MSIX_TABLE);
    unsigned i;

    T_EQ_U64(table & PCI_MSIX_TABLE_BIR, SG_BAR_MSIX);
    f->msix_table = f->msix + (table & PCI_MSIX_TABLE_OFFSET);
    f->vectors = (control & PCI_MSIX_FLAGS_QSIZE) + 1;
    T_TRUE(f->vectors <= MACHINE_VECTORS);
    for (i = 0; i < f->vectors; i++) {
        uint64_t entry = f->msix_table + i * PCI_MSIX_ENTRY_SIZE;

        *(uint32_t *)machine_ptr(f->m, f->vector_words + 4 * i) = 0;
        qtest_writel(q, entry + PCI_MSIX_ENTRY_LOWER_ADDR, f->vector_words + 4 * i);
        qtest_writel(q, entry + PCI_MSIX_ENTRY_UPPER_ADDR, 0);
        qtest_writel(q, entry + PCI_MSIX_ENTRY_DATA, VECTOR_MAGIC + i);
        qtest_writel(q, entry + PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
    }
    function_config_writew(f, f->cap_msix + PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_ENABLE);
}

void function_setup(struct function *f)
{
    f->regs = memory_window + f->number * WINDOW;
    f->msix = f->regs + SG_REGS_SIZE;
    f->doorbells = prefetch_window + f->number * WINDOW;
    function_config_writel(f, PCI_BASE_ADDRESS_0 + 4 * SG_BAR_REGS, f->regs);
    function_config_writel(f, PCI_BASE_ADDRESS_0 + 4 * SG_BAR_DOORBELL, f->doorbells);
    function_config_writel(f, PCI_BASE_ADDRESS_0 + 4 * (SG_BAR_DOORBELL + 1), f->doorbells >> 32);
    function_config_writel(f, PCI_BASE_ADDRESS_0 + 4 * SG_BAR_MSIX, f->msix);
    function_config_writew(f, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    f->cap_msix = function_find_cap(f, PCI_CAP_ID_MSIX);
    f->cap_express = function_find_cap(f, PCI_CAP_ID_EXP);
    f->cap_pm = function_find_cap(f, PCI_CAP_ID_PM);
    if (f->cap_msix) {
        setup_msix(f);
    }
}

/* A descriptor of fresh guest memory, for QEMU to inherit. */
static int make_ram(struct machine *m)
{
    int fd = memfd_create("guest", 0);

    T_TRUE(fd >= 0 && ftruncate(fd, MACHINE_RAM) == 0);
    m->ram = mmap(NULL, MACHINE_RAM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    T_TRUE(m->ram != MAP_FAILED);
    return fd;
}

/* The other end of the wire, for QEMU to inherit. */
static int make_wire(struct machine *m)
{
    int fds[2];

    T_TRUE(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    m->wire = fds[0];
    return fds[1];
}

/* Frees the resources of this machine, or of one that a failed case has left behind. */
static void drop(struct machine *m)
{
    if (m->ram) {
        machines_part(m);
        munmap(m->ram, MACHINE_RAM);
        close(m->wire);
        m->ram = NULL;
    }
}

struct machine *machine_start(unsigned n, const char *extra, const char *args)
{
    unsigned i;

    qtest_end_leftovers();
    for (i = 0; i < MACHINES; i++) {
        drop(&machines[i]);
    }
    return machine_start_beside(n, extra, args);
}

struct machine *machine_start_beside(unsigned n, const char *extra, const char *args)
{
    struct machine *m = machines;
    GString *line = g_string_new(args);
    unsigned i;
    int ram, wire;

    while (m < machines + MACHINES && m->ram) {
        m++;
    }
    T_TRUE(m < machines + MACHINES && n <= MACHINE_FUNCTIONS);
    memset(m, 0, sizeof(*m));
    m->n = n;
    m->alloc_next = alloc_first;
    ram = make_ram(m);
    wire = make_wire(m);
    g_string_append_printf(line,
                           " -object memory-backend-file,id=ram,size=%u,share=on,"
                           "mem-path=/proc/self/fd/%d -machine memory-backend=ram"
                           " -netdev dgram,id=wire,local.type=fd,local.str=%d"
                           " -netdev hubport,id=wireport,hubid=0,netdev=wire",
                           MACHINE_RAM, ram, wire);
    /* Hot plug by the ports' own registers, not by ACPI. */
    g_string_append_printf(line,
                           " -m %u -d guest_errors "
                           "-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
                           MACHINE_RAM >> 20);
    for (i = 0; i < n; i++) {
        g_string_append_printf(line,
                               " -device pcie-root-port,id=rp%u,chassis=%u,slot=%u,"
                               "bus=pcie.0,addr=%u.0 -netdev hubport,id=net%u,hubid=0 "
                               "-device staghorn,id=a%u,bus=rp%u,netdev=net%u,"
                               "mac=52:54:00:00:00:%02x%s",
                               i, i + 1, i + 1, i + 2, i, i, i, i, i + 1, extra);
        m->f[i] = (struct function){ .m = m, .number = i, .bus = i + 1 };
    }
    m->q = qtest_start_beside(line->str);
    close(ram);
    close(wire);
    g_string_free(line, TRUE);
    machine_setup_ports(m);
    for (i = 0; i < n; i++) {
        m->f[i].vector_words = machine_alloc(m, 4 * MACHINE_VECTORS, 64);
        function_setup(&m->f[i]);
    }
    return m;
}

void machine_kill(struct machine *m)
{
    qtest_kill(m->q);
    m->q = NULL;
    drop(m);
}

void machine_stop(struct machine *m)
{
    qtest_stop(m->q);
    m->q = NULL;
    drop(m);
}

unsigned machine_strange_places(struct machine *m, uint64_t at[MACHINE_PLACES])
{
    struct function *f = &m->f[0], *g = &m->f[1];
    const uint64_t places[] = { f->regs,
                                f->doorbells,
                                f->msix & ~0xfffull,
                                g->regs,
                                g->doorbells,
                                g->msix & ~0xfffull,
                                MACHINE_CONFIG_0,
                                0xfee00000,   /* local APIC */
                                0x7000000000, /* nothing */
                                MACHINE_RAM - 4096,
                                MACHINE_RAM,
                                0xfffffffffffff000 };

    G_STATIC_ASSERT(G_N_ELEMENTS(places) == MACHINE_PLACES);
    memcpy(at, places, sizeof(places));
    return MACHINE_PLACES;
}

uint64_t machine_alloc(struct machine *m, size_t len, size_t align)
{
    uint64_t at = (m->alloc_next + align - 1) & ~(uint64_t)(align - 1);

    T_TRUE(at + len <= MACHINE_RAM);
    m->alloc_next = at + len;
    memset(m->ram + at, 0, len);
    return at;
}

void *machine_ptr(struct machine *m, uint64_t addr)
{
    T_TRUE(addr < MACHINE_RAM);
    return m->ram + addr;
}

/* ---- registers ---- */

uint32_t function_readl(struct function *f, uint32_t offset)
{
    return qtest_readl(f->m->q, f->regs + offset);
}

uint64_t function_readq(struct function *f, uint32_t offset)
{
    return qtest_readq(f->m->q, f->regs + offset);
}

void function_writel(struct function *f, uint32_t offset, uint32_t value)
{
    qtest_writel(f->m->q, f->regs + offset, value);
}

void function_writeq(struct function *f, uint32_t offset, uint64_t value)
{
    qtest_writeq(f->m->q, f->regs + offset, value);
}

void function_doorbell(struct function *f, unsigned page, unsigned offset, uint64_t value)
{
    qtest_writeq(f->m->q, f->doorbells + (uint64_t)page * SG_UAR_SIZE + offset, value);
}

bool function_raised(struct function *f, unsigned vector)
{
    uint32_t *word = machine_ptr(f->m, f->vector_words + 4 * vector);

    T_TRUE(vector < f->vectors);
    if (*word == 0) {
        return false;
    }
    T_EQ_U64(*word, VECTOR_MAGIC + vector);
    *word = 0;
    return true;
}

/* ---- resets ---- */

void function_flr(struct function *f)
{
    uint16_t control = function_config_readw(f, f->cap_express + PCI_EXP_DEVCTL);

    function_config_writew(f, f->cap_express + PCI_EXP_DEVCTL, control | PCI_EXP_DEVCTL_BCR_FLR);
    T_EQ_U64(function_config_readw(f, PCI_COMMAND), 0);
    function_setup(f);
}

void function_slot_off(struct function *f)
{
    unsigned express = port_find_cap(f, PCI_CAP_ID_EXP);
    uint16_t control = port_config_readw(f, express + PCI_EXP_SLTCTL);

    control |= PCI_EXP_SLTCTL_PCC | PCI_EXP_SLTCTL_PWR_IND_OFF;
    port_config_writew(f, express + PCI_EXP_SLTCTL, control);
}

void machine_reset(struct machine *m)
{
    unsigned i;

    qtest_qmp_ok(m->q, "{\"execute\": \"system_reset\"}");
    qtest_qmp_event(m->q, "RESET");
    machine_setup_ports(m);
    for (i = 0; i < m->n; i++) {
        function_setup(&m->f[i]);
    }
}

/* ---- the wire ---- */

void machine_wire_send(struct machine *m, const void *frame, size_t len)
{
    T_EQ_INT(send(m->wire, frame, len, 0), len);
}

/* Answers a request for the address of a function; false: it is another frame. */
static bool answer_arp(struct machine *m, const uint8_t *frame, size_t len)
{
    static const uint8_t request[10] = { 8, 6, 0, 1, 8, 0, 6, 4, 0, 1 };
    uint8_t answer[42], mac[6] = { 0x52, 0x54, 0, 0, 0, 0 };
    unsigned host;

    if (m->mute || len < 42 || memcmp(frame + 12, request, sizeof(request)) != 0 ||
        memcmp(frame + 38, "\x0a\x00\x00", 3) != 0 || frame[41] < 1 || frame[41] > m->n) {
        return false;
    }
    host = frame[41];
    mac[5] = host;
    memcpy(answer, frame + 6, 6);
    memcpy(answer + 6, mac, 6);
    memcpy(answer + 12, request, sizeof(request));
    answer[21] = 2;
    memcpy(answer + 22, mac, 6);
    memcpy(answer + 28, frame + 38, 4);
    memcpy(answer + 32, frame + 22, 10);
    machine_wire_send(m, answer, sizeof(answer));
    return true;
}

/* True: something was sent in answer. */
static bool drain_wire(struct machine *m)
{
    static uint8_t frame[1 << 17];
    bool answered = false;
    ssize_t n;

    while ((n = recv(m->wire, frame, sizeof(frame), MSG_DONTWAIT)) >= 0) {
        answered = answer_arp(m, frame, n) || answered;
        answered = (m->answer && m->answer(m, frame, n)) || answered;
        if (m->tap) {
            m->tap(m, frame, n);
        }
        if (m->other) {
            machine_wire_send(m->other, frame, n);
            answered = true;
        }
    }
    return answered;
}

static bool settle_round(struct machine *m)
{
    unsigned i;

    for (i = 0; i < SETTLE_ROUNDS && qtest_round(m->q); i++) {
    }
    return drain_wire(m);
}

void machine_settle(struct machine *m)
{
    bool more;

    do {
        more = settle_round(m);
        more = (m->other && settle_round(m->other)) || more;
    } while (more);
}

void machine_pass(struct machine *m, unsigned ms)
{
    while (ms--) {
        qtest_clock_step(m->q, 1000000);
        if (m->other) {
            qtest_clock_step(m->other->q, 1000000);
        }
        machine_settle(m);
    }
}

void machines_join(struct machine *m, struct machine *other)
{
    m->other = other;
    other->other = m;
}

void machines_part(struct machine *m)
{
    if (m->other) {
        m->other->other = NULL;
        m->other = NULL;
    }
}

unsigned machine_guest_errors(struct machine *m)
{
    char *text = qtest_stderr(m->q), *p = text;
    unsigned n = 0;

    while ((p = strchr(p, '\n'))) {
        n++;
        p++;
    }
    g_free(text);
    qtest_stderr_drop(m->q);
    return n;
}
