/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading page lists.
 *
 * A list is copied in one pass, in pieces that do not cross the 4 KiB pages that hold it, and
 * validated in the copy; later changes by the guest have no effect.  A list is bounded by
 * SG_PAGES_MAX addresses, checked before anything is allocated, and by the account.
 */
#include "verbs/memory/pagelist.h"

#include "base/account.h"
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

/* Updates what is known of the addresses so far by n more. */
static void note(struct sg_pages_reader *r, uint32_t n)
{
    struct sg_pages *p = &r->pages;
    uint64_t size = 1ull << p->shift;
    uint32_t i;

    for (i = r->done; i < r->done + n; i++) {
        r->lo = SG_MIN(r->lo, p->list[i]);
        r->hi = SG_MAX(r->hi, p->list[i]);
        r->in_row &= i == 0 || p->list[i] == p->list[i - 1] + size;
    }
    r->done += n;
}

/* One piece: the part within one page of the guest's memory. */
static enum sg_status read_piece(struct sg_pages_reader *r, const struct sg_host *host)
{
    struct sg_pages *p = &r->pages;
    uint32_t n = SG_MIN(p->count - r->done, (uint32_t)PER_PAGE);
    enum sg_status status = SG_OK;
    uint64_t from = r->addr;

    if (r->levels == 2) {
        status = read_addrs(host, r->addr, &from, 1, SG_PAGE_SHIFT);
    }
    if (status == SG_OK) {
        status = read_addrs(host, from, p->list + r->done, n, p->shift);
    }
    if (status == SG_OK) {
        note(r, n);
        r->addr += r->levels == 2 ? 8 : (uint64_t)n * 8;
    }
    return status;
}

void sg_pages_free(const struct sg_host *host, struct sg_pages *pages)
{
    sg_account_free(host->account, pages->list, (uint64_t)pages->count * 8);
    pages->list = NULL;
}

static enum sg_status begin_list(struct sg_pages_reader *r, const struct sg_host *host,
                                 uint64_t addr, unsigned levels)
{
    struct sg_pages *p = &r->pages;

    if (!sg_is_aligned(addr, 8)) {
        return SG_EINVAL;
    }
    p->list = sg_account_new(host->account, (uint64_t)p->count * 8);
    r->lo = UINT64_MAX;
    r->addr = addr;
    r->levels = (uint8_t)levels;
    r->in_row = true;
    return p->list ? SG_OK : SG_ENOMEM;
}

enum sg_status sg_pages_begin(struct sg_pages_reader *r, const struct sg_host *host,
                              const struct sg_page_list *list, uint64_t use)
{
    uint64_t addr = sg_get_le64(&list->addr);
    uint32_t count = sg_get_le32(&list->count);
    struct sg_pages *p = &r->pages;

    memset(r, 0, sizeof(*r));
    if (list->page_shift < SG_PAGE_SHIFT_MIN || list->page_shift > SG_PAGE_SHIFT_MAX ||
        list->levels > 2 || use == 0 || use > count) {
        return SG_EINVAL;
    }
    if (use > SG_PAGES_MAX) {
        return SG_ENOMEM;
    }
    p->count = (uint32_t)use;
    p->shift = list->page_shift;
    if (list->levels) {
        return begin_list(r, host, addr, list->levels);
    }
    if (!page_ok(addr, p->shift) || addr + (use << p->shift) - 1 < addr) {
        return SG_EINVAL;
    }
    p->base = addr;
    r->done = p->count;
    return SG_OK;
}

enum sg_status sg_pages_go_on(struct sg_pages_reader *r, const struct sg_host *host, uint32_t max,
                              bool *whole)
{
    struct sg_pages *p = &r->pages;
    uint32_t end = p->count - r->done > max ? r->done + max : p->count;

    *whole = false;
    while (r->done < end) {
        enum sg_status status = read_piece(r, host);

        if (status != SG_OK) {
            sg_pages_free(host, p);
            return status;
        }
    }
    if (r->done == p->count) {
        *whole = true;
        if (p->list && r->in_row) { /* contiguous pages need no array */
            p->base = p->list[0];
            sg_pages_free(host, p);
        }
    }
    return SG_OK;
}

enum sg_status sg_pages_read(struct sg_pages *out, const struct sg_host *host,
                             const struct sg_page_list *list, uint64_t use)
{
    struct sg_pages_reader r;
    enum sg_status status = sg_pages_begin(&r, host, list, use);
    bool whole;

    if (status == SG_OK) {
        status = sg_pages_go_on(&r, host, UINT32_MAX, &whole);
    }
    *out = r.pages;
    return status;
}

enum sg_status sg_pages_read_array(struct sg_pages *out, const struct sg_host *host, uint64_t addr,
                                   uint32_t count, unsigned shift)
{
    struct sg_page_list list = { .page_shift = (uint8_t)shift, .levels = 1 };

    memset(out, 0, sizeof(*out));
    if (shift > SG_PAGE_SHIFT_MAX || count > SG_PAGES_MAX) {
        return SG_EINVAL;
    }
    sg_put_le64(&list.addr, addr);
    sg_put_le32(&list.count, count);
    return sg_pages_read(out, host, &list, count);
}
