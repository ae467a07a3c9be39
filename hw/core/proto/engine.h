/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The boundary between verbs and the engine (RDMA messages over a stream).
 *
 * Verbs own queue pairs, work requests and memory rights; the engine owns connections, framing,
 * sequence numbers and the wire.  The wire is iWARP (MPA, DDP, RDMAP) or RDMA/TCP of 2000; what
 * differs is behind engine_wire.h.  Messages, faults and setup have the names that RDMAP and MPA
 * give them; a wire that has less says so (sg_engine_wire_kinds()).
 *
 * Turn discipline.  Events from below (frames, timers) make the engine change state, place data
 * and call back up; they never transmit.  All transmission happens in sg_conn_transmit(), which
 * verbs call from sg_adapter_run(): 'tx_ready' says that a connection has a reason to be called.
 * So no call recurses, whatever the stream underneath does.
 *
 * Lifetime.  A connection exists from sg_engine_connect() or 'request' until 'closed' has
 * returned or sg_conn_abort() was called; after that its pointer is dead.
 */
#ifndef SG_PROTO_ENGINE_H
#define SG_PROTO_ENGINE_H

#include "base/host.h"
#include "proto/stream.h"
#include "staghorn/io.h"

struct sg_engine;
struct sg_conn;
struct sg_engine_listener;

enum sg_engine_limits {
    SG_ENGINE_PDATA_MAX = 512,
    SG_ENGINE_IOV_MAX = 64, /* pieces of guest memory in one segment's payload */
};

/* The format of messages in TCP. */
enum sg_engine_wire { SG_ENGINE_IWARP, SG_ENGINE_RDMA_TCP_2000, SG_ENGINE_WIRES };

/* Policy of all connections of an adapter, from the device's properties. */
struct sg_engine_config {
    uint8_t wire;      /* enum sg_engine_wire; for connections from now on */
    uint8_t mpa_rev;   /* 1 or 2: highest revision used and accepted */
    bool crc;          /* demand CRC (RFC 5044 section 4.4); off only by the administrator */
    bool markers;      /* demand Markers in what the peer sends */
    bool peer_to_peer; /* offer RTR as initiator (RFC 6581 section 9.2) */
    uint8_t rtr_mask;  /* SG_RTR_*: kinds offered and accepted */
    uint16_t max_ird;  /* 0..16383 */
    uint16_t max_ord;
    uint32_t reply_timeout_ms;   /* for the responder's program to answer, on either side */
    uint32_t startup_timeout_ms; /* responder: for the Request, and for what follows the Reply */
    /* The end of a connection; each is followed by a reset (close.c). */
    uint32_t close_timeout_ms;  /* all is delivered, and the peer does not close its half */
    uint32_t linger_timeout_ms; /* without progress of TCP, or where nobody waits for the end */
    uint32_t close_limit_ms;    /* in all, whatever the peer does; at least the two above */
    /*
     * Initiator: pause between a Reply and our first FPDU, 0..1000.  For responders that pass
     * their connection on only after the Reply is out and overlook what comes at once.
     */
    uint32_t first_fpdu_delay_ms;
    uint8_t mpe_draft; /* enum sg_mpe_draft: opcodes above 0xb, and five opcode bits;
                               for connections from now on */
    bool rfc7306;      /* Atomic Operations and Immediate Data; for connections from now on */
};

enum sg_mpe_draft { SG_MPE_DRAFT_OFF = 0, SG_MPE_DRAFT_01 = 1, SG_MPE_DRAFT_02 = 2 };
#define SG_RTR_SEND 0x1
#define SG_RTR_WRITE 0x2
#define SG_RTR_READ 0x4

/* Outcome of connection setup and the reason of an end. */
enum sg_conn_end {
    SG_CONN_OK,
    SG_CONN_REJECTED, /* peer's ULP said no (R flag) */
    SG_CONN_REFUSED,
    SG_CONN_TIMEOUT,
    SG_CONN_RESET,
    SG_CONN_PROTOCOL,   /* malformed or unacceptable MPA startup */
    SG_CONN_CLOSED,     /* graceful, both sides */
    SG_CONN_TERMINATED, /* Terminate sent or received */
    SG_CONN_UNREACHABLE,
    SG_CONN_NORES,
};

