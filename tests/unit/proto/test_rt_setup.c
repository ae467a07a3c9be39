/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Setup on RDMA/TCP of 2000, both sides; ends. */
#include "proto/conn.h"
#include "rt_rig.h"
#include "tap.h"

static const struct rt_fields request = {
    .flags = RT_SETUP | RT_BE,
    .number = RT_FIRST,
    .clen = 2,
    .control = { 0x01010000, 6 << 16 | 5 },
    .p = "hello",
    .n = 5,
};

static void connect_with(uint16_t ird, uint16_t ord, const char *pdata)
{
    const struct sg_conn_params p = { .ird = ird,
                                      .ord = ord,
                                      .pdata = (const uint8_t *)pdata,
                                      .pdata_len = (uint16_t)strlen(pdata) };
    const struct sg_endpoint any = { .family = 4 };
    enum sg_conn_end why;

    rig->c = sg_engine_connect(rig->e, &any, &rig->at_peer, &p, rig, &why);
    T_NOT_NULL(rig->c);
    rig_settle();
}

static struct rt_fields answer(uint32_t kind)
{
    return (struct rt_fields){ .flags = RT_SETUP | RT_BE,
                               .number = RT_FIRST,
                               .clen = 2,
                               .control = { 0x01000000 | kind << 16, 3 << 16 | 4 },
                               .p = "yes",
                               .n = 3 };
}

static void client(void)
{
    struct rt_fields f;

    rt_start(1460);
    connect_with(7, 6, "hi");
    f = rt_hear();
    rig_expect_nothing();
    T_SHOWS("WIL-01") {
        T_EQ_U64(f.version, 1);
    }
    T_EQ_U64(f.type, RT_SEND);
    T_EQ_U64(f.flags, RT_SETUP | RT_BE);
    T_EQ_U64(f.order, 0);
    T_EQ_U64(f.offset, 0);
    T_EQ_U64(f.control[0], 0x01010000);
    T_EQ_U64(f.control[1], 7 << 16 | 6);
    T_EQ_U64(f.n, 2);
    T_EQ_MEM(f.p, "hi", 2);
    T_SHOWS("WIL-05") {
        T_EQ_U64(f.conn_id, 0x0807060504030201); /* the host's random octets */
    }
    T_SHOWS("WIL-08") {
        T_EQ_U64(f.number, 0x0c0b0a09);
    }
    rt_peer.conn_id = f.conn_id;
    f = answer(2);
    rt_say(&f);
    T_EQ_STR(rig_log(), "reply(OK,7/3,rev0,yes)"); /* ORD: the server takes three */
    T_EQ_U64(rig->peer_ird, 3);
    T_EQ_U64(rig->peer_ord, 4);
    rt_post_send(0, 0);
    f = rt_hear();
    T_SHOWS("WIL-06") {
        T_EQ_U64(f.number, 0x0c0b0a0a);
    }
    rig_stop();
}

static void server(void)
{
    struct rt_fields f;

    rt_start(1460);
    rig_request(NULL);
    rt_say(&request);
    T_EQ_STR(rig_log(), "request(6/5,rev0,hello)");
    rig_accept(8, 8, "welcome");
    T_EQ_STR(rig_log(), "established(8/6,rev0)"); /* ORD: the client takes six */
    f = rt_hear();
    T_SHOWS("WIL-05") {
        T_EQ_U64(f.conn_id, rt_peer.conn_id);
    }
    T_SHOWS("WIL-08") {
        T_EQ_U64(f.number, 0x04030201);
    }
    T_EQ_U64(f.flags, RT_SETUP | RT_BE);
    T_EQ_U64(f.control[0], 0x01020000);
    T_EQ_U64(f.control[1], 8 << 16 | 6);
    T_EQ_MEM(f.p, "welcome", 7);
    rt_post_send(0, 3); /* it need not wait for the client */
    f = rt_hear();
    T_EQ_U64(f.number, 0x04030202);
    T_EQ_U64(f.n, 3);
    rig_stop();
}

static void server_rejects(void)
{
    struct rt_fields f;

    rt_start(1460);
    rig_request(NULL);
    rt_say(&request);
    rig_log();
    T_TRUE(sg_conn_reject(rig->c, (const uint8_t *)"no", 2));
    rig->c = NULL;
    rig_settle();
    f = rt_hear();
    T_EQ_U64(f.control[0], 0x01030000);
    T_EQ_MEM(f.p, "no", 2);
    T_EQ_STR(rig_log(), "");
    rig_peer_close();
    rig_pass(1);
    T_TRUE(rig->peer_fin);
    rig_stop();
}

