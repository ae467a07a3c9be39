/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replays the trace of one machine on several platforms at once, and asks at each promise whether
 * the platform keeps it.
 *
 * A platform is a domain of its own (platform.h), with memories of its own.  Behind the event from
 * which a promise binds, each octet of its ranges has to be certain, as it was placed or as it was
 * overwritten since.  The domain knows that without looking at a single image.  An octet that is
 * not certain is a *breach*: breaches of one kind of promise, by one issuer, at one stage, have one
 * cause, and are one record with a count and the first example.
 *
 * A platform on which the run would have gone otherwise is not judged from there on: a Verify that
 * matched would not have matched, or the other way round.  Nor is anything judged behind a power
 * cut in the trace.
 *
 * Data may have arrived at several instants: then a platform has several pasts (past.h).  A promise
 * is kept if it is in each of them; images are those of all.
 *
 * A domain's limits (sg_persist_limits_exact()) may merge stores of a line.  That is counted.  A
 * breach that rests on a merged store, because the promise is about some of those that were merged
 * and not about others, is none: the promise counts as not judged.  All other breaches stay true,
 * for merging adds no outcome.
 *
 * Memory: two memories of each past of a platform, which the owner gives; what the domains take,
 * which is less than the trace's octets times a constant; an octet for each event and platform; the
 * breaches, at most SG_CRASH_BREACHES of a platform.
 */
#ifndef SG_CRASH_EXPLORE_H
#define SG_CRASH_EXPLORE_H

#include "crash/issuer.h"
#include "crash/past.h"
#include "crash/promise.h"
#include "persist/certain.h"
#include "trace/reader.h"

struct sg_crash_explorer;

enum {
    SG_CRASH_BREACHES = 1024, /* records of a platform; more are counted only */
    SG_CRASH_FOLLOWED = 32,   /* of these, so many at a time are followed to their ends */
};

/* Instead of a stage: there is none; the adapter has not even seen what was promised. */
enum { SG_CRASH_NO_STAGE = SG_PERSIST_STAGES, SG_CRASH_NOT_PLACED, SG_CRASH_STAGES };

struct sg_crash_breach {
    uint8_t kind;    /* of the promise: enum sg_crash_ack */
    uint8_t stage;   /* enum sg_persist_stage: where the store waits; or one of the above */
    uint8_t doubt;   /* enum sg_persist_doubts */
    uint32_t issuer; /* of the store, a number of the issuers */
    uint64_t count;
    /* The first one: */
    uint64_t promise; /* its number among those of the target */
    uint64_t addr;    /* first octet that is not certain */
    uint64_t placed;  /* the event after which it had to be certain as it was */
    uint64_t lost;  /* the newest store that may be lost, as an event of the trace; 0: not known */
    uint64_t until; /* the event that makes it certain; 0: none does */
    bool followed;  /* until is known */
    GArray *early;  /* struct sg_crash_answer: the past, if there are several (past.h) */
};

struct sg_crash_numbers;
/* What a breach is about: stores with numbers of the domain behind this one, up to `placed`. */
uint64_t sg_crash_promised_after(const struct sg_crash_numbers *n, const struct sg_crash_breach *b);

struct sg_crash_verdict {
    struct sg_crash_platform platform;
    bool claimed; /* the platform keeps what the guest was told */
    uint64_t promises[SG_CRASH_ACKS], broken[SG_CRASH_ACKS];
    uint64_t not_judged; /* promises behind the end, below */
    uint64_t points;     /* crash points */
    unsigned pasts;      /* at a time, at most */
    uint64_t joined;     /* pasts that became equal to others */
    uint64_t limited;    /* stores beside data under way that have not all answers (past.h) */
    uint64_t beside;     /* without SG_CRASH_ANY: such stores, of which one order is explored */
    uint64_t mixed;      /* events that prove data of which not all orders are explored */
    uint64_t merged;     /* times that a limit took outcomes away, in all pasts */
    uint64_t in_doubt;   /* promises that nobody can judge, because of that; not in promises[] */
    GArray *breaches;    /* struct sg_crash_breach */
    uint64_t unlisted;   /* broken promises that are in none of them */
    uint64_t end;        /* 0, or the event before which judging ended */
    const char *why;     /* static text, if so */
};

/*
 * The power may fail on a platform now, behind this event (0: before the first).  Called for each
 * past, of which sg_crash_explorer_past() says which one.  Must not change the domain.
 */
typedef void sg_crash_point(void *opaque, unsigned platform, struct sg_persist *p, uint64_t behind);

/*
 * Each instant of a platform, in place of its crash points: is there to be one?  bounds: images and
 * demands do not only grow with the event that follows, or none does (pairs.h).
 */
typedef bool sg_crash_instant(void *opaque, unsigned platform, uint64_t behind, bool bounds);

struct sg_crash_exploration {
    const struct sg_trace_header *header; /* of the target; it outlives the explorer */
    const struct sg_crash_platform *platform;
    unsigned platforms;
    const struct sg_crash_promises *promises; /* after their end; they outlive the explorer */
    unsigned target;                          /* of these promises */
    const struct sg_crash_issuers *issuers;   /* of all events of the trace; likewise */
    sg_crash_point *point;                    /* NULL: only counted */
    sg_crash_instant *instant;                /* NULL: crash points are those of points.h */
    sg_crash_fork *fork;   /* for SG_CRASH_ANY; NULL: everything is late where it is asked */
    sg_crash_drop *drop;   /* likewise, or NULL */
    sg_crash_unite *unite; /* likewise */
    void *opaque;
};

/* NULL: *wrong says why, a static text. */
struct sg_crash_explorer *sg_crash_explorer_new(const struct sg_crash_exploration *what,
                                                const char **wrong);
void sg_crash_explorer_free(struct sg_crash_explorer *x);
/* A platform's memories of the next extent (sg_crash_replay_add()); all before the first event. */
void sg_crash_explorer_add(struct sg_crash_explorer *x, unsigned platform, uint8_t *visible,
                           uint8_t *media);
/* As sg_crash_replay_event(); from the first event on, in order. */
const char *sg_crash_explorer_event(struct sg_crash_explorer *x, const struct sg_trace_event *e,
                                    const char *name);
/* No event follows. */
void sg_crash_explorer_end(struct sg_crash_explorer *x);

const struct sg_crash_verdict *sg_crash_explorer_verdict(const struct sg_crash_explorer *x,
                                                         unsigned platform);
/* The event of the trace that became this event of a platform's domain; 0: none did. */
uint64_t sg_crash_explorer_event_of(const struct sg_crash_explorer *x, unsigned platform,
                                    uint64_t seq);
/* At a crash point: the early arrivals of its past (struct sg_crash_answer), and its memories. */
const GArray *sg_crash_explorer_past(const struct sg_crash_explorer *x, unsigned platform,
                                     unsigned *memory);
/* Verifies with a key, or beyond a limit, whose answers were not compared. */
uint64_t sg_crash_explorer_not_compared(const struct sg_crash_explorer *x);

#endif
