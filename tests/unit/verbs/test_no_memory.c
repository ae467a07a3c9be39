/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host has no memory: every request of a guest or a peer is then refused, and nothing
 * aborts, hangs or leaks.
 *
 * One scenario over the real TCP stack, with frames lost on the way, is repeated: objects
 * of each kind are created, two queue pairs connect and exchange messages, everything is
 * destroyed.  Each time a different one of its allocations fails, alone or with those that follow
 * for a while.  After that there is memory again, and the same scenario must succeed.
 */
#include "alloc_fault.h"
#include "pair_rig.h"
#include "tcp_link.h"
#include "verbs/state/adapter_state.h"

enum {
    PORT = 7600,
    LONG = 100000,
    SHORT = 3000,
    PAGE = 4096,
    ODP_PAGES = 4,
    SRQ_DEEP = 16,
    AWHILE = 40,
};

#define MS 1000000ull
#define ODP_VA 0x7f0000000000ull

static const uint32_t rights = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ |
                               SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_ATOMIC;

/* The scenario's objects; 0: creation was refused. */
static struct story {
    bool strict; /* there is memory: everything must work */
    uint32_t pd, listed, odp, hashed, fast, window, listener;
    bool eq;
    struct md_srq srq;
    struct md_qp qp[2];
    bool replied, up, told;
} st;

static unsigned lost;

static bool lose(void *opaque, int from, const uint8_t *frame, size_t len)
{
    (void)opaque, (void)from, (void)frame;
    return len > 1000 && ++lost % 19 == 0;
}

/* Done, or refused for want of memory. */
static bool done(enum sg_status status)
{
    if (status != SG_OK) {
        T_FALSE(st.strict);
        T_EQ_U64(status, SG_ENOMEM);
    }
    return status == SG_OK;
}

static uint32_t make(int side, const void *cmd, size_t len)
{
    struct sg_admin_rsp rsp = { 0 };

    return done(md_cmd(&pair.side[side].md, cmd, len, &rsp)) ? sg_get_le32(&rsp.id) : 0;
}

static void regions(void)
{
    struct pair_side *s = &pair.side[1];
    const struct sg_admin_hdr pd = { .opcode = SG_ADMIN_CREATE_PD };
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(s->pd, s->buf, PAIR_BUF / 2, rights);
    struct sg_cmd_alloc_mr fast = { .hdr.opcode = SG_ADMIN_ALLOC_MR };
    struct sg_cmd_alloc_mw mw = { .hdr.opcode = SG_ADMIN_ALLOC_MW, .type = SG_MW_TYPE_1 };
    uint64_t list = test_host_alloc(&s->h, PAGE, 8);
    uint32_t i;

    st.pd = make(1, &pd, sizeof(pd));
    c.pages = (struct sg_page_list){ .levels = 1, .page_shift = 12 };
    sg_put_le64(&c.pages.addr, list);
    sg_put_le32(&c.pages.count, PAIR_BUF / 2 / PAGE);
    for (i = 0; i < PAIR_BUF / 2 / PAGE; i++) {
        sg_put_le64((uint8_t *)test_host_ptr(&s->h, list) + 8 * i, s->buf + (i ^ 1) * PAGE);
    }
    st.listed = make(1, &c, sizeof(c));
    c = md_reg_mr_cmd(s->pd, s->buf, PAGE, rights | SG_ACCESS_VERIFY);
    c.hash_alg = SG_HASH_HMAC_SHA256;
    c.hash_key_len = 20;
    st.hashed = make(1, &c, sizeof(c));
    c = md_reg_mr_cmd(s->pd, 0, PAGE, rights);
    c.flags = SG_MR_ODP;
    c.pages = (struct sg_page_list){ .page_shift = 12 };
    sg_put_le64(&c.va, ODP_VA);
    sg_put_le64(&c.length, ODP_PAGES * PAGE);
    st.odp = make(1, &c, sizeof(c));
    sg_put_le32(&fast.pd, s->pd);
    sg_put_le32(&fast.max_pages, 8);
    st.fast = make(1, &fast, sizeof(fast));
    sg_put_le32(&mw.pd, s->pd);
    st.window = make(1, &mw, sizeof(mw));
}

