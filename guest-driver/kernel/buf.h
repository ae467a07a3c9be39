/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Memory of queues, and page lists (buf.c). */
#ifndef SGH_BUF_H
#define SGH_BUF_H

#include <linux/types.h>

#include <staghorn/admin.h>
#include <staghorn/io.h>

struct ib_umem;
struct sgh_dev;

/* Kernel memory of a queue: chunks that are contiguous for the adapter, and their page list. */
#define SGH_CHUNK_SHIFT 18
#define SGH_CHUNK_SIZE BIT(SGH_CHUNK_SHIFT)

struct sgh_chunk {
	void *va;
	dma_addr_t dma;
};

struct sgh_buf {
	struct sgh_chunk *chunks;
	u32 num_chunks;
	u32 chunk_size; /* octets of each; one chunk if smaller than SGH_CHUNK_SIZE */
	size_t size;
};

/* The page list of a command. */
struct sgh_pbl {
	struct sg_page_list desc;
	__le64 *list; /* level 1: the pages; level 2: the leaves */
	dma_addr_t list_dma;
	size_t list_size;
	__le64 **leaves;
	u32 num_leaves;
};

/* buf.c: queue memory and page lists */
int sgh_buf_alloc(struct sgh_dev *dev, struct sgh_buf *buf, size_t size);
void sgh_buf_free(struct sgh_dev *dev, struct sgh_buf *buf);
int sgh_pbl_from_buf(struct sgh_dev *dev, struct sgh_pbl *pbl, const struct sgh_buf *buf);
int sgh_pbl_from_umem(struct sgh_dev *dev, struct sgh_pbl *pbl, struct ib_umem *umem,
		      unsigned long page_size, u32 count);
void sgh_pbl_free(struct sgh_dev *dev, struct sgh_pbl *pbl);

static inline void *sgh_buf_at(const struct sgh_buf *buf, size_t offset)
{
	return buf->chunks[offset >> SGH_CHUNK_SHIFT].va + (offset & (SGH_CHUNK_SIZE - 1));
}

#endif
