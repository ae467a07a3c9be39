/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Step 7 of docs/course: completion queues.  Manual: queues.md, completions, arming a CQ.
 */
#ifndef COURSE_CQ_H
#define COURSE_CQ_H

#include "step05/device.h"

struct course_cq {
	struct course_device *d;
	struct course_ring ring;
	struct sg_cq_record *record;
	dma_addr_t record_dma;
	u32 cqn;
	wait_queue_head_t wait;
	bool notified; /* its event came since it was armed */
};

/* Doorbells of BAR 2 have 64 bits: a number and an index. */
static inline void course_doorbell(struct course_device *d, u32 offset, u32 number, u32 index)
{
	writeq((u64)index << 32 | number, d->regs.bar2 + offset);
}

int course_cq_create(struct course_cq *cq, struct course_device *d, u32 entries);
void course_cq_destroy(struct course_cq *cq);
/* After course_device_stop(), or course_cq_destroy(). */
void course_cq_free(struct course_cq *cq);
bool course_cq_poll(struct course_cq *cq, struct sg_cqe *e);
void course_cq_arm(struct course_cq *cq);
/* Takes one completion, and sleeps until there is one. */
int course_cq_wait(struct course_cq *cq, struct sg_cqe *e, unsigned int ms);
/* The event COMPLETION of this queue. */
void course_cq_notify(struct course_cq *cq);

#endif
