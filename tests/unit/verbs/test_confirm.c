/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SG_CONNECT_CONFIRM: completions of Sends and Writes report their fate at the peer.
 */
#include "pair_rig.h"

#include "verbs/state/adapter_state.h"
#include "verbs/queues/qp.h"

static void begin_confirming(const struct md_qp_params *params)
{
    pair_start(&pair, NULL, NULL);
    pair.connect_flags = SG_CONNECT_STAY | SG_CONNECT_CONFIRM;
    pair_open(&pair, params);
    pair_connect(&pair);
}

/* At the moment of its completion, a message is placed at the peer. */
static void placed(void)
{
    struct sg_cqe c;
    int side;

    begin_confirming(NULL);
    for (side = 0; side < 2; side++) {
        fill(side, 0, 3000, (uint8_t)(1 + side));
        post(side, wr(side, SG_WR_WRITE, 1, 0, 3000, 8192));
        md_settle(&pair.side[side].md);
        T_FALSE(md_poll(&pair.side[side].cq, &c));
        expect(side, 1, SG_WC_SUCCESS);
        T_EQ_MEM(pair_buf(&pair, !side) + 8192, pair_buf(&pair, side), 3000);
        recv(!side, 2, 0, 64);
        post(side, wr(side, SG_WR_SEND, 3, 0, 64, 0));
        expect(!side, 2, SG_WC_SUCCESS);
        expect(side, 3, SG_WC_SUCCESS);
    }
    expect_none(0);
    expect_none(1);
    end();
}

/* A Write that the peer refuses fails, though TCP had taken it; the next one is flushed. */
static void refused_write(void)
{
    struct md_wr bad;

    begin_confirming(NULL);
    post(0, wr(0, SG_WR_WRITE, 1, 0, 64, 0));
    expect(0, 1, SG_WC_SUCCESS);
    bad = wr(0, SG_WR_WRITE, 2, 0, 64, 0);
    bad.rkey ^= 1;
    post(0, bad);
    post(0, wr(0, SG_WR_WRITE, 3, 0, 64, 0));
    expect(0, 2, SG_WC_REM_ACCESS_ERR);
    expect(0, 3, SG_WC_FLUSH_ERR);
    expect_none(1);
    end();
}

/* The peer's receive names a bad region: its mistake, but our Send did not succeed. */
static void refused_send(void)
{
    begin_confirming(NULL);
    md_post_recv(&pair.side[1].qp, 1, pair.side[1].buf, 64, pair.side[1].stag ^ 1);
    post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
    expect(0, 2, SG_WC_REM_OP_ERR);
    expect(1, 1, SG_WC_LOC_PROT_ERR);
    end();
}

/* Many entries of each kind, signaled or not: each completes once, in order. */
static void in_order(void)
{
    static const uint8_t ops[] = { SG_WR_WRITE, SG_WR_WRITE, SG_WR_READ, SG_WR_SEND, SG_WR_WRITE };
    const struct md_qp_params params = { .entries = 256 };
    const uint32_t count = 200;
    struct sg_cqe c;
    uint32_t i;

    begin_confirming(&params);
    pair.side[0].md.hold = true;
    for (i = 0; i < count; i++) {
        struct md_wr w = wr(0, ops[i % SG_ARRAY_SIZE(ops)], i, i * 64, 64, 65536 + i * 64);

        w.quiet = i % 3 == 1;
        if (w.opcode == SG_WR_SEND) {
            recv(1, i, 131072, 64);
        }
        post(0, w);
    }
    pair.side[0].md.hold = false;
    for (i = 0; i < count; i++) {
        if (i % 3 != 1) {
            c = expect(0, i, SG_WC_SUCCESS);
            T_EQ_U64(sg_get_le32(&c.wr_index), i);
        }
    }
    expect_none(0);
    end();
}

/* Under steady load probes are still sent, but not one for each message. */
static void busy(void)
{
    enum { COUNT = 200, TURN = 512 };
    const struct md_qp_params params = { .entries = 256 };
    struct sg_adapter *a[2];
    const struct sg_qp *qp;
    struct sg_cqe c;
    uint32_t i;

    begin_confirming(&params);
    a[0] = pair.side[0].md.a;
    a[1] = pair.side[1].md.a;
    qp = sg_idtab_get(&a[0]->qps, pair.side[0].qp.qpn);
    pair.side[0].md.hold = true;
    for (i = 0; i < COUNT; i++) {
        post(0, wr(0, SG_WR_WRITE, i, 0, 64, 0));
    }
    pair.side[0].md.hold = false;
    for (i = 0; !md_poll(&pair.side[0].cq, &c); i++) {
        T_TRUE(i < COUNT);
        sg_adapter_run(a[0], TURN);
        sg_adapter_run(a[1], TURN);
    }
    T_EQ_U64(sg_get_le64(&c.wr_id), 0);
    T_TRUE(qp->sq.next < COUNT / 2);
    for (i = 1; i < COUNT; i++) {
        while (!md_poll(&pair.side[0].cq, &c)) {
            sg_adapter_run(a[0], TURN);
            sg_adapter_run(a[1], TURN);
        }
        T_EQ_U64(sg_get_le64(&c.wr_id), i);
        T_EQ_U64(c.status, SG_WC_SUCCESS);
    }
    T_TRUE(sg_engine_stats(a[1]->engine)->rx_reads <= COUNT / 16 + 1);
    end();
}

