// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queue pairs: geometry, creation, state, destruction.  Posting is in post.c and wr.c.
 *
 * The kernel handles the connection (iw_cm): user space moves a queue pair only towards error or
 * closing, or back to reset.
 *
 * Creation and destruction hold the context's qp_mutex around the kernel's part and the change of
 * the table, so that a number that the kernel reuses cannot meet an entry of its former owner.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/array_size.h>
#include <ccan/minmax.h>

#include "provider.h"
#include "staghorndv.h"
#include "wqe.h"

enum sgp_qp_limits {
	SGP_WQ_SIZE_MIN = 2,
	SGP_WQ_SIZE_MAX = 1 << 20, /* bounds our own arithmetic; the kernel has the real limit */
};

static int table_insert(struct sgp_context *ctx, struct sgp_qp *qp)
{
	_Atomic(struct sgp_qp_leaf *) *root;
	struct sgp_qp_leaf *leaf;

	if (qp->qpn >> SGP_QPN_BITS)
		return EOVERFLOW;
	root = &ctx->qp_root[qp->qpn >> SGP_QP_LEAF_BITS];
	leaf = atomic_load_explicit(root, memory_order_relaxed);
	if (!leaf) {
		leaf = calloc(1, sizeof(*leaf));
		if (!leaf)
			return ENOMEM;
		atomic_store_explicit(root, leaf, memory_order_release);
	}
	atomic_store_explicit(&leaf->qp[qp->qpn & (SGP_QP_LEAF_SIZE - 1)], qp,
			      memory_order_release);
	return 0;
}

/* Leaves stay until the context is freed: pollers read them without a lock. */
static void table_remove(struct sgp_context *ctx, struct sgp_qp *qp)
{
	struct sgp_qp_leaf *leaf = atomic_load_explicit(&ctx->qp_root[qp->qpn >> SGP_QP_LEAF_BITS],
							memory_order_relaxed);

	atomic_store_explicit(&leaf->qp[qp->qpn & (SGP_QP_LEAF_SIZE - 1)], NULL,
			      memory_order_release);
}

static void purge_cqs(struct sgp_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	sgp_cq_purge(to_sgp_cq(ibqp->send_cq), qp);
	if (ibqp->recv_cq != ibqp->send_cq)
		sgp_cq_purge(to_sgp_cq(ibqp->recv_cq), qp);
}

static int check_attr(const struct sgp_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS;

	if (attr->qp_type != IBV_QPT_RC || attr->comp_mask & ~known ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->send_cq || !attr->recv_cq ||
	    attr->cap.max_send_wr > SGP_WQ_SIZE_MAX || attr->cap.max_send_sge > ctx->max_sq_sge ||
	    attr->cap.max_inline_data > ctx->max_inline)
		return EINVAL;
	if (!attr->srq &&
	    (attr->cap.max_recv_wr > SGP_WQ_SIZE_MAX || attr->cap.max_recv_sge > ctx->max_rq_sge))
		return EINVAL;
	return 0;
}

static int alloc_rq(struct sgp_context *ctx, struct sgp_qp *qp, struct ibv_pd *pd,
		    const struct ibv_qp_cap *want)
{
	uint32_t size = max_t(uint32_t, sgp_pow2_at_least(want->max_recv_wr), SGP_WQ_SIZE_MIN);
	uint32_t stride = sgp_rq_stride(max_t(uint32_t, want->max_recv_sge, 1));
	int ret;

	if (stride > SG_WQE_STRIDE_MAX)
		return EINVAL;
	ret = sgp_buf_alloc(&qp->rq_buf, pd, SGDV_RESOURCE_QP, (size_t)size * stride);
	if (ret)
		return ret;
	sgp_ring_init(&qp->rq.ring, qp->rq_buf.addr, size, stride);
	qp->rq.max_sge = min_t(uint32_t, sgp_rq_sge_room(stride), ctx->max_rq_sge);
	qp->cap.max_recv_wr = size;
	qp->cap.max_recv_sge = qp->rq.max_sge;
	return 0;
}

