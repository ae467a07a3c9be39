/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs: state (qp.c), send queue (sq.c), receive queue (rq.c), flushing (qp_flush.c).
 */
#ifndef SG_VERBS_QUEUES_QP_H
#define SG_VERBS_QUEUES_QP_H

#include "base/list.h"
#include "proto/engine.h"
#include "staghorn/admin.h"
#include "staghorn/io.h"
#include "verbs/memory/mem.h"
#include "verbs/events/cq.h"
#include "verbs/events/ring.h"

struct sg_adapter;
struct sg_cm;
struct sg_mr;
struct sg_pd;
struct sg_srq;

/* A send queue entry that was started and is not completed. */
struct sg_sq_rec {
    uint64_t wr_id;
    uint64_t sink_to;   /* VERIFY: sink of the hash; Atomics: sink of the original value */
    uint32_t byte_len;  /* of a Read; VERIFY: room for the hash, 0 if it is not wanted */
    uint32_t sink_stag; /* VERIFY, READ_INV, Atomics */
    uint32_t vendor_err;
    uint8_t opcode;    /* enum sg_wr_opcode */
    uint8_t status;    /* enum sg_wc_status, when done or failed */
    uint8_t wc_opcode; /* enum sg_wc_opcode */
    bool signaled;
    bool answered; /* the peer answers this request */
    bool done;
    uint8_t sink_count;
    struct sg_sge *sinks; /* own copy: elements of a Read with more than one (scatter.c) */
    uint64_t ordinal;     /* of its last message that was started (base/host.h), 0: none */
};

static_assert(sizeof(struct sg_wqe_hdr) + SG_SQ_MAX_SGE * sizeof(struct sg_sge) <=
                  SG_WQE_STRIDE_MAX,
              "elements fit");
static_assert(sizeof(struct sg_wqe_hdr) + SG_MAX_INLINE <= SG_WQE_STRIDE_MAX, "inline data fits");
static_assert(sizeof(struct sg_rqe_hdr) + SG_RQ_MAX_SGE * sizeof(struct sg_sge) <=
                  SG_WQE_STRIDE_MAX,
              "elements fit");

/* Entries from ring.cons to 'next' are started, those from there to ring.prod wait. */
struct sg_sq {
    struct sg_ring ring;
    uint32_t next;
    uint32_t close_at; /* CLOSING: entries from here on are not started */
    uint32_t reads;    /* requests that the peer answers, started and not complete */
    /* SG_CONNECT_CONFIRM (confirm.c): */
    uint32_t sent;      /* entries below it were passed to TCP */
    uint32_t probe_end; /* entries below it are covered by the last or current probe */
    bool confirming;
    bool probing;           /* a probe is outstanding */
    bool probe_needed;      /* some entries are not covered by a probe */
    struct sg_sq_rec *recs; /* of [cons, next), by index modulo rec_room */
    uint32_t rec_room;      /* power of two, grows on demand up to the ring */
    uint16_t max_inline;
    uint8_t max_sge;
    uint8_t flush_status; /* for the next entry that is flushed, if not 0 */
    /*
     * The message being sent: private copy of its entry, and the rows of its elements.  Both, and
     * the receive queue's copy, are sized for what this queue pair may post, behind the struct.
     */
    uint32_t cur_index;
    uint64_t cur_epoch;    /* of the protection table when cur_mr was looked up */
    uint16_t cur_body;     /* where elements or inline octets begin in cur */
    bool cur_imm;          /* Immediate Data follows the Write that is being sent */
    struct sg_mr **cur_mr; /* max_sge of them */
    uint8_t *cur;          /* a slot */
};

/*
 * Own, or a share of the queue pair's SRQ: then the ring has no memory, its 'cons' counts messages,
 * and the entry that is taken, if any, is [cons, prod).
 */
