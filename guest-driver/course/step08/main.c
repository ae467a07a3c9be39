// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 8 of docs/course: a queue pair without a peer: what is posted comes back flushed.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "step06/memory.h"
#include "step08/qp.h"

#define STEP08_POSTS 8

struct step08 {
	struct course_device d;
	struct course_cq cq;
	struct course_qp qp;
	u32 pd, stag;
	void *buf;
	dma_addr_t dma;
};

static void step08_completion(struct course_device *d, const struct sg_eqe *e)
{
	struct step08 *s = container_of(d, struct step08, d);

	if (le32_to_cpu(e->id) == s->cq.cqn)
		course_cq_notify(&s->cq);
}

static int step08_make(struct step08 *s)
{
	struct device *dev = &s->d.regs.pdev->dev;
	struct sg_page_list pages;
	int ret;

	s->buf = dma_alloc_coherent(dev, SZ_4K, &s->dma, GFP_KERNEL);
	if (!s->buf)
		return -ENOMEM;
	pages = course_contiguous(s->dma, SZ_4K);
	ret = course_create_pd(&s->d.admin, &s->pd);
	if (!ret)
		ret = course_register(&s->d.admin, s->pd, &pages, s->dma, SZ_4K,
				      SG_ACCESS_LOCAL_WRITE, &s->stag);
	if (!ret)
		ret = course_cq_create(&s->cq, &s->d, 64);
	if (!ret)
		ret = course_qp_create(&s->qp, &s->d, s->pd, &s->cq);
	return ret;
}

/* In IDLE entries wait; in ERROR they come back, those of the send queue first. */
static int step08_use(struct step08 *s)
{
	struct course_wr wr = { .addr = s->dma, .length = 64, .lkey = s->stag };
	unsigned int flushed[2] = {};
	struct sg_cqe e;
	int i, ret;

	for (i = 0, ret = 0; i < STEP08_POSTS && !ret; i++) {
		wr.id = i;
		ret = course_post_send(&s->qp, &wr);
		if (!ret)
			ret = course_post_recv(&s->qp, &wr);
	}
	if (!ret)
		ret = course_qp_modify(&s->qp, SG_QP_ERROR);
	for (i = 0; i < 2 * STEP08_POSTS && !ret; i++) {
		ret = course_cq_wait(&s->cq, &e, 5000);
		if (ret)
			break;
		if (e.status != SG_WC_FLUSH_ERR)
			ret = -EPROTO;
		course_qp_completed(&s->qp, &e);
		flushed[!!(e.flags_phase & SG_CQE_RECV)]++;
	}
	pci_info(s->d.regs.pdev, "flushed %u sends %u receives\n", flushed[0], flushed[1]);
	return ret;
}

/* Each object before those that it refers to. */
static void step08_end(struct step08 *s)
{
	course_qp_destroy(&s->qp);
	course_cq_destroy(&s->cq);
	if (s->stag)
		course_end(&s->d.admin, SG_ADMIN_DEREG_MR, s->stag);
	if (s->pd)
		course_end(&s->d.admin, SG_ADMIN_DESTROY_PD, s->pd);
	course_device_stop(&s->d);
	course_qp_free(&s->qp);
	course_cq_free(&s->cq);
	if (s->buf)
		dma_free_coherent(&s->d.regs.pdev->dev, SZ_4K, s->buf, s->dma);
	kfree(s);
}

static int step08_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct step08 *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	s->d.completion_event = step08_completion;
	ret = course_device_start(&s->d, pdev);
	if (ret) {
		kfree(s);
		return ret;
	}
	pci_set_drvdata(pdev, s);
	ret = step08_make(s);
	if (!ret)
		ret = step08_use(s);
	if (ret)
		step08_end(s);
	return ret;
}

static void step08_remove(struct pci_dev *pdev)
{
	step08_end(pci_get_drvdata(pdev));
}

static const struct pci_device_id step08_ids[] = {
	{ PCI_DEVICE(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID) }, {}
};
MODULE_DEVICE_TABLE(pci, step08_ids);

static struct pci_driver step08_driver = {
	.name = "course",
	.id_table = step08_ids,
	.probe = step08_probe,
	.remove = step08_remove,
};
module_pci_driver(step08_driver);

MODULE_DESCRIPTION("Staghorn course, step 8: queue pairs");
MODULE_LICENSE("Dual BSD/GPL");
