/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Translation and protection table.
 *
 * Rows are numbered densely by an idtab and named outside by an STag: a 24-bit index and an
 * 8-bit key.  The index is the row number passed through a keyed permutation of 24 bits (a Feistel
 * network whose keys are random at each reset).  So the STags of an adapter are sparse and cannot
 * be guessed from one another (RFC 5040 section 8.1.1), while a look-up takes a few operations.
 * Index 0 is never used: local key 0 means bus addresses, for kernel queue pairs.
 *
 * All accesses are checked in one order: STag (index, key, validity), association (protection
 * domain), rights, wrap of the Tagged Offset, bounds.  Wrap precedes bounds because every offset
 * that wraps is also out of bounds and would never be reported (RFC 5041 section 7.1).
 *
 * 'epoch' lets a queue pair cache the rows of the message that it is sending: while it has not
 * changed, no row has become invalid.  A process can change the table ten million times a second
 * and delay a message as long as it likes, so this count and that of registrations have 64 bits:
 * they do not wrap.
 *
 * When a row becomes valid, the host is asked whether its memory is persistent.
 *
 * A reset leaves a table behind whose memory is freed in parts, in the following turns:
 * a million regions take longer than a register write may.
 *
 * Memory: a row is about 190 octets; page addresses of all rows together are limited.
 */
#include "verbs/memory/tpt.h"

#include "verbs/memory/mem.h"
#include "verbs/memory/odp.h"
#include "verbs/memory/pm.h"
#include "verbs/state/adapter_state.h"

enum { RETIRED_ROWS = 4096 }; /* freed by one call */

enum { HALF_BITS = 12, HALF_MASK = (1 << HALF_BITS) - 1, INDEX_BITS = 24 };

static uint32_t mix(uint32_t half, uint32_t key)
{
    return (((half + key) * 0x9e3779b1u) >> 13) & HALF_MASK;
}

static uint32_t row_to_index(const struct sg_tpt *t, uint32_t row)
{
    uint32_t l = row >> HALF_BITS, r = row & HALF_MASK, tmp;
    int i;

    for (i = 0; i < 4; i++) {
        tmp = l ^ mix(r, t->round_key[i]);
        l = r;
        r = tmp;
    }
    return l << HALF_BITS | r;
}

static uint32_t index_to_row(const struct sg_tpt *t, uint32_t index)
{
    uint32_t l = index >> HALF_BITS, r = index & HALF_MASK, tmp;
    int i;

    for (i = 3; i >= 0; i--) {
        tmp = r ^ mix(l, t->round_key[i]);
        r = l;
        l = tmp;
    }
    return l << HALF_BITS | r;
}

void sg_tpt_init(struct sg_adapter *a)
{
    struct sg_tpt *t = a->tpt;
    struct sg_tpt_retired retired = t->retired;
    uint64_t pages = t->pages;

    memset(t, 0, sizeof(*t));
    t->retired = retired; /* with everything that it owns */
    t->pages = pages;
    /* One extra row, because the row whose index would be 0 cannot be used. */
    sg_idtab_init(&t->tab, 0, a->config.max_mr + 1);
    a->host.ops->random(a->host.opaque, t->round_key, sizeof(t->round_key));
    t->local_dma.kind = SG_MR_WHOLE;
    t->local_dma.valid = true;
    t->local_dma.access = SG_ACCESS_LOCAL_WRITE;
    t->local_dma.length = UINT64_MAX;
    t->local_dma.pm = sg_pm_of_everything(a);
}

static void drop_pages(struct sg_adapter *a, struct sg_mr *mr)
{
    if (mr->pages.list) {
        a->tpt->pages -= mr->pages.count;
        sg_pages_free(&a->host, &mr->pages);
    }
    if (mr->odp) {
        sg_odp_free(a, mr->odp);
        mr->odp = NULL;
    }
    memset(&mr->pages, 0, sizeof(mr->pages));
}

static void drop_key(struct sg_adapter *a, struct sg_mr *mr)
{
    sg_account_free(&a->account, mr->hash_key, mr->hash_key_len);
    mr->hash_key = NULL;
    mr->hash_key_len = 0;
}

