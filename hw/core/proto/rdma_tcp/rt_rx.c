/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Incoming octets of RDMA/TCP of 2000: framing and CRC (docs/wire-2000.md).
 *
 * In order, boundaries follow from Segment Length alone.  A segment that is there completely is
 * taken in place; otherwise it is gathered in the connection's buffer, which grows as its octets
 * arrive and never beyond the largest segment.  Nothing is used before its CRC has matched.
 *
 * A segment that verbs cannot take yet, or whose order says that it has to wait, is kept by
 * stall.c; rx.pos then still points at it.
 */
#include "proto/rdma_tcp/rt.h"

enum { GATHER_FIRST = 2048, PEEK = 4 };

static const char *header_fault(const struct sg_conn *c, const struct sg_rt_hdr *h)
{
    if (h->version != SG_RT_VERSION) {
        return "version";
    }
    if (h->conn_id != c->rt->conn_id) {
        return "Connection ID";
    }
    if (h->type == SG_RT_SEND && h->res & SG_RT_RES_SETUP) {
        return "setup is over";
    }
    if (h->clen > (sg_rt_has_offset(h->type) ? 0 : 1)) {
        return "control data";
    }
    return NULL;
}

/*
 * A segment of 'whole' octets at p whose CRC is right.  NULL: its payload is in memory already;
 * then it never has to wait.
 */
static void take_sound(struct sg_conn *c, const struct sg_rt_seg *seg, const uint8_t *p,
                       size_t whole)
{
    const char *fault = header_fault(c, &seg->h);
    int result;

    if (fault) {
        rt_fault(c, SG_FAULT_FORM, fault);
        return;
    }
    result = rt_take(c, seg, !p);
    if (conn_dead(c)) {
        return;
    }
    if (result == SEG_LATER) {
        stall_begin(c, p, whole);
        return;
    }
    c->e->stats.rx_fpdus++;
    c->rx.segments++;
    c->rt->rx.pos += (uint32_t)whole;
    if (result == SEG_CLOSED) {
        close_owner_left(c);
    }
}

/* A whole segment of 'whole' octets on the wire. */
static void take(struct sg_conn *c, const uint8_t *p, size_t whole)
{
    struct sg_rt_seg seg;
    enum sg_wire_err err = sg_rt_parse(sg_span_of(p, whole), true, &seg);

    if (err != SG_WIRE_OK) {
        rt_fault(c, err == SG_WIRE_BAD_CRC ? SG_FAULT_CRC : SG_FAULT_FORM, sg_wire_err_name(err));
        return;
    }
    if (sg_flows(c->e->host)) {
        flow_rt(c, &seg.h, seg.payload.len, p);
    }
    take_sound(c, &seg, p, whole);
}

/* The segment at rx.pos was placed early. */
static void take_placed(struct sg_conn *c, const struct rt_early *e)
{
    const struct rt_early copy = *e; /* verbs may end the connection */
    const struct sg_rt_seg seg = {
        .h = copy.h,
        .control = sg_span_of(copy.control, copy.h.clen * (size_t)SG_RT_WORD),
        .payload = sg_span_of(NULL, copy.payload),
    };

    if (sg_flows(c->e->host)) {
        flow_rt(c, &seg.h, copy.payload, copy.control);
    }
    take_sound(c, &seg, NULL, copy.len);
}

void rt_retry(struct sg_conn *c, const uint8_t *p, size_t n)
{
    take(c, p, n);
}

/*
 * Octets of a segment that was placed early come in their turn, and are ignored, as the stream may
 * have dropped the real ones.  Returns how many of n belong to it.
 */
static size_t pass_over(struct sg_conn *c, const struct rt_early *e, size_t n)
{
    size_t used = SG_MIN(n, (size_t)(e->len - c->rt->rx.early_seen));

    c->rt->rx.early_seen += (uint32_t)used;
    if (c->rt->rx.early_seen == e->len) {
        c->rt->rx.early_seen = 0;
        take_placed(c, e);
    }
    return used;
}

/* Room in the buffer for 'want' octets; false: no memory. */
static bool reserve(struct sg_conn *c, size_t want)
{
    size_t cap = SG_MAX(c->rx.cap, (uint32_t)GATHER_FIRST);
    uint8_t *buf;

    if (want <= c->rx.cap) {
        return true;
    }
    while (cap < want) {
        cap *= 2;
    }
    buf = conn_renew(c, c->rx.buf, c->rx.cap, cap);
    if (!buf) {
        return false;
    }
    c->rx.buf = buf;
    c->rx.cap = (uint32_t)cap;
    return true;
}

/* Fills the buffer up to 'want' octets; returns how many of n it took. */
static size_t fill(struct sg_conn *c, const uint8_t *p, size_t n, size_t want)
{
    size_t used = SG_MIN(n, want - c->rx.have);

    if (!reserve(c, c->rx.have + used)) {
        return n;
    }
    memcpy(c->rx.buf + c->rx.have, p, used);
    c->rx.have += (uint32_t)used;
    return used;
}

/* Continues the segment in the buffer; returns how many octets it took. */
static size_t gather(struct sg_conn *c, const uint8_t *p, size_t n)
{
    size_t used = 0, whole;

    if (c->rx.have < PEEK) {
        used = fill(c, p, n, PEEK);
        if (conn_is(c, CONN_IS_STARVED) || c->rx.have < PEEK) {
            return n;
        }
    }
    if (sg_rt_peek(sg_span_of(c->rx.buf, c->rx.have), &whole) != SG_WIRE_OK) {
        rt_fault(c, SG_FAULT_FORM, "Segment Length is shorter than a header");
        return n;
    }
    used += fill(c, p + used, n - used, whole);
    if (!conn_is(c, CONN_IS_STARVED) && c->rx.have == whole) {
        c->rx.have = 0;
        take(c, c->rx.buf, whole);
    }
    return used;
}

void rt_receive(struct sg_conn *c, const uint8_t *p, size_t n)
{
    size_t whole;

    if (!c->retried) { /* else it is what stall.c has kept */
        c->rt->rx.seen += (uint32_t)n;
    }
    while (n && rt_receiving(c) && !c->stall) {
        const struct rt_early *e = c->rx.have ? NULL : rt_early_now(c);
        size_t used;

        if (e) {
            used = pass_over(c, e, n);
        } else if (!c->rx.have && sg_rt_peek(sg_span_of(p, n), &whole) == SG_WIRE_OK &&
                   whole <= n) {
            used = whole;
            take(c, p, whole);
        } else {
            used = gather(c, p, n);
        }
        p += used;
        n -= used;
    }
    if (n && c->stall) {
        stall_keep(c, p, n);
    }
}
