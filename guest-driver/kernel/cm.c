// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connection management: iw_cm's calls become commands, the adapter's events become upcalls.
 *
 * A connection (struct sgh_conn) exists from CONNECT, or from the event of a peer's request, until
 * the adapter says that it is gone.  Its state moves under cm_lock:
 *
 *   active   CONNECTING -> ESTABLISHED -> GONE       CONNECT_REPLY, [DISCONNECT,] CLOSE
 *   passive  REQUESTED -> ACCEPTING -> ESTABLISHED -> GONE
 *                                      CONNECT_REQUEST, ESTABLISHED, [DISCONNECT,] CLOSE
 *
 * iw_cm insists on its sequence: exactly one CONNECT_REPLY for a CONNECT that did not fail, one
 * ESTABLISHED for such an ACCEPT, CLOSE only after a good one of those.  Upcalls are made only by
 * the ordered event work, and each step checks the state it leaves, so a connection that ends
 * early, or while the call that makes it is still returning, gives the same sequence.
 *
 * Who finds what: an event names the adapter's connection number and, once there is one, the queue
 * pair.  Passive connections are in sg->conns by number; an active one is found through its queue
 * pair, because its number is known only when CONNECT returns, which may be after its first event.
 * iw_cm keeps, as provider_data of the request, number and generation instead of a pointer: the
 * connection may be gone when it comes back with accept or reject.
 *
 * References: the connection holds one on its queue pair and one on its cm_id until it is gone.
 */
#include <linux/dma-mapping.h>
#include <linux/inet.h>
#include <net/ipv6.h>

#include "staghorn.h"

enum sgh_conn_state {
	SGH_CONN_CONNECTING,
	SGH_CONN_REQUESTED,
	SGH_CONN_ACCEPTING,
	SGH_CONN_ESTABLISHED,
	SGH_CONN_GONE,
};

struct sgh_conn {
	struct sgh_dev *sg;
	struct kref ref;
	struct work_struct end_work;
	u32 id;
	u32 generation;
	enum sgh_conn_state state;
	struct sgh_qp *qp;
	struct iw_cm_id *cm_id;
};

/* "Any" address of IPv6 includes IPv4: that takes two of the adapter's listeners. */
struct sgh_listener {
	struct iw_cm_id *cm_id;
	u32 ids[2];
	u32 num;
};

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

static int sgh_to_sockaddr(struct sgh_dev *sg, struct sg_sockaddr *to,
			   const struct sockaddr_storage *from)
{
	memset(to, 0, sizeof(*to));
	if (from->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)from;

		to->family = 4;
		to->port = in->sin_port;
		memcpy(to->ip, &in->sin_addr, 4);
		return 0;
	}
	if (from->ss_family == AF_INET6 && sg->caps.features & SG_FEATURE_IPV6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;

		to->family = 6;
		to->port = in6->sin6_port;
		memcpy(to->ip, &in6->sin6_addr, 16);
		return 0;
	}
	return -EAFNOSUPPORT;
}

static void sgh_from_sockaddr(struct sockaddr_storage *to, const struct sg_sockaddr *from)
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
	}
}

/* Connections */

static void sgh_conn_end_work(struct work_struct *work);

static struct sgh_conn *sgh_conn_new(struct sgh_dev *sg, enum sgh_conn_state state)
{
	struct sgh_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);

	if (!conn)
		return NULL;
	conn->sg = sg;
	kref_init(&conn->ref);
	INIT_WORK(&conn->end_work, sgh_conn_end_work);
	conn->state = state;
	spin_lock(&sg->cm_lock);
	conn->generation = ++sg->conn_generation;
	spin_unlock(&sg->cm_lock);
	return conn;
}

static void sgh_conn_free(struct kref *ref)
{
	kfree(container_of(ref, struct sgh_conn, ref));
}

static void sgh_conn_put(struct sgh_conn *conn)
{
	kref_put(&conn->ref, sgh_conn_free);
}

static void *sgh_conn_cookie(const struct sgh_conn *conn)
{
	return (void *)((uintptr_t)conn->generation << 32 | conn->id);
}

