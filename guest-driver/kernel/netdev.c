// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The network interface that shares the adapter's port.
 *
 * The interface belongs to another function and is found by its MAC address; of several, the one in
 * the adapter's PCI slot is preferred, then the oldest.  Notifiers only queue net_work, which
 * updates everything from the present state: the binding, the RDMA device (which exists while the
 * interface does), the port's state, and the adapter's addresses, gateways and MTU.  Addresses are
 * the interface's own and those of VLAN devices on top of it.  So any number of changes costs one
 * pass, and no notifier waits for the adapter.
 *
 * The pass over addresses (sgh_net_sync) takes only addr_mutex and RCU, never rtnl: connection
 * setup calls it too when the adapter does not know an address yet, and does so under locks of
 * rdma_cm that are taken inside rtnl elsewhere.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/delay.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/ip6_route.h>
#include <net/ip_fib.h>

#include "dev.h"

#define SGH_MTU_MIN 576
#define SGH_FIB_TRIES 50
#define SGH_FIB_PAUSE 20 /* ms */
#define SGH_NET_RETRY HZ

void sgh_net_kick(struct sgh_dev *dev)
{
	unsigned long flags;

	/* None is queued after sgh_net_stop(). */
	spin_lock_irqsave(&dev->net_lock, flags);
	if (!dev->net_stopping)
		mod_delayed_work(system_wq, &dev->net_work, 0);
	spin_unlock_irqrestore(&dev->net_lock, flags);
}

/* For what failed and no event would start again.  Work that is queued already comes first. */
static void sgh_net_retry(struct sgh_dev *dev)
{
	unsigned long flags;

	spin_lock_irqsave(&dev->net_lock, flags);
	if (!dev->net_stopping)
		schedule_delayed_work(&dev->net_work, SGH_NET_RETRY);
	spin_unlock_irqrestore(&dev->net_lock, flags);
}

static void sgh_net_stop(struct sgh_dev *dev)
{
	spin_lock_irq(&dev->net_lock);
	dev->net_stopping = true;
	spin_unlock_irq(&dev->net_lock);
}

static const struct pci_dev *sgh_netdev_pci(const struct net_device *netdev)
{
	struct device *device;

	for (device = netdev->dev.parent; device; device = device->parent) {
		if (dev_is_pci(device))
			return to_pci_dev(device);
	}
	return NULL;
}

/* 0: not our interface; otherwise the highest score wins. */
static int sgh_netdev_score(struct sgh_dev *dev, const struct net_device *netdev)
{
	const struct pci_dev *pdev;

	/* An interface without a parent is stacked on another and borrows its address. */
	if (netdev->type != ARPHRD_ETHER || !netdev->dev.parent ||
	    !(ether_addr_equal_unaligned(netdev->perm_addr, dev->mac) ||
	      ether_addr_equal(netdev->dev_addr, dev->mac)))
		return 0;
	pdev = sgh_netdev_pci(netdev);
	return pdev && pdev->bus == dev->pdev->bus &&
			       PCI_SLOT(pdev->devfn) == PCI_SLOT(dev->pdev->devfn)
		       ? 2
		       : 1;
}

/* With a reference in dev->netdev_tracker, or NULL. */
static struct net_device *sgh_netdev_find(struct sgh_dev *dev)
{
	struct net_device *netdev, *best = NULL;
	int score, best_score = 0;

	rtnl_lock();
	for_each_netdev(&init_net, netdev) {
		score = sgh_netdev_score(dev, netdev);
		if (score > best_score) {
			best = netdev;
			best_score = score;
		}
	}
	if (best)
		netdev_hold(best, &dev->netdev_tracker, GFP_KERNEL);
	rtnl_unlock();
	return best;
}

static int sgh_set_addr(struct sgh_dev *dev, const struct sgh_net_addr *a, u8 op)
{
	struct sg_cmd_set_addr cmd = { .op = op };

	cmd.addr = a->addr;
	cmd.prefix_len = a->prefix_len;
	cmd.vlan = cpu_to_le16(a->vlan);
	memcpy(cmd.gateway, a->gateway, sizeof(cmd.gateway));
	return sgh_admin(dev, SG_ADMIN_SET_ADDR, &cmd, sizeof(cmd), NULL);
}

