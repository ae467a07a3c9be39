/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Injected faults of the media, and its bad ranges.
 *
 * sg_dom_media_take() (advance.c) implements read-only and worn-out media, rdma_flush.c failing
 * flushes.  This file has the uncorrectable and poisoned ranges: two sorted lists of whole lines.
 */
#include "persist/domain_impl.h"

static struct sg_dom_bad_ranges *list_of(struct sg_persist *p, unsigned kind)
{
    return &p->bad[kind - 1];
}

/* Position of the first range that ends after addr. */
static unsigned first_after(const struct sg_dom_bad_ranges *b, uint64_t addr)
{
    unsigned lo = 0, hi = b->count;

    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;

        if (b->range[mid].addr + b->range[mid].len > addr) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return lo;
}

static bool hits(const struct sg_dom_bad_ranges *b, uint64_t addr, uint64_t len)
{
    unsigned i = first_after(b, addr);

    return i < b->count && b->range[i].addr < addr + len;
}

bool sg_dom_bad(const struct sg_persist *p, uint64_t addr, uint64_t len, unsigned kinds)
{
    return len &&
           ((kinds & SG_PERSIST_UNCORRECTABLE &&
             hits(&p->bad[SG_PERSIST_UNCORRECTABLE - 1], addr, len)) ||
            (kinds & SG_PERSIST_POISONED && hits(&p->bad[SG_PERSIST_POISONED - 1], addr, len)));
}

static void insert(struct sg_dom_bad_ranges *b, unsigned i, struct sg_persist_bad x)
{
    memmove(b->range + i + 1, b->range + i, (b->count - i) * sizeof(*b->range));
    b->range[i] = x;
    b->count++;
}

/* True if a single range covers all of it. */
static bool covers(const struct sg_dom_bad_ranges *b, uint64_t addr, uint64_t len)
{
    unsigned i = first_after(b, addr);

    return i < b->count && b->range[i].addr <= addr &&
           addr + len <= b->range[i].addr + b->range[i].len;
}

/*
 * Removes [addr, addr + len).  A range around it is split, which needs room for one more: if there
 * is none, returns false and changes nothing.  It fails in no other case.
 */
static bool cut_out(struct sg_dom_bad_ranges *b, uint64_t addr, uint64_t len)
{
    uint64_t end = addr + len;
    unsigned i = first_after(b, addr);

    while (i < b->count && b->range[i].addr < end) {
        struct sg_persist_bad *x = &b->range[i], right = *x;
        uint64_t x_end = x->addr + x->len;

        right.addr = end;
        right.len = x_end > end ? x_end - end : 0;
        if (x->addr < addr && right.len && b->count == SG_PERSIST_BAD_RANGES) {
            return false;
        }
        if (x->addr < addr) {
            x->len = addr - x->addr;
            if (right.len) {
                insert(b, i + 1, right);
                return true;
            }
            i++;
        } else if (right.len) {
            *x = right;
            return true;
        } else {
            b->count--;
            memmove(x, x + 1, (b->count - i) * sizeof(*x));
        }
    }
    return true;
}

/*
 * Lines become poisoned before anything moves on that can wait.  So whatever is written to them
 * from here on, to heal them, has all that was in the cache, or all that was in the queue.
 */
static void strike(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len)
{
    SG_DOM_FOR_PAGES(e, page_no, off, len) {
        struct page *g = e->pages[page_no];

        sg_dom_touch(&e->touched, page_no);
        for (uint64_t m = g->dirty & sg_dom_page_mask(page_no, off, len); m; m &= m - 1) {
            unsigned i = __builtin_ctzll(m);
            const uint8_t *now = e->visible + page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE;

            if (g->has_history & m & -m) {
                sg_dom_line_join(p, sg_dom_line(p, g, i));
            } else {
                bool scarce = p->recs.live >= p->limits.stores;

                g->all_or_nothing |= m & -m;
                p->merged += scarce;
                p->shared += scarce;
                if (!scarce) { /* else a later store of all of it is merged */
                    sg_dom_line_begin_history(p, e, page_no, i, now);
                }
            }
        }
    }
}

bool sg_persist_mark_bad(struct sg_persist *p, uint64_t addr, uint64_t len,
                         enum sg_persist_bad_kind kind)
{
    uint64_t lo = sg_align_down(addr, SG_PERSIST_LINE), off;
    uint64_t hi = sg_align_up(addr + len, SG_PERSIST_LINE);
    struct sg_dom_bad_ranges *b = list_of(p, kind);
    struct extent *e = len ? sg_dom_extent(p, addr, len, &off) : NULL;

