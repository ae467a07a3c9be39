/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Captures in which one rule is broken, and sound ones: the decoder names exactly that rule, or
 * none.
 */
#include "exchanges.h"
#include "tap.h"
#include "wire/terminate.h"

static struct maker m;

struct scenario_row {
    const char *id; /* NULL: nothing is broken */
    const char *what;
    void (*run)(const void *p);
    const void *p;
};

/* ---- Exchanges by parameters ---- */

static void run_read(const void *p)
{
    maker_open(&m);
    read3(&m, 100, p);
}

static void run_write(const void *p)
{
    maker_open(&m);
    write3(&m, 100, p);
}

static void run_long(const void *p)
{
    maker_open(&m);
    long3(&m, 100, p);
}

static void run_put(const void *p)
{
    maker_open(&m);
    put(&m, 100, p);
}

#define READ(...)                   \
    run_read, &(const struct read3) \
    {                               \
        __VA_ARGS__                 \
    }
#define WRITE(...)                    \
    run_write, &(const struct write3) \
    {                                 \
        __VA_ARGS__                   \
    }
#define PUT(...)                 \
    run_put, &(const struct put) \
    {                            \
        __VA_ARGS__              \
    }
#define LONG(...)                   \
    run_long, &(const struct long3) \
    {                               \
        __VA_ARGS__                 \
    }

/* ---- Private data, invalidation ---- */

static void run_small(const void *p)
{
    m.client.send_size = m.server.recv_size = m.client.recv_size = m.server.send_size = 1024;
    run_long(p);
}

static void run_without_r(const void *p)
{
    m.server.remote_inv = false;
    run_read(p);
}

static void run_no_private(const void *p)
{
    m.client.present = m.client.remote_inv = false;
    m.client.send_size = m.client.recv_size = 1024;
    run_read(p);
}

static void reserved_bits(const void *p)
{
    m.reserved = 0x80;
    maker_open(&m);
    null3(&m, 1);
}

static void call_invalidates(const void *p)
{
    GByteArray *rpc = call3(1, NFS3_NULL), *octets;

    maker_open(&m);
    octets = message(header(1, RR_MSG), rpc);
    maker_send(&m, RR_OUT, SG_OP_SEND_INV, 0x77, sg_span_of(octets->data, octets->len));
    null_reply(&m, RR_BACK, 1, GRANT);
    g_byte_array_free(rpc, true);
    g_byte_array_free(octets, true);
}

/* The settings of a connection do not outlive it. */
static void reconnect(const void *p)
{
    maker_open(&m);
    read3(&m, 1, p);
    m.server.remote_inv = false;
    m.server.recv_size = m.server.send_size = 1024;
    m.client_port++;
    maker_open(&m);
    read3(&m, 2, p);
    m.server.remote_inv = true;
    maker_open(&m);
    read3(&m, 3, p);
}

/* ---- Credits ---- */

static void two_before_reply(const void *p)
{
    maker_open(&m);
    null_call(&m, RR_OUT, 1);
    null_call(&m, RR_OUT, 2);
    null_reply(&m, RR_BACK, 1, GRANT);
    null_reply(&m, RR_BACK, 2, GRANT);
}

static void calls_open(unsigned count)
{
    maker_open(&m);
    null3(&m, 1);
    for (unsigned i = 0; i < count; i++) {
        null_call(&m, RR_OUT, 10 + i);
    }
    for (unsigned i = 0; i < count; i++) {
        null_reply(&m, RR_BACK, 10 + i, GRANT);
    }
}

static void all_credits(const void *p)
{
    calls_open(GRANT);
}

static void one_too_many(const void *p)
{
    calls_open(GRANT + 1);
}

static void zero_grant(const void *p)
{
    maker_open(&m);
    null_call(&m, RR_OUT, 1);
    null_reply(&m, RR_BACK, 1, 0);
}

