/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rings and doorbells: arming, overrun, wrap, foreign queues, event queues that run full. */
#include "pair.h"
#include "rig.h"
#include "tap.h"

#include "verbs/state/adapter_state.h"
#include "verbs/events/cq.h"
#include "verbs/events/ring.h"

static struct solo s;
static struct md_cq cq;
static struct md_qp qp;
static uint32_t pd, stag;

/* An unconnected queue pair in ERROR: every entry posted becomes a completion. */
static void begin_flushing(const struct sg_adapter_config *config, uint32_t cqe, uint32_t entries)
{
    solo_new_sized(&s, config, true, (8 << 20) + 3 * 64 * (size_t)entries);
    pd = md_create_pd(&s.md);
    stag = md_reg_mr(&s.md, pd, TEST_HOST_BASE, 4096, SG_ACCESS_LOCAL_WRITE);
    md_create_cq(&s.md, &cq, cqe);
    md_create_qp(&s.md, &qp,
                 &(struct md_qp_params){
                     .pd = pd,
                     .scq = &cq,
                     .rcq = &cq,
                     .entries = entries,
                     .stride = 64,
                 });
    T_EQ_U64(md_modify_qp(&qp, SG_QP_ERROR), SG_OK);
}

static void complete_one(uint64_t id)
{
    md_post_recv(&qp, id, TEST_HOST_BASE, 16, stag);
}

static void ring_geometry(void)
{
    struct sg_ring r;
    uint32_t i;

    sg_ring_init(&r, 0x10000, 8, 64);
    for (i = 0; i < 64; i++) {
        T_EQ_U64(sg_ring_slot(&r, i), 0x10000 + (i % 8) * 64);
        T_EQ_U64(sg_ring_phase(&r, i), !((i / 8) % 2));
    }
    /* Indices run free over 32 bits; the phase does too. */
    T_EQ_U64(sg_ring_slot(&r, UINT32_MAX), 0x10000 + 7 * 64);
    T_EQ_U64(sg_ring_phase(&r, UINT32_MAX), 0);
    T_EQ_U64(sg_ring_phase(&r, 0), 1);
}

/* Indices of a guest, on a ring of 8 entries with 3 in use: from 'cons' to cons + 3. */
static void ring_indices(void)
{
    enum { P = SG_RING_PROD, C = SG_RING_CONS, IN_ORDER = SG_RING_IN_ORDER };
    static const struct {
        const char *name;
        unsigned index;
        int32_t value; /* relative to cons */
        enum sg_ring_verdict want;
        int32_t prod, cons; /* afterwards */
    } rows[] = {
        { "producer, the same", P, 3, SG_RING_NEW, 3, 0 },
        { "producer, more", P, 5, SG_RING_NEW, 5, 0 },
        { "producer, full", P, 8, SG_RING_NEW, 8, 0 },
        { "producer, one too many", P, 9, SG_RING_BAD, 3, 0 },
        { "producer, less", P, 2, SG_RING_LATE, 3, 0 },
        { "producer, a ring behind", P, -5, SG_RING_LATE, 3, 0 },
        { "producer, further behind", P, -6, SG_RING_BAD, 3, 0 },
        { "producer in order, full", P | IN_ORDER, 8, SG_RING_NEW, 8, 0 },
        { "producer in order, back", P | IN_ORDER, 1, SG_RING_NEW, 1, 0 },
        { "producer in order, empty", P | IN_ORDER, 0, SG_RING_NEW, 0, 0 },
        { "producer in order, behind", P | IN_ORDER, -1, SG_RING_BAD, 3, 0 },
        { "producer in order, beyond", P | IN_ORDER, 9, SG_RING_BAD, 3, 0 },
        { "consumer, the same", C, 0, SG_RING_NEW, 3, 0 },
        { "consumer, all", C, 3, SG_RING_NEW, 3, 3 },
        { "consumer, beyond", C, 4, SG_RING_BAD, 3, 0 },
        { "consumer, back", C, -1, SG_RING_LATE, 3, 0 },
        { "consumer, a ring behind", C, -5, SG_RING_LATE, 3, 0 },
        { "consumer, further behind", C, -6, SG_RING_BAD, 3, 0 },
        { "consumer in order, back", C | IN_ORDER, -5, SG_RING_NEW, 3, -5 },
        { "consumer in order, behind", C | IN_ORDER, -6, SG_RING_BAD, 3, 0 },
        { "consumer in order, beyond", C | IN_ORDER, 4, SG_RING_BAD, 3, 0 },
    };
    static const uint32_t starts[] = { 0, 1000, UINT32_MAX - 1, UINT32_MAX - 6 };
    struct sg_ring r;

    for (size_t k = 0; k < sizeof(starts) / sizeof(starts[0]); k++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            const uint32_t at = starts[k];

            T_CONTEXT("%s, from %u", rows[i].name, at);
            sg_ring_init(&r, 0x10000, 8, 64);
            r.cons = at;
            r.prod = at + 3;
            T_EQ_U64(sg_ring_take(&r, rows[i].index, at + (uint32_t)rows[i].value), rows[i].want);
            T_EQ_U64(r.prod, at + (uint32_t)rows[i].prod);
            T_EQ_U64(r.cons, at + (uint32_t)rows[i].cons);
        }
    }
}

