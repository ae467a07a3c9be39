/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A crash point: for each plan a clone of the domain, whose memories are private copies of the
 * platform's, is cut; what its media have then is compared with the start, line by line.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "crash/ways.h"
#include "images_impl.h"
#include "pasts.h"
#include "persist/certain.h"

enum {
    WAYS_CUTS = 2000, /* to count the ways at a crash point; and at all of them: */
    WAYS_CUTS_ALL = 200000,
    CUTS_PER_IMAGE = 32, /* more than so many plans for each image that is allowed are left out */
};

bool images_complain(const char *path)
{
    fprintf(stderr, "staghorn-explore: %s: %s\n", path, strerror(errno));
    return false;
}

static guint identity_hash(gconstpointer key)
{
    return (guint)((const struct identity *)key)->half[0];
}

static gboolean identity_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(struct identity)) == 0;
}

static guint occurrence_hash(gconstpointer key)
{
    const struct occurrence *x = key;

    return (guint)(x->id.half[0] + (x->promises + x->instant) * 0x9e3779b9u);
}

static gboolean occurrence_equal(gconstpointer a, gconstpointer b)
{
    const struct occurrence *x = a, *y = b;

    return identity_equal(&x->id, &y->id) && x->promises == y->promises && x->instant == y->instant;
}

static void free_deviations(struct sg_crash_deviations *d)
{
    if (d) {
        sg_crash_deviations_fini(d);
        g_free(d);
    }
}

static void free_occurrence(gpointer opaque)
{
    struct occurrence *x = opaque;

    free_deviations(x->deviations);
    g_array_unref(x->early);
    g_free(x->plan);
    g_free(x);
}

struct sg_explore_images *sg_explore_images_new(const char *folder,
                                                const struct sg_explore_wanted *want)
{
    struct sg_explore_images *x = g_new0(struct sg_explore_images, 1);

    x->folder = g_strdup(folder);
    x->want = *want;
    sg_crash_deviations_init(&x->deviations);
    x->touched = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    x->pages = g_array_new(FALSE, FALSE, sizeof(struct touched));
    x->lines = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    x->losers = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    x->known = g_hash_table_new_full(identity_hash, identity_equal, g_free, NULL);
    x->where = g_hash_table_new(occurrence_hash, occurrence_equal);
    x->all = g_ptr_array_new_with_free_func(free_occurrence);
    for (unsigned i = 0; i < SG_TRACE_EXTENTS; i++) {
        x->base[i].fd = -1;
    }
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        sg_crash_count_init(&x->counts[i].ways, 0);
        sg_crash_clusters_init(&x->clusters[i]);
        sg_explore_memories_init(&x->copies[i]);
    }
    return x;
}

void images_unmap_copies(struct sg_explore_images *x, unsigned platform)
{
    sg_explore_memories_fini(&x->copies[platform]);
}

void sg_explore_images_free(struct sg_explore_images *x)
{
    if (!x) {
        return;
    }
    for (unsigned i = 0; i < SG_TRACE_EXTENTS; i++) {
        sg_explore_unmap(&x->base[i]);
        g_free(x->base_file[i]);
    }
    for (unsigned i = 0; i < SG_CRASH_PLATFORMS; i++) {
        images_unmap_copies(x, i);
        sg_crash_count_fini(&x->counts[i].ways);
        sg_crash_clusters_fini(&x->clusters[i]);
    }
    g_array_unref(x->losers);
    g_free(x->folder);
    g_hash_table_destroy(x->touched);
    g_array_unref(x->pages);
    g_array_unref(x->lines);
    g_hash_table_destroy(x->known);
    g_hash_table_destroy(x->where);
    g_ptr_array_unref(x->all);
    sg_crash_deviations_fini(&x->deviations);
    g_free(x);
}

bool sg_explore_images_begin(struct sg_explore_images *x, const struct sg_crash_image_head *head,
                             const struct sg_explore_content *base,
                             const struct sg_crash_exploration *what,
                             const struct sg_crash_explorer *explorer, const char *target_name)
{
    x->head = *head;
    x->explorer = explorer;
    x->issuers = what->issuers;
    x->promise = sg_crash_promises_of(what->promises, what->target, &x->promises);
    x->target = target_name;
    images_sort_pages(x);
    for (unsigned i = 0; i < head->extent_count; i++) {
        if (!sg_explore_map(&x->base[i], base, i, head->extent[i].size)) {
            return images_complain("the base of the images");
        }
    }
    return images_write_base(x, base);
}