/* What the row owns besides the pages; false: there is no memory. */
static bool own(struct sg_adapter *a, struct sg_mr *mr, const struct sg_mr_range *range)
{
    struct sg_odp *odp = range->odp ? sg_odp_new(a) : NULL;
    uint8_t *key = range->hash_key_len ? sg_account_new(&a->account, range->hash_key_len) : NULL;

    if ((range->odp && !odp) || (range->hash_key_len && !key)) {
        sg_odp_free(a, odp);
        sg_account_free(&a->account, key, range->hash_key_len);
        return false;
    }
    if (key) {
        memcpy(key, range->hash_key, range->hash_key_len);
    }
    drop_pages(a, mr);
    mr->odp = odp;
    mr->hash_key = key;
    mr->hash_key_len = range->hash_key_len;
    return true;
}

void sg_tpt_fini(struct sg_adapter *a)
{
    struct sg_tpt *t = a->tpt;

    if (!t->tab.count) {
        sg_idtab_fini(&t->tab);
        return;
    }
    /* No command is executed before the last one is empty, so this one has no rows then. */
    sg_assert(!t->retired.full);
    t->retired = (struct sg_tpt_retired){ .tab = t->tab, .full = true };
}

bool sg_tpt_run(struct sg_adapter *a)
{
    struct sg_tpt_retired *g = &a->tpt->retired;
    struct sg_mr *mr;
    uint32_t id;
    unsigned n;

    for (n = 0; g->full && n < RETIRED_ROWS; n++) {
        mr = sg_idtab_next(&g->tab, &g->cursor, &id);
        if (!mr) {
            sg_idtab_fini(&g->tab);
            g->full = false;
        } else if (mr != &a->tpt->local_dma) {
            n += mr->pages.list ? mr->pages.count / SG_PAGE_SIZE : 0; /* the host's part of it */
            drop_pages(a, mr);
            drop_key(a, mr);
            sg_account_object_free(&a->account, mr, sizeof(*mr));
        }
    }
    return g->full;
}

struct sg_mr *sg_tpt_alloc(struct sg_adapter *a, enum sg_mr_kind kind, struct sg_pd *pd,
                           uint8_t key)
{
    struct sg_tpt *t = a->tpt;
    struct sg_mr *mr;
    uint32_t index;

    if (t->count >= a->config.max_mr) {
        return NULL;
    }
    mr = sg_account_object(&a->account, sizeof(*mr));
    if (!mr || !sg_idtab_alloc(&t->tab, mr, &mr->id)) {
        sg_account_object_free(&a->account, mr, sizeof(*mr));
        return NULL;
    }
    index = row_to_index(t, mr->id);
    if (index == 0) {
        /* Leave that row unused for ever and take the next. */
        sg_idtab_free(&t->tab, mr->id);
        sg_idtab_alloc_at(&t->tab, mr->id, &t->local_dma);
        if (!sg_idtab_alloc(&t->tab, mr, &mr->id)) {
            sg_account_object_free(&a->account, mr, sizeof(*mr));
            return NULL;
        }
        index = row_to_index(t, mr->id);
    }
    while (key == 0) {
        a->host.ops->random(a->host.opaque, &key, 1);
        key |= key == 0;
    }
    mr->stag = index << 8 | key;
    mr->kind = kind;
    mr->pd = pd;
    pd->users++;
    t->count++;
    return mr;
}

void sg_tpt_invalidate(struct sg_adapter *a, struct sg_mr *mr)
{
    sg_assert(!mr->windows);
    if (mr->region) {
        sg_mw_unbind(a, mr);
        return;
    }
    if (mr->pm) {
        sg_pm_complete_all_writes(a); /* nothing may be placed once the owner reuses the memory */
    }
    drop_pages(a, mr);
    drop_key(a, mr);
    mr->hash_alg = mr->pm = 0;
    mr->valid = false;
    a->tpt->epoch++;
}

void sg_tpt_free(struct sg_adapter *a, struct sg_mr *mr)
{
    sg_tpt_invalidate(a, mr);
    sg_idtab_free(&a->tpt->tab, mr->id);
    mr->pd->users--;
    a->tpt->count--;
    sg_account_object_free(&a->account, mr, sizeof(*mr));
}

struct sg_mr *sg_tpt_find_index(struct sg_adapter *a, uint32_t stag)
{
    struct sg_mr *mr = sg_idtab_get(&a->tpt->tab, index_to_row(a->tpt, stag >> 8));

    return mr == &a->tpt->local_dma ? NULL : mr;
}

struct sg_mr *sg_tpt_find(struct sg_adapter *a, uint32_t stag)
{
    struct sg_mr *mr = sg_tpt_find_index(a, stag);

    return mr && mr->stag == stag ? mr : NULL;
}

struct sg_mr *sg_tpt_find_owned(struct sg_adapter *a, uint32_t stag)
{
    struct sg_mr *mr = sg_tpt_find_index(a, stag);
    bool rekeyed = mr && (mr->kind == SG_MR_FAST || mr->kind == SG_MR_WINDOW);

