/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: loads of CPUs from persistent memory, and what every event of a CPU has.
 *
 * Our patch to QEMU (exec/load-track.h) watches loads from chosen pages: those with bad lines,
 * where a load may end in a machine check (domain_mce.c), and all of them while a recording runs
 * or while it is noted which lines are loaded (rewind_reads.c).
 *
 * A load proves that what it read had left whoever wrote it.  Most loads prove nothing new
 * (recorder_loads.c), and are not held up.  One that may prove something is done again under the
 * domain's lock, and recorded there, between exactly those changes of memory that it saw and those
 * that it did not.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/cpu-common.h"
#include "exec/cputlb.h"
#include "exec/load-track.h"
#include "hw/core/cpu.h"
#include "cpu_reads.h"
#include "cpu_track.h"

#define PAGE_TABLES 0x000ffffffffff000ull /* of CR3 */

static bool watching_bad;

uint64_t staghorn_cpu_pc(CPUState *cpu)
{
    const CPUX86State *env = cpu_env(cpu);

    return env->eip + env->segs[R_CS].base;
}

uint64_t staghorn_cpu_root(CPUState *cpu)
{
    return cpu_env(cpu)->cr[3] & PAGE_TABLES;
}

struct sg_trace_event staghorn_cpu_event(CPUState *cpu, enum sg_trace_kind kind,
                                         const struct sg_persist_source *source)
{
    return (struct sg_trace_event){
        .kind = kind,
        .unit = source->unit,
        .at = source->at,
        .root = staghorn_cpu_root(cpu),
    };
}

void staghorn_cpu_loaded(CPUState *cpu, const struct sg_persist_source *source, uint64_t addr,
                         unsigned len)
{
    struct sg_trace_event e = staghorn_cpu_event(cpu, SG_TRACE_LOAD, source);

    e.addr = addr;
    e.len = len;
    staghorn_record(&e);
    staghorn_record_loaded(cpu->cpu_index, addr, len);
}

static StaghornDomain *recorded_domain(void)
{
    StaghornDomain *d = staghorn_recording ? staghorn_domain() : NULL;

    return d && d->model ? d : NULL;
}

static bool load_wants(const void *host)
{
    StaghornDomain *d = staghorn_reads_noted ? staghorn_domain() : recorded_domain();

    return (d && staghorn_dimm_of(d, host)) ||
           (watching_bad && staghorn_bad_ranges_in_page(staghorn_domain(), host));
}

static void load_comes(CPUState *cpu, const void *host, unsigned size, uintptr_t ra)
{
    if (unlikely(staghorn_reads_noted)) {
        staghorn_reads_note(host, size);
    }
    if (watching_bad && staghorn_bad_ranges_in_page(staghorn_domain(), host)) {
        staghorn_mce_load(cpu, host, size, ra);
    }
}

static bool load_asks(CPUState *cpu, const void *host, unsigned size)
{
    StaghornDomain *d = recorded_domain();
    const StaghornDimm *dimm = d ? staghorn_dimm_of(d, host) : NULL;

    return dimm &&
           staghorn_record_wants_load(cpu->cpu_index, staghorn_dimm_address(dimm, host), size);
}

static void load_begin(CPUState *cpu)
{
    staghorn_domain_lock(&staghorn_domain()->lock);
}

static void load_end(CPUState *cpu, const void *host, unsigned size, uintptr_t ra)
{
    const StaghornDimm *dimm = staghorn_dimm_of(staghorn_domain(), host);
    struct sg_persist_source source = staghorn_cpu_source(cpu, ra);

    staghorn_cpu_loaded(cpu, &source, staghorn_dimm_address(dimm, host), size);
}

static void load_done(CPUState *cpu)
{
    staghorn_domain_unlock(&staghorn_domain()->lock);
}

static const CPULoadTrack track = {
    .wants = load_wants,
    .load = load_comes,
    .asks = load_asks,
    .begin = load_begin,
    .end = load_end,
    .done = load_done,
};

void staghorn_cpu_loads_switch(void)
{
    cpu_load_track = watching_bad || staghorn_reads_noted || recorded_domain() ? &track : NULL;
}

/* ---- bad lines ---- */

static void watch_bad(CPUState *cpu, run_on_cpu_data unused)
{
    watching_bad = true;
    staghorn_cpu_loads_switch();
    tlb_flush_all_cpus_synced(cpu);
}

static void nothing(CPUState *cpu, run_on_cpu_data unused)
{
}

void staghorn_cpu_loads_watch_bad(void)
{
    async_safe_run_on_cpu(first_cpu, watch_bad, RUN_ON_CPU_NULL);
    if (first_cpu->created) {
        run_on_cpu(first_cpu, nothing, RUN_ON_CPU_NULL);
    }
}

/* ---- what is loaded ---- */

static void watch_reads(CPUState *cpu, run_on_cpu_data on)
{
    staghorn_reads_noted = on.host_int;
    staghorn_cpu_loads_switch();
    tlb_flush_all_cpus_synced(cpu);
}

void staghorn_cpu_loads_watch_reads(bool on)
{
    async_safe_run_on_cpu(first_cpu, watch_reads, RUN_ON_CPU_HOST_INT(on));
    run_on_cpu(first_cpu, nothing, RUN_ON_CPU_NULL);
}
