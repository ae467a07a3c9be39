/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wire_maker.h"

#include "wire/terminate.h"

enum {
    ETHERNET_LEN = 14,
    VLAN_LEN = 4,
    IPV4_LEN = 20,
    IPV6_LEN = 40,
    TCP_LEN = 20,
    FIRST_SEQ = 0xfffffc00, /* sequence numbers wrap soon */
    SINK_STAG = 0x5151,
};

void maker_init(struct maker *m)
{
    static uint16_t port = 700;

    memset(m, 0, sizeof(*m));
    m->out = g_string_new(NULL);
    m->report = (struct rr_report){ .all = true, .out = m->out };
    m->decode = rr_decode_new(&m->report, NULL, 0);
    m->client = m->server = (struct rr_private){
        .present = true, .remote_inv = true, .send_size = 4096, .recv_size = 4096
    };
    m->crc = true;
    m->rev = SG_MPA_REV_1;
    m->client_port = port++;
    m->server_port = MAKER_PORT;
    m->held = g_ptr_array_new();
}

static void pass(struct maker *m, GByteArray *frame)
{
    rr_decode_frame(m->decode, RR_LINK_ETHERNET, sg_span_of(frame->data, frame->len), frame->len);
}

static void put_ends(struct maker *m, enum rr_dir dir, uint8_t *ip)
{
    static const uint8_t address[2] = { 11, 22 };

    if (m->ipv6) {
        ip[8] = ip[24] = 0xfd;
        ip[23] = address[dir];
        ip[39] = address[!dir];
    } else {
        memcpy(ip + 12, (uint8_t[]){ 192, 0, 2, address[dir] }, 4);
        memcpy(ip + 16, (uint8_t[]){ 192, 0, 2, address[!dir] }, 4);
    }
}

static void put_ip(struct maker *m, enum rr_dir dir, uint8_t *ip, size_t payload)
{
    if (m->ipv6) {
        ip[0] = 0x60;
        sg_put_be16(ip + 4, (uint16_t)payload);
        ip[6] = 6;
    } else {
        ip[0] = 0x45;
        sg_put_be16(ip + 2, (uint16_t)(IPV4_LEN + payload));
        ip[9] = 6;
    }
    put_ends(m, dir, ip);
}

void maker_tcp(struct maker *m, enum rr_dir dir, uint8_t flags, struct sg_span octets)
{
    size_t ip_at = ETHERNET_LEN + (m->vlan ? VLAN_LEN : 0);
    size_t tcp_at = ip_at + (m->ipv6 ? IPV6_LEN : IPV4_LEN);
    size_t len = tcp_at + TCP_LEN + octets.len;
    GByteArray *frame = g_byte_array_sized_new((guint)len);
    uint8_t *p;

    g_byte_array_set_size(frame, (guint)len);
    p = frame->data;
    memset(p, 0, tcp_at + TCP_LEN);
    sg_put_be16(p + ip_at - 2, m->ipv6 ? 0x86dd : 0x0800);
    if (m->vlan) {
        sg_put_be16(p + 12, 0x8100);
    }
    put_ip(m, dir, p + ip_at, TCP_LEN + octets.len);
    sg_put_be16(p + tcp_at, dir == RR_OUT ? m->client_port : m->server_port);
    sg_put_be16(p + tcp_at + 2, dir == RR_OUT ? m->server_port : m->client_port);
    sg_put_be32(p + tcp_at + 4, m->seq[dir]);
    sg_put_be32(p + tcp_at + 8, m->seq[!dir]);
    p[tcp_at + 12] = TCP_LEN / 4 << 4;
    p[tcp_at + 13] = flags;
    if (octets.len) {
        memcpy(p + tcp_at + TCP_LEN, octets.p, octets.len);
    }
    m->seq[dir] += (uint32_t)octets.len + !!(flags & (RR_SYN | RR_FIN));
    if (m->hold) {
        g_ptr_array_add(m->held, frame);
    } else {
        pass(m, frame);
        g_byte_array_free(frame, true);
    }
}

void maker_startup(struct maker *m)
{
    for (unsigned dir = 0; dir < 2; dir++) {
        const struct rr_private *p = dir == RR_OUT ? &m->client : &m->server;
        uint8_t pd[RR_PRIVATE_LEN], frame[SG_MPA_FRAME_MAX];
        struct sg_mpa_frame f = {
            .kind = dir == RR_OUT ? SG_MPA_REQUEST : SG_MPA_REPLY,
            .crc = m->crc,
            .markers = m->markers,
            .rev = (uint8_t)m->rev,
            .enhanced = m->rev == SG_MPA_REV_2,
            .p2p = m->p2p,
            .rtr = m->p2p ? SG_MPA_RTR_SEND : 0,
        };

        rr_private_emit(p, pd);
        pd[5] |= dir == RR_OUT ? m->reserved : 0;
        f.pd = p->present ? sg_span_of(pd, sizeof(pd)) : SG_SPAN_NONE;
        f.pd = m->raw[dir].p ? m->raw[dir] : f.pd;
        maker_tcp(m, dir, RR_ACK, sg_span_of(frame, sg_mpa_frame_emit(&f, frame)));
    }
    if (m->p2p) {
        maker_send(m, RR_OUT, SG_OP_SEND, 0, SG_SPAN_NONE);
    }
}

