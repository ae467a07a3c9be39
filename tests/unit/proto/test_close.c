/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The close state machine: what is delivered before the end, for how long, and what may delay it.
 * Timeouts of the rig: close 4 s, linger 30 s, limit 120 s.
 */
#include <string.h>

#include "proto/conn.h"
#include "tap.h"
#include "rig.h"

#define REP "4d504120 49442052 65702046 72616d65 "
#define READ_REQ(msn)                                                     \
    "4141 00000000 00000001 " msn " 00000000 a0000001 00000000 00000000 " \
    "00000004 00000100 00000000 00000000"

enum { SECOND_NS = 1000000000 };

/* Octets arrive in pieces of at most 'piece', one piece in 'seconds'. */
static void slow(uint32_t piece, unsigned seconds)
{
    struct sg_mem_options net = {
        .queued = true,
        .emss = 1460,
        .room = 40000,
        .piece_max = piece,
        .seed = 7,
        .delay_min_ns = seconds * (uint64_t)SECOND_NS,
        .delay_max_ns = seconds * (uint64_t)SECOND_NS,
    };
    unsigned i;

    rig_start_net(NULL, &net);
    rig->c = sg_engine_connect(rig->e, &(struct sg_endpoint){ .family = 4 }, &rig->at_peer,
                               &(struct sg_conn_params){ .ird = 8, .ord = 8 }, rig,
                               &(enum sg_conn_end){ 0 });
    for (i = 0; i < 200 && !rig->in_len; i++) {
        rig_pass(1000);
    }
    rig_say(REP "50020004 00080008");
    for (i = 0; i < 200 && !strstr(rig->log, "reply"); i++) {
        rig_pass(1000);
    }
    T_NOT_NULL(strstr(rig_log(), "reply(OK"));
    for (i = 0; i < 10; i++) {
        rig_pass(1000);
    }
    rig->in_used = rig->in_len;
}

static void active(void)
{
    rig_start(NULL);
    rig_active(REP "50020004 00080008");
    rig_log();
    rig->in_used = rig->in_len;
}

/* TCP makes steady progress for much longer than a close may stand still. */
static void delivered_while_tcp_moves(void)
{
    bool terminate;

    for (terminate = false;; terminate = true) {
        unsigned i;

        T_CONTEXT("%s", terminate ? "Terminate" : "close");
        slow(3600, 3);
        for (i = 0; i < 8; i++) {
            rig_send(0, 4000);
        }
        rig_settle();
        T_EQ_STR(rig_log(), "sent(4000) sent(4000) sent(4000) sent(4000) sent(4000) sent(4000) "
                            "sent(4000) sent(4000)");
        if (terminate) {
            sg_conn_terminate(rig->c, 0, 0, 0);
        } else {
            sg_conn_close(rig->c);
        }
        for (i = 0; i < 100 && !rig->peer_fin; i++) {
            rig_pass(1000);
        }
        T_SHOWS("RDM-57 DDP-30") {
            T_TRUE(i > 30); /* many times the close timeout */
            T_TRUE(rig->peer_fin);
            T_TRUE(rig->in_len - rig->in_used > 32000); /* all of it, then FIN */
            T_FALSE(rig->peer_over);
        }
        T_EQ_STR(rig_log(), terminate ? "terminated(sent,0/0/00) disconnected(TERMINATED)" : "");
        rig_stop();
        if (terminate) {
            break;
        }
    }
}

/* Octets that TCP cannot deliver: the longer timeout. */
static void no_progress(void)
{
    active();
    rig->peer->ops->hold(rig->peer, true);
    rig_send(0, 4000);
    rig_settle();
    T_EQ_STR(rig_log(), "sent(4000)");
    sg_conn_close(rig->c);
    rig_settle();
    rig_pass(29999);
    T_EQ_STR(rig_log(), "");
    rig_pass(1);
    T_EQ_STR(rig_log(), "closed(TIMEOUT)");
    T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_RESET);
    rig_stop();
}

/* A peer that accepts an octet from time to time cannot keep a connection for ever. */
static void limit(void)
{
    unsigned i;

    slow(1, 1);
    rig_send(0, 4000);
    rig_settle();
    rig_log();
    sg_conn_close(rig->c);
    for (i = 0; i < 119; i++) {
        rig_pass(1000);
    }
    T_EQ_STR(rig_log(), "");
    T_TRUE(rig->in_len - rig->in_used > 100); /* TCP moved all the time */
    rig_pass(1000);
    T_EQ_STR(rig_log(), "closed(TIMEOUT)");
    rig_stop();
}

