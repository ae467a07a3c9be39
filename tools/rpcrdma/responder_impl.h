/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between responder.c, gather.c (a Call's chunks) and scatter.c (a Reply's chunks). */
#ifndef RPCRDMA_RESPONDER_IMPL_H
#define RPCRDMA_RESPONDER_IMPL_H

#include "echo.h"
#include "responder.h"

struct rr_responder {
    struct rr_settings settings;
    struct rr_port *port;
    struct rr_private ours, theirs;
    uint32_t reply_threshold;
    struct rr_counts counts;

    struct rr_header call;
    struct rr_header reply;
    struct rr_region in; /* the Call's unreduced stream, RR_STREAM_ROOM octets */
    size_t in_len;
    struct rr_region out;  /* rr_stream.octets of the Reply */
    struct rr_region send; /* one Send */
    struct rr_stream *stream;
    struct rr_echo_memory memory;
    bool likes_long; /* a Reply goes into its Reply chunk, however short it is */
};

/* How the treatment of a message ended. */
enum rr_outcome {
    RR_ANSWER,     /* go on */
    RR_DROP,       /* silently */
    RR_SAY_VERS,   /* RDMA_ERROR, ERR_VERS */
    RR_SAY_CHUNK,  /* RDMA_ERROR, ERR_CHUNK */
    RR_DISCONNECT, /* the connection is over */
};

/* What a header alone asks for. */
enum rr_outcome rr_examine(const struct rr_responder *r, enum rr_fault fault);

/* Makes the unreduced stream in r->in: the inline part, and what the Read list has. */
enum rr_outcome rr_gather(struct rr_responder *r, struct sg_span payload);

/*
 * Places what goes into Write chunks and the Reply chunk, makes r->reply's lists, and the Send in
 * r->send.
 */
enum rr_outcome rr_scatter(struct rr_responder *r, size_t *len);

#endif
