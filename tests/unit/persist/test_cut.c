/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Policies, armed cuts, freezing, untracked CPUs, changes of configuration. */
#include "base/bytes.h"
#include "rig.h"

#define P SG_FLUSH_PERSISTENT

static void cut_worst(struct dom_rig *r, uint64_t off, uint64_t len, uint64_t seed)
{
    struct sg_persist_policy policy = {
        .outcome = SG_PERSIST_WORST_FOR,
        .seed = seed,
        .addr = RIG_BASE + off,
        .len = len,
    };

    sg_persist_report_free(sg_persist_cut(r->p, &policy));
    memcpy(r->visible, r->media, r->size);
    sg_persist_restart(r->p);
}

/* As little as possible survives inside the range, as much as possible outside. */
static void worst_for(void)
{
    struct dom_rig r;
    uint8_t buf[4096];

    rig_simple(&r, SG_PERSIST_ADR);
    memset(buf, 1, sizeof(buf));
    for (unsigned i = 0; i < 4; i++) {
        rig_write(&r, 1, i * 4096, buf, sizeof(buf));
    }
    rig_store(&r, 0, 4096 * 3 + 64, 2);
    T_EQ_INT(rig_flush(&r, 1, 4096 + 128, 8, P), SG_PM_DONE);
    cut_worst(&r, 4096, 8192 + 10, 0);
    for (unsigned i = 0; i < 16384; i += 64) {
        bool inside = i >= 4096 && i <= 4096 + 8192;

        T_CONTEXT("offset %u", i);
        T_EQ_U64(r.media[i], i == 4096 * 3 + 64 ? 2 : !inside || i == 4096 + 128);
    }
    rig_down(&r);
}

static void torn_range(void)
{
    unsigned kept = 0, torn = 0;
    struct dom_rig r;

    for (unsigned seed = 1; seed <= 50; seed++) {
        uint8_t buf[64];

        rig_simple(&r, SG_PERSIST_ADR);
        memset(buf, 1, sizeof(buf));
        rig_write(&r, 1, 0, buf, 64);
        rig_write(&r, 1, 64, buf, 64);
        cut_worst(&r, 0, 64, seed);
        T_EQ_U64(r.media[64 + 63], 1);
        kept += r.media[63];
        torn += r.media[0] && !r.media[63];
        rig_down(&r);
    }
    T_EQ_U64(kept, 0);
    T_TRUE(torn > 5);
}

static void worst_of_posted(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.config.posted_drain = SG_PERSIST_NEVER;
    rig_up(&r, 65536);
    for (unsigned i = 0; i < 4; i++) {
        rig_write_u64(&r, 1, i * 64, 1);
    }
    cut_worst(&r, 128, 8, 0);
    for (unsigned i = 0; i < 4; i++) {
        T_EQ_U64(rig_media(&r, i * 64), i < 2); /* S1 is a FIFO: what follows is lost too */
    }
    rig_down(&r);
}

static void repeatable(void)
{
    uint8_t first[65536];

    for (unsigned run = 0; run < 2; run++) {
        struct dom_rig r;

        rig_init(&r);
        r.config.eviction = SG_PERSIST_RANDOM;
        r.limits.seed = 77;
        rig_up(&r, 65536);
        for (unsigned i = 1; i <= 2000; i++) {
            rig_write_u64(&r, 1, i * 8 % 65536, i);
            rig_store(&r, 0, i * 24 % 65536, i);
        }
        rig_cut(&r, SG_PERSIST_OUTCOME_RANDOM, 5);
        if (run) {
            T_EQ_MEM(r.media, first, sizeof(first));
        }
        memcpy(first, r.media, sizeof(first));
        rig_down(&r);
    }
}

/* ---- Arming ---- */

static void nth_event(void)
{
    struct dom_rig r;
    struct sg_persist_arm arm = { .kind = SG_PERSIST_ARM_EVENT, .count = 3 };
    uint64_t events;

    rig_simple(&r, SG_PERSIST_EADR);
    rig_write_u64(&r, 1, 0, 1);
    sg_persist_arm(r.p, &arm);
    rig_write_u64(&r, 1, 0, 2);
    rig_write_u64(&r, 1, 64, 2);
    T_EQ_U64(r.cuts_due, 0);
    rig_write_u64(&r, 1, 128, 2);
    T_EQ_U64(r.cuts_due, 1);
    T_TRUE(sg_persist_frozen(r.p));
    events = sg_persist_events(r.p);
    /* The machine has stopped: later events have no effect and guarantee nothing. */
    rig_write_u64(&r, 1, 192, 2);
    T_EQ_U64(rig_visible(&r, 192), 0);
    T_EQ_INT(rig_flush(&r, 1, 0, 256, P), SG_PM_LATER);
    rig_sfence(&r, 0);
    sg_persist_orderly(r.p);
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE, &(uint64_t){ 0 }, 8), SG_PM_LATER);
    T_EQ_U64(rig_media(&r, 0), 0);
    T_EQ_U64(sg_persist_events(r.p), events);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(rig_media(&r, 0), 2);
    T_EQ_U64(rig_media(&r, 128), 2);
    T_EQ_U64(rig_media(&r, 192), 0);
    /* A cut is armed once. */
    T_FALSE(sg_persist_frozen(r.p));
    rig_write_u64(&r, 1, 192, 2);
    rig_write_u64(&r, 1, 192, 3);
    rig_write_u64(&r, 1, 192, 4);
    T_FALSE(sg_persist_frozen(r.p));
    rig_down(&r);
}

