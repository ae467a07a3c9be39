/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all codecs share.  Every header has three functions:
 *
 *   enum sg_wire_err sg_X_parse(struct sg_span in, struct sg_X *out)
 *       checks the lengths once and fills the plain structure;
 *   size_t sg_X_emit(const struct sg_X *x, uint8_t *buf)
 *       writes every octet of the header and returns how many;
 *   size_t sg_X_len(...)
 *       says how many that will be, so that the caller can provide the room.
 *
 * Parsing checks form only.  The engine decides whether a version, opcode, STag
 * or number is acceptable, in the order that the RFCs demand.  Reserved bits
 * are written as 0 and ignored when read.
 */
#ifndef SG_WIRE_WIRE_H
#define SG_WIRE_WIRE_H

#include "base/span.h"

enum sg_wire_err {
    SG_WIRE_OK = 0,
    SG_WIRE_MORE,       /* sound so far, needs more octets of the stream */
    SG_WIRE_SHORT,      /* complete unit, too short for its header */
    SG_WIRE_BAD_KEY,    /* MPA startup: not an MPA frame */
    SG_WIRE_WRONG_ROLE, /* MPA startup: Request where a Reply is due, or v.v. */
    SG_WIRE_BAD_LENGTH, /* a length field holds an impossible value */
    SG_WIRE_BAD_CRC,    /* FPDU: MPA error code 2 */
    SG_WIRE_BAD_MARKER, /* FPDU: MPA error code 3 */
};

/* A short lower-case name for logs; never NULL. */
const char *sg_wire_err_name(enum sg_wire_err err);

#endif /* SG_WIRE_WIRE_H */
