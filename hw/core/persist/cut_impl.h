/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cut under way: shared by cut.c, cut_posted.c and outcome.c.
 */
#ifndef SG_PERSIST_CUT_IMPL_H
#define SG_PERSIST_CUT_IMPL_H

#include "persist/domain_impl.h"

enum { MAX_STORES = 4096 + SG_DOM_LINE_ATOMS };

/* A permitted state of a line with a history: its first k stores, and some of the run after it. */
struct point {
    uint16_t k;
    bool some;
};

struct cut {
    struct sg_persist *p;
    const struct sg_persist_policy *policy;
    struct sg_persist_report *report;
    uint64_t rng;
    unsigned domain;
    /* Of the current line: its stores, which of them survive, its permitted states. */
    const struct rec *rec[MAX_STORES];
    bool keep[MAX_STORES];
    struct point point[2 * MAX_STORES];
    unsigned point_count;
};

/* ---- cut.c ---- */

/* Is it in the policy's range? */
bool sg_dom_cut_in_range(const struct cut *c, uint64_t addr, uint64_t len);
/* What happened, of q->n things. */
uint32_t sg_dom_cut_ask(struct cut *c, const struct sg_persist_choice *q);
/* Whoever follows the cut is told of a store that is lost; lost->seq is its event. */
void sg_dom_cut_lost(struct cut *c, const struct sg_persist_lost *lost);
/* One of n states of a line; 0 loses the most.  part: of a part of it, so that all may stay. */
uint32_t sg_dom_cut_choose(struct cut *c, uint32_t n, uint64_t addr, bool part);

/* ---- cut_posted.c ---- */

/* S0 and S1 of all devices. */
void sg_dom_cut_posted(struct cut *c);
/* Aligned atoms that a piece touches; the octets of its first ones. */
uint32_t sg_dom_atoms_of(const struct piece *x);
uint32_t sg_dom_octets_of(const struct piece *x, uint32_t atoms);
/* The report's row of a piece, of which so many octets arrive. */
void sg_dom_cut_piece_row(struct cut *c, const struct piece *x, unsigned stage, uint64_t kept);

/* ---- cut_segments.c ---- */

/* The same where they are sets (sg_dom_any_order()). */
void sg_dom_cut_segments(struct cut *c);

/* ---- outcome.c ---- */

/* S2' of all lines. */
void sg_dom_cut_cpus(struct cut *c);
/* The stores of a line, as an array; returns how many. */
unsigned sg_dom_cut_gather(struct cut *c, const struct line *l);
/* Decides which stores survive; returns how many. */
unsigned sg_dom_cut_state(struct cut *c, const struct line *l, unsigned count, uint64_t addr);

#endif
