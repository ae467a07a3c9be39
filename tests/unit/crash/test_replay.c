/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine whose domain gets random inputs, changes of its settings, faults and cuts, all of which
 * are recorded in a trace.  Replayed into a fresh domain the trace leaves the same media after
 * each cut, the same memories at the end, and the same data on the way.
 */
#include "base/prng.h"
#include "crash/record.h"
#include "crash/replay.h"
#include "crash/setting_text.h"
#include "tap.h"

enum {
    EXTENTS = 2,
    SIZE = 3 * SG_PERSIST_PAGE - SG_PERSIST_LINE,
    WHOLE = EXTENTS * SIZE,
    LONGEST = 512,
    CUTS = 64,
    STEPS = 500,
};

#define BASE 0x100000000ull /* the extents are adjacent */

static struct {
    uint64_t random;
    struct sg_persist *p;
    struct sg_persist_config config;
    struct sg_persist_limits limits;
    struct sg_trace_writer *w;
    GByteArray *file;
    bool due; /* a cut came due in this input */
    uint64_t now_ns;
    struct sg_pm_op op; /* the Flush under way */
    uint64_t op_addr;
    bool waits;
    uint8_t after[CUTS][WHOLE]; /* the media after each cut */
    unsigned cuts, inputs;
} m;

static uint8_t visible[WHOLE] __attribute__((aligned(64)));
static uint8_t media[WHOLE] __attribute__((aligned(64)));
static uint8_t again_visible[WHOLE] __attribute__((aligned(64)));
static uint8_t again_media[WHOLE] __attribute__((aligned(64)));

static unsigned below(unsigned n)
{
    return (unsigned)(sg_prng(&m.random) % n);
}

static bool sink(void *opaque, const uint8_t *octets, size_t len)
{
    g_byte_array_append(m.file, octets, (guint)len);
    return true;
}

static void cut_due(void *opaque)
{
    m.due = true;
}

static const struct sg_persist_ops ops = { .cut_due = cut_due };

/* ---- Recording ---- */

static void record(const struct sg_trace_event *e)
{
    T_TRUE(sg_trace_write(m.w, e));
    m.inputs++;
}

static void record_plain(enum sg_trace_kind kind, unsigned unit, uint32_t qpn, uint64_t addr,
                         uint64_t len)
{
    record(&(struct sg_trace_event){
        .kind = kind, .unit = unit, .qpn = qpn, .addr = addr, .len = len });
}

static void random_settings(void)
{
    struct sg_persist_config *c = &m.config;

    c->domain = below(SG_PERSIST_DOMAINS);
    c->untracked = below(SG_PERSIST_UNTRACKED_KINDS);
    c->ddio = below(2);
    c->cpu_tracking = below(4);
    c->store_buffer = below(2);
    c->placement_order = below(SG_PERSIST_ORDERS);
    c->poison_on_mismatch = below(2);
    c->eviction = below(SG_PERSIST_PACES);
    c->drain = below(SG_PERSIST_PACES);
    c->posted_drain = below(SG_PERSIST_PACES);
    c->one_in = 1 + below(20);
    c->placement_delay_ns = below(3) * 50000;
    c->flush_latency_ns = below(2) * 3000;
    c->flush_latency_random_ns = below(2) * 10000;
    c->untracked_flush_max = below(2) ? 4096 : 1 << 20;
}

