/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs that are right, and their broken twins: each is found on exactly those platforms where
 * the contract of docs/persistence.md lets the data be lost.
 */
#include "explore_rig.h"
#include "staghorn/admin.h"
#include "tap.h"

#define ALL                                                                           \
    "none,ddio=on none,ddio=off adr,ddio=on adr,ddio=off eadr,ddio=on eadr,ddio=off " \
    "whole,ddio=on whole,ddio=off"
#define NONE "none,ddio=on none,ddio=off"
#define ADR NONE " adr,ddio=on adr,ddio=off"
#define EADR ADR " eadr,ddio=on eadr,ddio=off"

enum { PORT = 7000, LOG = 0, OTHER = 4096, STATUS = 8192 };

/* Explores on all platforms, and compares those on which something is broken. */
static void expect_broken(struct xr *r, unsigned acks, const char *platforms)
{
    char *broken;

    xr_explore(r, "all", "all", acks);
    T_NULL(r->wrong);
    broken = xr_broken(r);
    T_EQ_STR(broken, platforms);
    g_free(broken);
}

static const struct sg_crash_bug *bug(const struct xr *r, unsigned n)
{
    T_TRUE(n < r->bugs->len);
    return &g_array_index(r->bugs, struct sg_crash_bug, n);
}

static const struct sg_crash_issuer *issuer(const struct xr *r, unsigned n)
{
    return sg_crash_issuers_at(&r->issuers, bug(r, n)->issuer);
}

static void start(struct xr *r, const char *told)
{
    xr_init(r, told);
    xr_connect(r, 1, PORT);
    xr_connect(r, 2, PORT);
}

/* ---- A remote log ---- */

static void log_right(void)
{
    const struct sg_crash_verdict *v;
    struct xr r;

    start(&r, "");
    for (unsigned i = 0; i < 5; i++) {
        xr_write(&r, 1, LOG + 64 * i, i + 1, false);
        xr_flush(&r, 1, LOG + 64 * i, 64);
    }
    xr_mark(&r, XR_CLIENT, "acknowledged", "");
    expect_broken(&r, SG_CRASH_ACK_DEFAULT, "");
    T_EQ_INT(r.bugs->len, 0);
    v = sg_crash_explorer_verdict(r.explorer, xr_platform(&r, "adr,ddio=on"));
    T_EQ_U64(v->promises[SG_CRASH_ACK_FLUSH], 5);
    T_EQ_U64(v->end, 0);
    xr_free(&r);
}

/*
 * A message of two segments.  Its receiver polls for the last octet, or loads all of it, flushes
 * all of its lines, and says that it is durable.  Only a load proves that a segment is there.
 */
static void long_message(struct xr *r, bool loads_all)
{
    enum { SEGMENT = 1408, LEN = 2 * SEGMENT };
    uint8_t data[SEGMENT];

    memset(data, 7, sizeof(data));
    start(r, "");
    for (unsigned i = 0; i < 2; i++) {
        xr_event(r, XR_TARGET,
                 (struct sg_trace_event){
                     .kind = SG_TRACE_PLACE,
                     .qpn = 1,
                     .addr = XR_BASE + LOG + i * SEGMENT,
                     .data = data,
                     .len = SEGMENT,
                 });
    }
    xr_event(r, XR_TARGET,
             (struct sg_trace_event){
                 .kind = SG_TRACE_LOAD, .addr = XR_BASE + LOG + LEN - 1, .len = 1 });
    if (loads_all) {
        xr_event(
            r, XR_TARGET,
            (struct sg_trace_event){ .kind = SG_TRACE_LOAD, .addr = XR_BASE + LOG, .len = LEN });
    }
    for (unsigned off = 0; off < LEN; off += SG_PERSIST_LINE) {
        xr_clwb(r, LOG + off);
    }
    xr_sfence(r);
    xr_durable(r, LOG, LEN);
    expect_broken(r, SG_CRASH_ACK_DEFAULT, loads_all ? NONE : ALL);
}

