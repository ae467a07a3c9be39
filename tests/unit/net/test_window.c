/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Windows and segment sizes against a peer that is made by hand: it says what it likes in windows
 * and options, sends beyond our window, and takes what comes in order.  Host 1 is the adapter; of
 * host 0 only the MAC address is there, and ARP.
 */
#include <string.h>

#include "tap.h"
#include "peer.h"
#include "base/bytes.h"

enum {
    PORT = 4791, OTHER = 700,
    FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16,
    UNSCALED_WINDOW = 65535,
    LAWLESS = 600, /* connections */
};

struct raw {
    struct wire *w;
    struct peer b;          /* the adapter's user */
    struct sg_listener *l;
    uint32_t first, next;   /* of ours: the first octet's number, the next one's */
    uint32_t base, ack;     /* of theirs: likewise; base 0: none yet */
    uint16_t window;        /* as the header has it */
    bool lossy;             /* takes nothing */
    bool damaged, fin;
    unsigned frames;        /* with data */
    size_t first_frame;     /* octets of the first of them */
    unsigned bare;          /* frames without */
    unsigned scale;         /* of their window */
    uint32_t edge;          /* of it, to the right */
    size_t largest;
};

static uint8_t pattern(uint64_t at)
{
    return (uint8_t)(at * 31 + (at >> 8) * 7 + (at >> 16));
}

static size_t taken(const struct raw *r)
{
    return (size_t)(r->ack - r->base) - r->fin;
}

/* RFC 7323, section 2.2. */
static unsigned scale_of(const uint8_t *tcp)
{
    unsigned at = 20, end = (tcp[12] >> 4) * 4u;

    while (at + 2 < end && tcp[at] != 3) {
        at += tcp[at] == 1 ? 1 : MAX(tcp[at + 1], 2);
    }
    return at + 2 < end ? tcp[at + 2] : 0;
}

static void tap(struct wire *w, int from, const uint8_t *f, size_t len)
{
    struct raw *r = w->tap_data;
    const uint8_t *tcp = f + 34, *data;
    size_t n, i;
    uint32_t seq, known;

    if (from != 1 || len < 54 || sg_get_be16(f + 12) != 0x0800) {
        return;
    }
    seq = sg_get_be32(tcp + 4);
    data = tcp + (tcp[12] >> 4) * 4;
    n = (size_t)(f + 14 + sg_get_be16(f + 16) - data);
    if (tcp[13] & SYN) {
        r->base = r->ack = seq + 1;
        r->scale = scale_of(tcp);
        return;
    }
    r->edge = sg_get_be32(tcp + 8) + ((uint32_t)sg_get_be16(tcp + 14) << r->scale);
    r->bare += n == 0;
    r->first_frame = r->frames || n == 0 ? r->first_frame : n;
    r->frames += n != 0;
    r->largest = MAX(r->largest, n);
    known = r->ack - seq; /* octets; a window probe was the first one of them */
    if (r->lossy || known > n || r->fin) {
        return;
    }
    for (i = known; i < n; i++) {
        r->damaged |= data[i] != pattern(taken(r) + i - known);
    }
    r->ack = seq + (uint32_t)n;
    if (tcp[13] & FIN) {
        r->fin = true;
        r->ack++;
    }
}

static uint8_t segment[10000];

/* A segment of 'n' octets of the pattern whose first one is number 'at' of ours. */
static size_t build(struct raw *r, uint8_t flags, size_t at, size_t n, const char *options,
                    size_t options_len)
{
    static uint8_t payload[9000];
    struct wire_segment s = {
        .dst_mac = r->w->host[1].mac, .src_mac = r->w->host[0].mac,
        .src = wire_endpoint(&r->w->host[0], OTHER), .dst = wire_endpoint(&r->w->host[1], PORT),
        .flags = flags, .seq = r->first + (uint32_t)at, .ack = r->ack, .window = r->window,
        .payload = payload, .payload_len = n,
        .options = (const uint8_t *)options, .options_len = options_len,
    };
    size_t i;

    for (i = 0; i < n; i++) {
        payload[i] = pattern(at + i);
    }
    return wire_build(segment, &s);
}

static void say(struct raw *r, uint8_t flags, size_t at, size_t n, const char *options,
                size_t options_len)
{
    wire_inject(r->w, 1, segment, build(r, flags, at, n, options, options_len));
    wire_settle(r->w, WIRE_MS);
}

