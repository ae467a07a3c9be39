/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "message.h"

#include <inttypes.h>

struct sg_span rr_payload(struct sg_span message, const struct rr_header *h, enum rr_fault fault)
{
    if (fault != RR_OK || h->proc != RR_MSG) {
        return SG_SPAN_NONE;
    }
    return sg_span_from(message, h->len);
}

static void check_form(struct rr_findings *f, const struct rr_message *m)
{
    if (m->fault == RR_VERS) {
        rr_find(f, RPC_23, "version %u", m->h->vers);
    } else if (m->fault != RR_OK && m->fault != RR_TOO_MANY) {
        rr_find(f, RPC_21, "a message of %zu octets is %s", m->len, rr_fault_name(m->fault));
    } else if (m->h->proc == RR_MSGP) {
        rr_find(f, RPC_41, "RDMA_MSGP");
    } else if (m->h->proc == RR_DONE) {
        rr_find(f, RPC_42, "RDMA_DONE");
    }
}

/* Octets that a Read chunk takes out of the stream, up to this Position. */
static uint64_t removed_before(const struct rr_header *h, uint32_t position)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < h->reads; i++) {
        uint32_t at = h->read[i].position;
        bool first = true;

        for (unsigned j = 0; j < i; j++) {
            first &= h->read[j].position != at;
        }
        if (first && at && at < position) {
            sum += sg_align_up(rr_position_octets(h, at), 4);
        }
    }
    return sum;
}

static void check_positions(struct rr_findings *f, const struct rr_message *m)
{
    const struct rr_header *h = m->h;
    bool zero = false, other = false;

    for (unsigned i = 0; i < h->reads; i++) {
        uint32_t at = h->read[i].position;
        uint64_t before = removed_before(h, at);

        zero |= at == 0;
        other |= at != 0;
        if (at % 4) {
            rr_find(f, RPC_12, "Position %u is no multiple of 4", at);
        } else if (at && h->proc == RR_MSG && (at < before || at - before > m->payload.len)) {
            rr_find(f, RPC_12, "Position %u is outside of a stream of %zu octets", at,
                    m->payload.len);
        }
    }
    if (h->proc == RR_MSG && zero) {
        rr_find(f, RPC_18, "RDMA_MSG with a chunk at Position 0");
    } else if (h->proc == RR_NOMSG && !zero && other) {
        rr_find(f, RPC_18, "RDMA_NOMSG without a chunk at Position 0");
    } else if (h->proc == RR_NOMSG && !zero) {
        rr_find(f, RPC_24, "RDMA_NOMSG without a Read list");
    } else if (zero && rr_position_octets(h, 0) % 4) {
        rr_find(f, RPC_20, "a Long Call of %" PRIu64 " octets", rr_position_octets(h, 0));
    }
}

static void check_reply(struct rr_findings *f, const struct rr_message *m)
{
    const struct rr_header *h = m->h;
    uint64_t octets = h->has_reply ? rr_chunk_octets(h, &h->reply) : 0;

    if (h->reads) {
        rr_find(f, RPC_27, "%u segments in the Read list of a Reply", h->reads);
    }
    if (h->proc == RR_NOMSG && !octets) {
        rr_find(f, RPC_24, "RDMA_NOMSG without octets in a Reply chunk");
    } else if (h->proc == RR_NOMSG && octets % 4) {
        rr_find(f, RPC_20, "a Long Reply of %" PRIu64 " octets", octets);
    }
}

static void check_length(struct rr_findings *f, const struct rr_message *m)
{
    enum rr_rule rule = RPC_43;

    if (m->len <= m->threshold) {
        return;
    }
    if (m->fault == RR_OK && m->h->proc == RR_MSG) {
        rule = m->kind == RR_IS_CALL ? RPC_17 : m->h->has_reply ? RPC_19 : RPC_43;
    }
    rr_find(f, rule, "a Send of %zu octets; the threshold is %u", m->len, m->threshold);
}

