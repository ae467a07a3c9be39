/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All timelines at once; most events concern none of them, which their kind tells. */
#include <string.h>

#include "crash/timeline.h"
#include "staghorn/io.h"

enum {
    ADDRESS = 16,
    PORT = 2,
    NO_MACHINE = SG_CRASH_MACHINES,
    OTHERS = SG_CRASH_TIMELINE_EVENTS - SG_CRASH_STORY_EVENTS - 2, /* with the acknowledgement */
};

/* The frames that a machine received last. */
struct plot_ring {
    uint64_t total;
    struct sg_crash_frame frame[SG_CRASH_TIMELINE_FRAMES];
};

/* One end of a connection. */
struct plot_end {
    unsigned machine; /* NO_MACHINE: not known */
    uint64_t unit, qpn;
};

struct plot {
    struct sg_crash_timeline line;
    const struct sg_crash_story *story;     /* NULL: it is not told */
    const struct sg_crash_promise *promise; /* NULL: none was in force */
    guint next;                             /* of the story's events */
    struct plot_end store;                  /* the target's end of the store's connection */
    struct plot_end peer;
    uint8_t peer_ends[SG_CRASH_ENDS];
    bool open, stored, said, over; /* over: the target's part is */
    bool fails;                    /* it ends with a power failure */
    uint8_t stage;
};

struct sg_crash_timelines {
    unsigned target, count;
    struct plot_ring ring[SG_CRASH_MACHINES];
    struct plot plot[SG_CRASH_STORIES];
};

static bool is_at(const struct plot_end *end, unsigned machine, const struct sg_trace_event *e)
{
    return end->machine == machine && end->unit == e->unit && end->qpn == e->qpn;
}

/* ---- Connections and frames ---- */

/* The same connection, seen from its other end. */
static void swap_ends(uint8_t *to, const uint8_t *from)
{
    memcpy(to, from + ADDRESS, ADDRESS);
    memcpy(to + ADDRESS, from, ADDRESS);
    memcpy(to + 2 * ADDRESS, from + 2 * ADDRESS + PORT, PORT);
    memcpy(to + 2 * ADDRESS + PORT, from + 2 * ADDRESS, PORT);
}

/* An earlier connection of these addresses is another one: what it did is no part of this. */
static void connected(struct plot *p, unsigned machine, const struct sg_trace_event *e)
{
    if (!p->stored && p->story->connected && !memcmp(e->data, p->peer_ends, SG_CRASH_ENDS)) {
        p->peer = (struct plot_end){ machine, e->unit, e->qpn };
        g_array_set_size(p->line.events, 0);
        p->line.omitted = 0;
        p->open = false;
    }
}

static void received(struct plot_ring *r, const struct sg_trace_event *e)
{
    r->frame[r->total++ % SG_CRASH_TIMELINE_FRAMES] =
        (struct sg_crash_frame){ .event = e->number, .len = e->len, .crc = (uint32_t)e->value };
}

static void keep_frames(struct sg_crash_timelines *x, unsigned machine, const uint8_t *ends,
                        struct sg_crash_carriers *c)
{
    const struct plot_ring *r = &x->ring[machine];

    c->known = true;
    c->machine = (uint8_t)machine;
    memcpy(c->ends, ends, SG_CRASH_ENDS);
    c->count = (unsigned)SG_MIN(r->total, (uint64_t)SG_CRASH_TIMELINE_FRAMES);
    for (unsigned i = 0; i < c->count; i++) {
        c->frame[i] = r->frame[(r->total - c->count + i) % SG_CRASH_TIMELINE_FRAMES];
    }
}

/* ---- What an event means ---- */

/* The request whose completion is the acknowledgement. */
static bool is_promise(const struct plot *p, const struct sg_trace_event *e)
{
    return p->promise && e->ordinal && e->ordinal == p->promise->ordinal;
}

static const char *at_requester(const struct plot *p, const struct sg_trace_event *e)
{
    bool own = e->ordinal && e->ordinal == p->story->ordinal;

    switch (e->kind) {
    case SG_TRACE_WORK:
        return own                     ? "the request is sent"
               : e->arg == SG_WR_FLUSH ? "a Flush is sent"
               : is_promise(p, e)      ? "the request of the acknowledgement is sent"
                                       : NULL;
    case SG_TRACE_ANSWERED:
        return e->value && e->value == p->story->ordinal ? "the response is sent" : NULL;
    case SG_TRACE_COMPLETED:
        return e->arg >= SG_WC_RECV    ? "a message is received"
               : own                   ? "the request's completion"
               : e->arg == SG_WC_FLUSH ? "a Flush's completion"
                                       : NULL;
    case SG_TRACE_DISCONNECTED:
        return "the connection ends";
    default:
        return NULL;
    }
}

