/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn RDMA adapter driver: objects, and the functions shared between files.
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
#include <linux/idr.h>
#include <linux/kfifo.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/fib_notifier.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>
#include <rdma/restrack.h>

#include <staghorn/abi.h>
#include <staghorn/admin.h>
#include <staghorn/io.h>
#include <staghorn/regs.h>
#include <staghorn/ring.h>

#include "compat.h"

#define SGH_NAME "staghorn"

#define SGH_ADMIN_ENTRIES 64
#define SGH_AEQ_ENTRIES 1024
#define SGH_CEQ_ENTRIES 8192
#define SGH_CQ_ENTRIES_MIN 64
#define SGH_QP_ENTRIES_MIN 16

enum sgh_flag {
	SGH_DEAD,	/* the adapter was reset: no command reaches it any more */
};

struct sgh_admin_slot {
	struct completion done;
	struct sg_admin_rsp rsp;
	u32 at;			/* producer index of the command */
	bool busy;
	bool aborted;
};

struct sgh_admin {
	spinlock_t lock;
	struct semaphore room;
	u8 *sq;
	struct sg_admin_rsp *cq;
	dma_addr_t sq_dma;
	dma_addr_t cq_dma;
	u32 pi;
	u32 ci;
	struct sgh_admin_slot slots[SGH_ADMIN_ENTRIES];
};

struct sgh_eq {
	struct sg_eqe *ring;
	dma_addr_t dma;
	u32 entries;
	u32 ci;
	u32 eqn;
	u32 vector;
};

/* One interrupt vector; vector 0 also serves the async events. */
struct sgh_vector {
	struct sgh_dev *dev;
	u32 index;
	char name[32];
};

/* An address of the port: the interface's, or that of a VLAN device on top of it. */
struct sgh_net_addr {
	struct sg_sockaddr addr;	/* family 0: none; port 0 */
	u32 ifindex;
	u16 vlan;			/* 0: not a VLAN's */
	u8 prefix_len;
	u8 gateway[16];
};

struct sgh_caps {
	u32 features;
	u32 hash_mask;
	u32 max_pd, max_mr, max_cq, max_cqe, max_qp, max_qp_wr;
	u32 max_sq_sge, max_rq_sge, max_inline;
	u32 max_ird, max_ord;
	u32 max_fr_pages;
	u32 num_uar, num_eq;
	u32 max_private_data;
	u32 max_srq, max_srq_wr, max_srq_sge;
	u32 max_mw;
	u64 max_mr_size;
	u64 page_size_mask;
	char fw_version[17];
};

struct sgh_dev {
	struct pci_dev *pdev;
	void __iomem *regs;
	u8 __iomem *db;		/* doorbell page 0, the kernel's */
	unsigned long flags;
	bool up;		/* between sgh_up() and sgh_down() */
	struct devlink *devlink;

	/* Recovery (main.c): how many since when, at most SGH_RECOVERIES in a period. */
	spinlock_t recover_lock; /* the next three, and the start of the work */
	bool may_recover;
	unsigned long recover_since;
	unsigned int recoveries;
	struct delayed_work recover_work;
	bool resume;		/* it was up when it was suspended */
	struct sgh_caps caps;
	u8 mac[ETH_ALEN];
	u64 guid;
	u32 link_mtu;
	u32 link_speed;

	struct sgh_admin admin;

	u32 num_vectors;
	u32 num_irqs;		/* requested ones */
	struct sgh_vector *vectors;
	struct completion test_irq;

	struct sgh_eq aeq;
	spinlock_t aeq_lock;
	bool aeq_stalled;
	DECLARE_KFIFO_PTR(aeq_fifo, struct sg_eqe);
	struct workqueue_struct *event_wq;	/* ordered: events in the adapter's order */
	struct work_struct event_work;
	struct work_struct fatal_work;
	struct delayed_work health_work;

	u32 num_ceqs;
	struct sgh_eq *ceqs;	/* eqn i + 1 */

	struct mutex id_mutex;
	struct xarray qps;	/* by number */
	struct xarray cqs;
	struct xarray srqs;
	struct xarray odps;	/* regions on demand, by STag */
	struct mutex odp_mutex;	/* held while a region is registered and entered in odps */
	struct workqueue_struct *fault_wq;
	struct xarray counters;	/* of queue pairs, by the RDMA core's number */
	struct ida uars;

