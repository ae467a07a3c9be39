/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * staghorn-explore: what power cuts may leave of a machine's persistent memory, and which promises
 * that breaks.
 *
 * The work is in hw/core/crash, which has no I/O.  Here are files and memory (input.c, memory.c),
 * the passes over the traces (passes.c), what they begin with (start.c), the results (result.c,
 * summary.c), what two machines have together (together.c), and the timelines of what images lost
 * (lost_stores.c).
 */
#include <signal.h>

#include "lost_stores.h"
#include "session.h"
#include "together.h"

static int explore(struct sg_explore_session *s)
{
    bool told = s->o.timelines;
    int (*const passes[])(struct sg_explore_session *s) = {
        sg_explore_prepare,
        sg_explore_pass_1,
        told ? sg_explore_pass_lost : sg_explore_pass_2,
        sg_explore_pass_3,
        told ? sg_explore_write_timelines : sg_explore_write_results,
    };
    int status = SG_EXPLORE_GOOD;

    for (unsigned i = 0; i < G_N_ELEMENTS(passes) && status == SG_EXPLORE_GOOD; i++) {
        status = passes[i](s);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct sg_explore_session *s = sg_explore_start();
    int status;

    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is an error as a full disk is */
    if (!sg_explore_options(argc, argv, &s->o, &status)) {
        s->o.traces = 0;
    } else {
        status = s->o.together ? sg_explore_together(&s->o) : explore(s);
    }
    s->o.traces = s->o.together ? 0 : s->o.traces; /* others have read them */
    sg_explore_finish(s);
    return status;
}
