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

/* A whole segment of 'whole' octets on the wire. */
static void take(struct sg_conn *c, const uint8_t *p, size_t whole)
{
    uint32_t crc = sg_get_be32(p + whole - 4);
    struct sg_rt_seg seg;
    enum sg_wire_err err = sg_rt_parse(sg_span_of(p, whole), true, &seg);
    const char *fault = err == SG_WIRE_OK ? header_fault(c, &seg.h) : sg_wire_err_name(err);
    int result;

    if (fault) {
        rt_fault(c, err == SG_WIRE_BAD_CRC ? SG_FAULT_CRC : SG_FAULT_FORM, fault);
        return;
    }
    result = rt_take(c, &seg, rt_was_early(c, (uint32_t)whole, crc));
    if (conn_dead(c)) {
        return;
    }
    if (result == SEG_LATER) {
        stall_begin(c, p, whole);
        return;
    }
    c->e->stats.rx_fpdus++;
    c->rt->rx.pos += (uint32_t)whole;
    if (result == SEG_CLOSED) {
        close_owner_left(c);
    }
}

void rt_retry(struct sg_conn *c, const uint8_t *p, size_t n)
{
    take(c, p, n);
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
        size_t used;

        if (!c->rx.have && sg_rt_peek(sg_span_of(p, n), &whole) == SG_WIRE_OK && whole <= n) {
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
