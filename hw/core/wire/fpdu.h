/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FPDUs (RFC 5044 section 4): geometry, markers, assembly and disassembly.
 *
 *   [marker] ULPDU_Length(2) ULPDU [pad 0-3] [marker] CRC(4)
 *
 * "Position" below is the offset of an octet in one direction of the TCP
 * stream, counted from the first octet of Full Operation, markers included,
 * modulo 2^32.  Markers sit at the positions divisible by 512.  All positions
 * at which FPDUs start are multiples of 4.
 */
#ifndef SG_WIRE_FPDU_H
#define SG_WIRE_FPDU_H

#include "wire/wire.h"

enum sg_fpdu_limits {
    SG_FPDU_LEN_FIELD = 2,
    SG_FPDU_CRC = 4,
    SG_FPDU_PAD_MAX = 3,
    SG_FPDU_TRAILER_MAX = SG_FPDU_PAD_MAX + SG_FPDU_CRC,
    SG_FPDU_MARKER = 4,
    SG_FPDU_MARKER_EVERY = 512,

    SG_MULPDU_MIN = 128,
    SG_MULPDU_MAX = 64768,
    SG_ULPDU_FIELD_MAX = 65535, /* accepted from peers */

    /* Octets that any FPDU of SG_ULPDU_FIELD_MAX takes, with markers. */
    SG_FPDU_WIRE_MAX = 65535 + 2 + 3 + 4 + 4 * (65535 / 508 + 2),
};

enum sg_fpdu_flags {
    SG_FPDU_MARKERS = 1 << 0, /* this direction has markers */
    SG_FPDU_CRC_ON = 1 << 1,  /* CRC is generated or checked; else it is sent as 0 */
};

/* Pad octets after a ULPDU of @ulpdu_len. */
static inline size_t sg_fpdu_pad(size_t ulpdu_len)
{
    return -(ulpdu_len + SG_FPDU_LEN_FIELD) & 3;
}

/* Octets of an FPDU without markers. */
static inline size_t sg_fpdu_len(size_t ulpdu_len)
{
    return SG_FPDU_LEN_FIELD + ulpdu_len + sg_fpdu_pad(ulpdu_len) + SG_FPDU_CRC;
}

/*
 * Octets that an FPDU takes when it is put at position @pos, its markers (a
 * leading one too) included if @flags has SG_FPDU_MARKERS.
 */
size_t sg_fpdu_wire_len(size_t ulpdu_len, uint32_t pos, unsigned flags);

/* Octets from @pos to the next marker position; 0 if @pos is one. */
static inline uint32_t sg_marker_gap(uint32_t pos)
{
    return -pos & (SG_FPDU_MARKER_EVERY - 1);
}

/*
 * Largest ULPDU that fits a TCP segment of @emss octets (RFC 5044 section
 * 4.5), between SG_MULPDU_MIN and SG_MULPDU_MAX whatever @emss is.  Also the
 * answer for the room left in a partly filled segment.
 */
uint32_t sg_mulpdu(uint32_t emss, bool markers);

/* Marker octets at @buf: reserved half 0, pointer with its low bits cleared. */
void sg_marker_emit(uint8_t *buf, uint16_t fpduptr);

/* The pointer of the marker at the start of @in, low two bits cleared. */
enum sg_wire_err sg_marker_parse(struct sg_span in, uint16_t *fpduptr);

/*
 * Pad and CRC field at @buf (up to SG_FPDU_TRAILER_MAX octets, the size is
 * returned): for a sender without markers that sends the ULPDU in place.
 * @crc covers length field and ULPDU; the pad is added here.  Without
 * @crc_on the field is 0 and @crc is ignored.
 */
size_t sg_fpdu_trailer_emit(uint8_t *buf, size_t ulpdu_len, bool crc_on, uint32_t crc);

/*
 * Build a whole FPDU at @buf from the pieces of its ULPDU, to be sent at
 * position @pos.  The caller provides sg_fpdu_wire_len() octets; that many
 * are written and returned.  The ULPDU must not exceed SG_MULPDU_MAX.
 */
size_t sg_fpdu_emit(uint8_t *buf, uint32_t pos, unsigned flags, const struct sg_span *parts,
                    size_t nparts);

/*
 * Finds the end.  @in starts at position @pos, which is the start of an
 * FPDU.  Returns the lengths of the ULPDU and of the whole FPDU as soon as the
 * length field is there (SG_WIRE_OK), else SG_WIRE_MORE.
 */
enum sg_wire_err sg_fpdu_peek(struct sg_span in, uint32_t pos, unsigned flags, size_t *ulpdu_len,
                              size_t *wire_len);

struct sg_fpdu {
    struct sg_span ulpdu; /* borrowed from the input or from the scratch memory */
    size_t wire_len;      /* octets of the input that this FPDU took */
};

/*
 * Disassemble the FPDU at the start of @in: check the CRC, then the markers,
 * and return the ULPDU: in place if there are no markers, else copied to
 * @scratch (SG_ULPDU_FIELD_MAX octets; may be NULL without markers).
 * SG_WIRE_MORE, SG_WIRE_BAD_CRC, SG_WIRE_BAD_MARKER give no ULPDU.
 */
enum sg_wire_err sg_fpdu_parse(struct sg_span in, uint32_t pos, unsigned flags, uint8_t *scratch,
                               struct sg_fpdu *out);

#endif /* SG_WIRE_FPDU_H */
