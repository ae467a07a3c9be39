/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An RPC message that is made here: XDR by libtirpc, and which of its items may go into chunks.
 * The stream is the unreduced one.
 */
#ifndef RPCRDMA_STREAM_H
#define RPCRDMA_STREAM_H

#include "rpc.h"

enum rr_stream_limits {
    RR_STREAM_ROOM = 1152 * 1024, /* NFS of Linux: 1 MiB of data, and what is around it */
    RR_STREAM_ITEMS = 2,
};

struct rr_stream {
    size_t len;
    bool full; /* something did not fit; the stream is useless */
    unsigned items;
    struct rr_reducible {
        uint32_t at;  /* where its octets begin, after the word with their count */
        uint32_t len; /* without pad */
    } item[RR_STREAM_ITEMS];
    uint8_t octets[RR_STREAM_ROOM];
};

/* An empty stream; then the head of a Call or of an accepted Reply. */
void rr_stream_call(struct rr_stream *s, uint32_t xid, uint32_t prog, uint32_t vers, uint32_t proc);
/* Likewise, with credentials AUTH_SYS of user 0: a machine name of @name octets, no groups. */
void rr_stream_call_sys(struct rr_stream *s, uint32_t xid, uint32_t prog, uint32_t vers,
                        uint32_t proc, size_t name);
void rr_stream_reply(struct rr_stream *s, uint32_t xid, uint32_t accept_stat);

void rr_put_word(struct rr_stream *s, uint32_t word);
void rr_put_hyper(struct rr_stream *s, uint64_t hyper);
/* Octets with their pad, and without a count. */
void rr_put_fixed(struct rr_stream *s, struct sg_span octets);
/* With a count. */
void rr_put_counted(struct rr_stream *s, struct sg_span octets);
/* With a count, and DDP-eligible. */
void rr_put_eligible(struct rr_stream *s, struct sg_span octets);

/* A reader of words; past the end it gives zeros, and *fine becomes false. */
struct rr_reader {
    struct sg_span in;
    size_t at;
    bool fine;
};

uint32_t rr_get_word(struct rr_reader *r);
/* Skips octets and their pad. */
void rr_skip(struct rr_reader *r, size_t octets);

#endif
