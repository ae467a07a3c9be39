/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CRC-32 with the generator 0xDB710641, whose most significant bit is the
 * coefficient of x^31.  Octets enter with their least significant bit first, so
 * the register is kept reflected: bit 31 - i belongs to x^i.
 *
 * Eight octets at a time by eight tables, and for more of them what crc32m_x86.c has: CPUs have no
 * instruction for this generator, but one for products of polynomials.
 */
#include <glib.h>

#include "base/bytes.h"
#include "base/crc32m_impl.h"

#define POLY 0x82608edbu /* reflected 0xDB710641 */
#define X0 0x80000000u   /* the polynomial 1 */
#define COPY_BLOCK 4096  /* so that the second pass finds the octets in L1 */

/* slice[k][b]: what octet b adds if k octets of zeros follow. */
static uint32_t slice[8][256];

static bool fast; /* the CPU can do what crc32m_x86.c wants */

/* a * b modulo the generator. */
static uint32_t mul_mod(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (; a; a <<= 1, b = (b >> 1) ^ (b & 1 ? POLY : 0)) {
        product ^= a & X0 ? b : 0;
    }
    return product;
}

uint32_t sg_crc32m_xpow(uint64_t e)
{
    uint32_t result = X0, square = X0 >> 1; /* 1, x */

    for (; e; e >>= 1, square = mul_mod(square, square)) {
        result = e & 1 ? mul_mod(result, square) : result;
    }
    return result;
}

static void setup(void)
{
    static gsize done;
    unsigned b, k, bit;

    if (!g_once_init_enter(&done)) {
        return;
    }
    for (b = 0; b < 256; b++) {
        uint32_t crc = b;

        for (bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (crc & 1 ? POLY : 0);
        }
        slice[0][b] = crc;
    }
    for (k = 1; k < 8; k++) {
        for (b = 0; b < 256; b++) {
            uint32_t crc = slice[k - 1][b];

            slice[k][b] = (crc >> 8) ^ slice[0][crc & 0xff];
        }
    }
#if defined(__x86_64__)
    sg_crc32m_x86_setup();
    fast = sg_crc32m_x86_usable();
#endif
    g_once_init_leave(&done, 1);
}

uint32_t sg_crc32m_tables(uint32_t crc, const uint8_t *p, size_t n)
{
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

uint32_t sg_crc32m(uint32_t crc, const void *p, size_t n)
{
    setup();
#if defined(__x86_64__)
    if (fast && n >= SG_CRC32M_X86_MIN) {
        return ~sg_crc32m_x86(~crc, p, n);
    }
#endif
    return ~sg_crc32m_tables(~crc, p, n);
}

uint32_t sg_crc32m_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
    const uint8_t *from = src;
    uint8_t *to = dst;

    /* Of the copy: the source may be guest memory that changes meanwhile. */
    while (n) {
        size_t part = SG_MIN(n, (size_t)COPY_BLOCK);

        memcpy(to, from, part);
        crc = sg_crc32m(crc, to, part);
        to += part;
        from += part;
        n -= part;
    }
    return crc;
}
