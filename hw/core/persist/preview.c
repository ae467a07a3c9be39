/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Previews of a cut: many outcomes of one instant, for tests and tools.
 *
 * A second domain gets a copy of the range's pages: both memories, dirty lines with their stores,
 * and the store buffer as far as it concerns it.  Then the copy is cut, by the code for real
 * cuts; the real domain is only read.  The copy has no adapters: data in S0 and S1 count as lost.
 */
#include "persist/domain_impl.h"

/* The copy: one extent, beginning with the page of `off`. */
struct excerpt {
    const struct sg_persist *from;
    const struct extent *whole;
    size_t first_page;
    struct sg_persist *p;
    uint64_t base, size;
};

static uint32_t copy_line(const struct excerpt *x, const struct line *from)
{
    uint32_t n = sg_dom_pool_get(&x->p->lines);
    struct line *l = sg_dom_pool_at(&x->p->lines, n);

    *l = *from;
    l->first = l->last = 0;
    sg_dom_line_begin_walks(l);
    x->p->nt_lines += l->nt_cpu != 0;
    for (uint32_t r = from->first; r; r = sg_dom_rec(x->from, r)->next) {
        uint32_t copy = sg_dom_pool_get(&x->p->recs);
        struct rec *rec = sg_dom_rec(x->p, copy);

        *rec = *sg_dom_rec(x->from, r);
        rec->next = 0;
        if (l->last) {
            sg_dom_rec(x->p, l->last)->next = copy;
        } else {
            l->first = copy;
        }
        l->last = copy;
    }
    return n;
}

static void copy_page(const struct excerpt *x, size_t page_no)
{
    const struct page *from = x->whole->pages[x->first_page + page_no];
    struct page *g;
    uint32_t number;

    if (!from) {
        return;
    }
    g = sg_dom_page(x->p, &x->p->extent[0], page_no);
    number = g->number;
    *g = *from;
    g->number = number;
    for (uint64_t m = from->has_history; m; m &= m - 1) {
        unsigned i = __builtin_ctzll(m);

        g->ref[i] = copy_line(x, sg_dom_line(x->from, from, i));
    }
}

/* The store buffer of a vCPU, as far as it is within the copy. */
static void copy_cpu(const struct excerpt *x, unsigned unit)
{
    const struct cpu_ring *from = &x->from->cpu[unit]->sb;
    struct cpu_ring *to = &sg_dom_cpu_at(x->p, unit)->sb;

    for (unsigned i = 0; i < from->count; i++) {
        const struct cpu_entry *entry = sg_dom_ring_at(from, i);

        if (entry->addr - x->base < x->size) {
            *sg_dom_ring_at(to, to->count++) = *entry;
        }
    }
    if (to->count) {
        x->p->busy[unit / 64] |= 1ull << (unit % 64);
        x->p->busy_cpus++;
    }
}

static struct sg_persist *make_excerpt(const struct sg_persist *p, const struct extent *e,
                                       uint64_t off, size_t len, uint8_t *visible, uint8_t *media)
{
    size_t first = off / SG_PERSIST_PAGE;
    struct excerpt x = {
        .from = p,
        .whole = e,
        .first_page = first,
        .base = e->base + first * SG_PERSIST_PAGE,
        .size = SG_MIN(sg_align_up(off + len, SG_PERSIST_PAGE), e->size) - first * SG_PERSIST_PAGE,
    };
    struct sg_persist_limits limits = p->limits;
    struct sg_persist_extent extent = {
        .base = x.base,
        .size = x.size,
        .visible = visible,
        .media = media,
        .name = e->name,
    };

    memcpy(visible, e->visible + first * SG_PERSIST_PAGE, x.size);
    memcpy(media, e->media + first * SG_PERSIST_PAGE, x.size);
    limits.log_events = 1;
    limits.log_data = 0;
    limits.check = false;
    x.p = sg_persist_new(&p->config, &limits, NULL, NULL);
    sg_persist_add(x.p, &extent);
    x.p->extent[0].faults = e->faults;
    x.p->seq = p->seq;
    for (size_t i = 0; i < x.p->extent[0].page_count; i++) {
        copy_page(&x, i);
    }
    for (unsigned i = 0; (i = sg_dom_next_busy(p, i)) < SG_PERSIST_VCPUS; i++) {
        copy_cpu(&x, i);
    }
    return x.p;
}

bool sg_persist_preview(const struct sg_persist *p, const struct sg_persist_policy *policy,
                        uint64_t addr, void *buf, size_t len)
{
    uint64_t off = 0;
    const struct extent *e = sg_dom_extent((struct sg_persist *)p, addr, len, &off);
    size_t within = off % SG_PERSIST_PAGE, size = sg_align_up(within + len, SG_PERSIST_PAGE);
    uint8_t *visible, *media;
    struct sg_persist *copy;

    if (!e || !len || len > SG_PERSIST_PREVIEW_MAX || p->frozen) {
        return false;
    }
    visible = g_malloc(2 * size);
    media = visible + size;
    copy = make_excerpt(p, e, off, len, visible, media);
    sg_persist_report_free(sg_persist_cut(copy, policy));
    memcpy(buf, media + within, len);
    sg_persist_free(copy);
    g_free(visible);
    return true;
}
