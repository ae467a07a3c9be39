/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two wires over one path that loses frames: iWARP and RDMA/TCP of 2000, two whole adapters
 * over TCP in simulated time.  So the results depend on the seed and on nothing of this machine.
 *
 *     bench_wires [--json] [--seconds S] [--writes N]
 *
 * The path: 400 Mbit/s, a queue of 1 MiB, a round trip of 1 ms, MTU 1500, in both directions.  For
 * each wire and each share of lost frames, together for SEEDS seeds:
 *
 *   bulk     Writes of 64 KiB, 8 under way, for S simulated seconds: octets a second, and octets
 *            of frames that the writer sends for an octet of payload
 *   single   one Write of 32 KiB, N times, with a pause after each: for each KiB of it from the
 *            doorbell until it is in the peer's memory.  Its host looks every 10 us.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tcp_link.h"
#include "verbs/state/adapter_state.h"

enum {
    UNDER_WAY = 8,
    LARGE = 65536,
    PARTS = 32, /* of a single Write */
    PART = 1024,
    SEEDS = 5,
    MAX_WRITES = 10000,
    MAX_SECONDS = 60,
    LOOK_NS = 10000,
    PAUSE_NS = 2000000,
    ROUND_TRIP_NS = 1000000,
    GIVE_UP_S = 60, /* simulated, for one Write */
};

struct wires_row {
    enum sg_engine_wire wire;
    uint32_t loss; /* millionths */
};

static const struct wires_row rows[] = {
    { SG_ENGINE_IWARP, 0 },     { SG_ENGINE_RDMA_TCP_2000, 0 },
    { SG_ENGINE_IWARP, 1000 },  { SG_ENGINE_RDMA_TCP_2000, 1000 },
    { SG_ENGINE_IWARP, 10000 }, { SG_ENGINE_RDMA_TCP_2000, 10000 },
    { SG_ENGINE_IWARP, 50000 }, { SG_ENGINE_RDMA_TCP_2000, 50000 },
};

static const char *const names[] = {
    [SG_ENGINE_IWARP] = "iwarp",
    [SG_ENGINE_RDMA_TCP_2000] = "rdma-tcp-2000",
};

struct wires_result {
    double mb_per_s, frame_octets;
    double mean_us, median_us, p99_us, late; /* late: share that came after a round trip */
    uint64_t early;                          /* segments of single Writes, placed behind a gap */
};

static struct pair pair;
static uint64_t sent_octets; /* of frames of side 0 */

static bool count_frame(void *opaque, int from, const uint8_t *frame, size_t len)
{
    (void)opaque;
    (void)frame;
    sent_octets += from == 0 ? len : 0;
    return false;
}

static void start(const struct wires_row *row, uint64_t seed)
{
    struct sg_impair_config path = {
        .delay = ROUND_TRIP_NS / 2,
        .rate = 400000000,
        .queue = 1 << 20,
        .seed = 2 * seed,
    };
    const struct tcp_link_options options = { .lose = count_frame, .path = &path };
    struct sg_adapter_config config;

    sg_adapter_default_config(&config);
    config.engine.wire = (uint8_t)row->wire;
    pair_start_on(&pair, &config, tcp_link_new(&options), PAIR_MEM);
    pair_open(&pair, &(struct md_qp_params){ .entries = 64 });
    pair_connect(&pair); /* nothing is lost before the connection is up */
    path.loss = row->loss;
    for (int i = 0; i < 2; i++) {
        path.seed = 2 * seed + (uint64_t)i; /* as tcp_link.h says */
        sg_assert(sg_impair_set(tcp_link_path(pair.link, i), &path));
        memset(pair.side[i].h.log_on, 0, sizeof(pair.side[i].h.log_on));
    }
}

static void stop(void)
{
    pair_close(&pair);
    pair_stop(&pair);
}

static void post_write(uint32_t len)
{
    struct pair_side *s = &pair.side[0], *to = &pair.side[1];
    const struct md_wr w = {
        .opcode = SG_WR_WRITE,
        .addr = s->buf,
        .len = len,
        .lkey = s->stag,
        .raddr = to->buf,
        .rkey = to->stag,
    };

    md_post_send(&s->qp, &w);
}

/* Completions of Writes since the last call. */
static unsigned completed(void)
{
    struct sg_cqe c;
    unsigned n = 0;

    for (; md_poll(&pair.side[0].cq, &c); n++) {
        if (c.status != SG_WC_SUCCESS) {
            fprintf(stderr, "bench_wires: a Write ended with status %u\n", c.status);
            exit(1);
        }
    }
    return n;
}

/* Runs for that simulated time; returns the octets that were written. */
static uint64_t write_for(uint64_t ns, unsigned *under_way)
{
    uint64_t end = pair.side[0].h.now_ns + ns, octets = 0;

    while (pair.side[0].h.now_ns < end) {
        unsigned n = completed();

        octets += (uint64_t)n * LARGE;
        for (*under_way -= n; *under_way < UNDER_WAY; ++*under_way) {
            post_write(LARGE);
        }
        pair_pass(&pair, 10 * LOOK_NS);
    }
    return octets;
}

