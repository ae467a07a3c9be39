// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connection management: iw_cm's calls become commands, the adapter's events become upcalls.
 *
 * A connection (struct sgh_conn) exists from CONNECT, or from the event of a peer's request, until
 * the adapter reports its end.  Its state changes under cm_lock:
 *
 *   active   CONNECTING -> ESTABLISHED -> GONE       CONNECT_REPLY, [DISCONNECT,] CLOSE
 *   passive  REQUESTED -> ACCEPTING -> ESTABLISHED -> GONE
 *                                      CONNECT_REQUEST, ESTABLISHED, [DISCONNECT,] CLOSE
 *
 * iw_cm requires a strict sequence: exactly one CONNECT_REPLY for a CONNECT that did not fail, one
 * ESTABLISHED for such an ACCEPT, CLOSE only after a successful one of those.  Only the ordered
 * event work makes upcalls, and each step checks the state it leaves.  So a connection that ends
 * early, or while the call that makes it is still returning, gives the same sequence.
 *
 * Lookup: an event names the adapter's connection number and, once there is one, the queue pair.
 * Passive connections are in dev->conns by number.  An active one is found through its queue pair,
 * because its number is known only when CONNECT returns, which may be after its first event.
 * iw_cm keeps number and generation, instead of a pointer, as provider_data of the request: the
 * connection may be gone when iw_cm accepts or rejects it.
 *
 * This file has connections and events; iw.c has iw_cm's calls.
 *
 * References: the connection holds one on its queue pair and one on its cm_id until it is gone.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <net/ipv6.h>

#include "cm.h"
#include "qp.h"
#include "rendezvous.h"
#include "trace.h"

static int sgh_cm_errno(u8 status)
{
	static const int table[] = {
		[SG_CM_OK] = 0,
		[SG_CM_REJECTED] = -ECONNREFUSED,
		[SG_CM_REFUSED] = -ECONNREFUSED,
		[SG_CM_TIMEOUT] = -ETIMEDOUT,
		[SG_CM_RESET] = -ECONNRESET,
		[SG_CM_PROTOCOL] = -EPROTO,
		[SG_CM_CLOSED] = -ECONNRESET,
		[SG_CM_TERMINATED] = -ECONNRESET,
		[SG_CM_UNREACHABLE] = -ETIMEDOUT,
		[SG_CM_NORES] = -ENOMEM,
	};

	return status < ARRAY_SIZE(table) ? table[status] : -EIO;
}

static void sgh_from_sockaddr(struct sgh_dev *dev, struct sockaddr_storage *to,
			      const struct sg_sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	if (from->family == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)to;

		in->sin_family = AF_INET;
		in->sin_port = from->port;
		memcpy(&in->sin_addr, from->ip, 4);
	} else if (from->family == 6) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = from->port;
		memcpy(&in6->sin6_addr, from->ip, 16);
		if (ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL)
			in6->sin6_scope_id = sgh_net_ifindex(dev, le16_to_cpu(from->vlan));
	}
}

/* Connections */

static void sgh_conn_end_work(struct work_struct *work);

/* The only place where a state changes.  cm_lock held. */
void sgh_conn_set_state(struct sgh_conn *conn, enum sgh_conn_state state)
{
	if (conn->state != state)
		trace_sgh_conn_state(conn->dev, conn, conn->state, state);
	conn->state = state;
}

struct sgh_conn *sgh_conn_new(struct sgh_dev *dev, u32 id, enum sgh_conn_state state)
{
	struct sgh_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);

	if (!conn)
		return NULL;
	conn->dev = dev;
	kref_init(&conn->ref);
	INIT_WORK(&conn->end_work, sgh_conn_end_work);
	conn->id = id;
	spin_lock(&dev->cm_lock);
	conn->generation = ++dev->conn_generation;
	sgh_conn_set_state(conn, state);
	spin_unlock(&dev->cm_lock);
	return conn;
}

