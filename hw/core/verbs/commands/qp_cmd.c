/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admin commands of queue pairs.
 */
#include "verbs/commands/admin_cmd.h"
#include "verbs/connections/cm.h"
#include "verbs/memory/pm.h"
#include "verbs/queues/qp.h"
#include "verbs/queues/srq.h"
#include "verbs/state/adapter_state.h"

/* Geometry of one queue: entries and stride are powers of two, a full entry fits its stride. */
static bool queue_ok(const struct sg_adapter *a, uint32_t entries, uint32_t stride, size_t hdr,
                     size_t body)
{
    return sg_is_pow2(entries) && entries >= 2 && entries <= a->config.max_qp_wr &&
           sg_is_pow2(stride) && stride >= SG_WQE_STRIDE_MIN && stride <= SG_WQE_STRIDE_MAX &&
           hdr + body <= stride;
}

static bool all_zero(const struct sg_page_list *l)
{
    static const struct sg_page_list zero;

    return !memcmp(l, &zero, sizeof(zero));
}

static enum sg_status check_create(const struct sg_adapter *a, const struct sg_cmd_create_qp *c)
{
    uint32_t flags = sg_get_le32(&c->flags), access = sg_get_le32(&c->access);
    uint16_t max_inline = sg_get_le16(&c->max_inline);
    size_t sq_body = SG_MAX(c->sq_max_sge * sizeof(struct sg_sge), (size_t)max_inline);
    size_t rq_body = c->rq_max_sge * sizeof(struct sg_sge);

    if (sg_get_le32(&c->uar) >= SG_UAR_COUNT ||
        (flags & ~(SG_QP_SIGNAL_ALL | SG_QP_KERNEL | SG_QP_SRQ)) || (access & ~SG_ACCESS_KNOWN) ||
        c->sq_max_sge > a->config.max_sge || c->rq_max_sge > a->config.max_sge ||
        max_inline > a->config.max_inline ||
        !queue_ok(a, sg_get_le32(&c->sq_entries), sg_get_le16(&c->sq_stride),
                  sizeof(struct sg_wqe_hdr), sq_body)) {
        return SG_EINVAL;
    }
    if (flags & SG_QP_SRQ) {
        if (!sg_adapter_may(a, SG_FEATURE_SRQ)) {
            return SG_ENOTSUP;
        }
        if (c->rq_entries || c->rq_stride || c->rq_max_sge || !all_zero(&c->rq_pages)) {
            return SG_EINVAL;
        }
    } else if (sg_get_le32(&c->srqn) ||
               !queue_ok(a, sg_get_le32(&c->rq_entries), sg_get_le16(&c->rq_stride),
                         sizeof(struct sg_rqe_hdr), rq_body)) {
        return SG_EINVAL;
    }
    return access & ~sg_access_offered(a) ? SG_ENOTSUP : SG_OK;
}

/*
 * Contexts that do not trust each other must not share a completion queue (RFC 5042 section 7.1).
 * Page 0 belongs to the kernel driver, which everybody trusts.
 */
static bool cq_may_serve(const struct sg_cq *cq, uint32_t uar)
{
    return cq->uar == 0 || cq->uar == uar;
}

static enum sg_status init_rings(struct sg_adapter *a, struct sg_qp *qp,
                                 const struct sg_cmd_create_qp *c)
{
    enum sg_status status;

    status = sg_ring_init_pages(&qp->sq.ring, &a->host, &c->sq_pages, sg_get_le32(&c->sq_entries),
                                sg_get_le16(&c->sq_stride));
    if (status != SG_OK) {
        return status;
    }
    if (!qp->srq) {
        status = sg_ring_init_pages(&qp->rq.ring, &a->host, &c->rq_pages,
                                    sg_get_le32(&c->rq_entries), sg_get_le16(&c->rq_stride));
    }
    if (status == SG_OK && !sg_idtab_alloc_fresh(&a->qps, qp, &qp->qpn)) {
        sg_ring_fini(&qp->rq.ring, &a->host);
        status = SG_ENOMEM;
    }
    if (status != SG_OK) {
        sg_ring_fini(&qp->sq.ring, &a->host);
    }
    return status;
}

/*
 * A zeroed queue pair, or NULL, with room for one entry of each queue and the rows of the send
 * entry's elements, in one piece, so that one with small entries is small.
 */
static struct sg_qp *new_qp(struct sg_adapter *a, const struct sg_cmd_create_qp *c,
                            const struct sg_srq *srq)
{
    size_t sq_stride = sg_get_le16(&c->sq_stride);
    size_t rq_stride = srq ? 1u << srq->ring.stride_shift : sg_get_le16(&c->rq_stride);
    size_t rows = c->sq_max_sge * sizeof(struct sg_mr *);
    size_t sums = sg_checking(a) ? sizeof(struct sg_qp_sums) : 0;
    size_t octets = sizeof(struct sg_qp) + sq_stride + rq_stride + rows + sums;
    struct sg_qp *qp = sg_account_object(&a->account, octets);

    if (!qp) {
        return NULL;
    }
    qp->octets = (uint32_t)octets;
    qp->sq.cur = (uint8_t *)(qp + 1);
    qp->rq.cur = qp->sq.cur + sq_stride;
    qp->sq.cur_mr = (void *)(qp->rq.cur + rq_stride);
    return qp;
}

