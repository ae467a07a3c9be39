/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections as objects: how they begin and end, which events the driver gets, and in which order
 * they transmit.  The engine's upcalls about them are in upcalls.c and inbound.c.
 *
 * The order of events for one connection is
 *
 *   active    CM_REPLY (ok), [CM_DISCONNECT], CM_CLOSED         or CM_REPLY (failed)
 *   passive   CM_REQUEST, then after ACCEPT: CM_ESTABLISHED (ok), [CM_DISCONNECT], CM_CLOSED
 *             or CM_ESTABLISHED (failed), CM_CLOSED; without an answer: CM_CLOSED
 *
 * A driver reads events late.  So the number and the CM_DATA of a connection that had a queue pair
 * stay valid after its last event, until the queue pair is destroyed or gets another
 * connection: each queue pair has at most one such past connection.  They do not block new
 * connections: when all numbers are in use, the oldest past connection releases its own.  A
 * connection whose queue pair was destroyed raises no more events.
 *
 * Ready connections wait in one list and are served round-robin, SG_TURN_QUANTUM octets each.  The
 * cost of executing the peer's requests meanwhile (mpe_target.c) counts like octets sent.
 */
#include <glib.h>

#include "verbs/connections/cm_impl.h"
#include "verbs/memory/mem.h"
#include "verbs/memory/pm.h"
#include "verbs/events/eq.h"
#include "verbs/queues/qp.h"
#include "verbs/state/adapter_state.h"

enum sg_cm_status sg_cm_status_of(enum sg_conn_end end)
{
    static const uint8_t map[] = {
        [SG_CONN_OK] = SG_CM_OK,
        [SG_CONN_REJECTED] = SG_CM_REJECTED,
        [SG_CONN_REFUSED] = SG_CM_REFUSED,
        [SG_CONN_TIMEOUT] = SG_CM_TIMEOUT,
        [SG_CONN_RESET] = SG_CM_RESET,
        [SG_CONN_PROTOCOL] = SG_CM_PROTOCOL,
        [SG_CONN_CLOSED] = SG_CM_CLOSED,
        [SG_CONN_TERMINATED] = SG_CM_TERMINATED,
        [SG_CONN_UNREACHABLE] = SG_CM_UNREACHABLE,
        [SG_CONN_NORES] = SG_CM_NORES,
    };

    return map[end];
}

/* Forgets the past connection that ended first; false: there is none. */
static bool forget_oldest(struct sg_adapter *a)
{
    struct sg_link *k = sg_list_pop(&a->past_conns);

    if (!k) {
        return false;
    }
    sg_cm_free(sg_container_of(k, struct sg_cm, ready_link));
    return true;
}

/* Memory for the peer's private data is charged to the account in advance. */
static void drop_place(struct sg_adapter *a, struct sg_cm *cm)
{
    sg_account_object_free(&a->account, cm, sizeof(*cm));
    sg_account_give(&a->account, SG_PRIVATE_DATA_MAX);
}

static struct sg_cm *find_place(struct sg_adapter *a)
{
    struct sg_cm *cm;

    if (!sg_account_take(&a->account, SG_PRIVATE_DATA_MAX)) {
        return NULL;
    }
    cm = sg_account_object(&a->account, sizeof(*cm));
    /* A recently used number may still be in the driver's event queue. */
    if (!cm || !sg_idtab_alloc_fresh(&a->conns, cm, &cm->id)) {
        drop_place(a, cm);
        return NULL;
    }
    return cm;
}

struct sg_cm *sg_cm_new(struct sg_adapter *a, enum sg_cm_state state)
{
    struct sg_cm *cm = find_place(a);

    if (!cm && forget_oldest(a)) {
        cm = find_place(a);
    }
    if (cm) {
        cm->adapter = a;
        cm->state = state;
        cm->passive = state == SG_CM_REQUEST;
    }
    return cm;
}

/* Neither transmits nor executes any more. */
static void stop(struct sg_cm *cm)
{
    sg_mpe_target_drop(cm);
    sg_list_remove(&cm->ready_link);
    if (cm->adapter->transmitting == cm) {
        cm->adapter->transmitting = NULL;
    }
}

