/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One line as a list of steps, in whatever form the domain has it; what is on its way to lines. */
#include "persist/view.h"

enum { STEPS = 30 }; /* so many fit before the array grows; most lines have fewer */

void sg_dom_view_init(struct sg_dom_view *v)
{
    v->step = NULL;
}

void sg_dom_view_fini(struct sg_dom_view *v)
{
    if (v->step) {
        g_array_free(v->step, TRUE);
    }
}

/* ---- Media that refuse ---- */

static uint64_t buffered(const struct sg_persist *p)
{
    uint64_t n = 0;

    for (unsigned i = 0; (i = sg_dom_next_busy(p, i)) < SG_PERSIST_VCPUS; i++) {
        n += p->cpu[i]->sb.count;
    }
    return n;
}

static uint64_t lines_of(const struct fifo *f)
{
    return f->octets / SG_PERSIST_ATOM + 2 * (uint64_t)f->count;
}

/*
 * No cut takes more lines of this medium.  What arrives takes one per atom at most, the rest one
 * per line; not walked, so that it costs nothing.
 */
static uint64_t most_taken(const struct sg_persist *p, const struct extent *e)
{
    uint64_t n = buffered(p) + (uint64_t)p->pages.live * SG_DOM_PAGE_LINES;

    for (unsigned d = 0; d < SG_PERSIST_DEVICES; d++) {
        n += 2 * lines_of(&p->s1[d]);
    }
    for (unsigned i = 0; i < p->conn_order->len; i++) {
        n += 2 * lines_of(&((struct sg_dom_conn *)g_ptr_array_index(p->conn_order, i))->s0);
    }
    return n + (p->config.cpu_tracking ? 0 : e->size / SG_PERSIST_LINE);
}

static void view_medium(struct sg_dom_view *v, const struct sg_persist *p, const struct extent *e)
{
    const struct sg_persist_faults *f = &e->faults;

    v->never = f->read_only || (f->wears_out && !f->lines_left);
    /* Only a medium that wears out costs the count. */
    v->may_fail = f->wears_out && !v->never && f->lines_left < most_taken(p, e);
}

/* ---- Steps ---- */

static struct sg_dom_step *add(struct sg_dom_view *v, unsigned atom, uint8_t mask,
                               const uint8_t *data, uint64_t seq)
{
    struct sg_dom_step s = { .seq = seq, .atom = atom, .mask = mask, .stage = SG_PERSIST_S2 };

    memcpy(s.data, data, SG_PERSIST_ATOM);
    g_array_append_val(v->step, s);
    return sg_dom_view_step(v, v->step->len - 1);
}

/* The octets of the atoms in which two contents of the line differ, as steps. */
static void add_difference(struct sg_dom_view *v, const uint8_t *from, const uint8_t *to,
                           uint64_t seq, bool glue, bool untracked)
{
    unsigned before = v->step->len;

    for (unsigned a = 0; a < SG_DOM_LINE_ATOMS; a++) {
        const uint8_t *was = from + a * SG_PERSIST_ATOM, *is = to + a * SG_PERSIST_ATOM;
        uint8_t mask = 0;

        for (unsigned k = 0; k < SG_PERSIST_ATOM; k++) {
            mask |= (was[k] != is[k]) << k;
        }
        if (mask) {
            struct sg_dom_step *s = add(v, a, mask, is, seq);

            s->glue = glue;
            s->untracked = untracked;
        }
    }
    if (v->step->len > before) {
        sg_dom_view_step(v, v->step->len - 1)->glue = false;
    }
}

static void add_history(struct sg_dom_view *v, const struct sg_persist *p, const struct line *l)
{
    unsigned k = 0;

    for (uint32_t n = l->first; n; k++) {
        const struct rec *r = sg_dom_rec(p, n);
        struct sg_dom_step *s = add(v, r->atom, r->mask, r->data, sg_dom_origin(p, r->seq));

        s->stage = r->flags & REC_S2P ? SG_PERSIST_SB
                   : k < l->wpq_count ? SG_PERSIST_S3
                                      : SG_PERSIST_S2;
        s->glue = r->flags & REC_GLUE;
        s->loose = r->flags & REC_LOOSE;
        s->merged = r->flags & REC_MERGED;
        n = r->next;
    }
}

/* The line with all steps. */
static void last_state(const struct sg_dom_view *v, uint8_t line[SG_PERSIST_LINE])
{
    memcpy(line, v->media, SG_PERSIST_LINE);
    for (unsigned k = 0; k < v->step->len; k++) {
        const struct sg_dom_step *s = sg_dom_view_step(v, k);

        for (unsigned i = 0; i < SG_PERSIST_ATOM; i++) {
            if (s->mask >> i & 1) {
                line[s->atom * SG_PERSIST_ATOM + i] = s->data[i];
            }
        }
    }
}

