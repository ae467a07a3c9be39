/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CRC32c: portable code, concatenation, and the choice of the fastest
 * implementation.  crc32_poly.h has the arithmetic.
 */
#include <glib.h>

#include "base/crc32c_impl.h"

/*
 * Octets that sg_crc32c_copy() handles at a time: long enough for the wide
 * implementations, short enough that the second pass finds them in L1.
 */
#define COPY_BLOCK 4096

static struct sg_crc32_slices slices;

uint32_t sg_crc32c_concat(uint32_t a, uint32_t b, uint64_t n)
{
    /*
     * The order of x divides 2^32 - 1, so 8n may be taken modulo that; the
     * inversions at both ends cancel out.
     */
    return sg_crc32_mul_mod(SG_CRC32C_POLY, a,
                            sg_crc32_xpow(SG_CRC32C_POLY, 8 * (n % UINT32_MAX))) ^
           b;
}

static bool portable_usable(void)
{
    return true;
}

static uint32_t portable(uint32_t crc, const uint8_t *p, size_t n)
{
    return ~sg_crc32_by_slices(&slices, ~crc, p, n);
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
        sg_crc32_slices_init(SG_CRC32C_POLY, &slices);
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
