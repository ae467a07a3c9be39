// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Rendezvous: connections of programs without a connection manager.
 *
 * Such a program sends its GID and queue pair number to its peer by means of its own, moves its
 * queue pair to RTR with those of the peer, then to RTS, and assumes that the two are then
 * connected.  Here this needs a TCP connection.  Both sides know both pairs (GID, number), so the
 * roles need no negotiation: the queue pair with the lower one connects, to SGH_RDV_PORT; the other
 * waits for it.  Private data of MPA startup name both queue pairs (struct sgh_rdv_msg;
 * docs/protocol.md, "Rendezvous").
 *
 * Modify only records the request and returns.  rdv->work and the ordered event work do the rest,
 * both under qp->mutex:
 *
 *            RTR                     CONNECT            CM_REPLY
 *   OFF ----------> WAITING (active) --------> CALLING ---------> UP
 *                      ^                          |                |
 *                      +------- refused ----------+                | CM_CLOSED
 *            RTR                      ACCEPT            CM_ESTABLISHED
 *   OFF ----------> WAITING (passive) -------> ANSWERED --------> UP ---> LEFT
 *                      ^                          |
 *                      +------- CM_CLOSED --------+
 *   any ---- RESET, ERR, destruction, timeout ----> OFF
 *
 * A peer that is too early is refused and tries again, first after SGH_RDV_PAUSE_MIN ms, then at
 * growing intervals.  A peer that the other side does not expect tries again, too, because it may
 * be expected later, but at a slower rate.  As on InfiniBand, the wait has no limit while there is
 * nothing to send: a queue pair waits for ever in RTR, and in RTS as long as its send queue is
 * empty.  With work posted in RTS it waits for (retry_cnt + 1) * 4.096 us * 2^timeout, but at least
 * SGH_RDV_PATIENCE_MIN, because setting up TCP takes longer than a packet of InfiniBand, and a lost
 * SYN is sent again after a second; timeout 0 means for ever.  Then the queue pair is in error, the
 * oldest entry of the send queue completes with RETRY_EXC_ERR, and the rest is flushed.
 *
 * The adapter keeps work that is posted before (queue pair IDLE).  With SG_CONNECT_STAY a queue
 * pair stays in RTS when its peer leaves, until it has something to send.  It never connects a
 * second time by itself, because it cannot know what was lost in between.  With SG_CONNECT_CONFIRM
 * completions mean what they mean on InfiniBand.
 *
 * A request is accepted only by a queue pair that waits for exactly this peer: number, both GIDs
 * and the source address of the request.  First PSNs are not used on TCP, but they distinguish
 * incarnations: a peer that expects another PSN of ours does not mean the present queue pair.
 *
 * This file has modify and the work; rdv_peer.c handles the peer's messages.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "cm.h"
#include "rendezvous.h"
#include "trace.h"

#define SGH_RDV_PSN_MASK 0xffffff

#define SGH_RDV_PAUSE_MIN 4 /* ms between attempts, doubled each time */
#define SGH_RDV_PAUSE_MAX 250
#define SGH_RDV_LOOK_MIN 50 /* ms between checks of the send queue, likewise */
#define SGH_RDV_LOOK_MAX 1000
#define SGH_RDV_PATIENCE_MIN (4 * NSEC_PER_SEC)
#define SGH_RDV_BACKLOG 1024

static ushort rendezvous_port = 24791;
module_param(rendezvous_port, ushort, 0444);
MODULE_PARM_DESC(rendezvous_port,
		 "TCP port of connections without a connection manager (0: there are none)");

/* State; all of it under qp->mutex */

static void sgh_rdv_later(struct sgh_rdv *rdv, u32 ms)
{
	mod_delayed_work(system_unbound_wq, &rdv->work, msecs_to_jiffies(ms));
}

void sgh_rdv_set_state(struct sgh_rdv *rdv, enum sgh_rdv_state state)
{
	if (rdv->state != state)
		trace_sgh_rdv_state(rdv->qp->dev, rdv->qp->qpn, rdv->conn, rdv->state, state);
	rdv->state = state;
}

