/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Benchmark: a trace is read, and its events are the inputs of a domain.
 *
 *     build/native/tests/unit/crash/bench-replay [EVENTS]
 *
 * A log writer on 64 MiB: records of some words, CLWB of their lines, SFENCE.  Prints CPU time of
 * an event, the best of three rounds.
 */
#include <glib.h>
#include <time.h>

#include "base/prng.h"
#include "bench_put.h"
#include "crash/replay.h"

enum { ROUNDS = 3, WORDS = 14, SIZE = 64 << 20 };

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool sink(void *opaque, const uint8_t *octets, size_t len)
{
    g_byte_array_append(opaque, octets, (guint)len);
    return true;
}

static void write_trace(GByteArray *file, unsigned count)
{
    struct sg_trace_header header = {
        .extent_count = 1,
        .extent = { { .size = SIZE, .has_content = true } },
        .text = { "bench", "", "cpu-tracking=on\n" },
    };
    struct sg_trace_writer *w = sg_trace_writer_new(&header, sink, file);
    uint64_t random = 1, at = 0;

    sg_trace_writer_start(w, NULL);
    for (unsigned n = 0; n < count;) {
        uint64_t first = at;

        for (unsigned i = 0; i < WORDS; i++, n++) {
            bench_put(w, SG_TRACE_STORE, i < 2 ? 0x401000 + 11 * i : 0x402000, at, 8,
                      sg_prng(&random));
            at += 8;
        }
        for (first &= ~63ull; first < at; first += 64, n++) {
            bench_put(w, SG_TRACE_CPU_FLUSH, 0x401090, first, 0, 0);
        }
        bench_put(w, SG_TRACE_CPU_FENCE, 0x401095, 0, 0, 0);
        n++;
        at = at + 8 * WORDS > SIZE ? 0 : at;
    }
    sg_trace_writer_end(w, NULL);
    sg_trace_writer_free(w);
}

static uint64_t replay(const GByteArray *file, uint8_t *visible, uint8_t *media)
{
    struct sg_trace_octets source = { file->data, file->len };
    struct sg_trace_reader *r = sg_trace_reader_new(sg_trace_read_octets, &source);
    const struct sg_trace_event *e;
    struct sg_crash_replay *x;
    const char *wrong = NULL;
    uint64_t events = 0;

    sg_trace_open(r, NULL, NULL);
    x = sg_crash_replay_new(sg_trace_header(r), &wrong);
    sg_assert(x);
    sg_crash_replay_add(x, visible, media);
    while (!wrong && (e = sg_trace_next(r))) {
        wrong = sg_crash_replay_event(x, e, NULL);
        events++;
    }
    sg_assert(!wrong && sg_trace_status(r) == SG_TRACE_END);
    sg_crash_replay_free(x);
    sg_trace_reader_free(r);
    return events;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 10000000;
    uint8_t *visible = g_malloc(SIZE), *media = g_malloc(SIZE);
    GByteArray *file = g_byte_array_new();
    double best = 1e9;
    uint64_t events = 0;

    write_trace(file, count);
    for (unsigned round = 0; round < ROUNDS; round++) {
        double t;

        memset(visible, 0, SIZE);
        memset(media, 0, SIZE);
        t = seconds();
        events = replay(file, visible, media);
        best = SG_MIN(best, seconds() - t);
    }
    printf("%llu events, %.1f octets each: %.2f s, %.0f ns each\n", (unsigned long long)events,
           (double)file->len / (double)events, best, 1e9 * best / (double)events);
    g_byte_array_free(file, TRUE);
    g_free(visible);
    g_free(media);
    return 0;
}
