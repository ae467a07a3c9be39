/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Target "net": Ethernet frames into the TCP/IP port.
 *
 * Two ports exchange frames.  The input drops, repeats, reorders and changes them (with checksums
 * corrected, or not), and invents others:  TCP segments near the connections' own numbers, ARP,
 * neighbour messages, extension headers, tags, noise.  The users of the streams connect over IPv4
 * and IPv6, on the port's link and on a VLAN, send, close, abort.  Neither port has a NIC behind
 * it; the target answers ARP and neighbour solicitations in its place.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/host.h"
#include "net_frame.h"
#include "eth_port.h"

enum {
    STEPS = 300,
    HOSTS = 2,
    STREAMS = 4,
    FRAMES = 64,
    PORT = 4000,
    NETS = 4, /* addresses of each host */
};

struct net_target_user {
    struct sg_stream *s; /* NULL: none, or closed */
    bool fin;
};

struct host {
    struct sg_port *port;
    struct sg_stream_net *net;
    struct sg_endpoint ips[NETS];
    struct sg_stream_listener *listeners[2]; /* any IPv4, any IPv6 address */
    struct net_target_user users[STREAMS];
    uint8_t mac[6];
    bool kicked, congested;
};

static struct fuzz_in in;
static struct host hosts[HOSTS];
static struct fuzz_frame pool[FRAMES];
static struct fuzz_frame *frames[FRAMES]; /* under way, oldest first; then the free ones */
static unsigned n_frames;
static uint64_t now_ns = 1000000000; /* never goes back between inputs, as the clock of TCP/IP */
static uint64_t random_state;
static unsigned long long connects, connects6, tagged, received, closes, resets;

/* ---- the ports' host ---- */

static void send_frame(void *opaque, const struct iovec *iov, unsigned n)
{
    struct host *h = opaque;
    struct fuzz_frame *f;
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
    tagged += sg_get_be16(f->data + 12) == TYPE_VLAN;
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
    struct sg_endpoint local, remote;

    s->ops->endpoints(s, &local, &remote);
    connects++;
    connects6 += local.family == 6;
}

static void on_receive(struct sg_stream *s, const uint8_t *p, size_t n)
{
    volatile uint8_t sum = 0;
    size_t i;

    (void)s;
    for (i = 0; i < n; i++) {
        sum += p[i]; /* reads all octets, for the sanitizer */
    }
    received += n;
}

static void on_nothing(struct sg_stream *s)
{
    (void)s;
}

static void on_closed(struct sg_stream *s, enum sg_stream_end why)
{
    struct net_target_user *u = s->user;

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

static struct net_target_user *free_user(struct host *h)
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
    struct net_target_user *u = free_user(opaque);

    if (!u) {
        return false;
    }
    s->events = &events;
    s->user = u;
    u->s = s;
    return true;
}

static void do_listen(struct host *h, unsigned which)
{
    struct sg_endpoint at = { .family = which ? 6 : 4, .port = PORT };
    enum sg_stream_end why;

    if (!h->listeners[which]) {
        h->listeners[which] = h->net->ops->listen(h->net, &at, 2, accept_stream, h, &why);
    } else if (fuzz_rarely(&in, 4)) {
        h->net->ops->unlisten(h->net, h->listeners[which]);
        h->listeners[which] = NULL;
    }
}

static void do_connect(struct host *h, unsigned net)
{
    struct sg_endpoint remote = hosts[h == &hosts[0]].ips[net], local = { .family = remote.family };
    struct net_target_user *u = free_user(h);
    enum sg_stream_end why;

    remote.port = fuzz_rarely(&in, 16) ? fuzz_u16(&in) | 1 : PORT;
    if (u) {
        u->s = h->net->ops->connect(h->net, &local, &remote, &events, u, &why);
    }
}

static void do_send(struct net_target_user *u)
{
    static uint8_t data[20000];
    size_t len = fuzz_u16(&in) % sizeof(data);
    struct iovec iov[2] = { { data, len / 3 }, { data + len / 3, len - len / 3 } };

    if (u->s && !u->fin && u->s->ops->room(u->s) >= len && len) {
        u->s->ops->send(u->s, iov, 2, fuzz_u8(&in) & 1);
        u->s->ops->push(u->s);
    }
}

static void do_end(struct net_target_user *u)
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

/* A copy of exactly that size, so that a sanitizer notices a read beyond it. */
static void deliver(int to, const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);

    memcpy(copy, data, len);
    sg_port_input(hosts[to].port, copy, len);
    free(copy);
}

static bool has(const struct host *h, unsigned family, const uint8_t *ip)
{
    unsigned i;

    for (i = 0; i < NETS; i++) {
        if (h->ips[i].family == family && memcmp(h->ips[i].ip, ip, family == 4 ? 4 : 16) == 0) {
            return true;
        }
    }
    return false;
}

