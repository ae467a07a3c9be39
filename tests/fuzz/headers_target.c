/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: the codecs of the wire layer, one header or FPDU at a time.
 *
 * An input is a row of octets that may be any header: arbitrary, or a valid one with some octets
 * changed or cut off.  Each codec must read nothing outside of the octets, and must be able to emit
 * what it parsed, within the room that it announces; parsed and emitted again, this must give the
 * same octets.  An FPDU framed at any position must be parsed unchanged, and the CRC must detect
 * one changed bit.
 *
 * This target is much faster than target wire, which has a whole adapter behind the codecs.
 */
#include <glib.h>
#include <inttypes.h>

#include "base/crc32m.h"
#include "fuzz.h"
#include "wire/atomic_hdr.h"
#include "wire/mpe.h"
#include "wire/ddp.h"
#include "wire/fpdu.h"
#include "wire/mpa_frame.h"
#include "wire/rdma_tcp.h"
#include "wire/terminate.h"

enum { ROOM = 1024, HEADER_MAX = 600, ULPDU_MAX = 1500, CHANGES = 4 };

/* Parses the octets and emits the result into ROOM octets; 0: they do not parse. */
typedef size_t recode(struct sg_span in, uint8_t *out);

#define RECODE(what)                                                      \
    static size_t recode_##what(struct sg_span in, uint8_t *out)          \
    {                                                                     \
        struct sg_##what x;                                               \
                                                                          \
        return sg_##what##_parse(in, &x) ? 0 : sg_##what##_emit(&x, out); \
    }

RECODE(read_req)
RECODE(atomic_req)
RECODE(atomic_resp)
RECODE(flush_req)
RECODE(verify_req)
RECODE(verify_resp)
RECODE(atomic_write_req)

static size_t recode_ddp(struct sg_span in, uint8_t *out)
{
    struct sg_ddp_hdr x;
    size_t n;

    if (sg_ddp_parse(in, &x) != SG_WIRE_OK) {
        return 0;
    }
    sg_assert(sg_rdmap_op_name(sg_rdmap_ctrl_parse(x.ulp_ctrl, true).opcode));
    n = sg_ddp_emit(&x, out);
    sg_assert(n == sg_ddp_len(x.tagged));
    return n;
}

static size_t recode_terminate(struct sg_span in, uint8_t *out)
{
    struct sg_term x;
    size_t n;

    if (sg_term_parse(in, &x) != SG_WIRE_OK) {
        return 0;
    }
    sg_assert(sg_term_layer_name(x.layer) && sg_term_type_name(x.layer, x.etype) &&
              sg_term_code_name(x.layer, x.etype, x.code));
    /* A peer may set header flags in combinations that we never send. */
    x.has_ddp &= x.has_len;
    x.has_rdma &= x.has_ddp;
    n = sg_term_emit(&x, out);
    sg_assert(n == sg_term_len(&x) && n <= SG_TERM_MAX);
    return n;
}

static size_t recode_startup(struct sg_span in, uint8_t *out, enum sg_mpa_kind kind)
{
    struct sg_mpa_frame x;
    size_t used, n;

    if (sg_mpa_frame_parse(in, kind, &x, &used) != SG_WIRE_OK) {
        return 0;
    }
    sg_assert(used <= in.len && used <= SG_MPA_FRAME_MAX);
    n = sg_mpa_frame_emit(&x, out);
    sg_assert(n == sg_mpa_frame_len(&x) && n <= SG_MPA_FRAME_MAX);
    return n;
}

static size_t recode_request(struct sg_span in, uint8_t *out)
{
    return recode_startup(in, out, SG_MPA_REQUEST);
}

static size_t recode_reply(struct sg_span in, uint8_t *out)
{
    return recode_startup(in, out, SG_MPA_REPLY);
}

static recode *const codecs[] = {
    recode_ddp,       recode_read_req,   recode_atomic_req,  recode_atomic_resp,
    recode_flush_req, recode_verify_req, recode_verify_resp, recode_atomic_write_req,
    recode_terminate, recode_request,    recode_reply
};

