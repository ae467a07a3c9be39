/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IPv6: outgoing packets, octet by octet; valid and invalid incoming packets.
 */
#include "ipv6_rig.h"

static void transfer(bool link_local, struct wire_faults faults)
{
    struct wire *w = two_hosts(3, link_local, NULL);
    struct peer a = { .to_send = 3000000 }, b = { .to_send = 1000000 };
    struct peer *both[2] = { &a, &b };
    struct sg_endpoint to = wire_ip6(link_local, 2, 0, PORT), local, remote;

    T_TRUE(peer_pair_at(w, &a, &b, &to));
    w->faults = faults;
    T_TRUE(wire_run(w, all_arrived, both, 3600 * WIRE_S));
    T_FALSE(a.damaged || b.damaged);
    T_EQ_INT((int)a.s->ops->emss(a.s), 1500 - 60 - 12);
    a.s->ops->endpoints(a.s, &local, &remote);
    T_EQ_INT(remote.family, 6);
    T_EQ_MEM(remote.ip, to.ip, 16);
    T_EQ_INT(local.ip[15], 1);
    T_EQ_INT(w->host[0].arp_answers + w->host[1].arp_answers, 0);
    T_TRUE(w->host[1].nd_answers > 0);
    wire_free(w);
}

static void transfer__clean(void)
{
    transfer(false, (struct wire_faults){ 0 });
}

static void transfer__bad_wire(void)
{
    transfer(false, (struct wire_faults){
                        .loss = 20,
                        .reorder = 50,
                        .duplicate = 20,
                        .corrupt = 10,
                    });
}

static void transfer__link_local(void)
{
    transfer(true, (struct wire_faults){ 0 });
}

/* The first frames of a connect, against octets written down by hand (RFC 4861, 8200, 9293). */
static void wire__solicitation_and_syn(void)
{
    /* clang-format off */
    static const uint8_t solicitation[86] = {
        0x33, 0x33, 0xff, 0x00, 0x00, 0x02, 0x52, 0x54, 0x00, 0x00, 0x00, 0x01, 0x86, 0xdd,
        0x60, 0x00, 0x00, 0x00, 0x00, 0x20, 0x3a, 0xff,
        0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01,
        0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xff, 0, 0, 0x02,
        /* fd00 + 1 + ff02 + 1 + ff00 + 2 + 20 + 3a + 8700 + fd00 + 2 + 101 + 5254 + 0 + 1,
           complemented */
        0x87, 0x00, 0x2d, 0x43, 0, 0, 0, 0,
        0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02,
        0x01, 0x01, 0x52, 0x54, 0x00, 0x00, 0x00, 0x01
    };
    /* clang-format on */
    /* clang-format off */
    static const uint8_t syn_head[54] = {
        0x52, 0x54, 0x00, 0x00, 0x00, 0x02, 0x52, 0x54, 0x00, 0x00, 0x00, 0x01, 0x86, 0xdd,
        0x60, 0x00, 0x00, 0x00, 0x00, 0x2c, 0x06, 0xff,
        0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01,
        0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02
    };
    /* clang-format on */
    struct log log;
    struct wire *w = two_hosts(1, false, &log);
    struct sg_endpoint to = wire_ip6(false, 2, 0, PORT);
    struct peer a = { 0 };
    enum sg_stream_end why;
    uint32_t pseudo = 0;
    const uint8_t *tcp = log.frame[1] + 54;
    unsigned i;

    T_TRUE(peer_connect(w, &a, 0, &to, &why));
    wire_settle(w, 100 * WIRE_MS);
    T_TRUE(log.n >= 2);
    T_EQ_INT((int)log.len[0], 86);
    T_EQ_MEM(log.frame[0], solicitation, 86);
    T_EQ_INT((int)log.len[1], 14 + 40 + 44);
    T_EQ_MEM(log.frame[1], syn_head, 54);
    T_EQ_INT(sg_get_be16(tcp + 2), PORT);
    T_EQ_INT(tcp[13], SYN);
    T_EQ_INT(sg_get_be32(tcp + 20), 0x02040000 + 1500 - 60); /* MSS */
    for (i = 22; i < 54; i += 2) {
        pseudo += sg_get_be16(log.frame[1] + i);
    }
    T_EQ_INT(wire_checksum(tcp, 44, pseudo + 6 + 44), 0);
    wire_free(w);
}

