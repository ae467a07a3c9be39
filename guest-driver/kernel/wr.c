// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Posting work requests of kernel consumers.
 *
 * An entry is complete before the doorbell is written; posting several requests costs one doorbell.
 * Completions free slots: each frees all entries up to its own.
 *
 * On a lost adapter entries are still accepted, and the consumer is called at once to find them
 * flushed (cq.c), so that draining ends.
 */
#include <staghorn/wqe.h>

#include "flush_wr.h"
#include "mr.h"
#include "qp.h"
#include "srq.h"

/* The adapter's name of an operation, and the feature it needs.  No row: not supported. */
static const struct sgh_send_op {
	bool valid;
	u8 opcode; /* enum sg_wr_opcode */
	u8 flags;  /* SG_OP_* */
	u32 feature;
} sgh_send_ops[] = {
#define X(verbs, op, feature, elements, flags) \
	[IB_WR_##verbs] = { true, SG_WR_##op, flags, feature },
	SG_SEND_OPS(X)
#undef X
		[IB_WR_RDMA_READ_WITH_INV] = { true, SG_WR_READ_INV, 0, SG_FEATURE_READ_INV },
	[IB_WR_LOCAL_INV] = { true, SG_WR_LOCAL_INV, 0, SG_FEATURE_FAST_REG },
	[IB_WR_REG_MR] = { true, SG_WR_REG_MR, 0, SG_FEATURE_FAST_REG },
	[IB_WR_MASKED_ATOMIC_CMP_AND_SWP] = { true, SG_WR_CMP_SWAP, 0, SG_FEATURE_ATOMICS },
	[IB_WR_MASKED_ATOMIC_FETCH_AND_ADD] = { true, SG_WR_FETCH_ADD, 0, SG_FEATURE_ATOMICS },
	[IB_WR_FLUSH] = { true, SG_WR_FLUSH, 0, SG_FEATURE_FLUSH },
};

/*
 * The row of a work request, or NULL.  Where the wire has no Send with Invalidate, the message goes
 * as a Send.  Linux's ULPs ask for the invalidation as a favour: the peer's ULP sees by its
 * completion that nothing was invalidated, and does it itself.  Programs in user space get
 * EOPNOTSUPP from the provider.
 */
static const struct sgh_send_op *sgh_send_op_of(const struct sgh_dev *dev, enum ib_wr_opcode opcode)
{
	if (opcode == IB_WR_SEND_WITH_INV && !sgh_has(dev, SG_FEATURE_SEND_INV))
		opcode = IB_WR_SEND;
	if (opcode >= ARRAY_SIZE(sgh_send_ops) || !sgh_send_ops[opcode].valid)
		return NULL;
	return &sgh_send_ops[opcode];
}

/*
 * For the opcode of a completion, or of a send queue entry.  Masked operations complete like those
 * without masks: the adapter has one opcode for both.
 */
enum ib_wc_opcode sgh_wc_opcode(u8 opcode)
{
	switch (opcode) {
#define X(name, number, verbs) \
	case SG_WC_##name:     \
		return IB_WC_##verbs;
		SG_WC_SEND_OPCODES(X)
#undef X
	case SG_WR_READ_INV:
		return IB_WC_RDMA_READ;
	case SG_WC_REG_MR:
		return IB_WC_REG_MR;
	case SG_WC_RECV:
		return IB_WC_RECV;
	case SG_WC_RECV_IMM:
		return IB_WC_RECV_RDMA_WITH_IMM;
	default:
		return IB_WC_SEND;
	}
}

static void sgh_fill_sges(struct sg_sge *to, const struct ib_sge *from, int num)
{
	int i;

	for (i = 0; i < num; i++)
		sg_sge_set(&to[i], from[i].addr, from[i].length, from[i].lkey);
}

/* The inline payload of kernel consumers is at kernel addresses. */
static int sgh_fill_inline(struct sgh_qp *qp, struct sg_wqe_hdr *hdr, const struct ib_send_wr *wr)
{
	u8 *to = (u8 *)(hdr + 1);
	u32 len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->max_inline - len)
			return -EINVAL;
		memcpy(to + len, (void *)(uintptr_t)sge->addr, sge->length);
		len += sge->length;
	}
	sg_wqe_set_inline_len(hdr, len);
	return 0;
}

