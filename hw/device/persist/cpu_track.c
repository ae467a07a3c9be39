/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: reports each access of CPUs to persistent memory to the model (cpu-tracking=on).
 *
 * TCG only: our patch to QEMU (exec/store-track.h) sends every store to pages of ours through
 * begin() and end(), and every CLWB, CLFLUSHOPT, CLFLUSH, SFENCE, MFENCE and locked instruction
 * through flush() and fence().  Stores to all other memory, and all loads, never come here.  What
 * the model is told goes to a recording as well, if one runs (recorder.h).
 * docs/decisions/0007-cpu-tracking.md has the alternatives and the numbers.
 *
 * Order.  The domain's lock is taken before a store changes memory and released when the model
 * knows of it.  So the model learns of stores in the order in which memory changes, over all vCPUs
 * and adapters; a reaction to the effect of a store is always reported later.  While it has
 * the lock, the vCPU changes RAM and does nothing else: of a store that reaches into a device's
 * page only the part in RAM is tracked, and whatever makes QEMU leave an instruction in its middle
 * comes before begin().
 *
 * Fences are frequent (each locked instruction of the guest is one) and mostly have nothing to do.
 * busy[] records which vCPUs accessed persistent memory since their last fence; the fences of the
 * others end there, without the lock.  Each entry belongs to its vCPU's thread.  Nor does a
 * recording need them, whatever a platform holds back: a vCPU's fence concerns only what that vCPU
 * stored and flushed since its last one.  WBINVD concerns what all of them did.
 *
 * A locked instruction is a fence before its own store and after it: its store never waits in the
 * store buffer.
 *
 * Program counters.  A store is identified by its place in translated code.  Finding the guest's
 * instruction takes a search in QEMU's tables, so each vCPU caches the results of recent searches.
 * Translations are relative to their page: a place has an offset in a page, the page is in the
 * vCPU's state.  When QEMU discards its translations, places are reused: hence the epoch.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/accel.h"
#include "qemu/module.h"
#include "accel/tcg/tb-context.h"
#include "exec/cpu-common.h"
#include "exec/cputlb.h"
#include "exec/store-track.h"
#include "exec/tb-flush.h"
#include "hw/boards.h"
#include "hw/core/cpu.h"
#include "system/tcg.h"
#include "cpu_reads.h"
#include "cpu_track.h"

enum {
    PLACES = 512,      /* remembered by each vCPU; a power of two */
    GUEST_PAGE = 4096, /* translations are relative to such */
    UNWIND_WORDS = 4,  /* of QEMU's unwind data, at least */
};

/* The offset in its page of the code at ra. */
typedef struct Place {
    uintptr_t ra;
    unsigned epoch;
    unsigned offset;
} Place;

static StaghornDomain *domain; /* whose memory is tracked, or was tracked last */
static bool busy[SG_PERSIST_VCPUS];
static Place *places[SG_PERSIST_VCPUS];

/* Of the store that has begun: domain's lock. */
static uint64_t stored_at;      /* the machine's address */
static bool store_proves_loads; /* for a recording, if it loads as well */

static bool told; /* devices, of all stores so far */

static bool track_wants(const void *host)
{
    return staghorn_dimm_of(domain, host) != NULL;
}

static void find_place(CPUState *cpu, Place *place, uintptr_t ra)
{
    uint64_t data[UNWIND_WORDS];

    place->ra = ra;
    place->epoch = qatomic_read(&tb_ctx.tb_flush_count);
    place->offset = 0;
    if (cpu_unwind_state_data(cpu, ra, data)) {
        place->offset = data[0] % GUEST_PAGE;
    }
}

/* The linear address of the instruction whose translated code has ra. */
static uint64_t program_counter(CPUState *cpu, uintptr_t ra)
{
    uint64_t pc = staghorn_cpu_pc(cpu);
    Place *place;

    if (!ra) {
        return pc;
    }
    if (unlikely(cpu->cpu_index >= SG_PERSIST_VCPUS)) { /* a machine without a domain */
        Place here;

        find_place(cpu, &here, ra);
        return pc / GUEST_PAGE * GUEST_PAGE + here.offset;
    }
    if (unlikely(!places[cpu->cpu_index])) {
        places[cpu->cpu_index] = g_new0(Place, PLACES);
    }
    place = &places[cpu->cpu_index][(ra ^ ra >> 9) % PLACES];
    if (unlikely(place->ra != ra || place->epoch != qatomic_read(&tb_ctx.tb_flush_count))) {
        find_place(cpu, place, ra);
    }
    return pc / GUEST_PAGE * GUEST_PAGE + place->offset;
}

