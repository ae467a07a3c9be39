/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Deviations by question; lost stores by what they are lost from. */
#include "crash/deviation.h"
#include "base/bytes.h"

static const char *const what_name[SG_PERSIST_CHOICES] = {
    [SG_PERSIST_CHOICE_BUFFER] = "buffer",    [SG_PERSIST_CHOICE_POSTED] = "queue",
    [SG_PERSIST_CHOICE_PLACED] = "placement", [SG_PERSIST_CHOICE_ORDER] = "order",
    [SG_PERSIST_CHOICE_LINE] = "line",        [SG_PERSIST_CHOICE_SEGMENT] = "segment",
};

void sg_crash_deviations_init(struct sg_crash_deviations *d)
{
    d->all = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_deviation));
    d->lost = g_array_new(FALSE, FALSE, sizeof(uint64_t));
}

void sg_crash_deviations_fini(struct sg_crash_deviations *d)
{
    g_array_unref(d->all);
    g_array_unref(d->lost);
}

const char *sg_crash_asked_name(const struct sg_crash_asked *q)
{
    return q->what < SG_PERSIST_CHOICES ? what_name[q->what] : "?";
}

bool sg_crash_asked_agent(const struct sg_crash_asked *q, GString *out)
{
    switch (q->what) {
    case SG_PERSIST_CHOICE_BUFFER:
        g_string_append_printf(out, "vCPU %u", q->unit);
        return true;
    case SG_PERSIST_CHOICE_POSTED:
        g_string_append_printf(out, "adapter %u", q->unit);
        return true;
    case SG_PERSIST_CHOICE_PLACED:
    case SG_PERSIST_CHOICE_SEGMENT:
        g_string_append_printf(out, "adapter %u, QP %u", q->unit, q->qpn);
        return true;
    default:
        return false;
    }
}

/* Of one line, queue or buffer, whatever else differs. */
static struct sg_persist_lost place_of(uint8_t what, uint16_t unit, uint32_t qpn, uint64_t addr)
{
    return (struct sg_persist_lost){
        .what = what,
        .unit = what == SG_PERSIST_CHOICE_LINE ? 0 : unit,
        .qpn = what == SG_PERSIST_CHOICE_PLACED || what == SG_PERSIST_CHOICE_SEGMENT ? qpn : 0,
        .addr = what == SG_PERSIST_CHOICE_LINE || what == SG_PERSIST_CHOICE_SEGMENT ? addr : 0,
    };
}

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_place(const struct sg_persist_lost *a, const struct sg_persist_lost *b)
{
    int by = compare(a->what, b->what);

    by = by ? by : compare(a->unit, b->unit);
    by = by ? by : compare(a->qpn, b->qpn);
    return by ? by : compare(a->addr, b->addr);
}

static gint by_place_and_seq(gconstpointer x, gconstpointer y)
{
    const struct sg_persist_lost *a = x, *b = y;
    int by = by_place(a, b);

    return by ? by : compare(a->seq, b->seq);
}

/* The first of the sorted lost stores that is not before this place. */
static guint find(const GArray *lost, const struct sg_persist_lost *place)
{
    guint lo = 0, hi = lost->len;

    while (lo < hi) {
        guint mid = (lo + hi) / 2;

        if (by_place(&g_array_index(lost, struct sg_persist_lost, mid), place) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Adapters whose S1 did not arrive as a whole: their connections were not asked about S0. */
static uint64_t incomplete(const GArray *asked)
{
    uint64_t units = 0;

    for (guint i = 0; i < asked->len; i++) {
        const struct sg_crash_asked *q = &g_array_index(asked, struct sg_crash_asked, i);

        if (q->what == SG_PERSIST_CHOICE_POSTED && q->taken + 1 < q->n) {
            units |= 1ull << q->unit % 64;
        }
    }
    return units;
}

static void sort_lost(const GArray *asked, GArray *lost)
{
    uint64_t units = incomplete(asked);

    for (guint i = 0; i < lost->len; i++) {
        struct sg_persist_lost *x = &g_array_index(lost, struct sg_persist_lost, i);
        bool behind = x->what == SG_PERSIST_CHOICE_PLACED && units >> x->unit % 64 & 1;
        uint8_t what = behind ? SG_PERSIST_CHOICE_POSTED : x->what;
        uint64_t seq = x->seq;

        *x = place_of(what, x->unit, x->qpn, x->addr);
        x->seq = seq;
    }
    g_array_sort(lost, by_place_and_seq);
}

/* Appends the stores that are lost from where this question is about, each once. */
static void add_lost(struct sg_crash_deviations *d, struct sg_crash_deviation *new,
                     const GArray *lost)
{
    const struct sg_crash_asked *q = &new->asked;
    struct sg_persist_lost place = place_of(q->what, q->unit, q->qpn, q->addr);
    uint64_t last = 0;

    new->lost = d->lost->len;
    for (guint i = find(lost, &place); i < lost->len; i++) {
        const struct sg_persist_lost *x = &g_array_index(lost, struct sg_persist_lost, i);

        if (by_place(x, &place)) {
            break;
        }
        if (x->seq > last) { /* 0: unknown */
            last = x->seq;
            g_array_append_val(d->lost, last);
        }
    }
    new->lost_count = d->lost->len - new->lost;
}

void sg_crash_deviations_set(struct sg_crash_deviations *d, const GArray *asked, GArray *lost)
{
    g_array_set_size(d->all, 0);
    g_array_set_size(d->lost, 0);
    sort_lost(asked, lost);
    for (guint i = 0; i < asked->len; i++) {
        struct sg_crash_deviation new = {
            .asked = g_array_index(asked, struct sg_crash_asked, i),
            .question = i,
        };

        if (new.asked.taken + 1 < new.asked.n) {
            add_lost(d, &new, lost);
            g_array_append_val(d->all, new);
        }
    }
}
