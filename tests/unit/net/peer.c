/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "peer.h"

static uint8_t pattern(uint64_t at)
{
    return (uint8_t)(at * 31 + (at >> 8) * 7 + (at >> 16));
}

static struct peer *event(struct sg_stream *s)
{
    struct peer *p = s->user;

    g_assert(p->s == s);
    p->upcall_in_call |= p->in_call;
    return p;
}

static void on_connected(struct sg_stream *s)
{
    struct peer *p = event(s);

    p->connects++;
    if (p->abort_on_connect) {
        peer_abort(p);
    } else {
        peer_send(p);
    }
}

static bool was_taken(const struct peer *p, uint64_t at)
{
    unsigned i;

    for (i = 0; i < p->takes; i++) {
        if (at >= p->taken[i].from && at < p->taken[i].to) {
            return true;
        }
    }
    return false;
}

static void forget_taken(struct peer *p)
{
    unsigned i, kept = 0;

    for (i = 0; i < p->takes; i++) {
        if (p->taken[i].to > p->received) {
            p->taken[kept++] = p->taken[i];
        }
    }
    p->takes = kept;
}

static void on_receive(struct sg_stream *s, const uint8_t *data, size_t n)
{
    struct peer *p = event(s);
    size_t i;

    for (i = 0; i < n; i++) {
        p->damaged |= data[i] != pattern(p->received + i) && !was_taken(p, p->received + i);
    }
    p->received += n;
    forget_taken(p);
    if (p->abort_on_receive) {
        peer_abort(p);
    }
}

static bool on_receive_early(struct sg_stream *s, uint32_t ahead, const uint8_t *data, size_t n)
{
    struct peer *p = event(s);
    size_t i;

    p->damaged |= !ahead;
    for (i = 0; i < n; i++) {
        p->damaged |= data[i] != pattern(p->received + ahead + i);
    }
    p->early += n;
    if (p->abort_on_early) {
        peer_abort(p);
    }
    if (!p->take_early || p->takes == PEER_TAKES) {
        return false;
    }
    p->taken[p->takes].from = p->received + ahead;
    p->taken[p->takes++].to = p->received + ahead + n;
    return true;
}

static void on_writable(struct sg_stream *s)
{
    struct peer *p = event(s);

    p->writables++;
    peer_send(p);
}

static void on_peer_closed(struct sg_stream *s)
{
    struct peer *p = event(s);

    p->peer_closes++;
    if (p->abort_on_close) {
        peer_abort(p);
    } else if (p->shut_on_peer_close) {
        peer_shutdown(p);
    }
}

static void on_closed(struct sg_stream *s, enum sg_stream_end why)
{
    struct peer *p = event(s);

    p->closes++;
    p->end = why;
    p->s = NULL;
}

const struct sg_stream_events peer_events = {
    .connected = on_connected,
    .receive = on_receive,
    .receive_early = on_receive_early,
    .writable = on_writable,
    .peer_closed = on_peer_closed,
    .closed = on_closed,
};

void peer_send(struct peer *p)
{
    uint8_t buf[65536];
    bool outer = p->in_call;

    while (p->s && p->sent < p->to_send) {
        size_t n = p->unit ? p->unit : 1 + wire_random(p->wire) % 20000, i, half;
        struct iovec iov[2];
        bool taken;

        n = MIN(n, p->to_send - p->sent);
        for (i = 0; i < n; i++) {
            buf[i] = pattern(p->sent + i);
        }
        half = n / 3;
        iov[0] = (struct iovec){ buf, half };
        iov[1] = (struct iovec){ buf + half, n - half };
        p->in_call = true;
        taken = p->s->ops->send(p->s, iov, 2, true);
        p->in_call = outer;
        if (!taken) {
            break;
        }
        memset(buf, 0xee, n); /* the memory is ours again */
        p->sent += n;
    }
    if (p->s) {
        p->in_call = true;
        p->s->ops->push(p->s);
        p->in_call = outer;
    }
}

void peer_abort(struct peer *p)
{
    bool outer = p->in_call;

    p->in_call = true;
    p->s->ops->abort(p->s);
    p->in_call = outer;
    p->s = NULL;
}

void peer_shutdown(struct peer *p)
{
    bool outer = p->in_call;

    p->in_call = true;
    p->s->ops->shutdown(p->s);
    p->in_call = outer;
}

bool peer_accept(void *user, struct sg_stream *s)
{
    struct peer *p = user;

    if (p->refuse) {
        return false;
    }
    g_assert(!p->s);
    s->events = &peer_events;
    s->user = p;
    p->s = s;
    p->connects++;
    peer_send(p);
    return true;
}

bool peer_connect(struct wire *w, struct peer *a, int host, const struct sg_endpoint *to,
                  enum sg_stream_end *why)
{
    struct wire_host *h = &w->host[host];
    struct sg_endpoint any = { .family = to->family };

    a->wire = w;
    a->in_call = true;
    a->s = h->net->ops->connect(h->net, &any, to, &peer_events, a, why);
    a->in_call = false;
    return a->s != NULL;
}

static bool both_connected(void *data)
{
    struct peer **p = data;

    return p[0]->connects && p[1]->connects;
}

bool peer_pair(struct wire *w, struct peer *a, struct peer *b, uint16_t port)
{
    struct sg_endpoint to = wire_endpoint(&w->host[1], port);

    return peer_pair_at(w, a, b, &to);
}

bool peer_pair_at(struct wire *w, struct peer *a, struct peer *b, const struct sg_endpoint *to)
{
    struct wire_host *h = &w->host[1];
    struct sg_endpoint any = { .family = to->family, .port = to->port };
    struct peer *both[2] = { a, b };
    struct sg_stream_listener *l;
    enum sg_stream_end why;
    bool good;

    b->wire = w;
    l = h->net->ops->listen(h->net, &any, 16, peer_accept, b, &why);
    good = l && peer_connect(w, a, 0, to, &why) && wire_run(w, both_connected, both, 60 * WIRE_S);
    if (l) {
        h->net->ops->unlisten(h->net, l);
    }
    return good;
}
