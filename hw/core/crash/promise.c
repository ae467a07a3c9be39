/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Acknowledgements and what they promise. */
#include "crash/promise_impl.h"
#include "persist/persist.h"
#include "staghorn/io.h"

static const char *const ack_name[SG_CRASH_ACKS] = {
    [SG_CRASH_ACK_FLUSH] = "flush",     [SG_CRASH_ACK_WRITE] = "write",
    [SG_CRASH_ACK_SEND] = "send",       [SG_CRASH_ACK_READ] = "read",
    [SG_CRASH_ACK_ATOMIC] = "atomic",   [SG_CRASH_ACK_ACKNOWLEDGED] = "acknowledged",
    [SG_CRASH_ACK_DURABLE] = "durable", [SG_CRASH_ACK_STATE] = "state",
};

static const char *const unmatched_text[SG_CRASH_UNMATCHED] = {
    [SG_CRASH_NO_CONNECTION] = "the beginning of the connection is not in the trace",
    [SG_CRASH_NO_PEER] = "the peer is not recorded",
    [SG_CRASH_NO_MESSAGE] = "the message is not known",
    [SG_CRASH_NOTHING_PLACED] = "nothing of it was placed or flushed in persistent memory",
    [SG_CRASH_BEHIND_END] = "a cause is behind the end of the target's trace",
    [SG_CRASH_NO_TARGET] = "the persistent memory is not examined",
    [SG_CRASH_BAD_MARK] = "the text of the mark is wrong",
    [SG_CRASH_LIMIT] = "a limit was reached",
};

const char *sg_crash_ack_name(enum sg_crash_ack kind)
{
    return ack_name[kind];
}

const char *sg_crash_unmatched_text(enum sg_crash_unmatched why)
{
    return unmatched_text[why];
}

void crash_count(struct sg_crash_promises *p, enum sg_crash_ack kind, enum sg_crash_unmatched why)
{
    p->counts.acknowledgements++;
    p->counts.kind[kind]++;
    if (why == SG_CRASH_UNMATCHED) {
        p->counts.matched++;
    } else {
        p->counts.unmatched[why]++;
    }
}

/* ---- Promises ---- */

static struct sg_crash_promise *promise_at(struct sg_crash_promises *p, uint32_t number)
{
    return &g_array_index(p->promises, struct sg_crash_promise, number);
}

static bool new_promise(struct sg_crash_promises *p, uint32_t *promise, unsigned target,
                        const struct crash_said *said, uint64_t from)
{
    struct sg_crash_promise fresh = {
        .from = from,
        .event = said->event,
        .wr_id = said->wr_id,
        .ordinal = said->ordinal,
        .qpn = said->qpn,
        .unit = said->unit,
        .target = (uint8_t)target,
        .by = said->by,
        .kind = said->kind,
        .first_range = (uint64_t)p->promises->len << 1 | !said->past,
    };

    if (p->promises->len == SG_CRASH_PROMISES) {
        p->counts.dropped++;
        return false;
    }
    g_array_append_val(p->promises, fresh);
    *promise = p->promises->len;
    return true;
}

bool crash_promise_add(struct sg_crash_promises *p, uint32_t *promise, unsigned target,
                       const struct crash_said *said, uint64_t from,
                       const struct sg_crash_range *range)
{
    struct crash_kept kept, *last = NULL;

    if (!*promise && !new_promise(p, promise, target, said, from)) {
        return false;
    }
    if (!range) {
        return true;
    }
    if (p->kept->len) {
        last = &g_array_index(p->kept, struct crash_kept, p->kept->len - 1);
    }
    if (last && last->promise == *promise && last->range.placed == range->placed &&
        last->range.addr + last->range.len == range->addr) {
        last->range.len += range->len;
        return true;
    }
    if (p->kept->len == SG_CRASH_RANGES) {
        p->counts.dropped++;
        return false;
    }
    kept = (struct crash_kept){ *range, *promise };
    g_array_append_val(p->kept, kept);
    promise_at(p, *promise - 1)->range_count++;
    return true;
}

/* The piece is promised. */
static void take_piece(struct sg_crash_promises *p, struct crash_end *t,
                       const struct crash_said *said, uint32_t n, uint32_t *promise)
{
    const struct crash_piece *x = &p->pieces.all[n];
    struct sg_crash_range range = { x->addr, x->len, x->placed };

    crash_promise_add(p, promise, t->machine, said, said->past[t->machine], &range);
    crash_piece_free(p, t, n);
}

/* From the front of a list. */
static uint32_t take_first(struct sg_crash_promises *p, struct crash_end *t, unsigned list,
                           const struct crash_said *said, uint64_t last, uint32_t *promise)
{
    uint32_t n, count = 0;

    while ((n = t->head[list]) && p->pieces.all[n].ordinal <= last) {
        take_piece(p, t, said, n, promise);
        count++;
    }
    return count;
}

