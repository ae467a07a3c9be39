/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bounds of one turn, whatever the guest asks for.  A turn holds QEMU's lock, so the rest of
 * the machine waits that long.
 */
#include "mpe_rig.h"
#include "verbs/state/adapter_state.h"
#include "verbs/events/cq.h"
#include "verbs/queues/qp.h"

enum { BUDGET = 256 * 1024, PAGES = 600, BINDS = 60, LONG_LIST = 1 << 18 };

static unsigned questions;
static unsigned (*true_query)(void *host, uint64_t addr, uint64_t len);

static unsigned counting_query(void *host, uint64_t addr, uint64_t len)
{
    questions++;
    return true_query(host, addr, len);
}

/* A list of n pages of an area of 'of' pages; no two neighbours are contiguous. */
static uint64_t scattered_list(struct test_host *h, uint64_t area, uint32_t n, uint32_t of)
{
    uint64_t list = test_host_alloc(h, 8ull * n, 4096);
    uint32_t i;

    for (i = 0; i < n; i++) {
        sg_put_le64(test_host_ptr(h, list + 8ull * i), area + 4096ull * ((of - 1 - i % of)));
    }
    return list;
}

/* REG_MR of a list; access 0: local use. */
static struct sg_cmd_reg_mr list_cmd(uint32_t pd, uint64_t va, uint64_t list, uint32_t n,
                                     uint32_t access)
{
    struct sg_cmd_reg_mr c = md_reg_mr_cmd(pd, va, 4096ull * n, access);

    c.pages.levels = 1;
    sg_put_le64(&c.pages.addr, list);
    sg_put_le32(&c.pages.count, n);
    return c;
}

static void put_bind(struct md_qp *qp, uint32_t window, uint32_t region, uint64_t va, uint64_t len)
{
    struct sg_wqe_hdr *h = md_sq_entry(qp);
    struct sg_wqe_bind *b = (struct sg_wqe_bind *)(h + 1);

    h->opcode = SG_WR_BIND_MW;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le64(&h->wr_id, 500);
    sg_put_le32(&b->stag, window);
    sg_put_le32(&b->mr_stag, region);
    sg_put_le32(&b->access, SG_ACCESS_REMOTE_READ);
    sg_put_le64(&b->va, va);
    sg_put_le64(&b->length, len);
}

/*
 * Posts binds of a whole region of side 1 whose pages 'lo' to 'hi' are persistent, and gives the
 * adapter one turn.  Returns the number of pm_query calls in that turn.
 */
static unsigned bind_many(uint32_t lo, uint32_t hi)
{
    struct pair_side *s = &pair.side[1];
    uint32_t stag, window, i, done;
    uint64_t area;
    struct sg_cmd_reg_mr c;
    struct sg_cqe e;

    pair_start_sized(&pair, NULL, NULL, 8 << 20);
    area = test_host_alloc(&s->h, PAGES * 4096, 4096);
    test_pm_init(&pm[1], &s->h, area + lo * 4096, area + hi * 4096);
    true_query = s->h.ops.pm_query;
    s->h.ops.pm_query = counting_query;
    pair_open(&pair, &(struct md_qp_params){ .entries = 64 });
    pair_connect(&pair);
    c = list_cmd(s->pd, 0x10000000, scattered_list(&s->h, area, PAGES, PAGES), PAGES,
                 SG_ACCESS_MW_BIND | SG_ACCESS_LOCAL_WRITE);
    stag = md_make(&s->md, &c, sizeof(c));
    window = md_alloc_mw(&s->md, s->pd, SG_MW_TYPE_1);
    for (i = 0; i < BINDS; i++) {
        put_bind(&s->qp, window, stag, 0x10000000, PAGES * 4096);
    }
    s->md.hold = true;
    md_sq_doorbell(&s->qp);
    questions = 0;
    sg_adapter_run(s->md.a, BUDGET);
    done = questions;
    s->md.hold = false;
    for (i = 0; i < BINDS; i++) {
        e = expect(1, 500, SG_WC_SUCCESS);
        T_EQ_U64(e.opcode, SG_WC_BIND_MW);
    }
    T_EQ_U64(md_cmd_id(&s->md, SG_ADMIN_DEALLOC_MW, window), SG_OK);
    end();
    test_pm_fini(&pm[1]);
    return done;
}

