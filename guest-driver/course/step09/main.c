// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 9 of docs/course: messages from one queue pair to another one.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "step09/pair.h"

#define STEP09_MESSAGES 200
#define STEP09_LENGTH 1000
#define STEP09_SLOT SZ_1K
#define STEP09_WINDOW 8	    /* messages under way */
#define STEP09_SINK SZ_512K /* where receives begin in the buffer */

static char *ip = "10.77.0.1";
module_param(ip, charp, 0444);
MODULE_PARM_DESC(ip, "an address of the port's Ethernet interface");

struct step09 {
	struct course_pair pair;
	u32 sent, received, octets;
};

static u8 step09_octet(u32 message, u32 i)
{
	return message * 7 + i;
}

static struct course_wr step09_wr(struct course_pair *p, u32 message, u32 at, u32 length)
{
	struct course_wr wr = {
		.id = message,
		.addr = p->dma + at + message % STEP09_WINDOW * STEP09_SLOT,
		.length = length,
		.lkey = p->stag,
	};

	return wr;
}

static int step09_receive(struct step09 *s, u32 message)
{
	struct course_wr wr = step09_wr(&s->pair, message, STEP09_SINK, STEP09_SLOT);

	return course_post_recv(&s->pair.qp[1], &wr);
}

static int step09_send(struct step09 *s)
{
	struct course_wr wr = step09_wr(&s->pair, s->sent, 0, STEP09_LENGTH);
	u8 *octets = s->pair.buf + (wr.addr - s->pair.dma);
	int i;

	wr.opcode = SG_WR_SEND;
	wr.flags = SG_WQE_SIGNALED;
	for (i = 0; i < STEP09_LENGTH; i++)
		octets[i] = step09_octet(s->sent, i);
	s->sent++;
	return course_post_send(&s->pair.qp[0], &wr);
}

/* A receive completed: are these the octets that were sent? */
static int step09_check(struct step09 *s, const struct sg_cqe *e)
{
	u32 message = le64_to_cpu(e->wr_id), length = le32_to_cpu(e->byte_len), i;
	u8 *octets = s->pair.buf + STEP09_SINK + message % STEP09_WINDOW * STEP09_SLOT;

	for (i = 0; i < length; i++) {
		if (octets[i] != step09_octet(message, i))
			return -EILSEQ;
	}
	if (message != s->received || length != STEP09_LENGTH)
		return -EPROTO;
	s->received++;
	s->octets += length;
	return step09_receive(s, message + STEP09_WINDOW);
}

/* A receive is posted before its message is sent, or the message ends the connection. */
static int step09_use(struct step09 *s)
{
	struct sg_cqe e;
	int i, ret;

	for (i = 0, ret = 0; i < STEP09_WINDOW && !ret; i++)
		ret = step09_receive(s, i);
	for (i = 0; i < STEP09_WINDOW && !ret; i++)
		ret = step09_send(s);
	while (!ret && s->received < STEP09_MESSAGES) {
		ret = course_pair_wait(&s->pair, &e);
		if (ret || !(e.flags_phase & SG_CQE_RECV))
			continue;
		ret = step09_check(s, &e);
		if (!ret && s->sent < STEP09_MESSAGES)
			ret = step09_send(s);
	}
	if (!ret)
		pci_info(s->pair.d.regs.pdev, "received %u messages, %u octets, all right\n",
			 s->received, s->octets);
	return ret;
}

static int step09_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct step09 *s;
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
	ret = step09_use(s);
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

static void step09_remove(struct pci_dev *pdev)
{
	struct step09 *s = pci_get_drvdata(pdev);

	course_pair_end(&s->pair);
	kfree(s);
}

static const struct pci_device_id step09_ids[] = {
	{ PCI_DEVICE(SG_PCI_VENDOR_ID, SG_PCI_DEVICE_ID) }, {}
};
MODULE_DEVICE_TABLE(pci, step09_ids);

static struct pci_driver step09_driver = {
	.name = "course",
	.id_table = step09_ids,
	.probe = step09_probe,
	.remove = step09_remove,
};
module_pci_driver(step09_driver);

MODULE_DESCRIPTION("Staghorn course, step 9: connections, Send and Receive");
MODULE_LICENSE("Dual BSD/GPL");
