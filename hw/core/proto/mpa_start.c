/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The MPA startup exchange (RFC 5044 section 7.1, RFC 6581).
 *
 * Each side sends one frame: the initiator a Request, the responder a Reply, both without CRC and
 * Markers.  For each direction they determine who inserts Markers, for both whether CRC is
 * on, and with revision 2 the depth of the Read queues and which message must come first.
 *
 *   CRC       on if either side wants it.
 *   Markers   a side inserts them if the other one's frame says M.
 *   Depths    responder: ORD at most the initiator's IRD.  Initiator: ORD at most the responder's
 *             IRD, IRD raised to the responder's ORD if our limit allows, else Terminate.  The
 *             all-ones value sets no limit.
 *   RTR       with A = 1 the initiator's first FPDU is a message without effect, of a kind that
 *             both support; we prefer Write, then Read, then Send.
 *
 * Faults of form, a wrong key or an unusable revision reset the stream (MPA error 4).  Octets
 * after a Request are a fault, as the initiator must wait; octets after a Reply are FPDUs,
 * because some responders do not wait for ours.
 *
 * For a Request of revision 1, or one that leaves a depth open, verbs get our own limits in place
 * of the peer's depths.
 */
#include "proto/conn.h"

/* A depth that the peer left open does not limit ours. */
static uint16_t limit_depth(uint16_t ours, uint16_t theirs)
{
    return theirs == SG_MPA_DEPTH_UNSET ? ours : SG_MIN(ours, theirs);
}

uint16_t mpa_answer_pdata_max(const struct sg_conn *c)
{
    return mpa_pdata_max(&c->setup.frames->peer);
}

static void put_frame(struct sg_conn *c, const struct sg_mpa_frame *f)
{
    c->setup.frames->out_len = (uint16_t)sg_mpa_frame_emit(f, c->setup.frames->out);
}

bool mpa_make_request(struct sg_conn *c, const struct sg_conn_params *p)
{
    const struct sg_engine_config *cfg = &c->e->config;
    struct sg_mpa_frame f = { .kind = SG_MPA_REQUEST };

    if (p->mpa_rev && p->mpa_rev < c->setup.rev) {
        c->setup.rev = p->mpa_rev;
    }
    c->setup.ird = SG_MIN(p->ird, cfg->max_ird);
    c->setup.ord = SG_MIN(p->ord, cfg->max_ord);
    c->setup.crc = cfg->crc;
    c->setup.rx_markers = cfg->markers;
    f.rev = c->setup.rev;
    f.enhanced = c->setup.rev >= SG_MPA_REV_2;
    f.crc = c->setup.crc;
    f.markers = c->setup.rx_markers;
    if (f.enhanced) {
        c->setup.p2p = cfg->peer_to_peer;
        f.p2p = c->setup.p2p;
        f.rtr = c->setup.p2p ? cfg->rtr_mask : 0;
        f.ird = c->setup.ird;
        f.ord = c->setup.ord;
    }
    f.pd = sg_span_of(p->pdata, p->pdata_len);
    if (p->pdata_len > mpa_pdata_max(&f)) {
        return false;
    }
    put_frame(c, &f);
    return true;
}

/* The kinds of RTR message that we accept, for a Request with A = 1; never none. */
static uint8_t answer_rtr(struct sg_conn *c, uint8_t offered)
{
    const struct sg_engine_config *cfg = &c->e->config;
    uint8_t able = cfg->rtr_mask;

    if ((able & SG_RTR_READ) && !cfg->max_ird) {
        able &= (uint8_t)~SG_RTR_READ;
    }
    if (!able) {
        able = SG_RTR_WRITE;
    }
    if (able & offered) {
        able &= offered;
    }
    if ((able & SG_RTR_READ) && !c->setup.ird) {
        c->setup.ird = 1; /* the message needs a place in the queue */
    }
    return able;
}

static struct sg_mpa_frame answer_frame(struct sg_conn *c, const uint8_t *pdata, uint16_t pdata_len)
{
    const struct sg_mpa_frame *req = &c->setup.frames->peer;
    struct sg_mpa_frame f = { .kind = SG_MPA_REPLY };

    f.rev = req->rev;
    f.enhanced = req->enhanced;
    f.crc = c->setup.crc;
    f.pd = sg_span_of(pdata, pdata_len);
    if (f.enhanced) {
        c->setup.ord = limit_depth(c->setup.ord, req->ird);
        f.p2p = req->p2p;
        f.rtr = req->p2p ? answer_rtr(c, req->rtr) : 0;
        f.ird = req->ord == SG_MPA_DEPTH_UNSET ? SG_MPA_DEPTH_UNSET : c->setup.ird;
        f.ord = req->ird == SG_MPA_DEPTH_UNSET ? SG_MPA_DEPTH_UNSET : c->setup.ord;
    }
    return f;
}

