/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues: which queue pair takes which entry and when, entries whose queue pair
 * ends, the limit, and all errors of commands, entries and doorbells.
 *
 * Side 1 has the shared queue and receives; LINKS connections lead there.
 */
#include "field_row.h"
#include "rig.h"
#include "srq_rig.h"

/* First come, first served, while the ring wraps several times. */
static void shared_by_all(void)
{
    struct sg_admin_rsp q;
    struct sg_cqe c;
    uint32_t i;
    int n;

    begin_shared();
    for (i = 0; i < ENTRIES; i++) {
        supply(i, 4096);
    }
    for (i = 0; i < 5 * ENTRIES; i++) {
        n = (int)(i * 7 % LINKS);
        fill(0, 4096 * (i % 32), 64 + i, (uint8_t)i);
        send_on(n, i, 64 + i);
        got(0, n, i, SG_WC_SUCCESS);
        c = got(1, n, i, SG_WC_SUCCESS);
        T_EQ_U64(c.opcode, SG_WC_RECV);
        T_TRUE(c.flags_phase & SG_CQE_RECV);
        T_EQ_U64(sg_get_le32(&c.wr_index), i);
        T_EQ_U64(sg_get_le32(&c.byte_len), 64 + i);
        T_EQ_MEM(pair_buf(&pair, 0) + 4096 * (i % 32), pair_buf(&pair, 1) + 4096 * (i % 32),
                 64 + i);
        supply(i + ENTRIES, 4096);
    }
    q = query();
    T_EQ_U64(sg_get_le32(&q.data[0]), ENTRIES);
    T_EQ_U64(sg_get_le32(&q.data[1]), 0);
    T_EQ_U64(sg_get_le32(&q.data[2]), 5 * ENTRIES);
    end_shared();
}

static void taken_at_first_segment(void)
{
    struct sg_admin_rsp q;
    struct sg_cqe c;

    begin_shared();
    supply(0, 4096);
    supply(1, 4096);
    supply(2, 4096);
    begin_message(2);
    begin_message(2); /* the same message: nothing more is taken */
    begin_message(0);
    T_EQ_U64(pair_buf(&pair, 1)[0], 0xa2);
    T_EQ_U64(pair_buf(&pair, 1)[4096], 0xa0);
    q = query();
    T_EQ_U64(sg_get_le32(&q.data[0]), 1);
    T_EQ_U64(sg_get_le32(&q.data[2]), 0);
    /* Messages may end in any order: a completion frees an entry, whatever its position. */
    send_on(0, 10, 200);
    c = got(1, 0, 1, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le32(&c.wr_index), 0);
    send_on(1, 11, 100);
    c = got(1, 1, 2, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le32(&c.wr_index), 1);
    send_on(2, 12, 100);
    c = got(1, 2, 0, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le32(&c.wr_index), 2);
    end_shared();
}

static void taken_then_error(void)
{
    struct sg_cqe c;
    struct sg_eqe e;

    begin_shared();
    supply(0, 4096);
    supply(1, 4096);
    begin_message(0);
    T_EQ_U64(md_modify_qp(&joints[0].qp[1], SG_QP_ERROR), SG_OK);
    c = got(1, 0, 0, SG_WC_FLUSH_ERR);
    T_EQ_U64(sg_get_le32(&c.wr_index), 0);
    T_TRUE(c.flags_phase & SG_CQE_RECV);
    do {
        pair_settle(&pair);
        T_TRUE(md_next_async(&pair.side[1].md, &e));
    } while (e.event != SG_EV_QP_LAST_WQE);
    T_EQ_U64(sg_get_le32(&e.id), joints[0].qp[1].qpn);
    /* An entry that is not taken remains for others, and no queue pair flushes it. */
    T_EQ_U64(md_modify_qp(&joints[1].qp[1], SG_QP_ERROR), SG_OK);
    do {
        pair_settle(&pair);
        T_TRUE(md_next_async(&pair.side[1].md, &e));
    } while (e.event != SG_EV_QP_LAST_WQE);
    T_EQ_U64(sg_get_le32(&e.id), joints[1].qp[1].qpn);
    T_FALSE(md_poll(&pair.side[1].cq, &c));
    send_on(2, 5, 64);
    got(1, 2, 1, SG_WC_SUCCESS);
    while (md_next_async(&pair.side[1].md, &e)) {
        T_TRUE(e.event != SG_EV_QP_LAST_WQE);
    }
    end_shared();
}

