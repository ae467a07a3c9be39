/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * power [--seeds A..B] [--sweeps A..B] [--previews PERCENT]   all cases; speaks TAP
 * power --case CASE --seed N                                  one run of a case, with its log
 *
 * Cases:
 *   runs      everything random from the seed: nothing acknowledged is lost
 *   writers   writers that rely on less lose where the model says so; the others never do
 *   programs  the same for programs of the machine itself
 *   sweep     a cut after each event of a short script, on a random platform
 *   stages    each stage alone on each domain: it loses where the table says so, else never
 *   judge     faults built into the machine on purpose: the oracle detects each
 */
#include "power.h"

enum {
    STAGE_SEEDS = 60,
    STAGE_LIVES = 12,
    WRITER_SEEDS = 200,
    WRITER_LIVES = 6,
    SAFE_SEEDS = 2,
    JUDGE_SEEDS = 400,
    SWEEP_TXS = 3,
};

static const char *const habit_names[PW_HABITS] = { "Write+Flush+Verify+AtomicWrite",
                                                    "Write+Flush",
                                                    "Write+Verify",
                                                    "Write",
                                                    "Write+Flush(G)",
                                                    "Write+Read",
                                                    "Write+Send",
                                                    "Write+Send+CPU flush",
                                                    "Write+AtomicWrite" };
static const char *const cpu_names[PW_CPU_HABITS] = {
    "", "store+CLWB+SFENCE", "NT store+SFENCE", "store", "store+CLWB", "NT store"
};
static const char *const mutant_names[PW_MUTANTS] = {
    "none",       "flush-nothing", "flush-skips-line", "flush-skips-s0", "verify-reads-cache",
    "tears-atom", "tears-line",    "keeps-all"
};

static struct pw_world *world;
static unsigned number;
static uint64_t previews = 100;
static bool all_good = true;

static void result(bool good, const char *name)
{
    printf("%sok %u - %s\n", good ? "" : "not ", ++number, name);
    all_good &= good;
}

/* False: the run failed, and the reason is printed. */
static bool run(const struct pw_options *opt, struct pw_sums *sums, const char *what)
{
    pw_run(world, opt, sums);
    if (world->failed[0]) {
        printf("# %s\n# replay with: power --case %s --seed %" PRIu64 "\n", world->failed, what,
               opt->seed);
    }
    return !world->failed[0];
}

static struct pw_options random_options(uint64_t seed)
{
    return (struct pw_options){
        .seed = seed,
        .habit = -1,
        .cpu = -1,
        .outcome = -1,
        .previews = (unsigned)previews,
    };
}

static struct pw_options sweep_of(uint64_t seed)
{
    struct pw_options opt = random_options(seed);

    opt.sweep = true;
    opt.tx_limit = SWEEP_TXS;
    opt.habit = seed % 3 ? PW_FLUSH : (int)(seed / 3 % PW_HABITS);
    return opt;
}

/* ---- runs ---- */

static void tell_sums(const struct pw_sums *s)
{
    printf("# %" PRIu64 " steps, %" PRIu64 " events of domains, %" PRIu64 " power cuts (%" PRIu64
           " armed), %" PRIu64 " previews of one, %" PRIu64 " logs replayed\n",
           s->steps, s->events, s->cuts, s->armed, s->previews, s->replays);
    printf("# %" PRIu64 " traces replayed: %" PRIu64 " events, %" PRIu64 " octets\n", s->traces,
           s->trace_events, s->trace_octets);
    printf("# %" PRIu64 " events have their cause in a trace, of %" PRIu64 " frames received\n",
           s->matched, s->frames);
    printf("# %" PRIu64 " times a Flush promises what a request placed\n", s->promised);
    printf("# %" PRIu64 " records relied on, %" PRIu64 " acknowledgements, %" PRIu64
           " connections, %" PRIu64 " broken\n",
           s->commits, s->acks, s->connections, s->broken);
}

/* Prints the losses of the runs. */
static void tell_losses(const struct pw_sums *s)
{
    unsigned habit, domain, ddio;

    puts("# cuts after which a record was missing that its writer relied on");
    printf("# %-32s", "");
    for (domain = 0; domain < SG_PERSIST_DOMAINS; domain++) {
        printf("%8s%8s", sg_persist_domain_name(domain), "+ddio");
    }
    for (habit = 0; habit < PW_HABITS; habit++) {
        printf("\n# %-32s", habit_names[habit]);
        for (domain = 0; domain < SG_PERSIST_DOMAINS; domain++) {
            for (ddio = 0; ddio < 2; ddio++) {
                printf("%8" PRIu64, s->lost[habit][domain][ddio]);
            }
        }
    }
    putchar('\n');
}

