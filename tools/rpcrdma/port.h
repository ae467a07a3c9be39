/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One RDMA connection, as the requester and the responder of this tool use it.  There are two
 * implementations: port_verbs.c on libibverbs and librdmacm, and port_memory.c, a pair of ports in
 * one process.
 *
 * A port has posted its receives before it is connected.  A work request is posted, and the call
 * returns when it is complete.  Remote offsets are addresses of the peer's process.
 */
#ifndef RPCRDMA_PORT_H
#define RPCRDMA_PORT_H

#include <stdarg.h>
#include <stdio.h>

#include "private_data.h"

enum rr_port_limits {
    RR_RECEIVES_MAX = 256,
    RR_REGIONS_MAX = 64,     /* registered at once */
    RR_PRIVATE_ROOM = 148,   /* private data that we send: what RDMA-CM passes on iWARP */
    RR_PRIVATE_PEER = 255,   /* private data that we keep of a peer */
    RR_WHY = 160,            /* octets of a text that says why something failed */
    RR_WORK_LIMIT_MS = 5000, /* a work request that takes longer has failed */
};

enum rr_access {
    RR_MAY_READ = 1,  /* the peer, by RDMA Read */
    RR_MAY_WRITE = 2, /* the peer, by RDMA Write; also the sink of our own RDMA Reads */
};

struct rr_region {
    uint8_t *octets;
    size_t len;
    unsigned access; /* enum rr_access; 0: only we ourselves */
    uint32_t stag;   /* by reg() */
    bool valid;      /* registered, and not invalidated by the peer */
    void *own;       /* of the implementation */
};

enum rr_work {
    RR_WORK_SEND,
    RR_WORK_SEND_INV, /* Send with Invalidate of @stag */
    RR_WORK_WRITE,
    RR_WORK_READ,
};

struct rr_post {
    enum rr_work work;
    const struct rr_region *local;
    size_t at, len; /* in @local */
    uint32_t stag;  /* of the peer */
    uint64_t offset;
};

enum rr_event_kind {
    RR_EVENT_NONE, /* nothing within the time */
    RR_EVENT_RECEIVED,
    RR_EVENT_CLOSED,
};

struct rr_event {
    struct sg_span octets; /* until the slot is posted again */
    unsigned slot;
    bool invalidated; /* it was a Send with Invalidate ... */
    uint32_t stag;    /* ... of this STag, or 0 if the implementation does not tell */
};

struct rr_port;

struct rr_port_ops {
    /* False: port->why says why, and the connection may be over. */
    bool (*post)(struct rr_port *port, const struct rr_post *post);
    bool (*repost)(struct rr_port *port, unsigned slot);
    bool (*reg)(struct rr_port *port, struct rr_region *region);
    /* False: the peer may still reach the memory, until the connection ends. */
    bool (*dereg)(struct rr_port *port, struct rr_region *region);
    enum rr_event_kind (*poll)(struct rr_port *port, unsigned ms, struct rr_event *event);
    /* Ends the connection and frees the port. */
    void (*close)(struct rr_port *port);
};

struct rr_port {
    const struct rr_port_ops *ops;
    uint8_t peer[RR_PRIVATE_PEER]; /* the peer's private data */
    size_t peer_len;
    bool eager; /* waits without sleeping, for measurements */
    bool gone;  /* RDMA Read or Write: the connection ended before it was posted, or under it */
    char why[RR_WHY];
};

/* What a side brings to a connection. */
struct rr_port_side {
    uint8_t private_data[RR_PRIVATE_ROOM];
    size_t private_len;
    unsigned receives;   /* 1 .. RR_RECEIVES_MAX */
    size_t receive_size; /* octets of each */
};

/* Makes connections to one peer. */
struct rr_dialer {
    struct rr_port *(*dial)(struct rr_dialer *dialer, const struct rr_port_side *side);
    bool invalidates; /* the peer can invalidate what ports lend; known after a first dial() */
    char why[RR_WHY]; /* why dial() returned NULL */
};

__attribute__((format(printf, 2, 3))) static inline bool rr_port_fails(struct rr_port *port,
                                                                       const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(port->why, sizeof(port->why), format, ap);
    va_end(ap);
    return false;
}

#endif
