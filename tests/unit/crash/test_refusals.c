/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Settings as text, and traces of machines that cannot be: each is refused with a text.
 */
#include "crash/record.h"
#include "crash/replay.h"
#include "crash/setting_text.h"
#include "tap.h"

enum { SIZE = 4096 };

static uint8_t visible[SIZE] __attribute__((aligned(64)));
static uint8_t media[SIZE] __attribute__((aligned(64)));

static void settings(void)
{
    struct sg_persist_config config, parsed;
    struct sg_persist_limits limits, parsed_limits;
    GString *text = g_string_new(NULL), *again = g_string_new(NULL);

    sg_persist_config_init(&config);
    sg_persist_limits_init(&limits);
    config.domain = SG_PERSIST_EADR;
    config.untracked = SG_PERSIST_UNTRACKED_KEEP;
    config.ddio = false;
    config.cpu_tracking = true;
    config.store_buffer = true;
    config.placement_order = SG_PERSIST_RANDOM_ORDER;
    config.poison_on_mismatch = true;
    config.eviction = SG_PERSIST_EAGER;
    config.drain = SG_PERSIST_RANDOM;
    config.posted_drain = SG_PERSIST_NEVER;
    config.one_in = 77;
    config.placement_delay_ns = 1;
    config.flush_latency_ns = UINT64_MAX;
    config.flush_latency_random_ns = 3;
    config.untracked_flush_max = 4;
    limits.seed = UINT64_MAX;
    limits.s0_octets = 1;
    limits.s1_octets = 2;
    limits.line_stores = 9;
    limits.stores = 10;
    sg_crash_settings_text(&config, &limits, text);
    sg_persist_config_init(&parsed);
    sg_persist_limits_init(&parsed_limits);
    T_NULL(sg_crash_settings_parse(text->str, &parsed, &parsed_limits));
    sg_crash_settings_text(&parsed, &parsed_limits, again);
    T_EQ_STR(again->str, text->str);
    T_EQ_U64(parsed.flush_latency_ns, UINT64_MAX);
    T_EQ_U64(parsed.domain, SG_PERSIST_EADR);
    T_EQ_U64(parsed_limits.line_stores, 9);
    T_TRUE(sg_trace_is_text((const uint8_t *)text->str, text->len));
    g_string_truncate(again, 0);
    sg_crash_settings_text(&config, NULL, again);
    T_TRUE(strncmp(text->str, again->str, again->len) == 0 && again->len < text->len);
    T_NULL(sg_crash_settings_parse(text->str, &parsed, NULL));
    g_string_free(text, TRUE);
    g_string_free(again, TRUE);
}

static void wrong_settings(void)
{
    static const struct {
        const char *text;
        const char *wrong; /* NULL: right */
    } rows[] = {
        { "", NULL },
        { "\n\nddio=off\n", NULL },
        { "ddio", "without value" },
        { "=on", "not known" },
        { "dd=on", "not known" },
        { "ddio=yes", "not on or off" },
        { "ddio=", "not on or off" },
        { "domain=edr", "value is not known" },
        { "eviction=sometimes", "value is not known" },
        { "one-in=4294967295", NULL },
        { "one-in=4294967296", "out of range" },
        { "seed=-1", "out of range" },
        { "seed=0x1", "out of range" },
        { "stores=100000000", "out of range" },
        { "s0-octets=4294967295", "out of range" },
    };

    for (unsigned i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct sg_persist_config config = { 0 };
        struct sg_persist_limits limits = { 0 };
        const char *wrong = sg_crash_settings_parse(rows[i].text, &config, &limits);

        T_CONTEXT("%s", rows[i].text);
        if (rows[i].wrong) {
            T_NOT_NULL(wrong);
            T_NOT_NULL(strstr(wrong, rows[i].wrong));
        } else {
            T_NULL(wrong);
        }
    }
}

/* A machine with one extent at 4,096. */
static struct sg_trace_header header = {
    .extent_count = 1,
    .extent = { { .base = 4096, .size = SIZE, .has_content = true } },
    .text = { "", "", "", "" },
};

static void machines(void)
{
    const char *wrong;

    header.text[SG_TRACE_CONFIG] = "flush-latency=18446744073709551615\n";
    T_NULL(sg_crash_replay_new(&header, &wrong));
    T_EQ_STR(wrong, "delay too long");
    header.text[SG_TRACE_CONFIG] = "one-in=none\n";
    T_NULL(sg_crash_replay_new(&header, &wrong));
    T_EQ_STR(wrong, "a setting whose number is out of range");
    header.text[SG_TRACE_CONFIG] = "cpu-tracking=on\n";
    sg_crash_replay_free(NULL);
}

static const uint8_t data[64];

