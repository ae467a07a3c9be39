/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Staghorn: faults on demand that the core cannot do itself: memory that does not respond, the
 * link, errors of the PCI function.
 *
 * Memory.  While there are rules about DMA, the host operations for memory are this file's, which
 * ask the rules and then call the others.  Nothing is mapped meanwhile: each copy counts once.
 *
 * Link and errors.  The core asks for them in the middle of a turn.  Either may send an interrupt
 * of another device, which may be aimed at anything (calls.c), so the bottom half does them when
 * the turn is over.
 */
#include "qemu/osdep.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_aer.h"
#include "net/net.h"
#include "machine_clock.h"
#include "staghorn.h"

/* ---- memory ---- */

enum { READ, WRITE };

static bool refused(StaghornState *s, unsigned direction)
{
    return sg_faults_at(s->faults, SG_POINT_DMA, direction, staghorn_clock_ns()).effect ==
           SG_EFFECT_REFUSE;
}

static bool faulty_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    StaghornState *s = opaque;

    return !refused(s, READ) && s->sound_ops.dma_read(opaque, addr, buf, len);
}

static bool faulty_dma_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
    StaghornState *s = opaque;

    return !refused(s, WRITE) && s->sound_ops.dma_write(opaque, addr, buf, len);
}

static bool faulty_dma_store64(void *opaque, uint64_t addr, uint64_t value)
{
    StaghornState *s = opaque;

    return !refused(s, WRITE) && s->sound_ops.dma_store64(opaque, addr, value);
}

static bool faulty_dma_cmpxchg64(void *opaque, uint64_t addr, uint64_t *value, uint64_t desired)
{
    StaghornState *s = opaque;

    return !refused(s, WRITE) && s->sound_ops.dma_cmpxchg64(opaque, addr, value, desired);
}

static void *faulty_map(void *opaque, uint64_t addr, size_t *len, bool for_write)
{
    return NULL;
}

static bool faulty_pm_place(void *opaque, const struct sg_pm_who *who, uint64_t addr,
                            const void *buf, size_t len)
{
    StaghornState *s = opaque;

    return !refused(s, WRITE) && s->sound_ops.pm_place(opaque, who, addr, buf, len);
}

static bool faulty_pm_store(void *opaque, const struct sg_pm_who *who, uint64_t addr,
                            const uint8_t atom[8])
{
    StaghornState *s = opaque;

    return !refused(s, WRITE) && s->sound_ops.pm_store(opaque, who, addr, atom);
}

static bool faulty_pm_cmpxchg64(void *opaque, const struct sg_pm_who *who, uint64_t addr,
                                uint64_t *value, uint64_t desired)
{
    StaghornState *s = opaque;

    return !refused(s, WRITE) && s->sound_ops.pm_cmpxchg64(opaque, who, addr, value, desired);
}

/* Only these: a recorder sets and clears another one. */
static void copy_memory_ops(struct sg_host_ops *to, const struct sg_host_ops *from)
{
    to->dma_read = from->dma_read;
    to->dma_write = from->dma_write;
    to->dma_store64 = from->dma_store64;
    to->dma_cmpxchg64 = from->dma_cmpxchg64;
    to->map = from->map;
    to->pm_place = from->pm_place;
    to->pm_store = from->pm_store;
    to->pm_cmpxchg64 = from->pm_cmpxchg64;
}

static const struct sg_host_ops faulty_ops = {
    .dma_read = faulty_dma_read,
    .dma_write = faulty_dma_write,
    .dma_store64 = faulty_dma_store64,
    .dma_cmpxchg64 = faulty_dma_cmpxchg64,
    .map = faulty_map,
};

void staghorn_faults_memory(StaghornState *s, bool faulty)
{
    if (faulty == s->memory_faulty) {
        return;
    }
    s->memory_faulty = faulty;
    if (!faulty) {
        copy_memory_ops(&s->ops, &s->sound_ops);
        return;
    }
    s->sound_ops = s->ops;
    copy_memory_ops(&s->ops, &faulty_ops);
    if (s->sound_ops.pm_place) {
        s->ops.pm_place = faulty_pm_place;
        s->ops.pm_store = faulty_pm_store;
        s->ops.pm_cmpxchg64 = faulty_pm_cmpxchg64;
    }
}

/* ---- link and errors ---- */

void staghorn_faults_ask(void *opaque, unsigned effect)
{
    StaghornState *s = opaque;

    if (effect == SG_EFFECT_DOWN) { /* the later one counts; down and up are both done */
        s->acts &= ~(1u << SG_EFFECT_UP);
    }
    s->acts |= 1u << effect;
    staghorn_owe(s, STAGHORN_DUE_ACTS);
}

/* As QMP's set_link for our uplink: QEMU drops the frames, the driver gets its event. */
static void set_link(StaghornState *s, bool up)
{
    NetClientState *nc = qemu_get_queue(s->nic);

    nc->link_down = !up;
    nc->info->link_status_changed(nc);
}

/* The errors that QEMU's own examples use, one for each severity as a driver leaves it. */
static void report_error(StaghornState *s, unsigned effect)
{
    PCIDevice *pci = &s->parent_obj;
    PCIEAERErr err = { .source_id = pci_requester_id(pci) };

    switch (effect) {
    case SG_EFFECT_CORRECTABLE:
        err.status = PCI_ERR_COR_BAD_TLP;
        err.flags = PCIE_AER_ERR_IS_CORRECTABLE;
        break;
    case SG_EFFECT_NONFATAL:
        err.status = PCI_ERR_UNC_COMP_TIME;
        break;
    default:
        err.status = PCI_ERR_UNC_DLP;
        break;
    }
    pcie_aer_inject_error(pci, &err); /* without PCI Express there is nothing to report to */
}

/* Each act may cause the removal of the adapter. */
void staghorn_faults_act(StaghornState *s)
{
    uint32_t acts = s->acts;

    s->acts = 0;
    s->due &= ~STAGHORN_DUE_ACTS;
    if (acts & 1u << SG_EFFECT_DOWN && !s->gone) {
        set_link(s, false);
    }
    if (acts & 1u << SG_EFFECT_UP && !s->gone) {
        set_link(s, true);
    }
    for (unsigned i = SG_EFFECT_CORRECTABLE; i <= SG_EFFECT_FATAL; i++) {
        if (acts & 1u << i && !s->gone) {
            report_error(s, i);
        }
    }
}
