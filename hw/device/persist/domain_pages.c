/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: the pages that CPUs (or other devices) changed, and discarding them.
 *
 * With CPU tracking off nobody reports stores, so the model finds them by comparing visible memory
 * with the media.  QEMU's dirty bitmap (the display's client, which an NVDIMM does not use
 * otherwise) tells which pages to compare: the first store to a page after its bit was cleared
 * takes the slow path and sets the bit, all others run at full speed.
 *
 * Bits move from QEMU's bitmap to ours, in units of QEMU's bitmap words, when a flush needs them:
 *
 *   changed  a page that may differ from the media.  It stays so until a flush has compared all of
 *            it, and a while longer: a vCPU that looked up the page's translation before its bit
 *            was cleared may still be about to store.
 *   seen     compared in this period; aged: in the period before.  A newly set bit clears both.
 *   ever     changed since the last cut or start; a cut, with the vCPUs stopped, compares all.
 *
 * Adapters' placements are not recorded here: the model knows those lines itself.
 *
 * With KVM the kernel updates QEMU's bitmap on request, once before each entry into the model that
 * may compare; never within, because the request calls QEMU.  With a dirty ring the request would
 * stop all vCPUs and drop the big lock, in the middle of an adapter's work.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/bitmap.h"
#include "qemu/error-report.h"
#include "exec/memory.h"
#include "exec/ram_addr.h"
#include "exec/ramblock.h"
#include "system/kvm.h"
#include "domain_object.h"

enum {
    UNIT_PAGES = BITS_PER_LONG,    /* moved at once */
    CHUNK_PAGES = 64 * UNIT_PAGES, /* examined at once */
    RUN_PAGES = 16,                /* reported at once */
    PERIOD_MS = 50,
};

typedef struct StaghornPages {
    MemoryRegion *mr;
    uint64_t count; /* pages */
    unsigned long *changed, *seen, *aged, *ever;
    int64_t period_ms; /* begin of the period */
} StaghornPages;

StaghornPages *staghorn_pages_new(StaghornDimm *dimm)
{
    StaghornPages *p = g_new0(StaghornPages, 1);

    p->mr = dimm->mr;
    p->count = dimm->size / TARGET_PAGE_SIZE;
    p->changed = bitmap_new(p->count);
    p->seen = bitmap_new(p->count);
    p->aged = bitmap_new(p->count);
    p->ever = bitmap_new(p->count);
    memory_region_set_log(p->mr, true, DIRTY_MEMORY_VGA);
    g_free(cpu_physical_memory_snapshot_and_clear_dirty(p->mr, 0, dimm->size, DIRTY_MEMORY_VGA));
    return p;
}

void staghorn_pages_free(StaghornPages *p)
{
    if (p) {
        memory_region_set_log(p->mr, false, DIRTY_MEMORY_VGA);
        g_free(p->changed);
        g_free(p->seen);
        g_free(p->aged);
        g_free(p->ever);
        g_free(p);
    }
}

/* Takes the bits of the units that hold pages first to last - 1. */
static void collect(StaghornPages *p, uint64_t first, uint64_t last)
{
    ram_addr_t start = memory_region_get_ram_addr(p->mr);
    g_autofree DirtyBitmapSnapshot *snapshot = NULL;

    first = QEMU_ALIGN_DOWN(first, UNIT_PAGES);
    last = MIN(QEMU_ALIGN_UP(last, UNIT_PAGES), p->count);
    if (!cpu_physical_memory_get_dirty(start + first * TARGET_PAGE_SIZE,
                                       (last - first) * TARGET_PAGE_SIZE, DIRTY_MEMORY_VGA)) {
        return;
    }
    snapshot = cpu_physical_memory_snapshot_and_clear_dirty(
        p->mr, first * TARGET_PAGE_SIZE, (last - first) * TARGET_PAGE_SIZE, DIRTY_MEMORY_VGA);
    for (uint64_t i = first; i < last; i++) {
        if (memory_region_snapshot_get_dirty(p->mr, snapshot, i * TARGET_PAGE_SIZE,
                                             TARGET_PAGE_SIZE)) {
            set_bit(i, p->changed);
            set_bit(i, p->ever);
            clear_bit(i, p->seen);
            clear_bit(i, p->aged);
        }
    }
}

