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

#include "gt_machine.h"

/* ---- Steps of all machines ---- */

static bool buffer_is_empty(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    (void)x;
    return m->drained == w->buffered;
}

static bool forget_buffer(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    (void)w;
    (void)x;
    m->drained = 0;
    return true;
}

/* Another agent than this CPU acts. */
static void another_acts(struct gt_world *w, int cpu)
{
    if (!w->buffered || w->buffer_cpu == cpu) {
        return;
    }
    gt_step(w, buffer_is_empty, NULL);
    w->buffered = 0;
    for (unsigned i = 0; i < w->nts; i++) {
        w->nt[i].after = 0;
    }
    gt_step(w, forget_buffer, NULL);
}

static bool all_left(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    (void)x;
    return m->left == (w->nts == 32 ? ~0u : (1u << w->nts) - 1);
}

static bool line_has_left(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    return gt_line_left(w, m, gt_line_of(x), -1, x->cpu == UINT8_MAX ? -1 : x->cpu);
}

static bool step_fold(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    gt_fold(w, m, x);
    return true;
}

static bool step_store(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    (void)w;
    gt_reach_cache(m, x);
    return true;
}

static bool step_arrive(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    gt_arrive_one(w, m, x);
    return true;
}

static bool step_evict(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    gt_evict(w, m, gt_line_of(x));
    return true;
}

static bool step_drain(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    (void)w;
    gt_drain(m, gt_line_of(x));
    return true;
}

static bool step_note(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    gt_note(w, m, x->cpu, gt_line_of(x));
    return true;
}

static bool step_own_left(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    return gt_line_left(w, m, gt_line_of(x), x->cpu, -1);
}

static bool step_fence(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    for (unsigned line = 0; line < GT_LINES; line++) {
        if (!gt_line_left(w, m, line, x->cpu, -1) && w->t->slip != GT_FENCE_FORGETS_NT) {
            return false;
        }
        if (m->note[x->cpu][line]) {
            uint8_t least = m->note[x->cpu][line];

            if (w->t->slip == GT_CLWB_OF_LATER_STORES) {
                least = m->version[line];
            }
            if (m->queued[line] < least) {
                return false;
            }
        }
        m->note[x->cpu][line] = 0;
    }
    return w->buffer_cpu != x->cpu || m->drained == w->buffered;
}

/* Who has read the lines of x saw what others than x->cpu stored there. */
static bool step_read(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    unsigned seen = 0, first = x->at / GT_LINE, last = (x->at + x->units - 1) / GT_LINE;
    int own = x->cpu == UINT8_MAX ? -1 : x->cpu;

    for (unsigned i = 0; i < w->buffered && w->buffer_cpu != own; i++) {
        unsigned line = gt_line_of(&w->buffer[i]);

        if (w->buffer[i].kind == BUFFERED_STORE && line >= first && line <= last) {
            seen = i + 1;
        }
    }
    for (unsigned line = first; line <= last && w->t->slip != GT_NT_KEPT_FROM_READERS; line++) {
        if (!gt_line_left(w, m, line, -1, own)) {
            return false;
        }
    }
    return m->drained >= seen;
}

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

/* DMA becomes visible. */
static void arrive(struct gt_world *w, const struct gt_part *x)
{
    struct gt_part foreign = *x;

    another_acts(w, -1);
    foreign.cpu = UINT8_MAX;
    gt_step(w, line_has_left, &foreign);
    memset(w->visible + x->at, x->value, x->units);
    gt_step(w, step_arrive, x);
}

static void post(struct gt_world *w, unsigned device, const struct gt_part *x)
{
    if (w->t->s1) {
        w->s1[device][w->s1_count[device]++] = *x;
    } else {
        arrive(w, x);
    }
}

static void settle(struct gt_world *w, unsigned device)
{
    for (unsigned i = 0; i < w->s0_count[device]; i++) {
        post(w, device, &w->s0[device][i]);
    }
    w->s0_count[device] = 0;
}

static void fence_device(struct gt_world *w, unsigned device)
{
    for (unsigned i = 0; i < w->s1_count[device]; i++) {
        arrive(w, &w->s1[device][i]);
    }
    w->s1_count[device] = 0;
}

