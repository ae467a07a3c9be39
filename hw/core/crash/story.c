/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One replay for all stories; each looks at its octet after events that may matter. */
#include <string.h>

#include "crash/numbers.h"
#include "crash/points.h"
#include "crash/replay.h"
#include "crash/story.h"

struct tale {
    struct sg_crash_story story;
    const struct sg_crash_bug *bug;
    const struct sg_crash_breach *breach;
    struct story_run *run;
    uint64_t binds; /* event behind which the promise does, or the power fails */
    bool begun;
    bool untold; /* another bug of the platform is told, in another past */
    uint8_t stage;
};

struct story_run {
    struct sg_crash_replay *replay; /* NULL: no story is told on this platform */
    struct sg_persist *p;
    struct sg_crash_numbers numbers;
    struct sg_crash_given_arrivals arrivals; /* the past that is told */
};

struct sg_crash_teller {
    unsigned platforms;
    uint64_t last;     /* of all stories */
    const char *wrong; /* static text: an event that its machine cannot have */
    struct story_run run[SG_CRASH_PLATFORMS];
    GHashTable *ends; /* of the target's connections, by adapter and queue pair */
    unsigned count;
    struct tale told[SG_CRASH_STORIES];
};

/* ---- What an event means for a store ---- */

static bool touches(const struct tale *t, uint64_t addr, uint64_t len)
{
    uint64_t line = t->breach->addr & ~(uint64_t)(SG_PERSIST_LINE - 1);

    return addr < line + SG_PERSIST_LINE && line < addr + len;
}

/* An RDMA Flush, seen from the store. */
static const char *flush_text(const struct tale *t, const struct sg_trace_event *e)
{
    const struct sg_crash_story *s = &t->story;
    bool own = s->by_adapter && e->qpn == s->qpn && e->unit == s->unit;

    if (e->addr > t->breach->addr || t->breach->addr - e->addr >= e->len) {
        return own ? "a Flush of another range" : "a Flush of another range, by another queue pair";
    }
    return own || !s->by_adapter ? "a Flush of its range"
                                 : "a Flush of its range, by another "
                                   "queue pair";
}

/* NULL: nothing. */
static const char *meaning(const struct tale *t, const struct sg_trace_event *e)
{
    switch (e->kind) {
    case SG_TRACE_STORE:
        return touches(t, e->addr, e->len) ? "a CPU stores to the line" : NULL;
    case SG_TRACE_PLACE:
    case SG_TRACE_ATOMIC_WRITE:
        return touches(t, e->addr, e->len) ? "an adapter writes to the line" : NULL;
    case SG_TRACE_ATOMIC:
        return touches(t, e->addr, SG_PERSIST_ATOM) ? "an atomic operation on the line" : NULL;
    case SG_TRACE_OTHER_WRITE:
        return touches(t, e->addr, e->len) ? "a device writes to the line" : NULL;
    case SG_TRACE_CPU_FLUSH:
        return touches(t, e->addr, 1) ? "a flush of the cache line" : NULL;
    case SG_TRACE_LOAD:
        return touches(t, e->addr, e->len) ? "a CPU reads the line" : NULL;
    case SG_TRACE_DMA_READ:
    case SG_TRACE_MEDIA_READ:
        return touches(t, e->addr, e->len) ? "an adapter reads the line" : NULL;
    case SG_TRACE_FLUSH_END: /* only here it makes anything certain */
        return flush_text(t, e);
    case SG_TRACE_DEEP_FLUSH:
        return touches(t, e->addr, e->len) ? "a deep flush of the line" : NULL;
    default:
        return NULL;
    }
}

/* ---- Stories ---- */

/* Of what the octet is now, or was when it had to be certain. */
static uint8_t stage_now(const struct tale *t, uint64_t event)
{
    const struct story_run *r = t->run;
    uint64_t seq = sg_crash_numbers_seq(&r->numbers, SG_MIN(event, t->breach->placed));
    uint64_t after =
        event < t->breach->placed ? 0 : sg_crash_promised_after(&r->numbers, t->breach);
    struct sg_persist_uncertain why;

    return sg_persist_uncertain(r->p, t->breach->addr, 1, after, seq, &why) > t->breach->addr
               ? SG_CRASH_CERTAIN
               : why.stage;
}

static void add(struct tale *t, uint64_t event, const char *what)
{
    struct sg_crash_story_event e = { .event = event, .stage = t->stage, .what = what };

    if (t->story.events->len < SG_CRASH_STORY_EVENTS || event == t->binds) {
        g_array_append_val(t->story.events, e);
    } else {
        t->story.omitted++;
    }
}

static uint64_t end_of(const struct sg_trace_event *e)
{
    return e->unit << 32 | e->qpn;
}

/* The ends of a connection are known as long as its queue pair has no other. */
static void connected(struct sg_crash_teller *x, const struct sg_trace_event *e)
{
    uint64_t key = end_of(e);

    g_hash_table_remove(x->ends, &key);
    if (g_hash_table_size(x->ends) < SG_CRASH_CONNECTIONS) {
        g_hash_table_insert(x->ends, g_memdup2(&key, sizeof(key)),
                            g_memdup2(e->data, SG_CRASH_ENDS));
    }
}

/* The store. */
static void begin(struct sg_crash_teller *x, struct tale *t, const struct sg_trace_event *e)
{
    struct sg_crash_story *s = &t->story;
    uint64_t key = end_of(e);
    const uint8_t *ends = g_hash_table_lookup(x->ends, &key);

    t->begun = true;
    s->by_adapter =
        e->kind == SG_TRACE_PLACE || e->kind == SG_TRACE_ATOMIC_WRITE || e->kind == SG_TRACE_ATOMIC;
    s->unit = e->unit;
    s->qpn = e->qpn;
    s->ordinal = e->ordinal;
    s->connected = s->by_adapter && ends;
    if (s->connected) {
        memcpy(s->ends, ends, sizeof(s->ends));
    }
}

