/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * draft-talpey-rdma-commit, the engine as responder: valid requests.  Invalid ones are in
 * test_mpe_faults.c.
 */
#include <string.h>

#include "base/crc32c.h"
#include "tap.h"
#include "rig.h"

/* Octets 0-1, Invalidate STag, queue, MSN and MO of a request. */
#define REQ(op, msn) "41" op " 00000000 00000001 000000" msn " 00000000 "
#define RESP(op, msn) "41" op " 00000000 00000003 000000" msn " 00000000 "
#define TARGET "00000100 00001000 0000000000002000 " /* STag, length, TO */
#define FLUSH(msn) REQ("4c", msn) TARGET "00000001"
#define VERIFY(msn) REQ("4e", msn) TARGET
#define ATOM(msn) REQ("50", msn) "00000100 00000008 0000000000000010 0123456789abcdef"
#define READ(msn, len)                                                             \
    "4141 00000000 00000001 000000" msn " 00000000 0000000a 0000000000000000 " len \
    " 00000100 0000000000000000"

static const char *crc_hex(uint32_t at, uint32_t len)
{
    static char text[9];
    uint8_t crc[4];

    sg_put_le32(crc, sg_crc32c(0, rig->mem + at, len));
    snprintf(text, sizeof(text), "%02x%02x%02x%02x", crc[0], crc[1], crc[2], crc[3]);
    return text;
}

static void say_with_hash(const char *ulpdu, const char *hash)
{
    char text[256];

    snprintf(text, sizeof(text), "%s%s", ulpdu, hash);
    rig_say_fpdu(text);
}

static void expect_with_hash(const char *ulpdu, const char *hash)
{
    char text[256];

    snprintf(text, sizeof(text), "%s%s", ulpdu, hash);
    rig_expect_fpdu(text);
}

static void flush(void)
{
    rig_passive_with(SG_MPE_DRAFT_02, false);
    rig_say_fpdu(FLUSH("01"));
    T_SHOWS("FLU-05 FLU-08") {
        rig_expect_fpdu(RESP("4d", "01"));
    }
    T_EQ_STR(rig_log(), "mpe(F1,100,2000+4096,1) answered(F1)");
    rig_say_fpdu(REQ("4c", "02") TARGET "00000002");
    rig_expect_fpdu(RESP("4d", "02"));
    T_EQ_STR(rig_log(), "mpe(F2,100,2000+4096,2) answered(F2)");
    /* The whole region: length and TO are ignored. */
    rig_say_fpdu(REQ("4c", "03") "00000100 ffffffff ffffffffffffffff 00000007");
    rig_expect_fpdu(RESP("4d", "03"));
    T_EQ_STR(rig_log(), "mpe(F3,100,ffffffffffffffff+4294967295,7) answered(F3)");
    /* No disposition flag: nothing is guaranteed, but the order is kept. */
    rig_say_fpdu(REQ("4c", "04") TARGET "00000000");
    rig_expect_fpdu(RESP("4d", "04"));
    T_EQ_STR(rig_log(), "mpe(F4,100,2000+4096,0) answered(F4)");
    rig_expect_nothing();
    T_EQ_U64(sg_engine_stats(rig->e)->rx_flushes, 4);
    rig_stop();
}

static void verify(void)
{
    char hash[9];

    rig_passive_with(SG_MPE_DRAFT_02, false);
    strcpy(hash, crc_hex(0x2000, 4096));
    rig_say_fpdu(VERIFY("01"));
    T_SHOWS("FLU-14") {
        expect_with_hash(RESP("4f", "01"), hash);
    }
    say_with_hash(VERIFY("02"), hash);
    expect_with_hash(RESP("4f", "02"), hash);
    rig_expect_nothing();
    T_EQ_STR(rig_log(), "mpe(V1,100,2000+4096,0) answered(V1) mpe(V2,100,2000+4096,0) "
                        "answered(V2)");
    T_EQ_U64(sg_engine_stats(rig->e)->rx_verifies, 2);
    rig_stop();
}

/* The data is a number: its least octet comes last on the wire and first in memory. */
static void atomic_write(void)
{
    static const uint8_t want[8] = { 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01 };

    rig_passive_with(SG_MPE_DRAFT_02, false);
    rig_say_fpdu(ATOM("01"));
    T_SHOWS("FLU-21") {
        rig_expect_fpdu(RESP("51", "01"));
    }
    rig_expect_nothing();
    T_EQ_MEM(rig->mem + 0x10, want, 8);
    T_EQ_STR(rig_log(), "mpe(A1,100,10+8,0) answered(A1)");
    T_EQ_U64(sg_engine_stats(rig->e)->rx_atomic_writes, 1);
    rig_stop();
}

