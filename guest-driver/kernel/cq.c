// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completion queues.
 *
 * The adapter writes entries into a ring and never stops for the consumer; it reads the record
 * behind the ring only when the ring seems full.  The phase bit marks a new entry.  This file polls
 * kernel queues; user space polls its own.
 *
 * A lost adapter writes no more completions, but consumers that drain their queues wait for them.
 * Once the ring is empty, polling therefore completes the remaining entries of kernel queue pairs
 * as flushed, in order, from the queues themselves.
 */
#include <linux/dma-mapping.h>

#include <staghorn/wqe.h>

#include "cq.h"
#include "qp.h"
#include "srq.h"

#define SGH_CQE_NOBODY 0xffffffffu /* qpn of an entry whose queue pair was destroyed */
#define SGH_CQ_ARMED 0x40000000u   /* in sgh_cq.arm: neither number nor SOLICITED */

static_assert(sizeof(struct sg_abi_create_cq) == sizeof(struct sg_abi_resize_cq));
static_assert(offsetof(struct sg_abi_create_cq, entries) ==
	      offsetof(struct sg_abi_resize_cq, entries));

/* Creation and resizing describe the ring in the same way. */
static int sgh_ring_user(struct sgh_dev *dev, struct ib_device *ibdev, struct sgh_cq_ring *ring,
			 struct ib_udata *udata, struct sgh_pbl *pbl, u32 cqe)
{
	struct sg_abi_create_cq req;
	struct ib_block_iter it;
	size_t size, pos = 0;
	int ret;

	ret = sgh_udata_in(udata, &req, sizeof(req));
	if (ret)
		return ret;
	size = (size_t)req.entries * sizeof(struct sg_cqe);
	if (!is_power_of_2(req.entries) || req.entries < cqe || req.entries > dev->caps.max_cqe ||
	    !PAGE_ALIGNED(req.buf) || req.buf_len < size + sizeof(struct sg_cq_record))
		return -EINVAL;

	ring->umem = ib_umem_get(ibdev, req.buf, req.buf_len, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(ring->umem)) {
		ret = PTR_ERR(ring->umem);
		ring->umem = NULL;
		return ret;
	}
	rdma_umem_for_each_dma_block(ring->umem, &it, SG_PAGE_SIZE) {
		if (size - pos < SG_PAGE_SIZE) {
			ring->record_dma = rdma_block_iter_dma_address(&it) + (size - pos);
			break;
		}
		pos += SG_PAGE_SIZE;
	}
	ret = sgh_pbl_from_umem(dev, pbl, ring->umem, SG_PAGE_SIZE,
				DIV_ROUND_UP(size, SG_PAGE_SIZE));
	if (ret) {
		ib_umem_release(ring->umem);
		ring->umem = NULL;
		return ret;
	}
	ring->entries = req.entries;
	return 0;
}

static int sgh_ring_kernel(struct sgh_dev *dev, struct sgh_cq_ring *ring, struct sgh_pbl *pbl,
			   u32 cqe)
{
	u32 least = min_t(u32, SGH_CQ_ENTRIES_MIN, dev->caps.max_cqe);
	int ret;

	ring->entries = roundup_pow_of_two(max_t(u32, cqe, least));
	ret = sgh_buf_alloc(dev, &ring->buf, (size_t)ring->entries * sizeof(struct sg_cqe));
	if (ret)
		return ret;
	ring->record = dma_alloc_coherent(&dev->pdev->dev, sizeof(*ring->record), &ring->record_dma,
					  GFP_KERNEL);
	if (!ring->record) {
		ret = -ENOMEM;
		goto err_buf;
	}
	ret = sgh_pbl_from_buf(dev, pbl, &ring->buf);
	if (ret)
		goto err_record;
	return 0;

err_record:
	dma_free_coherent(&dev->pdev->dev, sizeof(*ring->record), ring->record, ring->record_dma);
err_buf:
	sgh_buf_free(dev, &ring->buf);
	return ret;
}

static void sgh_ring_free(struct sgh_dev *dev, struct sgh_cq_ring *ring)
{
	if (ring->umem) {
		ib_umem_release(ring->umem);
	} else {
		dma_free_coherent(&dev->pdev->dev, sizeof(*ring->record), ring->record,
				  ring->record_dma);
		sgh_buf_free(dev, &ring->buf);
	}
}

static const struct sgh_kind sgh_cq_kind = {
	.create = SG_ADMIN_CREATE_CQ,
	.destroy = SG_ADMIN_DESTROY_CQ,
	.table = offsetof(struct sgh_dev, cqs),
	.kept = "it does not give a completion queue back",
};

