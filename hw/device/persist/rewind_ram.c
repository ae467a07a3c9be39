/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: ordinary memory of a machine that is put back.
 *
 * Keeping copies each page that is not zero.  From then on QEMU's dirty bitmap (the migration's
 * client: a machine with a kept state does not migrate) records which pages are written, by CPUs
 * and by devices.  A rewind compares these pages with their copies, and writes those that differ:
 * for one that ran a command these are some hundreds, of some hundred thousand.
 *
 * TCG's translations stay, except those of pages that differ.  So the programs that each check runs
 * are translated once, if they were in the guest's memory when the state was kept.
 *
 * A power cut writes all memory without telling the bitmap; after one, all pages are compared.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/bitmap.h"
#include "qemu/cutils.h"
#include "exec/exec-all.h"
#include "exec/memory.h"
#include "exec/ram_addr.h"
#include "exec/ramblock.h"
#include "system/tcg.h"
#include "rewind.h"

/* Some targets know their page size only when they run. */
#define PAGE ((uint64_t)TARGET_PAGE_SIZE)
#define UNIT (BITS_PER_LONG * PAGE) /* examined at once */

enum { PART = 2 << 20 }; /* of memory, and likewise where it is kept */

#define MAP_IN_USE (3ull << 62) /* an entry of the page map: present, or swapped */

typedef struct KeptBlock {
    RAMBlock *block; /* referenced through its region */
    uint64_t len;
    uint8_t *copy; /* pages of zeros were never written, and take no memory */
} KeptBlock;

typedef struct StaghornRewindRam {
    GArray *blocks; /* KeptBlock */
    uint64_t octets;
} StaghornRewindRam;

/* ---- keeping ---- */

/*
 * Has anybody touched this part of anonymous memory?  If not it is zero, and to read it would take
 * memory for it (Linux's Documentation/admin-guide/mm/pagemap.rst).  map: /proc/self/pagemap, or -1
 * if there is none: then all is in use.
 */
static bool part_in_use(int map, const uint8_t *host, uint64_t len)
{
    uint64_t size = qemu_real_host_page_size(), entry[PART / 4096];
    size_t count = DIV_ROUND_UP(len, size);
    off_t first = (uintptr_t)host / size * sizeof(*entry);

    if (map < 0 || count > ARRAY_SIZE(entry) ||
        pread(map, entry, count * sizeof(*entry), first) != count * sizeof(*entry)) {
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        if (entry[i] & MAP_IN_USE) {
            return true;
        }
    }
    return false;
}

static void keep_part(StaghornRewindRam *ram, const KeptBlock *kept, uint64_t from, uint64_t to)
{
    const uint8_t *host = kept->block->host;

    for (uint64_t at = from; at < to; at += PAGE) {
        if (!buffer_is_zero(host + at, MIN(PAGE, to - at))) {
            memcpy(kept->copy + at, host + at, MIN(PAGE, to - at));
            ram->octets += PAGE;
        }
    }
}

static void keep_pages(StaghornRewindRam *ram, const KeptBlock *kept)
{
    bool anonymous = kept->block->fd < 0 && !qemu_ram_is_shared(kept->block);
    int map = anonymous ? open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC) : -1;

    for (uint64_t at = 0; at < kept->len; at += PART) {
        uint64_t to = MIN(at + PART, kept->len);

        if (part_in_use(map, kept->block->host + at, to - at)) {
            keep_part(ram, kept, at, to);
        }
    }
    if (map >= 0) {
        close(map);
    }
}

