/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The adapter object, for all layers of verbs.
 *
 * Each layer has a part of it that only this layer and those above know: here these are pointers.
 * adapter.c creates them all.  Others see adapter.h.
 */
#ifndef SG_VERBS_STATE_ADAPTER_STATE_H
#define SG_VERBS_STATE_ADAPTER_STATE_H

#include "base/account.h"
#include "base/idtab.h"
#include "base/list.h"
#include "base/timerq.h"
#include "faults/faults.h"
#include "staghorn/admin.h"
#include "staghorn/io.h"
#include "staghorn/regs.h"
#include "verbs/check/check.h"
#include "verbs/state/adapter_config.h"

struct sg_adapter;
struct sg_admin_queue;
struct sg_cm;
struct sg_ending;
struct sg_engine_ops;
struct sg_eq;
struct sg_flash;
struct sg_mem_ops;
struct sg_qp_conn_ops;
struct sg_scratch;
struct sg_tpt;

/* Bounds of one turn, so that a guest cannot block the host for long. */
enum sg_turn_limits {
    SG_TURN_ADMIN = 32,      /* admin commands */
    SG_TURN_PAGES = 1 << 16, /* page addresses that end the turn of the admin queue */
    SG_TURN_FLUSH = 1024,    /* flushed entries of all queues */
    /* Octets for one connection before the next has its turn: 64 KiB of payload, with the headers
     * of any wire, in segments of 1448 octets or more. */
    SG_TURN_QUANTUM = 72 * 1024,
    SG_TURN_MIN_COST = 256,  /* octets that any transmission is charged as */
    SG_TURN_LOCAL_COST = 64, /* octets that a local operation is charged as */
    SG_TURN_END = 64,        /* objects destroyed between two checks of the time */
    SG_TURN_ENDS = 4096,     /* objects destroyed in a turn, if the clock does not advance */
    SG_TURN_NS = 4000000,    /* time after which nothing more is begun */
};

enum sg_due {
    SG_DUE_QUIESCE = 1, /* fatal: connections are still to be reset */
    SG_DUE_CHECK = 2,   /* a strict checker ends something */
};

/* Counters of verbs; the engine has its own. */
struct sg_verbs_stats {
    uint64_t guest_errors, cq_overruns, page_faults, rx_no_receive;
    uint64_t conn_active, conn_passive, conn_failed, conn_closed;
};

/* A doorbell was written: of a page, with a value. */
typedef void sg_bell_fn(struct sg_adapter *a, uint32_t page, uint64_t value);

struct sg_adapter {
    struct sg_host host;
    struct sg_account account; /* of all memory that the guest makes us allocate */
    struct sg_stream_net *net;
    struct sg_adapter_config config;
    struct sg_engine *engine;
    struct sg_flash *flash;   /* the host's; NULL: none */
    struct sg_check *check;   /* NULL: off */
    struct sg_faults *faults; /* the host's; NULL: no rules */
    sg_bell_fn *const *bells; /* by doorbell (doorbell.c) */

    uint32_t regs[0x100 / 4]; /* values of the writable registers */
    uint32_t status;          /* SG_STATUS_* */
    uint32_t fatal;           /* enum sg_fatal */
    bool kicked;              /* the host has been asked to call sg_adapter_run() */
    bool running;             /* inside it */
    bool check_silent;        /* the checker's: memory did not respond, as was reported */
    bool own_reset;           /* the driver has reset it, and not enabled it since */
    uint8_t due;              /* enum sg_due: what few turns have to do */
    uint32_t quiesce_cursor;  /* SG_DUE_QUIESCE begins here in conns */
    uint64_t turn_end;        /* time limit of this turn, ns */

    struct sg_admin_queue *admin;
    uint32_t command_pages;         /* addresses read for admin commands of this turn */
    struct sg_eq *eqs[SG_EQ_COUNT]; /* 0: the async event queue, while enabled */
    struct sg_eq *eq_store;         /* where they are, once they exist */
    struct sg_idtab pds, cqs, qps, srqs, conns, listeners;
    struct sg_ending *ending;
    struct sg_tpt *tpt;
    const struct sg_mem_ops *mem_ops;      /* operations of queues for memory */
    const struct sg_qp_conn_ops *conn_ops; /* operations of connections for queues */
    struct sg_scratch *scratch;
    uint8_t *hash_piece; /* SG_HASH_PIECE octets */

