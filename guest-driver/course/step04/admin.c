// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 4 of docs/course: commands and their completions.
 */
#include <linux/module.h>

#include "step04/admin.h"

static unsigned int limit_ms = 30000;
module_param(limit_ms, uint, 0444);
MODULE_PARM_DESC(limit_ms, "time limit of a command");

/* What a free slot holds: no command begins so, and a doorbell that is too early is noticed. */
#define COURSE_FREE_SLOT 0xff

int course_admin_alloc(struct course_admin *a, struct course_regs *r, u32 entries)
{
	int ret;

	a->regs = r;
	a->pause = 1;
	mutex_init(&a->lock);
	init_waitqueue_head(&a->wait);
	ret = course_ring_alloc(r, &a->sq, entries, SG_ADMIN_CMD_SIZE);
	if (ret)
		return ret;
	memset(a->sq.mem, COURSE_FREE_SLOT, entries * SG_ADMIN_CMD_SIZE);
	return course_ring_alloc(r, &a->cq, entries, SG_ADMIN_RSP_SIZE);
}

void course_admin_free(struct course_admin *a)
{
	course_ring_free(a->regs, &a->cq);
	course_ring_free(a->regs, &a->sq);
}

/* Manual: driver.md, when the adapter is lost. */
bool course_lost(struct course_admin *a)
{
	u32 status = course_read(a->regs, SG_REG_STATUS);

	if (!a->lost &&
	    (status == U32_MAX || status & SG_STATUS_FATAL || !(status & SG_STATUS_READY))) {
		pci_err(a->regs->pdev, "the adapter is lost, status %#x\n", status);
		a->lost = true;
		course_reset(a->regs);
	}
	return a->lost;
}

/* The command is in memory before the doorbell says so. */
static void course_submit(struct course_admin *a, const void *cmd, size_t len)
{
	u8 *slot = course_ring_slot(&a->sq, a->sq.prod);
	struct sg_admin_hdr *hdr = (void *)slot;

	memcpy(slot, cmd, len);
	memset(slot + len, 0, SG_ADMIN_CMD_SIZE - len);
	hdr->cookie = cpu_to_le16(++a->cookie);
	dma_wmb();
	course_write(a->regs, SG_REG_ADMIN_DB, ++a->sq.prod);
}

/* Is there a completion at the consumer index?  Its last octet has the phase. */
static bool course_has_completion(struct course_admin *a)
{
	struct sg_admin_rsp *rsp = course_ring_slot(&a->cq, a->cq.cons);

	return sg_index_is_new(READ_ONCE(rsp->phase), a->cq.cons, a->cq.entries);
}

static void course_take(struct course_admin *a, struct sg_admin_rsp *rsp)
{
	dma_rmb(); /* the phase was read; now the rest */
	*rsp = *(struct sg_admin_rsp *)course_ring_slot(&a->cq, a->cq.cons);
	memset(course_ring_slot(&a->sq, a->cq.cons), COURSE_FREE_SLOT, SG_ADMIN_CMD_SIZE);
	course_write(a->regs, SG_REG_ADMIN_CI, ++a->cq.cons);
}

static int course_wait(struct course_admin *a)
{
	unsigned long end = jiffies + msecs_to_jiffies(limit_ms);

	while (!wait_event_timeout(a->wait, course_has_completion(a), a->pause)) {
		if (course_lost(a))
			return -EIO;
		if (a->paused)
			a->paused(a);
		if (time_after(jiffies, end)) {
			pci_err(a->regs->pdev, "a command takes more than %u ms\n", limit_ms);
			a->lost = true;
			course_reset(a->regs); /* only now is its memory ours again */
			return -ETIMEDOUT;
		}
	}
	return 0;
}

int course_command(struct course_admin *a, const void *cmd, size_t len, struct sg_admin_rsp *rsp)
{
	int ret = -EIO;

	mutex_lock(&a->lock);
	if (!a->lost) {
		course_submit(a, cmd, len);
		ret = course_wait(a);
	}
	if (!ret) {
		course_take(a, rsp);
		if (le16_to_cpu(rsp->cookie) != a->cookie)
			ret = -EPROTO;
		else if (rsp->status != SG_OK)
			ret = -EREMOTEIO;
		if (ret)
			pci_err(a->regs->pdev, "command %#x: status %u, cookie %u\n",
				*(const u8 *)cmd, rsp->status, le16_to_cpu(rsp->cookie));
	}
	mutex_unlock(&a->lock);
	return ret;
}

int course_make(struct course_admin *a, const void *cmd, size_t len, u32 *id)
{
	struct sg_admin_rsp rsp;
	int ret = course_command(a, cmd, len, &rsp);

	if (!ret)
		*id = le32_to_cpu(rsp.id);
	return ret;
}

int course_end(struct course_admin *a, u8 opcode, u32 id)
{
	struct sg_cmd_id c = { .hdr.opcode = opcode, .id = cpu_to_le32(id) };
	struct sg_admin_rsp rsp;

	return course_command(a, &c, sizeof(c), &rsp);
}

/* The answer is written before the completion, into memory that the command names. */
int course_query(struct course_admin *a, u8 opcode, u32 id, void *answer, size_t len)
{
	struct sg_cmd_query c = { .hdr.opcode = opcode };
	struct sg_admin_rsp rsp;
	dma_addr_t dma;
	void *buf;
	int ret;

	buf = dma_alloc_coherent(&a->regs->pdev->dev, len, &dma, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	c.out_addr = cpu_to_le64(dma);
	c.out_len = cpu_to_le32(len);
	c.id = cpu_to_le32(id);
	ret = course_command(a, &c, sizeof(c), &rsp);
	if (!ret)
		memcpy(answer, buf, len);
	dma_free_coherent(&a->regs->pdev->dev, len, buf, dma);
	return ret;
}
