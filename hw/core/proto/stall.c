/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that is not there yet (on-demand paging): reception stands still.
 *
 * When verbs answer a segment with LATER nothing of the connection's state has changed, so the same
 * segment can be tried again: its ULPDU is kept, and behind it whatever else had been received.
 * The stream is held, so that the peer's window closes and what is kept is bounded by it; a FIN is
 * kept, too.  sg_conn_resume() tries again and goes on from there, or stands still once more.
 *
 * Transmission is not held by this: our messages and the answers to earlier requests go on.  What
 * waits for memory on its own there, a message or the oldest answer, notes it where it is
 * (rdmap_tx.c, exec.c), and sg_conn_resume() ends that, too.
 */
#include <glib.h>

#include "proto/conn.h"

struct conn_stall {
    GByteArray *ulpdu;  /* to be tried again */
    GByteArray *rest;   /* received behind it */
    bool fin;           /* and the FIN behind that */
};

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
    sg_assert(!c->stall);
    conn_log(c, SG_LOG_TRACE, "reception waits for memory");
    c->stall = g_new0(struct conn_stall, 1);
    c->stall->ulpdu = g_byte_array_append(g_byte_array_new(), p, (guint)n);
    c->stall->rest = g_byte_array_new();
    conn_charge(c, n);
    hold_stream(c, true);
}

void stall_keep(struct sg_conn *c, const uint8_t *p, size_t n)
{
    conn_charge(c, n);
    g_byte_array_append(c->stall->rest, p, (guint)n);
}

void stall_keep_fin(struct sg_conn *c)
{
    c->stall->fin = true;
}

void stall_drop(struct sg_conn *c)
{
    if (c->stall) {
        stall_free(c, c->stall);
        c->stall = NULL;
        hold_stream(c, false);
    }
}

static void try_again(struct sg_conn *c)
{
    struct conn_stall *s = c->stall;

    c->stall = NULL;
    ddp_receive(c, s->ulpdu->data, s->ulpdu->len);
    if (c->stall) {
        stall_keep(c, s->rest->data, s->rest->len);
    } else if (s->rest->len) {
        fpdu_receive(c, s->rest->data, s->rest->len);
    }
    if (c->stall) {
        c->stall->fin = s->fin;
    } else if (!conn_dead(c)) {
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
