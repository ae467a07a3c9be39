/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traces of a hostile author: any events with any fields that the format allows.  They are refused,
 * or explored; twice with the same result.
 */
#include "base/prng.h"
#include "explore_rig.h"
#include "tap.h"

enum { RUNS = 400, EVENTS = 120 };

static uint64_t rng;

static uint64_t below(uint64_t n)
{
    return sg_prng(&rng) % n;
}

/* Small numbers, addresses of persistent memory, the limits, anything. */
static uint64_t number(uint64_t max)
{
    uint64_t n;

    switch (below(8)) {
    case 0:
        n = max - below(3);
        break;
    case 1:
        n = sg_prng(&rng);
        break;
    case 2:
    case 3:
        n = XR_BASE + below(XR_SIZE + 64);
        break;
    default:
        n = below(6);
    }
    return n > max ? n % (max + 1 ? max + 1 : max) : n;
}

static uint64_t length(const struct sg_trace_row *row)
{
    uint64_t most = below(16) ? 80 : 5000;

    return row->len_min + below(SG_MIN(row->len_max, most) - row->len_min + 1);
}

static void any_event(struct xr *r, unsigned machine)
{
    static uint8_t payload[SG_TRACE_DATA_MAX];
    struct sg_trace_event e = { .kind = (uint8_t)(1 + below(SG_TRACE_KINDS - 1)) };
    const struct sg_trace_row *row = sg_trace_row(e.kind);

    for (const uint8_t *f = row->field; *f; f++) {
        e.field[*f] = number(sg_trace_field_max[*f]);
    }
    if (row->arg_limit) {
        e.arg %= row->arg_limit;
    }
    if (row->has_data) {
        e.len = SG_MAX(row->len_min, SG_MIN(length(row), row->len_max));
        e.data = payload;
    } else if (below(8)) {
        e.len %= 4096;
    }
    if (e.kind == SG_TRACE_CONFIGURE || e.kind == SG_TRACE_MARK) {
        static const char *const names[] = { "durable", "state", "domain=adr", "acknowledged" };

        e.name = sg_trace_writer_name(r->machine[machine].writer, names[below(4)]);
    }
    T_NULL(sg_trace_event_wrong(&e));
    xr_event(r, machine, e);
}

/* Mostly what machines do, so that some of it gets far. */
static void some_event(struct xr *r)
{
    switch (below(12)) {
    case 0:
        any_event(r, below(2) ? XR_TARGET : XR_CLIENT);
        break;
    case 1:
        xr_connect(r, (uint32_t)below(XR_QPS), 7000);
        break;
    case 2:
    case 3:
    case 4:
        xr_write(r, (uint32_t)below(XR_QPS), below(XR_SIZE / 8) * 8, sg_prng(&rng), below(2));
        break;
    case 5:
        xr_flush(r, (uint32_t)below(XR_QPS), below(XR_SIZE / 64) * 64, 64);
        break;
    case 6:
    case 7:
        xr_store(r, 0x401000 + below(4), below(XR_SIZE / 8) * 8, sg_prng(&rng), below(2));
        break;
    case 8:
        xr_clwb(r, below(XR_SIZE));
        break;
    case 9:
        xr_sfence(r);
        break;
    case 10:
        xr_durable(r, below(XR_SIZE), 1 + below(256));
        break;
    default:
        xr_mark(r, XR_CLIENT, "acknowledged", "");
    }
}

/* What came of it, as text. */
static char *outcome(uint64_t seed, bool hostile)
{
    GString *out = g_string_new(NULL);
    char *broken;
    struct xr r;

    rng = seed;
    xr_init(&r, below(2) ? "persistence-domain=cpu-cache\n" : "");
    for (unsigned i = 0; i < EVENTS; i++) {
        if (hostile) {
            any_event(&r, below(4) ? XR_TARGET : XR_CLIENT);
        } else {
            some_event(&r);
        }
    }
    xr_explore(&r, "all", "all", (1u << SG_CRASH_ACKS) - 1);
    broken = xr_broken(&r);
    g_string_append_printf(out, "%s|%s", r.wrong ? r.wrong : "", broken);
    for (unsigned i = 0; i < r.bugs->len; i++) {
        const struct sg_crash_bug *b = &g_array_index(r.bugs, struct sg_crash_bug, i);

        g_string_append_printf(out, "|%u %u %" PRIu64 " %" PRIu64, b->kind, b->issuer, b->promise,
                               b->lost);
        sg_crash_issuer_text(sg_crash_issuers_at(&r.issuers, b->issuer), out);
    }
    g_free(broken);
    xr_free(&r);
    return g_string_free(out, FALSE);
}

static void sweep(bool hostile)
{
    unsigned runs = t_seeds(RUNS, RUNS / 8), good = 0, bugs = 0;

    for (uint64_t seed = 1; seed <= runs; seed++) {
        char *first, *again;

        T_CONTEXT("seed %" PRIu64, seed);
        first = outcome(seed, hostile);
        again = outcome(seed, hostile);
        T_EQ_STR(first, again);
        good += first[0] == '|';
        bugs += strchr(first, '|') != strrchr(first, '|');
        g_free(first);
        g_free(again);
    }
    T_NOTE("%u runs, %u not refused, %u with bugs", runs, good, bugs);
    T_TRUE(hostile ? good < runs : bugs > runs / 2);
}

static void mostly_good(void)
{
    sweep(false);
}

static void anything(void)
{
    sweep(true);
}

static const struct t_case cases[] = {
    { "random runs with a wrong event now and then", mostly_good },
    { "any events", anything },
};

T_MAIN(cases)
