/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CRC-32 of RDMA/TCP of 2000 on x86-64, by multiplications without carry.
 *
 * As in crc32c_x86.c: 16 octets in a register are carried forward over a distance of D bits to the
 * octets that they are added to.  The half that comes first in the message is multiplied by
 * x^(D + 64), the other one by x^D; one factor x less, which the reflected product brings.  Four
 * registers hide the latency of the multiplication.  With AVX-512 a register has 64 octets
 * (crc32_avx512.h).  What is left, 16 octets, goes through the tables: there is no instruction that
 * reduces it modulo this generator.
 */
#include "base/crc32_avx512.h"
#include "base/crc32m_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define PCLMUL __attribute__((target("sse2,pclmul")))

enum { LANE = 16, LANES = 4, ROUND = LANE * LANES };

/* Multipliers for the two halves of a register, by the number of lanes that it moves. */
static uint64_t over[LANES + 1][2];

static struct sg_crc32_wide wide;

bool sg_crc32m_x86_usable(void)
{
    return __builtin_cpu_supports("pclmul");
}

void sg_crc32m_x86_setup(void)
{
    for (unsigned lanes = 1; lanes <= LANES; lanes++) {
        sg_crc32_lane_multipliers(SG_CRC32M_POLY, over[lanes], (uint64_t)LANE * lanes);
    }
    sg_crc32_wide_setup(&wide, SG_CRC32M_POLY);
}

bool sg_crc32m_avx512_usable(void)
{
    return sg_crc32m_x86_usable() && sg_crc32_wide_usable();
}

PCLMUL
static inline __m128i load(const void *p)
{
    return _mm_loadu_si128(p);
}

/* @data plus @x carried over the distance of the multipliers @k. */
PCLMUL
static inline __m128i fold(__m128i x, __m128i k, __m128i data)
{
    __m128i first = _mm_clmulepi64_si128(x, k, 0x00), second = _mm_clmulepi64_si128(x, k, 0x11);

    return _mm_xor_si128(_mm_xor_si128(first, second), data);
}

PCLMUL
uint32_t sg_crc32m_x86(uint32_t crc, const uint8_t *p, size_t n)
{
    __m128i lane[LANES], k = load(over[LANES]);
    uint8_t rest[LANE];

    for (unsigned i = 0; i < LANES; i++) {
        lane[i] = load(p + (size_t)LANE * i);
    }
    lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128((int)crc));
    for (p += ROUND, n -= ROUND; n >= ROUND; p += ROUND, n -= ROUND) {
        for (unsigned i = 0; i < LANES; i++) {
            lane[i] = fold(lane[i], k, load(p + (size_t)LANE * i));
        }
    }
    for (unsigned i = 0; i + 1 < LANES; i++) {
        lane[LANES - 1] = fold(lane[i], load(over[LANES - 1 - i]), lane[LANES - 1]);
    }
    k = load(over[1]);
    for (; n >= LANE; p += LANE, n -= LANE) {
        lane[LANES - 1] = fold(lane[LANES - 1], k, load(p));
    }
    _mm_storeu_si128((__m128i *)rest, lane[LANES - 1]);
    return sg_crc32m_tables(sg_crc32m_tables(0, rest, LANE), p, n);
}

SG_CRC32_WIDE
uint32_t sg_crc32m_avx512(uint32_t crc, const uint8_t *p, size_t n)
{
    uint8_t rest[LANE];
    size_t left = n;

    if (n < SG_CRC32_WIDE_MIN) {
        return sg_crc32m_x86(crc, p, n);
    }
    _mm_storeu_si128((__m128i *)rest, sg_crc32_wide(&wide, crc, p, &left));
    return sg_crc32m_tables(sg_crc32m_tables(0, rest, LANE), p + (n - left), left);
}

#endif /* __x86_64__ */
