/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Target "guest": a whole hostile guest against the device in QEMU.
 *
 * An input is a program of steps, each one octet and its operands.  Steps do what a driver would
 * do, with some fields changed by the input, so that most commands pass the first checks.  Between
 * them come registers of all widths, configuration space, MSI-X entries aimed at devices, page
 * lists, resets, unplugging, the flash, frames, and time.  The next input begins with a reset,
 * after which both adapters must come up (world_begin()).
 */
#include <glib.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <sys/socket.h>

#include "guest_command.h"
#include "tap.h"

enum { STEPS = 160 };

/* ---- registers ---- */

static void write_sized(uint64_t addr, uint64_t v, unsigned size)
{
    switch (size) {
    case 1:
        qtest_writeb(w.m->q, addr, (uint8_t)v);
        break;
    case 2:
        qtest_writew(w.m->q, addr, (uint16_t)v);
        break;
    case 4:
        qtest_writel(w.m->q, addr, (uint32_t)v);
        break;
    default:
        qtest_writeq(w.m->q, addr, v);
    }
}

static void read_sized(uint64_t addr, unsigned size)
{
    switch (size) {
    case 1:
        qtest_readb(w.m->q, addr);
        break;
    case 2:
        qtest_readw(w.m->q, addr);
        break;
    case 4:
        qtest_readl(w.m->q, addr);
        break;
    default:
        qtest_readq(w.m->q, addr);
    }
}

static unsigned size(void)
{
    static const uint8_t sizes[] = { 4, 4, 4, 8, 8, 2, 1, 4 };

    return sizes[fuzz_below(&w.in, 8)];
}

/* CTRL and ADMIN_DB end most activity, so this step rarely writes them. */
static void register_write(void)
{
    uint32_t reg = 4 * fuzz_below(&w.in, 0x100 / 4);

    if (fuzz_rarely(&w.in, 4)) {
        reg = SG_REG_EQ_DB + 4 * fuzz_below(&w.in, SG_EQ_COUNT + 2);
    } else if (fuzz_rarely(&w.in, 16)) {
        reg = fuzz_u16(&w.in);
    }
    if ((reg / 4 != SG_REG_CTRL / 4 && reg / 4 != SG_REG_ADMIN_DB / 4) || fuzz_rarely(&w.in, 16)) {
        write_sized(w.m->f[0].regs + reg, guest_value(), size());
    }
}

static void register_read(void)
{
    uint64_t base = fuzz_below(&w.in, 3)   ? w.m->f[0].regs
                    : fuzz_below(&w.in, 2) ? w.m->f[0].doorbells
                                           : w.m->f[0].msix;

    read_sized(base + (fuzz_rarely(&w.in, 4) ? fuzz_u16(&w.in) : fuzz_u8(&w.in)), size());
}

static void doorbell(void)
{
    uint64_t at = w.m->f[0].doorbells;
    uint32_t offset = 8 * fuzz_below(&w.in, 5);
    uint32_t number = offset == SG_DB_CQ_ARM ? w.a.cq.cqn : w.a.qp.qpn;
    uint32_t index = w.a.qp.sq.prod + fuzz_below(&w.in, 4);

    if (fuzz_rarely(&w.in, 4)) {
        number = (uint32_t)guest_value();
    }
    if (fuzz_rarely(&w.in, 4)) {
        index = (uint32_t)fuzz_edgy(&w.in);
    }
    if (fuzz_rarely(&w.in, 8)) {
        at += SG_UAR_SIZE * (uint64_t)fuzz_below(&w.in, SG_UAR_COUNT);
    }
    if (fuzz_rarely(&w.in, 8)) {
        write_sized(at + fuzz_u16(&w.in) % SG_UAR_SIZE, guest_value(), size());
    } else {
        qtest_writeq(w.m->q, at + offset, number | (uint64_t)index << 32);
    }
}