static size_t segment(struct wire *w, uint8_t *frame, const uint8_t *extensions, size_t len,
                      uint8_t first)
{
    struct wire_segment s = {
        .dst_mac = w->host[1].mac,
        .src_mac = w->host[0].mac,
        .src = wire_ip6(false, 1, 0, 9),
        .dst = wire_ip6(false, 2, 0, PORT),
        .flags = SYN,
        .seq = 1,
        .window = 1000,
        .extensions = extensions,
        .extensions_len = len,
        .first_extension = first,
    };

    return wire_build(frame, &s);
}

static struct sg_stream_listener *listen_on(struct wire *w, struct peer *b, unsigned family)
{
    struct sg_endpoint any = { .family = (uint8_t)family, .port = PORT };
    enum sg_stream_end why;

    b->wire = w;
    return w->host[1].net->ops->listen(w->host[1].net, &any, 64, peer_accept, b, &why);
}

/* Extension headers that are skipped, and those with which a packet goes to the NIC. */
static void verdict__extension_headers(void)
{
    static const struct {
        const char *what;
        unsigned want;
        uint8_t first;
        uint8_t len;
        uint8_t octets[40];
    } rows[] = {
        { "none", A, 0, 0, { 0 } },
        { "hop-by-hop, PadN", A, HOPS, 8, { 6, 0, 1, 4 } },
        { "hop-by-hop, Pad1s", A, HOPS, 8, { 6, 0 } },
        { "hop-by-hop, router alert", A, HOPS, 8, { 6, 0, 5, 2, 0, 0, 1, 0 } },
        { "destination options", A, DESTINATION, 16, { 6, 1, 1, 12 } },
        { "hop-by-hop, then destination", A, HOPS, 16, { 60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4 } },
        { "used up routing header", A, ROUTING, 8, { 6, 0, 4, 0 } },
        { "fragment header of a whole packet", A, FRAGMENT, 8, { 6, 0, 0, 0, 1, 2, 3, 4 } },
        { "first fragment, which is dropped", A, FRAGMENT, 8, { 6, 0, 0, 1, 1, 2, 3, 4 } },
        { "later fragment", N, FRAGMENT, 8, { 6, 0, 5, 0xa8, 1, 2, 3, 4 } },
        { "routing header with a segment left", N, ROUTING, 8, { 6, 0, 4, 1 } },
        { "option: discard if unknown", N, DESTINATION, 8, { 6, 0, 0x5e, 4 } },
        { "option: complain if unknown", N, DESTINATION, 8, { 6, 0, 0x9e, 4 } },
        { "jumbo payload", N, HOPS, 8, { 6, 0, 0xc2, 4, 0, 1, 0, 0 } },
        { "option beyond its header", N, HOPS, 8, { 6, 0, 1, 5 } },
        { "option without length", N, HOPS, 8, { 6, 0, 1, 3, 0, 0, 0, 1 } },
        { "header beyond the packet", N, HOPS, 8, { 6, 9, 1, 4 } },
        { "hop-by-hop in second place",
          N,
          DESTINATION,
          16,
          { 0, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4 } },
        { "authentication header", N, 51, 8, { 6, 0 } },
        { "encapsulated", N, 50, 8, { 6, 0 } },
        { "no next header", N, 59, 8, { 6, 0 } },
        { "five headers", N, DESTINATION, 40, { 60, 0, 1,  4, 0, 0, 0, 0, 60, 0, 1,  4, 0, 0,
                                                0,  0, 60, 0, 1, 4, 0, 0, 0,  0, 60, 0, 1, 4,
                                                0,  0, 0,  0, 6, 0, 1, 4, 0,  0, 0,  0 } },
    };
    struct wire *w = two_hosts(4, false, NULL);
    struct peer b = { .refuse = true };
    struct sg_port_counters before, after;
    uint8_t frame[200];
    size_t i, n;

    T_TRUE(listen_on(w, &b, 6) != NULL);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("%s", rows[i].what);
        n = segment(w, frame, rows[i].octets, rows[i].len, rows[i].first);
        sg_port_counters(w->host[1].port, &before);
        T_EQ_INT(sg_port_input(w->host[1].port, frame, n), rows[i].want);
        sg_port_counters(w->host[1].port, &after);
        T_EQ_U64(after.checksum_errors, before.checksum_errors);
        if (rows[i].want == A) { /* lwIP took it for a SYN: one connection is half-open */
            T_EQ_INT(after.connections, 1);
        }
    }
    wire_free(w);
}

