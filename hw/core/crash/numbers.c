/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps of one octet, and a sum at the beginning of each block. */
#include "crash/numbers.h"

enum { FAR = 255 };

void sg_crash_numbers_init(struct sg_crash_numbers *n, uint64_t seq)
{
    *n = (struct sg_crash_numbers){
        .step = g_byte_array_new(),
        .start = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
        .last = seq,
    };
    g_array_append_val(n->start, seq);
}

void sg_crash_numbers_fork(struct sg_crash_numbers *n, const struct sg_crash_numbers *trunk)
{
    sg_crash_numbers_init(n, trunk->last);
    n->trunk = trunk;
}

static uint64_t step_of(const struct sg_crash_numbers *n, uint64_t event)
{
    uint8_t octet = n->step->data[event - 1];

    return octet < FAR ? octet : *(const uint64_t *)g_hash_table_lookup(n->far, &event);
}

static void add_all(struct sg_crash_numbers *to, const struct sg_crash_numbers *from)
{
    for (uint64_t e = 1; e <= from->step->len; e++) {
        sg_crash_numbers_add(to, to->last + step_of(from, e));
    }
}

static void add_far(struct sg_crash_numbers *n, uint64_t event, uint64_t step)
{
    if (!n->far) {
        n->far = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    }
    g_hash_table_insert(n->far, g_memdup2(&event, sizeof(event)), g_memdup2(&step, sizeof(step)));
}

static void copy_far(struct sg_crash_numbers *n, GHashTable *far)
{
    GHashTableIter it;
    gpointer event, step;

    g_hash_table_iter_init(&it, far);
    while (g_hash_table_iter_next(&it, &event, &step)) {
        add_far(n, *(const uint64_t *)event, *(const uint64_t *)step);
    }
}

void sg_crash_numbers_copy(struct sg_crash_numbers *n, const struct sg_crash_numbers *from)
{
    *n = (struct sg_crash_numbers){
        .trunk = from->trunk,
        .step = g_byte_array_sized_new(from->step->len),
        .start = g_array_copy(from->start),
        .last = from->last,
    };
    g_byte_array_append(n->step, from->step->data, from->step->len);
    if (from->far) {
        copy_far(n, from->far);
    }
}

void sg_crash_numbers_join(struct sg_crash_numbers *trunk, const struct sg_crash_numbers *n)
{
    add_all(trunk, n);
}

void sg_crash_numbers_fini(struct sg_crash_numbers *n)
{
    if (n->step) {
        g_byte_array_unref(n->step);
        g_array_unref(n->start);
    }
    if (n->far) {
        g_hash_table_destroy(n->far);
    }
    *n = (struct sg_crash_numbers){ 0 };
}

void sg_crash_numbers_add(struct sg_crash_numbers *n, uint64_t seq)
{
    uint64_t step = seq - n->last;
    uint8_t octet = step < FAR ? (uint8_t)step : FAR;

    g_byte_array_append(n->step, &octet, 1);
    if (octet == FAR) {
        add_far(n, n->step->len, step);
    }
    n->last = seq;
    if (n->step->len % SG_CRASH_NUMBERS_BLOCK == 0) {
        g_array_append_val(n->start, seq);
    }
}

/* The steps of the events behind the first, up to the second. */
static uint64_t sum(const struct sg_crash_numbers *n, uint64_t behind, uint64_t last)
{
    uint64_t all = 0;

    if (!n->far) { /* each step is its octet */
        for (uint64_t e = behind; e < last; e++) {
            all += n->step->data[e];
        }
        return all;
    }
    for (uint64_t e = behind + 1; e <= last; e++) {
        all += step_of(n, e);
    }
    return all;
}

uint64_t sg_crash_numbers_seq(const struct sg_crash_numbers *n, uint64_t event)
{
    uint64_t block, seq;

    if (n->trunk && event <= n->trunk->step->len) {
        return sg_crash_numbers_seq(n->trunk, event);
    }
    event -= n->trunk ? n->trunk->step->len : 0;
    block = SG_MIN(event, n->step->len) / SG_CRASH_NUMBERS_BLOCK;
    seq = g_array_index(n->start, uint64_t, block);
    return seq + sum(n, block * SG_CRASH_NUMBERS_BLOCK, SG_MIN(event, n->step->len));
}

uint64_t sg_crash_numbers_event(const struct sg_crash_numbers *n, uint64_t seq)
{
    uint64_t low = 0, high = n->start->len, at, e;

    if (n->trunk && seq <= n->trunk->last) {
        return sg_crash_numbers_event(n->trunk, seq);
    }
    if (seq <= g_array_index(n->start, uint64_t, 0) || seq > n->last) {
        return 0;
    }
    while (high - low > 1) { /* the last block that begins before seq */
        uint64_t middle = low + (high - low) / 2;

        if (g_array_index(n->start, uint64_t, middle) < seq) {
            low = middle;
        } else {
            high = middle;
        }
    }
    at = g_array_index(n->start, uint64_t, low);
    for (e = low * SG_CRASH_NUMBERS_BLOCK; at < seq; e++) {
        at += step_of(n, e + 1);
    }
    return n->trunk ? n->trunk->step->len + e : e;
}