/* Answers ARP and neighbour solicitations as the guest behind a port would, on the same link. */
static void answer(const struct fuzz_frame *f)
{
    size_t at = frame_type_at(f->data, f->len), ip = at + 2, n = ip + 28;
    const struct host *h = &hosts[f->to];
    uint8_t r[90];

    if (!at || f->len < n) {
        return;
    }
    memcpy(r, f->data, SG_MIN(f->len, sizeof(r)));
    memcpy(r, f->data + 6, 6);
    memcpy(r + 6, h->mac, 6);
    if (sg_get_be16(r + at) == TYPE_ARP && sg_get_be16(r + ip + 6) == 1 && has(h, 4, r + ip + 24)) {
        sg_put_be16(r + ip + 6, 2);
        memcpy(r + ip + 8, h->mac, 6);
        memcpy(r + ip + 14, f->data + ip + 24, 4);
        memcpy(r + ip + 18, f->data + ip + 8, 10);
    } else if (sg_get_be16(r + at) == TYPE_IP6 && f->len == ip + 72 && r[ip + 6] == 58 &&
               r[ip + 40] == 135 && has(h, 6, r + ip + 48)) {
        n = ip + 72;
        memcpy(r + ip + 24, f->data + ip + 8, 16);
        memcpy(r + ip + 8, f->data + ip + 48, 16);
        r[ip + 40] = 136;
        r[ip + 44] = 0x60;
        r[ip + 64] = 2;
        memcpy(r + ip + 66, h->mac, 6);
        frame_mend(r, n);
    } else {
        return;
    }
    deliver(!f->to, r, n);
}

static void copy_frame(struct fuzz_frame *to, const struct fuzz_frame *from)
{
    to->to = from->to;
    to->len = from->len;
    memcpy(to->data, from->data, from->len);
}

/* Delivers the oldest frame, or another one, unchanged or changed; or drops it. */
static void transport(bool honest)
{
    static struct fuzz_frame f;
    struct fuzz_frame *taken;
    unsigned i;

    if (!n_frames) {
        return;
    }
    i = honest ? 0 : fuzz_below(&in, n_frames);
    taken = frames[i];
    copy_frame(&f, taken);
    if (honest || !fuzz_rarely(&in, 8)) {
        n_frames--;
        memmove(&frames[i], &frames[i + 1], (n_frames - i) * sizeof(frames[0]));
        frames[n_frames] = taken;
    }
    if (!honest && fuzz_rarely(&in, 2)) {
        frame_spoil(&in, &f);
    } else if (!honest && fuzz_rarely(&in, 8)) {
        return; /* lost */
    }
    answer(&f);
    deliver(f.to, f.data, f.len);
}

/* A segment with the addresses of a frame under way, and numbers near its own. */
static void forge(void)
{
    static struct fuzz_frame f;
    uint32_t pseudo;
    uint8_t *tcp;
    size_t octets, at;

    if (!n_frames) {
        return;
    }
    copy_frame(&f, frames[fuzz_below(&in, n_frames)]);
    at = frame_transport_at(f.data, f.len, &octets, &pseudo);
    if (!at) {
        return;
    }
    if (octets >= 32 && fuzz_rarely(&in, 3)) {
        frame_extend(&in, &f);
        frame_mend(f.data, f.len);
        deliver(f.to, f.data, f.len);
        return;
    }
    tcp = f.data + at;
    sg_put_be32(tcp + 4, sg_get_be32(tcp + 4) + (uint32_t)fuzz_edgy(&in));
    sg_put_be32(tcp + 8, sg_get_be32(tcp + 8) + (fuzz_u8(&in) & 1 ? (uint32_t)fuzz_edgy(&in) : 0));
    tcp[12] = fuzz_rarely(&in, 4) ? fuzz_u8(&in) : tcp[12];
    tcp[13] = fuzz_u8(&in);
    sg_put_be16(tcp + 14, (uint16_t)fuzz_edgy(&in));
    frame_mend(f.data, f.len);
    deliver(f.to, f.data, f.len);
}

