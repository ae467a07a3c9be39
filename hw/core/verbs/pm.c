/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Placement into persistent memory.
 *
 * A row of the protection table remembers what the host said of its memory: none of it is
 * persistent (then nothing here is ever called for it), all, or some.  For the last, and for rows
 * that cover all bus addresses, the host is asked again for what is touched, if need be by pages.
 *
 * What the host takes with pm_place it may keep in the adapter and place later.  A queue pair with
 * such octets is linked in 'unsettled', so that the promise of visibility costs one look at the
 * link where there is nothing to do.  It is made good before
 *
 *   - a Send or a Read of ours is reported          (RFC 5040 section 5.5)
 *   - a Read, Flush, Verify or Atomic Write is executed
 *   - any row with persistent memory becomes invalid, for all queue pairs: from then on its owner
 *     may use the memory for something else (RFC 5042 section 6.2.2)
 *   - a queue pair is destroyed or connected again.
 */
#include "verbs/pm.h"

unsigned sg_pm_of_everything(const struct sg_adapter *a)
{
    return a->host.ops->pm_query ? SG_PM_SOME : 0;
}

unsigned sg_pm_query_pages(const struct sg_adapter *a, const struct sg_pages *pages, uint64_t skip,
                           uint64_t length)
{
    const struct sg_mr probe = { .skip = skip, .pages = *pages };
    unsigned all = SG_PM_PERSISTENT, some = 0;
    uint64_t off, run, bus;

    if (!a->host.ops->pm_query) {
        return 0;
    }
    /* Mostly one question is enough, however many pages there are. */
    if (pages->list) {
        uint64_t lo = UINT64_MAX, hi = 0;
        uint32_t i;

        for (i = 0; i < pages->count; i++) {
            lo = SG_MIN(lo, pages->list[i]);
            hi = SG_MAX(hi, pages->list[i]);
        }
        some = a->host.ops->pm_query(a->host.opaque, lo, hi - lo + (1ull << pages->shift));
        if (!some || some & SG_PM_PERSISTENT) {
            return some;
        }
        some = 0;
    }
    for (off = 0; off < length; off += run) {
        unsigned here;

        run = sg_mr_run(&probe, off, length - off, &bus);
        here = a->host.ops->pm_query(a->host.opaque, bus, run);
        all &= here;
        some |= here ? SG_PM_SOME : 0;
    }
    return all | some;
}

struct sg_pm_run sg_pm_run(const struct sg_adapter *a, const struct sg_mr *mr, uint64_t to,
                           uint64_t max)
{
    struct sg_pm_run run;
    unsigned kind = mr->pm;

    run.len = sg_mr_run(mr, to, max, &run.bus);
    if (kind == SG_PM_SOME) {
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

bool sg_pm_place(struct sg_qp *qp, const struct sg_mr *mr, uint64_t to, const uint8_t *p, size_t n)
{
    struct sg_adapter *a = qp->adapter;
    const struct sg_host_ops *ops = a->host.ops;
    bool ok = true;

    while (n && ok) {
        const struct sg_pm_who who = { .qpn = qp->qpn, .to = to, .mode = mr->mode };
        struct sg_pm_run run = sg_pm_run(a, mr, to, n);

        if (run.pm) {
            sg_list_append(&a->unsettled, &qp->unsettled_link);
            ok = ops->pm_place(a->host.opaque, &who, run.bus, p, run.len);
        } else {
            ok = ops->dma_write(a->host.opaque, run.bus, p, run.len);
        }
        p += run.len;
        to += run.len;
        n -= run.len;
    }
    return ok;
}

void sg_pm_settle_now(struct sg_qp *qp)
{
    struct sg_adapter *a = qp->adapter;

    sg_list_remove(&qp->unsettled_link);
    a->host.ops->pm_settle(a->host.opaque, qp->qpn);
}

void sg_pm_settle_all(struct sg_adapter *a)
{
    struct sg_link *k;

    while ((k = sg_list_pop(&a->unsettled))) {
        struct sg_qp *qp = sg_container_of(k, struct sg_qp, unsettled_link);

        a->host.ops->pm_settle(a->host.opaque, qp->qpn);
    }
}

void sg_pm_milestone(const struct sg_qp *qp, uint32_t msn, uint64_t to, enum sg_pm_milestone what)
{
    const struct sg_pm_who who = { .qpn = qp->qpn, .msn = msn, .to = to };
    const struct sg_host *host = &qp->adapter->host;

    if (host->ops->pm_milestone) {
        host->ops->pm_milestone(host->opaque, &who, what);
    }
}
