/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a connection ends: the state of our half, independent of what still arrives.
 *
 *   OPEN --owner is going to close----------------> ANNOUNCED   sg_conn_prepare_close
 *   OPEN, ANNOUNCED --close, Terminate, reject----> DUE         sg_conn_close, close_due
 *   DUE --FIN passed to the stream----------------> SENT        close_send_fin
 *   SENT --all octets acknowledged----------------> ACKED       close_tick
 *   SENT, ACKED --the peer's FIN------------------> closed by the stream
 *
 * One function per event; advance() is the only writer of the state and logs each change.  The
 * state of the whole connection (conn.c) says meanwhile whether inbound messages count (CLOSING) or
 * are dropped (TERMINATING).  This also determines what the FIN waits for: the rest of the current
 * message and the answers to the peer's requests that were queued when the close began, or a
 * Terminate.  Later requests are dropped (requests.c), so the remaining work can only shrink (RFC
 * 5041 section 6.2.1 requires an orderly end, not new work).
 *
 * Time.  What was completed is delivered as long as TCP makes progress, that is, as long as the
 * peer's TCP acknowledges octets; passing octets to the stream is no progress.  The connection is
 * reset when
 *
 *   linger_timeout  has passed without progress while octets of ours are in flight, or while
 *                   nobody waits for the end (sg_conn_abandon)
 *   close_timeout   has passed since all was acknowledged, and the peer has not closed its half
 *   close_limit     has passed since the end began, whatever the peer does
 *
 * A timer checks for progress, CHECKS times in a close_timeout, which costs nothing on the data
 * path.
 */
#include "proto/conn.h"

enum { CHECKS = 4 };

static const char *const names[] = {
    [CLOSE_OPEN] = "OPEN", [CLOSE_ANNOUNCED] = "ANNOUNCED", [CLOSE_DUE] = "DUE",
    [CLOSE_SENT] = "SENT", [CLOSE_ACKED] = "ACKED",
};

static void advance(struct sg_conn *c, enum close_state to)
{
    if (to > c->close.state) {
        conn_log(c, SG_LOG_STATE, "our half: %s -> %s", names[c->close.state], names[to]);
        c->close.state = to;
    }
}

static size_t unacked(const struct sg_conn *c)
{
    return c->stream ? c->stream->ops->unacked(c->stream) : 0;
}

/* How long TCP may make no progress. */
static uint64_t patience_ns(const struct sg_conn *c)
{
    const struct sg_engine_config *cfg = &c->e->config;
    bool owing = conn_frame_due(c) || c->close.state == CLOSE_DUE || unacked(c);

    return ms_to_ns(owing || conn_is(c, CONN_IS_ABANDONED) ? cfg->linger_timeout_ms
                                                           : cfg->close_timeout_ms);
}

/* False: there is no memory for the clock, and the connection ends without a limit. */
static bool limit(struct sg_conn *c, uint64_t now)
{
    if (!c->close.clock) {
        c->close.clock = conn_alloc(c, sizeof(*c->close.clock));
        if (!c->close.clock) {
            return false;
        }
        *c->close.clock = (struct close_clock){
            .limit_ns = now + ms_to_ns(c->e->config.close_limit_ms),
        };
    }
    return true;
}

static void arm(struct sg_conn *c, uint64_t now)
{
    uint64_t at = c->close.clock->limit_ns;

    if (conn_is(c, CONN_IS_WATCHED)) {
        at = SG_MIN(at, c->close.clock->moved_ns + patience_ns(c));
        at = SG_MIN(at, now + SG_MAX(ms_to_ns(c->e->config.close_timeout_ms) / CHECKS, 1));
    }
    timers_look_at_end(c, at);
}

void close_watch(struct sg_conn *c)
{
    uint64_t now = conn_now(c);

    if (!limit(c, now)) {
        return;
    }
    conn_flag(c, CONN_IS_WATCHED, true);
    c->close.clock->moved_ns = now;
    c->close.clock->acked = c->tx.passed - unacked(c);
    if (!conn_paused(c)) { /* else when the pause is over */
        arm(c, now);
    }
}

bool close_go_on(struct sg_conn *c)
{
    if (!c->close.clock) {
        return false;
    }
    arm(c, conn_now(c));
    return true;
}

void close_due(struct sg_conn *c)
{
    advance(c, CLOSE_DUE);
    close_watch(c);
    conn_signal(c);
}

