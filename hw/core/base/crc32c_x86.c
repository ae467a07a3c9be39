/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CRC32c on x86-64.
 *
 * SSE4.2: the crc32 instruction takes 8 octets per cycle but needs three
 * cycles for its result, so three stretches are worked on at a time and then
 * joined: moving a CRC over n octets is a multiplication by x^(8n), which is
 * one PCLMULQDQ.  Its 63-bit product is reduced by the next crc32 instruction,
 * which multiplies by x^32; one more factor x comes from reflection (a product
 * of two reflected 32-bit values ends at bit 62).  So the constant for n
 * octets is x^(8n - 33).
 *
 * AVX-512: no reduction inside the loop at all.  Each 128-bit lane is carried
 * forward over the distance D in bits to the data that it is added to: its low
 * half, which comes first in the message, times x^(D + 64), and its high half
 * times x^D, both less the factor x of reflection.  Four registers of four
 * lanes hide the latency of the multiplication.  At the end the 16 lanes are
 * carried onto the last one, and the crc32 instruction reduces that.
 */
#include "base/crc32c_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* Octets per stretch of the two three-way loops. */
#define STRETCH_LONG 1024
#define STRETCH_SHORT 128

/* Below this many octets (at least one round plus one load) SSE4.2 is as good. */
#define AVX512_MIN 512
#define AVX512_ROUND 256

/* Multipliers for a move over one and over two stretches. */
struct stretch {
    uint32_t over_one;
    uint32_t over_two;
};

static struct stretch stretch_long, stretch_short;

/* Multiplier pairs (low half, high half) of lanes, four of them per register. */
static uint64_t fold_round[8];                        /* over AVX512_ROUND octets */
static uint64_t fold_192[8], fold_128[8], fold_64[8]; /* over so many octets */
static uint64_t fold_lanes[8];                        /* lanes 0, 1, 2 onto lane 3; lane 3 unused */

static uint32_t stretch_multiplier(uint64_t octets)
{
    return sg_crc32_xpow(SG_CRC32C_POLY, 8 * octets - 33);
}

static void register_multipliers(uint64_t quad[8], uint64_t octets)
{
    for (int lane = 0; lane < 4; lane++) {
        sg_crc32_lane_multipliers(SG_CRC32C_POLY, &quad[2 * lane], octets);
    }
}

void sg_crc32c_x86_setup(void)
{
    stretch_long.over_one = stretch_multiplier(STRETCH_LONG);
    stretch_long.over_two = stretch_multiplier(2 * STRETCH_LONG);
    stretch_short.over_one = stretch_multiplier(STRETCH_SHORT);
    stretch_short.over_two = stretch_multiplier(2 * STRETCH_SHORT);

    register_multipliers(fold_round, AVX512_ROUND);
    register_multipliers(fold_192, 192);
    register_multipliers(fold_128, 128);
    register_multipliers(fold_64, 64);
    for (int lane = 0; lane < 3; lane++) {
        sg_crc32_lane_multipliers(SG_CRC32C_POLY, &fold_lanes[2 * lane], 16 * (3 - lane));
    }
}

bool sg_crc32c_sse42_usable(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

bool sg_crc32c_avx512_usable(void)
{
    return sg_crc32c_sse42_usable() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("vpclmulqdq");
}

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

__attribute__((target("sse4.2,pclmul"))) static inline uint64_t clmul32(uint32_t a, uint32_t b)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b), 0);

    return (uint64_t)_mm_cvtsi128_si64(product);
}

