/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn provider: objects, and the functions by file.
 *
 * Locks, outermost first: context's qp_mutex (creation and destruction of queue pairs only), then
 * a completion queue's lock, then nothing.  The send and receive locks of a queue pair are leaves
 * and are not held together with any other.
 */
#ifndef STAGHORN_PROVIDER_PROVIDER_H
#define STAGHORN_PROVIDER_PROVIDER_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <infiniband/kern-abi.h>
#include <util/compiler.h>
#include <util/util.h>

#include <staghorn/abi.h>
#include <staghorn/admin.h>
#include <staghorn/io.h>
#include <staghorn/regs.h>

#include "compat.h"
#include "lock.h"
#include "ring.h"

/*
 * Commands with the driver's part after the core's.  The core's macro would also insert the members
 * of the structs of abi.h into the command; drv_payload is enough for us.
 */
#define _STRUCT_sg_abi_alloc_ucontext_resp \
	struct {                           \
	}
#define _STRUCT_sg_abi_alloc_pd_resp \
	struct {                     \
	}
#define _STRUCT_sg_abi_create_cq \
	struct {                 \
	}
#define _STRUCT_sg_abi_create_cq_resp \
	struct {                      \
	}
#define _STRUCT_sg_abi_resize_cq \
	struct {                 \
	}
#define _STRUCT_sg_abi_resize_cq_resp \
	struct {                      \
	}
#define _STRUCT_sg_abi_create_srq \
	struct {                  \
	}
#define _STRUCT_sg_abi_create_srq_resp \
	struct {                       \
	}
#define _STRUCT_sg_abi_modify_srq \
	struct {                  \
	}
#define _STRUCT_sg_abi_create_qp \
	struct {                 \
	}
#define _STRUCT_sg_abi_create_qp_resp \
	struct {                      \
	}
#define _STRUCT_sg_abi_reg_mr \
	struct {              \
	}

DECLARE_DRV_CMD(sgp_get_context, IB_USER_VERBS_CMD_GET_CONTEXT, empty, sg_abi_alloc_ucontext_resp);
DECLARE_DRV_CMD(sgp_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD, empty, sg_abi_alloc_pd_resp);
DECLARE_DRV_CMD(sgp_create_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ, sg_abi_create_cq,
		sg_abi_create_cq_resp);
DECLARE_DRV_CMD(sgp_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ, sg_abi_resize_cq,
		sg_abi_resize_cq_resp);
DECLARE_DRV_CMD(sgp_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ, sg_abi_create_srq,
		sg_abi_create_srq_resp);
DECLARE_DRV_CMD(sgp_modify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ, sg_abi_modify_srq, empty);
DECLARE_DRV_CMD(sgp_create_qp, IB_USER_VERBS_CMD_CREATE_QP, sg_abi_create_qp,
		sg_abi_create_qp_resp);
DECLARE_DRV_CMD(sgp_reg_mr_cmd, IB_USER_VERBS_CMD_REG_MR, sg_abi_reg_mr, empty);

/* Queue pair numbers have 24 bits; the table of them has two levels, the second made on demand. */
enum sgp_qp_table {
	SGP_QPN_BITS = 24,
	SGP_QP_LEAF_BITS = 12,
	SGP_QP_LEAF_SIZE = 1 << SGP_QP_LEAF_BITS,
	SGP_QP_ROOT_SIZE = 1 << (SGP_QPN_BITS - SGP_QP_LEAF_BITS),
};

#define SGP_QPN_NONE 0xffffffffu /* in a completion entry: its queue pair is gone */

struct sgp_device {
	struct verbs_device vdev;
};

struct sgp_qp;

struct sgp_qp_leaf {
	_Atomic(struct sgp_qp *) qp[SGP_QP_LEAF_SIZE];
};

struct sgp_context {
	struct verbs_context vctx;
	uint8_t *db; /* doorbell page */
	uint32_t max_inline;
	uint32_t max_sq_sge;
	uint32_t max_rq_sge;
	uint32_t features;	  /* SG_FEATURE_* */
	uint32_t hash_mask;	  /* bit n: enum sg_hash n */
	pthread_mutex_t qp_mutex; /* writers of qp_root */
	_Atomic(struct sgp_qp_leaf *) qp_root[SGP_QP_ROOT_SIZE];
};

