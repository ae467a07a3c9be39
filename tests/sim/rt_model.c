/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The model of verbs, and what the document allows at each placement. */
#include "rt_sim.h"

/* Has a message without payload, which no upcall shows; or has all of it been processed? */
static bool is_processed(const struct rt_msg *m)
{
    return m->processed || (!m->length && m->kind != RT_SEND);
}

/* May the payload of message i of this sequence be touched now? */
static void check_order(struct rt_world *w, const struct rt_msg *seq, unsigned i, const char *what)
{
    unsigned j;

    for (j = 0; seq[i].order != 0xffff && j + seq[i].order < i; j++) {
        RT_CHECK(w, is_processed(&seq[j]),
                 "%s: message %u of order %u is touched before message %u is processed", what, i,
                 seq[i].order, j);
    }
}

/* n octets of the message at this offset are placed. */
static void place(struct rt_world *w, struct rt_msg *m, uint32_t off, const uint8_t *p, size_t n)
{
    size_t i;

    RT_CHECK(w, sg_range_ok(off, n, m->length), "placed beyond the message");
    for (i = 0; i < n; i++) {
        RT_CHECK(w, p[i] == rt_octet(m, off + (uint32_t)i), "octet %zu of message %u is wrong",
                 off + i, m->number);
        RT_CHECK(w, !m->placed[off + i], "octet %zu of message %u is placed twice", off + i,
                 m->number);
        m->placed[off + i] = 1;
    }
    m->count += (uint32_t)n;
}

static void up_reply(void *user, enum sg_conn_end end, const struct sg_conn_params *p)
{
    struct rt_world *w = user;

    RT_CHECK(w, end == SG_CONN_OK && p->ird == RT_IRD && p->ord == RT_IRD, "setup fails (%d)", end);
    w->up = true;
    sg_conn_wake(w->c);
}

static void up_disconnected(void *user, enum sg_conn_end why)
{
    struct rt_world *w = user;

    RT_CHECK(w, w->fin && why == SG_CONN_CLOSED, "the connection ends (%d)", why);
}

static void up_faulted(void *user, enum sg_conn_fault what)
{
    RT_CHECK((struct rt_world *)user, false, "a fault (%d)", what);
}

static void up_closed(void *user, enum sg_conn_end why)
{
    struct rt_world *w = user;

    RT_CHECK(w, why == SG_CONN_CLOSED && w->closing, "the connection is closed (%d)", why);
    w->over = true;
    w->c = NULL;
}

static void up_tx_ready(void *user)
{
    ((struct rt_world *)user)->ready = true;
}

/* ---- transmission ---- */

static bool up_next(void *user, struct sg_msg *msg, unsigned reads_room)
{
    struct rt_world *w = user;
    const struct rt_msg *m = &w->ours.msg[w->taken];
    uint64_t at = (uint64_t)w->taken * RT_LENGTH;

    if (w->taken == w->ours.msgs || (m->kind == RT_READ && !reads_room) || !w->up) {
        return false;
    }
    *msg = (struct sg_msg){ .cookie = w->taken };
    switch (m->kind) {
    case RT_SEND:
        msg->kind = SG_MSG_SEND;
        msg->send.length = m->length;
        break;
    case RT_WRITE:
        msg->kind = SG_MSG_WRITE;
        msg->write.length = m->length;
        msg->write.stag = RT_STAG;
        msg->write.to = at;
        break;
    default:
        msg->kind = SG_MSG_READ_REQ;
        msg->read.length = m->length;
        msg->read.stag = RT_STAG;
        msg->read.to = at;
        msg->read.sink_stag = RT_SINK;
        msg->read.sink_to = at;
        break;
    }
    w->taken++;
    return true;
}

static int lend(struct rt_world *w, const struct rt_msg *m, uint32_t off, uint32_t len,
                struct iovec *iov)
{
    uint32_t i, part = rt_below(w, len + 1);

