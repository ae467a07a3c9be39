/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: what depends on the processors, for targets other than x86.
 *
 * The adapter does not depend on them: it sees PCI and the machine's memory, and all that it has
 * there is little-endian.  A persistence domain does.  It follows stores, cache flushes and fences
 * through QEMU's translator, and reports unreadable lines by machine checks; all of these are x86's
 * (cpu_track.c, cpu_loads.c, domain_mce.c).  So machines with other processors have no domain, and
 * what only a domain calls is never called here.
 *
 * Reports of the driver checker name the instruction here as well, but not its callers.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/cpu-common.h"
#include "exec/translation-block.h"
#include "hw/core/cpu.h"
#include "persist/cpu_track.h"
#include "staghorn.h"

enum { UNWIND_WORDS = 4 }; /* of QEMU's unwind data, at least */

const char *const staghorn_domain_impossible =
    "a persistence domain needs x86 processors: it follows their stores, cache flushes and machine "
    "checks; use qemu-system-x86_64, or NVDIMMs without a domain";

/* ---- the instruction ---- */

#ifdef CONFIG_TCG

/*
 * The unwind data have the whole address, or, where translations are relative to their page, the
 * offset in it.  Then the page is that of the state, which is otherwise not up to date.
 */
static uint64_t program_counter(CPUState *cpu, uintptr_t ra)
{
    uint64_t pc = cpu->cc->get_pc(cpu), data[UNWIND_WORDS];

    if (!ra || !cpu_unwind_state_data(cpu, ra, data)) {
        return pc;
    }
    if (!(cpu->tcg_cflags & CF_PCREL)) {
        return data[0];
    }
    return (pc & (target_ulong)TARGET_PAGE_MASK) | (data[0] & (target_ulong)~TARGET_PAGE_MASK);
}

struct sg_persist_source staghorn_cpu_source(CPUState *cpu, uintptr_t ra)
{
    return (struct sg_persist_source){
        .agent = SG_PERSIST_CPU,
        .unit = cpu->cpu_index,
        .at = program_counter(cpu, ra),
    };
}

#endif

/* The checker's report has no callers: where a stack has them differs between processors. */
void staghorn_guest_stack(CPUState *cpu, struct sg_where *where)
{
    where->stack_octets = 0;
}

/* ---- machine checks, of a domain ---- */

bool staghorn_mce_watch_loads(StaghornDomain *d)
{
    g_assert_not_reached();
}

void staghorn_mce_announce(uint64_t addr, unsigned order, void (*done)(bool taken))
{
    g_assert_not_reached();
}
