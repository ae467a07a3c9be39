/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bugs: breaches of all platforms, those with the same cause together.
 *
 * On one platform, breaches with the same cause are one record already (explore.h).  Records of two
 * platforms are one bug if their first examples are the same promise that loses the same store.
 *
 * A store that a crash image lost can be told (story.h, timeline.h) as if it were a bug: then it is
 * about a power failure, with the last promise that was in force, and not about a promise.
 */
#ifndef SG_CRASH_BUGS_H
#define SG_CRASH_BUGS_H

#include "crash/explore.h"

#define SG_CRASH_NO_PROMISE UINT64_MAX

struct sg_crash_bug {
    uint8_t kind;     /* of the promise: enum sg_crash_ack */
    uint32_t issuer;  /* of the store that may be lost */
    uint64_t promise; /* the first example; of a lost store the last in force, or none */
    uint64_t lost;    /* event of the target; 0: not known */
    uint64_t fails;   /* of a lost store: the power fails behind this event; else 0 */
    /* By number of the platform; NULL: it is not there. */
    const struct sg_crash_breach *on[SG_CRASH_PLATFORMS];
    unsigned least; /* the weakest platform that it is on and that claims to keep the promise */
    bool claimed;   /* there is one; otherwise this is no bug */
};

/* struct sg_crash_bug, in the order of their examples.  The caller owns it, not the breaches. */
GArray *sg_crash_bugs(const struct sg_crash_explorer *x, unsigned platforms);

/* What would have made the promise true, as a phrase: "a flush of the cache line". */
const char *sg_crash_missing_text(const struct sg_crash_issuer *issuer,
                                  const struct sg_crash_breach *b);
const char *sg_crash_stage_name(unsigned stage); /* "S0"... "not placed" */

#endif
