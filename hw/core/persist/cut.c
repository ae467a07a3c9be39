/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cut: decides what survives of everything between the adapter and the media.
 *
 *            NONE                      ADR        EADR                  WHOLE
 *   S0       a prefix per connection   same       same                  same
 *   S1       a prefix per device       same       same                  all
 *   S2'      store buffer: a prefix per vCPU; write-combining: any      all
 *   S2       per line a prefix         same       all                   all
 *   S3       as S2                     (media)    (media)               (media)
 *
 * In this order.  First processors stop: what has left them is in S2, or in S3 if it was
 * non-temporal; the rest is gone.  Then the surviving part of S1 arrives, and of S0 what left it at
 * the last moment; it becomes S2 or S3, and shares its fate from there.  Then each line separately
 * gets one of its permitted states, which is written to the media:
 *
 *   state of a line = media content plus its first k stores, k a cut point, and some of the run
 *   that follows them (line.c), where
 *   k = all                    if the domain keeps S2
 *   k >= wpq_count             if it keeps S3
 *
 * Each choice among what is permitted is a question (struct sg_persist_choice).  The policy only
 * answers it: the least, the most, or random; or somebody else does, for all images one by one.
 * Equal pages of lines without a history, for which the policy leaves no choice, are handled as a
 * whole.
 */
#include "persist/cut_impl.h"

/* The source of changes by untracked CPUs. */
static const struct sg_persist_source untracked_cpu = {
    .agent = SG_PERSIST_CPU,
    .unit = UINT16_MAX,
};

bool sg_dom_cut_in_range(const struct cut *c, uint64_t addr, uint64_t len)
{
    return c->policy->len && addr < c->policy->addr + c->policy->len &&
           c->policy->addr < addr + len;
}

/* The policies: each is a way to answer. */
static uint32_t answer(struct cut *c, const struct sg_persist_choice *q)
{
    switch (c->policy->outcome) {
    case SG_PERSIST_LOSE_ALL:
        return 0;
    case SG_PERSIST_KEEP_ALL:
        return q->n - 1;
    case SG_PERSIST_WORST_FOR:
        return q->inside && c->policy->seed ? sg_dom_below(&c->rng, q->n - !q->part) : q->worst;
    default: /* prefer the extremes */
        switch (sg_dom_random(&c->rng) >> 62) {
        case 0:
            return 0;
        case 1:
            return q->n - 1;
        default:
            return sg_dom_below(&c->rng, q->n);
        }
    }
}

uint32_t sg_dom_cut_ask(struct cut *c, const struct sg_persist_choice *q)
{
    uint32_t taken;

    if (q->n == 1) {
        return 0;
    }
    taken = c->policy->choose ? c->policy->choose(c->policy->opaque, q) : answer(c, q);
    sg_assert(taken < q->n);
    return taken;
}

void sg_dom_cut_lost(struct cut *c, const struct sg_persist_lost *lost)
{
    if (c->policy->choose && c->policy->lose) {
        struct sg_persist_lost input = *lost;

        input.seq = sg_dom_origin(c->p, lost->seq);
        c->policy->lose(c->policy->opaque, &input);
    }
}

static void line_lost(struct cut *c, uint64_t addr, uint64_t seq)
{
    sg_dom_cut_lost(c, &(struct sg_persist_lost){
                           .what = SG_PERSIST_CHOICE_LINE,
                           .addr = addr,
                           .seq = seq,
                       });
}

uint32_t sg_dom_cut_choose(struct cut *c, uint32_t n, uint64_t addr, bool part)
{
    bool inside = sg_dom_cut_in_range(c, addr, SG_PERSIST_LINE);

    return sg_dom_cut_ask(c, &(struct sg_persist_choice){
                                 .what = SG_PERSIST_CHOICE_LINE,
                                 .n = n,
                                 .worst = inside ? 0 : n - 1,
                                 .inside = inside,
                                 .part = part,
                                 .addr = addr,
                             });
}

/* ---- Lines ---- */

static void line_row(struct cut *c, struct extent *e, uint64_t off, unsigned lines,
                     struct sg_persist_loss *row, uint32_t seq_low)
{
    row->addr = e->base + off;
    row->len = (uint64_t)lines * SG_PERSIST_LINE;
    row->lines = lines;
    row->extent = sg_dom_extent_number(c->p, e);
    c->report->count[row->stage][row->fate] += lines;
    sg_dom_report_add(c->p, c->report, row, seq_low);
}

