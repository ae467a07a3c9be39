// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * iw_cm's calls: connect, accept, reject, listen; see cm.c for the life of a connection.
 *
 * A call that fails makes no upcall; a call that succeeds makes all of them.  When a command fails,
 * the connection is released from the state that the call left it in.  If the event work has done
 * so already, iw_cm has been told, and the call counts as a success.
 *
 * iw_cm maps no ports for us (IW_F_NO_PORT_MAP), so m_local_addr and m_remote_addr are the wire's
 * addresses.  If the adapter does not know an address yet, it is looked up once more, because
 * netdev.c learns of new ones from a work that may not have run.
 */
#include <linux/dma-mapping.h>
#include <linux/in.h>
#include <net/ipv6.h>

#include "cm.h"
#include "qp.h"
#include "rendezvous.h"

static int sgh_to_sockaddr(struct sgh_dev *dev, struct sg_sockaddr *to,
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
	if (from->ss_family == AF_INET6 && dev->caps.features & SG_FEATURE_IPV6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;

		to->family = 6;
		to->port = in6->sin6_port;
		memcpy(to->ip, &in6->sin6_addr, 16);
		if (ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL)
			to->vlan = cpu_to_le16(sgh_net_vlan(dev, in6->sin6_scope_id));
		return 0;
	}
	return -EAFNOSUPPORT;
}

/* With a reference, or NULL: gone. */
static struct sgh_conn *sgh_conn_by_cookie(struct sgh_dev *dev, void *cookie)
{
	struct sgh_conn *conn;

	spin_lock(&dev->cm_lock);
	conn = xa_load(&dev->conns, (u32)(uintptr_t)cookie);
	if (conn && conn->generation == (uintptr_t)cookie >> 32)
		kref_get(&conn->ref);
	else
		conn = NULL;
	spin_unlock(&dev->cm_lock);
	return conn;
}

/*
 * iw_cm looks up a queue pair by the number that a process gave.  Another thread may destroy it
 * meanwhile, and iw_cm always takes its reference right after this call.  So the reference is taken
 * here, while the table still guarantees that the queue pair exists.
 */
struct ib_qp *sgh_iw_get_qp(struct ib_device *ibdev, int qpn)
{
	struct sgh_qp *qp = sgh_qp_find(to_sgh(ibdev), qpn);

	return qp ? &qp->ibqp : NULL;
}

/* Taken by sgh_iw_get_qp() already. */
void sgh_iw_add_ref(struct ib_qp *ibqp)
{
}

void sgh_iw_rem_ref(struct ib_qp *ibqp)
{
	sgh_qp_put(to_sgh_qp(ibqp));
}

/* CONNECT, ACCEPT or REJECT with private data, which the adapter has read when this returns. */
int sgh_cm_command(struct sgh_dev *dev, u8 opcode, struct sg_cmd_connect *cmd, const void *pdata,
		   u16 len, struct sg_admin_rsp *rsp)
{
	struct device *device = &dev->pdev->dev;
	dma_addr_t dma = 0;
	void *buf = NULL;
	int ret;

	if (len > dev->caps.max_private_data)
		return -EINVAL;
	if (len) {
		buf = dma_alloc_coherent(device, len, &dma, GFP_KERNEL);
		if (!buf)
			return -ENOMEM;
		memcpy(buf, pdata, len);
		cmd->pdata_addr = cpu_to_le64(dma);
		cmd->pdata_len = cpu_to_le16(len);
	}
	ret = sgh_admin(dev, opcode, cmd, sizeof(*cmd), rsp);
	if (buf)
		dma_free_coherent(device, len, buf, dma);
	return ret;
}

/*
 * Without memory for the private data the peer gets a Reply without them: it learns that it is
 * refused, instead of waiting for its timeout.
 */
void sgh_send_reject(struct sgh_dev *dev, u32 id, const void *pdata, u8 len)
{
	struct sg_cmd_connect cmd = { .conn = cpu_to_le32(id) };
	struct sg_cmd_connect bare = cmd;

	if (sgh_cm_command(dev, SG_ADMIN_REJECT, &cmd, pdata, len, NULL) == -ENOMEM && len)
		sgh_cm_command(dev, SG_ADMIN_REJECT, &bare, NULL, 0, NULL);
}

/* Joins a connection in state from with queue pair and cm_id, and moves it to state to. */
static int sgh_conn_attach(struct sgh_dev *dev, struct sgh_conn *conn, u32 qpn, struct iw_cm_id *id,
			   enum sgh_conn_state from, enum sgh_conn_state to)
{
	struct sgh_qp *qp = sgh_qp_find(dev, qpn);
	int ret = 0;

