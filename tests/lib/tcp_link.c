/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tcp_link.h"

#include <stdlib.h>

enum { ARP_LEN = 42, EPOCH_S = 1000000 };

struct link_frame {
    struct link_frame *next;
    uint64_t at;
    size_t len;
    uint8_t data[];
};

struct end {
    struct tcp_link *link;
    struct pair_side *side;
    struct sg_port *port;
    uint8_t mac[6];
    struct link_frame *first, **last; /* on their way to this end */
    struct sg_impair *path;           /* from this end; NULL: 'delay_ns' */
};

struct tcp_link {
    struct pair_link link; /* first */
    struct tcp_link_options options;
    struct end end[2];
    uint64_t epoch;
};

static struct tcp_link *of(struct pair_link *link)
{
    return (struct tcp_link *)(void *)link;
}

static struct end *peer_of(struct end *e)
{
    return &e->link->end[e == &e->link->end[0]];
}

static struct link_frame *copy_frame(const struct iovec *iov, unsigned n, uint64_t at)
{
    struct link_frame *f;
    size_t len = 0;

    for (unsigned i = 0; i < n; i++) {
        len += iov[i].iov_len;
    }
    f = malloc(sizeof(*f) + len);
    sg_assert(f);
    *f = (struct link_frame){ .at = at };
    for (unsigned i = 0; i < n; i++) {
        memcpy(f->data + f->len, iov[i].iov_base, iov[i].iov_len);
        f->len += iov[i].iov_len;
    }
    return f;
}

static void append(struct end *to, struct link_frame *f)
{
    *to->last = f;
    to->last = &f->next;
}

static void send_frame(void *opaque, const struct iovec *iov, unsigned n)
{
    struct end *e = opaque;
    const struct tcp_link_options *o = &e->link->options;
    uint64_t now_ns = e->side->h.now_ns;
    struct link_frame *f = copy_frame(iov, n, now_ns + (e->path ? 0 : o->delay_ns));

    if ((o->lose && o->lose(o->opaque, (int)(e - e->link->end), f->data, f->len)) ||
        (e->path && !sg_impair_input(e->path, iov, n, 0, 0, now_ns))) {
        free(f);
        return;
    }
    append(peer_of(e), f);
}

/* A frame leaves the path. */
static void depart(void *opaque, const uint8_t *frame, size_t len, uint32_t tag)
{
    struct end *e = opaque;
    struct iovec iov = { .iov_base = (void *)(uintptr_t)frame, .iov_len = len };

    (void)tag;
    append(peer_of(e), copy_frame(&iov, 1, e->side->h.now_ns));
}

static uint64_t now(void *opaque)
{
    return ((struct end *)opaque)->side->h.now_ns;
}

static void random_octets(void *opaque, void *buf, size_t len)
{
    struct test_host *h = &((struct end *)opaque)->side->h;

    h->ops.random(h, buf, len);
}

static void kick(void *opaque)
{
    ((struct end *)opaque)->side->h.kicked = true;
}

static const struct sg_port_ops port_ops = {
    .send_frame = send_frame,
    .now = now,
    .random = random_octets,
    .kick = kick,
};

void tcp_link_mac(uint8_t mac[6], int side)
{
    memcpy(mac, (uint8_t[]){ 2, 0, 0, 0, 0, (uint8_t)(side + 1) }, 6);
}

static struct sg_stream_net *join(struct pair_link *link, int i, struct pair_side *side)
{
    struct tcp_link *t = of(link);
    struct end *e = &t->end[i];
    struct sg_stream_net *net;

    e->link = t;
    e->side = side;
    e->last = &e->first;
    tcp_link_mac(e->mac, i);
    side->h.now_ns = t->epoch;
    if (t->options.path) {
        struct sg_impair_config own = *t->options.path;

        own.seed += (uint64_t)i;
        e->path = sg_impair_new(&own);
        sg_assert(e->path);
    }
    e->port = sg_port_new(&port_ops, e, e->mac, &t->options.port);
    sg_assert(e->port);
    net = sg_port_stream_net(e->port);
    sg_assert(net->ops->add_addr(net, &side->at, 24, NULL));
    return net;
}

/* The NIC behind a port answers ARP (RFC 826) and ignores everything else. */
static void nic(struct end *e, const uint8_t *f, size_t len)
{
    uint8_t r[ARP_LEN];
    struct iovec iov = { .iov_base = r, .iov_len = sizeof(r) };

    if (len < ARP_LEN || f[12] != 8 || f[13] != 6 || f[21] != 1 ||
        memcmp(f + 38, e->side->at.ip, 4) != 0) {
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

void tcp_link_inject(struct pair_link *link, int side, const uint8_t *frame, size_t len)
{
    struct end *e = &of(link)->end[side];

    if (sg_port_input(e->port, frame, len) & SG_PORT_TO_NIC) {
        nic(e, frame, len);
    }
}

static uint64_t run(struct pair_link *link, uint64_t at)
{
    struct tcp_link *t = of(link);
    uint64_t next = SG_NEVER;

    for (int i = 0; i < 2; i++) {
        if (t->end[i].path) {
            sg_impair_output(t->end[i].path, at, SG_IMPAIR_FRAMES_MAX, depart, &t->end[i]);
        }
    }
    for (int i = 0; i < 2; i++) {
        struct end *e = &t->end[i];

        while (e->first && e->first->at <= at) {
            struct link_frame *f = e->first;

            e->first = f->next;
            e->last = e->first ? e->last : &e->first;
            tcp_link_inject(link, i, f->data, f->len);
            free(f);
        }
    }
    for (int i = 0; i < 2; i++) { /* after the loops above, which may have sent answers */
        next = t->end[i].first ? SG_MIN(next, t->end[i].first->at) : next;
        next = t->end[i].path ? SG_MIN(next, sg_impair_next(t->end[i].path)) : next;
    }
    return next;
}

static void free_link(struct pair_link *link)
{
    struct tcp_link *t = of(link);

    for (int i = 0; i < 2; i++) {
        sg_port_free(t->end[i].port);
    }
    for (int i = 0; i < 2; i++) {
        for (struct link_frame *f = t->end[i].first, *next; f; f = next) {
            next = f->next;
            free(f);
        }
        sg_impair_free(t->end[i].path);
    }
    free(t);
}

struct sg_port *tcp_link_port(struct pair_link *link, int side)
{
    return of(link)->end[side].port;
}

struct sg_impair *tcp_link_path(struct pair_link *link, int side)
{
    return of(link)->end[side].path;
}

struct pair_link *tcp_link_new(const struct tcp_link_options *options)
{
    static uint64_t epoch_s;
    struct tcp_link *t = calloc(1, sizeof(*t));

    sg_assert(t);
    t->link = (struct pair_link){ .join = join, .run = run, .free = free_link };
    if (options) {
        t->options = *options;
    }
    epoch_s += EPOCH_S;
    t->epoch = epoch_s * 1000000000ull;
    return &t->link;
}
