// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Extended posting, ibv_wr_*: start, any number of operations each with its payload, then complete
 * or abort.
 *
 * The send queue's lock is held from start to the end.  Entries are built in their slots beyond
 * head, which the device does not read; complete moves head over them and rings once; abort and the
 * first error leave head unchanged.  After an error wr_wqe is NULL, so the rest of the list is
 * skipped until complete returns the error; it is also NULL after operations without payload.
 */
#include <errno.h>

#include <ccan/array_size.h>

#include "provider.h"
#include "doorbell.h"
#include "ops.h"
#include "staghorndv.h"
#include "wqe.h"

static void fail(struct sgp_qp *qp, int err)
{
	if (!qp->wr_err)
		qp->wr_err = err;
	qp->wr_wqe = NULL;
}

/* Begin the next entry, with the id and flags that the application has set; NULL after an error. */
static struct sg_wqe_hdr *begin(struct ibv_qp_ex *ibqp, uint8_t opcode, unsigned int flags_mask)
{
	struct sgp_qp *qp = to_sgp_qp_ex(ibqp);
	struct sg_wqe_hdr *wqe;

	if (unlikely(qp->wr_err))
		return NULL;
	if (unlikely(sgp_ring_full(&qp->sq, qp->wr_head))) {
		fail(qp, ENOMEM);
		return NULL;
	}
	wqe = sgp_ring_slot(&qp->sq, qp->wr_head);
	sg_wqe_init(wqe, qp->wr_head, opcode,
		    sgp_wqe_flags[ibqp->wr_flags & flags_mask] | qp->sq_flags, ibqp->wr_id);
	qp->wr_head++;
	qp->wr_wqe = wqe;
	return wqe;
}

static void wr_send(struct ibv_qp_ex *ibqp)
{
	begin(ibqp, SG_WR_SEND, SGP_SEND_FLAGS);
}

static void wr_send_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_SEND_INV, SGP_SEND_FLAGS);

	if (likely(wqe))
		sg_wqe_set_inv(wqe, invalidate_rkey);
}

static void wr_rdma_write(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_WRITE, SGP_SEND_FLAGS & ~IBV_SEND_SOLICITED);

	if (likely(wqe))
		sg_wqe_set_remote(wqe, rkey, remote_addr);
}

static void wr_rdma_read(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_READ, SGP_SEND_FLAGS & ~IBV_SEND_SOLICITED);

	if (likely(wqe))
		sg_wqe_set_remote(wqe, rkey, remote_addr);
}

/* For operations that take no payload. */
static void seal(struct ibv_qp_ex *ibqp)
{
	to_sgp_qp_ex(ibqp)->wr_wqe = NULL;
}

static void wr_atomic_write(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr,
			    const void *atom)
{
	struct sg_wqe_hdr *wqe =
		begin(ibqp, SG_WR_ATOMIC_WRITE, SGP_SEND_FLAGS & ~IBV_SEND_SOLICITED);

	if (unlikely(!wqe))
		return;
	sg_wqe_set_remote(wqe, rkey, remote_addr);
	sg_wqe_set_inline_len(wqe, sgp_wqe_append_inline(wqe, 0, SG_ATOM, atom, SG_ATOM));
	seal(ibqp);
}

#ifdef SGP_HAVE_FLUSH
/* SG_FLUSH_* of verbs' type and level. */
static int flush_flags(const struct sgp_qp *qp, uint8_t type, uint8_t level, uint32_t *flags)
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
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_FLUSH, SGP_SEND_FLAGS & ~IBV_SEND_SOLICITED);
	struct sgp_qp *qp = to_sgp_qp_ex(ibqp);
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
#endif

static int check_verify(const struct sgp_qp *qp, const struct sgdv_verify *v)
{
	size_t room = qp->sq_room;

	if (!(qp->features & SG_FEATURE_VERIFY))
		return EOPNOTSUPP;
	if (v->comp_mask || v->reserved || v->expected_len > SG_HASH_MAX ||
	    (v->expected_len && !v->expected) ||
	    sg_wqe_verify_body(v->sink_len ? 1 : 0, v->expected_len) > room)
		return EINVAL;
	return 0;
}

/* Queue pairs of other providers are unknown to us: requests for them are not posted. */
static bool is_ours(struct ibv_qp_ex *ibqp)
{
	return likely(sgp_is_ours(ibqp->qp_base.context->device));
}

void sgdv_wr_verify(struct ibv_qp_ex *ibqp, const struct sgdv_verify *v)
{
	struct sgp_qp *qp = to_sgp_qp_ex(ibqp);
	struct sg_wqe_hdr *wqe;
	int ret;

	if (!is_ours(ibqp))
		return;
	wqe = begin(ibqp, SG_WR_VERIFY, SGP_SEND_FLAGS & ~IBV_SEND_SOLICITED);
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
		sg_sge_set(sg_wqe_verify_sink(wqe), v->sink_addr, v->sink_len, v->sink_lkey);
	if (v->expected_len)
		memcpy(sg_wqe_verify_hash(wqe, v->expected_len), v->expected, v->expected_len);
	seal(ibqp);
}

