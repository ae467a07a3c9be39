/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rpcrdma bench HOST[:PORT] [OPTION]...: Calls that a server answers in a second.
 *
 * Status 0: measured; 1: the server broke a rule meanwhile; 2: wrong arguments; 3: a measurement
 * did not come to its end.
 */
#include <stdio.h>

#include "bench.h"
#include "check.h"
#include "commands.h"
#include "port_verbs.h"

struct bench_arguments {
    char *program, *file;
    gboolean json;
    double seconds;
    int depth;
};

static const struct bench_row {
    const char *name;
    struct rr_request request;
} rows[] = {
    { "NULL", { .want = RR_WANT_NULL } },
    { "READ 4 KiB", { .want = RR_WANT_READ, .count = 4096 } },
    { "READ 1 MiB", { .want = RR_WANT_READ, .count = 1 << 20 } },
};

static void print_row(const struct bench_arguments *a, const struct bench_row *row,
                      const struct rr_rate *rate)
{
    if (a->json) {
        printf("{\"call\": \"%s\", \"depth\": %u, \"per_second\": %.2f}\n", row->name, rate->depth,
               rate->per_second);
    } else {
        printf("%-12s %3u at once %12.1f a second\n", row->name, rate->depth, rate->per_second);
    }
    fflush(stdout);
}

/* What went wrong, also if all was measured; the status. */
static int report(const struct bench_row *row, const struct rr_verdict *v, bool done)
{
    g_autofree char *prefix = g_strdup_printf("rpcrdma: %s: ", row->name);
    g_autoptr(GString) text = g_string_new(NULL);

    rr_verdict_say(text, v, prefix);
    fputs(text->str, stderr);
    return v->findings.count ? STATUS_BROKEN : done ? STATUS_FINE : STATUS_NO_JUDGEMENT;
}

/* On a connection of its own; the status. */
static int measure(const struct bench_arguments *a, const struct rr_check_run *r,
                   const struct bench_row *row, int depth)
{
    struct rr_verdict v = { .log = g_string_new(NULL) };
    struct rr_session *s = rr_session_new(&r->options, r->dialer, &v, RPC_22);
    struct rr_opening opening = rr_opening_default();
    struct rr_rate rate;
    bool done;
    int status;

    done = rr_open(s, &opening);
    if (done) {
        s->port->eager = true;
        done = rr_bench(s, row->request, (unsigned)depth, a->seconds, &rate);
    }
    if (done) {
        print_row(a, row, &rate);
    }
    status = report(row, &v, done);
    rr_session_free(s);
    g_string_free(v.log, true);
    return status;
}

static int run(const struct bench_arguments *a, const char *target)
{
    bool nfs = a->program && strcmp(a->program, "nfs") == 0;
    g_autofree char *copy = g_strdup(target);
    struct rr_check_run r = {
        .options = { .nfs = rr_service_nfs, .any_edition = true, .reply_ms = RR_REPLY_MS }
    };
    struct rr_verbs_dialer dialer;
    const char *host;
    unsigned port = RR_PORT_DEFAULT;
    int status = STATUS_FINE;

    if (!split_target(copy, &host, &port)) {
        return trouble("%s is no HOST, HOST:PORT or [ADDRESS]:PORT", target);
    }
    rr_verbs_dialer_init(&dialer, host, port);
    r.dialer = &dialer.dialer;
    r.options.nfs.file = a->file;
    r.options.service = nfs ? &r.options.nfs : &rr_service_echo;
    rr_wait_ready(&r);
    for (size_t i = 0; i < SG_ARRAY_SIZE(rows); i++) {
        const int depths[] = { 1, a->depth };

        if (rows[i].request.want != RR_WANT_NULL && !(nfs && a->file)) {
            continue;
        }
        for (int n = 0; n < (a->depth > 1 ? 2 : 1); n++) {
            int one = measure(a, &r, &rows[i], depths[n]);

            /* A broken rule says more than a measurement that did not come to its end. */
            status = status == STATUS_BROKEN || one == STATUS_FINE ? status : one;
        }
    }
    return fflush(stdout) ? trouble("cannot write the report") : status;
}

static int dispatch(const struct bench_arguments *a, int argc, char **argv)
{
    if (argc != 2) {
        return trouble("bench takes one HOST[:PORT]; see rpcrdma bench --help");
    }
    if (a->program && strcmp(a->program, "nfs") != 0 && strcmp(a->program, "echo") != 0) {
        return trouble("--program takes nfs or echo, not %s", a->program);
    }
    if (a->file && (!a->program || strcmp(a->program, "nfs") != 0)) {
        return trouble("--file needs --program nfs");
    }
    if (!(a->seconds > 0 && a->seconds <= 600)) {
        return trouble("--seconds takes a number above 0, at most 600");
    }
    if (a->depth < 1 || a->depth > RR_ASKED_CREDITS) {
        return trouble("--depth takes a number from 1 to %d", RR_ASKED_CREDITS);
    }
    return run(a, argv[1]);
}

int rr_main_bench(int argc, char **argv)
{
    struct bench_arguments a = { .seconds = 3, .depth = 8 };
    GOptionEntry entries[] = {
        { "program", 0, 0, G_OPTION_ARG_STRING, &a.program,
          "echo (default; that of rpcrdma serve: NULL only) or nfs (NFS version 4.0)", "NAME" },
        { "file", 0, 0, G_OPTION_ARG_STRING, &a.file,
          "nfs: a file of at least 1 MiB in the root of the export, for READs", "NAME" },
        { "seconds", 0, 0, G_OPTION_ARG_DOUBLE, &a.seconds, "length of a measurement (3)", "S" },
        { "depth", 0, 0, G_OPTION_ARG_INT, &a.depth,
          "Calls open at once, beside one at a time; at most what is granted (8)", "N" },
        { "json", 0, 0, G_OPTION_ARG_NONE, &a.json, "one object a line", NULL },
        { NULL },
    };
    g_autoptr(GOptionContext) context =
        g_option_context_new("HOST[:PORT] - Calls that a server answers in a second");
    g_autoptr(GError) error = NULL;
    int status;

    g_option_context_add_main_entries(context, entries, NULL);
    status = g_option_context_parse(context, &argc, &argv, &error) ? dispatch(&a, argc, argv)
                                                                   : trouble("%s", error->message);
    g_free(a.program);
    g_free(a.file);
    return status;
}
