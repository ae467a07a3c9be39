/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Shared receive queues (srq.c). */
#ifndef SGH_SRQ_H
#define SGH_SRQ_H

#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

#include "qp.h"

/* wq.ci counts completed entries, wherever in the ring they were (srq.c). */
struct sgh_srq {
	struct ib_srq ibsrq;
	struct mutex resize_mutex; /* one resize at a time */
	u32 srqn;
	struct sgh_wq wq;
};

static inline struct sgh_srq *to_sgh_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct sgh_srq, ibsrq);
}

/* srq.c */
int sgh_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int sgh_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata);
int sgh_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int sgh_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
void sgh_srq_event(struct sgh_dev *dev, u32 srqn, enum ib_event_type type);
void sgh_srq_release(struct sgh_srq *srq, u32 completed);

#endif
