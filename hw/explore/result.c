/* SPDX-License-Identifier: GPL-2.0-or-later */
/* result.json: docs/crash-laboratory-points.md lists its members. */
#include "timeline_json.h"
#include "session.h"

enum { VERSION = 1 };

static void put_id(struct json *j, const char *key, const uint8_t *id)
{
    char text[2 * SG_TRACE_ID + 1];

    for (unsigned i = 0; i < SG_TRACE_ID; i++) {
        g_snprintf(text + 2 * i, 3, "%02x", id[i]);
    }
    json_text(j, key, text);
}

static void put_traces(struct json *j, const struct sg_explore_session *s)
{
    json_open(j, "traces", '[');
    for (unsigned i = 0; i < s->o.traces; i++) {
        json_open(j, NULL, '{');
        json_text(j, "machine", s->trace[i].machine);
        json_text(j, "status", sg_trace_status_name(s->reading[i].status));
        json_text(j, "message", s->reading[i].message);
        json_number(j, "events", s->reading[i].events);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_order(struct json *j, const struct sg_crash_order_counts *c)
{
    json_open(j, "order", '{');
    json_number(j, "frames-sent", c->sent);
    json_number(j, "frames-received", c->received);
    json_number(j, "matched", c->matched);
    json_number(j, "ambiguous", c->ambiguous);
    json_number(j, "own", c->own);
    json_number(j, "unmatched", c->unmatched);
    json_number(j, "given-up", c->given_up);
    json_number(j, "beyond", c->beyond);
    json_close(j, '}');
}

static void put_promises(struct json *j, const struct sg_explore_session *s)
{
    const struct sg_crash_promise_counts *c = sg_crash_promise_counts(s->promises);

    json_open(j, "promises", '{');
    json_number(j, "completions", c->completions);
    json_number(j, "failed", c->failed);
    json_number(j, "acknowledgements", c->acknowledgements);
    json_number(j, "matched", c->matched);
    json_open(j, "unmatched", '{');
    for (unsigned i = 0; i < SG_CRASH_UNMATCHED; i++) {
        if (c->unmatched[i]) {
            json_number(j, sg_crash_unmatched_text((enum sg_crash_unmatched)i), c->unmatched[i]);
        }
    }
    json_close(j, '}');
    json_number(j, "promises", c->promises);
    json_number(j, "ranges", c->ranges);
    json_number(j, "placements", c->placements);
    json_number(j, "placements-unpromised", c->unpromised);
    json_number(j, "placements-of-others", c->placements_single);
    json_number(j, "placements-unknown", c->placements_unknown);
    json_number(j, "dropped", c->dropped);
    json_number(j, "connections-dropped", c->connections_dropped);
    json_close(j, '}');
}

/* By kind of acknowledgement, those that there are. */
static void put_kinds(struct json *j, const char *key, const uint64_t count[SG_CRASH_ACKS])
{
    json_open(j, key, '{');
    for (unsigned i = 0; i < SG_CRASH_ACKS; i++) {
        if (count[i]) {
            json_number(j, sg_crash_ack_name((enum sg_crash_ack)i), count[i]);
        }
    }
    json_close(j, '}');
}

static void put_name(struct json *j, const char *key, const struct sg_crash_platform *platform)
{
    char name[SG_CRASH_PLATFORM_NAME];

    sg_crash_platform_name(platform, name);
    json_text(j, key, name);
}

/* What of "reads" and of clusters was left out. */
static void put_left_out(struct json *j, const struct sg_explore_session *s, unsigned platform)
{
    const struct sg_explore_images_counts *c = sg_explore_images_counts(s->images, platform);

    json_switch(j, "points-spread", sg_explore_images_spread(s->images));
    if (s->o.strategies.cluster) {
        json_number(j, "clusters", sg_explore_images_clusters(s->images, platform));
        json_number(j, "points-like-others", c->clustered);
    }
    if (s->o.strategies.use[SG_CRASH_READS]) {
        json_number(j, "lines-read", sg_crash_reads_lines(&s->reads));
        json_number(j, "points-cut-short", c->cut_short);
        json_open(j, "cut-short-behind", '[');
        for (unsigned i = 0; i < c->cut_short && i < SG_EXPLORE_CUT_SHORT; i++) {
            json_number(j, NULL, c->cut_behind[i]);
        }
        json_close(j, ']');
    }
}

static void put_images(struct json *j, const struct sg_explore_session *s, unsigned platform)
{
    const struct sg_explore_images_counts *c = sg_explore_images_counts(s->images, platform);
    GString *ways = g_string_new(NULL);

    sg_crash_count_text(&c->ways, ways);
    json_open(j, "images", '{');
    json_text(j, "ways", ways->str);
    json_number(j, "points-with-more-ways", c->uncounted);
    json_number(j, "points-explored", c->points);
    json_number(j, "points-left-out", c->left_out);
    put_left_out(j, s, platform);
    for (unsigned i = 0; i < SG_CRASH_STRATEGIES; i++) {
        if (c->plans[i]) {
            json_open(j, sg_crash_strategy_name((enum sg_crash_strategy)i), '{');
            json_number(j, "plans", c->plans[i]);
            json_number(j, "found", c->found[i]);
            json_close(j, '}');
        }
    }
    json_close(j, '}');
    g_string_free(ways, TRUE);
}

static void put_platform(struct json *j, const struct sg_explore_session *s, unsigned platform)
{
    const struct sg_crash_verdict *v = sg_crash_explorer_verdict(s->explorer, platform);

    json_open(j, NULL, '{');
    put_name(j, "platform", &v->platform);
    json_text(j, "domain", sg_persist_domain_name(v->platform.domain));
    json_switch(j, "ddio", v->platform.ddio);
    json_switch(j, "claimed", v->claimed);
    put_kinds(j, "promises", v->promises);
    put_kinds(j, v->claimed ? "broken" : "not-claimed", v->broken);
    json_number(j, "not-judged", v->not_judged);
    if (v->end) {
        json_open(j, "judged-until", '{');
        json_number(j, "event", v->end);
        json_text(j, "why", v->why);
        json_close(j, '}');
    }
    json_number(j, "merged", v->merged);
    json_number(j, "promises-in-doubt", v->in_doubt);
    json_number(j, "causes-unlisted", v->unlisted);
    json_number(j, "crash-points", v->points);
    if (s->o.arrivals == SG_CRASH_ANY) {
        json_number(j, "pasts", v->pasts);
        json_number(j, "stores-with-pasts-left-out", v->limited);
        json_number(j, "proofs-with-orders-left-out", v->mixed);
    } else {
        json_number(j, "stores-beside-data", v->beside);
    }
    if (s->images) {
        put_images(j, s, platform);
    }
    json_close(j, '}');
}

static void put_issuer(struct json *j, const struct sg_crash_issuer *who)
{
    GString *text = g_string_new(NULL);

    sg_crash_issuer_text(who, text);
    json_open(j, "issuer", '{');
    json_text(j, "kind", sg_crash_issuer_kind_name(who->kind));
    json_text(j, "text", text->str);
    if (who->kind == SG_CRASH_BY_CPU) {
        json_hex(j, "pc", who->pc);
        json_hex(j, "root", who->root);
    } else if (who->kind != SG_CRASH_NOBODY) {
        json_number(j, "unit", who->unit);
        json_number(j, "port", who->port);
    }
    json_close(j, '}');
    g_string_free(text, TRUE);
}

static void put_example(struct json *j, const struct sg_explore_session *s,
                        const struct sg_crash_bug *bug)
{
    const struct sg_explore_detail *lost = sg_explore_detail(s, s->target, bug->lost), *said;
    const struct sg_crash_promise *promise;
    uint64_t count;

    promise = &sg_crash_promises_of(s->promises, s->target, &count)[bug->promise];
    said = sg_explore_detail(s, promise->by, promise->event);
    json_open(j, "example", '{');
    json_number(j, "promise", bug->promise);
    json_number(j, "binds-behind", promise->from);
    json_text(j, "promised-to", s->trace[promise->by].machine);
    if (said) {
        sg_explore_put_event(j, "acknowledgement", s->trace[promise->by].machine, said);
    }
    if (lost) {
        sg_explore_put_event(j, "lost", s->trace[s->target].machine, lost);
    }
    json_close(j, '}');
}

static void put_on(struct json *j, const struct sg_explore_session *s,
                   const struct sg_crash_issuer *issuer, unsigned platform,
                   const struct sg_crash_breach *b)
{
    const struct sg_crash_verdict *v = sg_crash_explorer_verdict(s->explorer, platform);

    json_open(j, NULL, '{');
    put_name(j, "platform", &v->platform);
    json_switch(j, "claimed", v->claimed);
    json_number(j, "count", b->count);
    json_text(j, "stage", sg_crash_stage_name(b->stage));
    json_text(j, "missing", sg_crash_missing_text(issuer, b));
    json_hex(j, "addr", b->addr);
    if (b->until) {
        json_number(j, "certain-behind", b->until);
    } else if (b->followed) {
        json_null(j, "certain-behind"); /* never */
    }
    json_close(j, '}');
}

static void put_story(struct json *j, const struct sg_explore_session *s,
                      const struct sg_crash_story *story)
{
    json_open(j, "story", '[');
    for (guint i = 0; i < story->events->len; i++) {
        const struct sg_crash_story_event *e =
            &g_array_index(story->events, struct sg_crash_story_event, i);
        const struct sg_explore_detail *d = sg_explore_detail(s, s->target, e->event);

        json_open(j, NULL, '{');
        json_text(j, "what", e->what);
        json_text(j, "stage-behind",
                  e->stage == SG_CRASH_CERTAIN ? "certain" : sg_crash_stage_name(e->stage));
        if (d) {
            sg_explore_put_event(j, "event", s->trace[s->target].machine, d);
        }
        json_close(j, '}');
    }
    json_close(j, ']');
    json_number(j, "story-omitted", story->omitted);
}

/* Of a bug whose image was wanted.  number: among those that are bugs, from 1 on. */
static void put_image(struct json *j, const struct sg_explore_session *s, guint number)
{
    char *image = sg_explore_images_of_bug(s->images, number);

    if (image) {
        json_text(j, "image", image);
    } else {
        json_null(j, "image");
    }
    g_free(image);
}

/* shown: its number among bugs, from 1 on, or among those that are none. */
static void put_bug(struct json *j, const struct sg_explore_session *s, unsigned number,
                    guint shown)
{
    const struct sg_crash_bug *bug = &g_array_index(s->bugs, struct sg_crash_bug, number);
    const struct sg_crash_story *story = sg_crash_teller_story(s->teller, number);

    const struct sg_crash_issuer *issuer = sg_crash_issuers_at(&s->issuers, bug->issuer);

    json_open(j, NULL, '{');
    json_text(j, "acknowledgement", sg_crash_ack_name((enum sg_crash_ack)bug->kind));
    put_issuer(j, issuer);
    put_name(j, "least-platform", &s->o.platform[bug->least]);
    put_example(j, s, bug);
    if (s->o.strategies.bugs && bug->claimed) {
        put_image(j, s, shown);
    }
    json_open(j, "platforms", '[');
    for (unsigned i = 0; i < s->o.platforms; i++) {
        if (bug->on[i]) {
            put_on(j, s, issuer, i, bug->on[i]);
        }
    }
    json_close(j, ']');
    if (story) {
        put_story(j, s, story);
        sg_explore_put_timeline(j, s, number);
    }
    json_close(j, '}');
}

/* Bugs, or what is none because no platform that it is on claims anything else. */
static void put_bugs(struct json *j, const struct sg_explore_session *s, const char *key,
                     bool claimed)
{
    guint shown = 0;

    json_open(j, key, '[');
    for (unsigned i = 0; s->bugs && i < s->bugs->len; i++) {
        const struct sg_crash_bug *bug = &g_array_index(s->bugs, struct sg_crash_bug, i);

        if (bug->claimed == claimed) {
            put_bug(j, s, i, ++shown);
        }
    }
    json_close(j, ']');
}

static void put_choices(struct json *j, const struct sg_explore_session *s)
{
    json_open(j, "acknowledgements", '[');
    for (unsigned i = 0; i < SG_CRASH_ACKS; i++) {
        if (s->o.acks >> i & 1) {
            json_text(j, NULL, sg_crash_ack_name((enum sg_crash_ack)i));
        }
    }
    json_close(j, ']');
    json_text(j, "arrivals", sg_crash_arrivals_name((enum sg_crash_arrivals)s->o.arrivals));
    json_text(j, "told", sg_crash_told_name(sg_crash_told_parse(s->told)));
}

void sg_explore_result(const struct sg_explore_session *s, GString *out)
{
    static const char *const verdict[] = {
        [SG_EXPLORE_GOOD] = "good",
        [SG_EXPLORE_BUGS] = "bugs",
        [SG_EXPLORE_NOTHING] = "none",
    };
    struct json j = { .out = out };
    char **notes = sg_explore_notes(s);

    json_open(&j, NULL, '{');
    json_number(&j, "version", VERSION);
    json_text(&j, "verdict", verdict[sg_explore_verdict(s)]);
    put_id(&j, "run", s->run);
    json_text(&j, "target", s->trace[s->target].machine);
    put_choices(&j, s);
    put_traces(&j, s);
    put_order(&j, &s->order);
    put_promises(&j, s);
    json_open(&j, "platforms", '[');
    for (unsigned i = 0; s->explorer && i < s->o.platforms; i++) {
        put_platform(&j, s, i);
    }
    json_close(&j, ']');
    if (s->images) {
        uint64_t occurrences;

        json_number(&j, "images", sg_explore_images_count(s->images, &occurrences));
        json_number(&j, "occurrences", occurrences);
    }
    put_bugs(&j, s, "bugs", true);
    put_bugs(&j, s, "not-claimed", false);
    json_open(&j, "notes", '[');
    for (unsigned i = 0; notes[i]; i++) {
        json_text(&j, NULL, notes[i]);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    g_string_append_c(out, '\n');
    g_strfreev(notes);
}
