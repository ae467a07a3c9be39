// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * On-demand paging.
 *
 * The adapter has a sparse table of the region's pages, empty at first.  An access to a missing
 * page waits, and an event reports it.  A work brings the pages in (which may sleep long), and
 * MAP_PAGES lets the waiting accesses continue, or FAIL ends them with a protection error.  When
 * the kernel reclaims pages, the notifier sends UNMAP first: then the adapter does not use them.
 *
 * umem_mutex is held from the mapping of pages to the end of MAP_PAGES, and around UNMAP, so the
 * two cannot overtake each other.  Commands allocate nothing and wait for the adapter alone, so
 * they may be used in a notifier.
 *
 * The adapter reuses a region's number as soon as the region is deregistered, while faults and
 * prefetching of the old one may still be in progress.  So every command about pages is sent under
 * known_lock, and deregistration, which takes it for writing, is the last command.
 *
 * An implicit region is a whole address space.  Its pieces ("children") of SGH_ODP_CHILD octets,
 * each with its own notifier, are created at the first fault in them.  A child without pages is
 * freed again, by its last user or by reap_work after the notifier took its last page; the others
 * are freed with the region.
 *
 * Faults and prefetching run in fault_wq, because they may wait long for memory.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "compat_odp.h"
#include "mr.h"
#include "trace.h"

#define SGH_ODP_BATCH 512u /* pages of one command */
#define SGH_ODP_CHILD_SHIFT 26
#define SGH_ODP_CHILD BIT_ULL(SGH_ODP_CHILD_SHIFT)
#define SGH_ODP_SPACE BIT_ULL(56) /* octets of an implicit region: no process has more */

struct sgh_odp {
	struct sgh_dev *dev;
	const struct ib_pd *pd;
	struct ib_umem_odp *umem;    /* of the region, or the root of the children */
	struct xarray children;	     /* struct sgh_odp_child by address */
	struct mutex children_mutex; /* outside of umem_mutex */
	struct work_struct reap_work;
	bool ending; /* prefetching may stop */
	u64 base;    /* address of the region's first page */
	u64 start;   /* of the region, in the process */
	u64 ahead;   /* Tagged Offset of that octet minus start, modulo 2^64 */
	u64 length;
	u32 page_shift;
	u32 stag;			/* 0 until it is registered */
	bool known;			/* the adapter has the region under that number */
	struct rw_semaphore known_lock; /* inside of umem_mutex */
	refcount_t refs;
	struct completion released;
};

struct sgh_odp_child {
	struct ib_umem_odp *umem;
	u32 users; /* under children_mutex */
};

struct sgh_fault {
	struct work_struct work;
	struct sgh_odp *odp;
	u64 page;
	u64 count;
	bool write;
	bool demand; /* false: prefetching of present pages */
};

static int sgh_map_pages(struct sgh_odp *odp, u32 op, u64 first, u64 count, dma_addr_t list)
{
	struct sg_cmd_map_pages cmd = {};
	int ret = -ESTALE;

	down_read(&odp->known_lock);
	if (odp->known) {
		cmd.stag = cpu_to_le32(odp->stag);
		cmd.op = cpu_to_le32(op);
		cmd.first_page = cpu_to_le64(first);
		cmd.count = cpu_to_le64(count);
		cmd.list = cpu_to_le64(list);
		ret = sgh_admin(odp->dev, SG_ADMIN_MAP_PAGES, &cmd, sizeof(cmd), NULL);
	}
	up_read(&odp->known_lock);
	return ret;
}