void mpa_make_reply(struct sg_conn *c, const struct sg_conn_params *p)
{
    const struct sg_engine_config *cfg = &c->e->config;
    struct sg_mpa_frame f;

    c->setup.ird = SG_MIN(p->ird, cfg->max_ird);
    c->setup.ord = SG_MIN(p->ord, cfg->max_ord);
    c->setup.rx_markers = cfg->markers;
    f = answer_frame(c, p->pdata, p->pdata_len);
    f.markers = c->setup.rx_markers;
    put_frame(c, &f);
}

void mpa_make_reject(struct sg_conn *c, const uint8_t *pdata, uint16_t pdata_len)
{
    struct sg_mpa_frame f;

    c->setup.ird = c->e->config.max_ird;
    c->setup.ord = c->e->config.max_ord;
    f = answer_frame(c, pdata, pdata_len);
    f.reject = true;
    put_frame(c, &f);
}

/* A whole Request has arrived.  Verbs decide, as soon as they may get it. */
void mpa_take_request(struct sg_conn *c)
{
    const struct sg_engine_config *cfg = &c->e->config;
    const struct sg_mpa_frame *req = &c->setup.frames->peer;
    struct sg_conn_params p = { .mpa_rev = req->rev };

    if (!listener_may_request(c)) {
        return;
    }
    c->setup.rev = req->rev;
    c->setup.crc = cfg->crc || req->crc;
    c->setup.tx_markers = req->markers;
    c->setup.p2p = req->enhanced && req->p2p;
    p.ird = cfg->max_ord;
    p.ord = cfg->max_ird;
    if (req->enhanced && req->ird != SG_MPA_DEPTH_UNSET) {
        p.ird = req->ird;
    }
    if (req->enhanced && req->ord != SG_MPA_DEPTH_UNSET) {
        p.ord = req->ord;
    }
    p.peer_ird = req->enhanced ? req->ird : 0;
    p.peer_ord = req->enhanced ? req->ord : 0;
    p.pdata = req->pd.p;
    p.pdata_len = (uint16_t)req->pd.len;
    conn_set_state(c, CONN_REQUESTED);
    timers_request_here(c);
    c->e->ops->request(c->accept.listener->user, c, &p);
}

/* The consequences of the Reply; SG_TERM_COND_COUNT: agreed. */
static enum sg_term_cond agree(struct sg_conn *c, const struct sg_mpa_frame *rep)
{
    static const uint8_t preferred[] = { SG_RTR_WRITE, SG_RTR_READ, SG_RTR_SEND };
    const struct sg_engine_config *cfg = &c->e->config;
    unsigned common, i;

    c->setup.crc = c->setup.crc || rep->crc;
    c->setup.tx_markers = rep->markers;
    if (!rep->enhanced) {
        return SG_TERM_COND_COUNT;
    }
    c->setup.ord = limit_depth(c->setup.ord, rep->ird);
    if (rep->ord != SG_MPA_DEPTH_UNSET && rep->ord > c->setup.ird) {
        if (rep->ord > cfg->max_ird) {
            return SG_TERM_MPA_IRD; /* RFC 6581 section 9.1 */
        }
        c->setup.ird = rep->ord;
    }
    c->setup.p2p = c->setup.p2p && rep->p2p;
    if (!c->setup.p2p) {
        return SG_TERM_COND_COUNT;
    }
    common = cfg->rtr_mask & rep->rtr;
    if (!rep->ird) {
        common &= ~(unsigned)SG_RTR_READ; /* it would find no buffer */
    }
    for (i = 0; i < SG_ARRAY_SIZE(preferred); i++) {
        if (common & preferred[i]) {
            rdmap_queue_rtr(c, preferred[i]);
            return SG_TERM_COND_COUNT;
        }
    }
    return SG_TERM_MPA_RTR; /* RFC 6581 section 9.2 */
}