/* Back to waiting, for a connection or a request, after a failure. */
void sgh_rdv_retry(struct sgh_rdv *rdv, u32 pause)
{
	sgh_rdv_set_state(rdv, RDV_WAITING);
	rdv->conn = 0;
	rdv->next_call = ktime_add_ms(ktime_get(), pause);
	sgh_rdv_later(rdv, pause);
}

u32 sgh_rdv_pause(struct sgh_rdv *rdv)
{
	u32 pause = rdv->pause;

	rdv->pause = min(2 * pause, SGH_RDV_PAUSE_MAX);
	return pause;
}

/* There is no peer: the adapter fails the work that is posted, or that will be. */
void sgh_rdv_fail(struct sgh_rdv *rdv, const char *why)
{
	struct sg_cmd_modify_qp cmd = {};

	ibdev_dbg(rdv->qp->ibqp.device, "queue pair %u: %s\n", rdv->qp->qpn, why);
	sgh_rdv_set_state(rdv, RDV_LEFT);
	cmd.qpn = cpu_to_le32(rdv->qp->qpn);
	cmd.mask = cpu_to_le32(SG_QP_MOD_STATE | SG_QP_MOD_UNREACHABLE);
	cmd.state = cpu_to_le32(SG_QP_ERROR);
	sgh_admin(rdv->qp->dev, SG_ADMIN_MODIFY_QP, &cmd, sizeof(cmd), NULL);
}

void sgh_rdv_up(struct sgh_rdv *rdv)
{
	sgh_rdv_set_state(rdv, RDV_UP);
	if (!sgh_rdv_psn_ok(rdv, rdv->peer_psn))
		sgh_rdv_fail(rdv, "the peer expects another PSN");
}

/* One more than its owner expects, for the probes of the peer's adapter. */
u16 sgh_rdv_ird(const struct sgh_rdv *rdv)
{
	return min_t(u32, rdv->attr.max_dest_rd_atomic + 1, rdv->qp->dev->caps.max_ird);
}

static void sgh_rdv_call(struct sgh_rdv *rdv)
{
	struct sgh_dev *dev = rdv->qp->dev;
	struct sg_cmd_connect cmd = {};
	struct sg_admin_rsp rsp;
	struct sgh_rdv_msg msg;
	int ret;

	cmd.qpn = cpu_to_le32(rdv->qp->qpn);
	/* The same port each time, until RESET; without one the adapter chooses any. */
	if (!rdv->held)
		sgh_port_hold(dev, &rdv->local, &rdv->held);
	cmd.local = rdv->local;
	cmd.remote = rdv->remote;
	cmd.remote.port = cpu_to_be16(rendezvous_port);
	sgh_set_next_hop(dev, &cmd, &cmd.local, &cmd.remote);
	cmd.ird = cpu_to_le16(sgh_rdv_ird(rdv));
	cmd.ord = cpu_to_le16(dev->caps.max_ord);
	cmd.flags = cpu_to_le16(SG_CONNECT_STAY | SG_CONNECT_CONFIRM);
	sgh_rdv_fill(rdv, &msg, SGH_RDV_REQUEST);
	ret = sgh_cm_command(dev, SG_ADMIN_CONNECT, &cmd, &msg, sizeof(msg), &rsp);
	if (ret) {
		sgh_rdv_retry(rdv, sgh_rdv_pause(rdv));
		return;
	}
	rdv->conn = le32_to_cpu(rsp.id);
	sgh_rdv_set_state(rdv, RDV_CALLING);
}

static ktime_t sgh_rdv_patience(const struct sgh_rdv *rdv)
{
	u64 ns = (4096ull << rdv->attr.timeout) * (rdv->attr.retry_cnt + 1);

	return ns_to_ktime(max_t(u64, ns, SGH_RDV_PATIENCE_MIN));
}

/* In RTS and not connected: has something been waiting to be sent for too long? */
static bool sgh_rdv_expired(struct sgh_rdv *rdv)
{
	struct sgh_qp_status s;

	if (!rdv->rts || !rdv->attr.timeout || sgh_qp_status(rdv->qp, &s))
		return false;
	if (!s.sq_used) {
		rdv->ticking = false;
		return false;
	}
	if (!rdv->ticking) {
		rdv->ticking = true;
		rdv->deadline = ktime_add(ktime_get(), sgh_rdv_patience(rdv));
	}
	return ktime_after(ktime_get(), rdv->deadline);
}

