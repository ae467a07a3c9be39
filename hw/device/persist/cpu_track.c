/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: reports each access of CPUs to persistent memory to the model (cpu-tracking=on).
 *
 * TCG only: our patch to QEMU (exec/store-track.h) sends every store to pages of ours through
 * begin() and end(), and every CLWB, CLFLUSHOPT, CLFLUSH, SFENCE, MFENCE and locked instruction
 * through flush() and fence().  Stores to all other memory, and all loads, never come here.
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
 * others end there, without the lock.  Each entry belongs to its vCPU's thread.
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
#include "domain_object.h"

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
static uint64_t stored_at; /* the machine's address of a store that has begun; domain's lock */

/* The NVDIMM with this octet, or NULL. */
static inline const StaghornDimm *dimm_of(const void *host)
{
    for (const StaghornDimm *dimm = domain->dimm; dimm < domain->dimm + domain->dimms; dimm++) {
        if ((uintptr_t)host - (uintptr_t)dimm->visible < dimm->size) {
            return dimm;
        }
    }
    return NULL;
}

/* The machine's address of an octet of the NVDIMM. */
static inline uint64_t address_of(const StaghornDimm *dimm, const void *host)
{
    return dimm->base + ((uintptr_t)host - (uintptr_t)dimm->visible);
}

static bool track_wants(const void *host)
{
    return dimm_of(host) != NULL;
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
    uint64_t pc = cpu->cc->get_pc(cpu);
    Place *place;

    if (!ra) {
        return pc;
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

/* The store is announced: what it overwrites may be a device's, with a fate of its own. */
static void track_begin(CPUState *cpu, const void *host, unsigned size)
{
    busy[cpu->cpu_index] = true;
    staghorn_domain_lock(&domain->lock);
    stored_at = address_of(dimm_of(host), host);
    sg_persist_will_change(domain->model, stored_at, size);
}

static void track_end(CPUState *cpu, const void *host, unsigned size, bool nontemporal,
                      uintptr_t ra)
{
    struct sg_persist_source source = source_of(cpu, ra);

    sg_persist_cpu_store(domain->model, &source, stored_at, host, size,
                         nontemporal ? SG_PERSIST_STORE_NT : 0);
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
    const StaghornDimm *dimm = dimm_of(host);

    if (dimm) {
        struct sg_persist_source source = source_of(cpu, ra);

        busy[cpu->cpu_index] = true;
        staghorn_domain_lock(&domain->lock);
        sg_persist_cpu_flush(domain->model, &source, address_of(dimm, host), model_kind[kind]);
        staghorn_domain_unlock(&domain->lock);
    }
}

static void track_fence(CPUState *cpu, CPUFence kind, uintptr_t ra)
{
    static const uint8_t model_kind[] = {
        [CPU_SFENCE] = SG_PERSIST_SFENCE,
        [CPU_MFENCE] = SG_PERSIST_MFENCE,
        [CPU_LOCKED] = SG_PERSIST_LOCKED,
    };
    struct sg_persist_source source;

    if (likely(!busy[cpu->cpu_index])) {
        return;
    }
    busy[cpu->cpu_index] = false;
    source = source_of(cpu, ra);
    staghorn_domain_lock(&domain->lock);
    sg_persist_cpu_fence(domain->model, &source, model_kind[kind]);
    staghorn_domain_unlock(&domain->lock);
}

/*
 * A device that a vCPU writes to may learn of everything that it stored before, and of other
 * vCPUs' stores that it has seen: store buffers drain.
 */
static void track_tell(CPUState *cpu)
{
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
}

type_init(register_cpu_track)
