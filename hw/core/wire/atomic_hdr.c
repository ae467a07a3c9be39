/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Atomic Operations: octets to structure and back. */
#include "wire/atomic_hdr.h"

/* Offsets in the Atomic Request header. */
enum {
    AR_OP = 0,
    AR_OP_MASK = 0xf,
    AR_ID = 4,
    AR_STAG = 8,
    AR_TO = 12,
    AR_DATA = 20,
    AR_MASK = 28,
    AR_CMP = 36,
    AR_CMP_MASK = 44,
};

enum sg_wire_err sg_atomic_req_parse(struct sg_span in, struct sg_atomic_req *out)
{
    const uint8_t *p = sg_span_get(in, 0, SG_ATOMIC_REQ_LEN);

    memset(out, 0, sizeof(*out));
    if (!p) {
        return SG_WIRE_SHORT;
    }
    out->op = sg_get_be32(p + AR_OP) & AR_OP_MASK;
    out->id = sg_get_be32(p + AR_ID);
    out->stag = sg_get_be32(p + AR_STAG);
    out->to = sg_get_be64(p + AR_TO);
    out->data = sg_get_be64(p + AR_DATA);
    out->mask = sg_get_be64(p + AR_MASK);
    out->cmp = sg_get_be64(p + AR_CMP);
    out->cmp_mask = sg_get_be64(p + AR_CMP_MASK);
    return SG_WIRE_OK;
}

size_t sg_atomic_req_emit(const struct sg_atomic_req *r, uint8_t *buf)
{
    sg_put_be32(buf + AR_OP, r->op & AR_OP_MASK);
    sg_put_be32(buf + AR_ID, r->id);
    sg_put_be32(buf + AR_STAG, r->stag);
    sg_put_be64(buf + AR_TO, r->to);
    sg_put_be64(buf + AR_DATA, r->data);
    sg_put_be64(buf + AR_MASK, r->mask);
    sg_put_be64(buf + AR_CMP, r->cmp);
    sg_put_be64(buf + AR_CMP_MASK, r->cmp_mask);
    return SG_ATOMIC_REQ_LEN;
}

enum sg_wire_err sg_atomic_resp_parse(struct sg_span in, struct sg_atomic_resp *out)
{
    const uint8_t *p = sg_span_get(in, 0, SG_ATOMIC_RESP_LEN);

    memset(out, 0, sizeof(*out));
    if (!p) {
        return SG_WIRE_SHORT;
    }
    out->id = sg_get_be32(p);
    out->value = sg_get_be64(p + 4);
    return SG_WIRE_OK;
}

size_t sg_atomic_resp_emit(const struct sg_atomic_resp *r, uint8_t *buf)
{
    sg_put_be32(buf, r->id);
    sg_put_be64(buf + 4, r->value);
    return SG_ATOMIC_RESP_LEN;
}
