/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The test library tests itself: a check that cannot fail would make every
 * other test worthless.
 */
#include <fcntl.h>
#include <unistd.h>

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

/* Hides the output of a tested case, which is not part of this program's TAP. */
static void stdout_to_nowhere(bool on)
{
    static int kept = -1;

    fflush(stdout);
    if (on) {
        int null = open("/dev/null", O_WRONLY);

        kept = dup(STDOUT_FILENO);
        dup2(null, STDOUT_FILENO);
        close(null);
    } else {
        dup2(kept, STDOUT_FILENO);
        close(kept);
    }
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
    void (*const failing[])(void) = { unequal_integers, unequal_signs, unequal_octets,
                                      unequal_strings,  untrue,        unfalse };
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

static void claims_two(void)
{
    T_SHOWS("AB-01 AB-02") {
        T_TRUE(1);
    }
    T_SHOWS("AB-02 AB-0") {
        T_EQ_STR("a", "a");
        T_EQ_MEM("a", "a", 1);
    }
    T_SHOWS(NULL) {
        T_TRUE(1);
    }
    T_SHOWS(NULL) {
    }
}

static void claims_without_check(void)
{
    T_TRUE(1);
    T_SHOWS("AB-03") {
    }
}

static void claims_what_is_not_so(void)
{
    T_SHOWS("AB-04") {
        T_EQ_INT(1, 2);
    }
}

static void claims_within_a_claim(void)
{
    T_SHOWS("AB-05") {
        claims_two();
    }
}

static void leaves_the_body(void)
{
    T_SHOWS("AB-07") {
        T_TRUE(1);
        return;
    }
}

/* The ids that a case names count only if its checks passed. */
static void claims(void)
{
    static const struct {
        void (*run)(void);
        bool good;
        const char *shown;
    } rows[] = {
        { claims_two, true, " AB-01 AB-02 AB-0" },
        { claims_without_check, false, "" },
        { claims_what_is_not_so, false, "" },
        { claims_within_a_claim, false, "" },
        { leaves_the_body, false, "" },
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct t_state kept = t_state, after;
        struct t_case one = { "a case within the case: not counted", rows[i].run };
        bool good;

        fflush(stdout);
        stdout_to_nowhere(true);
        good = t_run_case(&one, 1);
        stdout_to_nowhere(false);
        after = t_state;
        t_state = kept;
        T_CONTEXT("row %zu", i);
        T_TRUE(good == rows[i].good);
        if (good) {
            T_EQ_STR(after.shown, rows[i].shown);
        }
    }
}

static bool never(void)
{
    return false;
}

static bool always(void)
{
    return true;
}

/* A case that does not apply is no case of the program, even if it is named. */
static void applies(void)
{
    char program[] = "p", part[] = "case", other[] = "else";
    char *argv[] = { program, part }, *argv_other[] = { program, other };
    struct t_case one = { "a case", claims };

    T_TRUE(t_selected(&one, 1, argv));
    one.applies = always;
    T_TRUE(t_selected(&one, 1, argv));
    T_TRUE(t_selected(&one, 2, argv));
    T_FALSE(t_selected(&one, 2, argv_other));
    one.applies = never;
    T_FALSE(t_selected(&one, 1, argv));
    T_FALSE(t_selected(&one, 2, argv));
}

static void passes(void)
{
    T_TRUE(true);
}

/* What a program whose second case takes long prints first: its plan, or what it leaves out. */
static void plan_of(const char *how_much, char plan[4])
{
    static const struct t_case two[] = {
        { .name = "is quick", .run = passes },
        { .name = "takes long", .run = passes, .takes_long = true },
    };
    struct t_state kept = t_state;
    char program[] = "p", *argv[] = { program };
    int ends[2], old = dup(STDOUT_FILENO), status;

    T_EQ_INT(pipe(ends), 0);
    fflush(stdout);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    setenv("SG_CASES", how_much, 1);
    status = t_main(two, 2, 1, argv);
    unsetenv("SG_CASES");
    fflush(stdout);
    dup2(old, STDOUT_FILENO);
    close(old);
    t_state = kept;
    T_EQ_INT(status, 0);
    memset(plan, 0, 4);
    T_TRUE(read(ends[0], plan, 3) == 3);
    close(ends[0]);
}

static void short_runs(void)
{
    char *before = getenv("SG_CASES"), *kept = before ? strdup(before) : NULL, plan[4];

    plan_of("", plan);
    T_EQ_STR(plan, "1..");
    plan_of("short", plan);
    T_EQ_STR(plan, "# l"); /* "left out: 1 long cases" */
    T_EQ_U64(t_seeds(90, 90), 90);
    setenv("SG_CASES", "short", 1);
    T_EQ_U64(t_seeds(90, 90), 90);
    T_EQ_U64(t_seeds(300, 300), 100);
    T_EQ_U64(t_seeds(1600, 1600), 200);
    unsetenv("SG_CASES");
    T_EQ_U64(t_seeds(1600, 60), t_not_sanitized() ? 1600 : 60);
    if (kept) {
        setenv("SG_CASES", kept, 1);
    }
    free(kept);
}

static const struct t_case cases[] = {
    { "checks fail when they should", checks__fail_when_they_should },
    { "checks pass when they should", checks__pass_when_they_should },
    { "ids are shown by checks that passed", claims },
    { "a program lacks the cases that do not apply", applies },
    { "a short run leaves out long cases and most seeds", short_runs },
};

T_MAIN(cases)