static uint64_t parsed[G_N_ELEMENTS(codecs)], refused, framed, noticed, segments, no_segments;

/* Copies the octets to a block of their size, so that a sanitizer sees reads past the end. */
static void check(unsigned codec, const uint8_t *octets, size_t len)
{
    uint8_t first[ROOM], second[ROOM];
    uint8_t *copy = g_memdup2(octets, len);
    size_t n = codecs[codec](sg_span_of(copy, len), first), again;

    g_free(copy);
    if (!n) {
        refused++;
        return;
    }
    parsed[codec]++;
    again = codecs[codec](sg_span_of(first, n), second);
    sg_assert(again == n && !memcmp(first, second, n));
}

static void change(struct fuzz_in *in, uint8_t *octets, size_t *len)
{
    unsigned n;

    for (n = fuzz_below(in, CHANGES); n && *len; n--) {
        octets[fuzz_u16(in) % *len] = fuzz_u8(in);
    }
    if (fuzz_rarely(in, 8)) {
        *len = fuzz_u16(in) % (*len + 1);
    }
}

static void header(struct fuzz_in *in)
{
    unsigned codec = fuzz_below(in, G_N_ELEMENTS(codecs));
    size_t len = fuzz_u8(in);
    const uint8_t *octets = fuzz_bytes(in, &len);

    check(codec, octets, len);
}

/* A valid startup frame, changed a little, because random octets never contain its key. */
static void startup(struct fuzz_in *in)
{
    unsigned bits = fuzz_u8(in);
    struct sg_mpa_frame f = {
        .kind = bits & 1 ? SG_MPA_REPLY : SG_MPA_REQUEST,
        .markers = bits & 2,
        .crc = bits & 4,
        .reject = (bits & 9) == 9,
        .rev = (bits >> 4 & 3) ? SG_MPA_REV_2 : SG_MPA_REV_1,
        .p2p = bits & 64,
    };
    uint8_t frame[HEADER_MAX];
    size_t len = fuzz_u16(in) % (SG_MPA_PD_V2_MAX + 1);

    f.enhanced = f.rev == SG_MPA_REV_2 && bits & 128;
    f.p2p &= f.enhanced;
    f.rtr = f.p2p ? fuzz_below(in, SG_MPA_RTR_ALL + 1) : 0;
    f.ird = f.enhanced ? fuzz_u16(in) & SG_MPA_DEPTH_MAX : 0;
    f.ord = f.enhanced ? fuzz_u16(in) & SG_MPA_DEPTH_MAX : 0;
    f.pd.p = fuzz_bytes(in, &len);
    f.pd.len = len;
    len = sg_mpa_frame_emit(&f, frame);
    change(in, frame, &len);
    check(G_N_ELEMENTS(codecs) - (bits & 1 ? 1 : 2), frame, len);
}

/* An FPDU framed at any position is parsed unchanged; a changed bit is detected. */
static void fpdu(struct fuzz_in *in)
{
    static uint8_t wire[SG_FPDU_WIRE_MAX], scratch[SG_ULPDU_FIELD_MAX];
    uint32_t pos = fuzz_u32(in) & ~3u, bit = fuzz_u32(in);
    unsigned flags = fuzz_below(in, 4);
    size_t len = fuzz_u16(in) % ULPDU_MAX;
    struct sg_span part = { .p = fuzz_bytes(in, &len) };
    struct sg_fpdu out;
    size_t n;

    part.len = len;
    n = sg_fpdu_emit(wire, pos, flags, &part, 1);
    sg_assert(n == sg_fpdu_wire_len(len, pos, flags));
    sg_assert(sg_fpdu_parse(sg_span_of(wire, n), pos, flags, scratch, &out) == SG_WIRE_OK);
    sg_assert(out.wire_len == n && out.ulpdu.len == len && !memcmp(out.ulpdu.p, part.p, len));
    sg_assert(sg_fpdu_parse(sg_span_of(wire, bit % n), pos, flags, scratch, &out) == SG_WIRE_MORE);
    framed++;
    /* Markers are not checked here, and a changed length would move the CRC. */
    if (flags == SG_FPDU_CRC_ON && bit / 8 % n >= SG_FPDU_LEN_FIELD) {
        wire[bit / 8 % n] ^= (uint8_t)(1 << bit % 8);
        sg_assert(sg_fpdu_parse(sg_span_of(wire, n), pos, flags, scratch, &out) == SG_WIRE_BAD_CRC);
        noticed++;
    }
}

