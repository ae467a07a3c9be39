/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn direct verbs: capabilities of the adapter that libibverbs does not know.  RDMA Verify of
 * draft-talpey-rdma-commit, and memory regions that a peer may verify.  See staghorndv(7).
 *
 * Structs grow at their end; comp_mask says which optional fields are set, 0: none.
 */
#ifndef STAGHORNDV_H
#define STAGHORNDV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Hash algorithms of a region. */
enum sgdv_hash {
	SGDV_HASH_NONE = 0,
	SGDV_HASH_CRC32C = 1,	   /* 4 octets; the peer needs the right of remote read */
	SGDV_HASH_SHA256 = 2,	   /* 32 octets */
	SGDV_HASH_SHA512 = 3,	   /* 64 octets */
	SGDV_HASH_HMAC_SHA256 = 4, /* 32 octets; keyed */
};

enum {
	SGDV_HASH_MAX = 64,	/* octets of the longest hash */
	SGDV_HASH_KEY_MAX = 64, /* octets of the longest key */
};

/* The type of memory that the owner claims; registration fails if it is a different one. */
enum sgdv_mem_type {
	SGDV_MEM_ANY = 0,
	SGDV_MEM_VOLATILE = 1,
	SGDV_MEM_PERSISTENT = 2,
};

/* How a peer's Writes reach the region: a performance hint. */
enum sgdv_mem_mode {
	SGDV_MODE_DEFAULT = 0,
	SGDV_MODE_CACHED = 1, /* may stop in the CPU's cache */
	SGDV_MODE_DIRECT = 2, /* bypass it */
};

/* resource_type of a parent domain's allocators: the queue for which the memory is. */
enum sgdv_resource {
	SGDV_RESOURCE_CQ = 1,
	SGDV_RESOURCE_QP = 2,
	SGDV_RESOURCE_SRQ = 3,
};

/* True: the functions below work with the device. */
bool sgdv_is_supported(struct ibv_device *device);

enum sgdv_device_caps {
	SGDV_CAP_FLUSH_GLOBAL = 1 << 0,
	SGDV_CAP_FLUSH_PERSISTENT = 1 << 1, /* this machine has persistent memory */
	SGDV_CAP_FLUSH_MR = 1 << 2,	    /* IBV_FLUSH_MR: a whole region of the peer */
	SGDV_CAP_ATOMIC_WRITE = 1 << 3,
	SGDV_CAP_VERIFY = 1 << 4,
	SGDV_CAP_MASKED_ATOMICS = 1 << 5,
};

struct sgdv_device_attr {
	uint64_t comp_mask;
	uint32_t caps;	       /* SGDV_CAP_* */
	uint32_t hash_mask;    /* bit n: enum sgdv_hash n can be registered */
	uint32_t draft;	       /* 1, 2: version of the draft in use; 0: none */
	uint32_t max_hash_key; /* octets */
};

/* 0 or an errno value.  inlen: the caller's sizeof(*attr). */
int sgdv_query_device(struct ibv_context *context, struct sgdv_device_attr *attr, uint32_t inlen);

/* Octets of a hash; 0: no hash, or no such algorithm. */
uint32_t sgdv_hash_len(enum sgdv_hash hash);

enum sgdv_mr_attr_mask {
	SGDV_MR_ATTR_IOVA = 1 << 0,
};

struct sgdv_mr_attr {
	uint64_t comp_mask; /* SGDV_MR_ATTR_* */
	uint32_t hash;	    /* enum sgdv_hash; any but NONE lets the peer verify the region */
	uint32_t key_len;   /* HMAC: 1 to SGDV_HASH_KEY_MAX; else 0 */
	const void *key;    /* copied */
	uint32_t mem_type;  /* enum sgdv_mem_type */
	uint32_t mem_mode;  /* enum sgdv_mem_mode */
	uint64_t iova;	    /* with SGDV_MR_ATTR_IOVA: as in ibv_reg_mr_iova() */
};

