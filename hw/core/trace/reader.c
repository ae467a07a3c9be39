/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reader's blocks: which may follow which, their checksums, and all but the events.
 *
 * A block is one row of a table: where it may be, its limits, and who takes it.  Its length is
 * examined before its octets are read, its checksum before anybody looks at them.
 */
#include "trace/reader_impl.h"

/* ---- Status ---- */

static const struct {
    const char *name;
    const char *text;
} statuses[SG_TRACE_STATUSES] = {
    [SG_TRACE_GOOD] = { "good", "the trace is good so far" },
    [SG_TRACE_END] = { "end", "the trace is complete" },
    [SG_TRACE_EMPTY] = { "empty", "the trace is empty" },
    [SG_TRACE_CUT_SHORT] = { "cut-short", "the trace is cut short" },
    [SG_TRACE_NO_TRACE] = { "no-trace", "this is not a trace" },
    [SG_TRACE_OTHER_VERSION] = { "other-version", "the trace has another version" },
    [SG_TRACE_WRONG_BLOCK] = { "wrong-block", "the trace has a wrong block" },
    [SG_TRACE_INVALID] = { "invalid", "the trace is invalid" },
    [SG_TRACE_OTHER_BASE] = { "other-base", "the trace begins with another content" },
    [SG_TRACE_UNREADABLE] = { "unreadable", "the trace cannot be read" },
};

const char *sg_trace_status_name(enum sg_trace_status status)
{
    return status < SG_TRACE_STATUSES ? statuses[status].name : "?";
}

bool sg_trace_fail(struct sg_trace_reader *r, enum sg_trace_status status, const char *what)
{
    char events[60];

    if (r->event.number) {
        snprintf(events, sizeof(events), "; events 1 to %llu come before it",
                 (unsigned long long)r->event.number);
    } else {
        snprintf(events, sizeof(events), "; no event comes before it");
    }
    r->status = status;
    snprintf(r->message, sizeof(r->message), "%s, block at octet %llu: %s%s", statuses[status].text,
             (unsigned long long)r->block_offset, what, events);
    return false;
}

enum sg_trace_status sg_trace_status(const struct sg_trace_reader *r)
{
    return r->status;
}

const char *sg_trace_message(const struct sg_trace_reader *r)
{
    return r->message[0] ? r->message : statuses[r->status].text;
}

/* ---- Octets of a block ---- */

/* What is left of a block that is parsed; p is NULL as soon as something was missing. */
struct cursor {
    const uint8_t *p;
    size_t len;
};

static const uint8_t *take(struct cursor *c, size_t len)
{
    const uint8_t *p = c->p;

    if (!p || len > c->len) {
        c->p = NULL;
        return NULL;
    }
    c->p += len;
    c->len -= len;
    return p;
}

static uint64_t take_number(struct cursor *c, size_t octets)
{
    const uint8_t *p = take(c, octets);
    uint8_t le[8] = { 0 };

    if (p) {
        memcpy(le, p, octets);
    }
    return sg_get_le64(le);
}

/* A text behind its length of two octets; NULL: missing, too long or no text. */
static char *take_text(struct cursor *c, size_t max)
{
    size_t len = take_number(c, 2);
    const uint8_t *p = len <= max ? take(c, len) : NULL;

    return p && sg_trace_is_text(p, len) ? g_strndup((const char *)p, len) : NULL;
}

static bool invalid(struct sg_trace_reader *r, const char *what)
{
    return sg_trace_fail(r, SG_TRACE_INVALID, what);
}

/* ---- Header, content, start ---- */

static bool take_extent(struct sg_trace_extent *x, struct cursor *c)
{
    uint64_t flags;
    char *name;

    x->base = take_number(c, 8);
    x->size = take_number(c, 8);
    flags = take_number(c, 2);
    x->has_content = flags == 1;
    name = take_text(c, SG_TRACE_EXTENT_NAME_MAX);
    if (name) {
        g_strlcpy(x->name, name, sizeof(x->name));
    }
    g_free(name);
    return name && flags <= 1;
}

