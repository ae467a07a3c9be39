/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection, and the Call that is made on it; judge.c has what comes back. */
#include "session.h"

#include <inttypes.h>

void rr_note(struct rr_session *s, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    rr_verdict_note(s->verdict, format, ap);
    va_end(ap);
}

bool rr_trouble(struct rr_session *s, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    rr_verdict_trouble(s->verdict, format, ap);
    va_end(ap);
    return false;
}

/* ---- The connection ---- */

struct rr_session *rr_session_new(const struct rr_check_options *options, struct rr_dialer *dialer,
                                  struct rr_verdict *verdict, enum rr_rule rule)
{
    struct rr_session *s = g_new0(struct rr_session, 1);

    s->o = options;
    s->dialer = dialer;
    s->verdict = verdict;
    s->rule = rule;
    /* A server may answer a Call that it has seen before without executing it again. */
    s->xid = g_random_int();
    return s;
}

void rr_session_free(struct rr_session *s)
{
    rr_hang_up(s);
    g_free(s);
}

struct rr_opening rr_opening_default(void)
{
    return (struct rr_opening){
        .ours = { .present = true, .send_size = RR_INLINE_DEFAULT, .recv_size = RR_INLINE_DEFAULT },
    };
}

static void note_opening(struct rr_session *s)
{
    const struct rr_private *p = &s->theirs;

    rr_note(s, "connected: our private data %s (R=%d, send %u, receive %u)",
            s->ours.present ? "present" : "absent", s->ours.remote_inv, s->ours.send_size,
            s->ours.recv_size);
    rr_note(s, "  the server's %s (R=%d, send %u, receive %u); thresholds %u and %u",
            p->present ? "present" : "absent", p->remote_inv, p->send_size, p->recv_size,
            s->call_threshold, s->reply_threshold);
}

bool rr_open(struct rr_session *s, const struct rr_opening *opening)
{
    struct rr_port_side side = { .receives = RR_ASKED_CREDITS + 1 };
    struct sg_span octets;
    uint8_t buf[RR_PRIVATE_LEN];

    s->ours = opening->ours;
    s->ours.remote_inv &= s->dialer->invalidates;
    rr_private_emit(&s->ours, buf);
    octets =
        opening->octets ? *opening->octets : sg_span_of(buf, s->ours.present ? sizeof(buf) : 0);
    sg_assert(octets.len <= sizeof(side.private_data));
    if (octets.len) {
        memcpy(side.private_data, octets.p, octets.len);
    }
    side.private_len = octets.len;
    /* What the peer understands, not what we mean. */
    s->ours = rr_private_parse(octets);
    /* More than we announce: a Send above the threshold is to be seen, not to end all. */
    side.receive_size = SG_MAX(s->ours.recv_size, 2 * RR_INLINE_DEFAULT);
    s->port = s->dialer->dial(s->dialer, &side);
    if (!s->port) {
        return rr_trouble(s, "no connection: %s", s->dialer->why);
    }
    s->theirs = rr_private_parse(sg_span_of(s->port->peer, s->port->peer_len));
    if (s->theirs.present && s->theirs.reserved) {
        rr_find(&s->verdict->findings, PVT_02, "reserved bits 0x%02x are set", s->theirs.reserved);
    }
    s->call_threshold = rr_threshold(&s->ours, &s->theirs);
    s->reply_threshold = rr_threshold(&s->theirs, &s->ours);
    s->granted = 1;
    s->ended = false;
    note_opening(s);
    s->out = (struct rr_region){ .octets = g_malloc0(RR_SIZE_MAX), .len = RR_SIZE_MAX };
    if (!s->port->ops->reg(s->port, &s->out)) {
        return rr_trouble(s, "no memory for Sends: %s", s->port->why);
    }
    return true;
}

bool rr_open_usual(struct rr_session *s)
{
    struct rr_opening opening = rr_opening_default();

    if (s->o->private_data.len) {
        opening.octets = &s->o->private_data;
    }
    return rr_open(s, &opening);
}

static void give_back(struct rr_session *s)
{
    while (s->loans) {
        struct rr_region *r = &s->loan[--s->loans];

        s->port->ops->dereg(s->port, r);
        g_free(r->octets);
    }
}

void rr_hang_up(struct rr_session *s)
{
    if (!s->port) {
        return;
    }
    give_back(s);
    s->port->ops->dereg(s->port, &s->out);
    g_free(s->out.octets);
    s->port->ops->close(s->port);
    s->port = NULL;
}

struct rr_region *rr_lend(struct rr_session *s, size_t len, unsigned access)
{
    struct rr_region *r = &s->loan[s->loans];

    if (s->loans == RR_LOANS_MAX || len > RR_LOAN_ROOM) {
        rr_trouble(s, "a case lends more than %d regions of %d octets", RR_LOANS_MAX, RR_LOAN_ROOM);
        return NULL;
    }
    *r = (struct rr_region){ .octets = g_malloc(SG_MAX(len, 1)), .len = len, .access = access };
    memset(r->octets, RR_FILL, len);
    if (!s->port->ops->reg(s->port, r)) {
        rr_trouble(s, "cannot register memory: %s", s->port->why);
        g_free(r->octets);
        return NULL;
    }
    s->loan_xid[s->loans++] = s->xid;
    return r;
}

