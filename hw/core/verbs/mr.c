/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admin commands of memory regions.  The rows themselves are the business of tpt.c.
 *
 * Memory of the whole function (SG_MR_WHOLE_MEMORY) is for kernel queue pairs' own requests; asking
 * for remote rights to it is refused.
 *
 * Flush and Verify (draft-talpey-rdma-commit-02 section 1.7): what the wire never shows is said
 * here, the hash of the region, its key, and what the memory is.  Memory that cannot do what the
 * rights promise is refused now, so that no peer has to find out.
 */
#include <glib.h>

#include "base/hash.h"
#include "verbs/adapter_impl.h"
#include "verbs/admin_cmd.h"
#include "verbs/odp.h"
#include "verbs/pm.h"

static enum sg_status reg_whole(struct sg_adapter *a, struct sg_pd *pd, uint32_t access,
                                uint8_t key, struct sg_admin_rsp *rsp)
{
    struct sg_mr *mr;

    if (access & (SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_ATOMIC |
                  SG_ACCESS_ZERO_BASED | SG_ACCESS_FLUSH)) {
        return SG_EINVAL;
    }
    mr = sg_tpt_alloc(a, SG_MR_WHOLE, pd, key);
    if (!mr) {
        return SG_ENOMEM;
    }
    mr->access = access;
    mr->pm = (uint8_t)sg_pm_of_everything(a);
    mr->length = UINT64_MAX;
    mr->valid = true;
    sg_put_le32(&rsp->id, mr->stag);
    return SG_OK;
}

static enum sg_status reg_pages(struct sg_adapter *a, struct sg_pd *pd,
                                const struct sg_cmd_reg_mr *c, struct sg_admin_rsp *rsp)
{
    struct sg_mr_range range = {
        .va = sg_get_le64(&c->va),
        .length = sg_get_le64(&c->length),
        .access = sg_get_le32(&c->access),
        .mem_type = c->mem_type, .mem_mode = c->mem_mode, .hash_alg = c->hash_alg,
        .hash_key_len = c->hash_key_len, .hash_key = c->hash_key,
    };
    unsigned shift = c->pages.page_shift;
    enum sg_status status;
    uint64_t mask, need;
    struct sg_mr *mr;

    if (range.length == 0 || range.length > a->config.max_mr_size || shift > SG_PAGE_SHIFT_MAX) {
        return SG_EINVAL;
    }
    mask = (1ull << shift) - 1;
    need = ((range.va & mask) + range.length + mask) >> shift;
    a->admin.pages += c->pages.levels ? SG_MIN(need, (uint64_t)SG_PAGES_MAX) : 0;
    status = sg_pages_read(&range.pages, &a->host, &c->pages, need);
    if (status != SG_OK) {
        return status;
    }
    mr = sg_tpt_alloc(a, SG_MR_MEMORY, pd, c->key);
    status = mr ? sg_tpt_set(a, mr, &range) : SG_ENOMEM;
    if (status != SG_OK) {
        g_free(range.pages.list);
        if (mr) {
            sg_tpt_free(a, mr);
        }
        return status;
    }
    sg_put_le32(&rsp->id, mr->stag);
    return SG_OK;
}

/* Pages come later (odp.c). */
static enum sg_status reg_odp(struct sg_adapter *a, struct sg_pd *pd, const struct sg_cmd_reg_mr *c,
                              struct sg_admin_rsp *rsp)
{
    struct sg_mr_range range = {
        .va = sg_get_le64(&c->va), .length = sg_get_le64(&c->length),
        .access = sg_get_le32(&c->access), .mem_type = c->mem_type, .mem_mode = c->mem_mode,
        .pages.shift = c->pages.page_shift, .odp = true,
    };
    uint64_t count = sg_get_le32(&c->pages.count), mask;
    enum sg_status status;
    struct sg_mr *mr;

    if (!sg_adapter_may(a, SG_FEATURE_ODP) || range.access & SG_ACCESS_VERIFY) {
        return SG_ENOTSUP;
    }
    if (range.pages.shift < SG_PAGE_SHIFT_MIN || range.pages.shift > SG_PAGE_SHIFT_MAX ||
        range.length > 1ull << 63 || sg_get_le64(&c->pages.addr) || c->pages.levels) {
        return SG_EINVAL;
    }
    mask = (1ull << range.pages.shift) - 1;
    if (count && range.length &&
        count <= ((range.va & mask) + range.length - 1) >> range.pages.shift) {
        return SG_EINVAL;
    }
    mr = sg_tpt_alloc(a, SG_MR_MEMORY, pd, c->key);
    status = mr ? sg_tpt_set(a, mr, &range) : SG_ENOMEM;
    if (status == SG_OK) {
        sg_put_le32(&rsp->id, mr->stag);
    } else if (mr) {
        sg_tpt_free(a, mr);
    }
    return status;
}

