// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Step 9 of docs/course: the adapter's addresses, listeners and connections.
 */
#include "step09/conn.h"

#define COURSE_CM_MS 15000
#define COURSE_DEPTH 4 /* Reads that a connection may have under way */

void course_cm_init(struct course_cm *cm)
{
	INIT_KFIFO(cm->events);
	init_waitqueue_head(&cm->wait);
}

/* In the interrupt; one writer and one reader need no lock. */
void course_cm_event(struct course_cm *cm, const struct sg_eqe *e)
{
	kfifo_put(&cm->events, *e);
	wake_up(&cm->wait);
}

int course_cm_expect(struct course_device *d, struct course_cm *cm, u8 event, struct sg_eqe *e)
{
	if (!wait_event_timeout(cm->wait, kfifo_get(&cm->events, e),
				msecs_to_jiffies(COURSE_CM_MS)))
		return course_lost(&d->admin) ? -EIO : -ETIMEDOUT;
	if (e->event == event && (e->cm_status == SG_CM_OK || e->cm_status == SG_CM_CLOSED))
		return 0;
	pci_err(d->regs.pdev, "event %#x, status %u instead of event %#x\n", e->event, e->cm_status,
		event);
	return -EPROTO;
}

static struct sg_sockaddr course_address(const u8 ip[4], u16 port)
{
	struct sg_sockaddr sa = { .family = 4, .port = cpu_to_be16(port) };

	memcpy(sa.ip, ip, 4);
	return sa;
}

int course_set_addr(struct course_device *d, const u8 ip[4], u8 prefix_len)
{
	struct sg_cmd_set_addr c = {
		.hdr.opcode = SG_ADMIN_SET_ADDR,
		.addr = course_address(ip, 0),
		.op = SG_ADDR_ADD,
		.prefix_len = prefix_len,
	};
	struct sg_admin_rsp rsp;

	return course_command(&d->admin, &c, sizeof(c), &rsp);
}

int course_listen(struct course_device *d, const u8 ip[4], u16 port, u32 *id)
{
	struct sg_cmd_listen c = {
		.hdr.opcode = SG_ADMIN_LISTEN,
		.local = course_address(ip, port),
		.backlog = cpu_to_le32(4),
	};

	return course_make(&d->admin, &c, sizeof(c), id);
}

/* The outcome is the event CM_REPLY. */
int course_connect(struct course_qp *qp, const u8 from[4], const u8 to[4], u16 port, u32 *conn)
{
	struct sg_cmd_connect c = {
		.hdr.opcode = SG_ADMIN_CONNECT,
		.qpn = cpu_to_le32(qp->qpn),
		.local = course_address(from, 0),
		.remote = course_address(to, port),
		.ird = cpu_to_le16(COURSE_DEPTH),
		.ord = cpu_to_le16(COURSE_DEPTH),
	};

	return course_make(&qp->d->admin, &c, sizeof(c), conn);
}

/* The outcome is the event CM_ESTABLISHED. */
int course_accept(struct course_qp *qp, u32 conn)
{
	struct sg_cmd_connect c = {
		.hdr.opcode = SG_ADMIN_ACCEPT,
		.qpn = cpu_to_le32(qp->qpn),
		.conn = cpu_to_le32(conn),
		.ird = cpu_to_le16(COURSE_DEPTH),
		.ord = cpu_to_le16(COURSE_DEPTH),
	};
	struct sg_admin_rsp rsp;

	return course_command(&qp->d->admin, &c, sizeof(c), &rsp);
}
