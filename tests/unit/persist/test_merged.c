/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the limits of an exact domain merge, and what it says of it afterwards: compared with a
 * domain that has the same inputs and merges nothing.
 */
#include "base/bytes.h"
#include "base/prng.h"
#include "persist/certain.h"
#include "rig.h"

enum { LINES = 3, EVENTS = 80, SMALL_LINE = 8, SMALL_BUFFER = 3 };

static void up(struct dom_rig *r, unsigned domain, bool small)
{
    rig_init(r);
    sg_persist_limits_exact(&r->limits);
    r->limits.check = true;
    if (small) {
        r->limits.line_stores = SMALL_LINE;
        r->limits.buffer_stores = r->limits.nt_lines = SMALL_BUFFER;
    }
    r->config.domain = domain;
    r->config.store_buffer = true;
    r->config.posted_drain = SG_PERSIST_NEVER;
    r->config.placement_order = SG_PERSIST_RANDOM_ORDER;
    r->config.placement_delay_ns = SG_NEVER / 8;
    rig_up(r, 65536);
}

/* One event of the same seed in each domain. */
static void act(struct dom_rig *r, uint64_t *rng, unsigned number)
{
    uint64_t what = sg_prng(rng) % 16, off = sg_prng(rng) % (LINES * 8) * 8;
    unsigned unit = sg_prng(rng) % 2;

    if (what < 8) {
        rig_store(r, unit, off, 1 + number % 5);
    } else if (what < 10) {
        rig_store_nt(r, unit, off, 1 + number % 5);
    } else if (what < 13) {
        rig_write_u64(r, 1 + unit, off, 1 + number % 5);
    } else if (what < 14) {
        rig_cpu_flush(r, unit, off, SG_PERSIST_CLWB);
    } else if (what < 15) {
        rig_flush(r, 1 + unit, off, 64, SG_FLUSH_PERSISTENT);
    } else if (number % 3 == 0) {
        rig_sfence(r, unit);
    }
}

struct merge_tally {
    unsigned merged, lost, doubt;
    unsigned wrong;       /* of those in doubt: no cut loses them */
    unsigned false_alarm; /* the same of the others */
};

/* Each octet that the small domain calls lost is lost by some cut. */
static void compare(const struct dom_rig *small, const struct dom_rig *large,
                    const uint64_t seq[2][EVENTS + 1], unsigned event, bool alone,
                    struct merge_tally *sum)
{
    for (unsigned off = 0; off < LINES * SG_PERSIST_LINE; off++) {
        uint64_t addr = RIG_BASE + off;
        struct sg_persist_uncertain why, of_large;
        bool certain;

        if (sg_persist_uncertain(small->p, addr, 1, alone ? seq[0][event - 1] : 0, seq[0][event],
                                 &why) != addr) {
            continue;
        }
        sum->lost++;
        certain = sg_persist_uncertain(large->p, addr, 1, alone ? seq[1][event - 1] : 0,
                                       seq[1][event], &of_large) != addr;
        if (why.doubt == SG_PERSIST_DOUBT_MERGED) {
            sum->doubt++;
            sum->wrong += certain;
        } else {
            sum->false_alarm += certain;
        }
    }
}

static void one_trace(uint64_t seed, struct merge_tally *sum)
{
    uint64_t rng[2] = { seed, seed }, seq[2][EVENTS + 1];
    struct dom_rig r[2];

    for (unsigned i = 0; i < 2; i++) {
        up(&r[i], seed % SG_PERSIST_DOMAINS, i == 0);
        seq[i][0] = sg_persist_seq(r[i].p);
    }
    for (unsigned n = 1; n <= EVENTS; n++) {
        for (unsigned i = 0; i < 2; i++) {
            act(&r[i], &rng[i], n);
            seq[i][n] = sg_persist_seq(r[i].p);
        }
        for (unsigned past = 0; past < 20 && past < n; past++) {
            compare(&r[0], &r[1], seq, n - past, true, sum);
            compare(&r[0], &r[1], seq, n - past, false, sum);
        }
    }
    sum->merged += sg_persist_merged(r[0].p) != 0;
    T_EQ_U64(sg_persist_merged(r[1].p), 0);
    rig_down(&r[0]);
    rig_down(&r[1]);
}

