/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams in memory: a small switch whose ports are stream factories.
 *
 * Two modes.  Immediate: 'send' calls the peer's 'receive' with the sender's own memory, unless
 * that end is busy receiving already; for benchmarks and simple tests.  Queued: octets wait in
 * the switch, arrive late, in pieces or run together, are damaged or lost with the connection as
 * the options say; everything follows from the seed.
 *
 * All other events are delivered by running: sg_mem_switch_run() for all ports, or the factory's
 * own 'run' for one.  Time is what the last run was told.
 */
#ifndef SG_PROTO_STREAM_MEM_H
#define SG_PROTO_STREAM_MEM_H

#include "proto/stream.h"

struct sg_mem_options {
    bool queued;
    uint32_t emss; /* octets; 0: 65535 */
    /* The rest is for queued mode. */
    uint64_t seed;
    uint64_t delay_min_ns, delay_max_ns; /* of each delivery */
    size_t room;           /* octets under way per direction; 0: 256 KiB; at least emss */
    uint32_t piece_max;    /* largest delivery, octets; 0: all that waits */
    uint32_t corrupt_ppm;  /* deliveries with one bit flipped, per million */
    uint64_t corrupt_from; /* octets of a direction that are never damaged */
    uint32_t break_ppm;    /* deliveries that reset the connection instead */
};

struct sg_mem_switch;

struct sg_mem_switch *sg_mem_switch_new(const struct sg_mem_options *options);
/* All streams must have been closed or aborted by their users; listeners go along. */
void sg_mem_switch_free(struct sg_mem_switch *sw);

/* A new port with one address, owned by the switch. */
struct sg_stream_net *sg_mem_switch_port(struct sg_mem_switch *sw, const struct sg_endpoint *addr);

/* Delivers what is due at now; returns the next deadline or SG_NEVER (see base/host.h). */
uint64_t sg_mem_switch_run(struct sg_mem_switch *sw, uint64_t now_ns);

/*
 * Queued mode: what the octets between two calls of 'push' are, for a trace: a frame.  Called for the
 * address that sends it, and for the one that receives it, before its first octet is delivered.
 * Frames that a connection loses at its end are not received.
 */
typedef void sg_mem_frame_tap(void *opaque, const struct sg_endpoint *at, bool sent, uint32_t crc,
                              size_t len);
void sg_mem_switch_tap(struct sg_mem_switch *sw, sg_mem_frame_tap *tap, void *opaque);

/* As if a router had sent RST to both ends: 'closed' (RESET) follows at each of them. */
void sg_mem_break(struct sg_stream *s);

#endif
