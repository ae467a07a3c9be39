/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams over lwIP between two ports of this process: opening, closing, limits.
 */
#include "tap.h"
#include "peer.h"
#include "base/bytes.h"
#include "base/host.h"

enum { PORT = 4791 };

static bool is_closed(void *data)
{
    return ((struct peer *)data)->closes != 0;
}

static void check_empty(struct wire *w)
{
    struct sg_port_counters c;
    int i;

    for (i = 0; i < 2; i++) {
        sg_port_counters(w->host[i].port, &c);
        T_EQ_INT(c.streams, 0);
        T_EQ_INT(c.connections, 0);
        T_EQ_INT(c.listeners, 0);
    }
}

static void connect__both_sides_hear_of_it(void)
{
    struct wire *w = wire_new(1, 1500, NULL);
    struct peer a = { 0 }, b = { 0 };
    struct sg_endpoint al, ar, bl, br;

    T_TRUE(peer_pair(w, &a, &b, PORT));
    T_EQ_INT(a.connects, 1);
    T_EQ_INT(b.connects, 1);
    a.s->ops->endpoints(a.s, &al, &ar);
    b.s->ops->endpoints(b.s, &bl, &br);
    T_EQ_MEM(&al, &br, sizeof(al));
    T_EQ_MEM(&ar, &bl, sizeof(ar));
    T_EQ_INT(bl.port, PORT);
    T_FALSE(a.upcall_in_call);
    /* The NIC answered ARP, the adapter did not: one answer each way at most. */
    T_EQ_INT(w->host[1].arp_answers, 1);
    T_EQ_INT(w->host[0].arp_answers, 0);
    wire_free(w);
}

static void connect__refused_where_nobody_listens(void)
{
    struct wire *w = wire_new(2, 1500, NULL);
    struct sg_endpoint to = wire_endpoint(&w->host[1], 99);
    struct peer a = { 0 };
    enum sg_stream_end why;

    T_TRUE(peer_connect(w, &a, 0, &to, &why));
    T_TRUE(wire_run(w, is_closed, &a, 5 * WIRE_S));
    T_EQ_INT(a.end, SG_STREAM_REFUSED);
    T_EQ_INT(a.connects, 0);
    T_EQ_INT(w->host[1].resets, 1);
    check_empty(w);
    wire_free(w);
}

static void connect__refused_by_accept(void)
{
    struct wire *w = wire_new(3, 1500, NULL);
    struct sg_endpoint to = wire_endpoint(&w->host[1], PORT), any = { .family = 4, .port = PORT };
    struct peer a = { 0 }, b = { .refuse = true };
    enum sg_stream_end why;
    struct sg_stream_listener *l;

    l = w->host[1].net->ops->listen(w->host[1].net, &any, 4, peer_accept, &b, &why);
    T_NOT_NULL(l);
    T_TRUE(peer_connect(w, &a, 0, &to, &why));
    T_TRUE(wire_run(w, is_closed, &a, 5 * WIRE_S));
    T_EQ_INT(a.end, SG_STREAM_RESET);
    w->host[1].net->ops->unlisten(w->host[1].net, l);
    check_empty(w);
    wire_free(w);
}

static void connect__times_out(void)
{
    struct sg_port_config config = { .connect_timeout_ms = 4000 };
    struct wire *w = wire_new(4, 1500, &config);
    struct sg_endpoint to = wire_endpoint(&w->host[1], PORT);
    struct peer a = { 0 };
    enum sg_stream_end why;
    uint64_t start = w->now;

    w->host[1].drops_all = true;
    T_TRUE(peer_connect(w, &a, 0, &to, &why));
    T_TRUE(wire_run(w, is_closed, &a, 60 * WIRE_S));
    T_EQ_INT(a.end, SG_STREAM_TIMEOUT);
    T_TRUE(w->now - start >= 4 * WIRE_S && w->now - start < 4200 * WIRE_MS);
    check_empty(w);
    /* No timer is left that would wake an idle machine. */
    wire_settle(w, WIRE_S);
    T_EQ_U64(w->host[0].deadline, SG_NEVER);
    wire_free(w);
}

