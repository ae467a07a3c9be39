/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The persistence domain: creation, extents, configuration.  How all of it works:
 *
 * Data enter as payload of an adapter or as stores of a CPU and move through stages towards the
 * media (persist.h names them).  Storage of each stage:
 *
 *   S0   struct sg_dom_conn.s0, pieces per connection    placement.c
 *   S1   sg_persist.s1, pieces per device                posted.c
 *   S2'  marks REC_SB, REC_WC on stores of a line, and
 *        lists of lines per vCPU                         line.c, cpu.c
 *   S2   dirty lines                                     page.c, line.c
 *   S3   dirty lines marked in_wpq; domain NONE only     advance.c
 *   S4   the media
 *
 * The events of the model, and the functions that execute them:
 *
 *   E1   sg_persist_dma_write, sg_persist_settle         placement.c
 *   E3   sg_dom_drain_posted                             posted.c
 *   E4   sg_persist_device_fence                         placement.c
 *   E5   sg_persist_cpu_load                             cpu.c
 *   E6   sg_dom_pace                                     advance.c
 *   E7   sg_persist_cpu_flush, sg_persist_cpu_fence      cpu.c
 *   E8   sg_persist_cpu_store, sg_persist_cpu_fence      cpu.c
 *   E9   sg_persist_flush                                rdma_flush.c
 *   E10  sg_persist_flush                                rdma_flush.c
 *   E12  sg_dom_pace                                     advance.c
 *   E13  sg_persist_deep_flush                           rdma_flush.c
 *   E14  sg_persist_atom_store                           placement.c
 *   E15  sg_persist_atomic                               placement.c
 *   cut  sg_persist_cut                                  cut.c, outcome.c
 *        sg_persist_uncertain, sg_persist_clone          certain.c, clone.c
 *
 * (E2: nothing moves.  E11 is E7 plus a message.)
 *
 * An input event is logged, executed, and followed by sg_dom_input_done(), where an armed cut
 * may freeze the domain.  From then on inputs return at once: the machine has stopped.  A call with
 * several inputs (an Atomic reads its atom before) is executed as a whole: sg_dom_step_done() after
 * each, sg_dom_call_done() at its end.
 *
 * Invariants, between calls (sg_assert_persist_state() checks them, check.c):
 *
 *   1  A page exists exactly while one of its lines is dirty; the bits of map and top say so.
 *   2  A line with a history is dirty; all_or_nothing and in_wpq are of dirty lines without one.
 *   3  A history has 1 to line_stores stores, each to one atom with at least one octet; the last
 *      is a cut point.
 *   4  Something is in S3 only in domain NONE; a history's stores in S3 are whole leading groups.
 *   5  Stores in S2' are a suffix of their line, of one vCPU, and in no group with others.
 *   6  At most one vCPU has anything in its store buffer (busy): when another agent acts, it
 *      could have seen those stores, so they have left the processor by then.  A line knows the one
 *      vCPU that has non-temporal stores to it in S2' (nt_cpu); nt_lines counts such lines.
 *   7  S0 and S1 hold what their counters say, within their limits; S0 has no empty connection.
 *   8  S1 is empty if the root complex is eager; S0 is empty if placement is neither delayed nor
 *      out of order.
 *   9  Bad ranges are sorted, disjoint, whole lines.
 *  10  (deep, CPUs tracked) The media with all stores of a history applied is what is visible;
 *      a clean line is the same in both memories.
 *
 * Of these, 10 is what makes a cut exact, 4 and 5 make its choices the permitted ones, 6 keeps
 * effects between processors in order.
 *
 * Bounds.  S0 and S1: limits, per connection and device.  Lines: a page structure per dirty 4 KiB
 * and line_stores stores per history; so the worst case follows the size of the extents.  CPU
 * lists: SG_DOM_* of domain_impl.h.  Log: a ring.
 */
#include "persist/segments.h"

static const char *config_error(const struct sg_persist_config *c)
{
    if (c->domain >= SG_PERSIST_DOMAINS) {
        return "unknown domain";
    }
    if (c->untracked >= SG_PERSIST_UNTRACKED_KINDS) {
        return "unknown policy for untracked stores";
    }
    if (c->eviction >= SG_PERSIST_PACES || c->drain >= SG_PERSIST_PACES ||
        c->posted_drain >= SG_PERSIST_PACES) {
        return "unknown pace";
    }
    if (c->placement_order >= SG_PERSIST_ORDERS) {
        return "unknown placement order";
    }
    if (!c->one_in) {
        return "one_in must be at least 1";
    }
    if (c->placement_delay_ns >= SG_NEVER / 4 || c->flush_latency_ns >= SG_NEVER / 4 ||
        c->flush_latency_random_ns >= SG_NEVER / 4) {
        return "delay too long";
    }
    return NULL;
}