/* ---- A crash point ---- */

/* The platform's copies are as the past at hand; false: there is no memory, the first time. */
static bool copy_past(struct sg_explore_images *x)
{
    return sg_explore_pasts_copy(&x->copies[x->platform], x->memories, x->head.extent_count, x->p,
                                 x->memory);
}

struct sg_persist *images_cut(struct sg_explore_images *x, const struct sg_persist_policy *policy)
{
    struct sg_explore_memories *c = &x->copies[x->platform];
    struct sg_persist_memory memory[SG_TRACE_EXTENTS];
    struct sg_persist *clone;

    sg_assert(copy_past(x)); /* they are there */
    for (unsigned i = 0; i < x->head.extent_count; i++) {
        memory[i] = (struct sg_persist_memory){
            .visible = c->visible[i].octets,
            .media = c->media[i].octets,
        };
    }
    clone = sg_persist_clone(x->p, memory);
    sg_persist_note_touched(clone, true);
    sg_persist_report_free(sg_persist_cut(clone, policy));
    sg_explore_pasts_changed(c, x->head.extent_count, clone);
    return clone;
}

/* x->deviations with events of the trace; NULL: too much to list. */
static struct sg_crash_deviations *list_deviations(struct sg_explore_images *x, guint *omitted)
{
    struct sg_crash_deviations *d = g_new(struct sg_crash_deviations, 1);
    guint count = x->deviations.all->len + x->deviations.lost->len;

    if (count > DEVIATIONS_EACH || x->listed + count > DEVIATIONS_ALL) {
        *omitted = x->deviations.all->len;
        x->unlisted++;
        g_free(d);
        return NULL;
    }
    x->listed += count;
    d->all = g_array_copy(x->deviations.all);
    d->lost = g_array_copy(x->deviations.lost);
    for (guint i = 0; i < d->lost->len; i++) {
        uint64_t *lost = &g_array_index(d->lost, uint64_t, i);

        *lost = sg_crash_explorer_event_of(x->explorer, x->platform, *lost);
    }
    return d;
}

static struct occurrence *add_occurrence(struct sg_explore_images *x, const struct occurrence *key,
                                         struct sg_crash_planner *plan,
                                         const struct sg_explore_plan *given)
{
    struct occurrence *new = g_memdup2(key, sizeof(*key));
    GString *text = g_string_new(NULL);

    if (!given || !given->loses) {
        sg_crash_plan_text(plan, text);
    }
    if (given) {
        g_string_append_printf(text, given->loses ? "bug %u" : " %u", given->number);
        new->number = given->number;
    }
    new->plan = g_string_free(text, FALSE);
    new->early = g_array_copy((GArray *)x->early);
    new->deviations = list_deviations(x, &new->omitted);
    g_ptr_array_add(x->all, new);
    return new;
}

/*
 * Does the occurrence have the past at hand, and the answers of the last cut?  Lists that are
 * omitted count as equal.
 */
static bool same_answers(const struct sg_explore_images *x, const struct occurrence *o,
                         const struct sg_crash_deviations *d)
{
    if (!sg_crash_same_past(o->early, x->early)) {
        return false;
    }
    if (!o->deviations || o->deviations->all->len != d->all->len) {
        return !o->deviations && o->omitted == d->all->len;
    }
    for (guint i = 0; i < d->all->len; i++) {
        const struct sg_crash_deviation *a =
            &g_array_index(o->deviations->all, struct sg_crash_deviation, i);
        const struct sg_crash_deviation *b = &g_array_index(d->all, struct sg_crash_deviation, i);

        if (a->question != b->question || a->asked.taken != b->asked.taken) {
            return false;
        }
    }
    return true;
}

/*
 * The platform at hand has an image that is known: it joins the occurrence whose plan makes the
 * image there as well, or gets one of its own.
 */
static void note_platform(struct sg_explore_images *x, struct occurrence *known,
                          const struct occurrence *key, struct sg_crash_planner *plan)
{
    for (const struct occurrence *o = known; o; o = o->next) {
        if (o->platforms & key->platforms) {
            return;
        }
    }
    sg_crash_plan_deviations(plan, &x->deviations);
    for (;; known = known->next) {
        if (known->behind == key->behind && same_answers(x, known, &x->deviations)) {
            known->platforms |= key->platforms;
            return;
        }
        if (!known->next) {
            known->next = add_occurrence(x, key, plan, NULL);
            return;
        }
    }
}

