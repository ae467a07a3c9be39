/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the rooms of promise.h share.
 *
 * promise.c         events and acknowledgements
 * promise_result.c  the result in order
 * promise_conn.c    ends of connections, and which two belong together
 * promise_pieces.c  placements that no promise has yet
 * promise_mark.c    the text of marks; requests by their wr_id
 *
 * An end is one machine's side of a connection.  As target it has pieces: what arrived in the
 * machine's persistent memory.  As requester it has completions, which promise pieces of its peer.
 */
#ifndef SG_CRASH_PROMISE_IMPL_H
#define SG_CRASH_PROMISE_IMPL_H

#include <glib.h>

#include "crash/order_impl.h"
#include "crash/promise.h"

enum {
    CRASH_PAGE = 4096,
    CRASH_GONE_MAX = 4096,    /* ends of a machine that are remembered when they are over */
    CRASH_ACKS_MAX = 65536,   /* of an end, that wait for placements; a power of two */
    CRASH_ALL_ACKS = 1 << 20, /* of all ends */
    CRASH_EXACT_MAX = 256,    /* of an end, for one request each; a power of two */
    CRASH_REQUESTS = 16384,   /* of a machine, by wr_id; a power of two */
    CRASH_MARK_WORDS = 64,    /* of a mark */
    CRASH_RECENT = 4096,      /* messages that a mark may name by wr_id, whatever came then */
};

/* Lists of an end's pieces, each by ascending ordinal in a trace that is right. */
enum crash_list {
    LIST_WRITES,
    LIST_ATOMS,   /* an atom may arrive behind later Writes */
    LIST_FLUSHED, /* by the ordinal of the Flush; a piece in it is in one of the others as well */
    LISTS,
};

/* Octets of one placement within one page.  A Flush that was executed is one without octets. */
struct crash_piece {
    uint64_t addr;
    uint64_t ordinal; /* of its message; 0: only in LIST_FLUSHED */
    uint64_t placed;  /* event */
    uint64_t flush;   /* ordinal of the Flush that covers it, 0: none */
    uint32_t end;     /* number */
    uint16_t len;
    bool atom;
    uint32_t next, prev;     /* of LIST_WRITES or LIST_ATOMS, or of free ones */
    uint32_t b_next, b_prev; /* of LIST_FLUSHED if it has a Flush, else of its bucket */
};

struct crash_pieces {
    struct crash_piece *all; /* 0 is none */
    uint32_t used, room, free_head, count;
    uint32_t *bucket; /* by end and page; 0: empty */
};

/* An acknowledgement. */
struct crash_said {
    uint64_t event, wr_id, ordinal;
    const uint64_t *past;
    uint8_t by, kind;
    uint16_t unit;
    uint32_t qpn;
};

/* One that may get placements later: of messages first to last. */
struct crash_ack {
    uint64_t first, last;
    struct crash_said said; /* past is NULL */
    uint64_t from;
    uint32_t promise; /* number + 1, or 0: not made */
};

struct crash_acks {
    struct crash_ack *at; /* a ring; room is 0 or a power of two */
    uint32_t head, count, room;
};

struct crash_end {
    uint64_t key; /* machine, unit, qpn; first: the table's key */
    uint32_t number;
    uint8_t machine;
    uint16_t unit;
    uint32_t qpn;
    uint8_t address[36], side; /* side 0 has the smaller address */
    struct crash_end *peer;
    bool waits;  /* for its peer, in a table */
    bool mapped; /* by its key */
    bool was_paired;
    uint64_t born;                           /* event */
    uint64_t gone;                           /* event, 0: it is not over */
    struct crash_end *next_live, *prev_live; /* of the machine, while it is not over */

    /* As requester. */
    uint64_t started, completed; /* ordinals */
    uint64_t flush_started;
    bool dirty; /* completed more since the last mark */
    struct crash_end *next_dirty, *prev_dirty;

    /* As target. */
    uint32_t head[LISTS], tail[LISTS], piece_count;
    uint32_t sweep[LISTS];   /* the next piece that may be covered by a newer one, 0: the first */
    uint64_t flush_done;     /* ordinal */
    struct crash_acks acks;  /* by ascending last; first is 1 */
    struct crash_acks exact; /* of one request each */
    struct {
        uint64_t ordinal, event, addr, len;
    } flush; /* under way */
};

/* A request by its wr_id. */
struct crash_request {
    uint64_t wr_id, stamp;
    uint64_t first, last; /* ordinals; first 0: none, the requests before it have up to last */
    uint64_t born;        /* of its end */
    uint32_t end;         /* number */
};