/* For the log: "the connection timed out". */
const char *sg_conn_end_text(enum sg_conn_end end);

/* Why this end gave a connection up. */
enum sg_conn_fault {
    SG_FAULT_FORM,   /* the peer's message is invalid */
    SG_FAULT_ACCESS, /* or may not have the memory that it names */
    SG_FAULT_CRC,
    SG_FAULT_HERE, /* memory of ours cannot be used */
    SG_FAULTS,
};

/* The ULP's part of the peer's startup frame.  pdata is valid during the call. */
struct sg_conn_params {
    uint16_t ird, ord;           /* request: the peer's; reply/established: agreed for our side */
    uint16_t peer_ird, peer_ord; /* request, reply: as the peer's frame said; 0: it did not */
    uint8_t mpa_rev;
    const uint8_t *pdata;
    uint16_t pdata_len;
};

enum sg_msg_kind {
    SG_MSG_SEND, /* se, inv */
    SG_MSG_WRITE,
    SG_MSG_READ_REQ,
    SG_MSG_FLUSH, /* draft-talpey-rdma-commit; these three count as Read Requests (ORD) */
    SG_MSG_VERIFY,
    SG_MSG_ATOMIC_WRITE,
    SG_MSG_FETCH_ADD, /* RFC 7306; these two count as Read Requests as well */
    SG_MSG_CMP_SWAP,
    SG_MSG_IMM, /* se */
    SG_MSG_KINDS,
};

enum { SG_IMM_OCTETS = 8, SG_GATHER_LATER = -2, SG_GATHER_CLOSED = -3 };

/* Operands of an Atomic as numbers (RFC 7306 section 5.2.1). */
struct sg_atomic_args {
    uint64_t data; /* to add, or to swap in */
    uint64_t mask; /* FETCH_ADD: top bits of fields; CMP_SWAP: bits to swap */
    uint64_t cmp;  /* CMP_SWAP only */
    uint64_t cmp_mask;
};

/* What is particular to each kind of the draft's requests. */
union sg_mpe_args {
    uint32_t flags; /* FLUSH: SG_FLUSH_* */
    struct {
        uint8_t len; /* octets, 0: none */
        uint8_t octets[64];
    } hash;          /* VERIFY: the one that is expected */
    uint8_t atom[8]; /* ATOMIC_WRITE: in memory order of the target */
};

/* One outgoing message, filled by 'next': its kind says which member of the union counts. */
struct sg_msg {
    enum sg_msg_kind kind;
    uint64_t cookie; /* private to verbs */
    union {
        struct {
            uint32_t length; /* octets of payload */
            bool solicited;
            bool invalidate;
            uint32_t inv_stag;
        } send;
        struct {
            uint32_t length; /* octets of payload */
            uint32_t stag;   /* sink, at the peer */
            uint64_t to;
        } write;
        struct {
            uint32_t length; /* octets requested */
            uint32_t stag;   /* source, at the peer */
            uint64_t to;
            uint64_t sink_to; /* where the response goes, here */
            uint32_t sink_stag;
            bool confirm; /* of no octets; completes with 'confirmed' */
        } read;
        struct {
            uint32_t stag; /* target, at the peer */
            uint32_t length;
            uint64_t to;
            bool invalidate; /* draft -01 */
            uint32_t inv_stag;
            union sg_mpe_args args;
        } mpe; /* FLUSH, VERIFY, ATOMIC_WRITE */
        struct {
            uint32_t stag; /* target, at the peer */
            uint64_t to;
            struct sg_atomic_args args;
        } atomic; /* FETCH_ADD, CMP_SWAP */
        struct {
            bool solicited;
            uint8_t octets[8];
        } imm;
    };
};

/* Octets that are gathered for a message, or that a Read requests. */
static inline uint32_t sg_msg_length(const struct sg_msg *m)
{
    switch (m->kind) {
    case SG_MSG_SEND:
        return m->send.length;
    case SG_MSG_WRITE:
        return m->write.length;
    case SG_MSG_READ_REQ:
        return m->read.length;
    default:
        return 0;
    }
}

