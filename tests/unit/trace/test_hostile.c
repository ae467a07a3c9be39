/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traces whose checksums are right and whose content no writer writes.
 */
#include "rig.h"

static GByteArray *trace;
static uint32_t crc;

static void begin(void)
{
    uint8_t opening[SG_TRACE_OPENING] = SG_TRACE_MAGIC;

    opening[8] = SG_TRACE_VERSION;
    trace = g_byte_array_new();
    g_byte_array_append(trace, opening, sizeof(opening));
    crc = sg_crc32c(0, opening, sizeof(opening));
}

/* A block with a right checksum. */
static void block(unsigned kind, const void *octets, size_t len)
{
    uint8_t head[SG_TRACE_BLOCK_HEAD] = { 0 };

    sg_put_le32(head, SG_TRACE_BLOCK_MARK);
    sg_put_le16(head + 4, (uint16_t)kind);
    sg_put_le32(head + 8, (uint32_t)len);
    crc = sg_crc32c(sg_crc32c(crc, head, SG_TRACE_BLOCK_CRC), octets, len);
    sg_put_le32(head + SG_TRACE_BLOCK_CRC, crc);
    g_byte_array_append(trace, head, sizeof(head));
    g_byte_array_append(trace, octets, (guint)len);
}

enum { ROW_EXTENTS = 2 };

/* A header: at most ROW_EXTENTS extents as base, size, flags; texts of no octets. */
static void header(unsigned count, const uint64_t (*extent)[3])
{
    uint8_t h[SG_TRACE_HEADER_FIXED + 20 * ROW_EXTENTS + 8] = { 0 };
    size_t at = SG_TRACE_HEADER_FIXED;

    sg_put_le32(h + 32, count);
    for (unsigned i = 0; i < count && i < ROW_EXTENTS; i++, at += SG_TRACE_EXTENT_FIXED) {
        sg_put_le64(h + at, extent[i][0]);
        sg_put_le64(h + at + 8, extent[i][1]);
        sg_put_le16(h + at + 16, (uint16_t)extent[i][2]);
    }
    block(SG_TRACE_BLOCK_HEADER, h, at + 8);
}

/* Octets in hexadecimal; "xx*N": N times. */
static size_t octets_of(const char *text, uint8_t *out)
{
    size_t len = 0;
    unsigned value, times, n;

    for (; sscanf(text, " %2x%n", &value, (int *)&n) == 1; text += n) {
        text += n;
        times = 1;
        n = 0;
        if (sscanf(text, "*%u%n", &times, (int *)&n) != 1) {
            n = 0;
        }
        memset(out + len, (int)value, times);
        len += times;
    }
    T_EQ_INT(*text, '\0');
    return len;
}

static void refused(enum sg_trace_status status, const char *text)
{
    struct tr_view view;

    tr_open(&view, trace->data, trace->len);
    while (view.opened == SG_TRACE_GOOD && sg_trace_next(view.r)) {
    }
    if (!strstr(sg_trace_message(view.r), text)) {
        T_FAIL("\"%s\" does not have \"%s\"", sg_trace_message(view.r), text);
    }
    T_EQ_INT(sg_trace_status(view.r), status);
    tr_close(&view);
    g_byte_array_free(trace, TRUE);
}

static void headers(void)
{
    static const struct {
        const char *what;
        unsigned count;
        uint64_t extent[ROW_EXTENTS][3];
        const char *text; /* NULL: good */
    } rows[] = {
        { "two neighbours", 2, { { 0, 64, 0 }, { 64, 64, 0 } }, NULL },
        { "no octets", 1, { { 0, 0, 0 } }, "cannot be" },
        { "too large", 1, { { 0, SG_TRACE_EXTENT_SIZE_MAX + 64, 0 } }, "cannot be" },
        { "beyond the last address", 1, { { 0xffffffffffffffc0, 64, 0 } }, "cannot be" },
        { "base not of a line", 1, { { 8, 64, 0 } }, "cannot be" },
        { "size not of a line", 1, { { 0, 65, 0 } }, "cannot be" },
        { "unknown flags", 1, { { 0, 64, 2 } }, "not whole" },
        { "overlap", 2, { { 0, 128, 0 }, { 64, 64, 0 } }, "overlap" },
        { "the same", 2, { { 64, 64, 0 }, { 64, 64, 0 } }, "overlap" },
        { "too many", 17, { { 0, 64, 0 } }, "too many extents" },
        { "far too many", 0xffffffff, { { 0, 64, 0 } }, "too many extents" },
    };

    for (unsigned i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].what);
        begin();
        header(rows[i].count, rows[i].extent);
        refused(rows[i].text ? SG_TRACE_INVALID : SG_TRACE_CUT_SHORT,
                rows[i].text ? rows[i].text : "cut short");
    }
}

