/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CRC32C is our own (crc32c.c), the others are GLib's.
 */
#include "base/hash.h"

#include <glib.h>

#include "base/bytes.h"
#include "base/crc32c.h"

struct sg_hasher {
    enum sg_hash alg;
    uint32_t crc;
    GChecksum *sum; /* SHA */
    GHmac *hmac;
};

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

struct sg_hasher *sg_hasher_new(enum sg_hash alg, const uint8_t *key, size_t key_len)
{
    struct sg_hasher *h = g_new0(struct sg_hasher, 1);

    sg_assert(sg_hash_len(alg));
    h->alg = alg;
    if (alg == SG_HASH_HMAC_SHA256) {
        sg_assert(key_len && key_len <= SG_HASH_KEY_MAX);
        h->hmac = g_hmac_new(G_CHECKSUM_SHA256, key, key_len);
    } else if (alg != SG_HASH_CRC32C) {
        h->sum = g_checksum_new(alg == SG_HASH_SHA256 ? G_CHECKSUM_SHA256 : G_CHECKSUM_SHA512);
    }
    return h;
}

void sg_hasher_add(struct sg_hasher *h, const void *p, size_t n)
{
    if (!n) {
        return;
    }
    if (h->sum) {
        g_checksum_update(h->sum, p, (gssize)n);
    } else if (h->hmac) {
        g_hmac_update(h->hmac, p, (gssize)n);
    } else {
        h->crc = sg_crc32c(h->crc, p, n);
    }
}

size_t sg_hasher_end(struct sg_hasher *h, uint8_t out[SG_HASHER_OUT])
{
    gsize len = sg_hash_len(h->alg);

    if (h->sum) {
        g_checksum_get_digest(h->sum, out, &len);
    } else if (h->hmac) {
        g_hmac_get_digest(h->hmac, out, &len);
    } else {
        sg_put_le32(out, h->crc); /* as MPA sends it */
    }
    sg_assert(len == sg_hash_len(h->alg));
    sg_hasher_free(h);
    return len;
}

void sg_hasher_free(struct sg_hasher *h)
{
    if (!h) {
        return;
    }
    if (h->sum) {
        g_checksum_free(h->sum);
    }
    if (h->hmac) {
        g_hmac_unref(h->hmac);
    }
    g_free(h);
}
