/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages of draft-talpey-rdma-commit: RDMA Flush, RDMA Verify, Atomic Write.
 *
 * Both versions of the draft that we speak, -01 and -02, have the same layouts
 * (-02 section 2.1.1, 2.2.1, 2.3.1).  Requests, behind the untagged DDP header:
 *
 *    0-3   Data Sink STag
 *    4-7   Data Sink Length
 *    8-15  Data Sink Tagged Offset
 *   16-19  Flush: disposition flags
 *   16-23  Atomic Write: data, a number in network order
 *   16-..  Verify: expected hash, or nothing
 *
 * Responses: Verify has the hash, the others are empty.
 *
 * The disposition flags P, G and R are those of a work request, SG_FLUSH_PERSISTENT, _GLOBAL and
 * _REGION in staghorn/io.h.  R is there since -02; the draft's figures say G where its text says V.
 */
#ifndef SG_WIRE_MPE_H
#define SG_WIRE_MPE_H

#include "wire/rdmap.h"

enum sg_mpe_limits {
    SG_HASH_LEN_MAX = 64, /* octets of the longest hash */
    SG_ATOM_LEN = 8,
    SG_MPE_REQ_LEN_MAX = SG_VERIFY_REQ_LEN + SG_HASH_LEN_MAX,
    SG_MPE_RESP_LEN_MAX = SG_HASH_LEN_MAX,
};

struct sg_flush_req {
    uint32_t stag;
    uint32_t length; /* octets */
    uint64_t to;
    uint32_t flags; /* SG_FLUSH_*, and 29 bits without meaning */
};

struct sg_verify_req {
    uint32_t stag;
    uint32_t length;
    uint64_t to;
    uint8_t hash_len; /* 0: no hash is expected */
    uint8_t hash[SG_HASH_LEN_MAX];
};

struct sg_atomic_write_req {
    uint32_t stag;
    uint32_t length; /* SG_ATOM_LEN if valid */
    uint64_t to;
    uint64_t data; /* the number; the target decides how to store it in memory */
};

struct sg_verify_resp {
    uint8_t hash_len;
    uint8_t hash[SG_HASH_LEN_MAX];
};

/*
 * These messages are one segment without ULP payload, so @in is the whole
 * message: SG_WIRE_SHORT if it ends too early, SG_WIRE_BAD_LENGTH if octets are
 * left over (for a hash: beyond SG_HASH_LEN_MAX).
 */
enum sg_wire_err sg_flush_req_parse(struct sg_span in, struct sg_flush_req *out);
enum sg_wire_err sg_verify_req_parse(struct sg_span in, struct sg_verify_req *out);
enum sg_wire_err sg_atomic_write_req_parse(struct sg_span in, struct sg_atomic_write_req *out);
enum sg_wire_err sg_verify_resp_parse(struct sg_span in, struct sg_verify_resp *out);

/* Octets written: fixed, or with the hash; at most SG_MPE_REQ_LEN_MAX. */
size_t sg_flush_req_emit(const struct sg_flush_req *r, uint8_t *buf);
size_t sg_verify_req_emit(const struct sg_verify_req *r, uint8_t *buf);
size_t sg_atomic_write_req_emit(const struct sg_atomic_write_req *r, uint8_t *buf);
size_t sg_verify_resp_emit(const struct sg_verify_resp *r, uint8_t *buf);

#endif /* SG_WIRE_MPE_H */
