/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive queues: untagged placement of Sends.  Immediate Data takes an entry like a Send of no
 * octets.
 *
 * The message with MSN m goes to entry base + m - 1; as messages arrive in order this is always
 * entry 'cons'.  The entry is copied with the first segment and used for all of them.  Elements are
 * checked when octets are placed into them: an element that no message reaches is never checked.
 *
 * A queue pair with a shared queue (srq.c) has no entries of its own: it takes one with the first
 * segment, and that is entry 'cons' until it is complete.
 *
 * A faulty entry completes in error here, once; the engine then ends the stream and the rest is
 * flushed.
 */
#include "verbs/memory/mem.h"
#include "verbs/memory/pm.h"
#include "verbs/queues/qp.h"
#include "verbs/queues/srq.h"
#include "verbs/state/adapter_state.h"

static const struct sg_sge *cur_sge(const struct sg_rq *rq)
{
    return (const void *)(rq->cur + sizeof(struct sg_rqe_hdr));
}

static const struct sg_rqe_hdr *cur_hdr(const struct sg_rq *rq)
{
    return (const void *)rq->cur;
}

/* The entry at 'cons' is complete. */
static void complete(struct sg_qp *qp, struct sg_wc *wc)
{
    struct sg_rq *rq = &qp->rq;

    wc->wr_id = sg_get_le64(&cur_hdr(rq)->wr_id);
    wc->qpn = qp->qpn;
    wc->wr_index = qp->srq ? qp->srq->ring.cons++ : rq->ring.cons;
    wc->opcode = wc->flags & SG_CQE_WITH_IMM ? SG_WC_RECV_IMM : SG_WC_RECV;
    wc->flags |= SG_CQE_RECV;
    rq->ring.cons++;
    rq->cur_valid = false;
    sg_qp_complete(qp, qp->rcq, wc);
}

/* An entry that was reported already is not reported for what follows from it. */
static enum sg_rule fault_rule(struct sg_qp *qp, enum sg_wc_status status)
{
    if (sg_check_rq_changed(qp)) {
        return SG_RULE_ENTRY_CHANGED;
    }
    if (sg_check_was_silent(qp->adapter)) {
        return SG_RULE_DMA_MEMORY;
    }
    switch (status) {
    case SG_WC_LOC_QP_OP_ERR: /* nothing else is wrong with a receive in this way */
        return SG_RULE_ENTRY_INDEX;
    case SG_WC_LOC_LEN_ERR:
        return SG_RULE_ENTRY_FORM;
    default:
        return SG_RULE_ENTRY_ACCESS;
    }
}

static SG_COLD enum sg_recv_status fault(struct sg_qp *qp, enum sg_wc_status status)
{
    struct sg_wc wc = { .status = status, .ordinal = qp->mem.ordinal };

    sg_guest_error(qp->adapter, fault_rule(qp, status), sg_qp_object(qp),
                   "qp %u: receive entry %u: %s", qp->qpn, qp->rq.ring.cons,
                   sg_wc_status_name(status));
    complete(qp, &wc);
    sg_qp_local_error(qp, "faulty receive entry");
    return SG_RECV_FAULT;
}

static SG_COLD void flow_fetched(const struct sg_qp *qp, uint32_t index)
{
    if (qp->srq) {
        sg_flow(&qp->adapter->host, "qp %u: fetched receive entry %u of srq %u", qp->qpn, index,
                qp->srq->srqn);
    } else {
        sg_flow(&qp->adapter->host, "qp %u: fetched receive entry %u", qp->qpn, index);
    }
}

/* Copies the entry at 'index' of a ring. */
static enum sg_wc_status fetch(struct sg_qp *qp, const struct sg_ring *ring, uint32_t index)
{
    struct sg_rq *rq = &qp->rq;
    const struct sg_host *host = &qp->adapter->host;
    const struct sg_rqe_hdr *h = cur_hdr(rq);
    size_t have = SG_WQE_STRIDE_MIN, size;
    unsigned i;

    if (!sg_ring_fetch(ring, host, index, 0, rq->cur, have)) {
        return SG_WC_FATAL_ERR;
    }
    if (sg_flows(host)) {
        flow_fetched(qp, index);
    }
    if (sg_get_le32(&h->index) != index) {
        return SG_WC_LOC_QP_OP_ERR;
    }
    size = sizeof(*h) + h->num_sge * sizeof(struct sg_sge);
    if (h->num_sge > rq->max_sge || size > (1u << ring->stride_shift)) {
        return SG_WC_LOC_LEN_ERR;
    }
    if (size > have && !sg_ring_fetch(ring, host, index, have, rq->cur + have, size - have)) {
        return SG_WC_FATAL_ERR;
    }
    rq->cur_len = 0;
    for (i = 0; i < h->num_sge; i++) {
        rq->cur_len += sg_get_le32(&cur_sge(rq)[i].length);
    }
    rq->cur_valid = true;
    return SG_WC_SUCCESS;
}

/* The oldest entry of the shared queue becomes this queue pair's only one. */
static enum sg_wc_status take_shared(struct sg_qp *qp)
{
    enum sg_wc_status status = fetch(qp, &qp->srq->ring, qp->srq->taken);

    if (qp->srq->sums && status != SG_WC_FATAL_ERR) {
        sg_check_srq_fetched(qp, qp->srq->taken);
    }
    if (status == SG_WC_FATAL_ERR) {
        sg_srq_fail(qp->adapter, qp->srq, SG_RULE_DMA_RING, "cannot be read");
    } else {
        sg_srq_taken(qp->adapter, qp->srq);
        qp->rq.ring.prod++;
    }
    return status;
}

