/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection, and the judgement of what the client sends. */
#include "client.h"

#include <inttypes.h>

enum { UPSTREAM_PER_TURN = 16 };

void rr_client_note(struct rr_client *c, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    rr_verdict_note(c->verdict, format, ap);
    va_end(ap);
}

void rr_client_routine(struct rr_client *c, const char *format, ...)
{
    va_list ap;

    if (!c->routine) {
        return;
    }
    c->routine--;
    va_start(ap, format);
    rr_verdict_note(c->verdict, format, ap);
    va_end(ap);
    if (!c->routine) {
        rr_client_note(c, "... and so on");
    }
}

bool rr_client_trouble(struct rr_client *c, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    rr_verdict_trouble(c->verdict, format, ap);
    va_end(ap);
    return false;
}

bool rr_client_fails(struct rr_client *c, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    rr_verdict_trouble(c->verdict, format, ap);
    va_end(ap);
    rr_client_end(c);
    return false;
}

void rr_client_unreachable(struct rr_client *c, enum rr_rule rule, const char *what)
{
    if (c->port->gone) {
        rr_client_note(c, "  %s: the connection is over", what);
        c->over = true;
    } else {
        rr_find(rr_client_findings(c), rule, "%s: %s", what, c->port->why);
        rr_client_end(c);
    }
}

void rr_client_end(struct rr_client *c)
{
    c->over = c->ours = true;
}

bool rr_client_lost(struct rr_client *c)
{
    if (c->over && !c->ours && !c->verdict->trouble[0]) {
        rr_find(rr_client_findings(c), c->rule, "the client ended the connection");
    }
    return false;
}

struct rr_findings *rr_client_findings(struct rr_client *c)
{
    return &c->verdict->findings;
}

gint64 rr_client_now(const struct rr_client *c)
{
    return c->o->now ? c->o->now() : g_get_monotonic_time();
}

/* ---- The connection ---- */

void rr_client_close(struct rr_client *c)
{
    struct rr_pending *p;

    while ((p = g_queue_pop_head(&c->open))) {
        rr_pending_free(p);
    }
    g_queue_clear_full(&c->waiting, (GDestroyNotify)g_bytes_unref);
    c->victim = NULL;
    c->wants = NULL;
    if (c->upstream) {
        c->upstream->close(c->upstream);
        c->upstream = NULL;
    }
    if (c->port) {
        rr_responder_free(c->codec);
        c->port->ops->close(c->port);
        c->port = NULL;
    }
    c->over = true;
}

/* All that belongs to one connection. */
static void reset(struct rr_client *c)
{
    c->hold = c->ours = c->own_calls = false;
    c->connections++;
    c->calls = c->replies = 0;
    c->most_open = c->reverses = 0;
    c->grant = c->grant_before = 1;
    c->lowered_at = 0;
    c->credits = c->settings.credits;
    /* The program of callbacks stays: a client that comes back has not got another one. */
    c->reverse_grant = 0;
}

static void note_opening(struct rr_client *c)
{
    const struct rr_private *p = &c->codec->theirs;

    rr_client_note(c, "connected: the client's private data %s (R=%d, send %u, receive %u)",
                   p->present ? "present" : "absent", p->remote_inv, p->send_size, p->recv_size);
    rr_client_note(c, "  ours %s (send %u, receive %u); thresholds %u and %u",
                   c->codec->ours.present ? "present" : "absent", c->codec->ours.send_size,
                   c->codec->ours.recv_size, c->call_threshold, c->codec->reply_threshold);
    if (p->present && p->reserved) {
        rr_find(rr_client_findings(c), PVT_02, "reserved bits 0x%02x are set", p->reserved);
    }
}

bool rr_client_open(struct rr_client *c, const struct rr_settings *settings)
{
    struct rr_port_side side;
    char why[RR_WHY];

    rr_client_close(c);
    c->settings = *settings;
    rr_responder_side(settings, &side);
    /* More than is granted, and longer than is announced: breaches are to be seen. */
    side.receives = RR_RECEIVES_MAX;
    side.receive_size = SG_MAX(side.receive_size, 2 * RR_INLINE_DEFAULT);
    c->port = c->o->acceptor->accept(c->o->acceptor, &side, c->o->wait_ms);
    if (!c->port) {
        return rr_client_trouble(c, "no client came within %u ms%s%s", c->o->wait_ms,
                                 c->o->acceptor->why[0] ? ": " : "", c->o->acceptor->why);
    }
    c->codec = rr_responder_new(settings, c->port);
    if (!c->codec) {
        rr_client_trouble(c, "%s", c->port->why);
        c->port->ops->close(c->port);
        c->port = NULL;
        return false;
    }
    reset(c);
    c->call_threshold = rr_threshold(&c->codec->theirs, &c->codec->ours);
    note_opening(c);
    c->upstream = c->o->source->open(c->o->source, why);
    c->over = !c->upstream; /* the next case tries both again */
    return c->upstream ? true : rr_client_trouble(c, "the server behind: %s", why);
}

