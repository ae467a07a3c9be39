/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * 802.1Q: outgoing and incoming tags, and who receives which frames.
 */
#include "tap.h"
#include "peer.h"
#include "base/bytes.h"

enum {
    PORT = 4791,
    SYN = 2,
    A = SG_PORT_TO_ADAPTER,
    N = SG_PORT_TO_NIC,
    VLAN = 5,
};

static struct sg_endpoint ip4(uint8_t last, uint16_t vlan)
{
    struct sg_endpoint e = wire_ip(10, 0, (unsigned)vlan, last, 0);

    e.vlan = vlan;
    return e;
}

static bool all_arrived(void *data)
{
    struct peer **p = data;

    return p[0]->received >= p[1]->to_send && p[1]->received >= p[0]->to_send;
}

struct vlan_seen {
    unsigned frames, tagged, arp, nd, tcp;
    uint8_t first[46];
};

static void look(struct wire *w, int from, const uint8_t *f, size_t len)
{
    struct vlan_seen *s = w->tap_data;

    (void)from;
    (void)len;
    if (!s->frames++) {
        memcpy(s->first, f, sizeof(s->first));
    }
    s->tagged += sg_get_be16(f + 12) == 0x8100 && sg_get_be16(f + 14) == VLAN;
    s->arp += sg_get_be16(f + 16) == 0x0806;
    s->nd += sg_get_be16(f + 16) == 0x86dd && f[24] == 58;
    s->tcp += (sg_get_be16(f + 16) == 0x0800 && f[27] == 6) ||
              (sg_get_be16(f + 16) == 0x86dd && f[24] == 6);
}

static void transfer(const struct sg_endpoint *a_ip, const struct sg_endpoint *b_ip,
                     struct wire_faults faults)
{
    struct wire *w = wire_new(1, 1500, NULL);
    struct peer a = { .to_send = 1000000 }, b = { .to_send = 300000 };
    struct peer *both[2] = { &a, &b };
    struct sg_endpoint to = *b_ip;
    struct vlan_seen seen = { 0 };

    to.port = PORT;
    w->tap = look;
    w->tap_data = &seen;
    T_TRUE(wire_add(w, 0, a_ip, 24, NULL));
    T_TRUE(wire_add(w, 1, b_ip, 24, NULL));
    T_TRUE(peer_pair_at(w, &a, &b, &to));
    w->faults = faults;
    T_TRUE(wire_run(w, all_arrived, both, 3600 * WIRE_S));
    T_FALSE(a.damaged || b.damaged);
    T_EQ_INT(seen.tagged, (int)seen.frames); /* each frame, the neighbours' messages too */
    T_EQ_INT(seen.tcp + seen.arp + seen.nd, (int)seen.frames);
    T_TRUE(seen.arp + seen.nd > 0 && seen.tcp > 800);
    wire_free(w);
}

static void transfer__ipv4(void)
{
    struct sg_endpoint a = ip4(1, VLAN), b = ip4(2, VLAN);

    transfer(&a, &b, (struct wire_faults){ 0 });
    transfer(&a, &b, (struct wire_faults){ .loss = 20, .reorder = 50, .corrupt = 10 });
}

static void transfer__ipv6(void)
{
    struct sg_endpoint a = wire_ip6(false, 1, VLAN, 0), b = wire_ip6(false, 2, VLAN, 0);

    transfer(&a, &b, (struct wire_faults){ 0 });
    a = wire_ip6(true, 1, VLAN, 0);
    b = wire_ip6(true, 2, VLAN, 0);
    transfer(&a, &b, (struct wire_faults){ 0 });
}

/* The first frame of a connect: an ARP request, tagged. */
static void wire__arp_request(void)
{
    /* clang-format off */
    static const uint8_t want[46] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x52, 0x54, 0, 0, 0, 1, 0x81, 0x00, 0x00, 0x05,
        0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1, 0x52, 0x54, 0, 0, 0, 1, 10, 0, 5, 1,
        0, 0, 0, 0, 0, 0, 10, 0, 5, 2
    };
    /* clang-format on */
    struct wire *w = wire_new(2, 1500, NULL);
    struct sg_endpoint a = ip4(1, VLAN), to = ip4(2, VLAN);
    struct vlan_seen seen = { 0 };
    struct peer p = { 0 };
    enum sg_stream_end why;

    to.port = PORT;
    w->tap = look;
    w->tap_data = &seen;
    T_TRUE(wire_add(w, 0, &a, 24, NULL));
    T_TRUE(peer_connect(w, &p, 0, &to, &why));
    wire_settle(w, WIRE_MS);
    T_EQ_INT((int)seen.frames, 1);
    T_EQ_MEM(seen.first, want, sizeof(want));
    wire_free(w);
}

static size_t syn(struct wire *w, uint8_t *frame, const struct sg_endpoint *to)
{
    struct wire_segment s = {
        .dst_mac = w->host[1].mac,
        .src_mac = w->host[0].mac,
        .src = *to,
        .dst = *to,
        .flags = SYN,
        .seq = 1,
        .window = 1000,
    };

    s.src.ip[to->family == 4 ? 3 : 15] = 1;
    s.src.port = 9;
    s.dst.port = PORT;
    return wire_build(frame, &s);
}

