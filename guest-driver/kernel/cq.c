// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completion queues.
 *
 * The adapter writes entries into a ring and never stops for the consumer; it looks at the record
 * behind the ring only when the ring seems full.  A new entry shows by its phase bit.  Kernel
 * queues are polled here; user space polls its own.
 *
 * A lost adapter writes no more completions, but consumers that drain their queues wait for them:
 * once the ring is empty, polling completes what is left of the kernel queue pairs as flushed, in
 * order, from the entries in the queues themselves.
 */
#include <linux/dma-mapping.h>

#include "staghorn.h"

#define SGH_CQE_NOBODY 0xffffffffu /* qpn of an entry whose queue pair is gone */

static int sgh_cq_user(struct sgh_dev *sg, struct sgh_cq *cq, struct ib_udata *udata,
		       struct sg_cmd_create_cq *cmd, struct sgh_pbl *pbl, u32 cqe)
{
	struct sgh_ucontext *ctx = rdma_udata_to_drv_context(udata, struct sgh_ucontext,
							     ibucontext);
	struct sg_abi_create_cq req;
	struct ib_block_iter it;
	u64 record, pos = 0;
	size_t size;
	int ret;

	if (udata->inlen < sizeof(req))
		return -EINVAL;
	ret = ib_copy_from_udata(&req, udata, sizeof(req));
	if (ret)
		return ret;
	size = (size_t)req.entries * sizeof(struct sg_cqe);
	if (!is_power_of_2(req.entries) || req.entries < cqe || req.entries > sg->caps.max_cqe ||
	    !PAGE_ALIGNED(req.buf) || req.buf_len < size + sizeof(struct sg_cq_record))
		return -EINVAL;

	cq->umem = ib_umem_get(cq->ibcq.device, req.buf, req.buf_len, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(cq->umem)) {
		ret = PTR_ERR(cq->umem);
		cq->umem = NULL;
		return ret;
	}
	record = 0;
	rdma_umem_for_each_dma_block(cq->umem, &it, SG_PAGE_SIZE) {
		if (size - pos < SG_PAGE_SIZE) {
			record = rdma_block_iter_dma_address(&it) + (size - pos);
			break;
		}
		pos += SG_PAGE_SIZE;
	}
	ret = sgh_pbl_from_umem(sg, pbl, cq->umem, SG_PAGE_SIZE, DIV_ROUND_UP(size, SG_PAGE_SIZE));
	if (ret) {
		ib_umem_release(cq->umem);
		cq->umem = NULL;
		return ret;
	}
	cq->entries = req.entries;
	cmd->uar = cpu_to_le32(ctx->uar);
	cmd->record = cpu_to_le64(record);
	return 0;
}

static int sgh_cq_kernel(struct sgh_dev *sg, struct sgh_cq *cq, struct sg_cmd_create_cq *cmd,
			 struct sgh_pbl *pbl, u32 cqe)
{
	int ret;

	cq->entries = roundup_pow_of_two(max_t(u32, cqe,
					       min_t(u32, SGH_CQ_ENTRIES_MIN, sg->caps.max_cqe)));
	ret = sgh_buf_alloc(sg, &cq->buf, (size_t)cq->entries * sizeof(struct sg_cqe));
	if (ret)
		return ret;
	cq->record = dma_alloc_coherent(&sg->pdev->dev, sizeof(*cq->record), &cq->record_dma,
					GFP_KERNEL);
	if (!cq->record) {
		ret = -ENOMEM;
		goto err_buf;
	}
	ret = sgh_pbl_from_buf(sg, pbl, &cq->buf);
	if (ret)
		goto err_record;
	cmd->record = cpu_to_le64(cq->record_dma);
	return 0;

err_record:
	dma_free_coherent(&sg->pdev->dev, sizeof(*cq->record), cq->record, cq->record_dma);
err_buf:
	sgh_buf_free(sg, &cq->buf);
	return ret;
}

