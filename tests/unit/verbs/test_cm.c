/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two adapters: how connections begin and end, and that nothing is left over. */
#include "pair_rig.h"
#include "verbs/state/adapter_state.h"
#include "verbs/connections/cm.h"
#include "verbs/queues/qp.h"

static void graceful_close(void)
{
    struct sg_eqe e;

    begin(NULL);
    recv(0, 1, 0, 64);
    recv(1, 2, 0, 64);
    post(0, wr(0, SG_WR_SEND, 3, 0, 64, 0));
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
    expect(0, 3, SG_WC_SUCCESS);
    expect(1, 2, SG_WC_SUCCESS);
    e = pair_expect(&pair, 1, SG_EV_CM_DISCONNECT);
    T_EQ_U64(e.cm_status, SG_CM_CLOSED);
    e = pair_expect(&pair, 0, SG_EV_CM_DISCONNECT);
    T_EQ_U64(e.cm_status, SG_CM_CLOSED);
    e = pair_expect(&pair, 0, SG_EV_CM_CLOSED);
    T_EQ_U64(sg_get_le32(&e.conn), pair.side[0].conn);
    e = pair_expect(&pair, 1, SG_EV_CM_CLOSED);
    expect(0, 1, SG_WC_FLUSH_ERR);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_ERROR);
    /* What is posted now is flushed too. */
    recv(0, 4, 0, 64);
    expect(0, 4, SG_WC_FLUSH_ERR);
    post(0, wr(0, SG_WR_SEND, 5, 0, 64, 0));
    expect(0, 5, SG_WC_FLUSH_ERR);
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_IDLE), SG_OK);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_IDLE);
    end();
}

static void abort_flushes(void)
{
    struct sg_eqe e;
    uint32_t i;

    begin(NULL);
    for (i = 0; i < 10; i++) {
        recv(0, i, 0, 64);
    }
    T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_ERROR), SG_OK);
    for (i = 0; i < 10; i++) {
        expect(0, i, SG_WC_FLUSH_ERR);
    }
    e = pair_expect(&pair, 1, SG_EV_CM_DISCONNECT);
    (void)e;
    end();
}

/* Queue pairs are used again after IDLE; numbers of the rings run on. */
static void reconnect(void)
{
    uint32_t used[2] = { 0 };
    int round;

    begin(NULL);
    for (round = 0; round < 5; round++) {
        int i;

        recv(1, 1, 0, 64);
        recv(1, 2, 0, 64);
        post(0, wr(0, SG_WR_SEND, 3, 0, 64, 0));
        expect(0, 3, SG_WC_SUCCESS);
        expect(1, 1, SG_WC_SUCCESS);
        T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
        for (i = 0; i < 2; i++) {
            pair_expect(&pair, i, SG_EV_CM_DISCONNECT);
            pair_expect(&pair, i, SG_EV_CM_CLOSED);
        }
        expect(1, 2, SG_WC_FLUSH_ERR);
        for (i = 0; i < 2; i++) {
            T_EQ_U64(md_modify_qp(&pair.side[i].qp, SG_QP_IDLE), SG_OK);
        }
        /* An unread event may still name the old number, so it is not reused at once. */
        for (i = 0; i < 2; i++) {
            used[i] |= 1u << pair.side[i].conn;
        }
        pair_connect(&pair);
        for (i = 0; i < 2; i++) {
            T_FALSE(used[i] & 1u << pair.side[i].conn);
        }
    }
    end();
}

/*
 * A Write that was cut short by the end of its connection does not continue in the next one: the
 * first Write there is counted as one, and its milestone has its own address.
 */
