/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target "trace": files that anybody may have written.
 *
 * The input is the file itself; or the blocks of a file, which get right checksums here, as a
 * hostile author would do; or events, which are written, read back and compared, and read once
 * more after some octets were changed and the checksums corrected.
 *
 * The reader must neither crash nor read beyond a block.  What it delivers must be right by the
 * table of events and numbered without gaps, and it must end with a status and a sentence.  Only a
 * file with an end has the status "end".  Events are also inputs of a domain, until it refuses one;
 * its invariants must hold.
 */
#include <glib.h>

#include "crash/replay.h"
#include "fuzz.h"
#include "trace/reader.h"
#include "trace/writer.h"

enum {
    EVENTS_MAX = 50000, /* read of one input: a few octets can repeat a store a million times */
    MEMORY = 3 * SG_TRACE_PAGE - 64,
    WRITTEN_MAX = 400,
    REPLAYED_MAX = 2000,
    ARENA = 64 << 10, /* memories of replayed machines */
};

static struct fuzz_in in;
static GByteArray *file;
static unsigned long long reached[SG_TRACE_STATUSES], events_read, written, pages, replayed,
    refused;
static uint8_t visible[ARENA] __attribute__((aligned(64)));
static uint8_t media[ARENA] __attribute__((aligned(64)));

/* ---- Reading ---- */

struct seen {
    enum sg_trace_status status;
    uint64_t events;
    uint32_t crc; /* of their kinds, fields and payloads */
};

static uint32_t crc_of(uint32_t crc, const struct sg_trace_event *e)
{
    crc = sg_crc32c(crc, &e->kind, 1);
    crc = sg_crc32c(crc, e->field, sizeof(e->field));
    return sg_trace_row(e->kind)->has_data ? sg_crc32c(crc, e->data, e->len) : crc;
}

static void see_page(void *opaque, unsigned extent, uint64_t number,
                     const uint8_t page[SG_TRACE_PAGE])
{
    pages++;
    sg_assert(!sg_trace_page_is_zero(page));
}

/* A domain with the trace's extents, or NULL: it refuses, or they are large. */
static struct sg_crash_replay *begin_replay(const struct sg_trace_header *h)
{
    struct sg_crash_replay *x;
    const char *wrong;
    uint64_t at = 0;

    for (unsigned i = 0; i < h->extent_count; i++) {
        if (h->extent[i].size > ARENA - at) {
            return NULL;
        }
        at += h->extent[i].size;
    }
    x = sg_crash_replay_new(h, &wrong);
    sg_assert(x || wrong);
    memset(visible, 0, sizeof(visible));
    memset(media, 0, sizeof(media));
    for (unsigned i = 0; x && i < h->extent_count; i++) {
        at -= h->extent[i].size;
        sg_crash_replay_add(x, visible + at, media + at);
    }
    return x;
}

static void end_replay(struct sg_crash_replay *x)
{
    if (x) {
        sg_assert_persist_state(sg_crash_replay_domain(x), true);
        sg_crash_replay_free(x);
    }
}

static struct seen see(const uint8_t *octets, size_t len)
{
    struct sg_trace_octets source = { octets, len };
    struct sg_trace_reader *r = sg_trace_reader_new(sg_trace_read_octets, &source);
    struct seen seen = { .status = sg_trace_open(r, see_page, NULL) };
    const struct sg_trace_event *e = NULL;
    struct sg_crash_replay *x = NULL;
    uint64_t now_ns = 0;

    if (seen.status == SG_TRACE_GOOD) {
        x = begin_replay(sg_trace_header(r));
    }
    while (seen.status == SG_TRACE_GOOD && seen.events < EVENTS_MAX && (e = sg_trace_next(r))) {
        sg_assert(!sg_trace_event_wrong(e) && e->number == ++seen.events);
        sg_assert(e->now_ns >= now_ns && (!e->name || sg_trace_name(r, e->name)));
        now_ns = e->now_ns;
        seen.crc = crc_of(seen.crc, e);
        if (x && seen.events <= REPLAYED_MAX) {
            const char *wrong = sg_crash_replay_event(x, e, sg_trace_name(r, e->name));

            replayed += !wrong;
            refused += wrong != NULL;
        }
    }
    end_replay(x);
    seen.status = sg_trace_status(r);
    if (seen.events < EVENTS_MAX) {
        sg_assert(seen.status != SG_TRACE_GOOD && !sg_trace_next(r));
    }
    sg_assert(sg_trace_message(r)[0] &&
              sg_trace_is_text((const uint8_t *)sg_trace_message(r), strlen(sg_trace_message(r))));
    sg_assert(sg_trace_header(r)->extent_count <= SG_TRACE_EXTENTS);
    reached[seen.status]++;
    events_read += seen.events;
    sg_trace_reader_free(r);
    return seen;
}