struct sg_persist *sg_persist_new(const struct sg_persist_config *config,
                                  const struct sg_persist_limits *limits,
                                  const struct sg_persist_ops *ops, void *opaque)
{
    struct sg_persist *p = g_new0(struct sg_persist, 1);

    sg_persist_config_init(&p->config);
    sg_persist_limits_init(&p->limits);
    if (config) {
        sg_assert(!config_error(config));
        p->config = *config;
    }
    if (limits) {
        p->limits = *limits;
    }
    p->limits.line_stores = SG_MIN(SG_MAX(p->limits.line_stores, SG_DOM_LINE_ATOMS), 4096);
    p->ops = ops;
    p->opaque = opaque;
    p->rng = p->limits.seed;
    p->place_due_ns = p->posted_due_ns = SG_NEVER;
    sg_dom_pool_init(&p->pages, sizeof(struct page));
    sg_dom_pool_init(&p->lines, sizeof(struct line));
    sg_dom_pool_init(&p->recs, sizeof(struct rec));
    p->conns = g_hash_table_new(g_int64_hash, g_int64_equal);
    p->conn_order = g_ptr_array_new();
    sg_dom_origin_init(p);
    sg_dom_overtaken_init(p);
    sg_dom_log_init(p);
    sg_dom_log_config(p);
    return p;
}

static void free_extent(struct extent *e)
{
    g_free(e->name);
    g_free(e->pages);
    g_free(e->map);
    g_free(e->top);
    sg_dom_touched_end(&e->touched);
    memset(e, 0, sizeof(*e));
}

void sg_persist_free(struct sg_persist *p)
{
    if (!p) {
        return;
    }
    sg_dom_place_clear(p);
    for (unsigned i = 0; i < SG_PERSIST_EXTENTS; i++) {
        free_extent(&p->extent[i]);
    }
    for (unsigned i = 0; i < SG_PERSIST_VCPUS; i++) {
        sg_dom_cpu_free(p, i);
    }
    for (unsigned i = 0; i < SG_ARRAY_SIZE(p->bad); i++) {
        g_free(p->bad[i].range);
    }
    sg_dom_pool_fini(&p->pages);
    sg_dom_pool_fini(&p->lines);
    sg_dom_pool_fini(&p->recs);
    g_hash_table_destroy(p->conns);
    g_ptr_array_free(p->conn_order, TRUE);
    g_array_free(p->origins, TRUE);
    sg_dom_overtaken_free(p);
    g_free(p->log);
    g_free(p->log_data);
    g_free(p);
}

/* ---- Configuration ---- */

const struct sg_persist_config *sg_persist_config(const struct sg_persist *p)
{
    return &p->config;
}

/*
 * Lines that untracked CPUs changed become dirty lines; in lines with a history the change
 * becomes one more store.
 */
static void adopt_untracked(struct sg_persist *p, uint64_t seq)
{
    for (unsigned i = 0; i < p->extent_count; i++) {
        struct extent *e = &p->extent[i];
        uint64_t off = 0, len;

        SG_DOM_FOR_PAGES(e, page_no, 0, e->size) {
            for (uint64_t m = e->pages[page_no]->has_history; m; m &= m - 1) {
                sg_dom_line_adopt(p, e, page_no, __builtin_ctzll(m), seq);
            }
        }
        while (e->used && (len = sg_dom_untracked_next(p, e, &off, e->size)) != 0) {
            sg_dom_visible_mark(p, e, off, len, seq);
            off += len;
        }
    }
}

static void settle_everything(struct sg_persist *p)
{
    while (p->conn_order->len) {
        struct sg_dom_conn *c = g_ptr_array_index(p->conn_order, 0);

        sg_dom_settle(p, c->device, c->qpn);
    }
}

static void drain_everything_posted(struct sg_persist *p)
{
    for (unsigned d = 0; d < SG_PERSIST_DEVICES; d++) {
        sg_dom_drain_posted(p, d);
    }
}

