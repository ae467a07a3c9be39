/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of all objects, at CTRL.RESET, CTRL.ENABLE cleared, FLR and new firmware.
 *
 * A guest can end 65,536 queue pairs and as many connections by one register write, and QEMU must
 * not be blocked for so long.  So the write detaches the tables, and the objects in them are
 * destroyed in the following turns, a few milliseconds in each.
 *
 * For the guest the reset is complete when the register is written:
 *
 *   - earlier numbers and STags are invalid, and no doorbell finds anything;
 *   - the engine is stopped: messages of peers are neither placed nor make events, and the
 *     host has completed deferred writes to persistent memory;
 *   - event queues are gone, timers do not run, nothing is transmitted;
 *   - a driver may set up rings and enable the adapter at once.  Its commands are executed as soon
 *     as all is destroyed: until then no new object can meet an old one.
 *
 * Objects are destroyed from the top: connections, listeners, the rest of the engine, queue pairs,
 * shared receive queues, completion queues, domains; then TCP connections without an owner.  The
 * rows of the protection table come after them (tpt.c), as queue pairs release their windows.  Each
 * object removes itself from the lists of the adapter, which are empty in the end.
 */
#include "verbs/adapter_impl.h"
#include "verbs/commands/admin_cmd.h"
#include "verbs/connections/cm.h"

enum stage { CONNS, LISTENERS, UNOWNED, QPS, SRQS, CQS, PDS, NETWORK, STAGES };

void sg_ending_begin(struct sg_adapter *a)
{
    struct sg_ending *e = a->ending;

    if (e->under_way) {
        return; /* no command was executed since: there are no new objects */
    }
    *e = (struct sg_ending){
        .conns = a->conns,
        .listeners = a->listeners,
        .qps = a->qps,
        .srqs = a->srqs,
        .cqs = a->cqs,
        .pds = a->pds,
        .under_way = true,
    };
    sg_engine_stop(a->engine);
}

/* The table of this stage and the destructor of its objects; NULL: it has none. */
static struct sg_idtab *table(struct sg_ending *e,
                              void (**destroy)(struct sg_adapter *a, void *object))
{
    switch (e->stage) {
    case CONNS:
        *destroy = sg_cm_destroy;
        return &e->conns;
    case LISTENERS:
        *destroy = sg_listen_destroy;
        return &e->listeners;
    case QPS:
        *destroy = sg_qp_destroy;
        return &e->qps;
    case SRQS:
        *destroy = sg_srq_destroy;
        return &e->srqs;
    case CQS:
        *destroy = sg_cq_destroy;
        return &e->cqs;
    case PDS:
        *destroy = sg_pd_destroy;
        return &e->pds;
    default:
        *destroy = NULL;
        return NULL;
    }
}

/* Destroys up to SG_TURN_END objects; false: this stage is complete. */
static bool run_stage(struct sg_adapter *a)
{
    struct sg_ending *e = a->ending;
    void (*destroy)(struct sg_adapter *a, void *object);
    struct sg_idtab *t = table(e, &destroy);
    unsigned n;
    void *object;

    if (e->stage == UNOWNED) {
        return sg_engine_abort_some(a->engine, SG_TURN_END);
    }
    if (e->stage == NETWORK) {
        return a->net->ops->end_some && a->net->ops->end_some(a->net, SG_TURN_END);
    }
    for (n = 0; n < SG_TURN_END; n++) {
        object = sg_idtab_next(t, &e->cursor, NULL);
        if (!object) {
            sg_idtab_fini(t);
            e->cursor = 0;
            return false;
        }
        destroy(a, object);
    }
    return true;
}

static void finish(struct sg_adapter *a)
{
    sg_assert(sg_list_empty(&a->ready) && sg_list_empty(&a->past_conns) &&
              sg_list_empty(&a->deferred) && sg_list_empty(&a->flushing) &&
              sg_list_empty(&a->cq_errors) && sg_list_empty(&a->deferred_writes) &&
              sg_list_empty(&a->paging) && sg_timerq_next(&a->timers) == SG_NEVER);
    sg_engine_reset(a->engine);
    a->net->ops->clear_addrs(a->net);
    a->net->ops->set_mtu(a->net, a->config.link_mtu);
    a->net->ops->counters(a->net, &a->net_before); /* including the resets sent meanwhile */
    a->ending->under_way = false;
}

bool sg_ending_run(struct sg_adapter *a)
{
    struct sg_ending *e = a->ending;
    unsigned n = 0;

    while (e->under_way) {
        if (!run_stage(a) && ++e->stage == STAGES) {
            finish(a);
            return false;
        }
        n += SG_TURN_END;
        if (sg_turn_over(a) || n >= SG_TURN_ENDS) {
            return true;
        }
    }
    return false;
}
