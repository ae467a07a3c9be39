// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 3 of docs/course: reset, DMA test, rings, ENABLE.  Manual: driver.md, bring-up.
 */
#include <linux/iopoll.h>

#include "step03/bringup.h"

#define COURSE_RESET_US (5 * USEC_PER_SEC)

/* Rings are aligned to 4 KiB; a smaller one takes a page. */
static size_t course_ring_size(const struct course_ring *ring)
{
	u32 octets = ring->entries * ring->stride;

	return max_t(size_t, octets, SZ_4K);
}

/* dma_alloc_coherent() gives zeroed memory, so that no phase bit is set. */
int course_ring_alloc(const struct course_regs *r, struct course_ring *ring, u32 entries,
		      u32 stride)
{
	ring->entries = entries;
	ring->stride = stride;
	ring->prod = 0;
	ring->cons = 0;
	ring->mem =
		dma_alloc_coherent(&r->pdev->dev, course_ring_size(ring), &ring->dma, GFP_KERNEL);
	return ring->mem ? 0 : -ENOMEM;
}

void course_ring_free(const struct course_regs *r, struct course_ring *ring)
{
	if (ring->mem)
		dma_free_coherent(&r->pdev->dev, course_ring_size(ring), ring->mem, ring->dma);
	ring->mem = NULL;
}

/*
 * When it returns 0 the adapter accesses no memory, whatever an earlier driver left.  -ENODEV: the
 * adapter is gone, and accesses none either.
 */
int course_reset(const struct course_regs *r)
{
	u32 ctrl;
	int ret;

	course_write(r, SG_REG_CTRL, SG_CTRL_RESET);
	ret = read_poll_timeout(course_read, ctrl,
				ctrl == U32_MAX || !(ctrl & (SG_CTRL_RESET | SG_CTRL_ENABLE)), 100,
				COURSE_RESET_US, false, r, SG_REG_CTRL);
	return ctrl == U32_MAX ? -ENODEV : ret;
}

static void course_write64(const struct course_regs *r, u32 offset, u64 value)
{
	course_write(r, offset, lower_32_bits(value));
	course_write(r, offset + 4, upper_32_bits(value));
}

/* The adapter fills a page; the processor has to see it. */
int course_test_dma(const struct course_regs *r)
{
	struct device *dev = &r->pdev->dev;
	dma_addr_t dma;
	u32 status, i;
	int ret = 0;
	u8 *page;

	page = dma_alloc_coherent(dev, SZ_4K, &dma, GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	course_write64(r, SG_REG_TEST_DMA_LO, dma);
	course_write(r, SG_REG_TEST_DMA_LEN, SZ_4K);
	course_write(r, SG_REG_TEST_DMA_CMD, SG_TEST_DMA_FILL);
	status = course_read(r, SG_REG_TEST_DMA_STATUS);
	for (i = 0; i < SZ_4K && !status; i++) {
		if (page[i] != (u8)i)
			break;
	}
	if (status || i < SZ_4K) {
		pci_err(r->pdev, "DMA test: status %u, octet %u\n", status, i);
		ret = -EIO;
	}
	dma_free_coherent(dev, SZ_4K, page, dma);
	return ret;
}

/* Tells the adapter its rings and starts it. */
int course_enable(const struct course_regs *r, const struct course_ring *asq,
		  const struct course_ring *acq, const struct course_ring *aeq)
{
	u32 status;

	course_write64(r, SG_REG_ASQ_BASE_LO, asq->dma);
	course_write64(r, SG_REG_ACQ_BASE_LO, acq->dma);
	course_write(r, SG_REG_ADMIN_SIZE, asq->entries);
	course_write64(r, SG_REG_AEQ_BASE_LO, aeq->dma);
	course_write(r, SG_REG_AEQ_SIZE, aeq->entries);
	course_write(r, SG_REG_CTRL, SG_CTRL_ENABLE);
	status = course_read(r, SG_REG_STATUS);
	if (status & SG_STATUS_FATAL || !(status & SG_STATUS_READY)) {
		pci_err(r->pdev, "status %#x, reason %u\n", status, course_read(r, SG_REG_FATAL));
		return -EIO;
	}
	return 0;
}
