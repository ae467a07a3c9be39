/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set of machines, each with another past of spontaneous moves.
 *
 * What all of them share is in struct gt_world (gt_machine.h): what CPUs have stored and adapters
 * have posted, in order.  A machine has its caches and media, and how far its buffers have drained.
 * After each step the set is closed over the spontaneous moves: a cache line is evicted (E6), a
 * line of the write-pending queue drains (E12), the oldest store leaves the store buffer, a
 * non-temporal store leaves its write-combining buffer (E8).  An event that makes something certain
 * then only removes the machines where it has not happened.
 *
 * Non-temporal stores leave in any order, but an atom's in theirs.  With one goes what its line had
 * in the cache; and a plain store of the same CPU to the line comes after them in the cache.
 *
 * At the cut CPUs stop first; then the rest of S1 arrives, or a part of it.
 */
#include <string.h>

#include "gt_steps.h"

/* ---- Events ---- */

/* The next atom of a range, or all of its part in a line. */
static bool next_part(struct gt_part *range, struct gt_part *x, bool whole_line)
{
    unsigned unit = whole_line ? GT_LINE : 2, n = unit - range->at % unit;

    *x = *range;
    x->units = n < range->units ? n : range->units;
    range->at += x->units;
    range->units -= x->units;
    return x->units;
}

static void arrive(struct gt_world *w, const struct gt_part *x)
{
    struct gt_part foreign = *x;

    gt_adapter_acts(w);
    foreign.cpu = UINT8_MAX;
    gt_step(w, gt_line_has_left, &foreign);
    gt_step(w, gt_step_arrive, x);
}

void gt_come(struct gt_world *w, const struct gt_part *x)
{
    gt_adapter_acts(w);
    gt_step(w, gt_step_come, x);
}

static void post(struct gt_world *w, unsigned device, const struct gt_part *x)
{
    if (w->t->s1) {
        w->s1[device][w->s1_count[device]++] = *x;
    } else {
        arrive(w, x);
    }
}

static unsigned queue_of(const struct gt_event *e)
{
    return e->who * GT_CONNS + e->conn;
}

static void settle(struct gt_world *w, const struct gt_event *e)
{
    unsigned q = queue_of(e);

    gt_segments_settle(w, e->who, e->conn);
    for (unsigned i = 0; i < w->s0_count[q]; i++) {
        post(w, e->who, &w->s0[q][i]);
    }
    w->s0_count[q] = 0;
}

static void fence_device(struct gt_world *w, unsigned device)
{
    gt_segments_fence(w, device);
    for (unsigned i = 0; i < w->s1_count[device]; i++) {
        arrive(w, &w->s1[device][i]);
    }
    w->s1_count[device] = 0;
}

/*
 * In units of so many halves: so many of a queue's first parts have to arrive if the range was
 * seen; 0: none.
 */
static unsigned queued_for(const struct gt_part *queue, unsigned count, const struct gt_part *x,
                           unsigned unit)
{
    while (count && ((queue[count - 1].at + queue[count - 1].units - 1) / unit < x->at / unit ||
                     queue[count - 1].at / unit > (x->at + x->units - 1) / unit)) {
        count--;
    }
    return count;
}

static void take_first(struct gt_part *queue, unsigned *count, unsigned n)
{
    *count -= n;
    memmove(queue, queue + n, *count * sizeof(*queue));
}

/* What of S0 was seen moves on, by whole segments, in their order. */
static void settle_seen(struct gt_world *w, const struct gt_part *x, unsigned unit)
{
    bool seen[GT_EVENTS] = { false };

    for (unsigned q = 0; q < GT_QUEUES; q++) {
        unsigned n = queued_for(w->s0[q], w->s0_count[q], x, unit);

        for (unsigned i = 0; i < n; i++) {
            seen[w->s0[q][i].event] |= !w->t->reorder || queued_for(&w->s0[q][i], 1, x, unit);
        }
    }
    for (unsigned event = 0; event < w->now; event++) {
        for (unsigned q = 0; q < GT_QUEUES && seen[event]; q++) {
            for (unsigned i = 0; i < w->s0_count[q]; i++) {
                if (w->s0[q][i].event == event) {
                    post(w, q / GT_CONNS, &w->s0[q][i]);
                }
            }
        }
    }
    for (unsigned q = 0; q < GT_QUEUES; q++) {
        unsigned left = 0;

        for (unsigned i = 0; i < w->s0_count[q]; i++) {
            if (!seen[w->s0[q][i].event]) {
                w->s0[q][left++] = w->s0[q][i];
            }
        }
        w->s0_count[q] = left;
    }
}

