/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Layout of the entries in the rings: queue geometry, building of work queue entries, reading of
 * completion entries.  Pure functions over the structs of <staghorn/io.h>; callers are responsible
 * for locks, barriers and doorbells, and nothing here needs libibverbs.
 *
 * An entry needs no valid mark: the device reads a slot only after the doorbell that covers it.
 */
#ifndef STAGHORN_PROVIDER_WQE_H
#define STAGHORN_PROVIDER_WQE_H

#include <endian.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <staghorn/io.h>
#include <staghorn/ring.h>
#include <staghorn/wqe.h>

#include "ring.h"

#ifndef __force /* rdma-core defines it for sparse; include <util/compiler.h> before this file */
#define __force
#endif

/*
 * Octets of a send queue slot for this many elements or inline octets, and at least min_body octets
 * behind the header, for operations that have operands there.  The result may exceed
 * SG_WQE_STRIDE_MAX: then no queue supports it.
 */
static inline uint32_t sgp_sq_stride(uint32_t max_sge, uint32_t max_inline, uint32_t min_body)
{
	uint32_t sges = max_sge * (uint32_t)sizeof(struct sg_sge);
	uint32_t body = sges > max_inline ? sges : max_inline;
	uint32_t need = (uint32_t)sizeof(struct sg_wqe_hdr) + (body > min_body ? body : min_body);

	return need <= SG_WQE_STRIDE_MIN ? SG_WQE_STRIDE_MIN : sgp_pow2_at_least(need);
}

static inline uint32_t sgp_rq_stride(uint32_t max_sge)
{
	uint32_t need = (uint32_t)(sizeof(struct sg_rqe_hdr) + max_sge * sizeof(struct sg_sge));

	return need <= SG_WQE_STRIDE_MIN ? SG_WQE_STRIDE_MIN : sgp_pow2_at_least(need);
}

/* Room behind the header of a slot, in elements and in octets. */
static inline uint32_t sgp_sq_sge_room(uint32_t stride)
{
	return (stride - (uint32_t)sizeof(struct sg_wqe_hdr)) / (uint32_t)sizeof(struct sg_sge);
}

static inline uint32_t sgp_sq_inline_room(uint32_t stride)
{
	return stride - (uint32_t)sizeof(struct sg_wqe_hdr);
}

static inline uint32_t sgp_rq_sge_room(uint32_t stride)
{
	return (stride - (uint32_t)sizeof(struct sg_rqe_hdr)) / (uint32_t)sizeof(struct sg_sge);
}

/*
 * Appends to the inline payload.  used: octets there already; returns the new number, or
 * SGP_INLINE_TOO_LONG (and nothing is copied) if that would be more than max.
 */
#define SGP_INLINE_TOO_LONG UINT32_MAX

static inline uint32_t sgp_wqe_append_inline(struct sg_wqe_hdr *wqe, uint32_t used, uint32_t max,
					     const void *data, size_t length)
{
	if (length > max - used)
		return SGP_INLINE_TOO_LONG;
	if (length)
		memcpy((uint8_t *)(wqe + 1) + used, data, length);
	return used + (uint32_t)length;
}

/* Position of sg_cqe's octets 60 to 63 within its last 64-bit word, as a number. */
enum sgp_cqe_tail {
	SGP_CQE_TAIL_STATUS_SHIFT = 32,
	SGP_CQE_TAIL_OPCODE_SHIFT = 40,
	SGP_CQE_TAIL_FLAGS_SHIFT = 56,
};

SG_ASSERT_OFFSET(struct sg_cqe, status, 60);
SG_ASSERT_OFFSET(struct sg_cqe, opcode, 61);
SG_ASSERT_OFFSET(struct sg_cqe, flags_phase, 63);

/*
 * The last word of a completion entry in one load (the device writes it last).  If it says
 * that the entry is new, a read barrier must come before any other field is read.
 */
typedef _Atomic(uint64_t) sgp_cqe_tail_word __attribute__((may_alias));

static inline uint64_t sgp_cqe_tail(const struct sg_cqe *cqe)
{
	sgp_cqe_tail_word *word = (sgp_cqe_tail_word *)(uintptr_t)&cqe->wr_index;

	return le64toh((__force __le64)atomic_load_explicit(word, memory_order_relaxed));
}

static inline uint32_t sgp_cqe_wr_index(uint64_t tail)
{
	return (uint32_t)tail;
}

static inline uint8_t sgp_cqe_status(uint64_t tail)
{
	return (uint8_t)(tail >> SGP_CQE_TAIL_STATUS_SHIFT);
}

static inline uint8_t sgp_cqe_opcode(uint64_t tail)
{
	return (uint8_t)(tail >> SGP_CQE_TAIL_OPCODE_SHIFT);
}

static inline uint8_t sgp_cqe_flags(uint64_t tail)
{
	return (uint8_t)(tail >> SGP_CQE_TAIL_FLAGS_SHIFT);
}

/* Is the entry that this word ends the one that belongs at this index of a ring of size entries? */
static inline bool sgp_cqe_is_new(uint64_t tail, uint32_t index, uint32_t size)
{
	return sg_index_is_new(sgp_cqe_flags(tail), index, size);
}

#endif
