/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection object of the iWARP engine, shared by the files of this folder.
 *
 * Only this folder includes it; engine.h is the interface.  The top of conn.c has the diagram of
 * the states and says who changes them.
 */
#ifndef SG_PROTO_CONN_H
#define SG_PROTO_CONN_H

#include "base/account.h"
#include "base/bytes.h"
#include "base/host.h"
#include "base/timerq.h"
#include "proto/engine.h"
#include "proto/engine_wire.h"
#include "wire/atomic_hdr.h"
#include "wire/mpe.h"
#include "wire/fpdu.h"
#include "wire/mpa_frame.h"
#include "wire/rdma_tcp.h"
#include "wire/rdmap.h"
#include "wire/terminate.h"

enum conn_state {
    CONN_CONNECTING,   /* initiator: the stream is being connected */
    CONN_WAIT_REPLY,   /* initiator: Request to send, or sent */
    CONN_WAIT_REQUEST, /* responder: nothing valid yet */
    CONN_REQUESTED,    /* responder: verbs have the Request and decide */
    CONN_REPLYING,     /* responder: accepting Reply to send */
    CONN_WAIT_FIRST,   /* responder: Reply sent, RTR message awaited */
    CONN_STREAMING,    /* both directions open (transmission: see conn_may_send) */
    CONN_CLOSING,      /* FIN to send or sent; inbound messages still count */
    CONN_TERMINATING,  /* Terminate or FIN to send or sent; inbound octets are dropped */
    CONN_REJECTED,     /* startup ended with R = 1; nothing but TCP is left */
    CONN_DEAD,         /* unlinked; freed when the last stack frame leaves it */
    CONN_STATES,
};

/* Memory for the startup exchange, freed when that is over. */
struct conn_startup {
    uint8_t in[SG_MAX((int)SG_MPA_FRAME_MAX, (int)SG_RT_SETUP_MAX)];
    uint8_t out[SG_MAX((int)SG_MPA_FRAME_MAX, (int)SG_RT_SETUP_MAX)];
    uint16_t in_len;
    uint16_t out_len;             /* octets of 'out' still to be sent, 0: none */
    union {                       /* what the peer's frame says */
        struct sg_mpa_frame peer; /* pd points into 'in' */
        struct sg_rt_setup rt_peer;
    };
};

/* An inbound request of queue 1 that has not been answered completely. */
struct conn_irrq {
    struct sg_ddp_hdr h; /* of its segment, for a Terminate */
    uint16_t seg_len;
    uint8_t kind; /* enum sg_msg_kind: which member counts */
    uint64_t ordinal;
    uint32_t atomic_id; /* identifier of an Atomic Request */
    union {
        struct sg_read_req read;
        struct sg_mpe_req mpe;        /* FLUSH, VERIFY, ATOMIC_WRITE */
        struct sg_atomic_call atomic; /* FETCH_ADD, CMP_SWAP */
    };
};

/* The oldest inbound request, if it is one that is executed before it is answered. */
struct conn_exec {
    bool done;    /* the response may be sent */
    bool waiting; /* for the timer, or for sg_conn_resume(); also set by a Read */
    uint8_t len;  /* of the response, behind its DDP header */
    uint8_t response[SG_MPE_RESP_LEN_MAX];
    uint64_t token; /* private to verbs */
};

/* A request of ours whose result has not been reported to verbs. */
struct conn_orq {
    uint8_t kind;  /* enum sg_msg_kind that is a request */
    bool internal; /* RTR message: verbs do not know of it */
    bool answered; /* waits for earlier ones */
    bool confirm;  /* sg_msg.confirm */
    uint8_t hash_len;
    struct sg_read_sink sink; /* READ_REQ */
    uint32_t length;
    uint8_t hash[SG_HASH_LEN_MAX];
    uint32_t id;       /* what its answer carries: of an Atomic, of any request of RDMA/TCP */
    uint64_t original; /* the returned value */
    uint64_t ordinal;  /* of the answer */
};

