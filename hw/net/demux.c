/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames from the uplink go to the adapter, to the NIC, or to both.
 *
 * The adapter gets TCP segments to one of the port's addresses that belong to one of its
 * connections (including those in TIME-WAIT) or to a listener.  ARP and IPv6's neighbour messages
 * go to both: the adapter learns from them, the stack behind the NIC answers.  Messages of routers
 * about the path MTU go to both as well.  Everything else goes to the NIC: other protocols, and
 * segments to a port without a listener, which the stack there refuses.
 *
 * TCP needs no fragments (path_mtu.c).  A fragmented segment is dropped if its first fragment names
 * a connection or listener of ours: the stack behind the NIC would reassemble it, know no such
 * connection, and end it with a RST.  Without the first fragment the stack only waits for it
 * (RFC 791, section 3.2), and TCP sends the segment again.
 *
 * A tagged frame (802.1Q) is for the addresses on that VLAN.  An untagged frame, or one with a
 * priority tag only (identifier 0), is for addresses without VLAN.  A frame with two tags goes to
 * the NIC.
 *
 * Every length that lwIP relies on is checked here, before the frame is passed to lwIP, which sees
 * neither tags nor IPv6 extension headers (rx_ip.c).
 */
#include <string.h>

#include "net_priv.h"
#include "rx_ip.h"
#include "base/bytes.h"
#include "lwip/stats.h"

enum {
    FRAME_MAX = 65535,
    ARP_LEN = 28,
    FRAME_MIN = SIZEOF_ETH_HDR + ARP_LEN,
    VLAN_ID_BITS = 0xfff,
};

enum kind { KIND_NIC, KIND_ARP, KIND_UNREACHABLE, KIND_ICMP6, KIND_TCP };

/* A frame without its tag, if it has one. */
struct view {
    const uint8_t *frame;
    const uint8_t *packet; /* behind the Ethernet type */
    size_t len;            /* of packet plus padding */
    uint16_t type;
    uint16_t vlan;
    struct address *addr; /* KIND_TCP: the local address */
    struct sg_rx_tcp tcp;
    struct flow_key key;
};

static bool look(struct view *v, const uint8_t *frame, size_t len)
{
    size_t head = SIZEOF_ETH_HDR;

    if (len < FRAME_MIN || len > FRAME_MAX) {
        return false;
    }
    memset(v, 0, sizeof(*v));
    v->frame = frame;
    v->type = sg_get_be16(frame + 12);
    if (v->type == ETHTYPE_VLAN) {
        v->vlan = sg_get_be16(frame + 14) & VLAN_ID_BITS;
        v->type = sg_get_be16(frame + 16);
        head += SIZEOF_VLAN_HDR;
    }
    v->packet = frame + head;
    v->len = len - head;
    return true;
}

static bool is_tcp_of_ours(struct sg_port *port, struct view *v)
{
    const struct sg_rx_tcp *t = &v->tcp;

    if (!(v->type == ETHTYPE_IP ? sg_rx_ipv4(&v->tcp, v->packet, v->len)
                                : sg_rx_ipv6(&v->tcp, v->packet, v->len))) {
        return false;
    }
    v->addr = address_find(port, t->family, t->dst, v->vlan);
    if (!v->addr) {
        return false;
    }
    v->key.family = (uint16_t)t->family;
    v->key.vlan = v->vlan;
    memcpy(v->key.local_ip, t->dst, t->family == 4 ? 4 : 16);
    memcpy(v->key.remote_ip, t->src, t->family == 4 ? 4 : 16);
    v->key.remote_port = sg_get_be16(t->tcp);
    v->key.local_port = sg_get_be16(t->tcp + 2);
    return true;
}

static enum kind kind_of(struct sg_port *port, struct view *v, const uint8_t *frame, size_t len)
{
    bool to_us;

