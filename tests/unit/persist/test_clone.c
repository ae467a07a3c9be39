/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clones of a domain: the same inputs and the same cut have the same effect on both; what is done
 * to one does not change the other.
 */
#include "persist/certain.h"
#include "persist/domain_impl.h"

#include "model_images.h"
#include "random_trace.h"

static unsigned seeds(unsigned n)
{
    return t_seeds(n, n / 8);
}

/* A rig with a clone of another one's domain. */
static void clone_up(struct dom_rig *c, const struct dom_rig *r)
{
    struct sg_persist_memory memory;

    *c = *r;
    memory.visible = c->visible = g_memdup2(r->visible, r->size);
    memory.media = c->media = g_memdup2(r->media, r->size);
    c->p = sg_persist_clone(r->p, &memory);
    sg_assert_persist_state(c->p, true);
}

static void same_memories(const struct dom_rig *a, const struct dom_rig *b)
{
    T_EQ_MEM(a->visible, b->visible, a->size);
    T_EQ_MEM(a->media, b->media, a->size);
}

static void same_answers(const struct dom_rig *a, const struct dom_rig *b)
{
    struct sg_persist_uncertain why_a, why_b;

    T_EQ_U64(sg_persist_seq(a->p), sg_persist_seq(b->p));
    for (uint64_t seq = 0; seq <= sg_persist_seq(a->p); seq++) {
        for (uint64_t off = 0; off < 2 * SG_PERSIST_LINE; off += 4) {
            T_EQ_U64(sg_persist_uncertain(a->p, RIG_BASE + off, 4, 0, seq, &why_a),
                     sg_persist_uncertain(b->p, RIG_BASE + off, 4, 0, seq, &why_b));
            T_EQ_MEM(&why_a, &why_b, sizeof(why_a));
        }
    }
}

static void same_state(const struct dom_rig *a, const struct dom_rig *b)
{
    GByteArray *log_a = g_byte_array_new(), *log_b = g_byte_array_new();
    struct sg_persist_stats stats_a, stats_b;

    same_memories(a, b);
    same_answers(a, b);
    sg_persist_stats(a->p, &stats_a);
    sg_persist_stats(b->p, &stats_b);
    T_EQ_MEM(&stats_a, &stats_b, sizeof(stats_a));
    sg_persist_log_export(a->p, log_a);
    sg_persist_log_export(b->p, log_b);
    T_EQ_U64(log_a->len, log_b->len);
    T_EQ_MEM(log_a->data, log_b->data, log_a->len);
    g_byte_array_unref(log_a);
    g_byte_array_unref(log_b);
}

static void cut(struct dom_rig *r, uint64_t seed)
{
    struct sg_persist_policy policy = { .outcome = SG_PERSIST_OUTCOME_RANDOM, .seed = seed };

    sg_persist_report_free(sg_persist_cut(r->p, &policy));
}

/* Makes the trace's settings richer than those of the comparison with the contract. */
static void enrich(struct dom_rig *r, uint64_t seed)
{
    if (seed % 3) {
        return;
    }
    r->config.eviction = r->config.drain = SG_PERSIST_RANDOM;
    r->config.cpu_tracking = seed % 2;
    rig_configure(r);
    T_TRUE(sg_persist_mark_bad(r->p, RIG_BASE + SG_PERSIST_LINE, 1, SG_PERSIST_POISONED));
}

/* Both do the rest of the trace; every now and then somebody's clone is cut. */
static void one_trace(const struct gt_trace *t, uint64_t seed)
{
    struct dom_rig r, twin, victim;
    unsigned half = t->count / 2;

    model_begin(&r, t, true);
    enrich(&r, seed);
    for (unsigned i = 0; i < half; i++) {
        model_event(&r, &t->event[i]);
    }
    clone_up(&twin, &r);
    same_state(&r, &twin);
    for (unsigned i = half; i < t->count; i++) {
        clone_up(&victim, &twin);
        cut(&victim, seed + i);
        rig_down(&victim);
        model_event(&r, &t->event[i]);
        model_event(&twin, &t->event[i]);
        same_state(&r, &twin);
    }
    clone_up(&victim, &r);
    cut(&victim, seed);
    same_state(&r, &twin);
    cut(&r, seed);
    cut(&twin, seed);
    same_memories(&r, &twin);
    T_EQ_MEM(r.media, victim.media, r.size);
    memcpy(r.visible, r.media, r.size);
    sg_persist_restart(r.p);
    rig_down(&twin);
    clone_up(&twin, &r);
    same_state(&r, &twin);
    rig_down(&victim);
    rig_down(&twin);
    rig_down(&r);
}