struct conn_rx {
    uint8_t *buf; /* start of an FPDU that arrives in pieces */
    uint32_t cap;
    uint32_t have;      /* octets in buf */
    uint32_t crc;       /* running CRC of buf, without markers only */
    uint32_t pos;       /* stream position modulo 2^32, with markers only */
    uint32_t read_off;  /* octets received for the oldest outstanding Read */
    bool writing;       /* a Write has begun, but not ended */
    bool write_ended;   /* its last segment was seen */
    uint32_t write_len; /* octets of the latest Write, if no request or Send followed it */
    uint32_t segments;  /* that were taken, modulo 2^32 */
    /* Ordinals (base/host.h): of the message that began last, and of the one in an upcall. */
    uint64_t begun, now;
    /* Of the Send, Write and Read Response that have begun, but not ended; or 0. */
    uint64_t send, write, response;
};

struct conn_tx {
    uint64_t passed;   /* octets passed to the stream */
    uint32_t segments; /* that were passed, modulo 2^32 */
    uint32_t pos;      /* stream position modulo 2^32 */
    uint16_t mulpdu;   /* refreshed by every sg_conn_transmit(), as are the next three: */
    struct {
        uint16_t send, write, response; /* most payload octets of a segment */
    } max;
    uint32_t off;      /* payload octets of msg sent */
    uint32_t resp_off; /* payload octets of the oldest IRRQ entry sent */
    struct sg_msg msg; /* valid while 'active' */
    bool active;
    bool blocked;       /* a send was refused, 'writable' will follow */
    bool signaled;      /* tx_ready was called since the last transmit */
    bool later;         /* its payload is not in memory yet: sg_conn_resume() */
    bool response_next; /* who sends next, if both can */
    uint8_t rtr;        /* SG_RTR_* that must go first, 0: none */
    /* Ordinals: of the message that began last, and of the Read Response that did. */
    uint64_t begun, response;
};

/* Reception that waits: stall.c. */
struct conn_stall {
    uint8_t *ulpdu; /* to be retried */
    uint8_t *rest;  /* received behind it, from 'at' on */
    size_t ulpdu_len;
    size_t rest_len, rest_room, at;
    bool held; /* the stream */
    bool fin;  /* and the FIN behind that */
};

/* Our half of the connection: see close.c. */
enum close_state { CLOSE_OPEN, CLOSE_ANNOUNCED, CLOSE_DUE, CLOSE_SENT, CLOSE_ACKED };

/* Allocated when an end begins. */
struct close_clock {
    uint64_t limit_ns; /* latest time of the reset */
    uint64_t moved_ns; /* last time of progress */
    uint64_t acked;    /* octets that the peer had acknowledged then */
};

struct conn_close {
    struct close_clock *clock; /* NULL: no end has begun */
    uint8_t state;             /* enum close_state */
};

/* See timers.c. */
struct conn_timers {
    struct sg_timer startup, pause, end, drop; /* at most one of these runs */
    struct sg_timer exec;                      /* while exec.waiting */
};

/* What startup agrees on. */
struct conn_setup {
    uint8_t rev;
    uint8_t mpe_draft; /* enum sg_mpe_draft */
    bool rfc7306;
    bool crc;
    bool tx_markers, rx_markers;
    bool p2p; /* an RTR message is due */
    uint16_t ird, ord;
    struct conn_startup *frames; /* until it is over */
};

enum conn_accept_state { ACCEPT_SILENT, ACCEPT_WAITING, ACCEPT_REQUESTED, ACCEPT_STATES };

/* The connection's place at the listener, until verbs have answered; see listener.c. */
struct conn_accept {
    struct sg_engine_listener *listener;
    enum conn_accept_state state;
    struct sg_conn *prev, *next; /* in one of the listener's lists */
};

/* Requests of ours: requests.c. */
struct conn_out {
    struct conn_orq *ring; /* ord + 1 entries, as an RTR Read may be one more */
    uint16_t head, count;
    bool next_was_short; /* 'next' was called with reads_room == 0 and returned nothing */
};

/* The peer's requests: requests.c. */
struct conn_peer {
    struct conn_irrq *ring; /* ird entries, allocated when first needed */
    uint16_t head, count;
};

