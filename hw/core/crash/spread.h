/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Some of many things in a row, evenly. */
#ifndef SG_CRASH_SPREAD_H
#define SG_CRASH_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Is this one of `count` things (from 0 on) one of `chosen` of them?  The first and the last are,
 * and others at equal distances; if only one is, it is the last.  Exactly min(chosen, count) are.
 * The product of both is less than 2^64.
 */
static inline bool sg_crash_spread(uint64_t index, uint64_t count, uint64_t chosen)
{
    uint64_t step;

    if (chosen >= count) {
        return true;
    }
    if (chosen < 2) {
        return chosen && index == count - 1;
    }
    step = (index * (chosen - 1) + count - 2) / (count - 1); /* the next one from here on */
    return step * (count - 1) / (chosen - 1) == index;
}

#endif
