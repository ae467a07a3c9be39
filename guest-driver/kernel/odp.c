// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory regions on demand.
 *
 * The adapter has a sparse table of the region's pages, none at first.  An access to one that is
 * not there waits, and an event tells of it; a work brings the pages in (which may sleep long) and
 * MAP_PAGES lets whoever waits go on, or FAIL, with a protection error.  When the kernel wants
 * pages back, the notifier has the adapter forget them first: after UNMAP it does not touch them.
 *
 * umem_mutex is held from the pages' mapping to the end of MAP_PAGES, and around UNMAP, so the two
 * cannot overtake each other.  Commands allocate nothing and wait for the adapter alone, hence may
 * be used in a notifier.
 *
 * The adapter gives a region's number to another one as soon as it is deregistered, while faults
 * and prefetching of the old one may still go on.  So no command about pages goes out but under
 * known_lock, and deregistration, which has it for writing, is the last.
 *
 * An implicit region is a whole address space: its pieces ("children") of SGH_ODP_CHILD octets,
 * each with a notifier of its own, come with the first fault in them and go with the region.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <rdma/ib_umem_odp.h>

#include "staghorn.h"

#define SGH_ODP_BATCH 512u /* pages of one command */
#define SGH_ODP_CHILD_SHIFT 26
#define SGH_ODP_CHILD (1ull << SGH_ODP_CHILD_SHIFT)
#define SGH_ODP_SPACE (1ull << 47) /* octets of an implicit region */

struct sgh_odp {
	struct sgh_dev *sg;
	const struct ib_pd *pd;
	struct ib_umem_odp *umem;	/* of the region, or the root of the children */
	struct xarray children;		/* struct ib_umem_odp by address */
	struct mutex children_mutex;
	u64 base;			/* address of the region's first page */
	u64 start;			/* of the region, for the process */
	u64 ahead;			/* of that: its first octet's Tagged Offset, modulo 2^64 */
	u64 length;
	u32 page_shift;
	u32 stag;			/* 0 until it is registered */
	bool known;			/* the adapter has it by that number */
	struct rw_semaphore known_lock;	/* inside of umem_mutex */
	refcount_t refs;
	struct completion released;
};

struct sgh_fault {
	struct work_struct work;
	struct sgh_odp *odp;
	u64 page;
	u32 count;
	bool write;
};

static int sgh_map_pages(struct sgh_odp *odp, u32 op, u64 first, u64 count, dma_addr_t list)
{
	struct sg_cmd_map_pages cmd = { };
	int ret = -ESTALE;

	down_read(&odp->known_lock);
	if (odp->known) {
		cmd.stag = cpu_to_le32(odp->stag);
		cmd.op = cpu_to_le32(op);
		cmd.first_page = cpu_to_le64(first);
		cmd.count = cpu_to_le64(count);
		cmd.list = cpu_to_le64(list);
		ret = sgh_admin(odp->sg, SG_ADMIN_MAP_PAGES, &cmd, sizeof(cmd), NULL);
	}
	up_read(&odp->known_lock);
	return ret;
}

