/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Target "net": Ethernet frames into the TCP/IP port.
 *
 * Two ports exchange frames through the hands of the input, which drops, repeats, reorders and
 * changes them (with checksums made right again, or not), and invents others: TCP segments near the
 * connections' own numbers, ARP, noise.  The users of the streams connect, send, close, abort.
 * Behind neither port is a NIC.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/host.h"
#include "fuzz.h"
#include "port.h"

enum {
    STEPS = 300,
    HOSTS = 2,
    STREAMS = 4,
    FRAMES = 64,
    FRAME_MAX = 10000,
    PORT = 4000,
    ETH = 14,
    IPV4 = 20,
    TCP = 20,
};

struct frame {
    size_t len;
    int to;
    uint8_t data[FRAME_MAX];
};

struct user {
    struct sg_stream *s; /* NULL: none or over */
    bool fin;
};

struct host {
    struct sg_port *port;
    struct sg_stream_net *net;
    struct sg_endpoint ip;
    struct sg_listener *listener;
    struct user users[STREAMS];
    uint8_t mac[6];
    bool kicked, congested;
};

static struct fuzz_in in;
static struct host hosts[HOSTS];
static struct frame pool[FRAMES];
static struct frame *frames[FRAMES]; /* under way, oldest first; then the free ones */
static unsigned n_frames;
static uint64_t now_ns = 1000000000; /* goes on over all inputs, as the clock of TCP/IP does */
static uint64_t random_state;
static unsigned long long connects, received, closes, resets;

/* ---- the ports' host ---- */

static void send_frame(void *opaque, const struct iovec *iov, unsigned n)
{
    struct host *h = opaque;
    struct frame *f;
    unsigned i;

    if (n_frames == FRAMES) {
        return; /* lost */
    }
    f = frames[n_frames++];
    f->len = 0;
    f->to = h == &hosts[0];
    for (i = 0; i < n; i++) {
        sg_assert(f->len + iov[i].iov_len <= FRAME_MAX);
        memcpy(f->data + f->len, iov[i].iov_base, iov[i].iov_len);
        f->len += iov[i].iov_len;
    }
    sg_assert(f->len >= ETH);
}

static bool can_send(void *opaque)
{
    return !((struct host *)opaque)->congested;
}

static uint64_t get_now(void *opaque)
{
    (void)opaque;
    return now_ns;
}

static void get_random(void *opaque, void *buf, size_t len)
{
    uint8_t *p = buf;

    (void)opaque;
    while (len--) {
        random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
        *p++ = (uint8_t)(random_state >> 56);
    }
}

static void kick(void *opaque)
{
    ((struct host *)opaque)->kicked = true;
}

static const struct sg_port_ops port_ops = {
    .send_frame = send_frame,
    .can_send = can_send,
    .now = get_now,
    .random = get_random,
    .kick = kick,
};

/* ---- the streams' users ---- */

static void on_connected(struct sg_stream *s)
{
    (void)s;
    connects++;
}

static void on_receive(struct sg_stream *s, const uint8_t *p, size_t n)
{
    volatile uint8_t sum = 0;
    size_t i;

    (void)s;
    for (i = 0; i < n; i++) {
        sum += p[i]; /* all of it is there */
    }
    received += n;
}

static void on_nothing(struct sg_stream *s)
{
    (void)s;
}

static void on_closed(struct sg_stream *s, enum sg_stream_end why)
{
    struct user *u = s->user;

    sg_assert(u->s == s);
    u->s = NULL;
    closes++;
    resets += why == SG_STREAM_RESET;
}

static const struct sg_stream_events events = {
    .connected = on_connected,
    .receive = on_receive,
    .writable = on_nothing,
    .peer_closed = on_nothing,
    .closed = on_closed,
};

static struct user *free_user(struct host *h)
{
    unsigned i;

    for (i = 0; i < STREAMS; i++) {
        if (!h->users[i].s) {
            h->users[i].fin = false;
            return &h->users[i];
        }
    }
    return NULL;
}