static void reconnect_after_a_cut_write(void)
{
    struct sg_qp *qp;
    struct sg_eqe e;
    uint64_t before;
    unsigned i, last = 0;

    begin_slow(0);
    qp = sg_idtab_get(&pair.side[1].md.a->qps, pair.side[1].qp.qpn);
    post(0, wr(0, SG_WR_WRITE, 1, 0, 200000, 0));
    for (i = 0; i < 1000 && !sg_cm_of(qp)->write_open; i++) {
        pair_pass(&pair, 100000);
    }
    T_TRUE(sg_cm_of(qp)->write_open);
    T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_ERROR), SG_OK);
    pair_pass(&pair, 10000000);
    expect(0, 1, SG_WC_FLUSH_ERR);
    for (i = 0; i < 2; i++) {
        while (md_next_async(&pair.side[i].md, &e)) {
            last = e.event;
        }
        T_EQ_U64(last, SG_EV_CM_CLOSED);
        T_EQ_U64(md_modify_qp(&pair.side[i].qp, SG_QP_IDLE), SG_OK);
    }
    before = qp->counters.rx_requests;
    reconnect_slow();
    post(0, wr(0, SG_WR_WRITE, 2, 0, 64, 0));
    pair_pass(&pair, 100000000);
    expect(0, 2, SG_WC_SUCCESS);
    T_EQ_U64(qp->counters.rx_requests, before + 1);
    end();
}

static void private_data_and_reject(void)
{
    struct sg_cmd_query q = { .hdr.opcode = SG_ADMIN_CM_DATA };
    struct sg_cm_data *d;
    enum sg_status status;
    struct sg_eqe e;
    uint32_t conn;
    uint64_t out;

    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    conn = pair_connect_cmd(&pair, &pair.side[0].qp, 3, 5, "hello, responder", &status);
    T_EQ_U64(status, SG_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    T_EQ_U64(sg_get_le32(&e.aux), pair.listener);
    out = test_host_alloc(&pair.side[1].h, sizeof(*d), 8);
    sg_put_le64(&q.out_addr, out);
    sg_put_le32(&q.out_len, sizeof(*d));
    q.id = e.conn;
    T_EQ_U64(md_cmd(&pair.side[1].md, &q, sizeof(q), NULL), SG_OK);
    d = test_host_ptr(&pair.side[1].h, out);
    T_EQ_U64(sg_get_le16(&d->pdata_len), 16);
    T_EQ_MEM(d->pdata, "hello, responder", 16);
    T_EQ_U64(sg_get_le16(&d->ird), 3);
    T_EQ_U64(sg_get_le16(&d->ord), 5);
    T_EQ_U64(d->mpa_rev, pair_wire()->mpa_rev);
    T_EQ_U64(sg_get_be16(&d->local.port), PAIR_PORT);
    T_EQ_U64(d->remote.ip[3], 1);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_REJECT, 0, sg_get_le32(&e.conn), 0, 0, "no"), SG_OK);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_REJECT, 0, sg_get_le32(&e.conn), 0, 0, "no"), SG_ENOENT);
    e = pair_expect(&pair, 0, SG_EV_CM_REPLY);
    T_EQ_U64(e.cm_status, SG_CM_REJECTED);
    T_EQ_U64(sg_get_le32(&e.conn), conn);
    out = test_host_alloc(&pair.side[0].h, sizeof(*d), 8);
    sg_put_le64(&q.out_addr, out);
    sg_put_le32(&q.id, conn);
    T_EQ_U64(md_cmd(&pair.side[0].md, &q, sizeof(q), NULL), SG_OK);
    d = test_host_ptr(&pair.side[0].h, out);
    T_EQ_MEM(d->pdata, "no", 2);
    T_EQ_U64(md_qp_state(&pair.side[0].qp), SG_QP_IDLE);
    pair_connect(&pair); /* the same queue pair may try again */
    end();
}

static void refused(void)
{
    enum sg_status status;
    struct sg_eqe e;

    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_UNLISTEN, pair.listener), SG_OK);
    pair_connect_cmd(&pair, &pair.side[0].qp, 1, 1, NULL, &status);
    T_EQ_U64(status, SG_OK);
    e = pair_expect(&pair, 0, SG_EV_CM_REPLY);
    T_EQ_U64(e.cm_status, SG_CM_REFUSED);
    end();
}