	/* Connections. */
	struct mutex listen_mutex;
	struct xarray listeners;	/* by the adapter's number */
	struct xarray conns;	/* passive connections by the adapter's number */
	struct mutex rdv_mutex;
	u32 rdv_listeners[2];	/* the adapter's numbers, IPv4 and IPv6; 0: none */
	struct socket *rdv_held[2];	/* their ports */
	spinlock_t cm_lock;
	u32 conn_generation;

	/* Network interface. */
	struct notifier_block netdev_nb;
	struct notifier_block inetaddr_nb;
	struct notifier_block inet6addr_nb;
	struct notifier_block fib_nb;
	struct delayed_work net_work;
	spinlock_t net_lock;	/* net_stopping, and the start of net_work */
	bool net_stopping;
	struct net_device *netdev;
	netdevice_tracker netdev_tracker;
	const struct net_device *netdev_master;	/* only for comparison, never dereferenced */
	struct mutex addr_mutex;
	struct sgh_net_addr addrs[SG_PORT_ADDR_MAX];	/* an address stays in its slot */
	bool addrs_changed;	/* the set of addresses, since ib_core was told */
	u32 addrs_left_out;
	u32 mtu;
	bool port_active;
	bool fatal_told;

	struct sgh_ibdev *ib;	/* NULL while there is no interface */
};

/* Objects that the adapter numbers and that are found by their number. */
struct sgh_kind {
	u8 create, destroy;	/* SG_ADMIN_* */
	size_t table;		/* offset of its xarray in struct sgh_dev */
	const char *kept;	/* why the adapter is lost if it does not destroy one */
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

/* Kernel memory of a queue: chunks that are contiguous for the adapter, and their page list. */
#define SGH_CHUNK_SHIFT 18
#define SGH_CHUNK_SIZE (1u << SGH_CHUNK_SHIFT)

struct sgh_chunk {
	void *va;
	dma_addr_t dma;
};

struct sgh_buf {
	struct sgh_chunk *chunks;
	u32 num_chunks;
	u32 chunk_size;	/* octets of each; one chunk if smaller than SGH_CHUNK_SIZE */
	size_t size;
};

/* The page list of a command. */
struct sgh_pbl {
	struct sg_page_list desc;
	__le64 *list;		/* level 1: the pages; level 2: the leaves */
	dma_addr_t list_dma;
	size_t list_size;
	__le64 **leaves;
	u32 num_leaves;
};

/* A ring of completions and the record behind it. */
struct sgh_cq_ring {
	u32 entries;
	struct ib_umem *umem;	/* user space's; otherwise: */
	struct sgh_buf buf;
	struct sg_cq_record *record;
	dma_addr_t record_dma;	/* user space's, too */
};

struct sgh_cq {
	struct ib_cq ibcq;
	u32 cqn;
	struct sgh_eq *eq;
	struct mutex resize_mutex;
	spinlock_t lock;
	struct sgh_cq_ring ring;
	u32 ci;
	/* Kernel queues: unread entries of the previous ring. */
	struct sg_cqe *backlog;
	u32 backlog_pos, backlog_num;
	bool resizing;		/* the adapter may use another ring than we do */
	u32 arm;		/* the arming that was requested meanwhile */
	struct list_head send_qps;	/* kernel queue pairs, to flush after a fatal error */
	struct list_head recv_qps;
};

struct sgh_wq {
	spinlock_t lock;
	struct sgh_buf buf;
	struct ib_umem *umem;
	u32 entries;
	u32 stride_shift;
	u32 max_sge;
	u32 pi;
	u32 ci;
	struct list_head cq_link;
	struct sgh_wq *next;	/* new ring of a shared queue: posts go to both, else NULL */
};

/* wq.ci counts completed entries, wherever in the ring they were (srq.c). */
struct sgh_srq {
	struct ib_srq ibsrq;
	struct mutex resize_mutex;
	u32 srqn;
	struct sgh_wq wq;
};

struct sgh_conn;
struct sgh_rdv;

struct sgh_qp {
	struct ib_qp ibqp;
	struct sgh_dev *dev;
	u32 qpn;
	refcount_t refs;
	struct completion released;
	struct sgh_wq sq;
	struct sgh_wq rq;	/* empty if ibqp.srq is there */
	u32 max_inline;
	bool user;
	bool signal_all;
	struct mutex mutex;
	enum ib_qp_state ib_state;	/* as set by its owner, if not by iw_cm */
	bool fresh;		/* was never reset */
	bool gone;		/* under mutex; its number may belong to another one */
	struct sgh_rdv *rdv;	/* under mutex; NULL: never needed */
	int access;		/* IB_ACCESS_* granted to the peer */
	struct sgh_conn *conn;	/* under cm_lock */
};

/* The adapter's answer to "how does the queue pair stand?"; modify.c has the mapping. */
struct sgh_qp_status {
	enum sg_qp_state state;		/* in the adapter's terms */
	enum ib_qp_state ib_state;	/* in InfiniBand's terms */
	u32 ird, ord;
	u32 sq_used, rq_used;		/* entries posted and not completed */
};

struct sgh_odp;

struct sgh_mw {
	struct ib_mw ibmw;
};

struct sgh_mr {
	struct ib_mr ibmr;
	struct ib_umem *umem;
	struct sgh_odp *odp;	/* with umem NULL */
	u64 va;			/* as registered; iova is 0 if zero-based */
	int access;		/* IB_ACCESS_* */
	u8 hash_alg;		/* enum sg_hash */
	u8 mem_type;
	u8 mem_mode;
	/* Fast registration: the page list that REG_MR names. */
	__le64 *pages;
	dma_addr_t pages_dma;
	u32 max_pages;
	u32 npages;
};

static inline struct sgh_dev *to_sgh(struct ib_device *ibdev)
{
	return container_of(ibdev, struct sgh_ibdev, ibdev)->dev;
}

static inline struct sgh_pd *to_sgh_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct sgh_pd, ibpd);
}