static void msix(void)
{
    struct function *f = &w.m->f[0];
    uint64_t entry = f->msix_table + PCI_MSIX_ENTRY_SIZE * (uint64_t)fuzz_below(&w.in, 4);
    uint64_t at = fuzz_below(&w.in, 2) ? guest_register() : guest_place();

    switch (fuzz_below(&w.in, 4)) {
    case 0: /* anything anywhere in the BAR, the pending bits too */
        write_sized(f->msix + fuzz_u16(&w.in) % 0x1000, guest_value(), size());
        break;
    case 1:
        qtest_writel(w.m->q, entry + PCI_MSIX_ENTRY_VECTOR_CTRL, fuzz_below(&w.in, 2));
        break;
    default:
        qtest_writel(w.m->q, entry + PCI_MSIX_ENTRY_LOWER_ADDR, (uint32_t)at);
        qtest_writel(w.m->q, entry + PCI_MSIX_ENTRY_UPPER_ADDR, at >> 32);
        qtest_writel(w.m->q, entry + PCI_MSIX_ENTRY_DATA, (uint32_t)guest_value());
        if (fuzz_below(&w.in, 2)) {
            qtest_writel(w.m->q, w.m->f[0].regs + SG_REG_TEST_IRQ, fuzz_below(&w.in, 4));
        }
    }
}

static void config(void)
{
    struct function *f = &w.m->f[0];

    switch (fuzz_below(&w.in, 6)) {
    case 0:
        function_config_writew(f, PCI_COMMAND, fuzz_u8(&w.in) & 7);
        break;
    case 1:
        function_config_writew(f, f->cap_msix + PCI_MSIX_FLAGS, (uint16_t)(fuzz_u8(&w.in) << 8));
        break;
    case 2: /* a power state; D0 most likely */
        function_config_writew(f, f->cap_pm + PCI_PM_CTRL, fuzz_below(&w.in, 4));
        break;
    case 3:
        write_sized(world_config(0, PCI_BASE_ADDRESS_0 + 4 * fuzz_below(&w.in, 6)), guest_place(),
                    4);
        break;
    case 4:
        function_setup(f);
        break;
    default:
        write_sized(world_config(0, fuzz_u16(&w.in) % PCI_CFG_SPACE_EXP_SIZE), guest_value(),
                    size());
    }
}

/* ---- work requests ---- */

static void put_behind(struct sg_wqe_hdr *h)
{
    struct sg_wqe_bind *bind = (struct sg_wqe_bind *)(h + 1);
    struct sg_wqe_place *at = (struct sg_wqe_place *)(h + 1);
    struct sg_wqe_reg *reg = (struct sg_wqe_reg *)(h + 1);

    switch (h->opcode) {
    case SG_WR_BIND_MW:
        sg_put_le32(&bind->stag, w.window);
        sg_put_le32(&bind->mr_stag, fuzz_below(&w.in, 2) ? w.paged : w.a.stag);
        sg_put_le32(&bind->access, fuzz_u16(&w.in) & 0x17f);
        sg_put_le64(&bind->va, w.a.buffer + fuzz_u16(&w.in));
        sg_put_le64(&bind->length, fuzz_u16(&w.in));
        break;
    case SG_WR_FLUSH:
    case SG_WR_VERIFY:
        h->num_sge = 0;
        sg_put_le32(&at->length, fuzz_u16(&w.in));
        sg_put_le32(&at->flags, h->opcode == SG_WR_FLUSH ? 1 + fuzz_below(&w.in, 7) : 0);
        break;
    case SG_WR_REG_MR:
        sg_put_le32(&reg->stag, w.a.stag);
        sg_put_le64(&reg->length, fuzz_u16(&w.in));
        sg_put_le64(&reg->pbl_addr, guest_page_list());
        sg_put_le32(&reg->npages, fuzz_below(&w.in, GUEST_LIST));
        reg->page_shift = 12 + fuzz_below(&w.in, 20);
        break;
    }
}

static void spoil(void *slot, unsigned len)
{
    unsigned i;

    for (i = fuzz_rarely(&w.in, 4) ? 3 : 0; i; i--) {
        ((uint8_t *)slot)[fuzz_u8(&w.in) % len] = fuzz_u8(&w.in);
    }
}