static void connect__unreachable_at_once(void)
{
    struct wire *w = wire_new(5, 1500, NULL);
    struct sg_endpoint far = wire_ip(192, 168, 7, 7, PORT), any = { .family = 4 };
    struct sg_endpoint near = wire_endpoint(&w->host[1], PORT);
    struct sg_endpoint not_ours = wire_ip(10, 0, 0, 77, 0);
    struct sg_stream_net *net = w->host[0].net;
    struct peer a = { 0 };
    enum sg_stream_end why = SG_STREAM_CLOSED;

    T_NULL(net->ops->connect(net, &any, &far, &peer_events, &a, &why));
    T_EQ_INT(why, SG_STREAM_UNREACHABLE);
    T_NULL(net->ops->connect(net, &not_ours, &near, &peer_events, &a, &why));
    T_EQ_INT(why, SG_STREAM_UNREACHABLE);
    T_NULL(net->ops->listen(net, &not_ours, 1, peer_accept, &a, &why));
    T_EQ_INT(why, SG_STREAM_UNREACHABLE);
    check_empty(w);
    wire_free(w);
}

static void connect__local_port_in_use(void)
{
    struct wire *w = wire_new(6, 1500, NULL);
    struct sg_endpoint to = wire_endpoint(&w->host[1], PORT), other = to;
    struct sg_endpoint from = { .family = 4, .port = 7000 };
    struct sg_stream_net *net = w->host[0].net;
    struct peer a = { 0 }, b = { 0 }, c = { 0 };
    enum sg_stream_end why;

    other.port++;
    a.s = net->ops->connect(net, &from, &to, &peer_events, &a, &why);
    T_NOT_NULL(a.s);
    T_NULL(net->ops->connect(net, &from, &to, &peer_events, &b, &why));
    T_EQ_INT(why, SG_STREAM_NORES);
    c.s = net->ops->connect(net, &from, &other, &peer_events, &c, &why);
    T_NOT_NULL(c.s);
    peer_abort(&a);
    a.s = net->ops->connect(net, &from, &to, &peer_events, &a, &why);
    T_NOT_NULL(a.s);
    wire_free(w);
}

static void listen__specific_beats_any(void)
{
    struct wire *w = wire_new(7, 1500, NULL);
    struct sg_endpoint second = wire_ip(10, 0, 0, 22, 0), any = { .family = 4, .port = PORT };
    struct sg_endpoint to1 = wire_endpoint(&w->host[1], PORT), to2 = second;
    struct sg_stream_net *net = w->host[1].net;
    struct peer on_any = { 0 }, on_second = { 0 }, c1 = { 0 }, c2 = { 0 }, again = { 0 };
    struct sg_stream_listener *la, *ls;
    enum sg_stream_end why;

    to2.port = PORT;
    la = net->ops->listen(net, &any, 4, peer_accept, &on_any, &why);
    T_NOT_NULL(la);
    T_NULL(net->ops->listen(net, &any, 4, peer_accept, &on_any, &why));
    T_EQ_INT(why, SG_STREAM_UNREACHABLE);
    T_TRUE(net->ops->add_addr(net, &second, 24, NULL));
    ls = net->ops->listen(net, &to2, 4, peer_accept, &on_second, &why);
    T_NOT_NULL(ls);
    T_TRUE(peer_connect(w, &c1, 0, &to1, &why));
    wire_settle(w, WIRE_S);
    T_EQ_INT(on_any.connects, 1);
    /* The NIC knows only its first address, so the test adds the second one. */
    w->host[1].ip = second;
    T_TRUE(peer_connect(w, &c2, 0, &to2, &why));
    wire_settle(w, WIRE_S);
    T_EQ_INT(on_second.connects, 1);
    T_EQ_INT(on_any.connects, 1);
    net->ops->unlisten(net, ls);
    peer_abort(&on_any);
    T_TRUE(peer_connect(w, &again, 0, &to2, &why));
    wire_settle(w, WIRE_S);
    T_EQ_INT(on_any.connects, 2);
    net->ops->unlisten(net, la);
    wire_free(w);
}

