/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CUBIC congestion control (RFC 9438): how far the congestion window grows and shrinks.
 * Windows are in octets; the time is an argument, in ns.
 */
#ifndef SG_NET_CUBIC_H
#define SG_NET_CUBIC_H

#include <stdbool.h>
#include <stdint.h>

struct cubic {
    uint64_t epoch;          /* ns, when this congestion avoidance began; 0: not yet */
    uint64_t k;              /* ms from 'epoch' until the window is 'w_max' again */
    uint32_t w_max;          /* the window before the last reduction */
    uint32_t prior;          /* likewise, without fast convergence */
    uint32_t w_est;          /* what Reno would have */
    uint64_t part, est_part; /* fractions of octets, times the window */
};

/* A loss was found: the slow start threshold (section 4.6). */
uint32_t cubic_reduce(struct cubic *c, uint32_t cwnd, uint32_t mss);
/* 'acked' octets were delivered in congestion avoidance: the new window. */
uint32_t cubic_grow(struct cubic *c, uint32_t cwnd, uint32_t acked, uint32_t mss, uint64_t now,
                    uint64_t rtt);

#endif
