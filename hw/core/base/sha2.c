/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SHA-256 and SHA-512 are one scheme with words of 32 and of 64 bits.  The constants of the first
 * are the upper halves of those of the second: fractions of the roots of the first primes
 * (FIPS 180-4, sections 4.2.2, 4.2.3, 5.3.3, 5.3.5).
 */
#include "base/sha2.h"

#include "base/bytes.h"

enum { NARROW_ROUNDS = 64, WIDE_ROUNDS = 80, NARROW_BLOCK = 64, WIDE_BLOCK = 128 };

/* Cube roots. */
static const uint64_t k[WIDE_ROUNDS] = {
    0x428a2f98d728ae22ull, 0x7137449123ef65cdull, 0xb5c0fbcfec4d3b2full, 0xe9b5dba58189dbbcull,
    0x3956c25bf348b538ull, 0x59f111f1b605d019ull, 0x923f82a4af194f9bull, 0xab1c5ed5da6d8118ull,
    0xd807aa98a3030242ull, 0x12835b0145706fbeull, 0x243185be4ee4b28cull, 0x550c7dc3d5ffb4e2ull,
    0x72be5d74f27b896full, 0x80deb1fe3b1696b1ull, 0x9bdc06a725c71235ull, 0xc19bf174cf692694ull,
    0xe49b69c19ef14ad2ull, 0xefbe4786384f25e3ull, 0x0fc19dc68b8cd5b5ull, 0x240ca1cc77ac9c65ull,
    0x2de92c6f592b0275ull, 0x4a7484aa6ea6e483ull, 0x5cb0a9dcbd41fbd4ull, 0x76f988da831153b5ull,
    0x983e5152ee66dfabull, 0xa831c66d2db43210ull, 0xb00327c898fb213full, 0xbf597fc7beef0ee4ull,
    0xc6e00bf33da88fc2ull, 0xd5a79147930aa725ull, 0x06ca6351e003826full, 0x142929670a0e6e70ull,
    0x27b70a8546d22ffcull, 0x2e1b21385c26c926ull, 0x4d2c6dfc5ac42aedull, 0x53380d139d95b3dfull,
    0x650a73548baf63deull, 0x766a0abb3c77b2a8ull, 0x81c2c92e47edaee6ull, 0x92722c851482353bull,
    0xa2bfe8a14cf10364ull, 0xa81a664bbc423001ull, 0xc24b8b70d0f89791ull, 0xc76c51a30654be30ull,
    0xd192e819d6ef5218ull, 0xd69906245565a910ull, 0xf40e35855771202aull, 0x106aa07032bbd1b8ull,
    0x19a4c116b8d2d0c8ull, 0x1e376c085141ab53ull, 0x2748774cdf8eeb99ull, 0x34b0bcb5e19b48a8ull,
    0x391c0cb3c5c95a63ull, 0x4ed8aa4ae3418acbull, 0x5b9cca4f7763e373ull, 0x682e6ff3d6b2b8a3ull,
    0x748f82ee5defb2fcull, 0x78a5636f43172f60ull, 0x84c87814a1f0ab72ull, 0x8cc702081a6439ecull,
    0x90befffa23631e28ull, 0xa4506cebde82bde9ull, 0xbef9a3f7b2c67915ull, 0xc67178f2e372532bull,
    0xca273eceea26619cull, 0xd186b8c721c0c207ull, 0xeada7dd6cde0eb1eull, 0xf57d4f7fee6ed178ull,
    0x06f067aa72176fbaull, 0x0a637dc5a2c898a6ull, 0x113f9804bef90daeull, 0x1b710b35131c471bull,
    0x28db77f523047d84ull, 0x32caab7b40c72493ull, 0x3c9ebe0a15c9bebcull, 0x431d67c49c100d4cull,
    0x4cc5d4becb3e42b6ull, 0x597f299cfc657e2aull, 0x5fcb6fab3ad6faecull, 0x6c44198c4a475817ull,
};

/* Square roots. */
static const uint64_t begin[8] = {
    0x6a09e667f3bcc908ull, 0xbb67ae8584caa73bull, 0x3c6ef372fe94f82bull, 0xa54ff53a5f1d36f1ull,
    0x510e527fade682d1ull, 0x9b05688c2b3e6c1full, 0x1f83d9abfb41bd6bull, 0x5be0cd19137e2179ull,
};

