/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plans: ways of answering the questions of a cut, by strategy.
 *
 *   only         what was on its way has arrived, and of all lines only one keeps anything: each
 *                line in turn, in each of its states; linear in stores
 *   all-but      the same, but all lines keep everything except one
 *   random       each answer at random, from a seed; the extremes are preferred
 *   exhaustive   all answers to all questions
 *   reads        all answers about the lines that somebody reads; of all else everything survives
 *   plans        those that somebody gives (deviation.h)
 *
 * With the first two also goes: of each queue (S1, a store buffer) everything but its last so many
 * entries has left it.
 *
 * The caller makes one cut for each plan, of equal domains, with the policy that belongs to it.
 * Strategies come in this order.  The exhaustive one finds images that others found before.
 *
 * Memory: 24 octets for each question of a cut, and for each store that it loses.
 */
#ifndef SG_CRASH_PLAN_H
#define SG_CRASH_PLAN_H

#include "crash/deviation.h"
#include "crash/reads.h"

enum sg_crash_strategy {
    SG_CRASH_ONLY,
    SG_CRASH_ALL_BUT,
    SG_CRASH_RANDOM,
    SG_CRASH_EXHAUSTIVE,
    SG_CRASH_READS,
    SG_CRASH_GIVEN, /* not by name: the owner has the plans */
    SG_CRASH_STRATEGIES,
};

struct sg_crash_strategies {
    bool use[SG_CRASH_STRATEGIES];
    bool bugs;             /* an image of each bug, whose plans the owner makes */
    uint64_t random, seed; /* so many random plans at each crash point */
    uint64_t max_images;   /* of a run; for the owner of the plans */
    uint64_t cluster;      /* crash points of a cluster, likewise; 0: all */
    const struct sg_crash_reads *reads;
    uint64_t reads_per_point; /* so many plans of "reads" at most */
};

const char *sg_crash_strategy_name(enum sg_crash_strategy s); /* "all-but" */
bool sg_crash_strategies_any(const struct sg_crash_strategies *s);

struct sg_crash_planner {
    const struct sg_crash_strategies *strategies;
    uint64_t point;             /* number of the crash point: part of random seeds */
    const struct sg_persist *p; /* the state before the cut; to be set for "reads" */
    bool cut_short;             /* "reads" had more plans */
    uint8_t now;                /* enum sg_crash_strategy */
    bool begun;                 /* the strategy has had a plan */
    uint64_t number;            /* of the plan in its strategy, from 0 */
    GArray *asked; /* struct sg_crash_asked: questions of the last cut, as far as answered */
    GArray *lost;  /* struct sg_persist_lost: what that cut loses */
    guint at;      /* question of the cut under way */
    /* only, all-but: the question and the answer that differ from the first plan's. */
    GArray *first; /* struct sg_crash_asked: of the first plan */
    guint question;
    uint32_t answer;
    const struct sg_crash_given *given; /* the present plan */
    uint32_t next;                      /* of its answers */
    struct sg_persist_policy policy;
};

void sg_crash_planner_init(struct sg_crash_planner *x, const struct sg_crash_strategies *s,
                           uint64_t point);
void sg_crash_planner_fini(struct sg_crash_planner *x);
/* Instead of all strategies: cuts by this plan, as often as it is called. */
const struct sg_persist_policy *sg_crash_planner_give(struct sg_crash_planner *x,
                                                      const struct sg_crash_given *given);
/* After that cut: NULL, or what is wrong with the plan; the caller frees it. */
char *sg_crash_planner_wrong(const struct sg_crash_planner *x);
/*
 * The policy of the next cut, or NULL: there are no more plans.  To be called again only after the
 * cut.
 */
const struct sg_persist_policy *sg_crash_planner_next(struct sg_crash_planner *x);
/* What the last cut answered otherwise than the one in which everything survives. */
void sg_crash_plan_deviations(struct sg_crash_planner *x, struct sg_crash_deviations *out);
/* Appends the plan of the last cut as text: "only 5=2", "random 71", "exhaustive 0 1 0 3". */
void sg_crash_plan_text(const struct sg_crash_planner *x, GString *out);

#endif
