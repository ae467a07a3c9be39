/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn RDMA adapter driver: the adapter and the RDMA device.
 *
 * Two objects with different lifetimes: struct sgh_dev is the PCI function, from probe to remove;
 * struct sgh_ibdev is the RDMA device, which exists while the network interface that shares the
 * adapter's port does.  Names start with sgh_, because sg_ belongs to the hardware interface and to
 * the kernel's scatterlists.  A struct sgh_dev is called dev, a struct device is called device.
 *
 * Locks, outermost first:
 *   qp->mutex	state of a queue pair and its rendezvous; then rdv_mutex, for its listeners
 *   listen_mutex	a listener's number against the events that carry it
 *   addr_mutex	addresses and MTU as the adapter knows them; no ib_core calls under it
 *   id_mutex	makes "free a QP's or CQ's number and remove it", or "create and enter it", atomic
 *   cm_lock	state of connections, qp->conn
 *   cq->resize_mutex, srq->resize_mutex
 *   cq->lock, then sq.lock or rq.lock of a queue pair, or the lock of a shared receive queue
 *   aeq_lock, then admin.lock: leaves
 */
#ifndef SGH_DEV_H
#define SGH_DEV_H

#include <linux/completion.h>
#include <linux/fault-inject.h>
#include <linux/idr.h>
#include <linux/kfifo.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include <staghorn/abi.h>
#include <staghorn/admin.h>
#include <staghorn/io.h>
#include <staghorn/regs.h>

#include "compat.h"
#include "hw.h"
#include "net.h"

#define SGH_NAME "staghorn"

#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
/* Files of debugfs (debugfs.c). */
struct sgh_faults {
	struct fault_attr attr;
	struct dentry *dir;
	u32 error;
	u32 opcode;
};
#endif

enum sgh_flag {
	SGH_DEAD, /* the adapter was reset: no command reaches it any more */
};

/* How the adapter was lost the last time. */
struct sgh_loss {
	const char *why;    /* NULL: never */
	u32 status, reason; /* registers STATUS and FATAL */
	u32 commands;	    /* without an answer */
	time64_t at;
};

struct sgh_dev {
	struct pci_dev *pdev;
	void __iomem *regs;
	u8 __iomem *db; /* doorbell page 0, the kernel's */
	unsigned long flags;
	bool up;	       /* between sgh_up() and sgh_down(); set under up_mutex */
	struct mutex up_mutex; /* held by who looks at an adapter that must stay up */
	struct devlink *devlink;

	/* Recovery (main.c, health.c): at most SGH_RECOVERIES in a period. */
	spinlock_t recover_lock; /* the next one, and the start of the work */
	bool may_recover;
	unsigned long recover_since; /* with the next one under devlink's lock */
	unsigned int recoveries;
	struct delayed_work recover_work;
	struct devlink_health_reporter *reporter;
	struct sgh_loss loss;
	/* The next two are written under devlink's lock. */
	bool recovering;       /* it was taken down and did not come up yet */
	unsigned int failures; /* attempts since it was up */
	bool resume;	       /* it was up, or recovering, when it was suspended */
	struct sgh_caps caps;
	u8 mac[ETH_ALEN];
	u64 guid;
	u32 link_mtu;
	u32 link_speed;

	struct sgh_admin admin;

	u32 num_vectors;
	u32 num_irqs; /* requested ones */
	struct sgh_vector *vectors;
	struct completion test_irq;

	struct sgh_eq aeq;
	spinlock_t aeq_lock; /* aeq, and aeq_fifo's writers */
	bool aeq_stalled;
	DECLARE_KFIFO_PTR(aeq_fifo, struct sg_eqe);
	struct workqueue_struct *event_wq; /* ordered: events in the adapter's order */
	struct work_struct event_work;
	struct work_struct fatal_work;
	struct delayed_work health_work;

	u32 num_ceqs;
	struct sgh_eq *ceqs; /* eqn i + 1 */
	u64 lost_irqs;	     /* found by the health check, which alone writes it */

	struct mutex id_mutex; /* numbers are in the tables while the adapter uses them */
	struct xarray qps;     /* by number */
	struct xarray cqs;
	struct xarray srqs;
	struct xarray odps;	/* regions on demand, by STag */
	struct mutex odp_mutex; /* held while a region is registered and entered in odps */
	struct workqueue_struct *fault_wq;
	struct xarray counters; /* of queue pairs, by the RDMA core's number */
	struct ida uars;

