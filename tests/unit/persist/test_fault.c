/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Injected media faults: data that are not persistent are never reported as such. */
#include "base/bytes.h"
#include "persist/domain_impl.h"
#include "rig.h"

#define P SG_FLUSH_PERSISTENT

static void read_only(void)
{
    struct dom_rig r;
    struct sg_persist_faults f = { .read_only = true };
    struct sg_persist_report *report;
    struct sg_persist_stats stats;

    rig_simple(&r, SG_PERSIST_ADR);
    sg_persist_set_faults(r.p, 0, &f);
    T_EQ_INT(rig_flush(&r, 1, 0, 64, P), SG_PM_DONE); /* nothing to write */
    rig_write_u64(&r, 1, 0, 1);
    T_EQ_INT(rig_flush(&r, 1, 0, 64, SG_FLUSH_GLOBAL), SG_PM_DONE);
    T_EQ_INT(rig_flush(&r, 1, 0, 64, P), SG_PM_FAILED);
    rig_store(&r, 0, 64, 1);
    rig_cpu_flush(&r, 0, 64, SG_PERSIST_CLWB);
    rig_store_nt(&r, 0, 128, 1);
    rig_sfence(&r, 0);
    sg_persist_stats(r.p, &stats);
    T_EQ_U64(stats.stage[SG_PERSIST_S2], 3);
    T_EQ_U64(stats.flushes_failed, 1);
    T_TRUE(stats.media_refusals >= 3);
    report = rig_cut_report(&r, SG_PERSIST_KEEP_ALL, 0);
    T_EQ_U64(report->count[SG_PERSIST_S2][SG_PERSIST_REFUSED], 3);
    T_EQ_U64(rig_media(&r, 0) + rig_media(&r, 64) + rig_media(&r, 128), 0);
    sg_persist_report_free(report);
    rig_down(&r);
}

static void worn_out(void)
{
    struct dom_rig r;
    struct sg_persist_faults f = { .wears_out = true, .lines_left = 5 };
    uint8_t buf[64 * 8];

    rig_simple(&r, SG_PERSIST_ADR);
    sg_persist_set_faults(r.p, 0, &f);
    memset(buf, 1, sizeof(buf));
    rig_write(&r, 1, 0, buf, 64 * 3);
    T_EQ_INT(rig_flush(&r, 1, 0, 64 * 3, P), SG_PM_DONE);
    sg_persist_get_faults(r.p, 0, &f);
    T_EQ_U64(f.lines_left, 2);
    rig_write(&r, 1, 64 * 8, buf, 64 * 8);
    T_EQ_INT(rig_flush(&r, 1, 64 * 8, 64 * 8, P), SG_PM_FAILED);
    T_EQ_INT(rig_flush(&r, 1, 64 * 8, 64 * 8, P), SG_PM_FAILED); /* fails again */
    rig_cut(&r, SG_PERSIST_KEEP_ALL, 0);
    for (unsigned i = 0; i < 16; i++) {
        T_EQ_U64(r.media[i * 64], i < 3 || i == 8 || i == 9);
    }
    rig_down(&r);
}

static void recovers(void)
{
    struct dom_rig r;
    struct sg_persist_faults f = { .flush_fails = 2 };

    rig_simple(&r, SG_PERSIST_NONE);
    sg_persist_set_faults(r.p, 0, &f);
    rig_write_u64(&r, 1, 0, 1);
    T_EQ_INT(rig_flush(&r, 1, 0, 8, SG_FLUSH_GLOBAL), SG_PM_DONE);
    T_EQ_INT(rig_flush(&r, 1, 0, 8, P), SG_PM_FAILED);
    T_EQ_U64(rig_media(&r, 0), 0);
    T_EQ_INT(rig_flush(&r, 1, 0, 8, P), SG_PM_FAILED);
    T_EQ_INT(rig_flush(&r, 1, 0, 8, P), SG_PM_DONE);
    T_EQ_U64(rig_media(&r, 0), 1);
    f = (struct sg_persist_faults){ .flush_fails_always = true };
    sg_persist_set_faults(r.p, 0, &f);
    for (unsigned i = 0; i < 5; i++) {
        T_EQ_INT(rig_flush(&r, 1, 0, 8, P), SG_PM_FAILED);
    }
    rig_down(&r);
}