/* Callbacks of NFS version 4.1 go the other way, and have credits of their own. */
static void callbacks(const void *p)
{
    maker_open(&m);
    null3(&m, 1);
    null_call(&m, RR_BACK, 1);
    null_call(&m, RR_OUT, 2);
    null_reply(&m, RR_OUT, 1, 2);
    null_reply(&m, RR_BACK, 2, GRANT);
    null_call(&m, RR_BACK, 2);
    null_reply(&m, RR_OUT, 2, 2);
}

static void terminate(enum sg_term_cond cond, enum rr_dir dir, uint16_t octets)
{
    const struct sg_term_row *row = sg_term_row(cond);

    maker_terminate(&m, dir, row->layer, row->etype, row->code, octets + SG_DDP_UNTAGGED_LEN);
}

static void no_receive_at_responder(const void *p)
{
    maker_open(&m);
    null3(&m, 1);
    null_call(&m, RR_OUT, 2);
    terminate(SG_TERM_UNTAGGED_NO_BUFFER, RR_BACK, 40);
}

static void no_receive_at_requester(const void *p)
{
    maker_open(&m);
    null3(&m, 1);
    null_call(&m, RR_OUT, 2);
    null_reply(&m, RR_BACK, 2, GRANT);
    terminate(SG_TERM_UNTAGGED_NO_BUFFER, RR_OUT, 40);
}

static void receive_too_small(const void *p)
{
    maker_open(&m);
    null_call(&m, RR_OUT, 1);
    terminate(SG_TERM_UNTAGGED_TOO_LONG, RR_BACK, 1000);
}

static void receive_small_enough(const void *p)
{
    maker_open(&m);
    null_call(&m, RR_OUT, 1);
    terminate(SG_TERM_UNTAGGED_TOO_LONG, RR_BACK, 1025);
}

/* ---- Headers and errors ---- */

#define BAD_FLAG "00000007 00000001 00000008 00000000 00000002 00000000 00000000"
#define VERSION_2 "00000007 00000002 00000008 00000000 00000000 00000000 00000000"
#define ERR_CHUNK "00000007 00000001 00000008 00000004 00000002"
#define ERR_VERS "00000007 00000002 00000008 00000004 00000001 00000001 00000001"

/* Octets of the client, then of the server; NULL: none. */
struct hex_question {
    const char *call, *answer, *again;
};

static void run_pair(const void *p)
{
    const struct hex_question *pair = p;

    maker_open(&m);
    null3(&m, 1);
    send_octets(&m, RR_OUT, pair->call);
    if (pair->answer) {
        send_octets(&m, RR_BACK, pair->answer);
    }
    if (pair->again) {
        send_octets(&m, RR_OUT, pair->again);
    }
    null3(&m, 2);
}

#define PAIR(...)                          \
    run_pair, &(const struct hex_question) \
    {                                      \
        __VA_ARGS__                        \
    }

static void error_from_requester(const void *p)
{
    maker_open(&m);
    null3(&m, 1);
    send_octets(&m, RR_OUT, ERR_CHUNK);
}

static void error_answered(const void *p)
{
    error_from_requester(p);
    send_octets(&m, RR_BACK, ERR_CHUNK);
}

static void bad_reply(const char *answer)
{
    maker_open(&m);
    null3(&m, 1);
    null_call(&m, RR_OUT, 7);
    send_octets(&m, RR_BACK, BAD_FLAG);
    if (answer) {
        send_octets(&m, RR_OUT, answer);
    }
}

static void bad_reply_dropped(const void *p)
{
    bad_reply(NULL);
}

static void bad_reply_answered(const void *p)
{
    bad_reply(ERR_CHUNK);
}

static void other_xid(const void *p)
{
    maker_open(&m);
    send_message(&m, RR_OUT, header(1, RR_MSG), call3(2, NFS3_NULL));
    null_reply(&m, RR_BACK, 1, GRANT);
}

static void no_rpc_message(const void *p)
{
    maker_open(&m);
    null3(&m, 1);
    send_message(&m, RR_OUT, header(7, RR_MSG), NULL);
    null_reply(&m, RR_BACK, 7, GRANT);
}

