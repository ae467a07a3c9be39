/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading page lists.
 *
 * A list is copied in one pass, in pieces that do not cross the 4 KiB pages that hold it, and
 * validated in the copy; the guest may change its original at any time without effect.  The cost is
 * bounded by SG_PAGES_MAX addresses, refused before anything is allocated.
 */
#include "verbs/pagelist.h"

#include <glib.h>

#include "base/bytes.h"
#include "staghorn/io.h"

enum { PER_PAGE = SG_PAGE_SIZE / 8 };

/* Page addresses must be aligned and the page must not wrap the address space. */
static bool page_ok(uint64_t addr, unsigned shift)
{
    return sg_is_aligned(addr, 1ull << shift);
}

/* Copies n addresses at addr to out, in host byte order. */
static enum sg_status read_addrs(const struct sg_host *host, uint64_t addr, uint64_t *out,
                                 uint32_t n, unsigned shift)
{
    uint32_t i;

    if (addr + (uint64_t)n * 8 < addr) {
        return SG_EINVAL;
    }
    if (!host->ops->dma_read(host->opaque, addr, out, (size_t)n * 8)) {
        return SG_EFAULT;
    }
    for (i = 0; i < n; i++) {
        out[i] = sg_get_le64(&out[i]);
        if (!page_ok(out[i], shift)) {
            return SG_EINVAL;
        }
    }
    return SG_OK;
}

static enum sg_status read_level1(struct sg_pages *p, const struct sg_host *host, uint64_t addr)
{
    uint32_t done, n;
    enum sg_status status;

    for (done = 0; done < p->count; done += n) {
        n = SG_MIN(p->count - done, (uint32_t)PER_PAGE);
        status = read_addrs(host, addr + (uint64_t)done * 8, p->list + done, n, p->shift);
        if (status != SG_OK) {
            return status;
        }
    }
    return SG_OK;
}

static enum sg_status read_level2(struct sg_pages *p, const struct sg_host *host, uint64_t addr)
{
    uint32_t done, n;
    enum sg_status status;
    uint64_t leaf;

    for (done = 0; done < p->count; done += n, addr += 8) {
        n = SG_MIN(p->count - done, (uint32_t)PER_PAGE);
        status = read_addrs(host, addr, &leaf, 1, SG_PAGE_SHIFT);
        if (status == SG_OK) {
            status = read_addrs(host, leaf, p->list + done, n, p->shift);
        }
        if (status != SG_OK) {
            return status;
        }
    }
    return SG_OK;
}

/* Pages in a row need no array. */
static void compact(struct sg_pages *p)
{
    uint32_t i;

    p->base = p->list[0];
    for (i = 1; i < p->count; i++) {
        if (p->list[i] != p->list[i - 1] + (1ull << p->shift)) {
            return;
        }
    }
    g_free(p->list);
    p->list = NULL;
}

static enum sg_status read_list(struct sg_pages *p, const struct sg_host *host, uint64_t addr,
                                unsigned levels)
{
    enum sg_status status;

    if (!sg_is_aligned(addr, 8)) {
        return SG_EINVAL;
    }
    p->list = g_try_new(uint64_t, p->count);
    if (!p->list) {
        return SG_ENOMEM;
    }
    status = levels == 1 ? read_level1(p, host, addr) : read_level2(p, host, addr);
    if (status != SG_OK) {
        g_free(p->list);
        p->list = NULL;
        return status;
    }
    compact(p);
    return SG_OK;
}

enum sg_status sg_pages_read(struct sg_pages *out, const struct sg_host *host,
                             const struct sg_page_list *list, uint64_t use)
{
    uint64_t addr = sg_get_le64(&list->addr);
    uint32_t count = sg_get_le32(&list->count);

    memset(out, 0, sizeof(*out));
    if (list->page_shift < SG_PAGE_SHIFT_MIN || list->page_shift > SG_PAGE_SHIFT_MAX ||
        list->levels > 2 || use == 0 || use > count) {
        return SG_EINVAL;
    }
    if (use > SG_PAGES_MAX) {
        return SG_ENOMEM;
    }
    out->count = use;
    out->shift = list->page_shift;
    if (list->levels) {
        return read_list(out, host, addr, list->levels);
    }
    if (!page_ok(addr, out->shift) || addr + (use << out->shift) - 1 < addr) {
        return SG_EINVAL;
    }
    out->base = addr;
    return SG_OK;
}

enum sg_status sg_pages_read_array(struct sg_pages *out, const struct sg_host *host, uint64_t addr,
                                   uint32_t count, unsigned shift)
{
    memset(out, 0, sizeof(*out));
    if (count == 0 || count > SG_PAGES_MAX || shift < SG_PAGE_SHIFT_MIN ||
        shift > SG_PAGE_SHIFT_MAX) {
        return SG_EINVAL;
    }
    out->count = count;
    out->shift = shift;
    return read_list(out, host, addr, 1);
}