static void uncorrectable(void)
{
    struct dom_rig r;
    uint8_t buf[256];
    struct sg_persist_bad bad;

    rig_simple(&r, SG_PERSIST_ADR);
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE + 100, 10, SG_PERSIST_UNCORRECTABLE));
    T_FALSE(sg_persist_mark_bad(r.p, RIG_BASE + 65536, 1, SG_PERSIST_UNCORRECTABLE));
    T_TRUE(sg_persist_bad_range(r.p, 0, &bad));
    T_EQ_U64(bad.addr, RIG_BASE + 64);
    T_EQ_U64(bad.len, 64);
    T_FALSE(sg_persist_bad_range(r.p, 1, &bad));
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE, buf, 64), SG_PM_DONE);
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE, buf, 65), SG_PM_FAILED);
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE + 128, buf, 64), SG_PM_DONE);
    rig_write_u64(&r, 1, 64, 1);
    T_EQ_INT(rig_flush(&r, 1, 64, 8, P), SG_PM_FAILED);
    T_EQ_INT(rig_flush(&r, 1, 0, 64, P), SG_PM_DONE);
    rig_cut(&r, SG_PERSIST_KEEP_ALL, 0);
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE + 64, buf, 8), SG_PM_FAILED); /* still bad */
    sg_persist_clear_bad(r.p, RIG_BASE, 4096);
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE + 64, buf, 8), SG_PM_DONE);
    rig_down(&r);
}

static void poison(void)
{
    struct dom_rig r;
    uint8_t buf[64];

    rig_simple(&r, SG_PERSIST_ADR);
    sg_persist_poison(r.p, RIG_BASE, 64);
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE, buf, 64), SG_PM_DONE); /* not enabled */
    r.config.poison_on_mismatch = true;
    rig_configure(&r);
    sg_persist_poison(r.p, RIG_BASE, 128);
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE, buf, 64), SG_PM_FAILED);
    T_EQ_INT(rig_flush(&r, 1, 0, 128, P), SG_PM_FAILED); /* clean, but not readable */
    memset(buf, 1, sizeof(buf));
    rig_write(&r, 1, 0, buf, 64);
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE, buf, 64), SG_PM_FAILED);
    T_EQ_INT(rig_flush(&r, 1, 0, 64, P), SG_PM_DONE); /* written anew: healed */
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE, buf, 64), SG_PM_DONE);
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE + 64, buf, 64), SG_PM_FAILED);
    rig_down(&r);
}

/* A query for one kind finds only lines of that kind. */
static void kinds(void)
{
    const enum sg_persist_bad_kind lost = SG_PERSIST_UNCORRECTABLE, poison = SG_PERSIST_POISONED;
    struct dom_rig r;

    rig_simple(&r, SG_PERSIST_ADR);
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE, 64, lost));
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE + 64, 64, poison));
    T_TRUE(sg_dom_bad(r.p, RIG_BASE, 64, lost));
    T_FALSE(sg_dom_bad(r.p, RIG_BASE, 64, poison));
    T_FALSE(sg_dom_bad(r.p, RIG_BASE + 64, 64, lost));
    T_TRUE(sg_dom_bad(r.p, RIG_BASE + 64, 64, poison));
    T_TRUE(sg_dom_bad(r.p, RIG_BASE + 64, 64, lost | poison));
    T_FALSE(sg_dom_bad(r.p, RIG_BASE + 128, 64, lost | poison));
    rig_down(&r);
}

/* A processor's load of a bad line fails, unless the cache has newer data. */
static void loads(void)
{
    struct dom_rig r;
    uint64_t line, generation;

    rig_simple(&r, SG_PERSIST_ADR);
    generation = sg_persist_bad_generation(r.p);
    T_FALSE(sg_persist_load_fails(r.p, RIG_BASE, 128, &line));
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE + 64, 128, SG_PERSIST_POISONED));
    T_TRUE(sg_persist_bad_generation(r.p) != generation);
    T_FALSE(sg_persist_load_fails(r.p, RIG_BASE, 64, &line));
    T_TRUE(sg_persist_load_fails(r.p, RIG_BASE + 60, 8, &line));
    T_EQ_U64(line, RIG_BASE + 64);
    T_FALSE(sg_persist_load_fails(r.p, RIG_BASE + 192, 8, &line));
    rig_store(&r, 0, 64, 1);
    T_FALSE(sg_persist_load_fails(r.p, RIG_BASE + 64, 8, &line));
    T_TRUE(sg_persist_load_fails(r.p, RIG_BASE + 64, 128, &line));
    T_EQ_U64(line, RIG_BASE + 128);
    generation = sg_persist_bad_generation(r.p);
    rig_cpu_flush(&r, 0, 64, SG_PERSIST_CLFLUSHOPT);
    rig_sfence(&r, 0);
    T_TRUE(sg_persist_bad_generation(r.p) != generation);
    T_FALSE(sg_persist_load_fails(r.p, RIG_BASE + 64, 64, &line));
    rig_cut(&r, SG_PERSIST_LOSE_ALL, 0);
    T_TRUE(sg_persist_load_fails(r.p, RIG_BASE + 128, 1, &line));
    rig_down(&r);
}

