/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams over lwIP: received data, the segments of sent data, windows.
 */
#include "tap.h"
#include "peer.h"
#include "base/bytes.h"

enum { PORT = 4791 };

static bool is_closed(void *data)
{
    return ((struct peer *)data)->closes != 0;
}

static bool all_arrived(void *data)
{
    struct peer **p = data;

    return p[0]->received >= p[1]->to_send && p[1]->received >= p[0]->to_send;
}

static void transfer(uint64_t seed, unsigned mtu, struct wire_faults faults, uint64_t octets,
                     size_t unit)
{
    struct wire *w = wire_new(seed, mtu, NULL);
    struct peer a = { .to_send = octets, .unit = unit }, b = { .to_send = octets / 2 };
    struct peer *both[2] = { &a, &b };
    struct sg_port_counters ca, cb;
    struct sg_net_counters net;

    T_CONTEXT("seed %" PRIu64 ", MTU %u, loss %u, reorder %u, duplicate %u, corrupt %u", seed, mtu,
              faults.loss, faults.reorder, faults.duplicate, faults.corrupt);
    a.shut_on_peer_close = b.shut_on_peer_close = true;
    T_TRUE(peer_pair(w, &a, &b, PORT));
    w->faults = faults;
    T_TRUE(wire_run(w, all_arrived, both, 3600 * WIRE_S));
    T_FALSE(a.damaged);
    T_FALSE(b.damaged);
    T_EQ_U64(a.received, b.to_send);
    T_EQ_U64(b.received, a.to_send);
    sg_port_counters(w->host[0].port, &ca);
    sg_port_counters(w->host[1].port, &cb);
    if (!faults.loss && !faults.corrupt && !faults.reorder) {
        T_EQ_U64(ca.retransmits, 0);
    }
    if (faults.loss && octets / mtu > 500) {
        T_TRUE(ca.retransmits > 0);
    }
    w->host[0].net->ops->counters(w->host[0].net, &net);
    T_EQ_U64(net.tcp_retransmits, ca.retransmits);
    T_EQ_U64(net.tx_frames, ca.frames_out);
    T_EQ_U64(net.rx_frames, ca.frames_in);
    T_EQ_U64(net.tx_dropped_frames, 0);
    T_TRUE(net.tx_frames > octets / mtu && net.rx_frames > octets / 2 / mtu);
    if (faults.corrupt && octets / mtu > 500) {
        T_TRUE(ca.checksum_errors + cb.checksum_errors > 0);
    }
    peer_shutdown(&a);
    T_TRUE(wire_run(w, is_closed, &a, 600 * WIRE_S));
    T_TRUE(wire_run(w, is_closed, &b, 600 * WIRE_S));
    T_EQ_INT(a.end, SG_STREAM_CLOSED);
    T_FALSE(a.upcall_in_call || b.upcall_in_call);
    wire_free(w);
}

static void transfer__clean_wire(void)
{
    static const unsigned mtus[] = { 576, 1500, 4096, 9000, 65520, 65521 };
    struct wire_faults none = { 0 };
    size_t i;

    for (i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
        transfer(100 + i, mtus[i], none, 6 * 1024 * 1024, 0);
        transfer(200 + i, mtus[i], none, 300000, 100);
    }
}

static void transfer__bad_wire(void)
{
    static const struct {
        unsigned mtu;
        struct wire_faults faults;
    } rows[] = {
        { 1500, { .loss = 10 } },
        { 1500, { .reorder = 100 } },
        { 1500, { .duplicate = 50 } },
        { 1500, { .corrupt = 10 } },
        { 1500, { .loss = 20, .reorder = 50, .duplicate = 20, .corrupt = 5 } },
        { 9000, { .loss = 20, .reorder = 50, .duplicate = 20, .corrupt = 5 } },
        { 65520, { .loss = 20, .reorder = 50, .duplicate = 20, .corrupt = 5 } },
        { 576, { .loss = 50, .reorder = 200, .duplicate = 50 } },
    };
    uint64_t seed;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (seed = 1; seed <= 4; seed++) {
            transfer(seed * 1000 + i, rows[i].mtu, rows[i].faults, 2 * 1024 * 1024, 0);
        }
    }
}