/* An inbound request of the draft, parsed: its kind says which member of 'args' counts. */
struct sg_mpe_req {
    enum sg_msg_kind kind; /* FLUSH, VERIFY, ATOMIC_WRITE */
    uint32_t msn;          /* on queue 1 */
    uint32_t stag;
    uint64_t to;
    uint32_t length;   /* octets; with SG_FLUSH_REGION as sent, to be ignored */
    uint32_t inv_stag; /* draft -01: 0 or an STag: the engine calls 'invalidate' when DONE */
    union sg_mpe_args args;
};

/* An inbound Atomic Request, parsed. */
struct sg_atomic_call {
    enum sg_msg_kind kind; /* FETCH_ADD, CMP_SWAP */
    uint32_t msn;          /* on queue 1 */
    uint32_t stag;
    uint64_t to;
    struct sg_atomic_args args;
};

/* A request of the peer that was answered. */
struct sg_answer {
    enum sg_msg_kind kind;
    uint32_t msn; /* on queue 1 */
    uint64_t to;
    uint64_t ordinal;
    uint64_t response; /* the ordinal of our response */
};

/* The result of the execution of a request: one of the draft, or an Atomic. */
enum sg_exec_result {
    SG_EXEC_DONE,      /* answer it */
    SG_EXEC_LATER,     /* call again at *again_ns; requests behind it wait */
    SG_EXEC_MEM,       /* refused by *why (STag, bounds, rights, ...) */
    SG_EXEC_UNALIGNED, /* Atomic (Write) on an unaligned address */
    SG_EXEC_CLOSED,    /* as SG_MEM_CLOSED */
    SG_EXEC_FAILED,    /* could not be performed, or the hash differs */
};

/* Result of touching memory for the wire. Order as in RFC 5040 section 4.8 / RFC 5041 7.1. */
enum sg_mem_status {
    SG_MEM_OK,
    SG_MEM_STAG, /* invalid STag */
    SG_MEM_BOUNDS,
    SG_MEM_ACCESS,
    SG_MEM_ASSOC, /* not associated with this stream: PD or QP differs */
    SG_MEM_WRAP,  /* TO + length wraps */
    SG_MEM_FAULT, /* the memory behind it does not respond */
    SG_MEM_LATER, /* place_*, gather_source: not present yet; retried by sg_conn_resume() */
    /*
     * The queue pair has left the connection, through no fault of this message: it is dropped, and
     * so is all that follows.  sg_conn_close() or sg_conn_terminate() says how it ends.
     */
    SG_MEM_CLOSED,
};

/* Untagged placement on queue 0. */
enum sg_recv_status {
    SG_RECV_OK,
    SG_RECV_NO_BUFFER, /* nothing posted for this MSN */
    SG_RECV_TOO_LONG,  /* beyond the posted buffer */
    SG_RECV_FAULT,     /* local element invalid: the receive completes in error */
    SG_RECV_LATER,     /* as SG_MEM_LATER */
    SG_RECV_CLOSED,    /* as SG_MEM_CLOSED */
};

struct sg_recv_info {
    uint32_t msn;
    uint32_t length; /* octets of the message; Immediate Data has none for the buffer */
    bool solicited;
    bool invalidate;
    bool immediate; /* Immediate Data: imm */
    uint32_t inv_stag;
    uint32_t write_len; /* Immediate Data: octets of the Write directly before it, else 0 */
    uint8_t imm[8];
};

/* A Terminate message, sent or received. */
struct sg_term_info {
    bool sent;                 /* by us */
    uint8_t layer, type, code; /* RFC 5040 section 4.8 */
};

/* Where the response to a Read of ours goes: what the Request said, and the message's cookie. */
struct sg_read_sink {
    uint64_t to;
    uint64_t cookie;
    uint32_t stag;
};

/* A segment that was handed to the stream, or that has arrived. */
struct sg_seg_note {
    const char *message; /* "RDMA Write" */
    bool sent;
    bool tagged;     /* it names memory: stag, at */
    bool last;       /* of its message */
    uint32_t number; /* tagged: STag; else the number of its message in its queue */
    uint64_t at;     /* tagged: Tagged Offset; else the offset in its message */
    uint32_t octets; /* behind its header */
    /* Of all segments in this direction of the connection, from 1: the same at both ends. */
    uint64_t ordinal;
};

/*
 * Upcalls.  'user' is the object bound to the connection: the QP.  None may call
 * sg_conn_transmit(); each may call sg_conn_abort() on its connection.
 */
