/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn hardware contract: integer types.
 *
 * Included first by every other header of this folder.  Three environments include the same files:
 * the Linux kernel (which has __le32 itself), Linux user space (the provider and tests, through
 * <linux/types.h>) and the device model, firmware and other systems, which have neither.  All
 * multi-octet fields in guest memory are little-endian.
 */
#ifndef STAGHORN_TYPES_H
#define STAGHORN_TYPES_H

#if defined(__KERNEL__)
#include <linux/types.h>
#elif defined(__linux__)
#include <linux/types.h>
#else
#include <stdint.h>
typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef uint16_t __le16;
typedef uint32_t __le32;
typedef uint64_t __le64;
typedef uint16_t __be16;
#endif

#include "layout.h"

#endif
