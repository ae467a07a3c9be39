/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The passes over the traces.
 *
 * Pass 1 reads all of them, twice, in one order: what was promised, and who issued each store of
 * the target.  Pass 2 reads the target's alone, on all platforms.  Pass 3 reads what the bugs name.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "crash/order.h"
#include "crash/pairs.h"
#include "pasts.h"
#include "session.h"

enum { PROGRESS_EVERY = 1 << 16, PROGRESS_SECONDS = 2, FEW_PAGES = 32 };

void sg_explore_progress(const char *what, uint64_t done, uint64_t all)
{
    static time_t last;
    time_t now = time(NULL);

    if (!last) {
        last = now;
    }
    if (now - last >= PROGRESS_SECONDS && all) {
        last = now;
        fprintf(stderr, "staghorn-explore: %s: %d %%\n", what,
                (int)(100.0 * (double)done / (double)all));
    }
}

static int invalid(const struct sg_explore_trace *t, uint64_t event, const char *what)
{
    fprintf(stderr, "staghorn-explore: %s: event %" G_GUINT64_FORMAT ": %s\n", t->path, event,
            what);
    return SG_EXPLORE_TRACE;
}

/* ---- Details ---- */

static gpointer detail_key(unsigned machine, uint64_t event)
{
    return GSIZE_TO_POINTER(event << 8 | machine);
}

static void free_detail(gpointer opaque)
{
    struct sg_explore_detail *d = opaque;

    if (d) {
        g_free(d->name);
        g_free(d->text);
        g_free(d);
    }
}

static void keep_detail(struct sg_explore_session *s, unsigned machine,
                        const struct sg_trace_event *e)
{
    struct sg_explore_detail *d = g_new0(struct sg_explore_detail, 1);

    d->e = *e;
    d->e.data = NULL;
    if (e->kind == SG_TRACE_MARK) {
        d->name = g_strdup(sg_trace_name(s->trace[machine].reader, e->name));
        d->text = g_strndup((const char *)e->data, e->len);
    }
    g_hash_table_insert(s->details, detail_key(machine, e->number), d);
}

/* ---- Pass 1 ---- */

static void ordered(void *opaque, unsigned machine, const struct sg_trace_event *e,
                    const uint64_t *past)
{
    struct sg_explore_session *s = opaque;
    struct sg_explore_trace *t = &s->trace[machine];

    sg_crash_promises_event(s->promises, machine, e, sg_trace_name(t->reader, e->name), past);
    if (machine == s->target) {
        sg_crash_issuers_add(&s->issuers, e);
    }
    if (s->half) {
        sg_crash_steps_add(s->half->steps[machine], e->number, past[s->half->other]);
    }
    if (s->images) {
        if (machine == s->target) {
            sg_explore_images_touch(s->images, e);
        }
        if (e->kind == SG_TRACE_MARK) {
            keep_detail(s, machine, e);
        }
    }
    s->reading[machine].events = e->number;
    if (e->number % PROGRESS_EVERY == 0) {
        sg_explore_progress("order and promises", t->read, t->octets);
    }
}

/* Why the reading ended; false: not at the end of a readable beginning. */
static bool note_reading(struct sg_explore_session *s, unsigned machine)
{
    struct sg_explore_reading *r = &s->reading[machine];
    const struct sg_explore_trace *t = &s->trace[machine];

    r->status = sg_trace_status(t->reader);
    r->message = g_strdup(sg_trace_message(t->reader));
    return sg_explore_ended(t);
}

/* Nothing is known of the events yet. */
static void forget_events(struct sg_explore_session *s)
{
    sg_crash_promises_free(s->promises);
    sg_crash_issuers_fini(&s->issuers);
    sg_crash_issuers_init(&s->issuers);
    s->promises = sg_crash_promises_new(s->o.traces, 1u << s->target, s->o.acks);
    for (unsigned i = 0; s->half && i < s->o.traces; i++) {
        g_array_set_size(s->half->steps[i], 0);
    }
}

/* From the beginning of all traces; false: one of them cannot be opened. */
bool sg_explore_sources(struct sg_explore_session *s, struct sg_crash_source *source)
{
    for (unsigned i = 0; i < s->o.traces; i++) {
        if (!sg_explore_open(&s->trace[i], NULL, NULL)) {
            return false;
        }
        source[i] = sg_crash_reader_source(s->trace[i].reader);
    }
    return true;
}