static void milestones(void)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 1, .msn = 4 };

    for (unsigned m = 0; m < SG_PM_MILESTONES; m++) {
        struct sg_persist_arm arm = {
            .kind = SG_PERSIST_ARM_MILESTONE,
            .milestone = m,
            .count = 2,
        };
        struct dom_rig r;
        struct sg_persist_report *report;

        T_CONTEXT("milestone %u", m);
        rig_simple(&r, SG_PERSIST_ADR);
        sg_persist_arm(r.p, &arm);
        for (unsigned other = 0; other < SG_PM_MILESTONES; other++) {
            sg_persist_milestone(r.p, &who, other);
        }
        T_FALSE(sg_persist_frozen(r.p));
        sg_persist_milestone(r.p, &who, m);
        T_TRUE(sg_persist_frozen(r.p));
        T_EQ_U64(r.cuts_due, 1);
        report = rig_cut_report(&r, SG_PERSIST_KEEP_ALL, 0);
        T_TRUE(report->armed);
        T_EQ_U64(report->arm.milestone, m);
        sg_persist_report_free(report);
        rig_down(&r);
    }
}

static void at_the_flush(void)
{
    struct dom_rig r;
    struct sg_persist_arm arm = { .kind = SG_PERSIST_ARM_EVENT, .count = 1 };

    /* Armed at the Flush itself, which is executed, but not answered. */
    rig_simple(&r, SG_PERSIST_ADR);
    rig_write_u64(&r, 1, 0, 1);
    sg_persist_arm(r.p, &arm);
    T_EQ_INT(rig_flush(&r, 1, 0, 8, P), SG_PM_LATER);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(rig_media(&r, 0), 1);
    arm.kind = SG_PERSIST_ARM_OFF;
    sg_persist_arm(r.p, &arm);
    T_EQ_INT(rig_flush(&r, 1, 0, 8, P), SG_PM_DONE);
    rig_down(&r);
}

/* S1 has a write to line 0, S2' a store to line 1, and a cut is due after one event. */
static void up_for_two_events(struct dom_rig *r)
{
    struct sg_persist_arm arm = { .kind = SG_PERSIST_ARM_EVENT, .count = 1 };

    rig_init(r);
    r->config.domain = SG_PERSIST_EADR;
    r->config.posted_drain = SG_PERSIST_NEVER;
    r->config.store_buffer = true;
    rig_up(r, 4096);
    rig_write_u64(r, 1, 0, 1);
    rig_store_nt(r, 0, 64, 2);
    sg_persist_arm(r->p, &arm);
}

/* Nobody could tell from outside which part of a call was executed. */
static void several_events_of_a_call(void)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 1 };
    uint64_t value = 2;
    struct dom_rig r;

    up_for_two_events(&r);
    T_TRUE(sg_persist_atomic(r.p, &who, RIG_BASE + 64, &value, 3));
    T_EQ_U64(r.cuts_due, 1);
    T_EQ_U64(value, 2);
    T_EQ_U64(sg_persist_events(r.p), 5);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(rig_media(&r, 0), 1);
    T_EQ_U64(rig_media(&r, 64), 3);
    rig_down(&r);

    up_for_two_events(&r);
    sg_persist_dma_read(r.p, 0, RIG_BASE, 128);
    T_EQ_U64(r.cuts_due, 1);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(rig_media(&r, 0), 1);
    T_EQ_U64(rig_media(&r, 64), 2);
    rig_down(&r);

    up_for_two_events(&r);
    sg_persist_arm(r.p, &(struct sg_persist_arm){ .kind = SG_PERSIST_ARM_EVENT, .count = 2 });
    rig_store(&r, 0, 128, 4);
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE + 64, &value, 8), SG_PM_DONE);
    T_EQ_U64(sg_get_le64(&value), 2);
    T_EQ_U64(r.cuts_due, 1);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(rig_media(&r, 0), 0);
    T_EQ_U64(rig_media(&r, 64), 2);
    T_EQ_U64(rig_media(&r, 128), 4);
    rig_down(&r);
}