/* The same if the listener on "any" is second; it also takes an address that is added later. */
static void listen__any_takes_only_what_is_left(void)
{
    struct wire *w = wire_new(19, 1500, NULL);
    struct sg_endpoint to = wire_endpoint(&w->host[1], PORT), any = { .family = 4, .port = PORT };
    struct sg_endpoint second = wire_ip(10, 0, 0, 22, 0);
    struct sg_stream_net *net = w->host[1].net;
    struct peer on_any = { 0 }, on_first = { 0 }, c[2] = { { 0 } };
    enum sg_stream_end why;

    T_NOT_NULL(net->ops->listen(net, &to, 4, peer_accept, &on_first, &why));
    T_NOT_NULL(net->ops->listen(net, &any, 4, peer_accept, &on_any, &why));
    T_TRUE(wire_add(w, 1, &second, 24, NULL));
    T_TRUE(peer_connect(w, &c[0], 0, &to, &why));
    wire_settle(w, WIRE_S);
    T_EQ_INT(on_first.connects, 1);
    T_EQ_INT(on_any.connects, 0);
    second.port = PORT;
    T_TRUE(peer_connect(w, &c[1], 0, &second, &why));
    wire_settle(w, WIRE_S);
    T_EQ_INT(on_first.connects, 1);
    T_EQ_INT(on_any.connects, 1);
    wire_free(w);
}

static bool all_arrived(void *data)
{
    struct peer **p = data;

    return p[0]->received >= p[1]->to_send && p[1]->received >= p[0]->to_send;
}

static bool b_has_all(void *data)
{
    struct peer **p = data;

    return p[1]->received >= p[0]->to_send;
}

static void close__half_by_half(void)
{
    struct wire *w = wire_new(8, 1500, NULL);
    struct peer a = { 0 }, b = { 0 }, *both[2] = { &b, &a };

    T_TRUE(peer_pair(w, &a, &b, PORT));
    a.to_send = 100000;
    peer_send(&a);
    peer_shutdown(&a);
    T_EQ_U64(a.s->ops->room(a.s), 0);
    wire_settle(w, 2 * WIRE_S);
    T_EQ_INT(b.peer_closes, 1);
    T_EQ_U64(b.received, 100000);
    T_EQ_INT(a.closes + b.closes, 0);
    /* The other half still works. */
    b.to_send = 3000000;
    peer_send(&b);
    T_TRUE(wire_run(w, b_has_all, both, 60 * WIRE_S));
    T_FALSE(a.damaged);
    peer_shutdown(&b);
    wire_settle(w, WIRE_S);
    T_EQ_INT(a.peer_closes, 1);
    T_EQ_INT(a.closes, 1);
    T_EQ_INT(a.end, SG_STREAM_CLOSED);
    T_EQ_INT(b.closes, 1);
    T_EQ_INT(b.end, SG_STREAM_CLOSED);
    T_FALSE(a.upcall_in_call || b.upcall_in_call);
    /* lwIP handles TIME-WAIT, which passes. */
    wire_settle(w, 60 * WIRE_S);
    check_empty(w);
    wire_free(w);
}

/* A user that takes the same local port again, as rdma_cm does by chance. */
static bool connect_from(struct wire *w, struct peer *a, uint16_t port)
{
    struct sg_endpoint from = wire_endpoint(&w->host[0], port);
    struct sg_endpoint to = wire_endpoint(&w->host[1], PORT);
    enum sg_stream_end why;

    a->wire = w;
    a->s = w->host[0].net->ops->connect(w->host[0].net, &from, &to, &peer_events, a, &why);
    return a->s != NULL;
}

