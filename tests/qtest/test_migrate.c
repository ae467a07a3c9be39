/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration, with the code that snapshots use too: the state of the PCI function is kept, the
 * adapter is in its reset state at the destination.  The state goes to a second QEMU, through a
 * file, or live through a socket.
 */
#include <glib.h>
#include <linux/pci_regs.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "driver.h"
#include "flash_make.h"
#include "tap.h"
#include "staghorn/regs.h"

#define PM_BASE 0x100000000ull /* the NVDIMM, with less than 4 GiB of memory */

enum { PATIENCE = 12000 }; /* times 5 ms */

static char *path; /* of the state */

/* Waits for the end of the migration; false: it failed. */
static bool migrated(struct machine *m)
{
    for (unsigned i = 0; i < PATIENCE; i++) {
        g_autofree char *answer = qtest_qmp(m->q, "{\"execute\": \"query-migrate\"}");

        if (strstr(answer, "\"status\": \"completed\"")) {
            return true;
        }
        if (strstr(answer, "\"status\": \"failed\"")) {
            return false;
        }
        g_usleep(5000);
    }
    T_FAIL("the migration does not end");
    return false;
}

static void wait_completed(struct machine *m)
{
    T_TRUE(migrated(m));
}

static void start_saving(struct machine *m)
{
    path = g_strdup_printf("/tmp/sg-state-%d", getpid());
    qtest_qmp_ok(m->q, "{\"execute\": \"migrate\", \"arguments\": {\"uri\": \"file:%s\"}}", path);
}

static void save(struct machine *m)
{
    start_saving(m);
    wait_completed(m);
    machine_stop(m);
}

/* The machine was started to wait for the state. */
static void load_into(struct machine *m)
{
    qtest_qmp_ok(m->q,
                 "{\"execute\": \"migrate-incoming\", \"arguments\": "
                 "{\"uri\": \"file:%s\"}}",
                 path);
    wait_completed(m);
    unlink(path);
    g_free(path);
}

static struct machine *load_with(unsigned functions, const char *extra)
{
    struct machine *m = machine_start(functions, extra, "-incoming defer ");

    load_into(m);
    return m;
}

static struct machine *load(unsigned functions)
{
    return load_with(functions, "");
}

/* What the bus sees of a function. */
struct migrate_seen {
    uint32_t bar0, bar2;
    uint16_t command, msix;
};

static struct migrate_seen look(struct function *f)
{
    return (struct migrate_seen){
        .bar0 = function_config_readl(f, PCI_BASE_ADDRESS_0),
        .bar2 = function_config_readl(f, PCI_BASE_ADDRESS_2),
        .command = function_config_readw(f, PCI_COMMAND),
        .msix = function_config_readw(f, f->cap_msix + PCI_MSIX_FLAGS),
    };
}

/* BARs, bus mastering and MSI-X are as they were; registers are as after a reset. */
static void check_arrived(struct function *f, struct migrate_seen before)
{
    struct migrate_seen now = look(f);

    T_EQ_U64(now.bar0, before.bar0);
    T_EQ_U64(now.bar2, before.bar2);
    T_EQ_U64(now.command, before.command);
    T_EQ_U64(now.msix, before.msix);
    T_EQ_U64(function_readl(f, SG_REG_MAGIC), SG_MAGIC);
    T_EQ_U64(function_readl(f, SG_REG_CTRL), 0);
    T_EQ_U64(function_readl(f, SG_REG_STATUS) & (SG_STATUS_READY | SG_STATUS_FATAL), 0);
    function_raised(f, 1);
    function_writel(f, SG_REG_TEST_IRQ, 1);
    T_TRUE(function_raised(f, 1));
}

static void function_goes_along(void)
{
    struct machine *m = machine_start(1, "", "");
    struct migrate_seen before;
    uint64_t vector = m->f[0].vector_words;

    function_writel(&m->f[0], SG_REG_CTRL, SG_CTRL_RESET);
    before = look(&m->f[0]);
    save(m);
    m = load(1);
    T_EQ_U64(m->f[0].vector_words, vector);
    check_arrived(&m->f[0], before);
    machine_stop(m);
}

/* Connected queue pairs are reset, and both sides can start anew. */
static void adapters_start_anew(void)
{
    struct machine *m = machine_start(2, "", "");
    struct qtest_side a, b;

    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    sides_connect(&a, &b, 4000);
    T_TRUE(function_readl(&m->f[0], SG_REG_STATUS) & SG_STATUS_READY);
    save(m);
    m = load(2);
    T_TRUE(!(function_readl(&m->f[0], SG_REG_STATUS) & SG_STATUS_READY));
    T_EQ_U64(function_readl(&m->f[0], SG_REG_CTRL), 0);
    /* Doorbells of the former queues have no effect now. */
    function_doorbell(&m->f[0], 0, SG_DB_SQ, 1);
    function_doorbell(&m->f[1], 0, SG_DB_RQ, 1);
    machine_settle(m);
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    sides_connect(&a, &b, 4000);
    machine_stop(m);
}

