/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Crash points and the exhaustive strategy against the ground truth, in both directions: what they
 * find of a random run is what the contract allows at some instant of it, at each instant.
 */
#include "base/prng.h"
#include "crash/plan.h"
#include "crash/ways.h"
#include "explore_rig.h"
#include "ground_truth.h"
#include "tap.h"

enum {
    HALF = SG_PERSIST_ATOM / 2,
    MACHINES = 20000,
    CUTS = 4000,
    EVENTS = 7,
    QPN = 7,
    AGAIN = 40, /* plans of a crash point that are made once more, and with fewer deviations */
};

static uint64_t rng;

static unsigned below(unsigned n)
{
    return (unsigned)(sg_prng(&rng) % n);
}

/* ---- Random runs ---- */

static unsigned place(void)
{
    return below(8) ? below(5) : below(2) ? GT_LINE - 2 + below(3) : GT_LINE + below(3);
}

static struct gt_event dma_event(void)
{
    static const uint8_t kinds[] = {
        GT_WRITE, GT_WRITE, GT_WRITE, GT_WRITE,  GT_FLUSH,        GT_FLUSH,
        GT_READ,  GT_OTHER, GT_ATOM,  GT_SETTLE, GT_FENCE_DEVICE,
    };
    struct gt_event e = { .kind = kinds[below(sizeof(kinds))], .who = below(6) == 0 };

    e.at = (uint8_t)place();
    e.units = (uint8_t)(1 + below(4));
    e.conn = e.kind != GT_OTHER && below(4) == 0;
    e.how = e.kind == GT_FLUSH ? (uint8_t)(1 + below(3)) : 0;
    if (e.kind == GT_OTHER) {
        e.units = 2 - e.at % 2;
        e.who = 0;
    } else if (e.kind == GT_ATOM) {
        e.at &= ~1;
        e.units = 2;
    }
    return e;
}

static struct gt_event cpu_event(void)
{
    static const uint8_t kinds[] = {
        GT_STORE, GT_STORE, GT_STORE,     GT_STORE,     GT_STORE_NT,  GT_STORE_NT,
        GT_LOAD,  GT_LOAD,  GT_CPU_FENCE, GT_CPU_FENCE, GT_CPU_FLUSH, GT_CPU_FLUSH,
    };
    struct gt_event e = { .kind = kinds[below(sizeof(kinds))], .who = below(5) == 0 };

    e.at = (uint8_t)place();
    e.units = e.kind == GT_CPU_FLUSH ? 1 : (uint8_t)(1 + below(3));
    e.how = e.kind == GT_CPU_FENCE   ? (uint8_t)below(SG_PERSIST_CPU_FENCES)
            : e.kind == GT_CPU_FLUSH ? (uint8_t)below(SG_PERSIST_CPU_FLUSHES)
                                     : GT_TOLD_BOTH;
    return e;
}

/* Adapters' events, of which Writes share both lines. */
static struct gt_event shared_event(void)
{
    struct gt_event e = dma_event();

    if (e.kind == GT_WRITE) {
        e.at = (uint8_t)(GT_LINE - 3 + below(5));
        e.units = (uint8_t)(1 + below(5));
        e.who = below(3) == 0;
        e.conn = (uint8_t)below(2);
    }
    return e;
}

/* Connections that write to the same octets, which are loaded now and then. */
static struct gt_event racing_event(void)
{
    struct gt_event e = below(5) ? dma_event() : cpu_event();

    if (e.kind == GT_WRITE) {
        e.at = (uint8_t)below(3);
        e.units = (uint8_t)(1 + below(3));
        e.conn = (uint8_t)below(2);
    } else if (e.kind == GT_STORE || e.kind == GT_STORE_NT || e.kind == GT_LOAD) {
        e.kind = GT_LOAD;
        e.at = (uint8_t)below(3);
        e.how = 0;
    }
    return e;
}

