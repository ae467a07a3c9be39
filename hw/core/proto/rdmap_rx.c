/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inbound RDMAP messages (RFC 5040 section 5): placement and delivery, one handler per opcode.
 *
 * A handler gets a segment that passed all checks of ddp_rx.c, asks verbs to place it, and with
 * the last segment delivers the message.  It returns SEG_OK or the row of the Terminate table; in
 * that case nothing of the segment was placed.
 *
 *   Write          placed, never delivered; zero octets are not checked against any STag
 *   Read Request   checked, then queued for rdmap_tx.c
 *   Read Response  must be the next octets of our oldest outstanding Read, to exactly its sink
 *   Atomics, Flush, Verify, Atomic Write and their responses: atomic_msg.c, mpe_resp.c, mpe_req.c
 *   Send           placed in the Receive for its MSN; delivery first invalidates, if requested
 *   Immediate Data takes a Receive as a Send does, and does not touch its buffer
 *   Terminate      ends everything
 *
 * As the stream is in order and segments are placed at once, "all earlier messages are placed and
 * delivered" (RFC 5041 section 5.4) holds whenever a last segment is seen.
 */
#include <glib.h>

#include "proto/conn.h"

/* After an upcall that may have ended the connection, without a fault of the segment. */
static int placed_memory(struct sg_conn *c, enum sg_mem_status st)
{
    if ((st == SG_MEM_LATER || st == SG_MEM_CLOSED) && !conn_dead(c)) {
        return st == SG_MEM_LATER ? SEG_LATER : SEG_CLOSED;
    }
    return st == SG_MEM_OK || conn_dead(c) ? SEG_OK : (int)term_of_tagged(st);
}

/*
 * A segment of the message with this ordinal, 0: of a new one.  Messages are counted by their first
 * segments, in the order in which the sender began them: other messages may come in between.
 */
static void count(struct sg_conn *c, uint64_t *ordinal)
{
    if (!*ordinal) {
        *ordinal = ++c->rx.begun;
    }
    c->rx.now = *ordinal;
}

static int place_write(struct sg_conn *c, struct ddp_seg *s)
{
    const struct sg_engine_ops *ops = c->e->ops;

    count(c, &c->rx.write);
    if (c->rx.write_ended) {
        c->rx.write_ended = false;
        c->rx.write_len = 0;
    }
    if (s->n) {
        enum sg_mem_status st = ops->place_write(c->user, s->h.stag, s->h.to, s->p, s->n);

        if (st != SG_MEM_OK || conn_dead(c)) {
            return placed_memory(c, st);
        }
        c->rx.writing = true;
        c->rx.write_len += SG_MIN(s->n, UINT32_MAX - c->rx.write_len);
    }
    if (s->h.last) {
        c->rx.write_ended = true;
        c->e->stats.rx_writes++;
        if (c->rx.writing && ops->write_placed) {
            ops->write_placed(c->user);
        }
        c->rx.writing = false;
        c->rx.write = 0;
    }
    return SEG_OK;
}

/*
 * A Write belongs to the Immediate Data that follows it, if the peer sent no other request or Send
 * in between.  Its responses to us may come anywhere.
 */
static void forget_write(struct sg_conn *c)
{
    if (c->rx.write_ended) {
        c->rx.write_len = 0;
    }
}

static int place_read_request(struct sg_conn *c, struct ddp_seg *s)
{
    struct conn_irrq r = { .h = s->h, .seg_len = s->seg_len, .kind = SG_MSG_READ_REQ };
    enum sg_mem_status st;

    s->has_read = sg_read_req_parse(sg_span_of(s->p, s->n), &s->read) == SG_WIRE_OK;
    if (!s->has_read) {
        return SG_TERM_MESSAGE_LENGTH;
    }
    if (s->read.size) {
        st = c->e->ops->check_source(c->user, s->read.src_stag, s->read.src_to, s->read.size);
        if (conn_dead(c)) {
            return SEG_OK;
        }
        if (st != SG_MEM_OK) {
            return st == SG_MEM_CLOSED ? SEG_CLOSED : (int)term_of_source(st);
        }
    }
    r.read = s->read;
    c->msn.rx[SG_QN_REQUEST]++;
    c->e->stats.rx_reads++;
    requests_accept(c, &r);
    return SEG_OK;
}

