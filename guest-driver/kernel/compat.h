/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * With compat_ops.h and compat_odp.h all that depends on kernel versions, from 6.1 to 7.3.  The
 * driver is written for Linux 6.12; differences of other versions are hidden here.  Kbuild finds
 * out which of them there are (SGH_HAVE_*).  docs/kernels.md has the table.
 */
#ifndef SGH_COMPAT_H
#define SGH_COMPAT_H

#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/version.h>
#include <net/flow.h>
#include <net/inet_hashtables.h>
#include <net/ipv6.h>
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

/* ---- Registration ---- */

#ifdef SGH_HAVE_UMEM_GET_VA
#define ib_umem_get ib_umem_get_va
#endif

#define SGH_HAS_ODP IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)

/* ---- Flush and Atomic Write ---- */

/*
 * Before 6.2 no consumer can name them, and the capabilities cannot be announced.  Peers may flush
 * all the same (qp.c), so the rights are those of later kernels.  Numbers of operations are later
 * kernels', too; those of completions are free ones, because later kernels' are taken.
 */
#ifndef SGH_HAVE_FLUSH
#define IB_WR_FLUSH 14
#define IB_WR_ATOMIC_WRITE 15
#define IB_WC_FLUSH 0x40
#define IB_WC_ATOMIC_WRITE 0x41
#define IB_ACCESS_FLUSH_GLOBAL BIT(8)
#define IB_ACCESS_FLUSH_PERSISTENT BIT(9)
#define IB_DEVICE_FLUSH_GLOBAL 0ull
#define IB_DEVICE_FLUSH_PERSISTENT 0ull
#define IB_DEVICE_ATOMIC_WRITE 0ull
enum { IB_FLUSH_GLOBAL = 1, IB_FLUSH_PERSISTENT = 2 };
enum { IB_FLUSH_RANGE, IB_FLUSH_MR };
#endif

/* Regions on demand have them in any case; later kernels can say so. */
#ifdef SGH_HAVE_ODP_FLUSH
#define SGH_ODP_FLUSH IB_ODP_SUPPORT_FLUSH
#define SGH_ODP_ATOMIC_WRITE IB_ODP_SUPPORT_ATOMIC_WRITE
#else
#define SGH_ODP_FLUSH 0
#define SGH_ODP_ATOMIC_WRITE 0
#endif

/* ---- Network ---- */

/* Before 6.6 rdma_cm looks for a GID of MAC address and zeros (gid.c). */
#define SGH_GID_IS_MAC (LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0))

static inline bool sgh_netdev_is_registered(const struct net_device *netdev)
{
#ifdef SGH_HAVE_REG_STATE_BITS
	return netdev->reg_state == NETREG_REGISTERED;
#else
	return READ_ONCE(netdev->reg_state) == NETREG_REGISTERED;
#endif
}

static inline void sgh_set_tos(struct flowi4 *fl4, u8 tos)
{
#ifdef SGH_HAVE_FLOWI4_DSCP
	fl4->flowi4_dscp = inet_dsfield_to_dscp(tos);
#else
	fl4->flowi4_tos = tos & INET_DSCP_MASK;
#endif
}

#ifdef SGH_HAVE_SOCKADDR_UNSIZED
typedef struct sockaddr_unsized sgh_bind_arg;
#else
typedef struct sockaddr sgh_bind_arg;
#endif

/* Looks in the tables of TCP's sockets, of the initial name space. */
#ifdef SGH_HAVE_INET_HASHINFO
#define SGH_TCP_LOOKUP(function, args...) \
	function(&init_net, init_net.ipv4.tcp_death_row.hashinfo, ##args)
#else
#define SGH_TCP_LOOKUP(function, args...) function(&init_net, ##args)
#endif

/* ---- devlink ---- */

/* Later kernels take the grace period from the operations.  Ours is 0, there the default. */
#ifdef SGH_HAVE_HEALTH_OPS_PERIOD
#define sgh_health_reporter_create(devlink, ops, priv) \
	devlink_health_reporter_create(devlink, ops, priv)
#else
#define sgh_health_reporter_create(devlink, ops, priv) \
	devlink_health_reporter_create(devlink, ops, 0, priv)
#endif

/* ---- Messages ---- */

#ifndef NL_SET_ERR_MSG_FMT_MOD
#define NL_SET_ERR_MSG_FMT_MOD(extack, fmt, args...)                           \
	do {                                                                   \
		pr_err_ratelimited(KBUILD_MODNAME ": " fmt "\n", ##args);      \
		NL_SET_ERR_MSG_MOD((extack), "refused, see the kernel's log"); \
	} while (0)
#endif

#endif