void maker_open(struct maker *m)
{
    for (unsigned dir = 0; dir < 2; dir++) {
        m->seq[dir] = FIRST_SEQ + 77 * dir + 1000000 * m->opened;
        m->pos[dir] = 0;
        m->msn[dir] = m->read_msn[dir] = SG_DDP_FIRST_MSN;
    }
    m->opened++;
    maker_tcp(m, RR_OUT, RR_SYN, SG_SPAN_NONE);
    maker_tcp(m, RR_BACK, RR_SYN | RR_ACK, SG_SPAN_NONE);
    maker_startup(m);
}

void maker_fin(struct maker *m, enum rr_dir dir)
{
    maker_tcp(m, dir, RR_FIN | RR_ACK, SG_SPAN_NONE);
}

static void fpdu(struct maker *m, enum rr_dir dir, const struct sg_ddp_hdr *ddp,
                 struct sg_span payload)
{
    static uint8_t wire[SG_FPDU_WIRE_MAX];
    unsigned flags = (m->crc ? SG_FPDU_CRC_ON : 0) | (m->markers ? SG_FPDU_MARKERS : 0);
    uint8_t header[SG_DDP_HDR_MAX];
    struct sg_span parts[2] = { { header, sg_ddp_emit(ddp, header) }, payload };
    size_t len = sg_fpdu_emit(wire, m->pos[dir], flags, parts, 2);

    m->pos[dir] += (uint32_t)len;
    maker_tcp(m, dir, RR_ACK, sg_span_of(wire, len));
}

static uint8_t control(uint8_t opcode)
{
    return sg_rdmap_ctrl_emit(
        (struct sg_rdmap_ctrl){ .version = SG_RDMAP_VERSION, .opcode = opcode });
}

static void untagged(struct maker *m, enum rr_dir dir, struct sg_ddp_hdr ddp, uint8_t opcode,
                     struct sg_span octets)
{
    size_t at = 0;

    ddp.version = SG_DDP_VERSION;
    ddp.ulp_ctrl = control(opcode);
    do {
        struct sg_span part = sg_span_head(sg_span_from(octets, at), MAKER_SEGMENT);

        ddp.mo = (uint32_t)at;
        at += part.len;
        ddp.last = at == octets.len;
        fpdu(m, dir, &ddp, part);
    } while (at < octets.len);
}

static void tagged(struct maker *m, enum rr_dir dir, uint8_t opcode, uint32_t stag, uint64_t to,
                   struct sg_span octets)
{
    struct sg_ddp_hdr ddp = {
        .tagged = true, .version = SG_DDP_VERSION, .ulp_ctrl = control(opcode), .stag = stag
    };
    size_t at = 0;

    do {
        struct sg_span part = sg_span_head(sg_span_from(octets, at), MAKER_SEGMENT);

        ddp.to = to + at;
        at += part.len;
        ddp.last = at == octets.len;
        fpdu(m, dir, &ddp, part);
    } while (at < octets.len);
}

void maker_send(struct maker *m, enum rr_dir dir, uint8_t opcode, uint32_t stag,
                struct sg_span octets)
{
    struct sg_ddp_hdr ddp = { .qn = SG_QN_SEND, .msn = m->msn[dir]++, .ulp_word = stag };

    untagged(m, dir, ddp, opcode, octets);
}

void maker_write(struct maker *m, enum rr_dir dir, uint32_t stag, uint64_t to,
                 struct sg_span octets)
{
    tagged(m, dir, SG_OP_WRITE, stag, to, octets);
}

void maker_read(struct maker *m, enum rr_dir dir, uint32_t stag, uint64_t to, struct sg_span octets)
{
    struct sg_read_req request = { SINK_STAG, 0x9000, (uint32_t)octets.len, stag, to };
    struct sg_ddp_hdr ddp = { .qn = SG_QN_REQUEST, .msn = m->read_msn[dir]++ };
    uint8_t buf[SG_READ_REQ_LEN];

    untagged(m, dir, ddp, SG_OP_READ_REQ, sg_span_of(buf, sg_read_req_emit(&request, buf)));
    tagged(m, !dir, SG_OP_READ_RESP, SINK_STAG, 0x9000, octets);
}

void maker_terminate(struct maker *m, enum rr_dir dir, uint8_t layer, uint8_t etype, uint8_t code,
                     uint16_t seg_len)
{
    struct sg_ddp_hdr ddp = { .qn = SG_QN_TERMINATE, .msn = SG_DDP_FIRST_MSN };
    struct sg_term t = { .layer = layer,
                         .etype = etype,
                         .code = code,
                         .has_len = true,
                         .has_ddp = true,
                         .seg_len = seg_len,
                         .ddp = { .version = SG_DDP_VERSION, .qn = SG_QN_SEND } };
    uint8_t buf[SG_TERM_MAX];

    untagged(m, dir, ddp, SG_OP_TERMINATE, sg_span_of(buf, sg_term_emit(&t, buf)));
}

void maker_release(struct maker *m, const size_t *order, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (order[i] != SIZE_MAX) {
            pass(m, m->held->pdata[order[i]]);
        }
    }
    for (guint i = 0; i < m->held->len; i++) {
        g_byte_array_free(m->held->pdata[i], true);
    }
    g_ptr_array_set_size(m->held, 0);
    m->hold = false;
}

void maker_finish(struct maker *m)
{
    rr_decode_free(m->decode);
}

void maker_free(struct maker *m)
{
    g_string_free(m->out, true);
    g_ptr_array_free(m->held, true);
}