/* Unanswered requests end with their listener. */
static void unlisten_with_requests(void)
{
    enum sg_status status;
    struct sg_eqe e;

    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    pair_connect_cmd(&pair, &pair.side[0].qp, 1, 1, NULL, &status);
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_UNLISTEN, pair.listener), SG_OK);
    e = pair_expect(&pair, 1, SG_EV_CM_CLOSED);
    T_EQ_U64(sg_get_le32(&e.aux), pair.listener);
    T_EQ_U64(
        pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, sg_get_le32(&e.conn), 1, 1, NULL),
        SG_ENOENT);
    e = pair_expect(&pair, 0, SG_EV_CM_REPLY);
    T_EQ_U64(e.cm_status, SG_CM_RESET);
    end();
}

/* Completed Sends arrive even if their queue pair is destroyed at once. */
static void destroy_delivers(void)
{
    begin(NULL);
    recv(1, 1, 0, 64);
    post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
    expect(0, 2, SG_WC_SUCCESS);
    end();
}

/* The same while the peer is sending: an RST in answer would make it lose them. */
static void destroy_delivers_under_fire(void)
{
    const struct sg_mem_options net = {
        .queued = true,
        .delay_min_ns = 1000000,
        .delay_max_ns = 1000000,
        .room = 1 << 20,
    };
    struct md_qp *qp = &pair.side[0].qp;
    struct sg_cqe c;
    int i;

    pair_start(&pair, NULL, &net);
    pair_open(&pair, NULL);
    pair_connect(&pair);
    for (i = 0; i < 4; i++) {
        recv(1, (uint64_t)i, 0, 64);
        post(0, wr(0, SG_WR_SEND, (uint64_t)i, 0, 64, 0));
        post(1, wr(1, SG_WR_WRITE, 9, 0, 64, 0));
    }
    for (i = 0; i < 4; i++) {
        pair_settle(&pair);
        T_TRUE(md_poll(&pair.side[0].cq, &c)); /* sent, not arrived yet */
    }
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DESTROY_QP, qp->qpn), SG_OK);
    pair_pass(&pair, 10000000);
    for (i = 0; i < 8; i++) {
        T_TRUE(md_poll(&pair.side[1].cq, &c));
        T_CONTEXT("completion %d, wr_id %u", i, (unsigned)sg_get_le64(&c.wr_id));
        T_EQ_U64(c.status, SG_WC_SUCCESS);
    }
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_QP, pair.side[1].qp.qpn), SG_OK);
    pair_pass(&pair, 10000000);
    pair_stop(&pair);
}

/*
 * The same with a program that closes, deregisters its memory and then destroys the queue pair.  A
 * Write of the peer comes in between: its region is gone, and no Terminate can follow our FIN.
 */
