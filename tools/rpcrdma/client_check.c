/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs cases against clients. */
#include "check.h"
#include "client_cases.h"

static const struct rr_client_cases *const groups[] = {
    &rr_client_cases_sound, &rr_client_cases_credits, &rr_client_cases_reply,
    &rr_client_cases_bad,   &rr_client_cases_reverse,
};

static const struct rr_client_case *case_at(unsigned n)
{
    for (size_t g = 0; g < SG_ARRAY_SIZE(groups); g++) {
        if (n < groups[g]->count) {
            return &groups[g]->cases[n];
        }
        n -= groups[g]->count;
    }
    return NULL;
}

const struct rr_client_case *rr_client_case_of(const char *id)
{
    const struct rr_client_case *c;

    for (unsigned n = 0; (c = case_at(n)); n++) {
        if (strcmp(c->id, id) == 0) {
            return c;
        }
    }
    return NULL;
}

void rr_list_client_cases(GString *out)
{
    const struct rr_client_case *c;

    for (unsigned n = 0; (c = case_at(n)); n++) {
        g_string_append_printf(out, "%-22s %s  %s\n", c->id, rr_rule(c->rule)->id, c->text);
    }
}

static bool ready(struct rr_client *c, const struct rr_client_case *which)
{
    struct rr_settings settings = rr_settings_default();

    settings.credits = RR_CLIENT_CREDITS;
    settings.invalidate = which->invalidate;
    settings.private_data = !which->no_private;
    if (which->inline_size) {
        settings.inline_size = which->inline_size;
    }
    /* What a case has changed on a connection ends with it. */
    if (c->port && !c->over && !which->fresh && c->settings.private_data &&
        c->settings.invalidate == settings.invalidate &&
        c->settings.inline_size == settings.inline_size) {
        c->settings = settings;
        c->codec->settings = settings;
        c->codec->likes_long = false;
        c->credits = settings.credits;
        return true;
    }
    return rr_client_open(c, &settings);
}

void rr_run_client_case(struct rr_client *c, const struct rr_client_case *which,
                        struct rr_verdict *v)
{
    rr_verdict_init(v);
    c->verdict = v;
    c->rule = which->rule;
    c->arg = which->arg;
    c->routine = RR_ROUTINE_LINES;
    if (ready(c, which)) {
        which->run(c);
    }
    /* Nobody waits for longer than a case. */
    if (c->port && c->victim) {
        rr_client_answer(c, c->victim);
    }
    c->own_calls = false;
    if (c->port) {
        rr_client_release(c);
        rr_client_relay_waiting(c);
    }
}

unsigned rr_client_check_count(const struct rr_client_run *run)
{
    const struct rr_client_case *c;
    unsigned count = 0;

    for (unsigned n = 0; (c = case_at(n)); n++) {
        count += rr_wanted(run->only, c->id);
    }
    return count;
}

void rr_client_check_all(struct rr_client_run *run)
{
    struct rr_client client = { .o = &run->options };
    const struct rr_client_case *c;
    bool gone = false;

    g_queue_init(&client.open);
    for (unsigned n = 0; (c = case_at(n)); n++) {
        gint64 start = g_get_monotonic_time();
        struct rr_verdict v;

        if (!rr_wanted(run->only, c->id)) {
            continue;
        }
        /* One case has waited for a client; the others need not. */
        if (gone) {
            rr_verdict_init(&v);
            snprintf(v.trouble, sizeof(v.trouble), "no client is there any more");
        } else {
            rr_run_client_case(&client, c, &v);
            gone = v.trouble[0] && !client.port;
        }
        rr_book_enter(run->book, c->id, c->text, &v,
                      (double)(g_get_monotonic_time() - start) / 1e6);
    }
    rr_client_close(&client);
}
