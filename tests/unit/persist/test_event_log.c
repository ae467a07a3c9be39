/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log: order, sources, bounds, its format, replay; the report that is made from it. */
#include "base/bytes.h"
#include "rig.h"

#define P SG_FLUSH_PERSISTENT

static void order(void)
{
    static const uint8_t want[] = { SG_PERSIST_EV_CONFIGURE, SG_PERSIST_EV_DMA_WRITE,
                                    SG_PERSIST_EV_FLUSH,     SG_PERSIST_EV_FLUSH_DONE,
                                    SG_PERSIST_EV_CPU_STORE, SG_PERSIST_EV_CPU_FLUSH,
                                    SG_PERSIST_EV_CPU_FENCE, SG_PERSIST_EV_MILESTONE,
                                    SG_PERSIST_EV_CUT,       SG_PERSIST_EV_RESTART };
    struct dom_rig r;
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 9, .msn = 3 };
    struct sg_persist_event e;
    uint64_t oldest, newest;

    rig_simple(&r, SG_PERSIST_ADR);
    sg_persist_tick(r.p, 1234);
    rig_write_u64(&r, 9, 16, 0x1122334455667788);
    T_EQ_INT(rig_flush(&r, 9, 0, 64, P), SG_PM_DONE);
    rig_store(&r, 2, 8, 5);
    rig_cpu_flush(&r, 2, 8, SG_PERSIST_CLWB);
    rig_sfence(&r, 2);
    rig_sfence(&r, 2); /* nothing to do: not logged */
    sg_persist_milestone(r.p, &who, SG_PM_AFTER_FLUSH_ANSWER);
    rig_cut(&r, SG_PERSIST_OUTCOME_RANDOM, 42);
    sg_persist_log_bounds(r.p, &oldest, &newest);
    T_EQ_U64(oldest, 1);
    T_EQ_U64(newest, sizeof(want));
    for (uint64_t seq = 1; seq <= newest; seq++) {
        T_CONTEXT("event %" PRIu64, seq);
        T_TRUE(sg_persist_log_event(r.p, seq, &e));
        T_EQ_U64(e.seq, seq);
        T_EQ_STR(sg_persist_event_name(e.kind), sg_persist_event_name(want[seq - 1]));
    }
    T_TRUE(sg_persist_log_event(r.p, 2, &e));
    T_EQ_U64(e.now_ns, 1234);
    T_EQ_U64(e.addr, RIG_BASE + 16);
    T_EQ_U64(e.qpn, 9);
    T_EQ_U64(e.at, 0x5000 + 16);
    T_EQ_U64(sg_get_le64(&e.data), 0x1122334455667788);
    T_TRUE(sg_persist_log_event(r.p, 5, &e));
    T_EQ_U64(e.agent, SG_PERSIST_CPU);
    T_EQ_U64(e.unit, 2);
    T_TRUE(e.at >= 0x400000);
    T_FALSE(sg_persist_log_event(r.p, 0, &e));
    T_FALSE(sg_persist_log_event(r.p, newest + 1, &e));
    rig_down(&r);
}

static void bound(void)
{
    struct dom_rig r;
    struct sg_persist_event e;
    uint64_t oldest, newest;

    rig_simple(&r, SG_PERSIST_ADR); /* 256 events */
    for (unsigned i = 0; i < 1000; i++) {
        rig_write_u64(&r, 1, 0, i);
    }
    sg_persist_log_bounds(r.p, &oldest, &newest);
    T_EQ_U64(newest, 1001);
    T_EQ_U64(newest - oldest + 1, 256);
    T_TRUE(sg_persist_log_event(r.p, oldest, &e));
    T_EQ_U64(e.seq, oldest);
    T_FALSE(sg_persist_log_event(r.p, oldest - 1, &e));
    rig_down(&r);
}

/* ---- Replay ---- */

static uint64_t rng;

static uint64_t below(uint64_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng % n;
}