/* With a reference, or NULL: gone. */
static struct sgh_conn *sgh_conn_by_cookie(struct sgh_dev *sg, void *cookie)
{
	struct sgh_conn *conn;

	spin_lock(&sg->cm_lock);
	conn = xa_load(&sg->conns, (u32)(uintptr_t)cookie);
	if (conn && conn->generation == (uintptr_t)cookie >> 32)
		kref_get(&conn->ref);
	else
		conn = NULL;
	spin_unlock(&sg->cm_lock);
	return conn;
}

/* The connection that an event is about, with a reference, or NULL. */
static struct sgh_conn *sgh_conn_by_event(struct sgh_dev *sg, const struct sg_eqe *e)
{
	u32 id = le32_to_cpu(e->conn);
	struct sgh_conn *conn;
	struct sgh_qp *qp;

	spin_lock(&sg->cm_lock);
	conn = xa_load(&sg->conns, id);
	if (conn) {
		kref_get(&conn->ref);
		spin_unlock(&sg->cm_lock);
		return conn;
	}
	spin_unlock(&sg->cm_lock);

	qp = sgh_qp_find(sg, le32_to_cpu(e->id));
	if (!qp)
		return NULL;
	spin_lock(&sg->cm_lock);
	conn = qp->conn;
	/* Another number: what is left of an earlier connection of the queue pair. */
	if (conn && conn->id && conn->id != id)
		conn = NULL;
	if (conn) {
		conn->id = id;
		kref_get(&conn->ref);
	}
	spin_unlock(&sg->cm_lock);
	sgh_qp_put(qp);
	return conn;
}

/*
 * Moves a connection that has qp and cm_id out of its state, if that is from, to GONE, and drops
 * what it holds.  False: somebody else was faster.
 */
static bool sgh_conn_release(struct sgh_dev *sg, struct sgh_conn *conn, enum sgh_conn_state from)
{
	struct iw_cm_id *cm_id;
	struct sgh_qp *qp;

	spin_lock(&sg->cm_lock);
	if (conn->state != from) {
		spin_unlock(&sg->cm_lock);
		return false;
	}
	conn->state = SGH_CONN_GONE;
	qp = conn->qp;
	cm_id = conn->cm_id;
	conn->qp = NULL;
	conn->cm_id = NULL;
	if (qp)
		qp->conn = NULL;
	spin_unlock(&sg->cm_lock);

	xa_cmpxchg(&sg->conns, conn->id, conn, NULL, GFP_KERNEL);
	if (cm_id)
		cm_id->rem_ref(cm_id);
	if (qp)
		sgh_qp_put(qp);
	sgh_conn_put(conn);
	return true;
}

/* Upcalls, all from the event work */

static void sgh_upcall(struct iw_cm_id *cm_id, struct iw_cm_event *event)
{
	int ret = cm_id->event_handler(cm_id, event);

	if (ret)
		ibdev_warn(cm_id->device, "connection event %d is lost: %d\n", event->event, ret);
}

static void sgh_upcall_simple(struct iw_cm_id *cm_id, enum iw_cm_event_type type, int status)
{
	struct iw_cm_event event = { .event = type, .status = status };

	event.local_addr = cm_id->m_local_addr;
	event.remote_addr = cm_id->m_remote_addr;
	sgh_upcall(cm_id, &event);
}

static u8 sgh_depth(u32 depth)
{
	return min_t(u32, depth, U8_MAX);
}

/*
 * Private data and parameters of connection id into event; data is what the event points into.
 * A peer of MPA revision 1 states no depths: it takes ours.
 */
static int sgh_event_data(struct sgh_dev *sg, u32 id, struct iw_cm_event *event,
			  struct sg_cm_data *data)
{
	u32 ird, ord;
	u16 len;
	int ret;