/* Appendix A of -02: "can contain any value and are ignored by the receiver". */
static void any_offset(void)
{
    rig_passive_with(SG_MPE_DRAFT_02, false);
    rig_say_fpdu("414c 00000000 00000001 00000001 00000001 " TARGET "00000001");
    rig_expect_fpdu(RESP("4d", "01"));
    rig_say_fpdu("414e 00000000 00000001 00000002 ffffffff " TARGET);
    expect_with_hash(RESP("4f", "02"), crc_hex(0x2000, 4096));
    rig_say_fpdu("4150 00000000 00000001 00000003 80000000 "
                 "00000100 00000008 0000000000000010 0000000000000000");
    rig_expect_fpdu(RESP("51", "03"));
    rig_stop();
}

/* The one remaining reserved bit of RDMAP's control octet is ignored. */
static void reserved_bit(void)
{
    rig_passive_with(SG_MPE_DRAFT_02, false);
    rig_say_fpdu("4170 00000000 00000001 00000001 00000000 "
                 "00000100 00000008 0000000000000010 0000000000000000");
    rig_expect_fpdu(RESP("51", "01"));
    rig->recvs = 1;
    rig_say_fpdu("4163 00000000 00000000 00000001 00000000 61");
    rig_expect_nothing();
    T_EQ_STR(rig_log(), "mpe(A1,100,10+8,0) answered(A1) recv(1,1)");
    rig_stop();
}

/* Pipelined as the drafts mean it: Write, Flush, Verify, Atomic Write, all under way at once. */
static void transaction(void)
{
    char hash[9];

    rig_passive_with(SG_MPE_DRAFT_02, false);
    memset(rig->mem + 0x2000, 0xaa, 2);
    memset(rig->mem + 0x2002, 0xbb, 2);
    strcpy(hash, crc_hex(0x2000, 4096));
    memset(rig->mem + 0x2000, 0, 4);
    rig->exec_later = 1; /* so that all of it has arrived before anything is executed */
    rig_say_fpdu(REQ("4c", "01") "00000100 00000001 0000000000000000 00000001");
    rig_say_fpdu("8140 00000100 0000000000002000 aaaa");
    rig_say_fpdu("c140 00000100 0000000000002002 bbbb");
    rig_say_fpdu(FLUSH("02"));
    say_with_hash(VERIFY("03"), hash);
    rig_say_fpdu(ATOM("04"));
    rig_expect_nothing();
    T_EQ_STR(rig_log(), "mpe(F1,100,0+1,1) later(1) placed");
    rig_pass(1);
    rig_expect_fpdu(RESP("4d", "01"));
    rig_expect_fpdu(RESP("4d", "02"));
    expect_with_hash(RESP("4f", "03"), hash);
    rig_expect_fpdu(RESP("51", "04"));
    rig_expect_nothing();
    T_EQ_STR(rig_log(), "mpe(F1,100,0+1,1) answered(F1) mpe(F2,100,2000+4096,1) answered(F2) "
                        "mpe(V3,100,2000+4096,0) answered(V3) mpe(A4,100,10+8,0) "
                        "answered(A4)");
    rig_stop();
}

/* An unfinished Flush: no answer, nothing behind it is executed, our own messages continue. */
static void later(void)
{
    uint8_t before[8];

    rig_passive_with(SG_MPE_DRAFT_02, false);
    memcpy(before, rig->mem + 0x10, 8);
    rig->exec_later = 3;
    rig_say_fpdu(FLUSH("01"));
    rig_say_fpdu(ATOM("02"));
    rig_say_fpdu(READ("03", "00000004"));
    T_EQ_STR(rig_log(), "mpe(F1,100,2000+4096,1) later(1)");
    rig_send(0, 1);
    rig_settle();
    T_EQ_STR(rig_log(), "sent(1)");
    rig_expect_fpdu("4143 00000000 00000000 00000001 00000000 00");
    rig_pass(1);
    T_EQ_STR(rig_log(), "mpe(F1,100,2000+4096,1) later(2)");
    rig_send(0, 0); /* other transmission does not retry early */
    rig_settle();
    T_EQ_STR(rig_log(), "sent(0)");
    rig_expect_fpdu("4143 00000000 00000000 00000002 00000000");
    rig_pass(1);
    T_EQ_STR(rig_log(), "mpe(F1,100,2000+4096,1) later(3)");
    T_SHOWS("FLU-07") {
        rig_expect_nothing();
    }
    T_SHOWS("FLU-26") {
        T_EQ_MEM(rig->mem + 0x10, before, 8);
    }
    rig_pass(1);
    rig_expect_fpdu(RESP("4d", "01"));
    rig_expect_fpdu(RESP("51", "02"));
    T_EQ_STR(rig_log(), "mpe(F1,100,2000+4096,1) answered(F1) mpe(A2,100,10+8,0) "
                        "answered(A2)");
    T_EQ_U64(rig->in[rig->in_used + 3], 0x42); /* the Read Response */
    rig->in_used = rig->in_len;
    /* The next request starts anew. */
    rig->exec_later = 1;
    rig_say_fpdu(FLUSH("04"));
    T_EQ_STR(rig_log(), "mpe(F4,100,2000+4096,1) later(1)");
    rig_pass(1);
    rig_expect_fpdu(RESP("4d", "03"));
    rig_stop();
}

