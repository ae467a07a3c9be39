/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The octets of a trace that writer and reader share; docs/trace-format.md describes them.
 */
#ifndef SG_TRACE_FORMAT_H
#define SG_TRACE_FORMAT_H

#include "base/crc32c.h"
#include "base/hash.h"
#include "trace/event.h"

enum { SG_TRACE_VERSION = 1 };

#define SG_TRACE_MAGIC "SGTRAC\r\n"
#define SG_TRACE_BLOCK_MARK 0x42544753u /* the octets "SGTB" */

enum sg_trace_block {
    SG_TRACE_BLOCK_HEADER = 1,
    SG_TRACE_BLOCK_CONTENT,
    SG_TRACE_BLOCK_START,
    SG_TRACE_BLOCK_NAMES,
    SG_TRACE_BLOCK_EVENTS,
    SG_TRACE_BLOCK_END,
    SG_TRACE_BLOCKS,
};

enum sg_trace_layout {
    SG_TRACE_OPENING = 16,       /* octets before the first block: magic, version, 0 */
    SG_TRACE_BLOCK_HEAD = 16,    /* mark, kind, 0, octets that follow, CRC32c */
    SG_TRACE_BLOCK_CRC = 12,     /* offset of the CRC32c in the head */
    SG_TRACE_BLOCK_FULL = 65536, /* octets after the head that a writer tries not to exceed, */
    SG_TRACE_BLOCK_MAX = 66048,  /* and a maximum, for an event of the longest payload */
    SG_TRACE_EVENTS_HEAD = 20,   /* of a block of events: number of the first, time, count */
    SG_TRACE_BLOCK_EVENTS_MAX = 1 << 20, /* events in a block */
    SG_TRACE_PAGE = 4096,
    SG_TRACE_CONTENT_HEAD = 8, /* of a page: extent, octets, number */
    SG_TRACE_EXTENTS = 16,
    SG_TRACE_TEXT_MAX = 4096, /* octets of a text of the header */
    SG_TRACE_NAME_MAX = 4096,
    SG_TRACE_NAMES_MAX = 65535,
    SG_TRACE_NAMES_OCTETS = 16 << 20, /* of all names */
    SG_TRACE_EXTENT_NAME_MAX = 63,
    SG_TRACE_HASH = 32,
};

#define SG_TRACE_EXTENT_SIZE_MAX (1ull << 40)

/* Header octets: two ids, count of extents, 0; then extents, then texts. */
enum { SG_TRACE_ID = 16, SG_TRACE_HEADER_FIXED = 2 * SG_TRACE_ID + 8, SG_TRACE_EXTENT_FIXED = 20 };

/*
 * The first octet of a record: kind, and in its two high bits which fields differ from the
 * prediction.  The masks that occur most often are no octet of their own.
 */
enum sg_trace_tag {
    SG_TRACE_TAG_KIND = 0x3f,
    SG_TRACE_TAG_FORM = 6,   /* shift of the form: */
    SG_TRACE_FORM_MASK = 0,  /* the mask follows */
    SG_TRACE_FORM_NONE = 1,  /* no field differs */
    SG_TRACE_FORM_ONE = 2,   /* the row's second field does */
    SG_TRACE_FORM_TWO = 3,   /* its second and third field do */
    SG_TRACE_REPEAT = 0x3f,  /* as a kind: the store before, again and again; two flags: */
    SG_TRACE_NO_STEP = 0x80, /* each address is behind the store before: no step follows */
    SG_TRACE_SAME_DATA = 0x40,
    SG_TRACE_REPEAT_MAX = 65535,
};

/* The masks of the forms; 0 for FORM_MASK as well. */
static const uint8_t sg_trace_form_mask[] = { 0, 0, 0x2, 0x6 };

/* ---- Header ---- */

enum sg_trace_text {
    SG_TRACE_MACHINE,  /* name of the VM */
    SG_TRACE_PLATFORM, /* what the guest was told, lines NAME=VALUE */
    SG_TRACE_CONFIG,   /* the domain's configuration, likewise; empty: no domain */
    SG_TRACE_VERSIONS, /* of programs, likewise */
    SG_TRACE_TEXTS,
};

