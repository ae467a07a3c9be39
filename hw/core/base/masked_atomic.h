/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The arithmetic of masked FetchAdd and CmpSwap (RFC 7306 section 5.1). */
#ifndef SG_BASE_MASKED_ATOMIC_H
#define SG_BASE_MASKED_ATOMIC_H

#include <stdint.h>

/* Section 5.1.1: a set bit of 'tops' is the top bit of a field, and no carry leaves a field. */
static inline uint64_t sg_masked_add(uint64_t value, uint64_t addend, uint64_t tops)
{
    /* The sum without the top bits has no carry out of a field; then add the top bits, modulo 2. */
    return ((value & ~tops) + (addend & ~tops)) ^ ((value ^ addend) & tops);
}

/* Section 5.1.2: the bits of 'mask' are swapped in if all bits of 'cmp_mask' are equal. */
static inline uint64_t sg_masked_swap(uint64_t value, uint64_t data, uint64_t mask, uint64_t cmp,
                                      uint64_t cmp_mask)
{
    return (cmp ^ value) & cmp_mask ? value : (value & ~mask) | (data & mask);
}

#endif
