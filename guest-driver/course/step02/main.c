// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 2 of docs/course: the driver reads the adapter's registers.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "step02/regs.h"

struct step02 {
	struct course_regs regs;
};

static int step02_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct step02 *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	ret = pci_enable_device_mem(pdev);
	if (ret)
		goto free;
	ret = course_map(&s->regs, pdev);
	if (ret)
		goto disable;
	ret = course_identify(&s->regs);
	if (!ret)
		ret = course_test_registers(&s->regs);
	if (ret)
		goto unmap;
	pci_set_drvdata(pdev, s);
	return 0;
unmap:
	course_unmap(&s->regs);
disable:
	pci_disable_device(pdev);
free:
	kfree(s);
	return ret;
}

static void step02_remove(struct pci_dev *pdev)
{
	struct step02 *s = pci_get_drvdata(pdev);

	course_unmap(&s->regs);
	pci_disable_device(pdev);
	kfree(s);
}

static const struct pci_device_id step02_ids[] = {
	{ PCI_DEVICE(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID) }, {}
};
MODULE_DEVICE_TABLE(pci, step02_ids);

static struct pci_driver step02_driver = {
	.name = "course",
	.id_table = step02_ids,
	.probe = step02_probe,
	.remove = step02_remove,
};
module_pci_driver(step02_driver);

MODULE_DESCRIPTION("Staghorn course, step 2: registers");
MODULE_LICENSE("Dual BSD/GPL");
