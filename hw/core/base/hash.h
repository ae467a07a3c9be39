/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hash algorithms of Verify (enum sg_hash), computed over a sequence of pieces.
 */
#ifndef SG_BASE_HASH_H
#define SG_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nettle/hmac.h>
#include <nettle/sha2.h>

#include "staghorn/admin.h"

enum { SG_HASHER_OUT = 64 };

/* Octets of the result: 4, 32 or 64; 0 for SG_HASH_NONE and for unknown values. */
size_t sg_hash_len(unsigned alg);
/* Can the memory's content be computed from hashes of a few octets at a time? */
bool sg_hash_reversible(unsigned alg);

/* Owns no memory: an unfinished hash needs no cleanup. */
struct sg_hasher {
    enum sg_hash alg;
    union {
        uint32_t crc;
        struct sha256_ctx sha256;
        struct sha512_ctx sha512;
        struct hmac_sha256_ctx hmac;
    };
};

/*
 * alg is an algorithm of enum sg_hash except NONE; key and key_len are used by
 * SG_HASH_HMAC_SHA256 only, 1 to SG_HASH_KEY_MAX octets.
 */
void sg_hasher_init(struct sg_hasher *h, enum sg_hash alg, const uint8_t *key, size_t key_len);
/* p may be NULL when n is 0. */
void sg_hasher_add(struct sg_hasher *h, const void *p, size_t n);
/* Writes the result and returns its length; h needs sg_hasher_init() before it is used again. */
size_t sg_hasher_end(struct sg_hasher *h, uint8_t out[SG_HASHER_OUT]);

#endif