/* For a window over partly persistent memory each page is queried, which counts as work. */
static void binds_of_mixed_memory(void)
{
    unsigned asked = bind_many(0, PAGES / 2);

    T_TRUE(asked > PAGES);
    T_TRUE(asked <= BUDGET / 64 + PAGES + 1); /* a query counts as 64 octets */
}

/* All pages of the region are of one kind, so no query is needed. */
static void binds_of_plain_memory(void)
{
    T_EQ_U64(bind_many(0, PAGES), 0);
    T_EQ_U64(bind_many(PAGES, PAGES + 1), 0);
}

/* Local operations end the turn when its time is over, and continue in the next one. */
static void binds_take_time(void)
{
    struct pair_side *s = &pair.side[1];
    uint64_t before;
    uint32_t window, i;

    begin(&(struct md_qp_params){ .entries = 64 });
    window = md_alloc_mw(&s->md, s->pd, SG_MW_TYPE_1);
    for (i = 0; i < BINDS; i++) {
        put_bind(&s->qp, window, s->stag, s->buf, 0);
    }
    s->md.hold = true;
    md_sq_doorbell(&s->qp);
    s->h.dma_ns = 1000000;
    before = s->h.now_ns;
    T_TRUE(sg_adapter_run(s->md.a, BUDGET));
    T_TRUE(s->h.now_ns - before >= SG_TURN_NS);
    T_TRUE(s->h.now_ns - before <= SG_TURN_NS + 4000000); /* one operation: its DMA */
    s->h.dma_ns = 0;
    s->md.hold = false;
    for (i = 0; i < BINDS; i++) {
        expect(1, 500, SG_WC_SUCCESS);
    }
    T_EQ_U64(md_cmd_id(&s->md, SG_ADMIN_DEALLOC_MW, window), SG_OK);
    end();
}

static void commands_take_time(void)
{
    const struct sg_admin_hdr nop = { .opcode = SG_ADMIN_NOP };
    struct pair_side *s = &pair.side[0];
    struct sg_admin_rsp rsp;
    uint64_t before;
    unsigned i, n = 0;

    begin(NULL);
    for (i = 0; i < 10; i++) {
        md_submit(&s->md, &nop, sizeof(nop));
    }
    s->h.dma_ns = 600000;
    before = s->h.now_ns;
    T_TRUE(sg_adapter_run(s->md.a, BUDGET));
    T_TRUE(s->h.now_ns - before < 2 * SG_TURN_NS);
    s->h.dma_ns = 0;
    while (md_reap(&s->md, &rsp)) {
        n++;
    }
    T_TRUE(n > 0 && n < 10);
    md_settle(&s->md);
    while (md_reap(&s->md, &rsp)) {
        n++;
    }
    T_EQ_U64(n, 10);
    end();
}

/* MAP_PAGES reads a list as REG_MR does: the turn ends after the same number of addresses. */
static void lists_of_pages_end_the_turn(void)
{
    enum { COUNT = SG_TURN_PAGES * 2 / 3, COMMANDS = 4 };
    struct pair_side *s = &pair.side[0];
    struct sg_cmd_reg_mr region;
    struct sg_cmd_map_pages c = { .hdr.opcode = SG_ADMIN_MAP_PAGES };
    struct sg_admin_rsp rsp = { 0 };
    unsigned i, n;

    begin(NULL);
    region = md_reg_mr_cmd(s->pd, 0, (uint64_t)COUNT << 12, 0);
    region.flags = SG_MR_ODP;
    region.pages = (struct sg_page_list){ .page_shift = 12 };
    sg_put_le32(&c.stag, md_make(&s->md, &region, sizeof(region)));
    sg_put_le32(&c.op, SG_MAP_PAGES);
    sg_put_le64(&c.count, COUNT);
    sg_put_le64(&c.list, scattered_list(&s->h, s->buf, COUNT, PAIR_BUF / 4096));
    for (i = 0; i < COMMANDS; i++) {
        md_submit(&s->md, &c, sizeof(c));
    }
    for (i = 0; i < COMMANDS / 2; i++) {
        T_CONTEXT("turn %u", i);
        sg_adapter_run(s->md.a, BUDGET);
        for (n = 0; md_reap(&s->md, &rsp); n++) {
            T_EQ_U64(rsp.status, SG_OK);
        }
        T_EQ_INT(n, 2);
    }
    end();
}

