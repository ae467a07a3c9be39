/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What rpcrdma decode prints: text for people, or one object of JSON a line. */
#ifndef RPCRDMA_REPORT_H
#define RPCRDMA_REPORT_H

#include <glib.h>

#include "track.h"

struct rr_report {
    bool json;
    bool all;     /* transactions without findings too */
    GString *out; /* the caller writes it out and empties it */

    uint64_t connections;
    uint64_t transactions;
    uint64_t unanswered;
    uint64_t broken[RR_RULES];
    uint64_t findings;
};

/* What stands in front of the report of one connection. */
struct rr_who {
    uint64_t number;
    char client[64]; /* "192.0.2.1 port 700" */
    char server[64];
};

void rr_report_connection(struct rr_report *r, const struct rr_who *who,
                          const struct rr_startup *s);
void rr_report_transaction(struct rr_report *r, const struct rr_who *who,
                           const struct rr_transaction *t);
void rr_report_findings(struct rr_report *r, const struct rr_who *who, const struct rr_findings *f);
/* A direction could not be followed to its end. */
void rr_report_broken(struct rr_report *r, const struct rr_who *who, enum rr_dir dir,
                      const char *why);

struct rr_totals {
    uint64_t frames;
    uint64_t others;     /* connections that are not RPC-over-RDMA */
    uint64_t unknown;    /* connections whose start is not in the capture */
    uint64_t incomplete; /* directions that could not be followed to their end */
};

void rr_report_summary(struct rr_report *r, const struct rr_totals *t);

#endif