static void sgh_conn_free(struct kref *ref)
{
	struct sgh_conn *conn = container_of(ref, struct sgh_conn, ref);

	sgh_port_release(conn->held);
	kfree(conn);
}

void sgh_conn_put(struct sgh_conn *conn)
{
	kref_put(&conn->ref, sgh_conn_free);
}

static void *sgh_conn_cookie(const struct sgh_conn *conn)
{
	return (void *)((uintptr_t)conn->generation << 32 | conn->id);
}

/* The queue pair's connection, with a reference, or NULL. */
static struct sgh_conn *sgh_conn_of(struct sgh_qp *qp)
{
	struct sgh_conn *conn;

	spin_lock(&qp->dev->cm_lock);
	conn = qp->conn;
	if (conn)
		kref_get(&conn->ref);
	spin_unlock(&qp->dev->cm_lock);
	return conn;
}

/*
 * The connection that an event is about, with a reference, or NULL.  The adapter reuses a number
 * as soon as its queue pair is destroyed, while the old connection may still be in the table,
 * waiting for its end_work.  The event's queue pair distinguishes them.
 */
static struct sgh_conn *sgh_conn_by_event(struct sgh_dev *dev, const struct sg_eqe *e)
{
	u32 id = le32_to_cpu(e->conn), qpn = le32_to_cpu(e->id);
	struct sgh_conn *conn;
	struct sgh_qp *qp;

	spin_lock(&dev->cm_lock);
	conn = xa_load(&dev->conns, id);
	if (conn && qpn && (!conn->qp || conn->qp->qpn != qpn))
		conn = NULL;
	if (conn) {
		kref_get(&conn->ref);
		spin_unlock(&dev->cm_lock);
		return conn;
	}
	spin_unlock(&dev->cm_lock);

	qp = sgh_qp_find(dev, qpn);
	if (!qp)
		return NULL;
	spin_lock(&dev->cm_lock);
	conn = qp->conn;
	/* Another number: the event is for an earlier connection of the queue pair. */
	if (conn && conn->id && conn->id != id)
		conn = NULL;
	if (conn) {
		conn->id = id;
		kref_get(&conn->ref);
	}
	spin_unlock(&dev->cm_lock);
	sgh_qp_put(qp);
	return conn;
}

/*
 * Moves a connection that has qp and cm_id from state from to GONE, and drops its references.
 * False: it was in another state, because somebody else was faster.
 */
bool sgh_conn_release(struct sgh_dev *dev, struct sgh_conn *conn, enum sgh_conn_state from)
{
	struct iw_cm_id *cm_id;
	struct sgh_qp *qp;

	spin_lock(&dev->cm_lock);
	if (conn->state != from) {
		spin_unlock(&dev->cm_lock);
		return false;
	}
	sgh_conn_set_state(conn, SGH_CONN_GONE);
	qp = conn->qp;
	cm_id = conn->cm_id;
	conn->qp = NULL;
	conn->cm_id = NULL;
	if (qp)
		qp->conn = NULL;
	/* Under the lock, because a reader that finds it in the table may take a reference. */
	xa_cmpxchg(&dev->conns, conn->id, conn, NULL, GFP_ATOMIC);
	spin_unlock(&dev->cm_lock);

	if (cm_id)
		cm_id->rem_ref(cm_id);
	if (qp)
		sgh_qp_put(qp);
	sgh_conn_put(conn);
	return true;
}

/*
 * Moves a connection from one state to another, which may be the same, and returns its cm_id with
 * a reference for an upcall.  NULL: it is in a different state, and nothing has changed.
 */
static struct iw_cm_id *sgh_conn_take_id(struct sgh_dev *dev, struct sgh_conn *conn,
					 enum sgh_conn_state from, enum sgh_conn_state to)
{
	struct iw_cm_id *cm_id;

	spin_lock(&dev->cm_lock);
	cm_id = conn->state == from ? conn->cm_id : NULL;
	if (cm_id) {
		cm_id->add_ref(cm_id);
		sgh_conn_set_state(conn, to);
	}
	spin_unlock(&dev->cm_lock);
	return cm_id;
}

