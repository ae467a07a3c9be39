/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admin commands of completion queues.
 *
 * RESIZE_CQ changes rings between two completions: entries written so far stay in the old ring,
 * where the consumer finds them up to the index in the answer, and all later ones go to the new
 * ring.  So nothing is copied, and nothing is lost while the consumer is still reading.
 */
#include "verbs/commands/admin_cmd.h"
#include "verbs/events/cq.h"
#include "verbs/events/eq.h"
#include "verbs/state/adapter_state.h"

static bool geometry_ok(const struct sg_adapter *a, uint32_t entries, uint64_t record)
{
    return sg_is_pow2(entries) && entries >= 2 && entries <= a->config.max_cqe &&
           sg_is_aligned(record, 64);
}

/* The checker: the ring has no phase bits yet, and the record is zero. */
static void check_memory(struct sg_adapter *a, const struct sg_cq *cq)
{
    __le32 ci;

    if (!sg_ring_fresh(&cq->ring, &a->host)) {
        sg_check_found(a, SG_RULE_RING_STALE, sg_cq_object(cq),
                       "completion queue %u: its new ring is not zero", cq->cqn);
    } else if (a->host.ops->dma_read(a->host.opaque, cq->record, &ci, sizeof(ci)) &&
               sg_get_le32(&ci)) {
        sg_check_found(a, SG_RULE_RING_STALE, sg_cq_object(cq),
                       "completion queue %u: its new record is not zero", cq->cqn);
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

    if (!geometry_ok(a, entries, record) || uar >= SG_UAR_COUNT || eqn == 0 || eqn >= SG_EQ_COUNT) {
        return SG_EINVAL;
    }
    if (!a->eqs[eqn]) {
        return SG_ENOENT;
    }
    cq = sg_account_object(&a->account, sizeof(*cq));
    if (!cq) {
        return SG_ENOMEM;
    }
    status = sg_ring_init_pages(&cq->ring, &a->host, &c->pages, entries, sizeof(struct sg_cqe));
    if (status == SG_OK && !sg_idtab_alloc_fresh(&a->cqs, cq, &cq->cqn)) {
        sg_ring_fini(&cq->ring, &a->host);
        status = SG_ENOMEM;
    }
    if (status != SG_OK) {
        sg_account_object_free(&a->account, cq, sizeof(*cq));
        return status;
    }
    cq->record = record;
    cq->eqn = eqn;
    cq->uar = uar;
    sg_cq_init_timer(a, cq);
    sg_list_init(&cq->senders);
    sg_list_init(&cq->receivers);
    sg_list_init(&cq->failed);
    a->eqs[eqn]->users++;
    if (sg_checking(a)) {
        check_memory(a, cq);
    }
    sg_put_le32(&rsp->id, cq->cqn);
    return SG_OK;
}

enum sg_status sg_cmd_resize_cq(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_resize_cq *c = cmd;
    struct sg_cq *cq = sg_idtab_get(&a->cqs, sg_get_le32(&c->cqn));
    uint32_t entries = sg_get_le32(&c->entries);
    uint64_t record = sg_get_le64(&c->record);
    struct sg_ring ring;
    enum sg_status status;

    if (!cq) {
        return SG_ENOENT;
    }
    if (!geometry_ok(a, entries, record)) {
        return SG_EINVAL;
    }
    if (cq->error) {
        return SG_ESTATE;
    }
    sg_cq_refresh(a, cq);
    if (sg_ring_used(&cq->ring) > entries) {
        a->admin->unforeseen = true; /* completions are written at any time */
        return SG_EINVAL;
    }
    status = sg_ring_init_pages(&ring, &a->host, &c->pages, entries, sizeof(struct sg_cqe));
    if (status != SG_OK) {
        return status;
    }
    sg_put_le32(&rsp->id, cq->cqn);
    sg_put_le32(&rsp->data[0], cq->ring.prod);
    sg_ring_fini(&cq->ring, &a->host);
    cq->ring = ring;
    cq->record = record;
    cq->solicited = cq->notified = cq->record_seen = 0;
    if (sg_checking(a)) {
        check_memory(a, cq);
    }
    return SG_OK;
}

enum sg_status sg_cmd_modify_cq(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_modify_cq *c = cmd;
    struct sg_cq *cq = sg_idtab_get(&a->cqs, sg_get_le32(&c->cqn));

    if (!cq) {
        return SG_ENOENT;
    }
    sg_cq_moderate(a, cq, sg_get_le16(&c->count), sg_get_le16(&c->period));
    sg_put_le32(&rsp->id, cq->cqn);
    return SG_OK;
}

static void cq_free(struct sg_adapter *a, struct sg_cq *cq)
{
    sg_list_remove(&cq->eq_link);
    sg_list_remove(&cq->error_link);
    sg_cq_drop_late(a, cq);
    sg_timerq_cancel(&a->timers, &cq->timer);
    sg_ring_fini(&cq->ring, &a->host);
    sg_account_object_free(&a->account, cq, sizeof(*cq));
}

enum sg_status sg_cmd_destroy_cq(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_id *c = cmd;
    struct sg_cq *cq = sg_idtab_get(&a->cqs, sg_get_le32(&c->id));

    (void)rsp;
    if (!cq) {
        return SG_ENOENT;
    }
    if (!sg_list_empty(&cq->senders) || !sg_list_empty(&cq->receivers) ||
        !sg_list_empty(&cq->failed)) {
        return SG_EBUSY;
    }
    a->eqs[cq->eqn]->users--;
    sg_idtab_free(&a->cqs, cq->cqn);
    cq_free(a, cq);
    return SG_OK;
}

/* The event queues were destroyed before. */
void sg_cq_destroy(struct sg_adapter *a, void *object)
{
    cq_free(a, object);
}
