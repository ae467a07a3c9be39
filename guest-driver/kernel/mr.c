// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory regions and windows.  The adapter chooses STags; the low octet is the key, which the
 * driver chooses at random for user memory and kernel consumers change through
 * ib_update_fast_reg_key().  Work requests bind windows; this file only allocates them.
 *
 * Re-registration with other rights or another domain keeps the region and its keys.  Other memory,
 * or a right to write that the pinned pages do not have, needs a new region, which replaces the
 * old one if it can be created; then the keys change.  Nothing changes if it fails.
 */
#include <linux/dma-mapping.h>
#include <linux/random.h>

#include "buf.h"
#include "mr.h"

static_assert(sizeof_field(struct sg_abi_reg_mr, hash_key) == SG_HASH_KEY_MAX);
static_assert(sizeof_field(struct sg_cmd_reg_mr, hash_key) == SG_HASH_KEY_MAX);

#define SGH_ACCESS_KNOWN                                                                 \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |        \
	 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT | \
	 IB_ACCESS_HUGETLB | IB_ACCESS_MW_BIND | IB_ZERO_BASED | IB_ACCESS_ON_DEMAND |   \
	 IB_ACCESS_OPTIONAL)

u32 sgh_access(int ib_access)
{
	static const struct {
		int ib;
		u32 hw;
	} map[] = {
		{ IB_ACCESS_LOCAL_WRITE, SG_ACCESS_LOCAL_WRITE },
		{ IB_ACCESS_REMOTE_READ, SG_ACCESS_REMOTE_READ },
		{ IB_ACCESS_REMOTE_WRITE, SG_ACCESS_REMOTE_WRITE },
		{ IB_ACCESS_REMOTE_ATOMIC, SG_ACCESS_REMOTE_ATOMIC },
		{ IB_ACCESS_FLUSH_GLOBAL, SG_ACCESS_FLUSH_GLOBAL },
		{ IB_ACCESS_FLUSH_PERSISTENT, SG_ACCESS_FLUSH_PERSISTENT },
		{ IB_ACCESS_MW_BIND, SG_ACCESS_MW_BIND },
		{ IB_ZERO_BASED, SG_ACCESS_ZERO_BASED },
	};
	u32 access = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(map); i++) {
		if (ib_access & map[i].ib)
			access |= map[i].hw;
	}
	return access;
}

/*
 * The private part of a registration, if user space sent one.  The driver does not interpret the
 * numbers; the adapter refuses algorithms, key lengths, types and modes that it does not know.
 */
static int sgh_reg_mr_user(struct sg_cmd_reg_mr *cmd, struct ib_udata *udata)
{
	struct sg_abi_reg_mr req = {};
	int ret;

	if (!udata || !udata->inlen)
		return 0;
	if (udata->inlen > sizeof(req) &&
	    !ib_is_udata_cleared(udata, sizeof(req), udata->inlen - sizeof(req)))
		return -EINVAL;
	ret = ib_copy_from_udata(&req, udata, min(sizeof(req), udata->inlen));
	if (ret)
		return ret;
	if (req.reserved)
		return -EINVAL;
	cmd->hash_alg = req.hash_alg;
	cmd->hash_key_len = req.hash_key_len;
	cmd->mem_type = req.mem_type;
	cmd->mem_mode = req.mem_mode;
	memcpy(cmd->hash_key, req.hash_key, sizeof(cmd->hash_key));
	if (req.hash_alg != SG_HASH_NONE)
		cmd->access |= cpu_to_le32(SG_ACCESS_VERIFY);
	memzero_explicit(&req, sizeof(req));
	return 0;
}

static int sgh_reg_mr(struct sgh_dev *dev, struct sgh_mr *mr, struct sg_cmd_reg_mr *cmd)
{
	struct sg_admin_rsp rsp;
	int ret;

	cmd->pd = cpu_to_le32(to_sgh_pd(mr->ibmr.pd)->pdn);
	cmd->key = get_random_u8();
	ret = sgh_admin(dev, SG_ADMIN_REG_MR, cmd, sizeof(*cmd), &rsp);
	if (ret)
		return ret;
	mr->ibmr.lkey = le32_to_cpu(rsp.id);
	mr->ibmr.rkey = mr->ibmr.lkey;
	return 0;
}

