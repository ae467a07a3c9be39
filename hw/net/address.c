/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The addresses of a port.  Each is an lwIP interface with the port's MAC address, prefix, gateway
 * and MTU; connections are bound to it.
 */
#include <string.h>

#include "net_priv.h"

/* lwIP numbers interfaces with one octet, for the whole process. */
enum { INTERFACES_MAX = 250 };

static unsigned interfaces;

bool endpoint_is_any(const struct sg_endpoint *e)
{
    static const uint8_t zero[16];

    return memcmp(e->ip, zero, e->family == 4 ? 4 : 16) == 0;
}

struct address *address_find(struct sg_port *port, unsigned family, const uint8_t *ip)
{
    unsigned i;

    for (i = 0; i < SG_PORT_ADDR_MAX; i++) {
        struct address *a = &port->addrs[i];

        if (a->used && a->ip.family == family && memcmp(a->ip.ip, ip, family == 4 ? 4 : 16) == 0) {
            return a;
        }
    }
    return NULL;
}

struct address *address_towards(struct sg_port *port, const struct sg_endpoint *remote)
{
    ip4_addr_t to = stack_ip4(remote->ip);
    struct address *through_gateway = NULL;
    unsigned i;

    for (i = 0; i < SG_PORT_ADDR_MAX; i++) {
        struct address *a = &port->addrs[i];

        if (!a->used || a->ip.family != remote->family) {
            continue;
        }
        if (ip4_addr_net_eq(&to, netif_ip4_addr(&a->netif), netif_ip4_netmask(&a->netif))) {
            return a;
        }
        if (!through_gateway && !ip4_addr_isany(netif_ip4_gw(&a->netif))) {
            through_gateway = a;
        }
    }
    return through_gateway;
}

static bool is_unicast4(const uint8_t ip[16])
{
    return ip[0] != 0 && ip[0] != 127 && ip[0] < 224;
}

bool address_add(struct sg_stream_net *net, const struct sg_endpoint *addr, unsigned prefix_len,
                 const uint8_t gateway[16])
{
    struct sg_port *port = port_of_net(net);
    ip4_addr_t ip, mask, gw = {0};
    struct address *a = NULL;
    unsigned i;

    if (addr->family != 4 || prefix_len > 32 || !is_unicast4(addr->ip)) {
        return false;
    }
    a = address_find(port, addr->family, addr->ip);
    for (i = 0; !a && i < SG_PORT_ADDR_MAX; i++) {
        a = port->addrs[i].used ? NULL : &port->addrs[i];
    }
    if (!a) {
        return false;
    }
    ip = stack_ip4(addr->ip);
    mask.addr = lwip_htonl(prefix_len ? 0xffffffffu << (32 - prefix_len) : 0);
    if (gateway) {
        gw = stack_ip4(gateway);
    }
    if (a->used) { /* prefix or gateway has changed */
        netif_set_addr(&a->netif, &ip, &mask, &gw);
        return true;
    }
    a->port = port;
    a->ip = *addr;
    a->ip.port = 0;
    memset(&a->netif, 0, sizeof(a->netif));
    if (interfaces == INTERFACES_MAX ||
        !netif_add(&a->netif, &ip, &mask, &gw, a, port_netif_init, ethernet_input)) {
        return false;
    }
    interfaces++;
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
    ip_addr_set_zero(&a->netif.ip_addr);
    netif_remove(&a->netif);
    interfaces--;
    a->used = false;
}

bool address_del(struct sg_stream_net *net, const struct sg_endpoint *addr)
{
    struct sg_port *port = port_of_net(net);
    struct address *a = address_find(port, addr->family, addr->ip);

    if (!a) {
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
