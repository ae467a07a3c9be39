// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Posting work requests of kernel consumers.
 *
 * An entry is written whole before the doorbell; posting several requests costs one doorbell.  Room
 * in a queue comes back with completions, each of which frees all entries up to its own.
 *
 * On a lost adapter entries are still taken, and the consumer is called at once to find them
 * flushed (cq.c), so that draining ends.
 */
#include "staghorn.h"

#define SGH_OPCODE_NONE 0xff

static u8 sgh_wr_opcode(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_SEND:
		return SG_WR_SEND;
	case IB_WR_SEND_WITH_INV:
		return SG_WR_SEND_INV;
	case IB_WR_RDMA_WRITE:
		return SG_WR_WRITE;
	case IB_WR_RDMA_READ:
		return SG_WR_READ;
	case IB_WR_RDMA_READ_WITH_INV:
		return SG_WR_READ_INV;
	case IB_WR_LOCAL_INV:
		return SG_WR_LOCAL_INV;
	case IB_WR_REG_MR:
		return SG_WR_REG_MR;
	default:
		return SGH_OPCODE_NONE;
	}
}

/* Of a completion's opcode, or of a send queue entry's. */
enum ib_wc_opcode sgh_wc_opcode(u8 opcode)
{
	switch (opcode) {
	case SG_WC_WRITE:
		return IB_WC_RDMA_WRITE;
	case SG_WC_READ:
	case SG_WR_READ_INV:
		return IB_WC_RDMA_READ;
	case SG_WC_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case SG_WC_REG_MR:
		return IB_WC_REG_MR;
	case SG_WC_RECV:
		return IB_WC_RECV;
	default:
		return IB_WC_SEND;
	}
}

static void sgh_fill_sges(struct sg_sge *to, const struct ib_sge *from, int num)
{
	int i;

	for (i = 0; i < num; i++) {
		to[i].addr = cpu_to_le64(from[i].addr);
		to[i].length = cpu_to_le32(from[i].length);
		to[i].lkey = cpu_to_le32(from[i].lkey);
	}
}

/* Inline payload of kernel consumers is at kernel addresses. */
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
	hdr->flags |= SG_WQE_INLINE;
	hdr->inline_len = cpu_to_le16(len);
	return 0;
}

static int sgh_fill_reg(struct sg_wqe_hdr *hdr, const struct ib_reg_wr *wr)
{
	struct sg_wqe_reg *reg = (struct sg_wqe_reg *)(hdr + 1);
	const struct sgh_mr *mr = to_sgh_mr(wr->mr);

	if (!mr->pages)
		return -EINVAL;
	memset(reg, 0, sizeof(*reg));
	reg->stag = cpu_to_le32(wr->key);
	reg->access = cpu_to_le32(sgh_access(wr->access));
	reg->va = cpu_to_le64(mr->ibmr.iova);
	reg->length = cpu_to_le64(mr->ibmr.length);
	reg->pbl_addr = cpu_to_le64(mr->pages_dma);
	reg->npages = cpu_to_le32(mr->npages);
	reg->page_shift = ilog2(mr->ibmr.page_size);
	return 0;
}

static int sgh_fill_payload(struct sgh_qp *qp, struct sg_wqe_hdr *hdr,
			    const struct ib_send_wr *wr)
{
	if (wr->num_sge > qp->sq.max_sge)
		return -EINVAL;
	if (wr->send_flags & IB_SEND_INLINE)
		return sgh_fill_inline(qp, hdr, wr);
	hdr->num_sge = wr->num_sge;
	sgh_fill_sges((struct sg_sge *)(hdr + 1), wr->sg_list, wr->num_sge);
	return 0;
}