/* Three stretches of @len octets from @p on; raw (uninverted) CRC in and out. */
__attribute__((target("sse4.2,pclmul"))) static inline uint32_t
three_stretches(uint32_t crc, const uint8_t *p, size_t len, const struct stretch *k)
{
    uint64_t a = crc, b = 0, c = 0;
    size_t i;

    for (i = 0; i < len - 8; i += 8) {
        a = _mm_crc32_u64(a, load64(p + i));
        b = _mm_crc32_u64(b, load64(p + len + i));
        c = _mm_crc32_u64(c, load64(p + 2 * len + i));
    }
    a = _mm_crc32_u64(a, load64(p + i));
    b = _mm_crc32_u64(b, load64(p + len + i));
    /* The products join the last word of the third stretch to be reduced with it. */
    return (uint32_t)_mm_crc32_u64(c, load64(p + 2 * len + i) ^ clmul32((uint32_t)a, k->over_two) ^
                                          clmul32((uint32_t)b, k->over_one));
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t sse42_raw(uint32_t crc, const uint8_t *p,
                                                                   size_t n)
{
    for (; n >= 3 * STRETCH_LONG; n -= 3 * STRETCH_LONG, p += 3 * STRETCH_LONG) {
        crc = three_stretches(crc, p, STRETCH_LONG, &stretch_long);
    }
    for (; n >= 3 * STRETCH_SHORT; n -= 3 * STRETCH_SHORT, p += 3 * STRETCH_SHORT) {
        crc = three_stretches(crc, p, STRETCH_SHORT, &stretch_short);
    }
    for (; n >= 8; n -= 8, p += 8) {
        crc = (uint32_t)_mm_crc32_u64(crc, load64(p));
    }
    for (; n; n--, p++) {
        crc = _mm_crc32_u8(crc, *p);
    }
    return crc;
}

uint32_t sg_crc32c_sse42(uint32_t crc, const uint8_t *p, size_t n)
{
    return ~sse42_raw(~crc, p, n);
}

#define AVX512 __attribute__((target("sse4.2,pclmul,avx512f,vpclmulqdq")))

/* @data plus @x carried over the distance of the multipliers @k. */
AVX512
static inline __m512i fold(__m512i x, __m512i k, __m512i data)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00),
                                     _mm512_clmulepi64_epi128(x, k, 0x11), data, 0x96);
}

/* 16 octets of a register.  (The unmasked form makes gcc 12 warn about its own header.) */
#define LANE(x, i) _mm512_maskz_extracti32x4_epi32(0xf, (x), (i))

/* CRC of the 64 octets in @x. */
AVX512
static inline uint32_t reduce(__m512i x)
{
    __m512i moved = fold(x, _mm512_loadu_si512(fold_lanes), _mm512_setzero_si512());
    __m128i sum = _mm_xor_si128(LANE(moved, 0), LANE(moved, 1));

    /* Lane 3 is where the others were moved to; its own multipliers do not matter. */
    sum = _mm_xor_si128(sum, LANE(moved, 2));
    sum = _mm_xor_si128(sum, LANE(x, 3));
    return (uint32_t)_mm_crc32_u64(_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(sum)),
                                   (uint64_t)_mm_extract_epi64(sum, 1));
}

AVX512
uint32_t sg_crc32c_avx512(uint32_t crc, const uint8_t *p, size_t n)
{
    __m512i a, b, c, d, k;

    if (n < AVX512_MIN) {
        return sg_crc32c_sse42(crc, p, n);
    }
    a = _mm512_loadu_si512(p);
    b = _mm512_loadu_si512(p + 64);
    c = _mm512_loadu_si512(p + 128);
    d = _mm512_loadu_si512(p + 192);
    a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
    p += AVX512_ROUND;
    n -= AVX512_ROUND;

    k = _mm512_loadu_si512(fold_round);
    for (; n >= AVX512_ROUND; n -= AVX512_ROUND, p += AVX512_ROUND) {
        a = fold(a, k, _mm512_loadu_si512(p));
        b = fold(b, k, _mm512_loadu_si512(p + 64));
        c = fold(c, k, _mm512_loadu_si512(p + 128));
        d = fold(d, k, _mm512_loadu_si512(p + 192));
    }
    d = fold(a, _mm512_loadu_si512(fold_192), d);
    d = fold(b, _mm512_loadu_si512(fold_128), d);
    k = _mm512_loadu_si512(fold_64);
    d = fold(c, k, d);
    for (; n >= 64; n -= 64, p += 64) {
        d = fold(d, k, _mm512_loadu_si512(p));
    }
    return ~sse42_raw(reduce(d), p, n);
}

#endif /* __x86_64__ */