static void verdict__table(void)
{
    struct wire *w = two_hosts(5, false, NULL);
    struct peer b = { .refuse = true };
    uint8_t frame[200] = { 0 }, broken[200];
    size_t n, i, len;

    T_TRUE(listen_on(w, &b, 6) != NULL);
    n = segment(w, frame, NULL, 0, 0);
#define VARIANT(change, want)                                      \
    do {                                                           \
        T_CONTEXT("%s", #change);                                  \
        memcpy(broken, frame, sizeof(frame));                      \
        change;                                                    \
        T_EQ_INT(sg_port_input(w->host[1].port, broken, n), want); \
    } while (0)
    VARIANT((void)0, A);
    VARIANT(broken[5] ^= 1, N);                   /* another station's MAC address */
    VARIANT(broken[14] = 0x45, N);                /* not version 6 */
    VARIANT(broken[53] ^= 4, N);                  /* not our address */
    VARIANT(broken[20] = 17, N);                  /* UDP */
    VARIANT(sg_put_be16(broken + 18, 19), N);     /* shorter than a TCP header */
    VARIANT(sg_put_be16(broken + 18, 200), N);    /* longer than the frame */
    VARIANT(broken[54 + 12] = 0x40, N);           /* TCP header too short */
    VARIANT(broken[54 + 12] = 0xf0, N);           /* TCP header longer than the packet */
    VARIANT(sg_put_be16(broken + 54 + 2, 22), N); /* nobody listens */
    VARIANT(broken[20] = ICMP, A | N);            /* malformed ICMP goes to both */
    n += 6;
    VARIANT((void)0, A); /* padding behind the packet */
    n -= 6;
    for (len = 0; len < n; len++) { /* octets beyond the end are not read */
        uint8_t *copy = g_memdup2(frame, len ? len : 1);

        T_CONTEXT("%zu octets", len);
        T_EQ_INT(sg_port_input(w->host[1].port, copy, len), N);
        g_free(copy);
    }
    for (i = 0; i < 2; i++) { /* mapped IPv4, group: lwIP would drop them */
        T_CONTEXT("source %zu", i);
        memcpy(broken, frame, n);
        memset(broken + 22, i ? 0xff : 0, 16);
        broken[32] = broken[33] = 0xff;
        T_EQ_INT(sg_port_input(w->host[1].port, broken, n), A);
    }
    wire_free(w);
}

static void route__gateway(void)
{
    struct log log;
    struct wire *w = two_hosts(10, false, &log);
    struct sg_endpoint far = { .family = 6, .port = PORT, .ip = { 0x20, 1 } };
    struct sg_endpoint router = wire_ip6(true, 0xfe, 0, 0), own = wire_ip6(false, 1, 0, 0);
    const struct sg_stream_net_ops *ops = w->host[0].net->ops;
    struct peer a = { 0 };
    enum sg_stream_end why;

    T_FALSE(peer_connect(w, &a, 0, &far, &why));
    T_EQ_INT(why, SG_STREAM_UNREACHABLE);
    T_TRUE(wire_add(w, 1, &router, 64, NULL));
    T_TRUE(ops->add_addr(w->host[0].net, &own, 64, router.ip));
    T_TRUE(peer_connect(w, &a, 0, &far, &why));
    wire_settle(w, 10 * WIRE_MS);
    T_TRUE(log.n >= 2);
    T_EQ_MEM(log.frame[0] + 62, router.ip, 16); /* asks for the router */
    T_EQ_INT(log.frame[1][20], 6);
    T_EQ_INT(log.frame[1][5], 2);
    T_EQ_MEM(log.frame[1] + 38, far.ip, 16);
    wire_free(w);
}

/* Prefixes need not be 64 bits long. */
static void route__prefix_lengths(void)
{
    static const struct {
        unsigned prefix;
        uint8_t other;
        bool on_link;
    } rows[] = {
        { 128, 0x10, false }, { 121, 0x7f, true }, { 121, 0x80, false },
        { 120, 0xff, true },  { 0, 0xff, true },
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire *w = wire_new(11, 1500, NULL);
        struct sg_endpoint own = wire_ip6(false, 1, 0, 0);
        struct sg_endpoint to = wire_ip6(false, rows[i].other, 0, PORT);
        enum sg_stream_end why;
        struct peer a = { 0 };

        T_CONTEXT("row %zu", i);
        T_TRUE(wire_add(w, 0, &own, rows[i].prefix, NULL));
        T_TRUE(peer_connect(w, &a, 0, &to, &why) == rows[i].on_link);
        wire_free(w);
    }
}

/* Addresses whose octets would be an announcement (sender equals target) in an ARP frame. */
static void route__addresses_like_arp(void)
{
    struct wire *w = wire_new(13, 1500, NULL);
    struct sg_endpoint own = wire_ip6(false, 1, 0, 0), peer = wire_ip6(false, 2, 0, 0);
    struct sg_endpoint to = wire_ip6(false, 2, 0, PORT), any = { .family = 6, .port = PORT };
    struct peer a = { 0 }, b = { 0 };
    enum sg_stream_end why;

    memcpy(own.ip + 6, peer.ip, 4);
    T_TRUE(wire_add(w, 0, &own, 16, NULL));
    T_TRUE(wire_add(w, 1, &peer, 16, NULL));
    T_TRUE(w->host[1].net->ops->listen(w->host[1].net, &any, 4, peer_accept, &b, &why) != NULL);
    T_TRUE(peer_connect(w, &a, 0, &to, &why));
    wire_settle(w, 100 * WIRE_MS);
    T_EQ_INT(a.connects, 1);
    T_EQ_INT(b.connects, 1);
    wire_free(w);
}

static void address__refused(void)
{
    static const uint8_t bad[][16] = {
        { 0 },
        { [15] = 1 },
        { 0xff, 2 },
        { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 },
    };
    struct wire *w = wire_new(12, 1500, NULL);
    const struct sg_stream_net_ops *ops = w->host[0].net->ops;
    struct sg_endpoint e = { .family = 6 }, good = wire_ip6(false, 1, 0, PORT);
    enum sg_stream_end why;
    struct peer a = { 0 };
    size_t i;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        T_CONTEXT("row %zu", i);
        memcpy(e.ip, bad[i], 16);
        e.port = 0;
        T_FALSE(ops->add_addr(w->host[0].net, &e, 64, NULL));
        e.port = PORT;
        T_FALSE(peer_connect(w, &a, 0, &e, &why));
        T_EQ_INT(why, SG_STREAM_UNREACHABLE);
    }
    T_FALSE(ops->add_addr(w->host[0].net, &good, 129, NULL));
    T_FALSE(ops->del_addr(w->host[0].net, &good));
    good.vlan = 4095;
    T_FALSE(ops->add_addr(w->host[0].net, &good, 64, NULL));
    wire_free(w);
}