/* Each round takes the same ports again; the side that closes first has them in TIME-WAIT. */
static void use_again(uint64_t seed, bool passive_first, uint64_t octets)
{
    struct wire *w = wire_new(seed, 1500, NULL);
    struct sg_endpoint at = wire_endpoint(&w->host[1], PORT);
    struct sg_stream_net *net = w->host[1].net;
    enum sg_stream_end why;
    struct sg_stream_listener *l;
    unsigned i;

    for (i = 0; i < 10; i++) {
        struct peer a = { .shut_on_peer_close = passive_first };
        struct peer b = { .wire = w, .shut_on_peer_close = !passive_first }, c = { 0 };

        T_CONTEXT("round %u", i);
        l = net->ops->listen(net, &at, 1, peer_accept, &b, &why);
        T_TRUE(l != NULL);
        T_TRUE(connect_from(w, &a, 40000));
        wire_settle(w, WIRE_S);
        T_EQ_INT(a.connects, 1);
        T_EQ_INT(b.connects, 1);
        T_FALSE(connect_from(w, &c, 40000)); /* not while it is in use */
        a.to_send = octets;
        peer_send(&a);
        wire_settle(w, WIRE_S);
        peer_shutdown(passive_first ? &b : &a);
        wire_settle(w, WIRE_S);
        T_EQ_U64(b.received, octets);
        T_EQ_INT(a.end, SG_STREAM_CLOSED);
        T_EQ_INT(a.closes + b.closes, 2);
        net->ops->unlisten(net, l);
    }
    wire_settle(w, 60 * WIRE_S);
    check_empty(w);
    wire_free(w);
}

static void close__the_port_may_be_used_again(void)
{
    use_again(10, false, 50000);
}

/*
 * A connection that sends faster than the clock of sequence numbers (250,000 a second) is followed
 * by one that begins at lower numbers: the reset that follows must be accepted.
 */
static void close__past_the_peers_time_wait(void)
{
    use_again(11, true, 50000);
    use_again(12, true, 2000000);
}

struct syn {
    uint64_t at;
    uint16_t port; /* the sender's */
    uint32_t seq;
};

struct syns {
    struct syn seen[16];
    unsigned n;
};

static void note_syn(struct wire *w, int from, const uint8_t *f, size_t len)
{
    struct syns *s = w->tap_data;

    if (len >= 54 && sg_get_be16(f + 12) == 0x0800 && f[23] == 6 && (f[47] & 2) && s->n < 16) {
        s->seen[s->n++] = (struct syn){ w->now, sg_get_be16(f + 34), sg_get_be32(f + 38) };
    }
}

/* RFC 9293, section 3.4.1: a clock of 4 us, and a secret offset for each pair of endpoints. */
static void connect__sequence_numbers_follow_a_clock(void)
{
    uint32_t base[2][2] = { { 0 } };
    unsigned key, i;

    for (key = 0; key < 2; key++) {
        struct wire *w = wire_new(30 + key, 1500, NULL);
        struct syns s = { 0 };

        w->tap = note_syn;
        w->tap_data = &s;
        for (i = 0; i < 4; i++) {
            struct peer a = { 0 }, b = { .wire = w };
            struct sg_endpoint at = wire_endpoint(&w->host[1], PORT);
            enum sg_stream_end why;
            struct sg_stream_listener *l =
                w->host[1].net->ops->listen(w->host[1].net, &at, 1, peer_accept, &b, &why);

            T_TRUE(connect_from(w, &a, (uint16_t)(40000 + i / 2)));
            wire_settle(w, (1 + i) * WIRE_S);
            T_EQ_INT(a.connects + b.connects, 2);
            peer_abort(&a);
            wire_settle(w, WIRE_S);
            w->host[1].net->ops->unlisten(w->host[1].net, l);
        }
        T_EQ_INT(s.n, 8); /* SYN and SYN with ACK of each */
        for (i = 0; i < 4; i++) {
            const struct syn *x = &s.seen[i + (i & 2)], *y = x + 2; /* the same ends again */

            T_CONTEXT("key %u, pair %u", key, i);
            T_EQ_INT(x->port, y->port);
            /* The first one waited for ARP. */
            T_TRUE(y->seq - x->seq - (uint32_t)((y->at - x->at) / 4000) + 50 <= 100);
            if (!(i & 1)) {
                base[key][i / 2] = x->seq - (uint32_t)(x->at / 4000);
            }
        }
        T_TRUE(base[key][0] - base[key][1] + 1000000 > 2000000);
        wire_free(w);
    }
    T_TRUE(base[0][0] - base[1][0] + 1000000 > 2000000);
}