	if (!qp)
		return -EINVAL;
	id->add_ref(id);
	spin_lock(&dev->cm_lock);
	if (conn->state != from) {
		ret = -ECONNRESET;
	} else if (qp->conn || sgh_rdv_active(qp)) {
		ret = -EISCONN;
	} else {
		conn->qp = qp;
		conn->cm_id = id;
		qp->conn = conn;
		sgh_conn_set_state(conn, to);
	}
	spin_unlock(&dev->cm_lock);
	if (ret) {
		id->rem_ref(id);
		sgh_qp_put(qp);
	}
	return ret;
}

/*
 * CONNECT or ACCEPT for the queue pair of this number.  Destruction does not free the number
 * while the command is in progress, and afterwards no command is sent: it could name another one.
 */
static int sgh_conn_command(struct sgh_dev *dev, u8 opcode, struct sg_cmd_connect *cmd,
			    const struct iw_cm_conn_param *param, struct sg_admin_rsp *rsp)
{
	struct sgh_qp *qp = sgh_qp_find(dev, param->qpn);
	int ret = -EINVAL;

	if (!qp)
		return ret;
	mutex_lock(&qp->mutex);
	if (!qp->gone)
		ret = sgh_cm_command(dev, opcode, cmd, param->private_data, param->private_data_len,
				     rsp);
	mutex_unlock(&qp->mutex);
	sgh_qp_put(qp);
	return ret;
}

static void sgh_set_depths(struct sgh_dev *dev, struct sg_cmd_connect *cmd,
			   const struct iw_cm_conn_param *param)
{
	cmd->qpn = cpu_to_le32(param->qpn);
	cmd->ird = cpu_to_le16(min(param->ird, dev->caps.max_ird));
	cmd->ord = cpu_to_le16(min(param->ord, dev->caps.max_ord));
}

int sgh_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct sgh_dev *dev = to_sgh(id->device);
	struct sg_cmd_connect cmd = {};
	struct sg_admin_rsp rsp;
	struct sgh_conn *conn;
	int ret;

	ret = sgh_to_sockaddr(dev, &cmd.local, &id->m_local_addr);
	if (!ret)
		ret = sgh_to_sockaddr(dev, &cmd.remote, &id->m_remote_addr);
	if (ret)
		return ret;
	conn = sgh_conn_new(dev, 0, SGH_CONN_CONNECTING);
	if (!conn)
		return -ENOMEM;
	ret = sgh_port_hold_for(dev, &cmd.local, &cmd.remote, &conn->held);
	if (ret) {
		sgh_conn_put(conn);
		return ret;
	}
	ret = sgh_conn_attach(dev, conn, param->qpn, id, SGH_CONN_CONNECTING, SGH_CONN_CONNECTING);
	if (ret) {
		sgh_conn_put(conn);
		return ret;
	}
	/* The event work may end it before we see the command's answer. */
	kref_get(&conn->ref);
	sgh_set_depths(dev, &cmd, param);
	cmd.local.tos = id->tos_set ? id->tos : 0;
	sgh_set_next_hop(dev, &cmd, &cmd.local, &cmd.remote);
	ret = sgh_conn_command(dev, SG_ADMIN_CONNECT, &cmd, param, &rsp);
	if (ret == -EADDRNOTAVAIL) {
		sgh_net_sync(dev);
		ret = sgh_conn_command(dev, SG_ADMIN_CONNECT, &cmd, param, &rsp);
	}
	if (!ret) {
		spin_lock(&dev->cm_lock);
		if (conn->state != SGH_CONN_GONE)
			conn->id = le32_to_cpu(rsp.id);
		spin_unlock(&dev->cm_lock);
	} else if (!sgh_conn_release(dev, conn, SGH_CONN_CONNECTING)) {
		ret = 0; /* iw_cm was told already */
	}
	sgh_conn_put(conn);
	return ret;
}

int sgh_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct sgh_dev *dev = to_sgh(id->device);
	struct sg_cmd_connect cmd = {};
	struct sg_sockaddr local, remote;
	struct sgh_conn *conn;
	u32 number;
	int ret;

	conn = sgh_conn_by_cookie(dev, id->provider_data);
	if (!conn)
		return -ECONNRESET;
	number = conn->id;
	ret = sgh_conn_attach(dev, conn, param->qpn, id, SGH_CONN_REQUESTED, SGH_CONN_ACCEPTING);
	if (ret) {
		if (sgh_conn_release(dev, conn, SGH_CONN_REQUESTED))
			sgh_send_reject(dev, number, NULL, 0);
		goto out;
	}
	cmd.conn = cpu_to_le32(number);
	sgh_set_depths(dev, &cmd, param);
	if (!sgh_to_sockaddr(dev, &local, &id->m_local_addr) &&
	    !sgh_to_sockaddr(dev, &remote, &id->m_remote_addr))
		sgh_set_next_hop(dev, &cmd, &local, &remote);
	ret = sgh_conn_command(dev, SG_ADMIN_ACCEPT, &cmd, param, NULL);
	if (ret) {
		/* It leaves our table before the adapter may reuse its number. */
		if (sgh_conn_release(dev, conn, SGH_CONN_ACCEPTING))
			sgh_send_reject(dev, number, NULL, 0);
		else
			ret = 0; /* iw_cm was told already */
	}