/*
 * CPUs and adapters, CPUs, adapters, adapters that share lines, connections that race.  Whoever
 * reads has seen what was posted; an Atomic Write comes after what its connection wrote.
 */
static void random_run(struct gt_trace *t, uint64_t seed, unsigned who)
{
    unsigned events;

    rng = seed;
    *t = (struct gt_trace){
        .domain = (uint8_t)below(SG_PERSIST_DOMAINS),
        .ddio = below(4) > 0,
        .s0 = true,
        .s1 = true,
        .store_buffer = true,
        .reorder = true,
        .exact = true,
    };
    events = 2 + below(EVENTS - 1);
    for (unsigned i = 0; i < events; i++) {
        bool cpu = who == 1 || (who == 0 && below(2));
        struct gt_event e = cpu        ? cpu_event()
                            : who == 3 ? shared_event()
                            : who == 4 ? racing_event()
                                       : dma_event();
        struct gt_event first = e;

        if (e.kind == GT_READ || e.kind == GT_ATOM) {
            first.kind = e.kind == GT_READ ? GT_LOAD : GT_SETTLE;
            first.conn = e.kind == GT_READ ? 0 : e.conn;
            t->event[t->count++] = first;
        }
        e.value = (uint8_t)(i + 1);
        t->event[t->count++] = e;
    }
}

/* ---- The run as a trace ---- */

static const uint8_t kind_of[GT_KINDS] = {
    [GT_WRITE] = SG_TRACE_PLACE,         [GT_ATOM] = SG_TRACE_ATOMIC_WRITE,
    [GT_SETTLE] = SG_TRACE_SETTLE,       [GT_FENCE_DEVICE] = SG_TRACE_DEVICE_FENCE,
    [GT_READ] = SG_TRACE_DMA_READ,       [GT_FLUSH] = SG_TRACE_FLUSH_BEGIN,
    [GT_OTHER] = SG_TRACE_OTHER_WRITE,   [GT_STORE] = SG_TRACE_STORE,
    [GT_STORE_NT] = SG_TRACE_STORE,      [GT_LOAD] = SG_TRACE_LOAD,
    [GT_CPU_FLUSH] = SG_TRACE_CPU_FLUSH, [GT_CPU_FENCE] = SG_TRACE_CPU_FENCE,
};

static unsigned argument(const struct gt_event *e)
{
    switch (e->kind) {
    case GT_STORE:
    case GT_OTHER:
        return SG_PERSIST_STORE_ANNOUNCED;
    case GT_STORE_NT:
        return SG_PERSIST_STORE_ANNOUNCED | SG_PERSIST_STORE_NT;
    case GT_FLUSH:
    case GT_CPU_FLUSH:
    case GT_CPU_FENCE:
        return e->how;
    default:
        return 0;
    }
}

/* Returns the number of the last event so far. */
static uint64_t put(struct xr *r, const struct gt_event *e)
{
    uint8_t data[GT_WORLD * HALF];
    struct sg_trace_event out = {
        .kind = kind_of[e->kind],
        .unit = e->who,
        .qpn = e->kind >= GT_OTHER ? 0 : QPN + e->conn * GT_DEVICES + e->who,
        .addr = XR_BASE + e->at * HALF,
        .len = e->units * HALF,
        .arg = argument(e),
        .data = data,
    };
    uint64_t number;

    memset(data, e->value, sizeof(data));
    number = xr_event(r, XR_TARGET, out);
    if (e->kind == GT_FLUSH) {
        out.kind = SG_TRACE_FLUSH_END;
        number = xr_event(r, XR_TARGET, out);
    }
    return number;
}

/* ---- Images of the crash points ---- */

/* Plans that were given once more. */
struct again {
    unsigned plans, reduced, other_image, unexplained, wrong, fewer_not_possible;
    unsigned reads, exhaustive, unread, cut_short, forbidden; /* of "reads" */
};

