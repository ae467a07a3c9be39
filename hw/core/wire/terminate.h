/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Terminate message (RFC 5040 section 4.8) and the one table that says
 * which layer, type and code each error condition has.
 *
 *   0  0xf0 layer, 0x0f error type
 *   1  error code
 *   2  0x80 M: segment length valid, 0x40 D: DDP header, 0x20 R: RDMAP header
 *   3  0
 *   4  DDP segment length (2)            only with M or D
 *   6  terminated DDP header (14 or 18)  only with D
 *   .. terminated Read Request (28)      only with R
 */
#ifndef SG_WIRE_TERMINATE_H
#define SG_WIRE_TERMINATE_H

#include "wire/rdmap.h"

enum sg_term_limits {
    SG_TERM_CTRL_LEN = 4,
    SG_TERM_SEGLEN_LEN = 2,
    SG_TERM_MAX = SG_TERM_CTRL_LEN + SG_TERM_SEGLEN_LEN + SG_DDP_HDR_MAX + SG_READ_REQ_LEN,
};

enum sg_term_layer {
    SG_TERM_RDMA = 0,
    SG_TERM_DDP = 1,
    SG_TERM_LLP = 2, /* MPA */
};

/* Error types of each layer. */
enum sg_term_type {
    SG_TERM_RDMA_LOCAL = 0,
    SG_TERM_RDMA_PROTECTION = 1,
    SG_TERM_RDMA_OPERATION = 2,
    SG_TERM_DDP_LOCAL = 0,
    SG_TERM_DDP_TAGGED = 1,
    SG_TERM_DDP_UNTAGGED = 2,
    SG_TERM_LLP_MPA = 0,
    SG_TERM_LLP_MPA_ALT = 3, /* sent by some adapters for MPA errors */
};

struct sg_term {
    uint8_t layer; /* 0..15, enum sg_term_layer if valid */
    uint8_t etype; /* 0..15 */
    uint8_t code;
    bool has_len;     /* M */
    bool has_ddp;     /* D */
    bool has_rdma;    /* R */
    uint16_t seg_len; /* DDP header and payload octets of the failing segment */
    struct sg_ddp_hdr ddp;
    struct sg_read_req read;

    /* Filled in by parsing only. */
    bool truncated; /* a header that M, D or R announces is not all there */
    bool swapped;   /* little-endian layout of Linux siw was recognised */
};

/*
 * Parse the payload of a Terminate message (without its own DDP header).
 * SG_WIRE_SHORT when even the first four octets are missing.  A missing or
 * cut header clears its has_ flag and sets truncated: the message still ends
 * the stream.  Octets past the announced headers are ignored.
 */
enum sg_wire_err sg_term_parse(struct sg_span in, struct sg_term *out);

/* Payload octets: 4, 20, 24, 48 or 52 (and 6 with M alone); at most SG_TERM_MAX. */
size_t sg_term_len(const struct sg_term *t);

/* R needs D and D needs M (asserted). */
size_t sg_term_emit(const struct sg_term *t, uint8_t *buf);

/*
 * Everything that ends a stream with a Terminate.  Each has a row with its
 * layer, type and code and with the headers that go along.
 */
enum sg_term_cond {
    /* RDMAP: RFC 5040 sections 4.8 and 7 */
    SG_TERM_LOCAL_CATASTROPHE, /* local failure; also errors of our own requests */
    SG_TERM_READ_BAD_STAG,     /* source of a Read Request, target of other requests */
    SG_TERM_READ_BOUNDS,
    SG_TERM_READ_ACCESS,
    SG_TERM_READ_NOT_ASSOCIATED,
    SG_TERM_READ_WRAP,
    SG_TERM_INV_NOT_ASSOCIATED, /* STag to invalidate: of another PD or stream */
    SG_TERM_INV_BAD_STAG,       /* no such STag, or shared, or not allowed here */
    SG_TERM_PROT_UNSPECIFIED,
    SG_TERM_RDMAP_VERSION,
    SG_TERM_OPCODE,         /* unknown, or not expected in this state */
    SG_TERM_OPCODE_T_OR_QN, /* T flag or queue does not fit the opcode */
    SG_TERM_STREAM_CATASTROPHE,
    SG_TERM_GLOBAL_CATASTROPHE,
    SG_TERM_OP_INV_FAILED, /* invalidation failed, as an operation error */
    SG_TERM_OP_UNSPECIFIED,
    SG_TERM_READ_RESP_MISMATCH, /* Response without a Request of ours */
    SG_TERM_MESSAGE_LENGTH,     /* RDMAP header truncated, or octets left over */
    SG_TERM_IMM_LENGTH,         /* Immediate Data of other than 8 octets */
    SG_TERM_ATOMIC_MISALIGNED,  /* also for Atomic Write */
    SG_TERM_ATOMIC_OPCODE,
    SG_TERM_ATOMIC_FAILED,     /* the memory cannot be operated on */
    SG_TERM_ATOMIC_RESP_ID,    /* Response with another identifier than our request */
    SG_TERM_MPE_FAILED,        /* Flush, Verify, Atomic Write failed; the hash differs */
    SG_TERM_MPE_FLAGS,         /* Flush with an undefined flag */
    SG_TERM_MPE_LENGTH,        /* Atomic Write of other than 8 octets */
    SG_TERM_MPE_RESP_MISMATCH, /* Response of another kind than our oldest request */