static void runs(uint64_t first, uint64_t last)
{
    struct pw_sums sums = { 0 };
    uint64_t seed;
    bool good = true;

    for (seed = first; seed <= last && good; seed++) {
        struct pw_options opt = random_options(seed);

        good = run(&opt, &sums, "runs");
    }
    tell_sums(&sums);
    tell_losses(&sums);
    result(good, "FLU-07 FLU-12 FLU-19 FLU-26 FLU-27 FLU-34 FLU-36 power cuts: nothing that was "
                 "acknowledged is lost");
}

/* ---- writers ---- */

/* A platform where no data move without a cause. */
static void lazy(unsigned domain, bool ddio, struct sg_persist_config *c)
{
    sg_persist_config_init(c);
    c->placement_delay_ns = 0;
    c->domain = (uint8_t)domain;
    c->ddio = ddio;
    c->posted_drain = SG_PERSIST_NEVER;
    c->cpu_tracking = true;
    c->store_buffer = true;
}

static struct pw_options writer_of(unsigned habit, uint64_t seed,
                                   const struct sg_persist_config *config)
{
    struct pw_options opt = random_options(seed);

    opt.config = config;
    opt.lives = WRITER_LIVES;
    opt.habit = (int)habit;
    opt.cpu = PW_CPU_NONE;
    return opt;
}

static struct pw_options program_of(unsigned habit, uint64_t seed,
                                    const struct sg_persist_config *config)
{
    struct pw_options opt = writer_of(PW_FLUSH_ONLY, seed, config);

    opt.cpu = (int)habit;
    return opt;
}

/*
 * Returns the losses of as many seeds as it takes to see one, or of some seeds if there may be
 * none.  A Verify alone is a proof, but on this platform its data never move to where it succeeds.
 */
static uint64_t losses(unsigned habit, bool cpu, unsigned domain, bool ddio, bool may, bool *good)
{
    uint64_t seed, lost = 0, safe = 0;
    struct sg_persist_config c;
    struct pw_sums sums = { 0 };
    bool sound = true, hopeless;
    char what[40];

    lazy(domain, ddio, &c);
    hopeless = !cpu && habit == PW_VERIFY && pw_may_lose(&c, PW_VISIBLE);
    snprintf(what, sizeof(what), "%s-%u-%u-%u", cpu ? "program" : "writer", habit, domain, ddio);
    for (seed = 1; sound && !lost && seed <= (may ? WRITER_SEEDS : SAFE_SEEDS); seed++) {
        struct pw_options opt = cpu ? program_of(habit, seed, &c) : writer_of(habit, seed, &c);

        sound = run(&opt, &sums, what);
        lost = cpu ? sums.cpu_lost[habit][domain] : sums.lost[habit][domain][ddio];
        safe = cpu ? sums.cpu_safe[habit][domain] : sums.safe[habit][domain][ddio];
    }
    if ((lost > 0) != may || (!may && hopeless != !safe)) {
        printf("# %s: %s; %" PRIu64 " cuts after something was relied on\n", what,
               may ? "no loss shows" : "unexpected", safe);
        sound = false;
    }
    *good &= sound;
    return lost;
}

static bool writer_may_lose(unsigned habit, unsigned domain, bool ddio)
{
    struct pw_flow f = { .habit = (enum pw_habit)habit };
    struct sg_persist_config c;

    lazy(domain, ddio, &c);
    return pw_may_lose(&c, pw_flow_proof(&f));
}

static bool program_may_lose(unsigned habit, unsigned domain)
{
    struct sg_persist_config c;

    lazy(domain, true, &c);
    return pw_may_lose(&c, pw_cpu_proof((enum pw_cpu_habit)habit, &c));
}

static void writers(void)
{
    unsigned i, k;
    bool good = true;

    for (i = 0; i < PW_HABITS; i++) {
        GString *on = g_string_new(NULL);

        for (k = 0; k < SG_PERSIST_DOMAINS * 2; k++) {
            bool may = writer_may_lose(i, k / 2, k % 2);

            if (losses(i, false, k / 2, k % 2, may, &good)) {
                g_string_append_printf(on, " %s%s", sg_persist_domain_name(k / 2),
                                       k % 2 ? "+ddio" : "");
            }
        }
        printf("# %-32s loses on:%s\n", habit_names[i], on->str);
        g_string_free(on, TRUE);
    }
    result(good, "FLU-19 writers that rely on less lose where the model says so, and only there");
}

static void programs(void)
{
    unsigned i, k;
    bool good = true;

    for (i = PW_CPU_NONE + 1; i < PW_CPU_HABITS; i++) {
        GString *on = g_string_new(NULL);

        for (k = 0; k < SG_PERSIST_DOMAINS; k++) {
            if (losses(i, true, k, true, program_may_lose(i, k), &good)) {
                g_string_append_printf(on, " %s", sg_persist_domain_name(k));
            }
        }
        printf("# %-32s loses on:%s\n", cpu_names[i], on->str);
        g_string_free(on, TRUE);
    }
    result(good, "programs of the machine itself, likewise");
}

