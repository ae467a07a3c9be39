/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn hardware contract: the admin queue.
 *
 * Manual: docs/manual/admin.md.  The driver fills a slot of the submission ring, then writes the
 * free-running producer index to SG_REG_ADMIN_DB.  The device executes in order and writes one
 * entry of the completion ring per command (phase bit as in io.h), then raises SG_EV_ADMIN on the
 * async event queue if that is armed; else at its next arming, if SG_REG_ADMIN_CI does not cover
 * the completions by then.  Commands that take time (CONNECT, ...) complete when they are
 * accepted; their outcome is an async event.
 */
#ifndef STAGHORN_ADMIN_H
#define STAGHORN_ADMIN_H

#include "stats.h"
#include "types.h"

enum sg_admin_opcode {
    SG_ADMIN_NOP = 0x00,
    SG_ADMIN_QUERY_CAPS = 0x01,
    SG_ADMIN_QUERY_STATS = 0x02,
    SG_ADMIN_CREATE_EQ = 0x03,
    SG_ADMIN_DESTROY_EQ = 0x04,
    SG_ADMIN_SET_ADDR = 0x05,
    SG_ADMIN_SET_PORT = 0x06,
    SG_ADMIN_QUERY_QP_STATS = 0x07, /* sg_cmd_query, id: qpn; struct sg_qp_stats */
    SG_ADMIN_QUERY_MR_STATS = 0x08, /* sg_cmd_query, id: STag; struct sg_mr_stats */
    SG_ADMIN_CREATE_PD = 0x10,
    SG_ADMIN_DESTROY_PD = 0x11,
    SG_ADMIN_REG_MR = 0x12,
    SG_ADMIN_DEREG_MR = 0x13,
    SG_ADMIN_ALLOC_MR = 0x14, /* for fast registration */
    SG_ADMIN_ALLOC_MW = 0x15,
    SG_ADMIN_DEALLOC_MW = 0x16, /* id: the STag as allocated or last bound */
    SG_ADMIN_MAP_PAGES = 0x17,  /* on-demand paging: adds or removes pages, or fails accesses */
    SG_ADMIN_CREATE_CQ = 0x18,
    SG_ADMIN_DESTROY_CQ = 0x19,
    SG_ADMIN_RESIZE_CQ = 0x1a,
    SG_ADMIN_MODIFY_CQ = 0x1b, /* moderation */
    SG_ADMIN_MODIFY_MR = 0x1c, /* rights and domain; the STag stays */
    SG_ADMIN_CREATE_QP = 0x20,
    SG_ADMIN_MODIFY_QP = 0x21,
    SG_ADMIN_QUERY_QP = 0x22,
    SG_ADMIN_DESTROY_QP = 0x23,
    SG_ADMIN_CREATE_SRQ = 0x28,
    SG_ADMIN_MODIFY_SRQ = 0x29,
    SG_ADMIN_DESTROY_SRQ = 0x2a, /* EBUSY while queue pairs use it */
    SG_ADMIN_QUERY_SRQ = 0x2b,
    SG_ADMIN_RESIZE_SRQ = 0x2c, /* another ring; SG_FEATURE_SRQ_RESIZE */
    SG_ADMIN_LISTEN = 0x30,
    SG_ADMIN_UNLISTEN = 0x31,
    SG_ADMIN_CONNECT = 0x32,
    SG_ADMIN_ACCEPT = 0x33,
    SG_ADMIN_REJECT = 0x34,
    SG_ADMIN_CM_DATA = 0x35, /* read the data of a connection event */
    /* The adapter's flash image (docs/manual/firmware.md). */
    SG_ADMIN_FLASH_INFO = 0x38,   /* sg_cmd_query; struct sg_flash_info */
    SG_ADMIN_FLASH_READ = 0x39,   /* sg_cmd_flash: octets of the chip */
    SG_ADMIN_FLASH_WRITE = 0x3a,  /* sg_cmd_flash: octets of the update */
    SG_ADMIN_FLASH_COMMIT = 0x3b, /* sg_cmd_flash, len: of the whole update */
    SG_ADMIN_OPCODE_COUNT = 0x40,
};