/* Past events and pending actions of a connection; only conn_flag() changes them. */
enum conn_flag {
    CONN_IS_VALID = 1 << 0,     /* one inbound FPDU was valid (RFC 5044 7.1.2) */
    CONN_IS_TOLD_DOWN = 1 << 1, /* 'disconnected' was called */
    CONN_DISCARDS = 1 << 2,     /* inbound octets are dropped */
    CONN_IS_ABANDONED = 1 << 3, /* nobody waits for the end */
    CONN_IS_WATCHED = 1 << 4,   /* an end has begun, and TCP must make progress */
    CONN_IS_STARVED = 1 << 5,   /* conn_alloc() */
    CONN_DROP_DUE = 1 << 6,     /* conn_drop_later() */
    CONN_TERM_DUE = 1 << 7,     /* the Terminate in 'term' */
};

struct sg_conn {
    struct sg_engine *e;
    const struct engine_wire *wire;
    struct sg_stream *stream; /* NULL: gone */
    void *user;               /* the QP; NULL: none yet, or no longer (detached) */
    void *request_user;
    struct sg_conn *prev, *next;   /* all connections of the engine */
    struct sg_conn *detached_next; /* in the engine's list, if 'detached_listed' */
    uint32_t id;                   /* for logs */
    unsigned busy;                 /* stack frames that use this object */
    enum conn_state state;
    enum sg_conn_end end; /* reason for 'closed'; SG_CONN_OK: the stream's */
    uint16_t flags;       /* enum conn_flag */
    bool initiator;
    bool detached_listed;

    union { /* what only one wire needs */
        struct {
            uint32_t rx[SG_QN_COUNT], tx[SG_QN_COUNT]; /* next expected, next to use */
        } msn;                                         /* iWARP */
        struct rt_conn *rt;                            /* RDMA/TCP: rdma_tcp/rt.h */
    };

    struct conn_setup setup;
    struct conn_accept accept;
    struct conn_timers timers;
    struct conn_close close;

    struct conn_rx rx;
    struct conn_stall *stall;   /* reception waits for memory; NULL: it does not */
    struct conn_stall *retried; /* the one that is being retried */
    struct conn_peer peer;
    struct conn_exec exec;

    struct conn_tx tx;
    struct conn_out out;
    struct sg_term term; /* valid with CONN_TERM_DUE */
};

/* Linked by accept.prev and accept.next. */
struct conn_list {
    struct sg_conn *first, *last;
    unsigned count;
};

struct sg_engine_listener {
    struct sg_engine *e;
    struct sg_stream_listener *l;
    void *user;
    unsigned backlog;
    struct conn_list in[ACCEPT_STATES]; /* its connections by state, the oldest in it first */
    bool paused;                        /* the network delays new ones */
    struct sg_engine_listener *prev, *next;
};

struct sg_engine {
    const struct sg_host *host;
    struct sg_stream_net *net;
    const struct sg_engine_ops *ops;
    struct sg_engine_config config;
    struct sg_engine_stats stats;
    struct sg_timerq timers;
    struct sg_conn *conns;
    struct sg_conn *detached; /* have something to transmit and no user */
    struct sg_engine_listener *listeners;
    bool stopped;   /* sg_engine_stop() */
    bool admit_due; /* a Request waited, and there may be room for it now */
    bool deferred;  /* a Request waits for sg_engine_admit(), not for a place in the backlog */
    uint32_t next_id;
    uint8_t *rx_scratch; /* one ULPDU without its markers, SG_ULPDU_FIELD_MAX */
    uint8_t *tx_scratch; /* one FPDU with its markers, SG_FPDU_WIRE_MAX */
};

/* conn.c */
extern const struct sg_stream_events conn_events;
/* NULL: no memory. */
struct sg_conn *conn_new(struct sg_engine *e, bool initiator, void *user);
/*
 * Memory that the connection allocates later is charged to the host's account.  NULL: there is no
 * memory, and the connection is 'starved': it receives and sends nothing more, and is dropped as
 * soon as no call uses it.  conn_renew() is like realloc().
 */
