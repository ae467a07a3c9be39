/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the domain calls certain, compared with all images that cuts can leave: in both directions,
 * for each store of a random trace, after each of its events.
 */
#include "persist/certain.h"

#include "random_trace.h"
#include "store_order.h"

enum {
    CUTS = 2000,
    HALF = SG_PERSIST_ATOM / 2,
    BAD_LINES = UINT8_MAX,    /* instead of an enum gt_medium: sound, with bad lines */
    SEGMENTS = UINT8_MAX - 1, /* likewise: sound, segments are placed in any order */
    RACES = UINT8_MAX - 2,    /* likewise: sound, for the same octets */
};

struct tally {
    unsigned traces, skipped, questions, uncertain;
    unsigned missed;      /* called certain, but an image has lost it */
    unsigned false_alarm; /* called uncertain, but no image has */
    /* Of one store: how many, how many uncertain, and certain ones that are not with older ones. */
    unsigned alone, alone_uncertain, alone_kept;
};

static void show(const struct gt_trace *t, unsigned half, uint64_t seq, const char *what)
{
    GString *out = g_string_new(NULL);

    gt_print(out, t);
    T_NOTE("%s: half %u, up to %" PRIu64 ", medium %u: %s", what, half, seq, t->medium, out->str);
    g_string_free(out, TRUE);
}

/* Segments come in any order: a newer one, of those asked about, may have come after it. */
static bool is_covered(const struct store_order *s, unsigned half, unsigned v, unsigned by,
                       uint64_t seq)
{
    return s->trace->reorder && s->trace->exact && by > v && s->seq[by] <= seq &&
           !s->visible[by][half];
}

/* The stores to a half, up to an event, that some image lost, as bits; *all: those that exist. */
static unsigned lost_stores(const struct store_order *s, GHashTable *images, unsigned half,
                            uint64_t seq, unsigned *all)
{
    GHashTableIter it;
    gpointer image;
    unsigned lost = 0;

    *all = 0;
    for (unsigned v = 1; v <= s->trace->count; v++) {
        *all |= (unsigned)(s->writes[v][half] && s->seq[v] <= seq) << v;
    }
    g_hash_table_iter_init(&it, images);
    while (g_hash_table_iter_next(&it, &image, NULL)) {
        lost |= ((uint8_t *)image)[half] == GT_BAD; /* all of its stores, if there are any */
        for (unsigned v = 1; v <= s->trace->count && ((uint8_t *)image)[half] != GT_BAD; v++) {
            if (*all >> v & 1 && !is_covered(s, half, v, ((uint8_t *)image)[half], seq) &&
                store_order_is_lost(s, half, v, ((uint8_t *)image)[half])) {
                lost |= 1u << v;
            }
        }
    }
    return lost;
}

static bool is_one_of(const struct store_order *s, unsigned stores, uint64_t seq)
{
    for (; stores; stores &= stores - 1) {
        if (s->seq[__builtin_ctz(stores)] == seq) {
            return true;
        }
    }
    return false;
}

/* All halves, as they were at one event. */
static void compare(const struct store_order *s, const struct dom_rig *r, GHashTable *images,
                    uint64_t seq, struct tally *sum)
{
    struct sg_persist_uncertain why;
    uint64_t first = RIG_BASE + GT_WORLD * HALF;

    for (unsigned half = GT_WORLD; half--;) {
        uint64_t addr = RIG_BASE + half * HALF;
        unsigned all, lost = lost_stores(s, images, half, seq, &all);
        bool says;

        says = sg_persist_uncertain(r->p, addr, HALF, 0, seq, &why) < addr + HALF;
        first = says ? addr : first;
        sum->questions += all != 0;
        sum->uncertain += says;
        sum->missed += lost && !says;
        sum->false_alarm += says && !lost;
        if (!lost == says && (lost || s->trace->exact) && sum->missed + sum->false_alarm < 4 &&
            s->trace->medium < GT_WEARS_OUT) {
            show(s->trace, half, seq, says ? "false alarm" : "missed");
        }
        if (says && lost & 1) {
            T_EQ_INT(why.doubt, SG_PERSIST_DOUBT_BAD);
        } else if (says && lost && s->trace->exact) {
            T_TRUE(is_one_of(s, lost, why.lost));
            T_TRUE(why.len == HALF && why.stage < SG_PERSIST_STAGES);
        }
    }
    T_EQ_U64(sg_persist_uncertain(r->p, RIG_BASE, GT_WORLD * HALF, 0, seq, &why), first);
}