/*
 * Addresses found so far, at most as many of each kind as the adapter takes.  If there are too
 * many, those that the adapter has come first: a new one must not end connections of another.
 */
struct sgh_found {
	struct sgh_net_addr known[SG_PORT_ADDR_MAX];
	struct sgh_net_addr fresh[SG_PORT_ADDR_MAX];
	u32 num_known, num_fresh;
	u32 left_out;
};

static struct sgh_net_addr *sgh_addr_find(const struct sgh_net_addr *a, struct sgh_net_addr *set,
					  u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		if (a->vlan == set[i].vlan && !memcmp(&a->addr, &set[i].addr, sizeof(a->addr)))
			return &set[i];
	}
	return NULL;
}

/* addr_mutex held. */
static void sgh_found_add(struct sgh_dev *dev, struct sgh_found *found,
			  const struct sgh_net_addr *a)
{
	if (sgh_addr_find(a, found->known, found->num_known))
		return;
	if (sgh_addr_find(a, dev->addrs, SG_PORT_ADDR_MAX))
		found->known[found->num_known++] = *a;
	else if (found->num_fresh < SG_PORT_ADDR_MAX)
		found->fresh[found->num_fresh++] = *a;
	else
		found->left_out++;
}

/* The gateway of the default route over this interface.  Under RCU, like all of the collection. */
static void sgh_gateway(struct net_device *netdev, u8 *gateway)
{
	struct flowi4 fl4 = { .flowi4_oif = netdev->ifindex };
	struct fib_result res;
	struct fib_nh_common *nhc;

	if (fib_lookup(dev_net(netdev), &fl4, &res, 0) || res.type != RTN_UNICAST)
		return;
	nhc = res.nhc;
	if (nhc && nhc->nhc_dev == netdev && nhc->nhc_gw_family == AF_INET)
		memcpy(gateway, &nhc->nhc_gw.ipv4, 4);
}

static void sgh_collect_ipv4(struct sgh_dev *dev, struct net_device *netdev, u16 vlan,
			     struct sgh_found *found)
{
	struct sgh_net_addr a = { .ifindex = netdev->ifindex, .vlan = vlan };
	const struct in_ifaddr *ifa;
	struct in_device *in_dev;

	in_dev = __in_dev_get_rcu(netdev);
	if (!in_dev)
		return;
	a.addr.family = 4;
	sgh_gateway(netdev, a.gateway);
	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		memcpy(a.addr.ip, &ifa->ifa_local, 4);
		a.prefix_len = ifa->ifa_prefixlen;
		sgh_found_add(dev, found, &a);
	}
}

#if IS_ENABLED(CONFIG_IPV6)
static void sgh_gateway6(struct net_device *netdev, u8 *gateway)
{
	struct flowi6 fl6 = { .flowi6_oif = netdev->ifindex };
	struct dst_entry *dst;
	struct rt6_info *rt;

	dst = ip6_route_lookup(dev_net(netdev), &fl6, NULL, RT6_LOOKUP_F_IFACE);
	rt = (struct rt6_info *)dst;
	if (!dst->error && dst->dev == netdev && rt->rt6i_flags & RTF_GATEWAY)
		memcpy(gateway, &rt->rt6i_gateway, 16);
	dst_release(dst);
}

static void sgh_collect_ipv6(struct sgh_dev *dev, struct net_device *netdev, u16 vlan,
			     struct sgh_found *found)
{
	struct sgh_net_addr a = { .ifindex = netdev->ifindex, .vlan = vlan };
	struct inet6_ifaddr *ifa;
	struct inet6_dev *in6_dev;
	u8 gateway[16] = {};

