/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A message that finds no receive: a Terminate, or a wait that the next receive ends. */
#include "pair_rig.h"
#include "verbs/state/adapter_state.h"
#include "verbs/queues/qp.h"
#include "verbs/queues/srq.h"

enum { MS = 1000000 };

static void begin_as(uint8_t mode, uint16_t flags)
{
    struct sg_adapter_config config;

    pair_default_config(&config);
    config.rnr = mode;
    pair_start(&pair, &config, NULL);
    pair.connect_flags = flags;
    pair_open(&pair, NULL);
    pair_connect(&pair);
}

static struct sg_qp *qp_of(int side)
{
    return sg_idtab_get(&pair.side[side].md.a->qps, pair.side[side].qp.qpn);
}

static enum sg_status set_rnr(int side, uint32_t mask, uint8_t timer, uint8_t retry)
{
    struct sg_cmd_modify_qp c = { .hdr.opcode = SG_ADMIN_MODIFY_QP };

    sg_put_le32(&c.qpn, pair.side[side].qp.qpn);
    sg_put_le32(&c.mask, mask);
    c.min_rnr_timer = timer;
    c.rnr_retry = retry;
    return md_cmd(&pair.side[side].md, &c, sizeof(c), NULL);
}

static uint64_t counted(int side)
{
    struct pair_side *s = &pair.side[side];
    uint64_t out = test_host_alloc(&s->h, sizeof(struct sg_stats), 8);
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_STATS };

    sg_put_le64(&c.out_addr, out);
    sg_put_le32(&c.out_len, sizeof(struct sg_stats));
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_OK);
    return sg_get_le64(&((struct sg_stats *)test_host_ptr(&s->h, out))->rx_no_receive);
}

/* Which connections wait, by property and flag. */
static void who_waits(void)
{
    static const struct {
        uint8_t mode;
        uint16_t flags;
        bool waits;
    } rows[] = {
        { SG_RNR_AUTO, 0, false },
        { SG_RNR_AUTO, SG_CONNECT_CONFIRM, false },
        { SG_RNR_AUTO, SG_CONNECT_STAY, true },
        { SG_RNR_AUTO, SG_CONNECT_STAY | SG_CONNECT_CONFIRM, true },
        { SG_RNR_TERMINATE, SG_CONNECT_STAY, false },
        { SG_RNR_WAIT, 0, true },
    };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("row %zu", i);
        begin_as(rows[i].mode, rows[i].flags);
        fill(0, 0, 64, 9);
        post(0, wr(0, SG_WR_SEND, 1, 0, 64, 0));
        pair_settle(&pair);
        T_EQ_U64(counted(1), 1);
        if (!rows[i].waits) {
            pair_expect(&pair, 1, SG_EV_QP_REQ_ERR);
            T_EQ_U64(sg_engine_stats(pair.side[1].md.a->engine)->tx_terminates, 1);
            end();
            continue;
        }
        pair_pass(&pair, 1000ull * MS);
        T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_RTS);
        recv(1, 5, 512, 64);
        expect(1, 5, SG_WC_SUCCESS);
        T_EQ_MEM(pair_buf(&pair, 1) + 512, pair_buf(&pair, 0), 64);
        T_EQ_U64(counted(1), 1); /* one message, however often it was tried */
        T_FALSE(qp_of(1)->rnr.wait);
        end();
    }
}

/* Messages that come while one waits keep their order; each that finds no receive is counted. */
static void many_wait(void)
{
    uint64_t i;

    begin_as(SG_RNR_WAIT, 0);
    for (i = 0; i < 5; i++) {
        post(0, wr(0, SG_WR_SEND, i, 0, 64, 0));
    }
    post(0, wr(0, SG_WR_WRITE, 5, 0, 64, 4096));
    pair_settle(&pair);
    fill(0, 0, 64, 3);
    for (i = 0; i < 5; i++) {
        expect(0, i, SG_WC_SUCCESS);
        recv(1, 10 + i, 1024, 64);
        expect(1, 10 + i, SG_WC_SUCCESS);
    }
    expect(0, 5, SG_WC_SUCCESS);
    T_EQ_U64(counted(1), 5);
    recv(1, 20, 0, 64); /* nothing waits any more */
    expect_none(1);
    end();
}

