/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The peer: messages into segments, and the engine's segments back into messages. */
#include "rt_sim.h"

enum { B = 8, E = 4, SETUP = 0x80 };

static uint32_t crc_of(const uint8_t *p, size_t n)
{
    static uint32_t table[256];
    uint32_t crc, i, bit;

    for (i = 255; i && !table[1]; i--) { /* the one for 1 comes last */
        for (bit = 0, crc = i; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0x82608edb : 0);
        }
        table[i] = crc;
    }
    crc = UINT32_MAX;
    for (; n; n--, p++) {
        crc = crc >> 8 ^ table[(crc ^ *p) & 0xff];
    }
    return ~crc;
}

void rt_make_messages(struct rt_world *w)
{
    uint32_t ours = (uint32_t)sg_prng(&w->random), peers = (uint32_t)sg_prng(&w->random);
    struct rt_side *sides[2] = { &w->ours, &w->peer };
    unsigned k, i;

    if (rt_chance(w, 30)) {
        peers = UINT32_MAX - rt_below(w, RT_MESSAGES); /* wraps in the midst */
    }
    for (k = 0; k < 2; k++) {
        struct rt_side *s = sides[k];

        s->msgs = 1 + rt_below(w, RT_MESSAGES);
        for (i = 0; i < s->msgs; i++) {
            struct rt_msg *m = &s->msg[i];

            m->kind = (enum rt_kind)rt_below(w, 3);
            m->mark = (uint8_t)sg_prng(&w->random);
            m->number = (k ? peers : ours) + 1 + i;
            m->length = rt_chance(w, 30) ? rt_below(w, 5) : rt_below(w, RT_LENGTH + 1);
            m->order = rt_chance(w, 40) ? 0 : rt_chance(w, 50) ? 1 + rt_below(w, 8) : 0xffff;
        }
    }
}

/* Writes the segment's header; returns its length. */
static size_t put_header(struct rt_world *w, const struct rt_msg *m, unsigned index, uint8_t flags,
                         uint8_t *p)
{
    static const uint8_t types[] = { 0, 1, 2, 3 };

    p[0] = 1;
    p[1] = flags | types[m->kind];
    sg_put_be64(p + 4, w->conn_id);
    sg_put_be32(p + 12, m->number);
    sg_put_be16(p + 16, (uint16_t)m->order);
    p[18] = (uint8_t)sg_prng(&w->random); /* reserved: ignored */
    p[19] = 0;
    if (m->kind == RT_SEND || m->kind == RT_RESPONSE) {
        sg_put_be32(p + 20, m->sent);
        return 24;
    }
    sg_put_be32(p + 20, RT_STAG);
    sg_put_be32(p + 24, index * RT_LENGTH + m->sent);
    sg_put_be32(p + 28, m->length);
    if (rt_chance(w, 50)) { /* no upper half is one of 0 */
        return 32;
    }
    p[19] = 1;
    sg_put_be32(p + 32, 0);
    return 36;
}

/* The segment at w->out + made has n octets before its padding. */
static void finish(struct rt_world *w, size_t n)
{
    uint8_t *p = w->out + w->made;

    sg_put_be16(p + 2, (uint16_t)n);
    while (n % 4) {
        p[n++] = (uint8_t)sg_prng(&w->random); /* any padding */
    }
    sg_put_be32(p + n, crc_of(p, n));
    w->made += (uint32_t)n + 4;
    RT_CHECK(w, w->made < RT_WIRE - 8192 && w->cuts < 4096, "the run is too long for its buffer");
    w->cut[w->cuts++] = w->made;
}

static void segment_of(struct rt_world *w, struct rt_msg *m, unsigned index)
{
    uint32_t left = m->kind == RT_READ ? 0 : m->length - m->sent, len, i;
    uint8_t *p = w->out + w->made;
    size_t at;

    len = left && rt_chance(w, 60) ? rt_below(w, SG_MIN(left, 1400) + 1) : SG_MIN(left, 1400);
    at = put_header(w, m, index, (m->sent ? 0 : B) | (len == left ? E : 0), p);
    if (!m->sent && !len && left) {
        len = 1; /* B is in the first segment only, and the model counts by octets */
    }
    if (m->sent + len == m->length) {
        p[1] |= E;
    }
    for (i = 0; i < len; i++) {
        p[at + i] = rt_octet(m, m->sent + i);
    }
    m->sent += len;
    m->ended = p[1] & E;
    finish(w, at + len);
}

bool rt_make_segment(struct rt_world *w)
{
    struct rt_side *s = &w->peer;
    bool first = s->open < s->msgs, second = s->open_response < s->responses;
    unsigned reads = 0, i;

    if (first && !s->msg[s->open].sent && s->msg[s->open].kind == RT_READ) {
        for (i = 0; i < s->open; i++) {
            reads += s->msg[i].kind == RT_READ;
        }
        first = reads - s->answered < RT_IRD;
    }
    if (second && (!first || rt_chance(w, 50))) {
        segment_of(w, &s->response[s->open_response], 0);
        s->open_response += s->response[s->open_response].ended;
        return true;
    }
    if (first) {
        segment_of(w, &s->msg[s->open], s->open);
        s->open += s->msg[s->open].ended;
    }
    return first;
}

