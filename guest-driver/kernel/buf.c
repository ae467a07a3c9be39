// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queue memory of kernel consumers, and page lists.
 *
 * A page list takes as few levels as possible (admin.h): none for contiguous memory, one array
 * up to SGH_LIST_MAX octets, beyond that an array of 4 KiB leaves, so that registering much memory
 * never needs much contiguous memory.  The adapter reads a list once, while it executes the
 * command, so lists live only as long as the command.
 */
#include <linux/dma-mapping.h>

#include "buf.h"
#include "dev.h"

#define SGH_LIST_MAX (16u * SG_PAGE_SIZE)
#define SGH_LEAF_ENTRIES (SG_PAGE_SIZE / sizeof(__le64))

int sgh_buf_alloc(struct sgh_dev *dev, struct sgh_buf *buf, size_t size)
{
	u32 i;

	size = ALIGN(size, SG_PAGE_SIZE);
	buf->size = size;
	buf->chunk_size = min_t(size_t, size, SGH_CHUNK_SIZE);
	buf->num_chunks = 0;
	buf->chunks =
		kvcalloc(DIV_ROUND_UP(size, buf->chunk_size), sizeof(*buf->chunks), GFP_KERNEL);
	if (!buf->chunks)
		return -ENOMEM;
	for (i = 0; i < DIV_ROUND_UP(size, buf->chunk_size); i++) {
		struct sgh_chunk *c = &buf->chunks[i];

		c->va = dma_alloc_coherent(&dev->pdev->dev, buf->chunk_size, &c->dma, GFP_KERNEL);
		if (!c->va) {
			sgh_buf_free(dev, buf);
			return -ENOMEM;
		}
		buf->num_chunks++;
	}
	return 0;
}

void sgh_buf_free(struct sgh_dev *dev, struct sgh_buf *buf)
{
	u32 i;

	for (i = 0; i < buf->num_chunks; i++)
		dma_free_coherent(&dev->pdev->dev, buf->chunk_size, buf->chunks[i].va,
				  buf->chunks[i].dma);
	kvfree(buf->chunks);
	buf->chunks = NULL;
	buf->num_chunks = 0;
}

static int sgh_pbl_leaves(struct sgh_dev *dev, struct sgh_pbl *pbl, u32 count)
{
	struct device *device = &dev->pdev->dev;
	u32 n = DIV_ROUND_UP(count, SGH_LEAF_ENTRIES);

	pbl->leaves = kvcalloc(n, sizeof(*pbl->leaves), GFP_KERNEL);
	if (!pbl->leaves)
		return -ENOMEM;
	for (pbl->num_leaves = 0; pbl->num_leaves < n; pbl->num_leaves++) {
		dma_addr_t dma;

		pbl->leaves[pbl->num_leaves] =
			dma_alloc_coherent(device, SG_PAGE_SIZE, &dma, GFP_KERNEL);
		if (!pbl->leaves[pbl->num_leaves])
			return -ENOMEM;
		pbl->list[pbl->num_leaves] = cpu_to_le64(dma);
	}
	return 0;
}

/* Memory for count entries.  On failure sgh_pbl_free() releases what was allocated. */
static int sgh_pbl_alloc(struct sgh_dev *dev, struct sgh_pbl *pbl, u32 count)
{
	u32 n = count;

	pbl->desc.levels = 1;
	if (count * sizeof(__le64) > SGH_LIST_MAX) {
		n = DIV_ROUND_UP(count, SGH_LEAF_ENTRIES);
		pbl->desc.levels = 2;
	}
	pbl->list_size = ALIGN(n * sizeof(__le64), SG_PAGE_SIZE);
	pbl->list = dma_alloc_coherent(&dev->pdev->dev, pbl->list_size, &pbl->list_dma, GFP_KERNEL);
	if (!pbl->list)
		return -ENOMEM;
	pbl->desc.addr = cpu_to_le64(pbl->list_dma);
	return pbl->desc.levels == 2 ? sgh_pbl_leaves(dev, pbl, count) : 0;
}

static void sgh_pbl_set(struct sgh_pbl *pbl, u32 i, dma_addr_t page)
{
	if (pbl->desc.levels == 2)
		pbl->leaves[i / SGH_LEAF_ENTRIES][i % SGH_LEAF_ENTRIES] = cpu_to_le64(page);
	else
		pbl->list[i] = cpu_to_le64(page);
}

void sgh_pbl_free(struct sgh_dev *dev, struct sgh_pbl *pbl)
{
	struct device *device = &dev->pdev->dev;
	u32 i;

	for (i = 0; i < pbl->num_leaves; i++)
		dma_free_coherent(device, SG_PAGE_SIZE, pbl->leaves[i], le64_to_cpu(pbl->list[i]));
	kvfree(pbl->leaves);
	if (pbl->list)
		dma_free_coherent(device, pbl->list_size, pbl->list, pbl->list_dma);
	memset(pbl, 0, sizeof(*pbl));
}

int sgh_pbl_from_buf(struct sgh_dev *dev, struct sgh_pbl *pbl, const struct sgh_buf *buf)
{
	u32 pages = buf->size / SG_PAGE_SIZE, i;
	int ret;

	memset(pbl, 0, sizeof(*pbl));
	pbl->desc.count = cpu_to_le32(pages);
	pbl->desc.page_shift = SG_PAGE_SHIFT;
	if (buf->num_chunks == 1) {
		pbl->desc.addr = cpu_to_le64(buf->chunks[0].dma);
		return 0;
	}
	ret = sgh_pbl_alloc(dev, pbl, pages);
	if (ret) {
		sgh_pbl_free(dev, pbl);
		return ret;
	}
	for (i = 0; i < pages; i++) {
		size_t offset = (size_t)i * SG_PAGE_SIZE;

		sgh_pbl_set(pbl, i,
			    buf->chunks[offset >> SGH_CHUNK_SHIFT].dma +
				    (offset & (SGH_CHUNK_SIZE - 1)));
	}
	return 0;
}

/* The first count pages of user memory, which umem pins. */
int sgh_pbl_from_umem(struct sgh_dev *dev, struct sgh_pbl *pbl, struct ib_umem *umem,
		      unsigned long page_size, u32 count)
{
	struct ib_block_iter it;
	bool contiguous = true;
	dma_addr_t first = 0;
	u32 i = 0;
	int ret;

	memset(pbl, 0, sizeof(*pbl));
	rdma_umem_for_each_dma_block(umem, &it, page_size) {
		dma_addr_t page = rdma_block_iter_dma_address(&it);

		if (i == 0)
			first = page;
		else if (page != first + (u64)i * page_size)
			contiguous = false;
		if (++i == count || !contiguous)
			break;
	}
	if (i < count && contiguous)
		return -EINVAL;

	pbl->desc.count = cpu_to_le32(count);
	pbl->desc.page_shift = __ffs(page_size);
	if (contiguous) {
		pbl->desc.addr = cpu_to_le64(first);
		return 0;
	}

	ret = sgh_pbl_alloc(dev, pbl, count);
	if (ret)
		goto err;
	i = 0;
	rdma_umem_for_each_dma_block(umem, &it, page_size) {
		sgh_pbl_set(pbl, i, rdma_block_iter_dma_address(&it));
		if (++i == count)
			break;
	}
	ret = i == count ? 0 : -EINVAL;
	if (ret)
		goto err;
	return 0;

err:
	sgh_pbl_free(dev, pbl);
	return ret;
}
