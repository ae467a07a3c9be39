/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What happened to the store that a bug may lose: from the store to the acknowledgement, and to the
 * event that makes it certain.  Of a store that a crash image lost: to the power failure.
 *
 * The target's trace is replayed once more, on those platforms on which the bugs are told (the
 * least one of each).  An event is part of a story if it concerns the line, if it is a Flush, or if
 * the stage changes with it.
 *
 * Memory: two memories of each platform in use, as for the explorer; SG_CRASH_STORY_EVENTS for
 * each of at most SG_CRASH_STORIES bugs; one octet for each event and platform.
 */
#ifndef SG_CRASH_STORY_H
#define SG_CRASH_STORY_H

#include "crash/bugs.h"

enum {
    SG_CRASH_STORIES = 64,              /* of the first bugs */
    SG_CRASH_STORY_EVENTS = 64,         /* of a story, with one more; others are counted */
    SG_CRASH_CERTAIN = SG_CRASH_STAGES, /* instead of a stage */
    SG_CRASH_ENDS = 36,                 /* octets of a connection's addresses and ports */
};

struct sg_crash_story_event {
    uint64_t event;
    uint8_t stage;    /* behind it: enum sg_persist_stage, or SG_CRASH_CERTAIN */
    const char *what; /* static text: what it means for the store */
};

struct sg_crash_story {
    GArray *events; /* struct sg_crash_story_event */
    uint64_t omitted;
    uint64_t begins, last; /* events: the store, and the last that matters */
    /* A store of an adapter: of which message. */
    bool by_adapter;
    uint64_t unit, qpn, ordinal;
    bool connected;              /* the beginning of its connection is in the trace */
    uint8_t ends[SG_CRASH_ENDS]; /* then: addresses and ports, as of the event `connected` */
};

struct sg_crash_teller;

/* NULL: *wrong says why.  bugs: from sg_crash_bugs(); both outlive the teller. */
struct sg_crash_teller *sg_crash_teller_new(const struct sg_crash_exploration *what,
                                            const GArray *bugs, const char **wrong);
void sg_crash_teller_free(struct sg_crash_teller *x);
/* Are stories told on this platform?  Only then it needs memories. */
bool sg_crash_teller_needs(const struct sg_crash_teller *x, unsigned platform);
/* As for the explorer. */
void sg_crash_teller_add(struct sg_crash_teller *x, unsigned platform, uint8_t *visible,
                         uint8_t *media);
/* True: no story goes on behind this event, or it is one that its machine cannot have. */
bool sg_crash_teller_event(struct sg_crash_teller *x, const struct sg_trace_event *e,
                           const char *name);
/* NULL, or what is wrong with the last event; none is after an explorer has had it. */
const char *sg_crash_teller_wrong(const struct sg_crash_teller *x);
/*
 * The story of a bug by its number; NULL: it has none.  On each platform one past is told, that of
 * the first bug.
 */
const struct sg_crash_story *sg_crash_teller_story(const struct sg_crash_teller *x, unsigned bug);

#endif
