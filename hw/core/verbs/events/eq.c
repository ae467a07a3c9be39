/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event queues.
 *
 * An event is a 32-octet entry; the vector is raised if the queue is armed, which disarms it.  The
 * driver consumes, then writes its consumer index with ARM set; if there are more entries by then,
 * the vector is raised at once, so no event is missed.
 *
 * A full completion event queue delays: the completion queue waits in a list and is reported when
 * the consumer moves.  A full async queue delays too, in a backlog of host memory that is large
 * enough for everything that peers can cause.  Only a driver that causes events and never consumes
 * them gets SG_FATAL_AEQ_OVERRUN, or one that is behind when the host has no memory.  New
 * connection requests are refused while the driver is behind (sg_eq_async_room), so unknown peers
 * cannot grow the backlog.
 *
 * Admin completions raise SG_EV_ADMIN only while the async queue is armed (admin.c).
 */
#include "verbs/events/eq.h"

#include <glib.h>

#include "verbs/events/cq.h"
#include "verbs/state/adapter_state.h"

/* ---- the driver checker ---- */

/* Once for each interrupt. */
static void unanswered(struct sg_timer *t, uint64_t now_ns)
{
    struct sg_eq *eq = sg_container_of(t, struct sg_eq, answer);

    (void)now_ns;
    sg_check_found(t->opaque, SG_RULE_IRQ_UNANSWERED, sg_object(SG_OBJECT_EQ, eq->eqn),
                   "event queue %u: no doorbell within %u ms of its interrupt, vector %u", eq->eqn,
                   SG_CHECK_ANSWER_MS, eq->vector);
}

static SG_COLD void check_raise(struct sg_adapter *a, struct sg_eq *eq)
{
    sg_check_event(a->check, sg_object(SG_OBJECT_EQ, eq->eqn), SG_DID_RAISE, eq->vector,
                   eq->ring.prod);
    sg_timerq_arm(&a->timers, &eq->answer,
                  sg_adapter_now(a) + SG_CHECK_ANSWER_MS * (uint64_t)1000000);
    sg_adapter_kick(a); /* the host learns of the deadline */
}

/* EQ_DB moved the consumer index, which was 'before'. */
static SG_COLD void check_answer(struct sg_adapter *a, struct sg_eq *eq, uint32_t before)
{
    const struct sg_object o = sg_object(SG_OBJECT_EQ, eq->eqn);

    sg_timerq_cancel(&a->timers, &eq->answer);
    if ((int32_t)(eq->ring.cons - before) < 0) {
        sg_check_found(a, SG_RULE_EQ_BACK, o, "event queue %u: consumer index %u, before %u",
                       eq->eqn, eq->ring.cons, before);
    }
    sg_check_event(a->check, o, SG_DID_ANSWER, eq->ring.cons, eq->ring.prod);
}

/* ---- queues and their events ---- */

void sg_eq_make(struct sg_adapter *a, uint32_t eqn, uint64_t base, uint32_t entries,
                uint32_t vector)
{
    struct sg_eq *eq = &a->eq_store[eqn];

    *eq = (struct sg_eq){ 0 };
    sg_ring_init(&eq->ring, base, entries, sizeof(struct sg_eqe));
    sg_list_init(&eq->waiting);
    sg_timer_init(&eq->answer, unanswered, a);
    eq->eqn = eqn;
    eq->vector = vector;
    a->eqs[eqn] = eq;
}

void sg_eq_free(struct sg_adapter *a, struct sg_eq *eq)
{
    while (sg_list_pop(&eq->waiting)) {
    }
    sg_timerq_cancel(&a->timers, &eq->answer);
    sg_account_free(&a->account, eq->backlog, eq->backlog_room * sizeof(*eq->backlog));
    a->eqs[eq->eqn] = NULL;
}

void sg_eq_destroy_all(struct sg_adapter *a)
{
    int i;

    for (i = 0; i < SG_EQ_COUNT; i++) {
        if (a->eqs[i]) {
            sg_eq_free(a, a->eqs[i]);
        }
    }
}

