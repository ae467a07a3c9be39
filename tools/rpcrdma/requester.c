/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "requester.h"

#include <glib.h>

#include "message.h"
#include "requester_impl.h"

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

struct rr_requester_settings rr_requester_defaults(void)
{
    return (struct rr_requester_settings){
        .inline_size = RR_INLINE_DEFAULT,
        .private_data = true,
        .at_once = RR_AT_ONCE_DEFAULT,
        .limit_ms = RR_CALL_LIMIT_MS,
    };
}

static struct rr_private own_private(const struct rr_requester_settings *s)
{
    struct rr_private p = { .send_size = RR_SIZE_MIN, .recv_size = RR_SIZE_MIN };

    if (s->private_data) {
        p.present = true;
        p.remote_inv = s->invalidate;
        p.send_size = p.recv_size = s->inline_size;
    }
    return p;
}

void rr_requester_side(const struct rr_requester_settings *settings, struct rr_port_side *side)
{
    struct rr_private p = own_private(settings);

    memset(side, 0, sizeof(*side));
    if (p.present) {
        rr_private_emit(&p, side->private_data);
        side->private_len = RR_PRIVATE_LEN;
    }
    /* Replies, Calls of the other side, and messages that nobody should send. */
    side->receives = settings->at_once + 2 * RR_BACK_CREDITS + 8;
    side->receive_size = p.recv_size;
}

struct rr_requester *rr_requester_new(const struct rr_requester_settings *settings,
                                      struct rr_port *port)
{
    struct rr_requester *q = g_new0(struct rr_requester, 1);

    q->settings = *settings;
    q->port = port;
    q->ours = own_private(settings);
    q->theirs = rr_private_parse(settings->private_data ? sg_span_of(port->peer, port->peer_len)
                                                        : SG_SPAN_NONE);
    q->call_threshold = rr_threshold(&q->ours, &q->theirs);
    q->reply_threshold = rr_threshold(&q->theirs, &q->ours);
    q->xid = g_random_int();
    q->grant = 1;
    q->stream = g_new0(struct rr_stream, 1);
    rr_echo_start(&q->memory);
    rr_echo_start(&q->remote);
    for (unsigned i = 0; i < RR_AT_ONCE_MAX; i++) {
        q->job[i].lent.octets = g_malloc(RR_JOB_ROOM);
    }
    q->send = (struct rr_region){ .octets = g_malloc0(RR_SIZE_MAX), .len = RR_SIZE_MAX };
    if (!port->ops->reg(port, &q->send)) {
        rr_requester_free(q);
        return NULL;
    }
    return q;
}

/* False: the memory that it lent cannot be taken back; it stays open, without a Reply. */
static bool close_job(struct rr_requester *q, struct rr_job *job)
{
    if (job->lent.valid && !q->port->ops->dereg(q->port, &job->lent)) {
        return false;
    }
    q->open -= job->open;
    job->open = false;
    return true;
}

void rr_requester_free(struct rr_requester *q)
{
    for (unsigned i = 0; i < RR_AT_ONCE_MAX; i++) {
        close_job(q, &q->job[i]);
        g_free(q->job[i].lent.octets);
    }
    if (q->send.valid) {
        q->port->ops->dereg(q->port, &q->send);
    }
    g_free(q->send.octets);
    g_free(q->stream);
    g_free(q);
}

struct rr_requester_counts rr_requester_counts(const struct rr_requester *q)
{
    struct rr_requester_counts n = q->counts;

    n.open = q->open;
    return n;
}

void rr_requester_counts_add(struct rr_requester_counts *sum, struct rr_requester_counts n)
{
    sum->calls += n.calls;
    sum->answered += n.answered;
    sum->failed += n.failed;
    sum->refused += n.refused;
    sum->wrong += n.wrong;
    sum->expired += n.expired;
    sum->dropped += n.dropped;
    sum->open += n.open;
    sum->back += n.back;
}

void rr_requester_stop(struct rr_requester *q)
{
    q->stopped = true;
}

/* Another Call is to be made some time. */
static bool has_more(const struct rr_requester *q)
{
    return !q->stopped && (!q->settings.count || q->made < q->settings.count);
}

bool rr_requester_done(const struct rr_requester *q)
{
    return !has_more(q) && !q->open;
}

/* ---- Sends ---- */

static bool send_out(struct rr_requester *q, const struct rr_header *h, const uint8_t *rest,
                     size_t len)
{
    struct rr_post post = { .work = RR_WORK_SEND, .local = &q->send };
    size_t head = rr_header_emit(h, q->send.octets, q->send.len);

    sg_assert(head && len <= q->send.len - head);
    if (len) {
        memcpy(q->send.octets + head, rest, len);
    }
    post.len = head + len;
    return q->port->ops->post(q->port, &post);
}