	/* Connections. */
	struct mutex listen_mutex;
	struct xarray listeners; /* by the adapter's number */
	struct xarray conns;	 /* passive connections by the adapter's number */
	struct mutex rdv_mutex;
	u32 rdv_listeners[2];	    /* the adapter's numbers, IPv4 and IPv6; 0: none */
	struct socket *rdv_held[2]; /* their ports */
	spinlock_t cm_lock;
	u32 conn_generation;

	/* Network interface. */
	struct notifier_block netdev_nb;
	struct notifier_block inetaddr_nb;
	struct notifier_block inet6addr_nb;
	struct notifier_block fib_nb;
	struct delayed_work net_work;
	spinlock_t net_lock; /* net_stopping, and the start of net_work */
	bool net_stopping;
	struct net_device *netdev;
	netdevice_tracker netdev_tracker;
	const struct net_device *netdev_master; /* only for comparison, never dereferenced */
	struct mutex addr_mutex;
	struct sgh_net_addr addrs[SG_PORT_ADDR_MAX]; /* an address stays in its slot */
	bool addrs_changed; /* the set of addresses, since ib_core was notified */
	u32 addrs_left_out;
	u32 mtu;
	bool port_active;
	bool fatal_told;

	struct sgh_ibdev *ib; /* NULL while there is no interface */

#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
	struct sgh_faults faults;
#endif
};

struct sgh_ibdev {
	struct ib_device ibdev;
	struct sgh_dev *dev;
};

struct sgh_ucontext {
	struct ib_ucontext ibucontext;
	u32 uar;
	struct rdma_user_mmap_entry *db_entry;
};

struct sgh_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

static inline struct sgh_dev *to_sgh(struct ib_device *ibdev)
{
	return container_of(ibdev, struct sgh_ibdev, ibdev)->dev;
}

static inline struct sgh_pd *to_sgh_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct sgh_pd, ibpd);
}

static inline bool sgh_has(const struct sgh_dev *dev, u32 features)
{
	return (dev->caps.features & features) == features;
}

static inline bool sgh_dead(const struct sgh_dev *dev)
{
	return test_bit(SGH_DEAD, &dev->flags);
}

static inline u32 sgh_read(struct sgh_dev *dev, u32 reg)
{
	return readl(dev->regs + reg);
}

static inline void sgh_write(struct sgh_dev *dev, u32 reg, u32 value)
{
	writel(value, dev->regs + reg);
}

/* main.c: from probe to remove, or from reload to reload */
#define SGH_RECOVERIES 3
#define SGH_RECOVER_PERIOD (60 * HZ)
#define SGH_RECOVER_DELAY (HZ / 2)
void sgh_recover(struct sgh_dev *dev);
int sgh_restart(struct sgh_dev *dev);
int sgh_up(struct sgh_dev *dev);
void sgh_down(struct sgh_dev *dev);

/* devlink.c: information, updates of the firmware, reload */
int sgh_devlink_init(struct sgh_dev *dev);
void sgh_devlink_fini(struct sgh_dev *dev);

/* health.c: the devlink health reporter */
int sgh_health_init(struct sgh_dev *dev);
void sgh_health_fini(struct sgh_dev *dev);
void sgh_health_lost(struct sgh_dev *dev, const char *why, u32 status, u32 reason, u32 commands);
void sgh_health_report(struct sgh_dev *dev);
void sgh_health_good(struct sgh_dev *dev);

/* debugfs.c: faults that the kernel's own framework injects */
#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
void sgh_debugfs_init(struct sgh_dev *dev);
void sgh_debugfs_fini(struct sgh_dev *dev);
int sgh_fail_admin(struct sgh_dev *dev, u8 opcode);
#else
static inline void sgh_debugfs_init(struct sgh_dev *dev)
{
}

static inline void sgh_debugfs_fini(struct sgh_dev *dev)
{
}

static inline int sgh_fail_admin(struct sgh_dev *dev, u8 opcode)
{
	return 0;
}
#endif

/* verbs.c: device, port, context, PD */
int sgh_ib_register(struct sgh_dev *dev);
void sgh_ib_unregister(struct sgh_dev *dev);
void sgh_ib_port_event(struct sgh_dev *dev);
void sgh_ib_fatal_event(struct sgh_dev *dev);
void sgh_ib_gid_event(struct sgh_dev *dev);

/*
 * Input of a process.  A longer one than we know is accepted if the rest is zero: then the fields
 * that a later provider adds have no meaning yet.
 */
static inline int sgh_udata_in(struct ib_udata *udata, void *req, size_t size)
{
	if (udata->inlen < size)
		return -EINVAL;
	if (udata->inlen > size && !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EINVAL;
	return ib_copy_from_udata(req, udata, size);
}

#endif
