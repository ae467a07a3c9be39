/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes by CPUs while they are not tracked.
 *
 * Nobody reports such stores.  A comparison of the two memories finds the lines: in a Flush of at
 * most untracked_flush_max octets, at a cut, when tracking begins, and, if these changes have to
 * survive (untracked = keep), before DMA overwrites their line and before the media are read.
 */
#include "persist/domain_impl.h"

enum { COMPARE_STEP = 64 * 1024 };

static bool line_dirty(const struct extent *e, uint64_t off)
{
    const struct page *g = e->pages[off / SG_PERSIST_PAGE];

    return g && g->dirty & 1ull << (off % SG_PERSIST_PAGE / SG_PERSIST_LINE);
}

static bool changed_untracked(const struct extent *e, uint64_t off)
{
    return !line_dirty(e, off) && memcmp(e->visible + off, e->media + off, SG_PERSIST_LINE) != 0;
}

/* The part of [off, end) that may differ begins at *off; returns its end. */
static uint64_t candidate(struct sg_persist *p, struct extent *e, uint64_t *off, uint64_t end)
{
    uint64_t at, len = 0;

    if (!p->ops || !p->ops->next_differing) {
        return end;
    }
    at = p->ops->next_differing(p->opaque, sg_dom_extent_number(p, e), *off, &len);
    if (at >= end || !len) {
        *off = end;
        return end;
    }
    *off = SG_MAX(*off, sg_align_down(at, SG_PERSIST_LINE));
    return SG_MIN(end, sg_align_up(at + len, SG_PERSIST_LINE));
}

/* The first line in [off, end) that an untracked CPU changed, or end.  Nearly all are equal. */
static uint64_t skip_equal(const struct extent *e, uint64_t off, uint64_t end)
{
    while (off < end) {
        uint64_t piece_end = SG_MIN(end, off + COMPARE_STEP);

        if (memcmp(e->visible + off, e->media + off, piece_end - off) == 0) {
            off = piece_end;
        }
        for (; off < piece_end; off += SG_PERSIST_LINE) {
            if (changed_untracked(e, off)) {
                return off;
            }
        }
    }
    return end;
}

/* Octets from off on, in lines that untracked CPUs changed. */
static uint64_t run_of_changed(const struct extent *e, uint64_t off, uint64_t end)
{
    uint64_t len = 0;

    while (off + len < end && changed_untracked(e, off + len)) {
        len += SG_PERSIST_LINE;
    }
    return len;
}

uint64_t sg_dom_untracked_next(struct sg_persist *p, struct extent *e, uint64_t *off, uint64_t end)
{
    *off = sg_align_down(*off, SG_PERSIST_LINE);
    end = SG_MIN(sg_align_up(end, SG_PERSIST_LINE), e->size);
    while (*off < end) {
        uint64_t stop = candidate(p, e, off, end), len;

        *off = skip_equal(e, *off, stop);
        len = run_of_changed(e, *off, stop);
        if (len) {
            return len;
        }
    }
    return 0;
}

void sg_dom_mark_untracked(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len)
{
    uint64_t at = off, n;

    while ((n = sg_dom_untracked_next(p, e, &at, off + len)) != 0) {
        sg_dom_visible_mark(p, e, at, n, 0);
        at += n;
    }
}

/* As many lines of a run as the medium takes. */
static void write_back(struct sg_persist *p, struct extent *e, uint64_t off, size_t lines)
{
    uint64_t n = sg_dom_media_take(p, e, lines) * SG_PERSIST_LINE;

    if (n) {
        sg_dom_touch_range(&e->touched, off, n);
        memcpy(e->media + off, e->visible + off, n);
        sg_dom_heal(p, e->base + off, n);
    }
}

/* Of n neighbouring lines, those that differ.  Nearly all are equal. */
static void write_back_changed(struct sg_persist *p, struct extent *e, uint64_t off, unsigned n)
{
    if (memcmp(e->visible + off, e->media + off, n * SG_PERSIST_LINE) == 0) {
        return;
    }
    for (; n; n--, off += SG_PERSIST_LINE) {
        if (memcmp(e->visible + off, e->media + off, SG_PERSIST_LINE) != 0) {
            write_back(p, e, off, 1);
        }
    }
}

void sg_dom_keep_untracked(struct sg_persist *p, struct extent *e, size_t page_no, uint64_t mask)
{
    const struct page *g = e->pages[page_no];
    uint64_t has_history = g ? mask & g->has_history : 0, clean = g ? mask & ~g->dirty : mask;

    if (p->config.cpu_tracking || p->config.untracked != SG_PERSIST_UNTRACKED_KEEP ||
        p->config.domain >= SG_PERSIST_EADR) {
        return;
    }
    for (; has_history; has_history &= has_history - 1) {
        unsigned i = __builtin_ctzll(has_history);

        if (sg_dom_line_adopt(p, e, page_no, i, 0)) {
            sg_dom_advance_line(p, e, page_no, i, sg_dom_line(p, e->pages[page_no], i)->count,
                                SG_DOM_TO_S4);
        }
    }
    while (clean) {
        unsigned i = __builtin_ctzll(clean);
        uint64_t off = (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE;
        uint64_t rest = ~(clean >> i);
        unsigned n = rest ? (unsigned)__builtin_ctzll(rest) : 64;

        write_back_changed(p, e, off, n);
        clean &= ~((~0ull >> (64 - n)) << i);
    }
}

void sg_persist_write_back(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    uint64_t off, at, n;
    struct extent *e = sg_dom_extent(p, addr, len, &off);

    if (!e || (p->frozen && !p->cut_done) || p->config.cpu_tracking) {
        return;
    }
    for (at = off; (n = sg_dom_untracked_next(p, e, &at, off + len)) != 0; at += n) {
        write_back(p, e, at, n / SG_PERSIST_LINE);
    }
}
