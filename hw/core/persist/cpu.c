/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPUs: stores, cache-line flushes, fences (E7, E8), after the x86 memory model.
 *
 * A plain store is in the cache (S2) at once, or, with config.store_buffer, waits in its vCPU's
 * FIFO.  A non-temporal store waits in a write-combining buffer and goes from there to S3, past the
 * cache; with it goes what its line has in the cache.  Non-temporal stores leave in any order, but
 * an atom's in theirs (the buffer's chunks are atoms).  A plain store of the same vCPU to the line
 * comes after them in the cache, so they are in it by then; they still go to S3 at the fence.
 *
 * CLWB and CLFLUSHOPT are recorded (line, event): the fence makes the line's stores up to that
 * event certain; until then they may move or not.  They do not reach into S2' of other vCPUs.
 * CLFLUSH is ordered with stores: at once, or through the FIFO.  All fences act alike: the FIFO
 * drains, then the write-combining buffers, then the recorded flushes are executed.
 *
 * Order between processors.  A store is in QEMU's visible memory before the model lets it leave
 * S2'.  Another processor or a device may have read it and acted on it; the effect of that must not
 * survive where the store does not.  So whenever another agent acts, the store buffer drains first
 * (invariant 6): a plain store is lost more rarely than on a real machine, but never in another
 * way.  With limits.exact adapters do not count: what a CPU tells them is a sync.  Non-temporal
 * stores promise no order even to who observes them, and nobody snoops write-combining buffers.
 * So they stay, unless another agent accesses their line: who read them read memory, and who writes
 * the line writes after them.
 */
#include "persist/segments.h"

static struct cpu_ring new_ring(unsigned size)
{
    return (struct cpu_ring){ .at = g_new(struct cpu_entry, size), .size = size };
}

struct cpu *sg_dom_cpu_at(struct sg_persist *p, unsigned unit)
{
    struct cpu *c = p->cpu[unit];

    if (!c) {
        c = p->cpu[unit] = g_new0(struct cpu, 1);
        p->cpu_count = SG_MAX(p->cpu_count, unit + 1);
        c->unit = unit;
        c->sb = new_ring(SG_MAX(p->limits.buffer_stores, 1u));
        c->wc = new_ring(SG_MAX(p->limits.nt_lines, 1u));
        c->flushes = g_array_new(FALSE, FALSE, sizeof(struct cpu_entry));
    }
    return c;
}

void sg_dom_cpu_free(struct sg_persist *p, unsigned unit)
{
    struct cpu *c = p->cpu[unit];

    if (c) {
        g_free(c->sb.at);
        g_free(c->wc.at);
        g_array_free(c->flushes, TRUE);
        g_free(c);
        p->cpu[unit] = NULL;
    }
}

static void ring_add(struct cpu_ring *r, struct cpu_entry x)
{
    *sg_dom_ring_at(r, r->count++) = x;
}

static struct cpu_entry ring_take(struct cpu_ring *r)
{
    struct cpu_entry x = r->at[r->head];

    r->head = (r->head + 1) % r->size;
    r->count--;
    return x;
}

unsigned sg_dom_next_busy(const struct sg_persist *p, unsigned vcpu)
{
    while (p->busy_cpus && vcpu < SG_PERSIST_VCPUS) {
        uint64_t left = p->busy[vcpu / 64] >> (vcpu % 64);

        if (left) {
            return vcpu + __builtin_ctzll(left);
        }
        vcpu = (vcpu / 64 + 1) * 64;
    }
    return SG_PERSIST_VCPUS;
}

/* ---- S2' ---- */

/* The line of an address if it has a history; it will be changed. */
static struct line *line_with_history(struct sg_persist *p, uint64_t addr)
{
    uint64_t off = 0;
    struct extent *e = sg_dom_extent(p, addr, SG_PERSIST_LINE, &off);
    struct page *g = e ? e->pages[off / SG_PERSIST_PAGE] : NULL;
    unsigned i = off % SG_PERSIST_PAGE / SG_PERSIST_LINE;

