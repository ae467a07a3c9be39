/* SPDX-License-Identifier: GPL-2.0-or-later */
/* E9, E10, E13, reads of the media side, eviction and draining, orderly ends, merged lines. */
#include "base/bytes.h"
#include "rig.h"

#define P SG_FLUSH_PERSISTENT
#define G SG_FLUSH_GLOBAL

static uint64_t media_side(struct dom_rig *r, uint64_t off)
{
    uint8_t buf[8];

    T_EQ_INT(sg_persist_media_read(r->p, RIG_BASE + off, buf, 8), SG_PM_DONE);
    return sg_get_le64(buf);
}

static void persistence(void)
{
    for (unsigned d = 0; d < SG_PERSIST_DOMAINS; d++) {
        for (unsigned ddio = 0; ddio < 2; ddio++) {
            struct dom_rig r;

            T_CONTEXT("domain %u, ddio %u", d, ddio);
            rig_init(&r);
            r.config.domain = d;
            r.config.ddio = ddio;
            r.config.placement_delay_ns = 1000000;
            r.config.posted_drain = SG_PERSIST_NEVER;
            rig_up(&r, 65536);
            rig_write_u64(&r, 1, 0, 1);
            rig_write_u64(&r, 1, 64, 2);
            rig_store(&r, 0, 128, 3);
            rig_store_nt(&r, 0, 192, 4);
            T_EQ_INT(rig_flush(&r, 1, 0, 256, P), SG_PM_DONE);
            for (uint64_t i = 0; i < 4; i++) {
                /* A Flush does not reach into write-combining buffers. */
                T_EQ_U64(rig_media(&r, i * 64), i < 3 ? i + 1 : 0);
                T_EQ_U64(rig_visible(&r, i * 64), i + 1);
            }
            rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
            T_EQ_U64(rig_media(&r, 64), 2);
            rig_down(&r);
        }
    }
}

static void only_the_range(void)
{
    struct dom_rig r;

    rig_simple(&r, SG_PERSIST_ADR);
    for (uint64_t i = 0; i < 8; i++) {
        rig_write_u64(&r, 1, i * 64, 1);
    }
    T_EQ_INT(rig_flush(&r, 1, 100, 200, P | G), SG_PM_DONE);
    for (uint64_t i = 0; i < 8; i++) {
        T_EQ_U64(rig_media(&r, i * 64), i >= 1 && i <= 4);
    }
    rig_down(&r);
}

static void arguments(void)
{
    struct dom_rig r;

    rig_simple(&r, SG_PERSIST_ADR);
    T_EQ_INT(rig_flush(&r, 1, 0, 8, 0), SG_PM_FAILED);
    T_EQ_INT(rig_flush(&r, 1, 65536 - 8, 9, P), SG_PM_FAILED);
    T_EQ_INT(rig_flush(&r, 1, UINT64_MAX - RIG_BASE - 3, 8, P), SG_PM_FAILED);
    T_EQ_INT(rig_flush(&r, 1, 0, 0, P), SG_PM_DONE);
    T_EQ_INT(rig_flush(&r, 1, 0, 65536, P), SG_PM_DONE);
    rig_down(&r);
}

static void latency(void)
{
    struct dom_rig r;
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 1 };
    struct sg_pm_op op = { .len = 8, .flags = P };
    uint64_t least = UINT64_MAX, most = 0;

    rig_init(&r);
    r.config.flush_latency_ns = 1000;
    r.config.flush_latency_random_ns = 500;
    rig_up(&r, 65536);
    for (unsigned i = 0; i < 200; i++) {
        uint64_t now = 10000 * (i + 1);

        sg_persist_tick(r.p, now);
        rig_write_u64(&r, 1, 0, i + 1);
        T_EQ_INT(op.phase, SG_PM_NEW);
        T_EQ_INT(sg_persist_flush(r.p, &who, RIG_BASE, &op), SG_PM_LATER);
        T_TRUE(op.due_ns >= now + 1000 && op.due_ns <= now + 1500);
        least = SG_MIN(least, op.due_ns - now);
        most = SG_MAX(most, op.due_ns - now);
        T_EQ_U64(rig_media(&r, 0), i); /* not before its time */
        sg_persist_tick(r.p, op.due_ns - 1);
        T_EQ_INT(sg_persist_flush(r.p, &who, RIG_BASE, &op), SG_PM_LATER);
        sg_persist_tick(r.p, op.due_ns);
        T_EQ_INT(sg_persist_flush(r.p, &who, RIG_BASE, &op), SG_PM_DONE);
        T_EQ_U64(rig_media(&r, 0), i + 1);
    }
    T_TRUE(most > least + 250); /* a distribution, not a constant */
    /* A Flush with G alone waits for nothing. */
    T_EQ_INT(rig_flush(&r, 1, 0, 8, G), SG_PM_DONE);
    rig_down(&r);
}

