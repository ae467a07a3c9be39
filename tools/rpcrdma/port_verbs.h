/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ports on libibverbs and librdmacm: any RDMA device that the RDMA connection manager knows. */
#ifndef RPCRDMA_PORT_VERBS_H
#define RPCRDMA_PORT_VERBS_H

#include "port.h"

/* How long the connection manager may take for a step. */
enum { RR_CONNECT_LIMIT_MS = 10000 };

struct rr_verbs_dialer {
    struct rr_dialer dialer;
    const char *host;
    char service[8]; /* port */
};

void rr_verbs_dialer_init(struct rr_verbs_dialer *dialer, const char *host, unsigned port);

struct rr_listener;

/* NULL: @why (RR_WHY octets) says why. */
struct rr_listener *rr_listen(const char *address, unsigned port, char *why);
void rr_listener_free(struct rr_listener *listener);

/* The next client, within the time; NULL: nobody came, or @why is not empty. */
struct rr_port *rr_accept(struct rr_listener *listener, const struct rr_port_side *side,
                          unsigned ms, char *why);

#endif
