/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One run: makes a random scenario, runs it, and judges the end.
 *
 * The loop takes one random action, lets the network and the engines do what is due, lets ready
 * connections transmit with random budgets, and moves the clock to the next deadline when nothing
 * else is left to do.  When all is quiet and posted, connections are closed.
 *
 * A pair is disturbed when something random may lose messages: damage, broken streams, wrong
 * operations, aborts.  Undisturbed pairs must deliver everything and end gracefully; disturbed ones
 * must deliver nothing wrong, and end.
 */
#include <glib.h>
#include <stdarg.h>

#include "sim.h"
#include "wire/rdma_tcp.h"

enum {
    STEPS_MAX = 400000,
    PORT = 4791,
};

uint64_t sim_prng(struct sim_world *w)
{
    return sg_prng(&w->random);
}

uint32_t sim_below(struct sim_world *w, uint32_t n)
{
    return (uint32_t)(sim_prng(w) % n);
}

bool sim_chance(struct sim_world *w, unsigned percent)
{
    return sim_below(w, 100) < percent;
}

void sim_note(struct sim_world *w, const char *fmt, ...)
{
    va_list ap;

    if (!w->verbose) {
        return;
    }
    printf("# %10.3f us  ", (double)w->now_ns / 1000);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void sim_fail(struct sim_world *w, const char *fmt, ...)
{
    va_list ap;

    printf("not ok 1 - seed %" G_GUINT64_FORMAT ": ", w->seed);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n# replay with: sim%s --seed %" G_GUINT64_FORMAT "\n",
           w->wire == SG_ENGINE_IWARP ? "" : " --rdma-tcp", w->seed);
    fflush(stdout);
    exit(1);
}

/* The host of both engines. */

static uint64_t host_now(void *h)
{
    return ((struct sim_world *)h)->now_ns;
}

static void host_random(void *h, void *buf, size_t len)
{
    uint8_t *p = buf;

    while (len--) {
        *p++ = (uint8_t)sim_prng(h);
    }
}

static void host_kick(void *h)
{
    (void)h; /* engines are run in every step */
}

static void host_observe(void *h, const struct sg_observed *o)
{
    (void)h; /* engines only ask whether it is there */
    (void)o;
}

static bool host_log_enabled(void *h, enum sg_log_class cls)
{
    (void)cls;
    return ((struct sim_world *)h)->verbose;
}

static void host_log(void *h, enum sg_log_class cls, const char *line)
{
    (void)cls;
    sim_note(h, "%s", line);
}

static const struct sg_host_ops host_ops = {
    .now = host_now,
    .kick = host_kick,
    .random = host_random,
    .observe = host_observe,
    .log_enabled = host_log_enabled,
    .log = host_log,
};

/* The scenario. */

static void random_net(struct sim_world *w, struct sg_mem_options *net)
{
    static const uint32_t emss[] = { 150, 536, 1448, 1460, 4000, 8948, 65535 };
    static const uint32_t pieces[] = { 0, 0, 7, 100, 1460, 5000, 70000 };

    net->queued = true;
    net->seed = sim_prng(w);
    net->emss = emss[sim_below(w, SG_ARRAY_SIZE(emss))];
    net->delay_min_ns = sim_below(w, 2000);
    net->delay_max_ns = net->delay_min_ns + sim_below(w, 100000);
    net->room = 1000 + sim_below(w, sim_chance(w, 50) ? 4000 : 100000);
    net->piece_max = pieces[sim_below(w, SG_ARRAY_SIZE(pieces))];
    if (net->piece_max == 7) {
        w->sc.size_max = 200;
    }
    if (w->sc.corrupt) {
        net->corrupt_ppm = 500 + sim_below(w, 20000);
        net->corrupt_from = SG_RT_SETUP_MAX; /* MPA's startup frames have no CRC, and are shorter */
    }
    if (w->sc.breaks) {
        net->break_ppm = 500 + sim_below(w, 20000);
    }
}

