/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The responder of Flush, Verify and Atomic Write.
 *
 * The engine calls sg_mpe_target_run() for one request at a time, in the order of their arrival and
 * when all before it is executed.  A request is checked (STag, association, rights of region and
 * queue pair, wrap, bounds: as any access of the peer), deferred writes of the connection are
 * completed (pm.c), and then it is executed in bounded turns: a turn does a limited number of
 * octets or runs of pages, records its progress in cm->mpe and asks to be called again.  Between
 * turns the region may go away or become another one under the same STag: its serial number shows
 * that.  What a turn does is charged to the adapter's turn ('executed'), which many connections
 * share.
 *
 *   Flush         the host flushes run by run.  Ordinary memory needs nothing: completed writes
 *                 are visible, and persistence was refused at registration.  R is the whole region,
 *                 which may exceed the 32-bit length.
 *   Verify        hashes the media side of persistent memory, never a copy that a power cut would
 *                 lose (draft -02 section 2.2.2); for ordinary memory there is only one side.
 *   Atomic Write  one aligned store.  Alignment is that of the bus address, as the draft speaks of
 *                 the ULP buffer's address and lets the Tagged Offset be any value.
 *
 * A Flush that asks for neither state needs any one of the flush rights, and promises nothing.
 * A request of no octets is checked like any other.  The engine invalidates the STag that a
 * request of draft -01 may name, when we are done.
 */
#include "verbs/connections/mpe_target.h"

#include <glib.h>

#include "base/hash.h"
#include "verbs/connections/cm.h"
#include "verbs/memory/pm.h"
#include "verbs/queues/qp.h"

enum turn_limits {
    TURN_RUNS = 64,         /* calls of the host, */
    RUN_COST = 16 << 20,    /* and so many octets count as one more */
    RUN_MAX = 1 << 30,      /* octets of one call: the host's cost follows what is dirty */
    RUN_WORK = 4096,        /* octets of the adapter's turn that a call is charged as */
    TURN_HASH = 256 * 1024, /* octets of a slow hash, about a millisecond */
    TURN_HASH_CRC = 4 << 20,
    POISON_MAX = 256 * 1024, /* octets that one call of the host marks line by line */
};

/* A call of sg_mpe_target_run(). */
struct turn {
    struct sg_qp *qp;
    struct sg_adapter *a;
    const struct sg_mpe_req *r;
    struct sg_mpe_target *x;
    struct sg_mr *mr;
    uint8_t *hash, *hash_len;
    uint64_t *again_ns;
};

void sg_mpe_target_drop(struct sg_cm *cm)
{
    sg_account_free(&cm->adapter->account, cm->mpe.hasher, sizeof(*cm->mpe.hasher));
    cm->mpe = (struct sg_mpe_target){ 0 };
}

static enum sg_exec_result go_on(const struct turn *t)
{
    *t->again_ns = sg_adapter_now(t->a);
    return SG_EXEC_LATER;
}

static struct sg_pm_run next_run(const struct turn *t, uint64_t max)
{
    const struct sg_mpe_target *x = t->x;

    return sg_pm_run(t->a, t->mr, x->to + x->off, SG_MIN(max, x->length - x->off));
}

/* Are the pages there?  DONE: continue. */
static enum sg_exec_result pages(const struct turn *t, uint64_t to, uint64_t len, bool write)
{
    switch (sg_odp_ready(&t->qp->mem, SG_ODP_ANSWER, t->mr, to, len, write)) {
    case SG_ODP_READY:
        return SG_EXEC_DONE;
    case SG_ODP_WAIT:
        *t->again_ns = SG_NEVER; /* until MAP_PAGES */
        return SG_EXEC_LATER;
    default:
        return SG_EXEC_FAILED;
    }
}

/* ---- Flush ---- */

static enum sg_pm_result flush_run(const struct turn *t, const struct sg_pm_run *run)
{
    struct sg_pm_op *op = &t->x->op;
    enum sg_pm_result result;

