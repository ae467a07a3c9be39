// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * States of queue pairs: modify and query.
 *
 * There are two ways to connect, distinguished by the attributes:
 *
 * - iw_cm and rdma_cm only name state, rights and port.  They connect the queue pair
 *   themselves, so the states on the way to RTS are only recorded, and RTS is only confirmed;
 *   those on the way out are the adapter's CLOSING (graceful, iw_cm's SQD) and ERROR
 *   (abortive).
 * - A program that connects as on InfiniBand names all that ib_modify_qp_is_ok() requires.  Its
 *   move to RTR names a destination and starts a rendezvous (rendezvous.c).  From then on, until
 *   RESET, the queue pair follows InfiniBand's table of states.
 *
 * qp->mutex serialises modify with the work of the rendezvous.
 */
#include <linux/delay.h>

#include "qp.h"
#include "rendezvous.h"
#include "trace.h"

#define SGH_RESET_TRIES 500 /* of 1 to 2 ms */

/* The attributes of the iWARP way. */
#define SGH_IW_ATTRS (IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PORT)

int sgh_qp_set_state(struct sgh_qp *qp, enum sg_qp_state state)
{
	struct sg_cmd_modify_qp cmd = {};
	int ret;

	cmd.qpn = cpu_to_le32(qp->qpn);
	cmd.mask = cpu_to_le32(SG_QP_MOD_STATE);
	cmd.state = cpu_to_le32(state);
	ret = sgh_admin(qp->dev, SG_ADMIN_MODIFY_QP, &cmd, sizeof(cmd), NULL);
	trace_sgh_qp_state(qp->dev, qp->qpn, state, ret);
	/* Everything of a lost adapter is in error. */
	return ret && sgh_dead(qp->dev) && state == SG_QP_ERROR ? 0 : ret;
}

static int sgh_modify_access(struct sgh_qp *qp, int access)
{
	struct sg_cmd_modify_qp cmd = {};
	int ret;

	cmd.qpn = cpu_to_le32(qp->qpn);
	cmd.mask = cpu_to_le32(SG_QP_MOD_ACCESS);
	cmd.access = cpu_to_le32(sgh_qp_access(qp->dev, access));
	ret = sgh_admin(qp->dev, SG_ADMIN_MODIFY_QP, &cmd, sizeof(cmd), NULL);
	if (!ret)
		qp->access = access;
	return ret;
}

/* How long a message may wait for a receive; an adapter may decide not to wait at all. */
static int sgh_modify_rnr(struct sgh_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct sg_cmd_modify_qp cmd = {};
	u32 bits = (mask & IB_QP_MIN_RNR_TIMER ? SG_QP_MOD_RNR_TIMER : 0) |
		   (mask & IB_QP_RNR_RETRY ? SG_QP_MOD_RNR_RETRY : 0);

	if (!bits)
		return 0;
	cmd.qpn = cpu_to_le32(qp->qpn);
	cmd.mask = cpu_to_le32(bits);
	cmd.min_rnr_timer = attr->min_rnr_timer;
	cmd.rnr_retry = attr->rnr_retry;
	return sgh_admin(qp->dev, SG_ADMIN_MODIFY_QP, &cmd, sizeof(cmd), NULL);
}

/*
 * The state of a queue pair is in three places: the adapter's is the truth while there is a
 * connection; ib_state is how far the owner has moved the queue pair before, which the adapter does
 * not know; and a rendezvous decides which of the two counts.  In InfiniBand's terms:
 *
 *   adapter	without a rendezvous	with an active one
 *   IDLE	ib_state		ib_state
 *   RTS	RTS			ib_state: the owner may not have come that far yet
 *   CLOSING	SQD			SQD
 *   TERMINATE	SQE			ERR
 *   ERROR	ERR			ERR
 */
static enum ib_qp_state sgh_ib_state(const struct sgh_qp *qp, enum sg_qp_state state)
{
	bool rdv = sgh_rdv_active(qp);

	switch (state) {
	case SG_QP_IDLE:
		return qp->ib_state;
	case SG_QP_RTS:
		return rdv ? qp->ib_state : IB_QPS_RTS;
	case SG_QP_CLOSING:
		return IB_QPS_SQD;
	case SG_QP_TERMINATE:
		return rdv ? IB_QPS_ERR : IB_QPS_SQE;
	default:
		return IB_QPS_ERR;
	}
}

/* The only way to the state of a queue pair.  qp->mutex held.  May sleep. */
int sgh_qp_status(struct sgh_qp *qp, struct sgh_qp_status *s)
{
	struct sg_admin_rsp rsp;
	int ret;

	memset(s, 0, sizeof(*s));
	ret = sgh_admin_id(qp->dev, SG_ADMIN_QUERY_QP, qp->qpn, &rsp);
	if (!ret) {
		s->state = le32_to_cpu(rsp.data[0]);
		s->ird = le32_to_cpu(rsp.data[1]);
		s->ord = le32_to_cpu(rsp.data[2]);
		s->sq_used = le32_to_cpu(rsp.data[3]);
		s->rq_used = le32_to_cpu(rsp.data[4]);
	} else if (sgh_dead(qp->dev)) {
		s->state = SG_QP_ERROR;
		ret = 0;
	}
	s->ib_state = sgh_ib_state(qp, s->state);
	return ret;
}

