/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings of a machine: QMP's commands, and traces that are read and replayed.
 */
#ifndef SG_TESTS_TRACE_RIG_H
#define SG_TESTS_TRACE_RIG_H

#include "qtest_client.h"
#include "trace_seen.h"

#define TRACE_RUN "00112233445566778899aabbccddeeff"

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

#endif
