/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams over lwIP: an emulated machine that stalls loses nothing, so nothing is retransmitted.
 */
#include "tap.h"
#include "peer.h"

enum { PORT = 4791 };

struct stall_rig {
    struct wire *w;
    struct peer a, b;
};

static bool all_arrived(void *data)
{
    struct stall_rig *r = data;

    return r->b.received >= r->a.to_send && r->a.received >= r->b.to_send;
}

static uint64_t retransmits(struct stall_rig *r)
{
    struct sg_port_counters c;

    sg_port_counters(r->w->host[0].port, &c);
    return c.retransmits;
}

/* A connection that has measured short round trips for a while. */
static void start_with(struct stall_rig *r, uint64_t seed, const struct sg_port_config *config)
{
    unsigned i;

    memset(r, 0, sizeof(*r));
    r->w = wire_new(seed, 1500, config);
    T_TRUE(peer_pair(r->w, &r->a, &r->b, PORT));
    for (i = 0; i < 40; i++) {
        r->a.to_send += 10000;
        r->b.to_send += 10000;
        peer_send(&r->a);
        peer_send(&r->b);
        T_TRUE(wire_run(r->w, all_arrived, r, WIRE_S));
    }
    T_EQ_U64(retransmits(r), 0);
}

static void start(struct stall_rig *r, uint64_t seed)
{
    start_with(r, seed, NULL);
}

static void finish(struct stall_rig *r)
{
    T_TRUE(wire_run(r->w, all_arrived, r, 600 * WIRE_S));
    T_FALSE(r->a.damaged || r->b.damaged);
    peer_abort(&r->a);
    wire_settle(r->w, WIRE_S);
    wire_free(r->w);
}

/*
 * A probe, and the oldest segment once or twice; then the acknowledgement's timestamp shows that
 * none was needed, and the window is restored (RFC 3522).
 */
static void late__acknowledgements(void)
{
    static const unsigned ms[] = { 200, 350, 450 }; /* one way */
    uint64_t since;
    struct stall_rig r;
    size_t i;

    for (i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
        T_CONTEXT("%u ms", ms[i]);
        start(&r, 700 + i);
        r.w->delay = ms[i] * WIRE_MS;
        r.a.to_send += 1000000;
        peer_send(&r.a);
        since = r.w->now;
        T_TRUE(wire_run(r.w, all_arrived, &r, 600 * WIRE_S));
        T_TRUE(retransmits(&r) <= 4);
        T_TRUE(r.w->now - since <= 6 * 2 * r.w->delay);
        finish(&r);
    }
}

/* RFC 6298, section 2.4, requires a timeout of at least a second. */
static void late__bound_of_a_second(void)
{
    struct sg_port_config config = { .rto_min_ms = 1000 };
    struct stall_rig r;

    start_with(&r, 705, &config);
    r.w->delay = 450 * WIRE_MS;
    r.a.to_send += 1000000;
    peer_send(&r.a);
    T_TRUE(wire_run(r.w, all_arrived, &r, 600 * WIRE_S));
    T_TRUE(retransmits(&r) <= 1); /* a probe is no timeout */
    finish(&r);
}

/* Segments in the uplink's queue are not lost: retransmission would only make it longer. */
static void congested__uplink_is_waited_for(void)
{
    struct wire_host *h;
    struct stall_rig r;

    start(&r, 710);
    h = &r.w->host[0];
    r.w->host[1].drops_tcp = true; /* the queue of the uplink has it */
    r.a.to_send += 100000;
    peer_send(&r.a);
    h->congested = true;
    wire_settle(r.w, 5 * WIRE_S);
    T_EQ_U64(retransmits(&r), 0);
    r.w->host[1].drops_tcp = false;
    h->congested = false;
    sg_port_uplink_ready(h->port);
    finish(&r);
}

/* But not for ever: a dead uplink ends the connection after the timeout. */
static void congested__uplink_for_ever(void)
{
    struct stall_rig r;

    start(&r, 720);
    r.w->host[0].drops_all = r.w->host[1].drops_tcp = true;
    r.a.to_send += 100000;
    peer_send(&r.a);
    r.w->host[0].congested = true;
    wire_settle(r.w, 30 * WIRE_S);
    T_TRUE(retransmits(&r) > 0);
    wire_settle(r.w, 900 * WIRE_S);
    T_EQ_INT(r.a.closes, 1);
    T_EQ_INT(r.a.end, SG_STREAM_TIMEOUT);
    wire_free(r.w);
}

static const struct t_case cases[] = {
    { "late acknowledgements: little is sent again", late__acknowledgements },
    { "late acknowledgements: a timeout of a second", late__bound_of_a_second },
    { "congested uplink: nothing is sent again", congested__uplink_is_waited_for },
    { "congested uplink: not for ever", congested__uplink_for_ever },
};

T_MAIN(cases)
