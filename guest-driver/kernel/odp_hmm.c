// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Pages of a region on demand, for kernels in which the driver maps them for DMA (compat_odp.h).
 *
 * A word of umem->map.pfn_list for each page of the region says which page of memory it is, what
 * the process may do with it, and whether it is mapped for DMA.  ib_umem_odp_unmap_dma_pages()
 * clears it; whoever maps a page counts it in umem->npages.
 *
 * ib_umem_odp_map_dma_and_lock() would have hmm_range_fault() write these words without a lock.  A
 * fault beside an invalidation, or beside another fault, could then bring back the mark "mapped" of
 * a page that is not, or lose it, and the number of pages would be wrong from then on.  With one
 * too few, an invalidation would not tell the adapter.  So hmm_range_fault() writes into an array
 * of the caller's, and the words change under umem_mutex only.
 */
#include <linux/dma-mapping.h>
#include <linux/hmm.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "compat_odp.h"

/* What the words of mapped pages have besides what hmm_range_fault() tells. */
#define SGH_PFN_MAPPED (HMM_PFN_DMA_MAPPED | HMM_PFN_P2PDMA | HMM_PFN_P2PDMA_BUS)

/* One attempt; -EBUSY: the process's memory changed meanwhile. */
static int sgh_range_fault(struct hmm_range *range, struct mm_struct *mm)
{
	int ret;

	range->notifier_seq = mmu_interval_read_begin(range->notifier);
	ret = mmap_read_lock_killable(mm);
	if (ret)
		return ret;
	ret = hmm_range_fault(range);
	mmap_read_unlock(mm);
	return ret;
}

/*
 * umem_mutex held: enters what hmm_range_fault() told about the pages.  A page of the region may
 * be a huge one, of which the first word is entered.
 */
static int sgh_enter_pages(struct ib_umem_odp *umem, const struct hmm_range *range)
{
	unsigned long small_shift = umem->page_shift - PAGE_SHIFT;
	u32 index = (range->start - ib_umem_start(umem)) >> umem->page_shift;
	u32 count = (range->end - range->start) >> umem->page_shift;
	u32 i;

	for (i = 0; i < count; i++) {
		unsigned long pfn = range->hmm_pfns[(unsigned long)i << small_shift];
		unsigned long *word = &umem->map.pfn_list[index + i];

		if (!(pfn & HMM_PFN_VALID))
			continue;
		if (hmm_pfn_to_map_order(pfn) < small_shift)
			return -EINVAL;
		*word = pfn | (*word & SGH_PFN_MAPPED);
	}
	return count;
}

static int sgh_fault_and_lock(struct ib_umem_odp *umem, struct hmm_range *range,
			      struct mm_struct *mm)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(HMM_RANGE_DEFAULT_TIMEOUT);
	int ret;

	for (;;) {
		ret = sgh_range_fault(range, mm);
		if (ret && (ret != -EBUSY || time_after(jiffies, deadline)))
			return ret;
		if (ret)
			continue;
		mutex_lock(&umem->umem_mutex);
		if (!mmu_interval_read_retry(range->notifier, range->notifier_seq))
			break;
		mutex_unlock(&umem->umem_mutex);
	}
	ret = sgh_enter_pages(umem, range);
	if (ret < 0)
		mutex_unlock(&umem->umem_mutex);
	return ret;
}

/*
 * Brings in the pages of a range, which begins and ends at pages of the region; without demand only
 * those that the process has.  Returns how many pages the range has, and then umem_mutex is held,
 * or a negative errno.
 */
int sgh_umem_map_and_lock(struct ib_umem_odp *umem, u64 addr, u64 length, bool write, bool demand)
{
	struct mm_struct *mm = umem->umem.owning_mm;
	struct hmm_range range = {
		.notifier = &umem->notifier,
		.start = addr,
		.end = addr + length,
	};
	int ret;

	if (demand)
		range.default_flags = HMM_PFN_REQ_FAULT | (write ? HMM_PFN_REQ_WRITE : 0);
	range.hmm_pfns = kvcalloc(length >> PAGE_SHIFT, sizeof(*range.hmm_pfns), GFP_KERNEL);
	if (!range.hmm_pfns)
		return -ENOMEM;
	ret = -EINVAL;
	if (mmget_not_zero(mm)) {
		ret = sgh_fault_and_lock(umem, &range, mm);
		/* The last reference would call the notifiers, which may take umem_mutex. */
		mmput_async(mm);
	}
	kvfree(range.hmm_pfns);
	return ret;
}

/* umem_mutex held: the DMA address of a page of the region; false if it is not there. */
bool sgh_umem_page(struct ib_umem_odp *umem, u32 index, u64 *page)
{
	struct device *device = umem->umem.ibdev->dma_device;
	unsigned long *word = &umem->map.pfn_list[index];
	struct pci_p2pdma_map_state state = {};
	bool is_new = !(*word & HMM_PFN_DMA_MAPPED);
	dma_addr_t at;

	if (!(*word & HMM_PFN_VALID))
		return false;
	at = hmm_dma_map_pfn(device, &umem->map, index, &state);
	if (dma_mapping_error(device, at)) {
		if (is_new)
			*word = 0;
		return false;
	}
	umem->npages += is_new;
	*page = at | (*word & HMM_PFN_WRITE ? SGH_PAGE_WRITABLE : 0);
	return true;
}
