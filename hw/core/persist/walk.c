/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How far the stores of a line have come: walks over its history.
 *
 * In domain NONE a line may have thousands of stores in the write-pending queue, and each flush of
 * the line asks again.  The answer never lies before what has gone into the queue, so the walks
 * begin behind it: behind l->walked stores, of which l->walked_last is the last one.
 */
#include "persist/domain_impl.h"

/* The first store that a walk looks at; 0: none. */
static uint32_t walk_from(const struct sg_persist *p, const struct line *l)
{
    return l->walked ? sg_dom_rec(p, l->walked_last)->next : l->first;
}

unsigned sg_dom_line_cached(const struct sg_persist *p, const struct line *l)
{
    unsigned k = l->walked;

    for (uint32_t n = walk_from(p, l); n; k++) {
        const struct rec *r = sg_dom_rec(p, n);

        if (r->flags & REC_S2P) {
            break;
        }
        n = r->next;
    }
    return k;
}

unsigned sg_dom_line_upto(const struct sg_persist *p, const struct line *l, uint64_t seq)
{
    unsigned k = l->walked, i = k;
    bool glued = false;

    for (uint32_t n = walk_from(p, l); n; i++) {
        const struct rec *r = sg_dom_rec(p, n);

        if (r->seq <= seq || glued) {
            k = i + 1;
            glued = r->flags & REC_GLUE;
        }
        n = r->next;
    }
    return k;
}

unsigned sg_dom_line_flushed(const struct sg_persist *p, const struct line *l, uint64_t seq,
                             unsigned vcpu)
{
    unsigned k = l->walked, i = k;
    bool glued = false;

    for (uint32_t n = walk_from(p, l); n; i++) {
        const struct rec *r = sg_dom_rec(p, n);

        if ((r->seq <= seq &&
             (r->cpu == vcpu + 1 || (!(r->flags & REC_S2P) && r->late <= seq - r->seq))) ||
            glued) {
            k = i + 1;
            glued = r->flags & REC_GLUE;
        }
        n = r->next;
    }
    return k;
}

unsigned sg_dom_line_noted(const struct sg_persist *p, const struct line *l,
                           const struct sg_persist_source *source,
                           const struct sg_persist_flush_note *note)
{
    unsigned k = 0, i = 0;
    bool glued = false;

    for (uint32_t n = l->first; n; i++) {
        const struct rec *r = sg_dom_rec(p, n);
        bool was_there = r->seq <= note->seq ? r->late <= note->seq - r->seq
                                             : sg_dom_was_noted(p, r->seq, source, note);

        if ((was_there && !(r->flags & REC_S2P)) || glued) {
            k = i + 1;
            glued = r->flags & REC_GLUE;
        }
        n = r->next;
    }
    return k;
}

void sg_dom_line_leave_cpu(struct sg_persist *p, struct line *l, unsigned k)
{
    unsigned left = k - SG_MIN(k, l->walked);
    bool waits = false;

    for (uint32_t n = walk_from(p, l); n && (left || l->nt_cpu); left -= left > 0) {
        struct rec *r = sg_dom_rec(p, n);

        if (left && r->flags & REC_S2P) {
            r->flags &= ~REC_S2P;
            r->late = SG_MIN(p->seq - r->seq, UINT32_MAX);
        }
        waits |= r->flags & REC_WC;
        n = r->next;
    }
    if (!waits) {
        sg_dom_line_forget_nt(p, l);
    }
}

/* Cut points stay: the queue may drain in parts, and an older part of it than a newer one. */
void sg_dom_line_to_wpq(const struct sg_persist *p, struct line *l, unsigned k)
{
    unsigned walked = l->walked;

    for (uint32_t n = walk_from(p, l); walked < k; walked++) {
        l->walked_last = n;
        n = sg_dom_rec(p, n)->next;
    }
    l->walked = walked;
    l->wpq_count = SG_MAX(l->wpq_count, k);
}

bool sg_dom_line_cut_point(const struct sg_persist *p, const struct line *l, unsigned k)
{
    unsigned i = k > l->walked ? l->walked : 0;
    uint32_t n = i ? walk_from(p, l) : l->first;

    if (k == l->walked) {
        return true; /* it was one when it went into the queue */
    }
    for (i++; i < k && n; i++) {
        n = sg_dom_rec(p, n)->next;
    }
    return k == 0 || (n && !(sg_dom_rec(p, n)->flags & REC_GLUE));
}