static void sgh_rdv_work(struct work_struct *work)
{
	struct sgh_rdv *rdv = container_of(work, struct sgh_rdv, work.work);
	struct sgh_qp *qp = rdv->qp;
	bool failed = false;
	s64 wait;

	mutex_lock(&qp->mutex);
	if (sgh_dead(qp->dev) || rdv->state == RDV_OFF || rdv->state >= RDV_UP)
		goto out;
	if (sgh_rdv_expired(rdv)) {
		sgh_rdv_fail(rdv, "no peer within its retries");
		failed = true;
		goto out;
	}
	wait = ktime_ms_delta(rdv->next_call, ktime_get());
	if (rdv->active && rdv->state == RDV_WAITING && wait <= 0) {
		sgh_rdv_call(rdv);
		wait = ktime_ms_delta(rdv->next_call, ktime_get());
	}
	if (rdv->rts) {
		rdv->look = min(2 * rdv->look, SGH_RDV_LOOK_MAX);
		if (!rdv->active || rdv->state != RDV_WAITING || wait > rdv->look)
			wait = rdv->look;
	}
	if (rdv->rts || (rdv->active && rdv->state == RDV_WAITING))
		sgh_rdv_later(rdv, max_t(s64, wait, 1));
out:
	mutex_unlock(&qp->mutex);
	if (failed)
		sgh_qp_event(qp->dev, qp->qpn, IB_EVENT_QP_FATAL);
}

/* Modify */

bool sgh_rdv_active(const struct sgh_qp *qp)
{
	return qp->rdv && qp->rdv->state != RDV_OFF;
}

static int sgh_rdv_listen(struct sgh_dev *dev, u8 family)
{
	u32 *id = &dev->rdv_listeners[family == 6];
	struct socket **held = &dev->rdv_held[family == 6];
	struct sg_cmd_listen cmd = {};
	struct sg_admin_rsp rsp;
	int ret = 0;

	mutex_lock(&dev->rdv_mutex);
	if (!*id) {
		cmd.local.family = family;
		cmd.local.port = cpu_to_be16(rendezvous_port);
		cmd.backlog = cpu_to_le32(SGH_RDV_BACKLOG);
		ret = sgh_port_hold(dev, &cmd.local, held);
		if (!ret)
			ret = sgh_admin(dev, SG_ADMIN_LISTEN, &cmd, sizeof(cmd), &rsp);
		if (!ret) {
			*id = le32_to_cpu(rsp.id);
		} else {
			sgh_port_release(*held);
			*held = NULL;
		}
	}
	mutex_unlock(&dev->rdv_mutex);
	return ret == -EADDRNOTAVAIL ? -EADDRINUSE : ret;
}

void sgh_rdv_unlisten(struct sgh_dev *dev)
{
	int i;

	mutex_lock(&dev->rdv_mutex);
	for (i = 0; i < ARRAY_SIZE(dev->rdv_listeners); i++) {
		if (dev->rdv_listeners[i])
			sgh_admin_destroy(dev, SG_ADMIN_UNLISTEN, dev->rdv_listeners[i]);
		dev->rdv_listeners[i] = 0;
		sgh_port_release(dev->rdv_held[i]);
		dev->rdv_held[i] = NULL;
	}
	mutex_unlock(&dev->rdv_mutex);
}

static struct sgh_rdv *sgh_rdv_get(struct sgh_qp *qp)
{
	struct sgh_rdv *rdv = qp->rdv;

	if (!rdv) {
		rdv = kzalloc(sizeof(*rdv), GFP_KERNEL);
		if (!rdv)
			return NULL;
		rdv->qp = qp;
		INIT_DELAYED_WORK(&rdv->work, sgh_rdv_work);
		WRITE_ONCE(qp->rdv, rdv);
	}
	return rdv;
}

static void sgh_rdv_note(struct sgh_rdv *rdv, const struct ib_qp_attr *attr)
{
	struct ib_qp_attr *to = &rdv->attr;

	memset(to, 0, sizeof(*to));
	to->path_mtu = attr->path_mtu;
	to->dest_qp_num = attr->dest_qp_num;
	to->rq_psn = attr->rq_psn & SGH_RDV_PSN_MASK;
	to->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	to->min_rnr_timer = attr->min_rnr_timer;
	to->ah_attr = attr->ah_attr;
	to->ah_attr.grh.sgid_attr = NULL; /* ib_core's reference */
}

