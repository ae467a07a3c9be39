/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loss recovery with a hand-made peer: the test chooses its acknowledgements, selective or not, and
 * checks what the adapter retransmits, and when.  Host 1 is the adapter.
 */
#include <string.h>

#include "tap.h"
#include "peer.h"
#include "base/bytes.h"

enum {
    PORT = 4791,
    OTHER = 700,
    FIN = 1,
    SYN = 2,
    ACK = 16,
    SEGMENT = 1448,
    SENT_MAX = 4096,
    WINDOW = 65535,
};

struct block {
    unsigned from, to; /* segments, 'to' excluded */
};

struct recovery_rig {
    struct wire *w;
    struct peer b;
    uint32_t base;  /* number of the adapter's first octet */
    uint32_t stamp; /* its newest timestamp, */
    uint32_t echo;  /* and the one that is echoed, if 'frozen' */
    bool frozen;
    unsigned fins;
    struct {
        unsigned at; /* which segment */
        uint64_t when;
    } sent[SENT_MAX];
    unsigned n;
};

static void tap(struct wire *w, int from, const uint8_t *f, size_t len)
{
    struct recovery_rig *r = w->tap_data;
    const uint8_t *tcp = f + 34;
    size_t head, n;

    if (from != 1 || len < 54 || sg_get_be16(f + 12) != 0x0800) {
        return;
    }
    head = (size_t)(tcp[12] >> 4) * 4;
    n = sg_get_be16(f + 16) - 20 - head;
    if (tcp[13] & SYN) {
        r->base = sg_get_be32(tcp + 4) + 1;
    }
    if (head >= 32) { /* alone and aligned, or behind the options of a SYN */
        r->stamp = tcp[13] & SYN ? r->stamp : sg_get_be32(tcp + 24);
    }
    r->fins += (tcp[13] & FIN) != 0;
    if (n) {
        g_assert(r->n < SENT_MAX);
        r->sent[r->n].at = (sg_get_be32(tcp + 4) - r->base) / SEGMENT;
        r->sent[r->n++].when = w->now;
    }
}

static void say(struct recovery_rig *r, uint8_t flags, uint32_t seq, uint32_t ack,
                const uint8_t *options, size_t options_len)
{
    uint8_t frame[200];
    struct wire_segment s = {
        .dst_mac = r->w->host[1].mac,
        .src_mac = r->w->host[0].mac,
        .src = wire_endpoint(&r->w->host[0], OTHER),
        .dst = wire_endpoint(&r->w->host[1], PORT),
        .flags = flags,
        .seq = seq,
        .ack = ack,
        .window = WINDOW,
        .options = options,
        .options_len = options_len,
    };

    wire_inject(r->w, 1, frame, wire_build(frame, &s));
    wire_settle(r->w, WIRE_MS);
}

/* 'raw': octets behind the first one, instead of segments. */
static void acknowledge_octets(struct recovery_rig *r, uint32_t octets, const uint32_t (*raw)[2],
                               unsigned n)
{
    uint8_t o[40] = { 1, 1, 8, 10, 0, 0, 0, 1 };
    unsigned i;

    sg_put_be32(o + 8, r->frozen ? r->echo : r->stamp);
    if (n) {
        o[12] = o[13] = 1;
        o[14] = 5;
        o[15] = (uint8_t)(2 + 8 * n);
    }
    for (i = 0; i < n; i++) {
        sg_put_be32(o + 16 + 8 * i, r->base + raw[i][0]);
        sg_put_be32(o + 20 + 8 * i, r->base + raw[i][1]);
    }
    say(r, ACK, 0x70000001, r->base + octets, o, n ? 16 + 8 * n : 12);
}

static void acknowledge(struct recovery_rig *r, unsigned segments, const struct block *b,
                        unsigned n)
{
    uint32_t raw[3][2];
    unsigned i;

    for (i = 0; i < n; i++) {
        raw[i][0] = b[i].from * SEGMENT;
        raw[i][1] = b[i].to * SEGMENT;
    }
    acknowledge_octets(r, segments * SEGMENT, raw, n);
}

#define SACK(...)                          \
    (const struct block[]){ __VA_ARGS__ }, \
        sizeof((struct block[]){ __VA_ARGS__ }) / sizeof(struct block)

