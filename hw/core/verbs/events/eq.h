/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event queues: the async queue (number 0) and those for completions.
 */
#ifndef SG_VERBS_EVENTS_EQ_H
#define SG_VERBS_EVENTS_EQ_H

#include "base/list.h"
#include "base/timerq.h"
#include "staghorn/admin.h"
#include "staghorn/io.h"
#include "staghorn/regs.h"
#include "verbs/events/ring.h"

struct sg_adapter;
struct sg_cq;

struct sg_eq {
    struct sg_ring ring;
    uint32_t eqn;
    uint32_t vector;
    uint32_t users; /* completion queues that use it */
    bool armed;
    struct sg_timer answer; /* the checker's: an interrupt is not answered */
    struct sg_list waiting; /* sg_cq: raised while this queue was full */
    struct sg_eqe *backlog; /* async events that found the ring full, oldest first */
    uint32_t backlog_first, backlog_count, backlog_room;
};

/* The number must be unused. */
void sg_eq_make(struct sg_adapter *a, uint32_t eqn, uint64_t base, uint32_t entries,
                uint32_t vector);

/* Frees the queue, with the events that wait for room. */
void sg_eq_free(struct sg_adapter *a, struct sg_eq *eq);
/* Frees all queues at once. */
void sg_eq_destroy_all(struct sg_adapter *a);

/* Consumer index and re-arm, from SG_REG_EQ_DB.  True: it is armed now and has no entries. */
bool sg_eq_doorbell(struct sg_adapter *a, uint32_t eqn, uint32_t value);

/* Tell the driver that a completion queue has entries. */
void sg_eq_completion(struct sg_adapter *a, struct sg_cq *cq);

/* An async event; fields that do not apply are 0. */
struct sg_async {
    enum sg_event event;
    enum sg_cm_status status;
    uint32_t id, conn, aux;
    uint64_t page;
};
void sg_eq_async(struct sg_adapter *a, const struct sg_async *ev);
/* May a peer cause new events?  Not if the driver is behind. */
bool sg_eq_async_room(const struct sg_adapter *a);
/* The adapter stops until it is reset; the driver gets an event if that is possible. */
void sg_adapter_fatal(struct sg_adapter *a, enum sg_fatal why);

#endif