static void random_event(struct dom_rig *r, uint64_t *now, struct sg_pm_op *op)
{
    struct sg_persist_source who = { .agent = SG_PERSIST_ADAPTER, .qpn = 3 };
    uint64_t off = below(4000), value;
    uint8_t buf[200];

    memset(buf, below(256), sizeof(buf));
    switch (below(16)) {
    case 15:
        sg_persist_cpu_load(r->p, &(struct sg_persist_source){ SG_PERSIST_CPU, .unit = below(2) },
                            RIG_BASE + off, 1 + below(200));
        break;
    case 0:
        op->len = 4096;
        op->flags = 1 + below(3);
        sg_persist_flush(r->p, &who, RIG_BASE, op);
        break;
    case 1:
        *now += below(2000);
        sg_persist_tick(r->p, *now);
        break;
    case 2:
        rig_sfence(r, below(2));
        break;
    case 3:
        rig_cpu_flush(r, below(2), off, below(SG_PERSIST_CPU_FLUSHES));
        break;
    case 4:
        rig_store_nt(r, below(2), off, rng);
        break;
    case 5:
        sg_persist_settle(r->p, 0, 3);
        break;
    case 6:
        sg_persist_device_fence(r->p, 0);
        break;
    case 7:
        memset(r->visible + off, 99, 30);
        sg_persist_other_write(r->p, &who, RIG_BASE + off, 30);
        break;
    case 8 ... 10:
        rig_store(r, below(2), off, rng);
        break;
    case 11:
        sg_persist_atom_store(r->p, &who, RIG_BASE + (off & ~7ull), buf);
        break;
    case 12:
        value = rig_visible(r, off & ~7ull);
        sg_persist_atomic(r->p, &who, RIG_BASE + (off & ~7ull), &value, value + below(2));
        break;
    default:
        rig_write(r, 3, off, buf, 1 + below(200));
    }
}

static void setup(struct dom_rig *r, uint64_t seed)
{
    rng = seed * 77777 + 1;
    rig_init(r);
    r->config.domain = below(4);
    r->config.eviction = below(3);
    r->config.drain = below(3);
    r->config.posted_drain = below(3);
    r->config.placement_delay_ns = below(2) * 700;
    r->config.placement_order = below(SG_PERSIST_ORDERS);
    r->config.store_buffer = below(2);
    r->config.flush_latency_random_ns = below(2) * 1000;
    r->limits.seed = seed;
    r->limits.log_events = 4096;
    r->limits.log_data = 1 << 18;
}

static GByteArray *recorded(struct dom_rig *r, uint64_t seed)
{
    GByteArray *log = g_byte_array_new();
    struct sg_pm_op op = { .phase = SG_PM_NEW };
    uint64_t now = 0;

    setup(r, seed);
    rig_up(r, 8192);
    for (unsigned n = 0; n < 300; n++) {
        if (n == 100) {
            rig_cut(r, SG_PERSIST_OUTCOME_RANDOM, seed);
            op.phase = SG_PM_NEW;
        }
        if (n == 200) {
            r->config.domain = below(4);
            r->config.posted_drain = below(3);
            rig_configure(r);
            sg_persist_mark_bad(r->p, RIG_BASE + 128, 64, SG_PERSIST_POISONED);
        }
        random_event(r, &now, &op);
    }
    sg_persist_log_export(r->p, log);
    return log;
}

static void replayed(void)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct dom_rig a, b;
        GByteArray *log = recorded(&a, seed);

        T_CONTEXT("seed %" PRIu64, seed);
        setup(&b, seed);
        sg_persist_config_init(&b.config); /* the log contains its own */
        rig_up(&b, 8192);
        T_NULL(sg_persist_log_replay(b.p, log->data, log->len));
        T_EQ_MEM(b.visible, a.visible, a.size);
        T_EQ_MEM(b.media, a.media, a.size);
        rig_cut(&a, SG_PERSIST_OUTCOME_RANDOM, seed);
        rig_cut(&b, SG_PERSIST_OUTCOME_RANDOM, seed);
        T_EQ_MEM(b.media, a.media, a.size);
        g_byte_array_free(log, TRUE);
        rig_down(&a);
        rig_down(&b);
    }
}

