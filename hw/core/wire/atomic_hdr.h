/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Headers of Atomic Operations (RFC 7306 section 5); base/masked_atomic.h has the arithmetic.
 *
 * Request, 52 octets behind the untagged DDP header:
 *
 *    0-3   28 reserved bits, then 4 bits of operation code
 *    4-7   request identifier, returned in the response
 *    8-11  remote STag
 *   12-19  remote Tagged Offset
 *   20-27  data to add or to swap in
 *   28-35  mask of it
 *   36-43  data to compare with
 *   44-51  mask of it
 *
 * Response, 12 octets: the identifier, and the memory's previous value.  (The
 * figure of section 5.2.2 has 12; the 32 of section 4 counts other headers.)
 */
#ifndef SG_WIRE_ATOMIC_HDR_H
#define SG_WIRE_ATOMIC_HDR_H

#include "wire/rdmap.h"

/* Codes of section 5.2.1; 1 is reserved. */
enum sg_atomic_op {
    SG_ATOMIC_FETCH_ADD = 0,
    SG_ATOMIC_CMP_SWAP = 2,
};

struct sg_atomic_req {
    uint8_t op;  /* 0..0xf; enum sg_atomic_op if valid */
    uint32_t id; /* echoed in the response */
    uint32_t stag;
    uint64_t to;
    uint64_t data; /* addend or value to swap in */
    uint64_t mask;
    uint64_t cmp;
    uint64_t cmp_mask;
};

struct sg_atomic_resp {
    uint32_t id;
    uint64_t value; /* the memory's previous value */
};

enum sg_wire_err sg_atomic_req_parse(struct sg_span in, struct sg_atomic_req *out);
size_t sg_atomic_req_emit(const struct sg_atomic_req *r, uint8_t *buf);
enum sg_wire_err sg_atomic_resp_parse(struct sg_span in, struct sg_atomic_resp *out);
size_t sg_atomic_resp_emit(const struct sg_atomic_resp *r, uint8_t *buf);

#endif /* SG_WIRE_ATOMIC_HDR_H */
