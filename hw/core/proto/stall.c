/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Missing memory (on-demand paging) or a missing receive: reception pauses.
 *
 * When verbs answer LATER to a segment, nothing of the connection's state has changed, so the same
 * segment can be retried: its ULPDU is kept, and everything received after it.  The stream is held,
 * so that the peer's window closes and bounds what is kept; a FIN is kept, too.  sg_conn_resume()
 * retries and continues from there, or pauses again; then the kept data stay in place, so a retry
 * costs its segments and not all that waits behind them.
 *
 * Transmission is not affected: our messages and the answers to earlier requests continue.  A
 * message or the oldest answer that waits for memory itself records this in its own place
 * (rdmap_tx.c, exec.c), and sg_conn_resume() ends that wait, too.
 */
#include "proto/conn.h"

enum { REST_FIRST = 4096 }; /* first size of what is kept, octets */

static void hold_stream(struct sg_conn *c, bool held)
{
    if (c->stream && c->stream->ops->hold) {
        c->stream->ops->hold(c->stream, held);
    }
}

static void stall_free(struct sg_conn *c, struct conn_stall *s)
{
    conn_release(c, s->ulpdu, s->ulpdu_len);
    conn_release(c, s->rest, s->rest_room);
    conn_release(c, s, sizeof(*s));
}

/* Keeps another ULPDU; false: no memory. */
static bool keep_ulpdu(struct sg_conn *c, struct conn_stall *s, const uint8_t *p, size_t n)
{
    uint8_t *ulpdu = conn_alloc(c, n);

    if (!ulpdu) {
        return false;
    }
    memcpy(ulpdu, p, n);
    conn_release(c, s->ulpdu, s->ulpdu_len);
    s->ulpdu = ulpdu;
    s->ulpdu_len = n;
    return true;
}

void stall_begin(struct sg_conn *c, const uint8_t *p, size_t n)
{
    struct conn_stall *s = c->retried;

    sg_assert(!c->stall);
    conn_log(c, SG_LOG_TRACE, "reception waits for memory");
    if (!s) {
        s = conn_alloc(c, sizeof(*s));
        if (!s) {
            return;
        }
        *s = (struct conn_stall){ 0 };
    }
    /* Otherwise it is the same one again. */
    if (p != s->ulpdu && !keep_ulpdu(c, s, p, n)) {
        if (s != c->retried) {
            stall_free(c, s);
        }
        return;
    }
    c->stall = s;
    if (!s->held) {
        s->held = true;
        hold_stream(c, true);
    }
}

/* Room for n more octets behind those that are kept; false: no memory. */
static bool make_room(struct sg_conn *c, struct conn_stall *s, size_t n)
{
    size_t room = SG_MAX(s->rest_room, REST_FIRST);
    uint8_t *rest;

    if (s->at > s->rest_len / 2) {
        s->rest_len -= s->at;
        memmove(s->rest, s->rest + s->at, s->rest_len);
        s->at = 0;
    }
    while (room < s->rest_len + n) {
        room *= 2;
    }
    if (room == s->rest_room) {
        return true;
    }
    rest = conn_renew(c, s->rest, s->rest_room, room);
    if (!rest) {
        return false;
    }
    s->rest = rest;
    s->rest_room = room;
    return true;
}

void stall_keep(struct sg_conn *c, const uint8_t *p, size_t n)
{
    struct conn_stall *s = c->stall;

    if (s == c->retried) { /* p is the end of 'rest', where it stays */
        s->at = s->rest_len - n;
    } else if (make_room(c, s, n)) {
        memcpy(s->rest + s->rest_len, p, n);
        s->rest_len += n;
    }
}

void stall_keep_fin(struct sg_conn *c)
{
    c->stall->fin = true;
}

void stall_drop(struct sg_conn *c)
{
    if (c->stall && c->stall != c->retried) {
        stall_free(c, c->stall);
        hold_stream(c, false);
    }
    c->stall = NULL;
}

static void try_again(struct sg_conn *c)
{
    struct conn_stall *s = c->stall;

    c->retried = s;
    c->stall = NULL;
    c->wire->retry(c, s->ulpdu, s->ulpdu_len);
    if (!c->stall && s->at < s->rest_len) {
        size_t at = s->at;

        s->at = s->rest_len; /* stall_keep() moves it back */
        c->wire->receive(c, s->rest + at, s->rest_len - at);
    }
    c->retried = NULL;
    if (c->stall) {
        return;
    }
    if (!conn_dead(c)) {
        hold_stream(c, false);
        if (s->fin) {
            close_peer_fin(c);
        }
    }
    stall_free(c, s);
}

void sg_conn_resume(struct sg_conn *c)
{
    if (conn_dead(c)) {
        return;
    }
    conn_enter(c);
    if (c->tx.later || c->exec.waiting) {
        c->tx.later = c->exec.waiting = false;
        conn_signal(c);
    }
    if (c->stall) {
        try_again(c);
    }
    conn_leave(c);
}