/* A whole Reply has arrived. */
static void take_reply(struct sg_conn *c)
{
    const struct sg_mpa_frame *rep = &c->setup.frames->peer;
    struct sg_conn_params p = { .mpa_rev = rep->rev };
    enum sg_term_cond fault;
    void *user = c->user;

    p.pdata = rep->pd.p;
    p.pdata_len = (uint16_t)rep->pd.len;
    p.ird = p.peer_ird = rep->enhanced ? rep->ird : 0;
    p.ord = p.peer_ord = rep->enhanced ? rep->ord : 0;
    if (rep->reject) {
        /* MPA is over; TCP still exists, but our ULP does not need it. */
        conn_set_state(c, CONN_REJECTED);
        conn_detach(c);
        close_due(c);
        c->e->ops->reply(user, SG_CONN_REJECTED, &p);
        return;
    }
    fault = agree(c, rep);
    if (fault != SG_TERM_COND_COUNT) {
        conn_set_state(c, CONN_STREAMING); /* a Terminate is an FPDU */
        conn_detach(c);
        term_raise(c, fault, NULL, 0, NULL);
        c->e->ops->reply(user, SG_CONN_PROTOCOL, &p);
        return;
    }
    p.ird = c->setup.ird; /* the responder's own are kept beside them (RFC 6581 section 9.1) */
    p.ord = c->setup.ord;
    timers_started(c);
    conn_set_state(c, CONN_STREAMING);
    if (c->e->config.first_fpdu_delay_ms) {
        timers_pause(c);
    } else if (c->tx.rtr) {
        conn_signal(c);
    }
    c->e->ops->reply(user, SG_CONN_OK, &p);
}

static const char *unusable(const struct sg_conn *c, const struct sg_mpa_frame *f)
{
    if (f->rev < SG_MPA_REV_1 || f->rev > (c->initiator ? c->setup.rev : c->e->config.mpa_rev)) {
        return "revision";
    }
    if (c->initiator && c->setup.frames->out_len) {
        return "Reply before the Request was sent";
    }
    if (c->initiator && c->setup.rev >= SG_MPA_REV_2 && !f->reject && !f->enhanced) {
        return "unenhanced Reply to an enhanced Request"; /* RFC 6581 section 10 */
    }
    return NULL;
}

static void malformed(struct sg_conn *c, const char *what)
{
    conn_log(c, SG_LOG_PEER_ERROR, "MPA startup: %s", what);
    c->e->stats.protocol_errors++;
    conn_drop(c, SG_CONN_PROTOCOL);
}

size_t mpa_receive(struct sg_conn *c, const uint8_t *p, size_t n)
{
    struct conn_startup *st = c->setup.frames;
    size_t take, used, before;
    enum sg_wire_err err;
    const char *fault;

    if ((c->state != CONN_WAIT_REQUEST && c->state != CONN_WAIT_REPLY) ||
        (c->accept.listener && c->accept.state == ACCEPT_WAITING)) {
        malformed(c, "octets out of turn");
        return n;
    }
    before = st->in_len;
    take = SG_MIN(n, sizeof(st->in) - before);
    memcpy(st->in + before, p, take);
    st->in_len = (uint16_t)(before + take);
    err = sg_mpa_frame_parse(sg_span_of(st->in, st->in_len),
                             c->initiator ? SG_MPA_REPLY : SG_MPA_REQUEST, &st->peer, &used);
    if (err == SG_WIRE_MORE && take == n) {
        return n;
    }
    fault = err != SG_WIRE_OK ? sg_wire_err_name(err) : unusable(c, &st->peer);
    if (!fault && !c->initiator && used - before < n) {
        fault = "octets behind the Request";
    }
    if (fault) {
        malformed(c, fault);
        return n;
    }
    if (!c->initiator) {
        mpa_take_request(c);
        return n;
    }
    take_reply(c);
    if (conn_dead(c)) {
        return n;
    }
    conn_end_startup(c);
    return used - before;
}

/* The accepting Reply has been sent: FPDUs may arrive; ours wait for the first of them. */
static void replied(struct sg_conn *c)
{
    const struct sg_conn_params p = {
        .mpa_rev = c->setup.rev,
        .ird = c->setup.ird,
        .ord = c->setup.ord,
    };

    conn_end_startup(c);
    if (c->close.state == CLOSE_DUE) { /* closed meanwhile; its timer runs */
        conn_set_state(c, CONN_CLOSING);
    } else if (c->setup.p2p) {
        conn_set_state(c, CONN_WAIT_FIRST); /* startup's timer still runs */
    } else {
        timers_started(c);
        conn_set_state(c, CONN_STREAMING);
        c->e->ops->established(c->user, &p);
    }
}

bool mpa_transmit(struct sg_conn *c)
{
    struct conn_startup *st = c->setup.frames;
    struct iovec iov = { .iov_base = st->out, .iov_len = st->out_len };

    if (!conn_hand_over(c, &iov, 1, iov.iov_len)) {
        return false;
    }
    st->out_len = 0;
    if (c->state == CONN_REPLYING) {
        replied(c);
    }
    return true;
}
