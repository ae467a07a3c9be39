/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One connection: its states, its lifetime and the calls of verbs.
 *
 *   initiator                                   responder
 *   CONNECTING --connected--> WAIT_REPLY        WAIT_REQUEST --Request--> REQUESTED
 *       WAIT_REPLY --Reply--> STREAMING             REQUESTED --accept--> REPLYING
 *       WAIT_REPLY --R=1----> REJECTED              REQUESTED --reject--> REJECTED
 *       WAIT_REPLY --cannot agree--> TERMINATING    REPLYING --sent, RTR due--> WAIT_FIRST
 *                                                   REPLYING --sent, no RTR---> STREAMING
 *                                                   WAIT_FIRST --valid FPDU---> STREAMING
 *
 *   WAIT_FIRST, STREAMING --close---------------------------> CLOSING
 *   WAIT_FIRST, STREAMING, CLOSING --error, Terminate-------> TERMINATING
 *   any --reset, timeout, abort, both halves closed---------> DEAD
 *
 * State changes: mpa_start.c makes those above the line, close.c the first below it, term.c the
 * second, conn_drop() and conn_kill() the last.  All use conn_set_state(), which logs.
 *
 * Lifetime.  Any upcall may end in sg_conn_abort() for the same connection, so every entry point
 * holds it with conn_enter() and checks conn_dead() after each upcall; the last holder frees the
 * memory.  A dead connection has no stream, no user and no timer.
 *
 * Transmission happens in sg_conn_transmit() only.  Events call conn_signal(), which calls tx_ready
 * at most once between two transmissions.
 */
#include <glib.h>
#include <stdarg.h>

#include "proto/conn.h"

static const char *const state_names[CONN_STATES] = {
    [CONN_CONNECTING] = "CONNECTING",
    [CONN_WAIT_REPLY] = "WAIT_REPLY",
    [CONN_WAIT_REQUEST] = "WAIT_REQUEST",
    [CONN_REQUESTED] = "REQUESTED",
    [CONN_REPLYING] = "REPLYING",
    [CONN_WAIT_FIRST] = "WAIT_FIRST",
    [CONN_STREAMING] = "STREAMING",
    [CONN_CLOSING] = "CLOSING",
    [CONN_TERMINATING] = "TERMINATING",
    [CONN_REJECTED] = "REJECTED",
    [CONN_DEAD] = "DEAD",
};

static const struct engine_wire *const wires[SG_ENGINE_WIRES] = {
    [SG_ENGINE_IWARP] = &wire_iwarp,
    [SG_ENGINE_RDMA_TCP_2000] = &wire_rdma_tcp,
};

uint32_t sg_engine_wire_kinds(enum sg_engine_wire wire)
{
    return wires[wire]->kinds;
}

bool sg_engine_wire_invalidates(enum sg_engine_wire wire)
{
    return wires[wire]->invalidates;
}

void conn_log(const struct sg_conn *c, enum sg_log_class cls, const char *fmt, ...)
{
    char line[240];
    va_list ap;

    if (!c->e->host->ops->log_enabled(c->e->host->opaque, cls)) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    sg_log(c->e->host, cls, "conn %u: %s", c->id, line);
}

void conn_set_state(struct sg_conn *c, enum conn_state state)
{
    if (state == c->state) {
        return;
    }
    conn_log(c, SG_LOG_STATE, "%s -> %s", state_names[c->state], state_names[state]);
    c->state = state;
}

void conn_flag(struct sg_conn *c, enum conn_flag flag, bool on)
{
    static const char *const names[] = { "valid FPDU seen", "told of the end", "discarding",
                                         "abandoned",       "watched",         "starved",
                                         "drop due",        "Terminate due" };

    if (conn_is(c, flag) == on) {
        return;
    }
    conn_log(c, SG_LOG_TRACE, "%s%s", on ? "" : "no more: ", names[g_bit_nth_lsf(flag, -1)]);
    c->flags = (uint16_t)(on ? c->flags | flag : c->flags & ~flag);
}

