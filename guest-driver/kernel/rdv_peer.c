// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Rendezvous: the peer's messages, in the private data of MPA startup and by events, and the
 * answers to them.  A message of an unknown peer never changes a queue pair: a message counts only
 * if it names this one and comes from the peer that its owner named.  rendezvous.c explains the
 * rest.
 */
#include <linux/slab.h>

#include "cm.h"
#include "rendezvous.h"

#define SGH_RDV_MAGIC 0x53475244 /* "SGRD" */
#define SGH_RDV_VERSION 1
#define SGH_RDV_PAUSE_WRONG_PEER 1000 /* ms */

/* Messages */

void sgh_rdv_fill(const struct sgh_rdv *rdv, struct sgh_rdv_msg *msg, enum sgh_rdv_kind kind)
{
	memset(msg, 0, sizeof(*msg));
	msg->magic = cpu_to_be32(SGH_RDV_MAGIC);
	msg->version = SGH_RDV_VERSION;
	msg->kind = kind;
	msg->src_qpn = cpu_to_be32(rdv->qp->qpn);
	msg->dst_qpn = cpu_to_be32(rdv->attr.dest_qp_num);
	msg->rq_psn = cpu_to_be32(rdv->attr.rq_psn);
	if (rdv->rts) {
		msg->flags = SGH_RDV_HAS_SQ_PSN;
		msg->sq_psn = cpu_to_be32(rdv->attr.sq_psn);
	}
	memcpy(msg->sgid, &rdv->sgid, sizeof(msg->sgid));
	memcpy(msg->dgid, &rdv->attr.ah_attr.grh.dgid, sizeof(msg->dgid));
}

/* The private data of a connection; data is the caller's. */
static const struct sgh_rdv_msg *sgh_rdv_read(struct sgh_dev *dev, u32 conn,
					      struct sg_cm_data *data, enum sgh_rdv_kind kind)
{
	const struct sgh_rdv_msg *msg = (const void *)data->pdata;

	if (sgh_admin_query(dev, SG_ADMIN_CM_DATA, conn, data, sizeof(*data)) ||
	    le16_to_cpu(data->pdata_len) != sizeof(*msg) ||
	    be32_to_cpu(msg->magic) != SGH_RDV_MAGIC || msg->version != SGH_RDV_VERSION ||
	    msg->kind != kind)
		return NULL;
	return msg;
}

/* Is it from the peer, for this queue pair? */
static bool sgh_rdv_is_peer(const struct sgh_rdv *rdv, const struct sgh_rdv_msg *msg)
{
	return be32_to_cpu(msg->src_qpn) == rdv->attr.dest_qp_num &&
	       be32_to_cpu(msg->dst_qpn) == rdv->qp->qpn &&
	       !memcmp(msg->sgid, &rdv->attr.ah_attr.grh.dgid, sizeof(msg->sgid)) &&
	       !memcmp(msg->dgid, &rdv->sgid, sizeof(msg->dgid));
}

/* In RTS the PSN that the peer must expect is known; before that any value is accepted. */
bool sgh_rdv_psn_ok(const struct sgh_rdv *rdv, u32 psn)
{
	return !rdv->rts || psn == rdv->attr.sq_psn;
}

/* Events; from the event work */

/* The answer to a request: SGH_RDV_OK is ACCEPT. */
static enum sgh_rdv_reason sgh_rdv_judge(const struct sgh_rdv *rdv, const struct sgh_rdv_msg *msg,
					 const struct sg_cm_data *data)
{
	if (!rdv || rdv->state == RDV_OFF)
		return SGH_RDV_EARLY;
	if (!sgh_rdv_is_peer(rdv, msg) || rdv->active ||
	    data->remote.family != rdv->remote.family ||
	    memcmp(data->remote.ip, rdv->remote.ip, sizeof(data->remote.ip)))
		return SGH_RDV_WRONG_PEER;
	if (rdv->state != RDV_WAITING || !sgh_rdv_psn_ok(rdv, be32_to_cpu(msg->rq_psn)) ||
	    (msg->flags & SGH_RDV_HAS_SQ_PSN && be32_to_cpu(msg->sq_psn) != rdv->attr.rq_psn))
		return SGH_RDV_EARLY;
	return SGH_RDV_OK;
}

static bool sgh_rdv_accept(struct sgh_rdv *rdv, u32 conn, u32 psn)
{
	struct sgh_dev *dev = rdv->qp->dev;
	struct sg_cmd_connect cmd = {};
	struct sgh_rdv_msg reply;

	cmd.qpn = cpu_to_le32(rdv->qp->qpn);
	cmd.conn = cpu_to_le32(conn);
	cmd.ird = cpu_to_le16(sgh_rdv_ird(rdv));
	cmd.ord = cpu_to_le16(dev->caps.max_ord);
	cmd.flags = cpu_to_le16(SG_CONNECT_STAY | SG_CONNECT_CONFIRM);
	sgh_set_next_hop(dev, &cmd, &rdv->local, &rdv->remote);
	sgh_rdv_fill(rdv, &reply, SGH_RDV_ACCEPT);
	if (sgh_cm_command(dev, SG_ADMIN_ACCEPT, &cmd, &reply, sizeof(reply), NULL))
		return false;
	rdv->conn = conn;
	sgh_rdv_set_state(rdv, RDV_ANSWERED);
	rdv->peer_psn = psn;
	return true;
}

