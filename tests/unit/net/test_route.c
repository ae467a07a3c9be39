/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peers beyond the link, reached through the next hop that the user names, through the gateway, or
 * through the router from which their segments come.  Host 1 is the router and, at another address,
 * the peer behind it.
 */
#include "tap.h"
#include "peer.h"
#include "base/bytes.h"

enum { PORT = 4791, FAR = 9 };

/* The addresses for which host 0 and host 1 ask their link, by last octet. */
struct route_asked {
    unsigned by[2][256];
    uint8_t tcp_to[2][6]; /* where the last segment went */
};

static void look(struct wire *w, int from, const uint8_t *f, size_t len)
{
    struct route_asked *a = w->tap_data;

    (void)len;
    if (sg_get_be16(f + 12) == 0x0806 && sg_get_be16(f + 20) == 1) {
        a->by[from][f[41]]++;
    } else if (sg_get_be16(f + 12) == 0x86dd && f[20] == 58 && f[54] == 135) {
        a->by[from][f[77]]++;
    } else if (f[12] != 0x08 || f[13] != 0x06) {
        memcpy(a->tcp_to[from], f, 6);
    }
}

static bool all_arrived(void *data)
{
    struct peer **p = data;

    return p[0]->received >= p[1]->to_send && p[1]->received >= p[0]->to_send;
}

static struct wire *new_wire(struct route_asked *asked)
{
    struct wire *w = wire_new(7, 1500, NULL);

    memset(asked, 0, sizeof(*asked));
    w->tap = look;
    w->tap_data = asked;
    return w;
}

/* Host 1's address that is not on host 0's link. */
static struct sg_endpoint far_ip4(struct wire *w)
{
    struct sg_endpoint e = wire_ip(10, FAR, 0, FAR, 0);

    T_TRUE(wire_add(w, 1, &e, 24, NULL));
    e.port = PORT;
    return e;
}

static void transfer(struct wire *w, struct sg_endpoint *to, struct wire_faults faults)
{
    struct peer a = { .to_send = 300000 }, b = { .to_send = 200000 };
    struct peer *both[2] = { &a, &b };

    T_TRUE(peer_pair_at(w, &a, &b, to));
    w->faults = faults;
    T_TRUE(wire_run(w, all_arrived, both, 3600 * WIRE_S));
    T_FALSE(a.damaged || b.damaged);
    w->faults = (struct wire_faults){ 0 };
    peer_abort(&a);
    wire_settle(w, 10 * WIRE_S);
}

static void unreachable(void)
{
    struct route_asked asked;
    struct wire *w = new_wire(&asked);
    struct sg_endpoint to = far_ip4(w);
    enum sg_stream_end why;
    struct peer p = { 0 };

    T_FALSE(peer_connect(w, &p, 0, &to, &why));
    T_EQ_INT(why, SG_STREAM_UNREACHABLE);
    memcpy(to.next_hop, (uint8_t[4]){ 224, 0, 0, 1 }, 4); /* not a neighbour */
    T_FALSE(peer_connect(w, &p, 0, &to, &why));
    T_EQ_INT(why, SG_STREAM_UNREACHABLE);
    wire_free(w);
}

static void next_hop(void)
{
    struct route_asked asked;
    struct wire *w = new_wire(&asked);
    struct sg_endpoint to = far_ip4(w);
    uint8_t router = w->host[1].ip.ip[3];

    memcpy(to.next_hop, w->host[1].ip.ip, 4);
    transfer(w, &to, (struct wire_faults){ 0 });
    T_TRUE(asked.by[0][router] > 0);
    T_EQ_INT(asked.by[0][FAR], 0);
    /* The passive side reaches host 0 only by the route of the SYN. */
    T_EQ_INT(asked.by[1][w->host[0].ip.ip[3]], 0);
    transfer(w, &to, (struct wire_faults){ .loss = 20, .reorder = 50, .corrupt = 10 });
    wire_free(w);
}