void *conn_alloc(struct sg_conn *c, size_t octets);
void *conn_renew(struct sg_conn *c, void *p, size_t old, size_t octets);
void conn_release(struct sg_conn *c, void *p, size_t octets);
void conn_set_state(struct sg_conn *c, enum conn_state state);
/* Bracket everything that may make an upcall; conn_leave() frees a dead connection. */
void conn_enter(struct sg_conn *c);
void conn_leave(struct sg_conn *c);
/* Resets the stream, unlinks the connection and frees it soon.  No upcall. */
void conn_kill(struct sg_conn *c);
/* The same, and tells verbs in the way that the state requires. */
void conn_drop(struct sg_conn *c, enum sg_conn_end why);
/* As conn_drop, from sg_engine_run(): for use inside calls made by verbs. */
void conn_drop_later(struct sg_conn *c, enum sg_conn_end why);
const char *conn_state_name(enum conn_state state);
/* Calls 'disconnected', once per connection. */
void conn_tell_down(struct sg_conn *c, enum sg_conn_end why);
/* There is a reason to transmit. */
void conn_signal(struct sg_conn *c);
void conn_detach(struct sg_conn *c);
enum sg_conn_end conn_end_of_stream(enum sg_stream_end why);
/* listener.c: a whole Request has arrived; false: verbs must not get it yet. */
bool listener_may_request(struct sg_conn *c);
/* The listener no longer answers for this connection. */
void listener_leave(struct sg_conn *c);
/* In the engine's turn: passes waiting Requests to verbs. */
void listener_admit(struct sg_engine *e);
/* mpa_start.c */
void mpa_take_request(struct sg_conn *c);
uint16_t mpa_answer_pdata_max(const struct sg_conn *c);
/* conn.c: the startup frames are no longer needed. */
void conn_end_startup(struct sg_conn *c);
void conn_log(const struct sg_conn *c, enum sg_log_class cls, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Is any of these flags (enum conn_flag) set? */
static inline bool conn_is(const struct sg_conn *c, unsigned flags)
{
    return c->flags & flags;
}
/* The only writer; logs changes. */
void conn_flag(struct sg_conn *c, enum conn_flag flag, bool on);

/* A frame of the startup exchange is still to be sent. */
static inline bool conn_frame_due(const struct sg_conn *c)
{
    return c->setup.frames && c->setup.frames->out_len;
}

static inline bool conn_dead(const struct sg_conn *c)
{
    return c->state == CONN_DEAD;
}

static inline uint64_t ms_to_ns(uint32_t ms)
{
    return (uint64_t)ms * 1000000;
}

/* During the pause no FPDU and no FIN is sent. */
static inline bool conn_paused(const struct sg_conn *c)
{
    return sg_timer_armed(&c->timers.pause);
}

/* RFC 5044 section 7.1.2: the responder's first FPDU follows a valid one from the initiator. */
static inline bool conn_may_send(const struct sg_conn *c)
{
    return (c->initiator || conn_is(c, CONN_IS_VALID)) && c->close.state < CLOSE_SENT &&
           !conn_paused(c);
}

/* close.c: our half of the connection ends */
void close_due(struct sg_conn *c);
/* TCP must make progress from now on, or the connection is reset. */
void close_watch(struct sg_conn *c);
/* Startup or the pause is over: starts the timer of the end, if one has begun; else false. */
bool close_go_on(struct sg_conn *c);
void close_send_fin(struct sg_conn *c);
/* The peer's FIN, after all its octets. */
void close_peer_fin(struct sg_conn *c);
void close_owner_left(struct sg_conn *c);
void close_tick(struct sg_conn *c, uint64_t now_ns);

/* timers.c: one function per event */
void timers_init(struct sg_conn *c);
void timers_conn_dead(struct sg_conn *c);
uint64_t conn_now(const struct sg_conn *c);
/* Initiator: the stream is being connected. */
void timers_connecting(struct sg_conn *c);
/* Responder: the stream is established, and a Request must arrive. */
void timers_accepted(struct sg_conn *c);
/* The Request has arrived; verbs decide now, or when there is room. */
void timers_request_here(struct sg_conn *c);
/* Verbs accept: a Reply has to be sent, and an RTR message to arrive. */
void timers_replying(struct sg_conn *c);
/* Startup is over. */
void timers_started(struct sg_conn *c);
/* After timers_started(): our first FPDU has to wait; it need not wait any more. */
void timers_pause(struct sg_conn *c);
void timers_no_pause(struct sg_conn *c);
/* At that time close_tick() checks the end. */
void timers_look_at_end(struct sg_conn *c, uint64_t at_ns);
/* sg_engine_run() has to drop the connection, for 'end' or because it is starved. */
void timers_drop(struct sg_conn *c);
/* The oldest inbound request is not retried before this time (SG_NEVER: sg_conn_resume()). */
void timers_exec_later(struct sg_conn *c, uint64_t again_ns);
/* A timer that belongs to the wire; sg_engine_run() calls it. */
void timers_start(struct sg_conn *c, struct sg_timer *t, uint64_t at_ns);

/* mpa_start.c */
static inline uint16_t mpa_pdata_max(const struct sg_mpa_frame *f)
{
    return f->enhanced ? SG_MPA_PD_V2_MAX : SG_MPA_PD_MAX;
}
bool mpa_make_request(struct sg_conn *c, const struct sg_conn_params *p);
void mpa_make_reply(struct sg_conn *c, const struct sg_conn_params *p);
void mpa_make_reject(struct sg_conn *c, const uint8_t *pdata, uint16_t pdata_len);
/* Takes octets of the startup exchange and returns how many; the rest are FPDUs. */
size_t mpa_receive(struct sg_conn *c, const uint8_t *p, size_t n);
/* Sends the pending startup frame; false: the stream is blocked. */
bool mpa_transmit(struct sg_conn *c);

/* fpdu_rx.c */
void fpdu_receive(struct sg_conn *c, const uint8_t *p, size_t n);

/* fpdu_tx.c */
void fpdu_refresh(struct sg_conn *c);
/* Frames and sends one segment of 'len' payload octets; 0: blocked, else octets on the wire. */
size_t fpdu_send(struct sg_conn *c, struct seg_out *out, const struct sg_ddp_hdr *h, int npay,
                 size_t len);

/* ddp_rx.c */
struct ddp_seg {
    struct sg_ddp_hdr h;
    const struct sg_rdmap_op *op;
    const uint8_t *p; /* payload */
    uint32_t n;
    uint16_t seg_len; /* header and payload */
    uint8_t opcode;
    bool has_read; /* 'read' was parsed: the Terminate may quote it */
    struct sg_read_req read;
};
/* Result of a check or handler: SEG_OK, SEG_LATER (nothing changed), SEG_CLOSED or a row. */
enum { SEG_OK = -1, SEG_LATER = -2, SEG_CLOSED = -3 };
void ddp_receive(struct sg_conn *c, const uint8_t *p, size_t n);

/* stall.c: reception that waits for memory */
void stall_begin(struct sg_conn *c, const uint8_t *p, size_t n);
void stall_keep(struct sg_conn *c, const uint8_t *p, size_t n);
void stall_keep_fin(struct sg_conn *c);
/* Nothing more will be received. */
void stall_drop(struct sg_conn *c);

/* rdmap_rx.c */
int rdmap_place(struct sg_conn *c, struct ddp_seg *s);

/* Passes a whole unit to the stream; false: blocked, nothing has changed. */
static inline bool conn_hand_over(struct sg_conn *c, const struct iovec *iov, unsigned n,
                                  size_t octets)
{
    if (!c->stream->ops->send(c->stream, iov, n, true)) {
        c->tx.blocked = true;
        return false;
    }
    c->e->stats.tx_octets += octets;
    c->tx.passed += octets;
    return true;
}

/* rdmap_tx.c: those of iwarp.c's table */
size_t rdmap_send_rtr(struct sg_conn *c);
size_t rdmap_send_payload(struct sg_conn *c, struct seg_out *out, int npay, uint32_t len,
                          bool last);
size_t rdmap_send_response(struct sg_conn *c, const struct conn_irrq *r, struct seg_out *out,
                           int npay, uint32_t len, bool last);
size_t rdmap_send_small(struct sg_conn *c);
void rdmap_source_failed(struct sg_conn *c, const struct conn_irrq *r, enum sg_mem_status why);
void rdmap_local_failed(struct sg_conn *c);
void rdmap_queue_rtr(struct sg_conn *c, uint8_t kind);
static inline uint8_t rdmap_ctrl(enum sg_rdmap_opcode op)
{
    return (uint8_t)(SG_RDMAP_VERSION << 6 | op);
}

/* Does the host want to know what messages do? */
static inline bool conn_observed(const struct sg_conn *c)
{
    return c->e->host->ops->observe;
}

/* seg_note.c: tells verbs of a segment.  p: what was received, or NULL: it was sent. */
void flow_ddp(const struct sg_conn *c, const struct sg_ddp_hdr *h, size_t octets, const uint8_t *p);
void flow_rt(const struct sg_conn *c, const struct sg_rt_hdr *h, size_t octets, const uint8_t *p);

/* requests.c */
void requests_free(struct sg_conn *c);
/* Requests that ORD still allows. */
unsigned requests_room(const struct sg_conn *c);
void requests_push(struct sg_conn *c, const struct conn_orq *r);
/* Our oldest request without an answer: a Read, or one of queue 3.  NULL: none. */
struct conn_orq *requests_oldest_read(struct sg_conn *c);
struct conn_orq *requests_oldest_untagged(struct sg_conn *c);
/* The oldest request of ours whose answer verbs do not have; NULL: none. */
const struct conn_orq *requests_first_unanswered(const struct sg_conn *c);
/* Our Read with this id, and how many requests are before it; NULL: none. */
const struct conn_orq *requests_find_read(const struct sg_conn *c, uint32_t id, unsigned *before);
/* The request is answered.  Reports it to verbs, and those that waited behind it. */
void requests_answered(struct sg_conn *c, struct conn_orq *r);
/* The peer's requests: append, look at the oldest, drop the oldest. */
void requests_accept(struct sg_conn *c, const struct conn_irrq *r);
const struct conn_irrq *requests_head(const struct sg_conn *c);
void requests_pop(struct sg_conn *c);
/* The oldest was answered by the message with that ordinal. */
void requests_tell_answered(struct sg_conn *c, const struct conn_irrq *r, uint64_t response);

/* mpe_req.c: Flush, Verify and Atomic Write as requester */
size_t mpe_send_request(struct sg_conn *c);
int mpe_place_response(struct sg_conn *c, struct ddp_seg *s);

/* mpe_resp.c: the same as responder; execution for exec.c */
int mpe_place_request(struct sg_conn *c, struct ddp_seg *s);
enum sg_exec_result mpe_execute(struct sg_conn *c, enum sg_mem_status *why, uint64_t *again_ns);
/* Completes an executed request; false: that ended the stream. */
bool mpe_executed(struct sg_conn *c);

/* atomic_msg.c: Atomic Operations, both sides */
size_t atomic_send_request(struct sg_conn *c);
int atomic_place_request(struct sg_conn *c, struct ddp_seg *s);
int atomic_place_response(struct sg_conn *c, struct ddp_seg *s);
enum sg_exec_result atomic_execute(struct sg_conn *c, enum sg_mem_status *why, uint64_t *again_ns);
static inline bool is_atomic(enum sg_msg_kind kind)
{
    return kind == SG_MSG_FETCH_ADD || kind == SG_MSG_CMP_SWAP;
}

/* exec.c: requests of the peer that are executed and answered on queue 3 */
/* Executes the oldest request if necessary.  True: its response may be sent. */
bool exec_ready(struct sg_conn *c);
size_t exec_send_response(struct sg_conn *c);
static inline bool exec_alive(const struct sg_conn *c)
{
    return c->state == CONN_STREAMING || c->state == CONN_CLOSING;
}

/* term.c */
void term_raise(struct sg_conn *c, enum sg_term_cond cond, const struct sg_ddp_hdr *ddp,
                uint16_t seg_len, const struct sg_read_req *read);
void term_raise_code(struct sg_conn *c, uint8_t layer, uint8_t type, uint8_t code);
bool term_transmit(struct sg_conn *c);
void term_received(struct sg_conn *c, const struct sg_term *t);
/* Row for a memory access that failed. */
enum sg_term_cond term_of_tagged(enum sg_mem_status st);
enum sg_term_cond term_of_source(enum sg_mem_status st);
enum sg_term_cond term_of_invalidate(enum sg_mem_status st);

#endif