static int sgh_fill_reg(struct sg_wqe_hdr *hdr, const struct ib_reg_wr *wr)
{
	const struct sgh_mr *mr = to_sgh_mr(wr->mr);
	struct sg_wqe_reg reg = {};

	if (!mr->pages)
		return -EINVAL;
	reg.stag = cpu_to_le32(wr->key);
	reg.access = cpu_to_le32(sgh_access(wr->access));
	reg.va = cpu_to_le64(mr->ibmr.iova);
	reg.length = cpu_to_le64(mr->ibmr.length);
	reg.pbl_addr = cpu_to_le64(mr->pages_dma);
	reg.npages = cpu_to_le32(mr->npages);
	reg.page_shift = ilog2(mr->ibmr.page_size);
	sg_wqe_set_reg(hdr, &reg);
	return 0;
}

static int sgh_fill_flush(struct sgh_dev *dev, struct sg_wqe_hdr *hdr,
			  const struct sgh_flush_wr *wr)
{
	bool region = wr->level == IB_FLUSH_MR;
	u32 flags = region ? SG_FLUSH_REGION : 0;

	if (wr->wr.num_sge || wr->wr.send_flags & IB_SEND_INLINE || !wr->type ||
	    wr->type & ~(IB_FLUSH_GLOBAL | IB_FLUSH_PERSISTENT) || wr->level > IB_FLUSH_MR)
		return -EINVAL;
	if (region && !sgh_has(dev, SG_FEATURE_FLUSH_REGION))
		return -EOPNOTSUPP;
	if (wr->type & IB_FLUSH_GLOBAL)
		flags |= SG_FLUSH_GLOBAL;
	if (wr->type & IB_FLUSH_PERSISTENT)
		flags |= SG_FLUSH_PERSISTENT;
	sg_wqe_set_remote(hdr, wr->rkey, region ? 0 : wr->remote_addr);
	sg_wqe_set_place(hdr, region ? 0 : wr->length, flags);
	return 0;
}

static int sgh_fill_atomic(struct sg_wqe_hdr *hdr, const struct ib_atomic_wr *wr)
{
	const struct ib_send_wr *send = &wr->wr;

	if (send->num_sge != 1 || send->sg_list->length != SG_ATOM ||
	    send->send_flags & IB_SEND_INLINE)
		return -EINVAL;
	sg_wqe_set_remote(hdr, wr->rkey, wr->remote_addr);
	switch (send->opcode) {
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		sg_wqe_set_atomic(hdr, wr->compare_add, 0, 0, 0);
		break;
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		sg_wqe_set_atomic(hdr, wr->compare_add, wr->compare_add_mask, 0, 0);
		break;
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
		sg_wqe_set_atomic(hdr, wr->swap, wr->swap_mask, wr->compare_add,
				  wr->compare_add_mask);
		break;
	default:
		sg_wqe_set_atomic(hdr, wr->swap, U64_MAX, wr->compare_add, U64_MAX);
	}
	hdr->num_sge = 1;
	sgh_fill_sges(sg_wqe_sge(hdr), send->sg_list, 1);
	return 0;
}

/*
 * Immediate data: four of the message's eight octets, copied as they are in memory.
 * A Send with immediate data has no payload.
 */
static int sgh_fill_imm(struct sg_wqe_hdr *hdr, const struct ib_send_wr *wr)
{
	int i;

	for (i = 0; hdr->opcode == SG_WR_SEND_IMM && i < wr->num_sge; i++) {
		if (wr->sg_list[i].length)
			return -EOPNOTSUPP;
	}
	sg_wqe_set_imm(hdr, &wr->ex.imm_data);
	return 0;
}

