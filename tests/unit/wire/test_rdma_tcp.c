/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wire/rdma_tcp.h: segments of RDMA/TCP of 2000, every field, every length. */
#include "base/crc32m.h"
#include "hex.h"
#include "tap.h"
#include "wire/rdma_tcp.h"

/* Builds a whole segment; returns its octets on the wire. */
static size_t build(const struct sg_rt_hdr *h, const void *control, const void *payload, size_t n,
                    uint8_t *out)
{
    size_t words = (size_t)h->clen * SG_RT_WORD;
    size_t seg_len = sg_rt_hdr_len(h->type) + words + n;
    size_t at = sg_rt_hdr_emit(h, seg_len, out);

    if (words) {
        memcpy(out + at, control, words);
    }
    if (n) {
        memcpy(out + at + words, payload, n);
    }
    return seg_len + sg_rt_tail_emit(out + seg_len, seg_len, sg_crc32m(0, out, seg_len));
}

struct row {
    const char *name;
    const char *octets; /* without the CRC */
    struct sg_rt_hdr h;
    const char *payload;
};

/* Each field has a value of its own. */
static const struct row rows[] = {
    { "Send",
      "010c001b 0123456789abcdef 00000010 ffff0000 00000000 61626300",
      { .version = 1,
        .type = SG_RT_SEND,
        .begin = true,
        .end = true,
        .conn_id = 0x0123456789abcdef,
        .number = 0x10,
        .order = SG_RT_AT_ONCE },
      "abc" },
    { "Send in the middle, solicited, with control data",
      "01400025 1112131415161718 21222324 31320002 41424344 7172737475767778 6162636465 000000",
      { .version = 1,
        .type = SG_RT_SEND,
        .res = SG_RT_RES_SE,
        .conn_id = 0x1112131415161718,
        .number = 0x21222324,
        .order = 0x3132,
        .clen = 2,
        .data_offset = 0x41424344 },
      "abcde" },
    { "Write, first segment",
      "01090026 1112131415161718 21222324 31320001 41424344 51525354 61626364 71727374 6162 0000",
      { .version = 1,
        .type = SG_RT_WRITE,
        .begin = true,
        .conn_id = 0x1112131415161718,
        .number = 0x21222324,
        .order = 0x3132,
        .clen = 1,
        .buffer_id = 0x41424344,
        .buffer_offset = 0x51525354,
        .rdma_len = 0x61626364 },
      "ab" },
    { "Read Request",
      "010e0024 1112131415161718 21222324 31320001 41424344 51525354 61626364 71727374",
      { .version = 1,
        .type = SG_RT_READ_REQ,
        .begin = true,
        .end = true,
        .conn_id = 0x1112131415161718,
        .number = 0x21222324,
        .order = 0x3132,
        .clen = 1,
        .buffer_id = 0x41424344,
        .buffer_offset = 0x51525354,
        .rdma_len = 0x61626364 },
      "" },
    { "Read Response, last segment, all reserved bits",
      "02f7001c 1112131415161718 21222324 31320000 41424344 61626364",
      { .version = 2,
        .type = SG_RT_READ_RESP,
        .res = SG_RT_RES_MASK,
        .end = true,
        .conn_id = 0x1112131415161718,
        .number = 0x21222324,
        .order = 0x3132,
        .data_offset = 0x41424344 },
      "abcd" },
};

static void check_row(const struct row *r)
{
    static const char control[] = "qrstuvwx";
    uint8_t want[80], out[80];
    struct sg_span v = hex(r->octets, want, sizeof(want) - 4);
    struct sg_rt_seg seg;
    size_t n;

    T_CONTEXT("%s", r->name);
    sg_put_be32(want + v.len, sg_crc32m(0, want, v.len));
    v.len += 4;
    memset(out, 0xa5, sizeof(out));
    n = build(&r->h, control, r->payload, strlen(r->payload), out);
    T_SHOWS("WIL-02") {
        T_EQ_U64(n, v.len);
        T_EQ_MEM(out, want, v.len);
        T_EQ_U64(out[n], 0xa5);
    }
    T_EQ_INT(sg_rt_parse(v, true, &seg), SG_WIRE_OK);
    T_EQ_MEM(&seg.h, &r->h, sizeof(seg.h));
    T_EQ_U64(seg.control.len, r->h.clen * 4);
    T_EQ_MEM(seg.control.p, control, seg.control.len);
    T_SHOWS("WIL-04") {
        T_EQ_U64(seg.payload.len, strlen(r->payload));
        T_EQ_MEM(seg.payload.p, r->payload, seg.payload.len);
    }
}

