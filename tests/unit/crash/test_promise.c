/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Promises, case by case.  Machine 0 is the requester, 1 and 2 are targets; each message is a
 * frame.
 */
#include "base/prng.h"
#include "crash/promise.h"
#include "events_rig.h"
#include "staghorn/io.h"
#include "tap.h"

enum { MACHINES = 3, PORT = 7000, QPN = 5, HOSTILE_SEEDS = 20 };

static struct er er;
static uint64_t content;
static struct sg_crash_promises *result;

static void start(void)
{
    er_init(&er, MACHINES);
    content = 0;
}

/* ---- Events ---- */

static void pass(unsigned from, unsigned to)
{
    if (from != to) {
        er_sent(&er, from, ++content);
        er_received(&er, to, content);
    }
}

/* A connection from machine 0; QP numbers are those of both ends. */
static void connect_to(unsigned target, uint32_t qpn, unsigned port)
{
    er_connected(&er, target, qpn, PORT, 0, port);
    pass(target, 0);
    er_connected(&er, 0, qpn, port, target, PORT);
}

static uint64_t event(unsigned machine, enum sg_trace_kind kind, uint32_t qpn, uint64_t ordinal,
                      uint64_t addr, uint64_t len, uint64_t arg)
{
    return er_add(&er, machine,
                  (struct sg_trace_event){
                      .kind = kind,
                      .qpn = qpn,
                      .ordinal = ordinal,
                      .addr = addr,
                      .len = len,
                      .arg = arg,
                  });
}

static uint64_t place(unsigned target, uint32_t qpn, uint64_t ordinal, uint64_t addr, uint64_t len)
{
    return event(target, SG_TRACE_PLACE, qpn, ordinal, addr, len, 0);
}

/* A request arrives at its target, and writes there. */
static uint64_t write_to(unsigned target, uint32_t qpn, uint64_t ordinal, uint64_t addr,
                         uint64_t len)
{
    pass(0, target);
    return place(target, qpn, ordinal, addr, len);
}

/* A Flush, with its answer; returns the event of its end. */
static uint64_t flush(unsigned target, uint32_t qpn, uint64_t ordinal, uint64_t addr, uint64_t len,
                      uint64_t flags)
{
    uint64_t end;

    pass(0, target);
    event(target, SG_TRACE_FLUSH_BEGIN, qpn, ordinal, addr, len, flags);
    end = event(target, SG_TRACE_FLUSH_END, qpn, ordinal, addr, len, flags);
    pass(target, 0);
    return end;
}

static uint64_t completed(uint32_t qpn, uint64_t ordinal, unsigned opcode, unsigned status)
{
    return er_add(&er, 0,
                  (struct sg_trace_event){
                      .kind = SG_TRACE_COMPLETED,
                      .qpn = qpn,
                      .ordinal = ordinal,
                      .arg = opcode,
                      .value = 100 + ordinal,
                      .status = status,
                  });
}

static void work(uint32_t qpn, uint64_t ordinal, unsigned opcode, uint64_t wr_id)
{
    er_add(&er, 0,
           (struct sg_trace_event){
               .kind = SG_TRACE_WORK,
               .qpn = qpn,
               .ordinal = ordinal,
               .arg = opcode,
               .value = wr_id,
           });
}

/* ---- The result as text: "TARGET from FROM by EVENT: ADDR+LEN@PLACED ...; " ---- */

static unsigned chosen;

static void begin(void *opaque)
{
    sg_crash_promises_free(result);
    result = sg_crash_promises_new(MACHINES, 6, chosen);
}

static void ordered(void *opaque, unsigned machine, const struct sg_trace_event *e,
                    const uint64_t *past)
{
    sg_crash_promises_event(result, machine, e, er_name(e), past);
}

static const struct sg_crash_promise_counts *run(unsigned acks)
{
    chosen = acks;
    result = NULL;
    sg_crash_order_free(er_run(&er, begin, ordered, NULL));
    sg_crash_promises_end(result);
    return sg_crash_promise_counts(result);
}