/* Command status, also of the test registers. */
enum sg_status {
    SG_OK = 0,
    SG_EOPCODE = 1,    /* opcode unknown or reserved */
    SG_EINVAL = 2,     /* a field is out of range */
    SG_ENOENT = 3,     /* no such object */
    SG_ENOMEM = 4,     /* no more objects of this kind, or no memory */
    SG_EBUSY = 5,      /* other objects still refer to it */
    SG_EFAULT = 6,     /* DMA failed */
    SG_ESTATE = 7,     /* not in this state */
    SG_EADDR = 8,      /* address in use, or not one of the port's */
    SG_EPERM = 9,      /* belongs to another user context */
    SG_ENOTSUP = 10,   /* valid, but not supported by this adapter */
    SG_ENOTPMEM = 11,  /* REG_MR: flush to persistence, but not all of it is persistent memory */
    SG_ENOVERIFY = 12, /* REG_MR: verify, but the memory or the hash algorithm does not allow it */
};

/*
 * Access rights of an MR, and their limits for a QP.  The peer's access is checked in the order
 * STag (index, key, validity), association (PD), rights (of MR and QP), wrap of the Tagged Offset,
 * bounds.
 */
#define SG_ACCESS_LOCAL_WRITE 0x001u
#define SG_ACCESS_REMOTE_READ 0x002u
#define SG_ACCESS_REMOTE_WRITE 0x004u
#define SG_ACCESS_REMOTE_ATOMIC 0x008u /* RFC 7306 */
#define SG_ACCESS_MW_BIND 0x010u       /* memory windows may be bound to the region */
#define SG_ACCESS_FLUSH_GLOBAL 0x020u  /* draft-talpey-rdma-commit section 2 */
#define SG_ACCESS_FLUSH_PERSISTENT 0x040u
#define SG_ACCESS_VERIFY 0x080u
#define SG_ACCESS_ZERO_BASED 0x100u

enum sg_admin_limits {
    SG_ADMIN_CMD_SIZE = 128,
    SG_ADMIN_RSP_SIZE = 64,
    SG_PRIVATE_DATA_MAX = 512, /* RFC 5044 section 7.1.1; with MPA revision 2, four fewer */
    SG_PORT_ADDR_MAX = 16,     /* addresses of the port; beyond that SET_ADDR returns ENOMEM */
};

/* First 8 octets of each command. */
struct sg_admin_hdr {
    __u8 opcode;
    __u8 reserved_8;
    __le16 cookie; /* returned in the completion */
    __le32 reserved_32;
};
SG_ASSERT_LAYOUT(struct sg_admin_hdr, 8, opcode, 0, reserved_8, 1, cookie, 2, reserved_32, 4);

/*
 * Memory described by a page list.  levels 0: addr is the address of the first page and the
 * memory is contiguous; 1: addr is the address of an array of count 64-bit page addresses;
 * 2: addr is the address of an array of 64-bit addresses of 4 KiB pages that hold 512 each.
 * Every page address is aligned to the page size; the device reads the list once.
 */
struct sg_page_list {
    __le64 addr;
    __le32 count;    /* pages */
    __u8 levels;     /* 0..2 */
    __u8 page_shift; /* 12..30; queues: 12 */
    __le16 reserved_112;
};
SG_ASSERT_LAYOUT(struct sg_page_list, 16, addr, 0, count, 8, levels, 12, page_shift, 13,
                 reserved_112, 14);

/* Internet address and TCP port. */
struct sg_sockaddr {
    __u8 family; /* 4 or 6 */
    /* Local address of CONNECT, LISTEN: type of service or traffic class of packets; else 0. */
    __u8 tos;
    __be16 port; /* network order */
    __u8 ip[16]; /* network order; IPv4 in the first four octets */
    /*
     * Link-local IPv6 addresses may be the same on several links: the 802.1Q identifier of the
     * link, 0: none.  Ignored for other addresses, and 0 in answers.
     */
    __le16 vlan;
    __le16 reserved_176;
};
SG_ASSERT_LAYOUT(struct sg_sockaddr, 24, family, 0, tos, 1, port, 2, ip, 4, vlan, 20, reserved_176,
                 22);

struct sg_cmd_query { /* QUERY_*STATS, QUERY_CAPS, CM_DATA, FLASH_INFO */
    struct sg_admin_hdr hdr;
    __le64 out_addr; /* address of the answer */
    __le32 out_len;  /* octets of room; the answer is truncated to this */
    __le32 id;       /* CM_DATA: connection id; QP and MR statistics: qpn, STag; else 0 */
};
SG_ASSERT_LAYOUT(struct sg_cmd_query, 24, hdr, 0, out_addr, 8, out_len, 16, id, 20);

