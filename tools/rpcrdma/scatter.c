/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "responder_impl.h"

/* Writes octets of the Reply's stream into an offered chunk; notes how many each segment got. */
static enum rr_outcome place(struct rr_responder *r, const struct rr_chunk *chunk, size_t at,
                             size_t len)
{
    for (unsigned i = chunk->first; i < chunk->first + chunk->count && len; i++) {
        const struct rr_segment *s = &r->call.segment[i];
        struct rr_post post = {
            .work = RR_WORK_WRITE,
            .local = &r->out,
            .at = at,
            .len = SG_MIN(len, s->length),
            .stag = s->handle,
            .offset = s->offset,
        };

        if (!r->port->ops->post(r->port, &post)) {
            return RR_DISCONNECT;
        }
        r->reply.segment[i].length = (uint32_t)post.len;
        at += post.len;
        len -= post.len;
    }
    return RR_ANSWER;
}

/* The lists of the Call come back, with lengths of zero until something is placed. */
static void return_lists(struct rr_responder *r)
{
    struct rr_header *h = &r->reply;

    h->chunks = r->call.chunks;
    memcpy(h->chunk, r->call.chunk, sizeof(h->chunk));
    h->has_reply = r->call.has_reply;
    h->reply = r->call.reply;
    h->segments = r->call.segments;
    memcpy(h->segment, r->call.segment, sizeof(h->segment));
    for (unsigned i = 0; i < h->segments; i++) {
        h->segment[i].length = 0;
    }
}

static void drop_tail(const struct rr_header *h, struct rr_chunk *c)
{
    while (c->count && !h->segment[c->first + c->count - 1].length) {
        c->count--;
    }
}

/* Revision 07 of the draft leaves out the segments that were not used. */
static void drop_unused(struct rr_header *h)
{
    for (unsigned i = 0; i < h->chunks; i++) {
        drop_tail(h, &h->chunk[i]);
    }
    if (h->has_reply) {
        drop_tail(h, &h->reply);
    }
}

/* Places the eligible results; *reduced: a bit for each item that left the stream. */
static enum rr_outcome place_items(struct rr_responder *r, unsigned *reduced)
{
    enum rr_outcome outcome = RR_ANSWER;

    for (unsigned i = 0; i < SG_MIN(r->stream->items, r->call.chunks); i++) {
        const struct rr_reducible *item = &r->stream->item[i];
        const struct rr_chunk *chunk = &r->call.chunk[i];

        /* An empty chunk asks for an inline result; an empty result leaves its chunk unused. */
        if (!chunk->count || !item->len || outcome != RR_ANSWER) {
            continue;
        }
        if (rr_chunk_octets(&r->call, chunk) < item->len) {
            return RR_SAY_CHUNK;
        }
        outcome = place(r, chunk, item->at, item->len);
        *reduced |= 1u << i;
    }
    return outcome;
}

/* Takes the placed items and their pads out of the stream. */
static void reduce(struct rr_stream *s, unsigned reduced)
{
    for (unsigned i = s->items; i-- > 0;) {
        size_t behind = s->item[i].at + sg_align_up(s->item[i].len, 4);

        if (reduced & 1u << i) {
            memmove(s->octets + s->item[i].at, s->octets + behind, s->len - behind);
            s->len -= behind - s->item[i].at;
        }
    }
}

enum rr_outcome rr_scatter(struct rr_responder *r, size_t *len)
{
    struct rr_header *h = &r->reply;
    struct rr_stream *s = r->stream;
    enum rr_outcome outcome;
    unsigned reduced = 0;
    size_t head;

    return_lists(r);
    outcome = place_items(r, &reduced);
    if (outcome != RR_ANSWER) {
        return outcome;
    }
    reduce(s, reduced);
    h->proc = RR_MSG;
    head = rr_header_emit(h, r->send.octets, r->send.len);
    if (head && (head + s->len > r->reply_threshold || (r->likes_long && h->has_reply))) {
        if (!h->has_reply || rr_chunk_octets(&r->call, &r->call.reply) < s->len) {
            return RR_SAY_CHUNK;
        }
        outcome = place(r, &r->call.reply, 0, s->len);
        h->proc = RR_NOMSG;
        s->len = 0;
    }
    if (r->settings.edition == RR_EDITION_07) {
        drop_unused(h);
    }
    head = rr_header_emit(h, r->send.octets, r->send.len);
    /* The lists alone may be too long to come back. */
    if (outcome == RR_ANSWER && (!head || head + s->len > r->reply_threshold)) {
        return RR_SAY_CHUNK;
    }
    if (outcome == RR_ANSWER) {
        memcpy(r->send.octets + head, s->octets, s->len);
    }
    *len = head + s->len;
    return outcome;
}
