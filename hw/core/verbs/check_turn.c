/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The driver checker's part in turns: it ends what a strict checker ends, and looks for interrupts
 * that nobody answers.  And what concerns the adapter as a whole: ENABLE, and objects at a reset.
 */
#include "verbs/adapter.h"
#include "verbs/adapter_impl.h"
#include "verbs/commands/admin_cmd.h"
#include "verbs/events/eq.h"
#include "verbs/queues/qp.h"
#include "verbs/queues/srq.h"

static const char because[] = "the driver checker is strict";

static void end_one(struct sg_adapter *a, struct sg_object o)
{
    struct sg_srq *srq;
    struct sg_qp *qp;
    struct sg_cq *cq;

    switch (o.kind) {
    case SG_OBJECT_QP:
        qp = sg_idtab_get(&a->qps, o.id);
        if (qp && qp->state != SG_QP_ERROR) {
            sg_qp_fail(qp, SG_EV_QP_FATAL, because);
        }
        break;
    case SG_OBJECT_CQ:
        cq = sg_idtab_get(&a->cqs, o.id);
        if (cq) {
            sg_cq_fail(a, cq, SG_RULE_NONE, because);
        }
        break;
    case SG_OBJECT_SRQ:
        srq = sg_idtab_get(&a->srqs, o.id);
        if (srq) {
            sg_srq_fail(a, srq, SG_RULE_NONE, because);
        }
        break;
    default:
        break; /* no other kind has a rule that ends it */
    }
}

void sg_check_end_due(struct sg_adapter *a)
{
    struct sg_object o;
    bool adapter;

    while (sg_adapter_alive(a) && sg_check_next_end(a->check, &o, &adapter)) {
        if (adapter) {
            sg_adapter_fatal(a, SG_FATAL_CHECK);
        } else {
            end_one(a, o);
        }
    }
}

void sg_check_enabled(struct sg_adapter *a)
{
    const struct sg_object adapter = sg_object(SG_OBJECT_ADAPTER, 0);

    a->own_reset = false;
    a->admin->sums = sg_check_sums_new(a->check, a->admin->sq.entries);
    sg_check_made(a->check, SG_OBJECT_EQ, 0);
    if (!sg_ring_fresh(&a->admin->cq, &a->host)) {
        sg_check_found(a, SG_RULE_RING_STALE, adapter, "the admin completion ring is not zero");
    } else if (!sg_ring_fresh(&a->eqs[0]->ring, &a->host)) {
        sg_check_found(a, SG_RULE_RING_STALE, adapter, "the async event queue is not zero");
    }
}

void sg_check_left(struct sg_adapter *a)
{
    struct sg_adapter_census n;

    if (!sg_adapter_alive(a) || a->ending->under_way) {
        return;
    }
    sg_adapter_census(a, &n);
    if (n.pds + n.mrs + n.mws + n.cqs + n.qps + n.srqs + n.listeners) {
        sg_check_found(a, SG_RULE_RESET_LEFT, sg_object(SG_OBJECT_ADAPTER, 0),
                       "reset with %u QPs, %u CQs, %u SRQs, %u regions, %u windows, %u PDs, "
                       "%u listeners",
                       n.qps, n.cqs, n.srqs, n.mrs, n.mws, n.pds, n.listeners);
    }
}

const struct sg_check *sg_adapter_check(const struct sg_adapter *a)
{
    return a->check;
}