    if (!g || !(g->has_history & 1ull << i)) {
        return NULL;
    }
    sg_dom_touch(&e->touched, off / SG_PERSIST_PAGE);
    return sg_dom_line(p, g, i);
}

void sg_dom_cpu_drain_one(struct sg_persist *p, struct cpu *c)
{
    struct cpu_entry x = ring_take(&c->sb);
    struct line *l;

    if (!c->sb.count) {
        p->busy[c->unit / 64] &= ~(1ull << (c->unit % 64));
        p->busy_cpus--;
    }
    if (x.flush) {
        sg_dom_advance_upto(p, x.addr, x.seq, c->unit, true);
        return;
    }
    l = line_with_history(p, x.addr);
    if (l) {
        sg_dom_line_leave_cpu(p, l, sg_dom_line_upto(p, l, x.seq));
    }
}

void sg_dom_cpu_drain_stores(struct sg_persist *p, struct cpu *c)
{
    while (c->sb.count) {
        sg_dom_cpu_drain_one(p, c);
    }
}

/* Older plain stores to the same line have left before, and so has everything before them. */
static void drain_one_wc(struct sg_persist *p, struct cpu *c)
{
    struct cpu_entry x = ring_take(&c->wc);

    sg_dom_cpu_drain_stores(p, c);
    sg_dom_advance_upto(p, x.addr, x.seq, c->unit, false);
}

void sg_dom_cpu_drain(struct sg_persist *p, int vcpu)
{
    struct cpu *c = p->cpu[vcpu];

    sg_dom_cpu_drain_stores(p, c);
    while (c->wc.count) {
        drain_one_wc(p, c);
    }
}

void sg_dom_others_drain(struct sg_persist *p, int vcpu, enum sg_dom_actor actor)
{
    if (p->limits.exact &&
        (actor == SG_DOM_ADAPTER || (p->limits.all_loads && actor == SG_DOM_PROCESSOR))) {
        return;
    }
    for (unsigned i = 0; (i = sg_dom_next_busy(p, i)) < SG_PERSIST_VCPUS; i++) {
        if ((int)i != vcpu) {
            sg_dom_cpu_drain_stores(p, p->cpu[i]);
        }
    }
}

static bool in_lines(const struct cpu_entry *x, uint64_t addr, uint64_t len)
{
    return x->addr < addr + len && addr < x->addr + SG_PERSIST_LINE;
}

/* How many of the oldest stores in the buffer have left it if the lines of a range were read. */
static unsigned stores_seen(const struct cpu *c, uint64_t addr, uint64_t len)
{
    unsigned n = c->sb.count;

    while (n) {
        const struct cpu_entry *x = sg_dom_ring_at(&c->sb, n - 1);

        if (!x->flush && in_lines(x, addr, len)) {
            break;
        }
        n--;
    }
    return n;
}

/* The plain stores to these lines have left the other processors, and what is before them. */
static void stores_leave(struct sg_persist *p, uint64_t addr, uint64_t len, int vcpu)
{
    for (unsigned i = 0; (i = sg_dom_next_busy(p, i)) < SG_PERSIST_VCPUS; i++) {
        for (unsigned n = (int)i == vcpu ? 0 : stores_seen(p->cpu[i], addr, len); n; n--) {
            sg_dom_cpu_drain_one(p, p->cpu[i]);
        }
    }
}

/* The lines of a page with non-temporal stores in S2' of another vCPU than this one. */
static uint64_t waiting_lines(const struct sg_persist *p, const struct page *g, uint64_t mask,
                              int vcpu)
{
    uint64_t found = 0;

    for (uint64_t m = g->has_history & mask; m; m &= m - 1) {
        const struct line *l = sg_dom_line(p, g, __builtin_ctzll(m));

        found |= l->nt_cpu && l->nt_cpu != vcpu + 1 ? m & -m : 0;
    }
    return found;
}

