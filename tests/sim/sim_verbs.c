/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The model of verbs, which also checks the results.
 *
 * Each side has a list of operations.  Payload is a function of side, operation and offset, so
 * everything that arrives can be checked on the spot:
 *
 *   Send    delivered in order, once, with its length, flags and octets; at that moment the area
 *           holds exactly what the Writes before it left there
 *   Write   lands in the peer's area; seen by the next Send and by read-backs
 *   Read    of the constant source: its octets; read-back of the area: all our earlier Writes
 *   Atomic  executed once, in the order of requests; each finds what those before it left, and so
 *           does a Read of the words that they work on
 *   Immediate Data  in order with Sends, with the length of the Write before it
 *
 * Order of completion, the limit on outstanding Reads, silence after the end and the layer, type
 * and code of every Terminate are checked as well.
 */
#include "sim.h"

static const struct {
    uint8_t layer, type, code;
} terms[SIM_FAULTS] = {
    [SIM_BAD_WRITE_STAG] = { 1, 1, 0x00 }, [SIM_BAD_WRITE_BOUNDS] = { 1, 1, 0x01 },
    [SIM_BAD_READ_STAG] = { 0, 1, 0x00 },  [SIM_BAD_READ_BOUNDS] = { 0, 1, 0x01 },
    [SIM_SEND_TOO_LONG] = { 1, 2, 0x05 },  [SIM_BAD_INVALIDATE] = { 0, 1, 0x09 },
    [SIM_GATHER_FAILS] = { 0, 0, 0x00 },   [SIM_MISALIGNED] = { 0, 2, 0x07 },
    [SIM_UNSPOKEN] = { 0, 2, 0x06 },
};

static bool is_request(const struct sim_op *op)
{
    return op->msg.kind == SG_MSG_READ_REQ || sim_is_atomic(op);
}

static bool is_untagged(const struct sim_op *op)
{
    return op->msg.kind == SG_MSG_SEND || op->msg.kind == SG_MSG_IMM;
}

static struct sim_world *world_of(const struct sim_side *s)
{
    return s->pair->w;
}

static uint8_t octet_of(const struct sim_side *s, unsigned seq, uint32_t off)
{
    return (uint8_t)(seq * 131 + off * 7 + (off >> 8) * 3 + s->node * 53 + s->pair->index);
}

void sim_abort(struct sim_side *s)
{
    sim_note(world_of(s), "%u.%u aborts", s->pair->index, s->node);
    s->pair->disturbed = true;
    s->aborted = true;
    s->over = true;
    sg_conn_abort(s->c);
    s->c = NULL;
}

/* Called first in every upcall about a connection. */
struct sim_side *sim_heard(void *user, const char *what, bool inbound)
{
    struct sim_side *s = user;
    struct sim_world *w = world_of(s);

    SIM_CHECK(w, !s->over, "%u.%u: %s after the end", s->pair->index, s->node, what);
    SIM_CHECK(w, !inbound || !s->down, "%u.%u: %s after 'disconnected'", s->pair->index, s->node,
              what);
    return s;
}

/* Sometimes verbs abort in the middle of an upcall. */
bool sim_tantrum(struct sim_side *s)
{
    struct sim_world *w = world_of(s);

    if (!w->sc.aborts || !s->c || sim_below(w, 400)) {
        return false;
    }
    sim_abort(s);
    return true;
}

static void check_params(struct sim_side *s, const struct sim_side *from,
                         const struct sg_conn_params *p)
{
    SIM_CHECK(world_of(s),
              p->pdata_len == from->pdata_len && memcmp(p->pdata, from->pdata, p->pdata_len) == 0,
              "%u.%u: private data of %u octets changed on the way", s->pair->index, s->node,
              from->pdata_len);
}

static void up_request(void *listener_user, struct sg_conn *c, const struct sg_conn_params *p)
{
    struct sim_world *w = listener_user;
    struct sim_pair *pair = &w->pair[p->pdata_len ? p->pdata[0] % SIM_PAIRS : 0];
    struct sim_side *s = &pair->side[1];

    SIM_CHECK(w, p->pdata_len && !pair->requested && !s->c, "request of nobody");
    check_params(s, s->peer, p);
    s->c = c;
    pair->requested = true;
    sg_conn_set_request_user(c, s);
    if (w->sc.moody && sim_chance(w, 5)) {
        pair->refused = true;
        sim_abort(s);
    }
}

