/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All images that a domain can leave after a trace of ground_truth.h: the trace is run again and
 * again, and each cut answers the questions in another way, until all answers were given.
 */
#ifndef SG_TESTS_PERSIST_MODEL_IMAGES_H
#define SG_TESTS_PERSIST_MODEL_IMAGES_H

#include "ground_truth.h"
#include "rig.h"

/* A domain for the trace; @check after each event.  Then its events; the caller takes it down. */
void model_begin(struct dom_rig *r, const struct gt_trace *trace, bool check);
void model_event(struct dom_rig *r, const struct gt_event *e);

/* NULL: there are more than @most ways to answer.  *cuts: how many there were. */
GHashTable *model_images(const struct gt_trace *trace, unsigned most, unsigned *cuts);
/*
 * One image, of a cut by this policy; preview: of a preview, S0 and S1 being lost.  False: a load
 * contradicts what the trace's plan answered, so that run did not happen.
 */
bool model_image(const struct gt_trace *trace, const struct sg_persist_policy *policy, bool preview,
                 uint8_t image[GT_WORLD]);

#endif
