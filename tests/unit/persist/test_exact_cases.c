/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sequences that are easily got wrong: each has exactly the images that the contract allows.  The
 * unit is half an atom; X is the first atom, X2 the second one of its line, Y another line.
 */
#include "model_images.h"

enum { X = 0, X2 = 2, X3 = 4, FLAG = 14, Y = GT_LINE };

#define WRITE(device, place, length, v) \
    { .kind = GT_WRITE, .who = device, .at = place, .units = length, .value = v }
#define SWAP(place, v) { .kind = GT_SWAP, .at = place, .units = 2, .value = v }
#define STORE(cpu, place, v) \
    { .kind = GT_STORE, .who = cpu, .at = place, .units = 2, .value = v, .how = GT_TOLD_BOTH }
#define NT(cpu, place, v) \
    { .kind = GT_STORE_NT, .who = cpu, .at = place, .units = 2, .value = v, .how = GT_TOLD_BOTH }
#define CLWB(cpu, place) \
    { .kind = GT_CPU_FLUSH, .who = cpu, .at = place, .units = 1, .how = SG_PERSIST_CLWB }
#define LOAD(cpu, place) { .kind = GT_LOAD, .who = cpu, .at = place, .units = 2 }
#define SFENCE(cpu) { .kind = GT_CPU_FENCE, .who = cpu, .units = 1, .how = SG_PERSIST_SFENCE }

#define WBINVD(cpu) { .kind = GT_CPU_FENCE, .who = cpu, .units = 1, .how = SG_PERSIST_WBINVD }

#define OTHER(place, v) { .kind = GT_OTHER, .at = place, .units = 2, .value = v }
#define DOORBELL { .kind = GT_SYNC, .units = 1 }

#define SETTLE SETTLES(0, 0)
#define SETTLES(device, number) { .kind = GT_SETTLE, .who = device, .conn = number, .units = 1 }
#define FENCE FENCES(0)
#define FENCES(device) { .kind = GT_FENCE_DEVICE, .who = device, .units = 1 }
#define FLUSH(number) \
    { .kind = GT_FLUSH, .conn = number, .units = GT_LINE, .how = SG_FLUSH_PERSISTENT }
#define WRITE_ON(number, place, length, v) \
    { .kind = GT_WRITE, .conn = number, .at = place, .units = length, .value = v }

/* Segments, explored at their laziest. */
#define SETS .s0 = true, .s1 = true, .reorder = true, .exact = GT_EXACT
#define ADR .domain = SG_PERSIST_ADR, .ddio = true

struct sequence {
    const char *name;
    struct gt_trace trace; /* without its count */
    unsigned images;       /* allowed, as counted by hand */
};

static void exactly(const struct sequence *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct gt_trace t = s[i].trace;
        GHashTable *allowed, *produced;
        GHashTableIter it;
        gpointer image;
        unsigned cuts;

        while (t.count < GT_EVENTS && t.event[t.count].units) {
            t.count++;
        }
        T_CONTEXT("%s", s[i].name);
        allowed = ground_truth(&t, 100000);
        produced = model_images(&t, 100000, &cuts);
        T_TRUE(allowed && produced);
        T_EQ_U64(g_hash_table_size(allowed), s[i].images);
        T_EQ_U64(g_hash_table_size(produced), s[i].images);
        g_hash_table_iter_init(&it, produced);
        while (g_hash_table_iter_next(&it, &image, NULL)) {
            T_TRUE(gt_set_has(allowed, image));
        }
        g_hash_table_destroy(allowed);
        g_hash_table_destroy(produced);
    }
}

#define EXACTLY(table) exactly(table, G_N_ELEMENTS(table))

static void store_beside_dma(void)
{
    static const struct sequence table[] = {
        { "data, then a flag", { ADR, .event = { WRITE(0, X, 14, 1), STORE(0, FLAG, 2) } }, 9 },
        { "data, CLWB, a flag, SFENCE",
          { ADR, .event = { WRITE(0, X, 14, 1), CLWB(0, X), STORE(0, FLAG, 2), SFENCE(0) } },
          2 },
        { "data, a flag, CLWB, SFENCE",
          { ADR, .event = { WRITE(0, X, 14, 1), STORE(0, FLAG, 2), CLWB(0, X), SFENCE(0) } },
          1 },
        { "data, then a store into them",
          { ADR, .event = { WRITE(0, X, 4, 1), STORE(0, X, 2) } },
          4 },
    };

    EXACTLY(table);
}

