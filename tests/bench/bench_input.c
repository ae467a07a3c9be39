/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The longest time for which a hostile peer can keep QEMU's lock with one frame, or with work that
 * one of its frames leaves to a timer.
 *
 *     bench_input [segments [holes]]
 *
 * One port, and a hand-made peer: its segments are as small and its windows as large as a peer may
 * demand, and it acknowledges what costs most.  Times are CPU time; the test sets the port's clock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "wire.h"

enum {
    PORT = 4791,
    PEER = 700,
    MSS = 256,
    SYN = 2,
    ACK = 16,
    BLOCKS = 4,
    WINDOW = 65535,
    ROUNDS = 20,
};

#define PEER_SEQ 0x70000000u

static struct sg_port *port;
static struct sg_stream *stream;
static const uint8_t mac[2][6] = { { 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 2 } };
static struct sg_endpoint at[2];
static uint64_t port_ns = 1000 * WIRE_S, longest, sum, worst;
static uint32_t base, sent; /* of the port: number of its first octet, octets that it has sent */
static unsigned calls, segments = 30000, holes = 20000;

static uint64_t cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void note(uint64_t begin)
{
    uint64_t took = cpu_ns() - begin;

    longest = SG_MAX(longest, took);
    sum += took;
    calls++;
}

static void end_row(const char *name)
{
    printf("%-58s %8.2f ms %10.1f ms %6u\n", name, (double)longest / 1e6, (double)sum / 1e6, calls);
    worst = SG_MAX(worst, longest);
    longest = sum = calls = 0;
}

static void send_frame(void *opaque, const struct iovec *iov, unsigned n)
{
    uint8_t f[128];
    size_t len = 0, part;
    uint32_t end;

    (void)opaque;
    for (unsigned i = 0; i < n && len < sizeof(f); i++) {
        part = SG_MIN(iov[i].iov_len, sizeof(f) - len);
        memcpy(f + len, iov[i].iov_base, part);
        len += part;
    }
    if (len < 54 || sg_get_be16(f + 12) != 0x0800) {
        return;
    }
    if (f[47] & SYN) {
        base = sg_get_be32(f + 38) + 1;
        return;
    }
    end = sg_get_be32(f + 38) + sg_get_be16(f + 16) - 20u - (f[46] >> 4) * 4u - base;
    sent = (int32_t)(end - sent) > 0 ? end : sent;
}

static uint64_t port_now(void *opaque)
{
    (void)opaque;
    return port_ns;
}

static void random_octets(void *opaque, void *buf, size_t len)
{
    (void)opaque;
    memset(buf, 7, len);
}

static void kick(void *opaque)
{
    (void)opaque;
}

static const struct sg_port_ops ops = {
    .send_frame = send_frame,
    .now = port_now,
    .random = random_octets,
    .kick = kick,
};

static void nothing(struct sg_stream *s)
{
    (void)s;
}

static void receive(struct sg_stream *s, const uint8_t *p, size_t n)
{
    (void)s, (void)p, (void)n;
}

static void closed(struct sg_stream *s, enum sg_stream_end why)
{
    (void)s;
    printf("# the connection has ended: %d\n", why);
    exit(1);
}

static const struct sg_stream_events events = {
    .connected = nothing,
    .receive = receive,
    .writable = nothing,
    .peer_closed = nothing,
    .closed = closed,
};

static bool accept_any(void *user, struct sg_stream *s)
{
    (void)user;
    s->events = &events;
    stream = s;
    return true;
}

static void run(uint64_t ns)
{
    struct sg_stream_net *net = sg_port_stream_net(port);
    uint64_t begin;

    port_ns += ns;
    begin = cpu_ns();
    net->ops->run(net, port_ns);
    note(begin);
}

static void say(uint8_t flags, uint32_t seq, uint32_t ack, const uint8_t *options, size_t len,
                size_t payload)
{
    static const uint8_t octets[8];
    uint8_t frame[300];
    struct wire_segment s = {
        .dst_mac = mac[0],
        .src_mac = mac[1],
        .src = at[1],
        .dst = at[0],
        .flags = flags,
        .seq = seq,
        .ack = ack,
        .window = WINDOW,
        .options = options,
        .options_len = len,
        .payload = octets,
        .payload_len = payload,
    };
    size_t n = wire_build(frame, &s);
    uint64_t begin = cpu_ns();

    sg_port_input(port, frame, n);
    note(begin);
}

/* Acknowledges the port's octets up to 'ack', and each block [from, to) behind them. */
static void sack(uint32_t ack, const uint32_t (*blocks)[2], unsigned n)
{
    uint8_t o[40] = { 1, 1, 5, (uint8_t)(2 + 8 * n) };

    for (unsigned i = 0; i < n; i++) {
        sg_put_be32(o + 4 + 8 * i, base + blocks[i][0]);
        sg_put_be32(o + 8 + 8 * i, base + blocks[i][1]);
    }
    say(ACK, PEER_SEQ + 1, base + ack, n ? o : NULL, n ? 4 + 8 * n : 0, 0);
}