/* As between two adapters on one hub: sg_port_input() is entered from send_frame(). */
static void transfer__synchronous_wire(void)
{
    static const unsigned mtus[] = { 1500, 9000 };
    size_t i;

    for (i = 0; i < 2; i++) {
        struct wire *w = wire_new(90 + i, mtus[i], NULL);
        struct peer a = { .to_send = 8000000 }, b = { .to_send = 3000000 }, *both[2] = { &a, &b };
        struct sg_port_counters c;

        w->synchronous = true;
        T_TRUE(peer_pair(w, &a, &b, PORT));
        T_TRUE(wire_run(w, all_arrived, both, 60 * WIRE_S));
        T_FALSE(a.damaged || b.damaged);
        T_FALSE(a.upcall_in_call || b.upcall_in_call);
        sg_port_counters(w->host[0].port, &c);
        T_EQ_U64(c.dropped, 0);
        T_EQ_U64(c.retransmits, 0);
        peer_abort(&a);
        wire_settle(w, WIRE_S);
        T_EQ_INT(b.end, SG_STREAM_RESET);
        wire_free(w);
    }
}

/* Alignment: what the tap sees. */
struct alignment {
    size_t unit;
    uint32_t first_seq;
    bool started;
    unsigned segments, misaligned;
    size_t max_payload;
    unsigned mtu;
    bool oversize;
};

static void alignment_tap(struct wire *w, int from, const uint8_t *f, size_t len)
{
    struct alignment *t = w->tap_data;
    size_t head = 14 + 20, payload;

    if (from != 0 || sg_get_be16(f + 12) != 0x0800) {
        return;
    }
    t->oversize |= len > 14u + t->mtu;
    payload = len - head - (f[head + 12] >> 4) * 4u;
    if (f[head + 13] & 2) {
        t->first_seq = sg_get_be32(f + head + 4) + 1;
        t->started = true;
    }
    if (!payload || !t->started) {
        return;
    }
    t->segments++;
    t->max_payload = payload > t->max_payload ? payload : t->max_payload;
    if ((sg_get_be32(f + head + 4) - t->first_seq) % t->unit) {
        t->misaligned++;
    }
}

static bool b_has_all(void *data)
{
    struct peer **p = data;

    return p[1]->received >= p[0]->to_send;
}

static void emss__sends_of_that_size_are_segments(void)
{
    static const unsigned mtus[] = { 576, 1500, 9000, 65520 };
    size_t i, j;

    for (i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
        for (j = 0; j < 2; j++) {
            struct wire *w = wire_new(300 + i, mtus[i], NULL);
            struct peer a = { 0 }, b = { 0 }, *both[2] = { &a, &b };
            struct alignment t = { .unit = 1, .mtu = mtus[i] };

            T_CONTEXT("MTU %u, %s", mtus[i], j ? "loss" : "clean");
            w->tap = alignment_tap;
            w->tap_data = &t;
            T_TRUE(peer_pair(w, &a, &b, PORT));
            /* Makes b's full window known: its first ACK is scaled. */
            a.unit = 1;
            a.to_send = 1;
            peer_send(&a);
            T_TRUE(wire_run(w, b_has_all, both, WIRE_S));
            wire_settle(w, WIRE_S);
            t.first_seq++;
            t.segments = 0;
            t.unit = a.unit = a.s->ops->emss(a.s);
            T_EQ_U64(t.unit, mtus[i] - 52);
            w->faults.loss = j ? 20 : 0;
            a.to_send += 400 * a.unit;
            peer_send(&a);
            T_TRUE(wire_run(w, b_has_all, both, 600 * WIRE_S));
            T_FALSE(b.damaged);
            T_EQ_INT(t.misaligned, 0);
            T_FALSE(t.oversize);
            T_EQ_U64(t.max_payload, t.unit);
            if (!j) {
                T_EQ_INT(t.segments, 400);
            }
            wire_free(w);
        }
    }
}

/* Small sends may share a segment, but a segment never begins inside a send. */
static void congest_tap(struct wire *w, int from, const uint8_t *frame, size_t len)
{
    unsigned *segments = w->tap_data;

    if (from == 0 && len > 1000) {
        ++*segments;
        w->host[0].congested = true;
    }
}

/* Whatever the windows allow, after 128 KiB the sender asks whether the uplink takes more. */
static void uplink__is_asked_again(void)
{
    struct wire *w = wire_new(72, 1076, NULL);
    struct peer a = { 0 }, b = { 0 }, *both[2] = { &a, &b };
    unsigned segments = 0;

    T_TRUE(peer_pair(w, &a, &b, PORT));
    a.unit = a.s->ops->emss(a.s);
    T_EQ_U64(a.unit, 1024);
    a.to_send = 8000 * 1024; /* opens the congestion window */
    peer_send(&a);
    T_TRUE(wire_run(w, all_arrived, both, 60 * WIRE_S));
    w->tap = congest_tap;
    w->tap_data = &segments;
    w->host[0].congested = true;
    a.to_send += 200 * 1024;
    peer_send(&a);
    T_EQ_INT(segments, 0);
    w->host[0].congested = false;
    sg_port_uplink_ready(w->host[0].port);
    wire_settle(w, 0);
    T_EQ_INT(segments, 128);
    wire_free(w);
}

