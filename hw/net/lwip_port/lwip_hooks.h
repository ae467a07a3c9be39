/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hooks that lwIP calls; implemented in stack.c and flow.c.
 */
#ifndef SG_NET_LWIP_HOOKS_H
#define SG_NET_LWIP_HOOKS_H

#include "lwip/arch.h"
#include "lwip/err.h"
#include "lwip/ip_addr.h"

struct netif;
struct pbuf;
struct tcp_hdr;
struct tcp_pcb;

/* The interface that owns 'src', or NULL. */
struct netif *sg_net_route(const ip4_addr_t *src, const ip4_addr_t *dest);
/* Octets that a connection may keep out of order. */
u32_t sg_net_out_of_order_max(const struct tcp_pcb *pcb);
/*
 * An initial sequence number: a clock of 4 us plus a keyed hash of the 4-tuple, so that it reveals
 * nothing about other connections (RFC 9293, section 3.4.1; RFC 6528, section 3).
 */
u32_t sg_net_isn(const ip_addr_t *local, u16_t local_port, const ip_addr_t *remote,
                 u16_t remote_port);
/* Sees each segment before its checksum is computed; counts retransmissions, adds nothing. */
u32_t *sg_net_segment_out(struct pbuf *p, struct tcp_hdr *hdr, const struct tcp_pcb *pcb,
                          u32_t *opts);

/* Sees each segment of a connection first; other than ERR_OK: drop it.  See stack.c. */
err_t sg_net_segment_in(struct tcp_pcb *pcb, struct tcp_hdr *hdr, struct pbuf *p);

/* How many pbufs of segments out of order a connection may keep. */
u16_t sg_net_ooseq_limit(const struct tcp_pcb *pcb);

/* For IPv6 extension headers, which demux.c has already removed. */
#define icmp6_param_problem(p, code, pointer) ((void)(p))

#define LWIP_HOOK_TCP_INPACKET_PCB(pcb, hdr, optlen, opt1len, opt2, p) \
    sg_net_segment_in(pcb, hdr, p)
#define LWIP_HOOK_TCP_ISN(l, lp, r, rp) sg_net_isn(l, lp, r, rp)
#define LWIP_HOOK_TCP_OUT_ADD_TCPOPTS(p, hdr, pcb, opts) sg_net_segment_out(p, hdr, pcb, opts)

#endif