/* 0: the adapter no longer has these pages, or has no such region. */
static int sgh_unmap_pages(struct sgh_odp *odp, u64 first, u64 count)
{
	int ret = sgh_map_pages(odp, SG_UNMAP_PAGES, first, count, 0);

	return ret == -ESTALE || sgh_dead(odp->dev) ? 0 : ret;
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

		/* Otherwise the kernel would reuse pages that the adapter still writes to. */
		if (sgh_unmap_pages(odp, first, last - first + 1))
			sgh_fatal(odp->dev, "it does not give pages back");
	}
	ib_umem_odp_unmap_dma_pages(umem, start, end);
	if (odp && odp->umem != umem && !umem->npages)
		queue_work(odp->dev->fault_wq, &odp->reap_work);
	mutex_unlock(&umem->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops sgh_odp_ops = {
	.invalidate = sgh_odp_invalidate,
};

/*
 * Is there memory at this address?  A piece costs much more than the access that needs it, so
 * neither a peer nor a process gets one for an address that is not mapped, or that the process
 * itself may not access.
 */
static bool sgh_odp_mapped(struct sgh_odp *odp, u64 addr)
{
	struct mm_struct *mm = odp->umem->umem.owning_mm;
	struct vm_area_struct *vma;
	bool mapped;

	if (addr >= SGH_ODP_SPACE || !mmget_not_zero(mm))
		return false;
	mmap_read_lock(mm);
	vma = vma_lookup(mm, addr);
	mapped = vma && vma->vm_flags & (VM_READ | VM_WRITE);
	mmap_read_unlock(mm);
	/* Do not drop the last reference here: that would call the notifiers. */
	mmput_async(mm);
	return mapped;
}

/* children_mutex held; the child is no longer in the table. */
static void sgh_child_free(struct sgh_odp_child *child)
{
	ib_umem_odp_release(child->umem);
	kfree(child);
}

/* children_mutex held.  Frees the child if it has no user and no page. */
static void sgh_child_reap(struct sgh_odp *odp, unsigned long index, struct sgh_odp_child *child)
{
	bool empty;

	if (child->users)
		return;
	/* Only a child with a user gets pages. */
	mutex_lock(&child->umem->umem_mutex);
	empty = !child->umem->npages;
	mutex_unlock(&child->umem->umem_mutex);
	if (!empty)
		return;
	xa_erase(&odp->children, index);
	sgh_child_free(child);
}

static void sgh_reap_work(struct work_struct *work)
{
	struct sgh_odp *odp = container_of(work, struct sgh_odp, reap_work);
	struct sgh_odp_child *child;
	unsigned long index;

	mutex_lock(&odp->children_mutex);
	xa_for_each(&odp->children, index, child)
		sgh_child_reap(odp, index, child);
	mutex_unlock(&odp->children_mutex);
}

/* children_mutex held. */
static struct sgh_odp_child *sgh_child_new(struct sgh_odp *odp, unsigned long index)
{
	struct sgh_odp_child *child = kzalloc(sizeof(*child), GFP_KERNEL_ACCOUNT);

	if (!child)
		return NULL;
	child->umem = ib_umem_odp_alloc_child(odp->umem, (u64)index << SGH_ODP_CHILD_SHIFT,
					      SGH_ODP_CHILD, &sgh_odp_ops);
	if (IS_ERR(child->umem)) {
		kfree(child);
		return NULL;
	}
	if (xa_err(xa_store(&odp->children, index, child, GFP_KERNEL_ACCOUNT))) {
		sgh_child_free(child);
		return NULL;
	}
	mutex_lock(&child->umem->umem_mutex);
	child->umem->private = odp;
	mutex_unlock(&child->umem->umem_mutex);
	return child;
}

/*
 * The piece with this address, until sgh_odp_piece_put().  NULL: nothing is mapped there, or no
 * memory; with make false: there is no piece yet.
 */
static struct ib_umem_odp *sgh_odp_piece(struct sgh_odp *odp, u64 addr, bool make)
{
	unsigned long index = addr >> SGH_ODP_CHILD_SHIFT;
	struct sgh_odp_child *child;

	if (!odp->umem->is_implicit_odp)
		return odp->umem;
	mutex_lock(&odp->children_mutex);
	child = xa_load(&odp->children, index);
	if (!child && make && sgh_odp_mapped(odp, addr))
		child = sgh_child_new(odp, index);
	if (child)
		child->users++;
	mutex_unlock(&odp->children_mutex);
	return child ? child->umem : NULL;
}

static void sgh_odp_piece_put(struct sgh_odp *odp, struct ib_umem_odp *umem)
{
	unsigned long index = ib_umem_start(umem) >> SGH_ODP_CHILD_SHIFT;
	struct sgh_odp_child *child;

	if (umem == odp->umem)
		return;
	mutex_lock(&odp->children_mutex);
	child = xa_load(&odp->children, index);
	child->users--;
	sgh_child_reap(odp, index, child);
	mutex_unlock(&odp->children_mutex);
}

/*
 * umem_mutex held: passes the kernel's pages of this range to the adapter.  Without demand, leading
 * holes are skipped.  Returns how many pages are done, or -EFAULT.
 */
static int sgh_odp_tell(struct sgh_odp *odp, struct ib_umem_odp *umem, u64 page, int n, bool demand,
			__le64 *list, dma_addr_t dma)
{
	u32 first =
		(odp->base + (page << odp->page_shift) - ib_umem_start(umem)) >> odp->page_shift;
	int i, skip = 0, ret;
	u64 at;

	while (!demand && skip < n && !sgh_umem_page(umem, first + skip, &at))
		skip++;
	for (i = skip; i < n && sgh_umem_page(umem, first + i, &at); i++)
		list[i - skip] = cpu_to_le64(at);
	if (i == skip)
		return skip ? skip : -EFAULT;
	ret = sgh_map_pages(odp, SG_MAP_PAGES, page + skip, i - skip, dma);
	return ret ? ret : i;
}

/*
 * Maps up to SGH_ODP_BATCH pages from this one on: returns how many are mapped now, or a negative
 * errno.  Without demand it maps only pages that the process has touched, and holes count as done.
 */
static int sgh_odp_map(struct sgh_odp *odp, u64 page, u64 count, bool write, bool demand)
{
	struct device *device = &odp->dev->pdev->dev;
	u64 addr = odp->base + (page << odp->page_shift);
	struct ib_umem_odp *umem;
	dma_addr_t dma;
	__le64 *list;
	int n, ret;

	umem = sgh_odp_piece(odp, addr, demand);
	if (!umem)
		return demand ? -EFAULT
			      : min_t(u64, count,
				      (SGH_ODP_CHILD - (addr & (SGH_ODP_CHILD - 1))) >>
					      odp->page_shift);
	ret = -EFAULT;
	if (addr >= ib_umem_end(umem))
		goto out_piece;
	ret = -EPERM;
	if (write && !umem->umem.writable)
		goto out_piece;
	count = min3(count, (u64)SGH_ODP_BATCH, (ib_umem_end(umem) - addr) >> odp->page_shift);
	ret = -ENOMEM;
	list = dma_alloc_coherent(device, count * sizeof(*list), &dma, GFP_KERNEL);
	if (!list)
		goto out_piece;
	n = sgh_umem_map_and_lock(umem, addr, count << odp->page_shift, write, demand);
	ret = n;
	if (n >= 0) {
		ret = sgh_odp_tell(odp, umem, page, min_t(u64, n, count), demand, list, dma);
		mutex_unlock(&umem->umem_mutex);
	}
	dma_free_coherent(device, count * sizeof(*list), list, dma);
out_piece:
	sgh_odp_piece_put(odp, umem);
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
	trace_sgh_page_fault_end(f->odp->dev, f->odp->stag, f->page, f->count, min(n, 0));
	if (f->count)
		sgh_map_pages(f->odp, SG_MAP_FAIL, f->page, f->count, 0);
	sgh_odp_put(f->odp);
	kfree(f);
}

static struct sgh_odp *sgh_odp_find(struct sgh_dev *dev, u32 stag)
{
	struct sgh_odp *odp;

	xa_lock(&dev->odps);
	odp = xa_load(&dev->odps, stag);
	if (odp && !refcount_inc_not_zero(&odp->refs))
		odp = NULL;
	xa_unlock(&dev->odps);
	return odp;
}

/* Passes on the caller's reference if it returns true. */
static bool sgh_odp_later(struct sgh_odp *odp, work_func_t func, u64 page, u64 count, bool write,
			  bool demand)
{
	struct sgh_fault *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return false;
	INIT_WORK(&f->work, func);
	f->odp = odp;
	f->page = page;
	f->count = count;
	f->write = write;
	f->demand = demand;
	queue_work(odp->dev->fault_wq, &f->work);
	return true;
}

/*
 * A fault of a region that is not in the table.  It may have just been registered, so wait for
 * registrations in progress.  If it is still unknown, it is being deregistered, or was when the
 * fault was raised: then only the adapter waits for its pages, and it may have forgotten them.
 */
static struct sgh_odp *sgh_odp_find_late(struct sgh_dev *dev, const struct sg_eqe *e)
{
	struct sg_cmd_map_pages cmd = {};
	struct sgh_odp *odp;

	mutex_lock(&dev->odp_mutex);
	odp = sgh_odp_find(dev, le32_to_cpu(e->id));
	if (!odp) {
		cmd.stag = e->id;
		cmd.op = cpu_to_le32(SG_MAP_FAIL);
		cmd.first_page = e->page;
		cmd.count = cpu_to_le64(le32_to_cpu(e->aux));
		sgh_admin(dev, SG_ADMIN_MAP_PAGES, &cmd, sizeof(cmd), NULL);
	}
	mutex_unlock(&dev->odp_mutex);
	return odp;
}

/* SG_EV_PAGE_FAULT, in event_work. */
void sgh_odp_fault(struct sgh_dev *dev, const struct sg_eqe *e)
{
	struct sgh_odp *odp = sgh_odp_find(dev, le32_to_cpu(e->id));
	u64 page = le64_to_cpu(e->page);
	bool write = le32_to_cpu(e->conn) & 1;
	u32 count = le32_to_cpu(e->aux);

	trace_sgh_page_fault(dev, le32_to_cpu(e->id), page, count, write);
	if (!odp)
		odp = sgh_odp_find_late(dev, e);
	if (!odp)
		return;
	if (sgh_odp_later(odp, sgh_fault_work, page, count, write, true))
		return;
	sgh_map_pages(odp, SG_MAP_FAIL, page, count, 0);
	sgh_odp_put(odp);
}

/* Address 0 and the maximum length request an implicit region. */
static int sgh_odp_umem(struct ib_device *ibdev, struct sgh_odp *odp, struct sg_cmd_reg_mr *cmd,
			u64 start, u64 *length, u64 va, int access)
{
	bool implicit = !start && *length == U64_MAX;

	if (implicit && (va || access & IB_ZERO_BASED))
		return -EINVAL;
	/* ib_core has arrays of 64-bit words for pages; the kernel warns about longer ones. */
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
	struct sgh_odp_child *child;
	unsigned long index;

	mutex_lock(&odp->children_mutex);
	xa_for_each(&odp->children, index, child) {
		xa_erase(&odp->children, index);
		sgh_child_free(child);
	}
	mutex_unlock(&odp->children_mutex);
	xa_destroy(&odp->children);
	ib_umem_odp_release(odp->umem);
	/* No notifier is left that could queue it. */
	cancel_work_sync(&odp->reap_work);
	kfree(odp);
}

/* Prepares the command of an on-demand region; then sgh_odp_registered() or sgh_odp_end(). */
struct sgh_odp *sgh_odp_begin(struct sgh_dev *dev, struct ib_pd *ibpd, struct sg_cmd_reg_mr *cmd,
			      u64 start, u64 *length, u64 va, int access)
{
	struct sgh_odp *odp;
	int ret;

	if (!sgh_has(dev, SG_FEATURE_ODP))
		return ERR_PTR(-EOPNOTSUPP);
	odp = kzalloc(sizeof(*odp), GFP_KERNEL);
	if (!odp)
		return ERR_PTR(-ENOMEM);
	odp->dev = dev;
	odp->pd = ibpd;
	odp->start = start;
	odp->ahead = (access & IB_ZERO_BASED ? 0 : va) - start;
	init_rwsem(&odp->known_lock);
	xa_init(&odp->children);
	mutex_init(&odp->children_mutex);
	INIT_WORK(&odp->reap_work, sgh_reap_work);
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

/* Makes the adapter's faults reach the region.  On failure sgh_odp_dereg() must follow. */
int sgh_odp_registered(struct sgh_odp *odp, u32 stag)
{
	down_write(&odp->known_lock);
	odp->stag = stag;
	odp->known = true;
	up_write(&odp->known_lock);
	return xa_err(xa_store(&odp->dev->odps, stag, odp, GFP_KERNEL));
}

/* DEREG_MR; after success the adapter gets no more commands about its pages. */
int sgh_odp_dereg(struct sgh_odp *odp)
{
	int ret;

	down_write(&odp->known_lock);
	ret = sgh_admin_destroy(odp->dev, SG_ADMIN_DEREG_MR, odp->stag);
	if (!ret)
		odp->known = false;
	up_write(&odp->known_lock);
	return ret;
}

/* The adapter does not know the region, or no longer. */
void sgh_odp_end(struct sgh_odp *odp)
{
	WRITE_ONCE(odp->ending, true);
	/* Another region may have the number by now. */
	if (odp->stag)
		xa_cmpxchg(&odp->dev->odps, odp->stag, odp, NULL, GFP_KERNEL);
	sgh_odp_put(odp);
	wait_for_completion(&odp->released);
	sgh_odp_free(odp);
}

/* Ends early if the region ends or the process is killed. */
static int sgh_prefetch(struct sgh_fault *f)
{
	int n;

	while (f->count) {
		if (READ_ONCE(f->odp->ending) || fatal_signal_pending(current))
			return -EINTR;
		n = sgh_odp_map(f->odp, f->page, f->count, f->write, f->demand);
		/* Not mapped, this page or a later one: skip them one by one. */
		if (n == -EFAULT && !f->demand)
			n = max(1, sgh_odp_map(f->odp, f->page, 1, f->write, false));
		if (n <= 0)
			return n ? n : -EFAULT;
		f->page += n;
		f->count -= n;
		cond_resched();
	}
	return 0;
}

/* Pages that cannot be prefetched are mapped by the access that needs them. */
static void sgh_prefetch_work(struct work_struct *work)
{
	struct sgh_fault *f = container_of(work, struct sgh_fault, work);

	sgh_prefetch(f);
	sgh_odp_put(f->odp);
	kfree(f);
}

/* One range of ibv_advise_mr(). */
static int sgh_advise_range(struct ib_pd *ibpd, const struct ib_sge *sge, bool write, bool demand,
			    bool wait)
{
	struct sgh_odp *odp = sgh_odp_find(to_sgh(ibpd->device), sge->lkey);
	struct sgh_fault f = { .odp = odp, .write = write, .demand = demand };
	u64 at, off;
	int ret = 0;

	if (!odp)
		return -ENOENT;
	at = sge->addr - odp->ahead; /* the process's address */
	off = at - odp->start;
	f.page = (at - odp->base) >> odp->page_shift;
	f.count = ((at + sge->length - 1 - odp->base) >> odp->page_shift) - f.page + 1;
	if (!sge->length || off >= odp->length || sge->length > odp->length - off)
		ret = -EFAULT;
	else if (odp->pd != ibpd)
		ret = -EPERM;
	else if (write && !odp->umem->umem.writable)
		ret = -EPERM;
	else if (wait)
		ret = sgh_prefetch(&f);
	else if (sgh_odp_later(odp, sgh_prefetch_work, f.page, f.count, write, demand))
		return 0;
	else
		ret = -ENOMEM;
	sgh_odp_put(odp);
	return ret;
}

int sgh_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		  struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs)
{
	bool write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	bool demand = advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	bool wait = flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH;
	u32 i;
	int ret = 0;

	if (advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH && !write && demand)
		return -EOPNOTSUPP;
	for (i = 0; !ret && i < num_sge; i++)
		ret = sgh_advise_range(ibpd, &sg_list[i], write, demand, wait);
	return ret;
}
