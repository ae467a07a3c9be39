/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The writer's blocks: header, content, names, end.  encode.c has the events.
 *
 * The CRC32c of a block continues that of the block before, so a block that is missing, repeated
 * or of another trace does not fit.  Names go to the sink before the events that have them.
 */
#include "trace/writer_impl.h"

bool sg_trace_writer_emit(struct sg_trace_writer *w, enum sg_trace_block kind, uint8_t *block,
                          size_t len)
{
    if (w->error) {
        return false;
    }
    sg_put_le32(block, SG_TRACE_BLOCK_MARK);
    sg_put_le16(block + 4, kind);
    sg_put_le16(block + 6, 0);
    sg_put_le32(block + 8, (uint32_t)len);
    w->crc = sg_crc32c(w->crc, block, SG_TRACE_BLOCK_CRC);
    w->crc = sg_crc32c(w->crc, block + SG_TRACE_BLOCK_HEAD, len);
    sg_put_le32(block + SG_TRACE_BLOCK_CRC, w->crc);
    if (!w->sink(w->opaque, block, SG_TRACE_BLOCK_HEAD + len)) {
        w->error = "the trace's file takes no more";
        return false;
    }
    w->octets += SG_TRACE_BLOCK_HEAD + len;
    return true;
}

/* ---- Header ---- */

static void put(struct sg_trace_writer *w, const void *octets, size_t len)
{
    memcpy(sg_trace_block_at(w, w->used), octets, len);
    w->used += len;
}

static void put_number(struct sg_trace_writer *w, uint64_t number, size_t octets)
{
    uint8_t le[8];

    sg_put_le64(le, number);
    put(w, le, octets);
}

static void emit_header(struct sg_trace_writer *w, const struct sg_trace_header *h)
{
    put(w, h->run, SG_TRACE_ID);
    put(w, h->machine, SG_TRACE_ID);
    put_number(w, h->extent_count, 4);
    put_number(w, 0, 4);
    for (unsigned i = 0; i < h->extent_count; i++) {
        const struct sg_trace_extent *x = &h->extent[i];

        put_number(w, x->base, 8);
        put_number(w, x->size, 8);
        put_number(w, x->has_content, 2);
        put_number(w, strlen(x->name), 2);
        put(w, x->name, strlen(x->name));
    }
    for (unsigned i = 0; i < SG_TRACE_TEXTS; i++) {
        const char *text = h->text[i] ? h->text[i] : "";

        put_number(w, strlen(text), 2);
        put(w, text, strlen(text));
    }
    sg_trace_writer_emit(w, SG_TRACE_BLOCK_HEADER, w->block, w->used);
    w->used = 0;
}

static void emit_opening(struct sg_trace_writer *w)
{
    uint8_t opening[SG_TRACE_OPENING] = { 0 };

    memcpy(opening, SG_TRACE_MAGIC, 8);
    sg_put_le32(opening + 8, SG_TRACE_VERSION);
    w->crc = sg_crc32c(0, opening, sizeof(opening));
    if (!w->sink(w->opaque, opening, sizeof(opening))) {
        w->error = "the trace's file takes nothing";
    }
    w->octets = sizeof(opening);
}

struct sg_trace_writer *sg_trace_writer_new(const struct sg_trace_header *header,
                                            sg_trace_sink sink, void *opaque)
{
    struct sg_trace_writer *w = g_new0(struct sg_trace_writer, 1);

    sg_assert(!sg_trace_header_wrong(header));
    w->sink = sink;
    w->opaque = opaque;
    w->extent_count = header->extent_count;
    w->name_numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (unsigned i = 0; i < w->extent_count; i++) {
        w->extent_size[i] = header->extent[i].size;
        w->extent_pages[i] = sg_trace_pages(header->extent[i].size);
        w->has_content[i] = header->extent[i].has_content;
        sg_trace_hasher_init(&w->hasher[i]);
    }
    emit_opening(w);
    emit_header(w, header);
    return w;
}

void sg_trace_writer_free(struct sg_trace_writer *w)
{
    if (w) {
        g_hash_table_destroy(w->name_numbers);
        g_free(w);
    }
}

/* ---- Content ---- */

static bool close_content(struct sg_trace_writer *w)
{
    bool good = !w->used || sg_trace_writer_emit(w, SG_TRACE_BLOCK_CONTENT, w->block, w->used);

    w->used = 0;
    return good && !w->error;
}

bool sg_trace_writer_page(struct sg_trace_writer *w, unsigned extent, uint64_t number,
                          const uint8_t page[SG_TRACE_PAGE])
{
    uint8_t packed[SG_TRACE_PAGE];
    size_t len;

    sg_assert(w->phase == SG_TRACE_CONTENT && extent < w->extent_count && w->has_content[extent]);
    sg_assert(extent > w->content_extent ||
              (extent == w->content_extent && number >= w->content_next));
    sg_assert(number < w->extent_pages[extent]);
    if (sg_trace_page_is_zero(page)) {
        return !w->error;
    }
    sg_trace_hasher_page(&w->hasher[extent], number, page);
    w->content_extent = extent;
    w->content_next = number + 1;
    len = sg_trace_pack_page(packed, page);
    if (w->used + SG_TRACE_CONTENT_HEAD + len > SG_TRACE_BLOCK_FULL && !close_content(w)) {
        return false;
    }
    put_number(w, extent, 2);
    put_number(w, len, 2);
    put_number(w, number, 4);
    put(w, packed, len);
    return !w->error;
}

