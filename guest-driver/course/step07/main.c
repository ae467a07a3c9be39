// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 7 of docs/course: a completion queue, armed and still empty.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "step07/cq.h"

struct step07 {
	struct course_device d;
	struct course_cq cq;
};

static void step07_completion(struct course_device *d, const struct sg_eqe *e)
{
	struct step07 *s = container_of(d, struct step07, d);

	if (le32_to_cpu(e->id) == s->cq.cqn) /* else of a queue that is gone */
		course_cq_notify(&s->cq);
}

static int step07_use(struct step07 *s)
{
	struct sg_cqe e;
	int ret = course_cq_create(&s->cq, &s->d, 64);

	if (ret)
		return ret;
	ret = course_cq_wait(&s->cq, &e, 20);
	if (ret != -ETIMEDOUT) {
		pci_err(s->d.regs.pdev, "a completion of nothing\n");
		return -EPROTO;
	}
	pci_info(s->d.regs.pdev, "cq %u armed, no completion\n", s->cq.cqn);
	return 0;
}

static int step07_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct step07 *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	s->d.completion_event = step07_completion;
	ret = course_device_start(&s->d, pdev);
	if (ret)
		goto free;
	ret = step07_use(s);
	if (ret)
		goto stop;
	pci_set_drvdata(pdev, s);
	return 0;
stop:
	course_cq_destroy(&s->cq);
	course_device_stop(&s->d);
	course_cq_free(&s->cq);
free:
	kfree(s);
	return ret;
}

static void step07_remove(struct pci_dev *pdev)
{
	struct step07 *s = pci_get_drvdata(pdev);

	course_cq_destroy(&s->cq);
	course_device_stop(&s->d);
	course_cq_free(&s->cq);
	kfree(s);
}

static const struct pci_device_id step07_ids[] = {
	{ PCI_DEVICE(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID) }, {}
};
MODULE_DEVICE_TABLE(pci, step07_ids);

static struct pci_driver step07_driver = {
	.name = "course",
	.id_table = step07_ids,
	.probe = step07_probe,
	.remove = step07_remove,
};
module_pci_driver(step07_driver);

MODULE_DESCRIPTION("Staghorn course, step 7: completion queues");
MODULE_LICENSE("Dual BSD/GPL");