static bool take_header(struct sg_trace_reader *r, const uint8_t *octets, size_t len)
{
    struct cursor c = { octets, len };
    struct sg_trace_header *h = &r->header;
    const char *wrong;

    memcpy(h->run, take(&c, SG_TRACE_ID), SG_TRACE_ID);
    memcpy(h->machine, take(&c, SG_TRACE_ID), SG_TRACE_ID);
    h->extent_count = (unsigned)take_number(&c, 4);
    if (h->extent_count > SG_TRACE_EXTENTS) {
        h->extent_count = 0;
        return invalid(r, "too many extents");
    }
    if (take_number(&c, 4) != 0) {
        return invalid(r, "a reserved field of the header that is not 0");
    }
    for (unsigned i = 0; i < h->extent_count; i++) {
        if (!take_extent(&h->extent[i], &c)) {
            return invalid(r, "the header's extents are not whole");
        }
        sg_trace_hasher_init(&r->hasher[i]);
    }
    for (unsigned i = 0; i < SG_TRACE_TEXTS; i++) {
        r->text[i] = take_text(&c, SG_TRACE_TEXT_MAX);
        if (!r->text[i]) {
            return invalid(r, "the header's texts are not whole");
        }
        h->text[i] = r->text[i];
    }
    wrong = c.len ? "the header has octets behind its end" : sg_trace_header_wrong(h);
    r->place = SG_TRACE_AT_CONTENT;
    return !wrong || invalid(r, wrong);
}

static bool take_page(struct sg_trace_reader *r, struct cursor *c)
{
    const struct sg_trace_header *h = &r->header;
    unsigned extent = (unsigned)take_number(c, 2);
    size_t len = take_number(c, 2);
    uint64_t number = take_number(c, 4);
    const uint8_t *packed = len <= SG_TRACE_PAGE ? take(c, len) : NULL;
    uint8_t page[SG_TRACE_PAGE];

    if (!packed || extent >= h->extent_count || !h->extent[extent].has_content ||
        number >= sg_trace_pages(h->extent[extent].size)) {
        return invalid(r, "content of a page that does not exist");
    }
    if (extent < r->content_extent || (extent == r->content_extent && number < r->content_next)) {
        return invalid(r, "content out of order");
    }
    if (!sg_trace_unpack_page(page, packed, len) || sg_trace_page_is_zero(page)) {
        return invalid(r, "content that cannot be unpacked");
    }
    r->content_extent = extent;
    r->content_next = number + 1;
    sg_trace_hasher_page(&r->hasher[extent], number, page);
    if (r->page) {
        r->page(r->page_opaque, extent, number, page);
    }
    return true;
}

static bool take_content(struct sg_trace_reader *r, const uint8_t *octets, size_t len)
{
    struct cursor c = { octets, len };

    while (c.len && take_page(r, &c)) {
    }
    return r->status == SG_TRACE_GOOD;
}

static bool take_start(struct sg_trace_reader *r, const uint8_t *octets, size_t len)
{
    if (len != (size_t)r->header.extent_count * SG_TRACE_HASH) {
        return invalid(r, "not one hash for each extent");
    }
    for (unsigned i = 0; i < r->header.extent_count; i++) {
        const struct sg_trace_extent *x = &r->header.extent[i];
        uint8_t found[SG_TRACE_HASH];

        memcpy(r->start_hash[i], octets + (size_t)i * SG_TRACE_HASH, SG_TRACE_HASH);
        sg_trace_hasher_end(&r->hasher[i], x->size, found);
        if (x->has_content && memcmp(found, r->start_hash[i], SG_TRACE_HASH) != 0) {
            return invalid(r, "the content at the start has another hash");
        }
    }
    r->place = SG_TRACE_AT_EVENTS;
    return true;
}

/* ---- Names, end ---- */

static bool take_names(struct sg_trace_reader *r, const uint8_t *octets, size_t len)
{
    struct cursor c = { octets, len };

    while (c.len) {
        size_t before = c.len;
        char *name = take_text(&c, SG_TRACE_NAME_MAX);

        r->name_octets += before - c.len;
        if (!name || !*name || r->names->len == SG_TRACE_NAMES_MAX ||
            r->name_octets > SG_TRACE_NAMES_OCTETS + 2 * SG_TRACE_NAMES_MAX) {
            g_free(name);
            return invalid(r, "names that are no text, or too many of them");
        }
        g_ptr_array_add(r->names, name);
    }
    return true;
}