static void read_list_in_reply(const void *p)
{
    struct rr_header *h;

    maker_open(&m);
    null_call(&m, RR_OUT, 1);
    h = header(1, RR_MSG);
    rr_add_read(h, 4, (struct rr_segment){ 1, 2, 3 });
    send_message(&m, RR_BACK, h, reply3(1));
}

static void chunk_too_many(const void *p)
{
    struct rr_header *h;

    maker_open(&m);
    null_call(&m, RR_OUT, 1);
    h = header(1, RR_MSG);
    rr_open_chunk(h);
    rr_add_segment(h, (struct rr_segment){ 1, 0, 3 });
    send_message(&m, RR_BACK, h, reply3(1));
}

static void unknown_reply_chunk(const void *p)
{
    struct rr_header *h;

    maker_open(&m);
    null_call(&m, RR_OUT, 1);
    h = header(1, RR_MSG);
    rr_open_reply(h);
    rr_add_segment(h, (struct rr_segment){ 1, 0, 3 });
    send_message(&m, RR_BACK, h, reply3(1));
}

/* ---- The rows ---- */

#define WHOLE_READ .count = 1001, .offered = 1004, .result = 1001, .placed = 1001, .returned = 1001
#define WHOLE_WRITE .count = 1001, .chunk = 1001, .position = WRITE3_POSITION
#define SHORT .call_position = -1