/* Each call advances the clock, so that a turn has time for a few pieces of work. */
static uint64_t slow_now(void *host)
{
    struct test_host *h = host;

    h->now_ns += SG_TURN_NS / 3;
    return h->now_ns;
}

/* The queue pairs of a completion queue that overruns end one after the other. */
static void ends_take_time(void)
{
    enum { QPS = 12 };
    struct pair_side *s = &pair.side[0];
    struct md_qp qp[QPS];
    struct md_cq cq;
    unsigned i, k, errors, before = 0, turns = 0;

    begin(NULL);
    md_create_cq(&s->md, &cq, 2);
    for (i = 0; i < QPS; i++) {
        md_create_qp(&s->md, &qp[i],
                     &(struct md_qp_params){
                         .pd = s->pd,
                         .scq = &cq,
                         .rcq = &cq,
                     });
    }
    T_EQ_U64(md_modify_qp(&qp[0], SG_QP_ERROR), SG_OK);
    s->md.hold = true;
    for (k = 0; k < 3; k++) {
        md_post_recv(&qp[0], k, s->buf, 8, s->stag);
    }
    sg_adapter_run(s->md.a, BUDGET); /* it overruns */
    s->h.ops.now = slow_now;
    do {
        T_TRUE(turns++ < 100);
        sg_adapter_run(s->md.a, BUDGET);
        for (i = errors = 0; i < QPS; i++) {
            struct sg_qp *q = sg_idtab_get(&s->md.a->qps, qp[i].qpn);

            errors += q->state == SG_QP_ERROR;
        }
        T_TRUE(errors > before && errors - before <= 4); /* some in each turn, never all */
        before = errors;
    } while (errors < QPS);
    T_TRUE(turns >= QPS / 4);
    s->md.hold = false;
    for (i = 0; i < QPS; i++) {
        T_EQ_U64(md_cmd_id(&s->md, SG_ADMIN_DESTROY_QP, qp[i].qpn), SG_OK);
    }
    pair_stop(&pair);
}

/* A turn flushes up to SG_TURN_FLUSH entries; queues that cannot be read do not use these up. */
static void flushed_entries(void)
{
    enum { ENTRIES = 2048 };
    struct pair_side *s = &pair.side[0];
    struct md_qp unreadable, qp;
    struct sg_cqe c;
    struct md_cq cq;
    unsigned i, n = 0;

    pair_start_sized(&pair, NULL, NULL, 8 << 20);
    md_create_cq(&s->md, &cq, 2 * ENTRIES);
    md_create_qp(&s->md, &unreadable,
                 &(struct md_qp_params){
                     .pd = s->pd,
                     .scq = &cq,
                     .rcq = &cq,
                 });
    md_create_qp(&s->md, &qp,
                 &(struct md_qp_params){
                     .pd = s->pd,
                     .scq = &cq,
                     .rcq = &cq,
                     .entries = ENTRIES,
                 });
    T_EQ_U64(md_modify_qp(&unreadable, SG_QP_ERROR), SG_OK);
    T_EQ_U64(md_modify_qp(&qp, SG_QP_ERROR), SG_OK);
    s->md.hold = true;
    md_sq_entry(&unreadable);
    md_sq_doorbell(&unreadable);
    md_post_recv(&unreadable, 0, s->buf, 8, s->stag);
    for (i = 0; i < SG_TURN_FLUSH + 100; i++) {
        md_post_recv(&qp, i, s->buf, 8, s->stag);
    }
    T_TRUE(unreadable.sq.base < unreadable.rq.base && unreadable.rq.base < qp.sq.base);
    s->h.fault_lo = unreadable.sq.base;
    s->h.fault_hi = unreadable.rq.base + 64;
    sg_adapter_run(s->md.a, BUDGET);
    T_EQ_U64(s->h.guest_errors, 2);
    while (md_poll(&cq, &c)) {
        n++;
    }
    T_EQ_INT(n, SG_TURN_FLUSH);
    s->md.hold = false;
    md_settle(&s->md);
    while (md_poll(&cq, &c)) {
        n++;
    }
    T_EQ_INT(n, SG_TURN_FLUSH + 100);
    T_EQ_U64(md_cmd_id(&s->md, SG_ADMIN_DESTROY_QP, unreadable.qpn), SG_OK);
    T_EQ_U64(md_cmd_id(&s->md, SG_ADMIN_DESTROY_QP, qp.qpn), SG_OK);
    pair_stop(&pair);
}