static int sgh_fill_send(struct sgh_qp *qp, struct sg_wqe_hdr *hdr, const struct ib_send_wr *wr)
{
	u8 opcode = sgh_wr_opcode(wr->opcode);

	memset(hdr, 0, sizeof(*hdr));
	hdr->wr_id = cpu_to_le64(wr->wr_id);
	hdr->opcode = opcode;
	hdr->index = cpu_to_le32(qp->sq.pi);
	if (wr->send_flags & IB_SEND_SIGNALED || qp->signal_all)
		hdr->flags |= SG_WQE_SIGNALED;
	if (wr->send_flags & IB_SEND_SOLICITED &&
	    (opcode == SG_WR_SEND || opcode == SG_WR_SEND_INV))
		hdr->flags |= SG_WQE_SOLICITED;
	if (wr->send_flags & IB_SEND_FENCE)
		hdr->flags |= SG_WQE_FENCE;

	switch (opcode) {
	case SG_WR_SEND_INV:
		hdr->inv_stag = cpu_to_le32(wr->ex.invalidate_rkey);
		fallthrough;
	case SG_WR_SEND:
		return sgh_fill_payload(qp, hdr, wr);
	case SG_WR_READ_INV:
		hdr->inv_stag = cpu_to_le32(wr->ex.invalidate_rkey);
		fallthrough;
	case SG_WR_READ:
		/* The Read Request names one sink. */
		if (wr->num_sge > 1 || wr->send_flags & IB_SEND_INLINE)
			return -EINVAL;
		fallthrough;
	case SG_WR_WRITE:
		hdr->remote_addr = cpu_to_le64(rdma_wr(wr)->remote_addr);
		hdr->rkey = cpu_to_le32(rdma_wr(wr)->rkey);
		return sgh_fill_payload(qp, hdr, wr);
	case SG_WR_LOCAL_INV:
		hdr->inv_stag = cpu_to_le32(wr->ex.invalidate_rkey);
		return 0;
	case SG_WR_REG_MR:
		return sgh_fill_reg(hdr, reg_wr(wr));
	default:
		return -EINVAL;
	}
}

static void sgh_kick_cq(struct ib_cq *ibcq)
{
	if (ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
}

int sgh_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr)
{
	struct sgh_qp *qp = to_sgh_qp(ibqp);
	struct sgh_wq *wq = &qp->sq;
	unsigned long flags;
	int ret = 0;
	u32 first;

	/* User space posts by itself; its queue is not mapped here. */
	if (qp->user) {
		*bad_wr = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&wq->lock, flags);
	first = wq->pi;
	for (; wr; wr = wr->next) {
		if (wq->pi - READ_ONCE(wq->ci) >= wq->entries) {
			ret = -ENOMEM;
			break;
		}
		ret = sgh_fill_send(qp, sgh_wqe_at(wq, wq->pi), wr);
		if (ret)
			break;
		wq->pi++;
	}
	if (wq->pi != first && !sgh_dead(qp->sg))
		sgh_doorbell(qp->sg, SG_DB_SQ, qp->qpn, wq->pi);
	spin_unlock_irqrestore(&wq->lock, flags);

	if (unlikely(sgh_dead(qp->sg)))
		sgh_kick_cq(ibqp->send_cq);
	if (ret)
		*bad_wr = wr;
	return ret;
}

int sgh_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr)
{
	struct sgh_qp *qp = to_sgh_qp(ibqp);
	struct sgh_wq *wq = &qp->rq;
	unsigned long flags;
	int ret = 0;
	u32 first;

	if (qp->user) {
		*bad_wr = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&wq->lock, flags);
	first = wq->pi;
	for (; wr; wr = wr->next) {
		struct sg_rqe_hdr *hdr;

		if (wq->pi - READ_ONCE(wq->ci) >= wq->entries) {
			ret = -ENOMEM;
			break;
		}
		if (wr->num_sge > wq->max_sge) {
			ret = -EINVAL;
			break;
		}
		hdr = sgh_wqe_at(wq, wq->pi);
		memset(hdr, 0, sizeof(*hdr));
		hdr->wr_id = cpu_to_le64(wr->wr_id);
		hdr->index = cpu_to_le32(wq->pi);
		hdr->num_sge = wr->num_sge;
		sgh_fill_sges((struct sg_sge *)(hdr + 1), wr->sg_list, wr->num_sge);
		wq->pi++;
	}
	if (wq->pi != first && !sgh_dead(qp->sg))
		sgh_doorbell(qp->sg, SG_DB_RQ, qp->qpn, wq->pi);
	spin_unlock_irqrestore(&wq->lock, flags);

	if (unlikely(sgh_dead(qp->sg)))
		sgh_kick_cq(ibqp->recv_cq);
	if (ret)
		*bad_wr = wr;
	return ret;
}