/* ---- A Call ---- */

static void check_credits(struct rr_client *c)
{
    unsigned open = g_queue_get_length(&c->open);
    uint32_t allowed = rr_client_allowed(c);

    c->most_open = SG_MAX(c->most_open, open);
    if (open <= allowed) {
        return;
    }
    if (!c->replies) {
        rr_find(rr_client_findings(c), RPC_05, "%u Calls are open before the first Reply", open);
    } else {
        rr_find(rr_client_findings(c), RPC_01, "%u Calls are open, %u credits were granted", open,
                allowed);
    }
}

/* Chunks against arguments; the reduced stream of a long Call is what Position 0 had. */
static void check_arguments(struct rr_client *c, struct rr_pending *p, struct sg_span payload)
{
    struct sg_span reduced = payload;

    if (p->call.proc == RR_NOMSG) {
        reduced = sg_span_of(p->stream->data, p->stream->len);
        if (rr_position_octets(&p->call, 0) != p->stream->len) {
            return; /* a long Call that is also chunked: which is which is not followed */
        }
        if (p->rpc.xid != p->call.xid) {
            rr_find(rr_client_findings(c), RPC_22,
                    "XID 0x%08x in the header, 0x%08x in the long RPC message", p->call.xid,
                    p->rpc.xid);
        }
    }
    rr_call_describe(&p->rpc, reduced, &p->call, &p->info);
    rr_arguments_check(rr_client_findings(c), &p->call, &p->info, reduced,
                       c->codec->reply_threshold);
}

static void say_error(struct rr_client *c, enum rr_err err)
{
    struct rr_header h = { .xid = c->codec->call.xid,
                           .vers = c->codec->call.vers,
                           .credit = c->credits,
                           .proc = RR_ERROR,
                           .err = err,
                           .low = RR_VERSION,
                           .high = RR_VERSION };

    rr_client_send_message(c, &h, SG_SPAN_NONE, "RDMA_ERROR");
}

static void refuse(struct rr_client *c, enum rr_outcome outcome)
{
    switch (outcome) {
    case RR_SAY_VERS:
        say_error(c, RR_ERR_VERS);
        break;
    case RR_SAY_CHUNK:
        say_error(c, RR_ERR_CHUNK);
        break;
    case RR_DISCONNECT:
        rr_client_unreachable(c, RPC_13, "a Read chunk cannot be read");
        break;
    default:
        break;
    }
}

static void on_call(struct rr_client *c, enum rr_fault fault, struct sg_span payload)
{
    struct rr_responder *r = c->codec;
    enum rr_outcome outcome = rr_examine(r, fault);
    struct rr_pending *p;
    struct rr_rpc rpc;

    if (outcome == RR_ANSWER) {
        outcome = rr_gather(r, payload);
    }
    if (outcome == RR_ANSWER &&
        (!rr_rpc_parse(sg_span_of(r->in.octets, r->in_len), &rpc) || rpc.type != RR_CALL)) {
        rr_find(rr_client_findings(c), RPC_21, "what follows the header is no RPC Call");
        outcome = RR_SAY_CHUNK;
    }
    if (outcome != RR_ANSWER) {
        refuse(c, outcome);
        return;
    }
    if (g_queue_get_length(&c->open) == RR_PENDING_MAX) {
        rr_find(rr_client_findings(c), RPC_01, "more than %d Calls are open", RR_PENDING_MAX);
        rr_client_end(c);
        return;
    }
    p = g_new0(struct rr_pending, 1);
    p->call = r->call;
    p->rpc = rpc;
    p->since = rr_client_now(c);
    p->stream = g_byte_array_new();
    g_byte_array_append(p->stream, r->in.octets, (guint)r->in_len);
    g_queue_push_tail(&c->open, p);
    c->calls++;
    check_credits(c);
    check_arguments(c, p, payload);
    rr_client_routine(c, "  %s", p->info.name);
    rr_client_learn(c, p);
    if (!c->upstream->send(c->upstream, sg_span_of(p->stream->data, p->stream->len))) {
        rr_client_fails(c, "%s", c->upstream->why);
    }
}

/* ---- What comes ---- */

