/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work requests of RFC 7306: Atomics and Immediate Data.
 *
 * FETCH_ADD and CMP_SWAP are requests like a Read (sq.c): ORD limits them together with Reads, they
 * complete in order when the peer answers, and FENCE waits for them.  The original value is placed
 * into the element that was checked at the start, and is checked again, since its owner may have
 * revoked the memory.
 */
#include "verbs/memory/mem.h"
#include "verbs/memory/pm.h"
#include "verbs/queues/sq_impl.h"
#include "verbs/state/adapter_state.h"

enum { WORD = 8 };

enum sg_wc_status sg_atomic_start(struct sg_qp *qp, const struct sg_wqe_hdr *h, struct sg_msg *msg)
{
    const struct sg_wqe_atomic *w = (const void *)(h + 1);
    const struct sg_sge *sink = cur_sge(&qp->sq);
    struct sg_sq_rec *rec = sg_sq_rec(&qp->sq, qp->sq.cur_index);
    uint32_t length;
    enum sg_wc_status status = sg_sq_check_elements(qp, SG_ACCESS_LOCAL_WRITE, &length);

    if (status != SG_WC_SUCCESS) {
        return status;
    }
    if (h->num_sge != 1 || length != WORD) {
        return SG_WC_LOC_LEN_ERR;
    }
    msg->kind = h->opcode == SG_WR_FETCH_ADD ? SG_MSG_FETCH_ADD : SG_MSG_CMP_SWAP;
    msg->atomic.stag = sg_get_le32(&h->rkey);
    msg->atomic.to = sg_get_le64(&h->remote_addr);
    msg->atomic.args = (struct sg_atomic_args){
        .data = sg_get_le64(&w->data),
        .mask = sg_get_le64(&w->data_mask),
        .cmp = sg_get_le64(&w->compare),
        .cmp_mask = sg_get_le64(&w->compare_mask),
    };
    rec->byte_len = length;
    rec->sink_stag = sg_get_le32(&sink->lkey);
    rec->sink_to = sg_get_le64(&sink->addr);
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
    if (sg_tpt_check_local(&qp->mem, rec->sink_stag, rec->sink_to, WORD, SG_ACCESS_LOCAL_WRITE,
                           &mr) != SG_MEM_OK ||
        !sg_odp_there(mr, rec->sink_to, WORD, true) ||
        !sg_mem_place(&qp->mem, mr, rec->sink_to, octets, WORD)) {
        rec->status = SG_WC_LOC_PROT_ERR;
    }
    sg_pm_complete_writes(&qp->mem);
    sg_sq_complete_answered(
        qp, rec, rec->status == SG_WC_SUCCESS ? NULL : "no place for the result of an Atomic");
}

void sg_atomic_set_imm(const struct sg_wqe_hdr *h, struct sg_msg *msg)
{
    msg->kind = SG_MSG_IMM;
    msg->imm.solicited = h->flags & SG_WQE_SOLICITED;
    memcpy(msg->imm.octets, &h->imm, SG_IMM_OCTETS);
}

enum sg_wc_status sg_atomic_start_imm(struct sg_qp *qp, const struct sg_wqe_hdr *h,
                                      struct sg_msg *msg)
{
    (void)qp;
    sg_atomic_set_imm(h, msg);
    return h->num_sge ? SG_WC_LOC_LEN_ERR : SG_WC_SUCCESS;
}
