/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies in all forms that the documents know, and at the edges of what fits. */
#include "client_cases.h"

enum { VERIFIER_AT = 12, VERIFIER_MAX = 400, INVALIDATIONS = 3 };

/* Write chunks come back with all segments, or with those that were used. */
static void returned(struct rr_client *c)
{
    struct rr_pending *p = rr_client_victim(c, rr_has_unused_segment,
                                            "Call with a segment that its result leaves unused");

    if (p) {
        c->codec->settings.edition = (enum rr_edition)c->arg;
        rr_client_answer_and_go_on(c, p);
        c->codec->settings.edition = RR_EDITION_RFC;
    }
}

/* Turns over the octets of the result; twice is not at all. */
static void turn_result(struct rr_client *c, struct rr_pending *p)
{
    struct rr_stream *s = c->codec->stream;

    rr_client_load(c, p);
    for (uint32_t i = 0; s->items && i < s->item[0].len; i++) {
        p->reply->data[s->item[0].at + i] ^= 0xff;
    }
}

/*
 * The result goes inline, although a Write chunk was offered: the chunk comes back unused.  Its
 * memory has been written nevertheless, with something else (RPC-31).
 */
static void unused_chunk(struct rr_client *c)
{
    struct rr_pending *p = rr_client_victim(c, rr_has_small_result,
                                            "Call with a Write chunk whose result fits inline");
    struct rr_responder *r = c->codec;
    struct rr_header *h = &c->message;
    size_t len;

    if (!p) {
        return;
    }
    turn_result(c, p);
    if (!rr_client_build(c, p, &len)) {
        rr_client_lost(c);
        return;
    }
    turn_result(c, p);
    *h = r->reply;
    h->proc = RR_MSG;
    h->segments = p->call.segments;
    memcpy(h->chunk, p->call.chunk, sizeof(h->chunk));
    memcpy(h->segment, p->call.segment, sizeof(h->segment));
    for (unsigned i = 0; i < h->segments; i++) {
        h->segment[i].length = 0;
    }
    if (rr_client_send_message(c, h, sg_span_of(p->reply->data, p->reply->len),
                               "a Reply with its result inline")) {
        rr_client_granted(c, h->credit);
        rr_client_forget(c, p);
        rr_client_goes_on(c, false);
    } else {
        rr_client_lost(c);
    }
}

static void spare_reply_chunk(struct rr_client *c)
{
    struct rr_pending *p = rr_client_victim(c, rr_has_spare_reply_chunk,
                                            "Call with a Reply chunk that its Reply does not need");

    if (p) {
        c->codec->likes_long = c->arg;
        rr_client_answer_and_go_on(c, p);
        c->codec->likes_long = false;
    }
}

/*
 * The verifier of the RPC Reply gets the octets that are missing up to the threshold, or a @part of
 * them; returns how many, or 0 if the Reply could not be sent.
 */
static uint32_t fill(struct rr_client *c, struct rr_pending *p, uint32_t part, const char *what)
{
    g_autoptr(GByteArray) stream = g_byte_array_new();
    uint8_t zeros[VERIFIER_MAX] = { 0 }, count[4];
    uint32_t missing;
    size_t len;

    if (!rr_client_build(c, p, &len)) {
        rr_client_lost(c);
        return 0;
    }
    missing = (uint32_t)((c->codec->reply_threshold - len) / part & ~3u);
    sg_assert(missing <= VERIFIER_MAX);
    sg_put_be32(count, missing);
    g_byte_array_append(stream, p->reply->data, VERIFIER_AT + 4);
    g_byte_array_append(stream, count, sizeof(count));
    g_byte_array_append(stream, zeros, missing);
    g_byte_array_append(stream, p->reply->data + VERIFIER_AT + 8, p->reply->len - VERIFIER_AT - 8);
    if (!rr_client_send_message(c, &c->codec->reply, sg_span_of(stream->data, stream->len), what)) {
        rr_client_lost(c);
        return 0;
    }
    rr_client_granted(c, c->codec->reply.credit);
    rr_client_forget(c, p);
    return missing;
}

/*
 * A client that ends the connection for the verifier's sake says nothing of thresholds.  So it gets
 * a Reply that is shorter first, and must still be there when the next Call of that kind comes.
 */
static void full_reply(struct rr_client *c)
{
    static const char kind[] = "Call whose Reply nearly fills the inline threshold";
    struct rr_pending *p = rr_client_victim(c, rr_can_fill, kind);
    uint32_t verifier = p ? fill(c, p, 2, "a Reply that half fills what is left") : 0;
    unsigned connections = c->connections;

    if (!verifier) {
        return;
    }
    p = rr_client_stays(c) ? rr_client_victim(c, rr_can_fill, kind) : NULL;
    if (c->over || c->connections != connections) {
        snprintf(c->verdict->skipped, sizeof(c->verdict->skipped),
                 "the client ends the connection at a verifier of %u octets, below the threshold",
                 verifier);
    } else if (p && fill(c, p, 1, "a Reply that fills the threshold")) {
        rr_client_goes_on(c, false);
    }
}

/*
 * Who sets R takes a Send with Invalidate.  If the next Call's memory is the same again, the client
 * has to register it anew: what is written to it then shows whether it did (RPC-14).
 */
static void invalidated(struct rr_client *c)
{
    struct rr_pending *p;

    if (!rr_may_invalidate(&c->codec->ours, &c->codec->theirs)) {
        snprintf(c->verdict->skipped, sizeof(c->verdict->skipped), "the client does not set R");
        return;
    }
    for (unsigned i = 0; i < INVALIDATIONS; i++) {
        p = rr_client_victim(c, rr_has_result, "Call with a Write chunk");
        if (!p) {
            return;
        }
        if (!rr_client_answer_inv(c, p, p->call.segment[0].handle)) {
            rr_client_lost(c);
            return;
        }
    }
    rr_client_goes_on(c, false);
}

static const struct rr_client_case cases[] = {
    { "client-returned-all", "a Write chunk that comes back with unused segments (06, RFC 8166)",
      RPC_15, returned, .arg = RR_EDITION_RFC },
    { "client-returned-used", "a Write chunk that comes back without unused segments (07)", RPC_15,
      returned, .arg = RR_EDITION_07 },
    { "client-unused-chunk", "a Write chunk that comes back unused, the result inline", RPC_30,
      unused_chunk },
    { "client-spare-inline", "a Reply chunk that comes back unused, the Reply inline", RPC_34,
      spare_reply_chunk, .arg = false },
    { "client-spare-long", "a short Reply in a Reply chunk", RPC_34, spare_reply_chunk,
      .arg = true },
    { "client-full-reply", "a Reply of exactly the inline threshold", RPC_06, full_reply },
    { "client-full-reply-1024", "likewise, with a threshold of 1024 octets", RPC_06, full_reply,
      .fresh = true, .inline_size = RR_SIZE_MIN },
    { "client-invalidation", "with R of both sides, Replies that invalidate the Calls' memory",
      PVT_05, invalidated, .fresh = true, .invalidate = true },
};

const struct rr_client_cases rr_client_cases_reply = { cases, SG_ARRAY_SIZE(cases) };
