/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a cut may make of one line, and what is under way to a range: for questions about all cuts
 * (certain.c, choices.c), which change nothing.
 */
#ifndef SG_PERSIST_VIEW_H
#define SG_PERSIST_VIEW_H

#include "persist/domain_impl.h"

/* One store to one atom. */
struct sg_dom_step {
    uint64_t seq; /* of its input; 0: unknown */
    uint8_t data[SG_PERSIST_ATOM];
    uint8_t atom, mask;
    uint8_t stage;  /* enum sg_persist_stage */
    bool glue;      /* never without the next one */
    bool loose;     /* it and the next one left the processor in any order */
    bool untracked; /* the change of a CPU that is not tracked */
    bool merged;    /* several stores, seq is of the first; the newest: sg_dom_view.merged */
};

/*
 * The steps from the media's line to the visible one, whatever form the line has.  If nothing
 * arrives, a cut leaves a prefix that ends with a step without glue and has at least `least` steps;
 * of a run of loose steps that follow, of each atom a prefix.  For one octet, then: any prefix that
 * ends without glue.
 */
struct sg_dom_view {
    uint8_t media[SG_PERSIST_LINE];
    uint8_t visible[SG_PERSIST_LINE];
    unsigned least;
    bool dirty;    /* not clean, and every cut that keeps something writes it to the media */
    bool never;    /* the medium takes no line any more */
    bool may_fail; /* it may not take this one */
    uint64_t merged;
    GArray *step; /* struct sg_dom_step; NULL before the first line */
};

static inline struct sg_dom_step *sg_dom_view_step(const struct sg_dom_view *v, unsigned k)
{
    return &g_array_index(v->step, struct sg_dom_step, k);
}

void sg_dom_view_init(struct sg_dom_view *v);
void sg_dom_view_fini(struct sg_dom_view *v);
/* Fills it for the line at this offset. */
void sg_dom_view_line(struct sg_dom_view *v, const struct sg_persist *p, const struct extent *e,
                      uint64_t off);
/* Has the line anything to look at?  Cheap if CPUs are tracked. */
bool sg_dom_view_wanted(const struct sg_persist *p, const struct extent *e, uint64_t off);

/* A piece of S0 or S1, as seen from one of the lines for which it is. */
struct sg_dom_part {
    uint64_t line; /* machine address */
    const struct piece *piece;
    unsigned number;                /* ascending in each queue */
    const struct sg_dom_conn *conn; /* NULL: in S1 */
};
static inline unsigned sg_dom_part_device(const struct sg_dom_part *x)
{
    return x->piece->source.unit;
}
/* Does it write the octet at this address? */
static inline bool sg_dom_part_has(const struct sg_dom_part *x, uint64_t addr)
{
    return addr - x->piece->addr < x->piece->len;
}
/* All parts for the lines of a range (len not 0), by line; NULL: none.  The caller owns them. */
GArray *sg_dom_parts(const struct sg_persist *p, uint64_t addr, uint64_t len);

#endif
