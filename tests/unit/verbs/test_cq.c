/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes of completion queues: RESIZE_CQ, moderation, and the clock of completions. */
#include "field_row.h"
#include "pair_rig.h"
#include "rig.h"

/* Replaces the ring; the driver's view changes with it.  Returns where the old one ended. */
static enum sg_status resize(struct md_cq *cq, uint32_t entries, struct md_ring *old,
                             uint32_t *end_of_old)
{
    struct sg_cmd_resize_cq c = { .hdr.opcode = SG_ADMIN_RESIZE_CQ };
    struct sg_cmd_create_cq like = md_create_cq_cmd(cq->md, entries);
    struct sg_admin_rsp rsp;
    enum sg_status status;

    sg_put_le32(&c.cqn, cq->cqn);
    sg_put_le32(&c.entries, entries);
    c.pages = like.pages;
    memcpy(&c.record, &like.record, sizeof(c.record));
    status = md_cmd(cq->md, &c, sizeof(c), &rsp);
    if (status == SG_OK) {
        *old = cq->ring;
        *end_of_old = sg_get_le32(&rsp.data[0]);
        cq->ring = (struct md_ring){
            .base = sg_get_le64(&c.pages.addr),
            .entries = entries,
            .stride = 64,
        };
        cq->record = sg_get_le64(&c.record);
    }
    return status;
}

static void send_both(uint64_t id)
{
    recv(1, id, 0, 64);
    post(0, wr(0, SG_WR_SEND, id, 0, 64, 0));
    pair_settle(&pair);
}

/* Larger and smaller, with completions unread in the old ring. */
static void resizing(void)
{
    static const uint32_t sizes[] = { 4, 64, 2, 512, 8, 4096, 4 };
    struct md_cq *cq = &pair.side[1].cq;
    struct md_ring old;
    uint32_t end_of_old = 0, left;
    struct sg_cqe c;
    uint64_t id = 0;
    size_t i;

    begin(NULL);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        T_CONTEXT("to %u entries", sizes[i]);
        send_both(id);
        send_both(id + 1);
        T_EQ_U64(resize(cq, sizes[i], &old, &end_of_old), SG_OK);
        left = end_of_old - old.cons;
        T_EQ_U64(left, 2);
        send_both(id + 2);
        /* The old ring first. */
        for (; old.cons != end_of_old; old.cons++) {
            const struct sg_cqe *e =
                test_host_ptr(&pair.side[1].h, old.base + 64 * (old.cons % old.entries));

            T_EQ_U64(e->flags_phase & 1, !((old.cons / old.entries) & 1));
            T_EQ_U64(sg_get_le64(&e->wr_id), id + 2 - (end_of_old - old.cons));
        }
        c = expect(1, id + 2, SG_WC_SUCCESS);
        T_EQ_U64(c.flags_phase & 1, 1);
        expect_none(1);
        id += 3;
        while (md_poll(&pair.side[0].cq, &c)) {
        }
    }
    end();
}

/* Unread completions must fit into the new ring; if they do not, nothing changes. */
static void too_small(void)
{
    struct md_cq *cq = &pair.side[1].cq;
    struct md_ring old;
    uint32_t at;
    uint64_t i;

    begin(NULL);
    for (i = 0; i < 3; i++) {
        send_both(i);
    }
    T_EQ_U64(resize(cq, 2, &old, &at), SG_EINVAL);
    for (i = 0; i < 3; i++) {
        expect(1, i, SG_WC_SUCCESS);
        expect(0, i, SG_WC_SUCCESS);
    }
    T_EQ_U64(resize(cq, 2, &old, &at), SG_OK); /* the record says that all are read */
    T_EQ_U64(at, 3);
    /* The new ring's bounds hold. */
    for (i = 0; i < 3; i++) {
        recv(1, i, 0, 64);
        post(0, wr(0, SG_WR_SEND, i, 0, 64, 0));
    }
    pair_expect(&pair, 1, SG_EV_CQ_ERROR);
    T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_ERROR);
    T_EQ_U64(resize(cq, 64, &old, &at), SG_ESTATE);
    end();
}

