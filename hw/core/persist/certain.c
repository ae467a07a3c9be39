/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is it certain?  The rules of a cut, for one octet at a time.
 *
 * An octet passes through values: the media's, that of each step of its line, then those of the
 * pieces in S1 and S0.  The *target* is the last of them with a number of the question's.  A cut
 * that leaves an older value, which differs from the target's, loses the octet.  Which older values
 * can a cut leave?
 *
 *   of the line   any prefix of its steps that may end there (view.h), if nothing arrives
 *   of S1         a device's queue up to any piece, if the others bring nothing
 *   of S0         the same of a connection, behind all of its device's S1; any piece, if they leave
 *                 S0 in random order
 *   of sets       any piece before which the target does not have to come (segments.c)
 *   in `whole`    S1 has arrived: of each device its last piece for the octet may be the newest
 *
 * A queue that brings an older value and has the target before it has brought that, too; then the
 * older value is one that reached memory after the target.  If the medium refuses the line, what is
 * left is the media's value.
 *
 * A step may be of several stores, which a limit has merged.  It has the value of the newest one.
 * If the question covers all that were merged in the line, that is the value to ask for, and what a
 * cut loses of it is lost: merging adds no outcomes.  Else nobody knows which of the stores the
 * value belongs to, and an answer that rests on it is in doubt.
 */
#include "persist/certain.h"
#include "persist/segments.h"
#include "persist/view.h"

enum { IN_PIECE = UINT32_MAX };

/* Of each octet of a line the last store that the question covers; of pieces the newest. */
struct targets {
    uint64_t exists;                                 /* bits: octets that have one */
    uint64_t in_piece;                               /* those of S0 and S1; of the others: */
    uint32_t step[SG_PERSIST_LINE];                  /* a step of the line; IN_PIECE: behind all */
    const struct sg_dom_part *part[SG_PERSIST_LINE]; /* valid in pieces */
    uint8_t value[SG_PERSIST_LINE];
};

struct question {
    const struct sg_persist *p;
    uint64_t after, seq; /* stores with numbers behind the first, up to the second */
    bool shared;         /* any number may be that of several stores */
    struct sg_dom_view view;
    GArray *parts; /* NULL: there are none */
    unsigned next; /* part that is not for a line before the present one */
    /* Of the present line: */
    uint64_t addr;
    uint64_t octets; /* bits: octets [from, end) are asked about */
    unsigned from, end;
    const struct sg_dom_part *part;
    unsigned part_count;
    struct targets target; /* where its bits say so, the rest is not initialized */
    uint64_t lost;         /* bits: octets that are not certain */
    uint64_t refused;      /* and of these, because the medium takes nothing */
};

uint64_t sg_persist_seq(const struct sg_persist *p)
{
    return p->seq;
}

uint64_t sg_persist_merged(const struct sg_persist *p)
{
    return p->merged;
}

static uint8_t part_value(const struct question *q, const struct sg_dom_part *x, unsigned o)
{
    return x->piece->data[q->addr + o - x->piece->addr];
}

/* ---- Targets ---- */

/* Nobody knows when a CPU that is not tracked stored: it counts as asked about. */
static bool is_asked(const struct question *q, const struct sg_dom_step *s)
{
    uint64_t newest = s->merged ? q->view.merged : s->seq;

    return s->seq <= q->seq && (newest > q->after || s->untracked);
}

static uint8_t step_doubt(const struct question *q, const struct sg_dom_step *s)
{
    bool whole = !q->after && q->view.merged <= q->seq;

    if (s->untracked) {
        return SG_PERSIST_DOUBT_UNTRACKED;
    }
    return q->shared || (s->merged && q->view.merged && !whole) ? SG_PERSIST_DOUBT_MERGED
                                                                : SG_PERSIST_DOUBT_PENDING;
}

static void step_targets(struct question *q)
{
    struct targets *t = &q->target;

    for (unsigned k = 0; k < q->view.step->len; k++) {
        const struct sg_dom_step *s = sg_dom_view_step(&q->view, k);
        unsigned first = s->atom * SG_PERSIST_ATOM;
        uint64_t octets = (uint64_t)s->mask << first & q->octets;

        if (!octets || !is_asked(q, s)) {
            continue;
        }
        t->exists |= octets;
        for (uint64_t m = octets; m; m &= m - 1) {
            unsigned o = (unsigned)__builtin_ctzll(m);

            t->step[o] = k;
            t->value[o] = s->data[o - first];
        }
    }
}

