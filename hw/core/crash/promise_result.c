/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The beginning and the result: all promises in the order in which crash points need them. */
#include "crash/promise_impl.h"

/* Until the ranges are in order, first_range is the promise's number * 2 + LATE. */
enum { LATE = 1 }; /* its first range came after the acknowledgement */

struct sg_crash_promises *sg_crash_promises_new(unsigned machines, unsigned targets, unsigned acks)
{
    struct sg_crash_promises *p = g_new0(struct sg_crash_promises, 1);

    sg_assert(machines && machines <= SG_CRASH_MACHINES);
    p->machines = machines;
    p->acks = acks;
    p->steps = CRASH_STEPS_FIRST;
    crash_ends_init(p);
    for (unsigned i = 0; i < machines; i++) {
        p->machine[i].target = targets >> i & 1;
    }
    crash_pieces_init(&p->pieces);
    p->promises = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_promise));
    p->kept = g_array_new(FALSE, FALSE, sizeof(struct crash_kept));
    return p;
}

void sg_crash_promises_free(struct sg_crash_promises *p)
{
    if (p) {
        if (!p->ended) {
            crash_ends_free(p);
            crash_pieces_fini(&p->pieces);
            g_array_free(p->kept, TRUE);
        }
        g_array_free(p->promises, TRUE);
        g_free(p->ranges);
        g_free(p);
    }
}

/* ---- Acknowledgements whose placements all came later ---- */

static int by_acknowledgement(const void *x, const void *y)
{
    const struct sg_crash_promise *a = x, *b = y;

    return a->by != b->by         ? (a->by > b->by) - (a->by < b->by)
           : a->event != b->event ? (a->event > b->event) - (a->event < b->event)
                                  : (a->kind > b->kind) - (a->kind < b->kind);
}

/* They were counted as ones that promise nothing. */
static void count_late(struct sg_crash_promises *p)
{
    struct sg_crash_promise *all = (struct sg_crash_promise *)p->promises->data;
    uint64_t next, count = p->promises->len;

    for (uint64_t i = 0; i < count; i = next) {
        bool late = all[i].first_range & LATE;

        for (next = i + 1; next < count && !by_acknowledgement(&all[i], &all[next]); next++) {
            late &= all[next].first_range & LATE;
        }
        if (late && p->counts.unmatched[SG_CRASH_NOTHING_PLACED]) {
            p->counts.unmatched[SG_CRASH_NOTHING_PLACED]--;
            p->counts.matched++;
        }
    }
}

/* ---- Order ---- */

static int by_target(const void *x, const void *y)
{
    const struct sg_crash_promise *a = x, *b = y;

    return a->target != b->target ? (a->target > b->target) - (a->target < b->target)
           : a->from != b->from
               ? (a->from > b->from) - (a->from < b->from)
               : (a->first_range > b->first_range) - (a->first_range < b->first_range);
}

static int by_placed(const void *x, const void *y)
{
    const struct sg_crash_range *a = x, *b = y;

    return a->placed != b->placed ? (a->placed > b->placed) - (a->placed < b->placed)
                                  : (a->addr > b->addr) - (a->addr < b->addr);
}

/* Moves the ranges to their promises. */
static void order_ranges(struct sg_crash_promises *p)
{
    struct sg_crash_promise *all = (struct sg_crash_promise *)p->promises->data;
    uint64_t *next = g_new(uint64_t, p->promises->len + 1), at = 0;

    p->ranges = g_new(struct sg_crash_range, p->kept->len + 1);
    for (uint64_t i = 0; i < p->promises->len; i++) {
        next[all[i].first_range >> 1] = at;
        all[i].first_range = at;
        at += all[i].range_count;
    }
    for (uint64_t i = 0; i < p->kept->len; i++) {
        const struct crash_kept *k = &g_array_index(p->kept, struct crash_kept, i);

        p->ranges[next[k->promise - 1]++] = k->range;
    }
    for (uint64_t i = 0; i < p->promises->len; i++) {
        qsort(&p->ranges[all[i].first_range], all[i].range_count, sizeof(*p->ranges), by_placed);
    }
    g_free(next);
}

void sg_crash_promises_end(struct sg_crash_promises *p)
{
    struct sg_crash_promise *all = (struct sg_crash_promise *)p->promises->data;
    uint64_t at = 0;

    sg_assert(!p->ended);
    crash_ends_free(p);
    crash_pieces_fini(&p->pieces);
    p->ended = true;
    p->counts.promises = p->promises->len;
    p->counts.ranges = p->kept->len;
    if (p->promises->len) {
        qsort(all, p->promises->len, sizeof(*all), by_acknowledgement);
        count_late(p);
        qsort(all, p->promises->len, sizeof(*all), by_target);
    }
    order_ranges(p);
    g_array_free(p->kept, TRUE);
    for (unsigned target = 0; target <= p->machines; target++) {
        p->first_of[target] = at;
        while (at < p->promises->len && all[at].target == target) {
            at++;
        }
    }
}

const struct sg_crash_promise *sg_crash_promises_of(const struct sg_crash_promises *p,
                                                    unsigned target, uint64_t *count)
{
    *count = p->first_of[target + 1] - p->first_of[target];
    return &((const struct sg_crash_promise *)p->promises->data)[p->first_of[target]];
}

const struct sg_crash_range *sg_crash_promise_ranges(const struct sg_crash_promises *p,
                                                     const struct sg_crash_promise *promise)
{
    return &p->ranges[promise->first_range];
}

const struct sg_crash_promise_counts *sg_crash_promise_counts(const struct sg_crash_promises *p)
{
    return &p->counts;
}
