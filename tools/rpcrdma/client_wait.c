/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Relaying until something happens, or a time is over. */
#include "client.h"

#include <inttypes.h>

enum { VISITS_MAX = 16 }; /* connections in a row that bring no such Call */

static gint64 deadline(const struct rr_client *c, unsigned ms)
{
    return rr_client_now(c) + 1000 * (gint64)ms;
}

/* The next connection after one has ended; false: there is none. */
static bool reopen(struct rr_client *c)
{
    struct rr_settings settings = c->settings;

    return rr_client_open(c, &settings);
}

/*
 * A sound client may end a connection in which nothing is under way, and come back, but not for
 * ever; false: nothing more is to be expected, and the verdict says why.
 */
static bool visit_again(struct rr_client *c, unsigned *visits)
{
    if (c->verdict->trouble[0]) {
        return false;
    }
    if (++*visits > VISITS_MAX) {
        return rr_client_trouble(c, "the client has ended %u connections in a row", *visits);
    }
    return reopen(c);
}

/* Calls have waited for the server behind most of the time: that is trouble, and no breach. */
static bool is_silent(struct rr_client *c)
{
    gint64 since = rr_client_now(c) - 500 * (gint64)c->o->wait_ms;
    unsigned waiting = 0;

    for (GList *at = c->open.head; at; at = at->next) {
        const struct rr_pending *p = at->data;

        waiting += !p->reply && p->since <= since;
    }
    if (waiting) {
        rr_client_trouble(c, "the server behind has not answered %u Calls within %u ms", waiting,
                          c->o->wait_ms / 2);
    }
    return waiting;
}

struct rr_pending *rr_client_victim(struct rr_client *c,
                                    bool (*wants)(const struct rr_client *c,
                                                  const struct rr_pending *p),
                                    const char *what)
{
    gint64 end = deadline(c, c->o->wait_ms);
    unsigned visits = 0;

    c->victim = NULL;
    c->wants = wants;
    while (!c->victim && rr_client_now(c) < end && !c->verdict->trouble[0]) {
        if (rr_client_turn(c, RR_CLIENT_TURN_MS) == RR_EVENT_CLOSED) {
            if (!visit_again(c, &visits)) {
                break;
            }
            c->wants = wants;
        }
    }
    c->wants = NULL;
    if (c->victim) {
        rr_client_note(c, "chosen: XID 0x%08x, %s", c->victim->call.xid, c->victim->info.name);
    }
    if (!c->victim && !c->verdict->trouble[0] && !is_silent(c)) {
        snprintf(c->verdict->skipped, sizeof(c->verdict->skipped), "no %s within %u ms", what,
                 c->o->wait_ms);
    }
    return c->victim;
}

bool rr_client_stays(struct rr_client *c)
{
    gint64 end = deadline(c, c->o->quiet_ms);

    do {
        if (rr_client_turn(c, RR_CLIENT_TURN_MS) == RR_EVENT_CLOSED) {
            return false;
        }
    } while (rr_client_now(c) < end);
    return true;
}

bool rr_client_quiet(struct rr_client *c)
{
    return rr_client_stays(c) || rr_client_lost(c);
}

/* The connection has ended: is there another one? */
static bool comes_back(struct rr_client *c, bool *may_end)
{
    if (!*may_end || c->ours) {
        return rr_client_lost(c);
    }
    rr_client_note(c, "the client may end the connection; it has to come back");
    *may_end = false;
    return reopen(c);
}

bool rr_client_goes_on(struct rr_client *c, bool may_end)
{
    gint64 quiet = deadline(c, c->o->quiet_ms), end = quiet + 1000 * (gint64)c->o->wait_ms;
    uint64_t calls = UINT64_MAX;

    while (rr_client_now(c) < end) {
        if (rr_client_turn(c, RR_CLIENT_TURN_MS) == RR_EVENT_CLOSED) {
            if (!comes_back(c, &may_end)) {
                return false;
            }
            calls = 0;
        }
        if (calls == UINT64_MAX && rr_client_now(c) >= quiet) {
            calls = c->calls;
        } else if (calls != UINT64_MAX && c->calls > calls) {
            return true;
        }
    }
    if (!is_silent(c)) {
        rr_find(rr_client_findings(c), c->rule, "the client has made no further Call within %u ms",
                c->o->wait_ms);
    }
    return false;
}

void rr_client_answer_and_go_on(struct rr_client *c, struct rr_pending *p)
{
    if (rr_client_answer(c, p)) {
        rr_client_goes_on(c, false);
    } else {
        rr_client_lost(c);
    }
}

/* Relays until @calls were answered, or the time is over; false: the connections ended. */
static bool relay(struct rr_client *c, unsigned calls, uint64_t *answered)
{
    gint64 end = deadline(c, c->o->wait_ms);
    uint64_t done = 0, before = c->replies;
    unsigned visits = 0;

    while (done + c->replies - before < calls && rr_client_now(c) < end) {
        if (rr_client_turn(c, RR_CLIENT_TURN_MS) == RR_EVENT_CLOSED) {
            done += c->replies - before;
            before = 0;
            if (!visit_again(c, &visits)) {
                return false;
            }
        }
    }
    *answered = done + c->replies - before;
    return true;
}

/* False, and the verdict says why. */
static bool too_few(struct rr_client *c, uint64_t done, unsigned calls)
{
    return !is_silent(c) &&
           rr_client_trouble(c, "only %" PRIu64 " of %u Calls were answered within %u ms", done,
                             calls, c->o->wait_ms);
}

bool rr_client_relay(struct rr_client *c, unsigned calls)
{
    uint64_t done;

    return relay(c, calls, &done) && (done >= calls || too_few(c, done, calls));
}

bool rr_client_settle(struct rr_client *c, unsigned calls)
{
    uint64_t done;

    return relay(c, calls, &done) && (done || too_few(c, done, calls));
}
