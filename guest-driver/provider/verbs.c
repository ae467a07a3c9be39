// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Verbs that need only the kernel: limits, port, memory regions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

int sgp_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint64_t fw;
	int ret;

	ret = ibv_cmd_query_device_any(context, input, attr, attr_size, &resp, &resp_size);
	if (ret)
		return ret;

	/* The driver announces it for kernel consumers, which can do without the message. */
	if (!(to_sgp_context(context)->features & SG_FEATURE_SEND_INV)) {
		attr->orig_attr.device_cap_flags &= ~IBV_DEVICE_MEM_MGT_EXTENSIONS;
		if (attr_size >= offsetof(struct ibv_device_attr_ex, device_cap_flags_ex) +
					 sizeof(attr->device_cap_flags_ex))
			attr->device_cap_flags_ex &= ~(uint64_t)IBV_DEVICE_MEM_MGT_EXTENSIONS;
	}

	/* The kernel reports three 16-bit numbers in one word. */
	fw = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u.%u",
		 (unsigned int)(fw >> 32 & 0xffff), (unsigned int)(fw >> 16 & 0xffff),
		 (unsigned int)(fw & 0xffff));
	return 0;
}

int sgp_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd = {};

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

struct ibv_mr *sgp_reg_mr_private(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				  int access, const struct sg_abi_reg_mr *req)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct sgp_reg_mr_cmd cmd = {};
	/* Without attributes the command has the core's part only. */
	size_t cmd_size = sizeof(cmd.ibv_cmd);
	struct sgp_mr *mr;
	int ret;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	if (req) {
		cmd.drv_payload = *req;
		cmd_size = sizeof(cmd);
		mr->hash_alg = req->hash_alg;
		mr->hash_key_len = req->hash_key_len;
		mr->mem_type = req->mem_type;
		mr->mem_mode = req->mem_mode;
	}
	ret = ibv_cmd_reg_mr(pd, addr, length, iova, access, &mr->vmr, &cmd.ibv_cmd, cmd_size,
			     &resp, sizeof(resp));
	explicit_bzero(&cmd, sizeof(cmd));
	if (ret) {
		free(mr);
		errno = ret;
		return NULL;
	}
	return &mr->vmr.ibv_mr;
}

/* iova is the Tagged Offset of the first octet, for the peer and in lists of elements. */
struct ibv_mr *sgp_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return sgp_reg_mr_private(pd, addr, length, iova, access, NULL);
}

/* If the kernel creates a new region instead of the old one, the keys change. */
int sgp_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct ib_uverbs_rereg_mr_resp resp = {};
	struct ibv_rereg_mr cmd = {};

	return ibv_cmd_rereg_mr(vmr, (uint32_t)flags, addr, length, (uintptr_t)addr, access, pd,
				&cmd, sizeof(cmd), &resp, sizeof(resp));
}

struct ibv_mr *sgp_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	struct sgp_mr *mr;
	int ret;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	ret = ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, &mr->vmr, NULL);
	if (ret) {
		free(mr);
		return NULL; /* errno is set */
	}
	return &mr->vmr.ibv_mr;
}

int sgp_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		  struct ibv_sge *sg_list, uint32_t num_sge)
{
	return ibv_cmd_advise_mr(pd, advice, flags, sg_list, num_sge);
}

int sgp_dereg_mr(struct verbs_mr *vmr)
{
	int ret = ibv_cmd_dereg_mr(vmr);

	if (ret)
		return ret;
	free(container_of(vmr, struct sgp_mr, vmr));
	return 0;
}
