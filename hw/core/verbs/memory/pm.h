/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistent memory behind the protection table: the requests of verbs to the host's domain, if the
 * machine has one (base/host.h).
 */
#ifndef SG_VERBS_MEMORY_PM_H
#define SG_VERBS_MEMORY_PM_H

#include "verbs/memory/mem.h"
#include "verbs/state/adapter_state.h"

/*
 * Finds out in parts which of a range of pages are persistent, so that each part takes a bounded
 * time.  Begin with off = 0, all = SG_PM_PERSISTENT, some = 0.
 */
struct sg_pm_survey {
    uint64_t off;
    unsigned all, some;
};
/* True: complete, *pm is SG_PM_* of length > 0 octets from 'skip' in these pages. */
bool sg_pm_survey(struct sg_adapter *a, const struct sg_pages *pages, uint64_t skip,
                  uint64_t length, struct sg_pm_survey *s, unsigned *pm);
/* The same for pages that lie in [lo, hi], if one query is enough. */
bool sg_pm_of_span(const struct sg_adapter *a, uint64_t lo, uint64_t hi, unsigned *pm);
/*
 * All at once, for work requests; charged to the turn.  If one part of a survey does not suffice,
 * the answer is SG_PM_SOME.  'part': of a region's pages, of which only these are examined.
 */
unsigned sg_pm_query_part(struct sg_adapter *a, const struct sg_pages *pages, uint64_t skip,
                          uint64_t length);
unsigned sg_pm_query_pages(struct sg_adapter *a, const struct sg_pages *pages, uint64_t skip,
                           uint64_t length);
/* The same for all bus addresses, for rows without bounds. */
unsigned sg_pm_of_everything(const struct sg_adapter *a);

/* Contiguous memory of one kind. */
struct sg_pm_run {
    uint64_t bus, len;
    bool pm;
};
/* The longest run from Tagged Offset to, which was checked, up to max > 0 octets. */
struct sg_pm_run sg_pm_run(const struct sg_adapter *a, const struct sg_mr *mr, uint64_t to,
                           uint64_t max);

/* sg_mem_place() for a row with persistent memory. */
bool sg_pm_place(struct sg_mem_ctx *ctx, const struct sg_mr *mr, uint64_t to, const uint8_t *p,
                 size_t n);

void sg_pm_complete_writes_now(struct sg_mem_ctx *ctx);
/* Makes everything visible that arrived on this queue pair.  Free if nothing waits. */
static inline void sg_pm_complete_writes(struct sg_mem_ctx *ctx)
{
    if (sg_link_queued(&ctx->deferred_writes_link)) {
        sg_pm_complete_writes_now(ctx);
    }
}
/* The same for all queue pairs. */
void sg_pm_complete_all_writes(struct sg_adapter *a);

void sg_pm_milestone(const struct sg_mem_ctx *ctx, uint32_t msn, uint64_t ordinal, uint64_t to,
                     enum sg_pm_milestone what);

#endif
