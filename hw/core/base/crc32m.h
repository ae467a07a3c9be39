/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CRC-32 of RDMA/TCP of 2000 (docs/wire-2000.md): Ethernet's, with the
 * mirror image of Ethernet's generator.  The value goes on the wire most
 * significant octet first: store it with sg_put_be32().
 */
#ifndef SG_BASE_CRC32M_H
#define SG_BASE_CRC32M_H

#include <stddef.h>
#include <stdint.h>

/*
 * Continue the CRC @crc with @n octets at @p and return the new CRC.  Start
 * with 0; calls chain, as those of sg_crc32c() do.  @p may be NULL when @n is 0.
 */
uint32_t sg_crc32m(uint32_t crc, const void *p, size_t n);

/* The same, and copy the octets from @src to @dst, which must not overlap. */
uint32_t sg_crc32m_copy(uint32_t crc, void *dst, const void *src, size_t n);

#endif /* SG_BASE_CRC32M_H */