void sg_dom_others_leave(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len,
                         int vcpu)
{
    if (p->busy_cpus) {
        stores_leave(p, e->base + off, len, vcpu);
    }
    if (!p->nt_lines) {
        return;
    }
    SG_DOM_FOR_PAGES(e, page_no, off, len) {
        uint64_t mask = sg_dom_page_mask(page_no, off, len);

        for (uint64_t m = waiting_lines(p, e->pages[page_no], mask, vcpu); m; m &= m - 1) {
            unsigned i = __builtin_ctzll(m);
            struct line *l = sg_dom_line(p, e->pages[page_no], i);

            sg_dom_line_leave_cpu(p, l, l->count);
            sg_dom_advance_line(p, e, page_no, i, l->count, SG_DOM_TO_S3);
        }
    }
}

/* The part of a range that lies in an extent. */
static uint64_t part_in(const struct extent *e, uint64_t addr, uint64_t len, uint64_t *off)
{
    uint64_t lo = SG_MAX(addr, e->base), hi = SG_MIN(addr + len, e->base + e->size);

    *off = lo - e->base;
    return e->used && lo < hi ? hi - lo : 0;
}

static bool nt_seen(const struct sg_persist *p, uint64_t addr, uint64_t len, int vcpu)
{
    for (unsigned x = 0; p->nt_lines && x < p->extent_count; x++) {
        const struct extent *e = &p->extent[x];
        uint64_t off, n = part_in(e, addr, len, &off);

        if (!n) {
            continue;
        }
        SG_DOM_FOR_PAGES(e, page_no, off, n) {
            if (waiting_lines(p, e->pages[page_no], sg_dom_page_mask(page_no, off, n), vcpu)) {
                return true;
            }
        }
    }
    return false;
}

bool sg_dom_cpu_sees(const struct sg_persist *p, uint64_t addr, uint64_t len, int vcpu)
{
    for (unsigned i = 0; (i = sg_dom_next_busy(p, i)) < SG_PERSIST_VCPUS; i++) {
        if ((int)i != vcpu && stores_seen(p->cpu[i], addr, len)) {
            return true;
        }
    }
    return nt_seen(p, addr, len, vcpu);
}

void sg_dom_cpu_seen(struct sg_persist *p, uint64_t addr, uint64_t len, int vcpu)
{
    stores_leave(p, addr, len, vcpu);
    for (unsigned x = 0; x < p->extent_count; x++) {
        uint64_t off, n = part_in(&p->extent[x], addr, len, &off);

        if (n) {
            sg_dom_others_leave(p, &p->extent[x], off, n, vcpu);
        }
    }
}

void sg_persist_cpu_load(struct sg_persist *p, const struct sg_persist_source *source,
                         uint64_t addr, uint64_t len)
{
    int vcpu = source->agent == SG_PERSIST_CPU ? source->unit : -1;
    uint64_t lo = sg_align_down(addr, SG_PERSIST_LINE);
    uint64_t last = (addr + (len - 1)) | (SG_PERSIST_LINE - 1);

    if (p->frozen || !len || addr + (len - 1) < addr ||
        !(sg_dom_posted_sees(p, lo, last) || sg_dom_cpu_sees(p, addr, len, vcpu))) {
        return;
    }
    sg_dom_log(p, SG_PERSIST_EV_CPU_LOAD, source, addr, len, 0);
    sg_dom_posted_seen(p, lo, last);
    sg_dom_cpu_seen(p, addr, len, vcpu);
    sg_dom_input_done(p);
}