/* What was posted to a range, in these units, has arrived, in the order of posting. */
static void posted_seen(struct gt_world *w, const struct gt_part *x, unsigned unit)
{
    unsigned n[GT_DEVICES];

    gt_segments_seen(w, x, unit);
    settle_seen(w, x, unit);
    for (unsigned d = 0; d < GT_DEVICES; d++) {
        n[d] = queued_for(w->s1[d], w->s1_count[d], x, unit);
    }
    while (n[0] || n[1]) {
        unsigned d = !n[0] || (n[1] && w->s1[1][0].event < w->s1[0][0].event);

        arrive(w, &w->s1[d][0]);
        take_first(w->s1[d], &w->s1_count[d], 1);
        n[d]--;
    }
}

/* Time passes. */
static void between(struct gt_world *w)
{
    if (gt_in_any_order(w) && w->t->slip != GT_NOTHING_IS_EARLY) {
        w->between = true;
        gt_close(w);
        w->between = false;
    }
}

/* Somebody else is about to write to these atoms. */
static void posted_before(struct gt_world *w, struct gt_part x)
{
    if (w->t->exact != GT_LIVE) {
        posted_seen(w, &x, 2);
        between(w);
    }
}

static void add_segment(struct gt_world *w, const struct gt_event *e, struct gt_part range)
{
    struct gt_part part[GT_LINE];
    unsigned n = 0;

    while (next_part(&range, &part[n], false)) {
        n++;
    }
    gt_segments_add(w, e, part, n);
}

static void write_event(struct gt_world *w, const struct gt_event *e, struct gt_part range)
{
    struct gt_part x;

    if (e->kind == GT_ATOM) {
        settle(w, e);
        between(w);
    }
    if (e->kind == GT_OTHER) {
        posted_before(w, range);
        gt_another_acts(w, -1);
    } else {
        gt_adapter_acts(w);
    }
    if (e->kind != GT_OTHER && gt_in_any_order(w)) {
        add_segment(w, e, range);
        return;
    }
    while (next_part(&range, &x, false)) {
        if (e->kind == GT_OTHER) {
            arrive(w, &x);
        } else if (e->kind == GT_WRITE && w->t->s0) {
            w->s0[queue_of(e)][w->s0_count[queue_of(e)]++] = x;
        } else {
            post(w, e->who, &x);
        }
    }
}

static void into_buffer(struct gt_world *w, const struct gt_part *x, enum gt_buffered kind)
{
    w->buffer[x->cpu][w->buffered[x->cpu]] = *x;
    w->buffer[x->cpu][w->buffered[x->cpu]++].kind = kind;
    gt_close(w);
}

/* Where the cache is kept a store's part in a line leaves the buffer as one, else by atoms. */
static void store_event(struct gt_world *w, const struct gt_event *e, struct gt_part range)
{
    struct gt_part whole = range, x;

    posted_before(w, range);
    gt_another_acts(w, e->who);
    while (next_part(&whole, &x, true)) {
        gt_step(w, gt_line_has_left, &x);
        if (!w->t->store_buffer) {
            gt_step(w, gt_step_fold, &x);
        }
    }
    while (next_part(&range, &x, w->t->store_buffer && gt_keeps_cache(w))) {
        if (w->t->store_buffer) {
            x.more = range.units && range.at % GT_LINE;
            into_buffer(w, &x, BUFFERED_STORE);
        } else {
            gt_step(w, gt_step_store, &x);
        }
    }
}

static void store_nt_event(struct gt_world *w, const struct gt_event *e, struct gt_part range)
{
    const struct gt_part *buffer = w->buffer[e->who];
    struct gt_part x;

    posted_before(w, range);
    gt_another_acts(w, e->who);
    while (next_part(&range, &x, false)) {
        gt_step(w, gt_line_has_left, &x);
        for (unsigned i = 0; i < w->buffered[e->who]; i++) {
            if (buffer[i].kind == BUFFERED_STORE && gt_line_of(&buffer[i]) == gt_line_of(&x)) {
                x.after = i + 1;
            }
        }
        w->nt[w->nts++] = x;
        gt_close(w);
    }
}

static void cpu_flush_event(struct gt_world *w, const struct gt_event *e, struct gt_part x)
{
    gt_another_acts(w, e->who);
    if (w->t->store_buffer) {
        into_buffer(w, &x, e->how == SG_PERSIST_CLFLUSH ? BUFFERED_CLFLUSH : BUFFERED_NOTE);
    } else if (e->how == SG_PERSIST_CLFLUSH) {
        gt_step(w, gt_step_own_left, &x);
        gt_step(w, gt_step_evict, &x);
    } else {
        gt_step(w, gt_step_note, &x);
    }
}

static void fence_event(struct gt_world *w, const struct gt_event *e, struct gt_part x)
{
    gt_step(w, gt_step_fence, &x);
    for (unsigned line = 0; line < GT_LINES && e->how == SG_PERSIST_WBINVD; line++) {
        x.at = line * GT_LINE;
        if (w->t->slip != GT_WBINVD_IS_A_FENCE) {
            gt_step(w, gt_step_evict, &x);
        }
    }
}