static void taken_then_destroyed(void)
{
    struct sg_admin_rsp q;
    struct sg_cqe c;

    begin_shared();
    supply(0, 4096);
    begin_message(1);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_QP, joints[1].qp[1].qpn), SG_OK);
    T_TRUE(md_poll(&pair.side[1].cq, &c)); /* written before the command's completion */
    T_EQ_U64(c.status, SG_WC_FLUSH_ERR);
    T_EQ_U64(sg_get_le32(&c.wr_index), 0);
    q = query();
    T_EQ_U64(sg_get_le32(&q.data[2]), 1);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_SRQ, srq.srqn), SG_EBUSY);
    end_shared();
}

/* Nothing posted: the stream of the message ends as with an empty queue of its own. */
static void nothing_posted(void)
{
    struct sg_cqe c;
    struct sg_eqe e;

    begin_shared();
    send_on(1, 1, 64);
    got(0, 1, 1, SG_WC_SUCCESS);
    e = pair_expect(&pair, 1, SG_EV_QP_REQ_ERR);
    T_EQ_U64(sg_get_le32(&e.id), joints[1].qp[1].qpn);
    T_EQ_U64(md_qp_state(&joints[1].qp[0]), SG_QP_ERROR);
    supply(7, 64);
    send_on(0, 2, 64);
    got(0, 0, 2, SG_WC_SUCCESS);
    got(1, 0, 7, SG_WC_SUCCESS);
    T_FALSE(md_poll(&pair.side[1].cq, &c));
    end_shared();
}

static void limit(void)
{
    struct sg_admin_rsp q;
    struct sg_eqe e;
    uint64_t i;

    begin_shared();
    for (i = 0; i < 6; i++) {
        supply(i, 4096);
    }
    T_EQ_U64(set_limit(ENTRIES + 1), SG_EINVAL);
    T_EQ_U64(set_limit(4), SG_OK);
    for (i = 0; i < 2; i++) {
        send_on((int)i, i, 64); /* 5, then 4 left */
        T_TRUE(no_event(1));
    }
    q = query();
    T_EQ_U64(sg_get_le32(&q.data[1]), 4);
    begin_message(2); /* taking an entry counts, not its completion */
    pair_settle(&pair);
    T_TRUE(md_next_async(&pair.side[1].md, &e));
    T_EQ_U64(e.event, SG_EV_SRQ_LIMIT);
    T_EQ_U64(sg_get_le32(&e.id), srq.srqn);
    q = query();
    T_EQ_U64(sg_get_le32(&q.data[1]), 0);
    send_on(0, 3, 64);
    T_TRUE(no_event(1)); /* once */
    /* Armed while fewer entries are left already: the event comes at once. */
    T_EQ_U64(set_limit(3), SG_OK);
    T_TRUE(md_next_async(&pair.side[1].md, &e));
    T_EQ_U64(e.event, SG_EV_SRQ_LIMIT);
    T_EQ_U64(set_limit(2), SG_OK);
    T_TRUE(no_event(1));
    T_EQ_U64(set_limit(0), SG_OK);
    send_on(0, 4, 64);
    T_TRUE(no_event(1));
    end_shared();
}

/* Entries that a careless process may post; the queue and the other streams live on. */
static void faulty_entries(void)
{
    static const struct {
        const char *name;
        enum sg_wc_status want;
        uint8_t num_sge, index_off;
        bool bad_key;
    } rows[] = {
        { "index", SG_WC_LOC_QP_OP_ERR, 1, 1, false },
        { "too many elements", SG_WC_LOC_LEN_ERR, 8, 0, false },
        { "as many as there may be", SG_WC_LOC_LEN_ERR, 255, 0, false },
        { "key of nobody", SG_WC_LOC_PROT_ERR, 1, 0, true },
    };
    struct sg_rqe_hdr *h;
    struct sg_sge *sge;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("%s", rows[i].name);
        begin_shared();
        h = md_srq_entry(&srq);
        sg_put_le64(&h->wr_id, 77);
        h->num_sge = rows[i].num_sge;
        sg_put_le32(&h->index, rows[i].index_off);
        sge = (struct sg_sge *)(h + 1);
        sg_put_le64(&sge->addr, pair.side[1].buf);
        sg_put_le32(&sge->length, 64);
        sg_put_le32(&sge->lkey, pair.side[1].stag ^ rows[i].bad_key);
        md_srq_doorbell(&srq);
        supply(1, 64);
        send_on(0, 1, 64);
        got(1, 0, 77, rows[i].want);
        T_TRUE(md_qp_state(&joints[0].qp[1]) >= SG_QP_TERMINATE);
        send_on(1, 2, 64);
        got(1, 1, 1, SG_WC_SUCCESS);
        end_shared();
    }
}

