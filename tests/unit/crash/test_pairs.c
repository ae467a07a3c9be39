/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pairs of crash points against an enumerator of all cuts of small random runs.  It knows which
 * sending each reception was, and nothing of pasts: a cut is consistent if everything that was
 * received in it was sent in it.  A third machine, whose power does not fail, may have come as far
 * as it likes.
 */
#include "base/prng.h"
#include "crash/pairs.h"
#include "events_rig.h"
#include "tap.h"

enum { MACHINES = 3, STEPS = 36, EVENTS = STEPS + 1, SEEDS = 400 };

struct pairs_flight {
    unsigned from, to;
    uint64_t sent, received, content;
};

/* What a machine's power cut leaves behind each event, and what is demanded there. */
struct pairs_machine {
    uint64_t images[EVENTS]; /* a set */
    bool bounds[EVENTS];     /* the event behind this one takes images away, or is a mark */
    unsigned marks[EVENTS];  /* so far */
    uint64_t last;
};

struct pairs_run {
    struct er er;
    unsigned machines;
    uint64_t random;
    struct pairs_machine machine[MACHINES];
    GArray *flights; /* struct pairs_flight */
    GArray *steps[2], *bounds[2];
    struct sg_crash_pairs pairs;
};

static unsigned below(struct pairs_run *r, unsigned limit)
{
    return (unsigned)(sg_prng(&r->random) % limit);
}

/* The machine's next event, of which its number is known already. */
static void note(struct pairs_run *r, unsigned machine, uint64_t number)
{
    struct pairs_machine *m = &r->machine[machine];
    uint64_t images = m->images[number - 1];
    unsigned what = below(r, 8);

    m->last = number;
    m->marks[number] = m->marks[number - 1] + (what == 0);
    m->bounds[number - 1] = what < 3;
    if (what == 1 || what == 2) {
        images &= sg_prng(&r->random);
    }
    if (what) {
        images |= 1ull << below(r, 64);
    }
    m->images[number] = images;
}

static void send_one(struct pairs_run *r, unsigned from)
{
    struct pairs_flight f = { .from = from, .to = below(r, r->machines - 1) };

    f.to += f.to >= from;
    f.content = r->flights->len + 1;
    f.sent = er_sent(&r->er, from, f.content);
    note(r, from, f.sent);
    g_array_append_val(r->flights, f);
}

static void receive_one(struct pairs_run *r)
{
    struct pairs_flight *f =
        &g_array_index(r->flights, struct pairs_flight, below(r, r->flights->len));

    if (!f->received) {
        f->received = er_received(&r->er, f->to, f->content);
        note(r, f->to, f->received);
    }
}

static void step(struct pairs_run *r)
{
    unsigned machine = below(r, r->machines), what = below(r, 4);

    if (what == 0) {
        send_one(r, machine);
    } else if (what < 3 && r->flights->len) {
        receive_one(r);
    } else {
        note(r, machine, er_local(&r->er, machine));
    }
}

/* ---- The pairs ---- */

static void begin(void *opaque)
{
    struct pairs_run *r = opaque;

    for (unsigned k = 0; k < 2; k++) {
        g_array_set_size(r->steps[k], 0);
    }
}

static void learn(void *opaque, unsigned machine, const struct sg_trace_event *e,
                  const uint64_t *past)
{
    struct pairs_run *r = opaque;

    if (machine < 2) {
        sg_crash_steps_add(r->steps[machine], e->number, past[!machine]);
    }
}

static void make(struct pairs_run *r, uint64_t seed)
{
    struct sg_crash_pairs_side side[2];

    *r = (struct pairs_run){ .random = seed, .machines = 2 + (unsigned)(seed % 2) };
    er_init(&r->er, r->machines);
    r->flights = g_array_new(FALSE, FALSE, sizeof(struct pairs_flight));
    for (unsigned i = 0; i < r->machines; i++) {
        r->machine[i].images[0] = 1;
    }
    for (unsigned i = 0; i < STEPS; i++) {
        step(r);
    }
    for (unsigned k = 0; k < 2; k++) {
        struct pairs_machine *m = &r->machine[k];

        r->steps[k] = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_step));
        r->bounds[k] = g_array_new(FALSE, FALSE, sizeof(uint64_t));
        m->bounds[m->last] = true;
        for (uint64_t s = 0; s <= m->last; s++) {
            if (m->bounds[s]) {
                g_array_append_val(r->bounds[k], s);
            }
        }
        side[k] = (struct sg_crash_pairs_side){ r->steps[k], r->bounds[k] };
    }
    sg_crash_order_free(er_run(&r->er, begin, learn, r));
    sg_crash_pairs_init(&r->pairs, side);
}

static void drop(struct pairs_run *r)
{
    sg_crash_pairs_fini(&r->pairs);
    for (unsigned k = 0; k < 2; k++) {
        g_array_unref(r->steps[k]);
        g_array_unref(r->bounds[k]);
    }
    g_array_unref(r->flights);
    er_free(&r->er);
}

/* ---- The enumerator ---- */