    op->who = (struct sg_pm_who){
        .qpn = t->qp->qpn,
        .msn = t->r->msn,
        .to = t->x->to + t->x->off,
        .mode = t->mr->mode,
        .ordinal = t->qp->mem.ordinal,
    };
    op->addr = run->bus;
    op->len = run->len;
    op->flags = t->r->args.flags & (SG_FLUSH_PERSISTENT | SG_FLUSH_GLOBAL);
    if (!run->pm && op->flags & SG_FLUSH_PERSISTENT && sg_mr_root(t->mr)->odp) {
        return SG_PM_FAILED; /* registration could not check this */
    }
    if (!run->pm || !op->flags) {
        return SG_PM_DONE;
    }
    result = t->a->host.ops->pm_flush(t->a->host.opaque, op);
    if (result == SG_PM_LATER) {
        *t->again_ns = op->due_ns;
    }
    return result;
}

static enum sg_exec_result run_flush(const struct turn *t)
{
    struct sg_mpe_target *x = t->x;
    enum sg_exec_result res;
    uint64_t cost = 0;

    if (!t->mr->pm) {
        x->off = x->length;
    }
    while (x->off < x->length) {
        struct sg_pm_run run;

        if (cost >= TURN_RUNS || (cost && sg_turn_over(t->a))) {
            return go_on(t);
        }
        res = pages(t, x->to + x->off, 1, false);
        if (res != SG_EXEC_DONE) {
            return res;
        }
        run = next_run(t, RUN_MAX); /* the same run if the host asked for time */
        t->a->executed += RUN_WORK;
        switch (flush_run(t, &run)) {
        case SG_PM_LATER:
            return SG_EXEC_LATER;
        case SG_PM_FAILED:
            return SG_EXEC_FAILED;
        case SG_PM_DONE:
            break;
        }
        x->off += run.len;
        x->op = (struct sg_pm_op){ .phase = SG_PM_NEW };
        cost += 1 + run.len / RUN_COST;
    }
    sg_pm_milestone(&t->qp->mem, t->r->msn, t->qp->mem.ordinal, x->to, SG_PM_BEFORE_FLUSH_ANSWER);
    return SG_EXEC_DONE;
}

/* ---- Verify ---- */

static bool read_run(const struct turn *t, const struct sg_pm_run *run, uint8_t *buf)
{
    const struct sg_host *host = &t->a->host;

    return run->pm ? host->ops->pm_media_read(host->opaque, run->bus, buf, run->len) == SG_PM_DONE
                   : host->ops->dma_read(host->opaque, run->bus, buf, run->len);
}

/* Takes the same time wherever they differ: the result may depend on a secret key. */
static bool same_octets(const uint8_t *a, const uint8_t *b, size_t n)
{
    unsigned diff = 0;

    while (n--) {
        diff |= *a++ ^ *b++;
    }
    return !diff;
}

/* The hash differs from the expected one. */
static enum sg_exec_result poison(const struct turn *t)
{
    struct sg_mpe_target *x = t->x;
    unsigned n;

    for (n = 0; t->mr->pm && x->off < x->length; n++) {
        struct sg_pm_run run = next_run(t, POISON_MAX);

        if (n == TURN_RUNS || (n && sg_turn_over(t->a))) {
            return go_on(t);
        }
        t->a->executed += RUN_WORK;
        if (run.pm) {
            t->a->host.ops->pm_poison(t->a->host.opaque, run.bus, run.len);
        }
        x->off += run.len;
    }
    return SG_EXEC_FAILED;
}

static enum sg_exec_result run_verify(const struct turn *t)
{
    uint32_t left = t->mr->hash_alg == SG_HASH_CRC32C ? TURN_HASH_CRC : TURN_HASH;
    struct sg_mpe_target *x = t->x;
    bool begun = false;