int sgh_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, sgh_create_cq_arg *arg)
{
	struct ib_udata *udata = sgh_create_cq_udata(arg);
	struct sgh_dev *dev = to_sgh(ibcq->device);
	struct sgh_cq *cq = to_sgh_cq(ibcq);
	struct sgh_ucontext *ctx =
		rdma_udata_to_drv_context(udata, struct sgh_ucontext, ibucontext);
	struct sg_abi_create_cq_resp resp = {};
	struct sg_cmd_create_cq cmd = {};
	struct sgh_pbl pbl;
	int ret;

	/* Every completion has a timestamp. */
	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > dev->caps.max_cqe)
		return -EINVAL;
	mutex_init(&cq->resize_mutex);
	spin_lock_init(&cq->lock);
	INIT_LIST_HEAD(&cq->send_qps);
	INIT_LIST_HEAD(&cq->recv_qps);
	cq->eq = &dev->ceqs[attr->comp_vector % dev->num_ceqs];

	ret = udata ? sgh_ring_user(dev, ibcq->device, &cq->ring, udata, &pbl, attr->cqe)
		    : sgh_ring_kernel(dev, &cq->ring, &pbl, attr->cqe);
	if (ret)
		return ret;
	cmd.entries = cpu_to_le32(cq->ring.entries);
	cmd.uar = cpu_to_le32(ctx ? ctx->uar : 0);
	cmd.record = cpu_to_le64(cq->ring.record_dma);
	cmd.eqn = cpu_to_le32(cq->eq->eqn);
	cmd.pages = pbl.desc;
	ret = sgh_object_create(dev, &sgh_cq_kind, &cmd, sizeof(cmd), cq, &cq->cqn);
	sgh_pbl_free(dev, &pbl);
	if (ret) {
		sgh_ring_free(dev, &cq->ring);
		return ret;
	}
	ibcq->cqe = max_t(int, cq->ring.entries - 1, attr->cqe);
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
	struct sgh_dev *dev = to_sgh(ibcq->device);
	struct sgh_cq *cq = to_sgh_cq(ibcq);
	int ret;

	ret = sgh_object_destroy(dev, &sgh_cq_kind, cq->cqn);
	if (ret)
		return ret;
	/* After this, no interrupt handler uses a pointer that it found in the table before. */
	sgh_ceq_sync(dev, cq->eq);
	flush_work(&dev->event_work);
	flush_work(&dev->fatal_work);
	sgh_ring_free(dev, &cq->ring);
	kvfree(cq->backlog);
	return 0;
}

/* Moderation; the adapter has the same units as verbs: completions and microseconds. */
int sgh_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct sg_cmd_modify_cq cmd = {};

	cmd.cqn = cpu_to_le32(to_sgh_cq(ibcq)->cqn);
	cmd.count = cpu_to_le16(count);
	cmd.period = cpu_to_le16(period);
	return sgh_admin(to_sgh(ibcq->device), SG_ADMIN_MODIFY_CQ, &cmd, sizeof(cmd), NULL);
}