struct sg_engine_ops {
    /* ---- connection management ---- */
    /*
     * May a Request come to this listener now?  If not, it waits for sg_engine_admit().  NULL: it
     * always may, within the backlog.
     */
    bool (*request_room)(void *listener_user);
    /* A valid MPA Request came to a listener.  Answer later with sg_conn_accept or _reject. */
    void (*request)(void *listener_user, struct sg_conn *c, const struct sg_conn_params *p);
    /* The requester vanished before an answer was given; the connection is gone on return. */
    void (*request_gone)(struct sg_conn *c, void *request_user, enum sg_conn_end why);
    /* Active side: how connect ended.  SG_CONN_OK: streaming; else 'closed' does not follow. */
    void (*reply)(void *user, enum sg_conn_end end, const struct sg_conn_params *p);
    /* Passive side: first FPDU seen (or none needed), both directions open. */
    void (*established)(void *user, const struct sg_conn_params *p);
    /* The peer closed its half gracefully, or a Terminate passed: no more inbound messages. */
    void (*disconnected)(void *user, enum sg_conn_end why);
    /* TCP is gone.  Last upcall. */
    void (*closed)(void *user, enum sg_conn_end why);
    /* Terminate sent or received; 'disconnected' follows. */
    void (*terminated)(void *user, const struct sg_term_info *t);
    /* Instead of it on a wire without Terminate: only this end knows why.  Not after our FIN. */
    void (*faulted)(void *user, enum sg_conn_fault what);

    /* ---- transmit ---- */
    /* sg_conn_transmit() would make progress now. */
    void (*tx_ready)(void *user);
    /*
     * Next outgoing message, or false: none may start now.  reads_room: Read Requests that ORD
     * still allows; what counts as a Read Request must not be returned when it is 0.  Called once
     * per message.  A message that the connection does not have (the draft's when it is off, and
     * REGION in draft -01; those of RFC 7306 when that is off) ends the stream as if 'gather' had
     * failed.
     */
    bool (*next)(void *user, struct sg_msg *msg, unsigned reads_room);
    /*
     * Pieces of the payload of 'msg', [off, off + len): host pointers, at most SG_ENGINE_IOV_MAX.
     * Negative: the source is not accessible (local protection error; verbs complete the work
     * request in error), the engine then terminates the stream without headers (RDM-61).
     * SG_GATHER_LATER: the payload is not present yet; sg_conn_resume() retries.
     * SG_GATHER_CLOSED: as SG_MEM_CLOSED; the message ends where it is.
     * 'gathered' releases the pieces at once after they were sent.
     */
    int (*gather)(void *user, const struct sg_msg *msg, uint32_t off, uint32_t len,
                  struct iovec *iov);
    void (*gathered)(void *user, struct iovec *iov, int n);
    /*
     * The first segment of the message was handed to the stream.  NULL: nobody needs it; nor is it
     * called while the host observes nothing.
     */
    void (*started)(void *user, const struct sg_msg *msg, uint64_t ordinal);
    /* All of the message was handed to the stream.  Reads complete with 'read_done' instead. */
    void (*sent)(void *user, const struct sg_msg *msg);
    /* The oldest outstanding Read is delivered, octets placed. */
    void (*read_done)(void *user, uint32_t octets);
    /* The same of one with 'confirm': the peer has taken all messages before it. */
    void (*confirmed)(void *user);
    /*
     * The oldest outstanding FLUSH, VERIFY or ATOMIC_WRITE is answered; VERIFY: with this hash
     * (valid during the call).  Reads and these come in the order of their requests, each kind by
     * its own upcall; the engine holds back what would overtake.
     */
    void (*mpe_done)(void *user, enum sg_msg_kind kind, const uint8_t *hash, size_t len);
    /* The same of a FETCH_ADD or CMP_SWAP; original: what the memory held before. */
    void (*atomic_done)(void *user, enum sg_msg_kind kind, uint64_t original);