static void start(uint64_t seed)
{
    GString *text = g_string_new(NULL);
    struct sg_trace_header header = { .extent_count = EXTENTS };
    struct sg_persist_extent x = { .size = SIZE };

    memset(&m, 0, sizeof(m));
    m.random = seed;
    m.file = g_byte_array_new();
    for (unsigned i = 0; i < WHOLE; i++) {
        media[i] = visible[i] = i % 3 ? 0 : (uint8_t)sg_prng(&m.random);
    }
    sg_persist_config_init(&m.config);
    sg_persist_limits_init(&m.limits);
    random_settings();
    m.limits.seed = sg_prng(&m.random);
    m.limits.s0_octets = 3000;
    m.limits.s1_octets = 2000;
    m.limits.line_stores = 8 + below(8);
    m.limits.check = true;
    m.p = sg_persist_new(&m.config, &m.limits, &ops, NULL);
    sg_crash_settings_text(&m.config, &m.limits, text);
    header.text[SG_TRACE_CONFIG] = text->str;
    for (unsigned i = 0; i < EXTENTS; i++) {
        x.base = BASE + (uint64_t)i * SIZE;
        x.visible = visible + (size_t)i * SIZE;
        x.media = media + (size_t)i * SIZE;
        T_EQ_INT(sg_persist_add(m.p, &x), i);
        header.extent[i] =
            (struct sg_trace_extent){ .base = x.base, .size = SIZE, .has_content = true };
    }
    m.w = sg_trace_writer_new(&header, sink, NULL);
    for (unsigned i = 0; i < EXTENTS; i++) {
        T_TRUE(sg_trace_writer_content(m.w, i, media + (size_t)i * SIZE));
    }
    T_TRUE(sg_trace_writer_start(m.w, NULL));
    g_string_free(text, TRUE);
}

/* ---- Inputs ---- */

static struct sg_persist_source source(uint8_t agent)
{
    return (struct sg_persist_source){
        .agent = agent,
        .mode = agent == SG_PERSIST_ADAPTER ? below(3) : 0,
        .unit = below(3),
        .qpn = agent == SG_PERSIST_ADAPTER ? below(3) : 0,
        .at = 0x401000 + below(5),
    };
}

/* An offset of at most *len octets in one extent. */
static unsigned place_of(size_t *len)
{
    unsigned at = below(2) ? below(WHOLE) : below(8) * SG_PERSIST_LINE + below(SG_PERSIST_LINE);

    *len = SG_MIN(*len, SIZE - at % SIZE);
    return at;
}

static const uint8_t *payload(size_t len)
{
    static uint8_t buf[LONGEST];

    for (size_t i = 0; i < len; i++) {
        buf[i] = (uint8_t)sg_prng(&m.random);
    }
    return buf;
}

/* Changes visible memory, announced or not; returns the flag for the report. */
static unsigned change(unsigned at, const void *data, size_t len)
{
    unsigned flag = below(2) ? SG_PERSIST_STORE_ANNOUNCED : 0;

    if (flag) {
        sg_persist_will_change(m.p, BASE + at, len);
    }
    memcpy(visible + at, data, len);
    return flag;
}

static void adapter_input(void)
{
    struct sg_persist_source who = source(SG_PERSIST_ADAPTER);
    size_t len = 1 + below(LONGEST);
    unsigned at = place_of(&len);
    struct sg_trace_event e = sg_crash_event(SG_TRACE_PLACE, &who, BASE + at, len);

    e.data = payload(len);
    switch (below(8)) {
    case 0:
        sg_persist_settle(m.p, who.unit, who.qpn);
        record_plain(SG_TRACE_SETTLE, who.unit, who.qpn, 0, 0);
        break;
    case 1:
        sg_persist_device_fence(m.p, who.unit);
        record_plain(SG_TRACE_DEVICE_FENCE, who.unit, 0, 0, 0);
        break;
    case 2:
        sg_persist_forget(m.p, who.unit, who.qpn);
        record_plain(SG_TRACE_FORGET, who.unit, who.qpn, 0, 0);
        break;
    case 3:
        sg_persist_dma_read(m.p, who.unit, BASE + at, len);
        record_plain(SG_TRACE_DMA_READ, who.unit, 0, BASE + at, len);
        break;
    case 4:
        e.kind = SG_TRACE_ATOMIC_WRITE;
        e.addr &= ~7ull;
        e.len = 8;
        T_TRUE(sg_persist_atom_store(m.p, &who, e.addr, e.data));
        record(&e);
        break;
    case 5:
        e.kind = SG_TRACE_ATOMIC;
        e.addr &= ~7ull;
        e.value = e.found = below(2) ? sg_get_le64(visible + e.addr - BASE) : 7;
        e.swap = sg_prng(&m.random);
        T_TRUE(sg_persist_atomic(m.p, &who, e.addr, &e.found, e.swap));
        record(&e);
        break;
    default:
        T_TRUE(sg_persist_dma_write(m.p, &who, e.addr, e.data, len));
        record(&e);
    }
}