static void same_effects(void)
{
    for (unsigned report = 0; report < GT_REPORTS; report++) {
        for (uint64_t seed = 1; seed <= seeds(400); seed++) {
            struct gt_trace t;

            T_CONTEXT("seed %" PRIu64, seed);
            gt_random_trace(&t, seed, 0, report);
            one_trace(&t, seed);
        }
    }
}

/* An original may go first, and its memories with it. */
static void outlives(void)
{
    struct dom_rig r, c;

    rig_simple(&r, SG_PERSIST_ADR);
    rig_write_u64(&r, 7, 0, 1);
    rig_store_nt(&r, 1, 64, 2);
    clone_up(&c, &r);
    rig_down(&r);
    T_EQ_INT(rig_flush(&c, 7, 0, 8, SG_FLUSH_PERSISTENT), SG_PM_DONE);
    rig_sfence(&c, 1);
    T_EQ_U64(rig_media(&c, 0), 1);
    T_EQ_U64(rig_media(&c, 64), 2);
    rig_down(&c);
}

/* Extents keep their numbers, also behind one that was removed. */
static void several_extents(void)
{
    const uint64_t other = RIG_BASE + (1ull << 30);
    uint8_t *octets = g_aligned_alloc0(4, SG_PERSIST_PAGE, 8);
    struct sg_persist_memory memory[3] = { { NULL } };
    struct sg_persist_extent x = { .size = SG_PERSIST_PAGE, .media = octets + SG_PERSIST_PAGE };
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 7 };
    struct sg_persist *c;
    struct dom_rig r;

    rig_simple(&r, SG_PERSIST_ADR);
    x.visible = octets;
    x.base = other;
    T_EQ_INT(sg_persist_add(r.p, &x), 1);
    sg_persist_remove(r.p, 0);
    T_TRUE(sg_persist_dma_write(r.p, &who, other, "abcdefgh", 8));
    memory[1].visible = memcpy(octets + 2 * SG_PERSIST_PAGE, octets, SG_PERSIST_PAGE);
    memory[1].media = octets + 3 * SG_PERSIST_PAGE;
    c = sg_persist_clone(r.p, memory);
    sg_persist_orderly(c);
    T_EQ_MEM(memory[1].media, "abcdefgh", 8);
    T_TRUE(x.media[0] == 0);
    T_EQ_INT(sg_persist_query(c, RIG_BASE, 8), 0);
    sg_persist_free(c);
    rig_down(&r);
    g_aligned_free(octets);
}

/* ---- What was touched ---- */

static bool was_touched(const struct dom_rig *r, uint64_t page_no)
{
    size_t count;
    const uint64_t *number = sg_persist_touched(r->p, 0, &count);
    unsigned found = 0;

    for (size_t i = 0; i < count; i++) {
        found += number[i] == page_no;
    }
    T_TRUE(found <= 1);
    T_EQ_INT(sg_persist_was_touched(r->p, 0, page_no), found);
    return found;
}

static void same_history(const struct dom_rig *a, const struct dom_rig *b, uint32_t number)
{
    const struct line *l = sg_dom_pool_at(&a->p->lines, number);

    T_EQ_MEM(l, sg_dom_pool_at(&b->p->lines, number), sizeof(*l));
    for (uint32_t n = l->first; n; n = sg_dom_rec(a->p, n)->next) {
        T_EQ_MEM(sg_dom_rec(a->p, n), sg_dom_rec(b->p, n), sizeof(struct rec));
    }
}

/* All that there is of a page, octet by octet: a clone has the same numbers of elements. */
static void same_page(const struct dom_rig *a, const struct dom_rig *b, size_t page_no)
{
    const struct page *g = a->p->extent[0].pages[page_no], *h = b->p->extent[0].pages[page_no];
    uint64_t off = (uint64_t)page_no * SG_PERSIST_PAGE;
    size_t len = SG_MIN(SG_PERSIST_PAGE, a->size - off);

    T_EQ_MEM(a->visible + off, b->visible + off, len);
    T_EQ_MEM(a->media + off, b->media + off, len);
    T_EQ_INT(!g, !h);
    if (!g || !h) {
        return;
    }
    T_TRUE(g->dirty == h->dirty && g->has_history == h->has_history && g->in_wpq == h->in_wpq &&
           g->all_or_nothing == h->all_or_nothing && g->noted == h->noted);
    for (uint64_t m = g->dirty; m; m &= m - 1) {
        unsigned i = __builtin_ctzll(m);

        T_EQ_U64(g->ref[i], h->ref[i]);
        if (g->has_history >> i & 1) {
            same_history(a, b, g->ref[i]);
        }
    }
}

