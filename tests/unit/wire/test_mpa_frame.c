/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wire/mpa_frame.h: bytes and structures in pairs, stream parsing, bad frames. */
#include "hex.h"
#include "tap.h"
#include "wire/mpa_frame.h"

#define REQ "4d504120 49442052 65712046 72616d65 "
#define REP "4d504120 49442052 65702046 72616d65 "

struct mpa_frame_pair {
    const char *name;
    const char *bytes;
    struct sg_mpa_frame frame;
    const char *pd;
};

/* Frames that this side could send: parse and emit are inverse. */
static const struct mpa_frame_pair pairs[] = {
    { "request v1 plain", REQ "00010000", { .kind = SG_MPA_REQUEST, .rev = 1 }, "" },
    { "request v1 M", REQ "80010000", { .kind = SG_MPA_REQUEST, .rev = 1, .markers = true }, "" },
    { "request v1 C, data",
      REQ "40010003 616263",
      { .kind = SG_MPA_REQUEST, .rev = 1, .crc = true },
      "616263" },
    { "reply v1 R",
      REP "60010000",
      { .kind = SG_MPA_REPLY, .rev = 1, .crc = true, .reject = true },
      "" },
    { "reply v0",
      REP "c0000000",
      { .kind = SG_MPA_REPLY, .rev = 0, .crc = true, .markers = true },
      "" },
    { "request v2 unenhanced",
      REQ "40020000",
      { .kind = SG_MPA_REQUEST, .rev = 2, .crc = true },
      "" },
    { "request v2 A C D",
      REQ "50020004 8004c008",
      { .kind = SG_MPA_REQUEST,
        .rev = 2,
        .crc = true,
        .s_flag = true,
        .enhanced = true,
        .p2p = true,
        .rtr = SG_MPA_RTR_WRITE | SG_MPA_RTR_READ,
        .ird = 4,
        .ord = 8 },
      "" },
    { "reply v2 A B, not negotiated, data",
      REP "10020006 ffff3fff dead",
      { .kind = SG_MPA_REPLY,
        .rev = 2,
        .s_flag = true,
        .enhanced = true,
        .p2p = true,
        .rtr = SG_MPA_RTR_SEND,
        .ird = 0x3fff,
        .ord = 0x3fff },
      "dead" },
    { "reply v2 R, client-server",
      REP "30020004 00010002",
      { .kind = SG_MPA_REPLY,
        .rev = 2,
        .reject = true,
        .s_flag = true,
        .enhanced = true,
        .ird = 1,
        .ord = 2 },
      "" },
};

static void check_frame(const struct sg_mpa_frame *got, const struct sg_mpa_frame *want,
                        struct sg_span pd)
{
    T_EQ_INT(got->kind, want->kind);
    T_EQ_INT(got->markers, want->markers);
    T_EQ_INT(got->crc, want->crc);
    T_EQ_INT(got->reject, want->reject);
    T_EQ_INT(got->s_flag, want->s_flag);
    T_EQ_U64(got->rev, want->rev);
    T_EQ_INT(got->enhanced, want->enhanced);
    T_EQ_INT(got->p2p, want->p2p);
    T_EQ_U64(got->rtr, want->rtr);
    T_EQ_U64(got->ird, want->ird);
    T_EQ_U64(got->ord, want->ord);
    T_EQ_U64(got->pd.len, pd.len);
    T_EQ_MEM(got->pd.p, pd.p, pd.len);
}

static void parse_pairs(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(pairs); i++) {
        uint8_t buf[64], pd_buf[64];
        struct sg_span in = hex(pairs[i].bytes, buf, sizeof(buf));
        struct sg_mpa_frame f;
        size_t used;

        T_CONTEXT("%s", pairs[i].name);
        T_EQ_INT(sg_mpa_frame_parse(in, pairs[i].frame.kind, &f, &used), SG_WIRE_OK);
        T_EQ_U64(used, in.len);
        check_frame(&f, &pairs[i].frame, hex(pairs[i].pd, pd_buf, sizeof(pd_buf)));
    }
}

static void emit_pairs(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(pairs); i++) {
        uint8_t buf[64], pd_buf[64], out[64];
        struct sg_span want = hex(pairs[i].bytes, buf, sizeof(buf));
        struct sg_mpa_frame f = pairs[i].frame;

        T_CONTEXT("%s", pairs[i].name);
        f.pd = hex(pairs[i].pd, pd_buf, sizeof(pd_buf));
        memset(out, 0xa5, sizeof(out));
        T_EQ_U64(sg_mpa_frame_len(&f), want.len);
        T_EQ_U64(sg_mpa_frame_emit(&f, out), want.len);
        T_EQ_MEM(out, want.p, want.len);
        T_EQ_U64(out[want.len], 0xa5);
    }
}