static void start(struct recovery_rig *r)
{
    static const uint8_t options[] = { 2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0 };
    struct sg_endpoint any = { .family = 4, .port = PORT };
    enum sg_stream_end why;

    memset(r, 0, sizeof(*r));
    r->w = wire_new(1200, 1500, NULL);
    r->w->tap = tap;
    r->w->tap_data = r;
    r->w->host[0].drops_tcp = true;
    r->b.wire = r->w;
    r->w->host[1].net->ops->listen(r->w->host[1].net, &any, 4, peer_accept, &r->b, &why);
    say(r, SYN, 0x70000000, 0, options, sizeof(options));
    r->frozen = true; /* nothing to echo yet */
    acknowledge(r, 0, NULL, 0);
    r->frozen = false;
    T_EQ_INT(r->b.connects, 1);
    r->b.unit = SEGMENT;
}

static void send(struct recovery_rig *r, unsigned segments)
{
    r->b.to_send += (uint64_t)segments * SEGMENT;
    peer_send(&r->b);
    wire_settle(r->w, WIRE_MS / 2);
}

static void stop(struct recovery_rig *r)
{
    peer_abort(&r->b);
    wire_settle(r->w, WIRE_MS);
    wire_free(r->w);
}

/* How often that segment was sent. */
static unsigned times(const struct recovery_rig *r, unsigned segment)
{
    unsigned i, n = 0;

    for (i = 0; i < r->n; i++) {
        n += r->sent[i].at == segment;
    }
    return n;
}

static void only_again(const struct recovery_rig *r, unsigned segments, unsigned from, unsigned to)
{
    unsigned i;

    for (i = 0; i < segments; i++) {
        T_CONTEXT("segment %u", i);
        T_EQ_INT(times(r, i), i >= from && i < to ? 2 : 1);
    }
}

/* RFC 2018: segments that the peer has are not sent again, after a single acknowledgement. */
static void sack__one_hole(void)
{
    struct recovery_rig r;

    start(&r);
    send(&r, 10);
    acknowledge(&r, 0, SACK({ 1, 10 }));
    only_again(&r, 10, 0, 1);
    acknowledge(&r, 10, NULL, 0);
    wire_settle(r.w, WIRE_S);
    only_again(&r, 10, 0, 1);
    stop(&r);
}

/* A single duplicate is no loss: it may be reordering (RFC 8985, section 6.2). */
static void sack__one_duplicate_is_none(void)
{
    struct recovery_rig r;

    start(&r);
    send(&r, 4);
    acknowledge_octets(&r, 0, (const uint32_t[][2]){ { 3 * SEGMENT, 4 * SEGMENT - 1 } }, 1);
    T_EQ_INT(r.n, 4); /* the block covers no whole segment */
    acknowledge(&r, 4, NULL, 0);
    wire_settle(r.w, WIRE_S);
    T_EQ_INT(r.n, 4);
    stop(&r);
}

/* A partial acknowledgement does not end recovery; all holes are filled without a timeout. */
static void sack__many_holes(void)
{
    struct recovery_rig r;
    unsigned i;

    start(&r);
    send(&r, 10);
    acknowledge(&r, 0, SACK({ 9, 10 }, { 5, 8 }, { 1, 4 }));
    acknowledge(&r, 4, SACK({ 9, 10 }, { 5, 8 }));
    acknowledge(&r, 8, SACK({ 9, 10 }));
    wire_settle(r.w, 5 * WIRE_MS);
    for (i = 0; i < 10; i++) {
        T_CONTEXT("segment %u", i);
        T_EQ_INT(times(&r, i), i % 4 == 0 ? 2 : 1);
    }
    stop(&r);
}

/* RACK: a lost retransmission is detected by segments that were sent after it. */
static void sack__lost_retransmission(void)
{
    struct recovery_rig r;

    start(&r);
    send(&r, 6);
    acknowledge(&r, 0, SACK({ 1, 6 }));
    T_EQ_INT(times(&r, 0), 2);
    send(&r, 2);
    wire_settle(r.w, 3 * WIRE_MS);
    acknowledge(&r, 0, SACK({ 1, 8 }));
    wire_settle(r.w, 5 * WIRE_MS);
    T_EQ_INT(times(&r, 0), 3);
    T_EQ_INT(r.n, 8 + 2);
    stop(&r);
}