static void cpu_input(void)
{
    static const uint8_t sizes[] = { 1, 2, 4, 8, 8, 8, 16, 32, 64, 7 };
    struct sg_persist_source who = source(SG_PERSIST_CPU);
    size_t len = sizes[below(sizeof(sizes))];
    unsigned at = place_of(&len);
    struct sg_trace_event e = sg_crash_event(SG_TRACE_STORE, &who, BASE + at, len);

    switch (below(11)) {
    case 9:
    case 10:
        e.kind = SG_TRACE_LOAD;
        sg_persist_cpu_load(m.p, &who, e.addr, e.len);
        break;
    case 0:
    case 1:
        e.kind = SG_TRACE_CPU_FLUSH;
        e.arg = below(SG_PERSIST_CPU_FLUSHES);
        sg_persist_cpu_flush(m.p, &who, e.addr, e.arg);
        break;
    case 2:
    case 3:
        e.kind = SG_TRACE_CPU_FENCE;
        e.arg = below(SG_PERSIST_CPU_FENCES);
        sg_persist_cpu_fence(m.p, &who, e.arg);
        break;
    case 4:
        e.kind = SG_TRACE_CPU_SYNC;
        sg_persist_cpu_sync(m.p);
        break;
    default:
        e.arg = below(4);
        e.data = payload(len);
        if (!(e.arg & SG_PERSIST_STORE_WRITE)) {
            e.arg |= change(at, e.data, len);
        }
        T_TRUE(sg_persist_cpu_store(m.p, &who, e.addr, e.data, len, (unsigned)e.arg));
    }
    record(&e);
}

static void flush_input(void)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 1, .msn = 1 };
    size_t len = 1 + below(2048);
    struct sg_trace_event e;
    enum sg_pm_result result;

    if (!m.waits) {
        m.op_addr = BASE + place_of(&len);
        m.op = (struct sg_pm_op){ .len = len, .flags = 1 + below(3) };
    }
    e = sg_crash_event(SG_TRACE_FLUSH_BEGIN, &who, m.op_addr, m.op.len);
    e.arg = m.op.flags;
    if (!m.waits) {
        record(&e);
    }
    result = sg_persist_flush(m.p, &who, m.op_addr, &m.op);
    m.waits = !sg_crash_flush_ends(&m.op, result, &e.status);
    if (!m.waits) {
        e.kind = SG_TRACE_FLUSH_END;
        record(&e);
    }
}

static void fault_input(void)
{
    struct sg_persist_faults f = {
        .read_only = !below(8),
        .flush_fails = below(2),
        .wears_out = !below(4),
        .lines_left = below(200),
    };
    size_t len = 1 + below(200);
    unsigned at = place_of(&len);
    struct sg_trace_event e;

    switch (below(5)) {
    case 0:
        sg_persist_set_faults(m.p, (int)(at / SIZE), &f);
        e = sg_crash_faults_event(at / SIZE, &f);
        record(&e);
        break;
    case 1:
        sg_persist_clear_bad(m.p, BASE + at, len);
        record_plain(SG_TRACE_CLEAR_BAD, 0, 0, BASE + at, len);
        break;
    case 2:
        sg_persist_poison(m.p, BASE + at, len);
        record_plain(SG_TRACE_POISON, 0, 0, BASE + at, len);
        break;
    case 3:
        len = below(2) ? len : 1 + below(WHOLE - at); /* over both extents */
        sg_persist_media_read(m.p, BASE + at, (uint8_t[WHOLE]){ 0 }, len);
        record_plain(SG_TRACE_MEDIA_READ, 0, 0, BASE + at, len);
        break;
    default:
        e = (struct sg_trace_event){
            .kind = SG_TRACE_MARK_BAD, .addr = BASE + at, .len = len, .arg = 1 + below(2)
        };
        sg_persist_mark_bad(m.p, e.addr, len, e.arg);
        record(&e);
    }
}

