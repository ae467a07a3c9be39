/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The adapter: life, reset, and the turn.
 *
 * Life.  sg_adapter_new() makes a disabled adapter.  CTRL.ENABLE brings up the admin queue and the
 * async event queue; admin commands create everything else.  Clearing ENABLE destroys all of it;
 * reset also clears the registers, so nothing survives.  For the guest both are complete when the
 * register is written: ending.c says how.
 *
 * The turn.  Nothing is transmitted, executed or flushed when a register or doorbell is written:
 * the write only records work and kicks the host.  sg_adapter_run() then does, each within a bound:
 *
 *   1. admin commands               2. overrun completion queues
 *   3. deferred ends of connections 4. transmission, round-robin
 *   5. flushing                     6. timers
 *
 * and arms the host's timer with the next deadline.  Frames arrive between turns, through the
 * network's own entry; placement and completion happen at once, answers in the next turn.
 *
 * A turn is bounded in octets, to which all work is converted (SG_TURN_*), and in time: after
 * SG_TURN_NS no further work begins, and the host is asked to call again.  If the clock does not
 * advance, only the octets limit it.
 *
 * A fatal error (STATUS.FATAL, SG_REG_FATAL) stops everything until reset; connections are reset
 * in the next turn.
 */
#include "verbs/adapter.h"

#include <glib.h>

#include "faults/faults.h"
#include "flash/chip.h"
#include "verbs/adapter_impl.h"
#include "verbs/commands/admin_cmd.h"
#include "verbs/connections/cm.h"
#include "verbs/connections/mpe_target.h"
#include "verbs/memory/mem.h"
#include "verbs/memory/pm.h"
#include "verbs/memory/tpt.h"
#include "verbs/events/cq.h"
#include "verbs/events/eq.h"
#include "verbs/queues/qp.h"

/* The adapter with the parts of it that belong to the layers of verbs. */
struct parts {
    struct sg_adapter adapter;
    struct sg_ending ending;
    struct sg_admin_queue admin;
    struct sg_eq eqs[SG_EQ_COUNT];
    struct sg_tpt tpt;
    struct sg_scratch scratch;
};

static struct sg_adapter *make_parts(void)
{
    struct parts *p = g_new0(struct parts, 1);

    p->adapter.ending = &p->ending;
    p->adapter.admin = &p->admin;
    p->adapter.eq_store = p->eqs;
    p->adapter.tpt = &p->tpt;
    p->adapter.mem_ops = &sg_qp_mem_ops;
    p->adapter.conn_ops = &sg_cm_conn_ops;
    p->adapter.scratch = &p->scratch;
    return &p->adapter;
}

static void make_lists(struct sg_adapter *a)
{
    sg_list_init(&a->ready);
    sg_list_init(&a->past_conns);
    sg_list_init(&a->deferred);
    sg_list_init(&a->flushing);
    sg_list_init(&a->cq_errors);
    sg_list_init(&a->deferred_writes);
    sg_list_init(&a->paging);
    sg_list_init(&a->late_cqes);
    sg_timerq_init(&a->timers);
}

static void make_tables(struct sg_adapter *a)
{
    const struct sg_adapter_config *c = &a->config;

    sg_idtab_init(&a->pds, 1, c->max_pd);
    sg_idtab_init(&a->cqs, 1, c->max_cq);
    sg_idtab_init(&a->qps, 1, c->max_qp);
    sg_idtab_init(&a->srqs, 1, c->max_srq);
    sg_idtab_init(&a->conns, 1, c->max_conns);
    sg_idtab_init(&a->listeners, 1, c->max_listeners);
    sg_tpt_init(a);
    a->net->ops->counters(a->net, &a->net_before);
}

