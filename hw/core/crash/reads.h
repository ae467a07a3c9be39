/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lines that somebody reads who judges images: only they can make a difference to him.
 *
 * Of a queue or buffer, too, only some answers make a difference: those at which an entry of such a
 * line is the first that is lost, and the last answer.  Of all answers between two of these the
 * greatest stands for the others: it loses nothing more of these lines.
 *
 * Memory: 16 octets for each range.
 */
#ifndef SG_CRASH_READS_H
#define SG_CRASH_READS_H

#include "persist/certain.h"

struct sg_crash_reads {
    GArray *ranges; /* of whole lines; ascending and disjoint after the end */
};

void sg_crash_reads_init(struct sg_crash_reads *r);
void sg_crash_reads_fini(struct sg_crash_reads *r);
/* All lines that a range touches.  False: it is empty, or reaches beyond 2^64. */
bool sg_crash_reads_add(struct sg_crash_reads *r, uint64_t addr, uint64_t len);
/* After the last range. */
void sg_crash_reads_end(struct sg_crash_reads *r);
bool sg_crash_reads_has(const struct sg_crash_reads *r, uint64_t addr);
uint64_t sg_crash_reads_lines(const struct sg_crash_reads *r);
/*
 * The greatest answer less than `answer` to a question about a queue or buffer that makes a
 * difference, in this state before the cut; UINT32_MAX: there is none.
 */
uint32_t sg_crash_reads_less(const struct sg_crash_reads *r, const struct sg_persist *p,
                             const struct sg_persist_choice *q, uint32_t answer);

#endif