/* One more Call, if there is a place for it; false: the connection is over. */
static bool make_call(struct rr_requester *q)
{
    struct rr_job *job = q->job;

    while (job->open) {
        job++;
    }
    memset(&job->call, 0, sizeof(job->call));
    job->call.xid = q->xid++;
    job->call.vers = RR_VERSION;
    job->call.credit = q->settings.at_once;
    job->call.proc = RR_MSG;
    if (!rr_job_make(q, job)) {
        return false;
    }
    job->open = true;
    job->since = now_ms();
    q->open++;
    q->made++;
    q->counts.calls++;
    return send_out(q, &job->call, q->stream->octets, q->stream->len);
}

/* A grant of zero is the other side's breach; one Call at a time goes on. */
static bool make_calls(struct rr_requester *q)
{
    unsigned most = SG_MIN(SG_MAX(q->grant, 1), q->settings.at_once);

    while (q->open < most && has_more(q)) {
        if (!make_call(q)) {
            return false;
        }
    }
    return true;
}

/*
 * Calls without a Reply within their time.  Each keeps its credit as long as the connection lasts
 * (RFC 8166 section 3.3.1), so it has to end: false.
 */
static bool expire(struct rr_requester *q)
{
    bool none = true;

    for (unsigned i = 0; i < RR_AT_ONCE_MAX; i++) {
        if (q->job[i].open && now_ms() - q->job[i].since > q->settings.limit_ms) {
            q->counts.expired++;
            close_job(q, &q->job[i]);
            none = false;
        }
    }
    return none;
}

/* ---- What comes ---- */

static struct rr_job *find_job(struct rr_requester *q, uint32_t xid)
{
    for (unsigned i = 0; i < RR_AT_ONCE_MAX; i++) {
        if (q->job[i].open && q->job[i].call.xid == xid) {
            return &q->job[i];
        }
    }
    return NULL;
}

/* A Call of the other side: inline, without chunks. */
static bool answer(struct rr_requester *q, struct sg_span payload)
{
    struct rr_header h = q->reply;
    struct rr_rpc rpc;

    if (h.reads || h.chunks || h.has_reply || !rr_rpc_parse(payload, &rpc) || rpc.xid != h.xid) {
        q->counts.dropped++;
        return true;
    }
    rr_echo_answer(&q->memory, &rpc, payload, q->stream);
    if (RR_HEADER_MIN + q->stream->len > q->call_threshold) {
        rr_stream_reply(q->stream, rpc.xid, RR_GARBAGE_ARGS);
    }
    h.credit = RR_BACK_CREDITS;
    q->counts.back++;
    return send_out(q, &h, q->stream->octets, q->stream->len);
}

/* False: the connection has to end (RFC 8166 section 4.5.4). */
static bool on_reply(struct rr_requester *q, struct rr_job *job, struct sg_span payload)
{
    uint64_t *counts[] = {
        [RR_JOB_ANSWERED] = &q->counts.answered,
        [RR_JOB_REFUSED] = &q->counts.refused,
        [RR_JOB_WRONG] = &q->counts.wrong,
        [RR_JOB_BAD_REPLY] = &q->counts.dropped,
    };
    enum rr_job_end end = rr_job_end(q, job, payload);

    if (end != RR_JOB_BAD_REPLY && !close_job(q, job)) {
        return false;
    }
    ++*counts[end];
    q->grant = end == RR_JOB_BAD_REPLY ? q->grant : q->reply.credit;
    return true;
}

static bool treat(struct rr_requester *q, struct sg_span message)
{
    struct rr_header *h = &q->reply;
    enum rr_fault fault = rr_header_parse(message, h);
    struct sg_span payload = rr_payload(message, h, fault);
    const uint8_t *type = sg_span_get(payload, 4, 4);
    struct rr_job *job;

    if (fault != RR_OK || h->vers != RR_VERSION || h->proc == RR_MSGP || h->proc == RR_DONE) {
        q->counts.dropped++;
        return true;
    }
    if (h->proc == RR_MSG && type && sg_get_be32(type) == RR_CALL) {
        return answer(q, payload);
    }
    job = find_job(q, h->xid);
    if (!job) {
        q->counts.dropped++;
    } else if (h->proc == RR_ERROR) {
        q->counts.failed++;
        q->grant = h->credit;
        return close_job(q, job);
    } else {
        return on_reply(q, job, payload);
    }
    return true;
}

enum rr_event_kind rr_requester_step(struct rr_requester *q, unsigned ms)
{
    struct rr_event event;
    enum rr_event_kind kind;

    if (!expire(q) || !make_calls(q)) {
        return RR_EVENT_CLOSED;
    }
    kind = q->port->ops->poll(q->port, ms, &event);
    if (kind != RR_EVENT_RECEIVED) {
        return kind;
    }
    if (!treat(q, event.octets)) {
        return RR_EVENT_CLOSED;
    }
    return q->port->ops->repost(q->port, event.slot) ? kind : RR_EVENT_CLOSED;
}
