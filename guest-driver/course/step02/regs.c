// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 2 of docs/course: maps the BARs, reads who the adapter is, tests register access.
 */
#include "step02/regs.h"

int course_map(struct course_regs *r, struct pci_dev *pdev)
{
	int ret = pci_request_regions(pdev, "course");

	if (ret)
		return ret;
	r->pdev = pdev;
	r->bar0 = pci_iomap(pdev, SG_BAR_REGS, SG_REGS_SIZE);
	r->bar2 = pci_iomap(pdev, SG_BAR_DOORBELL, SG_UAR_SIZE);
	if (r->bar0 && r->bar2)
		return 0;
	course_unmap(r);
	return -ENOMEM;
}

void course_unmap(struct course_regs *r)
{
	if (r->bar2)
		pci_iounmap(r->pdev, r->bar2);
	if (r->bar0)
		pci_iounmap(r->pdev, r->bar0);
	pci_release_regions(r->pdev);
}

/* Manual: driver.md, bring-up, steps 2 and 6. */
int course_identify(const struct course_regs *r)
{
	u32 magic = course_read(r, SG_REG_MAGIC);
	u32 version = course_read(r, SG_REG_VERSION);
	u32 lo, hi;
	u64 guid;
	u8 mac[6];

	if (magic != SG_MAGIC || version >> 16 != SG_VERSION_MAJOR) {
		pci_err(r->pdev, "magic %#x, version %#x: not an adapter that I know\n", magic,
			version);
		return -ENODEV;
	}
	lo = course_read(r, SG_REG_MAC_LO);
	hi = course_read(r, SG_REG_MAC_HI);
	mac[0] = lo;
	mac[1] = lo >> 8;
	mac[2] = lo >> 16;
	mac[3] = lo >> 24;
	mac[4] = hi;
	mac[5] = hi >> 8;
	guid = course_read(r, SG_REG_GUID_LO) | (u64)course_read(r, SG_REG_GUID_HI) << 32;
	pci_info(r->pdev, "version %u.%u mac %pM guid %016llx\n", version >> 16, version & 0xffff,
		 mac, guid);
	pci_info(r->pdev, "vectors %u mtu %u speed %u\n", course_read(r, SG_REG_VECTORS),
		 course_read(r, SG_REG_LINK_MTU), course_read(r, SG_REG_LINK_SPEED));
	return 0;
}

/* The register TEST_SCRATCH reads as the inverse of what was written. */
int course_test_registers(const struct course_regs *r)
{
	static const u32 patterns[] = { 0, 0xffffffff, 0x5aa5c33c };
	u32 found;
	int i;

	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		course_write(r, SG_REG_TEST_SCRATCH, patterns[i]);
		found = course_read(r, SG_REG_TEST_SCRATCH);
		if (found != ~patterns[i]) {
			pci_err(r->pdev, "scratch: wrote %#x, read %#x\n", patterns[i], found);
			return -EIO;
		}
	}
	return 0;
}