static const struct scenario_row rows[] = {
    { NULL, "READ with a Write chunk", READ(WHOLE_READ) },
    { NULL, "READ at the end of a file",
      READ(.count = 4000, .offered = 4000, .result = 100, .placed = 100, .returned = 100) },
    { NULL, "the same, with unused segments left out",
      READ(.count = 4000, .offered = 4000, .result = 100, .placed = 100, .returned = 100,
           .draft07 = true) },
    { NULL, "READ of nothing", READ(.count = 4000, .offered = 4000) },
    { NULL, "READ without a chunk",
      READ(.count = 500, .offered = -1, .result = 500, .inlined = 500) },
    { NULL, "READ with an empty Write chunk",
      READ(.count = 500, .offered = 500, .empty = true, .result = 500, .inlined = 500) },
    { NULL, "octets placed into a chunk that comes back unused (RPC-31)",
      READ(.count = 4000, .offered = 4000, .placed = 500) },
    { NULL, "WRITE with a Read chunk", WRITE(WHOLE_WRITE) },
    { NULL, "WRITE with a padded Read chunk",
      WRITE(.count = 1001, .chunk = 1004, .position = WRITE3_POSITION) },
    { NULL, "PUT with a Read chunk: flag, union and count stay", PUT(0) },
    { NULL, "a Long Call and a Long Reply",
      LONG(.call_proc = RR_NOMSG, .reply_proc = RR_NOMSG, .reply_chunk = true,
           .reply_octets = 8000) },
    { NULL, "a Reply chunk that is not used", LONG(SHORT, .reply_chunk = true) },
    { NULL, "as many Calls as credits", all_credits },
    { NULL, "callbacks", callbacks },
    { NULL, "a message above 1024 octets is too long for a receive", receive_small_enough },
    { NULL, "no invalidation without R", run_without_r, &(const struct read3){ WHOLE_READ } },
    { NULL, "no private data", run_no_private, &(const struct read3){ WHOLE_READ } },

    { "RPC-01", "one Call more than credits", one_too_many },
    { "RPC-02", "a grant of zero", zero_grant },
    { "RPC-03", "no receive for a Call within the grant", no_receive_at_responder },
    { "RPC-04", "no receive for a Reply", no_receive_at_requester },
    { "RPC-05", "two Calls before the first Reply", two_before_reply },
    { "RPC-06", "1000 octets are too long for a receive", receive_too_small },
    { "RPC-07", "a Read chunk for GETATTR", WRITE(.chunk = 100, .position = 40, .getattr = true) },
    { "RPC-07", "a Read chunk elsewhere in a WRITE",
      WRITE(.count = 1001, .chunk = 1001, .position = WRITE3_POSITION - 8) },
    { "RPC-07", "a Write chunk is used for GETATTR",
      READ(.offered = 200, .placed = 84, .returned = 84, .getattr = true) },
    { "RPC-08", "the count of an argument goes into its Read chunk",
      WRITE(.count = 1001, .chunk = 1005, .position = WRITE3_POSITION - 4, .uncounted = true) },
    { "RPC-07", "a Read chunk for a PUT without data", PUT(.nothing = true) },
    { "RPC-08", "the count of optional data goes into their Read chunk", PUT(.moved = 4) },
    { "RPC-09", "the flag of optional data goes into their Read chunk", PUT(.moved = 8) },
    { "RPC-10", "a union goes into a Read chunk", PUT(.moved = 12) },
    { "RPC-11", "the pad of a reduced argument stays", WRITE(WHOLE_WRITE, .pad = 3) },
    { "RPC-11", "the pad of a reduced result stays", READ(WHOLE_READ, .inlined = 3) },
    { "RPC-12", "a Position that is no multiple of 4",
      WRITE(.count = 1001, .chunk = 1001, .position = WRITE3_POSITION + 2) },
    { "RPC-12", "a Position behind the stream",
      WRITE(.count = 1001, .chunk = 1001, .position = 4 * WRITE3_POSITION) },
    { "RPC-13", "a Read chunk that is too short",
      WRITE(.count = 1001, .chunk = 1000, .position = WRITE3_POSITION) },
    { "RPC-13", "a Read chunk that is too long",
      WRITE(.count = 1001, .chunk = 1008, .position = WRITE3_POSITION) },
    { "RPC-14", "a Write chunk that is too small",
      READ(.count = 1001, .offered = 1000, .result = 800, .placed = 800, .returned = 800) },
    { "RPC-15", "a Write chunk comes back with another STag",
      READ(WHOLE_READ, .back_stag = 0x4444, .stag = WRITE_STAG) },
    { "RPC-15", "a Write chunk comes back with a wrong length",
      READ(.count = 1001, .offered = 1004, .result = 800, .placed = 800, .returned = 900) },
    { "RPC-15", "less was placed than came back",
      READ(.count = 1001, .offered = 1004, .result = 800, .placed = 700, .returned = 800) },
    { "RPC-15", "a Write chunk that nobody offered", chunk_too_many },
    { "RPC-16", "a pad is placed into a Write chunk",
      READ(.count = 1001, .offered = 1004, .result = 1001, .placed = 1004, .returned = 1001) },
    { "RPC-16", "a Write chunk comes back with a pad",
      READ(.count = 1001, .offered = 1004, .result = 1001, .placed = 1004, .returned = 1004) },
    { "RPC-17", "a Call above the threshold", LONG(SHORT, .call_more = 5000) },
    { "RPC-18", "a Long Call at Position 4", LONG(.call_proc = RR_NOMSG, .call_position = 4) },
    { "RPC-18", "Position 0 in RDMA_MSG", LONG(.call_position = 0) },
    { "RPC-19", "a Reply above the threshold, with a Reply chunk",
      LONG(SHORT, .reply_chunk = true, .reply_octets = 5000) },
    { "RPC-20", "a Long Call without its pad", LONG(.call_proc = RR_NOMSG, .call_more = 3) },
    { "RPC-20", "a Long Reply without its pad",
      LONG(SHORT, .reply_proc = RR_NOMSG, .reply_chunk = true, .reply_octets = 6001) },
    { "RPC-21", "a flag of 2", PAIR(BAD_FLAG, ERR_CHUNK) },
    { "RPC-21", "27 octets", PAIR("00000007 00000001 00000008 00000000 00000000 00000000 000000") },
    { "RPC-22", "another XID in the RPC message", other_xid },
    { "RPC-22", "RDMA_MSG without an RPC message", no_rpc_message },
    { "RPC-22", "another XID in the Long Call and the Long Reply",
      LONG(.call_proc = RR_NOMSG, .reply_proc = RR_NOMSG, .reply_chunk = true, .rpc_xid = 1) },
    { "RPC-23", "version 2", PAIR(VERSION_2, ERR_VERS) },
    { "RPC-24", "RDMA_NOMSG without a Read list", LONG(SHORT, .call_proc = RR_NOMSG) },
    { "RPC-24", "RDMA_NOMSG without a Reply chunk", LONG(SHORT, .reply_proc = RR_NOMSG) },
    { "RPC-25", "RDMA_ERROR from a requester", error_from_requester },
    { "RPC-27", "a Read list in a Reply", read_list_in_reply },
    { "RPC-28", "the data are inline",
      READ(.count = 1000, .offered = 1000, .result = 1000, .inlined = 1000) },
    { "RPC-29", "the second Write chunk is used first", READ(WHOLE_READ, .spare = true) },
    { "RPC-30", "an unused Write chunk does not come back",
      READ(.count = 4000, .offered = 4000, .no_back = true) },
    { "RPC-32", "an empty Write chunk comes back with segments",
      READ(.count = 500, .offered = 500, .empty = true, .result = 500, .inlined = 500,
           .back_stag = WRITE_STAG) },
    { "RPC-33", "READ of more than a Reply can hold",
      READ(.count = 5000, .offered = -1, .result = 500, .inlined = 500) },
    { "RPC-34", "the Reply chunk does not come back",
      LONG(SHORT, .reply_chunk = true, .no_back = true) },
    { "RPC-34", "the Reply chunk comes back with another STag",
      LONG(SHORT, .reply_proc = RR_NOMSG, .reply_chunk = true, .reply_octets = 6000,
           .back_stag = 0x4444) },
    { "RPC-34", "the Reply chunk comes back with a wrong length",
      LONG(SHORT, .reply_proc = RR_NOMSG, .reply_chunk = true, .reply_octets = 6000,
           .returned_more = 8) },
    { "RPC-34", "a Reply chunk that nobody offered", unknown_reply_chunk },
    { "RPC-41", "RDMA_MSGP",
      PAIR("00000007 00000001 00000008 00000002 00000000 00000000 00000000", ERR_CHUNK) },
    { "RPC-42", "RDMA_DONE",
      PAIR("00000007 00000001 00000008 00000003 00000000 00000000 00000000") },
    { "RPC-43", "a Reply above the threshold, without a Reply chunk",
      LONG(SHORT, .reply_octets = 5000) },
    { "RPC-43", "a Reply above the default threshold", run_small,
      &(const struct long3){ SHORT, .reply_octets = 1000 } },
    { "PVT-02", "a reserved bit", reserved_bits },
    { "PVT-04", "an STag of nobody is invalidated",
      READ(WHOLE_READ, .opcode = SG_OP_SEND_INV, .stag = 0x4444) },
    { "PVT-04", "a Call invalidates", call_invalidates },
    { "PVT-05", "invalidation without R of the server", run_without_r,
      &(const struct read3){ WHOLE_READ, .opcode = SG_OP_SEND_INV, .stag = WRITE_STAG } },
    { "PVT-05", "invalidation without private data of the client", run_no_private,
      &(const struct read3){ WHOLE_READ, .opcode = SG_OP_SEND_SE_INV, .stag = WRITE_STAG } },
};