	in6_dev = __in6_dev_get(netdev);
	if (!in6_dev)
		return;
	sgh_gateway6(netdev, gateway);
	read_lock_bh(&in6_dev->lock);
	list_for_each_entry(ifa, &in6_dev->addr_list, if_list) {
		/* Not usable before duplicate address detection has finished. */
		if (ifa->flags & IFA_F_TENTATIVE)
			continue;
		memset(&a.addr, 0, sizeof(a.addr));
		memset(a.gateway, 0, sizeof(a.gateway));
		a.addr.family = 6;
		memcpy(a.addr.ip, &ifa->addr, 16);
		a.prefix_len = ifa->prefix_len;
		if (ipv6_addr_type(&ifa->addr) & IPV6_ADDR_LINKLOCAL)
			a.addr.vlan = cpu_to_le16(vlan);
		else
			memcpy(a.gateway, gateway, sizeof(gateway));
		sgh_found_add(dev, found, &a);
	}
	read_unlock_bh(&in6_dev->lock);
}
#else
static void sgh_collect_ipv6(struct sgh_dev *dev, struct net_device *netdev, u16 vlan,
			     struct sgh_found *found)
{
}
#endif

static void sgh_collect_netdev(struct sgh_dev *dev, struct net_device *netdev, u16 vlan,
			       struct sgh_found *found)
{
	sgh_collect_ipv4(dev, netdev, vlan, found);
	if (dev->caps.features & SG_FEATURE_IPV6)
		sgh_collect_ipv6(dev, netdev, vlan, found);
}

/*
 * The VLAN of a device directly on top of the port's interface; 0: it is not such a device.  A
 * device with another MAC address or tag protocol cannot be reached through the adapter.
 */
static u16 sgh_vlan_of(const struct net_device *netdev, struct net_device *upper)
{
	if (!is_vlan_dev(upper) || dev_get_iflink(upper) != netdev->ifindex ||
	    vlan_dev_vlan_proto(upper) != htons(ETH_P_8021Q) ||
	    !ether_addr_equal(upper->dev_addr, netdev->dev_addr))
		return 0;
	return vlan_dev_vlan_id(upper);
}

/*
 * addr_mutex held.  IPv4 addresses stay on an interface that its administrator set down, but its
 * connections end, like those of its sockets; so the adapter must not have these addresses.
 */
static void sgh_collect(struct sgh_dev *dev, struct sgh_found *found)
{
	struct net_device *upper;
	u16 vlan;

	if (!netif_running(dev->netdev))
		return;
	rcu_read_lock();
	sgh_collect_netdev(dev, dev->netdev, 0, found);
	if (dev->caps.features & SG_FEATURE_VLAN) {
		for_each_netdev_rcu(&init_net, upper) {
			vlan = sgh_vlan_of(dev->netdev, upper);
			if (vlan && netif_running(upper))
				sgh_collect_netdev(dev, upper, vlan, found);
		}
	}
	rcu_read_unlock();
}

/* The VLAN for the interface index of a link-local address. */
u16 sgh_net_vlan(struct sgh_dev *dev, u32 ifindex)
{
	struct net_device *netdev;
	u16 vlan = 0;

	mutex_lock(&dev->addr_mutex);
	rcu_read_lock();
	netdev = dev_get_by_index_rcu(&init_net, ifindex);
	if (netdev && dev->netdev)
		vlan = sgh_vlan_of(dev->netdev, netdev);
	rcu_read_unlock();
	mutex_unlock(&dev->addr_mutex);
	return vlan;
}

/* The reverse; 0: there is none. */
u32 sgh_net_ifindex(struct sgh_dev *dev, u16 vlan)
{
	struct net_device *netdev;
	u32 ifindex = 0;

	mutex_lock(&dev->addr_mutex);
	rcu_read_lock();
	if (dev->netdev && !vlan)
		ifindex = dev->netdev->ifindex;
	if (dev->netdev && vlan) {
		for_each_netdev_rcu(&init_net, netdev) {
			if (sgh_vlan_of(dev->netdev, netdev) == vlan)
				ifindex = netdev->ifindex;
		}
	}
	rcu_read_unlock();
	mutex_unlock(&dev->addr_mutex);
	return ifindex;
}

