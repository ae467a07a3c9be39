/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a writer wrote is what a reader reads: header, content, names, every kind of event with the
 * edges of its fields, repetitions, blocks, the end.
 */
#include "base/prng.h"
#include "rig.h"

static struct tr_file file;
static struct tr_view view;

static void begin_reading(void)
{
    tr_open(&view, file.octets->data, file.octets->len);
    T_EQ_STR(sg_trace_message(view.r), "the trace is good so far");
    T_EQ_INT(view.opened, SG_TRACE_GOOD);
}

static void end_reading(void)
{
    T_NULL(sg_trace_next(view.r));
    T_EQ_STR(sg_trace_status_name(sg_trace_status(view.r)), "end");
    tr_close(&view);
    tr_file_free(&file);
}

static uint8_t seen[TR_SIZE + 64];

static void see_page(void *opaque, unsigned extent, uint64_t number,
                     const uint8_t page[SG_TRACE_PAGE])
{
    T_EQ_U64(extent, 0);
    memcpy(seen + number * SG_TRACE_PAGE, page, SG_TRACE_PAGE);
}

static void header(void)
{
    static const uint8_t other[SG_TRACE_HASH] = { 1, 2, 3 };
    uint8_t memory[TR_SIZE] = { 0 }, hash[TR_EXTENTS][SG_TRACE_HASH] = { { 0 } };
    const struct sg_trace_header *got;
    struct sg_trace_header want;
    struct sg_trace_writer *w;

    tr_file_init(&file);
    w = tr_begin(&file, false);
    memory[5] = 1;
    sg_trace_hash_memory(memory, TR_SIZE, hash[0]);
    T_TRUE(sg_trace_writer_end(w, (const uint8_t(*)[SG_TRACE_HASH])hash));
    T_EQ_U64(sg_trace_writer_octets(w), file.octets->len);
    sg_trace_writer_free(w);

    view.source = (struct sg_trace_octets){ file.octets->data, file.octets->len };
    view.r = sg_trace_reader_new(sg_trace_read_octets, &view.source);
    memset(seen, 0, sizeof(seen));
    T_EQ_INT(sg_trace_open(view.r, see_page, NULL), SG_TRACE_GOOD);
    got = sg_trace_header(view.r);
    tr_header(&want);
    T_EQ_MEM(got->run, want.run, SG_TRACE_ID);
    T_EQ_MEM(got->machine, want.machine, SG_TRACE_ID);
    T_EQ_U64(got->extent_count, TR_EXTENTS);
    T_EQ_MEM(got->extent, want.extent, sizeof(want.extent));
    for (unsigned i = 0; i < SG_TRACE_TEXTS; i++) {
        T_EQ_STR(got->text[i], want.text[i]);
    }
    T_EQ_INT(seen[100], 7);
    T_EQ_INT(seen[299], 7);
    T_EQ_INT(seen[300], 0);
    T_EQ_INT(seen[TR_SIZE - 1], 9);
    sg_trace_hash_memory(seen, TR_SIZE, memory);
    T_EQ_MEM(sg_trace_start_hash(view.r, 0), memory, SG_TRACE_HASH);
    T_EQ_MEM(sg_trace_start_hash(view.r, 1), other, SG_TRACE_HASH);
    T_NULL(sg_trace_end_hash(view.r, 0));
    T_NULL(sg_trace_next(view.r));
    T_EQ_MEM(sg_trace_end_hash(view.r, 0), hash[0], SG_TRACE_HASH);
    T_NULL(sg_trace_next(view.r));
    T_EQ_STR(sg_trace_message(view.r), "the trace is complete");
    tr_close(&view);
    tr_file_free(&file);
}

/* Each kind: all fields 0, all at their highest value, and each field alone at its highest. */
static void edge_event(unsigned kind, unsigned which, struct sg_trace_event *e,
                       uint8_t data[SG_TRACE_DATA_MAX])
{
    const struct sg_trace_row *row = sg_trace_row(kind);
    unsigned i = 0;

    *e = (struct sg_trace_event){ .kind = kind, .data = row->has_data ? data : NULL };
    e->len = row->len_min;
    for (const uint8_t *f = row->field; *f; f++, i++) {
        if (which != 1 && which != 2 + i) {
            continue;
        }
        e->field[*f] = sg_trace_field_max[*f];
        if (*f == SG_TRACE_LEN && row->has_data) {
            e->len = row->len_max;
        } else if (*f == SG_TRACE_ARG && row->arg_limit) {
            e->arg = row->arg_limit - 1;
        } else if (*f == SG_TRACE_NAME) {
            e->name = 1;
        }
    }
}

/* The time of a trace never goes back, so the edge of ticks comes last. */
static uint64_t time_after(const struct sg_trace_event *e, uint64_t now_ns)
{
    return e->kind == SG_TRACE_TICK ? SG_MAX(now_ns, e->now_ns) : now_ns;
}

