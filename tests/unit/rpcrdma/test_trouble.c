/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `rpcrdma check client` when not the client fails, but what stands around it: the server behind,
 * our own port.  That is no breach of the client, and no case passes because of it.
 */
#include "client_cases.h"
#include "liar.h"
#include "loopback_client.h"
#include "tap.h"

enum { WAIT_MS = 40, QUIET_MS = 2, TICK_US = 20, ANSWERS_MAX = 60 };

/* Time passes when it is looked at: on a busy machine all is as on an idle one. */
static gint64 now_us;

static gint64 tick(void)
{
    return now_us += TICK_US;
}

/* All cases, with that server behind; the report is in @book. */
static void run_all(const struct rr_source *source, struct rr_book *book)
{
    struct rr_requester_settings settings = rr_requester_defaults();
    struct rr_client_run run = { .book = book };
    struct rr_client_loopback loopback;

    *book = (struct rr_book){ .target = "test", .out = g_string_new(NULL) };
    rr_client_loopback_init(&loopback, &settings);
    run.options = (struct rr_client_options){ .acceptor = &loopback.acceptor,
                                              .source = source,
                                              .wait_ms = WAIT_MS,
                                              .quiet_ms = QUIET_MS,
                                              .now = tick };
    rr_client_check_all(&run);
    T_EQ_INT(book->number, rr_client_check_count(&run));
    rr_client_loopback_clear(&loopback);
}

static struct rr_upstream *open_nothing(const struct rr_source *source, char *why)
{
    snprintf(why, RR_WHY, "nobody listens there");
    return NULL;
}

/* Each case tries again, and says what is missing. */
static void no_server_behind(void)
{
    static const struct rr_source source = { .open = open_nothing };
    struct rr_book book;

    run_all(&source, &book);
    T_EQ_INT(book.in_trouble, book.number);
    T_NOT_NULL(strstr(book.out->str, "cannot judge: the server behind: nobody listens there\n"));
    T_NULL(strstr(book.out->str, "no client"));
    g_string_free(book.out, true);
}

/* ---- A server behind that stops ---- */

/* The program echo, which stops after so many Replies on each connection. */
static struct stopping {
    struct rr_upstream upstream;
    struct rr_upstream *echo;
    unsigned replies, limit;
    bool leaves; /* it ends the connection; otherwise it is silent */
} behind;

static bool behind_send(struct rr_upstream *upstream, struct sg_span message)
{
    return behind.echo->send(behind.echo, message);
}

static enum rr_upstream_kind behind_poll(struct rr_upstream *upstream, struct sg_span *message)
{
    enum rr_upstream_kind kind = RR_UPSTREAM_NOTHING;

    if (behind.replies < behind.limit) {
        kind = behind.echo->poll(behind.echo, message);
        behind.replies += kind == RR_UPSTREAM_MESSAGE;
    } else if (behind.leaves) {
        g_strlcpy(upstream->why, "the server behind: it has gone", sizeof(upstream->why));
        kind = RR_UPSTREAM_END;
    }
    return kind;
}

static void behind_close(struct rr_upstream *upstream)
{
    behind.echo->close(behind.echo);
}

static struct rr_upstream *behind_open(const struct rr_source *source, char *why)
{
    behind.upstream = (struct rr_upstream){ behind_send, behind_poll, behind_close, "" };
    behind.echo = rr_source_echo.open(&rr_source_echo, why);
    behind.replies = 0;
    return &behind.upstream;
}

static void expect_no_breach(bool leaves, const char *piece)
{
    static const struct rr_source source = { .open = behind_open };
    struct rr_book book;

    behind.leaves = leaves;
    for (behind.limit = 0; behind.limit < ANSWERS_MAX; behind.limit += t_stride(2)) {
        T_CONTEXT("%s after %u Replies", leaves ? "the end" : "silence", behind.limit);
        run_all(&source, &book);
        if (book.failed) {
            printf("# %.600s\n", strstr(book.out->str, "BROKEN"));
        }
        T_EQ_INT(book.failed, 0);
        T_NOT_NULL(strstr(book.out->str, piece));
        T_TRUE(behind.limit || book.in_trouble == book.number);
        g_string_free(book.out, true);
    }
}

static void the_server_behind__leaves(void)
{
    expect_no_breach(true, "cannot judge: the server behind: it has gone\n");
}

static void the_server_behind__is_silent(void)
{
    expect_no_breach(false, "cannot judge: the server behind has not answered");
}

/* ---- Messages that cannot be sent ---- */

static struct rr_client client;
static unsigned not_sent;

static bool has_victim(const struct liar *l)
{
    not_sent += client.victim != NULL;
    return client.victim != NULL;
}

/* Our own port cannot send while a case has a Call in its hands. */
static struct failing {
    struct rr_acceptor acceptor;
    struct rr_client_loopback loopback;
    struct liar liar;
} failing;

static struct rr_port *accept_failing(struct rr_acceptor *acceptor, const struct rr_port_side *side,
                                      unsigned ms)
{
    static const struct lie lie = { .name = "has_victim", .cannot_send = has_victim };

    liar_wrap(&failing.liar, &lie,
              failing.loopback.acceptor.accept(&failing.loopback.acceptor, side, ms));
    return &failing.liar.port;
}

