/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A rule of faults, from its text.
 */
#ifndef SG_FAULTS_FAULT_RULES_H
#define SG_FAULTS_FAULT_RULES_H

#include "faults/fault_values.h"

#define SG_FAULT_PERIOD_MIN 100000u /* ns */

struct sg_fault_rule {
    uint8_t point, effect;
    bool timed; /* happens at times, not at occurrences */
    bool only;  /* concerns 'which' only */
    uint32_t which;
    uint64_t value;           /* of the effect */
    uint64_t nth;             /* first occurrence, from 1; 0: not given */
    uint64_t every, times;    /* one in 'every' from there on, so many of them */
    uint64_t after, lasts;    /* ns: begin and length; SG_NEVER: no end */
    uint64_t period;          /* ns, of a timed one */
    char text[SG_FAULT_TEXT]; /* as it was given, blanks made single */
};

/* What "draw" asks for. */
struct sg_fault_lot {
    uint64_t seed, rules, within;
};

const char *sg_fault_point_name(enum sg_fault_point point);

/*
 * One rule of 'len' octets.  1: *rule.  0: *lot, a request to draw rules.  -1: it is wrong, and
 * 'err' says why.
 */
int sg_fault_parse(const char *text, size_t len, const struct sg_fault_words *words,
                   struct sg_fault_rule *rule, struct sg_fault_lot *lot, char *err, size_t err_len);

/* fault_draw.c: the text of the n-th rule of a lot. */
void sg_fault_draw(const struct sg_fault_lot *lot, unsigned n, char text[SG_FAULT_TEXT]);

#endif
