// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queue pairs: creation and destruction; modify.c has their states.
 *
 * References: one of the creator; one of a connection, from CONNECT or ACCEPT until it is gone;
 * those that iw_cm takes.  Destruction removes the queue pair from the adapter, which closes its
 * connection (gracefully, if everything posted was sent), then from the tables, then ends the
 * connection towards iw_cm, and waits until all references are dropped.
 */
#include <linux/dma-mapping.h>

#include "cm.h"
#include "cq.h"
#include "mr.h"
#include "qp.h"
#include "rendezvous.h"
#include "srq.h"

#define SGH_DESTROY_WARN (60 * HZ)

static const struct sgh_kind sgh_qp_kind = {
	.create = SG_ADMIN_CREATE_QP,
	.destroy = SG_ADMIN_DESTROY_QP,
	.table = offsetof(struct sgh_dev, qps),
	.kept = "it does not give a queue pair back",
};

struct sgh_qp *sgh_qp_find(struct sgh_dev *dev, u32 qpn)
{
	struct sgh_qp *qp;

	xa_lock(&dev->qps);
	qp = xa_load(&dev->qps, qpn);
	if (qp && !refcount_inc_not_zero(&qp->refs))
		qp = NULL;
	xa_unlock(&dev->qps);
	return qp;
}

void sgh_qp_put(struct sgh_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->released);
}

void sgh_qp_event(struct sgh_dev *dev, u32 qpn, enum ib_event_type event)
{
	struct sgh_qp *qp = sgh_qp_find(dev, qpn);
	struct ib_event e = { .event = event };

	if (!qp)
		return;
	e.device = qp->ibqp.device;
	e.element.qp = &qp->ibqp;
	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&e, qp->ibqp.qp_context);
	sgh_qp_put(qp);
}

/* In fatal_work: consumers that drain a queue pair with a shared receive queue wait for this. */
void sgh_qp_last_wqe_all(struct sgh_dev *dev)
{
	unsigned long qpn;
	struct sgh_qp *qp;
	bool shared;

	xa_for_each(&dev->qps, qpn, qp) {
		/* The queue pair found in the table may be gone by now. */
		qp = sgh_qp_find(dev, qpn);
		if (!qp)
			continue;
		shared = qp->ibqp.srq;
		sgh_qp_put(qp);
		if (shared)
			sgh_qp_event(dev, qpn, IB_EVENT_QP_LAST_WQE_REACHED);
	}
}

int sgh_wq_kernel(struct sgh_dev *dev, struct sgh_wq *wq, u32 wr, u32 max_wr, size_t wqe_size)
{
	wq->entries = roundup_pow_of_two(max_t(u32, wr, min_t(u32, SGH_QP_ENTRIES_MIN, max_wr)));
	wq->stride_shift = order_base_2(max_t(size_t, wqe_size, SG_WQE_STRIDE_MIN));
	if (1u << wq->stride_shift > SG_WQE_STRIDE_MAX)
		return -EINVAL;
	return sgh_buf_alloc(dev, &wq->buf, (size_t)wq->entries << wq->stride_shift);
}

/* The caller has checked that the number of entries is within the limits. */
int sgh_wq_user(struct sgh_dev *dev, struct ib_device *ibdev, struct sgh_wq *wq, u64 addr,
		u32 entries, u32 stride)
{
	if (!is_power_of_2(entries) || !is_power_of_2(stride) || stride < SG_WQE_STRIDE_MIN ||
	    stride > SG_WQE_STRIDE_MAX || !PAGE_ALIGNED(addr))
		return -EINVAL;
	wq->entries = entries;
	wq->stride_shift = ilog2(stride);
	wq->umem = ib_umem_get(ibdev, addr, (size_t)entries << wq->stride_shift,
			       IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(wq->umem)) {
		int ret = PTR_ERR(wq->umem);

		wq->umem = NULL;
		return ret;
	}
	return 0;
}

void sgh_wq_free(struct sgh_dev *dev, struct sgh_wq *wq)
{
	ib_umem_release(wq->umem);
	if (wq->buf.chunks)
		sgh_buf_free(dev, &wq->buf);
}

int sgh_wq_pbl(struct sgh_dev *dev, struct sgh_pbl *pbl, const struct sgh_wq *wq)
{
	size_t size = (size_t)wq->entries << wq->stride_shift;

	if (wq->umem)
		return sgh_pbl_from_umem(dev, pbl, wq->umem, SG_PAGE_SIZE,
					 DIV_ROUND_UP(size, SG_PAGE_SIZE));
	return sgh_pbl_from_buf(dev, pbl, &wq->buf);
}