static bool take_end(struct sg_trace_reader *r, const uint8_t *octets, size_t len)
{
    struct cursor c = { octets, len };
    uint64_t events = take_number(&c, 8), known = take_number(&c, 4);
    size_t hashes = (size_t)r->header.extent_count * SG_TRACE_HASH;
    uint8_t more;

    if (events != r->event.number || known > 1 || take_number(&c, 4) != r->header.extent_count ||
        c.len != (known ? hashes : 0)) {
        return invalid(r, "the end does not fit what comes before it");
    }
    r->has_end_hash = known;
    if (known && hashes) {
        memcpy(r->end_hash, take(&c, hashes), hashes);
    }
    if (r->source(r->opaque, &more, 1) != 0) {
        return invalid(r, "octets follow the end");
    }
    r->place = SG_TRACE_AT_END;
    r->status = SG_TRACE_END;
    return true;
}

/* ---- Blocks ---- */

static const struct {
    enum sg_trace_place place;
    size_t min;
    bool (*take)(struct sg_trace_reader *r, const uint8_t *octets, size_t len);
} blocks[SG_TRACE_BLOCKS] = {
    [SG_TRACE_BLOCK_HEADER] = { SG_TRACE_AT_HEADER, SG_TRACE_HEADER_FIXED, take_header },
    [SG_TRACE_BLOCK_CONTENT] = { SG_TRACE_AT_CONTENT, SG_TRACE_CONTENT_HEAD, take_content },
    [SG_TRACE_BLOCK_START] = { SG_TRACE_AT_CONTENT, 0, take_start },
    [SG_TRACE_BLOCK_NAMES] = { SG_TRACE_AT_EVENTS, 3, take_names },
    [SG_TRACE_BLOCK_EVENTS] = { SG_TRACE_AT_EVENTS, SG_TRACE_EVENTS_HEAD + 1,
                                sg_trace_begin_events },
    [SG_TRACE_BLOCK_END] = { SG_TRACE_AT_EVENTS, 16, take_end },
};

/* Reads so many octets of the file; false: there are fewer. */
static bool fetch(struct sg_trace_reader *r, uint8_t *to, size_t len)
{
    int64_t got = r->source(r->opaque, to, len);

    if (got < 0) {
        return sg_trace_fail(r, SG_TRACE_UNREADABLE, "reading it failed");
    }
    r->offset += (uint64_t)got;
    return (size_t)got == len ||
           sg_trace_fail(r, SG_TRACE_CUT_SHORT, "the file ends before the trace's end");
}

static bool next_block(struct sg_trace_reader *r)
{
    uint8_t head[SG_TRACE_BLOCK_HEAD];
    unsigned kind;
    uint32_t crc;
    size_t len;

    r->block_offset = r->offset;
    if (!fetch(r, head, sizeof(head))) {
        return false;
    }
    kind = sg_get_le16(head + 4);
    len = sg_get_le32(head + 8);
    if (sg_get_le32(head) != SG_TRACE_BLOCK_MARK || len > SG_TRACE_BLOCK_MAX || kind == 0 ||
        kind >= SG_TRACE_BLOCKS || sg_get_le16(head + 6) != 0) {
        return sg_trace_fail(r, SG_TRACE_WRONG_BLOCK, "its head is damaged");
    }
    g_free(r->block);
    r->block = g_malloc(len);
    if (len && !fetch(r, r->block, len)) {
        return false;
    }
    crc = sg_crc32c(r->crc, head, SG_TRACE_BLOCK_CRC);
    r->crc = sg_crc32c(crc, r->block, len);
    if (r->crc != sg_get_le32(head + SG_TRACE_BLOCK_CRC)) {
        return sg_trace_fail(r, SG_TRACE_WRONG_BLOCK,
                             "its checksum is wrong, or it does not follow the block before it");
    }
    if (blocks[kind].place != r->place || len < blocks[kind].min) {
        return invalid(r, "a block of this kind and length cannot be here");
    }
    return blocks[kind].take(r, r->block, len);
}

/* ---- Interface ---- */

struct sg_trace_reader *sg_trace_reader_new(sg_trace_source source, void *opaque)
{
    struct sg_trace_reader *r = g_new0(struct sg_trace_reader, 1);

