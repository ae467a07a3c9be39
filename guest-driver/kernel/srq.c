// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared receive queues.
 *
 * Any of its queue pairs takes the oldest entry when a message begins, so entries complete in any
 * order, through any completion queue.  What comes back is therefore a count and not a position:
 * a completion's wr_index tells how many entries have completed by then, and room for as many new
 * ones is there (admin.h).  Completions of several queues are polled in any order; the largest
 * count that was seen is the truth.
 *
 * The adapter completes an entry whose queue pair is destroyed under it before the command that
 * destroys ends, so all are counted when the queue pair's completions are thrown away.
 */
#include "staghorn.h"

void sgh_srq_release(struct sgh_srq *srq, u32 completed)
{
	struct sgh_wq *wq = &srq->wq;
	unsigned long flags;

	spin_lock_irqsave(&wq->lock, flags);
	if ((s32)(completed - wq->ci) > 0)
		WRITE_ONCE(wq->ci, completed);
	spin_unlock_irqrestore(&wq->lock, flags);
}

static int sgh_srq_user(struct sgh_dev *sg, struct sgh_srq *srq, const struct ib_srq_attr *attr,
			struct ib_udata *udata)
{
	struct sg_abi_create_srq req;
	int ret;

	if (udata->inlen < sizeof(req))
		return -EINVAL;
	ret = ib_copy_from_udata(&req, udata, sizeof(req));
	if (ret)
		return ret;
	if (req.reserved || req.entries < attr->max_wr || req.entries > sg->caps.max_srq_wr ||
	    req.max_sge < attr->max_sge || req.max_sge > sg->caps.max_srq_sge)
		return -EINVAL;
	srq->wq.max_sge = req.max_sge;
	return sgh_wq_user(sg, srq->ibsrq.device, &srq->wq, req.buf, req.entries, req.stride);
}

static int sgh_srq_kernel(struct sgh_dev *sg, struct sgh_srq *srq, const struct ib_srq_attr *attr)
{
	srq->wq.max_sge = max_t(u32, attr->max_sge, 1);
	return sgh_wq_kernel(sg, &srq->wq, attr->max_wr,
			     sizeof(struct sg_rqe_hdr) + srq->wq.max_sge * sizeof(struct sg_sge));
}

/* As sgh_qp_command() of a queue pair: -EIO leaves the memory with the adapter. */
static int sgh_srq_command(struct sgh_dev *sg, struct sgh_srq *srq, u32 limit,
			   struct ib_udata *udata)
{
	struct sgh_ucontext *ctx = rdma_udata_to_drv_context(udata, struct sgh_ucontext,
							     ibucontext);
	struct sg_cmd_create_srq cmd = { };
	struct sg_admin_rsp rsp;
	struct sgh_pbl pbl;
	int ret;

	ret = sgh_wq_pbl(sg, &pbl, &srq->wq);
	if (ret)
		return ret;
	cmd.pd = cpu_to_le32(to_sgh_pd(srq->ibsrq.pd)->pdn);
	cmd.uar = cpu_to_le32(ctx ? ctx->uar : 0);
	cmd.entries = cpu_to_le32(srq->wq.entries);
	cmd.stride = cpu_to_le16(1 << srq->wq.stride_shift);
	cmd.max_sge = srq->wq.max_sge;
	cmd.limit = cpu_to_le32(limit);
	cmd.pages = pbl.desc;
	mutex_lock(&sg->id_mutex);
	ret = sgh_admin(sg, SG_ADMIN_CREATE_SRQ, &cmd, sizeof(cmd), &rsp);
	if (!ret) {
		srq->srqn = le32_to_cpu(rsp.id);
		ret = xa_err(xa_store(&sg->srqs, srq->srqn, srq, GFP_KERNEL));
		if (ret && sgh_admin_destroy(sg, SG_ADMIN_DESTROY_SRQ, srq->srqn))
			ret = -EIO;
	}
	mutex_unlock(&sg->id_mutex);
	sgh_pbl_free(sg, &pbl);
	return ret;
}

int sgh_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct sgh_dev *sg = to_sgh(ibsrq->device);
	struct sgh_srq *srq = to_sgh_srq(ibsrq);
	struct sg_abi_create_srq_resp resp = { };
	struct ib_srq_attr *attr = &init->attr;
	int ret;

	if (init->srq_type != IB_SRQT_BASIC || !sgh_has(sg, SG_FEATURE_SRQ))
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > sg->caps.max_srq_wr ||
	    attr->max_sge > sg->caps.max_srq_sge || attr->srq_limit > attr->max_wr)
		return -EINVAL;
	spin_lock_init(&srq->wq.lock);
	ret = udata ? sgh_srq_user(sg, srq, attr, udata) : sgh_srq_kernel(sg, srq, attr);
	if (!ret)
		ret = sgh_srq_command(sg, srq, attr->srq_limit, udata);
	if (ret == -EIO && !sgh_dead(sg))
		return ret;
	if (ret) {
		sgh_wq_free(sg, &srq->wq);
		return ret;
	}
	attr->max_wr = srq->wq.entries;
	attr->max_sge = srq->wq.max_sge;
	if (!udata)
		return 0;
	resp.srqn = srq->srqn;
	ret = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
	if (ret)
		sgh_destroy_srq(ibsrq, udata);
	return ret;
}

/* The size is fixed: there is no IB_DEVICE_SRQ_RESIZE. */
int sgh_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata)
{
	struct sgh_dev *sg = to_sgh(ibsrq->device);
	struct sgh_srq *srq = to_sgh_srq(ibsrq);
	struct sg_cmd_modify_srq cmd = { };

	if (mask & ~IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->wq.entries)
		return -EINVAL;
	cmd.srqn = cpu_to_le32(srq->srqn);
	cmd.limit = cpu_to_le32(attr->srq_limit);
	return sgh_admin(sg, SG_ADMIN_MODIFY_SRQ, &cmd, sizeof(cmd), NULL);
}

int sgh_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct sgh_srq *srq = to_sgh_srq(ibsrq);
	struct sg_admin_rsp rsp;
	int ret;

	ret = sgh_admin_id(to_sgh(ibsrq->device), SG_ADMIN_QUERY_SRQ, srq->srqn, &rsp);
	if (ret)
		return ret;
	attr->max_wr = srq->wq.entries;
	attr->max_sge = srq->wq.max_sge;
	attr->srq_limit = le32_to_cpu(rsp.data[1]);
	return 0;
}

int sgh_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct sgh_dev *sg = to_sgh(ibsrq->device);
	struct sgh_srq *srq = to_sgh_srq(ibsrq);
	int ret;

	mutex_lock(&sg->id_mutex);
	ret = sgh_admin_destroy(sg, SG_ADMIN_DESTROY_SRQ, srq->srqn);
	if (!ret)
		xa_erase(&sg->srqs, srq->srqn);
	mutex_unlock(&sg->id_mutex);
	if (ret)
		return ret;
	/* An event that found it in the table before is told by now. */
	flush_work(&sg->event_work);
	sgh_wq_free(sg, &srq->wq);
	return 0;
}

void sgh_srq_event(struct sgh_dev *sg, u32 srqn, enum ib_event_type type)
{
	struct ib_event event = { .event = type };
	struct sgh_srq *srq;

	/* Destruction takes it out of the table and then waits for this work. */
	srq = xa_load(&sg->srqs, srqn);
	if (!srq || !srq->ibsrq.event_handler)
		return;
	event.device = srq->ibsrq.device;
	event.element.srq = &srq->ibsrq;
	srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}