static void wrap_many_times(void)
{
    struct sg_cqe c;
    uint32_t i, k;

    begin_flushing(NULL, 8, 4);
    for (i = 0; i < 1000; i += 4) {
        for (k = 0; k < 4; k++) {
            complete_one(i + k);
        }
        for (k = 0; k < 4; k++) {
            T_TRUE(md_poll(&cq, &c));
            T_EQ_U64(sg_get_le64(&c.wr_id), i + k);
            T_EQ_U64(sg_get_le32(&c.wr_index), i + k);
            T_EQ_U64(c.status, SG_WC_FLUSH_ERR);
        }
        T_FALSE(md_poll(&cq, &c));
    }
    solo_end(&s);
}

static void arming(void)
{
    struct sg_cqe c;
    struct sg_eqe e;

    begin_flushing(NULL, 64, 64);
    md_arm_eq(&s.md, 1);
    complete_one(1);
    T_FALSE(md_next_event(&s.md, &e)); /* not armed */
    md_arm(&cq, false);                /* an entry is unread */
    T_TRUE(md_next_event(&s.md, &e));
    T_EQ_U64(e.event, SG_EV_COMPLETION);
    T_EQ_U64(sg_get_le32(&e.id), cq.cqn);
    T_EQ_U64(s.h.raised[1], 1);
    complete_one(2);
    T_FALSE(md_next_event(&s.md, &e)); /* one event per arming */
    while (md_poll(&cq, &c)) {
    }
    md_arm(&cq, false);
    T_FALSE(md_next_event(&s.md, &e)); /* all entries are read */
    complete_one(3);
    T_TRUE(md_next_event(&s.md, &e));
    T_EQ_U64(s.h.raised[1], 1); /* the event queue was not armed again */
    md_arm_eq(&s.md, 1);
    T_EQ_U64(s.h.raised[1], 1); /* and no event is unread */
    solo_end(&s);
}

/* perftest's "-e" waits, arms, then takes one entry: that entry raises no second event. */
static void arming_unread(void)
{
    struct sg_cqe c;
    struct sg_eqe e;

    begin_flushing(NULL, 64, 64);
    md_arm(&cq, false);
    complete_one(1);
    T_TRUE(md_next_event(&s.md, &e));
    md_arm(&cq, false);
    T_FALSE(md_next_event(&s.md, &e)); /* entry 1 is unread, but had its event */
    T_TRUE(md_poll(&cq, &c));
    complete_one(2);
    T_TRUE(md_next_event(&s.md, &e));
    complete_one(3); /* this one raised no event */
    md_arm(&cq, false);
    T_TRUE(md_next_event(&s.md, &e));
    md_arm(&cq, true);
    T_FALSE(md_next_event(&s.md, &e)); /* all three failed, so count as solicited, and had events */
    complete_one(4);
    T_TRUE(md_next_event(&s.md, &e));
    T_TRUE(md_poll(&cq, &c));
    T_TRUE(md_poll(&cq, &c));
    T_TRUE(md_poll(&cq, &c));
    T_FALSE(md_poll(&cq, &c));
    solo_end(&s);
}

/*
 * A queue was polled, and never armed, for more than half the range of an index.  The entries of
 * its last event and last solicited completion are not in the ring any more, and do not count.
 */
static void arming_after_long_polling(void)
{
    static const uint32_t starts[] = { 0x7ffffff0, 0x80000010, 0xfffffff0, 0x40000000 };
    struct sg_cq *of_device;
    struct sg_cqe c;
    struct sg_eqe e;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(starts); i++) {
        uint32_t k;

        T_CONTEXT("from %x", starts[i]);
        begin_flushing(NULL, 64, 64);
        md_arm(&cq, false);
        complete_one(1);
        T_TRUE(md_next_event(&s.md, &e));
        T_TRUE(md_poll(&cq, &c));
        of_device = sg_idtab_get(&s.md.a->cqs, cq.cqn);
        of_device->ring.prod = of_device->ring.cons = cq.ring.cons = starts[i];
        for (k = 0; k < 64; k++) {
            complete_one(k);
            T_TRUE(md_poll(&cq, &c));
        }
        of_device->solicited = 1; /* as if none of them was solicited */
        md_arm(&cq, true);
        T_FALSE(md_next_event(&s.md, &e));
        complete_one(2);
        T_TRUE(md_next_event(&s.md, &e));
        of_device->notified = 1;
        md_arm(&cq, false); /* entry 2 is unread, and raised no event */
        T_TRUE(md_next_event(&s.md, &e));
        solo_end(&s);
    }
}

