/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * draft-talpey-rdma-commit, the engine as requester: the requests that it sends, how answers find
 * their requests, and its reaction to answers that do not fit.
 */
#include <string.h>

#include "tap.h"
#include "request_msgs.h"

#define ZEROS_32 "0000000000000000000000000000000000000000000000000000000000000000"

static const struct sg_msg verify_msg = {
    .kind = SG_MSG_VERIFY,
    .mpe = { .stag = 0xb0000002,
             .to = 0x2000,
             .length = 4096,
             .args = { .hash = { .len = 4, .octets = { 0xe3, 0x06, 0x92, 0x83 } } } },
};
static const struct sg_msg atom_msg = {
    .kind = SG_MSG_ATOMIC_WRITE,
    .mpe = { .stag = 0xb0000002,
             .to = 0x2000,
             .args = { .atom = { 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01 } } },
};

#define VERIFY(msn) REQ("4e", msn) "b0000002 00001000 0000000000002000 e3069283"
#define ATOM(msn) REQ("50", msn) "b0000002 00000008 0000000000002000 0123456789abcdef"

static void requests(void)
{
    rig_active_with(SG_MPE_DRAFT_02, false, 8);
    rig_post_now(&flush_msg);
    T_SHOWS("FLU-01 FLU-04") {
        rig_expect_fpdu(FLUSH("01"));
    }
    rig_post_now(&verify_msg);
    T_SHOWS("FLU-13") {
        rig_expect_fpdu(VERIFY("02"));
    }
    rig_post_now(&atom_msg);
    T_SHOWS("FLU-20 FLU-22") {
        rig_expect_fpdu(ATOM("03"));
    }
    rig_expect_nothing();
    T_EQ_STR(rig_log(), ""); /* sent, but not complete */
    rig_say_fpdu(RESP("4d", "01"));
    T_EQ_STR(rig_log(), "mpe_done(F)");
    rig_say_fpdu(RESP("4f", "02") "e3069283");
    T_EQ_STR(rig_log(), "mpe_done(V,e3069283)");
    rig_say_fpdu(RESP("51", "03"));
    T_EQ_STR(rig_log(), "mpe_done(A)");
    rig_expect_nothing();
    T_EQ_U64(sg_engine_stats(rig->e)->tx_flushes, 1);
    T_EQ_U64(sg_engine_stats(rig->e)->tx_verifies, 1);
    T_EQ_U64(sg_engine_stats(rig->e)->tx_atomic_writes, 1);
    T_EQ_U64(sg_engine_stats(rig->e)->tx_reads, 0);
    rig_stop();
}

/* The FPDUs of the golden vectors, which other tools read, too. */
static void golden(void)
{
    rig_active_with(SG_MPE_DRAFT_02, false, 8);
    rig_post_now(&read_msg);
    rig->in_used = rig->in_len;
    rig_post_now(&flush_msg);
    rig_expect("0026414c 00000000 00000001 00000002 00000000 b0000002 00001000 00000000 00002000 "
               "00000001 6a09cd11");
    rig_post_now(&atom_msg);
    rig_expect("002a4150 00000000 00000001 00000003 00000000 b0000002 00000008 00000000 00002000 "
               "01234567 89abcdef 9ad58ce1");
    rig_stop();
}

