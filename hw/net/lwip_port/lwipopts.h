/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lwIP's configuration: TCP over IP over Ethernet, nothing else, for fast local networks.
 * Files that see this header are lwIP's own and those of this folder.
 */
#ifndef SG_NET_LWIPOPTS_H
#define SG_NET_LWIPOPTS_H

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_TIMERS 0 /* clock.c calls the timers */
#define LWIP_HOOK_FILENAME "lwip_hooks.h"
/* Defined here, because lwip/ip4.h looks for it. */
#define LWIP_HOOK_IP4_ROUTE_SRC(src, dest) sg_net_route(src, dest)

/*
 * Memory comes from the process, where tools can check it and tests can refuse it (stack.c);
 * flow.c bounds the number of connections.
 */
#define MEM_CUSTOM_ALLOCATOR 1
#define MEM_CUSTOM_MALLOC sg_net_malloc
#define MEM_CUSTOM_CALLOC sg_net_calloc
#define MEM_CUSTOM_FREE sg_net_free
#define MEMP_MEM_MALLOC 1
#define MEM_ALIGNMENT 8
#define LWIP_SUPPORT_CUSTOM_PBUF 1
/* A frame that waits for ARP must not point into a stream's send ring, which may go before it. */
#define PBUF_NEEDS_COPY(p) (((p)->type_internal & 0x80) == 0)

#define LWIP_IPV4 1
#define LWIP_IPV6 1
#define LWIP_IPV6_NUM_ADDRESSES 1
#define LWIP_IPV6_SCOPES 0 /* connections are bound to an interface, which has one link */
#define LWIP_ICMP 0        /* the stack behind the NIC answers */
#define LWIP_ICMP6 0
#define LWIP_IPV6_MLD 0
#define LWIP_IPV6_FRAG 0
#define LWIP_IPV6_REASS 0
#define LWIP_IPV6_AUTOCONFIG 0
#define LWIP_IPV6_SEND_ROUTER_SOLICIT 0
#define LWIP_IPV6_DUP_DETECT_ATTEMPTS 0
#define LWIP_ND6_ALLOW_RA_UPDATES 0
#define LWIP_ND6_TCP_REACHABILITY_HINTS 0
#define LWIP_UDP 0
#define LWIP_RAW 0
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0
#define IP_REASSEMBLY 0 /* fragments go to the NIC; TCP does not need them */
#define IP_FRAG 0
#define LWIP_NETIF_HWADDRHINT 1
#define ETHARP_TABLE_MATCH_NETIF 1
#define ARP_TABLE_SIZE 512
#define ARP_QUEUEING 1
#define ARP_QUEUE_LEN 8

#define LWIP_TCP 1
/* The largest; the MTU of the port decides for each connection. */
#define TCP_MSS (65521 - 40)
#define TCP_CALCULATE_EFF_SEND_MSS 1
#define LWIP_WND_SCALE 1
/* The largest that a port may have; stream_lwip.c makes it the port's after the handshake. */
#define TCP_RCV_SCALE 9
#define TCP_WND (16 * 1024 * 1024)
/* A quarter of the least window of a port. */
#define TCP_WND_UPDATE_THRESHOLD (64 * 1024 - 1)
/* The send ring of stream_send.c is the limit; this only has to be above its largest size. */
#define TCP_SND_BUF (32 * 1024 * 1024)
#define TCP_SND_QUEUELEN 65000
#define TCP_OVERSIZE 0
#define LWIP_TCP_TIMESTAMPS 1
/* Little before the peer has sent anything in order: it may be unknown.  See flow.c. */
#define TCP_OOSEQ_BYTES_LIMIT(pcb) sg_net_out_of_order_max(pcb)
#define LWIP_TCP_KEEPALIVE 1 /* flow.c sets it for each connection */
#define LWIP_TCP_SACK_OUT 1
#define LWIP_TCP_MAX_SACK_NUM 3
#define TCP_QUEUE_OOSEQ 1
/* Two pbufs per segment: a window of 1500-octet frames fits, a window of tiny segments does not. */
#define TCP_OOSEQ_PBUFS_LIMIT(pcb) sg_net_ooseq_limit(pcb)
#define TCP_LISTEN_BACKLOG 0 /* tcp_listener.c counts half-open connections */
#define LWIP_TCP_PCB_NUM_EXT_ARGS 1

/*
 * Times in ms: delayed acknowledgements 50; retransmission of a SYN after 1000 (RFC 6298, section
 * 2.1), of anything else as recovery.c decides; giving up after about four minutes, unless the
 * peer's silence is detected before (flow.c).
 */
#define TCP_FAST_INTERVAL 50
#define TCP_SLOW_INTERVAL 200
#define LWIP_TCP_RTO_TIME 1000
#define TCP_SYNMAXRTX 12
#define TCP_MAXRTX 9
#define TCP_MSL 15000UL

#define LWIP_CHKSUM sg_net_chksum
#define LWIP_STATS 1
#define LWIP_STATS_LARGE 1
#define LINK_STATS 0
#define ETHARP_STATS 0
#define IP_STATS 0
#define MEM_STATS 0
#define MEMP_STATS 0
#define SYS_STATS 0

/* Its sanity checks assume that TCP_MSS is below 16 KiB. */
#define LWIP_DISABLE_TCP_SANITY_CHECKS 1

#endif
