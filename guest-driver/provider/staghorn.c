// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Registration with libibverbs, and the lifetime of a context.
 *
 * The kernel driver has no number in the list of RDMA drivers, so the device is recognised by its
 * PCI identity; the ABI version of the driver must be ours exactly.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <ccan/minmax.h>

#include "provider.h"

static void free_context(struct ibv_context *context);

static const struct verbs_context_ops context_ops = {
	.advise_mr = sgp_advise_mr,
	.alloc_mw = sgp_alloc_mw,
	.alloc_parent_domain = sgp_alloc_parent_domain,
	.alloc_pd = sgp_alloc_pd,
	.alloc_td = sgp_alloc_td,
	.bind_mw = sgp_bind_mw,
	.cq_event = sgp_cq_event,
	.create_cq = sgp_create_cq,
	.create_cq_ex = sgp_create_cq_ex,
	.create_qp = sgp_create_qp,
	.create_qp_ex = sgp_create_qp_ex,
	.create_srq = sgp_create_srq,
	.dealloc_mw = sgp_dealloc_mw,
	.dealloc_pd = sgp_dealloc_pd,
	.dealloc_td = sgp_dealloc_td,
	.dereg_mr = sgp_dereg_mr,
	.destroy_cq = sgp_destroy_cq,
	.destroy_qp = sgp_destroy_qp,
	.destroy_srq = sgp_destroy_srq,
	.free_context = free_context,
	.modify_cq = sgp_modify_cq,
	.modify_qp = sgp_modify_qp,
	.modify_srq = sgp_modify_srq,
	.poll_cq = sgp_poll_cq,
	.post_recv = sgp_post_recv,
	.post_send = sgp_post_send,
	.post_srq_recv = sgp_post_srq_recv,
	.query_device_ex = sgp_query_device_ex,
	.query_port = sgp_query_port,
	.query_qp = sgp_query_qp,
	.query_rt_values = sgp_query_rt_values,
	.query_srq = sgp_query_srq,
	.reg_dmabuf_mr = sgp_reg_dmabuf_mr,
	.reg_mr = sgp_reg_mr,
	.req_notify_cq = sgp_req_notify_cq,
	.rereg_mr = sgp_rereg_mr,
	.resize_cq = sgp_resize_cq,
};

static struct verbs_context *alloc_context(struct ibv_device *device, int cmd_fd,
					   void *private_data)
{
	struct sgp_get_context_resp resp = {};
	struct ibv_get_context cmd = {};
	struct sgp_context *ctx;
	void *db;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx, RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;

	if (ibv_cmd_get_context(&ctx->vctx, &cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp)))
		goto err;

	db = mmap(NULL, SG_UAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, cmd_fd,
		  (off_t)resp.drv_payload.db_mmap_key);
	if (db == MAP_FAILED)
		goto err;

	ctx->db = db;
	ctx->max_inline = min_t(uint32_t, resp.drv_payload.max_inline, SG_MAX_INLINE);
	ctx->max_sq_sge = min_t(uint32_t, resp.drv_payload.max_sq_sge, SG_SQ_MAX_SGE);
	ctx->max_rq_sge = min_t(uint32_t, resp.drv_payload.max_rq_sge, SG_RQ_MAX_SGE);
	ctx->features = resp.drv_payload.features;
	ctx->hash_mask = resp.drv_payload.hash_mask;
	pthread_mutex_init(&ctx->qp_mutex, NULL);
	verbs_set_ops(&ctx->vctx, &context_ops);
	return &ctx->vctx;

err:
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
	return NULL;
}

static void free_context(struct ibv_context *context)
{
	struct sgp_context *ctx = to_sgp_context(context);
	unsigned int i;

	for (i = 0; i < SGP_QP_ROOT_SIZE; i++)
		free(atomic_load_explicit(&ctx->qp_root[i], memory_order_relaxed));
	pthread_mutex_destroy(&ctx->qp_mutex);
	munmap(ctx->db, SG_UAR_SIZE);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	struct sgp_device *dev = calloc(1, sizeof(*dev));

	return dev ? &dev->vdev : NULL;
}

static void uninit_device(struct verbs_device *vdev)
{
	free(container_of(vdev, struct sgp_device, vdev));
}

static const struct verbs_match_ent match_table[] = {
	VERBS_PCI_MATCH(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID, NULL),
	{},
};

static const struct verbs_device_ops device_ops = {
	.name = "staghorn",
	.match_min_abi_version = SG_ABI_VERSION,
	.match_max_abi_version = SG_ABI_VERSION,
	.match_table = match_table,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
	.alloc_context = alloc_context,
};

bool sgp_is_ours(struct ibv_device *device)
{
	return verbs_get_device(device)->ops == &device_ops;
}

PROVIDER_DRIVER(staghorn, device_ops);