/* Content of two extents, of 2 pages and of 64 octets; the second one has none. */
static void contents(void)
{
    static const uint64_t extent[ROW_EXTENTS][3] = { { 0, 8192, 1 }, { 8192, 64, 0 } };
    static const struct {
        const char *what;
        const char *octets;
        const char *text;
    } rows[] = {
        { "short head", "00*7", "of this kind and length" },
        { "no such extent", "02 00 05 00 00*4 00 00 01 00 01", "does not exist" },
        { "extent without content", "01 00 05 00 00*4 00 00 01 00 01", "does not exist" },
        { "no such page", "00 00 05 00 02 00 00 00 00 00 01 00 01", "does not exist" },
        { "goes beyond the block", "00 00 06 00 00*4 00 00 01 00 01", "does not exist" },
        { "longer than a page", "00 00 01 10 00*4 01*4097", "does not exist" },
        { "twice", "00 00 05 00 00*4 00 00 01 00 01 00 00 05 00 00*4 00 00 01 00 01",
          "out of order" },
        { "no pieces", "00 00 00 00 00*4", "unpacked" },
        { "half a piece", "00 00 03 00 00*4 00 00 01", "unpacked" },
        { "gap too long", "00 00 05 00 00*4 01 10 01 00 01", "unpacked" },
        { "piece too long", "00 00 05 00 00*4 00 10 01 00 01", "unpacked" },
        { "piece longer than its octets", "00 00 05 00 00*4 00 00 02 00 01", "unpacked" },
        { "octets of zero", "00 00 05 00 00*4 00 00 01 00 00", "unpacked" },
        { "a page of zeros", "00 00 00 10 00*4 00*4096", "unpacked" },
        { "other hash", "00 00 05 00 00*4 00 00 01 00 01", "another hash" },
    };
    uint8_t octets[8192], hashes[3 * SG_TRACE_HASH] = { 0 };

    for (unsigned i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].what);
        begin();
        header(2, extent);
        block(SG_TRACE_BLOCK_CONTENT, octets, octets_of(rows[i].octets, octets));
        block(SG_TRACE_BLOCK_START, hashes, 2 * SG_TRACE_HASH);
        refused(SG_TRACE_INVALID, rows[i].text);
    }
    begin();
    header(2, extent);
    block(SG_TRACE_BLOCK_START, hashes, 3 * SG_TRACE_HASH);
    refused(SG_TRACE_INVALID, "one hash for each");
}

/* Records of a first block of events behind the number of events that it claims. */
static void records(void)
{
    static const struct {
        const char *what;
        unsigned count;
        const char *octets;
        const char *text; /* NULL: good */
    } rows[] = {
        { "a store of one octet", 1, "02 08 02 aa", NULL },
        { "kind 0", 1, "00 00", "kind that does not exist" },
        { "kind after the last", 1, "3e 00", "kind that does not exist" },
        { "more fields by its form", 1, "ce", "more fields" },
        { "no mask", 1, "02", "mask that is not whole" },
        { "a mask that never ends", 1, "02 80*20", "mask that is not whole" },
        { "a mask of more than 64 bits", 1, "02 80*9 02", "mask that is not whole" },
        { "a mask of more fields", 1, "02 48 02 aa", "more fields" },
        { "a field is missing", 1, "02 08", "not whole" },
        { "a field that never ends", 1, "02 08 ff*11", "not whole" },
        { "a unit that is not whole", 1, "02 09 ff", "not whole" },
        { "unit of 65,536", 1, "02 09 80 80 08 02 aa", "beyond its limit" },
        { "flags of 8", 1, "02 28 02 10 aa", "an argument beyond" },
        { "a store of no octets", 1, "42", "length that cannot be" },
        { "a store of 65 octets", 1, "02 08 82 01 aa*65", "length that cannot be" },
        { "a payload that is not there", 1, "02 08 04 aa", "beyond its block" },
        { "a name that is not there", 1, "1a 01 02", "name that is not known" },
        { "time that goes back", 2, "01 01 02 01 01 01", "time that goes back" },
        { "no events", 0, "02 08 02 aa", "no events or too many" },
        { "too many events", SG_TRACE_BLOCK_EVENTS_MAX + 1, "02 08 02 aa", "or too many" },
        { "fewer than it says", 2, "02 08 02 aa", "fewer events" },
        { "more than it says", 1, "02 08 02 aa 02 08 02 aa", "more events" },
        { "a repetition at the start", 1, "ff 01 00", "no store" },
        { "a repetition of a tick", 2, "01 01 02 ff 01 00", "no store" },
        { "a repetition without count", 2, "02 08 02 aa ff 01", "without count" },
        { "a repetition of count 0", 2, "02 08 02 aa ff 00 00", "without count" },
        { "a step that is not whole", 2, "02 08 02 aa 7f 80", "step that is not whole" },
        { "payload of a repetition missing", 3, "02 08 02 aa bf 02 00 bb", "beyond its block" },
        { "repetition longer than the block says", 3, "02 08 02 aa ff ff ff", "more events" },
        { "repetitions that fit", 6, "02 08 02 aa ff 03 00 bf 02 00 bb cc", NULL },
    };
    uint8_t octets[8192];

    for (unsigned i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        size_t len;

        T_CONTEXT("%s", rows[i].what);
        memset(octets, 0, SG_TRACE_EVENTS_HEAD);
        sg_put_le64(octets, 1);
        sg_put_le32(octets + 16, rows[i].count);
        len = octets_of(rows[i].octets, octets + SG_TRACE_EVENTS_HEAD);
        begin();
        header(0, NULL);
        block(SG_TRACE_BLOCK_START, "", 0);
        block(SG_TRACE_BLOCK_EVENTS, octets, SG_TRACE_EVENTS_HEAD + len);
        refused(rows[i].text ? SG_TRACE_INVALID : SG_TRACE_CUT_SHORT,
                rows[i].text ? rows[i].text : "cut short");
    }
}