static void tell(struct sg_crash_teller *x, struct tale *t, const struct sg_trace_event *e)
{
    uint8_t before = t->stage;
    const char *what = meaning(t, e);

    if (e->number == t->story.begins) {
        begin(x, t, e);
        what = "the store";
    }
    if (!t->begun || e->number > t->story.last) {
        return;
    }
    t->stage = stage_now(t, e->number);
    if (!what && t->stage != before) {
        what = "it moves on";
    }
    if (e->number == t->binds) {
        what = what            ? what
               : t->bug->fails ? "the last event before the power fails"
                               : "from here on it is promised";
    }
    if (what) {
        add(t, e->number, what);
    }
}

/* ---- Interface ---- */

static uint32_t all_of_it(void *opaque, const struct sg_persist_choice *q)
{
    return q->n - 1;
}

static const char *start_run(struct story_run *r, const struct sg_crash_exploration *what,
                             unsigned i, const GArray *early)
{
    struct sg_persist_config config;
    struct sg_persist_limits limits;
    const char *wrong = NULL;

    if (!r->replay) {
        sg_crash_platform_settings(&what->platform[i], &config, &limits);
        r->replay = sg_crash_replay_new_for(what->header, &config, &limits, &wrong);
        if (r->replay) {
            r->p = sg_crash_replay_domain(r->replay);
            r->arrivals.early = early;
            sg_persist_arrivals(r->p,
                                what->platform[i].arrivals == SG_CRASH_EARLY
                                    ? all_of_it
                                    : sg_crash_arrives_as_given,
                                &r->arrivals);
            sg_crash_numbers_init(&r->numbers, sg_persist_seq(r->p));
        }
    }
    return wrong;
}

struct sg_crash_teller *sg_crash_teller_new(const struct sg_crash_exploration *what,
                                            const GArray *bugs, const char **wrong)
{
    struct sg_crash_teller *x = g_new0(struct sg_crash_teller, 1);
    const struct sg_crash_promise *promise;
    uint64_t count;

    *wrong = NULL;
    x->platforms = what->platforms;
    x->ends = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    promise = sg_crash_promises_of(what->promises, what->target, &count);
    for (unsigned i = 0; i < bugs->len && i < SG_CRASH_STORIES && !*wrong; i++) {
        const struct sg_crash_bug *bug = &g_array_index(bugs, struct sg_crash_bug, i);
        struct tale *t = &x->told[x->count++];

        t->bug = bug;
        t->breach = bug->on[bug->least];
        t->run = &x->run[bug->least];
        t->stage = SG_CRASH_CERTAIN;
        t->story.events = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_story_event));
        t->story.begins = t->breach->lost ? t->breach->lost : t->breach->placed;
        t->binds = bug->fails ? bug->fails : promise[bug->promise].from;
        t->story.last = SG_MAX(t->binds, t->breach->until);
        x->last = SG_MAX(x->last, t->story.last);
        *wrong = start_run(t->run, what, bug->least, t->breach->early);
        t->untold = !sg_crash_same_past(t->run->arrivals.early, t->breach->early);
    }
    if (*wrong) {
        sg_crash_teller_free(x);
        return NULL;
    }
    return x;
}

void sg_crash_teller_free(struct sg_crash_teller *x)
{
    for (unsigned i = 0; x && i < x->platforms; i++) {
        sg_crash_replay_free(x->run[i].replay);
        sg_crash_numbers_fini(&x->run[i].numbers);
    }
    for (unsigned i = 0; x && i < x->count; i++) {
        g_array_unref(x->told[i].story.events);
    }
    if (x) {
        g_hash_table_destroy(x->ends);
    }
    g_free(x);
}

bool sg_crash_teller_needs(const struct sg_crash_teller *x, unsigned platform)
{
    return x->run[platform].replay != NULL;
}

void sg_crash_teller_add(struct sg_crash_teller *x, unsigned platform, uint8_t *visible,
                         uint8_t *media)
{
    sg_crash_replay_add(x->run[platform].replay, visible, media);
}

bool sg_crash_teller_event(struct sg_crash_teller *x, const struct sg_trace_event *e,
                           const char *name)
{
    bool matters = sg_crash_points_settles(e);

    if (e->kind == SG_TRACE_CONNECTED) {
        connected(x, e);
    }
    for (unsigned i = 0; i < x->platforms; i++) {
        struct story_run *r = &x->run[i];

        if (r->replay) {
            const char *wrong = sg_crash_replay_event(r->replay, e, name);

            x->wrong = x->wrong ? x->wrong : wrong;
            sg_crash_numbers_add(&r->numbers, sg_persist_seq(r->p));
        }
    }
    for (unsigned i = 0; i < x->count; i++) {
        struct tale *t = &x->told[i];

        if (!t->untold && (matters || e->number == t->binds)) {
            tell(x, t, e);
        }
    }
    return e->number >= x->last || x->wrong;
}

const char *sg_crash_teller_wrong(const struct sg_crash_teller *x)
{
    return x->wrong;
}

const struct sg_crash_story *sg_crash_teller_story(const struct sg_crash_teller *x, unsigned bug)
{
    return x && bug < x->count && !x->told[bug].untold ? &x->told[bug].story : NULL;
}
