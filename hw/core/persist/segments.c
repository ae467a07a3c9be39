/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * S0 and S1 as sets: with limits.exact and random order.
 *
 * A connection settles at an instant that is known; when before that a segment of it went from S0
 * to S1 is not.  S1 is a FIFO.  So all that is certain of two segments of an adapter is that the
 * first comes before the second if it had settled when the second came to the adapter: the numbers
 * of two events are compared (sg_dom_piece_before()).  A segment's own octets come in their order.
 *
 * S0 and S1 stay lists.  S1 is sorted by the numbers of the inputs: this is one of the orders that
 * are possible, and the one that the recorded memory had.  Whoever has read a line has proved what
 * is for it, up to the line's end, and of each adapter what had settled before the newest of that.
 * It arrives in the order of the inputs.  cut_segments.c has the other orders.
 *
 * Who only stores to a line has proved nothing: what is under way to it may have arrived before or
 * not, and whoever asked for that decides (sg_persist_arrivals()).
 */
#include "persist/segments.h"
#include "persist/certain.h"

/* What has arrived: of each piece, so many of its first octets. */
struct proof {
    uint64_t lo, last;                    /* lines that were read; first: no line */
    uint64_t settled[SG_PERSIST_DEVICES]; /* and what had settled by then */
    const struct sg_persist_source
        *conn; /* of this connection what came up to event seq; or NULL */
    uint64_t seq;
};

struct proved_piece {
    struct piece *x;
    struct fifo *stays; /* not all of it arrives: the queue in which the rest is */
    uint32_t octets;
};

static bool was_read(const struct proof *why, const struct piece *x)
{
    return why->lo <= why->last && sg_dom_piece_is_for(x, why->lo, why->last);
}

static uint32_t octets_proved(const struct proof *why, const struct piece *x)
{
    if (x->settled <= why->settled[x->source.unit] ||
        (why->conn && x->source.unit == why->conn->unit && x->source.qpn == why->conn->qpn &&
         x->seq <= why->seq)) {
        return x->len;
    }
    return was_read(why, x) ? SG_MIN(x->len, why->last + 1 - x->addr) : 0;
}

static void find_newest(struct proof *why, const struct fifo *f)
{
    for (const struct piece *x = f->head; x; x = x->next) {
        if (was_read(why, x)) {
            why->settled[x->source.unit] = SG_MAX(why->settled[x->source.unit], x->seq);
        }
    }
}

/* Appends what of a queue arrives.  Whole pieces leave the queue. */
static void take(struct fifo *f, GArray *to)
{
    struct piece *prev = NULL, *next;

    for (struct piece *x = f->head; x; x = next) {
        struct proved_piece a = { .x = x, .octets = x->arrives };

        next = x->next;
        if (a.octets == x->len) {
            sg_dom_fifo_take(f, prev);
        } else {
            a.stays = f;
            prev = x;
        }
        if (a.octets) {
            g_array_append_val(to, a);
        }
    }
}

/* All pieces under way, by queue; the caller frees the array. */
static GPtrArray *under_way(const struct sg_persist *p)
{
    GPtrArray *all = g_ptr_array_new();

    for (unsigned i = 0; i < p->conn_order->len; i++) {
        const struct sg_dom_conn *c = g_ptr_array_index(p->conn_order, i);

        for (struct piece *x = c->s0.head; x; x = x->next) {
            g_ptr_array_add(all, x);
        }
    }
    for (uint64_t m = p->s1_devices; m; m &= m - 1) {
        for (struct piece *x = p->s1[__builtin_ctzll(m)].head; x; x = x->next) {
            g_ptr_array_add(all, x);
        }
    }
    return all;
}

static gint by_input(gconstpointer a, gconstpointer b)
{
    const struct proved_piece *x = a, *y = b;

    return x->x->seq < y->x->seq ? -1 : 1;
}

static void arrive(struct sg_persist *p, const struct proved_piece *a)
{
    struct piece *x = a->x;

    sg_dom_others_drain(p, -1, SG_DOM_ADAPTER);
    sg_dom_become_visible(p, x->addr, x->data, a->octets, sg_dom_visible_seq(p, x, a->octets),
                          x->source.mode);
    if (!a->stays) {
        g_free(x);
        return;
    }
    x->addr += a->octets;
    x->len -= a->octets;
    a->stays->octets -= a->octets;
    memmove(x->data, x->data + a->octets, x->len);
}

/* Of each piece what x->arrives says, in the order of the inputs. */
static void arrive_all(struct sg_persist *p)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(struct proved_piece));

    for (unsigned i = 0; i < p->conn_order->len; i++) {
        take(&((struct sg_dom_conn *)g_ptr_array_index(p->conn_order, i))->s0, all);
    }
    for (uint64_t m = p->s1_devices; m; m &= m - 1) {
        unsigned d = __builtin_ctzll(m);

        take(&p->s1[d], all);
        p->s1_devices &= ~((uint64_t)!p->s1[d].head << d);
    }
    g_array_sort(all, by_input);
    for (guint i = 0; i < all->len; i++) {
        arrive(p, &g_array_index(all, struct proved_piece, i));
    }
    g_array_free(all, TRUE);
    sg_dom_drop_empty(p);
}