const char *conn_state_name(enum conn_state state)
{
    return state_names[state];
}

struct sg_conn *conn_new(struct sg_engine *e, bool initiator, void *user)
{
    struct sg_conn *c = sg_account_object(e->host->account, sizeof(*c));

    if (!c) {
        return NULL;
    }
    c->setup.frames = sg_account_new(e->host->account, sizeof(*c->setup.frames));
    if (!c->setup.frames) {
        sg_account_object_free(e->host->account, c, sizeof(*c));
        return NULL;
    }
    c->e = e;
    c->wire = wires[e->config.wire];
    c->initiator = initiator;
    c->user = user;
    c->id = ++e->next_id;
    c->state = initiator ? CONN_CONNECTING : CONN_WAIT_REQUEST;
    c->setup.frames->in_len = c->setup.frames->out_len = 0;
    if (!c->wire->init(c)) {
        conn_end_startup(c);
        sg_account_object_free(e->host->account, c, sizeof(*c));
        return NULL;
    }
    timers_init(c);
    c->next = e->conns;
    if (c->next) {
        c->next->prev = c;
    }
    e->conns = c;
    e->stats.conns++;
    return c;
}

static void conn_free(struct sg_conn *c)
{
    conn_end_startup(c);
    stall_drop(c);
    conn_release(c, c->close.clock, sizeof(*c->close.clock));
    conn_release(c, c->rx.buf, c->rx.cap);
    requests_free(c);
    if (c->wire->fini) {
        c->wire->fini(c);
    }
    sg_account_object_free(c->e->host->account, c, sizeof(*c));
}

void *conn_alloc(struct sg_conn *c, size_t octets)
{
    return conn_renew(c, NULL, 0, octets);
}

void *conn_renew(struct sg_conn *c, void *p, size_t old, size_t octets)
{
    p = sg_account_renew(c->e->host->account, p, old, octets);
    if (!p && !conn_is(c, CONN_IS_STARVED) && !conn_dead(c)) {
        conn_flag(c, CONN_IS_STARVED, true);
        timers_drop(c); /* if no call works on it now */
    }
    return p;
}

void conn_release(struct sg_conn *c, void *p, size_t octets)
{
    sg_account_free(c->e->host->account, p, octets);
}

void conn_enter(struct sg_conn *c)
{
    c->busy++;
}

void conn_leave(struct sg_conn *c)
{
    sg_assert(c->busy);
    if (c->busy == 1 && conn_is(c, CONN_IS_STARVED) && !conn_dead(c)) {
        conn_log(c, SG_LOG_STATE, "no memory");
        conn_drop(c, SG_CONN_NORES);
    }
    if (--c->busy == 0 && conn_dead(c)) {
        conn_free(c);
    }
}

void conn_kill(struct sg_conn *c)
{
    struct sg_engine *e = c->e;

    if (conn_dead(c)) {
        return;
    }
    conn_enter(c);
    conn_set_state(c, CONN_DEAD);
    c->tx.active = false; /* so there is no message, and no user to gather it from */
    timers_conn_dead(c);
    listener_leave(c);
    if (c->prev) {
        c->prev->next = c->next;
    } else {
        e->conns = c->next;
    }
    if (c->next) {
        c->next->prev = c->prev;
    }
    c->prev = c->next = NULL;
    e->stats.conns--;
    c->user = NULL;
    if (c->stream) {
        c->stream->ops->abort(c->stream);
        c->stream = NULL;
    }
    if (c->detached_listed) {
        struct sg_conn **at = &e->detached;

        while (*at && *at != c) {
            at = &(*at)->detached_next;
        }
        if (*at) { /* else run_detached() is using it */
            *at = c->detached_next;
            c->detached_listed = false;
            c->busy--;
        }
    }
    conn_leave(c);
}