static const char *text(void)
{
    static char out[1000];
    int at = 0;

    out[0] = '\0';
    for (unsigned t = 1; t < MACHINES; t++) {
        uint64_t count;
        const struct sg_crash_promise *p = sg_crash_promises_of(result, t, &count);

        for (; count; count--, p++) {
            const struct sg_crash_range *r = sg_crash_promise_ranges(result, p);

            at += snprintf(out + at, sizeof(out) - (size_t)at,
                           "%u from %" PRIu64 " by %s %" PRIu64 ":", t, p->from,
                           sg_crash_ack_name(p->kind), p->event);
            for (unsigned i = 0; i < p->range_count; i++) {
                at +=
                    snprintf(out + at, sizeof(out) - (size_t)at,
                             " %" PRIu64 "+%" PRIu64 "@%" PRIu64, r[i].addr, r[i].len, r[i].placed);
            }
            at += snprintf(out + at, sizeof(out) - (size_t)at, "; ");
        }
    }
    return out;
}

static void stop(void)
{
    sg_crash_promises_free(result);
    result = NULL;
    er_free(&er);
}

static char wanted[1000];

/* Text that is expected. */
#define WANT(...) (snprintf(wanted, sizeof(wanted), __VA_ARGS__), wanted)
#define N PRIu64

/* ---- Flush ---- */

static void promise__flush(void)
{
    const struct sg_crash_promise_counts *c;
    uint64_t first, second, atom, end, done;

    start();
    connect_to(1, QPN, 100);
    first = write_to(1, QPN, 1, 4090, 20);   /* over a page's end */
    second = write_to(1, QPN, 2, 5000, 100); /* half of it is in the Flush's range */
    write_to(1, QPN, 3, 9000, 8);            /* not in it */
    atom = event(1, SG_TRACE_ATOMIC_WRITE, QPN, 4, 4200, 8, 0);
    place(1, QPN, 6, 4300, 8); /* a later message that overtook the Flush */
    end = flush(1, QPN, 5, 4096, 954, SG_FLUSH_PERSISTENT);
    done = completed(QPN, 5, SG_WC_FLUSH, 0);
    c = run(SG_CRASH_ACK_DEFAULT);
    T_EQ_STR(text(),
             WANT("1 from %" N " by flush %" N ": 4096+14@%" N " 5000+50@%" N " 4200+8@%" N "; ",
                  end + 1, done, first, second, atom));
    T_EQ_U64(c->acknowledgements, 1);
    T_EQ_U64(c->matched, 1);
    T_EQ_U64(c->placements, 5);
    T_EQ_U64(c->unpromised, 4);
    T_EQ_U64(c->connections, 1);
    stop();
}

/* Flushes that promise nothing. */
static void promise__flush_without(void)
{
    const struct sg_crash_promise_counts *c;

    start();
    connect_to(1, QPN, 100);
    connect_to(1, QPN + 1, 101);
    write_to(1, QPN, 1, 4096, 8);
    flush(1, QPN, 2, 0, 8192, SG_FLUSH_GLOBAL);
    completed(QPN, 2, SG_WC_FLUSH, 0);
    flush(1, QPN + 1, 1, 0, 8192, SG_FLUSH_PERSISTENT); /* of another connection */
    completed(QPN + 1, 1, SG_WC_FLUSH, 0);
    flush(1, QPN, 3, 0, 8192, SG_FLUSH_PERSISTENT); /* never completes */
    completed(QPN, 3, SG_WC_FLUSH, SG_WC_FLUSH_ERR);
    completed(QPN, 0, SG_WC_RECV, 0);
    c = run(SG_CRASH_ACK_DEFAULT);
    T_EQ_STR(text(), "");
    T_EQ_U64(c->completions, 3);
    T_EQ_U64(c->failed, 1);
    T_EQ_U64(c->acknowledgements, 2);
    T_EQ_U64(c->matched, 1); /* there was nothing to promise */
    T_EQ_U64(c->unmatched[SG_CRASH_NOTHING_PLACED], 1);
    stop();
}