/* Data for which the new rules have no stage move on, as they could have done at any time. */
static void leave_old_rules(struct sg_persist *p, const struct sg_persist_config *next)
{
    sg_dom_others_drain(p, -1, SG_DOM_ANYBODY);
    if (!next->cpu_tracking) {
        sg_dom_cpu_fence_all(p); /* their fences will not be reported */
    }
    if (!next->placement_delay_ns && next->placement_order == SG_PERSIST_IN_ORDER) {
        settle_everything(p);
    }
    if (next->posted_drain == SG_PERSIST_EAGER) {
        drain_everything_posted(p);
    }
}

const char *sg_persist_configure(struct sg_persist *p, const struct sg_persist_config *config)
{
    const char *error = config_error(config);
    bool was_tracking = p->config.cpu_tracking;

    if (error) {
        return error;
    }
    if (!p->frozen) {
        leave_old_rules(p, config);
    }
    p->config = *config;
    sg_dom_log_config(p);
    for (unsigned i = 0; !p->frozen && i < p->extent_count; i++) {
        if (p->extent[i].used &&
            (config->domain != SG_PERSIST_NONE || config->drain == SG_PERSIST_EAGER)) {
            sg_dom_drain_range(p, &p->extent[i], 0, p->extent[i].size);
            if (config->domain != SG_PERSIST_NONE) {
                sg_dom_empty_wpq(p, &p->extent[i]);
            }
        }
    }
    if (!p->frozen && config->cpu_tracking && !was_tracking) {
        adopt_untracked(p, p->seq);
    }
    return NULL;
}

/* ---- Extents ---- */

struct extent *sg_dom_find_extent(struct sg_persist *p, uint64_t addr, uint64_t len, uint64_t *off)
{
    struct extent *e = &p->extent[p->extent_hint];

    for (unsigned i = 0; !sg_dom_extent_holds(e, addr, len); i++) {
        if (i == p->extent_count) {
            return NULL;
        }
        e = &p->extent[i];
    }
    p->extent_hint = e - p->extent;
    *off = addr - e->base;
    return e;
}

int sg_persist_add(struct sg_persist *p, const struct sg_persist_extent *x)
{
    size_t pages = (x->size + SG_PERSIST_PAGE - 1) / SG_PERSIST_PAGE;
    struct extent *e;
    unsigned i = 0;

    if (!x->size || !sg_is_aligned(x->base | x->size, SG_PERSIST_LINE) ||
        x->base + x->size - 1 < x->base || !x->visible || !x->media ||
        !sg_is_aligned((uintptr_t)x->visible | (uintptr_t)x->media, SG_PERSIST_ATOM) ||
        sg_persist_query(p, x->base, x->size)) {
        return SG_PERSIST_NO_EXTENT;
    }
    while (i < SG_PERSIST_EXTENTS && p->extent[i].used) {
        i++;
    }
    if (i == SG_PERSIST_EXTENTS) {
        return SG_PERSIST_NO_EXTENT;
    }
    e = &p->extent[i];
    *e = (struct extent){
        .used = true,
        .base = x->base,
        .size = x->size,
        .visible = x->visible,
        .media = x->media,
        .page_count = pages,
        .name = x->name ? g_strdup(x->name) : g_strdup_printf("extent%u", i),
        .pages = g_new0(struct page *, pages),
        .map = g_new0(uint64_t, (pages + 63) / 64),
        .top = g_new0(uint64_t, (pages + 4095) / 4096),
    };
    p->extent_count = SG_MAX(p->extent_count, i + 1);
    return i;
}

void sg_persist_remove(struct sg_persist *p, int extent)
{
    sg_assert(extent >= 0 && extent < SG_PERSIST_EXTENTS && p->extent[extent].used);
    /* Pieces under way may be for this extent, or for others. */
    settle_everything(p);
    drain_everything_posted(p);
    sg_dom_others_drain(p, -1, SG_DOM_ANYBODY);
    sg_dom_extent_clear(p, &p->extent[extent]);
    free_extent(&p->extent[extent]);
    while (p->extent_count && !p->extent[p->extent_count - 1].used) {
        p->extent_count--;
    }
    p->extent_hint = 0;
}