static void up_request_gone(struct sg_conn *c, void *request_user, enum sg_conn_end why)
{
    struct sim_side *s = sim_heard(request_user, "request_gone", false);

    sim_note(world_of(s), "%u.1 request gone (%d)", s->pair->index, why);
    s->c = NULL;
    s->over = true;
    s->pair->refused = true;
}

static void up_reply(void *user, enum sg_conn_end end, const struct sg_conn_params *p)
{
    struct sim_side *s = sim_heard(user, "reply", true);

    sim_note(world_of(s), "%u.0 reply (%d)", s->pair->index, end);
    if (end != SG_CONN_OK) {
        s->c = NULL;
        s->over = true;
        s->end = end;
        return;
    }
    check_params(s, s->peer, p);
    s->ird = p->ird;
    s->ord = p->ord;
    s->up = true;
    sg_conn_wake(s->c);
    sim_tantrum(s);
}

static void up_established(void *user, const struct sg_conn_params *p)
{
    struct sim_side *s = sim_heard(user, "established", true);

    sim_note(world_of(s), "%u.1 established", s->pair->index);
    s->ird = p->ird;
    s->ord = p->ord;
    s->up = true;
    sg_conn_wake(s->c);
    sim_tantrum(s);
}

static void up_disconnected(void *user, enum sg_conn_end why)
{
    struct sim_side *s = sim_heard(user, "disconnected", true);

    sim_note(world_of(s), "%u.%u disconnected (%d)", s->pair->index, s->node, why);
    s->down = true;
    s->close_asked = true; /* done from the loop */
    /* Sometimes the queue pair goes into error at the peer's FIN, in the middle of a message. */
    s->left = why == SG_CONN_CLOSED && !s->close_done && sim_chance(world_of(s), 50);
    sim_tantrum(s);
}

static void up_closed(void *user, enum sg_conn_end why)
{
    struct sim_side *s = sim_heard(user, "closed", false);

    sim_note(world_of(s), "%u.%u closed (%d)", s->pair->index, s->node, why);
    s->c = NULL;
    s->over = true;
    s->end = why;
}

static void up_terminated(void *user, const struct sg_term_info *t)
{
    struct sim_side *s = sim_heard(user, "terminated", !t->sent);
    struct sim_world *w = world_of(s);
    const struct sim_op *op = t->sent ? s->peer->fatal : s->fatal;
    bool crc = t->layer == 2 && t->type == 0 && t->code == 2 && w->sc.corrupt;
    bool disagree = w->sc.moody && !t->sent && t->layer == 2 && t->type == 0 && t->code == 7;
    bool mine = t->sent && s->fatal && s->fatal->fault == SIM_GATHER_FAILS;
    bool theirs = !t->sent && s->peer->fatal && s->peer->fatal->fault == SIM_GATHER_FAILS;

    sim_note(w, "%u.%u Terminate %s %u/%u/%02x", s->pair->index, s->node,
             t->sent ? "sent" : "received", t->layer, t->type, t->code);
    if ((mine || theirs) && !(t->layer | t->type | t->code)) {
        op = NULL;
    } else if (!crc && !disagree) {
        SIM_CHECK(w, op && op->seq < (t->sent ? s->peer : s)->taken,
                  "%u.%u: Terminate %u/%u/%02x "
                  "without a reason",
                  s->pair->index, s->node, t->layer, t->type, t->code);
        SIM_CHECK(w,
                  terms[op->fault].layer == t->layer && terms[op->fault].type == t->type &&
                      terms[op->fault].code == t->code,
                  "%u.%u: Terminate %u/%u/%02x for fault %d", s->pair->index, s->node, t->layer,
                  t->type, t->code, op->fault);
    }
    SIM_CHECK(w, !(t->sent ? s->term_sent : s->term_received), "two Terminates one way");
    s->term_sent |= t->sent;
    s->term_received |= !t->sent;
    s->pair->disturbed = true;
    sim_tantrum(s);
}

