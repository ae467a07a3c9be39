/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An interruption at any moment.  Two adapters use most features over a slow network in small
 * pieces: one connection is made, another one refused; Sends to a shared queue, Writes, Reads into
 * several elements, Atomics, Flushes and Verifies, a window, missing pages.  The scenario is the
 * same each time, up to a step at which something is removed: the adapter, the queue pair, the
 * connection, a region, pages, the memory under the rings.  Then time passes.  Only work that needs
 * the removed object may fail, and afterwards nothing is left.
 */
#include "pair_rig.h"

enum {
    STEPS = 1500, /* by then the scenario is usually complete */
    STRIDE = 13,
    BUDGET = 2048, /* octets of a turn */
    RIGHTS = SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_ATOMIC |
             SG_ACCESS_FLUSH_GLOBAL | SG_ACCESS_VERIFY,
    PAGED = 16, /* pages on demand */
};

static struct {
    struct md_srq srq;
    struct md_qp refused; /* of side 0: its connection is refused */
    uint32_t wide, paged, region, window, conn;
    uint64_t list;
    bool answered, started;
} o;

static void make_objects(void)
{
    struct pair_side *s = &pair.side[1];
    struct sg_cmd_reg_mr c;

    md_create_srq(&s->md, &o.srq, s->pd, 16);
    md_create_qp(&pair.side[0].md, &pair.side[0].qp,
                 &(struct md_qp_params){
                     .pd = pair.side[0].pd,
                     .scq = &pair.side[0].cq,
                     .rcq = &pair.side[0].cq,
                     .entries = 64,
                     .access = RIGHTS,
                 });
    md_create_qp(&pair.side[0].md, &o.refused,
                 &(struct md_qp_params){
                     .pd = pair.side[0].pd,
                     .scq = &pair.side[0].cq,
                     .rcq = &pair.side[0].cq,
                 });
    md_create_qp(&s->md, &s->qp,
                 &(struct md_qp_params){
                     .pd = s->pd,
                     .scq = &s->cq,
                     .rcq = &s->cq,
                     .srq = &o.srq,
                     .access = RIGHTS,
                 });
    c = md_reg_mr_cmd(s->pd, s->buf, PAIR_BUF, SG_ACCESS_LOCAL_WRITE | RIGHTS);
    c.hash_alg = SG_HASH_SHA256;
    o.wide = md_make(&s->md, &c, sizeof(c));
    c = md_reg_mr_cmd(s->pd, 0, PAGED * SG_PAGE_SIZE, SG_ACCESS_LOCAL_WRITE | RIGHTS);
    sg_put_le32(&c.access, SG_ACCESS_LOCAL_WRITE | (RIGHTS & ~SG_ACCESS_VERIFY));
    sg_put_le64(&c.pages.addr, 0);
    c.flags = SG_MR_ODP;
    o.paged = md_make(&s->md, &c, sizeof(c));
    o.region = md_reg_mr(&s->md, s->pd, s->buf, 8192, SG_ACCESS_MW_BIND | SG_ACCESS_LOCAL_WRITE);
    o.window = md_alloc_mw(&s->md, s->pd, SG_MW_TYPE_2);
    o.list = test_host_alloc(&s->h, SG_PAGE_SIZE, SG_PAGE_SIZE);
}

/* ---- what goes on ---- */

/* Rings a doorbell, of an adapter that may be gone. */
static void bell(struct md_qp *qp)
{
    md_doorbell(qp->md, 0, SG_DB_SQ, qp->qpn, qp->sq.prod);
}

static struct sg_wqe_hdr *entry(struct md_qp *qp, uint8_t opcode, uint32_t rkey, uint64_t to)
{
    struct sg_wqe_hdr *h = md_sq_entry(qp);

    h->opcode = opcode;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le32(&h->rkey, rkey);
    sg_put_le64(&h->remote_addr, to);
    return h;
}

static void element(struct sg_sge *e, uint32_t off, uint32_t len)
{
    sg_put_le64(&e->addr, pair.side[0].buf + off);
    sg_put_le32(&e->length, len);
    sg_put_le32(&e->lkey, pair.side[0].stag);
}

