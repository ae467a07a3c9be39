/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What verbs are told of segments while the host wants the flow (base/host.h).  The callers ask
 * sg_flows() first, so without that nothing is done here.
 *
 * A segment that waits for memory is received once, however often stall.c tries it again.
 */
#include "proto/conn.h"

static bool is_wanted(const struct sg_conn *c, const uint8_t *p)
{
    bool again = p && c->retried && p == c->retried->ulpdu;

    return c->user && c->e->ops->segment && !again;
}

/* The numbers of a queue's messages tell its segments apart, so the queue itself is not told. */
void flow_ddp(const struct sg_conn *c, const struct sg_ddp_hdr *h, size_t octets, const uint8_t *p)
{
    bool wide = c->setup.mpe_draft != SG_MPE_DRAFT_OFF;

    if (is_wanted(c, p)) {
        c->e->ops->segment(
            c->user, &(const struct sg_seg_note){
                         .message = sg_rdmap_op_name(sg_rdmap_ctrl_parse(h->ulp_ctrl, wide).opcode),
                         .sent = !p,
                         .tagged = h->tagged,
                         .last = h->last,
                         .number = h->tagged ? h->stag : h->msn,
                         .at = h->tagged ? h->to : h->mo,
                         .octets = (uint32_t)octets,
                         .ordinal = p ? c->rx.segments : c->tx.segments,
                     });
    }
}

/*
 * Write and Read Request name memory; of its offset the header has the lower half.  A segment that
 * arrives is counted when it has been executed.
 */
void flow_rt(const struct sg_conn *c, const struct sg_rt_hdr *h, size_t octets, const uint8_t *p)
{
    bool tagged = !sg_rt_has_offset(h->type);

    if (is_wanted(c, p)) {
        c->e->ops->segment(c->user, &(const struct sg_seg_note){
                                        .message = sg_rt_type_name(h->type),
                                        .sent = !p,
                                        .tagged = tagged,
                                        .last = h->end,
                                        .number = tagged ? h->buffer_id : h->number,
                                        .at = tagged ? h->buffer_offset : h->data_offset,
                                        .octets = (uint32_t)octets,
                                        .ordinal = p ? c->rx.segments + 1 : c->tx.segments,
                                    });
    }
}