static void arming_solicited(void)
{
    static struct pair p;
    struct sg_cqe c;
    struct sg_eqe e;
    int i;

    pair_start(&p, NULL, NULL);
    pair_open(&p, NULL);
    pair_connect(&p);
    for (i = 0; i < 4; i++) {
        md_post_recv(&p.side[1].qp, i, p.side[1].buf, 64, p.side[1].stag);
    }
    md_arm(&p.side[1].cq, true);
    for (i = 0; i < 4; i++) {
        struct md_wr w = { .opcode = SG_WR_SEND, .flags = i == 2 ? SG_WQE_SOLICITED : 0 };

        md_post_send(&p.side[0].qp, &w);
        pair_settle(&p);
        T_TRUE(md_poll(&p.side[1].cq, &c));
        T_CONTEXT("message %d", i);
        T_TRUE(md_next_event(&p.side[1].md, &e) == (i == 2));
        if (i == 2) {
            md_arm(&p.side[1].cq, true);
        }
    }
    /* A failed completion counts as solicited. */
    md_post_recv(&p.side[1].qp, 9, p.side[1].buf, 64, p.side[1].stag);
    T_EQ_U64(md_modify_qp(&p.side[1].qp, SG_QP_ERROR), SG_OK);
    pair_settle(&p);
    T_TRUE(md_next_event(&p.side[1].md, &e));
    pair_close(&p);
    pair_stop(&p);
}

static void overflow(void)
{
    struct md_qp other;
    struct md_cq quiet;
    struct sg_eqe e;
    struct sg_cqe c;
    uint32_t i;

    begin_flushing(NULL, 8, 16);
    md_create_cq(&s.md, &quiet, 8);
    md_create_qp(&s.md, &other, &(struct md_qp_params){ .pd = pd, .scq = &quiet, .rcq = &cq });
    for (i = 0; i < 8; i++) {
        complete_one(i);
    }
    T_FALSE(md_next_async(&s.md, &e));
    complete_one(8);
    T_TRUE(md_next_async(&s.md, &e));
    T_EQ_U64(e.event, SG_EV_CQ_ERROR);
    T_EQ_U64(sg_get_le32(&e.id), cq.cqn);
    T_EQ_U64(md_qp_state(&other), SG_QP_ERROR);
    for (i = 0; i < 8; i++) {
        T_TRUE(md_poll(&cq, &c));
        T_EQ_U64(sg_get_le64(&c.wr_id), i);
    }
    /* It stays unusable and raises no event; other queues still work. */
    complete_one(9);
    T_FALSE(md_poll(&cq, &c));
    T_FALSE(md_next_async(&s.md, &e));
    md_post_send(&other, &(struct md_wr){ .opcode = SG_WR_SEND, .wr_id = 77 });
    T_TRUE(md_poll(&quiet, &c));
    T_SHOWS("SEC-10") {
        T_EQ_U64(sg_get_le64(&c.wr_id), 77);
    }
    solo_end(&s);
}

/* An impossible consumer index in the record counts as nothing read. */
static void lying_record(void)
{
    struct sg_eqe e;
    uint32_t i;

    begin_flushing(NULL, 8, 16);
    for (i = 0; i < 8; i++) {
        complete_one(i);
    }
    sg_put_le32(test_host_ptr(&s.h, cq.record), 1000);
    complete_one(8);
    T_TRUE(md_next_async(&s.md, &e));
    T_EQ_U64(e.event, SG_EV_CQ_ERROR);
    solo_end(&s);
}

