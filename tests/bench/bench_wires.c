/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two wires over one path that loses frames: iWARP and RDMA/TCP of 2000, two whole adapters
 * over TCP in simulated time.  So the results depend on the seed and on nothing of this machine.
 *
 *     bench_wires [--json] [--seconds S] [--writes N] [--seeds N] [--path NAME]
 *
 * Two paths, with a round trip of 1 ms, the same in both directions:
 *
 *   wide     MTU 1500, 400 Mbit/s, a queue of 1 MiB, receive windows of 1 MiB, which never limit
 *   narrow   MTU 9000, 2 Gbit/s, a queue of 4 MiB, receive windows of 256 KiB, which are what fits
 *            into the path at once: a receiver that keeps octets behind a gap has no room for more
 *
 * For each wire, each path, and each share of lost frames:
 *
 *   bulk     Writes or Reads of one size, 8 under way, for S simulated seconds with each seed:
 *            octets a second, the median of the seeds; octets of frames that their source sends for
 *            an octet of payload; octets that their receiver keeps, sampled every 100 us
 *   single   (wide only) one Write of 32 KiB, N times, with a pause after each: for each KiB of it
 *            from the doorbell until it is in the peer's memory.  Its host looks every 10 us.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tcp_link.h"
#include "verbs/state/adapter_state.h"

enum {
    UNDER_WAY = 8,
    PARTS = 32, /* of a single Write */
    PART = 1024,
    MAX_SEEDS = 99,
    MAX_WRITES = 10000,
    MAX_SECONDS = 60,
    LOOK_NS = 10000,
    PAUSE_NS = 2000000,
    ROUND_TRIP_NS = 1000000,
    GIVE_UP_S = 60, /* simulated, for one Write */
};

struct wires_path {
    const char *name;
    unsigned mtu;
    size_t window;
    uint64_t rate, queue;
};

static const struct wires_path wide = { "wide", 1500, 1 << 20, 400000000, 1 << 20 };
static const struct wires_path narrow = { "narrow", 9000, 256 << 10, 2000000000, 4 << 20 };

struct wires_load {
    const char *name;
    uint8_t opcode;
    uint32_t len; /* octets of a message, at most PAIR_BUF */
};

static const struct wires_load write_64 = { "write-64k", SG_WR_WRITE, 64 << 10 };
static const struct wires_load write_256 = { "write-256k", SG_WR_WRITE, 256 << 10 };
static const struct wires_load read_64 = { "read-64k", SG_WR_READ, 64 << 10 };

struct wires_row {
    const struct wires_path *path;
    const struct wires_load *load;
    uint32_t loss; /* millionths */
    enum sg_engine_wire wire;
};

#define BOTH_WIRES(path, load, loss)                    \
    { &(path), &(load), loss, SG_ENGINE_IWARP },        \
    {                                                   \
        &(path), &(load), loss, SG_ENGINE_RDMA_TCP_2000 \
    }

static const struct wires_row rows[] = {
    BOTH_WIRES(wide, write_64, 0),        BOTH_WIRES(wide, write_64, 1000),
    BOTH_WIRES(wide, write_64, 10000),    BOTH_WIRES(wide, write_64, 50000),
    BOTH_WIRES(narrow, write_64, 0),      BOTH_WIRES(narrow, write_64, 1000),
    BOTH_WIRES(narrow, write_64, 10000),  BOTH_WIRES(narrow, write_256, 1000),
    BOTH_WIRES(narrow, write_256, 10000), BOTH_WIRES(narrow, read_64, 1000),
    BOTH_WIRES(narrow, read_64, 10000),
};

static const char *const names[] = {
    [SG_ENGINE_IWARP] = "iwarp",
    [SG_ENGINE_RDMA_TCP_2000] = "rdma-tcp-2000",
};

struct wires_result {
    double mb_per_s, frame_octets, frames_mb_per_s;
    double kept_mean, kept_most;
    double mean_us, median_us, p99_us, late; /* late: share that came after a round trip */
    uint64_t early;                          /* segments of single Writes, placed behind a gap */
};

static struct pair pair;
static unsigned seeds = 5;
static int source;           /* the side that sends the payload */
static uint64_t sent_octets; /* of its frames */

