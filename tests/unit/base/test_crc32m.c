/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/crc32m.h: against the definition as a division of polynomials, bit by bit. */
#include "base/bytes.h"
#include "base/crc32m_impl.h"
#include "base/prng.h"
#include "tap.h"

static uint32_t reversed(uint32_t v)
{
    uint32_t r = 0;
    unsigned i;

    for (i = 0; i < 32; i++) {
        r |= (v >> i & 1) << (31 - i);
    }
    return r;
}

/* The generator without x^32, from its coefficients. */
static uint32_t generator(void)
{
    static const uint8_t powers[] = { 31, 30, 28, 27, 25, 24, 22, 21, 20, 16, 10, 9, 6, 0 };
    uint32_t g = 0;
    unsigned i;

    for (i = 0; i < SG_ARRAY_SIZE(powers); i++) {
        g |= UINT32_C(1) << powers[i];
    }
    return g;
}

/* The remainder of the message times x^32; the start value complements its first 32 bits. */
static uint32_t divided(const uint8_t *p, size_t n, uint32_t g)
{
    uint32_t rest = UINT32_MAX;
    unsigned bit;

    for (; n; n--, p++) {
        for (bit = 0; bit < 8; bit++) { /* the least significant bit of an octet goes first */
            bool top = (rest >> 31) ^ (*p >> bit & 1);

            rest = rest << 1 ^ (top ? g : 0);
        }
    }
    return ~reversed(rest);
}

static void generators(void)
{
    T_EQ_U64(generator(), 0xdb710641);
    /* The mirror image of Ethernet's, with x^32 and 1 at the ends. */
    T_EQ_U64(reversed(0x04c11db7) << 1 | 1, 0xdb710641);
    T_EQ_U64(divided((const uint8_t *)"123456789", 9, 0x04c11db7), 0xcbf43926);
}

static void check_value(void)
{
    T_SHOWS("WIL-17") {
        T_EQ_U64(divided((const uint8_t *)"123456789", 9, generator()), 0xe07e661e);
        T_EQ_U64(sg_crc32m(0, "123456789", 9), 0xe07e661e);
    }
    T_EQ_U64(sg_crc32m(0, NULL, 0), 0);
}

static void lengths_and_alignments(void)
{
    uint8_t buf[400], copy[400];
    uint64_t seed = 1;
    size_t i, at, n;

    for (i = 0; i < sizeof(buf); i++) {
        buf[i] = (uint8_t)sg_prng(&seed);
    }
    for (at = 0; at < 9; at++) {
        for (n = 0; n + at < sizeof(buf); n++) {
            uint32_t want = divided(buf + at, n, generator());

            T_CONTEXT("%zu octets at %zu", n, at);
            T_EQ_U64(sg_crc32m(0, buf + at, n), want);
            T_EQ_U64(sg_crc32m(sg_crc32m(0, buf + at, n / 3), buf + at + n / 3, n - n / 3), want);
            memset(copy, 0xa5, sizeof(copy));
            T_EQ_U64(sg_crc32m_copy(0, copy, buf + at, n), want);
            T_EQ_MEM(copy, buf + at, n);
            T_EQ_U64(copy[n], 0xa5);
        }
    }
}

struct code {
    const char *name;
    uint32_t (*raw)(uint32_t crc, const uint8_t *p, size_t n);
    size_t min;
    bool usable;
};

/* Each way to compute it that this CPU has, also where another one is faster. */
static void every_code(void)
{
    const struct code codes[] = {
        { "tables", sg_crc32m_tables, 0, true },
#if defined(__x86_64__)
        { "x86", sg_crc32m_x86, SG_CRC32M_X86_MIN, sg_crc32m_x86_usable() },
        { "avx512", sg_crc32m_avx512, SG_CRC32M_X86_MIN, sg_crc32m_avx512_usable() },
#endif
    };
    uint8_t buf[1200];
    uint64_t seed = 3;
    size_t i, n;

    for (i = 0; i < sizeof(buf); i++) {
        buf[i] = (uint8_t)sg_prng(&seed);
    }
    sg_crc32m(0, buf, 1);
    for (n = 0; n < sizeof(buf); n++) {
        size_t at = n % 7, len = n - SG_MIN(n, at);
        uint32_t want = divided(buf + at, len, generator());

        for (i = 0; i < SG_ARRAY_SIZE(codes); i++) {
            T_CONTEXT("%s, %zu octets", codes[i].name, len);
            if (codes[i].usable && len >= codes[i].min) {
                T_EQ_U64(~codes[i].raw(UINT32_MAX, buf + at, len), want);
            }
        }
    }
}

static void powers(void)
{
    T_EQ_U64(sg_crc32_xpow(SG_CRC32M_POLY, 0), reversed(1));
    T_EQ_U64(sg_crc32_xpow(SG_CRC32M_POLY, 31), reversed(UINT32_C(1) << 31));
    T_EQ_U64(sg_crc32_xpow(SG_CRC32M_POLY, 32), reversed(generator()));
    T_EQ_U64(sg_crc32_xpow(SG_CRC32M_POLY, 33), reversed(generator() << 1 ^ generator()));
}

static void long_copy(void)
{
    static uint8_t from[20000], to[20000];
    uint64_t seed = 2;
    size_t i;

    for (i = 0; i < sizeof(from); i++) {
        from[i] = (uint8_t)sg_prng(&seed);
    }
    T_EQ_U64(sg_crc32m_copy(0, to, from, sizeof(from)), divided(from, sizeof(from), generator()));
    T_EQ_MEM(to, from, sizeof(from));
}

static const struct t_case cases[] = {
    { "the generator is the mirror image of Ethernet's", generators },
    { "the check value", check_value },
    { "every length and alignment, in one piece and in two", lengths_and_alignments },
    { "by each code that the CPU has", every_code },
    { "powers of x modulo the generator", powers },
    { "copies longer than a block", long_copy },
};

T_MAIN(cases)
