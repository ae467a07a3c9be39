// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Direct verbs (staghorndv.h): limits, and regions with a hash.  Verify is posted in wr.c.
 *
 * The numbers of the public header are those of the hardware contract and are not converted; the
 * assertions below keep them equal.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/array_size.h>
#include <ccan/minmax.h>

#include "provider.h"
#include "staghorndv.h"

#define SAME(dv, contract) \
	_Static_assert((unsigned int)(dv) == (unsigned int)(contract), "staghorndv.h differs")
SAME(SGDV_HASH_NONE, SG_HASH_NONE);
SAME(SGDV_HASH_CRC32C, SG_HASH_CRC32C);
SAME(SGDV_HASH_SHA256, SG_HASH_SHA256);
SAME(SGDV_HASH_SHA512, SG_HASH_SHA512);
SAME(SGDV_HASH_HMAC_SHA256, SG_HASH_HMAC_SHA256);
SAME(SGDV_HASH_MAX, SG_HASH_MAX);
SAME(SGDV_HASH_KEY_MAX, SG_HASH_KEY_MAX);
SAME(SGDV_MEM_ANY, SG_MEM_TYPE_ANY);
SAME(SGDV_MEM_VOLATILE, SG_MEM_TYPE_VOLATILE);
SAME(SGDV_MEM_PERSISTENT, SG_MEM_TYPE_PERSISTENT);
SAME(SGDV_MODE_DEFAULT, SG_MEM_MODE_DEFAULT);
SAME(SGDV_MODE_CACHED, SG_MEM_MODE_CACHED);
SAME(SGDV_MODE_DIRECT, SG_MEM_MODE_DIRECT);
SAME(sizeof(((struct sg_abi_reg_mr *)NULL)->hash_key), SG_HASH_KEY_MAX);
SAME(SGDV_VERIFY_INLINE(0), sizeof(struct sg_wqe_place) + sizeof(struct sg_sge));

bool sgdv_is_supported(struct ibv_device *device)
{
	return sgp_is_ours(device);
}

int sgdv_query_device(struct ibv_context *context, struct sgdv_device_attr *attr, uint32_t inlen)
{
	static const struct {
		uint32_t features;
		uint32_t cap;
	} map[] = {
#ifdef SGP_HAVE_FLUSH
		{ SG_FEATURE_FLUSH, SGDV_CAP_FLUSH_GLOBAL },
		{ SG_FEATURE_FLUSH | SG_FEATURE_FLUSH_PERSISTENT, SGDV_CAP_FLUSH_PERSISTENT },
		{ SG_FEATURE_FLUSH | SG_FEATURE_FLUSH_REGION, SGDV_CAP_FLUSH_MR },
#endif
		{ SG_FEATURE_ATOMIC_WRITE, SGDV_CAP_ATOMIC_WRITE },
		{ SG_FEATURE_VERIFY, SGDV_CAP_VERIFY },
		{ SG_FEATURE_ATOMICS, SGDV_CAP_MASKED_ATOMICS },
	};
	struct sgdv_device_attr ours = {};
	const struct sgp_context *ctx;
	unsigned int i;

	if (!sgp_is_ours(context->device))
		return EOPNOTSUPP;
	if (inlen < offsetof(struct sgdv_device_attr, max_hash_key))
		return EINVAL;
	ctx = to_sgp_context(context);
	for (i = 0; i < ARRAY_SIZE(map); i++) {
		if (!(map[i].features & ~ctx->features))
			ours.caps |= map[i].cap;
	}
	/* Only draft -02 can flush a region as a whole. */
	if (ctx->features & SG_FEATURE_FLUSH)
		ours.draft = ctx->features & SG_FEATURE_FLUSH_REGION ? 2 : 1;
	if (ctx->features & SG_FEATURE_VERIFY)
		ours.hash_mask = ctx->hash_mask;
	if (ours.hash_mask & 1u << SG_HASH_HMAC_SHA256)
		ours.max_hash_key = SG_HASH_KEY_MAX;
	memset(attr, 0, inlen);
	memcpy(attr, &ours, min_t(size_t, inlen, sizeof(ours)));
	return 0;
}