/* Pieces in S0 come behind those in S1; of sets the newest one counts. */
static bool counts_more(bool any_order, const struct sg_dom_part *x, const struct sg_dom_part *than)
{
    return !than || (any_order                 ? x->piece->seq > than->piece->seq
                     : !x->conn == !than->conn ? x->piece->seq >= than->piece->seq
                                               : x->conn != NULL);
}

static void part_targets(struct question *q)
{
    struct targets *t = &q->target;
    bool any_order = sg_dom_any_order(q->p);

    for (unsigned n = 0; n < q->part_count; n++) {
        const struct sg_dom_part *x = &q->part[n];
        bool asked = x->piece->seq > q->after && x->piece->seq <= q->seq;

        for (unsigned o = q->from; o < q->end && asked; o++) {
            const struct sg_dom_part *than = t->in_piece >> o & 1 ? t->part[o] : NULL;

            if (sg_dom_part_has(x, q->addr + o) && counts_more(any_order, x, than)) {
                t->exists |= 1ull << o;
                t->in_piece |= 1ull << o;
                t->step[o] = IN_PIECE;
                t->part[o] = x;
                t->value[o] = part_value(q, x, o);
            }
        }
    }
}

/* ---- Older values ---- */

/* A cut may leave this value of an octet without its target. */
static void is_left(struct question *q, unsigned o, uint8_t value)
{
    if (value != q->target.value[o]) {
        q->lost |= 1ull << o;
    }
}

/* Octets whose line cannot stay as it is, because something arrives in any case. */
static uint64_t overwritten(const struct question *q)
{
    uint64_t octets = 0;

    for (unsigned n = 0; n < q->part_count && q->p->config.domain == SG_PERSIST_WHOLE; n++) {
        for (unsigned o = q->from; o < q->end && !q->part[n].conn; o++) {
            octets |= (uint64_t)sg_dom_part_has(&q->part[n], q->addr + o) << o;
        }
    }
    return octets;
}

/* How many steps are there before the last octet of these gets its target? */
static unsigned steps_before(const struct question *q, uint64_t octets)
{
    uint32_t last = 0;

    for (uint64_t m = octets; m; m &= m - 1) {
        last = SG_MAX(last, q->target.step[__builtin_ctzll(m)]);
    }
    return SG_MIN(last, q->view.step->len);
}

/* Values of the line, if nothing arrives for these octets, which have targets. */
static void scan_line(struct question *q, uint64_t octets)
{
    uint64_t fresh = octets;
    const struct sg_dom_view *v = &q->view;
    unsigned last = octets ? steps_before(q, octets) : 0;
    uint8_t value[SG_PERSIST_LINE];

    if (!octets || v->least > last) {
        return;
    }
    memcpy(value, v->media, sizeof(value));
    for (unsigned k = 0; k <= last; k++) {
        const struct sg_dom_step *s = k ? sg_dom_view_step(v, k - 1) : NULL;
        uint64_t changed = s ? (uint64_t)s->mask << s->atom * SG_PERSIST_ATOM & octets : 0;

        for (uint64_t m = changed; m; m &= m - 1) {
            unsigned o = (unsigned)__builtin_ctzll(m);

            value[o] = s->data[o % SG_PERSIST_ATOM];
        }
        fresh |= changed;
        if (k < v->least || (s && s->glue)) {
            continue;
        }
        for (; fresh; fresh &= fresh - 1) {
            unsigned o = (unsigned)__builtin_ctzll(fresh);

            if (k <= q->target.step[o]) {
                is_left(q, o, value[o]);
            }
        }
    }
}

/* The same where S0 and S1 are sets: a piece is before another, or they come in any order. */
static bool comes_alone_of_sets(const struct question *q, const struct sg_dom_part *x, unsigned o)
{
    const struct sg_dom_part *t = q->target.part[o];
    bool whole = q->p->config.domain == SG_PERSIST_WHOLE;

    if ((whole && !t->conn) || sg_dom_piece_before(t->piece, x->piece)) {
        return false;
    }
    for (unsigned n = 0; n < q->part_count && whole; n++) {
        const struct sg_dom_part *later = &q->part[n];

        if (!later->conn && sg_dom_piece_before(x->piece, later->piece) &&
            sg_dom_part_has(later, q->addr + o)) {
            return false;
        }
    }
    return true;
}

