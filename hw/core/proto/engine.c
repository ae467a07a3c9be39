/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The iWARP engine as a whole: creation, active connects, the events of streams, the timer turn.
 *
 * An engine owns its connections and listeners and nothing above or below them.  listener.c bounds
 * what a listener holds.  All memory of a connection except its startup buffer is allocated
 * only when its peer has sent the octets that need it.  The engine and its buffers are allocated
 * once, with the adapter: no guest and no peer causes an allocation that must not fail.
 *
 * Detached connections have something left to send, but no user that would call sg_conn_transmit():
 * a rejecting Reply, or a Terminate that ends a failed startup.  sg_engine_run() transmits for
 * them, after a kick of the host.
 */
#include <glib.h>
#include <limits.h>

#include "proto/conn.h"

enum sg_conn_end conn_end_of_stream(enum sg_stream_end why)
{
    switch (why) {
    case SG_STREAM_CLOSED:
        return SG_CONN_CLOSED;
    case SG_STREAM_REFUSED:
        return SG_CONN_REFUSED;
    case SG_STREAM_TIMEOUT:
        return SG_CONN_TIMEOUT;
    case SG_STREAM_UNREACHABLE:
        return SG_CONN_UNREACHABLE;
    case SG_STREAM_NORES:
        return SG_CONN_NORES;
    case SG_STREAM_RESET:
        break;
    }
    return SG_CONN_RESET;
}

const char *sg_conn_end_text(enum sg_conn_end end)
{
    static const char *const texts[] = {
        [SG_CONN_OK] = "the connection ended",
        [SG_CONN_REJECTED] = "the peer rejected the connection",
        [SG_CONN_REFUSED] = "the peer refused the connection",
        [SG_CONN_TIMEOUT] = "the connection timed out",
        [SG_CONN_RESET] = "the connection was reset",
        [SG_CONN_PROTOCOL] = "the peer broke a rule of the protocol",
        [SG_CONN_CLOSED] = "the connection was closed",
        [SG_CONN_TERMINATED] = "a Terminate ended the connection",
        [SG_CONN_UNREACHABLE] = "the peer cannot be reached",
        [SG_CONN_NORES] = "no memory for the connection",
    };

    return texts[end];
}

struct sg_engine *sg_engine_new(const struct sg_host *host, struct sg_stream_net *net,
                                const struct sg_engine_config *config,
                                const struct sg_engine_ops *ops)
{
    struct sg_engine *e = g_new0(struct sg_engine, 1);

    e->host = host;
    e->net = net;
    e->ops = ops;
    e->rx_scratch = g_malloc(SG_ULPDU_FIELD_MAX);
    e->tx_scratch = g_malloc(SG_FPDU_WIRE_MAX);
    sg_timerq_init(&e->timers);
    sg_engine_set_config(e, config);
    return e;
}

void sg_engine_set_ops(struct sg_engine *e, const struct sg_engine_ops *ops)
{
    e->ops = ops;
}

void sg_engine_stop(struct sg_engine *e)
{
    e->stopped = true;
}

bool sg_engine_abort_some(struct sg_engine *e, unsigned max)
{
    while (e->conns && max--) {
        /* No call uses it, but the list of detached connections may hold it. */
        sg_assert(e->conns->busy == e->conns->detached_listed);
        sg_conn_abort(e->conns);
    }
    return e->conns;
}

void sg_engine_reset(struct sg_engine *e)
{
    while (e->listeners) {
        sg_engine_unlisten(e->listeners);
    }
    sg_engine_abort_some(e, UINT_MAX);
    sg_assert(!e->detached);
    e->stopped = false;
    memset(&e->stats, 0, sizeof(e->stats));
    e->admit_due = false;
    e->deferred = false;
    e->next_id = 0;
}

void sg_engine_free(struct sg_engine *e)
{
    sg_engine_reset(e);
    g_free(e->rx_scratch);
    g_free(e->tx_scratch);
    g_free(e);
}

void sg_engine_set_config(struct sg_engine *e, const struct sg_engine_config *config)
{
    sg_assert(config->mpa_rev == SG_MPA_REV_1 || config->mpa_rev == SG_MPA_REV_2);
    e->config = *config;
    /* The all-ones value means "not negotiated" on the wire. */
    e->config.max_ird = SG_MIN(config->max_ird, SG_MPA_DEPTH_MAX - 1);
    e->config.max_ord = SG_MIN(config->max_ord, SG_MPA_DEPTH_MAX - 1);
    e->config.rtr_mask &= SG_RTR_SEND | SG_RTR_WRITE | SG_RTR_READ;
    if (!e->config.rtr_mask) {
        e->config.rtr_mask = SG_RTR_WRITE; /* RFC 6581 section 9.2: support at least one */
    }
    if (!e->ops->mpe) {
        e->config.mpe_draft = SG_MPE_DRAFT_OFF; /* verbs do not execute such requests */
    }
    e->config.rfc7306 = config->rfc7306 && e->ops->atomic;
}

