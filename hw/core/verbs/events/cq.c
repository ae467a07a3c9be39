/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues.
 *
 * The consumer writes its progress to a record in its own memory, which is read here only when the
 * ring seems full, so polling costs no doorbell.  A consumer index that is not within the ring
 * counts as "nothing was read".
 *
 * Overrun (or a ring that cannot be written): the queue accepts nothing more, SG_EV_CQ_ERROR is
 * raised, and its queue pairs go to ERROR in the next turn; others are not affected (RFC 5042
 * section 6.4.6).
 *
 * After RESIZE_CQ (cq_cmd.c) completions go to another ring from index 0 on; the queue stays
 * armed.
 *
 * Arming names the consumer index up to which the consumer has read.  If an entry of the wanted
 * kind is beyond it, and newer than the last event, the event is raised at once.  The last event
 * has reported the entries that were there: a consumer that waits, arms and then reads must not get
 * a second event for them.  "Any" overrides "solicited only" until it fires.
 *
 * Moderation delays the event until a number of completions of the wanted kind are there, or until
 * the first of them has waited for the period.
 */
#include "verbs/events/cq.h"

#include "verbs/events/eq.h"
#include "verbs/state/adapter_state.h"

const char *sg_wc_status_name(unsigned status)
{
    static const char *const names[] = {
        [SG_WC_SUCCESS] = "SUCCESS",
        [SG_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
        [SG_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
        [SG_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
        [SG_WC_FLUSH_ERR] = "FLUSH_ERR",
        [SG_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
        [SG_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
        [SG_WC_REM_OP_ERR] = "REM_OP_ERR",
        [SG_WC_MW_BIND_ERR] = "MW_BIND_ERR",
        [SG_WC_FATAL_ERR] = "FATAL_ERR",
        [SG_WC_GENERAL_ERR] = "GENERAL_ERR",
        [SG_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
    };

    return status < SG_ARRAY_SIZE(names) ? names[status] : "?";
}

SG_COLD void sg_cq_fail(struct sg_adapter *a, struct sg_cq *cq, enum sg_rule rule, const char *why)
{
    if (cq->error) {
        return;
    }
    cq->error = true;
    a->stats.cq_overruns++;
    sg_guest_error(a, rule, sg_cq_object(cq), "completion queue %u: %s", cq->cqn, why);
    sg_eq_async(a, &(struct sg_async){ .event = SG_EV_CQ_ERROR, .id = cq->cqn });
    sg_list_append(&a->cq_errors, &cq->error_link);
    sg_adapter_kick(a);
}

/* The checker judges an index of the consumer's record. */
static SG_COLD void check_record(struct sg_adapter *a, struct sg_cq *cq, uint32_t ci)
{
    const uint32_t behind = cq->ring.prod - ci;
    enum sg_rule rule = SG_RULE_NONE;

    if ((int32_t)behind < 0) {
        rule = SG_RULE_CQ_RECORD;
    } else if ((int32_t)(ci - cq->record_seen) < 0) {
        rule = SG_RULE_CQ_RECORD_BACK;
    } else if (behind > cq->ring.entries) {
        rule = SG_RULE_CQ_RECORD_STALE;
    }
    if (rule == SG_RULE_NONE) {
        cq->record_seen = ci;
        return;
    }
    sg_check_found(a, rule, sg_cq_object(cq),
                   "completion queue %u: the record has %u, before %u; %u completions were written",
                   cq->cqn, ci, cq->record_seen, cq->ring.prod);
}

bool sg_cq_refresh(struct sg_adapter *a, struct sg_cq *cq)
{
    __le32 ci;

    if (!a->host.ops->dma_read(a->host.opaque, cq->record, &ci, sizeof(ci))) {
        return false;
    }
    if (sg_checking(a)) {
        check_record(a, cq, sg_get_le32(&ci));
    }
    sg_ring_take(&cq->ring, SG_RING_CONS | SG_RING_IN_ORDER, sg_get_le32(&ci));
    return !sg_ring_full(&cq->ring);
}

static void cq_fire(struct sg_adapter *a, struct sg_cq *cq)
{
    cq->arm = SG_CQ_IDLE;
    cq->unreported = 0;
    cq->notified = cq->ring.prod;
    sg_timerq_cancel(&a->timers, &cq->timer);
    sg_eq_completion(a, cq);
}

static void period_over(struct sg_timer *t, uint64_t now_ns)
{
    struct sg_cq *cq = sg_container_of(t, struct sg_cq, timer);
    struct sg_adapter *a = t->opaque;

    (void)now_ns;
    if (cq->arm != SG_CQ_IDLE && sg_adapter_alive(a)) {
        cq_fire(a, cq);
    }
}

void sg_cq_init_timer(struct sg_adapter *a, struct sg_cq *cq)
{
    sg_timer_init(&cq->timer, period_over, a);
}

/* This many more completions justify an event that is armed. */
static void cq_want(struct sg_adapter *a, struct sg_cq *cq, uint32_t fresh)
{
    cq->unreported += fresh;
    if (cq->period_us == 0 || cq->unreported >= cq->count) {
        cq_fire(a, cq);
    } else if (!sg_timer_armed(&cq->timer)) {
        sg_timerq_arm(&a->timers, &cq->timer, sg_adapter_now(a) + cq->period_us * 1000ull);
        sg_adapter_kick(a); /* the host learns of the deadline */
    }
}

void sg_cq_moderate(struct sg_adapter *a, struct sg_cq *cq, uint16_t count, uint16_t period_us)
{
    cq->count = count;
    cq->period_us = period_us;
    if (cq->unreported) {
        sg_timerq_cancel(&a->timers, &cq->timer);
        cq_want(a, cq, 0);
    }
}

/* A host that observes learns of it before the consumer can. */
static bool post_observed(struct sg_adapter *a, struct sg_cq *cq, const struct sg_wc *wc,
                          struct sg_cqe *e)
{
    const struct sg_observed o = {
        .kind = SG_OBSERVED_COMPLETED,
        .qpn = wc->qpn,
        .wr_id = wc->wr_id,
        .opcode = wc->opcode,
        .status = wc->status,
        .length = wc->byte_len,
        .ordinal = wc->ordinal,
    };

    return sg_ring_post(&cq->ring, &a->host, e, sizeof(*e), &o);
}

/* Before the consumer can see it.  Of a send it has no length. */
static SG_COLD void flow_completion(const struct sg_adapter *a, const struct sg_cq *cq,
                                    const struct sg_wc *wc)
{
    if (wc->flags & SG_CQE_RECV) {
        sg_flow(&a->host, "qp %u: completed receive entry %u, %s, %u octets, cq %u", wc->qpn,
                wc->wr_index, sg_wc_status_name(wc->status), wc->byte_len, cq->cqn);
    } else {
        sg_flow(&a->host, "qp %u: completed send entry %u, %s, cq %u", wc->qpn, wc->wr_index,
                sg_wc_status_name(wc->status), cq->cqn);
    }
}

void sg_cq_post(struct sg_adapter *a, struct sg_cq *cq, const struct sg_wc *wc)
{
    if (!sg_faulty(a) || cq->error || !sg_cq_delay(a, cq, wc)) {
        sg_cq_post_now(a, cq, wc);
    }
}

void sg_cq_post_now(struct sg_adapter *a, struct sg_cq *cq, const struct sg_wc *wc)
{
    bool solicited = (wc->flags & SG_CQE_SOLICITED) || wc->status != SG_WC_SUCCESS;
    struct sg_cqe e = { .status = wc->status, .opcode = wc->opcode, .flags_phase = wc->flags };
    bool posted;

    if (cq->error) {
        return;
    }
    if (sg_ring_full(&cq->ring) && !sg_cq_refresh(a, cq)) {
        sg_cq_fail(a, cq, SG_RULE_CQ_OVERRUN, "overrun");
        return;
    }
    sg_put_le64(&e.wr_id, wc->wr_id);
    sg_put_le32(&e.qpn, wc->qpn);
    sg_put_le32(&e.byte_len, wc->byte_len);
    sg_put_le32(&e.inv_stag, wc->inv_stag);
    sg_put_le32(&e.vendor_err, wc->vendor_err);
    memcpy(&e.imm, wc->imm, sizeof(e.imm));
    sg_put_le64(&e.timestamp, sg_adapter_now(a));
    sg_put_le32(&e.wr_index, wc->wr_index);
    if (sg_flows(&a->host)) {
        flow_completion(a, cq, wc);
    }
    posted = a->host.ops->observe ? post_observed(a, cq, wc, &e)
                                  : sg_ring_post(&cq->ring, &a->host, &e, sizeof(e), NULL);
    if (!posted) {
        sg_cq_fail(a, cq, SG_RULE_DMA_RING, "ring cannot be written");
        return;
    }
    if (solicited) {
        cq->solicited = cq->ring.prod;
    }
    if (cq->arm == SG_CQ_ARM_ANY || (cq->arm == SG_CQ_ARM_SOLICITED_ONLY && solicited)) {
        cq_want(a, cq, 1);
    }
}

static SG_COLD void not_own(struct sg_adapter *a, uint32_t page, uint32_t cqn, struct sg_cq *cq)
{
    sg_guest_error(a, sg_check_number_rule(a, SG_OBJECT_CQ, cqn, cq),
                   sg_object_of(page, SG_OBJECT_CQ, cqn),
                   "doorbell page %u: arms completion queue %u, not its own", page, cqn);
}

static SG_COLD void not_in_ring(struct sg_adapter *a, struct sg_cq *cq, uint32_t ci)
{
    sg_guest_error(a, SG_RULE_CQ_ARM, sg_cq_object(cq),
                   "completion queue %u: consumer index %u, producer index %u", cq->cqn, ci,
                   cq->ring.prod);
}

/* A consumer that arms must have stored its index within the ring's length, too. */
static SG_COLD void check_arm(struct sg_adapter *a, struct sg_cq *cq, uint32_t ci)
{
    __le32 record;

    sg_check_event(a->check, sg_cq_object(cq), SG_DID_ARM, ci, cq->ring.prod);
    if (cq->error) {
        return;
    }
    if (a->host.ops->dma_read(a->host.opaque, cq->record, &record, sizeof(record))) {
        check_record(a, cq, sg_get_le32(&record));
    } else {
        sg_check_found(a, SG_RULE_DMA_RING, sg_cq_object(cq),
                       "completion queue %u: its record cannot be read", cq->cqn);
    }
}

void sg_cq_doorbell(struct sg_adapter *a, uint32_t page, uint64_t value)
{
    uint32_t cqn = value & SG_CQ_ARM_CQN_MASK, ci = value >> 32;
    struct sg_cq *cq = sg_idtab_get(&a->cqs, cqn);
    bool solicited_only = value & SG_CQ_ARM_SOLICITED;
    uint32_t beyond, unseen;

    if (!cq || cq->uar != page) {
        not_own(a, page, cqn, cq);
        return;
    }
    if (sg_ring_take(&cq->ring, SG_RING_CONS, ci) == SG_RING_BAD) {
        not_in_ring(a, cq, ci);
        return;
    }
    if (sg_checking(a)) {
        check_arm(a, cq, ci);
    }
    if (cq->arm != SG_CQ_ARM_ANY) {
        cq->arm = solicited_only ? SG_CQ_ARM_SOLICITED_ONLY : SG_CQ_ARM_ANY;
    }
    /*
     * Distance behind the producer: the last reported and the last solicited entry may be any
     * number of entries ago, so only this distance has an order.
     */
    unseen = SG_MIN(cq->ring.prod - ci, cq->ring.prod - cq->notified);
    beyond = solicited_only ? cq->ring.prod - cq->solicited : 0;
    if (beyond < unseen) {
        cq->unreported = 0;
        cq_want(a, cq, unseen - beyond);
    }
}