/* Upcalls, all from the event work */

static void sgh_upcall(struct sgh_conn *conn, struct iw_cm_id *cm_id, struct iw_cm_event *event)
{
	int ret;

	trace_sgh_upcall(conn->dev, conn->id, event);
	ret = cm_id->event_handler(cm_id, event);

	/* No memory for a copy of the private data; without the event iw_cm would wait for ever. */
	if (ret == -ENOMEM && event->private_data_len) {
		event->private_data_len = 0;
		ret = cm_id->event_handler(cm_id, event);
	}
	if (ret)
		ibdev_warn(cm_id->device, "connection event %d is lost: %d\n", event->event, ret);
}

static void sgh_upcall_simple(struct sgh_conn *conn, struct iw_cm_id *cm_id,
			      enum iw_cm_event_type type)
{
	struct iw_cm_event event = { .event = type };

	event.local_addr = cm_id->m_local_addr;
	event.remote_addr = cm_id->m_remote_addr;
	sgh_upcall(conn, cm_id, &event);
}

static u8 sgh_depth(u32 depth)
{
	return min_t(u32, depth, U8_MAX);
}

/*
 * Fills private data and parameters of connection id into event; data is the event's storage.
 *
 * The event's depths are the peer's, in both directions of setup: rdma_cm makes the initiator depth
 * from ird, and the responder resources from ord.  CM_DATA has the peer's for a request, and ours
 * as agreed afterwards.  A peer of MPA revision 1 states none: it accepts ours.
 *
 * MPA carries up to SG_PRIVATE_DATA_MAX octets of private data, but iw_cm counts them in eight
 * bits, so a consumer sees the first 255.  (No consumer of rdma_cm can send more, either.)
 */
static int sgh_event_data(struct sgh_dev *dev, u32 id, struct iw_cm_event *event,
			  struct sg_cm_data *data)
{
	u32 ird, ord;
	u16 len;
	int ret;

	ret = sgh_admin_query(dev, SG_ADMIN_CM_DATA, id, data, sizeof(*data));
	if (ret)
		return ret;
	/* The adapter no longer knows the addresses of a connection that failed. */
	if (data->local.family && data->remote.family) {
		sgh_from_sockaddr(dev, &event->local_addr, &data->local);
		sgh_from_sockaddr(dev, &event->remote_addr, &data->remote);
	}
	ird = le16_to_cpu(data->ird);
	ord = le16_to_cpu(data->ord);
	if (event->event != IW_CM_EVENT_CONNECT_REQUEST) {
		swap(ird, ord);
	} else if (data->mpa_rev < 2 && !ird && !ord) {
		ird = dev->caps.max_ord;
		ord = dev->caps.max_ird;
	}
	event->ird = sgh_depth(ird);
	event->ord = sgh_depth(ord);
	len = min_t(u16, le16_to_cpu(data->pdata_len), U8_MAX);
	event->private_data_len = len;
	event->private_data = len ? data->pdata : NULL;
	return 0;
}

/* A peer wants to connect. */
static void sgh_cm_request(struct sgh_dev *dev, const struct sg_eqe *e)
{
	struct iw_cm_event event = { .event = IW_CM_EVENT_CONNECT_REQUEST };
	struct iw_cm_id *cm_id = NULL;
	struct sgh_listener *listener;
	struct sg_cm_data *data;
	struct sgh_conn *conn;
	u32 id = le32_to_cpu(e->conn);

	data = kmalloc(sizeof(*data), GFP_KERNEL);
	conn = sgh_conn_new(dev, id, SGH_CONN_REQUESTED);
	if (!data || !conn)
		goto refuse;

	mutex_lock(&dev->listen_mutex);
	listener = xa_load(&dev->listeners, le32_to_cpu(e->aux));
	if (listener) {
		cm_id = listener->cm_id;
		cm_id->add_ref(cm_id);
	}
	mutex_unlock(&dev->listen_mutex);

	if (!cm_id || sgh_event_data(dev, id, &event, data) || !event.local_addr.ss_family ||
	    xa_err(xa_store(&dev->conns, id, conn, GFP_KERNEL)))
		goto refuse;
	event.provider_data = sgh_conn_cookie(conn);
	/* Before this returns, a consumer may accept, and the connection may end. */
	kref_get(&conn->ref);
	trace_sgh_upcall(dev, id, &event);
	if (cm_id->event_handler(cm_id, &event)) {
		if (sgh_conn_release(dev, conn, SGH_CONN_REQUESTED))
			sgh_send_reject(dev, id, NULL, 0);
	}
	sgh_conn_put(conn);
	cm_id->rem_ref(cm_id);
	kfree(data);
	return;

refuse:
	if (conn)
		sgh_conn_put(conn);
	kfree(data);
	if (cm_id)
		cm_id->rem_ref(cm_id);
	sgh_send_reject(dev, id, NULL, 0);
}

