/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rig of rig.h with a peer that speaks RDMA/TCP of 2000: segments are written and
 * read by code of its own, from docs/wire-2000.md, which shares nothing with the engine's.
 */
#ifndef SG_TESTS_PROTO_RT_RIG_H
#define SG_TESTS_PROTO_RT_RIG_H

#include "rig.h"

enum { RT_B = 8, RT_E = 4, RT_BE = 12, RT_SETUP = 0x80, RT_SE = 0x40 };
enum { RT_SEND, RT_WRITE, RT_READ_REQ, RT_READ_RESP };
enum { RT_FIRST = 0x7000 }; /* first number of the peer; that of its setup message */

/* A segment as its fields. */
struct rt_fields {
    uint8_t version; /* 0: 1 */
    uint8_t flags;   /* RT_* bits */
    uint8_t type;
    uint64_t conn_id; /* 0: the connection's */
    uint32_t number;
    uint16_t order;
    uint8_t clen;
    uint32_t control[2];
    uint32_t offset; /* Data Offset, or Buffer Offset */
    uint32_t buffer, length;
    const void *p;
    uint32_t n;
    uint8_t pad;      /* value of the padding */
    uint8_t reserved; /* value of octet 18 */
    uint16_t seg_len; /* Segment Length, at which the segment then ends; 0: that of the above */
    bool bad_crc;     /* a bit is wrong */
};

struct rt_peer {
    uint64_t conn_id;
    uint32_t first; /* of the engine: the number of its setup message */
};

extern struct rt_peer rt_peer;

/* Starts the rig with that wire.  The engine's random octets are 1, 2, 3, ... */
void rt_start(uint32_t emss);
/* Connections, streaming; the logs are empty then. */
void rt_active(void);
void rt_passive(void);
/* Octets of the segment; returns how many. */
size_t rt_build(const struct rt_fields *f, uint8_t *out);
void rt_say(const struct rt_fields *f);
/* The segment is behind a gap of 'ahead' octets. */
/* True: the engine needs none of its octets any more. */
bool rt_say_early(const struct rt_fields *f, uint32_t ahead);
/* Octets in order whose content the stream has dropped, in pieces of that size. */
void rt_say_dropped(size_t n, size_t piece);
/* The next segment of the engine; the payload is in p, n.  Fails if there is none. */
struct rt_fields rt_hear(void);
void rt_post_send(uint64_t cookie, uint32_t length);
void rt_post_write(uint64_t cookie, uint32_t length, uint32_t stag, uint64_t to);
void rt_post_read(uint32_t length, uint64_t to, uint64_t sink_to);

#endif
