/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn hardware interface library: building the entries of send and receive queues (io.h).
 *
 * sg_wqe_init() writes the whole header; then the opcode's operands and the payload are added, in
 * any order, except for a Verify: place, sink, hash.  The caller has made sure that there is room
 * for all of it behind the header, and copies inline payload and hashes itself.  Nothing here needs
 * the device: an entry counts when the doorbell that covers it is written.
 */
#ifndef STAGHORN_WQE_H
#define STAGHORN_WQE_H

#include "admin.h"
#include "bits.h"
#include "io.h"

/* Octets behind the header of an atomic operation: operands, and an element for its result. */
#define SG_WQE_ATOMIC_BODY ((__u32)(sizeof(struct sg_wqe_atomic) + sizeof(struct sg_sge)))
/* Octets of an Atomic Write's payload, and of what an atomic operation fetches. */
#define SG_ATOM 8

/*
 * Send operations that kernel and user space have under one name, as X(verbs, opcode, feature,
 * elements, flags): the name behind IB_WR_ and IBV_WR_, that behind SG_WR_, the feature needed of
 * the device (0: none), the most elements, SG_OP_*.  Operations that only one of the two has are in
 * its own table.
 */
/* clang-format off */
#define SG_SEND_OPS(X) \
    X(SEND, SEND, 0, SG_SQ_MAX_SGE, SG_OP_INLINE | SG_OP_SOLICITS) \
    X(SEND_WITH_INV, SEND_INV, SG_FEATURE_SEND_INV, SG_SQ_MAX_SGE, \
      SG_OP_INLINE | SG_OP_SOLICITS) \
    X(SEND_WITH_IMM, SEND_IMM, SG_FEATURE_IMM, 0, SG_OP_SOLICITS) \
    X(RDMA_WRITE, WRITE, 0, SG_SQ_MAX_SGE, SG_OP_INLINE) \
    X(RDMA_WRITE_WITH_IMM, WRITE_IMM, SG_FEATURE_IMM, SG_SQ_MAX_SGE, \
      SG_OP_INLINE | SG_OP_SOLICITS) \
    X(RDMA_READ, READ, 0, SG_SQ_MAX_SGE, 0) \
    X(ATOMIC_CMP_AND_SWP, CMP_SWAP, SG_FEATURE_ATOMICS, 1, SG_OP_ATOM | SG_OP_OPERANDS) \
    X(ATOMIC_FETCH_AND_ADD, FETCH_ADD, SG_FEATURE_ATOMICS, 1, SG_OP_ATOM | SG_OP_OPERANDS) \
    X(ATOMIC_WRITE, ATOMIC_WRITE, SG_FEATURE_ATOMIC_WRITE, 1, SG_OP_ATOM | SG_OP_INLINE)
/* clang-format on */

#define SG_OP_INLINE 0x1   /* payload may be in the entry */
#define SG_OP_SOLICITS 0x2 /* SG_WQE_SOLICITED has a meaning */
#define SG_OP_ATOM 0x4     /* payload or result is exactly SG_ATOM octets, in one piece */
#define SG_OP_OPERANDS 0x8 /* struct sg_wqe_atomic is in front of the element */

static inline void sg_sge_set(struct sg_sge *sge, __u64 addr, __u32 length, __u32 lkey)
{
    sge->addr = sg_to_le64(addr);
    sge->length = sg_to_le32(length);
    sge->lkey = sg_to_le32(lkey);
}

static inline void sg_wqe_init(struct sg_wqe_hdr *hdr, __u32 index, __u8 opcode, __u8 flags,
                               __u64 wr_id)
{
    hdr->wr_id = sg_to_le64(wr_id);
    hdr->opcode = opcode;
    hdr->flags = flags;
    hdr->num_sge = 0;
    hdr->reserved_88 = 0;
    hdr->inline_len = sg_to_le16(0);
    hdr->reserved_112 = sg_to_le16(0);
    hdr->index = sg_to_le32(index);
    hdr->inv_stag = sg_to_le32(0);
    hdr->remote_addr = sg_to_le64(0);
    hdr->rkey = sg_to_le32(0);
    hdr->reserved_288 = sg_to_le32(0);
    hdr->imm = sg_to_le64(0);
}

static inline void sg_wqe_set_remote(struct sg_wqe_hdr *hdr, __u32 rkey, __u64 remote_addr)
{
    hdr->remote_addr = sg_to_le64(remote_addr);
    hdr->rkey = sg_to_le32(rkey);
}

static inline void sg_wqe_set_inv(struct sg_wqe_hdr *hdr, __u32 stag)
{
    hdr->inv_stag = sg_to_le32(stag);
}

/* Sets or gets the first four of the eight octets, in the order of memory: verbs have four. */
static inline void sg_wqe_set_imm(struct sg_wqe_hdr *hdr, const void *four)
{
    __builtin_memcpy(&hdr->imm, four, 4);
}

static inline void sg_cqe_get_imm(const struct sg_cqe *cqe, void *four)
{
    __builtin_memcpy(four, &cqe->imm, 4);
}