struct at_points {
    const struct gt_trace *t;
    GHashTable *all;            /* of any crash point */
    const struct sg_persist *p; /* at the crash point at hand */
    GHashTable **at; /* allowed behind each event; NULL: not at the end of one of the run's */
    unsigned cuts, forbidden;
    struct again *sum;
    bool too_many;
    uint8_t *memory; /* of clones */
    const struct xr *r;
};

static void show(const struct gt_trace *t, const char *what, uint64_t behind, const uint8_t *image)
{
    GString *out = g_string_new(NULL);

    gt_print(out, t);
    g_string_append_printf(out, "\n#   %s, behind event %" PRIu64 ": ", what, behind);
    gt_print_image(out, image);
    T_NOTE("%s", out->str);
    g_string_free(out, TRUE);
}

static void cut(void *opaque, const struct sg_persist_policy *policy)
{
    struct at_points *f = opaque;
    struct sg_persist_memory memory = { f->memory, f->memory + XR_SIZE };
    struct sg_persist *clone;

    memcpy(f->memory, xr_memory(f->r, 0), 2 * XR_SIZE);
    clone = sg_persist_clone(f->p, &memory);
    sg_persist_report_free(sg_persist_cut(clone, policy));
    sg_persist_free(clone);
}

static void cut_image(struct at_points *f, const struct sg_persist_policy *policy,
                      uint8_t image[GT_WORLD])
{
    cut(f, policy);
    for (unsigned i = 0; i < GT_WORLD; i++) {
        image[i] = f->memory[XR_SIZE + i * HALF];
    }
}

static void look(struct at_points *f, uint64_t behind, const struct sg_persist_policy *policy,
                 uint8_t image[GT_WORLD])
{
    cut_image(f, policy, image);
    gt_set_add(f->all, image);
    if (f->at[behind] && !gt_set_has(f->at[behind], image) && !f->forbidden++) {
        show(f->t, "forbidden", behind, image);
    }
}

/* Must a deviation about this lose something?  What a buffer keeps may be a flush. */
static bool must_lose(const struct sg_crash_deviation *d)
{
    return d->asked.what == SG_PERSIST_CHOICE_LINE || d->asked.what == SG_PERSIST_CHOICE_POSTED ||
           d->asked.what == SG_PERSIST_CHOICE_SEGMENT;
}

/* What is lost explains the image: something by each deviation, and nothing else. */
static void explain(struct at_points *f, const struct sg_crash_deviations *d,
                    const uint8_t image[GT_WORLD], const uint8_t kept[GT_WORLD])
{
    bool order = false, good = true;

    for (guint i = 0; i < d->all->len; i++) {
        const struct sg_crash_deviation *x = &g_array_index(d->all, struct sg_crash_deviation, i);

        good &= x->lost_count || !must_lose(x);
        order |= x->asked.what == SG_PERSIST_CHOICE_ORDER;
    }
    good &= d->lost->len || order || memcmp(image, kept, GT_WORLD) == 0;
    f->sum->unexplained += !good;
}

