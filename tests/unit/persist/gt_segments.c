/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Segments that are placed in any order.
 *
 * A segment goes from S0 to S1 at an instant between the event that brought it and the one that
 * settles its connection.  S1 is a FIFO.  So of two segments of an adapter the first comes before
 * the second in every case only if it had settled when the second one came.  Parts of a segment
 * come in their order; those of several segments mix.
 *
 * Between two events each part that may come comes in some machines: so it may have been there
 * before any store to its line, and before any other part for it.  Parts for one atom come in the
 * order of the trace, whose memory is that of the run, and so does what is left when an event
 * proves it.  An event that proves a part alone proves nothing of older parts for its atom: these
 * have come before it, or come behind it.
 */
#include "gt_segments.h"

#include <string.h>

bool gt_in_any_order(const struct gt_world *w)
{
    return w->t->reorder && w->t->exact != GT_LIVE;
}

bool gt_is_before(const struct gt_world *w, unsigned a, unsigned b)
{
    const struct gt_segment *x = &w->segment[a], *y = &w->segment[b];

    if (a == b || x->device != y->device) {
        return false;
    }
    switch (w->t->slip) {
    case GT_SEGMENTS_PLACED_SO:
        return a < b;
    case GT_SETTLING_FORGETS:
        return false;
    case GT_S0_BEHIND_S1:
        return x->settled && (!y->settled || x->when <= y->event);
    default:
        return x->settled && x->when <= y->event;
    }
}

bool gt_may_come(const struct gt_world *w, const struct gt_machine *m, unsigned segment)
{
    const struct gt_segment *s = &w->segment[segment];

    if (s->arrived + m->came[segment] == s->parts || w->t->slip == GT_ADAPTER_LOSES_S0) {
        return false;
    }
    for (unsigned i = 0; i < w->segments; i++) {
        const struct gt_segment *x = &w->segment[i];
        bool complete = x->arrived + m->came[i] == x->parts;

        if (!complete && (gt_is_before(w, i, segment) ||
                          (w->t->slip == GT_SEGMENTS_COME_AS_ONE && m->came[i] && i != segment))) {
            return false;
        }
    }
    return true;
}

/* Has all come that older segments bring to the atom of the next part? */
static bool atom_in_order(const struct gt_world *w, const struct gt_machine *m, unsigned segment)
{
    const struct gt_segment *y = &w->segment[segment];
    const struct gt_part *next = &y->part[y->arrived + m->came[segment]];

    for (unsigned i = 0; i < segment; i++) {
        const struct gt_segment *x = &w->segment[i];

        for (unsigned a = x->arrived + m->came[i]; a < x->parts; a++) {
            if (x->part[a].at / 2 == next->at / 2) {
                return false;
            }
        }
    }
    return true;
}

bool gt_may_be_early(const struct gt_world *w, const struct gt_machine *m, unsigned segment)
{
    unsigned line;

    if (!gt_may_come(w, m, segment) ||
        (w->t->slip != GT_EARLY_OVERTAKES && !atom_in_order(w, m, segment))) {
        return false;
    }
    line = gt_line_of(&w->segment[segment].part[w->segment[segment].arrived + m->came[segment]]);
    return gt_line_left(w, m, line, -1, -1) &&
           (w->t->slip == GT_LINES_STAY_IN_BUFFERS || gt_stores_left(w, m, line, -1));
}

bool gt_all_came(const struct gt_world *w, const struct gt_machine *m)
{
    for (unsigned i = 0; i < w->segments; i++) {
        const struct gt_segment *s = &w->segment[i];

        if (s->settled && s->arrived + m->came[i] < s->parts) {
            return false;
        }
    }
    return true;
}

static bool step_prove(const struct gt_world *w, struct gt_machine *m, const struct gt_part *x)
{
    (void)w;
    m->came[x->segment]--;
    return true;
}

/* It is proved that a segment's first parts, so many, have arrived. */
static void come(struct gt_world *w, struct gt_segment *s, unsigned parts)
{
    while (s->arrived < parts) {
        const struct gt_part *x = &s->part[s->arrived];

        gt_come(w, x);
        gt_step(w, step_prove, x);
        s->arrived++;
    }
}

void gt_segments_fence(struct gt_world *w, unsigned device)
{
    for (unsigned i = 0; i < w->segments; i++) {
        if (w->segment[i].settled && w->segment[i].device == device) {
            come(w, &w->segment[i], w->segment[i].parts);
        }
    }
}

static void settle_one(struct gt_world *w, struct gt_segment *s)
{
    s->settled = true;
    s->when = w->now;
    if (!w->t->s1) {
        come(w, s, s->parts);
    }
}

void gt_segments_settle(struct gt_world *w, unsigned device, unsigned conn)
{
    for (unsigned i = 0; i < w->segments; i++) {
        struct gt_segment *s = &w->segment[i];

        if (!s->settled && s->device == device && s->conn == conn) {
            settle_one(w, s);
        }
    }
}

void gt_segments_add(struct gt_world *w, const struct gt_event *e, const struct gt_part *part,
                     unsigned parts)
{
    struct gt_segment *s = &w->segment[w->segments++];

    *s = (struct gt_segment){ .device = e->who, .conn = e->conn, .event = w->now, .parts = parts };
    memcpy(s->part, part, parts * sizeof(*part));
    for (unsigned i = 0; i < parts; i++) {
        s->part[i].segment = w->segments - 1;
        s->part[i].number = i;
    }
    if (e->kind == GT_ATOM || !w->t->s0) {
        settle_one(w, s);
    }
}

/* Is the part in one of the range's units of so many halves? */
static bool is_for(const struct gt_part *part, const struct gt_part *x, unsigned unit)
{
    return (part->at + part->units - 1) / unit >= x->at / unit &&
           part->at / unit <= (x->at + x->units - 1) / unit;
}

void gt_segments_seen(struct gt_world *w, const struct gt_part *x, unsigned unit)
{
    unsigned proved[GT_EVENTS] = { 0 };
    bool read[GT_EVENTS] = { false };

    for (unsigned i = 0; i < w->segments; i++) {
        const struct gt_segment *s = &w->segment[i];

        for (unsigned k = s->arrived; k < s->parts; k++) {
            proved[i] = is_for(&s->part[k], x, unit) ? k + 1 : proved[i];
        }
        read[i] = proved[i];
    }
    for (unsigned i = 0; i < w->segments; i++) {
        for (unsigned k = 0; k < w->segments; k++) {
            bool same = w->segment[i].device == w->segment[k].device &&
                        w->segment[i].conn == w->segment[k].conn && i < k;

            if (read[k] &&
                (gt_is_before(w, i, k) || (w->t->slip == GT_SEGMENTS_IN_ORDER && same))) {
                proved[i] = w->segment[i].parts;
            }
        }
    }
    for (unsigned i = 0; i < w->segments; i++) {
        come(w, &w->segment[i], proved[i]);
    }
}
