/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * staghorn-explore: what power cuts may leave of a machine's persistent memory, and which promises
 * that breaks.
 *
 * The work is in hw/core/crash, which has no I/O.  Here are files and memory (input.c, memory.c),
 * the passes over the traces (passes.c), and the results (result.c, summary.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "output.h"
#include "read_lines.h"
#include "session.h"

static void finish(struct sg_explore_session *s)
{
    sg_crash_teller_free(s->teller);
    sg_crash_explorer_free(s->explorer);
    sg_explore_images_free(s->images);
    sg_explore_plans_free(s->plans);
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        for (unsigned k = 0; k < SG_TRACE_EXTENTS; k++) {
            sg_explore_unmap(&s->visible[i][k]);
            sg_explore_unmap(&s->media[i][k]);
        }
    }
    sg_explore_content_fini(&s->content);
    sg_explore_content_fini(&s->base);
    sg_explore_onto_close(&s->onto);
    sg_crash_reads_fini(&s->reads);
    sg_crash_issuers_fini(&s->issuers);
    sg_crash_promises_free(s->promises);
    for (unsigned i = 0; i < s->o.traces; i++) {
        sg_explore_trace_free(&s->trace[i]);
        g_free(s->reading[i].message);
    }
    if (s->bugs) {
        g_array_unref(s->bugs);
    }
    if (s->details) {
        g_hash_table_destroy(s->details);
    }
    g_free(s->told);
    g_free(s->config);
    g_free(s);
}

static struct sg_explore_session *start(void)
{
    struct sg_explore_session *s = g_new0(struct sg_explore_session, 1);

    sg_explore_content_init(&s->content);
    sg_explore_content_init(&s->base);
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        for (unsigned k = 0; k < SG_TRACE_EXTENTS; k++) {
            s->visible[i][k].fd = s->media[i][k].fd = -1;
        }
    }
    return s;
}

static int write_results(struct sg_explore_session *s)
{
    GString *json = g_string_new(NULL), *text = g_string_new(NULL);
    bool good = !s->images || sg_explore_write_promises(s);

    sg_explore_result(s, json);
    sg_explore_summary(s, text);
    good = good && sg_explore_write(s->o.out, "result.json", json->str, json->len);
    if (good) {
        good = fputs(text->str, stdout) >= 0 && fflush(stdout) == 0;
    }
    g_string_free(json, TRUE);
    g_string_free(text, TRUE);
    return good ? sg_explore_verdict(s) : SG_EXPLORE_FAILED;
}

/* Which images are wanted.  False: a file of theirs cannot be read; a message is on stderr. */
static bool get_images(struct sg_explore_session *s)
{
    struct sg_explore_wanted want = { .strategies = &s->o.strategies };

    if (s->o.plans) {
        s->plans = sg_explore_plans_read(s->o.plans, s->o.platform, s->o.platforms);
        if (!s->plans) {
            return false;
        }
        want.plans = s->plans;
    }
    if ((s->o.reads && !sg_explore_read_lines(s->o.reads, &s->reads)) ||
        (s->o.onto && !sg_explore_onto_open(&s->onto, s->o.onto))) {
        return false;
    }
    s->o.strategies.reads = &s->reads;
    if (s->plans || sg_crash_strategies_any(&s->o.strategies)) {
        s->images = sg_explore_images_new(s->o.out, &want);
    }
    return true;
}

static int explore(struct sg_explore_session *s)
{
    int (*const passes[])(struct sg_explore_session *s) = {
        sg_explore_pass_1,
        sg_explore_pass_2,
        sg_explore_pass_3,
        write_results,
    };
    int status = SG_EXPLORE_GOOD;

    if (g_mkdir_with_parents(s->o.out, 0777) < 0) {
        fprintf(stderr, "staghorn-explore: %s: %s\n", s->o.out, strerror(errno));
        return SG_EXPLORE_FAILED;
    }
    if (!get_images(s)) {
        return SG_EXPLORE_USAGE;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(passes) && status == SG_EXPLORE_GOOD; i++) {
        status = passes[i](s);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct sg_explore_session *s = start();
    int status;

    if (sg_explore_options(argc, argv, &s->o, &status)) {
        status = explore(s);
    } else {
        s->o.traces = 0;
    }
    finish(s);
    return status;
}
