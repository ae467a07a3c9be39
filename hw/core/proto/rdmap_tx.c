/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The transmit scheduler: sends one DDP segment at a time.
 *
 *   1. the startup frame              (mpa_start.c)
 *   2. a Terminate, and nothing after it (term.c)
 *   3. the RTR message of an initiator: nothing may precede it (RFC 6581 section 5)
 *   4. responses in the order of their requests, and messages from 'next' in the order in which
 *      verbs return them; if there are both, they alternate by segment
 *   5. FIN, when closing and everything that was started has been sent (close.c)
 *
 * One message is on the wire at a time; its segments go in order of increasing offset, the last
 * one marked (RFC 5041 section 5).  A message of no octets is one segment.  Tagged Response
 * segments may come between the segments of another message: the peer keeps them apart by queue.
 *
 * Reads.  At most ORD are outstanding (requests.c).  A queued inbound Request stays until the last
 * octet of its Response has been sent, and its source is checked again with each segment.  exec.c
 * executes and answers the other requests in that queue.
 *
 * Memory is gathered right before a segment is sent and released right after, so a blocked stream
 * holds none of it.
 */
#include <glib.h>

#include "proto/conn.h"

/* Octets sent; or nothing to do, or blocked. */
enum { STEP_NONE = 0 };

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
        .msn = c->tx.msn[SG_QN_REQUEST],
    };
    uint8_t payload[SG_READ_REQ_LEN];
    struct fpdu_out out;
    size_t n;

    out.iov[1].iov_base = payload;
    out.iov[1].iov_len = sg_read_req_emit(req, payload);
    n = fpdu_send(c, &out, &h, 1, sizeof(payload));
    if (n) {
        c->tx.msn[SG_QN_REQUEST]++;
        requests_push(c, &entry);
    }
    return n;
}

/* The zero-length message that opens a peer-to-peer connection; STag 1, since some reject 0. */
static size_t send_rtr(struct sg_conn *c)
{
    const struct sg_read_req req = { .sink_stag = 1, .src_stag = 1 };
    struct sg_ddp_hdr h = { .last = true, .version = SG_DDP_VERSION };
    struct fpdu_out out;
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
        h.msn = c->tx.msn[SG_QN_SEND];
        n = fpdu_send(c, &out, &h, 0, 0);
        c->tx.msn[SG_QN_SEND] += n != 0;
    }
    if (n) {
        c->tx.rtr = 0;
        c->tx.begun++;
    }
    return n;
}

static void check_pieces(const struct iovec *iov, int n, size_t len)
{
    size_t sum = 0;
    int i;

    sg_assert(n <= SG_ENGINE_IOV_MAX);
    for (i = 0; i < n; i++) {
        sum += iov[i].iov_len;
    }
    sg_assert(sum == len);
}

/* Sends one segment whose payload was gathered from 'user', and releases the pieces. */
static size_t send_gathered(struct sg_conn *c, void *user, struct fpdu_out *out,
                            const struct sg_ddp_hdr *h, int npay, size_t len)
{
    size_t n;

    check_pieces(out->iov + 1, npay, len);
    n = conn_dead(c) ? STEP_NONE : fpdu_send(c, out, h, npay, len);
    if (npay) {
        c->e->ops->gathered(user, out->iov + 1, npay);
    }
    return conn_dead(c) ? STEP_NONE : n;
}

/* The source of a Response is gone or forbidden: reports the rest of the Request. */
static void fail_response(struct sg_conn *c, const struct conn_irrq *r, enum sg_mem_status why)
{
    struct sg_read_req left = r->read;

    left.sink_to += c->tx.resp_off;
    left.src_to += c->tx.resp_off;
    left.size -= c->tx.resp_off;
    term_raise(c, term_of_source(why), &r->h, r->seg_len, &left);
}

