/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Neighbours over IPv6: which messages teach their MAC addresses, which do not, and for how long.
 */
#include "ipv6_rig.h"

static size_t advertisement(struct wire *w, uint8_t *f, uint8_t flags, uint8_t mac)
{
    memset(f, 0, 86);
    memcpy(f, w->host[0].mac, 6);
    memcpy(f + 6, w->host[1].mac, 6);
    sg_put_be16(f + 12, 0x86dd);
    f[14] = 0x60;
    sg_put_be16(f + 18, 32);
    f[20] = ICMP;
    f[21] = 255;
    memcpy(f + 22, wire_ip6(false, 2, 0, 0).ip, 16);
    memcpy(f + 38, wire_ip6(false, 1, 0, 0).ip, 16);
    f[54] = 136;
    f[58] = flags;
    memcpy(f + 62, f + 22, 16);
    f[78] = 2;
    f[79] = 1;
    memcpy(f + 80, (uint8_t[]){ 0x52, 0x54, 0, 0, 9, mac }, 6);
    wire_mend_icmp6(f);
    return 86;
}

/*
 * The last octet of the MAC address of the host's next segment; 0: it asks for the address again.
 */
static unsigned next_hop(struct wire *w, struct log *log, struct peer *a)
{
    log->n = 0;
    a->to_send += 10;
    peer_send(a);
    wire_settle(w, 0);
    T_TRUE(log->n > 0);
    return log->frame[0][20] == ICMP ? 0 : log->frame[0][5] | log->frame[0][4] << 8;
}

