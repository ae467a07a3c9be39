/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams in memory (see stream_mem.h for what they are good for).
 *
 * A connection is two ends that point at each other.  Each end has a queue of the octets on their
 * way to it, flags for the events that it still owes its user, and one timer that delivers them
 * one at a time.  Octets and FIN come in the order in which they were sent.  'writable' belongs to
 * the other direction, so in queued mode it may come before or after them, and FIN may come with
 * the last octets or later, as in TCP.
 *
 * An end dies when its user has aborted it or got 'closed'; its peer then no longer points at it,
 * and its memory is freed when no call into it is on the stack.  Octets sent to a dead end are
 * lost, as in TCP before the RST comes back.
 */
#include <glib.h>

#include "base/crc32c.h"
#include "base/prng.h"
#include "mem_priv.h"

enum {
    JOIN_MAX = 4096, /* immediate: vectors up to this size arrive as one piece */
    PPM = 1000000,
};

/* Octets of one frame on their way to an end; 'left' of them are not delivered. */
struct mem_frame {
    uint32_t crc;
    size_t len, left;
};

struct mem_end {
    struct sg_stream s;
    struct mem_port *port;
    struct mem_end *peer;
    struct sg_endpoint local, remote;
    struct sg_timer timer;
    uint8_t *q; /* inbound octets */
    size_t q_head, q_len, q_cap;
    uint64_t delivered;
    unsigned holds;
    bool dead;
    bool in_receive;
    bool connecting;
    bool writable_due, want_room;
    bool fin_due, fin_seen; /* from the peer */
    bool fin_sent;
    bool held; /* by its user: only the connection's end is delivered */
    bool closed_due;
    enum sg_stream_end why;
    GArray *frames; /* with a tap: inbound, struct mem_frame */
    uint32_t out_crc;
    size_t out_len; /* of the frame that the next 'push' ends */
};

static uint64_t prng(struct sg_mem_switch *sw)
{
    return sg_prng(&sw->random);
}

static bool chance(struct sg_mem_switch *sw, uint32_t ppm)
{
    return ppm && prng(sw) % PPM < ppm;
}

static struct mem_end *end_of(struct sg_stream *s)
{
    return sg_container_of(s, struct mem_end, s);
}

static void release(struct mem_end *e)
{
    if (--e->holds == 0 && e->dead) {
        g_array_free(e->frames, TRUE);
        g_free(e->q);
        g_free(e);
    }
}

static void die(struct mem_end *e)
{
    if (e->dead) {
        return;
    }
    e->dead = true;
    sg_timerq_cancel(&e->port->timers, &e->timer);
    if (e->peer) {
        e->peer->peer = NULL;
        e->peer = NULL;
    }
    e->holds++;
    release(e);
}

/* Something is due at this end. */
static void schedule(struct mem_end *e)
{
    const struct sg_mem_options *opt = &e->port->sw->opt;
    uint64_t at = e->port->sw->now_ns;

    if (e->dead || sg_timer_armed(&e->timer)) {
        return;
    }
    if (opt->queued && opt->delay_max_ns) {
        at += opt->delay_min_ns + prng(e->port->sw) % (opt->delay_max_ns - opt->delay_min_ns + 1);
    }
    sg_timerq_arm(&e->port->timers, &e->timer, at);
}

static void end_reset(struct mem_end *e, enum sg_stream_end why)
{
    e->closed_due = true;
    e->why = why;
    e->q_len = 0;
    schedule(e);
}

/* The queue of inbound octets. */

static void enqueue(struct mem_end *e, const struct iovec *iov, unsigned n, size_t total)
{
    unsigned i;

    if (e->q_head && e->q_head + e->q_len + total > e->q_cap) {
        memmove(e->q, e->q + e->q_head, e->q_len);
        e->q_head = 0;
    }
    if (e->q_len + total > e->q_cap) {
        e->q_cap = (e->q_len + total) * 2;
        e->q = g_realloc(e->q, e->q_cap);
    }
    for (i = 0; i < n; i++) {
        memcpy(e->q + e->q_head + e->q_len, iov[i].iov_base, iov[i].iov_len);
        e->q_len += iov[i].iov_len;
    }
    schedule(e);
}

/* Frames, for the tap. */

static void frame_grows(struct mem_end *e, const struct iovec *iov, unsigned n)
{
    for (unsigned i = 0; e->port->sw->tap && i < n; i++) {
        e->out_crc = sg_crc32c(e->out_crc, iov[i].iov_base, iov[i].iov_len);
        e->out_len += iov[i].iov_len;
    }
}

static void frame_sent(struct mem_end *e)
{
    struct mem_frame f = { .crc = e->out_crc, .len = e->out_len, .left = e->out_len };

    if (f.len && e->peer) {
        /* As if there were headers: no frame is like another. */
        e->port->sw->frames++;
        f.crc = sg_crc32c(f.crc, &e->port->sw->frames, sizeof(e->port->sw->frames));
        e->port->sw->tap(e->port->sw->tap_opaque, &e->local, true, f.crc, f.len);
        g_array_append_val(e->peer->frames, f);
    }
    e->out_len = e->out_crc = 0;
}