void sgdv_wr_invalidate(struct ibv_qp_ex *ibqp, uint32_t rkey)
{
	struct sgp_qp *qp = to_sgp_qp_ex(ibqp);
	struct sg_wqe_hdr *wqe;

	if (!is_ours(ibqp) || unlikely(qp->wr_err))
		return;
	/* Draft -02 has no room for it in its requests. */
	if (!(qp->features & SG_FEATURE_FLUSH) || qp->features & SG_FEATURE_FLUSH_REGION) {
		fail(qp, EOPNOTSUPP);
		return;
	}
	wqe = qp->wr_head == qp->sq.head ? NULL : sgp_ring_slot(&qp->sq, qp->wr_head - 1);
	if (!wqe || !rkey ||
	    (wqe->opcode != SG_WR_FLUSH && wqe->opcode != SG_WR_VERIFY &&
	     wqe->opcode != SG_WR_ATOMIC_WRITE)) {
		fail(qp, EINVAL);
		return;
	}
	sg_wqe_set_inv(wqe, rkey);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_WRITE_IMM, SGP_SEND_FLAGS);

	if (unlikely(!wqe))
		return;
	sg_wqe_set_remote(wqe, rkey, remote_addr);
	sg_wqe_set_imm(wqe, &imm_data);
}

static void wr_send_imm(struct ibv_qp_ex *ibqp, __be32 imm_data)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_SEND_IMM, SGP_SEND_FLAGS);

	if (likely(wqe))
		sg_wqe_set_imm(wqe, &imm_data);
}

/* The caller sets the element for the result next. */
static void begin_atomic(struct ibv_qp_ex *ibqp, uint8_t opcode, uint32_t rkey,
			 uint64_t remote_addr, const struct sgdv_cmp_swp *v)
{
	struct sgp_qp *qp = to_sgp_qp_ex(ibqp);
	struct sg_wqe_hdr *wqe = begin(ibqp, opcode, SGP_SEND_FLAGS & ~IBV_SEND_SOLICITED);

	if (unlikely(!wqe))
		return;
	if (unlikely(!(qp->features & SG_FEATURE_ATOMICS) || SG_WQE_ATOMIC_BODY > qp->sq_room)) {
		fail(qp, EOPNOTSUPP);
		return;
	}
	sg_wqe_set_remote(wqe, rkey, remote_addr);
	sg_wqe_set_atomic(wqe, v->swap, v->swap_mask, v->compare, v->compare_mask);
}

void sgdv_wr_masked_cmp_swp(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr,
			    const struct sgdv_cmp_swp *v)
{
	if (is_ours(ibqp))
		begin_atomic(ibqp, SG_WR_CMP_SWAP, rkey, remote_addr, v);
}

void sgdv_wr_masked_fetch_add(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr,
			      uint64_t add, uint64_t field_ends)
{
	struct sgdv_cmp_swp v = { .swap = add, .swap_mask = field_ends };

	if (is_ours(ibqp))
		begin_atomic(ibqp, SG_WR_FETCH_ADD, rkey, remote_addr, &v);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct sgdv_cmp_swp v = { compare, UINT64_MAX, swap, UINT64_MAX };

	begin_atomic(ibqp, SG_WR_CMP_SWAP, rkey, remote_addr, &v);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	sgdv_wr_masked_fetch_add(ibqp, rkey, remote_addr, add, 0);
}

static void wr_local_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_LOCAL_INV, SGP_SEND_FLAGS & ~IBV_SEND_SOLICITED);

	if (likely(wqe))
		sg_wqe_set_inv(wqe, invalidate_rkey);
	seal(ibqp);
}

static void wr_bind_mw(struct ibv_qp_ex *ibqp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct sg_wqe_hdr *wqe = begin(ibqp, SG_WR_BIND_MW, SGP_SEND_FLAGS & ~IBV_SEND_SOLICITED);
	int ret;

	if (unlikely(!wqe))
		return;
	ret = mw->type == IBV_MW_TYPE_2 ? sgp_set_bind(wqe, mw, rkey, info) : EINVAL;
	if (unlikely(ret))
		fail(to_sgp_qp_ex(ibqp), ret);
	else
		seal(ibqp);
}

/* Checks what may be set as payload of the entry; length in octets. */
static int check_payload(const struct sg_wqe_hdr *wqe, size_t num_sge, size_t length)
{
	switch (wqe->opcode) {
	case SG_WR_FETCH_ADD:
	case SG_WR_CMP_SWAP:
		return num_sge != 1 || length != SG_ATOM ? EINVAL : 0;
	case SG_WR_SEND_IMM: /* its message has none */
		return length ? EOPNOTSUPP : 0;
	default:
		return 0;
	}
}

static void wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct sgp_qp *qp = to_sgp_qp_ex(ibqp);
	struct sg_wqe_hdr *wqe = qp->wr_wqe;
	int ret;

	if (unlikely(!wqe))
		return;
	ret = check_payload(wqe, 1, length);
	if (unlikely(ret)) {
		fail(qp, ret);
		return;
	}
	if (wqe->opcode == SG_WR_SEND_IMM)
		return;
	wqe->num_sge = 1;
	sg_sge_set(sg_wqe_sge(wqe), addr, length, lkey);
}

