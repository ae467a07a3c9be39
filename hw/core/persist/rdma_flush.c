/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA Flush, and what else looks at a range of the media.
 *
 * A Flush has two halves.  Begin: the connection settles and the device's own read drives out what
 * it posted (E9); from here on the range is visible.  Finish, after the configured latency: with P
 * the range goes from the cache to where the domain keeps it (E10), to the media itself where the
 * domain keeps nothing else.  Finish may cover more than begin saw, never less.  Only a Finish that
 * moved every dirty line of the range answers SG_PM_DONE.
 *
 * CPUs that are not tracked dirty lines without telling.  They are found by comparing the two
 * memories: in a Flush of at most untracked_flush_max octets, at a cut, when tracking begins, and,
 * where what they change is to survive (untracked = keep), before DMA makes their line its own and
 * before the media are read.
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
    return !line_dirty(e, off)
           && memcmp(e->visible + off, e->media + off, SG_PERSIST_LINE) != 0;
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

uint64_t sg_dom_untracked_next(struct sg_persist *p, struct extent *e, uint64_t *off, uint64_t end)
{
    *off = sg_align_down(*off, SG_PERSIST_LINE);
    end = SG_MIN(sg_align_up(end, SG_PERSIST_LINE), e->size);
    while (*off < end) {
        uint64_t stop = candidate(p, e, off, end);

        while (*off < stop) {
            uint64_t n = SG_MIN(stop - *off, COMPARE_STEP), len = 0;

            /* Most of it is equal: ask the library for big pieces first. */
            if (memcmp(e->visible + *off, e->media + *off, n) == 0) {
                *off += n;
                continue;
            }
            for (n += *off; *off < n && !changed_untracked(e, *off); *off += SG_PERSIST_LINE) {
            }
            while (*off + len < n && changed_untracked(e, *off + len)) {
                len += SG_PERSIST_LINE;
            }
            if (len) {
                return len;
            }
        }
    }
    return 0;
}

/* ---- Flush ---- */

void sg_dom_flush_begin(struct sg_persist *p, const struct sg_persist_source *source)
{
    sg_dom_others_drain(p, -1);
    sg_dom_settle(p, source->unit, source->qpn);
    sg_dom_drain_posted(p, source->unit);
}

static void mark_untracked(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len)
{
    uint64_t at = off, n;

    while ((n = sg_dom_untracked_next(p, e, &at, off + len)) != 0) {
        sg_dom_visible_mark(p, e, at, n, 0);
        at += n;
    }
}

/* As much of a run as the medium takes. */
static void write_back(struct sg_persist *p, struct extent *e, uint64_t off, size_t lines)
{
    uint64_t n = sg_dom_media_take(p, e, lines) * SG_PERSIST_LINE;

    if (n) {
        memcpy(e->media + off, e->visible + off, n);
        sg_dom_heal(p, e->base + off, n);
    }
}