static const struct {
    const char *what;
    struct sg_trace_event e;
    const char *wrong; /* NULL: right, or no input */
} event_rows[] = {
    { "a store", { .kind = SG_TRACE_STORE, .addr = 4096, .len = 8, .data = data }, NULL },
    { "a store before it",
      { .kind = SG_TRACE_STORE, .addr = 4095, .len = 8, .data = data },
      "outside" },
    { "a store behind it",
      { .kind = SG_TRACE_STORE, .addr = 8185, .len = 8, .data = data },
      "outside" },
    { "the same, written by the domain",
      { .kind = SG_TRACE_STORE, .addr = 8185, .len = 8, .data = data, .arg = 2 },
      "outside" },
    { "a store beyond the last address",
      { .kind = SG_TRACE_STORE, .addr = UINT64_MAX, .len = 8, .data = data },
      "outside" },
    { "vCPU 1024",
      { .kind = SG_TRACE_STORE, .unit = 1024, .addr = 4096, .len = 8, .data = data },
      "cannot be" },
    { "its flush", { .kind = SG_TRACE_CPU_FLUSH, .unit = 1024 }, "cannot be" },
    { "its fence", { .kind = SG_TRACE_CPU_FENCE, .unit = 1024 }, "cannot be" },
    { "its load", { .kind = SG_TRACE_LOAD, .unit = 1024 }, "cannot be" },
    { "a flush of other memory", { .kind = SG_TRACE_CPU_FLUSH }, NULL },
    { "a load of other memory", { .kind = SG_TRACE_LOAD, .addr = 5, .len = UINT64_MAX }, NULL },
    { "a placement", { .kind = SG_TRACE_PLACE, .addr = 8184, .len = 9, .data = data }, "outside" },
    { "an empty placement", { .kind = SG_TRACE_PLACE, .data = data }, NULL },
    { "adapter 64",
      { .kind = SG_TRACE_PLACE, .unit = 64, .addr = 4096, .len = 8, .data = data },
      "outside" },
    { "half an atom",
      { .kind = SG_TRACE_ATOMIC_WRITE, .addr = 4100, .len = 8, .data = data },
      "outside" },
    { "an atomic", { .kind = SG_TRACE_ATOMIC, .addr = 8192 }, "outside" },
    { "a Flush", { .kind = SG_TRACE_FLUSH_BEGIN, .addr = 4096, .len = SIZE + 1 }, "outside" },
    { "a Flush of nothing", { .kind = SG_TRACE_FLUSH_BEGIN, .arg = 2 }, NULL },
    { "the end of no Flush", { .kind = SG_TRACE_FLUSH_END, .addr = 0, .len = 5 }, NULL },
    { "a Verify", { .kind = SG_TRACE_MEDIA_READ, .addr = 4096, .len = SIZE + 1 }, "outside" },
    { "a long one", { .kind = SG_TRACE_MEDIA_READ, .addr = 4096, .len = 65537 }, "too much" },
    { "a read of other memory", { .kind = SG_TRACE_DMA_READ, .addr = 0, .len = UINT64_MAX }, NULL },
    { "another device",
      { .kind = SG_TRACE_OTHER_WRITE, .addr = 0, .len = 8, .data = data },
      "outside" },
    { "other device 64",
      { .kind = SG_TRACE_OTHER_WRITE, .unit = 64, .addr = 4096, .len = 8, .data = data },
      "cannot be" },
    { "bad lines of no kind",
      { .kind = SG_TRACE_MARK_BAD, .addr = 4096, .len = 8 },
      "does not exist" },
    { "bad lines outside",
      { .kind = SG_TRACE_MARK_BAD, .addr = 4096, .len = UINT64_MAX - 4096, .arg = 1 },
      "outside" },
    { "poison outside",
      { .kind = SG_TRACE_POISON, .addr = 64, .len = UINT64_MAX - 64 },
      "outside" },
    { "faults of no extent", { .kind = SG_TRACE_FAULTS, .unit = 1 }, "does not exist" },
    { "a configuration without text", { .kind = SG_TRACE_CONFIGURE }, "without text" },
    { "a restart", { .kind = SG_TRACE_RESTART }, "without a cut" },
    { "writing back", { .kind = SG_TRACE_WRITE_BACK, .addr = 0, .len = 8 }, "outside" },
    { "a frame", { .kind = SG_TRACE_FRAME, .len = 60 }, NULL },
    { "a mark", { .kind = SG_TRACE_MARK, .data = data }, NULL },
    { "a work request", { .kind = SG_TRACE_WORK, .unit = 5000, .len = UINT64_MAX }, NULL },
};

static void events(void)
{
    const char *wrong;

    header.text[SG_TRACE_CONFIG] = "cpu-tracking=on\n";
    for (unsigned i = 0; i < SG_ARRAY_SIZE(event_rows); i++) {
        struct sg_crash_replay *x = sg_crash_replay_new(&header, &wrong);

        T_CONTEXT("%s", event_rows[i].what);
        T_NULL(sg_trace_event_wrong(&event_rows[i].e));
        T_NOT_NULL(x);
        sg_crash_replay_add(x, visible, media);
        wrong = sg_crash_replay_event(x, &event_rows[i].e, NULL);
        if (event_rows[i].wrong) {
            T_NOT_NULL(wrong);
            T_NOT_NULL(strstr(wrong, event_rows[i].wrong));
        } else {
            T_NULL(wrong);
        }
        sg_crash_replay_free(x);
    }
}

static void many_flushes(void)
{
    struct sg_trace_event e = { .kind = SG_TRACE_FLUSH_BEGIN, .addr = 4096, .len = 8, .arg = 2 };
    struct sg_crash_replay *x;
    const char *wrong = NULL;

    header.text[SG_TRACE_CONFIG] = "flush-latency=1000\n";
    x = sg_crash_replay_new(&header, &wrong);
    T_NOT_NULL(x);
    sg_crash_replay_add(x, visible, media);
    e.arg = SG_FLUSH_PERSISTENT;
    for (unsigned i = 0; i < SG_CRASH_FLUSHES; i++) {
        e.qpn = i;
        T_NULL(sg_crash_replay_event(x, &e, NULL));
    }
    T_NULL(sg_crash_replay_event(x, &e, NULL));
    e.qpn++;
    wrong = sg_crash_replay_event(x, &e, NULL);
    T_EQ_STR(wrong, "too many Flushes under way");
    sg_crash_replay_free(x);
}

static const struct t_case cases[] = {
    { "settings as text and back", settings },
    { "settings that are refused", wrong_settings },
    { "machines that are refused", machines },
    { "events that are refused", events },
    { "Flushes under way have a bound", many_flushes },
};

T_MAIN(cases)
