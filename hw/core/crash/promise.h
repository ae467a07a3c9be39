/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Promises: what must survive from a crash point on, and who said so.
 *
 * Input are the events of all machines in the order of order.h.  The output are promises.  What
 * says that something is persistent is an acknowledgement; the user chooses its kinds:
 *
 * flush           a Flush with P whose completion was delivered promises what preceding messages
 *                 of its connection placed in its range.  The default, with marks
 * write, send,    a completion of this kind promises all that this message and the earlier ones of
 * read, atomic    the connection placed.  For programs that take it for an acknowledgement
 * acknowledged    a mark: what is promised are the messages of this machine whose completions were
 *                 delivered before it; "wr_id=N" limits it to a work request (of the last 4096),
 *                 "qpn=N" to a queue pair
 * durable         a mark of the machine with the memory: "phys=ADDR len=N [phys=...]"
 * state           a mark with a text for checkers: a promise without ranges, for each target
 *
 * A completion that is delivered covers the requests before it on its queue that were not
 * signalled.  One with an error promises nothing.  Loopback is a connection like others.
 *
 * Each placement is in one promise only: the first that covers it.  Later promises of the
 * same requester imply it, because they begin later.  So all promises with `from` <= P together
 * say what has to survive at crash point P.
 *
 * How the explorer uses it:
 *
 *     p = sg_crash_promises_new(machines, targets, SG_CRASH_ACK_DEFAULT);
 *     -- pass 1, as in order.h; the function given to sg_crash_order_run() does
 *     sg_crash_promises_event(p, machine, e, sg_trace_name(reader[machine], e->name), past);
 *     -- if the run returns false: free p, and begin it anew for the next run
 *     -- end of pass 1
 *     sg_crash_promises_end(p);
 *     -- pass 2, for target T: promises in ascending order of `from`
 *     promise = sg_crash_promises_of(p, T, &count);
 *     for (i = 0; i < count; i++) {
 *         replay T's trace up to and including event promise[i].from, and remember in the model
 *         sg_persist_seq() for each event that is `placed` of some range;
 *         range = sg_crash_promise_ranges(p, &promise[i]);
 *         for each of its range_count ranges, at all crash points behind event promise[i].from:
 *             before event range->placed: what is promised has not even been placed: it is lost
 *             from then on: sg_persist_uncertain(model, range->addr, range->len,
 *                                                seq behind event range->placed - 1 (durable: 0),
 *                                                seq behind event range->placed, &why)
 *     }
 *     -- a crash point behind event E is bound by exactly the promises with from <= E
 *     sg_crash_promise_counts(p);   -- acknowledgements == 0: nothing was promised, say so
 *     sg_crash_promises_free(p);
 *
 * `placed` is greater than `from` only for completions that do not wait for the placement (write,
 * send), and for marks after them.  Where an octet was placed again before the promise, both
 * placements are in it.  Each is judged alone: what others placed there, and promised to nobody,
 * may be lost, or come behind it.
 *
 * Limits, all of them counted when they are reached, never silent: memory is proportional to the
 * promises, to placements that nothing has promised yet (at most SG_CRASH_PENDING) and to
 * connections (SG_CRASH_CONNECTIONS that are not over).  A trace may say anything.
 */
#ifndef SG_CRASH_PROMISE_H
#define SG_CRASH_PROMISE_H

#include "crash/order.h"

struct sg_crash_promises;

enum sg_crash_ack {
    SG_CRASH_ACK_FLUSH,
    SG_CRASH_ACK_WRITE, /* with or without Immediate Data */
    SG_CRASH_ACK_SEND,
    SG_CRASH_ACK_READ,
    SG_CRASH_ACK_ATOMIC,       /* Fetch-and-Add, Compare-and-Swap, Atomic Write */
    SG_CRASH_ACK_ACKNOWLEDGED, /* marks */
    SG_CRASH_ACK_DURABLE,
    SG_CRASH_ACK_STATE,
    SG_CRASH_ACKS,
};

/* A set of kinds: 1 << enum sg_crash_ack. */
#define SG_CRASH_ACK_MARKS \
    (1u << SG_CRASH_ACK_ACKNOWLEDGED | 1u << SG_CRASH_ACK_DURABLE | 1u << SG_CRASH_ACK_STATE)
#define SG_CRASH_ACK_DEFAULT (1u << SG_CRASH_ACK_FLUSH | SG_CRASH_ACK_MARKS)

const char *sg_crash_ack_name(enum sg_crash_ack kind); /* "flush" */