/* ---- sweep ---- */

static void sweeps(uint64_t first, uint64_t last)
{
    struct pw_sums sums = { 0 };
    uint64_t seed;
    bool good = true;

    for (seed = first; seed <= last && good; seed++) {
        struct pw_options opt = sweep_of(seed);

        good = run(&opt, &sums, "sweep");
    }
    tell_sums(&sums);
    result(good, "FLU-12 FLU-26 FLU-34 sweep: a cut after each event of three transactions");
}

/* ---- stages ---- */

/* A platform where only this stage can lose data. */
static void only_stage(unsigned stage, unsigned domain, struct sg_persist_config *c)
{
    sg_persist_config_init(c);
    c->placement_delay_ns = 0;
    c->domain = (uint8_t)domain;
    c->eviction = c->drain = c->posted_drain = SG_PERSIST_EAGER;
    c->cpu_tracking = true;
    switch (stage) {
    case SG_PERSIST_S0:
        c->placement_delay_ns = 50000;
        break;
    case SG_PERSIST_S1:
        c->posted_drain = SG_PERSIST_NEVER;
        break;
    case SG_PERSIST_SB:
        c->store_buffer = true;
        break;
    case SG_PERSIST_S2:
        c->eviction = SG_PERSIST_NEVER;
        break;
    default:
        c->ddio = false;
        c->eviction = c->drain = SG_PERSIST_NEVER;
        break;
    }
}

static bool stage_may_lose(unsigned stage, unsigned domain)
{
    switch (stage) {
    case SG_PERSIST_S0:
        return true;
    case SG_PERSIST_S1:
    case SG_PERSIST_SB:
        return domain != SG_PERSIST_WHOLE;
    case SG_PERSIST_S2:
        return domain < SG_PERSIST_EADR;
    default:
        return domain == SG_PERSIST_NONE;
    }
}

static struct pw_options stage_of(unsigned stage, uint64_t seed,
                                  const struct sg_persist_config *config)
{
    struct pw_options opt = random_options(seed);

    opt.config = config;
    opt.lives = STAGE_LIVES;
    opt.habit = stage == SG_PERSIST_SB ? PW_FLUSH_ONLY : PW_NOTHING;
    opt.cpu = stage == SG_PERSIST_SB ? PW_CPU_STORE : PW_CPU_NONE;
    return opt;
}

/* Tries seeds until the loss shows; all of them if there may be none. */
static bool stage(unsigned i, unsigned domain)
{
    bool may = stage_may_lose(i, domain), seen = false, good = true;
    struct pw_sums sums = { 0 };
    struct sg_persist_config c;
    char what[40];
    uint64_t seed;

    snprintf(what, sizeof(what), "stage-%u-%u", i, domain);
    only_stage(i, domain, &c);
    for (seed = 1; good && !seen && seed <= (may ? STAGE_SEEDS : 4); seed++) {
        struct pw_options opt = stage_of(i, seed, &c);

        good = run(&opt, &sums, what);
        seen = sums.stage_lost[i] && sums.dropped;
    }
    good &= seen == may && (may || (!sums.stage_lost[i] && !sums.dropped));
    printf("# %-3s domain %-5s: %s, %" PRIu64 " cuts, %" PRIu64 " lines short%s\n",
           sg_persist_stage_name(i), sg_persist_domain_name(domain), seen ? "lost" : "nothing lost",
           sums.cuts, sums.dropped, good ? "" : " (WRONG)");
    return good;
}

static void stages(void)
{
    unsigned i, domain;
    bool good = true;

    for (i = 0; i < SG_PERSIST_STAGES; i++) {
        for (domain = 0; domain < SG_PERSIST_DOMAINS; domain++) {
            good &= stage(i, domain);
        }
    }
    result(good, "each stage loses what the platform may lose, and nothing else");
}

/* ---- judge ---- */

static struct pw_options mutant_of(unsigned mutant, uint64_t seed)
{
    struct pw_options opt = random_options(seed);

    opt.mutant = (enum pw_mutant)mutant;
    if (mutant == PW_VERIFY_READS_CACHE) {
        opt.habit = PW_VERIFY;
    }
    return opt;
}

/* Returns the first seed that detects it, or 0. */
static uint64_t noticed(unsigned mutant)
{
    struct pw_sums sums = { 0 };
    uint64_t seed;

    for (seed = 1; seed <= JUDGE_SEEDS; seed++) {
        struct pw_options opt = mutant_of(mutant, seed);

        pw_run(world, &opt, &sums);
        if (world->failed[0]) {
            return seed;
        }
    }
    return 0;
}