static void random_config(struct sim_world *w)
{
    static const uint8_t masks[] = { SG_RTR_WRITE, SG_RTR_READ, SG_RTR_WRITE | SG_RTR_READ };
    struct sim_scenario *sc = &w->sc;
    bool old = sim_chance(w, 15);
    bool spoken = sim_chance(w, 85), iwarp = w->wire == SG_ENGINE_IWARP;
    unsigned i;

    for (i = 0; i < 2; i++) {
        sc->config[i] = (struct sg_engine_config){
            .wire = (uint8_t)w->wire,
            .rfc7306 = (sim_chance(w, 5) ? !spoken : spoken) && iwarp,
            .mpa_rev = 2,
            .crc = sc->corrupt || sim_chance(w, 60),
            .markers = sim_chance(w, 25),
            .peer_to_peer = sim_chance(w, 60),
            .rtr_mask = masks[sim_below(w, 3)],
            .max_ird = 16,
            .max_ord = 16,
            .reply_timeout_ms = 1000,
            .startup_timeout_ms = 1000,
            .close_timeout_ms = 500,
            .linger_timeout_ms = 500,
            .close_limit_ms = 2000,
        };
        sc->depth[i] = (uint16_t)sim_below(w, 9);
    }
    if (!sc->moody && !(sc->config[0].rtr_mask & sc->config[1].rtr_mask)) {
        sc->config[1].rtr_mask = SG_RTR_WRITE | SG_RTR_READ;
    }
    if (old) {
        sc->config[0].mpa_rev = 1; /* nothing is negotiated: the depths must fit as they are */
        sc->depth[1] = sc->depth[0];
        sc->config[1].mpa_rev = (uint8_t)(1 + sim_below(w, 2));
    }
}

static void random_scenario(struct sim_world *w)
{
    struct sim_scenario *sc = &w->sc;

    sc->corrupt = sim_chance(w, 20);
    sc->breaks = sim_chance(w, 15);
    sc->faults = sim_chance(w, 25);
    sc->aborts = sim_chance(w, 15);
    sc->early_close = sim_chance(w, 20);
    sc->moody = sim_chance(w, 15);
    sc->pairs = 1 + sim_below(w, SIM_PAIRS);
    sc->ops = 1 + sim_below(w, sim_chance(w, 70) ? 20 : SIM_OPS);
    sc->size_max = sim_chance(w, 80) ? 3000 : 20000;
    random_config(w);
    random_net(w, &sc->net);
}

static void build(struct sim_world *w)
{
    enum sg_conn_end why;
    unsigned i, k;

    w->host = (struct sg_host){ .ops = &host_ops, .opaque = w };
    w->sw = sg_mem_switch_new(&w->sc.net);
    for (i = 0; i < 2; i++) {
        w->at[i] = (struct sg_endpoint){ .family = 4, .ip = { 10, 0, 0, (uint8_t)(i + 1) } };
        w->net[i] = sg_mem_switch_port(w->sw, &w->at[i]);
        w->engine[i] = sg_engine_new(&w->host, w->net[i], &w->sc.config[i], &sim_ops);
        w->at[i].port = PORT;
    }
    w->listener = sg_engine_listen(w->engine[1], &w->at[1], SIM_PAIRS, w, &why);
    for (i = 0; i < w->sc.pairs; i++) {
        w->pair[i].w = w;
        w->pair[i].index = i;
        w->pair[i].disturbed = w->sc.corrupt || w->sc.breaks;
        for (k = 0; k < 2; k++) {
            w->pair[i].side[k].pair = &w->pair[i];
            w->pair[i].side[k].peer = &w->pair[i].side[!k];
            w->pair[i].side[k].node = k;
            sim_side_init(&w->pair[i].side[k]);
        }
    }
}

/* Actions. */

static void connect_pair(struct sim_world *w, struct sim_pair *pair)
{
    struct sim_side *s = &pair->side[0];
    const struct sg_conn_params p = {
        .ird = w->sc.depth[0],
        .ord = w->sc.depth[0],
        .pdata = s->pdata,
        .pdata_len = s->pdata_len,
    };
    const struct sg_endpoint any = { .family = 4 };
    enum sg_conn_end why;

    s->c = sg_engine_connect(w->engine[0], &any, &w->at[1], &p, s, &why);
    SIM_CHECK(w, s->c, "connect fails");
}