	ret = sgh_admin_query(sg, SG_ADMIN_CM_DATA, id, data, sizeof(*data));
	if (ret)
		return ret;
	/* Of a connection that failed the adapter knows no addresses any more. */
	if (data->local.family && data->remote.family) {
		sgh_from_sockaddr(&event->local_addr, &data->local);
		sgh_from_sockaddr(&event->remote_addr, &data->remote);
	}
	ird = le16_to_cpu(data->ird);
	ord = le16_to_cpu(data->ord);
	if (data->mpa_rev < 2 && !ird && !ord) {
		ird = sg->caps.max_ord;
		ord = sg->caps.max_ird;
	}
	event->ird = sgh_depth(ird);
	event->ord = sgh_depth(ord);
	/* iw_cm counts private data in eight bits. */
	len = min_t(u16, le16_to_cpu(data->pdata_len), U8_MAX);
	event->private_data_len = len;
	event->private_data = len ? data->pdata : NULL;
	return 0;
}

static void sgh_send_reject(struct sgh_dev *sg, u32 id, const void *pdata, u8 len);

/* A peer wants to connect. */
static void sgh_cm_request(struct sgh_dev *sg, const struct sg_eqe *e)
{
	struct iw_cm_event event = { .event = IW_CM_EVENT_CONNECT_REQUEST };
	struct iw_cm_id *cm_id = NULL;
	struct sgh_listener *listener;
	struct sg_cm_data *data;
	struct sgh_conn *conn;
	u32 id = le32_to_cpu(e->conn);

	data = kmalloc(sizeof(*data), GFP_KERNEL);
	conn = sgh_conn_new(sg, SGH_CONN_REQUESTED);
	if (!data || !conn)
		goto refuse;
	conn->id = id;

	mutex_lock(&sg->listen_mutex);
	listener = xa_load(&sg->listeners, le32_to_cpu(e->aux));
	if (listener) {
		cm_id = listener->cm_id;
		cm_id->add_ref(cm_id);
	}
	mutex_unlock(&sg->listen_mutex);

	if (!cm_id || sgh_event_data(sg, id, &event, data) ||
	    xa_err(xa_store(&sg->conns, id, conn, GFP_KERNEL)))
		goto refuse;
	event.provider_data = sgh_conn_cookie(conn);
	/* A consumer may accept before this returns; the table's reference is its, not ours. */
	if (cm_id->event_handler(cm_id, &event)) {
		if (sgh_conn_release(sg, conn, SGH_CONN_REQUESTED))
			sgh_send_reject(sg, id, NULL, 0);
	}
	cm_id->rem_ref(cm_id);
	kfree(data);
	return;

refuse:
	if (conn)
		sgh_conn_put(conn);
	kfree(data);
	if (cm_id)
		cm_id->rem_ref(cm_id);
	sgh_send_reject(sg, id, NULL, 0);
}

/* The outcome of CONNECT.  A failed one ends here; that the adapter closes it after is ignored. */
static void sgh_cm_reply(struct sgh_dev *sg, struct sgh_conn *conn, int err, bool has_data)
{
	struct iw_cm_event event = { .event = IW_CM_EVENT_CONNECT_REPLY, .status = err };
	struct sg_cm_data *data = NULL;
	struct iw_cm_id *cm_id;

	spin_lock(&sg->cm_lock);
	cm_id = conn->state == SGH_CONN_CONNECTING ? conn->cm_id : NULL;
	if (cm_id) {
		cm_id->add_ref(cm_id);
		if (!err)
			conn->state = SGH_CONN_ESTABLISHED;
	}
	spin_unlock(&sg->cm_lock);
	if (!cm_id)
		return;

	event.local_addr = cm_id->m_local_addr;
	event.remote_addr = cm_id->m_remote_addr;
	if (has_data)
		data = kmalloc(sizeof(*data), GFP_KERNEL);
	if (data && sgh_event_data(sg, conn->id, &event, data))
		ibdev_dbg(cm_id->device, "connection %u: no private data\n", conn->id);
	if (err)
		sgh_conn_release(sg, conn, SGH_CONN_CONNECTING);
	sgh_upcall(cm_id, &event);
	kfree(data);
	cm_id->rem_ref(cm_id);
}