static void every_type(void)
{
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        check_row(&rows[i]);
    }
}

static void golden(void)
{
    uint8_t want[40], out[40];
    struct sg_span v = hex("010c001b 01234567 89abcdef 00000010 ffff0000 00000000 61626300"
                           "59def35a",
                           want, sizeof(want));

    T_EQ_U64(build(&rows[0].h, NULL, "abc", 3, out), v.len);
    T_EQ_MEM(out, want, v.len);
}

/* Each length of payload: padding, start of the next segment, and what is too short. */
static void lengths(void)
{
    static const char payload[] = "abcdefghijklmnop";
    const struct sg_rt_hdr h = { .version = 1, .type = SG_RT_SEND };
    uint8_t out[64];
    struct sg_rt_seg seg;
    size_t n, whole, peeked, cut;

    for (n = 0; n < 16; n++) {
        T_CONTEXT("%zu octets", n);
        whole = build(&h, NULL, payload, n, out);
        T_SHOWS("WIL-20") {
            T_EQ_U64(whole, (24 + n + 3) / 4 * 4 + 4);
            T_EQ_INT(sg_rt_peek(sg_span_of(out, 4), &peeked), SG_WIRE_OK);
            T_EQ_U64(peeked, whole);
        }
        for (cut = 0; cut < whole; cut++) {
            uint8_t *copy = malloc(cut + 1); /* an own block, so that sanitizers see overruns */

            memcpy(copy + 1, out, cut);
            T_EQ_INT(sg_rt_parse(sg_span_of(copy + 1, cut), true, &seg), SG_WIRE_MORE);
            free(copy);
        }
        T_EQ_INT(sg_rt_parse(sg_span_of(out, sizeof(out)), true, &seg), SG_WIRE_OK);
        T_EQ_U64(seg.payload.len, n);
    }
    T_EQ_U64(sg_rt_wire_len(SG_RT_SEG_MAX), SG_RT_WIRE_MAX);
}

static void padding(void)
{
    const struct sg_rt_hdr h = { .version = 1, .type = SG_RT_SEND };
    struct sg_rt_seg seg;
    uint8_t out[40];
    size_t whole;

    memset(out, 0xa5, sizeof(out));
    whole = build(&h, NULL, "a", 1, out);
    T_SHOWS("WIL-16") {
        T_EQ_MEM(out + 25, "\0\0\0", 3);
        /* Another value, with the CRC that belongs to it. */
        out[26] = 0x77;
        T_EQ_INT(sg_rt_parse(sg_span_of(out, whole), true, &seg), SG_WIRE_BAD_CRC);
        sg_put_be32(out + 28, sg_crc32m(0, out, 28));
        T_EQ_INT(sg_rt_parse(sg_span_of(out, whole), true, &seg), SG_WIRE_OK);
        T_EQ_U64(seg.payload.len, 1);
    }
}

