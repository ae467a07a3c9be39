/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RFC 7306, Atomics, the engine as requester: the requests that it sends, how answers find their
 * requests, and its reaction to answers that do not fit.
 */
#include <string.h>

#include "tap.h"
#include "request_msgs.h"

static const struct sg_msg add_msg = {
    .kind = SG_MSG_FETCH_ADD,
    .atomic = { .stag = 0xb0000002, .to = 0x2000, .args = { .data = 5 } },
};
static const struct sg_msg swap_msg = {
    .kind = SG_MSG_CMP_SWAP,
    .atomic = { .stag = 0xb0000002,
                .to = 0x2000,
                .args = { .data = 9, .mask = UINT64_MAX, .cmp = 5, .cmp_mask = UINT64_MAX } },
};

#define ADD(msn)                                                         \
    REQ("4a", msn)                                                       \
    "00000000 000000" msn " b0000002 0000000000002000 0000000000000005 " \
    "0000000000000000 0000000000000000 ffffffffffffffff"
#define SWAP(msn)                                                        \
    REQ("4a", msn)                                                       \
    "00000002 000000" msn " b0000002 0000000000002000 0000000000000009 " \
    "ffffffffffffffff 0000000000000005 ffffffffffffffff"

static void requests(void)
{
    rig_active_with(SG_MPE_DRAFT_OFF, true, 8);
    rig_post_now(&add_msg);
    T_SHOWS("EXT-01 EXT-09 EXT-12") {
        rig_expect_fpdu(ADD("01"));
    }
    rig_post_now(&swap_msg);
    rig_expect_fpdu(SWAP("02"));
    rig_expect_nothing();
    T_SHOWS("EXT-25") {
        T_EQ_STR(rig_log(), ""); /* sent, but not complete */
    }
    rig_say_fpdu(RESP("4b", "01") "00000001 000000000000002a");
    T_SHOWS("EXT-20") {
        T_EQ_STR(rig_log(), "atomic_done(+,2a)");
    }
    rig_say_fpdu(RESP("4b", "02") "00000002 fedcba9876543210");
    T_EQ_STR(rig_log(), "atomic_done(=,fedcba9876543210)");
    rig_expect_nothing();
    T_EQ_U64(sg_engine_stats(rig->e)->tx_atomics, 2);
    T_EQ_U64(sg_engine_stats(rig->e)->rx_atomics, 0);
    T_EQ_U64(sg_engine_stats(rig->e)->tx_reads, 0);
    rig_stop();
}

/* All fields of all operations, with distinct values. */
static void every_form(void)
{
    struct sg_msg m = {
        .atomic = { .stag = 0x11121314,
                    .to = 0x2122232425262728,
                    .args = { 0x3132333435363738, 0x4142434445464748, 0x5152535455565758,
                              0x6162636465666768 } },
    };

    rig_active_with(SG_MPE_DRAFT_02, true, 8);
    m.kind = SG_MSG_CMP_SWAP;
    rig_post_now(&m);
    T_SHOWS("EXT-10") {
        rig_expect_fpdu(
            REQ("4a", "01") "00000002 00000001 11121314 2122232425262728 "
                            "3132333435363738 4142434445464748 5152535455565758 6162636465666768");
    }
    m.kind = SG_MSG_FETCH_ADD; /* nothing is compared */
    rig_post_now(&m);
    rig_expect_fpdu(
        REQ("4a", "02") "00000000 00000002 11121314 2122232425262728 "
                        "3132333435363738 4142434445464748 0000000000000000 ffffffffffffffff");
    rig_post_now(&m);
    rig_expect_fpdu(
        REQ("4a", "03") "00000000 00000003 11121314 2122232425262728 "
                        "3132333435363738 4142434445464748 0000000000000000 ffffffffffffffff");
    rig_stop();
}

/* A connection without RFC 7306 cannot send it. */
static void unspeakable(void)
{
    const struct sg_msg *rows[] = { &add_msg, &swap_msg };
    size_t i;

    for (i = 0; i < 2 * SG_ARRAY_SIZE(rows); i++) {
        rig_active_with(i < 2 ? SG_MPE_DRAFT_OFF : SG_MPE_DRAFT_02, false, 8);
        rig_post_now(rows[i % 2]);
        T_SHOWS("EXT-30") {
            rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 00000000");
        }
        rig_expect_nothing();
        T_EQ_STR(rig_log(), "terminated(sent,0/0/00) disconnected(TERMINATED)");
        rig_stop();
    }
}