/* An explicit next hop takes precedence over the gateway, which does not exist here. */
static void next_hop_before_gateway(void)
{
    const uint8_t gateway[16] = { 10, 0, 0, 99 };
    struct route_asked asked;
    struct wire *w = new_wire(&asked);
    struct sg_endpoint to = far_ip4(w), own = w->host[0].ip;

    own.port = 0;
    T_TRUE(w->host[0].net->ops->add_addr(w->host[0].net, &own, 24, gateway));
    memcpy(to.next_hop, w->host[1].ip.ip, 4);
    transfer(w, &to, (struct wire_faults){ 0 });
    T_EQ_INT(asked.by[0][99], 0);
    wire_free(w);
}

/* A router that shares no prefix with us: ip route ... via ... onlink. */
static void next_hop_beyond_prefix(void)
{
    struct route_asked asked;
    struct wire *w = new_wire(&asked);
    struct sg_endpoint to = far_ip4(w), router = wire_ip(192, 168, 7, 77, 0);
    struct peer a = { .to_send = 1000 }, b = { 0 };
    struct peer *both[2] = { &a, &b };
    enum sg_stream_end why;

    T_TRUE(wire_add(w, 1, &router, 32, NULL));
    memcpy(to.next_hop, router.ip, 4);
    /* No address of ours is on the router's link, so the user has to name one. */
    T_FALSE(peer_connect(w, &a, 0, &to, &why));
    a.wire = w;
    b.wire = w;
    T_TRUE(w->host[1].net->ops->listen(w->host[1].net, &to, 4, peer_accept, &b, &why));
    a.s = w->host[0].net->ops->connect(w->host[0].net, &w->host[0].ip, &to, &peer_events, &a, &why);
    T_TRUE(a.s);
    wire_settle(w, WIRE_S);
    T_EQ_INT(a.connects, 1);
    peer_send(&a);
    T_TRUE(wire_run(w, all_arrived, both, 60 * WIRE_S));
    T_TRUE(asked.by[0][77] > 0);
    wire_free(w);
}

static void next_hop__ipv6(void)
{
    struct route_asked asked;
    struct wire *w = new_wire(&asked);
    struct sg_endpoint own = wire_ip6(false, 1, 0, 0), router = wire_ip6(false, 2, 0, 0);
    struct sg_endpoint to = wire_ip6(false, FAR, 0, 0);
    enum sg_stream_end why;
    struct peer p = { 0 };

    to.ip[1] = 9;
    T_TRUE(wire_add(w, 0, &own, 64, NULL));
    T_TRUE(wire_add(w, 1, &router, 64, NULL));
    T_TRUE(wire_add(w, 1, &to, 64, NULL));
    to.port = PORT;
    T_FALSE(peer_connect(w, &p, 0, &to, &why));
    memcpy(to.next_hop, router.ip, 16);
    transfer(w, &to, (struct wire_faults){ 0 });
    T_TRUE(asked.by[0][2] > 0);
    T_EQ_INT(asked.by[0][FAR], 0);
    T_EQ_INT(asked.by[1][1], 0);
    wire_free(w);
}