    return rekeyed || (mr && mr->stag == stag) ? mr : NULL;
}

uint32_t sg_access_offered(const struct sg_adapter *a)
{
    uint32_t placement = SG_ACCESS_FLUSH | SG_ACCESS_VERIFY;

    return SG_ACCESS_KNOWN & ~(a->config.engine.mpe_draft == SG_MPE_DRAFT_OFF ? placement : 0);
}

/* Does the memory fit the rights and the claimed type? */
static bool memory_suits(const struct sg_mr_range *range, unsigned pm)
{
    if (range->access & SG_ACCESS_FLUSH_PERSISTENT && !(pm & SG_PM_PERSISTENT)) {
        return false;
    }
    switch (range->mem_type) {
    case SG_MEM_TYPE_PERSISTENT:
        return pm & SG_PM_PERSISTENT;
    case SG_MEM_TYPE_VOLATILE:
        return !pm;
    default:
        return true;
    }
}

/* The same for pages that are not known yet: no claim can be proved. */
static bool pages_may_suit(const struct sg_mr_range *range, unsigned pm)
{
    return range->mem_type == SG_MEM_TYPE_ANY &&
           (!(range->access & SG_ACCESS_FLUSH_PERSISTENT) || pm);
}

static uint64_t skip_of(const struct sg_mr_range *range)
{
    return range->va & ((1ull << range->pages.shift) - 1);
}

bool sg_mr_range_covered(const struct sg_mr_range *range)
{
    uint64_t room = (uint64_t)range->pages.count << range->pages.shift;

    return range->length && (range->odp || range->length <= room - skip_of(range)) &&
           range->va + range->length >= range->va;
}

enum sg_status sg_tpt_set(struct sg_adapter *a, struct sg_mr *mr, const struct sg_mr_range *range)
{
    const struct sg_pages *p = &range->pages;

    if (!sg_mr_range_covered(range)) {
        return SG_EINVAL;
    }
    if (p->list && a->tpt->pages + p->count > SG_TPT_PAGES_MAX) {
        return SG_ENOMEM;
    }
    if (range->odp ? !pages_may_suit(range, range->pm) : !memory_suits(range, range->pm)) {
        return SG_ENOTPMEM;
    }
    sg_assert(!mr->valid);
    if (!own(a, mr, range)) {
        return SG_ENOMEM;
    }
    mr->pages = *p;
    a->tpt->pages += p->list ? p->count : 0;
    mr->skip = skip_of(range);
    mr->base = range->access & SG_ACCESS_ZERO_BASED ? 0 : range->va;
    mr->length = range->length;
    mr->access = range->access;
    mr->pm = (uint8_t)range->pm;
    mr->mode = range->mem_mode;
    mr->hash_alg = range->hash_alg;
    mr->counters = (struct sg_mr_counters){ 0 };
    mr->serial = ++a->tpt->serial;
    mr->valid = true;
    return SG_OK;
}

enum sg_status sg_tpt_modify(struct sg_adapter *a, struct sg_mr *mr, struct sg_pd *pd,
                             uint32_t access)
{
    if (access & ~mr->access & SG_ACCESS_FLUSH_PERSISTENT && !(mr->pm & SG_PM_PERSISTENT)) {
        return SG_ENOTPMEM;
    }
    if (mr->pm) {
        sg_pm_complete_all_writes(a); /* as if it had become invalid */
    }
    mr->pd->users--;
    pd->users++;
    mr->pd = pd;
    mr->access = access;
    a->tpt->epoch++;
    return SG_OK;
}

enum sg_mem_status sg_mr_check_range(const struct sg_mr *mr, uint64_t to, uint64_t len)
{
    if (len && to + (len - 1) < to) {
        return SG_MEM_WRAP;
    }
    if (to < mr->base || !sg_range_ok(to - mr->base, len, mr->length)) {
        return SG_MEM_BOUNDS;
    }
    return SG_MEM_OK;
}

/* The row that the peer of this queue pair names. */
static inline enum sg_mem_status find_remote(const struct sg_mem_ctx *ctx, uint32_t stag,
                                             struct sg_mr **out)
{
    struct sg_mr *mr = sg_tpt_find(ctx->adapter, stag);

    if (!mr || !mr->valid || mr->kind == SG_MR_WHOLE) {
        return SG_MEM_STAG;
    }
    *out = mr;
    if (mr->pd != ctx->pd || (mr->owner && mr->owner != ctx)) {
        mr->counters.refused++;
        return SG_MEM_ASSOC;
    }
    return SG_MEM_OK;
}