static void verify_side(void)
{
    static const uint64_t after[SG_PERSIST_DOMAINS] = {
        [SG_PERSIST_EADR] = 5,
        [SG_PERSIST_WHOLE] = 5,
    };

    for (unsigned d = 0; d < SG_PERSIST_DOMAINS; d++) {
        struct dom_rig r;

        T_CONTEXT("domain %u", d);
        rig_simple(&r, d);
        rig_write_u64(&r, 1, 0, 5);
        T_EQ_U64(media_side(&r, 0), after[d]); /* where it could be lost, it is not shown */
        T_EQ_INT(rig_flush(&r, 1, 0, 8, P), SG_PM_DONE);
        T_EQ_U64(media_side(&r, 0), 5);
        rig_store(&r, 0, 64, 6);
        rig_cpu_flush(&r, 0, 64, SG_PERSIST_CLWB);
        rig_sfence(&r, 0);
        T_EQ_U64(media_side(&r, 64), d == SG_PERSIST_NONE ? 0 : 6);
        sg_persist_deep_flush(r.p, RIG_BASE, 4096);
        T_EQ_U64(media_side(&r, 64), 6);
        rig_down(&r);
    }
}

static void eager(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.config.eviction = SG_PERSIST_EAGER;
    rig_up(&r, 65536);
    rig_write_u64(&r, 1, 0, 1);
    rig_store(&r, 0, 64, 2);
    rig_store_nt(&r, 0, 128, 3);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(rig_media(&r, 0), 1);
    T_EQ_U64(rig_media(&r, 64), 2);
    T_EQ_U64(rig_media(&r, 128), 0); /* not in the cache */
    r.config.domain = SG_PERSIST_NONE;
    rig_configure(&r);
    rig_write_u64(&r, 1, 192, 1);
    T_EQ_U64(rig_media(&r, 192), 0); /* in S3 */
    r.config.drain = SG_PERSIST_EAGER;
    rig_configure(&r);
    T_EQ_U64(rig_media(&r, 192), 1);
    rig_write_u64(&r, 1, 256, 1);
    T_EQ_U64(rig_media(&r, 256), 1);
    rig_down(&r);
}

static void random_pace(void)
{
    unsigned persisted = 0;
    struct dom_rig r;

    rig_init(&r);
    r.config.eviction = SG_PERSIST_RANDOM;
    r.config.domain = SG_PERSIST_NONE;
    r.config.drain = SG_PERSIST_RANDOM;
    rig_up(&r, 65536);
    for (unsigned i = 0; i < 1000; i++) {
        rig_write_u64(&r, 1, i * 64, 1);
    }
    for (unsigned i = 0; i < 1000; i++) {
        persisted += rig_media(&r, i * 64);
    }
    T_NOTE("%u of 1000 lines went to the media by themselves", persisted);
    T_TRUE(persisted > 0 && persisted < 500);
    rig_down(&r);
}

static void orderly(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.config.domain = SG_PERSIST_NONE;
    r.config.placement_delay_ns = 1000000;
    r.config.posted_drain = SG_PERSIST_NEVER;
    r.config.store_buffer = true;
    rig_up(&r, 65536);
    rig_write_u64(&r, 1, 0, 1);
    rig_write_u64(&r, 2, 64, 2);
    sg_persist_settle(r.p, 0, 2);
    rig_store(&r, 0, 128, 3);
    rig_store_nt(&r, 0, 192, 4);
    sg_persist_orderly(r.p);
    sg_assert_persist_state(r.p, true);
    T_EQ_MEM(r.media, r.visible, r.size);
    for (uint64_t i = 0; i < 4; i++) {
        T_EQ_U64(rig_media(&r, i * 64), i + 1);
    }
    rig_down(&r);
}

static void other_device(void)
{
    struct dom_rig r;
    struct sg_persist_source who = { .agent = SG_PERSIST_OTHER };

    rig_simple(&r, SG_PERSIST_ADR);
    rig_write_u64(&r, 1, 0, 1);
    rig_store(&r, 0, 64, 1);
    memset(r.visible + 32, 7, 100);
    T_TRUE(sg_persist_other_write(r.p, &who, RIG_BASE + 32, 100));
    T_FALSE(sg_persist_other_write(r.p, &who, RIG_BASE + 65500, 100));
    sg_assert_persist_state(r.p, true);
    T_EQ_INT(rig_flush(&r, 1, 0, 256, P), SG_PM_DONE);
    T_EQ_MEM(r.media, r.visible, 256);
    r.config.ddio = false;
    rig_configure(&r);
    memset(r.visible + 1000, 8, 100);
    T_TRUE(sg_persist_other_write(r.p, &who, RIG_BASE + 1000, 100));
    T_EQ_MEM(r.media + 1000, r.visible + 1000, 100);
    rig_down(&r);
}

/* ---- Many stores to one line ---- */

static unsigned stores_wanted;

static void long_history(struct dom_rig *r)
{
    for (unsigned i = 1; i <= stores_wanted; i++) {
        rig_store(r, 0, i % 2 ? 0 : 8, i);
    }
}

