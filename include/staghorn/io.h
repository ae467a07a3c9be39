/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn hardware contract: work queue entries, completion queue entries, event queue entries.
 *
 * Manual: docs/manual/queues.md.  A ring has 2^n entries of a fixed power-of-two stride; indices
 * run freely over 32 bits and the slot is index modulo size.  The ring is empty if the consumer
 * index equals the producer index.
 *
 * Validity: completion and event entries end in a word whose phase bit tells whether the entry is
 * new: in the first pass over the ring (index / size even) a new entry has phase 1, in the next 0,
 * and so on; rings start zeroed.  The device writes that last 64-bit word last.
 */
#ifndef STAGHORN_IO_H
#define STAGHORN_IO_H

#include "types.h"

enum sg_io_limits {
    SG_WQE_STRIDE_MIN = 64,
    SG_WQE_STRIDE_MAX = 1024,
    SG_SQ_MAX_SGE = 32,
    SG_RQ_MAX_SGE = 32,
    SG_MAX_INLINE = 512, /* octets */
    SG_PAGE_SHIFT = 12,
    SG_PAGE_SIZE = 1 << SG_PAGE_SHIFT, /* unit of queue page lists */
};

/* Scatter/gather element.  addr is an address within the MR that lkey names. */
struct sg_sge {
    __le64 addr;
    __le32 length;
    __le32 lkey;
};
SG_ASSERT_LAYOUT(struct sg_sge, 16, addr, 0, length, 8, lkey, 12);

enum sg_wr_opcode {
    SG_WR_SEND = 0x00,
    SG_WR_SEND_INV = 0x01, /* inv_stag is invalidated at the peer; SG_FEATURE_SEND_INV */
    SG_WR_WRITE = 0x02,
    SG_WR_READ = 0x03, /* elements: the sink, filled in their order */
    /* The next three need an MR of ALLOC_MR, the last two of them also a QP with SG_QP_KERNEL. */
    SG_WR_READ_INV = 0x04,  /* as READ, one element; its STag is invalidated at the end */
    SG_WR_LOCAL_INV = 0x05, /* inv_stag */
    SG_WR_REG_MR = 0x06,    /* struct sg_wqe_reg */
    SG_WR_BIND_MW = 0x07,   /* struct sg_wqe_bind; SG_FEATURE_MW */
    SG_WR_SEND_IMM = 0x08,  /* RFC 7306 Immediate Data: imm, no payload; SG_FEATURE_IMM */
    SG_WR_WRITE_IMM = 0x09, /* WRITE, then Immediate Data; one completion */
    SG_WR_FETCH_ADD = 0x0a, /* struct sg_wqe_atomic; SG_FEATURE_ATOMICS */
    SG_WR_CMP_SWAP = 0x0b,  /* struct sg_wqe_atomic */
    /* draft-talpey-rdma-commit; SG_FEATURE_FLUSH, _VERIFY, _ATOMIC_WRITE */
    SG_WR_FLUSH = 0x0c,        /* struct sg_wqe_place */
    SG_WR_VERIFY = 0x0d,       /* struct sg_wqe_place */
    SG_WR_ATOMIC_WRITE = 0x0e, /* INLINE with inline_len 8, or one element of 8 octets */
};

/* sg_wqe_hdr.flags */
#define SG_WQE_SIGNALED 0x01  /* a successful completion is reported */
#define SG_WQE_SOLICITED 0x02 /* Send variants: solicited event at the peer */
#define SG_WQE_FENCE 0x04     /* starts only after all earlier Reads have completed */
#define SG_WQE_INLINE 0x08    /* payload follows in the entry; inline_len octets */

/*
 * Send queue entry: this header, then num_sge elements or inline_len octets of payload, within the
 * stride of the queue.
 */