static inline struct sgh_cq *to_sgh_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct sgh_cq, ibcq);
}

static inline struct sgh_qp *to_sgh_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct sgh_qp, ibqp);
}

static inline struct sgh_srq *to_sgh_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct sgh_srq, ibsrq);
}

static inline struct sgh_mr *to_sgh_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct sgh_mr, ibmr);
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
	return ioread32(dev->regs + reg);
}

static inline void sgh_write(struct sgh_dev *dev, u32 reg, u32 value)
{
	iowrite32(value, dev->regs + reg);
}

/* The kernel's doorbell page; a write is ordered after earlier writes to queue memory. */
static inline void sgh_doorbell(struct sgh_dev *dev, u32 offset, u32 low, u32 high)
{
	writeq((u64)high << 32 | low, dev->db + offset);
}

/* hw.c: registers and the admin queue */
int sgh_hw_reset(struct sgh_dev *dev);
int sgh_hw_self_test(struct sgh_dev *dev);
int sgh_hw_enable(struct sgh_dev *dev);
void sgh_health_start(struct sgh_dev *dev);
void sgh_hw_identity(struct sgh_dev *dev);
int sgh_admin_init(struct sgh_dev *dev);
void sgh_admin_fini(struct sgh_dev *dev);
void sgh_admin_poll(struct sgh_dev *dev);
int sgh_admin(struct sgh_dev *dev, u8 opcode, void *cmd, size_t len, struct sg_admin_rsp *rsp);
int sgh_admin_id(struct sgh_dev *dev, u8 opcode, u32 id, struct sg_admin_rsp *rsp);
int sgh_admin_destroy(struct sgh_dev *dev, u8 opcode, u32 id);
int sgh_admin_query(struct sgh_dev *dev, u8 opcode, u32 id, void *out, size_t len);
int sgh_query_caps(struct sgh_dev *dev);
int sgh_object_create(struct sgh_dev *dev, const struct sgh_kind *kind, void *cmd, size_t len,
		      void *object, u32 *id);
int sgh_object_destroy(struct sgh_dev *dev, const struct sgh_kind *kind, u32 id);
void sgh_fatal(struct sgh_dev *dev, const char *why);

/* main.c: from probe to remove, or from reload to reload */
#define SGH_RECOVERIES 3
#define SGH_RECOVER_PERIOD (60 * HZ)
#define SGH_RECOVER_DELAY (HZ / 2)
void sgh_recover(struct sgh_dev *dev);
int sgh_up(struct sgh_dev *dev);
void sgh_down(struct sgh_dev *dev);

