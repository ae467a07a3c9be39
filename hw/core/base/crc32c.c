/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CRC32c: portable code, arithmetic on CRCs, and the choice of the fastest
 * implementation.
 *
 * A CRC is a polynomial over GF(2) modulo P; a 32-bit value stands for one
 * with its bits reflected, so bit i is the coefficient of x^(31-i).  Appending
 * n octets to a message multiplies its CRC by x^(8n) and adds the CRC of the
 * octets.  The CPU-specific files use this one identity in several ways.
 */
#include <glib.h>

#include "base/bytes.h"
#include "base/crc32c_impl.h"

#define POLY 0x82f63b78u /* reflected 0x1EDC6F41 */
#define X0 0x80000000u   /* the polynomial 1 */

/*
 * Octets that sg_crc32c_copy() handles at a time: long enough for the wide
 * implementations, short enough that the second pass finds them in L1.
 */
#define COPY_BLOCK 4096

/* slice[k][b]: CRC contribution of octet b followed by k zero octets. */
static uint32_t slice[8][256];

/* a * b mod P. */
static uint32_t mul_mod(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    while (a) {
        if (a & X0) {
            product ^= b;
        }
        a <<= 1;
        b = (b >> 1) ^ (b & 1 ? POLY : 0);
    }
    return product;
}

uint32_t sg_crc32c_xpow(uint64_t e)
{
    uint32_t result = X0;
    uint32_t square = X0 >> 1; /* x */

    for (; e; e >>= 1) {
        if (e & 1) {
            result = mul_mod(result, square);
        }
        square = mul_mod(square, square);
    }
    return result;
}

uint32_t sg_crc32c_concat(uint32_t a, uint32_t b, uint64_t n)
{
    /*
     * The order of x divides 2^32 - 1, so 8n may be taken modulo that; the
     * inversions at both ends cancel out.
     */
    return mul_mod(a, sg_crc32c_xpow(8 * (n % UINT32_MAX))) ^ b;
}

static void slice_setup(void)
{
    for (unsigned b = 0; b < 256; b++) {
        uint32_t crc = b;

        for (unsigned bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (crc & 1 ? POLY : 0);
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

static bool portable_usable(void)
{
    return true;
}

static uint32_t portable(uint32_t crc, const uint8_t *p, size_t n)
{
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t lo = sg_get_le32(p) ^ crc;
        uint32_t hi = sg_get_le32(p + 4);

        crc = slice[7][lo & 0xff] ^ slice[6][lo >> 8 & 0xff] ^ slice[5][lo >> 16 & 0xff] ^
              slice[4][lo >> 24] ^ slice[3][hi & 0xff] ^ slice[2][hi >> 8 & 0xff] ^
              slice[1][hi >> 16 & 0xff] ^ slice[0][hi >> 24];
    }
    for (; n; n--, p++) {
        crc = (crc >> 8) ^ slice[0][(crc ^ *p) & 0xff];
    }
    return ~crc;
}

static const struct sg_crc32c_impl impls[] = {
#if defined(__x86_64__)
    { "avx512", sg_crc32c_avx512_usable, sg_crc32c_avx512 },
    { "sse4.2", sg_crc32c_sse42_usable, sg_crc32c_sse42 },
#endif
    { "portable", portable_usable, portable },
};

/* Set once; all threads would choose the same. */
static const struct sg_crc32c_impl *active;

static const struct sg_crc32c_impl *choose(void)
{
    static gsize done;
    size_t i;

    if (g_once_init_enter(&done)) {
        slice_setup();
#if defined(__x86_64__)
        sg_crc32c_x86_setup();
#endif
        for (i = 0; !impls[i].usable(); i++) {
            /* the last one always is */
        }
        __atomic_store_n(&active, &impls[i], __ATOMIC_RELEASE);
        g_once_init_leave(&done, 1);
    }
    return __atomic_load_n(&active, __ATOMIC_ACQUIRE);
}

const struct sg_crc32c_impl *sg_crc32c_active(void)
{
    const struct sg_crc32c_impl *impl = __atomic_load_n(&active, __ATOMIC_ACQUIRE);

    return __builtin_expect(impl != NULL, 1) ? impl : choose();
}

const struct sg_crc32c_impl *sg_crc32c_impls(size_t *count)
{
    choose();
    *count = SG_ARRAY_SIZE(impls);
    return impls;
}

uint32_t sg_crc32c(uint32_t crc, const void *p, size_t n)
{
    return sg_crc32c_active()->update(crc, p, n);
}

uint32_t sg_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
    const struct sg_crc32c_impl *impl = sg_crc32c_active();
    const uint8_t *from = src;
    uint8_t *to = dst;

    /*
     * The CRC is taken of the copy: the source may be guest memory that
     * changes meanwhile, and the CRC has to match what is sent.
     */
    while (n) {
        size_t part = SG_MIN(n, (size_t)COPY_BLOCK);

        memcpy(to, from, part);
        crc = impl->update(crc, to, part);
        to += part;
        from += part;
        n -= part;
    }
    return crc;
}