/* Each store alone: of several that race only this one counts. */
static void compare_each(const struct store_order *s, const struct dom_rig *r, GHashTable *images,
                         struct tally *sum)
{
    for (unsigned v = 1; v <= s->trace->count; v++) {
        for (unsigned half = 0; half < GT_WORLD; half++) {
            uint64_t addr = RIG_BASE + half * HALF;
            struct sg_persist_uncertain why;
            bool says, lost = false;
            uint64_t lost_alone;
            GHashTableIter it;
            gpointer image;

            if (!s->seq[v] || !s->writes[v][half]) {
                continue;
            }
            g_hash_table_iter_init(&it, images);
            while (g_hash_table_iter_next(&it, &image, NULL)) {
                lost |= store_order_is_lost(s, half, v, ((uint8_t *)image)[half]);
            }
            says = sg_persist_uncertain(r->p, addr, HALF, s->seq[v] - 1, s->seq[v], &why) == addr;
            lost_alone = why.lost;
            sum->alone++;
            sum->alone_uncertain += says;
            sum->alone_kept +=
                !says && sg_persist_uncertain(r->p, addr, HALF, 0, s->seq[v], &why) == addr;
            sum->missed += lost && !says;
            sum->false_alarm += says && !lost;
            if (lost != says && sum->missed + sum->false_alarm < 4) {
                show(s->trace, half, s->seq[v], says ? "alone: false alarm" : "alone: missed");
            }
            if (says) {
                T_EQ_U64(lost_alone, s->seq[v]);
            }
        }
    }
}

static void one_trace(const struct gt_trace *whole, struct tally *sum)
{
    struct gt_trace t = *whole; /* also of the domain */
    uint64_t at[GT_EVENTS];
    struct store_order s;
    struct dom_rig r;

    store_order_init(&s, &t);
    model_begin(&r, &t, true);
    for (t.count = 1; t.count <= whole->count; t.count++) {
        GHashTable *images;
        unsigned cuts;

        model_event(&r, &t.event[t.count - 1]);
        store_order_add(&s, &r, t.count);
        at[t.count - 1] = sg_persist_seq(r.p);
        images = model_images(&t, CUTS, &cuts);
        sum->traces++;
        sum->skipped += !images;
        for (unsigned i = 0; i < t.count && images; i++) {
            compare(&s, &r, images, at[i], sum);
        }
        if (images && t.exact && t.medium == GT_SOUND && !gt_has_bad(&t)) {
            compare_each(&s, &r, images, sum);
        }
        if (images) {
            g_hash_table_destroy(images);
        }
    }
    rig_down(&r);
}

static unsigned seeds(unsigned n)
{
    const char *more = getenv("SG_EXACT_SEEDS");

    return more ? strtoul(more, NULL, 10) : t_seeds(n, n / 8);
}