/* Requests before the close are answered; later ones do not delay the FIN. */
static void reader_does_not_hold_it(void)
{
    active();
    rig->peer->ops->hold(rig->peer, false);
    rig->tx_ready = false;
    rig->c->tx.blocked = true; /* both Requests wait */
    rig_say_fpdu(READ_REQ("00000001"));
    rig_say_fpdu(READ_REQ("00000002"));
    rig_expect_nothing();
    sg_conn_close(rig->c);
    rig_say_fpdu(READ_REQ("00000003"));
    rig->c->tx.blocked = false;
    conn_signal(rig->c);
    rig_settle();
    rig_expect_fpdu("c142 a0000001 00000000 00000000 00070e15");
    rig_expect_fpdu("c142 a0000001 00000000 00000000 00070e15");
    rig_expect_nothing();
    T_TRUE(rig->peer_fin);
    rig_say_fpdu(READ_REQ("00000004")); /* behind our FIN: the same */
    T_EQ_U64(rig->c->peer.count, 0);
    rig_peer_close();
    T_EQ_STR(rig_log(), "disconnected(CLOSED) closed(CLOSED)");
    rig_stop();
}

/* The peer has closed, so the queue pair leaves the connection in the middle of a message. */
static void fin_in_mid_message(void)
{
    active();
    rig_send(0, 4000);
    T_TRUE(sg_conn_transmit(rig->c, 600));
    rig->in_used = rig->in_len;
    rig_peer_close_only();
    T_EQ_STR(rig_log(), "disconnected(CLOSED)");
    rig->gather_closed = true;
    sg_conn_close(rig->c);
    rig_settle();
    T_SHOWS("DDP-33") {
        rig_expect_nothing(); /* neither the rest nor a Terminate */
        T_EQ_STR(rig_log(), "closed(CLOSED)");
        T_EQ_U64(sg_engine_stats(rig->e)->tx_terminates, 0);
    }
    rig_stop();
}

/* The same in an answer to the peer, which closed without waiting for it. */
static void fin_in_mid_response(void)
{
    active();
    rig->c->tx.blocked = true;
    rig_say_fpdu(READ_REQ("00000001"));
    rig_peer_close_only();
    rig->source_closed = true;
    rig->c->tx.blocked = false;
    sg_conn_close(rig->c);
    rig_settle();
    rig_expect_nothing();
    T_EQ_STR(rig_log(), "disconnected(CLOSED) closed(CLOSED)");
    T_EQ_U64(sg_engine_stats(rig->e)->tx_terminates, 0);
    rig_stop();
}

/* FIN between the segments of a message that we receive is no protocol error. */
static void peer_cuts_its_message(void)
{
    active();
    rig->recvs = 1;
    rig_say_fpdu("0143 00000000 00000000 00000001 00000000 61");
    rig_say_fpdu("8140 00000100 00000000 00000000 aa");
    rig_peer_close();
    T_EQ_STR(rig_log(), "disconnected(CLOSED)");
    sg_conn_close(rig->c);
    rig_settle();
    T_EQ_STR(rig_log(), "closed(CLOSED)");
    rig_expect_nothing();
    T_EQ_U64(sg_engine_stats(rig->e)->protocol_errors, 0);
    rig_stop();
}

/* Verbs have left the connection: later data are dropped, later calls of verbs still work. */
static void owner_left(void)
{
    static const char *const says[] = {
        "c140 00000100 00000000 00000000 aa",          /* Write */
        "4143 00000000 00000000 00000001 00000000 61", /* Send */
        READ_REQ("00000001"),
    };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(says); i++) {
        T_CONTEXT("%s", says[i]);
        active();
        rig->recvs = 1;
        rig->all_closed = true;
        rig_say_fpdu(says[i]);
        rig->all_closed = false;
        rig_say_fpdu("4143 00000000 00000000 00000001 00000000 61"); /* too late */
        T_EQ_STR(rig_log(), "");
        rig_expect_nothing();
        sg_conn_terminate(rig->c, 0, 0, 0);
        rig_settle();
        T_SHOWS("RDM-61") {
            rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 00000000");
            T_EQ_STR(rig_log(), "terminated(sent,0/0/00) disconnected(TERMINATED)");
        }
        rig_stop();
    }
}

