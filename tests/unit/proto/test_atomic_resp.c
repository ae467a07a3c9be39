/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RFC 7306, Atomics, the engine as responder: execution, order, answers. */
#include <string.h>

#include "tap.h"
#include "rig.h"

#define REQ(op, msn) "41" op " 00000000 00000001 000000" msn " 00000000 "
#define RESP(msn) "414b 00000000 00000003 000000" msn " 00000000 "
#define ADD(msn, id, to, n)                            \
    REQ("4a", msn)                                     \
    "00000000 " id " 00000100 00000000000000" to " " n \
    " 0000000000000000 0000000000000000 ffffffffffffffff"
#define SWAP(msn, id, to, cmp, n) \
    REQ("4a", msn)                \
    "00000002 " id " 00000100 00000000000000" to " " n " ffffffffffffffff " cmp " ffffffffffffffff"
#define FIVE "0000000000000005"

static void begin(void)
{
    rig_passive_with(SG_MPE_DRAFT_02, true);
    sg_put_le64(rig->mem + 0x20, 0x2a);
    sg_put_le64(rig->mem + 0x28, 0x1122334455667788);
}

static uint64_t word(unsigned at)
{
    return sg_get_le64(rig->mem + at);
}

static void both(void)
{
    begin();
    rig_say_fpdu(ADD("01", "00000007", "20", FIVE));
    T_SHOWS("EXT-04 EXT-16") {
        rig_expect_fpdu(RESP("01") "00000007 000000000000002a");
    }
    T_EQ_U64(word(0x20), 0x2f);
    rig_say_fpdu(SWAP("02", "fffffff8", "20", "000000000000002f", "0000000000000009"));
    T_SHOWS("EXT-17") {
        rig_expect_fpdu(RESP("02") "fffffff8 000000000000002f");
    }
    T_SHOWS("EXT-03 EXT-07 EXT-10") {
        T_EQ_U64(word(0x20), 9);
    }
    rig_say_fpdu(SWAP("03", "00000000", "20", "000000000000002f", FIVE)); /* not equal */
    rig_expect_fpdu(RESP("03") "00000000 0000000000000009");
    T_SHOWS("EXT-07") {
        T_EQ_U64(word(0x20), 9);
    }
    rig_expect_nothing();
    T_SHOWS("EXT-13") {
        T_EQ_STR(rig_log(), "atomic(+1,100,20) atomic(=2,100,20) atomic(=3,100,20)");
    }
    T_EQ_U64(sg_engine_stats(rig->e)->rx_atomics, 3);
    T_EQ_U64(sg_engine_stats(rig->e)->tx_atomics, 0);
    T_EQ_U64(sg_engine_stats(rig->e)->rx_reads, 0);
    T_EQ_U64(rig->recvs, 0);
    rig_stop();
}

/* Reserved bits are ignored: of the operation word, of the DDP and RDMAP words. */
static void reserved_bits(void)
{
    rig_passive_with(SG_MPE_DRAFT_OFF, true);
    sg_put_le64(rig->mem + 0x20, 0x2a);
    rig_say_fpdu("7d7a a5a5a5a5 00000001 00000001 00000000 fffffff0 00000007 00000100 "
                 "0000000000000020 0000000000000005 0000000000000000 1234567812345678 "
                 "8765432187654321");
    T_SHOWS("EXT-01") {
        rig_expect_fpdu(RESP("01") "00000007 000000000000002a");
    }
    rig_expect_nothing();
    T_EQ_U64(word(0x20), 0x2f);
    rig_stop();
}

