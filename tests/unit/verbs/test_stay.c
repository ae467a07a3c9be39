/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SG_CONNECT_STAY: a queue pair that stays in RTS when its peer leaves, as on InfiniBand, and the
 * status of work that is posted without a peer.
 */
#include "pair_rig.h"

static void begin_staying(void)
{
    pair_start(&pair, NULL, NULL);
    pair.connect_flags = SG_CONNECT_STAY;
    pair_open(&pair, NULL);
    pair_connect(&pair);
}

static void peer_left(int side)
{
    pair_expect(&pair, side, SG_EV_CM_DISCONNECT);
    pair_expect(&pair, side, SG_EV_CM_CLOSED);
}

/* Receives stay posted, Sends that arrived complete, and the first send fails. */
static void stays(void)
{
    begin_staying();
    recv(0, 1, 0, 64);
    recv(0, 2, 64, 64);
    post(1, wr(1, SG_WR_SEND, 3, 0, 64, 0));
    expect(1, 3, SG_WC_SUCCESS);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_QP, pair.side[1].qp.qpn), SG_OK);
    expect(0, 1, SG_WC_SUCCESS);
    peer_left(0);
    expect_none(0);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_RTS);
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_ESTATE);
    recv(0, 4, 128, 64);
    expect_none(0);

    post(0, wr(0, SG_WR_SEND, 5, 0, 64, 0));
    expect(0, 5, SG_WC_RETRY_EXC_ERR);
    expect(0, 2, SG_WC_FLUSH_ERR);
    expect(0, 4, SG_WC_FLUSH_ERR);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
    post(0, wr(0, SG_WR_SEND, 6, 0, 64, 0));
    expect(0, 6, SG_WC_FLUSH_ERR);
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_IDLE), SG_OK);
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DESTROY_QP, pair.side[0].qp.qpn), SG_OK);
    pair_stop(&pair);
}

/* The same queue pairs connect again; one does not wait for the end of the old connection. */
static void again(void)
{
    struct sg_eqe e;
    int i;

    begin_staying();
    recv(1, 7, 0, 64);
    T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_ERROR), SG_OK);
    T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_IDLE), SG_OK);
    expect(1, 7, SG_WC_FLUSH_ERR);
    peer_left(0);
    T_FALSE(md_next_async(&pair.side[1].md, &e));
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_RTS);
    for (i = 0; i < 2; i++) {
        T_EQ_U64(md_modify_qp(&pair.side[i].qp, SG_QP_ERROR), SG_OK);
        T_EQ_U64(md_modify_qp(&pair.side[i].qp, SG_QP_IDLE), SG_OK);
    }
    pair_connect(&pair);
    recv(1, 1, 0, 64);
    post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
    expect(0, 2, SG_WC_SUCCESS);
    expect(1, 1, SG_WC_SUCCESS);
    end();
}

static void submit_state(struct md_qp *qp, enum sg_qp_state state)
{
    struct sg_cmd_modify_qp c = { .hdr.opcode = SG_ADMIN_MODIFY_QP };

    sg_put_le32(&c.qpn, qp->qpn);
    sg_put_le32(&c.mask, SG_QP_MOD_STATE);
    sg_put_le32(&c.state, state);
    md_submit(qp->md, &c, sizeof(c));
}

/* Three commands in one turn: the old connection's end does not end the new one. */
static void again_in_one_turn(void)
{
    struct pair_side *s = &pair.side[0];
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_CONNECT };
    struct sg_admin_rsp rsp;
    struct sg_eqe e;
    int i;

    begin_staying();
    sg_put_le32(&c.qpn, s->qp.qpn);
    c.local = md_addr(&s->at, 0);
    c.remote = md_addr(&pair.side[1].at, PAIR_PORT);
    submit_state(&s->qp, SG_QP_ERROR);
    submit_state(&s->qp, SG_QP_IDLE);
    md_submit(&s->md, &c, sizeof(c));
    pair_settle(&pair);
    for (i = 0; i < 3; i++) {
        T_TRUE(md_reap(&s->md, &rsp));
        T_EQ_U64(rsp.status, SG_OK);
    }
    pair_expect(&pair, 1, SG_EV_CM_DISCONNECT);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    pair_expect(&pair, 1, SG_EV_CM_CLOSED);
    T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_ERROR), SG_OK);
    T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_IDLE), SG_OK);
    T_EQ_U64(
        pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, sg_get_le32(&e.conn), 4, 4, NULL),
        SG_OK);
    e = pair_expect(&pair, 0, SG_EV_CM_REPLY);
    T_EQ_U64(e.cm_status, SG_CM_OK);
    T_EQ_U64(md_qp_state(&s->qp), SG_QP_RTS);
    pair_expect(&pair, 1, SG_EV_CM_ESTABLISHED);
    end();
}

