/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A responder on one connection (RFC 8166): it takes Calls in all forms, and answers them.  Its RPC
 * program is that of echo.h.
 */
#ifndef RPCRDMA_RESPONDER_H
#define RPCRDMA_RESPONDER_H

#include "port.h"

/* The documents whose duties differ (docs/rpcrdma.md). */
enum rr_edition {
    RR_EDITION_06,
    RR_EDITION_07,
    RR_EDITION_RFC,
    RR_EDITIONS,
};

/* "06", "07", "rfc8166"; RR_EDITIONS: no such edition. */
enum rr_edition rr_edition_of(const char *name);

enum rr_responder_limits {
    RR_CREDITS_MAX = RR_RECEIVES_MAX - 1,
    RR_CREDITS_DEFAULT = 32,
    RR_INLINE_DEFAULT = 4096,
};

struct rr_settings {
    enum rr_edition edition;
    uint32_t credits;
    uint32_t inline_size; /* octets of a Send, in both directions */
    bool private_data;    /* send ours; look at the peer's */
    bool invalidate;      /* R */
    /* Private data as they are, instead of ours; of no length: none are set. */
    uint8_t octets[RR_PRIVATE_ROOM];
    size_t octets_len;
};

struct rr_settings rr_settings_default(void);

/* The responder's side of a connection, before there is one. */
void rr_responder_side(const struct rr_settings *settings, struct rr_port_side *side);

struct rr_responder;

/* @port is connected; it stays the caller's.  NULL: no memory could be registered (port->why). */
struct rr_responder *rr_responder_new(const struct rr_settings *settings, struct rr_port *port);
void rr_responder_free(struct rr_responder *r);

/* Takes and answers at most one message; RR_EVENT_CLOSED: the connection is over. */
enum rr_event_kind rr_responder_step(struct rr_responder *r, unsigned ms);

/* Messages that were answered with RPC Replies, with RDMA_ERROR, and not at all. */
struct rr_counts {
    unsigned replies, errors, dropped;
};

struct rr_counts rr_responder_counts(const struct rr_responder *r);

#endif
