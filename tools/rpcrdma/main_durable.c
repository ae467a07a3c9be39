/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rpcrdma durable write HOST[:PORT] --file NAME [OPTION]...: numbered records into a file of an NFS
 * server, and which of them it has promised to keep.
 * rpcrdma durable verify HOST[:PORT] --file NAME --records N [OPTION]...: are they there?
 * rpcrdma durable inspect PATH --records N [OPTION]...: the same of the file itself, where the
 * server has it, without a server.
 *
 * Status 0: all is written, or there; 1: a rule is broken, or records are missing; 2: wrong
 * arguments, or a file that cannot be read; 3: not all could be written or read.
 */
#include <errno.h>
#include <stdio.h>

#include "check.h"
#include "commands.h"
#include "durable.h"
#include "port_verbs.h"

enum { RECORDS = 256, SIZE = 8192, EVERY = 16, LIMIT_MAX_MS = 600000 };

struct durable_arguments {
    char *file, *stable;
    int records, size, every, seed, reply_ms;
    gboolean json;
};

static void print_state(const struct rr_durable *d)
{
    printf("answered %u stable %u\n", d->answered, d->kept);
    fflush(stdout);
}

static int report(const struct rr_verdict *v, int status)
{
    g_autoptr(GString) text = g_string_new(NULL);

    rr_verdict_say(text, v, "rpcrdma: ");
    fputs(text->str, stderr);
    return status;
}

static int write_records(struct rr_session *s, struct rr_durable *d)
{
    bool done;

    d->promised = print_state;
    done = rr_durable_write(s, d);
    print_state(d);
    if (done) {
        return report(s->verdict, s->verdict->findings.count ? STATUS_BROKEN : STATUS_FINE);
    }
    /* A server that answers no more is what this is made for, and no breach. */
    return report(s->verdict, STATUS_NO_JUDGEMENT);
}

static int verify_records(struct rr_session *s, const struct rr_durable *d)
{
    uint32_t wrong, first;

    if (!rr_durable_verify(s, d, &wrong, &first)) {
        return report(s->verdict, STATUS_NO_JUDGEMENT);
    }
    printf("records %u wrong %u\n", d->records, wrong);
    if (wrong) {
        printf("the first that is missing or damaged: %u\n", first);
    }
    return report(s->verdict, wrong || s->verdict->findings.count ? STATUS_BROKEN : STATUS_FINE);
}

/* ---- inspect ---- */

static void print_inspection(const struct rr_durable *d, const struct rr_inspection *found,
                             bool json)
{
    const char *between = "";

    printf(json ? "{\"records\": %u, \"right\": %u, \"lost\": %u, \"torn\": %u, \"wrong\": ["
                : "records %u right %u lost %u torn %u\n",
           d->records, found->count[RR_RECORD_RIGHT], found->count[RR_RECORD_LOST],
           found->count[RR_RECORD_TORN]);
    for (uint32_t n = 1; n <= d->records; n++) {
        enum rr_record_state state = found->state[n - 1];

        if (state != RR_RECORD_RIGHT && json) {
            printf("%s{\"record\": %u, \"state\": \"%s\"}", between, n,
                   rr_record_state_name(state));
            between = ", ";
        } else if (state != RR_RECORD_RIGHT) {
            printf("record %u is %s\n", n, rr_record_state_name(state));
        }
    }
    fputs(json ? "]}\n" : "", stdout);
}

static int inspect(const struct rr_durable *d, const char *path, bool json)
{
    FILE *file = fopen(path, "rb");
    struct rr_inspection found = { .state = NULL };
    int status;

    if (!file || !rr_durable_inspect(d, file, &found)) {
        status = trouble("cannot read %s: %s", path, g_strerror(errno));
    } else {
        print_inspection(d, &found, json);
        status = found.count[RR_RECORD_RIGHT] == d->records ? STATUS_FINE : STATUS_BROKEN;
        if (fflush(stdout)) {
            status = trouble("cannot write to standard output");
        }
    }
    if (file) {
        fclose(file);
    }
    g_free(found.state);
    return status;
}

/* ---- write and verify ---- */

static int run(const struct durable_arguments *a, struct rr_durable *d, const char *target,
               bool verify)
{
    g_autofree char *copy = g_strdup(target);
    struct rr_opening opening = rr_opening_default();
    struct rr_verdict verdict = { .log = g_string_new(NULL) };
    struct rr_session *s;
    struct rr_check_run r = {
        .options = { .nfs = rr_service_nfs, .any_edition = true, .reply_ms = (unsigned)a->reply_ms }
    };
    struct rr_verbs_dialer dialer;
    const char *host;
    unsigned port = RR_PORT_DEFAULT;
    int status = STATUS_NO_JUDGEMENT;

    if (!split_target(copy, &host, &port)) {
        status = trouble("%s is no HOST, HOST:PORT or [ADDRESS]:PORT", target);
    } else {
        rr_verbs_dialer_init(&dialer, host, port);
        r.options.nfs.file = a->file;
        r.options.service = &r.options.nfs;
        r.dialer = &dialer.dialer;
        rr_wait_ready(&r);
        s = rr_session_new(&r.options, r.dialer, &verdict, RPC_22);
        if (!rr_open(s, &opening)) {
            report(&verdict, status);
        } else {
            status = verify ? verify_records(s, d) : write_records(s, d);
        }
        rr_session_free(s);
    }
    g_string_free(verdict.log, true);
    return fflush(stdout) ? trouble("cannot write to standard output") : status;
}

