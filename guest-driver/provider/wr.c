// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Extended posting, ibv_wr_*: start, any number of operations each with its payload, then complete
 * or abort.
 *
 * The send queue's lock is held from start to the end.  Entries are built in their slots behind
 * head, where the device does not look; complete moves head over them and rings once, abort and the
 * first error leave head where it was.  After an error wr_wqe is NULL, so the rest of the list is
 * passed over until complete tells the error; so it is after operations that take no payload.
 */
#include <errno.h>

#include "staghorn.h"
#include "doorbell.h"
#include "ops.h"
#include "staghorndv.h"
#include "wqe.h"

static void fail(struct sg_qp *qp, int err)
{
	if (!qp->wr_err)
		qp->wr_err = err;
	qp->wr_wqe = NULL;
}

/* Begin the next entry, with the id and flags that the application has set; NULL after an error. */
static struct sg_wqe_hdr *begin(struct ibv_qp_ex *ibqp, uint8_t opcode, unsigned int flags_mask)
{
	struct sg_qp *qp = to_sg_qp_ex(ibqp);
	struct sg_wqe_hdr *wqe;

	if (unlikely(qp->wr_err))
		return NULL;
	if (unlikely(sg_ring_full(&qp->sq, qp->wr_head))) {
		fail(qp, ENOMEM);
		return NULL;
	}
	wqe = sg_ring_slot(&qp->sq, qp->wr_head);
	sg_wqe_init(wqe, qp->wr_head, opcode,
		    sg_wqe_flags[ibqp->wr_flags & flags_mask] | qp->sq_flags, ibqp->wr_id);
	qp->wr_head++;
	qp->wr_wqe = wqe;
	return wqe;
}

static void wr_send(struct ibv_qp_ex *ibqp)
{
	begin(ibqp, SG_WR_SEND, SG_SEND_FLAGS);
}

static void wr_send_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_SEND_INV, SG_SEND_FLAGS);

	if (likely(wqe))
		sg_wqe_set_inv(wqe, invalidate_rkey);
}

static void wr_rdma_write(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_WRITE, SG_SEND_FLAGS & ~IBV_SEND_SOLICITED);

	if (likely(wqe))
		sg_wqe_set_remote(wqe, rkey, remote_addr);
}

static void wr_rdma_read(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_READ, SG_SEND_FLAGS & ~IBV_SEND_SOLICITED);

	if (likely(wqe))
		sg_wqe_set_remote(wqe, rkey, remote_addr);
}

/* These three carry no payload that could be set after them. */
static void seal(struct ibv_qp_ex *ibqp)
{
	to_sg_qp_ex(ibqp)->wr_wqe = NULL;
}

static void wr_atomic_write(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr,
			    const void *atom)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_ATOMIC_WRITE,
				       SG_SEND_FLAGS & ~IBV_SEND_SOLICITED);

	if (unlikely(!wqe))
		return;
	sg_wqe_set_remote(wqe, rkey, remote_addr);
	sg_wqe_set_inline_len(wqe, sg_wqe_append_inline(wqe, 0, SG_ATOM, atom, SG_ATOM));
	seal(ibqp);
}

/* SG_FLUSH_* of verbs' type and level. */
static int flush_flags(const struct sg_qp *qp, uint8_t type, uint8_t level, uint32_t *flags)
{
	if (!type || type & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT) || level > IBV_FLUSH_MR)
		return EINVAL;
	if (level == IBV_FLUSH_MR && !(qp->features & SG_FEATURE_FLUSH_REGION))
		return EOPNOTSUPP;
	*flags = (type & IBV_FLUSH_GLOBAL ? SG_FLUSH_GLOBAL : 0) |
		 (type & IBV_FLUSH_PERSISTENT ? SG_FLUSH_PERSISTENT : 0) |
		 (level == IBV_FLUSH_MR ? SG_FLUSH_REGION : 0);
	return 0;
}

static void wr_flush(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr, size_t len,
		     uint8_t type, uint8_t level)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_FLUSH, SG_SEND_FLAGS & ~IBV_SEND_SOLICITED);
	struct sg_qp *qp = to_sg_qp_ex(ibqp);
	uint32_t flags;
	int ret;

	if (unlikely(!wqe))
		return;
	ret = flush_flags(qp, type, level, &flags);
	if (!ret && level == IBV_FLUSH_MR) {
		remote_addr = 0;
		len = 0;
	}
	if (!ret && len > UINT32_MAX)
		ret = EINVAL;
	if (unlikely(ret)) {
		fail(qp, ret);
		return;
	}
	sg_wqe_set_remote(wqe, rkey, remote_addr);
	sg_wqe_set_place(wqe, (uint32_t)len, flags);
	seal(ibqp);
}

static int check_verify(const struct sg_qp *qp, const struct sgdv_verify *v)
{
	size_t room = sg_sq_inline_room(1u << qp->sq.stride_shift);

	if (!(qp->features & SG_FEATURE_VERIFY))
		return EOPNOTSUPP;
	if (v->comp_mask || v->reserved || v->expected_len > SG_HASH_MAX ||
	    (v->expected_len && !v->expected) ||
	    sg_verify_size(v->sink_len ? 1 : 0, v->expected_len) > room)
		return EINVAL;
	return 0;
}

