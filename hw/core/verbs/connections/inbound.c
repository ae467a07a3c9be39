/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Effects of the peer's messages on memory: the engine's upcalls for received segments.
 *
 * Each upcall names a connection, whose QP may be gone or no longer receiving: then no memory is
 * accessed.  The protection table checks memory with every segment; nothing is placed unless all of
 * the segment may be (for a Read with several elements: its part of an element).  Writes to
 * persistent memory may be deferred; pm.c says when they must be completed, and the callers here do
 * it.
 */
#include "verbs/connections/inbound.h"

#include "verbs/connections/atomic_target.h"
#include "verbs/connections/cm.h"
#include "verbs/memory/mem.h"
#include "verbs/memory/pm.h"
#include "verbs/queues/qp.h"
#include "verbs/state/adapter_state.h"

/*
 * May the peer access memory through this connection now?  NULL: it is ending, for reasons of our
 * own or because the peer has closed; then what arrives is dropped, without an error.
 */
static struct sg_qp *open_qp(void *user)
{
    struct sg_qp *qp = ((struct sg_cm *)user)->qp;

    return qp && (qp->state == SG_QP_RTS || qp->state == SG_QP_CLOSING) ? qp : NULL;
}

/* The same for a message that makes a completion or an event of persistent memory. */
static struct sg_qp *open_numbered(void *user)
{
    struct sg_qp *qp = open_qp(user);

    if (qp) {
        qp->mem.ordinal = sg_conn_ordinal(qp->conn->engine);
    }
    return qp;
}

/* Are the pages there?  A page that does not exist counts as inaccessible. */
static enum sg_mem_status pages(struct sg_qp *qp, enum sg_odp_side side, const struct sg_mr *mr,
                                uint64_t to, uint64_t len, bool write)
{
    static const enum sg_mem_status status[] = {
        [SG_ODP_READY] = SG_MEM_OK,
        [SG_ODP_WAIT] = SG_MEM_LATER,
        [SG_ODP_FAILED] = SG_MEM_ACCESS,
    };

    return status[sg_odp_ready(&qp->mem, side, mr, to, len, write)];
}

enum sg_mem_status sg_in_place_write(void *user, uint32_t stag, uint64_t to, const uint8_t *p,
                                     size_t n)
{
    struct sg_qp *qp = open_qp(user);
    struct sg_cm *cm = user;
    enum sg_mem_status st;
    struct sg_mr *mr;

    if (!qp) {
        return SG_MEM_CLOSED;
    }
    if (n == 0) {
        return SG_MEM_OK;
    }
    st = sg_tpt_check_remote(&qp->mem, stag, to, n, SG_ACCESS_REMOTE_WRITE, &mr);
    if (st == SG_MEM_OK) {
        st = pages(qp, SG_ODP_RECEIVE, mr, to, n, true);
    }
    if (st == SG_MEM_LATER) {
        return st;
    }
    if (st == SG_MEM_OK && mr->pm) {
        qp->mem.ordinal = sg_conn_ordinal(cm->base.engine);
    }
    if (st == SG_MEM_OK && !sg_mem_place(&qp->mem, mr, to, p, n)) {
        st = SG_MEM_FAULT;
    }
    qp->counters.rx_octets += n;
    if (!cm->write_open) {
        if (st == SG_MEM_OK) {
            mr->counters.remote_writes++;
        }
        qp->counters.rx_requests++;
        cm->write_open = true;
        cm->write_to = to;
    }
    return st;
}

void sg_in_write_placed(void *user)
{
    struct sg_qp *qp = open_qp(user);
    struct sg_cm *cm = user;

    if (qp) {
        if (cm->adapter->host.ops->pm_milestone) {
            sg_pm_milestone(&qp->mem, 0, sg_conn_ordinal(cm->base.engine),
                            cm->write_open ? cm->write_to : 0, SG_PM_WRITE_PLACED);
        }
        cm->write_open = false;
    }
}

/* Places the octets of a Response that belong to one element. */
static enum sg_mem_status place_sink(struct sg_qp *qp, uint32_t stag, uint64_t to, const uint8_t *p,
                                     size_t n)
{
    struct sg_mr *mr;
    enum sg_mem_status st = sg_tpt_check_local(&qp->mem, stag, to, n, SG_ACCESS_LOCAL_WRITE, &mr);

    if (st == SG_MEM_OK) {
        st = pages(qp, SG_ODP_RECEIVE, mr, to, n, true);
    }
    return st != SG_MEM_OK || sg_mem_place(&qp->mem, mr, to, p, n) ? st : SG_MEM_FAULT;
}