/* RFC 8985, section 7: the last segment is sent again; losses that this shows are repaired. */
static void tail__probe(void)
{
    struct recovery_rig r;

    start(&r);
    send(&r, 4);
    wire_settle(r.w, 20 * WIRE_MS);
    only_again(&r, 4, 3, 4);
    acknowledge(&r, 0, SACK({ 3, 4 }));
    wire_settle(r.w, 10 * WIRE_MS);
    T_EQ_INT(times(&r, 0), 2);
    acknowledge(&r, 1, SACK({ 3, 4 }));
    acknowledge(&r, 2, SACK({ 3, 4 }));
    acknowledge(&r, 4, NULL, 0);
    wire_settle(r.w, WIRE_S);
    only_again(&r, 4, 0, 4);
    stop(&r);
}

/* The last segment and the end of the stream: within the timeout, not a second. */
static void tail__end_of_stream(void)
{
    struct recovery_rig r;

    start(&r);
    send(&r, 1);
    wire_settle(r.w, 250 * WIRE_MS);
    T_TRUE(times(&r, 0) >= 2);
    acknowledge(&r, 1, NULL, 0);
    peer_shutdown(&r.b);
    wire_settle(r.w, 10 * WIRE_MS);
    T_EQ_INT(r.fins, 1);
    wire_settle(r.w, 300 * WIRE_MS);
    T_TRUE(r.fins >= 2);
    stop(&r);
}

/* How many segments leave at once, with plenty to send and everything acknowledged. */
static unsigned burst(struct recovery_rig *r, unsigned *segments)
{
    unsigned before = r->n;

    send(r, 40);
    *segments += 40;
    wire_settle(r->w, WIRE_MS);
    return r->n - before;
}

/* The acknowledgement's timestamp shows that the original segments arrived (RFC 3522). */
static void spurious__by_timestamp(bool sack_too)
{
    unsigned segments = 10, before, after;
    struct recovery_rig r;

    start(&r);
    send(&r, 10);
    wire_settle(r.w, 2 * WIRE_MS);
    r.frozen = true; /* the first ten have the same time */
    r.echo = r.stamp;
    if (sack_too) {
        acknowledge(&r, 0, SACK({ 1, 10 }));
    } else {
        wire_settle(r.w, 400 * WIRE_MS);
    }
    T_TRUE(times(&r, 0) >= 2);
    acknowledge(&r, 10, NULL, 0);
    r.frozen = false;
    before = 10;
    after = burst(&r, &segments);
    T_TRUE(after >= before);
    stop(&r);
}

static void spurious__reordering(void)
{
    spurious__by_timestamp(true);
}

static void spurious__timeout(void)
{
    spurious__by_timestamp(false);
}

/* Without timestamps the window stays reduced. */
static void loss__reduces_the_window(void)
{
    unsigned segments = 10;
    struct recovery_rig r;

    start(&r);
    send(&r, 10);
    wire_settle(r.w, 2 * WIRE_MS);
    acknowledge(&r, 0, SACK({ 1, 10 }));
    wire_settle(r.w, 2 * WIRE_MS);
    acknowledge(&r, 10, NULL, 0);
    T_TRUE(burst(&r, &segments) <= 8);
    stop(&r);
}

/* A timeout retransmits what the peer does not have, and nothing else. */
static void timeout__not_what_is_sacked(void)
{
    struct recovery_rig r;
    unsigned i;

    start(&r);
    send(&r, 10);
    acknowledge(&r, 0, SACK({ 5, 9 }));
    wire_settle(r.w, 20 * WIRE_S);
    T_TRUE(times(&r, 0) >= 4);
    for (i = 5; i < 9; i++) {
        T_CONTEXT("segment %u", i);
        T_EQ_INT(times(&r, i), 1);
    }
    stop(&r);
}

