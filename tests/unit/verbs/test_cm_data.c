/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CM_DATA: the data of a connection's events are still there when the driver reads them, which may
 * be long after the connection has ended; the memory for them is bounded.
 */
#include "pair_rig.h"

static enum sg_status ask(int side, uint32_t conn, struct sg_cm_data *data)
{
    struct sg_cmd_query q = { .hdr.opcode = SG_ADMIN_CM_DATA };
    struct pair_side *s = &pair.side[side];
    uint64_t out = test_host_alloc(&s->h, sizeof(*data), 8);
    enum sg_status status;

    sg_put_le64(&q.out_addr, out);
    sg_put_le32(&q.out_len, sizeof(*data));
    sg_put_le32(&q.id, conn);
    status = md_cmd(&s->md, &q, sizeof(q), NULL);
    memcpy(data, test_host_ptr(&s->h, out), sizeof(*data));
    return status;
}

/* The passive side accepts with private data and leaves before the active side reads any event. */
static uint32_t accept_and_leave(enum sg_qp_state how)
{
    enum sg_status status;
    struct sg_eqe e;
    uint32_t conn;

    conn = pair_connect_cmd(&pair, &pair.side[0].qp, 3, 5, "hello", &status);
    T_EQ_U64(status, SG_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    pair.side[1].conn = sg_get_le32(&e.conn);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, pair.side[1].conn, 4, 2,
                         "welcome"),
             SG_OK);
    T_EQ_U64(md_modify_qp(&pair.side[1].qp, how), SG_OK);
    pair_pass(&pair, 100000000);
    return conn;
}

static void expect_reply_data(uint32_t conn)
{
    struct sg_cm_data d;

    T_EQ_U64(ask(0, conn, &d), SG_OK);
    T_EQ_U64(sg_get_le16(&d.pdata_len), 7);
    T_EQ_MEM(d.pdata, "welcome", 7);
    T_EQ_U64(sg_get_le16(&d.ird), 3);
    T_EQ_U64(sg_get_le16(&d.ord), 4);
    T_EQ_U64(d.mpa_rev, 2);
    T_EQ_U64(d.local.family, 0); /* TCP is gone */
    T_EQ_U64(d.remote.family, 0);
}

static void reply_then_end(void)
{
    static const enum sg_qp_state how[] = { SG_QP_CLOSING, SG_QP_ERROR };
    struct sg_cm_data d;
    struct sg_eqe e;
    uint32_t conn;
    unsigned i;

    for (i = 0; i < 2; i++) {
        T_CONTEXT("end %u", i);
        pair_start(&pair, NULL, NULL);
        pair_open(&pair, NULL);
        conn = accept_and_leave(how[i]);
        e = pair_expect(&pair, 0, SG_EV_CM_REPLY);
        T_EQ_U64(e.cm_status, SG_CM_OK);
        pair_expect(&pair, 0, SG_EV_CM_DISCONNECT);
        e = pair_expect(&pair, 0, SG_EV_CM_CLOSED);
        T_EQ_U64(sg_get_le32(&e.conn), conn);
        expect_reply_data(conn);
        expect_reply_data(conn); /* as often as the driver asks */
        /* The passive side's own depths, too. */
        T_EQ_U64(ask(1, pair.side[1].conn, &d), SG_OK);
        T_EQ_U64(sg_get_le16(&d.pdata_len), 5);
        T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DESTROY_QP, pair.side[0].qp.qpn), SG_OK);
        T_EQ_U64(ask(0, conn, &d), SG_ENOENT);
        T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_QP, pair.side[1].qp.qpn), SG_OK);
        pair_stop(&pair);
    }
}

/* IDLE and a CONNECT that fails at once keep the data; the next connection replaces them. */
static void until_the_next(void)
{
    struct sg_cm_data d;
    enum sg_status status;
    uint32_t conn;
    int i;

    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    conn = accept_and_leave(SG_QP_CLOSING);
    for (i = 0; i < 2; i++) {
        T_EQ_U64(md_modify_qp(&pair.side[i].qp, SG_QP_IDLE), SG_OK);
    }
    expect_reply_data(conn);
    pair_connect_cmd(&pair, &pair.side[0].qp, 0xffff, 0, NULL, &status);
    T_EQ_U64(status, SG_EINVAL);
    expect_reply_data(conn);
    for (i = 0; i < 2; i++) {
        struct sg_eqe e;

        while (md_next_async(&pair.side[i].md, &e)) {
        }
    }
    pair_connect(&pair);
    T_EQ_U64(ask(0, conn, &d), SG_ENOENT);
    T_EQ_U64(ask(0, pair.side[0].conn, &d), SG_OK);
    end();
}

/* Past connections never block a new one, however few numbers there are. */
static void numbers_run_out(void)
{
    struct sg_adapter_config config;
    struct sg_adapter_census census;
    struct sg_cm_data d;
    struct sg_eqe e;
    uint32_t conn, last;
    int i, round;

    pair_default_config(&config);
    config.max_conns = 1;
    pair_start(&pair, &config, NULL);
    pair_open(&pair, NULL);
    conn = accept_and_leave(SG_QP_CLOSING);
    for (round = 0; round < 5; round++) {
        T_CONTEXT("round %d", round);
        for (i = 0; i < 2; i++) {
            while (md_next_async(&pair.side[i].md, &e)) {
            }
            T_EQ_U64(md_modify_qp(&pair.side[i].qp, SG_QP_IDLE), SG_OK);
        }
        last = conn;
        conn = accept_and_leave(SG_QP_ERROR);
        expect_reply_data(conn);
        T_TRUE(conn == last || ask(0, last, &d) == SG_ENOENT);
        sg_adapter_census(pair.side[0].md.a, &census);
        T_EQ_U64(census.conns, 1);
    }
    end();
}

/* A reset withdraws the request: the driver finds no data, and an answer has no effect. */
static void request_taken_back(void)
{
    struct sg_cm_data d;
    enum sg_status status;
    struct sg_eqe e;
    uint32_t conn;

    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    pair_connect_cmd(&pair, &pair.side[0].qp, 1, 1, "never mind", &status);
    T_EQ_U64(status, SG_OK);
    pair_settle(&pair);
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_ERROR), SG_OK);
    pair_pass(&pair, 100000000);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    conn = sg_get_le32(&e.conn);
    e = pair_expect(&pair, 1, SG_EV_CM_CLOSED);
    T_EQ_U64(sg_get_le32(&e.conn), conn);
    T_EQ_U64(ask(1, conn, &d), SG_ENOENT);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, conn, 1, 1, NULL), SG_ENOENT);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_REJECT, 0, conn, 0, 0, NULL), SG_ENOENT);
    end();
}

/* When the queue pair is destroyed or the adapter reset, no past connection is left. */
static void reset_forgets(void)
{
    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    accept_and_leave(SG_QP_ERROR);
    pair_stop(&pair);
}

static const struct t_case cases[] = {
    { "data of a reply outlives its connection", reply_then_end },
    { "until the queue pair connects again", until_the_next },
    { "past connections give way when numbers run out", numbers_run_out },
    { "a request that was taken back has no data", request_taken_back },
    { "a reset forgets past connections", reset_forgets },
};

T_MAIN(cases)
