/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA-CM private data of RPC-over-RDMA version 1 (RFC 8797 section 4), 8 octets:
 *
 *   0-3  0xf6ab0e18
 *   4    version, 1
 *   5    0xfe reserved, 0x01 R: remote invalidation is supported
 *   6    send size: octets / 1024 - 1
 *   7    receive size, likewise
 *
 * They stand anywhere in the private data of the connection, at any alignment.
 */
#ifndef RPCRDMA_PRIVATE_DATA_H
#define RPCRDMA_PRIVATE_DATA_H

#include "base/span.h"

enum rr_private_limits {
    RR_PRIVATE_LEN = 8,
    RR_PRIVATE_VERSION = 1,
    RR_SIZE_UNIT = 1024,
    RR_SIZE_MIN = RR_SIZE_UNIT, /* also what is assumed without private data */
    RR_SIZE_MAX = 256 * RR_SIZE_UNIT,
};

#define RR_PRIVATE_ID UINT32_C(0xf6ab0e18)

struct rr_private {
    bool present;       /* found, of version 1, complete; else the fields are the defaults */
    bool remote_inv;    /* R */
    uint8_t reserved;   /* the reserved bits as they came; they mean nothing */
    uint32_t send_size; /* octets */
    uint32_t recv_size; /* octets */
    size_t at;          /* where it was found */
};

/* What a peer said in @pd; foreign, unknown and incomplete data say nothing (sections 5.1, 5.2). */
struct rr_private rr_private_parse(struct sg_span pd);

/* "f6ab0e18 01000303": octets as hex, blanks between them; 0: that is no such text, or too long. */
size_t rr_private_from_hex(const char *text, uint8_t *out, size_t room);

/* Writes RR_PRIVATE_LEN octets.  Sizes are rounded down to units, within the limits. */
void rr_private_emit(const struct rr_private *p, uint8_t *buf);

/* The inline threshold of messages from one side to the other (section 4.2). */
uint32_t rr_threshold(const struct rr_private *sender, const struct rr_private *receiver);

/* Whether a responder may invalidate remotely (section 4.1). */
bool rr_may_invalidate(const struct rr_private *a, const struct rr_private *b);

#endif
