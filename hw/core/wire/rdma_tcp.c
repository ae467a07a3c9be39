/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RDMA/TCP of 2000: octets to structures and back. */
#include "base/crc32m.h"
#include "wire/rdma_tcp.h"

enum {
    OFF_VERSION = 0,
    OFF_FLAGS = 1,
    OFF_SEG_LEN = 2,
    OFF_CONN_ID = 4,
    OFF_NUMBER = 12,
    OFF_ORDER = 16,
    OFF_RESERVED = 18,
    OFF_CLEN = 19,
    OFF_DATA_OFFSET = 20,
    OFF_BUFFER_ID = 20,
    OFF_BUFFER_OFFSET = 24,
    OFF_RDMA_LEN = 28,
    PEEK_LEN = 4,
    CRC_LEN = 4,
};

enum { FLAG_BEGIN = 0x08, FLAG_END = 0x04, TYPE_MASK = 0x03 };

size_t sg_rt_hdr_emit(const struct sg_rt_hdr *h, size_t seg_len, uint8_t *buf)
{
    sg_assert(seg_len <= SG_RT_SEG_MAX && h->type <= SG_RT_READ_RESP);
    buf[OFF_VERSION] = h->version;
    buf[OFF_FLAGS] = (uint8_t)((h->res & SG_RT_RES_MASK) | (h->begin ? FLAG_BEGIN : 0) |
                               (h->end ? FLAG_END : 0) | h->type);
    sg_put_be16(buf + OFF_SEG_LEN, (uint16_t)seg_len);
    sg_put_be64(buf + OFF_CONN_ID, h->conn_id);
    sg_put_be32(buf + OFF_NUMBER, h->number);
    sg_put_be16(buf + OFF_ORDER, h->order);
    buf[OFF_RESERVED] = 0;
    buf[OFF_CLEN] = h->clen;
    if (sg_rt_has_offset(h->type)) {
        sg_put_be32(buf + OFF_DATA_OFFSET, h->data_offset);
    } else {
        sg_put_be32(buf + OFF_BUFFER_ID, h->buffer_id);
        sg_put_be32(buf + OFF_BUFFER_OFFSET, h->buffer_offset);
        sg_put_be32(buf + OFF_RDMA_LEN, h->rdma_len);
    }
    return sg_rt_hdr_len(h->type);
}

size_t sg_rt_tail_emit(uint8_t *buf, size_t seg_len, uint32_t crc)
{
    size_t pad = sg_align_up(seg_len, 4) - seg_len;

    memset(buf, 0, pad);
    sg_put_be32(buf + pad, sg_crc32m(crc, buf, pad));
    return pad + CRC_LEN;
}

enum sg_wire_err sg_rt_peek(struct sg_span in, size_t *wire_len)
{
    size_t seg_len;

    if (in.len < PEEK_LEN) {
        return SG_WIRE_MORE;
    }
    seg_len = sg_get_be16(in.p + OFF_SEG_LEN);
    *wire_len = sg_rt_wire_len(seg_len);
    return seg_len < SG_RT_HDR_MIN ? SG_WIRE_BAD_LENGTH : SG_WIRE_OK;
}

/* @p has at least as many octets as its type's header. */
static void parse_header(const uint8_t *p, struct sg_rt_hdr *h)
{
    memset(h, 0, sizeof(*h));
    h->version = p[OFF_VERSION];
    h->type = p[OFF_FLAGS] & TYPE_MASK;
    h->res = p[OFF_FLAGS] & SG_RT_RES_MASK;
    h->begin = p[OFF_FLAGS] & FLAG_BEGIN;
    h->end = p[OFF_FLAGS] & FLAG_END;
    h->clen = p[OFF_CLEN];
    h->order = sg_get_be16(p + OFF_ORDER);
    h->conn_id = sg_get_be64(p + OFF_CONN_ID);
    h->number = sg_get_be32(p + OFF_NUMBER);
    if (sg_rt_has_offset(h->type)) {
        h->data_offset = sg_get_be32(p + OFF_DATA_OFFSET);
    } else {
        h->buffer_id = sg_get_be32(p + OFF_BUFFER_ID);
        h->buffer_offset = sg_get_be32(p + OFF_BUFFER_OFFSET);
        h->rdma_len = sg_get_be32(p + OFF_RDMA_LEN);
    }
}

enum sg_wire_err sg_rt_parse(struct sg_span in, bool check_crc, struct sg_rt_seg *out)
{
    size_t whole, seg_len, head, control;
    enum sg_wire_err err = sg_rt_peek(in, &whole);

    if (err != SG_WIRE_OK) {
        return err;
    }
    if (in.len < whole) {
        return SG_WIRE_MORE;
    }
    if (check_crc && sg_crc32m(0, in.p, whole - CRC_LEN) != sg_get_be32(in.p + whole - CRC_LEN)) {
        return SG_WIRE_BAD_CRC;
    }
    seg_len = sg_get_be16(in.p + OFF_SEG_LEN);
    head = sg_rt_hdr_len(in.p[OFF_FLAGS] & TYPE_MASK);
    control = (size_t)in.p[OFF_CLEN] * SG_RT_WORD;
    if (seg_len < head + control) {
        return SG_WIRE_BAD_LENGTH;
    }
    parse_header(in.p, &out->h);
    out->control = sg_span_of(in.p + head, control);
    out->payload = sg_span_of(in.p + head + control, seg_len - head - control);
    return out->h.type == SG_RT_READ_REQ && out->payload.len ? SG_WIRE_BAD_LENGTH : SG_WIRE_OK;
}

const char *sg_rt_type_name(uint8_t type)
{
    static const char *const names[] = {
        [SG_RT_SEND] = "Send",
        [SG_RT_WRITE] = "Write",
        [SG_RT_READ_REQ] = "Read Request",
        [SG_RT_READ_RESP] = "Read Response",
    };

    return names[type & TYPE_MASK];
}

enum sg_wire_err sg_rt_setup_parse(struct sg_span in, struct sg_rt_setup *out)
{
    memset(out, 0, sizeof(*out));
    if (in.len != SG_RT_SETUP_WORDS * SG_RT_WORD) {
        return in.len < SG_RT_SETUP_WORDS * SG_RT_WORD ? SG_WIRE_SHORT : SG_WIRE_BAD_LENGTH;
    }
    out->version = in.p[0];
    out->kind = in.p[1];
    out->ird = sg_get_be16(in.p + 4);
    out->ord = sg_get_be16(in.p + 6);
    return SG_WIRE_OK;
}

size_t sg_rt_setup_emit(const struct sg_rt_setup *s, uint8_t *buf)
{
    buf[0] = s->version;
    buf[1] = s->kind;
    sg_put_be16(buf + 2, 0);
    sg_put_be16(buf + 4, s->ird);
    sg_put_be16(buf + 6, s->ord);
    return SG_RT_SETUP_WORDS * SG_RT_WORD;
}
