/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How fast is TCP?  Two ports of this process, joined by a wire that copies each frame once, as a
 * socket would; one stream sends segment-sized pieces to the other.  One CPU does all of it.
 *
 *     bench_net [SECONDS [MTU...]]
 *
 * Prints one line per MTU: octets of payload per second of CPU time, and frames.  The ports' clock
 * is that CPU time, so that other load on the machine neither counts nor causes timeouts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/host.h"
#include "eth_port.h"

enum {
    SLOTS = 4096,
    WIRE_OCTETS = 4 * 1024 * 1024, /* buffer for frames in flight */
};

struct slot {
    int to;
    size_t len;
    uint8_t *data;
};

struct bench_net_end {
    struct net_bench *bench;
    struct sg_port *port;
    struct sg_stream_net *net;
    uint8_t mac[6];
    struct sg_endpoint ip;
    uint64_t deadline;
    bool kicked;
};

struct net_bench {
    struct bench_net_end end[2];
    struct slot slots[SLOTS];
    uint8_t *wire;
    size_t wire_at, in_flight;
    unsigned head, tail;
    struct sg_stream *sender;
    uint64_t received, frames;
    uint8_t piece[65536];
};

static uint64_t clock_ns;

static void read_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    clock_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void send_frame(void *opaque, const struct iovec *iov, unsigned n)
{
    struct bench_net_end *e = opaque;
    struct net_bench *b = e->bench;
    struct slot *s;
    unsigned i;

    if (b->head - b->tail == SLOTS || b->in_flight > WIRE_OCTETS - 2 * 65536) {
        return;
    }
    if (b->wire_at > WIRE_OCTETS - 65536) {
        b->wire_at = 0;
    }
    s = &b->slots[b->head++ % SLOTS];
    s->to = e == &b->end[0];
    s->data = b->wire + b->wire_at;
    s->len = 0;
    for (i = 0; i < n; i++) {
        memcpy(s->data + s->len, iov[i].iov_base, iov[i].iov_len);
        s->len += iov[i].iov_len;
    }
    b->wire_at += s->len;
    b->in_flight += s->len;
    b->frames++;
}

static uint64_t op_now(void *opaque)
{
    return clock_ns;
}

static void op_random(void *opaque, void *buf, size_t len)
{
    uint8_t *p = buf;

    while (len--) {
        *p++ = (uint8_t)(rand() >> 8);
    }
}

static void op_kick(void *opaque)
{
    ((struct bench_net_end *)opaque)->kicked = true;
}

static const struct sg_port_ops ops = {
    .send_frame = send_frame,
    .now = op_now,
    .random = op_random,
    .kick = op_kick,
};

static void fill(struct net_bench *b)
{
    size_t n = b->sender->ops->emss(b->sender);
    struct iovec iov = { .iov_base = b->piece, .iov_len = n };

    while (b->sender->ops->send(b->sender, &iov, 1, true)) {
    }
    b->sender->ops->push(b->sender);
}

static void on_stream(struct sg_stream *s)
{
    fill(s->user);
}

static void on_receive(struct sg_stream *s, const uint8_t *p, size_t n)
{
    static uint8_t sink[1024 * 1024];
    struct net_bench *b = s->user;

    memcpy(sink + b->received % (sizeof(sink) - 65536), p, n); /* placement */
    b->received += n;
}

static void on_peer_closed(struct sg_stream *s)
{
}

static void on_closed(struct sg_stream *s, enum sg_stream_end why)
{
    fprintf(stderr, "bench_net: stream closed (%d)\n", why);
    exit(1);
}

static const struct sg_stream_events events = {
    .connected = on_stream,
    .receive = on_receive,
    .writable = on_stream,
    .peer_closed = on_peer_closed,
    .closed = on_closed,
};

static bool on_accept(void *user, struct sg_stream *s)
{
    s->events = &events;
    s->user = user;
    return true;
}

