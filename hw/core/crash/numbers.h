/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers of a trace's events and of a domain's events, in both directions.
 *
 * One event of a trace may become several of the domain, or none.  So that ten million events and
 * eight platforms fit into memory, an event takes one octet, and eight more for each 16.
 *
 * Numbers may go on from others, their trunk, which then gets no more events.
 */
#ifndef SG_CRASH_NUMBERS_H
#define SG_CRASH_NUMBERS_H

#include <glib.h>

#include "base/bytes.h"

enum { SG_CRASH_NUMBERS_BLOCK = 16 };

struct sg_crash_numbers {
    const struct sg_crash_numbers *trunk; /* the events before; NULL: there are none */
    GByteArray *step; /* of event n + 1: how many of the domain's events it became; 255: see far */
    GArray *start;    /* uint64_t: the domain's number before each block */
    GHashTable *far;  /* of trace events with 255 or more; number to number; NULL: none */
    uint64_t last;    /* of the domain */
};

/* The domain's number before the first event. */
void sg_crash_numbers_init(struct sg_crash_numbers *n, uint64_t seq);
/* They go on from a trunk, which has none itself and outlives them. */
void sg_crash_numbers_fork(struct sg_crash_numbers *n, const struct sg_crash_numbers *trunk);
/* The same numbers once more, on the same trunk. */
void sg_crash_numbers_copy(struct sg_crash_numbers *n, const struct sg_crash_numbers *from);
/* Adds what goes on from a trunk to it. */
void sg_crash_numbers_join(struct sg_crash_numbers *trunk, const struct sg_crash_numbers *n);
void sg_crash_numbers_fini(struct sg_crash_numbers *n);
/* The next event of the trace was executed; the domain's number is now seq. */
void sg_crash_numbers_add(struct sg_crash_numbers *n, uint64_t seq);
/* How many events of the trace there were. */
static inline uint64_t sg_crash_numbers_count(const struct sg_crash_numbers *n)
{
    return n->step->len + (n->trunk ? n->trunk->step->len : 0);
}
/* The domain's number behind an event of the trace (0: before the first). */
uint64_t sg_crash_numbers_seq(const struct sg_crash_numbers *n, uint64_t event);
/* The event of the trace that became the domain's event seq; 0: none, or older than the trace. */
uint64_t sg_crash_numbers_event(const struct sg_crash_numbers *n, uint64_t seq);

#endif
