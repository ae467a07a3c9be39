/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The MPA startup exchange, initiator: its Requests, every Reply that it may see, and the required
 * reaction (RFC 5044 section 7.1, RFC 6581); and rules for both sides.
 */
#include <string.h>

#include "tap.h"
#include "rig.h"
#include "base/crc32c.h"

#define REQ "4d504120 49442052 65712046 72616d65 "
#define REP "4d504120 49442052 65702046 72616d65 "
#define RTR_WRITE "000ec140 00000001 00000000 00000000 ebd34c5f"
#define RTR_READ                                                               \
    "002e4141 00000000 00000001 00000001 00000000 00000001 00000000 00000000 " \
    "00000000 00000001 00000000 00000000 27dbd7e7"

/* Initiator: our parameters, a Reply, and what must follow. */
struct reply_row {
    const char *what;
    const char *reply;
    const char *heard;
    const char *sent;  /* octets behind our Request */
    bool fin;          /* we close */
    bool reset;        /* we reset */
    const char *shows; /* rows of the checklist */
};

/* Connect with IRD 4, ORD 8; our limit is 8 for both. */
static const struct reply_row replies[] = {
    { "accepted, Write chosen", REP "50020004 8008c004", "reply(OK,4/8,rev2)", RTR_WRITE,
      .shows = "MP2-19" },
    { "only Read there", REP "50020004 80084004", "reply(OK,4/8,rev2)", RTR_READ,
      .shows = "MP2-19" },
    { "A = 0 in the Reply: no RTR", REP "50020004 00080004", "reply(OK,4/8,rev2)", "" },
    { "private data", REP "50020007 80088004 616263", "reply(OK,4/8,rev2,abc)", RTR_WRITE },
    { "reserved bits", REP "5f020004 80088004", "reply(OK,4/8,rev2)", RTR_WRITE,
      .shows = "MPA-53" },
    { "ORD cut to the responder's IRD", REP "50020004 80028004", "reply(OK,4/2,rev2)", RTR_WRITE,
      .shows = "MP2-08" },
    { "IRD raised to the responder's ORD", REP "50020004 80088007", "reply(OK,7/8,rev2)", RTR_WRITE,
      .shows = "MP2-08" },
    { "IRD open: our ORD kept", REP "50020004 bfff8002", "reply(OK,4/8,rev2)", RTR_WRITE,
      .shows = "MP2-13" },
    { "ORD open: our IRD kept", REP "50020004 8008bfff", "reply(OK,4/8,rev2)", RTR_WRITE,
      .shows = "MP2-14" },
    { "ORD beyond our limit: Terminate 2/0/06", REP "50020004 80088009", "reply(PROTOCOL,8/9,rev2)",
      "00164147 00000000 00000002 00000001 00000000 20060000 6540fb1b", true, .shows = "MP2-09" },
    { "no common RTR: Terminate 2/0/07", REP "50020004 c0080004", "reply(PROTOCOL,8/4,rev2)",
      "*0016 4147 00000000 00000002 00000001 00000000 20070000", true, .shows = "MP2-20" },
    { "Read RTR without IRD for it", REP "50020004 80004004", "reply(PROTOCOL,0/4,rev2)",
      "*0016 4147 00000000 00000002 00000001 00000000 20070000", true },
    { "rejected", REP "70020007 80058006 6e6f21", "reply(REJECTED,5/6,rev2,no!)", "", true,
      .shows = "MPA-63" },
    { "rejected with revision 1", REP "60010002 6e6f", "reply(REJECTED,0/0,rev1,no)", "", true },
    { "Request key: initiator meets initiator", REQ "50020004 80088004", "reply(PROTOCOL,0/0,rev0)",
      "", false, true, .shows = "MPA-48 MPA-65" },
    { "wrong key", "4d504120 49442052 65702046 72616d00 50020004 80088004",
      "reply(PROTOCOL,0/0,rev0)", "", false, true, .shows = "MPA-48 MPA-62" },
    { "revision 1 to our revision 2", REP "40010000", "reply(PROTOCOL,0/0,rev0)", "", false, true },
    { "unenhanced", REP "40020000", "reply(PROTOCOL,0/0,rev0)", "", false, true },
    { "revision 3", REP "50030004 80088004", "reply(PROTOCOL,0/0,rev0)", "", false, true,
      .shows = "MPA-54" },
    { "revision 0", REP "40000000", "reply(PROTOCOL,0/0,rev0)", "", false, true },
    { "too long", REP "50020201", "reply(PROTOCOL,0/0,rev0)", "", false, true,
      .shows = "MPA-55 MPA-62 MPA-71" },
    { "too short for S", REP "50020002 8008", "reply(PROTOCOL,0/0,rev0)", "", false, true },
};

