/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The order over machines against a brute-force oracle: a network in which frames are lost,
 * repeated, reordered and flooded, and that knows which sending each reception was.  The oracle
 * walks back from an event over all causes.
 */
#include "base/prng.h"
#include "events_rig.h"
#include "tap.h"

/* ---- A network ---- */

enum { STEPS = 160, SEEDS = 1200, SEEDS_REPEATED = 300 };

struct cause {
    unsigned machine;
    uint64_t number; /* 0: none */
};

struct net {
    struct er er;
    unsigned machines; /* of the world; those behind er.machines are not recorded */
    uint64_t random;
    GArray *cause[SG_CRASH_MACHINES];   /* of each event: the sending */
    GArray *count_only;                 /* of those that are not recorded: numbers of events */
    GArray *flying;                     /* struct flight */
    unsigned lost, repeated, reordered; /* percent */
    uint64_t contents;                  /* different contents; 0: all differ */
    uint64_t fresh;
};

struct flight {
    struct cause from;
    unsigned to;
    uint64_t content;
};

/* So many seeds, or fewer with sanitizers: the tables take their time. */
static uint64_t seeds(uint64_t count)
{
    return t_seeds(count, count / 20);
}

static unsigned below(struct net *n, unsigned limit)
{
    return (unsigned)(sg_prng(&n->random) % limit);
}

static void net_init(struct net *n, uint64_t seed, unsigned machines)
{
    *n = (struct net){ .random = seed, .machines = machines };
    er_init(&n->er, machines);
    n->flying = g_array_new(FALSE, FALSE, sizeof(struct flight));
    for (unsigned i = 0; i < machines; i++) {
        n->cause[i] = g_array_new(FALSE, FALSE, sizeof(struct cause));
    }
}

static void net_free(struct net *n)
{
    for (unsigned i = 0; i < n->machines; i++) {
        g_array_free(n->cause[i], TRUE);
    }
    g_array_free(n->flying, TRUE);
    er_free(&n->er);
}

static void add_cause(struct net *n, unsigned machine, struct cause c)
{
    g_array_append_val(n->cause[machine], c);
}

static void net_send(struct net *n, unsigned from, unsigned to)
{
    uint64_t content = n->contents ? sg_prng(&n->random) % n->contents : ++n->fresh;
    struct flight f = { { from, er_sent(&n->er, from, content) }, to, content };

    add_cause(n, from, (struct cause){ 0 });
    while (below(n, 100) >= n->lost) {
        g_array_append_val(n->flying, f);
        if (below(n, 100) >= n->repeated) {
            break;
        }
    }
}

/* The first frame to a machine that is on its way; or any, if they are reordered. */
static void net_receive(struct net *n)
{
    unsigned i = below(n, 100) < n->reordered ? below(n, n->flying->len) : 0;
    struct flight f = g_array_index(n->flying, struct flight, i);

    g_array_remove_index(n->flying, i);
    er_received(&n->er, f.to, f.content);
    add_cause(n, f.to, f.from);
}

static void net_step(struct net *n)
{
    unsigned from = below(n, n->machines), to = below(n, n->machines);

    switch (below(n, 5)) {
    case 0:
        er_local(&n->er, from);
        add_cause(n, from, (struct cause){ 0 });
        break;
    case 1:
    case 2:
        if (to != from) {
            net_send(n, from, to);
        }
        break;
    default:
        if (n->flying->len) {
            net_receive(n);
        }
    }
}

/* A frame of a stranger. */
static void net_stranger(struct net *n)
{
    unsigned to = below(n, n->machines);

    er_received(&n->er, to, ++n->fresh + (1u << 20));
    add_cause(n, to, (struct cause){ 0 });
}

/* ---- The oracle ---- */

/* The last event of each machine that is among the causes of this one, by a walk back. */
static void oracle(struct net *n, struct cause of, uint64_t *past)
{
    GArray *todo = g_array_new(FALSE, FALSE, sizeof(struct cause));
    struct cause c;

    memset(past, 0, SG_CRASH_MACHINES * sizeof(*past));
    g_array_append_val(todo, of);
    while (todo->len) {
        uint64_t from;

        c = g_array_index(todo, struct cause, todo->len - 1);
        g_array_set_size(todo, todo->len - 1);
        from = past[c.machine];
        past[c.machine] = SG_MAX(from, c.number);
        for (uint64_t e = c.number; e > from; e--) {
            struct cause by = g_array_index(n->cause[c.machine], struct cause, e - 1);

            if (by.number > past[by.machine]) {
                g_array_append_val(todo, by);
            }
        }
    }
    g_array_free(todo, TRUE);
}

/* ---- The comparison ---- */

struct check {
    struct net *n;
    bool exact; /* else a past may be greater */
    uint64_t seen[SG_CRASH_MACHINES];
    uint64_t too_small, too_great;
    uint64_t runs, given_up;
};

