/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two queues of requests on queue 1: ours, bounded by ORD, and the peer's, bounded by IRD
 * (RFC 5040 section 6.1).  Reads, Atomics, Flushes, Verifies and Atomic Writes share both and one
 * space of MSNs (RFC 7306 section 5.2; draft-talpey-rdma-commit-02 sections 2.1.1, 2.2.1, 2.3.1).
 *
 * Ours.  An entry stays until verbs were told of its end.  Two streams of answers serve the one
 * queue: Read Responses, which are tagged, and the responses on queue 3.  Each is in the order of
 * its requests, but nothing orders one against the other, so an answer may find older requests
 * unanswered: it is kept in its entry, and verbs hear of it in the order of requests.  Kept
 * entries count against ORD.
 *
 * The peer's.  Its head is what is being answered (rdmap_tx.c, exec.c).
 *
 * Both rings are allocated when they are first needed.  Looking for the oldest unanswered entry of
 * a kind walks over at most ORD entries, and over more than one only if answers overtook.
 */
#include "proto/conn.h"

/* Requests of ours. */

static uint32_t orq_size(const struct sg_conn *c)
{
    return (uint32_t)c->ord + 1;
}

void requests_free(struct sg_conn *c)
{
    conn_release(c, c->orq, orq_size(c) * sizeof(*c->orq));
    conn_release(c, c->irrq, c->ird * sizeof(*c->irrq));
}

unsigned requests_room(const struct sg_conn *c)
{
    return c->ord > c->orq_count ? (unsigned)c->ord - c->orq_count : 0;
}

void requests_push(struct sg_conn *c, const struct conn_orq *r)
{
    sg_assert(c->orq_count < orq_size(c));
    if (!c->orq) {
        c->orq = conn_alloc(c, orq_size(c) * sizeof(*c->orq));
    }
    if (!c->orq) {
        return;
    }
    c->orq[(c->orq_head + c->orq_count) % orq_size(c)] = *r;
    c->orq_count++;
}

static struct conn_orq *oldest(struct sg_conn *c, bool read)
{
    uint32_t i;

    for (i = 0; i < c->orq_count; i++) {
        struct conn_orq *r = &c->orq[(c->orq_head + i) % orq_size(c)];

        if (!r->answered && (r->kind == SG_MSG_READ_REQ) == read) {
            return r;
        }
    }
    return NULL;
}

struct conn_orq *requests_oldest_read(struct sg_conn *c)
{
    return oldest(c, true);
}

struct conn_orq *requests_oldest_untagged(struct sg_conn *c)
{
    return oldest(c, false);
}

static void tell(struct sg_conn *c, const struct conn_orq *r)
{
    const struct sg_engine_ops *ops = c->e->ops;

    if (r->internal) {
        return;
    }
    if (r->confirm) {
        ops->confirmed(c->user);
    } else if (r->kind == SG_MSG_READ_REQ) {
        ops->read_done(c->user, r->length);
    } else if (is_atomic((enum sg_msg_kind)r->kind)) {
        ops->atomic_done(c->user, (enum sg_msg_kind)r->kind, r->original);
    } else {
        ops->mpe_done(c->user, (enum sg_msg_kind)r->kind, r->hash, r->hash_len);
    }
}

void requests_answered(struct sg_conn *c, struct conn_orq *r)
{
    r->answered = true;
    /* Any upcall may end the connection, or the reception on it. */
    while (c->state <= CONN_CLOSING && c->orq_count && c->orq[c->orq_head].answered) {
        const struct conn_orq done = c->orq[c->orq_head];

        c->orq_head = (uint16_t)((c->orq_head + 1) % orq_size(c));
        c->orq_count--;
        if (c->next_was_short) {
            c->next_was_short = false;
            conn_signal(c);
        }
        tell(c, &done);
    }
}

/*
 * Requests of the peer.  Those that come when we are closing already are forgotten: a peer that
 * never stops asking would put off our FIN for ever.  It hears of the end by that FIN.
 */

void requests_accept(struct sg_conn *c, const struct conn_irrq *r)
{
    if (c->state == CONN_CLOSING) {
        return;
    }
    sg_assert(c->irrq_count < c->ird); /* ddp_rx.c, check_ird() */
    if (!c->irrq) {
        c->irrq = conn_alloc(c, c->ird * sizeof(*c->irrq));
    }
    if (!c->irrq) {
        return;
    }
    c->irrq[(c->irrq_head + c->irrq_count) % c->ird] = *r;
    c->irrq_count++;
    conn_signal(c);
}

const struct conn_irrq *requests_head(const struct sg_conn *c)
{
    sg_assert(c->irrq_count);
    return &c->irrq[c->irrq_head];
}

void requests_pop(struct sg_conn *c)
{
    sg_assert(c->irrq_count);
    c->irrq_head = (uint16_t)((c->irrq_head + 1) % c->ird);
    c->irrq_count--;
}