static void start_active(uint16_t ird, uint16_t ord)
{
    const struct sg_conn_params p = { .ird = ird, .ord = ord };
    const struct sg_endpoint any = { .family = 4 };
    enum sg_conn_end why;

    rig->c = sg_engine_connect(rig->e, &any, &rig->at_peer, &p, rig, &why);
    T_NOT_NULL(rig->c);
    T_EQ_STR(rig_log(), "");
    rig_settle();
}

/* The administrator's pause: nothing is sent before its end, then the RTR message. */
static void first_fpdu_waits(void)
{
    struct sg_engine_config config = rig_config();

    config.first_fpdu_delay_ms = 50;
    rig_start(&config);
    start_active(4, 8);
    rig_expect(REQ "50020004 8004c008");
    rig_say(REP "50020004 8008c004");
    T_EQ_STR(rig_log(), "reply(OK,4/8,rev2)");
    rig_send(0, 4);
    rig_settle();
    rig_pass(49);
    rig_expect_nothing();
    rig_pass(1);
    T_SHOWS("MP2-05") {
        rig_expect(RTR_WRITE "00164143 00000000 00000000 00000001 00000000 00070e15 170066ed");
    }
    rig_stop();
    rig_start(&config); /* closed within the pause: the FIN does not wait for it */
    start_active(4, 8);
    rig_expect(REQ "50020004 8004c008");
    rig_say(REP "50020004 8008c004");
    sg_conn_close(rig->c);
    rig_settle();
    rig_expect(RTR_WRITE);
    rig_stop();
}

static void run_reply(const struct reply_row *r)
{
    T_CONTEXT("%s", r->what);
    rig_start(NULL);
    start_active(4, 8);
    T_SHOWS("MPA-25 MPA-45 MPA-56 MPA-61 MP2-15") {
        rig_expect(REQ "50020004 8004c008");
    }
    rig_say(r->reply);
    T_SHOWS(r->shows) {
        T_EQ_STR(rig_log(), r->heard);
        if (r->sent[0] == '*') {
            rig_expect_fpdu(r->sent + 5);
        } else {
            rig_expect(r->sent);
        }
        rig_expect_nothing();
        T_EQ_INT(rig->peer_fin, r->fin);
        T_EQ_INT(rig->peer_over, r->reset);
    }
    if (r->fin) {
        rig_peer_close();
        T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_CLOSED);
        T_EQ_STR(rig_log(), "");
    }
    rig_stop();
}

static void every_reply(void)
{
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(replies); i++) {
        run_reply(&replies[i]);
    }
}

static void request_frames(void)
{
    struct sg_engine_config cfg = rig_config();

    cfg.mpa_rev = 1;
    rig_start(&cfg);
    start_active(4, 8);
    T_SHOWS("MP2-01 MP2-23") {
        rig_expect(REQ "40010000");
    }
    rig_say(REP "40010000");
    T_SHOWS("MPA-06") {
        T_EQ_STR(rig_log(), "reply(OK,4/8,rev1)");
    }
    rig_expect_nothing();
    rig_stop();
    cfg = rig_config();
    cfg.crc = false;
    cfg.markers = true;
    cfg.peer_to_peer = false;
    rig_start(&cfg);
    start_active(100, 0);
    T_SHOWS("MP2-21") {
        rig_expect(REQ "90020004 00080000");
    }
    rig_stop();
}

