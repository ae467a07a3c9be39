/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "responder.h"

#include <glib.h>

#include "responder_impl.h"

enum rr_edition rr_edition_of(const char *name)
{
    static const char *const names[RR_EDITIONS] = { "06", "07", "rfc8166" };
    enum rr_edition e = 0;

    while (e < RR_EDITIONS && strcmp(name, names[e]) != 0) {
        e++;
    }
    return e;
}

struct rr_settings rr_settings_default(void)
{
    return (struct rr_settings){
        .edition = RR_EDITION_RFC,
        .credits = RR_CREDITS_DEFAULT,
        .inline_size = RR_INLINE_DEFAULT,
        .private_data = true,
        .invalidate = true,
    };
}

static struct rr_private own_private(const struct rr_settings *s)
{
    struct rr_private p = { .send_size = RR_SIZE_MIN, .recv_size = RR_SIZE_MIN };

    if (s->octets_len) {
        /* What the client understands, not what we mean. */
        p = rr_private_parse(sg_span_of(s->octets, s->octets_len));
    } else if (s->private_data) {
        p.present = true;
        p.remote_inv = s->invalidate;
        p.send_size = p.recv_size = s->inline_size;
    }
    return p;
}

void rr_responder_side(const struct rr_settings *settings, struct rr_port_side *side)
{
    struct rr_private p = own_private(settings);

    memset(side, 0, sizeof(*side));
    if (settings->octets_len) {
        memcpy(side->private_data, settings->octets, settings->octets_len);
        side->private_len = settings->octets_len;
    } else if (p.present) {
        rr_private_emit(&p, side->private_data);
        side->private_len = RR_PRIVATE_LEN;
    }
    /* One more, for the message that is being treated: the credits always have receives. */
    side->receives = settings->credits + 1;
    side->receive_size = p.recv_size;
}

static bool lend(struct rr_responder *r, struct rr_region *region, uint8_t *octets, size_t len,
                 unsigned access)
{
    *region = (struct rr_region){ .octets = octets, .len = len, .access = access };
    return r->port->ops->reg(r->port, region);
}

struct rr_responder *rr_responder_new(const struct rr_settings *settings, struct rr_port *port)
{
    struct rr_responder *r = g_new0(struct rr_responder, 1);

    r->settings = *settings;
    r->port = port;
    r->ours = own_private(settings);
    r->theirs = rr_private_parse(settings->private_data ? sg_span_of(port->peer, port->peer_len)
                                                        : SG_SPAN_NONE);
    r->reply_threshold = rr_threshold(&r->ours, &r->theirs);
    r->stream = g_new0(struct rr_stream, 1);
    rr_echo_start(&r->memory);
    if (!lend(r, &r->in, g_malloc0(RR_STREAM_ROOM), RR_STREAM_ROOM, RR_MAY_WRITE) ||
        !lend(r, &r->out, r->stream->octets, sizeof(r->stream->octets), 0) ||
        !lend(r, &r->send, g_malloc0(RR_SIZE_MAX), RR_SIZE_MAX, 0)) {
        rr_responder_free(r);
        return NULL;
    }
    return r;
}

void rr_responder_free(struct rr_responder *r)
{
    struct rr_region *regions[] = { &r->in, &r->out, &r->send };

    for (size_t i = 0; i < SG_ARRAY_SIZE(regions); i++) {
        if (regions[i]->valid) {
            r->port->ops->dereg(r->port, regions[i]);
        }
    }
    g_free(r->in.octets);
    g_free(r->send.octets);
    g_free(r->stream);
    g_free(r);
}

struct rr_counts rr_responder_counts(const struct rr_responder *r)
{
    return r->counts;
}

/* What a header alone asks for. */
enum rr_outcome rr_examine(const struct rr_responder *r, enum rr_fault fault)
{
    bool old = r->settings.edition == RR_EDITION_06;

