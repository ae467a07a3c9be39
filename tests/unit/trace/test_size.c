/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What events cost in the file.  A size does not depend on the machine, so it is asserted.
 */
#include "base/prng.h"
#include "rig.h"

static struct tr_file file;
static struct sg_trace_writer *w;
static uint64_t before;

static void begin(void)
{
    tr_file_init(&file);
    w = tr_begin(&file, true);
    before = sg_trace_writer_octets(w);
}

/* Ends the trace, and returns the octets of its events. */
static uint64_t events_cost(void)
{
    uint64_t cost;

    T_TRUE(sg_trace_writer_flush(w));
    cost = sg_trace_writer_octets(w) - before;
    sg_trace_writer_free(w);
    tr_file_free(&file);
    return cost;
}

static void store(unsigned vcpu, uint64_t pc, uint64_t addr, uint64_t value, unsigned len)
{
    uint8_t data[SG_TRACE_STORE_MAX] = { 0 };
    struct sg_trace_event e = {
        .kind = SG_TRACE_STORE,
        .unit = vcpu,
        .at = pc,
        .addr = addr,
        .len = len,
        .root = 0x12345000 + 0x1000 * vcpu,
        .data = data,
    };

    sg_put_le64(data, value);
    T_TRUE(sg_trace_write(w, &e));
}

static void flush_and_fence(unsigned vcpu, uint64_t pc, uint64_t addr)
{
    struct sg_trace_event e = {
        .kind = SG_TRACE_CPU_FLUSH,
        .unit = vcpu,
        .at = pc,
        .addr = addr,
        .root = 0x12345000 + 0x1000 * vcpu,
    };

    T_TRUE(sg_trace_write(w, &e));
    e.kind = SG_TRACE_CPU_FENCE;
    e.at += 5;
    e.addr = 0;
    T_TRUE(sg_trace_write(w, &e));
}

/*
 * A log writer: a header of three fields at different instructions, a record whose words are
 * copied by a loop, CLWB of its lines, SFENCE, the tail, CLWB, SFENCE.  All of that counts as the
 * cost of the stores.
 */
static uint64_t log_record(unsigned vcpu, uint64_t base, uint64_t at, uint64_t *random)
{
    const uint64_t pc = 0x5555555551a0;
    unsigned words = 4 + sg_prng(random) % 24;

    store(vcpu, pc, base + at, sg_prng(random), 8);
    store(vcpu, pc + 11, base + at + 8, words, 8);
    store(vcpu, pc + 42, base + at + 16, sg_prng(random), 8);
    for (unsigned i = 0; i < words; i++) {
        store(vcpu, 0x7ffff7e0a3c0, base + at + 24 + 8 * i, sg_prng(random), 8);
    }
    for (unsigned i = 0; i < 24 + 8 * words; i += 64) {
        flush_and_fence(vcpu, pc + 90, base + at + i);
    }
    store(vcpu, pc + 120, base - 64, at, 8);
    flush_and_fence(vcpu, pc + 130, base - 64);
    return words + 4;
}

static void log_writer(void)
{
    uint64_t random = 1, stores = 0, at[2] = { 0 }, cost, n;

    for (unsigned vcpus = 1; vcpus <= 2; vcpus++) {
        begin();
        stores = 0;
        for (unsigned i = 0; i < 5000; i++) {
            unsigned vcpu = i % vcpus;

            n = log_record(vcpu, 0x100000040 + 0x10000000 * vcpu, at[vcpu], &random);
            at[vcpu] += 8 * n;
            stores += n;
        }
        cost = events_cost();
        T_NOTE("%u vCPUs: %.2f octets a store, with its part of flushes and fences", vcpus,
               (double)cost / (double)stores);
        T_TRUE(cost <= 16 * stores);
        T_TRUE(cost <= 13 * stores);
    }
}

