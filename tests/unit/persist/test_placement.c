/* SPDX-License-Identifier: GPL-2.0-or-later */
/* S0 and S1: delay, reordering, FIFO per device, what makes data move on, the effect of a cut. */
#include "base/bytes.h"
#include "rig.h"

static void up(struct dom_rig *r, uint64_t delay, bool reorder, enum sg_persist_pace iio)
{
    rig_init(r);
    r->config.placement_delay_ns = delay;
    r->config.placement_order = reorder ? SG_PERSIST_RANDOM_ORDER : SG_PERSIST_IN_ORDER;
    r->config.posted_drain = iio;
    rig_up(r, 65536);
}

static void at_once(void)
{
    struct dom_rig r;

    up(&r, 0, false, SG_PERSIST_EAGER);
    rig_write_u64(&r, 1, 0, 7);
    T_EQ_U64(rig_visible(&r, 0), 7);
    T_EQ_U64(rig_media(&r, 0), 0);
    T_EQ_U64(sg_persist_next_due(r.p), SG_NEVER);
    rig_down(&r);
}

static void delay(void)
{
    struct dom_rig r;
    struct sg_persist_stats stats;

    up(&r, 1000, false, SG_PERSIST_EAGER);
    sg_persist_tick(r.p, 500);
    rig_write_u64(&r, 1, 0, 7);
    T_EQ_U64(sg_persist_next_due(r.p), 1500);
    sg_persist_tick(r.p, 1499);
    T_EQ_U64(rig_visible(&r, 0), 0);
    rig_write_u64(&r, 1, 64, 8);
    sg_persist_stats(r.p, &stats);
    T_EQ_U64(stats.stage[SG_PERSIST_S0], 16);
    sg_persist_tick(r.p, 1500);
    T_EQ_U64(rig_visible(&r, 0), 7);
    T_EQ_U64(rig_visible(&r, 64), 0);
    T_EQ_U64(sg_persist_next_due(r.p), 2499);
    sg_persist_tick(r.p, 2499);
    T_EQ_U64(rig_visible(&r, 64), 8);
    T_EQ_U64(sg_persist_next_due(r.p), SG_NEVER);
    rig_down(&r);
}

static void settle(void)
{
    struct dom_rig r;

    up(&r, 1000000, false, SG_PERSIST_NEVER);
    rig_write_u64(&r, 1, 0, 7);
    rig_write_u64(&r, 2, 64, 8);
    sg_persist_settle(r.p, 0, 1);
    T_EQ_U64(rig_visible(&r, 0), 0); /* S1 */
    sg_persist_device_fence(r.p, 1);
    T_EQ_U64(rig_visible(&r, 0), 0); /* another device's fence */
    sg_persist_device_fence(r.p, 0);
    T_EQ_U64(rig_visible(&r, 0), 7);
    T_EQ_U64(rig_visible(&r, 64), 0); /* another connection */
    T_EQ_INT(rig_flush(&r, 2, 64, 8, SG_FLUSH_GLOBAL), SG_PM_DONE);
    T_EQ_U64(rig_visible(&r, 64), 8);
    T_EQ_U64(rig_media(&r, 64), 0);
    rig_down(&r);
}

/* Each adapter numbers its queue pairs itself: to settle or forget one leaves the other's. */
static void same_number(void)
{
    struct sg_persist_source second = { .agent = SG_PERSIST_ADAPTER, .unit = 1, .qpn = 1 };
    uint8_t eight[8] = { 8 };
    struct dom_rig r;

    up(&r, 1000, false, SG_PERSIST_EAGER);
    rig_write_u64(&r, 1, 0, 7);
    T_TRUE(sg_persist_dma_write(r.p, &second, RIG_BASE + 64, eight, 8));
    T_TRUE(sg_persist_dma_write(r.p, &second, RIG_BASE + 128, eight, 8));
    sg_persist_settle(r.p, 1, 1);
    T_EQ_U64(rig_visible(&r, 0), 0);
    T_EQ_U64(rig_visible(&r, 64), 8);
    T_EQ_U64(rig_visible(&r, 128), 8);
    T_TRUE(sg_persist_dma_write(r.p, &second, RIG_BASE + 192, eight, 8));
    sg_persist_forget(r.p, 1, 1);
    sg_persist_tick(r.p, 100000);
    T_EQ_U64(rig_visible(&r, 0), 7);
    T_EQ_U64(rig_visible(&r, 192), 0);
    rig_down(&r);
}

