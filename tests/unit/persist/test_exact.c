/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The domain compared with the ground truth, in both directions: after random traces the images
 * that all answers to a cut's questions lead to are those that the contract allows.
 */
#include "model_images.h"
#include "random_trace.h"

enum { MACHINES = 20000, CUTS = 3000 };

struct exact_tally {
    unsigned traces, skipped, allowed, produced, missing, forbidden, differ;
};

static void show(const struct gt_trace *t, const char *what, GHashTable *from, GHashTable *in)
{
    GHashTableIter it;
    gpointer image;
    GString *out = g_string_new(NULL);

    gt_print(out, t);
    g_hash_table_iter_init(&it, from);
    while (g_hash_table_iter_next(&it, &image, NULL)) {
        if (!gt_set_has(in, image)) {
            g_string_append_printf(out, "\n#   %s: ", what);
            gt_print_image(out, image);
        }
    }
    T_NOTE("%s", out->str);
    g_string_free(out, TRUE);
}

/* Images of one set that the other lacks. */
static unsigned lacks(GHashTable *set, GHashTable *of)
{
    GHashTableIter it;
    gpointer image;
    unsigned n = 0;

    g_hash_table_iter_init(&it, of);
    while (g_hash_table_iter_next(&it, &image, NULL)) {
        n += !gt_set_has(set, image);
    }
    return n;
}

static void compare(const struct gt_trace *t, struct exact_tally *sum, bool loud)
{
    GHashTable *allowed = ground_truth(t, MACHINES), *produced;
    unsigned cuts, missing, forbidden;

    produced = allowed ? model_images(t, CUTS, &cuts) : NULL;
    if (!produced) {
        sum->skipped++;
    } else {
        missing = lacks(produced, allowed);
        forbidden = lacks(allowed, produced);
        if (loud && missing) {
            show(t, "missing", allowed, produced);
        }
        if (loud && forbidden) {
            show(t, "forbidden", produced, allowed);
        }
        sum->traces++;
        sum->allowed += g_hash_table_size(allowed);
        sum->produced += g_hash_table_size(produced);
        sum->missing += missing;
        sum->forbidden += forbidden;
        sum->differ += missing || forbidden;
        g_hash_table_destroy(produced);
    }
    if (allowed) {
        g_hash_table_destroy(allowed);
    }
}

static unsigned seeds(unsigned n)
{
    const char *more = getenv("SG_EXACT_SEEDS");

    return more ? strtoul(more, NULL, 10) : t_seeds(n, n / 8);
}

typedef void make_trace(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report);

static struct exact_tally sweep(make_trace *make, unsigned who, enum gt_report report, unsigned n,
                                unsigned loud)
{
    struct exact_tally sum = { .traces = 0 };
    struct gt_trace t;

    for (uint64_t seed = 1; seed <= n; seed++) {
        T_CONTEXT("seed %" PRIu64, seed);
        make(&t, seed, who, report);
        compare(&t, &sum, sum.differ < loud);
    }
    T_NOTE("%u traces, %u too large; %u images allowed, %u produced; %u missing, %u forbidden in "
           "%u traces",
           sum.traces, sum.skipped, sum.allowed, sum.produced, sum.missing, sum.forbidden,
           sum.differ);
    return sum;
}

static void exact_for(make_trace *make, unsigned n, unsigned per_skipped)
{
    for (unsigned who = 0; who < 3; who++) {
        for (unsigned report = GT_TOLD_BEFORE; report <= GT_TOLD_BOTH; report++) {
            struct exact_tally sum = sweep(make, who, report, seeds(n), 3);

            T_EQ_U64(sum.forbidden, 0);
            T_EQ_U64(sum.missing, 0);
            T_TRUE(sum.traces > per_skipped * sum.skipped);
        }
    }
}

static void exact(void)
{
    exact_for(gt_random_trace, 800, 20);
}

static void segments(void)
{
    exact_for(gt_random_segments, 400, 5);
}

/* Where several segments have something for a line, whatever proves them, and in which order. */
static void shared(void)
{
    exact_for(gt_random_shared, 160, 2);
}

/* Connections that write to the same octets. */
static void make_races(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report)
{
    gt_random_races(t, 3 * seed + who, 0, report);
}

