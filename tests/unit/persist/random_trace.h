/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random traces of ground_truth.h. */
#ifndef SG_TESTS_PERSIST_RANDOM_TRACE_H
#define SG_TESTS_PERSIST_RANDOM_TRACE_H

#include "ground_truth.h"

/*
 * The trace of a seed, on a platform that follows from it.  What CPUs and adapters do; who: 0 both,
 * 1 CPUs, 2 adapters.  Most events write a value of their own (their number from 1), others 0.
 */
void gt_random_trace(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report);
/* The same with segments that are placed in any order, followed exactly. */
void gt_random_segments(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report);
/* Connections write to the same octets, and flush them, in order or not; followed exactly. */
void gt_random_races(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report);
/* Segments of several connections that share lines. */
void gt_random_shared(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report);
/*
 * The same with bad lines: some of its events make lines bad, or good again.  All values differ
 * from each other and from what was there.
 */
/* Segments beside stores, at most one in a line. */
void gt_random_mixed(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report);
void gt_random_bad(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report);

#endif