/* The least regular stores that there are: of any vCPU, anywhere in 1 GiB, in turn at any PC. */
static void scattered(void)
{
    uint64_t random = 2, cost;
    unsigned n = 50000;

    begin();
    for (unsigned i = 0; i < n; i++) {
        uint64_t r = sg_prng(&random);

        store(0, 0x401000 + (r & 0x7ff) * 4, 0x100000000 + (r >> 20) % (1 << 27) * 8, r, 8);
    }
    cost = events_cost();
    T_NOTE("scattered stores of one vCPU: %.2f octets", (double)cost / n);
    T_TRUE(cost <= 16 * (uint64_t)n);
    begin();
    for (unsigned i = 0; i < n; i++) {
        uint64_t r = sg_prng(&random);

        store(0, 0x401000 + (r & 7) * 4, 0x100000000 + (r >> 20) % (1 << 17) * 8, r, 8);
    }
    cost = events_cost();
    T_NOTE("scattered in 1 MiB, by a loop of a few stores: %.2f octets", (double)cost / n);
    T_TRUE(cost <= 16 * (uint64_t)n);
}

static void fills_and_copies(void)
{
    uint64_t random = 3, cost;
    unsigned n = 512 * 256; /* 1 MiB */

    begin();
    for (unsigned i = 0; i < n; i++) {
        store(1, 0x401000, 0x100000000 + 8 * i, 0x0707070707070707, 8);
    }
    cost = events_cost();
    T_NOTE("memset of 1 MiB: %" PRIu64 " octets", cost);
    T_TRUE(cost < 200);
    begin();
    for (unsigned i = 0; i < n; i++) {
        store(1, 0x401000, 0x100000000 + 8 * i, sg_prng(&random), 8);
    }
    cost = events_cost();
    T_NOTE("memcpy of 1 MiB by words: %.3f octets for each", (double)cost / (8 * n));
    T_TRUE(cost < 8 * n + 8 * n / 500);
    begin();
    for (unsigned i = n; i > 0; i--) {
        store(1, 0x401000, 0x100000000 + i, sg_prng(&random), 1);
    }
    cost = events_cost();
    T_NOTE("memmove by single octets, downwards: %.3f octets for each", (double)cost / n);
    T_TRUE(cost < n + n / 500);
    begin();
    for (unsigned i = 0; i < n; i++) {
        store(1, 0x401000, 0x100000000 + 64 * (uint64_t)i, 0, 8);
    }
    cost = events_cost();
    T_NOTE("a zero into each of 131,072 lines: %" PRIu64 " octets", cost);
    T_TRUE(cost < 200);
}

/* Whatever alternates, a repetition costs at most an octet more than a record. */
static void worst_repetitions(void)
{
    unsigned n = 60000;
    uint64_t cost;

    begin();
    for (unsigned i = 0; i < n; i++) {
        store(0, 0x401000, 0x100000000 + (i % 2 ? 4000 : 8) + 8 * i, i / 3, 8);
    }
    cost = events_cost();
    T_NOTE("stores that begin a repetition each time: %.2f octets", (double)cost / n);
    T_TRUE(cost <= 14 * (uint64_t)n);
}

static void zero_memory(void)
{
    struct sg_trace_header h = { .extent_count = 1,
                                 .extent = { { .size = 64 << 20, .has_content = true } } };
    uint8_t *memory = g_malloc0(64 << 20);

    memory[12345678] = 1;
    tr_file_init(&file);
    w = sg_trace_writer_new(&h, tr_file_sink, &file);
    before = sg_trace_writer_octets(w);
    T_TRUE(sg_trace_writer_content(w, 0, memory));
    T_TRUE(sg_trace_writer_start(w, NULL));
    T_TRUE(sg_trace_writer_octets(w) - before < 100);
    sg_trace_writer_free(w);
    tr_file_free(&file);
    g_free(memory);
}

static const struct t_case cases[] = {
    { "a log writer: at most 16 octets for a store of 8", log_writer },
    { "scattered stores", scattered },
    { "memset, memcpy, memmove", fills_and_copies },
    { "repetitions that end at once", worst_repetitions },
    { "memory of zeros", zero_memory },
};

T_MAIN(cases)
