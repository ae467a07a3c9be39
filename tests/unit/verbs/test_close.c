/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two adapters: how connections end under load, and which side gets which error.
 */
#include "pair_rig.h"
#include "verbs/state/adapter_state.h"
#include "verbs/connections/cm.h"
#include "verbs/connections/inbound.h"
#include "verbs/queues/qp.h"

enum { MS = 1000000, LARGE = 200 * 1024 };

#define RIGHTS                                                                \
    (SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE | \
     SG_ACCESS_REMOTE_ATOMIC)

/* Connects over a network with this delay and room (in octets). */
static void begin_over(uint64_t delay_ns, size_t room, uint32_t piece)
{
    const struct sg_mem_options net = {
        .queued = true,
        .seed = 5,
        .room = room,
        .emss = 8000,
        .delay_min_ns = delay_ns,
        .delay_max_ns = delay_ns,
        .piece_max = piece,
    };
    struct sg_adapter_config config;
    enum sg_status status;
    struct sg_eqe e;

    pair_default_config(&config);
    config.engine.close_timeout_ms = 500;
    config.engine.linger_timeout_ms = 5000;
    config.engine.close_limit_ms = 60000;
    pair_start(&pair, &config, &net);
    pair_open(&pair, &(struct md_qp_params){ .access = RIGHTS });
    pair.side[0].conn = pair_connect_cmd(&pair, &pair.side[0].qp, 16, 16, NULL, &status);
    pair_pass(&pair, 100 * delay_ns);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, sg_get_le32(&e.conn), 16, 16,
                         NULL),
             SG_OK);
    pair_pass(&pair, 100 * delay_ns);
    pair_expect(&pair, 0, SG_EV_CM_REPLY);
    pair_expect(&pair, 1, SG_EV_CM_ESTABLISHED);
}

/* A FetchAdd of side 0 on side 1's memory; its result goes to the beginning of 'sink'. */
static void fetch_add(uint64_t id, uint32_t sink)
{
    struct pair_side *s = &pair.side[0];
    struct sg_wqe_hdr *h = md_sq_entry(&s->qp);
    struct sg_wqe_atomic *w = (struct sg_wqe_atomic *)(h + 1);
    struct sg_sge *sge = (struct sg_sge *)(w + 1);

    sg_put_le64(&h->wr_id, id);
    h->opcode = SG_WR_FETCH_ADD;
    h->flags = SG_WQE_SIGNALED;
    h->num_sge = 1;
    sg_put_le64(&h->remote_addr, pair.side[1].buf);
    sg_put_le32(&h->rkey,
                md_reg_mr(&pair.side[1].md, pair.side[1].pd, pair.side[1].buf, PAIR_BUF, RIGHTS));
    sg_put_le64(&sge->addr, s->buf);
    sg_put_le32(&sge->length, 8);
    sg_put_le32(&sge->lkey, sink);
    md_sq_doorbell(&s->qp);
}

/* DISCONNECT and CLOSED come, both with status CLOSED. */
static void ends_orderly(int side)
{
    struct sg_eqe e = pair_expect(&pair, side, SG_EV_CM_DISCONNECT);

    T_EQ_U64(e.cm_status, SG_CM_CLOSED);
    e = pair_expect(&pair, side, SG_EV_CM_CLOSED);
    T_EQ_U64(e.cm_status, SG_CM_CLOSED);
}

/* Completed Sends arrive, however long TCP needs, as long as the peer takes octets. */
static void completed_is_delivered(void)
{
    struct sg_cqe c;
    uint64_t i;

    begin_over(40 * MS, 600000, 4096);
    for (i = 0; i < 14; i++) {
        recv(1, i, 0, 16384);
        post(0, wr(0, SG_WR_SEND, i, 0, 16384, 0));
    }
    for (i = 0; i < 14; i++) {
        expect(0, i, SG_WC_SUCCESS);
    }
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
    pair_pass(&pair, 1000ull * MS);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_CLOSING); /* a close without data would be over */
    pair_pass(&pair, 20000ull * MS);
    for (i = 0; i < 14; i++) {
        T_TRUE(md_poll(&pair.side[1].cq, &c));
        T_EQ_U64(c.status, SG_WC_SUCCESS);
    }
    ends_orderly(1);
    ends_orderly(0);
    end();
}

