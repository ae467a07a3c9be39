/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Are two domains in the same state?
 *
 * Two domains had the same inputs, but data arrived at other instants in one than in the other.
 * Each arrival is an event with a number, so the same input has other numbers in the two: numbers
 * are compared by what the owner says that they stand for.  Whoever finds a difference that no cut
 * could show has lost nothing but time, so all that is kept is compared; what is derived from it
 * is not, such as the numbers of elements in pools, and where walks begin.
 */
#include "persist/certain.h"
#include "persist/segments.h"

struct compared_domains {
    const struct sg_persist *a, *b;
    const struct sg_persist_side *of_a, *of_b;
};

static uint64_t number_of(const struct sg_persist_side *s, uint64_t seq)
{
    return seq == SG_NEVER ? SG_NEVER : s->number(s->opaque, seq);
}

static bool same_number(const struct compared_domains *x, uint64_t a, uint64_t b)
{
    return number_of(x->of_a, a) == number_of(x->of_b, b);
}

/* ---- Under way ---- */

static bool same_pieces(const struct compared_domains *x, const struct fifo *f,
                        const struct fifo *g)
{
    const struct piece *a = f->head, *b = g->head;

    if (f->count != g->count || f->octets != g->octets) {
        return false;
    }
    for (; a && b; a = a->next, b = b->next) {
        if (a->addr != b->addr || a->len != b->len || a->source.unit != b->source.unit ||
            a->source.qpn != b->source.qpn || a->source.mode != b->source.mode ||
            !same_number(x, a->seq, b->seq) || !same_number(x, a->settled, b->settled) ||
            memcmp(a->data, b->data, a->len) != 0) {
            return false;
        }
    }
    return true;
}

static bool same_overtaken(const struct compared_domains *x)
{
    uint64_t a, b;

    if (x->a->overtaken->len != x->b->overtaken->len) {
        return false;
    }
    for (guint i = 0; i < x->a->overtaken->len; i++) {
        if (!sg_dom_same_overtaken(x->a, x->b, i, &a, &b) || !same_number(x, a, b)) {
            return false;
        }
    }
    return sg_dom_same_inverted(x->a, x->b);
}

static bool same_under_way(const struct compared_domains *x)
{
    if (x->a->s1_devices != x->b->s1_devices || x->a->conn_order->len != x->b->conn_order->len) {
        return false;
    }
    for (uint64_t m = x->a->s1_devices; m; m &= m - 1) {
        unsigned d = __builtin_ctzll(m);

        if (!same_pieces(x, &x->a->s1[d], &x->b->s1[d])) {
            return false;
        }
    }
    for (unsigned i = 0; i < x->a->conn_order->len; i++) {
        const struct sg_dom_conn *c = g_ptr_array_index(x->a->conn_order, i);
        const struct sg_dom_conn *d = g_ptr_array_index(x->b->conn_order, i);

        if (c->device != d->device || c->qpn != d->qpn || !same_pieces(x, &c->s0, &d->s0)) {
            return false;
        }
    }
    return same_overtaken(x);
}

/* ---- CPUs ---- */

static bool same_entry(const struct compared_domains *x, const struct cpu_entry *a,
                       const struct cpu_entry *b)
{
    return a->addr == b->addr && a->flush == b->flush && same_number(x, a->seq, b->seq);
}

static bool same_ring(const struct compared_domains *x, const struct cpu_ring *a,
                      const struct cpu_ring *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (unsigned i = 0; i < a->count; i++) {
        if (!same_entry(x, &a->at[(a->head + i) % a->size], &b->at[(b->head + i) % b->size])) {
            return false;
        }
    }
    return true;
}

static bool same_cpu(const struct compared_domains *x, const struct cpu *a, const struct cpu *b)
{
    guint n;

    if (!a || !b) {
        return a == b;
    }
    n = a->flushes->len - a->flushes_done;
    if (n != b->flushes->len - b->flushes_done || !same_ring(x, &a->sb, &b->sb) ||
        !same_ring(x, &a->wc, &b->wc)) {
        return false;
    }
    for (guint i = 0; i < n; i++) {
        if (!same_entry(x, &g_array_index(a->flushes, struct cpu_entry, a->flushes_done + i),
                        &g_array_index(b->flushes, struct cpu_entry, b->flushes_done + i))) {
            return false;
        }
    }
    return true;
}

/* ---- What is dirty ---- */

/* The event of a store, and if that is an arrival, the input that it belongs to. */
static bool same_event(const struct compared_domains *x, uint64_t a, uint64_t b)
{
    struct sg_dom_arrival c, d;

    sg_dom_origin_get(x->a, a, &c);
    sg_dom_origin_get(x->b, b, &d);
    return same_number(x, a, b) && same_number(x, c.input, d.input) &&
           same_number(x, c.settled, d.settled) && c.qpn == d.qpn && c.unit == d.unit;
}

static bool same_late(const struct compared_domains *x, const struct rec *a, const struct rec *b)
{
    if (a->late == UINT32_MAX || b->late == UINT32_MAX) {
        return a->late == b->late;
    }
    return same_number(x, a->seq + a->late, b->seq + b->late);
}

static bool same_rec(const struct compared_domains *x, const struct rec *a, const struct rec *b)
{
    return a->atom == b->atom && a->mask == b->mask && a->flags == b->flags && a->cpu == b->cpu &&
           memcmp(a->data, b->data, sizeof(a->data)) == 0 && same_late(x, a, b) &&
           same_event(x, a->seq, b->seq);
}

