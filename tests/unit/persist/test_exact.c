/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The domain compared with the ground truth, in both directions: after random traces the images
 * that all answers to a cut's questions lead to are those that the contract allows.
 */
#include "model_images.h"

enum { MACHINES = 20000, CUTS = 3000, EVENTS = 9 };

static uint64_t rng;

static unsigned below(unsigned n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (rng >> 11) % n;
}

/* Mostly the first two atoms; now and then the end of a line and the next one. */
static unsigned place(void)
{
    switch (below(8)) {
    case 0:
        return GT_LINE - 2 + below(3);
    case 1:
        return GT_LINE + below(3);
    default:
        return below(5);
    }
}

static struct gt_event dma_event(const struct gt_trace *t)
{
    struct gt_event e = { .kind = GT_WRITE, .who = below(6) == 0, .at = place() };

    e.units = 1 + below(4);
    switch (below(t->s0 || t->s1 ? 14 : 11)) {
    case 0:
        e.kind = GT_FLUSH;
        e.how = 1 + below(3);
        break;
    case 1:
        e.kind = GT_READ;
        break;
    case 2:
        e.kind = GT_OTHER;
        e.units = 2 - e.at % 2;
        e.who = 0;
        break;
    case 3:
        e.kind = GT_ATOM;
        break;
    case 4:
        e.kind = GT_SWAP;
        e.how = below(3) == 0;
        break;
    case 11:
        e.kind = GT_SETTLE;
        break;
    case 12:
    case 13:
        e.kind = GT_FENCE_DEVICE;
        break;
    }
    if (e.kind == GT_WRITE && below(16) == 0) {
        e.at = 0; /* a line as a whole; the live model merges the third */
        e.units = GT_LINE;
    }
    if (t->reorder && (e.kind == GT_FLUSH || e.kind == GT_ATOM || e.kind == GT_SETTLE)) {
        e.kind = GT_WRITE; /* only the model knows in which order it settles */
        e.how = 0;
    }
    e.conn = e.kind != GT_OTHER && below(4) == 0;
    if (e.kind == GT_ATOM || e.kind == GT_SWAP) {
        e.at &= ~1;
        e.units = 2;
    }
    return e;
}

static struct gt_event cpu_event(void)
{
    struct gt_event e = { .kind = GT_STORE, .who = below(5) == 0, .at = place() };

    e.units = 1 + below(3);
    switch (below(12)) {
    case 10:
    case 11:
        e.kind = GT_LOAD;
        break;
    case 0:
    case 1:
        e.kind = GT_CPU_FENCE;
        e.how = below(SG_PERSIST_CPU_FENCES);
        break;
    case 2:
    case 3:
        e.kind = GT_CPU_FLUSH;
        e.units = 1;
        e.how = below(SG_PERSIST_CPU_FLUSHES);
        break;
    case 4:
    case 5:
    case 6:
        e.kind = GT_STORE_NT;
        break;
    }
    return e;
}

/* What CPUs and adapters do; 0: both, 1: CPUs, 2: adapters. */
static void random_trace(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report)
{
    rng = seed * 0x9e3779b97f4a7c15ull + 1;
    *t = (struct gt_trace){
        .domain = below(SG_PERSIST_DOMAINS),
        .ddio = below(4) > 0,
        .s0 = below(4) == 0,
        .s1 = below(3) == 0,
        .store_buffer = below(3) == 0,
        .count = 2 + below(EVENTS - 1),
    };
    t->reorder = t->s0 && below(3) == 0;
    t->exact = report == GT_TOLD_AFTER ? GT_LIVE : below(GT_EXACTS);
    for (unsigned i = 0, lines = 0; i < t->count; i++) {
        bool cpu = who == 1 || (who == 0 && below(2));
        struct gt_event *e = &t->event[i];

        *e = cpu ? cpu_event() : dma_event(t);
        if (below(24) == 0) {
            e->kind = below(2) ? GT_SYNC : GT_DEEP_FLUSH;
            e->who = 0;
        }
        e->value = below(8) ? i + 1 : 0;
        if (e->kind == GT_STORE || e->kind == GT_STORE_NT) {
            e->how = report;
        }
        lines += e->units == GT_LINE;
        if (e->units == GT_LINE && lines > (t->exact ? 4 : 2)) {
            e->units = 2;
        }
    }
}

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
    const char *sanitized = getenv("SG_SANITIZED"), *more = getenv("SG_EXACT_SEEDS");

    return more ? strtoul(more, NULL, 10) : sanitized && sanitized[0] == '1' ? n / 8 : n;
}