/* A peer that sends a new Read after each answer does not delay the close for ever. */
static void reader_cannot_hold(void)
{
    unsigned done = 0, step;
    struct sg_cqe c;
    struct sg_eqe e;
    uint64_t i;
    bool told = false;

    begin_over(1 * MS, 70000, 0);
    for (i = 0; i < 8; i++) {
        post(1, wr(1, SG_WR_READ, i, 0, LARGE, 0));
    }
    pair_pass(&pair, 10 * MS);
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
    for (step = 0; step < 2000 && !told; step++) {
        pair_pass(&pair, 1 * MS);
        while (md_poll(&pair.side[1].cq, &c) && c.status == SG_WC_SUCCESS) {
            done++;
            post(1, wr(1, SG_WR_READ, i++, 0, LARGE, 0));
        }
        told = md_next_async(&pair.side[1].md, &e);
    }
    T_TRUE(told);
    T_EQ_U64(e.event, SG_EV_CM_DISCONNECT);
    T_EQ_U64(e.cm_status, SG_CM_CLOSED);
    T_TRUE(done <= 9); /* only those requested before the close */
    pair_pass(&pair, 1000ull * MS);
    ends_orderly(0);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
    end();
}

/* The peer closes in the middle of our message: flushed, and nobody sees a fault. */
static void close_under_load(void)
{
    static const uint8_t ops[] = { SG_WR_SEND, SG_WR_WRITE };
    unsigned k, cut;

    for (k = 0; k < SG_ARRAY_SIZE(ops); k++) {
        for (cut = 2; cut < 40; cut++) { /* FIN comes at each point of the message */
            struct sg_cqe c;

            T_CONTEXT("opcode %u, %u ms", ops[k], cut);
            begin_over(1 * MS, 20000, 0);
            recv(0, 7, 0, LARGE);
            post(1, wr(1, ops[k], 1, 0, LARGE, 0));
            pair_pass(&pair, cut * MS);
            T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
            pair_pass(&pair, 1000ull * MS);
            ends_orderly(0);
            ends_orderly(1);
            T_TRUE(md_poll(&pair.side[1].cq, &c));
            T_TRUE(c.status == SG_WC_FLUSH_ERR || c.status == SG_WC_SUCCESS);
            T_EQ_U64(sg_engine_stats(pair.side[1].md.a->engine)->tx_terminates, 0);
            end();
        }
    }
}

/* DDP-31: work posted after the close is not done, earlier work is. */
static void post_after_close(void)
{
    begin_over(1 * MS, 20000, 0);
    recv(1, 1, 0, 64);
    recv(1, 2, 0, 64);
    post(0, wr(0, SG_WR_SEND, 3, 0, 64, 0));
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
    post(0, wr(0, SG_WR_SEND, 4, 0, 64, 0));
    pair_pass(&pair, 1000ull * MS);
    T_SHOWS("DDP-31") {
        expect(0, 3, SG_WC_SUCCESS);
        expect(0, 4, SG_WC_FLUSH_ERR);
        expect(1, 1, SG_WC_SUCCESS);
        expect(1, 2, SG_WC_FLUSH_ERR);
        post(0, wr(0, SG_WR_SEND, 5, 0, 64, 0)); /* nor is work posted after the end */
        expect(0, 5, SG_WC_FLUSH_ERR);
    }
    end();
}

/* Posted work that a peer never answers does not keep the queue pair in CLOSING for ever. */
static void unanswered_work(void)
{
    begin_over(1 * MS, 20000, 0);
    pair.side[1].h.now_ns = 0; /* the other adapter does nothing any more */
    post(0, wr(0, SG_WR_READ, 1, 0, 64, 0));
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
    pair.side[0].h.now_ns += 59000ull * MS;
    md_settle(&pair.side[0].md);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_CLOSING);
    pair.side[0].h.now_ns += 2000ull * MS;
    sg_adapter_run(pair.side[0].md.a, 1 << 20);
    md_settle(&pair.side[0].md);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
    pair.side[1].h.now_ns = pair.side[0].h.now_ns;
    end();
}

/* The sink's owner deregisters it before the answer comes, together with a valid Write. */
static void own_fault_blames_nobody(void)
{
    static const uint8_t ops[] = { SG_WR_FETCH_ADD, SG_WR_READ };
    unsigned k;

    for (k = 0; k < SG_ARRAY_SIZE(ops); k++) {
        struct md_wr w;
        struct sg_cqe c;
        uint32_t sink;

        if (ops[k] == SG_WR_FETCH_ADD && !pair_wire()->rfc7306) {
            continue;
        }
        T_CONTEXT("opcode %u", ops[k]);
        begin_over(1 * MS, 70000, 0);
        sink = md_reg_mr(&pair.side[0].md, pair.side[0].pd, pair.side[0].buf, 64,
                         SG_ACCESS_LOCAL_WRITE);
        if (ops[k] == SG_WR_FETCH_ADD) {
            fetch_add(1, sink);
        } else {
            w = wr(0, ops[k], 1, 0, 8, 4096);
            w.lkey = sink;
            post(0, w);
        }
        pair_settle(&pair);
        T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DEREG_MR, sink), SG_OK);
        pair_pass(&pair, 1 * MS);
        post(1, wr(1, SG_WR_WRITE, 2, 0, 64, 8192));
        post(1, wr(1, SG_WR_READ, 3, 0, 64, 8192));
        pair_pass(&pair, 100 * MS);
        T_TRUE(md_poll(&pair.side[0].cq, &c));
        T_EQ_U64(c.status, SG_WC_LOC_PROT_ERR);
        expect(1, 2, SG_WC_SUCCESS);
        T_TRUE(md_poll(&pair.side[1].cq, &c));
        T_EQ_U64(sg_get_le64(&c.wr_id), 3);
        T_EQ_U64(c.status, pair_wire()->failed); /* not an access error of the peer */
        T_EQ_U64(sg_get_le32(&c.vendor_err), 0); /* 0/0/00 */
        end();
    }
}