/* What an untracked CPU changed in a line that is clean or has a history.  False: nothing. */
static bool add_untracked(struct sg_dom_view *v, const struct sg_persist *p)
{
    uint8_t known[SG_PERSIST_LINE];
    unsigned before = v->step->len;

    if (p->config.cpu_tracking) {
        return false;
    }
    last_state(v, known);
    add_difference(v, known, v->visible, 0, true, true);
    return v->step->len > before;
}

static unsigned cached(const struct sg_dom_view *v)
{
    unsigned k = 0;

    while (k < v->step->len && sg_dom_view_step(v, k)->stage != SG_PERSIST_SB) {
        k++;
    }
    return k;
}

bool sg_dom_view_wanted(const struct sg_persist *p, const struct extent *e, uint64_t off)
{
    const struct page *g = e->pages[off / SG_PERSIST_PAGE];

    return (g && g->dirty >> (off % SG_PERSIST_PAGE / SG_PERSIST_LINE) & 1) ||
           (!p->config.cpu_tracking && memcmp(e->visible + off, e->media + off, SG_PERSIST_LINE));
}

void sg_dom_view_line(struct sg_dom_view *v, const struct sg_persist *p, const struct extent *e,
                      uint64_t off)
{
    const struct page *g = e->pages[off / SG_PERSIST_PAGE];
    unsigned i = off % SG_PERSIST_PAGE / SG_PERSIST_LINE;
    uint64_t bit = 1ull << i;
    bool untracked = false, kept;

    memcpy(v->media, e->media + off, SG_PERSIST_LINE);
    memcpy(v->visible, e->visible + off, SG_PERSIST_LINE); /* once: a processor may be storing */
    if (v->step) {
        g_array_set_size(v->step, 0);
    } else {
        v->step = g_array_sized_new(FALSE, FALSE, sizeof(struct sg_dom_step), STEPS);
    }
    v->merged = 0;
    v->dirty = g && g->dirty & bit;
    view_medium(v, p, e);
    if (v->dirty && !(g->has_history & bit)) {
        add_difference(v, v->media, v->visible, sg_dom_origin(p, sg_dom_full_seq(p, g->ref[i])),
                       g->all_or_nothing & bit, false);
        for (unsigned k = 0; k < v->step->len && g->in_wpq & bit; k++) {
            sg_dom_view_step(v, k)->stage = SG_PERSIST_S3;
        }
    } else {
        if (v->dirty) {
            add_history(v, p, sg_dom_line(p, g, i));
            v->merged = sg_dom_line(p, g, i)->merged;
        }
        untracked = add_untracked(v, p);
        v->dirty |= untracked;
    }
    kept = untracked && p->config.untracked == SG_PERSIST_UNTRACKED_KEEP;
    v->least = p->config.domain == SG_PERSIST_WHOLE || kept ? v->step->len
               : p->config.domain == SG_PERSIST_EADR        ? cached(v)
                                                            : 0;
}

/* ---- Under way ---- */

static void add_parts(GArray **parts, const struct fifo *f, const struct sg_dom_conn *conn,
                      uint64_t lo, uint64_t last)
{
    unsigned number = 0;

    for (const struct piece *x = f->head; x; x = x->next, number++) {
        uint64_t end = SG_MIN(x->addr + (x->len - 1), last);
        uint64_t line = SG_MAX(sg_align_down(x->addr, SG_PERSIST_LINE), lo);

        for (; line <= end && sg_dom_piece_is_for(x, lo, last); line += SG_PERSIST_LINE) {
            struct sg_dom_part part = {
                .line = line,
                .piece = x,
                .number = number,
                .conn = conn,
            };

            if (!*parts) {
                *parts = g_array_new(FALSE, FALSE, sizeof(struct sg_dom_part));
            }
            g_array_append_val(*parts, part);
            if (line + SG_PERSIST_LINE < line) {
                break;
            }
        }
    }
}

static gint by_line(gconstpointer a, gconstpointer b)
{
    const struct sg_dom_part *x = a, *y = b;

    return (x->line > y->line) - (x->line < y->line);
}

GArray *sg_dom_parts(const struct sg_persist *p, uint64_t addr, uint64_t len)
{
    GArray *parts = NULL;
    uint64_t lo = sg_align_down(addr, SG_PERSIST_LINE);
    uint64_t last = (addr + (len - 1)) | (SG_PERSIST_LINE - 1);

    for (uint64_t m = p->s1_devices; m; m &= m - 1) {
        add_parts(&parts, &p->s1[__builtin_ctzll(m)], NULL, lo, last);
    }
    for (unsigned i = 0; i < p->conn_order->len; i++) {
        const struct sg_dom_conn *conn = g_ptr_array_index(p->conn_order, i);

        add_parts(&parts, &conn->s0, conn, lo, last);
    }
    if (parts) {
        g_array_sort(parts, by_line);
    }
    return parts;
}