struct sg_cmd_create_eq {
    struct sg_admin_hdr hdr;
    __le64 base;    /* contiguous, 4 KiB aligned, zeroed */
    __le32 entries; /* power of two, 64..SG_EQ_SIZE_MAX */
    __le32 eqn;     /* 1..SG_EQ_COUNT-1, chosen by the driver */
    __le32 vector;  /* MSI-X vector */
    __le32 reserved_224;
};
SG_ASSERT_LAYOUT(struct sg_cmd_create_eq, 32, hdr, 0, base, 8, entries, 16, eqn, 20, vector, 24,
                 reserved_224, 28);

struct sg_cmd_id { /* DESTROY_*, DEREG_MR and DEALLOC_MW (STag), UNLISTEN, QUERY_QP, QUERY_SRQ */
    struct sg_admin_hdr hdr;
    __le32 id;
};
SG_ASSERT_LAYOUT(struct sg_cmd_id, 12, hdr, 0, id, 8);

enum sg_set_addr_op { SG_ADDR_ADD = 1, SG_ADDR_DEL = 2, SG_ADDR_CLEAR = 3 };

struct sg_cmd_set_addr {
    struct sg_admin_hdr hdr;
    struct sg_sockaddr addr; /* port and vlan ignored */
    __u8 op;                 /* enum sg_set_addr_op */
    __u8 prefix_len;
    __le16 vlan; /* 802.1Q identifier 1..4094 of frames to and from addr; 0: none */
    __u8 reserved_288[4];
    __u8 gateway[16]; /* all zero: none; else same family */
};
SG_ASSERT_LAYOUT(struct sg_cmd_set_addr, 56, hdr, 0, addr, 8, op, 32, prefix_len, 33, vlan, 34,
                 reserved_288, 36, gateway, 40);

struct sg_cmd_set_port {
    struct sg_admin_hdr hdr;
    __le32 mtu; /* octets of IP packet, 576..SG_REG_LINK_MTU */
    __le32 reserved;
};
SG_ASSERT_LAYOUT(struct sg_cmd_set_port, 16, hdr, 0, mtu, 8, reserved, 12);

struct sg_cmd_reg_mr {
    struct sg_admin_hdr hdr;
    __le32 pd;
    __le32 access;             /* SG_ACCESS_* */
    __le64 va;                 /* Tagged Offset of the first octet */
    __le64 length;             /* octets; with WHOLE_MEMORY ignored */
    struct sg_page_list pages; /* the first page contains va, at va's offset within a page */
    __u8 flags;                /* SG_MR_* */
    __u8 key; /* low octet of the STag; 0: the device chooses a random one, not 0 */
    /* Registration for Verify and Flush (draft-talpey-rdma-commit, local semantics). */
    __u8 hash_alg;     /* enum sg_hash; with SG_ACCESS_VERIFY not NONE, else NONE */
    __u8 hash_key_len; /* HMAC: 1..SG_HASH_KEY_MAX; else 0 */
    __u8 mem_type;     /* enum sg_mem_type: the type of memory that the consumer claims */
    __u8 mem_mode;     /* enum sg_mem_mode */
    __u8 reserved_432[2];
    __u8 hash_key[64];
};
SG_ASSERT_LAYOUT(struct sg_cmd_reg_mr, 120, hdr, 0, pd, 8, access, 12, va, 16, length, 24, pages,
                 32, flags, 48, key, 49, hash_alg, 50, hash_key_len, 51, mem_type, 52, mem_mode, 53,
                 reserved_432, 54, hash_key, 56);
/*
 * Address space of the PCI function, no page list: for local elements of QPs with SG_QP_KERNEL;
 * remote rights and ZERO_BASED are EINVAL.
 */
#define SG_MR_WHOLE_MEMORY 0x01
/*
 * On-demand paging (SG_FEATURE_ODP): pages.addr 0, pages.levels 0, pages.count pages of
 * pages.page_shift (count 0: as many as needed), all of them missing; length up to 2^63.  An access
 * to a missing page raises SG_EV_PAGE_FAULT and waits for MAP_PAGES.  Not with VERIFY.
 */
