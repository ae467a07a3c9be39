/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connections of a requester in this process (port_memory.h): a client that always comes back. */
#ifndef RPCRDMA_LOOPBACK_CLIENT_H
#define RPCRDMA_LOOPBACK_CLIENT_H

#include "client.h"
#include "port_memory.h"
#include "requester.h"

struct rr_client_loopback {
    struct rr_acceptor acceptor;
    struct rr_requester_settings settings;
    /* Makes the requester's port another one that uses it; for tests that make it err. */
    struct rr_port *(*wrap)(struct rr_port *port, void *arg);
    void *wrap_arg;

    struct rr_pair *pair;
    struct rr_requester *requester;
    struct rr_requester_counts before; /* of earlier connections, together */
};

void rr_client_loopback_init(struct rr_client_loopback *loopback,
                             const struct rr_requester_settings *settings);
void rr_client_loopback_clear(struct rr_client_loopback *loopback);

#endif