static void queues(void)
{
    struct sg_cmd_create_eq eq = { .hdr.opcode = SG_ADMIN_CREATE_EQ };
    struct sg_cmd_create_srq c = md_create_srq_cmd(&pair.side[1].md, pair.side[1].pd, SRQ_DEEP);
    int i;

    sg_put_le64(&eq.base, md_new_ring(&pair.side[1].md, 64, 32).base);
    sg_put_le32(&eq.entries, 64);
    sg_put_le32(&eq.eqn, 2);
    sg_put_le32(&eq.vector, 1);
    st.eq = make(1, &eq, sizeof(eq)) == 2;
    st.srq = (struct md_srq){
        .md = &pair.side[1].md,
        .ring = { .base = sg_get_le64(&c.pages.addr),
                  .entries = SRQ_DEEP,
                  .stride = sg_get_le16(&c.stride) },
    };
    st.srq.srqn = make(1, &c, sizeof(c));
    for (i = 0; i < 2; i++) {
        struct pair_side *s = &pair.side[i];
        struct md_qp_params p = {
            .pd = s->pd,
            .scq = &s->cq,
            .rcq = &s->cq,
            .access = (rights | SG_ACCESS_VERIFY) & ~(uint32_t)SG_ACCESS_LOCAL_WRITE,
            .srq = i && st.srq.srqn ? &st.srq : NULL,
        };
        struct md_qp *qp = &st.qp[i];
        struct sg_cmd_create_qp q = md_create_qp_cmd(&s->md, &p);

        *qp = (struct md_qp){
            .md = &s->md,
            .scq = &s->cq,
            .rcq = &s->cq,
            .sq = { .base = sg_get_le64(&q.sq_pages.addr),
                    .entries = sg_get_le32(&q.sq_entries),
                    .stride = sg_get_le16(&q.sq_stride) },
            .rq = { .base = sg_get_le64(&q.rq_pages.addr),
                    .entries = sg_get_le32(&q.rq_entries),
                    .stride = sg_get_le16(&q.rq_stride) },
        };
        qp->qpn = make(i, &q, sizeof(q));
    }
}

static uint64_t put_text(int side, const char *text)
{
    uint64_t at = test_host_alloc(&pair.side[side].h, 64, 8);

    memcpy(test_host_ptr(&pair.side[side].h, at), text, strlen(text));
    return at;
}

static struct sg_cmd_connect connect_cmd(int side, uint8_t opcode, const char *text)
{
    struct sg_cmd_connect c = { .hdr.opcode = opcode };

    sg_put_le32(&c.qpn, st.qp[side].qpn);
    sg_put_le16(&c.ird, 8);
    sg_put_le16(&c.ord, 8);
    sg_put_le16(&c.flags, SG_CONNECT_STAY);
    sg_put_le64(&c.pdata_addr, put_text(side, text));
    sg_put_le16(&c.pdata_len, (uint16_t)strlen(text));
    return c;
}

/* Private data are never lost: with the event of a connection they are there. */
static void check_data(int side, uint32_t conn, const char *text)
{
    struct test_host *h = &pair.side[side].h;
    uint64_t out = test_host_alloc(h, sizeof(struct sg_cm_data), 8);
    const struct sg_cm_data *d = test_host_ptr(h, out);
    struct sg_cmd_query q = { .hdr.opcode = SG_ADMIN_CM_DATA };

    sg_put_le32(&q.id, conn);
    sg_put_le64(&q.out_addr, out);
    sg_put_le32(&q.out_len, sizeof(*d));
    T_EQ_U64(md_cmd(&pair.side[side].md, &q, sizeof(q), NULL), SG_OK);
    T_EQ_U64(sg_get_le16(&d->pdata_len), strlen(text));
    T_EQ_MEM(d->pdata, text, strlen(text));
}

static void map_pages(const struct sg_eqe *e)
{
    struct sg_cmd_map_pages c = { .hdr.opcode = SG_ADMIN_MAP_PAGES };
    struct pair_side *s = &pair.side[1];
    uint64_t list = test_host_alloc(&s->h, ODP_PAGES * 8, 8);
    uint32_t i, n = sg_get_le32(&e->aux);
    enum sg_status status;

    T_TRUE(n && n <= ODP_PAGES);
    for (i = 0; i < n; i++) {
        sg_put_le64((uint8_t *)test_host_ptr(&s->h, list) + 8 * i,
                    (s->buf + PAIR_BUF / 2 + i * PAGE) | 1);
    }
    sg_put_le32(&c.stag, st.odp);
    sg_put_le32(&c.op, SG_MAP_PAGES);
    sg_put_le64(&c.first_page, sg_get_le64(&e->page));
    sg_put_le64(&c.count, n);
    sg_put_le64(&c.list, list);
    status = md_cmd(&s->md, &c, sizeof(c), NULL);
    if (!done(status)) { /* the driver must say that it failed */
        sg_put_le32(&c.op, SG_MAP_FAIL);
        sg_put_le64(&c.list, 0);
        T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_OK);
    }
}