/* The Read that the peer leaves unanswered fails; all others are flushed. */
static void under_way(void)
{
    begin_staying();
    recv(0, 1, 0, 64);
    post(0, wr(0, SG_WR_READ, 2, 0, 64, 0));
    post(0, wr(0, SG_WR_READ, 3, 0, 64, 0));
    md_settle(&pair.side[0].md);
    md_write(&pair.side[1].md, SG_REG_CTRL, SG_CTRL_RESET);
    expect(0, 2, SG_WC_RETRY_EXC_ERR);
    expect(0, 3, SG_WC_FLUSH_ERR);
    expect(0, 1, SG_WC_FLUSH_ERR);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DESTROY_QP, pair.side[0].qp.qpn), SG_OK);
    pair_stop(&pair);
}

/* A peer leaves between request and establishment; the next one is served. */
static void never_established(void)
{
    enum sg_status status;
    struct sg_eqe e;

    pair_start(&pair, NULL, NULL);
    pair.connect_flags = SG_CONNECT_STAY;
    pair_open(&pair, NULL);
    recv(1, 1, 0, 64);
    post(1, wr(1, SG_WR_SEND, 2, 0, 64, 0));
    pair_connect_cmd(&pair, &pair.side[0].qp, 1, 1, NULL, &status);
    T_EQ_U64(status, SG_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_ERROR), SG_OK);
    T_EQ_U64(
        pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, sg_get_le32(&e.conn), 1, 1, NULL),
        SG_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_ESTABLISHED);
    T_TRUE(e.cm_status != SG_CM_OK);
    pair_expect(&pair, 1, SG_EV_CM_CLOSED);
    expect_none(1);
    T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_IDLE);

    pair_expect(&pair, 0, SG_EV_CM_REPLY);
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_IDLE), SG_OK);
    recv(0, 3, 0, 64);
    pair_connect(&pair);
    expect(1, 2, SG_WC_SUCCESS);
    expect(0, 3, SG_WC_SUCCESS);
    end();
}

static enum sg_status unreachable(struct md_qp *qp, uint32_t mask, uint32_t state)
{
    struct sg_cmd_modify_qp c = { .hdr.opcode = SG_ADMIN_MODIFY_QP };

    sg_put_le32(&c.qpn, qp->qpn);
    sg_put_le32(&c.mask, mask);
    sg_put_le32(&c.state, state);
    return md_cmd(qp->md, &c, sizeof(c), NULL);
}

/* Work posted for a connection that never comes, also while CONNECT is in progress. */
static void never_there(void)
{
    static const uint32_t both = SG_QP_MOD_STATE | SG_QP_MOD_UNREACHABLE;
    enum sg_status status;
    struct md_qp *qp;
    struct sg_eqe e;
    int connecting;

    for (connecting = 0; connecting < 2; connecting++) {
        pair_start(&pair, NULL, NULL);
        pair_open(&pair, NULL);
        qp = &pair.side[0].qp;
        recv(0, 1, 0, 64);
        post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
        post(0, wr(0, SG_WR_SEND, 3, 0, 64, 0));
        T_EQ_U64(unreachable(qp, SG_QP_MOD_UNREACHABLE, SG_QP_ERROR), SG_EINVAL);
        T_EQ_U64(unreachable(qp, both, SG_QP_CLOSING), SG_EINVAL);
        T_EQ_U64(unreachable(qp, both, SG_QP_IDLE), SG_EINVAL);
        expect_none(0);
        if (connecting) {
            pair_connect_cmd(&pair, qp, 1, 1, NULL, &status);
            T_EQ_U64(status, SG_OK);
        }
        T_EQ_U64(unreachable(qp, both, SG_QP_ERROR), SG_OK);
        expect(0, 2, SG_WC_RETRY_EXC_ERR);
        expect(0, 3, SG_WC_FLUSH_ERR);
        expect(0, 1, SG_WC_FLUSH_ERR);
        /* A second time has no effect. */
        T_EQ_U64(unreachable(qp, both, SG_QP_ERROR), SG_OK);
        post(0, wr(0, SG_WR_SEND, 4, 0, 64, 0));
        expect(0, 4, SG_WC_FLUSH_ERR);
        if (connecting) {
            e = pair_expect(&pair, 0, SG_EV_CM_REPLY);
            T_EQ_U64(e.cm_status, SG_CM_RESET);
        }
        end();
    }
}

static const struct t_case cases[] = {
    { "the peer leaves an idle queue pair", stays },
    { "connected anew", again },
    { "connected anew in one turn", again_in_one_turn },
    { "the peer leaves with requests under way", under_way },
    { "a peer who goes before setup is complete", never_established },
    { "a peer who never was there", never_there },
};

T_MAIN(cases)