static void arp_answer(void)
{
    uint8_t f[42] = { 0 };

    memcpy(f, mac[0], 6);
    memcpy(f + 6, mac[1], 6);
    memcpy(f + 12, (uint8_t[]){ 8, 6, 0, 1, 8, 0, 6, 4, 0, 2 }, 10);
    memcpy(f + 22, mac[1], 6);
    memcpy(f + 28, at[1].ip, 4);
    memcpy(f + 32, mac[0], 6);
    memcpy(f + 38, at[0].ip, 4);
    sg_port_input(port, f, sizeof(f));
}

static void start(void)
{
    static const uint8_t options[] = { 2, 4, 1, 0, 4, 2, 1, 3, 3, 14, 0, 0 };
    struct sg_port_config config = {
        .send_buffer = SG_PORT_SEND_BUFFER_MAX,
        .window = SG_PORT_WINDOW_MAX,
    };
    struct sg_endpoint any = { .family = 4, .port = PORT };
    struct sg_stream_net *net;
    enum sg_stream_end why;

    at[0] = wire_ip(10, 0, 0, 1, PORT);
    at[1] = wire_ip(10, 0, 0, 2, PEER);
    port = sg_port_new(&ops, NULL, mac[0], &config);
    net = sg_port_stream_net(port);
    sg_assert(net->ops->add_addr(net, &at[0], 24, NULL));
    sg_assert(net->ops->listen(net, &any, 4, accept_any, NULL, &why));
    say(SYN, PEER_SEQ, 0, options, sizeof(options), 0);
    arp_answer();
    run(WIRE_MS);
    say(ACK, PEER_SEQ + 1, base, NULL, 0, 0);
    sg_assert(stream);
}

/* Sends up to n segments, as far as there is room; windows decide how many leave. */
static void fill(unsigned n)
{
    static uint8_t octets[MSS];
    struct iovec iov = { .iov_base = octets, .iov_len = stream->ops->emss(stream) };

    while (n-- && stream->ops->room(stream) >= iov.iov_len &&
           stream->ops->send(stream, &iov, 1, true)) {
    }
    stream->ops->push(stream);
}

/* Opens the congestion window for as many segments in flight as possible. */
static void grow(void)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        fill(segments);
        sack(sent, NULL, 0);
        run(WIRE_MS);
        sack(sent, NULL, 0);
    }
    longest = sum = calls = 0;
}

static void acknowledgements(void)
{
    uint32_t first, b[BLOCKS][2], unit = (uint32_t)stream->ops->emss(stream);

    grow();
    fill(segments);
    longest = sum = calls = 0;
    sack(sent, NULL, 0);
    end_row("one ACK for all segments in flight");
    first = sent;
    fill(segments);
    b[0][0] = first + unit;
    b[0][1] = sent;
    longest = sum = calls = 0;
    sack(first, (const uint32_t(*)[2])b, 1);
    end_row("one SACK for all but the oldest");
    for (unsigned i = 0; i < 50; i++) {
        run(20 * WIRE_MS);
    }
    end_row("and the timers behind it");
    sack(sent, NULL, 0);
    grow();
    first = sent;
    fill(segments);
    longest = sum = calls = 0;
    for (uint32_t o = first + unit; o + 6 * unit < sent; o += 6 * unit) {
        for (unsigned k = 0; k < 3; k++) {
            b[k][0] = o + 2 * k * unit;
            b[k][1] = b[k][0] + unit;
        }
        sack(first, (const uint32_t(*)[2])b, 3);
    }
    end_row("SACKs of every second segment, three at a time");
    for (unsigned i = 0; i < 200; i++) {
        run(20 * WIRE_MS);
    }
    end_row("and the timers behind them, reneging included");
    sack(sent, NULL, 0);
    end_row("one ACK for all of it");
}

static void segments_in_pieces(void)
{
    uint32_t i;

    say(ACK, PEER_SEQ + 1, base + sent, NULL, 0, 1); /* a known peer from here on */
    longest = sum = calls = 0;
    for (i = 0; i < holes; i++) {
        say(ACK, PEER_SEQ + 3 + 2 * i, base + sent, NULL, 0, 1);
    }
    end_row("one octet of every second, upwards");
    for (i = holes; i-- > 0;) {
        say(ACK, PEER_SEQ + 3 + 2 * i, base + sent, NULL, 0, 1);
    }
    end_row("the same again, downwards");
    for (i = 0; i < holes; i++) {
        say(ACK, PEER_SEQ + 2 + 2 * i, base + sent, NULL, 0, 1);
    }
    end_row("the octets between them");
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        segments = (unsigned)strtoul(argv[1], NULL, 10);
    }
    if (argc > 2) {
        holes = (unsigned)strtoul(argv[2], NULL, 10);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    start();
    grow();
    fill(segments);
    printf("%zu segments of %zu octets\n", stream->ops->unacked(stream) / stream->ops->emss(stream),
           stream->ops->emss(stream));
    printf("%-58s %11s %13s %6s\n", "", "longest", "all", "calls");
    acknowledgements();
    segments_in_pieces();
    printf("longest of all: %.2f ms\n", (double)worst / 1e6);
    stream->ops->abort(stream);
    sg_port_free(port);
    return 0;
}
