/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Work queues and queue pairs: qp.c, their states in modify.c, posting in wr.c. */
#ifndef SGH_QP_H
#define SGH_QP_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "buf.h"
#include "dev.h"

#define SGH_QP_ENTRIES_MIN 16

struct sgh_conn;
struct sgh_rdv;

struct sgh_wq {
	spinlock_t lock; /* the ring and its indices */
	struct sgh_buf buf;
	struct ib_umem *umem;
	u32 entries;
	u32 stride_shift;
	u32 max_sge;
	u32 pi;
	u32 ci;
	struct list_head cq_link;
	struct sgh_wq *next; /* new ring of a shared queue: posts go to both, else NULL */
};

struct sgh_qp {
	struct ib_qp ibqp;
	struct sgh_dev *dev;
	u32 qpn;
	refcount_t refs;
	struct completion released;
	struct sgh_wq sq;
	struct sgh_wq rq; /* empty if ibqp.srq is there */
	u32 max_inline;
	bool user;
	bool signal_all;
	struct mutex mutex;	   /* changes of state, and the work of the rendezvous */
	enum ib_qp_state ib_state; /* as set by its owner, if not by iw_cm */
	bool fresh;		   /* was never reset */
	bool gone;		   /* under mutex; its number may belong to another one */
	struct sgh_rdv *rdv;	   /* under mutex; NULL: never needed */
	int access;		   /* IB_ACCESS_* granted to the peer */
	struct sgh_conn *conn;	   /* under cm_lock */
};

/* The state of a queue pair as the adapter reports it; modify.c has the mapping. */
struct sgh_qp_status {
	enum sg_qp_state state;	   /* in the adapter's terms */
	enum ib_qp_state ib_state; /* in InfiniBand's terms */
	u32 ird, ord;
	u32 sq_used, rq_used; /* entries posted and not completed */
};

static inline struct sgh_qp *to_sgh_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct sgh_qp, ibqp);
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

/* qp.c */
int sgh_wq_kernel(struct sgh_dev *dev, struct sgh_wq *wq, u32 wr, u32 max_wr, size_t wqe_size);
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

/* wr.c */
int sgh_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr);
int sgh_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr);
int sgh_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr);
enum ib_wc_opcode sgh_wc_opcode(u8 sg_opcode);

#endif
