/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events of a trace as inputs of a persistence domain.
 *
 * With the settings of the recorded domain, and memories that have the content at the start, the
 * domain does what the recorded one did: its media are the same after each cut and at the end.
 * Events that are no inputs (work requests, frames, marks...) have no effect.
 *
 * A trace comes from anybody: an event that a machine like this cannot have is refused with a text.
 * Memory: what the domain takes, and a Flush under way for each connection, at most FLUSHES.
 */
#ifndef SG_CRASH_REPLAY_H
#define SG_CRASH_REPLAY_H

#include "persist/certain.h"
#include "trace/reader.h"

struct sg_crash_replay;

enum { SG_CRASH_FLUSHES = 65536 };

/*
 * The header's machine: a domain with its settings, without extents.  NULL: *wrong says why, a
 * static text.
 */
struct sg_crash_replay *sg_crash_replay_new(const struct sg_trace_header *header,
                                            const char **wrong);
/*
 * The same run on another platform: its configuration, and its limits (NULL: the defaults), not the
 * header's.  The run keeps what no platform has: cpu_tracking, untracked, untracked_flush_max,
 * poison_on_mismatch, of the header and of later changes.  Time does not pass, so nothing moves on
 * because it is due, and a Flush is executed when it begins.  What was read in the recorded run, by
 * an adapter or a Verify, was there: it arrives before (sg_persist_cpu_load()).  Stores and writes
 * of other devices are announced, whether or not they were.  The recording was made while placement
 * was eager; the replay ends with an error where the machine lost its power.
 */
struct sg_crash_replay *sg_crash_replay_new_for(const struct sg_trace_header *header,
                                                const struct sg_persist_config *config,
                                                const struct sg_persist_limits *limits,
                                                const char **wrong);
/*
 * The same replay once more, at the same event: its domain is a clone (sg_persist_clone()) with
 * these memories, by number of extent.
 */
struct sg_crash_replay *sg_crash_replay_clone(const struct sg_crash_replay *x,
                                              const struct sg_persist_memory *memory);
/* Have both the same Flushes under way, from the same instants on? */
bool sg_crash_replay_same_flushes(const struct sg_crash_replay *x, const struct sg_crash_replay *y,
                                  sg_persist_number *number, void *of_x, void *of_y);
/* Frees the domain, too; NULL is allowed. */
void sg_crash_replay_free(struct sg_crash_replay *x);
/*
 * Adds the header's next extent.  Both memories belong to the caller, have the content at the
 * start, and are aligned to 8.
 */
void sg_crash_replay_add(struct sg_crash_replay *x, uint8_t *visible, uint8_t *media);

/*
 * One event; name is that of its number (sg_trace_name()), or NULL.  A restart makes visible memory
 * equal to the media.  NULL, or a static text that says what is wrong.
 */
const char *sg_crash_replay_event(struct sg_crash_replay *x, const struct sg_trace_event *e,
                                  const char *name);

/*
 * About how many lines of several segments would the domain ask before what the event proves
 * arrives (sg_persist_stops_at_load() and others)?  Not of stores.
 */
uint32_t sg_crash_replay_stops(const struct sg_crash_replay *x, const struct sg_trace_event *e);
/* The event read memory, and saw what memory does not have (sg_persist_contradicts()). */
bool sg_crash_replay_contradicted(const struct sg_crash_replay *x, const struct sg_trace_event *e);

struct sg_persist *sg_crash_replay_domain(struct sg_crash_replay *x);

#endif
