/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two queues of requests on queue 1: ours, bounded by ORD, and the peer's, bounded by IRD
 * (RFC 5040 section 6.1).  Reads, Atomics, Flushes, Verifies and Atomic Writes share both and one
 * space of MSNs (RFC 7306 section 5.2; draft-talpey-rdma-commit-02 sections 2.1.1, 2.2.1, 2.3.1).
 *
 * Ours.  An entry stays until its result is reported to verbs.  Two sequences of answers serve the
 * one queue: Read Responses, which are tagged, and the responses on queue 3.  Each is in the order
 * of its requests, but nothing orders one against the other.  So an answer may overtake those of
 * older requests: it is kept in its entry, and verbs get the answers in the order of requests.
 * Kept entries count against ORD.
 *
 * The peer's.  Its head is the request being answered (rdmap_tx.c, exec.c).
 *
 * Both rings are allocated when they are first needed.  Looking for the oldest unanswered entry of
 * a kind walks over at most ORD entries, and over more than one only if answers overtook.
 */
#include "proto/conn.h"

/* Requests of ours. */

static uint32_t orq_size(const struct sg_conn *c)
{
    return (uint32_t)c->setup.ord + 1;
}

void requests_free(struct sg_conn *c)
{
    conn_release(c, c->out.ring, orq_size(c) * sizeof(*c->out.ring));
    conn_release(c, c->peer.ring, c->setup.ird * sizeof(*c->peer.ring));
}

unsigned requests_room(const struct sg_conn *c)
{
    return c->setup.ord > c->out.count ? (unsigned)c->setup.ord - c->out.count : 0;
}

void requests_push(struct sg_conn *c, const struct conn_orq *r)
{
    sg_assert(c->out.count < orq_size(c));
    if (!c->out.ring) {
        c->out.ring = conn_alloc(c, orq_size(c) * sizeof(*c->out.ring));
    }
    if (!c->out.ring) {
        return;
    }
    c->out.ring[(c->out.head + c->out.count) % orq_size(c)] = *r;
    c->out.count++;
}

static struct conn_orq *oldest(struct sg_conn *c, bool read)
{
    uint32_t i;

    for (i = 0; i < c->out.count; i++) {
        struct conn_orq *r = &c->out.ring[(c->out.head + i) % orq_size(c)];

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

const struct conn_orq *requests_first_unanswered(const struct sg_conn *c)
{
    return c->out.count ? &c->out.ring[c->out.head] : NULL;
}

const struct conn_orq *requests_find_read(const struct sg_conn *c, uint32_t id, unsigned *before)
{
    uint32_t i;

    for (i = 0; i < c->out.count; i++) {
        const struct conn_orq *r = &c->out.ring[(c->out.head + i) % orq_size(c)];

        if (!r->answered && r->kind == SG_MSG_READ_REQ && r->id == id) {
            *before = i;
            return r;
        }
    }
    return NULL;
}

static void tell(struct sg_conn *c, const struct conn_orq *r)
{
    const struct sg_engine_ops *ops = c->e->ops;

    if (r->internal) {
        return;
    }
    c->rx.now = r->ordinal;
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
    r->ordinal = c->rx.now;
    /* Any upcall may end the connection, or the reception on it. */
    while (c->state <= CONN_CLOSING && c->out.count && c->out.ring[c->out.head].answered) {
        const struct conn_orq done = c->out.ring[c->out.head];

        c->out.head = (uint16_t)((c->out.head + 1) % orq_size(c));
        c->out.count--;
        if (c->out.next_was_short) {
            c->out.next_was_short = false;
            conn_signal(c);
        }
        tell(c, &done);
    }
}

/*
 * Requests of the peer.  Those that arrive when we are closing already are dropped: a peer that
 * never stops sending requests would otherwise delay our FIN for ever.  The FIN tells it of the
 * end.
 */

void requests_accept(struct sg_conn *c, const struct conn_irrq *r)
{
    struct conn_irrq *at;

    if (c->state == CONN_CLOSING) {
        return;
    }
    sg_assert(c->peer.count < c->setup.ird); /* ddp_rx.c, check_ird() */
    if (!c->peer.ring) {
        c->peer.ring = conn_alloc(c, c->setup.ird * sizeof(*c->peer.ring));
    }
    if (!c->peer.ring) {
        return;
    }
    at = &c->peer.ring[(c->peer.head + c->peer.count) % c->setup.ird];
    *at = *r;
    at->ordinal = c->rx.now;
    c->peer.count++;
    conn_signal(c);
}

const struct conn_irrq *requests_head(const struct sg_conn *c)
{
    sg_assert(c->peer.count);
    return &c->peer.ring[c->peer.head];
}

void requests_pop(struct sg_conn *c)
{
    sg_assert(c->peer.count);
    c->peer.head = (uint16_t)((c->peer.head + 1) % c->setup.ird);
    c->peer.count--;
}

void requests_tell_answered(struct sg_conn *c, const struct conn_irrq *r, uint64_t response)
{
    const enum sg_msg_kind kind = (enum sg_msg_kind)r->kind;

    if (c->e->ops->answered) {
        c->e->ops->answered(c->user, &(const struct sg_answer){
                                         .kind = kind,
                                         .msn = r->h.msn,
                                         .to = kind == SG_MSG_READ_REQ ? r->read.src_to
                                               : is_atomic(kind)       ? r->atomic.to
                                                                       : r->mpe.to,
                                         .ordinal = r->ordinal,
                                         .response = response,
                                     });
    }
}
