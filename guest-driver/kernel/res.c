// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Details for "rdma resource show -dd", and raw dumps for "rdma resource show -r".
 *
 * Raw dumps are the structures below, in little-endian words; docs/manual/driver.md describes them.
 * New members go to the end, and a reader looks at size.
 *
 * ib_core keeps an object until the function returns, but it may be under destruction: what belongs
 * to the adapter or to a connection is read under the lock of its owner, who then finds it gone.
 */
#include <net/netlink.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_netlink.h>

#include "cm.h"
#include "cq.h"
#include "mr.h"
#include "qp.h"
#include "rendezvous.h"
#include "srq.h"
#include "stats.h"

#define SGH_NO_STATE 0xffffffffu /* of a queue pair that is being destroyed, or did not answer */

struct sgh_raw_qp {
	__le32 size;
	__le32 qpn;
	__le32 state; /* enum sg_qp_state */
	__le32 ib_state;
	__le32 ird, ord;
	__le32 sq_used, rq_used;
	__le32 sq_entries, sq_stride, sq_pi, sq_ci; /* indices of processes are 0 */
	__le32 rq_entries, rq_stride, rq_pi, rq_ci;
	__le32 send_cqn, recv_cqn, srqn;
	__le32 conn, conn_state;    /* enum sgh_conn_state; 0: no connection of iw_cm */
	__le32 rdv_conn, rdv_state; /* enum sgh_rdv_state; 0: no rendezvous */
	__le32 access;		    /* IB_ACCESS_* */
};

struct sgh_raw_cq {
	__le32 size;
	__le32 cqn;
	__le32 eqn, vector;
	__le32 entries, ci;
	__le32 backlog; /* unread entries of an earlier ring */
	__le32 resizing;
};

struct sgh_raw_mr {
	__le32 size;
	__le32 stag;
	__le32 access; /* IB_ACCESS_* */
	__le32 page_size;
	__le32 max_pages, npages; /* of fast registration */
	__le32 hash_alg, mem_type, mem_mode;
	__le32 odp;
	__le64 iova, length;
};

/* Connection and rendezvous of a queue pair. */
struct sgh_qp_link {
	u32 conn, rdv_conn;
	enum sgh_conn_state conn_state;
	enum sgh_rdv_state rdv_state;
	struct sockaddr_storage peer; /* family 0: not known */
};

static const char *const sgh_qp_states[] = {
	[SG_QP_IDLE] = "IDLE",		 [SG_QP_RTS] = "RTS",	  [SG_QP_CLOSING] = "CLOSING",
	[SG_QP_TERMINATE] = "TERMINATE", [SG_QP_ERROR] = "ERROR",
};

static const char *const sgh_conn_states[] = {
	[SGH_CONN_NEW] = "none",
	[SGH_CONN_CONNECTING] = "CONNECTING",
	[SGH_CONN_REQUESTED] = "REQUESTED",
	[SGH_CONN_ACCEPTING] = "ACCEPTING",
	[SGH_CONN_ESTABLISHED] = "ESTABLISHED",
	[SGH_CONN_GONE] = "GONE",
};

static const char *const sgh_rdv_states[] = {
	[RDV_OFF] = "none",	     [RDV_WAITING] = "WAITING", [RDV_CALLING] = "CALLING",
	[RDV_ANSWERED] = "ANSWERED", [RDV_UP] = "UP",		[RDV_LEFT] = "LEFT",
};

/* A detail: a number, or a text if there is one. */
struct sgh_detail {
	const char *name;
	u32 value;
	const char *text;
};

static int sgh_put_detail(struct sk_buff *msg, const struct sgh_detail *d)
{
	return d->text ? rdma_nl_put_driver_string(msg, d->name, d->text)
		       : rdma_nl_put_driver_u32(msg, d->name, d->value);
}