/* False: there is no room. */
static bool sgh_add_addr(struct sgh_dev *dev, const struct sgh_net_addr *a)
{
	static const struct sgh_net_addr none;
	struct sgh_net_addr *slot = sgh_addr_find(a, dev->addrs, SG_PORT_ADDR_MAX);
	bool known = slot;
	int ret;

	/* Adding an existing address changes its prefix and gateway. */
	if (slot && !memcmp(slot, a, sizeof(*a)))
		return true;
	if (!slot)
		slot = sgh_addr_find(&none, dev->addrs, SG_PORT_ADDR_MAX);
	if (!slot)
		return false;
	ret = sgh_set_addr(dev, a, SG_ADDR_ADD);
	if (ret) {
		/* It is tried again at the next change, without memory soon. */
		dev_warn_ratelimited(&dev->pdev->dev, "address of family %u refused: %d\n",
				     a->addr.family, ret);
		if (ret == -ENOMEM)
			sgh_net_retry(dev);
		return true;
	}
	*slot = *a;
	/* A GID contains the address only. */
	if (!known)
		WRITE_ONCE(dev->addrs_changed, true);
	return true;
}

/* Warns once each time that there are too many addresses. */
static void sgh_warn_left_out(struct sgh_dev *dev, u32 left_out)
{
	if (left_out && !dev->addrs_left_out)
		dev_warn(&dev->pdev->dev,
			 "the adapter takes %u addresses: %u of %s and its VLANs cannot be used\n",
			 SG_PORT_ADDR_MAX, left_out, netdev_name(dev->netdev));
	dev->addrs_left_out = left_out;
}

/* addr_mutex held. */
static void sgh_apply_addrs(struct sgh_dev *dev, struct sgh_found *want)
{
	u32 left_out = want->left_out;
	u32 i;

	for (i = 0; i < SG_PORT_ADDR_MAX; i++) {
		struct sgh_net_addr *a = &dev->addrs[i];

		if (!a->addr.family || sgh_addr_find(a, want->known, want->num_known))
			continue;
		if (sgh_set_addr(dev, a, SG_ADDR_DEL) == -ENOMEM) {
			sgh_net_retry(dev);
			continue;
		}
		memset(a, 0, sizeof(*a));
		WRITE_ONCE(dev->addrs_changed, true);
	}
	for (i = 0; i < want->num_known; i++)
		sgh_add_addr(dev, &want->known[i]);
	for (i = 0; i < want->num_fresh; i++) {
		if (!sgh_add_addr(dev, &want->fresh[i]))
			left_out++;
	}
	sgh_warn_left_out(dev, left_out);
}

/*
 * The port's addresses as the adapter knows them, for callers that visit each slot below
 * SG_PORT_ADDR_MAX.  An address keeps its slot while it exists, and sgh_ib_gid_event() follows
 * every change.  -ENOENT: the slot is empty.  Process context.
 */
int sgh_net_addr(struct sgh_dev *dev, u32 slot, struct sgh_net_addr *addr)
{
	mutex_lock(&dev->addr_mutex);
	*addr = dev->addrs[slot];
	mutex_unlock(&dev->addr_mutex);
	return addr->addr.family ? 0 : -ENOENT;
}

static void sgh_apply_mtu(struct sgh_dev *dev, u32 mtu)
{
	struct sg_cmd_set_port cmd = {};
	int ret;

	mtu = clamp(mtu, SGH_MTU_MIN, dev->link_mtu);
	if (mtu == dev->mtu)
		return;
	cmd.mtu = cpu_to_le32(mtu);
	ret = sgh_admin(dev, SG_ADMIN_SET_PORT, &cmd, sizeof(cmd), NULL);
	if (ret)
		dev_warn_ratelimited(&dev->pdev->dev, "MTU %u refused: %d\n", mtu, ret);
	else
		WRITE_ONCE(dev->mtu, mtu);
	if (ret == -ENOMEM)
		sgh_net_retry(dev);
}