/* Whatever the bytes, replay ends with a text or NULL. */
static void garbled(void)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct dom_rig a, b;
        GByteArray *log = recorded(&a, seed);
        unsigned len = log->len;

        for (unsigned n = 1 + below(20); n; n--) {
            log->data[below(4) ? 96 + below(len - 96) : below(96)] = rng >> 9;
        }
        if (below(3) == 0) {
            len = below(len);
        }
        setup(&b, seed);
        rig_up(&b, 8192);
        b.limits.check = false;
        sg_persist_log_replay(b.p, log->data, len);
        g_byte_array_free(log, TRUE);
        rig_down(&a);
        rig_down(&b);
    }
}

static void incomplete(void)
{
    struct dom_rig a, b;
    GByteArray *log = g_byte_array_new();

    rig_simple(&a, SG_PERSIST_ADR);
    for (unsigned i = 0; i < 300; i++) {
        rig_write_u64(&a, 1, 0, i);
    }
    sg_persist_log_export(a.p, log);
    T_EQ_U64(sg_get_le32(log->data + 96 + 60), 0); /* docs/persistence.md: for later versions */
    rig_simple(&b, SG_PERSIST_ADR);
    T_NOT_NULL(sg_persist_log_replay(b.p, log->data, log->len)); /* the ring has wrapped */
    log->data[0] ^= 1;
    T_EQ_STR(sg_persist_log_replay(b.p, log->data, log->len), "not a log");
    g_byte_array_free(log, TRUE);
    rig_down(&a);
    rig_down(&b);
}

/* ---- Report ---- */

/* A small JSON reader: returns the rest after one value, or NULL. */
static const char *json_value(const char *s, unsigned depth);

