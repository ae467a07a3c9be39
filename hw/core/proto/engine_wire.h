/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a wire is to the engine: one table of functions.
 *
 * The engine has two boundaries.  engine.h is the upper one: verbs call sg_engine_*() and
 * sg_conn_*(), and are called back through struct sg_engine_ops; they do not know the wire.  This
 * table is the lower one.  What does not depend on the wire is written once, above the table:
 *
 *   conn.c, engine.c   states, lifetime, the calls of verbs, the events of streams
 *   listener.c         connections that verbs have not answered
 *   transmit.c         who sends next, gathering, what verbs are told about messages
 *   requests.c         the queues of requests, ours and the peer's
 *   stall.c            reception that waits for verbs
 *   close.c, timers.c  the end, and time
 *
 * A wire brings frames of setup, segments, their checks, and what an error is.  Its functions may
 * make the upcalls of struct sg_engine_ops that their descriptions name, under the rules of
 * conn.c ("Lifetime"), and change a connection's state by the functions of conn.h only.
 *
 * To add a wire: a table, a value of enum sg_engine_wire, and their row in conn.c (wires).
 */
#ifndef SG_PROTO_ENGINE_WIRE_H
#define SG_PROTO_ENGINE_WIRE_H

#include "proto/engine.h"

struct conn_irrq;

/* Room for one segment on its way to the stream. */
struct seg_out {
    /* Payload pieces belong at iov[1]..iov[npay]; framing uses the two ends. */
    struct iovec iov[SG_ENGINE_IOV_MAX + 2];
    uint8_t head[40];
    uint8_t tail[8];
};

struct engine_wire {
    const char *name;
    /* What it can express; verbs must not offer the rest. */
    uint32_t kinds; /* of message: bits 1 << enum sg_msg_kind */
    bool invalidates;

    /* ---- a connection ---- */
    /* A new one, all zero but for what conn_new() sets; false: no memory. */
    bool (*init)(struct sg_conn *c);
    /* Before its memory is freed; NULL: nothing to do. */
    void (*fini)(struct sg_conn *c);

    /* ---- setup; frames wait in setup.frames, transmit_setup() sends them ---- */
    /* Octets of private data that the answer may have. */
    uint16_t (*pdata_max)(const struct sg_conn *c);
    /* False: the private data are too long. */
    bool (*make_request)(struct sg_conn *c, const struct sg_conn_params *p);
    void (*make_reply)(struct sg_conn *c, const struct sg_conn_params *p);
    void (*make_reject)(struct sg_conn *c, const uint8_t *pdata, uint16_t pdata_len);
    /* The whole request is here: 'request', unless listener_may_request() says no. */
    void (*take_request)(struct sg_conn *c);
    /* Sends the frame that is due; false: blocked.  May call 'established'. */
    bool (*transmit_setup)(struct sg_conn *c);

    /* ---- reception: every upcall about what arrived ---- */
    /* In the states before CONN_WAIT_FIRST: returns how many octets belong to setup. */
    size_t (*receive_setup)(struct sg_conn *c, const uint8_t *p, size_t n);
    /* Octets of the stream behind that, in order.  What cannot be used yet: stall_begin(). */
    void (*receive)(struct sg_conn *c, const uint8_t *p, size_t n);
    /* Once more what was passed to stall_begin(). */
    void (*retry)(struct sg_conn *c, const uint8_t *p, size_t n);
    /* Octets behind a gap, as struct sg_stream_events; NULL: not used. */
    bool (*receive_early)(struct sg_conn *c, uint32_t ahead, const uint8_t *p, size_t n);

    /* ---- transmission: each returns the octets sent, 0: blocked or failed ---- */
    /* Once in a turn, before the others: sets tx.max. */
    void (*refresh)(struct sg_conn *c);
    /* The message that must go first, while tx.rtr is set. */
    size_t (*send_opening)(struct sg_conn *c);
    /* May another message begin, before a request of ours is answered?  NULL: always. */
    bool (*may_begin)(struct sg_conn *c);
    /* The segment of tx.msg, a Send or Write, whose payload of 'len' octets begins at tx.off. */
    size_t (*send_payload)(struct sg_conn *c, struct seg_out *out, int npay, uint32_t len,
                           bool last);
    /* A segment of the Response to r; its payload begins at tx.resp_off. */
    size_t (*send_response)(struct sg_conn *c, const struct conn_irrq *r, struct seg_out *out,
                            int npay, uint32_t len, bool last);
    /* All of the Response to a Read was sent, and it is no longer queued.  NULL: no matter. */
    void (*answered)(struct sg_conn *c);
    /* All of tx.msg, which has no gathered payload. */
    size_t (*send_small)(struct sg_conn *c);
    /* The response to the oldest request, which was executed; NULL: there are only Reads. */
    size_t (*send_executed)(struct sg_conn *c);

    /* ---- errors: the connection ends ---- */
    /* The source of the Response to r may not be read. */
    void (*source_failed)(struct sg_conn *c, const struct conn_irrq *r, enum sg_mem_status why);
    /* 'gather' failed, or the message cannot be expressed. */
    void (*local_failed)(struct sg_conn *c);
    /* sg_conn_terminate(). */
    void (*terminate)(struct sg_conn *c, uint8_t layer, uint8_t type, uint8_t code);
    /* Sends the report of an error that is due (CONN_TERM_DUE); false: blocked. */
    bool (*transmit_end)(struct sg_conn *c);
};

extern const struct engine_wire wire_iwarp, wire_rdma_tcp;

#endif
