/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The states of one line, and which of them a cut may leave.
 *
 * First the processors stop: of what a line has in S2', some has left them (cut.c has the table).
 * The line is then as if the rest had never been stored.  When the posted writes have arrived, each
 * line with a history is left in one of its permitted states.
 */
#include "persist/cut_impl.h"

unsigned sg_dom_cut_gather(struct cut *c, const struct line *l)
{
    unsigned count = 0;

    for (uint32_t n = l->first; n; n = c->rec[count++]->next) {
        c->rec[count] = sg_dom_rec(c->p, n);
        c->keep[count] = false;
    }
    return count;
}

/* How many stores the run that begins with this one has. */
static unsigned run_length(const struct cut *c, unsigned first, unsigned count)
{
    unsigned n = 1;

    while (first + n < count && c->rec[first + n - 1]->flags & REC_LOOSE) {
        n++;
    }
    return n;
}

static bool one_atom(const struct cut *c, unsigned first, unsigned n)
{
    while (n > 1 && c->rec[first + n - 1]->atom == c->rec[first]->atom) {
        n--;
    }
    return n == 1;
}

/* Some stores of a run survive: of each atom, independently, the first ones.  Not all of them. */
static void keep_some(struct cut *c, unsigned first, unsigned n, uint64_t addr)
{
    unsigned kept = 0;

    for (unsigned a = 0; a < SG_DOM_LINE_ATOMS; a++) {
        unsigned left = 0;

        for (unsigned i = first; i < first + n; i++) {
            left += c->rec[i]->atom == a;
        }
        left = sg_dom_cut_choose(c, left + 1, addr, true);
        for (unsigned i = first; i < first + n; i++) {
            if (c->rec[i]->atom == a && left) {
                c->keep[i] = true;
                kept++;
                left--;
            }
        }
    }
    if (kept == n) {
        c->keep[first + n - 1] = false;
    }
}

/* Entries of a vCPU's store buffer that leave it, in order. */
static void cut_store_buffer(struct cut *c, struct cpu *cpu)
{
    struct sg_persist_choice q = {
        .what = SG_PERSIST_CHOICE_BUFFER,
        .unit = cpu->unit,
        .n = cpu->sb.count + 1,
    };
    uint32_t n;

    while (q.worst < cpu->sb.count &&
           !sg_dom_cut_in_range(c, sg_dom_ring_at(&cpu->sb, q.worst)->addr, SG_PERSIST_LINE)) {
        q.worst++;
    }
    n = c->domain == SG_PERSIST_WHOLE ? cpu->sb.count : sg_dom_cut_ask(c, &q);
    while (n--) {
        sg_dom_cpu_drain_one(c->p, cpu);
    }
}

/* buffered: it is, or is behind, a store that did not leave the store buffer. */
static void store_lost(struct cut *c, const struct rec *r, bool buffered, uint64_t addr)
{
    sg_dom_cut_lost(c, &(struct sg_persist_lost){
                           .what = buffered ? SG_PERSIST_CHOICE_BUFFER : SG_PERSIST_CHOICE_LINE,
                           .unit = (uint16_t)(buffered ? r->cpu - 1 : 0),
                           .addr = buffered ? 0 : addr,
                           .seq = r->seq,
                       });
}

/* The stores of a line that c->keep does not keep stay in the processor: it loses them. */
static void lose_in_cpu(struct cut *c, struct line *l, unsigned count, unsigned buffered,
                        uint64_t addr)
{
    uint32_t n = l->first, next;

    l->first = l->last = 0;
    l->count = 0;
    for (unsigned i = 0; i < count; i++, n = next) {
        struct rec *r = sg_dom_rec(c->p, n);

        next = r->next;
        if (!c->keep[i]) {
            store_lost(c, r, i >= buffered, addr);
            l->lost++;
            l->lost_seq = r->seq;
            sg_dom_pool_put(&c->p->recs, n);
            continue;
        }
        r->next = 0;
        if (l->last) {
            sg_dom_rec(c->p, l->last)->next = n;
        } else {
            l->first = n;
        }
        l->last = n;
        l->count++;
    }
    if (l->last) {
        sg_dom_rec(c->p, l->last)->flags &= ~REC_LOOSE; /* what comes now comes later */
    }
}