static bool anything_posted(const struct sg_qp *qp)
{
    return sg_ring_used(&qp->rq.ring) || (qp->srq && sg_srq_left(qp->srq));
}

static enum sg_recv_status place_elements(struct sg_qp *qp, uint64_t mo, const uint8_t *p, size_t n)
{
    const struct sg_sge *sge = cur_sge(&qp->rq);
    enum sg_mem_status st;
    struct sg_mr *mr;
    size_t all = n;

    for (; n; sge++) {
        uint32_t room = sg_get_le32(&sge->length);
        uint64_t addr = sg_get_le64(&sge->addr);
        size_t part;

        if (mo >= room) {
            mo -= room;
            continue;
        }
        part = SG_MIN(room - mo, n);
        /* The whole element must be valid, not only the part that this segment fills. */
        st = sg_tpt_check_local(&qp->mem, sg_get_le32(&sge->lkey), addr, room,
                                SG_ACCESS_LOCAL_WRITE, &mr);
        if (st == SG_MEM_OK) {
            switch (sg_odp_ready(&qp->mem, SG_ODP_RECEIVE, mr, addr + mo, part, true)) {
            case SG_ODP_READY:
                break;
            case SG_ODP_WAIT:
                return SG_RECV_LATER; /* octets placed so far are placed again */
            case SG_ODP_FAILED:
                st = SG_MEM_ACCESS;
            }
        }
        if (st != SG_MEM_OK || !sg_mem_place(&qp->mem, mr, addr + mo, p, part)) {
            return fault(qp, SG_WC_LOC_PROT_ERR);
        }
        p += part;
        n -= part;
        mo = 0;
    }
    qp->counters.rx_octets += all;
    return SG_RECV_OK;
}

enum sg_recv_status sg_rq_place(struct sg_qp *qp, uint32_t msn, uint32_t mo, const uint8_t *p,
                                size_t n)
{
    struct sg_rq *rq = &qp->rq;
    enum sg_wc_status status;

    if (rq->base + msn - 1 != rq->ring.cons) {
        return SG_RECV_NO_BUFFER;
    }
    if (!anything_posted(qp)) {
        return sg_rnr_missing(qp);
    }
    if (qp->rnr.wait) {
        sg_rnr_stop(qp);
    }
    if (!rq->cur_valid) {
        if (qp->srq) {
            status = qp->srq->error ? SG_WC_FATAL_ERR : take_shared(qp);
        } else {
            status = fetch(qp, &rq->ring, rq->ring.cons);
            if (sg_checking(qp->adapter) && status != SG_WC_FATAL_ERR) {
                sg_check_rq_fetched(qp);
            }
        }
        if (status == SG_WC_FATAL_ERR) {
            sg_qp_unreadable(qp, "receive queue cannot be read");
            return SG_RECV_FAULT;
        }
        if (status != SG_WC_SUCCESS) {
            return fault(qp, status);
        }
    }
    if (!sg_range_ok(mo, n, rq->cur_len)) {
        return SG_RECV_TOO_LONG;
    }
    return place_elements(qp, mo, p, n);
}

void sg_rq_done(struct sg_qp *qp, const struct sg_recv_info *info)
{
    struct sg_wc wc = {
        .byte_len = info->immediate ? info->write_len : info->length,
        .inv_stag = info->inv_stag,
        .ordinal = qp->mem.ordinal,
        .flags = (info->solicited ? SG_CQE_SOLICITED : 0) |
                 (info->invalidate ? SG_CQE_WITH_INV : 0) | (info->immediate ? SG_CQE_WITH_IMM : 0),
    };

    memcpy(wc.imm, info->imm, sizeof(wc.imm));
    sg_pm_complete_writes(&qp->mem);
    qp->counters.rx_requests++;
    if (qp->rq.cur_valid) {
        complete(qp, &wc);
    }
}

bool sg_rq_flush_one(struct sg_qp *qp)
{
    struct sg_wc wc = { .status = SG_WC_FLUSH_ERR };
    struct sg_rq *rq = &qp->rq;

    if (!rq->cur_valid && !qp->srq &&
        !sg_ring_fetch(&rq->ring, &qp->adapter->host, rq->ring.cons, 0, rq->cur,
                       sizeof(struct sg_rqe_hdr))) {
        return false;
    }
    complete(qp, &wc);
    return true;
}

static SG_COLD void posted_to_shared(struct sg_qp *qp)
{
    sg_guest_error(qp->adapter, SG_RULE_DB_SHARED, sg_qp_object(qp),
                   "qp %u: receive doorbell, but its queue is a shared one", qp->qpn);
}

static SG_COLD void beyond(struct sg_qp *qp, uint32_t prod)
{
    const struct sg_ring *r = &qp->rq.ring;

    sg_guest_error(qp->adapter, sg_ring_rule(r, prod), sg_qp_object(qp),
                   "qp %u: receive doorbell %u beyond the queue (%u to %u)", qp->qpn, prod, r->cons,
                   r->prod);
    sg_qp_fail(qp, SG_EV_QP_FATAL, "receive doorbell beyond the queue");
}

void sg_rq_doorbell(struct sg_qp *qp, uint32_t prod)
{
    if (qp->srq) {
        posted_to_shared(qp);
        return;
    }
    switch (sg_ring_take(&qp->rq.ring, SG_RING_PROD, prod)) {
    case SG_RING_LATE:
        return;
    case SG_RING_BAD:
        beyond(qp, prod);
        return;
    case SG_RING_NEW:
        break;
    }
    if (qp->state == SG_QP_ERROR) {
        sg_qp_flush_later(qp);
    }
    sg_rnr_posted(qp);
}