/* One event; no more entries are taken, and only queue pairs that need one fail. */
static void dead_queue(bool by_doorbell)
{
    struct sg_eqe e;

    begin_shared();
    supply(0, 64);
    if (by_doorbell) {
        md_doorbell(&pair.side[1].md, 0, SG_DB_SRQ, srq.srqn, ENTRIES + 2);
        md_doorbell(&pair.side[1].md, 0, SG_DB_SRQ, srq.srqn, ENTRIES + 2);
    } else {
        struct sg_adapter *a = pair.side[1].md.a;
        struct sg_srq *q = sg_idtab_get(&a->srqs, srq.srqn);

        q->ring.base = ~0xfffull; /* as if the memory had been unplugged */
        send_on(0, 1, 64);
    }
    e = pair_expect(&pair, 1, SG_EV_SRQ_ERROR);
    T_EQ_U64(sg_get_le32(&e.id), srq.srqn);
    if (!by_doorbell) {
        pair_expect(&pair, 1, SG_EV_QP_FATAL);
    }
    T_EQ_U64(md_qp_state(&joints[2].qp[1]), SG_QP_RTS);
    send_on(1, 2, 64);
    do {
        T_TRUE(md_next_async(&pair.side[1].md, &e));
        T_TRUE(e.event != SG_EV_SRQ_ERROR);
    } while (e.event != SG_EV_QP_FATAL);
    T_EQ_U64(sg_get_le32(&e.id), joints[1].qp[1].qpn);
    T_EQ_U64(md_qp_state(&joints[2].qp[1]), SG_QP_RTS);
    end_shared();
}

static void unreadable(void)
{
    dead_queue(false);
}

static void bad_doorbell(void)
{
    dead_queue(true);
}

static void doorbells(void)
{
    struct sg_admin_rsp q;

    begin_shared();
    supply(0, 128);
    supply(1, 128);
    md_doorbell(&pair.side[1].md, 0, SG_DB_SRQ, srq.srqn, 1); /* late: ignored */
    md_doorbell(&pair.side[1].md, 3, SG_DB_SRQ, srq.srqn, 4); /* another context's page */
    md_doorbell(&pair.side[1].md, 0, SG_DB_SRQ, srq.srqn + 1, 4);
    md_doorbell(&pair.side[1].md, 0, SG_DB_RQ, joints[0].qp[1].qpn, 4); /* it has no RQ */
    q = query();
    T_EQ_U64(sg_get_le32(&q.data[0]), 2);
    T_TRUE(no_event(1));
    T_EQ_U64(md_qp_state(&joints[0].qp[1]), SG_QP_RTS);
    /* An entry counts until it has completed: the ring has room for no more. */
    begin_message(0);
    md_doorbell(&pair.side[1].md, 0, SG_DB_SRQ, srq.srqn, ENTRIES);
    T_TRUE(no_event(1));
    md_doorbell(&pair.side[1].md, 0, SG_DB_SRQ, srq.srqn, ENTRIES + 1);
    pair_expect(&pair, 1, SG_EV_SRQ_ERROR);
    end_shared();
}

static void try_row(struct md *md, const void *good, size_t len, const struct field_row *row)
{
    struct sg_adapter_census before, after;
    uint8_t cmd[SG_ADMIN_CMD_SIZE] = { 0 };

    T_CONTEXT("%s = 0x%" PRIx64, row->name, row->value);
    memcpy(cmd, good, len);
    field_put(cmd, row);
    sg_adapter_census(md->a, &before);
    T_EQ_U64(md_cmd(md, cmd, len, NULL), row->status);
    sg_adapter_census(md->a, &after);
    T_EQ_MEM(&after, &before, sizeof(after));
}