/* The outcome of ACCEPT.  iw_cm hears CLOSE after a bad one too, when the connection is gone. */
static void sgh_cm_established(struct sgh_dev *sg, struct sgh_conn *conn, int err)
{
	struct iw_cm_event event = { .event = IW_CM_EVENT_ESTABLISHED, .status = err };
	struct sg_cm_data *data;
	struct iw_cm_id *cm_id;

	spin_lock(&sg->cm_lock);
	cm_id = conn->state == SGH_CONN_ACCEPTING ? conn->cm_id : NULL;
	if (cm_id) {
		cm_id->add_ref(cm_id);
		conn->state = SGH_CONN_ESTABLISHED;
	}
	spin_unlock(&sg->cm_lock);
	if (!cm_id)
		return;

	data = err ? NULL : kmalloc(sizeof(*data), GFP_KERNEL);
	if (data)
		sgh_event_data(sg, conn->id, &event, data);
	/* The request carried the private data; this event has none. */
	event.private_data = NULL;
	event.private_data_len = 0;
	event.local_addr = cm_id->m_local_addr;
	event.remote_addr = cm_id->m_remote_addr;
	sgh_upcall(cm_id, &event);
	kfree(data);
	cm_id->rem_ref(cm_id);
}

/* The peer has closed.  The adapter closes our side by itself; consumers hear of CLOSE. */
static void sgh_cm_disconnect(struct sgh_dev *sg, struct sgh_conn *conn)
{
	struct iw_cm_id *cm_id;

	spin_lock(&sg->cm_lock);
	cm_id = conn->state == SGH_CONN_ESTABLISHED ? conn->cm_id : NULL;
	if (cm_id)
		cm_id->add_ref(cm_id);
	spin_unlock(&sg->cm_lock);
	if (!cm_id)
		return;
	sgh_upcall_simple(cm_id, IW_CM_EVENT_DISCONNECT, 0);
	cm_id->rem_ref(cm_id);
}

/* Gone: whatever iw_cm still waits for comes now. */
static void sgh_cm_closed(struct sgh_dev *sg, struct sgh_conn *conn, int err)
{
	struct iw_cm_id *cm_id;

	if (sgh_conn_release(sg, conn, SGH_CONN_REQUESTED))
		return;
	sgh_cm_reply(sg, conn, err ? err : -ECONNRESET, false);
	sgh_cm_established(sg, conn, err ? err : -ECONNRESET);

	spin_lock(&sg->cm_lock);
	cm_id = conn->state == SGH_CONN_ESTABLISHED ? conn->cm_id : NULL;
	if (cm_id)
		cm_id->add_ref(cm_id);
	spin_unlock(&sg->cm_lock);
	if (!cm_id)
		return;
	sgh_conn_release(sg, conn, SGH_CONN_ESTABLISHED);
	sgh_upcall_simple(cm_id, IW_CM_EVENT_CLOSE, 0);
	cm_id->rem_ref(cm_id);
}

/* From the event work. */
void sgh_cm_event(struct sgh_dev *sg, const struct sg_eqe *e)
{
	int err = sgh_cm_errno(e->cm_status);
	struct sgh_conn *conn;

	if (e->event == SG_EV_CM_REQUEST) {
		sgh_cm_request(sg, e);
		return;
	}
	conn = sgh_conn_by_event(sg, e);
	if (!conn)
		return;
	switch (e->event) {
	case SG_EV_CM_REPLY:
		sgh_cm_reply(sg, conn, err,
			     e->cm_status == SG_CM_OK || e->cm_status == SG_CM_REJECTED);
		break;
	case SG_EV_CM_ESTABLISHED:
		sgh_cm_established(sg, conn, err);
		break;
	case SG_EV_CM_DISCONNECT:
		sgh_cm_disconnect(sg, conn);
		break;
	case SG_EV_CM_CLOSED:
		sgh_cm_closed(sg, conn, err);
		break;
	}
	sgh_conn_put(conn);
}

static void sgh_conn_end_work(struct work_struct *work)
{
	struct sgh_conn *conn = container_of(work, struct sgh_conn, end_work);

	sgh_cm_closed(conn->sg, conn, -ECONNRESET);
	sgh_conn_put(conn);
}

/*
 * The adapter has forgotten the queue pair; it closes what was connected to it, but says nothing
 * more of that.  So iw_cm is told from here, after the events that came before.
 */
