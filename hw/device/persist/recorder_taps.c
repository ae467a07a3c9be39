/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder: what adapters and the port report.
 *
 * Both are under the big lock.  Their events are no inputs of the model, but have a place between
 * inputs, so where there is a domain they are recorded under its lock as well.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "base/crc32c.h"
#include "machine_clock.h"
#include "recorder_impl.h"
#include "staghorn.h"

void staghorn_record_outside(StaghornState *s, struct sg_trace_event *e)
{
    bool domain = s->domain && s->domain->model;

    e->unit = s->pm_unit;
    if (domain) {
        staghorn_domain_enter(s->domain);
    } else {
        staghorn_record_time(staghorn_clock_ns());
    }
    staghorn_record(e);
    if (domain) {
        staghorn_domain_leave(s->domain);
    }
}

void staghorn_record_frame(StaghornState *s, const struct iovec *iov, unsigned n, bool sent)
{
    struct sg_trace_event e = { .kind = SG_TRACE_FRAME, .arg = sent };
    uint32_t crc = 0;

    for (unsigned i = 0; i < n; i++) {
        crc = sg_crc32c(crc, iov[i].iov_base, iov[i].iov_len);
        e.len += iov[i].iov_len;
    }
    e.value = crc;
    staghorn_record_outside(s, &e);
}

/* ---- What connections do ---- */

static const uint8_t kinds[SG_OBSERVED_KINDS] = {
    [SG_OBSERVED_CONNECTED] = SG_TRACE_CONNECTED, [SG_OBSERVED_GONE] = SG_TRACE_DISCONNECTED,
    [SG_OBSERVED_WORK] = SG_TRACE_WORK,           [SG_OBSERVED_COMPLETED] = SG_TRACE_COMPLETED,
    [SG_OBSERVED_ANSWERED] = SG_TRACE_ANSWERED,   [SG_OBSERVED_VERIFIED] = SG_TRACE_VERIFY,
};

/* Fields that an event of the kind does not have are not written. */
void staghorn_observe(void *host, const struct sg_observed *o)
{
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
    } else if (o->kind == SG_OBSERVED_VERIFIED) {
        if (!staghorn_pm_find(host, o->addr, o->length, &e.addr)) {
            return; /* it reads other memory */
        }
        e.value = o->length;
        e.len = o->hash_len;
        e.data = o->hash;
    }
    staghorn_record_outside(host, &e);
}

void staghorn_taps_switch(bool on)
{
    StaghornState *s;

    QLIST_FOREACH(s, staghorn_adapters(), next) {
        s->ops.observe = on ? staghorn_observe : NULL;
        if (on && s->adapter) {
            sg_adapter_observe_all(s->adapter);
        }
    }
}