/* From the back of a list: one request is mostly one of the last. */
static uint32_t take_some(struct sg_crash_promises *p, struct crash_end *t, unsigned list,
                          const struct crash_said *said, uint64_t first, uint64_t last,
                          uint32_t *promise)
{
    uint32_t next, count = 0;

    for (uint32_t n = t->tail[list]; n && p->pieces.all[n].ordinal >= first; n = next) {
        if (!crash_step(p, 1)) {
            p->counts.dropped++;
            break;
        }
        next = p->pieces.all[n].prev;
        if (p->pieces.all[n].ordinal <= last) {
            take_piece(p, t, said, n, promise);
            count++;
        }
    }
    return count;
}

uint32_t crash_take(struct sg_crash_promises *p, struct crash_end *t, const struct crash_said *said,
                    uint64_t first, uint64_t last, uint32_t *promise)
{
    uint32_t count = 0;

    for (unsigned list = LIST_WRITES; list <= LIST_ATOMS; list++) {
        count += first == 1 ? take_first(p, t, list, said, last, promise)
                            : take_some(p, t, list, said, first, last, promise);
    }
    return count;
}

/* ---- Acknowledgements that wait for placements ---- */

static struct crash_ack *ack_at(const struct crash_acks *a, uint32_t i)
{
    return &a->at[(a->head + i) % a->room];
}

/* Room for one more; the oldest one goes if there may be no more. */
static void make_room(struct sg_crash_promises *p, struct crash_acks *a, uint32_t max)
{
    uint32_t room = a->room ? a->room * 2 : 16;
    struct crash_ack *at;

    if (a->count < a->room) {
        return;
    }
    if (a->room && (a->room == max || p->all_acks + room > CRASH_ALL_ACKS)) {
        a->head++;
        a->count--;
        return;
    }
    at = g_new(struct crash_ack, room);
    for (uint32_t i = 0; i < a->count; i++) {
        at[i] = *ack_at(a, i);
    }
    g_free(a->at);
    p->all_acks += room - a->room;
    a->at = at;
    a->head = 0;
    a->room = room;
}

void crash_expect(struct sg_crash_promises *p, struct crash_end *t, const struct crash_said *said,
                  uint64_t first, uint64_t last, uint32_t promise)
{
    struct crash_acks *a = first == 1 ? &t->acks : &t->exact;

    if (first == 1 && a->count && ack_at(a, a->count - 1)->last >= last) {
        return;
    }
    make_room(p, a, first == 1 ? CRASH_ACKS_MAX : CRASH_EXACT_MAX);
    *ack_at(a, a->count++) = (struct crash_ack){
        .first = first,
        .last = last,
        .said = *said,
        .from = said->past[t->machine],
        .promise = promise,
    };
    ack_at(a, a->count - 1)->said.past = NULL;
}

/* The first acknowledgement of this message, or NULL. */
static struct crash_ack *find_ack(struct sg_crash_promises *p, struct crash_end *t,
                                  uint64_t ordinal)
{
    struct crash_ack *found = NULL, *x;
    uint32_t low = 0, high = t->acks.count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (ack_at(&t->acks, middle)->last < ordinal) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < t->acks.count) {
        found = ack_at(&t->acks, low);
    }
    for (uint32_t i = 0; i < t->exact.count && crash_step(p, 1); i++) {
        x = ack_at(&t->exact, i);
        if (x->first <= ordinal && ordinal <= x->last &&
            (!found || x->said.event < found->said.event)) {
            found = x;
        }
    }
    return found;
}

/* ---- Events at the target ---- */

static void placed(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e,
                   uint64_t len)
{
    struct crash_end *t;
    struct crash_ack *ack;

    if (!p->machine[machine].target || p->machine[machine].frozen || !len) {
        return;
    }
    p->counts.placements++;
    t = crash_end_of(p, machine, e->unit, e->qpn);
    if (!t || !e->ordinal || len - 1 > UINT64_MAX - e->addr) {
        p->counts.placements_unknown++;
        return;
    }
    if (!t->peer) {
        p->counts.placements_single++;
        return;
    }
    ack = find_ack(p, t, e->ordinal);
    if (ack) {
        struct sg_crash_range range = { e->addr, len, e->number };

        crash_promise_add(p, &ack->promise, machine, &ack->said, ack->from, &range);
    } else {
        crash_piece_placed(p, t, e->addr, len, e->ordinal, e->number, e->kind != SG_TRACE_PLACE);
    }
}

