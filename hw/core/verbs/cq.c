/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues.
 *
 * The consumer tells how far it has read in a record in its own memory, which is read here only
 * when the ring seems full, so polling costs no doorbell.  A consumer index that is not within the
 * ring counts as "nothing was read".
 *
 * Overrun (or a ring that cannot be written): the queue takes nothing any more, SG_EV_CQ_ERROR is
 * raised, and its queue pairs go to ERROR in the next turn; others are not affected (RFC 5042
 * section 6.4.6).
 *
 * Arming names the consumer index up to which the consumer has looked; if an entry of the wanted
 * kind lies beyond it the event is raised at once.  "Any" beats "solicited only" until it fires.
 */
#include "verbs/cq.h"

#include <glib.h>

#include "verbs/adapter_impl.h"
#include "verbs/admin_cmd.h"
#include "verbs/eq.h"
#include "verbs/qp.h"

static void cq_fail(struct sg_adapter *a, struct sg_cq *cq, const char *why)
{
    cq->error = true;
    a->stats.cq_overruns++;
    sg_guest_error(a, "completion queue %u: %s", cq->cqn, why);
    sg_eq_async(a, &(struct sg_async){ .event = SG_EV_CQ_ERROR, .id = cq->cqn });
    sg_list_append(&a->cq_errors, &cq->error_link);
    sg_adapter_kick(a);
}

/* Reads the consumer's record; true: there is room after all. */
static bool refresh_consumer(struct sg_adapter *a, struct sg_cq *cq)
{
    __le32 ci;

    if (!a->host.ops->dma_read(a->host.opaque, cq->record, &ci, sizeof(ci))) {
        return false;
    }
    if (cq->prod - sg_get_le32(&ci) <= cq->ring.entries) {
        cq->ci = sg_get_le32(&ci);
    }
    return cq->prod - cq->ci < cq->ring.entries;
}

static void cq_fire(struct sg_adapter *a, struct sg_cq *cq)
{
    cq->arm = SG_CQ_IDLE;
    sg_eq_completion(a, cq);
}

void sg_cq_post(struct sg_adapter *a, struct sg_cq *cq, const struct sg_wc *wc)
{
    bool solicited = (wc->flags & SG_CQE_SOLICITED) || wc->status != SG_WC_SUCCESS;
    struct sg_cqe e = { .status = wc->status, .opcode = wc->opcode, .flags_phase = wc->flags };

    if (cq->error) {
        return;
    }
    if (cq->prod - cq->ci >= cq->ring.entries && !refresh_consumer(a, cq)) {
        cq_fail(a, cq, "overrun");
        return;
    }
    sg_put_le64(&e.wr_id, wc->wr_id);
    sg_put_le32(&e.qpn, wc->qpn);
    sg_put_le32(&e.byte_len, wc->byte_len);
    sg_put_le32(&e.inv_stag, wc->inv_stag);
    sg_put_le32(&e.vendor_err, wc->vendor_err);
    memcpy(&e.imm, wc->imm, sizeof(e.imm));
    sg_put_le64(&e.timestamp, sg_adapter_now(a));
    sg_put_le32(&e.wr_index, wc->wr_index);
    if (!sg_ring_post(&cq->ring, &a->host, cq->prod, &e, sizeof(e))) {
        cq_fail(a, cq, "ring cannot be written");
        return;
    }
    cq->prod++;
    if (solicited) {
        cq->solicited = cq->prod;
    }
    if (cq->arm == SG_CQ_ARM_ANY || (cq->arm == SG_CQ_ARM_SOLICITED_ONLY && solicited)) {
        cq_fire(a, cq);
    }
}

