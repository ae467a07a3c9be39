/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>

#include "track_impl.h"
#include "wire/terminate.h"

struct rr_track *rr_track_new(const struct rr_track_ops *ops, void *opaque,
                              const struct rr_startup *startup)
{
    struct rr_track *t = g_new0(struct rr_track, 1);

    t->ops = ops;
    t->opaque = opaque;
    t->startup = *startup;
    for (unsigned dir = 0; dir < 2; dir++) {
        t->way[dir].message = g_byte_array_new();
        t->way[dir].reads = g_array_new(false, false, sizeof(struct sg_read_req));
    }
    g_queue_init(&t->open);
    return t;
}

static void free_transaction(struct rr_transaction *x)
{
    g_free(x->call);
    g_free(x->read);
    g_free(x->written);
    g_free(x->stream);
    g_free(x->long_reply);
    g_free(x);
}

static void close_transaction(struct rr_track *t, struct rr_transaction *x)
{
    t->ops->transaction(t->opaque, x);
    g_queue_remove(&t->open, x);
    t->way[x->caller].open--;
    free_transaction(x);
}

static struct rr_transaction *find_open(struct rr_track *t, enum rr_dir caller, uint32_t xid)
{
    for (GList *at = t->open.tail; at; at = at->prev) {
        struct rr_transaction *x = at->data;

        if (x->caller == caller && x->call->xid == xid) {
            return x;
        }
    }
    return NULL;
}

static void report(struct rr_track *t, const struct rr_findings *f)
{
    if (f->count) {
        t->ops->findings(t->opaque, f);
    }
}

static struct rr_message message_of(const struct rr_track *t, enum rr_dir dir,
                                    const struct rr_header *h, enum rr_fault fault,
                                    struct sg_span octets, enum rr_kind kind)
{
    return (struct rr_message){
        .h = h,
        .fault = fault,
        .kind = kind,
        .len = octets.len,
        .payload = rr_payload(octets, h, fault),
        .threshold = t->startup.threshold[dir],
    };
}

/* ---- Calls ---- */

static void check_credits(struct rr_track *t, enum rr_dir dir, struct rr_findings *f)
{
    const struct rr_way *w = &t->way[dir];
    /* Whoever grants zero has broken RPC-02; the requester may still go on. */
    uint32_t most = SG_MAX(SG_MAX(w->grant, w->grant_before), 1);

    if (t->incomplete) {
        return;
    }
    if (!w->granted && w->open > 1) {
        rr_find(f, RPC_05, "%u Calls are open before the first Reply", w->open);
    } else if (w->granted && w->open > most) {
        rr_find(f, RPC_01, "%u Calls are open, %u credits were granted", w->open, most);
    }
}

static void on_call(struct rr_track *t, enum rr_dir dir, const struct rr_header *h,
                    enum rr_fault fault, struct sg_span octets)
{
    struct rr_message m = message_of(t, dir, h, fault, octets, RR_IS_CALL);
    struct rr_transaction *x = find_open(t, dir, h->xid);

    /* The same Call again: the requester has given up the first one. */
    if (x) {
        close_transaction(t, x);
    }
    if (g_queue_get_length(&t->open) == RR_OPEN_MAX) {
        close_transaction(t, g_queue_peek_head(&t->open));
    }
    x = g_new0(struct rr_transaction, 1);
    x->caller = dir;
    x->call = g_memdup2(h, sizeof(*h));
    x->fault = fault;
    x->call_len = octets.len;
    x->name = "";
    x->read = g_new0(struct rr_place, h->reads);
    x->written = g_new0(struct rr_place, h->segments);
    x->answers = t->way[!dir].messages;
    if (m.payload.len) {
        x->stream = g_memdup2(m.payload.p, m.payload.len);
        x->stream_len = m.payload.len;
    }
    x->stream_whole = h->proc == RR_NOMSG ? rr_position_octets(h, 0) : m.payload.len;
    g_queue_push_tail(&t->open, x);
    t->way[dir].calls = true;
    t->way[dir].open++;
    rr_message_check(&x->findings, &m);
    check_credits(t, dir, &x->findings);
}

/* ---- Replies ---- */

/* What is known of the two RPC messages when the transaction is over. */
struct known {
    struct rr_rpc call, reply;
    struct rr_call_info info;
    bool has_call, has_reply;
    struct sg_span stream; /* of the Reply */
    bool whole;
};

static struct sg_span call_stream(const struct rr_transaction *x)
{
    if (!x->stream || x->stream_len != x->stream_whole) {
        return SG_SPAN_NONE;
    }
    return sg_span_of(x->stream, x->call->proc == RR_NOMSG ? SG_MIN(x->stream_len, RR_LONG_KEPT)
                                                           : x->stream_len);
}

