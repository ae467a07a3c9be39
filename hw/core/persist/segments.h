/* SPDX-License-Identifier: GPL-2.0-or-later */
/* S0 and S1 as sets (segments.c); for files of the persistence domain only. */
#ifndef SG_PERSIST_SEGMENTS_H
#define SG_PERSIST_SEGMENTS_H

#include "persist/domain_impl.h"

static inline bool sg_dom_any_order(const struct sg_persist *p)
{
    return p->limits.exact && p->config.placement_order == SG_PERSIST_RANDOM_ORDER;
}
/* Was x in S1 when y came to the adapter?  Then it arrives before y. */
static inline bool sg_dom_piece_before(const struct piece *x, const struct piece *y)
{
    return x->source.unit == y->source.unit && x->settled <= y->seq && x != y;
}
/* All pieces in S0 and S1, by queue; the caller frees the array. */
GPtrArray *sg_dom_segments_under_way(const struct sg_persist *p);
/* Of each piece what x->arrives says, in the order of the inputs. */
void sg_dom_segments_arrive(struct sg_persist *p);
/* What a device has in S1 is proved. */
void sg_dom_segments_fenced(struct sg_persist *p, unsigned device);
/* What a connection has in S0 is proved, and is about to pass S1. */
void sg_dom_segments_settling(struct sg_persist *p, unsigned device, uint32_t qpn);
/*
 * Something is about to arrive, which is marked as near: what else is under way to its lines may
 * come before it or between.  @f: by a Flush that covers this, or NULL.
 */
void sg_dom_segments_mix(struct sg_persist *p, const struct sg_dom_flushed *f);
/* ---- overtaken.c ---- */

void sg_dom_overtaken_init(struct sg_persist *p);
void sg_dom_overtaken_free(struct sg_persist *p);
void sg_dom_overtaken_clear(struct sg_persist *p);
/* Of a clone, instead of the first. */
void sg_dom_overtaken_copy(struct sg_persist *to, const struct sg_persist *from);
/*
 * So many first octets of a segment arrive; of older ones that are left under way, what does not
 * arrive as well (x->arrives) comes behind them.
 */
void sg_dom_overtakes(struct sg_persist *p, const GPtrArray *left, const struct piece *by,
                      uint32_t octets);
/*
 * So many first octets of a segment are about to arrive.  Returns what will differ from the
 * recorded memory, for sg_dom_note_inverted() when they are there; or NULL.
 */
GArray *sg_dom_arrives_overtaken(struct sg_persist *p, const struct piece *x, uint32_t octets);
void sg_dom_note_inverted(struct sg_persist *p, GArray *differ);
/* Somebody writes there. */
void sg_dom_forget_inverted(struct sg_persist *p, uint64_t addr, uint64_t len);
bool sg_dom_same_inverted(const struct sg_persist *a, const struct sg_persist *b);
/* But for the numbers of the segments, which it returns. */
bool sg_dom_same_overtaken(const struct sg_persist *a, const struct sg_persist *b, guint i,
                           uint64_t *of_a, uint64_t *of_b);

/* ---- early.c ---- */

/* How many lines it would ask about, at first. */
uint32_t sg_dom_segments_stops(const struct sg_persist *p, const struct sg_dom_flushed *f);
/*
 * Somebody else is about to store to a range: what is under way to its lines may have arrived
 * before.  To be called before anything of the store is in memory.
 */
void sg_dom_segments_early(struct sg_persist *p, uint64_t addr, uint64_t len);
/* So much of a segment, and of no other, is about to arrive; as sg_dom_arrives_overtaken(). */
GArray *sg_dom_segment_arrives(struct sg_persist *p, struct piece *x, uint32_t octets);
/* As sg_dom_posted_seen() and sg_dom_noted_arrives(). */
void sg_dom_segments_seen(struct sg_persist *p, uint64_t lo, uint64_t last);
void sg_dom_segments_noted(struct sg_persist *p, const struct sg_persist_source *source,
                           const struct sg_persist_flush_note *note,
                           const struct sg_dom_flushed *f);

#endif