static void kinds(void)
{
    uint8_t *data = g_malloc(SG_TRACE_DATA_MAX);
    const struct sg_trace_event *got;
    struct sg_trace_event e;
    struct sg_trace_writer *w;
    uint64_t now_ns = 0;

    for (unsigned i = 0; i < SG_TRACE_DATA_MAX; i++) {
        data[i] = (uint8_t)(i * 7);
    }
    tr_file_init(&file);
    w = tr_begin(&file, true);
    T_EQ_U64(sg_trace_writer_name(w, "a name"), 1);
    for (unsigned i = 0; i < 2 * SG_TRACE_KINDS * SG_TRACE_ROW_FIELDS; i++) {
        unsigned kind = SG_TRACE_KINDS - 1 - i / SG_TRACE_ROW_FIELDS % (SG_TRACE_KINDS - 1);

        edge_event(kind, i % SG_TRACE_ROW_FIELDS, &e, data);
        T_CONTEXT("%s %u", sg_trace_row(kind)->name, i % SG_TRACE_ROW_FIELDS);
        T_TRUE(sg_trace_write(w, &e));
    }
    tr_end(w);
    begin_reading();
    for (unsigned i = 0; i < 2 * SG_TRACE_KINDS * SG_TRACE_ROW_FIELDS; i++) {
        unsigned kind = SG_TRACE_KINDS - 1 - i / SG_TRACE_ROW_FIELDS % (SG_TRACE_KINDS - 1);

        edge_event(kind, i % SG_TRACE_ROW_FIELDS, &e, data);
        T_CONTEXT("%s %u", sg_trace_row(kind)->name, i % SG_TRACE_ROW_FIELDS);
        got = sg_trace_next(view.r);
        T_NOT_NULL(got);
        e.now_ns = now_ns = time_after(&e, now_ns);
        T_EQ_U64(got->number, i + 1);
        T_EQ_MEM(got->field, e.field, sizeof(e.field));
        T_TRUE(tr_same(got, &e));
    }
    end_reading();
    g_free(data);
}

static void random_traces(void)
{
    struct tr_file again;
    struct sg_trace_writer *w;
    unsigned count;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        T_CONTEXT("seed %" PRIu64, seed);
        count = seed % 10 ? 200 : 20000;
        tr_file_init(&file);
        tr_file_init(&again);
        w = tr_begin(&file, seed % 2);
        tr_write_random(w, seed, count);
        T_EQ_U64(sg_trace_writer_events(w), count);
        tr_end(w);
        w = tr_begin(&again, seed % 2);
        tr_write_random(w, seed, count);
        tr_end(w);
        T_EQ_U64(file.octets->len, again.octets->len);
        T_EQ_MEM(file.octets->data, again.octets->data, again.octets->len);
        tr_file_free(&again);
        begin_reading();
        T_EQ_U64(tr_expect_random(&view, seed, count), count);
        end_reading();
    }
}

/* A flush makes blocks, but no other events. */
static void flushed(void)
{
    struct sg_trace_event e = { .kind = SG_TRACE_STORE, .len = 8, .data = (uint8_t *)"12345678" };
    const struct sg_trace_event *got;
    struct sg_trace_writer *w;
    unsigned calls;

    tr_file_init(&file);
    w = tr_begin(&file, true);
    calls = file.calls;
    for (unsigned i = 0; i < 100; i++) {
        e.addr = 8 * i;
        T_TRUE(sg_trace_write(w, &e));
        T_TRUE(i % 3 || sg_trace_writer_flush(w));
    }
    T_EQ_U64(file.calls, calls + 34);
    tr_end(w);
    begin_reading();
    for (unsigned i = 0; i < 100; i++) {
        got = sg_trace_next(view.r);
        T_NOT_NULL(got);
        T_EQ_U64(got->addr, 8 * i);
        T_EQ_MEM(got->data, "12345678", 8);
    }
    end_reading();
}

static void long_dma(void)
{
    enum { LEN = 3 * SG_TRACE_DATA_MAX + 5 };
    uint8_t *data = g_malloc0(LEN);
    struct sg_trace_event e = { .kind = SG_TRACE_OTHER_WRITE, .addr = 64, .len = LEN };
    const struct sg_trace_event *got;
    struct sg_trace_writer *w;

    data[LEN - 1] = 5;
    e.data = data;
    tr_file_init(&file);
    w = tr_begin(&file, true);
    T_TRUE(sg_trace_write(w, &e));
    tr_end(w);
    begin_reading();
    for (unsigned i = 0; i < 4; i++) {
        got = sg_trace_next(view.r);
        T_NOT_NULL(got);
        T_EQ_U64(got->addr, 64 + i * (uint64_t)SG_TRACE_DATA_MAX);
        T_EQ_U64(got->len, i < 3 ? SG_TRACE_DATA_MAX : 5);
        T_EQ_INT(got->data[got->len - 1], i < 3 ? 0 : 5);
    }
    end_reading();
    g_free(data);
}

