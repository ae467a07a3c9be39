/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Step 8 of docs/course: queue pairs.  Manual: queues.md, send and receive queue entry.
 */
#ifndef COURSE_QP_H
#define COURSE_QP_H

#include "step07/cq.h"

struct course_qp {
	struct course_device *d;
	struct course_ring sq, rq; /* cons: entries that completed */
	u32 qpn;
};

/* A work request with at most one element. */
struct course_wr {
	u64 id;
	u8 opcode, flags;
	u64 addr; /* in the region of lkey */
	u32 length, lkey;
	u64 remote_addr; /* of Writes and Reads */
	u32 rkey;
};

int course_qp_create(struct course_qp *qp, struct course_device *d, u32 pd,
		     const struct course_cq *cq);
void course_qp_destroy(struct course_qp *qp);
void course_qp_free(struct course_qp *qp);
int course_qp_modify(struct course_qp *qp, u32 state);
/* -ENOSPC: the ring is full. */
int course_post_send(struct course_qp *qp, const struct course_wr *wr);
int course_post_recv(struct course_qp *qp, const struct course_wr *wr);
/* A completion of this queue pair was taken: slots are free. */
void course_qp_completed(struct course_qp *qp, const struct sg_cqe *e);

#endif
