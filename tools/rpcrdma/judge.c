/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What comes back, and the rules that it keeps or breaks. */
#include <inttypes.h>

#include "exchange.h"
#include "session.h"

enum { STRAYS_MAX = 8 }; /* messages that answer nothing, while we wait for one */

static struct rr_findings *findings(struct rr_session *s)
{
    return &s->verdict->findings;
}

/* ---- One message ---- */

/* A long Reply is in the Reply chunk, which is the loan that was offered last. */
static void keep_stream(struct rr_session *s, struct sg_span payload)
{
    const struct rr_header *h = &s->reply;

    s->body_len = 0;
    s->has_stream = s->fault == RR_OK && h->proc <= RR_NOMSG;
    if (!s->has_stream) {
        return;
    }
    if (h->proc == RR_MSG) {
        s->body_len = SG_MIN(payload.len, sizeof(s->body));
        if (s->body_len) {
            memcpy(s->body, payload.p, s->body_len);
        }
    } else if (h->has_reply && s->call.has_reply && s->loans) {
        const struct rr_region *r = &s->loan[s->loans - 1];

        s->body_len = SG_MIN(rr_chunk_octets(h, &h->reply), r->len);
        memcpy(s->body, r->octets, s->body_len);
    }
}

/* How much each Write chunk and the Reply chunk got. */
static void note_chunks(struct rr_session *s)
{
    const struct rr_header *h = &s->reply;

    for (unsigned i = 0; i < h->chunks; i++) {
        rr_note(s, "  Write chunk %u: %u segments, %" PRIu64 " octets", i, h->chunk[i].count,
                rr_chunk_octets(h, &h->chunk[i]));
    }
    if (h->has_reply) {
        rr_note(s, "  Reply chunk: %u segments, %" PRIu64 " octets", h->reply.count,
                rr_chunk_octets(h, &h->reply));
    }
}

static void note_message(struct rr_session *s, size_t len)
{
    const struct rr_header *h = &s->reply;

    if (s->fault == RR_SHORT) {
        rr_note(s, "came: %zu octets, %s", len, rr_fault_name(s->fault));
    } else if (h->proc == RR_ERROR && s->fault == RR_OK) {
        rr_note(s, "came: RDMA_ERROR, XID 0x%08x, version %u, %s (%u to %u), grant %u", h->xid,
                h->vers, h->err == RR_ERR_VERS ? "ERR_VERS" : "ERR_CHUNK", h->low, h->high,
                h->credit);
    } else {
        rr_note(s,
                "came: %s, XID 0x%08x, %s, grant %u, %u Write chunks, %s Reply chunk, %zu octets",
                rr_proc_name(h->proc), h->xid, rr_fault_name(s->fault), h->credit, h->chunks,
                h->has_reply ? "a" : "no", len);
        if (s->fault == RR_OK) {
            note_chunks(s);
        }
    }
}

/* Was that STag lent for that Call? */
static bool in_call(const struct rr_session *s, uint32_t stag, uint32_t xid)
{
    for (unsigned i = 0; i < s->loans; i++) {
        if (s->loan[i].access && s->loan[i].stag == stag && s->loan_xid[i] == xid) {
            return true;
        }
    }
    return false;
}

static void check_invalidation(struct rr_session *s, const struct rr_event *e)
{
    if (!e->invalidated) {
        return;
    }
    rr_note(s, "  it invalidated STag 0x%08x", e->stag);
    if (!rr_may_invalidate(&s->ours, &s->theirs)) {
        rr_find(findings(s), PVT_05, "a Send with Invalidate; R is %d here and %d there",
                s->ours.remote_inv, s->theirs.remote_inv);
    }
    if (e->stag && !in_call(s, e->stag, s->reply.xid)) {
        rr_find(findings(s), PVT_04, "STag 0x%08x does not belong to the Call with XID 0x%08x",
                e->stag, s->reply.xid);
    }
}

enum rr_heard rr_hear(struct rr_session *s, unsigned ms)
{
    struct rr_event event;
    enum rr_event_kind kind = s->port->ops->poll(s->port, ms, &event);
    struct rr_message m;

