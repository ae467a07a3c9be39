/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The test library tests itself: a check that cannot fail would make every
 * other test worthless.
 */
#include "tap.h"

static bool leaves(void (*run)(void))
{
    struct t_state kept = t_state;
    bool failed = false;

    if (setjmp(t_state.leave) == T_RUNNING) {
        run();
    } else {
        failed = true;
    }
    t_state = kept;
    return failed;
}

static void unequal_integers(void)
{
    T_EQ_U64(1, 2);
}

static void unequal_signs(void)
{
    T_EQ_INT(-1, 1);
}

static void unequal_octets(void)
{
    T_EQ_MEM("ab", "ac", 2);
}

static void unequal_strings(void)
{
    T_EQ_STR("a", "b");
}

static void untrue(void)
{
    T_TRUE(0);
}

static void unfalse(void)
{
    T_FALSE(1);
}

static void all_fine(void)
{
    T_EQ_U64(UINT64_MAX, UINT64_MAX);
    T_EQ_INT(-1, -1);
    T_EQ_MEM("ab", "ac", 1);
    T_EQ_STR("a", "a");
    T_TRUE(1);
    T_FALSE(0);
}

static void checks__fail_when_they_should(void)
{
    void (*const failing[])(void) = {
        unequal_integers, unequal_signs, unequal_octets, unequal_strings, untrue, unfalse,
    };
    size_t i;

    for (i = 0; i < sizeof(failing) / sizeof(failing[0]); i++) {
        T_CONTEXT("check %zu", i);
        T_TRUE(leaves(failing[i]));
    }
}

static void checks__pass_when_they_should(void)
{
    T_FALSE(leaves(all_fine));
}

static const struct t_case cases[] = {
    { "checks fail when they should", checks__fail_when_they_should },
    { "checks pass when they should", checks__pass_when_they_should },
};

T_MAIN(cases)