static void answer(struct sim_world *w, struct sim_pair *pair)
{
    struct sim_side *s = &pair->side[1];
    const struct sg_conn_params p = {
        .ird = w->sc.depth[1],
        .ord = w->sc.depth[1],
        .pdata = s->pdata,
        .pdata_len = s->pdata_len,
    };

    if (!pair->requested || pair->answered || !s->c || !sim_chance(w, 30)) {
        return;
    }
    pair->answered = true;
    if (w->sc.moody && sim_chance(w, 20)) {
        pair->refused = true;
        if (sim_chance(w, 70)) {
            SIM_CHECK(w, sg_conn_reject(s->c, s->pdata, s->pdata_len), "reject fails");
            s->c = NULL;
            s->over = true;
        }
        return; /* or no answer at all, until the timeout */
    }
    SIM_CHECK(w, sg_conn_accept(s->c, s, &p), "accept fails");
}

static void close_side(struct sim_side *s)
{
    if (s->c && s->up && !s->close_done) {
        sim_note(s->pair->w, "%u.%u closes", s->pair->index, s->node);
        s->close_done = true;
        sg_conn_close(s->c);
    }
}

static void act(struct sim_world *w)
{
    struct sim_pair *pair = &w->pair[sim_below(w, w->sc.pairs)];
    struct sim_side *s = &pair->side[sim_below(w, 2)];

    answer(w, pair);
    if (sim_chance(w, 40)) {
        sim_post(s);
    }
    if (s->close_asked && sim_chance(w, 50)) {
        close_side(s);
    }
    if (w->sc.early_close && s->up && sim_below(w, 300) == 0) {
        pair->early = true;
        close_side(s);
    }
    if (w->sc.aborts && s->c && s->up && sim_below(w, 1000) == 0) {
        sim_abort(s);
    }
}

/* True: a connection sent something. */
static bool transmit(struct sim_world *w)
{
    static const size_t budgets[] = { 1, 500, 5000, 100000 };
    unsigned first = sim_below(w, w->sc.pairs * 2), i;
    bool any = false;

    for (i = 0; i < w->sc.pairs * 2; i++) {
        unsigned n = (first + i) % (w->sc.pairs * 2);
        struct sim_side *s = &w->pair[n / 2].side[n % 2];

        if (s->c && s->tx_ready && sim_chance(w, 80)) {
            s->tx_ready = false;
            if (sg_conn_transmit(s->c, budgets[sim_below(w, SG_ARRAY_SIZE(budgets))])) {
                s->tx_ready = true;
            }
        }
        any |= s->c && s->tx_ready;
    }
    return any;
}

static bool all_posted(struct sim_world *w)
{
    unsigned i;

    for (i = 0; i < w->sc.pairs * 2; i++) {
        struct sim_side *s = &w->pair[i / 2].side[i % 2];

        if (!s->over && !s->close_done && !s->fatal && s->posted < w->sc.ops) {
            return false;
        }
    }
    return true;
}

static bool all_over(struct sim_world *w)
{
    unsigned i;

    for (i = 0; i < w->sc.pairs; i++) {
        if (w->pair[i].side[0].c || w->pair[i].side[1].c) {
            return false;
        }
    }
    return true;
}

/* Has a model of verbs asked for time? */
static bool put_off(struct sim_world *w)
{
    unsigned i;

    for (i = 0; i < w->sc.pairs * 2; i++) {
        const struct sim_side *s = &w->pair[i / 2].side[i % 2];

        if (s->c && s->later && !s->down) {
            return true;
        }
    }
    return false;
}

