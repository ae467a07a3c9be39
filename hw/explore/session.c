/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"
#include "read_lines.h"
#include "session.h"

#define RESULT "result.json"

static void free_half(struct sg_explore_half *h)
{
    for (unsigned i = 0; h && i < SG_CRASH_MACHINES; i++) {
        g_array_unref(h->steps[i]);
    }
    for (unsigned i = 0; h && i < SG_CRASH_PLATFORMS; i++) {
        g_array_unref(h->bounds[i]);
        g_array_unref(h->instants[i]);
    }
    g_free(h);
}

void sg_explore_finish(struct sg_explore_session *s)
{
    sg_crash_timelines_free(s->timelines);
    sg_crash_teller_free(s->teller);
    sg_crash_explorer_free(s->explorer);
    sg_explore_images_free(s->images);
    free_half(s->half);
    sg_explore_plans_free(s->plans);
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        for (unsigned k = 0; k < SG_CRASH_PASTS; k++) {
            sg_explore_memories_fini(&s->memories[i][k]);
        }
    }
    sg_explore_content_fini(&s->content);
    sg_explore_content_fini(&s->base);
    sg_explore_onto_close(&s->onto);
    sg_crash_reads_fini(&s->reads);
    sg_crash_issuers_fini(&s->issuers);
    sg_crash_promises_free(s->promises);
    sg_crash_order_free(s->ordering);
    for (unsigned i = 0; i < s->o.traces; i++) {
        sg_explore_trace_free(&s->trace[i]);
        g_free(s->reading[i].message);
    }
    if (s->bugs) {
        g_array_unref(s->bugs);
    }
    if (s->lost) {
        g_array_unref(s->lost);
    }
    if (s->details) {
        g_hash_table_destroy(s->details);
    }
    g_free(s->told);
    g_free(s->config);
    g_free(s);
}

struct sg_explore_session *sg_explore_start(void)
{
    struct sg_explore_session *s = g_new0(struct sg_explore_session, 1);

    sg_explore_content_init(&s->content);
    sg_explore_content_init(&s->base);
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        for (unsigned k = 0; k < SG_CRASH_PASTS; k++) {
            sg_explore_memories_init(&s->memories[i][k]);
        }
    }
    return s;
}

int sg_explore_write_results(struct sg_explore_session *s)
{
    GString *json = g_string_new(NULL), *text = g_string_new(NULL);
    bool good = !s->images || sg_explore_write_promises(s);

    sg_explore_result(s, json);
    sg_explore_summary(s, text);
    good = good && sg_explore_write(s->o.out, RESULT, json->str, json->len);
    if (good && !s->half) {
        good = (fputs(text->str, stdout) >= 0 && fflush(stdout) == 0) ||
               sg_explore_not_written("the standard output");
    }
    g_string_free(json, TRUE);
    g_string_free(text, TRUE);
    return good ? sg_explore_verdict(s) : SG_EXPLORE_FAILED;
}

/* A plan that has early arrivals needs its past. */
static void allow_pasts(struct sg_explore_session *s)
{
    for (guint i = 0; i < s->plans->len; i++) {
        const struct sg_explore_plan *plan = &g_array_index(s->plans, struct sg_explore_plan, i);

        if (plan->early->len) {
            s->o.arrivals = s->o.platform[plan->given.platform].arrivals = SG_CRASH_ANY;
        }
    }
}

/* Which images are wanted.  False: a file of theirs cannot be read; a message is on stderr. */
static bool get_images(struct sg_explore_session *s)
{
    struct sg_explore_wanted want = { .strategies = &s->o.strategies, .instants = s->half };

    if (s->o.plans) {
        s->plans = sg_explore_plans_read(s->o.plans, s->o.platform, s->o.platforms);
        if (!s->plans) {
            return false;
        }
        want.plans = s->plans;
        allow_pasts(s);
    }
    if ((s->o.reads && !sg_explore_read_lines(s->o.reads, &s->reads)) ||
        (s->o.onto && !sg_explore_onto_open(&s->onto, s->o.onto))) {
        return false;
    }
    s->o.strategies.reads = &s->reads;
    if (s->plans || s->o.strategies.bugs || sg_crash_strategies_any(&s->o.strategies)) {
        s->images = sg_explore_images_new(s->o.out, &want);
    }
    return true;
}

int sg_explore_prepare(struct sg_explore_session *s)
{
    char *old = g_build_filename(s->o.out, RESULT, NULL);
    bool good = g_mkdir_with_parents(s->o.out, 0777) == 0 || sg_explore_not_written(s->o.out);

    /* That of an earlier exploration says nothing of what this one leaves if it fails. */
    good = good && (unlink(old) == 0 || errno == ENOENT || sg_explore_not_written(old));
    g_free(old);
    if (!good) {
        return SG_EXPLORE_FAILED;
    }
    return get_images(s) ? SG_EXPLORE_GOOD : SG_EXPLORE_USAGE;
}
