/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a trace, which anybody may have written, from a source of octets.
 *
 * The order of calls: new; open, which delivers the content at the start; next for each event,
 * until it returns NULL; free.  The reader has a buffer for one block and the names, at most
 * SG_TRACE_NAMES_OCTETS of text in SG_TRACE_NAMES_MAX names; nothing else grows.
 *
 * A block is examined as a whole before its first event is delivered, apart from its records, each
 * of which is examined before it is delivered.  The status stays what it is when it is no longer
 * SG_TRACE_GOOD.  Only SG_TRACE_END says that the trace is complete: verdicts about anything else
 * concern a beginning.
 */
#ifndef SG_TRACE_READER_H
#define SG_TRACE_READER_H

#include "trace/format.h"

enum sg_trace_status {
    SG_TRACE_GOOD,
    SG_TRACE_END,       /* the orderly end */
    SG_TRACE_EMPTY,     /* no octet at all */
    SG_TRACE_CUT_SHORT, /* all whole blocks were good, and none of them is the end */
    SG_TRACE_NO_TRACE,  /* something else than a trace */
    SG_TRACE_OTHER_VERSION,
    SG_TRACE_WRONG_BLOCK, /* its checksum, kind or place */
    SG_TRACE_INVALID,     /* its checksum is right, but it says what no writer writes */
    SG_TRACE_OTHER_BASE,  /* a copy of the media is not what the trace begins with */
    SG_TRACE_UNREADABLE,  /* the source failed */
    SG_TRACE_STATUSES,
};

struct sg_trace_reader;

/* Fills buf; fewer octets than len: nothing follows.  Returns their number, or -1: it failed. */
typedef int64_t (*sg_trace_source)(void *opaque, uint8_t *buf, size_t len);
/* A page of an extent that has content, and is not zero. */
typedef void (*sg_trace_page)(void *opaque, unsigned extent, uint64_t number,
                              const uint8_t page[SG_TRACE_PAGE]);

/* A source in memory: opaque is a struct sg_trace_octets, whose fields advance. */
struct sg_trace_octets {
    const uint8_t *p;
    size_t len;
};
int64_t sg_trace_read_octets(void *opaque, uint8_t *buf, size_t len);

/* Never NULL. */
struct sg_trace_reader *sg_trace_reader_new(sg_trace_source source, void *opaque);
void sg_trace_reader_free(struct sg_trace_reader *r);

/*
 * Reads up to the first event.  page may be NULL; pages come in ascending order, and count only if
 * the result is SG_TRACE_GOOD: the hashes of the contents are compared at their end.
 */
enum sg_trace_status sg_trace_open(struct sg_trace_reader *r, sg_trace_page page, void *opaque);
/* The next event, valid until the next call; NULL: the status says why there is none. */
const struct sg_trace_event *sg_trace_next(struct sg_trace_reader *r);

enum sg_trace_status sg_trace_status(const struct sg_trace_reader *r);
const char *sg_trace_status_name(enum sg_trace_status status); /* "cut-short" */
/* One sentence for people about the status, with the offset in the file and the events so far. */
const char *sg_trace_message(const struct sg_trace_reader *r);

/* After sg_trace_open(): owned by the reader. */
const struct sg_trace_header *sg_trace_header(const struct sg_trace_reader *r);
const uint8_t *sg_trace_start_hash(const struct sg_trace_reader *r, unsigned extent);
/*
 * Is this memory what the extent had at the start?  For extents without content, whose media copy
 * comes from elsewhere.  False: the status is SG_TRACE_OTHER_BASE.
 */
bool sg_trace_check_base(struct sg_trace_reader *r, unsigned extent, const uint8_t *memory);
/* After SG_TRACE_END: the extent's media then; NULL: not known. */
const uint8_t *sg_trace_end_hash(const struct sg_trace_reader *r, unsigned extent);
/* The name of this number; NULL: there is none. */
const char *sg_trace_name(const struct sg_trace_reader *r, uint64_t number);

#endif
