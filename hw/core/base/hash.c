/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CRC32C is our own (crc32c.c).  The others are Nettle's, which allocates no memory: a hash can
 * be computed whenever a peer asks for one.
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

void sg_hasher_init(struct sg_hasher *h, enum sg_hash alg, const uint8_t *key, size_t key_len)
{
    sg_assert(sg_hash_len(alg));
    h->alg = alg;
    switch (alg) {
    case SG_HASH_SHA256:
        sha256_init(&h->sha256);
        break;
    case SG_HASH_SHA512:
        sha512_init(&h->sha512);
        break;
    case SG_HASH_HMAC_SHA256:
        sg_assert(key_len && key_len <= SG_HASH_KEY_MAX);
        hmac_sha256_set_key(&h->hmac, key_len, key);
        break;
    default:
        h->crc = 0;
    }
}

void sg_hasher_add(struct sg_hasher *h, const void *p, size_t n)
{
    if (!n) {
        return;
    }
    switch (h->alg) {
    case SG_HASH_SHA256:
        sha256_update(&h->sha256, n, p);
        break;
    case SG_HASH_SHA512:
        sha512_update(&h->sha512, n, p);
        break;
    case SG_HASH_HMAC_SHA256:
        hmac_sha256_update(&h->hmac, n, p);
        break;
    default:
        h->crc = sg_crc32c(h->crc, p, n);
    }
}

size_t sg_hasher_end(struct sg_hasher *h, uint8_t out[SG_HASHER_OUT])
{
    size_t len = sg_hash_len(h->alg);

    switch (h->alg) {
    case SG_HASH_SHA256:
        sha256_digest(&h->sha256, len, out);
        break;
    case SG_HASH_SHA512:
        sha512_digest(&h->sha512, len, out);
        break;
    case SG_HASH_HMAC_SHA256:
        hmac_sha256_digest(&h->hmac, len, out);
        break;
    default:
        sg_put_le32(out, h->crc); /* as MPA sends it */
    }
    return len;
}
