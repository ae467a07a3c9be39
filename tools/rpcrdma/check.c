/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check.h"

static const struct rr_cases *const groups[] = {
    &rr_cases_message, &rr_cases_call, &rr_cases_reply, &rr_cases_error, &rr_cases_private,
};

static const struct rr_case *case_at(unsigned n)
{
    for (size_t g = 0; g < SG_ARRAY_SIZE(groups); g++) {
        if (n < groups[g]->count) {
            return &groups[g]->cases[n];
        }
        n -= groups[g]->count;
    }
    return NULL;
}

const struct rr_case *rr_case_of(const char *id)
{
    const struct rr_case *c;

    for (unsigned n = 0; (c = case_at(n)); n++) {
        if (strcmp(c->id, id) == 0) {
            return c;
        }
    }
    return NULL;
}

void rr_list_cases(GString *out)
{
    const struct rr_case *c;

    for (unsigned n = 0; (c = case_at(n)); n++) {
        g_string_append_printf(out, "%-22s %s  %s\n", c->id, rr_rule(c->rule)->id, c->text);
    }
}

void rr_run_case(const struct rr_check_run *run, const struct rr_case *c,
                 struct rr_verdict *verdict)
{
    struct rr_session *s = g_new0(struct rr_session, 1);
    struct rr_opening opening = rr_opening_default();

    memset(verdict, 0, sizeof(*verdict));
    verdict->log = g_string_new(NULL);
    if (run->options.private_data.len) {
        opening.octets = &run->options.private_data;
    }
    s->o = &run->options;
    s->dialer = run->dialer;
    s->verdict = verdict;
    s->rule = c->rule;
    /* A server may answer a Call that it has seen before without executing it again. */
    s->xid = g_random_int();
    if (c->dials || rr_open(s, &opening)) {
        c->run(s);
    }
    rr_hang_up(s);
    g_free(s);
}

/* An NFS server that has just started refuses reads for a while. */
static void probe(struct rr_session *s)
{
    struct rr_results results;

    if (rr_begin(s, (struct rr_request){ .want = RR_WANT_READ, .count = 4 }) && rr_send(s) &&
        rr_expect_reply(s)) {
        rr_results(s, &results);
    }
}

void rr_wait_ready(const struct rr_check_run *run)
{
    static const struct rr_case ready = { .id = "ready", .rule = RPC_22, .run = probe };
    bool waits = true;

    for (unsigned i = 0; waits && i < RR_READY_TRIES; i++) {
        struct rr_verdict v;

        rr_run_case(run, &ready, &v);
        waits = strcmp(v.trouble, RR_GRACE) == 0;
        g_string_free(v.log, true);
        if (waits) {
            g_usleep(G_USEC_PER_SEC);
        }
    }
}

/* ---- Reports ---- */

enum result { PASSED, FAILED, SKIPPED, IN_TROUBLE };

static enum result result_of(const struct rr_verdict *v)
{
    return v->findings.count ? FAILED
           : v->trouble[0]   ? IN_TROUBLE
           : v->skipped[0]   ? SKIPPED
                             : PASSED;
}

static void print_lines(GString *out, const char *text, const char *prefix)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (char **line = lines; *line; line++) {
        if (**line) {
            g_string_append_printf(out, "%s%s\n", prefix, *line);
        }
    }
}

/* A case that tries several things may find one breach again and again. */
static bool found_before(const struct rr_findings *f, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (f->found[i].rule == f->found[n].rule &&
            strcmp(f->found[i].text, f->found[n].text) == 0) {
            return true;
        }
    }
    return false;
}

static void print_finding(GString *out, const struct rr_finding *f, const char *prefix)
{
    const struct rr_rule_row *row = rr_rule(f->rule);

    g_string_append_printf(out, "%s%s (%s %s): %s\n%s    %s\n", prefix, row->id,
                           f->rule >= PVT_01 ? "RFC 8797" : "RFC 8166", row->section, f->text,
                           prefix, row->text);
}

/* What a failed case has to say. */
static void print_details(GString *out, const struct rr_verdict *v, const char *prefix)
{
    if (v->trouble[0]) {
        g_string_append_printf(out, "%scannot judge: %s\n", prefix, v->trouble);
    }
    for (unsigned i = 0; i < v->findings.count; i++) {
        if (!found_before(&v->findings, i)) {
            print_finding(out, &v->findings.found[i], prefix);
        }
    }
    if (v->findings.left_out) {
        g_string_append_printf(out, "%s%u more\n", prefix, v->findings.left_out);
    }
    print_lines(out, v->log->str, prefix);
    if (v->lines > RR_LOG_LINES) {
        g_string_append_printf(out, "%s... %u more lines\n", prefix, v->lines - RR_LOG_LINES);
    }
}