/*
 * ibv_reg_mr() with more options; ibv_dereg_mr() deregisters the region.  NULL and errno:
 * EOPNOTSUPP (not with this device or algorithm), EINVAL (arguments; persistence of memory that has
 * none), EACCES (a reversible hash without remote read), else as ibv_reg_mr().
 */
struct ibv_mr *sgdv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access,
			   const struct sgdv_mr_attr *attr);

/* How the region was registered; key stays NULL, and comp_mask and iova are 0. */
int sgdv_query_mr(struct ibv_mr *mr, struct sgdv_mr_attr *attr, uint32_t inlen);

/* Opcode of a Verify's completion (ibv_wc.opcode, ibv_wc_read_opcode()). */
#define SGDV_WC_VERIFY IBV_WC_DRIVER1

/* The least max_inline_data of queue pairs that post Verifies expecting a hash of len octets. */
#define SGDV_VERIFY_INLINE(len) (32 + (len))

struct sgdv_verify {
	uint64_t comp_mask;   /* 0 */
	uint64_t remote_addr; /* the peer's range */
	uint32_t rkey;
	uint32_t length;
	const void *expected;  /* copied; success if it matches or is absent */
	uint32_t expected_len; /* 0: none */
	uint32_t sink_lkey;    /* where the peer's hash is written; with the right of local write */
	uint64_t sink_addr;
	uint32_t sink_len; /* 0: nowhere */
	uint32_t reserved; /* 0 */
};

/*
 * Posts a Verify, between ibv_wr_start() and ibv_wr_complete(), which returns errors: EOPNOTSUPP
 * (the device does not verify), EINVAL (arguments, or no room: SGDV_VERIFY_INLINE).  wr_id and
 * wr_flags (signaled, fence) are those of qp.  No payload is set afterwards.
 */
void sgdv_wr_verify(struct ibv_qp_ex *qp, const struct sgdv_verify *verify);

/*
 * Draft -01: the peer also invalidates its region or window rkey, once the Flush, Verify or Atomic
 * Write posted last has succeeded.  Must be called right after the function that posts it.
 * ibv_wr_complete() returns EOPNOTSUPP (not draft -01) or EINVAL (no such request, rkey 0).
 */
void sgdv_wr_invalidate(struct ibv_qp_ex *qp, uint32_t rkey);

/* RFC 7306 section 5.2.2.  The bits that are set in a mask are used. */
struct sgdv_cmp_swp {
	uint64_t compare;
	uint64_t compare_mask; /* bits that must be equal */
	uint64_t swap;
	uint64_t swap_mask; /* bits that are replaced if they are */
};

/*
 * Posts an atomic operation on 8 octets of the peer, between ibv_wr_start() and ibv_wr_complete();
 * ibv_wr_set_sge() then names the 8 octets that receive the previous value.  Completions are
 * IBV_WC_COMP_SWAP and IBV_WC_FETCH_ADD.  The queue pair must have been created with
 * IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP or IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD (either suffices).
 * Otherwise, and if the device has no atomics, ibv_wr_complete() returns EOPNOTSUPP.
 */
void sgdv_wr_masked_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			    const struct sgdv_cmp_swp *cmp_swp);
/* field_ends: each set bit is the highest of a field, and no carry leaves it; 0: one of 64 bits. */
void sgdv_wr_masked_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			      uint64_t add, uint64_t field_ends);

/*
 * vendor_err of a completion that failed because the peer sent a Terminate message: the layer,
 * type and code of the fault (RFC 5040 section 4.8).  All 0 if there was none.
 */
static inline unsigned int sgdv_terminate_layer(uint32_t vendor_err)
{
	return vendor_err >> 28;
}

static inline unsigned int sgdv_terminate_type(uint32_t vendor_err)
{
	return vendor_err >> 24 & 0xf;
}

static inline unsigned int sgdv_terminate_code(uint32_t vendor_err)
{
	return vendor_err >> 16 & 0xff;
}

#ifdef __cplusplus
}
#endif

#endif
