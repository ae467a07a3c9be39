/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues.
 */
#ifndef SG_VERBS_QUEUES_SRQ_H
#define SG_VERBS_QUEUES_SRQ_H

#include "base/list.h"
#include "verbs/check/check.h"
#include "verbs/events/ring.h"

struct sg_adapter;
struct sg_pd;

/* Entries from ring.cons on are taken or complete, those from 'taken' to ring.prod are posted. */
struct sg_srq {
    struct sg_ring ring; /* cons counts entries that are complete, in any order */
    struct sg_pd *pd;
    uint32_t srqn, uar;
    uint32_t taken;
    uint32_t limit;   /* 0: not armed */
    uint32_t users;   /* queue pairs */
    uint32_t largest; /* entries of the largest ring so far: limits how late doorbells may be */
    uint8_t max_sge;
    struct sg_list starving;    /* sg_qp: a message waits for an entry (rnr.c) */
    struct sg_check_sums *sums; /* NULL: the checker is off */
    bool error;                 /* SG_EV_SRQ_ERROR was raised: no entry is taken any more */
};

static inline uint32_t sg_srq_left(const struct sg_srq *srq)
{
    return srq->ring.prod - srq->taken;
}

static inline struct sg_object sg_srq_object(const struct sg_srq *srq)
{
    return sg_object_of(srq->uar, SG_OBJECT_SRQ, srq->srqn);
}

/* check_entry.c: a doorbell covers entries from 'before' on; the oldest one was copied. */
void sg_check_srq_posted(struct sg_adapter *a, struct sg_srq *srq, uint32_t before);

/* Maximum number of elements of an entry. */
uint32_t sg_srq_max_sge(const struct sg_adapter *a);
/* The oldest entry was copied: a queue pair owns it now. */
void sg_srq_taken(struct sg_adapter *a, struct sg_srq *srq);
/* The event of the limit, if fewer entries are left. */
void sg_srq_check_limit(struct sg_adapter *a, struct sg_srq *srq);
/* The queue is unusable; reported once. */
void sg_srq_fail(struct sg_adapter *a, struct sg_srq *srq, enum sg_rule rule, const char *why);
/* SG_DB_SRQ */
void sg_srq_doorbell(struct sg_adapter *a, uint32_t page, uint64_t value);

#endif