struct sg_wqe_hdr {
    __le64 wr_id;      /* returned in the completion, not interpreted */
    __u8 opcode;       /* enum sg_wr_opcode */
    __u8 flags;        /* SG_WQE_* */
    __u8 num_sge;      /* 0..SG_SQ_MAX_SGE; READ_INV, atomics: 0 or 1 */
    __u8 reserved_88;  /* 0 */
    __le16 inline_len; /* 0..SG_MAX_INLINE, when INLINE */
    __le16 reserved_112;
    __le32 index;       /* low 32 bits of the producer index of this entry: the device checks it */
    __le32 inv_stag;    /* SEND_INV, LOCAL_INV; FLUSH, VERIFY, ATOMIC_WRITE: 0, or by draft -01 */
    __le64 remote_addr; /* WRITE: Tagged Offset of the sink; READ: of the source */
    __le32 rkey;        /* WRITE, READ: the peer's STag */
    __le32 reserved_288;
    __le64 imm; /* SEND_IMM, WRITE_IMM: the 8 octets in the order of memory; else 0 */
};
SG_ASSERT_LAYOUT(struct sg_wqe_hdr, 48, wr_id, 0, opcode, 8, flags, 9, num_sge, 10, reserved_88, 11,
                 inline_len, 12, reserved_112, 14, index, 16, inv_stag, 20, remote_addr, 24, rkey,
                 32, reserved_288, 36, imm, 40);

/* Follows sg_wqe_hdr in a REG_MR entry. */
struct sg_wqe_reg {
    __le32 stag;     /* new STag: index as allocated, any key octet */
    __le32 access;   /* SG_ACCESS_* */
    __le64 va;       /* Tagged Offset of the first octet */
    __le64 length;   /* octets */
    __le64 pbl_addr; /* bus address of npages 64-bit page addresses, contiguous */
    __le32 npages;
    __u8 page_shift; /* 12..30 */
    __u8 reserved[3];
    __le64 reserved_320;
};
SG_ASSERT_LAYOUT(struct sg_wqe_reg, 48, stag, 0, access, 4, va, 8, length, 16, pbl_addr, 24, npages,
                 32, page_shift, 36, reserved, 37, reserved_320, 40);

/* Follows sg_wqe_hdr in a BIND_MW entry. */
struct sg_wqe_bind {
    __le32 stag;    /* the window's new STag: index as allocated, any key octet */
    __le32 mr_stag; /* region with MW_BIND, of the same PD; length 0: ignored */
    __le32 access;  /* REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC, ZERO_BASED, FLUSH_* */
    __le32 reserved_96;
    __le64 va;     /* first octet, an address of the region */
    __le64 length; /* octets; 0 (type 1 only): the window is unbound */
};
SG_ASSERT_LAYOUT(struct sg_wqe_bind, 32, stag, 0, mr_stag, 4, access, 8, reserved_96, 12, va, 16,
                 length, 24);

/*
 * Follows sg_wqe_hdr in a FETCH_ADD or CMP_SWAP entry; after it, one element of 8 octets (local
 * write) receives the original value.  Values are 64-bit integers; the target is read and written
 * in the byte order of the adapter's machine at the peer (RFC 7306 section 5.2).
 */
struct sg_wqe_atomic {
    __le64 data;         /* value to add; or to swap in */
    __le64 data_mask;    /* FETCH_ADD: a set bit ends a field (0: one of 64 bits); CMP_SWAP: swap */
    __le64 compare;      /* CMP_SWAP, else 0 */
    __le64 compare_mask; /* CMP_SWAP, else 0 */
};
SG_ASSERT_LAYOUT(struct sg_wqe_atomic, 32, data, 0, data_mask, 8, compare, 16, compare_mask, 24);

/*
 * Follows sg_wqe_hdr in a FLUSH or VERIFY entry; rkey and remote_addr name the peer's range.
 * FLUSH: num_sge 0.  VERIFY: num_sge 0 or 1; after this struct come the element, if any, which
 * receives the hash that the peer computed (local write; at least as long as the hash), and
 * then hash_len octets of expected hash.
 */
struct sg_wqe_place {
    __le32 length; /* octets; with SG_FLUSH_REGION ignored */
    __le32 flags;  /* FLUSH: SG_FLUSH_*; VERIFY: 0 */
    __u8 hash_len; /* VERIFY: 0 (nothing expected) or 1..SG_HASH_MAX; FLUSH: 0 */
    __u8 reserved[7];
};
SG_ASSERT_LAYOUT(struct sg_wqe_place, 16, length, 0, flags, 4, hash_len, 8, reserved, 9);