static inline struct sg_persist_source source_of(CPUState *cpu, uintptr_t ra)
{
    return (struct sg_persist_source){
        .agent = SG_PERSIST_CPU,
        .unit = cpu->cpu_index,
        .at = program_counter(cpu, ra),
    };
}

struct sg_persist_source staghorn_cpu_source(CPUState *cpu, uintptr_t ra)
{
    return source_of(cpu, ra);
}

/* ---- for a recording ---- */

static void record_store(CPUState *cpu, const struct sg_persist_source *source, const void *host,
                         unsigned size, unsigned flags)
{
    struct sg_trace_store s = {
        .addr = stored_at,
        .at = source->at,
        .root = staghorn_cpu_root(cpu),
        .data = host,
        .unit = source->unit,
        .len = size,
        .arg = flags | SG_PERSIST_STORE_ANNOUNCED,
    };

    staghorn_record_store(&s);
    told = false;
}

static void record_flush(CPUState *cpu, const struct sg_persist_source *source, uint64_t addr,
                         enum sg_persist_cpu_flush kind)
{
    struct sg_trace_event e = staghorn_cpu_event(cpu, SG_TRACE_CPU_FLUSH, source);

    e.addr = QEMU_ALIGN_DOWN(addr, SG_PERSIST_LINE);
    e.arg = kind;
    staghorn_record(&e);
    told = told && kind != SG_PERSIST_CLFLUSH;
}

/* ---- hooks ---- */

/* The store is announced: what it overwrites may be a device's, with a fate of its own. */
static void track_begin(CPUState *cpu, const void *host, unsigned size)
{
    busy[cpu->cpu_index] = true;
    staghorn_domain_lock(&domain->lock);
    stored_at = staghorn_dimm_address(staghorn_dimm_of(domain, host), host);
    sg_persist_will_change(domain->model, stored_at, size);
    if (unlikely(staghorn_recording)) {
        store_proves_loads = staghorn_record_will_change(cpu->cpu_index, stored_at, size);
    }
}

/* The domain's lock is held. */
static void fence(CPUState *cpu, const struct sg_persist_source *source,
                  enum sg_persist_cpu_fence kind)
{
    sg_persist_cpu_fence(domain->model, source, kind);
    if (unlikely(staghorn_recording)) {
        struct sg_trace_event e = staghorn_cpu_event(cpu, SG_TRACE_CPU_FENCE, source);

        e.arg = kind;
        staghorn_record(&e);
    }
    busy[cpu->cpu_index] = false;
}

static void track_end(CPUState *cpu, const void *host, unsigned size, unsigned kind, uintptr_t ra)
{
    struct sg_persist_source source = source_of(cpu, ra);
    unsigned flags = kind & CPU_STORE_NONTEMPORAL ? SG_PERSIST_STORE_NT : 0;

    sg_persist_cpu_store(domain->model, &source, stored_at, host, size, flags);
    if (unlikely(staghorn_recording)) {
        if (kind & CPU_STORE_LOCKED && store_proves_loads) {
            staghorn_cpu_loaded(cpu, &source, stored_at, size);
        }
        record_store(cpu, &source, host, size, flags);
    }
    if (kind & CPU_STORE_LOCKED && (domain->config.store_buffer || staghorn_recording)) {
        fence(cpu, &source, SG_PERSIST_LOCKED);
    }
}

static void track_done(CPUState *cpu)
{
    staghorn_domain_unlock(&domain->lock);
}

static void track_flush(CPUState *cpu, const void *host, CPULineFlush kind, uintptr_t ra)
{
    static const uint8_t model_kind[] = {
        [CPU_CLWB] = SG_PERSIST_CLWB,
        [CPU_CLFLUSHOPT] = SG_PERSIST_CLFLUSHOPT,
        [CPU_CLFLUSH] = SG_PERSIST_CLFLUSH,
    };
    const StaghornDimm *dimm = staghorn_dimm_of(domain, host);

    if (dimm) {
        struct sg_persist_source source = source_of(cpu, ra);
        uint64_t addr = staghorn_dimm_address(dimm, host);

        busy[cpu->cpu_index] = true;
        staghorn_domain_lock(&domain->lock);
        sg_persist_cpu_flush(domain->model, &source, addr, model_kind[kind]);
        if (unlikely(staghorn_recording)) {
            record_flush(cpu, &source, addr, model_kind[kind]);
        }
        staghorn_domain_unlock(&domain->lock);
    }
}