void sgdv_wr_verify(struct ibv_qp_ex *ibqp, const struct sgdv_verify *v)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_VERIFY, SG_SEND_FLAGS & ~IBV_SEND_SOLICITED);
	struct sg_qp *qp = to_sg_qp_ex(ibqp);
	int ret;

	if (unlikely(!wqe))
		return;
	ret = check_verify(qp, v);
	if (unlikely(ret)) {
		fail(qp, ret);
		return;
	}
	sg_wqe_set_remote(wqe, v->rkey, v->remote_addr);
	sg_wqe_set_place(wqe, v->length, 0);
	if (v->sink_len)
		sg_sge_set(sg_verify_add_sink(wqe), v->sink_addr, v->sink_len, v->sink_lkey);
	if (v->expected_len)
		sg_verify_add_hash(wqe, v->expected, v->expected_len);
	seal(ibqp);
}

static void wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct sg_wqe_hdr *wqe = to_sg_qp_ex(ibqp)->wr_wqe;

	if (unlikely(!wqe))
		return;
	wqe->num_sge = 1;
	sg_sge_set(sg_wqe_sge(wqe), addr, length, lkey);
}

static void wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct sg_qp *qp = to_sg_qp_ex(ibqp);
	struct sg_wqe_hdr *wqe = qp->wr_wqe;
	struct sg_sge *dst;
	size_t i;

	if (unlikely(!wqe))
		return;
	if (unlikely(num_sge > qp->sq_max_sge ||
		     (wqe->opcode == SG_WR_READ && num_sge > SG_READ_MAX_SGE))) {
		fail(qp, EINVAL);
		return;
	}
	wqe->num_sge = (uint8_t)num_sge;
	dst = sg_wqe_sge(wqe);
	for (i = 0; i < num_sge; i++)
		sg_sge_set(&dst[i], sg_list[i].addr, sg_list[i].length, sg_list[i].lkey);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct sg_qp *qp = to_sg_qp_ex(ibqp);
	struct sg_wqe_hdr *wqe = qp->wr_wqe;
	uint32_t used = 0;
	size_t i;

	if (unlikely(!wqe))
		return;
	for (i = 0; i < num_buf && used != SG_INLINE_TOO_LONG; i++)
		used = sg_wqe_append_inline(wqe, used, qp->max_inline, buf_list[i].addr,
					    buf_list[i].length);
	if (unlikely(used == SG_INLINE_TOO_LONG || wqe->opcode == SG_WR_READ)) {
		fail(qp, EINVAL);
		return;
	}
	sg_wqe_set_inline_len(wqe, used);
}

static void wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ibqp, 1, &buf);
}

static void wr_start(struct ibv_qp_ex *ibqp)
{
	struct sg_qp *qp = to_sg_qp_ex(ibqp);

	sg_lock(&qp->sq_lock);
	qp->wr_err = 0;
	qp->wr_wqe = NULL;
	qp->wr_head = qp->sq.head;
}

static int wr_complete(struct ibv_qp_ex *ibqp)
{
	struct sg_qp *qp = to_sg_qp_ex(ibqp);
	int ret = qp->wr_err;

	if (likely(!ret && qp->wr_head != qp->sq.head)) {
		qp->sq.head = qp->wr_head;
		sg_doorbell(qp->db, SG_DB_SQ, qp->qpn, qp->sq.head);
	}
	sg_unlock(&qp->sq_lock);
	return ret;
}

static void wr_abort(struct ibv_qp_ex *ibqp)
{
	sg_unlock(&to_sg_qp_ex(ibqp)->sq_lock);
}

int sg_wr_init(struct sg_qp *qp, uint64_t send_ops_flags)
{
	uint64_t supported = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV |
			     IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	if (qp->features & SG_FEATURE_FLUSH)
		supported |= IBV_QP_EX_WITH_FLUSH;
	if (qp->features & SG_FEATURE_ATOMIC_WRITE)
		supported |= IBV_QP_EX_WITH_ATOMIC_WRITE;
	if (send_ops_flags & ~supported)
		return EOPNOTSUPP;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	if (send_ops_flags & IBV_QP_EX_WITH_SEND)
		ex->wr_send = wr_send;
	if (send_ops_flags & IBV_QP_EX_WITH_SEND_WITH_INV)
		ex->wr_send_inv = wr_send_inv;
	if (send_ops_flags & IBV_QP_EX_WITH_RDMA_WRITE)
		ex->wr_rdma_write = wr_rdma_write;
	if (send_ops_flags & IBV_QP_EX_WITH_RDMA_READ)
		ex->wr_rdma_read = wr_rdma_read;
	if (send_ops_flags & IBV_QP_EX_WITH_FLUSH)
		ex->wr_flush = wr_flush;
	if (send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE)
		ex->wr_atomic_write = wr_atomic_write;
	return 0;
}