/* Does the segment continue the oldest outstanding Read? */
static int match_response(const struct sg_conn *c, const struct ddp_seg *s,
                          const struct conn_orq *r)
{
    uint32_t left = r->length - c->rx.read_off;

    if (s->n && s->h.stag != r->sink.stag) {
        return SG_TERM_TAGGED_BAD_STAG;
    }
    if (s->n && (s->h.to != r->sink.to + c->rx.read_off || s->n > left)) {
        return SG_TERM_TAGGED_BOUNDS;
    }
    return s->h.last && s->n != left ? SG_TERM_READ_RESP_MISMATCH : SEG_OK;
}

static int place_read_response(struct sg_conn *c, struct ddp_seg *s)
{
    const struct sg_engine_ops *ops = c->e->ops;
    struct conn_orq *r = requests_oldest_read(c);
    int cond;

    count(c, &c->rx.response);
    if (!r) {
        return SG_TERM_READ_RESP_MISMATCH;
    }
    cond = match_response(c, s, r);
    if (cond != SEG_OK) {
        return cond;
    }
    if (s->n) {
        enum sg_mem_status st = ops->place_read(c->user, &r->sink, c->rx.read_off, s->p, s->n);

        if (st != SG_MEM_OK || conn_dead(c)) {
            return placed_memory(c, st);
        }
        c->rx.read_off += s->n;
    }
    if (s->h.last) {
        c->rx.read_off = 0;
        c->rx.response = 0;
        c->e->stats.rx_read_responses += !r->internal && !r->confirm;
        requests_answered(c, r);
    }
    return SEG_OK;
}

/* Placement in the Receive at this MSN failed: finds the row. */
static int refused_receive(struct sg_conn *c, const struct ddp_seg *s, enum sg_recv_status st)
{
    switch (st) {
    case SG_RECV_OK:
        break;
    case SG_RECV_LATER:
        return SEG_LATER;
    case SG_RECV_CLOSED:
        return SEG_CLOSED;
    case SG_RECV_NO_BUFFER:
        return SG_TERM_UNTAGGED_NO_BUFFER;
    case SG_RECV_TOO_LONG:
        /* RFC 5041 distinguishes an offset beyond the buffer from an end beyond it. */
        if (s->h.mo &&
            c->e->ops->place_recv(c->user, s->h.msn, s->h.mo, s->p, 0) == SG_RECV_TOO_LONG) {
            return SG_TERM_UNTAGGED_BAD_MO;
        }
        return SG_TERM_UNTAGGED_TOO_LONG;
    case SG_RECV_FAULT:
        return SG_TERM_DDP_CATASTROPHE;
    }
    return SEG_OK;
}

static int place_send(struct sg_conn *c, struct ddp_seg *s)
{
    const struct sg_engine_ops *ops = c->e->ops;
    struct sg_recv_info info = { .msn = s->h.msn, .length = s->h.mo + s->n };
    enum sg_recv_status st;

    count(c, &c->rx.send);
    if (s->n > UINT32_MAX - s->h.mo) {
        return SG_TERM_UNTAGGED_TOO_LONG;
    }
    st = ops->place_recv(c->user, s->h.msn, s->h.mo, s->p, s->n);
    if (conn_dead(c)) {
        return SEG_OK;
    }
    if (st != SG_RECV_OK) {
        return refused_receive(c, s, st);
    }
    if (!s->h.last) {
        return SEG_OK;
    }
    info.solicited = s->op->solicited;
    if (s->op->invalidates) {
        enum sg_mem_status inv = ops->invalidate(c->user, s->h.ulp_word);

        if (conn_dead(c)) {
            return SEG_OK;
        }
        if (inv != SG_MEM_OK) {
            return inv == SG_MEM_CLOSED ? SEG_CLOSED : (int)term_of_invalidate(inv);
        }
        info.invalidate = true;
        info.inv_stag = s->h.ulp_word;
    }
    c->rx.send = 0;
    c->msn.rx[SG_QN_SEND]++;
    c->e->stats.rx_sends++;
    ops->recv_done(c->user, &info);
    return SEG_OK;
}

