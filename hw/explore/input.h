/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The traces of a run as files.
 *
 * A trace is read several times, each time from its beginning: sg_explore_open(), then the events.
 */
#ifndef SG_EXPLORE_INPUT_H
#define SG_EXPLORE_INPUT_H

#include <glib.h>
#include <stdio.h>

#include "trace/reader.h"

struct sg_explore_trace {
    const char *path;
    FILE *file;
    struct sg_trace_reader *reader;
    uint64_t octets, read; /* of the file; read so far */
    char *machine;
};

/* False: a message is on stderr. */
bool sg_explore_open(struct sg_explore_trace *t, sg_trace_page page, void *opaque);
void sg_explore_close(struct sg_explore_trace *t);
void sg_explore_trace_free(struct sg_explore_trace *t);
/* After the last event: was it the end, or the end of a readable beginning?  False: as above. */
bool sg_explore_ended(const struct sg_explore_trace *t);
/* Are these traces of different machines of one run?  False: as above. */
bool sg_explore_one_run(const struct sg_explore_trace *t, unsigned count);
/*
 * The machine of that name, or, without a name, the only one with persistent memory; or -1, as
 * above.
 */
int sg_explore_target(const struct sg_explore_trace *t, unsigned count, const char *name);

#endif
