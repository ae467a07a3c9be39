/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Step 5 of docs/course: event queues and their interrupts.  Manual: queues.md, event queues.
 */
#ifndef COURSE_EVENTS_H
#define COURSE_EVENTS_H

#include <linux/spinlock.h>

#include <staghorn/io.h>

#include "step03/bringup.h"

struct course_eq {
	struct course_regs *regs;
	struct course_ring ring;
	spinlock_t lock; /* the interrupt, and whoever looks without one */
	u32 eqn;
	unsigned int interrupts;
	/* Gets each event, with the lock held and interrupts off. */
	void (*event)(void *context, const struct sg_eqe *e);
	void *context;
};

int course_eq_alloc(struct course_eq *eq, struct course_regs *r, u32 eqn);
void course_eq_free(struct course_eq *eq);
int course_eq_request_irq(struct course_eq *eq);
void course_eq_free_irq(struct course_eq *eq);
void course_eq_arm(struct course_eq *eq);
/* Takes what is there; arms the queue again if that was anything. */
void course_eq_poll(struct course_eq *eq);

#endif
