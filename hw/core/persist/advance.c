/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the cache towards the media: S2 -> S3 -> S4.
 *
 * If the domain keeps S3, lines that enter S3 are written to the media at once: no outcome of a cut
 * can tell the difference, and a killed process leaves a correct media file.  Only domain NONE has
 * a real write-pending queue: the first wpq_count stores of a history, or the bit in_wpq of a line
 * without one.  The queue drains at any time, so a cut may find any older state of a line in S4;
 * what is in S3 matters to a deep flush only.
 *
 * The medium may refuse (read-only, worn out).  Then nothing of the line changes: it stays dirty
 * where it is, and the cause of the move reports failure.
 */
#include "persist/domain_impl.h"

void sg_dom_media_rec(uint8_t *media_line, const struct rec *r)
{
    uint8_t *at = media_line + r->atom * SG_PERSIST_ATOM;
    uint8_t atom[SG_PERSIST_ATOM];

    if (r->mask == 0xff) {
        memcpy(at, r->data, sizeof(atom));
        return;
    }
    memcpy(atom, at, sizeof(atom));
    for (unsigned i = 0; i < SG_PERSIST_ATOM; i++) {
        if (r->mask & (1u << i)) {
            atom[i] = r->data[i];
        }
    }
    memcpy(at, atom, sizeof(atom)); /* one store: the end of the process cannot tear it either */
}

size_t sg_dom_media_take(struct sg_persist *p, struct extent *e, size_t lines)
{
    if (e->faults.read_only) {
        return 0;
    }
    if (e->faults.wears_out) {
        lines = SG_MIN(lines, e->faults.lines_left);
        e->faults.lines_left -= lines;
    }
    p->lines_persisted += lines;
    return lines;
}

void sg_dom_refused(struct sg_persist *p, struct extent *e, uint64_t off)
{
    p->media_refusals++;
    sg_dom_log(p, SG_PERSIST_EV_REFUSED, NULL, e->base + off, SG_PERSIST_LINE, 0);
}

static bool goes_to_media(const struct sg_persist *p, enum sg_dom_target to)
{
    return to == SG_DOM_TO_S4 || p->config.domain != SG_PERSIST_NONE ||
           p->config.drain == SG_PERSIST_EAGER;
}

static void now_clean(struct sg_persist *p, struct extent *e, size_t page_no, uint64_t mask)
{
    struct page *g = e->pages[page_no];

    g->dirty &= ~mask;
    g->has_history &= ~mask;
    g->all_or_nothing &= ~mask;
    g->in_wpq &= ~mask;
    g->noted &= ~mask;
    if (!g->dirty) {
        sg_dom_page_free(p, e, page_no);
    }
}

