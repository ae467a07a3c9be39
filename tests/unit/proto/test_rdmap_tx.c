/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The transmit side and Reads: the messages that the engine sends, their order, and those that it
 * holds back (RFC 5040 sections 5 and 6, RFC 5041 section 5).
 */
#include <string.h>

#include "base/crc32c.h"
#include "tap.h"
#include "rig.h"

#define REP "4d504120 49442052 65702046 72616d65 "
#define REQ "4d504120 49442052 65712046 72616d65 "

/* Skips one FPDU that the engine sent and gives its ULPDU. */
static const uint8_t *take(size_t *n)
{
    const uint8_t *p = rig->in + rig->in_used;

    T_TRUE(rig->in_len - rig->in_used >= 8);
    *n = sg_get_be16(p);
    rig->in_used += (*n + 2 + 3) / 4 * 4 + 4;
    T_TRUE(rig->in_used <= rig->in_len);
    return p + 2;
}

static void active(void)
{
    rig_start(NULL);
    rig_active(REP "50020004 00080008");
    rig_log();
    rig->in_used = rig->in_len;
}

static struct sg_msg payload_message(enum sg_msg_kind kind, uint32_t length)
{
    struct sg_msg m = { .kind = kind, .cookie = 3 };

    if (kind == SG_MSG_SEND) {
        m.send.length = length;
    } else {
        m.write.length = length;
        m.write.stag = 0x11223344;
        m.write.to = 0xfffffffff0u;
    }
    return m;
}

/* The DDP header of a segment at 'off' of message 1 on queue 0. */
static void untagged_header(const uint8_t *u, size_t off)
{
    T_EQ_U64(sg_get_be32(u + 2), 0);
    T_SHOWS("DDP-12") {
        T_EQ_U64(sg_get_be32(u + 6), 0);
    }
    T_SHOWS("DDP-15") {
        T_EQ_U64(sg_get_be32(u + 10), 1);
    }
    T_SHOWS("DDP-16 DDP-21") {
        T_EQ_U64(sg_get_be32(u + 14), off);
    }
}

/* EMSS 1460, so a ULPDU has 1454 octets: 1440 or 1436 of payload. */
static void message_in_segments(void)
{
    static const struct {
        enum sg_msg_kind kind;
        uint32_t length;
        unsigned segments;
    } rows[] = {
        { SG_MSG_SEND, 0, 1 },     { SG_MSG_SEND, 1, 1 },       { SG_MSG_SEND, 1436, 1 },
        { SG_MSG_SEND, 1437, 2 },  { SG_MSG_SEND, 100000, 70 }, { SG_MSG_WRITE, 0, 1 },
        { SG_MSG_WRITE, 1440, 1 }, { SG_MSG_WRITE, 1441, 2 },   { SG_MSG_WRITE, 65536, 46 },
    };
    size_t i, n;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        const struct sg_msg m = payload_message(rows[i].kind, rows[i].length);
        size_t hdr = rows[i].kind == SG_MSG_SEND ? 18 : 14, off = 0, s;
        char words[32];

        T_CONTEXT("kind %d, %u octets", rows[i].kind, rows[i].length);
        active();
        rig_post(&m);
        rig_settle();
        for (s = 1; s <= rows[i].segments; s++) {
            const uint8_t *u = take(&n);

            T_SHOWS("DDP-18") {
                T_TRUE(n <= 1454);
            }
            T_SHOWS("DDP-02 DDP-03 DDP-04 DDP-07 RDM-13") {
                T_EQ_INT(u[0], (hdr == 14 ? 0x81 : 0x01) | (s == rows[i].segments ? 0x40 : 0));
            }
            T_SHOWS("DDP-08") {
                T_EQ_INT(u[1], rows[i].kind == SG_MSG_SEND ? 0x43 : 0x40);
            }
            if (hdr == 18) {
                untagged_header(u, off);
            } else {
                T_SHOWS("DDP-10 RDM-16") {
                    T_EQ_U64(sg_get_be32(u + 2), 0x11223344);
                }
                T_SHOWS("DDP-21") {
                    T_EQ_U64(sg_get_be64(u + 6), 0xfffffffff0u + off);
                }
            }
            T_SHOWS("DDP-17") {
                T_EQ_MEM(u + hdr, rig->mem + 3 + off, n - hdr);
            }
            off += n - hdr;
        }
        T_SHOWS("DDP-19") {
            T_EQ_U64(off, rows[i].length);
        }
        T_SHOWS(rows[i].length ? NULL : "DDP-22") {
            rig_expect_nothing();
        }
        snprintf(words, sizeof(words), "sent(%u)", rows[i].length);
        T_EQ_STR(rig_log(), words);
        rig_stop();
    }
}

