/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two connected ports in one process, for tests and for `check self`.  Memory is reached through
 * STags, with the checks of an adapter: a wrong STag, range or right, a Send without a receive and
 * a Send that is longer than its receive end the connection.
 *
 * There is no time: poll() of the first port lets the second side work, and then says at once
 * whether something came.
 */
#ifndef RPCRDMA_PORT_MEMORY_H
#define RPCRDMA_PORT_MEMORY_H

#include "port.h"

struct rr_pair;

struct rr_pair *rr_pair_new(const struct rr_port_side *first, const struct rr_port_side *second);
void rr_pair_free(struct rr_pair *pair);

/* Side 0 or 1.  close() of a port ends the connection; the pair frees both. */
struct rr_port *rr_pair_port(struct rr_pair *pair, unsigned side);

/* What poll() of side 0 calls when nothing has come. */
void rr_pair_pump(struct rr_pair *pair, void (*pump)(void *arg), void *arg);

#endif
