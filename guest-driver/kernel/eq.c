// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Interrupts and event queues.
 *
 * Vector 0 serves the admin completions and the async event queue.  The interrupt only moves async
 * events into a fifo.  An ordered workqueue takes them from there, because most of them lead to
 * commands or to upcalls that sleep, and because connection events must keep their order.  While
 * the fifo is full the queue is left unarmed with its entries in place; the work arms it again.
 * This bounds the interrupt, and no event is dropped.
 *
 * The other vectors serve completion event queues; an entry names a CQ, whose handler is called.  A
 * pass ends after SGH_CEQ_BUDGET entries by arming with entries left.  The adapter then raises
 * the vector again, so that other interrupts are served in between.
 *
 * A lost interrupt leaves its queue unarmed, with entries: no other one would come.  So the
 * health check looks at all queues, and raises the vector of one that nobody serves.
 */
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>

#include "cm.h"
#include "cq.h"
#include "mr.h"
#include "qp.h"
#include "srq.h"
#include "trace.h"

#define SGH_CEQ_BUDGET 256
#define SGH_EVENT_BATCH 64
#define SGH_IRQ_TESTS 5

/* The next new entry, or NULL. */
static struct sg_eqe *sgh_eq_next(struct sgh_eq *eq)
{
	struct sg_eqe *e = &eq->ring[sg_index_slot(eq->ci, eq->entries)];

	if (!sg_index_is_new(READ_ONCE(e->phase), eq->ci, eq->entries))
		return NULL;
	dma_rmb();
	return e;
}

static void sgh_eq_doorbell(struct sgh_dev *dev, struct sgh_eq *eq, u32 arm)
{
	sgh_write(dev, SG_REG_EQ_DB + 4 * eq->eqn, (eq->ci & SG_EQ_DB_CI_MASK) | arm);
}

static void sgh_aeq_poll(struct sgh_dev *dev)
{
	struct sgh_eq *eq = &dev->aeq;
	unsigned long flags;
	struct sg_eqe *e;
	u32 first;
	bool more;

	spin_lock_irqsave(&dev->aeq_lock, flags);
	first = eq->ci;
	while (eq->ci - first < eq->entries && (e = sgh_eq_next(eq))) {
		if (e->event != SG_EV_ADMIN && !kfifo_put(&dev->aeq_fifo, *e))
			break;
		eq->ci++;
	}
	dev->aeq_stalled = kfifo_is_full(&dev->aeq_fifo);
	more = !kfifo_is_empty(&dev->aeq_fifo);
	/* For a completion written after this, arming makes the adapter raise the vector. */
	sgh_admin_poll(dev);
	if (!sgh_dead(dev))
		sgh_eq_doorbell(dev, eq, dev->aeq_stalled ? 0 : SG_EQ_DB_ARM);
	spin_unlock_irqrestore(&dev->aeq_lock, flags);

	if (more)
		queue_work(dev->event_wq, &dev->event_work);
}

static void sgh_event(struct sgh_dev *dev, const struct sg_eqe *e)
{
	u32 id = le32_to_cpu(e->id);

	trace_sgh_async_event(dev, e);
	switch (e->event) {
	case SG_EV_CM_REQUEST:
	case SG_EV_CM_REPLY:
	case SG_EV_CM_ESTABLISHED:
	case SG_EV_CM_DISCONNECT:
	case SG_EV_CM_CLOSED:
		sgh_cm_event(dev, e);
		break;
	case SG_EV_QP_FATAL:
		sgh_qp_event(dev, id, IB_EVENT_QP_FATAL);
		break;
	case SG_EV_QP_REQ_ERR:
		sgh_qp_event(dev, id, IB_EVENT_QP_REQ_ERR);
		break;
	case SG_EV_QP_ACCESS_ERR:
		sgh_qp_event(dev, id, IB_EVENT_QP_ACCESS_ERR);
		break;
	case SG_EV_QP_LAST_WQE:
		sgh_qp_event(dev, id, IB_EVENT_QP_LAST_WQE_REACHED);
		break;
	case SG_EV_PAGE_FAULT:
		sgh_odp_fault(dev, e);
		break;
	case SG_EV_SRQ_LIMIT:
		sgh_srq_event(dev, id, IB_EVENT_SRQ_LIMIT_REACHED);
		break;
	case SG_EV_SRQ_ERROR:
		sgh_srq_event(dev, id, IB_EVENT_SRQ_ERR);
		break;
	case SG_EV_CQ_ERROR:
		sgh_cq_event(dev, id);
		break;
	case SG_EV_PORT_UP:
	case SG_EV_PORT_DOWN:
		sgh_net_kick(dev);
		break;
	case SG_EV_DEVICE_FATAL:
		sgh_fatal(dev, "it reports a fatal error");
		break;
	default:
		dev_dbg(&dev->pdev->dev, "unexpected event 0x%02x\n", e->event);
	}
}