/* How many frames without data answer it at once, before the port's next turn? */
static unsigned answers_at_once(struct raw *r, uint8_t flags, size_t at, size_t n)
{
    unsigned before = r->bare;

    sg_port_input(r->w->host[1].port, segment, build(r, flags, at, n, NULL, 0));
    return r->bare - before;
}

#define OPTIONS(text) (text), sizeof(text) - 1
#define NO_OPTIONS NULL, 0

static void acknowledge(struct raw *r, unsigned window)
{
    r->window = (uint16_t)window;
    say(r, ACK, r->next - r->first, 0, NO_OPTIONS);
}

/* An octet of ours makes a smaller window believed as well. */
static void shrink(struct raw *r, unsigned window)
{
    say(r, ACK | PSH, r->next - r->first, 1, NO_OPTIONS);
    r->next++;
    acknowledge(r, window);
}

/* 'window': in the SYN and in the acknowledgement that follows. */
static void raw_open(struct raw *r, unsigned mtu, unsigned window, const char *options,
                     size_t options_len)
{
    struct sg_endpoint any = { .family = 4, .port = PORT };
    enum sg_stream_end why;

    memset(r, 0, sizeof(*r));
    r->w = wire_new(1100, mtu, NULL);
    r->w->tap = tap;
    r->w->tap_data = r;
    r->w->host[0].deaf_to_tcp = true;
    r->b.wire = r->w;
    r->l = r->w->host[1].net->ops->listen(r->w->host[1].net, &any, 4, peer_accept, &r->b, &why);
    r->first = 0x70000000;
    r->window = (uint16_t)window;
    say(r, SYN, 0, 0, options, options_len);
    wire_settle(r->w, 10 * WIRE_MS);
    T_TRUE(r->base != 0);
    r->first++;
    r->next = r->first;
    acknowledge(r, window);
    T_EQ_INT(r->b.connects, 1);
}

static void raw_close(struct raw *r)
{
    T_FALSE(r->damaged || r->b.damaged);
    T_EQ_INT(r->b.closes, 0);
    r->w->host[1].net->ops->unlisten(r->w->host[1].net, r->l);
    wire_free(r->w);
}

static void send(struct raw *r, size_t n)
{
    r->b.unit = n;
    r->b.to_send += n;
    peer_send(&r->b);
    wire_settle(r->w, 10 * WIRE_MS);
}

/* Takes all there is with that window, until it has it. */
static void take(struct raw *r, unsigned window)
{
    unsigned i;

    for (i = 0; i < 100 && taken(r) < r->b.to_send; i++) {
        acknowledge(r, window);
        wire_settle(r->w, WIRE_S / 2);
    }
    acknowledge(r, window);
    T_EQ_U64(taken(r), r->b.to_send);
}

/* RFC 9293, section 3.7.1: the option means something in a SYN only. */
static void mss__behind_the_syn(void)
{
    struct raw r;

    raw_open(&r, 1500, 10, OPTIONS("\2\4\5\264"));
    send(&r, 20);
    T_EQ_U64(taken(&r), 0);
    say(&r, ACK, 0, 0, OPTIONS("\2\4\0\5"));
    wire_settle(r.w, 3 * WIRE_S);
    T_EQ_U64(taken(&r), 10); /* what the window allows */
    take(&r, 1000);
    raw_close(&r);

    raw_open(&r, 1500, 8000, OPTIONS("\2\4\5\264"));
    acknowledge(&r, 8000);
    send(&r, 100);
    acknowledge(&r, 1000);
    send(&r, 1448);
    T_EQ_U64(taken(&r), 100);
    say(&r, ACK | PSH, 0, 0, OPTIONS("\1\1\1\2\4\1\54\0")); /* 300, misaligned */
    wire_settle(r.w, 3 * WIRE_S);
    T_EQ_U64(taken(&r), 1100);
    take(&r, 8000);
    send(&r, 1448);
    T_EQ_U64(r.largest, 1448);
    raw_close(&r);
}

