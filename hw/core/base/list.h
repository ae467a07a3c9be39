/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An intrusive queue: objects wait in it for their turn (transmission, flushing, room in an event
 * queue).  A zeroed link is in no queue; appending one that is queued does nothing, so an object
 * waits at most once and every queue is bounded by the number of objects.
 */
#ifndef SG_BASE_LIST_H
#define SG_BASE_LIST_H

#include "base/bytes.h"

struct sg_link {
    struct sg_link *next, *prev; /* NULL: not queued */
};

struct sg_list {
    struct sg_link head;
};

static inline void sg_list_init(struct sg_list *l)
{
    l->head.next = l->head.prev = &l->head;
}

static inline bool sg_list_empty(const struct sg_list *l)
{
    return l->head.next == &l->head;
}

static inline bool sg_link_queued(const struct sg_link *k)
{
    return k->next != NULL;
}

/* At the end; false if it was queued already. */
static inline bool sg_list_append(struct sg_list *l, struct sg_link *k)
{
    if (sg_link_queued(k)) {
        return false;
    }
    k->prev = l->head.prev;
    k->next = &l->head;
    k->prev->next = k;
    l->head.prev = k;
    return true;
}

static inline void sg_list_remove(struct sg_link *k)
{
    if (!sg_link_queued(k)) {
        return;
    }
    k->prev->next = k->next;
    k->next->prev = k->prev;
    k->next = k->prev = NULL;
}

/* The oldest link, taken out; NULL when empty. */
static inline struct sg_link *sg_list_pop(struct sg_list *l)
{
    struct sg_link *k = l->head.next;

    if (k == &l->head) {
        return NULL;
    }
    sg_list_remove(k);
    return k;
}

#endif
