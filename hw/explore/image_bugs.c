/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images of bugs: of each an image that loses the store, behind the event from which its promise
 * binds.
 *
 * Plans are those of "reads" about the line of the store, from the one in which everything survives
 * on.  The first that loses the store, and has something else there than that one, is taken.
 */
#include <string.h>

#include "crash/reads.h"
#include "images_impl.h"

enum { PLANS = 4096 };

/* The rest of an atom in the cut's media. */
static void read_atom(const struct sg_explore_images *x, uint64_t addr, uint8_t *atom)
{
    const struct sg_explore_memories *cut = &x->copies[x->platform];
    uint64_t len = SG_PERSIST_ATOM - addr % SG_PERSIST_ATOM;

    for (unsigned i = 0; i < x->head.extent_count; i++) {
        uint64_t at = addr - x->head.extent[i].base;

        if (at < x->head.extent[i].size) {
            memcpy(atom, cut->media[i].octets + at, len);
        }
    }
}

static bool has_lost(const struct sg_explore_images *x, const struct sg_crash_planner *plan,
                     uint64_t event)
{
    for (guint i = 0; i < plan->lost->len; i++) {
        uint64_t seq = g_array_index(plan->lost, struct sg_persist_lost, i).seq;

        if (sg_crash_explorer_event_of(x->explorer, x->platform, seq) == event) {
            return true;
        }
    }
    return false;
}

enum sg_explore_status images_by_bug(struct sg_explore_images *x, struct sg_explore_plan *given,
                                     uint64_t behind)
{
    const struct sg_crash_breach *b = given->loses;
    struct sg_crash_strategies strategies = { .reads_per_point = PLANS };
    const struct sg_persist_policy *policy;
    struct sg_crash_planner plan;
    struct sg_crash_reads reads;
    uint8_t whole[SG_PERSIST_ATOM] = { 0 }, atom[SG_PERSIST_ATOM] = { 0 };
    bool good = true;

    sg_crash_reads_init(&reads);
    sg_crash_reads_add(&reads, b->addr, 1);
    sg_crash_reads_end(&reads);
    strategies.use[SG_CRASH_READS] = true;
    strategies.reads = &reads;
    sg_crash_planner_init(&plan, &strategies, behind);
    plan.p = x->p;
    while (!given->made && (policy = sg_crash_planner_next(&plan))) {
        struct sg_persist *clone = images_cut(x, policy);

        read_atom(x, b->addr, plan.number ? atom : whole);
        if (plan.number && has_lost(x, &plan, b->lost) && memcmp(atom, whole, sizeof(atom)) != 0) {
            given->made = true;
            plan.now = SG_CRASH_GIVEN;
            good = images_note(x, &plan, given, behind, clone);
        }
        sg_persist_free(clone);
    }
    sg_crash_planner_fini(&plan);
    sg_crash_reads_fini(&reads);
    return good ? SG_EXPLORE_GOOD : SG_EXPLORE_FAILED;
}

void sg_explore_images_of_bugs(struct sg_explore_images *x, GArray *plans)
{
    x->want.plans = plans;
    x->next_plan = 0;
    x->in_force = 0;
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        images_unmap_copies(x, i); /* they are of the explorer before */
    }
}

char *sg_explore_images_of_bug(const struct sg_explore_images *x, guint number)
{
    char name[IMAGE_NAME];

    for (guint i = x->all->len; i-- > 0;) { /* they are the last ones */
        const struct occurrence *o = g_ptr_array_index(x->all, i);

        if (o->number == number) {
            images_name(&o->id, name);
            return g_strdup(name);
        }
    }
    return NULL;
}