enum sg_status sg_cmd_create_qp(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_create_qp *c = cmd;
    struct sg_pd *pd = sg_idtab_get(&a->pds, sg_get_le32(&c->pd));
    struct sg_cq *scq = sg_idtab_get(&a->cqs, sg_get_le32(&c->send_cqn));
    struct sg_cq *rcq = sg_idtab_get(&a->cqs, sg_get_le32(&c->recv_cqn));
    bool shared = sg_get_le32(&c->flags) & SG_QP_SRQ;
    struct sg_srq *srq = shared ? sg_idtab_get(&a->srqs, sg_get_le32(&c->srqn)) : NULL;
    enum sg_status status = check_create(a, c);
    struct sg_qp *qp;

    if (status != SG_OK) {
        return status;
    }
    if (!pd || !scq || !rcq || (shared && !srq)) {
        return SG_ENOENT;
    }
    if (!cq_may_serve(scq, sg_get_le32(&c->uar)) || !cq_may_serve(rcq, sg_get_le32(&c->uar)) ||
        (srq && srq->pd != pd)) {
        return SG_EPERM;
    }
    qp = new_qp(a, c, srq);
    if (!qp) {
        return SG_ENOMEM;
    }
    qp->srq = srq;
    status = init_rings(a, qp, c);
    if (status != SG_OK) {
        sg_account_object_free(&a->account, qp, qp->octets);
        return status;
    }
    qp->adapter = qp->mem.adapter = a;
    qp->mem.qpn = qp->qpn;
    sg_list_init(&qp->mem.windows);
    qp->uar = sg_get_le32(&c->uar);
    qp->flags = sg_get_le32(&c->flags);
    qp->mem.kernel = qp->flags & SG_QP_KERNEL;
    qp->mem.access = sg_get_le32(&c->access);
    qp->mem.pd = pd;
    qp->scq = scq;
    qp->rcq = rcq;
    qp->sq.max_sge = c->sq_max_sge;
    qp->sq.max_inline = sg_get_le16(&c->max_inline);
    qp->rq.max_sge = srq ? srq->max_sge : c->rq_max_sge;
    if (sg_checking(a)) {
        sg_qp_sums(qp)->sq = sg_check_sums_new(a->check, qp->sq.ring.entries);
        sg_qp_sums(qp)->rq = srq ? NULL : sg_check_sums_new(a->check, qp->rq.ring.entries);
    }
    pd->users++;
    if (srq) {
        srq->users++;
    }
    sg_list_append(&scq->senders, &qp->scq_link);
    sg_list_append(&rcq->receivers, &qp->rcq_link);
    sg_put_le32(&rsp->id, qp->qpn);
    return SG_OK;
}

/* Restores the state after CREATE_QP; indices continue, so the rings need not be cleared. */
static enum sg_status to_idle(struct sg_qp *qp)
{
    if (qp->state == SG_QP_IDLE) {
        return SG_OK;
    }
    if (qp->state != SG_QP_ERROR || !sg_sq_idle(&qp->sq) || sg_ring_used(&qp->rq.ring)) {
        return SG_ESTATE;
    }
    if (qp->conn && qp->conn->stay) {
        sg_cm_release(sg_cm_of(qp)); /* the end of TCP may take long, its owner does not wait */
    }
    if (qp->conn && qp->conn->engine) {
        return SG_ESTATE;
    }
    qp->deferred = 0; /* that was for the old connection */
    qp->fatal_reported = false;
    qp->last_wqe = false;
    qp->local_error = false;
    qp->peer_left = false;
    sg_rnr_stop(qp);
    qp->rnr.timer = 0;
    qp->rnr.retry_given = false;
    qp->sq.flush_status = 0;
    sg_qp_set_state(qp, SG_QP_IDLE, "reset by its owner");
    return SG_OK;
}

static enum sg_status modify_state(struct sg_qp *qp, uint32_t state)
{
    switch (state) {
    case SG_QP_IDLE:
        return to_idle(qp);
    case SG_QP_CLOSING:
        if (qp->state == SG_QP_RTS && !qp->peer_left) {
            sg_qp_close(qp);
        }
        return qp->state == SG_QP_CLOSING ? SG_OK : SG_ESTATE;
    case SG_QP_ERROR:
        if (qp->state != SG_QP_ERROR) {
            sg_qp_abort(qp);
        }
        return SG_OK;
    default:
        return SG_EINVAL;
    }
}

