/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "crash/pairs.h"
#include "base/bytes.h"
#include "base/prng.h"

/* The intervals of the other machine with which one has cuts. */
struct pairs_row {
    uint32_t first;  /* of them */
    uint64_t before; /* pairs of earlier rows */
};

/* ---- Steps ---- */

static const struct sg_crash_step *step(const GArray *steps, guint i)
{
    return &g_array_index(steps, struct sg_crash_step, i);
}

void sg_crash_steps_add(GArray *steps, uint64_t event, uint64_t past)
{
    if (past > (steps->len ? step(steps, steps->len - 1)->past : 0)) {
        struct sg_crash_step next = { event, past };

        g_array_append_val(steps, next);
    }
}

/* How many steps are at events up to this one. */
static guint steps_up_to(const GArray *steps, uint64_t event)
{
    guint low = 0, high = steps->len;

    while (low < high) {
        guint middle = low + (high - low) / 2;

        if (step(steps, middle)->event <= event) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint64_t sg_crash_steps_past(const GArray *steps, uint64_t behind)
{
    guint n = steps_up_to(steps, behind);

    return n ? step(steps, n - 1)->past : 0;
}

uint64_t sg_crash_steps_last(const GArray *steps, uint64_t past, uint64_t most)
{
    guint low = 0, high = steps->len;

    while (low < high) { /* the first step with a greater past */
        guint middle = low + (high - low) / 2;

        if (step(steps, middle)->past <= past) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < steps->len ? SG_MIN(most, step(steps, low)->event - 1) : most;
}

/* ---- Intervals ---- */

static uint64_t bound(const struct sg_crash_pairs_side *s, guint i)
{
    return g_array_index(s->bounds, uint64_t, i);
}

/* The first instant of an interval. */
static uint64_t beginning(const struct sg_crash_pairs_side *s, guint i)
{
    return i ? bound(s, i - 1) + 1 : 0;
}

/* The interval with this instant; the number of intervals: it is behind the last bound. */
static guint interval_of(const struct sg_crash_pairs_side *s, uint64_t instant)
{
    guint low = 0, high = s->bounds->len;

    while (low < high) {
        guint middle = low + (high - low) / 2;

        if (bound(s, middle) < instant) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Adds the consistent cuts with an instant of this interval. */
static void count_cuts(struct sg_crash_pairs *x, guint i)
{
    const struct sg_crash_pairs_side *a = &x->side[0], *b = &x->side[1];
    uint64_t most = bound(b, b->bounds->len - 1);

    /* Instants between two steps of either machine have the same partners: both are rare. */
    for (uint64_t s = beginning(a, i); s <= bound(a, i) && x->cuts != UINT64_MAX;) {
        uint64_t low = sg_crash_steps_past(a->steps, s);
        uint64_t high = sg_crash_steps_last(b->steps, s, most);
        guint own = steps_up_to(a->steps, s), other;
        uint64_t until = bound(a, i), cuts, partners;

        if (own < a->steps->len) {
            until = SG_MIN(until, step(a->steps, own)->event - 1);
        }
        other = steps_up_to(b->steps, high);
        if (high < most && other < b->steps->len) {
            until = SG_MIN(until, step(b->steps, other)->past - 1);
        }
        partners = low <= high ? high - low + 1 : 0;
        if (__builtin_mul_overflow(partners, until - s + 1, &cuts) ||
            __builtin_add_overflow(x->cuts, cuts, &x->cuts)) {
            x->cuts = UINT64_MAX;
        }
        s = until + 1;
    }
}

void sg_crash_pairs_init(struct sg_crash_pairs *x, const struct sg_crash_pairs_side side[2])
{
    const struct sg_crash_pairs_side *a = &x->side[0], *b = &x->side[1];

    *x = (struct sg_crash_pairs){ .side = { side[0], side[1] } };
    x->rows = g_array_new(FALSE, FALSE, sizeof(struct pairs_row));
    for (guint i = 0; i < a->bounds->len && b->bounds->len; i++) {
        uint64_t most = bound(b, b->bounds->len - 1);
        uint64_t low = sg_crash_steps_past(a->steps, beginning(a, i));
        uint64_t high = sg_crash_steps_last(b->steps, bound(a, i), most);
        struct pairs_row row = { .first = interval_of(b, low), .before = x->count };

        if (low <= high && row.first < b->bounds->len) {
            x->count += interval_of(b, high) - row.first + 1;
        } else {
            x->alone++;
        }
        g_array_append_val(x->rows, row);
        count_cuts(x, i);
    }
}

void sg_crash_pairs_fini(struct sg_crash_pairs *x)
{
    g_array_unref(x->rows);
}

/* The row with a pair: the last one that begins at it or before, and is not empty. */
static guint row_of(const struct sg_crash_pairs *x, uint64_t number)
{
    guint low = 0, high = x->rows->len;

    while (low < high) {
        guint middle = low + (high - low) / 2;

        if (g_array_index(x->rows, struct pairs_row, middle).before <= number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low - 1;
}

bool sg_crash_pairs_get(const struct sg_crash_pairs *x, uint64_t number, uint64_t cut[2])
{
    guint interval[2], i = row_of(x, number);
    const struct pairs_row *row = &g_array_index(x->rows, struct pairs_row, i);
    bool moved;

    interval[0] = i;
    interval[1] = row->first + (guint)(number - row->before);
    for (unsigned k = 0; k < 2; k++) {
        cut[k] = bound(&x->side[k], interval[k]);
    }
    do { /* no instant of a consistent cut of both is left out */
        moved = false;
        for (unsigned k = 0; k < 2; k++) {
            uint64_t last = sg_crash_steps_last(x->side[k].steps, cut[!k], cut[k]);

            if (last < beginning(&x->side[k], interval[k])) {
                return false;
            }
            moved |= last < cut[k];
            cut[k] = last;
        }
    } while (moved);
    return true;
}

/* ---- A choice ---- */

uint64_t sg_crash_pairs_draw(uint64_t index, uint64_t count, uint64_t chosen, uint64_t seed)
{
    uint64_t random = seed + index, part, from;

    if (chosen >= count) {
        return index;
    }
    part = count / chosen; /* the first count % chosen parts have one more */
    from = part * index + SG_MIN(index, count % chosen);
    part += index < count % chosen;
    return from + sg_prng(&random) % part;
}