static void atomic_beside_dma(void)
{
    static const struct sequence table[] = {
        { "data, then an Atomic", { ADR, .event = { WRITE(0, X, 14, 1), SWAP(FLAG, 2) } }, 9 },
        { "an Atomic, then data", { ADR, .event = { SWAP(X, 2), WRITE(0, X2, 2, 1) } }, 3 },
    };

    EXACTLY(table);
}

static void atom_written_twice(void)
{
    static const struct sequence table[] = {
        { "a tail, twice", { ADR, .event = { WRITE(0, X, 2, 1), WRITE(0, X, 2, 2) } }, 3 },
        { "there and back", { ADR, .event = { WRITE(0, X, 2, 1), WRITE(0, X, 2, 0) } }, 2 },
        { "in halves", { ADR, .event = { WRITE(0, X, 1, 1), WRITE(0, X + 1, 1, 2) } }, 3 },
        { "segments that meet in an atom",
          { ADR, .event = { WRITE(0, X, 7, 1), WRITE(0, X + 7, 7, 2) } },
          9 },
    };

    EXACTLY(table);
}

static void clwb_before_dma(void)
{
    static const struct sequence table[] = {
        { "CLWB of a clean line, data, SFENCE",
          { ADR, .event = { CLWB(0, X), WRITE(0, X, 2, 7), SFENCE(0) } },
          2 },
        { "data, CLWB, data above them, SFENCE",
          { ADR, .event = { WRITE(0, X, 2, 7), CLWB(0, X), WRITE(0, X2, 2, 8), SFENCE(0) } },
          2 },
        { "data posted, CLWB, data visible, SFENCE",
          { ADR, .s1 = true,
            .event = { WRITE(0, X, 2, 7),
                       CLWB(0, X),
                       { .kind = GT_FENCE_DEVICE, .units = 1 },
                       SFENCE(0) } },
          2 },
    };

    EXACTLY(table);
}

static void non_temporal(void)
{
    static const struct sequence table[] = {
        { "two atoms of a line", { ADR, .event = { NT(0, X, 1), NT(0, X2, 2) } }, 4 },
        { "an atom twice", { ADR, .event = { NT(0, X, 1), NT(0, X, 2) } }, 3 },
        { "then a plain store to the line",
          { ADR, .event = { NT(0, X, 1), NT(0, X2, 2), STORE(0, X3, 3) } },
          5 },
        { "that store, and SFENCE",
          { ADR, .event = { NT(0, X, 1), STORE(0, X3, 3), SFENCE(0) } },
          2 },
        { "while another CPU flushes its own line",
          { ADR, .event = { NT(0, X, 1), STORE(1, Y, 2), CLWB(1, Y), SFENCE(1) } },
          2 },
        { "while another CPU flushes the same line",
          { ADR, .event = { NT(0, X, 1), CLWB(1, X), SFENCE(1) } },
          2 },
        { "in its processor at another's CLWB, in the cache at its fence",
          { ADR, .event = { NT(0, X, 1), CLWB(1, X), STORE(0, X2, 2), SFENCE(1) } },
          3 },
        { "while an adapter writes another line",
          { .domain = SG_PERSIST_ADR, .event = { NT(0, X, 1), WRITE(0, Y, 2, 2) } },
          2 },
        { "an adapter writes the line", { ADR, .event = { NT(0, X, 1), WRITE(0, X2, 2, 2) } }, 2 },
        { "an adapter has posted a write",
          { ADR, .s1 = true, .event = { WRITE(0, Y, 2, 1), NT(0, X, 2) } },
          4 },
        { "two CPUs", { ADR, .event = { NT(0, X, 1), NT(1, Y, 2), SFENCE(1) } }, 2 },
        { "where the queue is lost", { .event = { NT(0, X, 1), NT(0, X2, 2), SFENCE(0) } }, 4 },
    };

    EXACTLY(table);
}