#define SG_MR_ODP 0x02

/* For a region of REG_MR without hash and windows: changes what mask names. */
struct sg_cmd_modify_mr {
    struct sg_admin_hdr hdr;
    __le32 stag;
    __le32 mask; /* SG_MR_MOD_*, at least one */
    __le32 pd;
    __le32 access; /* ZERO_BASED unchanged; not VERIFY */
};
SG_ASSERT_LAYOUT(struct sg_cmd_modify_mr, 24, hdr, 0, stag, 8, mask, 12, pd, 16, access, 20);
#define SG_MR_MOD_PD 0x1
#define SG_MR_MOD_ACCESS 0x2

/* A reversible hash (the content can be guessed or computed from it) also needs REMOTE_READ. */
enum sg_hash {
    SG_HASH_NONE = 0,
    SG_HASH_CRC32C = 1,      /* 4 octets, as MPA sends it; reversible */
    SG_HASH_SHA256 = 2,      /* 32 octets */
    SG_HASH_SHA512 = 3,      /* 64 octets */
    SG_HASH_HMAC_SHA256 = 4, /* 32 octets, with hash_key */
    SG_HASH_COUNT,
};
#define SG_HASH_KEY_MAX 64

/* A wrong claim is refused with ENOTPMEM; ANY claims nothing. */
enum sg_mem_type { SG_MEM_TYPE_ANY = 0, SG_MEM_TYPE_VOLATILE = 1, SG_MEM_TYPE_PERSISTENT = 2 };

/* The path of Writes to persistent memory on the target (DDIO); Flush keeps its promise. */
enum sg_mem_mode {
    SG_MEM_MODE_DEFAULT = 0,
    SG_MEM_MODE_CACHED = 1, /* may allocate in the CPU's cache (DDIO) */
    SG_MEM_MODE_DIRECT = 2, /* bypasses the cache */
};

struct sg_cmd_alloc_mr {
    struct sg_admin_hdr hdr;
    __le32 pd;
    __le32 max_pages;
    __u8 key; /* as in REG_MR */
    __u8 reserved_136[7];
};
SG_ASSERT_LAYOUT(struct sg_cmd_alloc_mr, 24, hdr, 0, pd, 8, max_pages, 12, key, 16, reserved_136,
                 17);

struct sg_cmd_alloc_mw {
    struct sg_admin_hdr hdr;
    __le32 pd;
    __u8 type; /* enum sg_mw_type */
    __u8 key;  /* as in REG_MR */
    __u8 reserved_112[2];
};
SG_ASSERT_LAYOUT(struct sg_cmd_alloc_mw, 16, hdr, 0, pd, 8, type, 12, key, 13, reserved_112, 14);

/* 1: bound by any QP of its PD, used by every QP of the PD.  2: used by the QP that bound it. */
enum sg_mw_type { SG_MW_TYPE_1 = 1, SG_MW_TYPE_2 = 2 };

struct sg_cmd_map_pages {
    struct sg_admin_hdr hdr;
    __le32 stag;
    __le32 op;         /* enum sg_map_op */
    __le64 first_page; /* index within the region */
    __le64 count;      /* pages */
    __le64 list;       /* MAP: bus address of count 64-bit page addresses, bit 0: writable */
};
SG_ASSERT_LAYOUT(struct sg_cmd_map_pages, 40, hdr, 0, stag, 8, op, 12, first_page, 16, count, 24,
                 list, 32);

/* FAIL: accesses that wait for these pages get a protection error. */
enum sg_map_op { SG_MAP_PAGES = 1, SG_UNMAP_PAGES = 2, SG_MAP_FAIL = 3 };

struct sg_cmd_create_cq {
    struct sg_admin_hdr hdr;
    __le32 entries; /* power of two */
    __le32 eqn;     /* event queue for its events: 1..SG_EQ_COUNT-1 */
    __le32 uar;     /* doorbell page */
    __le32 reserved_160;
    struct sg_page_list pages; /* zeroed */
    __le64 record;             /* bus address of struct sg_cq_record, 64 octet aligned */
};
SG_ASSERT_LAYOUT(struct sg_cmd_create_cq, 48, hdr, 0, entries, 8, eqn, 12, uar, 16, reserved_160,
                 20, pages, 24, record, 40);