/* The gateway, or the peer itself on the link, is no explicit next hop: a new gateway is used. */
static void next_hop_is_the_usual(void)
{
    const uint8_t gateway[2][16] = { { 10, 0, 0, 99 }, { 10, 0, 0, 2 } };
    struct route_asked asked;
    struct wire *w = new_wire(&asked);
    struct sg_endpoint to = far_ip4(w), own = w->host[0].ip;
    struct sg_stream_net *net = w->host[0].net;
    struct peer a = { .to_send = 1000, .wire = w }, b = { .wire = w };
    struct peer *both[2] = { &a, &b };
    enum sg_stream_end why;

    T_EQ_INT(w->host[1].ip.ip[3], 2);
    own.port = 0;
    T_TRUE(net->ops->add_addr(net, &own, 24, gateway[0]));
    memcpy(to.next_hop, gateway[0], 4);
    T_TRUE(w->host[1].net->ops->listen(w->host[1].net, &to, 4, peer_accept, &b, &why));
    T_TRUE(peer_connect(w, &a, 0, &to, &why));
    wire_settle(w, WIRE_S / 2);
    T_TRUE(asked.by[0][99] > 0);
    T_EQ_INT(a.connects, 0);
    T_TRUE(net->ops->add_addr(net, &own, 24, gateway[1]));
    T_TRUE(wire_run(w, all_arrived, both, 60 * WIRE_S));
    T_EQ_INT(a.connects, 1);
    wire_free(w);
}

/* The acceptor may name a next hop; else prefix and gateway decide, which leads nowhere here. */
static void accepted_is_routed(void)
{
    const uint8_t hop[16] = { 10, 0, 0, 55 }, none[16] = { 0 };
    struct route_asked asked;
    struct wire *w = new_wire(&asked);
    struct sg_endpoint to = far_ip4(w), router = wire_ip(10, 0, 0, 55, 0);
    struct peer a = { 0 }, b = { 0 };
    struct peer *both[2] = { &a, &b };

    T_TRUE(wire_add(w, 0, &router, 24, NULL));
    memcpy(to.next_hop, w->host[1].ip.ip, 4);
    T_TRUE(peer_pair_at(w, &a, &b, &to));
    T_EQ_INT(asked.by[1][55], 0);
    b.s->ops->set_next_hop(b.s, hop);
    b.to_send = 1000;
    peer_send(&b);
    T_TRUE(wire_run(w, all_arrived, both, 60 * WIRE_S));
    T_TRUE(asked.by[1][55] > 0);
    b.s->ops->set_next_hop(b.s, none);
    b.to_send = 2000;
    peer_send(&b);
    T_FALSE(wire_run(w, all_arrived, both, 10 * WIRE_S));
    wire_free(w);
}

/* Another router takes over, as its segments show.  A peer on the link is found by ARP. */
static void back_follows_sender(void)
{
    static const uint8_t mac[6] = { 0x52, 0x54, 0, 0, 0, 0x77 };
    struct route_asked asked;
    struct wire *w = new_wire(&asked);
    struct sg_endpoint to = far_ip4(w), local, remote;
    struct peer a = { 0 }, b = { 0 };
    struct wire_segment s = {
        .dst_mac = w->host[1].mac,
        .src_mac = mac,
        .flags = 0x10,
        .window = 1000,
    };
    uint8_t frame[128];

    memcpy(to.next_hop, w->host[1].ip.ip, 4);
    T_TRUE(peer_pair_at(w, &a, &b, &to));
    T_EQ_MEM(asked.tcp_to[1], w->host[0].mac, 6);
    b.s->ops->endpoints(b.s, &local, &remote);
    s.src = remote;
    s.dst = local;
    wire_inject(w, 1, frame, wire_build(frame, &s));
    wire_settle(w, WIRE_MS);
    memset(asked.tcp_to[1], 0, 6);
    b.to_send = 100;
    peer_send(&b);
    wire_settle(w, WIRE_MS);
    T_EQ_MEM(asked.tcp_to[1], mac, 6);
    wire_free(w);
}

static const struct t_case cases[] = {
    { "a peer beyond the link, and no way", unreachable },
    { "a next hop", next_hop },
    { "a next hop counts more than a gateway", next_hop_before_gateway },
    { "a next hop beyond the prefix", next_hop_beyond_prefix },
    { "a next hop that is the usual one", next_hop_is_the_usual },
    { "IPv6: a next hop", next_hop__ipv6 },
    { "an accepted stream gets a next hop", accepted_is_routed },
    { "answers follow the neighbour that sends", back_follows_sender },
};

T_MAIN(cases)
