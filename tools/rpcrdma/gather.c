/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "responder_impl.h"

/* Reads one chunk: all segments with this Position, in the order of the list. */
static enum rr_outcome fetch(struct rr_responder *r, uint32_t position, size_t at)
{
    const struct rr_header *h = &r->call;

    for (unsigned i = 0; i < h->reads; i++) {
        const struct rr_segment *s = &h->read[i].segment;
        struct rr_post post = {
            .work = RR_WORK_READ,
            .local = &r->in,
            .at = at,
            .len = s->length,
            .stag = s->handle,
            .offset = s->offset,
        };

        if (h->read[i].position != position || !s->length) {
            continue;
        }
        if (!r->port->ops->post(r->port, &post)) {
            return RR_DISCONNECT;
        }
        at += s->length;
    }
    return RR_ANSWER;
}

/* The smallest Position above @position; false: there is none. */
static bool next_position(const struct rr_header *h, uint32_t *position)
{
    bool found = false;
    uint32_t best = UINT32_MAX;

    for (unsigned i = 0; i < h->reads; i++) {
        if (h->read[i].position > *position && h->read[i].position <= best) {
            best = h->read[i].position;
            found = true;
        }
    }
    *position = best;
    return found;
}

/* Makes room for a chunk at its Position, and reads it. */
static enum rr_outcome insert(struct rr_responder *r, uint32_t position)
{
    uint64_t octets = rr_position_octets(&r->call, position), room = sg_align_up(octets, 4);

    if (position % 4 || position > r->in_len || room > RR_STREAM_ROOM - r->in_len) {
        return RR_SAY_CHUNK;
    }
    memmove(r->in.octets + position + room, r->in.octets + position, r->in_len - position);
    memset(r->in.octets + position + octets, 0, room - octets);
    r->in_len += room;
    return fetch(r, position, position);
}

enum rr_outcome rr_gather(struct rr_responder *r, struct sg_span payload)
{
    uint64_t first = rr_position_octets(&r->call, 0);
    enum rr_outcome outcome = RR_ANSWER;
    uint32_t position = 0;

    /* Position 0 is for the whole message of RDMA_NOMSG, and only for that. */
    if ((r->call.proc == RR_NOMSG) != (first > 0) || first > RR_STREAM_ROOM ||
        payload.len > RR_STREAM_ROOM) {
        return RR_SAY_CHUNK;
    }
    if (payload.len) {
        memcpy(r->in.octets, payload.p, payload.len);
    }
    r->in_len = payload.len + first;
    if (first) {
        outcome = fetch(r, 0, 0);
    }
    while (outcome == RR_ANSWER && next_position(&r->call, &position)) {
        outcome = insert(r, position);
    }
    return outcome;
}
