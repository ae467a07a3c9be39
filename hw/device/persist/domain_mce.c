/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: machine checks, by which x86 platforms report unreadable memory.
 *
 * There are two kinds (Intel's architecture manual, volume 3, 17.9).  A load that meets a bad line
 * is an error with "action required": the load does not happen, its processor gets #MC at exactly
 * that instruction.  An error that the platform found by itself, before anybody wanted the data,
 * has "action optional".  Both contain the machine's address and the size of the bad range; both
 * are local: other processors do not see them.
 *
 * Loads are watched in TCG only (cpu_loads.c).  A processor with machine checks disabled, as
 * in firmware, or already in one, reads the data that are there: a shutdown would help nobody.
 *
 * Linux decodes these on Intel processors: its NVDIMM driver then adds the address to
 * its list of bad blocks.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/cpu-common.h"
#include "exec/cputlb.h"
#include "exec/exec-all.h"
#include "hw/core/cpu.h"
#include "system/hw_accel.h"
#include "domain_object.h"
#ifdef CONFIG_TCG
#include "cpu_track.h"
#include "system/tcg.h"
#include "tcg/helper-tcg.h"
#endif

const char *const staghorn_domain_impossible = NULL;

enum {
    BANK = 1,
    CODE_DATA_LOAD = 0x134, /* cache, data read, by a load */
    CODE_SCRUB = 0xc0,      /* memory scrubbing */
    EXCEPTION = 18,
};

#define ERROR_STATUS                                                                        \
    (MCI_STATUS_VAL | MCI_STATUS_UC | MCI_STATUS_EN | MCI_STATUS_MISCV | MCI_STATUS_ADDRV | \
     MCI_STATUS_S)

static bool takes_machine_checks(const CPUX86State *env)
{
    return (env->mcg_cap & 0xff) > BANK && (env->cr[4] & CR4_MCE_MASK) &&
           !(env->mcg_status & MCG_STATUS_MCIP);
}

static void log_error(CPUX86State *env, uint64_t status, uint64_t mcg_status, uint64_t addr,
                      unsigned order)
{
    uint64_t *bank = env->mce_banks + 4 * BANK;

    bank[1] = status | (bank[1] & MCI_STATUS_VAL ? MCI_STATUS_OVER : 0);
    bank[2] = addr;
    bank[3] = MCM_ADDR_PHYS << 6 | order;
    env->mcg_status = mcg_status | MCG_STATUS_MCIP | MCG_STATUS_RIPV | MCG_STATUS_LMCE;
}

/* ---- loads ---- */

#ifdef CONFIG_TCG

void staghorn_mce_load(CPUState *cpu, const void *host, unsigned size, uintptr_t ra)
{
    CPUX86State *env = cpu_env(cpu);
    uint64_t line;

    if (!takes_machine_checks(env) ||
        !staghorn_bad_ranges_load(staghorn_domain(), host, size, &line)) {
        return;
    }
    log_error(env, ERROR_STATUS | MCI_STATUS_AR | CODE_DATA_LOAD, MCG_STATUS_EIPV, line,
              ctz32(SG_PERSIST_LINE));
    raise_exception_ra(env, EXCEPTION, ra);
}

bool staghorn_mce_watch_loads(StaghornDomain *d)
{
    if (!tcg_enabled()) {
        return false;
    }
    staghorn_cpu_loads_watch_bad();
    return true;
}

#else

bool staghorn_mce_watch_loads(StaghornDomain *d)
{
    return false;
}

#endif

/* ---- announcements ---- */

typedef struct News {
    uint64_t addr;
    unsigned order;
    void (*done)(bool taken);
} News;

/* In the processor's thread. */
static void announce(CPUState *cpu, run_on_cpu_data data)
{
    g_autofree News *news = data.host_ptr;
    CPUX86State *env = cpu_env(cpu);
    bool ready;

    cpu_synchronize_state(cpu);
    ready = takes_machine_checks(env) && !(env->mce_banks[4 * BANK + 1] & MCI_STATUS_VAL);
    if (ready) {
        log_error(env, ERROR_STATUS | CODE_SCRUB, 0, news->addr, news->order);
        cpu_interrupt(cpu, CPU_INTERRUPT_MCE);
    }
    news->done(ready);
}

void staghorn_mce_announce(uint64_t addr, unsigned order, void (*done)(bool taken))
{
    News *news = g_new(News, 1);

    *news = (News){ .addr = addr, .order = order, .done = done };
    async_run_on_cpu(first_cpu, announce, RUN_ON_CPU_HOST_PTR(news));
}
