/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of a queue pair and its transitions.
 *
 *   IDLE ----CONNECT succeeds, ACCEPT--------------> RTS            sg_qp_start
 *   RTS -----MODIFY to CLOSING---------------------> CLOSING        sg_qp_close
 *   RTS, CLOSING --faulty work request, Terminate--> TERMINATE      sg_qp_local_error, upcalls.c
 *   any -----peer gone, MODIFY, fatal--------------> ERROR          sg_qp_fail, sg_qp_abort, cm.c
 *   ERROR ---MODIFY, unconnected, all flushed------> IDLE           qp_cmd.c
 *
 * sg_qp_set_state() is the only writer of the state and logs every change.
 *
 *   IDLE       entries may be posted, none is executed
 *   RTS        work flows
 *   CLOSING    entries posted before are still executed, then FIN; receives still work
 *   TERMINATE  nothing is executed; a Terminate was sent or received, the stream ends
 *   ERROR      all entries, including later ones, are completed as flushed (qp_flush.c)
 *
 * A connection that ends gracefully also leaves its queue pair in ERROR, not in IDLE: consumers
 * wait for their receives to be flushed, and one rule for all ends is easier to rely on.
 *
 * A connection with SG_CONNECT_STAY is the exception: if no send is posted, its end leaves the
 * queue pair in RTS, 'peer_left', until something is sent; and an accepted connection that was
 * never established leaves it in IDLE, with all that is posted.  See sg_cm_lose_peer() in cm.c.
 *
 * The engine calls up in the middle of its own work, so what verbs then require of the connection
 * (close it, terminate it) is recorded in 'deferred' and done in the next turn.
 */
#include "verbs/queues/qp.h"

#include "verbs/memory/pm.h"
#include "verbs/events/eq.h"
#include "verbs/state/adapter_state.h"

const char *sg_qp_state_name(unsigned state)
{
    static const char *const names[] = {
        [SG_QP_IDLE] = "IDLE",           [SG_QP_RTS] = "RTS",     [SG_QP_CLOSING] = "CLOSING",
        [SG_QP_TERMINATE] = "TERMINATE", [SG_QP_ERROR] = "ERROR",
    };

    return state < SG_ARRAY_SIZE(names) ? names[state] : "?";
}

void sg_qp_set_state(struct sg_qp *qp, enum sg_qp_state state, const char *why)
{
    if (qp->state == state) {
        return;
    }
    sg_log(&qp->adapter->host,
           state == SG_QP_TERMINATE || state == SG_QP_ERROR ? SG_LOG_FAILURE : SG_LOG_STATE,
           "qp %u: %s -> %s: %s", qp->qpn, sg_qp_state_name(qp->state), sg_qp_state_name(state),
           why);
    qp->state = state;
    if (state == SG_QP_ERROR) {
        sg_qp_flush_later(qp);
    }
    if (qp->rnr.wait && (state == SG_QP_ERROR || state == SG_QP_TERMINATE)) {
        sg_rnr_stop(qp);
        sg_qp_defer(qp, SG_DEFER_RESUME); /* skips what waited */
    }
}

void sg_qp_defer(struct sg_qp *qp, enum sg_qp_deferred what)
{
    qp->deferred |= what;
    sg_list_append(&qp->adapter->deferred, &qp->deferred_link);
    sg_adapter_kick(qp->adapter);
}

void sg_qp_fail(struct sg_qp *qp, enum sg_event event, const char *why)
{
    if (event != SG_EV_NONE && !qp->fatal_reported) {
        qp->fatal_reported = true;
        sg_eq_async(qp->adapter, &(struct sg_async){ .event = event, .id = qp->qpn });
    }
    qp->local_error = true;
    sg_qp_set_state(qp, SG_QP_ERROR, why);
    if (qp->conn) {
        sg_qp_defer(qp, SG_DEFER_TERMINATE);
    }
}

void sg_qp_unreadable(struct sg_qp *qp, const char *why)
{
    if (sg_checking(qp->adapter)) {
        sg_check_found(qp->adapter, SG_RULE_DMA_RING, sg_qp_object(qp), "%s", why);
    }
    sg_qp_fail(qp, SG_EV_QP_FATAL, why);
}

void sg_qp_local_error(struct sg_qp *qp, const char *why)
{
    qp->local_error = true;
    if (qp->state == SG_QP_RTS || qp->state == SG_QP_CLOSING) {
        sg_qp_set_state(qp, SG_QP_TERMINATE, why);
    }
}

bool sg_qp_run_deferred(struct sg_adapter *a)
{
    struct sg_link *k;
    bool over = false;

    for (; !over && (k = sg_list_pop(&a->deferred)); over = sg_turn_over(a)) {
        struct sg_qp *qp = sg_container_of(k, struct sg_qp, deferred_link);
        uint8_t what = qp->deferred;
        struct sg_conn *conn = qp->conn ? qp->conn->engine : NULL;

        qp->deferred = 0;
        if (!conn) {
            continue;
        }
        if (what & SG_DEFER_TERMINATE) {
            /* RFC 5040 section 7.1: the error is ours, so no headers are included. */
            sg_conn_terminate(conn, 0, 0, 0);
            continue;
        }
        if (what & SG_DEFER_CLOSE) {
            sg_conn_close(conn);
        }
        if (what & SG_DEFER_RESUME) {
            sg_conn_resume(conn);
        }
    }
    return !sg_list_empty(&a->deferred);
}

