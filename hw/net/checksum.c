/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Internet checksum (RFC 1071), computed over every octet sent and received.
 *
 * 64-bit lanes add 32-bit halves, so that no carry is lost before 2^32 rounds.  The sum is over
 * 16-bit words in memory order, whatever the byte order of the machine (RFC 1071, section 2.B).
 */
#include <stdbool.h>
#include <string.h>

#include "arch/cc.h"

enum { BLOCK = 64 };

typedef uint64_t lanes __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) uint64_t sum_of_blocks(const uint8_t *p, size_t blocks)
{
    lanes even_low = { 0 }, even_high = { 0 }, odd_low = { 0 }, odd_high = { 0 };
    lanes even, odd;

    for (; blocks; blocks--, p += BLOCK) {
        memcpy(&even, p, sizeof(even));
        memcpy(&odd, p + sizeof(even), sizeof(odd));
        even_low += even & 0xffffffffu;
        even_high += even >> 32;
        odd_low += odd & 0xffffffffu;
        odd_high += odd >> 32;
    }
    even_low += even_high + odd_low + odd_high;
    return even_low[0] + even_low[1] + even_low[2] + even_low[3];
}

static uint64_t sum_plain(const uint8_t *p, size_t blocks)
{
    return sum_of_blocks(p, blocks);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t sum_avx2(const uint8_t *p, size_t blocks)
{
    return sum_of_blocks(p, blocks);
}

static bool has_avx2(void)
{
    static int known = -1;

    if (known < 0) {
        known = __builtin_cpu_supports("avx2") ? 1 : 0;
    }
    return known == 1;
}
#endif

static uint64_t sum_blocks(const uint8_t *p, size_t blocks)
{
#if defined(__x86_64__)
    if (has_avx2()) {
        return sum_avx2(p, blocks);
    }
#endif
    return sum_plain(p, blocks);
}

uint16_t sg_net_chksum(const void *data, int len)
{
    const uint8_t *p = data;
    size_t n = len > 0 ? (size_t)len : 0;
    uint64_t sum = 0;
    uint32_t word;
    uint16_t half;

    if (n >= BLOCK) {
        sum = sum_blocks(p, n / BLOCK);
        p += n / BLOCK * BLOCK;
        n %= BLOCK;
    }
    for (; n >= sizeof(word); n -= sizeof(word), p += sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        sum += word;
    }
    if (n >= sizeof(half)) {
        memcpy(&half, p, sizeof(half));
        sum += half;
        n -= sizeof(half);
        p += sizeof(half);
    }
    if (n) { /* an odd octet is the first half of a word */
        half = 0;
        memcpy(&half, p, 1);
        sum += half;
    }
    sum = (sum & 0xffffffffu) + (sum >> 32);
    sum = (sum & 0xffffffffu) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}
