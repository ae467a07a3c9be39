/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tagged messages: to which chunk an RDMA Write or an RDMA Read belongs.
 *
 * A Write names an STag and an offset of a Write chunk or of the Reply chunk.  A Read Request names
 * those of a Read chunk as its source; the Response names only the sink, so Requests are remembered
 * until their last Response.  The beginnings of Long Calls and Long Replies are kept, because their
 * RPC headers are there.
 */
#include <inttypes.h>

#include "track_impl.h"

static bool lies_in(const struct rr_segment *s, uint32_t stag, uint64_t to, size_t len)
{
    return s->handle == stag && to >= s->offset && sg_range_ok(to - s->offset, len, s->length);
}

static bool find_written(struct rr_track *t, enum rr_dir dir, uint32_t stag, uint64_t to,
                         size_t len, struct spot *spot)
{
    /* Newest first: an STag of an abandoned Call may be in use again. */
    for (GList *at = t->open.tail; at; at = at->prev) {
        struct rr_transaction *x = at->data;

        for (unsigned i = 0; x->caller != dir && i < x->call->segments; i++) {
            if (lies_in(&x->call->segment[i], stag, to, len)) {
                *spot = (struct spot){ x, i, to - x->call->segment[i].offset };
                return true;
            }
        }
    }
    return false;
}

static bool find_read(struct rr_track *t, enum rr_dir caller, uint32_t stag, uint64_t to,
                      size_t len, struct spot *spot)
{
    for (GList *at = t->open.tail; at; at = at->prev) {
        struct rr_transaction *x = at->data;

        for (unsigned i = 0; x->caller == caller && i < x->call->reads; i++) {
            if (lies_in(&x->call->read[i].segment, stag, to, len)) {
                *spot = (struct spot){ x, i, to - x->call->read[i].segment.offset };
                return true;
            }
        }
    }
    return false;
}

/* Keeps octets of a long message that lie in its beginning. */
static void keep(uint8_t **kept, uint64_t at, struct sg_span octets)
{
    if (at >= RR_LONG_KEPT || !octets.len) {
        return;
    }
    if (!*kept) {
        *kept = g_malloc0(RR_LONG_KEPT);
    }
    memcpy(*kept + at, octets.p, SG_MIN(octets.len, RR_LONG_KEPT - at));
}

static void count(struct rr_place *place, size_t octets)
{
    place->octets += octets;
    place->segments++;
}

void rr_place_write(struct rr_track *t, enum rr_dir dir, const struct sg_ddp_hdr *ddp,
                    struct sg_span payload)
{
    struct spot spot;

    if (!payload.len || !find_written(t, dir, ddp->stag, ddp->to, payload.len, &spot)) {
        return;
    }
    count(&spot.t->written[spot.index], payload.len);
    if (spot.t->call->has_reply && spot.index >= spot.t->call->reply.first) {
        uint64_t before = 0;

        for (unsigned i = spot.t->call->reply.first; i < spot.index; i++) {
            before += spot.t->call->segment[i].length;
        }
        keep(&spot.t->long_reply, before + spot.offset, payload);
    }
}

void rr_place_read_request(struct rr_track *t, enum rr_dir dir, struct sg_span payload)
{
    struct sg_read_req request;

    if (sg_read_req_parse(payload, &request) != SG_WIRE_OK || !request.size) {
        return;
    }
    if (t->way[dir].reads->len == RR_READ_REQUESTS_MAX) {
        g_array_remove_index(t->way[dir].reads, 0);
    }
    g_array_append_val(t->way[dir].reads, request);
}

/* The octets of a Long Call that a Read Response carries. */
static void keep_call(struct spot *spot, struct sg_span payload)
{
    const struct rr_header *call = spot->t->call;
    uint64_t before = 0;

    if (call->read[spot->index].position || call->proc != RR_NOMSG) {
        return;
    }
    for (unsigned i = 0; i < spot->index; i++) {
        before += call->read[i].position ? 0 : call->read[i].segment.length;
    }
    keep(&spot->t->stream, before + spot->offset, payload);
    spot->t->stream_len += payload.len;
}

void rr_place_read_response(struct rr_track *t, enum rr_dir dir, const struct sg_ddp_hdr *ddp,
                            struct sg_span payload)
{
    GArray *reads = t->way[!dir].reads;
    struct spot spot;

    for (guint i = 0; i < reads->len; i++) {
        const struct sg_read_req *r = &g_array_index(reads, struct sg_read_req, i);

        if (r->sink_stag == ddp->stag && ddp->to >= r->sink_to &&
            sg_range_ok(ddp->to - r->sink_to, payload.len, r->size)) {
            if (find_read(t, dir, r->src_stag, r->src_to + (ddp->to - r->sink_to), payload.len,
                          &spot)) {
                count(&spot.t->read[spot.index], payload.len);
                keep_call(&spot, payload);
            }
            if (ddp->last) {
                g_array_remove_index(reads, i);
            }
            return;
        }
    }
}

static void check_chunk(struct rr_findings *f, const struct rr_transaction *x,
                        const struct rr_chunk *offered, const struct rr_chunk *back,
                        enum rr_rule rule)
{
    uint64_t returned = rr_chunk_octets(x->reply, back), placed = 0;

    for (unsigned i = 0; i < offered->count; i++) {
        placed += x->written[offered->first + i].octets;
    }
    /* What was placed into a chunk that comes back unused is nobody's business (RPC-31). */
    if (!returned || placed == returned) {
        return;
    }
    if (rule == RPC_15 && placed == sg_align_up(returned, 4)) {
        rule = RPC_16;
    }
    rr_find(f, rule, "%" PRIu64 " octets were placed into a chunk that came back with %" PRIu64,
            placed, returned);
}

void rr_place_check(struct rr_findings *f, const struct rr_transaction *x)
{
    const struct rr_header *call = x->call, *reply = x->reply;

    for (unsigned i = 0; i < SG_MIN(call->chunks, reply->chunks); i++) {
        check_chunk(f, x, &call->chunk[i], &reply->chunk[i], RPC_15);
    }
    if (call->has_reply && reply->has_reply) {
        check_chunk(f, x, &call->reply, &reply->reply, RPC_34);
    }
}
