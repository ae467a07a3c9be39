/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "port_memory.h"

#include <glib.h>

struct memory_arrival {
    unsigned slot;
    size_t len;
    bool invalidated;
    uint32_t stag;
};

struct memory_port {
    struct rr_port port;
    struct memory_port *peer;
    struct rr_pair *pair;
    unsigned receives;
    size_t receive_size;
    uint8_t *receive; /* receives * receive_size */
    unsigned posted[RR_RECEIVES_MAX], posted_count;
    struct memory_arrival
        arrived[RR_RECEIVES_MAX]; /* first in, first out; never more than receives */
    unsigned arrived_count;
    struct rr_region *region[RR_REGIONS_MAX];
};

struct rr_pair {
    struct memory_port side[2];
    bool over; /* the connection has ended */
    uint32_t next_stag;
    void (*pump)(void *arg);
    void *pump_arg;
};

static struct memory_port *of(struct rr_port *port)
{
    return (struct memory_port *)port;
}

static bool broken(struct rr_port *port, const char *what)
{
    of(port)->pair->over = true;
    return rr_port_fails(port, "%s; the connection is over", what);
}

/* The peer's region that has all these octets and this right, or NULL. */
static struct rr_region *reach(struct memory_port *m, const struct rr_post *post, unsigned right)
{
    for (unsigned i = 0; i < RR_REGIONS_MAX; i++) {
        struct rr_region *r = m->peer->region[i];

        if (r && r->valid && r->stag == post->stag && (r->access & right) &&
            post->offset >= (uintptr_t)r->octets &&
            sg_range_ok((size_t)(post->offset - (uintptr_t)r->octets), post->len, r->len)) {
            return r;
        }
    }
    return NULL;
}

static bool invalidate(struct memory_port *m, uint32_t stag)
{
    for (unsigned i = 0; i < RR_REGIONS_MAX; i++) {
        struct rr_region *r = m->peer->region[i];

        if (r && r->valid && r->access && r->stag == stag) {
            r->valid = false;
            return true;
        }
    }
    return false;
}

static bool send_to_peer(struct rr_port *port, const struct rr_post *post)
{
    struct memory_port *m = of(port), *peer = m->peer;
    bool with_inv = post->work == RR_WORK_SEND_INV;
    unsigned slot;

    if (!peer->posted_count) {
        return broken(port, "the peer has no receive posted");
    }
    if (post->len > peer->receive_size) {
        return broken(port, "the Send is longer than the peer's receive");
    }
    if (with_inv && !invalidate(m, post->stag)) {
        return broken(port, "an STag to invalidate that the peer does not have");
    }
    slot = peer->posted[0];
    memmove(peer->posted, peer->posted + 1, --peer->posted_count * sizeof(peer->posted[0]));
    if (post->len) {
        memcpy(peer->receive + slot * peer->receive_size, post->local->octets + post->at,
               post->len);
    }
    peer->arrived[peer->arrived_count++] =
        (struct memory_arrival){ slot, post->len, with_inv, with_inv ? post->stag : 0 };
    return true;
}

static bool memory_post(struct rr_port *port, const struct rr_post *post)
{
    struct memory_port *m = of(port);
    struct rr_region *there;

    port->gone = m->pair->over;
    if (port->gone) {
        return rr_port_fails(port, "the connection is over");
    }
    sg_assert(sg_range_ok(post->at, post->len, post->local->len));
    if (post->work == RR_WORK_SEND || post->work == RR_WORK_SEND_INV) {
        return send_to_peer(port, post);
    }
    if (!post->len) {
        return true;
    }
    there = reach(m, post, post->work == RR_WORK_READ ? RR_MAY_READ : RR_MAY_WRITE);
    if (!there) {
        return broken(port, "remote access to memory that the peer has not offered");
    }
    if (post->work == RR_WORK_READ) {
        memcpy(post->local->octets + post->at, (const uint8_t *)(uintptr_t)post->offset, post->len);
    } else {
        memcpy((uint8_t *)(uintptr_t)post->offset, post->local->octets + post->at, post->len);
    }
    return true;
}