static uint64_t as_it_is(void *opaque, uint64_t seq)
{
    (void)opaque;
    return seq;
}

static bool same(const struct sg_persist *a, const struct sg_persist *b)
{
    const struct sg_persist_side of_a = { a, as_it_is, NULL }, of_b = { b, as_it_is, NULL };

    return sg_persist_same(&of_a, &of_b);
}

/* Does it make a difference that only what was touched is compared? */
static void compare_both_ways(struct dom_rig *r, struct dom_rig *was)
{
    bool fast = same(r->p, was->p), memories, slow;
    struct dom_rig all;

    clone_up(&all, r);
    sg_persist_note_touched(all.p, false);
    memories = memcmp(r->visible, was->visible, r->size) == 0 &&
               memcmp(r->media, was->media, r->size) == 0;
    slow = same(all.p, was->p);
    T_EQ_INT(fast, slow && memories);
    rig_down(&all);
}

/* Asks anew before each event, so that one that touches nothing is found. */
static void touch_one_trace(const struct gt_trace *t, uint64_t seed)
{
    struct dom_rig r, was;

    model_begin(&r, t, true);
    enrich(&r, seed);
    for (unsigned i = 0; i < t->count; i++) {
        sg_persist_note_touched(r.p, true);
        clone_up(&was, &r);
        T_TRUE(same(r.p, was.p));
        model_event(&r, &t->event[i]);
        for (size_t page_no = 0; page_no < r.p->extent[0].page_count; page_no++) {
            if (!was_touched(&r, page_no)) {
                same_page(&r, &was, page_no);
            }
        }
        compare_both_ways(&r, &was);
        rig_down(&was);
    }
    rig_down(&r);
}

static void touched(void)
{
    static void (*const make[])(struct gt_trace *, uint64_t, unsigned,
                                enum gt_report) = { gt_random_trace, gt_random_shared,
                                                    gt_random_mixed, gt_random_bad };

    for (unsigned i = 0; i < G_N_ELEMENTS(make); i++) {
        for (uint64_t seed = 1; seed <= seeds(200); seed++) {
            struct gt_trace t;

            T_CONTEXT("traces %u, seed %" PRIu64, i, seed);
            make[i](&t, seed, 0, (enum gt_report)(seed % GT_REPORTS));
            touch_one_trace(&t, seed);
        }
    }
}

/* The first and the last page, which may be short; and nothing where nobody asks. */
static void touched_ends(void)
{
    struct dom_rig r, c;
    size_t count, last = 15;

    rig_init(&r);
    rig_up(&r, 16 * SG_PERSIST_PAGE - SG_PERSIST_LINE);
    rig_store(&r, 0, 0, 1);
    T_NULL(sg_persist_touched(r.p, 0, &count));
    T_EQ_U64(count, 0);
    sg_persist_note_touched(r.p, true);
    rig_store(&r, 0, r.size - 8, 1);
    T_TRUE(was_touched(&r, last) && !was_touched(&r, 0));
    clone_up(&c, &r);
    rig_store(&c, 0, 0, 2);
    T_TRUE(was_touched(&c, last) && was_touched(&c, 0) && !was_touched(&r, 0));
    rig_store(&r, 0, 0, 3);
    T_TRUE(!same(r.p, c.p)); /* the memories differ */
    sg_persist_note_touched(r.p, false);
    T_NULL(sg_persist_touched(r.p, 0, &count));
    rig_down(&c);
    rig_down(&r);
}

static const struct t_case cases[] = {
    { "the same inputs and cut lead to the same; neither changes the other", same_effects },
    { "a clone outlives its original", outlives },
    { "extents keep their numbers", several_extents },
    { "what was not touched is as it was", touched },
    { "pages that were touched: the first, the last, and of clones", touched_ends },
};

T_MAIN(cases)