/* A Read of many segments in front: the Flush is executed when the last was gathered. */
static void behind_a_read(void)
{
    static uint8_t before[20000];
    uint32_t off = 0;

    rig_passive_with(SG_MPE_DRAFT_02, false);
    memcpy(before, rig->mem, sizeof(before));
    rig->exec_later = 1;
    rig_say_fpdu(REQ("4c", "01") "00000100 00000001 0000000000000000 00000001");
    rig_say_fpdu(READ("02", "00004e20"));
    rig_say_fpdu(ATOM("03"));
    rig_say_fpdu(READ("04", "00000018"));
    rig_expect_nothing();
    rig_pass(1);
    rig_expect_fpdu(RESP("4d", "01"));
    while (off < sizeof(before)) {
        const uint8_t *u = rig->in + rig->in_used + 2;
        uint32_t n = sg_get_be16(u - 2) - 14u;

        T_EQ_U64(u[1], 0x42);
        T_EQ_MEM(u + 14, before + off, n); /* as it was before the Atomic Write to offset 16 */
        off += n;
        rig->in_used += (n + 14 + 2 + 3) / 4 * 4 + 4;
    }
    rig_expect_fpdu(RESP("51", "02"));
    rig_expect_fpdu("c142 0000000a 0000000000000000 00070e15 1c232a31 383f464d 545b6269 "
                    "efcdab89 67452301");
    rig_stop();
}

/* IRD is one limit for Reads and these requests. */
static void share_ird(void)
{
    struct sg_engine_config config = rig_config();

    config.mpe_draft = SG_MPE_DRAFT_02;
    rig_start(&config);
    rig_request("4d504120 49442052 65712046 72616d65 50020004 80084008");
    rig_accept(3, 3, NULL);
    rig_say("000ec140 00000001 00000000 00000000 ebd34c5f");
    rig->in_used = rig->in_len;
    rig_log();
    rig->exec_later = 1;
    rig_say_fpdu(FLUSH("01"));
    rig_say_fpdu(READ("02", "00000001"));
    rig_say_fpdu(ATOM("03"));
    T_EQ_STR(rig_log(), "mpe(F1,100,2000+4096,1) later(1)");
    rig_say_fpdu(VERIFY("04"));
    rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 1202c000 0022 " REQ("4e", "04"));
    rig_stop();
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;

    while ((text = strstr(text, word))) {
        text++;
        n++;
    }
    return n;
}

/* Nothing is lost and nothing happens twice when the stream has no room for the answer. */
static void little_room(void)
{
    struct sg_mem_options net = {
        .queued = true,
        .emss = 1024,
        .room = 1024,
        .delay_min_ns = 1000,
        .delay_max_ns = 1000,
    };
    static const char *const requests[] = { FLUSH("01"), VERIFY("02"), ATOM("03"), FLUSH("04") };
    struct sg_engine_config config = rig_config();
    const char *log;
    unsigned i;

    config.mpe_draft = SG_MPE_DRAFT_02;
    rig_start_net(&config, &net);
    rig_request("4d504120 49442052 65712046 72616d65 50020004 80084008");
    rig_pass(1);
    rig_accept(8, 8, NULL);
    rig_pass(1);
    rig_say("000ec140 00000001 00000000 00000000 ebd34c5f");
    rig_pass(1);
    rig_log();
    rig->in_used = rig->in_len;
    for (i = 0; i < 4; i++) {
        rig->exec_later = 1;
        rig_say_fpdu(requests[i]);
        rig_pass(1);
        rig_log();
        rig_send(0, 984); /* goes first and leaves 16 octets: the answer does not fit */
        rig_pass(1);
        rig_pass(1); /* the Send arrives */
        rig_pass(1); /* there is room again */
        log = rig_log();
        T_EQ_U64(count(log, "mpe("), 1);
        T_EQ_U64(count(log, "answered("), 1);
        T_TRUE(strstr(log, "mpe(") < strstr(log, "answered("));
    }
    T_EQ_U64(sg_engine_stats(rig->e)->tx_sends, 4);
    rig_stop();
}

