/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Setup on RDMA/TCP of 2000: one Send of one segment in each direction (docs/wire-2000.md, "Client
 * protocol").  Request: the client's depths.  Accept: the server's, its ORD not above the client's
 * IRD.  The Connection ID and each direction's first number are taken from these messages.
 *
 * A fault of form resets the stream.  Octets behind a Request are one, since the client must wait;
 * octets behind an Accept are segments.
 */
#include "base/crc32m.h"
#include "proto/rdma_tcp/rt.h"

/* A seed gives the same numbers on machines of either byte order. */
static uint64_t random_number(struct sg_conn *c, size_t octets)
{
    uint8_t p[sizeof(uint64_t)] = { 0 };

    c->e->host->ops->random(c->e->host->opaque, p, octets);
    return sg_get_le64(p);
}

uint16_t rt_pdata_max(const struct sg_conn *c)
{
    (void)c;
    return SG_RT_PDATA_MAX;
}

/* Our first message: its number, too, is chosen here. */
static void put_frame(struct sg_conn *c, uint8_t kind, const uint8_t *pdata, uint16_t pdata_len)
{
    const struct sg_rt_setup s = {
        .version = SG_RT_SETUP_VERSION,
        .kind = kind,
        .ird = c->setup.ird,
        .ord = c->setup.ord,
    };
    struct sg_rt_hdr h = {
        .version = SG_RT_VERSION,
        .type = SG_RT_SEND,
        .res = SG_RT_RES_SETUP,
        .begin = true,
        .end = true,
        .clen = SG_RT_SETUP_WORDS,
        .conn_id = c->rt->conn_id,
    };
    uint8_t *out = c->setup.frames->out;
    size_t seg_len = SG_RT_HDR_MIN + SG_RT_SETUP_WORDS * SG_RT_WORD + (size_t)pdata_len, at;

    h.number = (uint32_t)random_number(c, sizeof(h.number));
    c->rt->tx.next = h.number + 1;
    at = sg_rt_hdr_emit(&h, seg_len, out);
    at += sg_rt_setup_emit(&s, out + at);
    if (pdata_len) {
        memcpy(out + at, pdata, pdata_len);
    }
    at = seg_len + sg_rt_tail_emit(out + seg_len, seg_len, sg_crc32m(0, out, seg_len));
    c->setup.frames->out_len = (uint16_t)at;
}

bool rt_make_request(struct sg_conn *c, const struct sg_conn_params *p)
{
    const struct sg_engine_config *cfg = &c->e->config;

    if (p->pdata_len > SG_RT_PDATA_MAX) {
        return false;
    }
    c->setup.ird = SG_MIN(p->ird, cfg->max_ird);
    c->setup.ord = SG_MIN(p->ord, cfg->max_ord);
    c->rt->conn_id = random_number(c, sizeof(c->rt->conn_id));
    put_frame(c, SG_RT_REQUEST, p->pdata, p->pdata_len);
    return true;
}

void rt_make_reply(struct sg_conn *c, const struct sg_conn_params *p)
{
    const struct sg_engine_config *cfg = &c->e->config;

    c->setup.ird = SG_MIN(p->ird, cfg->max_ird);
    c->setup.ord = SG_MIN(SG_MIN(p->ord, cfg->max_ord), c->setup.frames->rt_peer.ird);
    put_frame(c, SG_RT_ACCEPT, p->pdata, p->pdata_len);
}

void rt_make_reject(struct sg_conn *c, const uint8_t *pdata, uint16_t pdata_len)
{
    c->setup.ird = c->e->config.max_ird;
    c->setup.ord = c->e->config.max_ord;
    put_frame(c, SG_RT_REJECT, pdata, pdata_len);
}

/* What the peer's message says; the private data stay in setup.frames. */
static struct sg_conn_params params_of(const struct sg_conn *c)
{
    const struct sg_rt_setup *peer = &c->setup.frames->rt_peer;
    size_t head = SG_RT_HDR_MIN + SG_RT_SETUP_WORDS * SG_RT_WORD;

    return (struct sg_conn_params){
        .ird = peer->ird,
        .ord = peer->ord,
        .peer_ird = peer->ird,
        .peer_ord = peer->ord,
        .pdata = c->setup.frames->in + head,
        .pdata_len = (uint16_t)(sg_get_be16(c->setup.frames->in + 2) - head),
    };
}

void rt_take_request(struct sg_conn *c)
{
    struct sg_conn_params p;

    if (!listener_may_request(c)) {
        return;
    }
    p = params_of(c);
    conn_set_state(c, CONN_REQUESTED);
    timers_request_here(c);
    c->e->ops->request(c->accept.listener->user, c, &p);
}

static void take_reply(struct sg_conn *c)
{
    const struct sg_rt_setup *peer = &c->setup.frames->rt_peer;
    struct sg_conn_params p = params_of(c);
    void *user = c->user;

    if (peer->kind == SG_RT_REJECT) {
        conn_set_state(c, CONN_REJECTED);
        conn_detach(c);
        close_due(c);
        c->e->ops->reply(user, SG_CONN_REJECTED, &p);
        return;
    }
    c->setup.ord = SG_MIN(c->setup.ord, peer->ird);
    p.ird = c->setup.ird;
    p.ord = c->setup.ord;
    timers_started(c);
    conn_set_state(c, CONN_STREAMING);
    c->e->ops->reply(user, SG_CONN_OK, &p);
}

static void malformed(struct sg_conn *c, const char *what)
{
    conn_log(c, SG_LOG_PEER_ERROR, "setup: %s", what);
    c->e->stats.protocol_errors++;
    conn_drop(c, SG_CONN_PROTOCOL);
}

/* What is wrong with a whole segment as the peer's message of setup; NULL: nothing. */
static const char *unusable(struct sg_conn *c, const struct sg_rt_seg *seg)
{
    struct sg_rt_setup *peer = &c->setup.frames->rt_peer;
    const struct sg_rt_hdr *h = &seg->h;

    if (h->version != SG_RT_VERSION) {
        return "version";
    }
    if (h->type != SG_RT_SEND || !(h->res & SG_RT_RES_SETUP) || !h->begin || !h->end ||
        h->data_offset) {
        return "the first segment is no message of setup";
    }
    if (sg_rt_setup_parse(seg->control, peer) != SG_WIRE_OK ||
        peer->version != SG_RT_SETUP_VERSION) {
        return "control data";
    }
    if (c->initiator ? peer->kind != SG_RT_ACCEPT && peer->kind != SG_RT_REJECT
                     : peer->kind != SG_RT_REQUEST) {
        return "wrong kind";
    }
    if (c->initiator && c->setup.frames->out_len) {
        return "an answer before the Request was sent";
    }
    if (c->initiator && h->conn_id != c->rt->conn_id) {
        return "Connection ID";
    }
    if (c->initiator && peer->kind == SG_RT_ACCEPT && peer->ord > c->setup.ird) {
        return "more Reads than we take";
    }
    return NULL;
}

/* The octets in setup.frames; NULL with *whole 0: there are more to come. */
static const char *examine(struct sg_conn *c, size_t *whole)
{
    const struct conn_startup *st = c->setup.frames;
    const struct sg_span in = sg_span_of(st->in, st->in_len);
    struct sg_rt_seg seg;
    enum sg_wire_err err = sg_rt_peek(in, whole);
    const char *fault;

    if (err == SG_WIRE_OK && *whole > SG_RT_SETUP_MAX) {
        return "too long";
    }
    if (err == SG_WIRE_OK) {
        err = sg_rt_parse(in, true, &seg);
    }
    if (err == SG_WIRE_MORE) {
        *whole = 0;
        return NULL;
    }
    if (err == SG_WIRE_BAD_CRC) {
        c->e->stats.crc_errors++;
    }
    if (err != SG_WIRE_OK) {
        return sg_wire_err_name(err);
    }
    fault = unusable(c, &seg);
    if (!fault) {
        c->rt->conn_id = seg.h.conn_id;
        c->rt->rx.next = seg.h.number + 1;
    }
    return fault;
}

size_t rt_receive_setup(struct sg_conn *c, const uint8_t *p, size_t n)
{
    struct conn_startup *st = c->setup.frames;
    size_t before, take, whole;
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
    fault = examine(c, &whole);
    if (!fault && !whole) {
        return n;
    }
    if (!fault && !c->initiator && whole - before < n) {
        fault = "octets behind the Request";
    }
    if (fault) {
        malformed(c, fault);
        return n;
    }
    c->rt->rx.pos = c->rt->rx.seen = (uint32_t)whole;
    if (!c->initiator) {
        rt_take_request(c);
        return n;
    }
    take_reply(c);
    if (conn_dead(c)) {
        return n;
    }
    conn_end_startup(c);
    return whole - before;
}

/* The Accept has been sent: both directions are open. */
static void replied(struct sg_conn *c)
{
    const struct sg_conn_params p = { .ird = c->setup.ird, .ord = c->setup.ord };

    conn_end_startup(c);
    conn_flag(c, CONN_IS_VALID, true); /* we need not wait for the client's first segment */
    if (c->close.state == CLOSE_DUE) { /* closed meanwhile; its timer runs */
        conn_set_state(c, CONN_CLOSING);
        return;
    }
    timers_started(c);
    conn_set_state(c, CONN_STREAMING);
    c->e->ops->established(c->user, &p);
}

bool rt_transmit_setup(struct sg_conn *c)
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
