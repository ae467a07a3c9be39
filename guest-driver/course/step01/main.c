// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 1 of docs/course: a module that claims the adapter, and gives it back.
 */
#include <linux/module.h>
#include <linux/pci.h>

#include <staghorn/regs.h>

static int step01_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int ret = pci_enable_device_mem(pdev);

	if (ret)
		return ret;
	pci_info(pdev, "claimed, revision %u\n", pdev->revision);
	return 0;
}

static void step01_remove(struct pci_dev *pdev)
{
	pci_disable_device(pdev);
	pci_info(pdev, "given back\n");
}

static const struct pci_device_id step01_ids[] = {
	{ PCI_DEVICE(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID) }, {}
};
MODULE_DEVICE_TABLE(pci, step01_ids);

static struct pci_driver step01_driver = {
	.name = "course",
	.id_table = step01_ids,
	.probe = step01_probe,
	.remove = step01_remove,
};
module_pci_driver(step01_driver);

MODULE_DESCRIPTION("Staghorn course, step 1: the driver claims the adapter");
MODULE_LICENSE("Dual BSD/GPL");