    /* DDP: RFC 5041 section 7 */
    SG_TERM_DDP_CATASTROPHE,
    SG_TERM_DDP_SHORT, /* ULPDU shorter than its DDP header */
    SG_TERM_TAGGED_BAD_STAG,
    SG_TERM_TAGGED_BOUNDS,
    SG_TERM_TAGGED_NOT_ASSOCIATED,
    SG_TERM_TAGGED_WRAP,
    SG_TERM_TAGGED_VERSION,
    SG_TERM_WRITE_ACCESS, /* tagged data without the remote-write right */
    SG_TERM_UNTAGGED_BAD_QN,
    SG_TERM_UNTAGGED_NO_BUFFER,    /* no Receive posted */
    SG_TERM_UNTAGGED_IRD_EXCEEDED, /* no buffer on the request queue */
    SG_TERM_UNTAGGED_NO_REQUEST,   /* no buffer on the response queue: no request is pending */
    SG_TERM_UNTAGGED_BAD_MSN,
    SG_TERM_UNTAGGED_BAD_MO,
    SG_TERM_UNTAGGED_TOO_LONG,
    SG_TERM_UNTAGGED_VERSION,

    /* MPA: RFC 5044 section 8, RFC 6581 section 9.3 */
    SG_TERM_MPA_LLP_LOST,
    SG_TERM_MPA_CRC,
    SG_TERM_MPA_MARKER,
    SG_TERM_MPA_STARTUP,
    SG_TERM_MPA_LOCAL,
    SG_TERM_MPA_IRD,
    SG_TERM_MPA_RTR,

    SG_TERM_COND_COUNT,
};

/* Which headers of the failing segment go into the Terminate. */
enum sg_term_hdrs {
    SG_TERM_HDRS_NONE,     /* M = D = R = 0 */
    SG_TERM_HDRS_DDP,      /* M = D = 1 */
    SG_TERM_HDRS_DDP_READ, /* and R = 1 if a Read Request failed */
};

struct sg_term_row {
    const char *name;
    uint8_t layer;
    uint8_t etype;
    uint8_t code;
    enum sg_term_hdrs hdrs;
};

/* The row of @cond, which must be one of the enumeration (asserted). */
const struct sg_term_row *sg_term_row(enum sg_term_cond cond);

/*
 * Fill @t for @cond.  @ddp is the header of the failing segment and @seg_len
 * its length including the header, or NULL and 0 when no segment is at fault;
 * @read is the failing Read Request, already advanced past what was answered,
 * or NULL.  The row decides which of them are included.
 */
void sg_term_build(struct sg_term *t, enum sg_term_cond cond, const struct sg_ddp_hdr *ddp,
                   uint16_t seg_len, const struct sg_read_req *read);

/* What kind of fault a Terminate reports, sent or received; of all codes, registered or not. */
enum sg_term_class {
    SG_TERM_CLASS_FORM,      /* a message that is malformed or has no place here */
    SG_TERM_CLASS_ACCESS,    /* an STag: unknown, out of bounds, without the right */
    SG_TERM_CLASS_FAILED,    /* a request that was understood and could not be done */
    SG_TERM_CLASS_SENDER,    /* the side that sends the Terminate cannot continue */
    SG_TERM_CLASS_TRANSPORT, /* MPA */
    SG_TERM_CLASSES,
};

enum sg_term_class sg_term_classify(unsigned layer, unsigned etype, unsigned code);

/* Names for logs; never NULL, "unknown" for what has no meaning. */
const char *sg_term_layer_name(unsigned layer);
const char *sg_term_type_name(unsigned layer, unsigned etype);
const char *sg_term_code_name(unsigned layer, unsigned etype, unsigned code);

#endif /* SG_WIRE_TERMINATE_H */