    /* Extents are whole lines: only at the end of all addresses does hi wrap. */
    if (!e || hi <= lo) {
        return false;
    }
    if (!b->range) {
        b->range = g_new(struct sg_persist_bad, SG_PERSIST_BAD_RANGES);
    }
    if (!covers(b, lo, hi - lo) && b->count >= SG_PERSIST_BAD_RANGES) {
        return false;
    }
    if (kind == SG_PERSIST_POISONED && !p->frozen) {
        strike(p, e, off, len);
    }
    if (!covers(b, lo, hi - lo)) {
        p->bad_generation++;
        cut_out(b, lo, hi - lo); /* splits none */
        insert(b, first_after(b, lo),
               (struct sg_persist_bad){
                   .addr = lo,
                   .len = hi - lo,
                   .kind = kind,
               });
    }
    sg_dom_log(p, SG_PERSIST_EV_MARK_BAD, NULL, addr, len, kind);
    return true;
}

void sg_dom_heal(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    struct sg_dom_bad_ranges *b = list_of(p, SG_PERSIST_POISONED);

    if (hits(b, addr, len) && cut_out(b, addr, len)) {
        p->bad_generation++;
    }
}

void sg_persist_clear_bad(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    uint64_t lo = sg_align_down(addr, SG_PERSIST_LINE);
    const uint64_t last = sg_align_down(UINT64_MAX, SG_PERSIST_LINE); /* never bad */
    uint64_t end = addr + len;
    uint64_t hi = end < addr || end > last ? last : sg_align_up(end, SG_PERSIST_LINE);

    if (!len || hi <= lo) {
        return;
    }
    sg_dom_log(p, SG_PERSIST_EV_CLEAR_BAD, NULL, addr, len, 0);
    p->bad_generation++;
    for (unsigned i = 0; i < SG_ARRAY_SIZE(p->bad); i++) {
        cut_out(&p->bad[i], lo, hi - lo);
    }
}

bool sg_persist_bad_range(const struct sg_persist *p, unsigned i, struct sg_persist_bad *bad)
{
    for (unsigned k = 0; k < SG_ARRAY_SIZE(p->bad); k++) {
        if (i < p->bad[k].count) {
            *bad = p->bad[k].range[i];
            return true;
        }
        i -= p->bad[k].count;
    }
    return false;
}

uint64_t sg_persist_bad_generation(const struct sg_persist *p)
{
    return p->bad_generation;
}

bool sg_persist_load_fails(const struct sg_persist *p, uint64_t addr, uint64_t len, uint64_t *line)
{
    const unsigned both = SG_PERSIST_UNCORRECTABLE | SG_PERSIST_POISONED;
    uint64_t end = addr + len, offset;

    for (addr = sg_align_down(addr, SG_PERSIST_LINE); addr < end; addr += SG_PERSIST_LINE) {
        int extent = sg_persist_find(p, addr, SG_PERSIST_LINE, &offset);

        if (extent != SG_PERSIST_NO_EXTENT && sg_dom_bad(p, addr, SG_PERSIST_LINE, both) &&
            !memcmp(p->extent[extent].visible + offset, p->extent[extent].media + offset,
                    SG_PERSIST_LINE)) {
            *line = addr;
            return true;
        }
    }
    return false;
}

void sg_persist_poison(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    if (p->config.poison_on_mismatch && !p->frozen) {
        sg_persist_mark_bad(p, addr, len, SG_PERSIST_POISONED);
    }
}

void sg_persist_set_faults(struct sg_persist *p, int extent, const struct sg_persist_faults *f)
{
    struct sg_persist_event *e;

    sg_assert(extent >= 0 && extent < SG_PERSIST_EXTENTS && p->extent[extent].used);
    p->extent[extent].faults = *f;
    sg_dom_log(p, SG_PERSIST_EV_SET_FAULTS, NULL, extent, 0,
               f->read_only | f->flush_fails_always << 1 | f->wears_out << 2);
    e = sg_dom_log_last(p);
    e->msn = f->flush_fails;
    e->data = f->lines_left;
}

void sg_persist_get_faults(const struct sg_persist *p, int extent, struct sg_persist_faults *f)
{
    sg_assert(extent >= 0 && extent < SG_PERSIST_EXTENTS && p->extent[extent].used);
    *f = p->extent[extent].faults;
}