/* A window of 64 KiB exactly, on behalf of a segment that waited at a small one. */
static void window__a_multiple_of_64_kib(void)
{
    struct raw r;

    raw_open(&r, 1500, 4000, OPTIONS("\2\4\0\144\1\3\3\2"));
    say(&r, ACK, 0, 0, OPTIONS("\2\4\5\264"));
    shrink(&r, 300 / 4);
    send(&r, 1448);
    acknowledge(&r, 65536 / 4);
    wire_settle(r.w, 3 * WIRE_S);
    take(&r, 65536 / 4);
    T_TRUE(r.largest <= 256); /* the SYN's, and the least that is heeded */
    raw_close(&r);

    /* The congestion window of the SYN's segment size is less than one of the least size. */
    raw_open(&r, 1500, 4000, OPTIONS("\2\4\0\24\1\3\3\2"));
    shrink(&r, 60 / 4);
    send(&r, 256);
    T_EQ_U64(taken(&r), 0);
    acknowledge(&r, 65536 / 4);
    wire_settle(r.w, 3 * WIRE_S);
    T_EQ_U64(taken(&r), 256);
    raw_close(&r);
}

/* As above, and no window in the way: nothing in flight, so no acknowledgement would end it. */
static void mss__less_than_any(void)
{
    struct raw r;

    raw_open(&r, 1500, 8000, OPTIONS("\2\4\0\1"));
    send(&r, 1000);
    take(&r, 8000);
    raw_close(&r);
}

static void mtu__shrinks_under_a_waiting_segment(void)
{
    struct raw r;

    raw_open(&r, 9000, 20000 / 4, OPTIONS("\2\4\43\0\1\3\3\2"));
    acknowledge(&r, 20000 / 4);
    send(&r, 100);
    acknowledge(&r, 5000 / 4);
    send(&r, 8900);
    T_EQ_U64(taken(&r), 100);
    r.w->host[1].net->ops->set_mtu(r.w->host[1].net, 1500);
    T_EQ_U64(r.b.s->ops->emss(r.b.s), 1460);
    wire_settle(r.w, 3 * WIRE_S);
    T_EQ_U64(taken(&r), 5100);
    take(&r, 20000 / 4);
    raw_close(&r);
}

/* And under one that was lost: it is sent again as it is. */
static void mtu__shrinks_under_a_lost_segment(void)
{
    struct raw r;

    raw_open(&r, 9000, 20000 / 4, OPTIONS("\2\4\43\0\1\3\3\2"));
    acknowledge(&r, 20000 / 4);
    r.lossy = true;
    send(&r, 8900);
    T_EQ_INT(r.frames, 1);
    r.w->host[1].net->ops->set_mtu(r.w->host[1].net, 1500);
    T_EQ_U64(r.b.s->ops->emss(r.b.s), 1460);
    r.lossy = false;
    wire_settle(r.w, 3 * WIRE_S);
    T_EQ_U64(taken(&r), 8900);
    take(&r, 20000 / 4);
    raw_close(&r);
}

/* The end of the stream comes behind its last octet, however a small window cuts it. */
static void fin__behind_a_cut_segment(void)
{
    struct raw r;

    raw_open(&r, 1500, 8000, OPTIONS("\2\4\5\264"));
    send(&r, 100);
    acknowledge(&r, 300);
    send(&r, 1000);
    peer_shutdown(&r.b);
    wire_settle(r.w, 3 * WIRE_S);
    T_EQ_U64(taken(&r), 400);
    T_FALSE(r.fin);
    take(&r, 8000);
    T_TRUE(r.fin);
    raw_close(&r);
}

/* The window goes before the fast retransmission, and lets only the first segment in afterwards. */
static void fast_retransmission__forbidden(void)
{
    struct raw r;
    unsigned i;

    raw_open(&r, 1500, 8000, OPTIONS("\2\4\5\264"));
    r.lossy = true;
    send(&r, 1448);
    send(&r, 1448);
    peer_shutdown(&r.b);
    wire_settle(r.w, 10 * WIRE_MS);
    T_EQ_INT(r.frames, 2);
    shrink(&r, 0);
    for (i = 0; i < 3; i++) {
        acknowledge(&r, 0);
    }
    r.lossy = false;
    wire_settle(r.w, 5 * WIRE_S);
    T_TRUE(taken(&r) <= 1); /* a probe */
    acknowledge(&r, 2000);
    wire_settle(r.w, 20 * WIRE_S);
    T_EQ_U64(taken(&r), 1448);
    take(&r, 8000);
    T_TRUE(r.fin);
    raw_close(&r);
}