/* ---- A file of blocks ---- */

static void add_opening(void)
{
    uint8_t opening[SG_TRACE_OPENING] = SG_TRACE_MAGIC;

    opening[8] = fuzz_rarely(&in, 32) ? fuzz_u8(&in) : SG_TRACE_VERSION;
    g_byte_array_append(file, opening, sizeof(opening));
}

static void add_block(unsigned kind, const void *octets, size_t len)
{
    uint8_t head[SG_TRACE_BLOCK_HEAD] = { 0 };

    sg_put_le32(head, SG_TRACE_BLOCK_MARK);
    sg_put_le16(head + 4, (uint16_t)kind);
    sg_put_le32(head + 8, (uint32_t)len);
    g_byte_array_append(file, head, sizeof(head));
    if (len) {
        g_byte_array_append(file, octets, (guint)len);
    }
}

/* Right checksums, as far as the lengths make sense. */
static void seal(void)
{
    uint32_t crc = sg_crc32c(0, file->data, SG_MIN(file->len, (guint)SG_TRACE_OPENING));
    size_t at = SG_TRACE_OPENING;

    while (at + SG_TRACE_BLOCK_HEAD <= file->len) {
        uint8_t *head = file->data + at;
        size_t len = sg_get_le32(head + 8);

        at += SG_TRACE_BLOCK_HEAD;
        if (len > file->len - at) {
            return;
        }
        crc = sg_crc32c(crc, head, SG_TRACE_BLOCK_CRC);
        crc = sg_crc32c(crc, head + SG_TRACE_BLOCK_HEAD, len);
        sg_put_le32(head + SG_TRACE_BLOCK_CRC, crc);
        at += len;
    }
}

static void add_raw(unsigned kind, size_t len)
{
    const uint8_t *p = fuzz_bytes(&in, &len);

    add_block(kind, p, len);
}

static void add_events(uint64_t *number)
{
    uint8_t block[SG_TRACE_EVENTS_HEAD + 256] = { 0 };
    uint32_t count = fuzz_rarely(&in, 16) ? fuzz_u32(&in) : 1 + fuzz_below(&in, 12);
    size_t len = fuzz_u8(&in);
    const uint8_t *p = fuzz_bytes(&in, &len);

    sg_put_le64(block, *number);
    sg_put_le32(block + 16, count);
    memcpy(block + SG_TRACE_EVENTS_HEAD, p, len);
    add_block(SG_TRACE_BLOCK_EVENTS, block, SG_TRACE_EVENTS_HEAD + len);
    *number += count;
}

static void add_end(uint64_t number, unsigned extents)
{
    uint8_t end[16] = { 0 };

    sg_put_le64(end, number - 1);
    sg_put_le32(end + 12, extents);
    add_block(SG_TRACE_BLOCK_END, end, sizeof(end));
}

static void author(void)
{
    static const uint8_t name[] = { 11, 0, 'd', 'o', 'm', 'a', 'i', 'n', '=', 'e', 'a', 'd', 'r' };
    uint8_t header[SG_TRACE_HEADER_FIXED + 20 + 8] = { 0 }, hash[SG_TRACE_HASH] = { 0 };
    unsigned extents = fuzz_below(&in, 2);
    uint64_t number = 1;

    add_opening();
    sg_put_le32(header + 32, extents);
    sg_put_le64(header + 40, fuzz_rarely(&in, 8) ? fuzz_edgy(&in) : 0);
    sg_put_le64(header + 48, fuzz_rarely(&in, 8) ? fuzz_edgy(&in) : MEMORY);
    sg_put_le16(header + 56, fuzz_rarely(&in, 3));
    if (fuzz_rarely(&in, 8)) {
        add_raw(SG_TRACE_BLOCK_HEADER, fuzz_u8(&in));
    } else {
        add_block(SG_TRACE_BLOCK_HEADER, header,
                  SG_TRACE_HEADER_FIXED + (extents ? SG_TRACE_EXTENT_FIXED : 0) + 8);
    }
    while (fuzz_rarely(&in, 3)) {
        add_raw(SG_TRACE_BLOCK_CONTENT, fuzz_u8(&in));
    }
    add_block(SG_TRACE_BLOCK_START, hash, extents * sizeof(hash));
    add_block(SG_TRACE_BLOCK_NAMES, name, sizeof(name));
    while (in.len > 1) {
        if (fuzz_rarely(&in, 8)) {
            add_raw(fuzz_below(&in, SG_TRACE_BLOCKS), fuzz_u8(&in));
        } else {
            add_events(&number);
        }
    }
    add_end(number, extents);
    seal();
}

/* ---- A file of events ---- */

