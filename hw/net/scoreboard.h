/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a connection has sent and the peer has not acknowledged yet, segment by segment.
 *
 * Each segment is in one of three states: in flight, lost (to be sent again), or SACKed (RFC 2018:
 * the peer holds it beyond a hole).  The first two states have a list each: those in flight in the
 * order of their last transmission, which is what RACK asks for (RFC 8985, section 5.1), those lost
 * in the order in which they are to be sent again.
 *
 * Bounds: one entry per segment that TCP keeps anyway (at most 30,000), and the ring is on the
 * account with what TCP keeps; an entry changes its state at most three times per transmission; a
 * walk over what is SACKed already is short because each entry knows how many behind it are SACKed
 * as well.  So the cost of an acknowledgement does not depend on what its blocks say.
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
    void *owner;         /* of whoever sends it */
    uint32_t prev, next; /* in the list of its state: indices, as of scoreboard_at() */
    uint32_t run;        /* SACKed: at least so many are, from this one on */
    uint8_t state;
    bool again;          /* sent more than once */
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
    struct segment_list list[SEGMENT_STATES]; /* of SACKED the counts alone */
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
 * 'seq' has been sent: a new segment, or one that is known, once more.  NULL: neither, or one for
 * which there is no memory.
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
/* What was taken for lost and not sent again is in flight after all. */
void scoreboard_restore(struct scoreboard *b);

#endif