static void post_payload(uint8_t opcode, uint32_t rkey, uint64_t to, uint32_t len)
{
    struct sg_wqe_hdr *h = entry(&pair.side[0].qp, opcode, rkey, to);
    struct sg_sge *e = (struct sg_sge *)(h + 1);

    h->num_sge = 2;
    element(&e[0], 0, len / 3);
    element(&e[1], 100000, len - len / 3);
}

static void post_atomic(uint32_t rkey, uint64_t to)
{
    struct sg_wqe_hdr *h = entry(&pair.side[0].qp, SG_WR_FETCH_ADD, rkey, to);
    struct sg_wqe_atomic *a = (struct sg_wqe_atomic *)(h + 1);

    h->num_sge = 1;
    sg_put_le64(&a->data, 1);
    element((struct sg_sge *)(a + 1), 200000, 8);
}

static void post_place(uint8_t opcode, uint32_t rkey, uint64_t to, uint32_t len)
{
    struct sg_wqe_hdr *h = entry(&pair.side[0].qp, opcode, rkey, to);
    struct sg_wqe_place *p = (struct sg_wqe_place *)(h + 1);

    sg_put_le32(&p->length, len);
    sg_put_le32(&p->flags, opcode == SG_WR_FLUSH ? SG_FLUSH_GLOBAL : 0);
}

static void bind_window(void)
{
    struct sg_wqe_hdr *h = entry(&pair.side[1].qp, SG_WR_BIND_MW, 0, 0);
    struct sg_wqe_bind *b = (struct sg_wqe_bind *)(h + 1);

    sg_put_le32(&b->stag, o.window);
    sg_put_le32(&b->mr_stag, o.region);
    sg_put_le32(&b->access, SG_ACCESS_REMOTE_WRITE);
    sg_put_le64(&b->va, pair.side[1].buf);
    sg_put_le64(&b->length, 8192);
    bell(&pair.side[1].qp);
}

static void start_work(void)
{
    uint64_t to = pair.side[1].buf;
    int i;

    o.started = true;
    bind_window();
    for (i = 0; i < 3; i++) {
        post_payload(SG_WR_SEND, 0, 0, 3000);
        post_payload(SG_WR_WRITE, o.wide, to + 40000, 9000);
        post_payload(SG_WR_READ, o.wide, to + 50000, 9000);
        post_atomic(o.wide, to + 80000);
        post_payload(SG_WR_WRITE_IMM, o.paged, i * 20000, 9000);
        post_place(SG_WR_FLUSH, o.wide, to, 70000);
        post_place(SG_WR_VERIFY, o.wide, to, 70000);
        post_payload(SG_WR_READ, o.paged, i * 20000, 9000);
        post_atomic(o.paged, 4096 * (15 - i));
    }
    post_payload(SG_WR_WRITE, o.window, to, 8000);
    bell(&pair.side[0].qp);
}

static bool alive(int side)
{
    return (md_read(&pair.side[side].md, SG_REG_STATUS) & (SG_STATUS_READY | SG_STATUS_FATAL)) ==
           SG_STATUS_READY;
}

static void page_in(const struct sg_eqe *e)
{
    struct sg_cmd_map_pages c = { .hdr.opcode = SG_ADMIN_MAP_PAGES, .stag = e->id };
    __le64 *list = test_host_ptr(&pair.side[1].h, o.list);
    uint64_t first = sg_get_le64(&e->page);
    uint32_t i, n = sg_get_le32(&e->aux);

    for (i = 0; i < n; i++) {
        sg_put_le64(&list[i], (pair.side[1].buf + (first + i) * SG_PAGE_SIZE) | 1);
    }
    sg_put_le32(&c.op, SG_MAP_PAGES);
    sg_put_le64(&c.first_page, first);
    sg_put_le64(&c.count, n);
    sg_put_le64(&c.list, o.list);
    md_cmd(&pair.side[1].md, &c, sizeof(c), NULL);
}

/* Accepts the first request; the second one, which is sent then, is refused. */
static void answer(uint32_t conn)
{
    enum sg_status status;

    pair_answer(&pair, o.answered ? SG_ADMIN_REJECT : SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, conn, 4,
                4, NULL);
    if (!o.answered && alive(0)) {
        pair_connect_cmd(&pair, &o.refused, 4, 4, NULL, &status);
    }
    o.answered = true;
}

