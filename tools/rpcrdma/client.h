/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server's side of a connection with a client that is examined.  It relays: Calls go to an
 * upstream, Replies come back from there, with chunks on the client's side.  Callbacks of the
 * upstream go to the client, and their Replies back (RFC 8167).  All that the client sends is
 * judged; a case holds back, alters or replaces what the client gets.
 *
 *   rr_client_turn()     one step: what has come from either side
 *   rr_client_victim()   relays until a Call of some kind can be answered, and keeps that
 *   rr_client_answer()   the sound Reply to it
 */
#ifndef RPCRDMA_CLIENT_H
#define RPCRDMA_CLIENT_H

#include "message.h"
#include "responder_impl.h"
#include "upstream.h"
#include "verdict.h"

enum rr_client_limits {
    RR_PENDING_MAX = 256,      /* Calls that are open at once; the connection ends at more */
    RR_CLIENT_CREDITS = 32,    /* granted, unless a case grants otherwise */
    RR_CLIENT_WAIT_MS = 30000, /* default: for a connection, and for a Call that a case needs */
    RR_CLIENT_QUIET_MS = 300,  /* default: how long silence is listened to */
    RR_CLIENT_TURN_MS = 1,
    RR_ROUTINE_LINES = 16, /* of the log, until something is done that is not routine */
    RR_REVERSE_MAX = 16,   /* Calls to the client that are open at once */
};

/* Where connections of clients come from. */
struct rr_acceptor {
    /* NULL: nobody came within the time. */
    struct rr_port *(*accept)(struct rr_acceptor *acceptor, const struct rr_port_side *side,
                              unsigned ms);
    char why[RR_WHY]; /* of the last connection that could not be accepted */
};

struct rr_client_options {
    struct rr_acceptor *acceptor;
    const struct rr_source *source;
    unsigned wait_ms, quiet_ms;
    gint64 (*now)(
        void); /* microseconds; NULL: the monotonic clock.  Tests have one of their own. */
};

/* A Call that the client waits for. */
struct rr_pending {
    struct rr_header call;
    struct rr_rpc rpc;
    struct rr_call_info info;
    GByteArray *stream; /* unreduced */
    GByteArray *reply;  /* the upstream's answer; NULL: none yet */
    gint64 since;       /* microseconds */
};

/* A Call to the client. */
struct rr_reverse {
    uint32_t xid;
    bool relayed; /* the Reply is the upstream's */
    bool answered;
    bool accepted; /* executed by the client */
};

struct rr_client {
    const struct rr_client_options *o;
    struct rr_verdict *verdict;
    enum rr_rule rule; /* of the case */
    unsigned routine;  /* lines of the log that relayed messages may still have */
    struct rr_settings settings;
    struct rr_port *port; /* NULL: not connected */
    struct rr_responder *codec;
    struct rr_upstream *upstream;
    uint32_t call_threshold;
    unsigned connections; /* so far */
    bool over;            /* there is no connection, it has ended, or there is no upstream */
    bool ours;            /* we have ended it, and the verdict says why */

    GQueue open;      /* of struct rr_pending, oldest first */
    uint64_t calls;   /* that came */
    uint64_t replies; /* that went out */
    unsigned most_open;

    /* Credits: the newest grant, and the one that the client may still believe in. */
    uint32_t credits; /* of the next Reply */
    uint32_t grant, grant_before;
    gint64 lowered_at;

    /* Held back by a case: */
    bool hold; /* all answers */
    bool (*wants)(const struct rr_client *c, const struct rr_pending *p);
    struct rr_pending *victim;

    /* Calls to the client. */
    struct rr_reverse reverse[RR_REVERSE_MAX];
    unsigned reverses;
    bool own_calls;           /* a case makes Calls: those of the upstream wait */
    GQueue waiting;           /* of GBytes: Calls of the upstream that cannot go yet */
    uint32_t reverse_grant;   /* by its newest Reply, at most RR_REVERSE_MAX; 0: none yet */
    uint32_t callback;        /* the program; 0: it has announced none */
    struct rr_header message; /* that is made here */
    unsigned arg;             /* of the case */
};

__attribute__((format(printf, 2, 3))) void rr_client_note(struct rr_client *c, const char *format,
                                                          ...);
/* Likewise, of a message that is only relayed. */
__attribute__((format(printf, 2, 3))) void rr_client_routine(struct rr_client *c,
                                                             const char *format, ...);
__attribute__((format(printf, 2, 3))) bool rr_client_trouble(struct rr_client *c,
                                                             const char *format, ...);
/*
 * The connection has ended, or a message could not be sent.  That breaks the case's rule, unless it
 * was our doing, or trouble of our own, which the verdict then has already.  False.
 */