static const char *blank(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

static const char *json_text(const char *s)
{
    if (*s++ != '"') {
        return NULL;
    }
    for (; *s != '"'; s++) {
        if ((unsigned char)*s < 0x20) {
            return NULL;
        }
        if (*s == '\\' && !strchr("\"\\/bfnrtu", *++s)) {
            return NULL;
        }
    }
    return s + 1;
}

static const char *json_members(const char *s, char end, unsigned depth)
{
    s = blank(s + 1);
    if (*s == end) {
        return s + 1;
    }
    for (;; s = blank(s + 1)) {
        if (end == '}') {
            s = json_text(s);
            s = s ? blank(s) : NULL;
            if (!s || *s != ':') {
                return NULL;
            }
            s = blank(s + 1);
        }
        s = json_value(s, depth + 1);
        s = s ? blank(s) : NULL;
        if (!s || *s == end) {
            return s ? s + 1 : NULL;
        }
        if (*s != ',') {
            return NULL;
        }
    }
}

static const char *json_value(const char *s, unsigned depth)
{
    static const char *const words[] = { "true", "false", "null" };

    if (depth > 20) {
        return NULL;
    }
    if (*s == '{' || *s == '[') {
        return json_members(s, *s == '{' ? '}' : ']', depth);
    }
    if (*s == '"') {
        return json_text(s);
    }
    for (unsigned i = 0; i < 3; i++) {
        if (strncmp(s, words[i], strlen(words[i])) == 0) {
            return s + strlen(words[i]);
        }
    }
    return strspn(s, "-0123456789") ? s + strspn(s, "-0123456789") : NULL;
}

static bool is_json(const char *s)
{
    s = json_value(blank(s), 0);
    return s && !*blank(s);
}

static void report(void)
{
    struct dom_rig r;
    struct sg_persist_extent extent = {
        .base = RIG_BASE + (1 << 20),
        .size = 4096,
        .name = "odd \"name\"\\\n",
    };
    struct sg_persist_report *report;
    GString *json = g_string_new(NULL), *text = g_string_new(NULL);
    uint8_t buf[1000];

    rig_init(&r);
    r.config.placement_delay_ns = 100000;
    r.config.posted_drain = SG_PERSIST_NEVER;
    rig_up(&r, 65536);
    extent.visible = g_malloc0(4096);
    extent.media = g_malloc0(4096);
    T_EQ_INT(sg_persist_add(r.p, &extent), 1);
    memset(buf, 1, sizeof(buf));
    rig_write(&r, 5, 8192, buf, 1000);
    T_EQ_INT(rig_flush(&r, 5, 0, 64, SG_FLUSH_GLOBAL | P), SG_PM_DONE);
    rig_write(&r, 6, 1000, buf, 100);
    sg_persist_settle(r.p, 0, 6);
    rig_write(&r, 7, (1 << 20) + 64, buf, 10);
    rig_store(&r, 3, 640, 1);
    rig_store(&r, 3, 640, 2);
    rig_store_nt(&r, 3, 4096, 1);
    report = rig_cut_report(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(report->acknowledged, 1);
    T_EQ_U64(report->count[SG_PERSIST_S0][SG_PERSIST_LOST], 10);
    T_EQ_U64(report->count[SG_PERSIST_S1][SG_PERSIST_LOST], 100);
    T_EQ_U64(report->count[SG_PERSIST_S2][SG_PERSIST_LOST], 17);
    T_EQ_U64(report->count[SG_PERSIST_SB][SG_PERSIST_LOST], 1);
    T_EQ_U64(report->row_count, 5);
    T_EQ_U64(report->rows[0].source.qpn, 6);
    T_EQ_U64(report->rows[1].source.qpn, 7);
    T_EQ_U64(report->rows[2].addr, RIG_BASE + 640);
    T_EQ_U64(report->rows[2].stores, 2);
    T_EQ_U64(report->rows[2].source.unit, 3);
    T_EQ_U64(report->rows[4].lines, 16); /* one row for the run */
    T_EQ_U64(report->rows[4].source.qpn, 5);
    T_EQ_U64(report->rows[4].source.at, 0x5000 + 8192);
    sg_persist_report_json(report, json);
    T_TRUE(is_json(json->str));
    T_NOT_NULL(strstr(json->str, "\"qpn\": 5"));
    T_NOT_NULL(strstr(json->str, "\"vcpu\": 3"));
    T_NOT_NULL(strstr(json->str, "\"kind\": \"flush-done\""));
    sg_persist_report_text(report, text);
    T_NOT_NULL(strstr(text->str, "adapter 0 qp 5"));
    T_NOT_NULL(strstr(text->str, "vcpu 3 pc 0x4000"));
    T_NOT_NULL(strstr(text->str, "Power cut"));
    sg_persist_report_free(report);
    g_string_free(json, TRUE);
    g_string_free(text, TRUE);
    g_free(extent.visible);
    g_free(extent.media);
    rig_down(&r);
}

static void many_rows(void)
{
    struct dom_rig r;
    const char *events;
    unsigned lines = 0;
    struct sg_persist_report *report;
    GString *out = g_string_new(NULL);

    rig_init(&r);
    r.limits.check = false;
    rig_up(&r, 1 << 20);
    for (unsigned i = 0; i < 8192; i++) {
        rig_write_u64(&r, 1, i * 128, 1);
    }
    report = rig_cut_report(&r, SG_PERSIST_OUTCOME_RANDOM, 3);
    T_EQ_U64(report->row_count, SG_PERSIST_REPORT_ROWS);
    T_EQ_U64(report->rows_omitted, 8192 - SG_PERSIST_REPORT_ROWS);
    T_EQ_U64(report->count[SG_PERSIST_S2][SG_PERSIST_LOST] +
                 report->count[SG_PERSIST_S2][SG_PERSIST_PARTLY] +
                 report->count[SG_PERSIST_S2][SG_PERSIST_KEPT],
             8192);
    T_EQ_U64(report->rows[0].source.agent, SG_PERSIST_NOBODY); /* older than the log */
    sg_persist_report_json(report, out);
    T_TRUE(is_json(out->str));
    g_string_truncate(out, 0);
    sg_persist_report_text(report, out);
    T_NOT_NULL(strstr(out->str, "\nWhat was dirty:\n"));
    T_NOT_NULL(strstr(out->str, "more rows"));
    /* Only the last dozen of the events, because people read this. */
    events = strstr(out->str, "\nLast events:\n");
    T_NOT_NULL(events);
    for (events += strlen("\nLast events:\n"); (events = strchr(events, '\n')); events++) {
        lines++;
    }
    T_EQ_INT(lines, 12);
    sg_persist_report_free(report);
    g_string_free(out, TRUE);
    rig_down(&r);
}

/* A full report counts the rows that it omits, and lines with one fate share a row. */
static void omitted_run(void)
{
    enum { SIZE = 1 << 20, LINES = SIZE / 128 };
    struct sg_persist_report *report;
    uint8_t page[4096];
    struct dom_rig r;

    rig_init(&r);
    r.limits.check = false;
    rig_up(&r, SIZE + sizeof(page));
    for (unsigned i = 0; i < LINES; i++) {
        rig_write_u64(&r, 1, i * 128, 1);
    }
    memset(page, 1, sizeof(page));
    rig_write(&r, 1, SIZE, page, sizeof(page));
    report = rig_cut_report(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(report->row_count, SG_PERSIST_REPORT_ROWS);
    T_EQ_U64(report->rows_omitted, LINES + 1 - SG_PERSIST_REPORT_ROWS);
    sg_persist_report_free(report);
    rig_down(&r);
}

static void nothing_dirty(void)
{
    struct dom_rig r;
    struct sg_persist_report *report;
    GString *out = g_string_new(NULL);

    rig_simple(&r, SG_PERSIST_ADR);
    report = rig_cut_report(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_U64(report->row_count, 0);
    sg_persist_report_json(report, out);
    T_TRUE(is_json(out->str));
    sg_persist_report_free(report);
    g_string_free(out, TRUE);
    rig_down(&r);
}

/* The largest number of NVDIMMs: each is named, and nothing else. */
static void all_extents(void)
{
    struct dom_rig r;
    uint8_t memory[2][64] = { 0 };
    struct sg_persist_report *report;

    rig_simple(&r, SG_PERSIST_ADR);
    for (unsigned i = 1; i <= SG_PERSIST_EXTENTS; i++) {
        struct sg_persist_extent extent = {
            .base = RIG_BASE + (i << 20),
            .size = 64,
            .visible = memory[0],
            .media = memory[1],
        };

        T_EQ_INT(sg_persist_add(r.p, &extent),
                 i < SG_PERSIST_EXTENTS ? (int)i : SG_PERSIST_NO_EXTENT);
    }
    report = rig_cut_report(&r, SG_PERSIST_LOSE_ALL, 0);
    T_EQ_STR(report->extent_name[0], "pmem0");
    T_EQ_STR(report->extent_name[SG_PERSIST_EXTENTS - 1], "extent15");
    sg_persist_report_free(report);
    rig_down(&r);
}

static const struct t_case cases[] = {
    { "the log has inputs and acknowledgements in one order", order },
    { "the log is bounded", bound },
    { "a log replays to the same memories", replayed },
    { "garbled logs do no harm", garbled },
    { "an incomplete log is refused", incomplete },
    { "report: what, where, from whom, and its fate", report },
    { "report: bounded rows, complete counts", many_rows },
    { "report: a run that is left out is one row", omitted_run },
    { "report of nothing", nothing_dirty },
    { "report of as many extents as there may be", all_extents },
};

T_MAIN(cases)
