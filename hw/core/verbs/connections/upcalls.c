/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine's upcalls, except those of received messages (inbound.c).  Each gets a struct sg_cm,
 * which knows its queue pair.
 *
 * Requests are bounded by the listener's backlog and by the number of connections; requests beyond
 * that are reset.  While the driver makes no progress with its event queue, they wait.
 */
#include <inttypes.h>

#include "verbs/connections/cm_impl.h"
#include "verbs/connections/inbound.h"
#include "verbs/memory/mem.h"
#include "verbs/events/eq.h"
#include "verbs/queues/qp.h"
#include "verbs/state/adapter_state.h"
#include "wire/mpa_frame.h"
#include "wire/terminate.h"

/* The async event queue has room for the events that follow a request. */
static bool up_request_room(void *listener_user)
{
    const struct sg_listen *l = listener_user;

    return sg_eq_async_room(l->adapter);
}

static void up_request(void *listener_user, struct sg_conn *c, const struct sg_conn_params *p)
{
    struct sg_listen *l = listener_user;
    struct sg_adapter *a = l->adapter;
    struct sg_cm *cm = NULL;

    if (l->pending < l->backlog && sg_adapter_alive(a)) {
        cm = sg_cm_new(a, SG_CM_REQUEST);
    }
    if (cm) {
        cm->base.engine = c;
    }
    if (!cm || !sg_cm_keep_params(cm, p)) {
        if (cm) {
            sg_cm_free(cm);
        }
        a->stats.conn_failed++;
        sg_log(&a->host, SG_LOG_TRACE, "listener %u: no room for a request", l->id);
        sg_conn_abort(c);
        return;
    }
    cm->listen = l;
    l->pending++;
    sg_list_append(&l->requests, &cm->ready_link);
    sg_conn_set_request_user(c, cm);
    sg_cm_emit(cm, SG_EV_CM_REQUEST, SG_CONN_OK);
}

static void up_request_gone(struct sg_conn *c, void *request_user, enum sg_conn_end why)
{
    struct sg_cm *cm = request_user;

    (void)c;
    cm->adapter->stats.conn_failed++;
    sg_cm_gone(cm, why);
}

/*
 * The peer has accepted, but our queue pair has gone to error meanwhile: the peer gets a Terminate
 * before the end of TCP (RFC 6581 section 9.3).  For the driver CONNECT has failed.
 */
static void refuse_late(struct sg_cm *cm)
{
    cm->state = SG_CM_FAILED;
    cm->adapter->stats.conn_failed++;
    sg_cm_emit(cm, SG_EV_CM_REPLY, SG_CONN_RESET);
    sg_conn_terminate(cm->base.engine, SG_TERM_LLP, SG_TERM_LLP_MPA, SG_MPA_ERR_LOCAL);
}

static void up_reply(void *user, enum sg_conn_end end, const struct sg_conn_params *p)
{
    struct sg_cm *cm = user;

    if (!sg_cm_keep_params(cm, p)) { /* and what the peer has said must not get lost */
        if (end == SG_CONN_OK) {
            sg_conn_abort(cm->base.engine);
        }
        end = SG_CONN_NORES;
    }
    if (end != SG_CONN_OK) {
        cm->base.engine = NULL;
        cm->state = SG_CM_FAILED;
        cm->adapter->stats.conn_failed++;
        sg_list_remove(&cm->ready_link);
        sg_cm_emit(cm, SG_EV_CM_REPLY, end);
        if (!cm->qp) {
            sg_cm_free(cm);
        }
        return;
    }
    cm->base.streaming = true;
    if (!cm->qp || cm->qp->state != SG_QP_IDLE) {
        refuse_late(cm);
        return;
    }
    cm->state = SG_CM_UP;
    cm->was_up = true;
    cm->adapter->stats.conn_active++;
    sg_cm_observe(cm);
    sg_cm_emit(cm, SG_EV_CM_REPLY, end);
    sg_qp_start(cm->qp, "connected");
}

static void up_established(void *user, const struct sg_conn_params *p)
{
    struct sg_cm *cm = user;

    cm->ird = p->ird;
    cm->base.ord = p->ord;
    cm->base.streaming = true;
    if (cm->state != SG_CM_ACCEPTED) {
        return;
    }
    cm->state = SG_CM_UP;
    cm->was_up = true;
    cm->adapter->stats.conn_passive++;
    sg_cm_emit(cm, SG_EV_CM_ESTABLISHED, SG_CONN_OK);
    if (cm->qp) {
        sg_qp_wake(cm->qp);
    }
}

