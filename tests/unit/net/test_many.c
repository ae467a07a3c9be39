/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Idle connections cost no time.  The test counts how many connections the stack examines, which
 * must be the same whether thousands are idle or none.
 */
#include "tap.h"
#include "peer.h"
#include "base/bytes.h"
#include "net_priv.h"

enum { PORT = 4791, SYN = 2 };

/* Idle connections.  With sanitizers each costs ten times as much, and says nothing more. */
static unsigned idle(void)
{
    return t_not_sanitized() ? 4096 : 1024;
}

struct many_peers {
    struct wire *w;
    struct peer *near, *far;
    struct sg_stream_listener *listener;
    unsigned count, accepted;
};

static bool accept_one(void *user, struct sg_stream *s)
{
    struct many_peers *m = user;
    struct peer *p = &m->far[m->accepted++];

    p->wire = m->w;
    return peer_accept(p, s);
}

static bool all_accepted(void *data)
{
    struct many_peers *m = data;

    return m->accepted == m->count;
}

static void connect_many(struct many_peers *m, unsigned count, const struct sg_port_config *config)
{
    struct sg_endpoint any = { .family = 4, .port = PORT };
    struct sg_endpoint to;
    enum sg_stream_end why;
    unsigned i;

    m->w = wire_new(900, 1500, config);
    m->near = g_new0(struct peer, count);
    m->far = g_new0(struct peer, count + 1);
    m->count = m->accepted = 0;
    to = wire_endpoint(&m->w->host[1], PORT);
    m->listener = m->w->host[1].net->ops->listen(m->w->host[1].net, &any, 255, accept_one, m, &why);
    for (i = 0; i < count; i++) {
        T_TRUE(peer_connect(m->w, &m->near[i], 0, &to, &why));
        m->count = i + 1;
        T_TRUE(wire_run(m->w, all_accepted, m, WIRE_S));
    }
}

static void disconnect(struct many_peers *m)
{
    wire_free(m->w);
    g_free(m->near);
    g_free(m->far);
}

static uint64_t visits(struct many_peers *m)
{
    struct sg_port_counters c[2];

    sg_port_counters(m->w->host[0].port, &c[0]);
    sg_port_counters(m->w->host[1].port, &c[1]);
    return c[0].visits + c[1].visits;
}

static void send_syn(struct many_peers *m, uint16_t port, uint32_t seq)
{
    struct wire_segment s = {
        .dst_mac = m->w->host[1].mac,
        .src_mac = m->w->host[0].mac,
        .seq = seq,
        .flags = SYN,
        .window = 65535,
        .src = wire_ip(10, 0, 0, 7, port),
        .dst = wire_endpoint(&m->w->host[1], PORT),
    };
    uint8_t frame[128];

    sg_port_input(m->w->host[1].port, frame, wire_build(frame, &s));
}

struct cost {
    uint64_t send, run, syn, second;
};

static struct cost cost_with(unsigned count)
{
    struct many_peers m;
    struct cost c;
    uint64_t before, at;

    connect_many(&m, count, NULL);
    wire_settle(m.w, WIRE_S);
    before = visits(&m);
    m.near[0].to_send += 64;
    peer_send(&m.near[0]);
    wire_settle(m.w, WIRE_MS);
    T_EQ_U64(m.far[0].received, 64);
    c.send = visits(&m) - before;

    before = visits(&m);
    at = m.w->now;
    m.w->host[0].deadline = m.w->host[0].net->ops->run(m.w->host[0].net, at);
    c.run = visits(&m) - before;

    before = visits(&m);
    send_syn(&m, 3000, 1);
    c.syn = visits(&m) - before;

    wire_settle(m.w, 2 * WIRE_S); /* all become idle, the SYN is answered three times */
    before = visits(&m);
    wire_settle(m.w, WIRE_S);
    c.second = visits(&m) - before;
    disconnect(&m);
    return c;
}

static void idle__costs_nothing(void)
{
    struct cost one = cost_with(1), many = cost_with(idle());

    T_TRUE(one.send > 0);
    T_EQ_U64(many.send, one.send);
    T_EQ_U64(one.run, 0);
    T_EQ_U64(many.run, 0);
    T_EQ_U64(many.syn, one.syn);
    T_EQ_U64(many.second, one.second);
}

/* Idle connections do not make the lookup longer: the table grows with them. */
static void idle__chains_stay_short(void)
{
    const struct flow_table *t;
    unsigned i, n, longest = 0;
    const struct flow *f;
    struct many_peers m;

    connect_many(&m, 1000, NULL);
    t = &m.w->host[1].port->flows;
    T_EQ_INT(t->count, 1000);
    for (i = 0; i <= t->mask; i++) {
        for (n = 0, f = t->buckets[i]; f; f = f->next) {
            n++;
        }
        longest = MAX(longest, n);
    }
    T_TRUE(longest >= 1 && longest <= 8);
    disconnect(&m);
}

/* An address has sixteen octets: those behind it must not be read. */
static void address__sixteen_octets(void)
{
    uint8_t to[17], ip[16] = { 10, 1, 2, 3 };
    ip_addr_t a;

    memset(to, 0xee, sizeof(to));
    stack_ip_set(&a, 4, ip);
    stack_ip_get(to, &a);
    T_EQ_MEM(to, ip, 16);
    T_EQ_INT(to[16], 0xee);
    ip[0] = 0xfd;
    ip[15] = 7;
    stack_ip_set(&a, 6, ip);
    stack_ip_get(to, &a);
    T_EQ_MEM(to, ip, 16);
    T_EQ_INT(to[16], 0xee);
}

static unsigned frames_in_tick, most_in_tick;
static uint64_t tick_began;

