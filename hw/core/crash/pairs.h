/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pairs of crash points: one power failure that takes two machines.
 *
 * The power of one machine fails behind its event s, that of the other behind its event t.  Both
 * can be simultaneous if (s, t) is a *consistent cut*: neither machine has received what the other
 * one sends only behind its own instant.  By the pasts of order.h, which also know what third
 * machines passed on: the past of s has no event of the other machine behind t, and the reverse.
 *
 * An instant of a machine is a *bound* if the machine's next event may take images away, or is a
 * mark; so is its last instant.  An *interval* ends with a bound, and begins behind the one before.
 * Within an interval images and demands only grow (points.h).  If (s, t) and (s', t') are
 * consistent cuts, (max(s, s'), max(t, t')) is one, too.  So the consistent cuts of an interval of
 * one machine and an interval of the other have a greatest one, which has all images and demands of
 * the others.  It is enough to explore this one of each two intervals.
 *
 * For an interval with a bound p behind the bound o, the intervals of the other machine with which
 * it has consistent cuts follow each other: from the one with the least instant that the event
 * o + 1 needs to the one with the greatest instant that needs no event behind p.  Therefore they
 * are counted without looking at each two of them.
 *
 * Pasts may be too great where frames of one content could be several, and are SG_CRASH_BEYOND
 * behind the end of a trace.  Then there are fewer cuts: one that is there is always consistent.
 *
 * Memory: 16 octets for each reception of a machine that adds to its past, 8 for each bound, 24 for
 * each interval.
 */
#ifndef SG_CRASH_PAIRS_H
#define SG_CRASH_PAIRS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- What a machine has learned of another one ---- */

struct sg_crash_step {
    uint64_t event; /* from this event of the machine on */
    uint64_t past;  /* this event of the other one is in its past */
};

/*
 * The next event of the machine, with its past of the other one: past[other] of order.h.  steps has
 * elements struct sg_crash_step, none at first.
 */
void sg_crash_steps_add(GArray *steps, uint64_t event, uint64_t past);
/* The past of the instant behind this event. */
uint64_t sg_crash_steps_past(const GArray *steps, uint64_t behind);
/* The last instant whose past is at most this, not behind `most`. */
uint64_t sg_crash_steps_last(const GArray *steps, uint64_t past, uint64_t most);

/* ---- Pairs ---- */

struct sg_crash_pairs_side {
    const GArray *steps;  /* struct sg_crash_step: of the machine, about the other one */
    const GArray *bounds; /* uint64_t, ascending */
};

struct sg_crash_pairs {
    struct sg_crash_pairs_side side[2];
    GArray *rows;   /* one for each interval of the first machine */
    uint64_t count; /* of pairs */
    uint64_t cuts;  /* all consistent cuts; 2^64 - 1 if there are more */
    uint64_t alone; /* intervals of the first machine without a cut: what it needs is not known */
};

/* The arrays outlive the pairs. */
void sg_crash_pairs_init(struct sg_crash_pairs *x, const struct sg_crash_pairs_side side[2]);
void sg_crash_pairs_fini(struct sg_crash_pairs *x);
/*
 * The pair of this number, from 0 on: cut[i] is an instant of machine i.  False: there is none, as
 * pasts were too great to agree; possible only if frames of one content were sent several times.
 */
bool sg_crash_pairs_get(const struct sg_crash_pairs *x, uint64_t number, uint64_t cut[2]);

/* ---- A choice of them ---- */

/*
 * Which of `count` things is the `index`-th of `chosen` ones: one of each of `chosen` equal parts,
 * at random by the seed.  All of them if there are not more.  index < min(count, chosen).
 */
uint64_t sg_crash_pairs_draw(uint64_t index, uint64_t count, uint64_t chosen, uint64_t seed);

#endif