/* devlink.c: information, updates of the firmware, reload */
int sgh_devlink_init(struct sgh_dev *dev);
void sgh_devlink_fini(struct sgh_dev *dev);

/* eq.c: interrupts, event queues */
int sgh_eq_init(struct sgh_dev *dev);
void sgh_eq_fini(struct sgh_dev *dev);
int sgh_irq_init(struct sgh_dev *dev);
void sgh_irq_fini(struct sgh_dev *dev);
int sgh_irq_test(struct sgh_dev *dev);
int sgh_ceq_init(struct sgh_dev *dev);
void sgh_ceq_fini(struct sgh_dev *dev);
void sgh_ceq_sync(struct sgh_dev *dev, struct sgh_eq *eq);

/* netdev.c */
int sgh_net_init(struct sgh_dev *dev);
void sgh_net_fini(struct sgh_dev *dev);
void sgh_net_sync(struct sgh_dev *dev);
void sgh_net_kick(struct sgh_dev *dev);
int sgh_net_addr(struct sgh_dev *dev, u32 slot, struct sgh_net_addr *addr);
u16 sgh_net_vlan(struct sgh_dev *dev, u32 ifindex);
u32 sgh_net_ifindex(struct sgh_dev *dev, u16 vlan);

/* verbs.c: device, port, context, PD */
int sgh_ib_register(struct sgh_dev *dev);
void sgh_ib_unregister(struct sgh_dev *dev);
void sgh_ib_port_event(struct sgh_dev *dev);
void sgh_ib_fatal_event(struct sgh_dev *dev);
void sgh_ib_gid_event(struct sgh_dev *dev);
u32 sgh_access(int ib_access);

/* buf.c: queue memory and page lists */
int sgh_buf_alloc(struct sgh_dev *dev, struct sgh_buf *buf, size_t size);
void sgh_buf_free(struct sgh_dev *dev, struct sgh_buf *buf);
int sgh_pbl_from_buf(struct sgh_dev *dev, struct sgh_pbl *pbl, const struct sgh_buf *buf);
int sgh_pbl_from_umem(struct sgh_dev *dev, struct sgh_pbl *pbl, struct ib_umem *umem,
		      unsigned long page_size, u32 count);
void sgh_pbl_free(struct sgh_dev *dev, struct sgh_pbl *pbl);

static inline void *sgh_buf_at(const struct sgh_buf *buf, size_t offset)
{
	return buf->chunks[offset >> SGH_CHUNK_SHIFT].va + (offset & (SGH_CHUNK_SIZE - 1));
}

static inline void *sgh_wqe_at(const struct sgh_wq *wq, u32 index)
{
	return sgh_buf_at(&wq->buf, (size_t)sg_index_slot(index, wq->entries) << wq->stride_shift);
}

/* Both rings have slots of the same size. */
static inline void sgh_wq_copy(const struct sgh_wq *to, const struct sgh_wq *from, u32 index)
{
	memcpy(sgh_wqe_at(to, index), sgh_wqe_at(from, index), 1 << from->stride_shift);
}

/* mr.c */
struct ib_mr *sgh_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *sgh_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 va, int access,
			      struct ib_udata *udata);
struct ib_mr *sgh_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int sgh_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset);
struct ib_mr *sgh_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 va, int fd,
				     int access, sgh_reg_dmabuf_arg *arg);
struct ib_mr *sgh_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length, u64 va,
				int access, struct ib_pd *new_pd, struct ib_udata *udata);
int sgh_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
int sgh_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int sgh_dealloc_mw(struct ib_mw *ibmw);

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

/* srq.c */
int sgh_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int sgh_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata);
int sgh_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int sgh_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
void sgh_srq_event(struct sgh_dev *dev, u32 srqn, enum ib_event_type type);
void sgh_srq_release(struct sgh_srq *srq, u32 completed);

/* qp.c */
int sgh_wq_kernel(struct sgh_dev *dev, struct sgh_wq *wq, u32 wr, u32 max_wr,
		  size_t wqe_size);
int sgh_wq_user(struct sgh_dev *dev, struct ib_device *ibdev, struct sgh_wq *wq, u64 addr,
		u32 entries, u32 stride);
