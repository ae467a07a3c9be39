/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Octets behind a gap that the user takes at once (hw/net/stream_early.c): they need no memory and
 * no window, and in their turn they count but have no content.
 */
#include <string.h>

#include "tap.h"
#include "raw.h"
#include "base/account.h"

enum { LEN = 8000, WINDOW = 1 << 20 };

#define WITH_SACK OPTIONS("\4\2\3\3\7\1\1\1")
#define WITHOUT_SACK OPTIONS("\3\3\7\1")

/* A connection with its whole window open; one octet has come, octet 1 will be missing. */
static uint32_t open_gap(struct raw *r, const char *options, size_t options_len)
{
    raw_open(r, 9000, 65535, options, options_len);
    r->b.take_early = true;
    raw_say(r, ACK, 0, 1, NO_OPTIONS);
    wire_settle(r->w, 100 * WIRE_MS);
    return r->edge;
}

/* Segments first..last-1 behind a gap of one octet. */
static void say_behind(struct raw *r, size_t first, size_t last)
{
    size_t i;

    for (i = first; i < last; i++) {
        raw_say(r, ACK, 2 + i * LEN, LEN, NO_OPTIONS);
    }
}

/* The window's scale rounds, and the edge is announced when it has moved by a segment at least. */
static void moved(const struct raw *r, uint32_t edge, uint32_t want)
{
    uint32_t by = r->edge - edge, below = 9000, above = 2u << r->scale;

    if (by + below < want || by > want + above) {
        T_EQ_U64(by, want);
    }
}

/* Each acknowledgement announces what was taken before its segment; then all come in their turn. */
static void window__opens_early(void)
{
    uint32_t edge;
    struct raw r;

    edge = open_gap(&r, WITH_SACK);
    say_behind(&r, 0, 20);
    T_EQ_U64(r.b.early, 20 * LEN);
    T_EQ_U64(r.b.received, 1);
    moved(&r, edge, 19 * LEN);
    raw_say(&r, ACK, 1, 1, NO_OPTIONS);
    wire_settle(r.w, 100 * WIRE_MS);
    T_EQ_U64(r.b.received, 2 + 20 * LEN);
    moved(&r, edge, 20 * LEN + 1); /* not twice */
    raw_say(&r, ACK, 2 + 20 * LEN, LEN, NO_OPTIONS);
    wire_settle(r.w, 100 * WIRE_MS);
    moved(&r, edge, 21 * LEN + 1);
    raw_close(&r);
}

/* It stays where it is for a user that takes nothing, a peer without SACK, and a held stream. */
static void window__stays(void)
{
    static const char *const rows[] = { "not taken", "without SACK", "held" };
    uint32_t edge;
    struct raw r;
    unsigned i;

    for (i = 0; i < 3; i++) {
        T_CONTEXT("%s", rows[i]);
        edge = i == 1 ? open_gap(&r, WITHOUT_SACK) : open_gap(&r, WITH_SACK);
        r.b.take_early = i != 0;
        r.b.s->ops->hold(r.b.s, i == 2);
        say_behind(&r, 0, 20);
        moved(&r, edge, 0);
        T_EQ_U64(r.b.early, 20 * LEN);
        raw_say(&r, ACK, 1, 1, NO_OPTIONS);
        T_EQ_U64(r.b.received, 2 + 20 * LEN);
        r.b.s->ops->hold(r.b.s, false);
        raw_say(&r, ACK, 2 + 20 * LEN, 1, NO_OPTIONS);
        wire_settle(r.w, 100 * WIRE_MS);
        moved(&r, edge, 20 * LEN + 2);
        raw_close(&r);
    }
}