/* The same segment with each tag, to an address on each link. */
static void verdict__by_identifier(void)
{
    enum { NO_TAG = 0x10000, DOUBLE = 0x20000 };
    static const struct {
        const char *what;
        unsigned tci;
        bool plain, vlan;
    } rows[] = {
        { "no tag", NO_TAG, true, false },
        { "priority only", 0xe000, true, false },
        { "priority only, may be dropped", 0x1000, true, false },
        { "VLAN 5", 5, false, true },
        { "VLAN 5 with priority", 0xf005, false, true },
        { "VLAN 6", 6, false, false },
        { "VLAN 4095", 4095, false, false },
        { "two tags", 5 | DOUBLE, false, false },
    };
    struct sg_endpoint plain[2], vlan[2], any[2] = { { 4, PORT, { 0 }, 0 }, { 6, PORT, { 0 }, 0 } };
    struct wire *w = wire_new(3, 1500, NULL);
    struct wire_host *h = &w->host[1];
    struct peer b = { .refuse = true, .wire = w };
    enum sg_stream_end why;
    uint8_t frame[200];
    size_t i, f, n;

    for (f = 0; f < 2; f++) {
        plain[f] = f ? wire_ip6(false, 2, 0, 0) : ip4(2, 0);
        vlan[f] = f ? wire_ip6(false, 0x502, VLAN, 0) : ip4(2, VLAN);
        T_TRUE(f == 0 || wire_add(w, 1, &plain[f], 24, NULL));
        T_TRUE(wire_add(w, 1, &vlan[f], 24, NULL));
        T_TRUE(h->net->ops->listen(h->net, &any[f], 64, peer_accept, &b, &why) != NULL);
        for (i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
            const struct sg_endpoint *to = i % 2 ? &vlan[f] : &plain[f];
            bool want = i % 2 ? rows[i / 2].vlan : rows[i / 2].plain;

            T_CONTEXT("%s, to the address on %s, family %d", rows[i / 2].what,
                      i % 2 ? "VLAN 5" : "no VLAN", to->family);
            n = syn(w, frame, to);
            if (!(rows[i / 2].tci & NO_TAG)) {
                n = wire_tag(frame, n, (uint16_t)rows[i / 2].tci);
            }
            if (rows[i / 2].tci & DOUBLE) {
                n = wire_tag(frame, n, 5);
            }
            T_EQ_INT(sg_port_input(h->port, frame, n), want ? A : N);
        }
    }
    wire_free(w);
}

static void verdict__cut_off(void)
{
    struct wire *w = wire_new(4, 1500, NULL);
    struct sg_endpoint to = ip4(2, VLAN);
    uint8_t frame[200];
    size_t n, len;

    T_TRUE(wire_add(w, 1, &to, 24, NULL));
    n = wire_tag(frame, syn(w, frame, &to), VLAN);
    for (len = 0; len < n; len++) {
        uint8_t *copy = g_memdup2(frame, len ? len : 1);

        T_CONTEXT("%zu octets", len);
        T_EQ_INT(sg_port_input(w->host[1].port, copy, len), N);
        g_free(copy);
    }
    wire_free(w);
}

/* The same link-local addresses and TCP ports on three links are three connections. */
static void link_local__on_each_link(void)
{
    static const uint16_t vlans[3] = { 0, 5, 6 };
    struct wire *w = wire_new(5, 1500, NULL);
    struct wire_host *h = &w->host[1];
    struct sg_endpoint local, remote;
    struct peer a[3] = { { 0 } }, b[3] = { { 0 } };
    enum sg_stream_end why;
    size_t i;

    for (i = 0; i < 3; i++) {
        struct sg_endpoint own = wire_ip6(true, 1, vlans[i], 0);
        struct sg_endpoint other = wire_ip6(true, 2, vlans[i], 0);

        T_CONTEXT("VLAN %u", vlans[i]);
        T_TRUE(wire_add(w, 0, &own, 64, NULL));
        T_TRUE(wire_add(w, 1, &other, 64, NULL));
        other.port = PORT;
        b[i].wire = w;
        T_TRUE(h->net->ops->listen(h->net, &other, 4, peer_accept, &b[i], &why) != NULL);
        own.port = 777;
        a[i].wire = w;
        a[i].to_send = 1000 * (i + 1);
        a[i].s =
            w->host[0].net->ops->connect(w->host[0].net, &own, &other, &peer_events, &a[i], &why);
        T_TRUE(a[i].s != NULL);
    }
    wire_settle(w, WIRE_S);
    for (i = 0; i < 3; i++) {
        T_CONTEXT("VLAN %u", vlans[i]);
        T_EQ_INT((int)b[i].connects, 1);
        T_EQ_U64(b[i].received, a[i].to_send);
        b[i].s->ops->endpoints(b[i].s, &local, &remote);
        T_EQ_INT(local.vlan, vlans[i]);
        T_EQ_INT(remote.vlan, vlans[i]);
        T_EQ_INT(remote.port, 777);
    }
    wire_free(w);
}