/* Without Terminate: only the end that finds the fault is told. */
static void up_faulted(void *user, enum sg_conn_fault what)
{
    static const enum sg_conn_fault faults[SIM_FAULTS] = {
        [SIM_BAD_WRITE_STAG] = SG_FAULT_ACCESS,   [SIM_BAD_READ_STAG] = SG_FAULT_ACCESS,
        [SIM_BAD_WRITE_BOUNDS] = SG_FAULT_ACCESS, [SIM_BAD_READ_BOUNDS] = SG_FAULT_ACCESS,
        [SIM_SEND_TOO_LONG] = SG_FAULT_FORM,
    };
    struct sim_side *s = sim_heard(user, "faulted", false);
    struct sim_world *w = world_of(s);
    const struct sim_op *op = s->peer->fatal;
    bool mine = s->fatal && s->fatal->fault == SIM_GATHER_FAILS;

    sim_note(w, "%u.%u fault %d", s->pair->index, s->node, what);
    SIM_CHECK(w, w->wire != SG_ENGINE_IWARP, "a fault without its Terminate");
    if (what == SG_FAULT_HERE) {
        SIM_CHECK(w, mine, "%u.%u: memory of ours was fine", s->pair->index, s->node);
    } else if (!w->sc.corrupt) {
        SIM_CHECK(w, op && op->seq < s->peer->taken && faults[op->fault] == what,
                  "%u.%u: fault %d of the peer without a reason", s->pair->index, s->node, what);
    }
    s->pair->disturbed = true;
    sim_tantrum(s);
}

/* Transmission. */

static void up_tx_ready(void *user)
{
    sim_heard(user, "tx_ready", false)->tx_ready = true;
}

static bool up_next(void *user, struct sg_msg *msg, unsigned reads_room)
{
    struct sim_side *s = sim_heard(user, "next", false);
    struct sim_world *w = world_of(s);
    struct sim_op *op = &s->ops[s->taken];
    uint32_t i;

    SIM_CHECK(w, s->up, "next before the connection is up");
    SIM_CHECK(w, s->reads_out + reads_room <= s->ord, "%u Reads allowed with %u out, ORD %u",
              reads_room, s->reads_out, s->ord);
    if (s->left || s->taken == s->posted || s->fenced || sim_tantrum(s)) {
        return false;
    }
    if (is_request(op)) {
        if (!reads_room) {
            return false;
        }
        s->reads_out++;
        s->fenced = op->read_back;
    }
    if (op->words) {
        memcpy(op->before, s->remote_words, sizeof(op->before));
    }
    if (sim_is_atomic(op) && op->fault == SIM_SOUND) {
        i = (uint32_t)op->msg.atomic.to / 8;
        s->remote_words[i] =
            sim_atomic_result(op->msg.kind, &op->msg.atomic.args, s->remote_words[i]);
    }
    if (op->msg.kind == SG_MSG_WRITE && op->fault == SIM_SOUND) {
        for (i = 0; i < op->msg.write.length; i++) {
            s->remote[op->at + i] = octet_of(s, op->seq, i);
        }
    }
    sim_note(w, "%u.%u op %u: kind %d, %u octets, fault %d", s->pair->index, s->node, op->seq,
             op->msg.kind, sg_msg_length(&op->msg), op->fault);
    s->taken++;
    *msg = op->msg;
    return true;
}

/* Lends octets in up to five pieces. */
static int lend(struct sim_world *w, struct sim_side *s, uint32_t len, struct iovec *iov)
{
    uint32_t at = 0;
    int n = 0;

    s->lent++;
    while (at < len) {
        uint32_t take = n == 4 ? len - at : 1 + sim_below(w, len - at);

        iov[n].iov_base = w->lend + at;
        iov[n++].iov_len = take;
        at += take;
    }
    return n;
}

static int up_gather(void *user, const struct sg_msg *msg, uint32_t off, uint32_t len,
                     struct iovec *iov)
{
    struct sim_side *s = sim_heard(user, "gather", false);
    struct sim_world *w = world_of(s);
    const struct sim_op *op = &s->ops[msg->cookie];
    uint32_t i;