static void sgh_event_work(struct work_struct *work)
{
	struct sgh_dev *dev = container_of(work, struct sgh_dev, event_work);
	struct sg_eqe e;
	int n;

	for (n = 0; n < SGH_EVENT_BATCH; n++) {
		unsigned long flags;
		bool got, stalled;

		spin_lock_irqsave(&dev->aeq_lock, flags);
		got = kfifo_get(&dev->aeq_fifo, &e);
		stalled = dev->aeq_stalled;
		spin_unlock_irqrestore(&dev->aeq_lock, flags);
		if (stalled)
			sgh_aeq_poll(dev);
		if (!got)
			return;
		sgh_event(dev, &e);
	}
	queue_work(dev->event_wq, &dev->event_work);
}

static void sgh_ceq_poll(struct sgh_dev *dev, struct sgh_eq *eq)
{
	struct sg_eqe *e;
	int n = 0;

	while (n < SGH_CEQ_BUDGET && (e = sgh_eq_next(eq))) {
		/* The CQ stays valid until sgh_ceq_sync() has waited for this interrupt. */
		struct sgh_cq *cq = xa_load(&dev->cqs, le32_to_cpu(e->id));

		eq->ci++;
		n++;
		if (cq && cq->ibcq.comp_handler)
			cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	}
	if (!sgh_dead(dev))
		sgh_eq_doorbell(dev, eq, SG_EQ_DB_ARM);
}

static irqreturn_t sgh_irq(int irq, void *arg)
{
	struct sgh_vector *vec = arg;
	struct sgh_dev *dev = vec->dev;
	u32 i, num;

	if (vec->index == 0) {
		if (!completion_done(&dev->test_irq))
			complete(&dev->test_irq);
		if (sgh_read(dev, SG_REG_STATUS) & SG_STATUS_READY)
			sgh_aeq_poll(dev);
	}
	/* Pairs with the release below: a queue is complete before it is counted. */
	num = smp_load_acquire(&dev->num_ceqs);
	for (i = 0; i < num; i++) {
		if (dev->ceqs[i].vector == vec->index)
			sgh_ceq_poll(dev, &dev->ceqs[i]);
	}
	return IRQ_HANDLED;
}

/* After this no interrupt handler uses a CQ that was removed from the table before. */
void sgh_ceq_sync(struct sgh_dev *dev, struct sgh_eq *eq)
{
	synchronize_irq(pci_irq_vector(dev->pdev, eq->vector));
}

static int sgh_eq_alloc(struct sgh_dev *dev, struct sgh_eq *eq, u32 entries)
{
	eq->entries = entries;
	eq->ci = 0;
	eq->was_unread = false;
	eq->ring = dma_alloc_coherent(&dev->pdev->dev, entries * sizeof(*eq->ring), &eq->dma,
				      GFP_KERNEL);
	return eq->ring ? 0 : -ENOMEM;
}

