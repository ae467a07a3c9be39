/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between requester.c (the connection) and workload.c (Calls and their results). */
#ifndef RPCRDMA_REQUESTER_IMPL_H
#define RPCRDMA_REQUESTER_IMPL_H

#include "echo.h"
#include "requester.h"

enum { RR_JOB_ROOM = 24 * 1024 }; /* octets that one Call lends */

/* One Call: its chunks lie in one region. */
struct rr_job {
    bool open;
    unsigned kind;
    int64_t since; /* ms */
    struct rr_header call;
    bool whole; /* the stream is in the region, at Position 0 */
    struct rr_region lent;
    uint32_t offset, count; /* arguments */
};

struct rr_requester {
    struct rr_requester_settings settings;
    struct rr_port *port;
    struct rr_private ours, theirs;
    uint32_t call_threshold, reply_threshold;
    uint32_t xid, grant;
    uint64_t made;
    bool stopped;
    unsigned open;
    struct rr_job job[RR_AT_ONCE_MAX];
    struct rr_region send;
    struct rr_header reply;
    struct rr_stream *stream;
    struct rr_echo_memory memory; /* of the program here, which the other side may call */
    struct rr_echo_memory remote; /* of the program there: what READ has to bring */
    struct rr_requester_counts counts;
};

/* Makes the next Call of the mixture in @job and its inline part in q->stream. */
bool rr_job_make(struct rr_requester *q, struct rr_job *job);

enum rr_job_end {
    RR_JOB_ANSWERED,
    RR_JOB_REFUSED,
    RR_JOB_WRONG,
    RR_JOB_BAD_REPLY, /* the Reply is not sound: to be dropped */
};

/* What the Reply in q->reply says; @payload follows its header. */
enum rr_job_end rr_job_end(struct rr_requester *q, const struct rr_job *job,
                           struct sg_span payload);

#endif
