/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wire/ddp.h: bytes and structures in pairs, impossible lengths. */
#include "hex.h"
#include "tap.h"
#include "wire/ddp.h"

struct ddp_pair {
    const char *bytes;
    struct sg_ddp_hdr hdr;
};

static const struct ddp_pair pairs[] = {
    { "c140 01020304 1112131415161718",
      { .tagged = true,
        .last = true,
        .version = 1,
        .ulp_ctrl = 0x40,
        .stag = 0x01020304,
        .to = 0x1112131415161718 } },
    { "8142 ffffffff ffffffffffffffff",
      { .tagged = true, .version = 1, .ulp_ctrl = 0x42, .stag = UINT32_MAX, .to = UINT64_MAX } },
    { "4143 00000000 00000000 00000001 00000000",
      { .last = true, .version = 1, .ulp_ctrl = 0x43, .msn = 1 } },
    { "0146 11223344 a1a2a3a4 b1b2b3b4 c1c2c3c4",
      { .version = 1,
        .ulp_ctrl = 0x46,
        .ulp_word = 0x11223344,
        .qn = 0xa1a2a3a4,
        .msn = 0xb1b2b3b4,
        .mo = 0xc1c2c3c4 } },
    { "c000 00000001 0000000000000002",
      { .tagged = true, .last = true, .version = 0, .stag = 1, .to = 2 } },
    { "43ff 00000000 00000002 ffffffff 00000000",
      { .last = true, .version = 3, .ulp_ctrl = 0xff, .qn = 2, .msn = UINT32_MAX } },
};

static void check_hdr(const struct sg_ddp_hdr *got, const struct sg_ddp_hdr *want)
{
    T_EQ_INT(got->tagged, want->tagged);
    T_EQ_INT(got->last, want->last);
    T_EQ_U64(got->version, want->version);
    T_EQ_U64(got->ulp_ctrl, want->ulp_ctrl);
    T_EQ_U64(got->stag, want->stag);
    T_EQ_U64(got->to, want->to);
    T_EQ_U64(got->ulp_word, want->ulp_word);
    T_EQ_U64(got->qn, want->qn);
    T_EQ_U64(got->msn, want->msn);
    T_EQ_U64(got->mo, want->mo);
}

static void parse_pairs(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(pairs); i++) {
        uint8_t buf[SG_DDP_HDR_MAX];
        struct sg_ddp_hdr h;

        T_CONTEXT("%s", pairs[i].bytes);
        memset(&h, 0xa5, sizeof(h));
        T_EQ_INT(sg_ddp_parse(hex(pairs[i].bytes, buf, sizeof(buf)), &h), SG_WIRE_OK);
        check_hdr(&h, &pairs[i].hdr);
    }
}

static void emit_pairs(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(pairs); i++) {
        uint8_t buf[SG_DDP_HDR_MAX], out[SG_DDP_HDR_MAX + 1];
        struct sg_span want = hex(pairs[i].bytes, buf, sizeof(buf));

        T_CONTEXT("%s", pairs[i].bytes);
        memset(out, 0xa5, sizeof(out));
        T_EQ_U64(sg_ddp_len(pairs[i].hdr.tagged), want.len);
        T_EQ_U64(sg_ddp_emit(&pairs[i].hdr, out), want.len);
        T_EQ_MEM(out, want.p, want.len);
        T_EQ_U64(out[want.len], 0xa5);
    }
}

static void t_flag_decides(void)
{
    static const uint8_t octets[18] = { 0x81 };
    struct sg_ddp_hdr h;

    T_EQ_INT(sg_ddp_parse(sg_span_of(octets, 14), &h), SG_WIRE_OK);
    T_TRUE(h.tagged);
    /* The same fourteen octets without T are too few. */
    T_EQ_INT(sg_ddp_parse(sg_span_of((uint8_t[14]){ 0x01 }, 14), &h), SG_WIRE_SHORT);
    T_FALSE(h.tagged);
}

static void short_headers(void)
{
    struct sg_ddp_hdr h;

    T_EQ_INT(sg_ddp_parse(SG_SPAN_NONE, &h), SG_WIRE_SHORT);
    for (size_t i = 0; i < SG_ARRAY_SIZE(pairs); i++) {
        uint8_t buf[SG_DDP_HDR_MAX];
        struct sg_span in = hex(pairs[i].bytes, buf, sizeof(buf));

        for (size_t n = 0; n < in.len; n++) {
            /* On the heap, so that a read past the end shows under ASan. */
            uint8_t *exact = malloc(n + !n);
            enum sg_wire_err err;

            memcpy(exact, in.p, n);
            err = sg_ddp_parse(sg_span_of(exact, n), &h);
            free(exact);
            T_CONTEXT("%s cut to %zu", pairs[i].bytes, n);
            T_EQ_INT(err, SG_WIRE_SHORT);
        }
    }
}

static void reserved_bits(void)
{
    uint8_t buf[SG_DDP_HDR_MAX];
    struct sg_ddp_hdr h;

    for (size_t i = 0; i < SG_ARRAY_SIZE(pairs); i++) {
        struct sg_span in = hex(pairs[i].bytes, buf, sizeof(buf));

        buf[0] |= 0x3c;
        T_CONTEXT("%s", pairs[i].bytes);
        T_EQ_INT(sg_ddp_parse(in, &h), SG_WIRE_OK);
        check_hdr(&h, &pairs[i].hdr);
        sg_ddp_emit(&h, buf);
        T_EQ_U64(buf[0] & 0x3c, 0);
    }
}

static void payload_follows(void)
{
    uint8_t buf[32];
    struct sg_span in = hex("4143 00000000 00000000 00000001 00000000 6869", buf, sizeof(buf));
    struct sg_ddp_hdr h;

    T_EQ_INT(sg_ddp_parse(in, &h), SG_WIRE_OK);
    T_EQ_U64(sg_span_from(in, sg_ddp_len(h.tagged)).len, 2);
    T_EQ_MEM(sg_span_from(in, sg_ddp_len(h.tagged)).p, "hi", 2);
    in.len -= 2;
    T_EQ_U64(sg_span_from(in, sg_ddp_len(h.tagged)).len, 0);
}

static void names(void)
{
    T_EQ_STR(sg_wire_err_name(SG_WIRE_OK), "ok");
    for (int e = SG_WIRE_OK; e <= SG_WIRE_BAD_MARKER; e++) {
        T_NOT_NULL(sg_wire_err_name(e));
        T_TRUE(strcmp(sg_wire_err_name(e), "unknown") != 0);
    }
    T_EQ_STR(sg_wire_err_name(SG_WIRE_BAD_MARKER + 1), "unknown");
    T_EQ_STR(sg_wire_err_name(99), "unknown");
}

static const struct t_case cases[] = {
    { "DDP headers from bytes", parse_pairs },
    { "DDP headers to bytes", emit_pairs },
    { "the T flag decides the layout", t_flag_decides },
    { "DDP headers cut short", short_headers },
    { "reserved bits", reserved_bits },
    { "DDP payload is what follows the header", payload_follows },
    { "wire error names", names },
};

T_MAIN(cases)