/* ---- A Call ---- */

bool rr_begin(struct rr_session *s, struct rr_request request)
{
    struct rr_header *h = &s->call;

    give_back(s);
    s->xid++;
    s->request = request;
    s->reduced = 0;
    s->whole = false;
    memset(h, 0, sizeof(*h));
    h->xid = s->xid;
    h->vers = RR_VERSION;
    h->credit = RR_ASKED_CREDITS;
    h->proc = RR_MSG;
    if (!s->o->service->make(s->o->service, &request, s->xid, &s->stream)) {
        snprintf(s->verdict->skipped, sizeof(s->verdict->skipped),
                 "the program %s has no such Call%s", s->o->service->name,
                 s->o->service == &s->o->nfs && !s->o->service->file ? "; give it a --file" : "");
        return false;
    }
    sg_assert(!s->stream.full);
    return true;
}

static struct rr_segment segment_of(const struct rr_region *r, size_t at, size_t len)
{
    return (struct rr_segment){ r->stag, (uint32_t)len, (uintptr_t)r->octets + at };
}

/* Read segments with that Position; they have the octets of one loan. */
static bool add_read_chunk(struct rr_session *s, uint32_t position, const uint8_t *octets,
                           size_t len, size_t piece)
{
    struct rr_region *r = rr_lend(s, len, RR_MAY_READ);

    if (!r) {
        return false;
    }
    memcpy(r->octets, octets, len);
    piece = piece ? piece : len;
    for (size_t at = 0; at < len; at += piece) {
        if (!rr_add_read(&s->call, position, segment_of(r, at, SG_MIN(piece, len - at)))) {
            return rr_trouble(s, "more than %d Read segments", RR_READS_MAX);
        }
    }
    return true;
}

bool rr_make_long(struct rr_session *s, size_t piece)
{
    s->call.proc = RR_NOMSG;
    s->whole = true;
    return add_read_chunk(s, 0, s->stream.octets, s->stream.len, piece);
}

bool rr_reduce(struct rr_session *s, size_t piece, bool pad)
{
    const struct rr_reducible *item = &s->stream.item[0];
    size_t whole = sg_align_up(item->len, 4);

    sg_assert(s->stream.items == 1);
    if (!add_read_chunk(s, item->at, s->stream.octets + item->at, pad ? whole : item->len, piece)) {
        return false;
    }
    memmove(s->stream.octets + item->at, s->stream.octets + item->at + whole,
            s->stream.len - item->at - whole);
    s->stream.len -= whole;
    return true;
}

bool rr_offer(struct rr_session *s, size_t len, size_t piece, bool reply)
{
    struct rr_region *r = rr_lend(s, len, RR_MAY_WRITE);

    if (!r) {
        return false;
    }
    if (reply ? !rr_open_reply(&s->call) : !rr_open_chunk(&s->call)) {
        return rr_trouble(s, "more than %d Write chunks", RR_CHUNKS_MAX);
    }
    piece = piece ? piece : len;
    for (size_t at = 0; at < len; at += piece) {
        if (!rr_add_segment(&s->call, segment_of(r, at, SG_MIN(piece, len - at)))) {
            return rr_trouble(s, "more than %d Write segments", RR_SEGMENTS_MAX);
        }
    }
    return true;
}

size_t rr_call_octets(struct rr_session *s)
{
    return rr_header_emit(&s->call, s->out.octets, s->out.len) + (s->whole ? 0 : s->stream.len);
}

static bool post(struct rr_session *s, size_t len)
{
    struct rr_post post = { .work = RR_WORK_SEND, .local = &s->out, .len = len };

    if (!s->port->ops->post(s->port, &post)) {
        rr_note(s, "  not sent: %s", s->port->why);
        if (!s->ended) {
            rr_find(&s->verdict->findings, s->rule, "the server ended the connection: %s",
                    s->port->why);
        }
        s->ended = true;
        return false;
    }
    return true;
}

bool rr_send(struct rr_session *s)
{
    size_t head = rr_header_emit(&s->call, s->out.octets, s->out.len), len = head;

    sg_assert(head && head + s->stream.len <= s->out.len);
    if (!s->whole) {
        memcpy(s->out.octets + head, s->stream.octets, s->stream.len);
        len += s->stream.len;
    }
    if (len > s->call_threshold) {
        return rr_trouble(s, "the case needs a Send of %zu octets; the threshold is %u", len,
                          s->call_threshold);
    }
    rr_note(s,
            "sent: %s, XID 0x%08x, %u Read segments, %u Write chunks, %s Reply chunk, %zu octets",
            rr_proc_name(s->call.proc), s->call.xid, s->call.reads, s->call.chunks,
            s->call.has_reply ? "a" : "no", len);
    return post(s, len);
}

bool rr_send_octets(struct rr_session *s, struct sg_span octets, const char *what)
{
    if (octets.len) {
        memcpy(s->out.octets, octets.p, octets.len);
    }
    rr_note(s, "sent: %s, %zu octets", what, octets.len);
    return post(s, octets.len);
}
