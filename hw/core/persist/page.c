/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The set of dirty lines.
 *
 * An extent has a pointer per page of 4 KiB, NULL while the page is clean, a bit per dirty page
 * (map) and a bit per word of that (top): a search steps over 16 MiB of clean memory per word.
 * Pages come from a pool; a page is freed when its last line becomes clean.
 */
#include "persist/domain_impl.h"

struct page *sg_dom_page(struct sg_persist *p, struct extent *e, size_t page_no)
{
    struct page *g = e->pages[page_no];
    uint32_t n;

    sg_dom_touch(&e->touched, page_no);
    if (g) {
        return g;
    }
    n = sg_dom_pool_get(&p->pages);
    g = sg_dom_pool_at(&p->pages, n);
    g->number = n;
    g->dirty = g->has_history = g->all_or_nothing = g->in_wpq = g->noted = 0;
    e->pages[page_no] = g;
    e->map[page_no / 64] |= 1ull << (page_no % 64);
    e->top[page_no / 4096] |= 1ull << (page_no / 64 % 64);
    return g;
}

void sg_dom_page_free(struct sg_persist *p, struct extent *e, size_t page_no)
{
    struct page *g = e->pages[page_no];

    sg_assert(!g->dirty && !g->has_history);
    sg_dom_pool_put(&p->pages, g->number);
    e->pages[page_no] = NULL;
    e->map[page_no / 64] &= ~(1ull << (page_no % 64));
    if (!e->map[page_no / 64]) {
        e->top[page_no / 4096] &= ~(1ull << (page_no / 64 % 64));
    }
}

static size_t words(size_t bits)
{
    return (bits + 63) / 64;
}

size_t sg_dom_page_next(const struct extent *e, size_t page_no)
{
    size_t word = page_no / 64, tops = words(words(e->page_count));
    uint64_t bits;

    if (page_no >= e->page_count) {
        return e->page_count;
    }
    bits = e->map[word] & (~0ull << (page_no % 64));
    if (bits) {
        return word * 64 + __builtin_ctzll(bits);
    }
    word++;
    if (word / 64 >= tops) {
        return e->page_count;
    }
    bits = e->top[word / 64] & (~0ull << (word % 64));
    for (size_t t = word / 64;; bits = e->top[t]) {
        if (bits) {
            word = t * 64 + __builtin_ctzll(bits);
            return word * 64 + __builtin_ctzll(e->map[word]);
        }
        if (++t >= tops) {
            return e->page_count;
        }
    }
}

uint64_t sg_dom_page_mask(size_t page_no, uint64_t off, uint64_t len)
{
    uint64_t start = (uint64_t)page_no * SG_PERSIST_PAGE, end = off + len;
    unsigned lo, hi;

    if (!len || end <= start || off >= start + SG_PERSIST_PAGE) {
        return 0;
    }
    lo = off <= start ? 0 : (off - start) / SG_PERSIST_LINE;
    hi = end >= start + SG_PERSIST_PAGE ? SG_DOM_PAGE_LINES - 1
                                        : (end - 1 - start) / SG_PERSIST_LINE;
    return (~0ull << lo) & (~0ull >> (63 - hi));
}

/* Drops all dirty lines; their data are lost. */
void sg_dom_extent_clear(struct sg_persist *p, struct extent *e)
{
    SG_DOM_FOR_PAGES(e, page_no, 0, e->size) {
        struct page *g = e->pages[page_no];

        for (uint64_t m = g->has_history; m; m &= m - 1) {
            unsigned i = __builtin_ctzll(m);
            struct line *l = sg_dom_line(p, g, i);

            for (uint32_t n = l->first, next; n; n = next) {
                next = sg_dom_rec(p, n)->next;
                sg_dom_pool_put(&p->recs, n);
            }
            sg_dom_line_forget_nt(p, l);
            sg_dom_pool_put(&p->lines, g->ref[i]);
        }
        g->dirty = g->has_history = 0;
        sg_dom_page_free(p, e, page_no);
    }
}
