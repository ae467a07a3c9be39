/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The run: each machine goes on until it comes to a received frame whose sending is not certain.
 *
 * A frame is certain if a sending is known and none can follow, or if nobody sends it.  When no
 * machine can go on, one frame is decided, in the order of enum decision; that is why the others
 * have come as far as they can.  In each round a machine sends at most half of the frames that are
 * remembered, so what the others have still to receive is not forgotten while they wait.
 *
 * A past is never too small.  What was sent is one of these:
 * - it was delivered and is remembered: the last sending of this content joins the past, and pasts
 *   of one machine only grow;
 * - it was delivered and is forgotten: all that its machine has done so far joins;
 * - it will be delivered: the reception is watched (order_watch.c), and another run raises its
 *   past;
 * - it is behind the end of a trace: BEYOND.
 */
#include "crash/order_impl.h"

enum decision {
    GOES_ON, /* no decision is needed */

    /* When no machine can go on, in this order. */
    FROM_NOBODY, /* or from behind the end of a trace */
    FRESH,       /* a sending is known that it did not receive yet */
    AGAIN,       /* it received that sending already; another may follow */
    RAISED,      /* likewise; but an earlier run found that one that follows is possible */
    AWAITED,     /* only sendings that follow are known */

    PAUSED, /* it has sent enough for this round */
    OVER,
};

struct order_machine {
    struct sg_crash_source source;
    const struct sg_trace_event *e; /* the next one; NULL: over */
    struct crash_sent_table sent;
    uint64_t past[SG_CRASH_MACHINES];
    uint64_t certain[SG_CRASH_MACHINES]; /* of the past: by frames of which there is only one */
    uint64_t frames;                     /* that it sends */
    uint32_t sent_in_round;
    bool waited; /* for all of a round */
    bool cut_short;
};

struct sg_crash_order {
    unsigned machines;
    bool some_cut_short;
    struct crash_frames *frames;
    struct crash_watches watches;
    struct order_machine machine[SG_CRASH_MACHINES];
    struct sg_crash_order_counts counts;
    sg_crash_ordered ordered;
    void *opaque;
};

static const struct sg_trace_event *reader_next(void *opaque)
{
    return sg_trace_next(opaque);
}

static bool reader_complete(void *opaque)
{
    return sg_trace_status(opaque) == SG_TRACE_END;
}

struct sg_crash_source sg_crash_reader_source(struct sg_trace_reader *r)
{
    return (struct sg_crash_source){
        .next = reader_next,
        .complete = reader_complete,
        .opaque = r,
    };
}

struct sg_crash_order *sg_crash_order_new(unsigned machines)
{
    struct sg_crash_order *o = g_new0(struct sg_crash_order, 1);

    sg_assert(machines && machines <= SG_CRASH_MACHINES);
    o->machines = machines;
    o->frames = crash_frames_new();
    crash_watches_init(&o->watches);
    return o;
}

void sg_crash_order_free(struct sg_crash_order *o)
{
    if (o) {
        for (unsigned i = 0; i < o->machines; i++) {
            crash_sent_fini(&o->machine[i].sent);
        }
        crash_frames_free(o->frames);
        crash_watches_fini(&o->watches);
        g_free(o);
    }
}

static bool is_frame(const struct sg_trace_event *e, unsigned direction)
{
    return e->kind == SG_TRACE_FRAME && e->arg == direction;
}

enum { RECEIVED, SENT };
enum { AHEAD = 16 };

static void scan_sent(struct sg_crash_order *o, unsigned machine, uint64_t key)
{
    bool repeated = crash_frames_add(o->frames, machine, key);

    for (unsigned j = 0; j < o->machines && !repeated; j++) {
        repeated = j != machine && crash_frames_find(o->frames, j, key) != FRAMES_NEVER;
    }
    if (repeated) {
        crash_repeated_add(&o->watches, key);
    }
    o->machine[machine].frames++;
}

