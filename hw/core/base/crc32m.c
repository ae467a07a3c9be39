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

#include "base/crc32m_impl.h"

#define COPY_BLOCK 4096 /* so that the second pass finds the octets in L1 */

static struct sg_crc32_slices slices;

#if defined(__x86_64__)
/* What the CPU can do of crc32m_x86.c; NULL: nothing. */
static uint32_t (*fast)(uint32_t crc, const uint8_t *p, size_t n);
#endif

static void setup(void)
{
    static gsize done;

    if (!g_once_init_enter(&done)) {
        return;
    }
    sg_crc32_slices_init(SG_CRC32M_POLY, &slices);
#if defined(__x86_64__)
    sg_crc32m_x86_setup();
    fast = sg_crc32m_avx512_usable() ? sg_crc32m_avx512
           : sg_crc32m_x86_usable()  ? sg_crc32m_x86
                                     : NULL;
#endif
    g_once_init_leave(&done, 1);
}

uint32_t sg_crc32m_tables(uint32_t crc, const uint8_t *p, size_t n)
{
    return sg_crc32_by_slices(&slices, crc, p, n);
}

uint32_t sg_crc32m(uint32_t crc, const void *p, size_t n)
{
    setup();
#if defined(__x86_64__)
    if (fast && n >= SG_CRC32M_X86_MIN) {
        return ~fast(~crc, p, n);
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