static void handle(int side, const struct sg_eqe *e)
{
    uint32_t conn = sg_get_le32(&e->conn);

    switch (e->event) {
    case SG_EV_CM_REQUEST: {
        struct sg_cmd_connect c = connect_cmd(1, SG_ADMIN_ACCEPT, "answer");

        check_data(1, conn, "question");
        sg_put_le32(&c.conn, conn);
        if (!st.qp[1].qpn) {
            c.hdr.opcode = SG_ADMIN_REJECT;
            c.flags = (__le16){ 0 };
        }
        done(md_cmd(&pair.side[1].md, &c, sizeof(c), NULL));
        break;
    }
    case SG_EV_CM_REPLY:
        st.replied = true;
        st.up = e->cm_status == SG_CM_OK;
        T_TRUE(st.up || !st.strict);
        if (st.up || e->cm_status == SG_CM_REJECTED) {
            check_data(0, conn, "answer");
        }
        break;
    case SG_EV_PAGE_FAULT:
        T_EQ_INT(side, 1);
        map_pages(e);
        break;
    default: /* the connection's end */
        st.told = true;
        break;
    }
}

/* Lets 'ms' pass, with a driver that handles its events. */
static void live(uint64_t ms)
{
    struct sg_eqe e;
    int i;

    while (ms--) {
        pair_pass(&pair, MS);
        for (i = 0; i < 2; i++) {
            while (md_next_async(&pair.side[i].md, &e)) {
                handle(i, &e);
            }
            T_EQ_U64(md_read(&pair.side[i].md, SG_REG_STATUS) & SG_STATUS_FATAL, 0);
        }
    }
}

static void connect_them(void)
{
    struct sg_cmd_listen l = { .hdr.opcode = SG_ADMIN_LISTEN };
    struct sg_cmd_connect c;
    unsigned tries;

    l.local = md_addr(&pair.side[1].at, PORT);
    sg_put_le32(&l.backlog, 4);
    st.listener = make(1, &l, sizeof(l));
    if (!st.qp[0].qpn) {
        return;
    }
    c = connect_cmd(0, SG_ADMIN_CONNECT, "question");
    c.local = md_addr(&pair.side[0].at, 0);
    c.remote = md_addr(&pair.side[1].at, st.listener ? PORT : PAIR_PORT);
    if (make(0, &c, sizeof(c))) {
        for (tries = 0; tries < 180 && !st.replied; tries++) {
            live(500);
        }
        T_TRUE(st.replied); /* at the latest when the peer counts as dead */
    }
}

static void post_one(uint8_t opcode, uint32_t len, uint32_t rkey, uint64_t raddr)
{
    struct pair_side *s = &pair.side[0];
    struct sg_wqe_hdr *h = md_sq_entry(&st.qp[0]);
    uint8_t *at = (uint8_t *)(h + 1);
    uint32_t i, sges = opcode == SG_WR_READ ? 2 : 1;

    h->opcode = opcode;
    h->flags = SG_WQE_SIGNALED;
    h->num_sge = (uint8_t)sges;
    sg_put_le32(&h->rkey, rkey);
    sg_put_le64(&h->remote_addr, raddr);
    at += opcode == SG_WR_FETCH_ADD ? sizeof(struct sg_wqe_atomic)
          : opcode == SG_WR_VERIFY  ? sizeof(struct sg_wqe_place)
                                    : 0;
    if (opcode == SG_WR_VERIFY) {
        sg_put_le32(&((struct sg_wqe_place *)(h + 1))->length, PAGE);
    }
    for (i = 0; i < sges; i++) {
        struct sg_sge *sge = (struct sg_sge *)at + i;

        sg_put_le64(&sge->addr, s->buf + i * LONG);
        sg_put_le32(&sge->length, len / sges);
        sg_put_le32(&sge->lkey, s->stag);
    }
    md_sq_doorbell(&st.qp[0]);
}

static void talk(void)
{
    struct pair_side *t = &pair.side[1];
    unsigned i, posted = 3, good = 0, bad = 0;
    struct sg_cqe c;

    post_one(SG_WR_WRITE, LONG, t->stag, t->buf);
    post_one(SG_WR_READ, LONG, st.listed ? st.listed : t->stag, t->buf);
    post_one(SG_WR_SEND, SHORT, 0, 0);
    if (st.odp) {
        post_one(SG_WR_WRITE, SHORT, st.odp, ODP_VA + PAGE);
        post_one(SG_WR_READ, 64, st.odp, ODP_VA + PAGE);
        posted += 2;
    }
    if (st.hashed) {
        post_one(SG_WR_FETCH_ADD, 8, st.hashed, t->buf);
        post_one(SG_WR_VERIFY, 32, st.hashed, t->buf);
        posted += 2;
    }
    live(1500);
    for (i = 0; i < 2; i++) { /* messages already wait for them */
        if (st.srq.srqn) {
            md_post_srq(&st.srq, i, t->buf, SHORT, t->stag);
        } else {
            md_post_recv(&st.qp[1], i, t->buf, SHORT, t->stag);
        }
    }
    for (i = 0; i < 180 && good + bad < posted; i++) {
        live(500);
        while (md_poll(&pair.side[0].cq, &c)) {
            *(c.status == SG_WC_SUCCESS ? &good : &bad) += 1;
        }
    }
    T_TRUE(bad == 0 || !st.strict);
    /* Everything completes, or the queue pair has an error; nothing waits for ever. */
    T_TRUE(good == posted || st.told || md_qp_state(&st.qp[0]) == SG_QP_ERROR);
}