void sg_crash_order_scan(struct sg_crash_order *o, unsigned machine, struct sg_crash_source source)
{
    uint64_t ahead[AHEAD], n = 0; /* frames that wait for the processor's cache */
    const struct sg_trace_event *e;

    while ((e = source.next(source.opaque))) {
        if (is_frame(e, SENT)) {
            if (n >= AHEAD) {
                scan_sent(o, machine, ahead[n % AHEAD]);
            }
            ahead[n % AHEAD] = crash_frame_key(e);
            crash_frames_prefetch(o->frames, ahead[n++ % AHEAD]);
        }
    }
    for (uint64_t i = n - SG_MIN(n, AHEAD); i < n; i++) {
        scan_sent(o, machine, ahead[i % AHEAD]);
    }
    o->counts.cut_short[machine] = !source.complete(source.opaque);
    o->machine[machine].cut_short = o->counts.cut_short[machine];
    o->some_cut_short |= o->counts.cut_short[machine];
}

/* ---- What a received frame may be ---- */

struct origin {
    uint64_t key;
    unsigned senders;   /* set of machines with a sending that is remembered */
    unsigned forgotten; /* that have sent it, but so long ago that it is not */
    unsigned later;     /* that will send it */
    bool fresh;         /* one of the sendings was not received yet */
    bool own;
};

static struct origin origin_of(struct sg_crash_order *o, unsigned i)
{
    struct origin from = { .key = crash_frame_key(o->machine[i].e) };

    for (unsigned j = 0; j < o->machines; j++) {
        struct crash_sent_table *t = &o->machine[j].sent;
        const struct crash_sent *s = crash_sent_find(t, from.key);
        enum crash_frames_when when;

        if (j == i) {
            from.own = s;
            continue;
        }
        if (s) {
            from.senders |= 1u << j;
            from.fresh |= crash_sent_taken(t, s)[i] < s->sends;
        }
        when = crash_frames_find(o->frames, j, from.key);
        if (o->machine[j].e && when == FRAMES_LATER) {
            from.later |= 1u << j;
        } else if (!s && when != FRAMES_NEVER) {
            from.forgotten |= 1u << j;
        }
    }
    return from;
}

/* An earlier run found causes of this reception that have not been delivered yet. */
static bool awaits_causes(struct sg_crash_order *o, unsigned i)
{
    const struct crash_watch *x = crash_watch_find(&o->watches, i, o->machine[i].e->number);
    bool awaits = false;

    for (unsigned j = 0; x && j < o->machines; j++) {
        awaits |= j != i && o->machine[j].e && o->machine[j].past[j] < x->raise[j];
    }
    return awaits;
}

static enum decision decision_of(struct sg_crash_order *o, unsigned i, const struct origin *from)
{
    if (awaits_causes(o, i)) {
        return from->senders | from->forgotten ? RAISED : AWAITED;
    }
    if (from->later) {
        return from->fresh ? FRESH : from->senders | from->forgotten ? AGAIN : AWAITED;
    }
    if (from->fresh) {
        return GOES_ON;
    }
    /* Repeated by the network, its own, or a stranger's: unless it is from behind an end. */
    return o->some_cut_short ? FROM_NOBODY : GOES_ON;
}

static void join(struct sg_crash_order *o, uint64_t *past, const uint64_t *other)
{
    for (unsigned k = 0; k < o->machines; k++) {
        past[k] = SG_MAX(past[k], other[k]);
    }
}

/* All machines that may have sent it: their sendings are in the past. */
static void receive_from(struct sg_crash_order *o, unsigned i, const struct origin *from)
{
    struct order_machine *m = &o->machine[i];
    bool certain = !from->later && !from->forgotten && sg_is_pow2(from->senders) &&
                   !crash_is_repeated(&o->watches, from->key);

    for (unsigned j = 0; j < o->machines; j++) {
        struct crash_sent_table *t = &o->machine[j].sent;
        struct crash_sent *s = from->senders >> j & 1 ? crash_sent_find(t, from->key) : NULL;

        if (s) {
            crash_sent_taken(t, s)[i]++;
            join(o, m->past, crash_sent_past(t, s));
        } else if (from->forgotten >> j & 1) {
            join(o, m->past, o->machine[j].past);
        }
        if (s && certain) {
            join(o, m->certain, crash_sent_certain(t, s));
        }
    }
}