static void bulk(const struct wires_row *row, double seconds, struct wires_result *r)
{
    uint64_t octets = 0, frames = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        unsigned under_way = 0;

        start(row, seed);
        write_for(500000000, &under_way);
        sent_octets = 0;
        octets += write_for((uint64_t)(seconds * 1e9), &under_way);
        frames += sent_octets;
        stop();
    }
    r->mb_per_s = (double)octets / 1e6 / (seconds * SEEDS);
    r->frame_octets = octets ? (double)frames / (double)octets : 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Writes the octets 'mark', and notes in us when each part was there. */
static void one_write(uint8_t mark, double *us)
{
    uint64_t begin = pair.side[0].h.now_ns;
    uint8_t *to = pair_buf(&pair, 1);
    uint64_t missing = (1ull << PARTS) - 1;

    memset(pair_buf(&pair, 0), mark, (size_t)PARTS * PART);
    post_write(PARTS * PART);
    while (missing) {
        uint64_t now = pair.side[0].h.now_ns;

        for (unsigned i = 0; i < PARTS; i++) {
            const uint8_t *p = to + (size_t)i * PART;

            if (missing & 1ull << i && p[0] == mark && memcmp(p, p + 1, PART - 1) == 0) {
                missing &= ~(1ull << i);
                us[i] = (double)(now - begin) / 1000;
            }
        }
        if (now - begin > GIVE_UP_S * 1000000000ull) {
            fprintf(stderr, "bench_wires: a Write was not placed in %d s\n", GIVE_UP_S);
            exit(1);
        }
        pair_pass(&pair, LOOK_NS);
    }
    pair_pass(&pair, PAUSE_NS);
    completed();
}

static void single(const struct wires_row *row, unsigned count, struct wires_result *r)
{
    size_t n = (size_t)SEEDS * count * PARTS, at = 0, late = 0;
    double *us = malloc(n * sizeof(*us)), sum = 0;

    sg_assert(us);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        start(row, seed);
        for (unsigned i = 0; i < count; i++, at += PARTS) {
            one_write((uint8_t)(i % 250 + 1), us + at);
        }
        r->early += sg_engine_stats(pair.side[1].md.a->engine)->rx_early;
        stop();
    }
    qsort(us, n, sizeof(*us), compare);
    for (size_t i = 0; i < n; i++) {
        sum += us[i];
        late += us[i] > ROUND_TRIP_NS / 1000.0;
    }
    r->mean_us = sum / (double)n;
    r->median_us = us[n / 2];
    r->p99_us = us[n * 99 / 100];
    r->late = (double)late / (double)n;
    free(us);
}

static void print_row(const struct wires_row *row, const struct wires_result *r, bool json,
                      bool last)
{
    if (json) {
        printf("  {\"wire\": \"%s\", \"loss\": %g, \"mb_per_s\": %.3f, \"frame_octets\": %.4f, "
               "\"mean_us\": %.1f, \"median_us\": %.0f, \"p99_us\": %.0f, \"late\": %.5f, "
               "\"early\": %" PRIu64 "}%s\n",
               names[row->wire], row->loss / 1e6, r->mb_per_s, r->frame_octets, r->mean_us,
               r->median_us, r->p99_us, r->late, r->early, last ? "" : ",");
    } else {
        printf("%-14s %6g %9.2f %7.4f %8.1f %8.0f %8.0f %8.5f %8" PRIu64 "\n", names[row->wire],
               row->loss / 1e6, r->mb_per_s, r->frame_octets, r->mean_us, r->median_us, r->p99_us,
               r->late, r->early);
    }
    fflush(stdout);
}

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_wires [--json] [--seconds S] [--writes N]\n"
            "S: more than 0, at most %d; N: 1 to %d\n",
            MAX_SECONDS, MAX_WRITES);
    return 2;
}

int main(int argc, char **argv)
{
    const size_t count = sizeof(rows) / sizeof(rows[0]);
    double seconds = 2;
    int number = 400;
    bool json = false;

    for (int a = 1; a < argc; a++) {
        if (strcmp(argv[a], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[a], "--seconds") == 0 && a + 1 < argc) {
            seconds = atof(argv[++a]);
        } else if (strcmp(argv[a], "--writes") == 0 && a + 1 < argc) {
            number = atoi(argv[++a]);
        } else {
            return usage();
        }
    }
    if (seconds <= 0 || seconds > MAX_SECONDS || number < 1 || number > MAX_WRITES) {
        return usage();
    }
    if (json) {
        puts("[");
    } else {
        printf("%-14s %6s %9s %7s %8s %8s %8s %8s %8s\n", "wire", "loss", "MB/s", "sent", "mean us",
               "median", "99 %", "late", "early");
    }
    for (size_t i = 0; i < count; i++) {
        struct wires_result r = { 0 };

        bulk(&rows[i], seconds, &r);
        single(&rows[i], (unsigned)number, &r);
        print_row(&rows[i], &r, json, i + 1 == count);
    }
    if (json) {
        puts("]");
    }
    return 0;
}
