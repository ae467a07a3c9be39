/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a plan answers otherwise than the cut in which everything survives, and what is lost by it.
 *
 * In that cut each question has its last answer.  A deviation names its question by number, in the
 * cut in which the answers before are as in the plan: the questions of a cut depend on the state
 * and on earlier answers only.  So a list of deviations with their answers is the plan once more,
 * and an empty one is the cut in which everything survives.
 *
 * A deviation has the stores that its line, queue or buffer loses in this cut, all deviations about
 * one of these together.
 */
#ifndef SG_CRASH_DEVIATION_H
#define SG_CRASH_DEVIATION_H

#include "persist/persist.h"

/* A question of a cut, with its answer. */
struct sg_crash_asked {
    uint64_t addr;
    uint32_t n, taken;
    uint32_t qpn;
    uint16_t unit;
    uint8_t what; /* enum sg_persist_choice_what */
};

struct sg_crash_deviation {
    struct sg_crash_asked asked;
    uint32_t question;
    uint32_t lost, lost_count; /* of the list's lost stores: the first one; how many */
};

struct sg_crash_deviations {
    GArray *all;  /* struct sg_crash_deviation, by question */
    GArray *lost; /* uint64_t: numbers of the domain's events */
};

/* A plan that somebody gives. */
struct sg_crash_given {
    uint64_t behind;   /* the crash point */
    unsigned platform; /* a number of the exploration's */
    GArray *answers;   /* struct sg_crash_answer, by question */
};
struct sg_crash_answer {
    uint32_t question, answer;
};

void sg_crash_deviations_init(struct sg_crash_deviations *d);
void sg_crash_deviations_fini(struct sg_crash_deviations *d);
/*
 * Fills it from the questions of a cut (struct sg_crash_asked) and what it lost (struct
 * sg_persist_lost, which are sorted).
 */
void sg_crash_deviations_set(struct sg_crash_deviations *d, const GArray *asked, GArray *lost);
/* "line", "queue"... as in images.json */
const char *sg_crash_asked_name(const struct sg_crash_asked *q);
/* Appends whose queue or buffer it is: "vCPU 0", "adapter 0, QP 7".  False: it is none. */
bool sg_crash_asked_agent(const struct sg_crash_asked *q, GString *out);

#endif
