// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 6 of docs/course: a domain, and two regions in it.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "step05/device.h"
#include "step06/memory.h"

#define STEP06_BUF SZ_64K
#define STEP06_PAGES 16

struct step06 {
	struct course_device d;
	u32 pd, stag, scattered;
	void *buf;
	dma_addr_t buf_dma;
	struct page *page[STEP06_PAGES];
	__le64 *list; /* the pages' bus addresses, for the adapter */
	dma_addr_t list_dma;
	int mapped;
};

static int step06_map_pages(struct step06 *s)
{
	struct device *dev = &s->d.regs.pdev->dev;
	dma_addr_t dma;

	for (; s->mapped < STEP06_PAGES; s->mapped++) {
		s->page[s->mapped] = alloc_page(GFP_KERNEL);
		if (!s->page[s->mapped])
			return -ENOMEM;
		dma = dma_map_page(dev, s->page[s->mapped], 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
		if (dma_mapping_error(dev, dma)) {
			__free_page(s->page[s->mapped]);
			return -ENOMEM;
		}
		s->list[s->mapped] = cpu_to_le64(dma);
	}
	return 0;
}

static int step06_make(struct step06 *s)
{
	struct device *dev = &s->d.regs.pdev->dev;
	const u32 access = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE;
	struct sg_page_list pages;
	int ret;

	s->buf = dma_alloc_coherent(dev, STEP06_BUF, &s->buf_dma, GFP_KERNEL);
	s->list = dma_alloc_coherent(dev, SZ_4K, &s->list_dma, GFP_KERNEL);
	if (!s->buf || !s->list)
		return -ENOMEM;
	ret = step06_map_pages(s);
	if (!ret)
		ret = course_create_pd(&s->d.admin, &s->pd);
	if (ret)
		return ret;
	pages = course_contiguous(s->buf_dma, STEP06_BUF);
	ret = course_register(&s->d.admin, s->pd, &pages, s->buf_dma, STEP06_BUF, access, &s->stag);
	if (ret)
		return ret;
	pages = course_scattered(s->list_dma, STEP06_PAGES);
	return course_register(&s->d.admin, s->pd, &pages, 0, STEP06_PAGES * SG_PAGE_SIZE, access,
			       &s->scattered);
}

/* Regions before their domain; then nobody accesses their memory any more. */
static void step06_end(struct step06 *s)
{
	if (s->scattered)
		course_end(&s->d.admin, SG_ADMIN_DEREG_MR, s->scattered);
	if (s->stag)
		course_end(&s->d.admin, SG_ADMIN_DEREG_MR, s->stag);
	if (s->pd)
		course_end(&s->d.admin, SG_ADMIN_DESTROY_PD, s->pd);
}

static void step06_free(struct step06 *s, struct device *dev)
{
	while (s->mapped--) {
		dma_unmap_page(dev, le64_to_cpu(s->list[s->mapped]), PAGE_SIZE, DMA_BIDIRECTIONAL);
		__free_page(s->page[s->mapped]);
	}
	if (s->list)
		dma_free_coherent(dev, SZ_4K, s->list, s->list_dma);
	if (s->buf)
		dma_free_coherent(dev, STEP06_BUF, s->buf, s->buf_dma);
	kfree(s);
}

static int step06_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct step06 *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	ret = course_device_start(&s->d, pdev);
	if (ret)
		goto free;
	ret = step06_make(s);
	if (ret)
		goto stop;
	pci_set_drvdata(pdev, s);
	return 0;
stop:
	step06_end(s);
	course_device_stop(&s->d);
free:
	step06_free(s, &pdev->dev);
	return ret;
}

static void step06_remove(struct pci_dev *pdev)
{
	struct step06 *s = pci_get_drvdata(pdev);

	step06_end(s);
	course_device_stop(&s->d);
	step06_free(s, &pdev->dev);
}

static const struct pci_device_id step06_ids[] = {
	{ PCI_DEVICE(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID) }, {}
};
MODULE_DEVICE_TABLE(pci, step06_ids);

static struct pci_driver step06_driver = {
	.name = "course",
	.id_table = step06_ids,
	.probe = step06_probe,
	.remove = step06_remove,
};
module_pci_driver(step06_driver);

MODULE_DESCRIPTION("Staghorn course, step 6: memory");
MODULE_LICENSE("Dual BSD/GPL");
