/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DDP segment headers: octets to structure and back (RFC 5041 section 4). */
#include "wire/ddp.h"

enum {
    CTRL_TAGGED = 0x80,
    CTRL_LAST = 0x40,
    CTRL_VERSION = 0x03,

    OFF_ULP_CTRL = 1,
    OFF_STAG = 2, /* tagged */
    OFF_TO = 6,
    OFF_ULP_WORD = 2, /* untagged */
    OFF_QN = 6,
    OFF_MSN = 10,
    OFF_MO = 14,
};

enum sg_wire_err sg_ddp_parse(struct sg_span in, struct sg_ddp_hdr *out)
{
    const uint8_t *p = sg_span_get(in, 0, 1);

    memset(out, 0, sizeof(*out));
    if (!p) {
        return SG_WIRE_SHORT;
    }
    out->tagged = p[0] & CTRL_TAGGED;
    out->last = p[0] & CTRL_LAST;
    out->version = p[0] & CTRL_VERSION;
    if (!sg_span_get(in, 0, sg_ddp_len(out->tagged))) {
        return SG_WIRE_SHORT;
    }
    out->ulp_ctrl = p[OFF_ULP_CTRL];
    if (out->tagged) {
        out->stag = sg_get_be32(p + OFF_STAG);
        out->to = sg_get_be64(p + OFF_TO);
    } else {
        out->ulp_word = sg_get_be32(p + OFF_ULP_WORD);
        out->qn = sg_get_be32(p + OFF_QN);
        out->msn = sg_get_be32(p + OFF_MSN);
        out->mo = sg_get_be32(p + OFF_MO);
    }
    return SG_WIRE_OK;
}

size_t sg_ddp_emit(const struct sg_ddp_hdr *h, uint8_t *buf)
{
    sg_assert(h->version <= CTRL_VERSION);
    buf[0] = (uint8_t)((h->tagged ? CTRL_TAGGED : 0) | (h->last ? CTRL_LAST : 0) | h->version);
    buf[OFF_ULP_CTRL] = h->ulp_ctrl;
    if (h->tagged) {
        sg_put_be32(buf + OFF_STAG, h->stag);
        sg_put_be64(buf + OFF_TO, h->to);
    } else {
        sg_put_be32(buf + OFF_ULP_WORD, h->ulp_word);
        sg_put_be32(buf + OFF_QN, h->qn);
        sg_put_be32(buf + OFF_MSN, h->msn);
        sg_put_be32(buf + OFF_MO, h->mo);
    }
    return sg_ddp_len(h->tagged);
}
