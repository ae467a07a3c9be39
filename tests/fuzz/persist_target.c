/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target "persist": the input tells the CPUs, adapters and other devices of a machine what to
 * do with a persistence domain, while its platform changes, its media fail and its power is cut.
 *
 * The domain's own invariants must hold after every event.  A cut must leave in each octet what an
 * RDMA Flush with P has promised or a value written since; the same goes for what a preview and a
 * Verify read.  A log that reaches back to its beginning must replay to the same media.
 */
#include <inttypes.h>

#include "base/prng.h"
#include "fuzz.h"
#include "persist/persist.h"

enum {
    STEPS = 200,
    EXTENTS = 2,
    LINES = 64,
    SIZE = LINES * SG_PERSIST_LINE,
    WHOLE = EXTENTS * SIZE,
    LONGEST = 512,
    QPS = 3,
    DEVICES = 2,
    VCPUS = 3,
};

#define BASE 0x100000000ull /* the two extents are adjacent */

static struct fuzz_in in;
static struct sg_persist *p;
static uint8_t visible[WHOLE] __attribute__((aligned(64)));
static uint8_t media[WHOLE] __attribute__((aligned(64)));
/* For each octet: the values that it had since the last cut, and those that a cut may leave. */
static uint32_t had[WHOLE][8], allowed[WHOLE][8];
static bool doubtful[WHOLE]; /* its line was marked bad: anything may be there */
static struct sg_persist_config config;
static struct sg_persist_limits limits;
static uint64_t now_ns, flush_addr;
static struct sg_pm_op op; /* the Flush under way */
static bool due;
static unsigned long long cuts, promises, refusals, previews, replays;

static void allow(size_t at, uint8_t value)
{
    allowed[at][value / 32] |= 1u << value % 32;
    had[at][value / 32] |= 1u << value % 32;
}

static void allow_only(size_t at, uint8_t value)
{
    memset(allowed[at], 0, sizeof(allowed[at]));
    allow(at, value);
}

/* Only the content of the media is left. */
static void begin_anew(void)
{
    memset(had, 0, sizeof(had));
    for (size_t i = 0; i < WHOLE; i++) {
        allow_only(i, media[i]);
    }
}

static void judge(const uint8_t *octets, size_t at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool good = doubtful[at + i] || allowed[at + i][octets[i] / 32] >> octets[i] % 32 & 1;

        if (!good) {
            fprintf(stderr, "# octet %zu may not be %02x; domain %s\n", at + i, octets[i],
                    sg_persist_domain_name(config.domain));
        }
        sg_assert(good);
    }
}

static void cut_due(void *opaque)
{
    due = true;
}

static const struct sg_persist_ops ops = { .cut_due = cut_due };

/* An offset in the memories; *len is limited to what follows it. */
static size_t place(size_t *len)
{
    size_t at =
        fuzz_rarely(&in, 2) ? fuzz_u16(&in) % WHOLE : SIZE - 2 * SG_PERSIST_LINE + fuzz_u8(&in);

    *len = SG_MIN(*len, WHOLE - at);
    return at;
}

static struct sg_persist_source source(uint8_t agent)
{
    return (struct sg_persist_source){
        .agent = agent,
        .mode = agent == SG_PERSIST_ADAPTER ? fuzz_below(&in, 3) : 0,
        .unit = fuzz_below(&in, agent == SG_PERSIST_CPU ? VCPUS : DEVICES),
        .qpn = agent == SG_PERSIST_ADAPTER ? fuzz_below(&in, QPS) : 0,
        .at = 0x1000,
    };
}

/* Makes the data of a write, which a cut may leave from now on. */
static size_t payload(uint8_t *buf, size_t at, size_t len)
{
    uint8_t value = fuzz_u8(&in);

    for (size_t i = 0; i < len; i++) {
        buf[i] = (uint8_t)(value + i);
        allow(at + i, buf[i]);
    }
    return len;
}

