/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CRC32c (Castagnoli, generator 0x1EDC6F41, reflected), as RFC 5044 section
 * 4.4 takes it from iSCSI.  The value goes on the wire least significant octet
 * first: store it with sg_put_le32().
 */
#ifndef SG_BASE_CRC32C_H
#define SG_BASE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Continue the CRC @crc with @n octets at @p and return the new CRC.  Start
 * with 0.  The inversions happen inside, so calls chain:
 * crc(ab) == crc(crc(0, a), b).  Any alignment, any length; @p may be NULL
 * when @n is 0.  The fastest code for this CPU is chosen on the first call.
 */
uint32_t sg_crc32c(uint32_t crc, const void *p, size_t n);

/* The same, and copy the octets from @src to @dst, which must not overlap. */
uint32_t sg_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t n);

/*
 * CRC of the concatenation of two pieces, from the CRC @a of the first, the
 * CRC @b of the second and the length @n of the second.  Needs no data.
 */
uint32_t sg_crc32c_concat(uint32_t a, uint32_t b, uint64_t n);

/* One implementation; the table exists for tests and for the benchmark. */
struct sg_crc32c_impl {
    const char *name;
    bool (*usable)(void); /* may this CPU run it? */
    uint32_t (*update)(uint32_t crc, const uint8_t *p, size_t n);
};

/* All compiled-in implementations, best first; the last one is portable. */
const struct sg_crc32c_impl *sg_crc32c_impls(size_t *count);

/* The implementation that sg_crc32c() uses on this CPU. */
const struct sg_crc32c_impl *sg_crc32c_active(void);

#endif /* SG_BASE_CRC32C_H */
