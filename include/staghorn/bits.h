/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn hardware interface library: numbers to and from the byte order of guest memory.
 *
 * In the kernel these are the kernel's own functions, whose types sparse checks; elsewhere the
 * compiler tells the byte order of the machine.
 */
#ifndef STAGHORN_BITS_H
#define STAGHORN_BITS_H

#include "types.h"

#if defined(__KERNEL__)
#include <asm/byteorder.h>
#define sg_to_le16(x) cpu_to_le16(x)
#define sg_to_le32(x) cpu_to_le32(x)
#define sg_to_le64(x) cpu_to_le64(x)
#define sg_from_le16(x) le16_to_cpu(x)
#define sg_from_le32(x) le32_to_cpu(x)
#define sg_from_le64(x) le64_to_cpu(x)
#else

#if defined(__CHECKER__)
#define SG_FORCE __attribute__((force))
#else
#define SG_FORCE
#endif

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define SG_LE(bits, x) __builtin_bswap##bits(x)
#else
#define SG_LE(bits, x) (x)
#endif

static inline __le16 sg_to_le16(__u16 x)
{
    return (SG_FORCE __le16)SG_LE(16, x);
}

static inline __le32 sg_to_le32(__u32 x)
{
    return (SG_FORCE __le32)SG_LE(32, x);
}

static inline __le64 sg_to_le64(__u64 x)
{
    return (SG_FORCE __le64)SG_LE(64, x);
}

static inline __u16 sg_from_le16(__le16 x)
{
    return SG_LE(16, (SG_FORCE __u16)x);
}

static inline __u32 sg_from_le32(__le32 x)
{
    return SG_LE(32, (SG_FORCE __u32)x);
}

static inline __u64 sg_from_le64(__le64 x)
{
    return SG_LE(64, (SG_FORCE __u64)x);
}

#endif

#endif
