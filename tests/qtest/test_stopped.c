/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stopped machine: the adapter does not change its memory, and handles the events of that time
 * when the machine continues.
 */
#include <glib.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

enum { WRITES = 16, ENTRIES = 64, LENGTH = 4 << 20 };

static struct machine *m;
static struct qtest_side a, b;
static struct md_qp qp;   /* of a, with a longer queue */
static uint64_t from, to; /* LENGTH octets each */
static uint32_t from_stag, to_stag;

static void start(void)
{
    m = machine_start(2, "", "");
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    md_create_qp(&a.md, &qp,
                 &(struct md_qp_params){
                     .pd = a.pd,
                     .scq = &a.cq,
                     .rcq = &a.cq,
                     .entries = ENTRIES,
                 });
    a.qp = qp;
    from = machine_alloc(m, LENGTH, SG_PAGE_SIZE);
    to = machine_alloc(m, LENGTH, SG_PAGE_SIZE);
    from_stag = md_reg_mr(&a.md, a.pd, from, LENGTH, SG_ACCESS_LOCAL_WRITE);
    to_stag = md_reg_mr(&b.md, b.pd, to, LENGTH, SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_WRITE);
    sides_connect(&a, &b, 4000);
}

static void run(bool on)
{
    qtest_qmp_ok(m->q, "{\"execute\": \"%s\"}", on ? "cont" : "stop");
    qtest_qmp_event(m->q, on ? "RESUME" : "STOP");
}

/* Everything that the test has allocated. */
static uint8_t *snapshot(size_t *len)
{
    *len = m->alloc_next;
    return g_memdup2(machine_ptr(m, 0), *len);
}

static void expect_same(uint8_t *before, size_t len)
{
    size_t i;

    machine_settle(m);
    for (i = 0; i < len; i++) {
        if (before[i] != *(uint8_t *)machine_ptr(m, i)) {
            T_FAIL("a stopped machine's memory has changed at 0x%zx", i);
        }
    }
    g_free(before);
}

static void post_write(uint64_t wr_id)
{
    md_post_send(&a.qp, &(struct md_wr){
                            .opcode = SG_WR_WRITE,
                            .wr_id = wr_id,
                            .addr = from,
                            .len = LENGTH,
                            .lkey = from_stag,
                            .raddr = to,
                            .rkey = to_stag,
                        });
}

static void no_doorbell(void *opaque, uint32_t page, uint32_t offset, uint64_t value)
{
    (void)opaque, (void)page, (void)offset, (void)value;
}

/* A doorbell for more work than one turn does: the rest waits until the machine continues. */
static void under_way(void)
{
    const struct md_ops *ops;
    struct md_ops quiet;
    uint8_t *before;
    unsigned i;
    size_t len;

    start();
    ops = a.md.ops;
    quiet = *ops;
    quiet.doorbell = no_doorbell;
    a.md.ops = &quiet;
    a.md.hold = true;
    for (i = 0; i < WRITES; i++) {
        post_write(i);
    }
    a.md.ops = ops;
    md_sq_doorbell(&a.qp);
    a.md.hold = false;
    run(false);
    before = snapshot(&len);
    expect_same(before, len);
    run(true);
    for (i = 0; i < WRITES; i++) {
        struct sg_cqe c = side_completion(&a, 1000);

        T_EQ_U64(c.status, SG_WC_SUCCESS);
        T_EQ_U64(sg_get_le64(&c.wr_id), i);
    }
    machine_stop(m);
}

/* The CPUs of a stopped machine write nothing, but the test can. */
static void writes(void)
{
    struct sg_admin_hdr c = { .opcode = SG_ADMIN_NOP };
    struct sg_admin_rsp rsp;
    struct sg_cqe e;
    uint8_t *before;
    unsigned i;
    size_t len;

    start();
    run(false);
    a.md.hold = true;
    for (i = 0; i < 8; i++) {
        post_write(i);
    }
    md_submit(&a.md, &c, sizeof(c));
    function_writeq(&m->f[0], SG_REG_TEST_DMA_LO, a.buffer);
    function_writel(&m->f[0], SG_REG_TEST_DMA_LEN, 16);
    function_writel(&m->f[0], SG_REG_TEST_DMA_CMD, SG_TEST_DMA_FILL);
    function_writel(&m->f[0], SG_REG_TEST_IRQ, 3);
    before = snapshot(&len);
    expect_same(before, len);
    T_FALSE(function_raised(&m->f[0], 3));
    run(true);
    machine_settle(m);
    a.md.hold = false;
    T_TRUE(function_raised(&m->f[0], 3));
    T_EQ_U64(*side_ptr(&a, 5), 5);
    T_TRUE(md_reap(&a.md, &rsp));
    for (i = 0; i < 8; i++) {
        e = side_completion(&a, 1000);
        T_EQ_U64(sg_get_le64(&e.wr_id), i);
    }
    machine_stop(m);
}

static void link_and_fault(void)
{
    uint8_t *before;
    size_t len;

    start();
    run(false);
    before = snapshot(&len);
    qtest_qmp_ok(m->q, "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"a1\", "
                       "\"up\": false}}");
    qtest_qmp_ok(m->q, "{\"execute\": \"qom-set\", \"arguments\": {\"path\": "
                       "\"/machine/peripheral/a0\", \"property\": \"fatal\", \"value\": true}}");
    expect_same(before, len);
    run(true);
    machine_settle(m);
    side_event(&a, SG_EV_DEVICE_FATAL, 100);
    side_event(&b, SG_EV_PORT_DOWN, 100);
    machine_stop(m);
}

/* A reset while it is stopped; the adapters are like new when it continues. */
static void reset(void)
{
    uint8_t *before;
    size_t len;

    start();
    run(false);
    before = snapshot(&len);
    machine_reset(m);
    expect_same(before, len);
    run(true);
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    sides_connect(&a, &b, 4000);
    machine_stop(m);
}

static const struct t_case cases[] = {
    { "stopped: a transfer under way waits, and goes on", under_way },
    { "stopped: writes wait, in order", writes },
    { "stopped: link and fault are told afterwards", link_and_fault },
    { "stopped: a reset of the machine", reset },
};

T_MAIN(cases)
