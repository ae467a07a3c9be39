/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reader's state, for reader.c (blocks and what is in them) and decode.c (events).
 */
#ifndef SG_TRACE_READER_IMPL_H
#define SG_TRACE_READER_IMPL_H

#include <glib.h>

#include "trace/reader.h"

/* What may follow. */
enum sg_trace_place {
    SG_TRACE_AT_HEADER,
    SG_TRACE_AT_CONTENT,
    SG_TRACE_AT_EVENTS,
    SG_TRACE_AT_END,
};

struct sg_trace_reader {
    sg_trace_source source;
    void *opaque;
    enum sg_trace_status status;
    char message[240];
    enum sg_trace_place place;
    uint64_t offset; /* in the file, behind the last block */
    uint64_t block_offset;
    uint32_t crc;

    sg_trace_page page;
    void *page_opaque;
    struct sg_trace_header header;
    char *text[SG_TRACE_TEXTS];
    struct sg_trace_hasher hasher[SG_TRACE_EXTENTS];
    uint64_t content_next;
    unsigned content_extent;
    uint8_t start_hash[SG_TRACE_EXTENTS][SG_TRACE_HASH];
    uint8_t end_hash[SG_TRACE_EXTENTS][SG_TRACE_HASH];
    bool has_end_hash;
    GPtrArray *names;
    size_t name_octets;

    /* The block of events that is being read. */
    const uint8_t *p, *end;
    uint32_t left; /* events in it */
    uint32_t repetitions;
    uint64_t step;
    bool same_data;
    bool after_store;
    uint64_t now_ns;
    struct sg_trace_event event; /* the last one; number 0: none yet */
    struct sg_trace_prediction expected;

    /* A block behind its head; just as long as it is, so that a sanitizer sees what is beyond. */
    uint8_t *block;
};

/* Sets the status and the message, and returns false. */
bool sg_trace_fail(struct sg_trace_reader *r, enum sg_trace_status status, const char *what);
/* A block of events begins. */
bool sg_trace_begin_events(struct sg_trace_reader *r, const uint8_t *p, size_t len);
/* The next event of the block; false: a status is set. */
bool sg_trace_decode(struct sg_trace_reader *r);

#endif
