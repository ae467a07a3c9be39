/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz targets.  A target is a function of octets: it reads them as a program of small steps.
 * Whatever they are, it must neither crash nor trip a sanitizer.  Two mains can drive it:
 * libFuzzer's (tools/fuzz) and main.c here, which makes octets from seeds.
 */
#ifndef SG_TESTS_FUZZ_H
#define SG_TESTS_FUZZ_H

#include "base/bytes.h"

/* libFuzzer's name for the target; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Writes what the inputs of this process have reached so far, as the text "name count ...".  False:
 * seeds should reach more, because inputs that all fail at the first check test nothing.
 */
bool fuzz_reached(char *buf, size_t len);

/* The octets not read yet. */
struct fuzz_in {
    const uint8_t *p;
    size_t len;
};

/* A number of 'octets' octets; missing ones are 0. */
static inline uint64_t fuzz_number(struct fuzz_in *in, unsigned octets)
{
    uint64_t v = 0;
    unsigned i;

    for (i = 0; i < octets && in->len; i++) {
        v |= (uint64_t)*in->p++ << (8 * i);
        in->len--;
    }
    return v;
}

static inline uint8_t fuzz_u8(struct fuzz_in *in)
{
    return (uint8_t)fuzz_number(in, 1);
}

static inline uint16_t fuzz_u16(struct fuzz_in *in)
{
    return (uint16_t)fuzz_number(in, 2);
}

static inline uint32_t fuzz_u32(struct fuzz_in *in)
{
    return (uint32_t)fuzz_number(in, 4);
}

static inline uint64_t fuzz_u64(struct fuzz_in *in)
{
    return fuzz_number(in, 8);
}

/* 0 .. n - 1 */
static inline uint32_t fuzz_below(struct fuzz_in *in, uint32_t n)
{
    return n <= 256 ? fuzz_u8(in) % n : fuzz_u32(in) % n;
}

/* True one time in n, by one octet; never when no octets are left. */
static inline bool fuzz_rarely(struct fuzz_in *in, unsigned n)
{
    return fuzz_u8(in) % n == n - 1;
}

/* Up to *n octets of the input, not copied. */
static inline const uint8_t *fuzz_bytes(struct fuzz_in *in, size_t *n)
{
    const uint8_t *p = in->p;

    *n = SG_MIN(*n, in->len);
    in->p += *n;
    in->len -= *n;
    return p;
}

/* A number that is often at an edge. */
static inline uint64_t fuzz_edgy(struct fuzz_in *in)
{
    static const uint64_t edges[] = { 0,
                                      1,
                                      2,
                                      63,
                                      64,
                                      4095,
                                      4096,
                                      0xffff,
                                      0x10000,
                                      0x7fffffff,
                                      0x80000000,
                                      0xfffffffe,
                                      0xffffffff,
                                      0x100000000,
                                      0x7fffffffffffffff,
                                      0x8000000000000000,
                                      0xfffffffffffff000,
                                      UINT64_MAX - 1,
                                      UINT64_MAX };
    uint8_t how = fuzz_u8(in);

    if (how < 128) {
        return edges[how % SG_ARRAY_SIZE(edges)];
    }
    return fuzz_number(in, 1 + how % 8);
}

#endif
