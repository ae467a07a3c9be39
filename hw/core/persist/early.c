/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data that arrive before anything proves it.  Who only stores to a line has proved nothing: what
 * is under way to it may have arrived before or not, and whoever asked for that decides
 * (sg_persist_arrivals()).
 */
#include "persist/certain.h"
#include "persist/segments.h"

/* ---- Before somebody else's store ---- */

static gint older_first(gconstpointer a, gconstpointer b)
{
    const struct piece *x = *(struct piece *const *)a, *y = *(struct piece *const *)b;

    return x->seq < y->seq ? -1 : 1;
}

/* How many octets of a piece arrive with so many of its atoms in the lines from lo on. */
static uint32_t octets_with(const struct piece *x, uint64_t lo, uint32_t atoms)
{
    uint64_t from = sg_align_down(SG_MAX(x->addr, lo), SG_PERSIST_ATOM);

    return SG_MIN(x->len, from + (uint64_t)atoms * SG_PERSIST_ATOM - x->addr);
}

/* Asks how much of a piece arrives early; @last: of the last line. */
static void ask_early(struct sg_persist *p, struct piece *x, uint64_t lo, uint64_t last)
{
    uint64_t from = SG_MAX(x->addr, lo), end = SG_MIN(x->addr + (x->len - 1), last);
    struct sg_persist_choice q = {
        .what = SG_PERSIST_CHOICE_EARLY,
        .unit = x->source.unit,
        .qpn = x->source.qpn,
        .n = end / SG_PERSIST_ATOM - from / SG_PERSIST_ATOM + 2,
        .addr = x->seq,
    };
    uint32_t atoms = p->arrivals(p->arrivals_opaque, &q);

    sg_assert(atoms < q.n);
    x->arrives = atoms ? octets_with(x, lo, atoms) : 0;
}

/* What of x is for the atoms of y that arrive, y being the newer one, arrives before them. */
static void comes_before(struct piece *x, const struct piece *y)
{
    uint64_t first = sg_align_down(y->addr, SG_PERSIST_ATOM);
    uint64_t last = (y->addr + (y->arrives - 1)) | (SG_PERSIST_ATOM - 1);

    if (sg_dom_piece_is_for(x, first, last)) {
        x->arrives = SG_MAX(x->arrives, SG_MIN(x->len, last + 1 - x->addr));
    }
}

/* What has to arrive before that, arrives, too: all of it is of older inputs. */
static void add_what_is_before(const GPtrArray *all)
{
    uint64_t settled[SG_PERSIST_DEVICES] = { 0 };

    for (guint k = all->len; k--;) {
        struct piece *y = g_ptr_array_index(all, k);
        uint64_t *newest = &settled[y->source.unit];

        if (y->settled <= *newest) {
            y->arrives = y->len;
        }
        *newest = y->arrives ? SG_MAX(*newest, y->seq) : *newest;
        for (guint i = 0; i < k && y->arrives; i++) {
            comes_before(g_ptr_array_index(all, i), y);
        }
    }
}

void sg_dom_segments_early(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    uint64_t lo = sg_align_down(addr, SG_PERSIST_LINE);
    uint64_t last = (addr + (len - 1)) | (SG_PERSIST_LINE - 1);
    bool any = false;
    GPtrArray *all;

    if (!p->arrivals || !sg_dom_any_order(p) || !sg_dom_posted_sees(p, lo, last)) {
        return;
    }
    all = sg_dom_segments_under_way(p);
    g_ptr_array_sort(all, older_first);
    for (guint i = 0; i < all->len; i++) {
        struct piece *x = g_ptr_array_index(all, i);

        x->arrives = 0;
        if (sg_dom_piece_is_for(x, lo, last)) {
            ask_early(p, x, lo, last);
            any |= x->arrives != 0;
        }
    }
    if (any) {
        add_what_is_before(all);
    }
    g_ptr_array_free(all, TRUE);
    if (any) {
        sg_dom_segments_arrive(p);
    }
}

void sg_persist_arrivals(struct sg_persist *p, sg_persist_choose *choose, void *opaque)
{
    p->arrivals = choose;
    p->arrivals_opaque = opaque;
}