struct sg_adapter *sg_adapter_new(const struct sg_host *host, struct sg_stream_net *net,
                                  const struct sg_adapter_config *config)
{
    struct sg_adapter *a = make_parts();
    char buf[128];

    sg_assert(!sg_adapter_check_config(config, buf, sizeof(buf)));
    a->account.limit = config->max_host_memory;
    a->host = *host;
    a->host.account = &a->account;
    a->net = net;
    a->net->account = &a->account;
    a->config = *config;
    sg_adapter_fit_wire(&a->config);
    if (config->check != SG_CHECK_OFF) {
        a->check = sg_check_new(&a->host, config->check);
    }
    sg_adapter_hang_bells(a);
    a->scratch->buf = g_malloc(SG_SCRATCH_SIZE);
    a->hash_piece = g_malloc(SG_HASH_PIECE);
    a->engine = sg_engine_new(&a->host, a->net, &a->config.engine, &sg_cm_engine_ops);
    make_lists(a);
    make_tables(a);
    return a;
}

/* After this the guest finds no objects any more. */
static void end(struct sg_adapter *a)
{
    if (sg_faulty(a)) {
        sg_faults_reset(a->faults);
    }
    sg_cq_drop_late(a, NULL);
    sg_reg_drop(a);
    sg_check_sums_free(a->check, a->admin->sums);
    memset(a->admin, 0, sizeof(*a->admin));
    sg_pm_complete_all_writes(a);
    sg_eq_destroy_all(a);
    sg_ending_begin(a);
    sg_tpt_fini(a);
    sg_assert(!a->scratch->live);
}

void sg_adapter_finish_reset(struct sg_adapter *a)
{
    while (sg_ending_run(a) || sg_tpt_run(a)) {
    }
}

void sg_adapter_free(struct sg_adapter *a)
{
    end(a);
    sg_adapter_finish_reset(a);
    sg_engine_free(a->engine);
    a->net->account = NULL;
    sg_assert(!a->account.used); /* everything was released */
    sg_check_free(a->check);
    g_free(a->scratch->buf);
    g_free(a->hash_piece);
    g_free(a->faulty_upcalls);
    g_free(sg_container_of(a, struct parts, adapter));
}

void sg_adapter_disable(struct sg_adapter *a)
{
    sg_assert(!a->running);
    end(a);
    if (a->flash) {
        sg_flash_abandon(a->flash);
    }
    memset(&a->stats, 0, sizeof(a->stats));
    a->status &= SG_STATUS_LINK_UP;
    a->fatal = SG_FATAL_NONE;
    a->due = 0;
    a->quiesce_cursor = 0;
    if (sg_checking(a)) {
        sg_check_reset(a->check);
    }
    a->own_reset = false;
    a->kicked = false; /* the host may have dropped its call as well */
    make_tables(a);
    a->host.ops->arm_timer(a->host.opaque, SG_NEVER);
    sg_adapter_kick(a); /* sg_ending_run(), sg_tpt_run() */
    sg_log(&a->host, SG_LOG_STATE, "adapter: disabled");
}

void sg_adapter_reset(struct sg_adapter *a)
{
    sg_adapter_disable(a);
    memset(a->regs, 0, sizeof(a->regs));
}

void sg_adapter_renew(struct sg_adapter *a, const struct sg_adapter_config *config)
{
    char buf[128];

    sg_assert(!sg_adapter_check_config(config, buf, sizeof(buf)));
    a->config = *config;
    sg_adapter_fit_wire(&a->config);
    a->account.limit = config->max_host_memory;
    sg_adapter_reset(a);
    sg_engine_set_config(a->engine, &a->config.engine);
}

void sg_adapter_break(struct sg_adapter *a)
{
    if (sg_adapter_alive(a)) {
        sg_adapter_fatal(a, SG_FATAL_INJECTED);
    }
}

void sg_adapter_set_faults(struct sg_adapter *a, struct sg_faults *faults)
{
    sg_cq_release_late(a, NULL); /* their rule is gone */
    a->faults = faults && sg_faults_any(faults) ? faults : NULL;
    sg_adapter_hang_bells(a);
    sg_cm_hang_upcalls(a);
    a->admin->held_until = 0; /* a command that waits goes on: its rule is gone */
    sg_adapter_kick(a);       /* the host learns of the deadline */
}

/* Faults that have a time; returns the next deadline. */
static SG_COLD uint64_t run_faults(struct sg_adapter *a)
{
    uint64_t next = sg_adapter_run_faults(a);

    next = SG_MIN(next, sg_cq_run_late(a));
    return SG_MIN(next, sg_admin_held_until(a));
}