/* One space of MSNs and one limit, for Reads, Atomics and the requests of the draft. */
static void share_ord(void)
{
    rig_active_with(SG_MPE_DRAFT_02, true, 2);
    rig_post(&add_msg);
    rig_post(&read_msg);
    rig_post(&flush_msg);
    rig_post(&swap_msg);
    rig_post(&add_msg);
    rig_settle();
    rig_expect_fpdu(ADD("01"));
    rig_expect_fpdu(READ("02"));
    rig_expect_nothing();
    rig_say_fpdu(RESP("4b", "01") "00000001 0000000000000001");
    rig_expect_fpdu(FLUSH("03"));
    rig_expect_nothing();
    rig_say_fpdu(READ_RESP);
    rig_expect_fpdu(SWAP("04"));
    rig_expect_nothing();
    rig_say_fpdu(RESP("4d", "02"));
    rig_expect_fpdu(ADD("05"));
    rig_say_fpdu(RESP("4b", "03") "00000004 0000000000000002");
    rig_say_fpdu(RESP("4b", "04") "00000005 0000000000000003");
    T_SHOWS("EXT-19") {
        T_EQ_STR(rig_log(), "atomic_done(+,1) read_done(4) mpe_done(F) atomic_done(=,2) "
                            "atomic_done(+,3)");
    }
    T_EQ_U64(rig->max_outstanding, 2);
    rig_stop();
}

/* ORD 0: none may be sent. */
static void no_credit(void)
{
    rig_active_with(SG_MPE_DRAFT_OFF, true, 0);
    rig_post_now(&add_msg);
    rig_expect_nothing();
    T_EQ_STR(rig_log(), "");
    rig_stop();
}

/* Answers that overtake others are kept: verbs get them in the order of requests. */
static void order_of_completions(void)
{
    rig_active_with(SG_MPE_DRAFT_02, true, 8);
    rig_post(&add_msg);
    rig_post(&read_msg);
    rig_post(&swap_msg);
    rig_settle();
    rig_say_fpdu(READ_RESP);
    T_EQ_STR(rig_log(), "");
    rig_say_fpdu(RESP("4b", "01") "00000001 0000000000000007");
    T_EQ_STR(rig_log(), "atomic_done(+,7) read_done(4)");
    T_EQ_U64(rig->answers[1], 2); /* ordinals of the messages as they arrived */
    T_EQ_U64(rig->answers[0], 1);
    rig_say_fpdu(RESP("4b", "02") "00000003 0000000000000008");
    T_EQ_STR(rig_log(), "atomic_done(=,8)");

    rig->in_used = rig->in_len;
    rig_post(&read_msg);
    rig_post(&add_msg);
    rig_settle();
    rig_say_fpdu(RESP("4b", "03") "00000005 0000000000000009");
    T_EQ_STR(rig_log(), "");
    rig_say_fpdu(READ_RESP);
    T_EQ_STR(rig_log(), "read_done(4) atomic_done(+,9)");
    rig_stop();
}

/* The ring of requests wraps, and so do identifiers. */
static void many(void)
{
    unsigned i;

    rig_active_with(SG_MPE_DRAFT_OFF, true, 3);
    for (i = 0; i < 200; i++) {
        char text[96], want[64];

        rig_post_now(i & 1 ? &add_msg : &swap_msg);
        snprintf(text, sizeof(text), "414b 00000000 00000003 %08x 00000000 %08x %016x", i + 1,
                 i + 1, i * 3);
        rig_say_fpdu(text);
        snprintf(want, sizeof(want), "atomic_done(%c,%x)", i & 1 ? '+' : '=', i * 3);
        T_EQ_STR(rig_log(), want);
    }
    T_EQ_U64(sg_engine_stats(rig->e)->tx_atomics, 200);
    rig_stop();
}

