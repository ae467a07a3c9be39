/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: where visible memory and the media are one, and the write-back after a cut.
 *
 * In the domains eadr and whole everything visible survives, so visible memory may as well
 * be the media: then it is a shared mapping of the file, a cut has nothing to copy, and a killed
 * process leaves what a cut would.  (Except what adapters have placed and nobody can see yet.)
 * Two memories are still needed while CPUs are tracked, because stores in their buffers may be
 * lost, and while media fail, because refused and unreadable lines show as a difference.
 *
 * Mappings change with the vCPUs stopped, after everything visible has reached the media.  The
 * addresses stay, so nobody else notices.
 *
 * In the domains none and adr with untracked=keep a cut leaves the changes of CPUs in visible
 * memory (report.stays).  Afterwards a timer writes them to the media piece by piece.  They are
 * written at once when the configuration changes, which could change their fate, or QEMU ends.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/madvise.h"
#include "qemu/units.h"
#include "system/cpus.h"
#include "system/runstate.h"
#include "domain_object.h"
#include "recorder.h"

enum {
    BACK_STEP = 4 * MiB,
    BACK_MS = 5,
};

/* ---- one mapping or two ---- */

static bool may_merge(StaghornDomain *d)
{
    struct sg_persist_faults faults;
    struct sg_persist_bad bad;

    if (d->rewind) {
        return false; /* the media are private, too */
    }
    for (unsigned i = 0; i < d->dimms; i++) {
        sg_persist_get_faults(d->model, d->dimm[i].extent, &faults);
        if (faults.read_only || faults.wears_out) {
            return false;
        }
    }
    return d->config.domain >= SG_PERSIST_EADR && !d->config.cpu_tracking &&
           !sg_persist_bad_range(d->model, 0, &bad);
}

static void map(StaghornDimm *dimm, bool merged)
{
    if (mmap(dimm->visible, dimm->size, PROT_READ | PROT_WRITE,
             MAP_FIXED | (merged ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE), dimm->file,
             dimm->file_offset) == MAP_FAILED) {
        error_report("NVDIMM of %s: cannot map its file anew: %s", dimm->name, strerror(errno));
        abort(); /* the old mapping may be gone */
    }
    qemu_madvise(dimm->visible, dimm->size, QEMU_MADV_DONTFORK);
    dimm->merged = merged;
}

void staghorn_map_update(StaghornDomain *d)
{
    bool running = runstate_is_running(), merge;

    if (!d->back_timer || qatomic_read(&d->powered_off)) {
        return; /* deferred */
    }
    merge = may_merge(d);
    if (!d->dimms || merge == d->dimm[0].merged) {
        return;
    }
    if (running) {
        pause_all_vcpus();
    }
    if (qatomic_read(&d->powered_off)) {
        return; /* a vCPU met an armed cut before it stopped: the reset calls here and resumes */
    }
    staghorn_domain_orderly(d);
    for (unsigned i = 0; i < d->dimms; i++) {
        map(&d->dimm[i], merge);
    }
    if (running) {
        resume_all_vcpus();
    }
}

/* ---- write-back ---- */

/* One step; false: it was the last. */
static bool write_back_step(StaghornDomain *d)
{
    StaghornDimm *dimm = &d->dimm[d->back_dimm];
    uint64_t len = MIN(BACK_STEP, dimm->size - d->back_offset);

    staghorn_pages_sync(d);
    staghorn_domain_enter(d);
    d->sweep_end = d->back_offset + len;
    sg_persist_write_back(d->model, dimm->base + d->back_offset, len);
    if (staghorn_recording) {
        staghorn_record(&(struct sg_trace_event){
            .kind = SG_TRACE_WRITE_BACK,
            .addr = dimm->base + d->back_offset,
            .len = len,
        });
    }
    d->sweep_end = UINT64_MAX;
    staghorn_domain_leave(d);
    d->back_offset += len;
    if (d->back_offset == dimm->size) {
        d->back_offset = 0;
        d->back_dimm++;
    }
    return d->back_dimm < d->dimms;
}

static void write_back_some(void *opaque)
{
    StaghornDomain *d = opaque;

    if (!d->owing) {
        return;
    }
    if (qatomic_read(&d->powered_off)) {
        d->owing = false; /* another cut: start again */
        return;
    }
    d->owing = write_back_step(d);
    if (d->owing) {
        timer_mod(d->back_timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + BACK_MS);
    }
}

void staghorn_map_owe(StaghornDomain *d)
{
    d->owing = true;
    d->back_dimm = 0;
    d->back_offset = 0;
    timer_mod(d->back_timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + BACK_MS);
}

void staghorn_map_write_back(StaghornDomain *d)
{
    while (d->owing && write_back_step(d)) {
    }
    d->owing = false;
}

bool staghorn_map_init(StaghornDomain *d, Error **errp)
{
    d->back_timer = timer_new_ms(QEMU_CLOCK_REALTIME, write_back_some, d);
    staghorn_map_update(d);
    return true;
}