/*
 * After its completion the device uses the new ring and record, beginning with index 0 and phase 1.
 * data[0] of the answer is the producer index at which it left the old ring, which the consumer
 * empties first.  The unread entries must fit: else EINVAL, and nothing changes.
 */
struct sg_cmd_resize_cq {
    struct sg_admin_hdr hdr;
    __le32 cqn;
    __le32 entries;            /* power of two */
    struct sg_page_list pages; /* zeroed */
    __le64 record;
};
SG_ASSERT_LAYOUT(struct sg_cmd_resize_cq, 40, hdr, 0, cqn, 8, entries, 12, pages, 16, record, 32);

/*
 * Moderation: an armed CQ raises its event after count completions, or period microseconds after
 * the first unreported one.  count 0 or 1, or period 0: at once.
 */
struct sg_cmd_modify_cq {
    struct sg_admin_hdr hdr;
    __le32 cqn;
    __le16 count;
    __le16 period;
};
SG_ASSERT_LAYOUT(struct sg_cmd_modify_cq, 16, hdr, 0, cqn, 8, count, 12, period, 14);

/*
 * A shared receive queue.  A QP takes the oldest entry when the first segment of a message arrives;
 * entries complete in any order, so wr_index of their completions is the number of completed
 * entries, not a position: the consumer may have at most 'entries' posted and not complete.
 */
struct sg_cmd_create_srq {
    struct sg_admin_hdr hdr;
    __le32 pd;
    __le32 uar;
    __le32 entries; /* power of two, 2..caps.max_srq_wr */
    __le16 stride;  /* power of two, SG_WQE_STRIDE_MIN..MAX */
    __u8 max_sge;
    __u8 reserved_184;
    __le32 limit; /* as in MODIFY_SRQ */
    __le32 reserved_224;
    struct sg_page_list pages;
};
SG_ASSERT_LAYOUT(struct sg_cmd_create_srq, 48, hdr, 0, pd, 8, uar, 12, entries, 16, stride, 20,
                 max_sge, 22, reserved_184, 23, limit, 24, reserved_224, 28, pages, 32);

/*
 * limit: when fewer entries than this are left, SG_EV_SRQ_LIMIT is raised once and the limit
 * becomes 0 (not armed).
 */
struct sg_cmd_modify_srq {
    struct sg_admin_hdr hdr;
    __le32 srqn;
    __le32 limit;
};
SG_ASSERT_LAYOUT(struct sg_cmd_modify_srq, 16, hdr, 0, srqn, 8, limit, 12);

/*
 * After its completion the device reads entries from the new ring, of the same stride.  Indices
 * continue: the driver puts entries that are posted and not known to be complete into both rings
 * beforehand, and those posted meanwhile as well.  data[0] of the answer is the first index read
 * from the new ring.  EINVAL, without effect: the posted entries or the limit exceed the new size.
 */
struct sg_cmd_resize_srq {
    struct sg_admin_hdr hdr;
    __le32 srqn;
    __le32 entries; /* power of two, 2..caps.max_srq_wr */
    __le32 flags;   /* SG_RESIZE_SRQ_* */
    __le32 limit;   /* with SG_RESIZE_SRQ_LIMIT, as in MODIFY_SRQ; else the limit stays */
    struct sg_page_list pages;
};
SG_ASSERT_LAYOUT(struct sg_cmd_resize_srq, 40, hdr, 0, srqn, 8, entries, 12, flags, 16, limit, 20,
                 pages, 24);
#define SG_RESIZE_SRQ_LIMIT 0x1

struct sg_cmd_create_qp {
    struct sg_admin_hdr hdr;
    __le32 pd;
    __le32 send_cqn; /* CQs of the same doorbell page, or of page 0 */
    __le32 recv_cqn;
    __le32 srqn; /* with SG_QP_SRQ: of the same PD; rq_entries, rq_stride, rq_pages 0 */
    __le32 uar;
    __le32 sq_entries; /* power of two, 2..caps */
    __le32 rq_entries; /* power of two, 2..caps */
    __le16 sq_stride;  /* power of two, SG_WQE_STRIDE_MIN..MAX */
    __le16 rq_stride;
    __u8 sq_max_sge;
    __u8 rq_max_sge;
    __le16 max_inline;
    __le32 access; /* remote rights that this QP can grant */
    struct sg_page_list sq_pages;
    struct sg_page_list rq_pages;
    __le32 flags; /* SG_QP_* */
    __le32 reserved_640;
};
SG_ASSERT_LAYOUT(struct sg_cmd_create_qp, 88, hdr, 0, pd, 8, send_cqn, 12, recv_cqn, 16, srqn, 20,
                 uar, 24, sq_entries, 28, rq_entries, 32, sq_stride, 36, rq_stride, 38, sq_max_sge,
                 40, rq_max_sge, 41, max_inline, 42, access, 44, sq_pages, 48, rq_pages, 64, flags,
                 80, reserved_640, 84);