/*
 * Rules about the answer to something that breaks a rule itself: both are named, and nothing else.
 */
static const struct scenario_row answers[] = {
    { "RPC-21 RPC-35", "a short message is answered",
      PAIR("00000007 00000001 00000008 00000000 00000000 00000000 000000", ERR_CHUNK) },
    { "RPC-25 RPC-26", "an RDMA_ERROR is answered", error_answered },
    { "RPC-21 RPC-36", "a bad Call gets no answer", PAIR(BAD_FLAG) },
    { "RPC-21 RPC-36", "a bad Call gets a Reply",
      PAIR(BAD_FLAG, "00000007 00000001 00000008 00000000 00000000 00000000 00000000"
                     "00000007 00000001 00000000 00000000 00000000 00000000") },
    { "RPC-21 RPC-36", "a bad Call gets an error of another version",
      PAIR(BAD_FLAG, "00000007 00000003 00000008 00000004 00000002") },
    { "RPC-21 RPC-36", "a bad Call gets an error with another XID",
      PAIR(BAD_FLAG, "00000008 00000001 00000008 00000004 00000002") },
    { "RPC-21 RPC-37", "a bad Reply is answered", bad_reply_answered },
    { "RPC-23 RPC-38", "another version gets ERR_CHUNK",
      PAIR(VERSION_2, "00000007 00000002 00000008 00000004 00000002") },
    { "RPC-23 RPC-38", "another version gets a range without 1",
      PAIR(VERSION_2, "00000007 00000002 00000008 00000004 00000001 00000002 00000003") },
    { "RPC-21 RPC-39", "a header that is no XDR gets ERR_VERS",
      PAIR(BAD_FLAG, "00000007 00000001 00000008 00000004 00000001 00000001 00000001") },
    { "RPC-42", "RDMA_DONE is answered",
      PAIR("00000007 00000001 00000008 00000003 00000000 00000000 00000000", ERR_CHUNK) },
    { "RPC-21", "a bad Reply is dropped", bad_reply_dropped },
};