static void into_store_buffer(struct sg_persist *p, unsigned unit, uint64_t addr, uint64_t seq,
                              bool flush)
{
    struct cpu *c = sg_dom_cpu_at(p, unit);

    if (c->sb.count == c->sb.size) {
        sg_dom_cpu_drain_one(p, c);
        p->merged++;
    }
    if (!c->sb.count) {
        p->busy[unit / 64] |= 1ull << (unit % 64);
        p->busy_cpus++;
    }
    ring_add(&c->sb, (struct cpu_entry){ .addr = addr, .seq = seq, .flush = flush });
}

static void into_wc_buffer(struct sg_persist *p, unsigned unit, uint64_t addr, uint64_t seq)
{
    struct cpu *c = sg_dom_cpu_at(p, unit);
    struct cpu_entry *last = sg_dom_ring_at(&c->wc, c->wc.count + c->wc.size - 1);

    if (c->wc.count && last->addr == addr) {
        last->seq = seq;
        return;
    }
    if (c->wc.count == c->wc.size) {
        drain_one_wc(p, c);
        p->merged++;
    }
    ring_add(&c->wc, (struct cpu_entry){ .addr = addr, .seq = seq });
}

void sg_dom_cpu_clear(struct sg_persist *p)
{
    for (unsigned i = 0; i < SG_PERSIST_VCPUS; i++) {
        struct cpu *c = p->cpu[i];

        if (c) {
            c->sb.count = c->wc.count = c->flushes_done = 0;
            g_array_set_size(c->flushes, 0);
        }
    }
    memset(p->busy, 0, sizeof(p->busy));
    p->busy_cpus = p->nt_lines = 0;
}

/* ---- Stores ---- */

/* As a CPU does: naturally aligned stores in one piece. */
static void write_visible(uint8_t *to, const void *buf, size_t len)
{
    if (len == 8 && sg_is_aligned((uintptr_t)to, 8)) {
        memcpy(__builtin_assume_aligned(to, 8), buf, 8);
    } else if (len == 4) {
        memcpy(to, buf, 4);
    } else if (len == 2) {
        memcpy(to, buf, 2);
    } else {
        memcpy(to, buf, len);
    }
}

static void store_in_lines(struct sg_persist *p, struct extent *e, uint64_t off, const uint8_t *buf,
                           size_t len, uint64_t seq, unsigned flags, unsigned unit)
{
    uint8_t mark = flags & SG_PERSIST_STORE_NT ? REC_WC : p->config.store_buffer ? REC_SB : 0;

    while (len) {
        uint64_t line = sg_align_down(off, SG_PERSIST_LINE);
        size_t n = SG_MIN(len, line + SG_PERSIST_LINE - off);

        sg_dom_others_leave(p, e, off, n, unit);
        sg_dom_line_store(p, e, off / SG_PERSIST_PAGE, off % SG_PERSIST_PAGE / SG_PERSIST_LINE,
                          &(struct sg_dom_store){
                              .in = off - line,
                              .len = n,
                              .data = buf,
                              .seq = seq,
                              .flags = mark,
                              .cpu = unit + 1,
                              .written = !(flags & SG_PERSIST_STORE_WRITE),
                          });
        if (mark == REC_WC) {
            into_wc_buffer(p, unit, e->base + line, seq);
        } else if (mark == REC_SB) {
            into_store_buffer(p, unit, e->base + line, seq, false);
        }
        off += n;
        buf += n;
        len -= n;
    }
}

/* A store that nothing else has to move for is appended to its line; most are such. */
static void add_store(struct sg_persist *p, struct extent *e, uint64_t off, const uint8_t *buf,
                      size_t len, uint64_t seq, unsigned flags, unsigned unit)
{
    struct sg_dom_store store = { .len = len, .data = buf, .seq = seq, .cpu = unit + 1 };

    if (flags & SG_PERSIST_STORE_NT || p->config.store_buffer || len > SG_PERSIST_ATOM ||
        !sg_dom_line_append(p, e, off, &store)) {
        store_in_lines(p, e, off, buf, len, seq, flags, unit);
    }
}