bool images_note(struct sg_explore_images *x, struct sg_crash_planner *plan,
                 const struct sg_explore_plan *given, uint64_t behind,
                 const struct sg_persist *clone)
{
    const struct sg_explore_memories *c = &x->copies[x->platform];
    struct occurrence key = {
        .id = images_compare(x, c),
        .promises = x->in_force,
        .behind = behind,
        .instant = x->want.instants ? behind + 1 : 0,
        .platforms = 1u << x->platform,
    };
    GArray *bad = images_bad_lines(clone, &key.id);
    struct occurrence *known = given ? NULL : g_hash_table_lookup(x->where, &key);
    bool good = true;

    if (known) {
        note_platform(x, known, &key, plan);
    } else {
        sg_crash_plan_deviations(plan, &x->deviations);
        known = add_occurrence(x, &key, plan, given);
        x->demanded++;
        x->counts[x->platform].found[plan->now]++;
        if (!given) {
            g_hash_table_add(x->where, known);
        }
        if (!g_hash_table_contains(x->known, &key.id)) {
            g_hash_table_add(x->known, g_memdup2(&key.id, sizeof(key.id)));
            good = images_write_image(x, c, bad, &key.id);
        }
    }
    g_array_unref(bad);
    return good;
}

static void cut_only(void *opaque, const struct sg_persist_policy *policy)
{
    struct sg_explore_images *x = opaque;

    sg_persist_free(images_cut(x, policy));
}

/* Adds the number of ways at this crash point, as far as it can be counted. */
static void count_ways(struct sg_explore_images *x)
{
    struct sg_explore_images_counts *counts = &x->counts[x->platform];
    unsigned cuts = 0;

    if (x->ways_cuts >= WAYS_CUTS_ALL ||
        !sg_crash_ways(cut_only, x, WAYS_CUTS, &counts->ways, &cuts)) {
        counts->uncounted++;
    }
    x->ways_cuts += cuts;
}

/* Has everything been made that --max-images allows up to here? */
static bool is_full(const struct sg_explore_images *x)
{
    return x->demanded >= x->allowed || x->cuts / CUTS_PER_IMAGE >= x->allowed;
}

/* A cut by a policy of the planner, and its image.  False: it is not written. */
static bool make_image(struct sg_explore_images *x, struct sg_crash_planner *plan,
                       const struct sg_persist_policy *policy, const struct sg_explore_plan *given,
                       uint64_t behind)
{
    struct sg_persist *clone = images_cut(x, policy);
    bool good;

    x->cuts++;
    x->counts[x->platform].plans[plan->now]++;
    good = images_note(x, plan, given, behind, clone);
    sg_persist_free(clone);
    return good;
}

/* "reads" had more plans than it may have. */
static void note_cut_short(struct sg_explore_images_counts *counts, uint64_t behind)
{
    if (counts->cut_short < SG_EXPLORE_CUT_SHORT) {
        counts->cut_behind[counts->cut_short] = behind;
    }
    counts->cut_short++;
}

static enum sg_explore_status by_strategies(struct sg_explore_images *x, uint64_t behind)
{
    struct sg_explore_images_counts *counts = &x->counts[x->platform];
    const struct sg_persist_policy *policy;
    struct sg_crash_planner plan;
    bool good = true, full = false;

    if (!x->spread.again) {
        count_ways(x);
    }
    if (!images_wants_point(x)) {
        return SG_EXPLORE_GOOD;
    }
    sg_crash_planner_init(&plan, x->want.strategies, behind);
    plan.p = x->p;
    while (good && !full && (policy = sg_crash_planner_next(&plan))) {
        full = is_full(x);
        good = full || make_image(x, &plan, policy, NULL, behind);
    }
    if (full) {
        counts->left_out++;
    } else {
        counts->points++;
    }
    if (plan.cut_short) {
        note_cut_short(counts, behind);
    }
    sg_crash_planner_fini(&plan);
    return good ? SG_EXPLORE_GOOD : SG_EXPLORE_FAILED;
}

static enum sg_explore_status plan_complain(const struct sg_explore_plan *plan, const char *what)
{
    fprintf(stderr, "staghorn-explore: plan %u: %s\n", plan->number, what);
    return SG_EXPLORE_USAGE;
}