static void close__both_at_once(void)
{
    struct wire *w = wire_new(9, 1500, NULL);
    struct peer a = { 0 }, b = { 0 };

    T_TRUE(peer_pair(w, &a, &b, PORT));
    peer_shutdown(&a);
    peer_shutdown(&b);
    wire_settle(w, WIRE_S);
    T_EQ_INT(a.closes, 1);
    T_EQ_INT(b.closes, 1);
    T_EQ_INT(a.end, SG_STREAM_CLOSED);
    T_EQ_INT(b.end, SG_STREAM_CLOSED);
    wire_settle(w, 60 * WIRE_S);
    check_empty(w);
    wire_free(w);
}

static void abort__peer_hears_reset(void)
{
    struct wire *w = wire_new(10, 1500, NULL);
    struct peer a = { 0 }, b = { 0 };

    T_TRUE(peer_pair(w, &a, &b, PORT));
    wire_settle(w, WIRE_S);
    a.to_send = 5000000;
    peer_send(&a);
    peer_abort(&a);
    wire_settle(w, WIRE_S);
    T_EQ_INT(a.closes, 0);
    T_EQ_INT(b.closes, 1);
    T_EQ_INT(b.end, SG_STREAM_RESET);
    check_empty(w);
    wire_free(w);
}

static void abort__in_each_event(void)
{
    unsigned i;

    for (i = 0; i < 5; i++) {
        struct wire *w = wire_new(20 + i, 1500, NULL);
        struct peer a = { 0 }, b = { 0 };
        struct sg_endpoint to = wire_endpoint(&w->host[1], PORT);
        struct sg_endpoint any = { .family = 4, .port = PORT };
        struct sg_stream_listener *l;
        enum sg_stream_end why;

        T_CONTEXT("variant %u", i);
        b.wire = w;
        a.abort_on_connect = i == 0;
        b.abort_on_receive = i == 1 || i == 2;
        b.abort_on_close = i == 3 || i == 4;
        a.to_send = i == 4 ? 0 : 200000;
        l = w->host[1].net->ops->listen(w->host[1].net, &any, 4, peer_accept, &b, &why);
        T_TRUE(peer_connect(w, &a, 0, &to, &why));
        if (i == 2) {
            w->faults.reorder = 300;
        }
        wire_settle(w, 10 * WIRE_MS);
        if (a.s) {
            peer_shutdown(&a);
        }
        wire_settle(w, 60 * WIRE_S);
        T_TRUE(a.closes + b.closes >= (i == 0 ? 0 : 1));
        T_NULL(a.s);
        T_NULL(b.s);
        w->host[1].net->ops->unlisten(w->host[1].net, l);
        check_empty(w);
        wire_free(w);
    }
}

static void retransmission__gives_up(void)
{
    struct sg_port_config config = { .peer_timeout_ms = SG_PORT_PEER_TIMEOUT_NONE };
    struct wire *w = wire_new(11, 1500, &config);
    struct peer a = { 0 }, b = { 0 };

    T_TRUE(peer_pair(w, &a, &b, PORT));
    w->host[1].drops_all = true;
    a.to_send = 1000;
    peer_send(&a);
    T_TRUE(wire_run(w, is_closed, &a, 3600 * WIRE_S));
    T_EQ_INT(a.end, SG_STREAM_TIMEOUT);
    wire_free(w);
}