/* ---- CPUs that are not tracked ---- */

static void untracked_scene(struct dom_rig *r)
{
    /* Stores as an untracked CPU does. */
    r->visible[0] = 1;
    r->visible[64] = 1;
}

static unsigned two_lines(const struct dom_rig *r)
{
    return r->media[0] + 2 * r->media[64];
}

static void untracked(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    proto.config.cpu_tracking = false;
    T_EQ_U64(rig_outcomes_of(&proto, untracked_scene, two_lines, 100), 0xf);
    proto.config.untracked = SG_PERSIST_UNTRACKED_KEEP;
    T_EQ_U64(rig_outcomes_of(&proto, untracked_scene, two_lines, 100), SET1(3));
    proto.config.untracked = SG_PERSIST_UNTRACKED_AT_RISK;
    proto.config.domain = SG_PERSIST_EADR;
    T_EQ_U64(rig_outcomes_of(&proto, untracked_scene, two_lines, 100), SET1(3));
}

static void untracked_flush(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.config.cpu_tracking = false;
    r.config.untracked_flush_max = 4096;
    rig_up(&r, 65536);
    r.visible[100] = 1;
    r.visible[5000] = 2;
    T_EQ_INT(rig_flush(&r, 1, 0, 4096, P), SG_PM_DONE);
    T_EQ_U64(r.media[100], 1);
    T_EQ_INT(rig_flush(&r, 1, 0, 8192, P), SG_PM_DONE); /* longer than the searched range */
    T_EQ_U64(r.media[5000], 0);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(r.media[5000], 0);
    r.visible[5000] = 3;
    sg_persist_orderly(r.p);
    T_EQ_U64(r.media[5000], 3);
    rig_down(&r);
}

static void tracking_begins(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.config.cpu_tracking = false;
    rig_up(&r, 65536);
    r.visible[100] = 1;
    rig_write_u64(&r, 1, 4096, 1);
    r.config.cpu_tracking = true;
    rig_configure(&r);
    sg_assert_persist_state(r.p, true);
    rig_store(&r, 0, 128, 1);
    rig_cpu_flush(&r, 0, 100, SG_PERSIST_CLWB);
    r.config.cpu_tracking = false; /* its fence will not be reported */
    rig_configure(&r);
    T_EQ_U64(r.media[100], 1);
    T_EQ_U64(rig_media(&r, 128), 0);
    rig_down(&r);
}

static uint64_t asked_from;

static uint64_t next_differing(void *opaque, int extent, uint64_t from, uint64_t *len)
{
    asked_from = from;
    *len = 4096;
    return from <= 8192 ? SG_MAX(from, 8192) : 65536;
}

static void bounded_search(void)
{
    static const struct sg_persist_ops ops = { .next_differing = next_differing };
    struct sg_persist_policy policy = { .outcome = SG_PERSIST_KEEP_ALL };
    struct sg_persist_extent extent = { .base = RIG_BASE, .size = 65536 };
    struct sg_persist *p = sg_persist_new(NULL, NULL, &ops, NULL);
    struct sg_persist_report *report;

    extent.visible = g_malloc0(65536);
    extent.media = g_malloc0(65536);
    T_EQ_INT(sg_persist_add(p, &extent), 0);
    extent.visible[0] = 1; /* the owner says that this page is equal */
    extent.visible[8192 + 64] = 1;
    report = sg_persist_cut(p, &policy);
    T_EQ_U64(extent.media[0], 0);
    T_EQ_U64(extent.media[8192 + 64], 1);
    T_EQ_U64(report->untracked[SG_PERSIST_KEPT], 1);
    T_TRUE(report->untracked_counted);
    sg_persist_report_free(report);
    sg_persist_free(p);
    g_free(extent.visible);
    g_free(extent.media);
}