static void polling_on_the_last_octet(void)
{
    const struct sg_crash_breach *found;
    struct xr r;

    long_message(&r, false);
    T_EQ_INT(r.bugs->len, 1);
    found = bug(&r, 0)->on[xr_platform(&r, "adr,ddio=on")];
    T_EQ_U64(found->addr, XR_BASE + LOG); /* the other segment */
    T_EQ_INT(found->stage, SG_PERSIST_S0);
    xr_free(&r);
    long_message(&r, true);
    xr_free(&r);
}

/*
 * A CPU says that its store is durable, without a flush.  Past the cache, the data that an adapter
 * wrote beside it take it along, if they come behind it.
 */
static void store_beside_data(void)
{
    static const char *const broken[] = {
        "none,ddio=on none,ddio=off adr,ddio=on",
        "none,ddio=on none,ddio=off adr,ddio=on adr,ddio=off",
        "none,ddio=on none,ddio=off adr,ddio=on adr,ddio=off",
    };

    for (unsigned arrivals = SG_CRASH_LATE; arrivals <= SG_CRASH_ANY; arrivals++) {
        struct xr r;

        start(&r, "");
        r.arrivals = (uint8_t)arrivals;
        xr_event(&r, XR_TARGET,
                 (struct sg_trace_event){
                     .kind = SG_TRACE_PLACE,
                     .qpn = 1,
                     .addr = XR_BASE + LOG,
                     .data = (const uint8_t *)"datadata",
                     .len = 8,
                 });
        xr_store(&r, 0x401000, LOG + 8, 1, 0);
        xr_sfence(&r);
        xr_event(&r, XR_TARGET, (struct sg_trace_event){ .kind = SG_TRACE_SETTLE, .qpn = 1 });
        xr_event(&r, XR_TARGET, (struct sg_trace_event){ .kind = SG_TRACE_DEVICE_FENCE });
        xr_durable(&r, LOG + 8, 8);
        expect_broken(&r, SG_CRASH_ACK_DEFAULT, broken[arrivals]);
        xr_free(&r);
    }
}

/* Its completion is taken for an acknowledgement: it may still be in the adapter. */
static void log_without_flush(void)
{
    struct xr r;
    uint64_t first;

    start(&r, "");
    first = xr_write(&r, 1, LOG, 1, true);
    xr_write(&r, 1, LOG + 64, 2, true);
    expect_broken(&r, 1u << SG_CRASH_ACK_WRITE, ALL);
    T_EQ_INT(r.bugs->len, 1);
    T_EQ_U64(bug(&r, 0)->lost, first);
    T_TRUE(bug(&r, 0)->claimed);
    T_EQ_INT(issuer(&r, 0)->kind, SG_CRASH_BY_WRITE);
    T_EQ_INT(issuer(&r, 0)->port, PORT);
    for (unsigned i = 0; i < r.platforms; i++) {
        T_EQ_U64(bug(&r, 0)->on[i]->count, 2);
        T_EQ_INT(bug(&r, 0)->on[i]->stage, SG_PERSIST_S0);
        T_EQ_U64(bug(&r, 0)->on[i]->until, 0);
        T_EQ_U64(bug(&r, 0)->on[i]->addr, XR_BASE + LOG);
    }
    xr_free(&r);
}

static void flush_of_the_wrong_range(void)
{
    struct xr r;

    start(&r, "");
    xr_write(&r, 1, LOG, 1, true);
    xr_flush(&r, 1, OTHER, 64);
    xr_mark(&r, XR_CLIENT, "acknowledged", "");
    expect_broken(&r, SG_CRASH_ACK_DEFAULT, NONE " adr,ddio=on");
    T_EQ_INT(r.bugs->len, 1);
    T_EQ_INT(bug(&r, 0)->kind, SG_CRASH_ACK_ACKNOWLEDGED);
    T_EQ_INT(bug(&r, 0)->on[xr_platform(&r, "adr,ddio=on")]->stage, SG_PERSIST_S2);
    T_EQ_INT(bug(&r, 0)->on[xr_platform(&r, "none,ddio=off")]->stage, SG_PERSIST_S3);
    xr_free(&r);
}