/*
 * Room behind the header for operations with operands.  A queue pair that is created without naming
 * its operations may post any that the device has.
 */
static uint32_t least_body(const struct sgp_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	static const struct {
		uint32_t feature;
		uint64_t ops;
		uint32_t body;
	} rows[] = {
		{ SG_FEATURE_ATOMICS,
		  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
		  SG_WQE_ATOMIC_BODY },
		{ SG_FEATURE_MW, IBV_QP_EX_WITH_BIND_MW, sizeof(struct sg_wqe_bind) },
	};
	uint64_t ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags
									 : UINT64_MAX;
	uint32_t body = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (ctx->features & rows[i].feature && ops & rows[i].ops)
			body = max_t(uint32_t, body, rows[i].body);
	}
	return body;
}

/*
 * Chooses strides and sizes, and allocates the rings.  The limits include what rounding up adds.
 * On error the caller frees the buffers.
 */
static int alloc_rings(struct sgp_context *ctx, struct sgp_qp *qp, struct ibv_pd *pd,
		       const struct ibv_qp_cap *want, uint32_t min_body)
{
	uint32_t size = max_t(uint32_t, sgp_pow2_at_least(want->max_send_wr), SGP_WQ_SIZE_MIN);
	uint32_t stride = sgp_sq_stride(max_t(uint32_t, want->max_send_sge, 1),
					want->max_inline_data, min_body);
	int ret;

	if (stride > SG_WQE_STRIDE_MAX)
		return EINVAL;
	ret = sgp_buf_alloc(&qp->sq_buf, pd, SGDV_RESOURCE_QP, (size_t)size * stride);
	if (ret)
		return ret;
	sgp_ring_init(&qp->sq, qp->sq_buf.addr, size, stride);
	qp->sq_room = sgp_sq_inline_room(stride);
	qp->sq_max_sge = min_t(uint32_t, sgp_sq_sge_room(stride), ctx->max_sq_sge);
	qp->max_inline = min_t(uint32_t, qp->sq_room, ctx->max_inline);
	qp->cap.max_send_wr = size;
	qp->cap.max_send_sge = qp->sq_max_sge;
	qp->cap.max_inline_data = qp->max_inline;
	return qp->srq ? 0 : alloc_rq(ctx, qp, pd, want);
}