static const char *at_target(const struct plot *p, const struct sg_trace_event *e)
{
    switch (e->kind) {
    case SG_TRACE_PLACE:
        return e->ordinal && e->ordinal == p->story->ordinal ? "a segment of the message is placed"
                                                             : NULL;
    case SG_TRACE_FLUSH_BEGIN:
        return "a Flush begins";
    case SG_TRACE_ANSWERED:
        return e->arg == SG_WR_FLUSH ? "the Flush is answered" : NULL;
    case SG_TRACE_DISCONNECTED:
        return "the connection ends";
    default:
        return NULL;
    }
}

static const char *meaning(const struct plot *p, unsigned machine, const struct sg_trace_event *e)
{
    const char *what = NULL;

    if (e->kind == SG_TRACE_MARK) {
        return "a mark";
    }
    if (is_at(&p->peer, machine, e)) {
        what = at_requester(p, e);
    }
    if (!what && is_at(&p->store, machine, e)) {
        what = at_target(p, e);
    }
    return what;
}

/* ---- Rows ---- */

/* Whether the earlier event sent the message that this event is about. */
static bool causes(const struct sg_crash_timeline_event *a, const struct sg_crash_timeline_event *e)
{
    if (a->machine == e->machine || !e->ordinal) {
        return false;
    }
    switch (e->kind) {
    case SG_TRACE_PLACE:
    case SG_TRACE_ATOMIC:
    case SG_TRACE_ATOMIC_WRITE:
    case SG_TRACE_FLUSH_BEGIN:
        return (a->kind == SG_TRACE_WORK && a->ordinal == e->ordinal) ||
               (a->kind == SG_TRACE_ANSWERED && e->kind == SG_TRACE_PLACE);
    case SG_TRACE_COMPLETED:
        return a->kind == SG_TRACE_ANSWERED && a->ordinal == e->ordinal;
    default:
        return false;
    }
}

static uint16_t cause_of(const struct sg_crash_timeline *line,
                         const struct sg_crash_timeline_event *e)
{
    for (guint i = line->events->len; i-- > 0;) {
        if (causes(&g_array_index(line->events, struct sg_crash_timeline_event, i), e)) {
            return (uint16_t)(i + 1);
        }
    }
    return 0;
}

/* always: a row of the story, or the acknowledgement.  Returns whether it is a row. */
static bool add(struct plot *p, unsigned machine, const struct sg_trace_event *e, const char *what,
                bool always)
{
    bool own = is_at(&p->peer, machine, e) || is_at(&p->store, machine, e);
    bool receives = e->kind == SG_TRACE_COMPLETED && e->arg >= SG_WC_RECV;
    struct sg_crash_timeline_event row = {
        .event = e->number,
        .machine = (uint8_t)machine,
        .kind = e->kind,
        .ordinal = own && !receives ? e->ordinal : 0,
        .stage = p->stage,
        .what = what,
    };

    if (!always && p->line.events->len >= OTHERS) {
        p->line.omitted++;
        return false;
    }
    row.cause = cause_of(&p->line, &row);
    g_array_append_val(p->line.events, row);
    return true;
}

/* The story's event of this number; NULL: none. */
static const struct sg_crash_story_event *story_event(struct plot *p, uint64_t number)
{
    const GArray *events = p->story->events;
    const struct sg_crash_story_event *s;

    while (p->next < events->len) {
        s = &g_array_index(events, struct sg_crash_story_event, p->next);
        if (s->event >= number) {
            return s->event == number ? s : NULL;
        }
        p->next++;
    }
    return NULL;
}

static bool of_target(struct sg_crash_timelines *x, struct plot *p, const struct sg_trace_event *e,
                      const char *what)
{
    const struct sg_crash_story_event *told = story_event(p, e->number);

    if (e->number == p->story->begins) {
        p->open = p->stored = true;
        if (p->story->connected) {
            keep_frames(x, x->target, p->story->ends, &p->line.store);
        }
    }
    if (told) {
        p->stage = told->stage;
    }
    return (told || (what && p->open)) && add(p, x->target, e, told ? told->what : what, told);
}