    if (x->poisoning) {
        return poison(t);
    }
    if (!x->hasher) {
        x->hasher = sg_account_new(&t->a->account, sizeof(*x->hasher));
        if (!x->hasher) {
            return SG_EXEC_FAILED;
        }
        sg_hasher_init(x->hasher, t->mr->hash_alg, t->mr->hash_key, t->mr->hash_key_len);
    }
    while (x->off < x->length) {
        struct sg_pm_run run;

        if (!left || (begun && sg_turn_over(t->a))) {
            return go_on(t);
        }
        begun = true;
        run = next_run(t, SG_MIN(left, (uint32_t)SG_HASH_PIECE));
        if (!read_run(t, &run, t->a->hash_piece)) {
            return SG_EXEC_FAILED;
        }
        sg_hasher_add(x->hasher, t->a->hash_piece, run.len);
        x->off += run.len;
        left -= (uint32_t)run.len;
        t->a->executed += run.len;
    }
    *t->hash_len = (uint8_t)sg_hasher_end(x->hasher, t->hash);
    sg_account_free(&t->a->account, x->hasher, sizeof(*x->hasher));
    x->hasher = NULL;
    if (!t->r->args.hash.len || (t->r->args.hash.len == *t->hash_len &&
                                 same_octets(t->r->args.hash.octets, t->hash, *t->hash_len))) {
        return SG_EXEC_DONE;
    }
    sg_log(&t->a->host, SG_LOG_PEER_ERROR, "qp %u: Verify of STag 0x%08x: the hash differs",
           t->qp->qpn, t->r->stag);
    x->poisoning = true;
    x->off = 0;
    return poison(t);
}

static void observe_verify(const struct turn *t, enum sg_exec_result res)
{
    const struct sg_host *host = &t->a->host;
    const struct sg_mpe_target *x = t->x;
    struct sg_pm_run first = { 0 };

    if (!host->ops->observe || !t->mr->pm) {
        return;
    }
    if (x->length) {
        first = sg_pm_run(t->a, t->mr, x->to, x->length);
    }
    host->ops->observe(host->opaque, &(const struct sg_observed){
                                         .kind = SG_OBSERVED_VERIFIED,
                                         .qpn = t->qp->qpn,
                                         .msn = t->r->msn,
                                         .ordinal = t->qp->mem.ordinal,
                                         .to = x->to,
                                         .length = x->length,
                                         .addr = first.bus,
                                         .status = res != SG_EXEC_DONE,
                                         .opcode = t->mr->hash_alg,
                                         .hash = t->r->args.hash.octets,
                                         .hash_len = t->r->args.hash.len,
                                     });
}

/* ---- Atomic Write ---- */

static enum sg_exec_result run_atomic_write(const struct turn *t)
{
    const struct sg_host *host = &t->a->host;
    const struct sg_mpe_req *r = t->r;
    enum sg_exec_result res = pages(t, r->to, sizeof(uint64_t), true);
    struct sg_pm_run run;
    const struct sg_pm_who who = {
        .qpn = t->qp->qpn,
        .msn = r->msn,
        .to = r->to,
        .mode = t->mr->mode,
        .ordinal = t->qp->mem.ordinal,
    };
    bool ok;

    if (res != SG_EXEC_DONE) {
        return res;
    }
    run = sg_pm_run(t->a, t->mr, r->to, sizeof(uint64_t));
    if (!sg_is_aligned(run.bus, sizeof(uint64_t)) || run.len != sizeof(uint64_t)) {
        return SG_EXEC_UNALIGNED;
    }
    sg_pm_milestone(&t->qp->mem, r->msn, who.ordinal, r->to, SG_PM_BEFORE_ATOMIC_WRITE);
    ok = run.pm ? host->ops->pm_store(host->opaque, &who, run.bus, r->args.atom)
                : host->ops->dma_store64(host->opaque, run.bus, sg_get_le64(r->args.atom));
    if (!ok) {
        return SG_EXEC_FAILED;
    }
    sg_pm_milestone(&t->qp->mem, r->msn, who.ordinal, r->to, SG_PM_AFTER_ATOMIC_WRITE);
    t->mr->counters.remote_writes++;
    return SG_EXEC_DONE;
}