/* The client has received nothing of what a case has for it: the case cannot pass. */
static void what_is_not_sent__does_not_pass(void)
{
    struct rr_requester_settings settings = rr_requester_defaults();
    struct rr_client_options options = { .acceptor = &failing.acceptor,
                                         .source = &rr_source_echo,
                                         .wait_ms = WAIT_MS,
                                         .quiet_ms = QUIET_MS,
                                         .now = tick };
    g_autoptr(GString) list = g_string_new(NULL);
    g_auto(GStrv) lines = NULL;
    unsigned unable = 0;

    rr_list_client_cases(list);
    lines = g_strsplit(list->str, "\n", -1);
    for (char **line = lines; **line; line++) {
        const char *id = strtok(*line, " ");
        struct rr_verdict v;

        T_CONTEXT("case %s", id);
        failing.acceptor.accept = accept_failing;
        rr_client_loopback_init(&failing.loopback, &settings);
        memset(&client, 0, sizeof(client));
        client.o = &options;
        not_sent = 0;
        rr_run_client_case(&client, rr_client_case_of(id), &v);
        T_TRUE(!not_sent || v.findings.count || v.trouble[0]);
        unable += not_sent > 0;
        g_string_free(v.log, true);
        rr_client_close(&client);
        rr_client_loopback_clear(&failing.loopback);
    }
    /* All but those that only relay. */
    T_EQ_INT(unable, 39);
}

/* ---- Clients of which too little is seen ---- */

static struct rr_port *wrap(struct rr_port *port, void *arg)
{
    liar_wrap(&failing.liar, arg, port);
    return &failing.liar.port;
}

static void run_lie(struct lie *lie, const char *case_id, unsigned at_once, struct rr_verdict *v)
{
    struct rr_requester_settings settings = rr_requester_defaults();
    struct rr_client_options options = { .acceptor = &failing.loopback.acceptor,
                                         .source = &rr_source_echo,
                                         .wait_ms = WAIT_MS,
                                         .quiet_ms = QUIET_MS,
                                         .now = tick };

    T_CONTEXT("%s, case %s", lie->name, case_id);
    settings.at_once = at_once;
    memset(&failing, 0, sizeof(failing));
    rr_client_loopback_init(&failing.loopback, &settings);
    failing.loopback.wrap = wrap;
    failing.loopback.wrap_arg = lie;
    memset(&client, 0, sizeof(client));
    client.o = &options;
    rr_run_client_case(&client, rr_client_case_of(case_id), v);
    if (v->findings.count) {
        printf("# %s\n", v->findings.found[0].text);
    }
    T_EQ_INT(v->findings.count, 0);
    rr_client_close(&client);
    rr_client_loopback_clear(&failing.loopback);
}

static void expect_trouble(struct lie *lie, const char *case_id, const char *piece)
{
    struct rr_verdict v;

    run_lie(lie, case_id, RR_AT_ONCE_DEFAULT, &v);
    T_NOT_NULL(strstr(v.trouble, piece));
    g_string_free(v.log, true);
}

static bool always(const struct liar *l, struct sg_span message)
{
    return true;
}

/* A client that comes, calls once and leaves; one that stops; neither has done anything wrong. */
static void too_little__is_no_pass(void)
{
    struct lie leaves = { .name = "leaves", .ends = always };
    struct lie stops = { .name = "stops", .stops = always };
    static const char *const relaying[] = { "client-calls", "client-threshold",
                                            "client-no-private" };

    for (size_t i = 0; i < SG_ARRAY_SIZE(relaying); i++) {
        expect_trouble(&stops, relaying[i], "Calls were answered within 40 ms");
    }
    expect_trouble(&leaves, "client-calls", "the client has ended 17 connections in a row");
    expect_trouble(&leaves, "client-threshold", "the client has ended 17 connections in a row");
    expect_trouble(&leaves, "client-result", "the client has ended 17 connections in a row");
}

static struct rr_header seen;

static bool has_read_list(struct sg_span message)
{
    return rr_header_parse(message, &seen) == RR_OK && seen.reads;
}

static bool has_write_list(struct sg_span message)
{
    return rr_header_parse(message, &seen) == RR_OK && seen.chunks;
}

static bool has_reply_chunk(struct sg_span message)
{
    return rr_header_parse(message, &seen) == RR_OK && seen.has_reply;
}

/* The connection ends before its memory could be read or written: the chunks were sound. */
static void chunks_of_who_has_left(void)
{
    struct lie leaves[] = {
        { .name = "has_read_list", .leaves = has_read_list },
        { .name = "has_write_list", .leaves = has_write_list },
        { .name = "has_reply_chunk", .leaves = has_reply_chunk },
    };
    struct rr_verdict v;

    for (size_t i = 0; i < SG_ARRAY_SIZE(leaves); i++) {
        run_lie(&leaves[i], "client-calls", 1, &v);
        T_NOT_NULL(strstr(v.log->str, "the connection is over"));
        g_string_free(v.log, true);
    }
}

static const struct t_case cases[] = {
    { "no server behind is no breach", no_server_behind },
    { "the end of the server behind is no breach", the_server_behind__leaves },
    { "silence of the server behind is no breach", the_server_behind__is_silent },
    { "no case passes whose message is not sent", what_is_not_sent__does_not_pass },
    { "no case passes that has seen too few Calls", too_little__is_no_pass },
    { "chunks of a client that has left are not judged", chunks_of_who_has_left },
};

T_MAIN(cases)