/* Process context.  The adapter knows the interface's addresses and MTU after this. */
void sgh_net_sync(struct sgh_dev *dev)
{
	struct sgh_found *found;

	mutex_lock(&dev->addr_mutex);
	if (!dev->netdev || sgh_dead(dev))
		goto out;
	found = kzalloc(sizeof(*found), GFP_KERNEL);
	if (!found) {
		sgh_net_retry(dev);
		goto out;
	}
	sgh_collect(dev, found);
	sgh_apply_mtu(dev, READ_ONCE(dev->netdev->mtu));
	sgh_apply_addrs(dev, found);
	kfree(found);
	if (READ_ONCE(dev->addrs_changed))
		sgh_net_kick(dev);
out:
	mutex_unlock(&dev->addr_mutex);
}

static void sgh_forget_addrs(struct sgh_dev *dev)
{
	struct sgh_net_addr none = {};

	mutex_lock(&dev->addr_mutex);
	sgh_set_addr(dev, &none, SG_ADDR_CLEAR);
	memset(dev->addrs, 0, sizeof(dev->addrs));
	mutex_unlock(&dev->addr_mutex);
}

static void sgh_set_netdev(struct sgh_dev *dev, struct net_device *netdev)
{
	mutex_lock(&dev->addr_mutex);
	dev->netdev = netdev;
	mutex_unlock(&dev->addr_mutex);
}

static void sgh_unbind(struct sgh_dev *dev)
{
	struct net_device *netdev = dev->netdev;

	if (!netdev)
		return;
	sgh_ib_unregister(dev);
	sgh_forget_addrs(dev);
	sgh_set_netdev(dev, NULL);
	dev->port_active = false;
	dev->netdev_master = NULL;
	netdev_put(netdev, &dev->netdev_tracker);
}

static bool sgh_port_up(struct sgh_dev *dev)
{
	return !sgh_dead(dev) && netif_running(dev->netdev) && netif_carrier_ok(dev->netdev) &&
	       sgh_read(dev, SG_REG_STATUS) & SG_STATUS_LINK_UP;
}

/* With a master, the addresses belong to the master, which the adapter does not examine. */
static void sgh_note_master(struct sgh_dev *dev)
{
	struct net_device *master;

	rcu_read_lock();
	master = netdev_master_upper_dev_get_rcu(dev->netdev);
	if (master != dev->netdev_master && master)
		dev_warn(&dev->pdev->dev, "%s belongs to %s, whose addresses RDMA does not use\n",
			 netdev_name(dev->netdev), netdev_name(master));
	dev->netdev_master = master;
	rcu_read_unlock();
}

static void sgh_bind(struct sgh_dev *dev)
{
	struct net_device *netdev;
	int ret;

	if (sgh_dead(dev))
		return;
	netdev = sgh_netdev_find(dev);
	if (!netdev)
		return;
	sgh_set_netdev(dev, netdev);
	sgh_net_sync(dev);
	/*
	 * Registration reads the table as it is now.  A redundant event would make ib_core
	 * remove every entry for a moment, just when consumers connect.
	 */
	WRITE_ONCE(dev->addrs_changed, false);
	WRITE_ONCE(dev->port_active, sgh_port_up(dev));
	ret = sgh_ib_register(dev);
	if (!ret) {
		sgh_note_master(dev);
		return;
	}
	sgh_unbind(dev);
	if (ret == -ENOMEM)
		sgh_net_retry(dev);
}

