/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The transmit scheduler: sends one segment at a time, on any wire.
 *
 *   1. the frame of setup
 *   2. a report of an error, and nothing after it
 *   3. the message that has to go first, if there is one (iWARP: RFC 6581 section 5)
 *   4. responses in the order of their requests, and messages from 'next' in the order in which
 *      verbs return them; if there are both, they alternate by segment
 *   5. FIN, when closing and everything that was started has been sent (close.c)
 *
 * One message is on the wire at a time; its segments go in order of increasing offset.  A message
 * of no octets is one segment.  Segments of a Read Response may come between those of another
 * message: the peer can tell them apart on every wire.
 *
 * Reads.  At most ORD are outstanding (requests.c).  A queued inbound Request stays until the last
 * octet of its Response has been sent, and its source is checked again with each segment.  exec.c
 * executes the other requests in that queue.
 *
 * Memory is gathered right before a segment is sent and released right after, so a blocked stream
 * holds none of it.
 */
#include <glib.h>

#include "proto/conn.h"

/* Octets sent; or nothing to do, or blocked. */
enum { STEP_NONE = 0 };

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

/* ---- responses ---- */

/* The source could not be gathered. */
static void no_source(struct sg_conn *c, const struct conn_irrq *r, enum sg_mem_status why)
{
    if (conn_dead(c)) {
        return;
    }
    if (why == SG_MEM_LATER) {
        timers_exec_later(c, SG_NEVER); /* sg_conn_resume() */
    } else if (why == SG_MEM_CLOSED) {
        close_owner_left(c);
    } else {
        c->wire->source_failed(c, r, why);
    }
}

static size_t send_read_response(struct sg_conn *c, const struct conn_irrq *r)
{
    uint32_t left = r->read.size - c->tx.resp_off;
    uint32_t len = SG_MIN(left, c->tx.max.response);
    enum sg_mem_status why = SG_MEM_FAULT;
    void *user = c->user;
    struct seg_out out;
    int npay = 0;
    size_t n;

    if (len) {
        npay = c->e->ops->gather_source(user, r->read.src_stag, r->read.src_to + c->tx.resp_off,
                                        len, out.iov + 1, &why);
        if (npay < 0) {
            no_source(c, r, why);
            return STEP_NONE;
        }
        check_pieces(out.iov + 1, npay, len);
    }
    n = conn_dead(c) ? STEP_NONE : c->wire->send_response(c, r, &out, npay, len, len == left);
    if (npay) {
        c->e->ops->gathered(user, out.iov + 1, npay);
    }
    if (!n || conn_dead(c)) {
        return STEP_NONE;
    }
    if (!c->tx.resp_off) {
        c->tx.response = ++c->tx.begun;
    }
    c->tx.resp_off += len;
    if (len == left) {
        c->e->stats.tx_read_responses++;
        c->tx.resp_off = 0;
        if (conn_observed(c)) {
            requests_tell_answered(c, r, c->tx.response);
        }
        requests_pop(c);
        if (c->wire->answered) {
            c->wire->answered(c);
        }
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
    return r->kind == SG_MSG_READ_REQ ? send_read_response(c, r) : c->wire->send_executed(c);
}

/* ---- messages of verbs ---- */

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
    if (c->wire->may_begin && !c->wire->may_begin(c)) {
        c->out.next_was_short = true;
        return false;
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
        st->tx_sends++;
        break;
    case SG_MSG_IMM:
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

/* The payload could not be gathered. */
static void no_payload(struct sg_conn *c, int why)
{
    if (why == SG_GATHER_LATER) {
        c->tx.later = true;
    } else if (why == SG_GATHER_CLOSED) {
        close_owner_left(c);
    } else {
        c->wire->local_failed(c);
    }
}

static size_t send_payload_segment(struct sg_conn *c)
{
    uint32_t left = sg_msg_length(&c->tx.msg) - c->tx.off;
    uint32_t max = c->tx.msg.kind == SG_MSG_WRITE ? c->tx.max.write : c->tx.max.send;
    uint32_t len = SG_MIN(left, max);
    void *user = c->user;
    struct seg_out out;
    int npay = 0;
    size_t n;

    if (len) {
        npay = c->e->ops->gather(user, &c->tx.msg, c->tx.off, len, out.iov + 1);
        if (npay < 0) {
            no_payload(c, npay);
            return STEP_NONE;
        }
        check_pieces(out.iov + 1, npay, len);
    }
    n = conn_dead(c) ? STEP_NONE : c->wire->send_payload(c, &out, npay, len, len == left);
    if (npay) {
        c->e->ops->gathered(user, out.iov + 1, npay);
    }
    if (!n || conn_dead(c)) {
        return STEP_NONE;
    }
    if (!c->tx.off) {
        message_started(c);
    }
    c->tx.off += len;
    if (len == left) {
        message_done(c);
    }
    return n;
}

static size_t send_message_segment(struct sg_conn *c)
{
    enum sg_msg_kind kind = c->tx.msg.kind;
    size_t n;

    if (kind == SG_MSG_SEND || kind == SG_MSG_WRITE) {
        return send_payload_segment(c);
    }
    n = c->wire->send_small(c);
    if (n && !conn_dead(c)) {
        message_started(c);
        message_done(c);
    }
    return n;
}

/* ---- the turn ---- */

static size_t send_segment(struct sg_conn *c)
{
    if (c->tx.rtr) {
        return c->wire->send_opening(c);
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

    c->wire->refresh(c);
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

    if (conn_frame_due(c) && !c->wire->transmit_setup(c)) {
        return false;
    }
    if (conn_is(c, CONN_TERM_DUE) && (conn_paused(c) || !c->wire->transmit_end(c))) {
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
