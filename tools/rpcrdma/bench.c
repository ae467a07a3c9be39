/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bench.h"

/* The Call of the session, with a new XID. */
static bool send_again(struct rr_session *s)
{
    s->call.xid = ++s->xid;
    sg_put_be32(s->stream.octets, s->xid);
    return rr_send(s);
}

static bool take_reply(struct rr_session *s)
{
    if (rr_hear(s, s->o->reply_ms) != RR_HEARD_MESSAGE) {
        return rr_trouble(s, "no answer within %u ms", s->o->reply_ms);
    }
    if (s->fault != RR_OK || s->reply.proc == RR_ERROR) {
        return rr_trouble(s, "the server answered with %s", rr_proc_name(s->reply.proc));
    }
    return true;
}

/* The first Call is judged as in a case. */
static bool first(struct rr_session *s, const struct rr_request *q)
{
    struct rr_results results;

    if (!rr_begin(s, *q) || (q->want == RR_WANT_READ && !rr_offer(s, q->count, 0, false)) ||
        !rr_send(s) || !rr_expect_reply(s) || !rr_results(s, &results)) {
        return false;
    }
    if (q->want == RR_WANT_READ && results.result[0].len != q->count) {
        return rr_trouble(s, "the file has only %u of the %u octets to read", results.result[0].len,
                          q->count);
    }
    return true;
}

/* A server that grants nothing breaks RPC-02; one Call may then still be open. */
static unsigned may_open(const struct rr_session *s, unsigned depth)
{
    return SG_MIN(depth, SG_MIN(SG_MAX(s->granted, 1), RR_ASKED_CREDITS));
}

bool rr_bench(struct rr_session *s, struct rr_request request, unsigned depth, double seconds,
              struct rr_rate *rate)
{
    gint64 start, now, length = (gint64)(seconds * G_USEC_PER_SEC);
    uint64_t answered = 0;
    unsigned open = 0;

    if (!first(s, &request)) {
        return false;
    }
    rate->depth = 0;
    start = now = g_get_monotonic_time();
    while (now - start < length || open) {
        for (; now - start < length && open < may_open(s, depth); open++) {
            if (!send_again(s)) {
                return false;
            }
        }
        rate->depth = SG_MAX(rate->depth, open);
        if (!take_reply(s)) {
            return false;
        }
        open--;
        answered++;
        now = g_get_monotonic_time();
    }
    rate->per_second = (double)answered * G_USEC_PER_SEC / (double)(now - start);
    return true;
}
