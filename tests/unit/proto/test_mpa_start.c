/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The MPA startup exchange, responder: every Request that it may see, and the required reaction
 * (RFC 5044 section 7.1, RFC 6581).  The initiator: test_mpa_reply.c.
 */
#include <string.h>

#include "tap.h"
#include "rig.h"

#define REQ "4d504120 49442052 65712046 72616d65 "
#define REP "4d504120 49442052 65702046 72616d65 "
#define RTR_WRITE "000ec140 00000001 00000000 00000000 ebd34c5f"
#define RTR_READ                                                               \
    "002e4141 00000000 00000001 00000001 00000000 00000001 00000000 00000000 " \
    "00000000 00000001 00000000 00000000 27dbd7e7"
#define RTR_SEND "00124143 00000000 00000000 00000001 00000000 587be8c4"

/* Responder: a Request, the upcall to verbs, and the Reply after accept(ird, ord). */
struct request_row {
    const char *what;
    const char *request;
    const char *heard;
    uint16_t ird, ord;
    const char *pdata;
    const char *reply; /* NULL: no upcall, the stream was reset */
    const char *shows; /* rows of the checklist */
};

static const struct request_row requests[] = {
    { "revision 1 with CRC", REQ "40010000", "request(8/8,rev1)", 8, 8, NULL, REP "40010000",
      .shows = "MPA-47 MP2-02 MP2-25" },
    { "revision 1, reply has private data", REQ "40010003 616263", "request(8/8,rev1,abc)", 8, 8,
      "xyz", REP "40010003 78797a" },
    { "revision 1 with all reserved bits", REQ "5f010000", "request(8/8,rev1)", 8, 8, NULL,
      REP "40010000", .shows = "MPA-53" },
    { "revision 1, no CRC asked: ours demands it", REQ "00010000", "request(8/8,rev1)", 8, 8, NULL,
      REP "40010000" },
    { "revision 1, R set in the Request is ignored", REQ "60010000", "request(8/8,rev1)", 8, 8,
      NULL, REP "40010000" },
    { "revision 2 without S: unenhanced Reply", REQ "40020000", "request(8/8,rev2)", 8, 8, NULL,
      REP "40020000" },
    { "revision 2, ORD cut to the initiator's IRD", REQ "50020004 00040008", "request(4/8,rev2)", 8,
      8, NULL, REP "50020004 00080004", .shows = "MP2-06 MP2-07" },
    { "revision 2, private data behind the header", REQ "50020007 00040008 616263",
      "request(4/8,rev2,abc)", 8, 4, "no", REP "50020006 00080004 6e6f", .shows = "MP2-03 MP2-04" },
    { "A = 0: B, C, D ignored and sent as 0", REQ "50020004 4004c008", "request(4/8,rev2)", 8, 8,
      NULL, REP "50020004 00080004", .shows = "MP2-21" },
    { "A = 1: common kinds", REQ "50020004 c004c008", "request(4/8,rev2)", 8, 8, NULL,
      REP "50020004 8008c004", .shows = "MP2-16 MP2-17 MP2-24" },
    { "A = 1: only Write offered", REQ "50020004 80048008", "request(4/8,rev2)", 8, 8, NULL,
      REP "50020004 80088004" },
    { "A = 1: nothing common, ours is named", REQ "50020004 c0040008", "request(4/8,rev2)", 8, 8,
      NULL, REP "50020004 8008c004", .shows = "MP2-18" },
    { "A = 1: Read RTR raises IRD to 1", REQ "50020004 80044000", "request(4/0,rev2)", 0, 8, NULL,
      REP "50020004 80014004" },
    { "ORD open: local IRD kept, reply says open", REQ "50020004 00043fff", "request(4/8,rev2)", 8,
      8, NULL, REP "50020004 3fff0004", .shows = "MP2-11" },
    { "IRD open: local ORD kept, reply says open", REQ "50020004 3fff0004", "request(8/4,rev2)", 8,
      8, NULL, REP "50020004 00083fff", .shows = "MP2-12" },
    { "our limits cap what verbs grant", REQ "50020004 00ff00ff", "request(255/255,rev2)", 200, 200,
      NULL, REP "50020004 00080008" },
    { "Reply key: responder meets responder", REP "40010000", NULL, 0, 0, NULL, NULL,
      .shows = "MPA-46 MPA-65" },
    { "wrong key", "4d504120 49442052 65712046 72616d66 40010000", NULL, 0, 0, NULL, NULL,
      .shows = "MPA-46 MPA-58" },
    { "no MPA at all", "474554202f20485454502f312e31", NULL, 0, 0, NULL, NULL },
    { "revision 0", REQ "40000000", NULL, 0, 0, NULL, NULL, .shows = "MPA-54" },
    { "revision 3", REQ "40030000", NULL, 0, 0, NULL, NULL, .shows = "MPA-54" },
    { "513 octets of private data announced", REQ "40010201", NULL, 0, 0, NULL, NULL,
      .shows = "MPA-55 MPA-67 MPA-71" },
    { "65535 octets of private data announced", REQ "4001ffff", NULL, 0, 0, NULL, NULL,
      .shows = "MPA-67" },
    { "S without room for the header", REQ "50020003 000000", NULL, 0, 0, NULL, NULL,
      .shows = "MPA-58" },
    { "octets behind the Request", REQ "40010000 00", NULL, 0, 0, NULL, NULL,
      .shows = "MPA-58 MPA-70" },
};

