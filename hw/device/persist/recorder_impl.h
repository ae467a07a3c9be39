/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the recorder's files share.
 */
#ifndef SG_DEVICE_RECORDER_IMPL_H
#define SG_DEVICE_RECORDER_IMPL_H

#include "domain_object.h"
#include "recorder.h"
#include "recorder_file.h"

/* From the first event to the last one.  A writer that failed takes events and drops them. */
void staghorn_recorder_open(struct sg_trace_writer *writer);
void staghorn_recorder_close(void);
/* What is in the writer's buffer goes to the file. */
void staghorn_recorder_flush(void);
/* NULL, or why the writer takes no more; numbers of what was recorded. */
const char *staghorn_recorder_count(uint64_t *events, uint64_t *octets);

/* Begin and end of the loads' filter; vCPUs are stopped.  d NULL: no persistent memory. */
void staghorn_loads_begin(const StaghornDomain *d);
void staghorn_loads_end(void);

/* All adapters begin or end to report; their connections are recorded at the beginning. */
void staghorn_taps_switch(bool on);

/* recorder_content.c: blocks of the trace about the domain's media */
void staghorn_content_extents(const StaghornDomain *d, struct sg_trace_header *header);
/* False: the writer failed. */
bool staghorn_content_write(const StaghornDomain *d, struct sg_trace_writer *writer);
void staghorn_content_hash(const StaghornDomain *d, uint8_t (*hash)[SG_TRACE_HASH]);
/* Faults and bad lines at the start, as events. */
void staghorn_content_faults(StaghornDomain *d);

#endif
