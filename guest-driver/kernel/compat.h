/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The only file that depends on kernel versions.  The driver is written for Linux 6.12; differences
 * of other versions are hidden here.
 */
#ifndef SGH_COMPAT_H
#define SGH_COMPAT_H

#include <linux/version.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/* The block iterators moved to a separate header, even within 6.12: Kbuild looks for it. */
#ifdef SGH_HAVE_RDMA_ITER_H
#include <rdma/iter.h>
#endif

#ifndef CONFIG_64BIT
#error "staghorn needs a 64-bit kernel: a doorbell is one 64-bit write"
#endif

/* create_cq's third argument became the attribute bundle in 6.11, reg_user_mr_dmabuf's last too. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
typedef struct uverbs_attr_bundle sgh_create_cq_arg;
typedef struct uverbs_attr_bundle sgh_reg_dmabuf_arg;
static inline struct ib_udata *sgh_create_cq_udata(sgh_create_cq_arg *arg)
{
	return arg ? &arg->driver_udata : NULL;
}
#else
typedef struct ib_udata sgh_create_cq_arg;
typedef struct ib_udata sgh_reg_dmabuf_arg;
static inline struct ib_udata *sgh_create_cq_udata(sgh_create_cq_arg *arg)
{
	return arg;
}
#endif

#endif