static int sgh_put_details(struct sk_buff *msg, const struct sgh_detail *d, int n)
{
	struct nlattr *table;
	int i;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < n; i++) {
		if (sgh_put_detail(msg, &d[i])) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

/* What the adapter says about a queue pair, and the state of its rendezvous. */
static void sgh_res_qp_status(struct sgh_qp *qp, struct sgh_qp_status *s, struct sgh_qp_link *link)
{
	memset(s, 0, sizeof(*s));
	mutex_lock(&qp->mutex);
	if (qp->gone || sgh_qp_status(qp, s))
		s->state = SGH_NO_STATE;
	if (!qp->gone && qp->rdv) {
		link->rdv_state = qp->rdv->state;
		link->rdv_conn = qp->rdv->conn;
	}
	mutex_unlock(&qp->mutex);
}

static void sgh_res_qp_link(struct sgh_qp *qp, struct sgh_qp_link *link)
{
	struct sgh_conn *conn;

	spin_lock(&qp->dev->cm_lock);
	conn = qp->conn;
	if (conn) {
		link->conn = conn->id;
		link->conn_state = conn->state;
		if (conn->cm_id)
			link->peer = conn->cm_id->m_remote_addr;
	}
	spin_unlock(&qp->dev->cm_lock);
}

static const char *sgh_res_state_name(enum sg_qp_state state)
{
	return state < ARRAY_SIZE(sgh_qp_states) ? sgh_qp_states[state] : "unknown";
}

int sgh_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct sgh_qp *qp = to_sgh_qp(ibqp);
	struct sgh_qp_link link = {};
	struct sgh_qp_status s;
	char peer[64] = "none";

	sgh_res_qp_status(qp, &s, &link);
	sgh_res_qp_link(qp, &link);
	if (link.peer.ss_family)
		snprintf(peer, sizeof(peer), "%pISpc", &link.peer);
	{
		const struct sgh_detail d[] = {
			{ "state", 0, sgh_res_state_name(s.state) },
			{ "sq_entries", qp->sq.entries },
			{ "sq_stride", 1u << qp->sq.stride_shift },
			{ "sq_used", s.sq_used },
			{ "sq_pi", READ_ONCE(qp->sq.pi) },
			{ "sq_ci", READ_ONCE(qp->sq.ci) },
			{ "rq_entries", qp->rq.entries },
			{ "rq_stride", 1u << qp->rq.stride_shift },
			{ "rq_used", s.rq_used },
			{ "rq_pi", READ_ONCE(qp->rq.pi) },
			{ "rq_ci", READ_ONCE(qp->rq.ci) },
			{ "max_inline", qp->max_inline },
			{ "ird", s.ird },
			{ "ord", s.ord },
			{ "srqn", ibqp->srq ? to_sgh_srq(ibqp->srq)->srqn : 0 },
			{ "conn", link.conn },
			{ "conn_state", 0, sgh_conn_states[link.conn_state] },
			{ "peer", 0, peer },
			{ "rendezvous", 0, sgh_rdv_states[link.rdv_state] },
		};

		return sgh_put_details(msg, d, ARRAY_SIZE(d));
	}
}

int sgh_fill_res_qp_raw(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct sgh_qp *qp = to_sgh_qp(ibqp);
	struct sgh_raw_qp raw = { .size = cpu_to_le32(sizeof(raw)) };
	struct sgh_qp_link link = {};
	struct sgh_qp_status s;

	sgh_res_qp_status(qp, &s, &link);
	sgh_res_qp_link(qp, &link);
	raw.qpn = cpu_to_le32(qp->qpn);
	raw.state = cpu_to_le32(s.state);
	raw.ib_state = cpu_to_le32(s.ib_state);
	raw.ird = cpu_to_le32(s.ird);
	raw.ord = cpu_to_le32(s.ord);
	raw.sq_used = cpu_to_le32(s.sq_used);
	raw.rq_used = cpu_to_le32(s.rq_used);
	raw.sq_entries = cpu_to_le32(qp->sq.entries);
	raw.sq_stride = cpu_to_le32(1u << qp->sq.stride_shift);
	raw.sq_pi = cpu_to_le32(READ_ONCE(qp->sq.pi));
	raw.sq_ci = cpu_to_le32(READ_ONCE(qp->sq.ci));
	raw.rq_entries = cpu_to_le32(qp->rq.entries);
	raw.rq_stride = cpu_to_le32(1u << qp->rq.stride_shift);
	raw.rq_pi = cpu_to_le32(READ_ONCE(qp->rq.pi));
	raw.rq_ci = cpu_to_le32(READ_ONCE(qp->rq.ci));
	raw.send_cqn = cpu_to_le32(ibqp->send_cq ? to_sgh_cq(ibqp->send_cq)->cqn : 0);
	raw.recv_cqn = cpu_to_le32(ibqp->recv_cq ? to_sgh_cq(ibqp->recv_cq)->cqn : 0);
	raw.srqn = cpu_to_le32(ibqp->srq ? to_sgh_srq(ibqp->srq)->srqn : 0);
	raw.conn = cpu_to_le32(link.conn);
	raw.conn_state = cpu_to_le32(link.conn_state);
	raw.rdv_conn = cpu_to_le32(link.rdv_conn);
	raw.rdv_state = cpu_to_le32(link.rdv_state);
	raw.access = cpu_to_le32(READ_ONCE(qp->access));
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(raw), &raw);
}

/* A snapshot, because a resize may replace the ring. */
static void sgh_res_cq(struct sgh_cq *cq, struct sgh_raw_cq *raw)
{
	unsigned long flags;

	memset(raw, 0, sizeof(*raw));
	spin_lock_irqsave(&cq->lock, flags);
	raw->size = cpu_to_le32(sizeof(*raw));
	raw->cqn = cpu_to_le32(cq->cqn);
	raw->eqn = cpu_to_le32(cq->eq->eqn);
	raw->vector = cpu_to_le32(cq->eq->vector);
	raw->entries = cpu_to_le32(cq->ring.entries);
	raw->ci = cpu_to_le32(cq->ci);
	raw->backlog = cpu_to_le32(cq->backlog_num - cq->backlog_pos);
	raw->resizing = cpu_to_le32(cq->resizing);
	spin_unlock_irqrestore(&cq->lock, flags);
}