/* The next n octets of the queue are delivered. */
static void frames_received(struct mem_end *e, size_t n)
{
    unsigned done = 0;

    while (n && done < e->frames->len) {
        struct mem_frame *f = &g_array_index(e->frames, struct mem_frame, done);
        size_t part = SG_MIN(n, f->left);

        if (f->left == f->len) {
            e->port->sw->tap(e->port->sw->tap_opaque, &e->local, false, f->crc, f->len);
        }
        f->left -= part;
        n -= part;
        done += !f->left;
    }
    sg_assert(!n || !e->port->sw->tap);
    g_array_remove_range(e->frames, 0, done);
}

static void give(struct mem_end *e, const uint8_t *p, size_t n)
{
    e->holds++;
    e->in_receive = true;
    e->delivered += n;
    e->s.events->receive(&e->s, p, n);
    e->in_receive = false;
    release(e);
}

static void deliver_queued(struct mem_end *e)
{
    struct sg_mem_switch *sw = e->port->sw;
    const struct sg_mem_options *opt = &sw->opt;
    size_t n = e->q_len;
    uint8_t *p;

    if (chance(sw, opt->break_ppm)) {
        sg_mem_break(&e->s);
        return;
    }
    if (opt->piece_max && n > 1) {
        n = 1 + prng(sw) % SG_MIN(n, opt->piece_max);
    }
    /* A copy, because octets that arrive meanwhile may move the queue. */
    p = g_memdup2(e->q + e->q_head, n);
    e->q_len -= n;
    e->q_head = e->q_len ? e->q_head + n : 0;
    if (e->delivered >= opt->corrupt_from && chance(sw, opt->corrupt_ppm)) {
        p[prng(sw) % n] ^= (uint8_t)(1u << (prng(sw) % 8));
    }
    if (e->peer && e->peer->want_room) {
        e->peer->want_room = false;
        e->peer->writable_due = true;
        schedule(e->peer);
    }
    frames_received(e, n);
    give(e, p, n);
    g_free(p);
}

static void end_timer(struct sg_timer *t, uint64_t now_ns);
static const struct sg_stream_ops mem_ops;

static struct mem_end *end_new(struct mem_port *port)
{
    struct mem_end *e = g_new0(struct mem_end, 1);

    e->s.ops = &mem_ops;
    e->frames = g_array_new(FALSE, FALSE, sizeof(struct mem_frame));
    e->port = port;
    sg_timer_init(&e->timer, end_timer, e);
    return e;
}

/* The SYN has arrived at its destination. */
static void knock(struct mem_end *e)
{
    struct mem_port *where;
    struct mem_listener *l = mem_find_listener(e->port->sw, &e->remote, &where);
    struct mem_end *peer;

    e->connecting = false;
    if (!l) {
        end_reset(e, SG_STREAM_REFUSED);
        return;
    }
    peer = end_new(where);
    peer->local = e->remote;
    peer->remote = e->local;
    peer->peer = e;
    e->peer = peer;
    peer->holds++;
    if (!l->base.accept(l->base.user, &peer->s)) {
        die(peer);
        end_reset(e, SG_STREAM_RESET);
    } else if (!e->dead) {
        e->s.events->connected(&e->s);
    }
    release(peer);
}

/* Something from the peer may be delivered: octets, or the FIN behind them. */
static bool inbound_due(const struct mem_end *e)
{
    return e->q_len ? !e->held : e->fin_due;
}

static void deliver_inbound(struct mem_end *e)
{
    bool together = e->port->sw->opt.queued && (prng(e->port->sw) & 1);

    if (e->q_len) {
        deliver_queued(e);
        if (!together) {
            return;
        }
    }
    /* While octets were delivered, the user may have closed this end, or a reset may have come. */
    if (!e->dead && !e->closed_due && e->fin_due && !e->q_len) {
        e->fin_due = false;
        e->fin_seen = true;
        e->s.events->peer_closed(&e->s);
    }
}

/* Delivers one event. */
static void step(struct mem_end *e)
{
    bool inbound_first = e->port->sw->opt.queued && inbound_due(e) && (prng(e->port->sw) & 1);

    if (e->connecting) {
        knock(e);
    } else if (e->closed_due) {
        enum sg_stream_end why = e->why;

        if (e->peer) {
            e->peer->peer = NULL;
            e->peer = NULL;
        }
        e->s.events->closed(&e->s, why);
        die(e);
    } else if (e->writable_due && !inbound_first) {
        e->writable_due = false;
        e->s.events->writable(&e->s);
    } else if (inbound_due(e)) {
        deliver_inbound(e);
    }
}

