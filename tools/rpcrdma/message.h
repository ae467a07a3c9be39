/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules that one message keeps or breaks by itself, or together with its own RPC message.  They
 * depend on nothing that happened before, except for the inline threshold.
 */
#ifndef RPCRDMA_MESSAGE_H
#define RPCRDMA_MESSAGE_H

#include "rpc.h"
#include "rules.h"

enum rr_kind {
    RR_IS_CALL,
    RR_IS_REPLY,
    RR_IS_ERROR,
};

struct rr_message {
    const struct rr_header *h;
    enum rr_fault fault;
    enum rr_kind kind;
    size_t len;             /* octets of the Send */
    struct sg_span payload; /* RDMA_MSG: what follows the header */
    uint32_t threshold;     /* of this direction */
};

/* The RPC message in an RDMA_MSG, or nothing. */
struct sg_span rr_payload(struct sg_span message, const struct rr_header *h, enum rr_fault fault);

/* Form, procedure, chunks, length. */
void rr_message_check(struct rr_findings *f, const struct rr_message *m);

/* A Call's chunks against its arguments; @stream is its whole reduced stream. */
void rr_arguments_check(struct rr_findings *f, const struct rr_header *h,
                        const struct rr_call_info *info, struct sg_span stream,
                        uint32_t reply_threshold);

#endif
