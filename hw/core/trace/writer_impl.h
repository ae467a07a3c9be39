/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The writer's state, for writer.c (blocks, header, content, names, end) and encode.c (events).
 */
#ifndef SG_TRACE_WRITER_IMPL_H
#define SG_TRACE_WRITER_IMPL_H

#include <glib.h>

#include "trace/writer.h"

/* The store that ended the block so far, which the next one may repeat. */
struct sg_trace_run {
    bool open;     /* a store, or its repetition, is the last record */
    bool same;     /* of a repetition: its payload is not in it */
    size_t count;  /* offset of its count; 0: the record is a store */
    uint64_t step; /* from address to address */
    size_t data;   /* offset of the last payload */
    struct sg_trace_store last;
};

enum sg_trace_phase { SG_TRACE_CONTENT, SG_TRACE_EVENTS, SG_TRACE_ENDED };

struct sg_trace_writer {
    sg_trace_sink sink;
    void *opaque;
    const char *error;
    enum sg_trace_phase phase;
    uint32_t crc; /* of the last block */
    uint64_t octets;

    unsigned extent_count;
    uint64_t extent_pages[SG_TRACE_EXTENTS], extent_size[SG_TRACE_EXTENTS];
    bool has_content[SG_TRACE_EXTENTS];
    struct sg_trace_hasher hasher[SG_TRACE_EXTENTS];
    unsigned content_extent;
    uint64_t content_next; /* page */

    /* The block that grows: room for its head, then the octets used. */
    uint8_t block[SG_TRACE_BLOCK_HEAD + SG_TRACE_BLOCK_MAX];
    size_t used;
    uint8_t names[SG_TRACE_BLOCK_HEAD + SG_TRACE_BLOCK_FULL];
    size_t names_used;
    GHashTable *name_numbers;
    uint32_t name_count;
    size_t name_octets;

    uint64_t events, now_ns;
    uint32_t block_events;
    struct sg_trace_run run;
    struct sg_trace_prediction expected;
};

static inline uint8_t *sg_trace_block_at(struct sg_trace_writer *w, size_t offset)
{
    return w->block + SG_TRACE_BLOCK_HEAD + offset;
}

/* Gives the sink a block whose octets are behind room for its head. */
bool sg_trace_writer_emit(struct sg_trace_writer *w, enum sg_trace_block kind, uint8_t *block,
                          size_t len);
/* Gives the sink the names and events in the buffers. */
bool sg_trace_writer_close_events(struct sg_trace_writer *w);

#endif
