/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulator of RDMA/TCP of 2000: one engine, and a peer that is a model of the document.
 *
 * The peer makes random messages with random orders, cuts them into random segments, and mixes its
 * two groups at random.  A network loses TCP segments, shows those behind a gap, some of them
 * damaged, and delivers everything in the end.  Above the engine a model of verbs knows every
 * message of both sides.  It checks at each placement what the document allows:
 *
 *   order     all messages but those that the order leaves out have been processed
 *   content   each octet is the right one, at the right place, and is placed exactly once
 *   delivery  Sends and Reads in sequence, with everything before them
 *
 * What the engine sends is read by code of the peer's own and checked in the same way.
 */
#ifndef SG_TESTS_RT_SIM_H
#define SG_TESTS_RT_SIM_H

#include <inttypes.h>

#include "base/bytes.h"
#include "base/host.h"
#include "base/prng.h"
#include "proto/engine.h"

enum rt_limits {
    RT_MESSAGES = 60,  /* of each side */
    RT_LENGTH = 3000,  /* octets of a message, at most */
    RT_WIRE = 1 << 19, /* octets of one direction in a run, at most */
    RT_PACKETS = 64,   /* TCP segments under way */
    RT_STAG = 0x5000,  /* both sides' memory; message i has the RT_LENGTH octets at i */
    RT_SINK = 0x6000,
    RT_IRD = 4,
};

enum rt_kind { RT_SEND, RT_WRITE, RT_READ, RT_RESPONSE };

struct rt_msg {
    enum rt_kind kind;
    uint32_t number, length;
    uint8_t mark; /* determines its octets */
    uint32_t order;
    uint32_t sent;             /* octets of payload that are in segments */
    bool ended;                /* its last segment is made */
    bool processed;            /* as the document understands it */
    uint32_t count;            /* octets placed, or read from the source */
    uint8_t placed[RT_LENGTH]; /* how often each octet was */
};

struct rt_side {
    struct rt_msg msg[RT_MESSAGES];      /* group 1, in sequence */
    struct rt_msg response[RT_MESSAGES]; /* group 2: answers that this side gives */
    unsigned msgs, responses;
    unsigned open, open_response; /* the one being cut into segments */
    unsigned delivered;           /* Sends */
    unsigned answered;            /* Reads of this side that are answered */
};

/* A TCP segment on its way to the engine. */
struct rt_packet {
    uint32_t pos, len;
    bool here;  /* the receiver's TCP has it, behind a gap */
    bool taken; /* the engine needs its octets no more */
};

struct rt_world {
    uint64_t seed, random, now_ns;
    bool verbose;
    struct sg_host host;
    struct sg_engine *e;
    struct sg_conn *c;
    struct sg_stream stream;
    struct sg_stream_net net;
    bool up, over, ready, fin, held, closing, want_room;
    bool put_off; /* verbs have answered LATER */
    struct rt_side peer, ours;
    uint64_t conn_id;

    uint8_t out[RT_WIRE]; /* what the peer sends */
    uint32_t made, sent, delivered;
    uint32_t cut[4096]; /* where its segments end */
    unsigned cuts;
    struct rt_packet packet[RT_PACKETS];
    unsigned packets;

    uint8_t in[RT_WIRE]; /* what the engine sends */
    uint32_t in_len, in_used, room;
    unsigned taken;
    uint8_t lend[1 << 16];
    uint64_t early; /* segments that were placed early, for the summary */
};

uint32_t rt_below(struct rt_world *w, uint32_t n);
bool rt_chance(struct rt_world *w, unsigned percent);
void rt_fail(struct rt_world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

#define RT_CHECK(w, cond, ...)       \
    do {                             \
        if (!(cond)) {               \
            rt_fail(w, __VA_ARGS__); \
        }                            \
    } while (0)

/* The octet of a message at an offset. */
static inline uint8_t rt_octet(const struct rt_msg *m, uint32_t off)
{
    return (uint8_t)(m->mark + off * 7 + (off >> 8) * 3);
}

/* rt_peer.c */
void rt_make_messages(struct rt_world *w);
/* Makes the next segment, of either group; false: there is none now. */
bool rt_make_segment(struct rt_world *w);
void rt_say_accept(struct rt_world *w);
/* Reads what the engine has sent. */
void rt_hear(struct rt_world *w);

/* rt_model.c */
extern const struct sg_engine_ops rt_ops;
bool rt_all_done(const struct rt_world *w);
void rt_check_end(struct rt_world *w);

#endif
