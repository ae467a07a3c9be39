/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls to the client on its own connection (RFC 8167). */
#include "client_cases.h"

enum { CALLBACK_VERSION = 1, CB_NULL = 0, CB_COMPOUND = 1, UNKNOWN_PROC = 99, AT_ONCE_MAX = 4 };

enum { FIRST_PART = 6 }; /* of the waiting time: nothing but the client's own rules delays it */

/* Makes the Call of that procedure; false: it could not be sent, and the verdict has that. */
static bool call(struct rr_client *c, uint32_t xid, uint32_t proc)
{
    struct rr_stream *s = c->codec->stream;

    if (proc == CB_COMPOUND && c->callback != RR_ECHO) {
        rr_stream_call_sys(s, xid, c->callback, CALLBACK_VERSION, proc, 4);
        rr_put_counted(s, SG_SPAN_NONE); /* tag */
        rr_put_word(s, 1);               /* minor version */
        rr_put_word(s, 0);               /* identifier, for version 4.0 */
        rr_put_word(s, 0);               /* operations */
    } else {
        rr_stream_call(s, xid, c->callback, CALLBACK_VERSION, proc);
        if (proc == RR_ECHO_READ && c->callback == RR_ECHO) {
            rr_put_word(s, 0);
            rr_put_word(s, AT_ONCE_MAX);
        }
    }
    return rr_client_call(c, sg_span_of(s->octets, s->len), false) || rr_client_lost(c);
}

/* Waits until the Calls to the client from number @first on are answered, at most so long. */
static bool answered_within(struct rr_client *c, unsigned first, unsigned ms)
{
    gint64 end = rr_client_now(c) + 1000 * (gint64)ms;
    unsigned open;

    do {
        open = 0;
        for (unsigned i = first; i < c->reverses; i++) {
            open += !c->reverse[i].answered;
        }
        if (!open) {
            return true;
        }
        if (rr_client_turn(c, RR_CLIENT_TURN_MS) == RR_EVENT_CLOSED) {
            return rr_client_lost(c);
        }
    } while (rr_client_now(c) < end);
    rr_find(rr_client_findings(c), c->rule, "%u Calls to the client got no Reply within %u ms",
            open, ms);
    return false;
}

static bool all_answered(struct rr_client *c)
{
    return answered_within(c, 0, c->o->wait_ms);
}

static bool is_any(const struct rr_client *c, const struct rr_pending *p)
{
    return true;
}

/* The next Call of a client that has callbacks; NULL: the verdict says why not. */
static struct rr_pending *next_call(struct rr_client *c, bool (*wants)(const struct rr_client *c,
                                                                       const struct rr_pending *p))
{
    struct rr_pending *p = rr_client_victim(c, wants, "Call");

    if (p && !c->callback) {
        snprintf(c->verdict->skipped, sizeof(c->verdict->skipped),
                 "the client has announced no callbacks on this connection");
        return NULL;
    }
    return p;
}

/*
 * A client with callbacks, which is in the midst of a Call.  It has got a Reply on this connection
 * before: what a client does without one is a case of its own.  Calls of the upstream would take
 * credits: what is open is answered first, and others wait for the case.
 */
static struct rr_pending *midst(struct rr_client *c)
{
    struct rr_pending *p = rr_client_settle(c, 1) ? next_call(c, rr_is_harmless) : NULL;

    c->own_calls = true;
    if (!p || !all_answered(c)) {
        return NULL;
    }
    c->reverses = 0;
    return p;
}

/* What was answered was executed, or was not; Calls of the upstream go on. */
static void judge_executed(struct rr_client *c, bool executed)
{
    for (unsigned i = 0; i < c->reverses; i++) {
        const struct rr_reverse *r = &c->reverse[i];

        if (r->answered && r->accepted != executed) {
            rr_find(rr_client_findings(c), c->rule, "the Call with XID 0x%08x was %sexecuted",
                    r->xid, r->accepted ? "" : "not ");
        }
    }
    c->own_calls = false;
    rr_client_relay_waiting(c);
}

/* All is answered, and the Call in the midst of which it happened goes on. */
static void finish(struct rr_client *c, struct rr_pending *p, bool executed)
{
    if (all_answered(c)) {
        judge_executed(c, executed);
        rr_client_answer_and_go_on(c, p);
    }
}

static void reverse(struct rr_client *c)
{
    struct rr_pending *p = midst(c);

    if (p && call(c, g_random_int(), c->arg)) {
        finish(c, p, c->arg != UNKNOWN_PROC);
    }
}

/*
 * Before the first Reply on a connection.  The client has used the only credit for its own Calls
 * that it has then; that must not keep it from answering those of the server.  Behind the Reply
 * there is no reason left, neither for that Call nor for another one.
 */
static void reverse_first(struct rr_client *c)
{
    unsigned part = c->o->wait_ms / FIRST_PART;
    struct rr_pending *p;

    c->own_calls = c->hold = true;
    p = next_call(c, is_any);
    if (!p || !call(c, g_random_int(), CB_NULL)) {
        return;
    }
    answered_within(c, 0, part);
    rr_client_release(c);
    if (c->over || !rr_client_answer(c, p)) {
        rr_client_lost(c);
        return;
    }
    rr_client_note(c, "the first Reply on the connection is sent");
    answered_within(c, 0, part);
    if (!c->over && call(c, g_random_int(), CB_NULL)) {
        answered_within(c, c->reverses - 1, part);
        judge_executed(c, true);
    }
    if (!c->over) {
        rr_client_goes_on(c, false);
    }
}

/* XIDs are those of the caller: each side may use the same ones. */
static void same_xid(struct rr_client *c)
{
    struct rr_pending *p = midst(c);

    if (p && call(c, p->call.xid, CB_NULL)) {
        finish(c, p, true);
    }
}

/* As many at once as the client grants for this direction. */
static void reverse_credits(struct rr_client *c)
{
    struct rr_pending *p = midst(c);
    uint32_t first = g_random_int(), count;

    if (!p || !call(c, first, CB_NULL) || !all_answered(c)) {
        return;
    }
    count = SG_MIN(c->reverse_grant, AT_ONCE_MAX);
    rr_client_note(c, "the client grants %u; %u Calls at once", c->reverse_grant, count);
    for (uint32_t i = 0; i < count; i++) {
        if (!call(c, first + 1 + i, CB_NULL)) {
            return;
        }
    }
    finish(c, p, true);
}

static const struct rr_client_case cases[] = {
    { "client-reverse-null", "a Call of the server is answered on the connection", RPC_22, reverse,
      .arg = CB_NULL },
    { "client-reverse-call", "likewise one with arguments and results", RPC_22, reverse,
      .arg = CB_COMPOUND },
    { "client-reverse-proc", "an unknown procedure gets an RPC Reply, not RDMA_ERROR", RPC_22,
      reverse, .arg = UNKNOWN_PROC },
    { "client-reverse-xid", "a Call of the server may have the XID of one of the client", RPC_22,
      same_xid },
    { "client-reverse-many", "as many Calls of the server as the client grants", RPC_03,
      reverse_credits },
    /* The last one: Linux's client answers no Call any more on such a connection. */
    { "client-reverse-first", "a Call of the server is answered before the first Reply", RPC_22,
      reverse_first, .fresh = true },
};

const struct rr_client_cases rr_client_cases_reverse = { cases, SG_ARRAY_SIZE(cases) };
