/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TCP segments in received IP packets.
 */
#ifndef SG_NET_RX_IP_H
#define SG_NET_RX_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pointers go into the packet. */
struct sg_rx_tcp {
    unsigned family;          /* 4 or 6 */
    const uint8_t *src, *dst; /* network order */
    const uint8_t *tcp;
    size_t extensions; /* octets of IPv6 extension headers before the TCP header */
    size_t tcp_head;   /* octets of the TCP header */
    size_t payload;    /* octets behind it */
    bool fragment;     /* the first one: only addresses and ports are certain to be there */
};

/*
 * True: the packet ('len' octets, of which the last may be padding) is a whole TCP segment, or the
 * first fragment of one.
 */
bool sg_rx_ipv4(struct sg_rx_tcp *t, const uint8_t *packet, size_t len);
bool sg_rx_ipv6(struct sg_rx_tcp *t, const uint8_t *packet, size_t len);

/* A whole packet with an ICMP message that reports an undeliverable packet. */
bool sg_rx_is_unreachable(const uint8_t *packet, size_t len);
/* ICMPv6 without extension headers before it, complete: perhaps a neighbour message. */
bool sg_rx_is_neighbour(const uint8_t *packet, size_t len);
/* Length of an IPv6 packet according to its header. */
size_t sg_rx_ipv6_len(const uint8_t *packet);

#endif
