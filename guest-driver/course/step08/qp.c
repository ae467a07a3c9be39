// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 8 of docs/course: queue pairs, and what is posted to them.
 */
#include "step06/memory.h"
#include "step08/qp.h"

#define COURSE_QP_ENTRIES 16
#define COURSE_SQ_STRIDE 128 /* header of 48 octets, one element of 16 */
#define COURSE_RQ_STRIDE 64
#define COURSE_QP_ACCESS (SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE)

int course_qp_create(struct course_qp *qp, struct course_device *d, u32 pd,
		     const struct course_cq *cq)
{
	struct sg_cmd_create_qp c = {
		.hdr.opcode = SG_ADMIN_CREATE_QP,
		.pd = cpu_to_le32(pd),
		.send_cqn = cpu_to_le32(cq->cqn),
		.recv_cqn = cpu_to_le32(cq->cqn),
		.sq_entries = cpu_to_le32(COURSE_QP_ENTRIES),
		.rq_entries = cpu_to_le32(COURSE_QP_ENTRIES),
		.sq_stride = cpu_to_le16(COURSE_SQ_STRIDE),
		.rq_stride = cpu_to_le16(COURSE_RQ_STRIDE),
		.sq_max_sge = 1,
		.rq_max_sge = 1,
		.access = cpu_to_le32(COURSE_QP_ACCESS),
	};
	int ret;

	qp->d = d;
	ret = course_ring_alloc(&d->regs, &qp->sq, COURSE_QP_ENTRIES, COURSE_SQ_STRIDE);
	if (!ret)
		ret = course_ring_alloc(&d->regs, &qp->rq, COURSE_QP_ENTRIES, COURSE_RQ_STRIDE);
	if (ret)
		return ret;
	c.sq_pages = course_contiguous(qp->sq.dma, COURSE_QP_ENTRIES * COURSE_SQ_STRIDE);
	c.rq_pages = course_contiguous(qp->rq.dma, COURSE_QP_ENTRIES * COURSE_RQ_STRIDE);
	return course_make(&d->admin, &c, sizeof(c), &qp->qpn);
}

void course_qp_destroy(struct course_qp *qp)
{
	if (qp->qpn)
		course_end(&qp->d->admin, SG_ADMIN_DESTROY_QP, qp->qpn);
	qp->qpn = 0;
}

void course_qp_free(struct course_qp *qp)
{
	if (!qp->d)
		return;
	course_ring_free(&qp->d->regs, &qp->rq);
	course_ring_free(&qp->d->regs, &qp->sq);
}

int course_qp_modify(struct course_qp *qp, u32 state)
{
	struct sg_cmd_modify_qp c = {
		.hdr.opcode = SG_ADMIN_MODIFY_QP,
		.qpn = cpu_to_le32(qp->qpn),
		.mask = cpu_to_le32(SG_QP_MOD_STATE),
		.state = cpu_to_le32(state),
	};
	struct sg_admin_rsp rsp;

	return course_command(&qp->d->admin, &c, sizeof(c), &rsp);
}

static void course_put_element(struct sg_sge *sge, const struct course_wr *wr)
{
	sge->addr = cpu_to_le64(wr->addr);
	sge->length = cpu_to_le32(wr->length);
	sge->lkey = cpu_to_le32(wr->lkey);
}

/* The entry, its index included, is in memory before the doorbell covers it. */
int course_post_send(struct course_qp *qp, const struct course_wr *wr)
{
	struct sg_wqe_hdr *h = course_ring_slot(&qp->sq, qp->sq.prod);

	if (sg_index_full(qp->sq.prod, qp->sq.cons, qp->sq.entries))
		return -ENOSPC;
	memset(h, 0, COURSE_SQ_STRIDE);
	h->wr_id = cpu_to_le64(wr->id);
	h->opcode = wr->opcode;
	h->flags = wr->flags;
	h->num_sge = 1;
	h->index = cpu_to_le32(qp->sq.prod);
	h->remote_addr = cpu_to_le64(wr->remote_addr);
	h->rkey = cpu_to_le32(wr->rkey);
	course_put_element((struct sg_sge *)(h + 1), wr);
	dma_wmb();
	course_doorbell(qp->d, SG_DB_SQ, qp->qpn, ++qp->sq.prod);
	return 0;
}

int course_post_recv(struct course_qp *qp, const struct course_wr *wr)
{
	struct sg_rqe_hdr *h = course_ring_slot(&qp->rq, qp->rq.prod);

	if (sg_index_full(qp->rq.prod, qp->rq.cons, qp->rq.entries))
		return -ENOSPC;
	memset(h, 0, COURSE_RQ_STRIDE);
	h->wr_id = cpu_to_le64(wr->id);
	h->index = cpu_to_le32(qp->rq.prod);
	h->num_sge = 1;
	course_put_element((struct sg_sge *)(h + 1), wr);
	dma_wmb();
	course_doorbell(qp->d, SG_DB_RQ, qp->qpn, ++qp->rq.prod);
	return 0;
}

/* A completion frees its entry and all before it: those without a completion of their own. */
void course_qp_completed(struct course_qp *qp, const struct sg_cqe *e)
{
	struct course_ring *ring = e->flags_phase & SG_CQE_RECV ? &qp->rq : &qp->sq;

	ring->cons = le32_to_cpu(e->wr_index) + 1;
}