/* May x arrive, as the last for the octet, without the target, which is in S0 or S1 as well? */
static bool comes_alone(const struct question *q, const struct sg_dom_part *x, unsigned o)
{
    const struct sg_dom_part *t = q->target.part[o];
    bool whole = q->p->config.domain == SG_PERSIST_WHOLE;

    if (sg_dom_any_order(q->p)) {
        return comes_alone_of_sets(q, x, o);
    }
    if (!t->conn) { /* the target is in S1 */
        bool behind =
            sg_dom_part_device(x) == sg_dom_part_device(t) && (x->conn || x->number > t->number);

        return !whole && !behind;
    }
    if (x->conn) {
        return x->conn != t->conn || x->number < t->number ||
               q->p->config.placement_order == SG_PERSIST_RANDOM_ORDER;
    }
    for (unsigned n = 0; n < q->part_count && whole; n++) {
        const struct sg_dom_part *later = &q->part[n];

        if (!later->conn && sg_dom_part_device(later) == sg_dom_part_device(x) &&
            later->number > x->number && sg_dom_part_has(later, q->addr + o)) {
            return false;
        }
    }
    return true;
}

/* Values that arrive. */
static void scan_parts(struct question *q)
{
    for (unsigned n = 0; n < q->part_count; n++) {
        const struct sg_dom_part *x = &q->part[n];

        for (uint64_t m = q->target.in_piece; m; m &= m - 1) {
            unsigned o = (unsigned)__builtin_ctzll(m);

            if (q->target.part[o] != x && sg_dom_part_has(x, q->addr + o) && comes_alone(q, x, o)) {
                is_left(q, o, part_value(q, x, o));
            }
        }
    }
}

/* The medium takes nothing. */
static void scan_media(struct question *q)
{
    for (uint64_t m = q->target.exists & ~q->lost; m; m &= m - 1) {
        unsigned o = (unsigned)__builtin_ctzll(m);

        if (q->target.value[o] != q->view.media[o]) {
            q->refused |= 1ull << o;
        }
    }
    q->lost |= q->refused;
}

/* ---- Bad lines ---- */

/* Does every cut write the line to the media? */
static bool always_written(const struct question *q)
{
    const struct sg_dom_view *v = &q->view;
    unsigned domain = q->p->config.domain;
    bool line = v->dirty && (v->least || (domain >= SG_PERSIST_EADR && !v->step->len));

    for (unsigned n = 0; n < q->part_count && domain == SG_PERSIST_WHOLE; n++) {
        line |= !q->part[n].conn;
    }
    return line && !v->never && !v->may_fail;
}

static bool stays_bad(const struct question *q)
{
    const struct sg_dom_bad_ranges *b = &q->p->bad[SG_PERSIST_POISONED - 1];

    if (sg_dom_bad(q->p, q->addr, SG_PERSIST_LINE, SG_PERSIST_UNCORRECTABLE)) {
        return true;
    }
    return sg_dom_bad(q->p, q->addr, SG_PERSIST_LINE, SG_PERSIST_POISONED) &&
           (!always_written(q) || b->count == SG_PERSIST_BAD_RANGES);
}

/* ---- A line, a range ---- */

/* Why this octet is not certain; its length is 1. */
static struct sg_persist_uncertain why_lost(const struct question *q, unsigned o)
{
    struct sg_persist_uncertain why = { .len = 1, .doubt = SG_PERSIST_DOUBT_PENDING };

    if (q->target.in_piece >> o & 1) {
        why.lost = q->target.part[o]->piece->seq;
        why.stage = q->target.part[o]->conn ? SG_PERSIST_S0 : SG_PERSIST_S1;
    } else {
        const struct sg_dom_step *s = sg_dom_view_step(&q->view, q->target.step[o]);

        why.lost = s->seq;
        why.stage = s->stage;
        why.doubt = step_doubt(q, s);
    }
    if (q->refused >> o & 1 && why.doubt != SG_PERSIST_DOUBT_MERGED) {
        why.doubt = SG_PERSIST_DOUBT_REFUSED;
    }
    return why;
}