/* Adds what earlier runs found; returns whether that is something.  This run may find more. */
static bool watch(struct sg_crash_order *o, unsigned i, const struct origin *from)
{
    struct order_machine *m = &o->machine[i];
    struct crash_watch *x = crash_watch_find(&o->watches, i, m->e->number);
    bool raised = x;

    if (x) {
        join(o, m->past, x->raise);
    }
    if (!from->later) {
        return raised;
    }
    x = crash_watch(&o->watches, i, m->e->number, from->key, from->later);
    if (x) {
        memcpy(x->had, m->past, sizeof(x->had));
        return raised;
    }
    o->counts.given_up++;
    for (unsigned j = 0; j < o->machines; j++) {
        m->past[j] = j == i ? m->past[j] : SG_CRASH_BEYOND;
    }
    return raised;
}

/* The frame is received. */
static void receive(struct sg_crash_order *o, unsigned i, enum decision why,
                    const struct origin *from)
{
    struct order_machine *m = &o->machine[i];
    bool beyond = false, matched = from->senders | from->forgotten;

    receive_from(o, i, from);
    for (unsigned j = 0; j < o->machines; j++) {
        if ((why != GOES_ON && why != FRESH) && j != i && o->machine[j].cut_short &&
            !o->machine[j].e) {
            m->past[j] = SG_CRASH_BEYOND;
            beyond = true;
        }
    }
    matched |= watch(o, i, from);
    o->counts.matched += matched;
    o->counts.own += !matched && from->own;
    o->counts.unmatched += !matched && !from->own;
    o->counts.ambiguous += matched && (from->later || crash_is_repeated(&o->watches, from->key));
    o->counts.beyond += !matched && beyond;
}

/* ---- The run ---- */

static void take_next(struct sg_crash_order *o, struct order_machine *m)
{
    m->e = m->source.next(m->source.opaque);
    if (m->e && m->e->kind == SG_TRACE_FRAME) {
        uint64_t key = crash_frame_key(m->e);

        crash_frames_prefetch(o->frames, key);
        for (unsigned j = 0; j < o->machines; j++) {
            crash_sent_prefetch(&o->machine[j].sent, key);
        }
    }
}

/* Delivers the machine's event and takes the next one. */
static void deliver(struct sg_crash_order *o, unsigned i)
{
    struct order_machine *m = &o->machine[i];
    const struct sg_trace_event *e = m->e;

    m->past[i] = m->certain[i] = e->number;
    o->counts.events++;
    o->counts.received += is_frame(e, RECEIVED);
    o->ordered(o->opaque, i, e, m->past);
    if (is_frame(e, SENT)) {
        uint64_t key = crash_frame_key(e);

        o->counts.sent++;
        m->sent_in_round++;
        crash_frames_sent(o->frames, i, key);
        crash_sent_put(&m->sent, key, m->past, m->certain);
        crash_watch_sent(&o->watches, i, o->machines, key, m->past, m->certain);
    }
    m->waited = false;
    take_next(o, m);
}

/* What the machine waits for, or GOES_ON. */
static enum decision look(struct sg_crash_order *o, unsigned i, struct origin *from)
{
    struct order_machine *m = &o->machine[i];

    if (!m->e) {
        return OVER;
    }
    if (is_frame(m->e, SENT) && m->sent_in_round >= m->sent.capacity / 2) {
        return PAUSED;
    }
    if (!is_frame(m->e, RECEIVED)) {
        return GOES_ON;
    }
    *from = origin_of(o, i);
    return decision_of(o, i, from);
}