/* The connection's data stay in the adapter, whatever another connection does. */
static void flush_by_another_queue_pair(void)
{
    struct xr r;

    start(&r, "");
    xr_write(&r, 1, LOG, 1, true);
    xr_flush(&r, 2, LOG, 64);
    xr_mark(&r, XR_CLIENT, "acknowledged", "");
    expect_broken(&r, SG_CRASH_ACK_DEFAULT, ALL);
    T_EQ_INT(r.bugs->len, 1);
    xr_free(&r);
}

/*
 * Two connections write to the same octets, and one of them flushes: its promise is kept, whatever
 * becomes of the other's.  Who takes the other's completion for an acknowledgement loses that.
 */
static void race_for_octets(void)
{
    for (unsigned row = 0; row < 4; row++) {
        unsigned first = row / 2, acked = row % 2;
        uint64_t event[2];
        struct xr r;

        T_CONTEXT("other first %u, acknowledged %u", first, acked);
        start(&r, "");
        for (unsigned i = 0; i < 2; i++) {
            unsigned other = i != first;

            event[other] = xr_write(&r, 1 + other, LOG, 1 + other, other);
        }
        xr_flush(&r, 1, LOG, 64);
        expect_broken(&r, SG_CRASH_ACK_DEFAULT | acked << SG_CRASH_ACK_WRITE, acked ? ALL : "");
        T_EQ_INT(r.bugs->len, acked);
        T_TRUE(!acked || bug(&r, 0)->lost == event[1]);
        xr_free(&r);
    }
}

/* A Flush that follows ends the time in which the data may be lost. */
static void window(void)
{
    struct xr r;
    uint64_t end;

    start(&r, "");
    xr_write(&r, 1, LOG, 1, true);
    xr_mark(&r, XR_CLIENT, "acknowledged", "");
    xr_frame(&r, XR_CLIENT);
    end = sg_trace_writer_events(r.machine[XR_TARGET].writer) + 3; /* flush-end */
    xr_flush(&r, 1, LOG, 64);
    expect_broken(&r, SG_CRASH_ACK_DEFAULT, ALL);
    for (unsigned i = 0; i < r.platforms; i++) {
        T_CONTEXT("platform %u", i);
        T_TRUE(bug(&r, 0)->on[i]->followed);
        T_EQ_U64(bug(&r, 0)->on[i]->until, end);
    }
    xr_free(&r);
}

/* A mark that comes while a Flush is under way trusts it too early. */
static void during_a_flush(void)
{
    struct xr r;

    for (unsigned late = 0; late < 2; late++) {
        struct sg_trace_event e = {
            .kind = SG_TRACE_FLUSH_BEGIN,
            .qpn = 1,
            .addr = XR_BASE + LOG,
            .len = 64,
            .arg = SG_FLUSH_PERSISTENT,
        };

        start(&r, "");
        xr_write(&r, 1, LOG, 1, false);
        xr_event(&r, XR_TARGET, e);
        if (!late) {
            xr_durable(&r, LOG, 8);
        }
        e.kind = SG_TRACE_FLUSH_END;
        xr_event(&r, XR_TARGET, e);
        if (late) {
            xr_durable(&r, LOG, 8);
        }
        expect_broken(&r, SG_CRASH_ACK_DEFAULT, late ? "" : ALL);
        xr_free(&r);
    }
}

/* ---- A server that marks records as valid ---- */

