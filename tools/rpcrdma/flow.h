/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TCP connections in a capture: the octets of each direction in order, once.
 *
 * A connection begins with its SYN, or with a segment that opens MPA startup.  Another SYN between
 * the same ends begins another connection.  A segment that comes early waits, up to RR_WAITING_MAX
 * octets a direction: for octets in front of it, and for those of the other side that it
 * acknowledges.  So a Reply never comes before its Call, however the capture was made.  If the
 * missing octets never come, their direction has a gap and is not followed any further.
 */
#ifndef RPCRDMA_FLOW_H
#define RPCRDMA_FLOW_H

#include "frame.h"

enum rr_flow_limits {
    RR_WAITING_MAX = 4 << 20, /* octets that wait for an earlier segment */
};

/* Directions: from the side that opened the connection, and to it. */
enum rr_dir { RR_OUT = 0, RR_BACK = 1 };

struct rr_flow_ops {
    /* A connection begins; the answer is passed to the other functions. */
    void *(*open)(void *opaque, const struct rr_tcp *first);
    void (*octets)(void *conn, enum rr_dir dir, struct sg_span octets);
    /* Octets are missing from the capture; no more come in this direction. */
    void (*gap)(void *conn, enum rr_dir dir);
    /* This side has closed or reset the connection. */
    void (*closed)(void *conn, enum rr_dir dir);
    /* Nothing more comes. */
    void (*end)(void *conn);
};

struct rr_flows;

struct rr_flows *rr_flows_new(const struct rr_flow_ops *ops, void *opaque);
void rr_flows_input(struct rr_flows *f, const struct rr_tcp *tcp);
/* Connections whose start was not captured. */
uint64_t rr_flows_unknown(const struct rr_flows *f);
/* Ends all connections, in the order in which they began. */
void rr_flows_free(struct rr_flows *f);

#endif
