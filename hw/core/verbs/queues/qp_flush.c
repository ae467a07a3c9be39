/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flushing: in ERROR every entry of both queues is completed without being executed.
 *
 * Order: all send entries, then all receive entries, each queue in order of posting.  Started
 * sends have a record; for the others the entry is read for its wr_id.  A turn completes at most
 * SG_TURN_FLUSH entries of the whole adapter and serves the queue pairs round-robin, so one with
 * long queues does not delay the rest.  The doorbell of later entries starts flushing again.
 *
 * A queue pair with a shared receive queue has at most the one entry that it took; when nothing is
 * left SG_EV_QP_LAST_WQE is raised, once.
 *
 * An entry that can no longer be read ends the flush of its queue with SG_EV_QP_FATAL: there is
 * no wr_id to report it with.
 */
#include "verbs/events/eq.h"
#include "verbs/queues/qp.h"
#include "verbs/state/adapter_state.h"

enum { FLUSH_PER_QP = 64 };

/* With a shared receive queue the owner cannot count completions: an event tells the end. */
static bool needs_last_wqe(const struct sg_qp *qp)
{
    return qp->srq && !qp->last_wqe;
}

void sg_qp_flush_later(struct sg_qp *qp)
{
    if (sg_ring_used(&qp->sq.ring) || sg_ring_used(&qp->rq.ring) || needs_last_wqe(qp)) {
        sg_list_append(&qp->adapter->flushing, &qp->flush_link);
        sg_adapter_kick(qp->adapter);
    }
}

static void unreadable(struct sg_qp *qp, const char *queue)
{
    sg_guest_error(qp->adapter, SG_RULE_DMA_RING, sg_qp_object(qp),
                   "qp %u: %s queue cannot be read", qp->qpn, queue);
    if (!qp->fatal_reported) {
        qp->fatal_reported = true;
        sg_eq_async(qp->adapter, &(struct sg_async){ .event = SG_EV_QP_FATAL, .id = qp->qpn });
    }
}

static bool flush_send(struct sg_qp *qp)
{
    struct sg_sq *sq = &qp->sq;
    struct sg_wc wc = { .qpn = qp->qpn, .wr_index = sq->ring.cons, .status = SG_WC_FLUSH_ERR };
    struct sg_wqe_hdr h;

    if (sq->ring.cons != sq->next) {
        struct sg_sq_rec *rec = sg_sq_rec(sq, sq->ring.cons);

        wc.wr_id = rec->wr_id;
        wc.opcode = rec->wc_opcode;
        wc.ordinal = rec->ordinal;
        if (rec->status != SG_WC_SUCCESS) {
            wc.status = rec->status;
            wc.vendor_err = rec->vendor_err;
        }
        sg_scatter_drop(qp, rec);
    } else {
        if (!sg_ring_fetch(&sq->ring, &qp->adapter->host, sq->ring.cons, 0, &h, sizeof(h))) {
            unreadable(qp, "send");
            sq->ring.cons = sq->next = sq->ring.prod;
            return false;
        }
        wc.wr_id = sg_get_le64(&h.wr_id);
        wc.opcode = sg_sq_wc_opcode(h.opcode);
        sq->next++;
    }
    if (sq->flush_status) {
        wc.status = sq->flush_status;
        sq->flush_status = 0;
    }
    sq->ring.cons++;
    sg_qp_complete(qp, qp->scq, &wc);
    return true;
}

static bool flush_recv(struct sg_qp *qp)
{
    if (!sg_rq_flush_one(qp)) {
        unreadable(qp, "receive");
        qp->rq.ring.cons = qp->rq.ring.prod;
        return false;
    }
    return true;
}

static void raise_last_wqe(struct sg_qp *qp)
{
    qp->last_wqe = true;
    sg_eq_async(qp->adapter, &(struct sg_async){ .event = SG_EV_QP_LAST_WQE, .id = qp->qpn });
}

/* Returns how many entries were completed. */
static unsigned flush_some(struct sg_qp *qp, unsigned max)
{
    unsigned n = 0;

    while (n < max && sg_ring_used(&qp->sq.ring) && flush_send(qp)) {
        n++;
    }
    if (!sg_ring_used(&qp->sq.ring)) {
        qp->sq.reads = 0;
    }
    while (n < max && sg_ring_used(&qp->rq.ring) && flush_recv(qp)) {
        n++;
    }
    if (needs_last_wqe(qp) && !sg_ring_used(&qp->sq.ring) && !sg_ring_used(&qp->rq.ring)) {
        raise_last_wqe(qp);
    }
    return n;
}

bool sg_qp_run_flush(struct sg_adapter *a)
{
    unsigned left = SG_TURN_FLUSH;
    struct sg_link *k;
    bool over = false;

    for (; left && !over && (k = sg_list_pop(&a->flushing)); over = sg_turn_over(a)) {
        struct sg_qp *qp = sg_container_of(k, struct sg_qp, flush_link);

        if (qp->state != SG_QP_ERROR) {
            continue;
        }
        left -= flush_some(qp, SG_MIN(left, (unsigned)FLUSH_PER_QP));
        sg_qp_flush_later(qp);
    }
    return !sg_list_empty(&a->flushing);
}
