/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program of `rpcrdma serve`: what its PUT writes, and which Calls it does not take. */
#include "echo.h"
#include "tap.h"

enum { XID = 7, OFFSET = 100, COUNT = 10, FILL = 0x5a };

static struct rr_echo_memory memory, before;
static struct rr_stream call, reply;

/* The words of a PUT, and then @octets octets of data.  Returns the Reply's status. */
static uint32_t put(const uint32_t *word, unsigned words, size_t octets, uint32_t *taken)
{
    uint8_t data[COUNT];
    struct rr_reader in;
    struct rr_rpc rpc;

    rr_echo_start(&memory);
    before = memory;
    memset(data, FILL, sizeof(data));
    rr_stream_call(&call, XID, RR_ECHO, RR_ECHO_VERSION, RR_ECHO_PUT);
    for (unsigned i = 0; i < words; i++) {
        rr_put_word(&call, word[i]);
    }
    rr_put_fixed(&call, sg_span_of(data, octets));
    T_TRUE(rr_rpc_parse(sg_span_of(call.octets, call.len), &rpc));
    rr_echo_answer(&memory, &rpc, sg_span_of(call.octets, call.len), &reply);

    in = (struct rr_reader){ .in = sg_span_of(reply.octets, reply.len), .fine = true };
    T_EQ_U64(sg_get_be32(reply.octets), XID);
    T_TRUE(rr_rpc_parse(in.in, &rpc));
    in.at = rpc.body;
    *taken = rpc.accepted ? rr_get_word(&in) : 0;
    T_TRUE(in.fine && in.at == reply.len);
    return rpc.accepted ? RR_SUCCESS : sg_get_be32(reply.octets + rpc.body - 4);
}

static void put__writes_what_is_there(void)
{
    static const struct {
        const char *what;
        uint32_t word[4]; /* offset, kind, flag, count */
        unsigned words;
        size_t octets;
        uint32_t status, taken;
    } rows[] = {
        { "data", { OFFSET, RR_PUT_DATA, 1, COUNT }, 4, COUNT, RR_SUCCESS, COUNT },
        { "data of no octets", { OFFSET, RR_PUT_DATA, 1, 0 }, 4, 0, RR_SUCCESS, 0 },
        { "no data", { OFFSET, RR_PUT_DATA, 0 }, 3, 0, RR_SUCCESS, 0 },
        { "nothing", { OFFSET, RR_PUT_NOTHING }, 2, 0, RR_SUCCESS, 0 },
        { "nothing, and octets", { OFFSET, RR_PUT_NOTHING }, 2, COUNT, RR_GARBAGE_ARGS, 0 },
        { "no data, and octets", { OFFSET, RR_PUT_DATA, 0 }, 3, COUNT, RR_GARBAGE_ARGS, 0 },
        { "a kind of 2", { OFFSET, 2, 1, COUNT }, 4, COUNT, RR_GARBAGE_ARGS, 0 },
        { "a flag of 2", { OFFSET, RR_PUT_DATA, 2, COUNT }, 4, COUNT, RR_GARBAGE_ARGS, 0 },
        { "no flag", { OFFSET, RR_PUT_DATA }, 2, 0, RR_GARBAGE_ARGS, 0 },
        { "fewer octets", { OFFSET, RR_PUT_DATA, 1, COUNT }, 4, 4, RR_GARBAGE_ARGS, 0 },
        { "behind the memory",
          { RR_ECHO_MEMORY - 1, RR_PUT_DATA, 1, COUNT },
          4,
          COUNT,
          RR_GARBAGE_ARGS,
          0 },
    };

    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        uint32_t taken;

        T_CONTEXT("%s", rows[i].what);
        T_EQ_INT(put(rows[i].word, rows[i].words, rows[i].octets, &taken), rows[i].status);
        T_EQ_INT(taken, rows[i].taken);
        memset(before.octets + OFFSET, FILL, rows[i].taken);
        T_EQ_INT(memcmp(&memory, &before, sizeof(memory)), 0);
    }
}

static const struct t_case cases[] = {
    { "PUT writes what is there, and takes nothing else", put__writes_what_is_there },
};

T_MAIN(cases)
