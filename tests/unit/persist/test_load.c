/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * E5, loads of CPUs: what they prove of S0, S1 and S2'.  test_exact.c compares their outcomes with
 * the contract; these are the cases that its small world does not have.
 */
#include "base/bytes.h"
#include "rig.h"

static void load(struct dom_rig *r, unsigned vcpu, uint64_t off, uint64_t len)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_CPU, .unit = vcpu };

    sg_persist_cpu_load(r->p, &who, RIG_BASE + off, len);
}

static void lazy(struct dom_rig *r, uint64_t delay, bool random_order)
{
    rig_init(r);
    r->config.placement_delay_ns = delay;
    r->config.placement_order = random_order ? SG_PERSIST_RANDOM_ORDER : SG_PERSIST_IN_ORDER;
    r->config.posted_drain = SG_PERSIST_NEVER;
    rig_up(r, 65536);
}

static uint64_t waits(const struct dom_rig *r, enum sg_persist_stage stage)
{
    struct sg_persist_stats stats;

    sg_persist_stats(r->p, &stats);
    return stats.stage[stage];
}

static void part_of_a_segment(void)
{
    uint8_t data[256];
    struct dom_rig r;

    memset(data, 1, sizeof(data));
    lazy(&r, 0, false);
    rig_write_u64(&r, 1, 1024, 5);
    rig_write(&r, 1, 32, data, sizeof(data));
    rig_write_u64(&r, 1, 2048, 6);
    load(&r, 0, 64, 1);
    T_EQ_U64(rig_visible(&r, 1024), 5); /* what is before it */
    T_EQ_U64(rig_visible(&r, 120), 0x0101010101010101);
    T_EQ_U64(rig_visible(&r, 128), 0); /* the next line */
    T_EQ_U64(rig_visible(&r, 2048), 0);
    T_EQ_U64(waits(&r, SG_PERSIST_S1), 256 - 96 + 8);
    load(&r, 0, 127, 2);
    T_EQ_U64(rig_visible(&r, 184), 0x0101010101010101);
    T_EQ_U64(rig_visible(&r, 192), 0);
    sg_persist_device_fence(r.p, 0);
    T_EQ_U64(rig_visible(&r, 280), 0x0101010101010101);
    T_EQ_U64(rig_visible(&r, 2048), 6);
    rig_down(&r);
}

static void in_the_adapter(void)
{
    struct dom_rig r;

    lazy(&r, 1000000, false);
    rig_write_u64(&r, 1, 0, 1);
    rig_write_u64(&r, 2, 64, 2);
    rig_write_u64(&r, 1, 128, 3);
    rig_write_u64(&r, 1, 192, 4);
    load(&r, 0, 128, 8);
    T_EQ_U64(rig_visible(&r, 0), 1);
    T_EQ_U64(rig_visible(&r, 128), 3);
    T_EQ_U64(rig_visible(&r, 64), 0); /* another connection */
    T_EQ_U64(rig_visible(&r, 192), 0);
    T_EQ_U64(waits(&r, SG_PERSIST_S0), 16);
    T_EQ_U64(waits(&r, SG_PERSIST_S1), 0);
    load(&r, 0, 0, 65536);
    T_EQ_U64(waits(&r, SG_PERSIST_S0), 0);
    T_EQ_U64(rig_visible(&r, 64), 2);
    T_EQ_U64(rig_visible(&r, 192), 4);
    rig_down(&r);
}

/* In any order: nothing is before the Write whose data were loaded. */
static void out_of_order(void)
{
    struct dom_rig r;

    lazy(&r, 1000000, true);
    for (unsigned i = 0; i < 6; i++) {
        rig_write_u64(&r, 1, i * 64, i + 1);
    }
    load(&r, 0, 128, 65);
    for (unsigned i = 0; i < 6; i++) {
        T_EQ_U64(rig_visible(&r, i * 64), i == 2 || i == 3 ? i + 1 : 0);
    }
    T_EQ_U64(waits(&r, SG_PERSIST_S0), 32);
    rig_down(&r);
}

static void several_adapters(void)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 1 };
    struct dom_rig r;
    uint8_t data[8];

    lazy(&r, 0, false);
    for (unsigned i = 0; i < 8; i++) {
        who.unit = 7 - i;
        sg_put_le64(data, i + 1);
        T_TRUE(sg_persist_dma_write(r.p, &who, RIG_BASE, data, sizeof(data)));
    }
    load(&r, 0, 0, 8);
    T_EQ_U64(rig_visible(&r, 0), 8); /* the last one, as the CPU saw */
    T_EQ_U64(waits(&r, SG_PERSIST_S1), 0);
    rig_down(&r);
}

static void stores_of_cpus(void)
{
    struct sg_persist_source device = { .agent = SG_PERSIST_OTHER };
    struct dom_rig r;

    rig_init(&r);
    r.config.store_buffer = true;
    rig_up(&r, 65536);
    rig_store_nt(&r, 0, 64, 1);
    rig_store_nt(&r, 0, 192, 1);
    rig_store(&r, 0, 0, 1);
    rig_store(&r, 0, 128, 2);
    T_EQ_U64(waits(&r, SG_PERSIST_SB), 4);
    load(&r, 0, 0, 256); /* its own */
    T_EQ_U64(waits(&r, SG_PERSIST_SB), 4);
    load(&r, 1, 0, 65);
    T_EQ_U64(waits(&r, SG_PERSIST_SB), 2);
    T_EQ_U64(rig_media(&r, 64), 1);
    T_EQ_U64(rig_media(&r, 192), 0);
    sg_persist_cpu_load(r.p, &device, RIG_BASE + 128, 128); /* no CPU: nothing is its own */
    T_EQ_U64(waits(&r, SG_PERSIST_SB), 0);
    rig_down(&r);
}

/* Nothing waits, or the range is none: no event, and no effect. */
static void nothing(void)
{
    struct dom_rig r;
    uint64_t events;

    lazy(&r, 0, false);
    rig_write_u64(&r, 1, 0, 1);
    events = sg_persist_events(r.p);
    load(&r, 0, 64, 4096);
    load(&r, 0, 0, 0);
    load(&r, 0, 8, UINT64_MAX - RIG_BASE);
    sg_persist_cpu_load(r.p, &(struct sg_persist_source){ .agent = SG_PERSIST_CPU }, 0, RIG_BASE);
    T_EQ_U64(sg_persist_events(r.p), events);
    T_EQ_U64(rig_visible(&r, 0), 0);
    sg_persist_cpu_load(r.p, &(struct sg_persist_source){ .agent = SG_PERSIST_CPU }, 0, UINT64_MAX);
    T_EQ_U64(sg_persist_events(r.p), events + 1);
    T_EQ_U64(rig_visible(&r, 0), 1);
    rig_down(&r);
}

static const struct t_case cases[] = {
    { "E5 of a segment arrives what is for the line, and before it", part_of_a_segment },
    { "E5 a connection's earlier Writes have left S0", in_the_adapter },
    { "E5 out of order only the loaded ones have", out_of_order },
    { "E5 of several adapters the last one is seen", several_adapters },
    { "E5 stores of other processors have left them", stores_of_cpus },
    { "E5 a load that proves nothing", nothing },
};

T_MAIN(cases)