/* A Flush that is not signalled is acknowledged by the next completion, whatever that is. */
static void promise__unsignalled(void)
{
    static const struct {
        uint64_t ordinal;
        unsigned opcode;
    } next[] = { { 3, SG_WC_SEND }, { 3, SG_WC_WRITE }, { 0, SG_WC_LOCAL_INV } };

    for (unsigned i = 0; i < SG_ARRAY_SIZE(next); i++) {
        const struct sg_crash_promise_counts *c;
        uint64_t placed, end, done;

        T_CONTEXT("opcode %u", next[i].opcode);
        start();
        connect_to(1, QPN, 100);
        work(QPN, 1, SG_WR_WRITE, 1);
        placed = write_to(1, QPN, 1, 4096, 8);
        work(QPN, 2, SG_WR_FLUSH, 2);
        end = flush(1, QPN, 2, 0, 8192, SG_FLUSH_PERSISTENT);
        work(QPN, next[i].ordinal, next[i].opcode, 100 + next[i].ordinal);
        done = completed(QPN, next[i].ordinal, next[i].opcode, 0);
        c = run(SG_CRASH_ACK_DEFAULT);
        T_EQ_STR(text(),
                 WANT("1 from %" N " by flush %" N ": 4096+8@%" N "; ", end + 1, done, placed));
        T_EQ_U64(c->kind[SG_CRASH_ACK_FLUSH], 1);
        T_EQ_U64(c->matched, 1);
        stop();
    }
}

/* ---- Completions, which may come before the placement ---- */

static void promise__write(void)
{
    const struct sg_crash_promise_counts *c;
    uint64_t first, done, late, second;

    start();
    connect_to(1, QPN, 100);
    first = write_to(1, QPN, 1, 4096, 8);
    er_sent(&er, 0, ++content); /* the second one is on its way */
    done = completed(QPN, 2, SG_WC_WRITE, 0);
    second = completed(QPN, 3, SG_WC_SEND, 0);
    er_received(&er, 1, content);
    late = place(1, QPN, 2, 4104, 8);
    c = run(1u << SG_CRASH_ACK_WRITE | 1u << SG_CRASH_ACK_SEND);
    T_EQ_STR(text(),
             WANT("1 from 2 by write %" N ": 4096+8@%" N " 4104+8@%" N "; ", done, first, late));
    T_TRUE(first > 2 && late > 2 && second); /* the target had only answered the connection */
    T_EQ_U64(c->acknowledgements, 2);
    T_EQ_U64(c->matched, 1);
    stop();
}

/* Nothing had been placed by then: it is counted as matched when that comes. */
static void promise__late(void)
{
    const struct sg_crash_promise_counts *c;

    start();
    connect_to(1, QPN, 100);
    er_sent(&er, 0, ++content);
    completed(QPN, 1, SG_WC_WRITE, 0);
    er_received(&er, 1, content);
    place(1, QPN, 1, 4104, 8);
    c = run(1u << SG_CRASH_ACK_WRITE);
    T_EQ_U64(c->promises, 1);
    T_EQ_U64(c->matched, 1);
    T_EQ_U64(c->unmatched[SG_CRASH_NOTHING_PLACED], 0);
    stop();
}

/* ---- Connections ---- */

static void promise__targets(void)
{
    const struct sg_crash_promise_counts *c;
    uint64_t placed, other, end, done, loop;

    start();
    connect_to(1, QPN, 100);
    connect_to(2, QPN + 1, 100);
    /* Loopback within machine 2. */
    er_connected(&er, 2, 20, PORT, 2, 300);
    er_connected(&er, 2, 21, 300, 2, PORT);
    other = write_to(2, QPN + 1, 1, 64, 8);
    placed = write_to(1, QPN, 1, 64, 8);
    end = flush(1, QPN, 2, 0, 4096, SG_FLUSH_PERSISTENT);
    done = completed(QPN, 2, SG_WC_FLUSH, 0);
    completed(99, 2, SG_WC_FLUSH, 0); /* a connection that is not known */
    loop = place(2, 20, 1, 128, 8);
    event(2, SG_TRACE_FLUSH_BEGIN, 20, 2, 0, 4096, SG_FLUSH_PERSISTENT);
    event(2, SG_TRACE_FLUSH_END, 20, 2, 0, 4096, SG_FLUSH_PERSISTENT);
    event(2, SG_TRACE_COMPLETED, 21, 2, 0, 0, SG_WC_FLUSH);
    c = run(SG_CRASH_ACK_DEFAULT);
    T_EQ_STR(text(), WANT("1 from %" N " by flush %" N ": 64+8@%" N "; 2 from %" N " by flush %" N
                          ": 128+8@%" N "; ",
                          end + 1, done, placed, loop + 3, loop + 3, loop));
    T_TRUE(other);
    T_EQ_U64(c->connections, 3);
    T_EQ_U64(c->unmatched[SG_CRASH_NO_CONNECTION], 1);
    T_EQ_U64(c->unpromised, 1);
    stop();
}