static void adapter_step(void)
{
    struct sg_persist_source who = source(SG_PERSIST_ADAPTER);
    size_t len = 1 + fuzz_u16(&in) % LONGEST, at = place(&len);
    uint8_t buf[LONGEST];
    uint64_t value;

    switch (fuzz_below(&in, 6)) {
    case 0:
        sg_persist_settle(p, who.unit, who.qpn);
        break;
    case 1:
        sg_persist_device_fence(p, who.unit);
        break;
    case 2:
        sg_persist_forget(p, who.unit, who.qpn);
        break;
    case 3:
        at &= ~7ull;
        payload(buf, at, 8);
        sg_persist_atom_store(p, &who, BASE + at, buf);
        break;
    case 4:
        at &= ~7ull;
        payload(buf, at, 8);
        value = sg_get_le64(visible + at);
        sg_persist_atomic(p, &who, BASE + at, &value, sg_get_le64(buf));
        break;
    default:
        sg_persist_dma_write(p, &who, BASE + at, buf, payload(buf, at, len));
    }
}

static void cpu_step(void)
{
    static const uint8_t sizes[] = { 1, 2, 4, 8, 16, 32, 64, 7 };
    struct sg_persist_source who = source(SG_PERSIST_CPU);
    size_t len = sizes[fuzz_below(&in, sizeof(sizes))], at = place(&len);
    uint8_t buf[64];

    switch (fuzz_below(&in, 5)) {
    case 0:
        sg_persist_cpu_flush(p, &who, BASE + at, fuzz_below(&in, SG_PERSIST_CPU_FLUSHES));
        break;
    case 1:
        sg_persist_cpu_fence(p, &who, fuzz_below(&in, SG_PERSIST_CPU_FENCES));
        break;
    case 2:
        sg_persist_cpu_sync(p);
        break;
    default:
        sg_persist_cpu_store(p, &who, BASE + at, buf, payload(buf, at, len),
                             SG_PERSIST_STORE_WRITE | fuzz_below(&in, 2));
    }
}

/* Another device writes to memory first, and its write is reported then. */
static void other_step(void)
{
    struct sg_persist_source who = source(SG_PERSIST_OTHER);
    size_t len = 1 + fuzz_u8(&in), at = place(&len);

    if (!sg_persist_frozen(p)) {
        /* Each report is about one extent. */
        len = SG_MIN(len, SIZE - at % SIZE);
        payload(visible + at, at, len);
        sg_assert(sg_persist_other_write(p, &who, BASE + at, len));
    }
}

/* True if no earlier write is still invisible. */
static bool all_visible(void)
{
    struct sg_persist_stats stats;

    sg_persist_stats(p, &stats);
    return !(stats.stage[SG_PERSIST_S0] | stats.stage[SG_PERSIST_S1] | stats.stage[SG_PERSIST_SB]);
}

/* A Flush with P that was answered at once: what is visible is promised. */
static void promised(size_t at, size_t len)
{
    promises++;
    for (size_t i = at; i < at + len && all_visible(); i++) {
        if (!doubtful[i]) {
            allow_only(i, visible[i]);
        }
    }
}

/* Begins a Flush, or continues one that is not finished. */
static void flush_step(void)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .msn = 1 };
    bool at_once = op.phase == SG_PM_NEW;
    size_t len = 1 + fuzz_u16(&in) % 2048, at = place(&len);
    unsigned flags = 1 + fuzz_below(&in, 3);
    enum sg_pm_result result;

    if (!at_once) {
        at = flush_addr - BASE;
        len = op.len;
        flags = SG_FLUSH_PERSISTENT;
    }
    op.len = len;
    op.flags = flags;
    result = sg_persist_flush(p, &who, BASE + at, &op);
    flush_addr = BASE + at;
    if (result == SG_PM_LATER) {
        sg_assert(flags & SG_FLUSH_PERSISTENT || sg_persist_frozen(p));
        op.phase = flags == SG_FLUSH_PERSISTENT ? op.phase : SG_PM_NEW;
        return;
    }
    op.phase = SG_PM_NEW;
    refusals += result == SG_PM_FAILED;
    if (result == SG_PM_DONE && flags & SG_FLUSH_PERSISTENT && at_once && !sg_persist_frozen(p)) {
        promised(at, len);
    }
}