static void count_per_tick(struct wire *w, int from, const uint8_t *frame, size_t len)
{
    if (w->now - tick_began >= 200 * WIRE_MS) {
        tick_began = w->now;
        frames_in_tick = 0;
    }
    frames_in_tick++;
    most_in_tick = MAX(most_in_tick, frames_in_tick);
}

/*
 * Connections that became idle at one time probe their peers after half of the timeout (RFC 9293,
 * section 3.8.4), but not all in one turn; none that is answered ends.
 */
static void idle__peers_are_asked_in_turn(void)
{
    struct sg_port_config config = { .peer_timeout_ms = 16000 };
    struct many_peers m;
    unsigned i;

    connect_many(&m, idle(), &config);
    frames_in_tick = most_in_tick = 0;
    tick_began = m.w->now;
    m.w->tap = count_per_tick;
    wire_settle(m.w, 60 * WIRE_S);
    for (i = 0; i < idle(); i++) {
        T_EQ_INT(m.near[i].closes + m.far[i].closes, 0);
    }
    T_NOTE("most frames in a tick: %u", most_in_tick);
    T_TRUE(most_in_tick > 0 && most_in_tick <= idle() / 2);
    m.w->tap = NULL;
    /* All that are not answered end in time. */
    m.w->host[0].drops_all = m.w->host[1].drops_all = true;
    wire_settle(m.w, 17 * WIRE_S);
    for (i = 0; i < idle(); i++) {
        T_EQ_INT(m.near[i].closes, 1);
        T_EQ_INT(m.near[i].end, SG_STREAM_TIMEOUT);
    }
    disconnect(&m);
}

/* Puts the first 'count' connections of host 1 into TIME-WAIT, in order. */
static void close_some(struct many_peers *m, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        m->near[i].shut_on_peer_close = true;
        peer_shutdown(&m->far[i]);
        wire_settle(m->w, WIRE_MS);
    }
}

static unsigned connections(struct many_peers *m, int host)
{
    struct sg_port_counters c;

    sg_port_counters(m->w->host[host].port, &c);
    return c.connections;
}

/*
 * A SYN of an unknown connection costs the same with thousands in TIME-WAIT, also when the table is
 * full and one of them has to be dropped.
 */
static void time_wait__costs_a_syn_nothing(void)
{
    struct sg_port_config config = { .max_connections = idle() + 8 };
    struct many_peers m;
    uint64_t before, first, later;
    unsigned i;

    connect_many(&m, idle(), &config);
    before = visits(&m);
    send_syn(&m, 3000, 1);
    first = visits(&m) - before;
    wire_settle(m.w, 100 * WIRE_MS);
    close_some(&m, idle());
    T_EQ_INT(connections(&m, 1), idle() + 1);
    for (i = 0; i < 100; i++) {
        before = visits(&m);
        send_syn(&m, (uint16_t)(3001 + i), 1);
        later = visits(&m) - before;
        T_EQ_U64(later, first);
        T_EQ_INT(connections(&m, 1), MIN(idle() + 2 + i, idle() + 8));
    }
    disconnect(&m);
}

/* Whether peer i's connection is still in TIME-WAIT at host 1: then its SYN is acknowledged. */
static bool is_known(struct many_peers *m, const struct sg_endpoint *remote)
{
    struct wire_segment s = {
        .dst_mac = m->w->host[1].mac,
        .src_mac = m->w->host[0].mac,
        .flags = 0x10,
        .src = *remote,
        .dst = wire_endpoint(&m->w->host[1], 1),
    };
    uint8_t frame[128];

    s.dst.port = PORT;
    return sg_port_input(m->w->host[1].port, frame, wire_build(frame, &s)) == SG_PORT_TO_ADAPTER;
}

/*
 * The one that has waited longest is dropped first, because its old segments are the most likely to
 * have left the network (RFC 9293, section 3.6.1).
 */
static void time_wait__oldest_goes_first(void)
{
    enum { N = 6 };
    struct sg_port_config config = { .max_connections = N };
    struct sg_endpoint local, remote[N], to;
    struct sg_stream_net *net;
    struct peer more[N] = { { 0 } };
    enum sg_stream_end why;
    struct many_peers m;
    unsigned i, k;

    connect_many(&m, N, &config);
    for (i = 0; i < N; i++) {
        m.far[i].s->ops->endpoints(m.far[i].s, &local, &remote[i]);
    }
    close_some(&m, N);
    T_EQ_INT(connections(&m, 1), N);
    net = m.w->host[1].net;
    net->ops->unlisten(net, m.listener); /* now the verdict shows which connections are known */
    to = wire_endpoint(&m.w->host[0], 99);
    for (k = 0; k < N; k++) {
        T_TRUE(peer_connect(m.w, &more[k], 1, &to, &why));
        T_EQ_INT(connections(&m, 1), N);
        for (i = 0; i < N; i++) {
            T_CONTEXT("after %u more, number %u", k + 1, i);
            T_EQ_INT(is_known(&m, &remote[i]), i > k);
        }
    }
    disconnect(&m);
}

static const struct t_case cases[] = {
    { "idle connections: cost a Send, a SYN and a run nothing", idle__costs_nothing,
      .takes_long = true },
    { "idle connections: the way to one stays short", idle__chains_stay_short },
    { "an address has sixteen octets", address__sixteen_octets },
    { "idle connections: peers are asked in turn", idle__peers_are_asked_in_turn,
      .takes_long = true },
    { "TIME-WAIT: costs a SYN nothing, reclaimed or not", time_wait__costs_a_syn_nothing,
      .takes_long = true },
    { "TIME-WAIT: the oldest is reclaimed first", time_wait__oldest_goes_first },
};

T_MAIN(cases)
