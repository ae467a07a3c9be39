/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many Calls of one kind a server answers in a second, with several of them open at once. */
#ifndef RPCRDMA_BENCH_H
#define RPCRDMA_BENCH_H

#include "session.h"

/*
 * Makes the Call again and again for that time; a READ has one Write chunk, whose memory all Calls
 * share.  False: the session's verdict says why.
 */
bool rr_bench(struct rr_session *s, struct rr_request request, unsigned depth, double seconds,
              double *per_second);

#endif
