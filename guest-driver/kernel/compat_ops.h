/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Operations of the device whose names or arguments differ between kernels, for verbs.c.  The
 * driver's own functions have the arguments of Linux 6.12.
 */
#ifndef SGH_COMPAT_OPS_H
#define SGH_COMPAT_OPS_H

#include "compat.h"
#include "cq.h"
#include "mr.h"
#include "stats.h"

/* Registrations may have hints for PCIe's TLPs.  The adapter knows none. */
#ifdef SGH_HAVE_DMAH
static struct ib_mr *sgh_op_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 va, int access,
					struct ib_dmah *dmah, struct ib_udata *udata)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return sgh_reg_user_mr(pd, start, length, va, access, udata);
}

static struct ib_mr *sgh_op_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 va,
					       int fd, int access, struct ib_dmah *dmah,
					       struct uverbs_attr_bundle *attrs)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return sgh_reg_user_mr_dmabuf(pd, offset, length, va, fd, access, attrs);
}
#else
#define sgh_op_reg_user_mr sgh_reg_user_mr
#define sgh_op_reg_user_mr_dmabuf sgh_reg_user_mr_dmabuf
#endif

/* The adapter has one port. */
#ifdef SGH_HAVE_COUNTER_PORT
static int sgh_op_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *qp, u32 port)
{
	return sgh_counter_bind_qp(counter, qp);
}

static int sgh_op_counter_unbind_qp(struct ib_qp *qp, u32 port)
{
	return sgh_counter_unbind_qp(qp);
}
#else
#define sgh_op_counter_bind_qp sgh_counter_bind_qp
#define sgh_op_counter_unbind_qp sgh_counter_unbind_qp
#endif

/*
 * Later kernels let the driver choose the size of a counter, and call counter_init without looking
 * whether there is one.  Ours has what belongs to it in an array of the adapter's (counter.c).
 */
#ifdef SGH_HAVE_COUNTER_INIT
static void sgh_op_counter_init(struct rdma_counter *counter)
{
}
#endif

/* Later kernels resize only the queues of processes. */
#ifdef SGH_HAVE_RESIZE_USER_CQ
static int sgh_op_resize_user_cq(struct ib_cq *cq, unsigned int cqe, struct ib_udata *udata)
{
	return cqe > INT_MAX ? -EINVAL : sgh_resize_cq(cq, cqe, udata);
}
#endif

/* With this operation the core leaves port events to the driver, which sends them in any case. */
#ifdef SGH_HAVE_REPORT_PORT_EVENT
static void sgh_op_report_port_event(struct ib_device *ibdev, struct net_device *netdev,
				     unsigned long event)
{
}
#endif

static const struct ib_device_ops sgh_version_ops = {
	.counter_bind_qp = sgh_op_counter_bind_qp,
	.counter_unbind_qp = sgh_op_counter_unbind_qp,
#ifdef SGH_HAVE_COUNTER_INIT
	.counter_init = sgh_op_counter_init,
	.size_rdma_counter = sizeof(struct rdma_counter),
#endif
#ifdef SGH_HAVE_FILL_RES_SRQ
	.fill_res_srq_entry = sgh_fill_res_srq,
#endif
	.reg_user_mr = sgh_op_reg_user_mr,
	.reg_user_mr_dmabuf = sgh_op_reg_user_mr_dmabuf,
#ifdef SGH_HAVE_REPORT_PORT_EVENT
	.report_port_event = sgh_op_report_port_event,
#endif
#ifdef SGH_HAVE_RESIZE_USER_CQ
	.resize_user_cq = sgh_op_resize_user_cq,
#else
	.resize_cq = sgh_resize_cq,
#endif
};

#endif
