/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One bulk transfer over an impaired path, in real time: to a socket of Linux, from another socket
 * of Linux or from the adapter's TCP.
 *
 *   bench_loss SENDER RTT-US LOSS REORDER RATE SECONDS
 *
 * Loss and reordering are in millionths, the rate in bit/s.  SENDER is "staghorn", or the name of a
 * congestion control of Linux.  Each end that is Linux's is a TAP device in a network namespace of
 * its own.  This program is the path between the ends (hw/net/impair.h), both ways alike.  It needs
 * /dev/net/tun and the right to make namespaces: root, or `unshare --user --map-root-user --net`.
 *
 * Prints "RATE STALL": MB/s that arrived, and the longest time without any, ms.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/host.h"
#include "impair.h"
#include "eth_port.h"

enum {
    TCP_PORT = 4791,
    FRAME_MAX = 2048,
    BATCH = 64,
    PATH_QUEUE = 1 << 20,
    CHUNK = 256 * 1024,
    WARM_UP_MS = 500,
};

struct bench_loss_end {
    unsigned number; /* 0 sends, 1 receives */
    int tap;         /* -1: the adapter's */
    uint8_t mac[6];
    const char *control;    /* congestion control */
    struct sg_impair *link; /* what it sends */
};

static struct bench_loss_end ends[2];
static atomic_ulong received;
static atomic_bool listening;
static struct sg_port *port;
static struct sg_stream *stream;
static uint64_t deadline = SG_NEVER;
static bool kicked;
static uint8_t pattern[CHUNK];

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void check(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench_loss: %s: %s\n", what, strerror(errno));
        exit(77);
    }
}

static struct sockaddr_in address(unsigned number)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons(TCP_PORT),
        .sin_addr.s_addr = htonl(0x0a000001 + number),
    };
}

/* The calling thread gets a namespace with one interface and the peer's MAC address. */
static void make_end(struct bench_loss_end *e)
{
    struct ifreq r = { .ifr_flags = IFF_TAP | IFF_NO_PI };
    struct sockaddr_in own = address(e->number), peer = address(!e->number), mask = own;
    struct arpreq arp = { .arp_flags = ATF_PERM | ATF_COM };
    int s;

    check(unshare(CLONE_NEWNET) == 0, "a network namespace");
    e->tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    check(e->tap >= 0, "/dev/net/tun");
    strcpy(r.ifr_name, "end");
    check(ioctl(e->tap, TUNSETIFF, &r) == 0, "a TAP device");
    s = socket(AF_INET, SOCK_DGRAM, 0);
    r.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    memcpy(r.ifr_hwaddr.sa_data, e->mac, 6);
    check(ioctl(s, SIOCSIFHWADDR, &r) == 0, "the MAC address");
    own.sin_port = 0;
    memcpy(&r.ifr_addr, &own, sizeof(own));
    check(ioctl(s, SIOCSIFADDR, &r) == 0, "the address");
    mask.sin_addr.s_addr = htonl(0xffffff00);
    memcpy(&r.ifr_netmask, &mask, sizeof(mask));
    check(ioctl(s, SIOCSIFNETMASK, &r) == 0, "the netmask");
    r.ifr_flags = IFF_UP | IFF_RUNNING;
    check(ioctl(s, SIOCSIFFLAGS, &r) == 0, "the interface");
    peer.sin_port = 0;
    memcpy(&arp.arp_pa, &peer, sizeof(peer));
    arp.arp_ha.sa_family = ARPHRD_ETHER;
    memcpy(arp.arp_ha.sa_data, ends[!e->number].mac, 6);
    strcpy(arp.arp_dev, "end");
    check(ioctl(s, SIOCSARP, &arp) == 0, "the peer's MAC address");
    close(s);
}