/* NVDIMMs of the domain are not migratable (domain_save.c); what else is not, is no state. */
static int keep_block(RAMBlock *block, void *opaque)
{
    StaghornRewindRam *ram = opaque;
    KeptBlock kept = { .block = block, .len = block->used_length };

    if (!qemu_ram_is_migratable(block) || !kept.len) {
        return 0;
    }
    kept.copy = mmap(NULL, kept.len, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (kept.copy == MAP_FAILED) {
        return -errno;
    }
    keep_pages(ram, &kept);
    memory_region_ref(block->mr);
    g_array_append_val(ram->blocks, kept);
    return 0;
}

static void clear_dirty(const KeptBlock *kept)
{
    cpu_physical_memory_test_and_clear_dirty(kept->block->offset, kept->len,
                                             DIRTY_MEMORY_MIGRATION);
}

StaghornRewindRam *staghorn_rewind_ram_keep(Error **errp)
{
    StaghornRewindRam *ram = g_new0(StaghornRewindRam, 1);
    int result;

    ram->blocks = g_array_new(false, false, sizeof(KeptBlock));
    result = qemu_ram_foreach_block(keep_block, ram);
    if (result) {
        error_setg_errno(errp, -result, "memory cannot be copied");
    }
    if (result || !memory_global_dirty_log_start(GLOBAL_DIRTY_MIGRATION, errp)) {
        staghorn_rewind_ram_free(ram);
        return NULL;
    }
    memory_global_dirty_log_sync(false);
    for (unsigned i = 0; i < ram->blocks->len; i++) {
        clear_dirty(&g_array_index(ram->blocks, KeptBlock, i));
    }
    return ram;
}

void staghorn_rewind_ram_free(StaghornRewindRam *ram)
{
    if (!ram) {
        return;
    }
    memory_global_dirty_log_stop(GLOBAL_DIRTY_MIGRATION);
    for (unsigned i = 0; i < ram->blocks->len; i++) {
        KeptBlock *kept = &g_array_index(ram->blocks, KeptBlock, i);

        munmap(kept->copy, kept->len);
        memory_region_unref(kept->block->mr);
    }
    g_array_free(ram->blocks, true);
    g_free(ram);
}

uint64_t staghorn_rewind_ram_octets(const StaghornRewindRam *ram)
{
    return ram->octets;
}

/* ---- putting back ---- */

static void discard_translations(ram_addr_t start, uint64_t len)
{
    if (tcg_enabled()) {
        tb_invalidate_phys_range(start, start + len - 1);
    }
}

void staghorn_rewind_translations(StaghornDimm *dimm)
{
    discard_translations(memory_region_get_ram_addr(dimm->mr), dimm->size);
}

typedef void PageFunction(KeptBlock *kept, uint64_t at, uint64_t len, void *opaque);

static void put_back_page(KeptBlock *kept, uint64_t at, uint64_t len, void *opaque)
{
    StaghornRewindPages *pages = opaque;

    pages->written++;
    if (memcmp(kept->block->host + at, kept->copy + at, len)) {
        discard_translations(kept->block->offset + at, len);
        memcpy(kept->block->host + at, kept->copy + at, len);
        pages->changed++;
    }
}

static void keep_page(KeptBlock *kept, uint64_t at, uint64_t len, void *opaque)
{
    memcpy(kept->copy + at, kept->block->host + at, len);
}

/* Calls for each page written since the last time, and for all if 'all'. */
static void for_written(KeptBlock *kept, bool all, PageFunction *function, void *opaque)
{
    g_autofree DirtyBitmapSnapshot *written = cpu_physical_memory_snapshot_and_clear_dirty(
        kept->block->mr, 0, kept->len, DIRTY_MEMORY_MIGRATION);
    ram_addr_t start = kept->block->offset;

    for (uint64_t unit = 0; unit < kept->len; unit += UNIT) {
        uint64_t end = MIN(unit + UNIT, kept->len);

        /* Mostly there is none among so many, and one look at them is enough. */
        if (!all && !cpu_physical_memory_snapshot_get_dirty(written, start + unit, end - unit)) {
            continue;
        }
        for (uint64_t at = unit; at < end; at += PAGE) {
            if (all || cpu_physical_memory_snapshot_get_dirty(written, start + at, PAGE)) {
                function(kept, at, MIN(PAGE, kept->len - at), opaque);
            }
        }
    }
}

static void for_all_written(StaghornRewindRam *ram, PageFunction *function, void *opaque)
{
    bool all = staghorn_ram_scrambled();

    memory_global_dirty_log_sync(false);
    for (unsigned i = 0; i < ram->blocks->len; i++) {
        for_written(&g_array_index(ram->blocks, KeptBlock, i), all, function, opaque);
    }
}

void staghorn_rewind_ram_again(StaghornRewindRam *ram)
{
    for_all_written(ram, keep_page, NULL);
}

bool staghorn_rewind_ram(StaghornRewindRam *ram, StaghornRewindPages *pages, Error **errp)
{
    *pages = (StaghornRewindPages){ 0 };
    for (unsigned i = 0; i < ram->blocks->len; i++) {
        const KeptBlock *kept = &g_array_index(ram->blocks, KeptBlock, i);

        if (kept->block->used_length != kept->len) {
            error_setg(errp, "memory %s has another size than when the state was kept",
                       kept->block->idstr);
            return false;
        }
    }
    for_all_written(ram, put_back_page, pages);
    return true;
}