/* The owner closes, but its posted work is never done. */
static void announced(void)
{
    active();
    sg_conn_prepare_close(rig->c);
    rig_send(0, 3);
    rig_settle();
    T_EQ_STR(rig_log(), "sent(3)"); /* still open for work */
    rig_pass(119999);
    T_EQ_STR(rig_log(), "");
    rig_pass(1);
    T_EQ_STR(rig_log(), "closed(TIMEOUT)");
    rig_stop();
    active(); /* the limit counts from then, not from the close */
    sg_conn_prepare_close(rig->c);
    rig_pass(100000);
    rig->peer->ops->hold(rig->peer, true);
    rig_send(0, 3);
    rig_settle();
    sg_conn_close(rig->c);
    rig_pass(19999);
    T_EQ_STR(rig_log(), "sent(3)");
    rig_pass(1);
    T_EQ_STR(rig_log(), "closed(TIMEOUT)");
    rig_stop();
}

/* A fault of the peer in the pause before the first FPDU gets its Terminate after the pause. */
static void terminate_in_pause(void)
{
    struct sg_engine_config config = rig_config();

    config.first_fpdu_delay_ms = 50;
    rig_start(&config);
    rig_active(REP "50020004 00080008");
    T_EQ_STR(rig_log(), "reply(OK,8/8,rev2)");
    rig->in_used = rig->in_len;
    rig_say_fpdu("c140 00000999 00000000 00000000 aa");
    rig_pass(49);
    rig_expect_nothing();
    T_EQ_STR(rig_log(), "");
    rig_pass(1);
    rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 "
                    "1100c000 000f c140 00000999 00000000 00000000");
    T_EQ_STR(rig_log(), "terminated(sent,1/1/00) disconnected(TERMINATED)");
    T_TRUE(rig->peer_fin);
    rig_pass(4000);
    T_EQ_STR(rig_log(), "closed(TERMINATED)");
    rig_stop();
}

/* A failure of ours between the Reply and the first message (RFC 6581 section 9.3). */
static void local_failure_of_startup(void)
{
    active();
    sg_conn_terminate(rig->c, SG_TERM_LLP, SG_TERM_LLP_MPA, SG_MPA_ERR_LOCAL);
    rig_settle();
    T_SHOWS("MP2-22") {
        rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 20050000");
        T_TRUE(rig->peer_fin); /* and only then the end */
        T_FALSE(rig->peer_over);
    }
    rig_stop();
}

static void states(void)
{
    active();
    rig->states[0] = '\0';
    sg_conn_prepare_close(rig->c);
    sg_conn_close(rig->c);
    rig_settle();
    rig_pass(1000);
    rig_peer_close();
    T_EQ_STR(rig->states, "conn 1: our half: OPEN -> ANNOUNCED\nconn 1: STREAMING -> CLOSING\n"
                          "conn 1: our half: ANNOUNCED -> DUE\nconn 1: our half: DUE -> SENT\n"
                          "conn 1: our half: SENT -> ACKED\nconn 1: CLOSING -> DEAD\n");
    rig_stop();
}

static const struct t_case cases[] = {
    { "RDM-57 what was completed is delivered while TCP moves", delivered_while_tcp_moves },
    { "a close without progress of TCP ends", no_progress },
    { "a close with little progress of TCP ends", limit },
    { "a peer that keeps reading does not hold a close", reader_does_not_hold_it },
    { "DDP-33 DDP-35 the peer's FIN in the middle of our message", fin_in_mid_message },
    { "DDP-33 DDP-35 the peer's FIN in the middle of our Response", fin_in_mid_response },
    { "DDP-33 the peer's FIN in the middle of its own message", peer_cuts_its_message },
    { "RDM-61 verbs have left: nobody is blamed", owner_left },
    { "an announced close has a limit", announced },
    { "a Terminate in the pause before the first FPDU", terminate_in_pause },
    { "MP2-22 Terminate 2/0/05", local_failure_of_startup },
    { "each state of our half is logged", states },
};

T_MAIN(cases)
