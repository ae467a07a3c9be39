/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines that are read, and the answers that make a difference to them. */
#include "crash/platform.h"
#include "crash/reads.h"
#include "tap.h"

enum { BASE = 0x10000, SIZE = 4096 };

static uint8_t visible[SIZE] __attribute__((aligned(8))), media[SIZE] __attribute__((aligned(8)));

static void ranges(void)
{
    struct sg_crash_reads r;

    sg_crash_reads_init(&r);
    T_TRUE(sg_crash_reads_add(&r, 0x1050, 1));
    T_TRUE(sg_crash_reads_add(&r, 0x103f, 2));
    T_TRUE(sg_crash_reads_add(&r, 0x1000, 8));
    T_TRUE(sg_crash_reads_add(&r, 0x2000, 128));
    T_TRUE(sg_crash_reads_add(&r, UINT64_MAX, 1));
    T_FALSE(sg_crash_reads_add(&r, 0x1000, 0));
    T_FALSE(sg_crash_reads_add(&r, UINT64_MAX, 2));
    sg_crash_reads_end(&r);
    T_FALSE(sg_crash_reads_has(&r, 0xfff));
    T_TRUE(sg_crash_reads_has(&r, 0x1000));
    T_TRUE(sg_crash_reads_has(&r, 0x107f));
    T_FALSE(sg_crash_reads_has(&r, 0x1080));
    T_TRUE(sg_crash_reads_has(&r, 0x207f));
    T_FALSE(sg_crash_reads_has(&r, 0x2080));
    T_TRUE(sg_crash_reads_has(&r, UINT64_MAX));
    T_EQ_U64(sg_crash_reads_lines(&r), 5);
    sg_crash_reads_fini(&r);
}

static void expect_less(const struct sg_persist *p, uint64_t addr, uint8_t what, const char *want)
{
    struct sg_persist_choice q = { .what = what, .qpn = 7 };
    GString *got = g_string_new(NULL);
    struct sg_crash_reads r;

    sg_crash_reads_init(&r);
    T_TRUE(sg_crash_reads_add(&r, addr, 8));
    sg_crash_reads_end(&r);
    for (uint32_t at = 100; (at = sg_crash_reads_less(&r, p, &q, at)) != UINT32_MAX;) {
        g_string_append_printf(got, "%s%u", got->len ? " " : "", at);
    }
    T_CONTEXT("address %" PRIx64 ", what %u", addr, what);
    T_EQ_STR(got->str, want);
    g_string_free(got, TRUE);
    sg_crash_reads_fini(&r);
}

/* Of an adapter's three atoms in two lines, twice; and of a vCPU's stores. */
static void queues(void)
{
    struct sg_persist_source adapter = { .agent = SG_PERSIST_ADAPTER, .qpn = 7 };
    struct sg_persist_source cpu = { .agent = SG_PERSIST_CPU };
    struct sg_persist_config config;
    struct sg_persist_limits limits;
    struct sg_persist *p;
    uint8_t data[24] = { 1 };

    sg_crash_platform_settings(&(struct sg_crash_platform){ .domain = SG_PERSIST_ADR }, &config,
                               &limits);
    config.cpu_tracking = true;
    p = sg_persist_new(&config, &limits, NULL, NULL);
    T_EQ_INT(sg_persist_add(p, &(struct sg_persist_extent){ BASE, SIZE, visible, media, "x" }), 0);
    T_TRUE(sg_persist_dma_write(p, &adapter, BASE + 48, data, sizeof(data)));
    sg_persist_settle(p, 0, 7);
    T_TRUE(sg_persist_dma_write(p, &adapter, BASE + 48, data, sizeof(data)));
    expect_less(p, BASE, SG_PERSIST_CHOICE_POSTED, "1 0");
    expect_less(p, BASE + 64, SG_PERSIST_CHOICE_POSTED, "2");
    expect_less(p, BASE + 64, SG_PERSIST_CHOICE_PLACED, "2");
    expect_less(p, BASE + 128, SG_PERSIST_CHOICE_PLACED, "");
    expect_less(p, BASE, SG_PERSIST_CHOICE_LINE, "");
    for (unsigned i = 0; i < 3; i++) {
        sg_persist_will_change(p, BASE + 256 + i % 2 * 64, 8);
        memcpy(visible + 256 + i % 2 * 64, data, 8);
        T_TRUE(sg_persist_cpu_store(p, &cpu, BASE + 256 + i % 2 * 64, data, 8, 0));
    }
    expect_less(p, BASE + 256, SG_PERSIST_CHOICE_BUFFER, "2 0");
    expect_less(p, BASE + 320, SG_PERSIST_CHOICE_BUFFER, "1");
    sg_persist_free(p);
}

static const struct t_case cases[] = {
    { "ranges of whole lines", ranges },
    { "answers about queues that lose something of a line", queues },
};

T_MAIN(cases)