static void forget(void)
{
    struct dom_rig r;

    up(&r, 1000, false, SG_PERSIST_EAGER);
    rig_write_u64(&r, 1, 0, 7);
    sg_persist_forget(r.p, 0, 1);
    sg_persist_tick(r.p, 100000);
    T_EQ_U64(rig_visible(&r, 0), 0);
    T_EQ_U64(sg_persist_next_due(r.p), SG_NEVER);
    rig_down(&r);
}

static void reorder(void)
{
    unsigned seen = 0;

    /* Two writes of one connection, watched while they become visible. */
    for (unsigned seed = 1; seed <= 50; seed++) {
        struct dom_rig r;

        rig_init(&r);
        r.config.placement_order = SG_PERSIST_RANDOM_ORDER;
        r.config.placement_delay_ns = 1000;
        r.limits.seed = seed;
        rig_up(&r, 65536);
        rig_write_u64(&r, 1, 0, 1);
        rig_write_u64(&r, 1, 64, 1);
        while (sg_persist_next_due(r.p) != SG_NEVER) {
            sg_persist_tick(r.p, sg_persist_next_due(r.p));
            seen |= 1u << (rig_visible(&r, 0) + 2 * rig_visible(&r, 64));
        }
        T_EQ_U64(rig_visible(&r, 0) + 2 * rig_visible(&r, 64), 3);
        rig_down(&r);
    }
    T_EQ_U64(seen, 0xe); /* first alone, second alone, both */
}

static void reorder_settled(void)
{
    unsigned first = 0;

    /* Settling posts in random order; a cut then leaves a prefix of that order. */
    for (unsigned seed = 1; seed <= 100; seed++) {
        struct dom_rig r;

        rig_init(&r);
        r.config.placement_order = SG_PERSIST_RANDOM_ORDER;
        r.config.posted_drain = SG_PERSIST_NEVER;
        r.config.domain = SG_PERSIST_EADR;
        r.limits.seed = seed;
        rig_up(&r, 65536);
        rig_write_u64(&r, 1, 0, 1);
        rig_write_u64(&r, 1, 64, 1);
        sg_persist_settle(r.p, 0, 1);
        T_EQ_U64(rig_visible(&r, 0) + rig_visible(&r, 64), 0);
        rig_cut(&r, SG_PERSIST_OUTCOME_RANDOM, seed);
        first |= 1u << (rig_media(&r, 0) + 2 * rig_media(&r, 64));
        rig_down(&r);
    }
    T_EQ_U64(first, 0xf);
}

static void three_posted(struct dom_rig *r)
{
    rig_write_u64(r, 1, 0, 1);
    rig_write_u64(r, 2, 64, 1);
    rig_write_u64(r, 1, 128, 1);
}

static unsigned three(const struct dom_rig *r)
{
    return rig_media(r, 0) + 2 * rig_media(r, 64) + 4 * rig_media(r, 128);
}

static void prefix(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    proto.config.posted_drain = SG_PERSIST_NEVER;
    proto.config.domain = SG_PERSIST_EADR;
    T_EQ_U64(rig_outcomes_of(&proto, three_posted, three, 300),
             SET1(0) | SET1(1) | SET1(3) | SET1(7));
    /* The prefix reaches the cache, whose lines survive in any subset. */
    proto.config.domain = SG_PERSIST_ADR;
    T_EQ_U64(rig_outcomes_of(&proto, three_posted, three, 1000), 0xff);
    /* Without DDIO it reaches the memory controller. */
    proto.config.ddio = false;
    T_EQ_U64(rig_outcomes_of(&proto, three_posted, three, 300),
             SET1(0) | SET1(1) | SET1(3) | SET1(7));
}

static void two_devices_posted(struct dom_rig *r)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .unit = 1, .qpn = 1 };
    uint8_t one[8] = { 1 };

    rig_write_u64(r, 1, 0, 1);
    T_TRUE(sg_persist_dma_write(r->p, &who, RIG_BASE + 64, one, 8));
    T_TRUE(sg_persist_dma_write(r->p, &who, RIG_BASE + 128, one, 8));
}

static void per_device(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    proto.config.posted_drain = SG_PERSIST_NEVER;
    proto.config.domain = SG_PERSIST_EADR;
    T_EQ_U64(rig_outcomes_of(&proto, two_devices_posted, three, 500),
             SET1(0) | SET1(1) | SET1(2) | SET1(3) | SET1(6) | SET1(7));
}

/* Two Writes of one connection wait in the adapter, and one of another one. */
static void three_waiting(struct dom_rig *r)
{
    rig_write_u64(r, 1, 0, 1);
    rig_write_u64(r, 1, 64, 1);
    rig_write_u64(r, 2, 128, 1);
}