/* What the machine received before it knew. */
static void note_acknowledgement(struct sg_crash_timelines *x, struct plot *p, unsigned machine,
                                 const struct sg_trace_event *e)
{
    if (p->promise && !p->said && machine == p->promise->by && e->kind == SG_TRACE_COMPLETED &&
        is_at(&p->peer, machine, e)) {
        keep_frames(x, machine, p->peer_ends, &p->line.acknowledgement);
    }
}

/* Is this the store's message, at its sender? */
static bool sends(const struct plot *p, unsigned machine, const struct sg_trace_event *e)
{
    uint64_t ordinal = e->kind == SG_TRACE_WORK       ? e->ordinal
                       : e->kind == SG_TRACE_ANSWERED ? e->value
                                                      : 0;

    return ordinal && ordinal == p->story->ordinal && is_at(&p->peer, machine, e);
}

/* Is what another machine does no part of it any more? */
static bool is_over(const struct plot *p, unsigned machine)
{
    return p->fails ? p->over : p->said && (p->over || machine == p->promise->by);
}

static bool plot_event(struct sg_crash_timelines *x, struct plot *p, unsigned machine,
                       const struct sg_trace_event *e)
{
    bool says = p->promise && machine == p->promise->by && e->number == p->promise->event;
    bool added = false;
    const char *what = says ? "the acknowledgement" : meaning(p, machine, e);

    if (e->kind == SG_TRACE_CONNECTED) {
        connected(p, machine, e);
    }
    note_acknowledgement(x, p, machine, e);
    if (machine == x->target) {
        added = !p->over && of_target(x, p, e, what);
    } else if (what) {
        p->open |= !p->stored && sends(p, machine, e);
        if (says || (p->open && !is_over(p, machine))) {
            added = add(p, machine, e, what, says);
        }
    }
    p->said |= says;
    return added;
}

/* ---- Interface ---- */

struct sg_crash_timelines *sg_crash_timelines_new(unsigned machines, unsigned target,
                                                  const GArray *bugs,
                                                  const struct sg_crash_promises *promises,
                                                  const struct sg_crash_teller *teller)
{
    struct sg_crash_timelines *x = g_new0(struct sg_crash_timelines, 1);
    const struct sg_crash_promise *promise;
    uint64_t count;

    sg_assert(machines <= SG_CRASH_MACHINES && target < machines);
    x->target = target;
    promise = sg_crash_promises_of(promises, target, &count);
    for (unsigned i = 0; i < bugs->len && i < SG_CRASH_STORIES; i++) {
        const struct sg_crash_bug *bug = &g_array_index(bugs, struct sg_crash_bug, i);
        struct plot *p = &x->plot[x->count++];

        p->line.events = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_timeline_event));
        p->story = sg_crash_teller_story(teller, i);
        p->promise = bug->promise == SG_CRASH_NO_PROMISE ? NULL : &promise[bug->promise];
        p->fails = bug->fails;
        p->stage = SG_CRASH_NO_STAGE;
        p->store.machine = p->peer.machine = NO_MACHINE;
        if (p->story && p->story->connected) {
            p->store = (struct plot_end){ target, p->story->unit, p->story->qpn };
            swap_ends(p->peer_ends, p->story->ends);
        }
    }
    return x;
}

void sg_crash_timelines_free(struct sg_crash_timelines *x)
{
    for (unsigned i = 0; x && i < x->count; i++) {
        g_array_unref(x->plot[i].line.events);
    }
    g_free(x);
}

bool sg_crash_timelines_event(struct sg_crash_timelines *x, unsigned machine,
                              const struct sg_trace_event *e)
{
    bool frame = e->kind == SG_TRACE_FRAME, added = false;
    bool may_mean = e->kind >= SG_TRACE_CONNECTED && e->kind <= SG_TRACE_MARK && !frame;

    if (frame && !e->arg) {
        received(&x->ring[machine], e);
    }
    for (unsigned i = 0; i < x->count; i++) {
        struct plot *p = &x->plot[i];

        if (!p->story) {
            continue;
        }
        p->over |= machine == x->target && e->number > p->story->last;
        if (may_mean || (machine == x->target && !p->over)) {
            added |= plot_event(x, p, machine, e);
        }
    }
    return added;
}

const struct sg_crash_timeline *sg_crash_timeline(const struct sg_crash_timelines *x, unsigned bug)
{
    return x && bug < x->count && x->plot[bug].story ? &x->plot[bug].line : NULL;
}