static void client_is_rejected(void)
{
    struct rt_fields f = answer(3);

    rt_start(1460);
    connect_with(1, 1, "");
    rt_peer.conn_id = rt_hear().conn_id;
    rt_say(&f);
    T_EQ_STR(rig_log(), "reply(REJECTED,3/4,rev0,yes)");
    rig_stop();
}

static void private_data_limits(void)
{
    static uint8_t much[513];
    struct sg_conn_params p = { .pdata = much, .pdata_len = 512 };
    const struct sg_endpoint any = { .family = 4 };
    struct rt_fields f = request;
    enum sg_conn_end why;

    rt_start(1460);
    rig->c = sg_engine_connect(rig->e, &any, &rig->at_peer, &p, rig, &why);
    T_NOT_NULL(rig->c);
    rig_settle();
    T_EQ_U64(rt_hear().n, 512);
    p.pdata_len = 513;
    T_NULL(sg_engine_connect(rig->e, &any, &rig->at_peer, &p, rig, &why));
    T_EQ_INT(why, SG_CONN_PROTOCOL);
    rig_stop();

    rt_start(1460);
    f.p = much;
    f.n = 512;
    rig_request(NULL);
    rt_say(&f);
    T_TRUE(strncmp(rig_log(), "request(6/5,rev0", 16) == 0);
    T_FALSE(sg_conn_accept(rig->c, rig, &p));
    rig_stop();
}

/* In pieces of one octet. */
static void piecemeal(void)
{
    uint8_t out[600];
    size_t n, i;

    rt_start(1460);
    n = rt_build(&request, out);
    rig_request(NULL);
    for (i = 0; i < n; i++) {
        T_EQ_STR(rig_log(), "");
        rig_say_octets(out + i, 1);
    }
    T_EQ_STR(rig_log(), "request(6/5,rev0,hello)");
    rig_stop();
}

/* What neither side takes for a message of setup; the control data are those of its kind. */
struct wrong_setup {
    const char *what;
    struct rt_fields f; /* clen 0: two words; control[0] 0: that of the kind */
    bool no_control;
};

static const struct wrong_setup wrong[] = {
    { "version 2", { .version = 2, .flags = RT_SETUP | RT_BE } },
    { "version 255", { .version = 255, .flags = RT_SETUP | RT_BE } },
    { "a Write", { .type = RT_WRITE, .flags = RT_SETUP | RT_BE } },
    { "a Read Request", { .type = RT_READ_REQ, .flags = RT_SETUP | RT_BE } },
    { "a Read Response", { .type = RT_READ_RESP, .flags = RT_SETUP | RT_BE } },
    { "not SETUP", { .flags = RT_BE } },
    { "not the end", { .flags = RT_SETUP | RT_B } },
    { "not the beginning", { .flags = RT_SETUP | RT_E } },
    { "in the middle", { .flags = RT_SETUP } },
    { "an offset", { .flags = RT_SETUP | RT_BE, .offset = 1 } },
    { "no control data", { .flags = RT_SETUP | RT_BE }, .no_control = true },
    { "one word of control data", { .flags = RT_SETUP | RT_BE, .clen = 1 } },
    { "kind 0", { .flags = RT_SETUP | RT_BE, .control = { 0x01000000 } } },
    { "kind 4", { .flags = RT_SETUP | RT_BE, .control = { 0x01040000 } } },
    { "CRC", { .flags = RT_SETUP | RT_BE, .bad_crc = true } },
    { "too long", { .flags = RT_SETUP | RT_BE, .p = (const uint8_t[513]){ 0 }, .n = 513 } },
};

static struct rt_fields wrong_fields(const struct wrong_setup *w, uint32_t kind)
{
    struct rt_fields f = w->f;

    f.number = RT_FIRST;
    f.clen = w->no_control ? 0 : f.clen ? f.clen : 2;
    f.control[0] = f.control[0] ? f.control[0] : 0x01000000 | kind << 16;
    return f;
}

