/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings of a machine: QMP's commands, and traces that are read and replayed.
 */
#ifndef SG_TESTS_TRACE_RIG_H
#define SG_TESTS_TRACE_RIG_H

#include "crash/replay.h"
#include "qtest_client.h"

#define TRACE_RUN "00112233445566778899aabbccddeeff"

/* A trace that was read, and what it left in a fresh domain. */
struct trace_seen {
    enum sg_trace_status status;
    uint64_t events, kind[SG_TRACE_KINDS];
    unsigned extents;
    uint64_t base, size;     /* of the first one */
    uint8_t *media;          /* of the first one, after the last event */
    bool end_hash_fits;      /* this is what the end says */
    uint64_t frames[2];      /* received, sent */
    char *platform, *config; /* the header's texts */
};

/* A path for a trace; nothing is there. */
char *trace_path(void);
/* QMP's answer, which the caller frees. */
char *trace_try_start(struct qtest *q, const char *path, const char *run, const char *machine);
void trace_start(struct qtest *q, const char *path);
char *trace_try_stop(struct qtest *q);
/* Stops; the recording is complete. */
void trace_stop(struct qtest *q);
char *trace_query(struct qtest *q);

/* Reads and replays; fails if an event does not replay. */
void trace_read(struct trace_seen *seen, const char *path);
void trace_seen_free(struct trace_seen *seen);

#endif
