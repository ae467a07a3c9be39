/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Persistence domain: the loss of ordinary memory.
 *
 * DRAM without power holds noise afterwards, and firmware or a kernel that relies on zeroes is
 * wrong.  Writing noise to all of a machine's memory would take longer than a cut may.  So one
 * small file of noise is mapped over the memory in pieces, privately: a page is copied when it is
 * written to.  Pieces begin at random offsets of the file, so that the noise does not repeat
 * visibly.  A seed determines all of it.
 *
 * Only anonymous private memory can be mapped over: other memory shares a file with somebody, or a
 * pool of huge pages.  That memory reads as zero, and so does what the host refuses to map.
 */
#include "qemu/osdep.h"
#include "qemu/madvise.h"
#include "qemu/memfd.h"
#include "qemu/nvdimm-utils.h"
#include "qemu/units.h"
#include "exec/memory.h"
#include "exec/ramblock.h"
#include "exec/tb-flush.h"
#include "hw/boards.h"
#include "hw/core/cpu.h"
#include "system/hostmem.h"
#include "system/tcg.h"
#include "base/prng.h"
#include "domain_object.h"

enum {
    PIECE = 2 * MiB,
    PIECES_MAX = 4096, /* of a block: each is a mapping, of which a process has a bounded number */
};

/* For all blocks of one cut. */
typedef struct Noise {
    uint64_t seed;
    bool none; /* zeroes instead */
    GSList *nvdimms;
    int fd;         /* -1: none, or it could not be created */
    uint64_t piece; /* the file has two of them */
} Noise;

static void make_noise(Noise *noise, uint64_t piece)
{
    uint64_t words = 2 * piece / sizeof(uint64_t), *at;

    if (noise->fd >= 0) {
        close(noise->fd);
    }
    noise->piece = piece;
    noise->fd = qemu_memfd_create("staghorn-noise", 2 * piece, false, 0, 0, NULL);
    if (noise->fd < 0) {
        return;
    }
    at = mmap(NULL, 2 * piece, PROT_READ | PROT_WRITE, MAP_SHARED, noise->fd, 0);
    if (at == MAP_FAILED) {
        close(noise->fd);
        noise->fd = -1;
        return;
    }
    for (uint64_t i = 0; i < words; i++) {
        at[i] = sg_prng(&noise->seed);
    }
    munmap(at, 2 * piece);
}

/* False: the block, or the rest of it, still has its content. */
static bool map_noise(Noise *noise, RAMBlock *block)
{
    uint64_t page = qemu_real_host_page_size(), len = block->used_length;
    uint64_t piece = MAX(PIECE, QEMU_ALIGN_UP(len / PIECES_MAX, PIECE));

    if (block->fd >= 0 || qemu_ram_is_shared(block) || block->page_size != page ||
        ram_block_discard_is_disabled()) {
        return false;
    }
    if (noise->piece < piece) {
        make_noise(noise, piece);
    }
    for (uint64_t i = 0; i < len && noise->fd >= 0; i += piece) {
        uint64_t from = sg_prng(&noise->seed) % (noise->piece / page) * page;

        if (mmap(block->host + i, MIN(piece, len - i), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, noise->fd, from) == MAP_FAILED) {
            return false;
        }
    }
    qemu_madvise(block->host, len, QEMU_MADV_DONTFORK);
    return noise->fd >= 0;
}

/* Anonymous or a private file: new pages; a shared file: a hole in it. */
static void clear(RAMBlock *block)
{
    bool shared = qemu_ram_is_shared(block);

    if (!shared && block->fd >= 0) {
        memset(block->host, 0, block->used_length);
    } else if (madvise(block->host, block->used_length, shared ? MADV_REMOVE : MADV_DONTNEED)) {
        memset(block->host, 0, block->used_length);
    }
}

/* NVDIMMs keep their content, in this domain or outside. */
static int scramble_backend(Object *object, void *opaque)
{
    Noise *noise = opaque;
    HostMemoryBackend *backend;

    backend = (HostMemoryBackend *)object_dynamic_cast(object, TYPE_MEMORY_BACKEND);
    if (!backend || !host_memory_backend_is_mapped(backend) || memory_region_is_rom(&backend->mr)) {
        return 0;
    }
    for (GSList *each = noise->nvdimms; each; each = each->next) {
        if (object_property_get_link(each->data, "memdev", NULL) == object) {
            return 0;
        }
    }
    if (noise->none || !map_noise(noise, backend->mr.ram_block)) {
        clear(backend->mr.ram_block);
    }
    return 0;
}

static bool scrambled;

bool staghorn_ram_scrambled(void)
{
    bool was = scrambled;

    scrambled = false;
    return was;
}

static void scramble(Noise noise)
{
    noise.nvdimms = nvdimm_get_device_list();
    scrambled = true;
    object_child_foreach_recursive(object_get_root(), scramble_backend, &noise);
    g_slist_free(noise.nvdimms);
    if (noise.fd >= 0) {
        close(noise.fd);
    }
    if (tcg_enabled() && first_cpu) {
        tb_flush(first_cpu); /* translations of the old content */
    }
}

void staghorn_ram_scramble(uint64_t seed)
{
    scramble((Noise){ .seed = seed, .fd = -1 });
}

void staghorn_ram_clear(void)
{
    scramble((Noise){ .none = true, .fd = -1 });
}
