/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listeners and their backlog, and the effects of one connection on later ones and on others. */
#include "pair_rig.h"
#include "verbs/state/adapter_state.h"

enum { BACKLOG = 2, PORT = 7480, ROUNDS = 24 }; /* more than any backlog here */

static struct md_qp extra[4]; /* of side 0 */

static void make_extra(unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        md_create_qp(&pair.side[0].md, &extra[i],
                     &(struct md_qp_params){
                         .pd = pair.side[0].pd,
                         .scq = &pair.side[0].cq,
                         .rcq = &pair.side[0].cq,
                     });
    }
}

static void drop_extra(unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        T_EQ_U64(md_cmd_id(&pair.side[0].md, SG_ADMIN_DESTROY_QP, extra[i].qpn), SG_OK);
    }
}

static void take_all(int side)
{
    struct sg_eqe e;

    pair_settle(&pair);
    while (md_next_async(&pair.side[side].md, &e)) {
    }
}

/* However a request ends, it frees its place in the backlog, so the listener keeps accepting. */
static void places_come_back(void)
{
    enum sg_status status;
    struct sg_eqe e;
    unsigned i;

    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    for (i = 0; i < ROUNDS; i++) { /* refused */
        T_CONTEXT("refusal %u", i);
        pair_connect_cmd(&pair, &pair.side[0].qp, 1, 1, NULL, &status);
        T_EQ_U64(status, SG_OK);
        e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
        T_EQ_U64(pair_answer(&pair, SG_ADMIN_REJECT, 0, sg_get_le32(&e.conn), 0, 0, NULL), SG_OK);
        e = pair_expect(&pair, 0, SG_EV_CM_REPLY);
        T_EQ_U64(e.cm_status, SG_CM_REJECTED);
    }
    for (i = 0; i < ROUNDS; i++) { /* gone before it was answered */
        T_CONTEXT("leave %u", i);
        make_extra(1);
        pair_connect_cmd(&pair, &extra[0], 1, 1, NULL, &status);
        T_EQ_U64(status, SG_OK);
        pair_expect(&pair, 1, SG_EV_CM_REQUEST);
        drop_extra(1);
        pair_expect(&pair, 1, SG_EV_CM_CLOSED);
    }
    for (i = 0; i < ROUNDS; i++) { /* accepted, and closed */
        T_CONTEXT("connection %u", i);
        pair_connect(&pair);
        T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_CLOSING), SG_OK);
        take_all(0);
        take_all(1);
        T_EQ_U64(md_modify_qp(&pair.side[0].qp, SG_QP_IDLE), SG_OK);
        T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_IDLE), SG_OK);
    }
    pair_connect(&pair);
    end();
}

/* The number of a listener of side 1 at PORT. */
static uint32_t listen_with(uint32_t backlog)
{
    struct sg_cmd_listen c = { .hdr.opcode = SG_ADMIN_LISTEN };

    c.local = md_addr(&pair.side[1].at, PORT);
    sg_put_le32(&c.backlog, backlog);
    return md_make(&pair.side[1].md, &c, sizeof(c));
}

/* As many unanswered requests as the backlog says, and not one more. */
static void backlog_is_exact(void)
{
    struct sg_cmd_connect k = { .hdr.opcode = SG_ADMIN_CONNECT };
    unsigned i, asked = 0;
    struct sg_eqe e;
    uint32_t l;

    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    l = listen_with(BACKLOG);
    make_extra(BACKLOG + 2);
    for (i = 0; i < BACKLOG + 2; i++) {
        sg_put_le32(&k.qpn, extra[i].qpn);
        k.local = md_addr(&pair.side[0].at, 0);
        k.remote = md_addr(&pair.side[1].at, PORT);
        T_EQ_U64(md_cmd(&pair.side[0].md, &k, sizeof(k), NULL), SG_OK);
        pair_settle(&pair);
    }
    while (md_next_async(&pair.side[1].md, &e)) {
        T_EQ_U64(e.event, SG_EV_CM_REQUEST);
        asked++;
    }
    T_EQ_U64(asked, BACKLOG);
    drop_extra(BACKLOG + 2);
    take_all(0);
    take_all(1);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_UNLISTEN, l), SG_OK);
    end();
}

/* A peer that is only a TCP stream. */
struct unknown_peer {
    struct sg_stream *s;
    size_t heard;
    bool connected, fin;
};