void rt_say_accept(struct rt_world *w)
{
    uint8_t *p = w->out;
    struct rt_msg m = { .kind = RT_SEND, .number = w->peer.msg[0].number - 1 };

    put_header(w, &m, 0, SETUP | B | E, p);
    p[19] = 2;
    sg_put_be32(p + 24, 0x01020000);
    sg_put_be32(p + 28, RT_IRD << 16 | RT_IRD);
    finish(w, 32);
}

/* ---- what the engine sends ---- */

/* The order that a Send or Write of ours must have: it leaves out unanswered Reads. */
static uint32_t order_due(const struct rt_world *w, const struct rt_msg *m)
{
    unsigned i, reads = 0;

    for (i = 0; i < w->ours.msgs && m->kind != RT_READ; i++) {
        const struct rt_msg *r = &w->ours.msg[i];

        if (r == m) {
            break;
        }
        if (r->kind == RT_READ && ++reads > w->ours.answered) {
            return m->number - r->number;
        }
    }
    return 0;
}

static void hear_message(struct rt_world *w, const uint8_t *p, size_t head, size_t n)
{
    struct rt_side *s = &w->ours;
    struct rt_msg *m = &s->msg[s->open];
    uint32_t i;

    RT_CHECK(w, s->open < s->msgs, "a message too many");
    if (!s->open && !m->sent) {
        uint32_t first = sg_get_be32(p + 12); /* the numbers that we chose are relative */

        for (i = s->msgs; i--;) {
            s->msg[i].number += first - s->msg[0].number;
        }
    }
    RT_CHECK(w, (p[1] & 3) == m->kind && sg_get_be32(p + 12) == m->number, "another message");
    RT_CHECK(w, !(p[1] & B) == (m->sent != 0), "B");
    if (!m->sent) {
        m->order = order_due(w, m);
        m->sent = 1; /* here: it has begun */
    }
    RT_CHECK(w, m->order == sg_get_be16(p + 16), "order %u of message %u", sg_get_be16(p + 16),
             s->open);
    if (m->kind == RT_SEND) {
        RT_CHECK(w, sg_get_be32(p + 20) == m->count, "Data Offset");
    } else {
        RT_CHECK(w,
                 sg_get_be32(p + 20) == RT_STAG && sg_get_be32(p + 28) == m->length &&
                     sg_get_be32(p + 24) == s->open * RT_LENGTH + m->count,
                 "Buffer ID, Buffer Offset or RDMA Length");
    }
    for (i = 0; i < n; i++) {
        RT_CHECK(w, p[head + i] == rt_octet(m, m->count + i), "octet %u", m->count + i);
    }
    m->count += (uint32_t)n;
    RT_CHECK(w, !(p[1] & E) == (m->kind != RT_READ && m->count < m->length), "E");
    if (p[1] & E) {
        if (m->kind == RT_READ) { /* the answer to it */
            w->peer.response[w->peer.responses++] = (struct rt_msg){
                .kind = RT_RESPONSE,
                .number = m->number,
                .length = m->length,
                .mark = (uint8_t)sg_prng(&w->random),
                .order = rt_chance(w, 40)   ? 0
                         : rt_chance(w, 50) ? 1 + rt_below(w, 4)
                                            : 0xffff,
            };
        }
        s->open++;
    }
}

static void hear_response(struct rt_world *w, const uint8_t *p, size_t head, size_t n)
{
    struct rt_side *s = &w->peer;
    unsigned i, reads = 0;
    uint32_t k;

    for (i = 0; i < s->msgs; i++) {
        struct rt_msg *m = &s->msg[i];

        if (m->kind != RT_READ || reads++ != s->answered) {
            continue;
        }
        RT_CHECK(w, sg_get_be32(p + 12) == m->number, "a Response with another number");
        RT_CHECK(w, sg_get_be16(p + 16) == 0xffff, "a Response with an order");
        RT_CHECK(w, sg_get_be32(p + 20) == m->sent, "Data Offset of a Response");
        RT_CHECK(w, !(p[1] & B) == (m->sent != 0), "B of a Response");
        for (k = 0; k < n; k++) {
            RT_CHECK(w, p[head + k] == rt_octet(m, m->sent + k), "octet of a Response");
        }
        m->sent += (uint32_t)n;
        RT_CHECK(w, !(p[1] & E) == (m->sent < m->length), "E of a Response");
        m->processed = p[1] & E;
        s->answered += m->processed;
        return;
    }
    rt_fail(w, "a Response to nothing");
}

void rt_hear(struct rt_world *w)
{
    while (w->in_len - w->in_used >= 4) {
        const uint8_t *p = w->in + w->in_used;
        size_t len = sg_get_be16(p + 2), whole = ((len + 3) & ~(size_t)3) + 4, head;

        if (w->in_len - w->in_used < whole) {
            return;
        }
        w->in_used += (uint32_t)whole;
        head = ((p[1] & 3) % 3 ? 32 : 24) + 4 * (size_t)p[19];
        RT_CHECK(w, crc_of(p, whole - 4) == sg_get_be32(p + whole - 4), "CRC of the engine's");
        RT_CHECK(w, p[0] == 1 && !p[18] && len >= head, "header of the engine's");
        if (p[1] & SETUP) {
            w->conn_id = sg_get_be64(p + 4);
            rt_say_accept(w);
            continue;
        }
        RT_CHECK(w, sg_get_be64(p + 4) == w->conn_id, "Connection ID of the engine's");
        if ((p[1] & 3) == RT_RESPONSE) {
            hear_response(w, p, head, len - head);
        } else {
            hear_message(w, p, head, len - head);
        }
    }
}
