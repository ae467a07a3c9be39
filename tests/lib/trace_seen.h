/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A trace that is read and replayed: what it has, and whether it leaves what the machine left.
 */
#ifndef SG_TESTS_TRACE_SEEN_H
#define SG_TESTS_TRACE_SEEN_H

#include "crash/replay.h"

struct trace_seen {
    enum sg_trace_status status;
    char *message; /* about the status */
    uint64_t events, kind[SG_TRACE_KINDS];
    unsigned extents;
    uint64_t base[SG_PERSIST_EXTENTS], size[SG_PERSIST_EXTENTS];
    uint8_t *media[SG_PERSIST_EXTENTS];           /* after the last event */
    bool end_hash_fits;                           /* they are what the end says */
    char *platform, *config;                      /* the header's texts */
    void (*each)(const struct sg_trace_event *e); /* the caller's; NULL, or called for each event */
};

/*
 * Fills in all but 'each'.  NULL, or why the file cannot be opened or replayed, to be freed; seen
 * has to be freed in any case.
 */
char *trace_seen_read(struct trace_seen *seen, const char *path);
void trace_seen_free(struct trace_seen *seen);

#endif
