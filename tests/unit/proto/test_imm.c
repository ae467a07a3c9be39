/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RFC 7306, Immediate Data: sent, received, in order with Sends and Writes. */
#include <string.h>

#include "tap.h"
#include "rig.h"

#define SEND(op, msn) "41" op " 00000000 00000000 000000" msn " 00000000 "
#define WRITE "c140 00000100 0000000000000000 "
#define WRITE_MORE "8140 00000100 0000000000000000 "

static const struct sg_msg imm_msg = {
    .kind = SG_MSG_IMM,
    .imm = { .octets = { 1, 2, 3, 4, 5, 6, 7, 8 } },
};

static void start(bool on)
{
    struct sg_engine_config config = rig_config();

    config.rfc7306 = on;
    rig_start(&config);
    rig_active("4d504120 49442052 65702046 72616d65 50020004 00080008");
    rig_log();
    rig->in_used = rig->in_len;
}

static void begin(void)
{
    rig_passive_with(SG_MPE_DRAFT_02, true);
    rig->recvs = 16;
}

static void sending(void)
{
    struct sg_msg m = imm_msg;

    start(true);
    rig_post(&m);
    rig_settle();
    T_SHOWS("EXT-01 EXT-27") {
        rig_expect_fpdu(SEND("48", "01") "0102030405060708");
    }
    T_EQ_STR(rig_log(), "sent(0)");
    m.imm.solicited = true;
    m.imm.octets[0] = 0xff;
    rig_post(&m);
    rig_send(0, 0);
    m.imm.solicited = false;
    rig_post(&m);
    rig_settle();
    rig_expect_fpdu(SEND("49", "02") "ff02030405060708");
    rig_expect_fpdu(SEND("43", "03"));
    rig_expect_fpdu(SEND("48", "04") "ff02030405060708");
    rig_expect_nothing();
    T_EQ_STR(rig_log(), "sent(0) sent(0) sent(0)");
    T_EQ_U64(sg_engine_stats(rig->e)->tx_imms, 3);
    T_EQ_U64(sg_engine_stats(rig->e)->tx_sends, 1);
    rig_stop();
}

/* Behind a Write of several segments, and not between them. */
static void behind_write(void)
{
    const struct sg_msg w = {
        .kind = SG_MSG_WRITE,
        .cookie = 0,
        .write = { .stag = 0x100, .length = 3000 },
    };
    size_t n;

    start(true);
    rig_post(&w);
    rig_post(&imm_msg);
    rig_settle();
    T_EQ_STR(rig_log(), "sent(3000) sent(0)");
    n = rig->in_len - rig->in_used;
    T_TRUE(n > 3000);
    rig->in_used = rig->in_len - 32;
    T_SHOWS("EXT-27") {
        rig_expect_fpdu(SEND("48", "01") "0102030405060708");
    }
    rig_stop();
}

/* Immediate Data needs no Read credit. */
static void without_credit(void)
{
    struct sg_engine_config config = rig_config();

    config.rfc7306 = true;
    config.max_ord = 0;
    rig_start(&config);
    rig_active("4d504120 49442052 65702046 72616d65 50020004 00080008");
    rig->in_used = rig->in_len;
    rig_post(&imm_msg);
    rig_settle();
    rig_expect_fpdu(SEND("48", "01") "0102030405060708");
    rig_stop();
}

static void unspeakable(void)
{
    start(false);
    rig_post(&imm_msg);
    rig_settle();
    rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 00000000");
    rig_expect_nothing();
    T_EQ_STR(rig_log(), "terminated(sent,0/0/00) disconnected(TERMINATED)");
    rig_stop();
}

static void receiving(void)
{
    begin();
    memset(rig->recv_buf, 0x5a, sizeof(rig->recv_buf));
    rig_say_fpdu(SEND("48", "01") "0102030405060708");
    rig_say_fpdu(SEND("43", "02") "6869");
    rig_say_fpdu(SEND("49", "03") "ffffffffffffffff");
    rig_say_fpdu("4158 77777777 00000000 00000004 00000000 0000000000000000"); /* reserved bits */
    T_SHOWS("EXT-28") {
        T_EQ_STR(rig_log(), "imm(1,0102030405060708,0) recv(2,2) imm(3,ffffffffffffffff,0,se) "
                            "terminated(sent,0/2/06) disconnected(TERMINATED)");
    }
    T_EQ_U64(rig->recv_buf[0], 0x5a); /* nothing goes to the buffer */
    T_EQ_U64(rig->recv_buf[2 * RIG_RECV_ROOM], 0x5a);
    T_EQ_U64(sg_engine_stats(rig->e)->rx_imms, 2);
    T_EQ_U64(sg_engine_stats(rig->e)->rx_sends, 1);
    rig_stop();
    /* With four bits of opcode the one above is reserved. */
    rig_passive_with(SG_MPE_DRAFT_OFF, true);
    rig->recvs = 1;
    rig_say_fpdu("4178 77777777 00000000 00000001 00000000 0000000000000000");
    T_EQ_STR(rig_log(), "imm(1,0000000000000000,0)");
    rig_stop();
}

