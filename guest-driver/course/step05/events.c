// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 5 of docs/course: takes events, arms queues.  Queue n has vector n.
 */
#include <linux/interrupt.h>

#include "step05/events.h"

#define COURSE_EQ_ENTRIES 64

int course_eq_alloc(struct course_eq *eq, struct course_regs *r, u32 eqn)
{
	eq->regs = r;
	eq->eqn = eqn;
	spin_lock_init(&eq->lock);
	return course_ring_alloc(r, &eq->ring, COURSE_EQ_ENTRIES, sizeof(struct sg_eqe));
}

void course_eq_free(struct course_eq *eq)
{
	if (eq->regs)
		course_ring_free(eq->regs, &eq->ring);
}

/* If events lie beyond the index already, the vector is raised at once: none is missed. */
void course_eq_arm(struct course_eq *eq)
{
	course_write(eq->regs, SG_REG_EQ_DB + 4 * eq->eqn,
		     SG_EQ_DB_ARM | (eq->ring.cons & SG_EQ_DB_CI_MASK));
}

/* Is there an event at the consumer index?  Its last octet has the phase. */
static const struct sg_eqe *course_eq_next(struct course_eq *eq)
{
	const struct sg_eqe *e = course_ring_slot(&eq->ring, eq->ring.cons);

	if (!sg_index_is_new(READ_ONCE(e->phase), eq->ring.cons, eq->ring.entries))
		return NULL;
	dma_rmb();
	return e;
}

/* Without events it writes nothing: the queue is still armed then, or was never. */
void course_eq_poll(struct course_eq *eq)
{
	const struct sg_eqe *e;
	unsigned long flags;
	bool any = false;

	spin_lock_irqsave(&eq->lock, flags);
	while ((e = course_eq_next(eq))) {
		eq->event(eq->context, e);
		eq->ring.cons++;
		any = true;
	}
	if (any)
		course_eq_arm(eq);
	spin_unlock_irqrestore(&eq->lock, flags);
}

static irqreturn_t course_irq(int irq, void *data)
{
	struct course_eq *eq = data;

	WRITE_ONCE(eq->interrupts, eq->interrupts + 1);
	course_eq_poll(eq);
	return IRQ_HANDLED;
}

int course_eq_request_irq(struct course_eq *eq)
{
	return request_irq(pci_irq_vector(eq->regs->pdev, eq->eqn), course_irq, 0, "course", eq);
}

void course_eq_free_irq(struct course_eq *eq)
{
	free_irq(pci_irq_vector(eq->regs->pdev, eq->eqn), eq);
}