static void expect_setup_fault(bool crc)
{
    const struct sg_engine_stats *stats = sg_engine_stats(rig->e);

    rig_settle();
    T_TRUE(rig->peer_over);
    T_EQ_U64(stats->conns, 0);
    T_EQ_U64(stats->protocol_errors, 1);
    T_EQ_U64(stats->crc_errors, crc);
}

static void refuse_request(const struct rt_fields *f)
{
    rt_start(1460);
    rig_request(NULL);
    rt_say(f);
    T_EQ_STR(rig_log(), "");
    expect_setup_fault(f->bad_crc);
    rig_stop();
}

/* What the server does not take for a Request; each resets the stream. */
static void malformed_requests(void)
{
    static const struct wrong_setup own[] = {
        { "an Accept", { .flags = RT_SETUP | RT_BE, .control = { 0x01020000 } } },
        { "a Reject", { .flags = RT_SETUP | RT_BE, .control = { 0x01030000 } } },
        { "version of the client protocol",
          { .flags = RT_SETUP | RT_BE, .control = { 0x02010000 } } },
    };
    struct rt_fields f;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(wrong) + SG_ARRAY_SIZE(own); i++) {
        const struct wrong_setup *w =
            i < SG_ARRAY_SIZE(wrong) ? &wrong[i] : &own[i - SG_ARRAY_SIZE(wrong)];

        T_CONTEXT("%s", w->what);
        f = wrong_fields(w, 1);
        refuse_request(&f);
    }
}

static void octets_out_of_turn(void)
{
    uint8_t out[600];
    size_t n;

    rt_start(1460);
    n = rt_build(&request, out);
    out[n] = 1;
    rig_request(NULL);
    rig_say_octets(out, n + 1);
    T_TRUE(rig->peer_over);
    T_EQ_STR(rig_log(), "");
    rig_stop();

    rt_start(1460);
    rig_request(NULL);
    rt_say(&request);
    rig_log();
    rig_say_octets(out, 1);
    T_EQ_STR(rig_log(), "gone(PROTOCOL)");
    rig_stop();
}

static void refuse_answer(const struct rt_fields *f)
{
    rt_start(1460);
    connect_with(8, 8, "");
    rt_peer.conn_id = rt_hear().conn_id;
    if (f) {
        rt_say(f);
    } else {
        rig_say("010c0000"); /* a Segment Length that is shorter than a header */
    }
    T_EQ_STR(rig_log(), "reply(PROTOCOL,0/0,rev0)");
    expect_setup_fault(f && f->bad_crc);
    rig_stop();
}

/* What the client does not take for an answer; each resets the stream. */
static void malformed_answers(void)
{
    static const struct wrong_setup own[] = {
        { "a Request", { .flags = RT_SETUP | RT_BE, .control = { 0x01010000 } } },
        { "another Connection ID", { .flags = RT_SETUP | RT_BE, .conn_id = 0x1234 } },
        { "an Accept with more Reads than we take",
          { .flags = RT_SETUP | RT_BE, .control = { 0x01020000, 9 } } },
        { "an Accept of another client protocol",
          { .flags = RT_SETUP | RT_BE, .control = { 0x02020000 } } },
        { "a Reject of another client protocol",
          { .flags = RT_SETUP | RT_BE, .control = { 0x02030000 } } },
        { "a Reject with another Connection ID",
          { .flags = RT_SETUP | RT_BE, .conn_id = 0x1234, .control = { 0x01030000 } } },
    };
    struct rt_fields f;
    uint32_t kind;
    size_t i;

    for (i = 0; i < SG_ARRAY_SIZE(own); i++) {
        T_CONTEXT("%s", own[i].what);
        f = wrong_fields(&own[i], 2);
        refuse_answer(&f);
    }
    for (i = 0; i < SG_ARRAY_SIZE(wrong); i++) {
        for (kind = 2; kind <= 3; kind++) { /* an Accept and a Reject */
            T_CONTEXT("%s, kind %u", wrong[i].what, kind);
            f = wrong_fields(&wrong[i], kind);
            refuse_answer(&f);
        }
    }
    T_CONTEXT("Segment Length");
    refuse_answer(NULL);
}