/* Nothing moves any more: checks that all messages have arrived, and closes. */
static void finish(struct sim_world *w)
{
    unsigned i;

    for (i = 0; i < w->sc.pairs; i++) {
        struct sim_pair *pair = &w->pair[i];
        struct sim_side *s = &pair->side[sim_below(w, 2)];

        if (!pair->disturbed && !pair->early && s->up && s->peer->up && !s->close_done &&
            !s->peer->close_done) {
            sim_check_complete(s);
            sim_check_complete(s->peer);
            SIM_CHECK(w, s->taken == s->posted && s->peer->taken == s->peer->posted,
                      "pair %u is stuck: %u of %u, %u of %u operations taken", i,
                      pair->side[0].taken, pair->side[0].posted, pair->side[1].taken,
                      pair->side[1].posted);
            SIM_CHECK(w, !s->reads_out && !s->peer->reads_out, "pair %u: Reads unanswered", i);
        }
        close_side(s);
        if (s->peer->close_asked || !s->c) {
            close_side(s->peer);
        }
    }
}

static void loop(struct sim_world *w)
{
    unsigned step, quiet = 0, i;

    for (i = 0; i < w->sc.pairs; i++) {
        connect_pair(w, &w->pair[i]);
    }
    for (step = 0; step < STEPS_MAX && !all_over(w); step++) {
        uint64_t next;
        bool busy;

        act(w);
        next = sg_mem_switch_run(w->sw, w->now_ns);
        next = SG_MIN(next, sg_engine_run(w->engine[0], w->now_ns));
        next = SG_MIN(next, sg_engine_run(w->engine[1], w->now_ns));
        busy = transmit(w);
        if (busy || !all_posted(w) || next <= w->now_ns) {
            w->now_ns += sim_below(w, 2000);
            quiet = 0;
            continue;
        }
        next = sg_mem_switch_run(w->sw, w->now_ns);
        if (next == SG_NEVER) {
            if (!put_off(w) && ++quiet > 20) {
                finish(w); /* 20 steps: answers and closes are random, too */
            }
            next = SG_MIN(sg_engine_run(w->engine[0], w->now_ns),
                          sg_engine_run(w->engine[1], w->now_ns));
            if (quiet < 40 && !put_off(w)) {
                next = w->now_ns;
            }
        }
        if (next != SG_NEVER && next > w->now_ns) {
            w->now_ns = next;
        }
    }
    SIM_CHECK(w, all_over(w), "it never ends");
}

static void judge(struct sim_world *w)
{
    unsigned i, k;

    for (i = 0; i < w->sc.pairs; i++) {
        struct sim_pair *pair = &w->pair[i];

        for (k = 0; k < 2; k++) {
            struct sim_side *s = &pair->side[k];

            SIM_CHECK(w, !s->lent, "%u.%u: memory is still lent", i, k);
            if (pair->disturbed || pair->refused || !s->up) {
                continue;
            }
            SIM_CHECK(w, s->end == SG_CONN_CLOSED, "%u.%u: graceful end was (%d)", i, k, s->end);
            if (s->close_done && !s->left && s->peer->up) {
                sim_check_complete(s);
            }
        }
        SIM_CHECK(w,
                  pair->disturbed || pair->refused || w->sc.moody ||
                      (pair->side[0].up && pair->side[1].up),
                  "pair %u never came up", i);
    }
}

void sim_run(struct sim_world *w, uint64_t seed, enum sg_engine_wire wire, bool verbose)
{
    unsigned i, turn;

    memset(w, 0, sizeof(*w));
    w->seed = w->random = seed;
    w->wire = wire;
    w->verbose = verbose;
    w->now_ns = 1000;
    random_scenario(w);
    build(w);
    loop(w);
    judge(w);
    for (turn = 0; turn < 3; turn++) { /* rejected and half-open ones have timers */
        w->now_ns += 2000000000;
        sg_mem_switch_run(w->sw, w->now_ns);
        sg_engine_run(w->engine[0], w->now_ns);
        sg_engine_run(w->engine[1], w->now_ns);
    }
    for (i = 0; i < 2; i++) {
        SIM_CHECK(w, !sg_engine_stats(w->engine[i])->conns, "node %u keeps connections", i);
        sg_engine_free(w->engine[i]);
    }
    sg_mem_switch_run(w->sw, w->now_ns + 2000000000);
    sg_mem_switch_free(w->sw);
    for (i = 0; i < w->sc.pairs * 2; i++) {
        sim_side_free(&w->pair[i / 2].side[i % 2]);
    }
}