void sgh_cm_qp_gone(struct sgh_qp *qp)
{
	struct sgh_dev *sg = qp->sg;
	struct sgh_conn *conn;

	spin_lock(&sg->cm_lock);
	conn = qp->conn;
	if (conn)
		kref_get(&conn->ref);
	spin_unlock(&sg->cm_lock);
	/* Queued already: the first to queue it passes on its reference. */
	if (conn && !queue_work(sg->event_wq, &conn->end_work))
		sgh_conn_put(conn);
}

/* In the event workqueue, on a lost adapter: all connections are gone. */
void sgh_cm_abort_all(struct sgh_dev *sg)
{
	struct sgh_conn *conn;
	struct sgh_qp *qp;
	unsigned long i;

	xa_for_each(&sg->qps, i, qp) {
		qp = sgh_qp_find(sg, i);
		if (!qp)
			continue;
		spin_lock(&sg->cm_lock);
		conn = qp->conn;
		if (conn)
			kref_get(&conn->ref);
		spin_unlock(&sg->cm_lock);
		if (conn) {
			sgh_cm_closed(sg, conn, -ECONNRESET);
			sgh_conn_put(conn);
		}
		sgh_qp_put(qp);
	}
	sgh_cm_drain(sg);
}

/* Requests that nobody will answer any more. */
void sgh_cm_drain(struct sgh_dev *sg)
{
	struct sgh_conn *conn;
	unsigned long i;

	xa_for_each(&sg->conns, i, conn) {
		/* Only its own release takes a connection from the table. */
		spin_lock(&sg->cm_lock);
		conn = xa_load(&sg->conns, i);
		if (conn)
			kref_get(&conn->ref);
		spin_unlock(&sg->cm_lock);
		if (!conn)
			continue;
		if (sgh_conn_release(sg, conn, SGH_CONN_REQUESTED))
			sgh_send_reject(sg, i, NULL, 0);
		sgh_conn_put(conn);
	}
}

/* iw_cm's calls */

void sgh_iw_add_ref(struct ib_qp *ibqp)
{
	refcount_inc(&to_sgh_qp(ibqp)->refs);
}

void sgh_iw_rem_ref(struct ib_qp *ibqp)
{
	sgh_qp_put(to_sgh_qp(ibqp));
}

/* Without a reference: iw_cm takes its own, and its caller owns the queue pair. */
struct ib_qp *sgh_iw_get_qp(struct ib_device *ibdev, int qpn)
{
	struct sgh_qp *qp = xa_load(&to_sgh(ibdev)->qps, qpn);

	return qp ? &qp->ibqp : NULL;
}

/* CONNECT, ACCEPT or REJECT with private data, which the adapter has read when this returns. */
static int sgh_cm_command(struct sgh_dev *sg, u8 opcode, struct sg_cmd_connect *cmd,
			  const void *pdata, u16 len, struct sg_admin_rsp *rsp)
{
	struct device *dev = &sg->pdev->dev;
	dma_addr_t dma = 0;
	void *buf = NULL;
	int ret;

	if (len > sg->caps.max_private_data)
		return -EINVAL;
	if (len) {
		buf = dma_alloc_coherent(dev, len, &dma, GFP_KERNEL);
		if (!buf)
			return -ENOMEM;
		memcpy(buf, pdata, len);
		cmd->pdata_addr = cpu_to_le64(dma);
		cmd->pdata_len = cpu_to_le16(len);
	}
	ret = sgh_admin(sg, opcode, cmd, sizeof(*cmd), rsp);
	if (buf)
		dma_free_coherent(dev, len, buf, dma);
	return ret;
}

static void sgh_send_reject(struct sgh_dev *sg, u32 id, const void *pdata, u8 len)
{
	struct sg_cmd_connect cmd = { .conn = cpu_to_le32(id) };

	sgh_cm_command(sg, SG_ADMIN_REJECT, &cmd, pdata, len, NULL);
}

/* Joins a connection in state from with the queue pair and the cm_id, and moves it to state to. */
static int sgh_conn_attach(struct sgh_dev *sg, struct sgh_conn *conn, u32 qpn,
			   struct iw_cm_id *id, enum sgh_conn_state from, enum sgh_conn_state to)
{
	struct sgh_qp *qp = sgh_qp_find(sg, qpn);
	int ret = 0;

