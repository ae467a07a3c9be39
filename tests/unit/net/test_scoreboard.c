/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scoreboard compared with a plain model, and CUBIC with the formula of RFC 9438.
 */
#include <glib.h>
#include <string.h>

#include "tap.h"
#include "recovery.h"

enum { STEPS = 200000, SEGMENTS = 300, OCTETS = 100 };

struct model {
    struct scoreboard b;
    uint32_t first, una, next;   /* sequence numbers, multiples of OCTETS from 'first' on */
    int state[STEPS + SEGMENTS]; /* of each segment ever sent; -1: acknowledged */
    unsigned delivered, expected;
    uint64_t rng;
};

static unsigned prng(struct model *m, unsigned of)
{
    m->rng ^= m->rng << 13;
    m->rng ^= m->rng >> 7;
    m->rng ^= m->rng << 17;
    return (unsigned)(m->rng % of);
}

static void delivered(void *user, const struct sent_segment *s)
{
    ((struct model *)user)->delivered++;
}

static unsigned number(const struct model *m, uint32_t seq)
{
    return (seq - m->first) / OCTETS;
}

static void compare(const struct model *m)
{
    unsigned count[SEGMENT_STATES] = { 0 }, i, n;
    const struct scoreboard *b = &m->b;

    T_EQ_INT(scoreboard_count(b), (m->next - m->una) / OCTETS);
    for (n = number(m, m->una); n < number(m, m->next); n++) {
        const struct sent_segment *s = scoreboard_at(b, b->tail + n - number(m, m->una));

        T_EQ_INT(s->state, m->state[n]);
        count[s->state]++;
    }
    for (i = 0; i < SEGMENT_STATES; i++) {
        T_EQ_INT(b->list[i].count, count[i]);
        T_EQ_INT(b->list[i].octets, count[i] * OCTETS);
    }
    T_EQ_INT(m->delivered, m->expected);
}

/* Each list holds exactly the segments of its state. */
static void compare_lists(const struct model *m)
{
    unsigned state, n;

    for (state = SEGMENT_IN_FLIGHT; state <= SEGMENT_LOST; state++) {
        const struct segment_list *l = &m->b.list[state];
        uint32_t at = l->first;

        for (n = 0; n < l->count; n++) {
            T_EQ_INT(scoreboard_at(&m->b, at)->state, state);
            T_TRUE(n + 1 < l->count || at == l->last);
            at = scoreboard_at(&m->b, at)->next;
        }
    }
}

static void deliver(struct model *m, unsigned n, int state)
{
    m->expected += m->state[n] != SEGMENT_SACKED;
    m->state[n] = state;
}

static void step(struct model *m, uint64_t now)
{
    unsigned have = (m->next - m->una) / OCTETS, from = have ? prng(m, have) : 0, n, i;
    unsigned first = number(m, m->una);
    struct sent_segment *s;

    switch (prng(m, 12)) {
    case 0:
        n = have ? prng(m, MIN(have, 6)) : 0;
        for (i = 0; i < n; i++) {
            deliver(m, first + i, -1);
        }
        m->una += n * OCTETS;
        scoreboard_ack(&m->b, m->una + (n < have ? prng(m, OCTETS) : 0));
        break;
    case 1 ... 3:
        n = have ? prng(m, have - from) : 0;
        for (i = 0; i < n; i++) {
            if (m->state[first + from + i] != SEGMENT_SACKED) {
                deliver(m, first + from + i, SEGMENT_SACKED);
            }
        }
        scoreboard_sack(&m->b, m->una + from * OCTETS, m->una + (from + n) * OCTETS);
        break;
    case 4 ... 6:
        s = scoreboard_first(&m->b, SEGMENT_IN_FLIGHT);
        if (s) {
            m->state[number(m, s->seq)] = SEGMENT_LOST;
            scoreboard_lose(&m->b, s);
        }
        break;
    case 7:
        s = scoreboard_first(&m->b, SEGMENT_LOST);
        if (s) {
            m->state[number(m, s->seq)] = SEGMENT_IN_FLIGHT;
            T_TRUE(scoreboard_sent(&m->b, s->seq, s->end, now, NULL)->again);
        }
        break;
    default:
        if (have < SEGMENTS) {
            m->state[number(m, m->next)] = SEGMENT_IN_FLIGHT;
            T_FALSE(scoreboard_sent(&m->b, m->next, m->next + OCTETS, now, NULL)->again);
            m->next += OCTETS;
        }
        break;
    }
}