static void on_place(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e,
                     const char *name, const uint64_t *past)
{
    placed(p, machine, e, e->len);
}

static void on_atomic_write(struct sg_crash_promises *p, unsigned machine,
                            const struct sg_trace_event *e, const char *name, const uint64_t *past)
{
    placed(p, machine, e, e->status ? 0 : e->len);
}

/* One that finds another value than expected stores nothing. */
static void on_atomic(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e,
                      const char *name, const uint64_t *past)
{
    placed(p, machine, e, e->status || e->found != e->value ? 0 : SG_PERSIST_ATOM);
}

static void on_flush_begin(struct sg_crash_promises *p, unsigned machine,
                           const struct sg_trace_event *e, const char *name, const uint64_t *past)
{
    struct crash_end *t = crash_end_of(p, machine, e->unit, e->qpn);

    if (t) {
        t->flush.ordinal = e->arg & SG_FLUSH_PERSISTENT ? e->ordinal : 0;
        t->flush.event = e->number;
        t->flush.addr = e->addr;
        t->flush.len = e->len;
    }
}

static void on_flush_end(struct sg_crash_promises *p, unsigned machine,
                         const struct sg_trace_event *e, const char *name, const uint64_t *past)
{
    struct crash_end *t = crash_end_of(p, machine, e->unit, e->qpn);

    if (!t) {
        return;
    }
    if (t->peer && p->machine[machine].target && !p->machine[machine].frozen &&
        p->acks & 1u << SG_CRASH_ACK_FLUSH && t->flush.ordinal && t->flush.ordinal == e->ordinal &&
        t->flush.addr == e->addr && t->flush.len == e->len && !e->status) {
        crash_piece_flushed(p, t);
    }
    t->flush.ordinal = 0;
    t->flush_done = SG_MAX(t->flush_done, e->ordinal);
}

/* ---- Events at the requester ---- */

/* The kind of acknowledgement that this completion is, if the user chose it; or SG_CRASH_ACKS. */
static enum sg_crash_ack kind_of(const struct sg_crash_promises *p, uint64_t opcode)
{
    static const uint8_t kinds[] = {
        [SG_WC_SEND] = SG_CRASH_ACK_SEND + 1,       [SG_WC_SEND_IMM] = SG_CRASH_ACK_SEND + 1,
        [SG_WC_WRITE] = SG_CRASH_ACK_WRITE + 1,     [SG_WC_WRITE_IMM] = SG_CRASH_ACK_WRITE + 1,
        [SG_WC_READ] = SG_CRASH_ACK_READ + 1,       [SG_WC_FETCH_ADD] = SG_CRASH_ACK_ATOMIC + 1,
        [SG_WC_CMP_SWAP] = SG_CRASH_ACK_ATOMIC + 1, [SG_WC_ATOMIC_WRITE] = SG_CRASH_ACK_ATOMIC + 1,
        [SG_WC_FLUSH] = SG_CRASH_ACK_FLUSH + 1,
    };
    unsigned kind = opcode < SG_ARRAY_SIZE(kinds) ? kinds[opcode] : 0;

    return kind && p->acks >> (kind - 1) & 1 ? (enum sg_crash_ack)(kind - 1) : SG_CRASH_ACKS;
}

/* What Flushes up to this one promise; returns whether this one was executed. */
static bool take_flushed(struct sg_crash_promises *p, struct crash_end *t,
                         const struct crash_said *said, uint64_t last)
{
    uint64_t counted = 0;
    uint32_t n, promise = 0;

    while ((n = t->head[LIST_FLUSHED]) && p->pieces.all[n].flush <= last) {
        uint64_t flush = p->pieces.all[n].flush;

        if (p->pieces.all[n].len) {
            take_piece(p, t, said, n, &promise);
            continue;
        }
        if (flush != counted) {
            crash_count(p, SG_CRASH_ACK_FLUSH, SG_CRASH_UNMATCHED);
        }
        counted = flush;
        crash_piece_free(p, t, n);
    }
    return counted == last;
}

/* The connection's target, if it can be promised something; else NULL, and *why says why not. */
static struct crash_end *target_of(struct sg_crash_promises *p, struct crash_end *q,
                                   const uint64_t *past, enum sg_crash_unmatched *why)
{
    struct crash_end *t = q->peer;

    *why = !t                                    ? SG_CRASH_NO_PEER
           : !p->machine[t->machine].target      ? SG_CRASH_NO_TARGET
           : past[t->machine] == SG_CRASH_BEYOND ? SG_CRASH_BEHIND_END
                                                 : SG_CRASH_NOTHING_PLACED;
    return *why == SG_CRASH_NOTHING_PLACED ? t : NULL;
}