enum sg_mem_status sg_tpt_check_remote(const struct sg_mem_ctx *ctx, uint32_t stag, uint64_t to,
                                       uint64_t len, uint32_t rights, struct sg_mr **out)
{
    struct sg_mr *mr;
    enum sg_mem_status st = find_remote(ctx, stag, &mr);

    if (st != SG_MEM_OK) {
        return st;
    }
    *out = mr;
    st = (mr->access & ctx->access & rights) == rights ? sg_mr_check_range(mr, to, len)
                                                       : SG_MEM_ACCESS;
    mr->counters.refused += st != SG_MEM_OK;
    return st;
}

enum sg_mem_status sg_tpt_check_mpe(const struct sg_mem_ctx *ctx, uint32_t stag, uint32_t rights,
                                    bool any, struct sg_mr **out)
{
    struct sg_mr *mr;
    enum sg_mem_status st = find_remote(ctx, stag, &mr);
    uint32_t granted;

    if (st != SG_MEM_OK) {
        return st;
    }
    granted = mr->access & ctx->access & rights;
    *out = mr;
    if (granted == rights || (any && granted)) {
        return SG_MEM_OK;
    }
    mr->counters.refused++;
    return SG_MEM_ACCESS;
}

enum sg_mem_status sg_tpt_check_local(const struct sg_mem_ctx *ctx, uint32_t lkey, uint64_t addr,
                                      uint64_t len, uint32_t rights, struct sg_mr **out)
{
    struct sg_adapter *a = ctx->adapter;
    struct sg_mr *mr = lkey == 0 && ctx->kernel ? &a->tpt->local_dma : sg_tpt_find(a, lkey);

    if (!mr || !mr->valid || mr->kind == SG_MR_WINDOW ||
        (mr->kind == SG_MR_WHOLE && !ctx->kernel)) {
        return SG_MEM_STAG;
    }
    if (mr->pd != ctx->pd && mr != &a->tpt->local_dma) {
        return SG_MEM_ASSOC;
    }
    if ((mr->access & rights) != rights) {
        return SG_MEM_ACCESS;
    }
    *out = mr;
    return len ? sg_mr_check_range(mr, addr, len) : SG_MEM_OK;
}

enum sg_mem_status sg_tpt_check_invalidate(const struct sg_mem_ctx *ctx, uint32_t stag,
                                           struct sg_mr **out)
{
    struct sg_mr *mr = sg_tpt_find(ctx->adapter, stag);
    bool revocable =
        mr && (mr->kind == SG_MR_FAST ? !mr->windows
                                      : mr->kind == SG_MR_WINDOW && mr->type == SG_MW_TYPE_2);

    if (!revocable) {
        return SG_MEM_STAG; /* rows shared by a PD's streams cannot be revoked by one peer */
    }
    if (mr->pd != ctx->pd || (mr->owner && mr->owner != ctx)) {
        return SG_MEM_ASSOC;
    }
    *out = mr;
    return SG_MEM_OK;
}

static uint64_t odp_run(const struct sg_mr *root, uint64_t off, uint64_t len, uint64_t *bus)
{
    unsigned shift = root->pages.shift;
    uint64_t page = off >> shift, size = 1ull << shift, first, next, run;
    bool there = sg_odp_page(root->odp, page, &first);

    sg_assert(there);
    off &= size - 1;
    *bus = first + off;
    for (run = size - off; run < len; run += size) {
        page++;
        if (!sg_odp_page(root->odp, page, &next) || next != *bus + run) {
            break;
        }
    }
    return SG_MIN(run, len);
}

uint64_t sg_mr_run(const struct sg_mr *mr, uint64_t to, uint64_t len, uint64_t *bus)
{
    const struct sg_pages *p = &sg_mr_root(mr)->pages;
    uint64_t off = to - mr->base + mr->skip;
    uint64_t page = off >> p->shift, run;

    if (sg_mr_root(mr)->odp) {
        return odp_run(sg_mr_root(mr), off, len, bus);
    }
    if (!p->list) {
        *bus = p->base + off;
        return len;
    }
    off &= (1ull << p->shift) - 1;
    *bus = p->list[page] + off;
    run = (1ull << p->shift) - off;
    while (run < len && p->list[page + 1] == p->list[page] + (1ull << p->shift)) {
        page++;
        run += 1ull << p->shift;
    }
    return SG_MIN(run, len);
}