static void placed_at_last(void)
{
    struct sg_persist_policy policy = { .outcome = SG_PERSIST_WORST_FOR,
                                        .addr = RIG_BASE + 64,
                                        .len = 8 };
    struct sg_persist_report *report;
    struct dom_rig proto;

    rig_init(&proto);
    proto.config.placement_delay_ns = 1000;
    proto.config.domain = SG_PERSIST_WHOLE;
    T_EQ_U64(rig_outcomes_of(&proto, three_waiting, three, 500),
             SET1(0) | SET1(1) | SET1(3) | SET1(4) | SET1(5) | SET1(7));
    proto.config.placement_order = SG_PERSIST_RANDOM_ORDER;
    T_EQ_U64(rig_outcomes_of(&proto, three_waiting, three, 500), 0xff);
    rig_up(&proto, 4096);
    three_waiting(&proto);
    report = sg_persist_cut(proto.p, &policy);
    T_EQ_U64(three(&proto), 5); /* all but the range */
    T_EQ_U64(report->count[SG_PERSIST_S0][SG_PERSIST_KEPT], 16);
    T_EQ_U64(report->count[SG_PERSIST_S0][SG_PERSIST_LOST], 8);
    sg_persist_report_free(report);
    rig_down(&proto);
}

static void posted_line(struct dom_rig *r)
{
    uint8_t line[64];

    memset(line, 0x11, sizeof(line));
    rig_write(r, 1, 4, line, 56); /* unaligned: two half atoms */
}

static unsigned whole_atoms(const struct dom_rig *r)
{
    unsigned n = 0;

    if (sg_get_le32(r->media + 4) == 0x11111111) {
        n++;
    }
    for (unsigned a = 1; a < 7; a++) {
        uint64_t v = sg_get_le64(r->media + a * 8);

        if (v != 0 && v != 0x1111111111111111) {
            return 64; /* torn */
        }
        n += v != 0;
    }
    n += sg_get_le32(r->media + 56) == 0x11111111;
    for (unsigned a = 0; a < 64; a++) { /* ascending, without holes */
        if (a >= 4 && a < 4 + 4 + (n > 1 ? (n - 1) * 8 : 0) && a < 60 && n) {
            if (r->media[a] != 0x11) {
                return 64;
            }
        }
    }
    return n;
}

static void atoms(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    proto.config.posted_drain = SG_PERSIST_NEVER;
    proto.config.domain = SG_PERSIST_EADR;
    T_EQ_U64(rig_outcomes_of(&proto, posted_line, whole_atoms, 500), 0x1ff);
    proto.config.posted_drain = SG_PERSIST_EAGER;
    proto.config.domain = SG_PERSIST_ADR;
    T_EQ_U64(rig_outcomes_of(&proto, posted_line, whole_atoms, 500), 0x1ff);
}

static void limits(void)
{
    struct dom_rig r;
    struct sg_persist_stats stats;
    uint8_t buf[100];

    memset(buf, 1, sizeof(buf));
    rig_init(&r);
    r.config.placement_delay_ns = 1000;
    r.config.posted_drain = SG_PERSIST_NEVER;
    r.limits.s0_octets = 1000;
    r.limits.s1_octets = 500;
    rig_up(&r, 65536);
    for (unsigned i = 0; i < 40; i++) {
        rig_write(&r, 1, i * 100, buf, 100);
    }
    sg_persist_stats(r.p, &stats);
    T_EQ_U64(stats.stage[SG_PERSIST_S0], 1000);
    T_EQ_U64(stats.stage[SG_PERSIST_S1], 500);
    T_EQ_U64(r.visible[2499], 1);
    T_EQ_U64(r.visible[2500], 0);
    rig_down(&r);
}

static void random_root_complex(void)
{
    struct dom_rig r;

    up(&r, 0, false, SG_PERSIST_RANDOM);
    rig_write_u64(&r, 1, 0, 7);
    if (!rig_visible(&r, 0)) {
        T_TRUE(sg_persist_next_due(r.p) != SG_NEVER);
    }
    sg_persist_tick(r.p, 1000000); /* all data move on in the end */
    T_EQ_U64(rig_visible(&r, 0), 7);
    rig_down(&r);
}

