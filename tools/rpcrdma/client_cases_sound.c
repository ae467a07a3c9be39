/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sound server's behaviour: what the client sends is judged by client.c. */
#include "client_cases.h"

enum { CALLS = 40, FEW = 10 };

static bool any(const struct rr_client *c, const struct rr_pending *p)
{
    return true;
}

static void calls(struct rr_client *c)
{
    if (rr_client_relay(c, CALLS)) {
        rr_client_note(c, "at most %u Calls were open at once", c->most_open);
    }
}

/* The first Reply is late: until then there is one credit. */
static void first_credit(struct rr_client *c)
{
    struct rr_pending *p = rr_client_victim(c, any, "Call");

    if (p && rr_client_quiet(c) && (rr_client_answer(c, p) || rr_client_lost(c))) {
        rr_client_relay(c, FEW);
    }
}

static void threshold(struct rr_client *c)
{
    rr_client_relay(c, CALLS);
}

static void long_reply(struct rr_client *c)
{
    struct rr_pending *p =
        rr_client_victim(c, rr_needs_reply_chunk, "Call with a Reply chunk that is needed");

    if (p) {
        rr_client_answer_and_go_on(c, p);
    }
}

static void result(struct rr_client *c)
{
    struct rr_pending *p = rr_client_victim(c, rr_has_result, "Call with a Write chunk");

    if (p) {
        rr_client_answer_and_go_on(c, p);
    }
}

static const struct rr_client_case cases[] = {
    { "client-first-credit", "before the first Reply a client has one Call open", RPC_05,
      first_credit, .fresh = true },
    { "client-calls", "Calls, their chunks and their lengths are sound", RPC_21, calls },
    { "client-result", "a result in a Write chunk is taken", RPC_14, result },
    { "client-long-reply", "a Reply in a Reply chunk is taken", RPC_33, long_reply },
    { "client-threshold", "with thresholds of 1024 octets no Send is longer", RPC_06, threshold,
      .fresh = true, .inline_size = RR_SIZE_MIN },
    { "client-no-private", "without our private data the thresholds are 1024", PVT_06, threshold,
      .fresh = true, .no_private = true },
};

const struct rr_client_cases rr_client_cases_sound = { cases, SG_ARRAY_SIZE(cases) };