/*
 * Returns why the completion, which is of this kind, promises nothing.  SG_CRASH_UNMATCHED: it
 * does; that of a Flush has been counted then.
 */
static enum sg_crash_unmatched completed(struct sg_crash_promises *p, struct crash_end *q,
                                         const struct sg_trace_event *e, const uint64_t *past,
                                         enum sg_crash_ack kind)
{
    struct crash_said said = {
        .event = e->number,
        .wr_id = e->value,
        .past = past,
        .by = q->machine,
        .kind = SG_CRASH_ACK_FLUSH,
        .unit = q->unit,
        .qpn = q->qpn,
    };
    enum sg_crash_unmatched why;
    struct crash_end *t;
    uint32_t promise = 0;
    bool flushed;

    if (!crash_completed_request(p, q, e, &said.ordinal)) {
        return SG_CRASH_NO_MESSAGE;
    }
    if (said.ordinal > q->completed) {
        q->completed = said.ordinal;
        crash_end_dirty(p, q);
    }
    t = target_of(p, q, past, &why);
    if (!t) {
        return why;
    }
    flushed = take_flushed(p, t, &said, said.ordinal);
    if (kind == SG_CRASH_ACK_FLUSH) {
        return flushed ? SG_CRASH_UNMATCHED : SG_CRASH_NOTHING_PLACED;
    }
    if (kind != SG_CRASH_ACKS) {
        said.kind = (uint8_t)kind;
        why = crash_take(p, t, &said, 1, said.ordinal, &promise) ? SG_CRASH_UNMATCHED : why;
        crash_expect(p, t, &said, 1, said.ordinal, promise);
    }
    return why;
}

static void on_completed(struct sg_crash_promises *p, unsigned machine,
                         const struct sg_trace_event *e, const char *name, const uint64_t *past)
{
    struct crash_end *q = crash_end_of(p, machine, e->unit, e->qpn);
    enum sg_crash_ack kind = kind_of(p, e->arg);
    enum sg_crash_unmatched why = SG_CRASH_NO_CONNECTION;

    if (e->arg >= SG_WC_RECV) {
        return;
    }
    p->counts.completions++;
    p->counts.failed += e->status != 0;
    if (e->status) {
        return;
    }
    if (q) {
        why = completed(p, q, e, past, kind);
    }
    if (kind != SG_CRASH_ACKS && !(kind == SG_CRASH_ACK_FLUSH && why == SG_CRASH_UNMATCHED)) {
        crash_count(p, kind, why);
    }
}

static void on_connected(struct sg_crash_promises *p, unsigned machine,
                         const struct sg_trace_event *e, const char *name, const uint64_t *past)
{
    crash_connected(p, machine, e, past);
}

static void on_disconnected(struct sg_crash_promises *p, unsigned machine,
                            const struct sg_trace_event *e, const char *name, const uint64_t *past)
{
    crash_disconnected(p, machine, e);
}

static void on_freeze(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e,
                      const char *name, const uint64_t *past)
{
    p->machine[machine].frozen = true;
}

static void on_reset(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e,
                     const char *name, const uint64_t *past)
{
    crash_all_disconnected(p, machine, e);
    p->machine[machine].frozen = e->kind == SG_TRACE_CUT;
}

static void on_work(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e,
                    const char *name, const uint64_t *past)
{
    crash_work(p, machine, e);
}

/* ---- Interface ---- */

typedef void handler(struct sg_crash_promises *p, unsigned machine, const struct sg_trace_event *e,
                     const char *name, const uint64_t *past);

static handler *const handlers[SG_TRACE_KINDS] = {
    [SG_TRACE_PLACE] = on_place,
    [SG_TRACE_ATOMIC_WRITE] = on_atomic_write,
    [SG_TRACE_ATOMIC] = on_atomic,
    [SG_TRACE_FLUSH_BEGIN] = on_flush_begin,
    [SG_TRACE_FLUSH_END] = on_flush_end,
    [SG_TRACE_FREEZE] = on_freeze,
    [SG_TRACE_CUT] = on_reset,
    [SG_TRACE_RESTART] = on_reset,
    [SG_TRACE_RESET] = on_reset,
    [SG_TRACE_CONNECTED] = on_connected,
    [SG_TRACE_DISCONNECTED] = on_disconnected,
    [SG_TRACE_WORK] = on_work,
    [SG_TRACE_COMPLETED] = on_completed,
    [SG_TRACE_MARK] = crash_mark,
};

void sg_crash_promises_event(struct sg_crash_promises *p, unsigned machine,
                             const struct sg_trace_event *e, const char *name, const uint64_t *past)
{
    handler *f = handlers[e->kind];

    p->steps += CRASH_STEPS;
    if (f) {
        f(p, machine, e, name, past);
    }
}
