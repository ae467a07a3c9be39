/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clones of a domain: the same inputs and the same cut have the same effect on both; what is done
 * to one does not change the other.
 */
#include "persist/certain.h"

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

static const struct t_case cases[] = {
    { "the same inputs and cut lead to the same; neither changes the other", same_effects },
    { "a clone outlives its original", outlives },
    { "extents keep their numbers", several_extents },
};

T_MAIN(cases)