/* The same addresses and ports again, after a use that the requester did not see. */
static void promise__port_reuse(void)
{
    uint64_t placed, end, done;
    const struct sg_crash_promise_counts *c;

    start();
    connect_to(1, QPN, 100);
    write_to(1, QPN, 1, 64, 8);
    event(0, SG_TRACE_DISCONNECTED, QPN, 0, 0, 0, 0);
    pass(0, 1);
    event(1, SG_TRACE_DISCONNECTED, QPN, 0, 0, 0, 0);
    er_connected(&er, 1, QPN, PORT, 0, 100); /* fails */
    place(1, QPN, 1, 128, 8);
    event(1, SG_TRACE_DISCONNECTED, QPN, 0, 0, 0, 0);
    connect_to(1, QPN, 100);
    placed = write_to(1, QPN, 1, 192, 8);
    end = flush(1, QPN, 2, 0, 4096, SG_FLUSH_PERSISTENT);
    done = completed(QPN, 2, SG_WC_FLUSH, 0);
    c = run(SG_CRASH_ACK_DEFAULT);
    T_EQ_STR(text(), WANT("1 from %" N " by flush %" N ": 192+8@%" N "; ", end + 1, done, placed));
    T_EQ_U64(c->connections, 2);
    T_EQ_U64(c->single_connections, 1);
    T_EQ_U64(c->placements_single, 1);
    stop();
}

/* The peer is not recorded; the memory is not examined; ordinals are not known. */
static void promise__reasons(void)
{
    const struct sg_crash_promise_counts *c;

    start();
    er_connected(&er, 0, QPN, 100, 9, PORT);
    completed(QPN, 1, SG_WC_FLUSH, 0);
    completed(QPN, 0, SG_WC_FLUSH, 0);
    er_connected(&er, 0, 20, PORT, 0, 300); /* machine 0 is no target */
    er_connected(&er, 0, 21, 300, 0, PORT);
    completed(21, 2, SG_WC_FLUSH, 0);
    place(1, 77, 1, 64, 8);
    er_mark(&er, 0, "durable", "phys=64 len=8");
    c = run(SG_CRASH_ACK_DEFAULT);
    T_EQ_U64(c->unmatched[SG_CRASH_NO_PEER], 1);
    T_EQ_U64(c->unmatched[SG_CRASH_NO_MESSAGE], 1);
    T_EQ_U64(c->unmatched[SG_CRASH_NO_TARGET], 2);
    T_EQ_U64(c->acknowledgements, 4);
    T_EQ_U64(c->matched, 0);
    T_EQ_U64(c->placements_unknown, 1);
    T_EQ_STR(sg_crash_unmatched_text(SG_CRASH_NO_PEER), "the peer is not recorded");
    stop();
}

/* The target's trace ends before the Flush: what it did then is not known. */
static void promise__cut_short(void)
{
    const struct sg_crash_promise_counts *c;
    uint64_t placed, left;

    start();
    connect_to(1, QPN, 100);
    placed = write_to(1, QPN, 1, 64, 8);
    flush(1, QPN, 2, 0, 4096, SG_FLUSH_PERSISTENT);
    left = er.list[1].events->len;
    completed(QPN, 2, SG_WC_FLUSH, 0);
    er_mark(&er, 0, "acknowledged", "");
    g_array_set_size(er.list[1].events, (unsigned)left - 1); /* without the answer */
    er.list[1].cut_short = true;
    c = run(SG_CRASH_ACK_DEFAULT);
    T_EQ_STR(text(), "");
    T_EQ_U64(c->unmatched[SG_CRASH_BEHIND_END], 2);
    T_TRUE(placed);
    stop();
}