void sgh_cq_event(struct sgh_dev *dev, u32 cqn)
{
	struct ib_event event = { .event = IB_EVENT_CQ_ERR };
	struct sgh_cq *cq;

	/* Destruction removes it from the table and then waits for this work. */
	cq = xa_load(&dev->cqs, cqn);
	if (!cq)
		return;
	ibdev_err_ratelimited(cq->ibcq.device, "completion queue %u overran\n", cqn);
	event.device = cq->ibcq.device;
	event.element.cq = &cq->ibcq;
	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

/*
 * In fatal_work: consumers that wait for completions are called, and processes that sleep on a
 * channel are woken, because no later event would do it unless the adapter comes up again.
 */
void sgh_cq_kick_all(struct sgh_dev *dev)
{
	unsigned long cqn;
	struct sgh_cq *cq;

	xa_for_each(&dev->cqs, cqn, cq) {
		/* For IB_POLL_DIRECT the handler only WARNs, so skip it. */
		if (cq->ibcq.comp_handler && cq->ibcq.poll_ctx != IB_POLL_DIRECT)
			cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	}
}

static struct sg_cqe *sgh_cqe_at(const struct sgh_cq *cq, u32 index)
{
	return sgh_buf_at(&cq->ring.buf,
			  (size_t)sg_index_slot(index, cq->ring.entries) * sizeof(struct sg_cqe));
}

static struct sg_cqe *sgh_cqe_next(const struct sgh_cq *cq, u32 index)
{
	struct sg_cqe *cqe = sgh_cqe_at(cq, index);

	if (!sg_index_is_new(READ_ONCE(cqe->flags_phase), index, cq->ring.entries))
		return NULL;
	dma_rmb();
	return cqe;
}

static void sgh_cqe_scrub(struct sg_cqe *cqe, const struct sgh_qp *qp)
{
	if (le32_to_cpu(cqe->qpn) != qp->qpn)
		return;
	if (qp->ibqp.srq && cqe->flags_phase & SG_CQE_RECV)
		sgh_srq_release(to_sgh_srq(qp->ibqp.srq), le32_to_cpu(cqe->wr_index) + 1);
	cqe->qpn = cpu_to_le32(SGH_CQE_NOBODY);
}

/* The queue pair is destroyed and writes no more: mark its completions as ownerless. */
void sgh_cq_scrub(struct sgh_cq *cq, const struct sgh_qp *qp)
{
	struct sg_cqe *cqe;
	unsigned long flags;
	u32 i;

	if (cq->ring.umem)
		return;
	spin_lock_irqsave(&cq->lock, flags);
	for (i = cq->ci; i - cq->ci < cq->ring.entries && (cqe = sgh_cqe_next(cq, i)); i++)
		sgh_cqe_scrub(cqe, qp);
	for (i = cq->backlog_pos; i < cq->backlog_num; i++)
		sgh_cqe_scrub(&cq->backlog[i], qp);
	spin_unlock_irqrestore(&cq->lock, flags);
}

static enum ib_wc_status sgh_wc_status(u8 status)
{
	static const enum ib_wc_status table[] = {
#define X(name, number, verbs) [number] = IB_WC_##verbs,
		SG_WC_STATUSES(X)
#undef X
	};

	return status < ARRAY_SIZE(table) ? table[status] : IB_WC_GENERAL_ERR;
}

/* cq->lock held.  False: the entry's queue pair is gone. */
static bool sgh_fill_wc(struct sgh_dev *dev, const struct sg_cqe *cqe, struct ib_wc *wc)
{
	struct sgh_qp *qp = xa_load(&dev->qps, le32_to_cpu(cqe->qpn));
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
		sg_cqe_get_imm(cqe, &wc->ex.imm_data);
	}
	return true;
}

static int sgh_flush_wq(struct sgh_qp *qp, struct sgh_wq *wq, bool recv, int num, struct ib_wc *wc)
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

/* On a lost adapter: is anything left for sgh_flush_dead()? */
static bool sgh_unflushed(const struct sgh_cq *cq)
{
	const struct sgh_qp *qp;

	list_for_each_entry(qp, &cq->send_qps, sq.cq_link) {
		if (READ_ONCE(qp->sq.ci) != READ_ONCE(qp->sq.pi))
			return true;
	}
	list_for_each_entry(qp, &cq->recv_qps, rq.cq_link) {
		if (READ_ONCE(qp->rq.ci) != READ_ONCE(qp->rq.pi))
			return true;
	}
	return false;
}

int sgh_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct sgh_dev *dev = to_sgh(ibcq->device);
	struct sgh_cq *cq = to_sgh_cq(ibcq);
	unsigned long flags;
	struct sg_cqe *cqe;
	u32 first;
	int n = 0;

	spin_lock_irqsave(&cq->lock, flags);
	first = cq->ci;
	while (n < num && unlikely(cq->backlog_pos < cq->backlog_num)) {
		if (sgh_fill_wc(dev, &cq->backlog[cq->backlog_pos++], &wc[n]))
			n++;
	}
	while (n < num && (cqe = sgh_cqe_next(cq, cq->ci))) {
		if (sgh_fill_wc(dev, cqe, &wc[n]))
			n++;
		cq->ci++;
	}
	if (cq->ci != first) {
		/* Read the entries before the adapter may reuse them. */
		dma_mb();
		WRITE_ONCE(cq->ring.record->consumer_index, cpu_to_le32(cq->ci));
	}
	if (n < num && unlikely(sgh_dead(dev)))
		n += sgh_flush_dead(cq, num - n, wc + n);
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

int sgh_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct sgh_dev *dev = to_sgh(ibcq->device);
	struct sgh_cq *cq = to_sgh_cq(ibcq);
	unsigned long irqflags;
	u32 arm = cq->cqn;
	int ret = 0;

	if ((flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED)
		arm |= SG_CQ_ARM_SOLICITED;
	spin_lock_irqsave(&cq->lock, irqflags);
	if (cq->resizing)
		cq->arm = arm | SGH_CQ_ARMED;
	else if (!sgh_dead(dev))
		sgh_doorbell(dev, SG_DB_CQ_ARM, arm, cq->ci);
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		ret = cq->backlog_pos < cq->backlog_num || sgh_cqe_next(cq, cq->ci) ||
		      (sgh_dead(dev) && sgh_unflushed(cq));
	spin_unlock_irqrestore(&cq->lock, irqflags);
	return ret;
}