out:
	sgh_conn_put(conn);
	return ret;
}

int sgh_iw_reject(struct iw_cm_id *id, const void *pdata, u8 pdata_len)
{
	struct sgh_dev *dev = to_sgh(id->device);
	struct sgh_conn *conn;

	conn = sgh_conn_by_cookie(dev, id->provider_data);
	if (!conn)
		return -ECONNRESET;
	if (sgh_conn_release(dev, conn, SGH_CONN_REQUESTED))
		sgh_send_reject(dev, conn->id, pdata, pdata_len);
	sgh_conn_put(conn);
	return 0;
}

/* The addresses that the adapter is to listen on for this cm_id: their number, or an error. */
static int sgh_listen_addrs(struct sgh_dev *dev, struct iw_cm_id *id, struct sg_sockaddr *to)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&id->m_local_addr;
	int ret, n = 0;

	ret = sgh_to_sockaddr(dev, &to[n], &id->m_local_addr);
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
static int sgh_listen_one(struct sgh_dev *dev, struct sgh_listener *listener,
			  struct sg_cmd_listen *cmd)
{
	struct sg_admin_rsp rsp;
	struct socket *held;
	u32 id;
	int ret;

	ret = sgh_port_hold_listener(dev, &cmd->local, &held);
	if (ret)
		return ret;
	ret = sgh_admin(dev, SG_ADMIN_LISTEN, cmd, sizeof(*cmd), &rsp);
	if (ret == -EADDRNOTAVAIL) {
		sgh_net_sync(dev);
		ret = sgh_admin(dev, SG_ADMIN_LISTEN, cmd, sizeof(*cmd), &rsp);
	}
	if (ret)
		goto err_held;
	id = le32_to_cpu(rsp.id);
	ret = xa_err(xa_store(&dev->listeners, id, listener, GFP_KERNEL));
	if (ret) {
		sgh_admin_destroy(dev, SG_ADMIN_UNLISTEN, id);
		goto err_held;
	}
	listener->held[listener->num] = held;
	listener->ids[listener->num++] = id;
	return 0;

err_held:
	sgh_port_release(held);
	return ret;
}

static void sgh_unlisten(struct sgh_dev *dev, struct sgh_listener *listener)
{
	u32 i;

	/* Remove it from the table first: a request that arrives now is refused. */
	mutex_lock(&dev->listen_mutex);
	for (i = 0; i < listener->num; i++)
		xa_erase(&dev->listeners, listener->ids[i]);
	for (i = 0; i < listener->num; i++)
		sgh_admin_destroy(dev, SG_ADMIN_UNLISTEN, listener->ids[i]);
	mutex_unlock(&dev->listen_mutex);
	for (i = 0; i < listener->num; i++)
		sgh_port_release(listener->held[i]);
}

int sgh_iw_create_listen(struct iw_cm_id *id, int backlog)
{
	struct sgh_dev *dev = to_sgh(id->device);
	struct sg_sockaddr addrs[2];
	struct sgh_listener *listener;
	int ret, n, i;

	n = sgh_listen_addrs(dev, id, addrs);
	if (n < 0)
		return n;
	listener = kzalloc(sizeof(*listener), GFP_KERNEL);
	if (!listener)
		return -ENOMEM;
	listener->cm_id = id;

	/* A request may come before the listener is in the table: the event work waits for us. */
	mutex_lock(&dev->listen_mutex);
	for (i = 0, ret = 0; i < n && !ret; i++) {
		struct sg_cmd_listen cmd = { .local = addrs[i] };

		cmd.backlog = cpu_to_le32(clamp(backlog, 1, 1024));
		cmd.local.tos = id->tos_set ? id->tos : 0;
		ret = sgh_listen_one(dev, listener, &cmd);
	}
	mutex_unlock(&dev->listen_mutex);
	if (ret) {
		sgh_unlisten(dev, listener);
		kfree(listener);
		return ret;
	}
	id->add_ref(id);
	id->provider_data = listener;
	return 0;
}

int sgh_iw_destroy_listen(struct iw_cm_id *id)
{
	struct sgh_dev *dev = to_sgh(id->device);
	struct sgh_listener *listener = id->provider_data;

	sgh_unlisten(dev, listener);
	id->provider_data = NULL;
	kfree(listener);
	id->rem_ref(id);
	return 0;
}