void sg_dom_keep_untracked(struct sg_persist *p, struct extent *e, size_t page_no, uint64_t mask)
{
    const struct page *g = e->pages[page_no];
    uint64_t has_history = g ? mask & g->has_history : 0, clean = g ? mask & ~g->dirty : mask;

    if (p->config.cpu_tracking || p->config.untracked != SG_PERSIST_UNTRACKED_KEEP
        || p->config.domain >= SG_PERSIST_EADR) {
        return;
    }
    for (; has_history; has_history &= has_history - 1) {
        unsigned i = __builtin_ctzll(has_history);

        if (sg_dom_line_adopt(p, e, page_no, i, 0)) {
            sg_dom_advance_line(p, e, page_no, i, sg_dom_line(p, e->pages[page_no], i)->count,
                                SG_DOM_TO_S4);
        }
    }
    while (clean) { /* by runs: nearly all are equal */
        unsigned i = __builtin_ctzll(clean);
        uint64_t off = (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE;
        uint64_t rest = ~(clean >> i);
        unsigned n = rest ? (unsigned)__builtin_ctzll(rest) : 64;

        if (memcmp(e->visible + off, e->media + off, n * SG_PERSIST_LINE) != 0) {
            for (unsigned k = 0; k < n; k++) {
                if (memcmp(e->visible + off + k * SG_PERSIST_LINE,
                           e->media + off + k * SG_PERSIST_LINE, SG_PERSIST_LINE) != 0) {
                    write_back(p, e, off + k * SG_PERSIST_LINE, 1);
                }
            }
        }
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

/* E10 of the part of a range that lies in one extent. */
static bool persist_part(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len)
{
    struct sg_persist_faults *f = &e->faults;
    bool untracked = !p->config.cpu_tracking && len <= p->config.untracked_flush_max;

    if (f->flush_fails_always || f->flush_fails) {
        f->flush_fails -= f->flush_fails > 0;
        return false;
    }
    if (sg_dom_bad(p, e->base + off, len, SG_PERSIST_UNCORRECTABLE)) {
        return false;
    }
    if (untracked) {
        mark_untracked(p, e, off, len);
    }
    return sg_dom_advance_range(p, e, off, len,
                                p->config.domain == SG_PERSIST_NONE ? SG_DOM_TO_S4 : SG_DOM_TO_S3,
                                true)
           && !sg_dom_bad(p, e->base + off, len, SG_PERSIST_POISONED);
}

bool sg_dom_flush_finish(struct sg_persist *p, const struct sg_persist_source *source,
                         uint64_t addr, uint64_t len, unsigned flags)
{
    uint64_t at = addr, left = len, off;
    bool good = true;

    sg_dom_others_drain(p, -1);
    while (left && flags & SG_FLUSH_PERSISTENT) {
        struct extent *e = sg_dom_extent(p, at, 1, &off);
        uint64_t n = e ? SG_MIN(left, e->size - off) : left;

        good = e && persist_part(p, e, off, n) && good;
        at += n;
        left -= n;
    }
    sg_dom_log(p, good ? SG_PERSIST_EV_FLUSH_DONE : SG_PERSIST_EV_FLUSH_FAILED, source, addr, len,
               flags);
    p->flushes++;
    p->flushes_failed += !good;
    p->acknowledged += good && flags & SG_FLUSH_PERSISTENT;
    return good;
}

/* Time that a Flush takes which begins now. */
static uint64_t latency(struct sg_persist *p, unsigned flags)
{
    uint64_t ns = p->config.flush_latency_ns;

    if (!(flags & SG_FLUSH_PERSISTENT)) {
        return 0;
    }
    if (p->config.flush_latency_random_ns) {
        ns += sg_dom_below(&p->rng, p->config.flush_latency_random_ns + 1);
    }
    return ns;
}

static enum sg_pm_result wait_for_ever(struct sg_pm_op *op)
{
    op->due_ns = SG_NEVER;
    return SG_PM_LATER;
}

enum sg_pm_result sg_persist_flush(struct sg_persist *p, const struct sg_persist_source *source,
                                   uint64_t addr, struct sg_pm_op *op)
{
    unsigned flags = op->flags & (SG_FLUSH_PERSISTENT | SG_FLUSH_GLOBAL), halves = 0;
    bool good = true;

    if (p->frozen) {
        return wait_for_ever(op);
    }
    if (!flags || source->unit >= SG_PERSIST_DEVICES
        || (op->len && !(sg_persist_query(p, addr, op->len) & SG_PM_PERSISTENT))) {
        return SG_PM_FAILED;
    }
    if (op->phase == SG_PM_NEW) {
        halves = SG_DOM_FLUSH_BEGIN;
        op->phase = SG_PM_UNDER_WAY;
        op->due_ns = p->now_ns + latency(p, flags);
    } else if (p->now_ns < op->due_ns) {
        return SG_PM_LATER;
    }
    if (p->now_ns >= op->due_ns) {
        halves |= SG_DOM_FLUSH_FINISH;
        op->phase = SG_PM_NEW;
    }
    sg_dom_log(p, SG_PERSIST_EV_FLUSH, source, addr, op->len, flags | halves);
    if (halves & SG_DOM_FLUSH_BEGIN) {
        sg_dom_flush_begin(p, source);
    }
    if (halves & SG_DOM_FLUSH_FINISH) {
        good = sg_dom_flush_finish(p, source, addr, op->len, flags);
    }
    sg_dom_input_done(p);
    if (p->frozen) {
        return wait_for_ever(op); /* the power went before the answer */
    }
    if (!(halves & SG_DOM_FLUSH_FINISH)) {
        return SG_PM_LATER;
    }
    return good ? SG_PM_DONE : SG_PM_FAILED;
}

/* ---- The media's side ---- */

/* Of the part of a range that lies in one extent. */
static bool media_read_part(struct sg_persist *p, struct extent *e, uint64_t off, uint8_t *buf,
                            size_t len)
{
    bool cache_survives;

    for (uint64_t at = sg_align_down(off, SG_PERSIST_PAGE); at < off + len; at += SG_PERSIST_PAGE) {
        sg_dom_keep_untracked(p, e, at / SG_PERSIST_PAGE,
                              sg_dom_page_mask(at / SG_PERSIST_PAGE, off, len));
    }
    if (sg_dom_bad(p, e->base + off, len, SG_PERSIST_UNCORRECTABLE | SG_PERSIST_POISONED)) {
        return false;
    }
    /* A medium that takes no more, or may not, leaves the cache's content nowhere to go. */
    cache_survives = p->config.domain >= SG_PERSIST_EADR && !e->faults.read_only
                     && !e->faults.wears_out;
    memcpy(buf, (cache_survives ? e->visible : e->media) + off, len);
    return true;
}

enum sg_pm_result sg_persist_media_read(struct sg_persist *p, uint64_t addr, void *buf, size_t len)
{
    uint8_t *to = buf;
    uint64_t off;

    if (len ? !(sg_persist_query(p, addr, len) & SG_PM_PERSISTENT)
            : !sg_dom_extent(p, addr, len, &off)) {
        return SG_PM_FAILED;
    }
    if (p->frozen) {
        return SG_PM_LATER;
    }
    sg_persist_cpu_sync(p);
    while (len) {
        struct extent *e = sg_dom_extent(p, addr, 1, &off);
        size_t n = SG_MIN(len, e->size - off);

        if (!media_read_part(p, e, off, to, n)) {
            return SG_PM_FAILED;
        }
        addr += n;
        to += n;
        len -= n;
    }
    return SG_PM_DONE;
}

void sg_persist_deep_flush(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    uint64_t off;
    struct extent *e = sg_dom_extent(p, addr, len, &off);

    if (p->frozen || !e || !len) {
        return;
    }
    sg_dom_log(p, SG_PERSIST_EV_DEEP_FLUSH, NULL, addr, len, 0);
    sg_dom_drain_range(p, e, off, len);
    sg_dom_input_done(p);
}

void sg_persist_orderly(struct sg_persist *p)
{
    if (p->frozen) {
        return;
    }
    sg_dom_log(p, SG_PERSIST_EV_ORDERLY, NULL, 0, 0, 0);
    sg_dom_others_drain(p, -1);
    while (p->conn_order->len) {
        struct sg_dom_conn *c = g_ptr_array_index(p->conn_order, 0);

        sg_dom_settle(p, c->device, c->qpn);
    }
    for (unsigned d = 0; d < SG_PERSIST_DEVICES; d++) {
        sg_dom_drain_posted(p, d);
    }
    for (unsigned i = 0; i < p->extent_count; i++) {
        struct extent *e = &p->extent[i];

        if (e->used) {
            if (!p->config.cpu_tracking) {
                mark_untracked(p, e, 0, e->size);
            }
            sg_dom_advance_range(p, e, 0, e->size, SG_DOM_TO_S4, true);
        }
    }
    sg_dom_input_done(p);
}
