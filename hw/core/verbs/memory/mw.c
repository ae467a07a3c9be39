/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory windows: a part of a region under an STag and rights of its own.
 *
 * A window is a row of the protection table (tpt.c) that has no pages but a region: 'skip' is its
 * offset there.  It is for peers only; as a local key it is an invalid STag.  BIND_MW gives it a
 * part of a region of the same protection domain that was registered with MW_BIND.  To let peers
 * write, or change by Atomics, the region must grant LOCAL_WRITE.  The region's own remote rights
 * do not matter: this is the purpose of windows.
 *
 *   type 1   any queue pair of its domain binds it, even while it is bound, and unbinds it with
 *            length 0; peers of every queue pair of the domain may use it; no peer and no
 *            LOCAL_INV can revoke it
 *   type 2   (2B) may be bound while it is unbound, and belongs to the queue pair that bound it:
 *            only the peer of that one may use it; only its LOCAL_INV, its peer's Send with
 *            Invalidate, and its destruction end the binding
 *
 * A region counts the windows bound to it and can neither be deregistered nor invalidated
 * while there are any: an access that was checked through a window needs no second look-up.
 */
#include "verbs/memory/pm.h"
#include "verbs/memory/tpt.h"
#include "verbs/state/adapter_state.h"

static const uint32_t rights_known = SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE |
                                     SG_ACCESS_REMOTE_ATOMIC | SG_ACCESS_ZERO_BASED |
                                     SG_ACCESS_FLUSH;

void sg_mw_unbind(struct sg_adapter *a, struct sg_mr *mw)
{
    if (mw->region) {
        mw->region->windows--;
        mw->region = NULL;
        mw->owner = NULL;
        sg_list_remove(&mw->qp_link);
    }
    sg_tpt_invalidate(a, mw);
}

void sg_mw_release(struct sg_mem_ctx *ctx)
{
    struct sg_link *k;

    while ((k = sg_list_pop(&ctx->windows))) {
        sg_mw_unbind(ctx->adapter, sg_container_of(k, struct sg_mr, qp_link));
    }
}

/* May peers get these rights to that region through a window? */
static bool rights_ok(const struct sg_adapter *a, const struct sg_mr *region, uint32_t access,
                      unsigned pm)
{
    uint32_t changes = SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_ATOMIC;

    return !(access & ~(rights_known & sg_access_offered(a))) &&
           region->access & SG_ACCESS_MW_BIND &&
           (!(access & changes) || region->access & SG_ACCESS_LOCAL_WRITE) &&
           (!(access & SG_ACCESS_FLUSH_PERSISTENT) || pm & SG_PM_PERSISTENT ||
            (region->odp && region->access & SG_ACCESS_FLUSH_PERSISTENT));
}

bool sg_mw_bind(struct sg_mem_ctx *ctx, struct sg_mr *mw, const struct sg_wqe_bind *b)
{
    struct sg_adapter *a = ctx->adapter;
    struct sg_mr *region = sg_tpt_find(a, sg_get_le32(&b->mr_stag));
    uint32_t access = sg_get_le32(&b->access);
    uint64_t va = sg_get_le64(&b->va), length = sg_get_le64(&b->length), skip;
    unsigned pm;

    if (!region || !region->valid || region->pd != ctx->pd ||
        (region->kind != SG_MR_MEMORY && region->kind != SG_MR_FAST) ||
        sg_mr_check_range(region, va, length) != SG_MEM_OK || region->windows == UINT32_MAX) {
        return false;
    }
    skip = region->skip + (va - region->base);
    /* A property of all of the region, or of none of it, also holds for each part. */
    pm = region->odp || region->pm != SG_PM_SOME
             ? region->pm
             : sg_pm_query_part(a, &region->pages, skip, length);
    if (!rights_ok(a, region, access, pm)) {
        return false;
    }
    if (mw->valid) {
        sg_mw_unbind(a, mw);
    }
    mw->region = region;
    region->windows++;
    mw->stag = sg_get_le32(&b->stag);
    mw->skip = skip;
    mw->base = access & SG_ACCESS_ZERO_BASED ? 0 : va;
    mw->length = length;
    mw->access = access;
    mw->pm = (uint8_t)pm;
    mw->mode = region->mode;
    mw->counters = (struct sg_mr_counters){ 0 };
    mw->serial = ++a->tpt->serial;
    mw->valid = true;
    if (mw->type == SG_MW_TYPE_2) {
        mw->owner = ctx;
        sg_list_append(&ctx->windows, &mw->qp_link);
    }
    return true;
}
