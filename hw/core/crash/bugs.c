/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breaches of several platforms become bugs. */
#include "crash/bugs.h"

/* The bug that a breach belongs to, or NULL. */
static struct sg_crash_bug *bug_of(GArray *bugs, const struct sg_crash_breach *b, unsigned platform)
{
    for (unsigned i = 0; i < bugs->len; i++) {
        struct sg_crash_bug *bug = &g_array_index(bugs, struct sg_crash_bug, i);

        if (bug->kind == b->kind && bug->issuer == b->issuer && bug->promise == b->promise &&
            bug->lost == b->lost && !bug->on[platform]) {
            return bug;
        }
    }
    return NULL;
}

static void add(GArray *bugs, const struct sg_crash_breach *b, unsigned platform, bool claimed)
{
    struct sg_crash_bug *bug = bug_of(bugs, b, platform);

    if (!bug) {
        struct sg_crash_bug new = {
            .kind = b->kind,
            .issuer = b->issuer,
            .promise = b->promise,
            .lost = b->lost,
            .least = platform,
        };

        g_array_append_val(bugs, new);
        bug = &g_array_index(bugs, struct sg_crash_bug, bugs->len - 1);
    }
    bug->on[platform] = b;
    if (claimed && !bug->claimed) {
        bug->claimed = true;
        bug->least = platform;
    }
}

static gint by_example(gconstpointer a, gconstpointer b)
{
    const struct sg_crash_bug *x = a, *y = b;

    if (x->promise != y->promise) {
        return x->promise < y->promise ? -1 : 1;
    }
    if (x->lost != y->lost) {
        return x->lost < y->lost ? -1 : 1;
    }
    return (gint)x->kind - (gint)y->kind;
}

GArray *sg_crash_bugs(const struct sg_crash_explorer *x, unsigned platforms)
{
    GArray *bugs = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_bug));

    for (unsigned i = 0; i < platforms; i++) {
        const struct sg_crash_verdict *v = sg_crash_explorer_verdict(x, i);

        for (unsigned n = 0; n < v->breaches->len; n++) {
            add(bugs, &g_array_index(v->breaches, struct sg_crash_breach, n), i, v->claimed);
        }
    }
    g_array_sort(bugs, by_example);
    return bugs;
}

const char *sg_crash_stage_name(unsigned stage)
{
    return stage < SG_PERSIST_STAGES      ? sg_persist_stage_name((enum sg_persist_stage)stage)
           : stage == SG_CRASH_NOT_PLACED ? "not placed"
                                          : "none";
}

/* What else than a store under way may be wrong. */
static const char *const doubt_text[SG_PERSIST_DOUBTS] = {
    [SG_PERSIST_DOUBT_UNTRACKED] = "tracking: nobody knows what CPUs did about it",
    [SG_PERSIST_DOUBT_REFUSED] = "a medium that takes it: this one refuses",
    [SG_PERSIST_DOUBT_BAD] = "a line that can be read",
    [SG_PERSIST_DOUBT_OUTSIDE] = "persistent memory: the range is elsewhere",
    [SG_PERSIST_DOUBT_MERGED] = "an exact answer: stores of this line were merged",
};

const char *sg_crash_missing_text(const struct sg_crash_issuer *issuer,
                                  const struct sg_crash_breach *b)
{
    bool cpu = issuer->kind == SG_CRASH_BY_CPU;

    if (doubt_text[b->doubt]) {
        return doubt_text[b->doubt];
    }
    switch (b->stage) {
    case SG_PERSIST_S0:
    case SG_PERSIST_S1:
        return "an RDMA Flush of it by the same queue pair: it may still be on its way to memory";
    case SG_PERSIST_SB:
        return "a fence of its processor: it may still be in a store or write-combining buffer";
    case SG_PERSIST_S2:
        return cpu ? "a flush of its cache line, and a fence behind it"
                   : "an RDMA Flush of it, or a flush of its cache line and a fence";
    case SG_PERSIST_S3:
        return "a deep flush or an RDMA Flush: this platform loses its write-pending queue";
    default:
        return "its placement: the promise was given before";
    }
}