    if (!look(v, frame, len)) {
        return KIND_NIC;
    }
    to_us = memcmp(frame, port->mac, 6) == 0;
    switch (v->type) {
    case ETHTYPE_ARP:
        return v->len >= ARP_LEN ? KIND_ARP : KIND_NIC;
    case ETHTYPE_IPV6:
        if ((to_us || (frame[0] & 1)) && sg_rx_is_neighbour(v->packet, v->len)) {
            return KIND_ICMP6;
        }
        return to_us && is_tcp_of_ours(port, v) ? KIND_TCP : KIND_NIC;
    case ETHTYPE_IP:
        if (to_us && sg_rx_is_unreachable(v->packet, v->len)) {
            return KIND_UNREACHABLE;
        }
        return to_us && is_tcp_of_ours(port, v) ? KIND_TCP : KIND_NIC;
    default:
        return KIND_NIC;
    }
}

/*
 * RFC 9293, section 3.10.7.4: a new SYN beyond the old connection may reopen one in TIME-WAIT.
 * lwIP would acknowledge it and ignore the RST that follows.
 */
static bool reopens(const struct view *v, const struct flow *f)
{
    const uint8_t *tcp = v->tcp.tcp;

    return f->pcb->state == TIME_WAIT && (tcp[13] & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN &&
           TCP_SEQ_GT(sg_get_be32(tcp + 4), f->pcb->rcv_nxt) &&
           listener_find(f->port, f->addr, v->key.local_port);
}

/*
 * lwIP acknowledges a SYN that is not beyond the old connection.  A peer that is really new answers
 * with a reset, then with a SYN again.  The reset ends TIME-WAIT (RFC 9293, section 3.10.7.4) if
 * its number is the expected one (RFC 5961, section 3.2).  lwIP ignores it as possibly old (RFC
 * 1337), so after a thousand short connections the next one might wait for ever.
 */
static bool resets(const struct view *v, const struct flow *f)
{
    const uint8_t *tcp = v->tcp.tcp;

    return f->pcb->state == TIME_WAIT && (tcp[13] & (TCP_SYN | TCP_RST)) == TCP_RST &&
           sg_get_be32(tcp + 4) == f->pcb->rcv_nxt;
}

/* Shows a segment that lwIP has queued to its user. */
static bool take_early(const void *opaque)
{
    const struct view *v = opaque;
    struct flow *f = flow_find(&v->addr->port->flows, &v->key); /* lwIP may have freed it */

    return f && f->stream &&
           stream_take_early(f->stream, sg_get_be32(v->tcp.tcp + 4), v->tcp.tcp + v->tcp.tcp_head,
                             v->tcp.payload);
}

/* Passes Ethernet, IP and TCP headers to lwIP in one piece, without what lwIP does not know. */
static bool tcp_input_frame(const struct view *v)
{
    const struct sg_rx_tcp *t = &v->tcp;
    size_t ip = (size_t)(t->tcp - v->packet) - t->extensions;
    const struct rx_early early = { .take = take_early, .opaque = v };
    uint8_t head[SIZEOF_ETH_HDR + 60 + 60];

    memcpy(head, v->frame, 12);
    sg_put_be16(head + 12, v->type);
    memcpy(head + SIZEOF_ETH_HDR, v->packet, ip);
    memcpy(head + SIZEOF_ETH_HDR + ip, t->tcp, t->tcp_head);
    if (t->extensions) {
        sg_put_be16(head + SIZEOF_ETH_HDR + 4, (uint16_t)(t->tcp_head + t->payload));
        head[SIZEOF_ETH_HDR + 6] = IP_PROTO_TCP;
    }
    return rx_frame_input(v->addr, head, SIZEOF_ETH_HDR + ip + t->tcp_head, t->tcp + t->tcp_head,
                          t->payload, &early);
}

static unsigned tcp_frame(struct sg_port *port, const struct view *v, bool looped)
{
    struct flow *f = flow_find(&port->flows, &v->key);
    uint64_t errors = lwip_stats.tcp.chkerr;
    struct tcp_pcb *listener;
    bool kept;

    if (v->tcp.fragment) {
        if (f || listener_find(port, v->addr, v->key.local_port)) {
            port->count.fragments++;
            return SG_PORT_TO_ADAPTER;
        }
        return SG_PORT_TO_NIC;
    }
    if (f && reopens(v, f)) {
        tcp_abort(f->pcb);
        f = NULL;
    } else if (f && resets(v, f)) {
        tcp_abort(f->pcb);
        port->count.frames_in++;
        return SG_PORT_TO_ADAPTER;
    }
    listener = f ? NULL : listener_find(port, v->addr, v->key.local_port);
    if (listener && !listener_admits(listener, v->tcp.tcp[13])) {
        return SG_PORT_TO_ADAPTER;
    }
    if (!f && !looped && !listener) {
        return SG_PORT_TO_NIC;
    }
    port->count.frames_in++;
    sg_stack.sender = looped ? NULL : v->frame + 6;
    if (f) {
        route_learn(f);
    }
    pcb_list_show(f, listener);
    kept = tcp_input_frame(v);
    pcb_list_hide();
    sg_stack.sender = NULL;
    port->count.checksum_errors += lwip_stats.tcp.chkerr - errors;

    f = flow_find(&port->flows, &v->key); /* lwIP may have freed or created it */
    if (f && !kept) {
        tcp_free_ooseq(f->pcb); /* drop it, and what waits with it (RFC 2018, section 8) */
    }
    if (f) {
        recovery_input_done(f);
        pcb_list_settle(f);
    }
    if (f && f->stream) {
        stream_settle(f->stream);
    }
    return SG_PORT_TO_ADAPTER;
}

static void arp_frame(struct sg_port *port, const struct view *v)
{
    uint8_t frame[SIZEOF_ETH_HDR + ARP_LEN];
    unsigned i;

    memcpy(frame, v->frame, 12);
    sg_put_be16(frame + 12, ETHTYPE_ARP);
    memcpy(frame + SIZEOF_ETH_HDR, v->packet, ARP_LEN);
    for (i = 0; i < SG_PORT_ADDR_MAX; i++) {
        struct address *a = &port->addrs[i];

        if (a->used && a->ip.family == 4 && a->ip.vlan == v->vlan) {
            (void)rx_frame_input(a, frame, sizeof(frame), NULL, 0, NULL);
        }
    }
}

/* 'looped': sent by this port itself, so the NIC must not get it. */
unsigned demux_frame(struct sg_port *port, const uint8_t *frame, size_t len, bool looped)
{
    struct view v;

    switch (kind_of(port, &v, frame, len)) {
    case KIND_ARP:
        arp_frame(port, &v);
        return SG_PORT_TO_ADAPTER | SG_PORT_TO_NIC;
    case KIND_ICMP6:
        neigh6_input(port, v.vlan, v.packet, sg_rx_ipv6_len(v.packet));
        if (!(frame[0] & 1)) {
            path_mtu_ip6(port, v.vlan, v.packet, sg_rx_ipv6_len(v.packet));
        }
        return SG_PORT_TO_ADAPTER | SG_PORT_TO_NIC;
    case KIND_UNREACHABLE:
        path_mtu_ip4(port, v.vlan, v.packet, v.len);
        return SG_PORT_TO_ADAPTER | SG_PORT_TO_NIC;
    case KIND_TCP:
        return tcp_frame(port, &v, looped);
    default:
        return SG_PORT_TO_NIC;
    }
}

/* The verdict alone, for a frame that is processed later. */
static unsigned verdict(struct sg_port *port, const uint8_t *frame, size_t len)
{
    struct view v;

    switch (kind_of(port, &v, frame, len)) {
    case KIND_ARP:
    case KIND_UNREACHABLE:
    case KIND_ICMP6:
        return SG_PORT_TO_ADAPTER | SG_PORT_TO_NIC;
    case KIND_TCP:
        return flow_find(&port->flows, &v.key) || listener_find(port, v.addr, v.key.local_port)
                   ? SG_PORT_TO_ADAPTER
                   : SG_PORT_TO_NIC;
    default:
        return SG_PORT_TO_NIC;
    }
}

unsigned sg_port_input(struct sg_port *port, const uint8_t *frame, size_t len)
{
    struct iovec iov = { .iov_base = (void *)(uintptr_t)frame, .iov_len = len };
    unsigned result;

    if (sg_stack.active || sg_stack.sending || port->deferred_head) {
        result = verdict(port, frame, len);
        if (result & SG_PORT_TO_ADAPTER) {
            port_defer_frame(port, &iov, 1);
        }
        return result;
    }
    clock_update(port);
    sg_stack.active = port;
    result = demux_frame(port, frame, len, false);
    if (result & SG_PORT_TO_ADAPTER) {
        stream_work(port);
        clock_arm(port);
    }
    sg_stack.active = NULL;
    return result;
}