/* A listener on any IPv6 address accepts no IPv4, and both may have the same port. */
static void listen__families_are_apart(void)
{
    struct wire *w = two_hosts(13, false, NULL);
    struct peer six = { 0 }, four = { 0 }, a = { 0 }, c = { 0 };
    struct sg_endpoint to6 = wire_ip6(false, 2, 0, PORT), to4 = wire_endpoint(&w->host[1], PORT);
    enum sg_stream_end why;

    T_TRUE(listen_on(w, &six, 6) != NULL);
    T_TRUE(listen_on(w, &six, 6) == NULL); /* in use */
    T_TRUE(peer_connect(w, &a, 0, &to4, &why));
    wire_settle(w, 100 * WIRE_MS);
    T_EQ_INT(a.end, SG_STREAM_REFUSED);
    T_TRUE(listen_on(w, &four, 4) != NULL);
    a = (struct peer){ 0 };
    T_TRUE(peer_connect(w, &a, 0, &to4, &why));
    T_TRUE(peer_connect(w, &c, 0, &to6, &why));
    wire_settle(w, 100 * WIRE_MS);
    T_EQ_INT(four.connects, 1);
    T_EQ_INT(six.connects, 1);
    wire_free(w);
}

/* Both ends on one port: the same address, and two addresses; nothing reaches the wire. */
static void loopback__within_a_port(void)
{
    struct log log;
    struct wire *w = two_hosts(14, false, &log);
    struct wire_host *h = &w->host[0];
    struct sg_endpoint more = wire_ip6(false, 77, 0, 0), any = { .family = 6, .port = PORT };
    struct sg_endpoint to[2] = { wire_ip6(false, 1, 0, PORT), wire_ip6(false, 77, 0, PORT) };
    struct sg_endpoint local, remote;
    enum sg_stream_end why;
    size_t i;

    T_TRUE(wire_add(w, 0, &more, 64, NULL));
    for (i = 0; i < 2; i++) {
        struct peer a = { .to_send = 500000 }, b = { .to_send = 500000, .wire = w };
        struct peer *both[2] = { &a, &b };
        struct sg_stream_listener *l = h->net->ops->listen(h->net, &any, 4, peer_accept, &b, &why);

        T_CONTEXT("address %zu", i);
        T_TRUE(l != NULL);
        T_TRUE(peer_connect(w, &a, 0, &to[i], &why));
        T_TRUE(wire_run(w, all_arrived, both, 60 * WIRE_S));
        T_FALSE(a.damaged || b.damaged);
        a.s->ops->endpoints(a.s, &local, &remote);
        T_EQ_MEM(remote.ip, to[i].ip, 16);
        h->net->ops->unlisten(h->net, l);
        peer_abort(&a);
        wire_settle(w, WIRE_S);
        T_EQ_INT(b.closes, 1);
    }
    T_EQ_INT((int)log.n, 0);
    wire_free(w);
}

