/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistent memory behind the protection table: what verbs ask of the host's domain, if the
 * machine has one (base/host.h).
 */
#ifndef SG_VERBS_PM_H
#define SG_VERBS_PM_H

#include "verbs/adapter_impl.h"
#include "verbs/qp.h"

/* SG_PM_* of length > 0 octets from 'skip' in these pages; 0 without a domain. */
unsigned sg_pm_query_pages(const struct sg_adapter *a, const struct sg_pages *pages, uint64_t skip,
                           uint64_t length);
/* The same of all bus addresses, for rows without bounds. */
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
bool sg_pm_place(struct sg_qp *qp, const struct sg_mr *mr, uint64_t to, const uint8_t *p, size_t n);

void sg_pm_settle_now(struct sg_qp *qp);
/* Everything that came in by this queue pair becomes visible.  Costs nothing if nothing waits. */
static inline void sg_pm_settle(struct sg_qp *qp)
{
    if (sg_link_queued(&qp->unsettled_link)) {
        sg_pm_settle_now(qp);
    }
}
/* Of all queue pairs. */
void sg_pm_settle_all(struct sg_adapter *a);

void sg_pm_milestone(const struct sg_qp *qp, uint32_t msn, uint64_t to, enum sg_pm_milestone what);

#endif
