/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Admin commands of memory regions and windows.  Their rows are in tpt.c and mw.c.
 *
 * Memory of the whole function (SG_MR_WHOLE_MEMORY) is for kernel queue pairs' own requests;
 * remote rights to it are refused.
 *
 * Flush and Verify (draft-talpey-rdma-commit-02 section 1.7): registration states what the wire
 * never shows, the hash of the region, its key, and the type of memory.  Memory that cannot do what
 * the rights promise is refused now, and not at the first request of a peer.
 *
 * A long page list takes several turns: REG_MR is then called again with its copy of the command
 * (admin.c) until all is read.  Other commands wait; the region does not exist before that.
 */
#include <glib.h>

#include "base/hash.h"
#include "verbs/commands/admin_cmd.h"
#include "verbs/memory/odp.h"
#include "verbs/memory/pm.h"
#include "verbs/state/adapter_state.h"

enum { PART = 1 << 14 }; /* page addresses of a REG_MR that are read in one part */

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

/* A REG_MR in progress: its list is read, and its memory queried, in parts. */
struct sg_mr_reg {
    struct sg_pages_reader list;
    struct sg_pm_survey survey;
    unsigned pm;
    bool listed;
};

static void reg_end(struct sg_adapter *a)
{
    sg_account_free(&a->account, a->admin->reg, sizeof(struct sg_mr_reg));
    a->admin->reg = NULL;
}

void sg_reg_drop(struct sg_adapter *a)
{
    if (a->admin->reg) {
        sg_pages_free(&a->host, &a->admin->reg->list.pages);
        reg_end(a);
    }
}

static enum sg_status reg_begin(struct sg_adapter *a, const struct sg_cmd_reg_mr *c)
{
    uint64_t va = sg_get_le64(&c->va), length = sg_get_le64(&c->length), mask, need;
    unsigned shift = c->pages.page_shift;
    struct sg_mr_reg *reg;
    enum sg_status status;

    if (length == 0 || length > a->config.max_mr_size || shift > SG_PAGE_SHIFT_MAX) {
        return SG_EINVAL;
    }
    reg = sg_account_new0(&a->account, sizeof(*reg));
    if (!reg) {
        return SG_ENOMEM;
    }
    a->admin->reg = reg;
    mask = (1ull << shift) - 1;
    need = ((va & mask) + length + mask) >> shift;
    status = sg_pages_begin(&reg->list, &a->host, &c->pages, need);
    if (status != SG_OK) {
        reg_end(a);
    }
    return status;
}

/* One part.  *whole: all pages are read, and their type of memory is known. */
static enum sg_status reg_part(struct sg_adapter *a, struct sg_mr_reg *reg,
                               const struct sg_cmd_reg_mr *c, bool *whole)
{
    struct sg_pages *p = &reg->list.pages;
    uint64_t mask = (1ull << p->shift) - 1, hi;
    enum sg_status status;

    *whole = false;
    if (!reg->listed) {
        a->command_pages += p->list ? SG_MIN(p->count - reg->list.done, (uint32_t)PART) : 0;
        status = sg_pages_go_on(&reg->list, &a->host, PART, whole);
        if (status != SG_OK || !*whole) {
            return status;
        }
        reg->listed = true;
        hi = p->list ? reg->list.hi + mask : p->base + ((uint64_t)p->count << p->shift) - 1;
        *whole = sg_pm_of_span(a, p->list ? reg->list.lo : p->base, hi, &reg->pm) || !p->list;
        reg->survey = (struct sg_pm_survey){ .all = SG_PM_PERSISTENT };
        return SG_OK;
    }
    a->command_pages += PART;
    *whole = sg_pm_survey(a, p, sg_get_le64(&c->va) & mask, sg_get_le64(&c->length), &reg->survey,
                          &reg->pm);
    return SG_OK;
}

static enum sg_status reg_finish(struct sg_adapter *a, struct sg_pd *pd,
                                 const struct sg_cmd_reg_mr *c, struct sg_admin_rsp *rsp)
{
    const struct sg_mr_range range = {
        .va = sg_get_le64(&c->va),
        .length = sg_get_le64(&c->length),
        .access = sg_get_le32(&c->access),
        .mem_type = c->mem_type,
        .mem_mode = c->mem_mode,
        .hash_alg = c->hash_alg,
        .hash_key_len = c->hash_key_len,
        .hash_key = c->hash_key,
        .pages = a->admin->reg->list.pages,
        .pm = a->admin->reg->pm,
    };
    struct sg_mr *mr = sg_tpt_alloc(a, SG_MR_MEMORY, pd, c->key);
    enum sg_status status = mr ? sg_tpt_set(a, mr, &range) : SG_ENOMEM;

    if (status != SG_OK) {
        sg_reg_drop(a);
        if (mr) {
            sg_tpt_free(a, mr);
        }
        return status;
    }
    reg_end(a); /* the row owns the pages now */
    sg_put_le32(&rsp->id, mr->stag);
    return SG_OK;
}

