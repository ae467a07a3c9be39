/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What goes to the client: sound Replies, and the messages that cases make. */
#include "client.h"

void rr_pending_free(struct rr_pending *p)
{
    g_byte_array_free(p->stream, true);
    if (p->reply) {
        g_byte_array_free(p->reply, true);
    }
    g_free(p);
}

/* ---- Credits ---- */

void rr_client_granted(struct rr_client *c, uint32_t credits)
{
    if (credits < c->grant) {
        c->grant_before = SG_MAX(c->grant, rr_client_allowed(c));
        c->lowered_at = rr_client_now(c);
    }
    c->grant = credits;
    c->replies++;
}

/*
 * A lower grant needs time to arrive, and Calls that went out before need it too.  Who grants zero
 * breaks RPC-02; the requester then may still have one Call open.
 */
uint32_t rr_client_allowed(const struct rr_client *c)
{
    gint64 since = rr_client_now(c) - c->lowered_at;
    uint32_t grant = SG_MAX(c->grant, 1);

    return c->lowered_at && since <= 1000 * (gint64)c->o->quiet_ms ? SG_MAX(grant, c->grant_before)
                                                                   : grant;
}

/* ---- Messages ---- */

static void not_routine(struct rr_client *c)
{
    c->routine = RR_ROUTINE_LINES;
}

/* @work is a Send with or without Invalidate of the STag. */
static bool post_work(struct rr_client *c, enum rr_work work, uint32_t stag, size_t len)
{
    struct rr_post post = { .work = work, .local = &c->codec->send, .len = len, .stag = stag };

    if (c->over || !c->port->ops->post(c->port, &post)) {
        rr_client_note(c, "  not sent: %s", c->over ? "the connection is over" : c->port->why);
        c->over = true;
        return false;
    }
    return true;
}

static bool post(struct rr_client *c, size_t len)
{
    return post_work(c, RR_WORK_SEND, 0, len);
}

bool rr_client_send(struct rr_client *c, struct sg_span octets, const char *what)
{
    not_routine(c);
    rr_client_note(c, "sent: %s, %zu octets", what, octets.len);
    if (octets.len) {
        memmove(c->codec->send.octets, octets.p, octets.len);
    }
    return post(c, octets.len);
}

bool rr_client_send_message(struct rr_client *c, const struct rr_header *h, struct sg_span rest,
                            const char *what)
{
    uint8_t *to = c->codec->send.octets;
    size_t head = rr_header_emit(h, to, c->codec->send.len);

    sg_assert(head && head + rest.len <= c->codec->send.len);
    if (rest.len) {
        memcpy(to + head, rest.p, rest.len);
    }
    not_routine(c);
    rr_client_note(c,
                   "sent: %s, %s, XID 0x%08x, grant %u, %u Write chunks, %s Reply chunk, "
                   "%zu octets",
                   what, rr_proc_name(h->proc), h->xid, h->credit, h->chunks,
                   h->has_reply ? "a" : "no", head + rest.len);
    return post(c, head + rest.len);
}

/* ---- Replies ---- */

/* The Reply does not fit where the client wants it: which chunk was too small, or missing? */
static void judge_room(struct rr_client *c, const struct rr_pending *p)
{
    const struct rr_stream *s = c->codec->stream;

    for (unsigned i = 0; i < SG_MIN(s->items, p->call.chunks); i++) {
        uint64_t room = rr_chunk_octets(&p->call, &p->call.chunk[i]);

        if (p->call.chunk[i].count && room < s->item[i].len) {
            rr_find(rr_client_findings(c), RPC_14,
                    "a result of %u octets; the Write chunk of the Call has %u", s->item[i].len,
                    (unsigned)room);
            return;
        }
    }
    rr_find(rr_client_findings(c), RPC_33,
            "a Reply of %u octets fits neither inline (%u) nor into %s", p->reply->len,
            c->codec->reply_threshold,
            p->call.has_reply ? "the Call's Reply chunk" : "a Reply chunk, which the Call lacks");
}

void rr_client_load(const struct rr_client *c, const struct rr_pending *p)
{
    struct rr_stream *s = c->codec->stream;

    sg_assert(p->reply->len <= sizeof(s->octets));
    s->len = p->reply->len;
    s->full = false;
    memcpy(s->octets, p->reply->data, p->reply->len);
    rr_results_find(s, sg_span_of(p->stream->data, p->stream->len));
}

bool rr_client_build(struct rr_client *c, struct rr_pending *p, size_t *len)
{
    struct rr_responder *r = c->codec;
    enum rr_outcome outcome;

    if (c->over) {
        return false; /* nothing can be written, and that is not the Call's fault */
    }
    r->call = p->call;
    rr_client_load(c, p);
    r->reply.xid = p->call.xid;
    r->reply.vers = RR_VERSION;
    r->reply.credit = c->credits;
    r->reply.reads = 0;
    outcome = rr_scatter(r, len);
    if (outcome == RR_DISCONNECT) {
        rr_client_unreachable(c, RPC_14, "an offered chunk cannot be written");
    } else if (outcome != RR_ANSWER) {
        struct rr_header h = { .xid = p->call.xid,
                               .vers = RR_VERSION,
                               .credit = c->credits,
                               .proc = RR_ERROR,
                               .err = RR_ERR_CHUNK };

        judge_room(c, p);
        rr_client_send_message(c, &h, SG_SPAN_NONE, "refused");
    }
    return outcome == RR_ANSWER;
}

void rr_client_forget(struct rr_client *c, struct rr_pending *p)
{
    g_queue_remove(&c->open, p);
    if (c->victim == p) {
        c->victim = NULL;
    }
    rr_pending_free(p);
}

static bool answer(struct rr_client *c, struct rr_pending *p, enum rr_work work, uint32_t stag)
{
    size_t len;
    bool done = rr_client_build(c, p, &len);

    if (done) {
        rr_client_routine(c, "sent: the Reply, %s, XID 0x%08x, grant %u, %zu octets",
                          rr_proc_name(c->codec->reply.proc), p->call.xid, c->codec->reply.credit,
                          len);
        done = post_work(c, work, stag, len);
    }
    if (done) {
        rr_client_granted(c, c->codec->reply.credit);
    }
    rr_client_forget(c, p);
    return done;
}

bool rr_client_answer(struct rr_client *c, struct rr_pending *p)
{
    return answer(c, p, RR_WORK_SEND, 0);
}

bool rr_client_answer_inv(struct rr_client *c, struct rr_pending *p, uint32_t stag)
{
    not_routine(c);
    rr_client_note(c, "the next Reply invalidates STag 0x%08x", stag);
    return answer(c, p, RR_WORK_SEND_INV, stag);
}

void rr_client_release(struct rr_client *c)
{
    GList *at = c->open.head;

    c->hold = false;
    while (at && !c->over) {
        struct rr_pending *p = at->data;

        at = at->next;
        if (p->reply && p != c->victim) {
            rr_client_answer(c, p);
        }
    }
}
