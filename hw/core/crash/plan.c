/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One function that answers for all strategies, and one for each that finds the next plan. */
#include "base/prng.h"
#include "crash/plan.h"

static const char *const strategy_name[SG_CRASH_STRATEGIES] = {
    [SG_CRASH_ONLY] = "only",     [SG_CRASH_ALL_BUT] = "all-but",
    [SG_CRASH_RANDOM] = "random", [SG_CRASH_EXHAUSTIVE] = "exhaustive",
    [SG_CRASH_READS] = "reads",   [SG_CRASH_GIVEN] = "plans",
};

const char *sg_crash_strategy_name(enum sg_crash_strategy s)
{
    return s < SG_CRASH_STRATEGIES ? strategy_name[s] : "?";
}

bool sg_crash_strategies_any(const struct sg_crash_strategies *s)
{
    bool any = false;

    for (unsigned i = 0; i < SG_CRASH_STRATEGIES; i++) {
        any |= s->use[i];
    }
    return any;
}

static struct sg_crash_asked *asked(GArray *list, guint n)
{
    return &g_array_index(list, struct sg_crash_asked, n);
}

/* The answer of a linear strategy's first plan: all has arrived; of lines nothing, or all. */
static uint32_t pole(uint8_t strategy, uint8_t what, uint32_t n)
{
    return what == SG_PERSIST_CHOICE_LINE && strategy == SG_CRASH_ONLY ? 0 : n - 1;
}

/* Prefers the extremes, as the policy "random" does. */
static uint32_t random_answer(struct sg_crash_planner *x, uint32_t n)
{
    switch (sg_prng(&x->policy.seed) >> 62) {
    case 0:
        return 0;
    case 1:
        return n - 1;
    default:
        return (uint32_t)(sg_prng(&x->policy.seed) % n);
    }
}

/* An answer that there is not is noticed later. */
static uint32_t given_answer(struct sg_crash_planner *x, uint32_t n)
{
    const GArray *answers = x->given->answers;
    const struct sg_crash_answer *next = &g_array_index(answers, struct sg_crash_answer, x->next);

    if (x->next == answers->len || next->question != x->at || next->answer >= n) {
        return n - 1;
    }
    x->next++;
    return next->answer;
}

static uint32_t answer(struct sg_crash_planner *x, const struct sg_persist_choice *q)
{
    if (x->now == SG_CRASH_GIVEN) {
        return given_answer(x, q->n);
    }
    if (x->now == SG_CRASH_RANDOM) {
        return random_answer(x, q->n);
    }
    if (x->now == SG_CRASH_READS) {
        return q->n - 1;
    }
    if (x->now == SG_CRASH_EXHAUSTIVE || (x->now == SG_CRASH_ONLY && x->number == 1)) {
        return 0; /* a question that was not asked before; nothing at all survives */
    }
    return x->number && x->at == x->question ? x->answer : pole(x->now, q->what, q->n);
}

static uint32_t choose(void *opaque, const struct sg_persist_choice *q)
{
    struct sg_crash_planner *x = opaque;

    if (x->at == x->asked->len) {
        struct sg_crash_asked new = {
            .addr = q->addr,
            .n = q->n,
            .taken = answer(x, q),
            .qpn = q->qpn,
            .unit = q->unit,
            .what = q->what,
        };

        g_array_append_val(x->asked, new);
    }
    return asked(x->asked, x->at++)->taken;
}

static void lose(void *opaque, const struct sg_persist_lost *lost)
{
    struct sg_crash_planner *x = opaque;

    g_array_append_vals(x->lost, lost, 1);
}

void sg_crash_planner_init(struct sg_crash_planner *x, const struct sg_crash_strategies *s,
                           uint64_t point)
{
    *x = (struct sg_crash_planner){
        .strategies = s,
        .point = point,
        .asked = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_asked)),
        .first = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_asked)),
        .lost = g_array_new(FALSE, FALSE, sizeof(struct sg_persist_lost)),
        .policy = { .choose = choose, .lose = lose, .opaque = x },
    };
}

void sg_crash_planner_fini(struct sg_crash_planner *x)
{
    g_array_unref(x->asked);
    g_array_unref(x->first);
    g_array_unref(x->lost);
}

/* ---- The next plan of a strategy ---- */

/*
 * The next answer that differs from the first plan's, to this question or a later one.  After its
 * first plan "only" has one in which nothing survives.
 */
static bool next_linear(struct sg_crash_planner *x)
{
    bool extra = x->now == SG_CRASH_ONLY;

    if (x->number == 1) { /* the first plan's cut is over: its questions are known */
        g_array_set_size(x->first, 0);
        g_array_append_vals(x->first, x->asked->data, x->asked->len);
        x->question = 0;
        x->answer = 0;
    } else if (x->number > 1 + extra) {
        x->answer++;
    }
    while (x->number > extra && x->question < x->first->len) {
        struct sg_crash_asked *q = asked(x->first, x->question);

        x->answer += x->answer == q->taken;
        if (x->answer < q->n) {
            break;
        }
        x->question++;
        x->answer = 0;
    }
    g_array_set_size(x->asked, 0);
    return x->number <= extra || x->question < x->first->len;
}

static bool next_random(struct sg_crash_planner *x)
{
    uint64_t seed = x->strategies->seed;

    g_array_set_size(x->asked, 0);
    seed = sg_prng(&seed) ^ x->point;
    x->policy.seed = sg_prng(&seed) + x->number;
    return x->number < x->strategies->random;
}