#define SG_FLUSH_PERSISTENT 0x1u /* the draft's flag P */
#define SG_FLUSH_GLOBAL 0x2u     /* global visibility */
#define SG_FLUSH_REGION 0x4u     /* R: all of the region that rkey names (draft -02 only) */
#define SG_HASH_MAX 64           /* octets of the longest hash */

/* Receive queue entry: this header, then num_sge elements. */
struct sg_rqe_hdr {
    __le64 wr_id;
    __le32 index; /* low 32 bits of the producer index of this entry */
    __u8 num_sge; /* 0..SG_RQ_MAX_SGE */
    __u8 reserved[3];
};
SG_ASSERT_LAYOUT(struct sg_rqe_hdr, 16, wr_id, 0, index, 8, num_sge, 12, reserved, 13);

/*
 * Opcodes of completions: X(name, number, verbs), where verbs is the name behind IB_WC_ and
 * IBV_WC_.  Those of the send queue have the number of the entry's opcode, except that SEND_INV
 * completes as SEND and READ_INV as READ.
 */
/* clang-format off */
#define SG_WC_SEND_OPCODES(X) \
    X(SEND, 0x00, SEND) \
    X(WRITE, 0x02, RDMA_WRITE) \
    X(READ, 0x03, RDMA_READ) \
    X(LOCAL_INV, 0x05, LOCAL_INV) \
    X(BIND_MW, 0x07, BIND_MW) \
    X(SEND_IMM, 0x08, SEND) \
    X(WRITE_IMM, 0x09, RDMA_WRITE) \
    X(FETCH_ADD, 0x0a, FETCH_ADD) \
    X(CMP_SWAP, 0x0b, COMP_SWAP) \
    X(FLUSH, 0x0c, FLUSH) \
    X(ATOMIC_WRITE, 0x0e, ATOMIC_WRITE)
/* clang-format on */

enum sg_wc_opcode {
#define X(name, number, verbs) SG_WC_##name = number,
    SG_WC_SEND_OPCODES(X)
#undef X
        SG_WC_REG_MR = 0x06, /* of the kernel's verbs alone */
    SG_WC_VERIFY = 0x0d,     /* not of the verbs; byte_len: octets of the returned hash */
    SG_WC_RECV = 0x80,
    /* imm; byte_len: octets of the Write directly before it, else 0 */
    SG_WC_RECV_IMM = 0x81,
};

/*
 * Completion status: X(name, number, verbs), where verbs is the name behind IB_WC_ and IBV_WC_.
 * The numbers are the contract.
 */
/* clang-format off */
#define SG_WC_STATUSES(X) \
    X(SUCCESS, 0, SUCCESS) \
    X(LOC_LEN_ERR, 1, LOC_LEN_ERR)         /* a local length, sum or element count is too large */ \
    X(LOC_QP_OP_ERR, 2, LOC_QP_OP_ERR)     /* the entry is malformed or not allowed */ \
    X(LOC_PROT_ERR, 3, LOC_PROT_ERR)       /* lkey, bounds or rights of a local element */ \
    X(FLUSH_ERR, 4, WR_FLUSH_ERR)          /* the queue went to error before that */ \
    X(REM_INV_REQ_ERR, 5, REM_INV_REQ_ERR) /* the peer refused the request as malformed */ \
    X(REM_ACCESS_ERR, 6, REM_ACCESS_ERR)   /* the peer refused STag, bounds or rights */ \
    X(REM_OP_ERR, 7, REM_OP_ERR)           /* the peer could not perform it */ \
    X(MW_BIND_ERR, 8, MW_BIND_ERR)         /* REG_MR, LOCAL_INV or bind failed */ \
    X(FATAL_ERR, 9, FATAL_ERR)             /* the peer's Terminate names the layer below (MPA) */ \
    X(GENERAL_ERR, 10, GENERAL_ERR)        /* not used yet */ \
    X(RETRY_EXC_ERR, 11, RETRY_EXC_ERR)    /* there is no peer, or no longer */
/* clang-format on */

enum sg_wc_status {
#define X(name, number, verbs) SG_WC_##name = number,
    SG_WC_STATUSES(X)
#undef X
};

/* sg_cqe.flags_phase (the last 64-bit word holds wr_index, status, opcode and this) */
#define SG_CQE_PHASE 0x01
#define SG_CQE_SOLICITED 0x02
#define SG_CQE_WITH_INV 0x04 /* inv_stag was invalidated by the peer's Send */
#define SG_CQE_WITH_IMM 0x08
#define SG_CQE_RECV 0x10 /* completes a receive: wr_index counts the receive queue */