static int sgh_fill_payload(struct sgh_qp *qp, struct sg_wqe_hdr *hdr, const struct ib_send_wr *wr)
{
	if (wr->num_sge > qp->sq.max_sge)
		return -EINVAL;
	if (wr->send_flags & IB_SEND_INLINE)
		return sgh_fill_inline(qp, hdr, wr);
	hdr->num_sge = wr->num_sge;
	sgh_fill_sges(sg_wqe_sge(hdr), wr->sg_list, wr->num_sge);
	return 0;
}

static void sgh_fill_remote(struct sg_wqe_hdr *hdr, const struct ib_rdma_wr *wr)
{
	sg_wqe_set_remote(hdr, wr->rkey, wr->remote_addr);
}

static int sgh_fill_send(struct sgh_qp *qp, struct sg_wqe_hdr *hdr, const struct ib_send_wr *wr)
{
	const struct sgh_send_op *op = sgh_send_op_of(qp->dev, wr->opcode);
	u8 opcode;

	if (!op)
		return -EINVAL;
	if (!sgh_has(qp->dev, op->feature))
		return -EOPNOTSUPP;
	opcode = op->opcode;
	sg_wqe_init(hdr, qp->sq.pi, opcode, 0, wr->wr_id);
	if (wr->send_flags & IB_SEND_SIGNALED || qp->signal_all)
		hdr->flags |= SG_WQE_SIGNALED;
	if (wr->send_flags & IB_SEND_SOLICITED && op->flags & SG_OP_SOLICITS)
		hdr->flags |= SG_WQE_SOLICITED;
	if (wr->send_flags & IB_SEND_FENCE)
		hdr->flags |= SG_WQE_FENCE;

	switch (opcode) {
	case SG_WR_SEND_INV:
		sg_wqe_set_inv(hdr, wr->ex.invalidate_rkey);
		fallthrough;
	case SG_WR_SEND:
		return sgh_fill_payload(qp, hdr, wr);
	case SG_WR_READ_INV:
		sg_wqe_set_inv(hdr, wr->ex.invalidate_rkey);
		fallthrough;
	case SG_WR_READ:
		if (wr->send_flags & IB_SEND_INLINE ||
		    (opcode == SG_WR_READ_INV && wr->num_sge > 1))
			return -EINVAL;
		fallthrough;
	case SG_WR_WRITE:
		sgh_fill_remote(hdr, rdma_wr(wr));
		return sgh_fill_payload(qp, hdr, wr);
	case SG_WR_WRITE_IMM:
		sgh_fill_imm(hdr, wr);
		sgh_fill_remote(hdr, rdma_wr(wr));
		return sgh_fill_payload(qp, hdr, wr);
	case SG_WR_SEND_IMM:
		return sgh_fill_imm(hdr, wr);
	case SG_WR_FETCH_ADD:
	case SG_WR_CMP_SWAP:
		return sgh_fill_atomic(hdr, atomic_wr(wr));
	case SG_WR_ATOMIC_WRITE:
		if (wr->num_sge != 1 || wr->sg_list->length != SG_ATOM)
			return -EINVAL;
		sgh_fill_remote(hdr, rdma_wr(wr));
		return sgh_fill_payload(qp, hdr, wr);
	case SG_WR_FLUSH:
		return sgh_fill_flush(qp->dev, hdr, sgh_flush_wr(wr));
	case SG_WR_LOCAL_INV:
		sg_wqe_set_inv(hdr, wr->ex.invalidate_rkey);
		return 0;
	case SG_WR_REG_MR:
		return sgh_fill_reg(hdr, reg_wr(wr));
	default:
		return -EINVAL;
	}
}

static void sgh_kick_cq(struct ib_cq *ibcq)
{
	/* For IB_POLL_DIRECT the handler only WARNs, so skip it. */
	if (ibcq->comp_handler && ibcq->poll_ctx != IB_POLL_DIRECT)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
}

/* The slot to fill next, or NULL: the queue is full.  wq->lock held, as for the two below. */
static void *sgh_wq_slot(const struct sgh_wq *wq)
{
	if (sg_index_full(wq->pi, READ_ONCE(wq->ci), wq->entries))
		return NULL;
	return sgh_wqe_at(wq, wq->pi);
}

