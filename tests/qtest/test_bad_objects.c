/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile kernel and the objects in its memory: shared receive queues, completion queues that
 * change size, pages on demand, windows; and resets with commands under way.  As in test_garbage.c,
 * the adapter must report a clear status where one is due, must not harm other objects, and must
 * work again after a reset at the latest.
 */
#include <glib.h>

#include "base/bytes.h"
#include "driver.h"
#include "tap.h"

static struct machine *m;
static struct qtest_side a, b;

static void start(void)
{
    m = machine_start(2, "", "");
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
}

/* Brings both sides up anew, whatever their state is. */
static void start_over(void)
{
    side_start(&a, &m->f[0]);
    side_start(&b, &m->f[1]);
    sides_connect(&a, &b, 4000);
}

static struct md_wr send_of(struct qtest_side *from, uint32_t len)
{
    return (struct md_wr){
        .opcode = SG_WR_SEND,
        .wr_id = 42,
        .addr = from->buffer,
        .len = len,
        .lkey = from->stag,
    };
}

static void expect_working(void)
{
    struct md_wr w = send_of(&a, 64);
    struct sg_cqe c;

    memset(side_ptr(&a, 0), 0x33, 64);
    memset(side_ptr(&b, 0), 0, 64);
    md_post_recv(&b.qp, 1, b.buffer, 64, b.stag);
    md_post_send(&a.qp, &w);
    c = side_completion(&a, 100);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    c = side_completion(&b, 100);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    T_EQ_MEM(side_ptr(&b, 0), side_ptr(&a, 0), 64);
}

static void expect_alive(void)
{
    T_EQ_U64(function_readl(&m->f[0], SG_REG_MAGIC), SG_MAGIC);
    T_EQ_U64(function_readl(&m->f[1], SG_REG_MAGIC), SG_MAGIC);
}

/* Gives b's queue pair a shared queue; connects again. */
static void share(struct md_srq *srq)
{
    T_EQ_U64(md_cmd_id(&b.md, SG_ADMIN_DESTROY_QP, b.qp.qpn), SG_OK);
    T_EQ_U64(md_cmd_id(&a.md, SG_ADMIN_DESTROY_QP, a.qp.qpn), SG_OK);
    md_create_qp(&a.md, &a.qp, &(struct md_qp_params){ .pd = a.pd, .scq = &a.cq, .rcq = &a.cq });
    md_create_qp(&b.md, &b.qp,
                 &(struct md_qp_params){
                     .pd = b.pd,
                     .scq = &b.cq,
                     .rcq = &b.cq,
                     .srq = srq,
                 });
    sides_connect(&a, &b, 4001);
}

/* ---- rings ---- */

/* Gives the queue this ring at creation or by a resize; false: refused. */
static bool shared_at(struct md_srq *srq, uint64_t place, bool resized)
{
    struct sg_cmd_resize_srq r = { .hdr.opcode = SG_ADMIN_RESIZE_SRQ };
    struct sg_cmd_create_srq c = md_create_srq_cmd(&b.md, b.pd, 16);
    struct sg_admin_rsp rsp;

    if (!resized) {
        sg_put_le64(&c.pages.addr, place);
    }
    if (md_cmd(&b.md, &c, sizeof(c), &rsp) != SG_OK) {
        return false;
    }
    *srq = (struct md_srq){ .md = &b.md, .srqn = sg_get_le32(&rsp.id) };
    if (!resized) {
        return true;
    }
    r.srqn = rsp.id;
    r.entries = c.entries;
    r.pages = c.pages;
    sg_put_le64(&r.pages.addr, place);
    return md_cmd(&b.md, &r, sizeof(r), NULL) == SG_OK;
}

static void shared_queues(void)
{
    uint64_t places[MACHINE_PLACES];
    unsigned n, i;

    start();
    n = machine_strange_places(m, places);
    for (i = 0; i < 2 * n; i++) {
        struct md_srq srq;
        struct md_wr w;

        T_CONTEXT("shared queue %s 0x%" PRIx64, i & 1 ? "moved to" : "at", places[i / 2]);
        side_start(&a, &m->f[0]);
        side_start(&b, &m->f[1]);
        if (!shared_at(&srq, places[i / 2], i & 1)) {
            continue;
        }
        share(&srq);
        md_doorbell(&b.md, 0, SG_DB_SRQ, srq.srqn, 16);
        w = send_of(&a, 64);
        md_post_send(&a.qp, &w);
        machine_pass(m, 5);
        expect_alive();
        /* The memory there has no entry with that index, or cannot be read. */
        T_EQ_U64(md_qp_state(&b.qp), SG_QP_ERROR);
        T_FALSE(function_readl(&m->f[1], SG_REG_STATUS) & SG_STATUS_FATAL);
    }
    start_over();
    expect_working();
    machine_stop(m);
}