/* Of the non-temporal stores of a line, those from first on, some reach S3. */
static void cut_nt(struct cut *c, struct line *l, unsigned first, unsigned end, uint64_t addr)
{
    unsigned n = end - first, some = !one_atom(c, first, n), kept = 2;

    if (c->domain != SG_PERSIST_WHOLE) {
        kept = sg_dom_cut_choose(c, 2 + (some || n > 1), addr, false);
        kept += kept && !some && n == 1;
    }
    if (kept == 1) {
        keep_some(c, first, n, addr);
    }
    for (unsigned i = first; i < end; i++) {
        c->keep[i] |= kept == 2;
    }
    l->wpq_count = 0;
    for (unsigned i = first; i < end; i++) {
        l->wpq_count += c->keep[i];
    }
    l->wpq_count += l->wpq_count ? first : 0;
}

/* What of a line is in S2' when the store buffer has drained as far as it does. */
static void cut_line_in_cpu(struct cut *c, struct line *l, struct extent *e, uint64_t off)
{
    uint64_t addr = e->base + off;
    unsigned count = sg_dom_cut_gather(c, l), end = 0, first;
    uint16_t in_wpq = l->wpq_count;

    while (end < count && !(c->rec[end]->flags & REC_SB)) {
        end++;
    }
    for (first = end; first && c->rec[first - 1]->flags & REC_WC;) {
        first--;
    }
    for (unsigned i = 0; i < first; i++) {
        c->keep[i] = true;
    }
    if (first < end) {
        cut_nt(c, l, first, end, addr);
    }
    l->wpq_count = SG_MAX(l->wpq_count, in_wpq);
    sg_dom_line_forget_nt(c->p, l);
    lose_in_cpu(c, l, count, end, addr);
    /* What arrives now comes to the line as it is without them. */
    memcpy(e->visible + off, e->media + off, SG_PERSIST_LINE);
    for (uint32_t n = l->first; n; n = sg_dom_rec(c->p, n)->next) {
        sg_dom_media_rec(e->visible + off, sg_dom_rec(c->p, n));
    }
}

void sg_dom_cut_cpus(struct cut *c)
{
    struct sg_persist *p = c->p;
    bool any = p->nt_lines || p->busy_cpus;

    for (unsigned i = 0; (i = sg_dom_next_busy(p, i)) < SG_PERSIST_VCPUS; i++) {
        cut_store_buffer(c, p->cpu[i]);
    }
    for (unsigned x = 0; any && x < p->extent_count; x++) {
        struct extent *e = &p->extent[x];

        SG_DOM_FOR_PAGES(e, page_no, 0, e->used ? e->size : 0) {
            for (uint64_t m = e->pages[page_no]->has_history; m; m &= m - 1) {
                unsigned i = __builtin_ctzll(m);
                struct line *l = sg_dom_line(p, e->pages[page_no], i);

                if (sg_dom_rec(p, l->last)->flags & REC_S2P) {
                    cut_line_in_cpu(c, l, e, page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE);
                }
            }
        }
    }
    sg_dom_cpu_clear(p);
}

static void add_point(struct cut *c, unsigned k, bool some, unsigned least)
{
    if (k >= least) {
        c->point[c->point_count++] = (struct point){ .k = k, .some = some };
    }
}

/* Fills c->point, ascending.  What is left of S2' by now has left the processor. */
static void permitted(struct cut *c, const struct line *l, unsigned count)
{
    unsigned least = c->domain >= SG_PERSIST_EADR  ? count
                     : c->domain == SG_PERSIST_ADR ? l->wpq_count
                                                   : 0;

    c->point_count = 0;
    add_point(c, 0, false, least);
    for (unsigned k = 0, n; k < count; k += n) {
        n = run_length(c, k, count);
        if (one_atom(c, k, n)) {
            n = 1;
        } else {
            add_point(c, k, true, least);
        }
        if (!(c->rec[k + n - 1]->flags & REC_GLUE)) {
            add_point(c, k + n, false, least);
        }
    }
    sg_assert(c->point_count);
}

unsigned sg_dom_cut_state(struct cut *c, const struct line *l, unsigned count, uint64_t addr)
{
    struct point state;
    unsigned kept = 0;

    permitted(c, l, count);
    state = c->point[sg_dom_cut_choose(c, c->point_count, addr, false)];
    for (unsigned i = 0; i < state.k; i++) {
        c->keep[i] = true;
    }
    if (state.some) {
        keep_some(c, state.k, run_length(c, state.k, count), addr);
    }
    for (unsigned i = 0; i < count; i++) {
        kept += c->keep[i];
    }
    return kept;
}