static void up_disconnected(void *user, enum sg_conn_end why)
{
    struct sg_cm *cm = user;

    if (cm->state == SG_CM_ACCEPTED) {
        sg_cm_emit(cm, SG_EV_CM_ESTABLISHED, why);
    } else if (cm->state == SG_CM_UP) {
        sg_cm_emit(cm, SG_EV_CM_DISCONNECT, why);
    }
    if (cm->state == SG_CM_FAILED) {
        return;
    }
    cm->state = SG_CM_DOWN;
    if (cm->qp) {
        sg_cm_lose_peer(cm, false,
                        why == SG_CONN_CLOSED ? "the peer closed the connection"
                                              : sg_conn_end_text(why));
        sg_qp_defer(cm->qp, SG_DEFER_CLOSE);
    }
}

static void up_closed(void *user, enum sg_conn_end why)
{
    sg_cm_gone(user, why);
}

/* What a Terminate means for its queue pair. */
static const struct {
    enum sg_wc_status received; /* of the oldest request of ours */
    enum sg_event sent;         /* about what the peer has done */
} terminates[SG_TERM_CLASSES] = {
    [SG_TERM_CLASS_FORM] = { SG_WC_REM_INV_REQ_ERR, SG_EV_QP_REQ_ERR },
    [SG_TERM_CLASS_ACCESS] = { SG_WC_REM_ACCESS_ERR, SG_EV_QP_ACCESS_ERR },
    [SG_TERM_CLASS_FAILED] = { SG_WC_REM_OP_ERR, SG_EV_QP_REQ_ERR },
    [SG_TERM_CLASS_SENDER] = { SG_WC_REM_OP_ERR, SG_EV_QP_FATAL },
    [SG_TERM_CLASS_TRANSPORT] = { SG_WC_FATAL_ERR, SG_EV_QP_FATAL },
};

static void log_terminated(struct sg_qp *qp, const struct sg_term_info *t)
{
    char why[120];

    snprintf(why, sizeof(why), "Terminate %s: %s, %s, %s", t->sent ? "sent" : "received",
             sg_term_layer_name(t->layer), sg_term_type_name(t->layer, t->type),
             sg_term_code_name(t->layer, t->type, t->code));
    sg_qp_set_state(qp, SG_QP_TERMINATE, why);
}

static void up_terminated(void *user, const struct sg_term_info *t)
{
    struct sg_cm *cm = user;
    struct sg_qp *qp = cm->qp;
    uint32_t vendor = (uint32_t)(t->layer & 0xf) << 28 | (uint32_t)(t->type & 0xf) << 24 |
                      (uint32_t)t->code << 16;
    enum sg_term_class class = sg_term_classify(t->layer, t->type, t->code);
    enum sg_event event;

    if (!qp) {
        return;
    }
    if (t->sent) {
        if (qp->local_error) {
            return; /* a completion or an event has reported it */
        }
        event = terminates[class].sent;
    } else if (sg_sq_fail_oldest(qp, terminates[class].received, vendor)) {
        event = SG_EV_NONE;
    } else {
        event = SG_EV_QP_FATAL;
    }
    if (event != SG_EV_NONE) {
        sg_eq_async(cm->adapter, &(struct sg_async){ .event = event, .id = qp->qpn });
    }
    if (qp->state != SG_QP_ERROR) {
        log_terminated(qp, t);
    }
}

static void up_faulted(void *user, enum sg_conn_fault what)
{
    static const enum sg_event events[SG_FAULTS] = {
        [SG_FAULT_FORM] = SG_EV_QP_REQ_ERR,
        [SG_FAULT_ACCESS] = SG_EV_QP_ACCESS_ERR,
        [SG_FAULT_CRC] = SG_EV_QP_FATAL,
        [SG_FAULT_HERE] = SG_EV_QP_FATAL,
    };
    struct sg_cm *cm = user;

    if (cm->qp && !cm->qp->local_error) { /* else a completion or an event has reported it */
        sg_eq_async(cm->adapter, &(struct sg_async){ .event = events[what], .id = cm->qp->qpn });
    }
}

/* ---- transmit ---- */

static void up_tx_ready(void *user)
{
    sg_cm_ready(user);
}

static bool up_next(void *user, struct sg_msg *msg, unsigned reads_room)
{
    struct sg_cm *cm = user;

    return cm->qp && sg_sq_next(cm->qp, msg, reads_room);
}

static int up_gather(void *user, const struct sg_msg *msg, uint32_t off, uint32_t len,
                     struct iovec *iov)
{
    struct sg_cm *cm = user;

    return cm->qp ? sg_sq_gather(cm->qp, msg, off, len, iov) : SG_GATHER_CLOSED;
}

static void up_gathered(void *user, struct iovec *iov, int n)
{
    sg_mem_release(((struct sg_cm *)user)->adapter, iov, n);
}

static void up_started(void *user, const struct sg_msg *msg, uint64_t ordinal)
{
    struct sg_cm *cm = user;

    if (cm->qp) {
        sg_sq_started(cm->qp, msg, ordinal);
    }
}