static uint32_t ror32(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static uint64_t ror64(uint64_t x, unsigned n)
{
    return x >> n | x << (64 - n);
}

/* Section 6.2.2; w[] is a window of the last 16 words of the schedule. */
static void narrow_block(uint32_t h[8], const uint8_t *p)
{
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], i = h[7];
    uint32_t w[16];

    for (unsigned t = 0; t < NARROW_ROUNDS; t++) {
        uint32_t *x = &w[t % 16], t1, t2;

        if (t < 16) {
            *x = sg_get_be32(p + 4 * t);
        } else {
            uint32_t w2 = w[(t - 2) % 16], w15 = w[(t - 15) % 16];

            *x += (ror32(w2, 17) ^ ror32(w2, 19) ^ w2 >> 10) + w[(t - 7) % 16] +
                  (ror32(w15, 7) ^ ror32(w15, 18) ^ w15 >> 3);
        }
        t1 = i + (ror32(e, 6) ^ ror32(e, 11) ^ ror32(e, 25)) + ((e & f) ^ (~e & g)) +
             (uint32_t)(k[t] >> 32) + *x;
        t2 = (ror32(a, 2) ^ ror32(a, 13) ^ ror32(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        i = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
    h[5] += f;
    h[6] += g;
    h[7] += i;
}

/* Section 6.4.2. */
static void wide_block(uint64_t h[8], const uint8_t *p)
{
    uint64_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], i = h[7];
    uint64_t w[16];

    for (unsigned t = 0; t < WIDE_ROUNDS; t++) {
        uint64_t *x = &w[t % 16], t1, t2;

        if (t < 16) {
            *x = sg_get_be64(p + 8 * t);
        } else {
            uint64_t w2 = w[(t - 2) % 16], w15 = w[(t - 15) % 16];

            *x += (ror64(w2, 19) ^ ror64(w2, 61) ^ w2 >> 6) + w[(t - 7) % 16] +
                  (ror64(w15, 1) ^ ror64(w15, 8) ^ w15 >> 7);
        }
        t1 = i + (ror64(e, 14) ^ ror64(e, 18) ^ ror64(e, 41)) + ((e & f) ^ (~e & g)) + k[t] + *x;
        t2 = (ror64(a, 28) ^ ror64(a, 34) ^ ror64(a, 39)) + ((a & b) ^ (a & c) ^ (b & c));
        i = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
    h[5] += f;
    h[6] += g;
    h[7] += i;
}

static size_t block_size(const struct sg_sha2 *s)
{
    return s->is_wide ? WIDE_BLOCK : NARROW_BLOCK;
}

static void block(struct sg_sha2 *s, const uint8_t *p)
{
    if (s->is_wide) {
        wide_block(s->wide, p);
    } else {
        narrow_block(s->narrow, p);
    }
}

void sg_sha2_init(struct sg_sha2 *s, bool wide)
{
    s->is_wide = wide;
    s->octets = 0;
    for (unsigned i = 0; i < 8; i++) {
        if (wide) {
            s->wide[i] = begin[i];
        } else {
            s->narrow[i] = (uint32_t)(begin[i] >> 32);
        }
    }
}

void sg_sha2_add(struct sg_sha2 *s, const void *p, size_t n)
{
    size_t size = block_size(s), have = s->octets % size, take;
    const uint8_t *at = p;

    s->octets += n;
    if (have) {
        take = SG_MIN(n, size - have);
        memcpy(s->block + have, at, take);
        at += take;
        n -= take;
        if (have + take < size) {
            return;
        }
        block(s, s->block);
    }
    for (; n >= size; n -= size, at += size) {
        block(s, at);
    }
    if (n) {
        memcpy(s->block, at, n);
    }
}

/* Section 5.1: a one, zeros, and the length in bits; of SHA-512's 128 bits 64 are enough. */
void sg_sha2_end(struct sg_sha2 *s, uint8_t *out)
{
    size_t size = block_size(s), length = s->is_wide ? 16 : 8;
    uint8_t tail[2 * WIDE_BLOCK] = { 0x80 };
    uint64_t bits = s->octets * 8;
    size_t n = size - s->octets % size;

    if (n < 1 + length) {
        n += size;
    }
    sg_put_be64(tail + n - 8, bits);
    sg_sha2_add(s, tail, n);
    for (unsigned i = 0; i < 8; i++) {
        if (s->is_wide) {
            sg_put_be64(out + 8 * i, s->wide[i]);
        } else {
            sg_put_be32(out + 4 * i, s->narrow[i]);
        }
    }
}
