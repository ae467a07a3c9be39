/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a case of `rpcrdma check` has found, and the reports of a run: text, TAP and JUnit. */
#ifndef RPCRDMA_VERDICT_H
#define RPCRDMA_VERDICT_H

#include <glib.h>
#include <stdarg.h>

#include "port.h"
#include "rules.h"

enum { RR_LOG_LINES = 200 }; /* of one case; further ones are counted */

struct rr_verdict {
    struct rr_findings findings;
    char trouble[RR_WHY]; /* the tool could not go on: no judgement */
    char skipped[RR_WHY]; /* the case does not apply, for this reason */
    GString *log;         /* what was sent and what came, a line each */
    unsigned lines;
};

/* An empty one, with a log; the log is the caller's to free. */
void rr_verdict_init(struct rr_verdict *v);
void rr_verdict_note(struct rr_verdict *v, const char *format, va_list ap);
/* The first trouble stays. */
void rr_verdict_trouble(struct rr_verdict *v, const char *format, va_list ap);

/* For commands that are no check: findings, and why it did not go on; each line has @prefix. */
void rr_verdict_say(GString *out, const struct rr_verdict *v, const char *prefix);

struct rr_book {
    const char *target; /* for people */
    bool tap, verbose;
    GString *out;
    bool (*write)(GString *out); /* after each case, and empties it; may be NULL */
    GString *junit;              /* NULL: no such report */

    unsigned number, passed, failed, skipped, in_trouble;
};

void rr_book_open(struct rr_book *b, unsigned count);
/* A case that is over; frees the verdict's log. */
void rr_book_enter(struct rr_book *b, const char *id, const char *text, struct rr_verdict *v,
                   double seconds);
void rr_book_close(struct rr_book *b);

#endif