static void scoreboard__model(void)
{
    static struct model m;
    unsigned i, n;

    memset(&m, 0, sizeof(m));
    m.rng = 88172645463325252ull;
    m.first = m.una = m.next = 0xfffff000u; /* the numbers wrap around */
    m.b.delivered = delivered;
    m.b.user = &m;
    for (i = 0; i < STEPS; i++) {
        step(&m, i);
        if (i % 5000 == 4999) {
            int from = i % 10000 == 9999 ? SEGMENT_SACKED : SEGMENT_STATES;

            if (from == SEGMENT_SACKED) {
                scoreboard_renege(&m.b);
            } else {
                scoreboard_lose_all(&m.b);
            }
            for (n = number(&m, m.una); n < number(&m, m.next); n++) {
                m.state[n] = m.state[n] == SEGMENT_SACKED && from != SEGMENT_SACKED ? SEGMENT_SACKED
                                                                                    : SEGMENT_LOST;
            }
        } else if (i % 5000 == 2500) {
            scoreboard_restore(&m.b);
            for (n = number(&m, m.una); n < number(&m, m.next); n++) {
                m.state[n] = m.state[n] == SEGMENT_LOST ? SEGMENT_IN_FLIGHT : m.state[n];
            }
        }
        if (i % 50 == 0) {
            compare(&m);
            compare_lists(&m);
        }
    }
    scoreboard_free(&m.b);
}

/*
 * The newest segment may be longer when it is sent again: a window cut it, or a FIN joined it.  An
 * older one cannot, because octets of the next segment would be counted twice.
 */
static void scoreboard__the_newest_grows(void)
{
    struct model m = { 0 };
    const struct sent_segment *s;
    unsigned i;

    m.b.delivered = delivered;
    m.b.user = &m;
    for (i = 0; i < 3; i++) {
        scoreboard_sent(&m.b, i * OCTETS, (i + 1) * OCTETS, i, NULL);
    }
    T_NULL(scoreboard_sent(&m.b, 0, 2 * OCTETS, 3, NULL));
    T_NULL(scoreboard_sent(&m.b, OCTETS, 3 * OCTETS, 3, NULL));
    T_EQ_INT(m.b.list[SEGMENT_IN_FLIGHT].octets, 3 * OCTETS);
    s = scoreboard_sent(&m.b, 2 * OCTETS, 3 * OCTETS + 1, 3, NULL);
    T_NOT_NULL(s);
    T_TRUE(s->again);
    T_EQ_INT(m.b.list[SEGMENT_IN_FLIGHT].octets, 3 * OCTETS + 1);
    scoreboard_free(&m.b);
}

/* The window falls to 0.7 W_max, and is W_max again after K = cubic root of (0.3 W_max / C). */
static void cubic__comes_back(void)
{
    enum { MSS = 1000, SEGS = 1000 };
    struct cubic c = { 0 };
    uint32_t cwnd = SEGS * MSS;
    uint64_t ms, rtt = 100;

    cwnd = cubic_reduce(&c, cwnd, MSS);
    T_EQ_INT(cwnd, 700 * MSS);
    /* K = (300 / 0.4)^(1/3) = 9.086 s */
    for (ms = 1000; ms < 1000 + 9086; ms += rtt) {
        cwnd = cubic_grow(&c, cwnd, cwnd, MSS, ms * 1000000, rtt * 1000000);
    }
    T_TRUE(cwnd > 990 * MSS && cwnd < 1010 * MSS);
    for (; ms < 1000 + 9086 + 5000; ms += rtt) {
        cwnd = cubic_grow(&c, cwnd, cwnd, MSS, ms * 1000000, rtt * 1000000);
    }
    /* 0.4 * 5^3 = 50 segments above it */
    T_TRUE(cwnd > 1040 * MSS && cwnd < 1060 * MSS);
}