/* Destroying an object needs no memory. */
static void gone(int side, uint8_t opcode, uint32_t id)
{
    if (id) {
        T_EQ_U64(md_cmd_id(&pair.side[side].md, opcode, id), SG_OK);
    }
}

static void take_apart(void)
{
    struct sg_cqe c;
    int i;

    for (i = 0; i < 2; i++) {
        gone(i, SG_ADMIN_DESTROY_QP, st.qp[i].qpn);
    }
    live(200);
    gone(1, SG_ADMIN_UNLISTEN, st.listener);
    gone(1, SG_ADMIN_DESTROY_SRQ, st.srq.srqn);
    gone(1, SG_ADMIN_DESTROY_EQ, st.eq ? 2 : 0);
    gone(1, SG_ADMIN_DEREG_MR, st.listed);
    gone(1, SG_ADMIN_DEREG_MR, st.odp);
    gone(1, SG_ADMIN_DEREG_MR, st.hashed);
    gone(1, SG_ADMIN_DEREG_MR, st.fast);
    gone(1, SG_ADMIN_DEALLOC_MW, st.window);
    gone(1, SG_ADMIN_DESTROY_PD, st.pd);
    /* Closing connections end, also TIME-WAIT; a peer without memory for its RST counts as dead. */
    pair_pass(&pair, (st.strict ? 40000 : 200000) * MS);
    for (i = 0; i < 2; i++) {
        while (md_poll(&pair.side[i].cq, &c)) {
        }
    }
}

static void tell(bool strict)
{
    int i;

    st = (struct story){ .strict = strict };
    for (i = 0; i < 2; i++) {
        pair.side[i].h.brk = pair.base_brk[i];
    }
    lost = 0;
    regions();
    queues();
    connect_them();
    if (st.up) {
        talk();
    }
    T_TRUE(!strict || st.up);
    take_apart();
}

/* Returns the number of allocations in the scenario. */
static uint64_t tell_with(uint64_t fail_at, uint64_t fail_count)
{
    struct tcp_link_options options = { .delay_ns = 50000, .lose = lose };
    uint64_t used[2], seen;
    int i;

    pair_start_on(&pair, NULL, tcp_link_new(&options), PAIR_MEM);
    tell(true); /* tables grow once and stay */
    for (i = 0; i < 2; i++) {
        used[i] = sg_adapter_host_memory(pair.side[i].md.a);
    }
    alloc_fault_arm(fail_at, fail_count);
    tell(fail_at == 0);
    seen = alloc_fault.seen;
    alloc_fault_disarm();
    if (alloc_fault.fatal) {
        T_NOTE("an allocation that must not fail, called at %p", alloc_fault.fatal_at);
    }
    T_EQ_U64(alloc_fault.fatal, 0);
    T_TRUE(!fail_at || alloc_fault.failed);
    for (i = 0; i < 2; i++) {
        T_EQ_U64(sg_adapter_host_memory(pair.side[i].md.a), used[i]);
    }
    tell(true);
    for (i = 0; i < 2; i++) {
        T_EQ_U64(sg_adapter_host_memory(pair.side[i].md.a), used[i]);
    }
    pair_stop(&pair);
    return seen;
}

static void each_fails(uint64_t count, unsigned stride)
{
    uint64_t n, all = tell_with(0, 0);
    int64_t before;

    tell_with(0, 0);
    before = alloc_fault.live;
    T_TRUE(all > 100);
    for (n = 1; n <= all; n += stride) {
        T_CONTEXT("allocation %" PRIu64 " of %" PRIu64 ", %" PRIu64 " in a row", n, all, count);
        tell_with(n, count);
        if (alloc_fault.live > before) { /* frame buffers, which are kept; or a leak */
            before = alloc_fault.live;
            tell_with(n, count);
        }
        T_TRUE(alloc_fault.live <= before);
    }
}

static void each_alone(void)
{
    each_fails(1, t_stride(2));
}

static void for_a_while(void)
{
    each_fails(AWHILE, t_stride(7));
}

/* The scenario without a failure: even then, no allocation may be one that must not fail. */
static void nothing_is_fatal(void)
{
    T_TRUE(tell_with(0, 0) > 100);
}

static const struct t_case cases[] = {
    { "no allocation of a guest or a peer is one that must not fail", nothing_is_fatal },
    { "each allocation fails alone", each_alone },
    { "each allocation fails, and those behind it", for_a_while },
};

T_MAIN(cases)
