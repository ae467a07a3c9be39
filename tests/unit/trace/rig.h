/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traces in memory: a sink that takes octets, or no more after some; readers of them; events that
 * are made from seeds.
 */
#ifndef SG_TESTS_TRACE_RIG_H
#define SG_TESTS_TRACE_RIG_H

#include <glib.h>

#include "tap.h"
#include "trace/reader.h"
#include "trace/writer.h"

struct tr_file {
    GByteArray *octets;
    unsigned calls;
    unsigned refuse_from; /* this call and all later ones are refused; 0: none */
};

void tr_file_init(struct tr_file *f);
void tr_file_free(struct tr_file *f);
bool tr_file_sink(void *opaque, const uint8_t *octets, size_t len);

/* A header with two extents, the first of which has content, and texts. */
enum { TR_EXTENTS = 2, TR_SIZE = 5 * SG_TRACE_PAGE - 64 };
void tr_header(struct sg_trace_header *h);
/* A writer that is ready for events; of a machine without extents if 'plain'. */
struct sg_trace_writer *tr_begin(struct tr_file *f, bool plain);
/* The orderly end; frees the writer. */
void tr_end(struct sg_trace_writer *w);

/* A reader of octets that must be opened already, or whose opening failed as it should. */
struct tr_view {
    struct sg_trace_octets source;
    struct sg_trace_reader *r;
    enum sg_trace_status opened;
};
void tr_open(struct tr_view *v, const uint8_t *octets, size_t len);
void tr_close(struct tr_view *v);

/* A right event of this kind; its payload is in 'data'. */
void tr_random_event(uint64_t *random, unsigned kind, struct sg_trace_event *e,
                     uint8_t data[SG_TRACE_DATA_MAX]);
/* Fields and payload; not the number. */
bool tr_same(const struct sg_trace_event *a, const struct sg_trace_event *b);
/* Writes so many random events of all kinds, or fewer if the writer fails; the time ascends. */
void tr_write_random(struct sg_trace_writer *w, uint64_t seed, unsigned count);
/* Reads all events and expects those of tr_write_random(), count at most; returns their number. */
unsigned tr_expect_random(struct tr_view *v, uint64_t seed, unsigned count);

#endif