static struct sgh_mr *sgh_mr_new(struct ib_pd *ibpd)
{
	struct sgh_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (mr)
		mr->ibmr.pd = ibpd;
	return mr;
}

/* What the region is, after the adapter has taken it. */
static struct ib_mr *sgh_mr_registered(struct sgh_mr *mr, u64 va, u64 length, int access,
				       u32 page_size)
{
	mr->va = va;
	mr->access = access;
	mr->ibmr.iova = access & IB_ZERO_BASED ? 0 : va;
	mr->ibmr.length = length;
	mr->ibmr.page_size = page_size;
	return &mr->ibmr;
}

/* All memory that the adapter can reach, for kernel consumers. */
struct ib_mr *sgh_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct sgh_dev *dev = to_sgh(ibpd->device);
	struct sg_cmd_reg_mr cmd = { .flags = SG_MR_WHOLE_MEMORY };
	struct sgh_mr *mr;
	int ret;

	if (access & ~SGH_ACCESS_KNOWN)
		return ERR_PTR(-EOPNOTSUPP);
	mr = sgh_mr_new(ibpd);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	cmd.access = cpu_to_le32(sgh_access(access));
	ret = sgh_reg_mr(dev, mr, &cmd);
	if (ret) {
		kfree(mr);
		return ERR_PTR(ret);
	}
	return &mr->ibmr;
}

static int sgh_check_user_mr(struct sgh_dev *dev, u64 length, int access)
{
	if (access & ~SGH_ACCESS_KNOWN)
		return -EOPNOTSUPP;
	/* For an on-demand region over the whole address space the adapter checks the length. */
	if (!length || (length > dev->caps.max_mr_size &&
			!(access & IB_ACCESS_ON_DEMAND && length == U64_MAX)))
		return -EINVAL;
	return 0;
}

/* Makes a region over umem, which it owns on success; on failure the caller keeps it. */
static struct ib_mr *sgh_reg_umem(struct ib_pd *ibpd, struct ib_umem *umem, u64 length, u64 va,
				  int access, struct sg_cmd_reg_mr *cmd)
{
	struct sgh_dev *dev = to_sgh(ibpd->device);
	unsigned long page_size;
	struct sgh_pbl pbl;
	struct sgh_mr *mr;
	int ret;

	mr = sgh_mr_new(ibpd);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	page_size = ib_umem_find_best_pgsz(umem, dev->caps.page_size_mask, va);
	if (!page_size) {
		ret = -EINVAL;
		goto err_free;
	}
	ret = sgh_pbl_from_umem(dev, &pbl, umem, page_size,
				ib_umem_num_dma_blocks(umem, page_size));
	if (ret)
		goto err_free;

	cmd->access |= cpu_to_le32(sgh_access(access));
	cmd->va = cpu_to_le64(va);
	cmd->length = cpu_to_le64(length);
	cmd->pages = pbl.desc;
	ret = sgh_reg_mr(dev, mr, cmd);
	sgh_pbl_free(dev, &pbl);
	if (ret)
		goto err_free;
	mr->umem = umem;
	mr->hash_alg = cmd->hash_alg;
	mr->mem_type = cmd->mem_type;
	mr->mem_mode = cmd->mem_mode;
	return sgh_mr_registered(mr, va, length, access, page_size);

err_free:
	kfree(mr);
	return ERR_PTR(ret);
}

static struct ib_mr *sgh_reg_odp(struct ib_pd *ibpd, u64 start, u64 length, u64 va, int access,
				 struct sg_cmd_reg_mr *cmd)
{
	struct sgh_dev *dev = to_sgh(ibpd->device);
	struct sgh_mr *mr;
	int ret;

	mr = sgh_mr_new(ibpd);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->odp = sgh_odp_begin(dev, ibpd, cmd, start, &length, va, access);
	if (IS_ERR(mr->odp)) {
		ret = PTR_ERR(mr->odp);
		goto err_free;
	}
	cmd->access |= cpu_to_le32(sgh_access(access));
	cmd->va = cpu_to_le64(va);
	cmd->length = cpu_to_le64(length);
	/* A fault that arrives before the region is in the table waits for this mutex. */
	mutex_lock(&dev->odp_mutex);
	ret = sgh_reg_mr(dev, mr, cmd);
	if (ret) {
		mutex_unlock(&dev->odp_mutex);
		goto err_odp;
	}
	ret = sgh_odp_registered(mr->odp, mr->ibmr.lkey);
	mutex_unlock(&dev->odp_mutex);
	if (ret) {
		sgh_odp_dereg(mr->odp);
		goto err_odp;
	}
	return sgh_mr_registered(mr, va, length, access, PAGE_SIZE);

err_odp:
	sgh_odp_end(mr->odp);
err_free:
	kfree(mr);
	return ERR_PTR(ret);
}

