/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The path MTU of a connection (RFC 1191, RFC 8201).
 *
 * All our packets have DF set (as in IPv6 always), so a router whose next link is too narrow drops
 * the packet and reports it: ICMP type 3 code 4, ICMPv6 type 2.  The connection then sends smaller
 * segments, resends those in flight in smaller pieces, and tries the whole MTU again after ten
 * minutes.  The loss is no sign of congestion (RFC 1191, section 6.5).
 *
 * Anybody can send such a report.  It counts only if it quotes a segment of the connection that is
 * in flight and was larger than the reported MTU (RFC 5927, section 7; RFC 8201, section 4), and if
 * the MTU is at least PATH_MTU_MIN.  A connection accepts only a few reports in ten minutes, since
 * each makes it split its segments again.  A path MTU holds for one connection only.  The NIC
 * behind the port gets the report as well.
 */
#include <string.h>

#include "net_priv.h"
#include "rx_ip.h"
#include "base/bytes.h"
#include "lwip/prot/ip4.h"

enum {
    IP6_HEAD = 40,
    ICMP_HEAD = 8,
    QUOTED_TCP = 8, /* ports and sequence number */
    ICMP_UNREACHABLE = 3,
    CODE_FRAGMENTATION_NEEDED = 4,
    ICMP6_PACKET_TOO_BIG = 2,
    PATH_MTU_MIN = 552,      /* IPv4: as Linux's; RFC 5927, section 7.4 wants a limit */
    PATH_MTU_MIN_IP6 = 1280, /* RFC 8200, section 5 */
    REPORTS_MAX = 8,
};

#define PATH_MTU_NS (600ull * 1000 * NS_PER_MS) /* RFC 1191, section 6.3; RFC 8201, section 4 */

/* RFC 1191, section 7.1: a guess for routers that do not report their MTU. */
static unsigned plateau_below(unsigned len)
{
    static const uint16_t plateaus[] = { 32000, 17914, 8166, 4352, 2002, 1492, 1006, PATH_MTU_MIN };
    size_t i;

    for (i = 0; i + 1 < sizeof(plateaus) / sizeof(plateaus[0]) && plateaus[i] >= len; i++) {
    }
    return plateaus[i];
}

/* Splits what lwIP has to send into pieces of at most 'size' octets. */
static void split(struct tcp_pcb *pcb, unsigned size)
{
    struct tcp_seg *first = pcb->unsent, *seg;

    for (seg = first; seg; seg = seg->next) {
        pcb->unsent = seg; /* lwIP splits only the first unsent segment */
        if (seg->len > size && tcp_split_unsent_seg(pcb, (u16_t)size) != ERR_OK) {
            break;
        }
    }
    pcb->unsent = first;
}

static bool in_flight(const struct tcp_pcb *pcb, uint32_t seq)
{
    return TCP_SEQ_GEQ(seq, pcb->lastack) && TCP_SEQ_LT(seq, pcb->snd_nxt);
}

static void believe(struct flow *f, unsigned mtu)
{
    struct stream *s = f->stream;

    pcb_list_wake(f);
    if (f->pcb->unacked && !recovery_withdraw(f)) {
        return; /* the next report counts */
    }
    f->port->count.path_mtu_reports++;
    f->path_mtu = (uint16_t)mtu;
    f->path_mtu_until = sg_stack.now + PATH_MTU_NS;
    if (f->full_mss == 0) {
        f->full_mss = f->pcb->mss;
    }
    split(f->pcb, (unsigned)stream_emss(&s->base));
    tcp_output(f->pcb);
    stream_settle(s);
}

/* 'tcp' is quoted from a packet of 'len' octets that key->local_ip sent. */
static void reported(struct sg_port *port, struct flow_key *key, const uint8_t *tcp, unsigned len,
                     uint32_t mtu)
{
    struct flow *f;

    key->local_port = sg_get_be16(tcp);
    key->remote_port = sg_get_be16(tcp + 2);
    f = flow_find(&port->flows, key);
    if (!f || !f->stream || f->pcb->state < ESTABLISHED ||
        !in_flight(f->pcb, sg_get_be32(tcp + 4))) {
        return;
    }
    if (mtu == 0 && key->family == 4) {
        mtu = plateau_below(len);
    }
    if (key->family == 6 && mtu < PATH_MTU_MIN_IP6) {
        return; /* RFC 8201, section 4 */
    }
    mtu = MAX(mtu, PATH_MTU_MIN);
    if (mtu >= len || mtu >= path_mtu(f)) {
        return;
    }
    if (sg_stack.now - f->reports_since >= PATH_MTU_NS) {
        f->reports_since = sg_stack.now;
        f->reports = 0;
    }
    if (f->reports++ < REPORTS_MAX) {
        believe(f, mtu);
    }
}

unsigned path_mtu(struct flow *f)
{
    if (f->path_mtu && sg_stack.now >= f->path_mtu_until) {
        f->path_mtu = 0;
        f->pcb->mss = f->full_mss;
        f->full_mss = 0;
    }
    return f->path_mtu ? MIN(f->path_mtu, f->port->config.mtu) : f->port->config.mtu;
}

void path_mtu_ip4(struct sg_port *port, uint16_t vlan, const uint8_t *ip, size_t len)
{
    size_t head = (ip[0] & 15u) * 4, total = sg_get_be16(ip + 2), inner;
    const uint8_t *icmp = ip + head, *quote = icmp + ICMP_HEAD;
    struct flow_key key = { .family = 4, .vlan = vlan };

    if (head < IP_HLEN || total > len || total < head + ICMP_HEAD + IP_HLEN + QUOTED_TCP ||
        icmp[0] != ICMP_UNREACHABLE || icmp[1] != CODE_FRAGMENTATION_NEEDED ||
        quote[9] != IP_PROTO_TCP || (sg_get_be16(quote + 6) & IP_OFFMASK) != 0 ||
        sg_net_chksum(icmp, (int)(total - head)) != 0xffff) {
        return;
    }
    inner = (quote[0] & 15u) * 4;
    if (quote[0] >> 4 != 4 || inner < IP_HLEN || total < head + ICMP_HEAD + inner + QUOTED_TCP) {
        return;
    }
    memcpy(key.local_ip, quote + 12, 4);
    memcpy(key.remote_ip, quote + 16, 4);
    reported(port, &key, quote + inner, sg_get_be16(quote + 2), sg_get_be16(icmp + 6));
}

void path_mtu_ip6(struct sg_port *port, uint16_t vlan, const uint8_t *ip, size_t len)
{
    const uint8_t *icmp = ip + IP6_HEAD, *quote = icmp + ICMP_HEAD;
    struct flow_key key = { .family = 6, .vlan = vlan };

    if (len < IP6_HEAD + ICMP_HEAD + IP6_HEAD + QUOTED_TCP || icmp[0] != ICMP6_PACKET_TOO_BIG ||
        quote[0] >> 4 != 6 || quote[6] != IP_PROTO_TCP || /* we send no extension headers */
        neigh6_icmp_sum(ip, len - IP6_HEAD) != 0) {
        return;
    }
    memcpy(key.local_ip, quote + 8, 16);
    memcpy(key.remote_ip, quote + 24, 16);
    reported(port, &key, quote + IP6_HEAD, IP6_HEAD + sg_get_be16(quote + 4),
             sg_get_be32(icmp + 4));
}
