/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strategies, against questions that depend on the answers before. */
#include "crash/plan.h"
#include "crash/ways.h"
#include "tap.h"

enum { QUEUE = SG_PERSIST_CHOICE_POSTED, LINE = SG_PERSIST_CHOICE_LINE, MOST = 64 };

static uint32_t ask_of(const struct sg_persist_policy *policy, uint8_t what, uint32_t n,
                       uint64_t addr)
{
    struct sg_persist_choice q = { .what = what, .n = n, .addr = addr };

    return n < 2 ? 0 : policy->choose(policy->opaque, &q);
}

static uint32_t ask(const struct sg_persist_policy *policy, uint8_t what, uint32_t n)
{
    return ask_of(policy, what, n, 0);
}

/* A cut: of a queue so many entries leave; two lines have states; a third is there if any left. */
static unsigned cut(const struct sg_persist_policy *policy)
{
    unsigned left = ask(policy, QUEUE, 3), a = ask(policy, LINE, 3), b = ask(policy, LINE, 2);
    unsigned c = left ? ask(policy, LINE, 2) : 0;

    return left * 1000 + a * 100 + b * 10 + c;
}

/* All outcomes of a strategy, with their plans, as text. */
static char *outcomes(struct sg_crash_strategies *s)
{
    struct sg_crash_planner x;
    const struct sg_persist_policy *policy;
    GString *out = g_string_new(NULL);
    unsigned n = 0;

    sg_crash_planner_init(&x, s, 3);
    while ((policy = sg_crash_planner_next(&x)) && ++n < MOST) {
        g_string_append_printf(out, "%s%04u ", n > 1 ? ", " : "", cut(policy));
        sg_crash_plan_text(&x, out);
    }
    T_TRUE(n < MOST);
    T_NULL(sg_crash_planner_next(&x));
    sg_crash_planner_fini(&x);
    return g_string_free(out, FALSE);
}

static void expect(struct sg_crash_strategies s, const char *want)
{
    char *got = outcomes(&s);

    T_EQ_STR(got, want);
    g_free(got);
}

static void linear(void)
{
    expect((struct sg_crash_strategies){ .use = { [SG_CRASH_ONLY] = true } },
           "2000 only, 0000 only nothing, 0000 only 0=0, 1000 only 0=1, 2100 only 1=1, "
           "2200 only 1=2, 2010 only 2=1, 2001 only 3=1");
    expect((struct sg_crash_strategies){ .use = { [SG_CRASH_ALL_BUT] = true } },
           "2211 all-but, 0210 all-but 0=0, 1211 all-but 0=1, 2011 all-but 1=0, 2111 all-but 1=1, "
           "2201 all-but 2=0, 2210 all-but 3=0");
}

static void exhaustive(void)
{
    char *got = outcomes(&(struct sg_crash_strategies){ .use = { [SG_CRASH_EXHAUSTIVE] = true } });
    char **each = g_strsplit(got, ", ", -1);
    bool seen[3000] = { false };

    T_EQ_INT(g_strv_length(each), 3 * 2 + 2 * 3 * 2 * 2);
    for (unsigned i = 0; each[i]; i++) {
        unsigned outcome = (unsigned)strtoul(each[i], NULL, 10);

        T_FALSE(seen[outcome]);
        seen[outcome] = true;
    }
    T_TRUE(g_str_has_suffix(each[0], "exhaustive 0 0 0"));
    g_strfreev(each);
    g_free(got);
}

static void random_plans(void)
{
    struct sg_crash_strategies s = { .use = { [SG_CRASH_RANDOM] = true }, .random = 40, .seed = 1 };
    char *first = outcomes(&s), *again = outcomes(&s), *other;

    T_EQ_STR(first, again);
    T_NOT_NULL(strstr(first, "random 39"));
    s.seed = 2;
    other = outcomes(&s);
    T_TRUE(strcmp(first, other) != 0);
    g_free(first);
    g_free(again);
    g_free(other);
}

/* A cut without questions has one plan of each strategy, and those of "random". */
static void no_questions(void)
{
    struct sg_crash_strategies s = { .use = { true, true, true, true }, .random = 2, .seed = 1 };
    const struct sg_persist_policy *policy;
    struct sg_crash_planner x;
    unsigned n = 0;

    T_TRUE(sg_crash_strategies_any(&s));
    sg_crash_planner_init(&x, &s, 0);
    while ((policy = sg_crash_planner_next(&x))) {
        n++;
    }
    T_EQ_INT(n, 2 + 1 + 2 + 1);
    sg_crash_planner_fini(&x);
    T_FALSE(sg_crash_strategies_any(&(struct sg_crash_strategies){ .random = 1 }));
}

/* 40 lines with three states each; the third of a line asks once more, of five. */
static void many_lines(void *opaque, const struct sg_persist_policy *policy)
{
    unsigned left = ask(policy, QUEUE, 2);

    for (unsigned i = 0; i < (left ? 40 : 39); i++) {
        if (ask_of(policy, LINE, 3, 64 * i) == 2) {
            ask_of(policy, LINE, 5, 64 * i);
        }
    }
}

static void nothing(void *opaque, const struct sg_persist_policy *policy)
{
}

static void count_ways(void)
{
    struct sg_crash_count sum;
    GString *text = g_string_new(NULL);
    unsigned cuts;

    sg_crash_count_init(&sum, 0);
    T_TRUE(sg_crash_ways(nothing, NULL, 1, &sum, &cuts));
    T_EQ_U64(sg_crash_count_value(&sum, 10), 1);
    sg_crash_count_set(&sum, 0);
    T_TRUE(sg_crash_ways(many_lines, NULL, 100, &sum, &cuts));
    T_EQ_INT(cuts, 2 * 7);
    sg_crash_count_text(&sum, text); /* 7^39 + 7^40 */
    T_EQ_STR(text->str, "7276349441038889126561640159113144");
    sg_crash_count_set(&sum, 0);
    T_FALSE(sg_crash_ways(many_lines, NULL, 13, &sum, &cuts));
    T_EQ_INT(cuts, 13);
    sg_crash_count_fini(&sum);
    g_string_free(text, TRUE);
}

static const struct t_case cases[] = {
    { "persist only one, and all but one", linear },
    { "all answers to all questions, each once", exhaustive },
    { "random plans repeat with their seed", random_plans },
    { "a cut without questions", no_questions },
    { "the number of ways has any number of digits", count_ways },
};

T_MAIN(cases)
