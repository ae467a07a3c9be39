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
 * AVX-512: crc32_avx512.h leaves 16 octets, which the crc32 instruction reduces.
 */
#include "base/crc32_avx512.h"
#include "base/crc32c_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* Octets per stretch of the two three-way loops. */
#define STRETCH_LONG 1024
#define STRETCH_SHORT 128

/* Multipliers for a move over one and over two stretches. */
struct stretch {
    uint32_t over_one;
    uint32_t over_two;
};

static struct stretch stretch_long, stretch_short;

static struct sg_crc32_wide wide;

static uint32_t stretch_multiplier(uint64_t octets)
{
    return sg_crc32_xpow(SG_CRC32C_POLY, 8 * octets - 33);
}

void sg_crc32c_x86_setup(void)
{
    stretch_long.over_one = stretch_multiplier(STRETCH_LONG);
    stretch_long.over_two = stretch_multiplier(2 * STRETCH_LONG);
    stretch_short.over_one = stretch_multiplier(STRETCH_SHORT);
    stretch_short.over_two = stretch_multiplier(2 * STRETCH_SHORT);
    sg_crc32_wide_setup(&wide, SG_CRC32C_POLY);
}

bool sg_crc32c_sse42_usable(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

bool sg_crc32c_avx512_usable(void)
{
    return sg_crc32c_sse42_usable() && sg_crc32_wide_usable();
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

SG_CRC32_WIDE
uint32_t sg_crc32c_avx512(uint32_t crc, const uint8_t *p, size_t n)
{
    size_t left = n;
    __m128i sum;

    if (n < SG_CRC32_WIDE_MIN) {
        return sg_crc32c_sse42(crc, p, n);
    }
    sum = sg_crc32_wide(&wide, ~crc, p, &left);
    crc = (uint32_t)_mm_crc32_u64(_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(sum)),
                                  (uint64_t)_mm_extract_epi64(sum, 1));
    return ~sse42_raw(crc, p + (n - left), left);
}

#endif /* __x86_64__ */