int sgh_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct sgh_raw_cq raw;

	sgh_res_cq(to_sgh_cq(ibcq), &raw);
	{
		const struct sgh_detail d[] = {
			{ "entries", le32_to_cpu(raw.entries) }, { "ci", le32_to_cpu(raw.ci) },
			{ "backlog", le32_to_cpu(raw.backlog) }, { "eqn", le32_to_cpu(raw.eqn) },
			{ "vector", le32_to_cpu(raw.vector) },
		};

		return sgh_put_details(msg, d, ARRAY_SIZE(d));
	}
}

int sgh_fill_res_cq_raw(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct sgh_raw_cq raw;

	sgh_res_cq(to_sgh_cq(ibcq), &raw);
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(raw), &raw);
}

int sgh_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct sgh_mr *mr = to_sgh_mr(ibmr);
	const struct sgh_detail d[] = {
		{ "access", mr->access },	{ "page_size", ibmr->page_size },
		{ "max_pages", mr->max_pages }, { "npages", mr->npages },
		{ "odp", !!mr->odp },		{ "hash_alg", mr->hash_alg },
		{ "mem_type", mr->mem_type },	{ "mem_mode", mr->mem_mode },
	};

	return sgh_put_details(msg, d, ARRAY_SIZE(d));
}

int sgh_fill_res_mr_raw(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct sgh_mr *mr = to_sgh_mr(ibmr);
	struct sgh_raw_mr raw = {
		.size = cpu_to_le32(sizeof(raw)),
		.stag = cpu_to_le32(ibmr->rkey), /* fast registration changes its key */
		.access = cpu_to_le32(mr->access),
		.page_size = cpu_to_le32(ibmr->page_size),
		.max_pages = cpu_to_le32(mr->max_pages),
		.npages = cpu_to_le32(mr->npages),
		.hash_alg = cpu_to_le32(mr->hash_alg),
		.mem_type = cpu_to_le32(mr->mem_type),
		.mem_mode = cpu_to_le32(mr->mem_mode),
		.odp = cpu_to_le32(!!mr->odp),
		.iova = cpu_to_le64(ibmr->iova),
		.length = cpu_to_le64(ibmr->length),
	};

	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(raw), &raw);
}

int sgh_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	const struct sgh_srq *srq = to_sgh_srq(ibsrq);
	const struct sgh_detail d[] = {
		{ "number", srq->srqn },
		{ "entries", srq->wq.entries },
		{ "stride", 1u << srq->wq.stride_shift },
		{ "max_sge", srq->wq.max_sge },
		{ "pi", READ_ONCE(srq->wq.pi) },
		{ "completed", READ_ONCE(srq->wq.ci) },
	};

	return sgh_put_details(msg, d, ARRAY_SIZE(d));
}

/* The adapter's number of a listener at this identifier; 0: it has none. */
static u32 sgh_res_listener(struct sgh_dev *dev, const struct iw_cm_id *cm_id)
{
	struct sgh_listener *listener;
	unsigned long i, found = 0;

	mutex_lock(&dev->listen_mutex);
	xa_for_each(&dev->listeners, i, listener) {
		if (listener->cm_id == cm_id) {
			found = i;
			break;
		}
	}
	mutex_unlock(&dev->listen_mutex);
	return found;
}

/* True if this is the connection of the identifier. */
static bool sgh_res_conn(struct sgh_dev *dev, struct sgh_qp *qp, const struct iw_cm_id *cm_id,
			 struct sgh_qp_link *link)
{
	bool found;

	spin_lock(&dev->cm_lock);
	found = qp->conn && qp->conn->cm_id == cm_id;
	if (found) {
		link->conn = qp->conn->id;
		link->conn_state = qp->conn->state;
	}
	spin_unlock(&dev->cm_lock);
	return found;
}

int sgh_fill_res_cm_id(struct sk_buff *msg, struct rdma_cm_id *id)
{
	const struct iw_cm_id *cm_id = rdma_iw_cm_id(id);
	struct sgh_dev *dev = to_sgh(id->device);
	struct sgh_qp_link link = {};
	unsigned long i, qpn = 0;
	struct sgh_qp *qp;

	if (!cm_id)
		return 0;
	xa_for_each(&dev->qps, i, qp) {
		qp = sgh_qp_find(dev, i);
		if (!qp)
			continue;
		if (sgh_res_conn(dev, qp, cm_id, &link))
			qpn = i;
		sgh_qp_put(qp);
		if (qpn)
			break;
	}
	{
		const struct sgh_detail d[] = {
			{ "listener", sgh_res_listener(dev, cm_id) },
			{ "conn", link.conn },
			{ "conn_state", 0, sgh_conn_states[link.conn_state] },
			{ "qpn", qpn },
		};

		return sgh_put_details(msg, d, ARRAY_SIZE(d));
	}
}