static const struct {
    const char *what; /* s: store, n: non-temporal, c: CLWB, f: SFENCE, d: deep flush */
    const char *broken;
    unsigned stage; /* on adr,ddio=on */
} marks[] = {
    { "s", EADR, SG_PERSIST_SB },
    { "sf", ADR, SG_PERSIST_S2 },
    { "sc", EADR, SG_PERSIST_SB },
    { "scf", NONE, 0 },
    { "scfd", "", 0 },
    { "cfs", EADR, SG_PERSIST_SB },
    { "csf", ADR, SG_PERSIST_S2 },
    { "n", EADR, SG_PERSIST_SB },
    { "nf", NONE, 0 },
};

static void server_marks(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(marks); i++) {
        struct xr r;

        T_CONTEXT("%s", marks[i].what);
        start(&r, "");
        for (const char *s = marks[i].what; *s; s++) {
            switch (*s) {
            case 's':
            case 'n':
                xr_store(&r, 0x401000, STATUS, 1, *s == 'n' ? SG_PERSIST_STORE_NT : 0);
                break;
            case 'c':
                xr_clwb(&r, STATUS);
                break;
            case 'f':
                xr_sfence(&r);
                break;
            default:
                xr_event(&r, XR_TARGET,
                         (struct sg_trace_event){
                             .kind = SG_TRACE_DEEP_FLUSH, .addr = XR_BASE + STATUS, .len = 8 });
            }
        }
        xr_durable(&r, STATUS, 8);
        expect_broken(&r, SG_CRASH_ACK_DEFAULT, marks[i].broken);
        if (marks[i].stage) {
            T_EQ_INT(bug(&r, 0)->on[xr_platform(&r, "adr,ddio=on")]->stage, marks[i].stage);
            T_EQ_U64(issuer(&r, 0)->pc, 0x401000);
        }
        xr_free(&r);
    }
}

/* Two places in the program, two bugs; each with its own count. */
static void causes(void)
{
    const struct sg_crash_breach *b;
    struct xr r;

    start(&r, "");
    for (unsigned i = 0; i < 3; i++) {
        xr_store(&r, 0x401000, STATUS + 64 * i, 1, 0);
        xr_sfence(&r);
        xr_durable(&r, STATUS + 64 * i, 8);
    }
    xr_store(&r, 0x402000, OTHER, 1, 0);
    xr_durable(&r, OTHER, 8);
    xr_explore(&r, "adr", "on", SG_CRASH_ACK_DEFAULT);
    T_EQ_INT(r.bugs->len, 2);
    b = bug(&r, 0)->on[0];
    T_EQ_U64(b->count, 3);
    T_EQ_INT(b->stage, SG_PERSIST_S2);
    T_EQ_U64(issuer(&r, 1)->pc, 0x402000);
    T_EQ_U64(bug(&r, 1)->on[0]->count, 1);
    xr_free(&r);
}

/* ---- What is no bug ---- */

static void not_claimed(void)
{
    struct xr r;

    start(&r, "persistence-domain=cpu-cache\n");
    xr_store(&r, 0x401000, STATUS, 1, 0);
    xr_sfence(&r);
    xr_durable(&r, STATUS, 8);
    expect_broken(&r, SG_CRASH_ACK_DEFAULT, ADR);
    T_EQ_INT(r.bugs->len, 1);
    T_FALSE(bug(&r, 0)->claimed);
    xr_free(&r);
    start(&r, "persistence-domain=memory-controller\n");
    xr_store(&r, 0x401000, STATUS, 1, 0);
    xr_sfence(&r);
    xr_durable(&r, STATUS, 8);
    expect_broken(&r, SG_CRASH_ACK_DEFAULT, ADR);
    T_TRUE(bug(&r, 0)->claimed);
    T_EQ_INT(bug(&r, 0)->least, xr_platform(&r, "adr,ddio=on"));
    xr_free(&r);
}