/* What lies beyond our window is not kept, though it comes before its turn. */
static void beyond__out_of_order(void)
{
    const size_t edge = UNSCALED_WINDOW, step = 1400;
    struct raw r;
    size_t at;

    raw_open(&r, 1500, 8000, OPTIONS("\2\4\5\264"));
    say(&r, ACK, edge - 1, 100, NO_OPTIONS);
    for (at = step; at < edge - 1; at += step) {
        say(&r, ACK, at, MIN(step, edge - 1 - at), NO_OPTIONS);
    }
    say(&r, ACK | FIN, edge - 1, 1, NO_OPTIONS); /* the FIN is beyond it */
    say(&r, ACK, 0, step, NO_OPTIONS);
    T_EQ_U64(r.b.received, edge - 1);
    say(&r, ACK | FIN, edge - 1, 1000, NO_OPTIONS);
    T_EQ_U64(r.b.received, edge + 999);
    T_EQ_INT(r.b.peer_closes, 1);
    raw_close(&r);
}

/* Likewise in the segment that completes the handshake. */
static void beyond__with_the_handshake(void)
{
    struct raw r;
    size_t at;

    raw_open(&r, 1500, 8000, NO_OPTIONS);
    peer_abort(&r.b);
    wire_settle(r.w, 10 * WIRE_MS);
    r.base = 0;
    r.first = 0x71000000;
    r.ack = 0;
    say(&r, SYN, 0, 0, NO_OPTIONS);
    r.first++;
    T_TRUE(r.base != 0);
    say(&r, ACK, UNSCALED_WINDOW - 1, 1000, NO_OPTIONS);
    r.next = r.first;
    acknowledge(&r, 8000);
    T_EQ_INT(r.b.connects, 2);
    for (at = 1000; at < UNSCALED_WINDOW; at += 1000) {
        say(&r, ACK, at, MIN(1000, UNSCALED_WINDOW - 1 - at), NO_OPTIONS);
    }
    say(&r, ACK, 0, 1000, NO_OPTIONS);
    T_EQ_U64(r.b.received, UNSCALED_WINDOW - 1);
    raw_close(&r);
}

/* Octets behind an end of the stream that came before its turn. */
static void beyond__the_end(void)
{
    size_t at, left = 1000;
    struct raw r;

    raw_open(&r, 1500, 8000, NO_OPTIONS);
    r.b.s->ops->hold(r.b.s, true); /* nothing opens the window again */
    for (at = 0; at < UNSCALED_WINDOW - left; at += 1000) {
        say(&r, ACK, at, MIN(1000, UNSCALED_WINDOW - left - at), NO_OPTIONS);
    }
    at = UNSCALED_WINDOW - left;
    T_EQ_U64(r.b.received, at);
    say(&r, ACK | FIN, at + 10, 0, NO_OPTIONS);
    say(&r, ACK, at, left, NO_OPTIONS); /* fills the window to its edge */
    T_EQ_U64(r.b.received, at);
    say(&r, ACK, at, 10, NO_OPTIONS);
    T_EQ_U64(r.b.received, at + 10);
    T_EQ_INT(r.b.peer_closes, 1);
    raw_close(&r);
}

/* Options that end in the middle of one, and sizes of every kind: nothing, or a reset. */
static void options__from_hell(void)
{
    struct raw r;
    char options[40];
    unsigned i, k;

    raw_open(&r, 1500, 600, OPTIONS("\2\4\5\264"));
    for (i = 0; i < 3000; i++) {
        size_t len = 4 + wire_random(r.w) % 10 * 4;

        for (k = 0; k < len; k++) {
            static const char likely[] = { 0, 1, 1, 2, 4, 3, 3, 8, 10, 5, 2, 4 };

            options[k] = wire_random(r.w) % 4 ? likely[wire_random(r.w) % sizeof(likely)]
                                              : (char)wire_random(r.w);
        }
        if (i % 8 == 0) {
            send(&r, 1 + wire_random(r.w) % 1448);
        }
        r.window = wire_random(r.w) % 3 ? (uint16_t)(wire_random(r.w) % 2000) : 0;
        say(&r, ACK, 0, 0, options, len);
        wire_settle(r.w, wire_random(r.w) % 3 * 100 * WIRE_MS);
    }
    take(&r, 8000);
    raw_close(&r);
}