/* As far as the machine can without a decision.  Returns whether that was an event at least. */
static bool go_on(struct sg_crash_order *o, unsigned i)
{
    struct origin from;
    bool moved = false;

    while (look(o, i, &from) == GOES_ON) {
        if (is_frame(o->machine[i].e, RECEIVED)) {
            receive(o, i, GOES_ON, &from);
        }
        deliver(o, i);
        moved = true;
    }
    return moved;
}

/*
 * Is it the machine's turn, given those that can send more in the next round?  A sending that
 * must be one that follows is awaited; one that is likely to be is awaited for a round.
 */
static bool may_decide(const struct order_machine *m, enum decision what, const struct origin *from,
                       unsigned paused)
{
    switch (what) {
    case FROM_NOBODY:
    case FRESH:
        return true;
    case AGAIN:
        return !(from->later & paused) || m->waited;
    case RAISED:
    case AWAITED:
        return !paused;
    default:
        return false;
    }
}

/* No machine goes on: decides one frame, or begins a round.  False: all is over. */
static bool decide(struct sg_crash_order *o)
{
    struct origin from[SG_CRASH_MACHINES];
    enum decision what[SG_CRASH_MACHINES], best = OVER;
    unsigned paused = 0, chosen = 0;

    for (unsigned i = 0; i < o->machines; i++) {
        what[i] = look(o, i, &from[i]);
        paused |= what[i] == PAUSED ? 1u << i : 0;
    }
    for (unsigned i = 0; i < o->machines; i++) {
        /* What strangers sent to a machine that was cut short first: its end comes early. */
        bool first = what[i] == best && best == FROM_NOBODY && o->machine[i].cut_short &&
                     !o->machine[chosen].cut_short;

        if ((what[i] < best || first) && may_decide(&o->machine[i], what[i], &from[i], paused)) {
            best = what[i];
            chosen = i;
        }
    }
    if (best < PAUSED) {
        receive(o, chosen, best, &from[chosen]);
        deliver(o, chosen);
        return true;
    }
    for (unsigned i = 0; i < o->machines; i++) {
        o->machine[i].waited = what[i] < PAUSED;
        o->machine[i].sent_in_round = 0;
    }
    return paused;
}

/* Back to the beginning of all traces. */
static void rewind_all(struct sg_crash_order *o, const struct sg_crash_source *source)
{
    struct sg_crash_order_counts counts = { .runs = o->counts.runs + 1 };

    memcpy(counts.cut_short, o->counts.cut_short, sizeof(counts.cut_short));
    o->counts = counts;
    for (unsigned i = 0; i < o->machines; i++) {
        struct order_machine *m = &o->machine[i];

        memset(m->past, 0, sizeof(m->past));
        memset(m->certain, 0, sizeof(m->certain));
        m->sent_in_round = 0;
        m->waited = false;
        m->source = source[i];
        if (counts.runs > 1) {
            crash_sent_clear(&m->sent);
        } else {
            crash_sent_init(&m->sent, o->machines, m->frames);
        }
    }
    for (unsigned i = 0; i < o->machines; i++) {
        take_next(o, &o->machine[i]);
    }
    if (counts.runs > 1) {
        crash_frames_rewind(o->frames);
        crash_watches_rewind(&o->watches);
    }
}

bool sg_crash_order_run(struct sg_crash_order *o, const struct sg_crash_source *source,
                        sg_crash_ordered ordered, void *opaque)
{
    bool moved;

    rewind_all(o, source);
    o->ordered = ordered;
    o->opaque = opaque;
    do {
        moved = false;
        for (unsigned i = 0; i < o->machines; i++) {
            moved |= go_on(o, i);
        }
    } while (moved || decide(o));
    return crash_watches_settled(&o->watches, o->machines);
}

const struct sg_crash_order_counts *sg_crash_order_counts(const struct sg_crash_order *o)
{
    return &o->counts;
}