void sg_qp_start(struct sg_qp *qp, const char *why)
{
    sg_pm_complete_writes(&qp->mem);
    qp->deferred = 0; /* that was for an earlier connection */
    sg_odp_forget(&qp->mem);
    sg_rnr_stop(qp);
    qp->rq.base = qp->rq.ring.cons;
    qp->rq.cur_valid = false;
    qp->local_error = false;
    qp->peer_left = false;
    sg_sq_confirm_start(qp);
    sg_qp_set_state(qp, SG_QP_RTS, why);
    sg_qp_wake(qp);
}

void sg_qp_unreachable(struct sg_qp *qp, const char *why)
{
    if (qp->state != SG_QP_ERROR) {
        qp->sq.flush_status = SG_WC_RETRY_EXC_ERR;
    }
    sg_qp_set_state(qp, SG_QP_ERROR, why);
}

void sg_qp_wake(struct sg_qp *qp)
{
    if (qp->conn && qp->conn->engine && (qp->state == SG_QP_RTS || qp->state == SG_QP_CLOSING)) {
        sg_conn_wake(qp->conn->engine);
    }
}

void sg_qp_close(struct sg_qp *qp)
{
    qp->sq.close_at = qp->sq.ring.prod;
    sg_qp_set_state(qp, SG_QP_CLOSING, "closed by its owner");
    if (qp->conn && qp->conn->engine) {
        sg_conn_prepare_close(qp->conn->engine);
    }
    if (qp->sq.ring.cons == qp->sq.close_at) {
        sg_qp_defer(qp, SG_DEFER_CLOSE);
    }
}

/*
 * What was reported as sent must reach the peer, so the end is a FIN unless a message would be
 * truncated or an answer of the peer is outstanding; then it is a reset.
 */
void sg_qp_abort(struct sg_qp *qp)
{
    bool quiet = sg_sq_all_sent(&qp->sq);

    sg_qp_set_state(qp, SG_QP_ERROR, "aborted by its owner");
    if (!qp->conn || !qp->conn->engine) {
        return;
    }
    if (quiet && qp->conn->streaming) {
        sg_qp_defer(qp, SG_DEFER_CLOSE);
    } else {
        qp->adapter->conn_ops->abort(qp->conn);
    }
}

/* Not SG_COLD, which would make it slow: with a checker it is called for each completion. */
static __attribute__((noinline)) void complete_checked(struct sg_qp *qp, struct sg_cq *cq,
                                                       const struct sg_wc *wc)
{
    sg_check_qp_told(qp, wc);
    sg_cq_post(qp->adapter, cq, wc);
}

void sg_qp_complete(struct sg_qp *qp, struct sg_cq *cq, const struct sg_wc *wc)
{
    qp->counters.completions++;
    qp->counters.errors += wc->status != SG_WC_SUCCESS && wc->status != SG_WC_FLUSH_ERR;
    if (sg_checking(qp->adapter)) {
        complete_checked(qp, cq, wc);
    } else {
        sg_cq_post(qp->adapter, cq, wc);
    }
}

static void page_fault(struct sg_adapter *a, uint32_t stag, bool write, uint64_t first,
                       uint32_t count)
{
    sg_eq_async(a, &(struct sg_async){
                       .event = SG_EV_PAGE_FAULT,
                       .id = stag,
                       .conn = write,
                       .page = first,
                       .aux = count,
                   });
}

static void resume(struct sg_mem_ctx *ctx)
{
    struct sg_qp *qp = sg_container_of(ctx, struct sg_qp, mem);

    if (qp->conn && qp->conn->engine) {
        sg_qp_wake(qp); /* an entry that was not started */
        sg_conn_resume(qp->conn->engine);
    }
}

const struct sg_mem_ops sg_qp_mem_ops = { .page_fault = page_fault, .resume = resume };

/* ---- completion queues that failed ---- */

/* False: the time of the turn is over, and there may be more of them. */
static bool fail_user(struct sg_adapter *a, struct sg_qp *qp)
{
    if (qp->state != SG_QP_ERROR) {
        sg_qp_fail(qp, SG_EV_NONE, "CQ error");
        return !sg_turn_over(a);
    }
    return true;
}

/* Each once: a failed one leaves the list, or the next turn would begin with all of them. */
static bool fail_users(struct sg_adapter *a, struct sg_cq *cq)
{
    struct sg_link *k;

    while ((k = sg_list_pop(&cq->senders))) {
        sg_list_append(&cq->failed, k);
        if (!fail_user(a, sg_container_of(k, struct sg_qp, scq_link))) {
            return false;
        }
    }
    while ((k = sg_list_pop(&cq->receivers))) {
        sg_list_append(&cq->failed, k);
        if (!fail_user(a, sg_container_of(k, struct sg_qp, rcq_link))) {
            return false;
        }
    }
    return true;
}

bool sg_qp_run_cq_errors(struct sg_adapter *a)
{
    struct sg_link *k;

    while ((k = sg_list_pop(&a->cq_errors))) {
        struct sg_cq *cq = sg_container_of(k, struct sg_cq, error_link);

        if (!fail_users(a, cq)) {
            sg_list_append(&a->cq_errors, k);
            return true;
        }
    }
    return false;
}