/* After a reset the regions' memory is freed step by step, and before a driver needs it. */
static void reset_of_many_regions(void)
{
    enum { REGIONS = 10000 };
    struct pair_side *s = &pair.side[0];
    struct sg_cmd_reg_mr c;
    struct sg_adapter_census census;
    uint64_t used, before;
    unsigned i, turns = 0;
    bool more;

    pair_start(&pair, NULL, NULL);
    c = md_reg_mr_cmd(s->pd, s->buf, 4096, 0);
    for (i = 0; i < REGIONS; i++) {
        md_make(&s->md, &c, sizeof(c));
    }
    used = sg_adapter_host_memory(s->md.a);
    md_write(&s->md, SG_REG_CTRL, SG_CTRL_RESET);
    sg_adapter_census(s->md.a, &census);
    T_EQ_U64(census.mrs, 0);
    T_TRUE(test_host_take_kick(&s->h));
    for (more = true; more; turns++) {
        before = sg_adapter_host_memory(s->md.a);
        more = sg_adapter_run(s->md.a, BUDGET);
        T_TRUE(before - sg_adapter_host_memory(s->md.a) <= used / 2);
    }
    T_TRUE(turns >= 3);
    T_EQ_U64(sg_adapter_host_memory(s->md.a), 0);
    /* Limit the account to what was used before. */
    s->md.a->account.limit = used;
    md_setup_rings(&s->md);
    md_enable(&s->md);
    s->pd = md_create_pd(&s->md);
    sg_put_le32(&c.pd, s->pd);
    for (i = 0; i < REGIONS; i++) {
        md_make(&s->md, &c, sizeof(c));
    }
    md_write(&s->md, SG_REG_CTRL, SG_CTRL_RESET);
    md_setup_rings(&s->md);
    md_enable(&s->md); /* commands wait until the old regions are freed */
    s->pd = md_create_pd(&s->md);
    T_EQ_U64(md_make(&s->md, &c, sizeof(c)) != 0, 1);
    pair_stop(&pair);
}

/* A Flush of scattered pages handles many pages in each turn, not one. */
static void flush_of_scattered_pages(void)
{
    enum { COUNT = 100 };
    struct pair_side *s = &pair.side[1];
    struct sg_cmd_reg_mr c;
    uint64_t area;
    struct ask q;

    pair_start_sized(&pair, NULL, NULL, 8 << 20);
    area = test_host_alloc(&s->h, PAGES * 4096, 4096);
    test_pm_init(&pm[1], &s->h, area, area + PAGES * 4096);
    pair_open(&pair, &(struct md_qp_params){ .access = ALL_RIGHTS });
    pair_connect(&pair);
    c = list_cmd(s->pd, 0x10000000, scattered_list(&s->h, area, COUNT, COUNT), COUNT, ALL_FLUSH);
    q = flush_of(1, md_make(&s->md, &c, sizeof(c)), 0, COUNT * 4096, P);
    q.raddr = 0x10000000;
    T_TRUE(turns_of(q) <= 8);
    expect(0, 1, SG_WC_SUCCESS);
    T_EQ_INT(test_pm_count(&pm[1], TEST_PM_FLUSH), COUNT);
    end();
    test_pm_fini(&pm[1]);
}

