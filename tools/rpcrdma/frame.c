/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frame.h"

enum {
    TYPE_IPV4 = 0x0800,
    TYPE_IPV6 = 0x86dd,
    TYPE_VLAN = 0x8100,
    TYPE_QINQ = 0x88a8,
    VLAN_TAGS_MAX = 2,
    PROTO_TCP = 6,
    IPV4_MIN = 20,
    IPV6_LEN = 40,
    IPV6_EXTENSIONS_MAX = 8,
    TCP_MIN = 20,
};

/* What is left of a packet, in the capture and on the wire. */
struct rest {
    struct sg_span in;
    size_t wire;
};

static bool advance(struct rest *r, size_t len)
{
    if (len > r->in.len) {
        return false;
    }
    r->in = sg_span_from(r->in, len);
    r->wire -= SG_MIN(len, r->wire);
    return true;
}

static bool parse_tcp(struct rest r, struct rr_tcp *out)
{
    const uint8_t *h = sg_span_get(r.in, 0, TCP_MIN);
    size_t len;

    if (!h) {
        return false;
    }
    len = 4 * (size_t)(h[12] >> 4);
    out->from.port = sg_get_be16(h);
    out->to.port = sg_get_be16(h + 2);
    out->seq = sg_get_be32(h + 4);
    out->ack = sg_get_be32(h + 8);
    out->flags = h[13];
    if (len < TCP_MIN || !advance(&r, len)) {
        return false;
    }
    out->payload = sg_span_head(r.in, r.wire);
    out->cut = r.wire - out->payload.len;
    return true;
}

static bool parse_ipv4(struct rest r, struct rr_tcp *out)
{
    const uint8_t *h = sg_span_get(r.in, 0, IPV4_MIN);
    size_t len, total;

    if (!h || h[0] >> 4 != 4 || h[9] != PROTO_TCP || (sg_get_be16(h + 6) & 0x3fff)) {
        return false;
    }
    len = 4 * (size_t)(h[0] & 0xf);
    total = sg_get_be16(h + 2);
    /* 0: the sender's segmentation offload had not filled it in yet. */
    if (total) {
        r.wire = SG_MIN(r.wire, total);
        r.in = sg_span_head(r.in, total);
    }
    memcpy(out->from.address, h + 12, 4);
    memcpy(out->to.address, h + 16, 4);
    return len >= IPV4_MIN && advance(&r, len) && parse_tcp(r, out);
}

static bool parse_ipv6(struct rest r, struct rr_tcp *out)
{
    static const uint8_t extensions[] = { 0, 43, 60 };
    const uint8_t *h = sg_span_get(r.in, 0, IPV6_LEN);
    uint8_t next;
    size_t len;

    if (!h || h[0] >> 4 != 6) {
        return false;
    }
    next = h[6];
    len = sg_get_be16(h + 4);
    if (len) {
        r.wire = SG_MIN(r.wire, IPV6_LEN + len);
        r.in = sg_span_head(r.in, IPV6_LEN + len);
    }
    out->ipv6 = true;
    memcpy(out->from.address, h + 8, 16);
    memcpy(out->to.address, h + 24, 16);
    advance(&r, IPV6_LEN);
    for (unsigned i = 0; i < IPV6_EXTENSIONS_MAX && next != PROTO_TCP; i++) {
        h = sg_span_get(r.in, 0, 8);
        if (!h || !memchr(extensions, next, sizeof(extensions))) {
            return false;
        }
        next = h[0];
        if (!advance(&r, 8 * ((size_t)h[1] + 1))) {
            return false;
        }
    }
    return next == PROTO_TCP && parse_tcp(r, out);
}

/* The type of what follows the link header, or 0; @r is then behind that header. */
static unsigned link_type(enum rr_link link, struct rest *r)
{
    static const struct {
        size_t type_at, len;
    } rows[] = {
        [RR_LINK_ETHERNET] = { 12, 14 },
        [RR_LINK_SLL] = { 14, 16 },
        [RR_LINK_SLL2] = { 0, 20 },
    };
    const uint8_t *p;
    unsigned type;

    if (link == RR_LINK_RAW) {
        p = sg_span_get(r->in, 0, 1);
        return !p ? 0 : *p >> 4 == 4 ? TYPE_IPV4 : TYPE_IPV6;
    }
    p = sg_span_get(r->in, rows[link].type_at, 2);
    type = p ? sg_get_be16(p) : 0;
    if (!p || !advance(r, rows[link].len)) {
        return 0;
    }
    for (unsigned i = 0; i < VLAN_TAGS_MAX && (type == TYPE_VLAN || type == TYPE_QINQ); i++) {
        p = sg_span_get(r->in, 2, 2);
        type = p ? sg_get_be16(p) : 0;
        if (!p || !advance(r, 4)) {
            return 0;
        }
    }
    return type;
}

bool rr_frame_parse(enum rr_link link, struct sg_span frame, size_t wire, struct rr_tcp *out)
{
    struct rest r = { frame, SG_MAX(wire, frame.len) };
    unsigned type = link_type(link, &r);

    memset(out, 0, sizeof(*out));
    if (type == TYPE_IPV4) {
        return parse_ipv4(r, out);
    }
    return type == TYPE_IPV6 && parse_ipv6(r, out);
}