/* Whole zeroed pages, kept out of children after fork(): the device writes to them. */
struct sgp_buf {
	void *addr;
	size_t length;
	struct sgp_pd *owner; /* the parent domain whose allocator was used, or NULL */
	uint64_t type;	      /* the argument of that allocator */
};

struct sgp_td {
	struct ibv_td ibtd;
	_Atomic(unsigned int) parents;
};

struct sgp_pd {
	struct ibv_pd ibpd;
	struct sgp_pd *base; /* NULL: the kernel's; else a parent domain over that one */
	struct sgp_td *td;   /* of a parent domain; may be NULL */
	/* Allocator functions; both or neither. */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *alloc_context;
	_Atomic(unsigned int) parents;
};

/* Unread entries that the device had written when the queue was resized. */
struct sgp_backlog {
	struct sg_cqe *entries; /* NULL: none */
	uint32_t pos;
	uint32_t num;
};

/* The difference of the wall clock and the adapter's (clock.c). */
struct sgp_wall {
	uint64_t ahead;	   /* ns, modulo 2^64 */
	uint64_t measured; /* ns of CLOCK_BOOTTIME; 0: never */
};

struct sgp_cq {
	struct verbs_cq vcq;
	struct sgp_lock lock;
	uint32_t size; /* entries, power of two */
	uint32_t cqn;
	uint32_t ci; /* next entry to read; the record may still hold an earlier one */
	_Atomic(uint32_t) recorded; /* the content of the record */
	_Atomic(uint32_t) armed;    /* the last arming, 0 once its event was raised */
	struct sg_cqe *ring;
	struct sg_cq_record *record;
	struct sgp_backlog backlog; /* read before the ring */
	const struct sg_cqe *cur;   /* the current entry of the extended poll ... */
	uint64_t cur_tail;	    /* ... and its last word */
	struct sgp_wall wall;
	struct sgp_buf buf;
};

/* Registration data that libibverbs does not keep; all zero for an ordinary region. */
struct sgp_mr {
	struct verbs_mr vmr;
	uint8_t hash_alg; /* enum sg_hash */
	uint8_t hash_key_len;
	uint8_t mem_type;
	uint8_t mem_mode;
};

/* A receive queue, a queue pair's own or shared. */
struct sgp_rq {
	struct sgp_lock lock;
	struct sgp_ring ring;
	uint32_t max_sge;
	uint32_t number; /* of the queue pair, or the shared queue: for the doorbell */
	enum sg_doorbell doorbell;
};

struct sgp_srq {
	struct verbs_srq vsrq;
	struct sgp_rq rq;
	struct sgp_buf buf;
};

struct sgp_qp {
	struct verbs_qp vqp;

	struct sgp_lock sq_lock;
	struct sgp_ring sq;
	uint32_t sq_max_sge;
	uint32_t sq_room; /* octets behind the header of an entry */
	uint32_t max_inline;
	uint8_t sq_flags;  /* SG_WQE_* of every entry */
	uint8_t *db;	   /* the context's */
	uint32_t features; /* the context's */
	uint32_t qpn;

	/* The list being built between ibv_wr_start and ibv_wr_complete; under sq_lock. */
	int wr_err;		   /* first error */
	uint32_t wr_head;	   /* index of the next entry */
	struct sg_wqe_hdr *wr_wqe; /* the entry that needs its payload; NULL: none, or failed */

	struct sgp_srq *srq; /* NULL: receives are its own */
	struct sgp_rq rq;

	struct ibv_qp_cap cap; /* as reported to the application */
	struct sgp_buf sq_buf;
	struct sgp_buf rq_buf;
};

static inline struct sgp_context *to_sgp_context(struct ibv_context *context)
{
	return container_of(context, struct sgp_context, vctx.context);
}

static inline struct sgp_cq *to_sgp_cq(struct ibv_cq *cq)
{
	return container_of(cq, struct sgp_cq, vcq.cq);
}

static inline struct sgp_cq *to_sgp_cq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct sgp_cq, vcq.cq_ex);
}

static inline struct sgp_srq *to_sgp_srq(struct ibv_srq *srq)
{
	return container_of(srq, struct sgp_srq, vsrq.srq);
}