static bool accept_stream(void *opaque, struct sg_stream *s)
{
    struct user *u = free_user(opaque);

    if (!u) {
        return false;
    }
    s->events = &events;
    s->user = u;
    u->s = s;
    return true;
}

static void do_listen(struct host *h)
{
    struct sg_endpoint at = { .family = 4, .port = PORT };
    enum sg_stream_end why;

    if (!h->listener) {
        h->listener = h->net->ops->listen(h->net, &at, 2, accept_stream, h, &why);
    } else if (fuzz_rarely(&in, 4)) {
        h->net->ops->unlisten(h->net, h->listener);
        h->listener = NULL;
    }
}

static void do_connect(struct host *h)
{
    struct sg_endpoint local = { .family = 4 }, remote = hosts[h == &hosts[0]].ip;
    struct user *u = free_user(h);
    enum sg_stream_end why;

    remote.port = fuzz_rarely(&in, 16) ? fuzz_u16(&in) | 1 : PORT;
    if (u) {
        u->s = h->net->ops->connect(h->net, &local, &remote, &events, u, &why);
    }
}

static void do_send(struct user *u)
{
    static uint8_t data[20000];
    size_t len = fuzz_u16(&in) % sizeof(data);
    struct iovec iov[2] = { { data, len / 3 }, { data + len / 3, len - len / 3 } };

    if (u->s && !u->fin && u->s->ops->room(u->s) >= len && len) {
        u->s->ops->send(u->s, iov, 2, fuzz_u8(&in) & 1);
        u->s->ops->push(u->s);
    }
}

static void do_end(struct user *u)
{
    struct sg_stream *s = u->s;

    if (!s) {
        return;
    }
    if (fuzz_u8(&in) & 1) {
        u->s = NULL;
        s->ops->abort(s);
    } else if (!u->fin) {
        u->fin = true;
        s->ops->shutdown(s);
    }
}

/* ---- frames ---- */

static uint16_t checksum(const uint8_t *p, size_t len, uint32_t sum)
{
    size_t i;

    for (i = 0; i + 1 < len; i += 2) {
        sum += sg_get_be16(p + i);
    }
    sum += len & 1 ? (uint32_t)p[len - 1] << 8 : 0;
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

/* Makes the checksums of an IPv4 TCP frame right, if its lengths allow. */
static void mend(uint8_t *f, size_t len)
{
    uint8_t *ip = f + ETH, *tcp;
    size_t head, total;
    uint32_t pseudo = 6;
    unsigned i;

    if (len < ETH + IPV4 + TCP || sg_get_be16(f + 12) != 0x0800) {
        return;
    }
    head = (ip[0] & 15u) * 4;
    total = sg_get_be16(ip + 2);
    if (head < IPV4 || total < head + TCP || total > len - ETH) {
        return;
    }
    sg_put_be16(ip + 10, 0);
    sg_put_be16(ip + 10, checksum(ip, head, 0));
    tcp = ip + head;
    for (i = 12; i < 20; i += 2) {
        pseudo += sg_get_be16(ip + i);
    }
    sg_put_be16(tcp + 16, 0);
    sg_put_be16(tcp + 16, checksum(tcp, total - head, pseudo + (uint32_t)(total - head)));
}

/* A copy of exactly that size, so that any octet read beyond it is noticed. */
static void deliver(int to, const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);

    memcpy(copy, data, len);
    sg_port_input(hosts[to].port, copy, len);
    free(copy);
}

/* Answers ARP as the guest behind a port would. */
static void answer_arp(const struct frame *f)
{
    const struct host *h = &hosts[f->to];
    uint8_t r[42];

    if (f->len < 42 || sg_get_be16(f->data + 12) != 0x0806 || sg_get_be16(f->data + 20) != 1 ||
        memcmp(f->data + 38, h->ip.ip, 4) != 0) {
        return;
    }
    memcpy(r, f->data, 42);
    memcpy(r, f->data + 6, 6);
    memcpy(r + 6, h->mac, 6);
    sg_put_be16(r + 20, 2);
    memcpy(r + 22, h->mac, 6);
    memcpy(r + 28, f->data + 38, 4);
    memcpy(r + 32, f->data + 22, 10);
    deliver(!f->to, r, 42);
}