static enum sg_status reg_pages(struct sg_adapter *a, struct sg_pd *pd,
                                const struct sg_cmd_reg_mr *c, struct sg_admin_rsp *rsp)
{
    enum sg_status status = a->admin->reg ? SG_OK : reg_begin(a, c);
    bool whole = false;

    if (status == SG_OK) {
        status = reg_part(a, a->admin->reg, c, &whole);
    }
    if (status != SG_OK) {
        sg_reg_drop(a);
        return status;
    }
    if (!whole) {
        a->admin->unfinished = true;
        return SG_OK;
    }
    return reg_finish(a, pd, c, rsp);
}

/* The pages are mapped later (odp.c). */
static enum sg_status reg_odp(struct sg_adapter *a, struct sg_pd *pd, const struct sg_cmd_reg_mr *c,
                              struct sg_admin_rsp *rsp)
{
    struct sg_mr_range range = {
        .va = sg_get_le64(&c->va),
        .length = sg_get_le64(&c->length),
        .access = sg_get_le32(&c->access),
        .mem_type = c->mem_type,
        .mem_mode = c->mem_mode,
        .pages.shift = c->pages.page_shift,
        .odp = true,
        .pm = sg_pm_of_everything(a),
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

/* Checks the fields for Verify and the type of memory, without the memory itself. */
static enum sg_status check_mpe(const struct sg_cmd_reg_mr *c, uint32_t access)
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
    status = check_mpe(c, access);
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
    if (mask & SG_MR_MOD_ACCESS && (access & ~SG_ACCESS_KNOWN || access & SG_ACCESS_VERIFY ||
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

enum sg_status sg_cmd_map_pages(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_map_pages *c = cmd;
    struct sg_mr *mr = sg_tpt_find(a, sg_get_le32(&c->stag));
    uint64_t first = sg_get_le64(&c->first_page), count = sg_get_le64(&c->count), pages;
    uint32_t op = sg_get_le32(&c->op);
    enum sg_status status = SG_OK;

    if (!mr || !mr->valid) {
        return SG_ENOENT;
    }
    if (!mr->odp) {
        return SG_EINVAL;
    }
    pages = ((mr->skip + mr->length - 1) >> mr->pages.shift) + 1;
    if (count == 0 || !sg_range_ok(first, count, pages)) {
        return SG_EINVAL;
    }
    switch (op) {
    case SG_MAP_PAGES:
        status = sg_odp_map(a, mr, first, count, sg_get_le64(&c->list));
        break;
    case SG_UNMAP_PAGES:
        sg_odp_unmap(a, mr, first, count);
        break;
    case SG_MAP_FAIL:
        sg_odp_fail(a, mr, first, count);
        break;
    default:
        return SG_EINVAL;
    }
    sg_put_le32(&rsp->id, mr->stag);
    return status;
}

enum sg_status sg_cmd_alloc_mw(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_alloc_mw *c = cmd;
    struct sg_pd *pd = sg_idtab_get(&a->pds, sg_get_le32(&c->pd));
    struct sg_mr *mw;

    if (!pd) {
        return SG_ENOENT;
    }
    if (c->type != SG_MW_TYPE_1 && c->type != SG_MW_TYPE_2) {
        return SG_EINVAL;
    }
    mw = sg_tpt_alloc(a, SG_MR_WINDOW, pd, c->key);
    if (!mw) {
        return SG_ENOMEM;
    }
    mw->type = c->type;
    a->tpt->windows++;
    sg_put_le32(&rsp->id, mw->stag);
    return SG_OK;
}

enum sg_status sg_cmd_dealloc_mw(struct sg_adapter *a, const void *cmd, struct sg_admin_rsp *rsp)
{
    const struct sg_cmd_id *c = cmd;
    /* It may have been bound under another key, so look it up by index. */
    struct sg_mr *mw = sg_tpt_find_owned(a, sg_get_le32(&c->id));

    (void)rsp;
    if (!mw || mw->kind != SG_MR_WINDOW) {
        return SG_ENOENT;
    }
    sg_mw_unbind(a, mw);
    a->tpt->windows--;
    sg_tpt_free(a, mw);
    return SG_OK;
}
