/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A message arrives, and no receive is posted for it.
 *
 * RFC 5041 section 7.1 ends the stream (Terminate 1/2/02).  Programs written for InfiniBand rely on
 * something else: there the sender is told to try again, rnr_retry times, each time after the
 * min_rnr_timer of the receiver.  So on connections of such programs (SG_CONNECT_STAY; property
 * 'rnr') reception pauses, as it does for missing pages (proto/stall.c), until a receive is posted
 * or that time is over.  The peer's window bounds the data that wait.
 *
 * The sender's rnr_retry is not transmitted on iWARP; the receiver's own value replaces it.  7
 * means for ever, which is FOR_EVER_NS here, since nothing else would end the wait of a connection
 * that its owner has forgotten.  The end of the connection or of the queue pair ends it anyway.
 *
 * Queue pairs that wait for an entry of a shared queue are in its list, the oldest first; a
 * doorbell wakes as many as there are entries.  One that finds none joins the list again.
 */
#include "verbs/queues/qp.h"
#include "verbs/queues/srq.h"
#include "verbs/state/adapter_state.h"

enum { RETRY_FOR_EVER = 7, RETRY_DEFAULT = 7 };

#define FOR_EVER_NS 3600000000000ull

/* The encoding of InfiniBand's 9.7.5.2.8, in steps of 10 us. */
static const uint16_t timer_steps[32] = { 0,    1,    2,    3,     4,     6,     8,     12,
                                          16,   24,   32,   48,    64,    96,    128,   192,
                                          256,  384,  512,  768,   1024,  1536,  2048,  3072,
                                          4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152 };
enum { TIMER_0_STEPS = 65536, STEP_NS = 10000 };

uint64_t sg_rnr_wait_ns(const struct sg_qp *qp)
{
    const struct sg_rnr *r = &qp->rnr;
    unsigned retry = r->retry_given ? r->retry : RETRY_DEFAULT;
    uint64_t steps = r->timer ? timer_steps[r->timer] : TIMER_0_STEPS;

    if (retry == RETRY_FOR_EVER) {
        return FOR_EVER_NS;
    }
    return retry * steps * STEP_NS;
}

static bool may_wait(const struct sg_qp *qp)
{
    enum sg_rnr_mode mode = qp->adapter->config.rnr;

    return mode == SG_RNR_WAIT || (mode == SG_RNR_AUTO && qp->conn && qp->conn->stay);
}

static void time_is_over(struct sg_timer *t, uint64_t now_ns)
{
    struct sg_qp *qp = t->opaque;

    (void)now_ns;
    qp->rnr.over = true;
    sg_qp_defer(qp, SG_DEFER_RESUME);
}

/* False: there is no memory for the wait. */
static bool begin(struct sg_qp *qp, uint64_t wait_ns)
{
    struct sg_adapter *a = qp->adapter;
    struct sg_rnr_wait *w = sg_account_new0(&a->account, sizeof(*w));

    if (!w) {
        return false;
    }
    w->qp = qp;
    sg_timer_init(&w->timeout, time_is_over, qp);
    sg_timerq_arm(&a->timers, &w->timeout, sg_adapter_now(a) + wait_ns);
    qp->rnr.wait = w;
    sg_adapter_kick(a); /* so that the new deadline becomes known */
    return true;
}

enum sg_recv_status sg_rnr_missing(struct sg_qp *qp)
{
    struct sg_rnr *r = &qp->rnr;
    struct sg_adapter *a = qp->adapter;
    uint64_t wait = may_wait(qp) ? sg_rnr_wait_ns(qp) : 0;

    if (!r->wait) {
        a->stats.rx_no_receive++;
    }
    if (!wait || r->over || (!r->wait && !begin(qp, wait))) {
        sg_log(&a->host, SG_LOG_PEER_ERROR, "qp %u: a message, and no receive is posted", qp->qpn);
        return SG_RECV_NO_BUFFER;
    }
    if (qp->srq) {
        sg_list_append(&qp->srq->starving, &r->wait->link);
    }
    return SG_RECV_LATER;
}

void sg_rnr_stop(struct sg_qp *qp)
{
    struct sg_rnr *r = &qp->rnr;

    r->over = false;
    if (r->wait) {
        sg_timerq_cancel(&qp->adapter->timers, &r->wait->timeout);
        sg_list_remove(&r->wait->link);
        sg_account_free(&qp->adapter->account, r->wait, sizeof(*r->wait));
        r->wait = NULL;
    }
}

void sg_rnr_posted(struct sg_qp *qp)
{
    if (qp->rnr.wait) {
        sg_qp_defer(qp, SG_DEFER_RESUME);
    }
}

void sg_rnr_posted_shared(struct sg_srq *srq)
{
    uint32_t left = sg_srq_left(srq);
    struct sg_link *k;

    while (left && (k = sg_list_pop(&srq->starving))) {
        sg_rnr_posted(sg_container_of(k, struct sg_rnr_wait, link)->qp);
        left--;
    }
}
