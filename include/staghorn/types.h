/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn hardware contract: integer types and layout assertions.
 *
 * Included first by every other header of this folder.  Three worlds include the very same files:
 * the Linux kernel (which brings __le32 and static_assert itself), Linux user space (the provider
 * and tests, through <linux/types.h>) and the device model, firmware and other systems, which have
 * neither.  All multi-octet fields in guest memory are little-endian.
 */
#ifndef STAGHORN_TYPES_H
#define STAGHORN_TYPES_H

#if defined(__KERNEL__)
#include <linux/types.h>
#include <linux/build_bug.h>
#include <linux/stddef.h>
#elif defined(__linux__)
#include <linux/types.h>
#include <stddef.h>
#include <assert.h>
#else
#include <stdint.h>
#include <stddef.h>
#include <assert.h>
typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef uint16_t __le16;
typedef uint32_t __le32;
typedef uint64_t __le64;
typedef uint16_t __be16;
#endif

#define SG_ASSERT_SIZE(type, size) \
    static_assert(sizeof(type) == (size), "size of " #type)
#define SG_ASSERT_OFFSET(type, member, offset) \
    static_assert(offsetof(type, member) == (offset), "offset of " #type "." #member)

#endif