static void address__its_end_is_its_connections_end(void)
{
    struct wire *w = two_hosts(15, false, NULL);
    struct peer a = { 0 }, b = { 0 }, a4 = { 0 }, b4 = { 0 };
    struct sg_endpoint to = wire_ip6(false, 2, 0, PORT), own = wire_ip6(false, 1, 0, 0);

    T_TRUE(peer_pair_at(w, &a, &b, &to));
    T_TRUE(peer_pair(w, &a4, &b4, PORT));
    T_TRUE(w->host[0].net->ops->del_addr(w->host[0].net, &own));
    wire_settle(w, 100 * WIRE_MS);
    T_EQ_INT(a.closes, 1);
    T_EQ_INT(a.end, SG_STREAM_UNREACHABLE);
    T_EQ_INT(b.closes, 1);
    T_EQ_INT(a4.closes + b4.closes, 0);
    wire_free(w);
}

/* Type of service and traffic class: the active side's own, the passive side's listener's. */
static void note_class(struct wire *w, int from, const uint8_t *f, size_t len)
{
    unsigned *classes = w->tap_data;

    (void)len;
    if (sg_get_be16(f + 12) == 0x0800) {
        classes[from] |= f[15];
    } else if (sg_get_be16(f + 12) == 0x86dd && f[20] == 6) {
        classes[from] |= (unsigned)(f[14] & 15) << 4 | f[15] >> 4;
    }
}

static void traffic_class(void)
{
    struct wire *w = two_hosts(16, false, NULL);
    struct wire_host *h = &w->host[1];
    unsigned family, classes[2];
    enum sg_stream_end why;

    w->tap = note_class;
    w->tap_data = classes;
    for (family = 4; family <= 6; family += 2) {
        struct sg_endpoint to = family == 6 ? wire_ip6(false, 2, 0, PORT) : wire_endpoint(h, PORT);
        struct sg_endpoint at = { .family = (uint8_t)family, .port = PORT, .tos = 0x48 };
        struct sg_endpoint from = { .family = (uint8_t)family, .tos = 0xb8 };
        struct peer a = { .to_send = 5000, .wire = w }, b = { .to_send = 5000, .wire = w };
        struct peer *both[2] = { &a, &b };
        struct sg_stream_listener *l = h->net->ops->listen(h->net, &at, 4, peer_accept, &b, &why);

        T_CONTEXT("IPv%u", family);
        classes[0] = classes[1] = 0;
        T_TRUE(l != NULL);
        a.s = w->host[0].net->ops->connect(w->host[0].net, &from, &to, &peer_events, &a, &why);
        T_TRUE(a.s != NULL);
        T_TRUE(wire_run(w, all_arrived, both, 10 * WIRE_S));
        T_EQ_INT((int)classes[0], 0xb8);
        T_EQ_INT((int)classes[1], 0x48);
        h->net->ops->unlisten(h->net, l);
        peer_abort(&a);
        wire_settle(w, WIRE_S);
    }
    wire_free(w);
}

static const struct t_case cases[] = {
    { "data arrives over IPv6", transfer__clean },
    { "data arrives over IPv6 and a bad wire", transfer__bad_wire },
    { "data arrives between link-local addresses", transfer__link_local },
    { "solicitation and SYN, octet by octet", wire__solicitation_and_syn },
    { "whose an IPv6 frame is", verdict__table },
    { "extension headers: passed over, or the NIC's", verdict__extension_headers },
    { "a gateway, link-local, or none", route__gateway },
    { "prefixes of any length", route__prefix_lengths },
    { "addresses whose octets look like ARP", route__addresses_like_arp },
    { "addresses that cannot be a port's", address__refused },
    { "listeners of IPv4 and IPv6 on one port number", listen__families_are_apart },
    { "loopback within a port", loopback__within_a_port },
    { "type of service and traffic class", traffic_class },
    { "the end of an address is the end of its connections only",
      address__its_end_is_its_connections_end },
};

T_MAIN(cases)