static void octet_by_octet(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(pairs); i++) {
        uint8_t buf[64];
        struct sg_span in = hex(pairs[i].bytes, buf, sizeof(buf));
        struct sg_mpa_frame f;
        size_t used;

        for (size_t n = 0; n < in.len; n++) {
            T_CONTEXT("%s, %zu octets", pairs[i].name, n);
            T_EQ_INT(sg_mpa_frame_parse(sg_span_head(in, n), pairs[i].frame.kind, &f, &used),
                     SG_WIRE_MORE);
            T_EQ_U64(used, 0);
        }
        /* What follows belongs to Full Operation. */
        buf[in.len] = 0x77;
        T_EQ_INT(sg_mpa_frame_parse(sg_span_of(buf, in.len + 1), pairs[i].frame.kind, &f, &used),
                 SG_WIRE_OK);
        T_EQ_U64(used, in.len);
    }
}

static enum sg_wire_err parse_hex(const char *text, enum sg_mpa_kind kind, struct sg_mpa_frame *f)
{
    static uint8_t buf[SG_MPA_FRAME_MAX];
    size_t used;

    return sg_mpa_frame_parse(hex(text, buf, sizeof(buf)), kind, f, &used);
}

static void keys(void)
{
    struct sg_mpa_frame f;
    uint8_t buf[32];
    size_t used;

    T_EQ_INT(parse_hex(REQ "00010000", SG_MPA_REPLY, &f), SG_WIRE_WRONG_ROLE);
    T_EQ_INT(parse_hex(REP "00010000", SG_MPA_REQUEST, &f), SG_WIRE_WRONG_ROLE);
    /* The keys of Request and Reply differ in the tenth octet; nine octets fit both. */
    T_EQ_INT(parse_hex("4d504120 49442052 65", SG_MPA_REPLY, &f), SG_WIRE_MORE);
    T_EQ_INT(parse_hex("4d504120 49442052 6571", SG_MPA_REPLY, &f), SG_WIRE_WRONG_ROLE);
    T_EQ_INT(parse_hex("47", SG_MPA_REQUEST, &f), SG_WIRE_BAD_KEY);
    for (size_t i = 0; i < SG_MPA_KEY_LEN; i++) {
        hex(REQ "00010000", buf, sizeof(buf));
        buf[i] ^= 0x20;
        T_CONTEXT("octet %zu", i);
        T_EQ_INT(sg_mpa_frame_parse(sg_span_of(buf, 20), SG_MPA_REQUEST, &f, &used),
                 SG_WIRE_BAD_KEY);
        T_EQ_INT(sg_mpa_frame_parse(sg_span_of(buf, i + 1), SG_MPA_REQUEST, &f, &used),
                 SG_WIRE_BAD_KEY);
    }
}

static void lengths(void)
{
    static uint8_t buf[SG_MPA_FRAME_MAX];
    struct sg_mpa_frame f;
    size_t used;

    /* Refused by the header alone. */
    T_EQ_INT(parse_hex(REQ "00010201", SG_MPA_REQUEST, &f), SG_WIRE_BAD_LENGTH);
    T_EQ_INT(parse_hex(REQ "0001ffff", SG_MPA_REQUEST, &f), SG_WIRE_BAD_LENGTH);
    for (unsigned n = 0; n < 4; n++) {
        hex(REQ "10020000 00000000", buf, sizeof(buf));
        buf[19] = (uint8_t)n;
        T_CONTEXT("enhanced with %u octets", n);
        T_EQ_INT(sg_mpa_frame_parse(sg_span_of(buf, 24), SG_MPA_REQUEST, &f, &used),
                 SG_WIRE_BAD_LENGTH);
    }
    hex(REQ "00010200", buf, sizeof(buf));
    T_EQ_INT(sg_mpa_frame_parse(sg_span_of(buf, 531), SG_MPA_REQUEST, &f, &used), SG_WIRE_MORE);
    T_EQ_INT(sg_mpa_frame_parse(sg_span_of(buf, 532), SG_MPA_REQUEST, &f, &used), SG_WIRE_OK);
    T_EQ_U64(f.pd.len, 512);
    T_EQ_U64(used, 532);
}