/* RFC 7306 section 6.3: one segment with eight octets, and not the end of another message. */
static int place_imm(struct sg_conn *c, struct ddp_seg *s)
{
    const struct sg_engine_ops *ops = c->e->ops;
    struct sg_recv_info info = {
        .msn = s->h.msn,
        .immediate = true,
        .solicited = s->op->solicited,
        .write_len = c->rx.write_ended ? c->rx.write_len : 0,
    };
    enum sg_recv_status st;

    if (s->n != SG_IMM_LEN || !s->h.last || c->rx.send) {
        return SG_TERM_IMM_LENGTH;
    }
    if (s->h.mo) {
        return SG_TERM_UNTAGGED_BAD_MO;
    }
    st = ops->place_recv(c->user, s->h.msn, 0, NULL, 0);
    if (conn_dead(c)) {
        return SEG_OK;
    }
    if (st != SG_RECV_OK) {
        return refused_receive(c, s, st);
    }
    memcpy(info.imm, s->p, SG_IMM_LEN);
    c->msn.rx[SG_QN_SEND]++;
    c->e->stats.rx_imms++;
    forget_write(c);
    ops->recv_done(c->user, &info);
    return SEG_OK;
}

static int place_terminate(struct sg_conn *c, struct ddp_seg *s)
{
    struct sg_term t;

    c->msn.rx[SG_QN_TERMINATE]++;
    if (sg_term_parse(sg_span_of(s->p, s->n), &t) != SG_WIRE_OK) {
        return SG_TERM_MESSAGE_LENGTH;
    }
    term_received(c, &t);
    return SEG_OK;
}

int rdmap_place(struct sg_conn *c, struct ddp_seg *s)
{
    static int (*const handlers[])(struct sg_conn *c, struct ddp_seg *s) = {
        [SG_OP_WRITE] = place_write,
        [SG_OP_READ_REQ] = place_read_request,
        [SG_OP_READ_RESP] = place_read_response,
        [SG_OP_SEND] = place_send,
        [SG_OP_SEND_INV] = place_send,
        [SG_OP_SEND_SE] = place_send,
        [SG_OP_SEND_SE_INV] = place_send,
        [SG_OP_TERMINATE] = place_terminate,
        [SG_OP_IMM] = place_imm,
        [SG_OP_IMM_SE] = place_imm,
        [SG_OP_ATOMIC_REQ] = atomic_place_request,
        [SG_OP_ATOMIC_RESP] = atomic_place_response,
        [SG_OP_FLUSH_REQ] = mpe_place_request,
        [SG_OP_FLUSH_RESP] = mpe_place_response,
        [SG_OP_VERIFY_REQ] = mpe_place_request,
        [SG_OP_VERIFY_RESP] = mpe_place_response,
        [SG_OP_ATOMIC_WRITE_REQ] = mpe_place_request,
        [SG_OP_ATOMIC_WRITE_RESP] = mpe_place_response,
    };

    sg_assert(s->opcode < SG_ARRAY_SIZE(handlers) && handlers[s->opcode]);
    if (!s->h.tagged && (s->h.qn == SG_QN_REQUEST || (s->h.qn == SG_QN_SEND && s->op->payload))) {
        forget_write(c);
    }
    if (!s->op->multi) {
        c->rx.now = ++c->rx.begun;
    }
    return handlers[s->opcode](c, s);
}
