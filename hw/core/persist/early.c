/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What has arrived early, where S0 and S1 are sets (segments.c).
 *
 * Who stores to a line has proved nothing: what is under way to it may have arrived before or not.
 * Nor has who proves a segment proved anything of another one, which may have arrived before it.
 * Whoever asked for that decides (sg_persist_arrivals()).
 *
 * A cut finds a line in one state that it had, and between two events nothing can be told of the
 * instants.  So it is enough that each line stops once between two events, with so much arrived
 * for it as somebody answers, and that lines stop in any order.  That makes a difference where
 * two segments have something for one line.  A line for which one segment has something needs no
 * stop: its states follow from the order of the segment.
 */
#include "persist/certain.h"
#include "persist/segments.h"

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

/* Is all that it has for lines up to this octet proved? */
static bool is_proved(const struct piece *x, uint64_t last)
{
    return x->proved >= SG_MIN(x->addr + x->len, last + 1);
}

/*
 * Is a piece, of all by age, the first that comes to these lines by the event, and all of it for
 * them?  Then it comes in its turn if nothing newer has come before.
 */
static bool is_first(const GPtrArray *all, guint i, uint64_t lo, uint64_t last)
{
    for (guint k = 0; k < i; k++) {
        const struct piece *x = g_ptr_array_index(all, k);

        if (sg_dom_piece_is_for(x, lo, last) && x->proved > SG_MAX(x->addr, lo)) {
            return false;
        }
    }
    return is_proved(g_ptr_array_index(all, i), last);
}

/*
 * Of each segment with something for these lines, how much of that has arrived?  @alone: nothing
 * else stops before the event.
 */
static void ask_all(struct sg_persist *p, uint64_t lo, uint64_t last, bool alone)
{
    GPtrArray *all = sg_dom_segments_under_way(p);
    bool any = false;

    g_ptr_array_sort(all, older_first);
    for (guint i = all->len; i--;) {
        struct piece *x = g_ptr_array_index(all, i);

        x->arrives = 0;
        if (sg_dom_piece_is_for(x, lo, last) && (any || !alone || !is_first(all, i, lo, last))) {
            ask_early(p, x, lo, last);
            any |= x->arrives != 0;
        }
    }
    if (any) {
        add_what_is_before(all);
    }
    g_ptr_array_free(all, TRUE);
    if (any) {
        sg_dom_segments_arrive(p);
    }
}

/* ---- Lines of several segments ---- */