/* The NIC behind the port: answers ARP. */
static void nic(struct bench_net_end *e, const uint8_t *f, size_t len)
{
    uint8_t r[42];
    struct iovec iov = { .iov_base = r, .iov_len = sizeof(r) };

    if (len < 42 || f[12] != 8 || f[13] != 6 || f[21] != 1 || memcmp(f + 38, e->ip.ip, 4)) {
        return;
    }
    memcpy(r, f + 6, 6);
    memcpy(r + 6, e->mac, 6);
    memcpy(r + 12, f + 12, 8);
    r[20] = 0;
    r[21] = 2;
    memcpy(r + 22, e->mac, 6);
    memcpy(r + 28, f + 38, 4);
    memcpy(r + 32, f + 22, 10);
    send_frame(e, &iov, 1);
}

static void turn(struct net_bench *b)
{
    int i;

    if (b->tail != b->head) {
        struct slot *s = &b->slots[b->tail % SLOTS];
        struct bench_net_end *e = &b->end[s->to];

        if (sg_port_input(e->port, s->data, s->len) & SG_PORT_TO_NIC) {
            nic(e, s->data, s->len);
        }
        b->in_flight -= s->len;
        b->tail++;
    }
    if (b->tail % 64 == 0 || b->tail == b->head) {
        read_clock();
    }
    for (i = 0; i < 2; i++) {
        struct bench_net_end *e = &b->end[i];

        if (e->kicked || e->deadline <= clock_ns) {
            e->kicked = false;
            e->deadline = e->net->ops->run(e->net, clock_ns);
        }
    }
}

static void measure(unsigned mtu, double seconds)
{
    struct sg_port_config config = { .mtu = mtu };
    struct sg_endpoint any = { .family = 4, .port = 5000 }, to;
    struct net_bench *b = calloc(1, sizeof(*b));
    uint64_t start, last, warm, frames;
    struct sg_net_counters net;
    enum sg_stream_end why;
    double elapsed;
    int i;

    b->wire = malloc(WIRE_OCTETS);
    for (i = 0; i < 2; i++) {
        struct bench_net_end *e = &b->end[i];

        e->bench = b;
        memcpy(e->mac, (uint8_t[]){ 2, 0, 0, 0, 0, (uint8_t)(i + 1) }, 6);
        e->port = sg_port_new(&ops, e, e->mac, &config);
        e->net = sg_port_stream_net(e->port);
        e->ip = (struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, (uint8_t)(i + 1) } };
        e->net->ops->add_addr(e->net, &e->ip, 24, NULL);
    }
    to = b->end[1].ip;
    to.port = any.port;
    b->end[1].net->ops->listen(b->end[1].net, &any, 4, on_accept, b, &why);
    any.port = 0;
    b->sender = b->end[0].net->ops->connect(b->end[0].net, &any, &to, &events, b, &why);
    start = clock_ns;
    while (clock_ns - start < 100000000) { /* slow start */
        turn(b);
    }
    start = clock_ns;
    warm = b->received;
    frames = b->frames;
    do {
        for (i = 0; i < 1000; i++) {
            turn(b);
        }
        last = clock_ns;
    } while (last - start < (uint64_t)(seconds * 1e9));
    elapsed = (double)(last - start) / 1e9;
    b->end[0].net->ops->counters(b->end[0].net, &net);
    printf("MTU %5u  %8.0f MB/s  %9.0f frames/s  retransmits %" PRIu64 "\n", mtu,
           (double)(b->received - warm) / 1e6 / elapsed, (double)(b->frames - frames) / elapsed,
           net.tcp_retransmits);
    sg_port_free(b->end[0].port);
    sg_port_free(b->end[1].port);
    free(b->wire);
    free(b);
}

int main(int argc, char **argv)
{
    static const unsigned mtus[] = { 1500, 9000, 65520 };
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    int i;

    for (i = 2; i < argc; i++) {
        measure((unsigned)atoi(argv[i]), seconds);
    }
    for (i = 0; argc < 3 && i < 3; i++) {
        measure(mtus[i], seconds);
    }
    return 0;
}