static void compare(void *opaque, unsigned machine, const struct sg_trace_event *e,
                    const uint64_t *past)
{
    struct check *c = opaque;
    uint64_t expected[SG_CRASH_MACHINES];

    T_EQ_U64(e->number, c->seen[machine] + 1);
    c->seen[machine]++;
    T_EQ_U64(past[machine], e->number);
    oracle(c->n, (struct cause){ machine, e->number }, expected);
    for (unsigned j = 0; j < c->n->machines; j++) {
        /* An order that contradicts no cause. */
        T_TRUE(!c->exact || c->seen[j] >= expected[j]);
        c->too_small += past[j] < expected[j];
        c->too_great += past[j] > expected[j];
    }
}

static void begin(void *opaque)
{
    struct check *c = opaque;

    memset(c->seen, 0, sizeof(c->seen));
    c->too_small = c->too_great = 0;
}

static void run(struct net *n, struct check *c)
{
    struct sg_crash_order *o = er_run(&n->er, begin, compare, c);
    uint64_t events = 0;

    c->runs += sg_crash_order_counts(o)->runs;
    c->given_up += sg_crash_order_counts(o)->given_up;
    for (unsigned i = 0; i < n->machines; i++) {
        T_EQ_U64(c->seen[i], n->er.list[i].events->len);
        events += c->seen[i];
    }
    T_EQ_U64(sg_crash_order_counts(o)->events, events);
    sg_crash_order_free(o);
}

/* Frames that are all different: exactly the true causes, whatever the network does. */
static void order__unique_frames(void)
{
    for (uint64_t seed = 1; seed <= seeds(SEEDS); seed++) {
        struct net n;
        struct check c = { .n = &n, .exact = true };

        T_CONTEXT("seed %" PRIu64, seed);
        net_init(&n, seed, 1 + (unsigned)(seed % 4));
        n.lost = seed % 3 * 10;
        n.repeated = seed / 3 % 3 * 15;
        n.reordered = seed / 9 % 3 * 30;
        for (unsigned i = 0; i < STEPS; i++) {
            net_step(&n);
            if (seed % 2 && below(&n, 10) == 0) {
                net_stranger(&n);
            }
        }
        run(&n, &c);
        T_EQ_U64(c.too_small, 0);
        T_EQ_U64(c.too_great, 0);
        net_free(&n);
    }
}

/* Contents that come again: no past is too small, whatever the network does. */
static void order__repeated_contents(void)
{
    uint64_t too_great = 0, too_small = 0, all = 0, runs = 0, given_up = 0;

    for (uint64_t seed = 1; seed <= seeds(SEEDS_REPEATED); seed++) {
        struct net n;
        struct check c = { .n = &n };

        T_CONTEXT("seed %" PRIu64, seed);
        net_init(&n, seed, 2 + (unsigned)(seed % 3));
        n.contents = 1 + seed % 20;
        n.lost = seed % 3 * 10;
        n.repeated = seed / 3 % 3 * 15;
        n.reordered = seed / 9 % 3 * 30;
        for (unsigned i = 0; i < STEPS; i++) {
            net_step(&n);
        }
        run(&n, &c);
        too_small += c.too_small;
        runs += c.runs;
        given_up += c.given_up;
        too_great += c.too_great;
        all += STEPS;
        net_free(&n);
    }
    T_NOTE("of %" PRIu64 ": %" PRIu64 " too great, %" PRIu64 " too small, %" PRIu64
           " runs, %" PRIu64 " given up",
           all, too_great, too_small, runs, given_up);
    T_EQ_U64(too_small, 0);
}

/*
 * A trace that is cut short: what is known of its machine is right or BEYOND, and BEYOND if
 * anything behind its end is among the causes.
 */
struct short_check {
    struct net *n;
    unsigned cut;  /* machine */
    uint64_t left; /* its events */
    uint64_t right, beyond;
};

static void compare_short(void *opaque, unsigned machine, const struct sg_trace_event *e,
                          const uint64_t *past)
{
    struct short_check *c = opaque;
    uint64_t expected[SG_CRASH_MACHINES];

    oracle(c->n, (struct cause){ machine, e->number }, expected);
    if (expected[c->cut] > c->left) {
        T_EQ_U64(past[c->cut], SG_CRASH_BEYOND);
        c->beyond++;
    } else if (past[c->cut] != SG_CRASH_BEYOND) {
        T_EQ_U64(past[c->cut], expected[c->cut]);
        c->right++;
    }
}

static void begin_short(void *opaque)
{
}

static void order__cut_short(void)
{
    uint64_t right = 0, beyond = 0;

    for (uint64_t seed = 1; seed <= seeds(SEEDS); seed++) {
        struct net n;
        struct short_check c = { .n = &n };
        struct sg_crash_order *o;

        T_CONTEXT("seed %" PRIu64, seed);
        net_init(&n, seed, 2 + (unsigned)(seed % 3));
        for (unsigned i = 0; i < STEPS; i++) {
            net_step(&n);
        }
        c.cut = below(&n, n.machines);
        c.left = below(&n, n.er.list[c.cut].events->len + 1);
        g_array_set_size(n.er.list[c.cut].events, (unsigned)c.left);
        n.er.list[c.cut].cut_short = true;
        o = er_run(&n.er, begin_short, compare_short, &c);
        T_TRUE(sg_crash_order_counts(o)->cut_short[c.cut]);
        sg_crash_order_free(o);
        right += c.right;
        beyond += c.beyond;
        net_free(&n);
    }
    T_NOTE("%" PRIu64 " right, %" PRIu64 " behind the end", right, beyond);
    T_TRUE(right > 1000 && beyond > 500);
}

