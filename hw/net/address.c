/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The addresses of a port.  Each is an lwIP interface with the port's MAC address, prefix, gateway
 * and MTU, on the port's link or on a VLAN of it; connections are bound to it.
 *
 * A link-local address may exist once on each link, any other address once on the port, so that the
 * address determines the VLAN.
 */
#include <string.h>

#include "net_priv.h"

/* lwIP numbers interfaces with one octet, for the whole process. */
enum { INTERFACES_MAX = 250, VLAN_MAX = 4094 };

static unsigned interfaces;

bool endpoint_is_any(const struct sg_endpoint *e)
{
    static const uint8_t zero[16];

    return memcmp(e->ip, zero, e->family == 4 ? 4 : 16) == 0;
}

bool endpoint_is_link_local(const struct sg_endpoint *e)
{
    return e->family == 6 && e->ip[0] == 0xfe && (e->ip[1] & 0xc0) == 0x80;
}

bool endpoint_is_unicast(const struct sg_endpoint *e)
{
    static const uint8_t loopback[16] = { [15] = 1 };
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

    if (e->family == 4) {
        return e->ip[0] != 0 && e->ip[0] != 127 && e->ip[0] < 224;
    }
    return e->family == 6 && e->ip[0] != 0xff && !endpoint_is_any(e) &&
           memcmp(e->ip, loopback, 16) != 0 && memcmp(e->ip, mapped, 12) != 0;
}

struct address *address_find(struct sg_port *port, unsigned family, const uint8_t *ip,
                             uint16_t vlan)
{
    unsigned i;

    for (i = 0; i < SG_PORT_ADDR_MAX; i++) {
        struct address *a = &port->addrs[i];

        if (a->used && a->ip.family == family && a->ip.vlan == vlan &&
            memcmp(a->ip.ip, ip, family == 4 ? 4 : 16) == 0) {
            return a;
        }
    }
    return NULL;
}

struct address *address_named(struct sg_port *port, const struct sg_endpoint *e)
{
    unsigned i;

    if (endpoint_is_link_local(e)) {
        return address_find(port, e->family, e->ip, e->vlan);
    }
    for (i = 0; i < SG_PORT_ADDR_MAX; i++) {
        struct address *a = &port->addrs[i];

        if (a->used && a->ip.family == e->family &&
            memcmp(a->ip.ip, e->ip, e->family == 4 ? 4 : 16) == 0) {
            return a;
        }
    }
    return NULL;
}

bool address_on_link(const struct address *a, const uint8_t *ip)
{
    unsigned octets = a->prefix_len / 8, bits = a->prefix_len % 8;
    struct sg_endpoint e = { .family = a->ip.family };

    memcpy(e.ip, ip, e.family == 4 ? 4 : 16);
    if (endpoint_is_link_local(&e)) {
        return true;
    }
    return memcmp(ip, a->ip.ip, octets) == 0 &&
           (bits == 0 || ((ip[octets] ^ a->ip.ip[octets]) >> (8 - bits)) == 0);
}

static bool has_gateway(const struct address *a)
{
    static const uint8_t none[16];

    return memcmp(a->gateway, none, sizeof(none)) != 0;
}

struct address *address_towards(struct sg_port *port, const struct sg_endpoint *remote)
{
    bool link_local = endpoint_is_link_local(remote);
    struct address *through_gateway = NULL;
    unsigned i;

    for (i = 0; i < SG_PORT_ADDR_MAX; i++) {
        struct address *a = &port->addrs[i];

        if (!a->used || a->ip.family != remote->family ||
            endpoint_is_link_local(&a->ip) != link_local ||
            (link_local && a->ip.vlan != remote->vlan)) {
            continue;
        }
        if (address_on_link(a, remote->ip)) {
            return a;
        }
        if (!through_gateway && has_gateway(a)) {
            through_gateway = a;
        }
    }
    return through_gateway;
}

