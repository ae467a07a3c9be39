/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check.h"

static const struct rr_cases *const groups[] = {
    &rr_cases_message, &rr_cases_call,  &rr_cases_reply,
    &rr_cases_error,   &rr_cases_field, &rr_cases_private,
};

bool rr_wanted(char **only, const char *id)
{
    return !only || g_strv_contains((const char *const *)only, id);
}

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
    struct rr_session *s = rr_session_new(&run->options, run->dialer, verdict, c->rule);

    rr_verdict_init(verdict);
    if (c->dials || rr_open_usual(s)) {
        c->run(s);
    }
    rr_session_free(s);
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
    unsigned silent = 0;

    for (unsigned i = 0; i < RR_READY_TRIES; i++) {
        struct rr_verdict v;
        bool grace, no_answer;

        rr_run_case(run, &ready, &v);
        grace = strcmp(v.trouble, RR_GRACE) == 0;
        no_answer = v.findings.count > 0;
        g_string_free(v.log, true);
        silent += no_answer;
        if (!grace && (!no_answer || silent == RR_READY_SILENT)) {
            return;
        }
        if (grace) {
            g_usleep(G_USEC_PER_SEC);
        }
    }
}

unsigned rr_check_count(const struct rr_check_run *run)
{
    const struct rr_case *c;
    unsigned count = 0;

    for (unsigned n = 0; (c = case_at(n)); n++) {
        count += rr_wanted(run->only, c->id);
    }
    return count;
}

void rr_check_all(struct rr_check_run *run)
{
    const struct rr_case *c;

    for (unsigned n = 0; (c = case_at(n)); n++) {
        gint64 start = g_get_monotonic_time();
        struct rr_verdict v;

        if (rr_wanted(run->only, c->id)) {
            rr_run_case(run, c, &v);
            rr_book_enter(run->book, c->id, c->text, &v,
                          (double)(g_get_monotonic_time() - start) / 1e6);
        }
    }
}
