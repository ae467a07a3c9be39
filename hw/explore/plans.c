/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A plan that is wrong is named by its number. */
#include <stdio.h>
#include <string.h>

#include "json_read.h"
#include "plans.h"

static void clear_plan(gpointer opaque)
{
    struct sg_explore_plan *plan = opaque;

    if (plan->given.answers) {
        g_array_unref(plan->given.answers);
        g_array_unref(plan->early);
    }
}

void sg_explore_plans_free(GArray *plans)
{
    if (plans) {
        g_array_unref(plans);
    }
}

GArray *sg_explore_plans_new(void)
{
    GArray *plans = g_array_new(FALSE, FALSE, sizeof(struct sg_explore_plan));

    g_array_set_clear_func(plans, clear_plan);
    return plans;
}

static gint by_question(gconstpointer a, gconstpointer b)
{
    const struct sg_crash_answer *x = a, *y = b;

    return x->question < y->question ? -1 : x->question > y->question;
}

/* NULL, or what is wrong. */
static const char *read_answers(GArray *answers, const struct json_value *list)
{
    for (guint i = 0; i < list->items->len; i++) {
        const struct json_value *item = g_ptr_array_index(list->items, i);
        const struct json_value *question = json_member(item, "question", JSON_NUMBER);
        const struct json_value *answer = json_member(item, "answer", JSON_NUMBER);
        struct sg_crash_answer new;

        if (!question || !answer || question->number > UINT32_MAX || answer->number > UINT32_MAX) {
            return "a deviation needs the numbers \"question\" and \"answer\"";
        }
        new = (struct sg_crash_answer){
            .question = (uint32_t)question->number,
            .answer = (uint32_t)answer->number,
        };
        g_array_append_val(answers, new);
    }
    g_array_sort(answers, by_question);
    for (guint i = 1; i < answers->len; i++) {
        if (g_array_index(answers, struct sg_crash_answer, i).question ==
            g_array_index(answers, struct sg_crash_answer, i - 1).question) {
            return "two deviations answer the same question";
        }
    }
    return NULL;
}

bool sg_explore_find_platform(const char *name, const struct sg_crash_platform *platform,
                              unsigned platforms, unsigned *found)
{
    char of[SG_CRASH_PLATFORM_NAME];

    for (*found = 0; *found < platforms; ++*found) {
        sg_crash_platform_name(&platform[*found], of);
        if (strcmp(of, name) == 0) {
            return true;
        }
    }
    return false;
}

const char *sg_explore_read_arrivals(GArray *early, const struct json_value *v)
{
    const struct json_value *list = json_member(v, "arrivals", JSON_ARRAY);

    return list && read_answers(early, list)
               ? "early arrivals need different numbers \"question\", and the number \"answer\""
               : NULL;
}

static const char *read_plan(struct sg_explore_plan *plan, const struct json_value *v,
                             const struct sg_crash_platform *platform, unsigned platforms)
{
    const struct json_value *behind = json_member(v, "behind", JSON_NUMBER);
    const struct json_value *name = json_member(v, "platform", JSON_TEXT);
    const struct json_value *deviations = json_member(v, "deviations", JSON_ARRAY);
    const char *wrong;

    if (!behind || !name || !deviations) {
        return "it needs the number \"behind\", the text \"platform\" and the list \"deviations\"";
    }
    if (!sg_explore_find_platform(name->text, platform, platforms, &plan->given.platform)) {
        return "its platform is not explored: see --domain and --ddio";
    }
    plan->given.behind = behind->number;
    wrong = sg_explore_read_arrivals(plan->early, v);
    return wrong ? wrong : read_answers(plan->given.answers, deviations);
}

static gint by_point(gconstpointer a, gconstpointer b)
{
    const struct sg_explore_plan *x = a, *y = b;

    if (x->given.behind != y->given.behind) {
        return x->given.behind < y->given.behind ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

static char *read_all(GArray *plans, const struct json_value *file,
                      const struct sg_crash_platform *platform, unsigned platforms)
{
    const struct json_value *version = json_member(file, "version", JSON_NUMBER);
    const struct json_value *list = json_member(file, "plans", JSON_ARRAY);

    if (!version || version->number != 1 || !list) {
        return g_strdup("it is no file of plans: it needs \"version\": 1 and a list \"plans\"");
    }
    if (list->items->len > PLANS_MAX) {
        return g_strdup_printf("it has more than %d plans: divide it", PLANS_MAX);
    }
    for (guint i = 0; i < list->items->len; i++) {
        struct sg_explore_plan plan = {
            .given.answers = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_answer)),
            .early = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_answer)),
            .number = i,
        };
        const char *wrong =
            read_plan(&plan, g_ptr_array_index(list->items, i), platform, platforms);

        g_array_append_val(plans, plan);
        if (wrong) {
            return g_strdup_printf("plan %u: %s", i, wrong);
        }
    }
    g_array_sort(plans, by_point);
    return NULL;
}

GArray *sg_explore_plans_read(const char *path, const struct sg_crash_platform *platform,
                              unsigned platforms)
{
    GArray *plans = sg_explore_plans_new();
    char *wrong = NULL;
    struct json_value *file = json_read_file(path, &wrong);

    if (file) {
        wrong = read_all(plans, file, platform, platforms);
    }
    if (wrong) {
        fprintf(stderr, "staghorn-explore: %s: %s\n", path, wrong);
        g_array_unref(plans);
        plans = NULL;
    }
    json_free(file);
    g_free(wrong);
    return plans;
}
