/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hand-made peer; see raw.h.
 */
#include <string.h>

#include "tap.h"
#include "raw.h"
#include "base/bytes.h"

uint8_t raw_pattern(uint64_t at)
{
    return (uint8_t)(at * 31 + (at >> 8) * 7 + (at >> 16));
}

size_t raw_taken(const struct raw *r)
{
    return (size_t)(r->ack - r->base) - r->fin;
}

/* RFC 7323, section 2.2. */
static unsigned scale_of(const uint8_t *tcp)
{
    unsigned at = 20, end = (tcp[12] >> 4) * 4u;

    while (at + 2 < end && tcp[at] != 3) {
        at += tcp[at] == 1 ? 1 : MAX(tcp[at + 1], 2);
    }
    return at + 2 < end ? tcp[at + 2] : 0;
}

static void tap(struct wire *w, int from, const uint8_t *f, size_t len)
{
    struct raw *r = w->tap_data;
    const uint8_t *tcp = f + 34, *data;
    size_t n, i;
    uint32_t seq, known;

    if (from != 1 || len < 54 || sg_get_be16(f + 12) != 0x0800) {
        return;
    }
    seq = sg_get_be32(tcp + 4);
    data = tcp + (tcp[12] >> 4) * 4;
    n = (size_t)(f + 14 + sg_get_be16(f + 16) - data);
    if (tcp[13] & SYN) {
        r->base = r->ack = seq + 1;
        r->scale = scale_of(tcp);
        return;
    }
    r->edge = sg_get_be32(tcp + 8) + ((uint32_t)sg_get_be16(tcp + 14) << r->scale);
    r->bare += n == 0;
    r->first_frame = r->frames || n == 0 ? r->first_frame : n;
    r->frames += n != 0;
    r->largest = MAX(r->largest, n);
    known = r->ack - seq; /* octets that came before; a window probe was the first of these */
    if (r->lossy || known > n || r->fin) {
        return;
    }
    for (i = known; i < n; i++) {
        r->damaged |= data[i] != raw_pattern(raw_taken(r) + i - known);
    }
    r->ack = seq + (uint32_t)n;
    if (tcp[13] & FIN) {
        r->fin = true;
        r->ack++;
    }
}

static uint8_t segment[10000];

/* A segment of 'n' octets of the pattern whose first one is number 'at' of ours. */
static size_t build(struct raw *r, uint8_t flags, size_t at, size_t n, const char *options,
                    size_t options_len)
{
    static uint8_t payload[9000];
    struct wire_segment s = {
        .dst_mac = r->w->host[1].mac,
        .src_mac = r->w->host[0].mac,
        .src = wire_endpoint(&r->w->host[0], RAW_OTHER),
        .dst = wire_endpoint(&r->w->host[1], RAW_PORT),
        .flags = flags,
        .seq = r->first + (uint32_t)at,
        .ack = r->ack,
        .window = r->window,
        .payload = payload,
        .payload_len = n,
        .options = (const uint8_t *)options,
        .options_len = options_len,
    };
    size_t i;

    for (i = 0; i < n; i++) {
        payload[i] = raw_pattern(at + i);
    }
    return wire_build(segment, &s);
}

void raw_say(struct raw *r, uint8_t flags, size_t at, size_t n, const char *options,
             size_t options_len)
{
    wire_inject(r->w, 1, segment, build(r, flags, at, n, options, options_len));
    wire_settle(r->w, WIRE_MS);
}

unsigned raw_answers_at_once(struct raw *r, uint8_t flags, size_t at, size_t n)
{
    unsigned before = r->bare;

    sg_port_input(r->w->host[1].port, segment, build(r, flags, at, n, NULL, 0));
    return r->bare - before;
}

void raw_acknowledge(struct raw *r, unsigned window)
{
    r->window = (uint16_t)window;
    raw_say(r, ACK, r->next - r->first, 0, NO_OPTIONS);
}

void raw_shrink(struct raw *r, unsigned window)
{
    raw_say(r, ACK | PSH, r->next - r->first, 1, NO_OPTIONS);
    r->next++;
    raw_acknowledge(r, window);
}

void raw_open(struct raw *r, unsigned mtu, unsigned window, const char *options, size_t options_len)
{
    struct sg_endpoint any = { .family = 4, .port = RAW_PORT };
    enum sg_stream_end why;

    memset(r, 0, sizeof(*r));
    r->w = wire_new(1100, mtu, NULL);
    r->w->tap = tap;
    r->w->tap_data = r;
    r->w->host[0].drops_tcp = true;
    r->b.wire = r->w;
    r->l = r->w->host[1].net->ops->listen(r->w->host[1].net, &any, 4, peer_accept, &r->b, &why);
    r->first = 0x70000000;
    r->window = (uint16_t)window;
    raw_say(r, SYN, 0, 0, options, options_len);
    wire_settle(r->w, 10 * WIRE_MS);
    T_TRUE(r->base != 0);
    r->first++;
    r->next = r->first;
    raw_acknowledge(r, window);
    T_EQ_INT(r->b.connects, 1);
}

void raw_close(struct raw *r)
{
    T_FALSE(r->damaged || r->b.damaged);
    T_EQ_INT(r->b.closes, 0);
    r->w->host[1].net->ops->unlisten(r->w->host[1].net, r->l);
    wire_free(r->w);
}

void raw_send(struct raw *r, size_t n)
{
    r->b.unit = n;
    r->b.to_send += n;
    peer_send(&r->b);
    wire_settle(r->w, 10 * WIRE_MS);
}

void raw_take(struct raw *r, unsigned window)
{
    unsigned i;

    for (i = 0; i < 100 && raw_taken(r) < r->b.to_send; i++) {
        raw_acknowledge(r, window);
        wire_settle(r->w, WIRE_S / 2);
    }
    raw_acknowledge(r, window);
    T_EQ_U64(raw_taken(r), r->b.to_send);
}
