/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A run replayed on another platform: what the platform decides, what the run, what was seen. */
#include "base/bytes.h"
#include "crash/record.h"
#include "crash/replay.h"
#include "tap.h"

enum { BASE = 4096, SIZE = 8192 };

static uint8_t visible[SIZE] __attribute__((aligned(64)));
static uint8_t media[SIZE] __attribute__((aligned(64)));

static struct sg_trace_header header = {
    .extent_count = 1,
    .extent = { { .base = BASE, .size = SIZE, .has_content = true } },
    .text = { "", "", "", "" },
};

static struct sg_persist_config lazy;

static struct sg_crash_replay *up(const char *recorded)
{
    struct sg_crash_replay *x;
    const char *wrong;

    memset(visible, 0, SIZE);
    memset(media, 0, SIZE);
    sg_persist_config_init(&lazy);
    lazy.domain = SG_PERSIST_NONE;
    lazy.posted_drain = SG_PERSIST_NEVER;
    lazy.placement_delay_ns = 1000;
    lazy.flush_latency_ns = 1000;
    header.text[SG_TRACE_CONFIG] = recorded;
    x = sg_crash_replay_new_for(&header, &lazy, NULL, &wrong);
    T_NULL(wrong);
    T_NOT_NULL(x);
    sg_crash_replay_add(x, visible, media);
    return x;
}

static void event(struct sg_crash_replay *x, struct sg_trace_event e, const char *name)
{
    T_NULL(sg_trace_event_wrong(&e));
    T_NULL(sg_crash_replay_event(x, &e, name));
}

static void place(struct sg_crash_replay *x, unsigned adapter, uint64_t at, uint64_t value)
{
    uint8_t data[8];

    sg_put_le64(data, value);
    event(x,
          (struct sg_trace_event){ .kind = SG_TRACE_PLACE,
                                   .unit = adapter,
                                   .qpn = 3,
                                   .addr = BASE + at,
                                   .len = 8,
                                   .data = data },
          NULL);
}

/* An event of adapter 1 with a range. */
static void plain(struct sg_crash_replay *x, enum sg_trace_kind kind, uint64_t at, uint64_t len,
                  uint64_t arg)
{
    event(x,
          (struct sg_trace_event){
              .kind = kind, .unit = 1, .qpn = 3, .addr = BASE + at, .len = len, .arg = arg },
          NULL);
}

static uint64_t at(const uint8_t *memory, uint64_t off)
{
    return sg_get_le64(memory + off);
}

static void platform(void)
{
    struct sg_crash_replay *x =
        up("domain=eadr\nddio=off\nplacement-delay=0\nposted-drain=eager\ncpu-tracking=on\n");
    const struct sg_persist_config *c = sg_persist_config(sg_crash_replay_domain(x));

    T_EQ_U64(c->domain, SG_PERSIST_NONE);
    T_TRUE(c->ddio && c->cpu_tracking);
    event(x, (struct sg_trace_event){ .kind = SG_TRACE_CONFIGURE },
          "domain=adr\nplacement-delay=0\ncpu-tracking=off\nuntracked=keep\n"
          "untracked-flush-max=5\npoison-on-mismatch=on\n");
    T_EQ_U64(c->domain, SG_PERSIST_NONE);
    T_EQ_U64(c->placement_delay_ns, 1000);
    T_EQ_U64(c->untracked, SG_PERSIST_UNTRACKED_KEEP);
    T_EQ_U64(c->untracked_flush_max, 5);
    T_TRUE(!c->cpu_tracking && c->poison_on_mismatch);
    sg_crash_replay_free(x);
}

static void time_stands_still(void)
{
    struct sg_crash_replay *x = up("");

    place(x, 0, 0, 7);
    event(x, (struct sg_trace_event){ .kind = SG_TRACE_TICK, .now_ns = 1000000 }, NULL);
    T_EQ_U64(at(visible, 0), 0);
    place(x, 1, 8, 8);
    plain(x, SG_TRACE_FLUSH_BEGIN, 0, 64, SG_FLUSH_PERSISTENT);
    T_EQ_U64(at(media, 8), 0); /* not before its end */
    T_EQ_U64(at(visible, 0), 0);
    plain(x, SG_TRACE_FLUSH_END, 0, 64, SG_FLUSH_PERSISTENT);
    T_EQ_U64(at(media, 8), 8);
    T_EQ_U64(at(media, 0), 0);
    sg_crash_replay_free(x);
}