/* Unbinds a window of side 0: an operation that sends no message. */
static void unbind(uint32_t window, uint64_t id)
{
    struct sg_wqe_hdr *h = md_sq_entry(&pair.side[0].qp);

    h->opcode = SG_WR_BIND_MW;
    h->flags = SG_WQE_SIGNALED;
    sg_put_le64(&h->wr_id, id);
    sg_put_le32(&((struct sg_wqe_bind *)(h + 1))->stag, window);
    md_sq_doorbell(&pair.side[0].qp);
}

/* The last message is followed by an operation that sends none. */
static void local_operation_last(void)
{
    struct pair_side *s = &pair.side[0];
    uint32_t window;

    begin_confirming(NULL);
    window = md_alloc_mw(&s->md, s->pd, SG_MW_TYPE_1);
    s->md.hold = true;
    post(0, wr(0, SG_WR_WRITE, 1, 0, 64, 0));
    s->md.hold = false;
    unbind(window, 2);
    expect(0, 1, SG_WC_SUCCESS);
    expect(0, 2, SG_WC_SUCCESS);
    expect_none(0);
    T_EQ_U64(md_cmd_id(&s->md, SG_ADMIN_DEALLOC_MW, window), SG_OK);
    end();
}

/* Our own entry fails: messages sent before it complete with success. */
static void own_mistake(void)
{
    struct md_wr bad;

    begin_confirming(NULL);
    pair.side[0].md.hold = true;
    post(0, wr(0, SG_WR_WRITE, 1, 0, 64, 0));
    bad = wr(0, SG_WR_WRITE, 2, 0, 64, 0);
    bad.lkey ^= 1;
    post(0, bad);
    pair.side[0].md.hold = false;
    expect(0, 1, SG_WC_SUCCESS);
    expect(0, 2, SG_WC_LOC_PROT_ERR);
    end();
}

/* A queue pair destroyed when all is sent but not confirmed closes by FIN, so all arrives. */
static void last_words(void)
{
    struct pair_side *s = &pair.side[0];
    uint32_t window;
    int local;

    for (local = 0; local < 2; local++) {
        T_CONTEXT("%s", local ? "a local operation is the last" : "the message is the last");
        begin_slow(SG_CONNECT_STAY | SG_CONNECT_CONFIRM);
        window = md_alloc_mw(&s->md, s->pd, SG_MW_TYPE_1);
        recv(1, 1, 0, 64);
        post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
        if (local) {
            unbind(window, 3);
        }
        expect_none(1);
        T_EQ_U64(md_cmd_id(&s->md, SG_ADMIN_DESTROY_QP, s->qp.qpn), SG_OK);
        pair_pass(&pair, 1000000000);
        expect(1, 1, SG_WC_SUCCESS);
        T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_QP, pair.side[1].qp.qpn), SG_OK);
        pair_stop(&pair);
    }
}

/* With a Read in flight it closes by RST, because the peer's answer has no receiver. */
static void unanswered(void)
{
    begin_slow(SG_CONNECT_STAY | SG_CONNECT_CONFIRM);
    post(0, wr(0, SG_WR_READ, 1, 0, 64, 0));
    post(0, wr(0, SG_WR_WRITE, 2, 0, 64, 0));
    expect_none(0);
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DESTROY_QP, pair.side[0].qp.qpn), SG_OK);
    pair_pass(&pair, 1000000000);
    T_EQ_U64(sg_engine_stats(pair.side[1].md.a->engine)->rx_reads, 0);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_QP, pair.side[1].qp.qpn), SG_OK);
    pair_stop(&pair);
}

/* Closed while one probe is out and another one is due, with an entry that comes too late. */
static void closing(void)
{
    struct md_qp *qp = &pair.side[0].qp;

    begin_slow(SG_CONNECT_STAY | SG_CONNECT_CONFIRM);
    post(0, wr(0, SG_WR_WRITE, 1, 0, 64, 0));
    post(0, wr(0, SG_WR_WRITE, 2, 0, 64, 0));
    T_EQ_U64(md_modify_qp(qp, SG_QP_CLOSING), SG_OK);
    post(0, wr(0, SG_WR_WRITE, 3, 0, 64, 0));
    pair_pass(&pair, 1000000000);
    expect(0, 1, SG_WC_SUCCESS);
    expect(0, 2, SG_WC_SUCCESS);
    expect(0, 3, SG_WC_FLUSH_ERR);
    T_EQ_U64(md_qp_state(qp), SG_QP_ERROR);
    pair_close(&pair);
    pair_stop(&pair);
}

