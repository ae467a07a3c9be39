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
GPtrArray *sg_dom_segments_under_way(const struct sg_persist *p)
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
void sg_dom_segments_arrive(struct sg_persist *p)
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
    GPtrArray *all = sg_dom_segments_under_way(p);

    for (guint i = 0; i < all->len; i++) {
        struct piece *x = g_ptr_array_index(all, i);

        x->arrives = octets_proved(why, x);
    }
    g_ptr_array_free(all, TRUE);
    sg_dom_segments_arrive(p);
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