static void store(struct sg_crash_replay *x, uint64_t at, uint64_t value)
{
    uint8_t data[8];

    sg_put_le64(data, value);
    event(x,
          (struct sg_trace_event){
              .kind = SG_TRACE_STORE, .addr = BASE + at, .len = 8, .data = data, .at = 1 },
          NULL);
}

/* A Flush is certain at its end, and covers what was there at its beginning. */
static void flush_takes_time(void)
{
    struct sg_crash_replay *x = up("cpu-tracking=on\n");

    store(x, 0, 1);
    place(x, 1, 64, 2);
    place(x, 1, 128, 3);
    plain(x, SG_TRACE_FLUSH_BEGIN, 0, 256, SG_FLUSH_PERSISTENT);
    store(x, 8, 4);
    place(x, 1, 192, 5);
    plain(x, SG_TRACE_LOAD, 64, 8, 0);
    T_EQ_U64(at(visible, 64), 2);
    T_EQ_U64(at(media, 0), 0);
    T_EQ_U64(at(media, 64), 0);
    plain(x, SG_TRACE_FLUSH_END, 0, 256, SG_FLUSH_PERSISTENT);
    T_EQ_U64(at(media, 0), 1);
    T_EQ_U64(at(media, 8), 0);
    T_EQ_U64(at(media, 64), 2);
    T_EQ_U64(at(media, 128), 3);
    T_EQ_U64(at(visible, 192), 0);
    plain(x, SG_TRACE_FLUSH_BEGIN, 0, 256, SG_FLUSH_PERSISTENT);
    plain(x, SG_TRACE_FLUSH_END, 0, 256, SG_FLUSH_PERSISTENT);
    T_EQ_U64(at(media, 8), 4);
    T_EQ_U64(at(media, 192), 5);
    sg_crash_replay_free(x);
}

/* What another adapter or a Verify read in the recorded run was there. */
static void what_was_seen(void)
{
    struct sg_crash_replay *x = up("");

    for (unsigned i = 0; i < 5; i++) {
        place(x, 0, i * 64, i + 1);
    }
    plain(x, SG_TRACE_DMA_READ, 0, 8, 0);
    T_EQ_U64(at(visible, 0), 1);
    T_EQ_U64(at(visible, 64), 0);
    plain(x, SG_TRACE_MEDIA_READ, 64, 8, 0);
    T_EQ_U64(at(visible, 64), 2);
    event(x,
          (struct sg_trace_event){ .kind = SG_TRACE_ATOMIC,
                                   .unit = 1,
                                   .addr = BASE + 128,
                                   .value = 3,
                                   .swap = 33,
                                   .found = 3 },
          NULL);
    T_EQ_U64(at(visible, 128), 33);
    plain(x, SG_TRACE_LOAD, 192, 1, 0);
    T_EQ_U64(at(visible, 192), 4);
    T_EQ_U64(at(visible, 256), 0);
    sg_crash_replay_free(x);
}

static void refusals(void)
{
    struct sg_trace_event cut = { .kind = SG_TRACE_CUT }, freeze = { .kind = SG_TRACE_FREEZE };
    struct sg_crash_replay *x = up("");
    const char *wrong;

    T_NOT_NULL(strstr(sg_crash_replay_event(x, &cut, NULL), "lost its power"));
    T_NOT_NULL(strstr(sg_crash_replay_event(x, &freeze, NULL), "lost its power"));
    T_FALSE(sg_persist_frozen(sg_crash_replay_domain(x)));
    sg_crash_replay_free(x);
    lazy.one_in = 0;
    T_NULL(sg_crash_replay_new_for(&header, &lazy, NULL, &wrong));
    T_NOT_NULL(strstr(wrong, "one_in"));
    lazy.one_in = 1;
    header.text[SG_TRACE_CONFIG] = "ddio=maybe\n";
    T_NULL(sg_crash_replay_new_for(&header, &lazy, NULL, &wrong));
    T_NOT_NULL(strstr(wrong, "not on or off"));
}

static const struct t_case cases[] = {
    { "the platform is the caller's, the rest the run's", platform },
    { "nothing moves on because time passes", time_stands_still },
    { "a Flush covers its beginning, and is certain at its end", flush_takes_time },
    { "what was read when it was recorded has arrived", what_was_seen },
    { "power cuts and settings that cannot be", refusals },
};

T_MAIN(cases)