/* The last question that has another answer gets it; those behind it are asked anew. */
static bool next_exhaustive(struct sg_crash_planner *x)
{
    GArray *list = x->asked;

    if (!x->number) {
        g_array_set_size(list, 0);
        return true;
    }
    while (list->len && asked(list, list->len - 1)->taken + 1 == asked(list, list->len - 1)->n) {
        g_array_set_size(list, list->len - 1);
    }
    if (!list->len) {
        return false;
    }
    asked(list, list->len - 1)->taken++;
    return true;
}

static struct sg_persist_choice queue_of(const struct sg_crash_asked *q)
{
    return (struct sg_persist_choice){
        .what = q->what, .unit = q->unit, .qpn = q->qpn, .addr = q->addr
    };
}

/* Does the order matter in which queues arrive?  In "whole" S1 arrives, and nobody is asked. */
static bool order_matters(const struct sg_crash_planner *x)
{
    bool matters = sg_persist_config(x->p)->domain == SG_PERSIST_WHOLE;

    for (guint i = 0; i < x->asked->len && !matters; i++) {
        const struct sg_crash_asked *q = asked(x->asked, i);
        const struct sg_persist_choice of = queue_of(q);

        matters = (q->what == SG_PERSIST_CHOICE_POSTED || q->what == SG_PERSIST_CHOICE_PLACED ||
                   q->what == SG_PERSIST_CHOICE_SEGMENT) &&
                  sg_crash_reads_less(x->strategies->reads, x->p, &of, q->n) != UINT32_MAX;
    }
    return matters;
}

/* The next answer that makes a difference to who reads.  False: there is none. */
static bool take_less(const struct sg_crash_planner *x, struct sg_crash_asked *q)
{
    const struct sg_persist_choice of = queue_of(q);
    uint32_t less = q->taken - 1; /* of 0: UINT32_MAX */

    if (q->what == SG_PERSIST_CHOICE_ORDER) {
        less = order_matters(x) ? less : UINT32_MAX;
    } else if (q->what != SG_PERSIST_CHOICE_LINE) {
        less = sg_crash_reads_less(x->strategies->reads, x->p, &of, q->taken);
    } else if (!sg_crash_reads_has(x->strategies->reads, q->addr)) {
        less = UINT32_MAX;
    }
    q->taken = less == UINT32_MAX ? q->taken : less;
    return less != UINT32_MAX;
}

/* As exhaustive, from the last answer downwards. */
static bool next_reads(struct sg_crash_planner *x)
{
    GArray *list = x->asked;

    if (!x->number) {
        g_array_set_size(list, 0);
        return true;
    }
    while (list->len && !take_less(x, asked(list, list->len - 1))) {
        g_array_set_size(list, list->len - 1);
    }
    x->cut_short = list->len && x->number >= x->strategies->reads_per_point;
    return list->len && !x->cut_short;
}

const struct sg_persist_policy *sg_crash_planner_next(struct sg_crash_planner *x)
{
    static bool (*const next[SG_CRASH_GIVEN])(struct sg_crash_planner *x) = {
        [SG_CRASH_ONLY] = next_linear,   [SG_CRASH_ALL_BUT] = next_linear,
        [SG_CRASH_RANDOM] = next_random, [SG_CRASH_EXHAUSTIVE] = next_exhaustive,
        [SG_CRASH_READS] = next_reads,
    };

    x->number += x->begun;
    while (x->now < SG_CRASH_GIVEN) {
        if (x->strategies->use[x->now] && next[x->now](x)) {
            x->begun = true;
            x->at = 0;
            g_array_set_size(x->lost, 0);
            return &x->policy;
        }
        x->now++;
        x->begun = false;
        x->number = 0;
    }
    return NULL;
}

const struct sg_persist_policy *sg_crash_planner_give(struct sg_crash_planner *x,
                                                      const struct sg_crash_given *given)
{
    x->now = SG_CRASH_GIVEN;
    x->given = given;
    x->next = 0;
    x->at = 0;
    g_array_set_size(x->asked, 0);
    g_array_set_size(x->lost, 0);
    return &x->policy;
}

char *sg_crash_planner_wrong(const struct sg_crash_planner *x)
{
    const struct sg_crash_answer *a;

    if (x->next == x->given->answers->len) {
        return NULL;
    }
    a = &g_array_index(x->given->answers, struct sg_crash_answer, x->next);
    if (a->question >= x->asked->len) {
        return g_strdup_printf("it answers question %u, but its cut has %u questions", a->question,
                               x->asked->len);
    }
    return g_strdup_printf("it gives answer %u to question %u, which has %u answers (from 0 on)",
                           a->answer, a->question, asked(x->asked, a->question)->n);
}

void sg_crash_plan_deviations(struct sg_crash_planner *x, struct sg_crash_deviations *out)
{
    sg_crash_deviations_set(out, x->asked, x->lost);
}

void sg_crash_plan_text(const struct sg_crash_planner *x, GString *out)
{
    g_string_append(out, sg_crash_strategy_name((enum sg_crash_strategy)x->now));
    if (x->now == SG_CRASH_GIVEN) {
        return; /* its owner knows which */
    }
    if (x->now == SG_CRASH_RANDOM || x->now == SG_CRASH_READS) {
        g_string_append_printf(out, " %" G_GUINT64_FORMAT, x->number);
    } else if (x->now != SG_CRASH_EXHAUSTIVE) {
        if (x->now == SG_CRASH_ONLY && x->number == 1) {
            g_string_append(out, " nothing");
        } else if (x->number) {
            g_string_append_printf(out, " %u=%u", x->question, x->answer);
        }
    } else {
        for (guint i = 0; i < x->asked->len; i++) {
            g_string_append_printf(out, " %u", asked(x->asked, i)->taken);
        }
    }
}
