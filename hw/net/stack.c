/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one lwIP instance of the process: initialisation and the hooks it calls.
 *
 * lwIP keeps its state in globals.  Ports are distinguished by the interface (address.c) to which
 * each connection is bound, so that two ports may even talk to each other.
 */
#include <string.h>

#include "net_priv.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "lwip/init.h"
#include "lwip/sys.h"
#include "lwip_hooks.h"

#define CHALLENGE_PERIOD_NS (1000 * NS_PER_MS)
#define ISN_TICK_NS 4000 /* RFC 9293, section 3.4.1 */

enum { CHALLENGES_PER_PERIOD = 10 };

struct stack sg_stack = {
    .tcp_tick = SG_NEVER,
    .arp_tick = SG_NEVER,
};

/* Called for each port; the randomness of the first one makes the key of the sequence numbers. */
void stack_init(const struct sg_port_ops *ops, void *opaque)
{
    if (!sg_stack.ports) {
        ops->random(opaque, sg_stack.isn_key, ISN_KEY_LEN);
    }
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

void *sg_net_malloc(size_t octets)
{
    return g_try_malloc(octets);
}

void *sg_net_calloc(size_t n, size_t octets)
{
    return g_try_malloc0_n(n, octets);
}

void sg_net_free(void *p)
{
    g_free(p);
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

void stack_ip_set(ip_addr_t *to, unsigned family, const uint8_t ip[16])
{
    if (family == 4) {
        ip_addr_copy_from_ip4(*to, stack_ip4(ip));
    } else {
        ip6_addr_t six;

        memcpy(six.addr, ip, 16);
        ip_addr_copy_from_ip6(*to, six);
    }
}

void stack_ip_get(uint8_t to[16], const ip_addr_t *ip)
{
    memset(to, 0, 16);
    if (IP_IS_V6(ip)) {
        memcpy(to, ip_2_ip6(ip)->addr, 16);
    } else {
        memcpy(to, &ip_2_ip4(ip)->addr, 4);
    }
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
    struct sg_hasher h;
    const ip_addr_t *ends[2] = { local, remote };
    uint8_t buf[SG_HASHER_OUT];
    unsigned i;

    sg_hasher_init(&h, SG_HASH_HMAC_SHA256, sg_stack.isn_key, ISN_KEY_LEN);
    for (i = 0; i < 2; i++) {
        stack_ip_get(buf, ends[i]);
        buf[16] = IP_IS_V6(ends[i]) ? 6 : 4;
        sg_put_be16(buf + 17, i ? remote_port : local_port);
        sg_hasher_add(&h, buf, 19);
    }
    sg_hasher_end(&h, buf);
    return sg_get_be32(buf) + (u32_t)(sg_stack.now / ISN_TICK_NS);
}

/* When lwIP splits a segment with a FIN to fit the peer's window, both pieces get the FIN. */
static void drop_early_fin(const struct tcp_seg *seg, struct tcp_hdr *hdr)
{
    if (seg && seg->tcphdr == hdr && seg->len && seg->next &&
        lwip_ntohl(seg->next->tcphdr->seqno) == lwip_ntohl(hdr->seqno) + seg->len) {
        TCPH_UNSET_FLAG(hdr, TCP_FIN);
    }
}

u32_t *sg_net_segment_out(struct pbuf *p, struct tcp_hdr *hdr, const struct tcp_pcb *pcb,
                          u32_t *opts)
{
    struct flow *flow;
    bool again = false;

    if (!pcb) {
        return opts;
    }
    if (TCPH_FLAGS(hdr) & TCP_SYN) {
        again = pcb->nrtx > 0; /* snd_nxt is beyond even the first SYN of a connect */
    } else if (p->tot_len > TCPH_HDRLEN_BYTES(hdr) || (TCPH_FLAGS(hdr) & TCP_FIN)) {
        again = TCP_SEQ_LT(lwip_ntohl(hdr->seqno), pcb->snd_nxt);
    }
    if (TCPH_FLAGS(hdr) & TCP_FIN) {
        drop_early_fin(pcb->unsent, hdr);
    }
    flow = flow_of(pcb);
    if (again && flow) {
        flow->port->count.retransmits++;
    }
    if (flow && !(TCPH_FLAGS(hdr) & TCP_SYN)) {
        recovery_segment_out(flow, pcb, hdr,
                             (u32_t)(p->tot_len - TCPH_HDRLEN_BYTES(hdr)) +
                                 (TCPH_FLAGS(hdr) & TCP_FIN ? 1 : 0));
    }
    return opts;
}

/*
 * Two pbufs for each KiB of the window, so that it holds segments of 1500-octet frames; what the
 * user has taken early is beside it.
 */
u16_t sg_net_ooseq_limit(const struct tcp_pcb *pcb)
{
    const struct flow *flow = flow_of(pcb);
    size_t window = flow ? flow->port->config.window : SG_PORT_WINDOW_MIN;
    size_t ahead = flow && flow->stream ? flow->stream->ahead : 0;

    return (u16_t)MIN((window + ahead) / 512, (size_t)UINT16_MAX);
}

/*
 * RFC 5961, section 7: acknowledgements provoked by unacceptable segments are limited.  Without
 * the limit, two ends that disagree about sequence numbers acknowledge each other's
 * acknowledgements, and since lwIP may answer one segment twice, ever faster.
 */
static bool may_challenge(struct flow *flow)
{
    if (sg_stack.now - flow->challenges_since >= CHALLENGE_PERIOD_NS) {
        flow->challenges_since = sg_stack.now;
        flow->challenges = 0;
    }
    return flow->challenges++ < CHALLENGES_PER_PERIOD;
}

/*
 * lwIP collects the peer's timestamp with its first octet as the lowest one, and then swaps the
 * octets, if the machine is little-endian.  On others it would echo them in the wrong order.
 */
static void mend_timestamp(uint8_t *opt)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    sg_put_le32(opt + 2, sg_get_be32(opt + 2));
#else
    (void)opt;
#endif
}

/*
 * Corrects options that would confuse lwIP.  lwIP accepts an MSS at any time, and would then split
 * segments by another MSS than it queued them by; the option is for SYNs only (RFC 9293, section
 * 3.7.1).  And it reads a length beyond the last octet.  The header is a copy (rx_frame.c), its
 * checksum was right.
 */
static void mend_options(struct tcp_hdr *hdr)
{
    uint8_t *opt = (uint8_t *)(hdr + 1);
    unsigned left = TCPH_HDRLEN_BYTES(hdr) - TCP_HLEN, n;

    for (; left && *opt != LWIP_TCP_OPT_EOL; opt += n, left -= n) {
        n = 1;
        if (*opt == LWIP_TCP_OPT_NOP) {
            continue;
        }
        n = left > 1 ? opt[1] : 0;
        if (n < 2 || n > left) {
            *opt = LWIP_TCP_OPT_EOL;
            return;
        }
        if (*opt == LWIP_TCP_OPT_MSS && !(TCPH_FLAGS(hdr) & TCP_SYN)) {
            memset(opt, LWIP_TCP_OPT_NOP, n);
        } else if (*opt == LWIP_TCP_OPT_TS && n == LWIP_TCP_OPT_LEN_TS) {
            mend_timestamp(opt);
        }
    }
}

/*
 * Can lwIP's out-of-order queue take the segment?  lwIP keeps a segment that reaches beyond the
 * window or beyond a FIN that it has, and later asserts that neither happens.  An honest peer sends
 * neither.  Segments in order are trimmed.
 */
static bool is_within(const struct tcp_pcb *pcb, const struct tcp_hdr *hdr, const struct pbuf *p)
{
    u32_t end = hdr->seqno + p->tot_len, fin = TCPH_FLAGS(hdr) & TCP_FIN ? 1 : 0;
    const struct tcp_seg *last = pcb->ooseq;

    if (TCP_SEQ_GT(hdr->seqno, pcb->rcv_nxt) && p->tot_len + fin &&
        TCP_SEQ_GT(end + fin, pcb->rcv_nxt + pcb->rcv_wnd)) {
        return false;
    }
    while (last && last->next) {
        last = last->next;
    }
    return !last || !p->tot_len || !(TCPH_FLAGS(last->tcphdr) & TCP_FIN) ||
           TCP_SEQ_LEQ(end, last->tcphdr->seqno + last->len);
}

err_t sg_net_segment_in(struct tcp_pcb *pcb, struct tcp_hdr *hdr, struct pbuf *p)
{
    unsigned flags = TCPH_FLAGS(hdr);
    struct flow *flow;
    u32_t oldest;
    bool bare;

    mend_options(hdr);
    flow = flow_of(pcb);
    if (flow && pcb->state <= SYN_RCVD && (flags & TCP_ACK)) {
        recovery_handshake(flow, pcb);
    }
    if (pcb->state < SYN_RCVD || pcb->state == TIME_WAIT) {
        return ERR_OK;
    }
    if (pcb->state > SYN_RCVD && (flags & (TCP_RST | TCP_SYN)) &&
        !((flags & TCP_RST) && hdr->seqno == pcb->rcv_nxt)) {
        return may_challenge(flow) ? ERR_OK : ERR_VAL; /* sections 3.2 and 4.2: lwIP answers it */
    }
    if (flags & TCP_RST) {
        return ERR_OK;
    }
    if (!is_within(pcb, hdr, p)) {
        if (pcb->state != SYN_RCVD && may_challenge(flow)) {
            tcp_send_empty_ack(pcb);
        }
        return ERR_VAL;
    }
    if (pcb->state == SYN_RCVD) {
        return ERR_OK;
    }
    /* Section 5.2: not of this connection; ignore both its data and its acknowledgement. */
    oldest = pcb->lastack - MAX(pcb->snd_wnd_max, 65535);
    if ((flags & TCP_ACK) &&
        (TCP_SEQ_GT(hdr->ackno, pcb->snd_nxt) || TCP_SEQ_LT(hdr->ackno, oldest))) {
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
    flow->gap = pcb->ooseq != NULL;
    recovery_segment_in(flow, pcb, hdr, p->tot_len);
    return ERR_OK;
}
