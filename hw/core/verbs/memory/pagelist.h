/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page lists of the guest (struct sg_page_list), read once into host memory.
 */
#ifndef SG_VERBS_MEMORY_PAGELIST_H
#define SG_VERBS_MEMORY_PAGELIST_H

#include "base/host.h"
#include "staghorn/admin.h"

enum sg_pagelist_limits {
    SG_PAGES_MAX = 1 << 24,    /* pages of one list: 64 GiB of 4 KiB pages */
    SG_FR_PAGES_MAX = 1 << 18, /* of a fast registration: 2 MiB of addresses */
    SG_PAGE_SHIFT_MIN = 12,
    SG_PAGE_SHIFT_MAX = 30,
};

struct sg_pages {
    uint64_t *list; /* charged to the account, owned by the caller; NULL: contiguous from base */
    uint64_t base;
    uint32_t count;
    uint8_t shift;
};

/* A list that is read in parts, so that each part takes a bounded time. */
struct sg_pages_reader {
    struct sg_pages pages;
    uint64_t addr;   /* the next to read: the array, or the table of a list of two levels */
    uint32_t done;   /* addresses read */
    uint64_t lo, hi; /* of a list: the lowest and the highest address so far */
    uint8_t levels;
    bool in_row; /* the pages so far are contiguous */
};

/*
 * Begins with the first 'use' pages of the list (at most its count).  SG_EINVAL: level, page size,
 * count or an alignment is wrong; SG_ENOMEM: too long, or no memory.
 */
enum sg_status sg_pages_begin(struct sg_pages_reader *r, const struct sg_host *host,
                              const struct sg_page_list *list, uint64_t use);
/*
 * Reads up to 'max' more addresses.  *whole: these were the last; the caller then owns the pages,
 * without an array if they are contiguous.  SG_EINVAL, SG_EFAULT: wrong alignment, or the list
 * cannot be read; then everything is freed.
 */
enum sg_status sg_pages_go_on(struct sg_pages_reader *r, const struct sg_host *host, uint32_t max,
                              bool *whole);
/* Frees the array, if there is one. */
void sg_pages_free(const struct sg_host *host, struct sg_pages *pages);

/* All at once. */
enum sg_status sg_pages_read(struct sg_pages *out, const struct sg_host *host,
                             const struct sg_page_list *list, uint64_t use);

/* As level 1, for an array of count addresses at addr. */
enum sg_status sg_pages_read_array(struct sg_pages *out, const struct sg_host *host, uint64_t addr,
                                   uint32_t count, unsigned shift);

#endif