static void send_entry(void)
{
    struct md_wr wr = {
        .opcode = fuzz_below(&w.in, SG_WR_ATOMIC_WRITE + 2),
        .flags = fuzz_below(&w.in, 16),
        .wr_id = 7,
        .addr = w.a.buffer + fuzz_u16(&w.in) % SIDE_BUFFER,
        .lkey = w.a.stag,
        .len = fuzz_u16(&w.in) % 5000,
        .raddr = w.b.buffer + fuzz_u16(&w.in),
        .rkey = w.b.stag,
        .inv_stag = fuzz_rarely(&w.in, 2) ? w.window : 0,
    };
    struct sg_wqe_hdr *h;

    if (fuzz_rarely(&w.in, 8)) {
        wr.addr = guest_place();
        wr.lkey = fuzz_below(&w.in, 2) ? w.paged : fuzz_u32(&w.in);
    }
    if (fuzz_rarely(&w.in, 4)) {
        wr.raddr = WORLD_PM + fuzz_u16(&w.in);
        wr.rkey = w.pm_stag;
    }
    w.a.md.hold = true;
    h = md_sq_entry(&w.a.qp);
    w.a.qp.sq.prod--;
    md_post_send(&w.a.qp, &wr);
    put_behind(h);
    spoil(h, 128);
    w.a.md.hold = false;
    if (fuzz_below(&w.in, 2)) {
        md_sq_doorbell(&w.a.qp);
    }
}

static void receive_entry(void)
{
    struct sg_rqe_hdr *h = md_rq_entry(&w.a.qp);

    w.a.qp.rq.prod--;
    w.a.md.hold = true;
    md_post_recv(&w.a.qp, 3, fuzz_rarely(&w.in, 8) ? guest_place() : w.a.buffer, fuzz_u16(&w.in),
                 w.a.stag);
    spoil(h, 32);
    w.a.md.hold = false;
}

static void scribble(void)
{
    uint64_t at = guest_memory();
    size_t n = fuzz_u8(&w.in), room = MACHINE_RAM - at;
    const uint8_t *from = fuzz_bytes(&w.in, &n);

    memcpy(machine_ptr(w.m, at), from, SG_MIN(n, room));
}

/* ---- the rest of the machine ---- */

static void peer(void)
{
    static const uint8_t opcodes[] = { SG_WR_SEND, SG_WR_WRITE, SG_WR_READ };

    world_drain(&w.b);
    if (!w.pm_stag) {
        struct sg_cmd_reg_mr c =
            md_reg_mr_cmd(w.b.pd, WORLD_PM, 1 << 20, WORLD_RIGHTS | SG_ACCESS_FLUSH_PERSISTENT);
        struct sg_admin_rsp rsp;

        w.pm_stag = world_cmd(&w.b, &c, sizeof(c), &rsp) ? sg_get_le32(&rsp.id) : 0;
    }
    md_post_recv(&w.b.qp, 1, w.b.buffer, SIDE_BUFFER, w.b.stag);
    md_post_send(&w.b.qp, &(struct md_wr){
                              .opcode = opcodes[fuzz_below(&w.in, 3)],
                              .addr = w.b.buffer,
                              .len = fuzz_u16(&w.in) % 5000,
                              .lkey = w.b.stag,
                              .raddr = w.a.buffer,
                              .rkey = w.a.stag,
                          });
}

