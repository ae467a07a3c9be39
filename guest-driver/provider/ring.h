/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Work queue ring from its producer's side: 2^n slots of a power-of-two stride, indices that run
 * freely over 32 bits (io.h, docs/manual/queues.md).
 *
 * Writers: the poster writes head, under the queue's lock.  The poller of the completion queue
 * writes tail, under that queue's lock; the poster only reads it.  For a shared receive queue the
 * pollers of several completion queues write it.  Nothing here needs libibverbs, so that it can be
 * tested without a device.
 */
#ifndef STAGHORN_PROVIDER_RING_H
#define STAGHORN_PROVIDER_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <staghorn/ring.h>

struct sgp_ring {
	uint8_t *base;
	uint32_t size;		/* slots, power of two */
	uint32_t stride_shift;	/* log2 of the octets of a slot */
	uint32_t head;		/* index of the next entry to post */
	_Atomic(uint32_t) tail; /* index of the oldest entry that the device may still own */
};

static inline uint32_t sgp_pow2_at_least(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

/* base: zeroed, size << stride_shift octets, owned by the caller. */
static inline void sgp_ring_init(struct sgp_ring *ring, void *base, uint32_t size, uint32_t stride)
{
	ring->base = base;
	ring->size = size;
	ring->stride_shift = (uint32_t)__builtin_ctz(stride);
	ring->head = 0;
	atomic_init(&ring->tail, 0);
}

static inline void *sgp_ring_slot(const struct sgp_ring *ring, uint32_t index)
{
	return ring->base + ((size_t)sg_index_slot(index, ring->size) << ring->stride_shift);
}

/* True if the slot of index (head or beyond it, while a list is being built) is not free yet. */
static inline bool sgp_ring_full(const struct sgp_ring *ring, uint32_t index)
{
	return sg_index_full(index, atomic_load_explicit(&ring->tail, memory_order_acquire),
			     ring->size);
}

/* The entry of this index and all before it have completed. */
static inline void sgp_ring_release(struct sgp_ring *ring, uint32_t index)
{
	atomic_store_explicit(&ring->tail, index + 1, memory_order_release);
}

/*
 * This many entries have completed, in whatever order.  Several threads may call it at once, and an
 * older count may arrive later than a newer one.
 */
static inline void sgp_ring_release_count(struct sgp_ring *ring, uint32_t completed)
{
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	while (sg_index_after(completed, tail) &&
	       !atomic_compare_exchange_weak_explicit(&ring->tail, &tail, completed,
						      memory_order_release, memory_order_relaxed))
		;
}

/*
 * Copies the entries that the device may still own to a ring of size slots at base, with the same
 * stride.  False: it has no room for them, and nothing is copied.  Nobody posts meanwhile.
 */
static inline bool sgp_ring_copy(const struct sgp_ring *ring, void *base, uint32_t size)
{
	struct sgp_ring to = { .base = base, .size = size, .stride_shift = ring->stride_shift };
	uint32_t i = atomic_load_explicit(&ring->tail, memory_order_acquire);

	if (ring->head - i > size)
		return false;
	for (; i != ring->head; i++)
		memcpy(sgp_ring_slot(&to, i), sgp_ring_slot(ring, i),
		       (size_t)1 << ring->stride_shift);
	return true;
}

/* The device has switched to the copy. */
static inline void sgp_ring_move(struct sgp_ring *ring, void *base, uint32_t size)
{
	ring->base = base;
	ring->size = size;
}

/* Drops all posted entries: the device does not read them any more. */
static inline void sgp_ring_drain(struct sgp_ring *ring)
{
	atomic_store_explicit(&ring->tail, ring->head, memory_order_release);
}

#endif
