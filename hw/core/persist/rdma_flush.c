/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA Flush, and the other operations on a range of the media.
 *
 * A Flush has two halves.  Begin: the connection settles, and the device's own read pushes out its
 * posted writes (E9); from here on the range is visible.  Finish, after the configured latency:
 * with P the range goes from the cache to the stage that the domain keeps (E10), or to the media
 * if it keeps nothing else.  Finish may cover more than begin saw, never less.  Only a Finish that
 * moved every dirty line of the range answers SG_PM_DONE.
 */
#include "persist/domain_impl.h"

void sg_dom_flush_begin(struct sg_persist *p, const struct sg_persist_source *source)
{
    sg_dom_others_drain(p, -1, SG_DOM_ADAPTER);
    sg_dom_settle(p, source->unit, source->qpn);
    sg_dom_drain_posted(p, source->unit);
}

/* E10 of the part of a range that lies in one extent. */
static bool persist_part(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len,
                         const struct sg_persist_source *source,
                         const struct sg_persist_flush_note *note)
{
    enum sg_dom_target to = p->config.domain == SG_PERSIST_NONE ? SG_DOM_TO_S4 : SG_DOM_TO_S3;
    bool moved;
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
        sg_dom_mark_untracked(p, e, off, len);
    }
    moved = note ? sg_dom_advance_noted(p, e, off, len, to, source, note)
                 : sg_dom_advance_range(p, e, off, len, to, false);
    return moved && !sg_dom_bad(p, e->base + off, len, SG_PERSIST_POISONED);
}

bool sg_dom_flush_finish(struct sg_persist *p, const struct sg_persist_source *source,
                         uint64_t addr, uint64_t len, unsigned flags,
                         const struct sg_persist_flush_note *note)
{
    uint64_t at = addr, left = len, off;
    bool good = true;

    sg_dom_others_drain(p, -1, SG_DOM_ADAPTER);
    while (left && flags & SG_FLUSH_PERSISTENT) {
        struct extent *e = sg_dom_extent(p, at, 1, &off);
        uint64_t n = e ? SG_MIN(left, e->size - off) : left;

        good = e && persist_part(p, e, off, n, source, note) && good;
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

/* Latency of a Flush that begins now. */
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
    if (!flags || source->unit >= SG_PERSIST_DEVICES ||
        (op->len && !(sg_persist_query(p, addr, op->len) & SG_PM_PERSISTENT))) {
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
        good = sg_dom_flush_finish(p, source, addr, op->len, flags, NULL);
    }
    sg_dom_input_done(p);
    if (p->frozen) {
        return wait_for_ever(op); /* the power failed before the answer */
    }
    if (!(halves & SG_DOM_FLUSH_FINISH)) {
        return SG_PM_LATER;
    }
    return good ? SG_PM_DONE : SG_PM_FAILED;
}

void sg_persist_flush_begins(const struct sg_persist *p, unsigned device,
                             struct sg_persist_flush_note *note)
{
    *note = (struct sg_persist_flush_note){
        .seq = p->seq,
        .posted = device < SG_PERSIST_DEVICES ? p->posted[device] : 0,
    };
}

enum sg_pm_result sg_persist_flush_ends(struct sg_persist *p,
                                        const struct sg_persist_source *source, uint64_t addr,
                                        const struct sg_pm_op *op,
                                        const struct sg_persist_flush_note *note)
{
    unsigned flags = op->flags & (SG_FLUSH_PERSISTENT | SG_FLUSH_GLOBAL);
    struct sg_dom_flushed f = { addr, flags & SG_FLUSH_PERSISTENT ? op->len : 0 };
    bool good;

    if (p->frozen || !flags || source->unit >= SG_PERSIST_DEVICES ||
        (op->len && !(sg_persist_query(p, addr, op->len) & SG_PM_PERSISTENT))) {
        return SG_PM_FAILED;
    }
    sg_dom_log(p, SG_PERSIST_EV_FLUSH, source, addr, op->len, flags | SG_DOM_FLUSH_FINISH);
    sg_dom_noted_arrives(p, source, note, &f);
    good = sg_dom_flush_finish(p, source, addr, op->len, flags, note);
    sg_dom_input_done(p);
    return good ? SG_PM_DONE : SG_PM_FAILED;
}

/* ---- The media side ---- */

/* Reads the part of a range that lies in one extent. */
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
    /* If the medium refuses, the cache's content cannot survive. */
    cache_survives =
        p->config.domain >= SG_PERSIST_EADR && !e->faults.read_only && !e->faults.wears_out;
    memcpy(buf, (cache_survives ? e->visible : e->media) + off, len);
    return true;
}

enum sg_pm_result sg_persist_media_read(struct sg_persist *p, uint64_t addr, void *buf, size_t len)
{
    uint8_t *to = buf;
    uint64_t off;
    bool good = true;

    if (len ? !(sg_persist_query(p, addr, len) & SG_PM_PERSISTENT)
            : !sg_dom_extent(p, addr, len, &off)) {
        return SG_PM_FAILED;
    }
    if (p->frozen) {
        return SG_PM_LATER;
    }
    sg_dom_cpu_sync(p);
    sg_dom_dma_read(p, SG_PERSIST_DEVICES, addr, len); /* Verify reads the range */
    while (len && good) {
        struct extent *e = sg_dom_extent(p, addr, 1, &off);
        size_t n = SG_MIN(len, e->size - off);

        good = media_read_part(p, e, off, to, n);
        addr += n;
        to += n;
        len -= n;
    }
    sg_dom_call_done(p);
    return good ? SG_PM_DONE : SG_PM_FAILED;
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
    sg_dom_cpu_fence_all(p);
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
                sg_dom_mark_untracked(p, e, 0, e->size);
            }
            sg_dom_advance_range(p, e, 0, e->size, SG_DOM_TO_S4, true);
        }
    }
    sg_dom_input_done(p);
}