static void generations(void)
{
    static const struct sequence table[] = {
        { "two generations",
          { .event = { STORE(0, X, 1), CLWB(0, X), SFENCE(0), STORE(0, X, 2), CLWB(0, X),
                       SFENCE(0) } },
          3 },
        { "a flush hint between them",
          { .event = { STORE(0, X, 1),
                       CLWB(0, X),
                       SFENCE(0),
                       { .kind = GT_DEEP_FLUSH, .units = 1 },
                       STORE(0, X, 2),
                       CLWB(0, X),
                       SFENCE(0) } },
          2 },
        { "atoms of a line",
          { .event = { STORE(0, X, 1), STORE(0, X2, 2), CLWB(0, X), SFENCE(0) } },
          3 },
        { "DMA past the cache, twice", { .event = { WRITE(0, X, 4, 1), WRITE(0, X, 2, 2) } }, 4 },
    };

    EXACTLY(table);
}

static void several_adapters(void)
{
    static const struct sequence table[] = {
        { "an atom, everything kept",
          { .domain = SG_PERSIST_WHOLE,
            .ddio = true,
            .s1 = true,
            .event = { WRITE(0, X, 2, 1), WRITE(1, X, 2, 2) } },
          2 },
        { "an atom", { ADR, .s1 = true, .event = { WRITE(0, X, 2, 1), WRITE(1, X, 2, 2) } }, 3 },
        { "two atoms of a line",
          { ADR, .s1 = true, .event = { WRITE(0, X, 2, 1), WRITE(1, X2, 2, 2) } },
          4 },
        { "their own lines",
          { ADR, .s1 = true, .event = { WRITE(0, X, 4, 1), WRITE(1, Y, 4, 2) } },
          9 },
    };

    EXACTLY(table);
}

static void loads(void)
{
    static const struct sequence table[] = {
        { "posted, loaded, another line",
          { .domain = SG_PERSIST_ADR,
            .s1 = true,
            .event = { WRITE(0, X, 4, 1), WRITE(0, Y, 2, 2), LOAD(0, X) } },
          2 },
        { "posted, loaded in the cache",
          { ADR, .s1 = true, .event = { WRITE(0, X, 2, 1), WRITE(0, Y, 2, 2), LOAD(0, Y) } },
          4 },
        { "in the adapter, loaded, CLWB, SFENCE",
          { ADR, .s0 = true, .event = { WRITE(0, X, 2, 1), LOAD(0, X), CLWB(0, X), SFENCE(0) } },
          1 },
        { "non-temporal, loaded by its CPU", { ADR, .event = { NT(0, X, 1), LOAD(0, X) } }, 2 },
        { "non-temporal, loaded by another", { ADR, .event = { NT(0, X, 1), LOAD(1, X2) } }, 1 },
        { "non-temporal, another line loaded", { ADR, .event = { NT(0, X, 1), LOAD(1, Y) } }, 2 },
        { "stored before what was loaded",
          { .domain = SG_PERSIST_EADR,
            .store_buffer = true,
            .event = { STORE(0, Y, 1), STORE(0, X, 2), STORE(0, Y, 3), LOAD(1, X) } },
          2 },
        { "overtaken, then there",
          { ADR, SETS,
            .event = { WRITE_ON(0, X, 2, 1), WRITE_ON(1, X, 2, 2), FLUSH(1), SETTLE, FENCE } },
          2 },
        { "overtaken, then there, and not what was loaded",
          { ADR, SETS,
            .event = { WRITE_ON(0, X, 2, 1), WRITE_ON(1, X, 2, 2), FLUSH(1), SETTLE, FENCE,
                       LOAD(0, X) } },
          1 },
        { "overtaken, loaded, and there",
          { ADR, SETS,
            .event = { WRITE_ON(0, X, 2, 1), WRITE_ON(1, X, 2, 2), FLUSH(1), LOAD(0, X) } },
          1 },
        { "overtaken in a half, and the other one loaded",
          { ADR, SETS,
            .event = { WRITE_ON(0, X, 1, 1), WRITE_ON(1, X, 1, 2), FLUSH(1), SETTLE, FENCE,
                       LOAD(0, X2) } },
          2 },
    };

    EXACTLY(table);
}

