/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The timeline of a bug: what all machines did, from the request whose data are lost to the event
 * that makes them certain, or to the power failure, in one order.
 *
 * Input are the stories of the bugs (story.h), and once more the events of all machines in the
 * order of order.h.  A timeline has
 *
 *   of the target         the events of the story; what else concerns the message or its connection
 *   of the requester      the message's request, Flushes behind it, completions
 *   of whom it was        the acknowledgement
 *   promised to
 *   of all                marks
 *
 * The order of two events of different machines is known only where a message connects them; the
 * others are in one of the orders that are possible.
 *
 * A message is carried by frames.  A timeline has the last frames that the machine received before
 * the lost store, and before the acknowledgement: the frame that completed the message is one of
 * them, mostly the last one of its connection.
 *
 * Memory: SG_CRASH_TIMELINE_EVENTS, and two lists of frames, for each of SG_CRASH_STORIES bugs.
 */
#ifndef SG_CRASH_TIMELINE_H
#define SG_CRASH_TIMELINE_H

#include "crash/story.h"

enum {
    SG_CRASH_TIMELINE_EVENTS = 160, /* more are counted; those of the story are never left out */
    SG_CRASH_TIMELINE_FRAMES = 16,
};

struct sg_crash_timeline_event {
    uint64_t event;
    uint64_t ordinal; /* of the message that it concerns, if the connection is the store's */
    const char *what; /* static text */
    uint16_t cause;   /* its message comes from that event of another machine: index + 1, or 0 */
    uint8_t machine;
    uint8_t kind;  /* enum sg_trace_kind */
    uint8_t stage; /* of the store behind it, as in a story; SG_CRASH_NO_STAGE: not stored yet */
};

struct sg_crash_frame {
    uint64_t event, len;
    uint32_t crc; /* CRC32c */
};

/* What a machine received before an event. */
struct sg_crash_carriers {
    bool known; /* the connection */
    uint8_t machine;
    uint8_t ends[SG_CRASH_ENDS]; /* of the connection, as this machine sees them */
    unsigned count;
    struct sg_crash_frame frame[SG_CRASH_TIMELINE_FRAMES]; /* the last one at the end */
};

struct sg_crash_timeline {
    GArray *events; /* struct sg_crash_timeline_event */
    uint64_t omitted;
    struct sg_crash_carriers store, acknowledgement; /* known: false if there is none */
};

struct sg_crash_timelines;

/* bugs, promises and teller, which has told, outlive it.  Never NULL. */
struct sg_crash_timelines *sg_crash_timelines_new(unsigned machines, unsigned target,
                                                  const GArray *bugs,
                                                  const struct sg_crash_promises *promises,
                                                  const struct sg_crash_teller *teller);
void sg_crash_timelines_free(struct sg_crash_timelines *x); /* NULL is allowed */
/* The next event in the order of all machines.  Returns whether a timeline has it. */
bool sg_crash_timelines_event(struct sg_crash_timelines *x, unsigned machine,
                              const struct sg_trace_event *e);
/* Of a bug by its number; NULL: it has none. */
const struct sg_crash_timeline *sg_crash_timeline(const struct sg_crash_timelines *x, unsigned bug);

#endif
