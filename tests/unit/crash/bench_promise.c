/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Benchmark of order and promises: events a second of two machines, without reading a trace.
 *
 *     build/native/tests/unit/crash/bench-promise [EVENTS]
 *
 * Each transaction is a Write, a Flush and its completion: 12 events, 3 frames, a promise.  Prints
 * CPU time, time for each event, and the process's memory.
 */
#include <glib.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <time.h>

#include "crash/promise.h"
#include "staghorn/io.h"

enum { REQUESTER, TARGET, MACHINES, EACH = 6, QPN = 5 };

struct bench_stream {
    struct sg_trace_event e;
    unsigned machine;
    uint64_t number, events;
    uint8_t payload[36];
};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void set_frame(struct sg_trace_event *e, uint64_t n, unsigned sent)
{
    e->kind = SG_TRACE_FRAME;
    e->value = (uint32_t)(n * 0x9e3779b1);
    e->len = 80;
    e->arg = sent;
}

static void set_request(struct sg_trace_event *e, enum sg_trace_kind kind, uint64_t ordinal,
                        uint64_t arg)
{
    e->kind = (uint8_t)kind;
    e->qpn = QPN;
    e->ordinal = ordinal;
    e->value = ordinal;
    e->addr = ordinal * 64 % (1 << 30);
    e->len = 128;
    e->arg = arg;
}

static void set_requester(struct sg_trace_event *e, uint64_t n, unsigned step)
{
    switch (step) {
    case 0:
        set_request(e, SG_TRACE_WORK, 2 * n + 1, SG_WR_WRITE);
        break;
    case 1:
        set_frame(e, 3 * n, 1);
        break;
    case 2:
        set_request(e, SG_TRACE_WORK, 2 * n + 2, SG_WR_FLUSH);
        break;
    case 3:
        set_frame(e, 3 * n + 1, 1);
        break;
    case 4:
        set_frame(e, 3 * n + 2, 0);
        break;
    default:
        set_request(e, SG_TRACE_COMPLETED, 2 * n + 2, SG_WC_FLUSH);
    }
}

static void set_target(struct sg_trace_event *e, uint64_t n, unsigned step)
{
    switch (step) {
    case 0:
        set_frame(e, 3 * n, 0);
        break;
    case 1:
        set_request(e, SG_TRACE_PLACE, 2 * n + 1, 0);
        break;
    case 2:
        set_frame(e, 3 * n + 1, 0);
        break;
    case 3:
    case 4:
        set_request(e, step == 3 ? SG_TRACE_FLUSH_BEGIN : SG_TRACE_FLUSH_END, 2 * n + 2,
                    SG_FLUSH_PERSISTENT);
        e->addr -= 64;
        break;
    default:
        set_frame(e, 3 * n + 2, 1);
    }
}

static const struct sg_trace_event *next(void *opaque)
{
    struct bench_stream *s = opaque;
    uint64_t n = s->number++;

    if (n == s->events) {
        return NULL;
    }
    s->e = (struct sg_trace_event){ .number = n + 1 };
    if (!n) {
        s->e.kind = SG_TRACE_CONNECTED;
        s->e.qpn = QPN;
        s->e.len = sizeof(s->payload);
        s->e.data = s->payload;
        s->payload[15] = (uint8_t)s->machine;
        s->payload[31] = !s->machine;
    } else if (s->machine == REQUESTER) {
        set_requester(&s->e, (n - 1) / EACH, (n - 1) % EACH);
    } else {
        set_target(&s->e, (n - 1) / EACH, (n - 1) % EACH);
    }
    return &s->e;
}

static bool complete(void *opaque)
{
    return true;
}

static struct sg_crash_source begin(struct bench_stream *s, unsigned machine, uint64_t events)
{
    *s = (struct bench_stream){ .machine = machine, .events = events };
    return (struct sg_crash_source){ next, complete, s };
}

static void ordered(void *opaque, unsigned machine, const struct sg_trace_event *e,
                    const uint64_t *past)
{
    sg_crash_promises_event(opaque, machine, e, NULL, past);
}

int main(int argc, char **argv)
{
    uint64_t events = argc > 1 ? g_ascii_strtoull(argv[1], NULL, 10) : 10000000;
    struct sg_crash_promises *p =
        sg_crash_promises_new(MACHINES, 1 << TARGET, SG_CRASH_ACK_DEFAULT);
    struct sg_crash_order *o = sg_crash_order_new(MACHINES);
    struct sg_crash_source source[MACHINES];
    struct bench_stream stream[MACHINES];
    struct rusage usage;
    double start = seconds(), scanned, end;

    for (unsigned i = 0; i < MACHINES; i++) {
        sg_crash_order_scan(o, i, begin(&stream[i], i, events / MACHINES));
    }
    scanned = seconds();
    for (unsigned i = 0; i < MACHINES; i++) {
        source[i] = begin(&stream[i], i, events / MACHINES);
    }
    sg_assert(sg_crash_order_run(o, source, ordered, p));
    sg_crash_promises_end(p);
    end = seconds();
    getrusage(RUSAGE_SELF, &usage);
    printf("%" PRIu64 " events, %" PRIu64 " promises: scan %.2f s, run %.2f s, %.0f ns an event, "
           "%ld MiB\n",
           sg_crash_order_counts(o)->events, sg_crash_promise_counts(p)->promises, scanned - start,
           end - scanned, (end - start) / (double)events * 1e9, usage.ru_maxrss / 1024);
    sg_crash_promises_free(p);
    sg_crash_order_free(o);
    return 0;
}
