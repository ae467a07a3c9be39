/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Doorbell pages: each user context writes to its own, and reaches only queues made for it.
 */
#include "verbs/adapter.h"
#include "verbs/events/cq.h"
#include "verbs/queues/qp.h"
#include "verbs/queues/srq.h"
#include "verbs/state/adapter_state.h"

static struct sg_qp *own_qp(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    struct sg_qp *qp = sg_idtab_get(&a->qps, (uint32_t)value);

    if (!qp || qp->uar != page) {
        sg_guest_error(a, sg_check_number_rule(a, SG_OBJECT_QP, (uint32_t)value, qp),
                       sg_object_of(page, SG_OBJECT_QP, (uint32_t)value),
                       "doorbell page %u: queue pair %u is not its own", page, (uint32_t)value);
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

static void (*const bells[])(struct sg_adapter *a, uint32_t page, uint64_t value) = {
    [SG_DB_SQ / 8] = ring_sq,
    [SG_DB_RQ / 8] = ring_rq,
    [SG_DB_SRQ / 8] = sg_srq_doorbell,
    [SG_DB_CQ_ARM / 8] = sg_cq_doorbell,
};

uint64_t sg_adapter_doorbell_read(struct sg_adapter *a, uint32_t page, uint32_t offset,
                                  unsigned size)
{
    uint64_t now = sg_adapter_now(a);

    (void)page; /* every context has the same clock */
    if (offset == SG_DB_CLOCK && size == 8) {
        return now;
    }
    if (size == 4 && (offset == SG_DB_CLOCK || offset == SG_DB_CLOCK + 4)) {
        return (uint32_t)(offset == SG_DB_CLOCK ? now : now >> 32);
    }
    return 0;
}

/* After a failure a driver cannot avoid late doorbells; after its own reset it can. */
static enum sg_rule not_ready_rule(const struct sg_adapter *a)
{
    if (a->running) {
        return SG_RULE_DMA_SELF;
    }
    return a->status & SG_STATUS_FATAL || !a->own_reset ? SG_RULE_NONE : SG_RULE_DB_RESET;
}

void sg_adapter_doorbell(struct sg_adapter *a, uint32_t page, uint32_t offset, uint64_t value,
                         unsigned size)
{
    if (!sg_adapter_alive(a) || a->running) {
        sg_guest_error(a, not_ready_rule(a), sg_object_of(page, SG_OBJECT_ADAPTER, 0),
                       "doorbell while the adapter is not ready");
        return;
    }
    if (size != 8 || !sg_is_aligned(offset, 8) || offset / 8 >= SG_ARRAY_SIZE(bells)) {
        sg_guest_error(a, SG_RULE_DB_WIDTH, sg_object_of(page, SG_OBJECT_ADAPTER, 0),
                       "doorbell page %u: write of %u octets at 0x%x", page, size, offset);
        return;
    }
    bells[offset / 8](a, page, value);
}