enum sg_mem_status sg_in_place_read(void *user, const struct sg_read_sink *sink, uint32_t off,
                                    const uint8_t *p, size_t n)
{
    struct sg_qp *qp = open_numbered(user);
    enum sg_mem_status st = SG_MEM_OK;
    uint32_t index = (uint32_t)sink->cookie, stag;
    size_t done = 0, piece;
    uint64_t to;

    if (!qp || index - qp->sq.ring.cons >= qp->sq.next - qp->sq.ring.cons) {
        return SG_MEM_CLOSED;
    }
    sg_sq_confirm_earlier(qp);
    while (st == SG_MEM_OK && done < n) {
        piece = sg_scatter_piece(sg_sq_rec(&qp->sq, index), sink, off + (uint32_t)done, &stag, &to);
        sg_assert(piece);
        piece = SG_MIN(piece, n - done);
        st = place_sink(qp, stag, to, p + done, piece);
        done += piece;
    }
    if (st == SG_MEM_LATER) {
        return st; /* retry all of it later */
    }
    qp->counters.rx_octets += n;
    if (st != SG_MEM_OK) {
        /* The sink was valid when we asked: its owner revoked it; the peer did nothing wrong. */
        sg_sq_fail_entry(qp, index, SG_WC_LOC_PROT_ERR);
        sg_qp_local_error(qp, "sink of a Read is gone");
        sg_qp_defer(qp, SG_DEFER_TERMINATE);
        return SG_MEM_CLOSED;
    }
    return SG_MEM_OK;
}

enum sg_recv_status sg_in_place_recv(void *user, uint32_t msn, uint32_t mo, const uint8_t *p,
                                     size_t n)
{
    struct sg_qp *qp = open_numbered(user);

    return qp ? sg_rq_place(qp, msn, mo, p, n) : SG_RECV_CLOSED;
}

void sg_in_recv_done(void *user, const struct sg_recv_info *info)
{
    struct sg_qp *qp = open_numbered(user);

    if (qp) {
        sg_rq_done(qp, info);
    }
}

enum sg_mem_status sg_in_invalidate(void *user, uint32_t stag)
{
    struct sg_qp *qp = open_qp(user);
    enum sg_mem_status st;
    struct sg_mr *mr;

    if (!qp) {
        return SG_MEM_CLOSED;
    }
    st = sg_tpt_check_invalidate(&qp->mem, stag, &mr);
    if (st == SG_MEM_OK && !mr->valid) {
        st = SG_MEM_STAG;
    }
    if (st == SG_MEM_OK) {
        sg_tpt_invalidate(qp->adapter, mr);
    }
    return st;
}

enum sg_mem_status sg_in_check_source(void *user, uint32_t stag, uint64_t to, uint32_t len)
{
    struct sg_qp *qp = open_qp(user);
    enum sg_mem_status st;
    struct sg_mr *mr;

    if (!qp) {
        return SG_MEM_CLOSED;
    }
    st = sg_tpt_check_remote(&qp->mem, stag, to, len, SG_ACCESS_REMOTE_READ, &mr);
    if (st == SG_MEM_OK) {
        mr->counters.remote_reads++;
        qp->counters.rx_requests++;
    }
    return st;
}

int sg_in_gather_source(void *user, uint32_t stag, uint64_t to, uint32_t len, struct iovec *iov,
                        enum sg_mem_status *why)
{
    struct sg_gather g = { .iov = iov, .max = SG_ENGINE_IOV_MAX };
    struct sg_cm *cm = user;
    struct sg_qp *qp = cm->qp;
    struct sg_mr *mr;

    /* An answer that was promised is sent even while we close. */
    *why = qp && qp->state != SG_QP_ERROR
               ? sg_tpt_check_remote(&qp->mem, stag, to, len, SG_ACCESS_REMOTE_READ, &mr)
               : SG_MEM_CLOSED;
    if (*why == SG_MEM_OK) {
        *why = pages(qp, SG_ODP_ANSWER, mr, to, len, false);
    }
    if (*why != SG_MEM_OK) {
        return -1;
    }
    sg_pm_complete_writes(&qp->mem);
    qp->counters.tx_octets += len;
    if (!sg_mem_gather(cm->adapter, &g, mr, to, len)) {
        sg_mem_release(cm->adapter, iov, g.n);
        *why = SG_MEM_FAULT;
        return -1;
    }
    return g.n;
}

enum sg_exec_result sg_in_mpe(void *user, const struct sg_mpe_req *r, uint8_t hash[64],
                              uint8_t *hash_len, enum sg_mem_status *why, uint64_t *token,
                              uint64_t *again_ns)
{
    struct sg_qp *qp = open_numbered(user);

    if (!qp) {
        return SG_EXEC_CLOSED;
    }
    return sg_mpe_target_run(user, r, hash, hash_len, why, token, again_ns);
}

void sg_in_answered(void *user, const struct sg_answer *r)
{
    struct sg_cm *cm = user;

    if (!cm->qp) {
        return;
    }
    if (r->kind == SG_MSG_FLUSH) {
        sg_pm_milestone(&cm->qp->mem, r->msn, r->ordinal, r->to, SG_PM_AFTER_FLUSH_ANSWER);
    }
    sg_cm_observe_answer(cm, r);
}

enum sg_exec_result sg_in_atomic(void *user, const struct sg_atomic_call *r, uint64_t *original,
                                 enum sg_mem_status *why, uint64_t *token, uint64_t *again_ns)
{
    struct sg_qp *qp = open_numbered(user);

    if (!qp) {
        return SG_EXEC_CLOSED;
    }
    return sg_atomic_target_run(qp, r, original, why, token, again_ns);
}
