/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verdict, and the result as text for people. */
#include <inttypes.h>

#include "crash/setting_text.h"
#include "session.h"

static uint64_t sum(const uint64_t count[SG_CRASH_ACKS])
{
    uint64_t n = 0;

    for (unsigned i = 0; i < SG_CRASH_ACKS; i++) {
        n += count[i];
    }
    return n;
}

/* A bug on a platform that claims the opposite decides; without a promise there is no verdict. */
int sg_explore_verdict(const struct sg_explore_session *s)
{
    uint64_t judged = 0, broken = 0;

    for (unsigned i = 0; s->explorer && i < s->o.platforms; i++) {
        const struct sg_crash_verdict *v = sg_crash_explorer_verdict(s->explorer, i);

        if (v->claimed) {
            judged += sum(v->promises);
            broken += sum(v->broken);
        }
    }
    return broken ? SG_EXPLORE_BUGS : judged ? SG_EXPLORE_GOOD : SG_EXPLORE_NOTHING;
}

/* ---- Notes ---- */

static void note(GPtrArray *notes, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void note(GPtrArray *notes, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    g_ptr_array_add(notes, g_strdup_vprintf(format, ap));
    va_end(ap);
}

static void note_promises(const struct sg_explore_session *s, GPtrArray *notes)
{
    const struct sg_crash_promise_counts *c = sg_crash_promise_counts(s->promises);

    if (!c->acknowledgements) {
        note(notes, "Nothing was promised: the traces have no acknowledgement of the kinds asked "
                    "for, so there is no verdict.");
    } else if (!c->promises) {
        note(notes, "Nothing was promised: no acknowledgement concerns the target's persistent "
                    "memory, so there is no verdict.");
    }
    for (unsigned i = 0; i < SG_CRASH_UNMATCHED; i++) {
        if (c->unmatched[i]) {
            note(notes, "%" PRIu64 " acknowledgements promise nothing: %s.", c->unmatched[i],
                 sg_crash_unmatched_text((enum sg_crash_unmatched)i));
        }
    }
    if (c->dropped || c->connections_dropped) {
        note(notes,
             "Promises are missing: a limit was reached for %" PRIu64
             " placements and acknowledgements, and %" PRIu64 " connections.",
             c->dropped, c->connections_dropped);
    }
    if (s->order.given_up) {
        note(notes, "%" PRIu64 " frames could not be put in order: promises may begin too early.",
             s->order.given_up);
    }
}

static void note_left_out(const struct sg_explore_session *s, unsigned platform, const char *name,
                          GPtrArray *notes)
{
    const struct sg_explore_images_counts *c = sg_explore_images_counts(s->images, platform);
    uint64_t points = sg_crash_explorer_verdict(s->explorer, platform)->points;

    if (c->left_out) {
        note(notes,
             "%s: the images of %" PRIu64 " crash points of %" PRIu64
             " were left out, wholly or in part: --max-images.  Those that were explored are "
             "spread over the run.",
             name, c->left_out, points);
    }
    if (c->clustered) {
        note(notes,
             "%s: %" PRIu64 " crash points of %" PRIu64
             " were left out, because the same stores may be lost at others (cluster:%" PRIu64 ").",
             name, c->clustered, points, s->o.strategies.cluster);
    }
    if (c->cut_short) {
        note(notes,
             "%s: at %" PRIu64 " crash points, of which the first is behind event %" PRIu64
             ", not all answers about the lines of --reads were explored: --reads-per-point.",
             name, c->cut_short, c->cut_behind[0]);
    }
}

/* Orders of data under way that were not explored. */
static void note_orders(const struct sg_crash_verdict *v, const char *name, GPtrArray *notes)
{
    if (v->limited) {
        note(notes,
             "%s: %" PRIu64 " stores came beside data under way while there were %d pasts: not "
             "all orders were explored.",
             name, v->limited, SG_CRASH_PASTS - 1);
    }
    if (v->beside) {
        note(notes,
             "%s: %" PRIu64 " stores came beside data under way: one order of each was explored, "
             "not all (--arrivals any).",
             name, v->beside);
    }
    if (v->mixed) {
        note(notes,
             "%s: %" PRIu64 " events proved several segments of a line, and not all of their "
             "orders were explored.",
             name, v->mixed);
    }
}

/* Outcomes that the limits of the model took away. */
static void note_merged(const struct sg_crash_verdict *v, const char *name, GPtrArray *notes)
{
    struct sg_persist_limits limits;

    sg_persist_limits_exact(&limits);
    if (v->merged) {
        note(
            notes,
            "%s: %" PRIu64 " times a line had more than %u stores under way, or a processor's "
            "buffer more than %u: the oldest were merged or moved on, so not all outcomes of these "
            "were explored.",
            name, v->merged, limits.line_stores, limits.buffer_stores);
    }
    if (v->in_doubt) {
        note(notes,
             "%s: %" PRIu64 " promises were not judged, because the stores that they are about "
             "were merged with others.",
             name, v->in_doubt);
    }
}

/* Causes of which nobody knows when they end. */
static void note_ends(const struct sg_crash_verdict *v, const char *name, GPtrArray *notes)
{
    guint unknown = 0;

    for (guint i = 0; i < v->breaches->len; i++) {
        const struct sg_crash_breach *b = &g_array_index(v->breaches, struct sg_crash_breach, i);

        unknown += !b->until && !b->followed;
    }
    if (unknown) {
        note(notes,
             "%s: of %u causes of %u it is not known until when they last: %d at a time are "
             "followed, and none whose stores were merged with others.",
             name, unknown, v->breaches->len, SG_CRASH_FOLLOWED);
    }
}

static void note_platforms(const struct sg_explore_session *s, GPtrArray *notes)
{
    for (unsigned i = 0; s->explorer && i < s->o.platforms; i++) {
        const struct sg_crash_verdict *v = sg_crash_explorer_verdict(s->explorer, i);
        char name[SG_CRASH_PLATFORM_NAME];

        sg_crash_platform_name(&v->platform, name);
        if (v->end) {
            note(notes, "%s: not judged from event %" PRIu64 " on (%" PRIu64 " promises): %s.",
                 name, v->end, v->not_judged, v->why);
        }
        if (s->images) {
            note_left_out(s, i, name, notes);
        }
        note_ends(v, name, notes);
        note_orders(v, name, notes);
        note_merged(v, name, notes);
        if (v->unlisted) {
            note(notes, "%s: %" PRIu64 " broken promises have causes beyond the first %d.", name,
                 v->unlisted, SG_CRASH_BREACHES);
        }
    }
    if (s->bugs && s->bugs->len > SG_CRASH_STORIES) {
        note(notes,
             "Of %u causes the first %d are told: the others have no list of events, no timeline "
             "and no image.",
             s->bugs->len, SG_CRASH_STORIES);
    }
    if (s->images && sg_explore_images_unlisted(s->images)) {
        note(notes,
             "The deviations of %" PRIu64 " images are not listed, because they are too many: such "
             "an image cannot be made again by --plans.",
             sg_explore_images_unlisted(s->images));
    }
    if (s->explorer && sg_crash_explorer_not_compared(s->explorer)) {
        note(notes,
             "The answers of %" PRIu64 " Verifies were not compared: they have a key, or are too "
             "long.",
             sg_crash_explorer_not_compared(s->explorer));
    }
}

char **sg_explore_notes(const struct sg_explore_session *s)
{
    GPtrArray *notes = g_ptr_array_new();
    struct sg_persist_config config;

    sg_persist_config_init(&config);
    for (unsigned i = 0; i < s->o.traces; i++) {
        if (s->reading[i].status == SG_TRACE_CUT_SHORT) {
            note(notes, "The trace of %s is cut short: the verdict concerns what is there.",
                 s->trace[i].machine);
        }
    }
    if (s->config && !sg_crash_settings_parse(s->config, &config, NULL) && !config.cpu_tracking) {
        note(notes, "The target's CPUs were not tracked: what they stored is not in the trace.");
    }
    note_promises(s, notes);
    note_platforms(s, notes);
    g_ptr_array_add(notes, NULL);
    return (char **)g_ptr_array_free(notes, FALSE);
}

/* ---- Text ---- */

static void put_table(const struct sg_explore_session *s, GString *out)
{
    g_string_append(out, "platform          promises    kept    broken  crash points\n");
    for (unsigned i = 0; i < s->o.platforms; i++) {
        const struct sg_crash_verdict *v = sg_crash_explorer_verdict(s->explorer, i);
        uint64_t all = sum(v->promises), broken = sum(v->broken);
        char name[SG_CRASH_PLATFORM_NAME];

        sg_crash_platform_name(&v->platform, name);
        g_string_append_printf(
            out, "%-16s %9" PRIu64 " %7" PRIu64 " %9" PRIu64 " %13" PRIu64 "%s\n", name, all,
            all - broken, broken, v->points, v->claimed ? "" : "  not claimed");
    }
}

static void put_story(const struct sg_crash_story *story, GString *out)
{
    for (guint i = 0; i < story->events->len; i++) {
        const struct sg_crash_story_event *e =
            &g_array_index(story->events, struct sg_crash_story_event, i);

        g_string_append_printf(
            out, "  %10" PRIu64 "  %-10s  %s\n", e->event,
            e->stage == SG_CRASH_CERTAIN ? "certain" : sg_crash_stage_name(e->stage), e->what);
    }
    if (story->omitted) {
        g_string_append_printf(out, "  and %" PRIu64 " events more\n", story->omitted);
    }
}

static void put_images(const struct sg_explore_session *s, GString *out)
{
    uint64_t occurrences, count = sg_explore_images_count(s->images, &occurrences);

    g_string_append_printf(
        out, "\n%" PRIu64 " images, %" PRIu64 " with what they are judged by; of each platform:\n",
        count, occurrences);
    for (unsigned i = 0; i < s->o.platforms; i++) {
        const struct sg_explore_images_counts *c = sg_explore_images_counts(s->images, i);
        char name[SG_CRASH_PLATFORM_NAME];

        sg_crash_platform_name(&s->o.platform[i], name);
        g_string_append_printf(out, "%-16s ", name);
        g_string_append(out, c->uncounted ? "more than " : "");
        sg_crash_count_text(&c->ways, out); /* all digits: it is exact */
        g_string_append(out, " ways");
        for (unsigned k = 0; k < SG_CRASH_STRATEGIES; k++) {
            if (c->plans[k]) {
                g_string_append_printf(out, "; %s: %" PRIu64 " plans, %" PRIu64 " new",
                                       sg_crash_strategy_name((enum sg_crash_strategy)k),
                                       c->plans[k], c->found[k]);
            }
        }
        g_string_append_c(out, '\n');
    }
}

static void put_bug(const struct sg_explore_session *s, unsigned n, unsigned number, GString *out)
{
    const struct sg_crash_bug *bug = &g_array_index(s->bugs, struct sg_crash_bug, n);
    const struct sg_crash_story *story = sg_crash_teller_story(s->teller, n);
    const struct sg_crash_issuer *issuer = sg_crash_issuers_at(&s->issuers, bug->issuer);
    const struct sg_crash_breach *b = bug->on[bug->least];
    const struct sg_crash_promise *promise;
    uint64_t count;

    promise = &sg_crash_promises_of(s->promises, s->target, &count)[bug->promise];
    g_string_append_printf(out, "\n%s %u: ", bug->claimed ? "Bug" : "Not claimed", number);
    sg_crash_issuer_text(issuer, out);
    g_string_append_printf(
        out,
        " may be lost although it was acknowledged (%s)\n"
        "  lost: event %" PRIu64 " of %s, address 0x%" PRIx64 ", in %s\n"
        "  promised to %s by its event %" PRIu64 "; binds behind event %" PRIu64 "\n"
        "  missing: %s\n  on:",
        sg_crash_ack_name((enum sg_crash_ack)bug->kind), bug->lost, s->trace[s->target].machine,
        b->addr, sg_crash_stage_name(b->stage), s->trace[promise->by].machine, promise->event,
        promise->from, sg_crash_missing_text(issuer, b));
    for (unsigned i = 0; i < s->o.platforms; i++) {
        if (bug->on[i]) {
            char name[SG_CRASH_PLATFORM_NAME];

            sg_crash_platform_name(&s->o.platform[i], name);
            g_string_append_printf(out, " %s (%" PRIu64 " times)", name, bug->on[i]->count);
        }
    }
    if (b->until) {
        g_string_append_printf(out, "\n  until: event %" PRIu64 " makes it certain", b->until);
    } else {
        g_string_append(out, b->followed ? "\n  until: nothing in the trace makes it certain"
                                         : "\n  until: not known");
    }
    if (s->o.strategies.bugs && bug->claimed) {
        char *image = sg_explore_images_of_bug(s->images, number);

        g_string_append_printf(out, "\n  image: %s",
                               image                        ? image
                               : number <= SG_CRASH_STORIES ? "no plan that was tried shows it"
                                                            : "not looked for");
        g_free(image);
    }
    g_string_append_c(out, '\n');
    if (story) {
        g_string_append(out, "       event  where       what\n");
        put_story(story, out);
    }
}

void sg_explore_summary(const struct sg_explore_session *s, GString *out)
{
    char **notes = sg_explore_notes(s);
    unsigned number = 0;

    g_string_append_printf(out, "Target %s, %" PRIu64 " events; the guest was told: %s\n\n",
                           s->trace[s->target].machine, s->reading[s->target].events,
                           sg_crash_told_name(sg_crash_told_parse(s->told)));
    if (s->explorer) {
        put_table(s, out);
    }
    if (s->images) {
        put_images(s, out);
    }
    for (unsigned claimed = 2; claimed--;) {
        for (unsigned i = 0; s->bugs && i < s->bugs->len; i++) {
            const struct sg_crash_bug *bug = &g_array_index(s->bugs, struct sg_crash_bug, i);

            if (bug->claimed == claimed) {
                put_bug(s, i, ++number, out);
            }
        }
    }
    for (unsigned i = 0; notes[i]; i++) {
        g_string_append_printf(out, "%s%s\n", i ? "" : "\n", notes[i]);
    }
    g_strfreev(notes);
}