static inline struct sgp_pd *to_sgp_pd(struct ibv_pd *pd)
{
	return container_of(pd, struct sgp_pd, ibpd);
}

static inline struct sgp_mr *to_sgp_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct sgp_mr, vmr.ibv_mr);
}

static inline struct sgp_qp *to_sgp_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct sgp_qp, vqp.qp);
}

static inline struct sgp_qp *to_sgp_qp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct sgp_qp, vqp.qp_ex);
}

/* May be called under a completion queue's lock; NULL if there is no such queue pair. */
static inline struct sgp_qp *sgp_qp_lookup(struct sgp_context *ctx, uint32_t qpn)
{
	struct sgp_qp_leaf *leaf;

	if (qpn >> SGP_QPN_BITS)
		return NULL;
	leaf = atomic_load_explicit(&ctx->qp_root[qpn >> SGP_QP_LEAF_BITS], memory_order_acquire);
	if (!leaf)
		return NULL;
	return atomic_load_explicit(&leaf->qp[qpn & (SGP_QP_LEAF_SIZE - 1)], memory_order_acquire);
}

/* buf.c APIs: */
int sgp_buf_alloc(struct sgp_buf *buf, struct ibv_pd *ibpd, uint64_t type, size_t length);
void sgp_buf_free(struct sgp_buf *buf);

/* staghorn.c APIs: */
bool sgp_is_ours(struct ibv_device *device);

/* pd.c APIs: */
struct ibv_pd *sgp_alloc_pd(struct ibv_context *context);
struct ibv_td *sgp_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int sgp_dealloc_td(struct ibv_td *ibtd);
struct ibv_pd *sgp_alloc_parent_domain(struct ibv_context *context,
				       struct ibv_parent_domain_init_attr *attr);
int sgp_dealloc_pd(struct ibv_pd *ibpd);

/* Does an object created here belong to one thread? */
static inline bool sgp_pd_promised(struct ibv_pd *ibpd)
{
	return to_sgp_pd(ibpd)->td != NULL;
}

/* clock.c APIs: */
int sgp_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
/*
 * A completion's timestamp as the time of CLOCK_REALTIME, in ns.  db: the doorbell page; wall is
 * updated, by one thread at a time.
 */
uint64_t sgp_clock_to_wall(const uint8_t *db, struct sgp_wall *wall, uint64_t stamp);

/* verbs.c APIs: */
int sgp_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t attr_size);
int sgp_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
struct ibv_mr *sgp_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access);
/* NULL and errno on failure.  req may be NULL. */
struct ibv_mr *sgp_reg_mr_private(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				  int access, const struct sg_abi_reg_mr *req);
int sgp_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access);
struct ibv_mr *sgp_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access);
int sgp_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		  struct ibv_sge *sg_list, uint32_t num_sge);
int sgp_dereg_mr(struct verbs_mr *vmr);

/* cq.c APIs: */
struct ibv_cq *sgp_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
			     int comp_vector);
struct ibv_cq_ex *sgp_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int sgp_resize_cq(struct ibv_cq *ibcq, int cqe);
int sgp_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr);
void sgp_cq_event(struct ibv_cq *ibcq);
int sgp_destroy_cq(struct ibv_cq *ibcq);
int sgp_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc);
int sgp_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
/* Drops the unpolled completions of this queue pair. */
void sgp_cq_purge(struct sgp_cq *cq, struct sgp_qp *qp);

/* srq.c APIs: */
struct ibv_srq *sgp_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int sgp_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int attr_mask);
int sgp_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int sgp_destroy_srq(struct ibv_srq *ibsrq);

/* qp.c APIs: */
struct ibv_qp *sgp_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *sgp_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int sgp_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr);
int sgp_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask);
int sgp_destroy_qp(struct ibv_qp *ibqp);

/* post.c APIs: */
int sgp_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int sgp_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int sgp_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* mw.c APIs: */
struct ibv_mw *sgp_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int sgp_dealloc_mw(struct ibv_mw *mw);
int sgp_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* wr.c APIs: */
/* 0, or EOPNOTSUPP if we lack one of IBV_QP_EX_WITH_*.  Before the queue pair is used. */
int sgp_wr_init(struct sgp_qp *qp, uint64_t send_ops_flags);

#endif
