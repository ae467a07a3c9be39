/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What CRCs of 32 bits share, whatever their generator: arithmetic, and eight octets at a time by
 * tables.
 *
 * A CRC is a polynomial over GF(2) modulo a generator.  A 32-bit value stands for one with its bits
 * reflected: bit i is the coefficient of x^(31-i).  @poly is the generator in this form, without
 * x^32.  Appending n octets to a message multiplies its CRC by x^(8n) and adds the CRC of the
 * octets.  A CRC register is "raw" here: not inverted.
 */
#ifndef SG_BASE_CRC32_POLY_H
#define SG_BASE_CRC32_POLY_H

#include "base/bytes.h"

#define SG_CRC32_X0 0x80000000u /* the polynomial 1 */

struct sg_crc32_slices {
    uint32_t of[8][256]; /* [k][b]: what octet b adds if k octets of zeros follow */
};

/* a * b modulo the generator. */
static inline uint32_t sg_crc32_mul_mod(uint32_t poly, uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (; a; a <<= 1, b = (b >> 1) ^ (b & 1 ? poly : 0)) {
        product ^= a & SG_CRC32_X0 ? b : 0;
    }
    return product;
}

/*
 * x^@e modulo the generator.  Its product with a CRC moves that over e bits of zeros.  Not inline,
 * because a setup computes many and is in no hurry.
 */
static __attribute__((noinline, unused)) uint32_t sg_crc32_xpow(uint32_t poly, uint64_t e)
{
    uint32_t result = SG_CRC32_X0, square = SG_CRC32_X0 >> 1; /* 1, x */

    for (; e; e >>= 1, square = sg_crc32_mul_mod(poly, square, square)) {
        result = e & 1 ? sg_crc32_mul_mod(poly, result, square) : result;
    }
    return result;
}

/*
 * Multipliers that carry the two halves of 16 octets over a distance of @octets: x^(D + 64) for the
 * half that comes first in the message, x^D for the other one, D in bits.  Both are one factor x
 * less, which the product of two reflected values brings.
 */
static inline void sg_crc32_lane_multipliers(uint32_t poly, uint64_t pair[2], uint64_t octets)
{
    pair[0] = (uint64_t)sg_crc32_xpow(poly, 8 * octets + 63) << 32;
    pair[1] = (uint64_t)sg_crc32_xpow(poly, 8 * octets - 1) << 32;
}

static inline void sg_crc32_slices_init(uint32_t poly, struct sg_crc32_slices *s)
{
    uint32_t(*slice)[256] = s->of;

    for (unsigned b = 0; b < 256; b++) {
        uint32_t crc = b;

        for (unsigned bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (crc & 1 ? poly : 0);
        }
        slice[0][b] = crc;
    }
    for (unsigned k = 1; k < 8; k++) {
        for (unsigned b = 0; b < 256; b++) {
            uint32_t crc = slice[k - 1][b];

            slice[k][b] = (crc >> 8) ^ slice[0][crc & 0xff];
        }
    }
}

/* Continues a raw CRC. */
static inline uint32_t sg_crc32_by_slices(const struct sg_crc32_slices *s, uint32_t crc,
                                          const uint8_t *p, size_t n)
{
    const uint32_t(*slice)[256] = s->of;

    for (; n >= 8; n -= 8, p += 8) {
        uint32_t low = sg_get_le32(p) ^ crc, high = sg_get_le32(p + 4);

        crc = slice[7][low & 0xff] ^ slice[6][low >> 8 & 0xff] ^ slice[5][low >> 16 & 0xff] ^
              slice[4][low >> 24] ^ slice[3][high & 0xff] ^ slice[2][high >> 8 & 0xff] ^
              slice[1][high >> 16 & 0xff] ^ slice[0][high >> 24];
    }
    for (; n; n--, p++) {
        crc = (crc >> 8) ^ slice[0][(crc ^ *p) & 0xff];
    }
    return crc;
}

#endif
