/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Octets of segments that newer ones have overtaken, where S0 and S1 are sets (segments.c).
 *
 * Of two segments for the same octets the newer one may be proved alone.  The older one has come
 * before it then, or comes behind it.  The recorded memory has the newer one in either case, for
 * it is in the order of the inputs.  So if the older one comes behind, the domain's memory differs
 * from the recorded one, and a CPU that loads these octets, and sees the newer ones, proves that
 * this is not what happened.
 *
 * Where nobody is asked about the order (sg_persist_arrivals()), there is no other past to believe
 * in, and none of this is noted.
 */
#include "persist/certain.h"
#include "persist/segments.h"

/* Octets of a segment under way. */
struct overtaken {
    uint64_t seq; /* the segment's */
    uint64_t addr, len;
};

/* An octet of which the recorded memory has another value than the domain's. */
struct inverted {
    uint64_t addr;
    uint8_t recorded;
};

void sg_dom_overtaken_init(struct sg_persist *p)
{
    p->overtaken = g_array_new(FALSE, FALSE, sizeof(struct overtaken));
    p->inverted = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
}

void sg_dom_overtaken_free(struct sg_persist *p)
{
    g_array_free(p->overtaken, TRUE);
    g_hash_table_destroy(p->inverted);
}

void sg_dom_overtaken_clear(struct sg_persist *p)
{
    g_array_set_size(p->overtaken, 0);
    g_hash_table_remove_all(p->inverted);
}

static void invert(struct sg_persist *p, uint64_t addr, uint8_t recorded)
{
    struct inverted *x = g_new(struct inverted, 1);

    *x = (struct inverted){ addr, recorded };
    g_hash_table_replace(p->inverted, &x->addr, x);
}

void sg_dom_overtaken_copy(struct sg_persist *to, const struct sg_persist *from)
{
    GHashTableIter iter;
    gpointer value;

    sg_dom_overtaken_init(to);
    g_array_append_vals(to->overtaken, from->overtaken->data, from->overtaken->len);
    g_hash_table_iter_init(&iter, from->inverted);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct inverted *x = value;

        invert(to, x->addr, x->recorded);
    }
}

/* ---- Overtaking ---- */

static void overtake(struct sg_persist *p, const struct piece *x, const struct piece *by,
                     uint32_t octets)
{
    uint64_t from = SG_MAX(x->addr + x->arrives, by->addr);
    uint64_t end = SG_MIN(x->addr + x->len, by->addr + octets);
    struct overtaken o = { .seq = x->seq, .addr = from, .len = end - from };

    if (x->seq < by->seq && from < end) {
        g_array_append_val(p->overtaken, o);
    }
}

void sg_dom_overtakes(struct sg_persist *p, const GPtrArray *left, const struct piece *by,
                      uint32_t octets)
{
    for (guint i = 0; p->arrivals && i < left->len; i++) {
        overtake(p, g_ptr_array_index(left, i), by, octets);
    }
}

/* ---- Arriving ---- */

/* What the recorded memory has there. */
static uint8_t recorded_at(struct sg_persist *p, uint64_t addr)
{
    const struct inverted *x = g_hash_table_lookup(p->inverted, &addr);
    uint64_t off;
    const struct extent *e = x ? NULL : sg_dom_extent(p, addr, 1, &off);

    return x ? x->recorded : e ? e->visible[off] : 0;
}

/* So many octets of a segment arrive, which have been overtaken here; keeps those that differ. */
static void arrive_overtaken(struct sg_persist *p, const struct overtaken *o, const struct piece *x,
                             uint32_t octets, GArray *differ)
{
    uint64_t end = SG_MIN(o->addr + o->len, x->addr + octets);

    for (uint64_t addr = SG_MAX(o->addr, x->addr); addr < end; addr++) {
        struct inverted i = { addr, recorded_at(p, addr) };

        if (x->data[addr - x->addr] != i.recorded) {
            g_array_append_val(differ, i);
        }
    }
}

GArray *sg_dom_arrives_overtaken(struct sg_persist *p, const struct piece *x, uint32_t octets)
{
    GArray *differ = NULL;
    guint kept = 0;

    for (guint i = 0; i < p->overtaken->len; i++) {
        struct overtaken *o = &g_array_index(p->overtaken, struct overtaken, i);

        if (o->seq == x->seq) {
            differ = differ ? differ : g_array_new(FALSE, FALSE, sizeof(struct inverted));
            arrive_overtaken(p, o, x, octets, differ);
        }
        if (o->seq != x->seq || o->addr + o->len > x->addr + octets) {
            g_array_index(p->overtaken, struct overtaken, kept++) = *o;
        }
    }
    g_array_set_size(p->overtaken, kept);
    return differ;
}

void sg_dom_note_inverted(struct sg_persist *p, GArray *differ)
{
    for (guint i = 0; differ && i < differ->len; i++) {
        const struct inverted *x = &g_array_index(differ, struct inverted, i);

        invert(p, x->addr, x->recorded);
    }
    if (differ) {
        g_array_free(differ, TRUE);
    }
}

/* ---- Inverted octets ---- */

void sg_dom_forget_inverted(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    GHashTableIter iter;
    gpointer value;

    if (!g_hash_table_size(p->inverted)) {
        return;
    }
    g_hash_table_iter_init(&iter, p->inverted);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct inverted *x = value;

        if (x->addr - addr < len) {
            g_hash_table_iter_remove(&iter);
        }
    }
}

bool sg_persist_contradicts(const struct sg_persist *p, uint64_t addr, uint64_t len)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, p->inverted);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct inverted *x = value;

        if (x->addr - addr < len) {
            return true;
        }
    }
    return false;
}

bool sg_dom_same_inverted(const struct sg_persist *a, const struct sg_persist *b)
{
    GHashTableIter iter;
    gpointer value;

    if (g_hash_table_size(a->inverted) != g_hash_table_size(b->inverted)) {
        return false;
    }
    g_hash_table_iter_init(&iter, a->inverted);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct inverted *x = value, *y = g_hash_table_lookup(b->inverted, &x->addr);

        if (!y || y->recorded != x->recorded) {
            return false;
        }
    }
    return true;
}

bool sg_dom_same_overtaken(const struct sg_persist *a, const struct sg_persist *b, guint i,
                           uint64_t *of_a, uint64_t *of_b)
{
    const struct overtaken *x = &g_array_index(a->overtaken, struct overtaken, i);
    const struct overtaken *y = &g_array_index(b->overtaken, struct overtaken, i);

    *of_a = x->seq;
    *of_b = y->seq;
    return x->addr == y->addr && x->len == y->len;
}