bool rr_client_lost(struct rr_client *c);
/* Memory of the client cannot be read or written: a breach, unless the client has left before. */
void rr_client_unreachable(struct rr_client *c, enum rr_rule rule, const char *what);
/* We end the connection; the verdict has the finding that says why. */
void rr_client_end(struct rr_client *c);
/* We end it because something here fails; false. */
__attribute__((format(printf, 2, 3))) bool rr_client_fails(struct rr_client *c, const char *format,
                                                           ...);
struct rr_findings *rr_client_findings(struct rr_client *c);
gint64 rr_client_now(const struct rr_client *c);

/* The next client; false: nobody came within the time, or there is no upstream. */
bool rr_client_open(struct rr_client *c, const struct rr_settings *settings);
void rr_client_close(struct rr_client *c);

enum rr_event_kind rr_client_turn(struct rr_client *c, unsigned ms);

/* ---- client_answer.c: what goes to the client ---- */

void rr_pending_free(struct rr_pending *p);
/* The upstream's answer in codec->stream, with its eligible results. */
void rr_client_load(const struct rr_client *c, const struct rr_pending *p);
/*
 * Makes the sound Reply in codec->reply, codec->stream and codec->send; false: an error went, or
 * the connection is over.
 */
bool rr_client_build(struct rr_client *c, struct rr_pending *p, size_t *len);
/* Sends the sound Reply; @p is closed.  False: none went; a case then calls rr_client_lost(). */
bool rr_client_answer(struct rr_client *c, struct rr_pending *p);
/* Likewise, as a Send with Invalidate of the STag.  Only for who sets R, as we do. */
bool rr_client_answer_inv(struct rr_client *c, struct rr_pending *p, uint32_t stag);
/* Closes @p without a Reply, or after one that a case has made. */
void rr_client_forget(struct rr_client *c, struct rr_pending *p);
bool rr_client_send(struct rr_client *c, struct sg_span octets, const char *what);
/* A header, and octets behind it. */
bool rr_client_send_message(struct rr_client *c, const struct rr_header *h, struct sg_span rest,
                            const char *what);
/* What the client may count with from now on. */
void rr_client_granted(struct rr_client *c, uint32_t credits);
/* How many Calls a client may have open now. */
uint32_t rr_client_allowed(const struct rr_client *c);
/* Answers all that was held back. */
void rr_client_release(struct rr_client *c);

/* ---- client_reverse.c: Calls to the client ---- */

/*
 * An RPC Call of ours or of the upstream.  False: it could not be sent; if it is ours, trouble says
 * why, or the connection has ended.
 */
bool rr_client_call(struct rr_client *c, struct sg_span message, bool relayed);
/* One of the upstream goes out now, waits for a credit, or is left out. */
void rr_client_relay_call(struct rr_client *c, struct sg_span message);
/* Those that wait go out, as far as there are credits for them. */
void rr_client_relay_waiting(struct rr_client *c);
/* A Reply of the client. */
void rr_client_replied(struct rr_client *c, const struct rr_header *h, enum rr_fault fault,
                       struct sg_span octets);
/* Learns the program of callbacks from CREATE_SESSION. */
void rr_client_learn(struct rr_client *c, const struct rr_pending *p);
/* An RDMA_ERROR of the client; false: no open Call to the client has its XID. */
bool rr_client_refused(struct rr_client *c, const struct rr_header *h);

/* ---- client_wait.c: waiting ---- */

/* The next Call of that kind, ready to be answered; NULL: the verdict says why not. */
struct rr_pending *rr_client_victim(struct rr_client *c,
                                    bool (*wants)(const struct rr_client *c,
                                                  const struct rr_pending *p),
                                    const char *what);
/* Relays for the time of silence; false: the connection ended. */
bool rr_client_stays(struct rr_client *c);
/* Likewise, and that breaks the case's rule (rr_client_lost()). */
bool rr_client_quiet(struct rr_client *c);
/*
 * After the time of silence, in which Calls come that were under way, another Call must come; a
 * client that @may_end the connection may make it on a new one.
 */
bool rr_client_goes_on(struct rr_client *c, bool may_end);
/* The sound Reply to @p, and then another Call. */
void rr_client_answer_and_go_on(struct rr_client *c, struct rr_pending *p);
/* Relays until so many more Calls were answered; false: trouble says why they were not. */
bool rr_client_relay(struct rr_client *c, unsigned calls);
/* Likewise, but one is enough when the time is over; what follows shows whether it was the last. */
bool rr_client_settle(struct rr_client *c, unsigned calls);

#endif