struct sg_rq {
    struct sg_ring ring; /* cons: where the next message goes */
    uint32_t base;       /* index of the message with MSN 1 */
    uint8_t max_sge;
    bool cur_valid; /* cur is the copy of entry cons */
    uint8_t cur_sges;
    uint64_t cur_len; /* octets of room */
    uint8_t *cur;     /* a slot, aligned to 8 as the send queue's */
};

/* Actions on the connection that an upcall may not do itself. */
enum sg_qp_deferred {
    SG_DEFER_TERMINATE = 1, /* local error: Terminate, then close */
    SG_DEFER_CLOSE = 2,     /* FIN */
    SG_DEFER_RESUME = 4,    /* reception waited for a receive (rnr.c) */
};

/* Since the queue pair was created (QUERY_QP_STATS). */
struct sg_qp_counters {
    uint64_t tx_octets, rx_octets;     /* payload of Sends, Writes and Read Responses */
    uint64_t tx_requests, rx_requests; /* messages except responses */
    uint64_t completions, errors;      /* errors: neither SUCCESS nor FLUSH_ERR */
};

/* Reception waits for a receive; how long it may wait (rnr.c). */
struct sg_rnr {
    uint8_t timer, retry; /* MODIFY_QP */
    bool retry_given;
    bool over;                /* the time is over */
    struct sg_rnr_wait *wait; /* NULL: nothing waits */
};

struct sg_rnr_wait {
    struct sg_qp *qp;
    struct sg_timer timeout;
    struct sg_link link; /* in sg_srq.starving */
};

/* A connection as its queue pair sees it; a part of struct sg_cm, which the layer above knows. */
struct sg_qp_conn {
    struct sg_conn *engine; /* the engine's; NULL: gone */
    bool streaming;         /* FPDUs may flow: a FIN is a graceful end */
    bool stay;              /* SG_CONNECT_STAY */
    bool confirm;           /* SG_CONNECT_CONFIRM */
    uint16_t ord;
};

/* The operations that queues need from the layer above. */
struct sg_qp_conn_ops {
    /* It may have something to transmit: schedules it. */
    void (*ready)(struct sg_qp_conn *conn);
    /* Reset the connection now and tell the driver that it is gone. */
    void (*abort)(struct sg_qp_conn *conn);
};

struct sg_qp {
    struct sg_adapter *adapter;
    uint32_t qpn;
    uint32_t octets; /* of itself and the slots behind it */
    uint32_t uar, flags;
    uint8_t state;         /* enum sg_qp_state, changed by sg_qp_set_state() only */
    uint8_t deferred;      /* SG_DEFER_* */
    bool fatal_reported;   /* SG_EV_QP_FATAL was raised since leaving IDLE */
    bool local_error;      /* the Terminate is about our own request */
    bool last_wqe;         /* SG_EV_QP_LAST_WQE was raised since leaving IDLE */
    bool peer_left;        /* RTS, but the peer left (SG_CONNECT_STAY) */
    struct sg_mem_ctx mem; /* with its protection domain and access rights */
    struct sg_cq *scq, *rcq;
    struct sg_srq *srq;      /* with SG_QP_SRQ, else NULL */
    struct sg_qp_conn *conn; /* connection, or NULL */
    struct sg_cm *past_cm;   /* the last one, which CM_DATA still knows, or NULL */
    struct sg_sq sq;
    struct sg_rq rq;
    struct sg_rnr rnr;
    struct sg_link scq_link, rcq_link; /* in the completion queues */
    struct sg_qp_counters counters;
    struct sg_link deferred_link, flush_link;
};