static void judge(void)
{
    unsigned mutant;
    bool good = true;

    for (mutant = PW_SOUND + 1; mutant < PW_KEEPS_ALL; mutant++) {
        uint64_t seed = noticed(mutant);

        printf("# %s: %s%" PRIu64 ": %s\n", mutant_names[mutant],
               seed ? "noticed by seed " : "not noticed, ", seed, world->failed);
        good &= seed != 0;
    }
    result(good, "the judge notices a machine that breaks the contract");
}

/* A machine that keeps everything never loses, which "writers" and "stages" do not accept. */
static void kind(void)
{
    struct pw_sums sums = { 0 };
    struct sg_persist_config c;
    uint64_t seed;

    only_stage(SG_PERSIST_S2, SG_PERSIST_ADR, &c);
    for (seed = 1; seed <= 5; seed++) {
        struct pw_options opt = stage_of(SG_PERSIST_S2, seed, &c);

        opt.mutant = PW_KEEPS_ALL;
        pw_run(world, &opt, &sums);
    }
    result(!sums.dropped && !sums.stage_lost[SG_PERSIST_S2] && sums.cuts,
           "a machine that is too kind shows as one without losses");
}

/* ---- command line ---- */

static int usage(void)
{
    fputs("usage: power [--seeds A..B] [--sweeps A..B] [--previews PERCENT]\n"
          "       power --case CASE --seed N\n"
          "CASE: runs, sweep, stage-STAGE-DOMAIN, writer-HABIT-DOMAIN-DDIO, "
          "program-HABIT-DOMAIN-DDIO, a fault:",
          stderr);
    for (unsigned i = 1; i < PW_MUTANTS; i++) {
        fprintf(stderr, " %s", mutant_names[i]);
    }
    fputc('\n', stderr);
    return 2;
}

static int one(const char *name, uint64_t seed)
{
    struct pw_options opt = random_options(seed);
    struct sg_persist_config c;
    struct pw_sums sums = { 0 };
    unsigned i, domain, ddio;

    if (strcmp(name, "sweep") == 0) {
        opt = sweep_of(seed);
    } else if (sscanf(name, "stage-%u-%u", &i, &domain) == 2 && i < SG_PERSIST_STAGES &&
               domain < SG_PERSIST_DOMAINS) {
        only_stage(i, domain, &c);
        opt = stage_of(i, seed, &c);
    } else if (sscanf(name, "writer-%u-%u-%u", &i, &domain, &ddio) == 3 && i < PW_HABITS &&
               domain < SG_PERSIST_DOMAINS) {
        lazy(domain, ddio, &c);
        opt = writer_of(i, seed, &c);
    } else if (sscanf(name, "program-%u-%u-%u", &i, &domain, &ddio) == 3 && i < PW_CPU_HABITS &&
               domain < SG_PERSIST_DOMAINS) {
        lazy(domain, ddio, &c);
        opt = program_of(i, seed, &c);
    } else if (strcmp(name, "runs") != 0) {
        for (i = 1; i < PW_MUTANTS && strcmp(name, mutant_names[i]); i++) {
        }
        if (i == PW_MUTANTS) {
            return usage();
        }
        opt = mutant_of(i, seed);
    }
    opt.verbose = true;
    puts("1..1");
    result(run(&opt, &sums, name), name);
    tell_sums(&sums);
    return !all_good;
}

static bool range(const char *text, uint64_t *first, uint64_t *last)
{
    return sscanf(text, "%" SCNu64 "..%" SCNu64, first, last) == 2 && *first <= *last;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, last = 100, sweep_first = 1, sweep_last = 5;
    int i;

    setvbuf(stdout, NULL, _IOLBF, 0);
    world = g_new(struct pw_world, 1);
    if (argc == 5 && strcmp(argv[1], "--case") == 0 && strcmp(argv[3], "--seed") == 0) {
        i = one(argv[2], strtoull(argv[4], NULL, 0));
        g_free(world);
        return i;
    }
    for (i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        bool good =
            strcmp(argv[i], "--seeds") == 0 ? range(value, &first, &last)
            : strcmp(argv[i], "--sweeps") == 0
                ? range(value, &sweep_first, &sweep_last)
                : strcmp(argv[i], "--previews") == 0 && sscanf(value, "%" SCNu64, &previews) == 1;

        if (!good) {
            break;
        }
    }
    if (i != argc) {
        return usage();
    }
    puts("1..7");
    runs(first, last);
    writers();
    programs();
    sweeps(sweep_first, sweep_last);
    stages();
    judge();
    kind();
    g_free(world);
    return !all_good;
}