#define SG_QP_SIGNAL_ALL 0x01 /* every send entry is signaled */
#define SG_QP_KERNEL 0x02     /* may use REG_MR, LOCAL_INV and STag 0 as local key */
#define SG_QP_SRQ 0x04        /* receives from srqn */

enum sg_qp_state {
    SG_QP_IDLE = 0,
    SG_QP_RTS = 1,
    SG_QP_CLOSING = 2,
    SG_QP_TERMINATE = 3,
    SG_QP_ERROR = 4,
};

struct sg_cmd_modify_qp {
    struct sg_admin_hdr hdr;
    __le32 qpn;
    __le32 mask;  /* SG_QP_MOD_* */
    __le32 state; /* enum sg_qp_state: CLOSING, ERROR, IDLE (from ERROR, unconnected, flushed) */
    __le32 access;
    __u8 min_rnr_timer; /* 0..31, in InfiniBand's encoding */
    __u8 rnr_retry;     /* 0..7; 7: for ever */
    __le16 reserved_208;
};
SG_ASSERT_LAYOUT(struct sg_cmd_modify_qp, 28, hdr, 0, qpn, 8, mask, 12, state, 16, access, 20,
                 min_rnr_timer, 24, rnr_retry, 25, reserved_208, 26);
#define SG_QP_MOD_STATE 0x1
#define SG_QP_MOD_ACCESS 0x2
#define SG_QP_MOD_UNREACHABLE 0x4 /* with STATE ERROR: the oldest send entry gets RETRY_EXC_ERR */
/* How long a message may wait for a receive, if waiting is on; the initial values are 0 and 7. */
#define SG_QP_MOD_RNR_TIMER 0x8
#define SG_QP_MOD_RNR_RETRY 0x10
#define SG_QP_MOD_KNOWN 0x1fu
#define SG_RNR_TIMER_MAX 31
#define SG_RNR_RETRY_MAX 7

struct sg_cmd_listen {
    struct sg_admin_hdr hdr;
    struct sg_sockaddr local; /* all-zero ip: every address of the port */
    __le32 backlog;           /* connections not yet accepted or rejected, 1..1024 */
    __le32 reserved_288;
};
SG_ASSERT_LAYOUT(struct sg_cmd_listen, 40, hdr, 0, local, 8, backlog, 32, reserved_288, 36);

/* CONNECT and ACCEPT and REJECT. */
struct sg_cmd_connect {
    struct sg_admin_hdr hdr;
    __le32 qpn;                /* CONNECT, ACCEPT */
    __le32 conn;               /* ACCEPT, REJECT: the connection id of SG_EV_CM_REQUEST */
    struct sg_sockaddr local;  /* CONNECT; port 0: any */
    struct sg_sockaddr remote; /* CONNECT */
    __le64 pdata_addr;         /* private data */
    __le16 pdata_len;          /* 0..SG_PRIVATE_DATA_MAX, less 4 for MPA revision 2 */
    __le16 ird;
    __le16 ord;
    __le16 flags; /* CONNECT, ACCEPT: SG_CONNECT_* */
    /*
     * CONNECT, ACCEPT: the next hop for packets to the peer, network order, IPv4 in
     * the first four octets.  All zero: CONNECT uses prefix and gateway of the local address;
     * ACCEPT keeps the neighbour that the peer's packets come from, if that is beyond the
     * prefix.
     */
    __u8 next_hop[16];
};
SG_ASSERT_LAYOUT(struct sg_cmd_connect, 96, hdr, 0, qpn, 8, conn, 12, local, 16, remote, 40,
                 pdata_addr, 64, pdata_len, 72, ird, 74, ord, 76, flags, 78, next_hop, 80);