    s->has_stream = false;
    if (kind == RR_EVENT_NONE) {
        rr_note(s, "nothing came");
        return RR_HEARD_NOTHING;
    }
    if (kind == RR_EVENT_CLOSED) {
        rr_note(s, "the connection ended%s%s", s->port->why[0] ? ": " : "", s->port->why);
        s->ended = true;
        return RR_HEARD_END;
    }
    s->fault = rr_header_parse(event.octets, &s->reply);
    m = (struct rr_message){
        .h = &s->reply,
        .fault = s->fault,
        .kind = s->reply.proc == RR_ERROR ? RR_IS_ERROR : RR_IS_REPLY,
        .len = event.octets.len,
        .payload = rr_payload(event.octets, &s->reply, s->fault),
        .threshold = s->reply_threshold,
    };
    note_message(s, event.octets.len);
    rr_message_check(findings(s), &m);
    check_invalidation(s, &event);
    keep_stream(s, m.payload);
    if (s->fault != RR_SHORT) {
        s->granted = s->reply.credit;
    }
    if (!s->port->ops->repost(s->port, event.slot)) {
        rr_trouble(s, "cannot post a receive: %s", s->port->why);
    }
    return RR_HEARD_MESSAGE;
}

/* ---- The Reply of a sound Call ---- */

static uint64_t capacity(const struct rr_session *s, unsigned chunk)
{
    return rr_chunk_octets(&s->call, &s->call.chunk[chunk]);
}

/* The pad's place behind the result in the chunk still has what was there before. */
static void check_pad(struct rr_session *s, unsigned chunk, uint64_t len)
{
    uint64_t end = SG_MIN(sg_align_up(len, 4), capacity(s, chunk)), at = 0;
    const struct rr_chunk *c = &s->call.chunk[chunk];

    for (unsigned i = c->first; i < c->first + c->count; i++) {
        const struct rr_segment *segment = &s->call.segment[i];

        for (uint64_t n = len; n < end; n++) {
            if (n >= at && n - at < segment->length &&
                *(const uint8_t *)(uintptr_t)(segment->offset + n - at) != RR_FILL) {
                rr_find(findings(s), RPC_16, "octet %" PRIu64 " of Write chunk %u was written", n,
                        chunk);
                return;
            }
        }
        at += segment->length;
    }
}

static bool keeps_unused(const struct rr_header *reply, const struct rr_chunk *back)
{
    return back->count && !reply->segment[back->first + back->count - 1].length;
}

/* One of the two forms of a returned chunk, if the user asked for one. */
static void check_edition(struct rr_session *s)
{
    const struct rr_header *call = &s->call, *reply = &s->reply;

    for (unsigned i = 0; i < SG_MIN(call->chunks, reply->chunks) && !s->o->any_edition; i++) {
        if (s->o->edition == RR_EDITION_07) {
            if (keeps_unused(reply, &reply->chunk[i])) {
                rr_find(findings(s), RPC_15, "Write chunk %u has a segment that was not used", i);
            }
        } else if (reply->chunk[i].count < call->chunk[i].count) {
            rr_find(findings(s), RPC_15, "Write chunk %u came back with %u of %u segments", i,
                    reply->chunk[i].count, call->chunk[i].count);
        }
    }
}

static void check_lists(struct rr_session *s)
{
    struct rr_exchange e = { .call = &s->call, .reply = &s->reply };

    rr_chunks_check(findings(s), &e);
    check_edition(s);
    for (unsigned i = 0; i < SG_MIN(s->call.chunks, s->reply.chunks); i++) {
        check_pad(s, i, rr_chunk_octets(&s->reply, &s->reply.chunk[i]));
    }
}

/* The RPC message in the Reply. */
static bool check_rpc(struct rr_session *s)
{
    struct sg_span stream = sg_span_of(s->body, s->body_len);

    if (!s->has_stream || !rr_rpc_parse(stream, &s->rpc) || s->rpc.type != RR_REPLY) {
        rr_find(findings(s), s->rule, "a sound Call got something that is no RPC Reply");
        return false;
    }
    if (s->rpc.xid != s->reply.xid) {
        rr_find(findings(s), RPC_22, "XID 0x%08x in the header, 0x%08x in the RPC message",
                s->reply.xid, s->rpc.xid);
    }
    if (!s->rpc.accepted) {
        rr_find(findings(s), s->rule, "the server refused the Call: its RPC Reply says why");
        return false;
    }
    return true;
}

