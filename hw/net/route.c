/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The neighbour that gets a packet.
 *
 * An address knows its prefix and a gateway, which is less than a guest's routing table.  So the
 * user looks there and names the next hop of a connection.  Until then, a connection that came from
 * beyond the link answers through the neighbour that its segments come from: that neighbour knows
 * the peer, and it may be the only one that does.  If another neighbour begins to send the segments
 * (a router has taken over), the answers go there.
 */
#include <string.h>

#include "net_priv.h"
#include "base/bytes.h"

enum { IPV6_HEAD = 40 };

bool route_is_set(const uint8_t next_hop[16])
{
    static const uint8_t none[16];

    return memcmp(next_hop, none, sizeof(none)) != 0;
}

void route_set(struct flow *f, enum flow_way way, const uint8_t *to)
{
    f->port->routed += (way != WAY_ADDRESS) - (f->way != WAY_ADDRESS);
    f->way = way;
    if (way == WAY_NEXT_HOP) {
        memset(f->next_hop, 0, sizeof(f->next_hop));
        memcpy(f->next_hop, to, f->key.family == 4 ? 4 : 16);
    } else if (way == WAY_BACK) {
        memcpy(f->mac, to, sizeof(f->mac));
    }
}

/*
 * A neighbour that the address would choose as well is not recorded: then the connection
 * follows a change of the gateway, and packets need not be examined.
 */
void route_name(struct flow *f, const uint8_t next_hop[16])
{
    size_t n = f->key.family == 4 ? 4 : 16;
    bool on_link = address_on_link(f->addr, f->key.remote_ip);
    const uint8_t *usual = on_link ? f->key.remote_ip : f->addr->gateway;

    if (!route_is_set(next_hop) || memcmp(next_hop, usual, n) == 0) {
        route_set(f, WAY_ADDRESS, NULL);
    } else {
        route_set(f, WAY_NEXT_HOP, next_hop);
    }
}

/* The MAC address of the sender of the segment being processed, or NULL if none can be answered. */
static const uint8_t *sender(void)
{
    return sg_stack.sender && !(sg_stack.sender[0] & 1) ? sg_stack.sender : NULL;
}

void route_back(struct flow *f)
{
    if (sender() && !address_on_link(f->addr, f->key.remote_ip)) {
        route_set(f, WAY_BACK, sender());
    }
}

/*
 * Called before TCP has checked the segment: an attacker that can forge one from another MAC
 * address is on the link, and could as well forge ARP replies.
 */
void route_learn(struct flow *f)
{
    if (f->way == WAY_BACK && sender()) {
        route_set(f, WAY_BACK, sender());
    }
}

/* The connection of this segment.  lwIP's packets have no IP options or extension headers. */
static struct flow *flow_of_packet(struct address *addr, const struct pbuf *p)
{
    struct flow_key key = { .family = addr->ip.family, .vlan = addr->ip.vlan };
    const uint8_t *ip = p->payload, *tcp;

    if (!addr->port->routed) {
        return NULL;
    }
    if (key.family == 4) {
        if (p->len < IP_HLEN + 4 || ip[9] != IP_PROTO_TCP) {
            return NULL;
        }
        memcpy(key.local_ip, ip + 12, 4);
        memcpy(key.remote_ip, ip + 16, 4);
        tcp = ip + IP_HLEN;
    } else {
        if (p->len < IPV6_HEAD + 4 || ip[6] != IP_PROTO_TCP) {
            return NULL;
        }
        memcpy(key.local_ip, ip + 8, 16);
        memcpy(key.remote_ip, ip + 24, 16);
        tcp = ip + IPV6_HEAD;
    }
    key.local_port = sg_get_be16(tcp);
    key.remote_port = sg_get_be16(tcp + 2);
    return flow_find(&addr->port->flows, &key);
}

static err_t send_back(struct address *addr, struct pbuf *p, const struct flow *f, u16_t type)
{
    struct eth_addr from, to;

    memcpy(&from, addr->netif.hwaddr, sizeof(from));
    memcpy(&to, f->mac, sizeof(to));
    return ethernet_output(&addr->netif, p, &from, &to, type);
}

err_t route_output(struct address *addr, struct pbuf *p, const ip4_addr_t *to)
{
    const struct flow *f = flow_of_packet(addr, p);
    ip4_addr_t hop;

    if (!f || f->way == WAY_ADDRESS) {
        return etharp_output(&addr->netif, p, to);
    }
    if (f->way == WAY_BACK) {
        return send_back(addr, p, f, ETHTYPE_IP);
    }
    hop = stack_ip4(f->next_hop);
    if (address_on_link(addr, f->next_hop)) {
        return etharp_output(&addr->netif, p, &hop);
    }
    /* A router outside the prefix; etharp_output() would send to the gateway instead. */
    return etharp_query(&addr->netif, &hop, p);
}

err_t route_output6(struct address *addr, struct pbuf *p, const uint8_t to[16])
{
    const struct flow *f = flow_of_packet(addr, p);

    if (f && f->way == WAY_BACK) {
        return send_back(addr, p, f, ETHTYPE_IPV6);
    }
    if (f && f->way == WAY_NEXT_HOP) {
        return neigh6_output(addr, p, f->next_hop);
    }
    if (address_on_link(addr, to)) {
        return neigh6_output(addr, p, to);
    }
    return route_is_set(addr->gateway) ? neigh6_output(addr, p, addr->gateway) : ERR_RTE;
}