bool sg_trace_writer_content(struct sg_trace_writer *w, unsigned extent, const uint8_t *memory)
{
    uint64_t size = w->extent_size[extent], at;
    bool good = true;

    for (at = 0; size - at >= SG_TRACE_PAGE && good; at += SG_TRACE_PAGE) {
        good = sg_trace_writer_page(w, extent, at / SG_TRACE_PAGE, memory + at);
    }
    if (good && size > at) {
        uint8_t last[SG_TRACE_PAGE] = { 0 };

        memcpy(last, memory + at, size - at);
        good = sg_trace_writer_page(w, extent, at / SG_TRACE_PAGE, last);
    }
    return good;
}

bool sg_trace_writer_start(struct sg_trace_writer *w, const uint8_t (*hash)[SG_TRACE_HASH])
{
    uint8_t known[SG_TRACE_HASH];

    sg_assert(w->phase == SG_TRACE_CONTENT);
    close_content(w);
    for (unsigned i = 0; i < w->extent_count; i++) {
        sg_assert(w->has_content[i] || hash);
        if (w->has_content[i]) {
            sg_trace_hasher_end(&w->hasher[i], w->extent_size[i], known);
        } else {
            memcpy(known, hash[i], SG_TRACE_HASH);
        }
        put(w, known, SG_TRACE_HASH);
    }
    sg_trace_writer_emit(w, SG_TRACE_BLOCK_START, w->block, w->used);
    w->used = 0;
    w->phase = SG_TRACE_EVENTS;
    return !w->error;
}

/* ---- Names ---- */

static bool close_names(struct sg_trace_writer *w)
{
    bool good =
        !w->names_used || sg_trace_writer_emit(w, SG_TRACE_BLOCK_NAMES, w->names, w->names_used);

    w->names_used = 0;
    return good && !w->error;
}

uint32_t sg_trace_writer_name(struct sg_trace_writer *w, const char *text)
{
    size_t len = text ? strlen(text) : 0;
    gpointer known;
    uint8_t *to;

    sg_assert(len <= SG_TRACE_NAME_MAX && sg_trace_is_text((const uint8_t *)text, len));
    sg_assert(w->phase == SG_TRACE_EVENTS);
    if (!len || w->error) {
        return 0;
    }
    known = g_hash_table_lookup(w->name_numbers, text);
    if (known) {
        return GPOINTER_TO_UINT(known);
    }
    if (w->name_count == SG_TRACE_NAMES_MAX || w->name_octets + len > SG_TRACE_NAMES_OCTETS) {
        w->error = "the trace has too many names";
        return 0;
    }
    if (w->names_used + 2 + len > SG_TRACE_BLOCK_FULL && !close_names(w)) {
        return 0;
    }
    to = w->names + SG_TRACE_BLOCK_HEAD + w->names_used;
    sg_put_le16(to, (uint16_t)len);
    memcpy(to + 2, text, len);
    w->names_used += 2 + len;
    w->name_octets += len;
    g_hash_table_insert(w->name_numbers, g_strdup(text), GUINT_TO_POINTER(++w->name_count));
    return w->name_count;
}

/* ---- Events and end ---- */

bool sg_trace_writer_close_events(struct sg_trace_writer *w)
{
    bool good = close_names(w);

    if (w->block_events) {
        sg_put_le32(sg_trace_block_at(w, 16), w->block_events);
        good = sg_trace_writer_emit(w, SG_TRACE_BLOCK_EVENTS, w->block, w->used);
    }
    w->used = 0;
    w->block_events = 0;
    w->run.open = false;
    return good && !w->error;
}

bool sg_trace_writer_flush(struct sg_trace_writer *w)
{
    if (w->phase == SG_TRACE_CONTENT) {
        return close_content(w);
    }
    return w->phase == SG_TRACE_EVENTS ? sg_trace_writer_close_events(w) : !w->error;
}

bool sg_trace_writer_end(struct sg_trace_writer *w, const uint8_t (*hash)[SG_TRACE_HASH])
{
    sg_assert(w->phase == SG_TRACE_EVENTS);
    sg_trace_writer_close_events(w);
    put_number(w, w->events, 8);
    put_number(w, hash != NULL, 4);
    put_number(w, w->extent_count, 4);
    for (unsigned i = 0; hash && i < w->extent_count; i++) {
        put(w, hash[i], SG_TRACE_HASH);
    }
    sg_trace_writer_emit(w, SG_TRACE_BLOCK_END, w->block, w->used);
    w->phase = SG_TRACE_ENDED;
    return !w->error;
}

const char *sg_trace_writer_error(const struct sg_trace_writer *w)
{
    return w->error;
}

uint64_t sg_trace_writer_events(const struct sg_trace_writer *w)
{
    return w->events;
}

uint64_t sg_trace_writer_octets(const struct sg_trace_writer *w)
{
    return w->octets;
}