/* Section 4.8: after slow start without a loss the window grows from its value, not from zero. */
static void cubic__begins_where_it_is(void)
{
    enum { MSS = 1000 };
    struct cubic c = { 0 };
    uint32_t cwnd = 100 * MSS;
    uint64_t ms, rtt = 500;

    for (ms = 1000; ms <= 1000 + 3000; ms += rtt) {
        cwnd = cubic_grow(&c, cwnd, cwnd, MSS, ms * 1000000, rtt * 1000000);
    }
    /* 0.4 * 3.5^3 = 17 segments, where Reno would add 4 */
    T_TRUE(cwnd > 110 * MSS && cwnd < 120 * MSS);
}

/* Section 4.3: on a short path it grows as Reno does, 9/17 of a segment in each round trip. */
static void cubic__not_slower_than_reno(void)
{
    enum { MSS = 1000 };
    struct cubic c = { 0 };
    uint32_t cwnd = cubic_reduce(&c, 100 * MSS, MSS);
    unsigned i;

    for (i = 0; i < 34; i++) {
        cwnd = cubic_grow(&c, cwnd, cwnd, MSS, 1000000000ull + i * 100000ull, 100000);
    }
    T_TRUE(cwnd >= 87 * MSS && cwnd <= 89 * MSS);
}

/* Section 4.7: a second loss below W_max leaves room for other flows. */
static void cubic__fast_convergence(void)
{
    struct cubic c = { 0 };

    cubic_reduce(&c, 100000, 1000);
    T_EQ_INT(c.w_max, 100000);
    T_EQ_INT(cubic_reduce(&c, 80000, 1000), 56000);
    T_EQ_INT(c.w_max, 68000);
    T_EQ_INT(cubic_reduce(&c, 1000, 1000), 2000);
}

/*
 * RFC 8985, section 6.2, step 4: what is overtaken is given quarters of the least round trip.  With
 * a longer one a loss behind a full queue would be noticed late, with a shorter one any reordering
 * would be a loss.
 */
static void rack__reordering_window(void)
{
    enum { MS = 1000000 };
    struct recovery r = {
        .rack = { .sent = 2 * MS, .end = 200, .rtt = 10 * MS, .reordered = true, .window_mult = 4 },
    };

    rtt_sample(&r, 9 * MS);
    rtt_sample(&r, 80 * MS);
    rtt_sample(&r, 8 * MS);
    rtt_sample(&r, 60 * MS);
    T_EQ_U64(r.min_rtt, 8 * MS);
    T_FALSE(scoreboard_sent(&r.sent, 0, 100, 1 * MS, NULL)->again);
    T_FALSE(scoreboard_sent(&r.sent, 100, 200, 2 * MS, NULL)->again);
    rack_detect(&r, 5 * MS);
    T_EQ_U64(r.reorder_at, (1 + 10 + 8) * MS);
    T_EQ_INT(r.sent.list[SEGMENT_LOST].count, 0);
    rack_detect(&r, 19 * MS);
    T_EQ_INT(r.sent.list[SEGMENT_LOST].count, 1);
    scoreboard_free(&r.sent);
}

static const struct t_case cases[] = {
    { "scoreboard: a model", scoreboard__model },
    { "scoreboard: the newest segment grows, no other", scoreboard__the_newest_grows },
    { "CUBIC: comes back to where it was", cubic__comes_back },
    { "CUBIC: begins where it is", cubic__begins_where_it_is },
    { "CUBIC: not slower than Reno", cubic__not_slower_than_reno },
    { "CUBIC: fast convergence", cubic__fast_convergence },
    { "RACK: the reordering window", rack__reordering_window },
};

T_MAIN(cases)