const char *sg_qp_state_name(unsigned state);
void sg_qp_set_state(struct sg_qp *qp, enum sg_qp_state state, const char *why);
/* The queue pair cannot continue: ERROR, the connection ends; event unless SG_EV_NONE. */
void sg_qp_fail(struct sg_qp *qp, enum sg_event event, const char *why);
/* A ring that does not respond to DMA: the driver took its memory away. */
void sg_qp_unreadable(struct sg_qp *qp, const char *why);
/* A request of ours is faulty: TERMINATE; the rest is flushed when the stream is down. */
void sg_qp_local_error(struct sg_qp *qp, const char *why);
void sg_qp_defer(struct sg_qp *qp, enum sg_qp_deferred what);
/* True: there is more. */
bool sg_qp_run_deferred(struct sg_adapter *a);
/*
 * Puts the queue pairs of failed completion queues (sg_adapter.cq_errors) into error.  True: there
 * is more.
 */
bool sg_qp_run_cq_errors(struct sg_adapter *a);
/* RTS, with fresh sequence numbers. */
void sg_qp_start(struct sg_qp *qp, const char *why);
/* There is no peer: ERROR, and the oldest send entry has RETRY_EXC_ERR. */
void sg_qp_unreachable(struct sg_qp *qp, const char *why);
/* The ULP closes; FIN as soon as everything posted so far is complete. */
void sg_qp_close(struct sg_qp *qp);
/* The ULP aborts. */
void sg_qp_abort(struct sg_qp *qp);
/* Wake transmission after a doorbell or a change of state. */
void sg_qp_wake(struct sg_qp *qp);

/* Posts a completion of this queue pair. */
void sg_qp_complete(struct sg_qp *qp, struct sg_cq *cq, const struct sg_wc *wc);

/* qp_flush.c: bounded; true: there is more. */
void sg_qp_flush_later(struct sg_qp *qp);
bool sg_qp_run_flush(struct sg_adapter *a);

/*
 * check_entry.c; only if there is a checker.  What it knows of the queues is the last part of the
 * queue pair's memory, so without a checker a queue pair is no larger.
 */
struct sg_qp_sums {
    struct sg_check_sums *sq, *rq; /* NULL: none */
};
static inline struct sg_qp_sums *sg_qp_sums(struct sg_qp *qp)
{
    return (void *)((uint8_t *)qp + qp->octets - sizeof(struct sg_qp_sums));
}
/* Was the entry that was copied last reported as changed? */
bool sg_check_sq_changed(struct sg_qp *qp);
bool sg_check_rq_changed(struct sg_qp *qp);
static inline struct sg_object sg_qp_object(const struct sg_qp *qp)
{
    return sg_object_of(qp->uar, SG_OBJECT_QP, qp->qpn);
}
void sg_check_sq_posted(struct sg_qp *qp, uint32_t before);
void sg_check_sq_fetched(struct sg_qp *qp);
void sg_check_rq_posted(struct sg_qp *qp, uint32_t before);
void sg_check_rq_fetched(struct sg_qp *qp);
/* The entry at 'index' of its shared receive queue. */
void sg_check_srq_fetched(struct sg_qp *qp, uint32_t index);
void sg_check_qp_told(struct sg_qp *qp, const struct sg_wc *wc);

/* sq.c; what completes entries is in sq_complete.c, mpe_wr.c and atomic_wr.c. */
void sg_sq_doorbell(struct sg_qp *qp, uint32_t prod);
bool sg_sq_next(struct sg_qp *qp, struct sg_msg *msg, unsigned reads_room);
int sg_sq_gather(struct sg_qp *qp, const struct sg_msg *msg, uint32_t off, uint32_t len,
                 struct iovec *iov);
/* Only called if the host observes. */
void sg_sq_started(struct sg_qp *qp, const struct sg_msg *msg, uint64_t ordinal);
void sg_sq_sent(struct sg_qp *qp, const struct sg_msg *msg);
void sg_sq_read_done(struct sg_qp *qp, uint32_t octets);
void sg_sq_mpe_done(struct sg_qp *qp, enum sg_msg_kind kind, const uint8_t *hash, size_t len);
void sg_sq_atomic_done(struct sg_qp *qp, enum sg_msg_kind kind, uint64_t original);
/* The peer's Terminate: gives the oldest request this status, if there is one. */
bool sg_sq_fail_oldest(struct sg_qp *qp, enum sg_wc_status status, uint32_t vendor_err);
/* Our own fault with this entry, which is not complete. */
void sg_sq_fail_entry(struct sg_qp *qp, uint32_t index, enum sg_wc_status status);
/* Removes all complete entries, oldest first. */
void sg_sq_drain(struct sg_qp *qp);
/* confirm.c: no message is partly sent, and no answer of the peer is outstanding. */
bool sg_sq_all_sent(struct sg_sq *sq);

