/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Limits for exploring: nothing is merged, and store buffers keep what nobody has proved to have
 * left them.  test_exact.c compares the outcomes with the contract.
 */
#include "base/bytes.h"
#include "rig.h"

static void up(struct dom_rig *r, bool exact)
{
    rig_init(r);
    if (exact) {
        sg_persist_limits_exact(&r->limits);
        r->limits.check = true;
    }
    r->config.store_buffer = true;
    r->config.domain = SG_PERSIST_EADR;
    rig_up(r, 65536);
}

static struct sg_persist_stats stats(const struct dom_rig *r)
{
    struct sg_persist_stats s;

    sg_persist_stats(r->p, &s);
    return s;
}

static void many_versions(struct dom_rig *r)
{
    uint8_t line[64];

    r->config.store_buffer = false;
    r->config.domain = SG_PERSIST_ADR;
    rig_configure(r);
    for (unsigned i = 1; i <= 20; i++) {
        memset(line, 0, sizeof(line));
        line[0] = i;
        rig_write(r, 1, 0, line, sizeof(line));
    }
    for (unsigned i = 21; i <= 30; i++) {
        rig_store(r, 0, 0, i);
    }
}

/* Each value that the first atom ever had. */
static void versions(void)
{
    struct dom_rig proto;
    struct dom_rig live;

    rig_init(&proto);
    sg_persist_limits_exact(&proto.limits);
    T_EQ_U64(rig_outcomes(&proto, many_versions, 0, 2000), (1ull << 31) - 1);
    up(&live, true);
    many_versions(&live);
    T_EQ_U64(stats(&live).merged, 0);
    rig_down(&live);
    up(&live, false);
    many_versions(&live);
    T_TRUE(stats(&live).merged > 0);
    rig_down(&live);
}

static void buffers(void)
{
    struct dom_rig r;

    for (unsigned exact = 0; exact < 2; exact++) {
        up(&r, exact);
        for (unsigned i = 0; i < 100; i++) {
            rig_store(&r, 0, i * 64, 1);
            rig_store_nt(&r, 0, 16384 + i * 64, 1);
        }
        T_EQ_U64(stats(&r).stage[SG_PERSIST_SB], exact ? 200 : 64);
        T_TRUE((stats(&r).merged == 0) == (exact != 0));
        rig_down(&r);
    }
}

/* Flushes that wait for a fence are not executed before it, however many. */
static void flushes(void)
{
    struct dom_rig r;

    up(&r, true);
    r.config.domain = SG_PERSIST_ADR;
    rig_configure(&r);
    r.limits.check = false;
    rig_store(&r, 0, 0, 1);
    for (unsigned i = 0; i < 70000; i++) {
        rig_cpu_flush(&r, 0, i % 1024 * 64, SG_PERSIST_CLWB);
    }
    T_EQ_U64(rig_media(&r, 0), 0);
    rig_sfence(&r, 0);
    T_EQ_U64(rig_media(&r, 0), 1);
    rig_down(&r);
}

/* Who makes a plain store leave its processor. */
static void who_acts(void)
{
    static const struct {
        bool exact, all_loads;
        unsigned adapter, load, store, line; /* lines in S2' after each acted */
    } rows[] = {
        { false, false, 0, 0, 1, 0 },
        { true, false, 2, 2, 1, 1 },
        { true, true, 2, 2, 3, 1 },
    };

    for (unsigned i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct sg_persist_source cpu = { .agent = SG_PERSIST_CPU, .unit = 1 };
        struct dom_rig r;

        T_CONTEXT("row %u", i);
        up(&r, rows[i].exact);
        rig_down(&r);
        r.limits.all_loads = rows[i].all_loads;
        rig_up(&r, 65536);
        rig_store(&r, 0, 0, 1);
        rig_store(&r, 0, 64, 1);
        rig_write_u64(&r, 1, 128, 1);
        T_EQ_U64(stats(&r).stage[SG_PERSIST_SB], rows[i].adapter);
        sg_persist_cpu_load(r.p, &cpu, RIG_BASE + 128, 8);
        T_EQ_U64(stats(&r).stage[SG_PERSIST_SB], rows[i].load);
        rig_store(&r, 1, 192, 1);
        T_EQ_U64(stats(&r).stage[SG_PERSIST_SB], rows[i].store);
        sg_persist_cpu_sync(r.p);
        T_EQ_U64(stats(&r).stage[SG_PERSIST_SB], 0);
        rig_store(&r, 0, 0, 2);
        rig_store(&r, 0, 64, 2);
        rig_write_u64(&r, 1, 8, 1);
        T_EQ_U64(stats(&r).stage[SG_PERSIST_SB], rows[i].line);
        rig_down(&r);
    }
}

/* What was posted to the atoms of a store was there before it. */
static void order_of_memory(void)
{
    uint8_t data[8] = { 9 };
    struct sg_persist_source who = { .agent = SG_PERSIST_CPU };

    for (unsigned exact = 0; exact < 2; exact++) {
        struct dom_rig r;

        up(&r, exact);
        r.config.posted_drain = SG_PERSIST_NEVER;
        rig_configure(&r);
        for (unsigned i = 0; i < 4; i++) {
            rig_write_u64(&r, 1, i * 64, 1);
        }
        rig_store(&r, 0, 64, 5);
        T_EQ_U64(rig_visible(&r, 0), exact);
        sg_persist_will_change(r.p, RIG_BASE + 128, 8);
        memcpy(r.visible + 128, data, 8);
        T_TRUE(sg_persist_cpu_store(r.p, &who, RIG_BASE + 128, data, 8, 0));
        T_EQ_U64(stats(&r).stage[SG_PERSIST_S1], exact ? 8 : 32);
        sg_persist_device_fence(r.p, 0);
        T_EQ_U64(rig_visible(&r, 64), exact ? 5 : 1);
        T_EQ_U64(rig_visible(&r, 128), exact ? 9 : 1);
        rig_down(&r);
    }
}

static const struct t_case cases[] = {
    { "all versions of a line", versions },
    { "buffers of processors", buffers },
    { "flushes that wait for a fence", flushes },
    { "who makes a plain store leave its processor", who_acts },
    { "changes are in the order of visible memory", order_of_memory },
};

T_MAIN(cases)