/* Handles events; maps pages as the adapter asks for them. */
static void react(int side)
{
    struct sg_eqe e;

    while (alive(side) && md_next_async(&pair.side[side].md, &e)) {
        if (e.event == SG_EV_CM_REQUEST) {
            answer(sg_get_le32(&e.conn));
        } else if (e.event == SG_EV_CM_REPLY && e.cm_status == SG_CM_OK && !o.started) {
            start_work();
        } else if (e.event == SG_EV_PAGE_FAULT) {
            page_in(&e);
        }
    }
}

/* One step of the world: the network, one adapter's turn, or its driver. */
static void step(unsigned i)
{
    int side = i & 1;

    switch (i % 6) {
    case 0:
    case 1: {
        uint64_t now = pair.side[0].h.now_ns + 20000;

        pair.side[0].h.now_ns = pair.side[1].h.now_ns = now;
        sg_mem_switch_run(pair.sw, now);
        break;
    }
    case 2:
    case 3:
        if (test_host_take_kick(&pair.side[side].h) ||
            pair.side[side].h.timer_ns <= pair.side[side].h.now_ns) {
            pair.side[side].h.kicked |= sg_adapter_run(pair.side[side].md.a, BUDGET);
        }
        break;
    default:
        react(side);
    }
}

static void begin_story(uint64_t seed)
{
    const struct sg_mem_options slow = {
        .queued = true,
        .seed = seed,
        .emss = 1460,
        .delay_min_ns = 1000,
        .delay_max_ns = 50000,
        .room = 8192,
        .piece_max = 700,
    };
    enum sg_status status;
    int i;

    memset(&o, 0, sizeof(o));
    pair_start_sized(&pair, NULL, &slow, 1 << 20);
    pair.connect_flags = seed % 2 ? 0 : SG_CONNECT_STAY | SG_CONNECT_CONFIRM;
    make_objects();
    for (i = 0; i < 6; i++) {
        md_post_srq(&o.srq, i, pair.side[1].buf + 4096 * i, 4096, pair.side[1].stag);
    }
    pair_connect_cmd(&pair, &pair.side[0].qp, 4, 4, NULL, &status);
    T_EQ_U64(status, SG_OK);
}

/* ---- what is removed ---- */

static void take_adapter(int side)
{
    md_write(&pair.side[side].md, SG_REG_CTRL, SG_CTRL_RESET);
}

static void take_enable(int side)
{
    md_write(&pair.side[side].md, SG_REG_CTRL, 0);
}

static void take_health(int side)
{
    sg_adapter_break(pair.side[side].md.a);
}

static void take_queue_pair(int side)
{
    md_cmd_id(&pair.side[side].md, SG_ADMIN_DESTROY_QP, pair.side[side].qp.qpn);
}

static void take_state(int side)
{
    md_modify_qp(&pair.side[side].qp, SG_QP_ERROR);
}

static void take_leave(int side)
{
    md_modify_qp(&pair.side[side].qp, SG_QP_CLOSING);
}

static void take_requester(int side)
{
    (void)side;
    md_cmd_id(&pair.side[0].md, SG_ADMIN_DESTROY_QP, o.refused.qpn);
}

static void take_listener(int side)
{
    (void)side;
    md_cmd_id(&pair.side[1].md, SG_ADMIN_UNLISTEN, pair.listener);
}

static void take_regions(int side)
{
    md_cmd_id(&pair.side[side].md, SG_ADMIN_DEREG_MR, side ? o.wide : pair.side[0].stag);
}

static void take_paged(int side)
{
    md_cmd_id(&pair.side[1].md, SG_ADMIN_DEREG_MR, side ? o.paged : pair.side[1].stag);
}

static void take_pages(int side)
{
    struct sg_cmd_map_pages c = { .hdr.opcode = SG_ADMIN_MAP_PAGES };

    sg_put_le32(&c.stag, o.paged);
    sg_put_le32(&c.op, side ? SG_UNMAP_PAGES : SG_MAP_FAIL);
    sg_put_le64(&c.count, PAGED);
    md_cmd(&pair.side[1].md, &c, sizeof(c), NULL);
}

