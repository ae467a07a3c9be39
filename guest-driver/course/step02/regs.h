/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Step 2 of docs/course: registers.  Manual: registers.md.
 */
#ifndef COURSE_REGS_H
#define COURSE_REGS_H

#include <linux/io.h>
#include <linux/pci.h>

#include <staghorn/regs.h>

struct course_regs {
	struct pci_dev *pdev;
	void __iomem *bar0; /* control registers */
	void __iomem *bar2; /* doorbells */
};

/* A register has 32 bits.  All ones: nobody answers. */
static inline u32 course_read(const struct course_regs *r, u32 offset)
{
	return readl(r->bar0 + offset);
}

static inline void course_write(const struct course_regs *r, u32 offset, u32 value)
{
	writel(value, r->bar0 + offset);
}

int course_map(struct course_regs *r, struct pci_dev *pdev);
void course_unmap(struct course_regs *r);
int course_identify(const struct course_regs *r);
int course_test_registers(const struct course_regs *r);

#endif