/* confirm.c */
void sg_sq_confirm_start(struct sg_qp *qp);
/* Entry 'index' was passed to TCP; false: that completes it. */
bool sg_sq_confirm_later(struct sg_qp *qp, uint32_t index);
/* Is a probe due, and is one allowed?  Then *msg is the probe. */
bool sg_sq_probe(struct sg_qp *qp, struct sg_msg *msg, unsigned reads_room);
/* The probe is answered. */
void sg_sq_probe_done(struct sg_qp *qp);
/* Entries below 'end', all of them sent, are complete unless they have answers of their own. */
void sg_sq_confirm_until(struct sg_qp *qp, uint32_t end);
/* A request is answered, or its answer begins: this also confirms everything sent before it. */
void sg_sq_confirm_earlier_now(struct sg_qp *qp);
static inline void sg_sq_confirm_earlier(struct sg_qp *qp)
{
    if (qp->sq.confirming) {
        sg_sq_confirm_earlier_now(qp);
    }
}
static inline struct sg_sq_rec *sg_sq_rec(struct sg_sq *sq, uint32_t index)
{
    return &sq->recs[index & (sq->rec_room - 1)];
}
static inline bool sg_sq_idle(const struct sg_sq *sq)
{
    return !sg_ring_used(&sq->ring);
}

/*
 * scatter.c: the sink that the Request of a Read with these elements names; the record's copy
 * of the elements, and its end.
 */
void sg_scatter_name(const struct sg_sge *sges, unsigned n, struct sg_msg *msg);
/* False: there is no memory for the copy. */
bool sg_scatter_keep(struct sg_qp *qp, struct sg_sq_rec *rec, const struct sg_sge *sges,
                     unsigned n);
void sg_scatter_drop(struct sg_qp *qp, struct sg_sq_rec *rec);
/* The place of the octet at 'off' of a Response; returns how many octets go there, 0: none. */
uint32_t sg_scatter_piece(const struct sg_sq_rec *rec, const struct sg_read_sink *sink,
                          uint32_t off, uint32_t *stag, uint64_t *to);

/* The opcode of a completion, the same for success and flush. */
uint8_t sg_sq_wc_opcode(uint8_t opcode);

/* rnr.c */
/* How long reception may wait for a receive, if it does. */
uint64_t sg_rnr_wait_ns(const struct sg_qp *qp);
/* A message arrived and no receive is posted: LATER, or NO_BUFFER. */
enum sg_recv_status sg_rnr_missing(struct sg_qp *qp);
/* The wait is over, successfully or not. */
void sg_rnr_stop(struct sg_qp *qp);
/* Receives were posted. */
void sg_rnr_posted(struct sg_qp *qp);
void sg_rnr_posted_shared(struct sg_srq *srq);

/* rq.c */
void sg_rq_doorbell(struct sg_qp *qp, uint32_t prod);
enum sg_recv_status sg_rq_place(struct sg_qp *qp, uint32_t msn, uint32_t mo, const uint8_t *p,
                                size_t n);
void sg_rq_done(struct sg_qp *qp, const struct sg_recv_info *info);
/* Completes the oldest entry with FLUSH_ERR; false: it cannot be read. */
bool sg_rq_flush_one(struct sg_qp *qp);

/* The operations of queue pairs for memory. */
extern const struct sg_mem_ops sg_qp_mem_ops;

#endif