static void send_opcodes(void)
{
    struct sg_msg m = { .kind = SG_MSG_SEND, .send = { .length = 2 } };

    active();
    memcpy(rig->mem, "hi", 2);
    rig_post(&m);
    m.send.solicited = m.send.invalidate = true;
    m.send.inv_stag = 0x11223344;
    rig_post(&m);
    m.send.solicited = false;
    rig_post(&m);
    m.send.solicited = true;
    m.send.invalidate = false; /* inv_stag is left as it was, and must not show */
    rig_post(&m);
    rig_settle();
    T_SHOWS("RDM-01 RDM-04 RDM-06") {
        rig_expect_fpdu("4143 00000000 00000000 00000001 00000000 6869");
    }
    T_EQ_MEM(rig->in + rig->in_used, "\x00\x14\x41\x46\x11\x22\x33\x44", 8);
    T_SHOWS("RDM-02 RDM-32") {
        rig_expect_fpdu("4146 11223344 00000000 00000002 00000000 6869");
    }
    T_SHOWS("RDM-35") {
        rig_expect_fpdu("4144 11223344 00000000 00000003 00000000 6869");
    }
    T_SHOWS("RDM-03 RDM-05") {
        rig_expect_fpdu("4145 00000000 00000000 00000004 00000000 6869");
    }
    rig_expect_nothing();
    T_EQ_STR(rig_log(), "sent(2) sent(2) sent(2) sent(2)");
    rig_stop();
}

static void order_and_sequence(void)
{
    struct sg_msg send = { .kind = SG_MSG_SEND }, write = {
        .kind = SG_MSG_WRITE,
        .write = { .stag = 7 },
    };
    struct sg_msg read = {
        .kind = SG_MSG_READ_REQ,
        .read = { .stag = 9, .sink_stag = RIG_STAG_RW },
    };

    active();
    rig_post(&write);
    rig_post(&send);
    rig_post(&read);
    rig_post(&write);
    rig_post(&send);
    rig_post(&read);
    rig_settle();
    rig_expect_fpdu("c140 00000007 00000000 00000000");
    rig_expect_fpdu("4143 00000000 00000000 00000001 00000000");
    rig_expect_fpdu("4141 00000000 00000001 00000001 00000000 00000100 00000000 00000000 00000000 "
                    "00000009 00000000 00000000");
    T_SHOWS("RDM-15") {
        rig_expect_fpdu("c140 00000007 00000000 00000000");
    }
    T_SHOWS("DDP-13 DDP-24 RDM-45") {
        rig_expect_fpdu("4143 00000000 00000000 00000002 00000000");
    }
    T_SHOWS("RDM-18 RDM-20 RDM-22") {
        rig_expect_fpdu("4141 00000000 00000001 00000002 00000000 00000100 00000000 00000000 "
                        "00000000 00000009 00000000 00000000");
    }
    rig_expect_nothing();
    rig_say_fpdu("c142 00000100 00000000 00000000");
    rig_say_fpdu("c142 00000100 00000000 00000000");
    T_SHOWS("RDM-47") {
        T_EQ_STR(rig_log(), "sent(0) sent(0) sent(0) sent(0) read_done(0) read_done(0)");
    }
    rig_stop();
}

static void ord_is_never_exceeded(void)
{
    struct sg_msg read = {
        .kind = SG_MSG_READ_REQ,
        .read = { .length = 4, .stag = 9, .sink_stag = RIG_STAG_RW },
    };
    unsigned i;
    size_t n;

    rig_start(NULL);
    rig_active(REP "50020004 00030008"); /* the responder takes three */
    T_EQ_STR(rig_log(), "reply(OK,8/3,rev2)");
    for (i = 0; i < 10; i++) {
        rig_post(&read);
    }
    rig_settle();
    rig->in_used = rig->in_len - 3 * 52;
    for (i = 0; i < 3; i++) {
        T_EQ_INT(take(&n)[1], 0x41);
    }
    T_SHOWS("RDM-53") {
        rig_expect_nothing();
    }
    for (i = 3; i < 10; i++) {
        rig_say_fpdu("c142 00000100 00000000 00000000 01020304");
        T_SHOWS("RDM-51") {
            T_EQ_STR(rig_log(), "read_done(4)");
        }
        T_SHOWS("RDM-50") {
            T_EQ_INT(take(&n)[13], i + 1);
        }
        rig_expect_nothing();
    }
    T_SHOWS("RDM-54") {
        T_EQ_U64(rig->max_outstanding, 3);
    }
    rig_stop();
}

