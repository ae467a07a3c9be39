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

/* Writes the whole header; the caller then sets the operands and the payload. */
static inline void sgp_wqe_init(struct sg_wqe_hdr *wqe, uint32_t index, uint8_t opcode,
			       uint8_t flags, uint64_t wr_id)
{
	*wqe = (struct sg_wqe_hdr){
		.wr_id = htole64(wr_id),
		.opcode = opcode,
		.flags = flags,
		.index = htole32(index),
	};
}

static inline void sgp_wqe_set_remote(struct sg_wqe_hdr *wqe, uint32_t rkey, uint64_t remote_addr)
{
	wqe->remote_addr = htole64(remote_addr);
	wqe->rkey = htole32(rkey);
}

static inline void sgp_wqe_set_inv(struct sg_wqe_hdr *wqe, uint32_t stag)
{
	wqe->inv_stag = htole32(stag);
}

/* The octets as they are in memory; the contract has room for eight, verbs for four. */
static inline void sgp_wqe_set_imm(struct sg_wqe_hdr *wqe, const void *imm_data)
{
	memcpy(&wqe->imm, imm_data, 4);
}

static inline void sgp_cqe_get_imm(const struct sg_cqe *cqe, void *imm_data)
{
	memcpy(imm_data, &cqe->imm, 4);
}

static inline struct sg_wqe_atomic *sgp_wqe_atomic(struct sg_wqe_hdr *wqe)
{
	return (struct sg_wqe_atomic *)(wqe + 1);
}

static inline void sgp_wqe_set_atomic(struct sg_wqe_hdr *wqe, uint64_t data, uint64_t data_mask,
				     uint64_t compare, uint64_t compare_mask)
{
	*sgp_wqe_atomic(wqe) = (struct sg_wqe_atomic){
		.data = htole64(data),
		.data_mask = htole64(data_mask),
		.compare = htole64(compare),
		.compare_mask = htole64(compare_mask),
	};
}

static inline struct sg_wqe_bind *sgp_wqe_bind(struct sg_wqe_hdr *wqe)
{
	return (struct sg_wqe_bind *)(wqe + 1);
}

static inline bool sgp_is_atomic(uint8_t opcode)
{
	return opcode == SG_WR_FETCH_ADD || opcode == SG_WR_CMP_SWAP;
}

/* Octets behind the header of an atomic operation: operands, and an element for the result. */
#define SGP_ATOMIC_BODY ((uint32_t)(sizeof(struct sg_wqe_atomic) + sizeof(struct sg_sge)))

/* Elements of an entry: right behind its header, or behind the operands of an atomic operation. */
static inline struct sg_sge *sgp_wqe_sge(struct sg_wqe_hdr *wqe)
{
	if (sgp_is_atomic(wqe->opcode))
		return (struct sg_sge *)(sgp_wqe_atomic(wqe) + 1);
	return (struct sg_sge *)(wqe + 1);
}

static inline struct sg_sge *sgp_rqe_sge(struct sg_rqe_hdr *rqe)
{
	return (struct sg_sge *)(rqe + 1);
}

static inline void sgp_sge_set(struct sg_sge *sge, uint64_t addr, uint32_t length, uint32_t lkey)
{
	sge->addr = htole64(addr);
	sge->length = htole32(length);
	sge->lkey = htole32(lkey);
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

static inline void sgp_wqe_set_inline_len(struct sg_wqe_hdr *wqe, uint32_t used)
{
	wqe->flags |= SG_WQE_INLINE;
	wqe->inline_len = htole16((uint16_t)used);
}

/* Flush and Verify: the part right behind the header. */
static inline struct sg_wqe_place *sgp_wqe_place(struct sg_wqe_hdr *wqe)
{
	return (struct sg_wqe_place *)(wqe + 1);
}

static inline void sgp_wqe_set_place(struct sg_wqe_hdr *wqe, uint32_t length, uint32_t flags)
{
	*sgp_wqe_place(wqe) = (struct sg_wqe_place){
		.length = htole32(length),
		.flags = htole32(flags),
	};
}

/* Octets behind the header of a Verify. */
static inline size_t sgp_verify_size(uint32_t num_sge, size_t hash_len)
{
	return sizeof(struct sg_wqe_place) + num_sge * sizeof(struct sg_sge) + hash_len;
}

/* Appends the sink of the peer's hash to a Verify, before the expected hash. */
static inline struct sg_sge *sgp_verify_add_sink(struct sg_wqe_hdr *wqe)
{
	wqe->num_sge = 1;
	return (struct sg_sge *)(sgp_wqe_place(wqe) + 1);
}

/* length: 1..SG_HASH_MAX; the caller has checked the room. */
static inline void sgp_verify_add_hash(struct sg_wqe_hdr *wqe, const void *hash, size_t length)
{
	struct sg_wqe_place *place = sgp_wqe_place(wqe);

	place->hash_len = (uint8_t)length;
	memcpy((uint8_t *)place + sgp_verify_size(wqe->num_sge, 0), hash, length);
}

static inline void sgp_rqe_init(struct sg_rqe_hdr *rqe, uint32_t index, uint8_t num_sge,
			       uint64_t wr_id)
{
	*rqe = (struct sg_rqe_hdr){
		.wr_id = htole64(wr_id),
		.index = htole32(index),
		.num_sge = num_sge,
	};
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

/* Does this word end the entry that belongs at this index? size_shift: log2(entries) */
static inline bool sgp_cqe_is_new(uint64_t tail, uint32_t index, uint32_t size_shift)
{
	uint64_t phase = (tail >> SGP_CQE_TAIL_FLAGS_SHIFT) & SG_CQE_PHASE;

	return phase != (((uint64_t)index >> size_shift) & 1);
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

#endif