    SIM_CHECK(w, len && off + len <= sg_msg_length(msg), "gather beyond the message");
    if (s->left) {
        return SG_GATHER_CLOSED;
    }
    if (op->fault == SIM_GATHER_FAILS && off + len == sg_msg_length(msg)) {
        return -1;
    }
    for (i = 0; i < len; i++) {
        w->lend[i] = octet_of(s, op->seq, off + i);
    }
    return lend(w, s, len, iov);
}

static void up_gathered(void *user, struct iovec *iov, int n)
{
    struct sim_side *s = user;

    (void)iov;
    (void)n;
    s->lent--;
}

static void up_sent(void *user, const struct sg_msg *msg)
{
    struct sim_side *s = sim_heard(user, "sent", false);
    struct sim_world *w = world_of(s);

    while (s->completed < s->taken && is_request(&s->ops[s->completed])) {
        s->completed++;
    }
    SIM_CHECK(w, s->completed < s->taken && s->ops[s->completed].seq == msg->cookie,
              "%u.%u: op %u completed out of turn", s->pair->index, s->node, (unsigned)msg->cookie);
    s->completed++;
    sim_tantrum(s);
}

/* The oldest request of ours that is not answered. */
static const struct sim_op *answered(struct sim_side *s)
{
    while (s->answered < s->taken && !is_request(&s->ops[s->answered])) {
        s->answered++;
    }
    SIM_CHECK(world_of(s), s->answered < s->taken, "an answer to nothing");
    s->reads_out--;
    world_of(s)->delivered++;
    return &s->ops[s->answered++];
}

static void up_read_done(void *user, uint32_t octets)
{
    struct sim_side *s = sim_heard(user, "read_done", true);
    struct sim_world *w = world_of(s);
    const struct sim_op *op = answered(s);
    const uint8_t *want = (op->read_back ? s->remote : s->peer->source) + op->at;
    uint8_t words[8 * SIM_WORDS];
    unsigned i;

    SIM_CHECK(w, op->msg.kind == SG_MSG_READ_REQ, "a Read done before its turn");
    sim_check_response(s, op);
    for (i = 0; op->words && i < SIM_WORDS; i++) {
        sg_put_le64(words + 8 * i, op->before[i]);
        want = words;
    }
    SIM_CHECK(w, octets == op->msg.read.length, "Read of %u octets brought %u", op->msg.read.length,
              octets);
    SIM_CHECK(w, memcmp(s->sink + op->msg.read.sink_to, want, octets) == 0,
              "%u.%u: op %u: Read%s brought wrong octets", s->pair->index, s->node, op->seq,
              op->read_back ? "-back"
              : op->words   ? " of words"
                            : "");
    if (op->read_back) {
        s->fenced = false;
        sg_conn_wake(s->c);
    }
    sim_tantrum(s);
}

static void up_atomic_done(void *user, enum sg_msg_kind kind, uint64_t original)
{
    struct sim_side *s = sim_heard(user, "atomic_done", true);
    const struct sim_op *op = answered(s);

    SIM_CHECK(world_of(s), op->msg.kind == kind, "an Atomic done before its turn");
    sim_check_response(s, op);
    SIM_CHECK(world_of(s), original == op->before[op->msg.atomic.to / 8],
              "%u.%u: op %u: an Atomic found something else", s->pair->index, s->node, op->seq);
    sim_tantrum(s);
}

/* Reception. */

enum sg_mem_status sim_area_of(struct sim_side *s, uint32_t stag, uint64_t to, uint64_t n,
                               uint8_t **p)
{
    uint64_t size = SIM_AREA;

    *p = s->area;
    if (stag == SIM_STAG_WORDS) {
        *p = (uint8_t *)s->words;
        size = sizeof(s->words);
    } else if (stag == SIM_STAG_SOURCE || stag == SIM_STAG_SINK) {
        *p = stag == SIM_STAG_SOURCE ? s->source : s->sink;
        size = SIM_SOURCE;
    } else if (stag != SIM_STAG_AREA &&
               (stag < SIM_STAG_EXTRA || stag >= SIM_STAG_EXTRA + SIM_EXTRA)) {
        return SG_MEM_STAG;
    }
    *p += to;
    return sg_range_ok(to, n, size) ? SG_MEM_OK : SG_MEM_BOUNDS;
}