static void sgh_cq_free_memory(struct sgh_dev *sg, struct sgh_cq *cq)
{
	if (cq->umem) {
		ib_umem_release(cq->umem);
	} else {
		dma_free_coherent(&sg->pdev->dev, sizeof(*cq->record), cq->record, cq->record_dma);
		sgh_buf_free(sg, &cq->buf);
	}
}

/*
 * Creates the adapter's queue and enters it in the table.  -EIO, of an adapter that is alive: it
 * has the queue and would not give it back.
 */
static int sgh_cq_command(struct sgh_dev *sg, struct sgh_cq *cq, struct sg_cmd_create_cq *cmd)
{
	struct sg_admin_rsp rsp;
	int ret;

	mutex_lock(&sg->id_mutex);
	ret = sgh_admin(sg, SG_ADMIN_CREATE_CQ, cmd, sizeof(*cmd), &rsp);
	if (ret)
		goto out;
	cq->cqn = le32_to_cpu(rsp.id);
	ret = xa_err(xa_store(&sg->cqs, cq->cqn, cq, GFP_KERNEL));
	if (ret && sgh_admin_destroy(sg, SG_ADMIN_DESTROY_CQ, cq->cqn))
		ret = -EIO;
out:
	mutex_unlock(&sg->id_mutex);
	return ret;
}

int sgh_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, sgh_create_cq_arg *arg)
{
	struct ib_udata *udata = sgh_create_cq_udata(arg);
	struct sgh_dev *sg = to_sgh(ibcq->device);
	struct sgh_cq *cq = to_sgh_cq(ibcq);
	struct sg_abi_create_cq_resp resp = { };
	struct sg_cmd_create_cq cmd = { };
	struct sgh_pbl pbl;
	int ret;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > sg->caps.max_cqe)
		return -EINVAL;
	spin_lock_init(&cq->lock);
	INIT_LIST_HEAD(&cq->send_qps);
	INIT_LIST_HEAD(&cq->recv_qps);
	cq->eq = &sg->ceqs[attr->comp_vector % sg->num_ceqs];

	ret = udata ? sgh_cq_user(sg, cq, udata, &cmd, &pbl, attr->cqe)
		    : sgh_cq_kernel(sg, cq, &cmd, &pbl, attr->cqe);
	if (ret)
		return ret;
	cmd.entries = cpu_to_le32(cq->entries);
	cmd.eqn = cpu_to_le32(cq->eq->eqn);
	cmd.pages = pbl.desc;
	ret = sgh_cq_command(sg, cq, &cmd);
	sgh_pbl_free(sg, &pbl);
	if (ret == -EIO && !sgh_dead(sg))
		return ret; /* the adapter may still write: leave the memory to it */
	if (ret) {
		sgh_cq_free_memory(sg, cq);
		return ret;
	}
	ibcq->cqe = max_t(int, cq->entries - 1, attr->cqe);
	if (udata) {
		resp.cqn = cq->cqn;
		ret = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
		if (ret)
			sgh_destroy_cq(ibcq, udata);
	}
	return ret;
}

int sgh_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct sgh_dev *sg = to_sgh(ibcq->device);
	struct sgh_cq *cq = to_sgh_cq(ibcq);
	int ret;

	mutex_lock(&sg->id_mutex);
	ret = sgh_admin_destroy(sg, SG_ADMIN_DESTROY_CQ, cq->cqn);
	if (!ret)
		xa_erase(&sg->cqs, cq->cqn);
	mutex_unlock(&sg->id_mutex);
	if (ret)
		return ret;
	/* Whoever found it in the table before is done with it after this. */
	sgh_ceq_sync(sg, cq->eq);
	flush_work(&sg->event_work);
	flush_work(&sg->fatal_work);
	sgh_cq_free_memory(sg, cq);
	return 0;
}