static bool run_order(struct sg_explore_session *s)
{
    struct sg_crash_source source[SG_CRASH_MACHINES];
    bool good = true;

    for (unsigned i = 0; i < s->o.traces; i++) {
        sg_crash_order_scan(s->ordering, i, sg_crash_reader_source(s->trace[i].reader));
        if (!sg_explore_ended(&s->trace[i])) {
            return false;
        }
    }
    do { /* at most SG_CRASH_RUNS times */
        forget_events(s);
        if (!sg_explore_sources(s, source)) {
            return false;
        }
    } while (!sg_crash_order_run(s->ordering, source, ordered, s));
    for (unsigned i = 0; i < s->o.traces; i++) {
        good = note_reading(s, i) && good;
    }
    s->order = *sg_crash_order_counts(s->ordering);
    return good;
}

int sg_explore_pass_1(struct sg_explore_session *s)
{
    const struct sg_trace_header *header;
    int target;
    bool good;

    for (unsigned i = 0; i < s->o.traces; i++) {
        s->trace[i].path = s->o.trace[i];
        if (!sg_explore_open(&s->trace[i], NULL, NULL)) {
            return SG_EXPLORE_TRACE;
        }
    }
    if (!sg_explore_one_run(s->trace, s->o.traces)) {
        return SG_EXPLORE_TRACE;
    }
    target = sg_explore_target(s->trace, s->o.traces, s->o.target);
    if (target < 0) {
        return SG_EXPLORE_TRACE;
    }
    s->target = (unsigned)target;
    if (s->half) {
        target = sg_explore_target(s->trace, s->o.traces, s->o.together);
        if (target < 0) {
            return SG_EXPLORE_TRACE;
        }
        s->half->other = (unsigned)target;
    }
    header = sg_trace_header(s->trace[s->target].reader);
    memcpy(s->run, header->run, sizeof(s->run));
    s->told = g_strdup(header->text[SG_TRACE_PLATFORM]);
    s->config = g_strdup(header->text[SG_TRACE_CONFIG]);
    s->details = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, free_detail);
    s->ordering = sg_crash_order_new(s->o.traces);
    good = run_order(s);
    if (good) {
        sg_crash_promises_end(s->promises);
    }
    return good ? SG_EXPLORE_GOOD : SG_EXPLORE_TRACE;
}

/* ---- Pass 2 ---- */

static int add_memories(struct sg_explore_session *s, struct sg_crash_explorer *explorer,
                        unsigned platform, const struct sg_trace_header *header)
{
    const struct sg_explore_memories *m = s->memories[platform];
    int status = sg_explore_map_memories(s, platform);

    for (unsigned i = 0; i < header->extent_count && status == SG_EXPLORE_GOOD; i++) {
        if (!platform && !sg_explore_begins_with(s, platform, i)) {
            return SG_EXPLORE_TRACE;
        }
        sg_crash_explorer_add(explorer, platform, m->visible[i].octets, m->media[i].octets);
    }
    return status;
}

/* The head that all images have, and the memories of the start. */
static bool begin_images(struct sg_explore_session *s, const struct sg_crash_exploration *what)
{
    const struct sg_trace_reader *reader = s->trace[s->target].reader;
    const struct sg_trace_header *header = sg_trace_header(reader);
    struct sg_crash_image_head head = { .extent_count = header->extent_count };
    struct sg_crash_image_run run;

    memcpy(head.run, header->run, sizeof(head.run));
    memcpy(head.machine, header->machine, sizeof(head.machine));
    for (unsigned i = 0; i < header->extent_count; i++) {
        head.extent[i] = header->extent[i];
        memcpy(head.base[i],
               s->o.onto ? s->onto.image.head.base[i] : sg_trace_start_hash(reader, i),
               SG_TRACE_HASH);
    }
    while (s->o.onto && sg_crash_image_next(&s->onto.image, &run)) {
        sg_explore_images_touch_range(s->images, run.addr, run.bad ? 0 : run.len);
    }
    return sg_explore_images_begin(s->images, &head, s->o.onto ? &s->base : &s->content, what,
                                   s->explorer, s->trace[s->target].machine);
}

static void at_point(void *opaque, unsigned platform, struct sg_persist *p, uint64_t behind)
{
    struct sg_explore_session *s = opaque;

    if (s->images_status == SG_EXPLORE_GOOD) {
        s->images_status =
            sg_explore_images_point(s->images, platform, p, behind, s->memories[platform]);
    }
}

