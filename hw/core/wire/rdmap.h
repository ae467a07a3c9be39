/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMAP messages (RFC 5040 section 4): control octet, one table row
 * per opcode, and the headers of the messages that have one (those of RFC 7306:
 * atomic_hdr.h; of draft-talpey-rdma-commit: mpe.h).
 *
 * Control octet: 0xc0 version, 0x30 reserved, 0x0f opcode.  The draft that
 * adds opcodes 0x10 and 0x11 widens the opcode to 0x1f.
 */
#ifndef SG_WIRE_RDMAP_H
#define SG_WIRE_RDMAP_H

#include "wire/ddp.h"

enum sg_rdmap_opcode {
    /* RFC 5040 */
    SG_OP_WRITE = 0x0,
    SG_OP_READ_REQ = 0x1,
    SG_OP_READ_RESP = 0x2,
    SG_OP_SEND = 0x3,
    SG_OP_SEND_INV = 0x4,
    SG_OP_SEND_SE = 0x5,
    SG_OP_SEND_SE_INV = 0x6,
    SG_OP_TERMINATE = 0x7,
    /* RFC 7306 */
    SG_OP_IMM = 0x8,
    SG_OP_IMM_SE = 0x9,
    SG_OP_ATOMIC_REQ = 0xa,
    SG_OP_ATOMIC_RESP = 0xb,
    /* draft-talpey-rdma-commit */
    SG_OP_FLUSH_REQ = 0xc,
    SG_OP_FLUSH_RESP = 0xd,
    SG_OP_VERIFY_REQ = 0xe,
    SG_OP_VERIFY_RESP = 0xf,
    SG_OP_ATOMIC_WRITE_REQ = 0x10,
    SG_OP_ATOMIC_WRITE_RESP = 0x11,

    SG_OP_COUNT,
};

enum sg_rdmap_limits {
    SG_RDMAP_VERSION = 1,
    SG_RDMAP_VERSION_RDMAC = 0,
    SG_READ_REQ_LEN = 28,
    SG_IMM_LEN = 8,
    SG_ATOMIC_REQ_LEN = 52,
    SG_ATOMIC_RESP_LEN = 12,
    SG_FLUSH_REQ_LEN = 20,
    SG_VERIFY_REQ_LEN = 16,
    SG_ATOMIC_WRITE_REQ_LEN = 24,
};

/* Where an opcode comes from; an engine speaks the sets that it enabled. */
enum sg_rdmap_spec {
    SG_SPEC_RFC5040,
    SG_SPEC_RFC7306,
    SG_SPEC_MPE, /* draft-talpey-rdma-commit */
};

struct sg_rdmap_op {
    const char *name;
    enum sg_rdmap_spec spec;
    bool tagged;      /* required T flag */
    uint8_t qn;       /* required queue if untagged */
    uint8_t hdr_len;  /* RDMAP header behind the DDP header, least octets */
    bool payload;     /* more octets may follow the header */
    bool invalidates; /* RsvdULP[8:39] is an STag to invalidate */
    bool solicited;   /* may raise a solicited event */
    bool multi;       /* may take more than one DDP segment */
};

/* The row of @opcode, or NULL for a number that names no message. */
const struct sg_rdmap_op *sg_rdmap_op(unsigned opcode);

/* A name for logs, also for unknown opcodes; never NULL. */
const char *sg_rdmap_op_name(unsigned opcode);

struct sg_rdmap_ctrl {
    uint8_t version; /* 0..3 */
    uint8_t opcode;  /* 0..0xf, or 0..0x1f when @wide */
};

/* @wide: five opcode bits, only where the draft extension was agreed on. */
static inline struct sg_rdmap_ctrl sg_rdmap_ctrl_parse(uint8_t octet, bool wide)
{
    return (struct sg_rdmap_ctrl){
        .version = octet >> 6,
        .opcode = octet & (wide ? 0x1f : 0x0f),
    };
}

static inline uint8_t sg_rdmap_ctrl_emit(struct sg_rdmap_ctrl c)
{
    return (uint8_t)(c.version << 6 | (c.opcode & 0x1f));
}

/* RDMA Read Request header, RFC 5040 section 4.4. */
struct sg_read_req {
    uint32_t sink_stag; /* copied uninterpreted into the Response */
    uint64_t sink_to;
    uint32_t size; /* octets */
    uint32_t src_stag;
    uint64_t src_to;
};

enum sg_wire_err sg_read_req_parse(struct sg_span in, struct sg_read_req *out);
size_t sg_read_req_emit(const struct sg_read_req *r, uint8_t *buf);

#endif /* SG_WIRE_RDMAP_H */
