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
    __u32 features;            /* SG_FEATURE_* */
    __u32 hash_mask;           /* hash algorithms for Verify, bit n: enum sg_hash n */
};

struct sg_abi_alloc_pd_resp {
    __u32 pdn;
    __u32 reserved;
};

/*
 * The buffer holds 'entries' completion entries (io.h) and, directly after them, one struct
 * sg_cq_record.  The driver sets ibv_cq.cqe to entries - 1 or to the number that was requested.
 */
struct sg_abi_create_cq {
    __aligned_u64 buf;
    __u32 buf_len;  /* octets, at least entries * 64 + 64 */
    __u32 entries;  /* power of two */
};

struct sg_abi_create_cq_resp {
    __u32 cqn;
    __u32 reserved;
};

/* The new buffer, with the layout of the old one. */
struct sg_abi_resize_cq {
    __aligned_u64 buf;
    __u32 buf_len;
    __u32 entries;
};

struct sg_abi_resize_cq_resp {
    __u32 old_producer; /* completions of the old buffer end here */
    __u32 reserved;
};

struct sg_abi_create_srq {
    __aligned_u64 buf;
    __u32 entries; /* power of two */
    __u16 stride;  /* power of two */
    __u8 max_sge;
    __u8 reserved;
};

struct sg_abi_create_srq_resp {
    __u32 srqn;
    __u32 reserved;
};

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

struct sg_abi_create_qp {
    __aligned_u64 sq_buf;
    __aligned_u64 rq_buf;
    __u32 sq_entries; /* power of two */
    __u32 rq_entries;
    __u16 sq_stride;  /* power of two */
    __u16 rq_stride;
    __u16 max_inline;
    __u8 sq_max_sge;
    __u8 rq_max_sge;
};

struct sg_abi_create_qp_resp {
    __u32 qpn;
    __u32 reserved;
};

/*
 * Attributes of a memory region that the core's command lacks; absent or all zero: an ordinary
 * region.  The fields are those of sg_cmd_reg_mr (admin.h); a hash algorithm grants Verify.
 */
struct sg_abi_reg_mr {
    __u8 hash_alg;
    __u8 hash_key_len;
    __u8 mem_type;
    __u8 mem_mode;
    __u32 reserved;     /* 0 */
    __u8 hash_key[64];
};

#endif