static void races(void)
{
    exact_for(make_races, 800, 2);
}

/* Where one segment at most has something for a line. */
static void beside_dma(void)
{
    exact_for(gt_random_mixed, 600, 5);
}

static void make_planned(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report)
{
    gt_random_mixed(t, seed, who, report);
    t->plan = 1 + seed % 4;
}

/* One way to answer is one machine: it leaves a part of the images, and no other. */
static void one_plan(void)
{
    struct exact_tally sum = sweep(make_planned, 0, GT_TOLD_BOTH, seeds(1200), 0);

    T_EQ_U64(sum.forbidden, 0);
    T_TRUE(sum.missing);
}

static void bad_lines(void)
{
    exact_for(gt_random_bad, 600, 20);
}

/*
 * Stores that nobody announced are merged with what was dirty: fewer images, but no new one.
 * Beside bad lines that holds without DMA: a non-temporal store takes along what DMA left in the
 * cache.
 */
static void merged(void)
{
    T_EQ_U64(sweep(gt_random_trace, 0, GT_TOLD_AFTER, seeds(1200), 0).forbidden, 0);
    T_EQ_U64(sweep(gt_random_bad, 1, GT_TOLD_AFTER, seeds(600), 1).forbidden, 0);
}

/* What policies leave, in cuts and previews, is always allowed. */
static void policies(void)
{
    for (uint64_t seed = 1; seed <= seeds(300); seed++) {
        struct gt_trace t;
        GHashTable *allowed;
        uint8_t image[GT_WORLD];

        T_CONTEXT("seed %" PRIu64, seed);
        gt_random_trace(&t, seed, 0, seed % GT_REPORTS);
        allowed = ground_truth(&t, MACHINES);
        for (unsigned n = 0; allowed && n < 12; n++) {
            struct sg_persist_policy policy = {
                .outcome = n % SG_PERSIST_OUTCOMES,
                .seed = n / SG_PERSIST_OUTCOMES * seed,
                .addr = RIG_BASE + n % 2 * SG_PERSIST_LINE,
                .len = SG_PERSIST_LINE,
            };

            T_TRUE(!model_image(&t, &policy, false, image) || gt_set_has(allowed, image));
            if (t.domain != SG_PERSIST_WHOLE) { /* a preview loses S1 */
                T_TRUE(!model_image(&t, &policy, true, image) || gt_set_has(allowed, image));
            }
        }
        if (allowed) {
            g_hash_table_destroy(allowed);
        }
    }
}

static make_trace *make_of(unsigned slip)
{
    return slip == GT_LOAD_SEES_ANYTHING   ? gt_random_races
           : slip >= GT_SLIPS_OF_BAD_LINES ? gt_random_bad
           : slip >= GT_SLIPS_OF_SEGMENTS  ? gt_random_segments
                                           : gt_random_trace;
}

/* A wrong rule in the ground truth looks like a wrong rule in the model. */
static void slips_are_noticed(void)
{
    for (unsigned slip = GT_RIGHT + 1; slip < GT_SLIPS; slip++) {
        struct exact_tally sum = { .traces = 0 };
        uint64_t seed = 0;

        T_CONTEXT("slip %u", slip);
        while (!sum.differ && ++seed <= 4000) {
            struct gt_trace t;

            make_of(slip)(&t, seed, 0, GT_TOLD_BOTH);
            t.slip = slip;
            compare(&t, &sum, false);
        }
        T_NOTE("slip %u: noticed by trace %" PRIu64, slip, seed);
        T_TRUE(sum.differ);
    }
}

static const struct t_case cases[] = {
    { "random traces leave the images that are allowed, no more and no less", exact },
    { "so they do with segments that are placed in any order", segments },
    { "so they do where segments share lines", shared },
    { "so they do where connections write to the same octets", races },
    { "so they do where CPUs store beside what adapters write", beside_dma },
    { "with one answer each about what was early, no image is forbidden", one_plan },
    { "so they do with bad lines", bad_lines },
    { "stores reported after the fact, unannounced: no image is forbidden", merged },
    { "what cuts and previews leave is allowed", policies },
    { "each wrong rule is noticed", slips_are_noticed, t_not_sanitized, .takes_long = true },
};

T_MAIN(cases)