static unsigned last_value(const struct dom_rig *r)
{
    uint64_t a = rig_media(r, 0), b = rig_media(r, 8), n = SG_MAX(a, b);

    /* State n has the last odd and the last even value up to n. */
    if (n && SG_MIN(a, b) != n - 1) {
        return 64;
    }
    return n;
}

static void every_state(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    stores_wanted = 20;
    T_EQ_U64(rig_outcomes_of(&proto, long_history, last_value, 2000), 0x1fffff);
}

static void merged_states(void)
{
    struct dom_rig proto;
    uint64_t set;

    rig_init(&proto);
    proto.limits.line_stores = 8;
    stores_wanted = 40;
    set = rig_outcomes_of(&proto, long_history, last_value, 1000);
    /* No state, or one of the newest: merged states are gone, and no other states appear. */
    T_EQ_U64(set & ~(SET1(0) | 0xfeull << 33), 0);
    T_TRUE((set & SET2(0, 40)) == SET2(0, 40) && __builtin_popcountll(set) > 4);
}

static void merged_and_fenced(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.limits.line_stores = 8;
    rig_up(&r, 65536);
    for (unsigned i = 1; i <= 20; i++) {
        rig_store(&r, 0, (i % 8) * 8, i);
    }
    rig_cpu_flush(&r, 0, 0, SG_PERSIST_CLWB);
    for (unsigned i = 21; i <= 60; i++) {
        rig_store(&r, 0, (i % 8) * 8, i);
    }
    rig_sfence(&r, 0);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    for (unsigned a = 0; a < 8; a++) {
        T_TRUE(rig_media(&r, a * 8) >= (a <= 4 ? 16 + a : 8 + a)); /* of the first 20 */
    }
    rig_down(&r);
}

static void queue_repeated(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.config.domain = SG_PERSIST_NONE;
    r.limits.line_stores = 8;
    rig_up(&r, 65536);
    for (unsigned i = 1; i <= 100; i++) {
        rig_store(&r, 0, 8 * (i % 3), i);
        rig_cpu_flush(&r, 0, 0, SG_PERSIST_CLWB);
        rig_sfence(&r, 0);
    }
    T_EQ_U64(rig_media(&r, 8), 0);
    sg_persist_deep_flush(r.p, RIG_BASE, 64);
    T_EQ_U64(rig_media(&r, 8), 100);
    T_EQ_U64(rig_media(&r, 0), 99);
    rig_down(&r);
}

/* ---- Memory is bounded ---- */

static void overwritten(struct dom_rig *r)
{
    for (unsigned i = 1; i <= stores_wanted; i++) {
        uint8_t line[64];

        memset(line, i, sizeof(line));
        rig_write(r, 1, 0, line, sizeof(line));
    }
}

/* n: all of the line is version n - 1; 60: two successive versions, the newer one first. */
static unsigned version(const struct dom_rig *r)
{
    unsigned newer = 0;

    for (unsigned i = 1; i < 64; i++) {
        if (r->media[i] == r->media[i - 1]) {
            continue;
        }
        if (newer++ || i % 8 || r->media[i] + 1 != r->media[i - 1]) {
            return 64;
        }
    }
    return newer ? 60 : 1 + r->media[0];
}

static void overwritten_lines(void)
{
    struct dom_rig proto;

    rig_init(&proto);
    stores_wanted = 2;
    T_EQ_U64(rig_outcomes_of(&proto, overwritten, version, 500), SET3(1, 2, 3) | SET1(60));
    stores_wanted = 30; /* a line overwritten so often has no history */
    T_EQ_U64(rig_outcomes_of(&proto, overwritten, version, 500), SET2(1, 31));
}

static void budget(void)
{
    struct dom_rig r;

    rig_init(&r);
    r.limits.check = false;
    r.limits.stores = 1000;
    rig_up(&r, 1 << 20);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 4096; i++) {
            rig_store(&r, 0, i * 64 + round % 8 * 8, round + 1);
        }
    }
    sg_assert_persist_state(r.p, true); /* it checks the limits */
    rig_cpu_flush(&r, 0, 0, SG_PERSIST_CLWB);
    rig_sfence(&r, 0);
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(rig_media(&r, 24), 20);
    T_EQ_U64(rig_media(&r, 64 + 24), 0);
    rig_down(&r);
}

static const struct t_case cases[] = {
    { "E10 Flush with P: S0, S1, S2 of the range, in every domain", persistence },
    { "E10 lines outside of the range stay", only_the_range },
    { "Flush: flags and ranges", arguments },
    { "a slow Flush is answered in its time and not before", latency },
    { "the media's side shows what would survive", verify_side },
    { "E6 E12 eager", eager },
    { "E6 E12 random", random_pace },
    { "an orderly end loses nothing", orderly },
    { "writes of other devices", other_device },
    { "every state of a line can be left", every_state },
    { "merging removes states and adds none", merged_states },
    { "merged stores are still covered by an older CLWB", merged_and_fenced },
    { "a line overwritten again and again costs nothing", overwritten_lines },
    { "stores of all histories are bounded", budget },
    { "a line that is queued again and again", queue_repeated },
};

T_MAIN(cases)
