/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Previews: they have the same outcomes as cuts, but do not change the domain.
 */
#include "base/bytes.h"
#include "rig.h"

enum { X = 4096 + 128, Y = X + 64, SEEDS = 400, SIZE = 3 * 4096 + 64 };

/* Leaves data in other pages, too. */
static void scene(struct dom_rig *r)
{
    rig_write_u64(r, 3, 0, 77);
    rig_store(r, 0, X, 1);
    rig_cpu_flush(r, 0, X, SG_PERSIST_CLWB);
    rig_store(r, 0, X, 2);
    rig_write_u64(r, 3, Y, 1);
    rig_store_nt(r, 0, Y, 2);
    rig_store_nt(r, 0, 2 * 4096, 9);
    rig_store(r, 0, X, 3);
    rig_store(r, 0, X + 8, 1);
}

static unsigned xy(const uint8_t *x)
{
    return sg_get_le64(x) + 4 * sg_get_le64(x + 64) + 16 * sg_get_le64(x + 8);
}

static unsigned xy_media(const struct dom_rig *r)
{
    return xy(r->media + X);
}

static uint64_t previewed(const struct dom_rig *proto)
{
    struct dom_rig r = *proto;
    uint8_t got[72], *visible, *media;
    uint64_t set = 0, events;

    rig_up(&r, SIZE);
    scene(&r);
    events = sg_persist_events(r.p);
    visible = g_memdup2(r.visible, SIZE);
    media = g_memdup2(r.media, SIZE);
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct sg_persist_policy policy = { .outcome = SG_PERSIST_OUTCOME_RANDOM, .seed = seed };

        T_TRUE(sg_persist_preview(r.p, &policy, RIG_BASE + X, got, sizeof(got)));
        set |= SET1(xy(got));
    }
    T_TRUE(!memcmp(visible, r.visible, SIZE) && !memcmp(media, r.media, SIZE));
    T_EQ_U64(sg_persist_events(r.p), events);
    sg_assert_persist_state(r.p, true);
    g_free(visible);
    g_free(media);
    rig_down(&r);
    return set;
}

static void same_outcomes_as_cuts(void)
{
    for (unsigned domain = 0; domain < SG_PERSIST_DOMAINS; domain++) {
        for (unsigned sb = 0; sb < 2; sb++) {
            struct dom_rig proto;

            rig_init(&proto);
            proto.config.domain = domain;
            proto.config.store_buffer = sb;
            T_EQ_U64(previewed(&proto), rig_outcomes_of(&proto, scene, xy_media, SEEDS));
        }
    }
}

static void outcomes_by_policy(void)
{
    struct sg_persist_policy policy = { .outcome = SG_PERSIST_KEEP_ALL };
    uint8_t got[72];
    struct dom_rig r;

    rig_simple(&r, SG_PERSIST_ADR);
    scene(&r);
    T_TRUE(sg_persist_preview(r.p, &policy, RIG_BASE + X, got, sizeof(got)));
    T_EQ_U64(xy(got), 3 + 4 * 2 + 16);
    policy.outcome = SG_PERSIST_LOSE_ALL;
    T_TRUE(sg_persist_preview(r.p, &policy, RIG_BASE + X, got, sizeof(got)));
    T_EQ_U64(xy(got), 0);
    rig_sfence(&r, 0);
    T_TRUE(sg_persist_preview(r.p, &policy, RIG_BASE + X, got, sizeof(got)));
    T_EQ_U64(xy(got), 1 + 4 * 2);
    rig_down(&r);
}

static void ranges(void)
{
    struct sg_persist_policy policy = { .outcome = SG_PERSIST_KEEP_ALL };
    uint8_t got[2 * 4096 + 64];
    struct dom_rig r;

    rig_init(&r);
    rig_up(&r, SIZE);
    rig_store(&r, 0, SIZE - 8, 5);
    rig_store(&r, 0, 4096 - 8, 6);
    T_TRUE(sg_persist_preview(r.p, &policy, RIG_BASE + SIZE - 8, got, 8));
    T_EQ_U64(sg_get_le64(got), 5);
    T_TRUE(sg_persist_preview(r.p, &policy, RIG_BASE + 4096 - 8, got, sizeof(got)));
    T_EQ_U64(sg_get_le64(got), 6);
    T_FALSE(sg_persist_preview(r.p, &policy, RIG_BASE + SIZE - 8, got, 9));
    T_FALSE(sg_persist_preview(r.p, &policy, RIG_BASE - 8, got, 8));
    T_FALSE(sg_persist_preview(r.p, &policy, RIG_BASE, got, 0));
    rig_down(&r);
}

/* The excerpt has room for all write-combining buffers and the whole store buffer. */
static void full_buffers(void)
{
    struct sg_persist_policy policy = { .outcome = SG_PERSIST_KEEP_ALL };
    uint8_t got[4096];
    struct dom_rig r;

    rig_init(&r);
    r.config.store_buffer = true;
    rig_up(&r, SIZE);
    for (unsigned i = 0; i < 64; i++) {
        rig_store_nt(&r, 0, i * 64, i + 1);
    }
    for (unsigned i = 0; i < 64; i++) {
        rig_store(&r, 0, i * 64 + 8, i + 1);
    }
    T_TRUE(sg_persist_preview(r.p, &policy, RIG_BASE, got, sizeof(got)));
    for (unsigned i = 0; i < 64; i++) {
        T_EQ_U64(sg_get_le64(got + i * 64), i + 1);
        T_EQ_U64(sg_get_le64(got + i * 64 + 8), i + 1);
    }
    rig_down(&r);
}

static const struct t_case cases[] = {
    { "the same outcomes as cuts", same_outcomes_as_cuts },
    { "least and most", outcomes_by_policy },
    { "ranges", ranges },
    { "full buffers", full_buffers },
};

T_MAIN(cases)
