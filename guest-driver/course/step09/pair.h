/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Step 9 of docs/course: two queue pairs of one adapter, connected to each other.
 */
#ifndef COURSE_PAIR_H
#define COURSE_PAIR_H

#include "step06/memory.h"
#include "step09/conn.h"

/* Octets of the buffer: one region, which both ends use. */
#define COURSE_PAIR_BUF SZ_1M

struct course_pair {
	struct course_device d;
	struct course_cm cm;
	struct course_cq cq;
	struct course_qp qp[2]; /* 0 connects, 1 listens */
	u32 pd, stag, listener, conn[2];
	u8 *buf;
	dma_addr_t dma;
	bool connected;
};

/* What is left after an error, course_pair_end() ends. */
int course_pair_make(struct course_pair *p, struct pci_dev *pdev, const u8 ip[4]);
void course_pair_end(struct course_pair *p);
/* Takes a completion that has to be a success, and counts its entry. */
int course_pair_wait(struct course_pair *p, struct sg_cqe *e);

#endif
