/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Outgoing segments of RDMA/TCP of 2000: headers, order, CRC.
 *
 * Order.  A message behind Reads of ours that are unanswered leaves them out: its order is the
 * distance to the oldest of them.  If it waited for them, both ends could wait for each other, each
 * with a closed window.  Without such Reads, and for a Read Request, it is 0.
 *
 * A segment is built in memory of the engine, and its CRC computed of the copy, because the payload
 * may be guest memory that a CPU is writing to.  A refused send has no effect.
 */
#include "base/crc32m.h"
#include "proto/rdma_tcp/rt.h"

enum { SEG_MIN = 128 }; /* Segment Length that we use however small the EMSS is */

void rt_refresh(struct sg_conn *c)
{
    size_t emss = c->stream->ops->emss(c->stream);
    size_t whole = sg_align_down(SG_MIN(emss, (size_t)SG_RT_SEG_MAX), 4); /* with the CRC */
    uint32_t seg = (uint32_t)SG_MAX(whole, (size_t)SEG_MIN + 4) - 4;

    c->tx.max.send = c->tx.max.response = (uint16_t)(seg - SG_RT_HDR_MIN);
    c->tx.max.write = (uint16_t)(seg - SG_RT_HDR_MAX - SG_RT_WORD);
}

/* How many messages a new one leaves out. */
static uint32_t distance(const struct sg_conn *c)
{
    const struct conn_orq *oldest = requests_first_unanswered(c);

    return oldest ? c->rt->tx.next - oldest->id : 0;
}

bool rt_may_begin(struct sg_conn *c)
{
    return distance(c) <= SG_RT_ORDER_MAX;
}

/* Sends one segment; payload and control data are out->iov[1]..iov[npieces]. */
static size_t send(struct sg_conn *c, struct seg_out *out, const struct sg_rt_hdr *h, int npieces,
                   size_t octets)
{
    size_t seg_len = sg_rt_hdr_len(h->type) + octets;
    struct iovec whole = { .iov_base = c->e->tx_scratch };
    uint8_t *at = whole.iov_base;
    uint32_t crc;
    int i;

    at += sg_rt_hdr_emit(h, seg_len, at);
    crc = sg_crc32m(0, whole.iov_base, (size_t)(at - (uint8_t *)whole.iov_base));
    for (i = 1; i <= npieces; i++) {
        crc = sg_crc32m_copy(crc, at, out->iov[i].iov_base, out->iov[i].iov_len);
        at += out->iov[i].iov_len;
    }
    at += sg_rt_tail_emit(at, seg_len, crc);
    whole.iov_len = (size_t)(at - (uint8_t *)whole.iov_base);
    if (!conn_hand_over(c, &whole, 1, whole.iov_len)) {
        return 0;
    }
    c->e->stats.tx_fpdus++;
    c->tx.segments++;
    if (sg_flows(c->e->host)) {
        flow_rt(c, h, octets - h->clen * (size_t)SG_RT_WORD, NULL);
    }
    return whole.iov_len;
}

static struct sg_rt_hdr header(const struct sg_conn *c, enum sg_rt_type type, bool begin, bool last)
{
    return (struct sg_rt_hdr){
        .version = SG_RT_VERSION,
        .type = (uint8_t)type,
        .begin = begin,
        .end = last,
        .conn_id = c->rt->conn_id,
        .number = c->rt->tx.next,
    };
}

/* Puts the word of control data in front of npay pieces; returns how many pieces there are then. */
static int put_control(struct seg_out *out, int npay, uint64_t to)
{
    sg_assert(npay < SG_ENGINE_IOV_MAX + 1);
    memmove(out->iov + 2, out->iov + 1, (size_t)npay * sizeof(out->iov[0]));
    sg_put_be32(out->tail, (uint32_t)(to >> 32));
    out->iov[1].iov_base = out->tail;
    out->iov[1].iov_len = SG_RT_WORD;
    return npay + 1;
}

static size_t send_write(struct sg_conn *c, struct sg_rt_hdr *h, struct seg_out *out, int npay,
                         uint32_t len)
{
    const struct sg_msg *m = &c->tx.msg;
    uint64_t to = m->write.to + c->tx.off;
    size_t n;

    h->clen = 1;
    h->buffer_id = m->write.stag;
    h->buffer_offset = (uint32_t)to;
    h->rdma_len = m->write.length;
    n = send(c, out, h, put_control(out, npay, to), len + (size_t)SG_RT_WORD);
    /* The caller releases the pieces that it put there. */
    memmove(out->iov + 1, out->iov + 2, (size_t)npay * sizeof(out->iov[0]));
    return n;
}

size_t rt_send_payload(struct sg_conn *c, struct seg_out *out, int npay, uint32_t len, bool last)
{
    const struct sg_msg *m = &c->tx.msg;
    bool write = m->kind == SG_MSG_WRITE;
    struct sg_rt_hdr h = header(c, write ? SG_RT_WRITE : SG_RT_SEND, !c->tx.off, last);
    size_t n;

    if (!write && m->send.invalidate) {
        rt_local_failed(c);
        return 0;
    }
    if (h.begin) {
        c->rt->tx.order = (uint16_t)distance(c);
    }
    h.order = c->rt->tx.order;
    if (write) {
        n = send_write(c, &h, out, npay, len);
    } else {
        h.res = m->send.solicited ? SG_RT_RES_SE : 0;
        h.data_offset = c->tx.off;
        n = send(c, out, &h, npay, len);
    }
    c->rt->tx.next += n && last;
    return n;
}

size_t rt_send_response(struct sg_conn *c, const struct conn_irrq *r, struct seg_out *out, int npay,
                        uint32_t len, bool last)
{
    struct sg_rt_hdr h = header(c, SG_RT_READ_RESP, !c->tx.resp_off, last);

    h.number = r->h.msn;
    h.order = SG_RT_AT_ONCE;
    h.data_offset = c->tx.resp_off;
    return send(c, out, &h, npay, len);
}

static size_t send_read_request(struct sg_conn *c)
{
    const struct sg_msg *m = &c->tx.msg;
    const struct conn_orq entry = {
        .kind = SG_MSG_READ_REQ,
        .length = m->read.length,
        .confirm = m->read.confirm,
        .id = c->rt->tx.next,
        .sink = { .stag = m->read.sink_stag, .to = m->read.sink_to, .cookie = m->cookie },
    };
    struct sg_rt_hdr h = header(c, SG_RT_READ_REQ, true, true);
    struct seg_out out;
    size_t n;

    h.clen = 1;
    h.buffer_id = m->read.stag;
    h.buffer_offset = (uint32_t)m->read.to;
    h.rdma_len = m->read.length;
    n = send(c, &out, &h, put_control(&out, 0, m->read.to), SG_RT_WORD);
    if (n) {
        c->rt->tx.next++;
        requests_push(c, &entry);
    }
    return n;
}

size_t rt_send_small(struct sg_conn *c)
{
    if (c->tx.msg.kind != SG_MSG_READ_REQ) {
        rt_local_failed(c); /* there is no such message */
        return 0;
    }
    return send_read_request(c);
}
