/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target's side of the Atomics of RFC 7306.
 *
 * The responder is called for one request at a time, in the order of their arrival and when all
 * earlier ones are executed.  It checks the request as any access of the peer, completes deferred
 * writes of the connection (pm.c), and repeats the host's compare and exchange until nobody
 * interferes.  So Atomics of all queue pairs, those of other adapters and locked instructions of
 * the guest's CPUs exclude each other, which is more than RFC 7306 section 5.3 requires.  A guest
 * that keeps changing the word cannot block a turn for ever: after TRIES it continues in the next.
 *
 * Numbers have the byte order of the target's memory, which is little-endian.  Alignment is that
 * of the bus address: section 5.2.1 speaks of the address that the Tagged Offset stands for.
 */
#include "verbs/connections/atomic_target.h"

#include "base/masked_atomic.h"
#include "verbs/memory/pm.h"
#include "verbs/memory/tpt.h"
#include "verbs/queues/qp.h"
#include "verbs/state/adapter_state.h"

enum {
    WORD = 8,
    TRIES = 64,
    WORK = 64, /* octets of a turn that an Atomic is charged as */
};

static bool exchange(struct sg_qp *qp, const struct sg_mr *mr, const struct sg_atomic_call *r,
                     const struct sg_pm_run *run, uint64_t *value, uint64_t desired)
{
    const struct sg_host *host = &qp->adapter->host;
    const struct sg_pm_who who = {
        .qpn = qp->qpn,
        .msn = r->msn,
        .to = r->to,
        .mode = mr->mode,
        .ordinal = qp->mem.ordinal,
    };

    return run->pm ? host->ops->pm_cmpxchg64(host->opaque, &who, run->bus, value, desired)
                   : host->ops->dma_cmpxchg64(host->opaque, run->bus, value, desired);
}

static uint64_t outcome(const struct sg_atomic_call *r, uint64_t value)
{
    const struct sg_atomic_args *a = &r->args;

    return r->kind == SG_MSG_FETCH_ADD
               ? sg_masked_add(value, a->data, a->mask)
               : sg_masked_swap(value, a->data, a->mask, a->cmp, a->cmp_mask);
}

static enum sg_exec_result operate(struct sg_qp *qp, struct sg_mr *mr,
                                   const struct sg_atomic_call *r, const struct sg_pm_run *run,
                                   uint64_t *original)
{
    uint64_t guess, found;
    uint8_t octets[WORD];
    unsigned n;

    if (!sg_mem_fetch(qp->adapter, mr, r->to, octets, WORD)) {
        return SG_EXEC_FAILED;
    }
    found = sg_get_le64(octets);
    for (n = 0; n < TRIES; n++) {
        guess = found; /* if the read was torn, the exchange fails */
        if (!exchange(qp, mr, r, run, &found, outcome(r, guess))) {
            return SG_EXEC_FAILED;
        }
        if (found == guess) {
            *original = found;
            mr->counters.remote_atomics++;
            qp->counters.rx_requests++;
            return SG_EXEC_DONE;
        }
    }
    return SG_EXEC_LATER;
}

enum sg_exec_result sg_atomic_target_run(struct sg_qp *qp, const struct sg_atomic_call *r,
                                         uint64_t *original, enum sg_mem_status *why,
                                         uint64_t *token, uint64_t *again_ns)
{
    struct sg_adapter *a = qp->adapter;
    struct sg_pm_run run;
    struct sg_mr *mr;

    (void)token;
    *why = sg_tpt_check_remote(&qp->mem, r->stag, r->to, WORD, SG_ACCESS_REMOTE_ATOMIC, &mr);
    if (*why != SG_MEM_OK) {
        return SG_EXEC_MEM;
    }
    switch (sg_odp_ready(&qp->mem, SG_ODP_ANSWER, mr, r->to, WORD, true)) {
    case SG_ODP_READY:
        break;
    case SG_ODP_WAIT:
        *again_ns = SG_NEVER; /* until MAP_PAGES */
        return SG_EXEC_LATER;
    case SG_ODP_FAILED:
        *why = SG_MEM_ACCESS;
        return SG_EXEC_MEM;
    }
    run = sg_pm_run(a, mr, r->to, WORD);
    if (!sg_is_aligned(run.bus, (uint64_t)WORD) || run.len != WORD) {
        return SG_EXEC_UNALIGNED;
    }
    sg_pm_complete_writes(&qp->mem);
    a->executed += WORK;
    *again_ns = sg_adapter_now(a);
    return operate(qp, mr, r, &run, original);
}
