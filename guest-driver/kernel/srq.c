// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared receive queues.
 *
 * Any of its queue pairs takes the oldest entry when a message begins, so entries complete in any
 * order, through any completion queue.  So a completion frees slots by a count and not by a
 * position: its wr_index tells how many entries have completed by then, and there is room for as
 * many new ones (admin.h).  Completions of several queues are polled in any order; the largest
 * count seen is valid.
 *
 * When a queue pair is destroyed, the adapter completes its entries before the destroy command
 * completes, so all are counted when the queue pair's completions are discarded.
 */
#include "srq.h"

static const struct sgh_kind sgh_srq_kind = {
	.create = SG_ADMIN_CREATE_SRQ,
	.destroy = SG_ADMIN_DESTROY_SRQ,
	.table = offsetof(struct sgh_dev, srqs),
	.kept = "it does not give a shared receive queue back",
};

void sgh_srq_release(struct sgh_srq *srq, u32 completed)
{
	struct sgh_wq *wq = &srq->wq;
	unsigned long flags;

	spin_lock_irqsave(&wq->lock, flags);
	if (sg_index_after(completed, wq->ci))
		WRITE_ONCE(wq->ci, completed);
	spin_unlock_irqrestore(&wq->lock, flags);
}

static int sgh_srq_user(struct sgh_dev *dev, struct sgh_srq *srq, const struct ib_srq_attr *attr,
			struct ib_udata *udata)
{
	struct sg_abi_create_srq req;
	int ret;

	ret = sgh_udata_in(udata, &req, sizeof(req));
	if (ret)
		return ret;
	if (req.reserved || req.entries < attr->max_wr || req.entries > dev->caps.max_srq_wr ||
	    req.max_sge < attr->max_sge || req.max_sge > dev->caps.max_srq_sge)
		return -EINVAL;
	srq->wq.max_sge = req.max_sge;
	return sgh_wq_user(dev, srq->ibsrq.device, &srq->wq, req.buf, req.entries, req.stride);
}

static int sgh_srq_kernel(struct sgh_dev *dev, struct sgh_srq *srq, const struct ib_srq_attr *attr)
{
	srq->wq.max_sge = max_t(u32, attr->max_sge, 1);
	return sgh_wq_kernel(dev, &srq->wq, attr->max_wr, dev->caps.max_srq_wr,
			     sizeof(struct sg_rqe_hdr) + srq->wq.max_sge * sizeof(struct sg_sge));
}

/* As sgh_qp_command() of a queue pair. */
static int sgh_srq_command(struct sgh_dev *dev, struct sgh_srq *srq, u32 limit,
			   struct ib_udata *udata)
{
	struct sgh_ucontext *ctx =
		rdma_udata_to_drv_context(udata, struct sgh_ucontext, ibucontext);
	struct sg_cmd_create_srq cmd = {};
	struct sgh_pbl pbl;
	int ret;

	ret = sgh_wq_pbl(dev, &pbl, &srq->wq);
	if (ret)
		return ret;
	cmd.pd = cpu_to_le32(to_sgh_pd(srq->ibsrq.pd)->pdn);
	cmd.uar = cpu_to_le32(ctx ? ctx->uar : 0);
	cmd.entries = cpu_to_le32(srq->wq.entries);
	cmd.stride = cpu_to_le16(1 << srq->wq.stride_shift);
	cmd.max_sge = srq->wq.max_sge;
	cmd.limit = cpu_to_le32(limit);
	cmd.pages = pbl.desc;
	ret = sgh_object_create(dev, &sgh_srq_kind, &cmd, sizeof(cmd), srq, &srq->srqn);
	sgh_pbl_free(dev, &pbl);
	return ret;
}