/* Of one of two machines: where images are wanted; before that is known, where they may be. */
static bool at_instant(void *opaque, unsigned platform, uint64_t behind, bool bounds)
{
    struct sg_explore_half *h = ((struct sg_explore_session *)opaque)->half;
    const GArray *wanted = h->instants[platform];
    guint *next = &h->next[platform];

    if (!h->chosen) {
        if (bounds) {
            g_array_append_val(h->bounds[platform], behind);
        }
        return false;
    }
    while (*next < wanted->len && g_array_index(wanted, uint64_t, *next) < behind) {
        ++*next;
    }
    return *next < wanted->len && g_array_index(wanted, uint64_t, *next) == behind;
}

/* Where plans want images: those of pairs are of any instant, and not of crash points only. */
static bool at_plan(void *opaque, unsigned platform, uint64_t behind, bool bounds)
{
    (void)platform;
    (void)bounds;
    return sg_explore_images_planned(((struct sg_explore_session *)opaque)->images, behind);
}

static unsigned extents_of(const struct sg_explore_session *s)
{
    return sg_trace_header(s->trace[s->target].reader)->extent_count;
}

/* The memories of another past of a platform. */
static bool fork_memories(void *opaque, unsigned platform, const struct sg_persist *p,
                          unsigned from, unsigned to, struct sg_persist_memory *memory)
{
    struct sg_explore_session *s = opaque;
    struct sg_explore_memories *m = s->memories[platform];
    unsigned extents = extents_of(s);

    if (!sg_explore_pasts_fork(m, extents, p, from, to)) {
        return false;
    }
    for (unsigned i = 0; i < extents; i++) {
        memory[i] = (struct sg_persist_memory){ m[to].visible[i].octets, m[to].media[i].octets };
    }
    return true;
}

static void drop_memories(void *opaque, unsigned platform, const struct sg_persist *p,
                          unsigned memory)
{
    struct sg_explore_session *s = opaque;

    sg_explore_pasts_drop(s->memories[platform], extents_of(s), p, memory);
}

/* Not for a few pages: the next division may be near.  But images copy them for each cut. */
static bool unite_memories(void *opaque, unsigned platform, const struct sg_persist *p,
                           unsigned memory)
{
    struct sg_explore_session *s = opaque;
    unsigned extents = extents_of(s);

    return (s->images || sg_explore_pasts_touched(p, extents) > FEW_PAGES) &&
           sg_explore_pasts_unite(s->memories[platform], extents, p, memory);
}

static int explore_events(struct sg_explore_session *s, struct sg_crash_explorer *explorer)
{
    struct sg_explore_trace *t = &s->trace[s->target];
    const struct sg_trace_event *e;

    while (s->images_status == SG_EXPLORE_GOOD && (e = sg_trace_next(t->reader))) {
        const char *wrong = sg_crash_explorer_event(explorer, e, sg_trace_name(t->reader, e->name));

        if (wrong) {
            return invalid(t, e->number, wrong);
        }
        if (e->number % PROGRESS_EVERY == 0) {
            sg_explore_progress("platforms", t->read, t->octets);
        }
    }
    if (s->images_status == SG_EXPLORE_GOOD && !sg_explore_ended(t)) {
        return SG_EXPLORE_TRACE;
    }
    sg_crash_explorer_end(explorer);
    return (int)s->images_status;
}

/* Bugs have images behind events that only they tell. */
static bool nowhere(void *opaque, unsigned platform, uint64_t behind, bool bounds)
{
    (void)opaque;
    (void)platform;
    (void)behind;
    (void)bounds;
    return false;
}

static struct sg_crash_exploration exploration(struct sg_explore_session *s)
{
    bool only_bugs = s->o.strategies.bugs && !sg_crash_strategies_any(&s->o.strategies);
    sg_crash_instant *planned = s->plans ? at_plan : only_bugs ? nowhere : NULL;

    return (struct sg_crash_exploration){
        .header = sg_trace_header(s->trace[s->target].reader),
        .platform = s->o.platform,
        .platforms = s->o.platforms,
        .promises = s->promises,
        .target = s->target,
        .issuers = &s->issuers,
        .point = s->images ? at_point : NULL,
        .instant = s->half ? at_instant : planned,
        .fork = fork_memories,
        .drop = drop_memories,
        .unite = unite_memories,
        .opaque = s,
    };
}