void sg_persist_will_change(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    uint64_t off;
    struct extent *e = len ? sg_dom_extent(p, addr, len, &off) : NULL;

    if (!e || p->frozen) {
        return;
    }
    sg_dom_touch_range(&e->touched, off, len);
    if (p->limits.exact) {
        sg_dom_posted_before(p, addr, len);
        sg_dom_segments_early(p, addr, len);
    }
    if (p->config.cpu_tracking) {
        sg_dom_announce(p, e, off, len);
    }
}

void sg_dom_announce(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len)
{
    if (len > SG_PERSIST_PAGE ||
        (len && !(sg_dom_is_apart(e, off) && sg_dom_is_apart(e, off + len - 1)))) {
        sg_dom_tell_apart(p, e, off, len);
    }
    p->announced = e->base + off;
    p->announced_len = len;
}

bool sg_dom_was_announced(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    bool was = p->announced == addr && p->announced_len == len;

    p->announced_len = 0;
    return was;
}

bool sg_persist_cpu_store(struct sg_persist *p, const struct sg_persist_source *source,
                          uint64_t addr, const void *buf, size_t len, unsigned flags)
{
    uint64_t off, seq;
    struct extent *e = len ? sg_dom_extent(p, addr, len, &off) : NULL;
    bool tracked = p->config.cpu_tracking && !p->frozen && source->unit < SG_PERSIST_VCPUS;

    if (!e) {
        return false;
    }
    sg_dom_touch_range(&e->touched, off, len);
    flags &= ~SG_PERSIST_STORE_ANNOUNCED; /* the domain knows */
    if (tracked) {
        flags |= sg_dom_was_announced(p, addr, len) ? SG_PERSIST_STORE_ANNOUNCED : 0;
        if (p->busy_cpus) {
            sg_dom_others_drain(p, source->unit, SG_DOM_PROCESSOR);
        }
        seq = sg_dom_log_payload(p, SG_PERSIST_EV_CPU_STORE, source, addr, buf, len, flags);
        if (flags & SG_PERSIST_STORE_WRITE) {
            sg_dom_posted_before(p, addr, len);
            sg_dom_segments_early(p, addr, len);
        }
        add_store(p, e, off, buf, len, seq, flags, source->unit);
    }
    if (flags & SG_PERSIST_STORE_WRITE) {
        write_visible(e->visible + off, buf, len);
    }
    if (tracked) {
        sg_dom_pace(p, e, off, len);
        sg_dom_input_done(p);
    }
    return true;
}

/* ---- Flushes and fences ---- */

/* From here on the line's stores so far have to be told from later ones. */
static void mark_noted(struct sg_persist *p, uint64_t addr)
{
    uint64_t off = 0;
    struct extent *e = sg_dom_extent(p, addr, SG_PERSIST_LINE, &off);
    struct page *g = e ? e->pages[off / SG_PERSIST_PAGE] : NULL;

    if (g) {
        sg_dom_touch(&e->touched, off / SG_PERSIST_PAGE);
        g->noted |= g->dirty & ~g->has_history & 1ull << (off % SG_PERSIST_PAGE / SG_PERSIST_LINE);
    }
}

static void note_flush(struct sg_persist *p, struct cpu *c, uint64_t addr, uint64_t seq)
{
    struct cpu_entry x = { .addr = addr, .seq = seq };

    mark_noted(p, addr);

    if (c->flushes->len - c->flushes_done >= SG_DOM_CPU_FLUSHES && !p->limits.exact) {
        struct cpu_entry *oldest = &g_array_index(c->flushes, struct cpu_entry, c->flushes_done++);

        sg_dom_cpu_drain_stores(p, c);
        sg_dom_advance_upto(p, oldest->addr, oldest->seq, c->unit, true);
        if (c->flushes_done >= SG_DOM_CPU_FLUSHES) {
            g_array_remove_range(c->flushes, 0, c->flushes_done);
            c->flushes_done = 0;
        }
    }
    g_array_append_val(c->flushes, x);
}