/* The list of bad ranges, compared with an array of lines. */
static void range_lists(void)
{
    enum { LINES = 256 };
    bool bad[LINES] = { false };
    uint64_t x = 88172645463325252ull;
    struct dom_rig r;
    uint8_t buf[64];

    rig_simple(&r, SG_PERSIST_ADR);
    for (unsigned n = 0; n < 3000; n++) {
        unsigned first, count;
        bool mark;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        first = x % LINES;
        count = 1 + (x >> 20) % SG_MIN(LINES - first, 12);
        mark = x >> 40 & 1;
        if (mark) {
            /* From within the first line to within the last. */
            T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE + first * 64 + x % 64, count * 64 - x % 64,
                                       SG_PERSIST_UNCORRECTABLE));
        } else {
            sg_persist_clear_bad(r.p, RIG_BASE + first * 64, count * 64);
        }
        for (unsigned i = first; i < first + count; i++) {
            bad[i] = mark;
        }
        sg_assert_persist_state(r.p, false);
    }
    for (unsigned i = 0; i < LINES; i++) {
        T_CONTEXT("line %u", i);
        T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE + i * 64, buf, 64),
                 bad[i] ? SG_PM_FAILED : SG_PM_DONE);
    }
    rig_down(&r);
}

static void too_many(void)
{
    struct dom_rig r;
    unsigned taken = 0;

    rig_init(&r);
    rig_up(&r, 1 << 20);
    for (unsigned i = 0; i < 2000; i++) {
        taken += sg_persist_mark_bad(r.p, RIG_BASE + i * 128, 1, SG_PERSIST_UNCORRECTABLE);
    }
    T_EQ_U64(taken, SG_PERSIST_BAD_RANGES);
    sg_persist_clear_bad(r.p, RIG_BASE, 1 << 20);
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE, 1, SG_PERSIST_UNCORRECTABLE));
    rig_down(&r);
}

static unsigned range_count(const struct dom_rig *r)
{
    struct sg_persist_bad bad;
    unsigned n = 0;

    while (sg_persist_bad_range(r->p, n, &bad)) {
        n++;
    }
    return n;
}

/* Ranges of three lines, four lines apart. */
static void fill(struct dom_rig *r, unsigned count, enum sg_persist_bad_kind kind)
{
    for (unsigned i = 0; i < count; i++) {
        T_TRUE(sg_persist_mark_bad(r->p, RIG_BASE + i * 256, 192, kind));
    }
}

/* A full list can be emptied. */
static void full_list(void)
{
    struct sg_persist_bad bad;
    struct dom_rig r;

    rig_init(&r);
    rig_up(&r, 1 << 20);
    fill(&r, SG_PERSIST_BAD_RANGES - 1, SG_PERSIST_UNCORRECTABLE);
    /* A range inside an existing one needs no entry. */
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE + 64, 64, SG_PERSIST_UNCORRECTABLE));
    T_EQ_U64(range_count(&r), SG_PERSIST_BAD_RANGES - 1);
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE + (1 << 20) - 64, 64, SG_PERSIST_UNCORRECTABLE));
    T_EQ_U64(range_count(&r), SG_PERSIST_BAD_RANGES);
    T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE + 64, 64, SG_PERSIST_UNCORRECTABLE));
    T_FALSE(sg_persist_mark_bad(r.p, RIG_BASE + 192, 64, SG_PERSIST_UNCORRECTABLE));
    for (unsigned n = 0; n < SG_PERSIST_BAD_RANGES; n++) {
        T_TRUE(sg_persist_bad_range(r.p, 0, &bad));
        sg_persist_clear_bad(r.p, bad.addr, bad.len);
    }
    T_EQ_U64(range_count(&r), 0);
    sg_assert_persist_state(r.p, false);
    rig_down(&r);
}

/* A full list has no room to split a range, so its middle stays bad until there is room. */
static void full_list_heals(void)
{
    uint8_t ones[256];
    struct dom_rig r;

    rig_init(&r);
    rig_up(&r, 1 << 20);
    fill(&r, SG_PERSIST_BAD_RANGES, SG_PERSIST_POISONED);
    memset(ones, 1, sizeof(ones));
    rig_write(&r, 1, 64, ones, 64);
    T_EQ_INT(rig_flush(&r, 1, 64, 64, P), SG_PM_FAILED);
    T_EQ_U64(range_count(&r), SG_PERSIST_BAD_RANGES);
    sg_persist_clear_bad(r.p, RIG_BASE + 64, 64);
    T_EQ_U64(range_count(&r), SG_PERSIST_BAD_RANGES);
    /* The ends of a range, and whole ranges, do heal. */
    rig_write(&r, 1, 256, ones, 64);
    T_EQ_INT(rig_flush(&r, 1, 256, 64, P), SG_PM_DONE);
    rig_write(&r, 1, 512 + 128, ones, 64);
    T_EQ_INT(rig_flush(&r, 1, 512 + 128, 64, P), SG_PM_DONE);
    rig_write(&r, 1, 1024, ones, 256);
    T_EQ_INT(rig_flush(&r, 1, 1024, 256, P), SG_PM_DONE);
    T_EQ_U64(range_count(&r), SG_PERSIST_BAD_RANGES - 1);
    /* Now there is room for one split. */
    rig_write(&r, 1, 64, ones, 64);
    T_EQ_INT(rig_flush(&r, 1, 64, 64, P), SG_PM_DONE);
    T_EQ_U64(range_count(&r), SG_PERSIST_BAD_RANGES);
    sg_assert_persist_state(r.p, true);
    sg_persist_clear_bad(r.p, RIG_BASE, 1 << 20);
    T_EQ_U64(range_count(&r), 0);
    rig_down(&r);
}

