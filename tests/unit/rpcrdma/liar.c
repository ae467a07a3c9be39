/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "liar.h"

#include "rpc.h"

static struct liar *of(struct rr_port *port)
{
    return (struct liar *)port;
}

/* Takes the message apart, lets the lie change it, and sends what is left of it. */
static bool lie_in_send(struct liar *l, struct rr_post post)
{
    struct rr_region region = { .octets = l->out, .len = sizeof(l->out) };
    struct sg_span octets = sg_span_of(post.local->octets + post.at, post.len);
    struct liar_message *m = &l->message;

    m->fault = rr_header_parse(octets, &m->h);
    m->rest_len = octets.len - m->h.len;
    memcpy(m->rest, octets.p + m->h.len, m->rest_len);
    m->swallow = m->twice = false;
    m->invalidate = post.work == RR_WORK_SEND_INV;
    m->stag = m->invalidate ? post.stag : l->stag;
    l->lie->sends(m);
    if (m->swallow) {
        return true;
    }
    post.len = rr_header_emit(&m->h, l->out, sizeof(l->out));
    memcpy(l->out + post.len, m->rest, m->rest_len);
    post.len += m->rest_len;
    post.local = &region;
    post.at = 0;
    post.work = m->invalidate ? RR_WORK_SEND_INV : RR_WORK_SEND;
    post.stag = m->stag;
    if (m->twice) {
        if (!l->inner->ops->post(l->inner, &post)) {
            return false;
        }
        m->h.xid ^= 0x1000;
        rr_header_emit(&m->h, l->out, sizeof(l->out));
        if (m->rest_len) {
            sg_put_be32(l->out + m->h.len, m->h.xid);
        }
    }
    return l->inner->ops->post(l->inner, &post);
}

/* Damages a copy of the Send, and lets that go out. */
static bool damage_send(struct liar *l, struct rr_post post)
{
    struct rr_region region = { .octets = l->out, .len = sizeof(l->out) };

    memcpy(l->out, post.local->octets + post.at, post.len);
    l->lie->damages(l->out, &post.len);
    post.local = &region;
    post.at = 0;
    return l->inner->ops->post(l->inner, &post);
}

/* Octets that are no result, into memory that was offered for one. */
static bool scribble(struct liar *l)
{
    struct rr_region region = { .octets = l->out, .len = sizeof(l->out) };
    struct rr_post post = {
        .work = RR_WORK_WRITE,
        .local = &region,
        .len = l->offered.length,
        .stag = l->offered.handle,
        .offset = l->offered.offset,
    };

    sg_assert(post.len <= sizeof(l->out));
    memset(l->out, 0x5a, post.len);
    l->scribbled += post.len > 0;
    return l->inner->ops->post(l->inner, &post);
}

static bool liar_post(struct rr_port *port, const struct rr_post *post)
{
    struct liar *l = of(port);
    struct rr_post changed = *post;
    bool done;

    if (l->stopped) {
        return true;
    }
    if (post->work <= RR_WORK_SEND_INV &&
        (l->lie->mute || (l->lie->cannot_send && l->lie->cannot_send(l)))) {
        return rr_port_fails(port, "it cannot send");
    }
    if (post->work <= RR_WORK_SEND_INV && l->lie->scribbles && !scribble(l)) {
        return false;
    }
    if (post->work <= RR_WORK_SEND_INV && post->len >= 4) {
        l->sent = sg_get_be32(post->local->octets + post->at);
    }
    if (post->work <= RR_WORK_SEND_INV && l->lie->sends) {
        return lie_in_send(l, changed);
    }
    if (post->work <= RR_WORK_SEND_INV && l->lie->damages) {
        return damage_send(l, changed);
    }
    if (post->work > RR_WORK_SEND_INV && l->lie->pretends) {
        return true;
    }
    if (post->work == RR_WORK_WRITE && l->lie->places) {
        l->lie->places(&changed);
    }
    done = l->inner->ops->post(l->inner, &changed);
    if (done && post->work == RR_WORK_READ && l->lie->reads) {
        l->lie->reads(post->local->octets + post->at, post->len);
    }
    if (done && post->work <= RR_WORK_SEND_INV && l->lie->leaves &&
        l->lie->leaves(sg_span_of(post->local->octets + post->at, post->len))) {
        l->inner->ops->close(l->inner);
    }
    return done;
}

static bool liar_repost(struct rr_port *port, unsigned slot)
{
    return of(port)->lie->keeps_receives || of(port)->inner->ops->repost(of(port)->inner, slot);
}

