/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules drawn from a seed: the same each time, and always rules of the grammar. */
#include <glib.h>

#include "faults/fault_rules.h"
#include "tap.h"
#include "words.h"

enum { SEEDS = 5000 };

static char *drawn(const char *text)
{
    struct sg_faults *f = sg_faults_new(&test_words);
    char err[256], *json;

    T_TRUE(sg_faults_set(f, text, 0, err, sizeof(err)));
    json = sg_faults_json(f);
    sg_faults_free(f);
    return json;
}

static void same(void)
{
    char *a = drawn("draw seed=7 rules=64"), *b = drawn("draw seed=7 rules=64");
    char *other = drawn("draw seed=8 rules=64"), *few = drawn("draw seed=7 rules=2");

    T_EQ_STR(a, b);
    T_TRUE(strcmp(a, other) != 0);
    /* More rules of a seed begin with the same ones. */
    T_EQ_INT(strncmp(a, few, strlen(few) - strlen("], \"late\": 0}")), 0);
    g_free(a);
    g_free(b);
    g_free(other);
    g_free(few);
}

/* Every seed gives rules; all effects occur, and begin within the time. */
static void lots(void)
{
    uint64_t found = 0;
    char text[SG_FAULT_TEXT], err[160];
    struct sg_fault_lot lot = { .within = 3000000 }, none;
    struct sg_fault_rule rule;

    for (lot.seed = 0; lot.seed < SEEDS; lot.seed++) {
        for (unsigned n = 0; n < 4; n++) {
            sg_fault_draw(&lot, n, text);
            T_CONTEXT("seed %" PRIu64 ": %s", lot.seed, text);
            T_EQ_INT(
                sg_fault_parse(text, strlen(text), &test_words, &rule, &none, err, sizeof(err)), 1);
            T_TRUE(rule.after < lot.within);
            T_TRUE(rule.times == 1 || rule.lasts != SG_NEVER); /* none goes on for ever */
            found |= 1ull << rule.effect;
        }
    }
    T_EQ_U64(found, ((2ull << SG_EFFECT_FATAL) - 2) & ~(1ull << SG_EFFECT_UP));
    lot.within = 0;
    sg_fault_draw(&lot, 0, text);
    T_EQ_INT(sg_fault_parse(text, strlen(text), &test_words, &rule, &none, err, sizeof(err)), 1);
}

static const struct t_case cases[] = {
    { "a seed always gives the same rules", same },
    { "each seed gives rules that end", lots },
};

T_MAIN(cases)