struct ib_mr *sgh_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 va, int access,
			      struct ib_udata *udata)
{
	struct sg_cmd_reg_mr cmd = {};
	struct ib_umem *umem;
	struct ib_mr *ibmr;
	int ret;

	ret = sgh_check_user_mr(to_sgh(ibpd->device), length, access);
	if (!ret)
		ret = sgh_reg_mr_user(&cmd, udata);
	if (ret)
		return ERR_PTR(ret);
	if (access & IB_ACCESS_ON_DEMAND) {
		ibmr = sgh_reg_odp(ibpd, start, length, va, access, &cmd);
		memzero_explicit(cmd.hash_key, sizeof(cmd.hash_key));
		return ibmr;
	}
	umem = ib_umem_get(ibpd->device, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	ibmr = sgh_reg_umem(ibpd, umem, length, va, access, &cmd);
	memzero_explicit(cmd.hash_key, sizeof(cmd.hash_key));
	if (IS_ERR(ibmr))
		ib_umem_release(umem);
	return ibmr;
}

/* The memory is pinned: the adapter could not be told that the exporter moves it. */
struct ib_mr *sgh_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 va, int fd,
				     int access, sgh_reg_dmabuf_arg *arg)
{
	struct sg_cmd_reg_mr cmd = {};
	struct ib_umem_dmabuf *dmabuf;
	struct ib_mr *ibmr;
	int ret;

	ret = sgh_check_user_mr(to_sgh(ibpd->device), length, access);
	if (ret)
		return ERR_PTR(ret);
	dmabuf = ib_umem_dmabuf_get_pinned(ibpd->device, offset, length, fd, access);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	ibmr = sgh_reg_umem(ibpd, &dmabuf->umem, length, va, access, &cmd);
	if (IS_ERR(ibmr))
		ib_umem_release(&dmabuf->umem);
	return ibmr;
}

static int sgh_modify_mr(struct sgh_mr *mr, int flags, struct ib_pd *pd, int access)
{
	struct sg_cmd_modify_mr cmd = {};
	int ret;

	ret = sgh_check_user_mr(to_sgh(pd->device), mr->ibmr.length, access);
	if (ret)
		return ret;
	cmd.stag = cpu_to_le32(mr->ibmr.lkey);
	cmd.mask = cpu_to_le32((flags & IB_MR_REREG_PD ? SG_MR_MOD_PD : 0) |
			       (flags & IB_MR_REREG_ACCESS ? SG_MR_MOD_ACCESS : 0));
	cmd.pd = cpu_to_le32(to_sgh_pd(pd)->pdn);
	cmd.access = cpu_to_le32(sgh_access(access));
	ret = sgh_admin(to_sgh(pd->device), SG_ADMIN_MODIFY_MR, &cmd, sizeof(cmd), NULL);
	if (!ret)
		mr->access = access;
	return ret;
}

/*
 * What the flags do not name stays unchanged.  A region with a hash, whose key is not kept here,
 * and a region over a dma-buf cannot be created again.
 */
struct ib_mr *sgh_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length, u64 va,
				int access, struct ib_pd *new_pd, struct ib_udata *udata)
{
	struct sgh_mr *mr = to_sgh_mr(ibmr);
	struct ib_pd *pd;

	if (flags & ~IB_MR_REREG_SUPPORTED || !mr->umem || mr->umem->is_dmabuf ||
	    mr->umem->is_odp || mr->hash_alg != SG_HASH_NONE)
		return ERR_PTR(-EOPNOTSUPP);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if (!(flags & IB_MR_REREG_TRANS)) {
		/* After a fork, these addresses belong to another process. */
		if (mr->umem->owning_mm != current->mm)
			return ERR_PTR(-EOPNOTSUPP);
		start = mr->umem->address;
		length = mr->umem->length;
		va = mr->va;
	}
	pd = flags & IB_MR_REREG_PD ? new_pd : ibmr->pd;
	if (!(flags & IB_MR_REREG_TRANS) && !(access & IB_ACCESS_ON_DEMAND) &&
	    !((access ^ mr->access) & IB_ZERO_BASED) &&
	    (mr->umem->writable || !ib_access_writable(access)))
		return ERR_PTR(sgh_modify_mr(mr, flags, pd, access)); /* NULL: the same region */
	return sgh_reg_user_mr(pd, start, length, va, access, NULL);
}