struct crash_machine {
    bool target;
    bool frozen;    /* no power: nothing has an effect */
    uint64_t units; /* a set, of the first 64 */
    struct crash_end *dirty, *live;
    GQueue *gone;                              /* of ends, the oldest first */
    struct crash_end *last;                    /* found last, or NULL */
    struct crash_request *started, *completed; /* CRASH_REQUESTS each, or NULL */
    uint64_t stamp;
};

struct crash_kept {
    struct sg_crash_range range;
    uint32_t promise;
};

struct sg_crash_promises {
    unsigned machines, acks;
    struct crash_machine machine[SG_CRASH_MACHINES];
    GHashTable *ends;     /* by key */
    GHashTable *waiting;  /* by addresses: struct of promise_conn.c */
    GPtrArray *by_number; /* NULL: free */
    GArray *free_numbers;
    struct crash_pieces pieces;
    uint64_t all_acks;
    uint64_t steps; /* that may still be made (crash_step()) */

    GArray *promises; /* struct sg_crash_promise */
    GArray *kept;     /* struct crash_kept, until the end */
    struct sg_crash_range *ranges;
    uint64_t first_of[SG_CRASH_MACHINES + 1];
    bool ended;
    struct sg_crash_promise_counts counts;
};

/*
 * Steps over what is remembered: each event allows some, so that no trace takes long.  False: there
 * were too many, and this is left out.
 */
enum { CRASH_STEPS = 64, CRASH_STEPS_FIRST = 1 << 24 };
static inline bool crash_step(struct sg_crash_promises *p, unsigned steps)
{
    if (p->steps < steps) {
        return false;
    }
    p->steps -= steps;
    return true;
}

/* ---- promise_conn.c ---- */

/* NULL: its beginning is not in the trace. */
struct crash_end *crash_end_of(struct sg_crash_promises *p, unsigned machine, uint64_t unit,
                               uint64_t qpn);
void crash_connected(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e,
                     const uint64_t *past);
void crash_disconnected(struct sg_crash_promises *p, unsigned machine,
                        const struct sg_trace_event *e);
/* The machine's connections are over. */
void crash_all_disconnected(struct sg_crash_promises *p, unsigned machine,
                            const struct sg_trace_event *e);
void crash_ends_init(struct sg_crash_promises *p);
/* Counts what is left, and frees all. */
void crash_ends_free(struct sg_crash_promises *p);
/* On and off the machine's list of ends that completed more since the last mark. */
void crash_end_dirty(struct sg_crash_promises *p, struct crash_end *q);
void crash_end_clean(struct sg_crash_promises *p, struct crash_end *q);

/* ---- promise_pieces.c ---- */

void crash_pieces_init(struct crash_pieces *all);
void crash_pieces_fini(struct crash_pieces *all);
/* [addr, addr + len) was placed for the end by this message and event; without overflow. */
void crash_piece_placed(struct sg_crash_promises *p, struct crash_end *t, uint64_t addr,
                        uint64_t len, uint64_t ordinal, uint64_t event, bool atom);
/* The Flush that is under way was executed. */
void crash_piece_flushed(struct sg_crash_promises *p, struct crash_end *t);
/* Takes a piece out of everything and gives its number back. */
void crash_piece_free(struct sg_crash_promises *p, struct crash_end *t, uint32_t n);

/* ---- promise.c ---- */

/* Adds a range to the promise with this number + 1, or makes it.  Returns false: a limit. */
bool crash_promise_add(struct sg_crash_promises *p, uint32_t *promise, unsigned target,
                       const struct crash_said *said, uint64_t from,
                       const struct sg_crash_range *range);
/* Such an acknowledgement promises pieces of the messages first to last; returns how many. */
uint32_t crash_take(struct sg_crash_promises *p, struct crash_end *t, const struct crash_said *said,
                    uint64_t first, uint64_t last, uint32_t *promise);
/* Placements of these messages that follow belong to it. */
void crash_expect(struct sg_crash_promises *p, struct crash_end *t, const struct crash_said *said,
                  uint64_t first, uint64_t last, uint32_t promise);
/* Counts an acknowledgement; why is SG_CRASH_UNMATCHED if it is matched. */
void crash_count(struct sg_crash_promises *p, enum sg_crash_ack kind, enum sg_crash_unmatched why);

/* ---- promise_mark.c ---- */

void crash_work(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e);
/* The ordinals of a delivered completion; false: none is known. */
bool crash_completed_request(struct sg_crash_promises *p, struct crash_end *q,
                             const struct sg_trace_event *e, uint64_t *ordinal);
void crash_mark(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e,
                const char *name, const uint64_t *past);

#endif
