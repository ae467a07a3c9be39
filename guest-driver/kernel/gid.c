// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The port's GID table, for programs that connect as on InfiniBand (rendezvous.c).
 *
 * iWARP itself has no GIDs.  Entry 0 has the form that rdma_cm expects: the MAC address first, then
 * the node's GUID, because many programs treat a GID whose lower half is zero as unused.  Before
 * Linux 6.6 rdma_cm looks for an entry that is zero behind the MAC address, so it is.  Entries
 * from 1 on are the addresses of the port, in the slots of netdev.c, IPv4 as ::ffff:a.b.c.d; the
 * entry of an empty slot is zero, which ib_core treats as none.  An address keeps its entry as long
 * as it exists.
 *
 * Entry 0 of another adapter can be reached only if its GUID is derived from its MAC address, as it
 * is by default: then its link-local IPv6 address is the one that the MAC address gives.
 */
#include <linux/etherdevice.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "rendezvous.h"

static void sgh_gid_of_addr(union ib_gid *gid, const struct sg_sockaddr *addr)
{
	if (addr->family == 4)
		ipv6_addr_set_v4mapped(get_unaligned((__be32 *)addr->ip),
				       (struct in6_addr *)gid->raw);
	else
		memcpy(gid->raw, addr->ip, sizeof(gid->raw));
}

static void sgh_gid_of_port(struct sgh_dev *dev, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	ether_addr_copy(gid->raw, dev->mac);
	if (!SGH_GID_IS_MAC)
		gid->global.interface_id = cpu_to_be64(dev->guid);
}

static int sgh_gid_at(struct sgh_dev *dev, u32 index, union ib_gid *gid)
{
	struct sgh_net_addr addr;

	if (index >= SGH_GIDS)
		return -EINVAL;
	memset(gid, 0, sizeof(*gid));
	if (!index)
		sgh_gid_of_port(dev, gid);
	else if (!sgh_net_addr(dev, index - 1, &addr))
		sgh_gid_of_addr(gid, &addr.addr);
	return 0;
}

int sgh_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	if (port != 1 || index < 0)
		return -EINVAL;
	return sgh_gid_at(to_sgh(ibdev), index, gid);
}

/* Peers with kernels before 6.6 have zeros behind the MAC address.  So may IPv6 addresses have. */
static bool sgh_gid_is_mac(const union ib_gid *gid)
{
	const struct in6_addr *in6 = (const struct in6_addr *)gid->raw;

	return !gid->global.interface_id && is_valid_ether_addr(gid->raw) &&
	       (gid->raw[0] & 0xe0) != 0x20 && (gid->raw[0] & 0xfe) != 0xfc &&
	       !(ipv6_addr_type(in6) & IPV6_ADDR_LINKLOCAL);
}

/* Is it entry 0 of an adapter with the default GUID, or none?  Then its link-local address. */
static bool sgh_gid_of_mac(const union ib_gid *gid, struct in6_addr *addr)
{
	const u8 *mac = gid->raw;
	u8 guid[8] = { mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5] };

	/* RFC 4291 appendix A: the interface identifier that the MAC address gives. */
	if (gid->raw[6] || gid->raw[7] ||
	    (memcmp(gid->raw + 8, guid, sizeof(guid)) && !sgh_gid_is_mac(gid)))
		return false;
	ipv6_addr_set(addr, htonl(0xfe800000), 0, 0, 0);
	memcpy(addr->s6_addr + 8, guid, sizeof(guid));
	return true;
}

static int sgh_gid_remote(const union ib_gid *gid, struct sg_sockaddr *remote)
{
	const struct in6_addr *in6 = (const struct in6_addr *)gid->raw;
	struct in6_addr mac_based;

	memset(remote, 0, sizeof(*remote));
	if (ipv6_addr_v4mapped(in6)) {
		remote->family = 4;
		memcpy(remote->ip, gid->raw + 12, 4);
		return in6->s6_addr32[3] ? 0 : -EINVAL;
	}
	if (sgh_gid_of_mac(gid, &mac_based))
		in6 = &mac_based;
	if (ipv6_addr_any(in6) || ipv6_addr_is_multicast(in6) || ipv6_addr_loopback(in6))
		return -EINVAL;
	remote->family = 6;
	memcpy(remote->ip, in6, sizeof(remote->ip));
	return 0;
}

static bool sgh_is_linklocal(const struct sg_sockaddr *addr)
{
	return addr->family == 6 && addr->ip[0] == 0xfe && (addr->ip[1] & 0xc0) == 0x80;
}

static u32 sgh_same_bits(const struct sg_sockaddr *a, const struct sg_sockaddr *b)
{
	u32 i, max = a->family == 4 ? 4 : 16;

	for (i = 0; i < max && a->ip[i] == b->ip[i]; i++)
		;
	return i == max ? 8 * max : 8 * i + 8 - fls(a->ip[i] ^ b->ip[i]);
}

/* For entry 0: the address of the same kind that has the longest prefix in common with remote. */
static int sgh_gid_choose(struct sgh_dev *dev, const struct sg_sockaddr *remote,
			  struct sg_sockaddr *local)
{
	struct sgh_net_addr a;
	int best = -1, same;
	u32 slot;

	for (slot = 0; slot < SG_PORT_ADDR_MAX; slot++) {
		if (sgh_net_addr(dev, slot, &a) ||
		    (remote && (a.addr.family != remote->family ||
				sgh_is_linklocal(&a.addr) != sgh_is_linklocal(remote))))
			continue;
		same = remote ? sgh_same_bits(&a.addr, remote) : 0;
		if (same > best) {
			best = same;
			*local = a.addr;
		}
	}
	return best < 0 ? -ENETUNREACH : 0;
}

/*
 * Finds the two ends of a connection from our entry index to dgid; sgid receives the GID of that
 * entry.  -EINVAL: no such entry, or not the GID of a single adapter.  -ENETUNREACH: they cannot
 * reach each other, for instance because one is an IPv4 address and the other is not.
 */
int sgh_gid_route(struct sgh_dev *dev, u32 index, const union ib_gid *dgid, union ib_gid *sgid,
		  struct sg_sockaddr *local, struct sg_sockaddr *remote)
{
	struct sgh_net_addr own;
	union ib_gid port;
	bool self;
	int ret;

	ret = sgh_gid_at(dev, index, sgid);
	if (ret || rdma_is_zero_gid(sgid))
		return -EINVAL;
	sgh_gid_of_port(dev, &port);
	self = !memcmp(dgid, &port, sizeof(port));
	if (!self) {
		ret = sgh_gid_remote(dgid, remote);
		if (ret)
			return ret;
	}
	if (!index)
		ret = sgh_gid_choose(dev, self ? NULL : remote, local);
	else if (!sgh_net_addr(dev, index - 1, &own))
		*local = own.addr;
	else
		ret = -EINVAL;
	if (ret)
		return ret;
	if (self)
		*remote = *local;
	else if (local->family != remote->family)
		return -ENETUNREACH;
	else if (sgh_is_linklocal(remote))
		remote->vlan = local->vlan;
	return 0;
}