/* Octets that the receiver has allocated for the connection: when it was set up, and since. */
static struct {
    uint64_t before, sum, most, samples;
} kept;

static bool count_frame(void *opaque, int from, const uint8_t *frame, size_t len)
{
    (void)opaque;
    (void)frame;
    sent_octets += from == source ? len : 0;
    return false;
}

static uint64_t memory_of_receiver(void)
{
    return pair.side[!source].md.a->account.used;
}

static void start(const struct wires_row *row, uint64_t seed)
{
    struct sg_impair_config path = {
        .delay = ROUND_TRIP_NS / 2,
        .rate = row->path->rate,
        .queue = row->path->queue,
        .seed = 2 * seed,
    };
    const struct tcp_link_options options = {
        .port = { .mtu = row->path->mtu, .window = row->path->window },
        .lose = count_frame,
        .path = &path,
    };
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
    source = row->load->opcode == SG_WR_READ;
    kept.before = memory_of_receiver();
}

static void stop(void)
{
    pair_close(&pair);
    pair_stop(&pair);
}

static void post(uint8_t opcode, uint32_t len)
{
    struct pair_side *s = &pair.side[0], *to = &pair.side[1];
    const struct md_wr w = {
        .opcode = opcode,
        .addr = s->buf,
        .len = len,
        .lkey = s->stag,
        .raddr = to->buf,
        .rkey = to->stag,
    };

    md_post_send(&s->qp, &w);
}

/* Completions since the last call. */
static unsigned completed(void)
{
    struct sg_cqe c;
    unsigned n = 0;

    for (; md_poll(&pair.side[0].cq, &c); n++) {
        if (c.status != SG_WC_SUCCESS) {
            fprintf(stderr, "bench_wires: a message ended with status %u\n", c.status);
            exit(1);
        }
    }
    return n;
}

static void sample_kept(void)
{
    uint64_t now = memory_of_receiver(), octets = now > kept.before ? now - kept.before : 0;

    kept.sum += octets;
    kept.most = SG_MAX(kept.most, octets);
    kept.samples++;
}