	if (!qp)
		return -EINVAL;
	id->add_ref(id);
	spin_lock(&sg->cm_lock);
	if (conn->state != from) {
		ret = -ECONNRESET;
	} else if (qp->conn) {
		ret = -EISCONN;
	} else {
		conn->state = to;
		conn->qp = qp;
		conn->cm_id = id;
		qp->conn = conn;
	}
	spin_unlock(&sg->cm_lock);
	if (ret) {
		id->rem_ref(id);
		sgh_qp_put(qp);
	}
	return ret;
}

static void sgh_set_depths(struct sgh_dev *sg, struct sg_cmd_connect *cmd,
			   const struct iw_cm_conn_param *param)
{
	cmd->qpn = cpu_to_le32(param->qpn);
	cmd->ird = cpu_to_le16(min(param->ird, sg->caps.max_ird));
	cmd->ord = cpu_to_le16(min(param->ord, sg->caps.max_ord));
}

int sgh_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct sgh_dev *sg = to_sgh(id->device);
	struct sg_cmd_connect cmd = { };
	struct sg_admin_rsp rsp;
	struct sgh_conn *conn;
	int ret;

	ret = sgh_to_sockaddr(sg, &cmd.local, &id->m_local_addr);
	if (!ret)
		ret = sgh_to_sockaddr(sg, &cmd.remote, &id->m_remote_addr);
	if (ret)
		return ret;
	conn = sgh_conn_new(sg, SGH_CONN_CONNECTING);
	if (!conn)
		return -ENOMEM;
	ret = sgh_conn_attach(sg, conn, param->qpn, id, SGH_CONN_CONNECTING, SGH_CONN_CONNECTING);
	if (ret) {
		sgh_conn_put(conn);
		return ret;
	}
	/* The event work may end it before the command's answer is looked at. */
	kref_get(&conn->ref);
	sgh_set_depths(sg, &cmd, param);
	ret = sgh_cm_command(sg, SG_ADMIN_CONNECT, &cmd, param->private_data,
			     param->private_data_len, &rsp);
	if (ret == -EADDRNOTAVAIL) {
		sgh_net_sync(sg);
		ret = sgh_cm_command(sg, SG_ADMIN_CONNECT, &cmd, param->private_data,
				     param->private_data_len, &rsp);
	}
	if (!ret) {
		spin_lock(&sg->cm_lock);
		if (conn->state != SGH_CONN_GONE)
			conn->id = le32_to_cpu(rsp.id);
		spin_unlock(&sg->cm_lock);
	} else if (!sgh_conn_release(sg, conn, SGH_CONN_CONNECTING)) {
		ret = 0; /* iw_cm was told already */
	}
	sgh_conn_put(conn);
	return ret;
}

int sgh_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct sgh_dev *sg = to_sgh(id->device);
	struct sg_cmd_connect cmd = { };
	struct sgh_conn *conn;
	u32 number;
	int ret;

	conn = sgh_conn_by_cookie(sg, id->provider_data);
	if (!conn)
		return -ECONNRESET;
	number = conn->id;
	ret = sgh_conn_attach(sg, conn, param->qpn, id, SGH_CONN_REQUESTED, SGH_CONN_ACCEPTING);
	if (ret) {
		if (sgh_conn_release(sg, conn, SGH_CONN_REQUESTED))
			sgh_send_reject(sg, number, NULL, 0);
		goto out;
	}
	cmd.conn = cpu_to_le32(number);
	sgh_set_depths(sg, &cmd, param);
	ret = sgh_cm_command(sg, SG_ADMIN_ACCEPT, &cmd, param->private_data,
			     param->private_data_len, NULL);
	if (ret) {
		/* The table forgets it before the adapter does, and may reuse the number. */
		if (sgh_conn_release(sg, conn, SGH_CONN_ACCEPTING))
			sgh_send_reject(sg, number, NULL, 0);
		else
			ret = 0; /* iw_cm was told already */
	}
out:
	sgh_conn_put(conn);
	return ret;
}