static void configure_step(void)
{
    struct sg_persist_config c = config;

    c.domain = fuzz_below(&in, SG_PERSIST_DOMAINS);
    c.untracked = fuzz_below(&in, SG_PERSIST_UNTRACKED_KINDS);
    c.ddio = fuzz_below(&in, 2);
    c.store_buffer = fuzz_below(&in, 2);
    c.placement_order = fuzz_below(&in, SG_PERSIST_ORDERS);
    c.poison_on_mismatch = fuzz_below(&in, 2);
    c.eviction = fuzz_below(&in, SG_PERSIST_PACES);
    c.drain = fuzz_below(&in, SG_PERSIST_PACES);
    c.posted_drain = fuzz_below(&in, SG_PERSIST_PACES);
    c.one_in = fuzz_u8(&in);
    c.placement_delay_ns = fuzz_u16(&in);
    c.flush_latency_ns = fuzz_rarely(&in, 4) ? fuzz_u16(&in) : 0;
    c.flush_latency_random_ns = fuzz_rarely(&in, 4) ? fuzz_edgy(&in) : 0;
    c.untracked_flush_max = fuzz_edgy(&in);
    if (!sg_persist_configure(p, &c)) {
        config = c;
        /* The new platform may lose data that the earlier one guaranteed. */
        memcpy(allowed, had, sizeof(allowed));
    }
}

static void fault_step(void)
{
    size_t len = 1 + fuzz_u8(&in), at = place(&len);
    struct sg_persist_faults f = {
        .read_only = fuzz_rarely(&in, 8),
        .flush_fails_always = fuzz_rarely(&in, 8),
        .flush_fails = fuzz_below(&in, 3),
        .wears_out = fuzz_rarely(&in, 4),
        .lines_left = fuzz_u8(&in),
    };
    size_t line = at / SG_PERSIST_LINE * SG_PERSIST_LINE;

    switch (fuzz_below(&in, 4)) {
    case 0:
        sg_persist_set_faults(p, fuzz_below(&in, EXTENTS), &f);
        break;
    case 1:
        sg_persist_clear_bad(p, BASE + at, len);
        break;
    default:
        for (; line < at + len; line++) {
            doubtful[line] = true;
        }
        for (; line % SG_PERSIST_LINE; line++) {
            doubtful[line] = true;
        }
        if (fuzz_rarely(&in, 2)) {
            sg_persist_mark_bad(p, BASE + at, len, 1 + fuzz_below(&in, 2));
        } else {
            sg_persist_poison(p, BASE + at, len);
        }
    }
}

static struct sg_persist_policy policy(void)
{
    struct sg_persist_policy found = {
        .outcome = fuzz_below(&in, SG_PERSIST_OUTCOMES),
        .seed = fuzz_u16(&in),
    };

    found.len = 1 + fuzz_u8(&in);
    found.addr = BASE + fuzz_u16(&in) % WHOLE;
    return found;
}

static void look_step(void)
{
    struct sg_persist_policy how = policy();
    size_t len = 1 + fuzz_u8(&in), at = place(&len);
    uint8_t buf[256];

    if (fuzz_rarely(&in, 2)) {
        if (sg_persist_media_read(p, BASE + at, buf, len) == SG_PM_DONE) {
            judge(buf, at, len);
        }
    } else if (sg_persist_preview(p, &how, BASE + at, buf, len)) {
        previews++;
        judge(buf, at, len);
    }
}

static void cut(void)
{
    struct sg_persist_policy how = policy();
    GString *text = g_string_new(NULL);
    struct sg_persist_report *report = sg_persist_cut(p, &how);

    cuts++;
    judge(media, 0, WHOLE);
    sg_persist_report_json(report, text);
    sg_persist_report_text(report, text);
    g_string_free(text, TRUE);
    sg_persist_report_free(report);
    memcpy(visible, media, WHOLE);
    begin_anew();
    op.phase = SG_PM_NEW;
    due = false;
    sg_persist_restart(p);
}

