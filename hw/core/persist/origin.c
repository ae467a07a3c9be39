/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which input brought a store whose event is an arrival.
 *
 * Stores of a line have the event that made them visible: a CLWB before that event does not cover
 * them.  For a write that waited in S0 or S1 that event is another one than its input.  A list,
 * sorted by arrival, has of those the input, when it came to S1, and from which connection.  When
 * the list is full it is pruned to what dirty lines still name.  It has room for LEAST_PRUNED
 * entries, for twice as many as the last pruning left, or for one per store in a history and per
 * line of a page with a dirty line: whichever was most at that pruning.
 */
#include "persist/domain_impl.h"

enum { LEAST_PRUNED = 4096 };

struct input_origin {
    uint64_t arrival, input, settled;
    uint32_t qpn;
    uint16_t unit;
    bool used;
};

static struct input_origin *at(const struct sg_persist *p, unsigned i)
{
    return &g_array_index(p->origins, struct input_origin, i);
}

static struct input_origin *find(const struct sg_persist *p, uint64_t seq)
{
    unsigned lo = 0, hi = p->origins->len;

    if (!hi || seq > at(p, hi - 1)->arrival) { /* as mostly */
        return NULL;
    }
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;

        if (at(p, mid)->arrival < seq) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return at(p, lo)->arrival == seq ? at(p, lo) : NULL;
}

static void mark(const struct sg_persist *p, uint64_t seq)
{
    struct input_origin *o = find(p, seq);

    if (o) {
        o->used = true;
    }
}

static void mark_page(const struct sg_persist *p, const struct page *g)
{
    for (uint64_t m = g->dirty; m; m &= m - 1) {
        unsigned i = __builtin_ctzll(m);

        if (!(g->has_history >> i & 1)) {
            mark(p, sg_dom_full_seq(p, g->ref[i]));
            continue;
        }
        for (uint32_t n = sg_dom_line(p, g, i)->first; n; n = sg_dom_rec(p, n)->next) {
            mark(p, sg_dom_rec(p, n)->seq);
        }
    }
}

static void prune(struct sg_persist *p)
{
    unsigned kept = 0;

    for (unsigned x = 0; x < p->extent_count; x++) {
        const struct extent *e = &p->extent[x];

        SG_DOM_FOR_PAGES(e, page_no, 0, e->size) {
            mark_page(p, e->pages[page_no]);
        }
    }
    for (unsigned i = 0; i < p->origins->len; i++) {
        struct input_origin o = *at(p, i);

        if (o.used) {
            o.used = false;
            *at(p, kept++) = o;
        }
    }
    g_array_set_size(p->origins, kept);
    /* What prune() walks is paid for by as many additions. */
    p->origins_full = SG_MAX(LEAST_PRUNED, 2 * kept);
    p->origins_full = SG_MAX(p->origins_full, p->recs.live + SG_DOM_PAGE_LINES * p->pages.live);
}

void sg_dom_origin_init(struct sg_persist *p)
{
    p->origins = g_array_new(FALSE, FALSE, sizeof(struct input_origin));
    p->origins_full = LEAST_PRUNED;
}

void sg_dom_origin_add(struct sg_persist *p, uint64_t arrival, const struct piece *x)
{
    struct input_origin o = {
        .arrival = arrival,
        .input = x->seq,
        .settled = x->settled,
        .qpn = x->source.qpn,
        .unit = x->source.unit,
    };

    if (p->origins->len >= p->origins_full) {
        prune(p);
    }
    g_array_append_val(p->origins, o);
}

bool sg_dom_was_noted(const struct sg_persist *p, uint64_t seq,
                      const struct sg_persist_source *source,
                      const struct sg_persist_flush_note *note)
{
    const struct input_origin *o = seq > note->seq ? find(p, seq) : NULL;

    return seq <= note->seq || (o && o->unit == source->unit && o->input <= note->seq &&
                                (o->settled <= note->seq || o->qpn == source->qpn));
}

uint64_t sg_dom_origin(const struct sg_persist *p, uint64_t seq)
{
    const struct input_origin *o = find(p, seq);

    return o ? o->input : seq;
}

void sg_dom_origin_get(const struct sg_persist *p, uint64_t seq, struct sg_dom_arrival *out)
{
    const struct input_origin *o = find(p, seq);

    *out = (struct sg_dom_arrival){ .input = seq, .settled = SG_NEVER };
    if (o) {
        *out = (struct sg_dom_arrival){ o->input, o->settled, o->qpn, o->unit };
    }
}
