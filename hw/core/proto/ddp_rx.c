/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inbound DDP segments (RFC 5041 section 7.1): the checks before any placement.
 *
 * Each check is a function that returns SEG_OK or a row of the Terminate table.
 * The two lists below have the order that the RFCs require: DDP version, queue and
 * sequence number first, then RDMAP version, opcode, and whether the opcode is allowed there.
 * Checks that depend on memory (STag, bounds, rights, MO against the buffer) are made by verbs at
 * the moment of placement (rdmap_rx.c).
 *
 * TCP delivers in order, so on each queue only the next MSN is correct.  Segments of one message
 * may have any MO inside the buffer, and tagged and untagged messages may be interleaved.  The
 * last segment determines the length of an untagged message: MO plus payload.
 */
#include "proto/conn.h"

typedef int ddp_check(struct sg_conn *c, struct ddp_seg *s);

static int check_tagged_version(struct sg_conn *c, struct ddp_seg *s)
{
    (void)c;
    return s->h.version == SG_DDP_VERSION ? SEG_OK : SG_TERM_TAGGED_VERSION;
}

static int check_untagged_version(struct sg_conn *c, struct ddp_seg *s)
{
    (void)c;
    return s->h.version == SG_DDP_VERSION ? SEG_OK : SG_TERM_UNTAGGED_VERSION;
}

/* Queue 3 belongs to the responses of extensions. */
static int check_qn(struct sg_conn *c, struct ddp_seg *s)
{
    unsigned last = c->setup.mpe_draft || c->setup.rfc7306 ? SG_QN_RESPONSE : SG_QN_TERMINATE;

    return s->h.qn <= last ? SEG_OK : SG_TERM_UNTAGGED_BAD_QN;
}

static int check_msn(struct sg_conn *c, struct ddp_seg *s)
{
    return s->h.msn == c->msn.rx[s->h.qn] ? SEG_OK : SG_TERM_UNTAGGED_BAD_MSN;
}

/* Queue 3 has a buffer for each outstanding response. */
static int check_buffer(struct sg_conn *c, struct ddp_seg *s)
{
    return s->h.qn != SG_QN_RESPONSE || requests_oldest_untagged(c) ? SEG_OK
                                                                    : SG_TERM_UNTAGGED_NO_REQUEST;
}

/* The draft defines five bits of opcode and one reserved; elsewhere it is four and two. */
static int check_rdmap_version(struct sg_conn *c, struct ddp_seg *s)
{
    struct sg_rdmap_ctrl ctrl =
        sg_rdmap_ctrl_parse(s->h.ulp_ctrl, c->setup.mpe_draft != SG_MPE_DRAFT_OFF);

    s->opcode = ctrl.opcode;
    return ctrl.version == SG_RDMAP_VERSION ? SEG_OK : SG_TERM_RDMAP_VERSION;
}

static int check_opcode(struct sg_conn *c, struct ddp_seg *s)
{
    const bool spoken[] = {
        [SG_SPEC_RFC5040] = true,
        [SG_SPEC_RFC7306] = c->setup.rfc7306,
        [SG_SPEC_MPE] = c->setup.mpe_draft != SG_MPE_DRAFT_OFF,
    };

    s->op = sg_rdmap_op(s->opcode);
    return s->op && spoken[s->op->spec] ? SEG_OK : SG_TERM_OPCODE;
}

static int check_opcode_place(struct sg_conn *c, struct ddp_seg *s)
{
    (void)c;
    if (s->op->tagged != s->h.tagged || (!s->h.tagged && s->op->qn != s->h.qn)) {
        return SG_TERM_OPCODE_T_OR_QN;
    }
    return SEG_OK;
}