static void know_call(struct known *k, const struct rr_transaction *x)
{
    struct sg_span stream = call_stream(x);

    k->has_call = rr_rpc_parse(stream, &k->call) && k->call.type == RR_CALL;
    if (k->has_call) {
        rr_call_describe(&k->call, stream, x->call, &k->info);
    }
    if (stream.len != x->stream_whole) {
        k->info.missing = k->info.last = false;
    }
}

static void know_reply(struct known *k, const struct rr_transaction *x, struct sg_span payload)
{
    uint64_t octets = x->reply->has_reply ? rr_chunk_octets(x->reply, &x->reply->reply) : 0;

    k->stream = payload;
    k->whole = true;
    if (x->reply->proc == RR_NOMSG && x->long_reply) {
        k->stream = sg_span_of(x->long_reply, (size_t)SG_MIN(octets, RR_LONG_KEPT));
        k->whole = octets <= RR_LONG_KEPT;
    }
    k->has_reply = rr_rpc_parse(k->stream, &k->reply) && k->reply.type == RR_REPLY;
}

/* RPC-22 of a message that a chunk held. */
static void check_long_xid(struct rr_findings *f, const struct rr_header *h, bool known,
                           uint32_t xid)
{
    if (h->proc == RR_NOMSG && known && xid != h->xid) {
        rr_find(f, RPC_22, "XID 0x%08x in the header, 0x%08x in the long RPC message", h->xid, xid);
    }
}

static void check_exchange(struct rr_track *t, struct rr_transaction *x, struct sg_span payload)
{
    struct rr_findings *f = &x->findings;
    struct known k = { .whole = false };
    struct rr_exchange e = { .call = x->call, .reply = x->reply };

    know_call(&k, x);
    know_reply(&k, x, payload);
    e.stream = k.stream;
    e.whole = k.whole;
    e.call_rpc = k.has_call ? &k.call : NULL;
    e.reply_rpc = k.has_reply ? &k.reply : NULL;
    e.info = k.has_call ? &k.info : NULL;
    check_long_xid(f, x->call, k.has_call, k.call.xid);
    check_long_xid(f, x->reply, k.has_reply, k.reply.xid);
    if (k.has_call) {
        rr_arguments_check(f, x->call, &k.info, call_stream(x), t->startup.threshold[!x->caller]);
    }
    rr_chunks_check(f, &e);
    if (!t->incomplete) {
        unsigned before = f->count;

        rr_results_check(f, &e);
        /* A chunk with a wrong length is one breach, whichever way it shows. */
        if (f->count == before && !rr_found(f, RPC_15) && !rr_found(f, RPC_34)) {
            rr_place_check(f, x);
        }
    }
}

static bool offers(const struct rr_header *call, uint32_t stag)
{
    for (unsigned i = 0; i < call->reads; i++) {
        if (call->read[i].segment.handle == stag) {
            return true;
        }
    }
    for (unsigned i = 0; i < call->segments; i++) {
        if (call->segment[i].handle == stag) {
            return true;
        }
    }
    return false;
}

static void check_invalidation(const struct rr_track *t, struct rr_findings *f,
                               const struct rr_transaction *x, uint32_t stag)
{
    if (!rr_may_invalidate(&t->startup.client, &t->startup.server)) {
        rr_find(f, PVT_05, "STag 0x%x is invalidated, but not both sides set R", stag);
    } else if (!x || !offers(x->call, stag)) {
        rr_find(f, PVT_04, "STag 0x%x is invalidated, which this XID did not offer", stag);
    }
}

static bool is_bad(enum rr_fault fault)
{
    return fault != RR_OK && fault != RR_TOO_MANY;
}

static void take_grant(struct rr_track *t, enum rr_dir caller, const struct rr_header *h)
{
    struct rr_way *w = &t->way[caller];

    w->grant_before = w->granted ? w->grant : h->credit;
    w->grant = h->credit;
    w->granted = true;
}

