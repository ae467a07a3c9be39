/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Placement into persistent memory.
 *
 * A row of the protection table stores the host's answer about its memory: none of it is
 * persistent (then nothing here is ever called for it), all, or some.  For the last, and for rows
 * that cover all bus addresses, the host is asked again for each access, if necessary by pages.
 * Behind an IOMMU a query costs the host a translation for each page, so no query, and no sum
 * of them in one part of a turn, covers more than some thousand pages.
 *
 * What the host accepts by pm_place it may keep in the adapter and place later: a deferred write.
 * A queue pair with such writes is linked in 'deferred_writes', so that the promise of visibility
 * costs one check of the link if there is nothing to do.  They are completed before
 *
 *   - a Send or a Read of ours is reported          (RFC 5040 section 5.5)
 *   - a Read, Flush, Verify or Atomic Write is executed
 *   - any row with persistent memory becomes invalid, for all queue pairs: from then on its owner
 *     may use the memory for something else (RFC 5042 section 6.2.2)
 *   - a queue pair is destroyed or connected again.
 */
#include "verbs/memory/pm.h"

#include "verbs/memory/tpt.h"

enum survey {
    SURVEY_COST = 1 << 12,    /* pages or queries of one part, */
    QUERY_COST_MAX = 1 << 12, /* since the host examines at most this many pages per query */
    QUERY_WORK = 64,          /* octets of the adapter's turn that one is charged as */
    MIXED_RUN_MAX = 1 << 20,  /* octets per query, where the answer is not known */
};

unsigned sg_pm_of_everything(const struct sg_adapter *a)
{
    return a->host.ops->pm_query ? SG_PM_SOME : 0;
}

bool sg_pm_of_span(const struct sg_adapter *a, uint64_t lo, uint64_t hi, unsigned *pm)
{
    *pm = 0;
    if (a->host.ops->pm_query) {
        *pm = a->host.ops->pm_query(a->host.opaque, lo, hi - lo + 1);
    }
    return *pm != SG_PM_SOME;
}

bool sg_pm_survey(struct sg_adapter *a, const struct sg_pages *pages, uint64_t skip,
                  uint64_t length, struct sg_pm_survey *s, unsigned *pm)
{
    const struct sg_mr probe = { .skip = skip, .pages = *pages };
    uint64_t run, bus, cost = 0;

    for (; s->off < length && cost < SURVEY_COST; s->off += run) {
        unsigned here;

        run = sg_mr_run(&probe, s->off, length - s->off, &bus);
        sg_pm_of_span(a, bus, bus + run - 1, &here);
        s->all &= here;
        s->some |= here ? SG_PM_SOME : 0;
        cost += 1 + SG_MIN(run / SG_PAGE_SIZE, QUERY_COST_MAX);
    }
    a->executed += cost * QUERY_WORK;
    *pm = s->all | s->some;
    return s->off == length;
}

unsigned sg_pm_query_part(struct sg_adapter *a, const struct sg_pages *pages, uint64_t skip,
                          uint64_t length)
{
    struct sg_pm_survey s = { .all = SG_PM_PERSISTENT };
    unsigned pm;

    return sg_pm_survey(a, pages, skip, length, &s, &pm) ? pm : SG_PM_SOME;
}

unsigned sg_pm_query_pages(struct sg_adapter *a, const struct sg_pages *pages, uint64_t skip,
                           uint64_t length)
{
    unsigned pm;
    uint32_t i;

    if (!a->host.ops->pm_query) {
        return 0;
    }
    /* Usually one query is enough, however many pages there are. */
    if (pages->list) {
        uint64_t lo = UINT64_MAX, hi = 0;

        a->executed += pages->count * sizeof(uint64_t);
        for (i = 0; i < pages->count; i++) {
            lo = SG_MIN(lo, pages->list[i]);
            hi = SG_MAX(hi, pages->list[i]);
        }
        if (sg_pm_of_span(a, lo, hi + (1ull << pages->shift) - 1, &pm)) {
            return pm;
        }
    }
    return sg_pm_query_part(a, pages, skip, length);
}

struct sg_pm_run sg_pm_run(const struct sg_adapter *a, const struct sg_mr *mr, uint64_t to,
                           uint64_t max)
{
    struct sg_pm_run run;
    unsigned kind = mr->pm;

    run.len = sg_mr_run(mr, to, max, &run.bus);
    if (kind == SG_PM_SOME) {
        run.len = SG_MIN(run.len, (uint64_t)MIXED_RUN_MAX);
        kind = a->host.ops->pm_query(a->host.opaque, run.bus, run.len);
    }
    if (kind == SG_PM_SOME) {
        uint64_t page = SG_PAGE_SIZE - (run.bus & (SG_PAGE_SIZE - 1));

        run.len = SG_MIN(run.len, page);
        kind = a->host.ops->pm_query(a->host.opaque, run.bus, run.len);
    }
    run.pm = kind & SG_PM_PERSISTENT;
    return run;
}

bool sg_pm_place(struct sg_mem_ctx *ctx, const struct sg_mr *mr, uint64_t to, const uint8_t *p,
                 size_t n)
{
    struct sg_adapter *a = ctx->adapter;
    const struct sg_host_ops *ops = a->host.ops;
    bool ok = true;

    while (n && ok) {
        const struct sg_pm_who who = {
            .qpn = ctx->qpn,
            .to = to,
            .mode = mr->mode,
            .ordinal = ctx->ordinal,
        };
        struct sg_pm_run run = sg_pm_run(a, mr, to, n);

        if (run.pm) {
            sg_list_append(&a->deferred_writes, &ctx->deferred_writes_link);
            ok = ops->pm_place(a->host.opaque, &who, run.bus, p, run.len);
        } else {
            ok = ops->dma_write(a->host.opaque, run.bus, p, run.len);
        }
        if (!ok && sg_checking(a)) {
            sg_check_found(a, SG_RULE_DMA_MEMORY, sg_object(SG_OBJECT_MR, mr->stag),
                           "region 0x%x: its memory does not respond to DMA", mr->stag);
        }
        p += run.len;
        to += run.len;
        n -= run.len;
    }
    return ok;
}

void sg_pm_complete_writes_now(struct sg_mem_ctx *ctx)
{
    struct sg_adapter *a = ctx->adapter;

    sg_list_remove(&ctx->deferred_writes_link);
    a->host.ops->pm_complete_writes(a->host.opaque, ctx->qpn);
}

void sg_pm_complete_all_writes(struct sg_adapter *a)
{
    struct sg_link *k;

    while ((k = sg_list_pop(&a->deferred_writes))) {
        struct sg_mem_ctx *ctx = sg_container_of(k, struct sg_mem_ctx, deferred_writes_link);

        a->host.ops->pm_complete_writes(a->host.opaque, ctx->qpn);
    }
}

void sg_pm_milestone(const struct sg_mem_ctx *ctx, uint32_t msn, uint64_t ordinal, uint64_t to,
                     enum sg_pm_milestone what)
{
    const struct sg_pm_who who = { .qpn = ctx->qpn, .msn = msn, .to = to, .ordinal = ordinal };
    const struct sg_host *host = &ctx->adapter->host;

    if (host->ops->pm_milestone) {
        host->ops->pm_milestone(host->opaque, &who, what);
    }
}
