/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exact counts of images: whole numbers of any size, which are only multiplied by small ones, added
 * and printed.
 *
 * Nine decimal digits in a word, the low ones first.  Memory: 4 octets for nine digits.
 */
#ifndef SG_CRASH_COUNT_H
#define SG_CRASH_COUNT_H

#include <glib.h>
#include <stdint.h>

struct sg_crash_count {
    GArray *word; /* uint32_t, below 10^9; without zeros at the high end; empty: 0 */
};

void sg_crash_count_init(struct sg_crash_count *c, uint64_t value);
void sg_crash_count_fini(struct sg_crash_count *c);
void sg_crash_count_set(struct sg_crash_count *c, uint64_t value);
void sg_crash_count_multiply(struct sg_crash_count *c, uint32_t by);
void sg_crash_count_add(struct sg_crash_count *c, const struct sg_crash_count *other);
/* Appends all of its digits. */
void sg_crash_count_text(const struct sg_crash_count *c, GString *out);
/* The number if it is at most `most`, else most + 1. */
uint64_t sg_crash_count_value(const struct sg_crash_count *c, uint64_t most);

#endif
