/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Outgoing RDMAP messages (RFC 5040 section 5) as DDP segments: their headers.
 *
 * transmit.c decides what is sent, and gathers its payload.  Segments of one message go in order
 * of increasing offset, the last one marked (RFC 5041 section 5).  Read Responses are tagged, so
 * they may come between the segments of a Send, and the peer keeps the two apart by queue.
 */
#include <glib.h>

#include "proto/conn.h"

void rdmap_queue_rtr(struct sg_conn *c, uint8_t kind)
{
    c->tx.rtr = kind;
}

/* A Read Request, which is all header; for verbs' message 'm', or internal. */
static size_t send_read_request(struct sg_conn *c, const struct sg_read_req *req,
                                const struct sg_msg *m)
{
    const struct conn_orq entry = {
        .kind = SG_MSG_READ_REQ,
        .internal = !m,
        .length = req->size,
        .confirm = m && m->read.confirm,
        .sink = { .stag = req->sink_stag, .to = req->sink_to, .cookie = m ? m->cookie : 0 },
    };
    const struct sg_ddp_hdr h = {
        .last = true,
        .version = SG_DDP_VERSION,
        .ulp_ctrl = rdmap_ctrl(SG_OP_READ_REQ),
        .qn = SG_QN_REQUEST,
        .msn = c->msn.tx[SG_QN_REQUEST],
    };
    uint8_t payload[SG_READ_REQ_LEN];
    struct seg_out out;
    size_t n;

    out.iov[1].iov_base = payload;
    out.iov[1].iov_len = sg_read_req_emit(req, payload);
    n = fpdu_send(c, &out, &h, 1, sizeof(payload));
    if (n) {
        c->msn.tx[SG_QN_REQUEST]++;
        requests_push(c, &entry);
    }
    return n;
}

/* The zero-length message that opens a peer-to-peer connection; STag 1, since some reject 0. */
size_t rdmap_send_rtr(struct sg_conn *c)
{
    const struct sg_read_req req = { .sink_stag = 1, .src_stag = 1 };
    struct sg_ddp_hdr h = { .last = true, .version = SG_DDP_VERSION };
    struct seg_out out;
    size_t n;

    if (c->tx.rtr == SG_RTR_READ) {
        n = send_read_request(c, &req, NULL);
    } else if (c->tx.rtr == SG_RTR_WRITE) {
        h.tagged = true;
        h.stag = 1;
        h.ulp_ctrl = rdmap_ctrl(SG_OP_WRITE);
        n = fpdu_send(c, &out, &h, 0, 0);
    } else {
        h.ulp_ctrl = rdmap_ctrl(SG_OP_SEND);
        h.msn = c->msn.tx[SG_QN_SEND];
        n = fpdu_send(c, &out, &h, 0, 0);
        c->msn.tx[SG_QN_SEND] += n != 0;
    }
    if (n) {
        c->tx.rtr = 0;
        c->tx.begun++;
    }
    return n;
}

/* The source of a Response is gone or forbidden: reports the rest of the Request. */
void rdmap_source_failed(struct sg_conn *c, const struct conn_irrq *r, enum sg_mem_status why)
{
    struct sg_read_req left = r->read;

    left.sink_to += c->tx.resp_off;
    left.src_to += c->tx.resp_off;
    left.size -= c->tx.resp_off;
    term_raise(c, term_of_source(why), &r->h, r->seg_len, &left);
}

size_t rdmap_send_response(struct sg_conn *c, const struct conn_irrq *r, struct seg_out *out,
                           int npay, uint32_t len, bool last)
{
    const struct sg_ddp_hdr h = {
        .tagged = true,
        .last = last,
        .version = SG_DDP_VERSION,
        .ulp_ctrl = rdmap_ctrl(SG_OP_READ_RESP),
        .stag = r->read.sink_stag,
        .to = r->read.sink_to + c->tx.resp_off,
    };

    return fpdu_send(c, out, &h, npay, len);
}

static void message_header(const struct sg_conn *c, struct sg_ddp_hdr *h)
{
    static const uint8_t send_ops[2][2] = {
        /* [solicited][invalidate] */
        { SG_OP_SEND, SG_OP_SEND_INV },
        { SG_OP_SEND_SE, SG_OP_SEND_SE_INV },
    };
    const struct sg_msg *m = &c->tx.msg;

    *h = (struct sg_ddp_hdr){ .version = SG_DDP_VERSION };
    if (m->kind == SG_MSG_WRITE) {
        h->tagged = true;
        h->ulp_ctrl = rdmap_ctrl(SG_OP_WRITE);
        h->stag = m->write.stag;
        h->to = m->write.to + c->tx.off;
    } else {
        h->ulp_ctrl = rdmap_ctrl(send_ops[m->send.solicited][m->send.invalidate]);
        h->ulp_word = m->send.invalidate ? m->send.inv_stag : 0;
        h->msn = c->msn.tx[SG_QN_SEND];
        h->mo = c->tx.off;
    }
}

size_t rdmap_send_payload(struct sg_conn *c, struct seg_out *out, int npay, uint32_t len, bool last)
{
    struct sg_ddp_hdr h;
    size_t n;

    message_header(c, &h);
    h.last = last;
    n = fpdu_send(c, out, &h, npay, len);
    c->msn.tx[SG_QN_SEND] += n && last && !h.tagged;
    return n;
}

/* Immediate Data: eight octets that came with the message. */
static size_t send_immediate(struct sg_conn *c)
{
    struct sg_msg *m = &c->tx.msg;
    const struct sg_ddp_hdr h = {
        .last = true,
        .version = SG_DDP_VERSION,
        .qn = SG_QN_SEND,
        .msn = c->msn.tx[SG_QN_SEND],
        .ulp_ctrl = rdmap_ctrl(m->imm.solicited ? SG_OP_IMM_SE : SG_OP_IMM),
    };
    struct seg_out out;
    size_t n;

    out.iov[1].iov_base = m->imm.octets;
    out.iov[1].iov_len = SG_IMM_LEN;
    n = fpdu_send(c, &out, &h, 1, SG_IMM_LEN);
    c->msn.tx[SG_QN_SEND] += n != 0;
    return n;
}

/* A message of one segment without gathered payload. */
size_t rdmap_send_small(struct sg_conn *c)
{
    const struct sg_msg *m = &c->tx.msg;

    if (m->kind == SG_MSG_READ_REQ) {
        return send_read_request(c,
                                 &(const struct sg_read_req){
                                     .sink_stag = m->read.sink_stag,
                                     .sink_to = m->read.sink_to,
                                     .size = m->read.length,
                                     .src_stag = m->read.stag,
                                     .src_to = m->read.to,
                                 },
                                 m);
    }
    if ((is_atomic(m->kind) || m->kind == SG_MSG_IMM) && !c->setup.rfc7306) {
        rdmap_local_failed(c); /* RFC 7306 8.1, rule 1 */
        return 0;
    }
    if (m->kind == SG_MSG_IMM) {
        return send_immediate(c);
    }
    return is_atomic(m->kind) ? atomic_send_request(c) : mpe_send_request(c);
}

/* RFC 5040 section 7.1, rule 1. */
void rdmap_local_failed(struct sg_conn *c)
{
    term_raise(c, SG_TERM_LOCAL_CATASTROPHE, NULL, 0, NULL);
}