/* From an address on one link to one on another, within a port. */
static void loopback__across_links(void)
{
    struct wire *w = wire_new(6, 1500, NULL);
    struct wire_host *h = &w->host[0];
    struct sg_endpoint own = ip4(1, VLAN), to, any = { .family = 4, .port = PORT };
    enum sg_stream_end why;
    struct vlan_seen seen = { 0 };
    size_t i;

    w->tap = look;
    w->tap_data = &seen;
    T_TRUE(wire_add(w, 0, &own, 24, NULL));
    for (i = 0; i < 4; i++) {
        struct peer a = { .to_send = 300000, .wire = w }, b = { .to_send = 100000, .wire = w };
        struct peer *both[2] = { &a, &b };
        struct sg_endpoint from = i & 1 ? own : h->ip;
        struct sg_stream_listener *l = h->net->ops->listen(h->net, &any, 4, peer_accept, &b, &why);

        T_CONTEXT("case %zu", i);
        to = i & 2 ? own : h->ip;
        to.port = PORT;
        T_TRUE(l != NULL);
        a.s = h->net->ops->connect(h->net, &from, &to, &peer_events, &a, &why);
        T_TRUE(a.s != NULL);
        T_TRUE(wire_run(w, all_arrived, both, 60 * WIRE_S));
        T_FALSE(a.damaged || b.damaged);
        h->net->ops->unlisten(h->net, l);
        peer_abort(&a);
        wire_settle(w, WIRE_S);
    }
    T_EQ_INT((int)seen.frames, 0);
    wire_free(w);
}

/* A reply on another link, or none, does not count. */
static void arp__of_another_link(void)
{
    struct wire *w = wire_new(7, 1500, NULL);
    struct sg_endpoint a = ip4(1, VLAN), to = ip4(2, VLAN);
    uint8_t reply[64] = { 0x52, 0x54, 0, 0, 0,    1,    0x52, 0x54, 0,    0,    0,  2, 8, 6,
                          0,    1,    8, 0, 6,    4,    0,    2,    0x52, 0x54, 0,  0, 0, 2,
                          10,   0,    5, 2, 0x52, 0x54, 0,    0,    0,    1,    10, 0, 5, 1 };
    struct vlan_seen seen = { 0 };
    struct peer p = { 0 };
    enum sg_stream_end why;

    to.port = PORT;
    w->tap = look;
    w->tap_data = &seen;
    T_TRUE(wire_add(w, 0, &a, 24, NULL));
    T_TRUE(peer_connect(w, &p, 0, &to, &why));
    T_EQ_INT(sg_port_input(w->host[0].port, reply, 42), A | N);
    wire_settle(w, WIRE_MS);
    T_EQ_INT((int)seen.tcp, 0);
    T_EQ_INT(sg_port_input(w->host[0].port, reply, wire_tag(reply, 42, 6)), A | N);
    wire_settle(w, WIRE_MS);
    T_EQ_INT((int)seen.tcp, 0);
    sg_put_be16(reply + 14, VLAN);
    T_EQ_INT(sg_port_input(w->host[0].port, reply, 46), A | N);
    wire_settle(w, WIRE_MS);
    T_EQ_INT((int)seen.tcp, 1);
    wire_free(w);
}

static void address__on_one_link_only(void)
{
    struct wire *w = wire_new(8, 1500, NULL);
    const struct sg_stream_net_ops *ops = w->host[0].net->ops;
    struct sg_endpoint e = ip4(1, VLAN), local = wire_ip6(true, 1, VLAN, 0);

    T_TRUE(ops->add_addr(w->host[0].net, &e, 24, NULL));
    e.vlan = 6;
    T_FALSE(ops->add_addr(w->host[0].net, &e, 24, NULL));
    T_FALSE(ops->del_addr(w->host[0].net, &e));
    e.vlan = 0;
    T_FALSE(ops->add_addr(w->host[0].net, &e, 24, NULL));
    e.vlan = VLAN;
    T_TRUE(ops->add_addr(w->host[0].net, &e, 16, NULL)); /* another prefix */
    T_TRUE(ops->del_addr(w->host[0].net, &e));
    e.vlan = 6;
    T_TRUE(ops->add_addr(w->host[0].net, &e, 24, NULL));
    T_TRUE(ops->add_addr(w->host[0].net, &local, 64, NULL));
    local.vlan = 6;
    T_TRUE(ops->add_addr(w->host[0].net, &local, 64, NULL));
    wire_free(w);
}

static const struct t_case cases[] = {
    { "data arrives over IPv4 on a VLAN, each frame tagged", transfer__ipv4 },
    { "data arrives over IPv6 on a VLAN, each frame tagged", transfer__ipv6 },
    { "an ARP request, octet by octet", wire__arp_request },
    { "whose a frame is, by its tag", verdict__by_identifier },
    { "tagged frames that are cut off", verdict__cut_off },
    { "the same link-local addresses and ports on three links", link_local__on_each_link },
    { "loopback between addresses of two links", loopback__across_links },
    { "ARP replies of another link", arp__of_another_link },
    { "an address is on one link, a link-local one on each", address__on_one_link_only },
};

T_MAIN(cases)