/*
 * When the peer leaves, or TCP is lost, and no send entry is posted: the QP stays in RTS, its
 * receives stay posted, and the next send entry gets RETRY_EXC_ERR and puts the QP in ERROR.
 * With a send entry posted the QP goes to ERROR at once, and the oldest one gets RETRY_EXC_ERR.
 * If setup fails after ACCEPT the QP returns to IDLE, with everything still posted.
 */
#define SG_CONNECT_STAY 0x1
/*
 * A send entry completes when the peer's adapter has placed or received its message, as on
 * InfiniBand.  Without this flag, when it was passed to TCP (RFC 5040 section 5.5).
 */
#define SG_CONNECT_CONFIRM 0x2

/*
 * The flash.  An adapter without one returns ENOTSUP.  An update is written from offset 0 on
 * without gaps (else ESTATE); offset 0 begins a new update and erases the slot that is not
 * running.  COMMIT checks all of it; EINVAL: refused, data[0] of the answer is an enum
 * sg_flash_reason.  The new firmware runs after the next reset of the function (CTRL.RESET, FLR,
 * machine).
 */
struct sg_cmd_flash {
    struct sg_admin_hdr hdr;
    __le64 addr;   /* READ, WRITE: bus address of the octets */
    __le32 len;    /* 1..SG_FLASH_CHUNK_MAX (flash.h) */
    __le32 offset; /* READ: in the chip; WRITE: in the firmware */
};
SG_ASSERT_LAYOUT(struct sg_cmd_flash, 24, hdr, 0, addr, 8, len, 16, offset, 20);

struct sg_flash_slot_info {
    __u8 version[16]; /* empty if not valid */
    __u8 profile[16];
    __le32 sequence;
    __u8 reason; /* enum sg_flash_reason; 0: valid */
    __u8 reserved_296[3];
};
SG_ASSERT_LAYOUT(struct sg_flash_slot_info, 40, version, 0, profile, 16, sequence, 32, reason, 36,
                 reserved_296, 37);

/* Answer of FLASH_INFO. */
struct sg_flash_info {
    __u8 running; /* slot */
    __u8 stored;  /* slot that the next reset starts */
    __u8 reserved_16[2];
    __le32 fw_size_max;
    struct sg_flash_slot_info slot[2];
    __u8 part[16];
    __u8 serial[24];
};
SG_ASSERT_LAYOUT(struct sg_flash_info, 128, running, 0, stored, 1, reserved_16, 2, fw_size_max, 4,
                 slot, 8, part, 88, serial, 104);

/* Outcome of a connection event. */
enum sg_cm_status {
    SG_CM_OK = 0,
    SG_CM_REJECTED = 1, /* by the peer's ULP */
    SG_CM_REFUSED = 2,  /* no listener there */
    SG_CM_TIMEOUT = 3,
    SG_CM_RESET = 4,       /* connection reset or lost */
    SG_CM_PROTOCOL = 5,    /* malformed MPA frame or no common parameters */
    SG_CM_CLOSED = 6,      /* graceful */
    SG_CM_TERMINATED = 7,  /* by Terminate, sent or received */
    SG_CM_UNREACHABLE = 8, /* no route or address */
    SG_CM_NORES = 9,       /* no more connections, or no memory */
};

/* Answer of CM_DATA: describes the connection, then pdata_len octets of private data. */
struct sg_cm_data {
    struct sg_sockaddr local;
    struct sg_sockaddr remote;
    __le16 ird; /* the peer's offer (request), or as agreed */
    __le16 ord;
    __le16 pdata_len;
    __u8 mpa_rev; /* 0: a wire without MPA */
    __u8 reserved;
    __le16 peer_ird; /* from the peer's frame; 0: it had none */
    __le16 peer_ord;
    __u8 pdata[SG_PRIVATE_DATA_MAX];
};
SG_ASSERT_LAYOUT(struct sg_cm_data, 572, local, 0, remote, 24, ird, 48, ord, 50, pdata_len, 52,
                 mpa_rev, 54, reserved, 55, peer_ird, 56, peer_ord, 58, pdata, 60);

