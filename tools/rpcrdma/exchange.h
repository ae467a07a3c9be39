/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules that a Reply keeps or breaks together with its Call. */
#ifndef RPCRDMA_EXCHANGE_H
#define RPCRDMA_EXCHANGE_H

#include "message.h"

struct rr_exchange {
    const struct rr_header *call;
    const struct rr_header *reply;
    const struct rr_rpc *call_rpc;   /* NULL: not known */
    const struct rr_rpc *reply_rpc;  /* NULL: not known */
    const struct rr_call_info *info; /* NULL: not known */
    struct sg_span stream;           /* the reduced stream of the Reply, or its beginning */
    bool whole;                      /* all of it */
};

/* The Write list and the Reply chunk that come back. */
void rr_chunks_check(struct rr_findings *f, const struct rr_exchange *e);

/* The results of known procedures. */
void rr_results_check(struct rr_findings *f, const struct rr_exchange *e);

/*
 * An RDMA_ERROR against what it answers: @fault and @h of that message.  RPC-36, RPC-38, RPC-39.
 */
void rr_error_check(struct rr_findings *f, const struct rr_header *h, enum rr_fault fault,
                    const struct rr_header *error);

#endif