static enum sg_explore_status by_plan(struct sg_explore_images *x, struct sg_explore_plan *given,
                                      uint64_t behind)
{
    struct sg_crash_planner plan;
    enum sg_explore_status status = SG_EXPLORE_GOOD;
    char *wrong;

    sg_crash_planner_init(&plan, x->want.strategies, behind);
    if (!make_image(x, &plan, sg_crash_planner_give(&plan, &given->given), given, behind)) {
        status = SG_EXPLORE_FAILED;
    }
    wrong = sg_crash_planner_wrong(&plan);
    if (wrong) {
        status = plan_complain(given, wrong);
        g_free(wrong);
    }
    given->made = true;
    sg_crash_planner_fini(&plan);
    return status;
}

bool sg_explore_images_planned(struct sg_explore_images *x, uint64_t behind)
{
    const GArray *plans = x->want.plans;

    for (; x->next_plan < plans->len; x->next_plan++) {
        if (g_array_index(plans, struct sg_explore_plan, x->next_plan).given.behind >= behind) {
            break;
        }
    }
    return x->next_plan < plans->len &&
           g_array_index(plans, struct sg_explore_plan, x->next_plan).given.behind == behind;
}

/* The plans of this instant; platforms come to it one behind the other. */
static enum sg_explore_status by_plans(struct sg_explore_images *x, uint64_t behind)
{
    enum sg_explore_status status = SG_EXPLORE_GOOD;
    const GArray *plans = x->want.plans;
    struct sg_explore_plan *plan;

    for (guint i = x->next_plan; i < plans->len && status == SG_EXPLORE_GOOD; i++) {
        plan = &g_array_index(plans, struct sg_explore_plan, i);
        if (plan->given.behind != behind) {
            break;
        }
        if (plan->given.platform == x->platform && sg_crash_same_past(plan->early, x->early)) {
            x->counts[x->platform].points += !plan->made && !plan->loses;
            status = plan->loses ? images_by_bug(x, plan, behind) : by_plan(x, plan, behind);
        }
    }
    return status;
}

enum sg_explore_status sg_explore_images_point(struct sg_explore_images *x, unsigned platform,
                                               const struct sg_persist *p, uint64_t behind,
                                               const struct sg_explore_memories *memories)
{
    x->early = sg_crash_explorer_past(x->explorer, platform, &x->memory);
    x->memories = memories;
    x->p = p;
    x->platform = platform;
    if (!copy_past(x)) {
        images_complain("copies of persistent memory");
        return SG_EXPLORE_FAILED;
    }
    while (x->in_force < x->promises && x->promise[x->in_force].from <= behind) {
        x->in_force++;
    }
    return x->want.plans ? by_plans(x, behind) : by_strategies(x, behind);
}

static gint by_number(gconstpointer a, gconstpointer b)
{
    const struct occurrence *const *x = a, *const *y = b;

    return (*x)->number<(*y)->number ? -1 : (*x)->number>(*y)->number;
}

enum sg_explore_status sg_explore_images_end(struct sg_explore_images *x,
                                             const struct sg_crash_platform *platform)
{
    for (guint i = 0; x->want.plans && i < x->want.plans->len; i++) {
        const struct sg_explore_plan *plan =
            &g_array_index(x->want.plans, struct sg_explore_plan, i);

        if (!plan->made && !plan->loses) {
            return plan_complain(plan, "its platform is not judged as far as its event");
        }
    }
    if (x->want.plans) {
        g_ptr_array_sort(x->all, by_number);
    }
    return images_write_list(x, platform) ? SG_EXPLORE_GOOD : SG_EXPLORE_FAILED;
}

void sg_explore_images_each(const struct sg_explore_images *x, sg_explore_occurrence *each,
                            void *opaque)
{
    for (guint i = 0; i < x->all->len; i++) {
        const struct occurrence *o = g_ptr_array_index(x->all, i);

        each(opaque, i, o->behind, o->platforms, o->deviations && !o->deviations->all->len);
    }
}

uint64_t sg_explore_images_count(const struct sg_explore_images *x, uint64_t *occurrences)
{
    *occurrences = x->demanded;
    return g_hash_table_size(x->known);
}

const struct sg_explore_images_counts *sg_explore_images_counts(const struct sg_explore_images *x,
                                                                unsigned platform)
{
    return &x->counts[platform];
}

uint64_t sg_explore_images_unlisted(const struct sg_explore_images *x)
{
    return x->unlisted;
}

bool sg_explore_images_spread(const struct sg_explore_images *x)
{
    return x->spread.again;
}

uint64_t sg_explore_images_clusters(const struct sg_explore_images *x, unsigned platform)
{
    return sg_crash_clusters_count(&x->clusters[platform]);
}
