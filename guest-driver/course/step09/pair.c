// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 9 of docs/course: makes two queue pairs, connects them, and ends all of it.
 */
#include "step09/pair.h"

#define COURSE_PORT 4791
#define COURSE_WAIT_MS 10000

static void course_pair_async(struct course_device *d, const struct sg_eqe *e)
{
	struct course_pair *p = container_of(d, struct course_pair, d);

	course_cm_event(&p->cm, e);
}

static void course_pair_completion(struct course_device *d, const struct sg_eqe *e)
{
	struct course_pair *p = container_of(d, struct course_pair, d);

	if (le32_to_cpu(e->id) == p->cq.cqn)
		course_cq_notify(&p->cq);
}

static int course_pair_objects(struct course_pair *p)
{
	const u32 access = SG_ACCESS_LOCAL_WRITE | SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE;
	struct sg_page_list pages;
	int ret;

	p->buf = dma_alloc_coherent(&p->d.regs.pdev->dev, COURSE_PAIR_BUF, &p->dma, GFP_KERNEL);
	if (!p->buf)
		return -ENOMEM;
	pages = course_contiguous(p->dma, COURSE_PAIR_BUF);
	ret = course_create_pd(&p->d.admin, &p->pd);
	if (!ret)
		ret = course_register(&p->d.admin, p->pd, &pages, p->dma, COURSE_PAIR_BUF, access,
				      &p->stag);
	if (!ret)
		ret = course_cq_create(&p->cq, &p->d, 64);
	if (!ret)
		ret = course_qp_create(&p->qp[0], &p->d, p->pd, &p->cq);
	if (!ret)
		ret = course_qp_create(&p->qp[1], &p->d, p->pd, &p->cq);
	return ret;
}

/* Both sides of the table in admin.md, connections. */
static int course_pair_connect(struct course_pair *p, const u8 ip[4])
{
	struct sg_eqe e;
	int ret = course_set_addr(&p->d, ip, 24);

	if (!ret)
		ret = course_listen(&p->d, ip, COURSE_PORT, &p->listener);
	if (!ret)
		ret = course_connect(&p->qp[0], ip, ip, COURSE_PORT, &p->conn[0]);
	if (!ret)
		ret = course_cm_expect(&p->d, &p->cm, SG_EV_CM_REQUEST, &e);
	if (ret)
		return ret;
	p->conn[1] = le32_to_cpu(e.conn);
	ret = course_accept(&p->qp[1], p->conn[1]);
	if (!ret)
		ret = course_cm_expect(&p->d, &p->cm, SG_EV_CM_REPLY, &e);
	if (!ret)
		ret = course_cm_expect(&p->d, &p->cm, SG_EV_CM_ESTABLISHED, &e);
	p->connected = !ret;
	return ret;
}

int course_pair_make(struct course_pair *p, struct pci_dev *pdev, const u8 ip[4])
{
	int ret;

	course_cm_init(&p->cm);
	p->d.async_event = course_pair_async;
	p->d.completion_event = course_pair_completion;
	ret = course_device_start(&p->d, pdev);
	if (ret)
		return ret;
	ret = course_pair_objects(p);
	if (!ret)
		ret = course_pair_connect(p, ip);
	if (ret)
		course_pair_end(p);
	return ret;
}

void course_pair_end(struct course_pair *p)
{
	if (p->listener)
		course_end(&p->d.admin, SG_ADMIN_UNLISTEN, p->listener);
	course_qp_destroy(&p->qp[0]);
	course_qp_destroy(&p->qp[1]);
	course_cq_destroy(&p->cq);
	if (p->stag)
		course_end(&p->d.admin, SG_ADMIN_DEREG_MR, p->stag);
	if (p->pd)
		course_end(&p->d.admin, SG_ADMIN_DESTROY_PD, p->pd);
	course_device_stop(&p->d);
	course_qp_free(&p->qp[0]);
	course_qp_free(&p->qp[1]);
	course_cq_free(&p->cq);
	if (p->buf)
		dma_free_coherent(&p->d.regs.pdev->dev, COURSE_PAIR_BUF, p->buf, p->dma);
}

int course_pair_wait(struct course_pair *p, struct sg_cqe *e)
{
	int ret = course_cq_wait(&p->cq, e, COURSE_WAIT_MS);

	if (ret)
		return course_lost(&p->d.admin) ? -EIO : ret;
	course_qp_completed(&p->qp[le32_to_cpu(e->qpn) == p->qp[1].qpn], e);
	if (e->status == SG_WC_SUCCESS)
		return 0;
	pci_err(p->d.regs.pdev, "qp %u: completion with status %u, opcode %#x\n",
		le32_to_cpu(e->qpn), e->status, e->opcode);
	return -EREMOTEIO;
}