static void wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct sgp_qp *qp = to_sgp_qp_ex(ibqp);
	struct sg_wqe_hdr *wqe = qp->wr_wqe;
	size_t length = 0, i;
	struct sg_sge *dst;
	int ret;

	if (unlikely(!wqe))
		return;
	for (i = 0; i < num_sge; i++)
		length += sg_list[i].length;
	ret = num_sge > qp->sq_max_sge ? EINVAL : check_payload(wqe, num_sge, length);
	if (unlikely(ret)) {
		fail(qp, ret);
		return;
	}
	if (wqe->opcode == SG_WR_SEND_IMM)
		return;
	wqe->num_sge = (uint8_t)num_sge;
	dst = sg_wqe_sge(wqe);
	for (i = 0; i < num_sge; i++)
		sg_sge_set(&dst[i], sg_list[i].addr, sg_list[i].length, sg_list[i].lkey);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct sgp_qp *qp = to_sgp_qp_ex(ibqp);
	struct sg_wqe_hdr *wqe = qp->wr_wqe;
	uint32_t used = 0;
	size_t i;
	int ret;

	if (unlikely(!wqe))
		return;
	if (unlikely(wqe->opcode == SG_WR_READ || sg_wqe_is_atomic(wqe))) {
		fail(qp, EINVAL);
		return;
	}
	for (i = 0; i < num_buf && used != SGP_INLINE_TOO_LONG; i++)
		used = sgp_wqe_append_inline(wqe, used, qp->max_inline, buf_list[i].addr,
					     buf_list[i].length);
	ret = used == SGP_INLINE_TOO_LONG ? EINVAL : check_payload(wqe, num_buf, used);
	if (unlikely(ret)) {
		fail(qp, ret);
		return;
	}
	if (wqe->opcode != SG_WR_SEND_IMM)
		sg_wqe_set_inline_len(wqe, used);
}

static void wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ibqp, 1, &buf);
}

static void wr_start(struct ibv_qp_ex *ibqp)
{
	struct sgp_qp *qp = to_sgp_qp_ex(ibqp);

	sgp_lock(&qp->sq_lock);
	qp->wr_err = 0;
	qp->wr_wqe = NULL;
	qp->wr_head = qp->sq.head;
}

static int wr_complete(struct ibv_qp_ex *ibqp)
{
	struct sgp_qp *qp = to_sgp_qp_ex(ibqp);
	int ret = qp->wr_err;

	if (likely(!ret && qp->wr_head != qp->sq.head)) {
		qp->sq.head = qp->wr_head;
		sgp_doorbell(qp->db, SG_DB_SQ, qp->qpn, qp->sq.head);
	}
	sgp_unlock(&qp->sq_lock);
	return ret;
}

static void wr_abort(struct ibv_qp_ex *ibqp)
{
	sgp_unlock(&to_sgp_qp_ex(ibqp)->sq_lock);
}

/* The operations that are always there, and those that need a feature. */
static uint64_t supported_ops(uint32_t features)
{
	static const struct {
		uint32_t feature;
		uint64_t ops;
	} rows[] = {
		{ SG_FEATURE_SEND_INV, IBV_QP_EX_WITH_SEND_WITH_INV },
#ifdef SGP_HAVE_FLUSH
		{ SG_FEATURE_FLUSH, IBV_QP_EX_WITH_FLUSH },
#endif
		{ SG_FEATURE_ATOMIC_WRITE, IBV_QP_EX_WITH_ATOMIC_WRITE },
		{ SG_FEATURE_ATOMICS,
		  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
		{ SG_FEATURE_IMM,
		  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_IMM },
		{ SG_FEATURE_MW, IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW },
	};
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (features & rows[i].feature)
			ops |= rows[i].ops;
	}
	return ops;
}

int sgp_wr_init(struct sgp_qp *qp, uint64_t send_ops_flags)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	if (send_ops_flags & ~supported_ops(qp->features))
		return EOPNOTSUPP;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
#define OP(flag, op)                                \
	if (send_ops_flags & IBV_QP_EX_WITH_##flag) \
	ex->wr_##op = wr_##op
	OP(SEND, send);
	OP(SEND_WITH_INV, send_inv);
	OP(SEND_WITH_IMM, send_imm);
	OP(RDMA_WRITE, rdma_write);
	OP(RDMA_WRITE_WITH_IMM, rdma_write_imm);
	OP(RDMA_READ, rdma_read);
	OP(ATOMIC_CMP_AND_SWP, atomic_cmp_swp);
	OP(ATOMIC_FETCH_AND_ADD, atomic_fetch_add);
	OP(LOCAL_INV, local_inv);
	OP(BIND_MW, bind_mw);
#ifdef SGP_HAVE_FLUSH
	OP(FLUSH, flush);
#endif
	OP(ATOMIC_WRITE, atomic_write);
#undef OP
	return 0;
}
