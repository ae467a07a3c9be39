/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict.h"

#include <string.h>

void rr_verdict_init(struct rr_verdict *v)
{
    memset(v, 0, sizeof(*v));
    v->log = g_string_new(NULL);
}

void rr_verdict_note(struct rr_verdict *v, const char *format, va_list ap)
{
    if (v->lines++ >= RR_LOG_LINES) {
        return;
    }
    g_string_append_vprintf(v->log, format, ap);
    g_string_append_c(v->log, '\n');
}

void rr_verdict_trouble(struct rr_verdict *v, const char *format, va_list ap)
{
    if (!v->trouble[0]) {
        vsnprintf(v->trouble, sizeof(v->trouble), format, ap);
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

void rr_verdict_say(GString *out, const struct rr_verdict *v, const char *prefix)
{
    for (unsigned i = 0; i < v->findings.count; i++) {
        const struct rr_finding *f = &v->findings.found[i];

        if (!found_before(&v->findings, i)) {
            g_string_append_printf(out, "%s%s: %s\n", prefix, rr_rule(f->rule)->id, f->text);
        }
    }
    if (v->findings.left_out) {
        g_string_append_printf(out, "%s%u more\n", prefix, v->findings.left_out);
    }
    if (v->trouble[0] || v->skipped[0]) {
        g_string_append_printf(out, "%s%s\n", prefix, v->trouble[0] ? v->trouble : v->skipped);
    }
}

static void report_text(struct rr_book *b, const char *id, const char *text,
                        const struct rr_verdict *v, enum result result)
{
    static const char *const words[] = { "ok", "BROKEN", "skipped", "TROUBLE" };

    g_string_append_printf(b->out, "%-8s %-22s %s%s%s%s\n", words[result], id, text,
                           result == SKIPPED ? " (" : "", result == SKIPPED ? v->skipped : "",
                           result == SKIPPED ? ")" : "");
    if (result == FAILED || result == IN_TROUBLE || b->verbose) {
        print_details(b->out, v, "    ");
    }
}

static void report_tap(struct rr_book *b, const char *id, const char *text,
                       const struct rr_verdict *v, enum result result)
{
    if (result == FAILED || result == IN_TROUBLE || b->verbose) {
        print_details(b->out, v, "# ");
    }
    g_string_append_printf(b->out, "%sok %u - %s: %s%s%s\n",
                           result == FAILED || result == IN_TROUBLE ? "not " : "", b->number, id,
                           text, result == SKIPPED ? " # SKIP " : "",
                           result == SKIPPED ? v->skipped : "");
}

static void report_junit(struct rr_book *b, const char *id, const struct rr_verdict *v,
                         enum result result, double seconds)
{
    static const char *const elements[] = { NULL, "failure", "skipped", "error" };
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *details = NULL;

    print_details(text, v, "");
    details = g_markup_escape_text(result == SKIPPED ? v->skipped : text->str, -1);
    g_string_append_printf(b->junit, "  <testcase classname=\"rpcrdma\" name=\"%s\" time=\"%.3f\">",
                           id, seconds);
    if (result == SKIPPED) {
        g_string_append_printf(b->junit, "<skipped message=\"%s\"/>", details);
    } else if (elements[result]) {
        g_string_append_printf(b->junit, "<%s message=\"%s\">%s</%s>", elements[result],
                               v->findings.count ? rr_rule(v->findings.found[0].rule)->id
                                                 : "no judgement",
                               details, elements[result]);
    }
    g_string_append(b->junit, "</testcase>\n");
}

void rr_book_open(struct rr_book *b, unsigned count)
{
    if (b->tap) {
        g_string_append_printf(b->out, "1..%u\n", count);
    }
    if (b->junit) {
        g_string_append(b->junit, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        g_string_append_printf(b->junit, "<testsuite name=\"rpcrdma\" tests=\"%u\">\n", count);
    }
}

void rr_book_enter(struct rr_book *b, const char *id, const char *text, struct rr_verdict *v,
                   double seconds)
{
    unsigned *counts[] = { &b->passed, &b->failed, &b->skipped, &b->in_trouble };
    enum result result = result_of(v);

    b->number++;
    ++*counts[result];
    if (b->tap) {
        report_tap(b, id, text, v, result);
    } else {
        report_text(b, id, text, v, result);
    }
    if (b->junit) {
        report_junit(b, id, v, result, seconds);
    }
    g_string_free(v->log, true);
    if (b->write) {
        b->write(b->out);
    }
}

void rr_book_close(struct rr_book *b)
{
    if (b->junit) {
        g_string_append(b->junit, "</testsuite>\n");
    }
    g_string_append_printf(b->out, "%s%s: %u ok, %u broken, %u skipped, %u without judgement\n",
                           b->tap ? "# " : "", b->target, b->passed, b->failed, b->skipped,
                           b->in_trouble);
}