/* The plan once more, from its deviations; and without some of them: allowed, too. */
static void give(struct at_points *f, struct sg_crash_planner *plan, uint64_t behind,
                 const uint8_t image[GT_WORLD], const uint8_t kept[GT_WORLD])
{
    struct sg_crash_given given = { .answers =
                                        g_array_new(FALSE, FALSE, sizeof(struct sg_crash_answer)) };
    struct sg_crash_deviations d;
    struct sg_crash_planner again;
    uint8_t other[GT_WORLD];
    char *wrong;

    sg_crash_deviations_init(&d);
    sg_crash_plan_deviations(plan, &d);
    explain(f, &d, image, kept);
    sg_crash_planner_init(&again, plan->strategies, behind);
    for (unsigned fewer = 0; fewer < 2; fewer++) {
        g_array_set_size(given.answers, 0);
        for (guint i = 0; i < d.all->len; i++) {
            const struct sg_crash_deviation *x =
                &g_array_index(d.all, struct sg_crash_deviation, i);
            struct sg_crash_answer a = { x->question, x->asked.taken };

            if (!fewer || below(2)) {
                g_array_append_val(given.answers, a);
            }
        }
        cut_image(f, sg_crash_planner_give(&again, &given), other);
        wrong = sg_crash_planner_wrong(&again);
        if (!fewer) {
            f->sum->plans++;
            f->sum->wrong += wrong != NULL;
            f->sum->other_image += memcmp(image, other, GT_WORLD) != 0;
        } else if (!wrong && f->at[behind]) {
            f->sum->reduced++;
            f->forbidden += !gt_set_has(f->at[behind], other);
        } else {
            f->sum->fewer_not_possible += wrong != NULL;
        }
        g_free(wrong);
    }
    sg_crash_planner_fini(&again);
    sg_crash_deviations_fini(&d);
    g_array_unref(given.answers);
}

/* The number of ways is that of the exhaustive plans. */
static void count(struct at_points *f, unsigned plans)
{
    struct sg_crash_count sum;
    unsigned cuts;

    sg_crash_count_init(&sum, 0);
    T_TRUE(sg_crash_ways(cut, f, CUTS, &sum, &cuts));
    T_EQ_U64(sg_crash_count_value(&sum, CUTS), plans);
    T_TRUE(cuts <= plans);
    sg_crash_count_fini(&sum);
}

/* ---- What a checker reads ---- */

/* The parts of an image that are in these lines. */
static void project(uint8_t image[GT_WORLD], unsigned lines)
{
    for (unsigned i = 0; i < GT_WORLD; i++) {
        image[i] = lines >> i / GT_LINE & 1 ? image[i] : 0;
    }
}

/* With "reads" each image that differs in these lines is found, with fewer cuts. */
static void read_some(struct at_points *f, GHashTable *all, uint64_t behind, unsigned lines)
{
    struct sg_crash_reads reads;
    struct sg_crash_strategies s = { .use = { [SG_CRASH_READS] = true },
                                     .reads = &reads,
                                     .reads_per_point = CUTS };
    GHashTable *want = gt_set_new(), *got = gt_set_new();
    const struct sg_persist_policy *policy;
    struct sg_crash_planner plan;
    uint8_t image[GT_WORLD];
    GHashTableIter it;
    gpointer each;

    sg_crash_reads_init(&reads);
    for (unsigned i = 0; i < GT_LINES; i++) {
        if (lines >> i & 1) {
            sg_crash_reads_add(&reads, XR_BASE + i * SG_PERSIST_LINE, SG_PERSIST_LINE);
        }
    }
    sg_crash_reads_end(&reads);
    g_hash_table_iter_init(&it, all);
    while (g_hash_table_iter_next(&it, &each, NULL)) {
        memcpy(image, each, GT_WORLD);
        project(image, lines);
        gt_set_add(want, image);
    }
    sg_crash_planner_init(&plan, &s, behind);
    plan.p = f->p;
    while ((policy = sg_crash_planner_next(&plan))) {
        cut_image(f, policy, image);
        f->sum->forbidden += !gt_set_has(all, image);
        f->sum->reads++;
        project(image, lines);
        gt_set_add(got, image);
    }
    f->sum->cut_short += plan.cut_short;
    g_hash_table_iter_init(&it, want);
    while (g_hash_table_iter_next(&it, &each, NULL)) {
        f->sum->unread += !gt_set_has(got, each);
    }
    sg_crash_planner_fini(&plan);
    sg_crash_reads_fini(&reads);
    g_hash_table_destroy(want);
    g_hash_table_destroy(got);
}