/* ---- Long traces ---- */

struct last {
    uint64_t past[SG_CRASH_MACHINES][SG_CRASH_MACHINES];
    uint64_t events;
};

static void keep_last(void *opaque, unsigned machine, const struct sg_trace_event *e,
                      const uint64_t *past)
{
    struct last *l = opaque;

    memcpy(l->past[machine], past, sizeof(l->past[0]));
    l->events++;
}

static void begin_last(void *opaque)
{
    memset(opaque, 0, sizeof(struct last));
}

/* Twice as many frames as are remembered, that nobody receives but a few. */
static void order__flood(void)
{
    enum { FLOOD = 2 * SG_CRASH_FRAMES, EACH = 1000 };
    struct er er;
    struct last last;
    struct sg_crash_order *o;

    er_init(&er, 2);
    for (uint64_t i = 1; i <= FLOOD; i++) {
        er_sent(&er, 0, i);
    }
    for (uint64_t i = EACH; i <= FLOOD; i += EACH) {
        er_received(&er, 1, i);
    }
    er_sent(&er, 1, FLOOD + 1);
    er_received(&er, 0, FLOOD + 1);
    o = er_run(&er, begin_last, keep_last, &last);
    T_EQ_U64(last.past[1][0], FLOOD / EACH * EACH);
    T_EQ_U64(last.past[0][1], FLOOD / EACH + 1);
    T_EQ_U64(sg_crash_order_counts(o)->matched, FLOOD / EACH + 1);
    T_EQ_U64(sg_crash_order_counts(o)->unmatched, 0);
    sg_crash_order_free(o);
    er_free(&er);
}

/* A frame that was sent longer ago than is remembered: at least its sending is in the past. */
static void order__forgotten(void)
{
    struct er er;
    struct last last;
    struct sg_crash_order *o;

    er_init(&er, 3);
    er_sent(&er, 0, 1);
    /* Machine 2 waits for what machine 1 sends at its end; 0 and 1 have much to tell each other. */
    er_received(&er, 2, 2);
    er_received(&er, 2, 1);
    for (uint64_t i = 10; i < 10 + SG_CRASH_FRAMES; i++) {
        er_sent(&er, 0, i);
        er_received(&er, 1, i);
    }
    er_sent(&er, 1, 2);
    o = er_run(&er, begin_last, keep_last, &last);
    T_TRUE(last.past[2][0] >= 1);
    T_EQ_U64(last.past[2][1], SG_CRASH_FRAMES + 1);
    T_EQ_U64(sg_crash_order_counts(o)->unmatched, 0);
    sg_crash_order_free(o);
    er_free(&er);
}

/* ---- Traces that nobody recorded ---- */

static void order__hostile(void)
{
    for (uint64_t seed = 1; seed <= seeds(60); seed++) {
        uint64_t random = seed, all = 0;
        unsigned machines = 1 + (unsigned)(sg_prng(&random) % SG_CRASH_MACHINES);
        uint64_t contents = 1 + sg_prng(&random) % (seed % 2 ? 3 : 500);
        struct er er;
        struct last last;

        T_CONTEXT("seed %" PRIu64, seed);
        er_init(&er, machines);
        for (; all < 3000; all++) {
            unsigned machine = (unsigned)(sg_prng(&random) % machines);
            uint64_t content = sg_prng(&random) % contents;

            if (sg_prng(&random) % 2) {
                er_sent(&er, machine, content);
            } else {
                er_received(&er, machine, content);
            }
            er.list[machine].cut_short = sg_prng(&random) % 2;
        }
        sg_crash_order_free(er_run(&er, begin_last, keep_last, &last));
        T_EQ_U64(last.events, all);
        er_free(&er);
    }
}

/* Each waits for what the other one sends afterwards. */
static void order__impossible(void)
{
    struct er er;
    struct last last;

    er_init(&er, 2);
    er_received(&er, 0, 1);
    er_sent(&er, 0, 2);
    er_received(&er, 1, 2);
    er_sent(&er, 1, 1);
    sg_crash_order_free(er_run(&er, begin_last, keep_last, &last));
    T_EQ_U64(last.events, 4);
    er_free(&er);
}

static const struct t_case cases[] = {
    { "order: unique frames", order__unique_frames },
    { "order: repeated contents", order__repeated_contents },
    { "order: a trace that is cut short", order__cut_short },
    { "order: a flood of frames", order__flood },
    { "order: a frame that is forgotten", order__forgotten },
    { "order: hostile traces", order__hostile },
    { "order: an impossible trace", order__impossible },
};

T_MAIN(cases)