static void too_much_private_data(void)
{
    static uint8_t pd[513];
    struct sg_conn_params p = { .ird = 1, .ord = 1, .pdata = pd, .pdata_len = 509 };
    const struct sg_endpoint any = { .family = 4 };
    enum sg_conn_end why = SG_CONN_OK;

    rig_start(NULL);
    T_NULL(sg_engine_connect(rig->e, &any, &rig->at_peer, &p, rig, &why));
    T_SHOWS("MPA-55") {
        T_EQ_INT(why, SG_CONN_PROTOCOL);
    }
    p.mpa_rev = 1;
    p.pdata_len = 513;
    T_NULL(sg_engine_connect(rig->e, &any, &rig->at_peer, &p, rig, &why));
    p.pdata_len = 512;
    rig->c = sg_engine_connect(rig->e, &any, &rig->at_peer, &p, rig, &why);
    T_NOT_NULL(rig->c);
    rig_settle();
    T_EQ_U64(rig->in_len, 532);
    rig_stop();
}

static void initiator_ends(void)
{
    const struct sg_conn_params p = { .ird = 1 };
    const struct sg_endpoint any = { .family = 4 };
    struct sg_endpoint nobody;
    enum sg_conn_end why;

    rig_start(NULL);
    nobody = rig->at_peer;
    nobody.port++;
    rig->c = sg_engine_connect(rig->e, &any, &nobody, &p, rig, &why);
    rig_settle();
    T_EQ_STR(rig_log(), "reply(REFUSED,0/0,rev0)");
    start_active(1, 1);
    rig_peer_abort();
    T_EQ_STR(rig_log(), "reply(RESET,0/0,rev0)");
    start_active(1, 1);
    rig_peer_close(); /* as a revision 1 responder does */
    T_EQ_STR(rig_log(), "reply(RESET,0/0,rev0)");
    start_active(1, 1);
    rig_pass(59999); /* the peer's program may be busy with many others */
    T_EQ_STR(rig_log(), "");
    rig_pass(1);
    T_EQ_STR(rig_log(), "reply(TIMEOUT,0/0,rev0)");
    start_active(1, 1);
    sg_conn_close(rig->c);
    T_EQ_STR(rig_log(), "");
    rig_settle();
    T_EQ_STR(rig_log(), "reply(CLOSED,0/0,rev0)");
    rig_stop();
}

/* siw as responder does not wait for our first FPDU, nor for a segment of its own. */
static void fpdu_behind_reply(void)
{
    rig_start(NULL);
    rig->recvs = 1;
    start_active(4, 8);
    rig_say(REP "50020004 00080004 "
                "00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 b990b10c");
    T_SHOWS("MPA-43 MPA-44") {
        T_EQ_STR(rig_log(), "reply(OK,4/8,rev2) recv(1,5)");
    }
    rig_stop();
}

static const char two_sends[] =
    "00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 b990b10c "
    "00124143 00000000 00000000 00000002 00000000";

