/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many Calls of one kind a server answers in a second, with several of them open at once. */
#ifndef RPCRDMA_BENCH_H
#define RPCRDMA_BENCH_H

#include "session.h"

struct rr_rate {
    double per_second;
    unsigned depth; /* Calls that were open at once, at most: no more than are granted */
};

/*
 * Makes the Call again and again for that time; a READ has one Write chunk, whose memory all Calls
 * share.  False: the session's verdict says why.  It may have findings in either case.
 */
bool rr_bench(struct rr_session *s, struct rr_request request, unsigned depth, double seconds,
              struct rr_rate *rate);

#endif
