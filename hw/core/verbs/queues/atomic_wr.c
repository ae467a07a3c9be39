/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RFC 7306: Atomics as requester and responder, Immediate Data as requester.
 *
 * FETCH_ADD and CMP_SWAP are requests like a Read (sq.c): no more than ORD of them and Reads
 * together are out, they complete in order with the peer's answer, and FENCE waits for them.  The
 * original value is placed into the element that was checked at the start and is checked again
 * now, as its owner may have taken the memory away.
 *
 * The responder is called for one request at a time, in the order of their arrival and when all
 * before it is executed.  It checks the request as any access of the peer, settles what came in by
 * the connection (pm.c), and works on the memory with the host's compare and exchange until nobody
 * came in between: so Atomics of all queue pairs, those of other adapters and locked instructions
 * of the guest's CPUs exclude each other, which is more than RFC 7306 section 5.3 asks for.  A
 * guest that keeps changing the word cannot hold a turn for ever: after TRIES another turn goes on.
 *
 * Numbers have the byte order of the target's memory, which is little-endian.  Alignment is that
 * of the bus address: section 5.2.1 speaks of the address that the Tagged Offset stands for.
 */
#include "verbs/memory/mem.h"
#include "verbs/memory/pm.h"
#include "verbs/queues/sq_impl.h"
#include "verbs/state/adapter_state.h"
#include "wire/atomic.h"

enum {
    WORD = 8,
    TRIES = 64,
    WORK = 64,  /* octets of a turn that an Atomic counts as */
};

/* ---- requester ---- */

enum sg_wc_status sg_atomic_start(struct sg_qp *qp, const struct sg_wqe_hdr *h,
                                  struct sg_msg *msg)
{
    const struct sg_wqe_atomic *w = (const void *)(h + 1);
    const struct sg_sge *sink = cur_sge(&qp->sq);
    enum sg_wc_status status = sg_sq_check_elements(qp, SG_ACCESS_LOCAL_WRITE, &msg->length);

    if (status != SG_WC_SUCCESS) {
        return status;
    }
    if (h->num_sge != 1 || msg->length != WORD) {
        return SG_WC_LOC_LEN_ERR;
    }
    msg->kind = h->opcode == SG_WR_FETCH_ADD ? SG_MSG_FETCH_ADD : SG_MSG_CMP_SWAP;
    msg->rstag = sg_get_le32(&h->rkey);
    msg->rto = sg_get_le64(&h->remote_addr);
    msg->sink_stag = sg_get_le32(&sink->lkey);
    msg->sink_to = sg_get_le64(&sink->addr);
    msg->atomic = (struct sg_atomic_args){
        .data = sg_get_le64(&w->data), .mask = sg_get_le64(&w->data_mask),
        .cmp = sg_get_le64(&w->compare), .cmp_mask = sg_get_le64(&w->compare_mask),
    };
    return SG_WC_SUCCESS;
}

void sg_sq_atomic_done(struct sg_qp *qp, enum sg_msg_kind kind, uint64_t original)
{
    struct sg_sq_rec *rec = sg_sq_answered(qp);
    uint8_t octets[WORD];
    struct sg_mr *mr;

    if (!rec) {
        return;
    }
    sg_assert(rec->opcode == (kind == SG_MSG_FETCH_ADD ? SG_WR_FETCH_ADD : SG_WR_CMP_SWAP));
    sg_put_le64(octets, original);
    if (sg_tpt_check_local(&qp->mem, rec->sink_stag, rec->sink_to, WORD,
                           SG_ACCESS_LOCAL_WRITE, &mr) != SG_MEM_OK ||
        !sg_odp_there(mr, rec->sink_to, WORD, true) ||
        !sg_mem_place(&qp->mem, mr, rec->sink_to, octets, WORD)) {
        rec->status = SG_WC_LOC_PROT_ERR;
    }
    sg_pm_settle(&qp->mem);
    sg_sq_complete_answered(qp, rec, rec->status == SG_WC_SUCCESS ? NULL
                                     : "no place for the result of an Atomic");
}