void sg_cq_doorbell(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    uint32_t cqn = value & SG_CQ_ARM_CQN_MASK, ci = value >> 32;
    struct sg_cq *cq = sg_idtab_get(&a->cqs, cqn);
    bool solicited_only = value & SG_CQ_ARM_SOLICITED;
    uint32_t latest;

    if (!cq || cq->uar != page) {
        sg_guest_error(a, "doorbell page %u: arms completion queue %u, not its own", page, cqn);
        return;
    }
    if (cq->prod - ci > cq->ring.entries) {
        sg_guest_error(a, "completion queue %u: consumer index %u, producer index %u", cqn, ci,
                       cq->prod);
        return;
    }
    if (cq->prod - ci < cq->prod - cq->ci) {
        cq->ci = ci; /* newer than what we knew */
    }
    latest = solicited_only ? cq->solicited : cq->prod;
    if (cq->arm != SG_CQ_ARM_ANY) {
        cq->arm = solicited_only ? SG_CQ_ARM_SOLICITED_ONLY : SG_CQ_ARM_ANY;
    }
    if ((int32_t)(latest - ci) > 0) {
        cq_fire(a, cq);
    }
}

void sg_cq_run_errors(struct sg_adapter *a)
{
    struct sg_link *k, *q;

    while ((k = sg_list_pop(&a->cq_errors))) {
        struct sg_cq *cq = sg_container_of(k, struct sg_cq, error_link);

        for (q = cq->senders.head.next; q != &cq->senders.head; q = q->next) {
            sg_qp_fail(sg_container_of(q, struct sg_qp, scq_link), SG_EV_NONE, "CQ error");
        }
        for (q = cq->receivers.head.next; q != &cq->receivers.head; q = q->next) {
            sg_qp_fail(sg_container_of(q, struct sg_qp, rcq_link), SG_EV_NONE, "CQ error");
        }
    }
}

enum sg_status sg_cmd_create_cq(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_create_cq *c = cmd;
    uint32_t entries = sg_get_le32(&c->entries), eqn = sg_get_le32(&c->eqn);
    uint32_t uar = sg_get_le32(&c->uar);
    uint64_t record = sg_get_le64(&c->record);
    struct sg_cq *cq;
    enum sg_status status;

    if (!sg_is_pow2(entries) || entries < 2 || entries > a->config.max_cqe ||
        uar >= SG_UAR_COUNT || eqn == 0 || eqn >= SG_EQ_COUNT || !sg_is_aligned(record, 64)) {
        return SG_EINVAL;
    }
    if (!a->eqs[eqn]) {
        return SG_ENOENT;
    }
    cq = g_new0(struct sg_cq, 1);
    status = sg_ring_init_pages(&cq->ring, &a->host, &c->pages, entries, sizeof(struct sg_cqe));
    if (status == SG_OK && !sg_idtab_alloc(&a->cqs, cq, &cq->cqn)) {
        sg_ring_fini(&cq->ring);
        status = SG_ENOMEM;
    }
    if (status != SG_OK) {
        g_free(cq);
        return status;
    }
    cq->record = record;
    cq->eqn = eqn;
    cq->uar = uar;
    sg_list_init(&cq->senders);
    sg_list_init(&cq->receivers);
    a->eqs[eqn]->users++;
    sg_put_le32(&rsp->id, cq->cqn);
    return SG_OK;
}

static void cq_free(struct sg_adapter *a, struct sg_cq *cq)
{
    sg_list_remove(&cq->eq_link);
    sg_list_remove(&cq->error_link);
    a->eqs[cq->eqn]->users--;
    sg_idtab_free(&a->cqs, cq->cqn);
    sg_ring_fini(&cq->ring);
    g_free(cq);
}

enum sg_status sg_cmd_destroy_cq(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_id *c = cmd;
    struct sg_cq *cq = sg_idtab_get(&a->cqs, sg_get_le32(&c->id));

    (void)rsp;
    if (!cq) {
        return SG_ENOENT;
    }
    if (!sg_list_empty(&cq->senders) || !sg_list_empty(&cq->receivers)) {
        return SG_EBUSY;
    }
    cq_free(a, cq);
    return SG_OK;
}

void sg_cq_destroy_all(struct sg_adapter *a)
{
    uint32_t cursor = 0;
    struct sg_cq *cq;

    while ((cq = sg_idtab_next(&a->cqs, &cursor, NULL))) {
        cq_free(a, cq);
    }
}
