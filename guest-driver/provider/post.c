// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * ibv_post_send, ibv_post_recv, ibv_post_srq_recv: copy each request into its slot, then one
 * doorbell for the list.  If a request is refused, earlier ones are still posted, and *bad_wr names
 * it.
 *
 * One table, by opcode, says what a request may contain; a new operation is a row there, a builder
 * in wr.c, and the operands of its header in set_operands().
 *
 * Immediate data are 32 bits in verbs and 64 on the wire (RFC 7306): they are in the first four
 * octets, as they are in memory.  The message has no payload, so IBV_WR_SEND_WITH_IMM is only for
 * requests without one.
 */
#include <errno.h>

#include <ccan/array_size.h>

#include "provider.h"
#include "doorbell.h"
#include "ops.h"
#include "wqe.h"

const uint8_t sgp_wqe_flags[SGP_SEND_FLAGS + 1] = {
#define FLAGS(f)                                                \
	[f] = ((f) & IBV_SEND_FENCE ? SG_WQE_FENCE : 0) |       \
	      ((f) & IBV_SEND_SIGNALED ? SG_WQE_SIGNALED : 0) | \
	      ((f) & IBV_SEND_SOLICITED ? SG_WQE_SOLICITED : 0)
	FLAGS(0), FLAGS(1), FLAGS(2), FLAGS(3), FLAGS(4), FLAGS(5), FLAGS(6), FLAGS(7),
#undef FLAGS
};

/* Operations without a row are refused. */
static const struct send_op {
	bool valid;
	uint8_t opcode; /* enum sg_wr_opcode */
	uint8_t max_sge;
	uint8_t flags;	  /* SG_OP_* */
	uint8_t body;	  /* minimum room behind the header; 0: any */
	uint32_t feature; /* required of the device; 0: none */
} send_ops[] = {
#define X(verbs, op, feature, elements, flags)                                  \
	[IBV_WR_##verbs] = { true,                                              \
			     SG_WR_##op,                                        \
			     elements,                                          \
			     flags,                                             \
			     (flags) & SG_OP_OPERANDS ? SG_WQE_ATOMIC_BODY : 0, \
			     feature },
	SG_SEND_OPS(X)
#undef X
		[IBV_WR_LOCAL_INV] = { true, SG_WR_LOCAL_INV, .feature = SG_FEATURE_MW },
	[IBV_WR_BIND_MW] = { true, SG_WR_BIND_MW, .body = sizeof(struct sg_wqe_bind),
			     .feature = SG_FEATURE_MW },
	/* No row for IBV_WR_FLUSH: struct ibv_send_wr has no place for its type and level. */
};

/* Only windows of type 2: those of type 1 have ibv_bind_mw(). */
static int set_bind(struct sg_wqe_hdr *wqe, const struct ibv_send_wr *wr)
{
	if (wr->bind_mw.mw->type != IBV_MW_TYPE_2)
		return EINVAL;
	return sgp_set_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
}

/* 0, or EOPNOTSUPP: the message could not carry it. */
static int check_empty(const struct ibv_send_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].length)
			return EOPNOTSUPP;
	}
	return 0;
}

static inline int set_operands(struct sg_wqe_hdr *wqe, const struct ibv_send_wr *wr)
{
	switch (wqe->opcode) {
	case SG_WR_SEND_INV:
	case SG_WR_LOCAL_INV:
		sg_wqe_set_inv(wqe, wr->invalidate_rkey);
		break;
	case SG_WR_WRITE_IMM:
		sg_wqe_set_imm(wqe, &wr->imm_data);
		/* fall through */
	case SG_WR_WRITE:
	case SG_WR_READ:
	case SG_WR_ATOMIC_WRITE:
		sg_wqe_set_remote(wqe, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case SG_WR_SEND_IMM:
		sg_wqe_set_imm(wqe, &wr->imm_data);
		return check_empty(wr);
	case SG_WR_FETCH_ADD:
		sg_wqe_set_remote(wqe, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr);
		sg_wqe_set_atomic(wqe, wr->wr.atomic.compare_add, 0, 0, 0);
		break;
	case SG_WR_CMP_SWAP:
		sg_wqe_set_remote(wqe, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr);
		sg_wqe_set_atomic(wqe, wr->wr.atomic.swap, UINT64_MAX, wr->wr.atomic.compare_add,
				  UINT64_MAX);
		break;
	case SG_WR_BIND_MW:
		return set_bind(wqe, wr);
	}
	return 0;
}

static int set_inline(const struct sgp_qp *qp, struct sg_wqe_hdr *wqe, const struct ibv_send_wr *wr)
{
	uint32_t used = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		used = sgp_wqe_append_inline(wqe, used, qp->max_inline,
					     (const void *)(uintptr_t)sge->addr, sge->length);
		if (used == SGP_INLINE_TOO_LONG)
			return EINVAL;
	}
	sg_wqe_set_inline_len(wqe, used);
	return 0;
}

