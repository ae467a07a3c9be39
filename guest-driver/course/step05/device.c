// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 5 of docs/course: from the PCI function to an adapter that executes commands and raises
 * interrupts, and back.  Manual: driver.md, bring-up and teardown.
 */
#include <linux/iopoll.h>

#include "step05/device.h"

#define COURSE_VECTORS 2
#define COURSE_ADMIN_ENTRIES 16
#define COURSE_IRQ_US (5 * USEC_PER_SEC)

static void course_async(void *context, const struct sg_eqe *e)
{
	struct course_device *d = context;

	if (e->event == SG_EV_ADMIN)
		wake_up(&d->admin.wait);
	else if (d->async_event)
		d->async_event(d, e);
}

static void course_completion(void *context, const struct sg_eqe *e)
{
	struct course_device *d = context;

	if (d->completion_event)
		d->completion_event(d, e);
}

/* An interrupt may be lost; then the queue is armed no more until somebody looks. */
static void course_look(struct course_admin *a)
{
	struct course_device *d = container_of(a, struct course_device, admin);

	course_eq_poll(&d->async);
}

static int course_test_irq(struct course_device *d)
{
	unsigned int count;
	int ret;

	course_write(&d->regs, SG_REG_TEST_IRQ, 0);
	ret = read_poll_timeout(READ_ONCE, count, count, 100, COURSE_IRQ_US, false,
				d->async.interrupts);
	if (ret)
		pci_err(d->regs.pdev, "the test interrupt does not come\n");
	return ret;
}

static int course_create_eq(struct course_device *d)
{
	struct sg_cmd_create_eq c = {
		.hdr.opcode = SG_ADMIN_CREATE_EQ,
		.base = cpu_to_le64(d->completions.ring.dma),
		.entries = cpu_to_le32(d->completions.ring.entries),
		.eqn = cpu_to_le32(d->completions.eqn),
		.vector = cpu_to_le32(d->completions.eqn),
	};
	struct sg_admin_rsp rsp;
	int ret = course_command(&d->admin, &c, sizeof(c), &rsp);

	if (!ret)
		course_eq_arm(&d->completions);
	return ret;
}

/* The reset ends whatever the adapter does; after it the memory is ours again. */
static void course_free(struct course_device *d)
{
	course_reset(&d->regs);
	course_eq_free(&d->completions);
	course_eq_free(&d->async);
	course_admin_free(&d->admin);
}

static int course_prepare(struct course_device *d)
{
	struct course_regs *r = &d->regs;
	int ret = course_reset(r);

	if (!ret)
		ret = course_test_registers(r);
	if (!ret)
		ret = course_test_dma(r);
	if (!ret)
		ret = course_admin_alloc(&d->admin, r, COURSE_ADMIN_ENTRIES);
	if (!ret)
		ret = course_eq_alloc(&d->async, r, 0);
	if (!ret)
		ret = course_eq_alloc(&d->completions, r, 1);
	return ret;
}

/* MSI-X, then ENABLE, then the queue for completions. */
static int course_go(struct course_device *d)
{
	struct pci_dev *pdev = d->regs.pdev;
	int ret;

	ret = pci_alloc_irq_vectors(pdev, COURSE_VECTORS, COURSE_VECTORS, PCI_IRQ_MSIX);
	if (ret < 0)
		return ret;
	ret = course_eq_request_irq(&d->async);
	if (ret)
		goto vectors;
	ret = course_eq_request_irq(&d->completions);
	if (ret)
		goto irq;
	ret = course_test_irq(d);
	if (!ret)
		ret = course_enable(&d->regs, &d->admin.sq, &d->admin.cq, &d->async.ring);
	if (ret)
		goto both;
	course_eq_arm(&d->async);
	d->admin.pause = HZ;
	d->admin.paused = course_look;
	ret = course_create_eq(d);
	if (!ret)
		return 0;
	course_reset(&d->regs); /* before the handlers go */
both:
	course_eq_free_irq(&d->completions);
irq:
	course_eq_free_irq(&d->async);
vectors:
	pci_free_irq_vectors(pdev);
	return ret;
}

int course_device_start(struct course_device *d, struct pci_dev *pdev)
{
	int ret = pci_enable_device_mem(pdev);

	if (ret)
		return ret;
	d->async.event = course_async;
	d->completions.event = course_completion;
	d->async.context = d;
	d->completions.context = d;
	d->admin.regs = &d->regs;
	ret = course_map(&d->regs, pdev);
	if (ret)
		goto disable;
	ret = course_identify(&d->regs);
	if (!ret)
		ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		goto unmap;
	pci_set_master(pdev);
	ret = course_prepare(d);
	if (!ret)
		ret = course_go(d);
	if (!ret)
		return 0;
	course_free(d);
	pci_clear_master(pdev);
unmap:
	course_unmap(&d->regs);
disable:
	pci_disable_device(pdev);
	return ret;
}

/* All objects but the event queue are gone. */
void course_device_stop(struct course_device *d)
{
	struct pci_dev *pdev = d->regs.pdev;

	course_end(&d->admin, SG_ADMIN_DESTROY_EQ, d->completions.eqn);
	course_reset(&d->regs);
	course_eq_free_irq(&d->completions);
	course_eq_free_irq(&d->async);
	pci_free_irq_vectors(pdev);
	course_free(d);
	pci_clear_master(pdev);
	course_unmap(&d->regs);
	pci_disable_device(pdev);
}