void sg_atomic_set_imm(const struct sg_wqe_hdr *h, struct sg_msg *msg)
{
    msg->kind = SG_MSG_IMM;
    msg->solicited = h->flags & SG_WQE_SOLICITED;
    msg->extra_len = SG_IMM_OCTETS;
    memcpy(msg->extra, &h->imm, SG_IMM_OCTETS);
}

enum sg_wc_status sg_atomic_start_imm(struct sg_qp *qp, const struct sg_wqe_hdr *h,
                                      struct sg_msg *msg)
{
    (void)qp;
    sg_atomic_set_imm(h, msg);
    return h->num_sge ? SG_WC_LOC_LEN_ERR : SG_WC_SUCCESS;
}

/* ---- responder ---- */

static bool exchange(struct sg_qp *qp, const struct sg_mr *mr, const struct sg_atomic_call *r,
                     const struct sg_pm_run *run, uint64_t *value, uint64_t desired)
{
    const struct sg_host *host = &qp->adapter->host;
    const struct sg_pm_who who = {
        .qpn = qp->qpn, .msn = r->msn, .to = r->to, .mode = mr->mode,
    };

    return run->pm ? host->ops->pm_cmpxchg64(host->opaque, &who, run->bus, value, desired)
                   : host->ops->dma_cmpxchg64(host->opaque, run->bus, value, desired);
}

static enum sg_commit_result operate(struct sg_qp *qp, struct sg_mr *mr,
                                     const struct sg_atomic_call *r, const struct sg_pm_run *run,
                                     uint64_t *original)
{
    const struct sg_atomic_req op = {
        .op = r->kind == SG_MSG_FETCH_ADD ? SG_ATOMIC_FETCH_ADD : SG_ATOMIC_CMP_SWAP,
        .data = r->args.data, .mask = r->args.mask, .cmp = r->args.cmp,
        .cmp_mask = r->args.cmp_mask,
    };
    uint64_t guess, found;
    uint8_t octets[WORD];
    unsigned n;

    if (!sg_mem_fetch(qp->adapter, mr, r->to, octets, WORD)) {
        return SG_COMMIT_FAILED;
    }
    found = sg_get_le64(octets);
    for (n = 0; n < TRIES; n++) {
        guess = found; /* perhaps torn, then the exchange fails */
        if (!exchange(qp, mr, r, run, &found, sg_atomic_result(&op, guess))) {
            return SG_COMMIT_FAILED;
        }
        if (found == guess) {
            *original = found;
            mr->counters.remote_atomics++;
            qp->counters.rx_requests++;
            return SG_COMMIT_DONE;
        }
    }
    return SG_COMMIT_LATER;
}

enum sg_commit_result sg_atomic_run(struct sg_qp *qp, const struct sg_atomic_call *r,
                                    uint64_t *original, enum sg_mem_status *why, uint64_t *token,
                                    uint64_t *again_ns)
{
    struct sg_adapter *a = qp->adapter;
    struct sg_pm_run run;
    struct sg_mr *mr;

    (void)token;
    *why = sg_tpt_check_remote(&qp->mem, r->stag, r->to, WORD, SG_ACCESS_REMOTE_ATOMIC, &mr);
    if (*why != SG_MEM_OK) {
        return SG_COMMIT_MEM;
    }
    switch (sg_odp_ready(&qp->mem, SG_ODP_ANSWER, mr, r->to, WORD, true)) {
    case SG_ODP_READY:
        break;
    case SG_ODP_WAIT:
        *again_ns = SG_NEVER; /* until MAP_PAGES */
        return SG_COMMIT_LATER;
    case SG_ODP_FAILED:
        *why = SG_MEM_ACCESS;
        return SG_COMMIT_MEM;
    }
    run = sg_pm_run(a, mr, r->to, WORD);
    if (!sg_is_aligned(run.bus, (uint64_t)WORD) || run.len != WORD) {
        return SG_COMMIT_UNALIGNED;
    }
    sg_pm_settle(&qp->mem);
    a->executed += WORK;
    *again_ns = sg_adapter_now(a);
    return operate(qp, mr, r, &run, original);
}
