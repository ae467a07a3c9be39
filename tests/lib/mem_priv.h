/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to stream_mem.c (ends of connections) and mem_switch.c (ports, listeners, addresses). */
#ifndef SG_TESTS_MEM_PRIV_H
#define SG_TESTS_MEM_PRIV_H

#include "base/bytes.h"
#include "base/host.h"
#include "base/timerq.h"
#include "stream_mem.h"

enum {
    MEM_ADDRS_MAX = 8,
};

struct mem_port {
    struct sg_stream_net net;
    struct sg_mem_switch *sw;
    struct sg_endpoint addrs[MEM_ADDRS_MAX];
    unsigned addr_count;
    struct sg_timerq timers;
    struct mem_listener *listeners;
    struct mem_port *next;
};

struct mem_listener {
    struct sg_stream_listener base;
    struct sg_endpoint at;
    struct mem_listener *next;
};

struct sg_mem_switch {
    struct sg_mem_options opt;
    struct mem_port *ports;
    uint64_t now_ns;
    uint64_t random;
    uint16_t next_port;
    sg_mem_frame_tap *tap; /* or NULL */
    void *tap_opaque;
    uint64_t frames; /* so far, for the tap */
};

/* mem_switch.c: who listens there, and on which port of the switch.  NULL: nobody. */
struct mem_listener *mem_find_listener(struct sg_mem_switch *sw, const struct sg_endpoint *to,
                                       struct mem_port **where);

/* stream_mem.c: an end that asks for a connection; 'connected' or 'closed' follows. */
struct sg_stream *mem_end_connect(struct mem_port *port, const struct sg_endpoint *local,
                                  const struct sg_endpoint *remote,
                                  const struct sg_stream_events *events, void *user);

#endif