/* ---- Marks ---- */

static void promise__marks(void)
{
    const struct sg_crash_promise_counts *c;
    uint64_t placed[4], mark[4];

    start();
    connect_to(1, QPN, 100);
    connect_to(1, QPN + 1, 101);
    for (unsigned i = 0; i < 4; i++) {
        work(QPN + i % 2, i / 2 + 1, SG_WR_WRITE, 900 + i);
        placed[i] = write_to(1, QPN + i % 2, i / 2 + 1, 64 * i, 8);
        pass(1, 0);
        if (i < 3) {
            completed(QPN + i % 2, i / 2 + 1, SG_WC_WRITE, 0);
        }
    }
    mark[0] = er_mark(&er, 0, "acknowledged", "wr_id=902");
    mark[1] = er_mark(&er, 0, "acknowledged", "qpn=0x6");
    er_mark(&er, 0, "acknowledged", "wr_id=903"); /* not completed */
    er_mark(&er, 0, "acknowledged", "wr_id=902 what=3");
    er_mark(&er, 0, "other", "wr_id=902");
    mark[2] = er_mark(&er, 0, "acknowledged", "");
    c = run(SG_CRASH_ACK_DEFAULT);
    T_EQ_STR(text(), WANT("1 from %" N " by acknowledged %" N ": 128+8@%" N "; 1 from %" N
                          " by acknowledged %" N ": 64+8@%" N "; 1 from %" N " by acknowledged %" N
                          ": 0+8@%" N "; ",
                          placed[3] + 1, mark[0], placed[2], placed[3] + 1, mark[1], placed[1],
                          placed[3] + 1, mark[2], placed[0]));
    T_EQ_U64(c->kind[SG_CRASH_ACK_ACKNOWLEDGED], 5);
    T_EQ_U64(c->matched, 3);
    T_EQ_U64(c->unmatched[SG_CRASH_NO_MESSAGE], 1);
    T_EQ_U64(c->unmatched[SG_CRASH_BAD_MARK], 1);
    stop();
}

static void promise__durable(void)
{
    static const char *const bad[] = { "",
                                       "phys=64",
                                       "len=8 phys=64",
                                       "phys=64 len=0",
                                       "phys=64 len=8 more",
                                       "phys=0xffffffffffffffff len=2",
                                       "phys=18446744073709551616 len=8",
                                       "phys=6x len=8",
                                       "phys= len=8" };
    const struct sg_crash_promise_counts *c;
    uint64_t mark;

    start();
    mark = er_mark(&er, 1, "durable", "phys=0x40 len=8\n phys=256 len=0x10");
    for (unsigned i = 0; i < SG_ARRAY_SIZE(bad); i++) {
        er_mark(&er, 1, "durable", bad[i]);
    }
    c = run(SG_CRASH_ACK_DEFAULT);
    T_EQ_STR(text(), WANT("1 from %" N " by durable %" N ": 64+8@1 256+16@1; ", mark, mark));
    T_EQ_U64(c->unmatched[SG_CRASH_BAD_MARK], SG_ARRAY_SIZE(bad));
    T_EQ_U64(c->matched, 1);
    stop();
}

static void promise__state(void)
{
    uint64_t sent, mark;

    start();
    pass(1, 0);
    sent = er.list[1].events->len;
    mark = er_mark(&er, 0, "state", "x=1");
    run(SG_CRASH_ACK_DEFAULT);
    T_EQ_STR(text(),
             WANT("1 from %" N " by state %" N ":; 2 from 0 by state %" N ":; ", sent, mark, mark));
    stop();
}

static void promise__none(void)
{
    start();
    connect_to(1, QPN, 100);
    write_to(1, QPN, 1, 64, 8);
    completed(QPN, 1, SG_WC_WRITE, 0);
    T_EQ_U64(run(SG_CRASH_ACK_DEFAULT)->acknowledgements, 0);
    T_EQ_U64(sg_crash_promise_counts(result)->completions, 1);
    stop();
}

/* ---- Memory ---- */