/* The first octet of the line that is not certain, and why; or its end. */
static unsigned first_lost(const struct question *q, bool bad, struct sg_persist_uncertain *why)
{
    unsigned o = bad ? q->from : q->lost ? (unsigned)__builtin_ctzll(q->lost) : q->end;

    if (o == q->end) {
        return o;
    }
    if (bad) {
        *why = (struct sg_persist_uncertain){
            .len = q->end - o,
            .stage = SG_PERSIST_STAGES,
            .doubt = SG_PERSIST_DOUBT_BAD,
        };
        return o;
    }
    *why = why_lost(q, o);
    while (o + why->len < q->end && q->lost >> (o + why->len) & 1) {
        struct sg_persist_uncertain next = why_lost(q, o + (unsigned)why->len);

        if (next.lost != why->lost || next.stage != why->stage || next.doubt != why->doubt) {
            break;
        }
        why->len++;
    }
    return o;
}

/* What is under way to the present line. */
static void find_parts(struct question *q)
{
    q->part_count = 0;
    if (!q->parts) {
        return;
    }
    q->part = &g_array_index(q->parts, struct sg_dom_part, q->next);
    while (q->next < q->parts->len && q->part[q->part_count].line == q->addr) {
        q->part_count++;
        q->next++;
    }
}

/* Octets [from, end) of the line at an offset of an extent. */
static unsigned ask_line(struct question *q, const struct extent *e, uint64_t off, unsigned from,
                         unsigned end, struct sg_persist_uncertain *why)
{
    q->addr = e->base + off;
    q->octets = (~0ull << from) & (~0ull >> (SG_PERSIST_LINE - end));
    q->from = from;
    q->end = end;
    q->lost = q->refused = 0;
    q->target.exists = q->target.in_piece = 0;
    find_parts(q);
    if (!q->part_count && !sg_dom_view_wanted(q->p, e, off)) {
        q->view.dirty = false;
        return first_lost(q, stays_bad(q), why);
    }
    sg_dom_view_line(&q->view, q->p, e, off);
    step_targets(q);
    part_targets(q);
    if (!q->view.never) {
        scan_line(q, q->target.exists & ~overwritten(q));
        scan_parts(q);
    }
    if (q->view.never || q->view.may_fail) {
        scan_media(q);
    }
    return first_lost(q, stays_bad(q), why);
}

/* The part of a range that lies in an extent; returns the first octet that is not certain. */
static uint64_t ask_extent(struct question *q, const struct extent *e, uint64_t off, uint64_t len,
                           struct sg_persist_uncertain *why)
{
    uint64_t end = off + len;

    while (off < end) {
        uint64_t line = sg_align_down(off, SG_PERSIST_LINE);
        unsigned to = SG_MIN(end - line, SG_PERSIST_LINE);
        unsigned o = ask_line(q, e, line, off - line, to, why);

        if (o < to) {
            return line + o;
        }
        off = line + to;
    }
    return end;
}

uint64_t sg_persist_uncertain(const struct sg_persist *p, uint64_t addr, uint64_t len,
                              uint64_t after, uint64_t seq, struct sg_persist_uncertain *why)
{
    struct question room, *q = &room; /* its targets are not initialized: they are large */
    uint64_t at = 0, off, good;

    memset(why, 0, sizeof(*why));
    if (!len) {
        return addr;
    }
    q->p = p;
    q->shared = p->limits.exact && p->shared;
    q->after = p->limits.exact && !p->shared ? after : 0; /* else stores may share a number */
    q->seq = seq;
    q->next = 0;
    q->parts = sg_dom_parts(p, addr, len);
    sg_dom_view_init(&q->view);
    while (at < len) {
        struct extent *e = sg_dom_extent((struct sg_persist *)p, addr + at, 1, &off);
        uint64_t n = e ? SG_MIN(len - at, e->size - off) : 0;

        good = e ? ask_extent(q, e, off, n, why) - off : 0;
        at += good;
        if (!e) {
            why->stage = SG_PERSIST_STAGES;
            why->doubt = SG_PERSIST_DOUBT_OUTSIDE;
            why->len = 1;
        }
        if (!e || good < n) {
            break;
        }
    }
    sg_dom_view_fini(&q->view);
    if (q->parts) {
        g_array_free(q->parts, TRUE);
    }
    return addr + at;
}
