/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completions that a fault rule delays.
 *
 * They wait here, outside of their queue's ring, and are written from the turn.  A queue keeps its
 * order: what is posted to it meanwhile waits, too.  Only completions of other queues overtake.
 */
#include "verbs/events/cq.h"

#include <glib.h>

#include "verbs/state/adapter_state.h"

/* Those that wait in all queues; with more of them, those of a queue no longer wait. */
enum { LATE_MAX = 4096 };

struct late_cqe {
    struct sg_link link; /* in sg_adapter.late_cqes */
    struct sg_cq *cq;
    uint64_t due;
    struct sg_wc wc;
};

static struct late_cqe *late_of(struct sg_link *k)
{
    return sg_container_of(k, struct late_cqe, link);
}

/* The first one behind 'after' (NULL: of all) whose queue is cq, or any if that is NULL. */
static struct late_cqe *next_late(struct sg_adapter *a, const struct late_cqe *after,
                                  const struct sg_cq *cq)
{
    struct sg_link *head = &a->late_cqes.head;
    struct sg_link *k = after ? after->link.next : head->next;

    for (; k != head; k = k->next) {
        if (!cq || late_of(k)->cq == cq) {
            return late_of(k);
        }
    }
    return NULL;
}

static void drop(struct sg_adapter *a, struct late_cqe *late)
{
    sg_list_remove(&late->link);
    a->late_count--;
    g_free(late);
}

void sg_cq_drop_late(struct sg_adapter *a, const struct sg_cq *cq)
{
    struct late_cqe *late;

    while ((late = next_late(a, NULL, cq))) {
        drop(a, late);
    }
}

void sg_cq_release_late(struct sg_adapter *a, const struct sg_cq *cq)
{
    struct late_cqe *late;

    while (sg_adapter_alive(a) && (late = next_late(a, NULL, cq))) {
        struct sg_cq *to = late->cq;
        struct sg_wc wc = late->wc;

        drop(a, late);
        sg_cq_post_now(a, to, &wc);
    }
}

bool sg_cq_delay(struct sg_adapter *a, struct sg_cq *cq, const struct sg_wc *wc)
{
    const uint64_t now = sg_adapter_now(a);
    struct sg_fault_act act = sg_faults_at(a->faults, SG_POINT_COMPLETION, cq->cqn, now);
    uint64_t due = act.effect == SG_EFFECT_LATE ? now + act.value : now;
    struct late_cqe *late;

    for (late = next_late(a, NULL, cq); late; late = next_late(a, late, cq)) {
        due = SG_MAX(due, late->due);
    }
    if (due <= now && !next_late(a, NULL, cq)) {
        return false;
    }
    late = a->late_count < LATE_MAX ? g_try_new0(struct late_cqe, 1) : NULL;
    if (!late) {
        sg_cq_release_late(a, cq);
        return false;
    }
    late->cq = cq;
    late->due = due;
    late->wc = *wc;
    sg_list_append(&a->late_cqes, &late->link);
    a->late_count++;
    sg_adapter_kick(a); /* the host learns of the deadline */
    return true;
}

uint64_t sg_cq_run_late(struct sg_adapter *a)
{
    const uint64_t now = sg_adapter_now(a);
    struct late_cqe *late = next_late(a, NULL, NULL), *next;
    uint64_t deadline = SG_NEVER;

    for (; late && sg_adapter_alive(a); late = next) {
        struct sg_cq *cq = late->cq;
        struct sg_wc wc = late->wc;

        next = next_late(a, late, NULL);
        if (late->due <= now) {
            drop(a, late);
            sg_cq_post_now(a, cq, &wc);
        } else {
            deadline = SG_MIN(deadline, late->due);
        }
    }
    return deadline;
}