/* The length of the Write directly before it. */
static void length_of_write(void)
{
    static const struct {
        const char *what;
        const char *says[4];
        const char *log;
    } rows[] = {
        { "a Write", { WRITE "01020304" }, "placed imm(1,0000000000000007,4)" },
        { "of three segments",
          { WRITE_MORE "0102", WRITE_MORE "03", WRITE "0405" },
          "placed imm(1,0000000000000007,5)" },
        { "of no octets", { WRITE }, "imm(1,0000000000000007,0)" },
        { "two Writes",
          { WRITE "01020304", WRITE "010203" },
          "placed placed imm(1,0000000000000007,3)" },
        { "two Writes, the second empty",
          { WRITE "01020304", WRITE },
          "placed imm(1,0000000000000007,0)" },
        { "a Read in between",
          { WRITE "01020304", "4141 00000000 00000001 00000001 00000000 "
                              "00000999 0000000000000000 00000000 00000000 0000000000000000" },
          "placed imm(1,0000000000000007,0)" },
        { "an Atomic in between",
          { WRITE "01020304",
            "414a 00000000 00000001 00000001 00000000 "
            "00000000 00000001 00000100 0000000000000020 0000000000000000 0000000000000000 "
            "0000000000000000 0000000000000000" },
          "placed atomic(+1,100,20) imm(1,0000000000000007,0)" },
        { "a Flush in between",
          { WRITE "01020304", "414c 00000000 00000001 00000001 00000000 "
                              "00000100 00000004 0000000000000000 00000001" },
          "placed mpe(F1,100,0+4,1) answered(F1) imm(1,0000000000000007,0)" },
        { "a Write that has not ended", { WRITE_MORE "01020304" }, "imm(1,0000000000000007,0)" },
    };
    unsigned i, k;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].what);
        begin();
        for (k = 0; k < 4 && rows[i].says[k]; k++) {
            rig_say_fpdu(rows[i].says[k]);
        }
        rig_say_fpdu(SEND("48", "01") "0000000000000007");
        T_EQ_STR(rig_log(), rows[i].log);
        rig_stop();
    }
    /* Only the first message after the Write has its length; a Send ends it, too. */
    begin();
    rig_say_fpdu(WRITE "01020304");
    rig_say_fpdu(SEND("48", "01") "0000000000000007");
    rig_say_fpdu(SEND("48", "02") "0000000000000008");
    rig_say_fpdu(WRITE "01020304");
    rig_say_fpdu(SEND("43", "03"));
    rig_say_fpdu(SEND("48", "04") "0000000000000009");
    T_EQ_STR(rig_log(), "placed imm(1,0000000000000007,4) imm(2,0000000000000008,0) placed "
                        "recv(3,0) imm(4,0000000000000009,0)");
    rig_stop();
}

/* Answers to us may come between a Write and its Immediate Data. */
static void answers_in_between(void)
{
    const struct sg_msg read = {
        .kind = SG_MSG_READ_REQ,
        .read = { .length = 4, .stag = 1, .sink_stag = RIG_STAG_RW, .sink_to = 0x40 },
    };
    const struct sg_msg add = { .kind = SG_MSG_FETCH_ADD, .atomic = { .stag = 1 } };

    begin();
    rig_post(&read);
    rig_post(&add);
    rig_settle();
    rig_log();
    rig_say_fpdu(WRITE "01020304");
    rig_say_fpdu("c142 00000100 0000000000000040 61626364");
    rig_say_fpdu("414b 00000000 00000003 00000001 00000000 00000002 0000000000000000");
    rig_say_fpdu(SEND("48", "01") "0000000000000007");
    T_EQ_STR(rig_log(), "placed read_done(4) atomic_done(+,0) imm(1,0000000000000007,4)");
    rig_stop();
}

/* It consumes a Receive, which must be posted. */
static void receives(void)
{
    begin();
    rig->recvs = 1;
    rig_say_fpdu(SEND("48", "01") "0102030405060708");
    rig_say_fpdu(SEND("48", "02") "0102030405060708");
    T_EQ_STR(rig_log(), "imm(1,0102030405060708,0) terminated(sent,1/2/02) "
                        "disconnected(TERMINATED)");
    rig_stop();
    begin();
    rig->recv_fails = true;
    rig_say_fpdu(SEND("48", "01") "0102030405060708");
    T_EQ_STR(rig_log(), "terminated(sent,1/0/00) disconnected(TERMINATED)");
    rig_stop();
    begin();
    rig->abort_in = true;
    rig_say_fpdu(SEND("48", "01") "0102030405060708");
    T_EQ_STR(rig_log(), "imm(1,0102030405060708,0)");
    T_NULL(rig->c);
    rig_stop();
}

static const struct t_case cases[] = {
    { "sending", sending },
    { "behind a Write", behind_write },
    { "without credits of Reads", without_credit },
    { "a connection without RFC 7306", unspeakable },
    { "receiving", receiving },
    { "the length of the Write before it", length_of_write },
    { "answers in between", answers_in_between },
    { "Receives", receives },
};

T_MAIN(cases)
