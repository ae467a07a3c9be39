/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plans of --plans: docs/crash-laboratory-points.md describes the file.
 *
 * A plan is a crash point, a platform, and the answers that differ from those of the cut in which
 * everything survives.  Memory: 8 octets for each answer.
 */
#ifndef SG_EXPLORE_PLANS_H
#define SG_EXPLORE_PLANS_H

#include <stdbool.h>

#include "crash/deviation.h"
#include "crash/platform.h"

enum { PLANS_MAX = 1 << 20 };

struct sg_crash_breach;

struct sg_explore_plan {
    struct sg_crash_given given;
    GArray *early;                       /* struct sg_crash_answer: the past */
    guint number;                        /* in the file, from 0 on; or of the bug, from 1 on */
    bool made;                           /* its image */
    const struct sg_crash_breach *loses; /* of a bug: in place of answers; or NULL */
};

/* No plans. */
GArray *sg_explore_plans_new(void);
/*
 * The plans as struct sg_explore_plan, by crash point; NULL: a message is on stderr.  Their
 * platforms are numbers of this list.
 */
GArray *sg_explore_plans_read(const char *path, const struct sg_crash_platform *platform,
                              unsigned platforms);
void sg_explore_plans_free(GArray *plans);

struct json_value;
/*
 * The member `arrivals` of an object, which may be left out, as struct sg_crash_answer by number of
 * the question.  NULL, or what is wrong.
 */
const char *sg_explore_read_arrivals(GArray *early, const struct json_value *v);
/* The number of the platform with this name; false: it is not explored. */
bool sg_explore_find_platform(const char *name, const struct sg_crash_platform *platform,
                              unsigned platforms, unsigned *found);

#endif