static bool has_uncorrectable(const struct gt_world *w, const struct gt_part *x)
{
    bool found = false;

    for (unsigned line = x->at / GT_LINE; line <= (x->at + x->units - 1) / GT_LINE; line++) {
        found |= w->uncorrectable[line];
    }
    return found && w->t->slip != GT_FLUSH_OF_UNCORRECTABLE;
}

static void flush_event(struct gt_world *w, const struct gt_event *e, struct gt_part range)
{
    struct gt_part x;

    gt_adapter_acts(w);
    settle(w, e);
    if (w->t->slip != GT_FLUSH_OF_CACHE_ONLY) {
        fence_device(w, e->who);
    }
    if (has_uncorrectable(w, &range)) {
        return; /* it fails */
    }
    while (e->how & SG_FLUSH_PERSISTENT && next_part(&range, &x, true)) {
        gt_step(w, gt_step_evict, &x);
        if (w->t->domain == SG_PERSIST_NONE) {
            gt_step(w, gt_step_drain, &x);
        }
    }
}

/* An adapter has read a range. */
static void device_read(struct gt_world *w, const struct gt_event *e, struct gt_part x)
{
    fence_device(w, e->who);
    x.cpu = UINT8_MAX;
    gt_step(w, gt_step_read, &x);
}

/* A CPU has loaded. */
static void load_event(struct gt_world *w, struct gt_part x)
{
    if (w->t->slip == GT_LOAD_PROVES_NOTHING) {
        return;
    }
    posted_seen(w, &x, w->t->slip == GT_LOAD_OF_ITS_OCTETS ? 1 : GT_LINE);
    if (gt_in_any_order(w) && w->t->slip != GT_LOAD_SEES_ANYTHING) {
        gt_step(w, gt_step_saw, &x);
    }
    x.cpu = w->t->slip == GT_LOAD_OF_OWN_STORES ? UINT8_MAX : x.cpu;
    gt_step(w, gt_step_read, &x);
}

static void swap_event(struct gt_world *w, const struct gt_event *e, struct gt_part x)
{
    posted_before(w, x);
    device_read(w, e, x);
    if (!e->how) {
        between(w);
        gt_adapter_acts(w);
        gt_step(w, gt_step_exchange, &x);
    }
}

static void find_least(struct gt_world *w, unsigned line)
{
    uint8_t *queued = &w->least_queued[line], *written = &w->least_written[line];

    *queued = *written = UINT8_MAX;
    for (unsigned i = 0; i < w->machines->len; i++) {
        const struct gt_machine *m = gt_machine_at(w, i);

        *queued = m->queued[line] < *queued ? m->queued[line] : *queued;
        *written = m->written[line] < *written ? m->written[line] : *written;
    }
}

/* Lines of a range become bad, or good. */
static void bad_event(struct gt_world *w, const struct gt_event *e, struct gt_part range)
{
    struct gt_part x;

    while (next_part(&range, &x, true)) {
        unsigned line = gt_line_of(&x);

        find_least(w, line);
        if (e->kind == GT_UNCORRECTABLE && w->t->slip != GT_UNCORRECTABLE_HEALS) {
            w->uncorrectable[line] = true;
        } else if (e->kind == GT_CLEAR_BAD) {
            w->uncorrectable[line] = false;
            gt_step(w, gt_step_clear, &x);
        } else {
            gt_step(w, gt_step_poison, &x);
        }
    }
}

/* What the run writes at this event: visible memory is that of the trace. */
static void write_memory(struct gt_world *w, const struct gt_event *e)
{
    bool writes = e->kind == GT_WRITE || e->kind == GT_ATOM || e->kind == GT_OTHER ||
                  e->kind == GT_STORE || e->kind == GT_STORE_NT || (e->kind == GT_SWAP && !e->how);

    if (writes) {
        memset(w->memory + e->at, e->value, e->units);
    }
}

