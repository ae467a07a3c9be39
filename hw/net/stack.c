/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one lwIP instance of the process: initialisation, the hooks it calls, and the checksum.
 *
 * lwIP keeps its state in globals.  Ports are told apart by the interface (address.c) to which each
 * connection is bound, so that two ports may even talk to each other.
 */
#include <string.h>

#include "net_priv.h"
#include "lwip/init.h"
#include "lwip/sys.h"
#include "lwip_hooks.h"

#define CHALLENGE_PERIOD_NS (1000 * NS_PER_MS)

enum { CHALLENGES_PER_PERIOD = 10 };

struct stack sg_stack = {
    .tcp_tick = SG_NEVER,
    .arp_tick = SG_NEVER,
};

/* May be called again. */
void stack_init(void)
{
    if (sg_stack.ready) {
        return;
    }
    lwip_init();
    sg_stack.ext_id = tcp_ext_arg_alloc_id();
    sg_stack.ready = true;
}

void sg_net_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "staghorn: TCP/IP: %s:%d: %s\n", file, line, what);
    abort();
}

u32_t sys_now(void)
{
    return (u32_t)(sg_stack.now / NS_PER_MS);
}

ip4_addr_t stack_ip4(const uint8_t ip[16])
{
    ip4_addr_t a;

    memcpy(&a.addr, ip, 4);
    return a;
}

struct netif *sg_net_route(const ip4_addr_t *src, const ip4_addr_t *dest)
{
    struct netif *netif;

    if (!src) {
        return NULL;
    }
    NETIF_FOREACH(netif) {
        if (ip4_addr_eq(src, netif_ip4_addr(netif))) {
            return netif;
        }
    }
    return NULL;
}

u32_t sg_net_isn(const ip_addr_t *local, u16_t local_port, const ip_addr_t *remote,
                 u16_t remote_port)
{
    struct netif *netif = sg_net_route(ip_2_ip4(local), ip_2_ip4(remote));
    struct address *addr;
    u32_t isn = 0;

    if (netif) {
        addr = netif->state;
        addr->port->ops->random(addr->port->opaque, &isn, sizeof(isn));
    }
    return isn;
}

u32_t *sg_net_segment_out(struct pbuf *p, struct tcp_hdr *hdr, const struct tcp_pcb *pcb,
                          u32_t *opts)
{
    bool again = false;

    if (!pcb) {
        return opts;
    }
    if (TCPH_FLAGS(hdr) & TCP_SYN) {
        again = pcb->nrtx > 0; /* snd_nxt is beyond even the first SYN of a connect */
    } else if (p->tot_len > TCPH_HDRLEN_BYTES(hdr) || (TCPH_FLAGS(hdr) & TCP_FIN)) {
        again = TCP_SEQ_LT(lwip_ntohl(hdr->seqno), pcb->snd_nxt);
    }
    if (again && flow_of(pcb)) {
        flow_of(pcb)->port->count.retransmits++;
    }
    return opts;
}

/*
 * RFC 5961, section 7: acknowledgements provoked by unacceptable segments are limited.  Without
 * this two ends that disagree about sequence numbers acknowledge each other's acknowledgements, and
 * since lwIP may answer one segment twice, ever faster.
 */
static bool may_challenge(struct flow *flow)
{
    if (sg_stack.now - flow->challenges_since >= CHALLENGE_PERIOD_NS) {
        flow->challenges_since = sg_stack.now;
        flow->challenges = 0;
    }
    return flow->challenges++ < CHALLENGES_PER_PERIOD;
}

err_t sg_net_segment_in(struct tcp_pcb *pcb, struct tcp_hdr *hdr, struct pbuf *p)
{
    unsigned flags = TCPH_FLAGS(hdr);
    struct flow *flow;
    bool bare;

    if (pcb->state < ESTABLISHED || pcb->state == TIME_WAIT || (flags & TCP_RST)) {
        return ERR_OK;
    }
    flow = flow_of(pcb);
    /* Section 5.2: not of this connection; neither its data nor its acknowledgement counts. */
    if ((flags & TCP_ACK) && (TCP_SEQ_GT(hdr->ackno, pcb->snd_nxt) ||
                              TCP_SEQ_LT(hdr->ackno, pcb->lastack - MAX(pcb->snd_wnd_max, 65535)))) {
        if (may_challenge(flow)) {
            tcp_send_empty_ack(pcb);
        }
        return ERR_VAL;
    }
    /* A bare one outside the window would be answered as well. */
    bare = p->tot_len == 0 && !(flags & (TCP_SYN | TCP_FIN));
    if (bare && !TCP_SEQ_BETWEEN(hdr->seqno, pcb->rcv_nxt, pcb->rcv_nxt + pcb->rcv_wnd) &&
        !may_challenge(flow)) {
        return ERR_VAL;
    }
    return ERR_OK;
}

typedef uint64_t lanes __attribute__((vector_size(32)));

/*
 * RFC 1071 in 64-bit lanes: each adds 32-bit halves, so that no carry is lost for 2^32 rounds.
 * The sum is over 16-bit words in memory order, whatever the byte order of the machine.
 */
uint16_t sg_net_chksum(const void *data, int len)
{
    const uint8_t *p = data;
    size_t n = len > 0 ? (size_t)len : 0;
    lanes low = {0}, high = {0}, v;
    uint64_t sum = 0;
    uint32_t word;
    uint16_t half;

    for (; n >= 64; n -= 64, p += 64) {
        memcpy(&v, p, sizeof(v));
        low += v & 0xffffffffu;
        high += v >> 32;
        memcpy(&v, p + 32, sizeof(v));
        low += v & 0xffffffffu;
        high += v >> 32;
    }
    low += high;
    sum = low[0] + low[1] + low[2] + low[3];
    for (; n >= 4; n -= 4, p += 4) {
        memcpy(&word, p, sizeof(word));
        sum += word;
    }
    if (n >= 2) {
        memcpy(&half, p, sizeof(half));
        sum += half;
        n -= 2;
        p += 2;
    }
    if (n) {
        half = 0;
        memcpy(&half, p, 1);
        sum += half;
    }
    sum = (sum & 0xffffffffu) + (sum >> 32);
    sum = (sum & 0xffffffffu) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}
