/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The in-memory streams: order, room, ends, addresses, and replay of a seed. */
#include <string.h>

#include "base/host.h"
#include "stream_mem.h"
#include "tap.h"

struct stream_mem_user {
    struct sg_stream *s;
    uint8_t in[70000];
    size_t in_len, pieces;
    bool connected, writable, fin, closed;
    enum sg_stream_end why;
    bool refuse;
};

static struct stream_mem_user ua, ub;
static struct sg_mem_switch *sw;
static struct sg_stream_net *na, *nb;
static struct sg_endpoint at_a, at_b;
static struct sg_stream_listener *l;

static void connected(struct sg_stream *s)
{
    ((struct stream_mem_user *)s->user)->connected = true;
}

static void receive(struct sg_stream *s, const uint8_t *p, size_t n)
{
    struct stream_mem_user *u = s->user;

    memcpy(u->in + u->in_len, p, n);
    u->in_len += n;
    u->pieces++;
}

static void writable(struct sg_stream *s)
{
    ((struct stream_mem_user *)s->user)->writable = true;
}

static void peer_closed(struct sg_stream *s)
{
    ((struct stream_mem_user *)s->user)->fin = true;
}

static void closed(struct sg_stream *s, enum sg_stream_end why)
{
    struct stream_mem_user *u = s->user;

    u->closed = true;
    u->why = why;
    u->s = NULL;
}

static const struct sg_stream_events events = { connected, receive, writable, peer_closed, closed };

static bool accept_b(void *user, struct sg_stream *s)
{
    s->events = &events;
    s->user = &ub;
    ub.s = s;
    return !ub.refuse;
}

static void start(const struct sg_mem_options *opt)
{
    enum sg_stream_end why;

    memset(&ua, 0, sizeof(ua));
    memset(&ub, 0, sizeof(ub));
    at_a = (struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, 1 } };
    at_b = (struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, 2 } };
    sw = sg_mem_switch_new(opt);
    na = sg_mem_switch_port(sw, &at_a);
    nb = sg_mem_switch_port(sw, &at_b);
    at_b.port = 7;
    l = nb->ops->listen(nb, &at_b, 1, accept_b, NULL, &why);
    T_NOT_NULL(l);
}

static void settle(void)
{
    uint64_t now = 1, next;

    while ((next = sg_mem_switch_run(sw, now)) != SG_NEVER) {
        now = next > now ? next : now;
    }
}

static void up(void)
{
    enum sg_stream_end why;

    memset(&ua, 0, sizeof(ua));
    ua.s = na->ops->connect(na, &(struct sg_endpoint){ .family = 4 }, &at_b, &events, &ua, &why);
    T_NOT_NULL(ua.s);
    T_FALSE(ua.connected);
    settle();
}

static void stop(void)
{
    if (ua.s) {
        ua.s->ops->abort(ua.s);
    }
    settle();
    T_NULL(ub.s);
    sg_mem_switch_free(sw);
}

static bool send_octets(struct sg_stream *s, const void *p, size_t n)
{
    struct iovec iov[2] = {
        { .iov_base = (void *)p, .iov_len = n / 2 },
        { .iov_base = (uint8_t *)p + n / 2, .iov_len = n - n / 2 },
    };

    return s->ops->send(s, iov, 2, false);
}

static void immediate(void)
{
    struct sg_endpoint local, remote;

    start(&(struct sg_mem_options){ .emss = 1460 });
    up();
    T_TRUE(ua.connected);
    T_TRUE(send_octets(ua.s, "hello", 5));
    T_EQ_U64(ub.in_len, 5); /* at once, in one piece */
    T_EQ_U64(ub.pieces, 1);
    T_EQ_U64(ua.s->ops->emss(ua.s), 1460);
    ub.s->ops->endpoints(ub.s, &local, &remote);
    T_EQ_U64(local.port, 7);
    T_EQ_MEM(remote.ip, at_a.ip, 16);
    T_TRUE(remote.port >= 49152);
    stop();
}

static void graceful_end(void)
{
    start(&(struct sg_mem_options){ .queued = true });
    up();
    send_octets(ua.s, "ab", 2);
    ua.s->ops->shutdown(ua.s);
    T_FALSE(ub.fin);
    settle();
    T_TRUE(ub.fin && ub.in_len == 2 && !ub.closed && !ua.closed);
    send_octets(ub.s, "cde", 3); /* the other direction still works */
    ub.s->ops->shutdown(ub.s);
    settle();
    T_EQ_U64(ua.in_len, 3);
    T_TRUE(ua.fin && ua.closed && ub.closed);
    T_EQ_INT(ua.why, SG_STREAM_CLOSED);
    T_EQ_INT(ub.why, SG_STREAM_CLOSED);
    stop();
}

