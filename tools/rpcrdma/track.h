/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RPC-over-RDMA on one connection: transactions, what was placed into their chunks, credits and
 * remote invalidation, and the rules that all of this breaks.
 *
 * Either side may call: NFS version 4.1 sends callbacks on the client's connection (RFC 8167).  So
 * Calls, grants and XIDs exist once for each direction.
 */
#ifndef RPCRDMA_TRACK_H
#define RPCRDMA_TRACK_H

#include "exchange.h"
#include "iwarp.h"
#include "private_data.h"

enum rr_track_limits {
    RR_OPEN_MAX = 4096,           /* transactions without a Reply */
    RR_MESSAGE_MAX = RR_SIZE_MAX, /* octets of a Send */
    RR_LONG_KEPT = 4096,          /* octets kept of a Long Call or a Long Reply */
    RR_READ_REQUESTS_MAX = 4096,  /* RDMA Reads without a Response */
};

/* What was placed into, or read from, one segment of a chunk. */
struct rr_place {
    uint64_t octets;
    unsigned segments; /* of DDP */
};

struct rr_transaction {
    enum rr_dir caller;
    struct rr_header *call;
    enum rr_fault fault; /* of the Call's header */
    size_t call_len;
    const struct rr_header *reply; /* NULL: none was seen */
    size_t reply_len;
    const char *name; /* of the procedure; never NULL */
    bool invalidates;
    uint32_t invalidated;     /* STag */
    struct rr_place *read;    /* as call->read */
    struct rr_place *written; /* as call->segment */
    struct rr_findings findings;

    /* The tracker's own. */
    uint8_t *stream; /* the Call's reduced stream, or its beginning */
    size_t stream_len, stream_whole;
    uint8_t *long_reply; /* the beginning of what was placed into the Reply chunk */
    uint64_t answers;    /* messages of the other side before this Call */
};

struct rr_startup {
    struct sg_mpa_frame request, reply;
    struct rr_private client, server;
    uint32_t threshold[2]; /* by direction of the message */
};

struct rr_track_ops {
    /* A transaction is over; it has no reply if the connection ended before. */
    void (*transaction)(void *opaque, const struct rr_transaction *t);
    /* Findings that belong to no transaction. */
    void (*findings)(void *opaque, const struct rr_findings *f);
};

struct rr_track;

struct rr_track *rr_track_new(const struct rr_track_ops *ops, void *opaque,
                              const struct rr_startup *startup);
void rr_track_segment(struct rr_track *t, enum rr_dir dir, const struct sg_ddp_hdr *ddp,
                      uint8_t opcode, struct sg_span payload);
/* From here on messages may be missing: no verdicts about what is open. */
void rr_track_incomplete(struct rr_track *t);
void rr_track_closed(struct rr_track *t, enum rr_dir dir);
/* Reports what is open, and frees everything. */
void rr_track_free(struct rr_track *t);

#endif