static void sgh_net_work(struct work_struct *work)
{
	struct sgh_dev *dev = container_of(to_delayed_work(work), struct sgh_dev, net_work);
	struct net_device *netdev = dev->netdev;
	bool up;

	if (READ_ONCE(dev->net_stopping))
		return;
	if (netdev && (!sgh_netdev_is_registered(netdev) || !net_eq(dev_net(netdev), &init_net)))
		sgh_unbind(dev);
	if (!dev->netdev) {
		sgh_bind(dev);
		return;
	}
	sgh_net_sync(dev);
	sgh_note_master(dev);
	if (xchg(&dev->addrs_changed, false))
		sgh_ib_gid_event(dev);
	up = sgh_port_up(dev);
	if (up != dev->port_active) {
		WRITE_ONCE(dev->port_active, up);
		sgh_ib_port_event(dev);
	}
	if (sgh_dead(dev) && !dev->fatal_told) {
		dev->fatal_told = true;
		sgh_ib_fatal_event(dev);
	}
}

static int sgh_netdev_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	struct sgh_dev *dev = container_of(nb, struct sgh_dev, netdev_nb);

	switch (event) {
	case NETDEV_REGISTER:
	case NETDEV_UNREGISTER:
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
	case NETDEV_CHANGEMTU:
	case NETDEV_CHANGEADDR:
	case NETDEV_CHANGEUPPER:
		sgh_net_kick(dev);
		break;
	}
	return NOTIFY_DONE;
}

static int sgh_inetaddr_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	sgh_net_kick(container_of(nb, struct sgh_dev, inetaddr_nb));
	return NOTIFY_DONE;
}

static int sgh_inet6addr_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	sgh_net_kick(container_of(nb, struct sgh_dev, inet6addr_nb));
	return NOTIFY_DONE;
}

/* Routes change without addresses: the gateway may be a different one. */
static int sgh_fib_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	sgh_net_kick(container_of(nb, struct sgh_dev, fib_nb));
	return NOTIFY_DONE;
}

/* -EBUSY: routes changed all the time while the list was made. */
static int sgh_register_fib(struct sgh_dev *dev)
{
	int ret, tries = 0;

	while ((ret = register_fib_notifier(&init_net, &dev->fib_nb, NULL, NULL)) == -EBUSY &&
	       ++tries < SGH_FIB_TRIES)
		msleep(SGH_FIB_PAUSE);
	return ret;
}

int sgh_net_init(struct sgh_dev *dev)
{
	int ret;

	INIT_DELAYED_WORK(&dev->net_work, sgh_net_work);
	WRITE_ONCE(dev->net_stopping, false);
	dev->inetaddr_nb.notifier_call = sgh_inetaddr_event;
	ret = register_inetaddr_notifier(&dev->inetaddr_nb);
	if (ret)
		goto err_stop;
	dev->inet6addr_nb.notifier_call = sgh_inet6addr_event;
	ret = register_inet6addr_notifier(&dev->inet6addr_nb);
	if (ret)
		goto err_inetaddr;
	dev->fib_nb.notifier_call = sgh_fib_event;
	ret = sgh_register_fib(dev);
	if (ret)
		goto err_inet6addr;
	/* The notifier reports every existing interface, so the work needs no other start. */
	dev->netdev_nb.notifier_call = sgh_netdev_event;
	ret = register_netdevice_notifier(&dev->netdev_nb);
	if (ret)
		goto err_fib;
	return 0;

err_fib:
	unregister_fib_notifier(&init_net, &dev->fib_nb);
err_inet6addr:
	unregister_inet6addr_notifier(&dev->inet6addr_nb);
err_inetaddr:
	unregister_inetaddr_notifier(&dev->inetaddr_nb);
err_stop:
	sgh_net_stop(dev);
	cancel_delayed_work_sync(&dev->net_work);
	return ret;
}

void sgh_net_fini(struct sgh_dev *dev)
{
	/* The notifier also reports the end of every interface: the work must not act on that. */
	sgh_net_stop(dev);
	unregister_netdevice_notifier(&dev->netdev_nb);
	unregister_fib_notifier(&init_net, &dev->fib_nb);
	unregister_inet6addr_notifier(&dev->inet6addr_nb);
	unregister_inetaddr_notifier(&dev->inetaddr_nb);
	cancel_delayed_work_sync(&dev->net_work);
	sgh_unbind(dev);
}