static void other_ends(void)
{
    struct sg_endpoint nowhere = { .family = 4, .ip = { 10, 9, 9, 9 } };
    enum sg_stream_end why;

    start(&(struct sg_mem_options){ .queued = true });
    up();
    ub.s->ops->abort(ub.s);
    ub.s = NULL;
    T_FALSE(ua.closed);
    settle();
    T_TRUE(ua.closed && ua.why == SG_STREAM_RESET);
    up();
    sg_mem_break(ua.s);
    settle();
    T_TRUE(ub.closed && ub.why == SG_STREAM_RESET && ua.why == SG_STREAM_RESET);
    at_b.port = 8;
    up();
    T_TRUE(ua.closed && ua.why == SG_STREAM_REFUSED);
    at_b.port = 7;
    ub.refuse = true;
    up();
    T_TRUE(ua.closed && ua.why == SG_STREAM_RESET);
    ub.s = NULL;
    T_NULL(na->ops->connect(na, &nowhere, &at_b, &events, &ua, &why));
    T_EQ_INT(why, SG_STREAM_UNREACHABLE);
    T_NULL(nb->ops->listen(nb, &at_b, 1, accept_b, NULL, &why));
    T_EQ_INT(why, SG_STREAM_UNREACHABLE);
    T_NULL(nb->ops->listen(nb, &nowhere, 1, accept_b, NULL, &why));
    T_EQ_INT(why, SG_STREAM_UNREACHABLE);
    nb->ops->unlisten(nb, l);
    up();
    T_TRUE(ua.closed && ua.why == SG_STREAM_REFUSED);
    stop();
}

static void addresses(void)
{
    struct sg_endpoint more = { .family = 4, .ip = { 10, 0, 0, 3 } };
    struct sg_net_counters counters;
    static const uint8_t gateway[16];
    unsigned i;

    start(&(struct sg_mem_options){ .queued = true });
    T_FALSE(nb->ops->del_addr(nb, &more));
    for (i = 3; i < 10; i++) {
        more.ip[3] = (uint8_t)i;
        T_TRUE(nb->ops->add_addr(nb, &more, 24, gateway));
    }
    T_TRUE(nb->ops->add_addr(nb, &more, 24, gateway)); /* known already */
    more.ip[3] = 77;
    T_FALSE(nb->ops->add_addr(nb, &more, 24, gateway)); /* full */
    more.ip[3] = 3;
    T_TRUE(nb->ops->del_addr(nb, &more));
    nb->ops->clear_addrs(nb);
    up();
    T_TRUE(ua.closed && ua.why == SG_STREAM_REFUSED);
    nb->ops->counters(nb, &counters);
    T_EQ_U64(counters.tcp_retransmits, 0);
    T_EQ_U64(counters.tx_frames + counters.rx_frames + counters.tx_dropped_frames, 0);
    stop();
}

static void room(void)
{
    static uint8_t data[4000];

    start(&(struct sg_mem_options){ .queued = true, .emss = 1000, .room = 5000 });
    up();
    T_EQ_U64(ua.s->ops->room(ua.s), 5000);
    T_TRUE(send_octets(ua.s, data, 4000));
    T_EQ_U64(ua.s->ops->room(ua.s), 1000);
    T_FALSE(send_octets(ua.s, data, 1001)); /* all or nothing */
    T_TRUE(send_octets(ua.s, data, 1000));
    T_FALSE(ua.writable);
    settle();
    T_TRUE(ua.writable);
    T_EQ_U64(ub.in_len, 5000);
    stop();
}

/* Octets arrive cut, joined and late, but complete and in order; a seed determines the cuts. */
static void segmentation(void)
{
    struct sg_mem_options opt = {
        .queued = true,
        .seed = 5,
        .delay_min_ns = 10,
        .delay_max_ns = 1000,
        .piece_max = 50,
    };
    static uint8_t data[3000];
    size_t pieces[3], i;

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i ^ (i >> 8));
    }
    for (i = 0; i < 3; i++) {
        opt.seed = i == 2 ? 6 : 5;
        start(&opt);
        up();
        send_octets(ua.s, data, 1000);
        send_octets(ua.s, data + 1000, 2000);
        settle();
        T_EQ_U64(ub.in_len, 3000);
        T_EQ_MEM(ub.in, data, 3000);
        pieces[i] = ub.pieces;
        stop();
    }
    T_TRUE(pieces[0] > 60);
    T_EQ_U64(pieces[0], pieces[1]);
    T_TRUE(pieces[0] != pieces[2]);
}

static void damage(void)
{
    struct sg_mem_options opt = {
        .queued = true,
        .seed = 1,
        .piece_max = 10,
        .corrupt_ppm = 300000,
        .corrupt_from = 100,
    };
    static uint8_t zeros[3000];
    size_t i, bits = 0;

    start(&opt);
    up();
    send_octets(ua.s, zeros, 3000);
    settle();
    T_EQ_U64(ub.in_len, 3000);
    T_EQ_MEM(ub.in, zeros, 100);
    for (i = 0; i < 3000; i++) {
        bits += (size_t)__builtin_popcount(ub.in[i]);
    }
    T_TRUE(bits > 50 && bits < 400);
    stop();
    opt.corrupt_ppm = 0;
    opt.break_ppm = 1000000;
    start(&opt);
    up();
    send_octets(ua.s, zeros, 1);
    settle();
    T_TRUE(ua.closed && ub.closed && ub.in_len == 0);
    stop();
}

static const struct t_case cases[] = {
    { "immediate: straight into the peer's receive", immediate },
    { "graceful end, half by half", graceful_end },
    { "reset, broken, refused, unreachable", other_ends },
    { "addresses", addresses },
    { "room, refusal, writable", room },
    { "segmentation follows the seed", segmentation },
    { "damage and breaking", damage },
};

T_MAIN(cases)