void sg_cm_free(struct sg_cm *cm)
{
    sg_cm_observe_end(cm, SG_CONN_RESET); /* if nobody has told the host before */
    stop(cm);                             /* or takes it from another list */
    if (cm->qp && cm->qp->conn == &cm->base) {
        cm->qp->conn = NULL;
    }
    if (cm->qp && cm->qp->past_cm == cm) {
        cm->qp->past_cm = NULL;
    }
    if (cm->listen) {
        cm->listen->pending--;
    }
    sg_idtab_free(&cm->adapter->conns, cm->id);
    g_free(cm->pdata);
    drop_place(cm->adapter, cm);
}

void sg_cm_emit(struct sg_cm *cm, enum sg_event event, enum sg_conn_end end)
{
    struct sg_async ev = {
        .event = event,
        .status = sg_cm_status_of(end),
        .conn = cm->id,
        .id = cm->qp ? cm->qp->qpn : 0,
        .aux = cm->listen ? cm->listen->id : 0,
    };

    if (cm->qp) {
        /* The receiver of this event must find what was written before. */
        sg_pm_complete_writes(&cm->qp->mem);
    }
    if (cm->qp || cm->state == SG_CM_REQUEST) {
        sg_eq_async(cm->adapter, &ev);
    }
}

/* Stores what CM_DATA returns from now on; false: no memory for the private data. */
bool sg_cm_keep_params(struct sg_cm *cm, const struct sg_conn_params *p)
{
    cm->ird = p->ird;
    cm->base.ord = p->ord;
    cm->peer_ird = p->peer_ird;
    cm->peer_ord = p->peer_ord;
    cm->mpa_rev = p->mpa_rev;
    g_free(cm->pdata);
    cm->pdata_len = SG_MIN(p->pdata_len, SG_PRIVATE_DATA_MAX);
    cm->pdata = cm->pdata_len ? g_try_malloc(cm->pdata_len) : NULL;
    if (cm->pdata_len && !cm->pdata) {
        cm->pdata_len = 0;
        return false;
    }
    if (cm->pdata_len) {
        memcpy(cm->pdata, p->pdata, cm->pdata_len);
    }
    return true;
}

void sg_cm_ready(struct sg_cm *cm)
{
    sg_list_append(&cm->adapter->ready, &cm->ready_link);
    sg_adapter_kick(cm->adapter);
}

/* The connection has ended for the queue pair; finally: TCP is gone as well. */
void sg_cm_lose_peer(struct sg_cm *cm, bool finally, const char *why)
{
    struct sg_qp *qp = cm->qp;

    if (!cm->base.stay || qp->state != SG_QP_RTS) {
        sg_qp_set_state(qp, SG_QP_ERROR, why);
    } else if (!cm->was_up) {
        /* Nothing arrived, and a responder sends nothing before: as if there had been no ACCEPT. */
        if (finally) {
            sg_qp_set_state(qp, SG_QP_IDLE, why);
        }
    } else if (sg_sq_idle(&qp->sq)) {
        qp->peer_left = true;
    } else {
        sg_qp_unreachable(qp, why);
    }
}

/* Its events may not have been read yet: their data stay with the queue pair. */
static void become_past(struct sg_cm *cm)
{
    struct sg_qp *qp = cm->qp;

    if (!qp) {
        sg_cm_free(cm);
        return;
    }
    stop(cm);
    sg_cm_forget_past(qp);
    qp->conn = NULL;
    qp->past_cm = cm;
    sg_list_append(&cm->adapter->past_conns, &cm->ready_link);
}

void sg_cm_forget_past(struct sg_qp *qp)
{
    if (qp->past_cm) {
        sg_cm_free(qp->past_cm);
    }
}

/* TCP is gone: the last event of this connection. */
void sg_cm_gone(struct sg_cm *cm, enum sg_conn_end why)
{
    struct sg_qp *qp = cm->qp;

    cm->base.engine = NULL;
    sg_cm_observe_end(cm, why);
    if (cm->state == SG_CM_FAILED) { /* the driver got its last event already */
        if (!qp) {
            sg_cm_free(cm);
        }
        return;
    }
    cm->adapter->stats.conn_closed++;
    if (cm->state == SG_CM_ACCEPTED) {
        sg_cm_emit(cm, SG_EV_CM_ESTABLISHED, why);
    } else if (cm->state == SG_CM_UP) {
        sg_cm_emit(cm, SG_EV_CM_DISCONNECT, why);
    }
    if (qp) {
        sg_cm_lose_peer(cm, true, sg_conn_end_text(why));
    }
    sg_cm_emit(cm, SG_EV_CM_CLOSED, why);
    become_past(cm);
}