/* The fields of Verify and of the memory's nature, as far as the memory itself does not matter. */
static enum sg_status check_place(const struct sg_cmd_reg_mr *c, uint32_t access)
{
    bool keyed = c->hash_alg == SG_HASH_HMAC_SHA256;

    if (!!(access & SG_ACCESS_VERIFY) != (c->hash_alg != SG_HASH_NONE) ||
        c->hash_alg >= SG_HASH_COUNT || c->hash_key_len > SG_HASH_KEY_MAX ||
        keyed != (c->hash_key_len != 0) || c->mem_type > SG_MEM_TYPE_PERSISTENT ||
        c->mem_mode > SG_MEM_MODE_DIRECT) {
        return SG_EINVAL;
    }
    if (access & SG_ACCESS_VERIFY &&
        (c->flags & SG_MR_WHOLE_MEMORY ||
         (sg_hash_reversible(c->hash_alg) && !(access & SG_ACCESS_REMOTE_READ)))) {
        return SG_ENOVERIFY;
    }
    return SG_OK;
}

enum sg_status sg_cmd_reg_mr(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_reg_mr *c = cmd;
    struct sg_pd *pd = sg_idtab_get(&a->pds, sg_get_le32(&c->pd));
    uint32_t access = sg_get_le32(&c->access);
    enum sg_status status;

    if (!pd) {
        return SG_ENOENT;
    }
    if ((access & ~SG_ACCESS_KNOWN) || (c->flags & ~(SG_MR_WHOLE_MEMORY | SG_MR_ODP)) ||
        c->flags == (SG_MR_WHOLE_MEMORY | SG_MR_ODP)) {
        return SG_EINVAL;
    }
    if (access & ~sg_access_offered(a)) {
        return SG_ENOTSUP;
    }
    status = check_place(c, access);
    if (status != SG_OK) {
        return status;
    }
    if (c->flags & SG_MR_ODP) {
        return reg_odp(a, pd, c, rsp);
    }
    return c->flags & SG_MR_WHOLE_MEMORY ? reg_whole(a, pd, access, c->key, rsp)
                                         : reg_pages(a, pd, c, rsp);
}

enum sg_status sg_cmd_alloc_mr(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_alloc_mr *c = cmd;
    struct sg_pd *pd = sg_idtab_get(&a->pds, sg_get_le32(&c->pd));
    uint32_t pages = sg_get_le32(&c->max_pages);
    struct sg_mr *mr;

    if (!pd) {
        return SG_ENOENT;
    }
    if (pages == 0 || pages > SG_FR_PAGES_MAX) {
        return SG_EINVAL;
    }
    mr = sg_tpt_alloc(a, SG_MR_FAST, pd, c->key);
    if (!mr) {
        return SG_ENOMEM;
    }
    mr->max_pages = pages;
    sg_put_le32(&rsp->id, mr->stag);
    return SG_OK;
}

enum sg_status sg_cmd_modify_mr(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_modify_mr *c = cmd;
    uint32_t mask = sg_get_le32(&c->mask), access = sg_get_le32(&c->access);
    struct sg_mr *mr = sg_tpt_find(a, sg_get_le32(&c->stag));
    struct sg_pd *pd = sg_idtab_get(&a->pds, sg_get_le32(&c->pd));

    (void)rsp;
    if (!mr || mr->kind != SG_MR_MEMORY || (mask & SG_MR_MOD_PD && !pd)) {
        return SG_ENOENT;
    }
    if (!mask || mask & ~(SG_MR_MOD_PD | SG_MR_MOD_ACCESS) || mr->hash_alg != SG_HASH_NONE) {
        return SG_EINVAL;
    }
    if (mask & SG_MR_MOD_ACCESS &&
        (access & ~SG_ACCESS_KNOWN || access & SG_ACCESS_VERIFY ||
         (access ^ mr->access) & SG_ACCESS_ZERO_BASED)) {
        return SG_EINVAL;
    }
    if (mr->windows) {
        return SG_EBUSY;
    }
    if (mask & SG_MR_MOD_ACCESS && access & ~sg_access_offered(a)) {
        return SG_ENOTSUP;
    }
    return sg_tpt_modify(a, mr, mask & SG_MR_MOD_PD ? pd : mr->pd,
                         mask & SG_MR_MOD_ACCESS ? access : mr->access);
}

enum sg_status sg_cmd_dereg_mr(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_id *c = cmd;
    struct sg_mr *mr = sg_tpt_find_owned(a, sg_get_le32(&c->id));
    uint64_t serial;

    (void)rsp;
    if (!mr || mr->kind == SG_MR_WINDOW) {
        return SG_ENOENT;
    }
    if (mr->windows) {
        return SG_EBUSY;
    }
    serial = mr->odp ? mr->serial : 0;
    sg_tpt_free(a, mr);
    if (serial) {
        sg_odp_region_gone(a, serial);
    }
    return SG_OK;
}