static void eq_notify(struct sg_adapter *a, struct sg_eq *eq)
{
    if (eq->armed) {
        eq->armed = false;
        if (sg_checking(a)) {
            check_raise(a, eq);
        }
        sg_adapter_raise(a, eq->vector);
    }
}

/* There is room. */
static void eq_post(struct sg_adapter *a, struct sg_eq *eq, const struct sg_eqe *ev)
{
    struct sg_eqe e = *ev;

    if (!sg_ring_post(&eq->ring, &a->host, &e, sizeof(e), NULL)) {
        sg_adapter_fatal(a, SG_FATAL_DMA);
        return;
    }
    eq_notify(a, eq);
}

static void post_completion(struct sg_adapter *a, struct sg_eq *eq, struct sg_cq *cq)
{
    struct sg_eqe e = { .event = SG_EV_COMPLETION };

    sg_put_le32(&e.id, cq->cqn);
    eq_post(a, eq, &e);
}

void sg_eq_completion(struct sg_adapter *a, struct sg_cq *cq)
{
    struct sg_eq *eq = a->eqs[cq->eqn];

    sg_assert(eq);
    if (sg_ring_full(&eq->ring)) {
        sg_list_append(&eq->waiting, &cq->eq_link);
    } else {
        post_completion(a, eq, cq);
    }
}

/* Limit of the waiting events: a few for each object, and some for the adapter itself. */
static uint32_t backlog_max(const struct sg_adapter *a)
{
    const struct sg_adapter_config *c = &a->config;

    return 7 * c->max_qp + 4 * c->max_conns + c->max_cq + 2 * c->max_srq + 1024;
}

/* Charged to the account beyond its limit: an event that was caused must not be lost. */
static bool backlog_grow(struct sg_adapter *a, struct sg_eq *eq)
{
    uint32_t old = eq->backlog_room, room = old ? 2 * old : 64, i;
    struct sg_eqe *bigger = g_try_new(struct sg_eqe, room);

    if (!bigger) {
        return false;
    }
    sg_account_charge(&a->account, room * sizeof(*bigger));
    for (i = 0; i < eq->backlog_count; i++) {
        bigger[i] = eq->backlog[(eq->backlog_first + i) & (old - 1)];
    }
    sg_account_free(&a->account, eq->backlog, old * sizeof(*bigger));
    eq->backlog = bigger;
    eq->backlog_room = room;
    eq->backlog_first = 0;
    return true;
}

static void backlog_add(struct sg_adapter *a, struct sg_eq *eq, const struct sg_eqe *e)
{
    if (eq->backlog_count >= backlog_max(a) ||
        (eq->backlog_count == eq->backlog_room && !backlog_grow(a, eq))) {
        sg_adapter_fatal(a, SG_FATAL_AEQ_OVERRUN);
        return;
    }
    eq->backlog[(eq->backlog_first + eq->backlog_count++) & (eq->backlog_room - 1)] = *e;
}

void sg_eq_async(struct sg_adapter *a, const struct sg_async *ev)
{
    struct sg_eq *eq = a->eqs[0];
    struct sg_eqe e = { .event = ev->event, .cm_status = ev->status };

    if (!eq || !sg_adapter_alive(a)) {
        return;
    }
    sg_put_le32(&e.id, ev->id);
    sg_put_le32(&e.conn, ev->conn);
    sg_put_le32(&e.aux, ev->aux);
    sg_put_le64(&e.page, ev->page);
    if (sg_ring_full(&eq->ring) || eq->backlog_count) {
        backlog_add(a, eq, &e);
    } else {
        eq_post(a, eq, &e);
    }
}