static void run_request(const struct request_row *r)
{
    T_CONTEXT("%s", r->what);
    rig_start(NULL);
    rig_request(r->request);
    T_SHOWS(r->shows) {
        if (!r->reply) {
            T_EQ_STR(rig_log(), "");
            rig_expect_nothing();
            T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_RESET);
            T_EQ_U64(sg_engine_stats(rig->e)->protocol_errors, 1);
            T_EQ_U64(sg_engine_stats(rig->e)->conns, 0);
        } else {
            T_EQ_STR(rig_log(), r->heard);
            rig_expect_nothing();
            rig_accept(r->ird, r->ord, r->pdata);
            rig_expect(r->reply);
        }
    }
    rig_stop();
}

static void every_request(void)
{
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(requests); i++) {
        run_request(&requests[i]);
    }
}

/* The same octets, one at a time: malformed frames, and only these, are detected as early. */
static void requests_octet_by_octet(void)
{
    size_t i, at;

    for (i = 0; i < SG_ARRAY_SIZE(requests); i++) {
        const struct request_row *r = &requests[i];
        char one[3] = "";

        if (!r->reply) {
            continue;
        }
        T_CONTEXT("%s", r->what);
        rig_start(NULL);
        rig_request(NULL);
        for (at = 0; r->request[at]; at += 2) {
            at += r->request[at] == ' ';
            memcpy(one, r->request + at, 2);
            T_SHOWS("MPA-57") {
                T_EQ_STR(rig_log(), "");
            }
            rig_say(one);
        }
        T_SHOWS("MPA-39") {
            T_EQ_STR(rig_log(), r->heard);
        }
        rig_stop();
    }
}

static void whole_private_data(void)
{
    static const struct {
        const char *head;
        unsigned octets;
    } rows[] = { { REQ "40010200", 512 }, { REQ "50020200 00040004", 508 } };
    uint8_t pd[512], out[SG_ENGINE_PDATA_MAX];
    struct sg_conn_params p = { .ird = 1, .ord = 1, .pdata = out };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        rig_start(NULL);
        memset(pd, 'p', sizeof(pd));
        memset(out, 'r', sizeof(out));
        rig_request(rows[i].head);
        T_EQ_STR(rig_log(), "");
        rig_say_octets(pd, rows[i].octets);
        T_TRUE(strstr(rig_log(), ",ppppppppp") != NULL);
        p.pdata_len = (uint16_t)(rows[i].octets + 1);
        T_FALSE(sg_conn_accept(rig->c, rig, &p));
        p.pdata_len = (uint16_t)rows[i].octets;
        T_TRUE(sg_conn_accept(rig->c, rig, &p));
        rig_settle();
        T_EQ_U64(rig->in_len, 20 + 512);
        T_EQ_MEM(rig->in + 532 - rows[i].octets, out, rows[i].octets);
        rig_stop();
    }
}

/* Revision 1 only, by policy. */
static void old_responder(void)
{
    struct sg_engine_config cfg = rig_config();

    cfg.mpa_rev = 1;
    rig_start(&cfg);
    rig_request(REQ "50020004 00040008");
    T_SHOWS("MP2-26") {
        T_TRUE(rig->peer_over);
    }
    T_EQ_STR(rig_log(), "");
    rig_stop();
}

