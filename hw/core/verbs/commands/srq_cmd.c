/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admin commands of shared receive queues.
 */
#include "verbs/commands/admin_cmd.h"
#include "verbs/memory/tpt.h"
#include "verbs/queues/srq.h"
#include "verbs/state/adapter_state.h"

static bool entries_ok(const struct sg_adapter *a, uint32_t entries)
{
    return sg_is_pow2(entries) && entries >= 2 && entries <= a->config.max_srq_wr;
}

enum sg_status sg_cmd_create_srq(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_create_srq *c = cmd;
    struct sg_pd *pd = sg_idtab_get(&a->pds, sg_get_le32(&c->pd));
    uint32_t entries = sg_get_le32(&c->entries), stride = sg_get_le16(&c->stride);
    uint32_t uar = sg_get_le32(&c->uar), limit = sg_get_le32(&c->limit);
    struct sg_srq *srq;
    enum sg_status status;

    if (!entries_ok(a, entries) || !sg_is_pow2(stride) || stride < SG_WQE_STRIDE_MIN ||
        stride > SG_WQE_STRIDE_MAX || c->max_sge > sg_srq_max_sge(a) || uar >= SG_UAR_COUNT ||
        limit > entries ||
        sizeof(struct sg_rqe_hdr) + c->max_sge * sizeof(struct sg_sge) > stride) {
        return SG_EINVAL;
    }
    if (!pd) {
        return SG_ENOENT;
    }
    srq = sg_account_object(&a->account, sizeof(*srq));
    if (!srq) {
        return SG_ENOMEM;
    }
    status = sg_ring_init_pages(&srq->ring, &a->host, &c->pages, entries, stride);
    if (status == SG_OK && !sg_idtab_alloc_fresh(&a->srqs, srq, &srq->srqn)) {
        sg_ring_fini(&srq->ring, &a->host);
        status = SG_ENOMEM;
    }
    if (status != SG_OK) {
        sg_account_object_free(&a->account, srq, sizeof(*srq));
        return status;
    }
    sg_list_init(&srq->starving);
    srq->pd = pd;
    srq->uar = uar;
    srq->limit = limit;
    srq->largest = entries;
    srq->max_sge = c->max_sge;
    srq->sums = sg_check_sums_new(a->check, entries);
    pd->users++;
    sg_put_le32(&rsp->id, srq->srqn);
    return SG_OK;
}

enum sg_status sg_cmd_modify_srq(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_modify_srq *c = cmd;
    struct sg_srq *srq = sg_idtab_get(&a->srqs, sg_get_le32(&c->srqn));
    uint32_t limit = sg_get_le32(&c->limit);

    if (!srq) {
        return SG_ENOENT;
    }
    if (limit > srq->ring.entries) {
        return SG_EINVAL;
    }
    srq->limit = limit;
    sg_srq_check_limit(a, srq);
    sg_put_le32(&rsp->id, srq->srqn);
    return SG_OK;
}

enum sg_status sg_cmd_resize_srq(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_resize_srq *c = cmd;
    struct sg_srq *srq = sg_idtab_get(&a->srqs, sg_get_le32(&c->srqn));
    uint32_t entries = sg_get_le32(&c->entries), flags = sg_get_le32(&c->flags);
    struct sg_ring ring;
    enum sg_status status;
    uint32_t limit;

    if (!srq) {
        return SG_ENOENT;
    }
    limit = flags & SG_RESIZE_SRQ_LIMIT ? sg_get_le32(&c->limit) : srq->limit;
    if (!entries_ok(a, entries) || flags & ~SG_RESIZE_SRQ_LIMIT || limit > entries) {
        return SG_EINVAL;
    }
    if (srq->error) {
        return SG_ESTATE;
    }
    if (sg_ring_used(&srq->ring) > entries) {
        a->admin->unforeseen = true; /* entries are posted and taken at any time */
        return SG_EINVAL;
    }
    status = sg_ring_init_pages(&ring, &a->host, &c->pages, entries, 1u << srq->ring.stride_shift);
    if (status != SG_OK) {
        return status;
    }
    ring.prod = srq->ring.prod;
    ring.cons = srq->ring.cons;
    sg_ring_fini(&srq->ring, &a->host);
    srq->ring = ring;
    sg_check_sums_free(a->check, srq->sums);
    srq->sums = sg_check_sums_new(a->check, entries); /* of entries posted from now on */
    srq->largest = SG_MAX(srq->largest, entries);
    srq->limit = limit;
    sg_put_le32(&rsp->id, srq->srqn);
    sg_put_le32(&rsp->data[0], srq->taken);
    sg_srq_check_limit(a, srq);
    return SG_OK;
}

enum sg_status sg_cmd_query_srq(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_id *c = cmd;
    const struct sg_srq *srq = sg_idtab_get(&a->srqs, sg_get_le32(&c->id));

    if (!srq) {
        return SG_ENOENT;
    }
    sg_put_le32(&rsp->id, srq->srqn);
    sg_put_le32(&rsp->data[0], sg_srq_left(srq));
    sg_put_le32(&rsp->data[1], srq->limit);
    sg_put_le32(&rsp->data[2], srq->ring.cons);
    return SG_OK;
}

static void srq_free(struct sg_adapter *a, struct sg_srq *srq)
{
    srq->pd->users--;
    sg_idtab_free(&a->srqs, srq->srqn);
    sg_ring_fini(&srq->ring, &a->host);
    sg_check_sums_free(a->check, srq->sums);
    sg_account_object_free(&a->account, srq, sizeof(*srq));
}

enum sg_status sg_cmd_destroy_srq(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_id *c = cmd;
    struct sg_srq *srq = sg_idtab_get(&a->srqs, sg_get_le32(&c->id));

    (void)rsp;
    if (!srq) {
        return SG_ENOENT;
    }
    if (srq->users) {
        return SG_EBUSY;
    }
    srq_free(a, srq);
    return SG_OK;
}

void sg_srq_destroy(struct sg_adapter *a, void *object)
{
    srq_free(a, object);
}
