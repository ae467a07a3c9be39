/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Step 6 of docs/course: memory regions.  Manual: admin.md, memory; commands.md, page list.
 */
#ifndef COURSE_MEMORY_H
#define COURSE_MEMORY_H

#include "step04/admin.h"

int course_create_pd(struct course_admin *a, u32 *pd);
/* The pages of contiguous memory. */
struct sg_page_list course_contiguous(dma_addr_t dma, u64 length);
/* Pages of 4 KiB anywhere; the array of their bus addresses is at 'list'. */
struct sg_page_list course_scattered(dma_addr_t list, u32 count);
/* 'va' is the name of the first octet for elements and peers. */
int course_register(struct course_admin *a, u32 pd, const struct sg_page_list *pages, u64 va,
		    u64 length, u32 access, u32 *stag);

#endif