static void reject(void)
{
    rig_start(NULL);
    rig_request(REQ "50020004 8004c008");
    rig_log();
    T_TRUE(sg_conn_reject(rig->c, (const uint8_t *)"why", 3));
    rig->c = NULL;
    rig_settle();
    rig_expect(REP "70020007 8008c004 776879");
    T_FALSE(rig->peer_fin); /* MPA is over, TCP is not */
    T_FALSE(rig->peer_over);
    rig_peer_close();
    T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_CLOSED);
    T_EQ_STR(rig_log(), "");
    T_EQ_U64(sg_engine_stats(rig->e)->conns, 0);
    rig_stop();
}

static void requester_vanishes(void)
{
    rig_start(NULL);
    rig_request(REQ "40010000");
    rig_peer_abort();
    T_EQ_STR(rig_log(), "request(8/8,rev1) gone(RESET)");
    rig_stop();
    rig_start(NULL);
    rig_request(REQ "40010000");
    rig_say("00");
    T_EQ_STR(rig_log(), "request(8/8,rev1) gone(PROTOCOL)");
    rig_stop();
}

static void responder_timeouts(void)
{
    rig_start(NULL);
    rig_request(NULL);
    rig_pass(9999);
    T_FALSE(rig->peer_over);
    rig_pass(1);
    T_TRUE(rig->peer_over);
    T_EQ_STR(rig_log(), "");
    rig_stop();
    rig_start(NULL);
    rig_request(REQ "40010000"); /* our own program has longer to answer */
    rig_pass(59999);
    T_EQ_STR(rig_log(), "request(8/8,rev1)");
    rig_pass(1);
    T_EQ_STR(rig_log(), "gone(TIMEOUT)");
    rig_stop();
    rig_start(NULL); /* accepted, and the RTR message never comes */
    rig_request(REQ "50020004 8004c008");
    rig_pass(30000);
    rig_accept(8, 8, NULL);
    rig_pass(9999);
    T_EQ_STR(rig_log(), "request(4/8,rev2)");
    rig_pass(1);
    T_EQ_STR(rig_log(), "closed(TIMEOUT)");
    rig_stop();
}

static struct sg_stream *connect_silent(void)
{
    rig_request(NULL);
    return rig->peer;
}

/* RFC 5044, section 7.1.2, rule 8, and SEC-13: silent unknown peers cost a bounded amount. */
static void half_open_bound(void)
{
    enum { MANY = 1100, HELD = 1024 }; /* the rig's backlog is 4 */
    static struct sg_stream *s[MANY];
    unsigned i;

    rig_start(NULL);
    for (i = 0; i < MANY; i++) {
        s[i] = connect_silent();
        T_EQ_U64(sg_engine_stats(rig->e)->conns, SG_MIN(i + 1, HELD));
    }
    for (i = MANY - HELD; i < MANY; i++) { /* the oldest were dropped */
        s[i]->ops->abort(s[i]);
    }
    rig_settle();
    T_EQ_U64(sg_engine_stats(rig->e)->conns, 0);
    rig->peer = NULL;
    rig_stop();
}

/* They block no other peer, however small the backlog is. */
static void unknown_peers_keep_nobody_out(void)
{
    unsigned i;

    rig_start(NULL);
    for (i = 0; i < 1100; i++) {
        connect_silent();
    }
    rig_request(REQ "00010000");
    T_EQ_STR(rig_log(), "request(8/8,rev1)");
    rig_stop();
}

/*
 * More Requests than verbs accept at once: the others wait for a place, as long as an answer may
 * take, and are not reset.
 */
static void requests_wait_for_a_place(void)
{
    struct sg_conn *asked[4] = { NULL };
    unsigned i;

    rig_start(NULL);
    for (i = 0; i < 7; i++) {
        rig_request(REQ "00010000");
        T_EQ_STR(rig_log(), i < 4 ? "request(8/8,rev1)" : ""); /* the rig's backlog */
        asked[SG_MIN(i, 3)] = rig->c;
    }
    T_EQ_U64(sg_engine_stats(rig->e)->conns, 7);
    for (i = 0; i < 2; i++) {
        sg_conn_abort(rig->c);
        rig_settle();
        T_EQ_STR(rig_log(), "request(8/8,rev1)");
    }
    asked[3] = rig->c; /* the sixth */
    for (i = 0; i < 4; i++) {
        sg_conn_abort(asked[i]);
    }
    rig_settle();
    T_EQ_STR(rig_log(), "request(8/8,rev1)");
    T_NOT_NULL(rig->peer); /* the seventh's */
    rig_stop();
}

