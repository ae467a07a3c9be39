/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * In how many ways can the questions of a cut be answered?  At most so many images are possible.
 *
 * The answers about queues and buffers are enumerated.  With these given, lines are independent:
 * the number is the product of those of the lines, each of which is found by enumerating the line's
 * own answers, all lines at the same time.  So the number may have hundreds of digits and still be
 * exact.
 */
#ifndef SG_CRASH_WAYS_H
#define SG_CRASH_WAYS_H

#include "crash/count.h"
#include "persist/persist.h"

/* Cuts an equal domain by this policy. */
typedef void sg_crash_cut(void *opaque, const struct sg_persist_policy *policy);

/*
 * Adds the number to *sum.  At most so many cuts are made; *cuts says how many.  False: these were
 * not enough, and the number is higher than what was added.
 */
bool sg_crash_ways(sg_crash_cut *cut, void *opaque, unsigned most, struct sg_crash_count *sum,
                   unsigned *cuts);

#endif
