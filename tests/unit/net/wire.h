/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two ports, a wire between them with seeded loss, reordering, duplication and corruption, and
 * behind each port a small NIC that answers ARP and neighbour solicitations and refuses TCP over
 * IPv4, as a guest's stack would.
 *
 * Time is simulated: wire_run() goes from event to event (a frame's arrival, a port's deadline or
 * kick) until a condition holds or the time is up.
 */
#ifndef SG_TESTS_NET_WIRE_H
#define SG_TESTS_NET_WIRE_H

#include <glib.h>
#include "impair.h"
#include "eth_port.h"

#define WIRE_MS 1000000ull
#define WIRE_S (1000 * WIRE_MS)
#define WIRE_MORE 20

struct wire;

struct wire_host {
    struct wire *wire;
    struct sg_port *port;
    struct sg_stream_net *net;
    uint8_t mac[6];
    struct sg_endpoint ip;
    struct sg_endpoint more[WIRE_MORE]; /* further addresses: wire_add() */
    unsigned n_more;
    uint64_t deadline;
    bool kicked;
    bool congested;
    bool drops_all;       /* nothing arrives here */
    bool drops_tcp;       /* only ARP does */
    bool mute;            /* the NIC answers nothing */
    unsigned arp_answers; /* ARP replies sent by the NIC */
    unsigned nd_answers;  /* neighbour advertisements */
    unsigned resets;      /* RSTs sent by the NIC */
    unsigned nic_frames;  /* frames that the port gave to the NIC */
};

struct wire_faults {
    unsigned loss, reorder, duplicate, corrupt; /* of 1000 frames */
};

struct wire {
    struct wire_host host[2];
    uint64_t now;
    uint64_t delay;   /* ns */
    bool synchronous; /* frames arrive within the call that sends them; no faults */
    uint64_t rng;
    struct wire_faults faults;
    struct sg_impair *link[2]; /* by sender; if set, instead of 'faults' and 'delay' */
    GSequence *frames;
    uint64_t sequence;
    /* Sees every frame that is sent, before faults. */
    void (*tap)(struct wire *w, int from, const uint8_t *frame, size_t len);
    void *tap_data;
    /* May be NULL.  A router in the middle, which may answer; true: it drops the frame. */
    bool (*router)(struct wire *w, int from, const uint8_t *frame, size_t len);
};

struct wire *wire_new(uint64_t seed, unsigned mtu, const struct sg_port_config *config);
/* From now on both directions are impaired links, each with its own seed. */
void wire_impair(struct wire *w, const struct sg_impair_config *config);
void wire_free(struct wire *w);
uint64_t wire_random(struct wire *w);
/* True when 'done' returned true; false when 'limit' ns have passed or nothing is left to do. */
bool wire_run(struct wire *w, bool (*done)(void *), void *data, uint64_t limit);
/* Runs everything that is due now, and delivers frames in flight. */
void wire_settle(struct wire *w, uint64_t ns);
/* Puts a frame on the wire to a host, without faults. */
void wire_inject(struct wire *w, int to, const uint8_t *frame, size_t len);
struct sg_endpoint wire_endpoint(const struct wire_host *h, uint16_t port);
/* Another address of a host, on a VLAN if it has one; NULL: no gateway.  As add_addr(). */
bool wire_add(struct wire *w, int host, const struct sg_endpoint *ip, unsigned prefix_len,
              const uint8_t *gateway);
/* fd00::last or, link-local, fe80::last. */
struct sg_endpoint wire_ip6(bool link_local, uint16_t last, uint16_t vlan, uint16_t port);
struct sg_endpoint wire_ip(unsigned a, unsigned b, unsigned c, unsigned d, uint16_t port);

/* A frame with a TCP segment, checksums right.  Returns its length. */
struct wire_segment {
    const uint8_t *dst_mac, *src_mac;
    struct sg_endpoint src, dst;
    uint32_t seq, ack;
    uint8_t flags;
    uint16_t window;
    const uint8_t *options; /* of TCP */
    size_t options_len;     /* a multiple of 4 */
    const uint8_t *payload;
    size_t payload_len;
    const uint8_t *extensions; /* of IPv6; the last one says TCP */
    size_t extensions_len;
    uint8_t first_extension; /* its type */
};
size_t wire_build(uint8_t *frame, const struct wire_segment *s);
uint16_t wire_checksum(const uint8_t *p, size_t len, uint32_t start);
uint32_t wire_pseudo_header(const uint8_t *ip, size_t tcp_len);
/* Makes room for a tag behind the MAC addresses; returns the new length. */
size_t wire_tag(uint8_t *frame, size_t len, uint16_t tci);
/* Makes the checksum of ICMPv6 in a frame right. */
void wire_mend_icmp6(uint8_t *frame);

#endif