/* RFC 4861, section 7.1: messages that must be dropped teach nothing; good ones do. */
static void neighbour__bad_advertisements(void)
{
    struct log log;
    struct wire *w = two_hosts(6, false, &log);
    struct peer a = { 0 }, b = { 0 };
    struct sg_endpoint to = wire_ip6(false, 2, 0, PORT);
    uint8_t f[86], copy[86];
    size_t len;

    T_TRUE(peer_pair_at(w, &a, &b, &to));
    wire_settle(w, WIRE_S);
    T_EQ_INT(next_hop(w, &log, &a), 2);
#define BAD(change)                                              \
    do {                                                         \
        T_CONTEXT("%s", #change);                                \
        len = advertisement(w, f, 0x60, 7);                      \
        change;                                                  \
        T_EQ_INT(sg_port_input(w->host[0].port, f, len), A | N); \
        T_EQ_INT(next_hop(w, &log, &a), 2);                      \
    } while (0)
#define MEND() wire_mend_icmp6(f)
    BAD(f[56] ^= 1);                         /* checksum */
    BAD((f[21] = 254, MEND()));              /* came through a router */
    BAD((f[55] = 1, MEND()));                /* code */
    BAD((f[79] = 0, MEND()));                /* option of no length */
    BAD((f[79] = 2, MEND()));                /* option beyond the end */
    BAD((f[80] = 0x53, MEND()));             /* a group's MAC address */
    BAD((f[62] = 0xff, MEND()));             /* target is a group */
    BAD((memset(f + 38, 0xff, 16), MEND())); /* solicited, yet to a group */
    BAD((sg_put_be16(f + 18, 23), MEND()));  /* too short */
    BAD((f[54] = 137, MEND()));              /* a redirect */
    advertisement(w, f, 0x60, 7);
    for (len = 54; len < 86; len++) {
        T_CONTEXT("%zu octets", len);
        memcpy(copy, f, len);
        T_EQ_INT(sg_port_input(w->host[0].port, copy, len), N);
    }
    T_CONTEXT("no override: one word against another, so the old station is asked");
    advertisement(w, f, 0x40, 7);
    T_EQ_INT(sg_port_input(w->host[0].port, f, 86), A | N);
    T_EQ_INT(next_hop(w, &log, &a), 0);
    T_EQ_INT(log.frame[0][5], 2);
    wire_settle(w, WIRE_MS);
    T_EQ_INT(next_hop(w, &log, &a), 2);
    advertisement(w, f, 0x60, 7);
    T_CONTEXT("good");
    T_EQ_INT(sg_port_input(w->host[0].port, f, 86), A | N);
    T_EQ_INT(next_hop(w, &log, &a), 0x907);
    wire_free(w);
}

/* Section 7.3: after 30 s an entry in use is probed by unicast; without an answer it is removed. */
static void neighbour__is_probed(void)
{
    struct log log;
    struct wire *w = two_hosts(7, false, &log);
    struct peer a = { 0 }, b = { 0 };
    struct sg_endpoint to = wire_ip6(false, 2, 0, PORT);
    unsigned answers;

    T_TRUE(peer_pair_at(w, &a, &b, &to));
    wire_settle(w, 20 * WIRE_S);
    T_EQ_INT(next_hop(w, &log, &a), 2);
    wire_settle(w, 20 * WIRE_S);
    answers = w->host[1].nd_answers;
    T_EQ_INT(next_hop(w, &log, &a), 0);
    T_EQ_INT(log.frame[0][5], 2);  /* unicast */
    T_EQ_INT(log.frame[1][20], 6); /* and the segment follows at once */
    wire_settle(w, WIRE_S);
    T_EQ_INT(w->host[1].nd_answers, (int)answers + 1);
    T_EQ_INT(next_hop(w, &log, &a), 2);
    w->host[1].mute = true;
    wire_settle(w, 40 * WIRE_S);
    T_EQ_INT(next_hop(w, &log, &a), 0);
    wire_settle(w, 10 * WIRE_S);
    T_EQ_INT(next_hop(w, &log, &a), 0);
    T_EQ_INT(log.frame[0][0], 0x33); /* to the group again */
    wire_free(w);
}

static bool is_closed(void *data)
{
    return ((struct peer *)data)->closes != 0;
}

static void neighbour__absent(void)
{
    struct log log;
    struct wire *w = two_hosts(8, false, &log);
    struct sg_endpoint to = wire_ip6(false, 99, 0, PORT);
    struct peer a = { 0 };
    enum sg_stream_end why;

    T_TRUE(peer_connect(w, &a, 0, &to, &why));
    T_TRUE(wire_run(w, is_closed, &a, 30 * WIRE_S));
    T_EQ_INT(a.end, SG_STREAM_TIMEOUT);
    T_TRUE(log.n >= 3 && log.n <= 15);
    T_EQ_INT(log.frame[0][0], 0x33);
    T_EQ_INT(log.frame[log.n - 1][20], ICMP);
    wire_free(w);
}

/* Claims of addresses must not make the table grow, or evict entries in use. */
static void neighbour__table_is_bounded(void)
{
    struct wire *w = two_hosts(9, false, NULL);
    struct peer a = { .to_send = 10 }, b = { 0 };
    struct peer *both[2] = { &a, &b };
    struct sg_endpoint to = wire_ip6(false, 2, 0, PORT);
    uint8_t f[86];
    unsigned i;

    T_TRUE(peer_pair_at(w, &a, &b, &to));
    for (i = 0; i < 20000; i++) { /* solicitations for our address, each from somebody else */
        advertisement(w, f, 0, (uint8_t)i);
        f[54] = 135;
        f[78] = 1;
        sg_put_be32(f + 30, i + 1);
        memcpy(f + 62, wire_ip6(false, 1, 0, 0).ip, 16);
        wire_mend_icmp6(f);
        T_EQ_INT(sg_port_input(w->host[0].port, f, 86), A | N);
        if (i % 500 == 0) {
            a.to_send += 10;
            peer_send(&a);
            wire_settle(w, WIRE_MS);
        }
    }
    T_TRUE(wire_run(w, all_arrived, both, 10 * WIRE_S));
    wire_free(w);
}

static struct sg_endpoint station(unsigned number)
{
    struct sg_endpoint e = wire_ip6(false, 2, 0, PORT);

    sg_put_be32(e.ip + 8, number);
    return e;
}

/* A station that asks for our address is known from then on (RFC 4861, section 7.2.3). */
static void hear_of(struct wire *w, unsigned number)
{
    uint8_t f[86];

    advertisement(w, f, 0, (uint8_t)number);
    f[54] = 135;
    f[78] = 1;
    sg_put_be32(f + 30, number);
    memcpy(f + 62, wire_ip6(false, 1, 0, 0).ip, 16);
    wire_mend_icmp6(f);
    T_EQ_INT(sg_port_input(w->host[0].port, f, 86), A | N);
    w->now += WIRE_MS;
}

static bool is_known(struct wire *w, struct log *log, unsigned number)
{
    struct sg_endpoint to = station(number);
    struct peer a = { 0 };
    enum sg_stream_end why;
    bool known;

    log->n = 0;
    T_TRUE(peer_connect(w, &a, 0, &to, &why));
    known = log->n > 0 && log->frame[0][0] != 0x33; /* else the group is asked */
    peer_abort(&a);
    return known;
}

/* Without room the entry that was unused for the longest time is dropped: it costs least. */
static void neighbour__the_oldest_is_forgotten(void)
{
    enum { TABLE = 1024 };
    struct log log;
    struct wire *w = two_hosts(10, false, &log);
    unsigned i;

    for (i = 1; i <= TABLE; i++) {
        hear_of(w, i);
    }
    hear_of(w, TABLE + 1);
    T_TRUE(is_known(w, &log, TABLE + 1));
    T_TRUE(is_known(w, &log, TABLE));
    T_TRUE(is_known(w, &log, 2));
    T_FALSE(is_known(w, &log, 1));
    wire_free(w);
}

static const struct t_case cases[] = {
    { "neighbour messages that must be dropped teach nothing", neighbour__bad_advertisements },
    { "a neighbour in use is probed after 30 s", neighbour__is_probed },
    { "a neighbour that does not answer", neighbour__absent },
    { "the table of neighbours is bounded", neighbour__table_is_bounded },
    { "the oldest neighbour is forgotten", neighbour__the_oldest_is_forgotten },
};

T_MAIN(cases)