/* A neighbour message of random type, addresses and options. */
static void neighbour(void)
{
    int to = fuzz_u8(&in) & 1;
    uint8_t f[ETH + IPV6 + 64] = { 0 }, *ip = f + ETH, *nd = ip + IPV6;
    size_t n = 24 + fuzz_below(&in, 40), i;

    memcpy(f, hosts[to].mac, 6);
    memcpy(f + 6, hosts[!to].mac, 6);
    sg_put_be16(f + 12, TYPE_IP6);
    ip[0] = 0x60;
    sg_put_be16(ip + 4, (uint16_t)n);
    ip[6] = 58;
    ip[7] = fuzz_rarely(&in, 8) ? fuzz_u8(&in) : 255;
    memcpy(ip + 8, hosts[!to].ips[2].ip, 16);
    ip[23] = fuzz_rarely(&in, 2) ? fuzz_u8(&in) : ip[23];
    memcpy(ip + 24, hosts[to].ips[2].ip, 16);
    nd[0] = fuzz_rarely(&in, 8) ? fuzz_u8(&in) : 135 + (fuzz_u8(&in) & 1);
    nd[4] = fuzz_u8(&in);
    memcpy(nd + 8, nd[0] == 135 ? ip + 24 : ip + 8, 16);
    nd[24] = nd[0] == 135 ? 1 : 2;
    nd[25] = 1;
    memcpy(nd + 26, hosts[!to].mac, 6);
    for (i = fuzz_below(&in, 4); i; i--) {
        nd[fuzz_below(&in, 40)] = fuzz_u8(&in);
    }
    frame_mend(f, ETH + IPV6 + n);
    deliver(to, f, ETH + IPV6 + n);
}

static void noise(void)
{
    static const uint16_t types[] = { TYPE_IP4, TYPE_ARP, TYPE_IP6, TYPE_VLAN };
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
    frame_mend(f, ETH + n);
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

static void add_addresses(struct host *h)
{
    unsigned i;

    for (i = 0; i < NETS; i++) {
        sg_assert(h->net->ops->add_addr(h->net, &h->ips[i], h->ips[i].family == 4 ? 24 : 64, NULL));
    }
}

static void configure(struct host *h)
{
    struct sg_endpoint other = { .family = 4, .ip = { 10, 0, 9, fuzz_u8(&in) } };
    const struct sg_endpoint *own = &h->ips[fuzz_below(&in, NETS)];
    unsigned i;

    if (fuzz_u8(&in) & 1) {
        other = (struct sg_endpoint){ .family = 6, .ip = { 0xfe, 0x80 } };
        other.ip[15] = fuzz_u8(&in);
        other.vlan = fuzz_below(&in, 3);
    }

    switch (fuzz_below(&in, 8)) {
    case 0:
        h->net->ops->set_mtu(h->net, 576 + fuzz_u16(&in) % 8000);
        break;
    case 1:
        h->net->ops->add_addr(h->net, &other, fuzz_u8(&in) % 33, (uint8_t[16]){ 10, 0, 9, 1 });
        break;
    case 2:
        h->net->ops->del_addr(h->net, &other);
        break;
    case 3:
        sg_port_reset(h->port);
        for (i = 0; i < STREAMS; i++) {
            h->users[i].s = NULL;
        }
        h->listeners[0] = h->listeners[1] = NULL;
        add_addresses(h);
        break;
    case 4:
        h->net->ops->del_addr(h->net, own);
        h->net->ops->add_addr(h->net, own, own->family == 4 ? 24 : 64, NULL);
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
    struct net_target_user *u = &h->users[fuzz_below(&in, STREAMS)];
    unsigned n;

    switch (fuzz_below(&in, 20)) {
    case 0:
        fuzz_u8(&in) & 1 ? noise() : neighbour();
        break;
    case 1:
    case 2:
        forge();
        break;
    case 3:
        do_connect(h, fuzz_below(&in, NETS));
        break;
    case 4:
        do_listen(h, fuzz_u8(&in) & 1);
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
    snprintf(buf, len,
             "%llu connections, %llu of them over IPv6, %llu frames tagged, %llu octets "
             "received, %llu ends, %llu of them resets",
             connects, connects6, tagged, received, closes, resets);
    return connects && connects6 && tagged && received > 1000 && closes > resets && resets;
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
        h->ips[0] = (struct sg_endpoint){ .family = 4, .ip = { 10, [3] = (uint8_t)(i + 1) } };
        h->ips[1] = (struct sg_endpoint){
            .family = 4,
            .vlan = VLAN,
            .ip = { 10, 0, VLAN, (uint8_t)(i + 1) },
        };
        h->ips[2] = (struct sg_endpoint){ .family = 6, .ip = { 0xfd, [15] = (uint8_t)(i + 1) } };
        h->ips[3] = (struct sg_endpoint){
            .family = 6,
            .vlan = VLAN,
            .ip = { 0xfe, 0x80, [15] = (uint8_t)(i + 1) },
        };
        h->port = sg_port_new(&port_ops, h, h->mac, &config);
        sg_assert(h->port);
        h->net = sg_port_stream_net(h->port);
        add_addresses(h);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sg_port_counters counters;
    unsigned i;

    in = (struct fuzz_in){ data, size };
    start();
    /* Each input begins with one connection. */
    i = size ? data[0] % NETS : 0;
    do_listen(&hosts[1], i / 2);
    do_connect(&hosts[0], i);
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