static void copy_frame(struct frame *to, const struct frame *from)
{
    to->to = from->to;
    to->len = from->len;
    memcpy(to->data, from->data, from->len);
}

static void spoil(struct frame *f)
{
    unsigned n = 1 + fuzz_below(&in, 4);

    while (n--) {
        size_t at = fuzz_below(&in, 2) ? fuzz_below(&in, SG_MIN(f->len, (size_t)70))
                                       : fuzz_u16(&in) % f->len;

        f->data[at] = fuzz_rarely(&in, 2) ? fuzz_u8(&in) : f->data[at] ^ 1 << fuzz_below(&in, 8);
    }
    if (fuzz_rarely(&in, 4)) {
        f->len = 1 + fuzz_u16(&in) % f->len;
    }
    if (!fuzz_rarely(&in, 8)) {
        mend(f->data, f->len);
    }
}

/* The oldest frame, or another one, arrives as it is or changed, or does not. */
static void transport(bool honest)
{
    static struct frame f;
    struct frame *taken;
    unsigned i;

    if (!n_frames) {
        return;
    }
    i = honest ? 0 : fuzz_below(&in, n_frames);
    taken = frames[i];
    copy_frame(&f, taken);
    if (honest || !fuzz_rarely(&in, 8)) {
        n_frames--;
        memmove(&frames[i], &frames[i + 1], (n_frames - i) * sizeof(taken));
        frames[n_frames] = taken;
    }
    if (!honest && fuzz_rarely(&in, 2)) {
        spoil(&f);
    } else if (!honest && fuzz_rarely(&in, 8)) {
        return; /* lost */
    }
    answer_arp(&f);
    deliver(f.to, f.data, f.len);
}

/* A segment with the addresses of a frame under way, and numbers near its own. */
static void forge(void)
{
    static struct frame f;
    uint8_t *tcp = f.data + ETH + IPV4;

    if (!n_frames) {
        return;
    }
    copy_frame(&f, frames[fuzz_below(&in, n_frames)]);
    if (f.len < ETH + IPV4 + TCP || sg_get_be16(f.data + 12) != 0x0800) {
        return;
    }
    sg_put_be32(tcp + 4, sg_get_be32(tcp + 4) + (uint32_t)fuzz_edgy(&in));
    sg_put_be32(tcp + 8, sg_get_be32(tcp + 8) + (fuzz_u8(&in) & 1 ? (uint32_t)fuzz_edgy(&in) : 0));
    tcp[12] = fuzz_rarely(&in, 4) ? fuzz_u8(&in) : tcp[12];
    tcp[13] = fuzz_u8(&in);
    sg_put_be16(tcp + 14, (uint16_t)fuzz_edgy(&in));
    mend(f.data, f.len);
    deliver(f.to, f.data, f.len);
}

static void noise(void)
{
    static const uint16_t types[] = { 0x0800, 0x0806, 0x86dd, 0x8100 };
    uint8_t f[600] = { 0 };
    int to = fuzz_u8(&in) & 1;
    size_t n = fuzz_u16(&in) % (sizeof(f) - ETH);
    const uint8_t *p = fuzz_bytes(&in, &n);

    memcpy(f, hosts[to].mac, 6);
    memcpy(f + 6, hosts[!to].mac, 6);
    sg_put_be16(f + 12, types[fuzz_below(&in, 4)]);
    if (n) {
        memcpy(f + ETH, p, n);
    }
    mend(f, ETH + n);
    deliver(to, f, ETH + n);
}

static void settle(void)
{
    unsigned i, n = 0;

    for (i = 0; i < HOSTS; i++) {
        while (hosts[i].kicked && n++ < 10) {
            hosts[i].kicked = false;
            hosts[i].net->ops->run(hosts[i].net, now_ns);
        }
    }
}

static void pass(uint64_t ns)
{
    unsigned i;

    now_ns += ns;
    for (i = 0; i < HOSTS; i++) {
        hosts[i].net->ops->run(hosts[i].net, now_ns);
    }
}