static void damage(void)
{
    struct sg_rt_seg seg;
    uint8_t out[80];
    size_t whole = build(&rows[2].h, "qrst", "ab", 2, out), bit;

    for (bit = 0; bit < whole * 8; bit++) {
        if (bit / 8 == 2 || bit / 8 == 3) {
            continue; /* Segment Length moves the CRC */
        }
        T_CONTEXT("bit %zu", bit);
        out[bit / 8] ^= (uint8_t)(1 << bit % 8);
        T_SHOWS("WIL-17") {
            T_EQ_INT(sg_rt_parse(sg_span_of(out, whole), true, &seg), SG_WIRE_BAD_CRC);
        }
        out[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    T_EQ_INT(sg_rt_parse(sg_span_of(out, whole), true, &seg), SG_WIRE_OK);
}

/* Segment Length against the header's own and the control data's. */
static void too_short(void)
{
    static const struct {
        const char *octets; /* the rest are zeros */
        enum sg_wire_err err;
    } t[] = {
        { "010c0000", SG_WIRE_BAD_LENGTH },
        { "010c0017", SG_WIRE_BAD_LENGTH },
        { "010c0018", SG_WIRE_OK },
        { "0109001f", SG_WIRE_BAD_LENGTH }, /* a Write's header has 32 octets */
        { "01090020", SG_WIRE_OK },
        { "010c0018 0000000000000000 00000000 00000001", SG_WIRE_BAD_LENGTH }, /* CLEN 1 */
        { "010c001c 0000000000000000 00000000 00000001", SG_WIRE_OK },
        { "010c001b 0000000000000000 00000000 00000001", SG_WIRE_BAD_LENGTH },
        { "010c0418 0000000000000000 00000000 000000ff", SG_WIRE_OK }, /* 24 + 255 * 4 = 1044 */
        { "010c0413 0000000000000000 00000000 000000ff", SG_WIRE_BAD_LENGTH },
    };
    static uint8_t buf[1100];
    struct sg_rt_seg seg;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(t); i++) {
        T_CONTEXT("%s", t[i].octets);
        memset(buf, 0, sizeof(buf));
        hex(t[i].octets, buf, sizeof(buf));
        T_EQ_INT(sg_rt_parse(sg_span_of(buf, sizeof(buf)), false, &seg), t[i].err);
    }
    memset(buf, 0, sizeof(buf));
    hex("010e0024", buf, sizeof(buf));
    T_SHOWS("WIL-18") {
        T_EQ_INT(sg_rt_parse(sg_span_of(buf, 40), false, &seg), SG_WIRE_BAD_LENGTH);
    }
    buf[19] = 1; /* then it is control data */
    T_EQ_INT(sg_rt_parse(sg_span_of(buf, 40), false, &seg), SG_WIRE_OK);
}

static void setup(void)
{
    uint8_t want[8], out[9];
    struct sg_span v = hex("01020000 31323334", want, sizeof(want));
    struct sg_rt_setup s;
    size_t n;

    T_EQ_INT(sg_rt_setup_parse(v, &s), SG_WIRE_OK);
    T_EQ_U64(s.version, 1);
    T_EQ_U64(s.kind, SG_RT_ACCEPT);
    T_EQ_U64(s.ird, 0x3132);
    T_EQ_U64(s.ord, 0x3334);
    memset(out, 0xa5, sizeof(out));
    T_EQ_U64(sg_rt_setup_emit(&s, out), 8);
    T_EQ_MEM(out, want, 8);
    T_EQ_U64(out[8], 0xa5);
    for (n = 0; n < 8; n++) {
        T_EQ_INT(sg_rt_setup_parse(sg_span_of(out, n), &s), SG_WIRE_SHORT);
    }
    T_EQ_INT(sg_rt_setup_parse(sg_span_of(out, 9), &s), SG_WIRE_BAD_LENGTH);
}

static void names(void)
{
    T_EQ_STR(sg_rt_type_name(SG_RT_SEND), "Send");
    T_EQ_STR(sg_rt_type_name(SG_RT_WRITE), "Write");
    T_EQ_STR(sg_rt_type_name(SG_RT_READ_REQ), "Read Request");
    T_EQ_STR(sg_rt_type_name(SG_RT_READ_RESP), "Read Response");
}

static const struct t_case cases[] = {
    { "every field of every type", every_type },
    { "the golden segment of the document", golden },
    { "every length of payload, whole and cut short", lengths },
    { "padding", padding },
    { "a changed bit is noticed", damage },
    { "Segment Length too short for header and control data", too_short },
    { "control data of setup", setup },
    { "names", names },
};

T_MAIN(cases)