/* Waits for a message with the XID of the newest Call. */
static enum rr_heard hear_answer(struct rr_session *s, uint32_t xid)
{
    enum rr_heard heard;

    for (unsigned i = 0; i < STRAYS_MAX; i++) {
        heard = rr_hear(s, s->o->reply_ms);
        if (heard != RR_HEARD_MESSAGE || (s->fault != RR_SHORT && s->reply.xid == xid)) {
            return heard;
        }
        rr_find(findings(s), RPC_22, "a message with XID 0x%08x, which answers no open Call",
                s->reply.xid);
    }
    return RR_HEARD_NOTHING;
}

bool rr_judge_reply(struct rr_session *s)
{
    if (s->fault != RR_OK) {
        return false; /* rr_hear() has found that */
    }
    if (s->reply.proc == RR_ERROR) {
        rr_find(findings(s), s->rule, "a sound Call was answered with RDMA_ERROR, %s",
                s->reply.err == RR_ERR_VERS ? "ERR_VERS" : "ERR_CHUNK");
        return false;
    }
    check_lists(s);
    return check_rpc(s);
}

bool rr_expect_reply(struct rr_session *s)
{
    switch (hear_answer(s, s->xid)) {
    case RR_HEARD_NOTHING:
        rr_find(findings(s), s->rule, "a sound Call got no answer within %u ms", s->o->reply_ms);
        return false;
    case RR_HEARD_END:
        rr_find(findings(s), s->rule, "the connection ended instead of a Reply");
        return false;
    default:
        return rr_judge_reply(s);
    }
}

/* ---- Messages that are not sound ---- */

static void check_error(struct rr_session *s, enum rr_rule rule, uint32_t vers, enum rr_err err)
{
    const struct rr_header *h = &s->reply;

    if (s->fault != RR_OK || h->proc != RR_ERROR) {
        rr_find(findings(s), rule, "answered with %s instead of RDMA_ERROR", rr_proc_name(h->proc));
        return;
    }
    if (h->vers != vers) {
        rr_find(findings(s), RPC_36, "RDMA_ERROR has version %u, the message had %u", h->vers,
                vers);
    }
    if (h->err != err) {
        rr_find(findings(s), rule, "answered with %s",
                h->err == RR_ERR_VERS ? "ERR_VERS" : "ERR_CHUNK");
    } else if (err == RR_ERR_VERS &&
               (h->low > RR_VERSION || h->high < RR_VERSION || h->low > h->high)) {
        rr_find(findings(s), RPC_38, "ERR_VERS says versions %u to %u", h->low, h->high);
    }
}

void rr_expect_error(struct rr_session *s, enum rr_rule rule, uint32_t xid, uint32_t vers,
                     enum rr_err err)
{
    switch (hear_answer(s, xid)) {
    case RR_HEARD_NOTHING:
        rr_find(findings(s), rule, "no answer within %u ms", s->o->reply_ms);
        break;
    case RR_HEARD_END:
        rr_find(findings(s), rule, "the connection ended instead of an RDMA_ERROR");
        return;
    default:
        check_error(s, rule, vers, err);
        break;
    }
    rr_null(s);
}

/* A bit for each eligible result that is in its Write chunk. */
static unsigned reduced_results(const struct rr_session *s)
{
    unsigned reduced = 0;

    for (unsigned i = 0; i < SG_MIN(s->reply.chunks, RR_STREAM_ITEMS); i++) {
        reduced |= rr_chunk_octets(&s->reply, &s->reply.chunk[i]) ? 1u << i : 0;
    }
    return reduced;
}

/* An RPC Reply that reports no success: of RPC, or of the program. */
static bool is_refusal(struct rr_session *s)
{
    struct sg_span stream = sg_span_of(s->body, s->body_len);
    struct rr_results results;
    const char *why;

    if (!s->has_stream || !rr_rpc_parse(stream, &s->rpc) || s->rpc.type != RR_REPLY) {
        return false;
    }
    return !s->rpc.accepted ||
           (!s->o->service->read(s->o->service, &s->request, stream, s->rpc.body,
                                 reduced_results(s), &results, &why) &&
            results.refused);
}