static void on_connected(struct sg_stream *s)
{
    ((struct unknown_peer *)s->user)->connected = true;
}

static void on_receive(struct sg_stream *s, const uint8_t *p, size_t n)
{
    ((struct unknown_peer *)s->user)->heard += n;
}

static void on_writable(struct sg_stream *s)
{
}

static void on_fin(struct sg_stream *s)
{
    ((struct unknown_peer *)s->user)->fin = true;
}

static void on_closed(struct sg_stream *s, enum sg_stream_end why)
{
    ((struct unknown_peer *)s->user)->s = NULL;
}

static const struct sg_stream_events events = {
    .connected = on_connected,
    .receive = on_receive,
    .writable = on_writable,
    .peer_closed = on_fin,
    .closed = on_closed,
};

/* rtr: it announces an RTR message, which never comes. */
static uint32_t ask(struct sg_stream_net *net, struct unknown_peer *who, bool rtr)
{
    uint8_t request[] = "MPA ID Req Frame\x50\x02\x00\x04\x80\x08\x80\x08";
    const struct iovec iov = { .iov_base = request, .iov_len = 24 };
    struct sg_endpoint to = pair.side[1].at;
    enum sg_stream_end why;
    struct sg_eqe e;

    request[20] = rtr ? 0x80 : 0;
    to.port = PAIR_PORT;
    *who = (struct unknown_peer){ 0 };
    who->s = net->ops->connect(net, &(struct sg_endpoint){ .family = 4 }, &to, &events, who, &why);
    T_NOT_NULL(who->s);
    pair_settle(&pair);
    T_TRUE(who->connected);
    T_TRUE(who->s->ops->send(who->s, &iov, 1, false));
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    return sg_get_le32(&e.conn);
}

/* Of many requests, those for whose events the driver has no room wait, and nobody is reset. */
static void requests_wait_for_the_driver(void)
{
    enum { FITS = MD_AEQ_SIZE / 2, MANY = FITS + 10 };
    static struct unknown_peer who[MANY];
    uint8_t request[] = "MPA ID Req Frame\x40\x01\x00\x00";
    const struct iovec iov = { .iov_base = request, .iov_len = 20 };
    struct sg_endpoint to;
    struct sg_stream_net *net;
    enum sg_stream_end why;
    struct sg_eqe e;
    unsigned i, came[2] = { 0 };
    uint32_t l;

    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    l = listen_with(MANY);
    to = pair.side[1].at;
    to.port = PORT;
    net = sg_mem_switch_port(pair.sw, &(struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, 9 } });
    for (i = 0; i < MANY; i++) {
        who[i] = (struct unknown_peer){ 0 };
        who[i].s = net->ops->connect(net, &(struct sg_endpoint){ .family = 4 }, &to, &events,
                                     &who[i], &why);
        T_NOT_NULL(who[i].s);
        pair_settle(&pair);
        T_TRUE(who[i].s->ops->send(who[i].s, &iov, 1, false));
        pair_settle(&pair);
    }
    for (i = 0; i < 2; i++) {
        while (md_next_async(&pair.side[1].md, &e)) {
            T_EQ_U64(e.event, SG_EV_CM_REQUEST);
            came[i]++;
        }
        pair_settle(&pair);
    }
    T_EQ_U64(came[0], FITS);
    T_EQ_U64(came[1], MANY - FITS);
    for (i = 0; i < MANY; i++) {
        T_NOT_NULL(who[i].s);
        who[i].s->ops->abort(who[i].s);
    }
    take_all(1);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_UNLISTEN, l), SG_OK);
    end();
}

/*
 * A connection is accepted, and lost before it is established.  A queue pair with STAY is IDLE
 * again and takes the next request, while the end of the lost connection is still pending.
 */
