/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA/TCP of 2000 as a wire of the engine (docs/wire-2000.md): what its files share.
 *
 *   rt_wire.c    the table, life, the end of a connection
 *   rt_setup.c   the messages of setup
 *   rt_tx.c      outgoing segments
 *   rt_rx.c      incoming octets: framing, CRC, what every segment must be
 *   rt_place.c   the four types of message: sequence, order, placement, delivery
 *   rt_early.c   segments behind a gap
 */
#ifndef SG_PROTO_RDMA_TCP_RT_H
#define SG_PROTO_RDMA_TCP_RT_H

#include "proto/conn.h"
#include "wire/rdma_tcp.h"

enum {
    RT_EARLY_MAX = 64,       /* pieces placed early that a connection remembers */
    RT_AHEAD_MAX = 1u << 16, /* messages by which an early one may be ahead */
};

/* A message of group 1 of which a segment has been taken, and not the last one. */
struct rt_message {
    bool open;
    uint8_t type;
    uint32_t number;
    uint32_t done;      /* octets of payload */
    uint32_t buffer_id; /* Write: these three */
    uint32_t rdma_len;
    uint64_t to; /* of its first octet */
};

/* A segment that was placed early, by its position in the stream: all of it but the payload. */
struct rt_early {
    uint32_t pos, len; /* on the wire */
    uint32_t payload;  /* octets */
    struct sg_rt_hdr h;
    uint8_t control[SG_RT_WORD];
};

struct rt_conn {
    uint64_t conn_id;
    struct {
        uint32_t seen; /* octets that the stream has delivered, modulo 2^32 */
        uint32_t pos;  /* in the stream, of the next segment to be taken; modulo 2^32 */
        uint32_t next; /* number of the next message of group 1 */
        uint32_t msn;  /* of the next Send, as verbs count them */
        struct rt_message now;
        bool response;          /* a Read Response has begun, but not ended */
        bool waits;             /* the stalled segment waits for an answer of ours */
        struct sg_timer resume; /* while that answer was given, and reception has not gone on */
        unsigned early_count;
        struct rt_early *early; /* RT_EARLY_MAX of them; NULL while there are none */
        uint32_t early_seen;    /* octets of the one at 'pos' that have come in their turn */
    } rx;
    struct {
        uint32_t next;  /* number of the next message */
        uint16_t order; /* of tx.msg, once it has begun */
    } tx;
};

/* rt_setup.c */
struct rt_setup_msg {
    struct sg_rt_setup s;
    const uint8_t *pdata;
    uint16_t pdata_len;
    uint64_t conn_id;
    uint32_t number;
};
uint16_t rt_pdata_max(const struct sg_conn *c);
bool rt_make_request(struct sg_conn *c, const struct sg_conn_params *p);
void rt_make_reply(struct sg_conn *c, const struct sg_conn_params *p);
void rt_make_reject(struct sg_conn *c, const uint8_t *pdata, uint16_t pdata_len);
void rt_take_request(struct sg_conn *c);
bool rt_transmit_setup(struct sg_conn *c);
size_t rt_receive_setup(struct sg_conn *c, const uint8_t *p, size_t n);

/* rt_tx.c */
void rt_refresh(struct sg_conn *c);
bool rt_may_begin(struct sg_conn *c);
size_t rt_send_payload(struct sg_conn *c, struct seg_out *out, int npay, uint32_t len, bool last);
size_t rt_send_response(struct sg_conn *c, const struct conn_irrq *r, struct seg_out *out, int npay,
                        uint32_t len, bool last);
size_t rt_send_small(struct sg_conn *c);

/* rt_rx.c */
void rt_receive(struct sg_conn *c, const uint8_t *p, size_t n);
void rt_retry(struct sg_conn *c, const uint8_t *p, size_t n);
static inline bool rt_receiving(const struct sg_conn *c)
{
    return c->state >= CONN_WAIT_FIRST && c->state <= CONN_CLOSING &&
           !conn_is(c, CONN_DISCARDS | CONN_IS_STARVED);
}

/* rt_place.c */
/* Takes a segment whose octets are sound; 'placed': its payload is in memory already, so that its
 * order allowed it then, and still does: it is never SEG_LATER. */
int rt_take(struct sg_conn *c, const struct sg_rt_seg *seg, bool placed);
/* The tagged offset of its first octet. */
uint64_t rt_tagged_offset(const struct sg_rt_seg *seg);
/* The oldest message of the peer's that has not been processed. */
uint32_t rt_oldest_open(const struct sg_conn *c);
/* May a message with this number and order be executed now? */
bool rt_order_allows(const struct sg_conn *c, uint32_t number, uint16_t order);
/* A Read of the peer was answered. */
void rt_answered(struct sg_conn *c);

/* rt_early.c */
bool rt_receive_early(struct sg_conn *c, uint32_t ahead, const uint8_t *p, size_t n);
/* The segment at rx.pos, if it was placed early.  Forgets all before it. */
const struct rt_early *rt_early_now(struct sg_conn *c);
void rt_early_free(struct sg_conn *c);

/* rt_wire.c */
/* A fault of the peer. */
void rt_fault(struct sg_conn *c, enum sg_conn_fault class, const char *what);
void rt_source_failed(struct sg_conn *c, const struct conn_irrq *r, enum sg_mem_status why);
void rt_local_failed(struct sg_conn *c);
void rt_terminate(struct sg_conn *c, uint8_t layer, uint8_t type, uint8_t code);

#endif
