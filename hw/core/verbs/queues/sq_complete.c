/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send queues: from the engine's upcalls about a message to the completion of its entry.
 *
 * 'sent' completes an entry (or confirm.c), a Read waits for 'read_done', a Flush, Verify or Atomic
 * Write (mpe_wr.c) for 'mpe_done', an Atomic (atomic_wr.c) for 'atomic_done'.
 *
 * Completions leave in order of submission (RFC 5040 section 5.5, rule 15): a complete entry
 * waits for earlier ones.  Unsignaled ones only move the index.
 */
#include "verbs/memory/pm.h"
#include "verbs/memory/tpt.h"
#include "verbs/queues/sq_impl.h"
#include "verbs/state/adapter_state.h"

/* Completion of done entries, oldest first. */
void sg_sq_drain(struct sg_qp *qp)
{
    struct sg_sq *sq = &qp->sq;

    while (sq->ring.cons != sq->next && sg_sq_rec(sq, sq->ring.cons)->done) {
        struct sg_sq_rec *rec = sg_sq_rec(sq, sq->ring.cons);
        struct sg_wc wc = {
            .wr_id = rec->wr_id,
            .qpn = qp->qpn,
            .byte_len = rec->byte_len,
            .wr_index = sq->ring.cons,
            .ordinal = rec->ordinal,
            .status = rec->status,
            .vendor_err = rec->vendor_err,
            .opcode = rec->wc_opcode,
        };
        bool report = rec->signaled || rec->status != SG_WC_SUCCESS;

        if (rec->sinks) {
            sg_scatter_drop(qp, rec);
        }
        sq->ring.cons++;
        if (report) {
            sg_qp_complete(qp, qp->scq, &wc);
        }
    }
    if (qp->state == SG_QP_CLOSING && sq->ring.cons == sq->close_at) {
        sg_qp_defer(qp, SG_DEFER_CLOSE);
    }
}

/* The range at the peer that a message names. */
static void set_range(const struct sg_msg *msg, struct sg_observed *o)
{
    switch (msg->kind) {
    case SG_MSG_WRITE:
        o->stag = msg->write.stag;
        o->to = msg->write.to;
        break;
    case SG_MSG_READ_REQ:
        o->stag = msg->read.stag;
        o->to = msg->read.to;
        break;
    case SG_MSG_FLUSH:
    case SG_MSG_VERIFY:
    case SG_MSG_ATOMIC_WRITE:
        o->stag = msg->mpe.stag;
        o->to = msg->mpe.to;
        o->length = msg->mpe.length;
        return;
    case SG_MSG_FETCH_ADD:
    case SG_MSG_CMP_SWAP:
        o->stag = msg->atomic.stag;
        o->to = msg->atomic.to;
        o->length = sizeof(uint64_t);
        return;
    default:
        break;
    }
    o->length = sg_msg_length(msg);
}

/* A probe is no request of the owner's; nor is what began before a flush, and was blocked so long. */
void sg_sq_started(struct sg_qp *qp, const struct sg_msg *msg, uint64_t ordinal)
{
    struct sg_sq *sq = &qp->sq;
    uint32_t index = msg->cookie;
    struct sg_sq_rec *rec;
    struct sg_observed o = { .kind = SG_OBSERVED_WORK, .qpn = qp->qpn, .ordinal = ordinal };

    if ((msg->kind == SG_MSG_READ_REQ && msg->read.confirm) ||
        index - sq->ring.cons >= sq->next - sq->ring.cons) {
        return;
    }
    rec = sg_sq_rec(sq, index);
    rec->ordinal = ordinal;
    o.wr_id = rec->wr_id;
    o.opcode = rec->opcode;
    set_range(msg, &o);
    qp->adapter->host.ops->observe(qp->adapter->host.opaque, &o);
}

void sg_sq_sent(struct sg_qp *qp, const struct sg_msg *msg)
{
    struct sg_sq *sq = &qp->sq;
    uint32_t index = msg->cookie;

    if (index - sq->ring.cons >= sq->next - sq->ring.cons || sg_sq_rec(sq, index)->answered) {
        return; /* a flushed entry is already complete; a Read completes with its Response */
    }
    qp->counters.tx_octets += sg_msg_length(msg);
    if (sq->cur_imm) {
        return; /* only the first half */
    }
    if (sg_sq_confirm_later(qp, index)) {
        return;
    }
    sg_sq_rec(sq, index)->done = true;
    sg_sq_drain(qp);
}

struct sg_sq_rec *sg_sq_answered(struct sg_qp *qp)
{
    struct sg_sq *sq = &qp->sq;
    struct sg_sq_rec *rec;

    if (qp->state == SG_QP_ERROR || sq->ring.cons == sq->next || !sq->reads) {
        return NULL; /* being flushed */
    }
    sg_sq_confirm_earlier(qp);
    /* All older entries are complete, or requests that would have been answered earlier. */
    rec = sg_sq_rec(sq, sq->ring.cons);
    sg_assert(rec->answered && !rec->done);
    sg_pm_complete_writes(&qp->mem);
    return rec;
}

void sg_sq_complete_answered(struct sg_qp *qp, struct sg_sq_rec *rec, const char *fault)
{
    struct sg_sq *sq = &qp->sq;

    rec->done = true;
    sq->reads--;
    if (fault) {
        sg_qp_local_error(qp, fault);
        sg_qp_defer(qp, SG_DEFER_TERMINATE);
    }
    sg_sq_drain(qp);
    if (sq->next != sq->ring.prod && qp->conn) {
        /* A fence or the limit of Reads may have been in the way. */
        qp->adapter->conn_ops->ready(qp->conn);
    }
}

void sg_sq_read_done(struct sg_qp *qp, uint32_t octets)
{
    struct sg_sq_rec *rec = sg_sq_answered(qp);
    const char *fault = NULL;
    struct sg_mr *mr;

    if (!rec) {
        return;
    }
    rec->byte_len = octets;
    if (rec->opcode == SG_WR_READ_INV) {
        if (sg_tpt_check_invalidate(&qp->mem, rec->sink_stag, &mr) == SG_MEM_OK) {
            sg_tpt_invalidate(qp->adapter, mr);
        } else {
            rec->status = SG_WC_MW_BIND_ERR;
            fault = "Read with invalidate: no such memory region";
        }
    }
    sg_sq_complete_answered(qp, rec, fault);
}

bool sg_sq_fail_oldest(struct sg_qp *qp, enum sg_wc_status status, uint32_t vendor_err)
{
    struct sg_sq *sq = &qp->sq;
    struct sg_sq_rec *rec;

    if (sq->ring.cons == sq->next) {
        return false;
    }
    rec = sg_sq_rec(sq, sq->ring.cons);
    if (rec->status == SG_WC_SUCCESS) {
        rec->status = status;
        rec->vendor_err = vendor_err;
    }
    return true;
}

void sg_sq_fail_entry(struct sg_qp *qp, uint32_t index, enum sg_wc_status status)
{
    struct sg_sq_rec *rec = sg_sq_rec(&qp->sq, index);

    if (rec->status == SG_WC_SUCCESS) {
        rec->status = status;
    }
}
