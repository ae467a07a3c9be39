/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * S0 and S1 at a cut where they are sets (segments.c).
 *
 * Of each segment its first atoms arrive, so many as somebody answers; of one before which another
 * has to be complete, and is not, nothing.  So each segment has one question, and each answer is
 * the loss of one segment's end.
 *
 * Then they arrive, in any order.  This matters where two of them share a line, and nowhere else.
 * If none has to come before another, lines are independent of each other: they are taken upwards,
 * and in each the next atom is asked for.  Else the next atom is asked for among all segments that
 * are ready.
 */
#include "persist/cut_impl.h"
#include "persist/segments.h"

struct segment {
    struct piece *x;
    uint32_t all, atoms; /* how many atoms it has; that are still to arrive */
    uint8_t stage;
};

/* A line, and a segment that brings something for it. */
struct use {
    uint64_t line;
    guint segment;
};

struct segments {
    struct cut *c;
    GArray *all;  /* struct segment, by event */
    GArray *uses; /* struct use, of lines that several segments use; by line */
};

static struct segment *at(const struct segments *s, guint i)
{
    return &g_array_index(s->all, struct segment, i);
}

static gint by_event(gconstpointer a, gconstpointer b)
{
    const struct segment *x = a, *y = b;

    return x->x->seq < y->x->seq ? -1 : 1;
}

static void gather(GArray *all, const struct fifo *f, unsigned stage)
{
    for (struct piece *x = f->head; x; x = x->next) {
        struct segment s = { .x = x, .all = sg_dom_atoms_of(x), .stage = stage };

        g_array_append_val(all, s);
    }
}

/* ---- How much of each arrives ---- */

static uint32_t ask_segment(struct cut *c, const struct segment *s)
{
    bool inside = sg_dom_cut_in_range(c, s->x->addr, s->x->len);

    if (c->domain == SG_PERSIST_WHOLE && s->stage == SG_PERSIST_S1) {
        return s->all;
    }
    return sg_dom_cut_ask(c, &(struct sg_persist_choice){
                                 .what = SG_PERSIST_CHOICE_SEGMENT,
                                 .unit = s->x->source.unit,
                                 .qpn = s->x->source.qpn,
                                 .n = s->all + 1,
                                 .worst = inside ? 0 : s->all,
                                 .addr = s->x->seq,
                             });
}

static void decide(struct segments *s)
{
    const struct piece *missing[SG_PERSIST_DEVICES] = { NULL }; /* that settled first */

    for (guint i = 0; i < s->all->len; i++) {
        struct segment *g = at(s, i);
        const struct piece **first = &missing[g->x->source.unit], *why = g->x;

        if (*first && sg_dom_piece_before(*first, g->x)) {
            why = *first;
        } else {
            g->atoms = ask_segment(s->c, g);
        }
        sg_dom_cut_piece_row(s->c, g->x, g->stage, sg_dom_octets_of(g->x, g->atoms));
        if (g->atoms == g->all) {
            continue;
        }
        *first = !*first || g->x->settled < (*first)->settled ? g->x : *first;
        sg_dom_cut_lost(s->c, &(struct sg_persist_lost){
                                  .what = SG_PERSIST_CHOICE_SEGMENT,
                                  .unit = why->source.unit,
                                  .qpn = why->source.qpn,
                                  .addr = why->seq,
                                  .seq = g->x->seq,
                              });
    }
}

/* ---- They arrive ---- */

static void arrive(struct segments *s, struct segment *g, uint32_t atoms)
{
    struct piece *x = g->x;
    uint32_t octets = sg_dom_octets_of(x, atoms);

    sg_dom_become_visible(s->c->p, x->addr, x->data, octets, x->seq, x->source.mode);
    x->addr += octets;
    x->len -= octets;
    memmove(x->data, x->data + octets, x->len);
    g->atoms -= atoms;
}

static uint64_t next_line(const struct segment *g)
{
    return sg_align_down(g->x->addr, SG_PERSIST_LINE);
}

/* The atoms that are next before this line. */
static uint32_t atoms_before(const struct segment *g, uint64_t line)
{
    uint64_t first = g->x->addr / SG_PERSIST_ATOM, end = line / SG_PERSIST_ATOM;

    return first < end ? (uint32_t)SG_MIN(end - first, g->atoms) : 0;
}

static gint by_line(gconstpointer a, gconstpointer b)
{
    const struct use *x = a, *y = b;

    return x->line != y->line ? (x->line < y->line ? -1 : 1)
                              : (x->segment > y->segment) - (x->segment < y->segment);
}

