/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DDP segment headers (RFC 5041 section 4).
 *
 *   tagged, 14 octets               untagged, 18 octets
 *    0    control                    0     control
 *    1    RsvdULP (RDMAP control)    1     RsvdULP[0:7] (RDMAP control)
 *    2-5  STag                       2-5   RsvdULP[8:39] (Invalidate STag)
 *    6-13 TO                         6-9   QN
 *                                   10-13  MSN
 *                                   14-17  MO
 *
 * Control: 0x80 tagged, 0x40 last, 0x3c reserved, 0x03 version.
 */
#ifndef SG_WIRE_DDP_H
#define SG_WIRE_DDP_H

#include "wire/wire.h"

enum sg_ddp_limits {
    SG_DDP_TAGGED_LEN = 14,
    SG_DDP_UNTAGGED_LEN = 18,
    SG_DDP_HDR_MAX = SG_DDP_UNTAGGED_LEN,
    SG_DDP_VERSION = 1,
    SG_DDP_VERSION_RDMAC = 0,
    SG_DDP_FIRST_MSN = 1,
};

/* Untagged queues: RFC 5040 section 4.2, RFC 7306. */
enum sg_ddp_qn {
    SG_QN_SEND = 0,
    SG_QN_REQUEST = 1, /* Read Requests and all other requests */
    SG_QN_TERMINATE = 2,
    SG_QN_RESPONSE = 3, /* Atomic Responses and other untagged responses */
    SG_QN_COUNT,
};

struct sg_ddp_hdr {
    bool tagged;
    bool last;
    uint8_t version;  /* 0..3 */
    uint8_t ulp_ctrl; /* RsvdULP[0:7]; for RDMAP see sg_rdmap_ctrl_parse() */

    /* tagged */
    uint32_t stag;
    uint64_t to;

    /* untagged */
    uint32_t ulp_word; /* RsvdULP[8:39]: Invalidate STag or 0 */
    uint32_t qn;
    uint32_t msn;
    uint32_t mo;
};

static inline size_t sg_ddp_len(bool tagged)
{
    return tagged ? SG_DDP_TAGGED_LEN : SG_DDP_UNTAGGED_LEN;
}

/*
 * Parse the header at the start of the ULPDU @in; the fields of the other
 * kind of header become 0.  The payload is sg_span_from(in, sg_ddp_len(tagged)).
 * SG_WIRE_SHORT when @in cannot hold the header that its T flag announces.
 */
enum sg_wire_err sg_ddp_parse(struct sg_span in, struct sg_ddp_hdr *out);

/* Writes sg_ddp_len(h->tagged) octets. */
size_t sg_ddp_emit(const struct sg_ddp_hdr *h, uint8_t *buf);

#endif /* SG_WIRE_DDP_H */
