/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The network of a pair (pair.h) over the real TCP stack: two ports of hw/net and a wire between
 * them.  The time is the pair's.  lwIP's clock is that of the process, so each link begins later
 * than the last one.
 *
 *     struct pair_link *link = tcp_link_new(NULL);
 *     pair_start_on(&p, NULL, link, PAIR_MEM);
 *     ...
 *     pair_stop(&p); // frees the link
 */
#ifndef SG_TESTS_TCP_LINK_H
#define SG_TESTS_TCP_LINK_H

#include "pair.h"
#include "eth_port.h"
#include "impair.h"

struct tcp_link_options {
    struct sg_port_config port;
    uint64_t delay_ns; /* one way */
    /* May be NULL.  True: the frame is lost. */
    bool (*lose)(void *opaque, int from, const uint8_t *frame, size_t len);
    void *opaque;
    /* May be NULL.  The path of each direction, instead of 'delay_ns'; its seed is that of the
     * first direction, the second has the next one. */
    const struct sg_impair_config *path;
};

/* NULL: defaults, no delay. */
struct pair_link *tcp_link_new(const struct tcp_link_options *options);
struct sg_port *tcp_link_port(struct pair_link *link, int side);
/* The path of the frames that a side sends, to change it; NULL without 'path'. */
struct sg_impair *tcp_link_path(struct pair_link *link, int side);
/* A frame for a side's port, delivered at once as if it came from the wire. */
void tcp_link_inject(struct pair_link *link, int side, const uint8_t *frame, size_t len);
void tcp_link_mac(uint8_t mac[6], int side);

#endif