    for (i = 0; i < len; i++) {
        w->lend[i] = rt_octet(m, off + i);
    }
    iov[0] = (struct iovec){ w->lend, part ? part : len };
    iov[1] = (struct iovec){ w->lend + part, len - part };
    return part && part < len ? 2 : 1;
}

static int up_gather(void *user, const struct sg_msg *msg, uint32_t off, uint32_t len,
                     struct iovec *iov)
{
    struct rt_world *w = user;

    return lend(w, &w->ours.msg[msg->cookie], off, len, iov);
}

static void up_gathered(void *user, struct iovec *iov, int n)
{
    (void)user;
    (void)iov;
    (void)n;
}

static void up_sent(void *user, const struct sg_msg *msg)
{
    (void)user;
    (void)msg;
}

static int up_gather_source(void *user, uint32_t stag, uint64_t to, uint32_t len, struct iovec *iov,
                            enum sg_mem_status *why)
{
    struct rt_world *w = user;
    unsigned i = (unsigned)(to / RT_LENGTH);
    uint32_t off = (uint32_t)(to % RT_LENGTH);
    struct rt_msg *m = &w->peer.msg[i];

    RT_CHECK(w, stag == RT_STAG && m->kind == RT_READ && off + len <= m->length, "wrong source");
    check_order(w, w->peer.msg, i, "Read");
    *why = SG_MEM_OK;
    m->count = SG_MAX(m->count, off + len); /* a segment that is refused is gathered again */
    return lend(w, m, off, len, iov);
}

/* ---- reception ---- */

static enum sg_mem_status up_place_write(void *user, uint32_t stag, uint64_t to, const uint8_t *p,
                                         size_t n)
{
    struct rt_world *w = user;
    unsigned i = (unsigned)(to / RT_LENGTH);
    struct rt_msg *m = &w->peer.msg[i];

    if (rt_chance(w, 3)) {
        w->put_off = true;
        return SG_MEM_LATER;
    }
    RT_CHECK(w, stag == RT_STAG && i < w->peer.msgs && m->kind == RT_WRITE, "Write to nowhere");
    check_order(w, w->peer.msg, i, "Write");
    place(w, m, (uint32_t)(to % RT_LENGTH), p, n);
    m->processed = m->count == m->length;
    return SG_MEM_OK;
}

static enum sg_mem_status up_place_read(void *user, const struct sg_read_sink *sink, uint32_t off,
                                        const uint8_t *p, size_t n)
{
    struct rt_world *w = user;
    unsigned i, k = 0;
    struct rt_msg *m;

    for (i = 0; i < sink->cookie; i++) {
        k += w->ours.msg[i].kind == RT_READ;
    }
    m = &w->peer.response[k];
    RT_CHECK(w,
             sink->stag == RT_SINK && sink->to == sink->cookie * RT_LENGTH && k < w->peer.responses,
             "Response to nowhere");
    check_order(w, w->peer.response, k, "Response");
    place(w, m, off, p, n);
    m->processed = m->count == m->length;
    return SG_MEM_OK;
}

/* The Send with this number among Sends, from 1. */
static unsigned find_send(struct rt_world *w, uint32_t msn)
{
    unsigned i;

    for (i = 0; i < w->peer.msgs; i++) {
        if (w->peer.msg[i].kind == RT_SEND && !--msn) {
            return i;
        }
    }
    rt_fail(w, "a Send too many");
}

static enum sg_recv_status up_place_recv(void *user, uint32_t msn, uint32_t mo, const uint8_t *p,
                                         size_t n)
{
    struct rt_world *w = user;
    unsigned i = find_send(w, msn);

    if (rt_chance(w, 3)) {
        w->put_off = true;
        return SG_RECV_LATER;
    }
    RT_CHECK(w, msn == w->peer.delivered + 1, "a Send before its turn");
    check_order(w, w->peer.msg, i, "Send");
    place(w, &w->peer.msg[i], mo, p, n);
    return SG_RECV_OK;
}