/* Admin completion. */
struct sg_admin_rsp {
    __le32 id; /* new object's number or STag; CONNECT: connection id; LISTEN: listener id */
    /*
     * QUERY_QP: [0] state, [1] ird, [2] ord, [3] sq depth in use, [4] rq same.
     * QUERY_SRQ: [0] entries left, [1] limit, [2] low half of the count of entries completed.
     */
    __le32 data[13];
    __le32 reserved_448;
    __le16 cookie;
    __u8 status; /* enum sg_status */
    __u8 phase;  /* bit 0; the last 64-bit word is written last */
};
SG_ASSERT_LAYOUT(struct sg_admin_rsp, 64, id, 0, data, 4, reserved_448, 56, cookie, 60, status, 62,
                 phase, 63);
SG_ASSERT_SIZE(struct sg_admin_rsp, SG_ADMIN_RSP_SIZE);

/* Answer of QUERY_CAPS. */
struct sg_caps {
    __le32 version;  /* SG_VERSION */
    __le32 features; /* SG_FEATURE_* */
    __le32 max_pd;
    __le32 max_mr;
    __le32 max_cq;
    __le32 max_cqe;
    __le32 max_qp;
    __le32 max_qp_wr;
    __le32 max_sq_sge;
    __le32 max_rq_sge;
    __le32 max_inline;
    __le32 max_ird;
    __le32 max_ord;
    __le32 max_fr_pages; /* pages of a fast registration; 0: none */
    __le32 max_listeners;
    __le32 max_conns;
    __le64 max_mr_size;
    __le64 page_size_mask; /* page sizes that REG_MR accepts, bit n: 2^n */
    __le32 max_srq;
    __le32 max_srq_wr;
    __le32 max_mw;
    __le32 num_uar; /* doorbell pages, page 0 included */
    __le32 num_eq;  /* async event queue included */
    __le32 max_private_data;
    __u8 fw_version[16]; /* text, zero padded */
    __le32 hash_mask;    /* hash algorithms for Verify, bit n: enum sg_hash n */
    __le32 max_srq_sge;
    __le32 wire; /* enum sg_wire_id */
    __le32 reserved[9];
};
SG_ASSERT_LAYOUT(struct sg_caps, 168, version, 0, features, 4, max_pd, 8, max_mr, 12, max_cq, 16,
                 max_cqe, 20, max_qp, 24, max_qp_wr, 28, max_sq_sge, 32, max_rq_sge, 36, max_inline,
                 40, max_ird, 44, max_ord, 48, max_fr_pages, 52, max_listeners, 56, max_conns, 60,
                 max_mr_size, 64, page_size_mask, 72, max_srq, 80, max_srq_wr, 84, max_mw, 88,
                 num_uar, 92, num_eq, 96, max_private_data, 100, fw_version, 104, hash_mask, 120,
                 max_srq_sge, 124, wire, 128, reserved, 132);

#define SG_FEATURE_MPA_V2 0x01u
#define SG_FEATURE_FAST_REG 0x02u
#define SG_FEATURE_READ_INV 0x04u
#define SG_FEATURE_IPV6 0x08u
#define SG_FEATURE_SRQ 0x10u
#define SG_FEATURE_FLUSH 0x20u
#define SG_FEATURE_ATOMICS 0x40u
#define SG_FEATURE_VERIFY 0x80u
#define SG_FEATURE_ATOMIC_WRITE 0x100u
#define SG_FEATURE_FLUSH_PERSISTENT 0x200u /* the machine has a persistence domain */
#define SG_FEATURE_FLUSH_REGION 0x400u     /* SG_FLUSH_REGION: draft -02; without it -01 */
#define SG_FEATURE_IMM 0x800u              /* SG_WR_SEND_IMM, SG_WR_WRITE_IMM (RFC 7306) */
#define SG_FEATURE_MW 0x1000u              /* memory windows of both types */
#define SG_FEATURE_ODP 0x2000u             /* SG_MR_ODP */
#define SG_FEATURE_VLAN 0x4000u            /* sg_cmd_set_addr.vlan */
#define SG_FEATURE_SRQ_RESIZE 0x8000u
#define SG_FEATURE_SEND_INV 0x10000u /* SG_WR_SEND_INV */

/* The format of messages in TCP. */
enum sg_wire_id {
    SG_WIRE_ID_IWARP = 0,
    SG_WIRE_ID_RDMA_TCP_2000 = 1, /* peers report no errors: SG_CM_TERMINATED does not occur */
};

#endif