static gint lower_first(gconstpointer a, gconstpointer b)
{
    const struct piece *x = *(struct piece *const *)a, *y = *(struct piece *const *)b;

    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/*
 * Pieces that have lines in common with one that is near are near, too; all are by address.
 * Returns how many became so.
 */
static guint near_in_lines(const GPtrArray *all)
{
    guint found = 0, first = 0;
    uint64_t end = 0; /* of the lines of these neighbours */
    bool near = false;

    for (guint i = 0; i <= all->len; i++) {
        struct piece *x = i < all->len ? g_ptr_array_index(all, i) : NULL;

        if (!x || sg_align_down(x->addr, SG_PERSIST_LINE) >= end) {
            for (; first < i; first++) {
                struct piece *y = g_ptr_array_index(all, first);

                found += near && !y->near;
                y->near |= near;
            }
            near = false;
        }
        if (x) {
            near |= x->near;
            end = SG_MAX(end, ((x->addr + (x->len - 1)) | (SG_PERSIST_LINE - 1)) + 1);
        }
    }
    return found;
}

/* What has to come before one that is near is near, too. */
static guint near_in_queues(const GPtrArray *all)
{
    uint64_t newest[SG_PERSIST_DEVICES] = { 0 };
    guint found = 0;

    for (guint i = 0; i < all->len; i++) {
        const struct piece *x = g_ptr_array_index(all, i);
        uint64_t *seq = &newest[x->source.unit];

        *seq = x->near ? SG_MAX(*seq, x->seq) : *seq;
    }
    for (guint i = 0; i < all->len; i++) {
        struct piece *x = g_ptr_array_index(all, i);
        bool before = !x->near && x->settled <= newest[x->source.unit];

        found += before;
        x->near |= before;
    }
    return found;
}

/*
 * Is a line clean behind the event, in whatever order its data come?  It is if a Flush covers it,
 * and all that is for it, none of it for the same atom, and if nothing waits there.
 */
static bool becomes_clean(const struct sg_persist *p, const GPtrArray *all, uint64_t line,
                          const struct sg_dom_flushed *f)
{
    uint64_t off, last = line + (SG_PERSIST_LINE - 1);
    struct extent *e = sg_dom_extent((struct sg_persist *)p, line, SG_PERSIST_LINE, &off);
    const struct page *g = e ? e->pages[off / SG_PERSIST_PAGE] : NULL;
    unsigned atoms = 0, n = 0;

    if (!f || !e || line < f->addr || last - f->addr >= f->len || e->faults.read_only ||
        e->faults.wears_out || e->faults.flush_fails || e->faults.flush_fails_always ||
        p->bad[0].count || p->bad[1].count ||
        (g && g->dirty >> (off % SG_PERSIST_PAGE / SG_PERSIST_LINE) & 1)) {
        return false;
    }
    for (guint i = 0; i < all->len; i++) {
        const struct piece *x = g_ptr_array_index(all, i);

        if (sg_dom_piece_is_for(x, line, last)) {
            unsigned from = (SG_MAX(x->addr, line) - line) / SG_PERSIST_ATOM;
            unsigned to = (SG_MIN(x->addr + (x->len - 1), last) - line) / SG_PERSIST_ATOM;

            n += to - from + 1;
            atoms |= (2u << to) - (1u << from);
            if (!is_proved(x, last)) {
                return false;
            }
        }
    }
    return n == (unsigned)__builtin_popcount(atoms);
}

static bool is_done(const GArray *done, uint64_t line)
{
    for (guint i = 0; i < done->len; i++) {
        if (g_array_index(done, uint64_t, i) == line) {
            return true;
        }
    }
    return false;
}

/* Lines for which several segments have something that is near; those that may stop; ascending. */
static GArray *shared_lines(const struct sg_persist *p, const GArray *done,
                            const struct sg_dom_flushed *f)
{
    GArray *lines = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    GPtrArray *all = sg_dom_segments_under_way(p);
    uint64_t end = 0, next = 0; /* of what segments so far are for; first line not looked at */

    g_ptr_array_sort(all, lower_first);
    while (near_in_lines(all) + near_in_queues(all)) {
        /* each time one more, at least */
    }
    for (guint i = 0; i < all->len; i++) {
        const struct piece *x = g_ptr_array_index(all, i);
        uint64_t line = SG_MAX(sg_align_down(x->addr, SG_PERSIST_LINE), next);
        uint64_t own = ((x->addr + (x->len - 1)) | (SG_PERSIST_LINE - 1)) + 1;

        for (; x->near && line < SG_MIN(own, end); line += SG_PERSIST_LINE) {
            if (!is_done(done, line) && !becomes_clean(p, all, line, f)) {
                g_array_append_val(lines, line);
            }
            next = line + SG_PERSIST_LINE;
        }
        end = SG_MAX(end, own);
    }
    g_ptr_array_free(all, TRUE);
    return lines;
}

/* Which of these lines stops next?  Marks it; false: none does. */
static bool ask_line(struct sg_persist *p, const GArray *lines, GArray *done)
{
    struct sg_persist_choice q = { .what = SG_PERSIST_CHOICE_STOP, .n = lines->len + 1 };
    uint32_t answer = lines->len == 1 ? 1 : p->arrivals(p->arrivals_opaque, &q);

    sg_assert(answer < q.n);
    if (answer) {
        g_array_append_val(done, g_array_index(lines, uint64_t, answer - 1));
    }
    return answer;
}

uint32_t sg_dom_segments_stops(const struct sg_persist *p, const struct sg_dom_flushed *f)
{
    GArray *done = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    GArray *lines = shared_lines(p, done, f);
    uint32_t n = lines->len;

    g_array_free(lines, TRUE);
    g_array_free(done, TRUE);
    return n;
}

void sg_dom_segments_mix(struct sg_persist *p, const struct sg_dom_flushed *f)
{
    GArray *done;
    bool any = p->arrivals && sg_dom_any_order(p);

    if (!any) {
        return;
    }
    done = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    while (any) { /* each time a line more */
        GArray *lines = shared_lines(p, done, f);
        bool alone = lines->len == 1 && !done->len;

        any = lines->len && ask_line(p, lines, done);
        g_array_free(lines, TRUE);
        if (any) {
            uint64_t line = g_array_index(done, uint64_t, done->len - 1);

            ask_all(p, line, line + (SG_PERSIST_LINE - 1), alone);
        }
    }
    g_array_free(done, TRUE);
}

/* ---- Before somebody else's store ---- */

void sg_dom_segments_early(struct sg_persist *p, uint64_t addr, uint64_t len)
{
    uint64_t lo = sg_align_down(addr, SG_PERSIST_LINE);
    uint64_t last = (addr + (len - 1)) | (SG_PERSIST_LINE - 1);

    if (p->arrivals && sg_dom_any_order(p) && sg_dom_posted_sees(p, lo, last)) {
        GPtrArray *all = sg_dom_segments_under_way(p);

        for (guint i = 0; i < all->len; i++) {
            struct piece *x = g_ptr_array_index(all, i);

            x->near = sg_dom_piece_is_for(x, lo, last);
            x->proved = 0;
        }
        g_ptr_array_free(all, TRUE);
        sg_dom_segments_mix(p, NULL);
        ask_all(p, lo, last, false);
    }
    sg_dom_forget_inverted(p, addr, len);
}

void sg_persist_arrivals(struct sg_persist *p, sg_persist_choose *choose, void *opaque)
{
    p->arrivals = choose;
    p->arrivals_opaque = opaque;
}
