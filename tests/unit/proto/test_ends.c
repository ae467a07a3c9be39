/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How connections end: gracefully from either side, by Terminate, by reset, by timeout, and by
 * verbs aborting in the middle of an upcall.
 */
#include <string.h>

#include "proto/conn.h"
#include "tap.h"
#include "rig.h"

#define REP "4d504120 49442052 65702046 72616d65 "
#define REQ "4d504120 49442052 65712046 72616d65 "

static void active(void)
{
    rig_start(NULL);
    rig_active(REP "50020004 00080008");
    rig_log();
    rig->in_used = rig->in_len;
}

static void close_sends_what_was_started(void)
{
    struct sg_mem_options net = { .queued = true, .emss = 536, .room = 1024 };
    unsigned turn;

    rig_start_net(NULL, &net);
    rig_active(REP "50020004 00080008");
    rig_log();
    rig->in_used = rig->in_len;
    rig_send(0, 4000);
    rig_send(0, 7); /* not started yet when the close comes: never sent */
    rig->tx_ready = sg_conn_transmit(rig->c, 600);
    sg_conn_close(rig->c);
    for (turn = 0; turn < 100; turn++) {
        rig_pass(1);
    }
    T_EQ_STR(rig_log(), "sent(4000)");
    T_TRUE(rig->peer_fin);
    T_EQ_U64(rig->head, 1);
    rig_peer_close();
    T_EQ_STR(rig_log(), "disconnected(CLOSED) closed(CLOSED)");
    rig_stop();
}

/* After our FIN the peer may still deliver, until its own. */
static void inbound_after_close(void)
{
    struct sg_msg read = {
        .kind = SG_MSG_READ_REQ,
        .read = { .length = 1, .stag = 9, .sink_stag = RIG_STAG_RW },
    };

    active();
    rig->recvs = 1;
    rig_post(&read);
    rig_settle();
    sg_conn_close(rig->c);
    rig_settle();
    T_TRUE(rig->peer_fin);
    rig->in_used = rig->in_len;
    rig_say_fpdu("c142 00000100 00000000 00000000 aa");
    rig_say_fpdu("4143 00000000 00000000 00000001 00000000 61");
    rig_say_fpdu("4141 00000000 00000001 00000001 00000000 a0000001 00000000 00000000 00000001 "
                 "00000100 00000000 00000000");
    T_EQ_STR(rig_log(), "read_done(1) recv(1,1)");
    rig_expect_nothing(); /* the Read came too late to be answered */
    rig_peer_close();
    T_EQ_STR(rig_log(), "disconnected(CLOSED) closed(CLOSED)");
    rig_stop();
}

/* The owner has left, and the peer does not know yet: it still gets all that we sent. */
static void inbound_after_abandon(void)
{
    active();
    rig_send(0, 100);
    rig_settle();
    rig_log();
    rig_say("0012"); /* the beginning of an FPDU */
    sg_conn_abandon(rig->c);
    rig_settle();
    T_TRUE(rig->peer_fin);
    rig_say("c142 00000100");
    rig_say_fpdu("4143 00000000 00000000 00000001 00000000 61");
    rig_say_fpdu("ffff ffffffff ffffffff ffffffff");
    rig_settle();
    T_EQ_STR(rig_log(), "");
    T_FALSE(rig->peer_over);
    rig_peer_close();
    T_EQ_STR(rig_log(), "disconnected(CLOSED) closed(CLOSED)");
    rig_stop();
    active();
    sg_conn_abandon(rig->c);
    rig_settle();
    rig_say_fpdu("4143 00000000 00000000 00000001 00000000 61");
    rig_pass(29999); /* TCP may need its time to deliver */
    T_EQ_STR(rig_log(), "");
    rig_pass(1);
    T_EQ_STR(rig_log(), "closed(TIMEOUT)");
    rig_stop();
    /* The owner closes first, and leaves while the peer may still be receiving. */
    active();
    sg_conn_close(rig->c);
    rig_settle();
    T_TRUE(rig->peer_fin);
    rig_pass(3000);
    sg_conn_abandon(rig->c);
    rig_pass(29999);
    T_EQ_STR(rig_log(), "");
    rig_pass(1);
    T_EQ_STR(rig_log(), "closed(TIMEOUT)");
    rig_stop();
}

