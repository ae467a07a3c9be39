/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inputs of a persistence domain as events of a trace.
 *
 * Whoever calls a domain and records it writes the event of an input when the call returns, and
 * before the next one; if a cut came due in the call, SG_TRACE_FREEZE follows the event.  A Flush
 * has its beginning before the first call, and its end after the call that ends it
 * (sg_crash_flush_ends()).  Inputs are recorded whether or not the domain found something to do;
 * those that concern other memory are left out.  A store, or a write of another device, that was
 * announced by sg_persist_will_change() has SG_PERSIST_STORE_ANNOUNCED in its argument.
 */
#ifndef SG_CRASH_RECORD_H
#define SG_CRASH_RECORD_H

#include "persist/persist.h"
#include "trace/writer.h"

/* The event with the fields that an input has from its source and its range. */
static inline struct sg_trace_event sg_crash_event(enum sg_trace_kind kind,
                                                   const struct sg_persist_source *source,
                                                   uint64_t addr, uint64_t len)
{
    return (struct sg_trace_event){
        .kind = kind,
        .unit = source->unit,
        .qpn = source->qpn,
        .msn = source->msn,
        .at = source->at,
        .arg = source->agent == SG_PERSIST_ADAPTER ? source->mode : 0,
        .addr = addr,
        .len = len,
    };
}

/* Status of SG_TRACE_FLUSH_END. */
enum sg_crash_flush_status {
    SG_CRASH_FLUSH_DONE,
    SG_CRASH_FLUSH_FAILED,
    SG_CRASH_FLUSH_SILENT, /* executed, but the power failed before the answer */
};

/* Did this call of sg_persist_flush() end the Flush?  Its status is in *status then. */
static inline bool sg_crash_flush_ends(const struct sg_pm_op *op, enum sg_pm_result result,
                                       uint64_t *status)
{
    *status = result == SG_PM_DONE     ? SG_CRASH_FLUSH_DONE
              : result == SG_PM_FAILED ? SG_CRASH_FLUSH_FAILED
                                       : SG_CRASH_FLUSH_SILENT;
    return result != SG_PM_LATER || op->phase == SG_PM_NEW;
}

/* The event of a cut by this policy. */
static inline struct sg_trace_event sg_crash_cut_event(const struct sg_persist_policy *policy)
{
    return (struct sg_trace_event){
        .kind = SG_TRACE_CUT,
        .arg = policy->outcome,
        .value = policy->seed,
        .addr = policy->addr,
        .len = policy->len,
    };
}

/*
 * What an adapter's connections did.  The caller sets unit, and addr of a Verify; data is valid as
 * long as in the argument.
 */
static inline struct sg_trace_event sg_crash_observed(const struct sg_observed *o)
{
    static const uint8_t kinds[SG_OBSERVED_KINDS] = {
        [SG_OBSERVED_CONNECTED] = SG_TRACE_CONNECTED, [SG_OBSERVED_GONE] = SG_TRACE_DISCONNECTED,
        [SG_OBSERVED_WORK] = SG_TRACE_WORK,           [SG_OBSERVED_COMPLETED] = SG_TRACE_COMPLETED,
        [SG_OBSERVED_ANSWERED] = SG_TRACE_ANSWERED,   [SG_OBSERVED_VERIFIED] = SG_TRACE_VERIFY,
    };
    struct sg_trace_event e = {
        .kind = kinds[o->kind],
        .qpn = o->qpn,
        .msn = o->msn,
        .arg = o->opcode,
        .status = o->status,
        .stag = o->stag,
        .at = o->to,
        .len = o->length,
        .value = o->wr_id,
        .ordinal = o->ordinal,
    };

    if (o->kind == SG_OBSERVED_CONNECTED) {
        e.arg = o->passive;
        e.len = SG_OBSERVED_ADDRESSES;
        e.data = o->addresses;
    } else if (o->kind == SG_OBSERVED_ANSWERED) {
        e.value = o->response;
    } else if (o->kind == SG_OBSERVED_VERIFIED) {
        e.value = o->length;
        e.len = o->hash_len;
        e.data = o->hash;
    }
    return e;
}

/* The event that gives an extent these faults. */
static inline struct sg_trace_event sg_crash_faults_event(unsigned extent,
                                                          const struct sg_persist_faults *f)
{
    return (struct sg_trace_event){
        .kind = SG_TRACE_FAULTS,
        .unit = extent,
        .arg = f->read_only | f->flush_fails_always << 1 | f->wears_out << 2,
        .value = f->lines_left,
        .swap = f->flush_fails,
    };
}

#endif
