/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SHA-256 and SHA-512 (FIPS 180-4) over a stream of pieces.  Nothing is allocated, so that a hash
 * can be had whenever a peer asks for one.
 */
#ifndef SG_BASE_SHA2_H
#define SG_BASE_SHA2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sg_sha2 {
    union {
        uint32_t narrow[8]; /* SHA-256 */
        uint64_t wide[8];
    };
    uint64_t octets;        /* so far; 2^61 are the most */
    uint8_t block[128];     /* those of a block that is not whole */
    bool is_wide;
};

void sg_sha2_init(struct sg_sha2 *s, bool wide);
void sg_sha2_add(struct sg_sha2 *s, const void *p, size_t n);
/* 32 or 64 octets. */
void sg_sha2_end(struct sg_sha2 *s, uint8_t *out);

#endif