static void write_event(struct gt_world *w, const struct gt_event *e, struct gt_part range)
{
    struct gt_part x;

    if (e->kind == GT_ATOM) {
        settle(w, e->who);
    }
    another_acts(w, -1);
    while (next_part(&range, &x, false)) {
        if (e->kind == GT_OTHER) {
            arrive(w, &x);
        } else if (e->kind == GT_WRITE && w->t->s0) {
            w->s0[e->who][w->s0_count[e->who]++] = x;
        } else {
            post(w, e->who, &x);
        }
    }
}

static void into_buffer(struct gt_world *w, const struct gt_part *x, enum gt_buffered kind)
{
    w->buffer[w->buffered] = *x;
    w->buffer[w->buffered++].kind = kind;
    w->buffer_cpu = x->cpu;
    gt_close(w);
}

/* Where the cache is kept a store's part in a line leaves the buffer as one, else by atoms. */
static void store_event(struct gt_world *w, const struct gt_event *e, struct gt_part range)
{
    struct gt_part whole = range, x;

    another_acts(w, e->who);
    while (next_part(&whole, &x, true)) {
        gt_step(w, line_has_left, &x);
        if (!w->t->store_buffer) {
            gt_step(w, step_fold, &x);
        }
    }
    memset(w->visible + range.at, range.value, range.units);
    while (next_part(&range, &x, w->t->store_buffer && gt_keeps_cache(w))) {
        if (w->t->store_buffer) {
            x.more = range.units && range.at % GT_LINE;
            into_buffer(w, &x, BUFFERED_STORE);
        } else {
            gt_step(w, step_store, &x);
        }
    }
}

static void store_nt_event(struct gt_world *w, const struct gt_event *e, struct gt_part range)
{
    struct gt_part x;

    another_acts(w, e->who);
    while (next_part(&range, &x, false)) {
        gt_step(w, line_has_left, &x);
        for (unsigned i = 0; i < w->buffered; i++) {
            if (w->buffer[i].kind == BUFFERED_STORE &&
                gt_line_of(&w->buffer[i]) == gt_line_of(&x)) {
                x.after = i + 1;
            }
        }
        memset(w->visible + x.at, x.value, x.units);
        w->nt[w->nts++] = x;
        gt_close(w);
    }
}

static void cpu_flush_event(struct gt_world *w, const struct gt_event *e, struct gt_part x)
{
    another_acts(w, e->who);
    if (w->t->store_buffer) {
        into_buffer(w, &x, e->how == SG_PERSIST_CLFLUSH ? BUFFERED_CLFLUSH : BUFFERED_NOTE);
    } else if (e->how == SG_PERSIST_CLFLUSH) {
        gt_step(w, step_own_left, &x);
        gt_step(w, step_evict, &x);
    } else {
        gt_step(w, step_note, &x);
    }
}

static void flush_event(struct gt_world *w, const struct gt_event *e, struct gt_part range)
{
    struct gt_part x;

    another_acts(w, -1);
    settle(w, e->who);
    if (w->t->slip != GT_FLUSH_OF_CACHE_ONLY) {
        fence_device(w, e->who);
    }
    while (e->how & SG_FLUSH_PERSISTENT && next_part(&range, &x, true)) {
        gt_step(w, step_evict, &x);
        if (w->t->domain == SG_PERSIST_NONE) {
            gt_step(w, step_drain, &x);
        }
    }
}

/* An adapter has read a range. */
static void device_read(struct gt_world *w, const struct gt_event *e, struct gt_part x)
{
    fence_device(w, e->who);
    x.cpu = UINT8_MAX;
    gt_step(w, step_read, &x);
}