/* A queue pair with a shared receive queue has none of its own. */
static bool sgh_rq_fits(const struct sgh_dev *dev, const struct sgh_qp *qp,
			const struct sg_abi_create_qp *req, const struct ib_qp_cap *cap)
{
	if (qp->ibqp.srq)
		return !req->rq_buf && !req->rq_entries && !req->rq_stride && !req->rq_max_sge;
	return req->rq_entries >= cap->max_recv_wr && req->rq_entries <= dev->caps.max_qp_wr &&
	       req->rq_max_sge >= cap->max_recv_sge && req->rq_max_sge <= dev->caps.max_rq_sge;
}

static int sgh_qp_user(struct sgh_dev *dev, struct sgh_qp *qp, struct ib_udata *udata,
		       struct ib_qp_cap *cap)
{
	struct sg_abi_create_qp req;
	int ret;

	ret = sgh_udata_in(udata, &req, sizeof(req));
	if (ret)
		return ret;
	if (req.sq_entries < cap->max_send_wr || req.sq_entries > dev->caps.max_qp_wr ||
	    req.sq_max_sge > dev->caps.max_sq_sge || req.sq_max_sge < cap->max_send_sge ||
	    req.max_inline > dev->caps.max_inline || req.max_inline < cap->max_inline_data ||
	    !sgh_rq_fits(dev, qp, &req, cap))
		return -EINVAL;
	qp->user = true;
	qp->sq.max_sge = req.sq_max_sge;
	qp->rq.max_sge = req.rq_max_sge;
	qp->max_inline = req.max_inline;
	ret = sgh_wq_user(dev, qp->ibqp.device, &qp->sq, req.sq_buf, req.sq_entries, req.sq_stride);
	if (ret || qp->ibqp.srq)
		return ret;
	return sgh_wq_user(dev, qp->ibqp.device, &qp->rq, req.rq_buf, req.rq_entries,
			   req.rq_stride);
}

static int sgh_qp_kernel(struct sgh_dev *dev, struct sgh_qp *qp, struct ib_qp_cap *cap)
{
	size_t sq_size, rq_size;
	int ret;

	qp->sq.max_sge = max_t(u32, cap->max_send_sge, 1);
	qp->max_inline = cap->max_inline_data;
	sq_size =
		sizeof(struct sg_wqe_hdr) + max3(qp->sq.max_sge * sizeof(struct sg_sge),
						 (size_t)qp->max_inline, sizeof(struct sg_wqe_reg));
	ret = sgh_wq_kernel(dev, &qp->sq, cap->max_send_wr, dev->caps.max_qp_wr, sq_size);
	if (ret || qp->ibqp.srq)
		return ret;
	qp->rq.max_sge = max_t(u32, cap->max_recv_sge, 1);
	rq_size = sizeof(struct sg_rqe_hdr) + qp->rq.max_sge * sizeof(struct sg_sge);
	return sgh_wq_kernel(dev, &qp->rq, cap->max_recv_wr, dev->caps.max_qp_wr, rq_size);
}

static int sgh_qp_check(struct sgh_dev *dev, const struct ib_qp_init_attr *attr)
{
	const struct ib_qp_cap *cap = &attr->cap;

	if (attr->qp_type != IB_QPT_RC || attr->create_flags)
		return -EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq || cap->max_send_wr > dev->caps.max_qp_wr ||
	    cap->max_send_sge > dev->caps.max_sq_sge || cap->max_inline_data > dev->caps.max_inline)
		return -EINVAL;
	/* With a shared receive queue the other values are ignored. */
	if (!attr->srq &&
	    (cap->max_recv_wr > dev->caps.max_qp_wr || cap->max_recv_sge > dev->caps.max_rq_sge))
		return -EINVAL;
	return 0;
}

#define SGH_ACCESS_FLUSH (IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT)

/*
 * A consumer of rdma_cm gets a queue pair with the rights that iw_cm knows, remote write and read,
 * and cannot ask for more.  So a peer that may write may also flush what it wrote, unless the
 * caller names one of these rights; and a peer with exactly those two may also use atomic
 * operations.  The rights of regions still apply.
 */