static void track_fence(CPUState *cpu, CPUFence kind, uintptr_t ra)
{
    static const uint8_t model_kind[] = {
        [CPU_SFENCE] = SG_PERSIST_SFENCE,
        [CPU_MFENCE] = SG_PERSIST_MFENCE,
        [CPU_LOCKED] = SG_PERSIST_LOCKED,
        [CPU_WBINVD] = SG_PERSIST_WBINVD,
    };
    struct sg_persist_source source;

    if (likely(!busy[cpu->cpu_index]) && kind != CPU_WBINVD) {
        return;
    }
    source = source_of(cpu, ra);
    staghorn_domain_lock(&domain->lock);
    fence(cpu, &source, model_kind[kind]);
    staghorn_domain_unlock(&domain->lock);
}

static void record_sync(CPUState *cpu, uintptr_t ra)
{
    struct sg_persist_source source = source_of(cpu, ra);
    struct sg_trace_event e = staghorn_cpu_event(cpu, SG_TRACE_CPU_SYNC, &source);

    staghorn_domain_lock(&domain->lock);
    if (!told) {
        sg_persist_cpu_sync(domain->model);
        staghorn_record(&e);
        told = true;
    }
    staghorn_domain_unlock(&domain->lock);
}

/*
 * A device that a vCPU writes to may learn of everything that it stored before, and of other
 * vCPUs' stores that it has seen: store buffers drain.  A recording has that once for each time
 * that there may be something in them.
 */
static void track_tell(CPUState *cpu, uintptr_t ra)
{
    if (unlikely(staghorn_recording) && !qatomic_read(&told)) {
        record_sync(cpu, ra);
    }
    staghorn_domain_sync(domain);
}

static const CPUStoreTrack track = {
    .wants = track_wants,
    .begin = track_begin,
    .end = track_end,
    .done = track_done,
    .flush = track_flush,
    .fence = track_fence,
    .tell = track_tell,
};

/* In a vCPU's thread, the others stopped: old translations lack our calls, or have too many. */
static void switch_over(CPUState *cpu, run_on_cpu_data on)
{
    cpu_store_track = on.host_int ? &track : NULL;
    tlb_flush_all_cpus_synced(cpu);
    tb_flush(cpu);
}

static void nothing(CPUState *cpu, run_on_cpu_data unused)
{
}

/* Work is done in the order of its requests; so wait for the second one only. */
static void switch_and_wait(bool on)
{
    async_safe_run_on_cpu(first_cpu, switch_over, RUN_ON_CPU_HOST_INT(on));
    run_on_cpu(first_cpu, nothing, RUN_ON_CPU_NULL);
}

/* ---- a recording begins or has ended ---- */

static void switch_recording(CPUState *cpu, run_on_cpu_data on)
{
    told = false;
    staghorn_cpu_loads_switch();
    staghorn_cpu_marks_switch(on.host_int);
    tlb_flush_all_cpus_synced(cpu);
    tb_flush(cpu);
}

static void recording_switched(bool on)
{
    if (tcg_enabled()) {
        async_safe_run_on_cpu(first_cpu, switch_recording, RUN_ON_CPU_HOST_INT(on));
        run_on_cpu(first_cpu, nothing, RUN_ON_CPU_NULL);
    }
}

static bool can_track(Error **errp)
{
    if (!tcg_enabled()) {
        error_setg(errp, "CPU stores are tracked with -accel tcg only, this is %s",
                   current_accel_name());
        return false;
    }
    if (current_machine->smp.max_cpus > SG_PERSIST_VCPUS) {
        error_setg(errp, "CPU stores are tracked for %d CPUs at most, this machine has %u",
                   SG_PERSIST_VCPUS, current_machine->smp.max_cpus);
        return false;
    }
    return true;
}

static bool watch_reads(bool on, Error **errp)
{
    if (!tcg_enabled()) {
        error_setg(errp, "loads of CPUs are noted with -accel tcg only, this is %s",
                   current_accel_name());
        return false;
    }
    staghorn_cpu_loads_watch_reads(on);
    return true;
}

static bool cpu_track(StaghornDomain *d, bool on, Error **errp)
{
    if (on && !can_track(errp)) {
        return false;
    }
    if (on) {
        domain = d;
    }
    if (tcg_enabled()) {
        switch_and_wait(on);
    }
    return true;
}

static void register_cpu_track(void)
{
    staghorn_cpu_track = cpu_track;
    staghorn_cpu_can_track = can_track;
    staghorn_cpu_watch_reads = watch_reads;
    staghorn_record_switched = recording_switched;
}

type_init(register_cpu_track)