const struct sg_engine_stats *sg_engine_stats(const struct sg_engine *e)
{
    return &e->stats;
}

/* Transmits for detached connections. */
static void run_detached(struct sg_engine *e)
{
    struct sg_conn *list = e->detached;

    e->detached = NULL;
    while (list) {
        struct sg_conn *c = list;

        list = c->detached_next;
        c->detached_listed = false;
        if (sg_conn_transmit(c, SG_FPDU_WIRE_MAX)) {
            conn_signal(c);
        }
        conn_leave(c); /* held since conn_signal */
    }
}

uint64_t sg_engine_run(struct sg_engine *e, uint64_t now_ns)
{
    sg_timerq_run(&e->timers, now_ns);
    listener_admit(e);
    run_detached(e);
    return e->detached ? now_ns : sg_timerq_next(&e->timers);
}

struct sg_conn *sg_engine_connect(struct sg_engine *e, const struct sg_endpoint *local,
                                  const struct sg_endpoint *remote, const struct sg_conn_params *p,
                                  void *user, enum sg_conn_end *why)
{
    struct sg_conn *c = conn_new(e, true, user);
    enum sg_stream_end stream_why = SG_STREAM_NORES;

    if (!c) {
        *why = SG_CONN_NORES;
        return NULL;
    }
    conn_set_state(c, CONN_CONNECTING);
    if (!c->wire->make_request(c, p)) {
        *why = SG_CONN_PROTOCOL;
        conn_kill(c);
        return NULL;
    }
    c->stream = e->net->ops->connect(e->net, local, remote, &conn_events, c, &stream_why);
    if (!c->stream) {
        *why = conn_end_of_stream(stream_why);
        conn_kill(c);
        return NULL;
    }
    timers_connecting(c);
    return c;
}

/* Events of the stream below; all of them may end the connection. */

static void stream_connected(struct sg_stream *s)
{
    struct sg_conn *c = s->user;

    if (c->e->stopped) {
        return;
    }
    conn_enter(c);
    if (c->state == CONN_CONNECTING) {
        conn_set_state(c, CONN_WAIT_REPLY);
        conn_signal(c);
    }
    conn_leave(c);
}

static void stream_receive(struct sg_stream *s, const uint8_t *p, size_t n)
{
    struct sg_conn *c = s->user;

    if (c->e->stopped) {
        return;
    }
    conn_enter(c);
    c->e->stats.rx_octets += n;
    if (c->state < CONN_WAIT_FIRST) {
        size_t used = c->wire->receive_setup(c, p, n);

        p += used;
        n -= used;
    }
    if (n) {
        c->wire->receive(c, p, n);
    }
    conn_leave(c);
}

static bool stream_receive_early(struct sg_stream *s, uint32_t ahead, const uint8_t *p, size_t n)
{
    struct sg_conn *c = s->user;
    bool taken;

    if (c->e->stopped || !c->wire->receive_early) {
        return false;
    }
    conn_enter(c);
    taken = c->wire->receive_early(c, ahead, p, n);
    conn_leave(c);
    return taken;
}

static void stream_writable(struct sg_stream *s)
{
    struct sg_conn *c = s->user;

    if (c->e->stopped) {
        return;
    }
    conn_enter(c);
    c->tx.blocked = false;
    conn_signal(c);
    conn_leave(c);
}

static void stream_peer_closed(struct sg_stream *s)
{
    struct sg_conn *c = s->user;

    if (c->e->stopped) {
        return;
    }
    conn_enter(c);
    if (c->stall) {
        stall_keep_fin(c);
    } else {
        close_peer_fin(c);
    }
    conn_leave(c);
}

static void stream_closed(struct sg_stream *s, enum sg_stream_end why)
{
    struct sg_conn *c = s->user;

    if (c->e->stopped) {
        c->stream = NULL;
        return;
    }
    conn_enter(c);
    c->stream = NULL; /* it frees itself when this returns */
    conn_drop(c, c->end != SG_CONN_OK ? c->end : conn_end_of_stream(why));
    conn_leave(c);
}

const struct sg_stream_events conn_events = {
    .connected = stream_connected,
    .receive = stream_receive,
    .receive_early = stream_receive_early,
    .writable = stream_writable,
    .peer_closed = stream_peer_closed,
    .closed = stream_closed,
};