/* A Send that answers @x: a Reply, also a bad one, or an RDMA_ERROR. */
static void on_answer(struct rr_track *t, enum rr_dir dir, struct rr_transaction *x,
                      const struct rr_message *m, struct sg_span octets, const uint32_t *stag)
{
    char name[RR_NAME_MAX] = "";
    struct known k = { .whole = false };

    x->reply = m->h;
    x->reply_len = octets.len;
    x->invalidates = stag != NULL;
    x->invalidated = stag ? *stag : 0;
    rr_message_check(&x->findings, m);
    if (stag) {
        check_invalidation(t, &x->findings, x, *stag);
    }
    if (m->kind == RR_IS_ERROR) {
        rr_error_check(&x->findings, x->call, x->fault, m->h);
    } else if (is_bad(x->fault)) {
        rr_find(&x->findings, RPC_36, "a Call %s got a Reply", rr_fault_name(x->fault));
    } else if (x->fault == RR_OK && m->fault == RR_OK) {
        check_exchange(t, x, m->payload);
    }
    if (is_bad(m->fault)) {
        t->way[dir].bad_reply = (struct last_xid){ true, m->h->xid };
    } else {
        take_grant(t, x->caller, m->h);
    }
    know_call(&k, x);
    g_strlcpy(name, k.info.name, sizeof(name));
    x->name = name;
    close_transaction(t, x);
}

/* ---- Messages that belong to no open Call ---- */

static bool answers(const struct last_xid *last, const struct rr_header *h)
{
    return last->seen && last->xid == h->xid;
}

static void on_lone_error(struct rr_track *t, enum rr_dir dir, const struct rr_message *m,
                          struct rr_findings *f)
{
    struct rr_way *peer = &t->way[!dir];
    bool requester = t->way[dir].calls || dir == RR_OUT;

    if (answers(&peer->runt, m->h)) {
        rr_find(f, RPC_35, "a message of fewer than 28 octets was answered");
    } else if (answers(&peer->done, m->h)) {
        rr_find(f, RPC_42, "RDMA_DONE was answered");
    } else if (answers(&peer->error, m->h)) {
        rr_find(f, RPC_26, "an RDMA_ERROR was answered by another");
    } else if (answers(&peer->bad_reply, m->h)) {
        rr_find(f, RPC_37, "a bad Reply was answered");
    } else if (requester) {
        rr_find(f, RPC_25, "RDMA_ERROR from a requester");
        t->way[dir].error = (struct last_xid){ true, m->h->xid };
    } else {
        rr_find(f, RPC_36, "RDMA_ERROR for XID 0x%08x, which no open Call has", m->h->xid);
    }
}

static void on_runt(struct rr_track *t, enum rr_dir dir, struct sg_span octets)
{
    struct rr_findings f = { 0 };
    const uint8_t *xid = sg_span_get(octets, 0, 4);

    rr_find(&f, RPC_21, "a message of %zu octets, shorter than any header", octets.len);
    t->way[dir].runt = (struct last_xid){ xid != NULL, xid ? sg_get_be32(xid) : 0 };
    report(t, &f);
}

/* Does the message answer an open Call of the other side? */
static bool is_reply(const struct rr_track *t, const struct rr_header *h, enum rr_fault fault,
                     struct sg_span octets, const struct rr_transaction *x)
{
    struct sg_span payload = rr_payload(octets, h, fault);
    const uint8_t *type = sg_span_get(payload, 4, 4);

    if (type && sg_get_be32(type) <= RR_REPLY) {
        return sg_get_be32(type) == RR_REPLY;
    }
    if (fault == RR_OK && h->proc == RR_NOMSG) {
        return x ? !h->reads || h->has_reply : t->incomplete && !h->reads;
    }
    return x != NULL;
}

static void on_send(struct rr_track *t, enum rr_dir dir, struct sg_span octets,
                    const uint32_t *stag)
{
    static struct rr_header h;
    enum rr_fault fault = rr_header_parse(octets, &h);
    struct rr_transaction *x;
    struct rr_message m;
    struct rr_findings f = { 0 };

    t->way[dir].messages++;
    if (fault == RR_SHORT) {
        on_runt(t, dir, octets);
        return;
    }
    x = find_open(t, !dir, h.xid);
    if (h.proc == RR_ERROR) {
        m = message_of(t, dir, &h, fault, octets, RR_IS_ERROR);
        if (x) {
            on_answer(t, dir, x, &m, octets, stag);
            return;
        }
        if (!t->incomplete) {
            on_lone_error(t, dir, &m, &f);
        }
    } else if (is_reply(t, &h, fault, octets, x)) {
        m = message_of(t, dir, &h, fault, octets, RR_IS_REPLY);
        if (x) {
            on_answer(t, dir, x, &m, octets, stag);
            return;
        }
        rr_message_check(&f, &m);
    } else if (h.proc == RR_DONE && fault == RR_OK) {
        m = message_of(t, dir, &h, fault, octets, RR_IS_CALL);
        rr_message_check(&f, &m);
        t->way[dir].done = (struct last_xid){ true, h.xid };
    } else {
        on_call(t, dir, &h, fault, octets);
    }
    if (stag && !t->incomplete) {
        check_invalidation(t, &f, NULL, *stag);
    }
    report(t, &f);
}

