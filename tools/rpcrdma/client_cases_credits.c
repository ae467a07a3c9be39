/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Grants.  To see how many Calls a client has open, its Replies are held back for the time of
 * silence, and then sent all at once.
 */
#include "client_cases.h"

enum { SETTLE = 6, ROUNDS = 3, MANY = 1000 };

/* Holds all Replies back for a while, and releases them. */
static bool hold_and_release(struct rr_client *c)
{
    c->hold = true;
    if (!rr_client_quiet(c)) {
        return false;
    }
    rr_client_release(c);
    return rr_client_goes_on(c, false);
}

static void granted(struct rr_client *c)
{
    c->credits = c->arg;
    /* First the new grant has to arrive; quiet() lets the Calls that are under way come. */
    if (!rr_client_settle(c, SETTLE) || !rr_client_quiet(c)) {
        return;
    }
    c->most_open = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (!hold_and_release(c)) {
            return;
        }
    }
    rr_client_note(c, "granted %u: at most %u Calls were open at once", c->arg, c->most_open);
}

/* A grant that goes up and down with each Reply. */
static void changing(struct rr_client *c)
{
    static const uint32_t grants[] = { 8, 2, 16, 1, 4 };

    for (size_t i = 0; i < SG_ARRAY_SIZE(grants); i++) {
        c->credits = grants[i];
        if (!rr_client_settle(c, SETTLE) || !rr_client_quiet(c) || !hold_and_release(c)) {
            return;
        }
    }
    c->credits = RR_CLIENT_CREDITS;
    rr_client_relay(c, SETTLE);
}

static const struct rr_client_case cases[] = {
    { "client-grant-one", "a client that has one credit has one Call open", RPC_01, granted,
      .arg = 1 },
    { "client-grant-few", "a client that has two credits has two Calls open at most", RPC_01,
      granted, .arg = 2 },
    { "client-grant-many", "a grant of 1000: there is a receive for each Reply", RPC_04, granted,
      .arg = MANY },
    { "client-grant-zero", "a grant of zero, which is a breach, does not stop the client", RPC_01,
      granted, .arg = 0 },
    { "client-grant-change", "a grant that changes is obeyed", RPC_01, changing },
};

const struct rr_client_cases rr_client_cases_credits = { cases, SG_ARRAY_SIZE(cases) };