/* The outcome of CONNECT.  A failed connection ends here; its later CLOSE event is ignored. */
static void sgh_cm_reply(struct sgh_dev *dev, struct sgh_conn *conn, int err, bool has_data)
{
	struct iw_cm_event event = { .event = IW_CM_EVENT_CONNECT_REPLY, .status = err };
	struct sg_cm_data *data = NULL;
	struct iw_cm_id *cm_id;

	cm_id = sgh_conn_take_id(dev, conn, SGH_CONN_CONNECTING,
				 err ? SGH_CONN_CONNECTING : SGH_CONN_ESTABLISHED);
	if (!cm_id)
		return;

	event.local_addr = cm_id->m_local_addr;
	event.remote_addr = cm_id->m_remote_addr;
	if (has_data)
		data = kmalloc(sizeof(*data), GFP_KERNEL);
	if (data && sgh_event_data(dev, conn->id, &event, data))
		ibdev_dbg(cm_id->device, "connection %u: no private data\n", conn->id);
	/* The releasing side tells iw_cm: sgh_iw_connect() by its result, or we by an event. */
	if (!err || sgh_conn_release(dev, conn, SGH_CONN_CONNECTING))
		sgh_upcall(conn, cm_id, &event);
	kfree(data);
	cm_id->rem_ref(cm_id);
}

/* The outcome of ACCEPT.  After a failure iw_cm gets CLOSE as well, when the connection is gone. */
static void sgh_cm_established(struct sgh_dev *dev, struct sgh_conn *conn, int err)
{
	struct iw_cm_event event = { .event = IW_CM_EVENT_ESTABLISHED, .status = err };
	struct sg_cm_data *data;
	struct iw_cm_id *cm_id;

	cm_id = sgh_conn_take_id(dev, conn, SGH_CONN_ACCEPTING, SGH_CONN_ESTABLISHED);
	if (!cm_id)
		return;

	data = err ? NULL : kmalloc(sizeof(*data), GFP_KERNEL);
	if (data)
		sgh_event_data(dev, conn->id, &event, data);
	/* The private data came with the request; this event has none. */
	event.private_data = NULL;
	event.private_data_len = 0;
	event.local_addr = cm_id->m_local_addr;
	event.remote_addr = cm_id->m_remote_addr;
	sgh_upcall(conn, cm_id, &event);
	kfree(data);
	cm_id->rem_ref(cm_id);
}

/* The peer has closed.  The adapter closes our side by itself; consumers get CLOSE later. */
static void sgh_cm_disconnect(struct sgh_dev *dev, struct sgh_conn *conn)
{
	struct iw_cm_id *cm_id =
		sgh_conn_take_id(dev, conn, SGH_CONN_ESTABLISHED, SGH_CONN_ESTABLISHED);

	if (!cm_id)
		return;
	sgh_upcall_simple(conn, cm_id, IW_CM_EVENT_DISCONNECT);
	cm_id->rem_ref(cm_id);
}

