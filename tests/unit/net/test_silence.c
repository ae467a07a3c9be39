/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A silent peer: when it counts as dead, and when not.
 */
#include "tap.h"
#include "peer.h"

enum { PORT = 4791 };

static bool is_closed(void *data)
{
    return ((struct peer *)data)->closes != 0;
}

/* Seconds from the moment the peer goes silent to the end; -1: never within the limit. */
static double silence(unsigned timeout_s, bool outstanding, unsigned family, unsigned limit_s)
{
    struct sg_port_config config = {
        .peer_timeout_ms = timeout_s ? timeout_s * 1000 : SG_PORT_PEER_TIMEOUT_NONE,
    };
    struct wire *w = wire_new(800 + timeout_s, 1500, &config);
    struct sg_endpoint own = wire_ip6(false, 1, 0, 0), to = wire_endpoint(&w->host[1], PORT);
    struct peer a = { .to_send = 1000 }, b = { 0 };
    uint64_t start;
    double seconds = -1;

    if (family == 6) {
        to = wire_ip6(false, 2, 0, PORT);
        T_TRUE(wire_add(w, 0, &own, 64, NULL));
        T_TRUE(wire_add(w, 1, &to, 64, NULL));
    }
    T_TRUE(peer_pair_at(w, &a, &b, &to));
    wire_settle(w, WIRE_S);
    w->host[0].drops_all = w->host[1].drops_all = true;
    start = w->now;
    if (outstanding) {
        a.to_send += 5000;
        peer_send(&a);
    }
    if (wire_run(w, is_closed, &a, limit_s * WIRE_S)) {
        T_EQ_INT(a.end, SG_STREAM_TIMEOUT);
        seconds = (double)(w->now - start) / (double)WIRE_S;
    }
    wire_free(w);
    return seconds;
}

static void silence__is_noticed_in_time(void)
{
    static const unsigned timeouts[] = { 2, 10, 60, 600 };
    size_t i;

    for (i = 0; i < 4 * sizeof(timeouts) / sizeof(timeouts[0]); i++) {
        unsigned t = timeouts[i / 4], family = i & 2 ? 6 : 4;
        double s = silence(t, i & 1, family, 2 * t);

        T_CONTEXT("%u s, IPv%u, %s: %.1f s", t, family, i & 1 ? "data" : "idle", s);
        if ((i & 1) && t == 600) {
            T_TRUE(s > 100 && s <= 600); /* retransmission gives up before */
            continue;
        }
        T_TRUE(s >= t - 1.5 && s <= t + 1.5);
    }
}

static void silence__not_looked_after(void)
{
    T_TRUE(silence(0, false, 4, 7200) < 0);
    T_TRUE(silence(0, true, 4, 7200) > 100); /* until retransmission gives up */
}

/* An idle peer that is alive is probed and answers; nothing else happens. */
static void silence__of_a_live_peer(void)
{
    struct wire *w = wire_new(900, 1500, NULL);
    struct peer a = { .to_send = 1000 }, b = { 0 };
    struct sg_port_counters before, after;

    T_TRUE(peer_pair(w, &a, &b, PORT));
    wire_settle(w, WIRE_S);
    sg_port_counters(w->host[0].port, &before);
    wire_settle(w, 3600 * WIRE_S);
    sg_port_counters(w->host[0].port, &after);
    T_EQ_INT(a.closes + b.closes, 0);
    T_TRUE(after.frames_out - before.frames_out < 400);
    a.to_send += 1000;
    peer_send(&a);
    wire_settle(w, WIRE_S);
    T_EQ_U64(b.received, 2000);
    wire_free(w);
}

/* A cable that is out for less than the timeout does not end the connection. */
static void silence__that_ends(void)
{
    struct wire *w = wire_new(901, 1500, NULL);
    struct peer a = { .to_send = 1000 }, b = { 0 };

    T_TRUE(peer_pair(w, &a, &b, PORT));
    wire_settle(w, WIRE_S);
    w->host[0].drops_all = w->host[1].drops_all = true;
    a.to_send += 100000;
    peer_send(&a);
    wire_settle(w, 40 * WIRE_S);
    w->host[0].drops_all = w->host[1].drops_all = false;
    wire_settle(w, 60 * WIRE_S);
    T_EQ_INT(a.closes + b.closes, 0);
    T_EQ_U64(b.received, a.to_send);
    wire_free(w);
}

static void config__out_of_range(void)
{
    static const unsigned bad[] = { 1, 1999, 3600001, UINT32_MAX - 1 };
    struct wire *w = wire_new(902, 1500, NULL);
    static const struct sg_port_ops none = { 0 };
    size_t i;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sg_port_config c = { .peer_timeout_ms = bad[i] };

        T_CONTEXT("%u ms", bad[i]);
        T_TRUE(sg_port_new(&none, NULL, w->host[0].mac, &c) == NULL);
    }
    wire_free(w);
}

static const struct t_case cases[] = {
    { "a dead peer is noticed in the stated time", silence__is_noticed_in_time },
    { "without a time only retransmission ends a connection", silence__not_looked_after },
    { "an idle peer is asked and stays", silence__of_a_live_peer },
    { "a shorter silence is no end", silence__that_ends },
    { "times out of range are refused", config__out_of_range },
};

T_MAIN(cases)