/* RFC 6298, section 5.3: a late arrival must not cause retransmission of later segments. */
static void timeout__begins_anew(void)
{
    struct recovery_rig r;

    start(&r);
    send(&r, 4);
    wire_settle(r.w, 150 * WIRE_MS);
    T_EQ_INT(times(&r, 1), 1);
    acknowledge(&r, 1, NULL, 0);
    wire_settle(r.w, 120 * WIRE_MS);
    T_EQ_INT(times(&r, 1), 1);
    wire_settle(r.w, 200 * WIRE_MS);
    T_TRUE(times(&r, 1) > 1);
    stop(&r);
}

/* RFC 2018, section 8: the peer may drop what it SACKed. */
static void timeout__peer_reneges(void)
{
    struct recovery_rig r;
    unsigned i;

    start(&r);
    send(&r, 10);
    acknowledge(&r, 0, SACK({ 5, 10 }));
    wire_settle(r.w, 5 * WIRE_MS);
    acknowledge(&r, 5, NULL, 0);
    wire_settle(r.w, 400 * WIRE_MS);
    T_TRUE(times(&r, 5) >= 2);
    for (i = 6; i <= 10; i++) {
        acknowledge(&r, i, NULL, 0);
    }
    for (i = 5; i < 10; i++) {
        T_CONTEXT("segment %u", i);
        T_TRUE(times(&r, i) >= 2);
    }
    stop(&r);
}

/* Impossible blocks cause no retransmission. */
static void hostile__blocks(void)
{
    static const uint32_t rows[][3][2] = {
        { { SEGMENT, 0 }, { 0, 0 }, { 5, 5 } },
        { { 10 * SEGMENT, 11 * SEGMENT }, { SEGMENT, 0x80000000u }, { 0x7fffffffu, 0xffffffffu } },
        { { 0xfffff000u, 0xfffffff0u }, { 0xf0000000u, 9 * SEGMENT }, { 1, 2 } },
        { { SEGMENT + 1, 2 * SEGMENT }, { 3 * SEGMENT, 4 * SEGMENT - 1 }, { 7, 8 } },
    };
    struct recovery_rig r;
    size_t i;

    start(&r);
    send(&r, 10);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        acknowledge_octets(&r, 0, rows[i], 3);
    }
    only_again(&r, 10, 10, 10);
    acknowledge(&r, 10, NULL, 0);
    stop(&r);
}

/* Very many blocks of any size: the stream continues, and sends all that it may send. */
static void hostile__many_blocks(void)
{
    uint64_t now;
    struct recovery_rig r;
    unsigned i, j;

    start(&r);
    send(&r, 10);
    for (i = 0; i < 20000; i++) {
        uint32_t raw[3][2];

        for (j = 0; j < 3; j++) {
            raw[j][0] = (uint32_t)(wire_random(r.w) % (12 * SEGMENT));
            raw[j][1] = raw[j][0] + (uint32_t)(wire_random(r.w) % 64);
        }
        acknowledge_octets(&r, 0, raw, 3);
        r.n = MIN(r.n, 10); /* timeouts continue, and do not matter here */
    }
    T_EQ_INT(r.b.closes, 0);
    acknowledge(&r, 10, NULL, 0);
    now = r.w->now;
    r.n = 0;
    send(&r, 1);
    T_EQ_INT(times(&r, 10), 1);
    T_TRUE(r.w->now - now <= WIRE_MS);
    stop(&r);
}

static const struct t_case cases[] = {
    { "SACK: one hole", sack__one_hole },
    { "SACK: part of a segment is none", sack__one_duplicate_is_none },
    { "SACK: many holes", sack__many_holes },
    { "SACK: a retransmission that is lost", sack__lost_retransmission },
    { "tail loss: a probe", tail__probe },
    { "tail loss: the end of the stream", tail__end_of_stream },
    { "reordering: the window comes back", spurious__reordering },
    { "a timeout too early: the window comes back", spurious__timeout },
    { "a loss: the window is smaller", loss__reduces_the_window },
    { "a timeout: not what the peer has", timeout__not_what_is_sacked },
    { "a timeout: from the last acknowledgement on", timeout__begins_anew },
    { "a timeout: a peer that reneges", timeout__peer_reneges },
    { "hostile blocks", hostile__blocks },
    { "hostile blocks, very many", hostile__many_blocks },
};

T_MAIN(cases)