static void sgh_eq_free(struct sgh_dev *dev, struct sgh_eq *eq)
{
	dma_free_coherent(&dev->pdev->dev, eq->entries * sizeof(*eq->ring), eq->ring, eq->dma);
	eq->ring = NULL;
}

/* The async event queue and its workqueue. */
int sgh_eq_init(struct sgh_dev *dev)
{
	int ret;

	INIT_WORK(&dev->event_work, sgh_event_work);
	ret = kfifo_alloc(&dev->aeq_fifo, SGH_AEQ_ENTRIES, GFP_KERNEL);
	if (ret)
		return ret;
	dev->event_wq = alloc_ordered_workqueue("staghorn-%s", WQ_MEM_RECLAIM, pci_name(dev->pdev));
	if (!dev->event_wq) {
		ret = -ENOMEM;
		goto err_fifo;
	}
	dev->fault_wq = alloc_workqueue("staghorn-fault-%s", WQ_UNBOUND, 0, pci_name(dev->pdev));
	if (!dev->fault_wq) {
		ret = -ENOMEM;
		goto err_wq;
	}
	dev->aeq.eqn = 0;
	dev->aeq.vector = 0;
	ret = sgh_eq_alloc(dev, &dev->aeq, SGH_AEQ_ENTRIES);
	if (ret)
		goto err_fault_wq;
	return 0;

err_fault_wq:
	destroy_workqueue(dev->fault_wq);
err_wq:
	destroy_workqueue(dev->event_wq);
err_fifo:
	kfifo_free(&dev->aeq_fifo);
	return ret;
}

/* The adapter is reset and there are no interrupts. */
void sgh_eq_fini(struct sgh_dev *dev)
{
	destroy_workqueue(dev->event_wq);
	destroy_workqueue(dev->fault_wq);
	sgh_eq_free(dev, &dev->aeq);
	kfifo_free(&dev->aeq_fifo);
}

int sgh_irq_init(struct sgh_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int ret, i, max;

	max = min_t(u32, dev->num_vectors, min_t(u32, num_online_cpus() + 1, SG_EQ_COUNT));
	ret = pci_alloc_irq_vectors(pdev, 1, max_t(int, max, 1), PCI_IRQ_MSIX);
	if (ret < 0)
		return dev_err_probe(&pdev->dev, ret, "no MSI-X vectors\n");
	dev->num_vectors = ret;
	dev->num_irqs = 0;
	dev->vectors = kcalloc(dev->num_vectors, sizeof(*dev->vectors), GFP_KERNEL);
	if (!dev->vectors) {
		pci_free_irq_vectors(pdev);
		return -ENOMEM;
	}
	for (i = 0; i < dev->num_vectors; i++) {
		struct sgh_vector *vec = &dev->vectors[i];

		vec->dev = dev;
		vec->index = i;
		snprintf(vec->name, sizeof(vec->name), SGH_NAME "-%d@%s", i, pci_name(pdev));
		ret = request_irq(pci_irq_vector(pdev, i), sgh_irq, 0, vec->name, vec);
		if (ret) {
			sgh_irq_fini(dev);
			return ret;
		}
		dev->num_irqs++;
	}
	return 0;
}

void sgh_irq_fini(struct sgh_dev *dev)
{
	while (dev->num_irqs) {
		dev->num_irqs--;
		free_irq(pci_irq_vector(dev->pdev, dev->num_irqs), &dev->vectors[dev->num_irqs]);
	}
	pci_free_irq_vectors(dev->pdev);
	kfree(dev->vectors);
	dev->vectors = NULL;
}

/* A single interrupt may be lost. */
int sgh_irq_test(struct sgh_dev *dev)
{
	int i;

	for (i = 0; i < SGH_IRQ_TESTS; i++) {
		reinit_completion(&dev->test_irq);
		sgh_write(dev, SG_REG_TEST_IRQ, 0);
		if (wait_for_completion_timeout(&dev->test_irq, HZ))
			return 0;
	}
	return dev_err_probe(&dev->pdev->dev, -EIO, "vector 0 does not interrupt\n");
}