static void expect_state(struct machine *m, const char *state)
{
    g_autofree char *answer = qtest_qmp(m->q, "{\"execute\": \"query-status\"}");
    g_autofree char *wanted = g_strdup_printf("\"status\": \"%s\"", state);

    if (!strstr(answer, wanted)) {
        T_FAIL("%s instead of %s", answer, state);
    }
}

/* Both QEMUs run, before and after. */
static void move(struct machine *from, struct machine *to)
{
    g_autofree char *uri = g_strdup_printf("unix:/tmp/sg-move-%d", getpid());

    expect_state(to, "inmigrate");
    qtest_qmp_ok(to->q, "{\"execute\": \"migrate-incoming\", \"arguments\": {\"uri\": \"%s\"}}",
                 uri);
    qtest_qmp_ok(from->q, "{\"execute\": \"migrate\", \"arguments\": {\"uri\": \"%s\"}}", uri);
    wait_completed(from);
    wait_completed(to);
    unlink(uri + strlen("unix:"));
    expect_state(from, "postmigrate");
    expect_state(to, "running");
}

static struct machine *destination(unsigned functions, const char *extra)
{
    return machine_start_beside(functions, extra, "-incoming defer ");
}

static void live(void)
{
    struct machine *m = machine_start(1, "", ""), *to = destination(1, "");
    struct qtest_side a;
    struct migrate_seen before;
    uint32_t word;

    side_start(&a, &m->f[0]);
    memset(side_ptr(&a, 0), 0x3c, SIDE_BUFFER);
    before = look(&m->f[0]);
    move(m, to);
    T_EQ_MEM(machine_ptr(to, a.buffer), machine_ptr(m, a.buffer), SIDE_BUFFER);
    check_arrived(&to->f[0], before);
    /* The adapter of the source machine is not reset. */
    T_TRUE(function_readl(&m->f[0], SG_REG_STATUS) & SG_STATUS_READY);
    machine_stop(m);
    side_start(&a, &to->f[0]);
    word = function_readl(&to->f[0], SG_REG_STATUS);
    T_EQ_U64(word & (SG_STATUS_READY | SG_STATUS_FATAL), SG_STATUS_READY);
    machine_stop(to);
}

static void pass_until_event(struct qtest_side *s, enum sg_event event, enum sg_cm_status status)
{
    struct sg_eqe e;
    unsigned i;

    for (i = 0; i < 100 && !md_next_async(&s->md, &e); i++) {
        qtest_clock_step(s->f->m->q, 100000000);
        machine_settle(s->f->m);
    }
    T_TRUE(i < 100);
    T_EQ_U64(e.event, event);
    T_EQ_U64(e.cm_status, status);
}

static void send_one(struct qtest_side *from, struct qtest_side *to)
{
    struct sg_cqe c;

    memset(side_ptr(from, 0), 0xa7, 3000);
    memset(side_ptr(to, 0), 0, 3000);
    md_post_recv(&to->qp, 1, to->buffer, 3000, to->stag);
    md_post_send(&from->qp, &(struct md_wr){
                                .opcode = SG_WR_SEND,
                                .addr = from->buffer,
                                .len = 3000,
                                .lkey = from->stag,
                            });
    c = side_completion(from, 200);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    c = side_completion(to, 200);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    T_EQ_MEM(side_ptr(to, 0), side_ptr(from, 0), 3000);
}

/*
 * The peer is in a third machine.  The migrated adapter does not know the connection and does not
 * answer.  So the peer notices the end after its peer-timeout, and the two can connect again.
 */
