/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Listeners: connections between their acceptance and the answer of verbs.
 *
 *   silent      established, but the MPA Request has not arrived completely
 *   waiting     the Request has arrived, but verbs have 'backlog' others to answer first, or no
 *               room for its event
 *   requested   verbs have the Request
 *
 * At most 'backlog' are requested, and OTHERS_MAX silent or waiting: unknown peers that connect and
 * send nothing exclude nobody, and many honest ones may connect at once.  Beyond that limit the
 * oldest of the silent ones is reset, because it is the least likely to send.  Each has one startup
 * buffer and the time limit of RFC 5044, section 7.1.2, rule 8.
 *
 * While verbs have 'backlog' Requests to answer, or others wait, the network is asked to delay new
 * connections, as a TCP with a full queue does: the peer sends its SYN again.  Those already
 * established wait here, as long as verbs may take for an answer.
 */
#include <glib.h>

#include "proto/conn.h"

enum { OTHERS_MAX = 1024 };

static void append(struct conn_list *l, struct sg_conn *c)
{
    c->accept.prev = l->last;
    c->accept.next = NULL;
    *(l->last ? &l->last->accept.next : &l->first) = c;
    l->last = c;
    l->count++;
}

static void unlink_conn(struct conn_list *l, struct sg_conn *c)
{
    *(c->accept.prev ? &c->accept.prev->accept.next : &l->first) = c->accept.next;
    *(c->accept.next ? &c->accept.next->accept.prev : &l->last) = c->accept.prev;
    l->count--;
}

static bool full(const struct sg_engine_listener *l)
{
    return l->in[ACCEPT_REQUESTED].count >= l->backlog;
}

/* Can verbs take one more Request? */
static bool has_room(const struct sg_engine_listener *l)
{
    const struct sg_engine_ops *ops = l->e->ops;

    return !full(l) && (!ops->request_room || ops->request_room(l->user));
}

/* The number of Requests in a state has changed. */
static void tell_net(struct sg_engine_listener *l)
{
    struct sg_stream_net *net = l->e->net;
    bool pause = full(l) || l->in[ACCEPT_WAITING].first;

    if (net->ops->pause && l->l && pause != l->paused) {
        net->ops->pause(net, l->l, pause);
        l->paused = pause;
    }
}

static void enter(struct sg_conn *c, enum conn_accept_state state)
{
    struct sg_engine_listener *l = c->accept.listener;

    if (c->accept.state != state) {
        unlink_conn(&l->in[c->accept.state], c);
        append(&l->in[state], c);
        c->accept.state = state;
        tell_net(l);
    }
}

bool listener_may_request(struct sg_conn *c)
{
    struct sg_engine_listener *l = c->accept.listener;

    if (!has_room(l)) {
        l->e->deferred |= !full(l);
        enter(c, ACCEPT_WAITING);
        timers_request_here(c);
        return false;
    }
    enter(c, ACCEPT_REQUESTED);
    return true;
}

void listener_leave(struct sg_conn *c)
{
    struct sg_engine_listener *l = c->accept.listener;

    if (!l) {
        return;
    }
    c->accept.listener = NULL;
    unlink_conn(&l->in[c->accept.state], c);
    tell_net(l);
    if (c->accept.state == ACCEPT_REQUESTED && l->in[ACCEPT_WAITING].first) {
        l->e->admit_due = true; /* deferred: verbs have not counted their answer yet */
        l->e->host->ops->kick(l->e->host->opaque);
    }
}

void sg_engine_admit(struct sg_engine *e)
{
    if (e->deferred) {
        e->deferred = false;
        e->admit_due = true;
        e->host->ops->kick(e->host->opaque);
    }
}

/* Passes waiting Requests to verbs, the one that has waited longest first. */
void listener_admit(struct sg_engine *e)
{
    struct sg_engine_listener *l;
    struct sg_conn *c;

    if (!e->admit_due) {
        return;
    }
    e->admit_due = false;
    for (l = e->listeners; l; l = l->next) {
        while ((c = l->in[ACCEPT_WAITING].first) != NULL && has_room(l)) {
            conn_enter(c);
            c->wire->take_request(c);
            conn_leave(c);
        }
        e->deferred |= c && !full(l);
    }
}

static bool accepted(void *user, struct sg_stream *s)
{
    struct sg_engine_listener *l = user;
    struct sg_conn *c;

    if (l->e->stopped) {
        return false;
    }
    if (l->in[ACCEPT_SILENT].count + l->in[ACCEPT_WAITING].count >= OTHERS_MAX) {
        c = l->in[ACCEPT_SILENT].first;
        if (!c) {
            return false;
        }
        conn_log(c, SG_LOG_STATE, "no Request, and others want its place");
        conn_drop(c, SG_CONN_NORES);
    }
    c = conn_new(l->e, false, NULL);
    if (!c) {
        return false;
    }
    c->stream = s;
    c->accept.listener = l;
    append(&l->in[ACCEPT_SILENT], c);
    s->events = &conn_events;
    s->user = c;
    conn_set_state(c, CONN_WAIT_REQUEST);
    timers_accepted(c);
    return true;
}

struct sg_engine_listener *sg_engine_listen(struct sg_engine *e, const struct sg_endpoint *local,
                                            unsigned backlog, void *user, enum sg_conn_end *why)
{
    struct sg_engine_listener *l = sg_account_object(e->host->account, sizeof(*l));
    enum sg_stream_end stream_why = SG_STREAM_NORES;

    if (!l) {
        *why = SG_CONN_NORES;
        return NULL;
    }
    l->e = e;
    l->user = user;
    l->backlog = SG_MAX(backlog, 1);
    l->l = e->net->ops->listen(e->net, local, l->backlog, accepted, l, &stream_why);
    if (!l->l) {
        *why = conn_end_of_stream(stream_why);
        sg_account_object_free(e->host->account, l, sizeof(*l));
        return NULL;
    }
    l->next = e->listeners;
    if (l->next) {
        l->next->prev = l;
    }
    e->listeners = l;
    return l;
}

void sg_engine_unlisten(struct sg_engine_listener *l)
{
    struct sg_engine *e = l->e;
    unsigned state;

    e->net->ops->unlisten(e->net, l->l);
    l->l = NULL;
    for (state = ACCEPT_SILENT; state < ACCEPT_STATES; state++) {
        while (l->in[state].first) {
            conn_kill(l->in[state].first);
        }
    }
    if (l->prev) {
        l->prev->next = l->next;
    } else {
        e->listeners = l->next;
    }
    if (l->next) {
        l->next->prev = l->prev;
    }
    sg_account_object_free(e->host->account, l, sizeof(*l));
}