static void point(void *opaque, unsigned platform, struct sg_persist *p, uint64_t behind)
{
    static const struct sg_crash_strategies exhaustive = { .use = { [SG_CRASH_EXHAUSTIVE] =
                                                                        true } };
    const struct sg_persist_policy *policy;
    struct sg_crash_planner plan;
    struct at_points *f = opaque;
    unsigned before = f->cuts;
    uint8_t image[GT_WORLD], kept[GT_WORLD];
    GHashTable *here = gt_set_new();

    f->p = p;
    cut_image(f, &(struct sg_persist_policy){ .outcome = SG_PERSIST_KEEP_ALL }, kept);
    sg_crash_planner_init(&plan, &exhaustive, behind);
    while (!f->too_many && (policy = sg_crash_planner_next(&plan))) {
        look(f, behind, policy, image);
        gt_set_add(here, image);
        if (f->cuts - before < AGAIN) {
            give(f, &plan, behind, image, kept);
        }
        f->too_many = ++f->cuts >= CUTS;
    }
    sg_crash_planner_fini(&plan);
    if (!f->too_many) {
        f->sum->exhaustive += GT_LINES * (f->cuts - before);
        count(f, f->cuts - before);
        for (unsigned lines = 1; lines < (1 << GT_LINES) - 1; lines++) {
            read_some(f, here, behind, lines);
        }
    }
    g_hash_table_destroy(here);
}

/* ---- Comparison ---- */

struct compared {
    unsigned runs, skipped, images, missing, forbidden;
    unsigned divided, joined; /* runs with several pasts; pasts that became one */
    struct again again;
};

/* What is allowed behind each number of events; false: too much. */
static bool allow(const struct gt_trace *t, const uint64_t *number, GHashTable **at)
{
    GHashTable *behind[GT_EVENTS + 1] = { NULL };
    bool good = ground_truth_all(t, MACHINES, behind);

    for (unsigned k = 0; k <= t->count; k++) {
        if (behind[k] && k && number[k] == number[k - 1]) {
            g_hash_table_destroy(behind[k]); /* half of an event */
        } else if (behind[k]) {
            at[number[k]] = behind[k];
        }
    }
    return good;
}

static void count_missing(const struct gt_trace *t, const struct at_points *f, struct compared *sum,
                          unsigned last)
{
    for (unsigned n = 0; n <= last; n++) {
        GHashTableIter it;
        gpointer image;

        if (!f->at[n]) {
            continue;
        }
        g_hash_table_iter_init(&it, f->at[n]);
        while (g_hash_table_iter_next(&it, &image, NULL)) {
            sum->images++;
            if (!gt_set_has(f->all, image) && !sum->missing++) {
                show(t, "missing", n, image);
            }
        }
    }
}