static void live_connected(void)
{
    static const char extra[] = ",peer-timeout=2";
    struct machine *peers = machine_start(2, extra, "");
    struct machine *m = machine_start_beside(2, extra, ""), *to = destination(2, extra);
    struct qtest_side a, b;
    struct sg_cqe c;

    machines_join(m, peers);
    side_start(&a, &m->f[0]);
    side_start(&b, &peers->f[1]);
    sides_connect(&a, &b, 4000);
    send_one(&a, &b);
    move(m, to);
    machines_part(m);
    machine_stop(m);
    machines_join(to, peers);
    T_EQ_U64(function_readl(&to->f[0], SG_REG_STATUS) & SG_STATUS_READY, 0);
    T_EQ_U64(md_qp_state(&b.qp), SG_QP_RTS);
    side_start(&a, &to->f[0]);
    md_post_recv(&b.qp, 9, b.buffer, 64, b.stag);
    pass_until_event(&b, SG_EV_CM_DISCONNECT, SG_CM_TIMEOUT);
    c = side_completion(&b, 200);
    T_EQ_U64(c.status, SG_WC_FLUSH_ERR);
    T_EQ_U64(sg_get_le64(&c.wr_id), 9);
    pass_until_event(&b, SG_EV_CM_CLOSED, SG_CM_TIMEOUT);
    T_EQ_U64(md_modify_qp(&b.qp, SG_QP_IDLE), SG_OK);
    sides_connect(&a, &b, 4001);
    send_one(&a, &b);
    send_one(&b, &a);
    machine_stop(to);
    machine_stop(peers);
}

/* Arguments of a machine whose NVDIMM has this media file. */
static char *domain_arguments(const char *media, const char *domain, const char *more)
{
    return g_strdup_printf(
        "-machine nvdimm=on -m slots=4,maxmem=8G -object staghorn-domain,id=dom0%s "
        "-object memory-backend-file,id=mem1,size=32M,share=off,mem-path=%s "
        "-device nvdimm,memdev=mem1 %s",
        domain, media, more);
}

static void make_media(char *media)
{
    int fd = g_mkstemp(media);

    T_TRUE(fd >= 0 && ftruncate(fd, 32 << 20) == 0);
    close(fd);
}

/* What is visible reaches the media before the state ends; the destination reads it there. */
static void with_a_domain(void)
{
    enum { OFFSET = 12345, LEN = 70000 };
    char media[] = "/tmp/sg-media-XXXXXX";
    g_autofree char *args = NULL, *incoming = NULL;
    uint8_t octets[LEN];
    struct machine *m;

    make_media(media);
    args = domain_arguments(media, "", "");
    incoming = domain_arguments(media, "", "-incoming defer ");
    m = machine_start(1, "", args);
    qtest_memset(m->q, PM_BASE + OFFSET, 0x5a, LEN);
    save(m);
    m = machine_start(1, "", incoming);
    load_into(m);
    qtest_memread(m->q, PM_BASE + OFFSET, octets, LEN);
    for (size_t i = 0; i < LEN; i++) {
        T_EQ_U64(octets[i], 0x5a);
    }
    machine_stop(m);
    unlink(media);
}

static void not_if_the_media_refuse(void)
{
    char media[] = "/tmp/sg-media-XXXXXX";
    g_autofree char *args = NULL;
    struct machine *m;

    make_media(media);
    args = domain_arguments(media, ",read-only=on", "");
    m = machine_start(1, "", args);
    qtest_memset(m->q, PM_BASE, 0x5a, 64);
    start_saving(m);
    T_TRUE(!migrated(m));
    unlink(path);
    g_free(path);
    machine_stop(m);
    unlink(media);
}

/* Vital product data that were read before do not prevent migration. */
static void flash_image(void)
{
    size_t len;
    uint8_t *fw = make_firmware("3.2.1", "full", 2, &len), *chip = make_chip(fw, len);
    g_autofree char *file = g_strdup_printf("/tmp/sg-image-%d", getpid());
    g_autofree char *extra = g_strdup_printf(",romfile=%s", file);
    struct machine *m;
    unsigned cap;

    T_TRUE(g_file_set_contents(file, (char *)chip, SG_FLASH_SIZE, NULL));
    m = machine_start(1, extra, "");
    cap = function_find_cap(&m->f[0], PCI_CAP_ID_VPD);
    function_config_writew(&m->f[0], cap + PCI_VPD_ADDR, 4);
    T_TRUE(function_config_readl(&m->f[0], cap + PCI_VPD_DATA));
    save(m);
    m = load_with(1, extra);
    T_EQ_U64(function_readl(&m->f[0], SG_REG_FW_VERSION), 0x030201);
    machine_stop(m);
    unlink(file);
    g_free(chip);
    g_free(fw);
}

static const struct t_case cases[] = {
    { "migration: the function is as it was", function_goes_along },
    { "migration: adapters start anew", adapters_start_anew },
    { "migration: with a persistence domain", with_a_domain },
    { "migration: refused while media refuse what is visible", not_if_the_media_refuse },
    { "with a flash image", flash_image },
    { "live: two QEMUs at once", live },
    { "live: the peer of what was connected is told", live_connected },
};

T_MAIN(cases)