/* The wait is rnr_retry times min_rnr_timer; then the message is refused as without a wait. */
static void time_is_over(void)
{
    static const struct {
        uint8_t timer, retry;
        uint64_t us;
    } rows[] = {
        { 0, 1, 655360 }, { 1, 6, 60 },       { 12, 1, 640 }, { 12, 6, 3840 },
        { 14, 2, 2560 },  { 31, 6, 2949120 }, { 31, 0, 0 },   { 5, 7, 3600000000u },
    };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("timer %u, retry %u", rows[i].timer, rows[i].retry);
        begin_as(SG_RNR_AUTO, SG_CONNECT_STAY);
        T_EQ_U64(
            set_rnr(1, SG_QP_MOD_RNR_TIMER | SG_QP_MOD_RNR_RETRY, rows[i].timer, rows[i].retry),
            SG_OK);
        post(0, wr(0, SG_WR_SEND, 1, 0, 64, 0));
        pair_settle(&pair);
        if (rows[i].us) {
            pair_pass(&pair, rows[i].us * 1000 - 1);
            T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_RTS);
            pair_pass(&pair, 1);
        }
        pair_expect(&pair, 1, SG_EV_QP_REQ_ERR);
        T_TRUE(test_host_logged(&pair.side[1].h, "no receive is posted"));
        T_EQ_U64(sg_engine_stats(pair.side[0].md.a->engine)->rx_terminates, 1);
        T_EQ_U64(counted(1), 1);
        end();
    }
}

static void attributes(void)
{
    begin_as(SG_RNR_AUTO, SG_CONNECT_STAY);
    T_EQ_U64(sg_rnr_wait_ns(qp_of(1)), 3600000000000ull); /* the default: an hour */
    T_EQ_U64(set_rnr(1, SG_QP_MOD_RNR_RETRY, 99, 3), SG_OK);
    T_EQ_U64(sg_rnr_wait_ns(qp_of(1)), 3 * 655360000ull);
    T_EQ_U64(set_rnr(1, SG_QP_MOD_RNR_TIMER, 2, 99), SG_OK);
    T_EQ_U64(sg_rnr_wait_ns(qp_of(1)), 3 * 20000ull);
    T_EQ_U64(set_rnr(1, SG_QP_MOD_RNR_TIMER, 32, 0), SG_EINVAL);
    T_EQ_U64(set_rnr(1, SG_QP_MOD_RNR_RETRY, 0, 8), SG_EINVAL);
    T_EQ_U64(set_rnr(1, 0x20, 0, 0), SG_EINVAL);
    T_EQ_U64(sg_rnr_wait_ns(qp_of(1)), 3 * 20000ull);
    end();
}

/* The end of the connection, from either side, ends the wait. */
static void ends_while_waiting(void)
{
    struct sg_cqe c;
    int how;

    for (how = 0; how < 4; how++) {
        T_CONTEXT("way %d", how);
        begin_as(SG_RNR_WAIT, 0);
        post(0, wr(0, SG_WR_SEND, 1, 0, 64, 0));
        pair_settle(&pair);
        T_TRUE(qp_of(1)->rnr.wait);
        switch (how) {
        case 0:
            T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_ERROR), SG_OK);
            break;
        case 1:
            T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_CLOSING), SG_OK);
            break;
        case 2:
            T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_ERROR), SG_OK);
            break;
        case 3:
            end(); /* both queue pairs are destroyed */
            continue;
        }
        pair_pass(&pair, 70000ull * MS);
        T_FALSE(qp_of(1)->rnr.wait);
        T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_ERROR);
        T_FALSE(md_poll(&pair.side[1].cq, &c));
        end();
    }
}

/* Two connections whose queue pairs at side 1 share a receive queue, where nothing is posted. */
static void begin_sharing(struct md_srq *srq, struct md_qp qp[2][2])
{
    struct sg_adapter_config config;
    int n, i;

    pair_default_config(&config);
    config.rnr = SG_RNR_WAIT;
    pair_start(&pair, &config, NULL);
    md_create_srq(&pair.side[1].md, srq, pair.side[1].pd, 8);
    for (n = 0; n < 2; n++) {
        for (i = 0; i < 2; i++) {
            struct pair_side *s = &pair.side[i];

            md_create_qp(&s->md, &s->qp,
                         &(struct md_qp_params){
                             .pd = s->pd,
                             .scq = &s->cq,
                             .rcq = &s->cq,
                             .srq = i ? srq : NULL,
                         });
            qp[i][n] = s->qp;
        }
        pair_connect(&pair);
    }
}

