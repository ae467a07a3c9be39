// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 7 of docs/course: completions, polled and waited for.
 */
#include "step06/memory.h"
#include "step07/cq.h"

int course_cq_create(struct course_cq *cq, struct course_device *d, u32 entries)
{
	struct sg_cmd_create_cq c = {
		.hdr.opcode = SG_ADMIN_CREATE_CQ,
		.entries = cpu_to_le32(entries),
		.eqn = cpu_to_le32(d->completions.eqn),
	};
	int ret = course_ring_alloc(&d->regs, &cq->ring, entries, sizeof(struct sg_cqe));

	cq->d = d;
	init_waitqueue_head(&cq->wait);
	if (ret)
		return ret;
	cq->record = dma_alloc_coherent(&d->regs.pdev->dev, sizeof(*cq->record), &cq->record_dma,
					GFP_KERNEL);
	if (!cq->record)
		return -ENOMEM;
	c.pages = course_contiguous(cq->ring.dma, entries * sizeof(struct sg_cqe));
	c.record = cpu_to_le64(cq->record_dma);
	return course_make(&d->admin, &c, sizeof(c), &cq->cqn);
}

void course_cq_destroy(struct course_cq *cq)
{
	if (cq->cqn)
		course_end(&cq->d->admin, SG_ADMIN_DESTROY_CQ, cq->cqn);
	cq->cqn = 0;
}

void course_cq_free(struct course_cq *cq)
{
	if (cq->record)
		dma_free_coherent(&cq->d->regs.pdev->dev, sizeof(*cq->record), cq->record,
				  cq->record_dma);
	if (cq->d)
		course_ring_free(&cq->d->regs, &cq->ring);
	cq->record = NULL;
}

/* The record tells the adapter how far we are; it may read it at any time. */
bool course_cq_poll(struct course_cq *cq, struct sg_cqe *e)
{
	const struct sg_cqe *slot = course_ring_slot(&cq->ring, cq->ring.cons);

	if (!sg_index_is_new(READ_ONCE(slot->flags_phase), cq->ring.cons, cq->ring.entries))
		return false;
	dma_rmb(); /* the phase was read; now the rest, and what it reports */
	*e = *slot;
	cq->ring.cons++;
	/* The copy above comes first: from here on the adapter may use the slot again. */
	smp_store_release(&cq->record->consumer_index, cpu_to_le32(cq->ring.cons));
	return true;
}

/* One event for the next completion, or at once for one that is there since the last event. */
void course_cq_arm(struct course_cq *cq)
{
	WRITE_ONCE(cq->notified, false);
	course_doorbell(cq->d, SG_DB_CQ_ARM, cq->cqn, cq->ring.cons);
}

void course_cq_notify(struct course_cq *cq)
{
	WRITE_ONCE(cq->notified, true);
	wake_up(&cq->wait);
}

/* Arm, look once more, and only then sleep: what comes after the arming raises an event. */
int course_cq_wait(struct course_cq *cq, struct sg_cqe *e, unsigned int ms)
{
	unsigned long left = msecs_to_jiffies(ms);

	while (!course_cq_poll(cq, e)) {
		course_cq_arm(cq);
		if (course_cq_poll(cq, e))
			return 0;
		left = wait_event_timeout(cq->wait, READ_ONCE(cq->notified), left);
		if (!left)
			return course_cq_poll(cq, e) ? 0 : -ETIMEDOUT;
	}
	return 0;
}
