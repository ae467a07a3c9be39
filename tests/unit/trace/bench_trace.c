/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Benchmark of the trace: events a second that are written and read.
 *
 *     build/native/tests/unit/trace/bench-trace [EVENTS]
 *
 * Prints CPU time for each event, the best of five rounds, and octets of the trace.
 */
#include <glib.h>
#include <time.h>

#include "base/prng.h"
#include "bench_put.h"
#include "trace/reader.h"

enum { ROUNDS = 5, WORDS = 12 };

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The file: memory that is touched before anything is measured. */
static uint8_t *file;
static size_t file_len, file_max;

static bool sink(void *opaque, const uint8_t *octets, size_t len)
{
    if (len > file_max - file_len) {
        return false;
    }
    memcpy(file + file_len, octets, len);
    file_len += len;
    return true;
}

/* ---- Streams of events ---- */

/* Records of a log: a header, words, CLWB of each line, SFENCE. */
static void log_writer(struct sg_trace_writer *w, unsigned count)
{
    uint64_t random = 1, at = 0x100000000, pc = 0x401000;

    for (unsigned n = 0; n < count;) {
        for (unsigned i = 0; i < 2 + WORDS && n < count; i++, n++) {
            bench_put(w, SG_TRACE_STORE, i < 2 ? pc + 11 * i : 0x7ffff7e0a3c0, at, 8,
                      sg_prng(&random));
            at += 8;
        }
        bench_put(w, SG_TRACE_CPU_FLUSH, pc + 90, at - 8, 0, 0);
        bench_put(w, SG_TRACE_CPU_FENCE, pc + 95, 0, 0, 0);
        n += 2;
    }
}

static void fill(struct sg_trace_writer *w, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bench_put(w, SG_TRACE_STORE, 0x401000, 0x100000000 + 8 * (uint64_t)i, 8, 0);
    }
}

static void scattered(struct sg_trace_writer *w, unsigned count)
{
    uint64_t random = 2;

    for (unsigned i = 0; i < count; i++) {
        uint64_t word = sg_prng(&random);

        bench_put(w, SG_TRACE_STORE, 0x401000 + word % 2048,
                  0x100000000 + (word >> 20) % (1 << 24) * 8, 8, word);
    }
}

static void fences(struct sg_trace_writer *w, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bench_put(w, SG_TRACE_CPU_FENCE, 0x401000 + i % 3 * 7, 0, 0, 0);
    }
}

/* ---- Rows ---- */

static void measure(const char *what, void (*make)(struct sg_trace_writer *w, unsigned count),
                    unsigned count)
{
    static const struct sg_trace_header header = { .extent_count = 0 };
    double t, wrote = 1e9, read = 1e9;
    uint64_t events = 0, count_read;

    for (unsigned round = 0; round < ROUNDS; round++) {
        struct sg_trace_octets source;
        const struct sg_trace_event *e;
        struct sg_trace_writer *w;
        struct sg_trace_reader *r;

        file_len = 0;
        t = seconds();
        w = sg_trace_writer_new(&header, sink, NULL);
        sg_trace_writer_start(w, NULL);
        make(w, count);
        sg_trace_writer_end(w, NULL);
        wrote = SG_MIN(wrote, seconds() - t);
        events = sg_trace_writer_events(w);
        sg_trace_writer_free(w);

        source = (struct sg_trace_octets){ file, file_len };
        t = seconds();
        r = sg_trace_reader_new(sg_trace_read_octets, &source);
        sg_trace_open(r, NULL, NULL);
        for (count_read = 0; (e = sg_trace_next(r)); count_read++) {
            sg_assert(e->kind);
        }
        read = SG_MIN(read, seconds() - t);
        sg_assert(sg_trace_status(r) == SG_TRACE_END && count_read == events);
        sg_trace_reader_free(r);
    }
    printf("%-24s %9.1f %9.1f %9.1f %9.1f %9.2f\n", what, 1e9 * wrote / (double)events,
           (double)events / wrote / 1e6, 1e9 * read / (double)events, (double)events / read / 1e6,
           (double)file_len / (double)events);
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 4000000;

    file_max = (size_t)count * 32 + 1000000;
    file = g_malloc(file_max);
    memset(file, 1, file_max);
    printf("%-24s %9s %9s %9s %9s %9s\n", "events", "write ns", "million/s", "read ns", "million/s",
           "octets");
    measure("log writer", log_writer, count);
    measure("memset by 8 octets", fill, count);
    measure("scattered stores", scattered, count);
    measure("fences", fences, count);
    g_free(file);
    return 0;
}