/* The same place again and again: what nothing can promise alone is forgotten. */
static void promise__same_place(void)
{
    const uint64_t times = t_not_sanitized() ? 100000 : 10000;
    const struct sg_crash_promise_counts *c;
    uint64_t last = 0, count;
    const struct sg_crash_promise *p;

    start();
    connect_to(1, QPN, 100);
    for (uint64_t i = 1; i <= times; i++) {
        pass(0, 1);
        event(1, SG_TRACE_ATOMIC_WRITE, QPN, 2 * i - 1, 0, 8, 0);
        last = place(1, QPN, 2 * i, 4096 + i % 4 * 64, 64);
        pass(1, 0);
        completed(QPN, 2 * i, SG_WC_WRITE, 0);
    }
    flush(1, QPN, 2 * times + 1, 0, 1ull << 40, SG_FLUSH_PERSISTENT);
    completed(QPN, 2 * times + 1, SG_WC_FLUSH, 0);
    c = run(SG_CRASH_ACK_DEFAULT);
    p = sg_crash_promises_of(result, 1, &count);
    T_EQ_U64(count, 1);
    T_TRUE(p->range_count > 4 && p->range_count < 10000);
    T_EQ_U64(sg_crash_promise_ranges(result, p)[p->range_count - 1].placed, last);
    T_EQ_U64(c->dropped, 0);
    T_EQ_U64(c->unpromised, 0);
    stop();
}

/* Anything at all: no crash, no hang. */
static void promise__hostile(void)
{
    unsigned seeds = SG_MAX(HOSTILE_SEEDS / t_stride(4), 1);

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        uint64_t random = seed;
        uint8_t data[64];

        T_CONTEXT("seed %" PRIu64, seed);
        start();
        for (unsigned i = 0; i < 20000; i++) {
            struct sg_trace_event e = {
                .kind = SG_TRACE_PLACE + sg_prng(&random) % (SG_TRACE_KINDS - SG_TRACE_PLACE)
            };
            unsigned few = sg_prng(&random) % 8 ? 3 : 60;

            e.unit = sg_prng(&random) % 2;
            e.qpn = sg_prng(&random) % few;
            e.ordinal = sg_prng(&random) % 50;
            e.addr = sg_prng(&random) % 5 ? sg_prng(&random) % 9000 : -(sg_prng(&random) % 9000);
            e.len = sg_prng(&random) % 5 ? sg_prng(&random) % 9000 : sg_prng(&random);
            e.arg = sg_prng(&random) % 20;
            e.status = sg_prng(&random) % 4 == 0;
            e.value = sg_prng(&random) % 20;
            if (e.kind == SG_TRACE_CONNECTED || e.kind == SG_TRACE_FRAME) {
                er_connected(&er, i % MACHINES, (uint32_t)e.qpn, 1 + e.qpn % 2,
                             sg_prng(&random) % MACHINES, 1 + sg_prng(&random) % 2);
            } else if (e.kind == SG_TRACE_MARK) {
                snprintf((char *)data, sizeof(data), "%s=%u", e.qpn % 2 ? "wr_id" : "qpn",
                         (unsigned)e.value);
                er_mark(&er, i % MACHINES, "acknowledged", (char *)data);
            } else {
                er_add(&er, i % MACHINES, e);
            }
        }
        run(seed % 2 ? SG_CRASH_ACK_DEFAULT : 255);
        T_TRUE(sg_crash_promise_counts(result)->placements > 0);
        stop();
    }
}

static const struct t_case cases[] = {
    { "promise: a Flush and what it covers", promise__flush },
    { "promise: Flushes that promise nothing", promise__flush_without },
    { "promise: a Flush that is not signalled", promise__unsignalled },
    { "promise: completions of Writes", promise__write },
    { "promise: a Write placed behind its completion", promise__late },
    { "promise: targets and loopback", promise__targets },
    { "promise: ports that are used again", promise__port_reuse },
    { "promise: why there is none", promise__reasons },
    { "promise: a target's trace that is cut short", promise__cut_short },
    { "promise: marks of a requester", promise__marks },
    { "promise: marks of durable ranges", promise__durable },
    { "promise: marks of a state", promise__state },
    { "promise: no acknowledgement at all", promise__none },
    { "promise: the same place again and again", promise__same_place },
    { "promise: hostile traces", promise__hostile },
};

T_MAIN(cases)