struct sg_cqe {
    __le64 wr_id;
    __le32 qpn;
    __le32 byte_len; /* receives, Reads and Verifies: octets placed */
    __le32 inv_stag;
    __le32 vendor_err; /* Terminate seen: layer 31:28, type 27:24, code 23:16; 0 if none */
    __le64 imm;
    __le64 timestamp; /* ns, the adapter's clock */
    __le64 reserved_320;
    __le64 reserved_384;
    __le32 wr_index; /* index of the completed entry: all entries up to it are free again */
    __u8 status;     /* enum sg_wc_status */
    __u8 opcode;     /* enum sg_wc_opcode */
    __u8 reserved_496;
    __u8 flags_phase;
};
SG_ASSERT_LAYOUT(struct sg_cqe, 64, wr_id, 0, qpn, 8, byte_len, 12, inv_stag, 16, vendor_err, 20,
                 imm, 24, timestamp, 32, reserved_320, 40, reserved_384, 48, wr_index, 56, status,
                 60, opcode, 61, reserved_496, 62, flags_phase, 63);

/*
 * Completion queue control record, in guest memory, written by the consumer: its read progress.
 * The device reads it only when the ring seems full, so it need not be up to date at every moment.
 */
struct sg_cq_record {
    __le32 consumer_index;
    __le32 reserved[15];
};
SG_ASSERT_LAYOUT(struct sg_cq_record, 64, consumer_index, 0, reserved, 4);

/* Events of the async event queue (eqn 0). */
enum sg_event {
    SG_EV_NONE = 0,
    SG_EV_ADMIN = 1,            /* there are admin completions */
    SG_EV_COMPLETION = 2,       /* completion event queues: cqn has entries */
    SG_EV_CQ_ERROR = 0x10,      /* cqn overran; its queue pairs are in error */
    SG_EV_QP_FATAL = 0x11,      /* qpn */
    SG_EV_QP_REQ_ERR = 0x12,    /* qpn: the peer's request was invalid */
    SG_EV_QP_ACCESS_ERR = 0x13, /* qpn: the peer violated access rights */
    SG_EV_SRQ_ERROR = 0x14,
    SG_EV_SRQ_LIMIT = 0x15,
    SG_EV_QP_LAST_WQE = 0x16, /* qpn, with a shared receive queue, in error: takes no more */
    SG_EV_PORT_UP = 0x20,
    SG_EV_PORT_DOWN = 0x21,
    SG_EV_DEVICE_FATAL = 0x22,
    SG_EV_CM_REQUEST = 0x30,     /* conn (new) on listener; id 0, aux: listener id */
    SG_EV_CM_REPLY = 0x31,       /* conn, qpn: outcome of CONNECT in status */
    SG_EV_CM_ESTABLISHED = 0x32, /* conn, qpn: outcome of ACCEPT in status */
    SG_EV_CM_DISCONNECT = 0x33,  /* conn, qpn: the peer closed or terminated; status */
    /* conn, qpn: TCP is gone, the connection id is free; status.  A request that got no answer: id
     * 0, aux the listener.  Does not follow a failed CM_REPLY. */
    SG_EV_CM_CLOSED = 0x34,
    /* id: STag; pages [page, page + aux) are missing: MAP_PAGES is expected.  conn bit 0: write */
    SG_EV_PAGE_FAULT = 0x40,
};

struct sg_eqe {
    __u8 event;     /* enum sg_event */
    __u8 cm_status; /* enum sg_cm_status (admin.h) of a connection event */
    __le16 reserved_16;
    __le32 id;   /* cqn, qpn or srqn */
    __le32 conn; /* connection id of a CM event */
    __le32 aux;
    __le64 page; /* PAGE_FAULT, else 0 */
    __le32 reserved_192;
    __u8 reserved_224[3];
    __u8 phase; /* bit 0 */
};
SG_ASSERT_LAYOUT(struct sg_eqe, 32, event, 0, cm_status, 1, reserved_16, 2, id, 4, conn, 8, aux, 12,
                 page, 16, reserved_192, 24, reserved_224, 28, phase, 31);

#endif
