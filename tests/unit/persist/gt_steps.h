/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SG_TESTS_PERSIST_GT_STEPS_H
#define SG_TESTS_PERSIST_GT_STEPS_H

#include "gt_segments.h"

/* Other agents act: what is in store buffers may have to leave.  `but`, `cpu`: not this one's. */
void gt_others_drain(struct gt_world *w, int but);
void gt_adapter_acts(struct gt_world *w);
void gt_another_acts(struct gt_world *w, int cpu);

/* Steps of one machine, for gt_step(); the part is what the event is about. */
machine_step gt_all_left, gt_line_has_left, gt_step_fold, gt_step_store, gt_step_arrive,
    gt_step_come, gt_step_exchange, gt_step_evict, gt_step_drain, gt_step_note, gt_step_own_left,
    gt_step_fence, gt_step_read, gt_step_saw, gt_step_poison, gt_step_clear;

#endif