static void take_window(int side)
{
    (void)side;
    md_cmd_id(&pair.side[1].md, SG_ADMIN_DEALLOC_MW, o.window);
}

static void take_memory(int side)
{
    pair.side[side].h.fault_lo = pair.side[side].qp.sq.base;
    pair.side[side].h.fault_hi = pair.side[side].qp.sq.base + 64 * 512;
}

static void take_completions(int side)
{
    pair.side[side].h.fault_lo = pair.side[side].cq.ring.base;
    pair.side[side].h.fault_hi = pair.side[side].cq.ring.base + 4096;
}

static void take_buffers(int side)
{
    pair.side[side].h.fault_lo = pair.side[side].buf;
    pair.side[side].h.fault_hi = pair.side[side].buf + PAIR_BUF;
}

/* ---- afterwards ---- */

static void expect_nothing_left(void)
{
    struct sg_adapter_census c;
    int i;

    for (i = 0; i < 2; i++) {
        struct pair_side *s = &pair.side[i];

        s->h.fault_lo = s->h.fault_hi = 0;
        if (alive(i)) {
            md_cmd_id(&s->md, SG_ADMIN_DESTROY_QP, s->qp.qpn);
            md_cmd_id(&s->md, SG_ADMIN_DESTROY_QP, i ? 0 : o.refused.qpn);
        }
    }
    pair_pass(&pair, 40000000000ull);
    for (i = 0; i < 2; i++) {
        T_EQ_INT(pair.side[i].h.mapped, 0);
        sg_adapter_census(pair.side[i].md.a, &c);
        if (alive(i)) {
            T_EQ_U64(c.qps, 0);
            T_EQ_U64(c.conns, 0);
        }
    }
    pair_stop(&pair);
}

static void interrupt(void (*take)(int side))
{
    unsigned at, i;
    int side;

    for (side = 0; side < 2; side++) {
        for (at = 0; at < STEPS; at += STRIDE * t_stride(2)) {
            T_CONTEXT("side %d, step %u", side, at);
            begin_story(1 + at % 5);
            for (i = 0; i < at; i++) {
                step(i);
            }
            take(side);
            for (; i < at + 60; i++) {
                step(i);
            }
            expect_nothing_left();
        }
    }
}

#define CASE(name)              \
    static void name(void)      \
    {                           \
        interrupt(take_##name); \
    }
CASE(adapter)
CASE(enable)
CASE(health)
CASE(queue_pair)
CASE(state)
CASE(leave)
CASE(requester)
CASE(listener)
CASE(regions)
CASE(paged)
CASE(pages)
CASE(window)
CASE(memory)
CASE(completions)
CASE(buffers)

/* Without an interruption the whole scenario succeeds. */
static void whole_story(void)
{
    unsigned i, good, seed;
    struct sg_cqe c;

    for (seed = 1; seed < 20; seed++) {
        T_CONTEXT("seed %u", seed);
        begin_story(seed);
        for (i = good = 0; good < 3 * 9 + 1; i++) {
            T_TRUE(i < 2 * STEPS);
            step(i);
            while (md_poll(&pair.side[0].cq, &c)) {
                T_EQ_U64(c.status, SG_WC_SUCCESS);
                good++;
            }
        }
        T_EQ_U64(md_qp_state(&o.refused), SG_QP_IDLE);
        expect_nothing_left();
    }
}

static const struct t_case cases[] = {
    { "nothing", whole_story },
    { "the adapter is reset", adapter },
    { "the adapter is switched off", enable },
    { "the adapter breaks", health },
    { "the queue pair is destroyed", queue_pair },
    { "the queue pair is put in error", state },
    { "the queue pair is closed", leave },
    { "who is being refused is destroyed", requester },
    { "nobody listens any more", listener },
    { "a region is deregistered", regions },
    { "a region on demand is deregistered", paged },
    { "pages go, or cannot be had", pages },
    { "the window is taken back", window },
    { "the send queue does not respond", memory },
    { "the completion queue does not respond", completions },
    { "the buffers do not respond", buffers },
};

T_MAIN(cases)