static void no_false_alarm(void)
{
    unsigned seeds = t_seeds(80, 12);
    struct merge_tally sum = { .merged = 0 };

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        T_CONTEXT("seed %" PRIu64, seed);
        one_trace(seed, &sum);
    }
    T_NOTE("%u of %u traces merged; %u octets lost; %u of these in doubt, and %u of these certain; "
           "%u false alarms",
           sum.merged, seeds, sum.lost, sum.doubt, sum.wrong, sum.false_alarm);
    T_EQ_U64(sum.false_alarm, 0);
    T_TRUE(sum.merged > seeds / 2);
    T_TRUE(sum.wrong && sum.lost > 2 * sum.doubt);
}

/* So many stores of one vCPU, without a fence, each to another line than the one before. */
static uint64_t merged_by(bool nt, unsigned stores)
{
    struct sg_persist_stats stats;
    struct dom_rig r;

    up(&r, SG_PERSIST_ADR, false);
    r.limits.check = false;
    for (unsigned i = 0; i < stores; i++) {
        (nt ? rig_store_nt : rig_store)(&r, 0, i % 512 * SG_PERSIST_LINE, i);
    }
    sg_persist_stats(r.p, &stats);
    T_EQ_U64(stats.merged, sg_persist_merged(r.p));
    rig_down(&r);
    return stats.merged;
}

/* A buffer that is full gives its oldest store away, and that is counted, each time. */
static void full_buffers(void)
{
    for (unsigned nt = 0; nt < 2; nt++) {
        T_EQ_U64(merged_by(nt, 4096), 0);
        T_EQ_U64(merged_by(nt, 4097), 1);
        T_EQ_U64(merged_by(nt, 5000), 5000 - 4096);
    }
}

/* Which of the stores to one line were merged: a question about some of them has no answer. */
static void what_is_known(void)
{
    enum { STORES = 20 };
    struct sg_persist_uncertain why;
    uint64_t seq[STORES + 1];
    struct dom_rig r;

    up(&r, SG_PERSIST_ADR, true);
    r.config.store_buffer = false;
    rig_configure(&r);
    seq[0] = sg_persist_seq(r.p);
    for (unsigned i = 1; i <= STORES; i++) {
        rig_store(&r, 0, 0, i);
        seq[i] = sg_persist_seq(r.p);
    }
    T_TRUE(sg_persist_merged(r.p));
    /* The last one was not merged; all together; one of those that were; the line beside it. */
    T_EQ_U64(sg_persist_uncertain(r.p, RIG_BASE, 8, seq[19], seq[20], &why), RIG_BASE);
    T_EQ_INT(why.doubt, SG_PERSIST_DOUBT_PENDING);
    T_EQ_U64(why.lost, seq[20]);
    T_EQ_U64(sg_persist_uncertain(r.p, RIG_BASE, 8, 0, seq[20], &why), RIG_BASE);
    T_EQ_INT(why.doubt, SG_PERSIST_DOUBT_PENDING);
    T_EQ_U64(sg_persist_uncertain(r.p, RIG_BASE, 8, seq[1], seq[2], &why), RIG_BASE);
    T_EQ_INT(why.doubt, SG_PERSIST_DOUBT_MERGED);
    T_EQ_U64(sg_persist_uncertain(r.p, RIG_BASE, 8, 0, seq[2], &why), RIG_BASE);
    T_EQ_INT(why.doubt, SG_PERSIST_DOUBT_MERGED);
    rig_store(&r, 0, SG_PERSIST_LINE, 1);
    T_EQ_U64(sg_persist_uncertain(r.p, RIG_BASE + SG_PERSIST_LINE, 8, seq[20], sg_persist_seq(r.p),
                                  &why),
             RIG_BASE + SG_PERSIST_LINE);
    T_EQ_INT(why.doubt, SG_PERSIST_DOUBT_PENDING);
    /* What comes behind a flush of all that has its own numbers again. */
    rig_cpu_flush(&r, 0, 0, SG_PERSIST_CLWB);
    rig_sfence(&r, 0);
    T_EQ_U64(sg_persist_uncertain(r.p, RIG_BASE, 8, seq[1], seq[2], &why), RIG_BASE + 8);
    rig_down(&r);
}

static const struct t_case cases[] = {
    { "what is called lost after a merge is lost without one", no_false_alarm },
    { "a full buffer is counted each time", full_buffers },
    { "of merged stores it is known what is not known", what_is_known },
};

T_MAIN(cases)