/* A Verify saw data that this platform may not have yet: the run would have gone otherwise. */
static void verify(void)
{
    const uint64_t value = 0x1234, octets = GUINT64_TO_LE(value);
    uint64_t event;
    uint8_t hash[SG_HASHER_OUT];
    struct sg_trace_event e = { .kind = SG_TRACE_MEDIA_READ,
                                .addr = XR_BASE + LOG,
                                .len = sizeof(value) };
    struct sg_hasher hasher;
    struct xr r;

    sg_hasher_init(&hasher, SG_HASH_CRC32C, NULL, 0);
    sg_hasher_add(&hasher, &octets, sizeof(octets));
    T_EQ_INT(sg_hasher_end(&hasher, hash), 4);
    start(&r, "");
    xr_write(&r, 1, LOG, value, false);
    xr_event(&r, XR_TARGET, e);
    e.kind = SG_TRACE_VERIFY;
    e.value = e.len;
    e.len = 4;
    e.data = hash;
    e.arg = SG_HASH_CRC32C;
    e.qpn = 1;
    event = xr_event(&r, XR_TARGET, e);
    xr_durable(&r, LOG, 8);
    xr_explore(&r, "all", "all", SG_CRASH_ACK_DEFAULT);
    for (unsigned i = 0; i < r.platforms; i++) {
        const struct sg_crash_verdict *v = sg_crash_explorer_verdict(r.explorer, i);
        bool keeps = v->platform.domain >= SG_PERSIST_EADR ||
                     (v->platform.domain == SG_PERSIST_ADR && !v->platform.ddio);

        T_CONTEXT("platform %u", i);
        T_EQ_U64(v->end, keeps ? 0 : event);
        T_EQ_U64(v->not_judged, !keeps);
        T_EQ_U64(v->promises[SG_CRASH_ACK_DURABLE], keeps);
    }
    T_EQ_U64(sg_crash_explorer_not_compared(r.explorer), 0);
    xr_free(&r);
}

static void behind_a_cut(void)
{
    const struct sg_crash_verdict *v;
    struct xr r;
    uint64_t event;

    start(&r, "");
    event = xr_event(&r, XR_TARGET, (struct sg_trace_event){ .kind = SG_TRACE_FREEZE });
    xr_store(&r, 0x401000, STATUS, 1, 0);
    xr_durable(&r, STATUS, 8);
    expect_broken(&r, SG_CRASH_ACK_DEFAULT, "");
    v = sg_crash_explorer_verdict(r.explorer, 0);
    T_EQ_U64(v->end, event);
    T_EQ_U64(v->not_judged, 1);
    xr_free(&r);
}

static void nothing_promised(void)
{
    struct xr r;

    start(&r, "");
    xr_write(&r, 1, LOG, 1, false);
    expect_broken(&r, SG_CRASH_ACK_DEFAULT, "");
    T_EQ_U64(sg_crash_promise_counts(r.promises)->acknowledgements, 0);
    xr_free(&r);
}

/* An event that the machine cannot have is refused. */
static void refused(void)
{
    struct xr r;

    start(&r, "");
    xr_store(&r, 0x401000, XR_SIZE, 1, 0);
    xr_explore(&r, "adr", "on", SG_CRASH_ACK_DEFAULT);
    T_NOT_NULL(r.wrong);
    xr_free(&r);
}

static const struct t_case cases[] = {
    { "polling on the last octet of a message", polling_on_the_last_octet },
    { "a store beside data under way, which come before or behind it", store_beside_data },
    { "a remote log that flushes", log_right },
    { "a remote log without Flush", log_without_flush },
    { "a Flush of the wrong range", flush_of_the_wrong_range },
    { "a Flush by another queue pair", flush_by_another_queue_pair },
    { "a race for octets, of which one write is flushed", race_for_octets },
    { "how long data may be lost", window },
    { "a mark before a Flush has ended", during_a_flush },
    { "a server's marks, flushed or not", server_marks },
    { "breaches with one cause are one bug", causes },
    { "what the platform never claimed is no bug", not_claimed },
    { "a Verify that would have gone otherwise", verify },
    { "behind a power cut nothing is judged", behind_a_cut },
    { "nothing was promised", nothing_promised },
    { "an impossible event is refused", refused },
};

T_MAIN(cases)