enum {
    SG_CRASH_CONNECTIONS = 1 << 17, /* ends of connections at a time, all machines together */
    SG_CRASH_PENDING = 1 << 21,     /* placements that no promise has yet */
    SG_CRASH_PROMISES = 1 << 22,
    SG_CRASH_RANGES = 1 << 24, /* of all promises */
};

struct sg_crash_range {
    uint64_t addr, len; /* of the target machine */
    uint64_t placed;    /* event of the target; of a durable mark: the mark's own number */
};

struct sg_crash_promise {
    uint64_t from;    /* event of the target: crash points behind it are bound */
    uint64_t event;   /* of machine `by`: the completion or mark */
    uint64_t wr_id;   /* of a completion */
    uint64_t ordinal; /* of a completion: its message */
    uint32_t qpn;     /* of a completion, of machine `by` */
    uint32_t range_count;
    uint64_t first_range; /* for sg_crash_promise_ranges() */
    uint16_t unit;        /* of a completion: the adapter of machine `by` */
    uint8_t target, by;   /* machines */
    uint8_t kind;         /* enum sg_crash_ack */
};

/* Why an acknowledgement promised nothing. */
enum sg_crash_unmatched {
    SG_CRASH_NO_CONNECTION, /* its connection's beginning is not in the trace */
    SG_CRASH_NO_PEER,       /* the peer is not recorded */
    SG_CRASH_NO_MESSAGE,    /* no message is known for it: begun before the recording, or wr_id=
                               of a request that is not known, or too old */
    /*
     * Nothing (new) of its messages was placed in persistent memory, or no Flush with P of it was
     * executed there.
     */
    SG_CRASH_NOTHING_PLACED,
    SG_CRASH_BEHIND_END, /* it has a cause behind the end of the target's trace, cut short */
    SG_CRASH_NO_TARGET,  /* the peer is not one of the targets */
    SG_CRASH_BAD_MARK,   /* the mark's text says nothing, or nothing that is understood */
    SG_CRASH_LIMIT,      /* a limit of this file was reached */
    SG_CRASH_UNMATCHED,
};
const char *sg_crash_unmatched_text(enum sg_crash_unmatched why); /* for people: a phrase */

struct sg_crash_promise_counts {
    uint64_t completions;      /* of send queues that were delivered */
    uint64_t failed;           /* of these: with an error */
    uint64_t acknowledgements; /* of the chosen kinds, without error; 0: nothing was promised */
    uint64_t matched;          /* of these: have a promise, or imply what others have */
    uint64_t unmatched[SG_CRASH_UNMATCHED]; /* the others */
    uint64_t kind[SG_CRASH_ACKS];           /* acknowledgements of each kind */
    uint64_t promises, ranges;
    uint64_t connections;         /* of two recorded ends */
    uint64_t single_connections;  /* of one */
    uint64_t connections_dropped; /* ends beyond a limit: nothing is promised by them */
    uint64_t placements;          /* segments and atoms in persistent memory */
    /* Of these: by a peer that is not recorded, by a message that is not known. */
    uint64_t placements_single, placements_unknown;
    uint64_t dropped;    /* placements and acknowledgements beyond a limit: promises are missing */
    uint64_t unpromised; /* placements, or parts of them, that no promise has at the end */
};

/*
 * targets: a set (1 << machine) of the machines whose persistent memory is examined.  acks: a set
 * of kinds.  Never NULL.
 */
struct sg_crash_promises *sg_crash_promises_new(unsigned machines, unsigned targets, unsigned acks);
void sg_crash_promises_free(struct sg_crash_promises *p); /* NULL is allowed */
/* An event of sg_crash_order_run().  name: sg_trace_name() of e->name, or NULL. */
void sg_crash_promises_event(struct sg_crash_promises *p, unsigned machine,
                             const struct sg_trace_event *e, const char *name,
                             const uint64_t *past);
/* After the last event; once. */
void sg_crash_promises_end(struct sg_crash_promises *p);

/* After the end.  Those of a target, by ascending `from`; owned by p. */
const struct sg_crash_promise *sg_crash_promises_of(const struct sg_crash_promises *p,
                                                    unsigned target, uint64_t *count);
/* Its range_count ranges, by ascending `placed`; owned by p. */
const struct sg_crash_range *sg_crash_promise_ranges(const struct sg_crash_promises *p,
                                                     const struct sg_crash_promise *promise);
const struct sg_crash_promise_counts *sg_crash_promise_counts(const struct sg_crash_promises *p);

#endif