static void report_text(struct rr_check_run *run, const struct rr_case *c,
                        const struct rr_verdict *v, enum result result)
{
    static const char *const words[] = { "ok", "BROKEN", "skipped", "TROUBLE" };

    g_string_append_printf(run->out, "%-8s %-22s %s%s%s%s\n", words[result], c->id, c->text,
                           result == SKIPPED ? " (" : "", result == SKIPPED ? v->skipped : "",
                           result == SKIPPED ? ")" : "");
    if (result == FAILED || result == IN_TROUBLE || run->verbose) {
        print_details(run->out, v, "    ");
    }
}

static void report_tap(struct rr_check_run *run, unsigned number, const struct rr_case *c,
                       const struct rr_verdict *v, enum result result)
{
    if (result == FAILED || result == IN_TROUBLE || run->verbose) {
        print_details(run->out, v, "# ");
    }
    g_string_append_printf(run->out, "%sok %u - %s: %s%s%s\n",
                           result == FAILED || result == IN_TROUBLE ? "not " : "", number, c->id,
                           c->text, result == SKIPPED ? " # SKIP " : "",
                           result == SKIPPED ? v->skipped : "");
}

static void report_junit(struct rr_check_run *run, const struct rr_case *c,
                         const struct rr_verdict *v, enum result result, double seconds)
{
    static const char *const elements[] = { NULL, "failure", "skipped", "error" };
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *details = NULL;

    print_details(text, v, "");
    details = g_markup_escape_text(result == SKIPPED ? v->skipped : text->str, -1);
    g_string_append_printf(
        run->junit, "  <testcase classname=\"rpcrdma\" name=\"%s\" time=\"%.3f\">", c->id, seconds);
    if (result == SKIPPED) {
        g_string_append_printf(run->junit, "<skipped message=\"%s\"/>", details);
    } else if (elements[result]) {
        g_string_append_printf(run->junit, "<%s message=\"%s\">%s</%s>", elements[result],
                               v->findings.count ? rr_rule(v->findings.found[0].rule)->id
                                                 : "no judgement",
                               details, elements[result]);
    }
    g_string_append(run->junit, "</testcase>\n");
}

static bool wanted(const struct rr_check_run *run, const struct rr_case *c)
{
    return !run->only || g_strv_contains((const char *const *)run->only, c->id);
}

static void run_one(struct rr_check_run *run, unsigned number, const struct rr_case *c)
{
    unsigned *counts[] = { &run->passed, &run->failed, &run->skipped, &run->in_trouble };
    gint64 start = g_get_monotonic_time();
    struct rr_verdict v;
    enum result result;

    rr_run_case(run, c, &v);
    result = result_of(&v);
    ++*counts[result];
    if (run->tap) {
        report_tap(run, number, c, &v, result);
    } else {
        report_text(run, c, &v, result);
    }
    if (run->junit) {
        report_junit(run, c, &v, result, (double)(g_get_monotonic_time() - start) / 1e6);
    }
    g_string_free(v.log, true);
    if (run->write) {
        run->write(run->out);
    }
}

void rr_check(struct rr_check_run *run)
{
    const struct rr_case *c;
    unsigned number = 0, count = 0;

    for (unsigned n = 0; (c = case_at(n)); n++) {
        count += wanted(run, c);
    }
    if (run->tap) {
        g_string_append_printf(run->out, "1..%u\n", count);
    }
    if (run->junit) {
        g_string_append(run->junit, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        g_string_append_printf(run->junit, "<testsuite name=\"rpcrdma\" tests=\"%u\">\n", count);
    }
    for (unsigned n = 0; (c = case_at(n)); n++) {
        if (wanted(run, c)) {
            run_one(run, ++number, c);
        }
    }
    if (run->junit) {
        g_string_append(run->junit, "</testsuite>\n");
    }
    g_string_append_printf(run->out, "%s%s: %u ok, %u broken, %u skipped, %u without judgement\n",
                           run->tap ? "# " : "", run->target, run->passed, run->failed,
                           run->skipped, run->in_trouble);
}