static bool append(void *opaque, const uint8_t *octets, size_t len)
{
    g_byte_array_append(file, octets, (guint)len);
    return true;
}

/* A right event, whose payload is in 'data'. */
static void make_event(struct sg_trace_event *e, uint8_t data[SG_TRACE_STORE_MAX])
{
    unsigned kind = fuzz_rarely(&in, 2) ? SG_TRACE_STORE : 1 + fuzz_below(&in, SG_TRACE_KINDS - 1);
    const struct sg_trace_row *row = sg_trace_row(kind);
    uint64_t now_ns = e->now_ns;

    if (e->kind == SG_TRACE_STORE && fuzz_rarely(&in, 2)) {
        /* The last store again. */
        e->addr += fuzz_rarely(&in, 4) ? fuzz_u8(&in) : e->len;
        data[0] += fuzz_rarely(&in, 2);
        return;
    }
    *e = (struct sg_trace_event){ .kind = kind, .data = row->has_data ? data : NULL };
    for (const uint8_t *f = row->field; *f; f++) {
        uint64_t value = fuzz_edgy(&in);

        if (*f == SG_TRACE_ADDR) {
            value &= 0x3fff; /* often within the extent */
        }
        e->field[*f] = SG_MIN(value, sg_trace_field_max[*f]);
    }
    if (row->arg_limit) {
        e->arg %= row->arg_limit;
    }
    if (row->has_data) {
        e->len = row->len_min + e->len % (SG_MIN(row->len_max, 64u) - row->len_min + 1);
        memset(data, fuzz_u8(&in), SG_TRACE_STORE_MAX);
    }
    e->name = SG_MIN(e->name, 1u);
    e->now_ns = SG_MAX(kind == SG_TRACE_TICK ? e->now_ns : 0, now_ns);
}

static void write_events(struct seen *want)
{
    struct sg_trace_header h = {
        .extent_count = 1,
        .extent = { { .size = MEMORY, .has_content = true } },
        .text = { "machine", "", "cpu-tracking=on\nplacement-delay=0\n" },
    };
    uint8_t *memory = g_malloc0(MEMORY), data[SG_TRACE_STORE_MAX] = { 0 };
    struct sg_trace_event e = { 0 };
    struct sg_trace_writer *w;

    for (unsigned n = fuzz_below(&in, 4); n; n--) {
        size_t at = fuzz_u16(&in) % MEMORY;

        memset(memory + at, fuzz_u8(&in), SG_MIN(MEMORY - at, 200));
    }
    w = sg_trace_writer_new(&h, append, NULL);
    sg_assert(sg_trace_writer_content(w, 0, memory) && sg_trace_writer_start(w, NULL));
    sg_assert(sg_trace_writer_name(w, "domain=none\nddio=off\n") == 1);
    while (in.len > 64 && want->events < WRITTEN_MAX) {
        make_event(&e, data);
        sg_assert(sg_trace_write(w, &e));
        want->events++;
        want->crc = crc_of(want->crc, &e);
        if (fuzz_rarely(&in, 16)) {
            sg_trace_writer_flush(w);
        }
    }
    sg_assert(sg_trace_writer_end(w, NULL));
    written += want->events;
    sg_trace_writer_free(w);
    g_free(memory);
}

static void writer(void)
{
    struct seen want = { .status = SG_TRACE_END }, got;

    write_events(&want);
    got = see(file->data, file->len);
    sg_assert(got.status == want.status && got.events == want.events && got.crc == want.crc);
    while (in.len > 1) {
        size_t at = fuzz_u16(&in) % file->len;

        file->data[at] = fuzz_u8(&in);
    }
    seal();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    in = (struct fuzz_in){ data, size };
    file = g_byte_array_new();
    switch (fuzz_below(&in, 4)) {
    case 0:
        g_byte_array_append(file, in.p, (guint)in.len);
        break;
    case 1:
        writer();
        break;
    default:
        author();
    }
    see(file->data, file->len);
    g_byte_array_free(file, TRUE);
    return 0;
}

bool fuzz_reached(char *buf, size_t len)
{
    size_t at = 0;
    bool good = events_read && written && pages && replayed && refused;

    at += (size_t)snprintf(buf, len, "read %llu, written %llu, pages %llu, inputs %llu, no %llu",
                           events_read, written, pages, replayed, refused);
    for (unsigned i = SG_TRACE_END; i < SG_TRACE_STATUSES && at < len; i++) {
        at +=
            (size_t)snprintf(buf + at, len - at, ", %s %llu", sg_trace_status_name(i), reached[i]);
        /* No source fails, no input of main.c is empty, no base is compared. */
        good = good && (reached[i] || i == SG_TRACE_UNREADABLE || i == SG_TRACE_EMPTY ||
                        i == SG_TRACE_OTHER_BASE);
    }
    return good;
}