/*
 * SQD: nothing to do if the connection is ending already, because the peer was first.  Both sides
 * of a graceful close come here, and the peer's close may arrive between query and command.
 */
static int sgh_modify_closing(struct sgh_qp *qp)
{
	struct sgh_qp_status s;
	int ret;

	ret = sgh_qp_status(qp, &s);
	if (ret || (s.state != SG_QP_IDLE && s.state != SG_QP_RTS))
		return ret;
	ret = sgh_qp_set_state(qp, SG_QP_CLOSING);
	if (ret && !sgh_qp_status(qp, &s) && s.state != SG_QP_IDLE && s.state != SG_QP_RTS)
		ret = 0;
	return ret;
}

/* All posted work is complete, and its completions are of no interest any more. */
static void sgh_wq_reset(struct sgh_wq *wq)
{
	unsigned long flags;

	spin_lock_irqsave(&wq->lock, flags);
	WRITE_ONCE(wq->ci, wq->pi);
	spin_unlock_irqrestore(&wq->lock, flags);
}

/*
 * Leaves ERROR once the connection is gone and all work is flushed, which takes the adapter a
 * moment, and longer if TCP lingers.  Events of a rendezvous need the mutex, and all other events
 * wait behind them, so the mutex is released between the tries.  Another thread that modifies the
 * same queue pair meanwhile finds it in error.
 */
static int sgh_qp_set_idle(struct sgh_qp *qp)
{
	int ret, tries;

	for (tries = 0; tries < SGH_RESET_TRIES; tries++) {
		ret = sgh_qp_set_state(qp, SG_QP_IDLE);
		if (ret != -EINVAL)
			break;
		mutex_unlock(&qp->mutex);
		usleep_range(1000, 2000);
		mutex_lock(&qp->mutex);
		if (qp->gone)
			break;
	}
	return ret;
}

/*
 * RESET goes through error if the queue pair is connected or work was posted before the
 * connection.  Unpolled completions are void; user space discards its own.
 */
static int sgh_modify_reset(struct sgh_qp *qp)
{
	struct sgh_qp_status s;
	bool pristine;
	int ret;

	sgh_rdv_stop(qp);
	ret = sgh_qp_status(qp, &s);
	pristine = !ret && s.state == SG_QP_IDLE && !s.sq_used && !s.rq_used;
	if (!ret && !pristine && s.state != SG_QP_ERROR)
		ret = sgh_qp_set_state(qp, SG_QP_ERROR);
	if (!ret && !pristine)
		ret = sgh_qp_set_idle(qp);
	if (ret)
		return ret;
	qp->ib_state = IB_QPS_RESET;
	qp->fresh = false;
	if (!qp->user) {
		sgh_qp_scrub(qp);
		sgh_wq_reset(&qp->sq);
		sgh_wq_reset(&qp->rq);
	}
	return 0;
}

/* RTS: iw_cm gets there by connecting.  An error is better than a wait that never ends. */
static int sgh_modify_rts(struct sgh_qp *qp)
{
	struct sgh_qp_status s;
	int ret;

	ret = sgh_qp_status(qp, &s);
	if (ret || s.state == SG_QP_RTS)
		return ret;
	return -EINVAL;
}

static int sgh_modify_iw(struct sgh_qp *qp, struct ib_qp_attr *attr, int mask)
{
	int ret;

	/*
	 * rdma_cm moves every iWARP queue pair to INIT with no rights at all, before it has an
	 * iw_cm identifier, and never names them again: zero means that the caller has no opinion.
	 */
	if ((mask & IB_QP_ACCESS_FLAGS) && attr->qp_access_flags) {
		ret = sgh_modify_access(qp, sgh_with_unsaid(qp->dev, attr->qp_access_flags));
		if (ret)
			return ret;
	}
	if (!(mask & IB_QP_STATE))
		return 0;
	switch (attr->qp_state) {
	case IB_QPS_INIT:
	case IB_QPS_RTR: /* librdmacm, before it accepts */
		qp->ib_state = IB_QPS_INIT;
		return 0;
	case IB_QPS_RTS:
		return sgh_modify_rts(qp);
	case IB_QPS_RESET:
		return sgh_modify_reset(qp);
	case IB_QPS_SQD:
		return sgh_modify_closing(qp);
	case IB_QPS_SQE:
	case IB_QPS_ERR:
		return sgh_qp_set_state(qp, SG_QP_ERROR);
	default:
		return -EINVAL;
	}
}