static void shared_queue_doorbells(void)
{
    struct sg_cqe c;
    struct sg_eqe e;
    struct md_srq srq;
    struct md_wr w;

    start();
    md_create_srq(&b.md, &srq, b.pd, 16);
    share(&srq);
    machine_guest_errors(m);
    T_CONTEXT("another page");
    md_doorbell(&b.md, 3, SG_DB_SRQ, srq.srqn, 1);
    T_EQ_U64(machine_guest_errors(m), 1);
    T_CONTEXT("a receive doorbell of a queue pair that has none");
    md_doorbell(&b.md, 0, SG_DB_RQ, b.qp.qpn, 1);
    T_EQ_U64(machine_guest_errors(m), 1);
    T_CONTEXT("it still works");
    md_post_srq(&srq, 7, b.buffer, 64, b.stag);
    w = send_of(&a, 64);
    md_post_send(&a.qp, &w);
    T_EQ_U64(side_completion(&a, 100).status, SG_WC_SUCCESS);
    c = side_completion(&b, 100);
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le64(&c.wr_id), 7);
    T_CONTEXT("beyond the ring");
    md_doorbell(&b.md, 0, SG_DB_SRQ, srq.srqn, 1000);
    e = side_event(&b, SG_EV_SRQ_ERROR, 10);
    T_EQ_U64(sg_get_le32(&e.id), srq.srqn);
    T_EQ_U64(md_qp_state(&b.qp), SG_QP_RTS); /* until it needs an entry */
    machine_stop(m);
}

/* Rings and records of a completion queue that are moved to strange places while it is in use. */
static void resized_queues(void)
{
    uint64_t places[MACHINE_PLACES];
    unsigned n, i, k;

    start();
    n = machine_strange_places(m, places);
    for (i = 0; i < n; i++) {
        for (k = 0; k < 2; k++) {
            struct sg_cmd_resize_cq c = { .hdr.opcode = SG_ADMIN_RESIZE_CQ };
            struct sg_cmd_create_cq like;
            unsigned j;

            T_CONTEXT("%s at 0x%" PRIx64, k ? "record" : "ring", places[i]);
            start_over();
            like = md_create_cq_cmd(&a.md, 64);
            sg_put_le32(&c.cqn, a.cq.cqn);
            c.entries = like.entries;
            c.pages = like.pages;
            c.record = like.record;
            sg_put_le64(k ? (void *)&c.record : (void *)&c.pages.addr, places[i]);
            if (md_cmd(&a.md, &c, sizeof(c), NULL) != SG_OK) {
                continue;
            }
            for (j = 0; j < 16; j++) { /* as many as the send queue takes */
                struct md_wr w = { .opcode = SG_WR_WRITE, .raddr = b.buffer, .rkey = b.stag };

                md_post_send(&a.qp, &w);
            }
            machine_pass(m, 5);
            expect_alive();
            T_FALSE(function_readl(&m->f[1], SG_REG_STATUS) & SG_STATUS_FATAL);
        }
    }
    start_over();
    expect_working();
    machine_stop(m);
}

/* ---- pages on demand ---- */

static enum sg_status map(uint32_t stag, uint64_t list, uint64_t count)
{
    struct sg_cmd_map_pages c = { .hdr.opcode = SG_ADMIN_MAP_PAGES };

    sg_put_le32(&c.stag, stag);
    sg_put_le32(&c.op, SG_MAP_PAGES);
    sg_put_le64(&c.count, count);
    sg_put_le64(&c.list, list);
    return md_cmd(&b.md, &c, sizeof(c), NULL);
}

static uint32_t on_demand(void)
{
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(b.pd, 0, 8 * SG_PAGE_SIZE,
                                           SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ |
                                               SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_ATOMIC);
    struct sg_admin_rsp rsp;

    c.flags = SG_MR_ODP;
    sg_put_le64(&c.pages.addr, 0);
    T_EQ_U64(md_cmd(&b.md, &c, sizeof(c), &rsp), SG_OK);
    return sg_get_le32(&rsp.id);
}

static void strange_pages(void)
{
    static const uint8_t ops[] = { SG_WR_WRITE, SG_WR_READ };
    uint64_t places[MACHINE_PLACES], list;
    unsigned n, i, k;

    start();
    n = machine_strange_places(m, places);
    list = machine_alloc(m, SG_PAGE_SIZE, SG_PAGE_SIZE);
    for (i = 0; i < n; i++) {
        for (k = 0; k < G_N_ELEMENTS(ops); k++) {
            uint32_t stag;
            struct sg_cqe c;

            T_CONTEXT("page at 0x%" PRIx64 ", opcode %u", places[i], ops[k]);
            start_over();
            stag = on_demand();
            T_TRUE(map(stag, places[i], 1) != SG_OK || places[i] < MACHINE_RAM);
            sg_put_le64(machine_ptr(m, list), places[i] | 1);
            T_EQ_U64(map(stag, list, 1), SG_OK);
            md_post_send(&a.qp, &(struct md_wr){
                                    .opcode = ops[k],
                                    .addr = a.buffer,
                                    .len = 4000,
                                    .lkey = a.stag,
                                    .rkey = stag,
                                });
            T_TRUE(side_has_completion(&a, &c, 100));
            T_TRUE(c.status == SG_WC_SUCCESS || ops[k] == SG_WR_READ);
            machine_pass(m, 2);
            expect_alive();
            T_FALSE(function_readl(&m->f[1], SG_REG_STATUS) & SG_STATUS_FATAL);
        }
    }
    start_over();
    expect_working();
    machine_stop(m);
}