static struct tally sweep(unsigned who, enum gt_report report, bool exact, unsigned medium,
                          unsigned n)
{
    void (*make)(struct gt_trace *t, uint64_t seed, unsigned who, enum gt_report report) =
        medium == BAD_LINES  ? gt_random_bad
        : medium == SEGMENTS ? gt_random_segments
        : medium == RACES    ? gt_random_races
                             : gt_random_trace;
    struct tally sum = { .traces = 0 };

    for (uint64_t seed = 1; seed <= n; seed++) {
        struct gt_trace t;

        T_CONTEXT("seed %" PRIu64, seed);
        make(&t, seed, who, report);
        for (unsigned i = 0; i < t.count; i++) {
            t.event[i].value = i + 1;
        }
        t.exact = exact;
        t.medium = medium >= RACES ? GT_SOUND : medium;
        t.plan = medium == RACES ? 1 : 1 + seed % 8;
        one_trace(&t, &sum);
    }
    T_NOTE("%u traces, %u too large; %u questions, %u uncertain; %u of one store, %u uncertain, %u "
           "kept whatever becomes of others; %u missed, %u false alarms",
           sum.traces, sum.skipped, sum.questions, sum.uncertain, sum.alone, sum.alone_uncertain,
           sum.alone_kept, sum.missed, sum.false_alarm);
    T_CONTEXT("all seeds, who %u, report %u, exact %u, medium %u", who, report, exact, medium);
    T_TRUE(sum.uncertain);
    return sum;
}

/* Single stores were asked about, and with each answer that they can have. */
static void check_alone(const struct tally *sum)
{
    T_TRUE(sum->alone > sum->alone_uncertain);
    T_TRUE(sum->alone_uncertain);
}

static void exact(void)
{
    for (unsigned who = 0; who < 3; who++) {
        for (unsigned report = GT_TOLD_BEFORE; report <= GT_TOLD_BOTH; report++) {
            struct tally sum = sweep(who, report, true, GT_SOUND, seeds(200));

            T_EQ_U64(sum.missed, 0);
            T_EQ_U64(sum.false_alarm, 0);
            T_TRUE(sum.traces > 20 * sum.skipped);
            T_TRUE(sum.questions > sum.uncertain);
            check_alone(&sum);
        }
    }
}

static void segments(void)
{
    for (unsigned who = 0; who < 3; who += 2) {
        struct tally sum = sweep(who, GT_TOLD_BOTH, true, SEGMENTS, seeds(200));

        T_EQ_U64(sum.missed, 0);
        T_EQ_U64(sum.false_alarm, 0);
        T_TRUE(sum.traces > 5 * sum.skipped);
        check_alone(&sum);
    }
}

static void races(void)
{
    for (unsigned report = GT_TOLD_BEFORE; report <= GT_TOLD_BOTH; report++) {
        struct tally sum = sweep(0, report, true, RACES, seeds(300));

        T_EQ_U64(sum.missed, 0);
        T_EQ_U64(sum.false_alarm, 0);
        check_alone(&sum);
        T_TRUE(sum.alone_kept);
    }
}

static void merged(void)
{
    for (unsigned report = 0; report < GT_REPORTS; report++) {
        T_EQ_U64(sweep(0, report, false, GT_SOUND, seeds(200)).missed, 0);
    }
}

static void media_refuse(void)
{
    for (unsigned medium = GT_READ_ONLY; medium <= GT_WEARS_OUT + 1; medium++) {
        struct tally sum = sweep(0, GT_TOLD_BOTH, true, medium, seeds(100));

        T_EQ_U64(sum.missed, 0);
        T_TRUE(medium >= GT_WEARS_OUT || !sum.false_alarm);
    }
}

static void bad_lines(void)
{
    for (unsigned who = 0; who < 3; who++) {
        struct tally sum = sweep(who, GT_TOLD_BOTH, true, BAD_LINES, seeds(200));

        T_EQ_U64(sum.missed, 0);
        T_EQ_U64(sum.false_alarm, 0);
    }
    T_EQ_U64(sweep(0, GT_TOLD_BOTH, false, BAD_LINES, seeds(200)).missed, 0);
}

static const struct t_case cases[] = {
    { "what cuts can lose is uncertain, the rest is certain, for each store of a trace", exact },
    { "the same where segments are placed in any order", segments },
    { "the same where several connections write to the same octets", races },
    { "where stores were merged, nothing that a cut can lose is certain", merged },
    { "the same for media that refuse lines", media_refuse },
    { "and for bad lines", bad_lines },
};

T_MAIN(cases)