static bool liar_reg(struct rr_port *port, struct rr_region *region)
{
    return of(port)->inner->ops->reg(of(port)->inner, region);
}

static bool liar_dereg(struct rr_port *port, struct rr_region *region)
{
    return of(port)->inner->ops->dereg(of(port)->inner, region);
}

/* RDMA_ERROR, ERR_CHUNK, with the message's XID. */
static void say_error(struct liar *l, struct sg_span message)
{
    struct rr_region region = { .octets = l->out, .len = sizeof(l->out) };
    struct rr_post post = { .work = RR_WORK_SEND, .local = &region, .len = RR_ERR_CHUNK_LEN };

    memset(l->out, 0, RR_ERR_CHUNK_LEN);
    memcpy(l->out, message.p, SG_MIN(message.len, 4));
    l->out[7] = RR_VERSION;
    l->out[11] = 1;
    l->out[15] = RR_ERROR;
    l->out[19] = RR_ERR_CHUNK;
    l->inner->ops->post(l->inner, &post);
}

static enum rr_event_kind liar_poll(struct rr_port *port, unsigned ms, struct rr_event *event)
{
    struct liar *l = of(port);
    enum rr_event_kind kind = l->inner->ops->poll(l->inner, ms, event);
    struct liar_message *m = &l->message;
    bool swallow = false;

    if (kind != RR_EVENT_RECEIVED) {
        return kind;
    }
    l->offered.length = 0;
    if (rr_header_parse(event->octets, &m->h) == RR_OK) {
        if (m->h.chunks && m->h.chunk[0].count) {
            l->offered = m->h.segment[m->h.chunk[0].first];
        }
        l->stag = m->h.segments ? m->h.segment[0].handle : 0;
        l->stag = m->h.reads ? m->h.read[0].segment.handle : l->stag;
    }
    if (l->lie->ends && l->lie->ends(l, event->octets)) {
        l->inner->ops->close(l->inner);
        return RR_EVENT_CLOSED;
    }
    if (l->lie->answers && l->lie->answers(l, event->octets)) {
        say_error(l, event->octets);
    }
    l->stopped |= l->lie->stops && l->lie->stops(l, event->octets);
    if (l->lie->receives) {
        l->lie->receives((uint8_t *)event->octets.p, &event->octets.len, &swallow);
    }
    if (swallow) {
        l->inner->ops->repost(l->inner, event->slot);
        return RR_EVENT_NONE;
    }
    return kind;
}

static void liar_close(struct rr_port *port)
{
    of(port)->inner->ops->close(of(port)->inner);
}

static const struct rr_port_ops liar_ops = {
    .post = liar_post,
    .repost = liar_repost,
    .reg = liar_reg,
    .dereg = liar_dereg,
    .poll = liar_poll,
    .close = liar_close,
};

void liar_wrap(struct liar *liar, const struct lie *lie, struct rr_port *port)
{
    liar->lie = lie;
    liar->port = *port;
    liar->port.ops = &liar_ops;
    liar->inner = port;
}

bool liar_is_call(struct sg_span message, struct rr_header *h)
{
    struct sg_span payload = rr_header_parse(message, h) == RR_OK && h->proc == RR_MSG
                                 ? sg_span_from(message, h->len)
                                 : SG_SPAN_NONE;

    return payload.len >= 8 && sg_get_be32(payload.p + 4) == RR_CALL;
}

unsigned liar_replies;

void liar_replies_first(uint8_t *octets, size_t *len, bool *swallow)
{
    static struct rr_header h;
    bool call = liar_is_call(sg_span_of(octets, *len), &h);

    *swallow = call && !liar_replies;
    liar_replies += !call;
}

static struct rr_port *wrap(struct rr_port *port, void *arg)
{
    struct liar *l = arg;

    liar_wrap(l, l->lie, port);
    if (l->lie->starts) {
        l->lie->starts(l->loopback, &l->port);
    }
    return &l->port;
}

void liar_init(struct liar *liar, struct rr_loopback *loopback, const struct lie *lie)
{
    struct rr_settings settings = rr_settings_default();

    settings.edition = lie->edition;
    settings.credits = lie->credits ? lie->credits : settings.credits;
    memset(liar, 0, sizeof(*liar));
    rr_loopback_init(loopback, &settings);
    liar->loopback = loopback;
    liar->lie = lie;
    loopback->wrap = wrap;
    loopback->wrap_arg = liar;
}
