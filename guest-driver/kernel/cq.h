/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Completion queues (cq.c). */
#ifndef SGH_CQ_H
#define SGH_CQ_H

#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "buf.h"
#include "compat.h"
#include "dev.h"

#define SGH_CQ_ENTRIES_MIN 64

struct sgh_qp;

/* A ring of completions and the record behind it. */
struct sgh_cq_ring {
	u32 entries;
	struct ib_umem *umem; /* user space's; otherwise: */
	struct sgh_buf buf;
	struct sg_cq_record *record;
	dma_addr_t record_dma; /* user space's, too */
};

struct sgh_cq {
	struct ib_cq ibcq;
	u32 cqn;
	struct sgh_eq *eq;
	struct mutex resize_mutex; /* one resize at a time */
	spinlock_t lock;	   /* all that follows: pollers, armers, the switch of rings */
	struct sgh_cq_ring ring;
	u32 ci;
	/* Kernel queues: unread entries of the previous ring. */
	struct sg_cqe *backlog;
	u32 backlog_pos, backlog_num;
	bool resizing;		   /* the adapter may use another ring than we do */
	u32 arm;		   /* the arming that was requested meanwhile */
	struct list_head send_qps; /* kernel queue pairs, to flush after a fatal error */
	struct list_head recv_qps;
};

static inline struct sgh_cq *to_sgh_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct sgh_cq, ibcq);
}

/* cq.c */
int sgh_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, sgh_create_cq_arg *arg);
int sgh_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int sgh_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int sgh_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int sgh_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int sgh_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void sgh_cq_scrub(struct sgh_cq *cq, const struct sgh_qp *qp);
void sgh_cq_event(struct sgh_dev *dev, u32 cqn);
void sgh_cq_kick_all(struct sgh_dev *dev);

#endif
