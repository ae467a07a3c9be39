/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line: one row for each option. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "crash/promise.h"
#include "options.h"

static const char usage[] =
    "usage: staghorn-explore --out DIR [OPTION]... TRACE...\n"
    "\n"
    "Explores what power cuts may leave of one machine's persistent memory, from the traces of\n"
    "all machines of a run, and asks whether all promises are kept.\n"
    "\n"
    "  --out DIR         folder for result.json and images; it is made\n"
    "  --target NAME     the machine whose memory is examined; needed if several have some\n"
    "  --domain LIST     none, adr, eadr, whole or all (all)\n"
    "  --ddio LIST       on, off or all (all)\n"
    "  --arrivals WHEN   data under way to a line come behind what others store there meanwhile\n"
    "                    (late), before (early, without images), or in any order (any; with\n"
    "                    --together late)\n"
    "  --acks LIST       what counts as an acknowledgement: flush, write, send, read, atomic,\n"
    "                    acknowledged, durable, state; marks are the last three (flush,marks)\n"
    "  --strategy LIST   images to write: exhaustive, only, all-but, random[:N[:SEED]], reads;\n"
    "                    bugs: one of each bug (none); with cluster[:N] only at N crash points of\n"
    "                    each cluster (3)\n"
    "  --max-images N    at most so many images; what is left out is counted (10000)\n"
    "  --together NAME   the power of this machine fails, too: pairs of images, one of it and one\n"
    "                    of the target, that one power failure may leave\n"
    "  --max-pairs N     at most so many; what is left out is counted (10000)\n"
    "  --pair-seed S     which of them, if there are more (1)\n"
    "  --not-claimed     pairs also on platforms that keep less than a guest was told\n"
    "  --reads FILE      for reads: what the checker reads, a range \"ADDRESS LENGTH\" a line\n"
    "  --reads-per-point N  at most so many plans of reads at a crash point (4096)\n"
    "  --plans FILE      the images of these plans instead, to show some of them again\n"
    "  --timelines FILE  instead of all this the timelines of lost stores, to explain images\n"
    "  --base NAME=FILE  content of an extent at the start, if the trace does not have it\n"
    "  --onto IMAGE      the trace begins with this image; --base has what the image differs from\n"
    "  --help            this text\n"
    "\n"
    "Exit status: 0 no bug, 1 bugs, 2 wrong arguments, 3 a trace cannot be used, 4 no verdict\n"
    "(nothing was promised), 5 failure\n";

enum {
    MAX_IMAGES = 10000,
    MAX_PAIRS = 10000,
    RANDOM_IMAGES = 100,
    CLUSTER = 3,
    READS_PER_POINT = 4096
};

static bool complain(int *status, const char *what, const char *word)
{
    fprintf(stderr, "staghorn-explore: %s%s%s\nTry 'staghorn-explore --help'.\n", what,
            word ? ": " : "", word ? word : "");
    *status = SG_EXPLORE_USAGE;
    return false;
}

/* One word of --acks as a set; 0: unknown. */
static unsigned ack_of(const char *word)
{
    if (strcmp(word, "marks") == 0) {
        return SG_CRASH_ACK_MARKS;
    }
    for (unsigned i = 0; i < SG_CRASH_ACKS; i++) {
        if (strcmp(word, sg_crash_ack_name((enum sg_crash_ack)i)) == 0) {
            return 1u << i;
        }
    }
    return 0;
}

static bool number_of(const char *text, uint64_t least, uint64_t *number)
{
    guint64 n;

    if (!g_ascii_string_to_unsigned(text, 10, least, G_MAXINT64, &n, NULL)) {
        return false;
    }
    *number = n;
    return true;
}

/* "random", "random:N", "random:N:SEED". */
static bool random_of(const char *word, struct sg_crash_strategies *s)
{
    char **part = g_strsplit(word, ":", 3);
    bool good = strcmp(part[0], "random") == 0;

    s->random = RANDOM_IMAGES;
    s->seed = 1;
    if (part[1]) {
        good = good && number_of(part[1], 1, &s->random);
        good = good && (!part[2] || number_of(part[2], 0, &s->seed));
    }
    g_strfreev(part);
    return good;
}

