/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two hosts with IPv6 addresses, and the frames of the first one.
 */
#ifndef SG_TESTS_NET_IPV6_RIG_H
#define SG_TESTS_NET_IPV6_RIG_H

#include "tap.h"
#include "peer.h"
#include "base/bytes.h"

enum {
    PORT = 4791,
    SYN = 2,
    ACK = 16,
    A = SG_PORT_TO_ADAPTER,
    N = SG_PORT_TO_NIC,
    HOPS = 0,
    ROUTING = 43,
    FRAGMENT = 44,
    ICMP = 58,
    DESTINATION = 60,
};

/* Frames of a host, as they leave it. */
struct log {
    unsigned n;
    size_t len[64];
    uint8_t frame[64][200];
};

static T_UNUSED void note(struct wire *w, int from, const uint8_t *frame, size_t len)
{
    struct log *log = w->tap_data;

    if (from == 0 && log->n < 64) {
        log->len[log->n] = len;
        memcpy(log->frame[log->n++], frame, MIN(len, sizeof(log->frame[0])));
    }
}

static T_UNUSED struct wire *two_hosts(uint64_t seed, bool link_local, struct log *log)
{
    struct wire *w = wire_new(seed, 1500, NULL);
    struct sg_endpoint a = wire_ip6(link_local, 1, 0, 0), b = wire_ip6(link_local, 2, 0, 0);

    T_TRUE(wire_add(w, 0, &a, 64, NULL));
    T_TRUE(wire_add(w, 1, &b, 64, NULL));
    if (log) {
        memset(log, 0, sizeof(*log));
        w->tap = note;
        w->tap_data = log;
    }
    return w;
}

static T_UNUSED bool all_arrived(void *data)
{
    struct peer **p = data;

    return p[0]->received >= p[1]->to_send && p[1]->received >= p[0]->to_send;
}

#endif