static enum sg_mem_status up_place_write(void *user, uint32_t stag, uint64_t to, const uint8_t *p,
                                         size_t n)
{
    struct sim_side *s = sim_heard(user, "place_write", true);
    uint8_t *at;
    enum sg_mem_status st = sim_area_of(s, stag, to, n, &at);
    const struct sg_msg *m = &sim_arriving(s)->msg;

    SIM_CHECK(world_of(s),
              m->kind == SG_MSG_WRITE && m->write.stag == stag &&
                  sg_range_ok(to - m->write.to, n, m->write.length),
              "%u.%u: a Write arrives as another message", s->pair->index, s->node);
    if (st == SG_MEM_OK) {
        SIM_CHECK(world_of(s),
                  stag != SIM_STAG_SOURCE && stag != SIM_STAG_SINK && stag != SIM_STAG_WORDS,
                  "Write to STag %x", stag);
        memcpy(at, p, n);
    }
    return st;
}

static enum sg_mem_status up_place_read(void *user, const struct sg_read_sink *sink, uint32_t off,
                                        const uint8_t *p, size_t n)
{
    struct sim_side *s = sim_heard(user, "place_read", true);
    uint8_t *at;

    SIM_CHECK(world_of(s),
              sink->stag == SIM_STAG_SINK &&
                  sim_area_of(s, sink->stag, sink->to + off, n, &at) == SG_MEM_OK,
              "Response to a wrong place");
    memcpy(at, p, n);
    return SG_MEM_OK;
}

static enum sg_recv_status up_place_recv(void *user, uint32_t msn, uint32_t mo, const uint8_t *p,
                                         size_t n)
{
    struct sim_side *s = sim_heard(user, "place_recv", true);

    SIM_CHECK(world_of(s), msn == s->received + 1, "%u.%u: MSN %u after %u Sends", s->pair->index,
              s->node, msn, s->received);
    SIM_CHECK(world_of(s), is_untagged(sim_arriving(s)), "%u.%u: a Send arrives as another message",
              s->pair->index, s->node);
    if (!sg_range_ok(mo, n, SIM_RECV)) {
        return SG_RECV_TOO_LONG;
    }
    if (n) {
        memcpy(s->recv + mo, p, n);
    }
    return SG_RECV_OK;
}

/* Replays the peer's Writes up to its next Send or Immediate Data, which must be this one. */
static const struct sim_op *next_send(struct sim_side *s)
{
    const struct sim_side *from = s->peer;
    uint32_t i;

    while (s->applied < from->taken) {
        const struct sim_op *op = &from->ops[s->applied++];

        if (is_untagged(op)) {
            return op;
        }
        for (i = 0; op->msg.kind == SG_MSG_WRITE && !op->fault && i < op->msg.write.length; i++) {
            s->shadow[op->at + i] = octet_of(from, op->seq, i);
        }
    }
    return NULL;
}

static void check_imm(struct sim_side *s, const struct sim_op *op, const struct sg_recv_info *info)
{
    const struct sim_op *before = op->seq ? op - 1 : NULL;
    uint32_t written = before && before->msg.kind == SG_MSG_WRITE ? before->msg.write.length : 0;

    SIM_CHECK(world_of(s),
              op->msg.kind == SG_MSG_IMM && !info->length &&
                  memcmp(info->imm, op->msg.imm.octets, SG_IMM_OCTETS) == 0 &&
                  info->write_len == written,
              "%u.%u: Immediate Data for op %u: behind a Write of %u octets", s->pair->index,
              s->node, op->seq, info->write_len);
}

static bool told_as_sent(const struct sg_recv_info *info, const struct sg_msg *m)
{
    if (m->kind == SG_MSG_IMM) {
        return info->solicited == m->imm.solicited && !info->invalidate && !info->inv_stag;
    }
    return info->solicited == m->send.solicited && info->invalidate == m->send.invalidate &&
           info->inv_stag == m->send.inv_stag;
}