/* A register's write empties store buffers, and leaves non-temporal stores where they are. */
static void doorbell(void)
{
    static const struct sequence table[] = {
        { "non-temporal", { ADR, .event = { NT(0, X, 1), DOORBELL } }, 2 },
        { "non-temporal, with store buffers",
          { ADR, .store_buffer = true, .event = { NT(0, X, 1), DOORBELL } },
          2 },
        { "plain, where the cache is kept",
          { .domain = SG_PERSIST_EADR,
            .store_buffer = true,
            .event = { STORE(0, X, 1), DOORBELL } },
          1 },
        { "plain, without it",
          { .domain = SG_PERSIST_EADR, .store_buffer = true, .event = { STORE(0, X, 1) } },
          2 },
    };

    EXACTLY(table);
}

static void other_devices(void)
{
    static const struct sequence table[] = {
        { "data in the cache", { ADR, .event = { OTHER(X, 1) } }, 2 },
        { "data past the cache", { .domain = SG_PERSIST_ADR, .event = { OTHER(X, 1) } }, 1 },
        { "data, CLWB, SFENCE", { ADR, .event = { OTHER(X, 1), CLWB(0, X), SFENCE(0) } }, 1 },
        { "CLWB, data, SFENCE", { ADR, .event = { CLWB(0, X), OTHER(X, 1), SFENCE(0) } }, 2 },
        { "data, then a flag", { ADR, .event = { OTHER(X, 1), STORE(0, FLAG, 2) } }, 3 },
        { "data where the cache is kept",
          { .domain = SG_PERSIST_EADR, .ddio = true, .event = { OTHER(X, 1) } },
          1 },
    };

    EXACTLY(table);
}

/* D, which an adapter writes, and Z, which a CPU stores beside it; in either order. */
static void beside_segments(void)
{
    static const struct sequence table[] = {
        { "nothing, D, Z, both",
          { ADR, SETS, .event = { WRITE(0, X, 2, 1), STORE(0, X2, 2) } },
          4 },
        { "D has arrived in the cache",
          { ADR, SETS, .event = { WRITE(0, X, 2, 1), STORE(0, X2, 2), SETTLE, FENCE } },
          4 },
        { "D has arrived past the cache: Z may have come behind it",
          { .domain = SG_PERSIST_ADR,
            SETS,
            .event = { WRITE(0, X, 2, 1), STORE(0, X2, 2), SETTLE, FENCE } },
          2 },
        { "where the queue is lost",
          { SETS, .event = { WRITE(0, X, 2, 1), STORE(0, X2, 2), SETTLE, FENCE } },
          4 },
        { "Z, CLWB, SFENCE",
          { ADR, SETS, .event = { WRITE(0, X, 2, 1), STORE(0, X2, 2), CLWB(0, X), SFENCE(0) } },
          2 },
        { "D has arrived: Z has left its processor if it was there before",
          { .domain = SG_PERSIST_EADR,
            .store_buffer = true,
            SETS,
            .event = { WRITE(0, X, 2, 1), STORE(0, X2, 2), SETTLE, FENCE } },
          2 },
        { "the same of a non-temporal Z",
          { ADR, SETS, .event = { WRITE(0, X, 2, 1), NT(0, X2, 2), SETTLE, FENCE } },
          4 },
        { "two lines, in which nothing is before anything",
          { ADR, SETS,
            .event = { WRITE(0, X, 2, 1), WRITE(0, Y, 2, 2), STORE(0, Y + 2, 3), STORE(0, X2, 4),
                       SETTLE, FENCE } },
          16 },
        { "D of one line is before D of the other: never Z without D there, D without Z here",
          { ADR, SETS,
            .event = { WRITE(0, X, 2, 1), SETTLE, WRITE(0, Y, 2, 2), STORE(0, Y + 2, 3),
                       STORE(0, X2, 4), SETTLE, FENCE } },
          15 },
    };

    EXACTLY(table);
}

