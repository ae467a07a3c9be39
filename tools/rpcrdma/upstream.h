/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What stands behind `rpcrdma check client` and answers the client's Calls: the program echo in
 * this process, or a server over TCP, to which RPC messages are relayed as they are (RFC 5531
 * section 11).  That server may also call: NFS version 4.1 has callbacks on the same connection.
 */
#ifndef RPCRDMA_UPSTREAM_H
#define RPCRDMA_UPSTREAM_H

#include "port.h"
#include "stream.h"

enum rr_upstream_limits {
    RR_UPSTREAM_LIMIT_MS = 5000, /* for connecting, and for a message to be taken */
};

enum rr_upstream_kind {
    RR_UPSTREAM_NOTHING,
    RR_UPSTREAM_MESSAGE,
    RR_UPSTREAM_END, /* upstream->why says why */
};

struct rr_upstream {
    /* A whole RPC message; false: the end, and `why` says why. */
    bool (*send)(struct rr_upstream *upstream, struct sg_span message);
    /* Does not wait; the message is valid until the next call. */
    enum rr_upstream_kind (*poll)(struct rr_upstream *upstream, struct sg_span *message);
    void (*close)(struct rr_upstream *upstream);
    char why[RR_WHY];
};

/* Opens an upstream for each client; NULL: @why (RR_WHY octets) says why. */
struct rr_source {
    struct rr_upstream *(*open)(const struct rr_source *source, char *why);
    const char *host, *service; /* TCP */
};

extern const struct rr_source rr_source_echo;
struct rr_source rr_source_tcp(const char *host, const char *service);

/* Finds the DDP-eligible results of a Reply, in the streams of Call and Reply as they are. */
void rr_results_find(struct rr_stream *reply, struct sg_span call);

#endif
