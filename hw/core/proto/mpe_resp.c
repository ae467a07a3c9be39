/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flush, Verify and Atomic Write as responder (draft-talpey-rdma-commit).
 *
 * An arriving request is checked for form and put in the queue of the peer's requests, behind the
 * earlier Reads and requests; exec.c says when it is executed and answered.  This is the strict
 * order of -02 section 2.1.2, and more than the drafts require for Reads: an earlier Read has read
 * its source, a later one sees the outcome.  Earlier Writes were placed when they arrived
 * (rdmap_rx.c); verbs and the host complete them beyond the adapter before they execute a request.
 *
 * Failure of any kind is a Terminate with the DDP header of the request and no RDMAP header (-02
 * section 4.1, rules 2 and 3); later requests are never examined.
 *
 * Open questions of the drafts, and the reasons for our answers: docs/protocol.md.
 */
#include "proto/conn.h"

static int parse_flush(struct sg_conn *c, const struct ddp_seg *s, struct sg_mpe_req *r)
{
    uint32_t known = SG_FLUSH_PERSISTENT | SG_FLUSH_GLOBAL;
    struct sg_flush_req f;

    if (sg_flush_req_parse(sg_span_of(s->p, s->n), &f) != SG_WIRE_OK) {
        return SG_TERM_MESSAGE_LENGTH;
    }
    if (c->setup.mpe_draft == SG_MPE_DRAFT_02) {
        known |= SG_FLUSH_REGION;
    }
    if (f.flags & ~known) {
        return SG_TERM_MPE_FLAGS; /* we cannot confirm a flag that we do not know */
    }
    r->kind = SG_MSG_FLUSH;
    r->stag = f.stag;
    r->to = f.to;
    r->length = f.length;
    r->args.flags = f.flags;
    return SEG_OK;
}

static int parse_verify(struct sg_conn *c, const struct ddp_seg *s, struct sg_mpe_req *r)
{
    struct sg_verify_req v;

    (void)c;
    if (sg_verify_req_parse(sg_span_of(s->p, s->n), &v) != SG_WIRE_OK) {
        return SG_TERM_MESSAGE_LENGTH;
    }
    r->kind = SG_MSG_VERIFY;
    r->stag = v.stag;
    r->to = v.to;
    r->length = v.length;
    r->args.hash.len = v.hash_len;
    memcpy(r->args.hash.octets, v.hash, v.hash_len);
    return SEG_OK;
}

static int parse_atomic_write(struct sg_conn *c, const struct ddp_seg *s, struct sg_mpe_req *r)
{
    struct sg_atomic_write_req a;

    (void)c;
    if (sg_atomic_write_req_parse(sg_span_of(s->p, s->n), &a) != SG_WIRE_OK) {
        return SG_TERM_MESSAGE_LENGTH;
    }
    if (a.length != SG_ATOM_LEN) {
        return SG_TERM_MPE_LENGTH;
    }
    r->kind = SG_MSG_ATOMIC_WRITE;
    r->stag = a.stag;
    r->to = a.to;
    r->length = a.length;
    sg_put_le64(r->args.atom, a.data); /* see mpe_req.c */
    return SEG_OK;
}

static void count(struct sg_engine_stats *st, enum sg_msg_kind kind)
{
    switch (kind) {
    case SG_MSG_FLUSH:
        st->rx_flushes++;
        break;
    case SG_MSG_VERIFY:
        st->rx_verifies++;
        break;
    default:
        st->rx_atomic_writes++;
        break;
    }
}

int mpe_place_request(struct sg_conn *c, struct ddp_seg *s)
{
    static int (*const parse[])(struct sg_conn *c, const struct ddp_seg *s,
                                struct sg_mpe_req *r) = {
        [SG_OP_FLUSH_REQ] = parse_flush,
        [SG_OP_VERIFY_REQ] = parse_verify,
        [SG_OP_ATOMIC_WRITE_REQ] = parse_atomic_write,
    };
    struct conn_irrq r = { .h = s->h, .seg_len = s->seg_len };
    struct sg_mpe_req req = { .msn = s->h.msn, .inv_stag = s->h.ulp_word };
    int cond;

    if (req.inv_stag && c->setup.mpe_draft != SG_MPE_DRAFT_01) {
        return SG_TERM_INV_BAD_STAG; /* a sender that sets it expects an invalidation */
    }
    cond = parse[s->opcode](c, s, &req);
    if (cond != SEG_OK) {
        return cond;
    }
    r.kind = (uint8_t)req.kind;
    r.mpe = req;
    c->msn.rx[SG_QN_REQUEST]++;
    count(&c->e->stats, req.kind);
    requests_accept(c, &r);
    return SEG_OK;
}

enum sg_exec_result mpe_execute(struct sg_conn *c, enum sg_mem_status *why, uint64_t *again_ns)
{
    const struct conn_irrq *r = requests_head(c);
    struct conn_exec *x = &c->exec;
    enum sg_exec_result result;

    result = c->e->ops->mpe(c->user, &r->mpe, x->response, &x->len, why, &x->token, again_ns);
    if (result == SG_EXEC_DONE && exec_alive(c)) {
        sg_assert(r->kind == SG_MSG_VERIFY ? x->len && x->len <= SG_HASH_LEN_MAX : !x->len);
    }
    return result;
}

/* Draft -01: the invalidation that a request may ask for. */
bool mpe_executed(struct sg_conn *c)
{
    const struct conn_irrq *r = requests_head(c);
    enum sg_mem_status st;

    if (!r->mpe.inv_stag) {
        return true;
    }
    st = c->e->ops->invalidate(c->user, r->mpe.inv_stag);
    if (!exec_alive(c)) {
        return false;
    }
    if (st != SG_MEM_OK) {
        term_raise(c, term_of_invalidate(st), &r->h, r->seg_len, NULL);
        return false;
    }
    return true;
}
