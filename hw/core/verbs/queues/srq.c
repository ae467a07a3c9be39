/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues: one pool of receives for many queue pairs of a protection domain.
 *
 * A queue pair takes the oldest entry when the first segment of a message arrives (rq.c).  The
 * entry is copied then, in order of arrival over all queue pairs, and stays with the queue pair
 * until its message is complete or the queue pair is flushed or destroyed.  A queue pair holds at
 * most one, so a peer withholds at most one entry from the others at any time, the one that it
 * fills.  Its completions are counted per queue pair (QUERY_QP_STATS): unfair use can be detected
 * (RFC 5042 section 6.4.3.1), and the owner of the queue pair can end it.
 *
 * Entries complete in any order, in any completion queue; 'ring.cons' counts them, and this
 * count is reported to the consumer, and limits its producer index.
 *
 * Indices never wrap at the ring's size and do not depend on it.  So RESIZE_SRQ needs no agreement
 * on a moment: the driver has each posted entry in both rings, we read the next one from the
 * new ring, and a doorbell, however late, means the same in either.  Entries that were taken are
 * copies and do not need the ring.
 *
 * The limit is armed for one event: when fewer entries are left, the event is raised and the limit
 * is cleared.  A ring that cannot be read, or a producer index beyond it, ends the queue: one
 * event; queue pairs that need an entry fail, the others may continue.
 */
#include "verbs/queues/srq.h"

#include "verbs/events/eq.h"
#include "verbs/queues/qp.h"
#include "verbs/state/adapter_state.h"

uint32_t sg_srq_max_sge(const struct sg_adapter *a)
{
    return SG_MIN(a->config.max_srq_sge, a->config.max_sge);
}

void sg_srq_check_limit(struct sg_adapter *a, struct sg_srq *srq)
{
    if (sg_srq_left(srq) < srq->limit) {
        srq->limit = 0;
        sg_eq_async(a, &(struct sg_async){ .event = SG_EV_SRQ_LIMIT, .id = srq->srqn });
    }
}

void sg_srq_taken(struct sg_adapter *a, struct sg_srq *srq)
{
    sg_assert(srq->taken != srq->ring.prod);
    srq->taken++;
    sg_srq_check_limit(a, srq);
}

void sg_srq_fail(struct sg_adapter *a, struct sg_srq *srq, enum sg_rule rule, const char *why)
{
    if (srq->error) {
        return;
    }
    srq->error = true;
    sg_guest_error(a, rule, sg_srq_object(srq), "shared receive queue %u: %s", srq->srqn, why);
    sg_eq_async(a, &(struct sg_async){ .event = SG_EV_SRQ_ERROR, .id = srq->srqn });
}

static SG_COLD void not_own(struct sg_adapter *a, uint32_t page, uint32_t srqn, struct sg_srq *srq)
{
    sg_guest_error(a, sg_check_number_rule(a, SG_OBJECT_SRQ, srqn, srq),
                   sg_object_of(page, SG_OBJECT_SRQ, srqn),
                   "doorbell page %u: shared receive queue %u is not its own", page, srqn);
}

void sg_srq_doorbell(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    struct sg_srq *srq = sg_idtab_get(&a->srqs, (uint32_t)value);
    uint32_t prod = value >> 32;

    if (!srq || srq->uar != page) {
        not_own(a, page, (uint32_t)value, srq);
        return;
    }
    switch (sg_ring_take(&srq->ring, SG_RING_PROD, prod)) {
    case SG_RING_LATE:
        return;
    case SG_RING_BAD:
        if (srq->ring.prod - prod <= srq->largest) {
            return; /* a late doorbell, and the ring is smaller by now */
        }
        sg_srq_fail(a, srq, sg_ring_rule(&srq->ring, prod), "doorbell beyond the queue");
        return;
    case SG_RING_NEW:
        sg_rnr_posted_shared(srq);
    }
}