struct sg_trace_extent {
    uint64_t base, size; /* as struct sg_persist_extent: multiples of 64 */
    bool has_content;    /* the trace has its content at the start; else the media copy is needed */
    char name[SG_TRACE_EXTENT_NAME_MAX + 1];
};

struct sg_trace_header {
    uint8_t run[SG_TRACE_ID];     /* the same in all traces of a run */
    uint8_t machine[SG_TRACE_ID]; /* this VM's start */
    unsigned extent_count;
    struct sg_trace_extent extent[SG_TRACE_EXTENTS];
    const char *text[SG_TRACE_TEXTS]; /* NULL: empty.  From a reader: its own */
};

/* NULL, or what is wrong, as a static text. */
const char *sg_trace_header_wrong(const struct sg_trace_header *h);
/* Names and texts have printable octets and line ends only, because messages quote them. */
bool sg_trace_is_text(const uint8_t *p, size_t len);

/* ---- Content of memories ---- */

/* SHA-256 of all pages that are not zero, each behind its number, and of the size. */
struct sg_trace_hasher {
    struct sg_hasher sha;
};

void sg_trace_hasher_init(struct sg_trace_hasher *h);
/* A page of ascending number; one of zeros has no effect. */
void sg_trace_hasher_page(struct sg_trace_hasher *h, uint64_t number,
                          const uint8_t page[SG_TRACE_PAGE]);
void sg_trace_hasher_end(struct sg_trace_hasher *h, uint64_t size, uint8_t out[SG_TRACE_HASH]);
/* All of it for a memory; a last page that is not whole counts as filled up with zeros. */
void sg_trace_hash_memory(const uint8_t *memory, uint64_t size, uint8_t out[SG_TRACE_HASH]);

bool sg_trace_page_is_zero(const uint8_t page[SG_TRACE_PAGE]);
/* Packs a page; the result has at most SG_TRACE_PAGE octets, then it is the page itself. */
size_t sg_trace_pack_page(uint8_t out[SG_TRACE_PAGE], const uint8_t page[SG_TRACE_PAGE]);
/* False: not what a writer packs. */
bool sg_trace_unpack_page(uint8_t page[SG_TRACE_PAGE], const uint8_t *p, size_t len);

static inline uint64_t sg_trace_pages(uint64_t size)
{
    return (size + SG_TRACE_PAGE - 1) / SG_TRACE_PAGE;
}

/* ---- Numbers ---- */

enum { SG_TRACE_VARINT_MAX = 10 };

/* Seven bits an octet, the low ones first; bit 7: more follow. */
static inline uint8_t *sg_trace_put_varint(uint8_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) {
        *p++ = (uint8_t)(v | 0x80);
    }
    *p++ = (uint8_t)v;
    return p;
}

/* NULL: no whole number of 64 bits before 'end'. */
static inline const uint8_t *sg_trace_get_varint(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    unsigned shift = 0;

    if (p < end && *p < 0x80) {
        *v = *p;
        return p + 1;
    }
    for (*v = 0; p < end && shift < 64; shift += 7) {
        *v |= (uint64_t)(*p & 0x7f) << shift;
        if (!(*p++ & 0x80)) {
            return shift == 63 && p[-1] > 1 ? NULL : p;
        }
    }
    return NULL;
}

/* A difference modulo 2^64 as a number that is small when the difference is near 0. */
static inline uint64_t sg_trace_zigzag(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t sg_trace_unzigzag(uint64_t v)
{
    return v >> 1 ^ (0 - (v & 1));
}

/* ---- Prediction ---- */

/*
 * What the next event's fields are expected to be: those of the last event of its kind and unit
 * (of units that differ by a multiple of UNITS: of the last of them), addr behind it.  Begins with
 * zeros in each block, so that a block can be read without the blocks before it.
 */
enum { SG_TRACE_UNITS = 8 };

struct sg_trace_prediction {
    uint64_t unit[SG_TRACE_KINDS];
    uint64_t field[SG_TRACE_KINDS][SG_TRACE_UNITS][SG_TRACE_FIELDS];
};

/* The row after an event that had these fields. */
static inline void sg_trace_predict_addr(const struct sg_trace_row *row, uint64_t *expected)
{
    expected[SG_TRACE_ADDR] += row->step ? row->step : expected[SG_TRACE_LEN];
}

#endif