static void next_period(StaghornPages *p)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
    unsigned long *aged = p->aged;

    if (now - p->period_ms < PERIOD_MS) {
        return;
    }
    bitmap_andnot(p->changed, p->changed, aged, p->count);
    p->aged = p->seen;
    p->seen = aged;
    bitmap_zero(p->seen, p->count);
    p->period_ms = now;
}

/* As collect(), but cheap where nothing changed. */
static void collect_sparse(StaghornPages *p, uint64_t first, uint64_t last)
{
    ram_addr_t start = memory_region_get_ram_addr(p->mr);

    for (uint64_t i = QEMU_ALIGN_DOWN(first, CHUNK_PAGES); i < last; i += CHUNK_PAGES) {
        uint64_t end = MIN(i + CHUNK_PAGES, p->count);

        if (!cpu_physical_memory_get_dirty(start + i * TARGET_PAGE_SIZE,
                                           (end - i) * TARGET_PAGE_SIZE, DIRTY_MEMORY_VGA)) {
            continue;
        }
        for (uint64_t unit = MAX(i, first); unit < MIN(end, last);
             unit = QEMU_ALIGN_DOWN(unit, UNIT_PAGES) + UNIT_PAGES) {
            collect(p, unit, unit + 1);
        }
    }
}

void staghorn_pages_sync(const StaghornDomain *d)
{
    if (kvm_enabled() && !d->config.cpu_tracking) {
        memory_global_dirty_log_sync(false);
    }
}

bool staghorn_pages_possible(Error **errp)
{
    if (kvm_enabled() && kvm_dirty_ring_enabled()) {
        error_setg(errp, "KVM's dirty ring cannot tell which pages CPUs changed without stopping "
                         "them: leave out dirty-ring-size of -accel kvm");
        return false;
    }
    return true;
}

uint64_t staghorn_pages_next_differing(void *opaque, int extent, uint64_t from, uint64_t *len)
{
    StaghornDomain *d = opaque;
    StaghornDimm *dimm = NULL;
    StaghornPages *p;
    const unsigned long *map;
    uint64_t first, end, limit, sweep_end;

    for (unsigned i = 0; i < d->dimms; i++) {
        if (d->dimm[i].extent == extent) {
            dimm = &d->dimm[i];
        }
    }
    p = dimm->pages;
    next_period(p);
    sweep_end = MIN(d->sweep_end, dimm->size);
    limit = DIV_ROUND_UP(sweep_end, TARGET_PAGE_SIZE);
    if (from / TARGET_PAGE_SIZE >= limit) {
        return dimm->size;
    }
    collect_sparse(p, from / TARGET_PAGE_SIZE, limit);
    map = d->sweep_all ? p->ever : p->changed;
    first = find_next_bit(map, limit, from / TARGET_PAGE_SIZE);
    if (first >= limit) {
        return dimm->size;
    }
    /* The model asks again for the next run: a short run gets compared at once. */
    end = find_next_zero_bit(map, MIN(limit, first + RUN_PAGES), first);
    /* Only pages that lie completely in the range are compared completely. */
    for (uint64_t i = DIV_ROUND_UP(MAX(from, first * TARGET_PAGE_SIZE), TARGET_PAGE_SIZE);
         !d->sweep_all && i < MIN(end, sweep_end / TARGET_PAGE_SIZE); i++) {
        set_bit(i, p->seen);
    }
    from = MAX(from, first * TARGET_PAGE_SIZE);
    *len = end * TARGET_PAGE_SIZE - from;
    return from;
}

void staghorn_pages_discard(StaghornDimm *dimm)
{
    StaghornPages *p = dimm->pages;

    if (madvise(dimm->visible, dimm->size, MADV_DONTNEED)) {
        error_report("NVDIMM of %s: cannot discard its pages: %s", dimm->name, strerror(errno));
        abort(); /* the guest must not see the present content */
    }
    g_free(cpu_physical_memory_snapshot_and_clear_dirty(p->mr, 0, dimm->size, DIRTY_MEMORY_VGA));
    bitmap_zero(p->changed, p->count);
    bitmap_zero(p->seen, p->count);
    bitmap_zero(p->aged, p->count);
    bitmap_zero(p->ever, p->count);
}

int staghorn_pages_file(MemoryRegion *mr, uint64_t *offset, bool *shared)
{
    *offset = mr->ram_block->fd_offset;
    *shared = qemu_ram_is_shared(mr->ram_block);
    return mr->ram_block->fd;
}