    if (fault == RR_SHORT) {
        return RR_DROP;
    }
    if (fault == RR_VERS) {
        return RR_SAY_VERS;
    }
    if (r->call.proc == RR_ERROR) {
        return RR_DROP;
    }
    if (r->call.proc == RR_DONE) {
        return old ? RR_SAY_CHUNK : RR_DROP;
    }
    if (fault != RR_OK || r->call.proc == RR_MSGP) {
        return RR_SAY_CHUNK;
    }
    return RR_ANSWER;
}

static enum rr_outcome answer(struct rr_responder *r, struct sg_span payload, size_t *len)
{
    enum rr_outcome outcome = rr_gather(r, payload);
    struct rr_rpc rpc;
    struct sg_span call;

    if (outcome != RR_ANSWER) {
        return outcome;
    }
    call = sg_span_of(r->in.octets, r->in_len);
    /* A Reply would belong to a Call of ours, and there is none. */
    if (call.len >= 8 && sg_get_be32(call.p + 4) == RR_REPLY) {
        return RR_DROP;
    }
    if (!rr_rpc_parse(call, &rpc) || rpc.xid != r->call.xid) {
        return RR_SAY_CHUNK;
    }
    rr_echo_answer(&r->memory, &rpc, call, r->stream);
    sg_assert(!r->stream->full);
    return rr_scatter(r, len);
}

/* The STag that the Reply may invalidate: one of the Call's. */
static bool invalidates(const struct rr_responder *r, uint32_t *stag)
{
    if (!rr_may_invalidate(&r->ours, &r->theirs) || !(r->call.reads || r->call.segments)) {
        return false;
    }
    *stag = r->call.segments ? r->call.segment[0].handle : r->call.read[0].segment.handle;
    return true;
}

static bool send_out(struct rr_responder *r, size_t len, bool reply)
{
    struct rr_post post = { .work = RR_WORK_SEND, .local = &r->send, .len = len };

    if (reply && invalidates(r, &post.stag)) {
        post.work = RR_WORK_SEND_INV;
    }
    return r->port->ops->post(r->port, &post);
}

static bool say_error(struct rr_responder *r, enum rr_err err)
{
    struct rr_header *h = &r->reply;

    r->counts.errors++;
    h->vers = r->call.vers;
    h->proc = RR_ERROR;
    h->err = err;
    h->low = h->high = RR_VERSION;
    return send_out(r, rr_header_emit(h, r->send.octets, r->send.len), false);
}

static bool treat(struct rr_responder *r, struct sg_span message)
{
    enum rr_fault fault = rr_header_parse(message, &r->call);
    enum rr_outcome outcome = rr_examine(r, fault);
    size_t len = 0;

    r->reply.xid = r->call.xid;
    r->reply.vers = RR_VERSION;
    r->reply.credit = r->settings.credits;
    if (outcome == RR_ANSWER) {
        outcome = answer(
            r, r->call.proc == RR_MSG ? sg_span_from(message, r->call.len) : SG_SPAN_NONE, &len);
    }
    switch (outcome) {
    case RR_ANSWER:
        r->counts.replies++;
        return send_out(r, len, true);
    case RR_SAY_VERS:
        return say_error(r, RR_ERR_VERS);
    case RR_SAY_CHUNK:
        return say_error(r, RR_ERR_CHUNK);
    case RR_DROP:
        r->counts.dropped++;
        return true;
    default:
        return false;
    }
}

enum rr_event_kind rr_responder_step(struct rr_responder *r, unsigned ms)
{
    struct rr_event event;
    enum rr_event_kind kind = r->port->ops->poll(r->port, ms, &event);

    if (kind != RR_EVENT_RECEIVED) {
        return kind;
    }
    if (!treat(r, event.octets)) {
        return RR_EVENT_CLOSED;
    }
    return r->port->ops->repost(r->port, event.slot) ? kind : RR_EVENT_CLOSED;
}
