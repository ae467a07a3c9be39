// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 4 of docs/course: commands, polled.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "step04/admin.h"

#define STEP04_NOPS 40 /* more than two rings: slots and phases are used again */

struct step04 {
	struct course_regs regs;
	struct course_admin admin;
	struct course_ring aeq;
};

static int step04_use(struct step04 *s)
{
	const struct sg_admin_hdr nop = { .opcode = SG_ADMIN_NOP };
	struct sg_admin_rsp rsp;
	struct sg_caps caps;
	int i, ret = 0;

	for (i = 0; i < STEP04_NOPS && !ret; i++)
		ret = course_command(&s->admin, &nop, sizeof(nop), &rsp);
	if (ret)
		return ret;
	pci_info(s->regs.pdev, "%d commands\n", i);
	ret = course_query(&s->admin, SG_ADMIN_QUERY_CAPS, 0, &caps, sizeof(caps));
	if (!ret)
		pci_info(s->regs.pdev, "caps: max_qp %u max_cq %u max_mr %u features %#x\n",
			 le32_to_cpu(caps.max_qp), le32_to_cpu(caps.max_cq),
			 le32_to_cpu(caps.max_mr), le32_to_cpu(caps.features));
	return ret;
}

static int step04_start(struct step04 *s)
{
	struct course_regs *r = &s->regs;
	int ret = course_reset(r);

	if (!ret)
		ret = course_test_registers(r);
	if (!ret)
		ret = course_test_dma(r);
	if (!ret)
		ret = course_admin_alloc(&s->admin, r, 16);
	if (!ret)
		ret = course_ring_alloc(r, &s->aeq, 64, sizeof(struct sg_eqe));
	if (!ret)
		ret = course_enable(r, &s->admin.sq, &s->admin.cq, &s->aeq);
	if (!ret)
		ret = step04_use(s);
	return ret;
}

static void step04_stop(struct step04 *s)
{
	course_reset(&s->regs);
	course_ring_free(&s->regs, &s->aeq);
	course_admin_free(&s->admin);
}

static int step04_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct step04 *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	s->admin.regs = &s->regs;
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
	ret = step04_start(s);
	if (ret)
		goto stop;
	pci_set_drvdata(pdev, s);
	return 0;
stop:
	step04_stop(s);
	pci_clear_master(pdev);
unmap:
	course_unmap(&s->regs);
disable:
	pci_disable_device(pdev);
free:
	kfree(s);
	return ret;
}

static void step04_remove(struct pci_dev *pdev)
{
	struct step04 *s = pci_get_drvdata(pdev);

	step04_stop(s);
	pci_clear_master(pdev);
	course_unmap(&s->regs);
	pci_disable_device(pdev);
	kfree(s);
}

static const struct pci_device_id step04_ids[] = {
	{ PCI_DEVICE(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID) }, {}
};
MODULE_DEVICE_TABLE(pci, step04_ids);

static struct pci_driver step04_driver = {
	.name = "course",
	.id_table = step04_ids,
	.probe = step04_probe,
	.remove = step04_remove,
};
module_pci_driver(step04_driver);

MODULE_DESCRIPTION("Staghorn course, step 4: commands");
MODULE_LICENSE("Dual BSD/GPL");
