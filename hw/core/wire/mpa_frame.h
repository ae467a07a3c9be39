/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MPA startup frames: Request and Reply (RFC 5044 section 7.1.1) and the
 * enhanced connection setup header of revision 2 (RFC 6581 section 9).
 *
 *    0-15  key
 *   16     flags    0x80 M, 0x40 C, 0x20 R, 0x10 S (revision 2), rest 0
 *   17     revision
 *   18-19  length of what follows, 0..512, including the enhanced header
 *   20-    [enhanced header, 4 octets, when S] ULP private data
 */
#ifndef SG_WIRE_MPA_FRAME_H
#define SG_WIRE_MPA_FRAME_H

#include "wire/wire.h"

enum sg_mpa_limits {
    SG_MPA_KEY_LEN = 16,
    SG_MPA_HDR_LEN = SG_MPA_KEY_LEN + 4,
    SG_MPA_PD_MAX = 512,
    SG_MPA_V2_LEN = 4,
    SG_MPA_PD_V2_MAX = SG_MPA_PD_MAX - SG_MPA_V2_LEN, /* what is left for the ULP then */
    SG_MPA_FRAME_MAX = SG_MPA_HDR_LEN + SG_MPA_PD_MAX,

    SG_MPA_REV_RDMAC = 0,
    SG_MPA_REV_1 = 1,
    SG_MPA_REV_2 = 2,

    SG_MPA_DEPTH_MAX = 0x3fff,
    SG_MPA_DEPTH_UNSET = 0x3fff, /* "not negotiated here", RFC 6581 9.1 */
};

/* MPA error codes: RFC 5044 section 8, RFC 6581 section 9.3. */
enum sg_mpa_err {
    SG_MPA_ERR_LLP_LOST = 1,
    SG_MPA_ERR_CRC = 2,
    SG_MPA_ERR_MARKER = 3,
    SG_MPA_ERR_STARTUP = 4,
    SG_MPA_ERR_LOCAL = 5,
    SG_MPA_ERR_IRD = 6,
    SG_MPA_ERR_RTR = 7,
};

enum sg_mpa_kind {
    SG_MPA_REQUEST,
    SG_MPA_REPLY,
};

/* Ready-to-receive messages that a side can use; a set. */
enum sg_mpa_rtr {
    SG_MPA_RTR_SEND = 1 << 0,  /* B: zero-length Send */
    SG_MPA_RTR_WRITE = 1 << 1, /* C: zero-length RDMA Write */
    SG_MPA_RTR_READ = 1 << 2,  /* D: zero-length RDMA Read */
    SG_MPA_RTR_ALL = 7,
};

struct sg_mpa_frame {
    enum sg_mpa_kind kind;
    bool markers; /* M: the peer of the sender must insert markers */
    bool crc;     /* C */
    bool reject;  /* R; Replies only, neither sent nor seen in Requests */
    bool s_flag;  /* S as on the wire, whatever the revision */
    uint8_t rev;

    /*
     * Set when the frame carries the enhanced header: S together with
     * revision 2 or later.  Emitting derives S from it; s_flag is for reading.
     */
    bool enhanced;
    bool p2p;     /* A: peer-to-peer model, an RTR message is due */
    uint8_t rtr;  /* set of enum sg_mpa_rtr; always 0 when !p2p */
    uint16_t ird; /* 0..SG_MPA_DEPTH_MAX */
    uint16_t ord;

    struct sg_span pd; /* the ULP's private data, borrowed */
};

/*
 * Parse the frame at the start of @in, expecting a @kind frame.  On
 * SG_WIRE_OK, *@used is the length of the frame; what follows it in @in is
 * FPDUs.  SG_WIRE_MORE: no fault so far, call again with more octets (wrong
 * keys and lengths are noticed as soon as their octets are there, so no more
 * than SG_MPA_FRAME_MAX octets ever need to be kept).
 */
enum sg_wire_err sg_mpa_frame_parse(struct sg_span in, enum sg_mpa_kind kind,
                                    struct sg_mpa_frame *out, size_t *used);

/* Octets that @f takes; at most SG_MPA_FRAME_MAX. */
size_t sg_mpa_frame_len(const struct sg_mpa_frame *f);

/* Private data must fit (asserted): 512 octets, or 508 in an enhanced frame. */
size_t sg_mpa_frame_emit(const struct sg_mpa_frame *f, uint8_t *buf);

#endif /* SG_WIRE_MPA_FRAME_H */
