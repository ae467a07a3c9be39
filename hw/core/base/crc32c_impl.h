/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by crc32c.c and the files with code for one kind of CPU. */
#ifndef SG_BASE_CRC32C_IMPL_H
#define SG_BASE_CRC32C_IMPL_H

#include "base/crc32_poly.h"
#include "base/crc32c.h"

#define SG_CRC32C_POLY 0x82f63b78u /* reflected 0x1EDC6F41 */

#if defined(__x86_64__)
/* Fill in the folding constants; once, before any of the functions below. */
void sg_crc32c_x86_setup(void);
bool sg_crc32c_sse42_usable(void);
uint32_t sg_crc32c_sse42(uint32_t crc, const uint8_t *p, size_t n);
bool sg_crc32c_avx512_usable(void);
uint32_t sg_crc32c_avx512(uint32_t crc, const uint8_t *p, size_t n);
#endif

#endif /* SG_BASE_CRC32C_IMPL_H */