/* An armed queue stays armed across a change of rings. */
static void armed_across(void)
{
    struct md_cq *cq = &pair.side[1].cq;
    struct md_ring old;
    struct sg_eqe e;
    uint32_t at;

    begin(NULL);
    md_arm(cq, false);
    T_EQ_U64(resize(cq, 16, &old, &at), SG_OK);
    T_FALSE(md_next_event(&pair.side[1].md, &e));
    send_both(1);
    T_TRUE(md_next_event(&pair.side[1].md, &e));
    T_EQ_U64(sg_get_le32(&e.id), cq->cqn);
    expect(1, 1, SG_WC_SUCCESS);
    T_EQ_U64(resize(cq, 32, &old, &at), SG_OK);
    md_arm(cq, false);
    T_FALSE(md_next_event(&pair.side[1].md, &e));
    send_both(2);
    T_TRUE(md_next_event(&pair.side[1].md, &e));
    expect(1, 2, SG_WC_SUCCESS);
    end();
}

static void commands(void)
{
    static const struct field_row rows[] = {
        { FIELD(sg_cmd_resize_cq, cqn), 0, SG_ENOENT },
        { FIELD(sg_cmd_resize_cq, cqn), UINT32_MAX, SG_ENOENT },
        { FIELD(sg_cmd_resize_cq, entries), 0, SG_EINVAL },
        { FIELD(sg_cmd_resize_cq, entries), 1, SG_EINVAL },
        { FIELD(sg_cmd_resize_cq, entries), 48, SG_EINVAL },
        { FIELD(sg_cmd_resize_cq, entries), 128, SG_EINVAL }, /* list too short */
        { FIELD(sg_cmd_resize_cq, entries), 1u << 31, SG_EINVAL },
        { FIELD(sg_cmd_resize_cq, record), 32, SG_EINVAL },
        { FIELD(sg_cmd_resize_cq, pages.addr), 4, SG_EINVAL },
        { FIELD(sg_cmd_resize_cq, pages.levels), 3, SG_EINVAL },
        { FIELD(sg_cmd_resize_cq, pages.count), 0, SG_EINVAL },
    };
    struct sg_cmd_modify_cq m = { .hdr.opcode = SG_ADMIN_MODIFY_CQ };
    struct sg_cmd_resize_cq good = { .hdr.opcode = SG_ADMIN_RESIZE_CQ };
    struct sg_cmd_create_cq like;
    static struct solo s;
    struct md_cq cq;
    size_t i;

    solo_new(&s, NULL, true);
    md_create_cq(&s.md, &cq, 64);
    like = md_create_cq_cmd(&s.md, 64);
    sg_put_le32(&good.cqn, cq.cqn);
    sg_put_le32(&good.entries, 64);
    good.pages = like.pages;
    memcpy(&good.record, &like.record, sizeof(good.record));
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sg_cmd_resize_cq c = good;

        T_CONTEXT("%s = 0x%" PRIx64, rows[i].name, rows[i].value);
        field_put(&c, &rows[i]);
        T_EQ_U64(md_cmd(&s.md, &c, sizeof(c), NULL), rows[i].status);
    }
    good.pages.levels = 1;
    sg_put_le64(&good.pages.addr, 8);
    T_EQ_U64(md_cmd(&s.md, &good, sizeof(good), NULL), SG_EFAULT);
    T_EQ_U64(md_cmd(&s.md, &m, sizeof(m), NULL), SG_ENOENT);
    sg_put_le32(&m.cqn, cq.cqn);
    sg_put_le16(&m.count, UINT16_MAX);
    sg_put_le16(&m.period, UINT16_MAX);
    T_EQ_U64(md_cmd(&s.md, &m, sizeof(m), NULL), SG_OK);
    solo_end(&s);
}

static void moderate(uint16_t count, uint16_t period)
{
    struct sg_cmd_modify_cq c = { .hdr.opcode = SG_ADMIN_MODIFY_CQ };

    sg_put_le32(&c.cqn, pair.side[1].cq.cqn);
    sg_put_le16(&c.count, count);
    sg_put_le16(&c.period, period);
    T_EQ_U64(md_cmd(&pair.side[1].md, &c, sizeof(c), NULL), SG_OK);
}

static bool event(void)
{
    struct sg_eqe e;

    pair_settle(&pair);
    return md_next_event(&pair.side[1].md, &e);
}

static void drain(void)
{
    struct sg_cqe c;

    while (md_poll(&pair.side[1].cq, &c) || md_poll(&pair.side[0].cq, &c)) {
    }
}

