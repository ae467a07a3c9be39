/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs cases against a server, and reports them as text, TAP and JUnit. */
#ifndef RPCRDMA_CHECK_H
#define RPCRDMA_CHECK_H

#include "cases.h"

enum { RR_READY_TRIES = 100 };

struct rr_check_run {
    struct rr_check_options options;
    struct rr_dialer *dialer;
    const char *target; /* for people */
    char **only;        /* ids of the cases to run; NULL: all */
    bool tap, verbose;
    GString *out;
    bool (*write)(GString *out); /* after each case, and empties it; may be NULL */
    GString *junit;              /* NULL: no such report */

    unsigned passed, failed, skipped, in_trouble;
};

/* The case of that id, or NULL. */
const struct rr_case *rr_case_of(const char *id);

/* Runs one case; the verdict's log is the caller's to free. */
void rr_run_case(const struct rr_check_run *run, const struct rr_case *c,
                 struct rr_verdict *verdict);

/* Waits until the server takes reads, for at most RR_READY_TRIES seconds. */
void rr_wait_ready(const struct rr_check_run *run);

/* Runs all that are wanted. */
void rr_check(struct rr_check_run *run);

/* The cases, a line each. */
void rr_list_cases(GString *out);

#endif
