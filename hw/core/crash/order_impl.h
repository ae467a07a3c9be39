/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What order.c remembers of frames.
 *
 * Which frames a machine sends in all of its trace is only counted: a table of 2^21 buckets (fewer
 * for few frames) with 12 counters, each with 26 bits of the frame's hash.  A bucket that
 * overflows knows nothing for certain; up to 8 million frames this is rare.
 */
#ifndef SG_CRASH_ORDER_IMPL_H
#define SG_CRASH_ORDER_IMPL_H

#include <glib.h>

#include "crash/order.h"

enum {
    CRASH_REPEATED_MAX = 1 << 20, /* contents that were sent more than once */
    CRASH_WATCHED_MAX = 1 << 16,  /* receptions that a later sending may explain */
    CRASH_WATCHED_KEY = 64,       /* of these: for the same content */
    CRASH_RUNS_MAX = 16,          /* until what is not settled is given up */
};

/* Scrambles 64 bits (the finaliser of splitmix64). */
static inline uint64_t crash_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* What a frame is known by, whoever sent it. */
static inline uint64_t crash_frame_key(const struct sg_trace_event *e)
{
    return crash_mix(e->value + crash_mix(e->len + 1));
}

/* ---- All frames that are sent ---- */

struct crash_frames;

struct crash_frames *crash_frames_new(void);
void crash_frames_free(struct crash_frames *f);
/* One of the functions below is about to be called for such frames. */
void crash_frames_prefetch(const struct crash_frames *f, uint64_t key);
/* The run begins again: nothing was sent yet. */
void crash_frames_rewind(struct crash_frames *f);
/* Returns whether the machine has sent such a frame before, or may have. */
bool crash_frames_add(struct crash_frames *f, unsigned machine, uint64_t key);
/* One was sent. */
void crash_frames_sent(struct crash_frames *f, unsigned machine, uint64_t key);
/* Does this machine send such a frame?  Rarely "later" or "before" although it does not. */
enum crash_frames_when { FRAMES_NEVER, FRAMES_BEFORE, FRAMES_LATER };
enum crash_frames_when crash_frames_find(const struct crash_frames *f, unsigned machine,
                                         uint64_t key);

/* ---- Frames that one machine sent ---- */

/* The last sending of a frame. */
struct crash_sent {
    uint64_t key;
    uint32_t next;  /* of the same chain: index + 1, or 0 */
    uint32_t sends; /* of this frame, as long as they are remembered */
};

struct crash_sent_table {
    struct crash_sent *ring; /* of capacity elements */
    uint64_t *past;          /* machines for each element, and as many that are certain */
    uint32_t *taken;         /* likewise: how often the machine received it */
    uint32_t *head;          /* chains by key: index + 1, or 0 */
    uint32_t capacity, head_mask, machines;
    uint32_t next; /* where the next sending will be */
};

/* It will send so many. */
void crash_sent_init(struct crash_sent_table *t, unsigned machines, uint64_t frames);
void crash_sent_fini(struct crash_sent_table *t);
/* Forgets all. */
void crash_sent_clear(struct crash_sent_table *t);
void crash_sent_put(struct crash_sent_table *t, uint64_t key, const uint64_t *past,
                    const uint64_t *certain);
/* One of these functions is about to be called for such frames. */
void crash_sent_prefetch(const struct crash_sent_table *t, uint64_t key);
/* NULL: not among those that are remembered. */
struct crash_sent *crash_sent_find(struct crash_sent_table *t, uint64_t key);

static inline const uint64_t *crash_sent_past(const struct crash_sent_table *t,
                                              const struct crash_sent *s)
{
    return &t->past[(size_t)(s - t->ring) * 2 * t->machines];
}

static inline const uint64_t *crash_sent_certain(const struct crash_sent_table *t,
                                                 const struct crash_sent *s)
{
    return crash_sent_past(t, s) + t->machines;
}

static inline uint32_t *crash_sent_taken(const struct crash_sent_table *t,
                                         const struct crash_sent *s)
{
    return &t->taken[(size_t)(s - t->ring) * t->machines];
}

/* ---- Receptions that a later sending may explain (order_watch.c) ---- */

struct crash_watch {
    uint64_t place;                    /* machine and number; first: the table's key */
    uint64_t key;                      /* of the frame */
    struct crash_watch *next;          /* for the same content */
    unsigned open;                     /* set of machines whose next such sending may be it */
    bool raised;                       /* raise is not 0 */
    uint64_t had[SG_CRASH_MACHINES];   /* the reception's past in this run */
    uint64_t late[SG_CRASH_MACHINES];  /* what later sendings add to it */
    uint64_t raise[SG_CRASH_MACHINES]; /* what they added in earlier runs */
};

struct crash_watches {
    GHashTable *by_place; /* struct crash_watch */
    GHashTable *by_key;   /* the first of the open ones */
    GHashTable *repeated; /* contents that were sent more than once */
    bool all_repeated;    /* more than are remembered */
    unsigned runs;
};

void crash_watches_init(struct crash_watches *w);
void crash_watches_fini(struct crash_watches *w);
void crash_watches_rewind(struct crash_watches *w);
void crash_repeated_add(struct crash_watches *w, uint64_t key);
bool crash_is_repeated(const struct crash_watches *w, uint64_t key);
/* This reception may be a later sending of one of these machines.  NULL: too many. */
struct crash_watch *crash_watch(struct crash_watches *w, unsigned machine, uint64_t number,
                                uint64_t key, unsigned open);
/* It was decided in an earlier run that later sendings may explain it; or NULL. */
struct crash_watch *crash_watch_find(struct crash_watches *w, unsigned machine, uint64_t number);
/* A sending, with its past, and what of this is certain. */
void crash_watch_sent(struct crash_watches *w, unsigned machine, unsigned machines, uint64_t key,
                      const uint64_t *past, const uint64_t *certain);
/* The end of a run: is every past great enough?  Else the next run raises them. */
bool crash_watches_settled(struct crash_watches *w, unsigned machines);

#endif
