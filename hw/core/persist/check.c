/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sg_assert_persist_state(): the numbered invariants of domain.c, in code. */
#include "persist/domain_impl.h"

/* Invariants 3, 4, 5 and 10 of one history. */
static void check_line(const struct sg_persist *p, const struct extent *e, uint64_t off,
                       const struct line *l, bool deep)
{
    uint8_t content[SG_PERSIST_LINE];
    unsigned count = 0, buffered = 0, waits = 0;
    uint32_t last = 0;
    bool glued = false, before = false;

    memcpy(content, e->media + off, sizeof(content));
    for (uint32_t n = l->first; n; n = sg_dom_rec(p, n)->next) {
        const struct rec *r = sg_dom_rec(p, n);
        bool in_buffer = r->flags & REC_S2P;

        count++;
        last = n;
        sg_assert(r->atom < SG_DOM_LINE_ATOMS && r->mask && r->seq <= p->seq);
        sg_assert(!(before && !in_buffer));
        sg_assert(!(in_buffer && r->flags & REC_GLUE));
        sg_assert(!(r->flags & REC_LOOSE) || (r->next && !(r->flags & REC_GLUE)));
        sg_assert(!(glued && in_buffer && !before));
        sg_assert(!(in_buffer && count <= l->wpq_count));
        sg_assert(!(count == l->wpq_count && r->flags & REC_GLUE));
        sg_assert(!(count == l->walked && (n != l->walked_last || r->flags & REC_GLUE)));
        buffered += r->flags & REC_SB ? 1 : 0;
        waits += r->flags & REC_WC ? 1 : 0;
        glued = r->flags & REC_GLUE;
        before = in_buffer;
        sg_dom_media_rec(content, r);
    }
    sg_assert(count == l->count && count >= 1 && count <= p->limits.line_stores);
    sg_assert(last == l->last && !glued);
    sg_assert(l->walked <= l->wpq_count && l->wpq_count <= l->count);
    sg_assert(!l->wpq_count || p->config.domain == SG_PERSIST_NONE);
    sg_assert(!buffered || sg_dom_is_busy(p, sg_dom_rec(p, l->last)->cpu - 1));
    sg_assert((waits != 0) == (l->nt_cpu != 0));
    sg_assert(!(waits && buffered) || l->nt_cpu == sg_dom_rec(p, l->last)->cpu);
    if (deep && p->config.cpu_tracking && !p->frozen) {
        sg_assert(memcmp(content, e->visible + off, sizeof(content)) == 0);
    }
}