static void up_recv_done(void *user, const struct sg_recv_info *info)
{
    struct sim_side *s = sim_heard(user, "recv_done", true);
    struct sim_world *w = world_of(s);
    const struct sim_op *op = next_send(s);
    uint32_t i;

    SIM_CHECK(w, op, "%u.%u: a Send that was never sent", s->pair->index, s->node);
    SIM_CHECK(w, op->fault == SIM_SOUND && op == sim_arriving(s), "a wrong Send was delivered");
    SIM_CHECK(w,
              info->msn == ++s->received && info->length == sg_msg_length(&op->msg) &&
                  told_as_sent(info, &op->msg),
              "%u.%u: Send op %u of %u octets delivered as MSN %u of %u octets", s->pair->index,
              s->node, op->seq, sg_msg_length(&op->msg), info->msn, info->length);
    if (info->immediate || op->msg.kind == SG_MSG_IMM) {
        check_imm(s, op, info);
    }
    for (i = 0; i < info->length; i++) {
        SIM_CHECK(w, s->recv[i] == octet_of(s->peer, op->seq, i), "Send op %u: octet %u is wrong",
                  op->seq, i);
    }
    SIM_CHECK(w, memcmp(s->area, s->shadow, SIM_AREA) == 0,
              "%u.%u: at Send op %u the area is not what the Writes before it made it",
              s->pair->index, s->node, op->seq);
    w->delivered++;
    sim_tantrum(s);
}

static enum sg_mem_status up_invalidate(void *user, uint32_t stag)
{
    struct sim_side *s = sim_heard(user, "invalidate", true);
    uint8_t *at;

    return sim_area_of(s, stag, 0, 0, &at);
}

static enum sg_mem_status up_check_source(void *user, uint32_t stag, uint64_t to, uint32_t len)
{
    struct sim_side *s = sim_heard(user, "check_source", true);
    const struct sg_msg *m = &sim_arriving(s)->msg;
    uint8_t *at;

    SIM_CHECK(world_of(s), m->kind == SG_MSG_READ_REQ && m->read.to == to && m->read.length == len,
              "%u.%u: a Read arrives as another message", s->pair->index, s->node);
    return sim_area_of(s, stag, to, len, &at);
}

static int up_gather_source(void *user, uint32_t stag, uint64_t to, uint32_t len, struct iovec *iov,
                            enum sg_mem_status *why)
{
    struct sim_side *s = sim_heard(user, "gather_source", false);
    struct sim_world *w = world_of(s);
    uint8_t *at;

    *why = s->left ? SG_MEM_CLOSED : sim_area_of(s, stag, to, len, &at);
    if (*why != SG_MEM_OK) {
        return -1;
    }
    memcpy(w->lend, at, len);
    return lend(w, s, len, iov);
}

const struct sg_engine_ops sim_ops = {
    .request = up_request,
    .request_gone = up_request_gone,
    .reply = up_reply,
    .established = up_established,
    .disconnected = up_disconnected,
    .closed = up_closed,
    .terminated = up_terminated,
    .faulted = up_faulted,
    .tx_ready = up_tx_ready,
    .next = up_next,
    .gather = up_gather,
    .gathered = up_gathered,
    .started = sim_up_started,
    .sent = up_sent,
    .read_done = up_read_done,
    .place_write = up_place_write,
    .place_read = up_place_read,
    .place_recv = up_place_recv,
    .recv_done = up_recv_done,
    .invalidate = up_invalidate,
    .check_source = up_check_source,
    .gather_source = up_gather_source,
    .atomic = sim_up_atomic,
    .atomic_done = up_atomic_done,
    .answered = sim_up_answered,
};

void sim_check_complete(struct sim_side *s)
{
    struct sim_world *w = world_of(s);
    unsigned i, sends = 0;

    for (i = 0; i < s->taken; i++) {
        sends += is_untagged(&s->ops[i]);
    }
    SIM_CHECK(w, s->peer->received == sends, "%u.%u: %u of %u Sends arrived", s->pair->index,
              s->node, s->peer->received, sends);
    next_send(s->peer);
    SIM_CHECK(w, memcmp(s->peer->area, s->remote, SIM_AREA) == 0, "%u.%u: not all Writes arrived",
              s->pair->index, s->node);
    for (i = 0; i < SIM_WORDS && !s->pair->early; i++) { /* behind a FIN no request is executed */
        SIM_CHECK(w, sg_get_le64(&s->peer->words[i]) == s->remote_words[i],
                  "%u.%u: word %u is not what the Atomics made it", s->pair->index, s->node, i);
    }
}
