/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MPA startup frames: octets to structure and back. */
#include "wire/mpa_frame.h"

/* Octet offsets and masks, RFC 5044 section 7.1.1. */
enum {
    OFF_FLAGS = 16,
    OFF_REV = 17,
    OFF_PD_LEN = 18,

    FLAG_M = 0x80,
    FLAG_C = 0x40,
    FLAG_R = 0x20,
    FLAG_S = 0x10, /* RFC 6581 section 9 */
};

/* The enhanced header as two 16-bit words, RFC 6581 section 9. */
enum {
    V2_A = 0x8000, /* first word */
    V2_B = 0x4000,
    V2_C = 0x8000, /* second word */
    V2_D = 0x4000,
    V2_DEPTH = 0x3fff, /* IRD in the first word, ORD in the second */
};

/* 16 octets each; the NUL does not go on the wire. */
static const char *const keys[] = {
    [SG_MPA_REQUEST] = "MPA ID Req Frame",
    [SG_MPA_REPLY] = "MPA ID Rep Frame",
};

/* Check the key as far as it has arrived, so that a wrong peer is detected early. */
static enum sg_wire_err check_key(struct sg_span in, enum sg_mpa_kind kind)
{
    enum sg_mpa_kind other = kind == SG_MPA_REQUEST ? SG_MPA_REPLY : SG_MPA_REQUEST;
    size_t n = SG_MIN(in.len, (size_t)SG_MPA_KEY_LEN);

    if (n == 0 || memcmp(in.p, keys[kind], n) == 0) {
        return n < SG_MPA_KEY_LEN ? SG_WIRE_MORE : SG_WIRE_OK;
    }
    return memcmp(in.p, keys[other], n) == 0 ? SG_WIRE_WRONG_ROLE : SG_WIRE_BAD_KEY;
}

static void parse_v2(const uint8_t *p, struct sg_mpa_frame *out)
{
    uint16_t w0 = sg_get_be16(p);
    uint16_t w1 = sg_get_be16(p + 2);

    out->p2p = w0 & V2_A;
    out->ird = w0 & V2_DEPTH;
    out->ord = w1 & V2_DEPTH;
    if (out->p2p) {
        out->rtr = (w0 & V2_B ? SG_MPA_RTR_SEND : 0) | (w1 & V2_C ? SG_MPA_RTR_WRITE : 0) |
                   (w1 & V2_D ? SG_MPA_RTR_READ : 0);
    }
}

enum sg_wire_err sg_mpa_frame_parse(struct sg_span in, enum sg_mpa_kind kind,
                                    struct sg_mpa_frame *out, size_t *used)
{
    enum sg_wire_err err = check_key(in, kind);
    const uint8_t *hdr, *pd;
    size_t pd_len;

    memset(out, 0, sizeof(*out));
    *used = 0;
    if (err) {
        return err;
    }
    hdr = sg_span_get(in, 0, SG_MPA_HDR_LEN);
    if (!hdr) {
        return SG_WIRE_MORE;
    }
    out->kind = kind;
    out->markers = hdr[OFF_FLAGS] & FLAG_M;
    out->crc = hdr[OFF_FLAGS] & FLAG_C;
    out->reject = kind == SG_MPA_REPLY && hdr[OFF_FLAGS] & FLAG_R;
    out->s_flag = hdr[OFF_FLAGS] & FLAG_S;
    out->rev = hdr[OFF_REV];
    /* In revision 1 the S position is a reserved bit. */
    out->enhanced = out->s_flag && out->rev >= SG_MPA_REV_2;

    pd_len = sg_get_be16(hdr + OFF_PD_LEN);
    if (pd_len > SG_MPA_PD_MAX || (out->enhanced && pd_len < SG_MPA_V2_LEN)) {
        return SG_WIRE_BAD_LENGTH;
    }
    pd = sg_span_get(in, SG_MPA_HDR_LEN, pd_len);
    if (!pd) {
        return SG_WIRE_MORE;
    }
    if (out->enhanced) {
        parse_v2(pd, out);
        pd += SG_MPA_V2_LEN;
        pd_len -= SG_MPA_V2_LEN;
    }
    out->pd = sg_span_of(pd, pd_len);
    *used = (size_t)(pd + pd_len - hdr);
    return SG_WIRE_OK;
}

size_t sg_mpa_frame_len(const struct sg_mpa_frame *f)
{
    return SG_MPA_HDR_LEN + (f->enhanced ? SG_MPA_V2_LEN : 0) + f->pd.len;
}

static void emit_v2(const struct sg_mpa_frame *f, uint8_t *p)
{
    unsigned rtr = f->p2p ? f->rtr : 0;

    sg_assert(f->ird <= SG_MPA_DEPTH_MAX && f->ord <= SG_MPA_DEPTH_MAX);
    sg_put_be16(p, (uint16_t)((f->p2p ? V2_A : 0) | (rtr & SG_MPA_RTR_SEND ? V2_B : 0) | f->ird));
    sg_put_be16(p + 2, (uint16_t)((rtr & SG_MPA_RTR_WRITE ? V2_C : 0) |
                                  (rtr & SG_MPA_RTR_READ ? V2_D : 0) | f->ord));
}

size_t sg_mpa_frame_emit(const struct sg_mpa_frame *f, uint8_t *buf)
{
    size_t len = sg_mpa_frame_len(f);
    bool reject = f->reject && f->kind == SG_MPA_REPLY;
    uint8_t *p = buf + SG_MPA_HDR_LEN;

    sg_assert(len <= SG_MPA_FRAME_MAX);
    sg_assert(!f->enhanced || f->rev >= SG_MPA_REV_2);
    memcpy(buf, keys[f->kind], SG_MPA_KEY_LEN);
    buf[OFF_FLAGS] = (uint8_t)((f->markers ? FLAG_M : 0) | (f->crc ? FLAG_C : 0) |
                               (reject ? FLAG_R : 0) | (f->enhanced ? FLAG_S : 0));
    buf[OFF_REV] = f->rev;
    sg_put_be16(buf + OFF_PD_LEN, (uint16_t)(len - SG_MPA_HDR_LEN));
    if (f->enhanced) {
        emit_v2(f, p);
        p += SG_MPA_V2_LEN;
    }
    if (f->pd.len) {
        memcpy(p, f->pd.p, f->pd.len);
    }
    return len;
}