static void *receiver(void *arg)
{
    struct bench_loss_end *e = arg;
    struct sockaddr_in own = address(e->number);
    static uint8_t buffer[CHUNK];
    int s, c;
    ssize_t n;

    make_end(e);
    s = socket(AF_INET, SOCK_STREAM, 0);
    check(bind(s, (struct sockaddr *)&own, sizeof(own)) == 0 && listen(s, 1) == 0, "a listener");
    listening = true;
    c = accept(s, NULL, NULL);
    while ((n = recv(c, buffer, sizeof(buffer), 0)) > 0) {
        received += (unsigned long)n;
    }
    return NULL;
}

static void *sender(void *arg)
{
    struct bench_loss_end *e = arg;
    struct sockaddr_in peer = address(!e->number);
    int s;

    make_end(e);
    s = socket(AF_INET, SOCK_STREAM, 0);
    check(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, e->control, (socklen_t)strlen(e->control)) ==
              0,
          e->control);
    while (connect(s, (struct sockaddr *)&peer, sizeof(peer)) != 0) {
        usleep(10000);
    }
    while (send(s, pattern, sizeof(pattern), MSG_NOSIGNAL) > 0) {
    }
    return NULL;
}

/* A frame leaves the path. */
static void deliver(void *opaque, const uint8_t *frame, size_t len, uint32_t tag)
{
    struct bench_loss_end *to = opaque;

    if (to->tap < 0) {
        sg_port_input(port, frame, len);
    } else if (write(to->tap, frame, len) < 0) {
        return; /* the interface's queue is full */
    }
}

static void transmit(struct bench_loss_end *from, const uint8_t *frame, size_t len)
{
    struct iovec iov = { .iov_base = (void *)(uintptr_t)frame, .iov_len = len };

    if (sg_impair_input(from->link, &iov, 1, 0, 0, now_ns())) {
        deliver(&ends[!from->number], frame, len, 0);
    }
}

static void port_send(void *opaque, const struct iovec *iov, unsigned n)
{
    uint8_t frame[FRAME_MAX];
    size_t len = 0;
    unsigned i;

    for (i = 0; i < n; i++) {
        memcpy(frame + len, iov[i].iov_base, iov[i].iov_len);
        len += iov[i].iov_len;
    }
    transmit(&ends[0], frame, len);
}

static uint64_t port_now(void *opaque)
{
    return now_ns();
}

static void port_random(void *opaque, void *buf, size_t len)
{
    uint8_t *p = buf;

    while (len--) {
        *p++ = (uint8_t)random();
    }
}

static void port_kick(void *opaque)
{
    kicked = true;
}

static const struct sg_port_ops port_ops = {
    .send_frame = port_send,
    .now = port_now,
    .random = port_random,
    .kick = port_kick,
};

static void fill(struct sg_stream *s)
{
    size_t piece = s->ops->emss(s);

    while (s->ops->room(s) >= piece) {
        struct iovec iov = { .iov_base = pattern, .iov_len = piece };

        s->ops->send(s, &iov, 1, true);
    }
    s->ops->push(s);
}

static void ignore(struct sg_stream *s)
{
}

static void closed(struct sg_stream *s, enum sg_stream_end end)
{
    fprintf(stderr, "bench_loss: the connection has ended (%d)\n", (int)end);
    exit(1);
}

static void receive(struct sg_stream *s, const uint8_t *data, size_t len)
{
}

static const struct sg_stream_events events = {
    .connected = fill,
    .receive = receive,
    .writable = fill,
    .peer_closed = ignore,
    .closed = closed,
};

/* The end that is the adapter's: a port without a NIC behind it. */
static void make_port(struct bench_loss_end *e)
{
    struct sg_port_config config = {
        .mtu = 1500,
        .send_buffer = SG_PORT_SEND_BUFFER_MAX / 4,
    };
    struct sg_endpoint own = { .family = 4, .ip = { 10, 0, 0, 1 } }, peer = own;
    struct sg_stream_net *net;
    enum sg_stream_end why;

    e->tap = -1;
    port = sg_port_new(&port_ops, NULL, e->mac, &config);
    net = sg_port_stream_net(port);
    net->ops->add_addr(net, &own, 24, NULL);
    peer.ip[3] = 2;
    peer.port = TCP_PORT;
    stream = net->ops->connect(net, &own, &peer, &events, NULL, &why);
    check(stream != NULL, "a connection");
}