/* After our FIN the owner revokes memory, so a message faults; sent data still arrive. */
static void fault_after_close(void)
{
    bool quiet; /* the peer does not close, either */

    for (quiet = false;; quiet = true) {
        active();
        rig_send(0, 100);
        rig_settle();
        T_EQ_STR(rig_log(), "sent(100)");
        sg_conn_close(rig->c);
        rig_settle();
        T_TRUE(rig->peer_fin);
        rig->in_used = rig->in_len;
        rig_say_fpdu("c140 deadbeef 00000000 00000000 aa");
        T_EQ_STR(rig_log(), "disconnected(PROTOCOL)");
        rig_say_fpdu("4143 00000000 00000000 00000001 00000000 61"); /* has no effect */
        rig_expect_nothing();                                        /* no Terminate after FIN */
        T_FALSE(rig->peer_over);
        if (quiet) {
            break;
        }
        rig_peer_close();
        T_EQ_STR(rig_log(), "closed(PROTOCOL)");
        rig_stop();
    }
    rig_pass(3999);
    T_EQ_STR(rig_log(), "");
    T_FALSE(rig->peer_over);
    rig_pass(1);
    T_EQ_STR(rig_log(), "closed(PROTOCOL)");
    T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_RESET);
    rig_stop();
}

static void peer_never_closes(void)
{
    active();
    sg_conn_close(rig->c);
    rig_settle();
    rig_pass(3999);
    T_EQ_STR(rig_log(), "");
    rig_pass(1);
    T_EQ_STR(rig_log(), "closed(TIMEOUT)");
    T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_RESET);
    rig_stop();
}

static void half_closed_peer_still_served(void)
{
    active();
    rig_peer_close();
    T_EQ_STR(rig_log(), "disconnected(CLOSED)");
    T_FALSE(rig->peer_over); /* verbs have not closed it */
    rig_pass(100000);
    rig_send(0, 3);
    rig_settle();
    T_EQ_STR(rig_log(), "sent(3)");
    sg_conn_close(rig->c);
    rig_settle();
    T_EQ_STR(rig_log(), "closed(CLOSED)");
    rig_stop();
}

static void fin_inside_fpdu(void)
{
    active();
    rig_say("0017 4143 0000");
    rig_peer_close();
    T_EQ_STR(rig_log(), "closed(RESET)");
    T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_RESET);
    rig_stop();
}

static void reset_by_peer(void)
{
    active();
    rig_send(0, 3);
    rig_settle();
    rig_peer_abort();
    T_SHOWS("MPA-70") {
        T_EQ_STR(rig_log(), "sent(3) closed(RESET)");
    }
    rig_stop();
}

/* Terminates that peers send: RFC layout, siw's, MPA type 3, with trailing zeros, with headers. */
static void terminates_received(void)
{
    static const struct {
        const char *payload, *word;
    } rows[] = {
        { "12050000", "1/2/05" },
        { "21050300 0010 4143 00000000 00000000 00000001 00000000", "1/2/05" },
        { "23020000", "2/3/02" },
        { "2006000000000000", "2/0/06" },
        { "1202c000 0076 4143 00000000 00000000 00000009 00000000", "1/2/02" },
        { "0101e000 002e 4141 00000000 00000001 00000001 00000000 00000001 00000000 00000000 "
          "00000001 00000001 00000000 00000000",
          "0/1/01" },
        { "1202c000 0076", "1/2/02" }, /* truncated: ends the stream, too */
    };
    char ulpdu[300], words[80];
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].payload);
        active();
        snprintf(ulpdu, sizeof(ulpdu), "4147 00000000 00000002 00000001 00000000 %s",
                 rows[i].payload);
        rig_say_fpdu(ulpdu);
        snprintf(words, sizeof(words), "terminated(received,%s) disconnected(TERMINATED)",
                 rows[i].word);
        T_SHOWS("RDM-10 RDM-39 RDM-40") {
            T_EQ_STR(rig_log(), words);
        }
        rig_send(0, 3);
        rig_settle();
        rig_expect_nothing();
        T_TRUE(rig->peer_fin);
        rig_peer_close();
        T_EQ_STR(rig_log(), "closed(TERMINATED)");
        T_EQ_U64(sg_engine_stats(rig->e)->rx_terminates, 1);
        rig_stop();
    }
}

/* A half-sent message is not completed, and does not delay the end. */
static void terminate_in_mid_message(void)
{
    unsigned local;

    for (local = 0; local < 2; local++) {
        active();
        rig_send(0, 4000);
        T_TRUE(sg_conn_transmit(rig->c, 600));
        rig->in_used = rig->in_len;
        if (local) {
            sg_conn_terminate(rig->c, 0, 0, 0);
            rig_settle();
            rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 00000000");
        } else {
            rig_say_fpdu("4147 00000000 00000002 00000001 00000000 12050000");
        }
        rig_expect_nothing();
        T_TRUE(rig->peer_fin);
        T_SHOWS("RDM-46") {
            T_NULL(strstr(rig_log(), "sent(4000)"));
        }
        rig_stop();
    }
}