static void emss__smaller_sends_begin_segments(void)
{
    struct wire *w = wire_new(350, 1500, NULL);
    struct peer a = { 0 }, b = { 0 }, *both[2] = { &a, &b };
    struct alignment t = { .unit = 1000, .mtu = 1500 };

    w->tap = alignment_tap;
    w->tap_data = &t;
    T_TRUE(peer_pair(w, &a, &b, PORT));
    w->faults.loss = 10;
    a.unit = 1000;
    a.to_send = 1000 * 1000;
    peer_send(&a);
    T_TRUE(wire_run(w, b_has_all, both, 600 * WIRE_S));
    T_EQ_INT(t.misaligned, 0);
    T_FALSE(b.damaged);
    w->faults.loss = 0;
    wire_settle(w, 5 * WIRE_S);
    t.first_seq += 1000 * 1000;
    t.unit = a.unit = 100;
    t.segments = 0;
    a.to_send += 100 * 1000;
    peer_send(&a);
    T_TRUE(wire_run(w, b_has_all, both, 600 * WIRE_S));
    T_EQ_INT(t.misaligned, 0);
    T_TRUE(t.segments < 100);
    wire_free(w);
}

static void mtu__smaller_one_is_obeyed(void)
{
    struct wire *w = wire_new(16, 9000, NULL);
    struct peer a = { 0 }, b = { 0 }, *both[2] = { &a, &b };
    struct alignment t = { .unit = 1, .mtu = 1500 };

    T_TRUE(peer_pair(w, &a, &b, PORT));
    wire_settle(w, WIRE_S);
    w->host[0].net->ops->set_mtu(w->host[0].net, 1500);
    w->tap = alignment_tap;
    w->tap_data = &t;
    a.to_send = 1000000;
    peer_send(&a);
    T_TRUE(wire_run(w, b_has_all, both, 60 * WIRE_S));
    T_FALSE(t.oversize);
    T_FALSE(b.damaged);
    wire_free(w);
}

static void window__full_and_writable_again(void)
{
    struct wire *w = wire_new(12, 1500, NULL);
    struct peer a = { 0 }, b = { 0 }, *both[2] = { &a, &b };
    size_t room;

    T_TRUE(peer_pair(w, &a, &b, PORT));
    room = a.s->ops->room(a.s);
    T_EQ_U64(room, 1024 * 1024);
    a.unit = 10000;
    a.to_send = 20 * 1000 * 1000;
    peer_send(&a);
    T_TRUE(a.sent <= room && a.sent > room - 10000);
    T_EQ_INT(a.writables, 0);
    T_TRUE(wire_run(w, b_has_all, both, 600 * WIRE_S));
    T_TRUE(a.writables > 10);
    T_FALSE(b.damaged);
    T_FALSE(a.upcall_in_call);
    wire_free(w);
}

/* A scripted peer in place of the second station: small windows, then none, then some. */
struct script {
    struct wire *w;
    uint32_t next; /* the sequence number that it expects */
    uint32_t edge; /* end of the window announced last */
    uint32_t first;
    uint16_t window;
    uint64_t received;
    bool overrun, damaged;
};

static void script_answer(struct script *t, const struct wire_segment *in, uint8_t flags)
{
    uint8_t frame[64];
    struct wire_segment s = {
        .dst_mac = t->w->host[0].mac,
        .src_mac = t->w->host[1].mac,
        .src = in->dst,
        .dst = in->src,
        .flags = flags,
        .ack = t->next,
        .window = t->window,
        .seq = flags & 2 ? 1000 : 1001,
    };

    t->edge = t->next + t->window;
    wire_inject(t->w, 0, frame, wire_build(frame, &s));
}

static void script_tap(struct wire *w, int from, const uint8_t *f, size_t len)
{
    struct script *t = w->tap_data;
    const uint8_t *tcp = f + 34;
    struct wire_segment in = {
        .src = wire_endpoint(&w->host[0], 0),
        .dst = wire_endpoint(&w->host[1], PORT),
    };
    uint32_t seq;
    size_t n;

    if (from != 0 || sg_get_be16(f + 12) != 0x0800) {
        return;
    }
    in.src.port = sg_get_be16(tcp);
    seq = sg_get_be32(tcp + 4);
    n = len - 34 - (tcp[12] >> 4) * 4u;
    if (tcp[13] & 2) {
        t->next = t->first = seq + 1;
        script_answer(t, &in, 0x12);
        return;
    }
    /* One octet beyond is a window probe (RFC 9293, section 3.8.6.1). */
    t->overrun |= (int32_t)(seq + n - t->edge) > (t->edge == t->next ? 1 : 0);
    if (n && seq == t->next && (int32_t)(seq + n - t->edge) <= 0) {
        t->next += n;
        t->received += n;
    }
    if (n || (int32_t)(seq - t->next) < 0) { /* a keep-alive is below the window */
        script_answer(t, &in, 0x10);
    }
}