    /* ---- receive ---- */
    /* RDMA Write: check and place.  Nothing is placed unless all of it may be. */
    enum sg_mem_status (*place_write)(void *user, uint32_t stag, uint64_t to, const uint8_t *p,
                                      size_t n);
    /* Read Response for the oldest outstanding Read, whose sink this is; off counts from 0. */
    enum sg_mem_status (*place_read)(void *user, const struct sg_read_sink *sink, uint32_t off,
                                     const uint8_t *p, size_t n);
    /*
     * Send payload at message offset mo.  msn counts from 1; n may be 0 (buffer still needed), as
     * it always is for Immediate Data.
     */
    enum sg_recv_status (*place_recv)(void *user, uint32_t msn, uint32_t mo, const uint8_t *p,
                                      size_t n);
    /* Send or Immediate Data delivered.  Order: any invalidation first, by 'invalidate'. */
    void (*recv_done)(void *user, const struct sg_recv_info *info);
    enum sg_mem_status (*invalidate)(void *user, uint32_t stag);
    /* Inbound Read Request: may [to, to + len) of stag be read?  len > 0. */
    enum sg_mem_status (*check_source)(void *user, uint32_t stag, uint64_t to, uint32_t len);
    /* Pieces of a Read Response's payload, as 'gather' (released with 'gathered'). */
    int (*gather_source)(void *user, uint32_t stag, uint64_t to, uint32_t len, struct iovec *iov,
                         enum sg_mem_status *why);
    /*
     * Execute an inbound request, when all before it on this stream are executed (Reads: their
     * source was gathered).  VERIFY: DONE stores the hash to send, *hash_len <= 64 octets.
     * token: 0 at the first call of a request, kept between calls; there is no further call if the
     * connection ends in between.  *why counts with SG_EXEC_MEM, *again_ns with LATER (SG_NEVER:
     * the machine lost its power, there will be no answer).
     *
     * NULL: the extension is off, whatever the configuration says.  With 'mpe', 'mpe_done'
     * is there as well.
     */
    enum sg_exec_result (*mpe)(void *user, const struct sg_mpe_req *r, uint8_t hash[64],
                               uint8_t *hash_len, enum sg_mem_status *why, uint64_t *token,
                               uint64_t *again_ns);
    /*
     * Execute an Atomic, under the same rules; DONE stores in *original what the memory held.
     * Never UNALIGNED, MEM or FAILED once the memory was changed.  NULL: RFC 7306 is off; else
     * 'atomic_done' is there as well.
     */
    enum sg_exec_result (*atomic)(void *user, const struct sg_atomic_call *r, uint64_t *original,
                                  enum sg_mem_status *why, uint64_t *token, uint64_t *again_ns);
    /*
     * The whole response to a request was handed to the stream.  Reads: only while the host
     * observes.
     */
    void (*answered)(void *user, const struct sg_answer *r);
    /* The last segment of a Write was placed.  NULL: nobody needs it, and so for 'answered'. */
    void (*write_placed)(void *user);
    /* Only while the host wants the flow (sg_flows()); NULL: nobody needs it. */
    void (*segment)(void *user, const struct sg_seg_note *note);
};

/* Counters that the engine keeps, summed over its connections (names as in admin.h). */
struct sg_engine_stats {
    uint64_t tx_octets, rx_octets, tx_fpdus, rx_fpdus;
    uint64_t tx_sends, rx_sends, tx_writes, rx_writes, tx_reads, rx_reads;
    uint64_t tx_read_responses, rx_read_responses, tx_terminates, rx_terminates;
    uint64_t crc_errors, protocol_errors, protection_errors;
    uint64_t tx_flushes, rx_flushes, tx_verifies, rx_verifies, tx_atomic_writes, rx_atomic_writes;
    uint64_t tx_atomics, rx_atomics, tx_imms, rx_imms;
    uint64_t conns;    /* alive now, half-open ones included */
    uint64_t rx_early; /* segments placed before what came in front of them; not in admin.h */
};

/* What a wire can express: bits 1 << enum sg_msg_kind; and Send with Invalidate. */
uint32_t sg_engine_wire_kinds(enum sg_engine_wire wire);
bool sg_engine_wire_invalidates(enum sg_engine_wire wire);

/* The engine copies config; host, net and ops must outlive it. */
struct sg_engine *sg_engine_new(const struct sg_host *host, struct sg_stream_net *net,
                                const struct sg_engine_config *config,
                                const struct sg_engine_ops *ops);