    r->source = source;
    r->opaque = opaque;
    r->names = g_ptr_array_new_with_free_func(g_free);
    return r;
}

void sg_trace_reader_free(struct sg_trace_reader *r)
{
    if (r) {
        for (unsigned i = 0; i < SG_TRACE_TEXTS; i++) {
            g_free(r->text[i]);
        }
        g_ptr_array_free(r->names, TRUE);
        g_free(r->block);
        g_free(r);
    }
}

static bool open_opening(struct sg_trace_reader *r)
{
    uint8_t opening[SG_TRACE_OPENING];
    char what[80];

    if (!fetch(r, opening, sizeof(opening))) {
        if (r->status == SG_TRACE_CUT_SHORT && r->offset == 0) {
            sg_trace_fail(r, SG_TRACE_EMPTY, "the file has no octets");
        } else if (r->status == SG_TRACE_CUT_SHORT &&
                   memcmp(opening, SG_TRACE_MAGIC, SG_MIN(r->offset, 8u)) != 0) {
            sg_trace_fail(r, SG_TRACE_NO_TRACE, "it begins with something else");
        }
        return false;
    }
    if (memcmp(opening, SG_TRACE_MAGIC, 8) != 0) {
        return sg_trace_fail(r, SG_TRACE_NO_TRACE, "it begins with something else");
    }
    if (sg_get_le32(opening + 8) != SG_TRACE_VERSION) {
        snprintf(what, sizeof(what), "version %u, and this program reads version %d",
                 (unsigned)sg_get_le32(opening + 8), SG_TRACE_VERSION);
        return sg_trace_fail(r, SG_TRACE_OTHER_VERSION, what);
    }
    r->crc = sg_crc32c(0, opening, sizeof(opening));
    return true;
}

enum sg_trace_status sg_trace_open(struct sg_trace_reader *r, sg_trace_page page, void *opaque)
{
    sg_assert(r->offset == 0);
    r->page = page;
    r->page_opaque = opaque;
    if (open_opening(r)) {
        while (r->place != SG_TRACE_AT_EVENTS && next_block(r)) {
        }
    }
    return r->status;
}

const struct sg_trace_event *sg_trace_next(struct sg_trace_reader *r)
{
    sg_assert(r->place >= SG_TRACE_AT_EVENTS || r->status != SG_TRACE_GOOD);
    while (r->status == SG_TRACE_GOOD && !r->left) {
        if (r->p != r->end || r->repetitions) {
            invalid(r, "a block has more events than it says");
        } else {
            next_block(r);
        }
    }
    return r->status == SG_TRACE_GOOD && sg_trace_decode(r) ? &r->event : NULL;
}

const struct sg_trace_header *sg_trace_header(const struct sg_trace_reader *r)
{
    return &r->header;
}

const uint8_t *sg_trace_start_hash(const struct sg_trace_reader *r, unsigned extent)
{
    return r->start_hash[extent];
}

bool sg_trace_check_base(struct sg_trace_reader *r, unsigned extent, const uint8_t *memory)
{
    const struct sg_trace_extent *x = &r->header.extent[extent];
    uint8_t found[SG_TRACE_HASH];

    sg_trace_hash_memory(memory, x->size, found);
    if (memcmp(found, r->start_hash[extent], SG_TRACE_HASH) == 0) {
        return true;
    }
    r->status = SG_TRACE_OTHER_BASE;
    snprintf(r->message, sizeof(r->message), "%s than this copy of extent %u, %s",
             statuses[r->status].text, extent, x->name[0] ? x->name : "which has no name");
    return false;
}

const uint8_t *sg_trace_end_hash(const struct sg_trace_reader *r, unsigned extent)
{
    return r->status == SG_TRACE_END && r->has_end_hash ? r->end_hash[extent] : NULL;
}

const char *sg_trace_name(const struct sg_trace_reader *r, uint64_t number)
{
    return number && number <= r->names->len ? g_ptr_array_index(r->names, number - 1) : NULL;
}

int64_t sg_trace_read_octets(void *opaque, uint8_t *buf, size_t len)
{
    struct sg_trace_octets *o = opaque;
    size_t n = SG_MIN(len, o->len);

    if (n) {
        memcpy(buf, o->p, n);
        o->p += n;
        o->len -= n;
    }
    return (int64_t)n;
}