static uint32_t below(struct raw *r, uint32_t n)
{
    return (uint32_t)(wire_random(r->w) % n);
}

/* Any segment around what is awaited: any octets, acknowledgement, window, flags, options. */
static void any_segment(struct raw *r, uint32_t reach)
{
    static uint8_t frame[10000], payload[9000];
    char options[40];
    uint8_t flags[] = { ACK, ACK, ACK, ACK, ACK, ACK | PSH, ACK | FIN, SYN, ACK | SYN, FIN, 0 };
    struct wire_segment s = {
        .dst_mac = r->w->host[1].mac, .src_mac = r->w->host[0].mac,
        .src = wire_endpoint(&r->w->host[0], OTHER), .dst = wire_endpoint(&r->w->host[1], PORT),
        .flags = flags[below(r, below(r, 4) ? 6 : sizeof(flags))],
        .window = (uint16_t)(below(r, 4) ? below(r, 3000) : below(r, 3) ? 0 : 0xffff),
        .payload = payload, .payload_len = below(r, 3) ? below(r, 1461) : 0,
        .options = (const uint8_t *)options, .options_len = below(r, 3) ? 0 : below(r, 11) * 4,
    };
    uint32_t taken_up = r->first + (uint32_t)r->b.received;
    size_t i;

    for (i = 0; i < s.options_len; i++) {
        options[i] = (char)(below(r, 4) ? below(r, 11) : below(r, 256));
    }
    switch (below(r, 4)) {
    case 0:
        s.seq = taken_up + below(r, reach + 6000) - 3000;
        break;
    case 1:
        s.seq = taken_up + reach - below(r, 1500);
        break;
    default:
        s.seq = taken_up;
        break;
    }
    s.ack = below(r, 3) ? r->ack : r->ack - below(r, 4000) + below(r, 10);
    wire_inject(r->w, 1, frame, wire_build(frame, &s));
    wire_settle(r->w, WIRE_MS);
}

/* One connection of a peer that knows no rules; it may end as it likes. */
static void lawless(struct raw *r, unsigned seed)
{
    const bool scaled = seed & 1;
    unsigned i;

    if (scaled) {
        raw_open(r, 9000, 1 + seed * 37 % 9000, OPTIONS("\2\4\43\0\1\3\3\2"));
    } else {
        raw_open(r, 9000, 1 + seed * 37 % 9000, OPTIONS("\2\4\5\264"));
    }
    r->w->rng += seed * 0x9e3779b97f4a7c15ull;
    for (i = 0; i < 400 && r->b.s; i++) {
        any_segment(r, scaled ? 1 << 20 : UNSCALED_WINDOW);
        r->lossy = below(r, 4) == 0;
        switch (r->b.s ? below(r, 40) : 40) {
        case 0 ... 5:
            send(r, 1 + below(r, 9000));
            break;
        case 6:
            r->b.s->ops->hold(r->b.s, below(r, 2));
            break;
        case 7:
            r->w->host[1].net->ops->set_mtu(r->w->host[1].net, below(r, 2) ? 1500 : 9000);
            break;
        case 8 ... 15:
            wire_settle(r->w, below(r, 3000) * WIRE_MS);
            break;
        case 16:
            if (i > 200) {
                peer_shutdown(&r->b);
            }
            break;
        default:
            break;
        }
    }
    wire_settle(r->w, 10 * WIRE_S);
    r->w->host[1].net->ops->unlisten(r->w->host[1].net, r->l);
    wire_free(r->w);
}

static void segments__from_hell(void)
{
    struct raw r;
    unsigned seed;

    for (seed = 0; seed < LAWLESS; seed++) {
        T_CONTEXT("seed %u", seed);
        lawless(&r, seed);
    }
}

/* What of 60 segments behind a hole of one octet arrives when the hole is filled. */
static uint64_t kept_behind_a_hole(struct raw *r)
{
    enum { SEGMENTS = 60, LEN = 8000 };
    size_t at = r->next - r->first, i;
    uint64_t before = r->b.received;

    for (i = 0; i < SEGMENTS; i++) {
        say(r, ACK, at + 1 + i * LEN, LEN, NO_OPTIONS);
    }
    T_EQ_U64(r->b.received, before);
    say(r, ACK, at, 1, NO_OPTIONS);
    r->next += (uint32_t)(r->b.received - before);
    return r->b.received - before;
}