enum sg_status sg_cmd_modify_qp(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_modify_qp *c = cmd;
    struct sg_qp *qp = sg_idtab_get(&a->qps, sg_get_le32(&c->qpn));
    uint32_t mask = sg_get_le32(&c->mask), access = sg_get_le32(&c->access);
    enum sg_status status = SG_OK;

    if (!qp) {
        return SG_ENOENT;
    }
    if (!mask || (mask & ~SG_QP_MOD_KNOWN) ||
        (mask & SG_QP_MOD_RNR_TIMER && c->min_rnr_timer > SG_RNR_TIMER_MAX) ||
        (mask & SG_QP_MOD_RNR_RETRY && c->rnr_retry > SG_RNR_RETRY_MAX) ||
        (mask & SG_QP_MOD_UNREACHABLE &&
         (!(mask & SG_QP_MOD_STATE) || sg_get_le32(&c->state) != SG_QP_ERROR)) ||
        (mask & SG_QP_MOD_ACCESS && access & ~sg_access_offered(a))) {
        return SG_EINVAL;
    }
    if (mask & SG_QP_MOD_UNREACHABLE && qp->state != SG_QP_ERROR) {
        qp->sq.flush_status = SG_WC_RETRY_EXC_ERR;
    }
    if (mask & SG_QP_MOD_STATE) {
        status = modify_state(qp, sg_get_le32(&c->state));
    }
    if (status == SG_OK && mask & SG_QP_MOD_ACCESS) {
        qp->mem.access = access;
    }
    if (status == SG_OK && mask & SG_QP_MOD_RNR_TIMER) {
        qp->rnr.timer = c->min_rnr_timer;
    }
    if (status == SG_OK && mask & SG_QP_MOD_RNR_RETRY) {
        qp->rnr.retry = c->rnr_retry;
        qp->rnr.retry_given = true;
    }
    sg_put_le32(&rsp->id, qp->qpn);
    return status;
}

enum sg_status sg_cmd_query_qp(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_id *c = cmd;
    struct sg_qp *qp = sg_idtab_get(&a->qps, sg_get_le32(&c->id));

    if (!qp) {
        return SG_ENOENT;
    }
    sg_put_le32(&rsp->id, qp->qpn);
    sg_put_le32(&rsp->data[0], qp->state);
    sg_put_le32(&rsp->data[1], qp->conn ? sg_cm_of(qp)->ird : 0);
    sg_put_le32(&rsp->data[2], qp->conn ? qp->conn->ord : 0);
    sg_put_le32(&rsp->data[3], sg_ring_used(&qp->sq.ring));
    sg_put_le32(&rsp->data[4], sg_ring_used(&qp->rq.ring));
    return SG_OK;
}

static void qp_free(struct sg_adapter *a, struct sg_qp *qp)
{
    if (qp->conn) {
        sg_cm_release(sg_cm_of(qp));
    }
    sg_cm_forget_past(qp);
    sg_list_remove(&qp->scq_link);
    sg_list_remove(&qp->rcq_link);
    sg_list_remove(&qp->deferred_link);
    sg_list_remove(&qp->flush_link);
    sg_rnr_stop(qp);
    sg_pm_complete_writes(&qp->mem);
    sg_mw_release(&qp->mem);
    sg_odp_forget(&qp->mem);
    qp->mem.pd->users--;
    if (qp->srq) {
        qp->srq->users--;
    }
    sg_idtab_free(&a->qps, qp->qpn);
    sg_ring_fini(&qp->sq.ring, &a->host);
    sg_ring_fini(&qp->rq.ring, &a->host);
    if (sg_checking(a)) {
        sg_check_sums_free(a->check, sg_qp_sums(qp)->sq);
        sg_check_sums_free(a->check, sg_qp_sums(qp)->rq);
    }
    for (uint32_t i = qp->sq.ring.cons; i != qp->sq.next; i++) {
        sg_scatter_drop(qp, sg_sq_rec(&qp->sq, i));
    }
    sg_account_free(&a->account, qp->sq.recs, qp->sq.rec_room * sizeof(struct sg_sq_rec));
    sg_account_object_free(&a->account, qp, qp->octets);
}

enum sg_status sg_cmd_destroy_qp(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_id *c = cmd;
    struct sg_qp *qp = sg_idtab_get(&a->qps, sg_get_le32(&c->id));

    (void)rsp;
    if (!qp) {
        return SG_ENOENT;
    }
    if (qp->srq && sg_ring_used(&qp->rq.ring)) {
        sg_rq_flush_one(qp); /* the consumer counts it */
    }
    if (sg_faulty(a)) {
        sg_cq_release_late(a, NULL); /* none of a queue pair that is gone */
    }
    qp_free(a, qp);
    return SG_OK;
}

void sg_qp_destroy(struct sg_adapter *a, void *object)
{
    qp_free(a, object);
}
