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
 * Octets that the core gave to the stream leave at once, by the core's push, and do not wait for a
 * timer.  A Send and its completion take one round trip.
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
                             .opcode = SG_WR_SEND,
                             .wr_id = 8,
                             .addr = s->buf,
                             .len = 3000,
                             .lkey = s->stag,
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

/* Returns the number of unread events of this kind at a side; any other event is an error. */
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

/* A silent TCP connection from the first adapter's own address. */
static bool unknown_peer_closed;

static void on_closed(struct sg_stream *s, enum sg_stream_end why)
{
    unknown_peer_closed = true;
}

static void on_nothing(struct sg_stream *s)
{
}

static const struct sg_stream_events silent = {
    .connected = on_nothing,
    .writable = on_nothing,
    .peer_closed = on_nothing,
    .closed = on_closed,
};

static struct sg_stream *connect_unknown_peer(void)
{
    struct sg_stream_net *net = sg_port_stream_net(tcp_link_port(pair.link, 0));
    struct sg_endpoint any = { .family = 4 }, to = pair.side[1].at;
    struct sg_stream *unknown;
    enum sg_stream_end why;

    to.port = BUSY_PORT;
    unknown_peer_closed = false;
    unknown = net->ops->connect(net, &any, &to, &silent, NULL, &why);
    T_NOT_NULL(unknown);
    return unknown;
}

/*
 * A listener with a backlog of one, a peer that connects and is silent, and three clients at the
 * same time: each client is served in its turn, and none is reset.
 */
static void backlog__clients_wait_and_unknown_peers_do_not_count(void)
{
    enum { CLIENTS = 3 };
    struct md_qp client[CLIENTS];
    struct sg_stream *unknown;
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
    unknown = connect_unknown_peer();
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
    T_FALSE(unknown_peer_closed);
    unknown->ops->abort(unknown);
    pair_stop(&pair);
}

static struct sg_stats counters(int side)
{
    struct test_host *h = &pair.side[side].h;
    struct sg_cmd_query c = { .hdr.opcode = SG_ADMIN_QUERY_STATS };
    uint64_t at = test_host_alloc(h, sizeof(struct sg_stats), 8);

    sg_put_le64(&c.out_addr, at);
    sg_put_le32(&c.out_len, sizeof(struct sg_stats));
    T_EQ_INT(md_cmd(&pair.side[side].md, &c, sizeof(c), NULL), SG_OK);
    return *(const struct sg_stats *)test_host_ptr(h, at);
}

static void expect_dropped_and_told(int side, uint64_t syns, uint64_t fragments, uint64_t reports)
{
    struct sg_stats s = counters(side);

    T_EQ_U64(sg_get_le64(&s.tcp_dropped_syns), syns);
    T_EQ_U64(sg_get_le64(&s.tcp_dropped_fragments), fragments);
    T_EQ_U64(sg_get_le64(&s.path_mtu_reports), reports);
}

/* A router whose next link is narrow drops larger packets; it keeps the last one of them. */
enum { NARROW = 1000, ETH = 14, IP = 20, ICMP = 8, QUOTE = IP + 8 };

static struct narrow {
    bool on;
    uint8_t packet[ETH + QUOTE];
} narrow;

static bool narrow_link(void *opaque, int from, const uint8_t *frame, size_t len)
{
    if (!narrow.on || from != 0 || len <= ETH + NARROW) {
        return false;
    }
    memcpy(narrow.packet, frame, sizeof(narrow.packet));
    return true;
}

