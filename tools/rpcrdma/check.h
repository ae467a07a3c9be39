/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs cases against a server. */
#ifndef RPCRDMA_CHECK_H
#define RPCRDMA_CHECK_H

#include "cases.h"

enum { RR_READY_TRIES = 100, RR_READY_SILENT = 3 };

struct rr_check_run {
    struct rr_check_options options;
    struct rr_dialer *dialer;
    char **only; /* ids of the cases to run; NULL: all */
    struct rr_book *book;
};

/* The case of that id, or NULL. */
const struct rr_case *rr_case_of(const char *id);

/* Runs one case; the verdict's log is the caller's to free (or rr_book_enter() frees it). */
void rr_run_case(const struct rr_check_run *run, const struct rr_case *c,
                 struct rr_verdict *verdict);

/*
 * Waits until the server takes reads, for at most RR_READY_TRIES seconds.  A transport may lose a
 * connection, so one that does not answer is asked RR_READY_SILENT times.
 */
void rr_wait_ready(const struct rr_check_run *run);

/* Runs all that are wanted, and enters them into the book. */
void rr_check_all(struct rr_check_run *run);
unsigned rr_check_count(const struct rr_check_run *run);

/* Is that case among those of --case? */
bool rr_wanted(char **only, const char *id);

/* The cases, a line each. */
void rr_list_cases(GString *out);

#endif