/* An answer overtakes that of an older request: the fault is its own entry's, not the oldest's. */
static void fault_of_a_younger_read(void)
{
    const struct sg_read_sink sink = { .to = 0, .cookie = 1, .stag = 0 };
    uint8_t octets[8] = { 0 };
    struct md_wr w;
    struct sg_qp *qp;
    uint32_t stag;

    begin_over(1 * MS, 70000, 0);
    stag =
        md_reg_mr(&pair.side[0].md, pair.side[0].pd, pair.side[0].buf, 64, SG_ACCESS_LOCAL_WRITE);
    fetch_add(1, pair.side[0].stag);
    w = wr(0, SG_WR_READ, 2, 0, 8, 4096);
    w.lkey = stag;
    post(0, w);
    pair_settle(&pair);
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DEREG_MR, stag), SG_OK);
    qp = sg_idtab_get(&pair.side[0].md.a->qps, pair.side[0].qp.qpn);
    T_EQ_U64(sg_in_place_read(sg_cm_of(qp), &sink, 0, octets, sizeof(octets)), SG_MEM_CLOSED);
    pair_pass(&pair, 100 * MS);
    expect(0, 1, SG_WC_FLUSH_ERR);
    expect(0, 2, SG_WC_LOC_PROT_ERR);
    end();
}

/* The queue pair fails while the peer's Reply is under way: a Terminate tells the peer why. */
static void broken_at_the_reply(void)
{
    struct sg_adapter *a;
    enum sg_status status;
    struct sg_eqe e;
    uint32_t conn;

    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    conn = pair_connect_cmd(&pair, &pair.side[0].qp, 4, 4, NULL, &status);
    T_EQ_U64(status, SG_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    pair.side[0].md.hold = true;
    a = pair.side[0].md.a;
    md_doorbell(&pair.side[0].md, 0, SG_DB_SQ, pair.side[0].qp.qpn, 12345);
    T_EQ_U64(((struct sg_qp *)sg_idtab_get(&a->qps, pair.side[0].qp.qpn))->state, SG_QP_ERROR);
    pair.side[0].md.hold = false;
    T_EQ_U64(
        pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, sg_get_le32(&e.conn), 4, 4, NULL),
        SG_OK);
    e = pair_expect(&pair, 0, SG_EV_QP_FATAL);
    e = pair_expect(&pair, 0, SG_EV_CM_REPLY);
    T_EQ_U64(e.cm_status, SG_CM_RESET);
    T_EQ_U64(sg_get_le32(&e.conn), conn);
    if (pair_wire()->terminates) {
        T_SHOWS("MP2-22") {
            /* As octets on the wire: test_close.c of proto. */
            T_TRUE(test_host_logged(&pair.side[1].h,
                                    "Terminate received: MPA, MPA, local catastrophic error"));
        }
        T_EQ_U64(sg_engine_stats(a->engine)->tx_terminates, 1);
        T_EQ_U64(sg_engine_stats(pair.side[1].md.a->engine)->rx_terminates, 1);
    }
    pair_settle(&pair);
    T_FALSE(md_next_async(&pair.side[0].md, &e)); /* the last event, as for any failed CONNECT */
    end();
}

static const struct t_case cases[] = {
    { "RDM-57 completed Sends arrive before the end", completed_is_delivered },
    { "a peer that reads on and on cannot hold a close", reader_cannot_hold },
    { "DDP-33 DDP-35 a close meets a message under way", close_under_load },
    { "DDP-31 work posted behind a close", post_after_close },
    { "a close with work that is never answered", unanswered_work },
    { "RDM-61 our own fault while we receive blames nobody", own_fault_blames_nobody },
    { "a fault of a younger Read is not put on an older request", fault_of_a_younger_read,
      pair_wire_rfc7306 },
    { "MP2-22 a queue pair broken at the Reply: Terminate 2/0/05", broken_at_the_reply },
};

T_MAIN(cases)