void sg_persist_cpu_flush(struct sg_persist *p, const struct sg_persist_source *source,
                          uint64_t addr, enum sg_persist_cpu_flush kind)
{
    uint64_t off, seq, line = sg_align_down(addr, SG_PERSIST_LINE);

    if (p->frozen || !p->config.cpu_tracking || source->unit >= SG_PERSIST_VCPUS ||
        !sg_dom_extent(p, line, SG_PERSIST_LINE, &off)) {
        return;
    }
    sg_dom_others_drain(p, source->unit, SG_DOM_PROCESSOR);
    seq = sg_dom_log(p, SG_PERSIST_EV_CPU_FLUSH, source, line, SG_PERSIST_LINE, kind);
    if (kind != SG_PERSIST_CLFLUSH) {
        note_flush(p, sg_dom_cpu_at(p, source->unit), line, seq);
    } else if (p->config.store_buffer) {
        into_store_buffer(p, source->unit, line, seq, true);
    } else {
        sg_dom_advance_upto(p, line, seq, source->unit, true);
    }
    sg_dom_input_done(p);
}

static void carry_out_flushes(struct sg_persist *p, struct cpu *c)
{
    for (unsigned i = c->flushes_done; i < c->flushes->len; i++) {
        struct cpu_entry *x = &g_array_index(c->flushes, struct cpu_entry, i);

        sg_dom_advance_upto(p, x->addr, x->seq, c->unit, true);
    }
    c->flushes_done = 0;
    g_array_set_size(c->flushes, 0);
}

/* What is in S2', of other processors, stays there. */
static void write_back_cache(struct sg_persist *p)
{
    for (unsigned i = 0; i < p->extent_count; i++) {
        if (p->extent[i].used) {
            sg_dom_advance_range(p, &p->extent[i], 0, p->extent[i].size, SG_DOM_TO_S3, false);
        }
    }
}

void sg_persist_cpu_fence(struct sg_persist *p, const struct sg_persist_source *source,
                          enum sg_persist_cpu_fence kind)
{
    struct cpu *c = source->unit < SG_PERSIST_VCPUS ? p->cpu[source->unit] : NULL;
    bool waits = c && (c->sb.count | c->wc.count | c->flushes->len);
    bool all = kind == SG_PERSIST_WBINVD && p->config.cpu_tracking;

    if (source->unit >= SG_PERSIST_VCPUS || !(waits || all) || p->frozen) {
        return;
    }
    sg_dom_log(p, SG_PERSIST_EV_CPU_FENCE, source, 0, 0, kind);
    if (waits) {
        sg_dom_cpu_drain(p, source->unit);
        carry_out_flushes(p, c);
    }
    if (all) {
        write_back_cache(p);
    }
    sg_dom_input_done(p);
}

void sg_dom_cpu_fence_all(struct sg_persist *p)
{
    for (unsigned i = 0; i < SG_PERSIST_VCPUS; i++) {
        if (p->cpu[i]) {
            sg_dom_cpu_drain(p, i);
            carry_out_flushes(p, p->cpu[i]);
        }
    }
}

bool sg_persist_cpu_waits(const struct sg_persist *p)
{
    return p->busy_cpus || p->nt_lines;
}

void sg_dom_cpu_sync(struct sg_persist *p)
{
    if (p->busy_cpus) {
        sg_dom_log(p, SG_PERSIST_EV_CPU_SYNC, NULL, 0, 0, 0);
        sg_dom_others_drain(p, -1, SG_DOM_ANYBODY);
        sg_dom_step_done(p);
    }
}

void sg_persist_cpu_sync(struct sg_persist *p)
{
    if (!p->frozen) {
        sg_dom_cpu_sync(p);
        sg_dom_call_done(p);
    }
}