/* "cluster", "cluster:N". */
static bool cluster_of(const char *word, struct sg_crash_strategies *s)
{
    s->cluster = CLUSTER;
    return strcmp(word, "cluster") == 0 ||
           (g_str_has_prefix(word, "cluster:") && number_of(strchr(word, ':') + 1, 1, &s->cluster));
}

static bool strategy_of(const char *word, struct sg_crash_strategies *s)
{
    for (unsigned i = 0; i < SG_CRASH_STRATEGIES; i++) {
        if (i != SG_CRASH_RANDOM && i != SG_CRASH_GIVEN &&
            strcmp(word, sg_crash_strategy_name((enum sg_crash_strategy)i)) == 0) {
            s->use[i] = true;
            return true;
        }
    }
    if (strcmp(word, "bugs") == 0) {
        s->bugs = true;
        return true;
    }
    if (g_str_has_prefix(word, "cluster")) {
        return cluster_of(word, s);
    }
    s->use[SG_CRASH_RANDOM] = true;
    return random_of(word, s);
}

/* Each word of a list; false at the first that is wrong. */
static bool parse_words(const char *list, struct sg_explore_options *o, bool acks)
{
    char **words = g_strsplit(list, ",", -1);
    bool good = words[0] != NULL;

    for (unsigned i = 0; words[i] && good; i++) {
        if (acks) {
            unsigned set = ack_of(words[i]);

            o->acks |= set;
            good = set;
        } else {
            good = strategy_of(words[i], &o->strategies);
        }
    }
    g_strfreev(words);
    return good;
}

struct texts {
    const char *domain, *ddio, *acks, *strategy, *arrivals;
};

/* Plans name the questions of cuts behind late arrivals, and images name plans. */
static bool parse_arrivals(struct sg_explore_options *o, const struct texts *t, int *status)
{
    const char *text = t->arrivals ? t->arrivals : o->together ? "late" : "any";
    int arrivals = sg_crash_arrivals_parse(text);

    o->arrivals = (uint8_t)arrivals;
    if (arrivals < 0) {
        return complain(status, "--arrivals is late, early or any", text);
    }
    if (o->arrivals == SG_CRASH_EARLY && (t->strategy || o->plans)) {
        return complain(status, "--arrivals early makes no images", NULL);
    }
    for (unsigned i = 0; i < o->platforms; i++) {
        o->platform[i].arrivals = o->arrivals;
    }
    return true;
}

/* Pairs are of images that strategies make at crash points of both machines. */
static bool parse_together(const struct sg_explore_options *o, const struct texts *t, int *status)
{
    if (!o->together) {
        return true;
    }
    if (!o->target || strcmp(o->target, o->together) == 0) {
        return complain(status, "--together needs --target with another machine", o->together);
    }
    if (!t->strategy || o->strategies.use[SG_CRASH_READS] || o->strategies.cluster ||
        o->strategies.bugs) {
        return complain(status, "--together needs --strategy, without reads, cluster and bugs",
                        NULL);
    }
    if (o->arrivals == SG_CRASH_ANY) {
        return complain(status, "--together goes without --arrivals any", NULL);
    }
    return !o->plans && !o->onto
               ? true
               : complain(status, "--together goes without --plans and --onto", NULL);
}

static bool parse_texts(struct sg_explore_options *o, const struct texts *t, int *status)
{
    const char *wrong;

    o->platforms = sg_crash_platforms_parse(t->domain, t->ddio, o->platform, &wrong);
    if (!o->platforms) {
        return complain(status, wrong, NULL);
    }
    if (!parse_arrivals(o, t, status)) {
        return false;
    }
    if (!parse_words(t->acks, o, true)) {
        return complain(status, "an unknown kind of acknowledgement", t->acks);
    }
    if (t->strategy && !parse_words(t->strategy, o, false)) {
        return complain(status, "an unknown strategy", t->strategy);
    }
    if (o->plans && t->strategy) {
        return complain(status, "--plans and --strategy do not go together", NULL);
    }
    if (o->strategies.cluster && !sg_crash_strategies_any(&o->strategies)) {
        return complain(status, "cluster chooses crash points only: name another strategy, too",
                        t->strategy);
    }
    if (o->strategies.use[SG_CRASH_READS] != (o->reads != NULL)) {
        return complain(status, "--strategy reads and --reads FILE go together", NULL);
    }
    if (o->timelines && (t->strategy || o->plans || o->together)) {
        return complain(status, "--timelines goes without --strategy, --plans and --together",
                        NULL);
    }
    if (!parse_together(o, t, status)) {
        return false;
    }
    if (!o->out) {
        return complain(status, "--out is missing", NULL);
    }
    if (!o->traces) {
        return complain(status, "no trace is named", NULL);
    }
    if (o->traces > SG_CRASH_MACHINES) {
        return complain(status, "too many traces", NULL);
    }
    return true;
}