static void doorbell_range(void)
{
    struct sg_eqe e;
    struct sg_cqe c;

    begin_flushing(NULL, 64, 16);
    complete_one(1);
    T_TRUE(md_poll(&cq, &c));
    /* The same doorbell again, and older ones, have no effect. */
    md_rq_doorbell(&qp);
    md_doorbell(&s.md, 0, SG_DB_RQ, qp.qpn, 0);
    T_FALSE(md_poll(&cq, &c));
    T_FALSE(md_next_async(&s.md, &e));
    /* Beyond the ring. */
    md_doorbell(&s.md, 0, SG_DB_RQ, qp.qpn, qp.rq.prod + 17);
    T_TRUE(md_next_async(&s.md, &e));
    T_EQ_U64(e.event, SG_EV_QP_FATAL);
    T_EQ_U64(sg_get_le32(&e.id), qp.qpn);
    md_doorbell(&s.md, 0, SG_DB_SQ, qp.qpn, 0x80000000);
    T_FALSE(md_next_async(&s.md, &e)); /* reported once */
    solo_end(&s);
}

static void foreign_doorbells(void)
{
    struct md_qp mine;
    struct sg_cqe c;
    struct sg_eqe e;
    unsigned before;

    begin_flushing(NULL, 64, 16);
    md_create_qp(&s.md, &mine,
                 &(struct md_qp_params){
                     .pd = pd,
                     .scq = &cq,
                     .rcq = &cq,
                     .uar = 5,
                 });
    T_EQ_U64(md_modify_qp(&mine, SG_QP_ERROR), SG_OK);
    md_rq_entry(&mine);
    before = s.h.guest_errors;
    md_doorbell(&s.md, 0, SG_DB_RQ, mine.qpn, 1);
    md_doorbell(&s.md, 6, SG_DB_SQ, mine.qpn, 1);
    md_doorbell(&s.md, 5, SG_DB_CQ_ARM, cq.cqn, 0);
    md_doorbell(&s.md, 5, SG_DB_SQ, 4711, 1);
    md_doorbell(&s.md, 0, SG_DB_SRQ, 1, 1);
    md_doorbell(&s.md, 0, 0x20, 1, 1);
    md_doorbell(&s.md, 0, 0xff8, 1, 1);
    sg_adapter_doorbell(s.md.a, 5, SG_DB_RQ, mine.qpn, 4);
    T_EQ_U64(s.h.guest_errors, before + 8);
    T_FALSE(md_poll(&cq, &c));
    T_FALSE(md_next_async(&s.md, &e));
    md_doorbell(&s.md, 5, SG_DB_RQ, mine.qpn, 1);
    T_TRUE(md_poll(&cq, &c));
    solo_end(&s);
}

/* 100 completion queues fire into an event queue of 64: all are reported in the end. */
static void event_queue_full(void)
{
    static struct md_cq cqs[100];
    static struct md_qp qps[100];
    struct sg_eqe e;
    int i, seen = 0;

    begin_flushing(NULL, 8, 16);
    for (i = 0; i < 100; i++) {
        md_create_cq(&s.md, &cqs[i], 8);
        md_create_qp(&s.md, &qps[i],
                     &(struct md_qp_params){
                         .pd = pd,
                         .scq = &cqs[i],
                         .rcq = &cqs[i],
                         .stride = 64,
                     });
        T_EQ_U64(md_modify_qp(&qps[i], SG_QP_ERROR), SG_OK);
        md_arm(&cqs[i], false);
        md_post_recv(&qps[i], 1, TEST_HOST_BASE, 16, stag);
    }
    while (md_next_event(&s.md, &e)) {
        seen++;
    }
    T_EQ_INT(seen, 100);
    T_EQ_U64(md_read(&s.md, SG_REG_STATUS) & SG_STATUS_FATAL, 0);
    solo_end(&s);
}

static void async_backlog(void)
{
    struct sg_eqe e;
    int i, up = 0, down = 0;

    begin_flushing(NULL, 8, 16);
    for (i = 0; i < 300; i++) {
        sg_adapter_set_link(s.md.a, i % 2 == 0);
    }
    while (md_next_async(&s.md, &e)) {
        T_EQ_U64(e.event, (up + down) % 2 ? SG_EV_PORT_DOWN : SG_EV_PORT_UP);
        up += e.event == SG_EV_PORT_UP;
        down += e.event == SG_EV_PORT_DOWN;
    }
    T_EQ_INT(up + down, 300);
    solo_end(&s);
}

static void async_overrun(void)
{
    struct sg_adapter_config config;
    int i;

    sg_adapter_default_config(&config);
    config.max_qp = config.max_cq = config.max_srq = config.max_conns = 1;
    begin_flushing(&config, 8, 16);
    for (i = 0; i < 2000 && !(md_read(&s.md, SG_REG_STATUS) & SG_STATUS_FATAL); i++) {
        sg_adapter_set_link(s.md.a, i % 2 == 0);
    }
    T_TRUE(i > 64 && i < 2000);
    T_EQ_U64(md_read(&s.md, SG_REG_FATAL), SG_FATAL_AEQ_OVERRUN);
    md_settle(&s.md);
    solo_end(&s);
}