static void find_uses(struct segments *s)
{
    guint kept = 0;

    for (guint i = 0; i < s->all->len; i++) {
        const struct segment *g = at(s, i);
        uint64_t end =
            sg_align_down(g->x->addr, SG_PERSIST_ATOM) + (uint64_t)g->atoms * SG_PERSIST_ATOM;

        for (uint64_t line = next_line(g); g->atoms && line < end; line += SG_PERSIST_LINE) {
            struct use use = { line, i };

            g_array_append_val(s->uses, use);
        }
    }
    g_array_sort(s->uses, by_line);
    for (guint i = 0; i < s->uses->len; i++) {
        struct use *use = &g_array_index(s->uses, struct use, i);

        if ((i && use[-1].line == use->line) ||
            (i + 1 < s->uses->len && use[1].line == use->line)) {
            g_array_index(s->uses, struct use, kept++) = *use;
        }
    }
    g_array_set_size(s->uses, kept);
}

/* Has one of those that arrive to come before another? */
static bool any_before(const struct segments *s)
{
    uint64_t settled[SG_PERSIST_DEVICES];

    memset(settled, 0xff, sizeof(settled));
    for (guint i = 0; i < s->all->len; i++) {
        const struct segment *g = at(s, i);
        uint64_t *first = &settled[g->x->source.unit];

        if (g->atoms && *first <= g->x->seq) {
            return true;
        }
        *first = g->atoms ? SG_MIN(*first, g->x->settled) : *first;
    }
    return false;
}

/* Brings the next atom of one of these segments. */
static void bring_one(struct segments *s, struct segment **ready, guint n)
{
    struct sg_persist_choice q = { .what = SG_PERSIST_CHOICE_ORDER, .n = n };

    arrive(s, ready[sg_dom_cut_ask(s->c, &q)], 1);
}

/* Line by line, upwards. */
static void arrive_by_line(struct segments *s, struct segment **ready)
{
    guint end;

    for (guint i = 0; i < s->uses->len; i = end) {
        uint64_t line = g_array_index(s->uses, struct use, i).line;
        guint n;

        do {
            n = 0;
            for (end = i; end < s->uses->len; end++) {
                const struct use *use = &g_array_index(s->uses, struct use, end);
                struct segment *g = at(s, use->segment);

                if (use->line != line) {
                    break;
                }
                arrive(s, g, atoms_before(g, line));
                if (g->atoms && next_line(g) == line) {
                    ready[n++] = g;
                }
            }
            if (n) {
                bring_one(s, ready, n);
            }
        } while (n);
    }
    for (guint i = 0; i < s->all->len; i++) {
        arrive(s, at(s, i), at(s, i)->atoms);
    }
}

/* Atoms of a segment up to its next line that others use, too. */
static uint32_t atoms_alone(const struct segments *s, const struct segment *g)
{
    guint lo = 0, hi = s->uses->len;

    while (lo < hi) {
        guint mid = (lo + hi) / 2;

        if (g_array_index(s->uses, struct use, mid).line < next_line(g)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < s->uses->len ? atoms_before(g, g_array_index(s->uses, struct use, lo).line)
                             : g->atoms;
}

/* Atom by atom, as they are ready. */
static void arrive_by_atom(struct segments *s, struct segment **ready)
{
    guint n;

    do {
        uint64_t settled[SG_PERSIST_DEVICES];

        n = 0;
        memset(settled, 0xff, sizeof(settled));
        for (guint i = 0; i < s->all->len; i++) {
            struct segment *g = at(s, i);
            uint64_t *first = &settled[g->x->source.unit];

            if (!g->atoms || *first <= g->x->seq) {
                continue; /* what is before those that wait is not ready either */
            }
            arrive(s, g, atoms_alone(s, g));
            if (g->atoms) {
                ready[n++] = g;
                *first = SG_MIN(*first, g->x->settled);
            }
        }
        if (n) {
            bring_one(s, ready, n);
        }
    } while (n);
}

void sg_dom_cut_segments(struct cut *c)
{
    struct segments s = {
        .c = c,
        .all = g_array_new(FALSE, FALSE, sizeof(struct segment)),
        .uses = g_array_new(FALSE, FALSE, sizeof(struct use)),
    };
    struct segment **ready;

    for (unsigned d = 0; d < SG_PERSIST_DEVICES; d++) {
        gather(s.all, &c->p->s1[d], SG_PERSIST_S1);
    }
    for (unsigned i = 0; i < c->p->conn_order->len; i++) {
        gather(s.all, &((struct sg_dom_conn *)g_ptr_array_index(c->p->conn_order, i))->s0,
               SG_PERSIST_S0);
    }
    g_array_sort(s.all, by_event);
    decide(&s);
    find_uses(&s);
    ready = g_new(struct segment *, s.all->len + 1);
    if (any_before(&s)) {
        arrive_by_atom(&s, ready);
    } else {
        arrive_by_line(&s, ready);
    }
    g_free(ready);
    g_array_free(s.all, TRUE);
    g_array_free(s.uses, TRUE);
}
