/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work requests of draft-talpey-rdma-commit: FLUSH, VERIFY, ATOMIC_WRITE.
 *
 * They are requests like a Read (sq.c): ORD limits them together with Reads, they complete in order
 * when the peer answers, and FENCE waits for them.  An Atomic Write's octets are read from memory
 * when the request starts.  The hash that answers a Verify is placed into the element that was
 * checked at the start, and is checked again: its owner may have revoked the memory, and only the
 * answer tells how long the hash is.
 *
 * The alignment of an Atomic Write's target cannot be checked here: the Tagged Offset may have any
 * value; the address behind it counts.
 */
#include "verbs/memory/mem.h"
#include "verbs/memory/pm.h"
#include "verbs/queues/sq_impl.h"
#include "verbs/state/adapter_state.h"

enum { ATOM = 8 };

static const struct sg_wqe_place *cur_mpe(const struct sg_wqe_hdr *h)
{
    return (const void *)(h + 1);
}

/* Draft -01 section 3.1 allows an STag to be invalidated; -02 section 2.1 does not. */
static enum sg_wc_status set_target(const struct sg_qp *qp, struct sg_msg *msg,
                                    enum sg_msg_kind kind, const struct sg_wqe_hdr *h)
{
    msg->kind = kind;
    msg->mpe.stag = sg_get_le32(&h->rkey);
    msg->mpe.to = sg_get_le64(&h->remote_addr);
    msg->mpe.inv_stag = sg_get_le32(&h->inv_stag);
    msg->mpe.invalidate = msg->mpe.inv_stag != 0;
    return msg->mpe.invalidate && qp->adapter->config.engine.mpe_draft != SG_MPE_DRAFT_01
               ? SG_WC_LOC_QP_OP_ERR
               : SG_WC_SUCCESS;
}

enum sg_wc_status sg_mpe_start_flush(struct sg_qp *qp, const struct sg_wqe_hdr *h,
                                     struct sg_msg *msg)
{
    bool region = qp->adapter->config.engine.mpe_draft == SG_MPE_DRAFT_02;
    uint32_t known = SG_FLUSH_PERSISTENT | SG_FLUSH_GLOBAL | (region ? SG_FLUSH_REGION : 0);
    uint32_t flags = sg_get_le32(&cur_mpe(h)->flags);

    if (h->num_sge || cur_mpe(h)->hash_len || (flags & ~known) ||
        !(flags & (SG_FLUSH_PERSISTENT | SG_FLUSH_GLOBAL))) {
        return SG_WC_LOC_QP_OP_ERR;
    }
    msg->mpe.length = sg_get_le32(&cur_mpe(h)->length);
    msg->mpe.args.flags = flags;
    return set_target(qp, msg, SG_MSG_FLUSH, h);
}

enum sg_wc_status sg_mpe_start_verify(struct sg_qp *qp, const struct sg_wqe_hdr *h,
                                      struct sg_msg *msg)
{
    const struct sg_wqe_place *place = cur_mpe(h);
    const struct sg_sge *sink = cur_sge(&qp->sq);
    struct sg_sq_rec *rec = sg_sq_rec(&qp->sq, qp->sq.cur_index);
    enum sg_wc_status status;
    uint32_t room;

    if (place->flags) {
        return SG_WC_LOC_QP_OP_ERR;
    }
    status = sg_sq_check_elements(qp, SG_ACCESS_LOCAL_WRITE, &room);
    if (status != SG_WC_SUCCESS) {
        return status;
    }
    if (h->num_sge && room < SG_MAX(place->hash_len, (uint8_t)1)) {
        return SG_WC_LOC_LEN_ERR;
    }
    msg->mpe.length = sg_get_le32(&place->length);
    msg->mpe.args.hash.len = place->hash_len;
    memcpy(msg->mpe.args.hash.octets, sink + h->num_sge, place->hash_len);
    status = set_target(qp, msg, SG_MSG_VERIFY, h);
    if (status == SG_WC_SUCCESS && h->num_sge) {
        rec->byte_len = room;
        rec->sink_stag = sg_get_le32(&sink->lkey);
        rec->sink_to = sg_get_le64(&sink->addr);
    }
    return status;
}

enum sg_wc_status sg_mpe_start_atomic_write(struct sg_qp *qp, const struct sg_wqe_hdr *h,
                                            struct sg_msg *msg)
{
    const struct sg_sge *sge = cur_sge(&qp->sq);
    struct sg_sq_rec *rec = sg_sq_rec(&qp->sq, qp->sq.cur_index);
    uint32_t length;
    enum sg_wc_status status = sg_sq_check_elements(qp, 0, &length);

    if (status != SG_WC_SUCCESS) {
        return status;
    }
    if (length != ATOM) {
        return SG_WC_LOC_LEN_ERR;
    }
    msg->mpe.length = ATOM;
    if (h->flags & SG_WQE_INLINE) {
        memcpy(msg->mpe.args.atom, sge, ATOM);
    } else if (!sg_mem_fetch(qp->adapter, qp->sq.cur_mr[0], sg_get_le64(&sge->addr),
                             msg->mpe.args.atom, ATOM)) {
        return SG_WC_LOC_PROT_ERR;
    }
    status = set_target(qp, msg, SG_MSG_ATOMIC_WRITE, h);
    if (status == SG_WC_SUCCESS) {
        rec->byte_len = ATOM;
    }
    return status;
}

/* Places the hash; returns success, or the status of the failed request. */
static enum sg_wc_status place_hash(struct sg_qp *qp, const struct sg_sq_rec *rec,
                                    const uint8_t *hash, size_t len)
{
    struct sg_mr *mr;

    if (!rec->byte_len || !len) {
        return SG_WC_SUCCESS;
    }
    if (len > rec->byte_len) {
        return SG_WC_LOC_LEN_ERR;
    }
    if (sg_tpt_check_local(&qp->mem, rec->sink_stag, rec->sink_to, len, SG_ACCESS_LOCAL_WRITE,
                           &mr) != SG_MEM_OK ||
        !sg_odp_there(mr, rec->sink_to, len, true) ||
        !sg_mem_place(&qp->mem, mr, rec->sink_to, hash, len)) {
        return SG_WC_LOC_PROT_ERR;
    }
    sg_pm_complete_writes(&qp->mem);
    return SG_WC_SUCCESS;
}

void sg_sq_mpe_done(struct sg_qp *qp, enum sg_msg_kind kind, const uint8_t *hash, size_t len)
{
    static const uint8_t opcodes[] = {
        [SG_MSG_FLUSH] = SG_WR_FLUSH,
        [SG_MSG_VERIFY] = SG_WR_VERIFY,
        [SG_MSG_ATOMIC_WRITE] = SG_WR_ATOMIC_WRITE,
    };
    struct sg_sq_rec *rec = sg_sq_answered(qp);

    if (!rec) {
        return;
    }
    sg_assert(rec->opcode == opcodes[kind]);
    if (kind == SG_MSG_VERIFY) {
        rec->status = place_hash(qp, rec, hash, len);
    }
    rec->byte_len = kind == SG_MSG_VERIFY ? (uint32_t)len : 0;
    sg_sq_complete_answered(
        qp, rec, rec->status == SG_WC_SUCCESS ? NULL : "no place for the hash of a Verify");
}