/* The target's trace once more: for images of chosen instants, or because not all fitted. */
static int explore_again(struct sg_explore_session *s)
{
    struct sg_explore_trace *t = &s->trace[s->target];
    struct sg_crash_exploration what;
    struct sg_crash_explorer *explorer;
    const char *wrong;
    int status = SG_EXPLORE_GOOD;

    if (!sg_explore_open(t, NULL, NULL)) {
        return SG_EXPLORE_TRACE;
    }
    what = exploration(s);
    explorer = sg_crash_explorer_new(&what, &wrong);
    if (!explorer) {
        return invalid(t, 0, wrong);
    }
    sg_explore_images_again(s->images, explorer);
    for (unsigned i = 0; i < s->o.platforms && status == SG_EXPLORE_GOOD; i++) {
        if (s->half) {
            s->half->next[i] = 0;
        }
        status = add_memories(s, explorer, i, what.header);
    }
    if (status == SG_EXPLORE_GOOD) {
        status = explore_events(s, explorer);
    }
    sg_crash_explorer_free(explorer);
    return status;
}

/* The plans for images of bugs; false: there are none. */
static bool plan_bugs(struct sg_explore_session *s)
{
    const struct sg_crash_promise *promise;
    uint64_t count;
    guint number = 0;

    promise = sg_crash_promises_of(s->promises, s->target, &count);
    s->plans = sg_explore_plans_new();
    for (guint i = 0; i < s->bugs->len && number < SG_CRASH_STORIES; i++) {
        const struct sg_crash_bug *bug = &g_array_index(s->bugs, struct sg_crash_bug, i);
        struct sg_explore_plan plan = {
            .given = { .behind = promise[bug->promise].from, .platform = bug->least },
            .loses = bug->on[bug->least],
        };

        number += bug->claimed;
        if (bug->claimed && bug->lost) {
            plan.number = number;
            plan.given.answers = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_answer));
            plan.early = g_array_copy(plan.loses->early);
            g_array_append_val(s->plans, plan);
        }
    }
    sg_explore_images_of_bugs(s->images, s->plans);
    return s->plans->len;
}

static int end_images(struct sg_explore_session *s)
{
    int status = SG_EXPLORE_GOOD;

    if (s->images && sg_explore_images_again(s->images, NULL)) {
        status = explore_again(s);
    }
    if (status == SG_EXPLORE_GOOD && s->o.strategies.bugs && plan_bugs(s)) {
        status = explore_again(s);
    }
    return s->images && status == SG_EXPLORE_GOOD
               ? (int)sg_explore_images_end(s->images, s->o.platform)
               : status;
}

int sg_explore_pass_2(struct sg_explore_session *s)
{
    struct sg_explore_trace *t = &s->trace[s->target];
    struct sg_crash_exploration what;
    const char *wrong;
    int status = sg_explore_read_content(s);

    if (status != SG_EXPLORE_GOOD) {
        return status;
    }
    what = exploration(s);
    s->explorer = sg_crash_explorer_new(&what, &wrong);
    if (!s->explorer) {
        return invalid(t, 0, wrong);
    }
    for (unsigned i = 0; i < s->o.platforms && status == SG_EXPLORE_GOOD; i++) {
        status = add_memories(s, s->explorer, i, what.header);
    }
    if (status == SG_EXPLORE_GOOD && s->images && !begin_images(s, &what)) {
        status = SG_EXPLORE_FAILED;
    }
    if (status == SG_EXPLORE_GOOD) {
        status = explore_events(s, s->explorer);
    }
    if (status == SG_EXPLORE_GOOD) {
        s->bugs = sg_crash_bugs(s->explorer, s->o.platforms);
    }
    if (status == SG_EXPLORE_GOOD && !s->half) {
        status = end_images(s);
    }
    return status;
}

int sg_explore_pass_images(struct sg_explore_session *s)
{
    int status = explore_again(s);

    return status == SG_EXPLORE_GOOD ? end_images(s) : status;
}

/* ---- Pass 3 ---- */

static void want(struct sg_explore_session *s, unsigned machine, uint64_t event)
{
    if (event) {
        g_hash_table_insert(s->details, detail_key(machine, event), NULL);
    }
}