int sgh_with_unsaid(const struct sgh_dev *dev, int access)
{
	const int iw_cm = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;

	if ((access & ~IB_ACCESS_LOCAL_WRITE) == iw_cm)
		access |= IB_ACCESS_REMOTE_ATOMIC;
	if (sgh_has(dev, SG_FEATURE_FLUSH) && access & IB_ACCESS_REMOTE_WRITE &&
	    !(access & SGH_ACCESS_FLUSH))
		access |= SGH_ACCESS_FLUSH;
	return access;
}

/* Verbs have no right for Verify: queue pairs allow it, and regions check for it. */
u32 sgh_qp_access(const struct sgh_dev *dev, int ib_access)
{
	return sgh_access(ib_access) | (sgh_has(dev, SG_FEATURE_VERIFY) ? SG_ACCESS_VERIFY : 0);
}

/*
 * Sends the command; the queues have their memory.  Enters the queue pair in the table.  After a
 * failure the adapter does not use their memory: an adapter that keeps the queue pair is lost.
 */
static int sgh_qp_command(struct sgh_dev *dev, struct sgh_qp *qp,
			  const struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct sgh_ucontext *ctx =
		rdma_udata_to_drv_context(udata, struct sgh_ucontext, ibucontext);
	struct sgh_pbl sq_pbl, rq_pbl = {};
	struct sg_cmd_create_qp cmd = {};
	u32 flags = 0;
	int ret;

	ret = sgh_wq_pbl(dev, &sq_pbl, &qp->sq);
	if (ret)
		return ret;
	if (!qp->ibqp.srq)
		ret = sgh_wq_pbl(dev, &rq_pbl, &qp->rq);
	if (ret) {
		sgh_pbl_free(dev, &sq_pbl);
		return ret;
	}
	if (qp->signal_all)
		flags |= SG_QP_SIGNAL_ALL;
	if (!qp->user)
		flags |= SG_QP_KERNEL;
	if (qp->ibqp.srq) {
		flags |= SG_QP_SRQ;
		cmd.srqn = cpu_to_le32(to_sgh_srq(qp->ibqp.srq)->srqn);
	}
	cmd.pd = cpu_to_le32(to_sgh_pd(qp->ibqp.pd)->pdn);
	cmd.send_cqn = cpu_to_le32(to_sgh_cq(attr->send_cq)->cqn);
	cmd.recv_cqn = cpu_to_le32(to_sgh_cq(attr->recv_cq)->cqn);
	cmd.uar = cpu_to_le32(ctx ? ctx->uar : 0);
	cmd.sq_entries = cpu_to_le32(qp->sq.entries);
	cmd.rq_entries = cpu_to_le32(qp->rq.entries);
	cmd.sq_stride = cpu_to_le16(1 << qp->sq.stride_shift);
	cmd.rq_stride = cpu_to_le16(qp->rq.entries ? 1 << qp->rq.stride_shift : 0);
	cmd.sq_max_sge = qp->sq.max_sge;
	cmd.rq_max_sge = qp->rq.max_sge;
	cmd.max_inline = cpu_to_le16(qp->max_inline);
	cmd.access = cpu_to_le32(sgh_qp_access(dev, qp->access));
	cmd.sq_pages = sq_pbl.desc;
	cmd.rq_pages = rq_pbl.desc;
	cmd.flags = cpu_to_le32(flags);
	ret = sgh_object_create(dev, &sgh_qp_kind, &cmd, sizeof(cmd), qp, &qp->qpn);
	qp->ibqp.qp_num = qp->qpn;
	sgh_pbl_free(dev, &rq_pbl);
	sgh_pbl_free(dev, &sq_pbl);
	return ret;
}

static void sgh_qp_link(struct sgh_qp *qp, struct ib_cq *ibcq, struct list_head *link,
			struct list_head *list)
{
	struct sgh_cq *cq = to_sgh_cq(ibcq);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	list_add_tail(link, list);
	spin_unlock_irqrestore(&cq->lock, flags);
}

/* After this no poller of the CQ uses the queue pair. */
static void sgh_qp_unlink(struct sgh_qp *qp, struct ib_cq *ibcq, struct list_head *link)
{
	struct sgh_cq *cq = to_sgh_cq(ibcq);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	list_del_init(link);
	spin_unlock_irqrestore(&cq->lock, flags);
}