/* Responses that do not match a request: verbs do not get them, the stream ends. */
static void strange_answers(void)
{
    static const struct {
        const char *what;
        const struct sg_msg *asked;
        const char *header, *body, *term; /* term: layer/type/code and segment length */
    } rows[] = {
#define OK_HDR "414b 00000000 00000003 00000001 00000000"
        { "nothing asked", NULL, OK_HDR, "00000001 0000000000000000", "1202c000 001e" },
        { "a Read was asked", &read_msg, OK_HDR, "00000001 0000000000000000", "1202c000 001e" },
        { "a Flush was asked", &flush_msg, OK_HDR, "00000001 0000000000000000", "0206c000 001e" },
        { "Flush Response to an Atomic", &add_msg, "414d 00000000 00000003 00000001 00000000", "",
          "0206c000 0012" },
        { "identifier 0", &add_msg, OK_HDR, "00000000 0000000000000000", "0206c000 001e" },
        { "identifier 2", &swap_msg, OK_HDR, "00000002 0000000000000000", "0206c000 001e" },
        { "identifier of 32 bits", &swap_msg, OK_HDR, "80000001 0000000000000000",
          "0206c000 001e" },
        { "empty", &add_msg, OK_HDR, "", "02ffc000 0012" },
        { "an octet missing", &add_msg, OK_HDR, "00000001 00000000000000", "02ffc000 001d" },
        { "an octet too many", &add_msg, OK_HDR, "00000001 0000000000000000 00", "02ffc000 001f" },
        { "not the last segment", &add_msg, "014b 00000000 00000003 00000001 00000000",
          "00000001 0000000000000000", "02ffc000 001e" },
        { "MSN 0", &add_msg, "414b 00000000 00000003 00000000 00000000",
          "00000001 0000000000000000", "1203c000 001e" },
        { "MSN 2", &add_msg, "414b 00000000 00000003 00000002 00000000",
          "00000001 0000000000000000", "1203c000 001e" },
        { "MO 1", &add_msg, "414b 00000000 00000003 00000001 00000001", "00000001 0000000000000000",
          "1204c000 001e" },
        { "queue 1", &add_msg, "414b 00000000 00000001 00000001 00000000",
          "00000001 0000000000000000", "0206c000 001e" },
        { "queue 0", &add_msg, "414b 00000000 00000000 00000001 00000000",
          "00000001 0000000000000000", "0206c000 001e" },
        { "queue 4", &add_msg, "414b 00000000 00000004 00000001 00000000",
          "00000001 0000000000000000", "1201c000 001e" },
        { "RDMAP version 0", &add_msg, "410b 00000000 00000003 00000001 00000000",
          "00000001 0000000000000000", "0205c000 001e" },
        { "DDP version 2", &add_msg, "424b 00000000 00000003 00000001 00000000",
          "00000001 0000000000000000", "1206c000 001e" },
#undef OK_HDR
    };
    char text[256];
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].what);
        rig_active_with(SG_MPE_DRAFT_02, true, 8);
        if (rows[i].asked) {
            rig_post_now(rows[i].asked);
        }
        rig->in_used = rig->in_len;
        snprintf(text, sizeof(text), "%s %s", rows[i].header, rows[i].body);
        rig_say_fpdu(text);
        snprintf(text, sizeof(text), "4147 00000000 00000002 00000001 00000000 %s %s", rows[i].term,
                 rows[i].header);
        rig_expect_fpdu(text);
        rig_expect_nothing();
        T_NULL(strstr(rig_log(), "done("));
        rig_stop();
    }
}

/* The reserved word of RsvdULP is not checked. */
static void reserved_bits(void)
{
    rig_active_with(SG_MPE_DRAFT_OFF, true, 8);
    rig_post_now(&add_msg);
    rig_say_fpdu("416b 99999999 00000003 00000001 00000000 00000001 000000000000000b");
    T_SHOWS("EXT-01") {
        T_EQ_STR(rig_log(), "atomic_done(+,b)");
    }
    rig_stop();
}

static const struct t_case cases[] = {
    { "requests and answers", requests },
    { "all fields of a request", every_form },
    { "a connection without RFC 7306", unspeakable },
    { "ORD and MSNs are shared", share_ord },
    { "no credit", no_credit },
    { "completions in the order of requests", order_of_completions },
    { "many", many },
    { "answers that do not fit", strange_answers },
    { "reserved bits of an answer", reserved_bits },
};

T_MAIN(cases)