static void ord_zero(void)
{
    struct sg_msg read = { .kind = SG_MSG_READ_REQ, .read = { .stag = 9 } };

    rig_start(NULL);
    rig_active(REP "50020004 00000008");
    rig->in_used = rig->in_len;
    rig_post(&read);
    rig_settle();
    T_SHOWS("RDM-54") {
        rig_expect_nothing();
    }
    rig_stop();
}

/* Verbs do not see the RTR Read. */
static void rtr_read_is_internal(void)
{
    struct sg_msg read = {
        .kind = SG_MSG_READ_REQ,
        .read = { .length = 2, .stag = 9, .sink_stag = RIG_STAG_RW },
    };

    rig_start(NULL);
    rig_active(REP "50020004 80014008");
    rig->in_used = rig->in_len;
    rig_log();
    rig_post(&read);
    rig_settle();
    rig_expect_nothing(); /* IRD 1 is taken */
    rig_say_fpdu("c142 00000001 00000000 00000000");
    T_EQ_STR(rig_log(), "");
    rig_expect_fpdu("4141 00000000 00000001 00000002 00000000 00000100 00000000 00000000 00000002 "
                    "00000009 00000000 00000000");
    rig_say_fpdu("c142 00000100 00000000 00000000 aabb");
    T_EQ_STR(rig_log(), "read_done(2)");
    rig_stop();
}

/* By policy the RTR message can be a Send; it counts as one, at both ends. */
static void rtr_send(void)
{
    struct sg_engine_config cfg = rig_config();

    cfg.rtr_mask = SG_RTR_SEND;
    rig_start(&cfg);
    rig_active(REP "50020004 c0080008");
    T_EQ_MEM(rig->in + 20, "\xc0\x08\x00\x08", 4); /* A and B */
    rig->in_used = 24;
    rig_expect_fpdu("4143 00000000 00000000 00000001 00000000");
    T_EQ_STR(rig_log(), "reply(OK,8/8,rev2)");
    rig_send(0, 0);
    rig_settle();
    rig_expect_fpdu("4143 00000000 00000000 00000002 00000000");
    rig_expect_nothing();
    rig_stop();
}

/* A policy of unknown kinds is an empty one, so a Write is offered. */
static void rtr_unknown(void)
{
    struct sg_engine_config cfg = rig_config();

    cfg.rtr_mask = 0x80;
    rig_start(&cfg);
    rig_active(REP "50020004 80088008");
    T_EQ_MEM(rig->in + 20, "\x80\x08\x80\x08", 4); /* A and C */
    rig_stop();
}

/* The sink of our own Read went away meanwhile. */
static void read_sink_gone(void)
{
    struct sg_msg read = {
        .kind = SG_MSG_READ_REQ,
        .read = { .length = 1, .stag = 9, .sink_stag = 0x777 },
    };

    active();
    rig_post(&read);
    rig_settle();
    rig_say_fpdu("c142 00000777 00000000 00000000 aa");
    T_SHOWS("RDM-62") {
        T_EQ_STR(rig_log(), "terminated(sent,1/1/00) disconnected(TERMINATED)");
    }
    rig_stop();
}

static void receive_is_broken(void)
{
    rig_start(NULL);
    rig->recvs = 1;
    rig_passive();
    rig->in_used = rig->in_len;
    rig->recv_fails = true;
    rig_say_fpdu("4143 00000000 00000000 00000001 00000000 61");
    T_SHOWS("DDP-48") {
        rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 1000c000 0013 "
                        "4143 00000000 00000000 00000001 00000000");
    }
    T_EQ_STR(rig_log(), "terminated(sent,1/0/00) disconnected(TERMINATED)");
    T_EQ_U64(sg_engine_stats(rig->e)->protocol_errors, 0);
    rig_stop();
}

static void response_in_segments(void)
{
    struct sg_msg read = {
        .kind = SG_MSG_READ_REQ,
        .read = { .length = 5, .stag = 9, .sink_stag = RIG_STAG_RW, .sink_to = 16 },
    };

    active();
    rig_post(&read);
    rig_settle();
    rig_say_fpdu("8142 00000100 00000000 00000010 0102");
    rig_say_fpdu("8142 00000999 00000000 00000000"); /* no octets: nothing is checked */
    T_EQ_STR(rig_log(), "");
    rig_say_fpdu("c142 00000100 00000000 00000012 030405");
    T_SHOWS("RDM-27 RDM-29 RDM-43") {
        T_EQ_STR(rig_log(), "read_done(5)");
    }
    T_SHOWS("RDM-31") {
        T_EQ_MEM(rig->mem + 16, "\1\2\3\4\5", 5);
    }
    rig_stop();
}

