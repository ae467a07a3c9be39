/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: the stack of the guest's kernel at the instruction whose access the core works on, for
 * reports of the driver checker.
 *
 * The guest decides what its registers and page tables say, and the core is in the middle of a
 * call.  So only RAM is read, tables included: QEMU's own walk for debuggers would read registers
 * of devices if a table pointed there.  The window is bounded, and ends at a page that is absent.
 *
 * With TCG the general registers are in the processor's state whenever it accesses memory.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/memory.h"
#include "staghorn.h"

enum { GUEST_PAGE = 4096, ENTRY_BITS = 9, LEVELS = 4, LEVELS_LA57 = 5, LEVELS_LARGE = 2 };

static const MemTxAttrs memory_only = { .memory = 1 };

static bool read_ram(CPUState *cpu, uint64_t addr, void *buf, size_t len)
{
    return address_space_read(cpu->as, addr, memory_only, buf, len) == MEMTX_OK;
}

/* The machine's address of a linear one, by the page tables of 64-bit mode. */
static bool translate(CPUState *cpu, uint64_t linear, uint64_t *addr)
{
    const CPUX86State *env = cpu_env(cpu);
    uint64_t entry = env->cr[3];

    for (int level = (env->cr[4] & CR4_LA57_MASK ? LEVELS_LA57 : LEVELS) - 1;; level--) {
        const unsigned shift = 12 + ENTRY_BITS * level;
        const uint64_t size = 1ull << shift;
        const uint64_t index = linear >> shift & ((1u << ENTRY_BITS) - 1);

        if (!read_ram(cpu, (entry & PG_ADDRESS_MASK) + index * sizeof(entry), &entry,
                      sizeof(entry))) {
            return false;
        }
        entry = le64_to_cpu(entry);
        if (!(entry & PG_PRESENT_MASK)) {
            return false;
        }
        if (!level || (level <= LEVELS_LARGE && (entry & PG_PSE_MASK))) {
            *addr = (entry & PG_ADDRESS_MASK & ~(size - 1)) | (linear & (size - 1));
            return true;
        }
    }
}

static bool of_kernel(uint64_t linear)
{
    return linear >> 63;
}

/* The state of the processor is QEMU's; where->pc is known. */
void staghorn_guest_stack(CPUState *cpu, struct sg_where *where)
{
    const CPUX86State *env = cpu_env(cpu);
    const uint64_t sp = env->regs[R_ESP];

    where->stack_octets = 0;
    if (!(env->hflags & HF_LMA_MASK) || (env->hflags & HF_GUEST_MASK) || !of_kernel(where->pc) ||
        !of_kernel(sp)) {
        return;
    }
    where->sp = sp;
    where->bp = env->regs[R_EBP];
    while (where->stack_octets < sizeof(where->stack)) {
        const uint64_t linear = sp + where->stack_octets;
        const size_t part =
            MIN(GUEST_PAGE - linear % GUEST_PAGE, sizeof(where->stack) - where->stack_octets);
        uint64_t addr;

        if (!of_kernel(linear) || !translate(cpu, linear, &addr) ||
            !read_ram(cpu, addr, where->stack + where->stack_octets, part)) {
            return;
        }
        where->stack_octets += part;
    }
}