void sgh_wq_free(struct sgh_dev *dev, struct sgh_wq *wq);
int sgh_wq_pbl(struct sgh_dev *dev, struct sgh_pbl *pbl, const struct sgh_wq *wq);
int sgh_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int sgh_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
void sgh_qp_scrub(struct sgh_qp *qp);
int sgh_with_unsaid(const struct sgh_dev *dev, int access);
u32 sgh_qp_access(const struct sgh_dev *dev, int ib_access);
struct sgh_qp *sgh_qp_find(struct sgh_dev *dev, u32 qpn);
void sgh_qp_put(struct sgh_qp *qp);
void sgh_qp_event(struct sgh_dev *dev, u32 qpn, enum ib_event_type event);
void sgh_qp_last_wqe_all(struct sgh_dev *dev);

/* modify.c */
int sgh_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int sgh_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init_attr);
int sgh_qp_set_state(struct sgh_qp *qp, enum sg_qp_state state);
int sgh_qp_status(struct sgh_qp *qp, struct sgh_qp_status *s);

/* gid.c, rendezvous.c */
int sgh_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid);
bool sgh_rdv_active(const struct sgh_qp *qp);
bool sgh_rdv_request(struct sgh_dev *dev, const struct sg_eqe *e);
bool sgh_rdv_event(struct sgh_dev *dev, const struct sg_eqe *e);
void sgh_rdv_end(struct sgh_qp *qp);
void sgh_rdv_unlisten(struct sgh_dev *dev);

/* wr.c */
int sgh_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr);
int sgh_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr);
int sgh_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr);
enum ib_wc_opcode sgh_wc_opcode(u8 sg_opcode);

/* cm.c, iw.c */
void sgh_iw_add_ref(struct ib_qp *ibqp);
void sgh_iw_rem_ref(struct ib_qp *ibqp);
struct ib_qp *sgh_iw_get_qp(struct ib_device *ibdev, int qpn);
int sgh_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param);
int sgh_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param);
int sgh_iw_reject(struct iw_cm_id *id, const void *pdata, u8 pdata_len);
int sgh_iw_create_listen(struct iw_cm_id *id, int backlog);
int sgh_iw_destroy_listen(struct iw_cm_id *id);
void sgh_cm_event(struct sgh_dev *dev, const struct sg_eqe *e);
void sgh_cm_qp_gone(struct sgh_qp *qp);
void sgh_cm_abort_all(struct sgh_dev *dev);
void sgh_cm_drain(struct sgh_dev *dev);

/* stats.c */
struct rdma_hw_stats *sgh_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int sgh_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index);
int sgh_fill_stat_mr(struct sk_buff *msg, struct ib_mr *ibmr);
int sgh_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr);
int sgh_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq);
int sgh_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp);
int sgh_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq);

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

/* odp.c */
#if IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)
struct sgh_odp *sgh_odp_begin(struct sgh_dev *dev, struct ib_pd *ibpd, struct sg_cmd_reg_mr *cmd,
			      u64 start, u64 *length, u64 va, int access);
int sgh_odp_registered(struct sgh_odp *odp, u32 stag);
int sgh_odp_dereg(struct sgh_odp *odp);
void sgh_odp_end(struct sgh_odp *odp);
void sgh_odp_fault(struct sgh_dev *dev, const struct sg_eqe *e);
int sgh_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		  struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs);
#else
static inline struct sgh_odp *sgh_odp_begin(struct sgh_dev *dev, struct ib_pd *ibpd,
					    struct sg_cmd_reg_mr *cmd, u64 start, u64 *length,
					    u64 va, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

/* There are no on-demand regions, hence neither deregistrations nor faults. */
static inline int sgh_odp_registered(struct sgh_odp *odp, u32 stag)
{
	return -EOPNOTSUPP;
}

static inline int sgh_odp_dereg(struct sgh_odp *odp)
{
	return 0;
}

static inline void sgh_odp_end(struct sgh_odp *odp)
{
}

static inline void sgh_odp_fault(struct sgh_dev *dev, const struct sg_eqe *e)
{
}

#define sgh_advise_mr NULL
#endif

/* counter.c */
int sgh_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp);
int sgh_counter_unbind_qp(struct ib_qp *ibqp);
int sgh_counter_dealloc(struct rdma_counter *counter);
struct rdma_hw_stats *sgh_counter_alloc_stats(struct rdma_counter *counter);
int sgh_counter_update_stats(struct rdma_counter *counter);

#endif
