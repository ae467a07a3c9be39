/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a trace, block by block, to a sink.
 *
 * The order of calls: new; pages of extents whose content the trace has; start; names and events;
 * end; free.  The writer has a buffer for one block, one for names, and the names; nothing else
 * grows.  It has no thread: the owner serialises the calls, and a sink that is slow holds the
 * caller back.
 *
 * Nothing is left out in silence.  If the sink refuses a block, the writer keeps the error, and
 * this and every later call returns false.  What the sink took before is a readable beginning.
 */
#ifndef SG_TRACE_WRITER_H
#define SG_TRACE_WRITER_H

#include "trace/format.h"

struct sg_trace_writer;

/* Takes all of it, or returns false.  Must not call the writer. */
typedef bool (*sg_trace_sink)(void *opaque, const uint8_t *octets, size_t len);

/* Never NULL.  The header must be right (sg_trace_header_wrong()); it is copied. */
struct sg_trace_writer *sg_trace_writer_new(const struct sg_trace_header *header,
                                            sg_trace_sink sink, void *opaque);
void sg_trace_writer_free(struct sg_trace_writer *w);

/*
 * A page of an extent that has content; extents and pages in ascending order, pages of zeros may
 * be left out.
 */
bool sg_trace_writer_page(struct sg_trace_writer *w, unsigned extent, uint64_t number,
                          const uint8_t page[SG_TRACE_PAGE]);
/* All of an extent's content from memory. */
bool sg_trace_writer_content(struct sg_trace_writer *w, unsigned extent, const uint8_t *memory);
/*
 * Events follow.  hash: of each extent at the start; used of those without content only, may be
 * NULL if there are none.
 */
bool sg_trace_writer_start(struct sg_trace_writer *w, const uint8_t (*hash)[SG_TRACE_HASH]);

/*
 * The number of a name, the same for the same text; at most SG_TRACE_NAME_MAX octets of text.  0:
 * the text is empty or NULL, or the writer failed.
 */
uint32_t sg_trace_writer_name(struct sg_trace_writer *w, const char *text);
/*
 * Appends an event, which must be right (sg_trace_event_wrong()).  An OTHER_WRITE of more than
 * SG_TRACE_DATA_MAX octets becomes several.  A tick that goes back counts as one that stays.
 */
bool sg_trace_write(struct sg_trace_writer *w, const struct sg_trace_event *e);
/*
 * A SG_TRACE_STORE with these fields, in fewer instructions: it is the event that a recording has
 * most of.
 */
struct sg_trace_store {
    uint64_t addr, at, root;
    const uint8_t *data; /* len octets */
    uint16_t unit;
    uint8_t len, arg;
};
bool sg_trace_write_store(struct sg_trace_writer *w, const struct sg_trace_store *s);
/* Gives the sink what is in the buffer, as a short block. */
bool sg_trace_writer_flush(struct sg_trace_writer *w);
/* The orderly end; hash: of each extent's media now, or NULL: not known. */
bool sg_trace_writer_end(struct sg_trace_writer *w, const uint8_t (*hash)[SG_TRACE_HASH]);

/* NULL, or why nothing more is written, as a static text. */
const char *sg_trace_writer_error(const struct sg_trace_writer *w);
/* Events appended so far, and octets that the sink took. */
uint64_t sg_trace_writer_events(const struct sg_trace_writer *w);
uint64_t sg_trace_writer_octets(const struct sg_trace_writer *w);

#endif
