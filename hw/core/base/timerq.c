/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timers in a pairing heap: arming is O(1), taking out is O(log n) amortized,
 * and the links are in the timers, so that nothing is ever allocated.
 *
 * In a heap, child is the eldest child and next the younger sibling; prev is
 * the elder sibling or, for the eldest, the parent.  The key is the pair
 * (deadline, order of arming), so that there are no equals.
 */
#include "base/bytes.h"
#include "base/timerq.h"

static bool before(const struct sg_timer *a, const struct sg_timer *b)
{
    if (a->deadline_ns != b->deadline_ns) {
        return a->deadline_ns < b->deadline_ns;
    }
    return a->seq < b->seq;
}

/* Join two heaps, either may be NULL; the roots have no siblings. */
static struct sg_timer *meld(struct sg_timer *a, struct sg_timer *b)
{
    struct sg_timer *top, *sub;

    if (!a || !b) {
        return a ? a : b;
    }
    top = before(a, b) ? a : b;
    sub = top == a ? b : a;
    sub->prev = top;
    sub->next = top->child;
    if (sub->next) {
        sub->next->prev = sub;
    }
    top->child = sub;
    return top;
}

/* Take the first of a list of siblings off, as a heap of its own. */
static struct sg_timer *take_first(struct sg_timer **list)
{
    struct sg_timer *t = *list;

    if (t) {
        *list = t->next;
        t->next = NULL;
        t->prev = NULL;
    }
    return t;
}

/* One heap out of the siblings @list: pairs from left to right, then all from right to left. */
static struct sg_timer *meld_siblings(struct sg_timer *list)
{
    struct sg_timer *pairs = NULL, *top = NULL;

    while (list) {
        struct sg_timer *a = take_first(&list);
        struct sg_timer *pair = meld(a, take_first(&list));

        pair->next = pairs;
        pairs = pair;
    }
    while (pairs) {
        top = meld(top, take_first(&pairs));
    }
    return top;
}

/*
 * Take @t, which is armed, out of the heap that it is in.  What was below it
 * takes its place, which needs no knowledge of the root.
 */
static void take_out(struct sg_timerq *q, struct sg_timer *t)
{
    struct sg_timer *rest = meld_siblings(t->child);
    struct sg_timer *follower = rest ? rest : t->next;

    if (rest) {
        rest->prev = t->prev;
        rest->next = t->next;
        if (t->next) {
            t->next->prev = rest;
        }
    } else if (t->next) {
        t->next->prev = t->prev;
    }
    if (t == q->root) {
        q->root = follower;
    } else if (t == q->held) {
        q->held = follower;
    } else if (t->prev->child == t) {
        t->prev->child = follower;
    } else {
        t->prev->next = follower;
    }
    t->child = NULL;
    t->next = NULL;
    t->prev = NULL;
    t->armed = false;
    q->count--;
}

void sg_timerq_init(struct sg_timerq *q)
{
    memset(q, 0, sizeof(*q));
}

void sg_timer_init(struct sg_timer *t, sg_timer_fn *fn, void *opaque)
{
    memset(t, 0, sizeof(*t));
    t->fn = fn;
    t->opaque = opaque;
}

void sg_timerq_arm(struct sg_timerq *q, struct sg_timer *t, uint64_t deadline_ns)
{
    sg_assert(t->fn);
    sg_timerq_cancel(q, t);
    if (deadline_ns == SG_TIME_NEVER) {
        return;
    }
    t->deadline_ns = deadline_ns;
    t->seq = q->seq++;
    t->armed = true;
    q->count++;
    if (q->running) {
        q->held = meld(q->held, t);
    } else {
        q->root = meld(q->root, t);
    }
}

void sg_timerq_cancel(struct sg_timerq *q, struct sg_timer *t)
{
    if (t->armed) {
        take_out(q, t);
    }
}

uint64_t sg_timerq_next(const struct sg_timerq *q)
{
    uint64_t root = q->root ? q->root->deadline_ns : SG_TIME_NEVER;
    uint64_t held = q->held ? q->held->deadline_ns : SG_TIME_NEVER;

    return SG_MIN(root, held);
}

size_t sg_timerq_run(struct sg_timerq *q, uint64_t now_ns)
{
    size_t fired = 0;

    sg_assert(!q->running);
    q->running = true;
    while (fired < SG_TIMERQ_RUN_MAX && q->root && q->root->deadline_ns <= now_ns) {
        struct sg_timer *t = q->root;

        take_out(q, t);
        fired++;
        t->fn(t, now_ns);
    }
    q->running = false;
    q->root = meld(q->root, q->held);
    q->held = NULL;
    return fired;
}