/* Octets of each buffer of a queue whose buffers hold one header. */
static uint32_t buffer_size(const struct sg_conn *c, uint32_t qn)
{
    switch (qn) {
    case SG_QN_REQUEST:
        return c->setup.mpe_draft ? SG_MPE_REQ_LEN_MAX
               : c->setup.rfc7306 ? SG_ATOMIC_REQ_LEN
                                  : SG_READ_REQ_LEN;
    case SG_QN_RESPONSE:
        return c->setup.mpe_draft ? SG_MPE_RESP_LEN_MAX : SG_ATOMIC_RESP_LEN;
    default:
        return SG_ULPDU_FIELD_MAX;
    }
}

/*
 * The buffers of queues 1 to 3 hold one header each; a message there is one segment.  Requests of
 * the draft may have any MO (-02 appendix A); as they are one segment, it has no effect.
 */
static int check_header_message(struct sg_conn *c, struct ddp_seg *s)
{
    bool any_mo = s->op->spec == SG_SPEC_MPE && s->h.qn == SG_QN_REQUEST;

    if (s->h.qn == SG_QN_SEND) {
        return SEG_OK;
    }
    if (s->h.mo && !any_mo) {
        return SG_TERM_UNTAGGED_BAD_MO;
    }
    if (s->n > buffer_size(c, s->h.qn)) {
        return SG_TERM_UNTAGGED_TOO_LONG;
    }
    return s->h.last && s->n >= s->op->hdr_len && (s->op->payload || s->n == s->op->hdr_len)
               ? SEG_OK
               : SG_TERM_MESSAGE_LENGTH;
}

/* The request queue has one buffer for each request that IRD allows (RFC 5040 section 6.1). */
static int check_ird(struct sg_conn *c, struct ddp_seg *s)
{
    return s->h.qn != SG_QN_REQUEST || c->peer.count < c->setup.ird ? SEG_OK
                                                                    : SG_TERM_UNTAGGED_IRD_EXCEEDED;
}

static ddp_check *const tagged_checks[] = {
    check_tagged_version, check_rdmap_version, check_opcode, check_opcode_place, rdmap_place,
};

static ddp_check *const untagged_checks[] = {
    check_untagged_version,
    check_qn,
    check_msn,
    check_buffer,
    check_rdmap_version,
    check_opcode,
    check_opcode_place,
    check_header_message,
    check_ird,
    rdmap_place,
};

static void fault(struct sg_conn *c, const struct ddp_seg *s, int cond)
{
    if (!conn_dead(c)) {
        term_raise(c, (enum sg_term_cond)cond, &s->h, s->seg_len, s->has_read ? &s->read : NULL);
    }
}

void ddp_receive(struct sg_conn *c, const uint8_t *p, size_t n)
{
    ddp_check *const *checks;
    size_t count, i, hlen;
    struct ddp_seg s;
    int cond;

    if (sg_ddp_parse(sg_span_of(p, n), &s.h) != SG_WIRE_OK) {
        conn_log(c, SG_LOG_PEER_ERROR, "ULPDU of %zu octets has no DDP header", n);
        term_raise(c, SG_TERM_DDP_SHORT, NULL, 0, NULL);
        return;
    }
    hlen = sg_ddp_len(s.h.tagged);
    s.p = p + hlen;
    s.n = (uint32_t)(n - hlen);
    s.seg_len = (uint16_t)n;
    s.has_read = false;
    if (sg_flows(c->e->host)) {
        flow_ddp(c, &s.h, s.n, p);
    }
    checks = s.h.tagged ? tagged_checks : untagged_checks;
    count = s.h.tagged ? SG_ARRAY_SIZE(tagged_checks) : SG_ARRAY_SIZE(untagged_checks);
    for (i = 0; i < count; i++) {
        cond = checks[i](c, &s);
        if (cond == SEG_LATER) {
            c->rx.begun -= !s.op->multi; /* it will be counted again */
            stall_begin(c, p, n);
            return;
        }
        if (cond == SEG_CLOSED) {
            close_owner_left(c);
            return;
        }
        if (cond != SEG_OK) {
            fault(c, &s, cond);
            return;
        }
    }
}