static struct exact_tally sweep(unsigned who, enum gt_report report, unsigned n, unsigned loud)
{
    struct exact_tally sum = { .traces = 0 };
    struct gt_trace t;

    for (uint64_t seed = 1; seed <= n; seed++) {
        T_CONTEXT("seed %" PRIu64, seed);
        random_trace(&t, seed, who, report);
        compare(&t, &sum, sum.differ < loud);
    }
    T_NOTE("%u traces, %u too large; %u images allowed, %u produced; %u missing, %u forbidden in "
           "%u traces",
           sum.traces, sum.skipped, sum.allowed, sum.produced, sum.missing, sum.forbidden,
           sum.differ);
    return sum;
}

static void exact(void)
{
    for (unsigned who = 0; who < 3; who++) {
        for (unsigned report = GT_TOLD_BEFORE; report <= GT_TOLD_BOTH; report++) {
            struct exact_tally sum = sweep(who, report, seeds(1200), 3);

            T_EQ_U64(sum.forbidden, 0);
            T_EQ_U64(sum.missing, 0);
            T_TRUE(sum.traces > 20 * sum.skipped);
        }
    }
}

/* Stores that nobody announced are merged with what was dirty: fewer images, but no new one. */
static void merged(void)
{
    T_EQ_U64(sweep(0, GT_TOLD_AFTER, seeds(1200), 0).forbidden, 0);
}

/* What policies leave, in cuts and previews, is always allowed. */
static void policies(void)
{
    for (uint64_t seed = 1; seed <= seeds(300); seed++) {
        struct gt_trace t;
        GHashTable *allowed;
        uint8_t image[GT_WORLD];

        T_CONTEXT("seed %" PRIu64, seed);
        random_trace(&t, seed, 0, seed % GT_REPORTS);
        allowed = ground_truth(&t, MACHINES);
        for (unsigned n = 0; allowed && n < 12; n++) {
            struct sg_persist_policy policy = {
                .outcome = n % SG_PERSIST_OUTCOMES,
                .seed = n / SG_PERSIST_OUTCOMES * seed,
                .addr = RIG_BASE + n % 2 * SG_PERSIST_LINE,
                .len = SG_PERSIST_LINE,
            };

            model_image(&t, &policy, false, image);
            T_TRUE(gt_set_has(allowed, image));
            if (t.domain != SG_PERSIST_WHOLE) { /* a preview loses S1 */
                model_image(&t, &policy, true, image);
                T_TRUE(gt_set_has(allowed, image));
            }
        }
        if (allowed) {
            g_hash_table_destroy(allowed);
        }
    }
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

            random_trace(&t, seed, 0, GT_TOLD_BOTH);
            t.slip = slip;
            compare(&t, &sum, false);
        }
        T_NOTE("slip %u: noticed by trace %" PRIu64, slip, seed);
        T_TRUE(sum.differ);
    }
}

static const struct t_case cases[] = {
    { "random traces leave the images that are allowed, no more and no less", exact },
    { "stores reported after the fact, unannounced: no image is forbidden", merged },
    { "what cuts and previews leave is allowed", policies },
    { "each wrong rule is noticed", slips_are_noticed },
};

T_MAIN(cases)