unsigned sg_persist_query(const struct sg_persist *p, uint64_t addr, uint64_t len)
{
    uint64_t covered = 0;

    if (!len || addr + (len - 1) < addr) {
        return 0;
    }
    for (unsigned i = 0; i < p->extent_count; i++) {
        const struct extent *e = &p->extent[i];
        uint64_t lo = SG_MAX(addr, e->base);
        uint64_t hi = SG_MIN(addr + (len - 1), e->base + (e->size - 1)); /* inclusive */

        if (e->used && lo <= hi) {
            covered += hi - lo + 1;
        }
    }
    return (covered ? SG_PM_SOME : 0) | (covered == len ? SG_PM_PERSISTENT : 0);
}

int sg_persist_find(const struct sg_persist *p, uint64_t addr, uint64_t len, uint64_t *offset)
{
    struct extent *e = sg_dom_extent((struct sg_persist *)p, addr, len, offset);

    return e ? sg_dom_extent_number(p, e) : SG_PERSIST_NO_EXTENT;
}

/* ---- Freezing ---- */

void sg_dom_freeze(struct sg_persist *p)
{
    p->frozen = true;
    p->armed_hit = true;
    if (p->ops && p->ops->cut_due) {
        p->ops->cut_due(p->opaque);
    }
}

void sg_dom_step_done(struct sg_persist *p)
{
    p->inputs++;
    if (p->limits.check) {
        sg_assert_persist_state(p, false);
    }
    if (p->arm.kind == SG_PERSIST_ARM_EVENT && p->arm.count) {
        p->arm.count--;
    }
}

void sg_dom_call_done(struct sg_persist *p)
{
    if (p->arm.kind == SG_PERSIST_ARM_EVENT && !p->arm.count && !p->armed_hit) {
        sg_dom_freeze(p);
    }
}

void sg_dom_input_done(struct sg_persist *p)
{
    sg_dom_step_done(p);
    sg_dom_call_done(p);
}

void sg_persist_arm(struct sg_persist *p, const struct sg_persist_arm *arm)
{
    p->arm = *arm;
    p->armed_hit = false;
    if (!p->arm.count || p->frozen) {
        p->arm.kind = SG_PERSIST_ARM_OFF;
    }
}

void sg_persist_milestone(struct sg_persist *p, const struct sg_persist_source *source,
                          enum sg_pm_milestone what)
{
    if (p->frozen) {
        return;
    }
    sg_dom_log(p, SG_PERSIST_EV_MILESTONE, source, 0, 0, what);
    sg_dom_input_done(p);
    if (!p->frozen && p->arm.kind == SG_PERSIST_ARM_MILESTONE && p->arm.milestone == what &&
        --p->arm.count == 0) {
        sg_dom_freeze(p);
    }
}

bool sg_persist_frozen(const struct sg_persist *p)
{
    return p->frozen;
}

uint64_t sg_persist_events(const struct sg_persist *p)
{
    return p->inputs;
}

void sg_persist_stats(const struct sg_persist *p, struct sg_persist_stats *s)
{
    *s = (struct sg_persist_stats){
        .events = p->inputs,
        .flushes = p->flushes,
        .flushes_failed = p->flushes_failed,
        .lines_persisted = p->lines_persisted,
        .media_refusals = p->media_refusals,
        .merged = p->merged,
    };
    for (unsigned i = 0; i < p->conn_order->len; i++) {
        s->stage[SG_PERSIST_S0] +=
            ((struct sg_dom_conn *)g_ptr_array_index(p->conn_order, i))->s0.octets;
    }
    for (unsigned d = 0; d < SG_PERSIST_DEVICES; d++) {
        s->stage[SG_PERSIST_S1] += p->s1[d].octets;
    }
    for (unsigned i = 0; i < p->extent_count; i++) {
        const struct extent *e = &p->extent[i];

        SG_DOM_FOR_PAGES(e, page_no, 0, e->size) {
            const struct page *g = e->pages[page_no];

            s->stage[SG_PERSIST_S3] += __builtin_popcountll(g->in_wpq);
            s->stage[SG_PERSIST_S2] +=
                __builtin_popcountll(g->dirty & ~g->has_history & ~g->in_wpq);
            for (uint64_t m = g->has_history; m; m &= m - 1) {
                const struct line *l = sg_dom_line(p, g, __builtin_ctzll(m));

                s->stage[l->wpq_count == l->count                  ? SG_PERSIST_S3
                         : sg_dom_rec(p, l->last)->flags & REC_S2P ? SG_PERSIST_SB
                                                                   : SG_PERSIST_S2]++;
            }
        }
    }
}
