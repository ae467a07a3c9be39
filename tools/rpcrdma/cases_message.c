/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cases.h"

static const struct rr_request null = { .want = RR_WANT_NULL };

static void one_null(struct rr_session *s)
{
    rr_null(s);
}

/* As many Calls at once as the first Reply grants; each must be answered, in any order. */
static void all_credits(struct rr_session *s)
{
    bool answered[RR_ASKED_CREDITS] = { false };
    uint32_t first, calls;

    if (!rr_null(s)) {
        return;
    }
    calls = SG_MIN(SG_MAX(s->granted, 1), RR_ASKED_CREDITS);
    first = s->xid + 1;
    for (uint32_t i = 0; i < calls; i++) {
        if (!rr_begin(s, null) || !rr_send(s)) {
            rr_find(&s->verdict->findings, RPC_03, "%u of %u granted Calls could be sent", i,
                    calls);
            return;
        }
    }
    for (uint32_t i = 0; i < calls; i++) {
        if (rr_hear(s, s->o->reply_ms) != RR_HEARD_MESSAGE) {
            rr_find(&s->verdict->findings, RPC_03, "%u of %u granted Calls were answered", i,
                    calls);
            return;
        }
        if (s->reply.xid - first >= calls || answered[s->reply.xid - first]) {
            rr_find(&s->verdict->findings, RPC_22, "XID 0x%08x was not open", s->reply.xid);
            return;
        }
        answered[s->reply.xid - first] = true;
    }
}

/* The grant may be larger than what the requester asks for, and is never zero. */
static void ask_for(struct rr_session *s, uint32_t credits)
{
    for (unsigned i = 0; i < 3; i++) {
        if (!rr_begin(s, null)) {
            return;
        }
        s->call.credit = credits;
        if (!rr_send(s) || !rr_expect_reply(s)) {
            return;
        }
    }
}

static void one_credit(struct rr_session *s)
{
    ask_for(s, 1);
}

/* RFC 8166 forbids to grant zero credits, not to ask for them: the header is sound. */
static void no_credits(struct rr_session *s)
{
    ask_for(s, 0);
}

/* XIDs are the requester's: any value, in any order. */
static void any_xid(struct rr_session *s)
{
    static const uint32_t xids[] = { 0, UINT32_MAX, 1, 0x80000000, 0x7fffffff };

    for (size_t i = 0; i < SG_ARRAY_SIZE(xids); i++) {
        s->xid = xids[i] - 1;
        if (!rr_null(s)) {
            return;
        }
    }
}

/*
 * A Call just below 1024 octets.  Unused Write chunks fill it, of no more segments each than any
 * responder should take.
 */
static void full_call(struct rr_session *s)
{
    enum { SEGMENT = 16, CHUNK = 8, PER_CHUNK = 16 };

    if (!rr_begin(s, (struct rr_request){ .want = RR_WANT_LONG_NULL })) {
        return;
    }
    for (unsigned i = 0; rr_call_octets(s) + CHUNK + SEGMENT <= RR_SIZE_MIN; i++) {
        if (i % PER_CHUNK == 0 && !rr_offer(s, SEGMENT, 0, false)) {
            return;
        }
        if (i % PER_CHUNK && !rr_add_segment(&s->call, s->call.segment[s->call.segments - 1])) {
            return;
        }
    }
    rr_note(s, "a Call of %zu octets", rr_call_octets(s));
    if (rr_send(s)) {
        rr_expect_reply(s);
    }
}

static const struct rr_case cases[] = {
    { "null", "a Call without chunks gets its Reply", RPC_22, one_null },
    { "credits", "as many Calls as are granted are answered", RPC_03, all_credits },
    { "one-credit", "a requester that asks for one credit gets at least one", RPC_02, one_credit },
    { "zero-credits", "a requester that asks for no credits gets at least one", RPC_02,
      no_credits },
    { "xid", "a Reply has its Call's XID, whatever that is", RPC_22, any_xid },
    { "full-call", "a Call of nearly 1024 octets, with long lists, is taken", RPC_06, full_call },
};

const struct rr_cases rr_cases_message = { cases, SG_ARRAY_SIZE(cases) };
