/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the trace does to segments that are placed in any order; for ground_truth.c only. */
#ifndef SG_TESTS_PERSIST_GT_SEGMENTS_H
#define SG_TESTS_PERSIST_GT_SEGMENTS_H

#include "gt_machine.h"

/* A Write or an Atomic Write of this event. */
void gt_segments_add(struct gt_world *w, const struct gt_event *e, const struct gt_part *part,
                     unsigned parts);
/* What a connection has in S0 is in S1. */
void gt_segments_settle(struct gt_world *w, unsigned device, unsigned conn);
/* What a device has in S1 has arrived. */
void gt_segments_fence(struct gt_world *w, unsigned device);
/* What of S0 and S1 is for a range, in units of so many halves, has arrived; what is before it. */
void gt_segments_seen(struct gt_world *w, const struct gt_part *x, unsigned unit);
/* ground_truth.c: a part of a segment becomes visible in all machines where it is not. */
void gt_come(struct gt_world *w, const struct gt_part *x);

#endif
