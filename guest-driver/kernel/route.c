// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The guest's routing tables and the adapter.
 *
 * The adapter knows prefix and gateway of each of its addresses, which is enough for its first
 * answers to a peer.  For a connection this file queries the tables, including rules by source and
 * port, and CONNECT and ACCEPT carry the result: the neighbour that gets the packets.  If the route
 * leads over another interface, the adapter cannot use it; then the tables are queried again for
 * the interface with the local address.  If there is no route at all, the adapter decides; it
 * knows whether it can do without.
 */
#include <linux/in.h>
#include <net/inet_dscp.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "cm.h"

/* The interface that has this address of the port, 0: none; loopback: it is the port's own. */
static int sgh_addr_ifindex(struct sgh_dev *dev, const struct sg_sockaddr *addr)
{
	struct sgh_net_addr a;
	u32 slot;

	for (slot = 0; slot < SG_PORT_ADDR_MAX; slot++) {
		if (!sgh_net_addr(dev, slot, &a) && a.addr.family == addr->family &&
		    !memcmp(a.addr.ip, addr->ip, sizeof(addr->ip)))
			return a.ifindex;
	}
	return 0;
}

static bool sgh_next_hop4(const struct sg_sockaddr *local, const struct sg_sockaddr *remote,
			  int want, int oif, u8 *next_hop)
{
	struct flowi4 fl4 = {
		.flowi4_oif = oif,
		.flowi4_proto = IPPROTO_TCP,
		.fl4_sport = local->port,
		.fl4_dport = remote->port,
	};
	struct rtable *rt;
	bool found;

	sgh_set_tos(&fl4, local->tos);
	memcpy(&fl4.saddr, local->ip, 4);
	memcpy(&fl4.daddr, remote->ip, 4);
	rt = ip_route_output_key(&init_net, &fl4);
	if (IS_ERR(rt))
		return false;
	/* The adapter cannot use a router that has only an IPv6 address. */
	found = rt->dst.dev->ifindex == want && rt->rt_gw_family != AF_INET6;
	if (found && rt->rt_gw_family)
		memcpy(next_hop, &rt->rt_gw4, 4);
	else if (found)
		memcpy(next_hop, remote->ip, 4);
	ip_rt_put(rt);
	return found;
}

#if IS_ENABLED(CONFIG_IPV6)
static bool sgh_next_hop6(const struct sg_sockaddr *local, const struct sg_sockaddr *remote,
			  int want, int oif, u8 *next_hop)
{
	struct flowi6 fl6 = {
		.flowi6_oif = oif,
		.flowlabel = ip6_make_flowinfo(local->tos, 0),
		.flowi6_proto = IPPROTO_TCP,
		.fl6_sport = local->port,
		.fl6_dport = remote->port,
	};
	struct dst_entry *dst;
	bool found;

	memcpy(&fl6.saddr, local->ip, 16);
	memcpy(&fl6.daddr, remote->ip, 16);
	dst = ip6_route_output(&init_net, NULL, &fl6);
	found = !dst->error && dst->dev->ifindex == want;
	if (found)
		memcpy(next_hop, rt6_nexthop((const struct rt6_info *)dst, &fl6.daddr), 16);
	dst_release(dst);
	return found;
}
#else
static bool sgh_next_hop6(const struct sg_sockaddr *local, const struct sg_sockaddr *remote,
			  int want, int oif, u8 *next_hop)
{
	return false;
}
#endif

/* For CONNECT or ACCEPT between these two.  Process context. */
void sgh_set_next_hop(struct sgh_dev *dev, struct sg_cmd_connect *cmd,
		      const struct sg_sockaddr *local, const struct sg_sockaddr *remote)
{
	int ifindex = sgh_addr_ifindex(dev, local);
	bool (*ask)(const struct sg_sockaddr *, const struct sg_sockaddr *, int, int, u8 *) =
		local->family == 4 ? sgh_next_hop4 : sgh_next_hop6;

	/* Our own addresses are reached without a neighbour. */
	if (!ifindex || sgh_addr_ifindex(dev, remote))
		return;
	/* A link-local address determines a route only with its link. */
	if (local->family == 6 &&
	    ipv6_addr_type((const struct in6_addr *)remote->ip) & IPV6_ADDR_LINKLOCAL)
		return;
	if (!ask(local, remote, ifindex, 0, cmd->next_hop))
		ask(local, remote, ifindex, ifindex, cmd->next_hop);
}