static void run_event(struct gt_world *w, const struct gt_event *e)
{
    struct gt_part x = {
        .at = e->at, .units = e->units, .value = e->value, .cpu = e->who, .event = w->now
    };
    struct gt_part range = x;

    between(w);
    write_memory(w, e);
    if (w->t->slip == GT_NT_LEAVES_ANY_TIME_ANOTHER_ACTS && e->kind == GT_WRITE) {
        gt_step(w, gt_all_left, NULL);
    }
    switch (e->kind) {
    case GT_WRITE:
    case GT_ATOM:
    case GT_OTHER:
        write_event(w, e, x);
        break;
    case GT_SWAP:
        swap_event(w, e, x);
        break;
    case GT_SETTLE:
        settle(w, e);
        break;
    case GT_FENCE_DEVICE:
        fence_device(w, e->who);
        break;
    case GT_READ:
        device_read(w, e, x);
        break;
    case GT_LOAD:
        load_event(w, x);
        break;
    case GT_FLUSH:
        flush_event(w, e, x);
        break;
    case GT_STORE:
        store_event(w, e, x);
        break;
    case GT_STORE_NT:
        store_nt_event(w, e, x);
        break;
    case GT_CPU_FLUSH:
        cpu_flush_event(w, e, x);
        break;
    case GT_CPU_FENCE:
        fence_event(w, e, x);
        break;
    case GT_SYNC:
        gt_others_drain(w, -1);
        break;
    case GT_POISON:
    case GT_UNCORRECTABLE:
    case GT_CLEAR_BAD:
        bad_event(w, e, x);
        break;
    default:
        while (w->t->domain == SG_PERSIST_NONE && next_part(&range, &x, true)) {
            gt_step(w, gt_step_drain, &x);
        }
    }
}

/* A store's part in a line leaves the buffer as one. */
static bool between_stores(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    (void)x;
    for (unsigned cpu = 0; cpu < GT_CPUS; cpu++) {
        if (m->drained[cpu] && w->buffer[cpu][m->drained[cpu] - 1].more) {
            return false;
        }
    }
    return true;
}

static bool everything_arrived(const struct gt_world *w, struct gt_machine *m,
                               const struct gt_part *x)
{
    (void)x;
    return m->arrived[0] == w->s1_count[0] && m->arrived[1] == w->s1_count[1] && gt_all_came(w, m);
}

static void cut(struct gt_world *w)
{
    bool whole = w->t->domain == SG_PERSIST_WHOLE;

    if (whole) {
        gt_others_drain(w, -1);
        gt_step(w, gt_all_left, NULL);
    }
    w->cutting = true;
    gt_step(w, between_stores, NULL);
    if (whole) {
        gt_step(w, everything_arrived, NULL);
    }
}

/* What a machine leaves: what is dirty in a cache that is kept is written at the end. */
static void add_image(const struct gt_world *w, const struct gt_machine *m, GHashTable *set)
{
    uint8_t image[GT_WORLD];

    memcpy(image,
           gt_keeps_cache(w)                 ? m->cache
           : w->t->domain == SG_PERSIST_NONE ? m->media
                                             : m->queue,
           sizeof(image));
    for (unsigned line = 0; line < GT_LINES; line++) {
        bool written = gt_keeps_cache(w) && m->queued[line] < m->version[line] &&
                       w->t->slip != GT_POISON_STAYS;

        if (w->uncorrectable[line] || (m->poisoned[line] && !written)) {
            memset(image + line * GT_LINE, GT_BAD, GT_LINE);
        }
    }
    gt_set_add(set, image);
}

/* The images that a cut leaves now. */
static GHashTable *images(struct gt_world *w)
{
    GHashTable *set = NULL;

    cut(w);
    for (unsigned i = 0; i < w->machines->len && !w->too_many; i++) {
        set = set ? set : gt_set_new();
        add_image(w, gt_machine_at(w, i), set);
    }
    return set;
}

/* The same, and the world goes on as if there had been no cut. */
static GHashTable *images_between(struct gt_world *w)
{
    GArray *machines = g_array_new(FALSE, FALSE, sizeof(struct gt_machine));
    struct gt_world before = *w;
    GHashTable *set;

    gt_copy_all(w, machines);
    set = images(w);
    before.machines = w->machines; /* the steps of the cut have replaced them */
    before.known = w->known;
    before.too_many = w->too_many;
    *w = before;
    gt_replace_all(w, machines);
    g_array_free(machines, TRUE);
    return set;
}

bool ground_truth_all(const struct gt_trace *trace, unsigned most, GHashTable **at)
{
    struct gt_world w = { .t = trace, .most = most, .bad = gt_has_bad(trace) };
    struct gt_machine first = { .left = 0 };

    gt_begin(&w);
    gt_add(&w, &first);
    for (w.now = 0; w.now <= trace->count && !w.too_many; w.now++) {
        at[w.now] = images_between(&w);
        if (w.now < trace->count && !w.too_many) {
            run_event(&w, &trace->event[w.now]);
        }
    }
    gt_end(&w);
    return !w.too_many;
}

GHashTable *ground_truth(const struct gt_trace *trace, unsigned most)
{
    struct gt_world w = { .t = trace, .most = most, .bad = gt_has_bad(trace) };
    struct gt_machine first = { .left = 0 };
    GHashTable *set;

    gt_begin(&w);
    gt_add(&w, &first);
    for (w.now = 0; w.now < trace->count && !w.too_many; w.now++) {
        run_event(&w, &trace->event[w.now]);
    }
    set = images(&w);
    gt_end(&w);
    return set;
}
