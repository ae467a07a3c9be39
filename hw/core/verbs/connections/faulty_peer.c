/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections that a fault rule ends at a chosen message: for its peer, this adapter is the one
 * that misbehaves.
 *
 * While there are rules about messages, the engine has other upcalls: each is the ordinary one, and
 * then asks the rules.  An outbound message that is concerned was begun by its work request, but
 * is not sent.  An inbound one has arrived, and is placed.
 */
#include "verbs/connections/cm_impl.h"

#include <glib.h>

#include "verbs/connections/inbound.h"
#include "verbs/state/adapter_state.h"

/* Its own driver learns of the end as of any other one. */
static void misbehave(struct sg_cm *cm, uint8_t effect)
{
    struct sg_qp *qp = cm->qp;

    switch (effect) {
    case SG_EFFECT_TERMINATE:
        sg_qp_fail(qp, SG_EV_QP_FATAL, "a fault rule sends a Terminate");
        break;
    case SG_EFFECT_FIN:
        sg_qp_set_state(qp, SG_QP_ERROR, "a fault rule sends a FIN");
        sg_qp_defer(qp, SG_DEFER_CLOSE);
        break;
    case SG_EFFECT_RST:
        sg_qp_set_state(qp, SG_QP_ERROR, "a fault rule sends an RST");
        sg_cm_abort(cm);
        break;
    case SG_EFFECT_MUTE:
        cm->mute = true;
        break;
    default:
        break;
    }
}

/* A message; false: the connection does not go on with it. */
static bool passes(struct sg_cm *cm, enum sg_fault_point point)
{
    struct sg_adapter *a = cm->adapter;
    struct sg_fault_act act;

    if (!sg_faulty(a) || !cm->qp || !cm->base.engine) {
        return true;
    }
    act = sg_faults_at(a->faults, point, cm->qp->qpn, sg_adapter_now(a));
    misbehave(cm, act.effect);
    return act.effect == SG_EFFECT_NONE;
}

static bool faulty_next(void *user, struct sg_msg *msg, unsigned reads_room)
{
    if (!sg_cm_engine_ops.next(user, msg, reads_room)) {
        return false;
    }
    if (msg->kind == SG_MSG_READ_REQ && msg->read.confirm) {
        return true; /* the adapter's own */
    }
    return passes(user, SG_POINT_OUTBOUND);
}

static void faulty_recv_done(void *user, const struct sg_recv_info *info)
{
    sg_in_recv_done(user, info);
    passes(user, SG_POINT_INBOUND);
}

static void faulty_write_placed(void *user)
{
    sg_in_write_placed(user);
    passes(user, SG_POINT_INBOUND);
}

static enum sg_mem_status faulty_check_source(void *user, uint32_t stag, uint64_t to, uint32_t len)
{
    enum sg_mem_status st = sg_in_check_source(user, stag, to, len);
    struct sg_cm *cm = user;

    passes(cm, SG_POINT_INBOUND);
    return cm->base.engine ? st : SG_MEM_CLOSED;
}

static struct sg_engine_ops *make_upcalls(void)
{
    struct sg_engine_ops *ops = g_new(struct sg_engine_ops, 1);

    *ops = sg_cm_engine_ops;
    ops->next = faulty_next;
    ops->recv_done = faulty_recv_done;
    ops->write_placed = faulty_write_placed;
    ops->check_source = faulty_check_source;
    return ops;
}

void sg_cm_hang_upcalls(struct sg_adapter *a)
{
    const bool faulty = sg_faulty(a) && (sg_faults_has(a->faults, SG_POINT_OUTBOUND) ||
                                         sg_faults_has(a->faults, SG_POINT_INBOUND));

    if (faulty && !a->faulty_upcalls) {
        a->faulty_upcalls = make_upcalls();
    }
    sg_engine_set_ops(a->engine, faulty ? a->faulty_upcalls : &sg_cm_engine_ops);
}
