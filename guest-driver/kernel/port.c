// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * TCP ports, which the adapter shares with the guest's own stack.
 *
 * Segments for a port on which the adapter listens, or for a connection of the adapter, no longer
 * reach the guest's sockets.  So each such port is first bound in the guest's TCP, by a socket that
 * does nothing else: a program that has the port already keeps it (-EADDRINUSE), and one that wants
 * it later fails at once.  Servers in the kernel are an exception (sgh_port_hold_listener()).
 *
 * The socket of a listener at every address is bound to the port's interface, because several
 * adapters may listen in this way; it excludes sockets that do not name another interface.
 */
#include <linux/in.h>
#include <linux/net.h>
#include <net/inet6_hashtables.h>
#include <net/inet_hashtables.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "cm.h"

static int sgh_port_name(struct sgh_dev *dev, const struct sg_sockaddr *addr,
			 struct sockaddr_storage *name)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)name;
	struct sockaddr_in *in = (struct sockaddr_in *)name;

	memset(name, 0, sizeof(*name));
	if (addr->family == 4) {
		in->sin_family = AF_INET;
		in->sin_port = addr->port;
		memcpy(&in->sin_addr, addr->ip, 4);
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = addr->port;
	memcpy(&in6->sin6_addr, addr->ip, 16);
	if (ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL)
		in6->sin6_scope_id = sgh_net_ifindex(dev, le16_to_cpu(addr->vlan));
	return sizeof(*in6);
}

static int sgh_port_bind(struct sgh_dev *dev, struct sock *sk, const struct sg_sockaddr *addr)
{
	static const u8 any[sizeof(addr->ip)];
	struct sockaddr_storage name;
	int len, ret = 0;

	if (addr->family == 6)
		ret = ip6_sock_set_v6only(sk);
	if (!ret && !memcmp(addr->ip, any, sizeof(any)))
		ret = sock_bindtoindex(sk, sgh_net_ifindex(dev, 0), true);
	if (ret)
		return ret;
	/* Remains of the guest's own connections do not block a port that is named. */
	if (addr->port)
		sock_set_reuseaddr(sk);
	len = sgh_port_name(dev, addr, &name);
	ret = kernel_bind(sk->sk_socket, (sgh_bind_arg *)&name, len);
	lock_sock(sk);
	sk->sk_reuse = SK_NO_REUSE;
	release_sock(sk);
	return ret;
}

/*
 * Binds to the address and port; port 0: to a free one, which is stored in addr.  Process
 * context, with the caller's rights.
 */
int sgh_port_hold(struct sgh_dev *dev, struct sg_sockaddr *addr, struct socket **held)
{
	struct socket *sock;
	int ret;

	*held = NULL;
	ret = sock_create_kern(&init_net, addr->family == 4 ? AF_INET : AF_INET6, SOCK_STREAM,
			       IPPROTO_TCP, &sock);
	if (ret)
		return ret;
	ret = sgh_port_bind(dev, sock->sk, addr);
	if (ret) {
		sock_release(sock);
		return ret;
	}
	addr->port = inet_sk(sock->sk)->inet_sport;
	*held = sock;
	return 0;
}

/* Does the kernel itself listen there with TCP?  Then the port may be shared. */
static bool sgh_port_is_kernels(struct sgh_dev *dev, const struct sg_sockaddr *addr)
{
	u16 port = be16_to_cpu(addr->port);
	int ifindex = sgh_net_ifindex(dev, 0);
	const struct socket *sock;
	struct sock *sk = NULL;
	__be32 ip;
	bool found;

	rcu_read_lock();
	if (addr->family == 4) {
		memcpy(&ip, addr->ip, 4);
		sk = SGH_TCP_LOOKUP(__inet_lookup_listener, NULL, 0, 0, 0, ip, port, ifindex, 0);
#if IS_ENABLED(CONFIG_IPV6)
	} else {
		sk = SGH_TCP_LOOKUP(inet6_lookup_listener, NULL, 0, &in6addr_any, 0,
				    (const struct in6_addr *)addr->ip, port, ifindex, 0);
#endif
	}
	sock = sk ? READ_ONCE(sk->sk_socket) : NULL;
	found = sock && !READ_ONCE(sock->file);
	rcu_read_unlock();
	return found;
}

/*
 * For a listener.  An iSER portal of LIO first listens with TCP on the same port.  So an
 * administrator may give RDMA a port of a server in the kernel; the log reports it.
 */
int sgh_port_hold_listener(struct sgh_dev *dev, struct sg_sockaddr *addr, struct socket **held)
{
	int ret = sgh_port_hold(dev, addr, held);

	if (ret != -EADDRINUSE || !capable(CAP_NET_ADMIN) || !sgh_port_is_kernels(dev, addr))
		return ret;
	dev_warn(&dev->pdev->dev,
		 "port %u is RDMA's now: the kernel's own TCP server is not reached\n",
		 be16_to_cpu(addr->port));
	return 0;
}

/* NULL: nothing is held. */
void sgh_port_release(struct socket *held)
{
	if (held)
		sock_release(held);
}

/* Does the guest's TCP have a connection between these two? */
static bool sgh_port_connected(struct sgh_dev *dev, const struct sg_sockaddr *local,
			       const struct sg_sockaddr *remote)
{
	int ifindex = sgh_net_ifindex(dev, 0);
	struct sock *sk = NULL;
	__be32 from, to;

	/* Memory of sockets is reused only after a grace period, on which the lookup relies. */
	rcu_read_lock();
	if (local->family == 4) {
		memcpy(&from, remote->ip, 4);
		memcpy(&to, local->ip, 4);
		sk = SGH_TCP_LOOKUP(inet_lookup_established, from, remote->port, to, local->port,
				    ifindex);
#if IS_ENABLED(CONFIG_IPV6)
	} else {
		const struct in6_addr *from6 = (const struct in6_addr *)remote->ip;
		const struct in6_addr *to6 = (const struct in6_addr *)local->ip;

		sk = SGH_TCP_LOOKUP(__inet6_lookup_established, from6, remote->port, to6,
				    be16_to_cpu(local->port), ifindex, 0);
#endif
	}
	rcu_read_unlock();
	if (sk)
		sock_gen_put(sk);
	return sk;
}

/*
 * For a connection from a port that rdma_cm has chosen from its own port space.  If the guest's
 * TCP uses the port as well, this only conflicts for a connection to the same peer: both ends
 * together identify a connection.
 */
int sgh_port_hold_for(struct sgh_dev *dev, const struct sg_sockaddr *local,
		      const struct sg_sockaddr *remote, struct socket **held)
{
	struct sg_sockaddr addr = *local;
	int ret;

	ret = sgh_port_hold(dev, &addr, held);
	if (ret != -EADDRINUSE)
		return 0; /* the adapter reports what is wrong, if anything is */
	return sgh_port_connected(dev, local, remote) ? ret : 0;
}