/* ---- Segments ---- */

static void on_terminate(struct rr_track *t, enum rr_dir dir, struct sg_span payload)
{
    const struct sg_term_row *none = sg_term_row(SG_TERM_UNTAGGED_NO_BUFFER);
    const struct sg_term_row *small = sg_term_row(SG_TERM_UNTAGGED_TOO_LONG);
    const struct rr_way *w = &t->way[!dir];
    struct rr_findings f = { 0 };
    struct sg_term term;

    if (sg_term_parse(payload, &term) != SG_WIRE_OK || term.layer != SG_TERM_DDP ||
        term.etype != SG_TERM_DDP_UNTAGGED || (term.has_ddp && term.ddp.qn != SG_QN_SEND)) {
        return;
    }
    if (term.code == none->code && dir == RR_OUT) {
        rr_find(&f, RPC_04, "the requester had no receive for a message");
    } else if (term.code == none->code && w->open <= SG_MAX(w->grant, 1)) {
        rr_find(&f, RPC_03, "the responder had no receive; %u Calls are open, %u were granted",
                w->open, w->granted ? w->grant : 1);
    } else if (term.code == small->code && term.has_len &&
               term.ddp.mo + (uint64_t)term.seg_len <= RR_SIZE_MIN + SG_DDP_UNTAGGED_LEN) {
        rr_find(&f, RPC_06, "a message of at most 1024 octets was too long for its receive");
    }
    report(t, &f);
}

static void on_untagged(struct rr_track *t, enum rr_dir dir, const struct sg_ddp_hdr *ddp,
                        uint8_t opcode, struct sg_span payload)
{
    const struct sg_rdmap_op *op = sg_rdmap_op(opcode);
    struct rr_way *w = &t->way[dir];
    bool rtr = dir == RR_OUT && !w->first_seen && t->startup.request.p2p;

    w->first_seen = true;
    if (ddp->mo != w->message->len || w->message->len + payload.len > RR_MESSAGE_MAX) {
        g_byte_array_set_size(w->message, 0);
        rr_track_incomplete(t);
        return;
    }
    g_byte_array_append(w->message, payload.p, (guint)payload.len);
    if (!ddp->last) {
        return;
    }
    if (!(rtr && !w->message->len)) {
        on_send(t, dir, sg_span_of(w->message->data, w->message->len),
                op && op->invalidates ? &ddp->ulp_word : NULL);
    }
    g_byte_array_set_size(w->message, 0);
}

void rr_track_segment(struct rr_track *t, enum rr_dir dir, const struct sg_ddp_hdr *ddp,
                      uint8_t opcode, struct sg_span payload)
{
    if (ddp->tagged && opcode == SG_OP_WRITE) {
        rr_place_write(t, dir, ddp, payload);
    } else if (ddp->tagged && opcode == SG_OP_READ_RESP) {
        rr_place_read_response(t, dir, ddp, payload);
    } else if (!ddp->tagged && opcode == SG_OP_READ_REQ) {
        rr_place_read_request(t, dir, payload);
    } else if (!ddp->tagged && opcode == SG_OP_TERMINATE) {
        on_terminate(t, dir, payload);
    } else if (!ddp->tagged && ddp->qn == SG_QN_SEND) {
        on_untagged(t, dir, ddp, opcode, payload);
    }
}

void rr_track_incomplete(struct rr_track *t)
{
    t->incomplete = true;
}

void rr_track_closed(struct rr_track *t, enum rr_dir dir)
{
    t->way[dir].closed = true;
}

/* A bad Call that the responder neither answered nor closed the connection for. */
static void check_unanswered(struct rr_track *t, struct rr_transaction *x)
{
    const struct rr_way *responder = &t->way[!x->caller];

    if (is_bad(x->fault) && !t->incomplete && !responder->closed &&
        responder->messages > x->answers) {
        rr_find(&x->findings, RPC_36, "a Call %s got no answer", rr_fault_name(x->fault));
    }
}

void rr_track_free(struct rr_track *t)
{
    struct rr_transaction *x;

    while ((x = g_queue_peek_head(&t->open))) {
        struct known k = { .whole = false };

        check_unanswered(t, x);
        know_call(&k, x);
        x->name = k.info.name;
        close_transaction(t, x);
    }
    for (unsigned dir = 0; dir < 2; dir++) {
        g_byte_array_free(t->way[dir].message, true);
        g_array_free(t->way[dir].reads, true);
    }
    g_free(t);
}
