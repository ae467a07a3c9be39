/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The network interface that shares the port, and its addresses (netdev.c). */
#ifndef SGH_NET_H
#define SGH_NET_H

#include <linux/types.h>

#include <staghorn/admin.h>

struct sgh_dev;

/* An address of the port: the interface's, or that of a VLAN device on top of it. */
struct sgh_net_addr {
	struct sg_sockaddr addr; /* family 0: none; port 0 */
	u32 ifindex;
	u16 vlan; /* 0: not a VLAN's */
	u8 prefix_len;
	u8 gateway[16];
};

/* netdev.c */
int sgh_net_init(struct sgh_dev *dev);
void sgh_net_fini(struct sgh_dev *dev);
void sgh_net_sync(struct sgh_dev *dev);
void sgh_net_kick(struct sgh_dev *dev);
int sgh_net_addr(struct sgh_dev *dev, u32 slot, struct sgh_net_addr *addr);
u16 sgh_net_vlan(struct sgh_dev *dev, u32 ifindex);
u32 sgh_net_ifindex(struct sgh_dev *dev, u16 vlan);

#endif
