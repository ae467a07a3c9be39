/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A queue of timers over a 64-bit nanosecond clock that the caller supplies.
 *
 * Timers live inside the objects that they belong to: the queue allocates
 * nothing and has no limit of its own.  Timers with equal deadlines fire in
 * the order in which they were armed, so a run is a function of its inputs.
 * Not thread-safe.
 */
#ifndef SG_BASE_TIMERQ_H
#define SG_BASE_TIMERQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SG_TIME_NEVER UINT64_MAX

struct sg_timer;

/*
 * Called with the timer idle again; it may arm, cancel or free any timer,
 * itself included.  @now_ns is the argument of sg_timerq_run().
 */
typedef void sg_timer_fn(struct sg_timer *t, uint64_t now_ns);

struct sg_timer {
    sg_timer_fn *fn;
    void *opaque;         /* for @fn's use */
    uint64_t deadline_ns; /* valid while armed */

    /* Private to timerq.c: pairing heap links and tie-breaker. */
    uint64_t seq;
    struct sg_timer *child;
    struct sg_timer *next;
    struct sg_timer *prev; /* elder sibling, or parent of the eldest */
    bool armed;
};

struct sg_timerq {
    struct sg_timer *root;
    struct sg_timer *held; /* timers armed by callbacks of the run in progress */
    bool running;
    uint64_t seq;
    size_t count; /* armed timers */
};

void sg_timerq_init(struct sg_timerq *q);

/* Prepare an idle timer.  Must precede its first use. */
void sg_timer_init(struct sg_timer *t, sg_timer_fn *fn, void *opaque);

static inline bool sg_timer_armed(const struct sg_timer *t)
{
    return t->armed;
}

/* Arm @t, or move it if it is armed on @q already.  SG_TIME_NEVER cancels. */
void sg_timerq_arm(struct sg_timerq *q, struct sg_timer *t, uint64_t deadline_ns);

/* Make @t idle; nothing happens if it is idle already. */
void sg_timerq_cancel(struct sg_timerq *q, struct sg_timer *t);

/* The earliest deadline, or SG_TIME_NEVER. */
uint64_t sg_timerq_next(const struct sg_timerq *q);

/*
 * Fire the timers with a deadline at or before @now_ns, earliest first, but no more
 * than SG_TIMERQ_RUN_MAX: the rest stays due, as sg_timerq_next() tells.  Timers armed
 * by the callbacks wait for the next call even when due.  Not to be called from a
 * callback.  Returns the number fired.
 */
enum { SG_TIMERQ_RUN_MAX = 4096 };
size_t sg_timerq_run(struct sg_timerq *q, uint64_t now_ns);

#endif /* SG_BASE_TIMERQ_H */