static void eq_consumer_index(void)
{
    unsigned before;

    begin_flushing(NULL, 8, 16);
    before = s.h.guest_errors;
    md_write(&s.md, SG_REG_EQ_DB + 4, 5);     /* ahead of the producer */
    md_write(&s.md, SG_REG_EQ_DB + 4 * 9, 0); /* no such queue */
    T_EQ_U64(s.h.guest_errors, before + 2);
    solo_end(&s);
}

/* Rings that stop responding affect only their owner. */
static void unreadable_rings(void)
{
    struct sg_eqe e;
    struct sg_cqe c;

    begin_flushing(NULL, 64, 16);
    s.h.fault_lo = qp.rq.base;
    s.h.fault_hi = qp.rq.base + 1024;
    md_doorbell(&s.md, 0, SG_DB_RQ, qp.qpn, 3);
    T_TRUE(md_next_async(&s.md, &e));
    T_EQ_U64(e.event, SG_EV_QP_FATAL);
    T_FALSE(md_poll(&cq, &c));
    T_EQ_U64(md_read(&s.md, SG_REG_STATUS) & SG_STATUS_FATAL, 0);
    s.h.fault_lo = cq.ring.base;
    s.h.fault_hi = cq.ring.base + 64;
    md_post_send(&qp, &(struct md_wr){ .opcode = SG_WR_SEND });
    T_TRUE(md_next_async(&s.md, &e));
    T_EQ_U64(e.event, SG_EV_CQ_ERROR);
    T_EQ_U64(md_read(&s.md, SG_REG_STATUS) & SG_STATUS_FATAL, 0);
    solo_end(&s);
}

static void long_flush(void)
{
    uint32_t n = 0, turns = 0;
    struct sg_cqe c;

    begin_flushing(NULL, 8192, 4096);
    s.md.hold = true;
    while (n < 4096) {
        complete_one(n++);
    }
    while (sg_adapter_run(s.md.a, 65536)) {
        turns++;
    }
    T_TRUE(turns >= 3); /* bounded turns */
    for (n = 0; n < 4096; n++) {
        T_TRUE(md_poll(&cq, &c));
        T_EQ_U64(sg_get_le64(&c.wr_id), n);
    }
    solo_end(&s);
}

/* The longest possible queue, completely in use, and once around. */
static void longest_queue(void)
{
    const uint32_t entries = 1 << 20, batch = 4096;
    struct sg_adapter_config config;
    struct sg_cmd_create_qp cmd;
    struct sg_cqe c;
    uint32_t i, k;

    sg_adapter_default_config(&config);
    config.max_qp_wr = entries;
    begin_flushing(&config, 8192, entries);
    for (i = 0; i <= entries; i += batch) {
        for (k = 0; k < batch; k++) {
            complete_one(i + k);
        }
        for (k = 0; k < batch; k++) {
            T_TRUE(md_poll(&cq, &c));
            T_EQ_U64(sg_get_le64(&c.wr_id), i + k);
            T_EQ_U64(sg_get_le32(&c.wr_index), i + k);
        }
    }
    cmd = md_create_qp_cmd(&s.md, &(struct md_qp_params){ .pd = pd, .scq = &cq, .rcq = &cq });
    sg_put_le32(&cmd.sq_entries, 2 * entries);
    T_EQ_U64(md_cmd(&s.md, &cmd, sizeof(cmd), NULL), SG_EINVAL);
    solo_end(&s);
}

static const struct t_case cases[] = {
    { "slots and phases", ring_geometry },
    { "indices that a guest gives", ring_indices },
    { "rings wrap many times", wrap_many_times },
    { "arming a completion queue", arming },
    { "arming with entries that an event told of", arming_unread },
    { "arming for solicited completions", arming_solicited },
    { "arming after 2^31 entries that nobody was told of", arming_after_long_polling },
    { "overrun hits its own queue pairs only", overflow },
    { "consumer record with a wild index", lying_record },
    { "doorbells: repeated, stale, beyond the ring", doorbell_range },
    { "doorbells for foreign queues are ignored", foreign_doorbells },
    { "a full event queue delays completion events", event_queue_full },
    { "a full async queue delays events, in order", async_backlog },
    { "a driver that never consumes: AEQ_OVERRUN", async_overrun },
    { "consumer index beyond the event queue", eq_consumer_index },
    { "rings that do not respond", unreadable_rings },
    { "long queues are flushed in bounded turns", long_flush },
    { "1,048,576 entries", longest_queue },
};

T_MAIN(cases)