static void response_must_match(void)
{
    static const struct {
        const char *what, *ulpdu, *word;
    } rows[] = {
        { "other STag", "c142 00000200 00000000 00000010 0102030405", "1/1/00" },
        { "other TO", "c142 00000100 00000000 00000011 0102030405", "1/1/01" },
        { "too long", "c142 00000100 00000000 00000010 010203040506", "1/1/01" },
        { "too short", "c142 00000100 00000000 00000010 01020304", "0/2/06" },
        { "nothing at all", "c142 00000100 00000000 00000010", "0/2/06" },
    };
    struct sg_msg read = {
        .kind = SG_MSG_READ_REQ,
        .read = { .length = 5, .stag = 9, .sink_stag = RIG_STAG_RW, .sink_to = 16 },
    };
    char words[80];
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        uint8_t before[5];

        T_CONTEXT("%s", rows[i].what);
        active();
        memcpy(before, rig->mem + 16, 5);
        rig_post(&read);
        rig_settle();
        rig_say_fpdu(rows[i].ulpdu);
        snprintf(words, sizeof(words), "terminated(sent,%s) disconnected(TERMINATED)",
                 rows[i].word);
        T_SHOWS("RDM-51") {
            T_EQ_STR(rig_log(), words);
        }
        T_EQ_MEM(rig->mem + 16, before, 5);
        rig_stop();
    }
}

#define READ_FPDU(msn, sink, size, src)                                                        \
    "4141 00000000 00000001 000000" msn " 00000000 a0000001 00000000 000000" sink " 0000" size \
    " 00000100 00000000 000000" src

/* The limit applies even to Requests that arrive in one piece. */
static void ird_is_enforced(void)
{
    uint8_t many[1024];
    size_t n = 0, i;

    rig_start(NULL);
    rig_request(REQ "50020004 80080008");
    rig_accept(2, 2, NULL);
    rig_say("000ec140 00000001 00000000 00000000 ebd34c5f");
    rig_log();
    rig->in_used = rig->in_len;
    for (i = 1; i <= 3; i++) {
        uint8_t *f = many + n;

        memset(f, 0, 52);
        sg_put_be16(f, 46);
        f[2] = 0x41;
        f[3] = 0x41;
        f[11] = 1;
        f[15] = (uint8_t)i;
        sg_put_be32(f + 20, 0xa0000001);
        sg_put_be32(f + 32, 4);
        sg_put_be32(f + 36, RIG_STAG_RW);
        sg_put_le32(f + 48, sg_crc32c(0, f, 48));
        n += 52;
    }
    rig_say_octets(many, n);
    T_SHOWS("RDM-55") {
        rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 1202c000 002e "
                        "4141 00000000 00000001 00000003 00000000");
    }
    T_EQ_STR(rig_log(), "terminated(sent,1/2/02) disconnected(TERMINATED)");
    rig_stop();
    rig_start(NULL); /* two are fine */
    rig_request(REQ "50020004 80080008");
    rig_accept(2, 2, NULL);
    rig_say("000ec140 00000001 00000000 00000000 ebd34c5f");
    rig->in_used = rig->in_len;
    rig_say_octets(many, 104);
    T_SHOWS("RDM-28") {
        rig_expect_fpdu("c142 a0000001 00000000 00000000 00070e15");
        rig_expect_fpdu("c142 a0000001 00000000 00000000 00070e15");
    }
    rig_expect_nothing();
    rig_stop();
}

static void responses_in_order(void)
{
    size_t n;
    unsigned i;

    rig_start(NULL);
    rig_passive();
    rig_say_fpdu(READ_FPDU("01", "10", "0b40", "00"));
    rig_say_fpdu(READ_FPDU("02", "20", "0001", "05"));
    for (i = 0; i < 2; i++) {
        const uint8_t *u = take(&n);

        T_EQ_U64(n, 1454);
        T_EQ_INT(u[0], i ? 0xc1 : 0x81);
        T_EQ_U64(sg_get_be64(u + 6), 0x10 + i * 1440);
        T_EQ_MEM(u + 14, rig->mem + i * 1440, 1440);
    }
    T_SHOWS("RDM-21 RDM-30") {
        rig_expect_fpdu("c142 a0000001 00000000 00000020 23");
    }
    rig_expect_nothing();
    rig_stop();
}

