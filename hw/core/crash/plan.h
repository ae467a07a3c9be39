/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plans: ways of answering the questions of a cut, by strategy.
 *
 *   only         what was on its way has arrived, and of all lines only one keeps anything: each
 *                line in turn, in each of its states; linear in stores
 *   all-but      the same, but all lines keep everything except one
 *   random       each answer at random, from a seed; the extremes are preferred
 *   exhaustive   all answers to all questions
 *
 * With the first two also goes: of each queue (S1, a store buffer) everything but its last so many
 * entries has left it.
 *
 * The caller makes one cut for each plan, of equal domains, with the policy that belongs to it.
 * Strategies come in this order.  The exhaustive one finds images that others found before.
 *
 * Memory: 16 octets for each question of a cut.
 */
#ifndef SG_CRASH_PLAN_H
#define SG_CRASH_PLAN_H

#include "persist/persist.h"

enum sg_crash_strategy {
    SG_CRASH_ONLY,
    SG_CRASH_ALL_BUT,
    SG_CRASH_RANDOM,
    SG_CRASH_EXHAUSTIVE,
    SG_CRASH_STRATEGIES,
};

struct sg_crash_strategies {
    bool use[SG_CRASH_STRATEGIES];
    uint64_t random, seed; /* so many random plans at each crash point */
    uint64_t max_images;   /* of a run; for the owner of the plans */
};

const char *sg_crash_strategy_name(enum sg_crash_strategy s); /* "all-but" */
bool sg_crash_strategies_any(const struct sg_crash_strategies *s);

struct sg_crash_planner {
    const struct sg_crash_strategies *strategies;
    uint64_t point;  /* number of the crash point: part of random seeds */
    uint8_t now;     /* enum sg_crash_strategy */
    bool begun;      /* the strategy has had a plan */
    uint64_t number; /* of the plan in its strategy, from 0 */
    GArray *asked;   /* struct sg_crash_asked: questions of the last cut, as far as answered */
    guint at;        /* question of the cut under way */
    /* only, all-but: the question and the answer that differ from the first plan's. */
    GArray *first; /* struct sg_crash_asked: of the first plan */
    guint question;
    uint32_t answer;
    struct sg_persist_policy policy;
};

struct sg_crash_asked {
    uint32_t n, taken;
    uint8_t what; /* enum sg_persist_choice_what */
};

void sg_crash_planner_init(struct sg_crash_planner *x, const struct sg_crash_strategies *s,
                           uint64_t point);
void sg_crash_planner_fini(struct sg_crash_planner *x);
/*
 * The policy of the next cut, or NULL: there are no more plans.  To be called again only after the
 * cut.
 */
const struct sg_persist_policy *sg_crash_planner_next(struct sg_crash_planner *x);
/* Appends the plan of the last cut as text: "only 5=2", "random 71", "exhaustive 0 1 0 3". */
void sg_crash_plan_text(const struct sg_crash_planner *x, GString *out);

#endif