static void reset(void)
{
    struct function *f = &w.m->f[0];
    uint64_t bridge = world_port_config(0, PCI_BRIDGE_CONTROL);

    w.resets++;
    switch (fuzz_below(&w.in, 8)) {
    case 0:
        function_config_writew(f, f->cap_express + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_BCR_FLR);
        break;
    case 1:
        qtest_writew(w.m->q, bridge, PCI_BRIDGE_CTL_BUS_RESET);
        qtest_writew(w.m->q, bridge, 0);
        break;
    case 2:
        if (world_is_plugged(0)) {
            world_unplug();
        }
        break;
    case 3:
        machine_reset(w.m);
        break;
    case 4:
        function_writel(f, SG_REG_CTRL, fuzz_below(&w.in, 4));
        return;
    default:
        function_writel(f, SG_REG_CTRL, SG_CTRL_RESET);
    }
    if (fuzz_below(&w.in, 4)) {
        if (!world_is_plugged(0) && fuzz_below(&w.in, 2)) {
            world_plug(0);
        }
        function_setup(f);
        world_bring_up();
    }
}

/* From the wire, or from the NIC model behind the port. */
static void frame(void)
{
    static const uint8_t own[] = { 0x52, 0x54, 0, 0, 0, 1 };
    uint8_t buf[300] = { 0 };
    size_t n = 20 + fuzz_u8(&w.in);
    const uint8_t *from = fuzz_bytes(&w.in, &n);

    memcpy(buf + 12, from, n);
    memcpy(buf, own, sizeof(own));
    buf[0] |= fuzz_rarely(&w.in, 4) ? 0xff : 0;
    w.frames++;
    if (send(fuzz_below(&w.in, 2) ? w.m->wire : w.nic, buf, 12 + SG_MAX(n, 8), MSG_DONTWAIT) > 0) {
        machine_settle(w.m);
    }
}

static void owner(void)
{
    switch (fuzz_below(&w.in, 3)) {
    case 0:
        g_free(qtest_qmp(w.m->q,
                         "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"a0\", "
                         "\"up\": %s}}",
                         fuzz_below(&w.in, 2) ? "true" : "false"));
        break;
    case 1:
        g_free(qtest_qmp(w.m->q, "{\"execute\": \"qom-set\", \"arguments\": {\"path\": "
                                 "\"/machine/peripheral/a0\", \"property\": \"fatal\", "
                                 "\"value\": true}}"));
        break;
    default: /* a CPU's store to persistent memory */
        write_sized(WORLD_PM + fuzz_u16(&w.in), fuzz_u64(&w.in), size());
    }
}

static void pass(void)
{
    unsigned ticks = 1 + fuzz_below(&w.in, 4);

    while (ticks--) {
        qtest_clock_step(w.m->q, 1 + ((uint64_t)1 << fuzz_below(&w.in, 33)));
        machine_settle(w.m);
    }
}

static void drain(void)
{
    world_drain(&w.a);
}
static void settle(void)
{
    machine_settle(w.m);
}
static void arm(void)
{
    md_arm(&w.a.cq, fuzz_below(&w.in, 2));
    md_arm_eq(&w.a.md, 1);
}
static void arm_async(void)
{
    md_arm_eq(&w.a.md, 0);
}

static void (*const steps[])(void) = {
    register_write, register_read, doorbell,      doorbell,      msix,
    msix,           config,        guest_command, guest_command, guest_command,
    guest_command,  guest_command, send_entry,    send_entry,    send_entry,
    receive_entry,  scribble,      peer,          reset,         frame,
    owner,          pass,          drain,         settle,        arm,
    arm_async,      world_connect
};

bool fuzz_reached(char *buf, size_t len)
{
    snprintf(buf, len,
             "%llu commands, %llu good; %llu connections, %llu completions, %llu resets, "
             "%llu unplugged, %llu frames",
             w.commands, w.good, w.connected, w.completions, w.resets, w.unplugs, w.frames);
    return w.good && w.connected && w.completions && w.resets && w.unplugs && w.frames;
}

static void play(void)
{
    unsigned n;

    world_begin();
    if (fuzz_below(&w.in, 2)) {
        world_connect();
    }
    for (n = 0; n < STEPS && w.in.len; n++) {
        steps[fuzz_below(&w.in, SG_ARRAY_SIZE(steps))]();
    }
    machine_settle(w.m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_)
{
    w.in = (struct fuzz_in){ data, size_ };
    play();
    return 0;
}
