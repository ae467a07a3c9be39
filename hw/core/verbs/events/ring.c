/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings of guest memory.
 *
 * Strides are powers of two of at most 1,024 octets and pages are aligned, so an entry is
 * contiguous in bus addresses.  Entries are copied out once (callers validate the copy) and written
 * with the phase word last: a consumer that sees the new phase sees the whole entry.
 */
#include "verbs/events/ring.h"

#include "verbs/memory/pagelist.h"

static void set_geometry(struct sg_ring *r, uint32_t entries, uint32_t stride)
{
    sg_assert(sg_is_pow2(entries) && sg_is_pow2(stride) && stride <= SG_PAGE_SIZE);
    r->entries = entries;
    r->stride_shift = __builtin_ctz(stride);
}

static uint32_t pages_of(const struct sg_ring *r)
{
    return (uint32_t)((((uint64_t)r->entries << r->stride_shift) + SG_PAGE_SIZE - 1) >>
                      SG_PAGE_SHIFT);
}

void sg_ring_init(struct sg_ring *r, uint64_t base, uint32_t entries, uint32_t stride)
{
    memset(r, 0, sizeof(*r));
    set_geometry(r, entries, stride);
    r->base = base;
}

enum sg_status sg_ring_init_pages(struct sg_ring *r, const struct sg_host *host,
                                  const struct sg_page_list *list, uint32_t entries,
                                  uint32_t stride)
{
    struct sg_pages pages;
    enum sg_status status;

    memset(r, 0, sizeof(*r));
    set_geometry(r, entries, stride);
    if (list->page_shift != SG_PAGE_SHIFT || sg_get_le32(&list->count) < pages_of(r)) {
        return SG_EINVAL;
    }
    status = sg_pages_read(&pages, host, list, pages_of(r));
    if (status == SG_OK) {
        r->pages = pages.list;
        r->base = pages.base;
    }
    return status;
}

void sg_ring_fini(struct sg_ring *r, const struct sg_host *host)
{
    struct sg_pages pages = { .list = r->pages, .count = pages_of(r) };

    sg_pages_free(host, &pages);
    r->pages = NULL;
}

enum sg_ring_verdict sg_ring_take(struct sg_ring *r, unsigned index, uint32_t value)
{
    const bool cons = index & SG_RING_CONS;
    uint32_t *own = cons ? &r->cons : &r->prod;
    uint32_t ahead = cons ? sg_ring_used(r) : r->entries - sg_ring_used(r);
    uint32_t used = cons ? r->prod - value : value - r->cons;

    if (value - *own <= ahead || (index & SG_RING_IN_ORDER && used <= r->entries)) {
        *own = value;
        return SG_RING_NEW;
    }
    return !(index & SG_RING_IN_ORDER) && r->prod - value <= r->entries ? SG_RING_LATE
                                                                        : SG_RING_BAD;
}

bool sg_ring_post(struct sg_ring *r, const struct sg_host *host, void *entry, size_t len,
                  const struct sg_observed *told)
{
    uint64_t addr = sg_ring_slot(r, r->prod);
    uint8_t *e = entry;

    e[len - 1] |= sg_ring_phase(r, r->prod);
    if (!host->ops->dma_write(host->opaque, addr, e, len - 8)) {
        return false;
    }
    if (told) {
        host->ops->observe(host->opaque, told);
    }
    if (!host->ops->dma_store64(host->opaque, addr + len - 8, sg_get_le64(e + len - 8))) {
        return false;
    }
    r->prod++;
    return true;
}

enum sg_rule sg_ring_rule(const struct sg_ring *r, uint32_t prod)
{
    return (int32_t)(prod - r->prod) > 0 ? SG_RULE_RING_BEYOND : SG_RULE_RING_BACK;
}

bool sg_ring_fresh(const struct sg_ring *r, const struct sg_host *host)
{
    const uint32_t stride = 1u << r->stride_shift, n = SG_MIN(r->entries, (uint32_t)SG_CHECK_FRESH);
    uint8_t last;

    for (uint32_t i = 0; i < n; i++) {
        if (sg_ring_fetch(r, host, i, stride - 1, &last, 1) && last & SG_PHASE_MASK) {
            return false;
        }
    }
    return true;
}
