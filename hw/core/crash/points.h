/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Crash points: where between two events of a trace it is worth to let the power fail.
 *
 * Let I(t) be the images that a power cut behind event t may leave, and D(t) what is demanded of
 * them: promises and marks.  An event only grows I if each image of I(t) is in I(t + 1).  Promises
 * only accumulate.  So if no event between two instants does more than grow I, and no mark is
 * between them, an image that contradicts D at the first instant is there at the second and
 * contradicts D as well.  What remains are the instants
 *
 *   before an event that may take images away, if I or D grew since the last crash point,
 *   before a mark, likewise, since a mark replaces the state that has to hold,
 *   at the end of the trace.
 *
 * Whether an event only grows I is decided from its kind and from what waits; when in doubt it does
 * not.  A crash point too many costs time; it never changes a verdict.
 * docs/crash-laboratory-points.md has the argument for each kind.
 */
#ifndef SG_CRASH_POINTS_H
#define SG_CRASH_POINTS_H

#include "persist/persist.h"
#include "trace/event.h"

/* What a vCPU has done since its last fence. */
enum sg_crash_points_stores {
    SG_CRASH_POINTS_PLAIN,
    SG_CRASH_POINTS_NT,
    SG_CRASH_POINTS_FLUSH,
    SG_CRASH_POINTS_STORES,
};

struct sg_crash_points {
    bool everything; /* domain whole: what is placed or stored is certain at once */
    bool grown;      /* something was stored, or left a queue, since the last point */
    bool demands;    /* a promise or mark began since the last point */
    bool acts;       /* the event that was announced last may settle something */
    bool bounds;     /* it may, or is a mark: images and demands do not only grow */
    bool placed;     /* an adapter placed something */
    /* By kind: vCPUs that stored so since their last fence; how many vCPUs did anything. */
    uint64_t storing[SG_CRASH_POINTS_STORES][SG_PERSIST_VCPUS / 64];
    unsigned busy_cpus;
    uint64_t busy_device; /* adapters that posted since their last fence */
    uint64_t count;
};

void sg_crash_points_init(struct sg_crash_points *x, enum sg_persist_domain domain);
/* May the event take images away?  p: the domain before it. */
bool sg_crash_points_acts(const struct sg_crash_points *x, const struct sg_persist *p,
                          const struct sg_trace_event *e);
/*
 * Is there a point directly before this event, which takes images away, or not?  Counts it.  To be
 * called for each event, and sg_crash_points_behind() after it was executed.
 */
bool sg_crash_points_before(struct sg_crash_points *x, bool acts, const struct sg_trace_event *e);
void sg_crash_points_behind(struct sg_crash_points *x, const struct sg_trace_event *e);
/* Would there be a point now, if an event took images away? */
static inline bool sg_crash_points_now(const struct sg_crash_points *x)
{
    return x->grown || x->demands;
}
/* A promise began behind the last event. */
void sg_crash_points_demand(struct sg_crash_points *x);
/* The end of the trace: is there a point?  Counts it. */
bool sg_crash_points_end(struct sg_crash_points *x);
/* May the event make something certain? */
bool sg_crash_points_settles(const struct sg_trace_event *e);

#endif