/* All forms of a request: all flags, all hash lengths, both drafts. */
static void every_form(void)
{
    static const uint32_t flags[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    struct sg_msg m = flush_msg;
    char text[320];
    size_t i, k;

    for (i = 0; i < SG_ARRAY_SIZE(flags); i++) {
        rig_active_with(i < 4 ? SG_MPE_DRAFT_01 : SG_MPE_DRAFT_02, false, 8);
        m.mpe.args.flags = flags[i];
        rig_post_now(&m);
        snprintf(text, sizeof(text), "%s%08x",
                 REQ("4c", "01") "b0000002 00001000 0000000000002000 ", flags[i]);
        rig_expect_fpdu(text);
        rig_stop();
    }
    m = verify_msg;
    for (i = 0; i <= 64; i++) {
        char *at = text;

        rig_active_with(SG_MPE_DRAFT_02, false, 8);
        m.mpe.args.hash.len = (uint8_t)i;
        at += sprintf(at, REQ("4e", "01") "b0000002 00001000 0000000000002000 ");
        for (k = 0; k < i; k++) {
            m.mpe.args.hash.octets[k] = (uint8_t)(k * 3 + 1);
            at += sprintf(at, "%02x", m.mpe.args.hash.octets[k]);
        }
        rig_post_now(&m);
        rig_expect_fpdu(text);
        rig_stop();
    }
    /* Draft -01: an STag that the responder invalidates. */
    rig_active_with(SG_MPE_DRAFT_01, false, 8);
    m = atom_msg;
    m.mpe.invalidate = true;
    m.mpe.inv_stag = 0x11223344;
    rig_post_now(&m);
    rig_expect_fpdu("4150 11223344 00000001 00000001 00000000 "
                    "b0000002 00000008 0000000000002000 0123456789abcdef");
    m.mpe.invalidate = false; /* inv_stag is left as it was, and must not show */
    rig_post_now(&m);
    rig_expect_fpdu(ATOM("02"));
    rig_stop();
}

/* Operations that the connection's draft does not have end the stream, without headers. */
static void unspeakable(void)
{
    struct sg_msg rows[5] = { flush_msg, flush_msg, verify_msg, flush_msg, atom_msg };
    static const uint8_t drafts[5] = { SG_MPE_DRAFT_OFF, SG_MPE_DRAFT_01, SG_MPE_DRAFT_02,
                                       SG_MPE_DRAFT_02, SG_MPE_DRAFT_02 };
    size_t i;

    rows[1].mpe.args.flags = SG_FLUSH_REGION | SG_FLUSH_PERSISTENT;
    rows[2].mpe.args.hash.len = 65;
    rows[3].mpe.args.flags = 8;
    rows[4].mpe.invalidate = true;
    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("row %zu", i);
        rig_active_with(drafts[i], false, 8);
        rig_post_now(&rows[i]);
        T_SHOWS("FLU-28") {
            rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 00000000");
        }
        rig_expect_nothing();
        T_EQ_STR(rig_log(), "terminated(sent,0/0/00) disconnected(TERMINATED)");
        rig_stop();
    }
}

/* One space of MSNs and one limit for Reads and these requests. */
static void share_ord(void)
{
    rig_active_with(SG_MPE_DRAFT_02, false, 2);
    rig_post(&flush_msg);
    rig_post(&read_msg);
    rig_post(&atom_msg);
    rig_post(&verify_msg);
    rig_settle();
    rig_expect_fpdu(FLUSH("01"));
    rig_expect_fpdu(READ("02"));
    rig_expect_nothing();
    rig_say_fpdu(RESP("4d", "01"));
    rig_expect_fpdu(ATOM("03"));
    rig_expect_nothing();
    rig_say_fpdu(READ_RESP);
    rig_expect_fpdu(VERIFY("04"));
    rig_expect_nothing();
    rig_say_fpdu(RESP("51", "02"));
    rig_say_fpdu(RESP("4f", "03") "00");
    T_EQ_STR(rig_log(), "mpe_done(F) read_done(4) mpe_done(A) mpe_done(V,00)");
    T_EQ_U64(rig->max_outstanding, 2);
    rig_stop();
}