static void compare(const struct gt_trace *t, enum sg_crash_arrivals arrivals, struct compared *sum)
{
    static const char *const ddio[] = { "off", "on" };
    uint64_t number[GT_EVENTS + 1] = { 0 };
    GHashTable *at[2 * GT_EVENTS + 2] = { NULL };
    struct at_points f = { .t = t, .at = at, .sum = &sum->again };
    struct xr r;

    xr_init(&r, "");
    for (unsigned k = 0; k < t->count; k++) {
        bool implied = k + 1 < t->count && t->event[k + 1].kind == GT_READ;

        number[k + 1] = implied ? number[k] : put(&r, &t->event[k]);
    }
    f.all = gt_set_new();
    f.memory = g_malloc(2 * XR_SIZE);
    f.r = &r;
    r.point = point;
    r.opaque = &f;
    r.arrivals = (uint8_t)arrivals;
    if (!allow(t, number, at)) {
        sum->skipped++;
    } else {
        xr_explore(&r, sg_persist_domain_name((enum sg_persist_domain)t->domain), ddio[t->ddio],
                   SG_CRASH_ACK_DEFAULT);
        T_NULL(r.wrong);
        f.too_many |= sg_crash_explorer_verdict(r.explorer, 0)->limited > 0 ||
                      sg_crash_explorer_verdict(r.explorer, 0)->mixed > 0;
        sum->skipped += f.too_many;
        if (!f.too_many) {
            sum->runs++;
            sum->divided += sg_crash_explorer_verdict(r.explorer, 0)->pasts > 1;
            sum->joined += sg_crash_explorer_verdict(r.explorer, 0)->joined;
            sum->forbidden += f.forbidden;
            count_missing(t, &f, sum, (unsigned)number[t->count]);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(at); i++) {
        if (at[i]) {
            g_hash_table_destroy(at[i]);
        }
    }
    g_hash_table_destroy(f.all);
    g_free(f.memory);
    xr_free(&r);
}

static void exact(void)
{
    unsigned seeds = t_seeds(1500, 20), fewer = SG_MAX(seeds / 2, 20);

    for (unsigned who = 0; who < 5; who++) {
        struct compared sum = { .runs = 0 };

        for (uint64_t seed = 1; seed <= (who >= 3 ? fewer : seeds); seed++) {
            struct gt_trace t;

            T_CONTEXT("who %u, seed %" PRIu64, who, seed);
            random_run(&t, seed, who);
            compare(&t, SG_CRASH_ANY, &sum);
        }
        T_NOTE("%u runs, %u too large; %u images, %u missing, %u forbidden", sum.runs, sum.skipped,
               sum.images, sum.missing, sum.forbidden);
        T_NOTE("%u runs with several pasts; %u pasts joined others", sum.divided, sum.joined);
        T_TRUE(who == 1 || sum.divided > 0);
        T_NOTE("%u plans again, %u with fewer deviations, %u that cannot be", sum.again.plans,
               sum.again.reduced, sum.again.fewer_not_possible);
        T_NOTE("lines that are read: %u cuts, with all lines %u", sum.again.reads,
               sum.again.exhaustive);
        T_EQ_U64(sum.again.unread, 0);
        T_EQ_U64(sum.again.cut_short, 0);
        T_EQ_U64(sum.again.forbidden, 0);
        T_TRUE(sum.again.reads < sum.again.exhaustive);
        T_EQ_U64(sum.again.wrong, 0);
        T_EQ_U64(sum.again.other_image, 0);
        T_EQ_U64(sum.again.unexplained, 0);
        T_TRUE(sum.again.plans > 10 * sum.runs && sum.again.reduced > 10 * sum.runs);
        T_EQ_U64(sum.missing, 0);
        T_EQ_U64(sum.forbidden, 0);
        T_TRUE(sum.runs > 2 * sum.skipped);
    }
}

enum { MANY = 400 };

/* Whatever the order of data and stores that is explored: no image is forbidden. */
static void late_or_early(void)
{
    unsigned seeds = t_seeds(MANY, 12);

    for (unsigned arrivals = SG_CRASH_LATE; arrivals <= SG_CRASH_EARLY; arrivals++) {
        struct compared sum = { .runs = 0 };

        for (uint64_t seed = 1; seed <= seeds; seed++) {
            struct gt_trace t;

            T_CONTEXT("arrivals %u, seed %" PRIu64, arrivals, seed);
            random_run(&t, seed, seed % 4 ? 0 : 3);
            compare(&t, (enum sg_crash_arrivals)arrivals, &sum);
        }
        T_NOTE("arrivals %u: %u runs, %u too large; %u images, %u missing, %u forbidden", arrivals,
               sum.runs, sum.skipped, sum.images, sum.missing, sum.forbidden);
        T_EQ_U64(sum.forbidden, 0);
        T_TRUE(sum.missing < sum.images / 5);
        T_TRUE(sum.missing || seeds < MANY); /* each is one order of two; one image of a hundred */
    }
}

static const struct t_case cases[] = {
    { "crash points of random runs: all images of all instants, and no other", exact },
    { "data before or behind stores: no image is forbidden", late_or_early },
};

T_MAIN(cases)
