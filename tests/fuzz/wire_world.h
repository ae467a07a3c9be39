/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Target "wire": the adapter with its machine (wire_target.c) and the peer that only sends octets
 * (wire_peer.c).
 */
#ifndef SG_TESTS_FUZZ_WIRE_WORLD_H
#define SG_TESTS_FUZZ_WIRE_WORLD_H

#include "fuzz.h"
#include "mini_driver.h"
#include "proto/stream.h"
#include "test_pm.h"
#include "wire/atomic_hdr.h"
#include "wire/fpdu.h"
#include "wire/rdmap.h"

enum {
    MEM = 1 << 20,
    BUF = 64 << 10,
    PORT = 4000,
    STEPS = 200,
    OUT_MAX = SG_FPDU_WIRE_MAX,
    PLAIN_RIGHTS = SG_ACCESS_REMOTE_READ | SG_ACCESS_REMOTE_WRITE | SG_ACCESS_REMOTE_ATOMIC,
    RIGHTS = SG_ACCESS_LOCAL_WRITE | PLAIN_RIGHTS | SG_ACCESS_FLUSH_GLOBAL |
             SG_ACCESS_FLUSH_PERSISTENT | SG_ACCESS_VERIFY,
};

struct wire_world {
    struct fuzz_in in;
    struct test_host h;
    struct test_pm pm; /* the first half of the buffer */
    struct md md;
    struct sg_stream_net *peer_net;
    struct sg_endpoint at, peer_at;

    uint32_t pd, stag, fast_stag;
    struct md_cq cq;
    struct md_qp qp;
    bool qp_alive;
    uint64_t buf;

    struct sg_stream *peer; /* NULL: none, or closed */
    bool fin;               /* sent by the peer */
    struct sg_stream_listener *listener;
    unsigned fpdu_flags;
    uint8_t rev;
    uint8_t draft; /* enum sg_mpe_draft */
    bool rfc7306;
    uint32_t asked; /* requests of queue 1 that the driver posted */
    uint8_t due;    /* opcode of the response that the peer owes; 0: none */
    uint32_t pos, msn[SG_QN_COUNT], mo;
    uint64_t sink_to; /* of the last Read that the driver posted */
    uint32_t sink_len;
    uint8_t out[OUT_MAX];
};

extern struct wire_world w;

/*
 * The network between them: wire_net_mem.c has streams in memory, wire_net_tcp.c two ports of the
 * TCP/IP stack, whose frames may be lost, repeated and corrupted.  Creates networks with the
 * addresses w.at and w.peer_at; sets w.peer_net, and the clock if necessary; returns the adapter's
 * network.
 */
struct sg_stream_net *wire_net_begin(uint8_t how);
/* Runs until nothing moves at this time; returns the next deadline. */
uint64_t wire_net_run(uint64_t now_ns);
/* Breaks the path of this stream, for a while; in memory, the stream itself. */
void wire_net_break(struct sg_stream *s);
/* Loses, repeats or corrupts frames, as the input says. */
void wire_net_harm(void);
void wire_net_end(void);

/* Its end of a connection: opened by us, or accepted. */
extern const struct sg_stream_events peer_events;
bool peer_accept(void *user, struct sg_stream *s);

/* Raw octets; a ULPDU in an FPDU; a startup frame; a message.  Most of them are valid. */
void say(const uint8_t *p, size_t n);
void say_ulpdu(const uint8_t *p, size_t n);
void say_startup(void);
void say_message(void);

#endif