static void up_sent(void *user, const struct sg_msg *msg)
{
    struct sg_cm *cm = user;

    if (cm->qp) {
        sg_sq_sent(cm->qp, msg);
    }
}

static void up_read_done(void *user, uint32_t octets)
{
    struct sg_cm *cm = user;

    if (cm->qp) {
        sg_sq_read_done(cm->qp, octets);
    }
}

static void up_confirmed(void *user)
{
    struct sg_cm *cm = user;

    if (cm->qp) {
        sg_sq_probe_done(cm->qp);
    }
}

static void up_mpe_done(void *user, enum sg_msg_kind kind, const uint8_t *hash, size_t len)
{
    struct sg_cm *cm = user;

    if (cm->qp) {
        cm->qp->mem.ordinal = sg_conn_ordinal(cm->base.engine);
        sg_sq_mpe_done(cm->qp, kind, hash, len);
    }
}

static void up_atomic_done(void *user, enum sg_msg_kind kind, uint64_t original)
{
    struct sg_cm *cm = user;

    if (cm->qp) {
        cm->qp->mem.ordinal = sg_conn_ordinal(cm->base.engine);
        sg_sq_atomic_done(cm->qp, kind, original);
    }
}

enum { ADDRESS_TEXT = 56, LINK_TEXT = 2 * ADDRESS_TEXT + 40 };

static void address_text(const struct sg_endpoint *at, char text[ADDRESS_TEXT])
{
    const uint8_t *ip = at->ip;

    if (at->family == 6) {
        snprintf(text, ADDRESS_TEXT, "[%x:%x:%x:%x:%x:%x:%x:%x]:%u", sg_get_be16(ip),
                 sg_get_be16(ip + 2), sg_get_be16(ip + 4), sg_get_be16(ip + 6), sg_get_be16(ip + 8),
                 sg_get_be16(ip + 10), sg_get_be16(ip + 12), sg_get_be16(ip + 14), at->port);
    } else {
        snprintf(text, ADDRESS_TEXT, "%u.%u.%u.%u:%u", ip[0], ip[1], ip[2], ip[3], at->port);
    }
}

/* Which segment of which connection it is, in the same words at both ends. */
static void link_text(struct sg_conn *c, const struct sg_seg_note *n, char text[LINK_TEXT])
{
    struct sg_endpoint own = { 0 }, peer = { 0 };
    char from[ADDRESS_TEXT], to[ADDRESS_TEXT];

    sg_conn_endpoints(c, &own, &peer);
    address_text(n->sent ? &own : &peer, from);
    address_text(n->sent ? &peer : &own, to);
    snprintf(text, LINK_TEXT, "segment %" PRIu64 ", %s > %s", n->ordinal, from, to);
}

/* The lines of segments; tools/launcher/timeline_lines.py reads them. */
static void up_segment(void *user, const struct sg_seg_note *n)
{
    const struct sg_cm *cm = user;
    const char *did = n->sent ? "sent" : "received", *last = n->last ? ", last" : "";
    char link[LINK_TEXT];

    if (!cm->qp) {
        return;
    }
    link_text(cm->base.engine, n, link);
    if (n->tagged) {
        sg_flow(&cm->adapter->host, "qp %u: %s %s, STag 0x%08x, TO 0x%" PRIx64 ", %u octets%s, %s",
                cm->qp->qpn, did, n->message, n->number, n->at, n->octets, last, link);
    } else {
        sg_flow(&cm->adapter->host, "qp %u: %s %s, MSN %u, offset %" PRIu64 ", %u octets%s, %s",
                cm->qp->qpn, did, n->message, n->number, n->at, n->octets, last, link);
    }
}

const struct sg_engine_ops sg_cm_engine_ops = {
    .request_room = up_request_room,
    .request = up_request,
    .request_gone = up_request_gone,
    .reply = up_reply,
    .established = up_established,
    .disconnected = up_disconnected,
    .closed = up_closed,
    .terminated = up_terminated,
    .faulted = up_faulted,
    .tx_ready = up_tx_ready,
    .next = up_next,
    .gather = up_gather,
    .gathered = up_gathered,
    .started = up_started,
    .sent = up_sent,
    .read_done = up_read_done,
    .confirmed = up_confirmed,
    .mpe_done = up_mpe_done,
    .atomic_done = up_atomic_done,
    .place_write = sg_in_place_write,
    .place_read = sg_in_place_read,
    .place_recv = sg_in_place_recv,
    .recv_done = sg_in_recv_done,
    .invalidate = sg_in_invalidate,
    .check_source = sg_in_check_source,
    .gather_source = sg_in_gather_source,
    .mpe = sg_in_mpe,
    .answered = sg_in_answered,
    .atomic = sg_in_atomic,
    .write_placed = sg_in_write_placed,
    .segment = up_segment,
};