static bool is_global_cut(const struct pairs_run *r, const uint64_t cut[MACHINES])
{
    for (guint i = 0; i < r->flights->len; i++) {
        const struct pairs_flight *f = &g_array_index(r->flights, struct pairs_flight, i);

        if (f->received && f->received <= cut[f->to] && f->sent > cut[f->from]) {
            return false;
        }
    }
    return true;
}

static bool is_cut(const struct pairs_run *r, uint64_t s, uint64_t t)
{
    uint64_t most = r->machines > 2 ? r->machine[2].last : 0;

    for (uint64_t u = 0; u <= most; u++) {
        if (is_global_cut(r, (uint64_t[MACHINES]){ s, t, u })) {
            return true;
        }
    }
    return false;
}

/* Has a pair everything that this cut has, with the same marks? */
static bool has_all(const struct pairs_run *r, const uint64_t pair[2], const uint64_t cut[2])
{
    for (unsigned k = 0; k < 2; k++) {
        const struct pairs_machine *m = &r->machine[k];

        if (pair[k] < cut[k] || m->marks[pair[k]] != m->marks[cut[k]] ||
            m->images[cut[k]] & ~m->images[pair[k]]) {
            return false;
        }
    }
    return true;
}

/* The number of bounds before an instant: its interval. */
static guint interval(const struct pairs_run *r, unsigned k, uint64_t instant)
{
    guint n = 0;

    while (g_array_index(r->bounds[k], uint64_t, n) < instant) {
        n++;
    }
    return n;
}

struct pairs_found {
    uint64_t cuts, boxes;
    bool box[EVENTS][EVENTS];
};

/* All cuts: is each of them in a pair?  How many are there, and in how many boxes? */
static void expect_all(const struct pairs_run *r, const GArray *pairs, struct pairs_found *found)
{
    *found = (struct pairs_found){ 0 };
    for (uint64_t s = 0; s <= r->machine[0].last; s++) {
        for (uint64_t t = 0; t <= r->machine[1].last; t++) {
            bool *box = &found->box[interval(r, 0, s)][interval(r, 1, t)];
            const uint64_t cut[2] = { s, t };
            bool has = false;

            if (!is_cut(r, s, t)) {
                continue;
            }
            for (guint i = 0; i < pairs->len && !has; i++) {
                has = has_all(r, &g_array_index(pairs, uint64_t, i * 2), cut);
            }
            T_CONTEXT("cut behind %" PRIu64 " and %" PRIu64, s, t);
            T_TRUE(has);
            found->cuts++;
            found->boxes += !*box;
            *box = true;
        }
    }
}

/* Pairs and cuts agree in both directions, and there is one pair of two intervals at most. */
static void pairs__are_the_cuts(void)
{
    const char *sanitized = getenv("SG_SANITIZED");
    uint64_t seeds = sanitized && *sanitized == '1' ? SEEDS / 20 : SEEDS, pruned = 0;
    static struct pairs_found found;

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        GArray *pairs = g_array_new(FALSE, FALSE, 2 * sizeof(uint64_t));
        struct pairs_run r;

        make(&r, seed);
        for (uint64_t i = 0; i < r.pairs.count; i++) {
            uint64_t cut[2];

            T_CONTEXT("seed %" PRIu64 ", pair %" PRIu64, seed, i);
            T_TRUE(sg_crash_pairs_get(&r.pairs, i, cut));
            T_TRUE(is_cut(&r, cut[0], cut[1]));
            g_array_append_vals(pairs, cut, 1);
        }
        /* has_all() has two numbers for each pair. */
        expect_all(&r, pairs, &found);
        T_CONTEXT("seed %" PRIu64, seed);
        T_EQ_U64(r.pairs.count, found.boxes);
        T_EQ_U64(r.pairs.cuts, found.cuts);
        T_EQ_U64(r.pairs.alone, 0);
        pruned += found.cuts - found.boxes;
        g_array_unref(pairs);
        drop(&r);
    }
    T_TRUE(pruned > seeds);
}

/* Machines that never talk: each two intervals, at their ends. */
static void pairs__of_strangers(void)
{
    GArray *none = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_step));
    GArray *bounds = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    struct sg_crash_pairs_side side[2] = { { none, bounds }, { none, bounds } };
    struct sg_crash_pairs x;
    uint64_t cut[2];

    g_array_append_vals(bounds, ((uint64_t[]){ 3, 9 }), 2);
    sg_crash_pairs_init(&x, side);
    T_EQ_U64(x.count, 4);
    T_EQ_U64(x.cuts, 100);
    T_TRUE(sg_crash_pairs_get(&x, 1, cut));
    T_EQ_U64(cut[0], 3);
    T_EQ_U64(cut[1], 9);
    sg_crash_pairs_fini(&x);
    /* The numbers of cuts that there are may be greater than any number. */
    g_array_index(bounds, uint64_t, 1) = 1ull << 40;
    sg_crash_pairs_init(&x, side);
    T_EQ_U64(x.count, 4);
    T_EQ_U64(x.cuts, UINT64_MAX);
    sg_crash_pairs_fini(&x);
    g_array_unref(bounds);
    g_array_unref(none);
}