/* Answers that overtake others are kept: verbs get them in the order of requests. */
static void order_of_completions(void)
{
    struct sg_msg second = read_msg;

    second.read.sink_to = 0x80;
    rig_active_with(SG_MPE_DRAFT_02, false, 8);
    rig_post(&flush_msg);
    rig_post(&read_msg);
    rig_post(&verify_msg);
    rig_post(&second);
    rig_post(&atom_msg);
    rig_settle();
    rig_log();
    rig_say_fpdu(READ_RESP);
    rig_say_fpdu("c142 00000100 0000000000000080 65666768");
    T_EQ_STR(rig_log(), "");
    T_EQ_MEM(rig->mem + 0x40, "abcd", 4);
    T_EQ_MEM(rig->mem + 0x80, "efgh", 4);
    rig_say_fpdu(RESP("4d", "01"));
    T_EQ_STR(rig_log(), "mpe_done(F) read_done(4)");
    rig_say_fpdu(RESP("4f", "02") "e3069283");
    T_EQ_STR(rig_log(), "mpe_done(V,e3069283) read_done(4)");
    rig_say_fpdu(RESP("51", "03"));
    T_EQ_STR(rig_log(), "mpe_done(A)");

    /* The other way round: responses of queue 3 before that of an older Read. */
    rig->in_used = rig->in_len;
    rig_post(&read_msg);
    rig_post(&flush_msg);
    rig_post(&verify_msg);
    rig_settle();
    rig_say_fpdu("8142 00000100 0000000000000040 6162");
    rig_say_fpdu(RESP("4d", "04"));
    rig_say_fpdu(RESP("4f", "05") "01020304");
    T_EQ_STR(rig_log(), "");
    rig_say_fpdu("c142 00000100 0000000000000042 6364");
    T_EQ_STR(rig_log(), "read_done(4) mpe_done(F) mpe_done(V,01020304)");
    rig_stop();
}

/* The ring of requests wraps. */
static void many(void)
{
    unsigned i;

    rig_active_with(SG_MPE_DRAFT_02, false, 3);
    for (i = 0; i < 200; i++) {
        char text[64];

        rig_post(i % 3 ? &flush_msg : &verify_msg);
        rig_post(&read_msg);
        rig_settle();
        rig_say_fpdu(READ_RESP);
        T_EQ_STR(rig_log(), "");
        snprintf(text, sizeof(text), "41%s 00000000 00000003 %08x 00000000 %s", i % 3 ? "4d" : "4f",
                 i + 1, i % 3 ? "" : "aabb");
        rig_say_fpdu(text);
        T_EQ_STR(rig_log(), i % 3 ? "mpe_done(F) read_done(4)" : "mpe_done(V,aabb) read_done(4)");
    }
    rig_stop();
}

/* Responses that do not match a request. */
static void bad_responses(void)
{
    static const struct {
        const char *what;
        const struct sg_msg *asked;
        const char *ulpdu, *terminate, *word;
    } rows[] = {
        { "another kind: Verify", &flush_msg, RESP("4f", "01") "00",
          TERM("0206", "0013") RESP("4f", "01"), "0/2/06" },
        { "another kind: Atomic Write", &flush_msg, RESP("51", "01"),
          TERM("0206", "0012") RESP("51", "01"), "0/2/06" },
        { "MSN of the request queue", &flush_msg, RESP("4d", "02"),
          TERM("1203", "0012") RESP("4d", "02"), "1/2/03" },
        { "MSN 0", &flush_msg, RESP("4d", "00"), TERM("1203", "0012") RESP("4d", "00"), "1/2/03" },
        { "MO", &flush_msg, "414d 00000000 00000003 00000001 00000001",
          TERM("1204", "0012") "414d 00000000 00000003 00000001 00000001", "1/2/04" },
        { "not the last segment", &flush_msg, "014d 00000000 00000003 00000001 00000000",
          TERM("02ff", "0012") "014d 00000000 00000003 00000001 00000000", "0/2/ff" },
        { "Flush Response with payload", &flush_msg, RESP("4d", "01") "00",
          TERM("02ff", "0013") RESP("4d", "01"), "0/2/ff" },
        { "request on the queue of responses", &flush_msg,
          RESP("4c", "01") "00000100 00000008 0000000000000010 00000001",
          TERM("0206", "0026") RESP("4c", "01"), "0/2/06" },
        { "Send on the queue of responses", &flush_msg, RESP("43", "01"),
          TERM("0206", "0012") RESP("43", "01"), "0/2/06" },
        { "a Read Response instead", &flush_msg, "c142 00000100 0000000000000040 61626364",
          TERM("0206", "0012") "c142 00000100 0000000000000040", "0/2/06" },
        { "Verify Response, no hash", &verify_msg, RESP("4f", "01"),
          TERM("02ff", "0012") RESP("4f", "01"), "0/2/ff" },
        { "Verify Response, 65 octets", &verify_msg, RESP("4f", "01") ZEROS_32 ZEROS_32 "00",
          TERM("1205", "0053") RESP("4f", "01"), "1/2/05" },
        { "Atomic Write Response with payload", &atom_msg, RESP("51", "01") "00000000",
          TERM("02ff", "0016") RESP("51", "01"), "0/2/ff" },
    };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        char words[80];

        T_CONTEXT("%s", rows[i].what);
        rig_active_with(SG_MPE_DRAFT_02, false, 8);
        rig_post_now(rows[i].asked);
        rig->in_used = rig->in_len;
        rig_say_fpdu(rows[i].ulpdu);
        rig_expect_fpdu(rows[i].terminate);
        snprintf(words, sizeof(words), "terminated(sent,%s) disconnected(TERMINATED)",
                 rows[i].word);
        T_EQ_STR(rig_log(), words);
        rig_stop();
    }
}