static void moderation(void)
{
    struct md_cq *cq = &pair.side[1].cq;
    uint64_t i;

    begin(NULL);
    moderate(4, 100);
    md_arm(cq, false);
    for (i = 0; i < 3; i++) {
        send_both(i);
        T_FALSE(event());
    }
    send_both(3); /* the fourth */
    T_TRUE(event());
    drain();
    send_both(4); /* not armed: no event */
    T_FALSE(event());
    drain();
    md_arm(cq, false);
    send_both(5);
    T_FALSE(event());
    pair_pass(&pair, 99000);
    T_FALSE(event());
    pair_pass(&pair, 1000); /* the period began with the first completion */
    T_TRUE(event());
    pair_pass(&pair, 1000000);
    T_FALSE(event());
    /* An unread completion that came before arming counts, too. */
    send_both(6);
    md_arm(cq, false);
    T_FALSE(event());
    pair_pass(&pair, 100000);
    T_TRUE(event());
    drain();
    /* Disabling moderation sends the event that was put off. */
    md_arm(cq, false);
    send_both(7);
    T_FALSE(event());
    moderate(0, 0);
    T_TRUE(event());
    drain();
    md_arm(cq, false);
    send_both(8);
    T_TRUE(event());
    drain();
    end();
}

/* Without count or period events come at once; only completions that were asked for count. */
static void moderation_edges(void)
{
    static const uint16_t none[][2] = { { 0, 100 }, { 1, 100 }, { 8, 0 } };
    struct md_cq *cq = &pair.side[1].cq;
    struct md_wr w;
    size_t i;

    begin(NULL);
    for (i = 0; i < 3; i++) {
        T_CONTEXT("count %u, period %u", none[i][0], none[i][1]);
        moderate(none[i][0], none[i][1]);
        md_arm(cq, false);
        send_both(i);
        T_TRUE(event());
        drain();
    }
    moderate(2, 1000);
    md_arm(cq, true);
    send_both(1);
    send_both(2);
    T_FALSE(event());
    pair_pass(&pair, 2000000);
    T_FALSE(event());
    for (i = 0; i < 2; i++) {
        recv(1, 3, 0, 64);
        w = wr(0, SG_WR_SEND, 3, 0, 64, 0);
        w.flags = SG_WQE_SOLICITED;
        post(0, w);
        T_EQ_U64(event(), i == 1);
    }
    drain();
    /* The queue is destroyed while its event is put off. */
    md_arm(cq, false);
    send_both(4);
    T_FALSE(event());
    sg_adapter_reset(pair.side[1].md.a);
    pair_pass(&pair, 1000000);
    sg_adapter_reset(pair.side[0].md.a);
    pair_pass(&pair, 1000000);
    pair_stop(&pair);
}

static void clock_of_completions(void)
{
    struct md *md = &pair.side[1].md;
    struct sg_cqe c;
    uint64_t before, now;

    begin(NULL);
    pair_pass(&pair, 5000000000ull);
    before = sg_adapter_doorbell_read(md->a, 0, SG_DB_CLOCK, 8);
    T_EQ_U64(before, pair.side[1].h.now_ns);
    send_both(1);
    c = expect(1, 1, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le64(&c.timestamp), before);
    pair_pass(&pair, 12345);
    now = sg_adapter_doorbell_read(md->a, 7, SG_DB_CLOCK, 8);
    T_EQ_U64(now, before + 12345);
    T_EQ_U64(sg_adapter_doorbell_read(md->a, 7, SG_DB_CLOCK, 4), (uint32_t)now);
    T_EQ_U64(sg_adapter_doorbell_read(md->a, 7, SG_DB_CLOCK + 4, 4), now >> 32);
    T_EQ_U64(sg_adapter_doorbell_read(md->a, 7, SG_DB_CLOCK + 1, 4), 0);
    T_EQ_U64(sg_adapter_doorbell_read(md->a, 7, SG_DB_SQ, 8), 0);
    T_EQ_U64(sg_adapter_doorbell_read(md->a, 7, SG_UAR_SIZE - 8, 8), 0);
    end();
}

static const struct t_case cases[] = {
    { "larger and smaller, nothing lost", resizing },
    { "what is not consumed must fit, and the new bounds hold", too_small },
    { "an armed queue stays armed", armed_across },
    { "commands", commands },
    { "moderation: count and period", moderation },
    { "moderation: edges", moderation_edges },
    { "the clock is that of completions", clock_of_completions },
};

T_MAIN(cases)
