/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Framing (RFC 5044 section 4): one DDP segment becomes one FPDU.
 *
 * With a CRC the FPDU is built in memory of the engine, copying payload and computing the CRC in
 * one pass: the payload may be guest memory that a CPU is writing to, and the CRC must match the
 * octets sent, or the guest's race would look like damage to the peer.  Without CRC nothing is
 * copied: length field and DDP header, the payload in place and the trailer go to the stream
 * as one vector.
 *
 * A refused send has no effect: sequence numbers and positions change only when the stream took
 * the FPDU, and the caller builds it again after 'writable'.
 */
#include "base/crc32c.h"
#include "proto/conn.h"

void fpdu_refresh(struct sg_conn *c)
{
    size_t emss = c->stream->ops->emss(c->stream);

    c->tx.mulpdu = (uint16_t)sg_mulpdu((uint32_t)SG_MIN(emss, UINT32_MAX), c->setup.tx_markers);
    c->tx.max.send = (uint16_t)(c->tx.mulpdu - sg_ddp_len(false));
    c->tx.max.write = c->tx.max.response = (uint16_t)(c->tx.mulpdu - sg_ddp_len(true));
}

static bool hand_over(struct sg_conn *c, const struct iovec *iov, unsigned n, size_t octets)
{
    bool taken = conn_hand_over(c, iov, n, octets);

    c->e->stats.tx_fpdus += taken;
    return taken;
}

static size_t send_marked(struct sg_conn *c, const struct iovec *iov, unsigned n)
{
    struct sg_span parts[SG_ENGINE_IOV_MAX + 1];
    unsigned flags = SG_FPDU_MARKERS | (c->setup.crc ? SG_FPDU_CRC_ON : 0);
    struct iovec whole;
    unsigned i;

    for (i = 0; i < n; i++) {
        parts[i] = sg_span_of(iov[i].iov_base, iov[i].iov_len);
    }
    /* The length field is sg_fpdu_emit()'s own. */
    parts[0] = sg_span_from(parts[0], SG_FPDU_LEN_FIELD);
    whole.iov_base = c->e->tx_scratch;
    whole.iov_len = sg_fpdu_emit(whole.iov_base, c->tx.pos, flags, parts, n);
    if (!hand_over(c, &whole, 1, whole.iov_len)) {
        return 0;
    }
    c->tx.pos += (uint32_t)whole.iov_len;
    return whole.iov_len;
}

/* Head, payload pieces, then pad and CRC. */
static size_t send_checked(struct sg_conn *c, const struct iovec *iov, unsigned n, size_t ulpdu)
{
    struct iovec whole = { .iov_base = c->e->tx_scratch };
    uint8_t *at = whole.iov_base;
    uint32_t crc = 0;
    unsigned i;

    for (i = 0; i < n; i++) {
        crc = sg_crc32c_copy(crc, at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    at += sg_fpdu_trailer_emit(at, ulpdu, true, crc);
    whole.iov_len = (size_t)(at - (uint8_t *)whole.iov_base);
    return hand_over(c, &whole, 1, whole.iov_len) ? whole.iov_len : 0;
}

static size_t send_fpdu(struct sg_conn *c, struct seg_out *out, const struct sg_ddp_hdr *h,
                        int npay, size_t len)
{
    size_t hlen = sg_ddp_emit(h, out->head + SG_FPDU_LEN_FIELD);
    size_t ulpdu = hlen + len, tail;

    _Static_assert(sizeof(out->head) >= SG_FPDU_LEN_FIELD + SG_DDP_HDR_MAX &&
                       sizeof(out->tail) > SG_FPDU_TRAILER_MAX,
                   "no room for the ends of an FPDU");

    sg_put_be16(out->head, (uint16_t)ulpdu);
    out->iov[0].iov_base = out->head;
    out->iov[0].iov_len = SG_FPDU_LEN_FIELD + hlen;
    if (c->setup.tx_markers) {
        return send_marked(c, out->iov, (unsigned)npay + 1);
    }
    if (c->setup.crc) {
        return send_checked(c, out->iov, (unsigned)npay + 1, ulpdu);
    }
    tail = sg_fpdu_trailer_emit(out->tail, ulpdu, false, 0);
    out->iov[npay + 1].iov_base = out->tail;
    out->iov[npay + 1].iov_len = tail;
    len = SG_FPDU_LEN_FIELD + ulpdu + tail;
    return hand_over(c, out->iov, (unsigned)npay + 2, len) ? len : 0;
}

size_t fpdu_send(struct sg_conn *c, struct seg_out *out, const struct sg_ddp_hdr *h, int npay,
                 size_t len)
{
    size_t n = send_fpdu(c, out, h, npay, len);

    c->tx.segments += n > 0;
    if (n && sg_flows(c->e->host)) {
        flow_ddp(c, h, len, NULL);
    }
    return n;
}