/* Checks the attributes that InfiniBand limits; those without a meaning on TCP are accepted. */
static bool sgh_attr_ok(const struct sgh_dev *dev, const struct ib_qp_attr *attr, int mask)
{
	const struct {
		int mask;
		bool ok;
	} checks[] = {
		{ IB_QP_PORT, attr->port_num == 1 },
		{ IB_QP_PKEY_INDEX, !attr->pkey_index },
		{ IB_QP_PATH_MTU, attr->path_mtu >= IB_MTU_256 && attr->path_mtu <= IB_MTU_4096 },
		{ IB_QP_TIMEOUT, attr->timeout <= 31 },
		{ IB_QP_RETRY_CNT, attr->retry_cnt <= 7 },
		{ IB_QP_RNR_RETRY, attr->rnr_retry <= SG_RNR_RETRY_MAX },
		{ IB_QP_MIN_RNR_TIMER, attr->min_rnr_timer <= SG_RNR_TIMER_MAX },
		{ IB_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic <= dev->caps.max_ord },
		{ IB_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic <= dev->caps.max_ird },
		{ IB_QP_DEST_QPN, !(attr->dest_qp_num >> 24) },
		{ IB_QP_AV, attr->ah_attr.ah_flags & IB_AH_GRH },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		if (mask & checks[i].mask && !checks[i].ok)
			return false;
	}
	return true;
}

static int sgh_modify_ib(struct sgh_qp *qp, struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state cur, next;
	struct sgh_qp_status s;
	int ret;

	ret = sgh_qp_status(qp, &s);
	if (ret)
		return ret;
	cur = s.ib_state;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if ((mask & IB_QP_CUR_STATE && attr->cur_qp_state != cur) ||
	    !ib_modify_qp_is_ok(cur, next, IB_QPT_RC, mask) || !sgh_attr_ok(qp->dev, attr, mask))
		return -EINVAL;
	if (next == IB_QPS_SQD || cur == IB_QPS_SQD)
		return -EOPNOTSUPP; /* a connection cannot be suspended */
	if (mask & IB_QP_ACCESS_FLAGS) {
		ret = sgh_modify_access(qp, attr->qp_access_flags);
		if (ret)
			return ret;
	}
	ret = sgh_modify_rnr(qp, attr, mask);
	if (ret)
		return ret;
	switch (next) {
	case IB_QPS_RESET:
		return sgh_modify_reset(qp);
	case IB_QPS_ERR:
		sgh_rdv_stop(qp);
		return sgh_qp_set_state(qp, SG_QP_ERROR);
	case IB_QPS_RTR:
		ret = sgh_rdv_rtr(qp, attr);
		if (ret)
			return ret;
		break;
	case IB_QPS_RTS:
		sgh_rdv_rts(qp, attr, mask);
		break;
	default:
		break;
	}
	qp->ib_state = next;
	return 0;
}

int sgh_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct sgh_qp *qp = to_sgh_qp(ibqp);
	int ret;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	mutex_lock(&qp->mutex);
	if (qp->gone)
		ret = -EINVAL;
	else if (sgh_rdv_active(qp) || (mask & ~SGH_IW_ATTRS && !READ_ONCE(qp->conn)))
		ret = sgh_modify_ib(qp, attr, mask);
	else
		ret = sgh_modify_iw(qp, attr, mask);
	mutex_unlock(&qp->mutex);
	return ret;
}

int sgh_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init_attr)
{
	struct sgh_qp *qp = to_sgh_qp(ibqp);
	struct sgh_qp_status s;
	int ret;

	memset(attr, 0, sizeof(*attr)); /* ib_uverbs copies all of it to the process */
	mutex_lock(&qp->mutex);
	ret = sgh_qp_status(qp, &s);
	if (!ret && !sgh_rdv_attr(qp, attr)) {
		attr->path_mtu = ib_mtu_int_to_enum(READ_ONCE(qp->dev->mtu));
		attr->max_dest_rd_atomic = s.ird;
		attr->max_rd_atomic = s.ord;
	}
	if (!ret) {
		attr->qp_state = s.ib_state;
		/* The state that all iWARP drivers report for a new queue pair. */
		if (attr->qp_state == IB_QPS_RESET && qp->fresh)
			attr->qp_state = IB_QPS_INIT;
	}
	mutex_unlock(&qp->mutex);
	if (ret)
		return ret;
	attr->cur_qp_state = attr->qp_state;
	attr->qp_access_flags = qp->access;
	attr->port_num = 1;
	attr->cap.max_send_wr = qp->sq.entries;
	attr->cap.max_recv_wr = qp->rq.entries;
	attr->cap.max_send_sge = qp->sq.max_sge;
	attr->cap.max_recv_sge = qp->rq.max_sge;
	attr->cap.max_inline_data = qp->max_inline;

	init_attr->qp_context = ibqp->qp_context;
	init_attr->qp_type = ibqp->qp_type;
	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	init_attr->srq = ibqp->srq;
	init_attr->sq_sig_type = qp->signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init_attr->cap = attr->cap;
	return 0;
}
