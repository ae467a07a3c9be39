/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A router in the middle whose next link is narrow: it drops packets that do not fit and reports it
 * (RFC 1191, RFC 8201), or somebody else reports it.
 */
#include <string.h>

#include "tap.h"
#include "peer.h"
#include "base/bytes.h"

enum { PORT = 4791, ICMP_HEAD = 8, DF = 0x40 };

struct router {
    unsigned mtu; /* of the next link */
    bool old;     /* does not say its MTU (RFC 1191, section 5) */
    unsigned dropped, without_df;
    size_t largest; /* packet of those that went through */
};

/* The message about a packet that host 'from' sent, to that host. */
static void report(struct wire *w, int from, const uint8_t *packet, uint32_t mtu, bool damaged)
{
    uint8_t f[200] = { 0 }, *ip = f + 14, *icmp;
    bool six = packet[0] >> 4 == 6;
    size_t quote = six ? 60 : 28, len;

    memcpy(f, w->host[from].mac, 6);
    memcpy(f + 6, w->host[!from].mac, 6);
    if (six) {
        sg_put_be16(f + 12, 0x86dd);
        ip[0] = 0x60;
        sg_put_be16(ip + 4, (uint16_t)(ICMP_HEAD + quote));
        ip[6] = 58;
        ip[7] = 63;
        memcpy(ip + 8, packet + 24, 16);
        memcpy(ip + 24, packet + 8, 16);
        icmp = ip + 40;
        icmp[0] = 2;
        sg_put_be32(icmp + 4, mtu);
        memcpy(icmp + 8, packet, quote);
        wire_mend_icmp6(f);
    } else {
        sg_put_be16(f + 12, 0x0800);
        ip[0] = 0x45;
        sg_put_be16(ip + 2, (uint16_t)(20 + ICMP_HEAD + quote));
        ip[8] = 63;
        ip[9] = 1;
        memcpy(ip + 12, packet + 16, 4);
        memcpy(ip + 16, packet + 12, 4);
        sg_put_be16(ip + 10, wire_checksum(ip, 20, 0));
        icmp = ip + 20;
        icmp[0] = 3;
        icmp[1] = 4;
        sg_put_be16(icmp + 6, (uint16_t)mtu);
        memcpy(icmp + 8, packet, quote);
        sg_put_be16(icmp + 2, wire_checksum(icmp, ICMP_HEAD + quote, 0));
    }
    icmp[5] ^= damaged ? 1 : 0;
    len = (size_t)(icmp - f) + ICMP_HEAD + quote;
    wire_inject(w, from, f, len);
}

static bool route(struct wire *w, int from, const uint8_t *f, size_t len)
{
    struct router *r = w->tap_data;
    unsigned type = sg_get_be16(f + 12);

    if ((type != 0x0800 || f[23] != 6) && (type != 0x86dd || f[20] != 6)) {
        return false;
    }
    r->without_df += type == 0x0800 && !(f[20] & DF);
    if (r->mtu && len - 14 > r->mtu) {
        r->dropped++;
        report(w, from, f + 14, r->old ? 0 : r->mtu, false);
        return true;
    }
    r->largest = MAX(r->largest, len - 14);
    return false;
}

struct path_mtu_fixture {
    struct wire *w;
    struct router r;
    struct peer a, b;
};

static void set_up(struct path_mtu_fixture *f, unsigned family, unsigned mtu)
{
    struct sg_endpoint own = wire_ip6(false, 1, 0, 0), to;

    *f = (struct path_mtu_fixture){ 0 };
    f->w = wire_new(1300, mtu, NULL);
    f->w->router = route;
    f->w->tap_data = &f->r;
    to = wire_endpoint(&f->w->host[1], PORT);
    if (family == 6) {
        to = wire_ip6(false, 2, 0, PORT);
        T_TRUE(wire_add(f->w, 0, &own, 64, NULL));
        T_TRUE(wire_add(f->w, 1, &to, 64, NULL));
    }
    T_TRUE(peer_pair_at(f->w, &f->a, &f->b, &to));
    wire_settle(f->w, WIRE_S);
}

static bool has_all(void *data)
{
    struct path_mtu_fixture *f = data;

    return f->b.received >= f->a.to_send;
}

static void transfer(struct path_mtu_fixture *f, uint64_t octets)
{
    f->a.to_send += octets;
    peer_send(&f->a);
    T_TRUE(wire_run(f->w, has_all, f, 3 * WIRE_S));
    T_FALSE(f->b.damaged);
}

static size_t emss(struct path_mtu_fixture *f)
{
    return f->a.s->ops->emss(f->a.s);
}

static uint64_t reports(struct path_mtu_fixture *f)
{
    struct sg_port_counters c;

    sg_port_counters(f->w->host[0].port, &c);
    return c.path_mtu_reports;
}

/* Headers of IP and TCP, and the timestamp. */
static unsigned headers(unsigned family)
{
    return family == 6 ? 72 : 52;
}

static void narrow__segments_fit(void)
{
    static const struct {
        unsigned family, port, path, largest;
        bool old;
    } rows[] = {
        { 4, 9000, 1500, 1500, false },
        { 6, 9000, 1400, 1400, false },
        { 4, 65521, 1400, 1400, false },
        { 4, 1500, 600, 600, false },
        { 6, 1500, 1280, 1280, false },
        { 4, 9000, 1500, 1492, true }, /* by the plateaus of RFC 1191, section 7.1 */
    };
    unsigned i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct path_mtu_fixture f;

        T_CONTEXT("row %u", i);
        set_up(&f, rows[i].family, rows[i].port);
        transfer(&f, 100000);
        T_EQ_INT(f.r.without_df, 0); /* RFC 1191, section 3 */
        T_EQ_U64(reports(&f), 0);
        T_EQ_INT(emss(&f), rows[i].port - headers(rows[i].family));
        f.r = (struct router){ .mtu = rows[i].path, .old = rows[i].old };
        transfer(&f, 1000000);
        T_TRUE(f.r.dropped > 0);
        T_EQ_INT(f.r.largest, rows[i].largest);
        T_EQ_INT(emss(&f), rows[i].largest - headers(rows[i].family));
        T_EQ_INT(f.r.without_df, 0);
        T_EQ_INT(f.b.closes, 0);
        wire_free(f.w);
    }
}

