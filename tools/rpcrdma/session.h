/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A requester that examines a responder: one connection of one case, what it lends to the peer,
 * what it sends, and the judgement of what comes.
 */
#ifndef RPCRDMA_SESSION_H
#define RPCRDMA_SESSION_H

#include <glib.h>

#include "port.h"
#include "responder.h"
#include "rules.h"
#include "service.h"
#include "verdict.h"

enum rr_session_limits {
    RR_LOANS_MAX = 16,
    RR_LOAN_ROOM = 1024 * 1024, /* octets of one loan */
    RR_ASKED_CREDITS = 32,
    RR_FILL = 0xa5,      /* what lent memory holds before the peer writes */
    RR_REPLY_MS = 10000, /* default: how long a Reply may take */
    RR_QUIET_MS = 300,   /* default: how long silence is listened to */
};

/* What all cases of a run share. */
struct rr_check_options {
    const struct rr_service *service;
    struct rr_service nfs; /* with the file's name */
    enum rr_edition edition;
    bool any_edition; /* none was named: RFC 8166, and both forms of returned chunks */
    unsigned reply_ms, quiet_ms;
    struct sg_span private_data; /* of cases that are not about private data; empty: ours */
};

struct rr_session {
    const struct rr_check_options *o;
    struct rr_dialer *dialer;
    struct rr_verdict *verdict;
    enum rr_rule rule;    /* of the case */
    struct rr_port *port; /* NULL: not connected */
    struct rr_private ours, theirs;
    uint32_t call_threshold, reply_threshold;
    uint32_t xid;     /* of the newest Call */
    uint32_t granted; /* by the newest message; before: 1.  A server may err, and grant 0 */
    bool ended;       /* the peer has ended the connection */
    struct rr_region out;
    struct rr_region loan[RR_LOANS_MAX];
    uint32_t loan_xid[RR_LOANS_MAX]; /* of the Call that it was lent for */
    unsigned loans;

    /* The Call that is being made. */
    struct rr_request request;
    struct rr_stream stream;
    struct rr_header call;
    unsigned reduced; /* a bit for each argument in a Read chunk */
    bool whole;       /* the stream is in the chunk with Position 0 */

    /* The message that came last. */
    struct rr_header reply;
    struct rr_rpc rpc;
    enum rr_fault fault;
    bool has_stream;
    uint8_t body[RR_STREAM_ROOM]; /* the Reply's stream, as it came: reduced */
    size_t body_len;
};

enum rr_heard {
    RR_HEARD_MESSAGE,
    RR_HEARD_NOTHING,
    RR_HEARD_END, /* the connection is over */
};

__attribute__((format(printf, 2, 3))) void rr_note(struct rr_session *s, const char *format, ...);
/* The tool itself fails; false, for the caller to return. */
__attribute__((format(printf, 2, 3))) bool rr_trouble(struct rr_session *s, const char *format,
                                                      ...);

/* ---- The connection ---- */

/* Octets of private data as they are; NULL: those of `ours`. */
struct rr_opening {
    struct rr_private ours;
    const struct sg_span *octets;
};

/* Without a connection; the arguments stay the caller's. */
struct rr_session *rr_session_new(const struct rr_check_options *options, struct rr_dialer *dialer,
                                  struct rr_verdict *verdict, enum rr_rule rule);
/* Hangs up as well. */
void rr_session_free(struct rr_session *s);
/* Without R: invalidation is the subject of one case, not of all. */
struct rr_opening rr_opening_default(void);
bool rr_open(struct rr_session *s, const struct rr_opening *opening);
/* As in all cases that are not about private data: those of the options, or ours. */
bool rr_open_usual(struct rr_session *s);
void rr_hang_up(struct rr_session *s);

/* Memory for the peer, filled with RR_FILL; NULL: rr_trouble(). */
struct rr_region *rr_lend(struct rr_session *s, size_t len, unsigned access);

/* ---- A Call ---- */

/* A new Call with the next XID, RDMA_MSG, without chunks; false: the service has no such Call. */
bool rr_begin(struct rr_session *s, struct rr_request request);
/* The stream goes into a Read chunk at Position 0, in segments of @piece octets (0: one). */
bool rr_make_long(struct rr_session *s, size_t piece);
/* The eligible argument goes into a Read chunk, in segments of @piece octets, with pad or not. */
bool rr_reduce(struct rr_session *s, size_t piece, bool pad);
/* A Write chunk (or the Reply chunk) of @len octets in segments of @piece (0: one). */
bool rr_offer(struct rr_session *s, size_t len, size_t piece, bool reply);
/* Octets of the Send as it would be now. */
size_t rr_call_octets(struct rr_session *s);

bool rr_send(struct rr_session *s);
/* These octets, whatever they are. */
bool rr_send_octets(struct rr_session *s, struct sg_span octets, const char *what);

/* ---- What comes ---- */

/* Waits for a message; s->reply, s->fault and so on describe it. */
enum rr_heard rr_hear(struct rr_session *s, unsigned ms);
/* Waits for the Reply of the newest Call, and judges it; false: no Reply with results. */
bool rr_expect_reply(struct rr_session *s);
/* The Reply is there already. */
bool rr_judge_reply(struct rr_session *s);
/* Waits for an RDMA_ERROR that answers that message; then a NULL call must be answered. */
void rr_expect_error(struct rr_session *s, enum rr_rule rule, uint32_t xid, uint32_t vers,
                     enum rr_err err);
/*
 * The newest Call cannot be executed: RDMA_ERROR, or an RPC Reply that reports no success.  If the
 * server @may_end the connection, it need not answer.  What is behind the answer is not looked at.
 */
void rr_expect_refusal(struct rr_session *s, enum rr_rule rule, bool may_end);
/* Nothing may come; then a NULL call must be answered. */
void rr_expect_silence(struct rr_session *s, enum rr_rule rule);
/* A NULL call, judged: is the connection still of use? */
bool rr_null(struct rr_session *s);

/* The results of the Reply that was judged; false: a finding says why there are none. */
bool rr_results(struct rr_session *s, struct rr_results *results);
/* Octets of result @n, wherever they are; @to has room for @len. */
bool rr_result_octets(struct rr_session *s, const struct rr_results *results, unsigned n,
                      uint8_t *to, uint32_t len);

#endif