/* In order: none is executed before the previous one is done, whatever its kind. */
static void order(void)
{
    begin();
    rig->exec_later = 2;
    rig_say_fpdu(ADD("01", "00000001", "20", FIVE));
    rig_say_fpdu(ADD("02", "00000002", "20", FIVE));
    rig_say_fpdu(REQ("41", "03") "00000999 0000000000000000 00000008 00000100 0000000000000020");
    rig_say_fpdu(SWAP("04", "00000004", "20", "0000000000000034", FIVE));
    T_EQ_STR(rig_log(), "atomic(+1,100,20) later(1)");
    rig_expect_nothing();
    T_EQ_U64(word(0x20), 0x2a);
    rig_pass(1);
    T_EQ_STR(rig_log(), "atomic(+1,100,20) later(2)");
    rig_pass(1);
    T_SHOWS("EXT-15 EXT-24 EXT-26") {
        T_EQ_STR(rig_log(), "atomic(+1,100,20) atomic(+2,100,20) atomic(=4,100,20)");
    }
    rig_expect_fpdu(RESP("01") "00000001 000000000000002a");
    rig_expect_fpdu(RESP("02") "00000002 000000000000002f");
    T_SHOWS("RDM-49") {
        rig_expect_fpdu("c142 00000999 0000000000000000 3400000000000000");
    }
    T_SHOWS("EXT-21") {
        rig_expect_fpdu(RESP("03") "00000004 0000000000000034");
    }
    rig_expect_nothing();
    T_EQ_U64(word(0x20), 5);
    rig_stop();
}

/* With the requests of the draft in between. */
static void order_with_draft(void)
{
    begin();
    rig->exec_later = 1;
    rig_say_fpdu(REQ("4c", "01") "00000100 00000008 0000000000000020 00000001");
    rig_say_fpdu(ADD("02", "00000002", "20", FIVE));
    rig_say_fpdu(REQ("50", "03") "00000100 00000008 0000000000000020 0000000000000011");
    rig_say_fpdu(ADD("04", "00000004", "20", FIVE));
    T_EQ_STR(rig_log(), "mpe(F1,100,20+8,1) later(1)");
    rig_pass(1);
    T_EQ_STR(rig_log(), "mpe(F1,100,20+8,1) answered(F1) atomic(+2,100,20) "
                        "mpe(A3,100,20+8,0) answered(A3) atomic(+4,100,20)");
    rig_expect_fpdu("414d 00000000 00000003 00000001 00000000");
    rig_expect_fpdu(RESP("02") "00000002 000000000000002a");
    rig_expect_fpdu("4151 00000000 00000003 00000003 00000000");
    rig_expect_fpdu(RESP("04") "00000004 0000000000000011");
    rig_expect_nothing();
    T_EQ_U64(word(0x20), 0x16);
    rig_stop();
}

/* Earlier Writes and Sends are placed when an Atomic is executed; our own Sends do not wait. */
static void behind_writes(void)
{
    begin();
    rig->recvs = 1;
    rig_say_fpdu("c140 00000100 0000000000000020 0100000000000000");
    rig_say_fpdu("4143 00000000 00000000 00000001 00000000 6869");
    rig_say_fpdu(ADD("01", "00000001", "20", FIVE));
    T_EQ_STR(rig_log(), "placed recv(1,2) atomic(+1,100,20)");
    rig_expect_fpdu(RESP("01") "00000001 0000000000000001");
    T_EQ_U64(word(0x20), 6);
    rig->exec_later = 1;
    rig_say_fpdu(ADD("02", "00000002", "20", FIVE));
    rig_send(0, 4);
    rig_settle();
    T_EQ_STR(rig_log(), "atomic(+2,100,20) later(1) sent(4)");
    rig_stop();
}

/* IRD counts Reads and Atomics together. */
static void ird(void)
{
    unsigned i;
    char text[256];

    begin();
    rig->exec_later = 1;
    for (i = 1; i <= 9; i++) {
        if (i % 3 == 2) {
            snprintf(text, sizeof(text),
                     "4141 00000000 00000001 %08x 00000000 00000999 "
                     "0000000000000000 00000004 00000100 0000000000000020",
                     i);
        } else {
            snprintf(text, sizeof(text),
                     "414a 00000000 00000001 %08x 00000000 00000000 %08x "
                     "00000100 0000000000000028 0000000000000001 0000000000000000 "
                     "0000000000000000 ffffffffffffffff",
                     i, i);
        }
        rig_say_fpdu(text);
        if (i < 9) {
            rig_expect_nothing();
        }
    }
    T_SHOWS("EXT-18") {
        rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 1202c000 0046 "
                        "414a 00000000 00000001 00000009 00000000");
    }
    T_EQ_STR(rig_log(), "atomic(+1,100,28) later(1) terminated(sent,1/2/02) "
                        "disconnected(TERMINATED)");
    T_EQ_U64(word(0x28), 0x1122334455667788);
    rig_stop();
}