/* lwIP routes IPv4 itself; for IPv6 eth_port.c does it. */
static void set_routes(struct address *a, unsigned prefix_len, const uint8_t gateway[16])
{
    a->prefix_len = prefix_len;
    memset(a->gateway, 0, sizeof(a->gateway));
    if (gateway) {
        memcpy(a->gateway, gateway, a->ip.family == 4 ? 4 : 16);
    }
    if (a->ip.family == 4) {
        ip4_addr_t ip = stack_ip4(a->ip.ip), gw = stack_ip4(a->gateway);
        ip4_addr_t mask = { lwip_htonl(prefix_len ? 0xffffffffu << (32 - prefix_len) : 0) };

        netif_set_addr(&a->netif, &ip, &mask, &gw);
    }
}

static bool open_interface(struct address *a)
{
    memset(&a->netif, 0, sizeof(a->netif));
    if (interfaces == INTERFACES_MAX ||
        !netif_add(&a->netif, NULL, NULL, NULL, a, port_netif_init, ethernet_input)) {
        return false;
    }
    interfaces++;
    if (a->ip.family == 6) {
        stack_ip_set(&a->netif.ip6_addr[0], 6, a->ip.ip);
        netif_ip6_addr_set_state(&a->netif, 0, IP6_ADDR_PREFERRED);
    }
    return true;
}

bool address_add(struct sg_stream_net *net, const struct sg_endpoint *addr, unsigned prefix_len,
                 const uint8_t gateway[16])
{
    struct sg_port *port = port_of_net(net);
    struct address *a;
    unsigned i;

    if (prefix_len > (addr->family == 4 ? 32 : 128) || addr->vlan > VLAN_MAX ||
        !endpoint_is_unicast(addr)) {
        return false;
    }
    a = address_named(port, addr);
    if (a && a->ip.vlan != addr->vlan) {
        return false;
    }
    if (a) {
        set_routes(a, prefix_len, gateway);
        return true;
    }
    for (i = 0; !a && i < SG_PORT_ADDR_MAX; i++) {
        a = port->addrs[i].used ? NULL : &port->addrs[i];
    }
    if (!a) {
        return false;
    }
    a->port = port;
    memset(&a->ip, 0, sizeof(a->ip));
    a->ip.family = addr->family;
    a->ip.vlan = addr->vlan;
    memcpy(a->ip.ip, addr->ip, addr->family == 4 ? 4 : 16);
    if (!open_interface(a)) {
        return false;
    }
    set_routes(a, prefix_len, gateway);
    a->used = true;
    netif_set_link_up(&a->netif);
    netif_set_up(&a->netif);
    listener_refresh_all(port);
    return true;
}

static void remove_address(struct address *a)
{
    listener_forget_address(a->port, a);
    flow_abort_all(a->port, a, SG_STREAM_UNREACHABLE);
    /* Without this lwIP would end the connections of another port that has the same address. */
    ip_addr_set_zero_ip4(&a->netif.ip_addr);
    a->netif.ip6_addr_state[0] = IP6_ADDR_INVALID;
    neigh6_forget_address(a);
    netif_remove(&a->netif);
    interfaces--;
    a->used = false;
}

bool address_del(struct sg_stream_net *net, const struct sg_endpoint *addr)
{
    struct sg_port *port = port_of_net(net);
    struct address *a = address_named(port, addr);

    if (!a || a->ip.vlan != addr->vlan) {
        return false;
    }
    remove_address(a);
    listener_refresh_all(port);
    return true;
}

void address_clear(struct sg_stream_net *net)
{
    struct sg_port *port = port_of_net(net);
    unsigned i;

    for (i = 0; i < SG_PORT_ADDR_MAX; i++) {
        if (port->addrs[i].used) {
            remove_address(&port->addrs[i]);
        }
    }
}

void address_set_mtu(struct sg_stream_net *net, unsigned mtu)
{
    struct sg_port *port = port_of_net(net);
    unsigned i;

    port->config.mtu = CLAMP(mtu, SG_PORT_MTU_MIN, SG_PORT_MTU_MAX);
    for (i = 0; i < SG_PORT_ADDR_MAX; i++) {
        port->addrs[i].netif.mtu = (u16_t)port->config.mtu;
    }
}
