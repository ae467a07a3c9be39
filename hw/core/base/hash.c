/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which algorithm is whose: crc32c.c and sha2.c, and HMAC (RFC 2104) over the latter here.
 */
#include "base/hash.h"

#include "base/bytes.h"
#include "base/crc32c.h"

static const struct {
    uint8_t len;
    bool reversible;
} algs[SG_HASH_COUNT] = {
    [SG_HASH_CRC32C] = { 4, true },
    [SG_HASH_SHA256] = { 32, false },
    [SG_HASH_SHA512] = { 64, false },
    [SG_HASH_HMAC_SHA256] = { 32, false },
};

size_t sg_hash_len(unsigned alg)
{
    return alg < SG_HASH_COUNT ? algs[alg].len : 0;
}

bool sg_hash_reversible(unsigned alg)
{
    return alg < SG_HASH_COUNT && algs[alg].reversible;
}

enum { HMAC_BLOCK = 64 }; /* RFC 2104: that of the hash */

static void hmac_begin(struct sg_hasher *h, const uint8_t *key, size_t key_len)
{
    uint8_t inner[HMAC_BLOCK], outer[HMAC_BLOCK];
    size_t i;

    for (i = 0; i < HMAC_BLOCK; i++) {
        uint8_t octet = i < key_len ? key[i] : 0;

        inner[i] = octet ^ 0x36;
        outer[i] = octet ^ 0x5c;
    }
    sg_sha2_init(&h->outer, false);
    sg_sha2_add(&h->sha, inner, sizeof(inner));
    sg_sha2_add(&h->outer, outer, sizeof(outer));
}

void sg_hasher_init(struct sg_hasher *h, enum sg_hash alg, const uint8_t *key, size_t key_len)
{
    sg_assert(sg_hash_len(alg));
    h->alg = alg;
    h->crc = 0;
    if (alg != SG_HASH_CRC32C) {
        sg_sha2_init(&h->sha, alg == SG_HASH_SHA512);
    }
    if (alg == SG_HASH_HMAC_SHA256) {
        sg_assert(key_len && key_len <= SG_HASH_KEY_MAX && key_len <= HMAC_BLOCK);
        hmac_begin(h, key, key_len);
    }
}

void sg_hasher_add(struct sg_hasher *h, const void *p, size_t n)
{
    if (!n) {
        return;
    }
    if (h->alg == SG_HASH_CRC32C) {
        h->crc = sg_crc32c(h->crc, p, n);
    } else {
        sg_sha2_add(&h->sha, p, n);
    }
}

size_t sg_hasher_end(struct sg_hasher *h, uint8_t out[SG_HASHER_OUT])
{
    size_t len = sg_hash_len(h->alg);

    if (h->alg == SG_HASH_CRC32C) {
        sg_put_le32(out, h->crc); /* as MPA sends it */
        return len;
    }
    sg_sha2_end(&h->sha, out);
    if (h->alg == SG_HASH_HMAC_SHA256) {
        sg_sha2_add(&h->outer, out, len);
        sg_sha2_end(&h->outer, out);
    }
    return len;
}
