/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page lists of the guest (struct sg_page_list), read once into host memory.
 */
#ifndef SG_VERBS_PAGELIST_H
#define SG_VERBS_PAGELIST_H

#include "base/host.h"
#include "staghorn/admin.h"

enum sg_pagelist_limits {
    SG_PAGES_MAX = 1 << 24, /* pages of one list: 64 GiB of 4 KiB pages */
    SG_FR_PAGES_MAX = 1 << 18, /* of a fast registration: 2 MiB of addresses */
    SG_PAGE_SHIFT_MIN = 12,
    SG_PAGE_SHIFT_MAX = 30,
};

struct sg_pages {
    uint64_t *list; /* g_malloc'ed, the caller's; NULL: contiguous from base */
    uint64_t base;
    uint32_t count;
    uint8_t shift;
};

/*
 * The first 'use' pages of the list (at most its count).  A list whose pages follow one another is
 * returned as contiguous memory, without an array.  SG_EINVAL: level, page size, count or an
 * alignment is wrong; SG_EFAULT: the list cannot be read; SG_ENOMEM: too long.
 */
enum sg_status sg_pages_read(struct sg_pages *out, const struct sg_host *host,
                             const struct sg_page_list *list, uint64_t use);

/* As level 1, for an array of count addresses at addr. */
enum sg_status sg_pages_read_array(struct sg_pages *out, const struct sg_host *host, uint64_t addr,
                                   uint32_t count, unsigned shift);

#endif