void sg_adapter_fatal(struct sg_adapter *a, enum sg_fatal why)
{
    struct sg_eq *aeq = a->eqs[0];

    if (a->status & SG_STATUS_FATAL) {
        return;
    }
    sg_log(&a->host, SG_LOG_FAILURE, "adapter: fatal error %d", why);
    if (sg_checking(a) && why == SG_FATAL_DMA) {
        sg_check_found(a, SG_RULE_DMA_RING, sg_object(SG_OBJECT_ADAPTER, 0),
                       "an admin ring or an event queue does not respond to DMA");
    } else if (sg_checking(a) && why == SG_FATAL_AEQ_OVERRUN) {
        sg_check_found(a, SG_RULE_AEQ_OVERRUN, sg_object(SG_OBJECT_EQ, 0),
                       "the async event queue is full, and so is the room for what waits");
    }
    if (aeq && (why == SG_FATAL_ADMIN_INDEX || why == SG_FATAL_INJECTED)) {
        sg_eq_async(a, &(struct sg_async){ .event = SG_EV_DEVICE_FATAL });
    }
    a->status |= SG_STATUS_FATAL;
    a->fatal = why;
    a->due |= SG_DUE_QUIESCE;
    sg_engine_stop(a->engine);
    sg_adapter_raise(a, 0);
    sg_adapter_kick(a);
}

bool sg_eq_async_room(const struct sg_adapter *a)
{
    const struct sg_eq *eq = a->eqs[0];

    return eq && sg_ring_used(&eq->ring) < eq->ring.entries / 2 && !eq->backlog_count;
}

/* The consumer moved: delivers what waited for room. */
static void eq_drain(struct sg_adapter *a, struct sg_eq *eq)
{
    struct sg_link *k;

    while (eq->backlog_count && !sg_ring_full(&eq->ring) && sg_adapter_alive(a)) {
        struct sg_eqe e = eq->backlog[eq->backlog_first];

        eq->backlog_first = (eq->backlog_first + 1) & (eq->backlog_room - 1);
        eq->backlog_count--;
        eq_post(a, eq, &e);
    }
    while (!sg_ring_full(&eq->ring) && sg_adapter_alive(a) && (k = sg_list_pop(&eq->waiting))) {
        post_completion(a, eq, sg_container_of(k, struct sg_cq, eq_link));
    }
}

static SG_COLD void no_queue(struct sg_adapter *a, uint32_t eqn)
{
    sg_guest_error(a, sg_adapter_alive(a) ? SG_RULE_EQ_UNKNOWN : SG_RULE_NONE,
                   sg_object(SG_OBJECT_EQ, eqn), "doorbell of event queue %u, which does not exist",
                   eqn);
}

bool sg_eq_doorbell(struct sg_adapter *a, uint32_t eqn, uint32_t value)
{
    struct sg_eq *eq = eqn < SG_EQ_COUNT ? a->eqs[eqn] : NULL;
    uint32_t behind, before;

    if (!eq || !sg_adapter_alive(a)) {
        no_queue(a, eqn);
        return false;
    }
    before = eq->ring.cons;
    behind = (eq->ring.prod - value) & SG_EQ_DB_CI_MASK; /* the guest gives its low bits */
    if (sg_ring_take(&eq->ring, SG_RING_CONS | SG_RING_IN_ORDER, eq->ring.prod - behind) ==
        SG_RING_BAD) {
        sg_guest_error(a, SG_RULE_EQ_INDEX, sg_object(SG_OBJECT_EQ, eqn),
                       "event queue %u: consumer index 0x%x, producer index 0x%x", eqn,
                       value & SG_EQ_DB_CI_MASK, eq->ring.prod);
        return false;
    }
    if (sg_checking(a)) {
        check_answer(a, eq, before);
    }
    eq_drain(a, eq);
    if (eq == a->eqs[0] && sg_eq_async_room(a)) {
        sg_engine_admit(a->engine);
    }
    if (!(value & SG_EQ_DB_ARM)) {
        return false;
    }
    eq->armed = true;
    if (sg_ring_used(&eq->ring)) {
        eq_notify(a, eq);
        return false;
    }
    return true;
}
