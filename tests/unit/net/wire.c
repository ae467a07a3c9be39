/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "base/bytes.h"
#include "base/host.h"
#include "wire.h"

struct in_flight {
    uint64_t at;
    uint64_t sequence;
    int to;
    size_t len;
    uint8_t data[];
};

uint64_t wire_random(struct wire *w)
{
    w->rng ^= w->rng << 13;
    w->rng ^= w->rng >> 7;
    w->rng ^= w->rng << 17;
    return w->rng * 0x2545f4914f6cdd1dull >> 16;
}

static bool happens(struct wire *w, unsigned of_1000)
{
    return of_1000 && wire_random(w) % 1000 < of_1000;
}

static gint by_time(gconstpointer a, gconstpointer b, gpointer data)
{
    const struct in_flight *x = a, *y = b;

    if (x->at != y->at) {
        return x->at < y->at ? -1 : 1;
    }
    return x->sequence < y->sequence ? -1 : 1;
}

static void arrive(struct wire *w, struct in_flight *f);

static void post(struct wire *w, int to, const uint8_t *frame, size_t len)
{
    struct in_flight *f = g_malloc(sizeof(*f) + len);

    f->at = w->now + w->delay;
    if (happens(w, w->faults.reorder)) {
        f->at += wire_random(w) % (4 * w->delay + 1);
    }
    f->sequence = w->sequence++;
    f->to = to;
    f->len = len;
    memcpy(f->data, frame, len);
    if (w->synchronous) {
        arrive(w, f);
        return;
    }
    if (happens(w, w->faults.corrupt)) {
        f->data[34 + wire_random(w) % (len - 34)] ^= 1u << wire_random(w) % 8;
    }
    g_sequence_insert_sorted(w->frames, f, by_time, NULL);
}

void wire_inject(struct wire *w, int to, const uint8_t *frame, size_t len)
{
    post(w, to, frame, len);
}

static void receive(struct wire_host *h, const uint8_t *frame, size_t len);

static void link_deliver(void *opaque, const uint8_t *frame, size_t len, uint32_t tag)
{
    receive(opaque, frame, len);
}

static void transmit(struct wire_host *h, const uint8_t *frame, size_t len)
{
    struct wire *w = h->wire;
    struct iovec iov = { .iov_base = (void *)(uintptr_t)frame, .iov_len = len };
    int from = (int)(h - w->host);

    if (w->tap) {
        w->tap(w, from, frame, len);
    }
    if (w->link[from] && !sg_impair_input(w->link[from], &iov, 1, 0, 0, w->now)) {
        return;
    }
    if ((w->router && w->router(w, from, frame, len)) || happens(w, w->faults.loss)) {
        return;
    }
    post(w, !from, frame, len);
    if (happens(w, w->faults.duplicate)) {
        post(w, !from, frame, len);
    }
}

static void host_send_frame(void *opaque, const struct iovec *iov, unsigned n)
{
    static uint8_t frame[65536];
    size_t len = 0;
    unsigned i;

    for (i = 0; i < n; i++) {
        memcpy(frame + len, iov[i].iov_base, iov[i].iov_len);
        len += iov[i].iov_len;
    }
    transmit(opaque, frame, len);
}

static bool host_can_send(void *opaque)
{
    return !((struct wire_host *)opaque)->congested;
}

static uint64_t host_now(void *opaque)
{
    return ((struct wire_host *)opaque)->wire->now;
}

static void host_random(void *opaque, void *buf, size_t len)
{
    struct wire *w = ((struct wire_host *)opaque)->wire;
    uint8_t *p = buf;

    while (len--) {
        *p++ = (uint8_t)wire_random(w);
    }
}

static void host_kick(void *opaque)
{
    ((struct wire_host *)opaque)->kicked = true;
}

static const struct sg_port_ops host_ops = {
    .send_frame = host_send_frame,
    .can_send = host_can_send,
    .now = host_now,
    .random = host_random,
    .kick = host_kick,
};

