/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Writing to the doorbell page (regs.h, enum sg_doorbell): one 64-bit store with a queue number and
 * an index.  Stores for one queue are made under that queue's lock, and the flush keeps them in
 * lock order on every CPU, whatever the mapping: for the device an index never goes back.
 */
#ifndef STAGHORN_PROVIDER_DOORBELL_H
#define STAGHORN_PROVIDER_DOORBELL_H

#include <endian.h>
#include <stdint.h>

#include <util/mmio.h>
#include <util/udma_barrier.h>

#include <staghorn/regs.h>

static inline void sgp_doorbell(uint8_t *page, enum sg_doorbell which, uint32_t low, uint32_t index)
{
	/* The entries must be in memory before the device gets the index. */
	udma_to_device_barrier();
	mmio_write64_le(page + which, htole64((uint64_t)index << 32 | low));
	mmio_flush_writes();
}

static inline uint64_t sgp_doorbell_read(const uint8_t *page, enum sg_doorbell which)
{
	return le64toh((__force uint64_t)mmio_read64_le(page + which));
}

#endif
