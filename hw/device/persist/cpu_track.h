/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files about CPUs share.
 *
 * cpu_track.c   stores, flushes and fences, for the model and for a recording
 * cpu_loads.c   loads, for bad lines, for a recording, and to note them (cpu_reads.h)
 * cpu_marks.c   marks of programs, for a recording only
 *
 * TCG only.  All of it runs in vCPU threads, without QEMU's big lock, except for the switching.
 */
#ifndef SG_DEVICE_CPU_TRACK_H
#define SG_DEVICE_CPU_TRACK_H

#include "domain_object.h"
#include "recorder.h"

/* The instruction of the vCPU whose translated code has ra. */
struct sg_persist_source staghorn_cpu_source(CPUState *cpu, uintptr_t ra);
/* As cc->get_pc(), without its checked cast: the linear address of the block that is executed. */
uint64_t staghorn_cpu_pc(CPUState *cpu);
/* Address of the vCPU's page tables. */
uint64_t staghorn_cpu_root(CPUState *cpu);
/* The event with what it has from the vCPU: unit, program counter, page tables. */
struct sg_trace_event staghorn_cpu_event(CPUState *cpu, enum sg_trace_kind kind,
                                         const struct sg_persist_source *source);

/* The NVDIMM with this octet of the host's memory, or NULL. */
static inline const StaghornDimm *staghorn_dimm_of(const StaghornDomain *d, const void *host)
{
    for (const StaghornDimm *dimm = d->dimm; dimm < d->dimm + d->dimms; dimm++) {
        if ((uintptr_t)host - (uintptr_t)dimm->visible < dimm->size) {
            return dimm;
        }
    }
    return NULL;
}

/* The machine's address of an octet of the NVDIMM. */
static inline uint64_t staghorn_dimm_address(const StaghornDimm *dimm, const void *host)
{
    return dimm->base + ((uintptr_t)host - (uintptr_t)dimm->visible);
}

/* A load by the vCPU is recorded; domain's lock. */
void staghorn_cpu_loaded(CPUState *cpu, const struct sg_persist_source *source, uint64_t addr,
                         unsigned len);

/*
 * A recording begins or has ended, or bad lines are to be watched from now on: which loads are
 * watched.  In a vCPU's thread, the others stopped; the caller flushes all TLBs.
 */
void staghorn_cpu_loads_switch(void);
/* Loads of bad lines are watched from now on. */
void staghorn_cpu_loads_watch_bad(void);
/* Loads are noted, or not any more (cpu_reads.h). */
void staghorn_cpu_loads_watch_reads(bool on);
/* A recording begins or has ended; likewise, and the caller flushes translated code. */
void staghorn_cpu_marks_switch(bool on);

#endif
