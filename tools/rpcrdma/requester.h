/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A requester on one connection (RFC 8166), the client of the program echo (echo.h): it makes Calls
 * of all forms, as many at once as it may, and looks at what comes back.  It answers Calls of the
 * other side (RFC 8167).
 *
 * What a requester owes: it never has more Calls open than credits; a Reply that is not sound is
 * dropped without an answer, and its Call stays open; RDMA_ERROR ends the Call that has its XID; a
 * Call without a Reply ends after a time.
 */
#ifndef RPCRDMA_REQUESTER_H
#define RPCRDMA_REQUESTER_H

#include "responder.h"

enum rr_requester_limits {
    RR_AT_ONCE_MAX = 32,    /* Calls that are open */
    RR_AT_ONCE_DEFAULT = 8, /* less than a server grants by default */
    RR_BACK_CREDITS = 4,    /* that it grants for Calls of the other side */
    RR_CALL_LIMIT_MS = 10000,
};

struct rr_requester_settings {
    uint32_t inline_size; /* octets of a Send, in both directions */
    bool private_data;
    bool invalidate; /* with private data: set R.  The port must lend what a peer can invalidate. */
    unsigned at_once; /* Calls, 1 to RR_AT_ONCE_MAX */
    unsigned limit_ms;
    uint64_t count; /* of Calls; 0: without end */
};

struct rr_requester_settings rr_requester_defaults(void);

/* The requester's side of a connection, before there is one. */
void rr_requester_side(const struct rr_requester_settings *settings, struct rr_port_side *side);

struct rr_requester;

/* @port is connected; it stays the caller's.  NULL: no memory could be registered (port->why). */
struct rr_requester *rr_requester_new(const struct rr_requester_settings *settings,
                                      struct rr_port *port);
void rr_requester_free(struct rr_requester *q);

/* Makes the Calls that may be made, and takes at most one message. */
enum rr_event_kind rr_requester_step(struct rr_requester *q, unsigned ms);
/* No further Calls are made; those that are open go on. */
void rr_requester_stop(struct rr_requester *q);
/* All Calls that were to be made are over. */
bool rr_requester_done(const struct rr_requester *q);

struct rr_requester_counts {
    uint64_t calls;
    uint64_t answered; /* with the right results */
    uint64_t failed;   /* by RDMA_ERROR */
    uint64_t refused;  /* by the program */
    uint64_t wrong;    /* with results that are not those of the Call */
    uint64_t expired;  /* without a Reply */
    uint64_t dropped;  /* messages that are not sound, or answer nothing */
    uint64_t open;     /* still; if the connection has ended: never answered */
    uint64_t back;     /* Calls of the other side that were answered */
};

struct rr_requester_counts rr_requester_counts(const struct rr_requester *q);
void rr_requester_counts_add(struct rr_requester_counts *sum, struct rr_requester_counts n);

#endif
