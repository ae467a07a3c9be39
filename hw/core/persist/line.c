/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stores of one line.
 *
 * A dirty line is in one of two forms.
 *
 * *With a history* (the page's bit has_history): a list of stores (struct rec), one per atom and
 * event, in the order in which they reached the line.  The media's content plus the first k of
 * them, for k from 0 to all, are the states that the line passes through; the last state is the
 * visible one.  A cut may leave the line in any state that ends at a cut point: a store without
 * REC_GLUE.
 *
 * *Without a history*: no list.  The states follow from the two memories: the atoms that differ
 * became visible in ascending order (one DMA write, or several that go upwards), or, with the bit
 * all_or_nothing, in an unknown order, so that a cut keeps all of the line or nothing.  This is the
 * form of nearly all that an adapter writes: it costs a bit and a word per line and no copy.
 *
 * A line gets a history when a second store needs a state in between: one to an atom that is not
 * above all that changed, one after a CLWB of the line (the bit noted), one of a CPU or an Atomic.
 * The states before such a store follow from the two memories only while it is not yet visible, so
 * a store that is reported after the fact has to be announced (sg_dom_tell_apart()), or is merged.
 *
 * When a history grows beyond limits.line_stores its oldest stores are merged: they are glued
 * together, and those to the same atom become one.  Glue removes cut points and moves none, so
 * merging removes permitted outcomes and adds no forbidden one.  When all histories together have
 * limits.stores, each is limited to 8.  A line that DMA overwrites as a whole again and again loses
 * its history: its state before the last version is the media's content or nothing.
 *
 * While CPUs are not tracked, one may have changed a line with a history since, and its visible
 * state is a different one.  Code that moves all of such a line, or chooses among its states,
 * first adopts that difference as one last group.
 *
 * Order of events in a history: REC_S2P marks a suffix (the stores in the cache came before), and
 * the first wpq_count stores are in the write-pending queue.
 *
 * Non-temporal stores leave their write-combining buffer atom by atom in any order (stores to one
 * atom in theirs).  REC_LOOSE links those that were there together: a *run*.  It stays when they
 * have left, because some may have left, and gone on, before the others.
 */
#include "persist/domain_impl.h"

static struct rec *append(struct sg_persist *p, struct line *l, unsigned atom, uint8_t mask,
                          const uint8_t data[SG_PERSIST_ATOM], uint64_t seq, uint8_t flags)
{
    uint32_t n = sg_dom_pool_get(&p->recs);
    struct rec *r = sg_dom_rec(p, n);

    *r = (struct rec){ .seq = seq, .atom = atom, .mask = mask, .flags = flags };
    memcpy(r->data, data, SG_PERSIST_ATOM);
    if (l->last) {
        struct rec *last = sg_dom_rec(p, l->last);

        last->next = n;
        last->flags |= last->flags & flags & REC_WC ? REC_LOOSE : 0;
    } else {
        l->first = n;
    }
    l->last = n;
    l->count++;
    return r;
}

/* Merges the octets of r into an older store to the same atom. */
static void overlay(struct rec *old, const struct rec *r)
{
    for (unsigned i = 0; i < SG_PERSIST_ATOM; i++) {
        if (r->mask & (1u << i)) {
            old->data[i] = r->data[i];
        }
    }
    old->mask |= r->mask;
}

/* Makes one group, with at most one store per atom, of the first groups of stores. */
static void merge_head(struct sg_persist *p, struct line *l, unsigned groups)
{
    uint32_t slot[SG_DOM_LINE_ATOMS] = { 0 }, prev = 0, next;
    uint8_t buffered = REC_S2P;
    unsigned kept = 0, taken = 0;

    for (uint32_t n = l->first; n && groups; n = next, taken++) {
        struct rec *r = sg_dom_rec(p, n);

        next = r->next;
        groups -= !(r->flags & REC_GLUE);
        buffered &= r->flags;
        if (p->limits.exact) {
            l->merged = SG_MAX(l->merged, sg_dom_origin(p, r->seq));
        }
        if (slot[r->atom]) {
            overlay(sg_dom_rec(p, slot[r->atom]), r);
            sg_dom_rec(p, prev)->next = next;
            if (!next) {
                l->last = prev;
            }
            l->count--;
            sg_dom_pool_put(&p->recs, n);
        } else {
            slot[r->atom] = n;
            prev = n;
            kept++;
        }
    }
    sg_dom_line_begin_walks(l);
    if (l->wpq_count) {
        l->wpq_count = kept + (l->wpq_count > taken ? l->wpq_count - taken : 0);
    }
    for (uint32_t n = l->first, i = 0; i < kept; i++, n = sg_dom_rec(p, n)->next) {
        sg_dom_rec(p, n)->flags = buffered | REC_MERGED | (i + 1 < kept ? REC_GLUE : 0);
    }
}

/* Merges many groups at a time, so that endless stores to one line have a low cost each. */
static unsigned line_limit(const struct sg_persist *p, unsigned more)
{
    return p->recs.live + more > p->limits.stores ? SG_DOM_LINE_ATOMS : p->limits.line_stores;
}

static void bound(struct sg_persist *p, struct line *l)
{
    unsigned limit = line_limit(p, 0);

    if (l->count > limit) {
        merge_head(p, l, 1);
        p->merged++;
    }
    while (l->count > limit) {
        merge_head(p, l, 2 + limit / 4); /* extra room, so that the next stores need no merge */
    }
}

/* May a store more cause a merge?  A dirty line without a history gets one first. */
static bool is_full(const struct sg_persist *p, const struct page *g, unsigned i)
{
    unsigned count = g->has_history >> i & 1 ? sg_dom_line(p, g, i)->count : SG_DOM_LINE_ATOMS;

    return g->dirty >> i & 1 && count + SG_DOM_LINE_ATOMS > line_limit(p, 2 * SG_DOM_LINE_ATOMS);
}

/*
 * Stores in S2' cannot be merged: if the next store to this line may cause a merge, they leave
 * first.  A store buffer is a FIFO, so all of it drains; and also if the store will be absorbed in
 * a line without a history.  This may change any line.
 */
static void make_room(struct sg_persist *p, struct extent *e, size_t page_no, unsigned i,
                      bool written)
{
    const struct page *g = e->pages[page_no];
    bool absorbed = g && written && (g->dirty & ~g->has_history) >> i & 1;

    if (g && (absorbed || is_full(p, g, i))) {
        p->merged += absorbed || p->busy_cpus || p->nt_lines;
        p->shared += absorbed;
        sg_dom_others_drain(p, -1, SG_DOM_ANYBODY);
        sg_dom_others_leave(p, e, (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE, 1, -1);
    }
}

/* Drops a line's history.  Visible memory has, or gets, the newest content. */
static void collapse(struct sg_persist *p, struct page *g, unsigned i)
{
    struct line *l = sg_dom_line(p, g, i);
    uint64_t bit = 1ull << i;
    uint32_t line = g->ref[i];

    g->ref[i] = sg_dom_rec(p, l->first)->seq;
    g->has_history &= ~bit;
    g->all_or_nothing |= bit;
    g->in_wpq |= l->wpq_count ? bit : 0; /* the rest joins what is in S3 */
    for (uint32_t n = l->first, next; n; n = next) {
        next = sg_dom_rec(p, n)->next;
        sg_dom_pool_put(&p->recs, n);
    }
    sg_dom_line_forget_nt(p, l);
    sg_dom_pool_put(&p->lines, line);
}

static struct line *new_line(struct sg_persist *p, struct page *g, unsigned i)
{
    uint32_t n = sg_dom_pool_get(&p->lines);
    struct line *l = sg_dom_pool_at(&p->lines, n);

    *l = (struct line){ 0 };
    g->dirty |= 1ull << i;
    g->has_history |= 1ull << i;
    g->noted &= ~(1ull << i);
    g->ref[i] = n;
    return l;
}

struct line *sg_dom_line_begin_history(struct sg_persist *p, struct extent *e, size_t page_no,
                                       unsigned i, const uint8_t *pre)
{
    struct page *g = e->pages[page_no];
    const uint8_t *media = e->media + (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE;
    uint64_t seq = sg_dom_full_seq(p, g->ref[i]), bit = 1ull << i;
    bool all_or_nothing = g->all_or_nothing & bit, in_wpq = g->in_wpq & bit;
    struct line *l = new_line(p, g, i);

    sg_dom_touch(&e->touched, page_no);
    g->all_or_nothing &= ~bit;
    g->in_wpq &= ~bit;
    for (unsigned a = 0; a < SG_DOM_LINE_ATOMS; a++) {
        unsigned at = a * SG_PERSIST_ATOM;

        if (memcmp(pre + at, media + at, SG_PERSIST_ATOM) != 0) {
            append(p, l, a, 0xff, pre + at, seq, all_or_nothing ? REC_GLUE : 0);
        }
    }
    if (l->last) {
        sg_dom_rec(p, l->last)->flags &= ~REC_GLUE;
    } else {
        append(p, l, 0, 0xff, pre, seq, 0); /* no history is empty */
    }
    l->wpq_count = in_wpq ? l->count : 0;
    return l;
}

static void tell_page_apart(struct sg_persist *p, struct extent *e, size_t page_no, uint64_t off,
                            uint64_t len)
{
    const struct page *g = e->pages[page_no];
    uint64_t m = g ? g->dirty & ~g->has_history : 0;

    for (m = m ? m & sg_dom_page_mask(page_no, off, len) : 0; m; m &= m - 1) {
        unsigned i = __builtin_ctzll(m);

        sg_dom_line_begin_history(p, e, page_no, i,
                                  e->visible + page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE);
    }
}

/* Of a CPU's store, mostly: then a search for dirty pages would cost more than all else. */
void sg_dom_tell_apart(struct sg_persist *p, struct extent *e, uint64_t off, uint64_t len)
{
    size_t first = off / SG_PERSIST_PAGE;

    if (first == (off + len - 1) / SG_PERSIST_PAGE) {
        tell_page_apart(p, e, first, off, len);
        return;
    }
    SG_DOM_FOR_PAGES(e, page_no, off, len) {
        tell_page_apart(p, e, page_no, off, len);
    }
}

/* The line's content was overwritten before the store was reported: nothing in between is known. */
static void absorb_written(struct sg_persist *p, struct extent *e, size_t page_no, unsigned i)
{
    struct page *g = e->pages[page_no];
    uint64_t off = (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE;

    /*
     * The stores keep the number of the older event: a CLWB that came before this store must
     * still find them.
     */
    g->all_or_nothing |= 1ull << i;
    if (memcmp(e->visible + off, e->media + off, SG_PERSIST_LINE) != 0) {
        sg_dom_line_begin_history(p, e, page_no, i, e->visible + off);
    }
}

void sg_dom_line_store(struct sg_persist *p, struct extent *e, size_t page_no, unsigned i,
                       const struct sg_dom_store *store)
{
    uint64_t off = (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE, bit = 1ull << i;
    unsigned end = store->in + store->len;
    uint8_t flags = store->flags;
    struct page *g;
    struct line *l;

    make_room(p, e, page_no, i, store->written);
    g = sg_dom_page(p, e, page_no);
    if (!(g->dirty & bit)) {
        l = new_line(p, g, i);
    } else if (g->has_history & bit) {
        l = sg_dom_line(p, g, i);
    } else if (store->written) {
        absorb_written(p, e, page_no, i);
        if (store->flags & REC_WC) {
            /* Nothing will say which part is non-temporal: all of the line goes to S3. */
            sg_dom_advance_page(p, e, page_no, bit, SG_DOM_TO_S3, true);
        }
        return;
    } else {
        l = sg_dom_line_begin_history(p, e, page_no, i, e->visible + off);
    }
    if (is_full(p, g, i)) {
        flags = 0; /* it leaves at once */
    }
    if (!(flags & REC_S2P) && l->last && sg_dom_rec(p, l->last)->flags & REC_S2P) {
        sg_dom_line_leave_cpu(p, l, l->count); /* later arrivals in the cache come after them */
    }
    if (flags & REC_WC && !l->nt_cpu) {
        l->nt_cpu = store->cpu;
        p->nt_lines++;
    }
    for (unsigned at = store->in; at < end;) {
        unsigned atom = at / SG_PERSIST_ATOM, skip = at % SG_PERSIST_ATOM;
        unsigned n = SG_MIN(SG_PERSIST_ATOM - skip, end - at);
        uint8_t data[SG_PERSIST_ATOM] = { 0 };

        memcpy(data + skip, store->data + (at - store->in), n);
        append(p, l, atom, (0xffu >> (SG_PERSIST_ATOM - n)) << skip, data, store->seq, flags)->cpu =
            store->cpu;
        at += n;
    }
    bound(p, l);
    if (store->flags & ~flags & REC_WC) {
        sg_dom_advance_page(p, e, page_no, bit, SG_DOM_TO_S3, true);
    }
}

bool sg_dom_line_append(struct sg_persist *p, struct extent *e, uint64_t off,
                        const struct sg_dom_store *store)
{
    size_t page_no = off / SG_PERSIST_PAGE;
    unsigned i = off % SG_PERSIST_PAGE / SG_PERSIST_LINE, skip = off % SG_PERSIST_ATOM;
    struct page *g = e->pages[page_no];
    const uint8_t *data = store->data;
    uint8_t atom[SG_PERSIST_ATOM] = { 0 };
    struct line *l;

    if (skip + store->len > SG_PERSIST_ATOM || p->busy_cpus || p->nt_lines ||
        (g && is_full(p, g, i))) {
        return false;
    }
    if (!g || !(g->dirty >> i & 1)) {
        l = new_line(p, sg_dom_page(p, e, page_no), i);
    } else if (g->has_history >> i & 1) {
        l = sg_dom_line(p, g, i);
        if (sg_dom_rec(p, l->last)->flags & REC_S2P) {
            return false;
        }
    } else {
        return false;
    }
    sg_dom_touch(&e->touched, page_no);
    if (store->len == 1) {
        atom[skip] = *data;
        data = atom;
    } else if (store->len < SG_PERSIST_ATOM) {
        memcpy(atom + skip, data, store->len);
        data = atom;
    }
    append(p, l, off % SG_PERSIST_LINE / SG_PERSIST_ATOM,
           (0xffu >> (SG_PERSIST_ATOM - store->len)) << skip, data, store->seq, 0)
        ->cpu = store->cpu;
    return true;
}

bool sg_dom_line_adopt(struct sg_persist *p, struct extent *e, size_t page_no, unsigned i,
                       uint64_t seq)
{
    uint64_t off = (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE;
    struct line *l = sg_dom_line(p, e->pages[page_no], i);
    uint8_t known[SG_PERSIST_LINE], now[SG_PERSIST_LINE];
    bool found = false;

    memcpy(known, e->media + off, sizeof(known));
    memcpy(now, e->visible + off, sizeof(now)); /* read once: a processor may be storing */
    for (uint32_t n = l->first; n; n = sg_dom_rec(p, n)->next) {
        sg_dom_media_rec(known, sg_dom_rec(p, n));
    }
    for (unsigned a = 0; a < SG_DOM_LINE_ATOMS; a++) {
        const uint8_t *data = now + a * SG_PERSIST_ATOM;
        uint8_t mask = 0;

        for (unsigned k = 0; k < SG_PERSIST_ATOM; k++) {
            mask |= (data[k] != known[a * SG_PERSIST_ATOM + k]) << k;
        }
        if (mask) {
            append(p, l, a, mask, data, seq, REC_GLUE);
            found = true;
        }
    }
    if (found) {
        sg_dom_rec(p, l->last)->flags &= ~REC_GLUE;
        bound(p, l);
    }
    return found;
}

/* Octets of one page that DMA writes. */
struct dma_write {
    struct extent *e;
    size_t page_no;
    uint64_t off; /* in the extent */
    const uint8_t *data;
    size_t len;
    uint64_t seq;
};

/* What a DMA write does to the form of a line that was dirty before. */
enum form_change {
    FORM_STAYS, /* without a history: one more ascending step, or it was all or nothing */
    FORM_LOSES_HISTORY,
    FORM_ALL_OR_NOTHING,
    FORM_HAS_STORE_MORE, /* in its history, which may begin with this store */
};

/*
 * Octets [in, in + n) of line i are written.  The line stays without a history if nothing from the
 * first atom of these on has changed before: not even this atom, for it had a value in between.
 */
static enum form_change form_change(const struct sg_persist *p, const struct dma_write *w,
                                    unsigned i, unsigned in, unsigned n)
{
    const struct page *g = w->e->pages[w->page_no];
    uint64_t at = (uint64_t)w->page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE, bit = 1ull << i;
    bool full = n == SG_PERSIST_LINE, scarce = p->recs.live > p->limits.stores;
    unsigned above = sg_align_down(in, SG_PERSIST_ATOM);

    if (g->has_history & bit) {
        return full && sg_dom_line(p, g, i)->count &&
                       (scarce ||
                        (sg_dom_line(p, g, i)->count >= SG_DOM_VERSIONS && !p->limits.exact))
                   ? FORM_LOSES_HISTORY
                   : FORM_HAS_STORE_MORE;
    }
    if ((g->in_wpq | g->noted) & bit || (p->limits.exact && g->ref[i] != (uint32_t)w->seq)) {
        return FORM_HAS_STORE_MORE;
    }
    if (full && scarce) {
        return FORM_ALL_OR_NOTHING;
    }
    if (g->all_or_nothing & bit) {
        return p->config.cpu_tracking && !scarce && (!full || p->limits.exact) ? FORM_HAS_STORE_MORE
                                                                               : FORM_STAYS;
    }
    return memcmp(w->e->visible + at + above, w->e->media + at + above, SG_PERSIST_LINE - above) ==
                   0
               ? FORM_STAYS
               : FORM_HAS_STORE_MORE;
}

/* Lines of the page that were dirty before this write. */
static void write_again(struct sg_persist *p, const struct dma_write *w, uint64_t lines)
{
    for (; lines; lines &= lines - 1) {
        unsigned i = __builtin_ctzll(lines);
        uint64_t at = (uint64_t)w->page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE;
        uint64_t lo = SG_MAX(w->off, at), hi = SG_MIN(w->off + w->len, at + SG_PERSIST_LINE);

        switch (form_change(p, w, i, lo - at, hi - lo)) {
        case FORM_STAYS:
            break;
        case FORM_LOSES_HISTORY:
            p->merged++;
            p->shared++;
            collapse(p, w->e->pages[w->page_no], i);
            break;
        case FORM_ALL_OR_NOTHING:
            p->merged++;
            p->shared++;
            w->e->pages[w->page_no]->all_or_nothing |= 1ull << i;
            break;
        case FORM_HAS_STORE_MORE:
            sg_dom_line_store(p, w->e, w->page_no, i,
                              &(struct sg_dom_store){
                                  .in = lo - at,
                                  .len = hi - lo,
                                  .data = w->data + (lo - w->off),
                                  .seq = w->seq,
                              });
            break;
        }
    }
}

/*
 * Lines that become dirty without a history belong to this event.  Those that already were
 * keep their first event: a CLWB between the two must still find what came before it.
 */
static void set_refs(struct page *g, uint64_t fresh, uint32_t seq)
{
    if (fresh == ~0ull) {
        for (unsigned i = 0; i < SG_DOM_PAGE_LINES; i++) {
            g->ref[i] = seq;
        }
        return;
    }
    for (; fresh; fresh &= fresh - 1) {
        g->ref[__builtin_ctzll(fresh)] = seq;
    }
}

void sg_dom_visible_write(struct sg_persist *p, struct extent *e, uint64_t off, const void *buf,
                          size_t len, uint64_t seq)
{
    const uint8_t *from = buf;

    while (len) {
        size_t page_no = off / SG_PERSIST_PAGE;
        size_t n = SG_MIN(len, SG_PERSIST_PAGE - off % SG_PERSIST_PAGE);
        uint64_t mask = sg_dom_page_mask(page_no, off, n);
        struct page *g;

        sg_dom_keep_untracked(p, e, page_no, mask);
        sg_dom_others_leave(p, e, off, n, -1);
        g = sg_dom_page(p, e, page_no);
        if (g->dirty & mask) {
            const struct dma_write w = {
                .e = e,
                .page_no = page_no,
                .off = off,
                .data = from,
                .len = n,
                .seq = seq,
            };

            write_again(p, &w, g->dirty & mask);
        }
        memcpy(e->visible + off, from, n);
        set_refs(g, mask & ~g->dirty, seq);
        g->dirty |= mask;
        off += n;
        from += n;
        len -= n;
    }
}

void sg_dom_visible_mark(struct sg_persist *p, struct extent *e, uint64_t off, size_t len,
                         uint64_t seq)
{
    while (len) {
        size_t page_no = off / SG_PERSIST_PAGE;
        size_t n = SG_MIN(len, SG_PERSIST_PAGE - off % SG_PERSIST_PAGE);
        uint64_t mask = sg_dom_page_mask(page_no, off, n);
        struct page *g = sg_dom_page(p, e, page_no);

        for (uint64_t m = g->has_history & mask; m; m &= m - 1) {
            unsigned i = __builtin_ctzll(m);
            uint64_t at = (uint64_t)page_no * SG_PERSIST_PAGE + i * SG_PERSIST_LINE;
            uint64_t lo = SG_MAX(off, at), hi = SG_MIN(off + n, at + SG_PERSIST_LINE);

            sg_dom_line_store(p, e, page_no, i,
                              &(struct sg_dom_store){
                                  .in = lo - at,
                                  .len = hi - lo,
                                  .data = e->visible + lo,
                                  .seq = seq,
                                  .written = true,
                              });
        }
        set_refs(g, mask & ~g->dirty, seq);
        g->dirty |= mask;
        g->all_or_nothing |= mask & ~g->has_history;
        off += n;
        len -= n;
    }
}

void sg_dom_line_join(struct sg_persist *p, struct line *l)
{
    unsigned cached = sg_dom_line_cached(p, l), k = 0;

    for (uint32_t n = l->first; k < cached; n = sg_dom_rec(p, n)->next) {
        struct rec *r = sg_dom_rec(p, n);
        bool last = ++k == cached || k == l->wpq_count;

        r->flags = (r->flags & ~(REC_LOOSE | REC_GLUE)) | (last ? 0 : REC_GLUE);
    }
    sg_dom_line_begin_walks(l);
}