/* RFC 1191, section 6.3: after ten minutes the whole MTU is tried again. */
static void narrow__tried_again_later(void)
{
    struct path_mtu_fixture f;

    set_up(&f, 4, 9000);
    f.r.mtu = 1500;
    transfer(&f, 100000);
    T_EQ_INT(emss(&f), 1500 - headers(4));
    wire_settle(f.w, 590 * WIRE_S);
    T_EQ_INT(emss(&f), 1500 - headers(4));
    wire_settle(f.w, 15 * WIRE_S);
    T_EQ_INT(emss(&f), 9000 - headers(4));
    f.r.dropped = 0;
    transfer(&f, 100000); /* as narrow as before */
    T_TRUE(f.r.dropped > 0);
    T_EQ_INT(emss(&f), 1500 - headers(4));
    f.r.mtu = 0;
    wire_settle(f.w, 605 * WIRE_S);
    f.r.largest = 0;
    transfer(&f, 100000);
    T_EQ_INT(f.r.largest, 9000);
    wire_free(f.w);
}

static uint8_t seen[128];
static size_t seen_len;

static bool keep_last(struct wire *w, int from, const uint8_t *f, size_t len)
{
    if (from == 0 && len > 1000) {
        if (len > 8900) {
            memcpy(seen, f + 14, sizeof(seen));
            seen_len = len - 14;
        }
        return true; /* lost, so that it stays in flight */
    }
    return false;
}

/*
 * A message that does not quote a segment in flight, or cannot be true, changes nothing (RFC 5927,
 * sections 4 and 7; RFC 8201, section 4).
 */
static void report__must_be_credible(void)
{
    enum { SEQ4 = 20 + 4, SEQ6 = 40 + 4 };
    static const struct {
        const char *what;
        unsigned family, at; /* an octet of the quote that is changed */
        uint8_t change;
        uint32_t mtu;
        bool damaged;
        size_t want; /* packet size afterwards; 0: as before */
    } rows[] = {
        { "true", 4, 0, 0, 1400, false, 1400 },
        { "true", 6, 0, 0, 1400, false, 1400 },
        { "checksum", 4, 0, 0, 1400, true, 0 },
        { "checksum", 6, 0, 0, 1400, true, 0 },
        { "an old sequence number", 4, SEQ4, 0x80, 1400, false, 0 },
        { "an old sequence number", 6, SEQ6, 0x80, 1400, false, 0 },
        { "one of the future", 4, SEQ4 + 1, 0x40, 1400, false, 0 },
        { "another local port", 4, 20, 1, 1400, false, 0 },
        { "another remote port", 4, 22, 1, 1400, false, 0 },
        { "another source", 4, 15, 1, 1400, false, 0 },
        { "another destination", 4, 19, 1, 1400, false, 0 },
        { "another protocol", 4, 9, 6 ^ 17, 1400, false, 0 },
        { "a later fragment", 4, 7, 1, 1400, false, 0 },
        { "larger than the packet", 4, 0, 0, 9001, false, 0 },
        { "as large as the packet", 4, 0, 0, 9000, false, 0 },
        { "tiny", 4, 0, 0, 68, false, 552 },
        { "tiny", 6, 0, 0, 1279, false, 0 },
    };
    unsigned i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct path_mtu_fixture f;
        unsigned family = rows[i].family;

        T_CONTEXT("IPv%u, %s", family, rows[i].what);
        set_up(&f, family, 9000);
        f.w->router = keep_last;
        seen_len = 0;
        f.a.to_send += 9000 - headers(family);
        f.a.unit = 9000 - headers(family);
        peer_send(&f.a);
        T_EQ_INT(seen_len, 9000);
        seen[rows[i].at] ^= rows[i].change;
        f.w->host[0].nic_frames = 0;
        report(f.w, 0, seen, rows[i].mtu, rows[i].damaged);
        wire_settle(f.w, WIRE_MS);
        T_EQ_INT(emss(&f), (rows[i].want ? rows[i].want : 9000) - headers(family));
        T_EQ_INT(f.w->host[0].nic_frames, 1); /* the NIC behind the port gets it, too */
        wire_free(f.w);
    }
}

/* Each one makes the adapter segment everything in flight again, so they are limited. */
static void report__few_are_believed(void)
{
    struct path_mtu_fixture f;
    unsigned mtu, n = 0;

    set_up(&f, 4, 9000);
    f.w->router = keep_last;
    f.a.to_send += 100000;
    peer_send(&f.a);
    for (mtu = 8999; mtu > 8900; mtu--, n++) {
        report(f.w, 0, seen, mtu, false);
        wire_settle(f.w, WIRE_MS);
    }
    T_EQ_U64(reports(&f), 8);
    f.w->router = NULL;
    T_TRUE(wire_run(f.w, has_all, &f, 10 * WIRE_S));
    T_FALSE(f.b.damaged);
    wire_free(f.w);
}

static const struct t_case cases[] = {
    { "a narrow path: segments fit, those in flight as well", narrow__segments_fit },
    { "a narrow path: the whole MTU is tried again later", narrow__tried_again_later },
    { "a report: must be credible", report__must_be_credible },
    { "a report: few are believed", report__few_are_believed },
};

T_MAIN(cases)
