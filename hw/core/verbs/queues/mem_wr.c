/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work requests on memory regions and windows: REG_MR, LOCAL_INV and BIND_MW.
 */
#include "verbs/memory/pm.h"
#include "verbs/queues/sq_impl.h"
#include "verbs/state/adapter_state.h"

enum sg_wc_status sg_mr_start_local_inv(struct sg_qp *qp, const struct sg_wqe_hdr *h,
                                        struct sg_msg *msg)
{
    bool fast = qp->flags & SG_QP_KERNEL && sg_adapter_may(qp->adapter, SG_FEATURE_FAST_REG);
    struct sg_mr *mr = sg_tpt_find(qp->adapter, sg_get_le32(&h->inv_stag));

    (void)msg;
    if (!fast && (!mr || mr->kind != SG_MR_WINDOW)) {
        return SG_WC_LOC_QP_OP_ERR; /* user contexts have windows only */
    }
    if (sg_tpt_check_invalidate(&qp->mem, sg_get_le32(&h->inv_stag), &mr) != SG_MEM_OK) {
        return SG_WC_MW_BIND_ERR;
    }
    sg_tpt_invalidate(qp->adapter, mr);
    return SG_WC_SUCCESS;
}

enum sg_wc_status sg_mr_start_reg(struct sg_qp *qp, const struct sg_wqe_hdr *h, struct sg_msg *msg)
{
    const struct sg_wqe_reg *r = (const void *)(h + 1);
    uint32_t stag = sg_get_le32(&r->stag), npages = sg_get_le32(&r->npages);
    struct sg_mr *mr = sg_tpt_find_index(qp->adapter, stag);
    struct sg_mr_range range = {
        .va = sg_get_le64(&r->va),
        .length = sg_get_le64(&r->length),
        .access = sg_get_le32(&r->access),
    };

    (void)msg;
    if (!mr || mr->kind != SG_MR_FAST || mr->pd != qp->mem.pd || mr->valid ||
        npages > mr->max_pages || (range.access & ~sg_access_offered(qp->adapter)) ||
        (range.access & SG_ACCESS_VERIFY)) { /* a fast registration has no hash */
        return SG_WC_MW_BIND_ERR;
    }
    /* The list may be long: it is charged to this turn, and ends it if it is. */
    qp->adapter->executed += npages * sizeof(uint64_t);
    if (sg_pages_read_array(&range.pages, &qp->adapter->host, sg_get_le64(&r->pbl_addr), npages,
                            r->page_shift) != SG_OK) {
        return SG_WC_MW_BIND_ERR;
    }
    if (sg_mr_range_covered(&range)) {
        const uint64_t skip = range.va & ((1ull << range.pages.shift) - 1);

        range.pm = sg_pm_query_pages(qp->adapter, &range.pages, skip, range.length);
    }
    if (sg_tpt_set(qp->adapter, mr, &range) != SG_OK) {
        sg_pages_free(&qp->adapter->host, &range.pages);
        return SG_WC_MW_BIND_ERR;
    }
    mr->stag = stag;
    return SG_WC_SUCCESS;
}

enum sg_wc_status sg_mw_start_bind(struct sg_qp *qp, const struct sg_wqe_hdr *h, struct sg_msg *msg)
{
    const struct sg_wqe_bind *b = (const void *)(h + 1);
    struct sg_mr *mw = sg_tpt_find_index(qp->adapter, sg_get_le32(&b->stag));

    (void)msg;
    if (sg_get_le32(&b->reserved_96)) {
        return SG_WC_LOC_QP_OP_ERR;
    }
    if (!mw || mw->kind != SG_MR_WINDOW || mw->pd != qp->mem.pd) {
        return SG_WC_MW_BIND_ERR;
    }
    if (sg_get_le64(&b->length) == 0) {
        if (mw->type != SG_MW_TYPE_1) {
            return SG_WC_MW_BIND_ERR;
        }
        sg_mw_unbind(qp->adapter, mw);
        mw->stag = sg_get_le32(&b->stag);
        return SG_WC_SUCCESS;
    }
    if (mw->type == SG_MW_TYPE_2 && mw->valid) {
        return SG_WC_MW_BIND_ERR;
    }
    return sg_mw_bind(&qp->mem, mw, b) ? SG_WC_SUCCESS : SG_WC_MW_BIND_ERR;
}
