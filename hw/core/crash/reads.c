/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges of lines, looked up by bisection. */
#include "crash/reads.h"
#include "base/bytes.h"

struct range {
    uint64_t addr, last; /* of the last line */
};

static struct range *at(const struct sg_crash_reads *r, guint i)
{
    return &g_array_index(r->ranges, struct range, i);
}

void sg_crash_reads_init(struct sg_crash_reads *r)
{
    r->ranges = g_array_new(FALSE, FALSE, sizeof(struct range));
}

void sg_crash_reads_fini(struct sg_crash_reads *r)
{
    if (r->ranges) {
        g_array_unref(r->ranges);
    }
    r->ranges = NULL;
}

bool sg_crash_reads_add(struct sg_crash_reads *r, uint64_t addr, uint64_t len)
{
    struct range new = {
        .addr = sg_align_down(addr, SG_PERSIST_LINE),
        .last = sg_align_down(addr + len - 1, SG_PERSIST_LINE),
    };

    if (!len || addr + len - 1 < addr) {
        return false;
    }
    g_array_append_val(r->ranges, new);
    return true;
}

static gint by_addr(gconstpointer a, gconstpointer b)
{
    const struct range *x = a, *y = b;

    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void sg_crash_reads_end(struct sg_crash_reads *r)
{
    guint kept = 0;

    g_array_sort(r->ranges, by_addr);
    for (guint i = 0; i < r->ranges->len; i++) {
        struct range *last = kept ? at(r, kept - 1) : NULL;

        if (last && at(r, i)->addr <= last->last) {
            last->last = SG_MAX(last->last, at(r, i)->last);
        } else {
            *at(r, kept++) = *at(r, i);
        }
    }
    g_array_set_size(r->ranges, kept);
}

bool sg_crash_reads_has(const struct sg_crash_reads *r, uint64_t addr)
{
    guint lo = 0, hi = r->ranges->len;

    addr = sg_align_down(addr, SG_PERSIST_LINE);
    while (lo < hi) {
        guint mid = (lo + hi) / 2;

        if (at(r, mid)->last < addr) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < r->ranges->len && at(r, lo)->addr <= addr;
}

uint64_t sg_crash_reads_lines(const struct sg_crash_reads *r)
{
    uint64_t lines = 0;

    for (guint i = 0; i < r->ranges->len; i++) {
        lines += (at(r, i)->last - at(r, i)->addr) / SG_PERSIST_LINE + 1;
    }
    return lines;
}

struct search {
    const struct sg_crash_reads *r;
    uint32_t below, found;
};

static void look(void *opaque, uint32_t number, uint64_t line)
{
    struct search *s = opaque;

    if (number < s->below && sg_crash_reads_has(s->r, line)) {
        s->found = number;
    }
}

uint32_t sg_crash_reads_less(const struct sg_crash_reads *r, const struct sg_persist *p,
                             const struct sg_persist_choice *q, uint32_t answer)
{
    struct search s = { .r = r, .below = answer, .found = UINT32_MAX };

    sg_persist_queue_lines(p, q, look, &s);
    return s.found;
}
