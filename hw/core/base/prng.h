/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pseudo-random numbers from a seed (splitmix64): the same seed gives the same numbers on every
 * machine.  For models and tests that must replay; never for secrets (host.h: random).
 */
#ifndef SG_BASE_PRNG_H
#define SG_BASE_PRNG_H

#include <stdint.h>

/* The next 64 bits of the sequence whose seed was the first *state. */
static inline uint64_t sg_prng(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

#endif