static void uplink__congestion_holds_segments_back(void)
{
    struct wire *w = wire_new(13, 1500, NULL);
    struct peer a = { 0 }, b = { 0 }, *both[2] = { &a, &b };

    T_TRUE(peer_pair(w, &a, &b, PORT));
    wire_settle(w, WIRE_S);
    w->host[0].congested = true;
    a.to_send = 100000;
    peer_send(&a);
    wire_settle(w, 5 * WIRE_S);
    T_EQ_U64(b.received, 0);
    w->host[0].congested = false;
    sg_port_uplink_ready(w->host[0].port);
    T_TRUE(wire_run(w, b_has_all, both, 10 * WIRE_S));
    T_FALSE(b.damaged);
    wire_free(w);
}

static void loopback__own_address_to_own_address(void)
{
    struct wire *w = wire_new(14, 9000, NULL);
    struct wire_host *h = &w->host[0];
    struct sg_endpoint to = wire_endpoint(h, PORT), any = { .family = 4, .port = PORT };
    struct peer a = { .to_send = 3000000 }, b = { .to_send = 500000 }, *both[2] = { &a, &b };
    struct peer refused = { 0 };
    struct sg_port_counters c;
    struct sg_stream_listener *l;
    enum sg_stream_end why;

    b.wire = w;
    l = h->net->ops->listen(h->net, &any, 4, peer_accept, &b, &why);
    T_TRUE(peer_connect(w, &a, 0, &to, &why));
    T_TRUE(wire_run(w, all_arrived, both, 60 * WIRE_S));
    T_FALSE(a.damaged || b.damaged);
    to.port++;
    T_TRUE(peer_connect(w, &refused, 0, &to, &why));
    T_TRUE(wire_run(w, is_closed, &refused, 5 * WIRE_S));
    T_EQ_INT(refused.end, SG_STREAM_REFUSED);
    sg_port_counters(h->port, &c);
    T_EQ_U64(c.frames_out, 0);
    h->net->ops->unlisten(h->net, l);
    T_FALSE(a.upcall_in_call || b.upcall_in_call || refused.upcall_in_call);
    wire_free(w);
}

static void address__removal_ends_its_streams(void)
{
    struct wire *w = wire_new(15, 1500, NULL);
    struct wire_host *h = &w->host[0];
    struct peer a = { 0 }, b = { 0 };

    T_TRUE(peer_pair(w, &a, &b, PORT));
    wire_settle(w, WIRE_S);
    a.in_call = true;
    T_TRUE(h->net->ops->del_addr(h->net, &h->ip));
    a.in_call = false;
    T_EQ_INT(a.closes, 0);
    wire_settle(w, WIRE_S);
    T_EQ_INT(a.closes, 1);
    T_EQ_INT(a.end, SG_STREAM_UNREACHABLE);
    T_EQ_INT(b.closes, 1);
    T_EQ_INT(b.end, SG_STREAM_RESET);
    T_FALSE(h->net->ops->del_addr(h->net, &h->ip));
    T_FALSE(a.upcall_in_call);
    check_empty(w);
    wire_free(w);
}

static void cycles__nothing_is_left(void)
{
    struct wire *w = wire_new(17, 1500, NULL);
    struct wire_host *h = &w->host[1];
    struct sg_endpoint to = wire_endpoint(h, PORT), any = { .family = 4, .port = PORT };
    struct sg_stream_listener *l;
    enum sg_stream_end why;
    unsigned i;

    struct peer b = { .wire = w, .shut_on_peer_close = true };

    l = h->net->ops->listen(h->net, &any, 16, peer_accept, &b, &why);
    for (i = 0; i < 1000; i++) {
        struct peer a = { .to_send = 1 + i * 10 };

        T_CONTEXT("cycle %u", i);
        b.received = 0;
        b.closes = 0;
        T_TRUE(peer_connect(w, &a, 0, &to, &why));
        wire_settle(w, 3 * WIRE_MS);
        T_EQ_U64(b.received, a.to_send);
        if (i % 3 == 0) {
            peer_abort(&a);
        } else {
            peer_shutdown(&a);
            T_TRUE(wire_run(w, is_closed, &a, 5 * WIRE_S));
            T_EQ_INT(a.end, SG_STREAM_CLOSED);
        }
        T_TRUE(wire_run(w, is_closed, &b, 5 * WIRE_S));
    }
    h->net->ops->unlisten(h->net, l);
    wire_settle(w, 60 * WIRE_S);
    check_empty(w);
    T_EQ_U64(w->host[0].deadline, SG_NEVER);
    T_EQ_U64(w->host[1].deadline, SG_NEVER);
    wire_free(w);
}