static inline void set_sges(struct sg_sge *dst, const struct ibv_sge *src, uint32_t num)
{
	uint32_t i;

	for (i = 0; i < num; i++)
		sg_sge_set(&dst[i], src[i].addr, src[i].length, src[i].lkey);
}

/* Fills the slot of index; 0 or an errno value, then the content of the slot has no effect. */
static int build_send(struct sgp_qp *qp, uint32_t index, const struct ibv_send_wr *wr)
{
	uint32_t num_sge = (uint32_t)wr->num_sge;
	const struct send_op *op;
	struct sg_wqe_hdr *wqe;
	uint8_t flags;
	int ret;

	if (unlikely((uint32_t)wr->opcode >= ARRAY_SIZE(send_ops) || !send_ops[wr->opcode].valid))
		return EOPNOTSUPP;
	op = &send_ops[wr->opcode];
	if (unlikely(op->feature & ~qp->features || op->body > qp->sq_room))
		return EOPNOTSUPP;
	if (unlikely(op->flags & SG_OP_ATOM && (num_sge != 1 || wr->sg_list->length != SG_ATOM)))
		return EINVAL;
	if (unlikely(wr->send_flags & ~(unsigned int)(SGP_SEND_FLAGS | IBV_SEND_INLINE)))
		return EOPNOTSUPP;
	if (unlikely(sgp_ring_full(&qp->sq, index)))
		return ENOMEM;

	flags = sgp_wqe_flags[wr->send_flags & SGP_SEND_FLAGS] | qp->sq_flags;
	if (!(op->flags & SG_OP_SOLICITS))
		flags &= (uint8_t)~SG_WQE_SOLICITED;
	wqe = sgp_ring_slot(&qp->sq, index);
	sg_wqe_init(wqe, index, op->opcode, flags, wr->wr_id);
	ret = set_operands(wqe, wr);
	if (unlikely(ret))
		return ret;
	if (op->opcode == SG_WR_SEND_IMM)
		return 0;
	if (wr->send_flags & IBV_SEND_INLINE)
		return op->flags & SG_OP_INLINE ? set_inline(qp, wqe, wr) : EINVAL;

	if (unlikely(num_sge > qp->sq_max_sge || num_sge > op->max_sge))
		return EINVAL;
	wqe->num_sge = (uint8_t)num_sge;
	set_sges(sg_wqe_sge(wqe), wr->sg_list, num_sge);
	return 0;
}

int sgp_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct sgp_qp *qp = to_sgp_qp(ibqp);
	uint32_t head;
	int ret = 0;

	sgp_lock(&qp->sq_lock);
	for (head = qp->sq.head; wr; wr = wr->next, head++) {
		ret = build_send(qp, head, wr);
		if (unlikely(ret)) {
			*bad_wr = wr;
			break;
		}
	}
	if (likely(head != qp->sq.head)) {
		qp->sq.head = head;
		sgp_doorbell(qp->db, SG_DB_SQ, qp->qpn, head);
	}
	sgp_unlock(&qp->sq_lock);
	return ret;
}

static int build_recv(struct sgp_rq *rq, uint32_t index, const struct ibv_recv_wr *wr)
{
	uint32_t num_sge = (uint32_t)wr->num_sge;
	struct sg_rqe_hdr *rqe;

	if (unlikely(sgp_ring_full(&rq->ring, index)))
		return ENOMEM;
	if (unlikely(num_sge > rq->max_sge))
		return EINVAL;
	rqe = sgp_ring_slot(&rq->ring, index);
	sg_rqe_init(rqe, index, (uint8_t)num_sge, wr->wr_id);
	set_sges(sg_rqe_sge(rqe), wr->sg_list, num_sge);
	return 0;
}

static int post_recv(struct sgp_rq *rq, uint8_t *db, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	uint32_t head;
	int ret = 0;

	sgp_lock(&rq->lock);
	for (head = rq->ring.head; wr; wr = wr->next, head++) {
		ret = build_recv(rq, head, wr);
		if (unlikely(ret)) {
			*bad_wr = wr;
			break;
		}
	}
	if (likely(head != rq->ring.head)) {
		rq->ring.head = head;
		sgp_doorbell(db, rq->doorbell, rq->number, head);
	}
	sgp_unlock(&rq->lock);
	return ret;
}

int sgp_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct sgp_qp *qp = to_sgp_qp(ibqp);

	if (unlikely(qp->srq)) {
		*bad_wr = wr;
		return EINVAL;
	}
	return post_recv(&qp->rq, qp->db, wr, bad_wr);
}

int sgp_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return post_recv(&to_sgp_srq(ibsrq)->rq, to_sgp_context(ibsrq->context)->db, wr, bad_wr);
}
