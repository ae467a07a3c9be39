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
 * What else is under way may have arrived before that: early.c.
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

/* A walk over all pieces under way, by queue. */
struct segment_walk {
    struct piece *next; /* of the same queue */
    unsigned conn;      /* the next one to look at */
    uint64_t devices;   /* that are still to come */
};

static struct segment_walk walk_of(const struct sg_persist *p)
{
    return (struct segment_walk){ .devices = p->s1_devices };
}

/* The next one; NULL: that was all. */
static struct piece *walk_on(const struct sg_persist *p, struct segment_walk *w)
{
    struct piece *x;

    while (!w->next && w->conn < p->conn_order->len) {
        w->next = ((struct sg_dom_conn *)g_ptr_array_index(p->conn_order, w->conn++))->s0.head;
    }
    if (!w->next && w->devices) {
        w->next = p->s1[__builtin_ctzll(w->devices)].head;
        w->devices &= w->devices - 1;
    }
    x = w->next;
    w->next = x ? x->next : NULL;
    return x;
}

/* All pieces under way, by queue; the caller frees the array. */
GPtrArray *sg_dom_segments_under_way(const struct sg_persist *p)
{
    GPtrArray *all = g_ptr_array_new();
    struct segment_walk w = walk_of(p);
    struct piece *x;

    while ((x = walk_on(p, &w))) {
        g_ptr_array_add(all, x);
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
    GArray *differ = sg_dom_arrives_overtaken(p, x, a->octets);

    sg_dom_others_drain(p, -1, SG_DOM_ADAPTER);
    sg_dom_become_visible(p, x->addr, x->data, a->octets, sg_dom_visible_seq(p, x, a->octets),
                          x->source.mode);
    sg_dom_note_inverted(p, differ);
    if (!a->stays) {
        g_free(x);
        return;
    }
    x->addr += a->octets;
    x->len -= a->octets;
    a->stays->octets -= a->octets;
    memmove(x->data, x->data + a->octets, x->len);
}

/* These arrive; what is older and stays, or the rest of it, comes behind them. */
static void note_overtaken(struct sg_persist *p, const GArray *arriving)
{
    struct segment_walk w = walk_of(p);
    GPtrArray *left;

    if (!walk_on(p, &w)) {
        return;
    }
    left = sg_dom_segments_under_way(p);
    for (guint i = 0; i < arriving->len; i++) {
        const struct proved_piece *a = &g_array_index(arriving, struct proved_piece, i);

        sg_dom_overtakes(p, left, a->x, a->octets);
    }
    g_ptr_array_free(left, TRUE);
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
    note_overtaken(p, all);
    for (guint i = 0; i < all->len; i++) {
        arrive(p, &g_array_index(all, struct proved_piece, i));
    }
    g_array_free(all, TRUE);
    sg_dom_drop_empty(p);
}

GArray *sg_dom_segment_arrives(struct sg_persist *p, struct piece *x, uint32_t octets)
{
    GPtrArray *left = sg_dom_segments_under_way(p);

    for (guint i = 0; i < left->len; i++) {
        ((struct piece *)g_ptr_array_index(left, i))->arrives = 0;
    }
    sg_dom_overtakes(p, left, x, octets);
    g_ptr_array_free(left, TRUE);
    return sg_dom_arrives_overtaken(p, x, octets);
}

/* Says of each piece how much of it is proved; is that anything? */
static bool prove(struct sg_persist *p, const struct proof *why)
{
    struct segment_walk w = walk_of(p);
    struct piece *x;
    bool any = false;

    while ((x = walk_on(p, &w))) {
        x->arrives = octets_proved(why, x);
        x->proved = x->addr + x->arrives;
        x->near = x->arrives != 0;
        any |= x->near;
    }
    return any;
}

static void arrive_proved(struct sg_persist *p, const struct proof *why,
                          const struct sg_dom_flushed *f)
{
    if (!prove(p, why)) {
        return;
    }
    if (p->arrivals) {
        sg_dom_segments_mix(p, f);
        prove(p, why); /* what is left of it */
    }
    sg_dom_segments_arrive(p);
}

/* Somebody has read these lines. */
static struct proof of_lines(const struct sg_persist *p, uint64_t lo, uint64_t last)
{
    struct proof why = { .lo = lo, .last = last };

    for (unsigned i = 0; i < p->conn_order->len; i++) {
        find_newest(&why, &((struct sg_dom_conn *)g_ptr_array_index(p->conn_order, i))->s0);
    }
    for (uint64_t m = p->s1_devices; m; m &= m - 1) {
        find_newest(&why, &p->s1[__builtin_ctzll(m)]);
    }
    return why;
}

/* What a device had in S1 when this event was the newest, and a connection anywhere. */
static struct proof of_device(unsigned device, uint64_t seq, const struct sg_persist_source *conn)
{
    struct proof why = { .lo = 1, .last = 0, .conn = conn, .seq = seq };

    why.settled[device] = seq;
    return why;
}

void sg_dom_segments_seen(struct sg_persist *p, uint64_t lo, uint64_t last)
{
    struct proof why = of_lines(p, lo, last);

    arrive_proved(p, &why, NULL);
}

void sg_dom_segments_noted(struct sg_persist *p, const struct sg_persist_source *source,
                           const struct sg_persist_flush_note *note, const struct sg_dom_flushed *f)
{
    struct proof why = of_device(source->unit, note->seq, source);

    arrive_proved(p, &why, f);
}

void sg_dom_segments_fenced(struct sg_persist *p, unsigned device)
{
    struct proof why = of_device(device, p->seq, NULL);

    arrive_proved(p, &why, NULL);
}

void sg_dom_segments_settling(struct sg_persist *p, unsigned device, uint32_t qpn)
{
    const struct sg_persist_source conn = { .unit = device, .qpn = qpn };
    const struct proof why = { .lo = 1, .last = 0, .conn = &conn, .seq = p->seq };

    if (p->arrivals && sg_dom_any_order(p) && prove(p, &why)) {
        sg_dom_segments_mix(p, NULL);
    }
}

/* ---- What would be asked? ---- */

static uint32_t stops(struct sg_persist *p, const struct proof *why, const struct sg_dom_flushed *f)
{
    return prove(p, why) ? sg_dom_segments_stops(p, f) : 0;
}

uint32_t sg_persist_stops_at_load(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    uint64_t lo = sg_align_down(addr, SG_PERSIST_LINE);
    uint64_t last = (addr + (len - 1)) | (SG_PERSIST_LINE - 1);
    struct proof why;

    if (!len || !sg_dom_any_order(p) || !sg_dom_posted_sees(p, lo, last)) {
        return 0;
    }
    why = of_lines(p, lo, last);
    return stops(p, &why, NULL);
}

uint32_t sg_persist_stops_at_fence(struct sg_persist *p, unsigned device)
{
    struct proof why;

    if (device >= SG_PERSIST_DEVICES || !sg_dom_any_order(p) || !p->s1[device].head) {
        return 0;
    }
    why = of_device(device, p->seq, NULL);
    return stops(p, &why, NULL);
}

uint32_t sg_persist_stops_at_flush(struct sg_persist *p, const struct sg_persist_source *source,
                                   uint64_t addr, const struct sg_pm_op *op,
                                   const struct sg_persist_flush_note *note)
{
    struct sg_dom_flushed f = { addr, op->flags & SG_FLUSH_PERSISTENT ? op->len : 0 };
    struct proof why;

    if (source->unit >= SG_PERSIST_DEVICES || !sg_dom_any_order(p)) {
        return 0;
    }
    why = of_device(source->unit, note->seq, source);
    return stops(p, &why, &f);
}
