/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by crc32m.c, the file with code for one kind of CPU, and tests.  The CRC register is
 * "raw" here: not inverted.
 */
#ifndef SG_BASE_CRC32M_IMPL_H
#define SG_BASE_CRC32M_IMPL_H

#include <stdbool.h>

#include "base/crc32_poly.h"
#include "base/crc32m.h"

#define SG_CRC32M_POLY 0x82608edbu /* reflected 0xDB710641 */

/* By tables, on any CPU.  sg_crc32m() has to be called once before. */
uint32_t sg_crc32m_tables(uint32_t crc, const uint8_t *p, size_t n);

#if defined(__x86_64__)
enum { SG_CRC32M_X86_MIN = 128 }; /* octets from which on it is faster than the tables */

bool sg_crc32m_x86_usable(void);
void sg_crc32m_x86_setup(void);
/* @n is SG_CRC32M_X86_MIN or more, for both. */
uint32_t sg_crc32m_x86(uint32_t crc, const uint8_t *p, size_t n);
bool sg_crc32m_avx512_usable(void);
uint32_t sg_crc32m_avx512(uint32_t crc, const uint8_t *p, size_t n);
#endif

#endif /* SG_BASE_CRC32M_IMPL_H */