static void atom_store(void)
{
    struct dom_rig r;
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 1 };
    uint8_t atom[8] = { 9 };

    up(&r, 0, false, SG_PERSIST_NEVER);
    rig_write_u64(&r, 1, 0, 7);
    T_TRUE(sg_persist_atom_store(r.p, &who, RIG_BASE + 64, atom));
    T_FALSE(sg_persist_atom_store(r.p, &who, RIG_BASE + 60, atom));
    T_FALSE(sg_persist_atom_store(r.p, &who, RIG_BASE + 65536, atom));
    sg_persist_device_fence(r.p, 0);
    T_EQ_U64(rig_visible(&r, 0), 7);
    T_EQ_U64(rig_visible(&r, 64), 9);
    T_EQ_U64(rig_media(&r, 64), 0); /* E14: never persistent by itself */
    rig_down(&r);
}

static void atomic(void)
{
    struct dom_rig r;
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 1 };
    uint64_t value = 7;

    up(&r, 0, false, SG_PERSIST_NEVER);
    rig_write_u64(&r, 1, 64, 7);
    T_EQ_U64(rig_visible(&r, 64), 0); /* in S1 */
    T_TRUE(sg_persist_atomic(r.p, &who, RIG_BASE + 64, &value, 9));
    T_EQ_U64(value, 7); /* it sees the earlier write, and replaces it at once */
    T_EQ_U64(rig_visible(&r, 64), 9);
    T_EQ_U64(rig_media(&r, 64), 0); /* E15: never persistent by itself */
    value = 8;
    T_TRUE(sg_persist_atomic(r.p, &who, RIG_BASE + 64, &value, 1));
    T_EQ_U64(value, 9);
    T_EQ_U64(rig_visible(&r, 64), 9);
    T_FALSE(sg_persist_atomic(r.p, &who, RIG_BASE + 60, &value, 1));
    T_FALSE(sg_persist_atomic(r.p, &who, RIG_BASE + 65536, &value, 1));
    who.unit = SG_PERSIST_DEVICES;
    T_FALSE(sg_persist_atomic(r.p, &who, RIG_BASE + 64, &value, 1));
    T_EQ_U64(rig_visible(&r, 64), 9);
    rig_down(&r);
}

static void refused(void)
{
    struct dom_rig r;
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 1 };
    uint8_t buf[64] = { 0 };

    up(&r, 0, false, SG_PERSIST_EAGER);
    T_FALSE(sg_persist_dma_write(r.p, &who, RIG_BASE - 1, buf, 8));
    T_FALSE(sg_persist_dma_write(r.p, &who, RIG_BASE + 65536 - 7, buf, 8));
    T_FALSE(sg_persist_dma_write(r.p, &who, UINT64_MAX - 3, buf, 8));
    T_FALSE(sg_persist_dma_write(r.p, &who, RIG_BASE, buf, 0));
    who.unit = SG_PERSIST_DEVICES;
    T_FALSE(sg_persist_dma_write(r.p, &who, RIG_BASE, buf, 8));
    T_EQ_U64(sg_persist_events(r.p), 0);
    rig_down(&r);
}

static void neighbours(void)
{
    struct dom_rig r;
    struct sg_persist_extent extent = { .base = RIG_BASE + 65536, .size = 4096 + 64 };
    uint8_t buf[256];
    uint64_t off;

    up(&r, 0, false, SG_PERSIST_EAGER);
    extent.visible = g_malloc0(extent.size);
    extent.media = g_malloc0(extent.size);
    T_EQ_INT(sg_persist_add(r.p, &extent), 1);
    T_EQ_INT(sg_persist_add(r.p, &extent), SG_PERSIST_NO_EXTENT); /* overlap */
    memset(buf, 3, sizeof(buf));
    rig_write(&r, 1, 65536 - 100, buf, sizeof(buf));
    T_EQ_U64(r.visible[65535], 3);
    T_EQ_U64(extent.visible[155], 3);
    T_EQ_INT(rig_flush(&r, 1, 65536 - 100, sizeof(buf), SG_FLUSH_PERSISTENT), SG_PM_DONE);
    T_EQ_U64(r.media[65535], 3);
    T_EQ_U64(extent.media[155], 3);
    T_EQ_U64(sg_persist_query(r.p, RIG_BASE, 65536 + 4096 + 64), SG_PM_PERSISTENT | SG_PM_SOME);
    T_EQ_U64(sg_persist_query(r.p, RIG_BASE, 65536 + 4096 + 65), SG_PM_SOME);
    T_EQ_U64(sg_persist_query(r.p, RIG_BASE - 8, 8), 0);
    T_EQ_INT(sg_persist_find(r.p, RIG_BASE + 65536 + 70, 8, &off), 1);
    T_EQ_U64(off, 70);
    T_EQ_INT(sg_persist_find(r.p, RIG_BASE + 65532, 8, &off), SG_PERSIST_NO_EXTENT);
    sg_persist_remove(r.p, 1);
    T_EQ_U64(sg_persist_query(r.p, RIG_BASE + 65536, 1), 0);
    /* The other extent is still there. */
    T_EQ_U64(sg_persist_query(r.p, RIG_BASE, 65536), SG_PM_PERSISTENT | SG_PM_SOME);
    rig_write_u64(&r, 1, 0, 7);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(rig_media(&r, 0), 0);
    g_free(extent.visible);
    g_free(extent.media);
    rig_down(&r);
}