static bool script_has_all(void *data)
{
    struct script *t = data;

    return t->received >= 20000;
}

static void window__tiny_and_closed_ones(void)
{
    static const uint16_t windows[] = { 100, 300, 500, 1000, 5000 };
    size_t i;

    for (i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        struct wire *w = wire_new(400 + i, 1500, NULL);
        struct script t = { .w = w, .window = windows[i] };
        struct sg_endpoint to = wire_endpoint(&w->host[1], PORT);
        struct peer a = { .to_send = 20000 };
        enum sg_stream_end why;

        T_CONTEXT("window %u", windows[i]);
        w->tap = script_tap;
        w->tap_data = &t;
        w->host[1].drops_tcp = true;
        T_TRUE(peer_connect(w, &a, 0, &to, &why));
        wire_settle(w, 5 * WIRE_S);
        T_EQ_INT(a.connects, 1);
        T_TRUE(t.received > 0);
        T_FALSE(t.overrun);
        t.window = 0;
        wire_settle(w, 60 * WIRE_S); /* the next answer closes it; probes follow */
        T_FALSE(t.overrun);
        T_EQ_INT(a.closes, 0);
        t.window = windows[i];
        T_TRUE(wire_run(w, script_has_all, &t, 3600 * WIRE_S));
        T_FALSE(t.overrun);
        T_EQ_INT(a.closes, 0);
        wire_free(w);
    }
}

/* Acknowledgements: frames of one host are kept and delivered to the other all at once. */
struct kept_frames {
    GPtrArray *data;    /* GBytes: frames with payload of host 0 */
    unsigned bare_acks; /* frames of host 1 */
};

static void keep_tap(struct wire *w, int from, const uint8_t *f, size_t len)
{
    struct kept_frames *k = w->tap_data;

    if (from == 1) {
        k->bare_acks++;
    } else if (len > 100) {
        g_ptr_array_add(k->data, g_bytes_new(f, len));
    }
}

static void acks__one_for_what_comes_in_one_go(void)
{
    struct wire *w = wire_new(71, 1500, NULL);
    struct peer a = { .unit = 1000 }, b = { 0 }, *both[2] = { &a, &b };
    struct kept_frames k = { .data = g_ptr_array_new() };
    unsigned i;

    g_ptr_array_set_free_func(k.data, (GDestroyNotify)g_bytes_unref);
    T_TRUE(peer_pair(w, &a, &b, PORT));
    w->tap = keep_tap;
    w->tap_data = &k;
    w->host[1].drops_all = true;
    a.to_send = 9000; /* within the first window */
    peer_send(&a);
    wire_settle(w, WIRE_MS);
    T_TRUE(k.data->len >= 4);
    w->host[1].drops_all = false;
    for (i = 0; i < k.data->len; i++) {
        size_t len;
        const uint8_t *f = g_bytes_get_data(g_ptr_array_index(k.data, i), &len);

        sg_port_input(w->host[1].port, f, len);
    }
    T_EQ_U64(b.received, 1000 * k.data->len);
    T_EQ_U64(k.bare_acks, 0);
    wire_settle(w, 0);
    T_EQ_U64(k.bare_acks, 1);
    a.to_send = 3000000; /* a quarter of the window at most is left without one, so it all flows */
    peer_send(&a);
    T_TRUE(wire_run(w, b_has_all, both, 60 * WIRE_S));
    g_ptr_array_unref(k.data);
    wire_free(w);
}

static const struct t_case cases[] = {
    { "transfer: clean wire, MTU 576 to 65521", transfer__clean_wire },
    { "transfer: loss, reordering, duplication, corruption", transfer__bad_wire },
    { "transfer: synchronous wire", transfer__synchronous_wire },
    { "emss: sends of that size are segments", emss__sends_of_that_size_are_segments },
    { "emss: segments begin where sends begin", emss__smaller_sends_begin_segments },
    { "uplink: is asked again after 128 KiB", uplink__is_asked_again },
    { "MTU: a smaller one is obeyed", mtu__smaller_one_is_obeyed },
    { "window: full, and writable again", window__full_and_writable_again },
    { "acknowledgements: one for what comes in one go", acks__one_for_what_comes_in_one_go },
    { "window: tiny and closed ones", window__tiny_and_closed_ones },
};

T_MAIN(cases)