/* An option with a text of its own; false: it is none of these. */
static bool take_text(int c, struct sg_explore_options *o, struct texts *t)
{
    const struct {
        char c;
        const char **to;
    } row[] = {
        { 'o', &o->out },  { 't', &o->target },   { 'd', &t->domain },   { 'i', &t->ddio },
        { 'a', &t->acks }, { 'p', &o->plans },    { 's', &t->strategy }, { 'r', &o->reads },
        { 'n', &o->onto }, { 'w', &t->arrivals }, { 'g', &o->together }, { 'l', &o->timelines },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        if (row[i].c == c) {
            *row[i].to = optarg;
            return true;
        }
    }
    return false;
}

/* An option with a number; false: it is none of these, or *status says that it is wrong. */
static bool take_number(int c, struct sg_explore_options *o, int *status)
{
    const struct {
        char c;
        uint64_t *to, least;
        const char *what;
    } row[] = {
        { 'm', &o->strategies.max_images, 1, "--max-images needs a number" },
        { 'q', &o->strategies.reads_per_point, 1, "--reads-per-point needs a number" },
        { 'x', &o->max_pairs, 1, "--max-pairs needs a number" },
        { 'e', &o->pair_seed, 0, "--pair-seed needs a number" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        if (row[i].c == c) {
            return number_of(optarg, row[i].least, row[i].to) ||
                   complain(status, row[i].what, optarg);
        }
    }
    *status = SG_EXPLORE_USAGE; /* getopt said what */
    return false;
}

bool sg_explore_options(int argc, char **argv, struct sg_explore_options *o, int *status)
{
    static const struct option options[] = {
        { "out", required_argument, NULL, 'o' },
        { "target", required_argument, NULL, 't' },
        { "domain", required_argument, NULL, 'd' },
        { "ddio", required_argument, NULL, 'i' },
        { "arrivals", required_argument, NULL, 'w' },
        { "acks", required_argument, NULL, 'a' },
        { "strategy", required_argument, NULL, 's' },
        { "max-images", required_argument, NULL, 'm' },
        { "plans", required_argument, NULL, 'p' },
        { "reads", required_argument, NULL, 'r' },
        { "reads-per-point", required_argument, NULL, 'q' },
        { "timelines", required_argument, NULL, 'l' },
        { "onto", required_argument, NULL, 'n' },
        { "together", required_argument, NULL, 'g' },
        { "max-pairs", required_argument, NULL, 'x' },
        { "pair-seed", required_argument, NULL, 'e' },
        { "not-claimed", no_argument, NULL, 'c' },
        { "base", required_argument, NULL, 'b' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    struct texts texts = { .domain = "all", .ddio = "all", .acks = "flush,marks" };
    int c;

    *o = (struct sg_explore_options){
        .strategies = { .max_images = MAX_IMAGES, .reads_per_point = READS_PER_POINT },
        .max_pairs = MAX_PAIRS,
        .pair_seed = 1,
    };
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'b':
            if (o->bases == SG_TRACE_EXTENTS || !strchr(optarg, '=')) {
                return complain(status, "--base is NAME=FILE, for each extent once", optarg);
            }
            o->base[o->bases++] = optarg;
            break;
        case 'c':
            o->not_claimed = true;
            break;
        case 'h':
            fputs(usage, stdout);
            *status = SG_EXPLORE_GOOD;
            return false;
        default:
            if (!take_text(c, o, &texts) && !take_number(c, o, status)) {
                return false;
            }
            break;
        }
    }
    o->trace = argv + optind;
    o->traces = (unsigned)(argc - optind);
    return parse_texts(o, &texts, status);
}