static void order(void)
{
    static const struct {
        const char *what;
        const char *kinds; /* of blocks: each is as its kind should be */
        const char *text;
    } rows[] = {
        { "two headers", "HH", "cannot be here" },
        { "start before header", "S", "cannot be here" },
        { "names before start", "HN", "cannot be here" },
        { "content after start", "HSC", "cannot be here" },
        { "two starts", "HSS", "cannot be here" },
        { "end without start", "HE", "cannot be here" },
        { "events before start", "HV", "cannot be here" },
        { "the same events twice", "HSVV", "events are missing" },
        { "end with another count", "HSVE", "does not fit" },
        { "octets after the end", "HSEN", "octets follow" },
        { "a name of no octets", "HSn", "names" },
        { "a name that is no text", "HSt", "names" },
    };
    static const uint8_t end[16] = { 0 };
    uint8_t events[SG_TRACE_EVENTS_HEAD + 4] = { 1, [16] = 1, [20] = 2, 8, 2, 0xaa };

    for (unsigned i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].what);
        begin();
        for (const char *k = rows[i].kinds; *k; k++) {
            switch (*k) {
            case 'H':
                header(0, NULL);
                break;
            case 'S':
                block(SG_TRACE_BLOCK_START, "", 0);
                break;
            case 'C':
                block(SG_TRACE_BLOCK_CONTENT, end, 16);
                break;
            case 'V':
                block(SG_TRACE_BLOCK_EVENTS, events, sizeof(events));
                break;
            case 'E':
                block(SG_TRACE_BLOCK_END, end, sizeof(end));
                break;
            case 'N':
                block(SG_TRACE_BLOCK_NAMES, "\1\0a", 3);
                break;
            case 'n':
                block(SG_TRACE_BLOCK_NAMES, "\1\0a\0\0", 5);
                break;
            default:
                block(SG_TRACE_BLOCK_NAMES, "\1\0\033", 3);
            }
        }
        refused(SG_TRACE_INVALID, rows[i].text);
    }
}

/* Messages quote texts of the file, so these must not have what moves a terminal's cursor. */
static void texts(void)
{
    uint8_t h[SG_TRACE_HEADER_FIXED + 20] = { 0 };

    h[SG_TRACE_HEADER_FIXED] = 4;
    memcpy(h + SG_TRACE_HEADER_FIXED + 2, "\033[2J", 4);
    begin();
    block(SG_TRACE_BLOCK_HEADER, h, SG_TRACE_HEADER_FIXED + 12);
    refused(SG_TRACE_INVALID, "texts");
    h[SG_TRACE_HEADER_FIXED] = 0;
    begin();
    block(SG_TRACE_BLOCK_HEADER, h, SG_TRACE_HEADER_FIXED + 7);
    refused(SG_TRACE_INVALID, "texts");
}

static const struct t_case cases[] = {
    { "headers", headers },           { "contents", contents }, { "records", records },
    { "blocks out of order", order }, { "texts", texts },
};

T_MAIN(cases)