/* Verbs have no room for events: Requests wait until they have, and are not reset. */
static void requests_wait_for_room(void)
{
    rig_start(NULL);
    rig->no_room = true;
    rig_request(REQ "00010000");
    T_EQ_STR(rig_log(), "");
    sg_engine_admit(rig->e);
    rig_settle();
    T_EQ_STR(rig_log(), "");
    T_EQ_U64(sg_engine_stats(rig->e)->conns, 1);
    rig->no_room = false;
    rig_settle();
    T_EQ_STR(rig_log(), ""); /* nobody has said so */
    sg_engine_admit(rig->e);
    rig_settle();
    T_EQ_STR(rig_log(), "request(8/8,rev1)");
    rig_stop();
}

/* Transmission waits for the first FPDU, A = 0 or not; 'established' does not wait if A = 0. */
static void responder_waits(void)
{
    rig_start(NULL);
    rig_request(REQ "40010000");
    rig_accept(8, 8, NULL);
    T_EQ_STR(rig_log(), "request(8/8,rev1) established(8/8,rev1)");
    rig->in_used = rig->in_len;
    rig_send(0, 4);
    rig_settle();
    T_SHOWS("MPA-64") {
        rig_expect_nothing();
    }
    T_EQ_STR(rig_log(), "");
    rig->recvs = 1;
    rig_say_fpdu("4143 00000000 00000000 00000001 00000000");
    T_EQ_STR(rig_log(), "recv(1,0) sent(4)");
    rig_expect_fpdu("4143 00000000 00000000 00000001 00000000 00070e15");
    rig_stop();
}

/* An invalid first FPDU has no effect, and must not be answered. */
static void first_fpdu_bad(void)
{
    rig_start(NULL);
    rig_request(REQ "50020004 8004c008");
    rig_accept(8, 8, NULL);
    rig->in_used = rig->in_len;
    rig_say("000ec140 00000001 00000000 00000000 ebd34c5e");
    T_EQ_STR(rig_log(), "request(4/8,rev2) closed(PROTOCOL)");
    T_SHOWS("MPA-64") {
        rig_expect_nothing();
    }
    T_TRUE(rig->peer_over && rig->peer_why == SG_STREAM_RESET);
    T_EQ_U64(sg_engine_stats(rig->e)->crc_errors, 1);
    rig_stop();
}

static void any_rtr_establishes(void)
{
    static const char *const first[] = { RTR_WRITE, RTR_READ, RTR_SEND };
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(first); i++) {
        T_CONTEXT("%s", first[i]);
        rig_start(NULL);
        rig->recvs = 1;
        rig_request(REQ "50020004 8004c008");
        rig_accept(8, 8, NULL);
        rig->in_used = rig->in_len;
        rig_say(first[i]);
        T_TRUE(strstr(rig_log(), "established(8/4,rev2)") != NULL);
        if (i == 1) { /* no answer to the Read Request */
            rig_expect_fpdu("c142 00000001 00000000 00000000");
        }
        rig_expect_nothing();
        rig_stop();
    }
}

static const struct t_case cases[] = {
    { "MPA-46 MPA-47 MPA-49 MPA-53 MPA-54 MPA-55 MPA-58 MPA-65 MPA-67 MPA-71 MP2-02 MP2-03 MP2-04 "
      "MP2-06 MP2-07 MP2-11 MP2-12 MP2-16 MP2-17 MP2-18 MP2-21 MP2-24 MP2-25 MP2-27 "
      "responder: every kind of Request",
      every_request },
    { "MPA-39 MPA-57 Requests arriving octet by octet", requests_octet_by_octet },
    { "MPA-55 MPA-67 private data up to the limit, both ways", whole_private_data },
    { "MP2-26 responder limited to revision 1 closes", old_responder },
    { "MPA-59 MPA-60 reject: Reply with R, TCP stays open", reject },
    { "MPA-70 requester vanishes before the answer", requester_vanishes },
    { "MPA-66 MPA-68 responder's timeouts", responder_timeouts },
    { "SEC-13 half-open connections are bounded", half_open_bound },
    { "silent unknown peers keep nobody out", unknown_peers_keep_nobody_out },
    { "Requests beyond the backlog wait for a place", requests_wait_for_a_place },
    { "Requests wait while verbs have no room", requests_wait_for_room },
    { "MPA-64 responder sends nothing before a valid FPDU", responder_waits },
    { "MPA-64 MPA-33 an invalid first FPDU gets no answer", first_fpdu_bad },
    { "MP2-05 RDM-26 any valid first FPDU establishes", any_rtr_establishes },
};

T_MAIN(cases)