int sgh_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct sgh_dev *dev = to_sgh(ibsrq->device);
	struct sgh_srq *srq = to_sgh_srq(ibsrq);
	struct sg_abi_create_srq_resp resp = {};
	struct ib_srq_attr *attr = &init->attr;
	int ret;

	if (init->srq_type != IB_SRQT_BASIC || !sgh_has(dev, SG_FEATURE_SRQ))
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > dev->caps.max_srq_wr ||
	    attr->max_sge > dev->caps.max_srq_sge || attr->srq_limit > attr->max_wr)
		return -EINVAL;
	mutex_init(&srq->resize_mutex);
	spin_lock_init(&srq->wq.lock);
	ret = udata ? sgh_srq_user(dev, srq, attr, udata) : sgh_srq_kernel(dev, srq, attr);
	if (!ret)
		ret = sgh_srq_command(dev, srq, attr->srq_limit, udata);
	if (ret) {
		sgh_wq_free(dev, &srq->wq);
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

/*
 * Another size.  Indices do not depend on it, so the adapter may switch to the new ring at any
 * moment if each entry that is posted, and may not have been taken yet, is in both.  User space
 * does this itself.  Here new entries are posted to both rings, and earlier ones are copied, a
 * piece at a time.
 */
#define SGH_SRQ_COPY 64 /* entries copied under the lock at once */

static int sgh_srq_copy(struct sgh_wq *wq, struct sgh_wq *next)
{
	u32 i, end, left, n;
	unsigned long flags;

	spin_lock_irqsave(&wq->lock, flags);
	i = wq->ci;
	end = wq->pi;
	if (end - i > next->entries) {
		spin_unlock_irqrestore(&wq->lock, flags);
		return -EINVAL;
	}
	wq->next = next;
	spin_unlock_irqrestore(&wq->lock, flags);

	do {
		spin_lock_irqsave(&wq->lock, flags);
		/* Slots of entries that have completed meanwhile may hold newer entries. */
		if (sg_index_after(wq->ci, i))
			i = wq->ci;
		left = max_t(s32, end - i, 0);
		for (n = min_t(u32, left, SGH_SRQ_COPY); n; n--, left--)
			sgh_wq_copy(next, wq, i++);
		spin_unlock_irqrestore(&wq->lock, flags);
	} while (left);
	return 0;
}

/* The adapter uses *next, or still the old ring if ret is an error.  *next becomes the other. */
static void sgh_srq_resized(struct sgh_wq *wq, struct sgh_wq *next, int ret)
{
	unsigned long flags;

	spin_lock_irqsave(&wq->lock, flags);
	wq->next = NULL;
	if (!ret) {
		swap(wq->buf, next->buf);
		swap(wq->umem, next->umem);
		swap(wq->entries, next->entries);
	}
	spin_unlock_irqrestore(&wq->lock, flags);
}

static int sgh_srq_new_ring(struct sgh_dev *dev, struct sgh_srq *srq, struct sgh_wq *next, u32 wr,
			    struct ib_udata *udata)
{
	u32 stride = 1u << srq->wq.stride_shift;
	struct sg_abi_modify_srq req;
	int ret;

	if (!udata)
		return sgh_wq_kernel(dev, next, wr, dev->caps.max_srq_wr, stride);
	ret = sgh_udata_in(udata, &req, sizeof(req));
	if (ret)
		return ret;
	if (req.reserved || req.entries < wr || req.entries > dev->caps.max_srq_wr)
		return -EINVAL;
	return sgh_wq_user(dev, srq->ibsrq.device, next, req.buf, req.entries, stride);
}

static int sgh_srq_resize_command(struct sgh_dev *dev, struct sgh_srq *srq,
				  const struct sgh_wq *next, struct sg_cmd_resize_srq *cmd)
{
	struct sgh_pbl pbl;
	int ret;

	ret = sgh_wq_pbl(dev, &pbl, next);
	if (ret)
		return ret;
	cmd->srqn = cpu_to_le32(srq->srqn);
	cmd->entries = cpu_to_le32(next->entries);
	cmd->pages = pbl.desc;
	ret = sgh_admin(dev, SG_ADMIN_RESIZE_SRQ, cmd, sizeof(*cmd), NULL);
	sgh_pbl_free(dev, &pbl);
	return ret;
}

static int sgh_resize_srq(struct sgh_dev *dev, struct sgh_srq *srq, const struct ib_srq_attr *attr,
			  enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct sg_cmd_resize_srq cmd = {};
	struct sgh_wq next = {};
	int ret;

	if (!sgh_has(dev, SG_FEATURE_SRQ_RESIZE))
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > dev->caps.max_srq_wr)
		return -EINVAL;
	if (mask & IB_SRQ_LIMIT) {
		cmd.flags = cpu_to_le32(SG_RESIZE_SRQ_LIMIT);
		cmd.limit = cpu_to_le32(attr->srq_limit);
	}
	mutex_lock(&srq->resize_mutex);
	ret = sgh_srq_new_ring(dev, srq, &next, attr->max_wr, udata);
	if (ret)
		goto out;
	if (!udata)
		ret = sgh_srq_copy(&srq->wq, &next);
	if (!ret) {
		ret = sgh_srq_resize_command(dev, srq, &next, &cmd);
		sgh_srq_resized(&srq->wq, &next, ret);
	}
	sgh_wq_free(dev, &next);
out:
	mutex_unlock(&srq->resize_mutex);
	return ret;
}

int sgh_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata)
{
	struct sgh_dev *dev = to_sgh(ibsrq->device);
	struct sgh_srq *srq = to_sgh_srq(ibsrq);
	struct sg_cmd_modify_srq cmd = {};

	if (mask & ~(IB_SRQ_LIMIT | IB_SRQ_MAX_WR))
		return -EOPNOTSUPP;
	if (mask & IB_SRQ_MAX_WR)
		return sgh_resize_srq(dev, srq, attr, mask, udata);
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->wq.entries)
		return -EINVAL;
	cmd.srqn = cpu_to_le32(srq->srqn);
	cmd.limit = cpu_to_le32(attr->srq_limit);
	return sgh_admin(dev, SG_ADMIN_MODIFY_SRQ, &cmd, sizeof(cmd), NULL);
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
	struct sgh_dev *dev = to_sgh(ibsrq->device);
	struct sgh_srq *srq = to_sgh_srq(ibsrq);
	int ret;

	ret = sgh_object_destroy(dev, &sgh_srq_kind, srq->srqn);
	if (ret)
		return ret;
	/* After this, an event that found it in the table before has been delivered. */
	flush_work(&dev->event_work);
	sgh_wq_free(dev, &srq->wq);
	return 0;
}

void sgh_srq_event(struct sgh_dev *dev, u32 srqn, enum ib_event_type type)
{
	struct ib_event event = { .event = type };
	struct sgh_srq *srq;

	/* Destruction removes it from the table and then waits for this work. */
	srq = xa_load(&dev->srqs, srqn);
	if (!srq || !srq->ibsrq.event_handler)
		return;
	event.device = srq->ibsrq.device;
	event.element.srq = &srq->ibsrq;
	srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}