static void commands(void)
{
    static const struct field_row create[] = {
        { FIELD(sg_cmd_create_srq, pd), 99, SG_ENOENT },
        { FIELD(sg_cmd_create_srq, uar), SG_UAR_COUNT, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, entries), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, entries), 1, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, entries), 24, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, entries), 64, SG_EINVAL }, /* list too short */
        { FIELD(sg_cmd_create_srq, entries), 1u << 31, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, stride), 32, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, stride), 64, SG_EINVAL }, /* seven elements */
        { FIELD(sg_cmd_create_srq, stride), 192, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, stride), 2048, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, max_sge), 8, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, max_sge), 255, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, limit), 33, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, limit), UINT32_MAX, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, pages.addr), 8, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, pages.count), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_srq, pages.levels), 3, SG_EINVAL },
    };
    static const struct field_row qp[] = {
        { FIELD(sg_cmd_create_qp, srqn), 0, SG_ENOENT },
        { FIELD(sg_cmd_create_qp, srqn), 99, SG_ENOENT },
        { FIELD(sg_cmd_create_qp, pd), 2, SG_EPERM },
        { FIELD(sg_cmd_create_qp, flags), 0, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_entries), 16, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_stride), 64, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_max_sge), 1, SG_EINVAL },
        { FIELD(sg_cmd_create_qp, rq_pages.addr), 4096, SG_EINVAL },
    };
    struct sg_cmd_create_srq c;
    struct sg_cmd_create_qp q;
    struct md_srq own;
    struct md_cq cq;
    static struct solo s;
    uint32_t pd;
    size_t i;

    solo_new(&s, NULL, true);
    pd = md_create_pd(&s.md);
    T_EQ_U64(md_create_pd(&s.md), 2);
    md_create_cq(&s.md, &cq, 16);
    c = md_create_srq_cmd(&s.md, pd, 32);
    for (i = 0; i < sizeof(create) / sizeof(create[0]); i++) {
        try_row(&s.md, &c, sizeof(c), &create[i]);
    }
    md_create_srq(&s.md, &own, pd, 16);
    q = md_create_qp_cmd(&s.md, &(struct md_qp_params){
                                    .pd = pd,
                                    .scq = &cq,
                                    .rcq = &cq,
                                    .srq = &own,
                                });
    for (i = 0; i < sizeof(qp) / sizeof(qp[0]); i++) {
        try_row(&s.md, &q, sizeof(q), &qp[i]);
    }
    T_EQ_U64(md_cmd(&s.md, &q, sizeof(q), NULL), SG_OK);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_PD, pd), SG_EBUSY);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_SRQ, own.srqn), SG_EBUSY);
    for (i = SG_ADMIN_CREATE_SRQ + 1; i <= SG_ADMIN_QUERY_SRQ; i++) {
        T_EQ_U64(md_cmd_id(&s.md, i, 0), SG_ENOENT);
        T_EQ_U64(md_cmd_id(&s.md, i, UINT32_MAX), SG_ENOENT);
    }
    solo_end(&s);
}

static void bounds(void)
{
    struct sg_adapter_config config;
    struct sg_cmd_create_srq c;
    static struct solo s;
    uint32_t pd;

    sg_adapter_default_config(&config);
    config.max_srq = 2;
    config.max_srq_wr = 16;
    config.max_sge = 4;
    solo_new(&s, &config, true);
    pd = md_create_pd(&s.md);
    c = md_create_srq_cmd(&s.md, pd, 32);
    c.max_sge = 4;
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_EINVAL);
    c = md_create_srq_cmd(&s.md, pd, 16);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_EINVAL);
    c.max_sge = 4;
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_ENOMEM);
    T_EQ_U64(md_cmd_id(&s.md, SG_ADMIN_DESTROY_SRQ, 1), SG_OK);
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_OK);
    solo_end(&s);
    /* Firmware without the feature refuses all of its commands. */
    config.features = ~SG_FEATURE_SRQ;
    solo_new(&s, &config, true);
    pd = md_create_pd(&s.md);
    c = md_create_srq_cmd(&s.md, pd, 16);
    c.max_sge = 4;
    T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), SG_EOPCODE);
    solo_end(&s);
}

/* RESET with queues, users and a message half way. */
static void reset_in_use(void)
{
    struct sg_adapter_census c;
    int i;

    begin_shared();
    supply(0, 4096);
    begin_message(1);
    sg_adapter_reset(pair.side[1].md.a);
    sg_adapter_census(pair.side[1].md.a, &c);
    T_EQ_U64(c.srqs, 0);
    T_EQ_U64(c.qps, 0);
    pair_settle(&pair);
    for (i = 0; i < LINKS; i++) {
        T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DESTROY_QP, joints[i].qp[0].qpn), SG_OK);
    }
    pair_pass(&pair, 10000000000ull);
    pair_stop(&pair);
}

static const struct t_case cases[] = {
    { "entries go to whoever's message comes first", shared_by_all },
    { "an entry is taken at the first segment, one at a time per queue pair",
      taken_at_first_segment },
    { "error: the taken entry is flushed, then the last-entry event", taken_then_error },
    { "DESTROY_QP completes the taken entry first", taken_then_destroyed },
    { "nothing posted ends that stream only", nothing_posted },
    { "the limit event comes once per arming", limit },
    { "faulty entries", faulty_entries },
    { "an unreadable ring", unreadable },
    { "a doorbell beyond the ring", bad_doorbell },
    { "doorbells that change nothing, and the room that completions give", doorbells },
    { "commands with each field wrong", commands },
    { "limits of the configuration and of the firmware", bounds },
    { "reset while in use", reset_in_use },
};

T_MAIN(cases)