/* Nobody knows which of several segments came first to a line, whatever proves them. */
static void segments_of_a_line(void)
{
    static const struct sequence table[] = {
        { "two adapters, proved one after the other",
          { ADR, SETS,
            .event = { WRITE(0, X, 2, 1), WRITE(1, X2, 2, 2), SETTLES(0, 0), SETTLES(1, 0),
                       FENCES(0), FENCES(1) } },
          4 },
        { "two connections, proved at once",
          { ADR, SETS,
            .event = { WRITE_ON(0, X, 2, 1), WRITE_ON(1, X2, 2, 2), SETTLES(0, 0), SETTLES(0, 1),
                       FENCE } },
          4 },
        { "the first had settled when the second came",
          { ADR, SETS,
            .event = { WRITE_ON(0, X, 2, 1), SETTLE, WRITE_ON(1, X2, 2, 2), SETTLES(0, 1),
                       FENCE } },
          3 },
        { "a message in three segments, in a line",
          { ADR, SETS,
            .event = { WRITE(0, X, 2, 1), WRITE(0, X2, 2, 2), WRITE(0, X3, 2, 3), SETTLE, FENCE } },
          8 },
        { "loaded",
          { ADR, SETS, .event = { WRITE(0, X, 2, 1), WRITE(1, X2, 2, 2), LOAD(0, X) } },
          4 },
        { "the second half of an atom does not come without the first",
          { ADR, SETS, .event = { WRITE(0, X, 1, 1), WRITE(1, X + 1, 1, 2), LOAD(0, X) } },
          3 },
        { "past the cache: both survive",
          { .domain = SG_PERSIST_ADR,
            SETS,
            .event = { WRITE(0, X, 2, 1), WRITE(1, X2, 2, 2), LOAD(0, X) } },
          1 },
    };

    EXACTLY(table);
}

/* Two connections write to one atom: what proves one of them says nothing of the order. */
static void segments_of_an_atom(void)
{
    static const struct sequence table[] = {
        { "the newer one is proved first: it may have come first, or second",
          { .domain = SG_PERSIST_EADR,
            SETS,
            .event = { WRITE(0, X, 2, 1), WRITE(1, X, 2, 2), SETTLES(1, 0), FENCES(1), SETTLE,
                       FENCE } },
          2 },
        { "the older one is proved first: it was there",
          { .domain = SG_PERSIST_EADR,
            SETS,
            .event = { WRITE(0, X, 2, 1), WRITE(1, X, 2, 2), SETTLE, FENCE, SETTLES(1, 0),
                       FENCES(1) } },
          1 },
        { "both at once",
          { .domain = SG_PERSIST_EADR,
            SETS,
            .event = { WRITE(0, X, 2, 1), WRITE(1, X, 2, 2), LOAD(0, X) } },
          1 },
        { "the newer one is flushed, then the older one",
          { ADR, SETS,
            .event = { WRITE_ON(0, X, 2, 1), WRITE_ON(1, X, 2, 2), FLUSH(1), FLUSH(0) } },
          2 },
        { "the newer one is flushed alone: the older one is there, lost, or comes",
          { ADR, SETS, .event = { WRITE_ON(0, X, 4, 1), WRITE_ON(1, X, 2, 2), FLUSH(1) } },
          4 },
    };

    EXACTLY(table);
}

static void wbinvd(void)
{
    static const struct sequence table[] = {
        { "what another CPU stored", { ADR, .event = { STORE(1, X, 1), WBINVD(0) } }, 1 },
        { "not what waits in its buffers",
          { ADR, .event = { STORE(1, X, 1), NT(1, Y, 2), WBINVD(0) } },
          2 },
        { "what the cache has of a device",
          { ADR, .s1 = true,
            .event = { WRITE(0, X, 2, 1), LOAD(0, X), WRITE(0, Y, 2, 2), WBINVD(0) } },
          2 },
        { "where the queue is lost", { .event = { STORE(0, X, 1), WBINVD(0) } }, 2 },
    };

    EXACTLY(table);
}

static const struct t_case cases[] = {
    { "a CPU's store into a line that DMA made dirty", store_beside_dma },
    { "an Atomic beside data that DMA wrote", atomic_beside_dma },
    { "an atom that DMA writes twice, or in halves", atom_written_twice },
    { "a CLWB before DMA writes the line", clwb_before_dma },
    { "non-temporal stores", non_temporal },
    { "posted writes of several adapters", several_adapters },
    { "loads", loads },
    { "a CPU tells a device something", doorbell },
    { "devices that are no adapters", other_devices },
    { "a store beside segments under way", beside_segments },
    { "several segments in one line", segments_of_a_line },
    { "writes of two connections to one atom", segments_of_an_atom },
    { "WBINVD", wbinvd },
    { "generations of a line in the write-pending queue", generations },
};

T_MAIN(cases)