static bool same_history(const struct compared_domains *x, const struct line *a,
                         const struct line *b)
{
    uint32_t n = a->first, m = b->first;

    if (a->count != b->count || a->wpq_count != b->wpq_count || a->nt_cpu != b->nt_cpu ||
        !a->merged != !b->merged || (a->merged && !same_number(x, a->merged, b->merged))) {
        return false;
    }
    for (unsigned i = 0; i < a->count; i++) {
        const struct rec *r = sg_dom_rec(x->a, n), *s = sg_dom_rec(x->b, m);

        if (!same_rec(x, r, s)) {
            return false;
        }
        n = r->next;
        m = s->next;
    }
    return true;
}

static bool same_line(const struct compared_domains *x, const struct page *a, const struct page *b,
                      unsigned i)
{
    if (a->has_history >> i & 1) {
        return same_history(x, sg_dom_line(x->a, a, i), sg_dom_line(x->b, b, i));
    }
    return same_event(x, sg_dom_full_seq(x->a, a->ref[i]), sg_dom_full_seq(x->b, b->ref[i]));
}

static bool same_page(const struct compared_domains *x, const struct extent *e,
                      const struct extent *f, size_t page_no)
{
    const struct page *a = e->pages[page_no], *b = f->pages[page_no];

    if (!a || !b) {
        return a == b;
    }
    if (a->dirty != b->dirty || a->has_history != b->has_history || a->in_wpq != b->in_wpq ||
        a->all_or_nothing != b->all_or_nothing || a->noted != b->noted) {
        return false;
    }
    for (uint64_t m = a->dirty; m; m &= m - 1) {
        unsigned i = __builtin_ctzll(m);
        uint64_t off = (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE;

        if (!same_line(x, a, b, i) ||
            memcmp(e->visible + off, f->visible + off, SG_PERSIST_LINE) != 0 ||
            memcmp(e->media + off, f->media + off, SG_PERSIST_LINE) != 0) {
            return false;
        }
    }
    return true;
}

/* All that may differ in a page that one of the two has touched. */
static bool same_touched(const struct compared_domains *x, const struct extent *e,
                         const struct extent *f, size_t page_no)
{
    uint64_t off = (uint64_t)page_no * SG_PERSIST_PAGE;
    size_t len = SG_MIN(SG_PERSIST_PAGE, e->size - off);

    return same_page(x, e, f, page_no) && memcmp(e->visible + off, f->visible + off, len) == 0 &&
           memcmp(e->media + off, f->media + off, len) == 0;
}

/* The pages that e has touched, and f only those that e has not. */
static bool same_pages(const struct compared_domains *x, const struct extent *e,
                       const struct extent *f)
{
    for (guint i = 0; i < e->touched.number->len; i++) {
        if (!same_touched(x, e, f, g_array_index(e->touched.number, uint64_t, i))) {
            return false;
        }
    }
    for (guint i = 0; i < f->touched.number->len; i++) {
        uint64_t page_no = g_array_index(f->touched.number, uint64_t, i);

        if (!sg_dom_was_touched(&e->touched, page_no) && !same_touched(x, e, f, page_no)) {
            return false;
        }
    }
    return true;
}

static bool same_extent(const struct compared_domains *x, const struct extent *e,
                        const struct extent *f)
{
    if (e->used != f->used || e->page_count != f->page_count ||
        e->faults.read_only != f->faults.read_only || e->faults.wears_out != f->faults.wears_out ||
        e->faults.lines_left != f->faults.lines_left ||
        e->faults.flush_fails != f->faults.flush_fails ||
        e->faults.flush_fails_always != f->faults.flush_fails_always) {
        return false;
    }
    if (!e->used) {
        return true;
    }
    if (e->touched.map && f->touched.map) {
        return same_pages(x, e, f);
    }
    if (memcmp(e->map, f->map, (e->page_count + 63) / 64 * sizeof(*e->map)) != 0) {
        return false;
    }
    SG_DOM_FOR_PAGES(e, page_no, 0, e->size) {
        if (!same_page(x, e, f, page_no)) {
            return false;
        }
    }
    return true;
}

static bool same_bad(const struct sg_dom_bad_ranges *a, const struct sg_dom_bad_ranges *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (unsigned i = 0; i < a->count; i++) {
        if (a->range[i].addr != b->range[i].addr || a->range[i].len != b->range[i].len) {
            return false;
        }
    }
    return true;
}

/* ---- Interface ---- */

bool sg_persist_same(const struct sg_persist_side *a, const struct sg_persist_side *b)
{
    const struct compared_domains x = { .a = a->p, .b = b->p, .of_a = a, .of_b = b };

    if (x.a->frozen != x.b->frozen || x.a->extent_count != x.b->extent_count ||
        !x.a->shared != !x.b->shared || !same_under_way(&x)) {
        return false;
    }
    for (unsigned i = 0; i < SG_MAX(x.a->cpu_count, x.b->cpu_count); i++) {
        if (!same_cpu(&x, x.a->cpu[i], x.b->cpu[i])) {
            return false;
        }
    }
    for (unsigned i = 0; i < SG_ARRAY_SIZE(x.a->bad); i++) {
        if (!same_bad(&x.a->bad[i], &x.b->bad[i])) {
            return false;
        }
    }
    for (unsigned i = 0; i < x.a->extent_count; i++) {
        if (!same_extent(&x, &x.a->extent[i], &x.b->extent[i])) {
            return false;
        }
    }
    return true;
}