/* A long message and a long Response alternate segment by segment. */
static void fair(void)
{
    unsigned changes = 0, i;
    size_t n;
    int last = -1;

    rig_start(NULL);
    rig_passive();
    rig->gather_fails = false;
    rig_post(&(struct sg_msg){ .kind = SG_MSG_WRITE, .write = { .length = 14400, .stag = 7 } });
    rig_say_fpdu(READ_FPDU("01", "00", "3840", "00"));
    rig_settle();
    for (i = 0; i < 20; i++) {
        int op = take(&n)[1];

        changes += last >= 0 && op != last;
        last = op;
    }
    rig_expect_nothing();
    T_TRUE(changes >= 15);
    rig_stop();
}

/* The source is revoked while it is being sent: the rest of the Request is quoted. */
static void source_fails_midway(void)
{
    size_t n;

    rig_start(NULL);
    rig_passive();
    /* The broken region's second half (from 0x20000) fails at gathering. */
    rig_say_fpdu("4141 00000000 00000001 00000001 00000000 a0000001 00000000 00000010 00001000 "
                 "00000500 00000000 0001fa60");
    T_EQ_U64(sg_get_be64(take(&n) + 6), 0x10);
    T_EQ_U64(n, 1454);
    T_SHOWS("RDM-63") {
        rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 0102e000 002e "
                        "4141 00000000 00000001 00000001 00000000 "
                        "a0000001 00000000 000005b0 00000a60 00000500 00000000 00020000");
    }
    T_EQ_STR(rig_log(), "terminated(sent,0/1/02) disconnected(TERMINATED)");
    rig_stop();
}

/* Our own source fails: there is no header of the peer's to quote. */
static void local_gather_fails(void)
{
    active();
    rig->gather_fails = true;
    rig_send(0, 10);
    rig_settle();
    T_SHOWS("RDM-61") {
        rig_expect_fpdu("4147 00000000 00000002 00000001 00000000 00000000");
    }
    rig_expect_nothing();
    T_EQ_STR(rig_log(), "terminated(sent,0/0/00) disconnected(TERMINATED)");
    rig_stop();
}

/* A stream that accepts little at a time: all arrives, in order, nothing twice. */
static void blocked_stream(void)
{
    struct sg_mem_options net = {
        .queued = true,
        .emss = 536,
        .room = 1200,
        .piece_max = 300,
        .delay_min_ns = 1000,
        .delay_max_ns = 5000,
        .seed = 1,
    };
    size_t n, off = 0;
    unsigned turn;

    rig_start_net(NULL, &net);
    rig->c = sg_engine_connect(rig->e, &(struct sg_endpoint){ .family = 4 }, &rig->at_peer,
                               &(struct sg_conn_params){ .ird = 1, .ord = 1 }, rig,
                               &(enum sg_conn_end){ 0 });
    for (turn = 0; turn < 100; turn++) {
        rig_pass(1);
    }
    rig_say(REP "50020004 00080008");
    rig_pass(1);
    for (turn = 0; turn < 100; turn++) {
        rig_pass(1);
    }
    rig->in_used = rig->in_len;
    rig_send(0, 100000);
    rig_send(0, 0);
    for (turn = 0; turn < 2000; turn++) {
        rig_pass(1);
    }
    while (off < 100000) {
        const uint8_t *u = take(&n);

        T_EQ_U64(sg_get_be32(u + 14), off);
        T_EQ_MEM(u + 18, rig->mem + off, n - 18);
        off += n - 18;
    }
    rig_expect_fpdu("4143 00000000 00000000 00000002 00000000");
    rig_expect_nothing();
    T_TRUE(strstr(rig_log(), "sent(100000) sent(0)") != NULL);
    rig_stop();
}

static const struct t_case cases[] = {
    { "DDP-25 MPA-06 messages in segments", message_in_segments },
    { "opcodes of Send", send_opcodes },
    { "order and sequence numbers", order_and_sequence },
    { "ORD is never exceeded", ord_is_never_exceeded },
    { "ORD 0", ord_zero },
    { "the RTR Read takes a place and is not told", rtr_read_is_internal },
    { "the RTR Send has MSN 1", rtr_send },
    { "RTR message of an unknown kind", rtr_unknown },
    { "the sink of a Read is gone", read_sink_gone },
    { "a Receive whose memory fails", receive_is_broken },
    { "a Response in segments", response_in_segments },
    { "a Response must match its Request", response_must_match },
    { "SEC-11 IRD is enforced: 1/2/02", ird_is_enforced },
    { "Responses in order of Requests", responses_in_order },
    { "RDM-17 Responses and messages take turns", fair },
    { "RDM-71 a Response that fails midway", source_fails_midway },
    { "a message that cannot be made", local_gather_fails },
    { "a stream with little room", blocked_stream },
};

T_MAIN(cases)
