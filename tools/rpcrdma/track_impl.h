/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by track.c (messages) and placement.c (Writes, Reads). */
#ifndef RPCRDMA_TRACK_IMPL_H
#define RPCRDMA_TRACK_IMPL_H

#include <glib.h>

#include "track.h"

/* The XID of the last message of some kind that must not be answered. */
struct last_xid {
    bool seen;
    uint32_t xid;
};

/* One direction of the connection. */
struct rr_way {
    /* The Send whose segments come in. */
    GByteArray *message;
    bool first_seen; /* the ready-to-receive message, if there is one, is over */
    uint64_t messages;

    /* As the caller: */
    bool calls;   /* has sent a Call */
    bool granted; /* a Reply was seen */
    uint32_t grant, grant_before;
    unsigned open; /* Calls without a Reply */

    /* As the sender of what must not be answered: */
    struct last_xid runt, done, error, bad_reply;

    bool closed;
    GArray *reads; /* RDMA Read Requests of this direction, struct sg_read_req */
};

struct rr_track {
    const struct rr_track_ops *ops;
    void *opaque;
    struct rr_startup startup;
    bool incomplete;
    struct rr_way way[2];
    GQueue open; /* of struct rr_transaction, oldest first */
};

/* A segment of an open transaction that @stag and @to lie in. */
struct spot {
    struct rr_transaction *t;
    unsigned index;  /* in call->read or call->segment */
    uint64_t offset; /* in that segment */
};

void rr_place_write(struct rr_track *t, enum rr_dir dir, const struct sg_ddp_hdr *ddp,
                    struct sg_span payload);
void rr_place_read_request(struct rr_track *t, enum rr_dir dir, struct sg_span payload);
void rr_place_read_response(struct rr_track *t, enum rr_dir dir, const struct sg_ddp_hdr *ddp,
                            struct sg_span payload);
/* Returned lengths against what was placed; RPC-15, RPC-16, RPC-34. */
void rr_place_check(struct rr_findings *f, const struct rr_transaction *x);

#endif