    struct sg_list ready;       /* sg_cm: connections with something to transmit */
    struct sg_list past_conns;  /* sg_cm: have ended, kept for CM_DATA; the oldest first */
    struct sg_cm *transmitting; /* inside sg_conn_transmit(); NULL also when it ended there */
    uint64_t executed;          /* cost of peers' requests and page lists: octets of the budget */
    struct sg_list deferred;    /* sg_qp: actions that an upcall may not do itself */
    struct sg_list flushing;    /* sg_qp: in ERROR with entries left */
    struct sg_list cq_errors;   /* sg_cq: overrun, queue pairs not in error yet */
    struct sg_list paging;      /* sg_mem_ctx: wait for pages (odp.c) */
    struct sg_engine_ops *faulty_upcalls; /* connections/faulty_peer.c; NULL: never needed */
    struct sg_list late_cqes;             /* completions that fault rules delay */
    uint32_t late_count;                  /* of them */
    struct sg_list deferred_writes; /* sg_mem_ctx: the host may hold placed octets back (pm.c) */
    struct sg_timerq timers;        /* of completion queues, and of waits for receives */
    struct sg_verbs_stats stats;
    struct sg_net_counters net_before; /* the network's at the last reset */
};

/* Asks for a turn, unless one is in progress or requested. */
void sg_adapter_kick(struct sg_adapter *a);
/* Raises a vector, unless a fault rule has something else to say. */
void sg_adapter_raise(struct sg_adapter *a, unsigned vector);
/* Does what the fault rules have for this time; returns the next one.  Only if there are any. */
uint64_t sg_adapter_run_faults(struct sg_adapter *a);
/* Counts and logs a breach of the contract by the guest, and reports it to the checker. */
void sg_guest_error(struct sg_adapter *a, enum sg_rule rule, struct sg_object o, const char *fmt,
                    ...) __attribute__((cold, format(printf, 4, 5)));
/* A breach that only the checker sees.  Call it only if there is one. */
void sg_check_found(struct sg_adapter *a, enum sg_rule rule, struct sg_object o, const char *fmt,
                    ...) __attribute__((cold, format(printf, 4, 5)));

/* Is the checker on?  It seldom is. */
static inline bool sg_checking(const struct sg_adapter *a)
{
    return __builtin_expect(a->check != NULL, 0);
}

/* Are there fault rules?  There seldom are. */
static inline bool sg_faulty(const struct sg_adapter *a)
{
    return __builtin_expect(a->faults != NULL, 0);
}

static inline bool sg_check_strict(const struct sg_adapter *a)
{
    return sg_checking(a) && sg_check_mode(a->check) == SG_CHECK_STRICT;
}

/* The rule that a doorbell breaks whose number names no object, or that of another page. */
enum sg_rule sg_check_number_rule(const struct sg_adapter *a, enum sg_object_kind kind, uint32_t id,
                                  const void *object);

/* Was it just reported that memory did not respond?  Then what follows from it is not. */
static inline bool sg_check_was_silent(struct sg_adapter *a)
{
    bool was = a->check_silent;

    a->check_silent = false;
    return was;
}

/* For the history of the object. */
static inline void sg_checked(const struct sg_adapter *a, struct sg_object o,
                              enum sg_check_what what, uint32_t x, uint32_t y)
{
    if (sg_checking(a)) {
        sg_check_event(a->check, o, what, x, y);
    }
}

static inline uint64_t sg_adapter_now(const struct sg_adapter *a)
{
    return a->host.ops->now(a->host.opaque);
}

static inline bool sg_adapter_alive(const struct sg_adapter *a)
{
    return (a->status & (SG_STATUS_READY | SG_STATUS_FATAL)) == SG_STATUS_READY;
}

/* Does a fault rule make the registers unreachable now? */
static inline bool sg_adapter_is_unreachable(const struct sg_adapter *a)
{
    return sg_faulty(a) && sg_faults_unreachable(a->faults, sg_adapter_now(a));
}

/*
 * Has this turn used up its time?  Then no further work begins; work in progress is bounded itself.
 * Each kind of work still does one piece of it, so that none waits for ever.
 */
static inline bool sg_turn_over(const struct sg_adapter *a)
{
    return sg_adapter_now(a) >= a->turn_end;
}

/* Does the profile allow these SG_FEATURE_*?  If not, the adapter behaves as if it had none. */
static inline bool sg_adapter_may(const struct sg_adapter *a, uint32_t features)
{
    return (a->config.features & features) == features;
}

#endif