static void close_delivers_under_fire(void)
{
    const struct sg_mem_options net = {
        .queued = true,
        .delay_min_ns = 1000000,
        .delay_max_ns = 1000000,
        .room = 1 << 20,
    };
    struct md_qp *qp = &pair.side[0].qp;
    struct sg_cqe c;
    struct sg_eqe e;
    int i;

    pair_start(&pair, NULL, &net);
    pair_open(&pair, NULL);
    pair_connect(&pair);
    post(1, wr(1, SG_WR_WRITE, 9, 0, 64, 0));
    pair_settle(&pair);
    T_TRUE(md_poll(&pair.side[1].cq, &c));
    pair_pass(&pair, 900000);
    for (i = 0; i < 4; i++) {
        recv(1, (uint64_t)i, 0, 64);
        post(0, wr(0, SG_WR_SEND, (uint64_t)i, 0, 64, 0));
    }
    for (i = 0; i < 4; i++) {
        pair_settle(&pair);
        T_TRUE(md_poll(&pair.side[0].cq, &c)); /* sent, not arrived yet */
    }
    T_EQ_U64(md_modify_qp(qp, SG_QP_CLOSING), SG_OK);
    pair_settle(&pair);
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DEREG_MR, pair.side[0].stag), SG_OK);
    pair_pass(&pair, 200000);
    T_FALSE(md_poll(&pair.side[1].cq, &c));
    e = pair_expect(&pair, 0, SG_EV_CM_DISCONNECT);
    T_EQ_U64(e.cm_status, SG_CM_PROTOCOL);
    T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DESTROY_QP, qp->qpn), SG_OK);
    pair_pass(&pair, 10000000);
    for (i = 0; i < 4; i++) {
        T_TRUE(md_poll(&pair.side[1].cq, &c));
        T_EQ_U64(sg_get_le64(&c.wr_id), (uint64_t)i);
        T_EQ_U64(c.status, SG_WC_SUCCESS);
    }
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_QP, pair.side[1].qp.qpn), SG_OK);
    pair_pass(&pair, 10000000);
    pair_stop(&pair);
}

/* The ways in which MPA can be set up; with RTR messages the responder may speak first. */
static void mpa_variants(void)
{
    int v, side;

    for (v = 0; v < 32; v++) {
        struct sg_adapter_config config;

        pair_default_config(&config);
        config.engine.mpa_rev = v & 1 ? 2 : 1;
        config.engine.crc = v & 2;
        config.engine.markers = v & 4;
        config.engine.peer_to_peer = v & 8;
        config.engine.rtr_mask = v & 16 ? SG_RTR_READ : SG_RTR_WRITE | SG_RTR_READ;
        T_CONTEXT("revision %u crc %d markers %d p2p %d rtr 0x%x", config.engine.mpa_rev,
                  config.engine.crc, config.engine.markers, config.engine.peer_to_peer,
                  config.engine.rtr_mask);
        pair_start(&pair, &config, NULL);
        pair_open(&pair, NULL);
        pair_connect(&pair);
        side = config.engine.mpa_rev == 2 && config.engine.peer_to_peer;
        fill(0, 0, 100000, 1);
        fill(1, 0, 100000, 2);
        recv(!side, 1, 0, 100000);
        post(side, wr(side, SG_WR_SEND, 2, 0, 90001, 0));
        expect(side, 2, SG_WC_SUCCESS);
        expect(!side, 1, SG_WC_SUCCESS);
        T_EQ_MEM(pair_buf(&pair, 0), pair_buf(&pair, 1), 90001);
        fill(side, 0, 100000, 3);
        post(!side, wr(!side, SG_WR_READ, 3, 0, 99999, 0));
        expect(!side, 3, SG_WC_SUCCESS);
        T_EQ_MEM(pair_buf(&pair, 0), pair_buf(&pair, 1), 99999);
        fill(!side, 0, 100000, 4);
        post(!side, wr(!side, SG_WR_WRITE, 4, 0, 99998, 0));
        expect(!side, 4, SG_WC_SUCCESS);
        T_EQ_MEM(pair_buf(&pair, 0), pair_buf(&pair, 1), 99998);
        end();
    }
}

/* RFC 5044 section 7.1.2, rule 4: what the responder posts waits for the initiator's first FPDU. */
static void responder_waits(void)
{
    struct sg_adapter_config config;

    pair_default_config(&config);
    config.engine.peer_to_peer = false;
    pair_start(&pair, &config, NULL);
    pair_open(&pair, NULL);
    pair_connect(&pair);
    recv(0, 1, 0, 64);
    recv(1, 2, 0, 64);
    post(1, wr(1, SG_WR_SEND, 3, 0, 64, 0));
    expect_none(0);
    expect_none(1);
    post(0, wr(0, SG_WR_SEND, 4, 0, 64, 0));
    expect(0, 4, SG_WC_SUCCESS);
    expect(0, 1, SG_WC_SUCCESS);
    expect(1, 2, SG_WC_SUCCESS);
    expect(1, 3, SG_WC_SUCCESS);
    end();
}