/*
 * Resizing.  The adapter switches to the new ring while it executes the command.  The entries that
 * it wrote into the old one before are copied aside and polled first; user space does this itself.
 * Until we have switched as well, arming would name an index of the wrong ring, so it waits.
 */
static void sgh_cq_resizing(struct sgh_cq *cq)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->resizing = true;
	cq->arm = 0;
	spin_unlock_irqrestore(&cq->lock, flags);
}

/* Kernel queues, under the lock: copies unread entries before index end of the old ring to room. */
static void sgh_cq_keep_unread(struct sgh_cq *cq, struct sg_cqe *room, u32 end)
{
	u32 n = 0;

	dma_rmb();
	while (cq->backlog_pos < cq->backlog_num)
		room[n++] = cq->backlog[cq->backlog_pos++];
	for (; cq->ci != end; cq->ci++)
		room[n++] = *sgh_cqe_at(cq, cq->ci);
	cq->backlog_pos = 0;
	cq->backlog_num = n;
}

/*
 * The adapter uses *ring, or still the old one if ret is an error.  On return *ring and *room hold
 * what is no longer needed.
 */
static void sgh_cq_resized(struct sgh_cq *cq, int ret, struct sgh_cq_ring *ring,
			   struct sg_cqe **room, u32 end)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (!ret) {
		if (*room) {
			sgh_cq_keep_unread(cq, *room, end);
			swap(cq->backlog, *room);
		}
		swap(cq->ring, *ring);
		cq->ci = 0;
	}
	cq->resizing = false;
	if (cq->arm && !sgh_dead(to_sgh(cq->ibcq.device)))
		sgh_doorbell(to_sgh(cq->ibcq.device), SG_DB_CQ_ARM, cq->arm & ~SGH_CQ_ARMED,
			     cq->ci);
	spin_unlock_irqrestore(&cq->lock, flags);
}

/* resize_mutex held. */
static int sgh_cq_resize(struct sgh_dev *dev, struct sgh_cq *cq, struct sgh_cq_ring *ring,
			 const struct sgh_pbl *pbl, u32 *end)
{
	struct sg_cmd_resize_cq cmd = {};
	struct sg_cqe *room = NULL;
	struct sg_admin_rsp rsp;
	int ret;

	if (!cq->ring.umem) {
		room = kvcalloc(cq->backlog_num + cq->ring.entries, sizeof(*room), GFP_KERNEL);
		if (!room)
			return -ENOMEM;
	}
	cmd.cqn = cpu_to_le32(cq->cqn);
	cmd.entries = cpu_to_le32(ring->entries);
	cmd.pages = pbl->desc;
	cmd.record = cpu_to_le64(ring->record_dma);
	sgh_cq_resizing(cq);
	ret = sgh_admin(dev, SG_ADMIN_RESIZE_CQ, &cmd, sizeof(cmd), &rsp);
	if (!ret) {
		*end = le32_to_cpu(rsp.data[0]);
		if (room && *end - READ_ONCE(cq->ci) > cq->ring.entries) {
			sgh_fatal(dev, "it has written more completions than there is room for");
			ret = -EIO;
		}
	}
	sgh_cq_resized(cq, ret, ring, &room, *end);
	kvfree(room);
	return ret;
}

int sgh_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct sgh_dev *dev = to_sgh(ibcq->device);
	struct sg_abi_resize_cq_resp resp = {};
	struct sgh_cq *cq = to_sgh_cq(ibcq);
	struct sgh_cq_ring ring = {};
	struct sgh_pbl pbl;
	u32 end = 0;
	int ret;

	if (cqe < 1 || cqe > dev->caps.max_cqe)
		return -EINVAL;
	ret = udata ? sgh_ring_user(dev, ibcq->device, &ring, udata, &pbl, cqe)
		    : sgh_ring_kernel(dev, &ring, &pbl, cqe);
	if (ret)
		return ret;
	mutex_lock(&cq->resize_mutex);
	ret = sgh_cq_resize(dev, cq, &ring, &pbl, &end);
	if (!ret)
		ibcq->cqe = max_t(int, cq->ring.entries - 1, cqe);
	mutex_unlock(&cq->resize_mutex);
	sgh_pbl_free(dev, &pbl);
	/* The ring that is not used. */
	sgh_ring_free(dev, &ring);
	if (ret || !udata)
		return ret;
	resp.old_producer = end;
	return ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
}
