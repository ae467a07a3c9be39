/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "echo.h"

void rr_echo_start(struct rr_echo_memory *memory)
{
    for (unsigned i = 0; i < RR_ECHO_MEMORY; i++) {
        memory->octets[i] = (uint8_t)(i * 7 + (i >> 8));
    }
}

static bool read_memory(struct rr_echo_memory *memory, struct rr_reader *in, struct rr_stream *out)
{
    uint32_t offset = rr_get_word(in), count = rr_get_word(in);

    if (!in->fine || !sg_range_ok(offset, count, RR_ECHO_MEMORY)) {
        return false;
    }
    rr_put_eligible(out, sg_span_of(memory->octets + offset, count));
    return true;
}

static bool write_octets(struct rr_echo_memory *memory, uint32_t offset, struct rr_reader *in,
                         struct rr_stream *out)
{
    uint32_t count = rr_get_word(in);
    const uint8_t *octets = sg_span_get(in->in, in->at, count);

    rr_skip(in, count);
    if (!in->fine || in->at != in->in.len || !sg_range_ok(offset, count, RR_ECHO_MEMORY)) {
        return false;
    }
    if (count) {
        memcpy(memory->octets + offset, octets, count);
    }
    rr_put_word(out, count);
    return true;
}

static bool write_memory(struct rr_echo_memory *memory, struct rr_reader *in, struct rr_stream *out)
{
    uint32_t offset = rr_get_word(in);

    return write_octets(memory, offset, in, out);
}

static bool put(struct rr_echo_memory *memory, struct rr_reader *in, struct rr_stream *out)
{
    uint32_t offset = rr_get_word(in), kind = rr_get_word(in);
    uint32_t flag = kind == RR_PUT_DATA ? rr_get_word(in) : 0;

    if (!in->fine || kind > RR_PUT_DATA || flag > 1) {
        return false;
    }
    if (flag) {
        return write_octets(memory, offset, in, out);
    }
    rr_put_word(out, 0);
    return in->at == in->in.len;
}

static bool list(struct rr_echo_memory *memory, struct rr_reader *in, struct rr_stream *out)
{
    uint32_t count = rr_get_word(in);

    if (!in->fine || count > RR_ECHO_LIST_MAX) {
        return false;
    }
    rr_put_word(out, count);
    for (uint32_t i = 0; i < count; i++) {
        rr_put_word(out, i);
    }
    return true;
}

static bool read_twice(struct rr_echo_memory *memory, struct rr_reader *in, struct rr_stream *out)
{
    uint32_t first = rr_get_word(in), second = rr_get_word(in);

    if (!in->fine || first > RR_ECHO_MEMORY || second > RR_ECHO_MEMORY) {
        return false;
    }
    rr_put_eligible(out, sg_span_of(memory->octets, first));
    rr_put_eligible(out, sg_span_of(memory->octets, second));
    return true;
}

static bool null(struct rr_echo_memory *memory, struct rr_reader *in, struct rr_stream *out)
{
    return true;
}

void rr_echo_answer(struct rr_echo_memory *memory, const struct rr_rpc *rpc, struct sg_span call,
                    struct rr_stream *reply)
{
    static bool (*const procs[RR_ECHO_PROCS])(struct rr_echo_memory *, struct rr_reader *,
                                              struct rr_stream *) = {
        [RR_ECHO_NULL] = null, [RR_ECHO_READ] = read_memory, [RR_ECHO_WRITE] = write_memory,
        [RR_ECHO_LIST] = list, [RR_ECHO_TWO] = read_twice,   [RR_ECHO_PUT] = put,
    };
    struct rr_reader in = { .in = call, .at = rpc->body, .fine = true };

    if (rpc->prog != RR_ECHO) {
        rr_stream_reply(reply, rpc->xid, RR_PROG_UNAVAIL);
    } else if (rpc->vers != RR_ECHO_VERSION) {
        rr_stream_reply(reply, rpc->xid, RR_PROG_MISMATCH);
        rr_put_word(reply, RR_ECHO_VERSION);
        rr_put_word(reply, RR_ECHO_VERSION);
    } else if (rpc->proc >= RR_ECHO_PROCS) {
        rr_stream_reply(reply, rpc->xid, RR_PROC_UNAVAIL);
    } else {
        rr_stream_reply(reply, rpc->xid, RR_SUCCESS);
        if (!procs[rpc->proc](memory, &in, reply)) {
            rr_stream_reply(reply, rpc->xid, RR_GARBAGE_ARGS);
        }
    }
}