/*
 * From now on no upcall is made, nothing is placed and no connection is accepted.  The owners abort
 * the existing connections, sg_engine_abort_some() the others.  sg_engine_run() must not be called
 * meanwhile.
 */
void sg_engine_stop(struct sg_engine *e);
/* Aborts up to so many connections; false: there is none left. */
bool sg_engine_abort_some(struct sg_engine *e, unsigned max);
/* Aborts everything without upcalls; the engine is then as new. */
void sg_engine_reset(struct sg_engine *e);
void sg_engine_free(struct sg_engine *e);
/* Other upcalls from the next one on; not from within one. */
void sg_engine_set_ops(struct sg_engine *e, const struct sg_engine_ops *ops);
void sg_engine_set_config(struct sg_engine *e, const struct sg_engine_config *config);
const struct sg_engine_stats *sg_engine_stats(const struct sg_engine *e);
/* There may be room for Requests again; those that wait come with the next sg_engine_run(). */
void sg_engine_admit(struct sg_engine *e);

/* Timeouts due at now; returns the next deadline (ns) or SG_NEVER. */
uint64_t sg_engine_run(struct sg_engine *e, uint64_t now_ns);

/* NULL: failed for the reason *why.  Otherwise 'reply' follows, never from within this call. */
struct sg_conn *sg_engine_connect(struct sg_engine *e, const struct sg_endpoint *local,
                                  const struct sg_endpoint *remote, const struct sg_conn_params *p,
                                  void *user, enum sg_conn_end *why);
struct sg_engine_listener *sg_engine_listen(struct sg_engine *e, const struct sg_endpoint *local,
                                            unsigned backlog, void *user, enum sg_conn_end *why);
/* Connections not yet answered are reset ('request_gone' is not called). */
void sg_engine_unlisten(struct sg_engine_listener *l);

/* Sets the argument of request_gone, for a connection that has no QP yet. */
void sg_conn_set_request_user(struct sg_conn *c, void *request_user);
/* Sends through this neighbour from now on; all zero: see sg_stream_ops. */
void sg_conn_set_next_hop(struct sg_conn *c, const uint8_t next_hop[16]);
/* Answer a request; user: the QP.  False: the connection is not in that state any more. */
bool sg_conn_accept(struct sg_conn *c, void *user, const struct sg_conn_params *p);
bool sg_conn_reject(struct sg_conn *c, const uint8_t *pdata, uint16_t pdata_len);

/*
 * Send up to about 'budget' octets: startup frames, Terminate, Read Responses, messages from
 * 'next'.  True: there is more to do and room to do it (call again); false: wait for 'tx_ready'.
 */
bool sg_conn_transmit(struct sg_conn *c, size_t budget);
/* Verbs have new work for 'next': sets tx_ready if the stream has room.  Cheap, idempotent. */
void sg_conn_wake(struct sg_conn *c);
/*
 * What verbs answered with LATER may be possible now: each such upcall is repeated.  Upcalls of
 * reception come from within this call, and may end the connection.
 */
void sg_conn_resume(struct sg_conn *c);
/* The owner will close when its posted work is done: from now on close_limit counts. */
void sg_conn_prepare_close(struct sg_conn *c);
/*
 * Graceful: after all that was started is sent, and all requests of the peer that are queued are
 * answered, FIN.  'next' is not called any more.
 */
void sg_conn_close(struct sg_conn *c);
/*
 * As sg_conn_close(), and what still arrives is dropped, because its receiver has gone.  An error
 * could not be reported: no Terminate follows our FIN, and RST would destroy data that the peer
 * has not received yet.
 */
void sg_conn_abandon(struct sg_conn *c);
/* At once: RST.  No upcall follows; c is dead on return. */
void sg_conn_abort(struct sg_conn *c);
/*
 * A local error of ours on this stream: Terminate (layer, type, code, no headers), then close.
 * After our FIN no Terminate can be sent, and 'disconnected' is called from within this call.
 */
void sg_conn_terminate(struct sg_conn *c, uint8_t layer, uint8_t type, uint8_t code);

/* In an upcall about a message of the peer: its ordinal (base/host.h). */
uint64_t sg_conn_ordinal(const struct sg_conn *c);

void sg_conn_endpoints(struct sg_conn *c, struct sg_endpoint *local, struct sg_endpoint *remote);

#endif