void sgh_cq_event(struct sgh_dev *sg, u32 cqn)
{
	struct ib_event event = { .event = IB_EVENT_CQ_ERR };
	struct sgh_cq *cq;

	/* Destruction takes it out of the table and then waits for this work. */
	cq = xa_load(&sg->cqs, cqn);
	if (!cq)
		return;
	ibdev_err(cq->ibcq.device, "completion queue %u overran\n", cqn);
	event.device = cq->ibcq.device;
	event.element.cq = &cq->ibcq;
	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

/* In fatal_work: whoever waits for completions looks. */
void sgh_cq_kick_all(struct sgh_dev *sg)
{
	unsigned long cqn;
	struct sgh_cq *cq;

	xa_for_each(&sg->cqs, cqn, cq) {
		if (!cq->umem && cq->ibcq.comp_handler)
			cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	}
}

static struct sg_cqe *sgh_cqe_at(const struct sgh_cq *cq, u32 index)
{
	return sgh_buf_at(&cq->buf, (size_t)(index & (cq->entries - 1)) * sizeof(struct sg_cqe));
}

static struct sg_cqe *sgh_cqe_next(const struct sgh_cq *cq, u32 index)
{
	struct sg_cqe *cqe = sgh_cqe_at(cq, index);
	u8 want = index & cq->entries ? 0 : SG_CQE_PHASE;

	if ((READ_ONCE(cqe->flags_phase) & SG_CQE_PHASE) != want)
		return NULL;
	dma_rmb();
	return cqe;
}

/* The queue pair is destroyed and writes no more: its completions are nobody's now. */
void sgh_cq_scrub(struct sgh_cq *cq, const struct sgh_qp *qp)
{
	struct sg_cqe *cqe;
	unsigned long flags;
	u32 i;

	if (cq->umem)
		return;
	spin_lock_irqsave(&cq->lock, flags);
	for (i = cq->ci; i - cq->ci < cq->entries && (cqe = sgh_cqe_next(cq, i)); i++) {
		if (le32_to_cpu(cqe->qpn) != qp->qpn)
			continue;
		if (qp->ibqp.srq && cqe->flags_phase & SG_CQE_RECV)
			sgh_srq_release(to_sgh_srq(qp->ibqp.srq),
					le32_to_cpu(cqe->wr_index) + 1);
		cqe->qpn = cpu_to_le32(SGH_CQE_NOBODY);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
}

static enum ib_wc_status sgh_wc_status(u8 status)
{
	static const enum ib_wc_status table[] = {
		[SG_WC_SUCCESS] = IB_WC_SUCCESS,
		[SG_WC_LOC_LEN_ERR] = IB_WC_LOC_LEN_ERR,
		[SG_WC_LOC_QP_OP_ERR] = IB_WC_LOC_QP_OP_ERR,
		[SG_WC_LOC_PROT_ERR] = IB_WC_LOC_PROT_ERR,
		[SG_WC_FLUSH_ERR] = IB_WC_WR_FLUSH_ERR,
		[SG_WC_REM_INV_REQ_ERR] = IB_WC_REM_INV_REQ_ERR,
		[SG_WC_REM_ACCESS_ERR] = IB_WC_REM_ACCESS_ERR,
		[SG_WC_REM_OP_ERR] = IB_WC_REM_OP_ERR,
		[SG_WC_MW_BIND_ERR] = IB_WC_MW_BIND_ERR,
		[SG_WC_FATAL_ERR] = IB_WC_FATAL_ERR,
		[SG_WC_GENERAL_ERR] = IB_WC_GENERAL_ERR,
		[SG_WC_RETRY_EXC_ERR] = IB_WC_RETRY_EXC_ERR,
	};

	return status < ARRAY_SIZE(table) ? table[status] : IB_WC_GENERAL_ERR;
}

/* cq->lock held.  False: the entry's queue pair is gone. */
static bool sgh_fill_wc(struct sgh_dev *sg, const struct sg_cqe *cqe, struct ib_wc *wc)
{
	struct sgh_qp *qp = xa_load(&sg->qps, le32_to_cpu(cqe->qpn));
	u32 done = le32_to_cpu(cqe->wr_index) + 1;

	if (!qp)
		return false;
	if (!(cqe->flags_phase & SG_CQE_RECV))
		WRITE_ONCE(qp->sq.ci, done);
	else if (!qp->ibqp.srq)
		WRITE_ONCE(qp->rq.ci, done);
	else
		sgh_srq_release(to_sgh_srq(qp->ibqp.srq), done);

	memset(wc, 0, sizeof(*wc));
	wc->wr_id = le64_to_cpu(cqe->wr_id);
	wc->status = sgh_wc_status(cqe->status);
	wc->opcode = sgh_wc_opcode(cqe->opcode);
	wc->vendor_err = le32_to_cpu(cqe->vendor_err);
	wc->byte_len = le32_to_cpu(cqe->byte_len);
	wc->qp = &qp->ibqp;
	wc->port_num = 1;
	if (cqe->flags_phase & SG_CQE_WITH_INV) {
		wc->wc_flags = IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = le32_to_cpu(cqe->inv_stag);
	} else if (cqe->flags_phase & SG_CQE_WITH_IMM) {
		wc->wc_flags = IB_WC_WITH_IMM;
		memcpy(&wc->ex.imm_data, &cqe->imm, sizeof(wc->ex.imm_data));
	}
	return true;
}

static int sgh_flush_wq(struct sgh_qp *qp, struct sgh_wq *wq, bool recv, int num,
			struct ib_wc *wc)
{
	int n = 0;

	spin_lock(&wq->lock);
	while (n < num && wq->ci != wq->pi) {
		const void *entry = sgh_wqe_at(wq, wq->ci);

		memset(&wc[n], 0, sizeof(wc[n]));
		wc[n].status = IB_WC_WR_FLUSH_ERR;
		wc[n].qp = &qp->ibqp;
		wc[n].port_num = 1;
		if (recv) {
			wc[n].wr_id = le64_to_cpu(((const struct sg_rqe_hdr *)entry)->wr_id);
			wc[n].opcode = IB_WC_RECV;
		} else {
			const struct sg_wqe_hdr *hdr = entry;

			wc[n].wr_id = le64_to_cpu(hdr->wr_id);
			wc[n].opcode = sgh_wc_opcode(hdr->opcode);
		}
		wq->ci++;
		n++;
	}
	spin_unlock(&wq->lock);
	return n;
}

static int sgh_flush_dead(struct sgh_cq *cq, int num, struct ib_wc *wc)
{
	struct sgh_qp *qp;
	int n = 0;

	list_for_each_entry(qp, &cq->send_qps, sq.cq_link)
		n += sgh_flush_wq(qp, &qp->sq, false, num - n, wc + n);
	list_for_each_entry(qp, &cq->recv_qps, rq.cq_link)
		n += sgh_flush_wq(qp, &qp->rq, true, num - n, wc + n);
	return n;
}

int sgh_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct sgh_dev *sg = to_sgh(ibcq->device);
	struct sgh_cq *cq = to_sgh_cq(ibcq);
	unsigned long flags;
	struct sg_cqe *cqe;
	u32 first;
	int n = 0;

	spin_lock_irqsave(&cq->lock, flags);
	first = cq->ci;
	while (n < num && (cqe = sgh_cqe_next(cq, cq->ci))) {
		if (sgh_fill_wc(sg, cqe, &wc[n]))
			n++;
		cq->ci++;
	}
	if (cq->ci != first) {
		/* Entries were read before the adapter may reuse them. */
		smp_mb();
		WRITE_ONCE(cq->record->consumer_index, cpu_to_le32(cq->ci));
	}
	if (n < num && unlikely(sgh_dead(sg)))
		n += sgh_flush_dead(cq, num - n, wc + n);
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

int sgh_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct sgh_dev *sg = to_sgh(ibcq->device);
	struct sgh_cq *cq = to_sgh_cq(ibcq);
	unsigned long irqflags;
	u32 arm = cq->cqn;
	int ret = 0;

	if ((flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED)
		arm |= SG_CQ_ARM_SOLICITED;
	spin_lock_irqsave(&cq->lock, irqflags);
	if (!sgh_dead(sg))
		sgh_doorbell(sg, SG_DB_CQ_ARM, arm, cq->ci);
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		ret = !!sgh_cqe_next(cq, cq->ci);
	spin_unlock_irqrestore(&cq->lock, irqflags);
	return ret;
}