bool sg_dom_advance_line(struct sg_persist *p, struct extent *e, size_t page_no, unsigned i,
                         unsigned k, enum sg_dom_target to)
{
    struct page *g = e->pages[page_no];
    struct line *l = sg_dom_line(p, g, i);
    uint64_t off = (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE;

    sg_assert(sg_dom_line_cut_point(p, l, k)); /* groups move as a whole */
    sg_dom_touch(&e->touched, page_no);
    if (k && l->nt_cpu) {
        sg_dom_line_leave_cpu(p, l, k);
    }
    if (k && !goes_to_media(p, to)) {
        sg_dom_line_to_wpq(p, l, k);
        return true;
    }
    if (k && !sg_dom_media_take(p, e, 1)) {
        sg_dom_refused(p, e, off);
        return false;
    }
    if (k == l->count && !p->config.cpu_tracking && sg_dom_line_adopt(p, e, page_no, i, 0)) {
        k = l->count; /* the line becomes clean */
    }
    for (unsigned done = 0; done < k; done++) {
        uint32_t n = l->first;
        struct rec *r = sg_dom_rec(p, n);

        sg_dom_media_rec(e->media + off, r);
        l->first = r->next;
        sg_dom_pool_put(&p->recs, n);
    }
    l->count -= k;
    l->wpq_count -= SG_MIN(l->wpq_count, k);
    l->walked -= SG_MIN(l->walked, k);
    if (k) {
        sg_dom_heal(p, e->base + off, SG_PERSIST_LINE);
    }
    if (!l->count) {
        sg_dom_pool_put(&p->lines, g->ref[i]);
        now_clean(p, e, page_no, 1ull << i);
    }
    return true;
}

/* Lines without a history, by runs of neighbours. */
static bool no_history_to_media(struct sg_persist *p, struct extent *e, size_t page_no,
                                uint64_t mask)
{
    while (mask) {
        unsigned i = __builtin_ctzll(mask);
        uint64_t rest = ~(mask >> i), run;
        unsigned n = rest ? (unsigned)__builtin_ctzll(rest) : 64;
        uint64_t off = (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE;
        size_t taken;

        n = SG_MIN(n, SG_DOM_PAGE_LINES - i);
        taken = sg_dom_media_take(p, e, n);
        if (taken) {
            run = (~0ull >> (64 - taken)) << i;
            memcpy(e->media + off, e->visible + off, taken * SG_PERSIST_LINE);
            sg_dom_heal(p, e->base + off, taken * SG_PERSIST_LINE);
            mask &= ~run;
            now_clean(p, e, page_no, run);
        }
        if (taken < n) {
            sg_dom_refused(p, e, off + taken * SG_PERSIST_LINE);
            return false;
        }
    }
    return true;
}

bool sg_dom_advance_page(struct sg_persist *p, struct extent *e, size_t page_no, uint64_t mask,
                         enum sg_dom_target to, bool all)
{
    struct page *g = e->pages[page_no];
    uint64_t no_history, has_history;
    bool good = true;

    if (!g) {
        return true;
    }
    sg_dom_touch(&e->touched, page_no);
    no_history = mask & g->dirty & ~g->has_history;
    has_history = mask & g->has_history;
    if (no_history && goes_to_media(p, to)) {
        good = no_history_to_media(p, e, page_no, no_history);
    } else {
        g->in_wpq |= no_history;
    }
    for (; has_history; has_history &= has_history - 1) {
        unsigned i = __builtin_ctzll(has_history);
        struct line *l = sg_dom_line(p, e->pages[page_no], i);
        unsigned k = all ? l->count : sg_dom_line_cached(p, l);

        good &= sg_dom_advance_line(p, e, page_no, i, k, to);
    }
    return good;
}

bool sg_dom_advance_range(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len,
                          enum sg_dom_target to, bool all)
{
    bool good = true;

    SG_DOM_FOR_PAGES(e, page_no, off, len) {
        good &= sg_dom_advance_page(p, e, page_no, sg_dom_page_mask(page_no, off, len), to, all);
    }
    return good;
}

static bool advance_noted_page(struct sg_persist *p, struct extent *e, size_t page_no,
                               uint64_t lines, enum sg_dom_target to,
                               const struct sg_persist_source *source,
                               const struct sg_persist_flush_note *note)
{
    const struct page *g = e->pages[page_no];
    uint64_t has_history = g->has_history & lines, without = 0;
    bool good = true;

    for (uint64_t m = g->dirty & ~g->has_history & lines; m; m &= m - 1) {
        uint64_t seq = sg_dom_full_seq(p, g->ref[__builtin_ctzll(m)]);

        without |= sg_dom_was_noted(p, seq, source, note) ? m & -m : 0;
    }
    for (; has_history; has_history &= has_history - 1) {
        unsigned i = __builtin_ctzll(has_history);
        unsigned k = sg_dom_line_noted(p, sg_dom_line(p, e->pages[page_no], i), source, note);

        good &= !k || sg_dom_advance_line(p, e, page_no, i, k, to);
    }
    return sg_dom_advance_page(p, e, page_no, without, to, false) && good;
}

bool sg_dom_advance_noted(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len,
                          enum sg_dom_target to, const struct sg_persist_source *source,
                          const struct sg_persist_flush_note *note)
{
    bool good = true;

    SG_DOM_FOR_PAGES(e, page_no, off, len) {
        good &= advance_noted_page(p, e, page_no, sg_dom_page_mask(page_no, off, len), to, source,
                                   note);
    }
    return good;
}

static bool drain_page(struct sg_persist *p, struct extent *e, size_t page_no, uint64_t mask)
{
    struct page *g = e->pages[page_no];
    uint64_t has_history = g->has_history & mask;
    bool good;

    sg_dom_touch(&e->touched, page_no);
    good = no_history_to_media(p, e, page_no, g->in_wpq & mask);
    for (; has_history; has_history &= has_history - 1) {
        unsigned i = __builtin_ctzll(has_history);
        unsigned k = sg_dom_line(p, e->pages[page_no], i)->wpq_count;

        if (k) {
            good &= sg_dom_advance_line(p, e, page_no, i, k, SG_DOM_TO_S4);
        }
    }
    return good;
}

bool sg_dom_drain_range(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len)
{
    bool good = true;

    SG_DOM_FOR_PAGES(e, page_no, off, len) {
        good &= drain_page(p, e, page_no, sg_dom_page_mask(page_no, off, len));
    }
    return good;
}

bool sg_dom_advance_upto(struct sg_persist *p, uint64_t addr, uint64_t seq, unsigned vcpu,
                         bool flush)
{
    uint64_t off = 0;
    struct extent *e = sg_dom_extent(p, addr, SG_PERSIST_LINE, &off);
    size_t page_no = off / SG_PERSIST_PAGE;
    unsigned i = off % SG_PERSIST_PAGE / SG_PERSIST_LINE;
    struct page *g = e ? e->pages[page_no] : NULL;
    struct line *l;
    unsigned k;

    if (!g || !(g->dirty & 1ull << i)) {
        return true;
    }
    if (!(g->has_history & 1ull << i)) {
        if (sg_dom_full_seq(p, g->ref[i]) > seq) {
            return true; /* all of it is younger */
        }
        return sg_dom_advance_page(p, e, page_no, 1ull << i, SG_DOM_TO_S3, true);
    }
    l = sg_dom_line(p, g, i);
    k = flush ? sg_dom_line_flushed(p, l, seq, vcpu) : sg_dom_line_upto(p, l, seq);
    if (l->nt_cpu && l->nt_cpu != vcpu + 1) {
        k = SG_MIN(k, sg_dom_line_cached(p, l));
    }
    if (l->nt_cpu || p->busy_cpus) {
        sg_dom_line_leave_cpu(p, l, k);
    }
    return sg_dom_advance_line(p, e, page_no, i, k, SG_DOM_TO_S3);
}

void sg_dom_empty_wpq(struct sg_persist *p, struct extent *e)
{
    SG_DOM_FOR_PAGES(e, page_no, 0, e->size) {
        struct page *g = e->pages[page_no];

        sg_dom_touch(&e->touched, page_no);
        g->in_wpq = 0;
        for (uint64_t m = g->has_history; m; m &= m - 1) {
            struct line *l = sg_dom_line(p, g, __builtin_ctzll(m));

            l->wpq_count = 0;
            sg_dom_line_begin_walks(l);
        }
    }
}

/* ---- Spontaneous moves ---- */

/* Any dirty page, of any extent; NULL: none. */
static struct extent *random_page(struct sg_persist *p, size_t *page_no)
{
    unsigned first = sg_dom_below(&p->rng, SG_MAX(p->extent_count, 1u));

    for (unsigned n = 0; n < p->extent_count; n++) {
        struct extent *e = &p->extent[(first + n) % p->extent_count];

        if (!e->used) {
            continue;
        }
        *page_no = sg_dom_page_next(e, sg_dom_below(&p->rng, e->page_count));
        if (*page_no == e->page_count) {
            *page_no = sg_dom_page_next(e, 0);
        }
        if (*page_no < e->page_count) {
            return e;
        }
    }
    return NULL;
}

static uint64_t random_bit(struct sg_persist *p, uint64_t mask)
{
    unsigned skip = sg_dom_below(&p->rng, __builtin_popcountll(mask));

    while (skip--) {
        mask &= mask - 1;
    }
    return mask & -mask;
}

static void move_random(struct sg_persist *p, unsigned event)
{
    size_t page_no;
    struct extent *e = random_page(p, &page_no);
    uint64_t bit;

    if (!e) {
        return;
    }
    bit = random_bit(p, e->pages[page_no]->dirty);
    sg_dom_log(p, event, NULL,
               e->base + page_no * SG_PERSIST_PAGE + __builtin_ctzll(bit) * SG_PERSIST_LINE,
               SG_PERSIST_LINE, 0);
    if (event == SG_PERSIST_EV_EVICTED) {
        sg_dom_advance_page(p, e, page_no, bit, SG_DOM_TO_S3, false);
    } else {
        drain_page(p, e, page_no, bit);
    }
}

void sg_dom_pace(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len)
{
    if (p->config.eviction == SG_PERSIST_EAGER) {
        sg_dom_advance_range(p, e, off, len, SG_DOM_TO_S3, false);
    } else if (p->config.eviction == SG_PERSIST_RANDOM &&
               sg_dom_below(&p->rng, p->config.one_in) == 0) {
        move_random(p, SG_PERSIST_EV_EVICTED);
    }
    if (p->config.domain == SG_PERSIST_NONE && p->config.drain == SG_PERSIST_RANDOM &&
        sg_dom_below(&p->rng, p->config.one_in) == 0) {
        move_random(p, SG_PERSIST_EV_DRAINED);
    }
}