/* At most by one window, and a peer may use all of it. */
static void window__is_bounded(void)
{
    uint32_t edge;
    struct raw r;

    edge = open_gap(&r, WITH_SACK);
    say_behind(&r, 0, 200);
    moved(&r, edge, WINDOW);
    T_EQ_U64(r.b.early, 200 * LEN);
    raw_say(&r, ACK, 1, 1, NO_OPTIONS);
    T_EQ_U64(r.b.received, 2 + 200 * LEN);
    wire_settle(r.w, 100 * WIRE_MS);
    moved(&r, edge, 200 * LEN + 1);
    raw_close(&r);
}

/*
 * The peer sends all of it again in other pieces, which lwIP prefers.  The edge never moves back,
 * and when as many octets have come as it was ahead, it is where it would be otherwise.
 */
static void window__after_other_pieces(void)
{
    uint32_t edge, before;
    struct raw r;
    size_t i;

    edge = open_gap(&r, WITH_SACK);
    say_behind(&r, 0, 10);
    for (i = 0; i < 30; i++) {
        before = r.edge;
        raw_say(&r, ACK, 1 + i * 5000, 5000, NO_OPTIONS);
        wire_settle(r.w, 100 * WIRE_MS);
        T_CONTEXT("piece %zu", i);
        T_TRUE((int32_t)(r.edge - before) > -(1 << r.scale));
    }
    T_EQ_U64(r.b.received, 1 + 30 * 5000);
    moved(&r, edge, 30 * 5000);
    raw_close(&r);
}

/* What is not taken takes memory of the account; what is taken takes none, and needs none. */
static void memory(void)
{
    struct sg_account account = { .limit = 1 << 20 };
    uint64_t used;
    struct raw r;

    open_gap(&r, WITH_SACK);
    r.w->host[1].net->account = &account;
    r.b.take_early = false;
    say_behind(&r, 0, 1);
    T_EQ_U64(account.used, LEN);
    used = account.limit = account.used;
    r.b.take_early = true;
    say_behind(&r, 1, 20);
    T_EQ_U64(account.used, used);
    T_EQ_U64(account.refused, 0);
    raw_say(&r, ACK, 1, 1, NO_OPTIONS);
    T_EQ_U64(r.b.received, 2 + 20 * LEN);
    T_EQ_U64(account.used, 0);
    r.w->host[1].net->account = NULL;
    raw_close(&r);
}

/* Random pieces in random order, some of them taken: nothing else is lost or damaged. */
static void random__pieces(void)
{
    enum { ALL = 60000 };
    unsigned seed, i;

    for (seed = 0; seed < 200; seed++) {
        uint32_t edge, least;
        struct raw r;

        T_CONTEXT("seed %u", seed);
        edge = open_gap(&r, WITH_SACK);
        least = edge;
        r.w->rng += seed * 0x9e3779b97f4a7c15ull;
        for (i = 0; i < 60; i++) {
            size_t at = wire_random(r.w) % (ALL - 1), n = 1 + wire_random(r.w) % 4000;

            r.b.take_early = wire_random(r.w) % 3 != 0;
            raw_say(&r, ACK, at, MIN(n, ALL - at), NO_OPTIONS);
            T_TRUE((int32_t)(r.edge - least) > -(1 << r.scale));
            least = r.edge;
        }
        for (i = 0; i < ALL; i += 1000) {
            raw_say(&r, ACK, i, 1000, NO_OPTIONS);
        }
        T_EQ_U64(r.b.received, ALL);
        for (i = 0; i < 20; i++) { /* whatever was ahead has been used up */
            raw_say(&r, ACK, ALL + i * LEN, LEN, NO_OPTIONS);
        }
        wire_settle(r.w, 100 * WIRE_MS);
        moved(&r, edge, ALL - 1 + 20 * LEN);
        raw_close(&r);
    }
}

static const struct t_case cases[] = {
    { "the window opens by what was taken", window__opens_early },
    { "when the window stays", window__stays },
    { "the window opens by one more window at most", window__is_bounded },
    { "the window after other pieces of the same", window__after_other_pieces },
    { "memory", memory },
    { "random pieces in random order", random__pieces },
};

T_MAIN(cases)