/* The memories of a platform once more, as they were at the start. */
static int add_again(struct sg_explore_session *s, unsigned platform,
                     const struct sg_trace_header *header)
{
    const struct sg_explore_memories *m = s->memories[platform];
    int status = sg_explore_map_memories(s, platform);

    for (unsigned i = 0; i < header->extent_count && status == SG_EXPLORE_GOOD; i++) {
        if (s->lost && !sg_explore_begins_with(s, platform, i)) {
            return SG_EXPLORE_TRACE;
        }
        sg_crash_teller_add(s->teller, platform, m->visible[i].octets, m->media[i].octets);
    }
    return status;
}

/* What happened to the stores that bugs may lose. */
static int tell_stories(struct sg_explore_session *s)
{
    struct sg_explore_trace *t = &s->trace[s->target];
    struct sg_crash_exploration what;
    const struct sg_trace_event *e;
    const char *wrong;
    int status = SG_EXPLORE_GOOD;

    if (!sg_explore_open(t, NULL, NULL)) {
        return SG_EXPLORE_TRACE;
    }
    what = exploration(s);
    s->teller = sg_crash_teller_new(&what, s->bugs, &wrong);
    if (!s->teller) {
        return invalid(t, 0, wrong);
    }
    for (unsigned i = 0; i < s->o.platforms && status == SG_EXPLORE_GOOD; i++) {
        if (sg_crash_teller_needs(s->teller, i)) {
            status = add_again(s, i, what.header);
        }
    }
    while (status == SG_EXPLORE_GOOD && (e = sg_trace_next(t->reader)) &&
           !sg_crash_teller_event(s->teller, e, sg_trace_name(t->reader, e->name))) {
        if (e->number % PROGRESS_EVERY == 0) {
            sg_explore_progress("bugs", t->read, t->octets);
        }
    }
    wrong = sg_crash_teller_wrong(s->teller);
    return status == SG_EXPLORE_GOOD && wrong ? invalid(t, e->number, wrong) : status;
}

/* The events that results name. */
static void want_details(struct sg_explore_session *s)
{
    const struct sg_crash_promise *promise;
    uint64_t count;

    promise = sg_crash_promises_of(s->promises, s->target, &count);
    for (unsigned i = 0; i < s->bugs->len; i++) {
        const struct sg_crash_bug *bug = &g_array_index(s->bugs, struct sg_crash_bug, i);
        const struct sg_crash_story *story = sg_crash_teller_story(s->teller, i);

        want(s, s->target, bug->lost);
        if (bug->promise != SG_CRASH_NO_PROMISE) {
            want(s, promise[bug->promise].by, promise[bug->promise].event);
        }
        for (guint k = 0; story && k < story->events->len; k++) {
            want(s, s->target, g_array_index(story->events, struct sg_crash_story_event, k).event);
        }
    }
}

static void ordered_again(void *opaque, unsigned machine, const struct sg_trace_event *e,
                          const uint64_t *past)
{
    struct sg_explore_session *s = opaque;

    (void)past;
    if (sg_crash_timelines_event(s->timelines, machine, e) ||
        g_hash_table_contains(s->details, detail_key(machine, e->number))) {
        keep_detail(s, machine, e);
    }
    if (e->number % PROGRESS_EVERY == 0) {
        sg_explore_progress("timelines", s->trace[machine].read, s->trace[machine].octets);
    }
}

int sg_explore_pass_3(struct sg_explore_session *s)
{
    struct sg_crash_source source[SG_CRASH_MACHINES];
    int status = s->bugs->len ? tell_stories(s) : SG_EXPLORE_GOOD;

    if (!s->bugs->len || status != SG_EXPLORE_GOOD) {
        return status;
    }
    want_details(s);
    s->timelines = sg_crash_timelines_new(s->o.traces, s->target, s->bugs, s->promises, s->teller);
    if (!sg_explore_sources(s, source)) {
        return SG_EXPLORE_TRACE;
    }
    sg_crash_order_run(s->ordering, source, ordered_again, s); /* settled in pass 1 */
    return SG_EXPLORE_GOOD;
}

const struct sg_explore_detail *sg_explore_detail(const struct sg_explore_session *s,
                                                  unsigned machine, uint64_t event)
{
    return s->details && event ? g_hash_table_lookup(s->details, detail_key(machine, event)) : NULL;
}
