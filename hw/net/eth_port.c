/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A port: its life cycle and its output path.
 *
 * lwIP passes finished frames to link_output(), which sends them unchanged: pbuf chain to iovec,
 * with an 802.1Q tag if the source address is on a VLAN.  Some frames stay inside: ARP replies and
 * announcements, because the stack behind the NIC has the same addresses and answers itself; and
 * frames to our own MAC address (a stream between two endpoints of this port), which are queued and
 * received in the next 'run'.  Frames that arrive while lwIP is at work are queued too, because
 * lwIP cannot be entered twice.
 */
#include <string.h>

#include "net_priv.h"
#include "base/bytes.h"
#include "lwip/prot/ip4.h"

enum {
    DEFERRED_OCTETS_MAX = 8 * 1024 * 1024,
    FRAME_PIECES_MAX = 16,
    ARP_OPCODE_AT = SIZEOF_ETH_HDR + 6,
    ARP_SENDER_IP_AT = SIZEOF_ETH_HDR + 14,
    ARP_TARGET_IP_AT = SIZEOF_ETH_HDR + 24,
    ARP_FRAME_LEN = SIZEOF_ETH_HDR + 28,
};

struct sg_port *port_of_net(struct sg_stream_net *net)
{
    return link_entry(net, struct sg_port, net);
}

struct sg_stream_net *sg_port_stream_net(struct sg_port *port)
{
    return &port->net;
}

void port_kick(struct sg_port *port)
{
    port->ops->kick(port->opaque);
}