uint16_t wire_checksum(const uint8_t *p, size_t len, uint32_t start)
{
    uint64_t sum = start;
    size_t i;

    for (i = 0; i + 1 < len; i += 2) {
        sum += sg_get_be16(p + i);
    }
    if (len & 1) {
        sum += (uint32_t)p[len - 1] << 8;
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

uint32_t wire_pseudo_header(const uint8_t *ip, size_t tcp_len)
{
    return sg_get_be16(ip + 12) + sg_get_be16(ip + 14) + sg_get_be16(ip + 16) +
           sg_get_be16(ip + 18) + 6 + (uint32_t)tcp_len;
}

static uint32_t pseudo_header6(const uint8_t *ip, size_t len, uint8_t proto)
{
    uint32_t sum = proto + (uint32_t)len;
    unsigned i;

    for (i = 8; i < 40; i += 2) {
        sum += sg_get_be16(ip + i);
    }
    return sum;
}

static size_t build_tcp(uint8_t *tcp, const struct wire_segment *s)
{
    size_t head = 20 + s->options_len;

    memset(tcp, 0, 20);
    sg_put_be16(tcp, s->src.port);
    sg_put_be16(tcp + 2, s->dst.port);
    sg_put_be32(tcp + 4, s->seq);
    sg_put_be32(tcp + 8, s->ack);
    tcp[12] = (uint8_t)(head / 4 << 4);
    tcp[13] = s->flags;
    sg_put_be16(tcp + 14, s->window);
    if (s->options_len) {
        memcpy(tcp + 20, s->options, s->options_len);
    }
    if (s->payload_len) {
        memcpy(tcp + head, s->payload, s->payload_len);
    }
    return head + s->payload_len;
}

static size_t build6(uint8_t *frame, const struct wire_segment *s)
{
    uint8_t *ip = frame + 14, *tcp = ip + 40 + s->extensions_len;
    size_t len = build_tcp(tcp, s);

    memset(ip, 0, 40);
    ip[0] = 0x60;
    sg_put_be16(ip + 4, (uint16_t)(s->extensions_len + len));
    ip[6] = s->extensions_len ? s->first_extension : 6;
    ip[7] = 64;
    memcpy(ip + 8, s->src.ip, 16);
    memcpy(ip + 24, s->dst.ip, 16);
    if (s->extensions_len) {
        memcpy(ip + 40, s->extensions, s->extensions_len);
    }
    sg_put_be16(tcp + 16, wire_checksum(tcp, len, pseudo_header6(ip, len, 6)));
    return 14 + 40 + s->extensions_len + len;
}

size_t wire_build(uint8_t *frame, const struct wire_segment *s)
{
    uint8_t *ip = frame + 14, *tcp = ip + 20;
    size_t tcp_len;

    memcpy(frame, s->dst_mac, 6);
    memcpy(frame + 6, s->src_mac, 6);
    sg_put_be16(frame + 12, s->src.family == 6 ? 0x86dd : 0x0800);
    if (s->src.family == 6) {
        return build6(frame, s);
    }
    tcp_len = build_tcp(tcp, s);
    memset(ip, 0, 20);
    ip[0] = 0x45;
    sg_put_be16(ip + 2, (uint16_t)(20 + tcp_len));
    ip[8] = 64;
    ip[9] = 6;
    memcpy(ip + 12, s->src.ip, 4);
    memcpy(ip + 16, s->dst.ip, 4);
    sg_put_be16(ip + 10, wire_checksum(ip, 20, 0));
    sg_put_be16(tcp + 16, wire_checksum(tcp, tcp_len, wire_pseudo_header(ip, tcp_len)));
    return 34 + tcp_len;
}

size_t wire_tag(uint8_t *frame, size_t len, uint16_t tci)
{
    memmove(frame + 16, frame + 12, len - 12);
    sg_put_be16(frame + 12, 0x8100);
    sg_put_be16(frame + 14, tci);
    return len + 4;
}

void wire_mend_icmp6(uint8_t *f)
{
    uint8_t *ip = f + 14;
    size_t len = sg_get_be16(ip + 4);

    sg_put_be16(ip + 42, 0);
    sg_put_be16(ip + 42, wire_checksum(ip + 40, len, pseudo_header6(ip, len, 58)));
}

/* Whether this is one of the host's addresses on that link. */
static bool nic_has(const struct wire_host *h, unsigned family, const uint8_t *ip, uint16_t vlan)
{
    unsigned i;

    for (i = 0; i < h->n_more; i++) {
        const struct sg_endpoint *e = &h->more[i];

        if (e->family == family && e->vlan == vlan &&
            memcmp(e->ip, ip, family == 4 ? 4 : 16) == 0) {
            return true;
        }
    }
    return family == 4 && vlan == 0 && memcmp(ip, h->ip.ip, 4) == 0;
}

static void answer(struct wire_host *h, uint8_t *frame, size_t len, uint16_t vlan)
{
    transmit(h, frame, vlan ? wire_tag(frame, len, vlan) : len);
}

static void nic_answer_arp(struct wire_host *h, const uint8_t *f, uint16_t vlan)
{
    uint8_t r[46];

    if (sg_get_be16(f + 20) != 1 || !nic_has(h, 4, f + 38, vlan)) {
        return;
    }
    memcpy(r, f, 42);
    memcpy(r, f + 6, 6);
    memcpy(r + 6, h->mac, 6);
    sg_put_be16(r + 20, 2);
    memcpy(r + 22, h->mac, 6);
    memcpy(r + 28, f + 38, 4);
    memcpy(r + 32, f + 22, 10);
    h->arp_answers++;
    answer(h, r, 42, vlan);
}

/* RFC 4861, section 7.2.4. */
static void nic_answer_solicitation(struct wire_host *h, const uint8_t *f, uint16_t vlan)
{
    uint8_t r[90] = { 0 };

    if (f[54] != 135 || !nic_has(h, 6, f + 62, vlan)) {
        return;
    }
    memcpy(r, f + 6, 6);
    memcpy(r + 6, h->mac, 6);
    memcpy(r + 12, f + 12, 10);
    sg_put_be16(r + 18, 32);
    memcpy(r + 22, f + 62, 16);
    memcpy(r + 38, f + 22, 16);
    r[54] = 136;
    r[58] = 0x60; /* solicited, override */
    memcpy(r + 62, f + 62, 16);
    r[78] = 2;
    r[79] = 1;
    memcpy(r + 80, h->mac, 6);
    wire_mend_icmp6(r);
    h->nd_answers++;
    answer(h, r, 86, vlan);
}

/* RFC 9293, section 3.5.2, group 1: no such connection. */
static void nic_refuse(struct wire_host *h, const uint8_t *f)
{
    const uint8_t *ip = f + 14, *tcp = ip + 20;
    uint8_t r[64];
    struct wire_segment s = {
        .dst_mac = f + 6,
        .src_mac = h->mac,
        .flags = 0x14,
        .src = { .family = 4, .port = sg_get_be16(tcp + 2) },
        .dst = { .family = 4, .port = sg_get_be16(tcp) },
        .ack = sg_get_be32(tcp + 4) + (tcp[13] & 3 ? 1 : 0) + sg_get_be16(ip + 2) - 20 -
               (tcp[12] >> 4) * 4u,
        .seq = sg_get_be32(tcp + 8),
    };

    if (tcp[13] & 4) {
        return;
    }
    memcpy(s.src.ip, ip + 16, 4);
    memcpy(s.dst.ip, ip + 12, 4);
    h->resets++;
    transmit(h, r, wire_build(r, &s));
}

static void nic_input(struct wire_host *h, const uint8_t *frame, size_t len)
{
    uint8_t untagged[200] = { 0 };
    const uint8_t *f = frame;
    uint16_t vlan = 0;

    h->nic_frames++;
    if (h->mute) {
        return;
    }
    if (len >= 46 && sg_get_be16(f + 12) == 0x8100) {
        vlan = sg_get_be16(f + 14) & 0xfff;
        len = MIN(len - 4, sizeof(untagged));
        memcpy(untagged, f, 12);
        memcpy(untagged + 12, f + 16, len - 12);
        f = untagged;
    }
    if (len >= 42 && sg_get_be16(f + 12) == 0x0806) {
        nic_answer_arp(h, f, vlan);
    } else if (len >= 86 && sg_get_be16(f + 12) == 0x86dd && f[20] == 58) {
        nic_answer_solicitation(h, f, vlan);
    } else if (!vlan && len >= 54 && sg_get_be16(f + 12) == 0x0800 && f[23] == 6 &&
               memcmp(f, h->mac, 6) == 0) {
        nic_refuse(h, f);
    }
}

static void receive(struct wire_host *h, const uint8_t *frame, size_t len)
{
    bool lost = h->drops_all || (h->drops_tcp && sg_get_be16(frame + 12) != 0x0806);

    if (!lost && sg_port_input(h->port, frame, len) & SG_PORT_TO_NIC) {
        nic_input(h, frame, len);
    }
}

static void arrive(struct wire *w, struct in_flight *f)
{
    receive(&w->host[f->to], f->data, f->len);
    g_free(f);
}

struct sg_endpoint wire_ip6(bool link_local, uint16_t last, uint16_t vlan, uint16_t port)
{
    struct sg_endpoint e = { .family = 6, .port = port, .ip = { 0xfd }, .vlan = vlan };

    if (link_local) {
        e.ip[0] = 0xfe;
        e.ip[1] = 0x80;
    }
    sg_put_be16(e.ip + 14, last);
    return e;
}

bool wire_add(struct wire *w, int host, const struct sg_endpoint *ip, unsigned prefix_len,
              const uint8_t *gateway)
{
    struct wire_host *h = &w->host[host];

    if (!h->net->ops->add_addr(h->net, ip, prefix_len, gateway)) {
        return false;
    }
    g_assert(h->n_more < WIRE_MORE);
    h->more[h->n_more++] = *ip;
    return true;
}

struct sg_endpoint wire_ip(unsigned a, unsigned b, unsigned c, unsigned d, uint16_t port)
{
    return (struct sg_endpoint){
        .family = 4,
        .port = port,
        .ip = { (uint8_t)a, (uint8_t)b, (uint8_t)c, (uint8_t)d },
    };
}

struct sg_endpoint wire_endpoint(const struct wire_host *h, uint16_t port)
{
    struct sg_endpoint e = h->ip;

    e.port = port;
    return e;
}

struct wire *wire_new(uint64_t seed, unsigned mtu, const struct sg_port_config *config)
{
    struct wire *w = g_new0(struct wire, 1);
    struct sg_port_config c = { 0 };
    int i;

    w->rng = seed * 0x9e3779b97f4a7c15ull + 1;
    w->delay = 50000;
    /* lwIP has one clock per process, which does not go back. */
    static uint64_t epoch = WIRE_S;
    epoch += 1000000 * WIRE_S;
    w->now = epoch;
    w->frames = g_sequence_new(NULL);
    if (config) {
        c = *config;
    }
    c.mtu = mtu;
    for (i = 0; i < 2; i++) {
        struct wire_host *h = &w->host[i];

        h->wire = w;
        memcpy(h->mac, (uint8_t[]){ 0x52, 0x54, 0, 0, 0, (uint8_t)(i + 1) }, 6);
        h->ip = wire_ip(10, 0, 0, (unsigned)i + 1, 0);
        h->deadline = SG_NEVER;
        h->port = sg_port_new(&host_ops, h, h->mac, &c);
        g_assert(h->port);
        h->net = sg_port_stream_net(h->port);
        g_assert(h->net->ops->add_addr(h->net, &h->ip, 24, NULL));
    }
    return w;
}

void wire_impair(struct wire *w, const struct sg_impair_config *config)
{
    struct sg_impair_config c = *config;
    int i;

    for (i = 0; i < 2; i++) {
        sg_impair_free(w->link[i]);
        c.seed = config->seed * 2 + (unsigned)i;
        w->link[i] = sg_impair_new(&c);
        g_assert(w->link[i]);
    }
}

void wire_free(struct wire *w)
{
    GSequenceIter *it;

    sg_impair_free(w->link[0]);
    sg_impair_free(w->link[1]);
    sg_port_free(w->host[0].port);
    sg_port_free(w->host[1].port);
    for (it = g_sequence_get_begin_iter(w->frames); !g_sequence_iter_is_end(it);
         it = g_sequence_iter_next(it)) {
        g_free(g_sequence_get(it));
    }
    g_sequence_free(w->frames);
    g_free(w);
}

static void run_ports(struct wire *w)
{
    int i;

    for (i = 0; i < 2; i++) {
        if (w->link[i]) {
            sg_impair_output(w->link[i], w->now, UINT_MAX, link_deliver, &w->host[!i]);
        }
    }
    for (i = 0; i < 2; i++) {
        struct wire_host *h = &w->host[i];

        if (h->kicked || h->deadline <= w->now) {
            h->kicked = false;
            h->deadline = h->net->ops->run(h->net, w->now);
        }
    }
}

static uint64_t next_event(struct wire *w)
{
    GSequenceIter *first = g_sequence_get_begin_iter(w->frames);
    uint64_t at = MIN(w->host[0].deadline, w->host[1].deadline);
    int i;

    if (w->host[0].kicked || w->host[1].kicked) {
        return w->now;
    }
    for (i = 0; i < 2; i++) {
        at = w->link[i] ? MIN(at, sg_impair_next(w->link[i])) : at;
    }
    if (!g_sequence_iter_is_end(first)) {
        at = MIN(at, ((struct in_flight *)g_sequence_get(first))->at);
    }
    return at;
}

bool wire_run(struct wire *w, bool (*done)(void *), void *data, uint64_t limit)
{
    uint64_t until = w->now + limit, at;
    GSequenceIter *first;

    while (!done || !done(data)) {
        at = next_event(w);
        if (at == SG_NEVER || at > until) {
            w->now = at == SG_NEVER ? w->now : until;
            return false;
        }
        w->now = MAX(w->now, at);
        first = g_sequence_get_begin_iter(w->frames);
        if (!g_sequence_iter_is_end(first) &&
            ((struct in_flight *)g_sequence_get(first))->at <= w->now) {
            struct in_flight *f = g_sequence_get(first);

            g_sequence_remove(first);
            arrive(w, f);
        }
        run_ports(w);
    }
    return true;
}

void wire_settle(struct wire *w, uint64_t ns)
{
    wire_run(w, NULL, NULL, ns);
}
