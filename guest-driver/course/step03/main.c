// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 3 of docs/course: reset, rings, READY.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include <staghorn/admin.h>
#include <staghorn/io.h>

#include "step03/bringup.h"

struct step03 {
	struct course_regs regs;
	struct course_ring asq, acq, aeq;
};

static int step03_start(struct step03 *s)
{
	struct course_regs *r = &s->regs;
	int ret = course_reset(r);

	if (!ret)
		ret = course_test_registers(r);
	if (!ret)
		ret = course_test_dma(r);
	if (!ret)
		ret = course_ring_alloc(r, &s->asq, 16, SG_ADMIN_CMD_SIZE);
	if (!ret)
		ret = course_ring_alloc(r, &s->acq, 16, SG_ADMIN_RSP_SIZE);
	if (!ret)
		ret = course_ring_alloc(r, &s->aeq, 64, sizeof(struct sg_eqe));
	if (!ret)
		ret = course_enable(r, &s->asq, &s->acq, &s->aeq);
	if (!ret)
		pci_info(r->pdev, "ready, status %#x\n", course_read(r, SG_REG_STATUS));
	return ret;
}

/* The reset comes first: only then is the rings' memory ours again. */
static void step03_stop(struct step03 *s)
{
	course_reset(&s->regs);
	course_ring_free(&s->regs, &s->aeq);
	course_ring_free(&s->regs, &s->acq);
	course_ring_free(&s->regs, &s->asq);
}

static int step03_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct step03 *s = kzalloc(sizeof(*s), GFP_KERNEL);
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
		ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		goto unmap;
	pci_set_master(pdev);
	ret = step03_start(s);
	if (ret)
		goto stop;
	pci_set_drvdata(pdev, s);
	return 0;
stop:
	step03_stop(s);
	pci_clear_master(pdev);
unmap:
	course_unmap(&s->regs);
disable:
	pci_disable_device(pdev);
free:
	kfree(s);
	return ret;
}

static void step03_remove(struct pci_dev *pdev)
{
	struct step03 *s = pci_get_drvdata(pdev);

	step03_stop(s);
	pci_clear_master(pdev);
	course_unmap(&s->regs);
	pci_disable_device(pdev);
	kfree(s);
}

static const struct pci_device_id step03_ids[] = {
	{ PCI_DEVICE(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID) }, {}
};
MODULE_DEVICE_TABLE(pci, step03_ids);

static struct pci_driver step03_driver = {
	.name = "course",
	.id_table = step03_ids,
	.probe = step03_probe,
	.remove = step03_remove,
};
module_pci_driver(step03_driver);

MODULE_DESCRIPTION("Staghorn course, step 3: bring-up");
MODULE_LICENSE("Dual BSD/GPL");