int sgh_iw_reject(struct iw_cm_id *id, const void *pdata, u8 pdata_len)
{
	struct sgh_dev *sg = to_sgh(id->device);
	struct sgh_conn *conn;

	conn = sgh_conn_by_cookie(sg, id->provider_data);
	if (!conn)
		return -ECONNRESET;
	if (sgh_conn_release(sg, conn, SGH_CONN_REQUESTED))
		sgh_send_reject(sg, conn->id, pdata, pdata_len);
	sgh_conn_put(conn);
	return 0;
}

/* The addresses that the adapter is to listen on for this cm_id: their number, or an error. */
static int sgh_listen_addrs(struct sgh_dev *sg, struct iw_cm_id *id, struct sg_sockaddr *to)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&id->m_local_addr;
	int ret, n = 0;

	ret = sgh_to_sockaddr(sg, &to[n], &id->m_local_addr);
	if (!ret)
		n++;
	if (in6->sin6_family == AF_INET6 && ipv6_addr_any(&in6->sin6_addr) && !id->afonly) {
		memset(&to[n], 0, sizeof(to[n]));
		to[n].family = 4;
		to[n].port = in6->sin6_port;
		n++;
	}
	return n ? n : ret;
}

/* listen_mutex held. */
static int sgh_listen_one(struct sgh_dev *sg, struct sgh_listener *listener,
			  struct sg_cmd_listen *cmd)
{
	struct sg_admin_rsp rsp;
	u32 id;
	int ret;

	ret = sgh_admin(sg, SG_ADMIN_LISTEN, cmd, sizeof(*cmd), &rsp);
	if (ret == -EADDRNOTAVAIL) {
		sgh_net_sync(sg);
		ret = sgh_admin(sg, SG_ADMIN_LISTEN, cmd, sizeof(*cmd), &rsp);
	}
	if (ret)
		return ret;
	id = le32_to_cpu(rsp.id);
	ret = xa_err(xa_store(&sg->listeners, id, listener, GFP_KERNEL));
	if (ret)
		sgh_admin_destroy(sg, SG_ADMIN_UNLISTEN, id);
	else
		listener->ids[listener->num++] = id;
	return ret;
}

static void sgh_unlisten(struct sgh_dev *sg, struct sgh_listener *listener)
{
	u32 i;

	/* First the table: a request that comes now finds no listener, and is refused. */
	mutex_lock(&sg->listen_mutex);
	for (i = 0; i < listener->num; i++)
		xa_erase(&sg->listeners, listener->ids[i]);
	for (i = 0; i < listener->num; i++)
		sgh_admin_destroy(sg, SG_ADMIN_UNLISTEN, listener->ids[i]);
	mutex_unlock(&sg->listen_mutex);
}

int sgh_iw_create_listen(struct iw_cm_id *id, int backlog)
{
	struct sgh_dev *sg = to_sgh(id->device);
	struct sg_sockaddr addrs[2];
	struct sgh_listener *listener;
	int ret, n, i;

	n = sgh_listen_addrs(sg, id, addrs);
	if (n < 0)
		return n;
	listener = kzalloc(sizeof(*listener), GFP_KERNEL);
	if (!listener)
		return -ENOMEM;
	listener->cm_id = id;

	/* A request may come before the listener is in the table: the event work waits for us. */
	mutex_lock(&sg->listen_mutex);
	for (i = 0, ret = 0; i < n && !ret; i++) {
		struct sg_cmd_listen cmd = { .local = addrs[i] };

		cmd.backlog = cpu_to_le32(clamp(backlog, 1, 1024));
		ret = sgh_listen_one(sg, listener, &cmd);
	}
	mutex_unlock(&sg->listen_mutex);
	if (ret) {
		sgh_unlisten(sg, listener);
		kfree(listener);
		return ret;
	}
	id->add_ref(id);
	id->provider_data = listener;
	return 0;
}

int sgh_iw_destroy_listen(struct iw_cm_id *id)
{
	struct sgh_dev *sg = to_sgh(id->device);
	struct sgh_listener *listener = id->provider_data;

	sgh_unlisten(sg, listener);
	id->provider_data = NULL;
	kfree(listener);
	id->rem_ref(id);
	return 0;
}
