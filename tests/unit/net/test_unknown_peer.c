/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peers that follow no rules, and unknown ones that guess at a connection: no assertion fails, and
 * they cost little memory and few answers.
 */
#include <string.h>

#include "tap.h"
#include "raw.h"

enum { LAWLESS = 600 }; /* connections */

/* Options cut off in the middle, and lengths of every kind: they do not end the connection. */
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
            raw_send(&r, 1 + wire_random(r.w) % 1448);
        }
        r.window = wire_random(r.w) % 3 ? (uint16_t)(wire_random(r.w) % 2000) : 0;
        raw_say(&r, ACK, 0, 0, options, len);
        wire_settle(r.w, wire_random(r.w) % 3 * 100 * WIRE_MS);
    }
    raw_take(&r, 8000);
    raw_close(&r);
}

static uint32_t below(struct raw *r, uint32_t n)
{
    return (uint32_t)(wire_random(r->w) % n);
}

/* A segment near the expected one: any octets, acknowledgement, window, flags, options. */
static void any_segment(struct raw *r, uint32_t reach)
{
    static uint8_t frame[10000], payload[9000];
    char options[40];
    uint8_t flags[] = { ACK, ACK, ACK, ACK, ACK, ACK | PSH, ACK | FIN, SYN, ACK | SYN, FIN, 0 };
    struct wire_segment s = {
        .dst_mac = r->w->host[1].mac,
        .src_mac = r->w->host[0].mac,
        .src = wire_endpoint(&r->w->host[0], RAW_OTHER),
        .dst = wire_endpoint(&r->w->host[1], RAW_PORT),
        .flags = flags[below(r, below(r, 4) ? 6 : sizeof(flags))],
        .window = (uint16_t)(below(r, 4)   ? below(r, 3000)
                             : below(r, 3) ? 0
                                           : 0xffff),
        .payload = payload,
        .payload_len = below(r, 3) ? below(r, 1461) : 0,
        .options = (const uint8_t *)options,
        .options_len = below(r, 3) ? 0 : below(r, 11) * 4,
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

/* One connection of a peer that follows no rules; it may end in any way. */
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
            raw_send(r, 1 + below(r, 9000));
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

/* How many of 60 segments behind a hole of one octet arrive when the hole is filled. */
static uint64_t kept_behind_a_hole(struct raw *r)
{
    enum { SEGMENTS = 60, LEN = 8000 };
    size_t at = r->next - r->first, i;
    uint64_t before = r->b.received;

    for (i = 0; i < SEGMENTS; i++) {
        raw_say(r, ACK, at + 1 + i * LEN, LEN, NO_OPTIONS);
    }
    T_EQ_U64(r->b.received, before);
    raw_say(r, ACK, at, 1, NO_OPTIONS);
    r->next += (uint32_t)(r->b.received - before);
    return r->b.received - before;
}

/*
 * A peer that has sent nothing in order may be an unknown one that only fills memory, so little of
 * its data is kept.  A receiver may drop data out of order (RFC 9293, section 3.10.7.4; RFC 2018,
 * section 8).
 */
static void unknown_peer__holds_little_out_of_order(void)
{
    struct raw r;

    raw_open(&r, 9000, 65535, OPTIONS("\3\3\7\1"));
    T_EQ_U64(kept_behind_a_hole(&r), 1 + 65536 / 8000 * 8000);
    T_EQ_U64(kept_behind_a_hole(&r), 1 + 60 * 8000);
    T_FALSE(r.b.damaged);
    raw_close(&r);
}

/*
 * An unknown peer that guesses at a connection gets few answers (RFC 5961, section 7), whatever the
 * guess is, because answers could be used to load both ends.
 */
static void challenge__answers_are_limited(void)
{
    enum { GUESSES = 100, LIMIT = 10 };
    static const struct {
        const char *what;
        uint8_t flags;
        size_t at;
        int32_t ack;
    } rows[] = {
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
            n += raw_answers_at_once(&r, rows[i].flags, rows[i].at, 0);
        }
        T_EQ_INT(n, LIMIT);
        wire_settle(r.w, 1100 * WIRE_MS);
        T_EQ_INT(raw_answers_at_once(&r, rows[i].flags, rows[i].at, 0), 1);
        T_EQ_INT(r.b.closes, 0);
        for (k = 0; k < GUESSES; k++) {
            raw_answers_at_once(&r, rows[i].flags, rows[i].at, 0);
        }
        r.ack -= (uint32_t)rows[i].ack;
        T_EQ_INT(raw_answers_at_once(&r, RST, 0, 0), 0); /* a right one still counts */
        T_EQ_INT(r.b.closes, 1);
        wire_free(r.w);
    }
}

/*
 * Data with an acknowledgement older than any window of the peer do not belong to this connection
 * (RFC 5961, section 5.2); otherwise an attacker would not have to guess it.
 */
static void acknowledgement__of_long_ago(void)
{
    struct raw r;

    raw_open(&r, 1500, 65535, NO_OPTIONS);
    r.ack -= 65536;
    raw_say(&r, ACK, 0, 100, NO_OPTIONS);
    T_EQ_U64(r.b.received, 0);
    r.ack += 1;
    raw_say(&r, ACK, 0, 100, NO_OPTIONS);
    T_EQ_U64(r.b.received, 100);
    raw_close(&r);
}

static const struct t_case cases[] = {
    { "options of every kind at windows of every kind", options__from_hell },
    { "a peer that knows no rules", segments__from_hell },
    { "challenges: answers are limited", challenge__answers_are_limited },
    { "an acknowledgement of long ago", acknowledgement__of_long_ago },
    { "an unknown peer: holds little out of order", unknown_peer__holds_little_out_of_order },
};

T_MAIN(cases)