int sgh_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct sgh_dev *dev = to_sgh(ibqp->device);
	struct sg_abi_create_qp_resp resp = {};
	struct sgh_qp *qp = to_sgh_qp(ibqp);
	int ret;

	ret = sgh_qp_check(dev, attr);
	if (ret)
		return ret;
	qp->dev = dev;
	/* Memory regions decide what a peer may do, unless IB_QP_ACCESS_FLAGS narrows it. */
	qp->access = sgh_with_unsaid(dev, IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
						  IB_ACCESS_REMOTE_ATOMIC);
	mutex_init(&qp->mutex);
	qp->ib_state = IB_QPS_RESET;
	qp->fresh = true;
	refcount_set(&qp->refs, 1);
	init_completion(&qp->released);
	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->rq.lock);
	INIT_LIST_HEAD(&qp->sq.cq_link);
	INIT_LIST_HEAD(&qp->rq.cq_link);
	qp->signal_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;

	ret = udata ? sgh_qp_user(dev, qp, udata, &attr->cap) : sgh_qp_kernel(dev, qp, &attr->cap);
	if (!ret)
		ret = sgh_qp_command(dev, qp, attr, udata);
	if (ret) {
		sgh_wq_free(dev, &qp->rq);
		sgh_wq_free(dev, &qp->sq);
		return ret;
	}
	attr->cap.max_send_wr = qp->sq.entries;
	attr->cap.max_recv_wr = qp->rq.entries;
	attr->cap.max_send_sge = qp->sq.max_sge;
	attr->cap.max_recv_sge = qp->rq.max_sge;
	attr->cap.max_inline_data = qp->max_inline;
	ibqp->send_cq = attr->send_cq;
	ibqp->recv_cq = attr->recv_cq;
	if (!qp->user) {
		sgh_qp_link(qp, attr->send_cq, &qp->sq.cq_link,
			    &to_sgh_cq(attr->send_cq)->send_qps);
		sgh_qp_link(qp, attr->recv_cq, &qp->rq.cq_link,
			    &to_sgh_cq(attr->recv_cq)->recv_qps);
		return 0;
	}
	resp.qpn = qp->qpn;
	ret = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
	if (ret)
		sgh_destroy_qp(ibqp, udata);
	return ret;
}

void sgh_qp_scrub(struct sgh_qp *qp)
{
	struct ib_qp *ibqp = &qp->ibqp;

	sgh_cq_scrub(to_sgh_cq(ibqp->send_cq), qp);
	if (ibqp->recv_cq != ibqp->send_cq)
		sgh_cq_scrub(to_sgh_cq(ibqp->recv_cq), qp);
}

/* After this only the destroy command names the queue pair, and no other is in progress. */
static void sgh_qp_set_gone(struct sgh_qp *qp, bool gone)
{
	mutex_lock(&qp->mutex);
	qp->gone = gone;
	mutex_unlock(&qp->mutex);
}

int sgh_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct sgh_qp *qp = to_sgh_qp(ibqp);
	struct sgh_dev *dev = qp->dev;
	int ret;

	sgh_rdv_end(qp);
	/* iw_cm may still modify or connect it by its number. */
	sgh_qp_set_gone(qp, true);
	mutex_lock(&dev->id_mutex);
	ret = sgh_admin_destroy(dev, sgh_qp_kind.destroy, qp->qpn);
	if (ret) {
		mutex_unlock(&dev->id_mutex);
		sgh_qp_set_gone(qp, false);
		return ret;
	}
	/*
	 * The adapter writes no more completions of it.  It stays in the table while there are
	 * any: without it, polling one would not free its slot of a shared receive queue.
	 */
	sgh_qp_scrub(qp);
	xa_erase(&dev->qps, qp->qpn);
	if (!qp->user) {
		sgh_qp_unlink(qp, ibqp->send_cq, &qp->sq.cq_link);
		sgh_qp_unlink(qp, ibqp->recv_cq, &qp->rq.cq_link);
	}
	mutex_unlock(&dev->id_mutex);

	sgh_cm_qp_gone(qp);
	sgh_qp_put(qp);
	while (!wait_for_completion_timeout(&qp->released, SGH_DESTROY_WARN))
		ibdev_warn(ibqp->device, "queue pair %u is destroyed, but still referenced\n",
			   qp->qpn);
	sgh_wq_free(dev, &qp->rq);
	sgh_wq_free(dev, &qp->sq);
	kfree(qp->rdv);
	return 0;
}
