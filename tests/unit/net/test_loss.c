/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams over paths that lose and reorder: how much arrives in simulated time, and how long
 * nothing arrives.
 *
 * The minimum rates are about half of what this stack reaches on these paths; the test fails when
 * it no longer does. tools/bench/bench-loss compares with Linux's TCP over the same path in one
 * run; docs/benchmarks.md has the table.
 */
#include "tap.h"
#include "peer.h"

enum { PORT = 4791 };

#define PATH_RATE 1000000000ull /* bit/s */
#define PATH_QUEUE (4ull << 20)

struct path {
    const char *name;
    unsigned rtt_ms;
    unsigned loss, reorder; /* millionths */
    unsigned floor;         /* KB/s */
    unsigned stall_ms;      /* no longer one than this; 0: any */
};

struct loss_rig {
    struct wire *w;
    struct peer a, b;
};

static void start(struct loss_rig *r, uint64_t seed, const struct path *p, size_t window)
{
    struct sg_port_config config = { .send_buffer = SG_PORT_SEND_BUFFER_MAX, .window = window };
    struct sg_impair_config c = {
        .loss = p->loss,
        .reorder = p->reorder,
        .delay = p->rtt_ms * WIRE_MS / 2,
        .rate = PATH_RATE,
        .queue = PATH_QUEUE,
        .seed = seed,
    };

    memset(r, 0, sizeof(*r));
    r->w = wire_new(seed, 1500, &config);
    T_TRUE(peer_pair(r->w, &r->a, &r->b, PORT));
    wire_impair(r->w, &c);
}

/* Octets received per millisecond, that is KB/s, and the longest time without any. */
static unsigned run(struct loss_rig *r, unsigned seconds, unsigned *stall_ms)
{
    uint64_t from = r->b.received, last = from;
    unsigned ms, idle = 0;

    *stall_ms = 0;
    r->a.to_send = UINT64_MAX / 2;
    peer_send(&r->a);
    for (ms = 0; ms < seconds * 1000; ms++) {
        wire_settle(r->w, WIRE_MS);
        idle = r->b.received == last ? idle + 1 : 0;
        last = r->b.received;
        *stall_ms = MAX(*stall_ms, idle);
    }
    T_FALSE(r->b.damaged);
    return (unsigned)((last - from) / (seconds * 1000));
}

static void stop(struct loss_rig *r)
{
    peer_abort(&r->a);
    wire_settle(r->w, WIRE_S);
    wire_free(r->w);
}

static const struct path paths[] = {
    { "1 ms", 1, 0, 0, 100000, 50 },
    { "1 ms, loss 0.1 %", 1, 1000, 0, 30000, 1000 },
    { "1 ms, loss 1 %", 1, 10000, 0, 9000, 1000 },
    { "1 ms, loss 5 %", 1, 50000, 0, 1500, 0 },
    { "1 ms, reordering 1 %", 1, 0, 10000, 60000, 1000 },
    { "20 ms", 20, 0, 0, 30000, 500 },
    { "20 ms, loss 0.1 %", 20, 1000, 0, 1500, 1000 },
    { "20 ms, loss 1 %", 20, 10000, 0, 450, 1000 },
    { "20 ms, loss 5 %", 20, 50000, 0, 150, 0 },
    { "20 ms, reordering 1 %", 20, 0, 10000, 30000, 1000 },
};

static void throughput(void)
{
    unsigned stall, rate;
    struct loss_rig r;
    size_t i;

    for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        T_CONTEXT("%s", paths[i].name);
        start(&r, i + 1, &paths[i], 0);
        rate = run(&r, 5, &stall);
        T_NOTE("%s: %u KB/s, stall %u ms", paths[i].name, rate, stall);
        T_TRUE(rate >= paths[i].floor);
        T_TRUE(!paths[i].stall_ms || stall <= paths[i].stall_ms);
        stop(&r);
    }
}

/* One window arrives in each round trip, unless the rate of the path is the limit (last row). */
static void windows(void)
{
    static const struct {
        size_t window;
        unsigned least, most; /* KB/s */
    } rows[] = {
        { 0, 45000, 53000 }, /* 1 MiB */
        { SG_PORT_WINDOW_MIN, 11000, 13200 },
        { 2 << 20, 90000, 105000 },
        { SG_PORT_WINDOW_MAX, 110000, 125000 },
    };
    static const struct path path = { "20 ms", 20, 0, 0, 0, 0 };
    unsigned stall, rate;
    struct loss_rig r;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        T_CONTEXT("window of %zu", rows[i].window);
        start(&r, 100 + i, &path, rows[i].window);
        rate = run(&r, 3, &stall);
        T_NOTE("window of %zu: %u KB/s", rows[i].window, rate);
        T_TRUE(rate >= rows[i].least && rate <= rows[i].most);
        stop(&r);
    }
}

static void windows__out_of_range(void)
{
    static const struct sg_port_config bad[] = {
        { .window = SG_PORT_WINDOW_MIN - 1 },           { .window = SG_PORT_WINDOW_MAX + 1 },
        { .send_buffer = SG_PORT_SEND_BUFFER_MIN / 2 }, { .send_buffer = 3 << 20 },
        { .send_buffer = SG_PORT_SEND_BUFFER_MAX * 2 }, { .rto_min_ms = SG_PORT_RTO_MIN_MAX + 1 },
    };
    static const struct sg_port_ops none;
    size_t i;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        T_CONTEXT("row %zu", i);
        T_NULL(sg_port_new(&none, NULL, (const uint8_t[6]){ 2 }, &bad[i]));
    }
}

/* What comes behind a gap is shown, and comes again in its turn. */
static void shown_early(void)
{
    const struct path p = { "10 ms, loss 1 %", 10, 10000, 1000, 0, 0 };
    struct loss_rig r;
    unsigned stall;

    start(&r, 7, &p, 1 << 20);
    run(&r, 2, &stall);
    T_TRUE(r.b.early > 100000);
    T_TRUE(r.b.received > r.b.early);
    r.b.take_early = true; /* what is taken has any content in its turn, the rest has its own */
    run(&r, 2, &stall);
    r.b.abort_on_early = true;
    wire_settle(r.w, 5 * WIRE_S);
    T_NULL(r.b.s);
    T_EQ_U64(r.a.closes, 1);
    wire_free(r.w);

    start(&r, 8, &(const struct path){ "no loss", 10, 0, 0, 0, 0 }, 1 << 20);
    run(&r, 1, &stall);
    T_EQ_U64(r.b.early, 0);
    stop(&r);
}

static const struct t_case cases[] = {
    { "octets behind a gap are shown early", shown_early },
    { "throughput and stalls", throughput, .takes_long = true },
    { "windows", windows, .takes_long = true },
    { "windows out of range", windows__out_of_range },
};

T_MAIN(cases)
