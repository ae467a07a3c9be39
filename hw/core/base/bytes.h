/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Octets and integers: unaligned loads and stores in a stated byte order,
 * alignment, small arithmetic, and the assertion used for our own mistakes.
 *
 * All accessors take pointers of any alignment and touch exactly the octets
 * that their name says.  None of them checks bounds; see span.h for that.
 */
#ifndef SG_BASE_BYTES_H
#define SG_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SG_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define SG_MIN(a, b) ((a) < (b) ? (a) : (b))
#define SG_MAX(a, b) ((a) > (b) ? (a) : (b))

/* @ptr to the structure of @type whose field @member is at @ptr. */
#define sg_container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

/*
 * sg_assert: states what this code itself guarantees.  It is never used on
 * anything that a guest or a peer chose.  It is always compiled in: a faulty
 * adapter that continued would corrupt guest memory.
 */
#define sg_assert(cond)                                \
    do {                                               \
        if (__builtin_expect(!(cond), 0)) {            \
            sg_assert_fail(#cond, __FILE__, __LINE__); \
        }                                              \
    } while (0)

__attribute__((noreturn, cold)) static inline void sg_assert_fail(const char *cond,
                                                                  const char *file, int line)
{
    fprintf(stderr, "staghorn: %s:%d: assertion failed: %s\n", file, line, cond);
    abort();
}

/* A function for what seldom happens: its callers are laid out as if it never did. */
#define SG_COLD __attribute__((cold, noinline))

/* Powers of two and alignment.  @align must be a power of two. */

static inline bool sg_is_pow2(uint64_t v)
{
    return v && !(v & (v - 1));
}

/* Wraps to 0 when the result does not fit 64 bits. */
static inline uint64_t sg_align_up(uint64_t v, uint64_t align)
{
    return (v + align - 1) & ~(align - 1);
}

static inline uint64_t sg_align_down(uint64_t v, uint64_t align)
{
    return v & ~(align - 1);
}

static inline bool sg_is_aligned(uint64_t v, uint64_t align)
{
    return !(v & (align - 1));
}

/* True if [@off, @off + @len) lies inside [0, @size); no sum can overflow. */
static inline bool sg_range_ok(uint64_t off, uint64_t len, uint64_t size)
{
    return off <= size && len <= size - off;
}

/* Loads and stores. */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SG_SWAP_BE 1
#define SG_SWAP_LE 0
#else
#define SG_SWAP_BE 0
#define SG_SWAP_LE 1
#endif

#define SG_DEFINE_ACCESS(order, bits, swap)                            \
    static inline uint##bits##_t sg_get_##order##bits(const void *p)   \
    {                                                                  \
        uint##bits##_t v;                                              \
                                                                       \
        memcpy(&v, p, sizeof(v));                                      \
        return (swap) ? __builtin_bswap##bits(v) : v;                  \
    }                                                                  \
                                                                       \
    static inline void sg_put_##order##bits(void *p, uint##bits##_t v) \
    {                                                                  \
        v = (swap) ? __builtin_bswap##bits(v) : v;                     \
        memcpy(p, &v, sizeof(v));                                      \
    }

/* sg_get_be16(p), sg_put_be16(p, v), and so on for 32 and 64 bits and le. */
SG_DEFINE_ACCESS(be, 16, SG_SWAP_BE)
SG_DEFINE_ACCESS(be, 32, SG_SWAP_BE)
SG_DEFINE_ACCESS(be, 64, SG_SWAP_BE)
SG_DEFINE_ACCESS(le, 16, SG_SWAP_LE)
SG_DEFINE_ACCESS(le, 32, SG_SWAP_LE)
SG_DEFINE_ACCESS(le, 64, SG_SWAP_LE)

#endif /* SG_BASE_BYTES_H */
