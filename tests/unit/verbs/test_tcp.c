/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two whole adapters over the real TCP stack: what neither the in-memory stream nor the TCP stack
 * alone can show.
 */
#include <string.h>

#include "base/bytes.h"
#include "tap.h"
#include "tcp_link.h"

static struct pair pair;

static void start(void)
{
    struct tcp_link_options options = { .delay_ns = 50000 };

    pair_start_on(&pair, NULL, tcp_link_new(&options), PAIR_MEM);
}

/*
 * What the core has given to the stream leaves at once, without a timer to help: the core's push is
 * what hands the segments to TCP.  One round trip is all that a Send and its Read may take.
 */
static void push__nothing_waits_for_a_timer(void)
{
    struct pair_side *s = &pair.side[0], *t = &pair.side[1];
    struct sg_cqe c;
    uint64_t began;

    start();
    pair_open(&pair, NULL);
    pair_connect(&pair);
    memset(pair_buf(&pair, 0), 0x5a, 3000);
    md_post_recv(&t->qp, 7, t->buf, 3000, t->stag);
    began = s->h.now_ns;
    md_post_send(&s->qp, &(struct md_wr){
        .opcode = SG_WR_SEND, .wr_id = 8, .addr = s->buf, .len = 3000, .lkey = s->stag,
    });
    pair_pass(&pair, 2 * 50000);
    T_TRUE(md_poll(&t->cq, &c));
    T_EQ_INT(c.status, SG_WC_SUCCESS);
    T_EQ_INT(sg_get_le32(&c.byte_len), 3000);
    T_EQ_MEM(pair_buf(&pair, 1), pair_buf(&pair, 0), 3000);
    T_TRUE(md_poll(&s->cq, &c));
    T_EQ_INT(c.status, SG_WC_SUCCESS);
    T_EQ_U64(s->h.now_ns - began, 100000);
    pair_close(&pair);
    pair_stop(&pair);
}

enum { BUSY_PORT = 7500 };

static uint32_t listen_with_backlog_one(void)
{
    struct sg_cmd_listen c = { .hdr.opcode = SG_ADMIN_LISTEN };
    struct sg_admin_rsp rsp;

    c.local = md_addr(&pair.side[1].at, BUSY_PORT);
    sg_put_le32(&c.backlog, 1);
    T_EQ_INT(md_cmd(&pair.side[1].md, &c, sizeof(c), &rsp), SG_OK);
    return sg_get_le32(&rsp.id);
}

static uint32_t connect_from(const struct md_qp *qp)
{
    struct sg_cmd_connect c = { .hdr.opcode = SG_ADMIN_CONNECT };
    struct sg_admin_rsp rsp;

    sg_put_le32(&c.qpn, qp->qpn);
    c.local = md_addr(&pair.side[0].at, 0);
    c.remote = md_addr(&pair.side[1].at, BUSY_PORT);
    sg_put_le16(&c.ird, 1);
    sg_put_le16(&c.ord, 1);
    T_EQ_INT(md_cmd(&pair.side[0].md, &c, sizeof(c), &rsp), SG_OK);
    return sg_get_le32(&rsp.id);
}

/* As many as there are, of that kind, at a side; others are an error. */
static unsigned events(int side, enum sg_event event, uint32_t *conn)
{
    struct sg_eqe e;
    unsigned n = 0;

    while (md_next_async(&pair.side[side].md, &e)) {
        T_EQ_INT(e.event, event);
        T_EQ_INT(e.cm_status, SG_CM_OK);
        *conn = sg_get_le32(&e.conn);
        n++;
    }
    return n;
}

/* A TCP connection that says nothing, from the first adapter's own address. */
static bool stranger_closed;

static void on_closed(struct sg_stream *s, enum sg_stream_end why)
{
    stranger_closed = true;
}

static void on_nothing(struct sg_stream *s)
{
}

static const struct sg_stream_events silent = {
    .connected = on_nothing, .writable = on_nothing, .peer_closed = on_nothing,
    .closed = on_closed,
};

/*
 * A listener with a backlog of one, a stranger that connects and says nothing, and three clients at
 * one moment: each of them is served in its turn, and none is reset.
 */
static void backlog__clients_wait_and_strangers_do_not_count(void)
{
    enum { CLIENTS = 3 };
    struct sg_stream_net *net;
    struct sg_endpoint any = { .family = 4 }, to;
    struct md_qp client[CLIENTS];
    enum sg_stream_end why;
    struct sg_stream *stranger;
    unsigned i, replies = 0;
    uint32_t conn = 0;

    start();
    for (i = 0; i < CLIENTS; i++) {
        pair_open(&pair, NULL);
        client[i] = pair.side[0].qp;
        pair.base_brk[0] = pair.side[0].h.brk;
        pair.base_brk[1] = pair.side[1].h.brk;
    }
    listen_with_backlog_one();
    net = sg_port_stream_net(tcp_link_port(pair.link, 0));
    to = pair.side[1].at;
    to.port = BUSY_PORT;
    stranger_closed = false;
    stranger = net->ops->connect(net, &any, &to, &silent, NULL, &why);
    T_NOT_NULL(stranger);
    pair_pass(&pair, 10000000);
    for (i = 0; i < CLIENTS; i++) {
        connect_from(&client[i]);
    }
    for (i = 0; i < CLIENTS; i++) {
        T_CONTEXT("client %u", i);
        pair_pass(&pair, 3000000000);
        T_EQ_INT(events(1, SG_EV_CM_REQUEST, &conn), 1);
        T_EQ_INT(pair_answer(&pair, SG_ADMIN_REJECT, 0, conn, 0, 0, NULL), SG_OK);
        pair_pass(&pair, 1000000);
        for (struct sg_eqe e; md_next_async(&pair.side[0].md, &e); replies++) {
            T_EQ_INT(e.event, SG_EV_CM_REPLY);
            T_EQ_INT(e.cm_status, SG_CM_REJECTED);
        }
        T_EQ_INT(replies, i + 1);
    }
    T_FALSE(stranger_closed);
    stranger->ops->abort(stranger);
    pair_stop(&pair);
}

static const struct t_case cases[] = {
    { "a Send over TCP: nothing waits for a timer", push__nothing_waits_for_a_timer },
    { "a backlog of one: clients wait, strangers do not count",
      backlog__clients_wait_and_strangers_do_not_count },
};

T_MAIN(cases)
