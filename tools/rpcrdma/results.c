/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The DDP-eligible results of Replies: READ and READLINK of NFS (RFC 8267), and those of echo.h.
 * A COMPOUND is followed as far as its operations are known here; what comes behind stays inline.
 */
#include "echo.h"
#include "upstream.h"

enum { NFS3_READLINK = 5, NFS3_READ = 6, NFS3_ATTRIBUTES = 84, OPS_MAX = 64 };

enum nfs4_op {
    OP_ACCESS = 3,
    OP_GETATTR = 9,
    OP_GETFH = 10,
    OP_LOOKUP = 15,
    OP_PUTFH = 22,
    OP_PUTROOTFH = 24,
    OP_READ = 25,
    OP_READLINK = 27,
    OP_RESTOREFH = 31,
    OP_SAVEFH = 32,
    OP_SEQUENCE = 53,
    SEQUENCE_RESULT = 36,
};

/* Counted octets, which are marked. */
static void mark(struct rr_stream *s, struct rr_reader *in)
{
    uint32_t len = rr_get_word(in);
    size_t at = in->at;

    rr_skip(in, len);
    if (in->fine && s->items < RR_STREAM_ITEMS) {
        s->item[s->items++] = (struct rr_reducible){ (uint32_t)at, len };
    }
}

static void find_echo(struct rr_stream *s, const struct rr_rpc *call, struct rr_reader *in)
{
    if (call->proc == RR_ECHO_READ || call->proc == RR_ECHO_TWO) {
        mark(s, in);
    }
    if (call->proc == RR_ECHO_TWO) {
        mark(s, in);
    }
}

static void find_nfs3(struct rr_stream *s, const struct rr_rpc *call, struct rr_reader *in)
{
    if ((call->proc != NFS3_READ && call->proc != NFS3_READLINK) || rr_get_word(in) != 0) {
        return;
    }
    if (rr_get_word(in)) {
        rr_skip(in, NFS3_ATTRIBUTES);
    }
    if (call->proc == NFS3_READ) {
        rr_get_word(in); /* count */
        rr_get_word(in); /* end of file */
    }
    mark(s, in);
}

/* The result of an operation that succeeded; false: what follows cannot be found. */
static bool operation(struct rr_stream *s, struct rr_reader *in, uint32_t op)
{
    switch (op) {
    case OP_SEQUENCE:
        rr_skip(in, SEQUENCE_RESULT);
        return true;
    case OP_PUTFH:
    case OP_PUTROOTFH:
    case OP_LOOKUP:
    case OP_SAVEFH:
    case OP_RESTOREFH:
        return true;
    case OP_ACCESS:
        rr_skip(in, 8);
        return true;
    case OP_GETFH:
        rr_skip(in, rr_get_word(in));
        return true;
    case OP_GETATTR:
        rr_skip(in, 4 * (size_t)rr_get_word(in));
        rr_skip(in, rr_get_word(in));
        return true;
    case OP_READ:
        rr_get_word(in); /* end of file */
        mark(s, in);
        return true;
    case OP_READLINK:
        mark(s, in);
        return true;
    default:
        return false;
    }
}

static void find_compound(struct rr_stream *s, struct rr_reader *in)
{
    uint32_t count;

    rr_get_word(in); /* status: that of the last operation, whose result may be missing */
    rr_skip(in, rr_get_word(in));
    count = rr_get_word(in);
    for (uint32_t i = 0; i < SG_MIN(count, OPS_MAX) && in->fine; i++) {
        uint32_t op = rr_get_word(in), status = rr_get_word(in);

        if (status || !operation(s, in, op)) {
            return;
        }
    }
}

void rr_results_find(struct rr_stream *reply, struct sg_span call)
{
    struct rr_rpc asked, answered;
    struct rr_reader in = { .in = sg_span_of(reply->octets, reply->len), .fine = true };

    reply->items = 0;
    if (!rr_rpc_parse(call, &asked) || asked.type != RR_CALL || !rr_rpc_parse(in.in, &answered) ||
        answered.type != RR_REPLY || !answered.accepted) {
        return;
    }
    in.at = answered.body;
    if (asked.prog == RR_ECHO) {
        find_echo(reply, &asked, &in);
    } else if (asked.prog == RR_PROG_NFS && asked.vers == 3) {
        find_nfs3(reply, &asked, &in);
    } else if (asked.prog == RR_PROG_NFS && asked.vers == 4 && asked.proc == 1) {
        find_compound(reply, &in);
    }
}
