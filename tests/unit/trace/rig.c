/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rig.h"

#include "base/prng.h"

enum { TR_NAMES = 5 };

static const char *const names[TR_NAMES] = { "domain=adr\nddio=on\n", "acked", "committed",
                                             "domain=none\n", "a mark" };

void tr_file_init(struct tr_file *f)
{
    *f = (struct tr_file){ .octets = g_byte_array_new() };
}

void tr_file_free(struct tr_file *f)
{
    g_byte_array_free(f->octets, TRUE);
}

bool tr_file_sink(void *opaque, const uint8_t *octets, size_t len)
{
    struct tr_file *f = opaque;

    f->calls++;
    if (f->refuse_from && f->calls >= f->refuse_from) {
        return false;
    }
    g_byte_array_append(f->octets, octets, (guint)len);
    return true;
}

void tr_header(struct sg_trace_header *h)
{
    *h = (struct sg_trace_header){
        .run = "this run's 16..",
        .machine = "machine's sixt.",
        .extent_count = TR_EXTENTS,
        .extent = { { .base = 0x100000000, .size = TR_SIZE, .has_content = true, .name = "nv0" },
                    { .base = 0x200000000, .size = 64, .name = "nv1" } },
        .text = { "target", "nvdimm-persistence=mem-ctrl\n", "domain=adr\nddio=on\n",
                  "staghorn=0.1.0\nqemu=10.0.13\n" },
    };
}

struct sg_trace_writer *tr_begin(struct tr_file *f, bool plain)
{
    static const uint8_t hash[TR_EXTENTS][SG_TRACE_HASH] = { { 0 }, { 1, 2, 3 } };
    uint8_t memory[TR_SIZE] = { 0 };
    struct sg_trace_header h;
    struct sg_trace_writer *w;

    tr_header(&h);
    h.extent_count = plain ? 0 : TR_EXTENTS;
    w = sg_trace_writer_new(&h, tr_file_sink, f);
    if (!plain) {
        memset(memory + 100, 7, 200);
        memory[TR_SIZE - 1] = 9;
        sg_trace_writer_content(w, 0, memory);
    }
    sg_trace_writer_start(w, plain ? NULL : hash);
    return w;
}

void tr_end(struct sg_trace_writer *w)
{
    T_TRUE(sg_trace_writer_end(w, NULL));
    sg_trace_writer_free(w);
}

void tr_open(struct tr_view *v, const uint8_t *octets, size_t len)
{
    v->source = (struct sg_trace_octets){ octets, len };
    v->r = sg_trace_reader_new(sg_trace_read_octets, &v->source);
    v->opened = sg_trace_open(v->r, NULL, NULL);
}

void tr_close(struct tr_view *v)
{
    sg_trace_reader_free(v->r);
}

/* Often small, often near an edge, else anything; at most max. */
static uint64_t random_number(uint64_t *random, uint64_t max)
{
    static const uint64_t edges[] = { 0, 1, 0x3f, 0x40, 0x7f, 0x80, 0x3fff, 0x4000, UINT64_MAX };
    uint64_t r = sg_prng(random), v = sg_prng(random);

    switch (r % 4) {
    case 0:
        return SG_MIN(edges[v % SG_ARRAY_SIZE(edges)], max);
    case 1:
        return max - v % SG_MIN(max, 100u);
    case 2:
        return SG_MIN(v >> v % 64, max);
    default:
        return SG_MIN(v % 8, max);
    }
}

static uint64_t random_field(uint64_t *random, const struct sg_trace_row *row, uint8_t field)
{
    uint64_t len;

    switch (field) {
    case SG_TRACE_NOW:
        return 0;
    case SG_TRACE_NAME:
        return sg_prng(random) % (TR_NAMES + 1);
    case SG_TRACE_ARG:
        return row->arg_limit ? sg_prng(random) % row->arg_limit
                              : random_number(random, UINT32_MAX);
    case SG_TRACE_LEN:
        if (!row->has_data) {
            return random_number(random, UINT64_MAX);
        }
        len = row->len_min + sg_prng(random) % (row->len_max - row->len_min + 1);
        return sg_prng(random) % 8 ? SG_MIN(len, row->len_min + 40u) : len;
    default:
        return random_number(random, sg_trace_field_max[field]);
    }
}

void tr_random_event(uint64_t *random, unsigned kind, struct sg_trace_event *e,
                     uint8_t data[SG_TRACE_DATA_MAX])
{
    const struct sg_trace_row *row = sg_trace_row(kind);
    uint64_t value = sg_prng(random);

    *e = (struct sg_trace_event){ .kind = kind, .data = row->has_data ? data : NULL };
    for (const uint8_t *f = row->field; *f; f++) {
        e->field[*f] = random_field(random, row, *f);
    }
    for (size_t i = 0; row->has_data && i < e->len; i++) {
        data[i] = (uint8_t)(value % 3 ? value + i : 0);
    }
}

bool tr_same(const struct sg_trace_event *a, const struct sg_trace_event *b)
{
    return a->kind == b->kind && memcmp(a->field, b->field, sizeof(a->field)) == 0 &&
           !a->data == !b->data && (!a->data || memcmp(a->data, b->data, a->len) == 0);
}

/* The next event of a random trace: some kind, or the last store at another address. */
static void next_random(uint64_t *random, struct sg_trace_event *e, uint8_t data[SG_TRACE_DATA_MAX],
                        uint64_t *now_ns)
{
    static const int steps[] = { 1, 1, 1, 8, -1, 64, 0, 5000 };
    uint64_t r = sg_prng(random);

    if (e->kind == SG_TRACE_STORE && r % 4) {
        e->addr += e->len * (uint64_t)steps[(r >> 8) % SG_ARRAY_SIZE(steps)];
        data[0] += (r >> 16) % 3 == 0;
    } else {
        tr_random_event(random, 1 + (r >> 24) % (SG_TRACE_KINDS - 1), e, data);
    }
    if (e->kind == SG_TRACE_TICK) {
        *now_ns += sg_prng(random) % 100000;
    }
    e->now_ns = *now_ns;
}

void tr_write_random(struct sg_trace_writer *w, uint64_t seed, unsigned count)
{
    uint8_t *data = g_malloc(SG_TRACE_DATA_MAX);
    struct sg_trace_event e = { 0 };
    uint64_t now_ns = 0;

    for (unsigned i = 0; i < TR_NAMES; i++) {
        T_EQ_U64(sg_trace_writer_name(w, names[i]), i + 1);
    }
    for (unsigned i = 0; i < count && !sg_trace_writer_error(w); i++) {
        next_random(&seed, &e, data, &now_ns);
        T_TRUE(sg_trace_write(w, &e) == !sg_trace_writer_error(w));
    }
    g_free(data);
}

unsigned tr_expect_random(struct tr_view *v, uint64_t seed, unsigned count)
{
    uint8_t *data = g_malloc(SG_TRACE_DATA_MAX);
    const struct sg_trace_event *got;
    struct sg_trace_event e = { 0 };
    uint64_t now_ns = 0;
    unsigned n = 0;

    while ((got = sg_trace_next(v->r))) {
        T_TRUE(n < count);
        next_random(&seed, &e, data, &now_ns);
        n++;
        T_EQ_U64(got->number, n);
        T_TRUE(tr_same(got, &e));
        if (e.name) {
            T_EQ_STR(sg_trace_name(v->r, got->name), names[e.name - 1]);
        }
    }
    g_free(data);
    return n;
}