static void other_input(void)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_OTHER };
    size_t len = 1 + below(below(2) ? 300 : 8);
    unsigned at = place_of(&len);
    struct sg_trace_event e = sg_crash_event(SG_TRACE_OTHER_WRITE, &who, BASE + at, len);

    switch (below(4)) {
    case 0:
        sg_persist_deep_flush(m.p, BASE + at, len);
        record_plain(SG_TRACE_DEEP_FLUSH, 0, 0, BASE + at, len);
        break;
    case 1:
        sg_persist_write_back(m.p, BASE + at, len);
        record_plain(SG_TRACE_WRITE_BACK, 0, 0, BASE + at, len);
        break;
    default:
        e.data = payload(len);
        e.arg = change(at, e.data, len);
        T_TRUE(sg_persist_other_write(m.p, &who, BASE + at, len));
        record(&e);
    }
}

static void configure_input(void)
{
    GString *text = g_string_new(NULL);
    struct sg_trace_event e = { .kind = SG_TRACE_CONFIGURE };

    random_settings();
    T_NULL(sg_persist_configure(m.p, &m.config));
    sg_crash_settings_text(&m.config, NULL, text);
    e.name = sg_trace_writer_name(m.w, text->str);
    record(&e);
    g_string_free(text, TRUE);
}

static void cut(void)
{
    struct sg_persist_policy policy = {
        .outcome = below(SG_PERSIST_OUTCOMES),
        .seed = below(3),
        .addr = BASE + below(WHOLE),
        .len = 1 + below(2000),
    };
    struct sg_trace_event e = sg_crash_cut_event(&policy);

    sg_persist_report_free(sg_persist_cut(m.p, &policy));
    record(&e);
    memcpy(visible, media, WHOLE);
    memcpy(m.after[m.cuts++ % CUTS], media, WHOLE);
    sg_persist_restart(m.p);
    record_plain(SG_TRACE_RESTART, 0, 0, 0, 0);
    m.waits = false;
}

static void armed_input(void)
{
    struct sg_persist_source who = source(SG_PERSIST_ADAPTER);
    struct sg_persist_arm arm = { .kind = below(3),
                                  .count = 1 + below(20),
                                  .milestone = below(SG_PM_MILESTONES) };
    struct sg_trace_event e = sg_crash_event(SG_TRACE_MILESTONE, &who, 0, 0);

    if (below(2)) {
        sg_persist_arm(m.p, &arm);
    } else {
        e.arg = arm.milestone;
        sg_persist_milestone(m.p, &who, arm.milestone);
        record(&e);
    }
}

static void input(void)
{
    struct sg_trace_event tick = { .kind = SG_TRACE_TICK };

    switch (below(40)) {
    case 0 ... 12:
        adapter_input();
        break;
    case 13 ... 22:
        cpu_input();
        break;
    case 23 ... 26:
        flush_input();
        break;
    case 27 ... 28:
        other_input();
        break;
    case 29 ... 34:
        m.now_ns += below(30000);
        sg_persist_tick(m.p, m.now_ns);
        tick.now_ns = m.now_ns;
        record(&tick);
        break;
    case 35:
        configure_input();
        break;
    case 36:
        fault_input();
        break;
    case 37:
        armed_input();
        break;
    case 38:
        if (below(4) == 0) {
            cut();
        }
        break;
    default:
        if (below(10) == 0) {
            sg_persist_orderly(m.p);
            record_plain(SG_TRACE_ORDERLY, 0, 0, 0, 0);
        }
    }
}

/* The machine goes on for a few inputs after its power failed: CPUs stop later than adapters. */
static void run(void)
{
    for (unsigned step = 0; step < STEPS; step++) {
        input();
        if (m.due) {
            m.due = false;
            record_plain(SG_TRACE_FREEZE, 0, 0, 0, 0);
            for (unsigned late = below(5); late; late--) {
                cpu_input();
                adapter_input();
            }
            cut();
        }
    }
    T_TRUE(sg_trace_writer_end(m.w, NULL));
    sg_trace_writer_free(m.w);
}

/* ---- Replay ---- */

static void put_page(void *opaque, unsigned extent, uint64_t number,
                     const uint8_t page[SG_TRACE_PAGE])
{
    size_t at = number * SG_TRACE_PAGE, len = SG_MIN(SIZE - at, (size_t)SG_TRACE_PAGE);

    memcpy(again_media + (size_t)extent * SIZE + at, page, len);
}