/* Rings the doorbell for the entries from first on, if there are any. */
static void sgh_wq_ring(struct sgh_dev *dev, const struct sgh_wq *wq, u32 doorbell, u32 number,
			u32 first)
{
	if (wq->pi != first && !sgh_dead(dev))
		sgh_doorbell(dev, doorbell, number, wq->pi);
}

int sgh_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad_wr)
{
	struct sgh_qp *qp = to_sgh_qp(ibqp);
	struct sgh_wq *wq = &qp->sq;
	unsigned long flags;
	int ret = 0;
	u32 first;

	/* User space posts itself; its queue is not mapped here. */
	if (qp->user) {
		*bad_wr = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&wq->lock, flags);
	for (first = wq->pi; wr; wr = wr->next) {
		struct sg_wqe_hdr *hdr = sgh_wq_slot(wq);

		ret = hdr ? sgh_fill_send(qp, hdr, wr) : -ENOMEM;
		if (ret)
			break;
		wq->pi++;
	}
	sgh_wq_ring(qp->dev, wq, SG_DB_SQ, qp->qpn, first);
	spin_unlock_irqrestore(&wq->lock, flags);

	if (unlikely(sgh_dead(qp->dev)))
		sgh_kick_cq(ibqp->send_cq);
	if (ret)
		*bad_wr = wr;
	return ret;
}

static int sgh_fill_recv(const struct sgh_wq *wq, struct sg_rqe_hdr *hdr,
			 const struct ib_recv_wr *wr)
{
	if (wr->num_sge > wq->max_sge)
		return -EINVAL;
	sg_rqe_init(hdr, wq->pi, wr->num_sge, wr->wr_id);
	sgh_fill_sges(sg_rqe_sge(hdr), wr->sg_list, wr->num_sge);
	return 0;
}

/* Copies the new entry to the ring's successor, if there is one.  wq->lock held. */
static int sgh_wq_mirror(const struct sgh_wq *wq)
{
	const struct sgh_wq *next = wq->next;

	if (likely(!next))
		return 0;
	if (sg_index_full(wq->pi, READ_ONCE(wq->ci), next->entries))
		return -ENOMEM;
	sgh_wq_copy(next, wq, wq->pi);
	return 0;
}

static int sgh_wq_recv(struct sgh_dev *dev, struct sgh_wq *wq, u32 doorbell, u32 number,
		       const struct ib_recv_wr *wr, const struct ib_recv_wr **bad_wr)
{
	unsigned long flags;
	int ret = 0;
	u32 first;

	spin_lock_irqsave(&wq->lock, flags);
	for (first = wq->pi; wr; wr = wr->next) {
		struct sg_rqe_hdr *hdr = sgh_wq_slot(wq);

		ret = hdr ? sgh_fill_recv(wq, hdr, wr) : -ENOMEM;
		if (!ret)
			ret = sgh_wq_mirror(wq);
		if (ret)
			break;
		wq->pi++;
	}
	sgh_wq_ring(dev, wq, doorbell, number, first);
	spin_unlock_irqrestore(&wq->lock, flags);
	if (ret)
		*bad_wr = wr;
	return ret;
}

int sgh_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad_wr)
{
	struct sgh_qp *qp = to_sgh_qp(ibqp);
	int ret;

	if (qp->user || ibqp->srq) {
		*bad_wr = wr;
		return -EINVAL;
	}
	ret = sgh_wq_recv(qp->dev, &qp->rq, SG_DB_RQ, qp->qpn, wr, bad_wr);
	if (unlikely(sgh_dead(qp->dev)))
		sgh_kick_cq(ibqp->recv_cq);
	return ret;
}

int sgh_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr)
{
	struct sgh_srq *srq = to_sgh_srq(ibsrq);

	if (srq->wq.umem) {
		*bad_wr = wr;
		return -EINVAL;
	}
	return sgh_wq_recv(to_sgh(ibsrq->device), &srq->wq, SG_DB_SRQ, srq->srqn, wr, bad_wr);
}