void rr_expect_refusal(struct rr_session *s, enum rr_rule rule, bool may_end)
{
    switch (hear_answer(s, s->xid)) {
    case RR_HEARD_NOTHING:
        rr_find(findings(s), rule, "no answer within %u ms%s", s->o->reply_ms,
                may_end ? ", and the connection has not ended" : "");
        break;
    case RR_HEARD_END:
        if (!may_end) {
            rr_find(findings(s), rule, "the connection ended instead of an RDMA_ERROR");
        }
        break;
    default:
        if (s->fault == RR_OK && s->reply.proc == RR_ERROR) {
            check_error(s, rule, RR_VERSION, RR_ERR_CHUNK);
        } else if (!is_refusal(s)) {
            rr_find(findings(s), rule, "answered with %s that reports success",
                    rr_proc_name(s->reply.proc));
        }
        break;
    }
}

void rr_expect_silence(struct rr_session *s, enum rr_rule rule)
{
    switch (rr_hear(s, s->o->quiet_ms)) {
    case RR_HEARD_MESSAGE:
        rr_find(findings(s), rule, "answered with %s",
                s->fault == RR_SHORT ? "a short message" : rr_proc_name(s->reply.proc));
        break;
    case RR_HEARD_END:
        rr_find(findings(s), rule, "the connection ended");
        break;
    default:
        rr_null(s);
        break;
    }
}

bool rr_null(struct rr_session *s)
{
    if (!rr_begin(s, (struct rr_request){ .want = RR_WANT_NULL })) {
        return false;
    }
    return rr_send(s) && rr_expect_reply(s);
}

/* ---- Results ---- */

bool rr_results(struct rr_session *s, struct rr_results *results)
{
    struct sg_span stream = sg_span_of(s->body, s->body_len);
    unsigned reduced = reduced_results(s);
    const char *why = "";

    if (!s->o->service->read(s->o->service, &s->request, stream, s->rpc.body, reduced, results,
                             &why)) {
        if (results->refused) {
            return rr_trouble(s, "%s", why);
        }
        rr_find(findings(s), RPC_11, "%s", why);
        return false;
    }
    if (results->end != s->body_len) {
        rr_find(findings(s), RPC_11, "%zu octets follow the results", s->body_len - results->end);
    }
    for (unsigned i = 0; i < results->count; i++) {
        uint64_t octets = reduced & 1u << i ? rr_chunk_octets(&s->reply, &s->reply.chunk[i]) : 0;

        if (octets && octets != results->result[i].len) {
            rr_find(findings(s), octets == sg_align_up(results->result[i].len, 4) ? RPC_16 : RPC_15,
                    "Write chunk %u came back with %" PRIu64 " octets for a result of %u", i,
                    octets, results->result[i].len);
        }
    }
    return true;
}

bool rr_result_octets(struct rr_session *s, const struct rr_results *results, unsigned n,
                      uint8_t *to, uint32_t len)
{
    const struct rr_result *r = &results->result[n];
    const struct rr_chunk *c = &s->reply.chunk[n];

    if (n >= results->count || r->len != len) {
        return false;
    }
    if (!(reduced_results(s) & 1u << n)) {
        const uint8_t *octets = sg_span_get(sg_span_of(s->body, s->body_len), r->at, len);

        if (octets) {
            memcpy(to, octets, len);
        }
        return octets != NULL;
    }
    if (n >= s->call.chunks || c->count > s->call.chunk[n].count ||
        rr_chunk_octets(&s->reply, c) != len) {
        return false;
    }
    /* rr_chunks_check() has compared the segments with the offered ones: those are ours. */
    for (unsigned i = 0; i < c->count; i++) {
        const struct rr_segment *mine = &s->call.segment[s->call.chunk[n].first + i];
        uint32_t part = s->reply.segment[c->first + i].length;

        if (part > mine->length) {
            return false;
        }
        memcpy(to, (const uint8_t *)(uintptr_t)mine->offset, part);
        to += part;
    }
    return true;
}