/* Kept data that stay visible are not copied, and the next cut does not lose them either. */
static void what_stays(void)
{
    static const struct sg_persist_ops ops = { .may_stay = true };
    const struct sg_persist_source adapter = { .agent = SG_PERSIST_ADAPTER, .qpn = 1 };
    struct sg_persist_policy policy = { .outcome = SG_PERSIST_LOSE_ALL };
    struct sg_persist_extent extent = { .base = RIG_BASE, .size = 65536 };
    struct sg_persist_config config;
    struct sg_persist_report *report;
    struct sg_persist *p;
    unsigned round;

    sg_persist_config_init(&config);
    config.untracked = SG_PERSIST_UNTRACKED_KEEP;
    config.placement_delay_ns = 0;
    config.posted_drain = SG_PERSIST_EAGER;
    p = sg_persist_new(&config, NULL, &ops, NULL);
    extent.visible = g_malloc0(65536);
    extent.media = g_malloc0(65536);
    T_EQ_INT(sg_persist_add(p, &extent), 0);
    for (round = 1; round < 4; round++) {
        extent.visible[100] = round;
        extent.visible[8192] = round;
        T_TRUE(sg_persist_dma_write(p, &adapter, RIG_BASE + 8192 + 64, "lost", 4));
        report = sg_persist_cut(p, &policy);
        T_TRUE(report->stays);
        sg_persist_report_free(report);
        sg_persist_restart(p);
        T_EQ_U64(extent.visible[100], round);
        T_EQ_U64(extent.media[100], round - 1);
        /* In a page with an adapter's data, the cut writes both visible memory and media. */
        T_EQ_U64(extent.visible[8192], round);
        T_EQ_U64(extent.media[8192], round);
        T_EQ_U64(extent.visible[8192 + 64], 0);
        sg_persist_write_back(p, RIG_BASE, 65536);
        T_EQ_U64(extent.media[100], round);
    }
    config.untracked = SG_PERSIST_UNTRACKED_AT_RISK;
    T_TRUE(!sg_persist_configure(p, &config));
    extent.visible[200] = 1;
    report = sg_persist_cut(p, &policy);
    T_TRUE(!report->stays);
    T_EQ_U64(extent.media[200], 0);
    sg_persist_report_free(report);
    sg_persist_free(p);
    g_free(extent.visible);
    g_free(extent.media);
}

/* ---- Configuration ---- */

static void configuration(void)
{
    struct dom_rig r;
    struct sg_persist_config bad;

    rig_simple(&r, SG_PERSIST_ADR);
    bad = r.config;
    bad.domain = SG_PERSIST_DOMAINS;
    T_NOT_NULL(sg_persist_configure(r.p, &bad));
    bad = r.config;
    bad.one_in = 0;
    T_NOT_NULL(sg_persist_configure(r.p, &bad));
    bad = r.config;
    bad.eviction = SG_PERSIST_PACES;
    T_NOT_NULL(sg_persist_configure(r.p, &bad));
    bad = r.config;
    bad.placement_delay_ns = UINT64_MAX;
    T_NOT_NULL(sg_persist_configure(r.p, &bad));
    T_EQ_U64(sg_persist_config(r.p)->domain, SG_PERSIST_ADR);
    T_EQ_INT(sg_persist_domain_parse("eadr"), SG_PERSIST_EADR);
    T_EQ_INT(sg_persist_domain_parse("ram"), -1);
    T_EQ_INT(sg_persist_pace_parse(sg_persist_pace_name(SG_PERSIST_RANDOM)), SG_PERSIST_RANDOM);
    T_EQ_INT(sg_persist_outcome_parse("worst-for"), SG_PERSIST_WORST_FOR);
    rig_down(&r);
}

/* Data that waited under the old configuration are not lost under the new one. */
static void changes(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.config.domain = SG_PERSIST_NONE;
    r.config.placement_delay_ns = 1000;
    r.config.posted_drain = SG_PERSIST_NEVER;
    r.config.store_buffer = true;
    rig_up(&r, 65536);
    rig_write_u64(&r, 1, 0, 1);
    rig_store(&r, 0, 64, 2);
    rig_cpu_flush(&r, 0, 64, SG_PERSIST_CLWB);
    rig_sfence(&r, 0);
    rig_store_nt(&r, 0, 128, 3);
    T_EQ_U64(rig_media(&r, 64), 0);
    r.config.domain = SG_PERSIST_ADR;
    r.config.placement_delay_ns = 0;
    r.config.posted_drain = SG_PERSIST_EAGER;
    rig_configure(&r);
    sg_assert_persist_state(r.p, true);
    T_EQ_U64(rig_visible(&r, 0), 1);
    T_EQ_U64(rig_media(&r, 64), 2);
    r.config.domain = SG_PERSIST_NONE;
    rig_configure(&r);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(rig_media(&r, 64), 2);
    rig_down(&r);
}

static const struct t_case cases[] = {
    { "worst-for: least inside, most outside", worst_for },
    { "worst-for with a seed: torn inside, never whole", torn_range },
    { "worst-for of what is in S1", worst_of_posted },
    { "the same seeds, the same media", repeatable },
    { "armed at the Nth event: frozen from then on", nth_event },
    { "armed at each milestone", milestones },
    { "armed at a Flush: no answer", at_the_flush },
    { "armed at one of several events of a call", several_events_of_a_call },
    { "untracked CPU stores: the stated policies", untracked },
    { "untracked CPU stores: Flush and an orderly end find them", untracked_flush },
    { "tracking begins and ends", tracking_begins },
    { "untracked CPU stores: the owner bounds the search", bounded_search },
    { "untracked CPU stores: what is kept stays where it is", what_stays },
    { "configuration is checked", configuration },
    { "configuration changes at run time", changes },
};

T_MAIN(cases)
