// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 6 of docs/course: tells the adapter about memory.
 */
#include "step06/memory.h"

int course_create_pd(struct course_admin *a, u32 *pd)
{
	const struct sg_admin_hdr c = { .opcode = SG_ADMIN_CREATE_PD };

	return course_make(a, &c, sizeof(c), pd);
}

struct sg_page_list course_contiguous(dma_addr_t dma, u64 length)
{
	u64 first = round_down(dma, SG_PAGE_SIZE);
	struct sg_page_list l = {
		.addr = cpu_to_le64(first),
		.count = cpu_to_le32(DIV_ROUND_UP(dma + length - first, SG_PAGE_SIZE)),
		.levels = 0,
		.page_shift = SG_PAGE_SHIFT,
	};

	return l;
}

struct sg_page_list course_scattered(dma_addr_t list, u32 count)
{
	struct sg_page_list l = {
		.addr = cpu_to_le64(list),
		.count = cpu_to_le32(count),
		.levels = 1,
		.page_shift = SG_PAGE_SHIFT,
	};

	return l;
}

int course_register(struct course_admin *a, u32 pd, const struct sg_page_list *pages, u64 va,
		    u64 length, u32 access, u32 *stag)
{
	struct sg_cmd_reg_mr c = {
		.hdr.opcode = SG_ADMIN_REG_MR,
		.pd = cpu_to_le32(pd),
		.access = cpu_to_le32(access),
		.va = cpu_to_le64(va),
		.length = cpu_to_le64(length),
		.pages = *pages,
	};
	int ret = course_make(a, &c, sizeof(c), stag);

	if (!ret)
		pci_info(a->regs->pdev, "stag %#x pages %u levels %u\n", *stag,
			 le32_to_cpu(pages->count), pages->levels);
	return ret;
}