static bool stable_of(const char *name, enum rr_stable *stable)
{
    static const char *const names[] = { "unstable", "data-sync", "file-sync" };

    for (unsigned i = 0; i < SG_ARRAY_SIZE(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            *stable = i;
            return true;
        }
    }
    return false;
}

static bool is_name(const char *file)
{
    return file && *file && strlen(file) <= UINT8_MAX && !strchr(file, '/');
}

static int dispatch(const struct durable_arguments *a, int argc, char **argv)
{
    bool verify = argc == 3 && strcmp(argv[1], "verify") == 0;
    bool inspects = argc == 3 && strcmp(argv[1], "inspect") == 0;
    struct rr_durable d = {
        .seed = (uint32_t)a->seed,
        .records = (uint32_t)a->records,
        .size = (uint32_t)a->size,
        .every = (uint32_t)a->every,
    };

    if (!verify && !inspects && (argc != 3 || strcmp(argv[1], "write") != 0)) {
        return trouble("durable takes: write HOST[:PORT], verify HOST[:PORT] or inspect PATH; see "
                       "rpcrdma durable --help");
    }
    if (inspects && a->file) {
        return trouble("inspect takes the PATH of the file, and no --file");
    }
    if (a->json && !inspects) {
        return trouble("--json is for inspect");
    }
    if (!inspects && !is_name(a->file)) {
        return trouble("--file takes the name of a file in the root of the export, and is needed");
    }
    if (a->records < 0 || a->records > RR_RECORDS_MAX) {
        return trouble("--records takes a number from 0 to %d", RR_RECORDS_MAX);
    }
    if (a->size < RR_RECORD_MIN || a->size > RR_RECORD_MAX || a->size % 4) {
        return trouble("--size takes a multiple of 4 from %d to %d", RR_RECORD_MIN, RR_RECORD_MAX);
    }
    if (a->every < 0 || a->reply_ms < 1 || a->reply_ms > LIMIT_MAX_MS) {
        return trouble("--commit-every takes 0 or more, --wait 1 to %d milliseconds", LIMIT_MAX_MS);
    }
    if (a->stable && !stable_of(a->stable, &d.stable)) {
        return trouble("--stable takes unstable, data-sync or file-sync, not %s", a->stable);
    }
    return inspects ? inspect(&d, argv[2], a->json) : run(a, &d, argv[2], verify);
}

int rr_main_durable(int argc, char **argv)
{
    struct durable_arguments a = {
        .records = RECORDS, .size = SIZE, .every = EVERY, .seed = 1, .reply_ms = RR_REPLY_MS
    };
    GOptionEntry entries[] = {
        { "file", 0, 0, G_OPTION_ARG_STRING, &a.file,
          "a file in the root of the export, which is overwritten", "NAME" },
        { "json", 0, 0, G_OPTION_ARG_NONE, &a.json, "inspect: one object", NULL },
        { "records", 0, 0, G_OPTION_ARG_INT, &a.records, "write, verify or inspect so many (256)",
          "N" },
        { "size", 0, 0, G_OPTION_ARG_INT, &a.size, "octets of a record (8192)", "N" },
        { "seed", 0, 0, G_OPTION_ARG_INT, &a.seed, "of the records' content (1)", "N" },
        { "stable", 0, 0, G_OPTION_ARG_STRING, &a.stable,
          "write: unstable (default), data-sync or file-sync", "HOW" },
        { "commit-every", 0, 0, G_OPTION_ARG_INT, &a.every,
          "write: a COMMIT behind so many unstable records (16); 0: none", "N" },
        { "wait", 0, 0, G_OPTION_ARG_INT, &a.reply_ms, "for an answer, at most (10000)", "MS" },
        { NULL },
    };
    g_autoptr(GOptionContext) context = g_option_context_new(
        "write|verify HOST[:PORT] | inspect PATH - records, and which of them an NFS server has to "
        "keep");
    g_autoptr(GError) error = NULL;
    int status;

    g_option_context_add_main_entries(context, entries, NULL);
    status = g_option_context_parse(context, &argc, &argv, &error) ? dispatch(&a, argc, argv)
                                                                   : trouble("%s", error->message);
    g_free(a.file);
    g_free(a.stable);
    return status;
}
