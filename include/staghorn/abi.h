/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn contract: the messages between the kernel driver and the rdma-core provider through
 * uverbs.  Host byte order (one machine).  Queue memory belongs to the process: it allocates
 * page-aligned, zeroed buffers and the driver pins them; the doorbell page is mapped from the
 * driver with the key in sg_abi_alloc_ucontext_resp.
 */
#ifndef STAGHORN_ABI_H
#define STAGHORN_ABI_H

#include "types.h"

#define SG_ABI_VERSION 1

struct sg_abi_alloc_ucontext_resp {
    __aligned_u64 db_mmap_key; /* offset for mmap: one doorbell page */
    __u32 uar;                 /* number of that page */
    __u32 max_inline;
    __u32 max_sq_sge;
    __u32 max_rq_sge;
    __u32 features;  /* SG_FEATURE_* */
    __u32 hash_mask; /* hash algorithms for Verify, bit n: enum sg_hash n */
};
SG_ASSERT_LAYOUT(struct sg_abi_alloc_ucontext_resp, 32, db_mmap_key, 0, uar, 8, max_inline, 12,
                 max_sq_sge, 16, max_rq_sge, 20, features, 24, hash_mask, 28);

struct sg_abi_alloc_pd_resp {
    __u32 pdn;
    __u32 reserved;
};
SG_ASSERT_LAYOUT(struct sg_abi_alloc_pd_resp, 8, pdn, 0, reserved, 4);

/*
 * The buffer holds 'entries' completion entries (io.h) and, directly after them, one struct
 * sg_cq_record.  The driver sets ibv_cq.cqe to entries - 1 or to the number that was requested.
 */
struct sg_abi_create_cq {
    __aligned_u64 buf;
    __u32 buf_len; /* octets, at least entries * 64 + 64 */
    __u32 entries; /* power of two */
};
SG_ASSERT_LAYOUT(struct sg_abi_create_cq, 16, buf, 0, buf_len, 8, entries, 12);

struct sg_abi_create_cq_resp {
    __u32 cqn;
    __u32 reserved;
};
SG_ASSERT_LAYOUT(struct sg_abi_create_cq_resp, 8, cqn, 0, reserved, 4);

/* The new buffer, with the layout of the old one. */
struct sg_abi_resize_cq {
    __aligned_u64 buf;
    __u32 buf_len;
    __u32 entries;
};
SG_ASSERT_LAYOUT(struct sg_abi_resize_cq, 16, buf, 0, buf_len, 8, entries, 12);

struct sg_abi_resize_cq_resp {
    __u32 old_producer; /* completions of the old buffer end here */
    __u32 reserved;
};
SG_ASSERT_LAYOUT(struct sg_abi_resize_cq_resp, 8, old_producer, 0, reserved, 4);

struct sg_abi_create_srq {
    __aligned_u64 buf;
    __u32 entries; /* power of two */
    __u16 stride;  /* power of two */
    __u8 max_sge;
    __u8 reserved;
};
SG_ASSERT_LAYOUT(struct sg_abi_create_srq, 16, buf, 0, entries, 8, stride, 12, max_sge, 14,
                 reserved, 15);

struct sg_abi_create_srq_resp {
    __u32 srqn;
    __u32 reserved;
};
SG_ASSERT_LAYOUT(struct sg_abi_create_srq_resp, 8, srqn, 0, reserved, 4);

/*
 * With IB_SRQ_MAX_WR: the new ring, of the same stride.  It already contains all entries that are
 * posted and not complete, each at its index modulo the new size; nobody posts until the call
 * returns.
 */
struct sg_abi_modify_srq {
    __aligned_u64 buf;
    __u32 entries; /* power of two */
    __u32 reserved;
};
SG_ASSERT_LAYOUT(struct sg_abi_modify_srq, 16, buf, 0, entries, 8, reserved, 12);

struct sg_abi_create_qp {
    __aligned_u64 sq_buf;
    __aligned_u64 rq_buf;
    __u32 sq_entries; /* power of two */
    __u32 rq_entries;
    __u16 sq_stride; /* power of two */
    __u16 rq_stride;
    __u16 max_inline;
    __u8 sq_max_sge;
    __u8 rq_max_sge;
};
SG_ASSERT_LAYOUT(struct sg_abi_create_qp, 32, sq_buf, 0, rq_buf, 8, sq_entries, 16, rq_entries, 20,
                 sq_stride, 24, rq_stride, 26, max_inline, 28, sq_max_sge, 30, rq_max_sge, 31);

struct sg_abi_create_qp_resp {
    __u32 qpn;
    __u32 reserved;
};
SG_ASSERT_LAYOUT(struct sg_abi_create_qp_resp, 8, qpn, 0, reserved, 4);

/*
 * Attributes of a memory region that the core's command lacks; absent or all zero: an ordinary
 * region.  The fields are those of sg_cmd_reg_mr (admin.h); a hash algorithm grants Verify.
 */
struct sg_abi_reg_mr {
    __u8 hash_alg;
    __u8 hash_key_len;
    __u8 mem_type;
    __u8 mem_mode;
    __u32 reserved; /* 0 */
    __u8 hash_key[64];
};
SG_ASSERT_LAYOUT(struct sg_abi_reg_mr, 72, hash_alg, 0, hash_key_len, 1, mem_type, 2, mem_mode, 3,
                 reserved, 4, hash_key, 8);

#endif