static void thousand_cycles(void)
{
    struct sg_adapter_census before, after;
    int i, n;

    pair_start(&pair, NULL, NULL);
    sg_adapter_census(pair.side[0].md.a, &before);
    for (n = 0; n < 1000; n++) {
        pair_open(&pair, NULL);
        pair_connect(&pair);
        recv(1, 1, 0, 64);
        post(0, wr(0, SG_WR_SEND, 2, 0, 64, 0));
        expect(1, 1, SG_WC_SUCCESS);
        switch (n % 4) {
        case 0:
            md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING);
            break;
        case 1:
            md_modify_qp(&pair.side[1].qp, SG_QP_ERROR);
            break;
        case 2:
            post(1, wr(1, SG_WR_READ, 3, 0, 64, PAIR_BUF));
            break;
        default:
            break;
        }
        pair_close(&pair);
    }
    for (i = 0; i < 2; i++) {
        struct sg_cmd_query q = { .hdr.opcode = SG_ADMIN_QUERY_STATS };
        uint64_t out = test_host_alloc(&pair.side[i].h, sizeof(struct sg_stats), 8);
        struct sg_stats *s;

        sg_adapter_census(pair.side[i].md.a, &after);
        T_EQ_U64(after.qps, 0);
        T_EQ_U64(after.conns, 0);
        T_EQ_U64(after.mrs, before.mrs);
        sg_put_le64(&q.out_addr, out);
        sg_put_le32(&q.out_len, sizeof(*s));
        T_EQ_U64(md_cmd(&pair.side[i].md, &q, sizeof(q), NULL), SG_OK);
        s = test_host_ptr(&pair.side[i].h, out);
        T_EQ_U64(sg_get_le64(&s->conns), 0);
        T_EQ_U64(sg_get_le64(&s->qps), 0);
        T_EQ_U64(sg_get_le64(i ? &s->conn_passive : &s->conn_active), 1000);
    }
    pair_stop(&pair);
}

/* Private data that is too long is refused unread, wherever it lies. */
static void private_data_too_long(void)
{
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_CONNECT };
    struct pair_side *s = &pair.side[0];

    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    sg_put_le32(&c.qpn, s->qp.qpn);
    c.local = md_addr(&s->at, 0);
    c.remote = md_addr(&pair.side[1].at, PAIR_PORT);
    sg_put_le64(&c.pdata_addr, 8); /* nothing responds there */
    sg_put_le16(&c.pdata_len, pair_wire()->pdata_max);
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_EFAULT);
    sg_put_le16(&c.pdata_len, pair_wire()->pdata_max + 1);
    T_EQ_U64(md_cmd(&s->md, &c, sizeof(c), NULL), SG_EINVAL);
    end();
}

static const struct t_case cases[] = {
    { "RDM-58 graceful close, flush, IDLE", graceful_close },
    { "abort by MODIFY flushes", abort_flushes },
    { "a queue pair connects again and again", reconnect },
    { "a queue pair connects again after a Write that was cut", reconnect_after_a_cut_write },
    { "private data, depths, rejection", private_data_and_reject },
    { "connection refused", refused },
    { "UNLISTEN drops unanswered requests", unlisten_with_requests },
    { "DESTROY_QP lets reported Sends arrive", destroy_delivers },
    { "DESTROY_QP lets them arrive while the peer sends", destroy_delivers_under_fire },
    { "a close and DEREG_MR let them arrive while the peer sends", close_delivers_under_fire },
    { "every kind of MPA startup", mpa_variants },
    { "a responder waits for the initiator", responder_waits, pair_wire_waits },
    { "1000 connections of four kinds of end leave nothing behind", thousand_cycles },
    { "private data that is too long", private_data_too_long },
};

T_MAIN(cases)
