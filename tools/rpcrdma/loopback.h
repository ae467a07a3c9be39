/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connections to a responder in this process (port_memory.h). */
#ifndef RPCRDMA_LOOPBACK_H
#define RPCRDMA_LOOPBACK_H

#include "port_memory.h"
#include "responder.h"

struct rr_loopback {
    struct rr_dialer dialer;
    struct rr_settings settings;
    /* Makes the responder's port another one that uses it; for tests that make it err. */
    struct rr_port *(*wrap)(struct rr_port *port, void *arg);
    void *wrap_arg;

    struct rr_pair *pair;
    struct rr_responder *responder;
};

void rr_loopback_init(struct rr_loopback *loopback, const struct rr_settings *settings);
void rr_loopback_clear(struct rr_loopback *loopback);

#endif