static void check_xid(struct rr_findings *f, const struct rr_message *m)
{
    const uint8_t *xid = sg_span_get(m->payload, 0, 4);

    if (m->h->proc != RR_MSG) {
        return;
    }
    if (!xid) {
        rr_find(f, RPC_22, "RDMA_MSG without an RPC message");
    } else if (sg_get_be32(xid) != m->h->xid) {
        rr_find(f, RPC_22, "XID 0x%08x in the header, 0x%08x in the RPC message", m->h->xid,
                sg_get_be32(xid));
    }
}

void rr_message_check(struct rr_findings *f, const struct rr_message *m)
{
    check_form(f, m);
    check_length(f, m);
    if (m->fault == RR_SHORT) {
        return;
    }
    if (m->kind != RR_IS_CALL && m->h->credit == 0) {
        rr_find(f, RPC_02, "a grant of zero credits");
    }
    if (m->fault != RR_OK || m->h->proc > RR_NOMSG) {
        return;
    }
    check_xid(f, m);
    if (m->kind == RR_IS_CALL) {
        check_positions(f, m);
    } else {
        check_reply(f, m);
    }
}

/* ---- Chunks of a Call and its arguments ---- */

static bool has_item(const struct rr_call_info *info, uint32_t position)
{
    for (unsigned i = 0; i < info->items; i++) {
        if (info->item[i].position == position) {
            return true;
        }
    }
    return false;
}

static void check_eligible(struct rr_findings *f, const struct rr_header *h,
                           const struct rr_call_info *info)
{
    static const struct {
        enum rr_rule rule;
        const char *what;
    } stays[RR_STAYS] = {
        [RR_COUNT] = { RPC_08, "the count of an argument" },
        [RR_FLAG] = { RPC_09, "the flag of optional data" },
        [RR_UNION] = { RPC_10, "a union" },
    };

    for (unsigned i = 0; i < h->reads; i++) {
        uint32_t at = h->read[i].position;

        if (!at || at % 4 || has_item(info, at)) {
            continue;
        }
        if (at == info->moved) {
            rr_find(f, stays[info->stays].rule, "%s is in the Read chunk at Position %u",
                    stays[info->stays].what, at);
            return;
        }
        if (info->arguments == RR_NONE || (info->items && (info->complete || info->missing))) {
            rr_find(f, RPC_07, "no DDP-eligible argument is at Position %u", at);
            return;
        }
    }
}

static void check_items(struct rr_findings *f, const struct rr_header *h,
                        const struct rr_call_info *info, struct sg_span stream)
{
    for (unsigned i = 0; i < info->items; i++) {
        const struct rr_item *item = &info->item[i];
        uint64_t octets = rr_position_octets(h, item->position);

        if (!item->reduced) {
            continue;
        }
        if (octets != item->length && octets != sg_align_up(item->length, 4)) {
            rr_find(f, RPC_13, "a Read chunk of %" PRIu64 " octets for an item of %u", octets,
                    item->length);
        }
        if (info->last && i + 1 == info->items && stream.len > item->behind) {
            rr_find(f, RPC_11, "%zu octets follow a reduced item that ends the Call",
                    stream.len - item->behind);
        }
    }
}

static void check_room(struct rr_findings *f, const struct rr_header *h,
                       const struct rr_call_info *info, uint32_t reply_threshold)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < h->chunks; i++) {
        most = SG_MAX(most, rr_chunk_octets(h, &h->chunk[i]));
    }
    if (most && most < info->result_max) {
        rr_find(f, RPC_14, "the Call asks for %" PRIu64 " octets, its Write chunk holds %" PRIu64,
                info->result_max, most);
    } else if (!most && info->result_max + RR_HEADER_MIN > reply_threshold &&
               (!h->has_reply || rr_chunk_octets(h, &h->reply) < info->result_max)) {
        rr_find(f, RPC_33, "the Call asks for %" PRIu64 " octets, above the threshold of %u",
                info->result_max, reply_threshold);
    }
}

void rr_arguments_check(struct rr_findings *f, const struct rr_header *h,
                        const struct rr_call_info *info, struct sg_span stream,
                        uint32_t reply_threshold)
{
    if (!rr_found(f, RPC_12)) {
        check_eligible(f, h, info);
    }
    check_items(f, h, info, stream);
    check_room(f, h, info, reply_threshold);
}