/* To RTR.  -EINVAL, -ENETUNREACH: see sgh_gid_route(); -EADDRINUSE: our port is in use. */
int sgh_rdv_rtr(struct sgh_qp *qp, const struct ib_qp_attr *attr)
{
	const union ib_gid *dgid = &attr->ah_attr.grh.dgid;
	struct sg_sockaddr local, remote;
	struct sgh_dev *dev = qp->dev;
	union ib_gid sgid;
	struct sgh_rdv *rdv;
	int order, ret;

	if (!rendezvous_port)
		return -EOPNOTSUPP;
	ret = sgh_gid_route(dev, attr->ah_attr.grh.sgid_index, dgid, &sgid, &local, &remote);
	if (ret)
		return ret;
	order = memcmp(&sgid, dgid, sizeof(sgid));
	if (!order && attr->dest_qp_num == qp->qpn)
		return -EOPNOTSUPP; /* a connection to itself */
	rdv = sgh_rdv_get(qp);
	if (!rdv)
		return -ENOMEM;
	rdv->active = order < 0 || (!order && qp->qpn < attr->dest_qp_num);
	if (!rdv->active) {
		ret = sgh_rdv_listen(dev, local.family);
		if (ret)
			return ret;
	}
	sgh_rdv_note(rdv, attr);
	rdv->sgid = sgid;
	rdv->local = local;
	rdv->remote = remote;
	rdv->rts = false;
	rdv->ticking = false;
	rdv->conn = 0;
	rdv->pause = SGH_RDV_PAUSE_MIN;
	rdv->next_call = ktime_get();
	/* sgh_conn_attach() checks under the same lock: events belong to one of the two. */
	spin_lock(&dev->cm_lock);
	if (qp->conn)
		ret = -EISCONN;
	else
		sgh_rdv_set_state(rdv, RDV_WAITING);
	spin_unlock(&dev->cm_lock);
	if (!ret && rdv->active)
		sgh_rdv_later(rdv, 0);
	return ret;
}

/* To RTS, or attributes of RTS. */
void sgh_rdv_rts(struct sgh_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct sgh_rdv *rdv = qp->rdv;

	if (mask & IB_QP_MIN_RNR_TIMER)
		rdv->attr.min_rnr_timer = attr->min_rnr_timer;
	if (rdv->rts)
		return;
	rdv->attr.sq_psn = attr->sq_psn & SGH_RDV_PSN_MASK;
	rdv->attr.timeout = attr->timeout;
	rdv->attr.retry_cnt = attr->retry_cnt;
	rdv->attr.rnr_retry = attr->rnr_retry;
	rdv->attr.max_rd_atomic = attr->max_rd_atomic;
	rdv->rts = true;
	rdv->look = SGH_RDV_LOOK_MIN;
	if (rdv->state == RDV_UP)
		sgh_rdv_up(rdv);
	else if (rdv->state < RDV_UP)
		sgh_rdv_later(rdv, 0);
}

/* From now on events of its connections are ignored. */
void sgh_rdv_stop(struct sgh_qp *qp)
{
	struct sgh_rdv *rdv = qp->rdv;

	if (rdv) {
		sgh_rdv_set_state(rdv, RDV_OFF);
		rdv->conn = 0;
		rdv->local.port = 0;
		sgh_port_release(rdv->held);
		rdv->held = NULL;
	}
}

/* Before the queue pair is destroyed. */
void sgh_rdv_end(struct sgh_qp *qp)
{
	mutex_lock(&qp->mutex);
	sgh_rdv_stop(qp);
	mutex_unlock(&qp->mutex);
	if (qp->rdv)
		cancel_delayed_work_sync(&qp->rdv->work);
}

/* The attributes that the owner set; false: it set none. */
bool sgh_rdv_attr(const struct sgh_qp *qp, struct ib_qp_attr *attr)
{
	if (!sgh_rdv_active(qp))
		return false;
	*attr = qp->rdv->attr;
	return true;
}