struct ib_mr *sgh_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct sgh_dev *dev = to_sgh(ibpd->device);
	struct sg_cmd_alloc_mr cmd = {};
	struct sg_admin_rsp rsp;
	struct sgh_mr *mr;
	int ret;

	if (type != IB_MR_TYPE_MEM_REG || !dev->caps.max_fr_pages)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > dev->caps.max_fr_pages)
		return ERR_PTR(-EINVAL);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->max_pages = max_num_sg;
	/* Up to 2 MiB of contiguous memory; callers must cope with -ENOMEM. */
	mr->pages = dma_alloc_coherent(&dev->pdev->dev, max_num_sg * sizeof(*mr->pages),
				       &mr->pages_dma, GFP_KERNEL | __GFP_NOWARN);
	if (!mr->pages) {
		ret = -ENOMEM;
		goto err_free;
	}
	cmd.pd = cpu_to_le32(to_sgh_pd(ibpd)->pdn);
	cmd.max_pages = cpu_to_le32(max_num_sg);
	ret = sgh_admin(dev, SG_ADMIN_ALLOC_MR, &cmd, sizeof(cmd), &rsp);
	if (ret)
		goto err_pages;
	mr->ibmr.lkey = le32_to_cpu(rsp.id);
	mr->ibmr.rkey = mr->ibmr.lkey;
	return &mr->ibmr;

err_pages:
	dma_free_coherent(&dev->pdev->dev, max_num_sg * sizeof(*mr->pages), mr->pages,
			  mr->pages_dma);
err_free:
	kfree(mr);
	return ERR_PTR(ret);
}

static int sgh_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct sgh_mr *mr = to_sgh_mr(ibmr);

	if (mr->npages == mr->max_pages)
		return -ENOMEM;
	mr->pages[mr->npages++] = cpu_to_le64(addr);
	return 0;
}

int sgh_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset)
{
	struct sgh_mr *mr = to_sgh_mr(ibmr);

	mr->npages = 0;
	return ib_sg_to_pages(ibmr, sg, nents, offset, sgh_set_page);
}

int sgh_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct sgh_dev *dev = to_sgh(ibmr->device);
	struct sgh_mr *mr = to_sgh_mr(ibmr);
	int ret;

	ret = mr->odp ? sgh_odp_dereg(mr->odp)
		      : sgh_admin_destroy(dev, SG_ADMIN_DEREG_MR, ibmr->lkey);
	if (ret)
		return ret;
	if (mr->odp)
		sgh_odp_end(mr->odp);
	ib_umem_release(mr->umem);
	if (mr->pages)
		dma_free_coherent(&dev->pdev->dev, mr->max_pages * sizeof(*mr->pages), mr->pages,
				  mr->pages_dma);
	kfree(mr);
	return 0;
}

int sgh_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct sgh_dev *dev = to_sgh(ibmw->device);
	struct sg_cmd_alloc_mw cmd = {};
	struct sg_admin_rsp rsp;
	int ret;

	if (!sgh_has(dev, SG_FEATURE_MW))
		return -EOPNOTSUPP;
	cmd.pd = cpu_to_le32(to_sgh_pd(ibmw->pd)->pdn);
	cmd.type = ibmw->type == IB_MW_TYPE_1 ? SG_MW_TYPE_1 : SG_MW_TYPE_2;
	cmd.key = get_random_u8();
	ret = sgh_admin(dev, SG_ADMIN_ALLOC_MW, &cmd, sizeof(cmd), &rsp);
	if (!ret)
		ibmw->rkey = le32_to_cpu(rsp.id);
	return ret;
}

int sgh_dealloc_mw(struct ib_mw *ibmw)
{
	return sgh_admin_destroy(to_sgh(ibmw->device), SG_ADMIN_DEALLOC_MW, ibmw->rkey);
}