static bool memory_repost(struct rr_port *port, unsigned slot)
{
    struct memory_port *m = of(port);

    sg_assert(m->posted_count < m->receives);
    m->posted[m->posted_count++] = slot;
    return true;
}

static bool memory_reg(struct rr_port *port, struct rr_region *region)
{
    struct memory_port *m = of(port);

    for (unsigned i = 0; i < RR_REGIONS_MAX; i++) {
        if (!m->region[i]) {
            m->region[i] = region;
            m->pair->next_stag += 0x101;
            region->stag = m->pair->next_stag;
            region->valid = true;
            return true;
        }
    }
    return rr_port_fails(port, "more than %d memory regions", RR_REGIONS_MAX);
}

static bool memory_dereg(struct rr_port *port, struct rr_region *region)
{
    struct memory_port *m = of(port);

    for (unsigned i = 0; i < RR_REGIONS_MAX; i++) {
        if (m->region[i] == region) {
            m->region[i] = NULL;
        }
    }
    region->valid = false;
    return true;
}

static enum rr_event_kind memory_poll(struct rr_port *port, unsigned ms, struct rr_event *event)
{
    struct memory_port *m = of(port);
    struct rr_pair *pair = m->pair;

    if (!m->arrived_count && m == &pair->side[0] && pair->pump) {
        pair->pump(pair->pump_arg);
    }
    if (!m->arrived_count) {
        return pair->over ? RR_EVENT_CLOSED : RR_EVENT_NONE;
    }
    *event = (struct rr_event){
        .octets = sg_span_of(m->receive + m->arrived[0].slot * m->receive_size, m->arrived[0].len),
        .slot = m->arrived[0].slot,
        .invalidated = m->arrived[0].invalidated,
        .stag = m->arrived[0].stag,
    };
    memmove(m->arrived, m->arrived + 1, --m->arrived_count * sizeof(m->arrived[0]));
    return RR_EVENT_RECEIVED;
}

static void memory_close(struct rr_port *port)
{
    of(port)->pair->over = true;
}

static const struct rr_port_ops memory_ops = {
    .post = memory_post,
    .repost = memory_repost,
    .reg = memory_reg,
    .dereg = memory_dereg,
    .poll = memory_poll,
    .close = memory_close,
};

static void start_side(struct rr_pair *pair, unsigned n, const struct rr_port_side *side,
                       const struct rr_port_side *other)
{
    struct memory_port *m = &pair->side[n];

    sg_assert(side->receives && side->receives <= RR_RECEIVES_MAX);
    m->port.ops = &memory_ops;
    memcpy(m->port.peer, other->private_data, other->private_len);
    m->port.peer_len = other->private_len;
    m->peer = &pair->side[!n];
    m->pair = pair;
    m->receives = side->receives;
    m->receive_size = side->receive_size;
    m->receive = g_malloc(side->receives * side->receive_size);
    for (unsigned i = 0; i < side->receives; i++) {
        m->posted[m->posted_count++] = i;
    }
}

struct rr_pair *rr_pair_new(const struct rr_port_side *first, const struct rr_port_side *second)
{
    struct rr_pair *pair = g_new0(struct rr_pair, 1);

    start_side(pair, 0, first, second);
    start_side(pair, 1, second, first);
    return pair;
}

void rr_pair_free(struct rr_pair *pair)
{
    if (pair) {
        g_free(pair->side[0].receive);
        g_free(pair->side[1].receive);
        g_free(pair);
    }
}

struct rr_port *rr_pair_port(struct rr_pair *pair, unsigned side)
{
    return &pair->side[side].port;
}

void rr_pair_pump(struct rr_pair *pair, void (*pump)(void *arg), void *arg)
{
    pair->pump = pump;
    pair->pump_arg = arg;
}