#define SAME_PLACE(member)                                                   \
	_Static_assert(offsetof(struct ibv_qp_init_attr, member) ==          \
			       offsetof(struct ibv_qp_init_attr_ex, member), \
		       #member)
SAME_PLACE(qp_context);
SAME_PLACE(srq);
SAME_PLACE(cap);
SAME_PLACE(sq_sig_all);

/*
 * The fields that both kinds of attributes begin with, and the domain.  The rest of extended
 * attributes is not read, because a program built against an older libibverbs has less of it.
 */
static struct ibv_qp_init_attr_ex plain_attr(const void *attr, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr_ex plain = { .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd };

	memcpy(&plain, attr, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	return plain;
}

/* The kernel's part and the table; under qp_mutex. */
static int create_in_kernel(struct sgp_context *ctx, struct sgp_qp *qp,
			    const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex plain = plain_attr(attr, attr->pd);
	struct sgp_create_qp_resp resp = {};
	struct sgp_create_qp cmd = {};
	int ret;

	cmd.drv_payload = (struct sg_abi_create_qp){
		.sq_buf = (uintptr_t)qp->sq_buf.addr,
		.rq_buf = (uintptr_t)qp->rq_buf.addr,
		.sq_entries = qp->sq.size,
		.rq_entries = qp->rq.ring.size,
		.sq_stride = (uint16_t)(1u << qp->sq.stride_shift),
		.rq_stride = (uint16_t)(qp->srq ? 0 : 1u << qp->rq.ring.stride_shift),
		.max_inline = (uint16_t)qp->max_inline,
		.sq_max_sge = (uint8_t)qp->sq_max_sge,
		.rq_max_sge = (uint8_t)qp->rq.max_sge,
	};
	ret = ibv_cmd_create_qp_ex(&ctx->vctx.context, &qp->vqp, &plain, &cmd.ibv_cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	qp->qpn = resp.drv_payload.qpn;
	qp->rq.number = qp->qpn;
	ret = table_insert(ctx, qp);
	if (ret)
		ibv_cmd_destroy_qp(&qp->vqp.qp);
	return ret;
}

static void free_qp(struct sgp_qp *qp)
{
	sgp_buf_free(&qp->rq_buf);
	sgp_buf_free(&qp->sq_buf);
	sgp_lock_fini(&qp->rq.lock);
	sgp_lock_fini(&qp->sq_lock);
	free(qp);
}

struct ibv_qp *sgp_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct sgp_context *ctx = to_sgp_context(context);
	struct sgp_qp *qp;
	int ret;

	ret = check_attr(ctx, attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	sgp_lock_init(&qp->sq_lock, sgp_pd_promised(attr->pd));
	sgp_lock_init(&qp->rq.lock, sgp_pd_promised(attr->pd));
	qp->rq.doorbell = SG_DB_RQ;
	qp->srq = attr->srq ? to_sgp_srq(attr->srq) : NULL;
	qp->db = ctx->db;
	qp->features = ctx->features;
	qp->sq_flags = attr->sq_sig_all ? SG_WQE_SIGNALED : 0;

	ret = alloc_rings(ctx, qp, attr->pd, &attr->cap, least_body(ctx, attr));
	if (!ret && attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		ret = sgp_wr_init(qp, attr->send_ops_flags);
	if (ret)
		goto err;

	pthread_mutex_lock(&ctx->qp_mutex);
	ret = create_in_kernel(ctx, qp, attr);
	pthread_mutex_unlock(&ctx->qp_mutex);
	if (ret)
		goto err;

	/* Set late: the core clears it on creation. */
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		qp->vqp.comp_mask |= VERBS_QP_EX;
	attr->cap = qp->cap;
	return &qp->vqp.qp;

err:
	free_qp(qp);
	errno = ret;
	return NULL;
}

struct ibv_qp *sgp_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = plain_attr(attr, pd);
	struct ibv_qp *qp = sgp_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

int sgp_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	struct sgp_qp *qp = to_sgp_qp(ibqp);
	struct ibv_query_qp cmd = {};
	int ret;

	ret = ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	attr->cap = qp->cap;
	init_attr->cap = qp->cap;
	return 0;
}

/*
 * After reset the queue pair can be used again: the device has flushed what was posted,
 * indices continue, and unpolled completions are void.
 */
static void reset_queues(struct sgp_qp *qp)
{
	purge_cqs(qp);
	sgp_lock(&qp->sq_lock);
	sgp_ring_drain(&qp->sq);
	sgp_unlock(&qp->sq_lock);
	sgp_lock(&qp->rq.lock);
	sgp_ring_drain(&qp->rq.ring);
	sgp_unlock(&qp->rq.lock);
}

int sgp_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct ibv_modify_qp cmd = {};
	int ret;

	ret = ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd, sizeof(cmd));
	if (!ret && attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		reset_queues(to_sgp_qp(ibqp));
	return ret;
}

int sgp_destroy_qp(struct ibv_qp *ibqp)
{
	struct sgp_context *ctx = to_sgp_context(ibqp->context);
	struct sgp_qp *qp = to_sgp_qp(ibqp);
	int ret;

	pthread_mutex_lock(&ctx->qp_mutex);
	ret = ibv_cmd_destroy_qp(ibqp);
	if (!ret) {
		/*
		 * The device writes no more completions of it.  After purge has had the lock, no
		 * poller uses the queue pair for a completion, and there are none left.  It stays
		 * in the table while there are any: without it, polling one would not free its
		 * slot of a shared receive queue.
		 */
		purge_cqs(qp);
		table_remove(ctx, qp);
	}
	pthread_mutex_unlock(&ctx->qp_mutex);
	if (ret)
		return ret;
	free_qp(qp);
	return 0;
}
