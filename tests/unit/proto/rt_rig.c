/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/conn.h"
#include "rt_rig.h"
#include "tap.h"

struct rt_peer rt_peer;

/* One bit at a time, as the document defines it. */
static uint32_t crc_of(const uint8_t *p, size_t n)
{
    uint32_t crc = UINT32_MAX;
    unsigned bit;

    for (; n; n--, p++) {
        crc ^= *p;
        for (bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0x82608edb : 0);
        }
    }
    return ~crc;
}

size_t rt_build(const struct rt_fields *f, uint8_t *out)
{
    bool target = f->type == RT_WRITE || f->type == RT_READ_REQ;
    size_t at = target ? 32 : 24, i;

    out[0] = f->version ? f->version : 1;
    out[1] = f->flags | f->type;
    sg_put_be64(out + 4, f->conn_id ? f->conn_id : rt_peer.conn_id);
    sg_put_be32(out + 12, f->number);
    sg_put_be16(out + 16, f->order);
    out[18] = f->reserved;
    out[19] = f->clen;
    if (target) {
        sg_put_be32(out + 20, f->buffer);
        sg_put_be32(out + 24, f->offset);
        sg_put_be32(out + 28, f->length);
    } else {
        sg_put_be32(out + 20, f->offset);
    }
    for (i = 0; i < f->clen; i++, at += 4) {
        sg_put_be32(out + at, f->control[i % 2]);
    }
    if (f->n) {
        memcpy(out + at, f->p, f->n);
    }
    at = f->seg_len ? f->seg_len : at + f->n;
    sg_put_be16(out + 2, (uint16_t)at);
    while (at % 4) {
        out[at++] = f->pad;
    }
    sg_put_be32(out + at, crc_of(out, at) ^ f->bad_crc);
    return at + 4;
}

void rt_say(const struct rt_fields *f)
{
    static uint8_t out[66000];

    rig_say_octets(out, rt_build(f, out));
}

bool rt_say_early(const struct rt_fields *f, uint32_t ahead)
{
    static uint8_t out[66000];
    size_t n = rt_build(f, out);
    struct sg_stream *s = rig->c->stream;
    bool taken = s->events->receive_early(s, ahead, out, n);

    rig_settle();
    return taken;
}

void rt_say_dropped(size_t n, size_t piece)
{
    static const uint8_t other[66000] = { 0xee, 0xee };

    for (; n; n -= SG_MIN(n, piece)) {
        rig_say_octets(other, SG_MIN(n, piece));
    }
}

struct rt_fields rt_hear(void)
{
    const uint8_t *p = rig->in + rig->in_used;
    size_t have = rig->in_len - rig->in_used, len, head, i;
    struct rt_fields f = { 0 };

    T_TRUE(have >= 28);
    len = sg_get_be16(p + 2);
    T_TRUE(((len + 3) & ~(size_t)3) + 4 <= have);
    f.version = p[0];
    f.type = p[1] & 3;
    f.flags = p[1] & 0xfc;
    f.conn_id = sg_get_be64(p + 4);
    f.number = sg_get_be32(p + 12);
    f.order = sg_get_be16(p + 16);
    T_EQ_U64(p[18], 0);
    f.clen = p[19];
    head = f.type == RT_WRITE || f.type == RT_READ_REQ ? 32 : 24;
    if (head == 32) {
        f.buffer = sg_get_be32(p + 20);
        f.offset = sg_get_be32(p + 24);
        f.length = sg_get_be32(p + 28);
    } else {
        f.offset = sg_get_be32(p + 20);
    }
    T_TRUE(f.clen <= 2);
    for (i = 0; i < f.clen; i++, head += 4) {
        f.control[i] = sg_get_be32(p + head);
    }
    T_TRUE(len >= head);
    f.p = p + head;
    f.n = (uint32_t)(len - head);
    for (; len % 4; len++) {
        T_SHOWS("WIL-16") {
            T_EQ_U64(p[len], 0);
        }
    }
    T_EQ_U64(sg_get_be32(p + len), crc_of(p, len));
    rig->in_used += len + 4;
    return f;
}

void rt_start(uint32_t emss)
{
    struct sg_engine_config config = rig_config();
    const struct sg_mem_options net = { .emss = emss };

    config.wire = SG_ENGINE_RDMA_TCP_2000;
    rt_peer = (struct rt_peer){ .conn_id = 0x1020304050607080 };
    rig_start_net(&config, &net);
}

/* The setup message of the engine, whose number the following ones continue. */
static void hear_setup(uint32_t kind)
{
    struct rt_fields f = rt_hear();

    T_EQ_U64(f.flags, RT_SETUP | RT_BE);
    T_EQ_U64(f.type, RT_SEND);
    T_EQ_U64(f.clen, 2);
    T_EQ_U64(f.control[0], 0x01000000 | kind << 16);
    rt_peer.first = f.number;
    rt_peer.conn_id = f.conn_id;
}

void rt_active(void)
{
    const struct sg_conn_params p = { .ird = 8, .ord = 8 };
    const struct sg_endpoint any = { .family = 4 };
    enum sg_conn_end why;

    rig->c = sg_engine_connect(rig->e, &any, &rig->at_peer, &p, rig, &why);
    T_NOT_NULL(rig->c);
    rig_settle();
    hear_setup(1);
    rt_say(&(struct rt_fields){ .flags = RT_SETUP | RT_BE,
                                .number = RT_FIRST,
                                .clen = 2,
                                .control = { 0x01020000, 8 << 16 | 8 } });
    T_EQ_STR(rig_log(), "reply(OK,8/8,rev0)");
}

void rt_passive(void)
{
    uint64_t id = rt_peer.conn_id;

    rig_request(NULL);
    rt_say(&(struct rt_fields){ .flags = RT_SETUP | RT_BE,
                                .number = RT_FIRST,
                                .clen = 2,
                                .control = { 0x01010000, 8 << 16 | 8 } });
    T_EQ_STR(rig_log(), "request(8/8,rev0)");
    rig_accept(8, 8, NULL);
    T_EQ_STR(rig_log(), "established(8/8,rev0)");
    hear_setup(2);
    T_EQ_U64(rt_peer.conn_id, id);
}

static void post(const struct sg_msg *m)
{
    rig->queue[rig->tail++ % RIG_QUEUE] = *m;
    sg_conn_wake(rig->c);
    rig_settle();
}

void rt_post_send(uint64_t cookie, uint32_t length)
{
    post(&(struct sg_msg){ .kind = SG_MSG_SEND, .cookie = cookie, .send.length = length });
}

void rt_post_write(uint64_t cookie, uint32_t length, uint32_t stag, uint64_t to)
{
    post(&(struct sg_msg){ .kind = SG_MSG_WRITE,
                           .cookie = cookie,
                           .write = { .length = length, .stag = stag, .to = to } });
}

void rt_post_read(uint32_t length, uint64_t to, uint64_t sink_to)
{
    post(&(struct sg_msg){ .kind = SG_MSG_READ_REQ,
                           .read = { .length = length,
                                     .stag = 0x77,
                                     .to = to,
                                     .sink_stag = RIG_STAG_RW,
                                     .sink_to = sink_to } });
}
