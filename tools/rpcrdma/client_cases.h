/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a client is examined with. */
#ifndef RPCRDMA_CLIENT_CASES_H
#define RPCRDMA_CLIENT_CASES_H

#include "client.h"

struct rr_client_case {
    const char *id;
    const char *text;  /* what a sound client does */
    enum rr_rule rule; /* that is broken if the client ends the connection, or stops */
    void (*run)(struct rr_client *c);
    bool fresh;           /* on a new connection ... */
    uint32_t inline_size; /* ... with this threshold; 0: the default */
    bool no_private;      /* ... without private data of ours */
    bool invalidate;      /* ... with R in it */
    unsigned arg;         /* for run() of several cases */
};

struct rr_client_cases {
    const struct rr_client_case *cases;
    unsigned count;
};

extern const struct rr_client_cases rr_client_cases_sound;   /* Calls, answered as they should be */
extern const struct rr_client_cases rr_client_cases_credits; /* grants */
extern const struct rr_client_cases rr_client_cases_reply;   /* Replies that are sound, but rare */
extern const struct rr_client_cases rr_client_cases_bad;     /* Replies that are not sound */
extern const struct rr_client_cases rr_client_cases_reverse; /* Calls to the client */

/* ---- Kinds of Calls (client_kinds.c) ---- */

/* Nothing of the client's state is lost if it fails: no OPEN, LOCK, CREATE_SESSION and the like. */
bool rr_is_harmless(const struct rr_client *c, const struct rr_pending *p);
/* Harmless, and without any chunk. */
bool rr_is_plain(const struct rr_client *c, const struct rr_pending *p);
/* With a Write chunk that the result fills to some part. */
bool rr_has_result(const struct rr_client *c, const struct rr_pending *p);
/* With a Write chunk of several segments, of which the result leaves some unused. */
bool rr_has_unused_segment(const struct rr_client *c, const struct rr_pending *p);
/* With a Write chunk whose result would fit inline. */
bool rr_has_small_result(const struct rr_client *c, const struct rr_pending *p);
/* With a Reply chunk that the Reply does not need. */
bool rr_has_spare_reply_chunk(const struct rr_client *c, const struct rr_pending *p);
/* With a Reply chunk that the Reply needs. */
bool rr_needs_reply_chunk(const struct rr_client *c, const struct rr_pending *p);
/* With a Reply that a verifier can make exactly as long as the threshold. */
bool rr_can_fill(const struct rr_client *c, const struct rr_pending *p);

/* ---- The run (client_check.c) ---- */

struct rr_client_run {
    struct rr_client_options options;
    char **only; /* ids; NULL: all */
    struct rr_book *book;
};

const struct rr_client_case *rr_client_case_of(const char *id);
void rr_run_client_case(struct rr_client *c, const struct rr_client_case *which,
                        struct rr_verdict *v);
unsigned rr_client_check_count(const struct rr_client_run *run);
void rr_client_check_all(struct rr_client_run *run);
void rr_list_client_cases(GString *out);

#endif
