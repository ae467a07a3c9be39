/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Atomic Operations, requester and responder (RFC 7306 section 5).
 *
 * A request is one segment, all header, on queue 1; it takes its MSN and its place among the
 * outstanding requests as a Read Request does.  The response arrives on queue 3, in the order of
 * requests, so it belongs to our oldest request of that queue.  The identifier, which the peer
 * copies, must match as well; we use the MSN.
 *
 * As responder we check the form when a request arrives, and everything else, including alignment,
 * when it is executed (exec.c): the rules require this in the order of requests, and memory may
 * change its owner in between.  A refused operation leaves the memory unchanged and ends the
 * stream (section 8.2).
 */
#include "proto/conn.h"

size_t atomic_send_request(struct sg_conn *c)
{
    const struct sg_msg *m = &c->tx.msg;
    const struct sg_atomic_args *a = &m->atomic.args;
    const struct conn_orq entry = {
        .kind = (uint8_t)m->kind,
        .id = c->msn.tx[SG_QN_REQUEST],
    };
    bool add = m->kind == SG_MSG_FETCH_ADD;
    const struct sg_atomic_req r = {
        .op = add ? SG_ATOMIC_FETCH_ADD : SG_ATOMIC_CMP_SWAP,
        .id = entry.id,
        .stag = m->atomic.stag,
        .to = m->atomic.to,
        .data = a->data,
        .mask = a->mask,
        /* Section 5.2.1: FetchAdd compares nothing and sends these values. */
        .cmp = add ? 0 : a->cmp,
        .cmp_mask = add ? UINT64_MAX : a->cmp_mask,
    };
    const struct sg_ddp_hdr h = {
        .last = true,
        .version = SG_DDP_VERSION,
        .ulp_ctrl = rdmap_ctrl(SG_OP_ATOMIC_REQ),
        .qn = SG_QN_REQUEST,
        .msn = c->msn.tx[SG_QN_REQUEST],
    };
    uint8_t payload[SG_ATOMIC_REQ_LEN];
    struct seg_out out;
    size_t n;

    out.iov[1].iov_base = payload;
    out.iov[1].iov_len = sg_atomic_req_emit(&r, payload);
    n = fpdu_send(c, &out, &h, 1, sizeof(payload));
    if (n) {
        c->msn.tx[SG_QN_REQUEST]++;
        requests_push(c, &entry);
    }
    return n;
}

int atomic_place_response(struct sg_conn *c, struct ddp_seg *s)
{
    struct conn_orq *r = requests_oldest_untagged(c);
    struct sg_atomic_resp resp;

    if (!is_atomic((enum sg_msg_kind)r->kind)) { /* it exists: ddp_rx.c, check_buffer() */
        return SG_TERM_MPE_RESP_MISMATCH;
    }
    if (sg_atomic_resp_parse(sg_span_of(s->p, s->n), &resp) != SG_WIRE_OK) {
        return SG_TERM_MESSAGE_LENGTH;
    }
    if (resp.id != r->id) {
        return SG_TERM_ATOMIC_RESP_ID;
    }
    c->msn.rx[SG_QN_RESPONSE]++;
    r->original = resp.value;
    requests_answered(c, r);
    return SEG_OK;
}

int atomic_place_request(struct sg_conn *c, struct ddp_seg *s)
{
    struct conn_irrq r = { .h = s->h, .seg_len = s->seg_len };
    struct sg_atomic_req req;

    if (sg_atomic_req_parse(sg_span_of(s->p, s->n), &req) != SG_WIRE_OK) {
        return SG_TERM_MESSAGE_LENGTH;
    }
    if (req.op != SG_ATOMIC_FETCH_ADD && req.op != SG_ATOMIC_CMP_SWAP) {
        return SG_TERM_ATOMIC_OPCODE;
    }
    r.kind = req.op == SG_ATOMIC_FETCH_ADD ? SG_MSG_FETCH_ADD : SG_MSG_CMP_SWAP;
    r.atomic_id = req.id;
    r.atomic = (struct sg_atomic_call){
        .kind = (enum sg_msg_kind)r.kind,
        .msn = s->h.msn,
        .stag = req.stag,
        .to = req.to,
        .args = { .data = req.data, .mask = req.mask, .cmp = req.cmp, .cmp_mask = req.cmp_mask },
    };
    c->msn.rx[SG_QN_REQUEST]++;
    c->e->stats.rx_atomics++;
    requests_accept(c, &r);
    return SEG_OK;
}

enum sg_exec_result atomic_execute(struct sg_conn *c, enum sg_mem_status *why, uint64_t *again_ns)
{
    const struct conn_irrq *r = requests_head(c);
    struct sg_atomic_resp resp = { .id = r->atomic_id };
    enum sg_exec_result result;

    result = c->e->ops->atomic(c->user, &r->atomic, &resp.value, why, &c->exec.token, again_ns);
    if (result == SG_EXEC_DONE && exec_alive(c)) {
        c->exec.len = (uint8_t)sg_atomic_resp_emit(&resp, c->exec.response);
    }
    return result;
}
