/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers of events in both directions, and counts of any size. */
#include "base/prng.h"
#include "crash/count.h"
#include "crash/numbers.h"
#include "tap.h"

enum { EVENTS = 2000 };

static void compare(const struct sg_crash_numbers *n, const uint64_t seq[EVENTS + 1])
{
    T_EQ_U64(sg_crash_numbers_count(n), EVENTS);
    for (unsigned e = 0; e <= EVENTS; e++) {
        T_CONTEXT("event %u", e);
        T_EQ_U64(sg_crash_numbers_seq(n, e), seq[e]);
        if (e && seq[e] > seq[e - 1]) {
            T_EQ_U64(sg_crash_numbers_event(n, seq[e]), e);
            T_EQ_U64(sg_crash_numbers_event(n, seq[e - 1] + 1), e);
        }
    }
    T_EQ_U64(sg_crash_numbers_event(n, seq[0]), 0);
    T_EQ_U64(sg_crash_numbers_event(n, seq[EVENTS] + 1), 0);
}

/*
 * Compared with plain arrays, over several blocks, with steps that an octet cannot hold; and the
 * same numbers in two parts, once as they are and once copied, and joined.
 */
static void both_directions(void)
{
    static uint64_t seq[EVENTS + 1];
    struct sg_crash_numbers n, trunk, rest, copy;
    uint64_t random = 7;

    seq[0] = 5;
    sg_crash_numbers_init(&n, seq[0]);
    for (unsigned e = 1; e <= EVENTS; e++) {
        unsigned kind = sg_prng(&random) % 16;

        seq[e] = seq[e - 1] + (kind == 0 ? 1000 + e : kind == 1 ? 255 : kind == 2 ? 254 : kind % 3);
        sg_crash_numbers_add(&n, seq[e]);
    }
    compare(&n, seq);
    sg_crash_numbers_fini(&n);
    sg_crash_numbers_init(&trunk, seq[0]);
    for (unsigned e = 1; e <= EVENTS / 3; e++) {
        sg_crash_numbers_add(&trunk, seq[e]);
    }
    sg_crash_numbers_fork(&rest, &trunk);
    for (unsigned e = EVENTS / 3 + 1; e <= EVENTS; e++) {
        sg_crash_numbers_add(&rest, seq[e]);
    }
    compare(&rest, seq);
    sg_crash_numbers_copy(&copy, &rest);
    sg_crash_numbers_fini(&rest);
    compare(&copy, seq);
    sg_crash_numbers_join(&trunk, &copy);
    sg_crash_numbers_fini(&copy);
    compare(&trunk, seq);
    sg_crash_numbers_fini(&trunk);
}

static void expect_count(const struct sg_crash_count *c, const char *digits)
{
    GString *text = g_string_new(NULL);

    sg_crash_count_text(c, text);
    T_EQ_STR(text->str, digits);
    g_string_free(text, TRUE);
}

static void factorial(void)
{
    struct sg_crash_count c, sum;

    sg_crash_count_init(&c, 1);
    sg_crash_count_init(&sum, 0);
    expect_count(&sum, "0");
    for (uint32_t i = 2; i <= 60; i++) {
        sg_crash_count_multiply(&c, i);
    }
    expect_count(
        &c, "8320987112741390144276341183223364380754172606361245952449277696409600000000000000");
    sg_crash_count_add(&sum, &c);
    sg_crash_count_add(&sum, &c);
    expect_count(
        &sum,
        "16641974225482780288552682366446728761508345212722491904898555392819200000000000000");
    T_EQ_U64(sg_crash_count_value(&sum, 1000), 1001);
    sg_crash_count_multiply(&c, 0);
    expect_count(&c, "0");
    sg_crash_count_fini(&c);
    sg_crash_count_fini(&sum);
}

static void carries(void)
{
    struct sg_crash_count c, one;

    sg_crash_count_init(&c, 999999999999999999ull);
    sg_crash_count_init(&one, 1);
    sg_crash_count_add(&c, &one);
    expect_count(&c, "1000000000000000000");
    T_EQ_U64(sg_crash_count_value(&c, UINT64_MAX - 1), 1000000000000000000ull);
    sg_crash_count_add(&one, &c);
    expect_count(&one, "1000000000000000001");
    sg_crash_count_set(&c, UINT64_MAX);
    sg_crash_count_multiply(&c, UINT32_MAX);
    expect_count(&c, "79228162495817593515539431425");
    sg_crash_count_fini(&c);
    sg_crash_count_fini(&one);
}

static const struct t_case cases[] = {
    { "numbers of events, in both directions", both_directions },
    { "counts with many digits", factorial },
    { "counts carry", carries },
};

T_MAIN(cases)
