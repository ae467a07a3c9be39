// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 10 of docs/course: RDMA Write and Read, an orderly end, and an end without notice.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "step09/pair.h"

#define STEP10_LENGTH SZ_256K
#define STEP10_TARGET STEP10_LENGTH	/* where the Write goes in the buffer */
#define STEP10_BACK (2 * STEP10_LENGTH) /* where the Read brings it */
#define STEP10_NOTE (3 * STEP10_LENGTH) /* the Send behind the Write */

static char *ip = "10.77.0.1";
module_param(ip, charp, 0444);
MODULE_PARM_DESC(ip, "an address of the port's Ethernet interface");

struct step10 {
	struct course_pair pair;
};

static int step10_post(struct course_pair *p, u8 opcode, u32 at, u32 length, u32 remote)
{
	struct course_wr wr = {
		.id = opcode,
		.opcode = opcode,
		.flags = SG_WQE_SIGNALED,
		.addr = p->dma + at,
		.length = length,
		.lkey = p->stag,
		.remote_addr = p->dma + remote,
		.rkey = p->stag,
	};

	return course_post_send(&p->qp[0], &wr);
}

/* Completions of Write and Send, and the receive: it proves that the Write is there. */
static int step10_write(struct course_pair *p)
{
	struct course_wr note = { .addr = p->dma + STEP10_NOTE, .length = 64, .lkey = p->stag };
	struct sg_cqe e;
	int i, ret = course_post_recv(&p->qp[1], &note);

	if (!ret)
		ret = step10_post(p, SG_WR_WRITE, 0, STEP10_LENGTH, STEP10_TARGET);
	if (!ret)
		ret = step10_post(p, SG_WR_SEND, 0, 8, 0);
	for (i = 0; i < 3 && !ret; i++)
		ret = course_pair_wait(p, &e);
	if (!ret && memcmp(p->buf, p->buf + STEP10_TARGET, STEP10_LENGTH))
		ret = -EILSEQ;
	return ret;
}

static int step10_read(struct course_pair *p)
{
	struct sg_cqe e;
	int ret = step10_post(p, SG_WR_READ, STEP10_BACK, STEP10_LENGTH, STEP10_TARGET);

	if (!ret)
		ret = course_pair_wait(p, &e);
	if (!ret && le32_to_cpu(e.byte_len) != STEP10_LENGTH)
		ret = -EPROTO;
	if (!ret && memcmp(p->buf, p->buf + STEP10_BACK, STEP10_LENGTH))
		ret = -EILSEQ;
	return ret;
}

static int step10_use(struct course_pair *p)
{
	u32 i;
	int ret;

	for (i = 0; i < STEP10_LENGTH; i++)
		p->buf[i] = i * 2654435761u >> 24;
	ret = step10_write(p);
	if (!ret)
		ret = step10_read(p);
	if (!ret)
		pci_info(p->d.regs.pdev, "write %u octets, read %u octets, all right\n",
			 STEP10_LENGTH, STEP10_LENGTH);
	return ret;
}

/* One side closes; the other one sees that, and both see the end of TCP. */
static void step10_close(struct course_pair *p)
{
	unsigned int closed = 0;
	struct sg_eqe e;
	int ret = course_qp_modify(&p->qp[0], SG_QP_CLOSING);

	while (!ret && closed < 2) {
		if (!wait_event_timeout(p->cm.wait, kfifo_get(&p->cm.events, &e), 5 * HZ))
			ret = -ETIMEDOUT;
		else if (e.event == SG_EV_CM_CLOSED)
			closed++;
	}
	if (!ret)
		pci_info(p->d.regs.pdev, "closed\n");
}

static int step10_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct step10 *s;
	u8 address[4];
	int ret;

	if (!in4_pton(ip, -1, address, -1, NULL))
		return -EINVAL;
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	ret = course_pair_make(&s->pair, pdev, address);
	if (ret)
		goto free;
	ret = step10_use(&s->pair);
	if (ret)
		goto end;
	pci_set_drvdata(pdev, s);
	return 0;
end:
	course_pair_end(&s->pair);
free:
	kfree(s);
	return ret;
}

/* If the adapter is gone, no command is tried, and nobody waits for an event. */
static void step10_remove(struct pci_dev *pdev)
{
	struct step10 *s = pci_get_drvdata(pdev);

	if (!course_lost(&s->pair.d.admin))
		step10_close(&s->pair);
	course_pair_end(&s->pair);
	kfree(s);
}

static const struct pci_device_id step10_ids[] = {
	{ PCI_DEVICE(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID) }, {}
};
MODULE_DEVICE_TABLE(pci, step10_ids);

static struct pci_driver step10_driver = {
	.name = "course",
	.id_table = step10_ids,
	.probe = step10_probe,
	.remove = step10_remove,
};
module_pci_driver(step10_driver);

MODULE_DESCRIPTION("Staghorn course, step 10: Write, Read, teardown, surprise removal");
MODULE_LICENSE("Dual BSD/GPL");