static void packed_pages(void)
{
    uint8_t page[SG_TRACE_PAGE], packed[SG_TRACE_PAGE], again[SG_TRACE_PAGE];
    uint64_t random = 1;
    size_t len;

    for (unsigned round = 0; round < 3000; round++) {
        unsigned runs = round % 70, limit = 1 + round % 300;

        memset(page, 0, sizeof(page));
        for (unsigned i = 0; i < runs; i++) {
            size_t at = sg_prng(&random) % SG_TRACE_PAGE, n = sg_prng(&random) % limit;

            memset(page + at, (int)sg_prng(&random), SG_MIN(n, SG_TRACE_PAGE - at));
        }
        if (sg_trace_page_is_zero(page)) {
            continue;
        }
        T_CONTEXT("round %u", round);
        len = sg_trace_pack_page(packed, page);
        T_TRUE(len <= SG_TRACE_PAGE);
        T_TRUE(sg_trace_unpack_page(again, packed, len));
        T_EQ_MEM(again, page, SG_TRACE_PAGE);
    }
    memset(page, 0, sizeof(page));
    page[SG_TRACE_PAGE - 1] = 1;
    T_EQ_U64(sg_trace_pack_page(packed, page), 5);
}

static void many_names(void)
{
    struct sg_trace_event e = { .kind = SG_TRACE_CONFIGURE };
    const struct sg_trace_event *got;
    struct sg_trace_writer *w;
    char text[40];

    tr_file_init(&file);
    w = tr_begin(&file, true);
    for (unsigned i = 1; i <= SG_TRACE_NAMES_MAX; i++) {
        snprintf(text, sizeof(text), "name %u", i);
        e.name = sg_trace_writer_name(w, text);
        T_EQ_U64(e.name, i);
        T_TRUE(sg_trace_write(w, &e));
    }
    T_EQ_U64(sg_trace_writer_name(w, "name 77"), 77);
    T_EQ_U64(sg_trace_writer_name(w, NULL), 0);
    T_NULL(sg_trace_writer_error(w));
    tr_end(w);
    begin_reading();
    for (unsigned i = 1; i <= SG_TRACE_NAMES_MAX; i++) {
        got = sg_trace_next(view.r);
        T_NOT_NULL(got);
        snprintf(text, sizeof(text), "name %u", i);
        T_EQ_STR(sg_trace_name(view.r, got->name), text);
    }
    T_NULL(sg_trace_name(view.r, 0));
    T_NULL(sg_trace_name(view.r, SG_TRACE_NAMES_MAX + 1));
    end_reading();
}

/* A store as an event, and as a store alone: the same octets, and what a reader makes of them. */
static void stores(void)
{
    struct sg_trace_event e[4000] = { { .kind = 0 } };
    uint8_t data[4000][SG_TRACE_STORE_MAX];
    struct tr_file other;
    struct sg_trace_writer *w[2];
    uint64_t random = 5;

    tr_file_init(&file);
    tr_file_init(&other);
    w[0] = tr_begin(&file, true);
    w[1] = tr_begin(&other, true);
    for (unsigned i = 0; i < SG_ARRAY_SIZE(e); i++) {
        uint64_t bits = sg_prng(&random);

        if (i && bits % 8) { /* fields change one by one, or not at all */
            e[i] = e[i - 1];
            e[i].addr += bits >> 8 & 1 ? e[i].len : bits >> 40;
            e[i].at += bits >> 9 & 1 ? 0 : 3;
            e[i].unit ^= bits >> 10 & 0x7 ? 0 : 9;
            e[i].root ^= bits >> 13 & 0x7 ? 0 : 0x1000;
            e[i].arg ^= bits >> 16 & 0x7 ? 0 : 1;
            memcpy(data[i], data[i - 1], SG_TRACE_STORE_MAX);
            data[i][0] ^= bits >> 20 & 1;
        } else {
            tr_random_event(&random, SG_TRACE_STORE, &e[i], data[i]);
        }
        e[i].data = data[i];
        T_TRUE(sg_trace_write(w[0], &e[i]));
        T_TRUE(sg_trace_write_store(w[1], &(struct sg_trace_store){
                                              .addr = e[i].addr,
                                              .at = e[i].at,
                                              .root = e[i].root,
                                              .data = e[i].data,
                                              .unit = (uint16_t)e[i].unit,
                                              .len = (uint8_t)e[i].len,
                                              .arg = (uint8_t)e[i].arg,
                                          }));
    }
    tr_end(w[0]);
    tr_end(w[1]);
    T_EQ_U64(file.octets->len, other.octets->len);
    T_EQ_MEM(file.octets->data, other.octets->data, other.octets->len);
    tr_file_free(&other);
    begin_reading();
    for (unsigned i = 0; i < SG_ARRAY_SIZE(e); i++) {
        const struct sg_trace_event *got = sg_trace_next(view.r);

        T_NOT_NULL(got);
        T_TRUE(tr_same(got, &e[i]));
    }
    end_reading();
}

static const struct t_case cases[] = {
    { "header, content, hashes and end", header },
    { "every kind of event with the edges of its fields", kinds },
    { "random traces, and the same octets when they are written again", random_traces },
    { "a flush ends a block", flushed },
    { "DMA of another device has any length", long_dma },
    { "pages are packed without their zeros", packed_pages },
    { "65,535 names", many_names },
    { "a store as an event, and alone", stores },
};

T_MAIN(cases)