uint32_t sgdv_hash_len(enum sgdv_hash hash)
{
	static const uint8_t length[] = {
		[SGDV_HASH_CRC32C] = 4,
		[SGDV_HASH_SHA256] = 32,
		[SGDV_HASH_SHA512] = 64,
		[SGDV_HASH_HMAC_SHA256] = 32,
	};

	return (unsigned int)hash < ARRAY_SIZE(length) ? length[hash] : 0;
}

/* 0 or an errno value.  The device decides whether memory and rights fit the hash. */
static int check_mr_attr(const struct sgp_context *ctx, const struct sgdv_mr_attr *attr)
{
	bool keyed = attr->hash == SGDV_HASH_HMAC_SHA256;

	if (attr->comp_mask & ~(uint64_t)SGDV_MR_ATTR_IOVA ||
	    attr->mem_type > SGDV_MEM_PERSISTENT || attr->mem_mode > SGDV_MODE_DIRECT)
		return EINVAL;
	if (attr->hash != SGDV_HASH_NONE &&
	    (!(ctx->features & SG_FEATURE_VERIFY) || attr->hash >= SG_HASH_COUNT ||
	     !(ctx->hash_mask & 1u << attr->hash)))
		return EOPNOTSUPP;
	if (keyed ? !attr->key || !attr->key_len || attr->key_len > SGDV_HASH_KEY_MAX
		  : attr->key_len != 0)
		return EINVAL;
	return 0;
}

struct ibv_mr *sgdv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access,
			   const struct sgdv_mr_attr *attr)
{
	struct sg_abi_reg_mr req = {};
	struct ibv_mr *mr;
	uint64_t iova;
	int ret;

	ret = sgp_is_ours(pd->context->device) ? check_mr_attr(to_sgp_context(pd->context), attr)
					       : EOPNOTSUPP;
	if (ret) {
		errno = ret;
		return NULL;
	}
	req.hash_alg = (uint8_t)attr->hash;
	req.hash_key_len = (uint8_t)attr->key_len;
	req.mem_type = (uint8_t)attr->mem_type;
	req.mem_mode = (uint8_t)attr->mem_mode;
	if (attr->key_len)
		memcpy(req.hash_key, attr->key, attr->key_len);
	iova = attr->comp_mask & SGDV_MR_ATTR_IOVA ? attr->iova : (uintptr_t)addr;

	/* As libibverbs does around a provider's reg_mr; its dereg_mr undoes it. */
	if (!(access & IBV_ACCESS_ON_DEMAND)) {
		ret = ibv_dontfork_range(addr, length);
		if (ret) {
			errno = ret > 0 ? ret : errno;
			return NULL;
		}
	}
	mr = sgp_reg_mr_private(pd, addr, length, iova, access, &req);
	explicit_bzero(&req, sizeof(req));
	if (!mr) {
		ret = errno;
		if (!(access & IBV_ACCESS_ON_DEMAND))
			ibv_dofork_range(addr, length);
		errno = ret;
		return NULL;
	}
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	return mr;
}

int sgdv_query_mr(struct ibv_mr *mr, struct sgdv_mr_attr *attr, uint32_t inlen)
{
	struct sgdv_mr_attr ours = {};
	const struct sgp_mr *smr;

	if (!sgp_is_ours(mr->context->device))
		return EOPNOTSUPP;
	if (inlen < offsetof(struct sgdv_mr_attr, iova))
		return EINVAL;
	smr = to_sgp_mr(mr);
	ours.hash = smr->hash_alg;
	ours.key_len = smr->hash_key_len;
	ours.mem_type = smr->mem_type;
	ours.mem_mode = smr->mem_mode;
	memset(attr, 0, inlen);
	memcpy(attr, &ours, min_t(size_t, inlen, sizeof(ours)));
	return 0;
}