/* Segments may follow the Accept at once. */
static void answer_and_send(void)
{
    uint8_t out[200];
    struct rt_fields f = answer(2);
    size_t n;

    rt_start(1460);
    connect_with(8, 8, "");
    rt_peer.conn_id = rt_hear().conn_id;
    rig->recvs = 1;
    n = rt_build(&f, out);
    f = (struct rt_fields){ .flags = RT_BE | RT_SE, .number = RT_FIRST + 1, .p = "abc", .n = 3 };
    n += rt_build(&f, out + n);
    rig_say_octets(out, n);
    T_EQ_STR(rig_log(), "reply(OK,8/3,rev0,yes) recv(1,3,se)");
    T_EQ_MEM(rig->recv_buf, "abc", 3);
    rig_stop();
}

static void timeouts(void)
{
    rt_start(1460);
    rig_request(NULL);
    rig_pass(9999);
    T_FALSE(rig->peer_over);
    rig_pass(1);
    T_TRUE(rig->peer_over);
    connect_with(1, 1, "");
    rig_pass(60000);
    T_EQ_STR(rig_log(), "reply(TIMEOUT,0/0,rev0)");
    rig_stop();
}

static void orderly_end(void)
{
    rt_start(1460);
    rt_passive();
    rt_post_send(0, 10);
    sg_conn_close(rig->c);
    rig_settle();
    T_EQ_U64(rt_hear().n, 10);
    T_TRUE(rig->peer_fin);
    rig_peer_close();
    T_EQ_STR(rig_log(), "sent(10) disconnected(CLOSED) closed(CLOSED)");
    rig_stop();
}

/* There is no Terminate: a FIN behind what was sent, and nothing is received any more. */
static void local_error(void)
{
    rt_start(1460);
    rt_passive();
    rig->recvs = 1;
    rt_post_send(0, 10);
    sg_conn_terminate(rig->c, 0, 0, 0);
    rig_settle();
    T_EQ_U64(rt_hear().n, 10);
    rig_expect_nothing();
    T_TRUE(rig->peer_fin);
    rt_say(&(struct rt_fields){ .flags = RT_BE, .number = RT_FIRST + 1 });
    rig_peer_close();
    T_EQ_STR(rig_log(), "sent(10) disconnected(RESET) closed(RESET)");
    rig_stop();
}

static void cannot_express(void)
{
    static const enum sg_msg_kind kinds[] = { SG_MSG_FLUSH,        SG_MSG_VERIFY,
                                              SG_MSG_ATOMIC_WRITE, SG_MSG_FETCH_ADD,
                                              SG_MSG_CMP_SWAP,     SG_MSG_IMM,
                                              SG_MSG_SEND };
    size_t i;

    T_EQ_U64(sg_engine_wire_kinds(SG_ENGINE_RDMA_TCP_2000),
             1u << SG_MSG_SEND | 1u << SG_MSG_WRITE | 1u << SG_MSG_READ_REQ);
    T_FALSE(sg_engine_wire_invalidates(SG_ENGINE_RDMA_TCP_2000));
    T_EQ_U64(sg_engine_wire_kinds(SG_ENGINE_IWARP), (1u << SG_MSG_KINDS) - 1);
    T_TRUE(sg_engine_wire_invalidates(SG_ENGINE_IWARP));
    for (i = 0; i < SG_ARRAY_SIZE(kinds); i++) {
        struct sg_msg m = { .kind = kinds[i] };

        T_CONTEXT("kind %u", kinds[i]);
        m.send.invalidate = kinds[i] == SG_MSG_SEND;
        rt_start(1460);
        rt_passive();
        rig->queue[rig->tail++] = m;
        sg_conn_wake(rig->c);
        rig_settle();
        rig_expect_nothing();
        T_EQ_STR(rig_log(), "faulted(HERE) disconnected(RESET)");
        rig_stop();
    }
}

static const struct t_case cases[] = {
    { "client", client },
    { "server", server },
    { "server rejects", server_rejects },
    { "client is rejected", client_is_rejected },
    { "private data: 512 octets, and one more", private_data_limits },
    { "a Request in pieces", piecemeal },
    { "malformed Requests", malformed_requests },
    { "octets behind a Request", octets_out_of_turn },
    { "malformed answers", malformed_answers },
    { "segments behind the Accept", answer_and_send },
    { "timeouts", timeouts },
    { "orderly end", orderly_end },
    { "an error of ours", local_error },
    { "messages that the wire does not have", cannot_express },
};

T_MAIN(cases)
