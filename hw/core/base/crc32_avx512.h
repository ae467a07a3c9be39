/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CRCs of 32 bits by multiplications without carry, 64 octets in a register, whatever the
 * generator.
 *
 * No reduction takes place inside the loop.  Each lane of 128 bits is carried forward over the
 * distance D in bits to the data that it is added to: its low half, which comes first in the
 * message, times x^(D + 64), and its high half times x^D, both less the factor x that the product
 * of two reflected values brings.  Four registers of four lanes hide the latency of the
 * multiplication.  At the end the 16 lanes are carried onto the last one.
 */
#ifndef SG_BASE_CRC32_AVX512_H
#define SG_BASE_CRC32_AVX512_H

#include "base/crc32_poly.h"

#if defined(__x86_64__)

#include <immintrin.h>

enum {
    SG_CRC32_WIDE_MIN = 512, /* octets from which on it is worth it; at least one round */
    SG_CRC32_WIDE_ROUND = 256,
};

/* Pairs of multipliers (low half, high half), one for each lane of a register. */
struct sg_crc32_wide {
    uint64_t round[8]; /* over SG_CRC32_WIDE_ROUND octets */
    uint64_t by_192[8], by_128[8], by_64[8];
    uint64_t lanes[8]; /* lanes 0, 1, 2 onto lane 3; lane 3 is unused */
};

static inline void sg_crc32_wide_multipliers(uint32_t poly, uint64_t quad[8], uint64_t octets)
{
    for (int lane = 0; lane < 4; lane++) {
        sg_crc32_lane_multipliers(poly, &quad[2 * lane], octets);
    }
}

static inline void sg_crc32_wide_setup(struct sg_crc32_wide *k, uint32_t poly)
{
    sg_crc32_wide_multipliers(poly, k->round, SG_CRC32_WIDE_ROUND);
    sg_crc32_wide_multipliers(poly, k->by_192, 192);
    sg_crc32_wide_multipliers(poly, k->by_128, 128);
    sg_crc32_wide_multipliers(poly, k->by_64, 64);
    for (int lane = 0; lane < 3; lane++) {
        sg_crc32_lane_multipliers(poly, &k->lanes[2 * lane], 16 * (3 - (uint64_t)lane));
    }
}

static inline bool sg_crc32_wide_usable(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

#define SG_CRC32_WIDE __attribute__((target("sse4.2,pclmul,avx512f,vpclmulqdq")))

/* @data plus @x carried over the distance of the multipliers @k. */
SG_CRC32_WIDE
static inline __m512i sg_crc32_wide_fold(__m512i x, __m512i k, __m512i data)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00),
                                     _mm512_clmulepi64_epi128(x, k, 0x11), data, 0x96);
}

/* 16 octets of a register.  (The unmasked form makes gcc 12 warn about its own header.) */
#define SG_CRC32_LANE(x, i) _mm512_maskz_extracti32x4_epi32(0xf, (x), (i))

/*
 * The octets of @p as far as they fill registers: 16 octets with the same raw CRC, if it starts
 * with 0.  @n is SG_CRC32_WIDE_MIN or more, and then how many octets are left, fewer than 64.
 */
SG_CRC32_WIDE
static inline __m128i sg_crc32_wide(const struct sg_crc32_wide *w, uint32_t crc, const uint8_t *p,
                                    size_t *n)
{
    __m512i a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 64);
    __m512i c = _mm512_loadu_si512(p + 128), d = _mm512_loadu_si512(p + 192);
    __m512i k = _mm512_loadu_si512(w->round), moved;
    __m128i sum;

    a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    p += SG_CRC32_WIDE_ROUND;
    *n -= SG_CRC32_WIDE_ROUND;
    for (; *n >= SG_CRC32_WIDE_ROUND; *n -= SG_CRC32_WIDE_ROUND, p += SG_CRC32_WIDE_ROUND) {
        a = sg_crc32_wide_fold(a, k, _mm512_loadu_si512(p));
        b = sg_crc32_wide_fold(b, k, _mm512_loadu_si512(p + 64));
        c = sg_crc32_wide_fold(c, k, _mm512_loadu_si512(p + 128));
        d = sg_crc32_wide_fold(d, k, _mm512_loadu_si512(p + 192));
    }
    d = sg_crc32_wide_fold(a, _mm512_loadu_si512(w->by_192), d);
    d = sg_crc32_wide_fold(b, _mm512_loadu_si512(w->by_128), d);
    k = _mm512_loadu_si512(w->by_64);
    d = sg_crc32_wide_fold(c, k, d);
    for (; *n >= 64; *n -= 64, p += 64) {
        d = sg_crc32_wide_fold(d, k, _mm512_loadu_si512(p));
    }
    moved = sg_crc32_wide_fold(d, _mm512_loadu_si512(w->lanes), _mm512_setzero_si512());
    sum = _mm_xor_si128(SG_CRC32_LANE(moved, 0), SG_CRC32_LANE(moved, 1));
    /* Lane 3 is where the others were moved to; its own multipliers do not matter. */
    sum = _mm_xor_si128(sum, SG_CRC32_LANE(moved, 2));
    return _mm_xor_si128(sum, SG_CRC32_LANE(d, 3));
}

#endif /* __x86_64__ */

#endif /* SG_BASE_CRC32_AVX512_H */