/* Invariants 1 and 2. */
static void check_page(const struct sg_persist *p, const struct extent *e, size_t page_no,
                       bool deep)
{
    const struct page *g = e->pages[page_no];
    bool in_map = e->map[page_no / 64] >> (page_no % 64) & 1;

    sg_assert(in_map == (g != NULL));
    if (!g) {
        return;
    }
    sg_assert(g->dirty);
    sg_assert((g->has_history & ~g->dirty) == 0);
    sg_assert(((g->all_or_nothing | g->in_wpq) & ~(g->dirty & ~g->has_history)) == 0);
    sg_assert(!g->in_wpq || p->config.domain == SG_PERSIST_NONE);
    for (uint64_t m = g->has_history; m; m &= m - 1) {
        unsigned i = __builtin_ctzll(m);

        check_line(p, e, (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE,
                   sg_dom_line(p, g, i), deep);
    }
}

/* Lines with non-temporal stores in S2'. */
static unsigned waiting_lines_of(const struct sg_persist *p, const struct extent *e)
{
    unsigned n = 0;

    SG_DOM_FOR_PAGES(e, page_no, 0, e->size) {
        const struct page *g = e->pages[page_no];

        for (uint64_t m = g->has_history; m; m &= m - 1) {
            n += sg_dom_line(p, g, __builtin_ctzll(m))->nt_cpu != 0;
        }
    }
    return n;
}

/* Invariant 10, the clean lines. */
static void check_clean(const struct sg_persist *p, const struct extent *e)
{
    for (uint64_t off = 0; off < e->size; off += SG_PERSIST_LINE) {
        const struct page *g = e->pages[off / SG_PERSIST_PAGE];

        if (!g || !(g->dirty >> (off % SG_PERSIST_PAGE / SG_PERSIST_LINE) & 1)) {
            sg_assert(memcmp(e->visible + off, e->media + off, SG_PERSIST_LINE) == 0);
        }
    }
}

static void check_extent(const struct sg_persist *p, const struct extent *e, bool deep)
{
    size_t words = (e->page_count + 63) / 64;

    if (deep) {
        for (size_t n = 0; n < e->page_count; n++) {
            check_page(p, e, n, deep);
        }
        for (size_t w = 0; w < words; w++) {
            sg_assert((e->top[w / 64] >> (w % 64) & 1) == (e->map[w] != 0));
        }
        if (p->config.cpu_tracking && !p->frozen) {
            check_clean(p, e);
        }
    } else {
        SG_DOM_FOR_PAGES(e, page_no, 0, e->size) {
            check_page(p, e, page_no, deep);
        }
    }
}

static void check_fifo(const struct fifo *f, uint64_t limit)
{
    uint64_t octets = 0, count = 0;
    const struct piece *last = NULL;

    for (const struct piece *x = f->head; x; x = x->next) {
        octets += x->len;
        count++;
        last = x;
    }
    sg_assert(octets == f->octets && count == f->count && last == f->tail);
    sg_assert(octets <= limit);
}

/* Invariants 7 and 8. */
static void check_places(const struct sg_persist *p)
{
    const struct sg_persist_config *c = &p->config;

    sg_assert(g_hash_table_size(p->conns) == p->conn_order->len);
    sg_assert(!p->conn_order->len || c->placement_delay_ns ||
              c->placement_order == SG_PERSIST_RANDOM_ORDER || p->frozen);
    for (unsigned i = 0; i < p->conn_order->len; i++) {
        const struct sg_dom_conn *conn = g_ptr_array_index(p->conn_order, i);

        sg_assert(conn->s0.head);
        check_fifo(&conn->s0, p->limits.s0_octets);
    }
    for (unsigned d = 0; d < SG_PERSIST_DEVICES; d++) {
        check_fifo(&p->s1[d], p->limits.s1_octets);
        sg_assert((p->s1_devices >> d & 1) == (p->s1[d].head != NULL));
        sg_assert(!p->s1[d].head || c->posted_drain != SG_PERSIST_EAGER || p->frozen);
    }
}

/* Invariant 9. */
static void check_bad(const struct sg_dom_bad_ranges *b)
{
    for (unsigned i = 0; i < b->count; i++) {
        const struct sg_persist_bad *x = &b->range[i];

        sg_assert(x->len && sg_is_aligned(x->addr | x->len, SG_PERSIST_LINE));
        sg_assert(!i || x[-1].addr + x[-1].len <= x->addr);
    }
}

void sg_assert_persist_state(const struct sg_persist *p, bool deep)
{
    unsigned nt_lines = 0, busy = 0;

    for (unsigned i = 0; i < p->extent_count; i++) {
        if (p->extent[i].used) {
            check_extent(p, &p->extent[i], deep);
            nt_lines += waiting_lines_of(p, &p->extent[i]);
        }
    }
    sg_assert(nt_lines == p->nt_lines); /* invariant 6 */
    check_places(p);
    for (unsigned i = 0; i < SG_ARRAY_SIZE(p->bad); i++) {
        check_bad(&p->bad[i]);
    }
    for (unsigned i = 0; i < SG_PERSIST_VCPUS; i++) {
        busy += sg_dom_is_busy(p, i);
        sg_assert(sg_dom_is_busy(p, i) == (p->cpu[i] && p->cpu[i]->sb.count));
    }
    sg_assert(busy == p->busy_cpus && (busy <= 1 || p->limits.all_loads));
}