/* ---- resets ---- */

/* Posts each kind of command, valid or nearly valid, without waiting. */
static void submit_mixture(struct qtest_side *s, unsigned seed)
{
    struct md_qp_params params = { .pd = s->pd, .scq = &s->cq, .rcq = &s->cq };
    struct sg_cmd_reg_mr mr = md_reg_mr_cmd(s->pd, s->buffer, SIDE_BUFFER, SG_ACCESS_MW_BIND);
    struct sg_cmd_create_qp qp = md_create_qp_cmd(&s->md, &params);
    struct sg_cmd_create_cq cq = md_create_cq_cmd(&s->md, 64);
    struct sg_cmd_create_srq srq = md_create_srq_cmd(&s->md, s->pd, 16);
    struct sg_cmd_alloc_mw mw = { .hdr.opcode = SG_ADMIN_ALLOC_MW, .type = SG_MW_TYPE_1 };
    struct sg_cmd_listen listen = {
        .hdr.opcode = SG_ADMIN_LISTEN,
        .local = driver_addr(s->f->number, 5000),
    };
    struct sg_cmd_connect connect = {
        .hdr.opcode = SG_ADMIN_CONNECT,
        .local = driver_addr(s->f->number, 0),
        .remote = driver_addr(!s->f->number, 4000),
    };
    struct sg_cmd_id destroy = { .hdr.opcode = SG_ADMIN_DESTROY_QP };
    const struct {
        const void *cmd;
        size_t len;
    } all[] = {
        { &mr, sizeof(mr) },           { &qp, sizeof(qp) },           { &cq, sizeof(cq) },
        { &srq, sizeof(srq) },         { &mw, sizeof(mw) },           { &listen, sizeof(listen) },
        { &connect, sizeof(connect) }, { &destroy, sizeof(destroy) },
    };
    unsigned i;

    sg_put_le32(&mw.pd, s->pd);
    sg_put_le32(&listen.backlog, 1);
    sg_put_le32(&connect.qpn, s->qp.qpn);
    sg_put_le32(&destroy.id, s->qp.qpn);
    for (i = 0; i < 12; i++) {
        unsigned which = (seed + i) % G_N_ELEMENTS(all);

        md_submit(&s->md, all[which].cmd, all[which].len);
    }
}

static void by_register(struct function *f)
{
    function_writel(f, SG_REG_CTRL, SG_CTRL_RESET);
}

static void by_disable(struct function *f)
{
    function_writel(f, SG_REG_CTRL, 0);
}

static void by_flr(struct function *f)
{
    function_flr(f);
}

static void by_machine(struct function *f)
{
    machine_reset(f->m);
}

static void in_flight(void)
{
    static const struct {
        const char *name;
        void (*reset)(struct function *f);
    } ways[] = {
        { "CTRL.RESET", by_register },
        { "CTRL.ENABLE off", by_disable },
        { "FLR", by_flr },
        { "machine", by_machine },
    };
    unsigned i, seed;

    start();
    for (i = 0; i < G_N_ELEMENTS(ways); i++) {
        for (seed = 0; seed < 8; seed++) {
            struct md_wr w;

            T_CONTEXT("%s, mixture %u", ways[i].name, seed);
            start_over();
            md_post_recv(&b.qp, 1, b.buffer, SIDE_BUFFER, b.stag);
            a.md.hold = true;
            w = send_of(&a, SIDE_BUFFER);
            md_post_send(&a.qp, &w);
            submit_mixture(&a, seed);
            a.md.hold = false;
            ways[i].reset(&m->f[0]);
            T_FALSE(function_readl(&m->f[0], SG_REG_STATUS) & SG_STATUS_READY);
            machine_pass(m, 2);
        }
    }
    start_over();
    expect_working();
    machine_stop(m);
}

static const struct t_case cases[] = {
    { "DMA: shared receive queues in devices, in unmapped memory", shared_queues },
    { "doorbells: of shared receive queues", shared_queue_doorbells },
    { "DMA: completion queues that move there", resized_queues },
    { "DMA: pages on demand there", strange_pages },
    { "reset: commands under way", in_flight },
};

T_MAIN(cases)
