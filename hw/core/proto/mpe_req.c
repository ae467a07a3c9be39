/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flush, Verify and Atomic Write as requester (draft-talpey-rdma-commit).
 *
 * A request is one segment, all header, on queue 1, and takes its MSN and its place among the
 * outstanding requests as a Read Request does.  Responses come on queue 3, which counts its own
 * MSNs from 1.  No identifier links the two: the responder answers in order, so a response belongs
 * to the oldest request of queue 3 that has none, and must be of its kind.
 *
 * Failure has no response; it is a Terminate, and ends all that is outstanding (-02 section 4.1).
 *
 * The atom of an Atomic Write is a number on the wire (-02 section 2.3.1, "in big-endian format"),
 * stored in memory as the target's platform stores numbers.  Verbs provide it in the target's
 * order; memory of this adapter, and of those that it talks to, is little-endian.
 */
#include "proto/conn.h"

/* Does the draft that this connection uses support it? */
static bool can_say(const struct sg_conn *c, const struct sg_msg *m)
{
    uint32_t flags = SG_FLUSH_PERSISTENT | SG_FLUSH_GLOBAL;

    switch (c->setup.mpe_draft) {
    case SG_MPE_DRAFT_01:
        break;
    case SG_MPE_DRAFT_02:
        flags |= SG_FLUSH_REGION;
        if (m->mpe.invalidate) {
            return false;
        }
        break;
    default:
        return false;
    }
    switch (m->kind) {
    case SG_MSG_FLUSH:
        return !(m->mpe.args.flags & ~flags);
    case SG_MSG_VERIFY:
        return m->mpe.args.hash.len <= SG_HASH_LEN_MAX;
    default:
        return true;
    }
}

/* The message behind its DDP header; its opcode goes to *op. */
static size_t make_request(const struct sg_msg *m, enum sg_rdmap_opcode *op, uint8_t *buf)
{
    const union sg_mpe_args *args = &m->mpe.args;
    struct sg_flush_req flush = {
        .stag = m->mpe.stag,
        .length = m->mpe.length,
        .to = m->mpe.to,
    };
    struct sg_verify_req verify = {
        .stag = m->mpe.stag,
        .length = m->mpe.length,
        .to = m->mpe.to,
    };
    struct sg_atomic_write_req atom = {
        .stag = m->mpe.stag,
        .length = SG_ATOM_LEN,
        .to = m->mpe.to,
    };

    switch (m->kind) {
    case SG_MSG_FLUSH:
        *op = SG_OP_FLUSH_REQ;
        flush.flags = args->flags;
        return sg_flush_req_emit(&flush, buf);
    case SG_MSG_VERIFY:
        *op = SG_OP_VERIFY_REQ;
        verify.hash_len = args->hash.len;
        memcpy(verify.hash, args->hash.octets, args->hash.len);
        return sg_verify_req_emit(&verify, buf);
    default:
        *op = SG_OP_ATOMIC_WRITE_REQ;
        atom.data = sg_get_le64(args->atom);
        return sg_atomic_write_req_emit(&atom, buf);
    }
}

size_t mpe_send_request(struct sg_conn *c)
{
    const struct sg_msg *m = &c->tx.msg;
    const struct conn_orq entry = { .kind = (uint8_t)m->kind };
    struct sg_ddp_hdr h = {
        .last = true,
        .version = SG_DDP_VERSION,
        .ulp_word = m->mpe.invalidate ? m->mpe.inv_stag : 0,
        .qn = SG_QN_REQUEST,
        .msn = c->msn.tx[SG_QN_REQUEST],
    };
    uint8_t payload[SG_MPE_REQ_LEN_MAX];
    enum sg_rdmap_opcode op;
    struct seg_out out;
    size_t len, n;

    if (!can_say(c, m)) {
        /* -02 section 4.1, rule 1: a Terminate replaces a request that cannot be made. */
        term_raise(c, SG_TERM_LOCAL_CATASTROPHE, NULL, 0, NULL);
        return 0;
    }
    len = make_request(m, &op, payload);
    h.ulp_ctrl = rdmap_ctrl(op);
    out.iov[1].iov_base = payload;
    out.iov[1].iov_len = len;
    n = fpdu_send(c, &out, &h, 1, len);
    if (n) {
        c->msn.tx[SG_QN_REQUEST]++;
        requests_push(c, &entry);
    }
    return n;
}

/* The kind of request that this answers. */
static enum sg_msg_kind kind_of_response(unsigned opcode)
{
    switch (opcode) {
    case SG_OP_FLUSH_RESP:
        return SG_MSG_FLUSH;
    case SG_OP_VERIFY_RESP:
        return SG_MSG_VERIFY;
    default:
        return SG_MSG_ATOMIC_WRITE;
    }
}

int mpe_place_response(struct sg_conn *c, struct ddp_seg *s)
{
    struct conn_orq *r = requests_oldest_untagged(c);
    struct sg_verify_resp hash = { 0 };

    if (r->kind != kind_of_response(s->opcode)) { /* r exists: ddp_rx.c, check_buffer() */
        return SG_TERM_MPE_RESP_MISMATCH;
    }
    if (r->kind == SG_MSG_VERIFY &&
        (sg_verify_resp_parse(sg_span_of(s->p, s->n), &hash) != SG_WIRE_OK ||
         (!hash.hash_len && c->setup.mpe_draft != SG_MPE_DRAFT_01))) {
        return SG_TERM_MESSAGE_LENGTH; /* -02 section 2.2.3: not of zero octets */
    }
    c->msn.rx[SG_QN_RESPONSE]++;
    r->hash_len = hash.hash_len;
    memcpy(r->hash, hash.hash, sizeof(r->hash));
    requests_answered(c, r);
    return SEG_OK;
}