/* Drops the frame when too many are queued already. */
void port_defer_frame(struct sg_port *port, const struct iovec *iov, unsigned n)
{
    struct deferred_frame *k;
    size_t len = 0, at = 0;
    unsigned i;

    for (i = 0; i < n; i++) {
        len += iov[i].iov_len;
    }
    if (port->deferred_octets + len > DEFERRED_OCTETS_MAX) {
        port->count.dropped++;
        return;
    }
    k = g_try_malloc(sizeof(*k) + len);
    if (!k) {
        port->count.dropped++;
        return;
    }
    for (i = 0; i < n; i++) {
        memcpy(k->data + at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    k->len = len;
    k->next = NULL;
    *port->deferred_tail = k;
    port->deferred_tail = &k->next;
    port->deferred_octets += len;
    port_kick(port);
}

/* The caller frees it. */
struct deferred_frame *port_next_deferred(struct sg_port *port)
{
    struct deferred_frame *k = port->deferred_head;

    if (k) {
        port->deferred_head = k->next;
        port->deferred_octets -= k->len;
        if (!k->next) {
            port->deferred_tail = &port->deferred_head;
        }
    }
    return k;
}

static bool is_reply_or_announcement(const struct pbuf *p)
{
    const uint8_t *frame = p->payload;

    if (p->len < ARP_FRAME_LEN || sg_get_be16(frame + 12) != ETHTYPE_ARP) {
        return false;
    }
    return sg_get_be16(frame + ARP_OPCODE_AT) == ARP_REPLY ||
           memcmp(frame + ARP_SENDER_IP_AT, frame + ARP_TARGET_IP_AT, 4) == 0;
}

/* The first element holds the whole Ethernet header. */
void port_send(struct address *addr, const struct iovec *iov, unsigned n)
{
    struct sg_port *port = addr->port;
    struct iovec tagged[FRAME_PIECES_MAX + 1];
    uint8_t head[SIZEOF_ETH_HDR + SIZEOF_VLAN_HDR];

    if (addr->ip.vlan) {
        memcpy(head, iov[0].iov_base, SIZEOF_ETH_HDR - 2);
        sg_put_be16(head + 12, ETHTYPE_VLAN);
        sg_put_be16(head + 14, addr->ip.vlan);
        memcpy(head + 16, (uint8_t *)iov[0].iov_base + 12, 2);
        memcpy(tagged, iov, n * sizeof(*iov));
        memmove(tagged + 1, tagged, n * sizeof(*iov));
        tagged[0] = (struct iovec){ head, sizeof(head) };
        tagged[1].iov_base = (uint8_t *)tagged[1].iov_base + SIZEOF_ETH_HDR;
        tagged[1].iov_len -= SIZEOF_ETH_HDR;
        iov = tagged;
        n++;
    }
    if (memcmp(iov[0].iov_base, port->mac, 6) == 0) {
        port_defer_frame(port, iov, n);
    } else {
        port->count.frames_out++;
        sg_stack.sending++;
        port->ops->send_frame(port->opaque, iov, n);
        sg_stack.sending--;
    }
}

static err_t link_output(struct netif *netif, struct pbuf *p)
{
    struct iovec iov[FRAME_PIECES_MAX];
    struct pbuf *q, *flat = NULL;
    unsigned n = 0;

    if (is_reply_or_announcement(p)) {
        return ERR_OK;
    }
    if (pbuf_clen(p) > FRAME_PIECES_MAX) {
        p = flat = pbuf_clone(PBUF_RAW, PBUF_RAM, p);
        if (!flat) {
            return ERR_MEM;
        }
    }
    for (q = p; q; q = q->next) {
        if (q->len) {
            iov[n++] = (struct iovec){ .iov_base = q->payload, .iov_len = q->len };
        }
    }
    port_send(netif->state, iov, n);
    if (flat) {
        pbuf_free(flat);
    }
    return ERR_OK;
}

/* RFC 1191, section 3: routers must not fragment our packets.  Checksum update by RFC 1624. */
static void set_df(uint8_t *ip)
{
    uint32_t sum = (uint16_t)~sg_get_be16(ip + 10) + (uint32_t)IP_DF;

    sg_put_be16(ip + 6, sg_get_be16(ip + 6) | IP_DF);
    sg_put_be16(ip + 10, (uint16_t)~((sum & 0xffff) + (sum >> 16)));
}

static err_t output(struct netif *netif, struct pbuf *p, const ip4_addr_t *to)
{
    struct address *addr = netif->state, *own;
    const struct eth_addr *mac = (const struct eth_addr *)netif->hwaddr;
    struct sg_endpoint ep = { .family = 4 };

    set_df(p->payload);
    memcpy(ep.ip, &to->addr, 4);
    own = address_named(addr->port, &ep);
    if (own) { /* through the link on which the receiver expects it */
        return ethernet_output(&own->netif, p, mac, mac, ETHTYPE_IP);
    }
    return route_output(addr, p, to);
}

static err_t output6(struct netif *netif, struct pbuf *p, const ip6_addr_t *to)
{
    struct address *addr = netif->state, *own;
    const struct eth_addr *mac = (const struct eth_addr *)netif->hwaddr;
    struct sg_endpoint ep = { .family = 6, .vlan = addr->ip.vlan };

    memcpy(ep.ip, to->addr, 16);
    own = address_named(addr->port, &ep);
    if (own) {
        return ethernet_output(&own->netif, p, mac, mac, ETHTYPE_IPV6);
    }
    return route_output6(addr, p, ep.ip);
}

err_t port_netif_init(struct netif *netif)
{
    struct address *addr = netif->state;

    netif->name[0] = 's';
    netif->name[1] = 'g';
    netif->output = output;
    netif->output_ip6 = output6;
    netif->linkoutput = link_output;
    netif->mtu = (u16_t)addr->port->config.mtu;
    netif->hwaddr_len = 6;
    memcpy(netif->hwaddr, addr->port->mac, 6);
    netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET;
    return ERR_OK;
}

static void counters(struct sg_stream_net *net, struct sg_net_counters *out)
{
    const struct sg_port_counters *c = &port_of_net(net)->count;

    *out = (struct sg_net_counters){
        .tx_frames = c->frames_out,
        .rx_frames = c->frames_in,
        .tx_dropped_frames = c->uplink_dropped,
        .tcp_retransmits = c->retransmits,
        .tcp_dropped_syns = c->syns_dropped,
        .tcp_dropped_fragments = c->fragments,
        .path_mtu_reports = c->path_mtu_reports,
    };
}

static const struct sg_stream_net_ops net_ops = {
    .connect = stream_connect,
    .listen = listener_new,
    .unlisten = listener_free,
    .pause = listener_pause,
    .add_addr = address_add,
    .del_addr = address_del,
    .clear_addrs = address_clear,
    .end_some = flow_end_some,
    .set_mtu = address_set_mtu,
    .run = clock_run,
    .counters = counters,
};

static bool complete_config(struct sg_port_config *c)
{
    c->mtu = c->mtu ? c->mtu : 1500;
    c->max_connections = c->max_connections ? c->max_connections : 66560;
    c->send_buffer = c->send_buffer ? c->send_buffer : 1024 * 1024;
    c->window = c->window ? c->window : 1024 * 1024;
    c->connect_timeout_ms = c->connect_timeout_ms ? c->connect_timeout_ms : 10000;
    c->rto_min_ms = c->rto_min_ms ? c->rto_min_ms : 200;
    c->peer_timeout_ms = c->peer_timeout_ms ? c->peer_timeout_ms : 60000;
    if (c->peer_timeout_ms != SG_PORT_PEER_TIMEOUT_NONE &&
        (c->peer_timeout_ms < SG_PORT_PEER_TIMEOUT_MIN ||
         c->peer_timeout_ms > SG_PORT_PEER_TIMEOUT_MAX)) {
        return false;
    }
    return c->mtu >= SG_PORT_MTU_MIN && c->mtu <= SG_PORT_MTU_MAX &&
           c->send_buffer >= SG_PORT_SEND_BUFFER_MIN && c->send_buffer <= SG_PORT_SEND_BUFFER_MAX &&
           c->window >= SG_PORT_WINDOW_MIN && c->window <= SG_PORT_WINDOW_MAX &&
           (c->send_buffer & (c->send_buffer - 1)) == 0 && c->connect_timeout_ms <= 12000 &&
           c->rto_min_ms <= SG_PORT_RTO_MIN_MAX;
}

struct sg_port *sg_port_new(const struct sg_port_ops *ops, void *opaque, const uint8_t mac[6],
                            const struct sg_port_config *config)
{
    struct sg_port_config c = { 0 };
    struct sg_port *port;
    uint64_t seed = 0;

    if (config) {
        c = *config;
    }
    if (!complete_config(&c)) {
        return NULL;
    }
    stack_init(ops, opaque);
    port = g_new0(struct sg_port, 1);
    port->net.ops = &net_ops;
    port->ops = ops;
    port->opaque = opaque;
    port->config = c;
    memcpy(port->mac, mac, 6);
    ops->random(opaque, &seed, sizeof(seed));
    flow_table_init(&port->flows, seed);
    port->neigh = neigh6_new();
    pcb_list_init(port);
    sg_timerq_init(&port->timers);
    link_init(&port->streams);
    link_init(&port->connecting);
    link_init(&port->blocked);
    link_init(&port->work);
    link_init(&port->acks);
    port->deferred_tail = &port->deferred_head;
    port->deadline = SG_NEVER;
    port->next = sg_stack.ports;
    sg_stack.ports = port;
    return port;
}

void sg_port_reset(struct sg_port *port)
{
    struct deferred_frame *k;

    while (port->listeners) {
        listener_free(&port->net, &port->listeners->base);
    }
    while (!link_alone(&port->streams)) {
        struct stream *s = link_entry(port->streams.next, struct stream, all);

        stream_abort(&s->base);
    }
    flow_abort_all(port, NULL, SG_STREAM_RESET);
    address_clear(&port->net);
    while ((k = port_next_deferred(port)) != NULL) {
        g_free(k);
    }
    port->uplink_ready = false;
}

void sg_port_free(struct sg_port *port)
{
    struct sg_port **p;

    sg_port_reset(port);
    for (p = &sg_stack.ports; *p != port; p = &(*p)->next) {
        g_assert(*p);
    }
    *p = port->next;
    flow_table_free(&port->flows);
    neigh6_free(port);
    g_free(port);
}

void sg_port_count_dropped(struct sg_port *port)
{
    port->count.uplink_dropped++;
}

void sg_port_set_max_connections(struct sg_port *port, unsigned n)
{
    port->config.max_connections = n;
}

void sg_port_set_mac(struct sg_port *port, const uint8_t mac[6])
{
    unsigned i;

    memcpy(port->mac, mac, 6);
    for (i = 0; i < SG_PORT_ADDR_MAX; i++) {
        memcpy(port->addrs[i].netif.hwaddr, mac, 6);
    }
}

void sg_port_counters(const struct sg_port *port, struct sg_port_counters *out)
{
    *out = port->count;
    out->connections = port->flows.count;
}
