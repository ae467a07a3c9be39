/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A captured frame: link layer, IPv4 or IPv6, TCP. */
#ifndef RPCRDMA_FRAME_H
#define RPCRDMA_FRAME_H

#include "base/span.h"

enum rr_link {
    RR_LINK_ETHERNET, /* with up to two VLAN tags */
    RR_LINK_RAW,      /* begins with the IP header */
    RR_LINK_SLL,      /* Linux "any" */
    RR_LINK_SLL2,
};

enum rr_tcp_flags { RR_FIN = 0x01, RR_SYN = 0x02, RR_RST = 0x04, RR_ACK = 0x10 };

/* One end of a connection; octets that an IPv4 address does not have are 0. */
struct rr_end {
    uint8_t address[16];
    uint16_t port;
};

struct rr_tcp {
    bool ipv6;
    struct rr_end from, to;
    uint32_t seq;
    uint32_t ack;
    uint8_t flags; /* enum rr_tcp_flags, and others */
    struct sg_span payload;
    size_t cut; /* octets of the payload that the capture does not have */
};

/*
 * The TCP segment in a frame of which @wire octets were on the wire; false: none, or fragmented, or
 * too little of it was captured.
 */
bool rr_frame_parse(enum rr_link link, struct sg_span frame, size_t wire, struct rr_tcp *out);

#endif