/* A Read fails because of its own sink; messages sent before it did arrive. */
static void lost_sink(void)
{
    struct pair_side *s = &pair.side[0];
    struct md_wr read;
    uint32_t lkey;

    begin_slow(SG_CONNECT_STAY | SG_CONNECT_CONFIRM);
    lkey = md_reg_mr(&s->md, s->pd, s->buf, PAIR_BUF, SG_ACCESS_LOCAL_WRITE);
    s->md.hold = true;
    post(0, wr(0, SG_WR_WRITE, 1, 0, 64, 0));
    read = wr(0, SG_WR_READ, 2, 0, 64, 0);
    read.lkey = lkey;
    post(0, read);
    s->md.hold = false;
    expect_none(0);
    T_EQ_U64(md_cmd_id(&s->md, SG_ADMIN_DEREG_MR, lkey), SG_OK);
    pair_pass(&pair, 1000000000);
    expect(0, 1, SG_WC_SUCCESS);
    expect(0, 2, SG_WC_LOC_PROT_ERR);
    pair_close(&pair);
    pair_stop(&pair);
}

/* Probes are Reads: the peer has no room for any, or for one. */
static void depth(void)
{
    static const uint8_t ops[] = { SG_WR_READ, SG_WR_WRITE, SG_WR_WRITE, SG_WR_READ, SG_WR_WRITE };
    enum sg_status status;
    uint16_t ord;
    struct sg_eqe e;
    uint32_t i;

    for (ord = 0; ord < 2; ord++) {
        T_CONTEXT("ORD %u", ord);
        pair_start(&pair, NULL, NULL);
        pair.connect_flags = SG_CONNECT_STAY | SG_CONNECT_CONFIRM;
        pair_open(&pair, NULL);
        pair_connect_cmd(&pair, &pair.side[0].qp, 4, ord, NULL, &status);
        e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
        T_EQ_U64(pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, sg_get_le32(&e.conn), ord,
                             4, NULL),
                 SG_OK);
        pair_expect(&pair, 0, SG_EV_CM_REPLY);
        pair.side[0].md.hold = true;
        for (i = 0; i < 15; i++) {
            post(0, wr(0, ord ? ops[i % SG_ARRAY_SIZE(ops)] : SG_WR_WRITE, i, 0, 64, 0));
        }
        pair.side[0].md.hold = false;
        for (i = 0; i < 15; i++) {
            expect(0, i, SG_WC_SUCCESS);
        }
        T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_RTS);
        end();
    }
}

/* The queue pair connects again, with and without the mode; no old probe is left. */
static void again(void)
{
    struct sg_eqe e;
    int round, i;

    begin_confirming(NULL);
    for (round = 0; round < 4; round++) {
        T_CONTEXT("round %d", round);
        recv(1, 1, 0, 64);
        post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
        expect(0, 2, SG_WC_SUCCESS);
        expect(1, 1, SG_WC_SUCCESS);
        post(0, wr(0, SG_WR_WRITE, 3, 0, 64, 0));
        md_settle(&pair.side[0].md);
        for (i = 0; i < 2; i++) {
            T_EQ_U64(md_modify_qp(&pair.side[i].qp, SG_QP_ERROR), SG_OK);
        }
        pair_settle(&pair);
        while (md_poll(&pair.side[0].cq, &(struct sg_cqe){ 0 })) {
        }
        for (i = 0; i < 2; i++) {
            T_EQ_U64(md_modify_qp(&pair.side[i].qp, SG_QP_IDLE), SG_OK);
        }
        pair_settle(&pair);
        for (i = 0; i < 2; i++) {
            while (md_next_async(&pair.side[i].md, &e)) {
                T_TRUE(e.event == SG_EV_CM_DISCONNECT || e.event == SG_EV_CM_CLOSED);
            }
        }
        pair.connect_flags = round % 2 ? SG_CONNECT_STAY | SG_CONNECT_CONFIRM : SG_CONNECT_STAY;
        pair_connect(&pair);
    }
    end();
}

static const struct t_case cases[] = {
    { "complete is placed", placed },
    { "a Write that is refused", refused_write },
    { "a Send into a bad receive", refused_send },
    { "all kinds in order", in_order },
    { "a queue that never runs empty", busy },
    { "a local operation is the last one", local_operation_last },
    { "a mistake of our own", own_mistake },
    { "gone before the answer", last_words },
    { "gone before the answer to a Read", unanswered },
    { "closed with a question due", closing },
    { "the sink of a Read is gone", lost_sink },
    { "a peer that grants few Reads, or none", depth },
    { "connected anew", again },
};

T_MAIN(cases)