void conn_drop(struct sg_conn *c, enum sg_conn_end why)
{
    static const struct sg_conn_params nothing;
    enum conn_state state = c->state;
    void *user = c->user;

    if (conn_dead(c)) {
        return;
    }
    conn_enter(c);
    if (state == CONN_REQUESTED) {
        /* c is still complete here: verbs look up what they stored with it. */
        c->e->ops->request_gone(c, c->request_user, why);
        user = NULL;
    }
    conn_kill(c);
    if (user && (state == CONN_CONNECTING || state == CONN_WAIT_REPLY)) {
        c->e->ops->reply(user, why, &nothing);
    } else if (user) {
        c->e->ops->closed(user, why);
    }
    conn_leave(c);
}

void conn_drop_later(struct sg_conn *c, enum sg_conn_end why)
{
    c->end = why;
    conn_flag(c, CONN_DROP_DUE, true);
    timers_drop(c);
}

void conn_tell_down(struct sg_conn *c, enum sg_conn_end why)
{
    if (c->user && !conn_is(c, CONN_IS_TOLD_DOWN)) {
        conn_flag(c, CONN_IS_TOLD_DOWN, true);
        c->e->ops->disconnected(c->user, why);
    }
}

void conn_signal(struct sg_conn *c)
{
    struct sg_engine *e = c->e;

    if (c->tx.signaled || c->tx.blocked || conn_dead(c)) {
        return;
    }
    if (c->user) {
        c->tx.signaled = true;
        e->ops->tx_ready(c->user);
    } else if (!c->detached_listed) {
        conn_enter(c); /* until run_detached() */
        c->detached_listed = true;
        c->detached_next = e->detached;
        e->detached = c;
        e->host->ops->kick(e->host->opaque);
    }
}

/* From here on nobody above knows the connection; it ends by itself. */
void conn_detach(struct sg_conn *c)
{
    c->user = NULL;
    c->tx.signaled = false;
    close_watch(c);
}

void conn_end_startup(struct sg_conn *c)
{
    sg_account_free(c->e->host->account, c->setup.frames, sizeof(*c->setup.frames));
    c->setup.frames = NULL;
}

/* ---- calls of verbs ---- */

void sg_conn_set_request_user(struct sg_conn *c, void *request_user)
{
    c->request_user = request_user;
}

bool sg_conn_accept(struct sg_conn *c, void *user, const struct sg_conn_params *p)
{
    if (c->state != CONN_REQUESTED || p->pdata_len > c->wire->pdata_max(c)) {
        return false;
    }
    listener_leave(c);
    c->user = user;
    c->wire->make_reply(c, p);
    conn_set_state(c, CONN_REPLYING);
    timers_replying(c);
    conn_signal(c);
    return true;
}

void sg_conn_set_next_hop(struct sg_conn *c, const uint8_t next_hop[16])
{
    if (c->stream && c->stream->ops->set_next_hop) {
        c->stream->ops->set_next_hop(c->stream, next_hop);
    }
}

bool sg_conn_reject(struct sg_conn *c, const uint8_t *pdata, uint16_t pdata_len)
{
    if (c->state != CONN_REQUESTED || pdata_len > c->wire->pdata_max(c)) {
        return false;
    }
    listener_leave(c);
    c->wire->make_reject(c, pdata, pdata_len);
    conn_set_state(c, CONN_REJECTED);
    conn_detach(c);
    conn_signal(c);
    return true;
}

void sg_conn_wake(struct sg_conn *c)
{
    if (c->state == CONN_STREAMING && conn_may_send(c)) {
        conn_signal(c);
    }
}

void sg_conn_abort(struct sg_conn *c)
{
    conn_kill(c);
}

void sg_conn_terminate(struct sg_conn *c, uint8_t layer, uint8_t type, uint8_t code)
{
    c->wire->terminate(c, layer, type, code);
}

uint64_t sg_conn_ordinal(const struct sg_conn *c)
{
    return c->rx.now;
}

void sg_conn_endpoints(struct sg_conn *c, struct sg_endpoint *local, struct sg_endpoint *remote)
{
    if (c->stream) {
        c->stream->ops->endpoints(c->stream, local, remote);
    } else {
        memset(local, 0, sizeof(*local));
        memset(remote, 0, sizeof(*remote));
    }
}