/* Timers; returns the next deadline. */
static uint64_t run_timers(struct sg_adapter *a)
{
    uint64_t now = sg_adapter_now(a);
    uint64_t net = a->net->ops->run(a->net, now);
    uint64_t engine, own;

    if (a->ending->under_way || a->status & SG_STATUS_FATAL) {
        return net; /* for the guest, the objects with timers are gone */
    }
    engine = sg_engine_run(a->engine, now);
    sg_timerq_run(&a->timers, now);
    own = sg_timerq_next(&a->timers);
    return SG_MIN(own, SG_MIN(engine, net));
}

/*
 * Frees what a reset left: objects, then the rows of the old TPT.  It comes first, so that a driver
 * that starts again finds memory.  Returns whether some is left.
 */
static bool run_leftovers(struct sg_adapter *a)
{
    return (a->ending->under_way && sg_ending_run(a)) || (a->tpt->retired.full && sg_tpt_run(a));
}

/* Actions on connections that an upcall may not do itself. */
static bool run_deferred(struct sg_adapter *a)
{
    return !sg_list_empty(&a->deferred) && sg_qp_run_deferred(a);
}

/* What few turns have to do; returns whether some is left. */
static SG_COLD bool run_due(struct sg_adapter *a)
{
    if (a->due & SG_DUE_CHECK) {
        a->due &= (uint8_t)~SG_DUE_CHECK;
        sg_check_end_due(a);
    }
    if (a->due & SG_DUE_QUIESCE && !sg_cm_quiesce(a)) {
        a->due &= (uint8_t)~SG_DUE_QUIESCE;
    }
    return a->due;
}

bool sg_adapter_run(struct sg_adapter *a, size_t budget)
{
    uint64_t deadline;
    bool more;

    sg_assert(!a->running);
    a->running = true;
    a->kicked = false;
    a->turn_end = sg_adapter_now(a) + SG_TURN_NS;
    more = a->due && run_due(a);
    more |= run_leftovers(a);
    if (sg_adapter_alive(a) && !a->ending->under_way) {
        more |= !more && sg_admin_run(a);
        more |= !sg_list_empty(&a->cq_errors) && sg_qp_run_cq_errors(a);
        more |= run_deferred(a);
        more |= sg_cm_transmit(a, budget);
        more |= run_deferred(a);
        more |= sg_qp_run_flush(a);
    }
    deadline = run_timers(a);
    if (sg_faulty(a)) {
        deadline = SG_MIN(deadline, run_faults(a));
    }
    more |= a->kicked;
    a->running = false;
    a->kicked = more; /* true: the host calls again without another kick */
    a->host.ops->arm_timer(a->host.opaque, deadline);
    return more;
}

void sg_adapter_set_link(struct sg_adapter *a, bool up)
{
    uint32_t before = a->status;

    a->status = up ? a->status | SG_STATUS_LINK_UP : a->status & ~SG_STATUS_LINK_UP;
    if (a->status != before) {
        sg_eq_async(a, &(struct sg_async){ .event = up ? SG_EV_PORT_UP : SG_EV_PORT_DOWN });
    }
}

void sg_adapter_observe_all(const struct sg_adapter *a)
{
    sg_cm_observe_all(a);
}

void sg_adapter_set_flash(struct sg_adapter *a, struct sg_flash *flash)
{
    a->flash = flash;
}

void sg_adapter_census(const struct sg_adapter *a, struct sg_adapter_census *out)
{
    int i;

    memset(out, 0, sizeof(*out));
    out->pds = sg_idtab_count(&a->pds);
    out->mrs = a->tpt->count - a->tpt->windows;
    out->mws = a->tpt->windows;
    out->cqs = sg_idtab_count(&a->cqs);
    out->qps = sg_idtab_count(&a->qps);
    out->srqs = sg_idtab_count(&a->srqs);
    out->conns = sg_idtab_count(&a->conns);
    out->listeners = sg_idtab_count(&a->listeners);
    for (i = 0; i < SG_EQ_COUNT; i++) {
        out->eqs += a->eqs[i] != NULL;
    }
}

uint64_t sg_adapter_host_memory(const struct sg_adapter *a)
{
    return a->account.used;
}
