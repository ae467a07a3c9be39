/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of acknowledgements, counted in examined segments: a peer chooses the blocks and must
 * not be able to turn each of them into a walk over all that is outstanding (as in SACK panic,
 * CVE-2019-11478).  The scoreboard is compiled into this program, with a counter in its accesses.
 */
#include <glib.h>
#include <string.h>

#include "tap.h"
#include "scoreboard.h"

static uint64_t looks;

static struct sent_segment *counted_at(const struct scoreboard *b, uint32_t index)
{
    looks++;
    return scoreboard_at(b, index);
}

#define scoreboard_at counted_at
#include "scoreboard.c"
#undef scoreboard_at

enum {
    SEGMENTS = 30000,
    OCTETS = 100, /* as scoreboard.h has it */
    BLOCKS = 4,   /* of one acknowledgement */
    ACKS = 2 * SEGMENTS,
    /*
     * Two binary searches of 15 accesses, and a few accesses to marked segments.  A walk over these
     * shortens the next one, so a long walk needs as many new marks since the last.
     */
    LOOKS_PER_BLOCK = 50,
    LOOKS_AT_ONCE = 8 * SEGMENTS, /* one block that marks everything */
};

struct attack {
    struct scoreboard b;
    uint32_t first;
    uint64_t rng;
};

static uint32_t prng(struct attack *a, uint32_t of)
{
    a->rng ^= a->rng << 13;
    a->rng ^= a->rng >> 7;
    a->rng ^= a->rng << 17;
    return (uint32_t)(a->rng % of);
}

static void delivered(void *user, const struct sent_segment *s)
{
}

/* A block from segment 'from' up to 'to', which is not in it. */
static void block(struct attack *a, uint32_t from, uint32_t to)
{
    scoreboard_sack(&a->b, a->first + from * OCTETS, a->first + to * OCTETS);
}

static void everything(struct attack *a, unsigned ack, unsigned n)
{
    block(a, n, SEGMENTS);
}

static void upwards(struct attack *a, unsigned ack, unsigned n)
{
    uint32_t at = 1 + ack % (SEGMENTS - 1);

    block(a, n ? 1 : at, at + 1);
}

/* One segment at a time; only the last block covers them all. */
static void singly(struct attack *a, unsigned ack, unsigned n)
{
    uint32_t at = 1 + (ack * BLOCKS + n) % (SEGMENTS - 1);

    block(a, ack == ACKS - 1 ? 1 : at, ack == ACKS - 1 ? SEGMENTS : at + 1);
}

static void downwards(struct attack *a, unsigned ack, unsigned n)
{
    uint32_t at = SEGMENTS - 1 - ack % (SEGMENTS - 1);

    block(a, at, n ? SEGMENTS : at + 1);
}

/* Every other segment, so that none join; then the holes are closed from the end. */
static void holes(struct attack *a, unsigned ack, unsigned n)
{
    uint32_t at = ack % (SEGMENTS / 2) * 2 + 1;

    if (ack < SEGMENTS / 2) {
        block(a, at, at + 1);
    } else {
        block(a, SEGMENTS - at, n ? SEGMENTS : SEGMENTS - at + 2);
    }
}

static void halves(struct attack *a, unsigned ack, unsigned n)
{
    uint32_t width = (uint32_t)SEGMENTS >> (ack % 15);

    block(a, width / 2, width);
}

static void at_random(struct attack *a, unsigned ack, unsigned n)
{
    uint32_t at = 1 + prng(a, SEGMENTS - 1);

    block(a, at, n < 2 ? at + 1 : at + 1 + prng(a, SEGMENTS - at));
}

static void blocks__cost_little(void)
{
    static const struct {
        const char *what;
        void (*say)(struct attack *a, unsigned ack, unsigned n);
    } rows[] = {
        { "all of it, again and again", everything },
        { "one segment more each, upwards, and all so far", upwards },
        { "four segments each, then all of it", singly },
        { "one segment more each, downwards, and all so far", downwards },
        { "every other segment, then what is between", holes },
        { "halves of halves", halves },
        { "anything", at_random },
    };
    unsigned row, ack, n, i;

    for (row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct attack a = { .first = 0xfffff000u, .rng = 88172645463325252ull };
        uint64_t all = 0, most = 0;

        T_CONTEXT("%s", rows[row].what);
        a.b.delivered = delivered;
        for (i = 0; i < SEGMENTS; i++) {
            scoreboard_sent(&a.b, a.first + i * OCTETS, a.first + (i + 1) * OCTETS, i, NULL);
        }
        for (ack = 0; ack < ACKS; ack++) {
            looks = 0;
            for (n = 0; n < BLOCKS; n++) {
                rows[row].say(&a, ack, n);
            }
            all += looks;
            most = MAX(most, looks);
            T_TRUE(all < (ack + 1ull) * BLOCKS * LOOKS_PER_BLOCK + LOOKS_AT_ONCE);
            T_TRUE(looks < LOOKS_AT_ONCE);
        }
        T_NOTE("%s: %.1f looks per block, at most %u per acknowledgement", rows[row].what,
               (double)all / ACKS / BLOCKS, (unsigned)most);
        scoreboard_free(&a.b);
    }
}

static const struct t_case cases[] = {
    { "hostile blocks: looks at segments per acknowledgement", blocks__cost_little },
};

T_MAIN(cases)
