/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/crc32c.h: check values, and every implementation against the definition. */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "tap.h"

#define BUF_LEN (96 * 1024)

static uint8_t buf[BUF_LEN + 64];
static uint8_t copy[BUF_LEN + 64];

/* xorshift: the same octets in every run. */
static uint64_t next_random(void)
{
    static uint64_t x = 0x9e3779b97f4a7c15;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

static void fill_buf(void)
{
    for (size_t i = 0; i < sizeof(buf); i++) {
        buf[i] = (uint8_t)(next_random() >> 32);
    }
}

/* The definition, one bit at a time. */
static uint32_t by_definition(uint32_t crc, const uint8_t *p, size_t n)
{
    crc = ~crc;
    for (; n; n--, p++) {
        crc ^= *p;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
        }
    }
    return ~crc;
}

static void check_values(void)
{
    static const struct {
        uint8_t first, step;
        uint8_t wire[4];
    } t[] = {
        { 0x00, 0, { 0xaa, 0x36, 0x91, 0x8a } },
        { 0xff, 0, { 0x43, 0xab, 0xa8, 0x62 } },
        { 0x00, 1, { 0x4e, 0x79, 0xdd, 0x46 } },
        { 0x1f, 0xff, { 0x5c, 0xdb, 0x3f, 0x11 } },
    };
    uint8_t wire[4];

    T_EQ_U64(sg_crc32c(0, "123456789", 9), 0xe3069283);
    sg_put_le32(wire, sg_crc32c(0, "123456789", 9));
    T_EQ_MEM(wire, "\x83\x92\x06\xe3", 4);
    for (size_t i = 0; i < SG_ARRAY_SIZE(t); i++) {
        uint8_t m[32];

        for (size_t j = 0; j < sizeof(m); j++) {
            m[j] = (uint8_t)(t[i].first + j * t[i].step);
        }
        T_CONTEXT("32 octets from %02x", t[i].first);
        sg_put_le32(wire, sg_crc32c(0, m, sizeof(m)));
        T_EQ_MEM(wire, t[i].wire, 4);
    }
}

static void empty_input(void)
{
    T_EQ_U64(sg_crc32c(0, NULL, 0), 0);
    T_EQ_U64(sg_crc32c(0x12345678, NULL, 0), 0x12345678);
    T_EQ_U64(sg_crc32c_copy(0x12345678, copy, buf, 0), 0x12345678);
}

static void one_implementation(const struct sg_crc32c_impl *impl)
{
    /* Around the lengths at which the code paths change. */
    static const size_t lens[] = { 383,  384,  385,  511,  512,   513,   575,   576,
                                   767,  768,  1023, 1024, 1500,  3071,  3072,  3073,
                                   3456, 4096, 8999, 9000, 65535, 65536, 65537, BUF_LEN };
    uint32_t want[1201];

    fill_buf();
    for (size_t align = 0; align < 64; align += 1 + align % 5) {
        want[0] = 0xdeadbeef;
        for (size_t n = 1; n <= 1200; n++) {
            want[n] = by_definition(want[n - 1], buf + align + n - 1, 1);
        }
        for (size_t n = 0; n <= 1200; n++) {
            T_CONTEXT("%s: align %zu len %zu", impl->name, align, n);
            T_EQ_U64(impl->update(0xdeadbeef, buf + align, n), want[n]);
        }
    }
    for (size_t i = 0; i < SG_ARRAY_SIZE(lens); i++) {
        size_t align = i % 7;

        T_CONTEXT("%s: align %zu len %zu", impl->name, align, lens[i]);
        T_EQ_U64(impl->update(0, buf + align, lens[i]), by_definition(0, buf + align, lens[i]));
    }
}

static void implementations(void)
{
    size_t count, tested = 0;
    const struct sg_crc32c_impl *impls = sg_crc32c_impls(&count);

    for (size_t i = 0; i < count; i++) {
        if (!impls[i].usable()) {
            T_NOTE("%s cannot run on this machine", impls[i].name);
            continue;
        }
        T_NOTE("%s", impls[i].name);
        one_implementation(&impls[i]);
        tested++;
    }
    T_TRUE(tested >= 1);
    T_TRUE(sg_crc32c_active()->usable());
}

/* Every bit of a message changes the result: folding loses no lane. */
static void single_bits(void)
{
    size_t count;
    const struct sg_crc32c_impl *impls = sg_crc32c_impls(&count);

    memset(buf, 0, 1300);
    for (size_t i = 0; i < count; i++) {
        if (!impls[i].usable()) {
            continue;
        }
        for (size_t at = 0; at < 1300; at++) {
            buf[at] = (uint8_t)(1 << at % 8);
            T_CONTEXT("%s: octet %zu", impls[i].name, at);
            T_EQ_U64(impls[i].update(0, buf, 1300), by_definition(0, buf, 1300));
            buf[at] = 0;
        }
    }
}

static void chains(void)
{
    uint32_t whole;

    fill_buf();
    whole = sg_crc32c(0, buf, 9000);
    for (size_t cut = 0; cut <= 9000; cut += 1 + cut / 3) {
        T_CONTEXT("cut %zu", cut);
        T_EQ_U64(sg_crc32c(sg_crc32c(0, buf, cut), buf + cut, 9000 - cut), whole);
    }
}

static void concatenates(void)
{
    fill_buf();
    for (size_t cut = 0; cut <= 9000; cut += 1 + cut / 3) {
        uint32_t a = sg_crc32c(0, buf, cut);
        uint32_t b = sg_crc32c(0, buf + cut, 9000 - cut);

        T_CONTEXT("cut %zu", cut);
        T_EQ_U64(sg_crc32c_concat(a, b, 9000 - cut), sg_crc32c(0, buf, 9000));
    }
    /* The period of x: a shift by 2^32 - 1 octets has no effect. */
    T_EQ_U64(sg_crc32c_concat(0x12345678, 0, UINT32_MAX), 0x12345678);
}

static void copies(void)
{
    static const size_t lens[] = { 1, 7, 64, 4095, 4096, 4097, 8192, 12345, 65536 };

    fill_buf();
    for (size_t i = 0; i < SG_ARRAY_SIZE(lens); i++) {
        T_CONTEXT("len %zu", lens[i]);
        memset(copy, 0xa5, sizeof(copy));
        T_EQ_U64(sg_crc32c_copy(0x55, copy + 3, buf + 5, lens[i]),
                 sg_crc32c(0x55, buf + 5, lens[i]));
        T_EQ_MEM(copy + 3, buf + 5, lens[i]);
        T_EQ_U64(copy[2], 0xa5);
        T_EQ_U64(copy[3 + lens[i]], 0xa5);
    }
}

static const struct t_case cases[] = {
    { "crc32c check values", check_values },
    { "crc32c of nothing", empty_input },
    { "crc32c implementations agree with the definition", implementations },
    { "crc32c sees every bit", single_bits },
    { "crc32c chains", chains },
    { "crc32c concatenation without the data", concatenates },
    { "crc32c with copy", copies },
};

T_MAIN(cases)