static void fading_cache(void)
{
    struct dom_rig r;
    uint8_t buf[8];
    struct sg_persist_faults f = { .read_only = true };

    /* The cache survives, but the medium refuses its content: it does not count as safe. */
    rig_simple(&r, SG_PERSIST_EADR);
    sg_persist_set_faults(r.p, 0, &f);
    rig_write_u64(&r, 1, 0, 1);
    T_EQ_INT(sg_persist_media_read(r.p, RIG_BASE, buf, 8), SG_PM_DONE);
    T_EQ_U64(sg_get_le64(buf), 0);
    rig_cut(&r, SG_PERSIST_KEEP_ALL, 0);
    T_EQ_U64(rig_media(&r, 0), 0);
    rig_down(&r);
}

/* If a cut lets the cache write a poisoned line, the line heals. */
static void cut_heals(void)
{
    unsigned healed = 0;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct sg_persist_bad bad;
        struct dom_rig r;

        T_CONTEXT("seed %" PRIu64, seed);
        rig_simple(&r, SG_PERSIST_ADR);
        T_TRUE(sg_persist_mark_bad(r.p, RIG_BASE, 64, SG_PERSIST_POISONED));
        if (seed % 2) {
            rig_write_u64(&r, 1, 0, 7);
        } else {
            rig_store(&r, 0, 0, 7);
        }
        rig_cut(&r, SG_PERSIST_OUTCOME_RANDOM, seed);
        T_EQ_INT(sg_persist_bad_range(r.p, 0, &bad), rig_media(&r, 0) == 0);
        healed += rig_media(&r, 0) == 7;
        rig_down(&r);
    }
    T_TRUE(healed > 5 && healed < 55);
}

/* A range whose end, rounded up to lines, is beyond the last address. */
static void end_of_the_addresses(void)
{
    uint8_t *memory = g_malloc0(256);
    struct sg_persist_extent x = { .size = 128, .visible = memory, .media = memory + 128 };
    struct sg_persist *p = sg_persist_new(NULL, NULL, NULL, NULL);
    struct sg_persist_bad bad;

    T_EQ_INT(sg_persist_add(p, &x), 0);
    for (uint64_t len = UINT64_MAX; len > UINT64_MAX - 66; len--) {
        for (uint64_t addr = 0; addr <= 128; addr += 64) {
            T_FALSE(sg_persist_mark_bad(p, addr, len, SG_PERSIST_UNCORRECTABLE));
            T_FALSE(sg_persist_bad_range(p, 0, &bad));
        }
        sg_assert_persist_state(p, true);
    }
    T_TRUE(sg_persist_mark_bad(p, 64, 1, SG_PERSIST_UNCORRECTABLE));
    sg_persist_clear_bad(p, 128, UINT64_MAX);
    T_TRUE(sg_persist_bad_range(p, 0, &bad));
    sg_persist_clear_bad(p, 64, UINT64_MAX);
    T_FALSE(sg_persist_bad_range(p, 0, &bad));
    sg_assert_persist_state(p, true);
    sg_persist_free(p);
    g_free(memory);
}

static const struct t_case cases[] = {
    { "read-only media", read_only },
    { "worn-out media", worn_out },
    { "flushes that fail some times, or always", recovers },
    { "uncorrectable lines", uncorrectable },
    { "poisoned ranges heal when rewritten", poison },
    { "poisoned lines heal when a cut writes them", cut_heals },
    { "kinds of bad lines", kinds },
    { "loads of bad lines", loads },
    { "bad ranges are a set of lines", range_lists },
    { "bad ranges are bounded", too_many },
    { "bad ranges at the end of the addresses", end_of_the_addresses },
    { "as many bad ranges as there may be go again", full_list },
    { "as many poisoned ranges as there may be heal", full_list_heals },
    { "eADR over read-only media promises nothing", fading_cache },
};

T_MAIN(cases)