/* Closing: requests are answered first, but not for longer than the close timeout. */
static void closing(void)
{
    rig_passive_with(SG_MPE_DRAFT_02, false);
    rig->exec_later = 2;
    rig_say_fpdu(FLUSH("01"));
    sg_conn_close(rig->c);
    rig_pass(1);
    T_FALSE(rig->peer_fin);
    rig_pass(1);
    rig_expect_fpdu(RESP("4d", "01"));
    T_TRUE(rig->peer_fin);
    rig_stop();

    rig_passive_with(SG_MPE_DRAFT_02, false);
    rig->exec_later = 100000;
    rig_say_fpdu(FLUSH("01"));
    sg_conn_close(rig->c);
    rig_log();
    rig_pass(29999); /* an answer is due: the longer timeout */
    T_FALSE(strstr(rig_log(), "closed"));
    rig_pass(1);
    T_TRUE(strstr(rig_log(), "closed(TIMEOUT)"));
    rig_stop();
}

/* Each upcall may abort the connection. */
static void abort_inside(void)
{
    unsigned i;

    for (i = 0; i < 3; i++) {
        T_CONTEXT("upcall %u", i);
        rig_passive_with(SG_MPE_DRAFT_02, false);
        if (i == 0) { /* 'mpe' */
            rig->abort_in = true;
            rig_say_fpdu(FLUSH("01"));
        } else if (i == 1) { /* 'mpe', the second time */
            rig->exec_later = 1;
            rig_say_fpdu(FLUSH("01"));
            rig->abort_in = true;
            rig_pass(1);
        } else { /* 'write_placed' */
            rig->abort_in = true;
            rig_say_fpdu("c140 00000100 0000000000002000 aaaa");
        }
        T_NULL(rig->c);
        rig_expect_nothing();
        rig_stop();
    }
}

/* 'write_placed' comes with a Write's last segment, whatever its offsets; never if it is empty. */
static void write_placed(void)
{
    rig_passive_with(SG_MPE_DRAFT_02, false);
    T_EQ_STR(rig_log(), "");
    rig_say_fpdu("8140 00000100 0000000000002000 aa");
    T_EQ_STR(rig_log(), "");
    rig_say_fpdu("c140 00000100 0000000000002001");
    T_EQ_STR(rig_log(), "placed");
    rig_say_fpdu("c140 00000100 0000000000002001");
    T_EQ_STR(rig_log(), "");
    rig_say_fpdu("c140 00000100 0000000000002001 bb");
    T_EQ_STR(rig_log(), "placed");
    rig_stop();
}

/* Draft -01: the same messages, no R, and an STag to invalidate with any request. */
static void draft_01(void)
{
    rig_passive_with(SG_MPE_DRAFT_01, false);
    rig_say_fpdu(REQ("4c", "01") TARGET "00000003");
    rig_expect_fpdu(RESP("4d", "01"));
    T_EQ_STR(rig_log(), "mpe(F1,100,2000+4096,3) answered(F1)");
    rig_say_fpdu("414c 00000300 00000001 00000002 00000000 " TARGET "00000001");
    rig_expect_fpdu(RESP("4d", "02"));
    T_EQ_STR(rig_log(), "mpe(F2,100,2000+4096,1) inv(300) answered(F2)");
    rig_say_fpdu("414e 00000300 00000001 00000003 00000000 " TARGET);
    expect_with_hash(RESP("4f", "03"), crc_hex(0x2000, 4096));
    T_EQ_STR(rig_log(), "mpe(V3,100,2000+4096,0) inv(300) answered(V3)");
    rig_say_fpdu("4150 00000100 00000001 00000004 00000000 "
                 "00000100 00000008 0000000000000010 0123456789abcdef");
    rig_expect_fpdu(RESP("51", "04"));
    T_EQ_STR(rig_log(), "mpe(A4,100,10+8,0) inv(100) answered(A4)");
    rig_expect_nothing();
    rig_stop();
}

static const struct t_case cases[] = {
    { "FLU-05 FLU-08 Flush, every disposition", flush },
    { "FLU-14 Verify, with and without a hash", verify },
    { "FLU-21 Atomic Write", atomic_write },
    { "MO of requests means nothing", any_offset },
    { "one reserved bit is left", reserved_bit },
    { "FLU-36 FLU-34 Write, Flush, Verify and Atomic Write under way at once", transaction },
    { "FLU-07 FLU-26 FLU-34 a Flush that takes its time", later },
    { "FLU-34 requests behind a Read of many segments", behind_a_read },
    { "FLU-35 Reads and these share IRD", share_ird },
    { "FLU-08 a stream with little room", little_room },
    { "FLU-08 closing with a request unanswered", closing },
    { "abort in each upcall", abort_inside },
    { "a Write is placed with its last segment", write_placed },
    { "FLU-02 draft -01, with an STag to invalidate", draft_01 },
};

T_MAIN(cases)
