/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One run: machines and writers are chosen at random from the seed, then time passes in steps:
 * streams deliver, adapters work, programs act.  Power fails after the armed event, at an armed
 * milestone, or between two steps.  The oracle judges the content of the NVDIMM then; the machine
 * gets a new kind of platform, and continues with the data that survived.
 *
 * In each step one writer's area is also judged as if the power failed right now
 * (sg_persist_preview()), so a run of n steps sees far more than its few real cuts.
 *
 * A sweep has the same short script in each life of machine 0, which ends after one event more
 * than the life before; it is over when a life sees the end of the script.
 */
#include <stdarg.h>

#include "power.h"

enum {
    STEPS_MAX = 60000,
    SWEEP_STEPS_MAX = 3000000,
    LIFE_STEPS = 1200,
    LIFE_EVENTS = 700,
    MAIN = 0, /* the machine of a sweep */
};

uint64_t pw_prng(struct pw_world *w)
{
    return sg_prng(&w->random);
}

uint32_t pw_below(struct pw_world *w, uint32_t n)
{
    return (uint32_t)(pw_prng(w) % n);
}

bool pw_chance(struct pw_world *w, unsigned percent)
{
    return pw_below(w, 100) < percent;
}

void pw_note(struct pw_world *w, const char *fmt, ...)
{
    va_list ap;

    if (!w->opt.verbose) {
        return;
    }
    printf("# %10.3f us  ", (double)w->now_ns / 1000);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void pw_fail(struct pw_world *w, const char *fmt, ...)
{
    va_list ap;

    if (w->failed[0]) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(w->failed, sizeof(w->failed), fmt, ap);
    va_end(ap);
    pw_note(w, "%s", w->failed);
}

bool pw_may_lose(const struct sg_persist_config *c, enum pw_proof proof)
{
    bool evicted = c->eviction == SG_PERSIST_EAGER;

    switch (proof) {
    case PW_ANYWHERE:
        return true;
    case PW_POSTED:
        return c->domain != SG_PERSIST_WHOLE &&
               (c->posted_drain != SG_PERSIST_EAGER || pw_may_lose(c, PW_VISIBLE));
    case PW_VISIBLE:
        return pw_may_lose(c, c->ddio ? PW_CACHED : PW_QUEUED);
    case PW_BUFFERED:
        return c->domain != SG_PERSIST_WHOLE;
    case PW_CACHED:
        return c->domain < SG_PERSIST_EADR && (!evicted || pw_may_lose(c, PW_QUEUED));
    case PW_QUEUED:
        return c->domain == SG_PERSIST_NONE && c->drain != SG_PERSIST_EAGER;
    default:
        return false;
    }
}

/* ---- random choices ---- */

static bool needs_tracking(const struct pw_host *x)
{
    unsigned i;

    for (i = 0; i < x->w->flows; i++) {
        if (x->w->flow[i].to == x && x->w->flow[i].habit == PW_SEND_CPU) {
            return true;
        }
    }
    return x->cpu != PW_CPU_NONE;
}

static void random_platform(struct pw_host *x)
{
    struct pw_world *w = x->w;
    struct sg_persist_config *c = &x->config;
    static const uint32_t one_in[] = { 1, 2, 8, 40 };

    sg_persist_config_init(c);
    c->domain = (uint8_t)pw_below(w, SG_PERSIST_DOMAINS);
    c->ddio = pw_chance(w, 50);
    c->eviction = (uint8_t)(pw_chance(w, 40) ? SG_PERSIST_NEVER : pw_below(w, SG_PERSIST_PACES));
    c->drain = (uint8_t)(pw_chance(w, 40) ? SG_PERSIST_NEVER : pw_below(w, SG_PERSIST_PACES));
    c->posted_drain = (uint8_t)pw_below(w, SG_PERSIST_PACES);
    c->one_in = one_in[pw_below(w, SG_ARRAY_SIZE(one_in))];
    c->placement_delay_ns = pw_chance(w, 50) ? 0 : pw_below(w, pw_chance(w, 50) ? 3000 : 100000);
    c->placement_order = pw_chance(w, 30) ? SG_PERSIST_RANDOM_ORDER : SG_PERSIST_IN_ORDER;
    c->flush_latency_ns = pw_chance(w, 60) ? 0 : pw_below(w, 20000);
    c->flush_latency_random_ns = pw_chance(w, 70) ? 0 : pw_below(w, 20000);
    c->poison_on_mismatch = pw_chance(w, 20);
    c->cpu_tracking = needs_tracking(x) || pw_chance(w, 60);
    c->store_buffer = c->cpu_tracking && pw_chance(w, 50);
    if (w->opt.config) {
        *c = *w->opt.config;
    }
    x->model.unordered = c->placement_order == SG_PERSIST_RANDOM_ORDER;
}

static void random_cut(struct pw_host *x)
{
    struct pw_world *w = x->w;
    struct sg_persist_arm arm = { .kind = SG_PERSIST_ARM_OFF };

    x->life_end = LIFE_STEPS / 2 + pw_below(w, LIFE_STEPS);
    if (w->opt.sweep) {
        x->life_end = UINT64_MAX;
        if (x->index == MAIN) {
            arm.kind = SG_PERSIST_ARM_EVENT;
            arm.count = ++w->sweep_at;
        }
    } else if (pw_chance(w, 60)) {
        arm.kind = SG_PERSIST_ARM_EVENT;
        arm.count = 1 + pw_below(w, 1 + pw_below(w, LIFE_EVENTS));
    } else if (pw_chance(w, 40)) {
        arm.kind = SG_PERSIST_ARM_MILESTONE;
        arm.milestone = (uint8_t)pw_below(w, SG_PM_MILESTONES);
        arm.count = 1 + pw_below(w, 20);
    } else {
        x->life_end = 1 + pw_below(w, LIFE_STEPS);
    }
    sg_persist_arm(x->p, &arm);
}

static void start_life(struct pw_host *x)
{
    struct sg_persist_faults faults = { .flush_fails = 0 };

    random_platform(x);
    sg_assert(!sg_persist_configure(x->p, &x->config));
    if (x->w->faults && pw_chance(x->w, 50)) {
        faults.flush_fails = pw_below(x->w, 3);
    }
    sg_persist_set_faults(x->p, 0, &faults);
    pw_trace_configure(x, &faults);
    pw_host_boot(x);
    random_cut(x);
    pw_note(x->w, "machine %u: domain %s%s, evict %s, wpq %s, iio %s, delay %" PRIu64 "%s",
            x->index, sg_persist_domain_name(x->config.domain), x->config.ddio ? ", ddio" : "",
            sg_persist_pace_name(x->config.eviction), sg_persist_pace_name(x->config.drain),
            sg_persist_pace_name(x->config.posted_drain), x->config.placement_delay_ns,
            x->config.placement_order == SG_PERSIST_RANDOM_ORDER ? ", out of order" : "");
}

static void random_net(struct pw_world *w, struct sg_mem_options *net)
{
    static const uint32_t emss[] = { 150, 536, 1460, 8948 };
    static const uint32_t pieces[] = { 0, 0, 100, 1460 };

    *net = (struct sg_mem_options){
        .queued = true,
        .seed = pw_prng(w),
        .emss = emss[pw_below(w, SG_ARRAY_SIZE(emss))],
        .delay_min_ns = 1 + pw_below(w, 500),
        .room = 2000 + pw_below(w, 60000),
        .piece_max = pieces[pw_below(w, SG_ARRAY_SIZE(pieces))],
    };
    net->delay_max_ns = net->delay_min_ns + pw_below(w, pw_chance(w, 70) ? 2000 : 20000);
    if (w->net_bad) {
        net->corrupt_ppm = pw_chance(w, 50) ? pw_below(w, 3000) : 0;
        net->corrupt_from = 20 + 512; /* startup frames have no CRC */
        net->break_ppm = pw_chance(w, 50) ? pw_below(w, 3000) : 0;
    }
}

static void random_engine(struct pw_world *w)
{
    struct sg_adapter_config config;

    sg_adapter_default_config(&config);
    w->engine = config.engine;
    w->engine.crc = w->net_bad || pw_chance(w, 30);
    w->engine.markers = pw_chance(w, 15);
    w->engine.mpe_draft = pw_chance(w, 25) ? SG_MPE_DRAFT_01 : SG_MPE_DRAFT_02;
}

static void random_flow(struct pw_world *w, unsigned i)
{
    struct pw_flow *f = &w->flow[i];
    unsigned k, to, taken = 0;

    do {
        to = w->opt.sweep ? MAIN : pw_below(w, w->hosts);
        for (k = taken = 0; k < i; k++) {
            taken += w->flow[k].to == &w->host[to];
        }
    } while (taken == PW_AREAS - 1);
    f->w = w;
    f->index = i;
    f->to = &w->host[to];
    f->from = &w->host[(to + 1 + pw_below(w, w->hosts - 1)) % w->hosts];
    f->area = taken * PW_AREA;
    f->habit = w->opt.habit >= 0  ? (enum pw_habit)w->opt.habit
               : pw_chance(w, 40) ? PW_FLUSH
                                  : (enum pw_habit)pw_below(w, PW_HABITS);
    f->deep = pw_chance(w, 50);
    f->depth = 1 + pw_below(w, PW_DEPTH);
    f->tx_limit = w->opt.tx_limit;
    f->tx_next = f->tx_first = 1;
    f->hash_alg = (uint8_t)(pw_chance(w, 70) ? SG_HASH_CRC32C : 1 + pw_below(w, SG_HASH_COUNT - 1));
}

static void build(struct pw_world *w)
{
    struct sg_mem_options net;
    unsigned i;

    w->net_bad = !w->opt.sweep && pw_chance(w, 30);
    w->faults = !w->opt.sweep && !w->opt.config && pw_chance(w, 15);
    w->hosts = w->opt.sweep ? 2 : 2 + pw_below(w, PW_HOSTS - 1);
    w->flows = w->opt.sweep ? 1 : 1 + pw_below(w, PW_FLOWS);
    w->lives = w->opt.lives ? w->opt.lives : 2 + pw_below(w, 6);
    random_net(w, &net);
    random_engine(w);
    w->sw = sg_mem_switch_new(&net);
    if (pw_trace_on(w)) {
        sg_mem_switch_tap(w->sw, pw_trace_frame, w);
    }
    for (i = 0; i < w->flows; i++) {
        random_flow(w, i);
    }
    for (i = 0; i < w->hosts; i++) {
        struct pw_host *x = &w->host[i];

        x->cpu = w->opt.cpu >= 0    ? (enum pw_cpu_habit)w->opt.cpu
                 : pw_chance(w, 50) ? PW_CPU_NONE
                                    : (enum pw_cpu_habit)pw_below(w, PW_CPU_HABITS);
        sg_persist_config_init(&x->config);
        pw_host_init(x, w, i);
        start_life(x);
    }
}

/* ---- judgement ---- */

static void judge_all(struct pw_host *x)
{
    unsigned i;

    for (i = 0; i < x->w->flows; i++) {
        struct pw_flow *f = &x->w->flow[i];

        if (f->to == x) {
            pw_flow_judge(f, x->media + f->area, true);
        }
    }
    if (x->cpu != PW_CPU_NONE) {
        pw_cpu_judge(x, x->media + PW_PM - PW_AREA, true);
    }
}

/* Reads what a cut would leave now of an area, which may span two extents. */
static bool preview(struct pw_host *x, uint64_t off, uint8_t *buf)
{
    struct pw_world *w = x->w;
    struct sg_persist_policy policy = {
        .outcome = (uint8_t)pw_below(w, SG_PERSIST_OUTCOMES),
        .seed = pw_chance(w, 60) ? pw_prng(w) : 0,
        .addr = x->pm + pw_below(w, PW_PM),
    };
    uint64_t first = off < x->split ? SG_MIN((uint64_t)PW_AREA, x->split - off) : PW_AREA;

    policy.len = 1 + pw_below(w, PW_AREA);
    if (w->opt.mutant == PW_KEEPS_ALL) {
        policy.outcome = SG_PERSIST_KEEP_ALL;
    }
    return sg_persist_preview(x->p, &policy, x->pm + off, buf, first) &&
           (first == PW_AREA ||
            sg_persist_preview(x->p, &policy, x->pm + off + first, buf + first, PW_AREA - first));
}

static void judge_writer(struct pw_world *w)
{
    struct pw_flow *f = &w->flow[pw_below(w, w->flows)];
    struct pw_host *x = f->to;
    bool cpu = x->cpu != PW_CPU_NONE && pw_chance(w, 30);
    uint64_t off = cpu ? PW_PM - PW_AREA : f->area;
    uint8_t now[PW_AREA];

    /* A preview loses S1, which this domain keeps. */
    if (x->config.domain == SG_PERSIST_WHOLE && x->config.posted_drain != SG_PERSIST_EAGER) {
        return;
    }
    if (x->enabled && !x->powered_off && preview(x, off, now)) {
        w->sums->previews++;
        if (cpu) {
            pw_cpu_judge(x, now, false);
        } else {
            pw_flow_judge(f, now, false);
        }
    }
}

static void judge_now(struct pw_world *w)
{
    uint64_t random = w->random;

    w->random = w->preview_random;
    if (pw_chance(w, w->opt.previews)) {
        judge_writer(w);
        sg_assert_persist_state(w->host[pw_below(w, w->hosts)].p, pw_chance(w, 5));
    }
    w->preview_random = w->random;
    w->random = random;
}

/* ---- the loop ---- */

static void power_cycle(struct pw_host *x)
{
    struct pw_world *w = x->w;
    unsigned i;

    for (i = 0; i < w->flows; i++) { /* completions from before the cut count */
        if (w->flow[i].from != x && w->flow[i].state == PW_UP) {
            pw_flow_poll(&w->flow[i]);
        }
    }
    w->sweep_over = w->opt.sweep && x->index == MAIN && !x->powered_off;
    pw_host_cut(x);
    judge_all(x);
    for (i = 0; i < w->flows; i++) {
        if (w->flow[i].from == x || w->flow[i].to == x) {
            pw_flow_down(&w->flow[i], x);
        }
    }
    sg_persist_restart(x->p);
    PW_TRACE(x, SG_TRACE_RESTART, NULL);
    w->cuts++;
    start_life(x);
}

/* True: a machine lost its power. */
static bool powered_off_ones(struct pw_world *w)
{
    bool any = false;
    unsigned i;

    for (i = 0; i < w->hosts; i++) {
        if (w->host[i].powered_off) {
            power_cycle(&w->host[i]);
            any = true;
        }
    }
    return any;
}

static void run_adapter(struct pw_host *x)
{
    static const size_t budgets[] = { 500, 5000, 1 << 20 };
    struct pw_world *w = x->w;

    if (x->enabled && !x->powered_off && (x->h.kicked || x->h.timer_ns <= w->now_ns) &&
        pw_chance(w, 80)) {
        test_host_take_kick(&x->h);
        x->h.kicked |= sg_adapter_run(x->md.a, budgets[pw_below(w, SG_ARRAY_SIZE(budgets))]);
    }
}

static bool script_done(const struct pw_flow *f)
{
    return f->tx_limit && f->tx_next - f->tx_first >= f->tx_limit && f->tx_done + 1 == f->tx_next;
}

/* Cuts that are not armed. */
static void timed_cuts(struct pw_world *w)
{
    unsigned i;

    for (i = 0; i < w->hosts; i++) {
        struct pw_host *x = &w->host[i];

        x->life_steps++;
        if (x->life_steps >= x->life_end ||
            (w->opt.sweep && i == MAIN && script_done(&w->flow[0]))) {
            power_cycle(x);
        }
    }
}

static void pass_time(struct pw_world *w)
{
    uint64_t next = sg_mem_switch_run(w->sw, w->now_ns);
    bool busy = false;
    unsigned i;

    for (i = 0; i < w->hosts; i++) {
        next = SG_MIN(next, w->host[i].h.timer_ns);
        next = SG_MIN(next, sg_persist_next_due(w->host[i].p));
        busy |= w->host[i].h.kicked;
    }
    if (busy || next <= w->now_ns || pw_chance(w, 30)) {
        w->now_ns += pw_below(w, 300);
    } else {
        w->now_ns = SG_MIN(next, w->now_ns + 10000);
    }
}

static void step(struct pw_world *w)
{
    unsigned i;

    for (i = 0; i < w->hosts; i++) {
        pw_host_tick(&w->host[i]);
    }
    if (powered_off_ones(w)) {
        return;
    }
    sg_mem_switch_run(w->sw, w->now_ns);
    if (powered_off_ones(w)) {
        return;
    }
    for (i = 0; i < w->hosts; i++) {
        run_adapter(&w->host[i]);
    }
    if (powered_off_ones(w)) {
        return;
    }
    for (i = 0; i < w->hosts; i++) {
        struct pw_host *x = &w->host[i];

        pw_host_listen(x);
        if (x->cpu != PW_CPU_NONE && !x->powered_off && pw_chance(w, 15)) {
            pw_cpu_step(x);
        }
    }
    for (i = 0; i < w->flows; i++) {
        pw_flow_step(&w->flow[i]);
    }
    if (powered_off_ones(w)) {
        return;
    }
    judge_now(w);
    timed_cuts(w);
    pass_time(w);
}

static bool over(const struct pw_world *w)
{
    return w->failed[0] || (w->opt.sweep ? w->sweep_over : w->cuts >= w->lives);
}

void pw_run(struct pw_world *w, const struct pw_options *opt, struct pw_sums *sums)
{
    uint64_t steps;
    unsigned i;

    memset(w, 0, sizeof(*w));
    w->opt = *opt;
    w->random = opt->seed;
    w->preview_random = ~opt->seed;
    w->sums = sums;
    w->now_ns = 1000;
    build(w);
    for (steps = 0; !over(w) && steps < (opt->sweep ? SWEEP_STEPS_MAX : STEPS_MAX); steps++) {
        step(w);
    }
    PW_CHECK(w, over(w) || !opt->sweep, "the sweep never ends");
    sums->steps += steps;
    for (i = 0; i < w->hosts; i++) { /* the adapters first: they refer to each other */
        md_stop(&w->host[i].md);
    }
    for (i = 0; i < w->hosts; i++) {
        pw_host_replay(&w->host[i]);
        pw_trace_end(&w->host[i]);
    }
    pw_match(w);
    pw_promises(w);
    for (i = 0; i < w->hosts; i++) {
        pw_host_free(&w->host[i]);
    }
    sg_mem_switch_free(w->sw);
}
