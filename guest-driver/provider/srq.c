// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared receive queues: creation, limit, size, destruction.  Posting is in post.c.
 *
 * Entries complete in any order and through several completion queues.  So slots are freed by the
 * number of completed entries, which each completion has in wr_index (admin.h): the device takes
 * entries strictly in order, so as many of the oldest slots are free as entries have completed.
 *
 * Resizing keeps the indices.  Under the lock nobody posts: entries that may not have been taken
 * yet are copied to the new ring, to which the device may switch at any moment of the command.
 */
#include <errno.h>
#include <stdlib.h>

#include <ccan/minmax.h>

#include "provider.h"
#include "staghorndv.h"
#include "wqe.h"

enum sgp_srq_limits {
	SGP_SRQ_SIZE_MIN = 2,
	SGP_SRQ_SIZE_MAX = 1 << 20, /* bounds our own arithmetic; the kernel has the real limit */
};

static uint32_t ring_size(uint32_t max_wr)
{
	return max_t(uint32_t, sgp_pow2_at_least(max_wr), SGP_SRQ_SIZE_MIN);
}

/* Allocates a ring and computes its limits; 0 or an errno value. */
static int alloc_ring(struct sgp_srq *srq, struct ibv_pd *pd, const struct ibv_srq_attr *want)
{
	uint32_t size = ring_size(want->max_wr);
	uint32_t stride;
	int ret;

	srq->rq.max_sge = max_t(uint32_t, want->max_sge, 1);
	stride = sgp_rq_stride(srq->rq.max_sge);
	if (stride > SG_WQE_STRIDE_MAX)
		return EINVAL;
	ret = sgp_buf_alloc(&srq->buf, pd, SGDV_RESOURCE_SRQ, (size_t)size * stride);
	if (ret)
		return ret;
	sgp_ring_init(&srq->rq.ring, srq->buf.addr, size, stride);
	return 0;
}

static int create_in_kernel(struct ibv_pd *pd, struct sgp_srq *srq,
			    const struct ibv_srq_init_attr *attr)
{
	/* The core writes the limits that were granted into its copy. */
	struct ibv_srq_init_attr copy = *attr;
	struct sgp_create_srq_resp resp = {};
	struct sgp_create_srq cmd = {};
	int ret;

	cmd.drv_payload = (struct sg_abi_create_srq){
		.buf = (uintptr_t)srq->buf.addr,
		.entries = srq->rq.ring.size,
		.stride = (uint16_t)(1u << srq->rq.ring.stride_shift),
		.max_sge = (uint8_t)srq->rq.max_sge,
	};
	ret = ibv_cmd_create_srq(pd, &srq->vsrq.srq, &copy, &cmd.ibv_cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	srq->rq.number = resp.drv_payload.srqn;
	return 0;
}

struct ibv_srq *sgp_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct sgp_context *ctx = to_sgp_context(pd->context);
	struct sgp_srq *srq;
	int ret;

	if (!(ctx->features & SG_FEATURE_SRQ)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!attr->attr.max_wr || attr->attr.max_wr > SGP_SRQ_SIZE_MAX ||
	    attr->attr.max_sge > ctx->max_rq_sge) {
		errno = EINVAL;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	ret = alloc_ring(srq, pd, &attr->attr);
	if (ret)
		goto err_free;
	srq->rq.doorbell = SG_DB_SRQ;
	sgp_lock_init(&srq->rq.lock, sgp_pd_promised(pd));
	ret = create_in_kernel(pd, srq, attr);
	if (ret)
		goto err_buf;
	attr->attr.max_wr = srq->rq.ring.size;
	attr->attr.max_sge = srq->rq.max_sge;
	return &srq->vsrq.srq;

err_buf:
	sgp_lock_fini(&srq->rq.lock);
	sgp_buf_free(&srq->buf);
err_free:
	free(srq);
	errno = ret;
	return NULL;
}

/* Under the lock. */
static int resize_in_kernel(struct sgp_srq *srq, struct ibv_srq_attr *attr, int attr_mask,
			    const struct sgp_buf *buf, uint32_t size)
{
	struct sgp_modify_srq cmd = {};

	cmd.drv_payload.buf = (uintptr_t)buf->addr;
	cmd.drv_payload.entries = size;
	return ibv_cmd_modify_srq(&srq->vsrq.srq, attr, attr_mask, &cmd.ibv_cmd, sizeof(cmd));
}

static int resize(struct sgp_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	struct sgp_ring *ring = &srq->rq.ring;
	struct sgp_buf buf = {};
	uint32_t size, stride;
	int ret;

	if (!attr->max_wr || attr->max_wr > SGP_SRQ_SIZE_MAX)
		return EINVAL;
	size = ring_size(attr->max_wr);
	stride = 1u << ring->stride_shift;
	ret = sgp_buf_alloc(&buf, srq->buf.owner ? &srq->buf.owner->ibpd : NULL, SGDV_RESOURCE_SRQ,
			    (size_t)size * stride);
	if (ret)
		return ret;
	sgp_lock(&srq->rq.lock);
	if (sgp_ring_copy(ring, buf.addr, size))
		ret = resize_in_kernel(srq, attr, attr_mask, &buf, size);
	else
		ret = EINVAL;
	if (!ret) {
		struct sgp_buf old = srq->buf;

		sgp_ring_move(ring, buf.addr, size);
		srq->buf = buf;
		buf = old;
	}
	sgp_unlock(&srq->rq.lock);
	sgp_buf_free(&buf);
	return ret;
}

int sgp_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int attr_mask)
{
	struct ibv_modify_srq cmd = {};

	if (attr_mask & IBV_SRQ_MAX_WR) {
		if (!(to_sgp_context(ibsrq->context)->features & SG_FEATURE_SRQ_RESIZE))
			return EOPNOTSUPP;
		return resize(to_sgp_srq(ibsrq), attr, attr_mask);
	}
	return ibv_cmd_modify_srq(ibsrq, attr, attr_mask, &cmd, sizeof(cmd));
}

int sgp_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd = {};

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

int sgp_destroy_srq(struct ibv_srq *ibsrq)
{
	struct sgp_srq *srq = to_sgp_srq(ibsrq);
	int ret = ibv_cmd_destroy_srq(ibsrq);

	/* It fails with EBUSY while queue pairs use it, so no poller uses it any more. */
	if (ret)
		return ret;
	sgp_buf_free(&srq->buf);
	sgp_lock_fini(&srq->rq.lock);
	free(srq);
	return 0;
}