/* Runs for that simulated time; returns the octets of the messages that were completed. */
static uint64_t run_for(const struct wires_load *load, uint64_t ns, unsigned *under_way)
{
    uint64_t end = pair.side[0].h.now_ns + ns, octets = 0;

    while (pair.side[0].h.now_ns < end) {
        unsigned n = completed();

        octets += (uint64_t)n * load->len;
        for (*under_way -= n; *under_way < UNDER_WAY; ++*under_way) {
            post(load->opcode, load->len);
        }
        pair_pass(&pair, 10 * LOOK_NS);
        sample_kept();
    }
    return octets;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void bulk(const struct wires_row *row, double seconds, struct wires_result *r)
{
    double rate[MAX_SEEDS];
    uint64_t octets = 0, frames = 0;

    memset(&kept, 0, sizeof(kept));
    for (unsigned i = 0; i < seeds; i++) {
        unsigned under_way = 0;
        uint64_t done;

        start(row, i + 1);
        run_for(row->load, 500000000, &under_way);
        sent_octets = 0;
        done = run_for(row->load, (uint64_t)(seconds * 1e9), &under_way);
        rate[i] = (double)done / 1e6 / seconds;
        octets += done;
        frames += sent_octets;
        stop();
    }
    qsort(rate, seeds, sizeof(*rate), compare);
    r->mb_per_s = (rate[seeds / 2] + rate[(seeds - 1) / 2]) / 2;
    r->frame_octets = octets ? (double)frames / (double)octets : 0;
    r->frames_mb_per_s = (double)frames / 1e6 / (seconds * seeds);
    r->kept_mean = (double)kept.sum / (double)kept.samples;
    r->kept_most = (double)kept.most;
}

/* Writes the octets 'mark', and notes in us when each part was there. */
static void one_write(uint8_t mark, double *us)
{
    uint64_t begin = pair.side[0].h.now_ns;
    uint8_t *to = pair_buf(&pair, 1);
    uint64_t missing = (1ull << PARTS) - 1;

    memset(pair_buf(&pair, 0), mark, (size_t)PARTS * PART);
    post(SG_WR_WRITE, PARTS * PART);
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
    size_t n = (size_t)seeds * count * PARTS, at = 0, late = 0;
    double *us = malloc(n * sizeof(*us)), sum = 0;

    sg_assert(us);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
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
                      bool first)
{
    if (json) {
        printf("%s  {\"wire\": \"%s\", \"path\": \"%s\", \"load\": \"%s\", \"loss\": %g, "
               "\"mb_per_s\": %.3f, \"frame_octets\": %.4f, \"frames_mb_per_s\": %.3f, "
               "\"kept_mean\": %.0f, \"kept_most\": %.0f, "
               "\"mean_us\": %.1f, \"median_us\": %.0f, \"p99_us\": %.0f, \"late\": %.5f, "
               "\"early\": %" PRIu64 "}",
               first ? "" : ",\n", names[row->wire], row->path->name, row->load->name,
               row->loss / 1e6, r->mb_per_s, r->frame_octets, r->frames_mb_per_s, r->kept_mean,
               r->kept_most, r->mean_us, r->median_us, r->p99_us, r->late, r->early);
    } else {
        printf("%-14s %-6s %-10s %6g %8.2f %7.4f %8.2f %8.0f %8.0f %8.1f %8.0f %8.0f %8.5f\n",
               names[row->wire], row->path->name, row->load->name, row->loss / 1e6, r->mb_per_s,
               r->frame_octets, r->frames_mb_per_s, r->kept_mean, r->kept_most, r->mean_us,
               r->median_us, r->p99_us, r->late);
    }
    fflush(stdout);
}

struct wires_args {
    double seconds;
    int writes;
    bool json;
    const char *path; /* NULL: both */
};

static bool parse(int argc, char **argv, struct wires_args *args)
{
    for (int a = 1; a < argc; a++) {
        if (strcmp(argv[a], "--json") == 0) {
            args->json = true;
            continue;
        }
        if (a + 1 == argc) {
            return false;
        }
        if (strcmp(argv[a], "--seconds") == 0) {
            args->seconds = atof(argv[++a]);
        } else if (strcmp(argv[a], "--writes") == 0) {
            args->writes = atoi(argv[++a]);
        } else if (strcmp(argv[a], "--seeds") == 0) {
            seeds = (unsigned)atoi(argv[++a]);
        } else if (strcmp(argv[a], "--path") == 0) {
            args->path = argv[++a];
        } else {
            return false;
        }
    }
    return args->seconds > 0 && args->seconds <= MAX_SECONDS && args->writes >= 1 &&
           args->writes <= MAX_WRITES && seeds >= 1 && seeds <= MAX_SEEDS;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_wires [--json] [--seconds S] [--writes N] [--seeds N] "
            "[--path wide|narrow]\n"
            "S: more than 0, at most %d; Writes: 1 to %d; seeds: 1 to %d\n",
            MAX_SECONDS, MAX_WRITES, MAX_SEEDS);
    return 2;
}

int main(int argc, char **argv)
{
    const size_t count = sizeof(rows) / sizeof(rows[0]);
    struct wires_args args = { .seconds = 2, .writes = 400 };
    bool first = true;

    if (!parse(argc, argv, &args)) {
        return usage();
    }
    if (args.json) {
        puts("[");
    } else {
        printf("%-14s %-6s %-10s %6s %8s %7s %8s %8s %8s %8s %8s %8s %8s\n", "wire", "path", "load",
               "loss", "MB/s", "sent", "frames", "kept", "most", "mean us", "median", "99 %",
               "late");
    }
    for (size_t i = 0; i < count; i++) {
        struct wires_result r = { 0 };

        if (args.path && strcmp(args.path, rows[i].path->name) != 0) {
            continue;
        }
        bulk(&rows[i], args.seconds, &r);
        if (rows[i].path == &wide) {
            single(&rows[i], (unsigned)args.writes, &r);
        }
        print_row(&rows[i], &r, args.json, first);
        first = false;
    }
    if (args.json) {
        puts("\n]");
    }
    return 0;
}