/* So many of a queue's first parts have to arrive if the range was seen; 0: none. */
static unsigned queued_for(const struct gt_world *w, const struct gt_part *queue, unsigned count,
                           const struct gt_part *x)
{
    unsigned unit = w->t->slip == GT_LOAD_OF_ITS_OCTETS ? 1 : GT_LINE;

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

/* The queue with parts left that begins with the older event. */
static unsigned older(struct gt_part queue[GT_DEVICES][64], const unsigned left[GT_DEVICES])
{
    return !left[0] || (left[1] && queue[1][0].event < queue[0][0].event);
}

/* What of S0 was seen moves on, by whole segments. */
static void settle_seen(struct gt_world *w, const struct gt_part *x)
{
    unsigned n[GT_DEVICES];

    for (unsigned d = 0; d < GT_DEVICES; d++) {
        n[d] = queued_for(w, w->s0[d], w->s0_count[d], x);
        while (n[d] && n[d] < w->s0_count[d] && w->s0[d][n[d]].event == w->s0[d][n[d] - 1].event) {
            n[d]++;
        }
    }
    while (n[0] || n[1]) {
        unsigned d = older(w->s0, n);

        post(w, d, &w->s0[d][0]);
        take_first(w->s0[d], &w->s0_count[d], 1);
        n[d]--;
    }
}

/* A CPU has loaded: what was posted to these lines has arrived, in the order of posting. */
static void load_event(struct gt_world *w, struct gt_part x)
{
    unsigned n[GT_DEVICES];

    if (w->t->slip == GT_LOAD_PROVES_NOTHING) {
        return;
    }
    settle_seen(w, &x);
    for (unsigned d = 0; d < GT_DEVICES; d++) {
        n[d] = queued_for(w, w->s1[d], w->s1_count[d], &x);
    }
    while (n[0] || n[1]) {
        unsigned d = older(w->s1, n);

        arrive(w, &w->s1[d][0]);
        take_first(w->s1[d], &w->s1_count[d], 1);
        n[d]--;
    }
    x.cpu = w->t->slip == GT_LOAD_OF_OWN_STORES ? UINT8_MAX : x.cpu;
    gt_step(w, step_read, &x);
}

static void swap_event(struct gt_world *w, const struct gt_event *e, struct gt_part x)
{
    device_read(w, e, x);
    if (!e->how && (w->visible[x.at] != x.value || w->visible[x.at + 1] != x.value)) {
        arrive(w, &x);
    }
}

static void run_event(struct gt_world *w, const struct gt_event *e)
{
    struct gt_part x = {
        .at = e->at, .units = e->units, .value = e->value, .cpu = e->who, .event = w->now
    };
    struct gt_part range = x;

    if (w->t->slip == GT_NT_LEAVES_ANY_TIME_ANOTHER_ACTS && e->kind == GT_WRITE) {
        gt_step(w, all_left, NULL);
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
        settle(w, e->who);
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
        gt_step(w, step_fence, &x);
        break;
    case GT_SYNC:
        another_acts(w, -1);
        break;
    default:
        while (w->t->domain == SG_PERSIST_NONE && next_part(&range, &x, true)) {
            gt_step(w, step_drain, &x);
        }
    }
}

/* A store's part in a line leaves the buffer as one. */
static bool between_stores(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    (void)x;
    return !m->drained || !w->buffer[m->drained - 1].more;
}

static bool everything_arrived(const struct gt_world *w, struct gt_machine *m,
                               const struct gt_part *x)
{
    (void)x;
    return m->arrived[0] == w->s1_count[0] && m->arrived[1] == w->s1_count[1];
}

static void cut(struct gt_world *w)
{
    bool whole = w->t->domain == SG_PERSIST_WHOLE;

    if (whole) {
        gt_step(w, buffer_is_empty, NULL);
        gt_step(w, all_left, NULL);
    }
    w->cutting = true;
    gt_step(w, between_stores, NULL);
    if (whole) {
        gt_step(w, everything_arrived, NULL);
    }
}

GHashTable *ground_truth(const struct gt_trace *trace, unsigned most)
{
    struct gt_world w = { .t = trace, .most = most, .buffer_cpu = -1 };
    struct gt_machine first = { .drained = 0 };
    GHashTable *set = NULL;

    gt_begin(&w);
    gt_add(&w, &first);
    for (w.now = 0; w.now < trace->count && !w.too_many; w.now++) {
        run_event(&w, &trace->event[w.now]);
    }
    cut(&w);
    for (unsigned i = 0; i < w.machines->len && !w.too_many; i++) {
        const struct gt_machine *m = gt_machine_at(&w, i);

        set = set ? set : gt_set_new();
        gt_set_add(set, gt_keeps_cache(&w)                 ? m->cache
                        : trace->domain == SG_PERSIST_NONE ? m->media
                                                           : m->queue);
    }
    gt_end(&w);
    return set;
}
