/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Step 3 of docs/course: rings in DMA memory, and the adapter brought up to READY.
 */
#ifndef COURSE_BRINGUP_H
#define COURSE_BRINGUP_H

#include <linux/dma-mapping.h>

#include <staghorn/ring.h>

#include "step02/regs.h"

/* A ring, contiguous in bus addresses.  Indices are free-running. */
struct course_ring {
	void *mem;
	dma_addr_t dma;
	u32 entries, stride; /* powers of two */
	u32 prod, cons;
};

static inline void *course_ring_slot(const struct course_ring *ring, u32 index)
{
	return ring->mem + (size_t)sg_index_slot(index, ring->entries) * ring->stride;
}

int course_ring_alloc(const struct course_regs *r, struct course_ring *ring, u32 entries,
		      u32 stride);
void course_ring_free(const struct course_regs *r, struct course_ring *ring);

int course_reset(const struct course_regs *r);
int course_test_dma(const struct course_regs *r);
int course_enable(const struct course_regs *r, const struct course_ring *asq,
		  const struct course_ring *acq, const struct course_ring *aeq);

#endif