static inline void sg_wqe_set_inline_len(struct sg_wqe_hdr *hdr, __u32 length)
{
    hdr->flags |= SG_WQE_INLINE;
    hdr->inline_len = sg_to_le16((__u16)length);
}

static inline void sg_wqe_set_reg(struct sg_wqe_hdr *hdr, const struct sg_wqe_reg *reg)
{
    *(struct sg_wqe_reg *)(hdr + 1) = *reg;
}

static inline struct sg_wqe_bind *sg_wqe_bind(struct sg_wqe_hdr *hdr)
{
    return (struct sg_wqe_bind *)(hdr + 1);
}

/* length 0: the window is unbound, and mr_stag, access and va are ignored. */
static inline void sg_wqe_set_bind(struct sg_wqe_hdr *hdr, __u32 stag, __u32 mr_stag, __u32 access,
                                   __u64 va, __u64 length)
{
    struct sg_wqe_bind *bind = sg_wqe_bind(hdr);

    bind->stag = sg_to_le32(stag);
    bind->mr_stag = sg_to_le32(length ? mr_stag : 0);
    bind->access = sg_to_le32(length ? access : 0);
    bind->reserved_96 = sg_to_le32(0);
    bind->va = sg_to_le64(length ? va : 0);
    bind->length = sg_to_le64(length);
}

static inline int sg_wqe_is_atomic(const struct sg_wqe_hdr *hdr)
{
    return hdr->opcode == SG_WR_FETCH_ADD || hdr->opcode == SG_WR_CMP_SWAP;
}

static inline struct sg_wqe_atomic *sg_wqe_atomic(struct sg_wqe_hdr *hdr)
{
    return (struct sg_wqe_atomic *)(hdr + 1);
}

/* FETCH_ADD: the value to add, and its mask; compare and its mask are 0. */
static inline void sg_wqe_set_atomic(struct sg_wqe_hdr *hdr, __u64 data, __u64 data_mask,
                                     __u64 compare, __u64 compare_mask)
{
    struct sg_wqe_atomic *atomic = sg_wqe_atomic(hdr);

    atomic->data = sg_to_le64(data);
    atomic->data_mask = sg_to_le64(data_mask);
    atomic->compare = sg_to_le64(compare);
    atomic->compare_mask = sg_to_le64(compare_mask);
}

/* Elements of an entry: right behind its header, or behind the operands of an atomic operation. */
static inline struct sg_sge *sg_wqe_sge(struct sg_wqe_hdr *hdr)
{
    if (sg_wqe_is_atomic(hdr)) {
        return (struct sg_sge *)(sg_wqe_atomic(hdr) + 1);
    }
    return (struct sg_sge *)(hdr + 1);
}

static inline struct sg_wqe_place *sg_wqe_place(struct sg_wqe_hdr *hdr)
{
    return (struct sg_wqe_place *)(hdr + 1);
}

/* Flush (flags: SG_FLUSH_*) and Verify (flags 0), before the other parts of a Verify. */
static inline void sg_wqe_set_place(struct sg_wqe_hdr *hdr, __u32 length, __u32 flags)
{
    struct sg_wqe_place *place = sg_wqe_place(hdr);
    int i;

    place->length = sg_to_le32(length);
    place->flags = sg_to_le32(flags);
    place->hash_len = 0;
    for (i = 0; i < (int)sizeof(place->reserved); i++) {
        place->reserved[i] = 0;
    }
}

/* Octets behind the header of a Verify. */
static inline __u32 sg_wqe_verify_body(__u32 num_sge, __u32 hash_len)
{
    return (__u32)sizeof(struct sg_wqe_place) + num_sge * (__u32)sizeof(struct sg_sge) + hash_len;
}

/* Appends the element that receives the peer's hash to a Verify, before the expected hash. */
static inline struct sg_sge *sg_wqe_verify_sink(struct sg_wqe_hdr *hdr)
{
    hdr->num_sge = 1;
    return (struct sg_sge *)(sg_wqe_place(hdr) + 1);
}

/* Where the expected hash of length octets (1..SG_HASH_MAX) has to be written. */
static inline void *sg_wqe_verify_hash(struct sg_wqe_hdr *hdr, __u32 length)
{
    struct sg_wqe_place *place = sg_wqe_place(hdr);

    place->hash_len = (__u8)length;
    return (__u8 *)place + sg_wqe_verify_body(hdr->num_sge, 0);
}

static inline void sg_rqe_init(struct sg_rqe_hdr *hdr, __u32 index, __u8 num_sge, __u64 wr_id)
{
    int i;

    hdr->wr_id = sg_to_le64(wr_id);
    hdr->index = sg_to_le32(index);
    hdr->num_sge = num_sge;
    for (i = 0; i < (int)sizeof(hdr->reserved); i++) {
        hdr->reserved[i] = 0;
    }
}

static inline struct sg_sge *sg_rqe_sge(struct sg_rqe_hdr *hdr)
{
    return (struct sg_sge *)(hdr + 1);
}

#endif
