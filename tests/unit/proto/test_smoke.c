/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A connection from startup to end in each role, compared with reference octets. */
#include <string.h>

#include "tap.h"
#include "rig.h"

static void active_life(void)
{
    const struct sg_conn_params p = { .ird = 4, .ord = 8 };
    const struct sg_endpoint any = { .family = 4 };
    enum sg_conn_end why;

    rig_start(NULL);
    rig->c = sg_engine_connect(rig->e, &any, &rig->at_peer, &p, rig, &why);
    rig_settle();
    rig_expect("4d504120 49442052 65712046 72616d65 50020004 8004c008");
    rig_say("4d504120 49442052 65702046 72616d65 50020004 80088004");
    T_EQ_STR(rig_log(), "reply(OK,4/8,rev2)");
    rig_expect("000ec140 00000001 00000000 00000000 ebd34c5f");
    memcpy(rig->mem, "hello", 5);
    rig_send(0, 5);
    rig_settle();
    rig_expect("00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 b990b10c");
    T_EQ_STR(rig_log(), "sent(5)");
    sg_conn_close(rig->c);
    rig_settle();
    T_TRUE(rig->peer_fin);
    rig_peer_close();
    T_EQ_STR(rig_log(), "disconnected(CLOSED) closed(CLOSED)");
    rig_stop();
}

static void passive_life(void)
{
    rig_start(NULL);
    rig_request("4d504120 49442052 65712046 72616d65 50020004 8004c008");
    T_EQ_STR(rig_log(), "request(4/8,rev2)");
    rig_accept(8, 8, NULL);
    rig_expect("4d504120 49442052 65702046 72616d65 50020004 8008c004");
    T_EQ_STR(rig_log(), "");
    rig_say("000ec140 00000001 00000000 00000000 ebd34c5f");
    T_SHOWS("MPA-57") {
        T_EQ_STR(rig_log(), "established(8/4,rev2)");
    }
    rig->recvs = 1;
    rig_say("00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 b990b10c");
    T_EQ_STR(rig_log(), "recv(1,5)");
    T_EQ_MEM(rig->recv_buf, "hello", 5);
    rig_peer_close();
    T_EQ_STR(rig_log(), "disconnected(CLOSED)");
    sg_conn_close(rig->c);
    rig_settle();
    T_EQ_STR(rig_log(), "closed(CLOSED)");
    T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_CLOSED);
    rig_stop();
}

static void reads_both_ways(void)
{
    struct sg_msg m = {
        .kind = SG_MSG_READ_REQ,
        .read = { .length = 16,
                  .stag = 0xb0000002,
                  .to = 0x2000,
                  .sink_stag = RIG_STAG_RW,
                  .sink_to = 0x1000 },
    };

    rig_start(NULL);
    rig_passive();
    rig_say_fpdu("4141 00000000 00000001 00000001 00000000"
                 "a0000001 00000000 00001000 00000010 00000100 00000000 00000000");
    rig->in_used += 16;
    T_SHOWS("RDM-23") {
        T_EQ_MEM(rig->in + rig->in_used, rig->mem, 16);
    }
    rig->in_used = rig->in_len;
    rig_post(&m);
    rig_settle();
    T_SHOWS("RDM-07 RDM-08") {
        rig_expect_fpdu("4141 00000000 00000001 00000001 00000000"
                        "00000100 00000000 00001000 00000010 b0000002 00000000 00002000");
    }
    rig_say_fpdu("c142 00000100 00000000 00001000 000102030405060708090a0b0c0d0e0f");
    T_SHOWS("RDM-17") { /* that one Request, and this one Response */
        T_EQ_STR(rig_log(), "read_done(16)");
        rig_expect_nothing();
    }
    T_EQ_INT(rig->mem[0x100f], 15);
    rig_stop();
}

static const struct t_case cases[] = {
    { "active side: connect, RTR, Send, close", active_life },
    { "passive side: accept, RTR, Send, peer closes", passive_life },
    { "RDM-17 Reads in both directions", reads_both_ways },
};

T_MAIN(cases)