static void next_connection_inherits_no_end(void)
{
    struct unknown_peer first, second;
    struct sg_stream_net *net;
    uint32_t conn[2];

    pair_start(&pair, NULL, NULL);
    pair.connect_flags = SG_CONNECT_STAY;
    pair_open(&pair, NULL);
    net = sg_mem_switch_port(pair.sw, &(struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, 9 } });
    conn[0] = ask(net, &first, true);
    conn[1] = ask(net, &second, true);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, conn[0], 1, 1, NULL), SG_OK);
    pair_settle(&pair);
    first.s->ops->shutdown(first.s);
    sg_mem_switch_run(pair.sw, pair.side[1].h.now_ns); /* FIN, and no turn of the adapter */
    first.s->ops->abort(first.s);
    sg_mem_switch_run(pair.sw, pair.side[1].h.now_ns);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, conn[1], 1, 1, NULL), SG_OK);
    pair_settle(&pair);
    T_TRUE(second.heard >= 20); /* the Reply */
    T_FALSE(second.fin);
    T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_RTS);
    second.s->ops->abort(second.s);
    end();
}

/* The loss of TCP is reported, and the queue pair stays in ERROR until its owner changes it. */
static void loss_is_reported(void)
{
    struct sg_stream_net *net;
    struct unknown_peer peer;
    struct sg_eqe e;
    uint32_t conn;

    pair_start(&pair, NULL, NULL);
    pair_open(&pair, NULL);
    net = sg_mem_switch_port(pair.sw, &(struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, 9 } });
    recv(1, 1, 0, 64);
    conn = ask(net, &peer, false);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_ACCEPT, pair.side[1].qp.qpn, conn, 1, 1, NULL), SG_OK);
    pair_expect(&pair, 1, SG_EV_CM_ESTABLISHED);
    peer.s->ops->abort(peer.s);
    T_SHOWS("DDP-34") {
        e = pair_expect(&pair, 1, SG_EV_CM_DISCONNECT);
        T_EQ_U64(e.cm_status, SG_CM_RESET);
        expect(1, 1, SG_WC_FLUSH_ERR);
    }
    pair_expect(&pair, 1, SG_EV_CM_CLOSED);
    pair_pass(&pair, 1000000000000ull);
    T_SHOWS("DDP-35") {
        T_EQ_U64(md_qp_state(&pair.side[1].qp), SG_QP_ERROR);
        recv(1, 2, 0, 64); /* flushed */
        expect(1, 2, SG_WC_FLUSH_ERR);
        T_EQ_U64(md_modify_qp(&pair.side[1].qp, SG_QP_IDLE), SG_OK);
    }
    end();
}

/* A turn is shared: a connection with much to send does not use all of it. */
static void turn_is_shared(void)
{
    struct md_qp other;
    struct md_wr w;
    struct sg_eqe e;
    unsigned i;

    begin(NULL);
    make_extra(1);
    md_create_qp(&pair.side[1].md, &other,
                 &(struct md_qp_params){
                     .pd = pair.side[1].pd,
                     .scq = &pair.side[1].cq,
                     .rcq = &pair.side[1].cq,
                 });
    pair_connect_cmd(&pair, &extra[0], 4, 4, NULL, &(enum sg_status){ 0 });
    e = pair_expect(&pair, 1, SG_EV_CM_REQUEST);
    T_EQ_U64(pair_answer(&pair, SG_ADMIN_ACCEPT, other.qpn, sg_get_le32(&e.conn), 4, 4, NULL),
             SG_OK);
    pair_settle(&pair);
    pair.side[0].md.hold = true;
    for (i = 0; i < 8; i++) {
        post(0, wr(0, SG_WR_WRITE, i, 0, 200 * 1024, 0));
    }
    w = wr(0, SG_WR_WRITE, 9, 0, 8, 250 * 1024);
    memset(pair_buf(&pair, 0), 0x6b, 8);
    md_post_send(&extra[0], &w);
    sg_adapter_run(pair.side[0].md.a, 4 * SG_TURN_QUANTUM); /* one turn */
    T_EQ_U64(pair_buf(&pair, 1)[250 * 1024], 0x6b);
    pair.side[0].md.hold = false;
    pair_settle(&pair);
    drop_extra(1);
    T_EQ_U64(md_cmd_id(&pair.side[1].md, SG_ADMIN_DESTROY_QP, other.qpn), SG_OK);
    end();
}

static const struct t_case cases[] = {
    { "places of a backlog come back", places_come_back },
    { "a backlog is exact", backlog_is_exact },
    { "requests wait for room in the async event queue", requests_wait_for_the_driver },
    { "a connection inherits no end of the last one", next_connection_inherits_no_end },
    { "DDP-34 DDP-35 TCP is lost", loss_is_reported },
    { "a turn is shared among connections", turn_is_shared },
};

T_MAIN(cases)
