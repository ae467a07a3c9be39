/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reception that waits for memory, and what must not be lost meanwhile: octets, FIN, the hold of
 * the stream.  The rig answers LATER as often as a case requires.
 */
#include <glib.h>
#include <string.h>

#include "proto/conn.h"
#include "tap.h"
#include "rig.h"

#define WRITE(at, octet) "c140 00000100 00000000 000000" at " " octet

static unsigned holds; /* calls with true less calls with false */

/* Only counts: the peer had room for all that these cases send, so octets come despite the hold. */
static void count_hold(struct sg_stream *s, bool held)
{
    holds += held ? 1 : -1u;
}

/* Connected, with a stream whose holds are counted. */
static void active(void)
{
    static struct sg_stream_ops ops;

    rig_start(NULL);
    rig_active("4d504120 49442052 65702046 72616d65 50020004 00080008");
    rig_log();
    rig->in_used = rig->in_len;
    ops = *rig->c->stream->ops;
    ops.hold = count_hold;
    rig->c->stream->ops = &ops;
    holds = 0;
}

/* Two tries in a row find a page missing: all octets are still placed, then the FIN is reported. */
static void stalls_in_a_row(void)
{
    active();
    rig->later = 1;
    rig_say_fpdu(WRITE("10", "a1"));
    rig_say_fpdu(WRITE("20", "a2"));
    rig_say_fpdu(WRITE("30", "a3"));
    rig_peer_close_only();
    T_EQ_U64(holds, 1);
    rig->later = 2;
    sg_conn_resume(rig->c); /* the same page is still missing */
    T_TRUE(rig->c->stall);
    rig->later = 1;
    rig->later_skips = 1;
    sg_conn_resume(rig->c); /* the first is there, the second is not */
    T_TRUE(rig->c->stall);
    T_EQ_U64(rig->mem[0x10], 0xa1);
    T_FALSE(rig->mem[0x20] == 0xa2);
    T_EQ_U64(holds, 1);
    T_EQ_STR(rig_log(), "");
    sg_conn_resume(rig->c);
    T_FALSE(rig->c->stall);
    T_EQ_U64(rig->mem[0x20], 0xa2);
    T_EQ_U64(rig->mem[0x30], 0xa3);
    T_EQ_U64(holds, 0);
    rig_settle();
    T_EQ_STR(rig_log(), "disconnected(CLOSED)"); /* the FIN waited, too */
    sg_conn_close(rig->c);
    rig_settle();
    T_EQ_STR(rig_log(), "closed(CLOSED)");
    rig_stop();
}

/* A try does not copy all octets that wait, because a peer could cause many tries. */
static void tries_cost_their_segment(void)
{
    const uint8_t *where;
    unsigned i;
    guint all;

    active();
    rig->later = 1;
    for (i = 0; i < 200; i++) {
        rig_say_fpdu(WRITE("40", "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"));
    }
    T_TRUE(rig->c->stall);
    where = rig->c->stall->rest;
    all = rig->c->stall->rest_len;
    for (i = 0; i < 199; i++) {
        rig->later = 1;
        rig->later_skips = 1;
        sg_conn_resume(rig->c);
        T_TRUE(rig->c->stall);
        T_TRUE(rig->c->stall->rest == where);
        T_EQ_U64(rig->c->stall->rest_len, all);
        T_TRUE(rig->c->stall->at > 0);
    }
    T_EQ_U64(rig->c->stall->at, all);
    rig_say_fpdu(WRITE("50", "77"));
    T_TRUE(rig->c->stall->rest_len < all); /* placed octets free their room */
    sg_conn_resume(rig->c);
    T_FALSE(rig->c->stall);
    T_EQ_U64(rig->mem[0x50], 0x77);
    rig_stop();
}

/* Our own Terminate ends the wait: nothing is placed any more, and the stream reaches its FIN. */
static void terminate_while_waiting(void)
{
    active();
    rig->later = 1;
    rig_say_fpdu(WRITE("10", "a1"));
    T_EQ_U64(holds, 1);
    sg_conn_terminate(rig->c, 0, 0, 0);
    T_EQ_U64(holds, 0);
    sg_conn_resume(rig->c);
    T_FALSE(rig->mem[0x10] == 0xa1);
    rig_settle();
    T_EQ_STR(rig_log(), "terminated(sent,0/0/00) disconnected(TERMINATED)");
    rig_peer_close();
    T_EQ_STR(rig_log(), "closed(TERMINATED)");
    rig_stop();
}

/* The same if the owner leaves while reception waits. */
static void abandoned_while_waiting(void)
{
    active();
    rig->later = 1;
    rig_say_fpdu(WRITE("10", "a1"));
    sg_conn_abandon(rig->c);
    T_EQ_U64(holds, 0);
    rig_settle();
    T_TRUE(rig->peer_fin);
    rig_peer_close();
    T_EQ_STR(rig_log(), "disconnected(CLOSED) closed(CLOSED)");
    T_FALSE(rig->mem[0x10] == 0xa1);
    rig_stop();
}

/* Verbs leave during the try. */
static void closed_in_the_try(void)
{
    active();
    rig->later = 1;
    rig_say_fpdu(WRITE("10", "a1"));
    rig_say_fpdu(WRITE("20", "a2"));
    rig_peer_close_only();
    rig->all_closed = true;
    sg_conn_resume(rig->c);
    T_FALSE(rig->c->stall);
    T_EQ_U64(holds, 0);
    T_FALSE(rig->mem[0x20] == 0xa2);
    T_EQ_STR(rig_log(), "disconnected(CLOSED)");
    rig_stop();
}

static const struct t_case cases[] = {
    { "two stalls in a row lose no octet and no FIN", stalls_in_a_row },
    { "a try copies no more than its segment", tries_cost_their_segment },
    { "a Terminate while reception waits", terminate_while_waiting },
    { "the owner goes while reception waits", abandoned_while_waiting },
    { "verbs leave when reception is tried again", closed_in_the_try },
};

T_MAIN(cases)
