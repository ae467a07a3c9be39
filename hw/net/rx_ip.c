/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TCP segments in received IP packets.
 *
 * Packets that are not TCP, later fragments and malformed packets are left to the stack behind the
 * NIC, which reassembles, complains by ICMP or drops them.  The first fragment of a segment is
 * reported separately: that stack would refuse the reassembled segment with a RST (demux.c).
 *
 * IPv6 packets with an extension header that cannot simply be skipped (RFC 8200, section 4) are
 * left to it as well: an option whose type does not begin with 00, a routing header with segments
 * left, a fragment header unless it is of a whole packet (RFC 6946) or the first fragment, a
 * hop-by-hop header in the wrong place, an unknown header, or more than a few of them.
 */
#include <string.h>

#include "net_priv.h"
#include "rx_ip.h"
#include "base/bytes.h"
#include "lwip/prot/ip.h"

enum {
    FRAGMENT_BITS = 0x3fff, /* IPv4: MF and offset */
    OFFSET_BITS = 0x1fff,
    PORTS_LEN = 4,
    ICMP_UNREACHABLE = 3,
    IPV6_HEAD = 40,
    EXTENSIONS_MAX = 4, /* headers */
    HEADER_HOPS = 0,
    HEADER_ROUTING = 43,
    HEADER_FRAGMENT = 44,
    HEADER_ICMP = 58,
    HEADER_DESTINATION = 60,
    FRAGMENT6_BITS = 0xfff9, /* offset and M */
    OFFSET6_BITS = 0xfff8,
    OPTION_PAD1 = 0,
    OPTION_ACTION_BITS = 0xc0, /* 00: skip over it */
};

/* 'len' octets from the TCP header on. */
static bool take_tcp(struct sg_rx_tcp *t, const uint8_t *tcp, size_t len)
{
    t->tcp = tcp;
    if (t->fragment) {
        return len >= PORTS_LEN;
    }
    if (len < TCP_HLEN) {
        return false;
    }
    t->tcp_head = (tcp[12] >> 4) * 4u;
    if (t->tcp_head < TCP_HLEN || t->tcp_head > len) {
        return false;
    }
    t->payload = len - t->tcp_head;
    return true;
}

bool sg_rx_ipv4(struct sg_rx_tcp *t, const uint8_t *p, size_t len)
{
    size_t head, total;

    if (len < IP_HLEN || p[0] >> 4 != 4) {
        return false;
    }
    head = (p[0] & 15u) * 4;
    total = sg_get_be16(p + 2);
    if (head < IP_HLEN || total < head || total > len || p[9] != IP_PROTO_TCP ||
        (sg_get_be16(p + 6) & OFFSET_BITS) != 0) {
        return false;
    }
    t->fragment = (sg_get_be16(p + 6) & FRAGMENT_BITS) != 0;
    t->family = 4;
    t->src = p + 12;
    t->dst = p + 16;
    t->extensions = 0;
    return take_tcp(t, p + head, total - head);
}

/* May all options between p and end be skipped? */
static bool may_skip_options(const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        if (*p == OPTION_PAD1) {
            p++;
            continue;
        }
        if ((*p & OPTION_ACTION_BITS) || end - p < 2 || end - p < 2 + p[1]) {
            return false;
        }
        p += 2 + p[1];
    }
    return true;
}

/* Length of the extension header at p, of which 'len' octets exist; 0: it cannot be skipped. */
static size_t skip_extension(uint8_t type, const uint8_t *p, size_t len, bool first)
{
    size_t n = len >= 8 ? 8 + p[1] * 8u : 0;

    if (n == 0) {
        return 0;
    }
    switch (type) {
    case HEADER_FRAGMENT:
        return sg_get_be16(p + 2) & OFFSET6_BITS ? 0 : 8;
    case HEADER_ROUTING:
        return n <= len && p[3] == 0 ? n : 0;
    case HEADER_HOPS:
        return first && n <= len && may_skip_options(p + 2, p + n) ? n : 0;
    case HEADER_DESTINATION:
        return n <= len && may_skip_options(p + 2, p + n) ? n : 0;
    default:
        return 0;
    }
}

size_t sg_rx_ipv6_len(const uint8_t *p)
{
    return IPV6_HEAD + (size_t)sg_get_be16(p + 4);
}

static bool is_whole_ipv6(const uint8_t *p, size_t len)
{
    return len >= IPV6_HEAD && p[0] >> 4 == 6 && sg_rx_ipv6_len(p) <= len;
}

bool sg_rx_ipv6(struct sg_rx_tcp *t, const uint8_t *p, size_t len)
{
    size_t at = IPV6_HEAD, n;
    unsigned i;
    uint8_t next;

    if (!is_whole_ipv6(p, len)) {
        return false;
    }
    len = sg_rx_ipv6_len(p);
    t->fragment = false;
    next = p[6];
    for (i = 0; next != IP_PROTO_TCP; i++) {
        n = i < EXTENSIONS_MAX ? skip_extension(next, p + at, len - at, i == 0) : 0;
        if (n == 0) {
            return false;
        }
        t->fragment |= next == HEADER_FRAGMENT && (sg_get_be16(p + at + 2) & FRAGMENT6_BITS);
        next = p[at];
        at += n;
    }
    t->family = 6;
    t->src = p + 8;
    t->dst = p + 24;
    t->extensions = at - IPV6_HEAD;
    return take_tcp(t, p + at, len - at);
}

bool sg_rx_is_unreachable(const uint8_t *p, size_t len)
{
    size_t head = len >= IP_HLEN && p[0] >> 4 == 4 ? (p[0] & 15u) * 4 : 0;

    return head >= IP_HLEN && head < len && sg_get_be16(p + 2) <= len && p[9] == IP_PROTO_ICMP &&
           (sg_get_be16(p + 6) & FRAGMENT_BITS) == 0 && p[head] == ICMP_UNREACHABLE;
}

bool sg_rx_is_neighbour(const uint8_t *p, size_t len)
{
    return is_whole_ipv6(p, len) && p[6] == HEADER_ICMP;
}