/* Is it a request at one of our listeners?  Then it is answered here. */
bool sgh_rdv_request(struct sgh_dev *dev, const struct sg_eqe *e)
{
	u32 conn = le32_to_cpu(e->conn), listener = le32_to_cpu(e->aux);
	enum sgh_rdv_reason reason = SGH_RDV_FORM;
	struct sgh_rdv_msg refusal = {};
	const struct sgh_rdv_msg *msg;
	struct sg_cm_data *data;
	struct sgh_qp *qp;
	bool ours;

	mutex_lock(&dev->rdv_mutex);
	ours = listener && (listener == dev->rdv_listeners[0] || listener == dev->rdv_listeners[1]);
	mutex_unlock(&dev->rdv_mutex);
	if (!ours)
		return false;
	data = kzalloc(sizeof(*data), GFP_KERNEL);
	msg = data ? sgh_rdv_read(dev, conn, data, SGH_RDV_REQUEST) : NULL;
	if (msg) {
		reason = SGH_RDV_EARLY;
		qp = sgh_qp_find(dev, be32_to_cpu(msg->dst_qpn));
		if (qp) {
			mutex_lock(&qp->mutex);
			reason = sgh_rdv_judge(qp->rdv, msg, data);
			if (!reason && !sgh_rdv_accept(qp->rdv, conn, be32_to_cpu(msg->rq_psn)))
				reason = SGH_RDV_EARLY;
			mutex_unlock(&qp->mutex);
			sgh_qp_put(qp);
		}
	}
	if (reason) {
		refusal.magic = cpu_to_be32(SGH_RDV_MAGIC);
		refusal.version = SGH_RDV_VERSION;
		refusal.kind = SGH_RDV_REFUSE;
		refusal.reason = reason;
		sgh_send_reject(dev, conn, &refusal, sizeof(refusal));
	}
	kfree(data);
	return true;
}

static void sgh_rdv_reply(struct sgh_rdv *rdv, const struct sg_eqe *e)
{
	struct sg_cm_data *data = kzalloc(sizeof(*data), GFP_KERNEL);
	struct sgh_dev *dev = rdv->qp->dev;
	const struct sgh_rdv_msg *msg = NULL;
	u32 pause;

	if (e->cm_status == SG_CM_OK) {
		if (data)
			msg = sgh_rdv_read(dev, rdv->conn, data, SGH_RDV_ACCEPT);
		if (msg && sgh_rdv_is_peer(rdv, msg)) {
			rdv->peer_psn = be32_to_cpu(msg->rq_psn);
			sgh_rdv_up(rdv);
		} else {
			sgh_rdv_fail(rdv, "whoever answered is not the peer");
		}
	} else {
		if (data && e->cm_status == SG_CM_REJECTED)
			msg = sgh_rdv_read(dev, rdv->conn, data, SGH_RDV_REFUSE);
		pause = sgh_rdv_pause(rdv);
		if (msg && msg->reason != SGH_RDV_EARLY)
			pause = SGH_RDV_PAUSE_WRONG_PEER;
		sgh_rdv_retry(rdv, pause);
	}
	kfree(data);
}

static void sgh_rdv_closed(struct sgh_rdv *rdv)
{
	if (rdv->state == RDV_ANSWERED)
		sgh_rdv_retry(rdv, 0);
	else
		sgh_rdv_set_state(rdv, RDV_LEFT);
}

/* Is it about one of our connections?  Events of a connection that has ended are ignored. */
bool sgh_rdv_event(struct sgh_dev *dev, const struct sg_eqe *e)
{
	struct sgh_qp *qp = sgh_qp_find(dev, le32_to_cpu(e->id));
	struct sgh_rdv *rdv;
	bool ours;

	if (!qp)
		return false;
	/*
	 * A queue pair that never had a rendezvous has no connection of ours.  Its events must not
	 * wait for its mutex: a rendezvous begins before its first connection does.
	 */
	if (!READ_ONCE(qp->rdv)) {
		sgh_qp_put(qp);
		return false;
	}
	mutex_lock(&qp->mutex);
	rdv = qp->rdv;
	ours = sgh_rdv_active(qp);
	if (ours && rdv->conn == le32_to_cpu(e->conn)) {
		if (e->event == SG_EV_CM_REPLY && rdv->state == RDV_CALLING)
			sgh_rdv_reply(rdv, e);
		else if (e->event == SG_EV_CM_ESTABLISHED && rdv->state == RDV_ANSWERED &&
			 e->cm_status == SG_CM_OK)
			sgh_rdv_up(rdv);
		else if (e->event == SG_EV_CM_CLOSED)
			sgh_rdv_closed(rdv);
	}
	mutex_unlock(&qp->mutex);
	sgh_qp_put(qp);
	return ours;
}
