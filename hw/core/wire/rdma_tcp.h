/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Segments of RDMA/TCP of September 2000 (docs/wire-2000.md, whose order of
 * fields this is).  All of them are big-endian.
 *
 *    0     Version
 *    1     reserved for the client protocol (4 bits), B, E, type (2 bits)
 *    2-3   Segment Length: header, control data, payload
 *    4-11  Connection ID
 *   12-15  Message Number
 *   16-17  Order
 *   18     reserved
 *   19     CLEN
 *   20-23  Send, Read Response: Data Offset
 *   20-31  Write, Read Request: Buffer ID, Buffer Offset, RDMA Length
 *   then   control data, payload, padding to a multiple of four, CRC
 */
#ifndef SG_WIRE_RDMA_TCP_H
#define SG_WIRE_RDMA_TCP_H

#include "wire/wire.h"

enum sg_rt_type {
    SG_RT_SEND = 0,
    SG_RT_WRITE = 1,
    SG_RT_READ_REQ = 2,
    SG_RT_READ_RESP = 3,
};

enum sg_rt_const {
    SG_RT_VERSION = 1,
    SG_RT_HDR_MIN = 24,     /* octets of the header of a Send or Read Response */
    SG_RT_HDR_MAX = 32,     /* of a Write or Read Request */
    SG_RT_SEG_MAX = 0xffff, /* Segment Length */
    SG_RT_TAIL_MAX = 3 + 4, /* padding and CRC */
    SG_RT_WIRE_MAX = SG_RT_SEG_MAX + 1 + 4,
    SG_RT_WORD = 4,           /* octets of a word of control data */
    SG_RT_AT_ONCE = 0xffff,   /* order: waits for nothing */
    SG_RT_ORDER_MAX = 0xfffe, /* order: the largest number of messages */
};

/* Bits of the client protocol, in the upper half of octet 1. */
enum sg_rt_res { SG_RT_RES_SETUP = 0x80, SG_RT_RES_SE = 0x40, SG_RT_RES_MASK = 0xf0 };

struct sg_rt_hdr {
    uint8_t version;
    uint8_t type; /* enum sg_rt_type */
    uint8_t res;  /* SG_RT_RES_* */
    bool begin, end;
    uint8_t clen; /* words of control data */
    uint16_t order;
    uint64_t conn_id;
    uint32_t number;
    uint32_t data_offset; /* Send, Read Response */
    uint32_t buffer_id;   /* Write, Read Request: these three */
    uint32_t buffer_offset;
    uint32_t rdma_len;
};

/* A segment; the spans borrow from what was parsed. */
struct sg_rt_seg {
    struct sg_rt_hdr h;
    struct sg_span control, payload;
};

/* Has the header a Data Offset, rather than buffer and length? */
static inline bool sg_rt_has_offset(uint8_t type)
{
    return type == SG_RT_SEND || type == SG_RT_READ_RESP;
}

static inline size_t sg_rt_hdr_len(uint8_t type)
{
    return sg_rt_has_offset(type) ? SG_RT_HDR_MIN : SG_RT_HDR_MAX;
}

/* Octets on the wire of a segment with that Segment Length. */
static inline size_t sg_rt_wire_len(size_t seg_len)
{
    return sg_align_up(seg_len, 4) + 4;
}

/* Writes the header: sg_rt_hdr_len() octets.  @seg_len: at most SG_RT_SEG_MAX. */
size_t sg_rt_hdr_emit(const struct sg_rt_hdr *h, size_t seg_len, uint8_t *buf);

/*
 * Writes padding and CRC of a segment with that Segment Length, behind its payload; @crc is that of
 * everything before.  Returns how many octets: at most SG_RT_TAIL_MAX.
 */
size_t sg_rt_tail_emit(uint8_t *buf, size_t seg_len, uint32_t crc);

/*
 * How long is the segment that begins with @in, on the wire?  SG_WIRE_MORE: its length has not
 * arrived; SG_WIRE_BAD_LENGTH: shorter than any header.
 */
enum sg_wire_err sg_rt_peek(struct sg_span in, size_t *wire_len);

/*
 * The segment that begins with @in, which may have more.  SG_WIRE_MORE: not all of it is there.
 * Then, in this order: BAD_CRC (@check_crc only), BAD_LENGTH (too short for header and control
 * data, or a Read Request with payload).
 */
enum sg_wire_err sg_rt_parse(struct sg_span in, bool check_crc, struct sg_rt_seg *out);

/* "Read Request" */
const char *sg_rt_type_name(uint8_t type);

/* The control data of a setup message. */
enum sg_rt_setup_kind { SG_RT_REQUEST = 1, SG_RT_ACCEPT = 2, SG_RT_REJECT = 3 };

enum sg_rt_setup_const {
    SG_RT_SETUP_VERSION = 1,
    SG_RT_SETUP_WORDS = 2,
    SG_RT_PDATA_MAX = 512,
    SG_RT_SETUP_MAX =
        SG_RT_HDR_MIN + SG_RT_SETUP_WORDS * SG_RT_WORD + SG_RT_PDATA_MAX + SG_RT_TAIL_MAX,
};

struct sg_rt_setup {
    uint8_t version;
    uint8_t kind; /* enum sg_rt_setup_kind */
    uint16_t ird, ord;
};

/* SG_WIRE_SHORT, SG_WIRE_BAD_LENGTH: @in are not exactly two words. */
enum sg_wire_err sg_rt_setup_parse(struct sg_span in, struct sg_rt_setup *out);
size_t sg_rt_setup_emit(const struct sg_rt_setup *s, uint8_t *buf);

#endif /* SG_WIRE_RDMA_TCP_H */
