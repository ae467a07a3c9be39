/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The segments that a connection has sent and the peer has not acknowledged yet.
 *
 * Each segment is in one of three states: in flight, lost (to be sent again), or SACKed (RFC 2018:
 * the peer holds it beyond a hole).  The first two states have a list each: segments in flight in
 * the order of their last transmission, as RACK needs it (RFC 8985, section 5.1), lost segments in
 * the order in which they are to be sent again.
 *
 * Bounds: there is one entry per segment that TCP keeps anyway (at most 30,000), and the ring is
 * charged to the account together with what TCP keeps.  An entry changes its state at most three
 * times per transmission.  A walk over SACKed segments is short, because each entry knows how many
 * SACKed ones follow.  So the cost of an acknowledgement does not depend on its blocks.
 *
 * No clock, no I/O: time is an argument.
 */
#ifndef SG_NET_SCOREBOARD_H
#define SG_NET_SCOREBOARD_H

#include <stdbool.h>
#include <stdint.h>

enum segment_state { SEGMENT_IN_FLIGHT, SEGMENT_LOST, SEGMENT_SACKED, SEGMENT_STATES };

struct sent_segment {
    uint32_t seq, end;   /* sequence numbers; the FIN counts as one octet */
    uint64_t sent;       /* ns, its last transmission */
    void *owner;         /* for the use of the sender */
    uint32_t prev, next; /* in the list of its state: indices, as of scoreboard_at() */
    uint32_t run;        /* SACKed: at least this many are, beginning with this one */
    uint8_t state;
    bool again; /* sent more than once */
};

struct segment_list {
    uint32_t first, last; /* valid while 'count' is not 0 */
    uint32_t count;
    uint32_t octets;
};

struct sg_account;

struct scoreboard {
    struct sg_account *account; /* for the ring, or NULL */
    struct sent_segment *ring;
    uint32_t mask;       /* of the ring; 0: none yet */
    uint32_t tail, head; /* indices: the oldest segment, and behind the newest; they wrap around */
    struct segment_list list[SEGMENT_STATES]; /* for SACKED only the counts */
    /* Called for each segment that is acknowledged or SACKed for the first time. */
    void (*delivered)(void *user, const struct sent_segment *s);
    void *user;
};

void scoreboard_free(struct scoreboard *b);
/* Room for so many segments in all; false: no memory. */
bool scoreboard_reserve(struct scoreboard *b, uint32_t segments);

static inline uint32_t scoreboard_count(const struct scoreboard *b)
{
    return b->head - b->tail;
}

static inline struct sent_segment *scoreboard_at(const struct scoreboard *b, uint32_t index)
{
    return &b->ring[index & b->mask];
}

static inline struct sent_segment *scoreboard_first(const struct scoreboard *b,
                                                    enum segment_state state)
{
    const struct segment_list *l = &b->list[state];

    return l->count ? scoreboard_at(b, l->first) : 0;
}

/* The newest, NULL if there is none. */
struct sent_segment *scoreboard_newest(const struct scoreboard *b);
/*
 * 'seq' has been sent: a new segment, or a known one again.  NULL: neither, or there is no memory
 * for it.
 */
struct sent_segment *scoreboard_sent(struct scoreboard *b, uint32_t seq, uint32_t end, uint64_t now,
                                     void *owner);
/* Everything before 'ack' has arrived; segments that are only partly acknowledged stay. */
void scoreboard_ack(struct scoreboard *b, uint32_t ack);
/* Segments that lie wholly within the block; returns the octets that are new. */
uint32_t scoreboard_sack(struct scoreboard *b, uint32_t start, uint32_t end);
/* A segment in flight is lost. */
void scoreboard_lose(struct scoreboard *b, struct sent_segment *s);
void scoreboard_lose_all(struct scoreboard *b);
/* The peer has dropped what it SACKed (RFC 2018, section 8): all of it is lost. */
void scoreboard_renege(struct scoreboard *b);
/* Segments that counted as lost and were not sent again are in flight after all. */
void scoreboard_restore(struct scoreboard *b);

#endif
