/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "exchange.h"

#include <inttypes.h>

/*
 * Is the chunk that came back the offered one, with lengths of what was used of it?  Segments are
 * filled in order.  Revision 07 of the draft leaves unused segments at the end out, RFC 8166
 * returns them with length 0; both are accepted.
 */
static bool same_chunk(const struct rr_header *call, const struct rr_chunk *offered,
                       const struct rr_header *reply, const struct rr_chunk *back)
{
    bool ended = false;

    if (back->count > offered->count) {
        return false;
    }
    for (unsigned i = 0; i < back->count; i++) {
        const struct rr_segment *a = &call->segment[offered->first + i];
        const struct rr_segment *b = &reply->segment[back->first + i];

        if (a->handle != b->handle || a->offset != b->offset || b->length > a->length ||
            (ended && b->length)) {
            return false;
        }
        ended |= b->length < a->length;
    }
    return true;
}

static void check_write_list(struct rr_findings *f, const struct rr_exchange *e)
{
    const struct rr_header *call = e->call, *reply = e->reply;
    bool unused = false;

    if (reply->chunks > call->chunks) {
        rr_find(f, RPC_15, "%u Write chunks came back, %u were offered", reply->chunks,
                call->chunks);
        return;
    }
    if (reply->chunks < call->chunks) {
        rr_find(f, RPC_30, "%u Write chunks came back, %u were offered", reply->chunks,
                call->chunks);
    }
    for (unsigned i = 0; i < reply->chunks; i++) {
        const struct rr_chunk *offered = &call->chunk[i], *back = &reply->chunk[i];
        bool used = rr_chunk_octets(reply, back) > 0;

        if (!offered->count && back->count) {
            rr_find(f, RPC_32, "Write chunk %u was empty and came back with %u segments", i,
                    back->count);
        } else if (!same_chunk(call, offered, reply, back)) {
            rr_find(f, RPC_15, "Write chunk %u came back with other segments", i);
        } else if (used && unused) {
            rr_find(f, RPC_29, "Write chunk %u was used, although one before it was free", i);
        }
        unused |= offered->count && !used;
    }
}

void rr_chunks_check(struct rr_findings *f, const struct rr_exchange *e)
{
    check_write_list(f, e);
    if (e->call->has_reply != e->reply->has_reply) {
        rr_find(f, RPC_34,
                e->call->has_reply ? "the Reply chunk did not come back"
                                   : "a Reply chunk that nobody offered");
    } else if (e->call->has_reply &&
               !same_chunk(e->call, &e->call->reply, e->reply, &e->reply->reply)) {
        rr_find(f, RPC_34, "the Reply chunk came back with other segments");
    }
}

static void check_length(struct rr_findings *f, const struct rr_exchange *e, uint64_t octets,
                         uint32_t length)
{
    if (octets == length) {
        return;
    }
    if (octets == sg_align_up(length, 4)) {
        rr_find(f, RPC_16, "a Write chunk of %" PRIu64 " octets for a result of %u", octets,
                length);
    } else {
        rr_find(f, RPC_15, "a Write chunk of %" PRIu64 " octets for a result of %u", octets,
                length);
    }
}

void rr_results_check(struct rr_findings *f, const struct rr_exchange *e)
{
    const struct rr_header *reply = e->reply;
    uint64_t octets = 0;
    uint32_t length;
    size_t behind;

    for (unsigned i = 0; i < reply->chunks; i++) {
        octets += rr_chunk_octets(reply, &reply->chunk[i]);
    }
    if (octets && e->info && e->info->results == RR_NONE) {
        rr_find(f, RPC_07, "a Write chunk for a procedure without DDP-eligible results");
        return;
    }
    if (!e->call_rpc || !e->reply_rpc ||
        !rr_result_length(e->call_rpc, e->reply_rpc, e->stream, &length, &behind)) {
        return;
    }
    if (octets) {
        check_length(f, e, octets, length);
        if (e->whole && behind) {
            rr_find(f, RPC_11, "%zu octets follow a reduced result that ends the Reply", behind);
        }
    } else if (length && behind && e->call->chunks && e->call->chunk[0].count) {
        rr_find(f, RPC_28, "a result of %u octets is inline, although a Write chunk was offered",
                length);
    }
}

void rr_error_check(struct rr_findings *f, const struct rr_header *h, enum rr_fault fault,
                    const struct rr_header *error)
{
    if (error->vers != h->vers) {
        rr_find(f, RPC_36, "RDMA_ERROR of version %u for a message of version %u", error->vers,
                h->vers);
    }
    if (fault == RR_VERS && (error->err != RR_ERR_VERS || error->low > RR_VERSION ||
                             error->high < RR_VERSION || error->low > error->high)) {
        rr_find(f, RPC_38, "version %u was answered by error %u, versions %u to %u", h->vers,
                error->err, error->low, error->high);
    } else if (fault != RR_OK && fault != RR_VERS && fault != RR_TOO_MANY &&
               error->err != RR_ERR_CHUNK) {
        rr_find(f, RPC_39, "a message %s was answered by error %u", rr_fault_name(fault),
                error->err);
    }
}
