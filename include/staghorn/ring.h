/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn hardware interface library: indices of rings, and the phase of their entries.
 *
 * A ring has 2^n entries.  Indices run freely over 32 bits and wrap; the slot of an index is the
 * index modulo the size.  What is written to a completion or event ring ends in an octet whose
 * bit 0 is the phase: 1 in the first pass over the ring, 0 in the next, and so on.  So an entry is
 * new if it has the phase of the index at which it is expected (io.h).
 *
 * The caller must read that octet once, and the rest of the entry after it, with the barriers of
 * its environment.
 */
#ifndef STAGHORN_RING_H
#define STAGHORN_RING_H

#include "types.h"

#define SG_PHASE_MASK 0x01u

static inline __u32 sg_index_slot(__u32 index, __u32 entries)
{
    return index & (entries - 1);
}

/* The phase of the entry at this index. */
static inline __u8 sg_index_phase(__u32 index, __u32 entries)
{
    return !(index & entries);
}

/* Is the entry that ends in this octet the one that belongs at this index? */
static inline int sg_index_is_new(__u8 last_octet, __u32 index, __u32 entries)
{
    return (last_octet & SG_PHASE_MASK) == sg_index_phase(index, entries);
}

/* Entries in use: [cons, prod). */
static inline __u32 sg_index_used(__u32 prod, __u32 cons)
{
    return prod - cons;
}

/* Is the slot of prod still in use? */
static inline int sg_index_full(__u32 prod, __u32 cons, __u32 entries)
{
    return sg_index_used(prod, cons) >= entries;
}

/* Is index a ahead of b?  They are less than 2^31 apart. */
static inline int sg_index_after(__u32 a, __u32 b)
{
    return a != b && a - b < 0x80000000u;
}

#endif