static size_t send_read_response(struct sg_conn *c, const struct conn_irrq *r)
{
    uint32_t left = r->read.size - c->tx.resp_off;
    uint32_t len = SG_MIN(left, fpdu_payload_max(c, true));
    const struct sg_ddp_hdr h = {
        .tagged = true,
        .last = len == left,
        .version = SG_DDP_VERSION,
        .ulp_ctrl = rdmap_ctrl(SG_OP_READ_RESP),
        .stag = r->read.sink_stag,
        .to = r->read.sink_to + c->tx.resp_off,
    };
    enum sg_mem_status why = SG_MEM_FAULT;
    void *user = c->user;
    struct fpdu_out out;
    int npay = 0;
    size_t n;

    if (len) {
        npay = c->e->ops->gather_source(user, r->read.src_stag, r->read.src_to + c->tx.resp_off,
                                        len, out.iov + 1, &why);
        if (npay < 0) {
            if (!conn_dead(c) && why == SG_MEM_LATER) {
                timers_exec_later(c, SG_NEVER); /* sg_conn_resume() */
            } else if (!conn_dead(c) && why == SG_MEM_CLOSED) {
                close_owner_left(c);
            } else if (!conn_dead(c)) {
                fail_response(c, r, why);
            }
            return STEP_NONE;
        }
    }
    n = send_gathered(c, user, &out, &h, npay, len);
    if (!n) {
        return STEP_NONE;
    }
    if (!c->tx.resp_off) {
        c->tx.response = ++c->tx.begun;
    }
    c->tx.resp_off += len;
    if (h.last) {
        c->e->stats.tx_read_responses++;
        c->tx.resp_off = 0;
        if (conn_observed(c)) {
            requests_tell_answered(c, r, c->tx.response);
        }
        requests_pop(c);
    }
    return n;
}

static bool response_ready(struct sg_conn *c)
{
    return c->peer.count && (c->state == CONN_STREAMING || c->state == CONN_CLOSING) &&
           (requests_head(c)->kind == SG_MSG_READ_REQ ? !c->exec.waiting : exec_ready(c));
}

static size_t send_response(struct sg_conn *c)
{
    const struct conn_irrq *r = requests_head(c);

    c->tx.response_next = false;
    return r->kind == SG_MSG_READ_REQ ? send_read_response(c, r) : exec_send_response(c);
}

static bool is_request(enum sg_msg_kind kind)
{
    return kind != SG_MSG_SEND && kind != SG_MSG_WRITE && kind != SG_MSG_IMM;
}

/* Is there a message to send?  Asks verbs for one when the last one is complete. */
static bool have_message(struct sg_conn *c)
{
    unsigned room;

    if (c->tx.active || c->state != CONN_STREAMING) {
        return c->tx.active && !c->tx.later;
    }
    room = requests_room(c);
    if (!c->e->ops->next(c->user, &c->tx.msg, room)) {
        c->out.next_was_short = !room;
        return false;
    }
    if (c->state != CONN_STREAMING) {
        return false; /* closed, terminated or aborted in that upcall */
    }
    sg_assert(!is_request(c->tx.msg.kind) || room);
    c->tx.active = true;
    c->tx.off = 0;
    return true;
}

/* Its first segment is with TCP. */
static inline void message_started(struct sg_conn *c)
{
    c->tx.begun++;
    if (conn_observed(c) && c->e->ops->started) {
        c->e->ops->started(c->user, &c->tx.msg, c->tx.begun);
    }
}

static void message_done(struct sg_conn *c)
{
    struct sg_engine_stats *st = &c->e->stats;
    const struct sg_msg msg = c->tx.msg;

    c->tx.active = false;
    switch (msg.kind) {
    case SG_MSG_SEND:
        c->tx.msn[SG_QN_SEND]++;
        st->tx_sends++;
        break;
    case SG_MSG_IMM:
        c->tx.msn[SG_QN_SEND]++;
        st->tx_imms++;
        break;
    case SG_MSG_WRITE:
        st->tx_writes++;
        break;
    case SG_MSG_FETCH_ADD:
    case SG_MSG_CMP_SWAP:
        st->tx_atomics++;
        break;
    case SG_MSG_FLUSH:
        st->tx_flushes++;
        break;
    case SG_MSG_VERIFY:
        st->tx_verifies++;
        break;
    case SG_MSG_ATOMIC_WRITE:
        st->tx_atomic_writes++;
        break;
    default:
        st->tx_reads += !msg.read.confirm;
        break;
    }
    if (!is_request(msg.kind)) { /* else it completes with its answer: requests.c, tell() */
        c->e->ops->sent(c->user, &msg);
    }
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
        h->msn = c->tx.msn[SG_QN_SEND];
        h->mo = c->tx.off;
    }
}

