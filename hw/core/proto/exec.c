/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of the peer that are executed once and then answered on queue 3: Atomics (RFC 7306
 * section 5), Flush, Verify and Atomic Write (draft-talpey-rdma-commit).
 *
 * They wait in one queue with the peer's Reads (requests.c), and only the oldest is ever
 * executed: an Atomic sees the effects of all earlier requests, and of no later one (RFC 7306
 * section 5.4, rules 5 and 8).  Execution takes place in sg_conn_transmit(), right before the
 * response could be sent.  Verbs may ask for time (SG_EXEC_LATER): then the queue waits for the
 * timer, but our own messages do not.  If the stream refuses the response of an executed request,
 * the request stays executed, and the same response is sent later.
 *
 * The differences between the kinds are in mpe_resp.c and atomic_msg.c.
 */
#include "proto/conn.h"

static enum sg_term_cond cond_of(const struct conn_irrq *r, enum sg_exec_result result,
                                 enum sg_mem_status why)
{
    enum sg_term_cond failed =
        is_atomic((enum sg_msg_kind)r->kind) ? SG_TERM_ATOMIC_FAILED : SG_TERM_MPE_FAILED;

    switch (result) {
    case SG_EXEC_UNALIGNED:
        return SG_TERM_ATOMIC_MISALIGNED;
    case SG_EXEC_MEM:
        /* Memory that does not respond is no fault of the peer's, but its request has failed. */
        return why == SG_MEM_FAULT ? failed : term_of_source(why);
    default:
        return failed;
    }
}

static bool execute(struct sg_conn *c)
{
    const struct conn_irrq *r = requests_head(c);
    bool atomic = is_atomic((enum sg_msg_kind)r->kind);
    enum sg_mem_status why = SG_MEM_OK;
    uint64_t again_ns = SG_NEVER;
    enum sg_exec_result result;

    c->exec.len = 0;
    c->rx.now = r->ordinal;
    result = atomic ? atomic_execute(c, &why, &again_ns) : mpe_execute(c, &why, &again_ns);
    if (!exec_alive(c)) {
        return false;
    }
    if (result == SG_EXEC_LATER) {
        timers_exec_later(c, again_ns);
        return false;
    }
    if (result == SG_EXEC_CLOSED) {
        close_owner_left(c);
        return false;
    }
    if (result != SG_EXEC_DONE) {
        term_raise(c, cond_of(r, result, why), &r->h, r->seg_len, NULL);
        return false;
    }
    c->exec.done = atomic || mpe_executed(c);
    return c->exec.done;
}

bool exec_ready(struct sg_conn *c)
{
    return !c->exec.waiting && (c->exec.done || execute(c));
}

size_t exec_send_response(struct sg_conn *c)
{
    static const uint8_t ops[SG_MSG_KINDS] = {
        [SG_MSG_FLUSH] = SG_OP_FLUSH_RESP,
        [SG_MSG_VERIFY] = SG_OP_VERIFY_RESP,
        [SG_MSG_ATOMIC_WRITE] = SG_OP_ATOMIC_WRITE_RESP,
        [SG_MSG_FETCH_ADD] = SG_OP_ATOMIC_RESP,
        [SG_MSG_CMP_SWAP] = SG_OP_ATOMIC_RESP,
    };
    const struct conn_irrq r = *requests_head(c);
    const struct sg_ddp_hdr h = {
        .last = true,
        .version = SG_DDP_VERSION,
        .ulp_ctrl = rdmap_ctrl(ops[r.kind]),
        .qn = SG_QN_RESPONSE,
        .msn = c->msn.tx[SG_QN_RESPONSE],
    };
    struct seg_out out;
    size_t n;

    out.iov[1].iov_base = c->exec.response;
    out.iov[1].iov_len = c->exec.len;
    n = fpdu_send(c, &out, &h, c->exec.len ? 1 : 0, c->exec.len);
    if (!n) {
        return 0;
    }
    c->msn.tx[SG_QN_RESPONSE]++;
    c->tx.begun++;
    c->exec = (struct conn_exec){ 0 };
    requests_pop(c);
    requests_tell_answered(c, &r, c->tx.begun);
    return conn_dead(c) ? 0 : n;
}