static void on_error(struct rr_client *c, const struct rr_header *h)
{
    if (rr_client_refused(c, h)) {
        rr_find(rr_client_findings(c), c->rule, "a sound Call was answered with RDMA_ERROR");
        return;
    }
    rr_find(rr_client_findings(c), c->rule == RPC_37 ? RPC_37 : RPC_25,
            "RDMA_ERROR with XID 0x%08x from a requester", h->xid);
}

static void on_message(struct rr_client *c, const struct rr_event *event)
{
    struct rr_header *h = &c->codec->call;
    enum rr_fault fault = rr_header_parse(event->octets, h);
    struct sg_span payload = rr_payload(event->octets, h, fault);
    const uint8_t *type = sg_span_get(payload, 4, 4);
    struct rr_message m = { .h = h,
                            .fault = fault,
                            .kind = RR_IS_CALL,
                            .len = event->octets.len,
                            .payload = payload,
                            .threshold = c->call_threshold };

    rr_client_routine(c,
                      "came: %s, XID 0x%08x, %s, asks for %u, %u Read segments, %u Write chunks, "
                      "%s Reply chunk, %zu octets",
                      fault == RR_SHORT ? "octets" : rr_proc_name(h->proc), h->xid,
                      rr_fault_name(fault), h->credit, h->reads, h->chunks,
                      h->has_reply ? "a" : "no", event->octets.len);
    if (event->invalidated) {
        rr_find(rr_client_findings(c), PVT_05, "a requester sent Send with Invalidate");
    }
    if (fault == RR_OK && h->proc == RR_MSG && type && sg_get_be32(type) == RR_REPLY) {
        rr_client_replied(c, h, fault, event->octets);
        return;
    }
    if (fault != RR_OK || h->proc > RR_NOMSG) {
        rr_client_note(c, "  it is %s, %s", rr_fault_name(fault),
                       fault == RR_SHORT ? "" : rr_proc_name(h->proc));
    }
    m.kind = h->proc == RR_ERROR && fault != RR_SHORT ? RR_IS_ERROR : RR_IS_CALL;
    if (m.kind == RR_IS_ERROR) {
        on_error(c, h);
        return;
    }
    rr_message_check(rr_client_findings(c), &m);
    on_call(c, fault, payload);
}

static struct rr_pending *find_open(struct rr_client *c, uint32_t xid)
{
    for (GList *at = c->open.head; at; at = at->next) {
        struct rr_pending *p = at->data;

        if (p->call.xid == xid && !p->reply) {
            return p;
        }
    }
    return NULL;
}

/* A message of the upstream: a Reply to a Call of the client, or a Call to the client. */
static void on_upstream(struct rr_client *c, struct sg_span message)
{
    struct rr_pending *p;

    if (message.len < 8) {
        return;
    }
    if (sg_get_be32(message.p + 4) == RR_CALL) {
        rr_client_relay_call(c, message);
        return;
    }
    p = find_open(c, sg_get_be32(message.p));
    if (!p) {
        return; /* a case has closed it */
    }
    p->reply = g_byte_array_new();
    g_byte_array_append(p->reply, message.p, (guint)message.len);
    if (c->wants && !c->victim && c->wants(c, p)) {
        c->victim = p;
    } else if (!c->hold) {
        rr_client_answer(c, p);
    }
}

static bool ask_upstream(struct rr_client *c)
{
    enum rr_upstream_kind kind = RR_UPSTREAM_MESSAGE;
    struct sg_span message;
    bool any = false;

    for (unsigned i = 0; i < UPSTREAM_PER_TURN && kind == RR_UPSTREAM_MESSAGE && !c->over; i++) {
        kind = c->upstream->poll(c->upstream, &message);
        if (kind == RR_UPSTREAM_MESSAGE) {
            on_upstream(c, message);
            any = true;
        } else if (kind == RR_UPSTREAM_END) {
            rr_client_fails(c, "%s", c->upstream->why);
        }
    }
    return any;
}

enum rr_event_kind rr_client_turn(struct rr_client *c, unsigned ms)
{
    enum rr_event_kind kind = RR_EVENT_NONE;
    struct rr_event event;

    if (!c->over && ask_upstream(c)) {
        ms = 0;
    }
    if (!c->over) {
        kind = c->port->ops->poll(c->port, ms, &event);
    }
    if (kind == RR_EVENT_RECEIVED) {
        on_message(c, &event);
        if (!c->over && !c->port->ops->repost(c->port, event.slot)) {
            rr_client_fails(c, "cannot post a receive: %s", c->port->why);
        }
    } else if (kind == RR_EVENT_CLOSED) {
        rr_client_note(c, "the connection ended%s%s", c->port->why[0] ? ": " : "", c->port->why);
        c->over = true;
    }
    return c->over ? RR_EVENT_CLOSED : kind;
}
