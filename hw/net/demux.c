/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames from the uplink: the adapter's, the NIC's, or both.
 *
 * The adapter gets TCP segments to one of the port's addresses that belong to a connection of its
 * own (connections in TIME-WAIT included) or to a listener.  ARP goes to both: lwIP learns from it,
 * the stack behind the NIC answers.  Everything else is the NIC's: other protocols, fragments,
 * segments to a port on which nobody listens, which the stack there refuses.
 *
 * Every length that lwIP relies on is checked here, before the frame is handed over.
 */
#include <string.h>

#include "net_priv.h"
#include "base/bytes.h"
#include "lwip/stats.h"

enum {
    FRAME_MAX = 65535,
    IP_AT = SIZEOF_ETH_HDR,
    FRAGMENT_BITS = 0x3fff, /* MF and offset */
    ARP_LEN = SIZEOF_ETH_HDR + 28,
};

/* What demux needs of a TCP segment. */
struct segment {
    struct address *addr;
    size_t head; /* octets of Ethernet, IP and TCP headers */
    size_t len;  /* of the frame without padding */
    uint8_t flags;
    uint32_t seqno;
    struct flow_key key;
};

/* True: a whole TCP segment to one of our addresses. */
static bool parse_segment(struct sg_port *port, const uint8_t *frame, size_t len,
                          struct segment *s)
{
    const uint8_t *ip = frame + IP_AT, *tcp;
    size_t ip_head, ip_len, tcp_head;

    if (len < IP_AT + 20 || sg_get_be16(frame + 12) != ETHTYPE_IP || ip[0] >> 4 != 4) {
        return false;
    }
    ip_head = (ip[0] & 15u) * 4;
    ip_len = sg_get_be16(ip + 2);
    if (ip_head < 20 || ip_len < ip_head + TCP_HLEN || ip_len > len - IP_AT ||
        ip[9] != IP_PROTO_TCP || (sg_get_be16(ip + 6) & FRAGMENT_BITS) != 0) {
        return false;
    }
    tcp = ip + ip_head;
    tcp_head = (tcp[12] >> 4) * 4u;
    if (tcp_head < TCP_HLEN || ip_len < ip_head + tcp_head) {
        return false;
    }
    s->addr = address_find(port, 4, ip + 16);
    if (!s->addr) {
        return false;
    }
    s->head = IP_AT + ip_head + tcp_head;
    s->len = IP_AT + ip_len;
    s->flags = tcp[13];
    s->seqno = sg_get_be32(tcp + 4);
    memset(&s->key, 0, sizeof(s->key));
    s->key.family = 4;
    memcpy(s->key.local_ip, ip + 16, 4);
    memcpy(s->key.remote_ip, ip + 12, 4);
    s->key.remote_port = sg_get_be16(tcp);
    s->key.local_port = sg_get_be16(tcp + 2);
    return true;
}

/*
 * RFC 9293, section 3.10.7.4: a new SYN beyond the old connection may reopen one in TIME-WAIT.
 * lwIP would acknowledge it and ignore the RST that follows.
 */
static bool reopens(const struct segment *s, const struct flow *f)
{
    return f->pcb->state == TIME_WAIT && (s->flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN &&
           TCP_SEQ_GT(s->seqno, f->pcb->rcv_nxt) &&
           listener_matches(f->port, f->addr, s->key.local_port);
}

static unsigned tcp_frame(struct sg_port *port, const uint8_t *frame, struct segment *s,
                          bool looped)
{
    struct flow *f = flow_find(&port->flows, &s->key);
    uint64_t errors = lwip_stats.tcp.chkerr;
    struct stream *stream;

    if (f && reopens(s, f)) {
        tcp_abort(f->pcb);
        f = NULL;
    }
    if (!f && !looped && !listener_matches(port, s->addr, s->key.local_port)) {
        return SG_PORT_TO_NIC;
    }
    port->count.frames_in++;
    rx_frame_input(s->addr, frame, s->head, s->len);
    port->count.checksum_errors += lwip_stats.tcp.chkerr - errors;

    f = flow_find(&port->flows, &s->key); /* it may be gone, or new */
    stream = f ? f->stream : NULL;
    if (stream) {
        stream_settle(stream);
    }
    return SG_PORT_TO_ADAPTER;
}

static void arp_frame(struct sg_port *port, const uint8_t *frame)
{
    unsigned i;

    for (i = 0; i < SG_PORT_ADDR_MAX; i++) {
        struct address *a = &port->addrs[i];

        if (a->used) {
            rx_frame_input(a, frame, ARP_LEN, ARP_LEN);
        }
    }
}

/* 'looped': sent by this port itself, so that the NIC has no part in it. */
unsigned demux_frame(struct sg_port *port, const uint8_t *frame, size_t len, bool looped)
{
    struct segment s;

    if (len < ARP_LEN || len > FRAME_MAX) {
        return SG_PORT_TO_NIC;
    }
    if (sg_get_be16(frame + 12) == ETHTYPE_ARP) {
        arp_frame(port, frame);
        return SG_PORT_TO_ADAPTER | SG_PORT_TO_NIC;
    }
    if (memcmp(frame, port->mac, 6) != 0 || !parse_segment(port, frame, len, &s)) {
        return SG_PORT_TO_NIC;
    }
    return tcp_frame(port, frame, &s, looped);
}

/* The verdict alone, for a frame that is processed later. */
static unsigned verdict(struct sg_port *port, const uint8_t *frame, size_t len)
{
    struct segment s;

    if (len < ARP_LEN || len > FRAME_MAX) {
        return SG_PORT_TO_NIC;
    }
    if (sg_get_be16(frame + 12) == ETHTYPE_ARP) {
        return SG_PORT_TO_ADAPTER | SG_PORT_TO_NIC;
    }
    if (memcmp(frame, port->mac, 6) != 0 || !parse_segment(port, frame, len, &s) ||
        (!flow_find(&port->flows, &s.key) &&
         !listener_matches(port, s.addr, s.key.local_port))) {
        return SG_PORT_TO_NIC;
    }
    return SG_PORT_TO_ADAPTER;
}

unsigned sg_port_input(struct sg_port *port, const uint8_t *frame, size_t len)
{
    struct iovec iov = { .iov_base = (void *)(uintptr_t)frame, .iov_len = len };
    unsigned result;

    if (sg_stack.active || sg_stack.sending || port->kept_head) {
        result = verdict(port, frame, len);
        if (result & SG_PORT_TO_ADAPTER) {
            port_keep_frame(port, &iov, 1);
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