/* What was received may be from behind the end of the other trace: no cut has that. */
static void pairs__beyond_an_end(void)
{
    GArray *steps = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_step));
    GArray *none = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_step));
    GArray *bounds = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    struct sg_crash_pairs_side side[2] = { { steps, bounds }, { none, bounds } };
    struct sg_crash_pairs x;
    uint64_t cut[2];

    g_array_append_vals(bounds, ((uint64_t[]){ 3, 6, 9 }), 3);
    sg_crash_steps_add(steps, 2, 4);
    sg_crash_steps_add(steps, 5, UINT64_MAX);
    T_EQ_U64(sg_crash_steps_past(steps, 1), 0);
    T_EQ_U64(sg_crash_steps_past(steps, 4), 4);
    T_EQ_U64(sg_crash_steps_last(steps, 3, 9), 1);
    T_EQ_U64(sg_crash_steps_last(steps, 9, 9), 4);
    sg_crash_pairs_init(&x, side);
    T_EQ_U64(x.count, 5); /* of the first interval all, of the second: behind 4 only */
    T_EQ_U64(x.alone, 1);
    T_TRUE(sg_crash_pairs_get(&x, 0, cut));
    T_EQ_U64(cut[0], 1);
    T_EQ_U64(cut[1], 3);
    T_TRUE(sg_crash_pairs_get(&x, 4, cut));
    T_EQ_U64(cut[0], 4);
    T_EQ_U64(cut[1], 9);
    T_EQ_U64(x.cuts, 2 * 10 + 3 * 6);
    sg_crash_pairs_fini(&x);
    g_array_unref(bounds);
    g_array_unref(none);
    g_array_unref(steps);
}

/* Pasts that are too great may forbid a cut by what its own instants need, or each of them. */
static void pairs__of_great_pasts(void)
{
    GArray *steps[2], *bounds = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    struct sg_crash_pairs_side side[2];
    struct sg_crash_pairs x;
    uint64_t cut[2], first = 5, last = 9;

    g_array_append_val(bounds, last);
    for (unsigned k = 0; k < 2; k++) {
        steps[k] = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_step));
        side[k] = (struct sg_crash_pairs_side){ steps[k], bounds };
    }
    sg_crash_steps_add(steps[0], 9, 8);
    sg_crash_steps_add(steps[1], 8, 20);
    sg_crash_pairs_init(&x, side);
    T_TRUE(sg_crash_pairs_get(&x, 0, cut));
    T_EQ_U64(cut[0], 8);
    T_EQ_U64(cut[1], 7);
    sg_crash_pairs_fini(&x);
    /* Both of the last two intervals need what is behind the other one. */
    g_array_prepend_val(bounds, first);
    g_array_set_size(steps[0], 0);
    g_array_set_size(steps[1], 0);
    sg_crash_steps_add(steps[0], 6, 7);
    sg_crash_steps_add(steps[1], 6, 7);
    sg_crash_steps_add(steps[0], 7, 8);
    sg_crash_steps_add(steps[1], 7, 9);
    sg_crash_pairs_init(&x, side);
    for (uint64_t i = 0; i < x.count; i++) {
        if (sg_crash_pairs_get(&x, i, cut)) {
            T_TRUE(sg_crash_steps_past(steps[0], cut[0]) <= cut[1]);
            T_TRUE(sg_crash_steps_past(steps[1], cut[1]) <= cut[0]);
        }
    }
    sg_crash_pairs_fini(&x);
    for (unsigned k = 0; k < 2; k++) {
        g_array_unref(steps[k]);
    }
    g_array_unref(bounds);
}

/* One of each of equal parts; all, if there are not more. */
static void pairs__draw(void)
{
    for (uint64_t count = 1; count < 60; count++) {
        for (uint64_t chosen = 1; chosen < 70; chosen++) {
            uint64_t most = chosen < count ? chosen : count, last = 0;

            for (uint64_t i = 0; i < most; i++) {
                uint64_t one = sg_crash_pairs_draw(i, count, chosen, count * chosen);

                T_CONTEXT("%" PRIu64 " of %" PRIu64, chosen, count);
                T_TRUE(!i || one > last);
                T_TRUE(one < count && one >= i * (count / most));
                T_TRUE(one < (i + 1) * (count / most + 1));
                last = one;
            }
        }
    }
    T_TRUE(sg_crash_pairs_draw(0, 1000, 1, 1) != sg_crash_pairs_draw(0, 1000, 1, 2));
}

static const struct t_case cases[] = {
    { "pairs have what all consistent cuts have, and are consistent", pairs__are_the_cuts },
    { "pairs of machines that never talk", pairs__of_strangers },
    { "what comes from behind the end of a trace is in no pair", pairs__beyond_an_end },
    { "pasts that are too great leave only consistent pairs", pairs__of_great_pasts },
    { "a draw has one of each of equal parts", pairs__draw },
};

T_MAIN(cases)