/* Emits a segment that was parsed; this gives the same octets, but for padding and CRC. */
static void recode_segment(const struct sg_rt_seg *seg, const uint8_t *octets)
{
    uint8_t head[SG_RT_HDR_MAX], tail[SG_RT_TAIL_MAX];
    size_t len = sg_rt_hdr_len(seg->h.type), whole;
    size_t seg_len = len + seg->control.len + seg->payload.len;
    size_t n = sg_rt_tail_emit(tail, seg_len, sg_crc32m(0, octets, seg_len));

    sg_assert(sg_rt_hdr_emit(&seg->h, seg_len, head) == len);
    head[18] = octets[18]; /* reserved */
    sg_assert(!memcmp(head, octets, len));
    sg_assert(seg->control.p == octets + len && seg->payload.p == octets + len + seg->control.len);
    sg_assert(sg_rt_peek(sg_span_of(octets, 4), &whole) == SG_WIRE_OK && whole == seg_len + n);
    sg_assert(sg_rt_type_name(seg->h.type));
}

/* A segment of RDMA/TCP of 2000, changed a little or arbitrary, with the right CRC or another. */
static void rdma_tcp(struct fuzz_in *in)
{
    unsigned bits = fuzz_u8(in);
    size_t len = fuzz_u8(in), whole;
    uint8_t first[HEADER_MAX] = { 0 };
    struct sg_rt_setup setup;
    struct sg_rt_seg seg;
    uint8_t *copy;

    memcpy(first + 4, fuzz_bytes(in, &len), len);
    first[0] = bits & 7 ? SG_RT_VERSION : fuzz_u8(in);
    first[1] = (uint8_t)(bits & 3) | fuzz_u8(in);
    first[3] = bits & 8 ? (uint8_t)(len + 4) : fuzz_u8(in);
    first[19] &= bits & 16 ? 3 : 0xff;
    len += 16;
    if (bits & 32 && sg_rt_peek(sg_span_of(first, len), &whole) == SG_WIRE_OK) {
        sg_put_be32(first + whole - 4, sg_crc32m(0, first, whole - 4));
        len = whole;
    }
    copy = g_memdup2(first, len);
    if (sg_rt_parse(sg_span_of(copy, len), bits & 64, &seg) == SG_WIRE_OK) {
        segments++;
        recode_segment(&seg, copy);
        if (sg_rt_setup_parse(seg.control, &setup) == SG_WIRE_OK) {
            sg_rt_setup_emit(&setup, first);
        }
    } else {
        no_segments++;
    }
    g_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = { data, size };

    while (in.len) {
        switch (fuzz_below(&in, 8)) {
        case 0:
        case 1:
            fpdu(&in);
            break;
        case 2:
            startup(&in);
            break;
        case 3:
            rdma_tcp(&in);
            break;
        default:
            header(&in);
        }
    }
    return 0;
}

bool fuzz_reached(char *buf, size_t len)
{
    uint64_t all = refused && framed && noticed && segments && no_segments;
    size_t at = 0;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(codecs); i++) {
        at += (size_t)snprintf(buf + at, len - at, "%" PRIu64 " ", parsed[i]);
        all *= !!parsed[i];
    }
    snprintf(buf + at, len - at,
             "parsed, refused %" PRIu64 " framed %" PRIu64 " noticed %" PRIu64 " segments %" PRIu64
             " and %" PRIu64 " others",
             refused, framed, noticed, segments, no_segments);
    return all;
}