static size_t send_payload_segment(struct sg_conn *c)
{
    uint32_t left = sg_msg_length(&c->tx.msg) - c->tx.off, len;
    void *user = c->user;
    struct sg_ddp_hdr h;
    struct fpdu_out out;
    int npay = 0;
    size_t n;

    message_header(c, &h);
    len = SG_MIN(left, fpdu_payload_max(c, h.tagged));
    h.last = len == left;
    if (len) {
        npay = c->e->ops->gather(user, &c->tx.msg, c->tx.off, len, out.iov + 1);
        if (npay == SG_GATHER_LATER) {
            c->tx.later = true;
            return STEP_NONE;
        }
        if (npay == SG_GATHER_CLOSED) {
            close_owner_left(c);
            return STEP_NONE;
        }
        if (npay < 0) {
            term_raise(c, SG_TERM_LOCAL_CATASTROPHE, NULL, 0, NULL); /* RFC 5040 7.1, rule 1 */
            return STEP_NONE;
        }
    }
    n = send_gathered(c, user, &out, &h, npay, len);
    if (!n) {
        return STEP_NONE;
    }
    if (!c->tx.off) {
        message_started(c);
    }
    c->tx.off += len;
    if (h.last) {
        message_done(c);
    }
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
        .msn = c->tx.msn[SG_QN_SEND],
        .ulp_ctrl = rdmap_ctrl(m->imm.solicited ? SG_OP_IMM_SE : SG_OP_IMM),
    };
    struct fpdu_out out;

    out.iov[1].iov_base = m->imm.octets;
    out.iov[1].iov_len = SG_IMM_LEN;
    return fpdu_send(c, &out, &h, 1, SG_IMM_LEN);
}

/* A message of one segment without gathered payload. */
static size_t send_small_message(struct sg_conn *c)
{
    const struct sg_msg *m = &c->tx.msg;

    if ((is_atomic(m->kind) || m->kind == SG_MSG_IMM) && !c->setup.rfc7306) {
        term_raise(c, SG_TERM_LOCAL_CATASTROPHE, NULL, 0, NULL); /* RFC 7306 8.1, rule 1 */
        return STEP_NONE;
    }
    if (m->kind == SG_MSG_IMM) {
        return send_immediate(c);
    }
    return is_atomic(m->kind) ? atomic_send_request(c) : mpe_send_request(c);
}

static size_t send_message_segment(struct sg_conn *c)
{
    const struct sg_msg *m = &c->tx.msg;
    size_t n;

    if (m->kind == SG_MSG_SEND || m->kind == SG_MSG_WRITE) {
        return send_payload_segment(c);
    }
    if (m->kind == SG_MSG_READ_REQ) {
        n = send_read_request(c,
                              &(const struct sg_read_req){
                                  .sink_stag = m->read.sink_stag,
                                  .sink_to = m->read.sink_to,
                                  .size = m->read.length,
                                  .src_stag = m->read.stag,
                                  .src_to = m->read.to,
                              },
                              m);
    } else {
        n = send_small_message(c);
    }
    if (n && !conn_dead(c)) {
        message_started(c);
        message_done(c);
    }
    return n;
}

static size_t send_segment(struct sg_conn *c)
{
    if (c->tx.rtr) {
        return send_rtr(c);
    }
    if (c->tx.response_next && response_ready(c)) {
        return send_response(c);
    }
    if (have_message(c)) {
        size_t n;

        c->tx.response_next = true;
        n = send_message_segment(c);
        if (n || conn_dead(c) || !c->tx.later) {
            return n;
        }
    }
    return response_ready(c) ? send_response(c) : STEP_NONE;
}

/* True: the budget is used up and there may be more. */
static bool send_segments(struct sg_conn *c, size_t budget)
{
    size_t used = 0;

    fpdu_refresh(c);
    while (used < budget) {
        size_t n = send_segment(c);

        used += n;
        if (!n || conn_is(c, CONN_IS_STARVED) ||
            (c->state != CONN_STREAMING && c->state != CONN_CLOSING)) {
            break;
        }
    }
    return used >= budget;
}

/* One turn; true: call again. */
static bool transmit(struct sg_conn *c, size_t budget)
{
    bool more = false;

    if (conn_frame_due(c) && !mpa_transmit(c)) {
        return false;
    }
    if (conn_is(c, CONN_TERM_DUE) && (conn_paused(c) || !term_transmit(c))) {
        return false;
    }
    if ((c->state == CONN_STREAMING || c->state == CONN_CLOSING) && conn_may_send(c)) {
        more = send_segments(c, budget);
    }
    if (!conn_dead(c) && !c->tx.blocked && !more) {
        close_send_fin(c);
    }
    return !conn_dead(c) && !c->tx.blocked && (more || conn_is(c, CONN_TERM_DUE));
}

bool sg_conn_transmit(struct sg_conn *c, size_t budget)
{
    uint64_t before = c->e->stats.tx_octets;
    bool more;

    if (conn_dead(c)) {
        return false;
    }
    c->tx.signaled = false;
    if (c->tx.blocked || c->state == CONN_CONNECTING) {
        return false;
    }
    conn_enter(c);
    more = transmit(c, budget);
    if (c->stream && c->e->stats.tx_octets != before) {
        c->stream->ops->push(c->stream);
    }
    conn_leave(c);
    return more;
}