static void local_terminate(void)
{
    active();
    rig_send(0, 3);
    sg_conn_terminate(rig->c, 0, 2, 7);
    sg_conn_terminate(rig->c, 0, 1, 1); /* the first one counts */
    rig_settle();
    T_SHOWS("RDM-38 RDM-64") {
        rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 02070000");
    }
    T_SHOWS("RDM-41") {
        rig_expect_nothing();
    }
    T_EQ_STR(rig_log(), "terminated(sent,0/2/07) disconnected(TERMINATED)");
    rig_peer_close();
    T_EQ_STR(rig_log(), "closed(TERMINATED)");
    rig_stop();
}

static void terminate_unanswered(void)
{
    active();
    sg_conn_terminate(rig->c, 0, 2, 7);
    rig_settle();
    rig_log();
    rig_pass(4000);
    T_EQ_STR(rig_log(), "closed(TERMINATED)");
    T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_RESET);
    rig_stop();
}

/*
 * The stream is full and stays full: the Terminate cannot be sent, and the wait is bounded.  The
 * longer timeout applies, because TCP may still deliver the octets before it.
 */
static void terminate_blocked(void)
{
    struct sg_mem_options net = {
        .queued = true,
        .emss = 536,
        .room = 1024,
    };

    rig_start_net(NULL, &net);
    rig_active(REP "50020004 00080008");
    rig_log();
    rig_send(0, 4000);
    sg_conn_transmit(rig->c, 10000);
    sg_conn_terminate(rig->c, 0, 2, 7);
    T_FALSE(sg_conn_transmit(rig->c, 10000));
    T_EQ_STR(rig_log(), "");
    sg_engine_run(rig->e, rig->now_ns + 29999000000u);
    T_EQ_STR(rig_log(), "");
    sg_engine_run(rig->e, rig->now_ns + 30000000000u);
    T_EQ_STR(rig_log(), "closed(TERMINATED)");
    rig_stop();
}

/* A responder that has seen no valid FPDU must not send a Terminate. */
static void terminate_before_first_fpdu(void)
{
    rig_start(NULL);
    rig_request(REQ "50020004 80080008");
    rig_accept(8, 8, NULL);
    rig->in_used = rig->in_len;
    rig_log();
    sg_conn_terminate(rig->c, 0, 2, 7);
    T_EQ_STR(rig_log(), "");
    rig_settle();
    T_EQ_STR(rig_log(), "closed(RESET)");
    T_SHOWS("MPA-64") {
        rig_expect_nothing();
    }
    rig_stop();
}

static void close_before_first_fpdu(void)
{
    rig_start(NULL);
    rig_request(REQ "50020004 80088008");
    rig_log();
    T_TRUE(sg_conn_accept(rig->c, rig, &(struct sg_conn_params){ .ird = 1, .ord = 1 }));
    sg_conn_close(rig->c);
    rig_settle();
    T_EQ_U64(rig->in_len, 24); /* the Reply, then FIN */
    T_TRUE(rig->peer_fin);
    T_EQ_STR(rig_log(), "");
    rig_peer_close();
    T_EQ_STR(rig_log(), "disconnected(CLOSED) closed(CLOSED)");
    rig_stop();
    rig_start(NULL); /* A = 0: closed before 'established' */
    rig_request(REQ "40010000");
    rig_log();
    T_TRUE(sg_conn_accept(rig->c, rig, &(struct sg_conn_params){ .ird = 1, .ord = 1 }));
    sg_conn_close(rig->c);
    rig_settle();
    T_EQ_STR(rig_log(), "");
    T_TRUE(rig->peer_fin);
    rig_stop();
}

/* Abort in any upcall works, and no other upcall follows. */
static void abort_in_every_upcall(void)
{
    static const char *const says[] = {
        "00124143 00000000 00000000 00000001 00000000 587be8c4",          /* recv */
        "00164147 00000000 00000002 00000001 00000000 20060000 6540fb1b", /* terminated */
        "00124143 00000000 00000000 00000001 00000000 587be8c5",          /* bad CRC */
    };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(says); i++) {
        T_CONTEXT("%s", says[i]);
        active();
        rig->recvs = 1;
        rig->abort_in = true;
        rig_say(says[i]);
        T_TRUE(strlen(rig_log()) > 0);
        T_NULL(rig->c);
        T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_RESET);
        rig_stop();
    }
    active(); /* sent */
    rig->abort_in = true;
    rig_send(0, 3);
    rig_send(0, 3);
    rig_settle();
    T_EQ_STR(rig_log(), "sent(3)");
    rig_stop();
    active(); /* disconnected */
    rig->abort_in = true;
    rig_peer_close();
    T_EQ_STR(rig_log(), "disconnected(CLOSED)");
    rig_stop();
    rig_start(NULL); /* reply */
    rig->c = sg_engine_connect(rig->e, &(struct sg_endpoint){ .family = 4 }, &rig->at_peer,
                               &(struct sg_conn_params){ .ird = 1 }, rig, &(enum sg_conn_end){ 0 });
    rig_settle();
    rig->abort_in = true;
    rig_say(REP "50020004 80088008");
    T_EQ_STR(rig_log(), "reply(OK,8/0,rev2)");
    rig_stop();
    rig_start(NULL); /* request */
    rig->abort_in = true;
    rig_request(REQ "50020004 80088008");
    T_EQ_STR(rig_log(), "request(8/8,rev2)");
    T_EQ_U64(sg_engine_stats(rig->e)->conns, 0);
    rig_stop();
    rig_start(NULL); /* established */
    rig_request(REQ "40010000");
    rig_log();
    rig->abort_in = true;
    rig_accept(1, 1, NULL);
    T_EQ_STR(rig_log(), "established(1/1,rev1)");
    rig_stop();
}