static void largest(void)
{
    static uint8_t pd[SG_MPA_PD_MAX], out[SG_MPA_FRAME_MAX + 1];
    struct sg_mpa_frame f = {
        .kind = SG_MPA_REPLY,
        .rev = 2,
        .enhanced = true,
        .pd = sg_span_of(pd, SG_MPA_PD_V2_MAX),
    };
    struct sg_mpa_frame back;
    size_t used;

    memset(pd, 0x3c, sizeof(pd));
    memset(out, 0xa5, sizeof(out));
    T_EQ_U64(sg_mpa_frame_emit(&f, out), SG_MPA_FRAME_MAX);
    T_EQ_U64(out[SG_MPA_FRAME_MAX], 0xa5);
    T_EQ_INT(sg_mpa_frame_parse(sg_span_of(out, SG_MPA_FRAME_MAX), SG_MPA_REPLY, &back, &used),
             SG_WIRE_OK);
    T_EQ_U64(back.pd.len, SG_MPA_PD_V2_MAX);
    T_EQ_MEM(back.pd.p, pd, SG_MPA_PD_V2_MAX);
}

static void reserved_bits(void)
{
    struct sg_mpa_frame f;

    T_EQ_INT(parse_hex(REQ "4f020000", SG_MPA_REQUEST, &f), SG_WIRE_OK);
    T_TRUE(f.crc && !f.markers && !f.s_flag && !f.enhanced);
    T_EQ_INT(parse_hex(REQ "5f010000", SG_MPA_REQUEST, &f), SG_WIRE_OK);
    T_TRUE(f.crc && !f.markers && !f.enhanced);
    /* R has no meaning in a Request. */
    T_EQ_INT(parse_hex(REQ "20010000", SG_MPA_REQUEST, &f), SG_WIRE_OK);
    T_FALSE(f.reject);
}

static void request_never_rejects(void)
{
    struct sg_mpa_frame f = { .kind = SG_MPA_REQUEST, .rev = 1, .reject = true };
    uint8_t out[SG_MPA_HDR_LEN];

    sg_mpa_frame_emit(&f, out);
    T_EQ_U64(out[16], 0);
}

static void s_needs_revision_2(void)
{
    struct sg_mpa_frame f;

    /* In revision 1 the four octets are private data of the ULP. */
    T_EQ_INT(parse_hex(REQ "10010004 8004c008", SG_MPA_REQUEST, &f), SG_WIRE_OK);
    T_TRUE(f.s_flag && !f.enhanced && !f.p2p);
    T_EQ_U64(f.pd.len, 4);
    T_EQ_U64(f.ird, 0);
}

static void rtr_bits_need_a(void)
{
    struct sg_mpa_frame f;
    uint8_t out[24], want[24];

    T_EQ_INT(parse_hex(REQ "10020004 4004c008", SG_MPA_REQUEST, &f), SG_WIRE_OK);
    T_TRUE(f.enhanced && !f.p2p);
    T_EQ_U64(f.rtr, 0);
    T_EQ_U64(f.ird, 4);
    T_EQ_U64(f.ord, 8);
    f.rtr = SG_MPA_RTR_ALL;
    sg_mpa_frame_emit(&f, out);
    hex(REQ "10020004 00040008", want, sizeof(want));
    T_EQ_MEM(out, want, sizeof(want));
}

static void each_v2_field(void)
{
    static const struct {
        const char *text;
        bool p2p;
        unsigned rtr, ird, ord;
    } t[] = {
        { REQ "10020004 80000000", true, 0, 0, 0 },
        { REQ "10020004 c0000000", true, SG_MPA_RTR_SEND, 0, 0 },
        { REQ "10020004 80008000", true, SG_MPA_RTR_WRITE, 0, 0 },
        { REQ "10020004 80004000", true, SG_MPA_RTR_READ, 0, 0 },
        { REQ "10020004 3fff0000", false, 0, 0x3fff, 0 },
        { REQ "10020004 00003fff", false, 0, 0, 0x3fff },
        { REQ "10020004 ffffffff", true, SG_MPA_RTR_ALL, 0x3fff, 0x3fff },
    };
    struct sg_mpa_frame f;

    for (size_t i = 0; i < SG_ARRAY_SIZE(t); i++) {
        T_CONTEXT("%s", t[i].text);
        T_EQ_INT(parse_hex(t[i].text, SG_MPA_REQUEST, &f), SG_WIRE_OK);
        T_EQ_INT(f.p2p, t[i].p2p);
        T_EQ_U64(f.rtr, t[i].rtr);
        T_EQ_U64(f.ird, t[i].ird);
        T_EQ_U64(f.ord, t[i].ord);
    }
}

static const struct t_case cases[] = {
    { "startup frames from bytes", parse_pairs },
    { "startup frames to bytes", emit_pairs },
    { "startup frame arriving octet by octet", octet_by_octet },
    { "wrong keys and wrong roles", keys },
    { "impossible private data lengths", lengths },
    { "largest frame", largest },
    { "reserved bits are ignored", reserved_bits },
    { "a request does not carry R", request_never_rejects },
    { "S counts from revision 2 on", s_needs_revision_2 },
    { "RTR bits only with A", rtr_bits_need_a },
    { "each field of the enhanced header", each_v2_field },
};

T_MAIN(cases)