static void put_checksum(uint8_t *at, const uint8_t *p, size_t len)
{
    uint32_t sum = 0;
    size_t i;

    sg_put_be16(at, 0);
    for (i = 0; i < len; i += 2) {
        sum += sg_get_be16(p + i);
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sg_put_be16(at, (uint16_t)~sum);
}

/* RFC 1191: the router says what fits. */
static void router_reports(void)
{
    uint8_t f[ETH + IP + ICMP + QUOTE] = { 0 }, *ip = f + ETH, *icmp = ip + IP;

    tcp_link_mac(f, 0);
    tcp_link_mac(f + 6, 1);
    sg_put_be16(f + 12, 0x0800);
    ip[0] = 0x45;
    sg_put_be16(ip + 2, IP + ICMP + QUOTE);
    ip[8] = 64;
    ip[9] = 1;
    memcpy(ip + 12, narrow.packet + ETH + 16, 4);
    memcpy(ip + 16, narrow.packet + ETH + 12, 4);
    put_checksum(ip + 10, ip, IP);
    icmp[0] = 3;
    icmp[1] = 4;
    sg_put_be16(icmp + 6, NARROW);
    memcpy(icmp + ICMP, narrow.packet + ETH, QUOTE);
    put_checksum(icmp + 2, icmp, ICMP + QUOTE);
    tcp_link_inject(pair.link, 0, f, sizeof(f));
}

static void send_over_narrow_link(void)
{
    struct pair_side *s = &pair.side[0], *t = &pair.side[1];
    struct sg_cqe c;

    memset(&narrow, 0, sizeof(narrow));
    narrow.on = true;
    md_post_recv(&t->qp, 7, t->buf, 3000, t->stag);
    md_post_send(&s->qp, &(struct md_wr){
                             .opcode = SG_WR_SEND,
                             .wr_id = 8,
                             .addr = s->buf,
                             .len = 3000,
                             .lkey = s->stag,
                         });
    pair_pass(&pair, 200000);
    T_FALSE(md_poll(&t->cq, &c));
    router_reports();
    pair_pass(&pair, 200000);
    T_TRUE(md_poll(&t->cq, &c));
    T_EQ_INT(c.status, SG_WC_SUCCESS);
}

/* The first fragment of a segment of the connection: eight octets of TCP. */
static void inject_fragment(void)
{
    uint8_t f[sizeof(narrow.packet)];

    memcpy(f, narrow.packet, sizeof(f));
    sg_put_be16(f + ETH + 2, QUOTE);
    sg_put_be16(f + ETH + 6, 0x2000);
    tcp_link_inject(pair.link, 1, f, sizeof(f));
}

/*
 * Counters that only the network layer can fill in: SYNs that found no room, fragments, routers'
 * reports about the path.  All of them count from the last reset of their adapter.
 */
static void counters__what_the_network_dropped(void)
{
    struct tcp_link_options options = { .delay_ns = 50000, .lose = narrow_link };
    struct pair_side *t = &pair.side[1];
    struct sg_stream *unknown;
    struct md_qp idle;

    pair_start_on(&pair, NULL, tcp_link_new(&options), PAIR_MEM);
    pair_open(&pair, NULL);
    idle = pair.side[0].qp;
    pair.base_brk[0] = pair.side[0].h.brk;
    pair.base_brk[1] = t->h.brk;
    pair_open(&pair, NULL);
    pair_connect(&pair);
    expect_dropped_and_told(0, 0, 0, 0);
    send_over_narrow_link();
    expect_dropped_and_told(0, 0, 0, 1);
    expect_dropped_and_told(1, 0, 0, 0);

    inject_fragment();
    inject_fragment();
    expect_dropped_and_told(1, 0, 2, 0);

    listen_with_backlog_one();
    connect_from(&idle);
    pair_pass(&pair, 10000000);
    unknown = connect_unknown_peer();
    pair_pass(&pair, 10000000);
    expect_dropped_and_told(1, 1, 2, 0);
    unknown->ops->abort(unknown);

    md_write(&t->md, SG_REG_CTRL, SG_CTRL_RESET);
    pair_settle(&pair);
    md_enable(&t->md);
    expect_dropped_and_told(1, 0, 0, 0);
    expect_dropped_and_told(0, 0, 0, 1);
    pair_stop(&pair);
}

static const struct t_case cases[] = {
    { "a Send over TCP: nothing waits for a timer", push__nothing_waits_for_a_timer },
    { "a backlog of one: clients wait, unknown peers do not count",
      backlog__clients_wait_and_unknown_peers_do_not_count },
    { "counters: SYNs, fragments, path MTU", counters__what_the_network_dropped },
};

T_MAIN(cases)