/* The ids of the rules that the report counted, in their order. */
static char *broken(void)
{
    GString *ids = g_string_new(NULL);

    for (unsigned i = 0; i < RR_RULES; i++) {
        if (m.report.broken[i]) {
            g_string_append_printf(ids, "%s%s", ids->len ? " " : "", rr_rule(i)->id);
        }
    }
    return g_string_free(ids, false);
}

static void check(const struct scenario_row *row)
{
    char *found;

    T_CONTEXT("%s", row->what);
    maker_init(&m);
    row->run(row->p);
    maker_finish(&m);
    found = broken();
    if (strcmp(found, row->id ? row->id : "") != 0) {
        printf("# %s\n", m.out->str);
    }
    T_SHOWS(row->id) {
        T_EQ_STR(found, row->id ? row->id : "");
    }
    g_free(found);
    maker_free(&m);
}

static void sound_and_broken(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        check(&rows[i]);
    }
}

static void wrong_answers(void)
{
    for (size_t i = 0; i < SG_ARRAY_SIZE(answers); i++) {
        check(&answers[i]);
    }
}

static void settings_change(void)
{
    static const struct read3 whole = { WHOLE_READ };

    maker_init(&m);
    reconnect(&whole);
    maker_finish(&m);
    T_SHOWS("PVT-01") {
        T_EQ_U64(m.report.connections, 3);
        T_EQ_U64(m.report.transactions, 3);
        T_EQ_U64(m.report.findings, 0);
        T_NOT_NULL(strstr(m.out->str, "to the server 1024, to the client 1024"));
    }
    maker_free(&m);
}

/* Each rule that the table says decode judges has a row above. */
static void every_rule(void)
{
    for (unsigned rule = 0; rule < RR_RULES; rule++) {
        const char *id = rr_rule(rule)->id;
        bool found = rr_rule(rule)->judge != RR_DECODE;

        for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
            found |= rows[i].id && strcmp(rows[i].id, id) == 0;
        }
        for (size_t i = 0; i < SG_ARRAY_SIZE(answers); i++) {
            found |= strstr(answers[i].id, id) != NULL;
        }
        T_CONTEXT("%s", id);
        T_TRUE(found);
    }
}

static const struct t_case cases[] = {
    { "sound exchanges, and each rule broken in turn", sound_and_broken },
    { "wrong answers to what is wrong", wrong_answers },
    { "settings that change with a reconnect", settings_change },
    { "each rule has a breach", every_rule },
};

T_MAIN(cases)
