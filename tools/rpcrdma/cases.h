/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a server is examined with: each case on a connection of its own. */
#ifndef RPCRDMA_CASES_H
#define RPCRDMA_CASES_H

#include "session.h"

struct rr_case {
    const char *id;
    const char *text;  /* what a sound server does */
    enum rr_rule rule; /* that is broken if a sound Call has no Reply */
    /* The connection is open, unless @dials is set: then the case opens its own. */
    void (*run)(struct rr_session *s);
    bool dials;
};

struct rr_cases {
    const struct rr_case *cases;
    unsigned count;
};

extern const struct rr_cases rr_cases_message; /* Calls without chunks; credits; thresholds */
extern const struct rr_cases rr_cases_call;    /* chunks of Calls: long Calls, arguments */
extern const struct rr_cases rr_cases_reply;   /* chunks of Replies: results, long Replies */
extern const struct rr_cases rr_cases_error;   /* messages that are not sound */
extern const struct rr_cases rr_cases_field;   /* sound XDR, with a field that is not true */
extern const struct rr_cases rr_cases_private; /* private data */

#endif
