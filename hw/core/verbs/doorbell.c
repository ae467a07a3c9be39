/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Doorbell pages: each user context writes to its own, and reaches only queues made for it.
 */
#include "verbs/adapter.h"
#include "verbs/adapter_impl.h"
#include "verbs/events/cq.h"
#include "verbs/queues/qp.h"
#include "verbs/queues/srq.h"
#include "verbs/state/adapter_state.h"

static SG_COLD void not_own(struct sg_adapter *a, uint32_t page, uint32_t qpn, struct sg_qp *qp)
{
    sg_guest_error(a, sg_check_number_rule(a, SG_OBJECT_QP, qpn, qp),
                   sg_object_of(page, SG_OBJECT_QP, qpn),
                   "doorbell page %u: queue pair %u is not its own", page, qpn);
}

static struct sg_qp *own_qp(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    struct sg_qp *qp = sg_idtab_get(&a->qps, (uint32_t)value);

    if (!qp || qp->uar != page) {
        not_own(a, page, (uint32_t)value, qp);
        return NULL;
    }
    return qp;
}

static void ring_sq(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    struct sg_qp *qp = own_qp(a, page, value);

    if (qp) {
        sg_sq_doorbell(qp, value >> 32);
    }
}

static void ring_rq(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    struct sg_qp *qp = own_qp(a, page, value);

    if (qp) {
        sg_rq_doorbell(qp, value >> 32);
    }
}

static void ring_sq_checked(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    struct sg_qp *qp = own_qp(a, page, value);
    uint32_t before;

    if (qp) {
        before = qp->sq.ring.prod;
        sg_sq_doorbell(qp, value >> 32);
        if (qp->sq.ring.prod != before) {
            sg_check_sq_posted(qp, before);
        }
    }
}

static void ring_rq_checked(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    struct sg_qp *qp = own_qp(a, page, value);
    uint32_t before;

    if (qp) {
        before = qp->rq.ring.prod;
        sg_rq_doorbell(qp, value >> 32);
        if (qp->rq.ring.prod != before) {
            sg_check_rq_posted(qp, before);
        }
    }
}

static void ring_srq_checked(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    struct sg_srq *srq = sg_idtab_get(&a->srqs, (uint32_t)value);
    const uint32_t before = srq ? srq->ring.prod : 0;

    sg_srq_doorbell(a, page, value);
    if (srq && srq->ring.prod != before) {
        sg_check_srq_posted(a, srq, before);
    }
}

enum { BELLS = SG_DB_CQ_ARM / 8 + 1 };

static sg_bell_fn *const bells[BELLS] = {
    [SG_DB_SQ / 8] = ring_sq,
    [SG_DB_RQ / 8] = ring_rq,
    [SG_DB_SRQ / 8] = sg_srq_doorbell,
    [SG_DB_CQ_ARM / 8] = sg_cq_doorbell,
};

/* With a driver checker; without one a doorbell does not ask for it. */
static sg_bell_fn *const bells_checked[BELLS] = {
    [SG_DB_SQ / 8] = ring_sq_checked,
    [SG_DB_RQ / 8] = ring_rq_checked,
    [SG_DB_SRQ / 8] = ring_srq_checked,
    [SG_DB_CQ_ARM / 8] = sg_cq_doorbell,
};

/* With fault rules: a doorbell that cannot be reached has no effect. */
static void ring_faulty(struct sg_adapter *a, unsigned bell, uint32_t page, uint64_t value)
{
    if (!sg_adapter_is_unreachable(a)) {
        (sg_checking(a) ? bells_checked : bells)[bell](a, page, value);
    }
}

static void ring_sq_faulty(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    ring_faulty(a, SG_DB_SQ / 8, page, value);
}

static void ring_rq_faulty(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    ring_faulty(a, SG_DB_RQ / 8, page, value);
}

static void ring_srq_faulty(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    ring_faulty(a, SG_DB_SRQ / 8, page, value);
}

static void ring_cq_arm_faulty(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    ring_faulty(a, SG_DB_CQ_ARM / 8, page, value);
}

static sg_bell_fn *const bells_faulty[BELLS] = {
    [SG_DB_SQ / 8] = ring_sq_faulty,
    [SG_DB_RQ / 8] = ring_rq_faulty,
    [SG_DB_SRQ / 8] = ring_srq_faulty,
    [SG_DB_CQ_ARM / 8] = ring_cq_arm_faulty,
};

void sg_adapter_hang_bells(struct sg_adapter *a)
{
    if (sg_faulty(a)) {
        a->bells = bells_faulty;
    } else {
        a->bells = sg_checking(a) ? bells_checked : bells;
    }
}

uint64_t sg_adapter_doorbell_read(struct sg_adapter *a, uint32_t page, uint32_t offset,
                                  unsigned size)
{
    uint64_t now = sg_adapter_now(a);

    (void)page; /* every context has the same clock */
    if (sg_adapter_is_unreachable(a)) {
        return size == 4 ? UINT32_MAX : UINT64_MAX;
    }
    if (offset == SG_DB_CLOCK && size == 8) {
        return now;
    }
    if (size == 4 && (offset == SG_DB_CLOCK || offset == SG_DB_CLOCK + 4)) {
        return (uint32_t)(offset == SG_DB_CLOCK ? now : now >> 32);
    }
    return 0;
}

/* After a failure a driver cannot avoid late doorbells; after its own reset it can. */
static SG_COLD void not_ready(struct sg_adapter *a, uint32_t page)
{
    enum sg_rule rule = SG_RULE_NONE;

    if (a->running) {
        rule = SG_RULE_DMA_SELF;
    } else if (!(a->status & SG_STATUS_FATAL) && a->own_reset) {
        rule = SG_RULE_DB_RESET;
    }
    sg_guest_error(a, rule, sg_object_of(page, SG_OBJECT_ADAPTER, 0),
                   "doorbell while the adapter is not ready");
}

static SG_COLD void no_doorbell(struct sg_adapter *a, uint32_t page, uint32_t offset, unsigned size)
{
    sg_guest_error(a, SG_RULE_DB_WIDTH, sg_object_of(page, SG_OBJECT_ADAPTER, 0),
                   "doorbell page %u: write of %u octets at 0x%x", page, size, offset);
}

void sg_adapter_doorbell(struct sg_adapter *a, uint32_t page, uint32_t offset, uint64_t value,
                         unsigned size)
{
    if (!sg_adapter_alive(a) || a->running) {
        not_ready(a, page);
        return;
    }
    if (size != 8 || !sg_is_aligned(offset, 8) || offset / 8 >= BELLS) {
        no_doorbell(a, page, offset, size);
        return;
    }
    a->bells[offset / 8](a, page, value);
}
