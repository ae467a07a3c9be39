// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 5 of docs/course: commands that complete by interrupts.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "step05/device.h"

/* More events than the event queue has entries: several commands may share an event. */
#define STEP05_NOPS 200
#define STEP05_INTERRUPTS 130
#define STEP05_LIMIT 20000

struct step05 {
	struct course_device d;
};

static int step05_use(struct course_device *d)
{
	const struct sg_admin_hdr nop = { .opcode = SG_ADMIN_NOP };
	struct sg_admin_rsp rsp;
	int i, ret = 0;

	for (i = 0; i < STEP05_LIMIT && !ret; i++) {
		if (i >= STEP05_NOPS && READ_ONCE(d->async.interrupts) > STEP05_INTERRUPTS)
			break;
		ret = course_command(&d->admin, &nop, sizeof(nop), &rsp);
	}
	if (!ret)
		pci_info(d->regs.pdev, "%d commands, %u interrupts\n", i, d->async.interrupts);
	return ret;
}

static int step05_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct step05 *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	ret = course_device_start(&s->d, pdev);
	if (ret)
		goto free;
	ret = step05_use(&s->d);
	if (ret)
		goto stop;
	pci_set_drvdata(pdev, s);
	return 0;
stop:
	course_device_stop(&s->d);
free:
	kfree(s);
	return ret;
}

static void step05_remove(struct pci_dev *pdev)
{
	struct step05 *s = pci_get_drvdata(pdev);

	course_device_stop(&s->d);
	kfree(s);
}

static const struct pci_device_id step05_ids[] = {
	{ PCI_DEVICE(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID) }, {}
};
MODULE_DEVICE_TABLE(pci, step05_ids);

static struct pci_driver step05_driver = {
	.name = "course",
	.id_table = step05_ids,
	.probe = step05_probe,
	.remove = step05_remove,
};
module_pci_driver(step05_driver);

MODULE_DESCRIPTION("Staghorn course, step 5: interrupts and event queues");
MODULE_LICENSE("Dual BSD/GPL");