static void end_timer(struct sg_timer *t, uint64_t now_ns)
{
    struct mem_end *e = t->opaque;

    (void)now_ns;
    e->holds++;
    step(e);
    if (!e->dead && e->fin_seen && e->fin_sent && !e->closed_due) {
        e->closed_due = true;
        e->why = SG_STREAM_CLOSED;
    }
    if (!e->dead && (e->connecting || e->closed_due || e->writable_due || inbound_due(e))) {
        schedule(e);
    }
    release(e);
}

/* Operations of a stream. */

static size_t mem_room(struct sg_stream *s)
{
    struct mem_end *e = end_of(s);
    const struct sg_mem_options *opt = &e->port->sw->opt;

    if (!e->peer || (!opt->queued && !e->peer->held)) {
        return SIZE_MAX / 2;
    }
    return e->peer->q_len < opt->room ? opt->room - e->peer->q_len : 0;
}

/* Straight into the peer's receive function. */
static void hand_over(struct mem_end *to, const struct iovec *iov, unsigned n, size_t total)
{
    uint8_t joined[JOIN_MAX];
    size_t at = 0;
    unsigned i;

    to->holds++;
    if (total <= sizeof(joined) && n > 1) {
        for (i = 0; i < n; i++) {
            memcpy(joined + at, iov[i].iov_base, iov[i].iov_len);
            at += iov[i].iov_len;
        }
        give(to, joined, total);
    } else {
        for (i = 0; i < n && !to->dead; i++) {
            if (iov[i].iov_len) {
                give(to, iov[i].iov_base, iov[i].iov_len);
            }
        }
    }
    release(to);
}

static bool mem_send(struct sg_stream *s, const struct iovec *iov, unsigned n, bool more)
{
    struct mem_end *e = end_of(s);
    struct mem_end *to = e->peer;
    size_t total = 0;
    unsigned i;

    (void)more;
    sg_assert(!e->dead && !e->fin_sent);
    for (i = 0; i < n; i++) {
        total += iov[i].iov_len;
    }
    if (total > mem_room(s)) {
        e->want_room = true;
        return false;
    }
    if (!to || to->dead || to->closed_due) {
        return true;
    }
    frame_grows(e, iov, n);
    if (e->port->sw->opt.queued || to->in_receive || to->q_len || to->connecting || to->held) {
        enqueue(to, iov, n, total);
    } else {
        hand_over(to, iov, n, total);
    }
    return true;
}

static void mem_push(struct sg_stream *s)
{
    frame_sent(end_of(s));
}

static void mem_shutdown(struct sg_stream *s)
{
    struct mem_end *e = end_of(s);

    if (e->fin_sent) {
        return;
    }
    e->fin_sent = true;
    if (e->peer) {
        e->peer->fin_due = true;
        schedule(e->peer);
    }
    if (e->fin_seen && !e->closed_due) {
        e->closed_due = true;
        e->why = SG_STREAM_CLOSED;
        schedule(e);
    }
}

static void mem_abort(struct sg_stream *s)
{
    struct mem_end *e = end_of(s);

    if (e->peer) {
        end_reset(e->peer, SG_STREAM_RESET);
    }
    die(e);
}

static void mem_hold(struct sg_stream *s, bool held)
{
    struct mem_end *e = end_of(s);

    e->held = held;
    if (!held && (e->q_len || e->fin_due)) {
        schedule(e);
    }
}

static size_t mem_emss(struct sg_stream *s)
{
    return end_of(s)->port->sw->opt.emss;
}

/* Octets that were delivered to the other end count as acknowledged. */
static size_t mem_unacked(struct sg_stream *s)
{
    struct mem_end *e = end_of(s);

    return e->peer ? e->peer->q_len : 0;
}

static void mem_endpoints(struct sg_stream *s, struct sg_endpoint *local,
                          struct sg_endpoint *remote)
{
    *local = end_of(s)->local;
    *remote = end_of(s)->remote;
}

static const struct sg_stream_ops mem_ops = {
    .room = mem_room,
    .send = mem_send,
    .push = mem_push,
    .shutdown = mem_shutdown,
    .abort = mem_abort,
    .emss = mem_emss,
    .unacked = mem_unacked,
    .hold = mem_hold,
    .endpoints = mem_endpoints,
};

void sg_mem_break(struct sg_stream *s)
{
    struct mem_end *e = end_of(s);

    if (e->peer) {
        end_reset(e->peer, SG_STREAM_RESET);
    }
    end_reset(e, SG_STREAM_RESET);
}

struct sg_stream *mem_end_connect(struct mem_port *port, const struct sg_endpoint *local,
                                  const struct sg_endpoint *remote,
                                  const struct sg_stream_events *events, void *user)
{
    struct mem_end *e = end_new(port);

    e->local = *local;
    e->remote = *remote;
    e->s.events = events;
    e->s.user = user;
    e->connecting = true;
    schedule(e);
    return &e->s;
}