static bool sgh_odp_invalidate(struct mmu_interval_notifier *mni,
			       const struct mmu_notifier_range *range, unsigned long seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp, notifier);
	struct sgh_odp *odp;
	u64 start, end;

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&umem->umem_mutex);
	mmu_interval_set_seq(mni, seq);
	start = max_t(u64, ib_umem_start(umem), range->start);
	end = min_t(u64, ib_umem_end(umem), range->end);
	odp = umem->private;
	/* Nothing is mapped before the region is registered. */
	if (odp && umem->npages) {
		u64 first = (start - odp->base) >> odp->page_shift;
		u64 last = (end - 1 - odp->base) >> odp->page_shift;

		sgh_map_pages(odp, SG_UNMAP_PAGES, first, last - first + 1, 0);
	}
	ib_umem_odp_unmap_dma_pages(umem, start, end);
	mutex_unlock(&umem->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops sgh_odp_ops = {
	.invalidate = sgh_odp_invalidate,
};

/*
 * Is there memory at this address?  A piece costs much more than the access that asks for it, so
 * neither a peer nor a process gets one for an address that means nothing.
 */
static bool sgh_odp_mapped(struct sgh_odp *odp, u64 addr)
{
	struct mm_struct *mm = odp->umem->umem.owning_mm;
	bool mapped;

	if (addr >= SGH_ODP_SPACE || !mmget_not_zero(mm))
		return false;
	mmap_read_lock(mm);
	mapped = vma_lookup(mm, addr);
	mmap_read_unlock(mm);
	/* The last reference is not given up here: that would call the notifiers. */
	mmput_async(mm);
	return mapped;
}

/* The piece that has this address, and how far it goes.  NULL: nothing there, or no memory. */
static struct ib_umem_odp *sgh_odp_piece(struct sgh_odp *odp, u64 addr)
{
	unsigned long index = addr >> SGH_ODP_CHILD_SHIFT;
	struct ib_umem_odp *child;

	if (!odp->umem->is_implicit_odp)
		return odp->umem;
	mutex_lock(&odp->children_mutex);
	child = xa_load(&odp->children, index);
	if (!child && sgh_odp_mapped(odp, addr)) {
		child = ib_umem_odp_alloc_child(odp->umem, (u64)index << SGH_ODP_CHILD_SHIFT,
						SGH_ODP_CHILD, &sgh_odp_ops);
		if (IS_ERR(child)) {
			child = NULL;
		} else if (xa_err(xa_store(&odp->children, index, child, GFP_KERNEL))) {
			ib_umem_odp_release(child);
			child = NULL;
		} else {
			mutex_lock(&child->umem_mutex);
			child->private = odp;
			mutex_unlock(&child->umem_mutex);
		}
	}
	mutex_unlock(&odp->children_mutex);
	return child;
}

/* Up to SGH_ODP_BATCH pages from this on: how many are there now, or a negative errno. */
static int sgh_odp_map(struct sgh_odp *odp, u64 page, u32 count, bool write, bool fault)
{
	struct device *dev = &odp->sg->pdev->dev;
	u64 addr = odp->base + (page << odp->page_shift);
	u64 access = ODP_READ_ALLOWED_BIT;
	struct ib_umem_odp *umem;
	dma_addr_t dma;
	__le64 *list;
	u32 first;
	int n, i, ret;

	umem = sgh_odp_piece(odp, addr);
	if (!umem)
		return -EFAULT;
	if (addr >= ib_umem_end(umem))
		return -EFAULT;
	if (write && !umem->umem.writable)
		return -EPERM;
	/* What may be written is mapped so at once: else each page would be met twice. */
	if (write)
		access |= ODP_WRITE_ALLOWED_BIT;
	count = min_t(u64, min(count, SGH_ODP_BATCH),
		      (ib_umem_end(umem) - addr) >> odp->page_shift);
	list = dma_alloc_coherent(dev, count * sizeof(*list), &dma, GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	n = ib_umem_odp_map_dma_and_lock(umem, addr, (u64)count << odp->page_shift, access, fault);
	if (n < 0) {
		ret = n;
		goto out;
	}
	first = (addr - ib_umem_start(umem)) >> odp->page_shift;
	for (i = 0; i < n && i < count; i++) {
		dma_addr_t at = umem->dma_list[first + i];

		if (!(at & ODP_READ_ALLOWED_BIT))
			break;
		list[i] = cpu_to_le64((at & ODP_DMA_ADDR_MASK) |
				      (at & ODP_WRITE_ALLOWED_BIT ? 1 : 0));
	}
	ret = i ? sgh_map_pages(odp, SG_MAP_PAGES, page, i, dma) : -EFAULT;
	if (!ret)
		ret = i;
	mutex_unlock(&umem->umem_mutex);
out:
	dma_free_coherent(dev, count * sizeof(*list), list, dma);
	return ret;
}

static void sgh_odp_put(struct sgh_odp *odp)
{
	if (refcount_dec_and_test(&odp->refs))
		complete(&odp->released);
}

static void sgh_fault_work(struct work_struct *work)
{
	struct sgh_fault *f = container_of(work, struct sgh_fault, work);
	int n = 0;

	while (f->count) {
		n = sgh_odp_map(f->odp, f->page, f->count, f->write, true);
		if (n <= 0)
			break;
		f->page += n;
		f->count -= n;
	}
	if (f->count)
		sgh_map_pages(f->odp, SG_MAP_FAIL, f->page, f->count, 0);
	sgh_odp_put(f->odp);
	kfree(f);
}

static struct sgh_odp *sgh_odp_find(struct sgh_dev *sg, u32 stag)
{
	struct sgh_odp *odp;

	xa_lock(&sg->odps);
	odp = xa_load(&sg->odps, stag);
	if (odp && !refcount_inc_not_zero(&odp->refs))
		odp = NULL;
	xa_unlock(&sg->odps);
	return odp;
}

/* SG_EV_PAGE_FAULT, in event_work. */
void sgh_odp_fault(struct sgh_dev *sg, const struct sg_eqe *e)
{
	struct sgh_odp *odp = sgh_odp_find(sg, le32_to_cpu(e->id));
	struct sgh_fault *f;

	if (!odp)
		return;
	f = kzalloc(sizeof(*f), GFP_KERNEL);
	if (!f) {
		sgh_map_pages(odp, SG_MAP_FAIL, le64_to_cpu(e->page), le32_to_cpu(e->aux), 0);
		sgh_odp_put(odp);
		return;
	}
	INIT_WORK(&f->work, sgh_fault_work);
	f->odp = odp;
	f->page = le64_to_cpu(e->page);
	f->count = le32_to_cpu(e->aux);
	f->write = le32_to_cpu(e->conn) & 1;
	queue_work(system_unbound_wq, &f->work);
}

/* An implicit region is asked for by address 0 and all there is. */
static int sgh_odp_umem(struct ib_device *ibdev, struct sgh_odp *odp, struct sg_cmd_reg_mr *cmd,
			u64 start, u64 *length, u64 va, int access)
{
	bool implicit = !start && *length == U64_MAX;

	if (implicit && (va || access & IB_ZERO_BASED))
		return -EINVAL;
	/* ib_core has arrays of 64-bit words for pages; the kernel complains of longer ones. */
	if (!implicit && *length >> PAGE_SHIFT >= INT_MAX / sizeof(u64) - 1)
		return -ENOMEM;
	odp->umem = implicit ? ib_umem_odp_alloc_implicit(ibdev, access)
			     : ib_umem_odp_get(ibdev, start, *length, access, &sgh_odp_ops);
	if (IS_ERR(odp->umem))
		return PTR_ERR(odp->umem);
	if (implicit) {
		*length = SGH_ODP_SPACE;
		odp->page_shift = PAGE_SHIFT;
	} else {
		odp->page_shift = odp->umem->page_shift;
		odp->base = ib_umem_start(odp->umem);
		if ((start ^ va) & ((1ull << odp->page_shift) - 1)) {
			ib_umem_odp_release(odp->umem);
			return -EINVAL;
		}
		mutex_lock(&odp->umem->umem_mutex);
		odp->umem->private = odp;
		mutex_unlock(&odp->umem->umem_mutex);
	}
	cmd->flags = SG_MR_ODP;
	cmd->pages.page_shift = odp->page_shift;
	return 0;
}

static void sgh_odp_free(struct sgh_odp *odp)
{
	struct ib_umem_odp *child;
	unsigned long index;

	xa_for_each(&odp->children, index, child)
		ib_umem_odp_release(child);
	xa_destroy(&odp->children);
	ib_umem_odp_release(odp->umem);
	kfree(odp);
}

/* Prepares the command of a region on demand; then sgh_odp_registered() or sgh_odp_end(). */
struct sgh_odp *sgh_odp_begin(struct sgh_dev *sg, struct ib_pd *ibpd, struct sg_cmd_reg_mr *cmd,
			      u64 start, u64 *length, u64 va, int access)
{
	struct sgh_odp *odp;
	int ret;

	if (!sgh_has(sg, SG_FEATURE_ODP))
		return ERR_PTR(-EOPNOTSUPP);
	odp = kzalloc(sizeof(*odp), GFP_KERNEL);
	if (!odp)
		return ERR_PTR(-ENOMEM);
	odp->sg = sg;
	odp->pd = ibpd;
	odp->start = start;
	odp->ahead = (access & IB_ZERO_BASED ? 0 : va) - start;
	init_rwsem(&odp->known_lock);
	xa_init(&odp->children);
	mutex_init(&odp->children_mutex);
	refcount_set(&odp->refs, 1);
	init_completion(&odp->released);
	ret = sgh_odp_umem(ibpd->device, odp, cmd, start, length, va, access);
	if (ret) {
		kfree(odp);
		return ERR_PTR(ret);
	}
	odp->length = *length;
	return odp;
}

/* From now on the adapter's faults are heard.  On failure it is sgh_odp_dereg()'s. */
int sgh_odp_registered(struct sgh_odp *odp, u32 stag)
{
	down_write(&odp->known_lock);
	odp->stag = stag;
	odp->known = true;
	up_write(&odp->known_lock);
	return xa_err(xa_store(&odp->sg->odps, stag, odp, GFP_KERNEL));
}

/* DEREG_MR; on success the adapter hears of its pages no more. */
int sgh_odp_dereg(struct sgh_odp *odp)
{
	int ret;

	down_write(&odp->known_lock);
	ret = sgh_admin_destroy(odp->sg, SG_ADMIN_DEREG_MR, odp->stag);
	if (!ret)
		odp->known = false;
	up_write(&odp->known_lock);
	return ret;
}

/* The adapter does not know the region, any more or at all. */
void sgh_odp_end(struct sgh_odp *odp)
{
	/* The number may be another's by now. */
	if (odp->stag)
		xa_cmpxchg(&odp->sg->odps, odp->stag, odp, NULL, GFP_KERNEL);
	sgh_odp_put(odp);
	wait_for_completion(&odp->released);
	sgh_odp_free(odp);
}

/* One range of ibv_advise_mr(). */
static int sgh_odp_prefetch(struct ib_pd *ibpd, const struct ib_sge *sge, bool write, bool fault)
{
	struct sgh_odp *odp = sgh_odp_find(to_sgh(ibpd->device), sge->lkey);
	u64 at, off, page, end;
	int n = 0;

	if (!odp)
		return -ENOENT;
	at = sge->addr - odp->ahead; /* the process's address */
	off = at - odp->start;
	page = (at - odp->base) >> odp->page_shift;
	end = (at + sge->length - 1 - odp->base) >> odp->page_shift;
	if (!sge->length || off >= odp->length || sge->length > odp->length - off)
		n = -EFAULT;
	if (odp->pd != ibpd)
		n = -EPERM;
	while (n >= 0 && page <= end) {
		n = sgh_odp_map(odp, page, min_t(u64, end - page + 1, SGH_ODP_BATCH), write, fault);
		if (n > 0)
			page += n;
		else if (!n)
			n = -EFAULT;
	}
	sgh_odp_put(odp);
	/* Without faults, what is there is there. */
	return n < 0 && fault ? n : 0;
}

int sgh_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		  struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs)
{
	bool write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	bool fault = advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	u32 i;
	int ret = 0;

	if (advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH && !write && fault)
		return -EOPNOTSUPP;
	for (i = 0; !ret && i < num_sge; i++)
		ret = sgh_odp_prefetch(ibpd, &sg_list[i], write, fault);
	return ret;
}