static void configure(struct host *h)
{
    struct sg_endpoint other = { .family = 4, .ip = { 10, 0, 1, fuzz_u8(&in) } };
    unsigned i;

    switch (fuzz_below(&in, 8)) {
    case 0:
        h->net->ops->set_mtu(h->net, 576 + fuzz_u16(&in) % 8000);
        break;
    case 1:
        h->net->ops->add_addr(h->net, &other, fuzz_u8(&in) % 33, (uint8_t[16]){ 10, 0, 1, 1 });
        break;
    case 2:
        h->net->ops->del_addr(h->net, &other);
        break;
    case 3:
        sg_port_reset(h->port);
        for (i = 0; i < STREAMS; i++) {
            h->users[i].s = NULL;
        }
        h->listener = NULL;
        h->net->ops->add_addr(h->net, &h->ip, 24, NULL);
        break;
    case 4:
        h->net->ops->del_addr(h->net, &h->ip);
        h->net->ops->add_addr(h->net, &h->ip, 24, NULL);
        break;
    default:
        h->congested = !h->congested;
        if (!h->congested) {
            sg_port_uplink_ready(h->port);
        }
    }
}

static void step(void)
{
    struct host *h = &hosts[fuzz_below(&in, HOSTS)];
    struct user *u = &h->users[fuzz_below(&in, STREAMS)];
    unsigned n;

    switch (fuzz_below(&in, 20)) {
    case 0:
        noise();
        break;
    case 1:
    case 2:
        forge();
        break;
    case 3:
        do_connect(h);
        break;
    case 4:
        do_listen(h);
        break;
    case 5:
    case 6:
    case 7:
        do_send(u);
        break;
    case 8:
        fuzz_rarely(&in, 3) ? do_end(u) : do_send(u);
        break;
    case 9:
        pass((uint64_t)1 << fuzz_below(&in, 34));
        break;
    case 10:
        fuzz_rarely(&in, 4) ? configure(h) : transport(false);
        break;
    case 11:
    case 12:
        transport(false);
        break;
    default:
        for (n = 1 + fuzz_below(&in, 8); n; n--) {
            transport(true);
            settle();
        }
    }
    settle();
}

bool fuzz_reached(char *buf, size_t len)
{
    snprintf(buf, len, "%llu connections, %llu octets received, %llu ends, %llu of them resets",
             connects, received, closes, resets);
    return connects && received > 1000 && closes > resets && resets;
}

static void start(void)
{
    struct sg_port_config config = { .mtu = 1500, .max_connections = 16 };
    unsigned i;

    memset(hosts, 0, sizeof(hosts));
    n_frames = 0;
    for (i = 0; i < FRAMES; i++) {
        frames[i] = &pool[i];
    }
    random_state = 1;
    for (i = 0; i < HOSTS; i++) {
        struct host *h = &hosts[i];

        memcpy(h->mac, (uint8_t[]){ 0x52, 0x54, 0, 0, 0, (uint8_t)(i + 1) }, 6);
        h->ip = (struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, (uint8_t)(i + 1) } };
        h->port = sg_port_new(&port_ops, h, h->mac, &config);
        sg_assert(h->port);
        h->net = sg_port_stream_net(h->port);
        sg_assert(h->net->ops->add_addr(h->net, &h->ip, 24, NULL));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sg_port_counters counters;
    unsigned i;

    in = (struct fuzz_in){ data, size };
    start();
    /* A connection to begin with. */
    do_listen(&hosts[1]);
    do_connect(&hosts[0]);
    for (i = 0; i < 8; i++) {
        transport(true);
        settle();
    }
    for (i = 0; i < STEPS && in.len; i++) {
        step();
    }
    for (i = 0; i < HOSTS; i++) {
        sg_port_reset(hosts[i].port);
        sg_port_counters(hosts[i].port, &counters);
        sg_assert(!counters.streams && !counters.connections && !counters.listeners);
        sg_port_free(hosts[i].port);
    }
    now_ns += 1000000;
    return 0;
}