/* Gone: iw_cm now gets every event that it still waits for. */
static void sgh_cm_closed(struct sgh_dev *dev, struct sgh_conn *conn, int err)
{
	struct iw_cm_id *cm_id;

	if (sgh_conn_release(dev, conn, SGH_CONN_REQUESTED))
		return;
	sgh_cm_reply(dev, conn, err ? err : -ECONNRESET, false);
	sgh_cm_established(dev, conn, err ? err : -ECONNRESET);

	cm_id = sgh_conn_take_id(dev, conn, SGH_CONN_ESTABLISHED, SGH_CONN_ESTABLISHED);
	if (!cm_id)
		return;
	sgh_conn_release(dev, conn, SGH_CONN_ESTABLISHED);
	sgh_upcall_simple(conn, cm_id, IW_CM_EVENT_CLOSE);
	cm_id->rem_ref(cm_id);
}

/* From the event work. */
void sgh_cm_event(struct sgh_dev *dev, const struct sg_eqe *e)
{
	int err = sgh_cm_errno(e->cm_status);
	struct sgh_conn *conn;

	if (e->event == SG_EV_CM_REQUEST) {
		if (!sgh_rdv_request(dev, e))
			sgh_cm_request(dev, e);
		return;
	}
	if (sgh_rdv_event(dev, e))
		return;
	conn = sgh_conn_by_event(dev, e);
	if (!conn)
		return;
	switch (e->event) {
	case SG_EV_CM_REPLY:
		sgh_cm_reply(dev, conn, err,
			     e->cm_status == SG_CM_OK || e->cm_status == SG_CM_REJECTED);
		break;
	case SG_EV_CM_ESTABLISHED:
		sgh_cm_established(dev, conn, err);
		break;
	case SG_EV_CM_DISCONNECT:
		sgh_cm_disconnect(dev, conn);
		break;
	case SG_EV_CM_CLOSED:
		sgh_cm_closed(dev, conn, err);
		break;
	}
	sgh_conn_put(conn);
}

static void sgh_conn_end_work(struct work_struct *work)
{
	struct sgh_conn *conn = container_of(work, struct sgh_conn, end_work);

	sgh_cm_closed(conn->dev, conn, -ECONNRESET);
	sgh_conn_put(conn);
}

/*
 * The adapter has forgotten the queue pair; it closes its connection, but reports nothing more
 * about it.  So iw_cm is told from here, after all earlier events.
 */
void sgh_cm_qp_gone(struct sgh_qp *qp)
{
	struct sgh_dev *dev = qp->dev;
	struct sgh_conn *conn = sgh_conn_of(qp);

	/* If it is queued already, that call has passed on its reference. */
	if (conn && !queue_work(dev->event_wq, &conn->end_work))
		sgh_conn_put(conn);
}

/* In the event workqueue, on a lost adapter: all connections are gone. */
void sgh_cm_abort_all(struct sgh_dev *dev)
{
	struct sgh_conn *conn;
	struct sgh_qp *qp;
	unsigned long i;

	xa_for_each(&dev->qps, i, qp) {
		qp = sgh_qp_find(dev, i);
		if (!qp)
			continue;
		conn = sgh_conn_of(qp);
		if (conn) {
			sgh_cm_closed(dev, conn, -ECONNRESET);
			sgh_conn_put(conn);
		}
		sgh_qp_put(qp);
	}
	sgh_cm_drain(dev);
}

/* Drops requests that nobody will answer any more. */
void sgh_cm_drain(struct sgh_dev *dev)
{
	struct sgh_conn *conn;
	unsigned long i;

	xa_for_each(&dev->conns, i, conn) {
		/* A connection leaves the table only by its own release. */
		spin_lock(&dev->cm_lock);
		conn = xa_load(&dev->conns, i);
		if (conn)
			kref_get(&conn->ref);
		spin_unlock(&dev->cm_lock);
		if (!conn)
			continue;
		if (sgh_conn_release(dev, conn, SGH_CONN_REQUESTED))
			sgh_send_reject(dev, i, NULL, 0);
		sgh_conn_put(conn);
	}
}