/* A region's memory mode overrides the machine's setting, for each way of writing. */
static void mode(void)
{
    static const struct {
        bool ddio;
        uint8_t mode;
        bool kept;
    } rows[] = {
        { true, SG_MEM_MODE_DEFAULT, false }, { true, SG_MEM_MODE_CACHED, false },
        { true, SG_MEM_MODE_DIRECT, true },   { false, SG_MEM_MODE_DEFAULT, true },
        { false, SG_MEM_MODE_CACHED, false }, { false, SG_MEM_MODE_DIRECT, true },
    };

    for (unsigned i = 0; i < 3 * G_N_ELEMENTS(rows); i++) {
        struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 1 };
        uint8_t atom[SG_PERSIST_ATOM] = { 7 }, found[SG_PERSIST_ATOM];
        unsigned row = i / 3, way = i % 3;
        struct dom_rig r;

        T_CONTEXT("row %u, way %u", row, way);
        rig_init(&r);
        r.config.ddio = rows[row].ddio;
        r.config.posted_drain = way ? SG_PERSIST_NEVER : SG_PERSIST_EAGER;
        rig_up(&r, 65536);
        who.mode = rows[row].mode;
        T_TRUE(way == 2 ? sg_persist_atom_store(r.p, &who, RIG_BASE, atom)
                        : sg_persist_dma_write(r.p, &who, RIG_BASE, atom, sizeof(atom)));
        sg_persist_device_fence(r.p, 0);
        T_EQ_U64(rig_visible(&r, 0), 7);
        T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE, found, sizeof(found)), SG_PM_DONE);
        T_EQ_INT(found[0], rows[row].kept ? 7 : 0);
        rig_down(&r);
    }
}

/* After a change to IN_ORDER, a piece that is due waits for earlier pieces that are not. */
static void order_again(void)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct dom_rig r;

        T_CONTEXT("seed %" PRIu64, seed);
        rig_init(&r);
        r.config.placement_delay_ns = 1000;
        r.config.placement_order = SG_PERSIST_RANDOM_ORDER;
        r.limits.seed = seed;
        rig_up(&r, 65536);
        rig_write_u64(&r, 1, 0, 7);
        rig_write_u64(&r, 1, 64, 8);
        r.config.placement_order = SG_PERSIST_IN_ORDER;
        rig_configure(&r);
        for (uint64_t now = 0; now <= 1000; now += 20) {
            sg_persist_tick(r.p, now);
            T_TRUE(rig_visible(&r, 0) == 7 || rig_visible(&r, 64) == 0);
        }
        T_EQ_U64(rig_visible(&r, 64), 8);
        rig_down(&r);
    }
}

static const struct t_case cases[] = {
    { "E1 E3 with nothing in between a write is visible at once", at_once },
    { "E1 a delayed write waits in S0, in order", delay },
    { "E1 E4 settle is per connection, the fence per device", settle },
    { "E1 E4 two adapters have queue pairs of one number", same_number },
    { "S0 of a lost connection is dropped", forget },
    { "E1 writes of one connection are placed out of order", reorder },
    { "E1 settling posts out of order too", reorder_settled },
    { "E1 order that is switched on holds for what waits already", order_again },
    { "S1 a prefix survives", prefix },
    { "S1 the prefix is per device", per_device },
    { "E1 what leaves S0 at the last moment", placed_at_last },
    { "atoms are not torn, lines ascend", atoms },
    { "S0 and S1 are bounded", limits },
    { "E3 a random root complex drains in the end", random_root_complex },
    { "E14 Atomic Write is one atom behind what was posted", atom_store },
    { "E15 an Atomic sees what was posted, and is visible at once", atomic },
    { "writes outside of extents are refused", refused },
    { "extents side by side", neighbours },
    { "E3 a region's memory mode goes before ddio", mode },
};

T_MAIN(cases)
