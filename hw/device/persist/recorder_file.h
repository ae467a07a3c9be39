/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder's file: a queue of octets, and a thread that writes them.
 *
 * Whoever appends waits while the queue is full, so nothing is dropped and memory is bounded.
 * Blocks of a trace are appended as a whole and written in order: whatever ends this process leaves
 * a beginning of whole blocks, and at most one that is not.
 */
#ifndef SG_DEVICE_RECORDER_FILE_H
#define SG_DEVICE_RECORDER_FILE_H

enum { STAGHORN_FILE_QUEUE = 16 << 20 }; /* octets that may wait */

typedef struct StaghornTraceFile StaghornTraceFile;

/* A new file, or a character device; NULL: the error says why. */
StaghornTraceFile *staghorn_trace_file_new(const char *path, Error **errp);
/* A sink of a trace (trace/writer.h).  False: an earlier block was not written. */
bool staghorn_trace_file_append(void *file, const uint8_t *octets, size_t len);
/* Waits until all is written, or an error.  NULL, or the error: a text of the file's. */
const char *staghorn_trace_file_wait(StaghornTraceFile *file);
/* The error so far, or NULL. */
const char *staghorn_trace_file_error(StaghornTraceFile *file);
/*
 * Waits, closes the file and frees; keep false: deletes what it has made.  NULL, or the error as a
 * text that the caller frees.
 */
char *staghorn_trace_file_close(StaghornTraceFile *file, bool keep);

#endif