/* If the stream has no room for the answer, the operation is done once and the answer waits. */
static void little_room(void)
{
    struct sg_mem_options net = {
        .queued = true,
        .emss = 1024,
        .room = 1024,
        .delay_min_ns = 1000,
        .delay_max_ns = 1000,
    };
    struct sg_engine_config config = rig_config();
    char text[200];
    unsigned i;

    config.rfc7306 = true;
    rig_start_net(&config, &net);
    rig_request("4d504120 49442052 65712046 72616d65 50020004 80084008");
    rig_pass(1);
    rig_accept(8, 8, NULL);
    rig_pass(1);
    rig_say("000ec140 00000001 00000000 00000000 ebd34c5f");
    rig_pass(1);
    rig_log();
    rig->in_used = rig->in_len;
    sg_put_le64(rig->mem + 0x20, 100);
    for (i = 1; i <= 4; i++) {
        uint8_t answer[16] = { 0 };

        rig->exec_later = 1;
        snprintf(text, sizeof(text),
                 "414a 00000000 00000001 %08x 00000000 00000000 %08x 00000100 "
                 "0000000000000020 0000000000000005 0000000000000000 0000000000000000 "
                 "ffffffffffffffff",
                 i, i);
        rig_say_fpdu(text);
        rig_pass(1);
        rig_log();
        rig_send(0, 984); /* goes first and leaves 16 octets: the answer does not fit */
        rig_pass(1);
        rig_pass(1); /* the Send arrives */
        rig_pass(1); /* there is room again */
        rig_pass(1); /* the answer arrives */
        T_EQ_U64(word(0x20), 100 + 5 * i);
        sg_put_be32(answer + 4, i);
        sg_put_be64(answer + 8, 100 + 5 * (i - 1));
        T_NOT_NULL(memmem(rig->in, rig->in_len, answer, sizeof(answer)));
        rig_log();
    }
    rig_stop();
}

/* Upcalls may end the connection. */
static void abort_inside(void)
{
    begin();
    rig->abort_in = true;
    rig_say_fpdu(ADD("01", "00000001", "20", FIVE));
    T_EQ_STR(rig_log(), "atomic(+1,100,20)");
    T_NULL(rig->c);
    rig_stop();
    /* As requester, in the middle of several answers. */
    {
        struct sg_engine_config config = rig_config();
        const struct sg_msg m = { .kind = SG_MSG_FETCH_ADD, .atomic = { .stag = 1 } };

        config.rfc7306 = true;
        rig_start(&config);
        rig_active("4d504120 49442052 65702046 72616d65 50020004 00080008");
        rig_post(&m);
        rig_post(&m);
        rig_settle();
        rig_log();
        rig->abort_in = true;
        rig_say_fpdu(RESP("01") "00000001 0000000000000000");
        T_EQ_STR(rig_log(), "atomic_done(+,0)");
        T_NULL(rig->c);
        rig_stop();
    }
}

/* After our FIN nothing can be answered; earlier requests are. */
static void closing(void)
{
    begin();
    rig->exec_later = 1;
    rig_say_fpdu(ADD("01", "00000001", "20", FIVE));
    sg_conn_close(rig->c);
    rig_settle();
    rig_expect_nothing();
    T_FALSE(rig->peer_fin);
    rig_pass(1);
    rig_expect_fpdu(RESP("01") "00000001 000000000000002a");
    T_TRUE(rig->peer_fin);
    rig_say_fpdu(ADD("02", "00000002", "20", FIVE));
    T_EQ_U64(word(0x20), 0x2f);
    rig_stop();
}

static const struct t_case cases[] = {
    { "both operations", both },
    { "reserved bits", reserved_bits },
    { "in order, with Reads", order },
    { "in order, with requests of the draft", order_with_draft },
    { "Writes and Sends before it", behind_writes },
    { "IRD", ird },
    { "EXT-02 no room for the answer: executed once", little_room },
    { "a connection that ends in the upcall", abort_inside },
    { "closing", closing },
};

T_MAIN(cases)