static uint64_t stepped_ns;

/* Each call advances the clock by the time of a whole turn. */
static uint64_t stepped_now(void *host)
{
    (void)host;
    return stepped_ns += SG_TURN_NS;
}

static unsigned length(const struct sg_list *l)
{
    const struct sg_link *k;
    unsigned n = 0;

    for (k = l->head.next; k != &l->head; k = k->next) {
        n++;
    }
    return n;
}

/* An overrun ends queue pairs one by one, and a later turn does not examine them again. */
static void overrun__each_is_looked_at_once(void)
{
    enum { QPS = 8 };
    struct pair_side *s = &pair.side[0];
    struct md_qp qp[QPS];
    struct sg_cq *cq;
    unsigned i;

    pair_start(&pair, NULL, NULL);
    for (i = 0; i < QPS; i++) {
        md_create_qp(&s->md, &qp[i],
                     &(struct md_qp_params){
                         .pd = s->pd,
                         .scq = &s->cq,
                         .rcq = &s->cq,
                     });
    }
    cq = sg_idtab_get(&s->md.a->cqs, s->cq.cqn);
    stepped_ns = s->h.now_ns;
    s->h.ops.now = stepped_now;
    cq->error = true;
    sg_list_append(&s->md.a->cq_errors, &cq->error_link);
    for (i = 0; i < QPS; i++) {
        const struct sg_qp *q = sg_idtab_get(&s->md.a->qps, qp[i].qpn);

        T_EQ_U64(length(&cq->senders), QPS - i);
        T_EQ_U64(q->state, SG_QP_IDLE);
        sg_adapter_run(s->md.a, BUDGET);
        T_EQ_U64(q->state, SG_QP_ERROR);
    }
    T_EQ_U64(md_cmd_id(&s->md, SG_ADMIN_DESTROY_CQ, s->cq.cqn), SG_EBUSY);
    pair_stop(&pair);
}

static void count_sent(void *opaque, const struct sg_endpoint *at, bool sent, uint32_t crc,
                       size_t len)
{
    unsigned *n = opaque;

    (void)crc;
    (void)len;
    *n += sent && !memcmp(at->ip, pair.side[0].at.ip, sizeof(at->ip));
}

/* With the segments of a link of 1500 octets.  Each passing to TCP has a PSH of its own. */
static void write_of_64k_goes_to_tcp_at_once(void)
{
    const struct sg_mem_options net = { .queued = true, .emss = 1448 };
    struct sg_adapter_config config;
    unsigned wire, passed;

    for (wire = 0; wire < SG_ENGINE_WIRES; wire++) {
        T_CONTEXT("wire %u", wire);
        pair_default_config(&config);
        config.engine.wire = (uint8_t)wire;
        pair_start(&pair, &config, &net);
        pair_open(&pair, NULL);
        pair_connect(&pair);
        passed = 0;
        sg_mem_switch_tap(pair.sw, count_sent, &passed);
        post(0, wr(0, SG_WR_WRITE, 1, 0, 65536, 0));
        expect(0, 1, SG_WC_SUCCESS);
        T_EQ_U64(passed, 1);
        end();
    }
}

static const struct t_case cases[] = {
    { "binds of mixed memory are charged", binds_of_mixed_memory },
    { "binds of plain memory ask nothing", binds_of_plain_memory },
    { "a turn of local operations ends in time", binds_take_time },
    { "a turn of admin commands ends in time", commands_take_time },
    { "lists of MAP_PAGES end the turn of admin commands", lists_of_pages_end_the_turn },
    { "many queue pairs end in several turns", ends_take_time },
    { "a turn's share of flushed entries", flushed_entries },
    { "a reset of many regions", reset_of_many_regions },
    { "a Flush of scattered pages", flush_of_scattered_pages },
    { "an overrun looks at each queue pair once", overrun__each_is_looked_at_once },
    { "a Write of 64 KiB goes to TCP at once, on each wire", write_of_64k_goes_to_tcp_at_once },
};

T_MAIN(cases)