static void unlisten_resets_unanswered(void)
{
    rig_start(NULL);
    rig_request(REQ "40010000");
    rig_log();
    sg_engine_unlisten(rig->listener);
    rig->c = NULL;
    rig_settle();
    T_EQ_STR(rig_log(), "");
    T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_RESET);
    rig_stop();
}

static void free_aborts_all(void)
{
    active();
    sg_engine_free(rig->e);
    rig->c = NULL;
    sg_mem_switch_run(rig->sw, rig->now_ns);
    T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_RESET);
    T_EQ_STR(rig_log(), "");
    rig->e = sg_engine_new(&rig->host, rig->net_engine, &rig->config,
                           &(const struct sg_engine_ops){ 0 });
    rig_stop();
}

/* A test cannot send 2^32 messages, so it sets the counters to their last value. */
static void msn_wraps(void)
{
    active();
    rig->c->msn.rx[0] = 0xffffffff;
    rig->c->msn.tx[0] = 0xffffffff;
    rig->recvs = 0xffffffff;
    rig_say_fpdu("4143 00000000 00000000 ffffffff 00000000 61");
    rig_say_fpdu("4143 00000000 00000000 00000000 00000000 62");
    T_SHOWS("DDP-14") {
        T_EQ_STR(rig_log(), "recv(4294967295,1) recv(0,1)");
    }
    rig_send(0, 0);
    rig_send(0, 0);
    rig_settle();
    rig_expect_fpdu("4143 00000000 00000000 ffffffff 00000000");
    T_SHOWS("DDP-13 DDP-14") {
        rig_expect_fpdu("4143 00000000 00000000 00000000 00000000");
    }
    rig_stop();
}

static void states_are_logged(void)
{
    rig_start(NULL);
    rig_passive();
    rig_peer_close();
    sg_conn_close(rig->c);
    rig_settle();
    T_EQ_STR(rig->states, "conn 1: WAIT_REQUEST -> REQUESTED\nconn 1: REQUESTED -> REPLYING\n"
                          "conn 1: REPLYING -> WAIT_FIRST\nconn 1: WAIT_FIRST -> STREAMING\n"
                          "conn 1: STREAMING -> CLOSING\nconn 1: our half: OPEN -> DUE\n"
                          "conn 1: our half: DUE -> SENT\nconn 1: CLOSING -> DEAD\n");
    rig_stop();
}

static const struct t_case cases[] = {
    { "DDP-30 DDP-31 close: what was started is sent, then FIN", close_sends_what_was_started },
    { "DDP-33 inbound messages count until the peer's FIN", inbound_after_close },
    { "a connection whose owner has gone passes over what comes", inbound_after_abandon },
    { "a fault of the peer after our FIN takes nothing from it", fault_after_close },
    { "RDM-57 the peer never closes: reset after the timeout", peer_never_closes },
    { "MPA-74 DDP-33 DDP-35 FIN is reported and our half stays", half_closed_peer_still_served },
    { "DDP-32 DDP-34 MPA-70 FIN inside an FPDU", fin_inside_fpdu },
    { "DDP-34 MPA-70 reset by the peer", reset_by_peer },
    { "RDM-39 RDM-40 RDM-10 RDM-11 Terminates received, in every layout", terminates_received },
    { "RDM-38 RDM-41 RDM-64 RDM-56 RDM-57 DDP-47 our own Terminate", local_terminate },
    { "RDM-41 RDM-58 Terminate in mid-message", terminate_in_mid_message },
    { "RDM-57 RDM-59 a Terminate unanswered", terminate_unanswered },
    { "RDM-56 a Terminate that cannot be sent", terminate_blocked },
    { "MPA-64 no Terminate before the first FPDU", terminate_before_first_fpdu },
    { "MPA-64 close before the first FPDU", close_before_first_fpdu },
    { "abort in every upcall", abort_in_every_upcall },
    { "unlisten resets what was not answered", unlisten_resets_unanswered },
    { "free aborts all, silently", free_aborts_all },
    { "DDP-14 DDP-13 MSN wraps to 0", msn_wraps },
    { "states are logged", states_are_logged },
};

T_MAIN(cases)