/*
 * A peer that has sent nothing in order may be a stranger who only fills memory; it gets little.  A
 * receiver may drop what is out of order (RFC 9293, section 3.10.7.4; RFC 2018, section 8).
 */
static void stranger__holds_little_out_of_order(void)
{
    struct raw r;

    raw_open(&r, 9000, 65535, OPTIONS("\3\3\7\1"));
    T_EQ_U64(kept_behind_a_hole(&r), 1 + 65536 / 8000 * 8000);
    T_EQ_U64(kept_behind_a_hole(&r), 1 + 60 * 8000);
    T_FALSE(r.b.damaged);
    raw_close(&r);
}

/*
 * A held stream gives its peer no new room, so what waits for a stalled user is bounded by the
 * window that was open (RFC 9293, section 3.8.6.2.2: the right edge stays).
 */
static void held__the_window_stays(void)
{
    struct raw r;
    uint32_t edge;
    size_t i;

    raw_open(&r, 9000, 65535, OPTIONS("\3\3\7\1"));
    say(&r, ACK, 0, 1, NO_OPTIONS);
    wire_settle(r.w, 100 * WIRE_MS); /* it is acknowledged */
    r.b.s->ops->hold(r.b.s, true);
    edge = r.edge;
    for (i = 0; i < 20; i++) {
        say(&r, ACK, 1 + i * 8000, 8000, NO_OPTIONS);
        wire_settle(r.w, 100 * WIRE_MS);
        T_CONTEXT("segment %zu", i);
        T_EQ_U64(r.b.received, 1 + (i + 1) * 8000);
        /* The scale rounds; it may even retract the edge a little (RFC 7323, section 2.4). */
        T_TRUE((int32_t)(r.edge - edge) < 1 << r.scale);
        T_TRUE((int32_t)(edge - r.edge) < 1 << r.scale);
    }
    r.b.s->ops->hold(r.b.s, false);
    say(&r, ACK, 1 + i * 8000, 1, NO_OPTIONS);
    wire_settle(r.w, 100 * WIRE_MS);
    T_TRUE(r.edge - edge + (1u << r.scale) >= 20 * 8000);
    raw_close(&r);
}

/*
 * A segment that fills a part of a hole is acknowledged at once (RFC 5681, section 4.2): the sender
 * recovers by these.  What is in order may wait for the turn's end.
 */
static void hole__its_filling_is_acknowledged(void)
{
    struct raw r;

    raw_open(&r, 1500, 65535, NO_OPTIONS);
    T_EQ_INT(answers_at_once(&r, ACK, 0, 1000), 0);
    T_EQ_INT(answers_at_once(&r, ACK, 1000, 1000), 0);
    wire_settle(r.w, WIRE_S);
    T_EQ_INT(answers_at_once(&r, ACK, 4000, 1000), 1);
    T_EQ_INT(answers_at_once(&r, ACK, 2000, 1000), 1);
    T_EQ_U64(r.b.received, 3000);
    T_EQ_INT(answers_at_once(&r, ACK, 3000, 1000), 1); /* all of it */
    T_EQ_U64(r.b.received, 5000);
    T_EQ_INT(answers_at_once(&r, ACK, 5000, 1000), 0);
    raw_close(&r);
}

static void give(struct raw *r, size_t n)
{
    uint8_t buf[2000];
    struct iovec iov = { buf, n };
    size_t i;

    for (i = 0; i < n; i++) {
        buf[i] = pattern(r->b.sent + i);
    }
    T_TRUE(r->b.s->ops->send(r->b.s, &iov, 1, true));
    r->b.sent += n;
}

/* RFC 5044, section 5.1: a segment begins where a send began; two that just do not fit stay two. */
static void pieces__join_up_to_the_emss(void)
{
    static const struct { int over; unsigned frames; } rows[] = { { 0, 1 }, { 1, 2 } };
    unsigned i;

    for (i = 0; i < 2; i++) {
        struct raw r;
        size_t emss;

        T_CONTEXT("%d octets more than the EMSS", rows[i].over);
        raw_open(&r, 1500, 65535, OPTIONS("\2\4\5\xb4"));
        emss = r.b.s->ops->emss(r.b.s);
        give(&r, emss - 10);
        give(&r, (size_t)(10 + rows[i].over));
        r.b.s->ops->push(r.b.s);
        wire_settle(r.w, WIRE_MS);
        T_EQ_INT(r.frames, rows[i].frames);
        T_EQ_U64(r.first_frame, rows[i].over ? emss - 10 : emss);
        T_EQ_U64(taken(&r), emss + (size_t)rows[i].over);
        T_FALSE(r.damaged);
        raw_close(&r);
    }
}

