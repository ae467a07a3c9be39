/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that is not there yet (on-demand paging): reception stands still.
 *
 * When verbs answer a segment with LATER nothing of the connection's state has changed, so the same
 * segment can be tried again: its ULPDU is kept, and behind it whatever else had been received.
 * The stream is held, so that the peer's window closes and what is kept is bounded by it; a FIN is
 * kept, too.  sg_conn_resume() tries again and goes on from there, or stands still once more; what
 * is kept then stays where it is, so a try costs its segments and not all that waits behind them.
 *
 * Transmission is not held by this: our messages and the answers to earlier requests go on.  What
 * waits for memory on its own there, a message or the oldest answer, notes it where it is
 * (rdmap_tx.c, exec.c), and sg_conn_resume() ends that, too.
 */
#include <glib.h>

#include "proto/conn.h"

static void hold_stream(struct sg_conn *c, bool held)
{
    if (c->stream && c->stream->ops->hold) {
        c->stream->ops->hold(c->stream, held);
    }
}

static void stall_free(struct sg_conn *c, struct conn_stall *s)
{
    conn_uncharge(c, s->ulpdu->len + s->rest->len);
    g_byte_array_unref(s->ulpdu);
    g_byte_array_unref(s->rest);
    g_free(s);
}

void stall_begin(struct sg_conn *c, const uint8_t *p, size_t n)
{
    struct conn_stall *s = c->retried;

    sg_assert(!c->stall);
    conn_log(c, SG_LOG_TRACE, "reception waits for memory");
    if (!s) {
        s = g_new0(struct conn_stall, 1);
        s->ulpdu = g_byte_array_new();
        s->rest = g_byte_array_new();
    }
    if (p != s->ulpdu->data) { /* else it is the same one again */
        conn_uncharge(c, s->ulpdu->len);
        conn_charge(c, n);
        g_byte_array_set_size(s->ulpdu, 0);
        g_byte_array_append(s->ulpdu, p, (guint)n);
    }
    c->stall = s;
    if (!s->held) {
        s->held = true;
        hold_stream(c, true);
    }
}

void stall_keep(struct sg_conn *c, const uint8_t *p, size_t n)
{
    struct conn_stall *s = c->stall;

    if (s == c->retried) { /* p is the end of 'rest', where it stays */
        s->at = s->rest->len - (guint)n;
        return;
    }
    if (s->at > s->rest->len / 2) {
        conn_uncharge(c, s->at);
        g_byte_array_remove_range(s->rest, 0, s->at);
        s->at = 0;
    }
    conn_charge(c, n);
    g_byte_array_append(s->rest, p, (guint)n);
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
    ddp_receive(c, s->ulpdu->data, s->ulpdu->len);
    if (!c->stall && s->at < s->rest->len) {
        guint at = s->at;

        s->at = s->rest->len; /* stall_keep() moves it back */
        fpdu_receive(c, s->rest->data + at, s->rest->len - at);
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