static void limit__connections_are_bounded(void)
{
    struct sg_port_config config = { .max_connections = 20 };
    struct wire *w = wire_new(18, 1500, &config);
    struct wire_host *h = &w->host[1];
    struct sg_endpoint to = wire_endpoint(h, PORT);
    struct peer p[21] = { { 0 } };
    enum sg_stream_end why;
    unsigned i;

    for (i = 0; i < 20; i++) {
        T_TRUE(peer_connect(w, &p[i], 0, &to, &why));
    }
    T_FALSE(peer_connect(w, &p[20], 0, &to, &why));
    T_EQ_INT(why, SG_STREAM_NORES);
    wire_free(w);
}

/* Another firmware's profile may allow more connections, or fewer, than the first one's. */
static void limit__can_be_moved(void)
{
    struct sg_port_config config = { .max_connections = 2 };
    struct wire *w = wire_new(18, 1500, &config);
    struct wire_host *h = &w->host[1];
    struct sg_endpoint to = wire_endpoint(h, PORT);
    struct peer p[5] = { { 0 } };
    enum sg_stream_end why;
    unsigned i;

    sg_port_set_max_connections(w->host[0].port, 3);
    for (i = 0; i < 3; i++) {
        T_TRUE(peer_connect(w, &p[i], 0, &to, &why));
    }
    T_FALSE(peer_connect(w, &p[3], 0, &to, &why));
    T_EQ_INT(why, SG_STREAM_NORES);
    sg_port_set_max_connections(w->host[0].port, 1);
    T_FALSE(peer_connect(w, &p[4], 0, &to, &why));
    T_EQ_INT(why, SG_STREAM_NORES);
    wire_free(w);
}

static const struct t_case cases[] = {
    { "connect: both sides hear of it", connect__both_sides_hear_of_it },
    { "connect: refused where nobody listens", connect__refused_where_nobody_listens },
    { "connect: refused by the accept callback", connect__refused_by_accept },
    { "connect: times out", connect__times_out },
    { "connect: unreachable, at once", connect__unreachable_at_once },
    { "connect: explicit local port, in use or not", connect__local_port_in_use },
    { "connect: sequence numbers follow a clock", connect__sequence_numbers_follow_a_clock },
    { "listen: a specific address beats any", listen__specific_beats_any },
    { "listen: any takes only what is left", listen__any_takes_only_what_is_left },
    { "close: half by half", close__half_by_half },
    { "close: in TIME-WAIT, the port may be used again", close__the_port_may_be_used_again },
    { "close: the peer's TIME-WAIT is not in the way", close__past_the_peers_time_wait },
    { "close: both at once", close__both_at_once },
    { "abort: the peer hears a reset", abort__peer_hears_reset },
    { "abort: in each event", abort__in_each_event },
    { "retransmission: gives up", retransmission__gives_up },
    { "uplink: congestion holds segments back", uplink__congestion_holds_segments_back },
    { "loopback: own address to own address", loopback__own_address_to_own_address },
    { "address: removal ends its streams", address__removal_ends_its_streams },
    { "1000 connections: nothing is left", cycles__nothing_is_left },
    { "limit: connections are bounded", limit__connections_are_bounded },
    { "limit: can be moved", limit__can_be_moved },
};

T_MAIN(cases)