/*
 * Who guesses at a connection gets few answers (RFC 5961, section 7), whatever the guess is; they
 * would be a way to load both ends.
 */
static void challenge__answers_are_limited(void)
{
    enum { GUESSES = 100, LIMIT = 10 };
    static const struct { const char *what; uint8_t flags; size_t at; int32_t ack; } rows[] = {
        { "a SYN in the window (section 4.2)", SYN, 5000, 0 },
        { "a SYN outside it", SYN, 0x40000000, 0 },
        { "a RST in the window (section 3.2)", RST, 5000, 0 },
        { "an acknowledgement of the future (section 5.2)", ACK, 0, 100000 },
        { "one outside the window", ACK, 0x40000000, 0 },
    };
    unsigned i, k, n;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct raw r;

        T_CONTEXT("%s", rows[i].what);
        raw_open(&r, 1500, 65535, NO_OPTIONS);
        wire_settle(r.w, 2 * WIRE_S);
        r.ack += (uint32_t)rows[i].ack;
        for (n = k = 0; k < GUESSES; k++) {
            n += answers_at_once(&r, rows[i].flags, rows[i].at, 0);
        }
        T_EQ_INT(n, LIMIT);
        wire_settle(r.w, 1100 * WIRE_MS);
        T_EQ_INT(answers_at_once(&r, rows[i].flags, rows[i].at, 0), 1);
        T_EQ_INT(r.b.closes, 0);
        for (k = 0; k < GUESSES; k++) {
            answers_at_once(&r, rows[i].flags, rows[i].at, 0);
        }
        r.ack -= (uint32_t)rows[i].ack;
        T_EQ_INT(answers_at_once(&r, RST, 0, 0), 0); /* the right one is heard nevertheless */
        T_EQ_INT(r.b.closes, 1);
        wire_free(r.w);
    }
}

/*
 * Data whose acknowledgement is older than any window that the peer ever had is not of this
 * connection (RFC 5961, section 5.2); an attacker need not guess it otherwise.
 */
static void acknowledgement__of_long_ago(void)
{
    struct raw r;

    raw_open(&r, 1500, 65535, NO_OPTIONS);
    r.ack -= 65536;
    say(&r, ACK, 0, 100, NO_OPTIONS);
    T_EQ_U64(r.b.received, 0);
    r.ack += 1;
    say(&r, ACK, 0, 100, NO_OPTIONS);
    T_EQ_U64(r.b.received, 100);
    raw_close(&r);
}

static const struct t_case cases[] = {
    { "an MSS option behind the SYN is nothing", mss__behind_the_syn },
    { "a window of 64 KiB for a segment that waited", window__a_multiple_of_64_kib },
    { "an MSS below the least", mss__less_than_any },
    { "a smaller MTU, while a larger segment waits", mtu__shrinks_under_a_waiting_segment },
    { "a smaller MTU, while a larger segment is lost", mtu__shrinks_under_a_lost_segment },
    { "FIN behind a segment that a window cuts", fin__behind_a_cut_segment },
    { "a fast retransmission that the window forbids", fast_retransmission__forbidden },
    { "beyond our window, out of order", beyond__out_of_order },
    { "beyond our window, with the handshake", beyond__with_the_handshake },
    { "beyond the end of the stream", beyond__the_end },
    { "options of every kind at windows of every kind", options__from_hell },
    { "a peer that knows no rules", segments__from_hell },
    { "a held stream: the window stays", held__the_window_stays },
    { "a hole: its filling is acknowledged at once", hole__its_filling_is_acknowledged },
    { "pieces: join up to the EMSS and not beyond", pieces__join_up_to_the_emss },
    { "challenges: answers are limited", challenge__answers_are_limited },
    { "an acknowledgement of long ago", acknowledgement__of_long_ago },
    { "a stranger: holds little out of order", stranger__holds_little_out_of_order },
};

T_MAIN(cases)
