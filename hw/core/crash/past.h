/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pasts of a platform: when data that were under way arrived, as far as it makes a difference.
 *
 * Before somebody else's store to a line the domain asks how much of each segment for the line has
 * arrived (sg_persist_arrivals()).  Each combination of answers is a past of its own, and the
 * contract allows all of them.  So where there is something to be asked a past is divided into as
 * many, each with a domain and memories of its own; and pasts that have become equal again, because
 * something proved what had been open, are one from then on.
 *
 * Before an event proves data the domain asks the same of lines for which several segments have
 * something: which of them came first.  Messages of many segments have many such lines, and to whom
 * a promise was made that cannot matter; so pasts are divided there only if there are few lines and
 * few pasts.
 *
 * The first past is the one in which everything came as late as possible.
 *
 * Memory: of each past what its domain takes, the pages of its memories that were touched since
 * there was only one, and an octet for each event since then.  At most SG_CRASH_PASTS at a time;
 * where there would be more, data come as late as possible in what was divided last, and that is
 * counted.
 */
#ifndef SG_CRASH_PAST_H
#define SG_CRASH_PAST_H

#include "crash/deviation.h"
#include "crash/numbers.h"
#include "crash/platform.h"
#include "crash/replay.h"

enum {
    SG_CRASH_PASTS = 64,
    SG_CRASH_PASTS_MIXED = 48, /* with those that an event divides which proves data */
    SG_CRASH_STOPS = 2,        /* that event: of so many lines of several segments at most */
};

/*
 * Makes memories with number @to, at first or again, equal to those with number @from, whose domain
 * is @p, and says where they are, by number of extent.  Since there was one past, they have been
 * changed only in the pages that @p has touched (sg_persist_touched()).  0 are those that the
 * platform began with; all are below SG_CRASH_PASTS.  False: there is no memory.
 */
typedef bool sg_crash_fork(void *opaque, unsigned platform, const struct sg_persist *p,
                           unsigned from, unsigned to, struct sg_persist_memory *memory);
/* A past with domain @p, one of several, has ended: its memories are not needed any more. */
typedef void sg_crash_drop(void *opaque, unsigned platform, const struct sg_persist *p,
                           unsigned memory);
/*
 * There is one past, with domain @p and these memories.  True: what will be touched is to be noted
 * from the next division on.  False: it goes on as if there still were several, and the question
 * comes again behind each event.
 */
typedef bool sg_crash_unite(void *opaque, unsigned platform, const struct sg_persist *p,
                            unsigned memory);

struct sg_crash_past {
    struct sg_crash_replay *replay;
    struct sg_persist *p;
    struct sg_crash_numbers numbers;
    unsigned memory; /* the number of its memories */
    /* struct sg_crash_answer: what arrived early, by number of the question; all else was late. */
    GArray *early;
    uint32_t asked; /* questions so far */
    GArray *now;    /* struct early_answer: those of the event at hand */
    guint at;
    bool left_out; /* by the event at hand: orders of segments */
};

struct sg_crash_pasts {
    uint8_t arrivals;              /* enum sg_crash_arrivals */
    GPtrArray *all;                /* struct sg_crash_past */
    struct sg_crash_numbers trunk; /* of events before there were several */
    bool touches;                  /* the domains note which pages they touch */
    uint64_t taken;                /* bits: memories in use */
    unsigned failed, wait;         /* comparisons without result; events until the next one */
    unsigned most;                 /* pasts at a time, so far */
    uint64_t joined;               /* pasts that became equal to others */
    uint64_t limited;              /* divisions that the limit made incomplete */
    uint64_t beside;               /* without SG_CRASH_ANY: stores beside data under way */
    uint64_t mixed;                /* events that proved data of which not all orders are there */
    uint64_t merged;               /* times that a limit of a domain took outcomes away */
    /* Of the owner: */
    sg_crash_fork *fork;   /* NULL: there is one past */
    sg_crash_drop *drop;   /* NULL: nothing has to be done */
    sg_crash_unite *unite; /* likewise */
    void *opaque;
    unsigned platform;
};

/* With one past, which takes the replay.  The platform says which pasts there are. */
void sg_crash_pasts_init(struct sg_crash_pasts *x, const struct sg_crash_platform *platform,
                         struct sg_crash_replay *replay);
void sg_crash_pasts_fini(struct sg_crash_pasts *x);

static inline struct sg_crash_past *sg_crash_past_at(const struct sg_crash_pasts *x, guint i)
{
    return (struct sg_crash_past *)g_ptr_array_index(x->all, i);
}
/* One event, in each past; what divides pasts is behind it.  NULL, or what is wrong. */
const char *sg_crash_pasts_event(struct sg_crash_pasts *x, const struct sg_trace_event *e,
                                 const char *name);
/* The event may have made pasts equal. */
void sg_crash_pasts_join(struct sg_crash_pasts *x);
/* A past that cannot have been; not the only one. */
void sg_crash_pasts_drop(struct sg_crash_pasts *x, guint i);

/* Are both lists of early arrivals the same past of a platform? */
bool sg_crash_same_past(const GArray *a, const GArray *b);

/* Answers as these, in order: for sg_persist_arrivals(), in a replay of one past alone. */
struct sg_crash_given_arrivals {
    const GArray *early; /* struct sg_crash_answer, or NULL */
    uint32_t asked;
    guint next;
};
uint32_t sg_crash_arrives_as_given(void *opaque, const struct sg_persist_choice *q);

#endif