static void replay(void)
{
    struct sg_trace_octets source_of_file = { m.file->data, m.file->len };
    struct sg_trace_reader *r = sg_trace_reader_new(sg_trace_read_octets, &source_of_file);
    const struct sg_trace_event *e;
    struct sg_crash_replay *x;
    struct sg_persist_stats stats, want;
    const char *wrong;
    unsigned cuts = 0;

    memset(again_media, 0, WHOLE);
    T_EQ_INT(sg_trace_open(r, put_page, NULL), SG_TRACE_GOOD);
    memcpy(again_visible, again_media, WHOLE);
    x = sg_crash_replay_new(sg_trace_header(r), &wrong);
    if (!x) {
        T_FAIL("%s", wrong);
    }
    for (unsigned i = 0; i < EXTENTS; i++) {
        sg_crash_replay_add(x, again_visible + (size_t)i * SIZE, again_media + (size_t)i * SIZE);
    }
    while ((e = sg_trace_next(r))) {
        wrong = sg_crash_replay_event(x, e, sg_trace_name(r, e->name));
        if (wrong) {
            T_FAIL("event %" PRIu64 ", %s: %s", e->number, sg_trace_row(e->kind)->name, wrong);
        }
        if (e->kind == SG_TRACE_CUT) {
            T_EQ_MEM(again_media, m.after[cuts++ % CUTS], WHOLE);
        }
    }
    T_EQ_INT(sg_trace_status(r), SG_TRACE_END);
    T_EQ_U64(cuts, m.cuts);
    T_EQ_MEM(again_visible, visible, WHOLE);
    T_EQ_MEM(again_media, media, WHOLE);
    sg_persist_stats(m.p, &want);
    sg_persist_stats(sg_crash_replay_domain(x), &stats);
    T_EQ_MEM(stats.stage, want.stage, sizeof(want.stage));
    sg_crash_replay_free(x);
    sg_trace_reader_free(r);
}

static void random_machines(void)
{
    unsigned cuts = 0, inputs = 0;

    for (uint64_t seed = 1; seed <= 300; seed++) {
        T_CONTEXT("seed %" PRIu64, seed);
        start(seed);
        run();
        T_TRUE(m.cuts <= CUTS);
        replay();
        cuts += m.cuts;
        inputs += m.inputs;
        sg_persist_free(m.p);
        g_byte_array_free(m.file, TRUE);
    }
    T_NOTE("%u inputs, %u cuts", inputs, cuts);
    T_TRUE(cuts > 300);
}

/* The table of the trace has the numbers of the domain. */
static void limits(void)
{
    T_EQ_U64(sg_trace_row(SG_TRACE_STORE)->arg_limit, 2 * SG_PERSIST_STORE_ANNOUNCED);
    T_EQ_U64(sg_trace_row(SG_TRACE_OTHER_WRITE)->arg_limit, 2 * SG_PERSIST_STORE_ANNOUNCED);
    T_EQ_U64(sg_trace_row(SG_TRACE_CPU_FLUSH)->arg_limit, SG_PERSIST_CPU_FLUSHES);
    T_EQ_U64(sg_trace_row(SG_TRACE_CPU_FENCE)->arg_limit, SG_PERSIST_CPU_FENCES);
    T_EQ_U64(sg_trace_row(SG_TRACE_MILESTONE)->arg_limit, SG_PM_MILESTONES);
    T_EQ_U64(sg_trace_row(SG_TRACE_CUT)->arg_limit, SG_PERSIST_OUTCOMES);
    T_EQ_U64(sg_trace_row(SG_TRACE_MARK_BAD)->arg_limit, SG_PERSIST_POISONED + 1);
    T_EQ_U64(sg_trace_row(SG_TRACE_ATOMIC_WRITE)->len_min, SG_PERSIST_ATOM);
    T_EQ_U64(SG_TRACE_EXTENTS, SG_PERSIST_EXTENTS);
    T_EQ_U64(SG_TRACE_STORE_MAX, SG_PERSIST_LINE);
}

static const struct t_case cases[] = {
    { "a trace replays to the same media", random_machines },
    { "limits of the trace are those of the domain", limits },
};

T_MAIN(cases)
