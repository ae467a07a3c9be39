/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/bytes.h and base/span.h */
#include "base/span.h"
#include "tap.h"

static void loads_and_stores(void)
{
    static const uint8_t in[9] = { 0xee, 1, 2, 3, 4, 5, 6, 7, 8 };
    uint8_t out[10];

    /* From an odd address on purpose. */
    T_EQ_U64(sg_get_be16(in + 1), 0x0102);
    T_EQ_U64(sg_get_be32(in + 1), 0x01020304);
    T_EQ_U64(sg_get_be64(in + 1), 0x0102030405060708);
    T_EQ_U64(sg_get_le16(in + 1), 0x0201);
    T_EQ_U64(sg_get_le32(in + 1), 0x04030201);
    T_EQ_U64(sg_get_le64(in + 1), 0x0807060504030201);

    memset(out, 0xa5, sizeof(out));
    sg_put_be64(out + 1, 0x0102030405060708);
    T_EQ_MEM(out + 1, in + 1, 8);
    T_EQ_U64(out[0], 0xa5);
    T_EQ_U64(out[9], 0xa5);
    memset(out, 0xa5, sizeof(out));
    sg_put_le64(out + 1, 0x0807060504030201);
    T_EQ_MEM(out + 1, in + 1, 8);
    memset(out, 0xa5, sizeof(out));
    sg_put_be32(out + 1, 0x01020304);
    T_EQ_MEM(out + 1, in + 1, 4);
    T_EQ_U64(out[5], 0xa5);
    sg_put_le32(out + 1, 0x04030201);
    T_EQ_MEM(out + 1, in + 1, 4);
    memset(out, 0xa5, sizeof(out));
    sg_put_be16(out + 1, 0x0102);
    T_EQ_MEM(out + 1, in + 1, 2);
    T_EQ_U64(out[3], 0xa5);
    sg_put_le16(out + 1, 0x0201);
    T_EQ_MEM(out + 1, in + 1, 2);
}

static void alignment(void)
{
    T_FALSE(sg_is_pow2(0));
    T_TRUE(sg_is_pow2(1));
    T_TRUE(sg_is_pow2((uint64_t)1 << 63));
    T_FALSE(sg_is_pow2(12));
    T_EQ_U64(sg_align_up(0, 4096), 0);
    T_EQ_U64(sg_align_up(1, 4096), 4096);
    T_EQ_U64(sg_align_up(4096, 4096), 4096);
    T_EQ_U64(sg_align_up(UINT64_MAX, 4096), 0);
    T_EQ_U64(sg_align_down(4097, 4096), 4096);
    T_TRUE(sg_is_aligned(8192, 4096));
    T_FALSE(sg_is_aligned(8193, 4096));
    T_EQ_U64(SG_MIN(3, 4), 3);
    T_EQ_U64(SG_MAX(3, 4), 4);
}

static void ranges(void)
{
    static const struct {
        uint64_t off, len, size;
        bool ok;
    } t[] = {
        { 0, 0, 0, true },
        { 0, 1, 0, false },
        { 1, 0, 0, false },
        { 10, 0, 10, true },
        { 9, 1, 10, true },
        { 9, 2, 10, false },
        { UINT64_MAX, 1, UINT64_MAX, false },
        { UINT64_MAX, 2, 10, false },
        { 2, UINT64_MAX, 10, false },
        { 0, UINT64_MAX, UINT64_MAX, true },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(t); i++) {
        T_CONTEXT("row %zu", i);
        T_EQ_INT(sg_range_ok(t[i].off, t[i].len, t[i].size), t[i].ok);
    }
}

static void span_get(void)
{
    static const uint8_t octets[4] = { 1, 2, 3, 4 };
    struct sg_span s = sg_span_of(octets, sizeof(octets));

    T_TRUE(sg_span_get(s, 0, 4) == octets);
    T_TRUE(sg_span_get(s, 3, 1) == octets + 3);
    T_TRUE(sg_span_get(s, 4, 0) == octets + 4);
    T_NULL(sg_span_get(s, 4, 1));
    T_NULL(sg_span_get(s, 5, 0));
    T_NULL(sg_span_get(s, 1, 4));
    T_NULL(sg_span_get(s, SIZE_MAX, 2));
    T_NULL(sg_span_get(s, 2, SIZE_MAX));
    T_NULL(sg_span_get(SG_SPAN_NONE, 0, 0));
}

static void span_parts(void)
{
    static const uint8_t octets[4] = { 1, 2, 3, 4 };
    struct sg_span s = sg_span_of(octets, sizeof(octets));

    T_TRUE(sg_span_from(s, 1).p == octets + 1);
    T_EQ_U64(sg_span_from(s, 1).len, 3);
    T_EQ_U64(sg_span_from(s, 4).len, 0);
    T_EQ_U64(sg_span_from(s, SIZE_MAX).len, 0);
    T_EQ_U64(sg_span_from(SG_SPAN_NONE, 1).len, 0);
    T_EQ_U64(sg_span_head(s, 2).len, 2);
    T_EQ_U64(sg_span_head(s, 9).len, 4);
}

static const struct t_case cases[] = {
    { "bytes loads and stores in both orders", loads_and_stores },
    { "bytes alignment helpers", alignment },
    { "bytes range check cannot overflow", ranges },
    { "span accessor gives nothing outside", span_get },
    { "span parts", span_parts },
};

T_MAIN(cases)
