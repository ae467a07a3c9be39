/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RPC-over-RDMA version 1 header (RFC 8166 section 4): octets to a structure and back.
 *
 *   xid  version  credits  procedure
 *   RDMA_MSG, RDMA_NOMSG (and RDMA_MSGP, RDMA_DONE, which nobody may send):
 *     Read list    (1 position handle length offset)* 0
 *     Write list   (1 n (handle length offset)*n)* 0
 *     Reply chunk  0, or 1 n (handle length offset)*n
 *   RDMA_ERROR: ERR_VERS low high, or ERR_CHUNK
 *
 * header_xdr.x describes the pieces; rpcgen makes the codec of each.  Parsing checks form only:
 * message.h and exchange.h have the rules.
 */
#ifndef RPCRDMA_HEADER_H
#define RPCRDMA_HEADER_H

#include "base/span.h"

enum rr_proc {
    RR_MSG = 0,
    RR_NOMSG = 1,
    RR_MSGP = 2, /* obsolete: RPC-41 */
    RR_DONE = 3, /* obsolete: RPC-42 */
    RR_ERROR = 4,
};

enum rr_err {
    RR_ERR_VERS = 1,
    RR_ERR_CHUNK = 2,
};

enum rr_limits {
    RR_VERSION = 1,
    RR_FIXED_LEN = 16,
    RR_HEADER_MIN = 28,    /* three empty lists */
    RR_ERR_CHUNK_LEN = 20, /* shorter than the minimum of section 4.5, and sent nevertheless */

    /* Ours: what one header may hold.  Linux sends at most 16 segments to a chunk list. */
    RR_READS_MAX = 256,
    RR_CHUNKS_MAX = 32,
    RR_SEGMENTS_MAX = 512, /* of all Write chunks and the Reply chunk together */

    /* Octets that any header takes that can be emitted. */
    RR_HEADER_ROOM =
        RR_HEADER_MIN + 24 * RR_READS_MAX + 8 * RR_CHUNKS_MAX + 4 + 16 * RR_SEGMENTS_MAX,
};

struct rr_segment {
    uint32_t handle; /* STag */
    uint32_t length;
    uint64_t offset;
};

struct rr_read {
    uint32_t position;
    struct rr_segment segment;
};

/* A run of rr_header.segment. */
struct rr_chunk {
    unsigned first;
    unsigned count;
};

struct rr_header {
    uint32_t xid;
    uint32_t vers;
    uint32_t credit;
    uint32_t proc;

    unsigned reads;
    struct rr_read read[RR_READS_MAX];
    unsigned chunks; /* of the Write list */
    struct rr_chunk chunk[RR_CHUNKS_MAX];
    bool has_reply;
    struct rr_chunk reply;
    unsigned segments;
    struct rr_segment segment[RR_SEGMENTS_MAX];

    uint32_t err; /* RDMA_ERROR: enum rr_err */
    uint32_t low;
    uint32_t high;

    size_t len; /* octets of the header that was parsed */
};

enum rr_fault {
    RR_OK = 0,
    RR_SHORT,    /* fewer octets than any header has: no field may be trusted */
    RR_VERS,     /* not version 1: only the four fixed fields were read */
    RR_BAD_PROC, /* no such procedure: only the four fixed fields were read */
    RR_CUT,      /* a list or an error runs past the end */
    RR_BAD_FLAG, /* an optional-data flag is neither 0 nor 1 */
    RR_BAD_ERR,  /* RDMA_ERROR with an unknown error */
    RR_TOO_MANY, /* sound, but more than we hold (enum rr_limits) */
};

/* A short text for messages; never NULL. */
const char *rr_fault_name(enum rr_fault fault);
const char *rr_proc_name(uint32_t proc);

/*
 * Parses the header at the start of a message.  On RR_OK @h->len is its length, and the RPC message
 * of RDMA_MSG follows it.  On a fault other than RR_SHORT the four fixed fields are valid.
 */
enum rr_fault rr_header_parse(struct sg_span in, struct rr_header *h);

/* Writes the header; returns its octets, or 0 if @room is too small (RR_HEADER_ROOM is not). */
size_t rr_header_emit(const struct rr_header *h, uint8_t *buf, size_t room);

/* Adds a segment to the header and to the chunk that was opened last; false: no room. */
bool rr_add_read(struct rr_header *h, uint32_t position, struct rr_segment s);
bool rr_open_chunk(struct rr_header *h);
bool rr_open_reply(struct rr_header *h);
bool rr_add_segment(struct rr_header *h, struct rr_segment s);

/* The sum of the lengths of a chunk's segments, and of the Read segments with that Position. */
uint64_t rr_chunk_octets(const struct rr_header *h, const struct rr_chunk *c);
uint64_t rr_position_octets(const struct rr_header *h, uint32_t position);

#endif