static void arm_step(void)
{
    struct sg_persist_arm arm = {
        .kind = fuzz_below(&in, 3),
        .count = 1 + fuzz_below(&in, 16),
        .milestone = fuzz_below(&in, SG_PM_MILESTONES),
    };
    struct sg_persist_source who = source(SG_PERSIST_ADAPTER);

    if (fuzz_rarely(&in, 2)) {
        sg_persist_arm(p, &arm);
    } else {
        sg_persist_milestone(p, &who, arm.milestone);
    }
}

static void step(void)
{
    size_t len = 1 + fuzz_u8(&in), at = place(&len);

    switch (fuzz_below(&in, 20)) {
    case 0 ... 5:
        adapter_step();
        break;
    case 6 ... 10:
        cpu_step();
        break;
    case 11 ... 13:
        flush_step();
        break;
    case 14:
        look_step();
        break;
    case 15:
        other_step();
        break;
    case 16:
        now_ns += fuzz_u16(&in);
        sg_persist_tick(p, now_ns);
        break;
    case 17:
        configure_step();
        break;
    case 18:
        fuzz_rarely(&in, 2) ? arm_step() : sg_persist_deep_flush(p, BASE + at, len);
        break;
    default:
        fuzz_rarely(&in, 3) ? fault_step() : cut();
    }
    if (due) {
        cut();
    }
}

/* The same inputs on a second domain. */
static void replay(void)
{
    static uint8_t seen[WHOLE] __attribute__((aligned(64)));
    static uint8_t kept[WHOLE] __attribute__((aligned(64)));
    struct sg_persist_config c;
    GByteArray *log = g_byte_array_new();
    struct sg_persist *second;
    uint64_t oldest, newest;

    sg_persist_log_bounds(p, &oldest, &newest);
    sg_persist_log_export(p, log);
    sg_persist_config_init(&c);
    c.cpu_tracking = true;
    second = sg_persist_new(&c, &limits, NULL, NULL);
    memset(seen, 0, WHOLE);
    memset(kept, 0, WHOLE);
    for (int i = 0; i < EXTENTS; i++) {
        sg_persist_add(second, &(struct sg_persist_extent){
                                   .base = BASE + i * SIZE,
                                   .size = SIZE,
                                   .visible = seen + i * SIZE,
                                   .media = kept + i * SIZE,
                               });
    }
    if (oldest == 1 && !sg_persist_log_replay(second, log->data, log->len)) {
        replays++;
        sg_assert(memcmp(kept, media, WHOLE) == 0);
    }
    sg_persist_free(second);
    g_byte_array_free(log, TRUE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    in = (struct fuzz_in){ data, size };
    sg_persist_limits_init(&limits);
    sg_persist_config_init(&config);
    config.cpu_tracking = true;
    limits.check = true;
    limits.log_events = 4096;
    limits.log_data = 1 << 18;
    limits.line_stores = 8 + fuzz_below(&in, 8);
    p = sg_persist_new(&config, &limits, &ops, NULL);
    memset(visible, 0, WHOLE);
    memset(media, 0, WHOLE);
    memset(doubtful, 0, sizeof(doubtful));
    now_ns = 0;
    op.phase = SG_PM_NEW;
    due = false;
    begin_anew();
    for (int i = 0; i < EXTENTS; i++) {
        int found = sg_persist_add(p, &(struct sg_persist_extent){
                                          .base = BASE + i * SIZE,
                                          .size = SIZE,
                                          .visible = visible + i * SIZE,
                                          .media = media + i * SIZE,
                                      });

        sg_assert(found == i);
    }
    for (int n = 0; n < STEPS && in.len; n++) {
        step();
    }
    sg_assert_persist_state(p, true);
    if (fuzz_rarely(&in, 4)) {
        cut();
        replay();
    }
    sg_persist_free(p);
    return 0;
}

bool fuzz_reached(char *buf, size_t len)
{
    snprintf(buf, len, "cuts %llu, promises %llu, refused %llu, previews %llu, replays %llu", cuts,
             promises, refusals, previews, replays);
    return cuts && promises && refusals && previews && replays;
}