/*
 * Handlers run meanwhile: at worst a queue that was served just now gets an interrupt without a
 * cause.  The handler is not called here, because sgh_ceq_sync() waits for interrupts only.
 */
static void sgh_eq_check(struct sgh_dev *dev, struct sgh_eq *eq)
{
	u32 ci = READ_ONCE(eq->ci);
	const struct sg_eqe *e = &eq->ring[sg_index_slot(ci, eq->entries)];
	bool unread = sg_index_is_new(READ_ONCE(e->phase), ci, eq->entries);
	bool again = unread && eq->was_unread && eq->checked_ci == ci;

	eq->was_unread = unread;
	eq->checked_ci = ci;
	if (!again)
		return;
	WRITE_ONCE(dev->lost_irqs, dev->lost_irqs + 1);
	dev_warn_ratelimited(&dev->pdev->dev,
			     "event queue %u: an interrupt was lost, vector %u is raised again\n",
			     eq->eqn, eq->vector);
	sgh_write(dev, SG_REG_TEST_IRQ, eq->vector);
}

/* Called every SGH_HEALTH_PERIOD; the adapter is not lost. */
void sgh_eq_check_all(struct sgh_dev *dev)
{
	u32 i;

	/* While the fifo is full, entries are left unread on purpose. */
	if (!READ_ONCE(dev->aeq_stalled))
		sgh_eq_check(dev, &dev->aeq);
	for (i = 0; i < dev->num_ceqs; i++)
		sgh_eq_check(dev, &dev->ceqs[i]);
}

/* One completion event queue for each vector except the first, or on the first if it is alone. */
int sgh_ceq_init(struct sgh_dev *dev)
{
	u32 want, i;
	int ret = 0;

	if (dev->caps.num_eq < 2)
		return dev_err_probe(&dev->pdev->dev, -ENODEV, "no completion event queue\n");
	want = max_t(u32, dev->num_vectors - 1, 1);
	want = min_t(u32, want, dev->caps.num_eq - 1);
	dev->ceqs = kcalloc(want, sizeof(*dev->ceqs), GFP_KERNEL);
	if (!dev->ceqs)
		return -ENOMEM;

	for (i = 0; i < want; i++) {
		struct sgh_eq *eq = &dev->ceqs[i];
		struct sg_cmd_create_eq cmd = {};

		eq->eqn = i + 1;
		eq->vector = dev->num_vectors > 1 ? i + 1 : 0;
		ret = sgh_eq_alloc(dev, eq, SGH_CEQ_ENTRIES);
		if (ret)
			break;
		cmd.base = cpu_to_le64(eq->dma);
		cmd.entries = cpu_to_le32(eq->entries);
		cmd.eqn = cpu_to_le32(eq->eqn);
		cmd.vector = cpu_to_le32(eq->vector);
		ret = sgh_admin(dev, SG_ADMIN_CREATE_EQ, &cmd, sizeof(cmd), NULL);
		if (ret) {
			sgh_eq_free(dev, eq);
			break;
		}
		/* Pairs with the interrupt handler: the queue is complete before it is seen. */
		smp_store_release(&dev->num_ceqs, i + 1);
		sgh_eq_doorbell(dev, eq, SG_EQ_DB_ARM);
	}
	if (!dev->num_ceqs) {
		kfree(dev->ceqs);
		dev->ceqs = NULL;
		return dev_err_probe(&dev->pdev->dev, ret, "completion event queues fail\n");
	}
	return 0;
}

/* The adapter is reset and there are no interrupts. */
void sgh_ceq_fini(struct sgh_dev *dev)
{
	u32 i;

	for (i = 0; i < dev->num_ceqs; i++)
		sgh_eq_free(dev, &dev->ceqs[i]);
	kfree(dev->ceqs);
	dev->num_ceqs = 0;
	dev->ceqs = NULL;
}