static uint8_t stage_of(const struct sg_persist *p, const struct line *l)
{
    if (l->lost || (l->last && sg_dom_rec(p, l->last)->flags & REC_S2P)) {
        return SG_PERSIST_SB;
    }
    return l->wpq_count == l->count ? SG_PERSIST_S3 : SG_PERSIST_S2;
}

static void cut_history(struct cut *c, struct extent *e, size_t page_no, unsigned i)
{
    struct sg_persist *p = c->p;
    bool untracked = !p->config.cpu_tracking && sg_dom_line_adopt(p, e, page_no, i, 0);
    const struct line *l = sg_dom_line(p, e->pages[page_no], i);
    uint64_t off = (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE;
    unsigned count = sg_dom_cut_gather(c, l), kept;
    struct sg_persist_loss row = {
        .stage = stage_of(p, l),
        .stores = l->count + l->lost,
    };

    if (untracked) {
        row.source = untracked_cpu;
    }
    if (untracked && p->config.untracked == SG_PERSIST_UNTRACKED_KEEP) {
        memset(c->keep, true, count); /* flushed by its processor, together with the line */
        kept = count;
    } else {
        kept = sg_dom_cut_state(c, l, count, e->base + off);
    }
    row.fate = kept == 0           ? SG_PERSIST_LOST
               : kept < row.stores ? SG_PERSIST_PARTLY
                                   : SG_PERSIST_KEPT;
    if (kept && !sg_dom_media_take(p, e, 1)) {
        row.fate = SG_PERSIST_REFUSED;
        kept = 0;
    }
    row.stores_kept = kept;
    for (unsigned k = 0; k < count; k++) {
        if (kept && c->keep[k]) {
            sg_dom_media_rec(e->media + off, c->rec[k]);
        } else {
            line_lost(c, e->base + off, c->rec[k]->seq);
        }
    }
    if (kept) {
        sg_dom_heal(p, e->base + off, SG_PERSIST_LINE);
    }
    line_row(c, e, off, 1, &row, count ? c->rec[count - 1]->seq : l->lost_seq);
}

static void cut_without_history(struct cut *c, struct extent *e, size_t page_no, unsigned i)
{
    struct page *g = e->pages[page_no];
    uint64_t off = (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE, bit = 1ull << i;
    struct sg_persist_loss row = {
        .stage = g->in_wpq & bit ? SG_PERSIST_S3 : SG_PERSIST_S2,
        .stores = SG_DOM_LINE_ATOMS,
    };
    unsigned atoms = SG_DOM_LINE_ATOMS;
    bool written;

    if (c->domain <= SG_PERSIST_ADR) {
        atoms = g->all_or_nothing & bit
                    ? sg_dom_cut_choose(c, 2, e->base + off, false) * SG_DOM_LINE_ATOMS
                    : sg_dom_cut_choose(c, SG_DOM_LINE_ATOMS + 1, e->base + off, false);
    }
    row.fate = atoms == 0                  ? SG_PERSIST_LOST
               : atoms < SG_DOM_LINE_ATOMS ? SG_PERSIST_PARTLY
                                           : SG_PERSIST_KEPT;
    if (atoms && !sg_dom_media_take(c->p, e, 1)) {
        row.fate = SG_PERSIST_REFUSED;
        atoms = 0;
    }
    row.stores_kept = atoms;
    if (atoms < SG_DOM_LINE_ATOMS) {
        line_lost(c, e->base + off, sg_dom_full_seq(c->p, g->ref[i]));
    }
    /* Atoms before the first that was stored are as they were: nothing was written. */
    written = atoms == SG_DOM_LINE_ATOMS ||
              memcmp(e->media + off, e->visible + off, atoms * SG_PERSIST_ATOM) != 0;
    if (written) {
        memcpy(e->media + off, e->visible + off, atoms * SG_PERSIST_ATOM);
        sg_dom_heal(c->p, e->base + off, SG_PERSIST_LINE);
    }
    line_row(c, e, off, 1, &row, g->ref[i]);
}

/* -1: the policy leaves no choice and loses; 1: keeps; 0: line by line. */
static int foregone(const struct cut *c, uint64_t addr, uint64_t len)
{
    const struct sg_persist_policy *policy = c->policy;
    bool touched = sg_dom_cut_in_range(c, addr, len);

    if (policy->choose && c->domain <= SG_PERSIST_ADR) {
        return 0;
    }
    if (c->domain >= SG_PERSIST_EADR || policy->outcome == SG_PERSIST_KEEP_ALL) {
        return 1;
    }
    switch (policy->outcome) {
    case SG_PERSIST_LOSE_ALL:
        return -1;
    case SG_PERSIST_WORST_FOR:
        if (!touched) {
            return 1;
        }
        return addr >= policy->addr && addr + len <= policy->addr + policy->len && !policy->seed
                   ? -1
                   : 0;
    default:
        return 0;
    }
}

/* Rows of lines without a history: all of one page, and of one fate. */
static void rows_without_history(struct cut *c, struct extent *e, size_t page_no,
                                 const struct page *g, uint64_t lines, uint8_t fate)
{
    while (lines) {
        unsigned i = __builtin_ctzll(lines), n = 1;
        bool in_wpq = g->in_wpq >> i & 1;
        struct sg_persist_loss row = {
            .stage = in_wpq ? SG_PERSIST_S3 : SG_PERSIST_S2,
            .fate = fate,
        };

        while (i + n < SG_DOM_PAGE_LINES && lines >> (i + n) & 1 && g->ref[i + n] == g->ref[i] &&
               (g->in_wpq >> (i + n) & 1) == in_wpq) {
            n++;
        }
        row.stores = n * SG_DOM_LINE_ATOMS;
        row.stores_kept = fate == SG_PERSIST_KEPT ? row.stores : 0;
        line_row(c, e, (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE, n, &row,
                 g->ref[i]);
        lines &= ~((n == 64 ? ~0ull : (1ull << n) - 1) << i);
    }
}

static void cut_page(struct cut *c, struct extent *e, size_t page_no)
{
    struct page before = *e->pages[page_no];
    uint64_t start = (uint64_t)page_no * SG_PERSIST_PAGE, left = 0;
    int fate = before.has_history ? 0 : foregone(c, e->base + start, SG_PERSIST_PAGE);

    sg_dom_touch(&e->touched, page_no);
    if (fate < 0) {
        rows_without_history(c, e, page_no, &before, before.dirty, SG_PERSIST_LOST);
    } else if (fate > 0) {
        sg_dom_advance_page(c->p, e, page_no, before.dirty, SG_DOM_TO_S4, true);
        left = e->pages[page_no] ? e->pages[page_no]->dirty : 0;
        rows_without_history(c, e, page_no, &before, before.dirty & ~left, SG_PERSIST_KEPT);
        rows_without_history(c, e, page_no, &before, left, SG_PERSIST_REFUSED);
    } else {
        for (uint64_t m = before.dirty; m; m &= m - 1) {
            unsigned i = __builtin_ctzll(m);

            if (before.has_history >> i & 1) {
                cut_history(c, e, page_no, i);
            } else {
                cut_without_history(c, e, page_no, i);
            }
        }
    }
}

/* ---- Changes by untracked CPUs ---- */

/* Lines that share their fate; a single line if the medium may refuse. */
static void cut_untracked_lines(struct cut *c, struct extent *e, uint64_t off, uint32_t lines,
                                bool keep)
{
    uint64_t len = (uint64_t)lines * SG_PERSIST_LINE;
    struct sg_persist_loss row = {
        .stage = SG_PERSIST_S2,
        .fate = keep ? SG_PERSIST_KEPT : SG_PERSIST_LOST,
        .addr = e->base + off,
        .len = len,
        .lines = lines,
        .stores = lines * SG_DOM_LINE_ATOMS,
        .extent = sg_dom_extent_number(c->p, e),
        .source = untracked_cpu,
    };

    if (keep && !sg_dom_media_take(c->p, e, lines)) {
        row.fate = SG_PERSIST_REFUSED;
    } else if (keep) {
        sg_dom_touch_range(&e->touched, off, len);
        memcpy(e->media + off, e->visible + off, len);
        sg_dom_heal(c->p, e->base + off, len);
        row.stores_kept = row.stores;
    }
    c->report->untracked[row.fate] += lines;
    sg_dom_report_add(c->p, c->report, &row, 0);
}

static void cut_untracked(struct cut *c, struct extent *e)
{
    bool foregone_loss = c->policy->outcome == SG_PERSIST_LOSE_ALL && !c->policy->choose &&
                         c->domain <= SG_PERSIST_ADR &&
                         c->p->config.untracked == SG_PERSIST_UNTRACKED_AT_RISK;
    bool keep = c->domain >= SG_PERSIST_EADR ||
                (c->policy->outcome == SG_PERSIST_KEEP_ALL && !c->policy->choose) ||
                c->p->config.untracked == SG_PERSIST_UNTRACKED_KEEP;
    bool whole_runs = keep && !e->faults.read_only && !e->faults.wears_out;
    uint64_t off = 0, len, n;

    if (c->p->config.cpu_tracking) {
        c->report->untracked_counted = true;
        return;
    }
    if (foregone_loss) {
        return; /* nothing to copy, and counting would cost a comparison of everything */
    }
    c->report->untracked_counted = true;
    while ((len = sg_dom_untracked_next(c->p, e, &off, e->size)) != 0) {
        for (; len; len -= n, off += n) {
            n = whole_runs ? len : SG_PERSIST_LINE;
            cut_untracked_lines(c, e, off, n / SG_PERSIST_LINE,
                                keep || sg_dom_cut_choose(c, 2, e->base + off, false));
        }
    }
}

/*
 * If all changes by untracked CPUs survive, there is nothing to decide about them, and copying
 * them takes more time than a cut has: they stay in visible memory.  Pages with lines of adapters
 * are handled as a whole, in both memories.
 */
static bool all_stays(const struct cut *c)
{
    const struct sg_persist *p = c->p;

    for (unsigned i = 0; i < p->extent_count; i++) {
        if (p->extent[i].faults.read_only || p->extent[i].faults.wears_out) {
            return false;
        }
    }
    return p->ops && p->ops->may_stay && !p->config.cpu_tracking &&
           (c->domain >= SG_PERSIST_EADR || p->config.untracked == SG_PERSIST_UNTRACKED_KEEP);
}

static void cut_page_on_both_sides(struct cut *c, struct extent *e, size_t page_no)
{
    uint64_t start = (uint64_t)page_no * SG_PERSIST_PAGE;
    uint64_t end = SG_MIN(start + SG_PERSIST_PAGE, e->size);
    uint64_t dirty = e->pages[page_no]->dirty;

    for (uint64_t off = start; off < end; off += SG_PERSIST_LINE) {
        if (!(dirty >> ((off - start) / SG_PERSIST_LINE) & 1) &&
            memcmp(e->visible + off, e->media + off, SG_PERSIST_LINE)) {
            cut_untracked_lines(c, e, off, 1, true);
        }
    }
    cut_page(c, e, page_no);
    memcpy(e->visible + start, e->media + start, end - start);
}

static void cut_extent(struct cut *c, struct extent *e)
{
    if (!c->report->stays) {
        cut_untracked(c, e);
    }
    SG_DOM_FOR_PAGES(e, page_no, 0, e->size) {
        if (c->report->stays) {
            cut_page_on_both_sides(c, e, page_no);
        } else {
            cut_page(c, e, page_no);
        }
    }
}

static void log_cut(struct sg_persist *p, const struct sg_persist_policy *policy)
{
    struct sg_persist_event *e;

    sg_dom_log(p, SG_PERSIST_EV_CUT, NULL, policy->addr, 0, policy->outcome);
    e = sg_dom_log_last(p);
    e->at = policy->len;
    e->data = policy->seed;
}

struct sg_persist_report *sg_persist_cut(struct sg_persist *p,
                                         const struct sg_persist_policy *policy)
{
    struct cut *c = g_new0(struct cut, 1);
    struct sg_persist_report *report;

    sg_assert(policy->outcome < SG_PERSIST_OUTCOMES);
    *c = (struct cut){
        .p = p,
        .policy = policy,
        .rng = policy->seed,
        .domain = p->config.domain,
        .report = sg_dom_report_new(p, policy),
    };
    log_cut(p, policy);
    p->frozen = true;
    sg_dom_cut_cpus(c);
    sg_dom_cut_posted(c);
    report = c->report;
    report->stays = all_stays(c);
    for (unsigned i = 0; i < p->extent_count; i++) {
        if (p->extent[i].used) {
            cut_extent(c, &p->extent[i]);
        }
    }
    for (unsigned i = 0; i < p->extent_count; i++) {
        if (p->extent[i].used) {
            sg_dom_extent_clear(p, &p->extent[i]);
        }
    }
    sg_dom_place_clear(p);
    sg_dom_cpu_clear(p);
    sg_dom_pool_fini(&p->pages);
    sg_dom_pool_fini(&p->lines);
    sg_dom_pool_fini(&p->recs);
    p->cut_done = true;
    g_free(c);
    return report;
}

void sg_persist_restart(struct sg_persist *p)
{
    if (!p->cut_done) {
        return;
    }
    sg_dom_log(p, SG_PERSIST_EV_RESTART, NULL, 0, 0, 0);
    p->frozen = p->cut_done = false;
    p->acknowledged = 0;
    if (p->armed_hit) {
        p->arm.kind = SG_PERSIST_ARM_OFF;
        p->armed_hit = false;
    }
}