static void arrive_proved(struct sg_persist *p, const struct proof *why)
{
    GPtrArray *all = under_way(p);

    for (guint i = 0; i < all->len; i++) {
        struct piece *x = g_ptr_array_index(all, i);

        x->arrives = octets_proved(why, x);
    }
    g_ptr_array_free(all, TRUE);
    arrive_all(p);
}

void sg_dom_segments_seen(struct sg_persist *p, uint64_t lo, uint64_t last)
{
    struct proof why = { .lo = lo, .last = last };

    for (unsigned i = 0; i < p->conn_order->len; i++) {
        find_newest(&why, &((struct sg_dom_conn *)g_ptr_array_index(p->conn_order, i))->s0);
    }
    for (uint64_t m = p->s1_devices; m; m &= m - 1) {
        find_newest(&why, &p->s1[__builtin_ctzll(m)]);
    }
    arrive_proved(p, &why);
}

void sg_dom_segments_noted(struct sg_persist *p, const struct sg_persist_source *source,
                           const struct sg_persist_flush_note *note)
{
    struct proof why = { .lo = 1, .last = 0, .conn = source, .seq = note->seq };

    why.settled[source->unit] = note->seq;
    arrive_proved(p, &why);
}

/* ---- Before somebody else's store ---- */

static gint older_first(gconstpointer a, gconstpointer b)
{
    const struct piece *x = *(struct piece *const *)a, *y = *(struct piece *const *)b;

    return x->seq < y->seq ? -1 : 1;
}

/* How many octets of a piece arrive with so many of its atoms in the lines from lo on. */
static uint32_t octets_with(const struct piece *x, uint64_t lo, uint32_t atoms)
{
    uint64_t from = sg_align_down(SG_MAX(x->addr, lo), SG_PERSIST_ATOM);

    return SG_MIN(x->len, from + (uint64_t)atoms * SG_PERSIST_ATOM - x->addr);
}

/* Asks how much of a piece arrives early; @last: of the last line. */
static void ask_early(struct sg_persist *p, struct piece *x, uint64_t lo, uint64_t last)
{
    uint64_t from = SG_MAX(x->addr, lo), end = SG_MIN(x->addr + (x->len - 1), last);
    struct sg_persist_choice q = {
        .what = SG_PERSIST_CHOICE_EARLY,
        .unit = x->source.unit,
        .qpn = x->source.qpn,
        .n = end / SG_PERSIST_ATOM - from / SG_PERSIST_ATOM + 2,
        .addr = x->seq,
    };
    uint32_t atoms = p->arrivals(p->arrivals_opaque, &q);

    sg_assert(atoms < q.n);
    x->arrives = atoms ? octets_with(x, lo, atoms) : 0;
}

/* What of x is for the atoms of y that arrive, y being the newer one, arrives before them. */
static void comes_before(struct piece *x, const struct piece *y)
{
    uint64_t first = sg_align_down(y->addr, SG_PERSIST_ATOM);
    uint64_t last = (y->addr + (y->arrives - 1)) | (SG_PERSIST_ATOM - 1);

    if (sg_dom_piece_is_for(x, first, last)) {
        x->arrives = SG_MAX(x->arrives, SG_MIN(x->len, last + 1 - x->addr));
    }
}

/* What has to arrive before that, arrives, too: all of it is of older inputs. */
static void add_what_is_before(const GPtrArray *all)
{
    uint64_t settled[SG_PERSIST_DEVICES] = { 0 };

    for (guint k = all->len; k--;) {
        struct piece *y = g_ptr_array_index(all, k);
        uint64_t *newest = &settled[y->source.unit];

        if (y->settled <= *newest) {
            y->arrives = y->len;
        }
        *newest = y->arrives ? SG_MAX(*newest, y->seq) : *newest;
        for (guint i = 0; i < k && y->arrives; i++) {
            comes_before(g_ptr_array_index(all, i), y);
        }
    }
}

void sg_dom_segments_early(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    uint64_t lo = sg_align_down(addr, SG_PERSIST_LINE);
    uint64_t last = (addr + (len - 1)) | (SG_PERSIST_LINE - 1);
    bool any = false;
    GPtrArray *all;

    if (!p->arrivals || !sg_dom_any_order(p) || !sg_dom_posted_sees(p, lo, last)) {
        return;
    }
    all = under_way(p);
    g_ptr_array_sort(all, older_first);
    for (guint i = 0; i < all->len; i++) {
        struct piece *x = g_ptr_array_index(all, i);

        x->arrives = 0;
        if (sg_dom_piece_is_for(x, lo, last)) {
            ask_early(p, x, lo, last);
            any |= x->arrives != 0;
        }
    }
    if (any) {
        add_what_is_before(all);
    }
    g_ptr_array_free(all, TRUE);
    if (any) {
        arrive_all(p);
    }
}

void sg_persist_arrivals(struct sg_persist *p, sg_persist_choose *choose, void *opaque)
{
    p->arrivals = choose;
    p->arrivals_opaque = opaque;
}