/* ---- common ---- */

static uint32_t flush_rights(const struct sg_mpe_req *r)
{
    return (r->args.flags & SG_FLUSH_PERSISTENT ? SG_ACCESS_FLUSH_PERSISTENT : 0) |
           (r->args.flags & SG_FLUSH_GLOBAL ? SG_ACCESS_FLUSH_GLOBAL : 0);
}

/* Checks the request and sets *mr to the region. */
static enum sg_mem_status admit(struct sg_qp *qp, const struct sg_mpe_req *r, bool whole,
                                struct sg_mr **mr)
{
    uint32_t rights = r->kind == SG_MSG_FLUSH    ? flush_rights(r)
                      : r->kind == SG_MSG_VERIFY ? SG_ACCESS_VERIFY
                                                 : SG_ACCESS_REMOTE_WRITE;
    uint64_t len = r->kind == SG_MSG_ATOMIC_WRITE ? sizeof(uint64_t) : r->length;
    enum sg_mem_status st;

    st = sg_tpt_check_mpe(&qp->mem, r->stag, rights ? rights : SG_ACCESS_FLUSH, !rights, mr);
    return st != SG_MEM_OK || whole ? st : sg_mr_check_range(*mr, r->to, len);
}

/* The first turn of a request. */
static void begin(struct sg_cm *cm, const struct sg_mpe_req *r, bool whole, const struct sg_mr *mr)
{
    struct sg_mpe_target *x = &cm->mpe;

    sg_mpe_target_drop(cm);
    x->serial = mr->serial;
    x->to = whole ? mr->base : r->to;
    x->length = whole ? mr->length : r->length;
    sg_pm_complete_writes(&cm->qp->mem);
}

enum sg_exec_result sg_mpe_target_run(struct sg_cm *cm, const struct sg_mpe_req *r,
                                      uint8_t hash[64], uint8_t *hash_len, enum sg_mem_status *why,
                                      uint64_t *token, uint64_t *again_ns)
{
    static enum sg_exec_result (*const runs[])(const struct turn *t) = {
        [SG_MSG_FLUSH] = run_flush,
        [SG_MSG_VERIFY] = run_verify,
        [SG_MSG_ATOMIC_WRITE] = run_atomic_write,
    };
    struct sg_qp *qp = cm->qp;
    struct turn t = {
        .qp = qp,
        .a = cm->adapter,
        .r = r,
        .x = &cm->mpe,
        .hash = hash,
        .hash_len = hash_len,
        .again_ns = again_ns,
    };
    bool whole = r->kind == SG_MSG_FLUSH && r->args.flags & SG_FLUSH_REGION &&
                 t.a->config.engine.mpe_draft == SG_MPE_DRAFT_02;
    enum sg_exec_result res;

    *hash_len = 0;
    *why = admit(qp, r, whole, &t.mr);
    if (*why == SG_MEM_OK && *token && t.mr->serial != t.x->serial) {
        *why = SG_MEM_STAG; /* the STag names another region now */
    }
    if (*why != SG_MEM_OK) {
        sg_mpe_target_drop(cm);
        return SG_EXEC_MEM;
    }
    if (!*token) {
        begin(cm, r, whole, t.mr);
        *token = 1;
    }
    res = runs[r->kind](&t);
    if (res != SG_EXEC_LATER) {
        qp->counters.rx_requests++;
        if (r->kind == SG_MSG_VERIFY) {
            observe_verify(&t, res);
        }
        sg_mpe_target_drop(cm);
    }
    return res;
}
