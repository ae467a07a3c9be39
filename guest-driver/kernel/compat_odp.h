/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Pages of a region on demand, for odp.c.  Until 6.15 ib_core maps them for DMA.  Later kernels
 * leave that to the driver, by hmm_dma_map_pfn(): odp_hmm.c.
 */
#ifndef SGH_COMPAT_ODP_H
#define SGH_COMPAT_ODP_H

#include <linux/pci-p2pdma.h>
#include <rdma/ib_umem_odp.h>

#define SGH_PAGE_WRITABLE 1ull /* in a DMA address, as MAP_PAGES has it */

#ifdef SGH_HAVE_HMM_DMA
int sgh_umem_map_and_lock(struct ib_umem_odp *umem, u64 addr, u64 length, bool write, bool demand);
bool sgh_umem_page(struct ib_umem_odp *umem, u32 index, u64 *page);
#else
/*
 * Brings in the pages of a range, which begins and ends at pages of the region; without demand only
 * those that the process has.  Returns how many pages the range has, and then umem_mutex is held,
 * or a negative errno.
 */
static inline int sgh_umem_map_and_lock(struct ib_umem_odp *umem, u64 addr, u64 length, bool write,
					bool demand)
{
	u64 access = ODP_READ_ALLOWED_BIT | (write ? ODP_WRITE_ALLOWED_BIT : 0);

	return ib_umem_odp_map_dma_and_lock(umem, addr, length, access, demand);
}

/* umem_mutex held: the DMA address of a page of the region; false if it is not there. */
static inline bool sgh_umem_page(struct ib_umem_odp *umem, u32 index, u64 *page)
{
	dma_addr_t at = umem->dma_list[index];

	*page = (at & ODP_DMA_ADDR_MASK) | (at & ODP_WRITE_ALLOWED_BIT ? SGH_PAGE_WRITABLE : 0);
	return at & ODP_READ_ALLOWED_BIT;
}
#endif

#endif