/* A second answer to one request, and an answer that is kept and never delivered. */
static void one_answer_each(void)
{
    rig_active_with(SG_MPE_DRAFT_02, false, 8);
    rig_post(&read_msg);
    rig_post(&flush_msg);
    rig_settle();
    rig->in_used = rig->in_len;
    rig_say_fpdu(RESP("4d", "01"));
    T_EQ_STR(rig_log(), "");
    rig_say_fpdu(RESP("4d", "02"));
    rig_expect_fpdu(TERM("1202", "0012") RESP("4d", "02"));
    T_EQ_STR(rig_log(), "terminated(sent,1/2/02) disconnected(TERMINATED)");
    rig_stop();
}

/* Draft -01 allows a hash of no octets. */
static void draft_01_empty_hash(void)
{
    rig_active_with(SG_MPE_DRAFT_01, false, 8);
    rig_post_now(&verify_msg);
    rig_say_fpdu(RESP("4f", "01"));
    T_EQ_STR(rig_log(), "mpe_done(V)");
    rig_stop();
}

/* The peer's Terminate for a Flush: verbs get that and no completion. */
static void terminated(void)
{
    rig_active_with(SG_MPE_DRAFT_02, false, 8);
    rig_post(&flush_msg);
    rig_post(&atom_msg);
    rig_settle();
    rig_say_fpdu(TERM("0207", "0026") REQ("4c", "01"));
    T_EQ_STR(rig_log(), "terminated(received,0/2/07) disconnected(TERMINATED)");
    rig_say_fpdu(RESP("4d", "01"));
    T_EQ_STR(rig_log(), "");
    rig_stop();
}

/* Abort in the upcall of the first of several answers that wait. */
static void abort_inside(void)
{
    rig_active_with(SG_MPE_DRAFT_02, false, 8);
    rig_post(&flush_msg);
    rig_post(&read_msg);
    rig_post(&read_msg);
    rig_settle();
    rig_log();
    rig_say_fpdu(READ_RESP);
    rig_say_fpdu(READ_RESP);
    T_EQ_STR(rig_log(), "");
    rig->abort_in = true;
    rig_say_fpdu(RESP("4d", "01"));
    T_EQ_STR(rig_log(), "mpe_done(F)");
    T_NULL(rig->c);
    rig_stop();
}

/* The QP closes in the middle of waiting answers: the rest is reported, too. */
static void requests_before_close(void)
{
    rig_active_with(SG_MPE_DRAFT_02, false, 8);
    rig_post(&flush_msg);
    rig_settle();
    sg_conn_close(rig->c);
    rig_settle();
    rig_say_fpdu(RESP("4d", "01"));
    T_TRUE(strstr(rig_log(), "mpe_done(F)"));
    rig_stop();
}

static const struct t_case cases[] = {
    { "requests", requests },
    { "golden requests on the wire", golden },
    { "every form of request", every_form },
    { "what cannot be said", unspeakable },
    { "FLU-35 Reads and these share ORD and MSNs", share_ord },
    { "completions in the order of requests", order_of_completions },
    { "rings go round", many },
    { "responses that do not fit", bad_responses },
    { "one answer for each request", one_answer_each },
    { "draft -01, a hash without octets", draft_01_empty_hash },
    { "the peer's Terminate", terminated },
    { "abort in the upcall of one of several answers", abort_inside },
    { "an answer after our FIN", requests_before_close },
};

T_MAIN(cases)