void sg_conn_prepare_close(struct sg_conn *c)
{
    if (conn_dead(c) || c->close.state != CLOSE_OPEN) {
        return;
    }
    advance(c, CLOSE_ANNOUNCED);
    if (limit(c, conn_now(c)) && c->state == CONN_STREAMING && !conn_paused(c)) {
        arm(c, conn_now(c));
    }
}

void sg_conn_close(struct sg_conn *c)
{
    switch (c->state) {
    case CONN_CONNECTING:
    case CONN_WAIT_REPLY:
        conn_drop_later(c, SG_CONN_CLOSED);
        break;
    case CONN_REQUESTED:
        sg_conn_reject(c, NULL, 0);
        break;
    case CONN_WAIT_FIRST:
    case CONN_STREAMING:
        timers_no_pause(c);
        conn_set_state(c, CONN_CLOSING);
        close_due(c);
        break;
    case CONN_REPLYING: /* CLOSING when the Reply has been sent */
        close_due(c);
        break;
    default:
        break; /* ending already */
    }
}

/* From now on everything that arrives is dropped. */
static void stop_receiving(struct sg_conn *c)
{
    stall_drop(c);
    c->rx.have = 0;
    conn_flag(c, CONN_DISCARDS, true);
}

void sg_conn_abandon(struct sg_conn *c)
{
    stop_receiving(c);
    conn_flag(c, CONN_IS_ABANDONED, true);
    sg_conn_close(c);
    if (c->state == CONN_CLOSING || c->state == CONN_TERMINATING) {
        close_watch(c); /* even if it was ending before */
    }
}

/*
 * Verbs answered CLOSED: the queue pair has left this connection, and verbs will say how it
 * ends.  Until then nothing is read, and the current message is not continued.
 */
void close_owner_left(struct sg_conn *c)
{
    stop_receiving(c);
    c->tx.active = false;
    c->peer.count = 0;
}

/* All our octets have been sent. */
void close_send_fin(struct sg_conn *c)
{
    if (c->close.state != CLOSE_DUE || conn_paused(c) || conn_is(c, CONN_TERM_DUE) ||
        c->tx.active || (c->state == CONN_CLOSING && c->peer.count) || conn_frame_due(c)) {
        return;
    }
    advance(c, CLOSE_SENT);
    close_watch(c);
    c->stream->ops->shutdown(c->stream);
}

/*
 * The peer's FIN, after all its octets.  Verbs learn of it and close our half when they are done;
 * in startup and inside an FPDU it ends the connection (RFC 5044 section 8).
 */
void close_peer_fin(struct sg_conn *c)
{
    switch (c->state) {
    case CONN_WAIT_FIRST:
    case CONN_STREAMING:
    case CONN_CLOSING:
        if (c->rx.have) {
            conn_log(c, SG_LOG_PEER_ERROR, "FIN inside an FPDU, after %u octets", c->rx.have);
            c->e->stats.protocol_errors++;
            conn_drop(c, SG_CONN_RESET);
        } else {
            conn_tell_down(c, SG_CONN_CLOSED);
        }
        break;
    case CONN_TERMINATING:
    case CONN_REJECTED:
        advance(c, CLOSE_DUE); /* the FIN follows what is pending */
        conn_signal(c);
        break;
    case CONN_DEAD:
        break;
    default:
        conn_drop(c, SG_CONN_RESET);
        break;
    }
}

/* Time has passed. */
void close_tick(struct sg_conn *c, uint64_t now)
{
    uint64_t acked = c->tx.passed - unacked(c);

    if (c->close.state == CLOSE_SENT && !unacked(c)) {
        advance(c, CLOSE_ACKED);
    }
    if (acked != c->close.clock->acked) {
        c->close.clock->acked = acked;
        c->close.clock->moved_ns = now;
    }
    if (now >= c->close.clock->limit_ns ||
        (conn_is(c, CONN_IS_WATCHED) && now - c->close.clock->moved_ns >= patience_ns(c))) {
        conn_log(c, SG_LOG_STATE, "timeout: our half is %s, %zu octets are not acknowledged",
                 names[c->close.state], unacked(c));
        conn_drop(c, c->end != SG_CONN_OK ? c->end : SG_CONN_TIMEOUT);
        return;
    }
    arm(c, now);
}
