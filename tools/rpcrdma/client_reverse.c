/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls to the client on its own connection (RFC 8167).  They have credits and XIDs of their own,
 * and no chunks.  What tells a Call from a Reply is the RPC message's direction, not its XID.
 */
#include "client.h"

enum { NFS41_OP_CREATE_SESSION = 43 };

static struct rr_reverse *find(struct rr_client *c, uint32_t xid)
{
    for (unsigned i = 0; i < c->reverses; i++) {
        if (c->reverse[i].xid == xid && !c->reverse[i].answered) {
            return &c->reverse[i];
        }
    }
    return NULL;
}

/* A place for one more; those that are answered make room. */
static struct rr_reverse *place(struct rr_client *c)
{
    unsigned kept = 0;

    if (c->reverses == RR_REVERSE_MAX) {
        for (unsigned i = 0; i < c->reverses; i++) {
            if (!c->reverse[i].answered) {
                c->reverse[kept++] = c->reverse[i];
            }
        }
        c->reverses = kept;
    }
    return c->reverses == RR_REVERSE_MAX ? NULL : &c->reverse[c->reverses++];
}

static unsigned open_calls(const struct rr_client *c)
{
    unsigned open = 0;

    for (unsigned i = 0; i < c->reverses; i++) {
        open += !c->reverse[i].answered;
    }
    return open;
}

/* One more Call of the upstream may go out. */
static bool may_relay(const struct rr_client *c)
{
    return !c->over && !c->own_calls && open_calls(c) < SG_MAX(c->reverse_grant, 1);
}

void rr_client_relay_call(struct rr_client *c, struct sg_span message)
{
    if (may_relay(c)) {
        rr_client_call(c, message, true);
    } else if (g_queue_get_length(&c->waiting) == RR_REVERSE_MAX) {
        rr_client_note(c, "%d Calls to the client wait: one is left out", RR_REVERSE_MAX);
    } else {
        g_queue_push_tail(&c->waiting, g_bytes_new(message.p, message.len));
    }
}

void rr_client_relay_waiting(struct rr_client *c)
{
    while (!g_queue_is_empty(&c->waiting) && may_relay(c)) {
        GBytes *message = g_queue_pop_head(&c->waiting);
        gsize len;
        const uint8_t *octets = g_bytes_get_data(message, &len);

        rr_client_call(c, sg_span_of(octets, len), true);
        g_bytes_unref(message);
    }
}

/* A Call to the client does not go out: the upstream's is left out, ours is what a case needs. */
static bool left_out(struct rr_client *c, bool relayed, const char *what)
{
    if (!relayed) {
        return rr_client_trouble(c, "a Call to the client cannot be made: %s", what);
    }
    rr_client_note(c, "a Call to the client is left out: %s", what);
    return false;
}

bool rr_client_call(struct rr_client *c, struct sg_span message, bool relayed)
{
    struct rr_header *h = &c->message;
    struct rr_reverse *reverse;

    memset(h, 0, sizeof(*h));
    h->xid = sg_get_be32(message.p);
    h->vers = RR_VERSION;
    h->credit = RR_REVERSE_MAX;
    h->proc = RR_MSG;
    if (RR_HEADER_MIN + message.len > c->codec->reply_threshold) {
        return left_out(c, relayed, "it would not be inline");
    }
    reverse = place(c);
    if (!reverse) {
        return left_out(c, relayed, "too many are open");
    }
    *reverse = (struct rr_reverse){ .xid = h->xid, .relayed = relayed };
    return rr_client_send_message(c, h, message,
                                  relayed ? "a Call of the server behind" : "a Call to the client");
}

/* Each answer, whatever it is, ends its Call and carries a grant. */
static void end_call(struct rr_client *c, struct rr_reverse *reverse, const struct rr_header *h)
{
    reverse->answered = true;
    c->reverse_grant = SG_MIN(h->credit, RR_REVERSE_MAX);
    rr_client_relay_waiting(c);
}

bool rr_client_refused(struct rr_client *c, const struct rr_header *h)
{
    struct rr_reverse *reverse = find(c, h->xid);

    if (reverse) {
        end_call(c, reverse, h);
    }
    return reverse;
}

void rr_client_replied(struct rr_client *c, const struct rr_header *h, enum rr_fault fault,
                       struct sg_span octets)
{
    struct sg_span payload = rr_payload(octets, h, fault);
    struct rr_reverse *reverse = find(c, h->xid);
    struct rr_message m = { .h = h,
                            .fault = fault,
                            .kind = RR_IS_REPLY,
                            .len = octets.len,
                            .payload = payload,
                            .threshold = c->call_threshold };
    struct rr_rpc rpc;

    rr_message_check(rr_client_findings(c), &m);
    if (!reverse) {
        rr_find(rr_client_findings(c), RPC_22, "a Reply with XID 0x%08x, which no open Call has",
                h->xid);
        return;
    }
    if (h->chunks) {
        rr_find(rr_client_findings(c), RPC_15, "%u Write chunks came back, none were offered",
                h->chunks);
    }
    if (h->has_reply) {
        rr_find(rr_client_findings(c), RPC_34, "a Reply chunk that nobody offered");
    }
    reverse->accepted = rr_rpc_parse(payload, &rpc) && rpc.accepted;
    rr_client_note(c, "  the Reply to our Call: %s, grants %u",
                   reverse->accepted ? "executed" : "not executed", h->credit);
    if (reverse->relayed && !c->upstream->send(c->upstream, payload)) {
        rr_client_fails(c, "%s", c->upstream->why);
    }
    end_call(c, reverse, h);
}

/* The attributes of a channel: six numbers, and up to one for RDMA. */
static void skip_channel(struct rr_reader *in)
{
    rr_skip(in, 4 * 6);
    rr_skip(in, 4 * (size_t)rr_get_word(in));
}

void rr_client_learn(struct rr_client *c, const struct rr_pending *p)
{
    struct rr_reader in = { .in = sg_span_of(p->stream->data, p->stream->len),
                            .at = p->rpc.body,
                            .fine = true };
    uint32_t program;

    if (p->rpc.prog == RR_ECHO) {
        c->callback = RR_ECHO;
        return;
    }
    if (p->rpc.prog != RR_PROG_NFS || p->rpc.vers != 4 || p->rpc.proc != 1) {
        return;
    }
    rr_skip(&in, rr_get_word(&in)); /* tag */
    rr_get_word(&in);               /* minor version */
    if (!rr_get_word(&in) || rr_get_word(&in) != NFS41_OP_CREATE_SESSION) {
        return;
    }
    rr_skip(&in, 4 * 4); /* client id, sequence, flags */
    skip_channel(&in);
    skip_channel(&in);
    program = rr_get_word(&in);
    if (in.fine) {
        c->callback = program;
        rr_client_note(c, "  the client has callbacks: program 0x%x", program);
    }
}