static void send_from(struct md_qp *qp, uint64_t id, uint32_t off)
{
    struct md_wr w = wr(0, SG_WR_SEND, id, off, 64, 0);

    md_post_send(qp, &w);
    pair_settle(&pair);
}

static void supply(struct md_srq *srq, uint64_t id)
{
    struct pair_side *s = &pair.side[1];

    md_post_srq(srq, id, s->buf + 4096 * id, 64, s->stag);
}

/* The next receive is this one, taken by that queue pair. */
static void taken(uint64_t id, const struct md_qp *by, uint32_t off)
{
    struct sg_cqe c;

    pair_settle(&pair);
    T_TRUE(md_poll(&pair.side[1].cq, &c));
    T_EQ_U64(c.status, SG_WC_SUCCESS);
    T_EQ_U64(sg_get_le64(&c.wr_id), id);
    T_EQ_U64(sg_get_le32(&c.qpn), by->qpn);
    T_EQ_MEM(pair_buf(&pair, 1) + 4096 * id, pair_buf(&pair, 0) + off, 64);
}

static unsigned starving(const struct md_srq *srq)
{
    const struct sg_srq *q = sg_idtab_get(&pair.side[1].md.a->srqs, srq->srqn);
    const struct sg_link *k;
    unsigned n = 0;

    for (k = q->starving.head.next; k != &q->starving.head; k = k->next) {
        n++;
    }
    return n;
}

/*
 * A shared queue is empty, and messages wait on both connections: an entry goes to the one that has
 * waited longest, and only to that one.  If its queue pair is destroyed, the other one is next.
 */
static void shared_queue(void)
{
    struct md_qp qp[2][2];
    struct md_srq srq;

    begin_sharing(&srq, qp);
    fill(0, 0, 8192, 7);
    send_from(&qp[0][1], 1, 0);
    send_from(&qp[0][0], 2, 4096);
    T_EQ_U64(counted(1), 2);
    T_EQ_INT(starving(&srq), 2);
    expect_none(1);
    supply(&srq, 5);
    taken(5, &qp[1][1], 0);
    expect_none(1);
    T_EQ_INT(starving(&srq), 1);
    supply(&srq, 6);
    taken(6, &qp[1][0], 4096);
    T_EQ_INT(starving(&srq), 0);
    send_from(&qp[0][1], 3, 64);
    send_from(&qp[0][0], 4, 128);
    T_EQ_INT(starving(&srq), 2);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_QP, qp[1][1].qpn), SG_OK);
    T_EQ_INT(starving(&srq), 1);
    supply(&srq, 7);
    taken(7, &qp[1][0], 128);
    T_EQ_U64(counted(1), 4);
    pair_stop(&pair);
}

/* One connection's wait times out; the other one still gets the receive that is posted then. */
static void shared_queue_in_vain(void)
{
    struct md_qp qp[2][2];
    struct md_srq srq;

    begin_sharing(&srq, qp);
    fill(0, 0, 8192, 9);
    pair.side[1].qp = qp[1][0];
    T_EQ_U64(set_rnr(1, SG_QP_MOD_RNR_TIMER | SG_QP_MOD_RNR_RETRY, 1, 3), SG_OK); /* 30 us */
    send_from(&qp[0][0], 1, 0);
    send_from(&qp[0][1], 2, 4096);
    pair_pass(&pair, MS);
    T_TRUE(md_qp_state(&qp[1][0]) != SG_QP_RTS);
    T_EQ_U64(md_qp_state(&qp[1][1]), SG_QP_RTS);
    T_EQ_INT(starving(&srq), 1);
    supply(&srq, 5);
    taken(5, &qp[1][1], 4096);
    pair_stop(&pair);
}

static const struct t_case cases[] = {
    { "who waits for a receive", who_waits },
    { "messages that wait keep their order", many_wait },
    { "rnr_retry times min_rnr_timer", time_is_over },
    { "MODIFY_QP: min_rnr_timer and rnr_retry", attributes },
    { "the end of a connection ends the wait", ends_while_waiting },
    { "a shared queue serves who waits longest", shared_queue },
    { "a shared queue, and the time of one is over", shared_queue_in_vain },
};

T_MAIN(cases)