static void run_port(uint64_t now)
{
    struct sg_stream_net *net = port ? sg_port_stream_net(port) : NULL;

    if (net && (kicked || now >= deadline)) {
        kicked = false;
        deadline = net->ops->run(net, now);
    }
}

/* Puts frames that the ends have sent into the path, and delivers those that are due. */
static void relay(void)
{
    struct pollfd fds[2] = {
        { .fd = ends[0].tap, .events = POLLIN },
        { .fd = ends[1].tap, .events = POLLIN },
    };
    uint64_t now = now_ns(), next = now + 1000000;
    struct timespec wait;
    uint8_t frame[FRAME_MAX];
    ssize_t n;
    int i, j;

    for (i = 0; i < 2; i++) {
        for (j = 0;
             j < BATCH && ends[i].tap >= 0 && (n = read(ends[i].tap, frame, sizeof(frame))) > 0;
             j++) {
            transmit(&ends[i], frame, (size_t)n);
        }
        sg_impair_output(ends[i].link, now_ns(), BATCH, deliver, &ends[!i]);
        next = SG_MIN(next, sg_impair_next(ends[i].link));
    }
    run_port(now_ns());
    next = SG_MIN(next, deadline);
    now = now_ns();
    if (next > now && !kicked) {
        wait = (struct timespec){ .tv_nsec = (long)(next - now) };
        ppoll(fds, 2, &wait, NULL);
    }
}

static void measure(unsigned seconds)
{
    uint64_t start = 0, last = now_ns(), stall = 0, now;
    unsigned long seen = 0, base = 0;

    do {
        relay();
        now = now_ns();
        if (received != seen || !start) {
            last = received != seen ? now : last;
            seen = received;
        } else {
            stall = SG_MAX(stall, now - last);
        }
        if (!start && seen) {
            start = now + WARM_UP_MS * 1000000ull;
        }
        if (start && now < start) {
            base = seen;
            last = now;
            stall = 0;
        }
        check(start || now - last < 20000000000u, "nothing arrives");
    } while (!start || now < start + seconds * 1000000000ull);
    printf("%.3f %" PRIu64 "\n", (double)(seen - base) / (double)(now - start) * 1e3,
           stall / 1000000);
}

int main(int argc, char **argv)
{
    struct sg_impair_config c = { .queue = PATH_QUEUE };
    pthread_t thread;
    unsigned i;

    if (argc != 7) {
        fprintf(stderr, "usage: bench_loss SENDER RTT-US LOSS REORDER RATE SECONDS\n");
        return 2;
    }
    c.delay = strtoull(argv[2], NULL, 10) * 1000 / 2;
    c.loss = (uint32_t)strtoul(argv[3], NULL, 10);
    c.reorder = (uint32_t)strtoul(argv[4], NULL, 10);
    c.rate = strtoull(argv[5], NULL, 10);
    for (i = 0; i < 2; i++) {
        c.seed = i + 1;
        ends[i] = (struct bench_loss_end){
            .number = i,
            .tap = -1,
            .mac = { 2, 0, 0, 0, 0, (uint8_t)(i + 1) },
            .control = argv[1],
            .link = sg_impair_new(&c),
        };
        check(ends[i].link != NULL, "the path");
    }
    pthread_create(&thread, NULL, receiver, &ends[1]);
    while (!listening) {
        usleep(1000);
    }
    if (strcmp(argv[1], "staghorn") == 0) {
        make_port(&ends[0]);
    } else {
        pthread_create(&thread, NULL, sender, &ends[0]);
    }
    measure((unsigned)atoi(argv[6]));
    exit(0); /* ends the threads and their namespaces, too */
}