void sg_cm_abort(struct sg_cm *cm)
{
    if (cm->base.engine) {
        sg_conn_abort(cm->base.engine);
    }
    if (cm->state == SG_CM_CONNECTING) {
        cm->base.engine = NULL;
        cm->state = SG_CM_FAILED;
        sg_list_remove(&cm->ready_link);
        sg_cm_emit(cm, SG_EV_CM_REPLY, SG_CONN_RESET);
        return;
    }
    if (cm->state == SG_CM_UP) {
        cm->state = SG_CM_DOWN; /* its owner has been told */
    }
    sg_cm_gone(cm, SG_CONN_RESET);
}

void sg_cm_release(struct sg_cm *cm)
{
    bool closing =
        (cm->qp->state == SG_QP_CLOSING || cm->state == SG_CM_DOWN || cm->state == SG_CM_FAILED) &&
        !sg_link_queued(&cm->qp->mem.paging_link); /* else it would never continue */
    bool quiet = sg_sq_all_sent(&cm->qp->sq) && !sg_link_queued(&cm->qp->mem.paging_link);

    sg_cm_observe_end(cm, SG_CONN_CLOSED);
    cm->qp->conn = NULL;
    cm->qp = NULL;
    sg_mpe_target_drop(cm);
    if (cm->base.engine && cm->base.streaming && (closing || quiet)) {
        sg_conn_abandon(cm->base.engine);
        return; /* 'closed' frees it */
    }
    if (cm->base.engine) {
        sg_conn_abort(cm->base.engine);
    }
    sg_cm_free(cm);
}

static void conn_ready(struct sg_qp_conn *conn)
{
    sg_cm_ready(sg_container_of(conn, struct sg_cm, base));
}

static void conn_abort(struct sg_qp_conn *conn)
{
    sg_cm_abort(sg_container_of(conn, struct sg_cm, base));
}

const struct sg_qp_conn_ops sg_cm_conn_ops = { .ready = conn_ready, .abort = conn_abort };

bool sg_cm_quiesce(struct sg_adapter *a)
{
    struct sg_cm *cm;
    unsigned n = 0;

    while ((cm = sg_idtab_next(&a->conns, &a->quiesce_cursor, NULL))) {
        if (cm->base.engine) {
            sg_conn_abort(cm->base.engine);
            cm->base.engine = NULL;
            sg_cm_observe_end(cm, SG_CONN_RESET);
        }
        sg_list_remove(&cm->ready_link);
        if (++n % SG_TURN_END == 0 && (sg_turn_over(a) || n >= SG_TURN_ENDS)) {
            return true;
        }
    }
    return false;
}

void sg_cm_destroy(struct sg_adapter *a, void *object)
{
    struct sg_cm *cm = object;

    (void)a;
    if (cm->base.engine) {
        sg_conn_abort(cm->base.engine);
    }
    sg_cm_free(cm);
}

void sg_listen_destroy(struct sg_adapter *a, void *object)
{
    struct sg_listen *l = object;

    sg_engine_unlisten(l->engine);
    sg_account_object_free(&a->account, l, sizeof(*l));
}

bool sg_cm_transmit(struct sg_adapter *a, size_t budget)
{
    const uint64_t *sent = &sg_engine_stats(a->engine)->tx_octets;
    struct sg_link *k;
    bool over = false;

    for (; budget && !over && (k = sg_list_pop(&a->ready)); over = sg_turn_over(a)) {
        struct sg_cm *cm = sg_container_of(k, struct sg_cm, ready_link);
        uint64_t before = *sent, executed = a->executed, cost;

        if (!cm->base.engine || cm->mute) {
            continue;
        }
        a->transmitting = cm;
        if (sg_conn_transmit(cm->base.engine, SG_MIN(budget, (size_t)SG_TURN_QUANTUM)) &&
            a->transmitting) {
            sg_list_append(&a->ready, &cm->ready_link);
        }
        a->transmitting = NULL;
        cost = SG_MAX(*sent - before, (uint64_t)SG_TURN_MIN_COST) + (a->executed - executed);
        budget -= SG_MIN(cost, budget);
    }
    return !sg_list_empty(&a->ready);
}
