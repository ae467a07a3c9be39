/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Step 9 of docs/course: connections.  Manual: admin.md, connections.
 */
#ifndef COURSE_CONN_H
#define COURSE_CONN_H

#include <linux/kfifo.h>

#include "step08/qp.h"

#define COURSE_CM_EVENTS 64

/* Async events of connections, from the interrupt to whoever waits for them. */
struct course_cm {
	DECLARE_KFIFO(events, struct sg_eqe, COURSE_CM_EVENTS);
	wait_queue_head_t wait;
};

void course_cm_init(struct course_cm *cm);
void course_cm_event(struct course_cm *cm, const struct sg_eqe *e);
/* Waits for the next event, which has to be this one. */
int course_cm_expect(struct course_device *d, struct course_cm *cm, u8 event, struct sg_eqe *e);

int course_set_addr(struct course_device *d, const u8 ip[4], u8 prefix_len);
int course_listen(struct course_device *d, const u8 ip[4], u16 port, u32 *id);
int course_connect(struct course_qp *qp, const u8 from[4], const u8 to[4], u16 port, u32 *conn);
int course_accept(struct course_qp *qp, u32 conn);

#endif