static void up_recv_done(void *user, const struct sg_recv_info *info)
{
    struct rt_world *w = user;
    unsigned i = find_send(w, info->msn), j;
    struct rt_msg *m = &w->peer.msg[i];

    RT_CHECK(w, info->msn == ++w->peer.delivered, "Sends are delivered out of sequence");
    RT_CHECK(w, m->count == m->length && info->length == m->length,
             "a Send of %u octets is delivered with %u of them, as %u", m->length, m->count,
             info->length);
    for (j = 0; j < i; j++) {
        RT_CHECK(w, w->peer.msg[j].kind == RT_READ || is_processed(&w->peer.msg[j]),
                 "Send %u is delivered before message %u", i, j);
    }
    check_order(w, w->peer.msg, i, "Send");
    m->processed = true;
}

static void up_read_done(void *user, uint32_t octets)
{
    struct rt_world *w = user;
    const struct rt_msg *m = &w->peer.response[w->ours.answered++];

    RT_CHECK(w, octets == m->length && m->count == m->length, "a Read is done with %u of %u octets",
             m->count, m->length);
}

static enum sg_mem_status up_check_source(void *user, uint32_t stag, uint64_t to, uint32_t len)
{
    struct rt_world *w = user;
    const struct rt_msg *m = &w->peer.msg[to / RT_LENGTH];

    RT_CHECK(w, stag == RT_STAG && to % RT_LENGTH == 0 && m->kind == RT_READ && m->length == len,
             "a Read of something else");
    return SG_MEM_OK;
}

/* All of a Response was sent: the Read is processed. */
static void up_answered(void *user, const struct sg_answer *r)
{
    (void)user;
    (void)r;
}

const struct sg_engine_ops rt_ops = {
    .reply = up_reply,
    .disconnected = up_disconnected,
    .faulted = up_faulted,
    .closed = up_closed,
    .tx_ready = up_tx_ready,
    .next = up_next,
    .gather = up_gather,
    .gathered = up_gathered,
    .sent = up_sent,
    .read_done = up_read_done,
    .place_write = up_place_write,
    .place_read = up_place_read,
    .place_recv = up_place_recv,
    .recv_done = up_recv_done,
    .check_source = up_check_source,
    .gather_source = up_gather_source,
    .answered = up_answered,
};

static unsigned reads_of(const struct rt_side *s)
{
    unsigned i, n = 0;

    for (i = 0; i < s->msgs; i++) {
        n += s->msg[i].kind == RT_READ;
    }
    return n;
}

bool rt_all_done(const struct rt_world *w)
{
    unsigned i;

    for (i = 0; i < w->peer.msgs; i++) {
        const struct rt_msg *m = &w->peer.msg[i];

        if (!is_processed(m) && m->kind != RT_READ) {
            return false;
        }
    }
    return w->delivered == w->made && w->peer.open == w->peer.msgs &&
           w->ours.open == w->ours.msgs && w->ours.answered == reads_of(&w->ours) &&
           w->peer.answered == reads_of(&w->peer);
}

void rt_check_end(struct rt_world *w)
{
    const struct sg_engine_stats *st = sg_engine_stats(w->e);
    uint64_t sends = 0, writes = 0;
    unsigned i;

    for (i = 0; i < w->peer.msgs; i++) {
        sends += w->peer.msg[i].kind == RT_SEND;
        writes += w->peer.msg[i].kind == RT_WRITE;
    }
    RT_CHECK(w,
             st->rx_sends == sends && st->rx_writes == writes &&
                 st->rx_reads == reads_of(&w->peer) &&
                 st->rx_read_responses == reads_of(&w->ours) && st->rx_fpdus == w->cuts - 1,
             "the counters are wrong");
    RT_CHECK(w, !st->protocol_errors && !st->crc_errors && !st->protection_errors,
             "errors were counted");
    w->early += st->rx_early;
}
