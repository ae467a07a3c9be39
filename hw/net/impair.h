/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An impaired link: one direction of an Ethernet segment that loses, delays, reorders, duplicates
 * and damages frames, or has a limited rate.
 *
 * The module has no clock and no wire: frames and the time are arguments.  The fate of the n-th
 * frame is a function of the seed and of n alone.  So a run with the same frames has the same
 * fates, and a change of one setting does not change the effect of the others.
 *
 * A frame is handled in this order: loss, duplication, damage, the link's rate and its queue,
 * delay, reordering.  Frames leave in the order in which they came, however they are delayed,
 * except those that are chosen for reordering.
 */
#ifndef SG_NET_IMPAIR_H
#define SG_NET_IMPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define SG_IMPAIR_ALWAYS 1000000u          /* a probability of 1, in millionths */
#define SG_IMPAIR_DELAY_MAX 10000000000ull /* ns */
#define SG_IMPAIR_RATE_MIN 1000ull         /* bit/s */
#define SG_IMPAIR_RATE_MAX 1000000000000ull
#define SG_IMPAIR_QUEUE_MAX (64ull << 20) /* octets */
#define SG_IMPAIR_QUEUE_DEFAULT (256ull << 10)

/* Limit of waiting frames; further ones are dropped and counted as 'overflowed'. */
#define SG_IMPAIR_FRAMES_MAX 65536u
#define SG_IMPAIR_OCTETS_MAX (64ull << 20)

/*
 * A frame that is chosen for reordering waits until 1 to SG_IMPAIR_OVERTAKERS_MAX later ones have
 * passed it, but at most SG_IMPAIR_LATE_NS.  At most SG_IMPAIR_LATE_MAX frames wait in this way;
 * further ones keep their place.
 */
#define SG_IMPAIR_OVERTAKERS_MAX 3u
#define SG_IMPAIR_LATE_NS 10000000ull
#define SG_IMPAIR_LATE_MAX 64u

#define SG_IMPAIR_NEVER UINT64_MAX

struct sg_impair;

/* All zero: frames pass unchanged. */
struct sg_impair_config {
    uint32_t loss, duplicate, corrupt, reorder; /* millionths of the frames */
    uint64_t delay;                             /* ns */
    uint64_t jitter; /* ns: the delay is random, delay - jitter (0 at least) to delay + jitter */
    uint64_t rate;   /* bit/s of the frames' octets; 0: no limit */
    uint64_t queue;  /* octets that wait for a link with a rate; 0: SG_IMPAIR_QUEUE_DEFAULT */
    uint64_t seed;
};

/* frames + duplicated = passed + lost + dropped + overflowed + waiting */
struct sg_impair_counters {
    uint64_t frames; /* arrived */
    uint64_t passed; /* departed, copies included */
    uint64_t lost;
    uint64_t duplicated; /* copies made */
    uint64_t corrupted;  /* passed or waiting with one bit inverted */
    uint64_t reordered;  /* passed behind a later frame */
    uint64_t dropped;    /* the queue of the link with a rate was full */
    uint64_t overflowed; /* more than SG_IMPAIR_FRAMES_MAX or SG_IMPAIR_OCTETS_MAX */
    uint64_t waiting;    /* now */
};

/* One frame departs.  The memory is valid during the call, which may call sg_impair_input(). */
typedef void sg_impair_deliver(void *opaque, const uint8_t *frame, size_t len, uint32_t tag);

/* NULL if the settings are within their ranges; else the name of the field that is not. */
const char *sg_impair_check(const struct sg_impair_config *config);

/* NULL: 'config' is out of range. */
struct sg_impair *sg_impair_new(const struct sg_impair_config *config);
/* Waiting frames are lost.  't' may be NULL. */
void sg_impair_free(struct sg_impair *t);

/*
 * Settings for the frames that arrive from now on.  False: out of range, nothing has changed.  A
 * different seed begins at its first frame.
 */
bool sg_impair_set(struct sg_impair *t, const struct sg_impair_config *config);
/* The next frame is the seed's first one again. */
void sg_impair_restart(struct sg_impair *t);

/*
 * A frame arrives.  Its first 'lead' octets are not Ethernet (an offload header) and are never
 * damaged; 'tag' is the caller's and is returned with the frame.  True: the caller passes the
 * frame on itself, now and unchanged.  False: it was dropped, or a copy waits for
 * sg_impair_output().
 */
bool sg_impair_input(struct sg_impair *t, const struct iovec *iov, unsigned n, size_t lead,
                     uint32_t tag, uint64_t now);

/* When sg_impair_output() has something to do; SG_IMPAIR_NEVER: nothing waits. */
uint64_t sg_impair_next(const struct sg_impair *t);

/*
 * Delivers what is due, at most 'max' frames.  If the clock has gone back (a snapshot was loaded),
 * waiting frames keep their remaining time.  Does nothing when called by 'deliver'.
 */
void sg_impair_output(struct sg_impair *t, uint64_t now, unsigned max, sg_impair_deliver *deliver,
                      void *opaque);
/* Delivers all waiting frames, whatever their time. */
void sg_impair_flush(struct sg_impair *t, sg_impair_deliver *deliver, void *opaque);

void sg_impair_counters(const struct sg_impair *t, struct sg_impair_counters *out);

#endif
