/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: marks of programs.
 *
 * A mark is an instruction without effect (exec/mark-track.h) by which a program of the guest says
 * something, at this place among its stores.  docs/manual/marks.md has its operands.  The
 * guest's memory is read as the program itself could, without faults: what is not there, or not the
 * program's, is not read.  A mark whose operands are wrong has the name "wrong" in the trace.
 *
 * Only a recording wants to know of marks.  A mark and the events of its CPU before it are in the
 * trace in this order; with a domain that is the order of all inputs.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/exec-all.h"
#include "exec/mark-track.h"
#include "exec/store-track.h"
#include "hw/core/cpu.h"
#include "cpu_track.h"
#include "machine_clock.h"

enum {
    GUEST_PAGE = 4096,
    KIND_MAX = 63,
    RANGE_PAGES = 64, /* that a range may touch */
};

/* ---- the guest's memory ---- */

/* Of the program that executes the mark; NULL: it cannot load from there, or it is no RAM. */
static const uint8_t *host_of(CPUState *cpu, uint64_t addr, uintptr_t ra)
{
    return cpu_track_host(cpu_env(cpu), addr, cpu_mmu_index(cpu, false), true, ra);
}

/* How much of [addr, addr + len) is in addr's page. */
static unsigned in_page(uint64_t addr, uint64_t len)
{
    return MIN(len, GUEST_PAGE - addr % GUEST_PAGE);
}

static bool read_guest(CPUState *cpu, uint64_t addr, uint8_t *to, unsigned len, uintptr_t ra)
{
    for (unsigned n; len; addr += n, to += n, len -= n) {
        const uint8_t *from = host_of(cpu, addr, ra);

        n = in_page(addr, len);
        if (!from) {
            return false;
        }
        memcpy(to, from, n);
    }
    return true;
}

/* ---- what marks say ---- */

/* Registers; outside of long mode their lower halves. */
typedef struct Mark {
    uint64_t kind, kind_len, addr, len;
} Mark;

static Mark mark_of(const CPUX86State *env)
{
    uint64_t mask = env->hflags & HF_CS64_MASK ? UINT64_MAX : UINT32_MAX;

    return (Mark){
        .kind = env->regs[R_EDI] & mask,
        .kind_len = env->regs[R_ECX] & mask,
        .addr = env->regs[R_ESI] & mask,
        .len = env->regs[R_EDX] & mask,
    };
}

/* printf() would take most of a mark's time. */
static inline void append_number(GString *text, const char *name, uint64_t number, unsigned base)
{
    char digits[24], *p = digits + sizeof(digits);

    *--p = '\0';
    do {
        *--p = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    g_string_append(text, name);
    g_string_append(text, p);
}

/* Appends "phys=ADDRESS len=OCTETS" for a piece of the machine's memory. */
static void append_piece(GString *text, uint64_t phys, uint64_t len)
{
    if (len) {
        append_number(text, text->len ? " phys=0x" : "phys=0x", phys, 16);
        append_number(text, " len=", len, 10);
    }
}

/* The range's pieces of persistent memory; at the end, how many octets of it are none. */
static void range_text(CPUState *cpu, const Mark *m, GString *text, uintptr_t ra)
{
    uint64_t addr = m->addr, left = m->len, phys = 0, len = 0, outside = 0;
    StaghornDomain *d = staghorn_domain();
    const StaghornDimm *dimm;

    for (unsigned n; left; addr += n, left -= n) {
        const uint8_t *host = host_of(cpu, addr, ra);

        n = in_page(addr, left);
        dimm = d && host ? staghorn_dimm_of(d, host) : NULL;
        if (!dimm) {
            outside += n;
        } else if (len && phys + len == staghorn_dimm_address(dimm, host)) {
            len += n;
        } else {
            append_piece(text, phys, len);
            phys = staghorn_dimm_address(dimm, host);
            len = n;
        }
    }
    append_piece(text, phys, len);
    if (outside) {
        append_number(text, text->len ? " outside=" : "outside=", outside, 10);
    }
}

/* False: the operands are wrong, or not in memory. */
static bool mark_text(CPUState *cpu, int32_t displacement, const Mark *m, char kind[KIND_MAX + 1],
                      GString *text, uintptr_t ra)
{
    if (!m->kind_len || m->kind_len > KIND_MAX ||
        !read_guest(cpu, m->kind, (uint8_t *)kind, m->kind_len, ra)) {
        return false;
    }
    kind[m->kind_len] = '\0';
    if (displacement == CPU_MARK_RANGE) {
        if (m->len > (RANGE_PAGES - 1) * GUEST_PAGE + in_page(m->addr, GUEST_PAGE)) {
            return false;
        }
        range_text(cpu, m, text, ra);
        return true;
    }
    if (m->len > SG_TRACE_MARK_MAX) {
        return false;
    }
    g_string_set_size(text, m->len);
    return read_guest(cpu, m->addr, (uint8_t *)text->str, m->len, ra);
}

static void mark(CPUState *cpu, int32_t displacement, uintptr_t ra)
{
    struct sg_persist_source source = staghorn_cpu_source(cpu, ra);
    struct sg_trace_event e = staghorn_cpu_event(cpu, SG_TRACE_MARK, &source);
    StaghornDomain *d = staghorn_domain();
    Mark m = mark_of(cpu_env(cpu));
    g_autoptr(GString) text = g_string_new(NULL);
    char kind[KIND_MAX + 1];

    if (!mark_text(cpu, displacement, &m, kind, text, ra)) {
        strcpy(kind, "wrong");
        g_string_truncate(text, 0);
    }
    e.data = (const uint8_t *)text->str;
    e.len = text->len;
    if (d && d->model) {
        staghorn_domain_enter(d);
    } else {
        staghorn_record_time(staghorn_clock_ns());
    }
    e.name = staghorn_record_name(kind);
    staghorn_record(&e);
    if (d && d->model) {
        staghorn_domain_leave(d);
    }
}

void staghorn_cpu_marks_switch(bool on)
{
    cpu_mark_track = on ? mark : NULL;
}
