/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stores that crash images lost, and their timelines: --timelines.
 *
 * docs/crash-laboratory-points.md describes the file that names them, and timelines.json.
 */
#ifndef SG_EXPLORE_LOST_STORES_H
#define SG_EXPLORE_LOST_STORES_H

#include "session.h"

struct sg_explore_lost_store {
    uint64_t promises; /* how many were in force when the power failed */
    unsigned platform;
    uint64_t behind;               /* the power failed */
    struct sg_crash_breach breach; /* the store, and the past */
};

/*
 * After pass 1, in place of pass 2: the stores of the file become what pass 3 tells (s->lost,
 * s->bugs).  Returns an enum sg_explore_status.
 */
int sg_explore_pass_lost(struct sg_explore_session *s);
/* timelines.json. */
int sg_explore_write_timelines(struct sg_explore_session *s);

#endif