static size_t octets_of(const char *hex, uint8_t *out)
{
    char pair[3] = "";
    size_t n = 0;

    for (; *hex; hex += 2) {
        hex += *hex == ' ';
        memcpy(pair, hex, 2);
        out[n++] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return n;
}

/*
 * Startup frame and FPDUs are one TCP stream, which TCP may cut anywhere: into two pieces at any
 * octet, or into single octets, it yields each message whole and once.
 */
static void handover_at_any_cut(void)
{
    uint8_t all[128];
    size_t n, cut, reply, i;

    reply = octets_of(REP "50020004 00080004", all);
    n = reply + octets_of(two_sends, all + reply);
    sg_put_le32(all + n, sg_crc32c(0, all + n - 20, 20));
    n += 4;
    for (cut = 0; cut <= n; cut++) {
        T_CONTEXT("%zu of %zu octets first", cut, n);
        rig_start(NULL);
        rig->recvs = 2;
        start_active(4, 8);
        rig_expect(REQ "50020004 8004c008");
        if (cut == n) { /* nothing left for a second piece: single octets instead */
            for (i = 0; i < n; i++) {
                rig_say_octets(all + i, 1);
            }
        } else {
            rig_say_octets(all, cut);
            rig_say_octets(all + cut, n - cut);
        }
        T_SHOWS("MPA-39 MPA-43 MPA-69") {
            T_EQ_STR(rig_log(), "reply(OK,4/8,rev2) recv(1,5) recv(2,0)");
        }
        T_EQ_MEM(rig->recv_buf, "hello", 5);
        T_EQ_U64(sg_engine_stats(rig->e)->rx_octets, n);
        rig_expect_nothing(); /* and none of our messages is sent twice */
        rig_stop();
    }
}

static void crc_table(void)
{
    static const struct {
        bool ours, theirs, on;
    } rows[] = {
        { false, false, false },
        { true, false, true },
        { false, true, true },
        { true, true, true },
    };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        struct sg_engine_config cfg = rig_config();

        T_CONTEXT("ours %d, theirs %d", rows[i].ours, rows[i].theirs);
        cfg.crc = rows[i].ours;
        rig_start(&cfg);
        rig->recvs = 1;
        rig_request(rows[i].theirs ? REQ "40010000" : REQ "00010000");
        rig_accept(8, 8, NULL);
        rig_log();
        rig->in_used = rig->in_len;
        rig_say("00124143 00000000 00000000 00000001 00000000 deadbeef"); /* CRC wrong */
        T_SHOWS(rows[i].on ? "MPA-27 MPA-52" : "MPA-11 MPA-28 MPA-51") {
            T_EQ_STR(rig_log(), rows[i].on ? "closed(PROTOCOL)" : "recv(1,0)");
        }
        if (!rows[i].on) {
            rig_send(0, 0);
            rig_settle();
            rig_expect("00124143 00000000 00000000 00000001 00000000 00000000");
        }
        rig_stop();
        rig_start(&cfg); /* and as initiator */
        rig->recvs = 1;
        rig_active(rows[i].theirs ? REP "50020004 00080008" : REP "10020004 00080008");
        T_EQ_INT(rig->in[16] & 0x40, rows[i].ours ? 0x40 : 0);
        rig_log();
        rig_say("00124143 00000000 00000000 00000001 00000000 deadbeef");
        T_EQ_STR(rig_log(),
                 rows[i].on ? "terminated(sent,2/0/02) disconnected(TERMINATED)" : "recv(1,0)");
        rig_stop();
    }
}

/* The consumer gets the responder's depths unchanged, even if they exceed the agreed ones. */
static void depths_of_the_responder(void)
{
    static const struct {
        const char *reply, *heard;
        uint16_t ird, ord;
    } rows[] = {
        { REP "50020004 002a0002", "reply(OK,4/8,rev2)", 42, 2 },
        { REP "50020004 00030008", "reply(OK,8/3,rev2)", 3, 8 },
        { REP "70020004 002a0007", "reply(REJECTED,42/7,rev2)", 42, 7 },
    };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        T_CONTEXT("%s", rows[i].reply);
        rig_start(NULL);
        start_active(4, 8);
        rig_say(rows[i].reply);
        T_EQ_STR(rig_log(), rows[i].heard);
        T_SHOWS("MP2-10") {
            T_EQ_U64(rig->peer_ird, rows[i].ird);
            T_EQ_U64(rig->peer_ord, rows[i].ord);
        }
        rig_stop();
    }
}

static const struct t_case cases[] = {
    { "MP2-10 the responder's depths", depths_of_the_responder },
    { "MP2-27 initiator: every kind of Reply", every_reply },
    { "MPA-34 Requests by policy", request_frames },
    { "too much private data is refused", too_much_private_data },
    { "MPA-68 initiator: refused, reset, closed, timeout", initiator_ends },
    { "a pause before the first FPDU holds everything", first_fpdu_waits },
    { "FPDU right behind the Reply", fpdu_behind_reply },
    { "startup hands the stream over at any octet", handover_at_any_cut },
    { "CRC counts if either side wants it", crc_table },
};

T_MAIN(cases)
